"""Which rows belong to which level: nested samples by u(seed, row), never a vector."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...randomness import Purpose, rows_below
from ...sources import Source
from ..sifting import most_rows


class Membership:
    """u(seed, row) of the rows of a source, by which levels are nested in each other.

    A level is an array of row numbers, or the share of rows below which u is.
    """

    def __init__(self, source: Source, seed: int) -> None:
        self.seed, self.n_rows = seed, source.n_rows
        self.most = most_rows(source)

    @cached_property
    def _first(self) -> tuple[np.ndarray, np.ndarray]:
        """More rows than may be listed, with their u, or all there are."""
        limit = (self.most + 8 * self.most**0.5 + 16) / max(1, self.n_rows)
        return rows_below(self.seed, Purpose.MEMBERSHIP, self.n_rows, limit)

    def first(self, size: int) -> np.ndarray | float:
        """The `size` rows with the smallest u, ascending."""
        if size > self.most:
            return size / self.n_rows
        rows, u = self._first
        return rows[u <= np.partition(u, size - 1)[size - 1]]

    def below(self, share: float) -> np.ndarray | float:
        """The rows with u < share, ascending."""
        if share * self.n_rows > self.most:
            return share
        rows, u = self._first
        return rows[u < share]

    def count_below(self, share: float) -> int:
        """How many these are."""
        if share * self.n_rows <= self.most:
            return int(np.count_nonzero(self._first[1] < share))
        if share >= 1:
            return self.n_rows
        return len(rows_below(self.seed, Purpose.MEMBERSHIP, self.n_rows, share)[0])
