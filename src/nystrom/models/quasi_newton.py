"""Quasi-Newton minimisation (L-BFGS) started from an approximate inverse Hessian."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

InverseHessian = Callable[[np.ndarray], np.ndarray]  # V ↦ H⁻¹V

#: Steps that are remembered.
LBFGS_MEMORY = 10
#: The Hessian is evaluated anew where more than this share remains after a step;
#: that of a sample after one step, and then each time after twice as many.
SLOW_PROGRESS_RATIO = 0.1
#: A step must take this share of what the gradient promises; else it is
#: shortened, so often at most.
ARMIJO_CONSTANT, MAX_LINE_SEARCH_STEPS = 1e-4, 20
#: A value that falls by a smaller share is the same but for rounding; then a step is
#: good if the gradient along it has fallen, and the last one if it has not.
VALUE_RTOL = 1e-14
#: No more than this share of the value is to be gained where no step goes down.
ROUNDING_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class ValueAndGradient:
    """The objective at a point, and its gradient."""

    value: float
    gradient: np.ndarray


@dataclass(frozen=True, eq=False)
class DescentResult:
    """Where the descent has come to."""

    x: np.ndarray
    n_iterations: int
    relative_gain: float  # to be gained, as a share of the value
    converged: bool


def minimize_quasi_newton(
    x: np.ndarray,
    objective: Callable[[np.ndarray], ValueAndGradient],
    inverse_hessian_at: Callable[[np.ndarray], InverseHessian],
    *,
    hessian_is_exact: bool,
    tolerance: float,
    max_iterations: int,
    start_value: ValueAndGradient | None = None,
    min_value: float = np.finfo(np.float64).tiny,
) -> DescentResult:
    """Down to where no more than a share `tolerance` of the value is to be gained.

    A value below `min_value` counts as 0. What is to be gained is estimated by half of
    gᵀH⁻¹g, g the gradient. `start_value` is the objective at x, where it is known. An
    exact Hessian is that of the function itself, not of a sample: then steps are
    Newton's as long as they are poor.
    """
    current, solve = start_value or objective(x), inverse_hessian_at(x)
    steps: deque = deque(maxlen=LBFGS_MEMORY)
    previous_gain, steps_since_update, update_interval, is_flat = np.inf, 0, 1, False
    for iteration in range(max_iterations + 1):
        gain, direction = _newton_step(current, steps, solve, hessian_is_exact)
        if (
            gain > SLOW_PROGRESS_RATIO * previous_gain
            and steps_since_update >= update_interval
        ):
            solve, steps_since_update = inverse_hessian_at(x), 0
            update_interval *= 1 if hessian_is_exact else 2
            _drop_old_steps(steps, 0 if hessian_is_exact else 1)
            gain, direction = _newton_step(current, steps, solve, hessian_is_exact)
        relative_gain = gain / 2 / max(abs(current.value), min_value)
        if relative_gain <= tolerance or iteration == max_iterations:
            break
        accepted = None
        if not is_flat or gain < previous_gain / 2:
            accepted = _line_search(x, current, direction, gain, objective)
        if accepted is None:  # the rest is rounding, or H is far from right
            tolerance = max(tolerance, ROUNDING_TOLERANCE)
            break
        next_x, next_point = accepted
        is_flat = current.value - next_point.value <= VALUE_RTOL * abs(current.value)
        steps.append((next_x - x, next_point.gradient - current.gradient))
        x, current, previous_gain = next_x, next_point, gain
        steps_since_update += 1
    return DescentResult(x, iteration, relative_gain, relative_gain <= tolerance)


def _drop_old_steps(steps: deque, n_kept: int) -> None:
    """All but the last: the curvature was another one where they started."""
    while len(steps) > n_kept:
        steps.popleft()


def _newton_step(
    point: ValueAndGradient, steps: deque, solve: InverseHessian, hessian_is_exact: bool
) -> tuple[float, np.ndarray]:
    """gᵀH⁻¹g and the step −H⁻¹g."""
    direction = -_apply_inverse_hessian(point.gradient, steps, solve, hessian_is_exact)
    return max(0.0, -float(np.vdot(point.gradient, direction))), direction


def _line_search(
    x: np.ndarray,
    start: ValueAndGradient,
    direction: np.ndarray,
    gain: float,
    objective: Callable[[np.ndarray], ValueAndGradient],
) -> tuple[np.ndarray, ValueAndGradient] | None:
    """The first point on the way that is low enough: the whole step, or shorter ones.

    Each is where the parabola through what is known has its least value, within bounds.
    """
    step_length = 1.0
    for _ in range(MAX_LINE_SEARCH_STEPS):
        candidate = x + step_length * direction
        evaluated = objective(candidate)
        is_flat = evaluated.value <= start.value + VALUE_RTOL * abs(start.value)
        gradient_has_fallen = (
            abs(float(np.vdot(evaluated.gradient, direction))) <= gain / 2
        )
        if evaluated.value <= start.value - ARMIJO_CONSTANT * step_length * gain or (
            is_flat and gradient_has_fallen
        ):
            return candidate, evaluated
        curvature = max(
            evaluated.value - start.value + step_length * gain, gain * VALUE_RTOL
        )
        step_length *= float(np.clip(step_length * gain / (2 * curvature), 0.1, 0.5))
    return None


def _apply_inverse_hessian(
    g: np.ndarray, steps: deque, solve: InverseHessian, hessian_is_exact: bool
) -> np.ndarray:
    """The inverse curvature times g, corrected by the steps so far.

    A sample may be flat where few of the rows are not: then less of its inverse counts,
    as the last step says, or every step would be found too long by several passes.
    """
    q, coefficients = g.copy(), []
    pairs = [(s, y, float(np.vdot(s, y))) for s, y in steps]
    pairs = [each for each in pairs if each[2] > 0]
    for s, y, sy in reversed(pairs):
        coefficient = float(np.vdot(s, q)) / sy
        q -= coefficient * y
        coefficients.append(coefficient)
    q = solve(q)
    if pairs and not hessian_is_exact:
        _, y, sy = pairs[-1]
        q *= min(1.0, sy / float(np.vdot(y, solve(y))))
    for (s, y, sy), coefficient in zip(pairs, reversed(coefficients), strict=True):
        q += (coefficient - float(np.vdot(y, q)) / sy) * s
    return q
