"""What every estimator on landmarks does alike: check rows, old ones and new ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from .. import _arrays as arrays
from ..engines import Engine
from ..kernels import Kernel, NewRows, Precomputed
from ..landmarks import Landmarks
from ..samplers import as_sampler
from ..sources import RowNumbers, Source, as_source
from .callbacks import CallbackTask
from .resolve import (
    Options,
    check_count,
    check_namespace,
    check_rows,
    choose,
    engine_for,
    explaining_text,
    fitted_or_not,
    holds_objects,
    kernel_and_source,
)


@contextmanager
def fitting(estimator: Any, X: Any, y: Any) -> Iterator[CallbackTask]:
    """Around every fit: callbacks are told, and a fit that fails leaves no trace."""
    task = CallbackTask(estimator, X, y)
    with fitted_or_not(estimator):
        yield task
    task.end()


class OnLandmarks:
    """A mixin for estimators with `kernel` and, once fitted, `landmarks_`."""

    kernel: Any
    gamma: Any
    degree: Any
    coef0: Any
    kernel_params: Any
    n_landmarks: Any
    sampler: Any
    ridge: Any = None
    max_trace_error: Any = None
    random_state: Any
    n_jobs: Any
    verbose: Any
    landmarks_: Any

    def _as_many_as_needed(self) -> bool:
        """Whether something else than `n_landmarks` decides how many there are."""
        of_sampler = getattr(self.sampler, "ridge", None)
        deciding = (self.ridge, self.max_trace_error, of_sampler)
        return any(option is not None for option in deciding)

    def _check_limit(self) -> int | None:
        """`n_landmarks`: how many, or where something else decides, at most."""
        as_sampler(self.sampler)  # refuses what is none, also where none is needed
        return check_count(
            self.n_landmarks, "n_landmarks", optional=self._as_many_as_needed()
        )

    def _resolved(
        self, X: Any, task: CallbackTask, sample_weight: Any = None, **changed: Any
    ) -> tuple[Kernel, Source, Engine]:
        """Kernel, rows and engine, from the parameters or what is given instead."""
        kernel = changed.pop("kernel", self.kernel)
        given = {name: getattr(self, name) for name in ("gamma", "degree", "coef0")}
        # scikit-learn passes over these for other kernels.
        named = isinstance(kernel, str) and kernel != "precomputed"
        resolved, source = kernel_and_source(
            X,
            kernel,
            sample_weight=sample_weight,
            kernel_params=changed.pop("kernel_params", self.kernel_params),
            caller=type(self).__name__,
            n_jobs=self.n_jobs,
            **({**given, **changed} if named else {}),
        )
        engine = engine_for(resolved, self.n_jobs, self.verbose, *task.hooks)
        return resolved, source, engine

    def _chosen(
        self,
        kernel: Kernel,
        source: Source,
        engine: Engine,
        options: Options | None = None,
    ) -> Landmarks:
        """Landmarks by the sampler, as many as asked for."""
        if options is None:
            options = Options(ridge=self.ridge, max_trace_error=self.max_trace_error)
        return choose(
            kernel,
            source,
            self._check_limit(),
            self.sampler,
            options,
            random_state=self.random_state,
            engine=engine,
        )

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
        kernel: Kernel = _given(matrix)
        changed = landmarks.updated(kernel=kernel, points=columns)
        return changed, RowNumbers(matrix.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = (
            isinstance(self.kernel, str) and self.kernel == "precomputed"
        )
        return tags


def _given(matrix: Any) -> Kernel:
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
