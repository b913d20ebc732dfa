"""The recursion of Algorithms 2 and 3: scores for all rows from nested halves.

Level l holds about n/2ˡ rows. The smallest level is taken whole; from there up, the
sample of a level gives scores to the rows of the next larger one, and coins thrown by
these scores choose its sample. What λ and the probabilities are is the `Rule`'s
business; this file is what all variants share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..engines import Engine
from ..factor import check_finite, is_indefinite, rounding_of, weighted
from ..kernels import Kernel
from ..leverage import sample_scores
from ..randomness import Purpose, race, uniforms, uniforms_at
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

    rule: Rule
    level: int
    rows: np.ndarray | None  # None: all rows
    sample: Sample
    ridge: float
    scores: np.ndarray
    n_evaluations: int
    widened: bool

    @property
    def probabilities(self) -> np.ndarray:
        """Each row's to be kept; not stored, for not every variant asks for them."""
        return self.rule.probabilities(self.scores, self.level)


@dataclass(frozen=True)
class Climbed:
    """What is kept of a recursion: the scores of all rows, and what they took."""

    top: Level | None  # None: there was nothing to halve, every row is to be taken
    n_evaluations: int
    notes: tuple[str, ...]


def climb(
    kernel: Kernel, source: Source, rule: Rule, *, seed: int, engine: Engine
) -> Climbed:
    """The last level of the recursion; the others together hold as much memory."""
    top, n_evaluations, widened = None, 0, []
    for top in recurse(kernel, source, rule, seed=seed, engine=engine):
        n_evaluations += top.n_evaluations
        widened += [str(top.level)] if top.widened else []
    note = f"float64 scores on level {', '.join(widened)}"
    return Climbed(top, n_evaluations, (note,) if widened else ())


def recurse(
    kernel: Kernel, source: Source, rule: Rule, *, seed: int, engine: Engine
) -> Iterator[Level]:
    """All levels from the smallest to level 0, the whole data set.

    None when there is nothing to halve: then every row is to be taken.
    """
    if kernel.psd is False:
        raise IndefiniteKernelError(0)
    n = source.n_rows
    u = uniforms(seed, Purpose.MEMBERSHIP, 0, n)
    n_levels = rule.n_levels(u)
    if n_levels == 0:
        return
    base = rule.members(u, n_levels)
    sample = Sample(base, np.ones(len(base)), np.ones(len(base)))
    n_evaluations = 0
    for level in range(n_levels - 1, -1, -1):
        rows = rule.members(u, level) if level else None
        if level == 0:
            del u
        try:
            done = _score(kernel, source, rows, sample, rule, level, engine)
        except IndefiniteKernelError as found:
            found.n_evaluations += n_evaluations
            raise
        n_evaluations += done.n_evaluations
        yield done
        if level:
            sample = _keep(done, rule, seed)
        del done  # before the next one, twice as large, is made


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
    return Level(rule, level, rows, sample, ridge, scores, evaluations, left.widened)


def _keep(level: Level, rule: Rule, seed: int) -> Sample:
    """Throw each row's coin; draw uniformly where too few are left to go on with."""
    assert level.rows is not None
    p = level.probabilities
    # Every level throws coins of its own: reused, the weights 1/√p would be wrong.
    coins = uniforms_at(seed, Purpose.KEEP, level.rows, level.level)
    kept = np.flatnonzero(coins < p)
    least, refill = rule.least_sample()
    if len(kept) < min(least, len(p)):
        refill = min(refill, len(p))
        kept = np.sort(race(None, coins, refill)[0])
        p = np.full(len(p), refill / len(p))
    return Sample(level.rows[kept], 1 / np.sqrt(p[kept]), p[kept])
