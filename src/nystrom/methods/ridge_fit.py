"""Kernel ridge regression on landmarks, from landmarks and rows to coefficients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..approximation import estimated_error
from ..engines import Engine
from ..kernels import Pairwise
from ..landmarks import Landmarks, TraceError
from ..randomness import some_rows
from ..sources import Source
from .linear_map import needs_float64
from .moments import FeatureMap, Moments, feature_map, moments, trace_error
from .ridge import Centered, Posterior, on_landmarks, posterior
from .ridge_cg import DRAWN_ROWS, FIRST_ROWS, solve_cg

#: What `solver="auto"` weighs, in float64 multiply-adds as a matrix product does them:
#: a kernel value beyond its product over features, and conjugate-gradient steps.
EVALUATION_COST, EXPECTED_STEPS = 120, 32
#: Rows on which the error is estimated without a Gram pass.
ERROR_ROWS = 1024


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """Coefficients on the landmarks' kernel values, and what is known about them."""

    dual: np.ndarray  # (s, t)
    intercept: np.ndarray  # (t,)
    solver: str
    wide: bool  # float32 rows are predicted through float64 kernel values
    error: TraceError  # relative
    trace_left: float | None  # an upper bound of tr(K − K̃), after a Gram pass
    posterior: Posterior | None  # None after conjugate gradients
    n_iterations: int | None
    converged: bool
    notes: tuple[str, ...]


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
    made = feature_map(landmarks, source, float(alphas.min()), center=fit_intercept)
    if solver == "auto":
        solver = cheaper_solver(made, source)
    if solver == "direct":
        sums = moments(made, source, engine)
        return finish(made, sums, source, alphas, fit_intercept)
    solved = solve_cg(made, source, alphas, fit_intercept, engine, seed)
    rows = some_rows(source.n_rows, ERROR_ROWS)
    return RidgeFit(
        dual=solved.dual,
        intercept=solved.intercept,
        solver="cg",
        wide=needs_float64(
            made.kernel, made.points, source, solved.dual, solved.intercept
        ),
        error=estimated_error(landmarks, source, engine, rows),
        trace_left=None,
        posterior=None,
        n_iterations=solved.n_iterations,
        converged=solved.converged,
        notes=notes_of(made),
    )


def finish(
    made: FeatureMap,
    sums: Moments,
    source: Source,
    alphas: np.ndarray,
    fit_intercept: bool,
) -> RidgeFit:
    """From the sums over all rows to the fit."""
    problem = Centered.of(sums, fit_intercept)
    dual, intercept = on_landmarks(made, problem, problem.solve(alphas))
    left, error = trace_error(made, sums)
    return RidgeFit(
        dual=dual,
        intercept=intercept,
        solver="direct",
        wide=needs_float64(made.kernel, made.points, source, dual, intercept),
        error=error,
        trace_left=left,
        posterior=posterior(made, problem, alphas),
        n_iterations=None,
        converged=True,
        notes=notes_of(made),
    )


def cheaper_solver(made: FeatureMap, source: Source) -> str:
    """The solver that a count of multiply-adds favours."""
    n, s = source.n_rows, len(made.shift)
    if made.alpha == 0 or isinstance(made.kernel, Pairwise):
        return "direct"  # no condition number to rely on; evaluations are dear
    direct = n * s**2 * (3 if made.whiten else 1)
    # A float32 product is twice as fast.
    narrow = made.kernel.dtype(made.points) == np.float32 and not made.wide
    width = (source.n_features or 1) * (0.5 if narrow else 1) * 2
    evaluations = EVALUATION_COST * (1 if narrow else 2) + width
    rows = (FIRST_ROWS + DRAWN_ROWS) * s * (3 if made.whiten else 1)
    cg = EXPECTED_STEPS * n * s * evaluations + rows * s**2
    return "cg" if cg < direct else "direct"


def notes_of(made: FeatureMap) -> tuple[str, ...]:
    """What the reader should know of how Z was made."""
    return ("kernel values in float64 for this alpha",) if made.wide else ()
