"""Landmarks as pivots of a Cholesky factorisation, growth to a trace error, and
uniform sampling.

`Pivots` holds the rows selected so far with their factor. A sampler that selects one
pivot after the other can double its set until tr(K − K̃) ≤ tolerance·tr K, and keep
the shortest prefix that reaches it.
"""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg

from .. import _arrays as arrays
from .._arrays import Array
from .._precision import MAX_DISTANCE_ERROR, MAX_RESIDUAL_ERROR, residual_rounding
from .._random import Purpose, uniform_row_sample
from .._validation import check_finite
from ..landmarks import Landmarks
from ..linalg.cross_kernel import CrossKernel, kernel_trace
from ..linalg.errors import TraceError
from ..linalg.factor import ColumnBlocks, Factor, cholesky
from ..linalg.residuals import (
    ResidualPass,
    block_residuals,
    prepare_residuals,
    residuals,
)
from ..sources import Block, Source
from ..sources.base import weighted_row_squares, weighted_sum
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
        points = arrays.stack_rows([self.points, X]) if k else X
        self._set(np.concatenate([self.indices, indices]), points, L)

    def shorten(self, size: int) -> None:
        """Keep the first `size` pivots."""
        points = arrays.slice_rows(self.points, 0, size)
        self._set(self.indices[:size], points, self.L[:size, :size])

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
            points = source.take(other_rows)
            points = arrays.stack_rows([self.points, points]) if len(self) else points
            self._set(np.concatenate([self.indices, other_rows]), points, L)

    def residuals(
        self, source: Source, name: str = "residuals", *, wide: bool = False
    ) -> np.ndarray:
        """k(x, x) − ‖k_xS L⁻ᵀ‖² for every row of a source; see `residual_pass`."""
        prepared = self.residual_pass(source, wide=wide)
        return residuals(prepared, source, engine=self.problem.engine, name=name)

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

    def choose(self, problem: SamplingProblem, goal: Any) -> Landmarks:
        run = self.begin(problem)
        if isinstance(goal, FixedSize):
            run.grow(goal.n_landmarks)
            run.pivots.fill(goal.n_landmarks)
            return run.pivots.landmarks(self.name)
        if problem.kernel.traits.psd is False:
            raise IndefiniteKernelError
        # Double the pivots until tr(K − K̃) ≤ tolerance·tr K; keep the shortest prefix.
        source, n = problem.source, problem.source.n_rows
        total_trace = kernel_trace(problem.kernel, source, engine=problem.engine)
        problem.ledger.count_pass(source, n)
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
            path_traces = _shorten_to_tolerance(
                run.pivots, problem, error, total_trace, goal.tolerance
            )
            error, path = float(path_traces[-1]), path_traces / total_trace
        if len(run.pivots) == 0:  # K = 0, and any row will do
            run.pivots.fill(1)
        trace_error = replace(TraceError.from_sums(error, total_trace, n), path=path)
        return run.pivots.landmarks(
            self.name, error=trace_error, max_trace_error=goal.tolerance
        )


def _shorten_to_tolerance(
    pivots: Pivots,
    problem: SamplingProblem,
    error: float,
    kernel_trace: float,
    tolerance: float,
) -> np.ndarray:
    """Keep the shortest prefix whose error is low enough; the errors up to it."""
    shared = (pivots.columns, ColumnBlocks.from_matrix(pivots.factor.root))
    columns = arrays.to_host(
        problem.engine.reduce(
            _block_column_squares, problem.source, shared, "shortest prefix"
        )
    )
    problem.ledger.count_pass(problem.source, problem.source.n_rows * len(pivots))
    # From the end: adding up small numbers loses nothing, taking them off tr K would.
    path_traces = error + np.concatenate([np.cumsum(columns[::-1])[::-1], [0.0]])
    # Negative residuals count as 0: then there is more than tr K.
    rounding_share = max(
        1e-6, 10 * arrays.epsilon(problem.kernel.dtype(pivots.points)) ** 0.5
    )
    rounding = MAX_RESIDUAL_ERROR * error + rounding_share * kernel_trace
    if problem.kernel.traits.psd is None and path_traces[0] - kernel_trace > rounding:
        raise IndefiniteKernelError
    size = max(1, int(np.flatnonzero(path_traces <= tolerance * kernel_trace)[0]))
    pivots.shorten(size)
    return path_traces[1 : size + 1]


def _block_column_squares(
    block: Block, columns: CrossKernel, root: ColumnBlocks
) -> Array:
    F = root.product(columns.float64(block.X))
    return weighted_row_squares(block.weights, F)


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

    def choose(self, problem: SamplingProblem, goal: Any) -> Landmarks:
        if isinstance(goal, FixedSize):  # as they come: nothing to evaluate
            problem.ledger.count_fetch(problem.source)
            sample = sample_uniformly(problem.source, goal.n_landmarks, problem.seed)
            return problem.landmarks(sample, self.name)
        return super().choose(problem, goal)

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
        """Add pivots until there are `size`, or every residual is rounding.

        Parameters
        ----------
        size : int
            Number of pivots.
        """
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
        source, seed = self.problem.source, self.problem.seed
        is_first_round = len(self.min_residual_shares) == len(ROUNDING_POWERS)
        if is_first_round and len(self.order) < min(self.n_seen, source.n_rows):
            n_drawn = 2 * self.n_seen
            if source.is_weighted:
                sampler = KeyedSampler(seed, Purpose.DRAW, max_rows=n_drawn)
                self.order = sampler.sample(source.weights).sorted_by_key().numbers
            else:
                self.order = uniform_row_sample(
                    seed, Purpose.DRAW, source.n_rows, n_drawn
                )
        return self.order[begin : self.n_seen]

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
        source = self.problem.source
        prepared = self.pivots.residual_pass(source)
        shared = (prepared.columns, prepared.operand, prepared.rounding)
        name = f"trace error at {len(self.pivots)} landmarks"
        residual_trace = float(
            self.problem.engine.reduce(_block_residual_trace, source, shared, name)
        )
        n_evaluations = source.n_rows * (len(self.pivots) + 1)
        self.problem.ledger.count_pass(source, n_evaluations)
        check_finite(np.asarray(residual_trace))
        return residual_trace


def _block_residual_trace(block: Block, *shared: Any) -> float:
    return weighted_sum(block.weights, block_residuals(block, *shared))
