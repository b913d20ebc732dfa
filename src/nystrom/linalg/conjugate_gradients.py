"""Preconditioned conjugate gradients for several right-hand sides at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

#: How far residuals may seem to fall between two exact products, where those of the
#: steps are rounded.
MAX_UNVERIFIED_REDUCTION = 1e-3
#: The residual after such a fall, as a share of that before it: with more the products
#: are too rounded, or nothing more can be had in float64.
STAGNATION_RATIO = 0.5
#: Where a residual grows to so many times the smallest, steps are rounding.
DIVERGENCE_RATIO = 1e6

MatrixProduct = Callable[[np.ndarray], np.ndarray]  # V ↦ AV


class NotPositiveDefiniteError(Exception):
    """A direction in which the matrix is not positive."""


@dataclass(frozen=True, eq=False)
class CGSolution:
    """x with Ax = b, column by column, and how it was found."""

    x: np.ndarray
    last_x: np.ndarray  # after the last step: not always the best
    n_iterations: int
    residual: np.ndarray  # (t,) relative to that of x = 0
    converged: bool


def conjugate_gradients(
    multiply: MatrixProduct,
    b: np.ndarray,
    precondition: MatrixProduct,
    *,
    rtol: float,
    max_iterations: int,
    multiply_exact: MatrixProduct | None = None,
) -> CGSolution:
    """Ax = b for every column of b at once, each with steps of its own length.

    Residuals r are updated step by step and measured in the preconditioner's norm
    √(rᵀM⁻¹r); of a column that does not converge, the best x is returned.

    With `multiply_exact` products may be rounded, as in float32: residuals are
    replaced by b − Ax whenever they have fallen far, and measured by ‖r‖. Steps by
    rounded products that do not help are undone, and exact ones follow. It is the same
    function where no product is rounded.
    """
    x, r = np.zeros_like(b), b.copy()
    z = precondition(r)
    p, rho = z, np.maximum(_column_dots(r, z), 0.0)
    size = np.sqrt(rho) if multiply_exact is None else _column_norms(r)
    initial_size, threshold = size, rtol * size
    best_x, best_size = x, size  # or where the residual was last replaced
    stopped = np.zeros(len(size), dtype=bool)
    n_iterations = 0
    while n_iterations < max_iterations and np.any((size > threshold) & ~stopped):
        n_iterations += 1
        Ap = multiply(p)
        curvature, active = _column_dots(p, Ap), (size > threshold) & ~stopped
        is_descending = ~active | (curvature > 0)  # else p is rounding
        if multiply is multiply_exact and not is_descending.all():
            raise NotPositiveDefiniteError
        steps = active & is_descending
        with np.errstate(over="ignore", invalid="ignore"):  # such an x is not the best
            step_length = np.where(steps, rho / _nonzero_divisor(curvature), 0.0)
            x = x + step_length * p
            previous_r, r = r, r - step_length * Ap
        if multiply_exact is not None:
            size, trusted = _column_norms(r), bool(is_descending.all())
            if not np.all(size <= DIVERGENCE_RATIO * best_size):  # nan diverges, too
                x, trusted = best_x, False
            reduction = 0.0 if multiply is multiply_exact else MAX_UNVERIFIED_REDUCTION
            has_fallen = size <= np.maximum(threshold, reduction * best_size)
            if not trusted or has_fallen.all():
                r = b - multiply_exact(x)
                size = _column_norms(r)
                stagnated = np.any(
                    (size > threshold) & (size > STAGNATION_RATIO * best_size)
                )
                if stagnated and multiply is multiply_exact:
                    break
                if stagnated or not trusted:
                    multiply, rho = multiply_exact, np.zeros_like(rho)  # restart
                best_x, best_size = x, size
        z = precondition(r)
        # By the change of r, not by its size: right for a replaced r, too.
        change = _column_dots(z, r - previous_r)
        beta = np.where(rho > 0, change / _nonzero_divisor(rho), 0.0)
        p = z + np.maximum(beta, 0.0) * p
        rho = np.maximum(_column_dots(r, z), 0.0)
        if multiply_exact is None:
            size = np.sqrt(rho)
            best_x = np.where(size < best_size, x, best_x)
            best_size = np.fmin(size, best_size)
            stopped |= ~is_descending | ~(size <= DIVERGENCE_RATIO * best_size)
    last_x = x
    if multiply_exact is None:
        x, size = best_x, best_size
    elif np.any(size > threshold):
        size = _column_norms(b - multiply_exact(x))
    converged = not np.any(size > threshold)
    relative = size / _nonzero_divisor(initial_size)
    return CGSolution(x, last_x, n_iterations, relative, converged)


def _column_dots(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.einsum("nt,nt->t", A, B)


def _column_norms(A: np.ndarray) -> np.ndarray:
    return np.sqrt(_column_dots(A, A))


def _nonzero_divisor(values: np.ndarray) -> np.ndarray:
    """To divide by, where it matters."""
    return np.where(values > 0, values, 1.0)
