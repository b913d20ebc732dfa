"""`verbose=1`: one progress bar over all of a call, with the estimated time left.

Work is counted in kernel evaluations: engines report the tiles of each pass, the ledger
of a sampler what it evaluates besides. The bar is one line of text, redrawn in place on
a terminal or in a notebook; a log gets whole lines. Of several bars on one stream the
first is drawn; the others are written above it when they end.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Self, TextIO

from .base import TILE

#: Where more is evaluated than was expected, but for a negligible share, so much more
#: is expected beyond it.
NEGLIGIBLE_WORK_SHARE, EXTRA_WORK_SHARE = 0.05, 0.25
#: Passes that are expected before anything is known of the selection ahead.
UNPLANNED_PASSES = 20.0


class WorkEstimate:
    """The share of a call's kernel evaluations that is done, from 0 to 1.

    Parameters
    ----------
    passes : float
        Passes over all rows that follow each selection of landmarks; all passes of a
        call that selects none.
    selections : int
        How often landmarks are selected.
    """

    def __init__(self, passes: float = 1.0, selections: int = 0) -> None:
        self.passes, self.selections = passes, selections
        self.started = time.monotonic()
        self.share, self.done, self.expected = 0.0, 0.0, 0.0
        self.stage = ""
        self._pass_size = self._pass_done = 0.0  # evaluations of the pass at work

    @property
    def seconds(self) -> float:
        """Since the call began."""
        return time.monotonic() - self.started

    def expect(self, selection: float, per_pass: float) -> None:
        """Evaluations of a selection that begins now, and of each pass after it."""
        n_selections = max(1, self.selections)
        ahead = n_selections * (selection + self.passes * per_pass)
        self.selections = n_selections - 1
        self.expected = max(self.expected, self.done + ahead)

    def begin_pass(self, stage: str, evaluations: float) -> None:
        """A pass of so many evaluations begins."""
        self.stage, self._pass_size, self._pass_done = stage, evaluations, 0.0
        if not self.expected:
            n_passes = UNPLANNED_PASSES if self.selections else self.passes
            self.expected = n_passes * evaluations
        self._make_room_for(evaluations)

    def tell(self, stage: str, done: int, total: int) -> None:
        """A pass has finished so many of its tiles.

        One that was not announced has one evaluation per row.
        """
        if stage != self.stage or (done == 0 and self._pass_done > 0):
            self.begin_pass(stage, TILE * total)
        finished = self._pass_size * (min(1.0, done / total) if total else 1.0)
        if finished > self._pass_done:
            self.count(finished - self._pass_done)
            self._pass_done = finished

    def count(self, evaluations: float) -> None:
        """So many evaluations more are done."""
        self._make_room_for(evaluations)
        remaining = self.expected - self.done
        if remaining > 0:  # of what is ahead, never back
            self.share += (1 - self.share) * min(1.0, evaluations / remaining)
        self.done += evaluations

    def _make_room_for(self, evaluations: float) -> None:
        needed = self.done + evaluations
        if needed > (1 + NEGLIGIBLE_WORK_SHARE) * self.expected:
            self.expected = (1 + EXTRA_WORK_SHARE) * needed
        self.expected = max(self.expected, needed)

    def seconds_left(self) -> float | None:
        """Until the end, at the speed so far; None before anything is done."""
        if not self.done:
            return None
        return self.seconds * max(0.0, self.expected - self.done) / self.done


#: Held while a line is written: fits in several threads share the streams.
STREAM_LOCK = threading.RLock()
#: The lines that are being drawn now, one for each stream.
_active_lines: list[StatusLine] = []


class StatusLine:
    """A line on a stream, by default standard error."""

    stream: TextIO  # None where there is no standard error
    live: bool

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.live = _is_interactive(self.stream)
        self._length = 0  # of what stands there

    def begin(self) -> None:
        """From now on this is the line that is drawn, unless there is one."""
        with STREAM_LOCK:
            if any(line.stream is self.stream for line in _active_lines):
                self.live = False
            elif self.live:
                _active_lines.append(self)

    def draw(self, text: str) -> None:
        """Put the text in the place of what stands there."""
        text = self.truncate(text)
        self._write("\r" + text.ljust(self._length))  # spaces cover what was longer
        self._length = len(text)

    def end(self, text: str) -> None:
        """The last text, and a new line; nothing where there is no text."""
        with STREAM_LOCK:
            if self.live:
                _active_lines.remove(self)
                if text:
                    self.draw(text)
                    self._write("\n")
                self.live = False
            elif text:
                self.write(text)

    def write(self, text: str) -> None:
        """A whole line, above the one that is drawn."""
        with write_above_status_line(self.stream):
            self._write(text + "\n")

    def truncate(self, text: str) -> str:
        """The text, if it is shorter than the line; else what of it is."""
        max_length = self.columns
        return text if len(text) <= max_length else text[: max_length - 1] + "…"

    @property
    def columns(self) -> int:
        """How long a line may be without a second one: the last column stays free."""
        try:
            n_columns = os.get_terminal_size(self.stream.fileno()).columns
        except (AttributeError, OSError, ValueError):  # a notebook, a test
            n_columns = 0
        if n_columns == 0 or "COLUMNS" in os.environ:
            n_columns = shutil.get_terminal_size().columns
        return max(10, n_columns) - 1

    def can_encode(self, characters: str) -> bool:
        """Whether the stream has these characters."""
        encoding = getattr(self.stream, "encoding", None) or "utf-8"
        try:
            characters.encode(encoding)
        except (UnicodeEncodeError, LookupError):
            return False
        return True

    def _write(self, text: str) -> None:
        # No fit fails because of a closed pipe, or because there is no stream.
        with contextlib.suppress(AttributeError, OSError, ValueError):
            self.stream.write(text)
            self.stream.flush()

    def _clear(self) -> None:
        self._write("\r" + " " * self._length + "\r")
        self._length = 0


@contextlib.contextmanager
def write_above_status_line(stream: TextIO | None = None) -> Iterator[None]:
    """Room for something else on the stream: what is drawn there comes after it."""
    stream = sys.stderr if stream is None else stream
    with STREAM_LOCK:
        for line in _active_lines:
            if line.stream is stream:
                line._clear()
        yield


def _is_interactive(stream: TextIO | None) -> bool:
    """Whether somebody sees the line change."""
    if multiprocessing.parent_process() is not None:
        return False  # workers of one terminal would write into each other's lines
    if type(stream).__module__.startswith("ipykernel"):  # a notebook
        return True
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


#: Seconds between two drawings of the line; and between two lines of a log, which grows
#: by no more than so many lines while the time doubles.
REDRAW_SECONDS, LOG_SECONDS, LOG_LINES_PER_DOUBLING = 0.1, 5.0, 5
#: Seconds before the remaining time is shown: sooner it would be a guess.
MIN_ETA_SECONDS = 1.0
#: Characters of the bar: done, ahead; and where a stream has none of these.
BAR_CHARACTERS, ASCII_BAR_CHARACTERS = ("█", "·"), ("#", ".")
#: Room beside the name and the bar: per cent, times, and the name of a stage.
TEXT_COLUMNS = 46


class Bar(WorkEstimate):
    """Progress bar for a whole call, as a context manager and a hook of engines.

    On a terminal or in a notebook, the bar is one line that is drawn again. A log gets
    a line every few seconds, fewer as time goes by, and one at the end.

    Parameters
    ----------
    stream : text file or None
        Stream to which the bar is written; None means standard error.
    width : int
        Largest width of the bar in characters.
    name : str
        Name of the call, shown before the bar.
    patience : float
        Seconds before the bar is shown; shorter calls show nothing.
    passes, selections : float, int
        Number of passes over all rows after a selection, and number of selections. The
        remaining time is estimated from these.
    """

    width: int
    name: str
    patience: float
    status_line: StatusLine

    def __init__(
        self,
        stream: TextIO | None = None,
        width: int = 30,
        name: str = "",
        patience: float = 0.0,
        passes: float = 1.0,
        selections: int = 0,
    ) -> None:
        super().__init__(passes, selections)
        self.width, self.name, self.patience = width, name, patience
        self.status_line = StatusLine(stream)
        self._at = 0.0  # seconds when it was drawn

    def __enter__(self) -> Self:
        self.status_line.begin()
        if self.status_line.live and not self.patience:
            self._draw()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with STREAM_LOCK:
            percent, suffix, stage = 100, "", self.stage
            if kind is not None:
                percent = self._percent
                suffix = f", stopped in {stage}" if stage else ", stopped"
            is_brief = self.seconds < self.patience
            self.status_line.end("" if is_brief else self._text(percent, suffix))

    def __call__(self, stage: str, done: int, total: int) -> None:
        self.tell(stage, done, total)
        self._draw_if_due()

    def count(self, evaluations: float) -> None:
        """So many evaluations more are done; the line is drawn anew if it is time."""
        super().count(evaluations)
        self._draw_if_due()

    def _draw_if_due(self) -> None:
        with STREAM_LOCK:
            if self.seconds - self._at >= self._redraw_interval:
                self._draw()

    def note(self, text: str) -> None:
        """A line of its own, above the bar."""
        self.status_line.write(text)

    @property
    def _redraw_interval(self) -> float:
        """Seconds until it is drawn again."""
        if self._at < self.patience:
            return self.patience
        if self.status_line.live:
            return REDRAW_SECONDS
        return max(LOG_SECONDS, self._at / LOG_LINES_PER_DOUBLING)

    @property
    def _percent(self) -> int:
        """In per cent; all is done when the end has come, not before."""
        return min(99, int(100 * self.share))

    def _draw(self) -> None:
        self._at = self.seconds
        suffix, stage = "", self.stage
        seconds_left = self.seconds_left()
        if seconds_left is not None and self._at >= MIN_ETA_SECONDS:
            suffix = f", {format_duration(max(1.0, seconds_left))} left"
        if stage and stage != self.name:
            suffix += f"  {stage}"
        text = self._text(self._percent, suffix)
        if self.status_line.live:
            self.status_line.draw(text)
        else:
            self.status_line.write(text)

    def _text(self, percent: int, suffix: str) -> str:
        filled, empty = BAR_CHARACTERS
        if not self.status_line.can_encode(filled + empty):
            filled, empty = ASCII_BAR_CHARACTERS
        seconds = format_duration(self.seconds, tenths=True)
        width = self.width
        if self.status_line.live:
            room = self.status_line.columns - len(self.name) - TEXT_COLUMNS
            width = min(width, max(5, room))
        n_filled = width * percent // 100
        bar = filled * n_filled + empty * (width - n_filled)
        return f"{self.name} {bar} {percent:3d} %  {seconds}{suffix}"


class PassBars:
    """A hook of engines with a bar for each pass, where no call has one for all."""

    def __init__(self) -> None:
        self._bar: Bar | None = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        if self._bar is None or done == 0:
            self._end()  # of a pass that failed
            self._bar = Bar(name=stage).__enter__()
        self._bar(stage, done, total)
        if done >= total:
            self._end()

    def _end(self) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
        self._bar = None


def format_duration(seconds: float, *, tenths: bool = False) -> str:
    """A time as people say it."""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s" if tenths else f"{seconds:.0f} s"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"
