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
    """Gaussian process regression on landmarks.

    A drop-in replacement for `sklearn.gaussian_process.GaussianProcessRegressor` that
    runs in O(n·s²) time with s landmarks, in memory that does not grow with the number
    of rows n. With no more rows than `n_landmarks`, scikit-learn's own class does the
    work and the result is exact. If you only need predictions and intervals,
    `KernelRidgeCV` is faster.

    The hyper-parameters maximise the collapsed bound of Titsias (2009), a lower bound
    on the log marginal likelihood. The search uses 400 rows first, then 8 rows per
    landmark (2,000 to 16,000 rows), and ends with up to three steps on all rows, or on
    n rows with n·n_landmarks² ≤ 2³⁵ (34,000 rows for 1000 landmarks).

    Read more in the :doc:`user guide </gaussian_process>`.

    Parameters
    ----------
    kernel : kernel instance, default=None
        Covariance function: a kernel of `sklearn.gaussian_process.kernels` or of
        `nystrom.kernels`. None means `ConstantKernel() * RBF()`. Add a `WhiteKernel`
        for the noise of the targets: landmarks cannot approximate a process without
        noise, and the default of `alpha` is nearly none.
    alpha : float or ndarray of shape (n_samples,), default=1e-10
        Noise variance that is added to that of a `WhiteKernel`: one number for all
        rows, or one per row. It is not learnt.
    optimizer : "fmin_l_bfgs_b", callable or None, default="fmin_l_bfgs_b"
        Optimiser of the hyper-parameters, or a function with scikit-learn's signature.
        None keeps the hyper-parameters of `kernel`.
    n_restarts_optimizer : int, default=0
        Number of further random starts of the optimiser. It has no effect with
        `optimize_landmarks` and a kernel `ConstantKernel() * k`, with or without a
        `WhiteKernel`, where k is `RBF` or `Matern`.
    normalize_y : bool, default=False
        Whether to centre the targets and divide them by their standard deviation.
    copy_X_train : bool, default=True
        Whether exact mode keeps a copy of X.
    n_targets : int, default=None
        Number of targets of draws from the prior, before `fit`. None means 1.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers. The same int gives the same landmarks for every
        storage and number of threads.
    n_landmarks : int or None, default=1000
        Number of landmarks. With `max_kl` or `max_trace_error` it is an upper limit, or
        None for no limit.
    sampler : str, callable or array-like, default="auto"
        How landmarks are selected: "auto", "recursive", "accelerated", "leverage",
        "rpcholesky", "greedy", "kmeans" or "uniform"; a sampler from
        `nystrom.samplers`; row numbers; or an array of points.
    max_trace_error : float, default=None
        Select as many landmarks as needed for tr(K − K̃) ≤ `max_trace_error` · tr K.
    max_kl : float, default=None
        Select as many landmarks as needed for `kl_bound_` ≤ `max_kl`. It cannot be
        combined with `max_trace_error` or `optimize_landmarks`.
    metric : {"matrix"} or None, default=None
        "matrix" learns a linear map of the features from the targets and applies it
        before the kernel, like gamma="matrix" of `KernelRidge`. The map is the identity
        if the learnt one does not make the targets more likely. None uses no map.
    optimize_landmarks : bool, default=False
        Whether to move the landmarks along the gradient of the bound, together with the
        hyper-parameters. Landmarks are then points instead of rows. The result is used
        only if held-out rows become more likely or the bound rises. For sums and
        products of kernels of a distance and dot products.
    n_jobs : int or None, default=None
        Number of threads. None means as many as `joblib.parallel_config` or BLAS may
        use; -1 means all cores.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    kernel_ : kernel instance
        The kernel of scikit-learn with the learnt hyper-parameters. With
        metric="matrix", its attributes `kernel` and `transform` are that kernel and the
        map.
    X_train_ : array
        The landmarks; all rows in exact mode.
    alpha_ : ndarray of shape (n_landmarks,) or (n_landmarks, n_targets)
        Dual coefficients of the landmarks, for targets after `normalize_y`.
    dual_coef_ : ndarray of shape (n_landmarks,) or (n_landmarks, n_targets)
        Dual coefficients of the landmarks, in the units of the targets.
    log_marginal_likelihood_value_ : float
        The collapsed bound on all rows at `kernel_.theta`; the log marginal likelihood
        in exact mode.
    evidence_bounds_ : tuple of float
        Lower and upper bounds on the log marginal likelihood of the exact process, the
        one with `kernel_` and without landmarks.
    kl_bound_ : float
        Upper bound on the Kullback-Leibler divergence of the posterior from that of the
        exact process: the difference of `evidence_bounds_`. 0 in exact mode.
    landmarks_ : Landmarks
        The landmarks with indices, errors and cost; prints as one line.
    approximation_error_ : TraceError or None
        Relative trace error tr(K − K̃)/tr K.
    n_features_in_ : int
        Number of features seen during fit.

    See Also
    --------
    KernelRidgeCV : The same mean, with cross-validated parameters.
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
            Targets. None if the source has them.
        sample_weight : float, array-like or path, default=None
            Weights of the rows. A row of weight w has 1/w times the noise variance of a
            row of weight 1; weight 0 excludes it.

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

        Before `fit`, the predictions are those of the prior.

        Parameters
        ----------
        X : array-like, list of objects, path or Source, (n_samples, n_features)
            Rows.
        return_std : bool, default=False
            Whether to return the predictive standard deviation too. As in scikit-learn,
            it includes the noise of a `WhiteKernel`, but not `alpha`.
        return_cov : bool, default=False
            Whether to return the joint covariance of the rows too.
        out : str, Path or array, default=None
            File or array to which the predictions are written, as for
            `KernelRidge.predict`.
        interval : float, default=None
            Coverage of prediction intervals to return, between 0 and 1, such as 0.95.
            They come from the residuals of rows that are left out one by one, as for
            `KernelRidge.predict`.
        noise : bool, default=False
            Whether standard deviations include `alpha` too. Where rows have their own,
            they include its mean, a geometric one if there are landmarks.

        Returns
        -------
        mean : array of shape (n_samples,) or (n_samples, n_targets)
            Predictions, or `out` if it is given.
        std : ndarray of the same shape
            Only with `return_std`, and without `out`.
        cov : ndarray of shape (n_samples, n_samples) or \
(n_samples, n_samples, n_targets)
            Only with `return_cov`.
        lower, upper : ndarrays of the shape of mean
            Ends of the intervals, in place of the predictions. Only with `interval`.
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

        A draw is the sum of two parts. The part that the landmarks explain is the same
        function for all rows. The rest, whose variance is small with enough landmarks,
        is drawn jointly for each 1,000 consecutive rows, and independently between
        these blocks. Up to 1,000 rows the joint distribution is therefore exact. With
        more rows, sort them so that neighbours are consecutive. Memory grows linearly
        with the rows.

        Parameters
        ----------
        X : array-like, list of objects, path or Source, (n_samples_X, n_features)
            Rows.
        n_samples : int, default=1
            Number of draws.
        random_state : int, RandomState instance or None, default=0
            Seed of the draws.

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
        """Return a lower bound on the log marginal likelihood of the training targets.

        It is the collapsed bound on all rows of the last `fit`, with its landmarks. In
        exact mode it is the log marginal likelihood. A loaded model has no rows, and
        returns only the value at `kernel_.theta`.

        Parameters
        ----------
        theta : array-like of shape (n_kernel_params,), default=None
            Logarithms of the hyper-parameters, in the order of `kernel_.theta`. None
            means the learnt ones.
        eval_gradient : bool, default=False
            Whether to return the gradient with respect to theta too.
        clone_kernel : bool, default=True
            Whether to leave `kernel_` unchanged. False sets its theta, which is faster.

        Returns
        -------
        log_likelihood : float
            The bound, or the log marginal likelihood in exact mode.
        log_likelihood_gradient : ndarray of shape (n_kernel_params,)
            Its gradient. Only with `eval_gradient`.
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
