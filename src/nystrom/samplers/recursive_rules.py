"""Constants of Algorithms 2 and 3: those of the proofs and those used in practice.

`Theory…` follows the paper: Bernoulli halving, δ/3 per level, factors 3/2, 5 and
16·log. `Practical…` follows the authors' program: halves of fixed size, natural
logarithms, factor 1, q = log s.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._precision import EPS64, min_cholesky_ridge
from .._random import Purpose, rows_below
from ..linalg.residuals import tail_ridge
from ..sources import Source
from .weighted_sampling import max_listed_rows


class LevelMembership:
    """u(seed, row) of the rows of a source, by which levels are nested in each other.

    A level is an array of row numbers, or the share of rows below which u is.
    """

    def __init__(self, source: Source, seed: int) -> None:
        self.seed, self.n_rows = seed, source.n_rows
        self.max_rows = max_listed_rows(source)

    @cached_property
    def _listed(self) -> tuple[np.ndarray, np.ndarray]:
        """More rows than may be listed, with their u, or all there are."""
        limit = (self.max_rows + 8 * self.max_rows**0.5 + 16) / max(1, self.n_rows)
        return rows_below(self.seed, Purpose.MEMBERSHIP, self.n_rows, limit)

    def first_rows(self, size: int) -> np.ndarray | float:
        """The `size` rows with the smallest u, ascending."""
        if size > self.max_rows:
            return size / self.n_rows
        rows, u = self._listed
        return rows[u <= np.partition(u, size - 1)[size - 1]]

    def below(self, share: float) -> np.ndarray | float:
        """The rows with u < share, ascending."""
        if share * self.n_rows > self.max_rows:
            return share
        rows, u = self._listed
        return rows[u < share]

    def count_below(self, share: float) -> int:
        """How many these are."""
        if share * self.n_rows <= self.max_rows:
            return int(np.count_nonzero(self._listed[1] < share))
        if share >= 1:
            return self.n_rows
        return len(rows_below(self.seed, Purpose.MEMBERSHIP, self.n_rows, share)[0])


#: The c of Algorithm 3 that the sketch of its proof asks for: 5·64·2k·log(2k/δ) ≤ s.
#: Counted as in the proof of Algorithm 2 it is 1280: docs/paper.md.
THEORY_C = 640
#: Oversampling of Algorithm 1; the proofs need 16.
OVERSAMPLING = 16.0
#: Base case of Algorithm 2: m ≤ 192·log(1/δ).
BASE_CASE_ROWS = 192
#: In practice a level of so few rows is used whole, also where s_l is less: it costs
#: nothing, and scores from more rows are better ones.
MIN_BASE_ROWS = 64
#: How many times more rows than are allowed are counted, to say how many λ asks for.
COUNTED_CAP_FACTOR = 64


def n_halvings(n_rows: int, size: int) -> int:
    """How often n rows must be halved, rounding up, until there are at most `size`."""
    n_levels = 0
    while -(-n_rows // 2**n_levels) > size:
        n_levels += 1
    return n_levels


@dataclass(frozen=True)
class ScoreTotals:
    """Sums over the rows of a level."""

    scores: float  # Σ l̃
    capped_scores: float  # Σ min(1, l̃)
    sampling_weights: float  # Σ of the rule's sampling weights
    n_rows: float

    @classmethod
    def from_scores(
        cls, scores: np.ndarray, sampling_weights: np.ndarray
    ) -> ScoreTotals:
        """Those of some rows."""
        capped = float(np.minimum(1.0, scores).sum())
        score_sum, weight_sum = float(scores.sum()), float(sampling_weights.sum())
        return cls(score_sum, capped, weight_sum, float(len(scores)))


class SamplingRule(ABC):
    """The constants of one variant of the algorithm.

    A row of a level is kept with probability min(1, c·weight). Its weight follows from
    its own score; c may need the sum of all, which is known when the pass is over.
    """

    @abstractmethod
    def n_levels(self, membership: LevelMembership) -> int:
        """How many halvings."""

    @abstractmethod
    def members(self, membership: LevelMembership, level: int) -> np.ndarray | float:
        """The rows of a level."""

    @abstractmethod
    def ridge(self, SKS: np.ndarray, level: int) -> float:
        """λ for the scores of a level."""

    @abstractmethod
    def sampling_weights(self, scores: np.ndarray, level: int) -> np.ndarray:
        """The sampling weight of each row."""

    def weight_factor(self, totals: ScoreTotals, level: int) -> float:
        """c, by which all sampling weights are multiplied."""
        return 1.0

    def max_weight_factor(self, n_rows: int, level: int) -> float:
        """What c can be at most."""
        return 1.0

    def max_kept(self, level: int) -> int | None:
        """How many rows of a level can be kept, where that is known beforehand."""
        return None

    def probabilities(self, scores: np.ndarray, level: int) -> np.ndarray:
        """The probability of each row of a level to be kept."""
        sampling_weights = self.sampling_weights(scores, level)
        c = self.weight_factor(ScoreTotals.from_scores(scores, sampling_weights), level)
        return np.minimum(1.0, c * sampling_weights)

    def min_sample(self) -> tuple[int, int]:
        """The fewest rows to go on with, and how many to draw uniformly below that."""
        return 0, 0  # the Bernoulli sample decides


class FixedSizeLevels(SamplingRule):
    """Practical levels: the ⌈n/2ˡ⌉ rows with the smallest u. Coins could leave none."""

    def members(self, membership: LevelMembership, level: int) -> np.ndarray | float:
        """The rows of a level."""
        return membership.first_rows(-(-membership.n_rows // 2**level))


class BernoulliLevels(SamplingRule):
    """The paper's levels: each row belongs to level l with probability 2⁻ˡ, nested."""

    def members(self, membership: LevelMembership, level: int) -> np.ndarray | float:
        """The rows of a level."""
        return membership.below(0.5**level)


