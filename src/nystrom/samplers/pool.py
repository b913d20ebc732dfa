"""A weighted pool of rows, on which proposed pivots are ranked by their gain.

Pivot j lowers the trace error by Σᵢ rᵢⱼ²/rⱼⱼ, r the residual of K. Over a pool drawn
with probability p and weighted by 1/p the sum is estimated without bias, for many
proposals at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from .. import _arrays as arrays
from .._arrays import Array
from .._precision import (
    MIN_FLOAT32_TRACE_ERROR,
    pool_fits_float32,
    residual_rounding,
    squares_scaling_exponent,
    values_fit_float32,
)
from .._random import sorted_row_sample
from .._validation import check_finite
from ..engines.base import SumTree
from ..kernels import Kernel
from ..kernels.distances import feature_medians
from ..linalg.cross_kernel import CrossKernel, Ledger, diag_float64
from ..linalg.features import BlockFeatures
from .base import SamplingProblem
from .pivoting import Pivots

#: A proposal whose residual has fallen to this share of what it was is dropped: its
#: gain is the ratio of two small differences by then.
MIN_RESIDUAL_SHARE = 0.02


@dataclass(frozen=True)
class RankedProposals:
    """The proposals that became pivots, and the state of all of them."""

    chosen: np.ndarray  # in order
    L: np.ndarray  # lower triangular: LLᵀ was the residual of K at those chosen
    gains: np.ndarray  # of each proposal by now, −1 for those out of the race
    H: np.ndarray  # the proposals' H by now


def rank_by_gain(
    P: np.ndarray,
    H: np.ndarray,
    initial_residuals: np.ndarray,
    floor: np.ndarray,
    size: int,
) -> RankedProposals:
    """Take `size` times the j of largest gain Hⱼⱼ/Pⱼⱼ.

    P is the residual kernel matrix of the proposals, H = A diag(ω) Aᵀ for the residual
    A of their rows over the pool. Taking j deflates both,

        P ← P − qqᵀPⱼⱼ,   H ← H − quᵀ − uqᵀ,   q = P·ⱼ/Pⱼⱼ,   u = H·ⱼ − ½·Hⱼⱼ·q,

    and each step needs one row and the diagonal of either: rows are brought up to date
    when they are needed, H as a whole at the end.

    Pⱼⱼ is known to about its floor, and what is off in it is off in all that j takes:
    of rows with about the same gain, one that is near rounding would leave nothing of
    the others but noise. So a gain counts by Pⱼⱼ/(Pⱼⱼ + floorⱼ).
    """
    n_proposals = len(P)
    size = min(size, n_proposals)
    V = np.empty((size, n_proposals))  # P = P₀ − VᵀV
    # q and u of each step, and the same the other way round: one product then brings a
    # row of H up to date.
    QU, UQ = np.empty((size, 2, n_proposals)), np.empty((size, 2, n_proposals))
    p, h = P.diagonal().copy(), H.diagonal().copy()
    min_residuals = np.maximum(MIN_RESIDUAL_SHARE * initial_residuals, floor)
    gains, scratch = np.empty(n_proposals), np.empty(n_proposals)
    chosen: list[int] = []
    for _ in range(size):
        gains.fill(-1.0)
        np.add(p, floor, out=scratch)
        np.divide(h, scratch, out=gains, where=p > min_residuals)
        j = int(gains.argmax())
        if gains[j] <= 0:
            break
        i = len(chosen)
        row = P[j] - V[:i, j] @ V[:i]
        pivot = row[j]
        if (
            pivot > min_residuals[j]
        ):  # else the running diagonal has lost it to rounding
            q, u = QU[i]
            np.divide(row, pivot, out=q)
            u[:] = H[j]
            u -= UQ[:i, :, j].ravel() @ QU[:i].reshape(2 * i, n_proposals)
            u -= (0.5 * u[j]) * q
            UQ[i, 0], UQ[i, 1] = u, q
            np.divide(row, np.sqrt(pivot), out=V[i])
            p -= np.square(V[i], out=scratch)
            np.multiply(q, u, out=scratch)
            scratch *= 2
            h -= scratch
            chosen.append(j)
        min_residuals[j] = np.inf  # out of the race
    i, selected = len(chosen), np.array(chosen, dtype=np.intp)
    gains.fill(-1.0)
    np.divide(h, p, out=gains, where=p > min_residuals)
    H_change = QU[:i].reshape(2 * i, n_proposals).T @ UQ[:i].reshape(2 * i, n_proposals)
    return RankedProposals(selected, np.tril(V[:i, selected].T), gains, H - H_change)


#: Rows that a part has at most.
MAX_PART_ROWS = 2048
#: Rows whose kernel values are compared in both precisions, of either kind, by so many
#: others.
N_FLOAT32_PROBES, MAX_FLOAT32_PROBE_POINTS = 4, 256


def as_float32_rows(kernel: Kernel, points: Any, ledger: Ledger) -> Any:
    """Dense float64 rows as float32 ones, where a kernel's values stay the same.

    About their median, which does not matter to a kernel of a distance: exp and
    products take half the time, and a ranking does not need more.
    """
    dense = arrays.is_array(points) and arrays.numpy_float_dtype(points) == np.dtype(
        "f8"
    )
    n = arrays.count_rows(points)
    if not dense or not kernel.traits.is_distance_based or not n:
        return points
    with np.errstate(over="ignore", invalid="ignore"):
        centered = points - arrays.from_host(feature_medians(points), points)
        rows = arrays.as_float(centered, arrays.namespace(points).float32)
        # The farthest rows are rounded most.
        norms = arrays.to_host(arrays.squared_norms(centered))
        farthest = np.argsort(-norms, kind="stable")[:N_FLOAT32_PROBES]
        probes = np.concatenate([farthest, sorted_row_sample(n, N_FLOAT32_PROBES)])
        others = np.concatenate(
            [probes, sorted_row_sample(n, MAX_FLOAT32_PROBE_POINTS)]
        )
        values, exact = (
            arrays.to_host_float64(
                CrossKernel(kernel, arrays.take_rows(X, probes))(
                    arrays.take_rows(X, others)
                )
            )
            for X in (rows, points)
        )
    ledger.count_evaluations(values.size + exact.size)
    return rows if values_fit_float32(values, exact) else points


class PoolPart:
    """Rows `points` of a pool, where these are, each standing for `weights` rows."""

    def __init__(
        self,
        kernel: Kernel,
        points: Any,
        weights: np.ndarray,
        capacity: int,
        wide: bool,
    ) -> None:
        self.kernel, self.points, self.wide = kernel, points, wide
        like, dtype = kernel.output_like(points), np.dtype("f8" if wide else "f4")
        self.dtype = arrays.library_dtype(dtype, like)
        self.weights = arrays.from_host(weights, like, self.dtype)
        # A row for each pivot.
        self.F = arrays.namespace(like).empty(
            (capacity, len(weights)), dtype=self.dtype, device=arrays.device(like)
        )
        self.G = self.F[:0, :]  # the rows of F later than A
        self.A = self.F[:0, :]  # the residual of kernel(proposals, points)
        # Few points of many features become dense once; so many do not.
        self.columns = (
            None if sp.issparse(points) else CrossKernel(kernel, points, wide)
        )

    def fill(self, X: Any, features: BlockFeatures) -> np.ndarray:
        """Factor rows of earlier pivots at X; what they take of k(x, x)."""
        with np.errstate(over="ignore", invalid="ignore"):  # refused by the pool
            rows = features(X)
            self.F[: rows.shape[1], :] = arrays.as_float(rows.T, self.dtype)
            return arrays.to_host(arrays.squared_norms(rows))

    def propose(
        self, X: Any, F_new: Array, kept: np.ndarray, G_kept: Array
    ) -> np.ndarray:
        """A of the proposals that are kept, brought up to date, and of new ones, X.

        F_new and G_kept are factor rows at the proposals, (c, k). Returns this part's
        share of H's new columns.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # refused by the pool
            old = arrays.take_rows(self.A, kept)
            if self.columns is None:
                new = CrossKernel(self.kernel, X, self.wide)(self.points).T
            else:
                new = self.columns(X)
            old -= G_kept @ self.G
            new = arrays.as_float(new, self.dtype) - F_new @ self.F[: F_new.shape[1], :]
            self.A = arrays.stack_rows([old, new])
            return arrays.to_host_float64(self.A @ (self.weights * new).T)

    def add_pivots(self, chosen: np.ndarray, L: np.ndarray, k: int) -> np.ndarray:
        """Make rows of A pivots, after k others; what they take of k(x, x)."""
        self.G = self.F[k : k + len(chosen), :]
        rows = arrays.take_rows(self.A, chosen)
        if arrays.is_on_host(rows):
            self.G[:] = rows
            # G ← L⁻¹G in place: what is C-ordered here is Gᵀ to BLAS.
            trsm = scipy.linalg.get_blas_funcs("trsm", (self.G,))
            trsm(1, L, self.G.T, side=1, lower=1, trans_a=1, overwrite_b=1)
        else:
            inverse = scipy.linalg.solve_triangular(L, np.eye(len(L)), lower=True)
            self.G[...] = arrays.from_host(inverse, self.F) @ rows
        return arrays.to_host_float64(arrays.column_squared_norms(self.G))


