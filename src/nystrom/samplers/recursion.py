"""The recursion of Algorithms 2 and 3: scores for all rows from nested halves.

Level l holds about n/2ˡ rows. The smallest level is taken whole; from there up, the
sample of a level gives scores to the rows of the next larger one, and coins thrown by
these scores choose its sample. What λ and the probabilities are is the `Rule`'s
business; this file is what all variants share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..engines import Engine
from ..factor import check_finite, is_indefinite, rounding_of, weighted
from ..kernels import Kernel
from ..leverage import sample_scores
from ..randomness import Purpose, race, uniforms
from ..sources import Source, Subset


class Rule(Protocol):
    """The constants of one variant of the algorithm."""

    def n_levels(self, u: np.ndarray) -> int:
        """How many halvings, given each row's uniform number."""

    def members(self, u: np.ndarray, level: int) -> np.ndarray:
        """The rows of a level, ascending."""

    def ridge(self, SKS: np.ndarray, level: int) -> float:
        """λ for the scores of a level."""

    def probabilities(self, scores: np.ndarray, level: int) -> np.ndarray:
        """The probability of each row of a level to be kept."""

    def least_sample(self) -> tuple[int, int]:
        """The fewest rows to go on with, and how many to draw uniformly below that."""


class IndefiniteKernelError(Exception):
    """The kernel is not positive semi-definite: scores have no meaning."""

    def __init__(self, n_evaluations: int) -> None:
        super().__init__()
        self.n_evaluations = n_evaluations  # spent until it was found out


@dataclass(frozen=True)
class Sample:
    """Weighted rows: column j of S has the entry weights[j] in row indices[j]."""

    indices: np.ndarray
    weights: np.ndarray
    probabilities: np.ndarray


@dataclass(frozen=True)
class Level:
    """One level: its rows, the sample below that scored them, λ, and all scores."""

    level: int
    rows: np.ndarray | None  # None: all rows
    sample: Sample
    ridge: float
    scores: np.ndarray
    probabilities: np.ndarray
    n_evaluations: int
    widened: bool


def recurse(
    kernel: Kernel, source: Source, rule: Rule, *, seed: int, engine: Engine
) -> list[Level]:
    """All levels from the smallest to level 0, the whole data set.

    Empty when there is nothing to halve: then every row is to be taken.
    """
    if kernel.psd is False:
        raise IndefiniteKernelError(0)
    n = source.n_rows
    u = uniforms(seed, Purpose.MEMBERSHIP, 0, n)
    n_levels = rule.n_levels(u)
    if n_levels == 0:
        return []
    base = rule.members(u, n_levels)
    sample = Sample(base, np.ones(len(base)), np.ones(len(base)))
    levels: list[Level] = []
    for level in range(n_levels - 1, -1, -1):
        rows = rule.members(u, level) if level else None
        try:
            done = _score(kernel, source, rows, sample, rule, level, engine)
        except IndefiniteKernelError as found:
            found.n_evaluations += total_evaluations(levels)
            raise
        levels.append(done)
        if level:
            sample = _keep(done, rule, seed, n)
    return levels


def _score(
    kernel: Kernel,
    source: Source,
    rows: np.ndarray | None,
    sample: Sample,
    rule: Rule,
    level: int,
    engine: Engine,
) -> Level:
    points = source.take(sample.indices)
    K = kernel.gram(points) if len(sample.indices) else np.zeros((0, 0))
    check_finite(K)
    column_weights = sample.weights
    if source.weights is not None:
        column_weights = column_weights * np.sqrt(source.weights[sample.indices])
    SKS = weighted(K, column_weights)
    # Where the kernel makes no promise, look before its scores are believed.
    if kernel.psd is None:
        rounding = rounding_of(K, kernel.dtype(points))
        if is_indefinite(np.linalg.eigvalsh(SKS), rounding):
            raise IndefiniteKernelError(kernel.gram_evaluations(len(K)))
    ridge = rule.ridge(SKS, level)
    scores, left = sample_scores(
        kernel,
        source if rows is None else Subset(source, rows),
        points,
        SKS,
        column_weights,
        ridge,
        engine=engine,
        stage=f"scores, level {level}",
    )
    evaluations = left.n_evaluations + kernel.gram_evaluations(len(K))
    p = rule.probabilities(scores, level)
    return Level(level, rows, sample, ridge, scores, p, evaluations, left.widened)


def _keep(level: Level, rule: Rule, seed: int, n_rows: int) -> Sample:
    """Throw each row's coin; draw uniformly where too few are left to go on with."""
    assert level.rows is not None
    p = level.probabilities
    # Every level throws coins of its own: reused, the weights 1/√p would be wrong.
    coins = uniforms(seed, Purpose.KEEP, 0, n_rows, level.level)[level.rows]
    kept = np.flatnonzero(coins < p)
    least, refill = rule.least_sample()
    if len(kept) < min(least, len(p)):
        refill = min(refill, len(p))
        kept = np.sort(race(np.ones(len(p)), coins, refill)[0])
        p = np.full(len(p), refill / len(p))
    return Sample(level.rows[kept], 1 / np.sqrt(p[kept]), p[kept])


def notes_of(levels: list[Level]) -> tuple[str, ...]:
    """What the reader of the result should know."""
    widened = [str(done.level) for done in levels if done.widened]
    return (f"float64 scores on level {', '.join(widened)}",) if widened else ()


def total_evaluations(levels: list[Level]) -> int:
    """Kernel evaluations of all levels."""
    return sum(done.n_evaluations for done in levels)