@dataclass(frozen=True)
class PracticalSize(FixedSizeLevels):
    """Algorithm 3 in practice: s_l rows per level, λ from rank k ≈ s_l/(4·log s_l)."""

    sample_size: int  # s_l

    @property
    def q(self) -> float:
        """Oversampling; s = 1 would make it 0."""
        return math.log(max(2, self.sample_size))

    @property
    def k(self) -> int:
        """The rank whose tail makes λ."""
        return math.ceil(self.sample_size / (4 * self.q))

    def n_levels(self, membership: LevelMembership) -> int:
        """Halvings until there are at most s_l rows, or 64; at least one."""
        return max(
            1, n_halvings(membership.n_rows, max(self.sample_size, MIN_BASE_ROWS))
        )

    def ridge(self, SKS: np.ndarray, level: int) -> float:
        """λ = (1/k)·Σ_{i>k} σᵢ(SᵀKS)."""
        return tail_ridge(SKS, self.k)

    def sampling_weights(self, scores: np.ndarray, level: int) -> np.ndarray:
        """min(1, q·l̃), …"""
        return np.minimum(1.0, self.q * scores)

    def weight_factor(self, totals: ScoreTotals, level: int) -> float:
        """… scaled down where they add up to more than 2·s_l."""
        return _capped_factor(2 * self.sample_size, 1.0, totals)

    def max_kept(self, level: int) -> int | None:
        """Twice s_l, and what chance may add."""
        return _count_bound(2 * self.sample_size)

    def min_sample(self) -> tuple[int, int]:
        """k + 1 rows, without which there is no tail; else s_l uniform ones."""
        return self.k + 1, self.sample_size


@dataclass(frozen=True)
class TheorySize(BernoulliLevels):
    """Algorithm 3 with the constants of its proof."""

    sample_size: int
    delta: float
    oversampling: float = OVERSAMPLING

    def n_levels(self, membership: LevelMembership) -> int:
        """Halvings until there are at most s rows."""
        n_levels = 0  # at most 1075, where 0.5ˡ has vanished
        while membership.count_below(0.5**n_levels) > self.sample_size:
            n_levels += 1
        return n_levels

    def k(self, level: int) -> int:
        """The largest k with c·k·log(2k/δ_l) ≤ s."""
        return theory_rank(self.sample_size, self.delta / 3**level)

    def ridge(self, SKS: np.ndarray, level: int) -> float:
        """λ̃ = (1/k)·Σ_{i>k} σᵢ(SᵀKS)."""
        return tail_ridge(SKS, self.k(level))

    def sampling_weights(self, scores: np.ndarray, level: int) -> np.ndarray:
        """min(1, 16·(5·l̃)·log(2k/δ_l))."""
        log = math.log(2 * self.k(level) * 3**level / self.delta)
        return np.minimum(1.0, self.oversampling * 5 * scores * log)


def theory_rank(sample_size: int, delta: float) -> int:
    """The largest k with c·k·log(2k/δ) ≤ s; 0 where even k = 1 is too much."""
    k = 0
    while THEORY_C * (k + 1) * math.log(2 * (k + 1) / delta) <= sample_size:
        k += 1
    return k


