"""The constants of Algorithms 2 and 3, those of the proofs and those used in practice.

`theory` follows the paper: independent halving, δ/3 per level, the factors 3/2 and 5
and 16·log. `practical` follows the authors' own program: halves of fixed size, natural
logs, factor 1, q = log s. Departures, all for few rows or degenerate data: the smallest
level has up to 64 rows, λ never falls to rounding level, the expected size of a sample
is at most 2s, and a sample too small to go on with is drawn uniformly.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from ...precision import EPS64, least_ridge
from ...ridge_root import tail_ridge
from .membership import Membership

#: The c of Algorithm 3 that the sketch of its proof asks for: 5·64·2k·log(2k/δ) ≤ s.
#: Counted as in the proof of Algorithm 2 it is 1280: docs/algorithm.md.
THEORY_C = 640
#: Oversampling of Algorithm 1; the proofs need 16.
OVERSAMPLING = 16.0
#: Base case of Algorithm 2: m ≤ 192·log(1/δ).
BASE = 192
#: In practice a level of so few rows is taken whole, also where s_l is less: it costs
#: nothing, and scores from more rows are better ones.
WHOLE = 64
#: How many times more rows than are allowed are counted, to say how many λ asks for.
COUNTED = 64


def halvings(n_rows: int, size: int) -> int:
    """How often n rows must be halved, rounding up, until at most `size` are left."""
    n_levels = 0
    while -(-n_rows // 2**n_levels) > size:
        n_levels += 1
    return n_levels


@dataclass(frozen=True)
class Totals:
    """Sums over the rows of a level."""

    scores: float  # Σ l̃
    capped: float  # Σ min(1, l̃)
    chances: float  # Σ of the rule's chances
    n_rows: float

    @classmethod
    def of(cls, scores: np.ndarray, chances: np.ndarray) -> Totals:
        """Those of some rows."""
        capped = float(np.minimum(1.0, scores).sum())
        total, chance = float(scores.sum()), float(chances.sum())
        return cls(total, capped, chance, float(len(scores)))


class Rule(ABC):
    """The constants of one variant of the algorithm.

    A row of a level is kept with probability min(1, c·chance). Its chance follows from
    its own score; c may need the sum of all, which is known when the pass is over.
    """

    @abstractmethod
    def n_levels(self, among: Membership) -> int:
        """How many halvings."""

    @abstractmethod
    def members(self, among: Membership, level: int) -> np.ndarray | float:
        """The rows of a level."""

    @abstractmethod
    def ridge(self, SKS: np.ndarray, level: int) -> float:
        """λ for the scores of a level."""

    @abstractmethod
    def chances(self, scores: np.ndarray, level: int) -> np.ndarray:
        """The chance of each row."""

    def multiple(self, totals: Totals, level: int) -> float:
        """c, by which all chances are multiplied."""
        return 1.0

    def largest_multiple(self, n_rows: int, level: int) -> float:
        """What c can be at most."""
        return 1.0

    def most_kept(self, level: int) -> int | None:
        """How many rows of a level can be kept, where that is known beforehand."""
        return None

    def probabilities(self, scores: np.ndarray, level: int) -> np.ndarray:
        """The probability of each row of a level to be kept."""
        chances = self.chances(scores, level)
        c = self.multiple(Totals.of(scores, chances), level)
        return np.minimum(1.0, c * chances)

    def least_sample(self) -> tuple[int, int]:
        """The fewest rows to go on with, and how many to draw uniformly below that."""
        return 0, 0  # the coins decide


class Halves(Rule):
    """Practical levels: the ⌈n/2ˡ⌉ rows with the smallest u. Coins could leave none."""

    def members(self, among: Membership, level: int) -> np.ndarray | float:
        """The rows of a level."""
        return among.first(-(-among.n_rows // 2**level))


class Coins(Rule):
    """The paper's levels: each row belongs to level l with probability 2⁻ˡ, nested."""

    def members(self, among: Membership, level: int) -> np.ndarray | float:
        """The rows of a level."""
        return among.below(0.5**level)


@dataclass(frozen=True)
class PracticalSize(Halves):
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

    def n_levels(self, among: Membership) -> int:
        """Halvings until at most s_l rows are left, or 64; at least one."""
        return max(1, halvings(among.n_rows, max(self.sample_size, WHOLE)))

    def ridge(self, SKS: np.ndarray, level: int) -> float:
        """λ = (1/k)·Σ_{i>k} σᵢ(SᵀKS)."""
        return tail_ridge(SKS, self.k)

    def chances(self, scores: np.ndarray, level: int) -> np.ndarray:
        """min(1, q·l̃), …"""
        return np.minimum(1.0, self.q * scores)

    def multiple(self, totals: Totals, level: int) -> float:
        """… scaled down where they add up to more than 2·s_l."""
        return _at_most(2 * self.sample_size, 1.0, totals)

    def most_kept(self, level: int) -> int | None:
        """Twice s_l, and what chance may add."""
        return _surely(2 * self.sample_size)

    def least_sample(self) -> tuple[int, int]:
        """k + 1 rows, without which there is no tail; else s_l uniform ones."""
        return self.k + 1, self.sample_size


