"""Checks of the options that samplers share."""

from __future__ import annotations

import math
from numbers import Real


def check_ridge(ridge: float | None) -> None:
    """λ must be a finite number > 0."""
    if ridge is None:
        return
    if not isinstance(ridge, Real) or not 0 < float(ridge) < math.inf:
        raise ValueError(
            f"ridge={ridge!r} is not allowed; λ is a finite number > 0, or None to let "
            "n_landmarks decide."
        )


def check_delta(delta: float | None, limit: float, shown: str) -> None:
    """δ must lie in the range for which the theorem is proven."""
    if delta is not None and not 0 < delta < limit:
        raise ValueError(
            f"delta={delta!r} is not allowed; it is proven for 0 < delta < {shown}."
        )


def uses_theory(constants: str | None, delta: float | None) -> bool:
    """Whether to use the theory's constants; delta alone asks for them."""
    if constants not in (None, "theory", "practical"):
        raise ValueError(
            f"constants={constants!r} is unknown; allowed: 'theory', 'practical', None."
        )
    if constants == "practical" and delta is not None:
        raise ValueError(
            f"delta={delta!r} belongs to constants='theory'; leave it out, or drop "
            "constants='practical'."
        )
    return constants == "theory" or delta is not None
