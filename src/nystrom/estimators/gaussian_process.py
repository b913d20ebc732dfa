"""GaussianProcessRegressor: scikit-learn's estimator on landmarks.

Hyper-parameters maximise a bound on the marginal likelihood; a certificate says how far
the posterior is from the exact one.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, Self
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError
from sklearn.base import RegressorMixin, clone
from sklearn.gaussian_process import GaussianProcessRegressor as ExactProcess
from sklearn.gaussian_process import kernels as gp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .. import _arrays as arrays
from .._validation import check_bool, check_int, check_positive, unknown_name_error
from ..engines.blas import blas_limit_for_size, resolve_n_jobs
from ..kernels import Blockwise, Kernel
from ..kernels.gaussian_process import (
    as_scikit_learn,
    from_scikit_learn,
    noise_and_gradient,
)
from ..landmarks import Landmarks
from ..linalg.features import LinearMap
from ..models.evidence import ProcessRows, evidence
from ..models.gaussian_process import JointPosterior, ProcessFit, likelihood_error
from ..models.posterior import Posterior
from ..models.ridge_solvers import ExactPosterior
from ..samplers import FixedSize, StoppingRule
from ..sources import Source
from ._base import asarray_like, exact_landmarks, uses_exact_solver
from ._hyperparameters import (
    DEFAULT_LANDMARKS,
    HyperparameterSearch,
    check_kernel_and_noise,
    process_rows,
    warn_of_residual,
)
from ._problem import source_from_rows, warn_about_landmarks
from ._progress import fit_context, method_of_rows, with_callbacks
from ._ridge import BaseKernelRidge, RidgeModel

#: Rows of the last fit, for the likelihood at other hyper-parameters. They are no part
#: of a model that is saved.
_TRAINING_ROWS: WeakKeyDictionary[Any, ProcessRows] = WeakKeyDictionary()
#: Fitted attributes of scikit-learn's own class, which does the work in exact mode:
#: with an entry per row, and what predictions are scaled back by.
EXACT_ATTRIBUTES = ("y_train_", "L_", "_y_train_mean", "_y_train_std")


class GaussianProcessRegressor(RegressorMixin, BaseKernelRidge):
    """Gaussian-process regression on landmarks.

    A drop-in for `sklearn.gaussian_process.GaussianProcessRegressor`, in O(n·s²) time
    with s landmarks and memory that does not grow with n. With no more rows than
    `n_landmarks`, scikit-learn's own class does the work, and the answer is exact.

    The hyper-parameters maximise a lower bound on the log marginal likelihood, the
    collapsed bound of Titsias (2009): on the exact likelihood of 400 rows to begin
    with, then on 8 rows per landmark (2,000 to 16,000), with landmarks selected again
    in between, and by up to three steps on all rows, or on n of them with
    n·n_landmarks² ≤ 2³⁵ (34,000 rows for 1000 landmarks).

    Parameters
    ----------
    kernel : kernel instance, default=None
        A kernel of `sklearn.gaussian_process.kernels`, or of `nystrom.kernels`. None is
        `ConstantKernel() * RBF()`. A `WhiteKernel` in a sum is the noise, which
        landmarks need: without one, alpha is all there is.
    alpha : float or ndarray of shape (n_samples,), default=1e-10
        Variance of further noise, of all targets or of each row.
    optimizer : "fmin_l_bfgs_b", callable or None, default="fmin_l_bfgs_b"
        How hyper-parameters are found, as for scikit-learn. None keeps the kernel's.
    n_restarts_optimizer : int, default=0
        Further random starts of the optimiser. Not used where landmarks are moved and
        the kernel is a constant times `RBF` or `Matern`, with noise or without: the
        move then has starts of its own.
    normalize_y : bool, default=False
        Whether targets are centred and divided by their deviation.
    copy_X_train : bool, default=True
        Whether scikit-learn's own class copies the rows it keeps.
    n_targets : int, default=None
        How many targets draws from the prior have.
    random_state : int, RandomState instance or None, default=None
        Draws of restarts and landmarks.
    n_landmarks : int or None, default=1000
        How many landmarks. With `max_kl` or `max_trace_error` the most there may be;
        None for no limit.
    sampler : str, callable or array, default="auto"
        How landmarks are chosen, as for `Nystroem`.
    max_trace_error : float, default=None
        As many landmarks as tr(K − K̃) ≤ max_trace_error · tr K takes.
    max_kl : float, default=None
        As many landmarks as take `kl_bound_` to at most this, at `kernel_`.
    metric : {"matrix"} or None, default=None
        "matrix" learns a linear map of the features, as gamma="matrix" of
        `KernelRidge` does; the kernel is then one of mapped rows. Without
        `optimize_landmarks`, the map is the identity where the one that is learnt makes
        400 rows less likely.
    optimize_landmarks : bool, default=False
        Whether landmarks move along the gradient of the bound, together with the
        hyper-parameters. With `ConstantKernel() * k + WhiteKernel()`, k an RBF or
        Matern kernel, as in `KernelRidge`: up to 100 steps on 40 rows per landmark,
        with the map of `metric`, kept if rows that were not seen are more likely. Where
        these rows times n_landmarks² are at most 2²⁹, up to 60 steps on all of them
        follow, and the map is the identity where the bound is larger without it. With
        other kernels of distances and dot products up to 60 steps on 24 rows per
        landmark, kept if the bound on all rows rises.
    n_jobs : int, default=None
        Threads. None: as many as BLAS may use; -1: all cores.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    kernel_ : kernel instance
        scikit-learn's kernel with the hyper-parameters that were found.
    X_train_ : array
        The landmarks; all rows in exact mode.
    alpha_ : ndarray of shape (n_landmarks,) or (n_landmarks, n_targets)
        Dual coefficients of the landmarks, for normalised targets.
    dual_coef_ : ndarray of the same shape
        The same for the targets as they are.
    log_marginal_likelihood_value_ : float
        The collapsed bound at `kernel_.theta`, on all rows; exact in exact mode.
    evidence_bounds_ : tuple of float
        Lower and upper bounds on the exact log marginal likelihood at `kernel_.theta`.
    kl_bound_ : float
        The Kullback-Leibler divergence of this posterior from the exact one is at most
        this, the difference of these bounds.
    landmarks_ : Landmarks
        All that is known about the landmarks; prints as one line.
    approximation_error_ : TraceError or None
        tr(K − K̃)/tr K.
    n_features_in_ : int
        Number of features seen during fit.

    See Also
    --------
    KernelRidgeCV : The same mean, with parameters by cross-validation.
    sklearn.gaussian_process.GaussianProcessRegressor : Exact Gaussian processes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> from nystrom import GaussianProcessRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (5000, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(5000)
    >>> kernel = RBF() + WhiteKernel()
    >>> model = GaussianProcessRegressor(kernel, n_landmarks=50, random_state=0)
    >>> model = model.fit(X, y)
    >>> round(float(np.sqrt(model.kernel_.k2.noise_level)), 2)
    0.1
    >>> mean, std = model.predict([[0.0], [10.0]], return_std=True)
    >>> bool(std[0] < 0.11 and std[1] > 0.5)
    True
    """

    fit_intercept = False
    _white_noise_is_alpha = False  # the kernel that is resolved has none
    gamma = degree = coef0 = kernel_params = None
    _model_passes = 6.0
    _bool_params = ()
    score = BaseKernelRidge.score
    _exact: ExactProcess | None
    _model: RidgeModel

    def __init__(
        self,
        kernel: Any = None,
        *,
        alpha: Any = 1e-10,
        optimizer: Any = "fmin_l_bfgs_b",
        n_restarts_optimizer: int = 0,
        normalize_y: bool = False,
        copy_X_train: bool = True,
        n_targets: int | None = None,
        random_state: Any = None,
        n_landmarks: Any = 1000,
        sampler: Any = "auto",
        max_trace_error: float | None = None,
        max_kl: float | None = None,
        metric: str | None = None,
        optimize_landmarks: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.normalize_y = normalize_y
        self.copy_X_train = copy_X_train
        self.n_targets = n_targets
        self.random_state = random_state
        self.n_landmarks = n_landmarks
        self.sampler = sampler
        self.max_trace_error = max_trace_error
        self.max_kl = max_kl
        self.metric = metric
        self.optimize_landmarks = optimize_landmarks
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows and targets.

        Parameters
        ----------
        X : array-like, list of objects, path or Source, (n_samples, n_features)
            Training rows.
        y : array-like or path, of shape (n_samples,) or (n_samples, n_targets)
            Targets. None where the source has them.
        sample_weight : float, array-like or path, default=None
            The variance of the noise of a row of weight w is that of the others,
            divided by w; weight 0 excludes it.

        Returns
        -------
        self : GaussianProcessRegressor
            The fitted estimator.
        """
        with fit_context(self, X, y):
            exact = self._unfitted_exact()
            exact._validate_params()
            resolve_n_jobs(self.n_jobs)
            check_bool(self.optimize_landmarks, "optimize_landmarks")
            if self.metric not in (None, "matrix"):
                raise unknown_name_error("metric", self.metric, ["matrix"])
            X = self._validate_rows(X, reset=True)
            targets, single = self._validate_targets(X, y)
            source = source_from_rows(X)
            kernel = clone(exact.kernel or gp.ConstantKernel() * gp.RBF())
            check_kernel_and_noise(kernel, self.alpha, source)
            is_weighted = sample_weight is not None or source.is_weighted
            if (
                uses_exact_solver(self._stopping_rule(), self.sampler, source)
                and not is_weighted
                and self.metric is None
                and _can_optimize(exact, source)
            ):
                self._fit_exact(exact, targets[:, 0] if single else targets, source)
                return self
            problem = self._resolve_problem(
                X, targets, sample_weight, kernel=from_scikit_learn(kernel)
            )
            rows = process_rows(self, problem, kernel)
            search = HyperparameterSearch(self, problem, rows)
            kernel, landmarks = search.run(kernel)
            fit = search.fit(kernel, landmarks)
            if self.max_kl is not None:
                landmarks, fit = search.grow(kernel, landmarks, fit)
            self._set_process(rows, kernel, landmarks, fit)
        return self

    def _stopping_rule(self, max_spectral_error: float | None = None) -> StoppingRule:
        if self.max_kl is None:
            return super()._stopping_rule(max_spectral_error)
        check_positive(self.max_kl, "max_kl", ", or None to let n_landmarks decide")
        if self.max_trace_error is not None or self.optimize_landmarks:
            raise ValueError(
                "max_kl determines the number of landmarks; omit max_trace_error and "
                "optimize_landmarks."
            )
        size = check_int(self.n_landmarks, "n_landmarks", optional=True)
        return FixedSize(size or DEFAULT_LANDMARKS)

    def _validate_rows(self, X: Any, *, reset: bool) -> Any:
        X = super()._validate_rows(X, reset=reset)
        if sp.issparse(X):
            raise TypeError(
                "Sparse data was passed for X, but dense data is required. Use "
                "'.toarray()' to convert it to a dense array."
            )
        return X

    def _unfitted_exact(self) -> ExactProcess:
        """scikit-learn's estimator with those of the parameters that it has."""
        exact, params = ExactProcess(), self.get_params(deep=False)
        shared = {name: params[name] for name in exact.get_params(deep=False)}
        if isinstance(shared["kernel"], Kernel):
            shared["kernel"] = as_scikit_learn(shared["kernel"])
        return exact.set_params(**shared)

    def _fit_exact(self, exact: ExactProcess, targets: Any, source: Source) -> None:
        n = source.n_rows
        with blas_limit_for_size(n), np.errstate(over="ignore", invalid="ignore"):
            exact.fit(source.rows(0, n), np.asarray(targets[:n]))
        try:
            kernel = from_scikit_learn(exact.kernel_)
        except ValueError:  # noise that is no term of a sum
            kernel = Blockwise(exact.kernel_, exact.kernel_.diag)
        self._exact = exact
        self.__dict__.pop("_model", None)
        self.landmarks_ = exact_landmarks(kernel, source)
        self.approximation_error_ = self.landmarks_.error
        self.kernel_, self.X_train_ = exact.kernel_, exact.X_train_
        self.alpha_ = exact.alpha_
        self.dual_coef_ = exact.alpha_ * exact._y_train_std
        value = float(exact.log_marginal_likelihood_value_)
        if not (np.isfinite(value) and np.isfinite(self.dual_coef_).all()):
            raise likelihood_error(exact.kernel)
        self.log_marginal_likelihood_value_ = value
        self.evidence_bounds_, self.kl_bound_ = (value, value), 0.0

    def __getattr__(self, name: str) -> Any:
        """What scikit-learn's own class knows in exact mode alone."""
        exact = self.__dict__.get("_exact")
        if name in EXACT_ATTRIBUTES and exact is not None:
            return getattr(exact, name)
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}"
            + (": it has one entry per row" if name in EXACT_ATTRIBUTES else "")
        )

    def _set_process(
        self, rows: ProcessRows, kernel: Any, landmarks: Landmarks, fit: ProcessFit
    ) -> None:
        if not np.isfinite(fit.evidence):
            raise likelihood_error(kernel)
        landmarks = landmarks.with_error(fit.ridge.error)
        if landmarks.max_trace_error is not None:
            warn_about_landmarks(landmarks)
        self.landmarks_, self.approximation_error_ = landmarks, landmarks.error
        self._exact, _TRAINING_ROWS[self] = None, rows
        self.kernel_, self.X_train_ = kernel, landmarks.points
        white, ravel = noise_and_gradient(kernel)[0], len(rows.mean) == 1
        self._model = RidgeModel(fit.ridge.map, ravel, fit.posterior, None, white)
        dual, columns = fit.ridge.map.dual, 0 if ravel else slice(None)
        self.dual_coef_ = asarray_like(landmarks, dual[:, columns])
        self.alpha_ = asarray_like(landmarks, (dual / rows.scale)[:, columns])
        self.log_marginal_likelihood_value_ = fit.evidence
        self.evidence_bounds_ = fit.bounds
        self.kl_bound_, self._calibrated = fit.kl_bound, fit.calibrated
        warn_of_residual(fit)

    @method_of_rows
    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        out: Any = None,
        interval: float | None = None,
        noise: bool = False,
    ) -> Any:
        """Predict the targets of rows, with s kernel evaluations each.

        Before `fit` from the prior.

        Parameters
        ----------
        X : array-like, list of objects, path or Source, (n_samples, n_features)
            Rows.
        return_std : bool, default=False
            Whether to return the predictive standard deviation too. As for
            scikit-learn, the noise of a `WhiteKernel` is a part of it, alpha is not.
        return_cov : bool, default=False
            Whether to return the covariance of all rows instead.
        out : str, Path or array, default=None
            Where predictions go, as for `KernelRidge.predict`.
        interval : float, default=None
            The coverage of a prediction interval, such as 0.95, by the residuals of
            rows that are left out one by one, as for `KernelRidge.predict`.
        noise : bool, default=False
            Whether deviations include alpha too; where rows have their own, the mean
            of the noise, a geometric one if there are landmarks.

        Returns
        -------
        mean : array of shape (n_samples,) or (n_samples, n_targets)
            Predictions; `out` where it is given.
        std : ndarray of the same shape
            Only with `return_std`, and without `out`.
        cov : ndarray of shape (n_samples, n_samples) or \
(n_samples, n_samples, n_targets)
            Only with `return_cov`.
        lower, upper : ndarrays of the shape of mean
            Only with `interval`, and in place of the predictions.
        """
        if return_std and return_cov:
            raise RuntimeError(
                "At most one of return_std or return_cov can be requested."
            )
        exact = self._exact_or_prior()
        if exact is not None and interval is None:
            return self._predict_exact(exact, X, noise, return_std, return_cov)
        if interval is not None:
            calibrated = copy.copy(self)
            calibrated._model = self._calibrated_model()
            others = return_std or return_cov
            return calibrated._predict_interval(X, interval, others, out)
        if return_cov:
            return self._predict_with_covariance(X)
        if return_std:
            return self._predict_with_std(X, noise, out)
        return self._predict(X, out)

    def _calibrated_model(self) -> RidgeModel:
        """What intervals come from."""
        check_is_fitted(self, "kernel_")
        exact = self._exact
        if exact is None:
            return replace(self._model, posterior=self._calibrated)
        # The same mean, and rows left out one by one.
        mean, scale = np.atleast_1d(exact._y_train_mean, exact._y_train_std)
        dual = np.reshape(self.dual_coef_, (-1, len(mean)))
        variance = np.asarray(exact.alpha) + noise_and_gradient(exact.kernel_)[0]
        noise = float(np.mean(variance))
        posterior = ExactPosterior(
            exact.X_train_,
            self.landmarks_.kernel,
            noise / variance if variance.ndim else None,
            np.full(len(mean), noise),
            scale**2,
        )
        return RidgeModel(LinearMap(dual, mean, False), len(mean) == 1, posterior)

    def _predict_exact(
        self, exact: ExactProcess, X: Any, noise: bool, return_std: bool, cov: bool
    ) -> Any:
        """scikit-learn's predictions, in the precision of the rows."""
        X, is_fitted = self._rows_in_memory(X), "kernel_" in vars(self)
        dtype = self.landmarks_.kernel.dtype(X) if is_fitted else np.float64
        with blas_limit_for_size(len(getattr(exact, "X_train_", ()))):
            found = exact.predict(X, return_std=return_std, return_cov=cov)
        if not isinstance(found, tuple):
            return found.astype(dtype, copy=False)
        mean, spread = found
        if return_std and noise:
            scale = getattr(exact, "_y_train_std", 1.0)
            spread = np.sqrt(spread**2 + np.mean(exact.alpha) * np.square(scale))
        return mean.astype(dtype, copy=False), spread.astype(dtype, copy=False)

    def _rows_in_memory(self, X: Any) -> Any:
        X = self._validate_rows(X, reset=False)
        return X.rows(0, X.n_rows) if isinstance(X, Source) else X

    def _exact_or_prior(self) -> ExactProcess | None:
        """scikit-learn's own class in exact mode, and before `fit`."""
        return self._exact if "kernel_" in vars(self) else self._unfitted_exact()

    def _joint_posterior(self, X: Any) -> tuple[Source, JointPosterior, np.ndarray]:
        """Rows, their joint posterior, and the scales of the targets."""
        landmarks, source, _ = self._resolve_new_rows(X, self.dual_coef_, "predict")
        posterior = self._model.posterior
        assert isinstance(posterior, Posterior)
        joint = JointPosterior(landmarks, posterior, self._model.white)
        return source, joint, posterior.scales

    def _predict_with_covariance(self, X: Any) -> tuple[Any, np.ndarray]:
        source, joint, scales = self._joint_posterior(X)
        E, Q = joint(source.rows(0, source.n_rows))
        cov = E + Q @ Q.T
        is_single = self._model.ravel
        return self._predict(X), cov * scales[0] if is_single else cov[
            ..., None
        ] * scales

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Draw functions from the posterior, and evaluate them at rows.

        A draw is zᵀu + e: u from the posterior of the features, the same for all rows,
        and e from the part of the kernel that the landmarks do not explain, whose
        variance is small with enough landmarks. e is drawn jointly within each 1,000
        consecutive rows, and independently between them: at the border of two such
        blocks neighbours may differ by e. Sort rows so that neighbours are consecutive,
        or draw at most 1,000 rows for the exact joint distribution. Memory grows
        linearly with the rows.

        Parameters
        ----------
        X : array-like, list of objects, path or Source, (n_samples_X, n_features)
            Rows.
        n_samples : int, default=1
            How many draws.
        random_state : int, RandomState instance or None, default=0
            What is drawn.

        Returns
        -------
        y_samples : ndarray, (n_samples_X, n_samples) or \
