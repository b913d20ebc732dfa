"""GaussianProcessRegressor: scikit-learn's estimator on landmarks.

Hyper-parameters maximise a bound on the marginal likelihood; a certificate says how far
the posterior is from the exact one.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, ClassVar, Self
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cholesky
from sklearn.base import RegressorMixin, clone
from sklearn.gaussian_process import GaussianProcessRegressor as ExactProcess
from sklearn.gaussian_process import kernels as gp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .. import _arrays as arrays
from .._random import as_seed
from .._validation import check_int, check_positive, unknown_name_error
from ..engines.blas import blas_limit_for_size
from ..kernels import Blockwise, Kernel
from ..kernels.gaussian_process import (
    MappedKernel,
    as_scikit_learn,
    from_scikit_learn,
    has_point_gradient,
    noise_and_gradient,
)
from ..landmarks import Landmarks
from ..linalg.features import LinearMap
from ..models.gaussian_process import (
    ProcessFit,
    ProcessRows,
    evidence,
    fit_process,
    learn_hyperparameters,
    newton_steps,
    target_statistics,
)
from ..models.metric import Metric
from ..models.posterior import Posterior
from ..models.ridge_solvers import ExactPosterior
from ..samplers import FixedSize, StoppingRule
from ..sources import Source
from ._base import asarray_like, exact_landmarks, uses_exact_solver
from ._learning import learn_kernel
from ._problem import (
    LEARN_MATRIX,
    KernelProblem,
    resolve_kernel,
    source_from_rows,
    warn_about_landmarks,
)
from ._progress import fit_context, method_of_rows, warn, with_callbacks
from ._ridge import BaseKernelRidge, RidgeModel

#: Landmarks that hyper-parameters are learnt with where their number is not given.
DEFAULT_LANDMARKS = 1000
#: The number of landmarks that max_kl takes is found to one part in so many.
PREFIX_SHARE = 16
#: Points whose residuals are drawn together by `sample_y`.
SAMPLE_BLOCK = 1000


#: Rows of the last fit, for the likelihood at other hyper-parameters. They are no part
#: of a model that is saved.
_TRAINING_ROWS: WeakKeyDictionary[Any, ProcessRows] = WeakKeyDictionary()
#: Fitted attributes with an entry per row, and what predictions are scaled back by.
EXACT_ATTRIBUTES = ("y_train_", "L_", "_y_train_mean", "_y_train_std")


class GaussianProcessRegressor(RegressorMixin, BaseKernelRidge):
    """Gaussian-process regression on landmarks.

    A drop-in for `sklearn.gaussian_process.GaussianProcessRegressor`, in O(n·s²) time
    with s landmarks and memory that does not grow with n. With no more rows than
    `n_landmarks`, scikit-learn's own class does the work, and the answer is exact.

    The hyper-parameters maximise a lower bound on the log marginal likelihood, the
    collapsed bound of Titsias (2009): on the exact likelihood of 400 rows to begin
    with, then on 8 rows per landmark (2,000 to 16,000), with landmarks selected again
    in between, and by up to three steps on all rows.

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
        Further random starts of the optimiser.
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
        "matrix" learns a linear map of the features first, as gamma="matrix" of
        `KernelRidge` does; the kernel is then one of mapped rows.
    optimize_landmarks : bool, default=False
        Whether landmarks move along the gradient of the bound, together with the
        hyper-parameters: at most 60 steps on 24 rows per landmark. Kept only if the
        bound on all rows rises. For kernels of a distance, dot products, and what they
        are combined to.
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
    _bool_params: ClassVar[tuple[str, ...]] = ("optimize_landmarks",)
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
            exact = self._scikit_learn()
            exact._validate_params()
            if self.metric not in (None, "matrix"):
                raise unknown_name_error("metric", self.metric, ["matrix"])
            X = self._validate_rows(X, reset=True)
            targets, single = self._validate_targets(X, y)
            source = source_from_rows(X)
            is_weighted = sample_weight is not None or source.is_weighted
            if (
                uses_exact_solver(self._stopping_rule(), self.sampler, source)
                and not is_weighted
                and self.metric is None
                and _has_gradient(exact, source)
            ):
                self._fit_exact(exact, X, targets[:, 0] if single else targets, source)
                return self
            kernel = clone(exact.kernel) if exact.kernel is not None else _default()
            self._check_noise(kernel)
            problem = self._resolve_problem(
                X, targets, sample_weight, kernel=from_scikit_learn(kernel)
            )
            rows = self._process_rows(problem)
            kernel = self._learn_metric(problem, kernel)
            kernel, landmarks = self._learn(problem, rows, kernel)
            fit = self._fit_process(problem, rows, kernel, landmarks)
            if self.max_kl is not None:
                landmarks, fit = self._grow(problem, rows, kernel, landmarks, fit)
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

    def _fit_process(
        self, problem: KernelProblem, rows: ProcessRows, kernel: Any, landmarks: Any
    ) -> ProcessFit:
        source, noise = self._source_and_noise(problem, rows, kernel)
        rows = replace(rows, source=source)
        return fit_process(landmarks, rows, noise, seed=as_seed(self.random_state))

    def _grow(
        self,
        problem: KernelProblem,
        rows: ProcessRows,
        kernel: Any,
        landmarks: Landmarks,
        fit: ProcessFit,
    ) -> tuple[Landmarks, ProcessFit]:
        """As few landmarks as reach max_kl: twice as many each time, then a prefix.

        `landmarks` are as many as there were to learn with.
        """
        limit = self._max_landmarks() or problem.source.n_rows
        max_kl = float(self.max_kl)  # type: ignore[arg-type]
        while fit.kl_bound > max_kl and len(landmarks) < limit:
            size = min(2 * len(landmarks), limit)
            landmarks = self._select(problem, rows, kernel, FixedSize(size))
            fit = self._fit_process(problem, rows, kernel, landmarks)
            if landmarks.rank < size:  # nothing is left of K
                break
        if fit.kl_bound > max_kl:
            warn(
                f"max_kl={max_kl:g} was not reached: with {len(landmarks)} "
                f"landmarks the bound is {fit.kl_bound:.3g}. Raise n_landmarks, or "
                "allow a larger divergence."
            )
            return landmarks, fit
        too_few, enough = 0, len(landmarks)
        while enough - too_few > max(1, enough // PREFIX_SHARE):
            size = (too_few + enough) // 2
            trial = self._fit_process(problem, rows, kernel, landmarks[:size])
            if trial.kl_bound <= max_kl:
                enough, fit = size, trial
            else:
                too_few = size
        return landmarks[:enough], fit

    def _scikit_learn(self) -> ExactProcess:
        """scikit-learn's estimator with the same parameters."""
        kernel = self.kernel
        if isinstance(kernel, Kernel):
            kernel = as_scikit_learn(kernel)
        return ExactProcess(
            kernel,
            alpha=self.alpha,
            optimizer=self.optimizer,
            n_restarts_optimizer=self.n_restarts_optimizer,
            normalize_y=self.normalize_y,
            copy_X_train=self.copy_X_train,
            n_targets=self.n_targets,
            random_state=self.random_state,
        )

    def _validate_rows(self, X: Any, *, reset: bool) -> Any:
        X = super()._validate_rows(X, reset=reset)
        if sp.issparse(X):
            raise TypeError(
                "Sparse data was passed for X, but dense data is required. Use "
                "'.toarray()' to convert it to a dense array."
            )
        return X

    def _check_noise(self, kernel: Any) -> None:
        alpha = np.asarray(self.alpha, dtype=np.float64)
        if not np.all(alpha + noise_and_gradient(kernel)[0] > 0):
            raise ValueError(
                "alpha=0 without a WhiteKernel is a process without noise, which "
                "landmarks cannot approximate. Add WhiteKernel() to the kernel, or "
                "set alpha > 0."
            )

    def _fit_exact(
        self, exact: ExactProcess, X: Any, targets: Any, source: Source
    ) -> None:
        """By scikit-learn's own class."""
        n = source.n_rows
        X = source.rows(0, n) if isinstance(X, Source) else X
        with blas_limit_for_size(n):
            exact.fit(X, np.asarray(targets[:n]))
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

    def _process_rows(self, problem: KernelProblem) -> ProcessRows:
        """Rows with targets, their scale and noise."""
        source, engine = problem.source, problem.engine
        t = source.targets.shape[1]
        if self.n_targets is not None and t != self.n_targets:
            raise ValueError(
                "The number of targets seen in `y` is different from the parameter "
                f"`n_targets`. Got {t} != {self.n_targets}."
            )
        mean, scale = np.zeros(t), np.ones(t)
        if self.normalize_y:
            mean, scale = target_statistics(source, engine)
        alpha = np.asarray(self.alpha, dtype=np.float64)
        if alpha.size == 1:
            return ProcessRows(source, engine, mean, scale, float(alpha.ravel()[0]))
        if alpha.shape != (source.n_rows,):
            raise ValueError(
                "alpha must be a scalar or an array with same number of entries as y. "
                f"({len(alpha)} != {source.n_rows})"
            )
        Y = np.asarray(source.targets[: source.n_rows])
        source = source.replace(targets=np.column_stack([Y, alpha]))
        return ProcessRows(source, engine, mean, scale, has_alpha=True)

    def _source_and_noise(
        self, problem: KernelProblem, rows: ProcessRows, kernel: Any
    ) -> tuple[Source, float]:
        """Rows weighted by the precision of their noise, in units of one over it."""
        white = noise_and_gradient(kernel)[0]
        if not rows.has_alpha:
            return problem.source, rows.alpha + white
        source, alpha = problem.source, np.asarray(self.alpha, dtype=np.float64)
        variance = alpha + white
        noise = float(np.exp(np.mean(np.log(variance))))
        return source.replace(weights=source.weights * (noise / variance)), noise

    def _learn_metric(self, problem: KernelProblem, kernel: Any) -> Any:
        """The kernel after a linear map that is learnt, if that is asked for."""
        if self.metric is None:
            return kernel
        source, d = problem.source, problem.source.n_features
        if d is None:
            raise ValueError("metric='matrix' is for rows of numbers; X holds objects.")
        name = _family(kernel)
        start = resolve_kernel(
            name, source, type(self).__name__, self.n_jobs, gamma="scale"
        )
        learned = learn_kernel(
            replace(problem, kernel=start),
            name,
            LEARN_MATRIX,
            n_landmarks=self._max_landmarks(),
            intercept=True,
            seed=as_seed(self.random_state),
            moves_landmarks=False,
        )
        T = Metric.of(learned.kernel, d).transform
        # Kernels with a length scale per feature have as many after the map.
        return MappedKernel(kernel, np.pad(T, ((0, 0), (0, d - T.shape[1]))))

    def _learn(
        self, problem: KernelProblem, rows: ProcessRows, kernel: Any
    ) -> tuple[Any, Landmarks]:
        """The kernel with its hyper-parameters, and landmarks for it."""
        size = self._max_landmarks() or DEFAULT_LANDMARKS
        seed = as_seed(self.random_state)

        def on_part(kernel: Any, part: ProcessRows) -> Any:
            if not isinstance(self.sampler, str):
                return self._select(problem, rows, kernel).points
            translated = from_scikit_learn(kernel)
            source = part.source.replace(targets=None)
            few = replace(problem, kernel=translated, source=source, engine=part.engine)
            return few.select_landmarks(
                FixedSize(size), self.sampler, random_state=seed
            ).points

        if self.optimizer is None or not kernel.n_dims:
            return kernel, self._select(problem, rows, kernel)
        self._check_movable(kernel)
        optimum = learn_hyperparameters(
            kernel,
            rows,
            on_part,
            n_landmarks=size,
            optimizer=self.optimizer if callable(self.optimizer) else None,
            restarts=self._restarts(kernel),
            move=self.optimize_landmarks,
            seed=seed,
        )
        kernel = optimum.kernel
        landmarks = self._select(problem, rows, kernel)
        if self.optimize_landmarks:
            moved = evidence(kernel, optimum.points, rows, gradient=False)
            given = evidence(kernel, landmarks.points, rows, gradient=False)
            if moved.value > given.value:
                landmarks = _moved(landmarks, optimum.points)
        elif not callable(self.optimizer):
            kernel = newton_steps(optimum, landmarks.points, rows)
            if not np.array_equal(kernel.theta, optimum.kernel.theta):
                landmarks = replace(landmarks, kernel=from_scikit_learn(kernel))
        kernel._check_bounds_params()
        return kernel, landmarks

    def _select(
        self,
        problem: KernelProblem,
        rows: ProcessRows,
        kernel: Any,
        rule: StoppingRule | None = None,
    ) -> Landmarks:
        """Landmarks of all rows, weighted by the precision of their noise."""
        source, _ = self._source_and_noise(problem, rows, kernel)
        source = source.replace(targets=None)
        weighted = replace(problem, kernel=from_scikit_learn(kernel), source=source)
        return weighted.select_landmarks(
            rule or self._stopping_rule(),
            self.sampler,
            random_state=as_seed(self.random_state),
            nested=True,
        )

    def _check_movable(self, kernel: Any) -> None:
        if self.optimize_landmarks and not has_point_gradient(kernel):
            raise ValueError(
                "optimize_landmarks=True moves landmarks along the gradient of the "
                f"kernel, which is not known for kernel={kernel}. Use RBF, Matern, "
                "RationalQuadratic or DotProduct, or omit optimize_landmarks."
            )

    def _restarts(self, kernel: Any) -> list[np.ndarray]:
        """Random hyper-parameters, log-uniform within their bounds."""
        if not self.n_restarts_optimizer:
            return []
        if not np.isfinite(kernel.bounds).all():
            raise ValueError(
                "Multiple optimizer restarts (n_restarts_optimizer>0) requires that "
                "all bounds are finite."
            )
        rng = check_random_state(self.random_state)
        low, high = kernel.bounds.T
        return [rng.uniform(low, high) for _ in range(self.n_restarts_optimizer)]

    def _set_process(
        self, rows: ProcessRows, kernel: Any, landmarks: Landmarks, fit: ProcessFit
    ) -> None:
        landmarks = landmarks.with_error(fit.ridge.error)
        if landmarks.max_trace_error is not None:
            warn_about_landmarks(landmarks)
        self.landmarks_, self.approximation_error_ = landmarks, landmarks.error
        self._exact, _TRAINING_ROWS[self] = None, rows
        self.kernel_, self.X_train_ = kernel, landmarks.points
        white, ravel = noise_and_gradient(kernel)[0], len(rows.mean) == 1
        self._model = RidgeModel(fit.ridge.map, ravel, fit.posterior, None, white)
        dual = fit.ridge.map.dual
        self.dual_coef_ = asarray_like(landmarks, dual[:, 0] if ravel else dual)
        dual = dual / rows.scale
        self.alpha_ = asarray_like(landmarks, dual[:, 0] if ravel else dual)
        self.log_marginal_likelihood_value_ = fit.evidence
        self.evidence_bounds_ = fit.bounds
        self.kl_bound_, self._calibrated = fit.kl_bound, fit.calibrated
        per_row = fit.sums.residual_trace / fit.sums.n_rows
        if per_row > 1:
            warn(
                f"The residual of the landmarks exceeds the noise ({per_row:.3g} "
                "times): the posterior differs much from the exact one. Use more "
                "landmarks, add WhiteKernel() to the kernel, or raise alpha."
            )

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
            Whether deviations include alpha, of each row on average, too.

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
        exact = self._exact if self._is_fitted else self._scikit_learn()
        if exact is not None and interval is None:
            X = self._rows_in_memory(X)
            with blas_limit_for_size(self.n_landmarks or 0):
                found = exact.predict(X, return_std=return_std, return_cov=return_cov)
            dtype = self.landmarks_.kernel.dtype(X) if self._is_fitted else np.float64
            parts = found if isinstance(found, tuple) else (found,)
            if return_std and noise:
                scale = exact._y_train_std if self._is_fitted else 1.0
                variance = parts[1] ** 2 + np.mean(self.alpha) * np.square(scale)
                parts = parts[0], np.sqrt(variance)
            cast = tuple(part.astype(dtype, copy=False) for part in parts)
            return cast if isinstance(found, tuple) else cast[0]
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
        mean, scale = np.atleast_1d(exact._y_train_mean, exact._y_train_std)
        dual = np.reshape(self.dual_coef_, (-1, len(mean)))
        variance = np.asarray(exact.alpha) + noise_and_gradient(self.kernel_)[0]
        noise, weights = float(np.mean(variance)), None
        if variance.ndim:
            weights = noise / variance
        posterior = ExactPosterior(
            exact.X_train_,
            self.landmarks_.kernel,
            weights,
            np.full(len(mean), noise),
            scale**2,
        )
        return RidgeModel(LinearMap(dual, mean, False), len(mean) == 1, posterior)

    def _rows_in_memory(self, X: Any) -> Any:
        X = self._validate_rows(X, reset=False)
        return X.rows(0, X.n_rows) if isinstance(X, Source) else X

    @property
    def _is_fitted(self) -> bool:
        return "kernel_" in vars(self)

    def _factors(self, X: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        """Rows, and B, Q with covariance K − BBᵀ + QQᵀ of unit scale."""
        model = self._model
        landmarks, source, _ = self._resolve_new_rows(X, self.dual_coef_, "predict")
        X = arrays.widen(source.rows(0, source.n_rows))
        K = arrays.to_host_float64(landmarks.columns(wide=True)(X))
        posterior = model.posterior
        assert isinstance(posterior, Posterior)
        alpha = float(posterior.alphas[0])
        return (
            X,
            K @ posterior.root,
            np.sqrt(alpha) * (K @ posterior.regularized_root(alpha)),
        )

    def _predict_with_covariance(self, X: Any) -> tuple[Any, np.ndarray]:
        mean, model = self._predict(X), self._model
        rows, B, Q = self._factors(X)
        cov = self.landmarks_.kernel.gram(rows) - B @ B.T + Q @ Q.T
        cov[np.diag_indices_from(cov)] += model.white
        scales = model.require_posterior().scales
        return mean, cov * scales[0] if model.ravel else cov[..., None] * scales

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Draw functions from the posterior, and evaluate them at rows.

        A draw is zᵀu + e: u from the posterior of the features, the same for all rows,
        and e from what they leave of the kernel, jointly for every 1,000 rows and
        independently between them. Memory grows linearly with the rows.

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
        exact = self._exact if self._is_fitted else self._scikit_learn()
        if exact is not None:
            return exact.sample_y(self._rows_in_memory(X), n_samples, random_state)
        rng, model = check_random_state(random_state), self._model
        mean = np.asarray(arrays.to_host_float64(self._predict(X)))
        mean = mean[:, None] if model.ravel else mean
        t, (rows, B, Q) = mean.shape[1], self._factors(X)
        u = rng.standard_normal((Q.shape[1], t * n_samples))
        draws, kernel = Q @ u, self.landmarks_.kernel
        for start in range(0, len(mean), SAMPLE_BLOCK):
            part = slice(start, start + SAMPLE_BLOCK)
            stop = min(start + SAMPLE_BLOCK, len(mean))
            E = kernel.gram(arrays.slice_rows(rows, start, stop)) - B[part] @ B[part].T
            E[np.diag_indices_from(E)] += model.white
            draws[part] += _draw(E, t * n_samples, rng)
        draws = draws.reshape(len(mean), t, n_samples)
        draws *= np.sqrt(model.require_posterior().scales)[:, None]
        draws += mean[:, :, None]
        return draws[:, 0] if model.ravel else draws

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


def _family(kernel: Any) -> str:
    """The name of the kernel of a distance that is part of a kernel; else "rbf"."""
    parts = [kernel, *kernel.get_params(deep=True).values()]
    nus = [part.nu for part in parts if type(part) is gp.Matern]
    names = {0.5: "matern12", 1.5: "matern32", 2.5: "matern52"}
    return names.get(nus[0], "rbf") if nus else "rbf"


def _default() -> Any:
    return gp.ConstantKernel() * gp.RBF()


def _has_gradient(exact: ExactProcess, source: Source) -> bool:
    """Whether scikit-learn's own class can optimise its kernel."""
    if exact.kernel is None or exact.optimizer is None:
        return True
    try:
        exact.kernel(source.rows(0, 1), eval_gradient=True)
    except (TypeError, NotImplementedError):
        return False
    return True


def _moved(landmarks: Landmarks, points: np.ndarray) -> Landmarks:
    """Points that are no rows, in place of those that were selected."""
    given = landmarks.points
    return Landmarks(
        arrays.from_host(points, given, given.dtype),
        landmarks.kernel,
        f"{landmarks.sampler}, optimized",
        landmarks.n_rows,
        n_kernel_evaluations=landmarks.n_kernel_evaluations,
        seconds=landmarks.seconds,
        n_passes=landmarks.n_passes,
    )


def _draw(covariance: np.ndarray, n_draws: int, rng: Any) -> np.ndarray:
    """(n, n_draws) with this covariance, which may be singular."""
    normal = rng.standard_normal((len(covariance), n_draws))
    try:
        return cholesky(covariance, lower=True) @ normal
    except LinAlgError:
        values, vectors = np.linalg.eigh(covariance)
        return (vectors * np.sqrt(np.maximum(values, 0.0))) @ normal