@dataclass(frozen=True)
class TheorySize(Coins):
    """Algorithm 3 with the constants of its proof."""

    sample_size: int
    delta: float
    oversampling: float = OVERSAMPLING

    def n_levels(self, among: Membership) -> int:
        """Halvings until at most s rows are left."""
        n_levels = 0  # at most 1075, where 0.5ˡ has vanished
        while among.count_below(0.5**n_levels) > self.sample_size:
            n_levels += 1
        return n_levels

    def k(self, level: int) -> int:
        """The largest k with c·k·log(2k/δ_l) ≤ s."""
        return theory_rank(self.sample_size, self.delta / 3**level)

    def ridge(self, SKS: np.ndarray, level: int) -> float:
        """λ̃ = (1/k)·Σ_{i>k} σᵢ(SᵀKS)."""
        return tail_ridge(SKS, self.k(level))

    def chances(self, scores: np.ndarray, level: int) -> np.ndarray:
        """min(1, 16·(5·l̃)·log(2k/δ_l))."""
        log = math.log(2 * self.k(level) * 3**level / self.delta)
        return np.minimum(1.0, self.oversampling * 5 * scores * log)


def theory_rank(sample_size: int, delta: float) -> int:
    """The largest k with c·k·log(2k/δ) ≤ s; 0 where even k = 1 is too much."""
    k = 0
    while THEORY_C * (k + 1) * math.log(2 * (k + 1) / delta) <= sample_size:
        k += 1
    return k


def least_theory_size(delta: float, n_levels: int) -> int:
    """The smallest s for which k ≥ 1 on every level."""
    return math.ceil(THEORY_C * math.log(2 * 3**n_levels / delta))


@dataclass(frozen=True)
class PracticalRidge(Halves):
    """Algorithm 2 in practice: λ given, p = min(1, 2·l̃·max(1, log Σl̃)).

    Without the 2, ‖K − K̃‖₂ exceeds λ in up to a third of the seeds on real data.
    """

    fixed_ridge: float
    largest: int | None = None  # the user's cap on the number of landmarks

    def n_levels(self, among: Membership) -> int:
        """Halvings until the base case."""
        return halvings(among.n_rows, BASE)

    def ridge(self, SKS: np.ndarray, level: int) -> float:
        """The user's λ, where it is above rounding."""
        return max(self.fixed_ridge, least_ridge(SKS))

    def chances(self, scores: np.ndarray, level: int) -> np.ndarray:
        """2·l̃, …"""
        return 2 * scores

    def multiple(self, totals: Totals, level: int) -> float:
        """… times max(1, log Σl̃); below the top twice the cap in all at most."""
        log = max(1.0, math.log(max(1.0, totals.scores)))
        if self.largest and level:
            return _at_most(2 * self.largest, log, totals)
        return log

    def largest_multiple(self, n_rows: int, level: int) -> float:
        """No score is above 1/ε."""
        return max(1.0, math.log(n_rows / EPS64))

    def most_kept(self, level: int) -> int | None:
        """Twice the cap, and what chance may add; at the top many more are counted."""
        if self.largest is None:
            return None
        return _surely(2 * self.largest if level else COUNTED * self.largest)

    def least_sample(self) -> tuple[int, int]:
        """One row."""
        return 1, 1


@dataclass(frozen=True)
class TheoryRidge(Coins):
    """Algorithm 2: λ and δ given, the constants of its proof."""

    fixed_ridge: float
    delta: float
    oversampling: float = OVERSAMPLING

    def n_levels(self, among: Membership) -> int:
        """Halvings until m ≤ 192·log(1/δ_l)."""
        n_levels = 0  # at most 1075, where 0.5ˡ has vanished
        while among.count_below(0.5**n_levels) > BASE * math.log(
            3**n_levels / self.delta
        ):
            n_levels += 1
        return n_levels

    def ridge(self, SKS: np.ndarray, level: int) -> float:
        """The user's λ, where it is above rounding."""
        return max(self.fixed_ridge, least_ridge(SKS)) if len(SKS) else self.fixed_ridge

    def chances(self, scores: np.ndarray, level: int) -> np.ndarray:
        """16·l̃ with l̃ = 3/2 of the sample's score, …"""
        return self.oversampling * 1.5 * scores

    def multiple(self, totals: Totals, level: int) -> float:
        """… times log(Σl̃/δ_l)."""
        return math.log(max(1.0, 1.5 * totals.scores) * 3**level / self.delta)

    def largest_multiple(self, n_rows: int, level: int) -> float:
        """No score is above 1/ε."""
        return math.log(1.5 * n_rows / EPS64 * 3**level / self.delta)


def coin_probabilities(
    scores: np.ndarray, delta: float, oversampling: float = OVERSAMPLING
) -> np.ndarray:
    """Algorithm 1's min(1, 16·l̃·log(Σl̃/δ)); a sum below 1 would make p negative."""
    log = math.log(max(1.0, float(scores.sum())) / delta)
    return np.minimum(1.0, oversampling * scores * log)


def _at_most(total: float, multiple: float, totals: Totals) -> float:
    """The multiple, or less where chances would add up to more than `total`."""
    return min(multiple, total / totals.chances) if totals.chances > 0 else multiple


def _surely(expected: float) -> int:
    """More than so many expected rows will ever be."""
    return math.ceil(expected + 10 * math.sqrt(expected) + 20)
