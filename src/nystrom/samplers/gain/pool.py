"""A weighted pool of rows that stands for all rows, and pivots ranked by their gain.

A pivot j takes Σᵢ rᵢⱼ²/rⱼⱼ off the trace error, r being what earlier pivots left of K.
Over all rows that sum is out of reach; over a pool of rows drawn with probability p and
weighted by 1/p it is estimated without bias, for many proposals at once, by two matrix
products.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ... import _arrays as arrays
from ..._arrays import Array
from ...column_blocks import ColumnBlocks
from ...columns import Columns, diag64
from ...engines.summing import Tree
from ...precision import FINE, pool_fits_float32, residual_unit, squares_power
from ...refusals import check_finite
from ..choosing import Work
from ..pivoting.pivots import Pivots
from .device_part import DevicePart
from .part import Part, bounds, narrowed
from .ranking import best_pivots

#: float64 rows that are worth ranking in float32.
WORTH_NARROWING = 512


class Pool:
    """Weighted rows with their factor rows for the pivots so far, and proposals.

    Row indices[j] of the data stands for weights[j] rows. Proposals that were ranked
    but not taken stay for the next block: what is left of them is brought up to date by
    b columns instead of all k.

    Pivots that are taken here are factored in the pool's own precision; `pivots` gets
    them together, by `hand_over`.
    """

    def __init__(
        self,
        work: Work,
        indices: np.ndarray,
        weights: np.ndarray,
        pivots: Pivots,
        capacity: int,
        *,
        points: Any = None,
        wide: bool = False,
    ) -> None:
        self.kernel, self.ledger = work.kernel, work.ledger
        self.engine = work.engine.local
        self.indices, self.weights, self.pivots = indices, weights, pivots
        self.points = work.source.take(indices) if points is None else points
        self.residual = arrays.to_host(diag64(self.kernel, self.points)).copy()
        check_finite(self.residual)
        self.ledger.evaluated(len(indices))
        self.whole = float(weights @ self.residual)
        # float64 may be needed later, and then all is done again.
        narrow = Columns(self.kernel, arrays.slice_rows(self.points, 0, 1)).narrow
        worth = narrow or (
            len(self) >= WORTH_NARROWING and not self.kernel.traits.costly
        )
        worth = worth and pool_fits_float32(self.residual, weights)
        self.wide = wide or not worth
        self.rows = self.points
        if not self.wide:
            self.rows = narrowed(self.kernel, self.points, self.ledger)
        unit = pivots.rounding_unit(capacity)
        unit = unit if self.wide else max(unit, residual_unit(np.float32, capacity))
        self.floor = unit * np.abs(self.residual)
        self.taken = np.isin(indices, pivots.indices)
        self.new = np.empty(0, dtype=np.intp)  # places of pivots not handed over yet
        there = not arrays.on_host(self.kernel.like(self.rows))
        self.cuts = np.array([0, len(self)]) if there else bounds(len(indices))
        make: Any = DevicePart if there else Part
        # Gains are compared with each other alone. Their sums of squares neither
        # overflow nor vanish if rows of huge or tiny k(x, x) count for less or more.
        counted = np.ldexp(weights, squares_power(self.residual))
        self.parts = [
            make(
                self.kernel,
                arrays.slice_rows(self.rows, start, stop),
                counted[start:stop],
                capacity,
                self.wide,
            )
            for start, stop in pairwise(self.cuts)
        ]
        if len(pivots):
            self._fill()
        self._settle()
        self.forget()

    def _fill(self) -> None:
        """The factor of the pivots so far, in float64: what is left is small by now."""
        columns, root = self.pivots.columns, ColumnBlocks.of(self.pivots.root)

        def fill(numbered: tuple[int, Part]) -> np.ndarray:
            i, part = numbered
            X = arrays.slice_rows(self.points, self.cuts[i], self.cuts[i + 1])
            with np.errstate(over="ignore", invalid="ignore"):  # refused below
                return part.fill(root.product(columns.float64(X)))

        work = len(self) * len(self.pivots) ** 2
        shares = self.engine.each(fill, list(enumerate(self.parts)), work)
        self.residual -= np.concatenate(shares)
        check_finite(self.residual)
        self.ledger.evaluated(len(self) * len(self.pivots))

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def n_pivots(self) -> int:
        """Pivots so far, also those that are not handed over."""
        return len(self.pivots) + len(self.new)

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
        self.candidates = np.empty(0, dtype=np.intp)  # places in the pool
        self.kept = np.empty(0, dtype=np.intp)  # the candidates' rows of A
        self.H = np.empty((0, 0))  # A diag(ω) Aᵀ
        self.started = np.empty(0)  # r of each candidate when it was proposed
        for each in self.parts:
            each.forget()

    def choose(self, proposals: np.ndarray, size: int, keep: int) -> int:
        """Take up to `size` pivots from old and new proposals, by gain; how many."""
        self._propose(proposals)
        P = arrays.host_values(self._at(self.candidates, lambda p: p.A))
        floor = self.floor[self.candidates]
        ranked = best_pivots(P, self.H, self.started, floor, size)
        taken = len(ranked.chosen)
        if taken == 0:  # what seemed left of the proposals was rounding
            self.residual[self.candidates] = 0.0
            self.forget()
            return 0
        self._take(ranked.chosen, ranked.L)
        # Those with the largest gain stay as proposals.
        best = np.argsort(-ranked.gains, kind="stable")[:keep]
        best = best[ranked.gains[best] > 0]
        self.kept, self.H = best, ranked.H[np.ix_(best, best)]
        self.candidates, self.started = self.candidates[best], self.started[best]
        return taken

    def _propose(self, proposals: np.ndarray) -> None:
        """A and H of the candidates there are, brought up to date, and of new ones."""
        old, new, k = len(self.candidates), len(proposals), self.n_pivots
        X = arrays.take_rows(self.rows, proposals)
        F_new = self._at(proposals, lambda p: p.F[:k, :]).T
        G_kept = self._at(self.candidates, lambda p: p.G).T
        tree = Tree()
        work = len(self) * (new * (k + old + new) + math.prod(G_kept.shape))
        for share in self.engine.each(
            lambda p: p.propose(X, F_new, self.kept, G_kept), self.parts, work
        ):
            tree.push(share)
        columns = tree.total()
        self.ledger.evaluated(len(self) * new)
        check_finite(columns)
        H = np.empty((old + new, old + new))
        H[:old, :old], H[:, old:], H[old:, :old] = self.H, columns, columns[:old].T
        self.H = H
        self.candidates = np.concatenate([self.candidates, proposals])
        self.started = np.concatenate([self.started, self.residual[proposals]])

    def _take(self, chosen: np.ndarray, L: np.ndarray) -> None:
        """Make these candidates pivots; LLᵀ is what was left of K at them."""
        k, places = self.n_pivots, self.candidates[chosen]
        self.new = np.concatenate([self.new, places])
        self.taken[places] = True
        work = len(self) * L.size
        shares = self.engine.each(lambda p: p.take(chosen, L, k), self.parts, work)
        self.residual -= np.concatenate(shares)
        self._settle()

    def hand_over(self) -> np.ndarray:
        """Give the new pivots to `pivots`; the row numbers of those it refuses.

        Then the pool's factor is of pivots that are none: make another.
        """
        places, self.new = self.new, self.new[:0]
        new = self.indices[places]
        kept = self.pivots.add(new, arrays.take_rows(self.points, places))
        return np.delete(new, kept)

    def pass_over(self, rows: np.ndarray) -> None:
        """Never take these rows."""
        self.taken |= np.isin(self.indices, rows)
        self._settle()

    def _at(self, places: np.ndarray, rows: Callable[[Any], Array]) -> Array:
        """Columns, at these rows of the pool, of arrays that have one for each."""
        if len(self.parts) == 1:
            return arrays.take_columns(rows(self.parts[0]), places)
        found = [rows(each) for each in self.parts]
        out = np.empty((len(found[0]), len(places)), found[0].dtype)
        for array, (start, stop) in zip(found, pairwise(self.cuts), strict=True):
            inside = np.flatnonzero((places >= start) & (places < stop))
            out[:, inside] = np.take(array, places[inside] - start, axis=1)
        return out