(n_samples_X, n_targets, n_samples)
            The draws.
        """
        exact = self._exact_or_prior()
        if exact is not None:
            return exact.sample_y(self._rows_in_memory(X), n_samples, random_state)
        mean = np.asarray(arrays.to_host_float64(self._predict(X)))
        source, joint, scales = self._joint_posterior(X)
        n, t = source.n_rows, len(scales)
        draws = joint.draw(source, t * n_samples, check_random_state(random_state))
        draws = draws.reshape(n, t, n_samples) * np.sqrt(scales)[:, None]
        draws += mean.reshape(n, t, 1)
        return draws[:, 0] if self._model.ravel else draws

    def log_marginal_likelihood(
        self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True
    ) -> Any:
        """The log marginal likelihood of the training targets, or its lower bound.

        On all rows of the last `fit`, with its landmarks. A model that was loaded has
        no rows, and knows the value of `kernel_.theta` alone.

        Parameters
        ----------
        theta : array-like of shape (n_kernel_params,), default=None
            Hyper-parameters; None for those that were found.
        eval_gradient : bool, default=False
            Whether to return the gradient too.
        clone_kernel : bool, default=True
            Whether `kernel_` stays as it is.

        Returns
        -------
        log_likelihood : float
            The value.
        log_likelihood_gradient : ndarray of shape (n_kernel_params,)
            Only with `eval_gradient`.
        """
        if theta is None:
            if eval_gradient:
                raise ValueError("Gradient can only be evaluated for theta!=None")
            return self.log_marginal_likelihood_value_
        if self._exact is not None:
            return self._exact.log_marginal_likelihood(
                theta, eval_gradient, clone_kernel
            )
        rows = _TRAINING_ROWS.get(self)
        if rows is None:
            raise ValueError(
                "A saved model does not contain the rows; fit again to evaluate the "
                "likelihood at other hyper-parameters."
            )
        kernel = self.kernel_.clone_with_theta(theta) if clone_kernel else self.kernel_
        kernel.theta = np.asarray(theta, dtype=np.float64)
        try:
            found = evidence(kernel, self.X_train_, rows, gradient=eval_gradient)
        except LinAlgError:
            return (-np.inf, np.zeros_like(theta)) if eval_gradient else -np.inf
        return (found.value, found.theta) if eval_gradient else found.value

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.sparse = False
        return tags


def _can_optimize(exact: ExactProcess, source: Source) -> bool:
    """Whether scikit-learn's own class can optimise its kernel."""
    if exact.kernel is None or exact.optimizer is None:
        return True
    try:
        exact.kernel(source.rows(0, 1), eval_gradient=True)
    except (TypeError, NotImplementedError):
        return False
    return True
