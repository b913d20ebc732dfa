"""`verbose=1`: one bar over all of a fit, with the time left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import TracebackType
from typing import Self, TextIO

from .course import Course
from .line import WRITING, Line

#: Seconds between two drawings of the line; and between two lines of a log, which grows
#: by no more than so many lines while the time doubles.
EACH, EACH_IN_LOG, LINES_IN_LOG = 0.1, 5.0, 5
#: Seconds before the time left is told: sooner it would be a guess.
TELLING = 1.0
#: Characters of the bar: done, ahead; and where a stream has none of these.
BLOCKS, PLAIN = ("█", "·"), ("#", ".")
#: Room beside the name and the bar: per cent, times, and the name of a stage.
WORDS = 46


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
    course: Course | None
    line: Line

    def __init__(
        self,
        stream: TextIO | None = None,
        width: int = 30,
        name: str = "",
        patience: float = 0.0,
    ) -> None:
        self.stream, self.width, self.name = stream, width, name
        self.patience = patience
        self.course = None
        self.line = Line(stream)
        self._each_pass = True
        self._at = 0.0  # seconds when it was drawn

    def __enter__(self) -> Self:
        self._each_pass = False
        self._begin(self.name)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with WRITING:
            assert self.course is not None
            stage = f" in {self.course.stage}" if self.course.stage else ""
            if kind is None:
                self._end(100)
            else:
                self._end(self._share, f", stopped{stage}")

    def __call__(self, stage: str, done: int, total: int) -> None:
        with WRITING:
            if self._each_pass and (self.course is None or done == 0):
                if self.course is not None:  # a pass that did not come to its end
                    self._end(self._share)
                self._begin(stage)
            assert self.course is not None
            self.course.tell(stage, done, total)
            if self._each_pass and done >= total:
                self._end(100)
            elif self.course.seconds - self._at >= self._pause:
                self._draw()

    @contextmanager
    def part(self, share: float) -> Iterator[None]:
        """So much of what is left of the work: see `Course`."""
        with nullcontext() if self.course is None else self.course.part(share):
            yield

    def expect(self, passes: float, *, about: bool = False) -> None:
        """So many passes are ahead: see `Course`."""
        with WRITING:
            if self.course is not None:
                self.course.expect(passes, about=about)

    def note(self, text: str) -> None:
        """A line of its own, above the bar."""
        self.line.write(text)

    def _begin(self, name: str) -> None:
        self.name, self.course, self._at = name, Course(), 0.0
        self.line = Line(self.stream)
        self.line.begin()
        if self.line.live and not self.patience:
            self._draw()

    def _end(self, share: int, after: str = "") -> None:
        assert self.course is not None
        brief = self.course.seconds < self.patience
        self.line.end("" if brief else self._text(share, after))
        self.course = None

    @property
    def _pause(self) -> float:
        """Seconds until it is drawn again."""
        assert self.course is not None
        if self._at < self.patience:
            return self.patience
        if self.line.live:
            return EACH
        return max(EACH_IN_LOG, self._at / LINES_IN_LOG)

    @property
    def _share(self) -> int:
        """In per cent; all is done when the end has come, not before."""
        assert self.course is not None
        return min(99, int(100 * self.course.share))

    def _draw(self) -> None:
        assert self.course is not None
        self._at = self.course.seconds
        left = self.course.left() if self._at >= TELLING else None
        told = "" if left is None else f", {lasting(max(1.0, left))} left"
        stage = self.course.stage
        named = f"  {stage}" if stage and stage != self.name else ""
        text = self._text(self._share, told + named)
        if self.line.live:
            self.line.draw(text)
        else:
            self.line.write(text)

    def _text(self, share: int, after: str) -> str:
        assert self.course is not None
        done, ahead = BLOCKS if self.line.shows("".join(BLOCKS)) else PLAIN
        seconds = lasting(self.course.seconds, tenths=True)
        width = self.width
        if self.line.live:
            width = min(width, max(5, self.line.columns - len(self.name) - WORDS))
        full = width * share // 100
        bar = done * full + ahead * (width - full)
        return f"{self.name} {bar} {share:3d} %  {seconds}{after}"


def lasting(seconds: float, *, tenths: bool = False) -> str:
    """A time as people say it."""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s" if tenths else f"{seconds:.0f} s"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"
