"""Kernels and landmarks learnt from targets: gamma="learn", "ard" and "matrix", and
optimize_landmarks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from .._random import Purpose, Stream
from ..engines.base import Engine
from ..kernels import Kernel, Mahalanobis
from ..kernels.names import NAMES, as_kernel, gamma_of, with_gamma
from ..kernels.stationary import EuclideanKernel, has_width_gradient
from ..landmarks import Landmarks
from ..models.collapsed_bound import (
    MAX_BOUND_ROWS,
    MIN_BOUND_ROWS,
    ROWS_PER_LANDMARK,
    optimize_landmarks,
)
from ..models.length_scales import (
    MAX_SUBSET_LANDMARKS,
    MAX_SUBSET_ROWS,
    TrainingSubset,
    learn_length_scales,
)
from ..models.metric import (
    MAX_COMPARED_LANDMARKS,
    MAX_METRIC_LANDMARKS,
    MAX_METRIC_ROWS,
    ROWS_PER_COMPARED_LANDMARK,
    learn_metric,
    n_train_rows,
)
from ..models.posterior import MAX_CALIBRATION_ROWS
from ..sources import Source
from ._problem import LEARN, LEARN_ARD, LEARN_MATRIX, KernelProblem, gamma_from_data

#: More features than these are not learnt from: a width each, or a matrix of them.
MAX_ARD_FEATURES, MAX_MATRIX_FEATURES = 2**14, 2**10
#: Numbers of the rows that a metric is learnt on, at most: 64 MB.
MAX_SUBSET_NUMBERS = 2**23
#: Intervals of moved landmarks are calibrated on rows that these were not moved for,
#: where there are so many. On others residuals are too small: of 2000 rows with 200
#: landmarks, 50 % intervals covered 37 to 45 % of new rows, and 47 to 54 % so. With
#: few rows the coverage varies more by chance than it gains (300 rows of six sets).
MIN_HELD_OUT_ROWS = 200
#: What the bound may change of the kernel, by the rule for gamma.
STRUCTURES = {LEARN: "width", LEARN_ARD: "diagonal", LEARN_MATRIX: "matrix"}


def check_learnable_kernel(gamma: str, kernel: Any) -> None:
    """Refuse kernels whose widths cannot be learnt."""
    needed: Any = has_width_gradient
    distance = "a distance"
    if gamma == LEARN_MATRIX:
        needed, distance = _is_euclidean, "the Euclidean distance"
    if isinstance(kernel, str) and kernel in NAMES and needed(as_kernel(kernel)):
        return
    allowed = [name for name in NAMES if needed(as_kernel(name))]
    raise ValueError(
        f"gamma={gamma!r} needs a kernel of {distance}, given by name: "
        f"{', '.join(allowed)}; not for kernel={kernel!r}."
    )


def can_learn_matrix(kernel: Any, source: Source) -> bool:
    """Whether gamma="matrix" is possible for a kernel given by its name."""
    n_features = source.n_features or MAX_MATRIX_FEATURES + 1
    is_allowed = kernel in NAMES and _is_euclidean(as_kernel(kernel))
    return is_allowed and n_features <= MAX_MATRIX_FEATURES


def _is_euclidean(kernel: Kernel) -> bool:
    return isinstance(kernel, (EuclideanKernel, Mahalanobis))


def learn_kernel(
    problem: KernelProblem,
    name: str,
    gamma: str,
    *,
    n_landmarks: int | None,
    intercept: bool,
    seed: int,
    moves_landmarks: bool,
    for_classes: bool = False,
) -> KernelProblem:
    """The problem with the widths or the matrix of its kernel, "scale" so far, learnt.

    `name` is the kernel's. The rules "ard" and "matrix" compare metrics on held-out
    rows, beside "scale", "median" and "learn". Where landmarks are moved, a matrix is
    learnt with them, and this gives the widths to begin with.
    """
    source, engine, kernel = problem.source, problem.engine, problem.kernel
    n_features = source.n_features or 0
    limit = {LEARN_ARD: MAX_ARD_FEATURES, LEARN_MATRIX: MAX_MATRIX_FEATURES}
    if n_features > limit.get(gamma, np.inf):
        what = "a width for each" if gamma == LEARN_ARD else "a matrix"
        raise ValueError(
            f"gamma={gamma!r} has {what} of {n_features} features, but supports at "
            f"most {limit[gamma]}; use gamma='learn', one width for all features."
        )
    problem = replace(problem, learned_gamma=gamma)
    if not source.weights.any():
        return problem

    def subset(max_rows: int, max_landmarks: int, dense: bool) -> TrainingSubset:
        return TrainingSubset.from_source(
            source,
            engine,
            size=min(n_landmarks or max_landmarks, max_landmarks),
            intercept=intercept,
            dense=dense,
            seed=seed,
            max_rows=max_rows,
        )

    rows = subset(MAX_SUBSET_ROWS, MAX_SUBSET_LANDMARKS, gamma != LEARN)
    scale = gamma_of(kernel)
    assert isinstance(scale, float)
    starts = [scale, gamma_from_data("median", name, source, engine)]
    if gamma == LEARN or not isinstance(kernel, EuclideanKernel):
        kernels = learn_length_scales(kernel, starts, rows, ard=gamma != LEARN)
        return replace(problem, kernel=kernels[-1])
    one_width, per_feature = learn_length_scales(kernel, starts, rows, ard=True)
    max_rows = max(MAX_SUBSET_NUMBERS // n_features, 500)
    rows = subset(min(MAX_METRIC_ROWS, max_rows), MAX_METRIC_LANDMARKS, True)
    more_rows = None
    if not moves_landmarks:
        size = min(n_landmarks or MAX_COMPARED_LANDMARKS, MAX_COMPARED_LANDMARKS)
        larger = min(max(ROWS_PER_COMPARED_LANDMARK * size, MAX_METRIC_ROWS), max_rows)
        more_rows = subset(larger, MAX_COMPARED_LANDMARKS, True)
    learned, error_ratio = learn_metric(
        [with_gamma(kernel, starts[0]), with_gamma(kernel, starts[1]), one_width],
        per_feature,
        rows,
        more_rows,
        engine.local.quiet(),
        matrix=gamma == LEARN_MATRIX and not moves_landmarks,
        for_classes=for_classes,
    )
    return replace(problem, kernel=learned, error_ratio=error_ratio)


def move_landmarks(
    problem: KernelProblem,
    landmarks: Landmarks,
    engine: Engine,
    *,
    alpha: float | None,
    intercept: bool,
    seed: int,
) -> Landmarks:
    """Landmarks, and a kernel that was learnt, optimised for the targets.

    They are no longer rows of the data. `alpha` is None where it is learnt too.
    """
    if not _is_euclidean(landmarks.kernel):
        raise ValueError(
            "optimize_landmarks=True moves landmarks along the gradient of a kernel "
            "of the Euclidean distance, such as 'rbf' or 'matern32'; "
            f"{landmarks.kernel} is not one. Use another kernel, or omit "
            "optimize_landmarks."
        )
    source, n_landmarks = problem.source, len(landmarks)
    max_rows = max(ROWS_PER_LANDMARK * n_landmarks, MIN_BOUND_ROWS)
    subset = TrainingSubset.from_source(
        source,
        problem.engine,
        size=n_landmarks,
        intercept=intercept,
        dense=True,
        seed=seed,
        max_rows=min(max_rows, max(MAX_BOUND_ROWS, 4 * n_landmarks)),
    )
    if len(subset.X) < 10 or not subset.targets.shape[1]:
        return landmarks
    points = landmarks.points
    points = points.toarray() if sp.issparse(points) else points
    kernel, moved, noise = optimize_landmarks(
        landmarks.kernel,
        arrays.to_host_float64(points) - subset.center,
        subset,
        engine,
        structure=STRUCTURES.get(problem.learned_gamma or "", "fixed"),
        # Of weights whose mean is 1; an alpha is of weights as they are.
        alpha=None if alpha is None else alpha / subset.mean_weight,
    )
    noise = None if noise is None else noise * subset.mean_weight
    moved = moved + subset.center
    if not sp.issparse(landmarks.points):
        moved = arrays.from_host(moved, points, points.dtype)
    landmarks = with_moved_points(landmarks, moved, kernel, noise)
    return landmarks.replace(held_out=_rows_to_calibrate(subset, source, seed))


def _rows_to_calibrate(
    subset: TrainingSubset, source: Source, seed: int
) -> np.ndarray | None:
    """A sample of the rows that landmarks were not moved for, if there are enough."""
    assert subset.row_numbers is not None
    moved_for = subset.row_numbers[: n_train_rows(len(subset.X))]
    size = len(moved_for) + MAX_CALIBRATION_ROWS
    if source.is_weighted:  # there may be many of weight 0
        size += 15 * MAX_CALIBRATION_ROWS
    rows = Stream(seed, Purpose.CHECK).sample_rows(size, source.n_rows)
    rows = rows[~np.isin(rows, moved_for) & (source.weights_of(rows) > 0)]
    rows = np.sort(rows[:MAX_CALIBRATION_ROWS])
    return rows if len(rows) >= MIN_HELD_OUT_ROWS else None


def with_moved_points(
    landmarks: Landmarks, points: Any, kernel: Kernel, ridge: float | None = None
) -> Landmarks:
    """Landmarks at other points, which are no rows, with the cost of the selection."""
    return Landmarks(
        points,
        kernel,
        f"{landmarks.sampler}, optimized",
        landmarks.n_rows,
        ridge=ridge,
        n_kernel_evaluations=landmarks.n_kernel_evaluations,
        seconds=landmarks.seconds,
        n_passes=landmarks.n_passes,
    )


def metric_importances(landmarks: Landmarks) -> np.ndarray:
    """The diagonal of the metric's matrix M for features of variance 1, of sum 1.

    Variances are those of the landmarks.
    """
    points = landmarks.points
    points = points.toarray() if sp.issparse(points) else points
    variance = np.var(arrays.to_host_float64(points), axis=0)
    gamma = np.asarray(gamma_of(landmarks.kernel))
    diagonal = np.diag(gamma) if gamma.ndim == 2 else gamma
    importances = np.broadcast_to(diagonal, variance.shape) * variance
    total = importances.sum()
    return importances / total if total > 0 else importances