def min_theory_size(delta: float, n_levels: int) -> int:
    """The smallest s for which k ≥ 1 on every level."""
    return math.ceil(THEORY_C * math.log(2 * 3**n_levels / delta))


@dataclass(frozen=True)
class PracticalRidge(FixedSizeLevels):
    """Algorithm 2 in practice: λ given, p = min(1, 2·l̃·max(1, log Σl̃)).

    Without the 2, ‖K − K̃‖₂ exceeds λ in up to a third of the seeds on real data.
    """

    fixed_ridge: float
    max_landmarks: int | None = None  # the user's cap on the number of landmarks

    def n_levels(self, membership: LevelMembership) -> int:
        """Halvings until the base case."""
        return n_halvings(membership.n_rows, BASE_CASE_ROWS)

    def ridge(self, SKS: np.ndarray, level: int) -> float:
        """The user's λ, where it is above rounding."""
        return max(self.fixed_ridge, min_cholesky_ridge(SKS))

    def sampling_weights(self, scores: np.ndarray, level: int) -> np.ndarray:
        """2·l̃, …"""
        return 2 * scores

    def weight_factor(self, totals: ScoreTotals, level: int) -> float:
        """… times max(1, log Σl̃); below the top twice the cap in all at most."""
        log = max(1.0, math.log(max(1.0, totals.scores)))
        if self.max_landmarks and level:
            return _capped_factor(2 * self.max_landmarks, log, totals)
        return log

    def max_weight_factor(self, n_rows: int, level: int) -> float:
        """No score is above 1/ε."""
        return max(1.0, math.log(n_rows / EPS64))

    def max_kept(self, level: int) -> int | None:
        """Twice the cap, and what chance may add; at the top many more are counted."""
        if self.max_landmarks is None:
            return None
        return _count_bound(
            2 * self.max_landmarks if level else COUNTED_CAP_FACTOR * self.max_landmarks
        )

    def min_sample(self) -> tuple[int, int]:
        """One row."""
        return 1, 1


@dataclass(frozen=True)
class TheoryRidge(BernoulliLevels):
    """Algorithm 2: λ and δ given, the constants of its proof."""

    fixed_ridge: float
    delta: float
    oversampling: float = OVERSAMPLING

    def n_levels(self, membership: LevelMembership) -> int:
        """Halvings until m ≤ 192·log(1/δ_l)."""
        n_levels = 0  # at most 1075, where 0.5ˡ has vanished
        while membership.count_below(0.5**n_levels) > BASE_CASE_ROWS * math.log(
            3**n_levels / self.delta
        ):
            n_levels += 1
        return n_levels

    def ridge(self, SKS: np.ndarray, level: int) -> float:
        """The user's λ, where it is above rounding."""
        return (
            max(self.fixed_ridge, min_cholesky_ridge(SKS))
            if len(SKS)
            else self.fixed_ridge
        )

    def sampling_weights(self, scores: np.ndarray, level: int) -> np.ndarray:
        """16·l̃ with l̃ = 3/2 of the sample's score, …"""
        return self.oversampling * 1.5 * scores

    def weight_factor(self, totals: ScoreTotals, level: int) -> float:
        """… times log(Σl̃/δ_l)."""
        return math.log(max(1.0, 1.5 * totals.scores) * 3**level / self.delta)

    def max_weight_factor(self, n_rows: int, level: int) -> float:
        """No score is above 1/ε."""
        return math.log(1.5 * n_rows / EPS64 * 3**level / self.delta)


def bernoulli_probabilities(
    scores: np.ndarray, delta: float, oversampling: float = OVERSAMPLING
) -> np.ndarray:
    """Algorithm 1's min(1, 16·l̃·log(Σl̃/δ)); a sum below 1 would make p negative."""
    log = math.log(max(1.0, float(scores.sum())) / delta)
    return np.minimum(1.0, oversampling * scores * log)


def _capped_factor(max_sum: float, weight_factor: float, totals: ScoreTotals) -> float:
    """The factor, or less where weights would add up to more than `max_sum`."""
    return (
        min(weight_factor, max_sum / totals.sampling_weights)
        if totals.sampling_weights > 0
        else weight_factor
    )


def _count_bound(expected: float) -> int:
    """More than so many expected rows will ever be."""
    return math.ceil(expected + 10 * math.sqrt(expected) + 20)
