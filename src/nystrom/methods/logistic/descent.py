"""Steps down a smooth convex function: quasi-Newton, from a curvature that is known.

L-BFGS: the last few steps and how the gradient changed along them correct a curvature
that is right on some rows. A point costs a pass, so that line searches end at the first
that will do, which mostly is the whole step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .loss import Slope

#: Steps that are remembered.
REMEMBERED = 10
#: The curvature is looked at anew after so many steps, and then each time after twice
#: as many.
FIRST_LOOK = 3
#: A step must take this share of what the gradient promises; else it is halved, so
#: often at most.
SHARE, MOST_HALVINGS = 1e-4, 30


@dataclass(frozen=True, eq=False)
class Reached:
    """Where the descent has come to."""

    x: np.ndarray
    slope: Slope
    n_iterations: int
    converged: bool


def descend(
    x: np.ndarray,
    slope_at: Callable[[np.ndarray], Slope],
    curvature_at: Callable[[np.ndarray], Callable[[np.ndarray], np.ndarray]],
    *,
    tolerance: float,
    most_iterations: int,
) -> Reached:
    """Down to where no more than a share `tolerance` of the value is to be gained.

    What is to be gained is estimated by half of gᵀH⁻¹g, g the gradient.
    """
    slope, solve = slope_at(x), curvature_at(x)
    steps: deque = deque(maxlen=REMEMBERED)
    look = FIRST_LOOK
    for iteration in range(most_iterations):
        direction = -_bent(slope.gradient, steps, solve)
        gain = -float(np.vdot(slope.gradient, direction))
        if gain / 2 <= tolerance * abs(slope.value):
            return Reached(x, slope, iteration, True)
        found = _along(x, slope, direction, gain, slope_at)
        if found is None:  # nothing is left to be gained beyond rounding
            return Reached(x, slope, iteration, True)
        new_x, new_slope = found
        steps.append((new_x - x, new_slope.gradient - slope.gradient))
        x, slope = new_x, new_slope
        if iteration + 1 == look:
            solve, look = curvature_at(x), 2 * look
    return Reached(x, slope, most_iterations, False)


def _along(
    x: np.ndarray,
    slope: Slope,
    direction: np.ndarray,
    gain: float,
    slope_at: Callable[[np.ndarray], Slope],
) -> tuple[np.ndarray, Slope] | None:
    """The first point on the way that is low enough: the whole step, a half, …."""
    length = 1.0
    for _ in range(MOST_HALVINGS):
        there = x + length * direction
        found = slope_at(there)
        if found.value <= slope.value - SHARE * length * gain:
            return there, found
        length /= 2
    return None


def _bent(
    g: np.ndarray, steps: deque, solve: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """The inverse curvature times g, corrected by the steps that were made."""
    q, shares = g.copy(), []
    known = [(s, y, float(np.vdot(s, y))) for s, y in steps]
    known = [each for each in known if each[2] > 0]
    for s, y, sy in reversed(known):
        share = float(np.vdot(s, q)) / sy
        q -= share * y
        shares.append(share)
    q = solve(q)
    for (s, y, sy), share in zip(known, reversed(shares), strict=True):
        q += (share - float(np.vdot(y, q)) / sy) * s
    return q
