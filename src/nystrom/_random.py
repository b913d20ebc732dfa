"""Uniform numbers u(seed, stream, row) addressed by row number, and draws from
them.

A counter-based generator (Philox) gives row i its number independently of block
size, order and storage. Streams of different purpose, level or round are
independent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

#: Rows at a time, where one number per row would be too many at once.
CHUNK_ROWS = 2**17


class Purpose(IntEnum):
    """What a stream is for; the numbers are part of what a seed means."""

    MEMBERSHIP = 1  # which rows belong to which level of the recursion
    KEEP = 2  # the coin of each row at a level
    DRAW = 3  # the final draw of exactly s rows
    FILL = 4  # rows drawn uniformly where scores ran out
    CHECK = 5  # rows on which an error is estimated
    POOL = 6  # the coin of each row for a weighted pool
    PROPOSE = 7  # which rows of a pool, or of all, are proposed as pivots
    VALIDATION = 8  # rows that no pool has seen, to hold a pool against
    PRECONDITION = 9  # the coin of each row for a preconditioner
    FOLD = 10  # which rows are tested together
    REFRESH = 11  # which rows a new pool is drawn from, where not from all
    STREAM = 12  # the luck of each row of a stream
    LENGTH_SCALES = 20  # rows that widths are learnt from


class Stream(NamedTuple):
    """Uniform numbers in [0, 1), one for each row; other streams are independent."""

    seed: int
    purpose: Purpose
    level: int = 0
    round: int = 0

    def uniforms(self, start: int, stop: int) -> np.ndarray:
        """The numbers of rows start to stop."""
        stream = (int(self.purpose) << 48) | (self.level << 24) | self.round
        generator = np.random.Philox(key=np.array([self.seed, stream], dtype=np.uint64))
        generator.advance(start // 4)  # each counter value makes four numbers
        skip = start % 4
        return np.random.Generator(generator).random(stop - start + skip)[skip:]

    def uniforms_at(self, rows: np.ndarray) -> np.ndarray:
        """The numbers of some rows, ascending, without all others."""
        values = np.empty(len(rows))
        begin = 0
        while begin < len(rows):
            start = int(rows[begin])
            stop = min(start + CHUNK_ROWS, int(rows[-1]) + 1)
            end = begin + int(np.searchsorted(rows[begin:], stop))
            u = self.uniforms(start, stop)
            values[begin:end] = u[rows[begin:end] - start]
            begin = end
        return values

    def rows_below(self, limit: float, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows with u < limit, ascending, and their numbers u."""
        rows, values = [np.empty(0, dtype=np.intp)], [np.empty(0)]
        for start in range(0, n_rows, CHUNK_ROWS):
            u = self.uniforms(start, min(start + CHUNK_ROWS, n_rows))
            selected = np.flatnonzero(u < limit)
            rows.append(selected + start)
            values.append(u[selected])
        return np.concatenate(rows), np.concatenate(values)

    def sample_rows(self, size: int, n_rows: int) -> np.ndarray:
        """The `size` rows with the smallest u, the smallest first: a uniform draw.

        What is remembered meanwhile grows with `size`, not with the number of rows.
        """
        size = min(size, n_rows)
        # Surely enough; if not, then twice as many, and all of them at last.
        n_expected = size + 8 * size**0.5 + 16
        while True:
            limit = n_expected / n_rows if n_rows else 1.0
            rows, u = self.rows_below(limit, n_rows)
            if len(rows) >= size or limit >= 1:
                return rows[np.lexsort((rows, u))[:size]]
            n_expected *= 2


#: Where seeds come from that nobody gave.
_next_seed: ContextVar[Callable[[], int] | None] = ContextVar(
    "nystrom_seeds", default=None
)


@contextmanager
def seeds_from(next_seed: Callable[[], int]) -> Iterator[None]:
    """Let `random_state=None` stand for these seeds, one after the other."""
    token = _next_seed.set(next_seed)
    try:
        yield
    finally:
        _next_seed.reset(token)


def as_seed(random_state: Any) -> int:
    """The seed that `random_state` (None, int, RandomState, Generator) stands for."""
    next_seed = _next_seed.get()
    if random_state is None and next_seed is not None:
        return next_seed()
    if isinstance(random_state, (int, np.integer)) and not isinstance(
        random_state, bool
    ):
        return int(random_state) % 2**64
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    try:
        generator = check_random_state(random_state)
    except ValueError:
        raise ValueError(
            f"random_state={random_state!r} is not allowed; use a whole number, a "
            "RandomState or Generator of NumPy, or None."
        ) from None
    return int(generator.randint(np.iinfo(np.int64).max))


def sorted_row_sample(n_rows: int, size: int, seed: int = 0) -> np.ndarray:
    """At most `size` rows, drawn uniformly and in ascending order, to measure on."""
    if size >= n_rows:
        return np.arange(n_rows)
    return _sorted_row_sample(n_rows, size, seed).copy()


@lru_cache(maxsize=16)  # a fit asks for the same again, and of 10⁹ rows takes a minute
def _sorted_row_sample(n_rows: int, size: int, seed: int) -> np.ndarray:
    return np.sort(Stream(seed, Purpose.CHECK).sample_rows(size, n_rows))
