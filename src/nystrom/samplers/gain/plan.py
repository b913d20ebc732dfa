"""How large levels, pools and blocks are: numbers that follow from n and s alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sklearn import get_config

#: Kernel evaluations of the recursion per row and row of a level, about.
EVALUATIONS_PER_LEVEL_ROW = 2.6
#: Kernel evaluations that scores and refreshes may take, as shares of n·s where n is
#: large, and of s² more, which is what keeps pools fresh where n is small.
SCORING, REFRESHING = (0.05, 10), (0.3, 50)
#: Blocks of pivots; each has at least 16.
N_BLOCKS, LEAST_BLOCK = 12, 16
#: New proposals per pivot, and old ones kept.
NEW_PROPOSALS, OLD_PROPOSALS = 3, 2
#: A pool is drawn by score where there are more rows than so many pools of them.
GOOD_PART = 16
#: So few rows are all proposed at once.
AT_ONCE = 256
#: So many rows are a pool as they are: drawing one costs more than it saves.
FEW_ROWS = 2048
#: How long it takes, in passes over all rows with all landmarks: to draw the first
#: pool, the first pass for another one, and work on pools for each landmark per row.
DRAWING, REFRESHING_ALL, ON_POOLS = 0.15, 0.35, 25.0


@dataclass(frozen=True)
class Plan:
    """For `n_rows` to choose `n_landmarks` from."""

    n_rows: int
    n_landmarks: int
    dear: bool = False  # an evaluation may cost more than all else
    most_held: int = 2**20  # rows that may be listed

    @property
    def level_size(self) -> int:
        """Rows per level of the recursion that scores the first pool."""
        n, s = self.n_rows, self.n_landmarks
        size = 4 * math.sqrt((n * s + s**3) / (4 * n))
        return math.ceil(min(s, max(64, size)))

    @property
    def scored_rows(self) -> int:
        """How many rows may be scored.

        Where few landmarks are wanted, scores for all rows would cost more than all
        that follows; then a part of the rows has to do until the first refresh.
        """
        n, s = self.n_rows, self.n_landmarks
        per_row = EVALUATIONS_PER_LEVEL_ROW * self.level_size
        per_pair, per_square = SCORING
        affordable = (per_pair * n + per_square * s) * s / per_row
        # Fewer would hardly be more than the pool itself.
        return int(min(max(affordable, 4 * self.pool_size), self.most_held))

    @property
    def refresh_evaluations(self) -> float:
        """Kernel evaluations that all refreshes together may take."""
        n, s = self.n_rows, self.n_landmarks
        per_pair, per_square = REFRESHING
        return (per_pair * n + per_square * s) * s

    @property
    def pool_size(self) -> int:
        """Rows in a pool: more where passes over all rows cost more than the pool."""
        n, s = self.n_rows, self.n_landmarks
        per_landmark = 6 if n < 50 * s else 8 if n < 500 * s else 12
        # The pool's factor must fit scikit-learn's working memory.
        memory = get_config()["working_memory"] * 2**20 / (8 * s * s)
        return int(max(2, min(per_landmark, memory)) * s)

    @property
    def whole_pool(self) -> bool:
        """Whether the pool may as well hold all rows."""
        few = 64 if self.dear else FEW_ROWS
        return self.n_rows <= max(1.2 * self.pool_size, few)

    @property
    def scores(self) -> bool:
        """Whether the first pool is drawn by score.

        One that holds a good part of the rows as they come misses little, and what it
        misses the first refresh finds.
        """
        return self.n_rows > GOOD_PART * self.pool_size

    @property
    def at_once(self) -> bool:
        """Whether all rows are proposed, and all landmarks taken, in one block."""
        return self.n_rows <= AT_ONCE and not self.dear

    @property
    def block(self) -> int:
        """Pivots that are taken together."""
        if self.at_once:
            return self.n_landmarks
        return max(LEAST_BLOCK, self.n_landmarks // N_BLOCKS)

    def passes_on_pools(self, begin: float, end: float) -> float:
        """Work on pools from one share of the landmarks to another, in passes.

        A landmark takes the longer, the more there are before it.
        """
        whole = ON_POOLS * self.n_landmarks / self.n_rows
        return whole * (end**2 - begin**2)

    def n_proposals(self, size: int) -> tuple[int, int]:
        """New proposals for a block of this size, and how many are kept from it."""
        if self.at_once:
            return self.n_rows, 0
        size = max(size, LEAST_BLOCK // 2)
        return NEW_PROPOSALS * size, OLD_PROPOSALS * self.block
