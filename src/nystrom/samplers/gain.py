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
from dataclasses import dataclass

import numpy as np
from sklearn import get_config

from ..engines import Engine
from ..kernels import Kernel, Pairwise
from ..landmarks import Landmarks, WeightedRows
from ..leverage import diagonal
from ..randomness import Purpose, race, uniforms
from ..sources import Source, Subset
from .draws import probabilities_with_sum
from .pivoted import Pivoted
from .pivots import Pivots
from .pool import Pool
from .recursion import climb
from .rules import PracticalSize
from .uniform import Uniform

NAME = "auto"
#: The share of a pool that is drawn by k(x, x) alone: it bounds the pool's weights.
BY_DIAGONAL = 0.1
#: After this share of the landmarks the residual of all rows draws a new pool.
FIRST_REFRESH = 0.25
#: After these shares fresh rows are held against the pool …
LOOKS = (0.5, 0.75, 0.9)
#: … and a new one is drawn if they leave so many times more than it says.
STALE = 1.5
#: Kernel evaluations of the recursion per row and row of a level, about.
EVALUATIONS_PER_LEVEL_ROW = 2.6
#: Kernel evaluations, as shares of n·s, that scores and refreshes may take where n is
#: large; 50·s² more each, which is what keeps pools fresh where n is small.
SCORING, REFRESHING = 0.05, 0.3
#: Fresh rows to look at: a twentieth of all, within these bounds.
FRESH_ROWS = (256, 3000)
#: Blocks of pivots; each has at least 8.
N_BLOCKS, LEAST_BLOCK = 25, 8
#: New proposals per pivot, and old ones kept.
NEW_PROPOSALS, OLD_PROPOSALS = 3, 6


