"""Rows as points of a plane: two of their features, or two components of K̃."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from ..functions import approximate
from ..landmarks import Landmarks
from .axes import thinned


class Plane(NamedTuple):
    """Where rows are drawn, those of them that are, and what the axes are called."""

    rows: np.ndarray  # (m, 2)
    drawn: np.ndarray  # (m,) their row numbers
    landmarks: np.ndarray | None  # (s, 2), where they have a place
    names: tuple[str, str]


def plane(landmarks: Landmarks, X: Any, features: Any) -> Plane:
    """Two features by number or name, or the first two components ("components")."""
    if isinstance(features, str):
        if features != "components":
            raise ValueError(
                f"features={features!r} is not allowed; two columns of X by number or "
                'name, such as (0, 1), or "components".'
            )
        return _of_components(landmarks, X)
    columns, points = _columns(X, features), landmarks.points
    drawn = thinned(X.shape[0])
    known = len(getattr(points, "shape", ())) == 2
    marks = _numbers(points)[:, columns] if known else None
    given = list(getattr(X, "columns", ()))
    names = [str(given[c]) if given else f"feature {c}" for c in columns]
    return Plane(_numbers(X)[drawn][:, columns], drawn, marks, (names[0], names[1]))


def _of_components(landmarks: Landmarks, X: Any) -> Plane:
    """Coordinates along the two largest eigenvectors of K̃; landmarks by their rows."""
    found = approximate(X, landmarks)
    values, vectors = (arrays.to_host(part) for part in found.eigh(2))
    places = np.zeros((found.shape[0], 2))
    places[:, : len(values)] = vectors * np.sqrt(values)
    ours = landmarks.indices is not None and landmarks.n_rows == len(places)
    marks = places[landmarks.indices] if ours else None
    drawn = thinned(len(places))
    return Plane(places[drawn], drawn, marks, ("component 1", "component 2"))


def _columns(X: Any, features: Any) -> list[int]:
    names = list(getattr(X, "columns", ()))
    wanted = list(features) if np.iterable(features) else [features]
    width = X.shape[1] if np.ndim(X) == 2 or sp.issparse(X) else 0
    found = [names.index(f) if f in names else f for f in wanted]
    known = [c for c in found if isinstance(c, (int, np.integer)) and 0 <= c < width]
    if len(wanted) != 2 or len(known) != 2:
        raise ValueError(
            f"features={features!r} is not allowed; two columns of X, which has "
            f'{width}, by number or name, or "components".'
        )
    return [int(c) for c in known]


def _numbers(X: Any) -> np.ndarray:
    if sp.issparse(X):
        return X.toarray()
    if hasattr(X, "to_numpy"):
        return X.to_numpy()
    return arrays.to_host(X) if arrays.is_array(X) else np.asarray(X)
