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

from .curvature import Solve
from .loss import Slope

#: Steps that are remembered.
REMEMBERED = 10
#: The curvature is looked at anew where a step left more than this share to be gained;
#: that of a sample after one step, and then each time after twice as many.
POOR = 0.1
#: A step must take this share of what the gradient promises; else a shorter one is
#: tried, so often at most.
SHARE, MOST_TRIES = 1e-4, 20
#: A value that falls by a smaller share is the same but for rounding; then a step is
#: good if the gradient along it has fallen, and the last one if it has not.
SEEN = 1e-14
#: No more than this share of the value is to be gained where no step goes down.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Reached:
    """Where the descent has come to."""

    x: np.ndarray
    slope: Slope
    n_iterations: int
    left: float  # to be gained, as a share of the value
    converged: bool


def descend(
    x: np.ndarray,
    slope_at: Callable[[np.ndarray], Slope],
    curvature_at: Callable[[np.ndarray], Solve],
    *,
    exact: bool,
    tolerance: float,
    most_iterations: int,
    first: Slope | None = None,
    least: float = np.finfo(np.float64).tiny,
) -> Reached:
    """Down to where no more than a share `tolerance` of the value is to be gained.

    A value below `least` is none.

    What is to be gained is estimated by half of gᵀH⁻¹g, g the gradient.
    `first` is the slope at x, where it is known. An `exact` curvature is that of the
    function itself: then steps are Newton's as long as they are poor.
    """
    slope, solve = first or slope_at(x), curvature_at(x)
    steps: deque = deque(maxlen=REMEMBERED)
    before, since, wait, flat = np.inf, 0, 1, False
    for iteration in range(most_iterations + 1):
        gain, direction = _promised(slope, steps, solve, exact)
        if gain > POOR * before and since >= wait:
            solve, since, wait = curvature_at(x), 0, wait if exact else 2 * wait
            _forget(steps, 0 if exact else 1)
            gain, direction = _promised(slope, steps, solve, exact)
        left = gain / 2 / max(abs(slope.value), least)
        if left <= tolerance or iteration == most_iterations:
            break
        found = None
        if not flat or gain < before / 2:
            found = _along(x, slope, direction, gain, slope_at)
        if found is None:  # what is left is rounding, or H is far from right
            tolerance = max(tolerance, ROUNDING)
            break
        there, slope_there = found
        flat = slope.value - slope_there.value <= SEEN * abs(slope.value)
        steps.append((there - x, slope_there.gradient - slope.gradient))
        x, slope, before, since = there, slope_there, gain, since + 1
    return Reached(x, slope, iteration, left, left <= tolerance)


def _forget(steps: deque, kept: int) -> None:
    """All but the last: they were made where the function is curved otherwise."""
    while len(steps) > kept:
        steps.popleft()


def _promised(
    slope: Slope, steps: deque, solve: Solve, exact: bool
) -> tuple[float, np.ndarray]:
    """gᵀH⁻¹g and the step −H⁻¹g."""
    direction = -_bent(slope.gradient, steps, solve, exact)
    return max(0.0, -float(np.vdot(slope.gradient, direction))), direction


def _along(
    x: np.ndarray,
    slope: Slope,
    direction: np.ndarray,
    gain: float,
    slope_at: Callable[[np.ndarray], Slope],
) -> tuple[np.ndarray, Slope] | None:
    """The first point on the way that is low enough: the whole step, or shorter ones.

    Each is where the parabola through what is known has its least value, within bounds.
    """
    length = 1.0
    for _ in range(MOST_TRIES):
        there = x + length * direction
        found = slope_at(there)
        same = found.value <= slope.value + SEEN * abs(slope.value)
        fallen = abs(float(np.vdot(found.gradient, direction))) <= gain / 2
        if found.value <= slope.value - SHARE * length * gain or (same and fallen):
            return there, found
        bent = max(found.value - slope.value + length * gain, gain * SEEN)
        length *= float(np.clip(length * gain / (2 * bent), 0.1, 0.5))
    return None


def _bent(g: np.ndarray, steps: deque, solve: Solve, exact: bool) -> np.ndarray:
    """The inverse curvature times g, corrected by the steps that were made.

    A sample may be flat where few of the rows are not: then less of its inverse counts,
    as the last step tells, or every step would be found too long by several passes.
    """
    q, shares = g.copy(), []
    known = [(s, y, float(np.vdot(s, y))) for s, y in steps]
    known = [each for each in known if each[2] > 0]
    for s, y, sy in reversed(known):
        share = float(np.vdot(s, q)) / sy
        q -= share * y
        shares.append(share)
    q = solve(q)
    if known and not exact:
        _, y, sy = known[-1]
        q *= min(1.0, sy / float(np.vdot(y, solve(y))))
    for (s, y, sy), share in zip(known, reversed(shares), strict=True):
        q += (share - float(np.vdot(y, q)) / sy) * s
    return q
