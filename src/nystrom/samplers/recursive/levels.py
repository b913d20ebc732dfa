"""The recursion of Algorithms 2 and 3: scores for all rows from nested halves.

Level l holds about n/2ˡ rows. The smallest level is taken whole; from there up, the
sample of a level gives scores to the rows of the next larger one, and coins thrown by
these scores choose its sample. What λ and the probabilities are is the `Rule`'s
business; this file is what all variants share.

A level is one pass over its rows, which hands back the rows that are kept: nothing has
an entry for every row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...columns import Columns
from ...engines.progress import expect, parts
from ...precision import is_indefinite, rounding_of
from ...randomness import Purpose, first_rows, uniforms_at
from ...refusals import check_finite
from ...residuals import Pass, prepare
from ...ridge_root import ridge_root, weighted
from ...scores import as_scores, sample_scores
from ...sources import Source
from ..choosing import IndefiniteKernelError, Work
from ..racing import Race, Winners, race_by_residual
from ..sifting import Part, Sifted
from .membership import Membership
from .rules import Rule, Totals


@dataclass(frozen=True)
class WeightedSample:
    """Weighted rows: column j of S has the entry weights[j] in row indices[j]."""

    indices: np.ndarray
    points: Any
    weights: np.ndarray
    probabilities: np.ndarray
    row_weights: np.ndarray  # of the rows themselves

    @property
    def column_weights(self) -> np.ndarray:
        """The entries of S for the matrix W^½KW^½."""
        return self.weights * np.sqrt(self.row_weights)


@dataclass(frozen=True)
class ByScore:
    """Chances of rows by what the sample leaves of them."""

    rule: Rule
    level: int
    ridge: float

    def __call__(
        self, left: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        scores = as_scores(left, weights, self.ridge)
        chances = self.rule.chances(scores, self.level)
        totals = Totals.of(scores, chances)
        return chances, np.array([totals.scores, totals.capped, totals.chances])


@dataclass(frozen=True)
class ByCappedScore:
    """min(1, l̃) itself as the chance."""

    ridge: float

    def __call__(
        self, left: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        scores = as_scores(left, weights, self.ridge)
        total = float(scores.sum())
        scores = np.minimum(1.0, scores)
        capped = float(scores.sum())
        return scores, np.array([total, capped, capped])


@dataclass(frozen=True)
class Level:
    """One level: its rows, the sample below that scores them, and λ."""

    work: Work
    rule: Rule
    level: int
    rows: Source
    sample: WeightedSample
    SKS: np.ndarray
    ridge: float

    @cached_property
    def prepared(self) -> Pass:
        """The pass over the level's rows."""
        B = ridge_root(self.SKS, self.sample.column_weights, self.ridge)
        columns = Columns(self.work.kernel, self.sample.points)
        return prepare(columns, self.rows, B, ledger=self.work.ledger)

    @property
    def name(self) -> str:
        """What its pass is called."""
        return f"scores, level {self.level}"

    @cached_property
    def scores(self) -> np.ndarray:
        """l̃ of every row: a vector, for levels of few rows."""
        return sample_scores(
            self.prepared,
            self.rows,
            self.ridge,
            engine=self.work.engine,
            name=self.name,
        )

    @property
    def probabilities(self) -> np.ndarray:
        """Each row's to be kept."""
        return self.rule.probabilities(self.scores, self.level)

    def coins(self) -> tuple[Winners, Totals, float]:
        """Rows that coins keep with probability min(1, c·chance), sums, and c.

        They are in no order; there may be more than the rule asks for, which arrive at
        c or later.
        """
        race = Race(
            self.work.seed,
            Purpose.KEEP,
            # Every level throws coins of its own: reused, the weights 1/√p would be
            # wrong.
            self.level,
            by_coins=True,
            most=self.rule.most_kept(self.level),
            latest=self.rule.largest_multiple(self.rows.n_rows, self.level),
        )
        by_score = ByScore(self.rule, self.level, self.ridge)
        winners, sums = self._run(by_score, race)
        totals = Totals(*sums)
        return winners, totals, self.rule.multiple(totals, self.level)

    def first(self, size: int) -> tuple[Winners, Totals]:
        """`size` rows drawn one after the other ∝ min(1, l̃), and the first that lost.

        There are fewer where that many have no score.
        """
        race = Race(self.work.seed, Purpose.DRAW, most=size + 1)
        winners, sums = self._run(ByCappedScore(self.ridge), race)
        return winners.in_order(), Totals(*sums)

    def _run(self, chances: Any, race: Race) -> tuple[Winners, np.ndarray]:
        return race_by_residual(
            self.prepared,
            self.rows,
            chances,
            race,
            engine=self.work.engine,
            name=self.name,
        )


