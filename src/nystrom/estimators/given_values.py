"""kernel="precomputed": values that stand for rows, of training rows and new ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _arrays as arrays
from ..edge.kernel import dense_values
from ..edge.rows import check_rows
from ..kernels import AtLandmarks, Kernel, NewRows, Precomputed
from ..landmarks import Landmarks


def refuse_values(X: Any, landmarks: Landmarks) -> None:
    """Values with the landmarks are for a kernel that is given by its values."""
    if isinstance(X, AtLandmarks):
        raise ValueError(
            "kernels.AtLandmarks is for kernel='precomputed'; pass the rows themselves "
            f"where the kernel is {landmarks.kernel}."
        )


def at_landmarks(X: AtLandmarks, landmarks: Landmarks) -> Any:
    """Values that are said to be those with the landmarks alone."""
    values, size = dense_values(check_rows(X.values)), len(landmarks)
    if values.shape[1] != size:
        raise ValueError(
            f"AtLandmarks has values of shape {tuple(values.shape)}; it takes one "
            f"column per landmark, of which there are {size}."
        )
    return values


def refuse_the_landmarks_alone(X: Any, landmarks: Landmarks) -> None:
    """A matrix as wide as there are landmarks may be of these, or of any other rows."""
    width = (getattr(X, "shape", None) or np.shape(X))[-1:]
    if width == (len(landmarks),) and len(landmarks) != landmarks.n_rows:
        raise ValueError(
            f"X has {width[0]} features, but with kernel='precomputed' new rows have "
            f"{landmarks.n_rows}: their kernel values with all training rows, in their "
            f"order. If these are the values with the {width[0]} landmarks alone, "
            "K[:, landmarks_.indices], say so: pass nystrom.kernels.AtLandmarks(X)."
        )


def kernel_of_values(matrix: Any) -> Kernel:
    """The kernel of given values: of the training rows themselves, or of new ones.

    Only values of rows with themselves are symmetric, and have k(x, x).
    """
    square = matrix.shape[0] == matrix.shape[1] and arrays.namespace(matrix) is np
    own = square and np.allclose(matrix, matrix.T, 0, 1e-6 * np.abs(matrix).max())
    return Precomputed(matrix) if own else NewRows(matrix)


def without_matrix(landmarks: Landmarks) -> Landmarks:
    """The landmarks as part of a model, which the whole of K is not."""
    if not isinstance(landmarks.kernel, Precomputed):
        return landmarks
    return landmarks.updated(kernel=Precomputed())
