"""What every estimator on landmarks does alike: its kernel, its landmarks, new rows."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .. import _arrays as arrays
from ..edge.engine import engine_for
from ..edge.kernel import dense_values, kernel_and_source
from ..edge.landmarks import choose_landmarks, goal_from
from ..edge.rows import check_namespace, rows_of
from ..edge.warnings import warn_about
from ..edge.widths import is_learnt
from ..engines import Engine
from ..engines.progress import parts
from ..kernels import AtLandmarks, Kernel, Precomputed
from ..kernels.names import width_of
from ..landmarks import Landmarks
from ..randomness import seed_of
from ..refusals import switch
from ..samplers import Goal, as_sampler
from ..sources import RowNumbers, Source
from ..trace_error import TraceError
from .callbacks import CallbackTask
from .checked_rows import ChecksRows
from .given_values import (
    at_landmarks,
    kernel_of_values,
    refuse_the_landmarks_alone,
    refuse_values,
    without_matrix,
)
from .learnt_kernel import check_learning, learnt_kernel


class OnLandmarks(ChecksRows):
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
    #: The parameter that says how many landmarks.
    _size = "n_landmarks"
    #: Parameters that are True or False.
    _switches: ClassVar[tuple[str, ...]] = ()

    def _goal(self) -> Goal:
        """How many landmarks there are to be."""
        goal = goal_from(
            getattr(self, self._size),
            self.sampler,
            ridge=self.ridge,
            max_trace_error=self.max_trace_error,
            name=self._size,
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
        most = getattr(self, self._size)
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

    def _basis(self) -> Landmarks:
        """The points whose kernel values new rows are evaluated with."""
        return self.landmarks_

    def _for_new_rows(
        self, X: Any, like: Any, method: str
    ) -> tuple[Landmarks, Source, Engine]:
        """The landmarks, the source and the engine to evaluate new rows with.

        `like` is a fitted array, in whose library new rows must come too.
        """
        landmarks = self._basis()
        name = f"{type(self).__name__}.{method}()"
        if not isinstance(landmarks.kernel, Precomputed):
            refuse_values(X, landmarks)
            X = self._validated(X, reset=False)
            check_namespace(X, like, name)
            source = rows_of(X).having(targets=None)  # not to be read
        else:
            if isinstance(X, AtLandmarks):
                matrix, columns = at_landmarks(X, landmarks), np.arange(len(landmarks))
            else:
                refuse_the_landmarks_alone(X, landmarks)
                matrix = dense_values(self._validated(X, reset=False))
                columns = landmarks.points
            check_namespace(matrix, like, name)
            kernel = kernel_of_values(matrix)
            landmarks = landmarks.updated(kernel=kernel, points=columns)
            source = RowNumbers(matrix.shape[0])
        engine = engine_for(landmarks.kernel, self.n_jobs, self.verbose)
        return landmarks, source, engine

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = (
            isinstance(self.kernel, str) and self.kernel == "precomputed"
        )
        return tags


def in_library_of(landmarks: Landmarks, values: np.ndarray) -> Any:
    """Fitted values in the library of the rows, in float64 as they were found."""
    return arrays.from_host(
        values, landmarks.kernel.like(landmarks.points), values.dtype
    )