def climb(work: Work, rule: Rule) -> Level | None:
    """The last level of the recursion, not yet passed over.

    None where there is nothing to halve: then every row is to be taken.
    """
    top, widened = None, []
    for top in recurse(work, rule):
        widened += [str(top.level)] if top.prepared.widened else []
    if widened:
        work.ledger.note(f"float64 scores on level {', '.join(widened)}")
    return top


def recurse(work: Work, rule: Rule) -> Iterator[Level]:
    """All levels from the smallest to level 0, the whole data set."""
    if work.kernel.traits.psd is False:
        raise IndefiniteKernelError
    among = Membership(work.source, work.seed)
    n_levels = rule.n_levels(among)
    if n_levels == 0:
        return
    members = [rule.members(among, level) for level in range(1, n_levels + 1)]
    del among
    halves = _halves(work, members)
    base = halves[-1]
    n_base = base.n_rows
    sample = WeightedSample(
        members[-1],  # type: ignore[arg-type]  # the smallest level is always listed
        base.take(np.arange(n_base)),
        np.ones(n_base),
        np.ones(n_base),
        base.weights,
    )
    told, levels = work.engine.progress, range(n_levels - 1, -1, -1)
    shares = parts(told, *(2.0**-level for level in levels))  # as they have rows
    for level, share in zip(levels, shares, strict=True):
        scored = _scored(
            work, halves[level - 1] if level else work.source, sample, rule, level
        )
        if level == 0:
            expect(told, 1)  # of who asks for it
        yield scored
        if level:
            with share:
                expect(told, 1)
                sample = _kept(scored)


def _halves(work: Work, members: list[np.ndarray | float]) -> list[Source]:
    """The levels as sources; rows that must be fetched are fetched once for all."""
    source = work.source
    parts: list[Source] = []
    for rows in members:
        if not isinstance(rows, np.ndarray):
            parts.append(Sifted(source, rows, work.seed, Purpose.MEMBERSHIP))
        elif parts and isinstance(parts[-1], Part):
            parts.append(parts[-1].part(rows))
        else:
            parts.append(Part.of(source, rows, work.engine, work.ledger))
    return parts


def _scored(
    work: Work, rows: Source, sample: WeightedSample, rule: Rule, level: int
) -> Level:
    kernel = work.kernel
    K = kernel.gram(sample.points) if len(sample.indices) else np.zeros((0, 0))
    work.ledger.evaluated(kernel.gram_evaluations(len(K)))
    SKS = weighted(K, sample.column_weights)
    check_finite(SKS)
    # Where the kernel makes no promise, look before its scores are believed.
    if kernel.traits.psd is None:
        rounding = rounding_of(K, kernel.dtype(sample.points))
        if is_indefinite(np.linalg.eigvalsh(SKS), rounding):
            raise IndefiniteKernelError
    return Level(work, rule, level, rows, sample, SKS, rule.ridge(SKS, level))


def _kept(level: Level) -> WeightedSample:
    """Throw each row's coin; draw uniformly where too few are left to go on with."""
    winners, totals, c = level.coins()
    kept = winners.before(c)
    p = np.minimum(1.0, c * kept.chances)
    least, refill = level.rule.least_sample()
    if len(kept) < min(least, int(totals.n_rows)):
        return _uniform(level, refill, int(totals.n_rows))
    order = np.argsort(kept.numbers)
    kept, p = kept.at(order), p[order]
    return WeightedSample(
        kept.numbers, kept.rows_of(level.rows), 1 / np.sqrt(p), p, kept.weights
    )


def _uniform(level: Level, size: int, n_rows: int) -> WeightedSample:
    """Rows of a level that its coins would come up for first."""
    rows, seed = level.rows, level.work.seed
    size = min(size, n_rows)
    if isinstance(rows, Part):
        coins = uniforms_at(seed, Purpose.KEEP, rows.known_as, level.level)
        numbers = np.sort(rows.known_as[np.argsort(coins, kind="stable")[:size]])
        row_weights = rows.weights_of(np.searchsorted(rows.known_as, numbers))
    else:
        # The rows with the smallest numbers of their own belong to every level.
        whole = level.work.source
        first = first_rows(seed, Purpose.MEMBERSHIP, whole.n_rows, size)
        numbers = np.sort(first)
        row_weights = whole.weights_of(numbers)
    p = np.full(size, size / n_rows)
    return WeightedSample(
        numbers, rows.numbered(numbers), 1 / np.sqrt(p), p, row_weights
    )
