"""Pivoted Cholesky on all rows with lazily updated residuals: greedy and RPCholesky.

Residuals only fall, so those of an earlier pass are upper bounds and few rows have
to be updated. The order of pivots is that of the textbook algorithm; memory is one
number per row.
"""

from __future__ import annotations

import heapq
import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from .. import _arrays as arrays
from .._random import Purpose, uniforms
from .._validation import check_finite
from ..linalg.cross_kernel import kernel_diagonal
from ..sources.base import multiply_weights, weighted_sum
from .base import IndefiniteKernelError
from .pivoting import GrowingSampler

#: Rows evaluated together: a quarter of the landmarks, within these bounds.
BATCH_ROWS_RANGE = (16, 256)
#: Seconds, roughly, for a row of a pass at k pivots and for a row of a batch:
#: once, per pivot, and per pivot squared. Only their ratio matters.
PASS_SECONDS_PER_ROW = (0.0, 3e-9, 6e-12)
BATCH_SECONDS_PER_ROW = (4e-5, 3e-8, 1e-10)


class LazySampler(GrowingSampler):
    """Pivots selected by the residual of each row, of which bounds are known."""

    def _set_up(self) -> None:
        problem, self.source = self.problem, self.problem.source
        kxx = kernel_diagonal(problem.kernel, problem.source, engine=problem.engine)
        self.bounds = self._weighted(kxx)
        problem.ledger.count_evaluations(self.source.n_rows)
        self.n_rejected = 0  # rows of batches since the last pass
        self.n_passes = 0
        self.n_pivots_at_pass = 0  # pivots at the last pass
        self.size = 0  # how many pivots there are to be

    def _weighted(self, residual: np.ndarray) -> np.ndarray:
        bounds = multiply_weights(self.source.weights, residual)
        check_finite(bounds)  # a row of infinite rate would be drawn for ever
        return bounds

    def error(self, size: int) -> float:
        """Compute tr(K − K̃) by a pass over all rows, before growing to `size`.

        Parameters
        ----------
        size : int
            Number of pivots to come.

        Returns
        -------
        error : float
            The trace error.
        """
        name = f"trace error at {len(self.pivots)} landmarks"
        residual = self.pivots.residuals(self.source, name)
        self._set_bounds(residual)
        return weighted_sum(self.source.weights, residual)

    def grow(self, size: int) -> None:
        """Add pivots until there are `size`, or every residual is rounding.

        Parameters
        ----------
        size : int
            Number of pivots.
        """
        n, self.size = self.source.n_rows, size
        batch = int(np.clip(size // 4, *BATCH_ROWS_RANGE))
        # Ends: a look has pivots or rows seen in vain, and enough of these are a pass;
        # two passes without a pivot between them leave nothing.
        while len(self.pivots) < size and not self.exhausted:
            if self.n_rejected > self._max_rejected(batch) or not self.bounds.any():
                self._set_bounds(self.pivots.residuals(self.source))
                continue
            n_before = len(self.pivots)
            n_processed = self._process_batch(min(batch, n), size - n_before)
            self.n_rejected += n_processed - (len(self.pivots) - n_before)

    def _max_rejected(self, batch: int) -> float:
        """How many rejected rows cost as much as a pass over all rows."""
        n, k = self.source.n_rows, len(self.pivots)
        if self.problem.kernel.traits.costly:  # an evaluation is what counts
            return max(batch, n)
        powers = (1, k, k * k)
        pass_seconds, batch_seconds = (
            sum(c * p for c, p in zip(costs, powers, strict=True))
            for costs in (PASS_SECONDS_PER_ROW, BATCH_SECONDS_PER_ROW)
        )
        return max(batch, n * pass_seconds / batch_seconds)

    def _set_bounds(self, residual: np.ndarray) -> None:
        """Bounds from the residual of every row."""
        self.bounds = self._weighted(residual)
        self.bounds[self.pivots.indices] = 0.0
        # Not one pivot since the last pass: the residuals were rounding.
        fruitless = self.n_passes > 0 and len(self.pivots) == self.n_pivots_at_pass
        self.exhausted = fruitless or not self.bounds.any()
        self.n_pivots_at_pass = len(self.pivots)
        self.n_rejected = 0
        self.n_passes += 1

    @abstractmethod
    def _process_batch(self, batch: int, size: int) -> int:
        """Make at most `size` of `batch` rows pivots; how many were evaluated."""


class PivotBatch:
    """A few rows evaluated together: their residuals, and pivots among them."""

    def __init__(self, rows: np.ndarray, grower: LazySampler) -> None:
        self.rows, self.pivots = rows, grower.pivots
        self.X = X = grower.source.take(rows)
        self.F, self.P, self.floor = self.pivots.evaluate(X, grower.size)
        self.residual = np.diagonal(self.P).copy()
        # Where the kernel makes no promise, residuals must not be negative.
        if grower.problem.kernel.traits.psd is None and np.any(
            self.residual < -100 * len(rows) * self.floor
        ):
            raise IndefiniteKernelError
        self.weights = grower.source.weights_of(rows)
        self.V = np.zeros((len(rows), len(rows)))
        self.selected: list[int] = []

    def weighted_residuals(self) -> np.ndarray:
        """Weight times residual of each row; 0 if that is within rounding."""
        return self.weights * np.where(self.residual > self.floor, self.residual, 0.0)

    def add_pivot(self, j: int) -> None:
        """Make row j a pivot."""
        i = len(self.selected)
        column = self.P[:, j] - self.V[:, :i] @ self.V[j, :i]
        if column[j] > self.floor[j]:
            self.V[:, i] = column / np.sqrt(column[j])
            self.residual -= self.V[:, i] ** 2
            self.selected.append(j)
        self.residual[j] = 0.0

    def hand_over(self) -> None:
        """Hand the pivots over."""
        selected = np.array(self.selected, dtype=np.intp)
        corner = np.tril(self.V[selected, : len(selected)])
        X = arrays.take_rows(self.X, selected)
        self.pivots.extend(self.rows[selected], X, self.F[selected], corner)


def argsmallest(values: np.ndarray, size: int) -> np.ndarray:
    """Places of the smallest finite values, those first; equals in order of place."""
    size = min(size, len(values))
    limit = np.partition(values, size - 1)[size - 1]
    places = np.flatnonzero((values <= limit) & np.isfinite(values))
    return places[np.argsort(values[places], kind="stable")][:size]


@dataclass(unsafe_hash=True)
class Greedy(LazySampler):
    """Pivoted Cholesky: each landmark has the largest residual.

    Deterministic, and good for few landmarks of a smooth kernel. It selects outliers
    first.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import samplers, select_landmarks
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> options = {"n_landmarks": 20, "random_state": 0}
    >>> chosen = select_landmarks(X, sampler=samplers.Greedy(), **options)
    >>> len(chosen), chosen.sampler
    (20, 'greedy')
    """

    name = "greedy"

    def _process_batch(self, batch: int, size: int) -> int:
        rows = argsmallest(-self.bounds, batch + 1)
        rows = rows[self.bounds[rows] > 0]
        if len(rows) == 0:  # only of a kernel that is not definite
            self.bounds[:] = 0.0
            return 0
        outside_bound = self.bounds[rows[-1]] if len(rows) > batch else 0.0
        rows = np.sort(rows[:batch])  # argmax then takes the first of equals
        pivot_batch = PivotBatch(rows, self)
        slack = 10 * pivot_batch.weights * pivot_batch.floor
        # At most once for each row of the batch.
        while len(pivot_batch.selected) < size:
            residuals = pivot_batch.weighted_residuals()
            j = int(np.argmax(residuals))
            # Bounds are rounded too, and equal rows must not seem less than equal.
            if residuals[j] <= 0 or residuals[j] + slack[j] < outside_bound:
                break
            pivot_batch.add_pivot(j)
        self.bounds[rows] = pivot_batch.weighted_residuals()
        pivot_batch.hand_over()
        return len(rows)


#: A row that was rejected so often since the last pass has its residual as rate from
#: then on.
MAX_REJECTIONS = 1000


@dataclass(unsafe_hash=True)
class RPCholesky(LazySampler):
    """Randomly pivoted Cholesky (Chen, Epperly, Tropp & Webber).

    Each landmark is drawn with probability proportional to its residual, the part of
    k(x, x) that earlier landmarks do not explain. It makes a few passes over the rows
    and stores nothing of size n × s.

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

    # Rows are proposed by exponential clocks at the rate of their bound, and accepted
    # with probability residual/bound: the next row accepted is row i with probability
    # ∝ residualᵢ. Clocks have no memory: a bound may fall to the residual at any time.

    def _set_up(self) -> None:
        super()._set_up()
        self._reset_clocks()

    def _set_bounds(self, residual: np.ndarray) -> None:
        super()._set_bounds(residual)
        self._reset_clocks()

    def _reset_clocks(self) -> None:
        u = uniforms(
            self.problem.seed, Purpose.DRAW, 0, len(self.bounds), round=self.n_passes
        )
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            self.arrival_times = np.where(
                self.bounds > 0, -np.log1p(-u) / self.bounds, np.inf
            )
        self.n_arrivals: dict[int, int] = {}

    def _process_batch(self, batch: int, size: int) -> int:
        rows = argsmallest(self.arrival_times, batch)
        if len(rows) == 0:  # every row with a residual has been evaluated
            self.bounds[:] = 0.0
            return 0
        # Beyond this, rows outside the batch are proposed first.
        outside_time = self.arrival_times[rows].max() if len(rows) == batch else np.inf
        pivot_batch = PivotBatch(rows, self)
        clocks = [(float(self.arrival_times[row]), j) for j, row in enumerate(rows)]
        heapq.heapify(clocks)
        n_processed = 0
        # Ends: a row is rejected at most once for each pivot of the batch.
        while (
            clocks and len(pivot_batch.selected) < size and clocks[0][0] <= outside_time
        ):
            time, j = heapq.heappop(clocks)
            row, n_processed = int(rows[j]), n_processed + 1
            residual = pivot_batch.weighted_residuals()[j]
            n_proposed = self.n_arrivals.get(row, 0)
            self.n_arrivals[row] = n_proposed + 1
            accept_uniform, clock_uniform = uniforms(
                self.problem.seed,
                Purpose.PROPOSE,
                2 * row,
                2 * row + 2,
                level=n_proposed,
                round=self.n_passes,
            )
            if residual > 0 and accept_uniform * self.bounds[row] < residual:
                pivot_batch.add_pivot(j)
                self.arrival_times[row] = np.inf
            elif residual == 0:
                self.arrival_times[row] = np.inf  # for good: nothing can come back
            else:
                if self.n_arrivals[row] > MAX_REJECTIONS:
                    self.bounds[row] = residual
                self.arrival_times[row] = time - math.log1p(-clock_uniform) / float(
                    self.bounds[row]
                )
                heapq.heappush(clocks, (float(self.arrival_times[row]), j))
        pivot_batch.hand_over()
        return n_processed
