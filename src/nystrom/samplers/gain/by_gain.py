"""The default sampler: pivots ranked by gain on pools of rows drawn by leverage score.

Independent draws repeat themselves, near-copies having their share of the score each;
pivots drawn by what is left of k(x, x) go to outliers. Here the recursion's scores only
draw a weighted pool of rows; on the pool, proposals are ranked by what they take off
the trace error. Once a quarter of the landmarks is chosen, a pass over all rows draws a
new pool by what is left, and later ones follow if fresh rows show that a pool no longer
stands for all rows. docs/choosing.md has the rule and the experiments behind it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...columns import diagonal
from ...landmarks import Landmarks
from ...randomness import Purpose, race, uniforms
from ...refusals import check_finite
from ...sources import Source, Subset
from ...sources import weights as row_weights
from ..choosing import Work
from ..draws import as_landmarks, probabilities_with_sum, uniformly
from ..goal import Size
from ..pivoting.growth import Growing
from ..pivoting.pivots import Pivots
from ..recursive.levels import climb
from ..recursive.rules import PracticalSize
from .plan import Plan
from .pool import Pool

#: The share of a pool that is drawn by k(x, x) alone: it bounds the pool's weights.
BY_DIAGONAL = 0.1
#: After this share of the landmarks the residual of all rows draws a new pool.
FIRST_REFRESH = 0.25
#: After these shares fresh rows are held against the pool …
LOOKS = (0.5, 0.75, 0.9)
#: … and a new one is drawn if they leave so many times more than it says.
STALE = 1.5
#: Fresh rows to look at: one in forty of all, within these bounds.
FRESH_ROWS = (256, 2000)


class ByGain:
    """Pivots by gain, as many as asked for, and more later."""

    pool: Pool  # drawn first of all
    plan: Plan

    def __init__(self, work: Work) -> None:
        self.work, self.source = work, work.source
        self.pivots = Pivots(work)
        self.exhausted = False  # all rows are within rounding of the pivots' span
        self.by_all_rows = False  # the pool was drawn by the residual of all rows
        self.wide = False  # what is left is too little for float32
        self.round = 0  # of draws
        self.begun = self.alive = 0  # pivots, and rows with something left, at a draw
        self.refresh_evaluations = 0
        self.refused = np.empty(0, dtype=np.intp)  # rows that are none after all

    def grow(self, size: int, left: np.ndarray | None = None) -> None:
        """Pivots until there are `size`, or nothing is left.

        `left` is what the pivots so far leave of each row, where that is known already.
        """
        traits = self.work.kernel.traits
        # A function of the user's own may be dear; looking a value up is not.
        own = traits.psd is None and not traits.by_number
        self.plan = Plan(self.source.n_rows, size, traits.costly or own)
        begun = len(self.pivots)
        if begun == 0:
            self._draw_first()
            shares: tuple[float, ...] = (FIRST_REFRESH, *LOOKS)
        else:
            assert left is not None
            self._draw_by_residual(left, None)
            shares = LOOKS
        for share in shares:
            if len(self.pool) == self.source.n_rows:
                break  # no row is missing
            self._advance(begun + math.ceil(share * (size - begun)))
            if self.exhausted:
                return
            if share == FIRST_REFRESH or self._stale():
                self._refresh()
        self._advance(size)

    def _draw_first(self) -> None:
        """The first pool, drawn mostly by score."""
        among, plan = None, self.plan
        if plan.scores and plan.scored_rows < plan.n_rows:
            among = self._some_rows(plan.scored_rows)
        self._draw(self._chances_by_score(among), among)

    def _some_rows(self, size: int) -> np.ndarray:
        n = self.source.n_rows
        u = uniforms(self.work.seed, Purpose.FRESH, 0, n, round=self.round)
        self.round += 1
        return np.sort(race(None, u, size)[0])

    def _rows_of(self, among: np.ndarray | None) -> Source:
        return self.source if among is None else Subset(self.source, among)

    def _chances_by_score(self, among: np.ndarray | None) -> np.ndarray:
        """How likely each of these rows is for a pool: mostly its score."""
        work = replace(self.work, source=self._rows_of(among))
        kxx = diagonal(work.kernel, work.source, engine=work.engine)
        work.ledger.evaluated(work.source.n_rows)
        whole = row_weights.weighted(work.source.weights, kxx)
        check_finite(whole)
        if not self.plan.scores and work.kernel.traits.psd:
            return whole
        top = climb(work, PracticalSize(self.plan.level_size))
        assert top is not None  # practical levels halve at least once
        scores = np.minimum(1.0, top.scores)
        if not scores.any() or not whole.any():
            return whole
        by_score = (1 - BY_DIAGONAL) * scores / scores.sum()
        return by_score + BY_DIAGONAL * whole / whole.sum()

    def _draw(self, chances: np.ndarray, among: np.ndarray | None) -> None:
        """A pool drawn by these chances; `among` are the rows they are for."""
        n, m = self.source.n_rows, len(chances)
        p = np.ones(m)
        if not self.plan.whole_pool or m < n:
            p = probabilities_with_sum(chances, self.plan.pool_size)
        u = uniforms(self.work.seed, Purpose.POOL, 0, n, round=self.round)
        kept = np.flatnonzero((u if among is None else u[among]) < p)
        indices = kept if among is None else among[kept]
        weights = n / m / p[kept]
        weights = row_weights.weighted(self.source.weights_of(indices), weights)
        self._make_pool(indices, weights)
        self.begun = len(self.pivots)
        self.alive = int(np.count_nonzero(self.pool.residual))
        self.round += 1

    def _make_pool(self, indices: np.ndarray, weights: np.ndarray) -> None:
        if "pool" in vars(self):
            del self.pool  # its memory is needed
        capacity = min(self.plan.n_landmarks, self.source.n_rows)
        self.pool = Pool(
            self.work, indices, weights, self.pivots, capacity, wide=self.wide
        )
        self.pool.pass_over(self.refused)

    def _draw_by_residual(self, left: np.ndarray, among: np.ndarray | None) -> bool:
        """A pool drawn by what is left, if anything is; whether that is so."""
        left = row_weights.weighted(self._rows_of(among).weights, left)
        self.by_all_rows = among is None
        found = bool(left.any())
        if found:
            self._draw(left, among)
        elif self.by_all_rows:
            self.exhausted = True
        return found

    def _refresh(self) -> bool:
        """A pool by what is left of all rows, or of as many as are affordable.

        Whether there is one: not if that are too few, or nothing is left of them.
        """
        n, k = self.source.n_rows, len(self.pivots)
        allowed = self.plan.refresh_evaluations - self.refresh_evaluations
        affordable = n if self.pool.is_dry else int(allowed / (k + 1))
        if affordable < n / 10:
            return False
        among = self._some_rows(affordable) if affordable < n else None
        rows = self._rows_of(among)
        name = f"residuals at {k} landmarks"
        self.refresh_evaluations += rows.n_rows * (k + 1)
        return self._draw_by_residual(
            self.pivots.residuals(rows, self.work.engine, name), among
        )

    def _stale(self) -> bool:
        """Whether fresh rows leave more than the pool says there is."""
        n = self.source.n_rows
        size = int(np.clip(n // 40, *FRESH_ROWS))
        rows = self._some_rows(min(n, size))
        left = self.pivots.left_of(self.source.take(rows))
        left = row_weights.weighted(self.source.weights_of(rows), left)
        return bool(left.mean() * n > STALE * self.pool.left)

    def _advance(self, stop: int) -> None:
        """Pivots until there are `stop` or nothing is left."""
        # Ends: a choice has pivots or leaves nothing of its proposals, a pivot that is
        # not kept is never one again, and a pool that was dry without a pivot is the
        # last.
        while not self.exhausted:
            if self.pool.n_pivots >= stop:
                if self._hand_over():
                    return
                continue
            if self.pool.too_fine:
                self.wide = True
                if self._hand_over():  # else there is a new pool already
                    self._make_pool(self.pool.indices, self.pool.weights)
            chances = self.pool.chances()
            if not chances.any():  # old proposals are all there is, if anything
                self.pool.forget()
                chances = self.pool.chances()
            if not chances.any():
                if self._hand_over():
                    self._replace_dry_pool()
                continue
            self._choose(chances, stop - self.pool.n_pivots)

    def _choose(self, chances: np.ndarray, most: int) -> None:
        """At most one block of pivots, from proposals drawn by these chances."""
        size = min(self.plan.block, most)
        new, old = self.plan.n_proposals(size)
        u = uniforms(self.work.seed, Purpose.PROPOSE, 0, len(chances), round=self.round)
        self.round += 1
        proposals, _ = race(chances, u, new)
        self.pool.choose(proposals, size, old)
        self.work.engine.progress(
            "landmarks", self.pool.n_pivots, self.plan.n_landmarks
        )

    def _hand_over(self) -> bool:
        """The pool's pivots become landmarks; whether all of them have.

        In float64 nothing may be left of one that the pool took. It is never taken
        again, or this might go on for ever.
        """
        refused = self.pool.hand_over()
        if not len(refused):
            return True
        self.refused = np.concatenate([self.refused, refused])
        self._make_pool(self.pool.indices, self.pool.weights)
        return False

    def _replace_dry_pool(self) -> None:
        """A dry pool is not a rank found: look at all rows, unless they are in it."""
        in_vain = self.alive < self.plan.block or len(self.pivots) == self.begun
        if len(self.pool) == self.source.n_rows:
            self.exhausted = True
        elif self.by_all_rows and in_vain:
            # The residual of all rows drew this pool, and all but a few of its rows
            # were rounding: there is nothing more to find. (Few pivots from many rows
            # are another matter: copies, which may have kept a rare row out.)
            self.exhausted = True
        elif not self._refresh():
            # Weights may vanish that residuals do not: without a new pool it ends, too.
            self.exhausted = True


@dataclass(frozen=True)
class GainPivoted(Growing):
    """Gain-pivoted ridge leverage scores: what "auto" stands for.

    No options: how large levels, pools and blocks are follows from the numbers of rows
    and landmarks, and whether a pool is drawn anew from what fresh rows show. No
    theorem covers the choice by gain; for guarantees use `Recursive`.
    """

    name = "auto"
    growth = ByGain

    def choose(self, work: Work, goal: Any) -> Landmarks:
        costly = work.kernel.traits.costly and isinstance(goal, Size)
        if costly and work.source.n_rows <= 2 * goal.n_landmarks:
            # Ranking would take more evaluations than all of K.
            drawn = uniformly(work.source, goal.n_landmarks, work.seed)
            return as_landmarks(drawn, work.kernel, work.source, "uniform")
        return super().choose(work, goal)
