"""Landmarks as pivots of a Cholesky factorisation: growth to a trace error, and the
samplers uniform, greedy and RPCholesky.

`Pivots` holds the rows selected so far with their factor. A sampler that selects one
pivot after the other can double its set until tr(K − K̃) ≤ tolerance·tr K, and keep
the shortest prefix that reaches it.

Greedy and RPCholesky update residuals lazily. Residuals only fall, so those of an
earlier pass are upper bounds and few rows have to be updated. The order of pivots is
that of the textbook algorithm; memory is one number per row.
"""

from __future__ import annotations

import heapq
import math
from abc import abstractmethod
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg
from numpy.polynomial.polynomial import polyval

from .. import _arrays as arrays
from .._arrays import Array
from .._precision import MAX_DISTANCE_ERROR, MAX_RESIDUAL_ERROR, residual_rounding
from .._random import Purpose, Stream
from .._validation import check_finite
from ..landmarks import Landmarks
from ..linalg.cross_kernel import CrossKernel
from ..linalg.errors import TraceError
from ..linalg.factor import Factor, cholesky
from ..linalg.features import BlockFeatures
from ..linalg.residuals import ResidualPass, block_residuals, prepare_residuals
from ..sources import Block, Source
from ..sources.base import multiply_weights, weighted_row_squares, weighted_sum
from .base import (
    FixedSize,
    IndefiniteKernelError,
    Sampler,
    SamplingProblem,
    TraceTolerance,
)
from .weighted_sampling import KeyedSampler, sample_other_rows, sample_uniformly

#: A row with a larger residual, as a share of k(x, x), is no copy of a pivot: what
#: distances may be off by, with a margin.
MAX_COPY_RESIDUAL = 100 * MAX_DISTANCE_ERROR[np.dtype(np.float64)]


