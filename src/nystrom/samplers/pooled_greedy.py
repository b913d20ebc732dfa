"""The default sampler: pivots ranked by gain on pools drawn by leverage score.

Approximate scores draw a weighted pool; on the pool, proposals are ranked by how
much they lower the trace error. After a quarter of the landmarks a pass over all
rows draws a new pool by residual; later pools follow if validation rows show that a
pool is stale. See docs/sampler_design.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from sklearn import get_config

from .._random import Purpose, Stream
from .._validation import check_finite
from ..sources import Block, Source, Subset
from ..sources.base import multiply_weights
from .base import SamplingProblem
from .pivoting import GrowingSampler
from .pool import RowPool
from .recursive import PracticalSize, run_recursion
from .weighted_sampling import (
    KeyedSampler,
    NumberedSubset,
    WeightedSample,
    max_listed_rows,
)

#: Kernel evaluations of the recursion per row and row of a level, about.
EVALUATIONS_PER_LEVEL_ROW = 2.6
#: Kernel evaluations that scores and refreshes may take, as shares of n·s where n is
#: large, and of s² more, which is what keeps pools fresh where n is small.
SCORING_BUDGET, REFRESH_BUDGET = (0.05, 10), (0.3, 50)
#: Blocks of pivots; each has at least 16.
N_PIVOT_BLOCKS, MIN_BLOCK_PIVOTS = 12, 16
#: New proposals per pivot, and old ones kept.
NEW_PROPOSALS_PER_PIVOT, OLD_PROPOSALS_PER_PIVOT = 3, 2
#: A pool is drawn by score where there are more rows than so many pools of them.
MIN_POOLS_TO_SCORE = 16
#: So few rows are all proposed at once.
MAX_SINGLE_BLOCK_ROWS = 256
#: So many rows are a pool as they are: drawing one costs more than it saves.
MAX_WHOLE_POOL_ROWS = 2048


class PoolPlan:
    """Sizes and budgets to choose `n_landmarks` from `n_rows`.

    With `is_costly` an evaluation may cost more than all else; `max_listed_rows` are
    the rows that may be listed.
    """

    def __init__(
        self,
        n_rows: int,
        n_landmarks: int,
        is_costly: bool = False,
        max_listed_rows: int = 2**20,
    ) -> None:
        n, s = n_rows, n_landmarks
        self.n_rows, self.n_landmarks = n, s
        # Rows in a pool: more where passes over all rows cost more than the pool.
        per_landmark = 6 if n < 50 * s else 8 if n < 500 * s else 12
        # The pool's factor must fit scikit-learn's working memory.
        memory = get_config()["working_memory"] * 2**20 / (8 * s * s)
        self.pool_size = int(max(2, min(per_landmark, memory)) * s)
        # The pool may as well hold all rows.
        min_rows = 64 if is_costly else MAX_WHOLE_POOL_ROWS
        self.pool_has_all_rows = n <= max(1.2 * self.pool_size, min_rows)
        # A first pool that holds a good part of the rows as they come misses little,
        # and what it misses the first refresh finds; else it is drawn by score.
        self.draws_by_score = n > MIN_POOLS_TO_SCORE * self.pool_size
        # Rows per level of the recursion that scores the first pool.
        level_size = 4 * math.sqrt((n * s + s**3) / (4 * n))
        self.level_size = math.ceil(min(s, max(64, level_size)))
        # Rows that may be scored. Where few landmarks are wanted, scores for all rows
        # would cost more than all that follows; then a part of the rows has to do until
        # the first refresh.
        per_pair, per_square = SCORING_BUDGET
        affordable = (per_pair * n + per_square * s) * s
        affordable /= EVALUATIONS_PER_LEVEL_ROW * self.level_size
        # Fewer would hardly be more than the pool itself.
        n_scored = max(affordable, 4 * self.pool_size)
        self.scored_rows = int(min(n_scored, max_listed_rows))
        # Kernel evaluations that all refreshes together may take.
        per_pair, per_square = REFRESH_BUDGET
        self.refresh_evaluations = (per_pair * n + per_square * s) * s
        # Pivots that are selected together, and proposals that are kept for the next
        # block; few rows are all proposed at once.
        self.is_single_block = n <= MAX_SINGLE_BLOCK_ROWS and not is_costly
        self.block = max(MIN_BLOCK_PIVOTS, s // N_PIVOT_BLOCKS)
        self.kept_proposals = OLD_PROPOSALS_PER_PIVOT * self.block
        if self.is_single_block:
            self.block, self.kept_proposals = s, 0


#: The share of a pool that is drawn by k(x, x) alone: it bounds the pool's weights.
DIAGONAL_SHARE = 0.1


def pool_sampling_weights(problem: SamplingProblem, plan: PoolPlan) -> np.ndarray:
    """How likely each of the work's rows is for a pool: mostly its score."""
    source = problem.source
    diagonal_weights = multiply_weights(source.weights, problem.diagonal())
    check_finite(diagonal_weights)
    if not plan.draws_by_score and problem.kernel.traits.psd:
        return diagonal_weights
    top_level = run_recursion(problem, PracticalSize(plan.level_size))
    assert top_level is not None  # practical levels halve at least once
    scores = np.minimum(1.0, top_level.scores)
    if not scores.any() or not diagonal_weights.any():
        return diagonal_weights
    by_score = (1 - DIAGONAL_SHARE) * scores / scores.sum()
    return by_score + DIAGONAL_SHARE * diagonal_weights / diagonal_weights.sum()


