"""One line of text that is drawn over itself, on a terminal or in a notebook.

By carriage returns, or as an output whose text changes. Where neither reads along (a
log file, another process's worker) there are whole lines only. Of several lines on one
stream the first is drawn; the others are written when they end, above it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from typing import TextIO

from . import notebook

#: Held while a line is written: fits in several threads share the streams.
WRITING = threading.RLock()
#: The lines that are being drawn now, one for each stream.
_drawn: list[Line] = []


class Line:
    """A line on a stream, by default standard error."""

    stream: TextIO  # None where there is no standard error
    live: bool

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.live = _is_watched(self.stream)
        self._place = notebook.Place() if notebook.reads(self.stream) else None
        self._length = 0  # of what stands there

    def begin(self) -> None:
        """From now on this is the line that is drawn, unless there is one."""
        with WRITING:
            if any(line.stream is self.stream for line in _drawn):
                self.live = False
            elif self.live:
                _drawn.append(self)

    def draw(self, text: str) -> None:
        """Put the text in the place of what stands there."""
        text = self.shortened(text)
        if self._place is not None:
            self._place.show(text)
            return
        self._write("\r" + text.ljust(self._length))  # spaces cover what was longer
        self._length = len(text)

    def end(self, text: str) -> None:
        """The last text, and a new line; nothing where there is no text."""
        with WRITING:
            if self.live:
                _drawn.remove(self)
                if text:
                    self.draw(text)
                    if self._place is None:
                        self._write("\n")
                self.live = False
            elif text:
                self.write(text)

    def write(self, text: str) -> None:
        """A whole line, above the one that is drawn."""
        if self._place is not None:
            notebook.Place().show(text)
            return
        with aside(self.stream):
            self._write(text + "\n")

    def shortened(self, text: str) -> str:
        """The text, if it is shorter than the line; else what of it is."""
        most = self.columns
        return text if len(text) <= most else text[: most - 1] + "…"

    @property
    def columns(self) -> int:
        """How long a line may be without a second one: the last column stays free."""
        try:
            at_terminal = os.get_terminal_size(self.stream.fileno()).columns
        except (AttributeError, OSError, ValueError):  # a notebook, a test
            at_terminal = 0
        if at_terminal == 0 or "COLUMNS" in os.environ:
            at_terminal = shutil.get_terminal_size().columns
        return max(10, at_terminal) - 1

    def shows(self, characters: str) -> bool:
        """Whether the stream has these characters."""
        encoding = getattr(self.stream, "encoding", None) or "utf-8"
        try:
            characters.encode(encoding)
        except (UnicodeEncodeError, LookupError):
            return False
        return True

    def _write(self, text: str) -> None:
        # No fit fails because nobody can be told of it: a closed pipe, no stream.
        with contextlib.suppress(AttributeError, OSError, ValueError):
            self.stream.write(text)
            self.stream.flush()

    def _clear(self) -> None:
        if self._place is None:  # else it is apart from what is written
            self._write("\r" + " " * self._length + "\r")
            self._length = 0


@contextlib.contextmanager
def aside(stream: TextIO | None = None) -> Iterator[None]:
    """Room for something else on the stream: what is drawn there comes after it."""
    stream = sys.stderr if stream is None else stream
    with WRITING:
        for line in _drawn:
            if line.stream is stream:
                line._clear()
        yield


def _is_watched(stream: TextIO | None) -> bool:
    """Whether somebody sees the line change."""
    if multiprocessing.parent_process() is not None:
        return False  # workers of one terminal would write into each other's lines
    if notebook.reads(stream):
        return True
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False
