"""Uniform sampling: the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _arrays as arrays
from ..landmarks import Landmarks
from ..randomness import Purpose, race, uniforms
from .choosing import Work
from .draws import as_landmarks, uniformly
from .goal import Size
from .pivoting.growth import Growing
from .pivoting.pivots import Pivots

#: Rows that become pivots together.
BATCH = 128


class InOrder:
    """Pivots in the order of the uniform draw, less rows that earlier ones nearly span.

    A pivot of which little is left multiplies the rounding of all that has more left.
    So rows with less left than the root of rounding are passed over.
    """

    def __init__(self, work: Work) -> None:
        self.pivots = Pivots(work)
        source = work.source
        values = work.kernel.dtype(arrays.widen(source.take(np.arange(1))))
        self.least = arrays.epsilon(values) ** 0.5
        n = source.n_rows
        u = uniforms(work.seed, Purpose.DRAW, 0, n)
        self.order, _ = race(source.weights, u, n)
        self.n_seen = 0

    @property
    def exhausted(self) -> bool:
        """Whether no row is left."""
        return self.n_seen == len(self.order)

    def grow(self, size: int, left: np.ndarray | None = None) -> None:
        """Pivots until there are `size`, or no row is left."""
        while len(self.pivots) < size and not self.exhausted:  # rows are seen once
            n_next = min(BATCH, size - len(self.pivots))
            rows = self.order[self.n_seen : self.n_seen + n_next]
            self.n_seen += len(rows)
            self.pivots.add(rows, least=self.least)


@dataclass(frozen=True)
class Uniform(Growing):
    """Every row with the same chance (∝ its weight, where rows have weights)."""

    name = "uniform"
    growth = InOrder
    needs_psd = False
    in_order = False

    def choose(self, work: Work, goal: Any) -> Landmarks:
        if isinstance(goal, Size):  # as they come: nothing to evaluate
            drawn = uniformly(work.source, goal.n_landmarks, work.seed)
            return as_landmarks(drawn, work.kernel, work.source, self.name)
        return super().choose(work, goal)
