"""How far a piece of work has come: a share of the whole, and the seconds left.

Whoever knows what is ahead divides the work into parts, and these into parts, each so
large a share of what was left. In the innermost part passes follow each other, as many
as are expected there. More of them may come than that: then the share waits and the
time left grows, but the share never falls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Passes of a part that nobody has planned; and where their number is but a guess, for
#: how much longer they go on, as a share of those made.
UNPLANNED, GOING_ON = 10.0, 0.5
#: Seconds in a part before its own speed is believed.
TRUSTED = 0.5


class Course:
    """The share of the work that is done, from 0 to 1, by what its stages tell."""

    clock: Callable[[], float]
    begun: float
    share: float
    stage: str

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock, self.begun = clock, clock()
        self.share = 0.0
        self.stage = ""
        self._parts = [_Part(0.0, 1.0, self.begun)]  # the innermost is the last

    @property
    def seconds(self) -> float:
        """Since it was begun."""
        return self.clock() - self.begun

    @contextmanager
    def part(self, share: float) -> Iterator[None]:
        """What is told in here is so much of what is left of the part around it."""
        around = self._parts[-1]
        begin = around.at
        end = begin + share * (around.end - begin)
        self._parts.append(_Part(begin, end, self.clock()))
        try:
            yield
        finally:
            self._parts.pop()
        around.reset(end, self.clock())  # not where it failed: it stays where it was
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
        if part.passing and (stage != self.stage or done == 0):
            part.finished += 1
        part.passing, self.stage = True, stage
        part.fraction = 1.0 if total == 0 else min(1.0, done / total)
        part.move()
        self.share = max(self.share, part.at)

    def left(self) -> float | None:
        """Seconds until the end, as far as it is known; None before anything is."""
        if self.share == 0.0:
            return None
        now, part = self.clock(), self._parts[-1]
        per_share = (now - self.begun) / self.share
        rest = (part.end - min(part.end, self.share)) * per_share
        if part.units > 0 and now - part.begun >= TRUSTED:
            rest = (part.all_units - part.units) * (now - part.begun) / part.units
        by_then = now - self.begun + rest
        return rest + (1 - part.end) * by_then / max(part.end, self.share)


class _Part:
    """From one share of the whole to another, in passes that are alike."""

    def __init__(self, begin: float, end: float, now: float) -> None:
        self.end, self.expected, self.about = end, UNPLANNED, True
        self.reset(begin, now)

    def reset(self, at: float, now: float) -> None:
        """Passes are counted from here."""
        self.base = self.at = at
        self.begun = now
        self.finished, self.fraction, self.passing = 0, 0.0, False

    @property
    def units(self) -> float:
        """Passes done, and how much of this one."""
        return self.finished + self.fraction

    @property
    def all_units(self) -> float:
        """Passes in all."""
        made = self.finished + 1.0  # this one is the last, for all that is known …
        if self.about:  # … or it is not
            made += GOING_ON * made
        return max(self.expected, made)

    def move(self) -> None:
        """To where the passes are, never back."""
        there = self.base + (self.end - self.base) * self.units / self.all_units
        self.at = max(self.at, there)
