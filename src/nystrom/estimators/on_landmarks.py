"""What every estimator on landmarks does alike: check rows, old ones and new ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    validate_data,
)

from .. import _arrays as arrays
from ..edge.engine import engine_for
from ..edge.kernel import dense_values, kernel_and_source
from ..edge.landmarks import choose_landmarks, goal_from
from ..edge.memory import explaining_memory
from ..edge.rows import (
    check_namespace,
    check_rows,
    explaining_text,
    holds_objects,
    not_in_memory,
    rows_of,
)
from ..edge.showing import showing
from ..edge.updating import check_width, refuse_what_is_no_stream
from ..edge.warnings import warn_about
from ..edge.widths import is_learnt
from ..engines import Engine
from ..engines.blas import blas_threads_for
from ..engines.progress import parts
from ..kernels import AtLandmarks, Kernel, NewRows, Precomputed
from ..kernels.names import width_of
from ..landmarks import Landmarks
from ..randomness import seed_of
from ..refusals import switch
from ..samplers import Goal, as_sampler
from ..samplers.updating import with_rows
from ..sources import RowNumbers, Source
from ..trace_error import TraceError
from .callbacks import CallbackTask
from .learnt_kernel import check_learning, learnt_kernel


@contextmanager
def fitting(estimator: Any, X: Any, y: Any) -> Iterator[CallbackTask]:
    """Around every fit: callbacks are told, and a fit that fails leaves no trace.

    One bar shows all of it. BLAS has one thread where the landmarks are few, for all
    that is not a pass too.
    """
    name, verbose = type(estimator).__name__, getattr(estimator, "verbose", 0)
    with showing(name, verbose):
        task = CallbackTask(estimator, X, y)
        before = dict(vars(estimator))
        try:
            with explaining_memory(name), _blas_for(estimator):
                yield task
        except BaseException:
            vars(estimator).clear()
            vars(estimator).update(before)
            raise
        task.end()


def _blas_for(estimator: Any) -> AbstractContextManager:
    """BLAS's threads for matrices of as many rows as there may be landmarks."""
    given = vars(estimator)
    most = given.get("n_landmarks" if "n_landmarks" in given else "n_components")
    sizes = most if isinstance(most, (list, tuple)) else [most]
    known = all(isinstance(size, Integral) for size in sizes)
    return blas_threads_for(max(sizes, default=0)) if known else nullcontext()


