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
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from ...engines.progress import expect, parts
from ...landmarks import Landmarks
from ...randomness import Purpose, first_rows, race, uniforms
from ...sources import Block, Source
from ...sources import weights as row_weights
from ..choosing import Work
from ..draws import as_landmarks, uniformly
from ..goal import Size
from ..pivoting.growth import Growing, Growth
from ..pivoting.pivots import Pivots
from ..racing import ByResidual, Race, Winners, race_by_residual
from ..sifting import Part, most_rows, some_of
from .membership import Seen, chances_by_score, members
from .plan import DRAWING, REFRESHING_ALL, Plan
from .pool import Pool

#: After this share of the landmarks the residual of all rows draws a new pool.
FIRST_REFRESH = 0.25
#: Rows that are scored at most: a pool has hundreds of times fewer, and what it misses
#: the first refresh finds.
MOST_SCORED = 2**20
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
        self.seen: Seen | None = None  # by the last pass over all rows
        self.fresh: list[Part] = []  # rows for each look

    def grow(self, size: int) -> None:
        """Pivots until there are `size`, or nothing is left."""
        self._plan_for(size)
        begun, told = len(self.pivots), self.work.engine.progress
        shares = (FIRST_REFRESH, *LOOKS) if begun == 0 else LOOKS
        work = [self.plan.passes_on_pools(*ends) for ends in pairwise((0, *shares, 1))]
        refreshing = [REFRESHING_ALL * (share == FIRST_REFRESH) for share in shares]
        drawing, *steps, last = parts(
            told, DRAWING, *map(sum, zip(work, (*refreshing, 0.0), strict=True))
        )
        with drawing:
            self._draw_to_begin()
        for i, share in enumerate(shares):
            if len(self.pool) == self.source.n_rows:
                break  # no row is missing
            with steps[i]:
                advance, refresh = parts(told, work[i], refreshing[i])
                with advance:
                    self._advance(begun + math.ceil(share * (size - begun)))
                if self.exhausted:
                    return
                if share == FIRST_REFRESH or self._stale(LOOKS.index(share)):
                    with refresh:
                        expect(told, 1)
                        self._refresh()
        with last:
            self._advance(size)

    def error(self, size: int) -> float:
        """tr(K − K̃), by a pass that draws the next pool, too."""
        self._plan_for(size)
        name = f"trace error at {len(self.pivots)} landmarks"
        self.seen = self._look_at(self.source, name)
        return self.seen.error

    def _plan_for(self, size: int) -> None:
        traits = self.work.kernel.traits
        # A function of the user's own may be dear; looking a value up is not.
        own = traits.psd is None and not traits.by_number
        most = min(MOST_SCORED, most_rows(self.source))
        self.plan = Plan(self.source.n_rows, size, traits.costly or own, most)

    def _draw_to_begin(self) -> None:
        """The pool to begin with; or to go on with, where there are pivots."""
        if len(self.pivots):
            assert self.seen is not None
            self._draw_by_residual(self.seen)
            return
        if self.plan.scores or not self.plan.whole_pool:
            self._fetch()
        self._draw_first()

    def _fetch(self) -> None:
        """Rows that will be scored or looked at: fetched in one go, if they must be."""
        n, seed, plan = self.source.n_rows, self.work.seed, self.plan
        scored = plan.scored_rows if plan.scores else 0
        sizes = [scored if scored < n else 0]
        sizes += [min(n, int(np.clip(n // 40, *FRESH_ROWS)))] * len(LOOKS)
        rows = [
            np.sort(first_rows(seed, Purpose.FRESH, n, size, level))
            for level, size in enumerate(sizes)
        ]
        engine, ledger = self.work.engine, self.work.ledger
        held = Part.of(self.source, reduce(np.union1d, rows), engine, ledger)
        self.scored, *self.fresh = (held.part(numbers) for numbers in rows)

    def _draw_first(self) -> None:
        """The first pool, drawn mostly by score."""
        plan, source = self.plan, self.source
        if plan.scores and plan.scored_rows < plan.n_rows:
            chances = self._by_score(self.scored.renumbered())
            self._draw(chances, self.scored)
            return
        # Also where the pool is to hold all rows: the scores of a kernel that makes no
        # promise show whether it is indefinite.
        chances = self._by_score(source)
        self._draw(None if plan.whole_pool else chances, source)

    def _by_score(self, source: Source) -> np.ndarray:
        return chances_by_score(replace(self.work, source=source), self.plan)

    @property
    def _race(self) -> Race:
        """For a pool; the first that loses tells how likely the others were."""
        most = self.plan.pool_size + 1
        return Race(self.work.seed, Purpose.POOL, round=self.round, most=most)

    def _draw(self, chances: np.ndarray | None, rows: Source) -> None:
        """A pool of rows whose chances are known; None: all of them."""
        m = rows.n_rows
        if chances is None:
            block = Block(0, None, rows.weights)
            chances = np.ones(m)
            race = replace(self._race, most=None)
        else:
            block = Block(0, None, rows.weights, numbers=rows.numbers(0, m))
            race = self._race
        self._draw_from(race.run(block, chances, False), m, rows)

    def _draw_from(self, winners: Winners, n_rows: int, rows: Source) -> None:
        """The pool of the winners among so many rows."""
        winners, p = members(winners, self.plan.pool_size)
        weights = row_weights.weighted(
            winners.weights, float(self.source.n_rows) / n_rows / p
        )
        self._make_pool(winners.numbers, weights, winners.rows_of(rows))
        self.begun = len(self.pivots)
        self.alive = int(np.count_nonzero(self.pool.residual))
        self.round += 1

    def _make_pool(self, indices: np.ndarray, weights: np.ndarray, points: Any) -> None:
        if "pool" in vars(self):
            del self.pool  # its memory is needed
        capacity = min(self.plan.n_landmarks, self.source.n_rows)
        self.pool = Pool(
            self.work,
            indices,
            weights,
            self.pivots,
            capacity,
            points=points,
            wide=self.wide,
        )
        self.pool.pass_over(self.refused)

    def _remake_pool(self) -> None:
        """The same pool for the pivots there are by now."""
        self._make_pool(self.pool.indices, self.pool.weights, self.pool.points)

    def _look_at(self, rows: Source, name: str) -> Seen:
        """One pass: how much is left, and who would be in a pool drawn by it."""
        winners, (error, n_rows) = race_by_residual(
            self.pivots.prepared(rows),
            rows,
            ByResidual(),
            self._race,
            engine=self.work.engine,
            name=name,
        )
        everything = rows is self.source
        k = len(self.pivots)
        return Seen(winners, float(error), int(n_rows), k, everything)

    def _draw_by_residual(self, seen: Seen) -> bool:
        """A pool drawn by what is left, if anything is; whether that is so."""
        self.by_all_rows = seen.all_rows
        found = len(seen.winners) > 0
        if found:
            self._draw_from(seen.winners, seen.n_rows, self.source)
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
        stream = (self.work.seed, Purpose.REFRESH, self.round)
        engine, ledger = self.work.engine, self.work.ledger
        rows = some_of(self.source, affordable, *stream, engine=engine, ledger=ledger)
        self.refresh_evaluations += min(n, affordable) * (k + 1)
        return self._draw_by_residual(
            self._look_at(rows, f"residuals at {k} landmarks")
        )

    def _stale(self, look: int) -> bool:
        """Whether fresh rows leave more than the pool says there is."""
        if not self.fresh:
            self._fetch()
        rows = self.fresh[look]
        left = self.pivots.left_of(rows.rows(0, rows.n_rows))
        left = row_weights.weighted(rows.weights, left)
        return bool(left.mean() * self.source.n_rows > STALE * self.pool.left)

    def _advance(self, stop: int) -> None:
        """Pivots until there are `stop` or nothing is left."""
        # Ends: a choice has pivots or leaves nothing of its proposals, a pivot that is
        # not kept is never one again, and a pool that was dry without a pivot is the
        # last.
        begun, told = self.pool.n_pivots, self.work.engine.progress
        expect(told, 1)
        while not self.exhausted:
            told(f"landmarks up to {stop}", self.pool.n_pivots - begun, stop - begun)
            if self.pool.n_pivots >= stop:
                if self._hand_over():
                    return
                continue
            if self.pool.too_fine:
                self.wide = True
                if self._hand_over():  # else there is a new pool already
                    self._remake_pool()
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

    def _hand_over(self) -> bool:
        """The pool's pivots become landmarks; whether all of them have.

        In float64 nothing may be left of one that the pool took. It is never taken
        again, or this might go on for ever.
        """
        refused = self.pool.hand_over()
        if not len(refused):
            return True
        self.refused = np.concatenate([self.refused, refused])
        self._remake_pool()
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

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import samplers, select_landmarks
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> options = {"n_landmarks": 20, "random_state": 0}
    >>> chosen = select_landmarks(X, sampler=samplers.GainPivoted(), **options)
    >>> len(chosen), chosen.sampler
    (20, 'auto')
    """

    name = "auto"
    growth: ClassVar[Callable[..., Growth]] = ByGain

    def choose(self, work: Work, goal: Any) -> Landmarks:
        costly = work.kernel.traits.costly and isinstance(goal, Size)
        if costly and work.source.n_rows <= 2 * goal.n_landmarks:
            # Ranking would take more evaluations than all of K.
            drawn = uniformly(work.source, goal.n_landmarks, work.seed)
            return as_landmarks(drawn, work.kernel, work.source, "uniform")
        return super().choose(work, goal)
