"""Rows from scores: coins, races, and all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels import Kernel
from ..landmarks import Landmarks
from ..randomness import Purpose, race, race_probabilities, uniforms
from ..sources import Source


@dataclass(frozen=True)
class Drawn:
    """Rows with the probabilities they were drawn with."""

    indices: np.ndarray
    probabilities: np.ndarray
    n_wanted: int | None = None  # how many there would be without the cap

    @property
    def weights(self) -> np.ndarray:
        """1/√p: the entries of the sampling matrix."""
        return 1 / np.sqrt(self.probabilities)


def exactly(size: int, scores: np.ndarray, seed: int) -> Drawn:
    """`size` rows one after the other ∝ scores; where those run out, uniform ones."""
    n = len(scores)
    drawn, limit = race(scores, uniforms(seed, Purpose.DRAW, 0, n), size)
    p = race_probabilities(scores[drawn], limit)
    if len(drawn) < size:
        rest = np.ones(n)
        rest[drawn] = 0
        missing = size - len(drawn)
        more, _ = race(rest, uniforms(seed, Purpose.FILL, 0, n), missing)
        p = np.concatenate([p, np.full(missing, missing / (n - len(drawn)))])
        drawn = np.concatenate([drawn, more])
    return Drawn(drawn, p)


def uniformly(source: Source, size: int, seed: int) -> Drawn:
    """`size` rows, all if there are no more; ∝ their weights where they have any."""
    n = source.n_rows
    if size >= n:
        return Drawn(np.arange(n), np.ones(n))
    rows, limit = race(source.weights, uniforms(seed, Purpose.DRAW, 0, n), size)
    if not source.is_weighted:
        return Drawn(rows, np.full(size, size / n))
    return Drawn(rows, race_probabilities(source.weights_of(rows), limit))


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
    p: np.ndarray, seed: int, effective_dimension: float = np.inf
) -> Drawn:
    """Each row with its own probability; the likeliest one where none is kept."""
    kept = np.flatnonzero(uniforms(seed, Purpose.KEEP, 0, len(p)) < p)
    if len(kept) == 0 or effective_dimension < 0.5:
        # d_eff < ½ means λ > ‖K‖, and any row will do.
        return Drawn(np.array([int(np.argmax(p))]), np.ones(1))
    return Drawn(kept, p[kept])


def at_most_rows(kept: Drawn, p: np.ndarray, largest: int | None, seed: int) -> Drawn:
    """What was kept, or `largest` rows drawn ∝ p where that is more."""
    if largest is None or len(kept.indices) <= largest:
        return kept
    fewer = exactly(largest, p, seed)
    return Drawn(fewer.indices, fewer.probabilities, n_wanted=len(kept.indices))


def all_rows(kernel: Kernel, source: Source, name: str) -> Landmarks:
    """Every row is a landmark: K̃ = K."""
    n = source.n_rows
    return as_landmarks(Drawn(np.arange(n), np.ones(n)), kernel, source, name)


def as_landmarks(
    drawn: Drawn, kernel: Kernel, source: Source, name: str, **facts: Any
) -> Landmarks:
    """The rows drawn, with their points, as every sampler returns them."""
    return Landmarks(
        points=source.take(drawn.indices),
        kernel=kernel,
        sampler=name,
        n_rows=source.n_rows,
        indices=drawn.indices,
        weights=drawn.weights,
        probabilities=drawn.probabilities,
        n_wanted=drawn.n_wanted,
        **facts,
    )