class Pivots:
    """The rows chosen so far, and the Cholesky factor of their kernel matrix."""

    def __init__(self, problem: SamplingProblem) -> None:
        self.problem = problem
        no_rows = np.empty(0, dtype=np.intp)
        self._set(no_rows, problem.source.take(no_rows), np.empty((0, 0)))

    def _set(self, indices: np.ndarray, points: Any, L: np.ndarray) -> None:
        self.indices, self.points, self.L = indices, points, L
        # Rows that only fill up have no column.
        self.factor = Factor(L, np.arange(L.shape[1]), np.vecdot(L, L))
        #: X ↦ k(X, pivots), in float64.
        self.columns = CrossKernel(self.problem.kernel, points, wide=True)

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def features(self) -> BlockFeatures:
        """X ↦ k(X, pivots)·L⁻ᵀ, in float64."""
        return BlockFeatures(self.columns, self.factor.root)

    def evaluate(
        self, X: Any, size: int, min_share: float = 0.0
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """F = k_XS L⁻ᵀ and the residual matrix P = K_XX − FFᵀ of a few rows X.

        And the residual that each must exceed to be one of `size` pivots: rounding, and
        the share `min_share` of k(x, x). No copy of a pivot is one. Its kernel value
        may seem less than k(x, x) by more than rounding, as distances from one product
        do where they are far.
        """
        F = np.empty((arrays.count_rows(X), 0))
        if len(self):
            K_S = arrays.to_host_float64(self.columns(X))
            self.problem.ledger.count_evaluations(K_S.size)
            check_finite(K_S)
            F = scipy.linalg.solve_triangular(self.L, K_S.T, lower=True).T
        K = self.problem.gram(X)
        check_finite(K)
        P = K - F @ F.T
        residual_diagonal = np.diagonal(P)
        diagonal = np.abs(residual_diagonal + np.vecdot(F, F))
        floor = max(self.rounding_unit(size), min_share) * diagonal
        if len(self) and np.any(
            (residual_diagonal > floor)
            & (residual_diagonal < MAX_COPY_RESIDUAL * diagonal)
        ):
            both = arrays.stack_rows([self.points, X])
            first = arrays.first_occurrences(arrays.widen(both))
            if first is not None:
                floor[first[len(self) :] < len(self)] = np.inf
        return F, P, floor

    def rounding_unit(self, size: int) -> float:
        """Residuals of `size` pivots below this share of k(x, x) are rounding.

        Of float64, also for float32 rows: these are exact numbers, and their values
        here are float64. Only values that were given may be less precise.
        """
        dtype = self.problem.kernel.dtype(arrays.widen(self.points))
        return residual_rounding(dtype, size)

    def add(
        self, indices: np.ndarray, X: Any = None, *, min_share: float = 0.0
    ) -> np.ndarray:
        """Make these rows, X, pivots, but for those without a residual.

        It must exceed the share `min_share` of k(x, x), and rounding. Returns the
        positions in `indices` of those added.
        """
        if not len(indices):
            return np.empty(0, dtype=np.intp)
        X = self.problem.source.take(indices) if X is None else X
        F, P, floor = self.evaluate(X, len(self) + len(indices), min_share)
        V, kept = cholesky(P, floor)
        self.extend(indices[kept], arrays.take_rows(X, kept), F[kept], V[kept])
        return kept

    def extend(
        self, indices: np.ndarray, X: Any, F: np.ndarray, corner: np.ndarray
    ) -> None:
        """Add pivots X with factor rows F; corner·cornerᵀ was their residual."""
        k, b = len(self), len(indices)
        L = np.zeros((k + b, k + b))
        L[:k, :k], L[k:, :k], L[k:, k:] = self.L, F, corner
        points = arrays.stack_rows([self.points, X])
        self._set(np.concatenate([self.indices, indices]), points, L)

    def shorten(
        self, error: float, kernel_trace: float, tolerance: float
    ) -> np.ndarray:
        """Keep the shortest prefix whose error is low enough; the errors up to it."""
        problem, source = self.problem, self.problem.source
        squares = problem.engine.reduce(
            _block_column_squares, source, (self.features,), "shortest prefix"
        )
        problem.ledger.count_pass(source, source.n_rows * len(self))
        # From the end: adding up small numbers loses nothing, taking them off would.
        tails = np.cumsum(arrays.to_host(squares)[::-1])[::-1]
        path_traces = error + np.concatenate([tails, [0.0]])
        # Negative residuals count as 0: then there is more than tr K.
        value_rounding = arrays.epsilon(problem.kernel.dtype(self.points))
        rounding_share = max(1e-6, 10 * value_rounding**0.5)
        rounding = MAX_RESIDUAL_ERROR * error + rounding_share * kernel_trace
        is_definite = path_traces[0] - kernel_trace <= rounding
        if problem.kernel.traits.psd is None and not is_definite:
            raise IndefiniteKernelError
        size = max(1, int(np.flatnonzero(path_traces <= tolerance * kernel_trace)[0]))
        points = arrays.slice_rows(self.points, 0, size)
        self._set(self.indices[:size], points, self.L[:size, :size])
        return path_traces[1 : size + 1]

    def fill(self, size: int) -> None:
        """Uniform rows up to `size`, where no row has a residual.

        They add nothing to K̃, hence nothing to L: no pivot can follow.
        """
        source = self.problem.source
        n_missing = min(size, source.n_rows) - len(self)
        if n_missing > 0:
            other_rows = sample_other_rows(
                self.indices, n_missing, source.n_rows, self.problem.seed
            )
            L = np.concatenate([self.L, np.zeros((n_missing, self.L.shape[1]))])
            points = arrays.stack_rows([self.points, source.take(other_rows)])
            self._set(np.concatenate([self.indices, other_rows]), points, L)

    def residuals(
        self, source: Source, name: str = "residuals", *, wide: bool = False
    ) -> np.ndarray:
        """k(x, x) − ‖k_xS L⁻ᵀ‖² for every row of a source; see `residual_pass`."""
        prepared = self.residual_pass(source, wide=wide)
        return self.problem.residuals(prepared, source, name)

    def residual_pass(self, source: Source, *, wide: bool = False) -> ResidualPass:
        """The pass that finds the residuals of the rows of a source.

        With `wide` in float64, else in float32 where that is enough.
        """
        kernel, points = self.problem.kernel, self.points
        prepared = prepare_residuals(
            self.columns if wide else CrossKernel(kernel, points),
            source,
            self.factor.root,
            ledger=self.problem.ledger,
            rounding=self.rounding_unit(len(self)),
        )
        if prepared.widened:
            self.problem.ledger.note("residuals in float64")
        return prepared

    def landmarks(self, sampler: str, **fields: Any) -> Landmarks:
        """The pivots as every sampler returns them."""
        kernel, n = self.problem.kernel, self.problem.source.n_rows
        chosen = Landmarks(
            self.points, kernel, sampler, n, indices=self.indices, **fields
        )
        # Where the kernel makes no promise, K_SS is factored as a whole.
        return chosen.with_factor(self.factor if kernel.traits.psd else None)


#: Landmarks to begin with, where their number is not given.
N_FIRST_LANDMARKS = 64


class GrowingSampler(Sampler):
    """A sampler that selects one pivot after the other.

    It reaches a size, or doubles its pivots until the trace error is small enough. The
    state of a run is held by a copy of the sampler, which `begin` sets up.
    """

    takes: ClassVar[tuple[type, ...]] = (FixedSize, TraceTolerance)
    is_ordered = True

    problem: SamplingProblem
    pivots: Pivots
    exhausted: bool  # every residual is rounding

    def begin(self, problem: SamplingProblem) -> Self:
        """Return a copy of the sampler without pivots.

        Parameters
        ----------
        problem : SamplingProblem
            Kernel, rows, seed and engine.

        Returns
        -------
        sampler : Sampler
            The copy.
        """
        run = copy(self)
        run.problem, run.pivots, run.exhausted = problem, Pivots(problem), False
        run._set_up()
        return run

    def _set_up(self) -> None:
        """More of the state of a run."""

    @abstractmethod
    def grow(self, size: int) -> None:
        """Add pivots until there are `size`, or every residual is rounding.

        Parameters
        ----------
        size : int
            Number of pivots.
        """

    @abstractmethod
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

    def _samples_uniformly(self, problem: SamplingProblem, size: int) -> bool:
        """Whether a number of rows is drawn as they come, with nothing to evaluate."""
        return False

    def choose(self, problem: SamplingProblem, goal: Any) -> Landmarks:
        if isinstance(goal, FixedSize):
            size = goal.n_landmarks
            if self._samples_uniformly(problem, size):
                problem.ledger.count_fetch(problem.source)
                sample = sample_uniformly(problem.source, size, problem.seed)
                return problem.landmarks(sample, "uniform")
            run = self.begin(problem)
            run.grow(size)
            run.pivots.fill(size)
            return run.pivots.landmarks(self.name)
        if problem.kernel.traits.psd is False:
            raise IndefiniteKernelError
        # Double the pivots until tr(K − K̃) ≤ tolerance·tr K; keep the shortest prefix.
        run = self.begin(problem)
        n = problem.source.n_rows
        total_trace = problem.trace()
        check_finite(np.asarray(total_trace))
        if total_trace < 0:
            raise IndefiniteKernelError
        max_landmarks = n if goal.at_most is None else min(goal.at_most, n)
        max_error, size = goal.tolerance * total_trace, N_FIRST_LANDMARKS
        while True:  # ends: the size doubles up to `max_landmarks`
            size = min(size, max_landmarks)
            run.grow(size)
            error = run.error(min(2 * size, max_landmarks))
            if error <= max_error or run.exhausted or size == max_landmarks:
                break
            size *= 2
        path = None
        if error <= max_error and len(run.pivots):
            path_traces = run.pivots.shorten(error, total_trace, goal.tolerance)
            error, path = float(path_traces[-1]), path_traces / total_trace
        if len(run.pivots) == 0:  # K = 0, and any row will do
            run.pivots.fill(1)
        trace_error = replace(TraceError.from_sums(error, total_trace, n), path=path)
        return run.pivots.landmarks(
            self.name, error=trace_error, max_trace_error=goal.tolerance
        )


def _block_column_squares(block: Block, features: BlockFeatures) -> Array:
    return weighted_row_squares(block.weights, features(block.X))


#: Rows that become pivots together.
BATCH_ROWS = 128
#: Powers of rounding that a residual must exceed, as a share of k(x, x): at first, and
#: for rows that were skipped.
ROUNDING_POWERS = (0.5, 0.75, 1.0)


@dataclass(unsafe_hash=True)
class Uniform(GrowingSampler):
    """Uniform sampling; proportional to the weights if rows have weights.

    With `max_trace_error`, rows become pivots in the order of the draw. Rows with a
    residual near rounding are skipped until all other rows have been used.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import samplers, select_landmarks
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> options = {"n_landmarks": 20, "random_state": 0}
    >>> chosen = select_landmarks(X, sampler=samplers.Uniform(), **options)
    >>> len(chosen), chosen.sampler
    (20, 'uniform')
    """

    name = "uniform"
    needs_psd = False
    is_ordered = False

    def _samples_uniformly(self, problem: SamplingProblem, size: int) -> bool:
        return True

    def _set_up(self) -> None:
        kernel, source = self.problem.kernel, self.problem.source
        value_dtype = kernel.dtype(arrays.widen(source.take(np.arange(1))))
        self.min_residual_shares = [
            arrays.epsilon(value_dtype) ** power for power in ROUNDING_POWERS
        ]
        self.order = np.empty(0, dtype=np.intp)
        self.skipped: list[np.ndarray] = []
        self.n_seen = 0

    def grow(self, size: int) -> None:
        # Ends: rows are seen once for each of the powers.
        while len(self.pivots) < size and not self.exhausted:
            n_next = min(BATCH_ROWS, size - len(self.pivots))
            rows = self._next_rows(n_next)
            selected = self.pivots.add(rows, min_share=self.min_residual_shares[0])
            self.skipped.append(np.delete(rows, selected))
            if len(rows) < n_next:  # begin anew with the rows that were skipped
                self.order, self.n_seen = np.concatenate(self.skipped), 0
                self.skipped = []
                is_last = len(self.min_residual_shares) == 1
                self.exhausted = is_last or not len(self.order)
                self.min_residual_shares = self.min_residual_shares[1:]

    def _next_rows(self, size: int) -> np.ndarray:
        """The next rows of the draw, which is extended as it is needed."""
        begin, self.n_seen = self.n_seen, self.n_seen + size
        source, stream = self.problem.source, Stream(self.problem.seed, Purpose.DRAW)
        is_first_round = len(self.min_residual_shares) == len(ROUNDING_POWERS)
        if is_first_round and len(self.order) < min(self.n_seen, source.n_rows):
            n_drawn = 2 * self.n_seen
            if source.is_weighted:
                sampler = KeyedSampler(stream, max_rows=n_drawn)
                self.order = sampler.sample(source.weights).sorted_by_key().numbers
            else:
                self.order = stream.sample_rows(n_drawn, source.n_rows)
        return self.order[begin : self.n_seen]

    def error(self, size: int) -> float:
        source, k = self.problem.source, len(self.pivots)
        shared = (self.pivots.residual_pass(source),)
        name = f"trace error at {k} landmarks"
        trace = self.problem.engine.reduce(_block_residual_trace, source, shared, name)
        self.problem.ledger.count_pass(source, source.n_rows * (k + 1))
        check_finite(np.asarray(trace))
        return float(trace)


def _block_residual_trace(block: Block, prepared: ResidualPass) -> float:
    return weighted_sum(block.weights, block_residuals(block, prepared))


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
        self.bounds = self._weighted(problem.diagonal())
        self.n_rejected = 0  # rows of batches since the last pass
        self.n_passes = 0
        self.n_pivots_at_pass = 0  # pivots at the last pass
        self.size = 0  # how many pivots there are to be

    def _weighted(self, residual: np.ndarray) -> np.ndarray:
        bounds = multiply_weights(self.source.weights, residual)
        check_finite(bounds)  # a row of infinite rate would be drawn for ever
        return bounds

    def error(self, size: int) -> float:
        name = f"trace error at {len(self.pivots)} landmarks"
        residual = self.pivots.residuals(self.source, name)
        self._set_bounds(residual)
        return weighted_sum(self.source.weights, residual)

    def grow(self, size: int) -> None:
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
        pass_seconds = polyval(k, PASS_SECONDS_PER_ROW)
        return max(batch, float(n * pass_seconds / polyval(k, BATCH_SECONDS_PER_ROW)))

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
        seed, n = self.problem.seed, len(self.bounds)
        u = Stream(seed, Purpose.DRAW, round=self.n_passes).uniforms(0, n)
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
        seed = self.problem.seed
        # Ends: a row is rejected at most once for each pivot of the batch.
        while (
            clocks and len(pivot_batch.selected) < size and clocks[0][0] <= outside_time
        ):
            time, j = heapq.heappop(clocks)
            row, n_processed = int(rows[j]), n_processed + 1
            residual = pivot_batch.weighted_residuals()[j]
            n_proposed = self.n_arrivals.get(row, 0)
            self.n_arrivals[row] = n_proposed + 1
            stream = Stream(seed, Purpose.PROPOSE, n_proposed, self.n_passes)
            accept_uniform, clock_uniform = stream.uniforms(2 * row, 2 * row + 2)
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