#: After this share of the landmarks the residual of all rows draws a new pool.
FIRST_REFRESH_SHARE = 0.25
#: Rows that are scored at most: a pool has hundreds of times fewer, and what it misses
#: the first refresh finds.
MAX_SCORED_ROWS = 2**20
#: After these shares validation rows are compared with the pool …
VALIDATION_SHARES = (0.5, 0.75, 0.9)
#: … and a new one is drawn if their residual is so many times what it estimates.
MAX_RESIDUAL_RATIO = 1.5
#: Validation rows: one in forty of all, within these bounds.
VALIDATION_ROWS_RANGE = (256, 2000)


@dataclass(unsafe_hash=True)
class PooledGreedy(GrowingSampler):
    """The default sampler "auto": greedy selection from a pool drawn by leverage score.

    Candidate rows are ranked by the trace error that each one removes. Sizes of levels,
    pools and blocks follow from the numbers of rows and landmarks, so there are no
    options. No theorem covers this sampler; for a guarantee use `Recursive`.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import samplers, select_landmarks
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> options = {"n_landmarks": 20, "random_state": 0}
    >>> chosen = select_landmarks(X, sampler=samplers.PooledGreedy(), **options)
    >>> len(chosen), chosen.sampler
    (20, 'auto')
    """

    name = "auto"

    def _samples_uniformly(self, problem: SamplingProblem, size: int) -> bool:
        # Ranking would take more evaluations than all of K.
        return problem.kernel.traits.costly and problem.source.n_rows <= 2 * size

    def _set_up(self) -> None:
        self.source = self.problem.source
        self.plan: PoolPlan
        self.pool: RowPool  # drawn first of all
        self.is_drawn_from_all_rows = False  # the pool, by the residual of all rows
        self.wide = False  # residuals are too small for float32
        self.round = 0  # of draws
        self.n_pivots_at_draw = 0
        self.n_nonzero_at_draw = 0  # rows of the pool with a residual
        self.refresh_evaluations = 0
        self.rejected = np.empty(0, dtype=np.intp)  # rows that are no pivots after all
        self.validation_subsets: list[NumberedSubset] = []  # one for each check

    def grow(self, size: int) -> None:
        self._plan_for(size)
        n_begin = len(self.pivots)
        if n_begin == 0:
            self._draw_first_pool()
        else:
            self._draw_by_residual(self.next_sample, self.source, self.source.n_rows)
        first_shares = (FIRST_REFRESH_SHARE,) if n_begin == 0 else ()
        for share in (*first_shares, *VALIDATION_SHARES):
            if len(self.pool.indices) == self.source.n_rows:
                break  # no row is missing
            self._grow_to(n_begin + math.ceil(share * (size - n_begin)))
            if self.exhausted:
                return
            if share == FIRST_REFRESH_SHARE or self._is_pool_stale(share):
                self._refresh()
        self._grow_to(size)

    def error(self, size: int) -> float:
        self._plan_for(size)
        name = f"trace error at {len(self.pivots)} landmarks"
        prepared, sampler = self.pivots.residual_pass(self.source), self._pool_sampler()
        self.next_sample, (error, _) = self.problem.sample_by_residual(
            prepared, self.source, sampler, name
        )
        return float(error)

    def _plan_for(self, size: int) -> None:
        traits = self.problem.kernel.traits
        # A function of the user's own may be costly; reading a value is not.
        is_user_function = traits.psd is None and not traits.uses_row_numbers
        max_rows = min(MAX_SCORED_ROWS, max_listed_rows(self.source))
        self.plan = PoolPlan(
            self.source.n_rows, size, traits.costly or is_user_function, max_rows
        )

    def _fetch_subsets(self) -> None:
        """Rows to be scored and rows for validation, fetched together."""
        n, seed, plan = self.source.n_rows, self.problem.seed, self.plan
        n_scored = plan.scored_rows if plan.draws_by_score else 0
        n_validation = min(n, int(np.clip(n // 40, *VALIDATION_ROWS_RANGE)))
        sizes = [n_scored if n_scored < n else 0]
        sizes += [n_validation] * len(VALIDATION_SHARES)
        rows = [
            np.sort(Stream(seed, Purpose.VALIDATION, level).sample_rows(size, n))
            for level, size in enumerate(sizes)
        ]
        fetched = self.problem.fetch(reduce(np.union1d, rows))
        self.scored, *self.validation_subsets = map(fetched.subset, rows)

    def _draw_first_pool(self) -> None:
        """The first pool, drawn mostly by score; or all rows."""
        plan, problem, rows = self.plan, self.problem, self.source
        if plan.draws_by_score or not plan.pool_has_all_rows:
            self._fetch_subsets()
        scores_all_rows = not plan.draws_by_score or plan.scored_rows >= plan.n_rows
        if not scores_all_rows:
            rows = scored = self.scored
            # Known by their places among themselves.
            problem = replace(problem, source=Subset(scored.source, scored.indices))
        # Also where the pool is to hold all rows: the scores of a kernel that makes no
        # promise show whether it is indefinite.
        sampling_weights = pool_sampling_weights(problem, plan)
        m = rows.n_rows
        if scores_all_rows and plan.pool_has_all_rows:
            numbers = np.arange(m)
            self._make_pool(numbers, rows.weights, rows.take_numbered(numbers))
            return
        block = Block(0, None, rows.weights, numbers=rows.numbers(0, m))
        sample = self._pool_sampler().sample_block(block, sampling_weights, False)
        self._draw_from_sample(sample, m, rows)

    def _pool_sampler(self) -> KeyedSampler:
        """Draws a pool and one row more, whose key gives the probabilities."""
        stream = Stream(self.problem.seed, Purpose.POOL, round=self.round)
        return KeyedSampler(stream, max_rows=self.plan.pool_size + 1)

    def _draw_from_sample(
        self, sample: WeightedSample, n_rows: int, rows: Source
    ) -> None:
        """The pool of a sample from so many rows."""
        sample, p = sample.fixed_size(self.plan.pool_size)
        order = np.argsort(sample.numbers)
        sample, scale = sample.take(order), float(self.source.n_rows) / n_rows
        weights = multiply_weights(sample.weights, scale / p[order])
        self._make_pool(sample.numbers, weights, sample.points_from(rows))

    def _make_pool(
        self,
        indices: np.ndarray,
        weights: np.ndarray,
        points: Any,
        *,
        is_new: bool = True,
    ) -> None:
        """The pool of these rows, newly drawn or the same for other pivots."""
        if "pool" in vars(self):
            del self.pool  # its memory is needed
        capacity = min(self.plan.n_landmarks, self.source.n_rows)
        self.pool = RowPool(
            self.problem,
            indices,
            weights,
            self.pivots,
            capacity,
            points=points,
            wide=self.wide,
            excluded=self.rejected,
        )
        if is_new:
            self.n_pivots_at_draw = len(self.pivots)
            self.n_nonzero_at_draw = int(np.count_nonzero(self.pool.residual))
            self.round += 1

    def _remake_pool(self) -> None:
        """The same pool for the pivots there are by now."""
        pool = self.pool
        self._make_pool(pool.indices, pool.weights, pool.points, is_new=False)

    def _draw_by_residual(
        self, sample: WeightedSample, rows: Source, n_rows: int
    ) -> bool:
        """A pool drawn by residual, if any row has one; whether that is so."""
        self.is_drawn_from_all_rows = rows is self.source
        if len(sample):
            self._draw_from_sample(sample, n_rows, self.source)
        self.exhausted = self.is_drawn_from_all_rows and not len(sample)
        return len(sample) > 0

    def _refresh(self) -> bool:
        """A pool by the residual of all rows, or of as many as are affordable.

        Whether there is one: not if they are too few, or have no residual.
        """
        n, k = self.source.n_rows, len(self.pivots)
        budget = self.plan.refresh_evaluations - self.refresh_evaluations
        max_rows = int(budget / (k + 1)) if self.pool.residual.any() else n
        if max_rows < n / 10:
            return False
        stream = Stream(self.problem.seed, Purpose.REFRESH, round=self.round)
        rows = self.problem.subsample(max_rows, stream)
        self.refresh_evaluations += min(n, max_rows) * (k + 1)
        prepared, sampler = self.pivots.residual_pass(rows), self._pool_sampler()
        sample, (_, n_rows) = self.problem.sample_by_residual(
            prepared, rows, sampler, f"residuals at {k} landmarks"
        )
        return self._draw_by_residual(sample, rows, int(n_rows))

    def _is_pool_stale(self, share: float) -> bool:
        """Whether validation rows have a larger residual than the pool estimates."""
        if not self.validation_subsets:
            self._fetch_subsets()
        rows = self.validation_subsets[VALIDATION_SHARES.index(share)]
        residual = self.pivots.residuals(rows, "validation rows", wide=True)
        residual = multiply_weights(rows.weights, residual)
        return bool(
            residual.mean() * self.source.n_rows
            > MAX_RESIDUAL_RATIO * self.pool.residual_trace
        )

    def _grow_to(self, stop: int) -> None:
        """Pivots until there are `stop`, or every residual is rounding."""
        # Ends: a choice has pivots or leaves nothing of its proposals, a pivot that is
        # not kept is never one again, and a pool that was dry without a pivot is the
        # last.
        while not self.exhausted:
            if self.pool.n_pivots >= stop:
                if self._flush_pool():
                    return
                continue
            if self.pool.needs_float64:
                self.wide = True
                if self._flush_pool():  # else there is a new pool already
                    self._remake_pool()
            sampling_weights = self.pool.sampling_weights()
            if not sampling_weights.any():  # old proposals are all, if anything
                self.pool.clear_proposals()
                sampling_weights = self.pool.sampling_weights()
            if not sampling_weights.any():
                if self._flush_pool():
                    self._replace_exhausted_pool()
                continue
            self._choose(sampling_weights, stop - self.pool.n_pivots)

    def _choose(self, sampling_weights: np.ndarray, max_pivots: int) -> None:
        """At most one block of pivots, from proposals drawn by these weights."""
        plan = self.plan
        size = min(plan.block, max_pivots)
        n_new = NEW_PROPOSALS_PER_PIVOT * max(size, MIN_BLOCK_PIVOTS // 2)
        n_new = plan.n_rows if plan.is_single_block else n_new
        stream = Stream(self.problem.seed, Purpose.PROPOSE, round=self.round)
        self.round += 1
        sampler = KeyedSampler(stream, max_rows=n_new)
        proposals = sampler.sample(sampling_weights).sorted_by_key().numbers
        self.pool.choose(proposals, size, plan.kept_proposals)

    def _flush_pool(self) -> bool:
        """The pool's pivots become landmarks; whether all of them have.

        In float64 one that the pool selected may have no residual. It is never
        selected again, or this might go on for ever.
        """
        rejected = self.pool.flush_pivots()
        if not len(rejected):
            return True
        self.rejected = np.concatenate([self.rejected, rejected])
        self._remake_pool()
        return False

    def _replace_exhausted_pool(self) -> None:
        """A dry pool is not a rank found: look at all rows, unless they are in it."""
        is_fruitless = (
            self.n_nonzero_at_draw < self.plan.block
            or len(self.pivots) == self.n_pivots_at_draw
        )
        self.exhausted = (
            len(self.pool.indices) == self.source.n_rows
            # The residual of all rows drew this pool, and all but a few of its rows
            # were rounding: there is nothing more to find. (Few pivots from many rows
            # are another matter: copies, which may have kept a rare row out.)
            or (self.is_drawn_from_all_rows and is_fruitless)
            # Weights may vanish that residuals do not: without a new pool it ends, too.
            or not self._refresh()
        )
