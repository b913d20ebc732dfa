"""The constants of Algorithms 2 and 3, those of the proofs and those used in practice.

`theory` follows the paper: independent halving, δ/3 per level, the factors 3/2 and 5
and 16·log. `practical` follows the authors' own program: halves of fixed size, natural
logs, factor 1, q = log s. Departures, all for few rows or degenerate data: the smallest
level has up to 64 rows, λ never falls to rounding level, the expected size of a sample
is at most 2s, and a sample too small to go on with is drawn uniformly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...factor import tail_ridge
from ...precision import least_ridge

#: The c of Algorithm 3 for which its proof goes through: 5·64·2k·log(2k/δ) ≤ s.
THEORY_C = 640
#: Oversampling of Algorithm 1; the proofs need 16.
OVERSAMPLING = 16.0
#: Base case of Algorithm 2: m ≤ 192·log(1/δ).
BASE = 192
#: In practice a level of so few rows is taken whole, also where s_l is less: it costs
#: nothing, and scores from more rows are better ones.
WHOLE = 64


def halvings(n_rows: int, size: int) -> int:
    """How often n rows must be halved, rounding up, until at most `size` are left."""
    n_levels = 0
    while -(-n_rows // 2**n_levels) > size:
        n_levels += 1
    return n_levels


class Halves:
    """Practical levels: the ⌈n/2ˡ⌉ rows with the smallest u. Coins could leave none."""

    def members(self, u: np.ndarray, level: int) -> np.ndarray:
        """The rows of a level, ascending."""
        size = -(-len(u) // 2**level)
        return np.flatnonzero(u <= np.partition(u, size - 1)[size - 1])


class Coins:
    """The paper's levels: each row belongs to level l with probability 2⁻ˡ, nested."""

    def members(self, u: np.ndarray, level: int) -> np.ndarray:
        """The rows of a level, ascending."""
        return np.flatnonzero(u < 0.5**level)


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

    def n_levels(self, u: np.ndarray) -> int:
        """Halvings until at most s_l rows are left, or 64; at least one."""
        return max(1, halvings(len(u), max(self.sample_size, WHOLE)))

    def ridge(self, SKS: np.ndarray, level: int) -> float:
        """λ = (1/k)·Σ_{i>k} σᵢ(SᵀKS)."""
        return tail_ridge(SKS, self.k)

    def probabilities(self, scores: np.ndarray, level: int) -> np.ndarray:
        """min(1, q·l̃), scaled down where they add up to more than 2·s_l."""
        return at_most(np.minimum(1.0, self.q * scores), 2 * self.sample_size)

    def least_sample(self) -> tuple[int, int]:
        """k + 1 rows, without which there is no tail; else s_l uniform ones."""
        return self.k + 1, self.sample_size


@dataclass(frozen=True)
class TheorySize(Coins):
    """Algorithm 3 with the constants of its proof."""

    sample_size: int
    delta: float
    oversampling: float = OVERSAMPLING

    def n_levels(self, u: np.ndarray) -> int:
        """Halvings until at most s rows are left."""
        n_levels = 0  # at most 1075, where 0.5ˡ has vanished
        while np.count_nonzero(u < 0.5**n_levels) > self.sample_size:
            n_levels += 1
        return n_levels

    def k(self, level: int) -> int:
        """The largest k with c·k·log(2k/δ_l) ≤ s."""
        return theory_rank(self.sample_size, self.delta / 3**level)

    def ridge(self, SKS: np.ndarray, level: int) -> float:
        """λ̃ = (1/k)·Σ_{i>k} σᵢ(SᵀKS)."""
        return tail_ridge(SKS, self.k(level))

    def probabilities(self, scores: np.ndarray, level: int) -> np.ndarray:
        """min(1, 16·(5·l̃)·log(2k/δ_l))."""
        log = math.log(2 * self.k(level) * 3**level / self.delta)
        return np.minimum(1.0, self.oversampling * 5 * scores * log)

    def least_sample(self) -> tuple[int, int]:
        """None: the coins decide."""
        return 0, 0


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

    def n_levels(self, u: np.ndarray) -> int:
        """Halvings until the base case."""
        return halvings(len(u), BASE)

    def ridge(self, SKS: np.ndarray, level: int) -> float:
        """The user's λ, where it is above rounding."""
        return max(self.fixed_ridge, least_ridge(SKS))

    def probabilities(self, scores: np.ndarray, level: int) -> np.ndarray:
        """min(1, 2·l̃·max(1, log Σl̃)); below the top at most twice the cap in all."""
        log = max(1.0, math.log(max(1.0, float(scores.sum()))))
        p = np.minimum(1.0, 2 * scores * log)
        return at_most(p, 2 * self.largest) if self.largest and level else p

    def least_sample(self) -> tuple[int, int]:
        """One row."""
        return 1, 1


@dataclass(frozen=True)
class TheoryRidge(Coins):
    """Algorithm 2: λ and δ given, the constants of its proof."""

    fixed_ridge: float
    delta: float
    oversampling: float = OVERSAMPLING

    def n_levels(self, u: np.ndarray) -> int:
        """Halvings until m ≤ 192·log(1/δ_l)."""
        n_levels = 0  # at most 1075, where 0.5ˡ has vanished
        while np.count_nonzero(u < 0.5**n_levels) > BASE * math.log(
            3**n_levels / self.delta
        ):
            n_levels += 1
        return n_levels

    def ridge(self, SKS: np.ndarray, level: int) -> float:
        """The user's λ, where it is above rounding."""
        return max(self.fixed_ridge, least_ridge(SKS)) if len(SKS) else self.fixed_ridge

    def probabilities(self, scores: np.ndarray, level: int) -> np.ndarray:
        """min(1, 16·l̃·log(Σl̃/δ_l)) with l̃ = 3/2 of the sample's score."""
        return coin_probabilities(
            1.5 * scores, self.delta / 3**level, self.oversampling
        )

    def least_sample(self) -> tuple[int, int]:
        """None: the coins decide."""
        return 0, 0


def coin_probabilities(
    scores: np.ndarray, delta: float, oversampling: float = OVERSAMPLING
) -> np.ndarray:
    """Algorithm 1's min(1, 16·l̃·log(Σl̃/δ)); a sum below 1 would make p negative."""
    log = math.log(max(1.0, float(scores.sum())) / delta)
    return np.minimum(1.0, oversampling * scores * log)


def at_most(p: np.ndarray, total: float) -> np.ndarray:
    """Probabilities scaled down so that they add up to at most `total`."""
    surplus = float(p.sum()) / total
    return p / surplus if surplus > 1 else p
