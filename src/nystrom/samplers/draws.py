"""Rows from scores: coins, races, and all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels import Kernel
from ..landmarks import Landmarks
from ..randomness import Purpose, first_rows, race_probabilities
from ..sources import Source
from ..tried import fetch
from .racing import Race, Winners


@dataclass(frozen=True)
class Drawn:
    """Rows with the probabilities they were drawn with."""

    indices: np.ndarray
    probabilities: np.ndarray
    n_wanted: int | None = None  # how many there would be without the cap
    points: Any = None  # the rows themselves, where the draw has handed them back

    @property
    def weights(self) -> np.ndarray:
        """1/√p: the entries of the sampling matrix."""
        return 1 / np.sqrt(self.probabilities)


def exactly(size: int, scores: np.ndarray, seed: int) -> Drawn:
    """`size` rows one after the other ∝ scores; where those run out, uniform ones."""
    race = Race(seed, Purpose.DRAW, most=size + 1)
    return drawn_first(race.among(scores).in_order(), size, len(scores), seed)


def drawn_first(winners: Winners, size: int, n_rows: int, seed: int) -> Drawn:
    """The first `size` to arrive, the next one telling how likely that was.

    Where there are fewer, uniform rows fill up.
    """
    limit = float(winners.arrival[size]) if len(winners) > size else np.inf
    won = winners.at(np.arange(min(size, len(winners))))
    p = race_probabilities(won.chances, limit)
    missing = size - len(won)
    if missing == 0:
        return Drawn(won.numbers, p, points=won.points)
    more = fill_rows(won.numbers, missing, n_rows, seed)
    p = np.concatenate([p, np.full(missing, missing / (n_rows - len(won)))])
    return Drawn(np.concatenate([won.numbers, more]), p)


def fill_rows(taken: np.ndarray, size: int, n_rows: int, seed: int) -> np.ndarray:
    """`size` other rows, drawn uniformly, in order of the draw."""
    first = first_rows(seed, Purpose.FILL, n_rows, size + len(taken))
    return first[~np.isin(first, taken)][:size]


def uniformly(source: Source, size: int, seed: int) -> Drawn:
    """`size` rows, all if there are no more; ∝ their weights where they have any."""
    n = source.n_rows
    if size >= n:
        return Drawn(np.arange(n), np.ones(n))
    if not source.is_weighted:
        rows = first_rows(seed, Purpose.DRAW, n, size)
        return Drawn(rows, np.full(size, size / n))
    return exactly(size, source.weights, seed)


def probabilities_with_sum(chances: np.ndarray, size: float) -> np.ndarray:
    """Probabilities ∝ chances, none above 1, that add up to `size` where they can."""
    certain = np.zeros(len(chances), dtype=bool)
    if np.count_nonzero(chances) <= size:
        return (chances > 0).astype(np.float64)
    while True:  # each time one more is certain, and at most `size` can be
        # By a power of two: their sum neither overflows nor vanishes.
        others = chances[~certain]
        power = -np.frexp(others.max())[1]
        total = float(np.ldexp(others, power, out=others).sum())
        del others  # one number per row is what a draw may hold beside its result
        with np.errstate(over="ignore"):  # of those that are certain
            p = np.ldexp(chances, power)
            p *= (size - np.count_nonzero(certain)) / total
        more = (p >= 1) & ~certain
        p[certain] = 1.0
        if not more.any():
            return p
        certain |= more


def kept_by_coins(
    p: np.ndarray,
    seed: int,
    largest: int | None = None,
    effective_dimension: float = np.inf,
) -> Drawn:
    """Each row with its own probability; see `drawn_by_coins`."""
    race = Race(seed, Purpose.KEEP, by_coins=True)
    return drawn_by_coins(
        race.among(p), 1.0, len(p), seed, largest, effective_dimension
    )


def drawn_by_coins(
    winners: Winners,
    multiple: float,
    n_rows: int,
    seed: int,
    largest: int | None = None,
    effective_dimension: float = np.inf,
) -> Drawn:
    """Each row with probability min(1, multiple·chance), ascending; at least one.

    Where more are kept than `largest`, those whose coins come up first: with a smaller
    multiple, just so many are.
    """
    kept = winners.before(multiple)
    if len(kept) == 0 or effective_dimension < 0.5:
        # d_eff < ½ means λ > ‖K‖, and any row will do.
        if not len(winners):
            return Drawn(fill_rows(kept.numbers, 1, n_rows, seed), np.ones(1))
        first = winners.in_order().at(np.arange(1))
        return Drawn(first.numbers, np.ones(1), points=first.points)
    n_wanted = None
    if largest is not None and len(kept) > largest:
        n_wanted = len(kept)
        kept = kept.in_order()
        if n_wanted == winners.most:  # there would be more than were remembered
            surplus = multiple / float(kept.arrival[-1])
            n_wanted = min(n_rows, math.ceil(n_wanted * surplus))
        multiple = float(kept.arrival[largest])
        kept = kept.at(np.arange(largest))
    kept = kept.at(np.argsort(kept.numbers))
    p = np.minimum(1.0, multiple * kept.chances)
    return Drawn(kept.numbers, p, n_wanted, kept.points)


def all_drawn(n_rows: int, largest: int | None, seed: int) -> Drawn:
    """Every row, or `largest` of them."""
    if largest is None or largest >= n_rows:
        return Drawn(np.arange(n_rows), np.ones(n_rows))
    fewer = exactly(largest, np.ones(n_rows), seed)
    return Drawn(fewer.indices, fewer.probabilities, n_wanted=n_rows)


def all_rows(kernel: Kernel, source: Source, name: str) -> Landmarks:
    """Every row is a landmark: K̃ = K."""
    n = source.n_rows
    return as_landmarks(Drawn(np.arange(n), np.ones(n)), kernel, source, name)


def as_landmarks(
    drawn: Drawn, kernel: Kernel, source: Source, name: str, **facts: Any
) -> Landmarks:
    """The rows drawn, with their points, as every sampler returns them."""
    return Landmarks(
        points=fetch(source, drawn.indices) if drawn.points is None else drawn.points,
        kernel=kernel,
        sampler=name,
        n_rows=source.n_rows,
        indices=drawn.indices,
        weights=drawn.weights,
        probabilities=drawn.probabilities,
        n_wanted=drawn.n_wanted,
        **facts,
    )
