"""Kernel logistic regression on landmarks, and the choice of C by held-out loss."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._precision import EPS64
from .._random import Purpose, uniforms_at
from ..engines import Engine
from ..engines.blas import blas_limit_for_size
from ..landmarks import Landmarks
from ..linalg.features import FeatureMap
from ..sources import Source
from .linear_map import LinearMap
from .logistic_loss import (
    DescentResult,
    SampledHessian,
    ValueAndGradient,
    has_all_classes,
    mean_loss,
    minimize_quasi_newton,
    n_sample_rows,
    null_loss,
    objective_and_gradient,
    representative_sample,
    sample_rows_by_weight,
    weighted_subset,
)

#: On the sample no more than this share of the objective is left, in so many steps:
#: its minimum is not that of all rows.
SAMPLE_TOLERANCE, SAMPLE_MAX_ITERATIONS = 1e-3, 30


@dataclass(frozen=True)
class LogisticSettings:
    """How to go down, and how far."""

    fit_intercept: bool
    tolerance: float
    max_iterations: int
    seed: int


def logistic_feature_map(
    landmarks: Landmarks, source: Source, max_C: float
) -> FeatureMap:
    """Z as exact as the largest C needs it.

    A row's share of the Hessian is at most ¼: as of ridge regression with α = 4/C.
    """
    return FeatureMap.for_ridge(landmarks, source, 4 / max_C, center=False)


def fit_logistic(
    mapping: FeatureMap,
    source: Source,
    C: float,
    settings: LogisticSettings,
    engine: Engine,
    start: np.ndarray | None = None,
) -> DescentResult:
    """Coefficients (r + 1, t) on Z, the intercept last, for targets of ±1."""
    fit_intercept, t = settings.fit_intercept, source.targets.shape[1]
    zero_coef = np.zeros((mapping.rank + 1, t))
    with blas_limit_for_size(mapping.rank):
        size = n_sample_rows(mapping.rank + 1, t)
        sample = representative_sample(source, size, engine, settings.seed)

        inverse_hessian_at = SampledHessian(
            mapping, sample, C, fit_intercept
        ).inverse_at

        def objective(coef: np.ndarray) -> ValueAndGradient:
            return objective_and_gradient(
                coef, mapping, source, C, fit_intercept, engine
            )

        def sample_objective(coef: np.ndarray) -> ValueAndGradient:
            local_engine = engine.local.quiet()
            return objective_and_gradient(
                coef, mapping, sample, C, fit_intercept, local_engine
            )

        if start is None:
            start = zero_coef
            if sample is not source and has_all_classes(sample):
                start = minimize_quasi_newton(
                    zero_coef,
                    sample_objective,
                    inverse_hessian_at,
                    hessian_is_exact=True,
                    tolerance=SAMPLE_TOLERANCE,
                    max_iterations=SAMPLE_MAX_ITERATIONS,
                ).x
        if not np.isfinite(C * null_loss(source)):
            raise ValueError(
                f"C={C:g} times the weights of all rows is too large for float64; a "
                "smaller C changes nothing that rounding does not."
            )
        start_value = objective(start)
        if not start_value.value <= C * null_loss(source):
            start, start_value = zero_coef, objective(zero_coef)
        return minimize_quasi_newton(
            start,
            objective,
            inverse_hessian_at,
            hessian_is_exact=sample is source,
            start_value=start_value,
            min_value=EPS64 * C * null_loss(source),
            tolerance=settings.tolerance,
            max_iterations=settings.max_iterations,
        )


def to_linear_map(
    landmarks: Landmarks, source: Source, mapping: FeatureMap, coef: np.ndarray
) -> LinearMap:
    """Decisions of new rows from their kernel values."""
    dual = mapping.root @ coef[:-1]
    return LinearMap.with_sufficient_precision(landmarks, source, dual, coef[-1])


#: Rows that C is chosen on at most; of each class one in so many is left out.
MAX_SELECTION_ROWS, HELD_OUT_EVERY = 2**16, 5
#: To compare them, no less of the objective need be left.
TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class SelectedC:
    """One of several C, what each of them lost, and where to begin with it."""

    C: float
    losses: np.ndarray  # −log p of a row that was left out, on the mean
    coef: np.ndarray | None  # None where a class was not among the rows


def select_cost(
    mapping: FeatureMap,
    source: Source,
    Cs: np.ndarray,
    settings: LogisticSettings,
    engine: Engine,
) -> SelectedC:
    """The C of least loss, from the smallest up.

    C stands beside a sum over rows: to mean the same, it counts for all of them.
    """
    rows, weights = sample_rows_by_weight(source, MAX_SELECTION_ROWS, settings.seed)
    is_held_out = _held_out_mask(source, rows, settings.seed)
    if not is_held_out.any():
        raise ValueError(
            f"C={Cs.tolist()} are chosen from by the loss on rows that are left "
            "out, and no class has a row to spare; give one C."
        )
    test, train = (
        weighted_subset(source, rows[mask], weights[mask], engine)
        for mask in (is_held_out, ~is_held_out)
    )
    scale = source.total_weight / train.total_weight
    settings = replace(settings, tolerance=max(settings.tolerance, TOLERANCE))
    losses = np.full(len(Cs), np.inf)
    coef, best = None, None
    for i in np.argsort(Cs, kind="stable"):
        C = scale * float(Cs[i])
        coef = fit_logistic(mapping, train, C, settings, engine, coef).x
        losses[i] = mean_loss(coef, mapping, test, engine)
        if best is None or losses[i] < best.losses.min():
            best = SelectedC(float(Cs[i]), losses.copy(), coef)
    assert best is not None
    # Without rows of a class its constant goes to −∞: nowhere to begin from.
    start = best.coef if has_all_classes(train, 1) else None
    return replace(best, losses=losses, coef=start)


def _held_out_mask(source: Source, rows: np.ndarray, seed: int) -> np.ndarray:
    """Which of these rows are: of each class one in five, and never all."""
    Y = source.targets[rows]
    labels = Y[:, 0] > 0 if Y.shape[1] == 1 else Y.argmax(axis=1)
    order = np.lexsort((uniforms_at(seed, Purpose.FOLD, rows), labels))
    _, first, counts = np.unique(labels[order], return_index=True, return_counts=True)
    rank_in_class = np.arange(len(rows)) - np.repeat(first, counts)  # within the class
    is_held_out = np.zeros(len(rows), dtype=bool)
    is_held_out[order] = rank_in_class % HELD_OUT_EVERY == HELD_OUT_EVERY - 1
    if not is_held_out.any():  # few rows: one of the largest class, if it has another
        largest_class = counts.argmax()
        is_held_out[order[first[largest_class]]] = counts[largest_class] > 1
    return is_held_out
