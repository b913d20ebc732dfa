"""alpha and solver, as users pass them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..refusals import unknown

SOLVERS = ("auto", "direct", "cg")


def check_alphas(alpha: Any, n_targets: int, name: str = "alpha") -> np.ndarray:
    """One finite number >= 0 per target."""
    alphas = as_numbers(alpha)
    if alphas.ndim > 1 or not np.all(np.isfinite(alphas)) or np.any(alphas < 0):
        raise ValueError(
            f"{name}={alpha!r} is not allowed; it must be a finite number >= 0, or one "
            "per target (0 is least squares)."
        )
    if alphas.ndim == 1 and len(alphas) not in (1, n_targets):
        raise ValueError(
            f"{name} has {len(alphas)} values, but y has {n_targets} targets; give one "
            "number, or one per target."
        )
    return np.broadcast_to(alphas, (n_targets,)).copy()


def as_numbers(given: Any) -> np.ndarray:
    """What was given in float64; nan where it is something else than numbers."""
    try:
        values = np.asarray(given)
    except (TypeError, ValueError):  # lists of different lengths
        return np.array([np.nan])
    # "0.1" and True would pass for numbers.
    known = values.dtype.kind in "iuf"
    return values.astype(np.float64) if known else np.array([np.nan])


def check_noise(alphas: np.ndarray) -> None:
    """Deviations need alpha > 0."""
    if not np.all(alphas > 0):
        raise ValueError(
            "return_std=True needs alpha > 0: alpha is the variance of the noise."
        )


def check_solver(
    solver: Any, alphas: np.ndarray, allowed: tuple[str, ...] = SOLVERS
) -> str:
    """One of the solvers' names, and able to solve with these alphas."""
    if not isinstance(solver, str) or solver not in allowed:
        raise unknown("solver", solver, list(allowed))
    if solver in ("cg", "full") and alphas.min() == 0:
        raise ValueError(
            f"solver={solver!r} needs alpha > 0; use solver='direct' for alpha=0."
        )
    return solver
