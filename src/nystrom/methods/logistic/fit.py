"""Kernel logistic regression, from landmarks and rows to coefficients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...engines import Engine
from ...engines.blas import blas_threads_for
from ...engines.progress import expect
from ...features import FeatureMap
from ...landmarks import Landmarks
from ...precision import EPS64
from ...sources import Source
from ..linear_map import LinearMap
from .curvature import Curvature, rows_to_look_at
from .descent import Reached, descend
from .loss import Slope, loss_of_none, slope_at
from .sample import counting_for_all, knows_all_classes

#: On the sample no more than this share of the objective is left, in so many steps:
#: its minimum is not that of all rows.
SAMPLE_TOLERANCE, SAMPLE_ITERATIONS = 1e-3, 30
#: About as many passes over all rows as there often are.
USUAL_PASSES = 10


@dataclass(frozen=True)
class Settings:
    """How to go down, and how far."""

    fit_intercept: bool
    tolerance: float
    most_iterations: int
    seed: int


def feature_map(landmarks: Landmarks, source: Source, largest_C: float) -> FeatureMap:
    """Z as exact as the largest C needs it.

    A row's share of the Hessian is at most ¼: as of ridge regression with α = 4/C.
    """
    return FeatureMap.for_ridge(landmarks, source, 4 / largest_C, center=False)


def reach(
    mapping: FeatureMap,
    source: Source,
    C: float,
    settings: Settings,
    engine: Engine,
    start: np.ndarray | None = None,
) -> Reached:
    """Coefficients (r + 1, t) on Z, the intercept last, for targets of ±1."""
    fit_intercept, t = settings.fit_intercept, source.targets.shape[1]
    none = np.zeros((mapping.rank + 1, t))
    with blas_threads_for(mapping.rank):
        size = rows_to_look_at(mapping.rank + 1, t)
        sample = counting_for_all(source, size, engine, settings.seed)

        curvature = Curvature(mapping, sample, C, fit_intercept).at

        def slope(coef: np.ndarray) -> Slope:
            return slope_at(coef, mapping, source, C, fit_intercept, engine)

        def slope_of_sample(coef: np.ndarray) -> Slope:
            here = engine.local.quiet()
            return slope_at(coef, mapping, sample, C, fit_intercept, here)

        if start is None:
            start = none
            if sample is not source and knows_all_classes(sample):
                start = descend(
                    none,
                    slope_of_sample,
                    curvature,
                    exact=True,
                    tolerance=SAMPLE_TOLERANCE,
                    most_iterations=SAMPLE_ITERATIONS,
                ).x
        if not np.isfinite(C * loss_of_none(source)):
            raise ValueError(
                f"C={C:g} times the weights of all rows is too large for float64; a "
                "smaller C changes nothing that rounding does not."
            )
        expect(engine.progress, min(USUAL_PASSES, settings.most_iterations), about=True)
        first = slope(start)
        if not first.value <= C * loss_of_none(source):
            start, first = none, slope(none)
        return descend(
            start,
            slope,
            curvature,
            exact=sample is source,
            first=first,
            least=EPS64 * C * loss_of_none(source),
            tolerance=settings.tolerance,
            most_iterations=settings.most_iterations,
        )


def on_landmarks(
    landmarks: Landmarks, source: Source, mapping: FeatureMap, coef: np.ndarray
) -> LinearMap:
    """Decisions of new rows from their kernel values."""
    dual = mapping.root @ coef[:-1]
    return LinearMap.as_precise_as_needed(landmarks, source, dual, coef[-1])
