"""Randomly pivoted Cholesky: the next pivot is drawn by what is left of each row."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...randomness import Purpose, uniforms
from ..choosing import Work
from .bounded import Batch, Bounded, smallest
from .growth import Growing, Growth

#: A row that has rung in vain so often since the last pass rings at the rate of what is
#: left of it from then on.
PATIENCE = 1000


class Randomly(Bounded):
    """The next pivot is a row drawn ∝ what is left of it.

    Each row rings at the rate of its bound, and is taken when it rings with probability
    left/bound: of all rows, the next one taken is row i with probability ∝ leftᵢ.
    Clocks have no memory: a bound may come down to what is left after any ring.
    """

    def __init__(self, work: Work) -> None:
        super().__init__(work)
        self._wind()

    def _know(self, left: np.ndarray) -> None:
        super()._know(left)
        self._wind()

    def _wind(self) -> None:
        u = uniforms(
            self.work.seed, Purpose.DRAW, 0, len(self.bounds), round=self.n_passes
        )
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            self.ring = np.where(self.bounds > 0, -np.log1p(-u) / self.bounds, np.inf)
        self.n_rings: dict[int, int] = {}

    def _look(self, batch: int, size: int) -> int:
        rows = smallest(self.ring, batch)
        if len(rows) == 0:  # every row with anything left has been looked at
            self.bounds[:] = 0.0
            return 0
        # Beyond this, rows outside the batch ring first.
        outside = self.ring[rows].max() if len(rows) == batch else np.inf
        looked = Batch(rows, self)
        bells = [(float(self.ring[row]), j) for j, row in enumerate(rows)]
        heapq.heapify(bells)
        n_seen = 0
        # Ends: an impatient row rings in vain at most once for each pivot taken here.
        while bells and len(looked.taken) < size and bells[0][0] <= outside:
            time, j = heapq.heappop(bells)
            row, n_seen = int(rows[j]), n_seen + 1
            left = looked.weighted_left()[j]
            coin, clock = self._numbers(row)
            if left > 0 and coin * self.bounds[row] < left:
                looked.take(j)
                self.ring[row] = np.inf
            elif left == 0:
                self.ring[row] = np.inf  # for good: nothing can come back
            else:
                if self.n_rings[row] > PATIENCE:
                    self.bounds[row] = left
                self.ring[row] = time - math.log1p(-clock) / float(self.bounds[row])
                heapq.heappush(bells, (float(self.ring[row]), j))
        looked.close()
        return n_seen

    def _numbers(self, row: int) -> np.ndarray:
        """Two uniform numbers for this ring of this row."""
        level = self.n_rings.get(row, 0)
        self.n_rings[row] = level + 1
        start, stop = 2 * row, 2 * row + 2
        return uniforms(
            self.work.seed,
            Purpose.PROPOSE,
            start,
            stop,
            level=level,
            round=self.n_passes,
        )


@dataclass(frozen=True)
class RPCholesky(Growing):
    """Randomly pivoted Cholesky (Chen, Epperly, Tropp & Webber).

    Each landmark is a row drawn with probability ∝ what the landmarks before it leave
    of k(x, x). A few passes over the rows, by the fall of the error; nothing of size
    n × s is kept.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import samplers, select_landmarks
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> options = {"n_landmarks": 20, "random_state": 0}
    >>> chosen = select_landmarks(X, sampler=samplers.RPCholesky(), **options)
    >>> len(chosen), chosen.sampler
    (20, 'rpcholesky')
    """

    name = "rpcholesky"
    growth: ClassVar[Callable[..., Growth]] = Randomly
