"""Kernel logistic regression, from landmarks and rows to coefficients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...engines import Engine
from ...engines.blas import blas_threads_for
from ...features import FeatureMap
from ...landmarks import Landmarks
from ...sources import Source
from ..linear_map import LinearMap
from .curvature import Curvature
from .descent import Reached, descend
from .loss import Slope, slope_at


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
    if start is None:
        start = np.zeros((mapping.rank + 1, source.targets.shape[1]))
    common = (mapping, source, C, settings.fit_intercept, engine)

    def slope(coef: np.ndarray) -> Slope:
        return slope_at(coef, *common)

    def curvature(coef: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        return Curvature.at(coef, *common, settings.seed).solve

    with blas_threads_for(mapping.rank):
        return descend(
            start,
            slope,
            curvature,
            tolerance=settings.tolerance,
            most_iterations=settings.most_iterations,
        )


def on_landmarks(
    landmarks: Landmarks, source: Source, mapping: FeatureMap, coef: np.ndarray
) -> LinearMap:
    """Decisions of new rows from their kernel values."""
    dual = mapping.root @ coef[:-1]
    return LinearMap.as_precise_as_needed(landmarks, source, dual, coef[-1])
