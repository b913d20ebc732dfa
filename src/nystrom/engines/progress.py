"""One bar on the terminal or in a notebook, over stages and tiles."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

#: What every engine calls: (stage, tiles done, tiles in all).
Hook = Callable[[str, int, int], None]


class Bar:
    """`verbose=1`: a line that is drawn over itself, one per stage.

    Plain text with a carriage return, which terminals and notebooks both understand;
    where neither reads it (a log file) each stage is written once, when it ends.
    """

    stream: TextIO
    live: bool

    def __init__(self, stream: TextIO | None = None, width: int = 30) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.width = width
        self.live = self.stream.isatty() or "ipykernel" in sys.modules
        self._stage, self._begun, self._drawn = "", 0.0, 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        if stage != self._stage or done == 0:
            self._stage, self._begun, self._drawn = stage, now, 0.0
        last = done >= total
        if not last and (not self.live or now - self._drawn < 0.1):
            return
        self._drawn = now
        full = self.width if total == 0 else self.width * done // total
        bar = "█" * full + "·" * (self.width - full)
        share = 100 if total == 0 else 100 * done // total
        start, end = ("\r", "\n" if last else "") if self.live else ("", "\n")
        text = f"{start}{stage:<28} {bar} {share:3d} % {now - self._begun:6.1f} s{end}"
        self.stream.write(text)
        self.stream.flush()


def silent(stage: str, done: int, total: int) -> None:
    """`verbose=0`."""
