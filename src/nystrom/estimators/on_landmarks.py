"""What every estimator on landmarks does alike: check rows, old ones and new ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from ..kernels import Kernel, Precomputed
from ..landmarks import Landmarks
from ..sources import RowNumbers, Source, as_source
from .resolve import check_namespace, check_rows, explaining_text, holds_objects


class OnLandmarks:
    """A mixin for estimators with `kernel` and, once fitted, `landmarks_`."""

    kernel: Any
    landmarks_: Landmarks

    def _validated(self, X: Any, *, reset: bool) -> Any:
        """X checked by scikit-learn's rules, or as it is where its rows are objects."""
        if isinstance(X, Source):
            if reset and X.n_features is not None:
                self.n_features_in_ = X.n_features
            return X
        if holds_objects(X):
            for name in ("n_features_in_", "feature_names_in_") if reset else ():
                self.__dict__.pop(name, None)
            return check_rows(X)
        with explaining_text():
            return validate_data(
                self, X, accept_sparse="csr", dtype="numeric", reset=reset
            )

    def _for_new_rows(self, X: Any, like: Any, method: str) -> tuple[Landmarks, Source]:
        """The landmarks and the source to evaluate new rows with.

        `like` is a fitted array, in whose library new rows must come too.
        """
        landmarks = self.landmarks_
        name = f"{type(self).__name__}.{method}()"
        if not isinstance(landmarks.kernel, Precomputed):
            X = self._validated(X, reset=False)
            check_namespace(X, like, name)
            return landmarks, as_source(X)
        # Columns in training order, unless there are just as many as landmarks, and
        # fewer of those than training rows: then one column per landmark.
        width = (getattr(X, "shape", None) or np.shape(X))[-1]
        if width == len(landmarks) != landmarks.n_rows:
            matrix = check_rows(X)
            columns = np.arange(width)
        else:
            matrix = self._validated(X, reset=False)
            columns = landmarks.points
        check_namespace(matrix, like, name)
        kernel: Kernel = Precomputed(matrix)
        changed = landmarks.updated(kernel=kernel, points=columns)
        return changed, RowNumbers(matrix.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = (
            isinstance(self.kernel, str) and self.kernel == "precomputed"
        )
        return tags


def without_matrix(landmarks: Landmarks) -> Landmarks:
    """The landmarks as part of a model, which the whole of K is not."""
    if not isinstance(landmarks.kernel, Precomputed):
        return landmarks
    return landmarks.updated(kernel=Precomputed())
