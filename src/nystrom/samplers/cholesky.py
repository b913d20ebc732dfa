"""Pivoted Cholesky on all rows: pivots at random by what is left, or the largest.

Both need to know what is left of k(x, x) for every row after every pivot, which would
take the whole n × s factor. But what is left only ever falls, so what an earlier pass
found is a bound: few rows need a closer look. Nothing larger than one number per row is
kept, the order of pivots is exactly that of the textbook algorithm, and a new pass is
made only when looking at rows one by one has become the dearer way.
"""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from ..engines import Engine
from ..kernels import Kernel, Pairwise
from ..landmarks import Landmarks
from ..leverage import diagonal
from ..randomness import Purpose, uniforms
from ..sources import Source
from .pivoted import Pivoted
from .pivots import Pivots, rounding_unit
from .recursion import IndefiniteKernelError

#: Rows looked at together: a quarter of the landmarks, within these bounds.
BATCH = (16, 256)
#: Seconds, roughly, for a row of a pass at k pivots and for a row looked at by itself:
#: once, per pivot, and per pivot squared. Only their ratio matters.
PASS_COST = (0.0, 3e-9, 6e-12)
LOOK_COST = (4e-5, 3e-8, 1e-10)


class Bounded(ABC):
    """Pivots chosen by what is left of each row, of which bounds are known."""

    name: str

    def __init__(
        self, kernel: Kernel, source: Source, seed: int, engine: Engine
    ) -> None:
        self.kernel, self.source, self.seed, self.engine = kernel, source, seed, engine
        self.pivots = Pivots(kernel, source)
        self.exhausted = False  # all rows are within rounding of the pivots' span
        self.bounds = self._weighted(diagonal(kernel, source, engine=engine))
        self.pivots.n_evaluations += source.n_rows
        self.in_vain = 0  # rows looked at since the last pass and not taken
        self.n_passes = 0
        self.n_known = 0  # pivots at the last pass
        self.size = 0  # how many pivots there are to be

    def _weighted(self, left: np.ndarray) -> np.ndarray:
        return left if self.source.weights is None else left * self.source.weights

    def grow(self, size: int, left: np.ndarray | None = None) -> None:
        """Pivots until there are `size`, or nothing is left of any row."""
        if left is not None:
            self._know(left)
        n, self.size = self.source.n_rows, size
        batch = int(np.clip(size // 4, *BATCH))
        while len(self.pivots) < size and not self.exhausted:
            if self.in_vain > self._worth_a_pass(batch) or not self.bounds.any():
                self._know(self.pivots.residuals(self.source, self.engine))
                continue
            before = len(self.pivots)
            n_seen = self._look(min(batch, n), size - before)
            self.in_vain += n_seen - (len(self.pivots) - before)
            self.engine.progress("landmarks", len(self.pivots), size)

    def landmarks(self) -> Landmarks:
        """The pivots so far."""
        return self.pivots.landmarks(self.name)

    def _worth_a_pass(self, batch: int) -> float:
        """How many rows looked at in vain cost as much as a pass over all of them."""
        n, k = self.source.n_rows, len(self.pivots)
        if isinstance(self.kernel, Pairwise):  # an evaluation is what counts
            return max(batch, n)
        powers = (1, k, k * k)
        passing, looking = (
            sum(c * p for c, p in zip(costs, powers, strict=True))
            for costs in (PASS_COST, LOOK_COST)
        )
        return max(batch, n * passing / looking)

    def _know(self, left: np.ndarray) -> None:
        """What is left of every row."""
        self.bounds = self._weighted(left)
        self.bounds[self.pivots.indices] = 0.0
        # Not one pivot since the last pass: what seemed to be left was rounding.
        fruitless = self.n_passes > 0 and len(self.pivots) == self.n_known
        self.exhausted = fruitless or not self.bounds.any()
        self.n_known = len(self.pivots)
        self.in_vain = 0
        self.n_passes += 1

    @abstractmethod
    def _look(self, batch: int, size: int) -> int:
        """Make at most `size` of `batch` rows pivots; how many were looked at."""


class _Batch:
    """A few rows looked at together: what is left of them, and pivots among them."""

    def __init__(self, rows: np.ndarray, growth: Bounded) -> None:
        self.rows, self.pivots = rows, growth.pivots
        X = growth.source.take(rows)
        self.F = self.pivots.factor_rows(X)
        self.P = self.pivots.residual_matrix(X, self.F)
        self.left = np.diagonal(self.P).copy()
        whole = self.left + np.vecdot(self.F, self.F)
        unit = rounding_unit(growth.kernel, X, growth.size)
        self.floor = unit * np.abs(whole)
        _refuse_indefinite(self.left, self.floor, growth)
        weights = growth.source.weights
        self.weights = np.ones(len(rows)) if weights is None else weights[rows]
        self.V = np.zeros((len(rows), len(rows)))
        self.taken: list[int] = []

    def weighted_left(self) -> np.ndarray:
        """What is left of each row, as it counts; 0 if that is within rounding."""
        return self.weights * np.where(self.left > self.floor, self.left, 0.0)

    def take(self, j: int) -> None:
        """Make row j a pivot."""
        i = len(self.taken)
        column = self.P[:, j] - self.V[:, :i] @ self.V[j, :i]
        if column[j] > self.floor[j]:
            self.V[:, i] = column / np.sqrt(column[j])
            self.left -= self.V[:, i] ** 2
            self.taken.append(j)
        self.left[j] = 0.0

    def close(self) -> None:
        """Hand the pivots over."""
        taken = np.array(self.taken, dtype=np.intp)
        corner = np.tril(self.V[taken, : len(taken)])
        self.pivots.extend(self.rows[taken], self.F[taken], corner)


def _refuse_indefinite(left: np.ndarray, floor: np.ndarray, growth: Bounded) -> None:
    # Where the kernel makes no promise, less than nothing must not be left.
    if growth.kernel.psd is None and np.any(left < -100 * len(floor) * floor):
        raise IndefiniteKernelError(0)


class Randomly(Bounded):
    """The next pivot is a row drawn ∝ what is left of it.

    Each row rings at the rate of its bound, and is taken when it rings with probability
    left/bound: of all rows, the next one taken is row i with probability ∝ leftᵢ.
    """

    name = "rpcholesky"

    def _know(self, left: np.ndarray) -> None:
        super()._know(left)
        self._wind()

    def __init__(
        self, kernel: Kernel, source: Source, seed: int, engine: Engine
    ) -> None:
        super().__init__(kernel, source, seed, engine)
        self._wind()

    def _wind(self) -> None:
        u = uniforms(self.seed, Purpose.DRAW, 0, len(self.bounds), round=self.n_passes)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            self.ring = np.where(self.bounds > 0, -np.log1p(-u) / self.bounds, np.inf)
        self.n_rings: dict[int, int] = {}

    def _look(self, batch: int, size: int) -> int:
        rows = _smallest(self.ring, batch)
        if len(rows) == 0:  # every row with anything left has been looked at
            self.bounds[:] = 0.0
            return 0
        # Beyond this, rows outside the batch ring first.
        outside = self.ring[rows].max() if len(rows) == batch else np.inf
        looked = _Batch(rows, self)
        bells = [(float(self.ring[row]), j) for j, row in enumerate(rows)]
        heapq.heapify(bells)
        n_seen = 0
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
                self.ring[row] = time - math.log1p(-clock) / self.bounds[row]
                heapq.heappush(bells, (float(self.ring[row]), j))
        looked.close()
        return n_seen

    def _numbers(self, row: int) -> np.ndarray:
        """Two uniform numbers for this ring of this row."""
        level = self.n_rings.get(row, 0)
        self.n_rings[row] = level + 1
        start, stop = 2 * row, 2 * row + 2
        return uniforms(
            self.seed, Purpose.PROPOSE, start, stop, level=level, round=self.n_passes
        )


class Greedily(Bounded):
    """The next pivot is the row with most left; of equal ones the first."""

    name = "greedy"

    def _look(self, batch: int, size: int) -> int:
        rows = _smallest(-self.bounds, batch + 1)
        rows = rows[self.bounds[rows] > 0]
        outside = self.bounds[rows[-1]] if len(rows) > batch else 0.0
        rows = np.sort(rows[:batch])  # argmax then takes the first of equals
        looked = _Batch(rows, self)
        slack = 10 * looked.weights * looked.floor
        while len(looked.taken) < size:
            left = looked.weighted_left()
            j = int(np.argmax(left))
            # Bounds are rounded too, and equal rows must not seem less than equal.
            if left[j] <= 0 or left[j] + slack[j] < outside:
                break
            looked.take(j)
        self.bounds[rows] = looked.weighted_left()
        looked.close()
        return len(rows)


def _smallest(values: np.ndarray, size: int) -> np.ndarray:
    """Places of the smallest finite values, those first; equals in order of place."""
    size = min(size, len(values))
    limit = np.partition(values, size - 1)[size - 1]
    places = np.flatnonzero((values <= limit) & np.isfinite(values))
    return places[np.argsort(values[places], kind="stable")][:size]


@dataclass(frozen=True)
class RPCholesky(Pivoted):
    """Randomly pivoted Cholesky (Chen, Epperly, Tropp & Webber).

    Each landmark is a row drawn with probability ∝ what the landmarks before it leave
    of k(x, x). A few passes over the rows, by the fall of the error; nothing of size
    n × s is kept.
    """

    name = "rpcholesky"
    growth = Randomly


@dataclass(frozen=True)
class Greedy(Pivoted):
    """Cholesky with complete pivoting: each landmark is the row with most left.

    Deterministic, and good for few landmarks of a smooth kernel; it runs after
    outliers.
    """

    name = "greedy"
    growth = Greedily
