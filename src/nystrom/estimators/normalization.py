"""components_ and normalization_: of all landmarks, or of the first alone."""

from __future__ import annotations

import copy
from typing import Any

from .. import _arrays as arrays
from ..kernels import Precomputed
from ..landmarks import Landmarks


def components_of(landmarks: Landmarks) -> Any:
    """The points; of a precomputed kernel their own kernel matrix."""
    if isinstance(landmarks.kernel, Precomputed):
        return landmarks.kernel(landmarks.points, landmarks.points)
    return landmarks.points


def normalization_of(landmarks: Landmarks, wide: bool) -> Any:
    """L⁻¹, with a row of zeros for a landmark that adds nothing."""
    columns = landmarks.columns(wide=wide)
    root = landmarks.factor.for_blocks(columns.dtype).full_root.T
    like = landmarks.kernel.like(landmarks.points)
    return arrays.from_host(root, like, columns.dtype)


def first_components(fitted: Any, size: int) -> Any:
    """A copy of a fitted Nystroem that has the first landmarks alone."""
    fewer = copy.copy(fitted)
    fewer.n_components = size
    fewer.landmarks_ = landmarks = fitted.landmarks_[:size]
    fewer.approximation_error_ = landmarks.error
    matrix = landmarks.kernel.traits.by_number
    fewer.components_ = fitted.components_[:size, :size] if matrix else landmarks.points
    normalization = fitted.normalization_
    root = landmarks.factor.for_blocks(arrays.host_dtype(normalization))
    fewer.normalization_ = arrays.from_host(
        root.full_root.T, normalization, normalization.dtype
    )
    fewer._n_features_out = size
    return fewer
