"""What the ridge estimators share: what is fitted, and predictions from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .. import _arrays as arrays
from ..edge.warnings import warn, warn_alike, warn_of_small_alpha
from ..engines import Engine
from ..engines.progress import expect
from ..kernels import Kernel
from ..kernels.white_noise import split_white_noise
from ..landmarks import Landmarks
from ..methods.linear_map import LinearMap
from ..methods.ridge.fit import RidgeFit
from ..methods.ridge.posterior import (
    Posterior,
    deviations,
    predictions_and_deviations,
)
from ..methods.ridge.risk import RiskBound, risk_bound
from ..sinks import Output
from ..sources import Source
from ..trace_error import TraceError
from .callbacks import CallbackSupportMixin, CallbackTask
from .checked_targets import ChecksTargets
from .on_landmarks import OnLandmarks, in_library_of
from .ridge_parameters import check_noise


@dataclass(frozen=True, eq=False)
class Model:
    """What predicts."""

    map: LinearMap
    ravel: bool  # y had one dimension
    posterior: Posterior | None
    rows: Landmarks | None = None  # all rows, where these are not the landmarks
    white: float = 0.0  # the part of alpha that is a WhiteKernel of the given kernel


class OnRidge(CallbackSupportMixin, ChecksTargets, OnLandmarks, BaseEstimator):
    """The base of KernelRidge, KernelRidgeCV and KernelRidgeClassifier."""

    epsilon: Any = None
    delta: Any = None
    fit_intercept: bool
    _switches: ClassVar[tuple[str, ...]] = ("fit_intercept",)
    landmarks_: Landmarks
    approximation_error_: TraceError | None
    dual_coef_: Any
    X_fit_: Any
    intercept_: Any
    risk_bound_: RiskBound | None
    solver_: str
    n_iter_: int | None

    def _resolved(
        self,
        X: Any,
        task: CallbackTask,
        sample_weight: Any = None,
        *,
        targets: Any = None,
        **changed: Any,
    ) -> tuple[Kernel, Source, Engine]:
        """Kernel without white noise, rows and engine."""
        changed.setdefault("kernel", split_white_noise(self.kernel)[0])
        return super()._resolved(X, task, sample_weight, targets=targets, **changed)

    def _white_noise(self) -> float:
        """The variance of white noise in the kernel, which counts as alpha."""
        return split_white_noise(self.kernel)[1]

    def _keep(
        self,
        landmarks: Landmarks,
        fit: RidgeFit,
        alphas: np.ndarray,
        *,
        ravel: bool,
        weighted: bool,
    ) -> None:
        """Set what is fitted."""
        landmarks = landmarks.updated(notes=(*landmarks.notes, *fit.notes))
        landmarks = self._keep_landmarks(landmarks, fit.error)
        if not fit.converged:
            warn(
                f"Conjugate gradients did not converge in {fit.n_iterations} steps; "
                "use solver='direct'.",
                ConvergenceWarning,
            )
        warn_alike(landmarks, fit.alike)
        warn_of_small_alpha(float(alphas.min()), fit.least_alpha)
        self.solver_ = fit.solver
        self.n_iter_ = fit.n_iterations
        self.risk_bound_ = None
        if not self.fit_intercept and not weighted and landmarks.error is not None:
            self.risk_bound_ = risk_bound(
                float(alphas.min()), fit.trace_left, landmarks.guarantee
            )
        model = Model(fit.map, ravel, fit.posterior, white=self._white_noise())
        self._keep_model(landmarks, model)

    def _keep_model(self, landmarks: Landmarks, model: Model) -> None:
        self._model = model
        self.X_fit_ = landmarks.points
        dual, intercept = model.map.dual, model.map.intercept
        dual = dual[:, 0] if model.ravel else dual
        self.dual_coef_ = in_library_of(landmarks, dual)
        if not self.fit_intercept:
            self.intercept_: Any = 0.0
        elif model.ravel:
            self.intercept_ = float(intercept[0])
        else:
            self.intercept_ = in_library_of(landmarks, intercept)

    def _predict(
        self,
        X: Any,
        *,
        return_std: bool = False,
        noise: bool = False,
        out: Any = None,
        method: str = "predict",
    ) -> Any:
        check_is_fitted(self, "dual_coef_")
        model = self._model
        output = Output(out, "prediction", single=model.ravel)
        if return_std and out is not None:
            names = _names_with_deviations(model)
            output = Output(out, names=names)  # of both, side by side
        landmarks, source, engine = self._for_new_rows(X, self.dual_coef_, method)
        expect(engine.progress, 3 if return_std else 1)
        if return_std and out is not None:
            return self._both(landmarks, source, engine, noise, output)
        mean = model.map(landmarks, source, engine, output=output)
        if not return_std:
            return mean
        std = self._deviations(landmarks, source, engine, noise=noise)
        std = std[:, 0] if model.ravel else std
        return mean, std if arrays.on_host(mean) else arrays.from_host(std, mean)

    def _both(
        self,
        landmarks: Landmarks,
        source: Source,
        engine: Engine,
        noise: bool,
        output: Output,
    ) -> Any:
        """Predictions and deviations side by side, where they are to go."""
        return predictions_and_deviations(
            landmarks,
            source,
            self._model.map,
            self._known_posterior(),
            engine,
            noise=noise,
            white=self._model.white,
            output=output,
        )

    def _deviations(
        self, landmarks: Landmarks, source: Source, engine: Engine, *, noise: bool
    ) -> np.ndarray:
        """(n, t): of the predictions of new rows."""
        return deviations(
            landmarks,
            source,
            self._known_posterior(),
            engine,
            wide=self._model.map.wide,
            noise=noise,
            white=self._model.white,
        )

    def _known_posterior(self) -> Posterior:
        known = self._model.posterior
        if known is None:
            raise ValueError(
                "return_std=True needs the Gram matrix, which conjugate gradients do "
                "not make; fit with solver='direct'."
            )
        check_noise(known.alphas)
        return known

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def _names_with_deviations(model: Model) -> list[str]:
    """What the columns are called in a table of both."""
    numbers = [""] if model.ravel else [str(i) for i in range(model.map.dual.shape[1])]
    kinds = ("prediction", "deviation")
    return [f"{kind}{number}" for kind in kinds for number in numbers]
