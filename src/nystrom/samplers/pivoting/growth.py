"""What samplers have in common whose landmarks come one after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Protocol

from sklearn import get_config

from ...engines.progress import parts
from ...kernels import Remembered
from ...landmarks import Landmarks
from ...sources import RowNumbers
from ..choosing import Sampler, Work
from ..goal import MaxTraceError, Size
from .pivots import Pivots
from .until import until


class Growth(Protocol):
    """Landmarks in a sampler's own order, as many as asked for, and more later."""

    pivots: Pivots

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left of any row."""

    def grow(self, size: int) -> None:
        """Go on until there are `size`."""

    def error(self, size: int) -> float:
        """tr(K − K̃) by a pass over all rows, before going on until there are `size`.

        What it shows may be what the next ones are chosen by.
        """


class Growing(Sampler):
    """A sampler that grows: `growth(work)` makes a `Growth`."""

    takes: ClassVar[tuple[type, ...]] = (Size, MaxTraceError)
    in_order = True
    growth: ClassVar[Callable[..., Growth]]

    def choose(self, work: Work, goal: Any) -> Landmarks:
        if isinstance(goal, Size):
            beginning, growing = parts(work.engine.progress, 0.02, 1.0)
            with beginning:
                growth = type(self).growth(work)
            with growing:
                growth.grow(goal.n_landmarks)
            growth.pivots.fill(goal.n_landmarks)
            return growth.pivots.landmarks(self.name)
        if work.kernel.traits.costly and _fits(work.source.n_rows):
            return self._on_remembered(work, goal)
        return until(type(self).growth, work, goal, self.name)

    def _on_remembered(self, work: Work, goal: MaxTraceError) -> Landmarks:
        """No pair of rows twice, where an evaluation is dearer than looking it up."""
        rows = work.source.rows(0, work.source.n_rows)
        kernel = Remembered(work.kernel, rows)
        weights = work.source.weights if work.source.is_weighted else None
        on_numbers = replace(
            work, kernel=kernel, source=RowNumbers(work.source.n_rows, weights)
        )
        before = work.ledger.n_evaluations
        try:
            chosen = until(type(self).growth, on_numbers, goal, self.name)
        finally:
            work.ledger.n_evaluations = before + kernel.n_evaluations
        assert chosen.indices is not None
        points = work.source.take(chosen.indices)
        return chosen.updated(kernel=work.kernel, points=points)


def _fits(n_rows: int) -> bool:
    return 8 * n_rows**2 <= get_config()["working_memory"] * 2**20