#: float64 rows that are worth ranking in float32.
MIN_NARROWING_ROWS = 512


class RowPool:
    """Weighted rows with their factor rows for the pivots so far, and proposals.

    Row indices[j] of the data stands for weights[j] rows. Proposals that were ranked
    but not selected stay for the next block: their residual is brought up to date by
    b columns instead of all k.

    Pivots are factored in the pool's own precision; `pivots` gets them together, by
    `flush_pivots`.
    """

    def __init__(
        self,
        problem: SamplingProblem,
        indices: np.ndarray,
        weights: np.ndarray,
        pivots: Pivots,
        capacity: int,
        *,
        points: Any = None,
        wide: bool = False,
        excluded: Sequence[int] | np.ndarray = (),  # rows never to be selected
    ) -> None:
        self.kernel, self.ledger = problem.kernel, problem.ledger
        self.engine = problem.engine.local
        self.indices, self.weights, self.pivots = indices, weights, pivots
        self.points = problem.source.take(indices) if points is None else points
        self.residual = arrays.to_host(diag_float64(self.kernel, self.points)).copy()
        check_finite(self.residual)
        self.ledger.count_evaluations(len(indices))
        self.kernel_trace = float(weights @ self.residual)
        # float64 may be needed later, and then all is done again.
        narrow = CrossKernel(self.kernel, arrays.slice_rows(self.points, 0, 1)).narrow
        use_float32 = narrow or (
            len(indices) >= MIN_NARROWING_ROWS and not self.kernel.traits.costly
        )
        use_float32 = use_float32 and pool_fits_float32(self.residual, weights)
        self.wide = wide or not use_float32
        self.rows = self.points
        if not self.wide:
            self.rows = as_float32_rows(self.kernel, self.points, self.ledger)
        unit = pivots.rounding_unit(capacity)
        unit = unit if self.wide else max(unit, residual_rounding(np.float32, capacity))
        self.floor = unit * np.abs(self.residual)
        self.selected = np.isin(indices, np.append(pivots.indices, excluded))
        self.pending = np.empty(0, dtype=np.intp)  # positions of pivots not flushed yet
        # An even number of parts, unless one will do.
        n = len(indices)
        on_host = arrays.is_on_host(self.kernel.output_like(self.rows))
        is_whole = n <= MAX_PART_ROWS or not on_host
        n_parts = 1 if is_whole else 2 * -(-n // (2 * MAX_PART_ROWS))
        self.part_bounds = np.linspace(0, n, n_parts + 1).astype(np.intp)
        # Gains are compared with each other alone. Their sums of squares neither
        # overflow nor vanish if rows of huge or tiny k(x, x) count for less or more.
        scaled_weights = np.ldexp(weights, squares_scaling_exponent(self.residual))
        self.parts = [
            PoolPart(self.kernel, rows, part_weights, capacity, self.wide)
            for rows, part_weights in zip(
                self._split(self.rows), self._split(scaled_weights), strict=True
            )
        ]
        if len(pivots):  # in float64: residuals are small by now
            features, rows_by_part = pivots.features, self._split(self.points)
            explained = self.engine.each(
                lambda i: self.parts[i].fill(rows_by_part[i], features),
                range(n_parts),
                n * len(pivots) ** 2,
            )
            self.residual -= np.concatenate(explained)
            check_finite(self.residual)
            self.ledger.count_evaluations(n * len(pivots))
        self.residual[(self.residual < self.floor) | self.selected] = 0.0
        self.clear_proposals()

    def _split(self, rows: Any) -> list[Any]:
        """Rows, or numbers of them, by part."""
        bounds = pairwise(self.part_bounds)
        return [arrays.slice_rows(rows, start, stop) for start, stop in bounds]

    @property
    def n_pivots(self) -> int:
        """Pivots so far, also those not flushed yet."""
        return len(self.pivots) + len(self.pending)

    @property
    def residual_trace(self) -> float:
        """The trace error as the pool estimates it."""
        return float(self.weights @ self.residual)

    @property
    def needs_float64(self) -> bool:
        """Whether the residuals are too small for float32."""
        return (
            not self.wide
            and self.residual_trace < MIN_FLOAT32_TRACE_ERROR * self.kernel_trace
        )

    def sampling_weights(self) -> np.ndarray:
        """What each row may count for as a new proposal: ω·r."""
        w = self.weights * self.residual
        w[self.candidates] = 0
        return w

    def clear_proposals(self) -> None:
        """Drop all proposals."""
        self.candidates = np.empty(0, dtype=np.intp)  # places in the pool
        self.kept_rows = np.empty(0, dtype=np.intp)  # the candidates' rows of A
        self.H = np.empty((0, 0))  # A diag(ω) Aᵀ
        self.initial_residuals = np.empty(0)  # r of each candidate when it was proposed
        for part in self.parts:
            part.A = part.F[:0, :]

    def choose(self, proposals: np.ndarray, size: int, keep: int) -> None:
        """Select up to `size` pivots from old and new proposals, by gain."""
        self._propose(proposals)
        P = arrays.to_host_float64(self._columns_at(self.candidates, lambda p: p.A))
        floor = self.floor[self.candidates]
        ranked = rank_by_gain(P, self.H, self.initial_residuals, floor, size)
        if not len(ranked.chosen):  # the residuals of the proposals were rounding
            self.residual[self.candidates] = 0.0
            self.clear_proposals()
            return
        k, positions = self.n_pivots, self.candidates[ranked.chosen]
        self.pending = np.concatenate([self.pending, positions])
        self.selected[positions] = True
        explained = self.engine.each(
            lambda p: p.add_pivots(ranked.chosen, ranked.L, k),
            self.parts,
            len(self.indices) * ranked.L.size,
        )
        self.residual -= np.concatenate(explained)
        self.residual[(self.residual < self.floor) | self.selected] = 0.0
        # Those with the largest gain stay as proposals.
        best = np.argsort(-ranked.gains, kind="stable")[:keep]
        best = best[ranked.gains[best] > 0]
        self.kept_rows, self.H = best, ranked.H[np.ix_(best, best)]
        self.candidates, self.initial_residuals = (
            self.candidates[best],
            self.initial_residuals[best],
        )

    def _propose(self, proposals: np.ndarray) -> None:
        """A and H of the candidates there are, brought up to date, and of new ones."""
        n_old, n_new, k = len(self.candidates), len(proposals), self.n_pivots
        X = arrays.take_rows(self.rows, proposals)
        F_new = self._columns_at(proposals, lambda p: p.F[:k, :]).T
        G_kept = self._columns_at(self.candidates, lambda p: p.G).T
        tree = SumTree()
        n_operations = len(self.indices) * (
            n_new * (k + n_old + n_new) + math.prod(G_kept.shape)
        )
        for part_columns in self.engine.each(
            lambda p: p.propose(X, F_new, self.kept_rows, G_kept),
            self.parts,
            n_operations,
        ):
            tree.push(part_columns)
        columns = tree.total()
        self.ledger.count_evaluations(len(self.indices) * n_new)
        check_finite(columns)
        H = np.empty((n_old + n_new, n_old + n_new))
        H[:n_old, :n_old], H[:, n_old:], H[n_old:, :n_old] = (
            self.H,
            columns,
            columns[:n_old].T,
        )
        self.H = H
        self.candidates = np.concatenate([self.candidates, proposals])
        self.initial_residuals = np.concatenate(
            [self.initial_residuals, self.residual[proposals]]
        )

    def flush_pivots(self) -> np.ndarray:
        """Give the new pivots to `pivots`; the row numbers of those it refuses.

        Then the pool's factor is of pivots that are none: make another.
        """
        positions, self.pending = self.pending, self.pending[:0]
        new_rows = self.indices[positions]
        kept = self.pivots.add(new_rows, arrays.take_rows(self.points, positions))
        return np.delete(new_rows, kept)

    def _columns_at(
        self, positions: np.ndarray, get_array: Callable[[Any], Array]
    ) -> Array:
        """Columns, at these rows of the pool, of arrays that have one for each."""
        if len(self.parts) == 1:
            array = get_array(self.parts[0])
            xp, device = arrays.namespace(array), arrays.device(array)
            return xp.take(array, xp.asarray(positions, device=device), axis=1)
        part_arrays = [get_array(part) for part in self.parts]
        out = np.empty((len(part_arrays[0]), len(positions)), part_arrays[0].dtype)
        for array, (start, stop) in zip(
            part_arrays, pairwise(self.part_bounds), strict=True
        ):
            inside = np.flatnonzero((positions >= start) & (positions < stop))
            out[:, inside] = np.take(array, positions[inside] - start, axis=1)
        return out
