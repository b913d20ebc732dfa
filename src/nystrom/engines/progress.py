"""`verbose=1`: one progress bar over all of a call, with the estimated time left.

Work is counted in kernel evaluations: engines report the tiles of each pass, the ledger
of a sampler what it evaluates besides.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TextIO

from .base import TILE
from .status_line import STREAM_LOCK, StatusLine

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
    clock : callable
        Seconds.
    """

    def __init__(
        self,
        passes: float = 1.0,
        selections: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.passes, self.selections = passes, selections
        self.clock, self.started = clock, clock()
        self.share, self.done, self.expected = 0.0, 0.0, 0.0
        self.stage = ""
        self._pass_size = self._pass_done = 0.0  # evaluations of the pass at work

    @property
    def seconds(self) -> float:
        """Since the call began."""
        return self.clock() - self.started

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


#: Seconds between two drawings of the line; and between two lines of a log, which grows
#: by no more than so many lines while the time doubles.
REDRAW_SECONDS, LOG_SECONDS, LOG_LINES_PER_DOUBLING = 0.1, 5.0, 5
#: Seconds before the remaining time is shown: sooner it would be a guess.
MIN_ETA_SECONDS = 1.0
#: Characters of the bar: done, ahead; and where a stream has none of these.
BAR_CHARACTERS, ASCII_BAR_CHARACTERS = ("█", "·"), ("#", ".")
#: Room beside the name and the bar: per cent, times, and the name of a stage.
TEXT_COLUMNS = 46


class Bar:
    """One line for the whole of a call, as a context; it is a hook of engines.

    On a terminal or in a notebook the line is drawn over itself. A log gets a line
    every few seconds, fewer as time goes by, and one at the end. Where it is a hook
    alone, which nobody begins or ends, each pass is a whole.

    Parameters
    ----------
    stream : text file or None
        Where it is written; None is standard error.
    width : int
        Of the bar, in characters, where there is room.
    name : str
        What the call is called.
    patience : float
        A call that takes fewer seconds shows nothing.
    passes, selections : float, int
        The work of the call: see `WorkEstimate`.
    """

    stream: TextIO | None
    width: int
    name: str
    patience: float
    estimate: WorkEstimate
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
        self.stream, self.width, self.name = stream, width, name
        self.patience, self.passes, self.selections = patience, passes, selections
        self.estimate = WorkEstimate(passes, selections)
        self.status_line = StatusLine(stream)
        self._bar_per_pass, self._is_active = True, False
        self._at = 0.0  # seconds when it was drawn

    def __enter__(self) -> Self:
        self._bar_per_pass = False
        self._begin(self.name)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with STREAM_LOCK:
            stage = f" in {self.estimate.stage}" if self.estimate.stage else ""
            if kind is None:
                self._end(100)
            else:
                self._end(self._percent, f", stopped{stage}")

    def __call__(self, stage: str, done: int, total: int) -> None:
        with STREAM_LOCK:
            if self._bar_per_pass and (done == 0 or not self._is_active):
                if self._is_active:  # a pass that did not come to its end
                    self._end(self._percent)
                self._begin(stage)
            self.estimate.tell(stage, done, total)
            if self._bar_per_pass and done >= total:
                self._end(100)
            else:
                self._draw_if_due()

    def begin_pass(self, stage: str, evaluations: float) -> None:
        """A pass of so many kernel evaluations begins: see `WorkEstimate`."""
        with STREAM_LOCK:
            self.estimate.begin_pass(stage, evaluations)

    def expect(self, selection: float, per_pass: float) -> None:
        """What a selection of landmarks and each later pass evaluate."""
        with STREAM_LOCK:
            self.estimate.expect(selection, per_pass)

    def count(self, evaluations: float) -> None:
        """So many kernel evaluations more, outside of passes."""
        with STREAM_LOCK:
            if self._is_active and not self._bar_per_pass:
                self.estimate.count(evaluations)
                self._draw_if_due()

    def note(self, text: str) -> None:
        """A line of its own, above the bar."""
        self.status_line.write(text)

    def _begin(self, name: str) -> None:
        self.name, self._at, self._is_active = name, 0.0, True
        self.estimate = WorkEstimate(self.passes, self.selections)
        self.status_line = StatusLine(self.stream)
        self.status_line.begin()
        if self.status_line.live and not self.patience:
            self._draw()

    def _end(self, percent: int, suffix: str = "") -> None:
        is_brief = self.estimate.seconds < self.patience
        self.status_line.end("" if is_brief else self._text(percent, suffix))
        self._is_active = False

    def _draw_if_due(self) -> None:
        if self.estimate.seconds - self._at >= self._redraw_interval:
            self._draw()

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
        return min(99, int(100 * self.estimate.share))

    def _draw(self) -> None:
        self._at = self.estimate.seconds
        suffix, stage = "", self.estimate.stage
        seconds_left = self.estimate.seconds_left()
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
        seconds = format_duration(self.estimate.seconds, tenths=True)
        width = self.width
        if self.status_line.live:
            room = self.status_line.columns - len(self.name) - TEXT_COLUMNS
            width = min(width, max(5, room))
        n_filled = width * percent // 100
        bar = filled * n_filled + empty * (width - n_filled)
        return f"{self.name} {bar} {percent:3d} %  {seconds}{suffix}"


def format_duration(seconds: float, *, tenths: bool = False) -> str:
    """A time as people say it."""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s" if tenths else f"{seconds:.0f} s"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"


def time_call(func: Callable[[], Any]) -> tuple[Any, float]:
    """What it returns, and the seconds that it took."""
    started = time.perf_counter()
    result = func()
    return result, time.perf_counter() - started
