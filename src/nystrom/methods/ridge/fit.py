"""Kernel ridge regression on landmarks, from landmarks and rows to coefficients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...approximation import estimated_error, told_error
from ...engines import Engine, Threads
from ...engines.blas import blas_threads_for
from ...engines.progress import expect, parts
from ...features import FeatureMap
from ...landmarks import Landmarks
from ...moments import Moments, are_alike, moments, trace_left
from ...sources import Source
from ...trace_error import TraceError
from ..linear_map import LinearMap
from .cg import DRAWN_ROWS, FIRST_ROWS, solve_cg
from .posterior import Posterior, posterior
from .problem import Centered, on_landmarks

#: What `solver="auto"` weighs, in float64 multiply-adds as a matrix product does them:
#: a kernel value beyond its product over features, and conjugate-gradient steps.
EVALUATION_COST, EXPECTED_STEPS = 120, 32
#: The Gram matrix of whitened tiles in units of the other: both are half a product, and
#: so is that with a triangular root.
WHITENED_COST = 2
#: How long it takes, in passes over all rows: what comes before, and the solution for
#: each landmark per row.
PREPARING, SOLVING = 0.02, 4.0


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """Coefficients on the landmarks' kernel values, and what is known about them."""

    map: LinearMap
    solver: str
    error: TraceError | None  # relative
    trace_left: float | None  # an upper bound of tr(K − K̃), after a Gram pass
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
    told, share = engine.progress, len(landmarks) / source.n_rows
    preparing, summing, solving = parts(told, PREPARING, 1.0, SOLVING * share)
    with blas_threads_for(len(landmarks)):
        with preparing:
            mapping = FeatureMap.for_ridge(
                landmarks,
                source,
                float(alphas.min()),
                center=fit_intercept,
                engine=engine,
            )
        if solver == "auto":
            solver = cheaper_solver(mapping, source)
        if solver == "direct":
            with summing:
                expect(told, 1)
                sums = moments(mapping, source, engine)
            with solving:
                told("solution", 0, 1)
                return finish(
                    landmarks, mapping, sums, source, alphas, fit_intercept, engine
                )
        solved = solve_cg(mapping, source, alphas, fit_intercept, engine, seed)
        return RidgeFit(
            map=LinearMap.as_precise_as_needed(
                landmarks, source, solved.dual, solved.intercept
            ),
            solver="cg",
            error=estimated_error(landmarks, source, engine),
            trace_left=None,
            posterior=None,
            n_iterations=solved.n_iterations,
            converged=solved.converged,
            notes=notes_of(mapping),
        )


def finish(
    landmarks: Landmarks,
    mapping: FeatureMap,
    sums: Moments,
    source: Source,
    alphas: np.ndarray,
    fit_intercept: bool,
    engine: Engine | None = None,
) -> RidgeFit:
    """From the sums over all rows to the fit."""
    with blas_threads_for(len(landmarks)):
        problem = Centered.of(sums, fit_intercept)
        coef = problem.solve(alphas)
        dual, intercept = on_landmarks(mapping, problem, coef)
        return RidgeFit(
            map=LinearMap.as_precise_as_needed(landmarks, source, dual, intercept),
            solver="direct",
            error=told_error(landmarks, mapping, sums, source, engine or Threads(1)),
            trace_left=trace_left(mapping, sums),
            posterior=posterior(mapping, problem, alphas, coef),
            n_iterations=None,
            converged=True,
            notes=notes_of(mapping),
            least_alpha=problem.least_alpha(float(alphas.min())),
            alike=are_alike(sums),
        )


def cheaper_solver(mapping: FeatureMap, source: Source) -> str:
    """The solver that a count of multiply-adds favours."""
    n, s = source.n_rows, len(mapping.shift)
    if mapping.alpha == 0 or mapping.columns.kernel.traits.costly:
        return "direct"  # no condition number to rely on; evaluations are dear
    gram_cost = s**2 * (WHITENED_COST if mapping.whiten else 1)
    direct = n * gram_cost
    # A float32 product is twice as fast.
    narrow = mapping.columns.narrow
    width = (source.n_features or 1) * (0.5 if narrow else 1) * 2
    evaluations = EVALUATION_COST * (1 if narrow else 2) + width
    rows = (FIRST_ROWS + DRAWN_ROWS) * s
    cg = EXPECTED_STEPS * n * s * evaluations + rows * gram_cost
    return "cg" if cg < direct else "direct"


def notes_of(mapping: FeatureMap) -> tuple[str, ...]:
    """What the reader should know of how Z was made."""
    return ("kernel values in float64 for this alpha",) if mapping.columns.wide else ()
