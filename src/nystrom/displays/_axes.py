"""Shared by all displays: axes, the landmarks of an estimator, and rows projected to a
plane.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from .._validation import import_optional, named_plainly
from ..functions import approximate
from ..landmarks import Landmarks

#: More rows than this are thinned out before they are drawn: a picture has no more.
MAX_DRAWN_ROWS = 5000


class BaseDisplay:
    """Arrays, and what `plot` drew them with."""

    ax_: Any
    figure_: Any
    line_: Any

    def _set_axes(self, ax: Any) -> Any:
        """The axes given, or new ones; kept as `ax_` and `figure_`."""
        if ax is None:
            pyplot = import_optional("matplotlib.pyplot", "plot", "A display")
            _, ax = pyplot.subplots(layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax


@named_plainly
class BaseRowsDisplay(BaseDisplay):
    """A display of rows and landmarks, or of rows and an estimator's landmarks."""

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, **options: Any) -> Self:
        """Draw the rows X with the landmarks of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator with `landmarks_`, or a pipeline that ends with one.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", the square kernel matrix.
        **options : dict
            Passed to `from_landmarks`.

        Returns
        -------
        display : object
            The display, drawn.
        """
        return cls.from_landmarks(fitted_landmarks(estimator), X, **options)

    @classmethod
    def from_landmarks(cls, landmarks: Landmarks, X: Any, **options: Any) -> Self:
        """Draw the rows X with landmarks.

        Parameters
        ----------
        landmarks : Landmarks
            Landmarks from `select_landmarks` or `estimator.landmarks_`.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", the square kernel matrix.
        **options : dict
            Options of the display.

        Returns
        -------
        display : object
            The display, drawn.
        """
        raise NotImplementedError


def fitted_landmarks(estimator: Any) -> Landmarks:
    """The landmarks of a fitted estimator, or of the last step of a pipeline."""
    last = estimator[-1] if hasattr(estimator, "named_steps") else estimator
    landmarks = getattr(last, "landmarks_", None)
    if isinstance(landmarks, Landmarks):
        return landmarks
    if isinstance(landmarks, tuple):
        raise TypeError(
            f"A {type(last).__name__} has landmarks of either side; use "
            "from_landmarks(estimator.landmarks_[0], ...)."
        )
    raise ValueError(
        f"This {type(last).__name__} has no landmarks: fit it first, or give an "
        "estimator of nystrom."
    )


def thinned_indices(n_rows: int) -> np.ndarray:
    """Row numbers at equal distances, few enough to draw."""
    n_drawn = min(n_rows, MAX_DRAWN_ROWS)
    return np.unique(np.linspace(0, n_rows - 1, n_drawn).astype(int))


def format_number(value: float) -> str:
    """A number as it is written beside a line: 0.012, 3·10⁻⁵."""
    text = f"{value:.2g}"
    if "e" not in text:
        return text
    digits, exponent = text.split("e")
    power = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{power}" if digits == "1" else f"{digits}·10{power}"


class PlaneProjection(NamedTuple):
    """Where rows are drawn, those of them that are, and what the axes are called."""

    rows: np.ndarray  # (m, 2)
    row_indices: np.ndarray  # (m,) their row numbers
    landmarks: np.ndarray | None  # (s, 2), where they have a place
    names: tuple[str, ...]


def project_to_plane(landmarks: Landmarks, X: Any, features: Any) -> PlaneProjection:
    """Two features by number or name, or the first two components ("components")."""
    if isinstance(features, str):
        if features != "components":
            raise ValueError(
                f"features={features!r} is not allowed; two columns of X by number or "
                'name, such as (0, 1), or "components".'
            )
        return _project_to_components(landmarks, X)
    columns, points = _feature_indices(X, features), landmarks.points
    row_indices = thinned_indices(X.shape[0])
    is_matrix = len(getattr(points, "shape", ())) == 2
    landmark_points = _as_numpy(points)[:, columns] if is_matrix else None
    column_names = list(getattr(X, "columns", ()))
    names = [str(column_names[c]) if column_names else f"feature {c}" for c in columns]
    rows = _as_numpy(X)[row_indices][:, columns]
    return PlaneProjection(rows, row_indices, landmark_points, tuple(names))


def _project_to_components(landmarks: Landmarks, X: Any) -> PlaneProjection:
    """Coordinates along the two largest eigenvectors of K̃; landmarks by their rows."""
    approximation = approximate(X, landmarks)
    values, vectors = (arrays.to_host(part) for part in approximation.eigh(2))
    coordinates = np.zeros((approximation.shape[0], 2))
    coordinates[:, : len(values)] = vectors * np.sqrt(values)
    are_rows = landmarks.indices is not None and landmarks.n_rows == len(coordinates)
    landmark_points = coordinates[landmarks.indices] if are_rows else None
    row_indices = thinned_indices(len(coordinates))
    names = ("component 1", "component 2")
    return PlaneProjection(
        coordinates[row_indices], row_indices, landmark_points, names
    )


def _feature_indices(X: Any, features: Any) -> list[int]:
    names = list(getattr(X, "columns", ()))
    requested = list(features) if np.iterable(features) else [features]
    width = X.shape[1] if np.ndim(X) == 2 or sp.issparse(X) else 0
    indices = [names.index(f) if f in names else f for f in requested]
    valid = [c for c in indices if isinstance(c, (int, np.integer)) and 0 <= c < width]
    if len(requested) != 2 or len(valid) != 2:
        raise ValueError(
            f"features={features!r} is not allowed; two columns of X, which has "
            f'{width}, by number or name, or "components".'
        )
    return [int(c) for c in valid]


def _as_numpy(X: Any) -> np.ndarray:
    if sp.issparse(X):
        return X.toarray()
    if hasattr(X, "to_numpy"):
        return X.to_numpy()
    return arrays.to_host(X) if arrays.is_array(X) else np.asarray(X)
