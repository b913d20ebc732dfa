"""How large levels, pools and blocks are: numbers that follow from n and s alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sklearn import get_config

#: Kernel evaluations of the recursion per row and row of a level, about.
EVALUATIONS_PER_LEVEL_ROW = 2.6
#: Kernel evaluations, as shares of n·s, that scores and refreshes may take where n is
#: large; 50·s² more each, which is what keeps pools fresh where n is small.
SCORING, REFRESHING = 0.05, 0.3
#: Blocks of pivots; each has at least 8.
N_BLOCKS, LEAST_BLOCK = 25, 8
#: New proposals per pivot, and old ones kept.
NEW_PROPOSALS, OLD_PROPOSALS = 3, 6


@dataclass(frozen=True)
class Plan:
    """For `n_rows` to choose `n_landmarks` from."""

    n_rows: int
    n_landmarks: int

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
        return int((SCORING + 50 * s / n) * n * s / per_row)

    @property
    def refresh_evaluations(self) -> float:
        """Kernel evaluations that all refreshes together may take."""
        n, s = self.n_rows, self.n_landmarks
        return (REFRESHING + 50 * s / n) * n * s

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
        return self.n_rows <= max(1.5 * self.pool_size, 64)

    @property
    def block(self) -> int:
        """Pivots that are taken together."""
        return max(LEAST_BLOCK, self.n_landmarks // N_BLOCKS)
