"""Kernel ridge regression on landmarks: choose a solver and return a `RidgeFit`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..engines import Engine, Threads
from ..engines.blas import blas_limit_for_size
from ..landmarks import Landmarks
from ..linalg.errors import TraceError
from ..linalg.features import FeatureMap
from ..linalg.moments import Moments, are_alike, moments, trace_error_bound
from ..linalg.operator import estimate_trace_error, trace_error_after_pass
from ..sources import Source
from .linear_map import LinearMap
from .posterior import Posterior, ridge_posterior
from .ridge import NormalEquations, dual_coefficients
from .ridge_cg import LEVERAGE_ROWS_PER_LANDMARK, UNIFORM_ROWS_PER_LANDMARK, solve_cg

#: What `solver="auto"` weighs, in float64 multiply-adds as a matrix product does them:
#: a kernel value beyond its product over features, and conjugate-gradient steps.
KERNEL_VALUE_COST, EXPECTED_CG_STEPS = 120, 32
#: The Gram matrix of whitened tiles in units of the other: both are half a product, and
#: so is that with a triangular root.
WHITENED_GRAM_COST = 2


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """Coefficients on the landmarks' kernel values, and what is known about them."""

    map: LinearMap
    solver: str
    error: TraceError | None  # relative
    residual_trace: float | None  # an upper bound of tr(K − K̃), after a Gram pass
    posterior: Posterior | None  # None after conjugate gradients
    n_iterations: int | None
    converged: bool
    notes: tuple[str, ...]
    least_alpha: float = 0.0  # rounding hides a smaller one in some direction
    alike: bool | None = None  # whether features are the same for all rows


def fit_ridge(
    landmarks: Landmarks,
    source: Source,
    alphas: np.ndarray,
    *,
    fit_intercept: bool,
    solver: str,
    engine: Engine,
    seed: int,
) -> RidgeFit:
    """Ridge regression of the source's targets, one α for each."""
    with blas_limit_for_size(len(landmarks)):
        mapping = FeatureMap.for_ridge(
            landmarks, source, float(alphas.min()), center=fit_intercept, engine=engine
        )
        if solver == "auto":
            solver = choose_solver(mapping, source)
        if solver == "direct":
            sums = moments(mapping, source, engine)
            return fit_from_moments(
                landmarks, mapping, sums, source, alphas, fit_intercept, engine
            )
        solution = solve_cg(mapping, source, alphas, fit_intercept, engine, seed)
        return RidgeFit(
            map=LinearMap.with_sufficient_precision(
                landmarks, source, solution.dual, solution.intercept
            ),
            solver="cg",
            error=estimate_trace_error(landmarks, source, engine),
            residual_trace=None,
            posterior=None,
            n_iterations=solution.n_iterations,
            converged=solution.converged,
            notes=precision_notes(mapping),
        )


def fit_from_moments(
    landmarks: Landmarks,
    mapping: FeatureMap,
    sums: Moments,
    source: Source,
    alphas: np.ndarray,
    fit_intercept: bool,
    engine: Engine | None = None,
) -> RidgeFit:
    """From the sums over all rows to the fit."""
    with blas_limit_for_size(len(landmarks)):
        problem = NormalEquations.from_moments(sums, fit_intercept)
        coef = problem.solve(alphas)
        dual, intercept = dual_coefficients(mapping, problem, coef)
        return RidgeFit(
            map=LinearMap.with_sufficient_precision(landmarks, source, dual, intercept),
            solver="direct",
            error=trace_error_after_pass(
                landmarks, mapping, sums, source, engine or Threads(1)
            ),
            residual_trace=trace_error_bound(mapping, sums),
            posterior=ridge_posterior(mapping, problem, alphas, coef),
            n_iterations=None,
            converged=True,
            notes=precision_notes(mapping),
            least_alpha=problem.least_alpha(float(alphas.min())),
            alike=are_alike(sums),
        )


def choose_solver(mapping: FeatureMap, source: Source) -> str:
    """The solver that a count of multiply-adds favours."""
    n, s = source.n_rows, len(mapping.shift)
    if mapping.alpha == 0 or mapping.columns.kernel.traits.costly:
        return "direct"  # no condition number to rely on; evaluations are dear
    gram_cost = s**2 * (WHITENED_GRAM_COST if mapping.whiten else 1)
    direct_cost = n * gram_cost
    # A float32 product is twice as fast.
    narrow = mapping.columns.narrow
    product_cost = (source.n_features or 1) * (0.5 if narrow else 1) * 2
    evaluation_cost = KERNEL_VALUE_COST * (1 if narrow else 2) + product_cost
    preconditioner_rows = (UNIFORM_ROWS_PER_LANDMARK + LEVERAGE_ROWS_PER_LANDMARK) * s
    cg_cost = (
        EXPECTED_CG_STEPS * n * s * evaluation_cost + preconditioner_rows * gram_cost
    )
    return "cg" if cg_cost < direct_cost else "direct"


def precision_notes(mapping: FeatureMap) -> tuple[str, ...]:
    """What the reader should know of how Z was made."""
    return ("kernel values in float64 for this alpha",) if mapping.columns.wide else ()