class OnLandmarks:
    """A mixin for estimators with `kernel` and, once fitted, `landmarks_`."""

    kernel: Any
    gamma: Any
    degree: Any
    coef0: Any
    kernel_params: dict[str, Any] | None
    n_landmarks: Any
    sampler: Any
    ridge: float | None = None
    max_trace_error: float | None = None
    random_state: Any
    n_jobs: int | None
    verbose: int
    landmarks_: Any
    approximation_error_: Any
    #: Whether gamma, degree and coef0 are refused where the kernel has no name: by
    #: scikit-learn's Nystroem they are, its other classes pass over them.
    _refuses_unused = False
    #: Parameters that are True or False.
    _switches: ClassVar[tuple[str, ...]] = ()

    def _goal(self) -> Goal:
        """How many landmarks there are to be."""
        goal = goal_from(
            self.n_landmarks,
            self.sampler,
            ridge=self.ridge,
            max_trace_error=self.max_trace_error,
        )
        as_sampler(self.sampler, goal)  # refuses what is none, also if none is needed
        return goal

    def _resolved(
        self,
        X: Any,
        task: CallbackTask,
        sample_weight: Any = None,
        *,
        targets: Any = None,
        **changed: Any,
    ) -> tuple[Kernel, Source, Engine]:
        """Kernel, rows and engine, from the parameters or what is given instead.

        The source has the targets. gamma="learn" is learnt from them.
        """
        for name in self._switches:
            switch(getattr(self, name), name)
        kernel = changed.pop("kernel", self.kernel)
        kernel_params = changed.pop("kernel_params", self.kernel_params)
        given = {name: getattr(self, name) for name in ("gamma", "degree", "coef0")}
        named = isinstance(kernel, str) and kernel != "precomputed"
        named = named or self._refuses_unused
        params = {**given, **changed} if named else {}
        gamma = {**given, **changed}["gamma"]
        learning = is_learnt(gamma) and targets is not None
        if learning:
            check_learning(gamma, kernel)
            params["gamma"] = "scale"  # to begin with
        resolved, source = kernel_and_source(
            X,
            kernel,
            sample_weight=sample_weight,
            kernel_params=kernel_params,
            caller=type(self).__name__,
            n_jobs=self.n_jobs,
            **params,
        )
        engine = engine_for(
            resolved, self.n_jobs, self.verbose, *task.hooks, source=source
        )
        source = source if targets is None else source.having(targets=targets)
        if learning:
            width, _ = parts(engine.progress, 1.0, 2.0)
            with width:
                engine.progress("width", 0, 1)
                resolved = learnt_kernel(
                    gamma,
                    kernel,
                    resolved,
                    source,
                    engine,
                    size=self._most_landmarks(),
                    intercept=bool(getattr(self, "fit_intercept", True)),
                    seed=seed_of(self.random_state),
                )
        return resolved, source, engine

    def _most_landmarks(self) -> Any:
        """How many landmarks there may be, as far as the parameters tell."""
        given = vars(self)
        most = given.get("n_landmarks" if "n_landmarks" in given else "n_components")
        return max(most, default=0) if isinstance(most, (list, tuple)) else most

    def _chosen(
        self,
        kernel: Kernel,
        source: Source,
        engine: Engine,
        goal: Goal | None = None,
        *,
        passes_after: float,
        **options: Any,
    ) -> Landmarks:
        """Landmarks by the sampler, as many as asked for.

        What follows takes about as long as so many passes with all of them.
        """
        return choose_landmarks(
            kernel,
            source,
            self._goal() if goal is None else goal,
            self.sampler,
            random_state=self.random_state,
            engine=engine,
            nested=True,
            passes_after=passes_after,
            **options,
        )

    def _streamed(
        self,
        X: Any,
        task: CallbackTask,
        goal: Goal,
        *,
        targets: np.ndarray | None = None,
        sample_weight: Any = None,
        steady: float = 1.0,
    ) -> tuple[Landmarks, Source, Engine]:
        """Landmarks of all rows so far, the batch as a source, and the engine."""
        before, caller = self.__dict__.get("landmarks_"), type(self).__name__
        caller = f"{caller}.partial_fit"
        fixed: dict[str, Any] = {}
        if before is not None:
            names = ("gamma", "degree", "coef0", "kernel_params")
            fixed = {"kernel": before.kernel, **dict.fromkeys(names)}
            refuse_what_is_no_stream(before.kernel, self.sampler, caller)
        kernel, batch, engine = self._resolved(
            X, task, sample_weight, targets=targets, **fixed
        )
        refuse_what_is_no_stream(kernel, self.sampler, caller)
        seed = 0  # goes with the rows that are kept
        if before is not None:
            check_namespace(X, before.points, f"{caller}()")
            check_width(batch, before)
        if before is None or before.reservoir is None:
            seed = seed_of(self.random_state)

        def chosen(source: Source, seed: int) -> Landmarks:
            return choose_landmarks(
                kernel,
                source,
                goal,
                self.sampler,
                random_state=seed,
                engine=engine,
                nested=True,
                passes_after=1.0,
            )

        landmarks = with_rows(
            before, batch, chosen, seed=seed, engine=engine, steady=steady
        )
        return landmarks, batch, engine

    def _keep_landmarks(
        self, landmarks: Landmarks, error: TraceError | None
    ) -> Landmarks:
        """Set what is fitted of them, warn of what is amiss; with their error."""
        landmarks = landmarks.told(error)
        warn_about(landmarks)
        self.landmarks_ = without_matrix(landmarks)
        self.approximation_error_ = landmarks.error
        self._keep_width(landmarks)
        return landmarks

    def _keep_width(self, landmarks: Landmarks) -> None:
        """Tell what was learnt; `gamma_` is set where widths were compared."""
        compared = hasattr(self, "gammas")
        gamma = vars(self).get("gamma_") if compared else self.gamma
        if is_learnt(gamma):
            width = width_of(landmarks.kernel)
            several = isinstance(width, tuple)
            self.gamma_ = (
                in_library_of(landmarks, np.array(width)) if several else width
            )
        elif not compared:
            vars(self).pop("gamma_", None)

    def _validated(self, X: Any, *, reset: bool) -> Any:
        """X checked by scikit-learn's rules, or as it is where its rows are objects.

        Paths become sources, whose rows are checked when they are read.
        """
        X = not_in_memory(X, None if reset else self._fitted_names)
        if isinstance(X, Source):
            self._check_width(X, reset=reset)
            return X
        if holds_objects(X):
            for name in ("n_features_in_", "feature_names_in_") if reset else ():
                self.__dict__.pop(name, None)
            return check_rows(X)
        if not arrays.on_host(X):
            # As scikit-learn would, whether or not its array API dispatch is on.
            X = check_rows(X)
            _check_feature_names(self, X, reset=reset)
            _check_n_features(self, X, reset=reset)
            return X
        with explaining_text():
            if not reset and self._names_unheard(X):
                X = check_array(X, accept_sparse="csr", dtype="numeric", estimator=self)
                _check_n_features(self, X, reset=False)
                return X
            return validate_data(
                self, X, accept_sparse="csr", dtype="numeric", reset=reset
            )

    def _check_width(self, source: Source, *, reset: bool) -> None:
        """Remember how many features there are, or compare with what was fitted."""
        width = source.n_features
        if reset:
            for name in ("n_features_in_", "feature_names_in_"):
                self.__dict__.pop(name, None)
            if width is not None:
                self.n_features_in_ = width
            if source.feature_names:
                self.feature_names_in_ = np.array(source.feature_names, dtype=object)
            self._names_from_source = bool(source.feature_names)
        elif width is not None and width != getattr(self, "n_features_in_", width):
            raise ValueError(
                f"X has {width} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        else:
            refuse_other_names(source.feature_names, self._fitted_names)

    @property
    def _fitted_names(self) -> list[str] | None:
        """What the features were called in `fit`, if they had names."""
        names = self.__dict__.get("feature_names_in_")
        return None if names is None else list(names)

    def _names_unheard(self, X: Any) -> bool:
        """Whether names came from a file, and X is an array: no reason to warn.

        Rows of a file are often compared with some that are in memory.
        """
        return not hasattr(X, "columns") and vars(self).get("_names_from_source", False)

    def _basis(self) -> Landmarks:
        """The points whose kernel values new rows are evaluated with."""
        return self.landmarks_

    def _for_new_rows(self, X: Any, like: Any, method: str) -> tuple[Landmarks, Source]:
        """The landmarks and the source to evaluate new rows with.

        `like` is a fitted array, in whose library new rows must come too.
        """
        landmarks = self._basis()
        name = f"{type(self).__name__}.{method}()"
        if not isinstance(landmarks.kernel, Precomputed):
            _refuse_values(X, landmarks)
            X = self._validated(X, reset=False)
            check_namespace(X, like, name)
            return landmarks, rows_of(X).having(targets=None)  # not to be read
        if isinstance(X, AtLandmarks):
            matrix, columns = _at_landmarks(X, landmarks), np.arange(len(landmarks))
        else:
            _refuse_the_landmarks_alone(X, landmarks)
            matrix = dense_values(self._validated(X, reset=False))
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


def refuse_other_names(given: Any, fitted: list[str] | None) -> None:
    """New rows have the features of the old ones, in their order."""
    if given is None or fitted is None or list(given) == fitted:
        return
    missing = [name for name in fitted if name not in given]
    how = f"{missing[0]!r} is missing" if missing else "their order is another"
    raise ValueError(
        "The feature names should match those that were passed during fit: "
        f"{how}. Name the columns, sources.open(path, "
        "columns=list(model.feature_names_in_))."
    )


def _refuse_values(X: Any, landmarks: Landmarks) -> None:
    if isinstance(X, AtLandmarks):
        raise ValueError(
            "kernels.AtLandmarks is for kernel='precomputed'; pass the rows themselves "
            f"where the kernel is {landmarks.kernel}."
        )


def _at_landmarks(X: AtLandmarks, landmarks: Landmarks) -> Any:
    """Values that are said to be those with the landmarks alone."""
    values, size = dense_values(check_rows(X.values)), len(landmarks)
    if values.shape[1] != size:
        raise ValueError(
            f"AtLandmarks has values of shape {tuple(values.shape)}; it takes one "
            f"column per landmark, of which there are {size}."
        )
    return values


def _refuse_the_landmarks_alone(X: Any, landmarks: Landmarks) -> None:
    """A matrix as wide as there are landmarks may be of these, or of any other rows."""
    width = (getattr(X, "shape", None) or np.shape(X))[-1:]
    if width == (len(landmarks),) and len(landmarks) != landmarks.n_rows:
        raise ValueError(
            f"X has {width[0]} features, but with kernel='precomputed' new rows have "
            f"{landmarks.n_rows}: their kernel values with all training rows, in their "
            f"order. If these are the values with the {width[0]} landmarks alone, "
            "K[:, landmarks_.indices], say so: pass nystrom.kernels.AtLandmarks(X)."
        )


def _given(matrix: Any) -> Kernel:
    """The kernel of given values: of the training rows themselves, or of new ones.

    Only values of rows with themselves are symmetric, and have k(x, x).
    """
    square = matrix.shape[0] == matrix.shape[1] and arrays.namespace(matrix) is np
    own = square and np.allclose(matrix, matrix.T, 0, 1e-6 * np.abs(matrix).max())
    return Precomputed(matrix) if own else NewRows(matrix)


def in_library_of(landmarks: Landmarks, values: np.ndarray) -> Any:
    """Fitted values in the library of the rows, in float64 as they were found."""
    return arrays.from_host(
        values, landmarks.kernel.like(landmarks.points), values.dtype
    )


def without_matrix(landmarks: Landmarks) -> Landmarks:
    """The landmarks as part of a model, which the whole of K is not."""
    if not isinstance(landmarks.kernel, Precomputed):
        return landmarks
    return landmarks.updated(kernel=Precomputed())
