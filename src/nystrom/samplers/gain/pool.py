"""A weighted pool of rows that stands for all rows, and pivots ranked by their gain.

A pivot j takes Σᵢ rᵢⱼ²/rⱼⱼ off the trace error, r being what earlier pivots left of K.
Over all rows that sum is out of reach; over a pool of rows drawn with probability p and
weighted by 1/p it is estimated without bias, for many proposals at once, by two matrix
products.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from ... import _arrays as arrays
from ...columns import Columns, diagonal
from ...engines import TILE, SumSink
from ...precision import FINE, pool_fits_float32, residual_unit
from ...refusals import check_finite
from ...sinks import ArraySink, SplitSink
from ...sources import Block, Held
from ..choosing import Work
from ..pivoting.pivots import Pivots
from .ranking import best_pivots


class Pool:
    """Weighted rows with their factor rows for the pivots so far, and proposals.

    Row indices[j] of the data stands for weights[j] rows. Proposals that were ranked
    but not taken stay for the next block: what is left of them is brought up to date by
    b columns instead of all k.
    """

    def __init__(
        self,
        work: Work,
        indices: np.ndarray,
        weights: np.ndarray,
        pivots: Pivots,
        capacity: int,
        *,
        wide: bool = False,
    ) -> None:
        self.kernel, self.ledger = work.kernel, work.ledger
        self.engine = work.engine.local.quiet()
        self.indices, self.weights, self.pivots = indices, weights, pivots
        self.held = Held(work.source.take(indices), weights)
        m, k = len(indices), len(pivots)
        kxx = diagonal(self.kernel, self.held, engine=self.engine)
        self.ledger.evaluated(m)
        self.whole = float(weights @ kxx)
        narrow = Columns(self.kernel, self.held.points).narrow
        self.wide = wide or not narrow or not pool_fits_float32(kxx, weights)
        unit = pivots.rounding_unit(capacity)
        unit = unit if self.wide else max(unit, residual_unit(np.float32, capacity))
        self.floor = unit * np.abs(kxx)
        self.F = np.empty((m, capacity), np.float64 if self.wide else np.float32)
        self.residual = kxx
        if k and m:
            self.residual = kxx - self._fill_factor(k)
        self.taken = np.isin(indices, pivots.indices)
        self._settle()
        self.forget()

    def _fill_factor(self, k: int) -> np.ndarray:
        """Factor rows of all rows for the first k pivots; their squared norms."""
        norms = ArraySink((len(self),))
        sink = SplitSink(ArraySink.into(self.F[:, :k]), norms)
        shared = (self.pivots.columns, self.pivots.root)
        self.engine.map(_factor_rows, self.held, sink, shared, "factor of the pool")
        self.ledger.evaluated(len(self) * k)
        return norms.array

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def left(self) -> float:
        """The trace error as the pool estimates it."""
        return float(self.weights @ self.residual)

    @property
    def is_dry(self) -> bool:
        """Whether nothing is left of any row."""
        return not self.residual.any()

    @property
    def too_fine(self) -> bool:
        """Whether what is left is too little for float32."""
        return not self.wide and self.left < FINE * self.whole

    def chances(self) -> np.ndarray:
        """What each row may count for as a new proposal: ω·r."""
        w = self.weights * self.residual
        w[self.candidates] = 0
        return w

    def _settle(self) -> None:
        self.residual[(self.residual < self.floor) | self.taken] = 0.0

    def forget(self) -> None:
        """Drop all proposals."""
        m = len(self)
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
        m, old, k = len(self), len(self.candidates), len(self.pivots)
        new = len(proposals)
        columns = Columns(self.kernel, self.held.take(proposals), self.wide)
        A, sums = np.empty((m, old + new), self.F.dtype), SumSink(TILE)
        before = (self.A, self.columns, self.G, self.G[self.candidates].T)
        F = self.F[:, :k]
        shared = (columns, F, F[proposals].T, before)
        sink = SplitSink(ArraySink.into(A), sums)
        self.engine.map(_candidate_rows, self.held, sink, shared, "proposals")
        X = sums.total()
        self.ledger.evaluated(m * new)
        check_finite(X)
        H = np.empty((old + new, old + new))
        H[:old, :old], H[:, old:], H[old:, :old] = self.H, X, X[:old].T
        self.A, self.H = A, H
        self.candidates = np.concatenate([self.candidates, proposals])
        self.started = np.concatenate([self.started, self.residual[proposals]])

    def _take(self, chosen: np.ndarray) -> int:
        """Make these candidates pivots; how many were."""
        k, places = len(self.pivots), self.candidates[chosen]
        kept, L = self.pivots.add(self.indices[places], self.held.take(places))
        self.taken[places] = True
        b = len(kept)
        # Another order of rounding has left nothing of those that were not kept.
        A = self.A[:, chosen[kept]].astype(np.float64)
        self.G = self.F[:, k : k + b]
        self.G[:] = scipy.linalg.solve_triangular(L, A.T, lower=True).T if b else 0
        self.residual -= np.vecdot(self.G, self.G)
        self._settle()
        return b


def _factor_rows(
    block: Block, columns: Columns, root: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A tile's factor rows, and their squared norms."""
    rows = columns.host(block.X) @ root
    return rows, np.vecdot(rows, rows)


def _candidate_rows(
    block: Block,
    columns: Columns,
    F: np.ndarray,
    F_new: np.ndarray,
    before: tuple[np.ndarray, ...],
) -> tuple[np.ndarray, np.ndarray]:
    """A tile's rows of A, and its part of H's new columns."""
    K = arrays.to_host(columns(block.X))
    tile = slice(block.start, block.start + len(K))
    A, places, G, G_old = before
    old = len(places)
    rows = np.empty((len(K), old + K.shape[1]), F.dtype)
    if old:
        rows[:, :old] = A[tile][:, places] - G[tile] @ G_old
    rows[:, old:] = K - F[tile] @ F_new
    w = block.weights[:, None].astype(rows.dtype)
    return rows, (rows.T @ (w * rows[:, old:])).astype(np.float64)