class ByGain:
    """Pivots by gain, as many as asked for, and more later."""

    def __init__(
        self, kernel: Kernel, source: Source, seed: int, engine: Engine
    ) -> None:
        self.kernel, self.source, self.seed, self.engine = kernel, source, seed, engine
        self.pivots = Pivots(kernel, source)
        self.pool: Pool | None = None
        self.looked = False  # the pool was drawn by the residual of all rows
        self.exhausted = False  # all rows are within rounding of the pivots' span
        self.wide = False  # what is left is too little for float32
        self.round = 0  # of draws
        self.begun = self.alive = 0  # pivots, and rows with something left, at a draw
        self.refresh_evaluations = 0
        self.notes: tuple[str, ...] = ()

    def landmarks(self) -> Landmarks:
        """The pivots so far."""
        assert self.pool is not None
        chosen = self.pivots.landmarks(NAME, pool=self.pool.rows)
        return chosen.updated(notes=(*self.notes, *chosen.notes))

    def grow(self, size: int, left: np.ndarray | None = None) -> None:
        """Pivots until there are `size`, or nothing is left.

        `left` is what the pivots so far leave of each row, where that is known already.
        """
        begun = len(self.pivots)
        if begun == 0:
            self._draw_first(size)
            shares: tuple[float, ...] = (FIRST_REFRESH, *LOOKS)
        else:
            assert left is not None
            self._draw_left(left, None, size)
            shares = LOOKS
        for share in shares:
            self._advance(begun + math.ceil(share * (size - begun)), size)
            if self.exhausted:
                return
            if share == FIRST_REFRESH or self._stale():
                self._refresh(size)
        self._advance(size, size)

    def _draw_first(self, size: int) -> None:
        """The first pool, drawn mostly by score.

        Where few landmarks are wanted, scores for all rows would cost more than all
        that follows; then a part of the rows has to do until the first refresh.
        """
        n, s = self.source.n_rows, size
        level_size = 4 * math.sqrt((n * s + s**3) / (4 * n))
        rule = PracticalSize(math.ceil(min(s, max(64, level_size))))
        per_row = EVALUATIONS_PER_LEVEL_ROW * rule.sample_size
        affordable = int((SCORING + 50 * s / n) * n * s / per_row)
        among = None
        if affordable < n and not whole_pool(n, s):
            among = self._some_rows(affordable)
        self._draw(self._chances(rule, among, whole_pool(n, s)), size, among)

    def _some_rows(self, size: int) -> np.ndarray:
        n = self.source.n_rows
        u = uniforms(self.seed, Purpose.FRESH, 0, n, round=self.round)
        self.round += 1
        return np.sort(race(None, u, size)[0])

    def _chances(
        self, rule: PracticalSize, among: np.ndarray | None, all_in_pool: bool
    ) -> np.ndarray:
        """How likely each of these rows is for a pool: mostly its score."""
        rows = self.source if among is None else Subset(self.source, among)
        whole = diagonal(self.kernel, rows, engine=self.engine)
        self.pivots.n_evaluations += rows.n_rows
        if rows.weights is not None:
            whole = whole * rows.weights
        if all_in_pool and self.kernel.psd:
            return whole
        climbed = climb(self.kernel, rows, rule, seed=self.seed, engine=self.engine)
        assert climbed.top is not None
        self.pivots.n_evaluations += climbed.n_evaluations
        self.notes = climbed.notes
        scores = np.minimum(1.0, climbed.top.scores)
        if not scores.any() or not whole.any():
            return whole
        by_score = (1 - BY_DIAGONAL) * scores / scores.sum()
        return by_score + BY_DIAGONAL * whole / whole.sum()

    def _draw(
        self, chances: np.ndarray, size: int, among: np.ndarray | None = None
    ) -> None:
        """A pool drawn by these chances; `among` are the rows they are for."""
        n, m = self.source.n_rows, len(chances)
        p = np.ones(m)
        if not whole_pool(n, size) or m < n:
            p = probabilities_with_sum(chances, pool_size(n, size))
        u = uniforms(self.seed, Purpose.POOL, 0, n, round=self.round)
        kept = np.flatnonzero((u if among is None else u[among]) < p)
        weights = n / m / p[kept]
        indices = kept if among is None else among[kept]
        if self.source.weights is not None:
            weights = weights * self.source.weights[indices]
        self._make_pool(WeightedRows(indices, weights), size)
        assert self.pool is not None
        self.begun = len(self.pivots)
        self.alive = int(np.count_nonzero(self.pool.residual))
        self.round += 1

    def _make_pool(self, rows: WeightedRows, size: int) -> None:
        self.pool = None  # its memory is needed
        self.pool = Pool(
            self.kernel,
            self.source,
            rows,
            self.pivots,
            min(size, self.source.n_rows),
            self.engine.here(),
            wide=self.wide,
        )

    def _draw_left(self, left: np.ndarray, among: np.ndarray | None, size: int) -> None:
        """A pool drawn by what is left, which tells whether anything is."""
        weights = self.source.weights
        if weights is not None:
            left = left * (weights if among is None else weights[among])
        self.looked = among is None
        if self.looked and not left.any():
            self.exhausted = True
        elif left.any():
            self._draw(left, size, among)

    def _refresh(self, size: int) -> None:
        """A pool by what is left of all rows, or of as many as are affordable."""
        n, k = self.source.n_rows, len(self.pivots)
        allowed = (REFRESHING + 50 * size / n) * n * size - self.refresh_evaluations
        affordable = n if self.pool_is_dry else int(allowed / (k + 1))
        if affordable < n / 10:
            return
        among = None
        if affordable < n:
            among = self._some_rows(affordable)
        rows = self.source if among is None else Subset(self.source, among)
        stage = f"residuals at {k} landmarks"
        self.refresh_evaluations += rows.n_rows * (k + 1)
        self._draw_left(self.pivots.residuals(rows, self.engine, stage), among, size)

    @property
    def pool_is_dry(self) -> bool:
        """Whether the pool has nothing left."""
        return self.pool is None or not self.pool.residual.any()

    def _stale(self) -> bool:
        """Whether fresh rows leave more than the pool says there is."""
        n = self.source.n_rows
        assert self.pool is not None
        if len(self.pool.rows) == n:
            return False
        size = int(np.clip(n // 20, *FRESH_ROWS))
        rows = Subset(self.source, self._some_rows(min(n, size)))
        left = self.pivots.residuals(rows, self.engine.here())
        if rows.weights is not None:
            left = left * rows.weights
        return bool(left.mean() * n > STALE * self.pool.left)

    def _advance(self, stop: int, size: int) -> None:
        """Pivots until there are `stop` or nothing is left."""
        block = max(LEAST_BLOCK, size // N_BLOCKS)
        while len(self.pivots) < stop and not self.exhausted:
            assert self.pool is not None
            if self.pool.too_fine:
                self.wide = True
                self._make_pool(self.pool.rows, size)
            weights = self.pool.weights()
            if not weights.any():  # old proposals are all there is, if anything
                self.pool.forget()
                weights = self.pool.weights()
            if not weights.any():
                self._replace_dry_pool(size, block)
                continue
            u = uniforms(self.seed, Purpose.PROPOSE, 0, len(weights), round=self.round)
            self.round += 1
            proposals, _ = race(weights, u, NEW_PROPOSALS * block)
            most = min(block, stop - len(self.pivots))
            self.pool.choose(proposals, most, OLD_PROPOSALS * block)
            self.engine.progress("landmarks", len(self.pivots), size)

    def _replace_dry_pool(self, size: int, block: int) -> None:
        """A dry pool is not a rank found: look at all rows, unless they are in it."""
        assert self.pool is not None
        in_vain = self.alive < block or len(self.pivots) == self.begun
        if len(self.pool.rows) == self.source.n_rows:
            self.exhausted = True
        elif self.looked and in_vain:
            # The residual of all rows drew this pool, and all but a few of its rows
            # were rounding: there is nothing more to find. (Few pivots from many rows
            # are another matter: copies, which may have kept a rare row out.)
            self.exhausted = True
        else:
            self._refresh(size)


def pool_size(n_rows: int, n_landmarks: int) -> int:
    """Rows in a pool: more where passes over all rows cost more than the pool does."""
    n, s = n_rows, n_landmarks
    per_landmark = 6 if n < 50 * s else 8 if n < 500 * s else 12
    # The pool's factor must fit scikit-learn's working memory.
    memory = get_config()["working_memory"] * 2**20 / (8 * s * s)
    return int(max(2, min(per_landmark, memory)) * s)


def whole_pool(n_rows: int, n_landmarks: int) -> bool:
    """Whether the pool may as well hold all rows."""
    return n_rows <= max(1.5 * pool_size(n_rows, n_landmarks), 64)


@dataclass(frozen=True)
class GainPivoted(Pivoted):
    """Gain-pivoted ridge leverage scores: what "auto" stands for.

    No options: how large levels, pools and blocks are follows from the numbers of rows
    and landmarks, and whether a pool is drawn anew from what fresh rows show. No
    theorem covers the choice by gain; for guarantees use `Recursive`.
    """

    name = NAME
    growth = ByGain

    def __call__(
        self,
        kernel: Kernel,
        source: Source,
        n_landmarks: int | None,
        *,
        seed: int,
        engine: Engine,
    ) -> Landmarks:
        assert n_landmarks is not None
        if isinstance(kernel, Pairwise) and source.n_rows <= 2 * n_landmarks:
            # Ranking would take more evaluations than all of K.
            return Uniform()(kernel, source, n_landmarks, seed=seed, engine=engine)
        return super().__call__(kernel, source, n_landmarks, seed=seed, engine=engine)
