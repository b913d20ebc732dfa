"""A weighted pool of rows that stands for all rows, and pivots ranked by their gain.

A pivot j takes Σᵢ rᵢⱼ²/rⱼⱼ off the trace error, r being what earlier pivots left of K.
Over all rows that sum is out of reach; over a pool of rows drawn with probability p and
weighted by 1/p it is estimated without bias, for many proposals at once, by two matrix
products.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg

from .. import _arrays as arrays
from ..engines import Engine
from ..factor import check_finite
from ..kernels import Kernel
from ..landmarks import WeightedRows
from ..leverage import diagonal
from ..sinks import ArraySink
from ..sources import Block, Held, Source
from .gains import best_pivots
from .pivots import Pivots, rounding_unit

#: A pool of float32 rows is worked on in float32 until the trace error falls below this
#: share of tr K: rounding is then about a hundredth of what is left.
FINE = 5e-4


class Pool:
    """Weighted rows with their factor rows for the pivots so far, and proposals.

    Proposals that were ranked but not taken stay for the next block: what is left of
    them is brought up to date by b columns instead of all k.
    """

    def __init__(
        self,
        kernel: Kernel,
        source: Source,
        rows: WeightedRows,
        pivots: Pivots,
        capacity: int,
        engine: Engine,
        wide: bool = False,
    ) -> None:
        self.kernel, self.engine, self.rows, self.pivots = kernel, engine, rows, pivots
        self.held = Held(source, rows.indices)
        m, k = len(rows), len(pivots)
        diag = diagonal(kernel, self.held, engine=engine)
        pivots.n_evaluations += m
        self.whole = float(rows.weights @ diag)
        self.floor = rounding_unit(kernel, self.held.points, capacity) * np.abs(diag)
        narrow = kernel.dtype(self.held.points) == np.float32
        self.wide = wide or not narrow or not _fits_float32(diag, rows.weights)
        self.F = np.empty((m, capacity), np.float64 if self.wide else np.float32)
        self.residual = diag
        if k and m:
            shared = (pivots.evaluator(), pivots.root, self.F)
            self.residual = diag - self._norms_of_factor(shared)
            pivots.n_evaluations += m * k
        self.taken = np.isin(rows.indices, pivots.indices)
        self._settle()
        self.forget()

    def _norms_of_factor(self, shared: tuple) -> np.ndarray:
        sink = ArraySink((len(self.rows),))
        self.engine.map(_factor_rows, self.held, sink, shared)
        return sink.array

    @property
    def left(self) -> float:
        """The trace error as the pool estimates it."""
        return float(self.rows.weights @ self.residual)

    @property
    def too_fine(self) -> bool:
        """Whether what is left is too little for float32."""
        return not self.wide and self.left < FINE * self.whole

    def weights(self) -> np.ndarray:
        """What each row may count for as a new proposal: ω·r."""
        w = self.rows.weights * self.residual
        w[self.candidates] = 0
        return w

    def _settle(self) -> None:
        self.residual[(self.residual < self.floor) | self.taken] = 0.0

    def forget(self) -> None:
        """Drop all proposals."""
        m = len(self.rows)
        self.candidates = np.empty(0, dtype=np.intp)  # places in the pool
        self.A = np.empty((m, 0), self.F.dtype)  # what is left of kernel(pool, ·)
        self.columns = np.empty(0, dtype=np.intp)  # the candidates' columns of A
        self.G = np.empty((m, 0), self.F.dtype)  # factor columns later than A
        self.H = np.empty((0, 0))  # Aᵀ diag(ω) A
        self.started = np.empty(0)  # r of each candidate when it was proposed

    def choose(self, proposals: np.ndarray, size: int, keep: int) -> int:
        """Take up to `size` pivots from old and new proposals, by gain; how many."""
        self._propose(proposals)
        P = self.A[self.candidates].astype(np.float64)
        floor = self.floor[self.candidates]
        ranked = best_pivots(P, self.H, self.started, floor, size)
        taken = self._take(ranked.chosen) if len(ranked.chosen) else 0
        if taken == 0:  # what seemed left of the proposals was rounding
            self.residual[self.candidates] = 0.0
        if taken < max(1, len(ranked.chosen)):
            self.forget()  # what was deflated is not what was taken
            return taken
        # Those with the largest gain stay as proposals.
        best = np.argsort(-ranked.gains, kind="stable")[:keep]
        best = best[ranked.gains[best] > 0]
        self.columns, self.H = best, ranked.H[np.ix_(best, best)]
        self.candidates, self.started = self.candidates[best], self.started[best]
        return taken

    def _propose(self, proposals: np.ndarray) -> None:
        """A and H of the candidates there are, brought up to date, and of new ones."""
        m, old, k = len(self.rows), len(self.candidates), len(self.pivots)
        new = len(proposals)
        points = self.held.take(proposals)
        evaluate = self.kernel.against(arrays.widen(points) if self.wide else points)
        A = np.empty((m, old + new), self.F.dtype)
        before = (self.A, self.columns, self.G, self.G[self.candidates].T)
        F = self.F[:, :k]
        shared = (evaluate, self.wide, F, F[proposals].T, before, self.rows.weights, A)
        X = self.engine.reduce(_candidate_rows, self.held, shared)
        self.pivots.n_evaluations += m * new
        check_finite(X)
        H = np.empty((old + new, old + new))
        H[:old, :old], H[:, old:], H[old:, :old] = self.H, X, X[:old].T
        self.A, self.H = A, H
        self.candidates = np.concatenate([self.candidates, proposals])
        self.started = np.concatenate([self.started, self.residual[proposals]])

    def _take(self, chosen: np.ndarray) -> int:
        """Make these candidates pivots; how many were."""
        k, places = len(self.pivots), self.candidates[chosen]
        kept, L = self.pivots.add(self.rows.indices[places])
        self.taken[places] = True
        b = len(kept)
        # Another order of rounding has left nothing of those that were not kept.
        A = self.A[:, chosen[kept]].astype(np.float64)
        self.G = self.F[:, k : k + b]
        self.G[:] = scipy.linalg.solve_triangular(L, A.T, lower=True).T if b else 0
        self.residual -= np.vecdot(self.G, self.G)
        self._settle()
        return b


def _fits_float32(diag: np.ndarray, weights: np.ndarray) -> bool:
    """Whether weighted sums of squares neither overflow nor vanish in float32."""
    limits = np.finfo(np.float32)
    size = np.abs(diag).max(initial=0.0) ** 2 * weights.max(initial=1.0)
    return bool(limits.tiny < size * FINE**4 and size * len(diag) < limits.max)


def _factor_rows(
    block: Block, evaluate: Callable, root: np.ndarray, F: np.ndarray
) -> np.ndarray:
    """A tile's factor rows, written into F, and their squared norms."""
    rows = arrays.host_values(evaluate(arrays.widen(block.X))) @ root
    F[block.start : block.start + len(rows), : rows.shape[1]] = rows
    return np.vecdot(rows, rows)


def _candidate_rows(
    block: Block,
    evaluate: Callable,
    wide: bool,
    F: np.ndarray,
    F_new: np.ndarray,
    before: tuple[np.ndarray, ...],
    weights: np.ndarray,
    out: np.ndarray,
) -> np.ndarray:
    """A tile's rows of A, written into `out`, and its part of H's new columns."""
    K = arrays.to_host(evaluate(arrays.widen(block.X) if wide else block.X))
    tile = slice(block.start, block.start + len(K))
    A, columns, G, G_old = before
    rows, old = out[tile], len(columns)
    if old:
        rows[:, :old] = A[tile][:, columns] - G[tile] @ G_old
    rows[:, old:] = K - F[tile] @ F_new
    w = weights[tile, None].astype(rows.dtype)
    return (rows.T @ (w * rows[:, old:])).astype(np.float64)
