"""What the three ridge estimators share: targets, landmarks, predictions."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import _arrays as arrays
from ..edge.engine import engine_for
from ..edge.landmarks import goal_from
from ..edge.rows import (
    check_lengths,
    check_targets,
    explaining_text,
    holds_objects,
    in_memory,
    not_in_memory,
)
from ..edge.warnings import warn
from ..engines import Engine
from ..engines.progress import expect
from ..kernels import Kernel
from ..landmarks import Landmarks
from ..methods.linear_map import LinearMap
from ..methods.ridge.fit import RidgeFit
from ..methods.ridge.posterior import (
    Posterior,
    deviations,
    predictions_and_deviations,
)
from ..methods.ridge.risk import RiskBound, risk_bound
from ..refusals import unknown
from ..samplers import Goal, Ridge, as_sampler
from ..samplers.forecast import forecast
from ..sinks import Output
from ..sources import Source, recognised
from ..trace_error import TraceError
from .callbacks import CallbackSupportMixin
from .on_landmarks import OnLandmarks, in_library_of

SOLVERS = ("auto", "direct", "cg")
#: With no limit on the number of landmarks, say so when more than this are needed.
MANY_LANDMARKS = 5000


@dataclass(frozen=True, eq=False)
class Model:
    """What predicts."""

    map: LinearMap
    ravel: bool  # y had one dimension
    posterior: Posterior | None
    rows: Landmarks | None = None  # all rows, where these are not the landmarks


def all_targets(source: Source) -> np.ndarray:
    """The targets that a source has, as users know them."""
    targets = source.targets
    values = targets[: source.n_rows]
    values = values[:, 0] if getattr(targets, "single", False) else values
    names = getattr(targets, "names", None)
    return values if names is None else names[values.astype(int)]


class Scoring:
    """A mixin before scikit-learn's own: predictions may be on a device."""

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R² of the predictions; of a classifier, the share that is right.

        Parameters
        ----------
        X : as for `predict`
            Rows.
        y : array-like
            Their targets or classes; None where the source has them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        score : float
            At most 1, the higher the better.
        """
        metric = accuracy_score if is_classifier(self) else r2_score
        X = recognised(X, getattr(self, "_fitted_names", None))
        if check_targets(X, y, type(self).__name__):
            y = all_targets(X)
        elif y is None:
            raise ValueError(
                f"{type(self).__name__}.score requires y to be passed, but the target "
                "y is None."
            )
        predicted = arrays.fetched(self.predict(X))  # type: ignore[attr-defined]
        y, weights = arrays.fetched(y), arrays.fetched(sample_weight)
        return metric(y, predicted, sample_weight=weights)


def refuse_text_targets(targets: Any, caller: str) -> None:
    """Classes of a file are no numbers."""
    names = getattr(targets, "names", None)
    if names is not None:
        raise ValueError(
            f"The target of the source is text (such as {str(names[0])!r}), and "
            f"{caller} takes numbers; for classes use KernelRidgeClassifier, or name "
            "another column."
        )


class OnRidge(CallbackSupportMixin, OnLandmarks, BaseEstimator):
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

    def _rows_and_targets(
        self, X: Any, y: Any, *, reset: bool = True
    ) -> tuple[Any, Any, bool]:
        """X and targets checked, and whether these are one number per row.

        Targets are (n, t) floats on the host, or come with the rows of a source.
        """
        X = not_in_memory(X, None if reset else self._fitted_names)
        y = in_memory(y)
        if check_targets(X, y, type(self).__name__):
            refuse_text_targets(X.targets, type(self).__name__)
            single = getattr(X.targets, "single", False)
            return self._validated(X, reset=reset), X.targets, single
        y = arrays.fetched(y)
        _refuse_text(y)
        if isinstance(X, Source) or holds_objects(X) or not arrays.on_host(X):
            self._require(y)
            X = self._validated(X, reset=reset)
            y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
            check_lengths(X, y)
        else:
            check_lengths(X, y)
            with explaining_text():
                X, y = validate_data(
                    self,
                    X,
                    y,
                    accept_sparse="csr",
                    multi_output=True,
                    y_numeric=True,
                    reset=reset,
                )
        y = y.astype(np.float64, copy=False)
        if y.ndim > 2:
            raise ValueError(
                f"y has shape {y.shape}; it must be (n_samples,) or (n_samples, "
                "n_targets)."
            )
        return X, columns_of(y), y.ndim == 1

    def _require(self, y: Any) -> None:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is "
                "None."
            )

    def _goal_for(self, alpha: float) -> Goal:
        """How many landmarks, for ridge regression with `alpha`, the least there is."""
        epsilon = self.epsilon
        if epsilon is None:
            return self._goal()
        number = isinstance(epsilon, (int, float, np.integer, np.floating))
        if not number or isinstance(epsilon, bool) or not 0 < epsilon < 1:
            raise ValueError(
                f"epsilon={epsilon!r} is not allowed; the bound 1 + 3·epsilon on the "
                "risk is proven for 0 < epsilon < 1."
            )
        for name in ("ridge", "max_trace_error"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"epsilon={epsilon!r} and {name}={getattr(self, name)!r} both say "
                    "how many landmarks there are to be; give one of them."
                )
        if alpha <= 0:
            raise ValueError(
                f"epsilon={epsilon!r} needs alpha > 0: landmarks are chosen for "
                f"‖K − K̃‖₂ ≤ epsilon·alpha, and alpha is {alpha:g}."
            )
        goal = goal_from(self.n_landmarks, self.sampler, ridge=float(epsilon * alpha))
        as_sampler(self.sampler, goal)
        return goal

    def _choose(
        self,
        kernel: Kernel,
        source: Source,
        goal: Goal,
        engine: Engine,
        passes_after: float = 1.0,
    ) -> Landmarks:
        """Landmarks; with epsilon none where it clearly takes more than allowed."""
        if self.epsilon is not None:
            assert isinstance(goal, Ridge)
            self._refuse_too_many(kernel, source, goal, engine)
        landmarks = self._chosen(
            kernel, source, engine, goal, passes_after=passes_after, delta=self.delta
        )
        if self.epsilon is not None and landmarks.n_wanted is not None:
            assert isinstance(goal, Ridge)
            d_eff = landmarks.effective_dimension or math.nan
            raise _too_many(self.epsilon, goal, f"{landmarks.n_wanted}", d_eff)
        return landmarks

    def _refuse_too_many(
        self, kernel: Kernel, source: Source, goal: Ridge, engine: Engine
    ) -> None:
        """Say that epsilon takes more than is allowed, before the long work begins."""
        free = Ridge(goal.ridge)
        found = forecast(kernel, source, free, self.delta, engine)
        size, d_eff = found.n_landmarks, found.effective_dimension
        # The estimate may be off; only what is clearly too many is refused by it.
        if goal.at_most is not None and size > 3 * goal.at_most:
            raise _too_many(self.epsilon, goal, f"about {size}", d_eff)
        if goal.at_most is None and size > MANY_LANDMARKS:
            alpha = goal.ridge / self.epsilon
            warn(
                f"epsilon={self.epsilon:g} at alpha={alpha:g} takes about {size} "
                f"landmarks (effective dimension {d_eff:.0f}) and {found.seconds:.2g} "
                "s or more, which is long work; n_landmarks sets a limit."
            )

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
        self.solver_ = fit.solver
        self.n_iter_ = fit.n_iterations
        self.risk_bound_ = None
        if not self.fit_intercept and not weighted and landmarks.error is not None:
            self.risk_bound_ = risk_bound(
                float(alphas.min()), fit.trace_left, landmarks.guarantee
            )
        self._keep_model(landmarks, Model(fit.map, ravel, fit.posterior))

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
        landmarks, source = self._for_new_rows(X, self.dual_coef_, method)
        engine = engine_for(landmarks.kernel, self.n_jobs, self.verbose)
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


def _too_many(epsilon: float, goal: Ridge, wanted: str, d_eff: float) -> ValueError:
    alpha = goal.ridge / epsilon
    return ValueError(
        f"epsilon={epsilon:g} at alpha={alpha:g} takes {wanted} landmarks (effective "
        f"dimension {d_eff:.0f} at epsilon·alpha), and n_landmarks={goal.at_most} "
        "allows no "
        "more. Raise n_landmarks or pass None, allow a larger epsilon, or leave "
        "epsilon out to use n_landmarks as they are."
    )


def check_alphas(alpha: Any, n_targets: int, name: str = "alpha") -> np.ndarray:
    """One finite number >= 0 per target."""
    alphas = as_numbers(alpha)
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


def as_numbers(given: Any) -> np.ndarray:
    """What was given in float64; nan where it is something else than numbers."""
    try:
        values = np.asarray(given)
    except (TypeError, ValueError):  # lists of different lengths
        return np.array([np.nan])
    # "0.1" and True would pass for numbers.
    known = values.dtype.kind in "iuf"
    return values.astype(np.float64) if known else np.array([np.nan])


def check_noise(alphas: np.ndarray) -> None:
    """Deviations need alpha > 0."""
    if not np.all(alphas > 0):
        raise ValueError(
            "return_std=True needs alpha > 0: alpha is the variance of the noise."
        )


def check_solver(
    solver: Any, alphas: np.ndarray, allowed: tuple[str, ...] = SOLVERS
) -> str:
    """One of the solvers' names, and able to solve with these alphas."""
    if not isinstance(solver, str) or solver not in allowed:
        raise unknown("solver", solver, list(allowed))
    if solver in ("cg", "full") and alphas.min() == 0:
        raise ValueError(
            f"solver={solver!r} needs alpha > 0; use solver='direct' for alpha=0."
        )
    return solver


def _refuse_text(y: Any) -> None:
    """Text that is no number has no place in y."""
    if y is None or (arrays.is_array(y) and not isinstance(y, np.ndarray)):
        return
    if sp.issparse(y):
        raise ValueError("y is sparse; targets must be a dense array, y.toarray().")
    if isinstance(y, (str, os.PathLike)):
        raise ValueError(
            f"y={y!r} is a path; targets that are in a file come with the rows, "
            f"sources.open(X, target=pathlib.Path({os.fspath(y)!r}))."
        )
    values = np.asarray(y, dtype=object) if isinstance(y, list) else np.asarray(y)
    if values.dtype.kind in "OUS":
        try:
            values.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                "y holds something that is not a number: "
                f"{str(error).rstrip('.')}. Encode it as numbers; for classes use "
                "KernelRidgeClassifier."
            ) from None


def columns_of(y: np.ndarray) -> np.ndarray:
    """y as (n, t)."""
    return y[:, None] if y.ndim == 1 else y
