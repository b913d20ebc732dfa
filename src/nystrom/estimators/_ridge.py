"""`BaseKernelRidge`: fitted attributes and predictions of the ridge estimators; checks
of alpha and solver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .. import _arrays as arrays
from .._validation import unknown_name_error
from ..engines import Engine
from ..engines.base import expect_passes
from ..kernels import Kernel
from ..kernels.user import split_white_noise
from ..landmarks import Landmarks
from ..linalg.errors import TraceError
from ..models.linear_map import LinearMap
from ..models.posterior import Posterior
from ..models.ridge import RiskBound, risk_bound
from ..models.ridge_solvers import RidgeFit
from ..sources import Source
from ..sources.output import Output
from ._base import (
    BaseLandmarkEstimator,
    CallbackSupportMixin,
    CallbackTask,
    TargetValidationMixin,
    asarray_like,
)
from ._inputs import warn, warn_alike, warn_of_small_alpha

RIDGE_SOLVERS = ("auto", "direct", "cg")


def check_alphas(alpha: Any, n_targets: int, name: str = "alpha") -> np.ndarray:
    """One finite number >= 0 per target."""
    alphas = as_float_array(alpha)
    if alphas.ndim > 1 or not np.all(np.isfinite(alphas)) or np.any(alphas < 0):
        raise ValueError(
            f"{name}={alpha!r} is not allowed; it must be a finite number >= 0, or one "
            "per target (0 is least squares)."
        )
    if alphas.ndim == 1 and len(alphas) not in (1, n_targets):
        raise ValueError(
            f"{name} has {len(alphas)} values, but y has {n_targets} targets; give one "
            "number, or one per target."
        )
    return np.broadcast_to(alphas, (n_targets,)).copy()


def as_float_array(given: Any) -> np.ndarray:
    """What was given in float64; nan where it is something else than numbers."""
    try:
        values = np.asarray(given)
    except (TypeError, ValueError):  # lists of different lengths
        return np.array([np.nan])
    # "0.1" and True would pass for numbers.
    is_numeric = values.dtype.kind in "iuf"
    return values.astype(np.float64) if is_numeric else np.array([np.nan])


def check_positive_alphas(alphas: np.ndarray) -> None:
    """Deviations need alpha > 0."""
    if not np.all(alphas > 0):
        raise ValueError(
            "return_std=True needs alpha > 0: alpha is the variance of the noise."
        )


def check_solver(
    solver: Any, alphas: np.ndarray, allowed: tuple[str, ...] = RIDGE_SOLVERS
) -> str:
    """One of the solvers' names, and able to solve with these alphas."""
    if not isinstance(solver, str) or solver not in allowed:
        raise unknown_name_error("solver", solver, list(allowed))
    if solver in ("cg", "full") and alphas.min() == 0:
        raise ValueError(
            f"solver={solver!r} needs alpha > 0; use solver='direct' for alpha=0."
        )
    return solver


@dataclass(frozen=True, eq=False)
class RidgeModel:
    """What predicts."""

    map: LinearMap
    ravel: bool  # y had one dimension
    posterior: Posterior | None
    rows: Landmarks | None = None  # all rows, where these are not the landmarks
    white: float = 0.0  # the part of alpha that is a WhiteKernel of the given kernel


class BaseKernelRidge(
    CallbackSupportMixin, TargetValidationMixin, BaseLandmarkEstimator, BaseEstimator
):
    """The base of KernelRidge, KernelRidgeCV and KernelRidgeClassifier."""

    epsilon: Any = None
    delta: Any = None
    fit_intercept: bool
    _bool_params: ClassVar[tuple[str, ...]] = ("fit_intercept",)
    landmarks_: Landmarks
    approximation_error_: TraceError | None
    dual_coef_: Any
    X_fit_: Any
    intercept_: Any
    risk_bound_: RiskBound | None
    solver_: str
    n_iter_: int | None

    def _resolve_inputs(
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
        return super()._resolve_inputs(
            X, task, sample_weight, targets=targets, **changed
        )

    def _white_noise(self) -> float:
        """The variance of white noise in the kernel, which counts as alpha."""
        return split_white_noise(self.kernel)[1]

    def _set_fit(
        self,
        landmarks: Landmarks,
        fit: RidgeFit,
        alphas: np.ndarray,
        *,
        ravel: bool,
        weighted: bool,
    ) -> None:
        """Set what is fitted."""
        landmarks = landmarks.replace(notes=(*landmarks.notes, *fit.notes))
        landmarks = self._set_landmarks(landmarks, fit.error)
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
                float(alphas.min()), fit.residual_trace, landmarks.guarantee
            )
        model = RidgeModel(fit.map, ravel, fit.posterior, white=self._white_noise())
        self._set_model(landmarks, model)

    def _set_model(self, landmarks: Landmarks, model: RidgeModel) -> None:
        self._model = model
        self.X_fit_ = landmarks.points
        dual, intercept = model.map.dual, model.map.intercept
        dual = dual[:, 0] if model.ravel else dual
        self.dual_coef_ = asarray_like(landmarks, dual)
        if not self.fit_intercept:
            self.intercept_: Any = 0.0
        elif model.ravel:
            self.intercept_ = float(intercept[0])
        else:
            self.intercept_ = asarray_like(landmarks, intercept)

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
            names = _column_names_with_std(model)
            output = Output(out, names=names)  # of both, side by side
        landmarks, source, engine = self._resolve_new_rows(X, self.dual_coef_, method)
        expect_passes(engine.progress, 3 if return_std else 1)
        if return_std and out is not None:
            return self._predict_with_std(landmarks, source, engine, noise, output)
        mean = model.map(landmarks, source, engine, output=output)
        if not return_std:
            return mean
        std = self._predictive_std(landmarks, source, engine, noise=noise)
        std = std[:, 0] if model.ravel else std
        return mean, std if arrays.is_on_host(mean) else arrays.from_host(std, mean)

    def _predict_with_std(
        self,
        landmarks: Landmarks,
        source: Source,
        engine: Engine,
        noise: bool,
        output: Output,
    ) -> Any:
        """Predictions and deviations side by side, where they are to go."""
        return self._require_posterior().predict_with_std(
            landmarks,
            source,
            self._model.map,
            engine,
            noise=noise,
            white=self._model.white,
            output=output,
        )

    def _predictive_std(
        self, landmarks: Landmarks, source: Source, engine: Engine, *, noise: bool
    ) -> np.ndarray:
        """(n, t): of the predictions of new rows."""
        return self._require_posterior().std(
            landmarks,
            source,
            engine,
            wide=self._model.map.wide,
            noise=noise,
            white=self._model.white,
        )

    def _require_posterior(self) -> Posterior:
        posterior = self._model.posterior
        if posterior is None:
            raise ValueError(
                "return_std=True needs the Gram matrix, which conjugate gradients do "
                "not make; fit with solver='direct'."
            )
        check_positive_alphas(posterior.alphas)
        return posterior

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def _column_names_with_std(model: RidgeModel) -> list[str]:
    """What the columns are called in a table of both."""
    numbers = [""] if model.ravel else [str(i) for i in range(model.map.dual.shape[1])]
    kinds = ("prediction", "deviation")
    return [f"{kind}{number}" for kind in kinds for number in numbers]
