"""`verbose=1`: one progress bar over all of a call, with the estimated time left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import TracebackType
from typing import Any, Self, TextIO

from .status_line import STREAM_LOCK, StatusLine

#: Passes of a part that nobody has planned; and where their number is but a guess, for
#: how much longer they go on, as a share of those made.
DEFAULT_EXPECTED_PASSES, EXTRA_PASSES_SHARE = 10.0, 0.5
#: Seconds in a part before its own speed is believed.
MIN_RATE_SECONDS = 0.5


class ProgressEstimate:
    """The share of the work that is done, from 0 to 1, by what its stages tell."""

    clock: Callable[[], float]
    begun: float
    share: float
    stage: str

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock, self.begun = clock, clock()
        self.share = 0.0
        self.stage = ""
        self._parts = [_ProgressPart(0.0, 1.0, self.begun)]  # the innermost is the last

    @property
    def seconds(self) -> float:
        """Since it was begun."""
        return self.clock() - self.begun

    @contextmanager
    def part(self, share: float) -> Iterator[None]:
        """What is told in here is so much of what is left of the part around it."""
        parent = self._parts[-1]
        begin = parent.at
        end = begin + share * (parent.end - begin)
        self._parts.append(_ProgressPart(begin, end, self.clock()))
        try:
            yield
        finally:
            self._parts.pop()
        parent.reset(end, self.clock())  # not where it failed: it stays where it was
        self.share = max(self.share, end)

    def expect(self, passes: float, *, about: bool = False) -> None:
        """So many passes are ahead in this part, as long as each other.

        There are no more, unless the number is no more than a guess.
        """
        part = self._parts[-1]
        part.reset(part.at, self.clock())
        part.expected, part.about = passes, about

    def tell(self, stage: str, done: int, total: int) -> None:
        """A stage is so far; a stage of another name, or one at 0, is a new pass."""
        part = self._parts[-1]
        if part.in_pass and (stage != self.stage or done == 0):
            part.n_finished += 1
        part.in_pass, self.stage = True, stage
        part.pass_fraction = 1.0 if total == 0 else min(1.0, done / total)
        part.advance()
        self.share = max(self.share, part.at)

    def left(self) -> float | None:
        """Seconds until the end, as far as it is known; None before anything is."""
        if self.share == 0.0:
            return None
        now, part = self.clock(), self._parts[-1]
        per_share = (now - self.begun) / self.share
        part_seconds = (part.end - min(part.end, self.share)) * per_share
        if part.units > 0 and now - part.begun >= MIN_RATE_SECONDS:
            part_seconds = (
                (part.expected_units - part.units) * (now - part.begun) / part.units
            )
        elapsed_then = now - self.begun + part_seconds
        return part_seconds + (1 - part.end) * elapsed_then / max(part.end, self.share)


class _ProgressPart:
    """From one share of the whole to another, in passes that are alike."""

    def __init__(self, begin: float, end: float, now: float) -> None:
        self.end, self.expected, self.about = end, DEFAULT_EXPECTED_PASSES, True
        self.reset(begin, now)

    def reset(self, at: float, now: float) -> None:
        """Passes are counted from here."""
        self.base = self.at = at
        self.begun = now
        self.n_finished, self.pass_fraction, self.in_pass = 0, 0.0, False

    @property
    def units(self) -> float:
        """Passes done, and how much of this one."""
        return self.n_finished + self.pass_fraction

    @property
    def expected_units(self) -> float:
        """Passes in all."""
        n_passes = (
            self.n_finished + 1.0
        )  # this one is the last, for all that is known …
        if self.about:  # … or it is not
            n_passes += EXTRA_PASSES_SHARE * n_passes
        return max(self.expected, n_passes)

    def advance(self) -> None:
        """To where the passes are, never back."""
        position = self.base + (self.end - self.base) * self.units / self.expected_units
        self.at = max(self.at, position)


#: Seconds between two drawings of the line; and between two lines of a log, which grows
#: by no more than so many lines while the time doubles.
REDRAW_SECONDS, LOG_SECONDS, LOG_LINES_PER_DOUBLING = 0.1, 5.0, 5
#: Seconds before the time left is told: sooner it would be a guess.
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
    """

    stream: TextIO | None
    width: int
    name: str
    patience: float
    estimate: ProgressEstimate | None
    status_line: StatusLine

    def __init__(
        self,
        stream: TextIO | None = None,
        width: int = 30,
        name: str = "",
        patience: float = 0.0,
    ) -> None:
        self.stream, self.width, self.name = stream, width, name
        self.patience = patience
        self.estimate = None
        self.status_line = StatusLine(stream)
        self._bar_per_pass = True
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
            assert self.estimate is not None
            stage = f" in {self.estimate.stage}" if self.estimate.stage else ""
            if kind is None:
                self._end(100)
            else:
                self._end(self._percent, f", stopped{stage}")

    def __call__(self, stage: str, done: int, total: int) -> None:
        with STREAM_LOCK:
            if self._bar_per_pass and (self.estimate is None or done == 0):
                if self.estimate is not None:  # a pass that did not come to its end
                    self._end(self._percent)
                self._begin(stage)
            assert self.estimate is not None
            self.estimate.tell(stage, done, total)
            if self._bar_per_pass and done >= total:
                self._end(100)
            elif self.estimate.seconds - self._at >= self._redraw_interval:
                self._draw()

    @contextmanager
    def part(self, share: float) -> Iterator[None]:
        """So much of what is left of the work: see `Course`."""
        with nullcontext() if self.estimate is None else self.estimate.part(share):
            yield

    def expect(self, passes: float, *, about: bool = False) -> None:
        """So many passes are ahead: see `Course`."""
        with STREAM_LOCK:
            if self.estimate is not None:
                self.estimate.expect(passes, about=about)

    def note(self, text: str) -> None:
        """A line of its own, above the bar."""
        self.status_line.write(text)

    def _begin(self, name: str) -> None:
        self.name, self.estimate, self._at = name, ProgressEstimate(), 0.0
        self.status_line = StatusLine(self.stream)
        self.status_line.begin()
        if self.status_line.live and not self.patience:
            self._draw()

    def _end(self, percent: int, suffix: str = "") -> None:
        assert self.estimate is not None
        is_brief = self.estimate.seconds < self.patience
        self.status_line.end("" if is_brief else self._text(percent, suffix))
        self.estimate = None

    @property
    def _redraw_interval(self) -> float:
        """Seconds until it is drawn again."""
        assert self.estimate is not None
        if self._at < self.patience:
            return self.patience
        if self.status_line.live:
            return REDRAW_SECONDS
        return max(LOG_SECONDS, self._at / LOG_LINES_PER_DOUBLING)

    @property
    def _percent(self) -> int:
        """In per cent; all is done when the end has come, not before."""
        assert self.estimate is not None
        return min(99, int(100 * self.estimate.share))

    def _draw(self) -> None:
        assert self.estimate is not None
        self._at = self.estimate.seconds
        seconds_left = self.estimate.left() if self._at >= MIN_ETA_SECONDS else None
        eta = (
            ""
            if seconds_left is None
            else f", {format_duration(max(1.0, seconds_left))} left"
        )
        stage = self.estimate.stage
        stage_name = f"  {stage}" if stage and stage != self.name else ""
        text = self._text(self._percent, eta + stage_name)
        if self.status_line.live:
            self.status_line.draw(text)
        else:
            self.status_line.write(text)

    def _text(self, percent: int, suffix: str) -> str:
        assert self.estimate is not None
        filled, empty = (
            BAR_CHARACTERS
            if self.status_line.can_encode("".join(BAR_CHARACTERS))
            else ASCII_BAR_CHARACTERS
        )
        seconds = format_duration(self.estimate.seconds, tenths=True)
        width = self.width
        if self.status_line.live:
            width = min(
                width, max(5, self.status_line.columns - len(self.name) - TEXT_COLUMNS)
            )
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
