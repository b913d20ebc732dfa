"""`BaseKernelRidge`: what the ridge estimators share.

Checks of alpha and solver, the number of landmarks that a bound on the risk takes,
fitted attributes, predictions and scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from .. import _arrays as arrays
from .._random import as_seed
from .._validation import both_given_error, check_choice, check_numbers, check_positive
from ..kernels.user import split_white_noise
from ..landmarks import Landmarks
from ..linalg.cross_kernel import cast_output
from ..linalg.errors import TraceError
from ..linalg.features import LinearMap
from ..models.posterior import Posterior
from ..models.ridge import EXACT_RISK, RidgeFit, RidgeTask
from ..models.ridge_full import FullPosterior
from ..models.ridge_solvers import ExactPosterior
from ..models.streaming import StreamingMoments
from ..samplers import StoppingRule
from ..sources import Source, infer_source
from ..sources.output import Output
from ._base import BaseLandmarkEstimator, asarray_like
from ._inputs import check_targets, check_targets_in_source, load_values
from ._problem import LANDMARK_COUNT, KernelProblem
from ._progress import method_of_rows, warn

#: A stream's landmarks are changed where that leaves so many times less of K: to carry
#: sums over loses a little.
MIN_ERROR_REDUCTION = 1.1


def check_solver(solver: Any, alphas: np.ndarray, allowed: tuple[str, ...]) -> str:
    """One of the solvers' names, and able to solve with these alphas."""
    check_choice(solver, "solver", allowed)
    if solver in ("cg", "full") and alphas.min() == 0:
        raise ValueError(
            f"solver={solver!r} needs alpha > 0; use solver='direct' for alpha=0."
        )
    return solver


@dataclass(frozen=True, eq=False)
class RidgeModel:
    """What a fitted ridge estimator predicts with."""

    map: LinearMap
    ravel: bool  # y had one dimension
    posterior: Posterior | ExactPosterior | FullPosterior | None = None
    rows: Landmarks | None = None  # all rows, where these are not the landmarks
    white: float = 0.0  # the part of alpha that is a WhiteKernel of the given kernel

    def require_posterior(self) -> Posterior | ExactPosterior | FullPosterior:
        """The posterior; an error where there is none, or alpha is 0."""
        if self.posterior is None:
            raise ValueError(
                "return_std=True and interval= need the Gram matrix, which conjugate "
                "gradients do not compute; fit with solver='direct'."
            )
        if not np.all(self.posterior.alphas > 0):
            raise ValueError(
                "return_std=True and interval= need alpha > 0: alpha is the variance "
                "of the noise."
            )
        return self.posterior

    def column_names_with_std(self) -> list[str]:
        """What the columns are called in a table of predictions and deviations."""
        n_targets = self.map.dual.shape[1]
        numbers = [""] if self.ravel else [str(i) for i in range(n_targets)]
        kinds = ("prediction", "deviation")
        return [f"{kind}{number}" for kind in kinds for number in numbers]


