"""How far the risk of kernel ridge regression on K̃ may exceed the risk on K.

The paper's theorem: K̃ ⪯ K ⪯ K̃ + εαI makes the expected in-sample error at most
1 + 3ε times that of exact kernel ridge regression, for fixed rows and independent noise
of one size, without an intercept.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...guarantee import Guarantee


@dataclass(frozen=True)
class RiskBound:
    """Risk on K̃ ≤ factor · risk on K, with at least this probability, and why."""

    factor: float
    probability: float
    reason: str

    def __str__(self) -> str:
        surely = "" if self.probability == 1 else f" (probability {self.probability:g})"
        return f"risk ≤ {self.factor:.4g} × exact risk{surely}, by {self.reason}"


def risk_bound(
    alpha: float, trace_left: float | None, guarantee: Guarantee | None
) -> RiskBound | None:
    """The best bound that is known; None where ε would be 1 or more."""
    bounds = []
    # ‖K − K̃‖₂ ≤ tr(K − K̃): measured, so certain.
    if trace_left is not None and trace_left < alpha:
        factor = 1 + 3 * trace_left / alpha
        bounds.append(RiskBound(factor, 1.0, "the trace error"))
    if guarantee is not None and guarantee.ridge < alpha:
        factor = 1 + 3 * guarantee.ridge / alpha
        bounds.append(RiskBound(factor, guarantee.probability, guarantee.algorithm))
    return min(bounds, key=lambda b: b.factor, default=None)
