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

from ...columns import Columns
from ...factor import weighted
from ...precision import is_indefinite, rounding_of
from ...randomness import Purpose, race, uniforms, uniforms_at
from ...refusals import check_finite
from ...scores import sample_scores
from ...sources import Subset
from ..choosing import IndefiniteKernelError, Work


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


@dataclass(frozen=True)
class WeightedSample:
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
    sample: WeightedSample
    ridge: float
    scores: np.ndarray
    widened: bool  # the pass over float32 rows ran in float64

    @property
    def probabilities(self) -> np.ndarray:
        """Each row's to be kept; not stored, for not every variant asks for them."""
        return self.rule.probabilities(self.scores, self.level)


def climb(work: Work, rule: Rule) -> Level | None:
    """The last level of the recursion; the others together hold as much memory.

    None where there is nothing to halve: then every row is to be taken.
    """
    top, widened = None, []
    for top in recurse(work, rule):
        widened += [str(top.level)] if top.widened else []
    if widened:
        work.ledger.note(f"float64 scores on level {', '.join(widened)}")
    return top


def recurse(work: Work, rule: Rule) -> Iterator[Level]:
    """All levels from the smallest to level 0, the whole data set."""
    if work.kernel.traits.psd is False:
        raise IndefiniteKernelError
    u = uniforms(work.seed, Purpose.MEMBERSHIP, 0, work.source.n_rows)
    n_levels = rule.n_levels(u)
    if n_levels == 0:
        return
    base = rule.members(u, n_levels)
    sample = WeightedSample(base, np.ones(len(base)), np.ones(len(base)))
    for level in range(n_levels - 1, -1, -1):
        rows = rule.members(u, level) if level else None
        if level == 0:
            del u
        scored = _score(work, rows, sample, rule, level)
        yield scored
        if level:
            sample = _keep(scored, rule, work.seed)
        del scored  # before the next one, twice as large, is made


def _score(
    work: Work,
    rows: np.ndarray | None,
    sample: WeightedSample,
    rule: Rule,
    level: int,
) -> Level:
    kernel, source = work.kernel, work.source
    points = source.take(sample.indices)
    K = kernel.gram(points) if len(sample.indices) else np.zeros((0, 0))
    work.ledger.evaluated(kernel.gram_evaluations(len(K)))
    column_weights = sample.weights
    if source.is_weighted:
        column_weights = column_weights * np.sqrt(source.weights_of(sample.indices))
    SKS = weighted(K, column_weights)
    check_finite(SKS)
    # Where the kernel makes no promise, look before its scores are believed.
    if kernel.traits.psd is None:
        rounding = rounding_of(K, kernel.dtype(points))
        if is_indefinite(np.linalg.eigvalsh(SKS), rounding):
            raise IndefiniteKernelError
    ridge = rule.ridge(SKS, level)
    scores, widened = sample_scores(
        Columns(kernel, points),
        source if rows is None else Subset(source, rows),
        SKS,
        column_weights,
        ridge,
        engine=work.engine,
        ledger=work.ledger,
        name=f"scores, level {level}",
    )
    return Level(rule, level, rows, sample, ridge, scores, widened)


def _keep(level: Level, rule: Rule, seed: int) -> WeightedSample:
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
    return WeightedSample(level.rows[kept], 1 / np.sqrt(p[kept]), p[kept])