class BaseKernelRidge(BaseLandmarkEstimator):
    """The base of the ridge estimators, and of KernelLogisticRegression."""

    _white_noise_is_alpha = True
    fit_intercept: bool
    _bool_params: ClassVar[tuple[str, ...]] = ("fit_intercept", "optimize_landmarks")
    #: Names of the solvers.
    _solvers: ClassVar[tuple[str, ...]] = ("auto", "direct", "cg")
    landmarks_: Landmarks
    intercept_: Any
    _running: StreamingMoments | None  # over the batches of a stream

    def _validate_targets(self, X: Any, y: Any) -> tuple[Any, bool]:
        return check_targets(X, y, type(self).__name__)

    def _white_noise(self) -> float:
        """The variance of white noise in the kernel, which counts as alpha."""
        return split_white_noise(self.kernel)[1]

    def _fixed_noise(self) -> float | None:
        alpha = getattr(self, "alpha", None)  # a search has alphas, logistic has C
        smallest = 0.0 if alpha is None else float(np.min(alpha))
        return smallest + self._white_noise() if smallest > 0 else None

    def _ridge_task(self, problem: KernelProblem, alphas: np.ndarray) -> RidgeTask:
        return RidgeTask(
            problem.source,
            alphas,
            bool(self.fit_intercept),
            problem.engine,
            as_seed(self.random_state),
            calibrate=isinstance(self, RegressorMixin),
        )

    def _check_alphas(self, problem: KernelProblem) -> np.ndarray:
        """(t,): alpha, with the white noise of the kernel."""
        n_targets = problem.source.targets.shape[1]
        alphas = check_numbers(self.alpha, "alpha", alternative=", one per target")
        if alphas.ndim == 1 and len(alphas) not in (1, n_targets):
            raise ValueError(
                f"alpha has {len(alphas)} values, but y has {n_targets} targets; give "
                "one number, or one per target."
            )
        return np.broadcast_to(alphas, (n_targets,)) + self._white_noise()

    def _stopping_rule_for_risk(self, alphas: np.ndarray) -> StoppingRule:
        """How many landmarks, for ridge regression with the least alpha."""
        epsilon, alpha = self.epsilon, float(alphas.min())
        if epsilon is None:
            return self._stopping_rule()
        check_positive(epsilon, "epsilon", below=1.0)
        for name in ("max_spectral_error", "max_trace_error"):
            if (value := getattr(self, name)) is not None:
                raise both_given_error(
                    f"epsilon={epsilon!r}", f"{name}={value!r}", LANDMARK_COUNT
                )
        if alpha <= 0:
            raise ValueError(
                f"epsilon={epsilon!r} needs alpha > 0: landmarks are chosen for "
                f"‖K − K̃‖₂ ≤ epsilon·alpha, and alpha is {alpha:g}."
            )
        return self._stopping_rule(float(epsilon * alpha))

    def _fit_batch(
        self, X: Any, y: Any, sample_weight: Any, **options: Any
    ) -> tuple[KernelProblem, Landmarks, RidgeFit]:
        """Fit to all rows of a stream so far and a further batch."""
        if self.epsilon is not None or self.delta is not None:
            raise ValueError(
                "partial_fit does not support epsilon and delta; use n_landmarks, "
                "max_spectral_error or max_trace_error."
            )
        moments = vars(self).get("_running")
        if moments is None and self.__dict__.pop("landmarks_", None) is not None:
            warn(
                f"partial_fit cannot continue the fit of this {type(self).__name__}; "
                "the stream starts with this batch."
            )
        previous = vars(self).get("landmarks_")
        batch = self._validate_batch(X, y, sample_weight, **options)
        source, engine = batch.source, batch.engine
        shape = source.targets.shape[1], batch.is_single_target
        if moments is not None and shape != (
            len(moments.target_shift),
            self._model.ravel,
        ):
            raise ValueError(
                f"y has {shape[0]} targets, or another number of dimensions than in "
                "earlier batches; pass the same shape."
            )
        landmarks = self._update_landmarks(
            batch, self._stopping_rule(), MIN_ERROR_REDUCTION
        )
        alphas = self._check_alphas(batch)
        if moments is None:
            moments = StreamingMoments.from_batch(landmarks, source, engine)
        else:
            moments = moments.update(previous, landmarks, source, engine)
        fit = moments.solve(landmarks, alphas, fit_intercept=bool(self.fit_intercept))
        if isinstance(self, RegressorMixin):
            # The rows of the batch, the last of the stream, stand for all.
            indices = landmarks.indices
            if indices is not None:
                indices = indices - (landmarks.n_rows - source.n_rows)
            posterior = fit.posterior.calibrate(
                landmarks.replace(indices=indices),
                source,
                fit.map,
                engine,
                as_seed(self.random_state),
                weights_count_rows=True,
            )
            fit = replace(fit, posterior=posterior)
        landmarks = self._set_fit(landmarks, fit, batch, float(alphas.min()))
        self._running = moments
        return batch, landmarks, fit

    def _set_fit(
        self, landmarks: Landmarks, fit: RidgeFit, problem: KernelProblem, alpha: float
    ) -> Landmarks:
        """Set the fitted attributes; the landmarks with their error.

        `alpha` is the smallest of the targets.
        """
        landmarks = landmarks.replace(notes=(*landmarks.notes, *fit.notes))
        landmarks = self._set_landmarks(landmarks, fit.error)
        if fit.risk_bound == EXACT_RISK:  # the solution is that with K
            n = problem.source.n_rows
            self.approximation_error_ = TraceError.from_sums(0.0, 1.0, n)
        if fit.not_converged:
            warn(fit.not_converged, ConvergenceWarning)
        if 0 < alpha < fit.least_alpha:
            warn(
                f"alpha={alpha:.3g} is below the rounding of this kernel matrix in "
                f"float64. Raise it to {fit.least_alpha:.2g} or more, or use alpha=0 "
                "for least squares."
            )
        self.solver_ = fit.solver
        self.n_iter_ = fit.n_iterations
        self.risk_bound_ = fit.risk_bound
        rows = fit.rows
        model = RidgeModel(
            fit.map,
            problem.is_single_target,
            fit.posterior,
            None if rows is None else rows.without_kernel_matrix(),
            self._white_noise(),
        )
        self._set_model(landmarks if rows is None else rows, model)
        if fit.X_fit is not None:
            self.X_fit_ = fit.X_fit
        return landmarks

    def _set_model(self, landmarks: Landmarks, model: RidgeModel) -> None:
        self._model = model
        self.X_fit_ = landmarks.points
        dual, intercept = model.map.dual, model.map.intercept
        dual = dual[:, 0] if model.ravel else dual
        self.dual_coef_ = asarray_like(landmarks, dual)
        if not self.fit_intercept:
            self.intercept_ = 0.0
        elif model.ravel:
            self.intercept_ = float(intercept[0])
        else:
            self.intercept_ = asarray_like(landmarks, intercept)

    def _basis_landmarks(self) -> Landmarks:
        rows = self._model.rows
        return self.landmarks_ if rows is None else rows

    def _predict(self, X: Any, out: Any = None, method: str = "predict") -> Any:
        check_is_fitted(self, "dual_coef_")
        output = Output(out, "prediction", single=self._model.ravel)
        rows = self._resolve_new_rows(X, self.dual_coef_, method)
        return self._model.map(*rows, output=output)

    def _predict_with_std(self, X: Any, noise: bool, out: Any) -> Any:
        """Predictions and deviations; side by side where `out` is given."""
        check_is_fitted(self, "dual_coef_")
        model = self._model
        output = Output(out, names=model.column_names_with_std())
        landmarks, source, engine = self._resolve_new_rows(
            X, self.dual_coef_, "predict"
        )
        both = model.require_posterior().predict_with_std(
            landmarks,
            source,
            model.map,
            engine,
            noise=noise,
            white=model.white,
            output=output,
        )
        if out is not None:
            return both
        dtype = landmarks.kernel.dtype(source.original.rows(0, 1))
        t = model.map.dual.shape[1]
        mean, std = cast_output(both[:, :t], dtype), arrays.as_float(both[:, t:])
        return (mean[:, 0], std[:, 0]) if model.ravel else (mean, std)

    def _predict_interval(
        self, X: Any, coverage: Any, return_std: bool, out: Any
    ) -> tuple[Any, Any]:
        """The lower and upper ends of conformal intervals."""
        coverage = check_positive(coverage, "interval", below=1.0)
        if return_std or out is not None:
            raise ValueError(
                "interval= cannot be combined with return_std or out; call predict "
                "again for these."
            )
        mean, std = self._predict_with_std(X, True, None)
        model = self._model
        posterior = model.require_posterior()
        quantiles = posterior.quantiles(coverage, model.map.dual)
        half = std * (
            float(quantiles[0]) if model.ravel else arrays.from_host(quantiles, std)
        )
        return mean - half, mean + half

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Compute R² of the predictions, or the accuracy of a classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", their kernel values with all training rows, of shape
            (n_samples, n_training), or `kernels.PrecomputedAtLandmarks` with the values
            at the landmarks only.
        y : array-like or path, default=None
            True targets or classes. None if the source has them.
        sample_weight : array-like or path, default=None
            Weights of the rows.

        Returns
        -------
        score : float
            At most 1; the higher the better.
        """
        metric = accuracy_score if is_classifier(self) else r2_score
        X = infer_source(X, self._fitted_names)
        if check_targets_in_source(X, y, type(self).__name__):
            y = read_all_targets(X)
        predicted = load_values(self.predict(X))  # type: ignore[attr-defined]
        weights = load_values(sample_weight, "sample_weight")
        return metric(load_values(y), predicted, sample_weight=weights)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def read_all_targets(source: Source) -> np.ndarray:
    """The targets that a source has, as users know them."""
    targets = source.targets
    values = targets[: source.n_rows]
    values = values[:, 0] if getattr(targets, "single", False) else values
    names = getattr(targets, "names", None)
    return values if names is None else names[values.astype(int)]


class BaseKernelRegressor(RegressorMixin, BaseKernelRidge):
    """The base of KernelRidge and KernelRidgeCV."""

    score = BaseKernelRidge.score

    @method_of_rows
    def predict(
        self,
        X: Any,
        return_std: bool = False,
        noise: bool = False,
        out: Any = None,
        interval: float | None = None,
    ) -> Any:
        """Predict the targets of rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", their kernel values with all training rows, of shape
            (n_samples, n_training), or `kernels.PrecomputedAtLandmarks` with the values
            at the landmarks only.
        return_std : bool, default=False
            Whether to return the predictive standard deviation as well: that of the
            Gaussian process with the landmarks' covariance and noise alpha, scaled to
            the leave-one-out residuals. After solver="full", each few rows take as long
            as the fit.
        noise : bool, default=False
            Whether the deviation includes the noise of a new target. The noise of a
            `WhiteKernel` is always included, as in scikit-learn.
        out : str, path-like or array, default=None
            Where the result goes instead of a new array: a file that ends in `.npy` or
            `.parquet`, which is written block by block, or an array to fill.
            An existing file is replaced only with
            `out=nystrom.sources.Overwrite(path)`. With `return_std` there are twice as
            many columns: predictions, then deviations.
        interval : float, default=None
            Coverage of prediction intervals, such as 0.95. Their width is calibrated on
            training rows that are left out of the fit one by one.

        Returns
        -------
        mean : array of shape (n_samples,) or (n_samples, n_targets)
            Predictions in the precision of X, or `out`.
        std : ndarray of the same shape
            Standard deviations, only with `return_std` and without `out`.
        lower, upper : ndarrays of the same shape
            Ends of the intervals, only with `interval` and instead of the predictions.
        """
        if interval is not None:
            return self._predict_interval(X, interval, return_std, out)
        if return_std:
            return self._predict_with_std(X, noise, out)
        return self._predict(X, out)
