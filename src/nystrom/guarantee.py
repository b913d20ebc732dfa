"""What is proven of landmarks, and how it is written."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Guarantee:
    """K̃ ⪯ K ⪯ K̃ + ridge·I, hence ‖K − K̃‖₂ ≤ ridge, with at least this probability.

    Where rows have weights it holds for W^½KW^½, in which a row of weight w counts as
    w rows.
    """

    ridge: float
    probability: float
    weighted: bool = False
    algorithm: str = "Algorithm 2"  # the paper's, whose proof it is

    def __str__(self) -> str:
        bound = norm_at_most(self.ridge, self.weighted)
        return f"{bound} with probability ≥ {self.probability:.4g}"


def norm_at_most(ridge: float, weighted: bool) -> str:
    """‖K − K̃‖₂ ≤ λ as it is written, for the matrix of weighted rows too."""
    norm = "‖W^½(K − K̃)W^½‖₂" if weighted else "‖K − K̃‖₂"
    return f"{norm} ≤ {ridge:.4g}"
