"""u(seed, stream, row): uniform numbers addressed by row number.

A counter-based generator (Philox) gives row i its number whatever was asked for before,
so that no block size, order of work or storage changes a decision. Streams of different
purpose, level or round are independent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import IntEnum
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

#: Rows at a time, where one number per row would be too many at once.
HEAT = 2**17


class Purpose(IntEnum):
    """What a stream is for; the numbers are part of what a seed means."""

    MEMBERSHIP = 1  # which rows belong to which level of the recursion
    KEEP = 2  # the coin of each row at a level
    DRAW = 3  # the final draw of exactly s rows
    FILL = 4  # rows drawn uniformly where scores ran out
    CHECK = 5  # rows on which an error is estimated
    POOL = 6  # the coin of each row for a weighted pool
    PROPOSE = 7  # which rows of a pool, or of all, are proposed as pivots
    FRESH = 8  # rows that no pool has seen, to hold a pool against
    PRECONDITION = 9  # the coin of each row for a preconditioner
    FOLD = 10  # which rows are tested together
    REFRESH = 11  # which rows a new pool is drawn from, where not from all
    STREAM = 12  # the luck of each row of a stream
    LOOK = 20  # rows that widths are learnt from


def uniforms(
    seed: int, purpose: Purpose, start: int, stop: int, level: int = 0, round: int = 0
) -> np.ndarray:
    """Numbers in [0, 1) for rows start to stop of one stream."""
    stream = (int(purpose) << 48) | (level << 24) | round
    generator = np.random.Philox(key=np.array([seed, stream], dtype=np.uint64))
    generator.advance(start // 4)  # each counter value makes four numbers
    skip = start % 4
    return np.random.Generator(generator).random(stop - start + skip)[skip:]


def uniforms_at(
    seed: int, purpose: Purpose, rows: np.ndarray, level: int = 0, round: int = 0
) -> np.ndarray:
    """The numbers of some rows, ascending, of one stream, without all others."""
    found = np.empty(len(rows))
    begun = 0
    while begun < len(rows):
        start = int(rows[begun])
        stop = min(start + HEAT, int(rows[-1]) + 1)
        ended = begun + int(np.searchsorted(rows[begun:], stop))
        u = uniforms(seed, purpose, start, stop, level, round)
        found[begun:ended] = u[rows[begun:ended] - start]
        begun = ended
    return found


#: Where seeds come from that nobody gave.
_drawn: ContextVar[Callable[[], int] | None] = ContextVar("nystrom_seeds", default=None)


@contextmanager
def seeds_drawn_by(draw: Callable[[], int]) -> Iterator[None]:
    """Let `random_state=None` stand for these seeds, one after the other."""
    before = _drawn.set(draw)
    try:
        yield
    finally:
        _drawn.reset(before)


def seed_of(random_state: Any) -> int:
    """The seed that `random_state` (None, int, RandomState, Generator) stands for."""
    draw = _drawn.get()
    if random_state is None and draw is not None:
        return draw()
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
            f"random_state={random_state!r} is not allowed; it is a whole number, a "
            "RandomState or Generator of NumPy's, or None."
        ) from None
    return int(generator.randint(np.iinfo(np.int64).max))


def race(
    weights: np.ndarray | None, u: np.ndarray, size: int
) -> tuple[np.ndarray, float]:
    """`size` different rows drawn one after the other ∝ weights, in order of the draw.

    An exponential race: row i arrives at −log(1 − uᵢ)/wᵢ, and the first `size` win.
    Rows of weight 0 never arrive; there may be fewer winners than `size`. The arrival
    of the first row that lost comes back too: given it, row i had won with probability
    1 − exp(−wᵢ·arrival). Without weights all are 1.

    Rows run in heats, of which only those who may still win are remembered.
    """
    rows, arrival = np.empty(0, dtype=np.intp), np.empty(0)
    limit = np.inf
    for start in range(0, len(u), HEAT):
        stop = min(start + HEAT, len(u))
        new, came = _heat(
            None if weights is None else weights[start:stop], u[start:stop], limit
        )
        rows = np.concatenate([rows, new + start])
        arrival = np.concatenate([arrival, came])
        if len(rows) > size:
            limit = float(np.partition(arrival, size)[size])
            ahead = arrival <= limit
            rows, arrival = rows[ahead], arrival[ahead]
    return rows[np.lexsort((rows, arrival))[:size]], limit


def _heat(
    w: np.ndarray | None, u: np.ndarray, limit: float
) -> tuple[np.ndarray, np.ndarray]:
    """Who arrives by the limit, and when. No arrival is before u/w: few need a log."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        bound = u if w is None else u / w
        may = bound <= limit * (1 + 1e-9)
        runners = np.flatnonzero(may if w is None else may & (w > 0))
        arrival = -np.log1p(-u[runners])
        # A weight of 1e-300 arrives at infinity: fine.
        arrival = arrival if w is None else arrival / w[runners]
    return runners, arrival


def rows_below(
    seed: int,
    purpose: Purpose,
    n_rows: int,
    limit: float,
    level: int = 0,
    round: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """The rows with u < limit, ascending, and their numbers u; no others are kept."""
    rows, found = [np.empty(0, dtype=np.intp)], [np.empty(0)]
    for start in range(0, n_rows, HEAT):
        stop = min(start + HEAT, n_rows)
        u = uniforms(seed, purpose, start, stop, level, round)
        below = np.flatnonzero(u < limit)
        rows.append(below + start)
        found.append(u[below])
    return np.concatenate(rows), np.concatenate(found)


def first_rows(
    seed: int,
    purpose: Purpose,
    n_rows: int,
    size: int,
    level: int = 0,
    round: int = 0,
) -> np.ndarray:
    """The `size` rows with the smallest u, the smallest first: a uniform draw.

    What is remembered meanwhile grows with `size`, not with the number of rows.
    """
    size = min(size, n_rows)
    # Surely enough; if not, then twice as many, and all of them at last.
    enough = size + 8 * size**0.5 + 16
    while True:
        limit = enough / n_rows if n_rows else 1.0
        rows, u = rows_below(seed, purpose, n_rows, limit, level, round)
        if len(rows) >= size or limit >= 1:
            return rows[np.lexsort((rows, u))[:size]]
        enough *= 2


def some_rows(n_rows: int, size: int, seed: int = 0) -> np.ndarray:
    """At most `size` rows, drawn uniformly and in ascending order, to measure on."""
    if size >= n_rows:
        return np.arange(n_rows)
    return _fewer_rows(n_rows, size, seed).copy()


@lru_cache(maxsize=16)  # a fit asks for the same again, and of 10⁹ rows takes a minute
def _fewer_rows(n_rows: int, size: int, seed: int) -> np.ndarray:
    return np.sort(first_rows(seed, Purpose.CHECK, n_rows, size))


def race_probabilities(weights: np.ndarray, limit: float) -> np.ndarray:
    """The probability of each row to have won, given the first arrival that lost."""
    with np.errstate(over="ignore", invalid="ignore"):
        p = -np.expm1(-weights * limit)
    return np.where(np.isinf(limit), 1.0, p)
