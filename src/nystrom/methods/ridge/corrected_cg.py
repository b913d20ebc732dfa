"""Conjugate gradients with quick products, corrected by exact ones.

The products of the steps may be rounded. What is left of the right-hand side is
therefore found anew by an exact product whenever it seems to have become small: what is
told is never what the steps believe. Where rounding shows, all products are exact from
there on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

#: Steps at most, and about as many as there often are.
MOST_STEPS, USUAL_STEPS = 300, 25
#: ‖b − Ax‖/‖b‖ at which a solution counts as found: what K·x is off by at most.
TOLERANCE = 1e-6
#: How far what is left may seem to fall between two exact products, where those of the
#: steps are rounded.
TRUSTED = 1e-3
#: What is left after such a fall, as a share of what was left before it: with more the
#: products are too rounded, or nothing more can be had in float64.
FALLEN = 0.5
#: Steps that let what is left grow to so many times what it was, when it was last found
#: exactly, are rounding and nothing else. They are taken back.
ASTRAY = 1e6

Product = Callable[[np.ndarray], np.ndarray]


class NotDefiniteError(Exception):
    """A direction in which the matrix is not positive."""


@dataclass(frozen=True, eq=False)
class Solution:
    """x with Ax = b, column by column, and how it was found."""

    x: np.ndarray
    n_steps: int
    residual: np.ndarray  # (t,) ‖b − Ax‖/‖b‖, by an exact product
    converged: bool


def solve(
    quick: Product,
    exactly: Product,
    b: np.ndarray,
    precondition: Product,
    tolerance: float = TOLERANCE,
) -> Solution:
    """Ax = b for every column of b at once, each with steps of its own length.

    A positive definite; `quick` and `exactly` are V ↦ AV, the same function where no
    product is rounded.
    """
    size = _norms(b)
    goal, x, r = tolerance * size, np.zeros_like(b), b.copy()
    kept = x  # where what is left was last found exactly
    left, known = size, size  # ‖r‖ of each column: as it seems, and as it was found
    z = precondition(r)
    p, rho = z, _dots(r, z)
    times, converged, step = quick, not np.any(left > goal), 0
    while step < MOST_STEPS and not converged:
        step += 1
        Ap = times(p)
        curvature, open_ = _dots(p, Ap), left > goal
        ahead = not np.any(open_ & ~(curvature > 0))
        if not ahead and times is exactly:
            raise NotDefiniteError
        length = np.where(open_ & (curvature > 0), rho / _positive(curvature), 0.0)
        x = x + length * p
        before, r = r, r - length * Ap
        left = _norms(r)
        if not np.all(left <= ASTRAY * known):  # nan is astray
            x, ahead = kept, False
        trusted = 0.0 if times is exactly else TRUSTED
        if not ahead or np.all(left <= np.maximum(goal, trusted * known)):
            r = b - exactly(x)
            left = _norms(r)
            converged = not np.any(left > goal)
            slow = bool(np.any((left > goal) & (left > FALLEN * known)))
            if slow and times is exactly:
                break
            if slow or not ahead:
                times, rho = exactly, np.zeros_like(rho)  # begin anew
            kept, known = x, left
        z = precondition(r)
        # By the change of r, not by its size: right for a corrected r too.
        beta = np.where(rho > 0, _dots(z, r - before) / _positive(rho), 0.0)
        p = z + np.maximum(beta, 0.0) * p
        rho = np.maximum(_dots(r, z), 0.0)
    if not converged:
        left = _norms(b - exactly(x))
    return Solution(x, step, left / _positive(size), bool(converged))


def _dots(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.einsum("nt,nt->t", A, B)


def _norms(A: np.ndarray) -> np.ndarray:
    return np.sqrt(_dots(A, A))


def _positive(values: np.ndarray) -> np.ndarray:
    """To divide by, where it matters."""
    return np.where(values > 0, values, 1.0)
