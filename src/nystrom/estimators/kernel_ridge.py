"""KernelRidge: scikit-learn's estimator on landmarks, with direct, cg, full and exact
solvers, a risk bound (epsilon) and partial_fit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge as ExactKernelRidge

from .. import _arrays as arrays
from .._precision import ALIKE, least_resolved_alpha
from .._random import as_seed
from .._validation import check_finite
from ..engines import Engine
from ..engines.base import progress_parts
from ..engines.blas import blas_limit_for_size
from ..kernels import Kernel, Precomputed, PrecomputedCross
from ..landmarks import Landmarks
from ..linalg.cross_kernel import fetch_rows
from ..linalg.errors import TraceError
from ..linalg.factor import factorize
from ..linalg.operator import estimate_trace_error
from ..models.linear_map import LinearMap
from ..models.posterior import Posterior
from ..models.ridge import RiskBound
from ..models.ridge_full import (
    FullPosterior,
    FullRidge,
    not_converged_message,
    not_definite_message,
)
from ..models.ridge_solvers import fit_ridge
from ..models.streaming import StreamingMoments
from ..samplers import SpectralTolerance, StoppingRule, as_sampler
from ..samplers.cost import forecast
from ..sources import CachedRows, Source
from ..sources.output import Output
from ._base import (
    CallbackTask,
    ScoreMixin,
    as_2d_targets,
    drop_kernel_matrix,
    exact_landmarks,
    fit_context,
    update_stream,
    uses_exact_solver,
    with_callbacks,
)
from ._dask import lazy_for_dask
from ._inputs import stopping_rule_from_params, warn, warn_alike, warn_of_small_alpha
from ._progress import with_progress_bar
from ._ridge import (
    RIDGE_SOLVERS,
    BaseKernelRidge,
    RidgeModel,
    check_alphas,
    check_positive_alphas,
    check_solver,
)

#: With no limit on the number of landmarks, say so when more than this are needed.
WARN_ABOVE_LANDMARKS = 5000


def stopping_rule_for_risk(estimator: Any, alpha: float) -> StoppingRule:
    """How many landmarks, for ridge regression with `alpha`, the least there is."""
    epsilon = estimator.epsilon
    if epsilon is None:
        return estimator._stopping_rule()
    is_number = isinstance(epsilon, (int, float, np.integer, np.floating))
    if not is_number or isinstance(epsilon, bool) or not 0 < epsilon < 1:
        raise ValueError(
            f"epsilon={epsilon!r} is not allowed; the bound 1 + 3·epsilon on the "
            "risk is proven for 0 < epsilon < 1."
        )
    for name in ("max_spectral_error", "max_trace_error"):
        if getattr(estimator, name) is not None:
            raise ValueError(
                f"epsilon={epsilon!r} and {name}={getattr(estimator, name)!r} both say "
                "how many landmarks there are to be; give one of them."
            )
    if alpha <= 0:
        raise ValueError(
            f"epsilon={epsilon!r} needs alpha > 0: landmarks are chosen for "
            f"‖K − K̃‖₂ ≤ epsilon·alpha, and alpha is {alpha:g}."
        )
    stopping_rule = stopping_rule_from_params(
        estimator.n_landmarks,
        estimator.sampler,
        max_spectral_error=float(epsilon * alpha),
    )
    as_sampler(estimator.sampler, stopping_rule)
    return stopping_rule


def select_landmarks_for_risk(
    estimator: Any,
    kernel: Kernel,
    source: Source,
    stopping_rule: StoppingRule,
    engine: Engine,
    passes_after: float = 1.0,
) -> Landmarks:
    """Landmarks; with epsilon none where it clearly takes more than allowed."""
    if estimator.epsilon is not None:
        assert isinstance(stopping_rule, SpectralTolerance)
        _check_forecast_size(estimator, kernel, source, stopping_rule, engine)
    landmarks = estimator._select_landmarks(
        kernel,
        source,
        engine,
        stopping_rule,
        passes_after=passes_after,
        delta=estimator.delta,
    )
    if estimator.epsilon is not None and landmarks.n_requested is not None:
        assert isinstance(stopping_rule, SpectralTolerance)
        d_eff = landmarks.effective_dimension or math.nan
        raise _too_many_landmarks_error(
            estimator.epsilon, stopping_rule, f"{landmarks.n_requested}", d_eff
        )
    return landmarks


def _check_forecast_size(
    estimator: Any,
    kernel: Kernel,
    source: Source,
    stopping_rule: SpectralTolerance,
    engine: Engine,
) -> None:
    """Say that epsilon takes more than is allowed, before the long work begins."""
    uncapped_rule = SpectralTolerance(stopping_rule.max_spectral_error)
    estimate = forecast(kernel, source, uncapped_rule, estimator.delta, engine)
    size, d_eff = estimate.n_landmarks, estimate.effective_dimension
    # The estimate may be off; only what is clearly too many is refused by it.
    if stopping_rule.at_most is not None and size > 3 * stopping_rule.at_most:
        raise _too_many_landmarks_error(
            estimator.epsilon, stopping_rule, f"about {size}", d_eff
        )
    if stopping_rule.at_most is None and size > WARN_ABOVE_LANDMARKS:
        alpha = stopping_rule.max_spectral_error / estimator.epsilon
        warn(
            f"epsilon={estimator.epsilon:g} at alpha={alpha:g} takes about {size} "
            f"landmarks (effective dimension {d_eff:.0f}) and {estimate.seconds:.2g} "
            "s or more, which is long work; n_landmarks sets a limit."
        )


def _too_many_landmarks_error(
    epsilon: float, stopping_rule: SpectralTolerance, n_needed: str, d_eff: float
) -> ValueError:
    alpha = stopping_rule.max_spectral_error / epsilon
    return ValueError(
        f"epsilon={epsilon:g} at alpha={alpha:g} takes {n_needed} landmarks (effective "
        f"dimension {d_eff:.0f} at epsilon·alpha), and "
        f"n_landmarks={stopping_rule.at_most} "
        "allows no "
        "more. Raise n_landmarks or pass None, allow a larger epsilon, or leave "
        "epsilon out to use n_landmarks as they are."
    )


#: A stream's landmarks are changed where that leaves so many times less of K: to carry
#: sums over loses a little.
MIN_ERROR_REDUCTION = 1.1


def partial_fit_ridge(
    estimator: Any, X: Any, y: Any, sample_weight: Any, task: CallbackTask
) -> None:
    """Fit to all rows so far, and a batch."""
    _check_no_risk_bound(estimator)
    moments = estimator.__dict__.get("_running")
    if moments is None and estimator.__dict__.pop("landmarks_", None) is not None:
        warn(
            "This KernelRidge was fitted by fit, which keeps no sums to go on "
            "from: the stream begins with this batch."
        )
    previous_landmarks = estimator.__dict__.get("landmarks_")
    X, targets, ravel = estimator._validate_rows_and_targets(
        X, y, reset=previous_landmarks is None
    )
    targets = targets[:]  # a batch is held
    _check_same_target_shape(estimator, targets, ravel, moments)
    alphas = check_alphas(estimator.alpha, targets.shape[1])
    alphas += estimator._white_noise()
    landmarks, batch, engine = update_stream(
        estimator,
        X,
        task,
        stopping_rule_for_risk(estimator, float(alphas.min())),
        targets=targets,
        sample_weight=sample_weight,
        steady=MIN_ERROR_REDUCTION,
    )
    if moments is None:
        moments = StreamingMoments.from_batch(landmarks, batch, engine)
    else:
        moments = moments.update(previous_landmarks, landmarks, batch, engine)
    fit = moments.solve(landmarks, alphas, fit_intercept=estimator.fit_intercept)
    # Nothing is proven of sums that are carried over, as little as of weights.
    estimator._set_fit(landmarks, fit, alphas, ravel=ravel, weighted=True)
    estimator._running, estimator.residual_ = moments, None


def _check_no_risk_bound(estimator: Any) -> None:
    if estimator.epsilon is not None or estimator.delta is not None:
        raise ValueError(
            "partial_fit proves nothing of the risk: leave epsilon and delta out, "
            "and give n_landmarks, max_spectral_error or max_trace_error."
        )


def _check_same_target_shape(
    estimator: Any, targets: Any, ravel: bool, moments: StreamingMoments | None
) -> None:
    if moments is None:
        return
    previous_shape = (
        "(n,)" if estimator._model.ravel else f"(n, {len(moments.target_shift)})"
    )
    shape = "(n,)" if ravel else f"(n, {targets.shape[1]})"
    if previous_shape != shape:
        raise ValueError(
            f"y has shape {shape}, but that of the batches before was {previous_shape}."
        )


#: What follows the choice of landmarks, in passes with all of them that make Z.
FULL_SOLVER_PASSES = 8.0


class FullSolverMixin(BaseKernelRidge):
    """A ridge estimator that may have a coefficient for every row."""

    residual_: float | None
    _full: FullPosterior

    def _fit_full(
        self,
        kernel: Kernel,
        source: Source,
        stopping_rule: StoppingRule,
        engine: Engine,
        alphas: np.ndarray,
        ravel: bool,
    ) -> None:
        """The solution on all rows, which the landmarks precondition."""
        if kernel.traits.psd is False:
            raise ValueError(not_definite_message(kernel))
        landmarks = select_landmarks_for_risk(
            self, kernel, source, stopping_rule, engine, FULL_SOLVER_PASSES
        )
        if landmarks.indefinite:
            raise ValueError(not_definite_message(kernel))
        kept = np.flatnonzero(source.weights)
        weights = source.weights_of(kept) if source.is_weighted else None
        Y = source.targets[: source.n_rows][kept]
        points = fetch_rows(source, kept, engine)
        like = source.original.rows(0, 1)
        points_like_input = (
            points if source.original is source else arrays.to_device_of(points, like)
        )
        rows = Landmarks(points_like_input, kernel, "full", source.n_rows, indices=kept)
        preconditioner_stage, cg_stage, _ = progress_parts(
            engine.progress, 1.0, 5.0, 0.1
        )
        with blas_limit_for_size(len(landmarks)):
            with preconditioner_stage:
                problem = FullRidge(
                    landmarks,
                    CachedRows(points, weights),
                    alphas,
                    fit_intercept=self.fit_intercept,
                    engine=engine,
                )
            with cg_stage:
                fit = problem.fit(Y)
        if not fit.converged:
            warn(not_converged_message(fit), ConvergenceWarning)
        error = estimate_trace_error(landmarks, source, engine)
        warn_alike(self._set_landmarks(landmarks, error))
        self.approximation_error_ = TraceError.from_sums(0.0, 1.0, source.n_rows)
        self.solver_, self.n_iter_ = "full", fit.n_iterations
        self.residual_ = fit.residual
        self.risk_bound_ = RiskBound(1.0, 1.0, "being exact")
        mapping = LinearMap.with_sufficient_precision(
            rows, source, fit.dual, fit.intercept
        )
        model = RidgeModel(
            mapping, ravel, None, drop_kernel_matrix(rows), self._white_noise()
        )
        self._set_model(rows, model)
        self._full = FullPosterior(weights, alphas, fit.scales)

    def _basis_landmarks(self) -> Landmarks:
        rows = self._model.rows
        return self.landmarks_ if rows is None else rows

    def _predict_with_std(
        self,
        landmarks: Landmarks,
        source: Source,
        engine: Engine,
        noise: bool,
        output: Output,
    ) -> Any:
        if self.solver_ != "full":
            return super()._predict_with_std(landmarks, source, engine, noise, output)
        mean = self._model.map(landmarks, source, engine)
        std = self._predictive_std(landmarks, source, engine, noise=noise)
        both = np.hstack([arrays.to_host_float64(mean), std])
        return output.store(
            both.astype(arrays.numpy_float_dtype(mean), copy=False), mean
        )

    def _predictive_std(
        self, landmarks: Landmarks, source: Source, engine: Engine, *, noise: bool
    ) -> np.ndarray:
        if self.solver_ != "full":
            return super()._predictive_std(landmarks, source, engine, noise=noise)
        if isinstance(landmarks.kernel, (Precomputed, PrecomputedCross)):
            raise ValueError(
                "return_std=True after solver='full' needs the kernel matrix of the "
                "training rows, which a model with kernel='precomputed' does not keep; "
                "fit with solver='direct'."
            )
        posterior = self._full
        problem = FullRidge(
            self.landmarks_,
            CachedRows(landmarks.points, posterior.weights),
            posterior.alphas,
            fit_intercept=self.fit_intercept,
            engine=engine,
        )
        return posterior.deviations(
            problem, source, noise=noise, white=self._model.white
        )


@dataclass(frozen=True, eq=False)
class ExactRidge:
    """What deviations need where every row is a landmark."""

    y: np.ndarray  # (n, t)
    weights: np.ndarray | None
    alphas: np.ndarray

    def posterior(self, K: np.ndarray, dual: np.ndarray) -> Posterior:
        """From the whole kernel matrix."""
        check_positive_alphas(self.alphas)
        factor = factorize(K)
        Z = K @ factor.root
        w = np.ones(len(K)) if self.weights is None else self.weights
        squares = np.maximum(np.einsum("nt,nt->t", self.y, dual), 0.0)
        return Posterior(
            root=factor.root,
            gram=Z.T @ (w[:, None] * Z),
            center=np.zeros(len(K)),
            own=0.0,
            alphas=self.alphas,
            scales=squares / max(w.sum(), np.count_nonzero(w)),
        )


class ExactSolverMixin(BaseKernelRidge):
    """A ridge estimator all of whose rows may be landmarks."""

    _exact: ExactRidge

    def _fit_exact(
        self,
        X: Any,
        kernel: Kernel,
        source: Source,
        alphas: np.ndarray,
        ravel: bool,
    ) -> None:
        """scikit-learn's own solution, on our kernel matrix."""
        landmarks = exact_landmarks(kernel, source)
        sklearn_ridge = ExactKernelRidge(alpha=alphas, kernel="precomputed")
        weights = source.weights if source.is_weighted else None
        Y = source.targets[: source.n_rows]
        with blas_limit_for_size(source.n_rows):
            K = kernel.gram(landmarks.points)
            check_finite(K)
            alike = len(K) > 1 and 0 < K.max() * (1 - ALIKE) <= K.min()
            warn_alike(landmarks, bool(alike))
            least = least_resolved_alpha(float(np.trace(K)))
            if 0 < alphas.min() < least and np.linalg.eigvalsh(K)[0] < least:
                warn_of_small_alpha(float(alphas.min()), least)
            dual = as_2d_targets(sklearn_ridge.fit(K, Y, weights).dual_coef_)
        self.landmarks_ = drop_kernel_matrix(landmarks)
        self.approximation_error_ = landmarks.error
        self._set_gamma(landmarks)
        self.solver_, self.n_iter_ = "exact", None
        self.risk_bound_ = RiskBound(1.0, 1.0, "being exact")
        wide = landmarks.columns().narrow
        mapping = LinearMap(dual, np.zeros(len(alphas)), wide)
        model = RidgeModel(mapping, ravel, None, white=self._white_noise())
        self._set_model(landmarks, model)
        if isinstance(X, Source):
            # A source may stand for a file that is gone; the rows of K are K itself.
            X = kernel.matrix if isinstance(kernel, Precomputed) else landmarks.points
        self.X_fit_ = X
        self._exact = ExactRidge(y=Y, weights=weights, alphas=alphas)

    def _require_posterior(self) -> Posterior:
        if self.solver_ == "exact":
            # Only who asks for deviations pays for the eigendecomposition.
            return self._exact.posterior(self._exact_matrix(), self._model.map.dual)
        return super()._require_posterior()

    def _exact_matrix(self) -> np.ndarray:
        if isinstance(self.landmarks_.kernel, Precomputed):
            K = np.asarray(self.X_fit_, dtype=np.float64)
            return (K + K.T) / 2
        return self.landmarks_.kernel.gram(self.landmarks_.points)


#: What follows the choice of landmarks, in passes with all of them that make Z.
CG_PASSES = 8.0


class KernelRidge(ScoreMixin, RegressorMixin, ExactSolverMixin, FullSolverMixin):
    """Kernel ridge regression on landmarks.

    A drop-in for `sklearn.kernel_ridge.KernelRidge`, in O(n·s²) time with s landmarks
    and memory that does not grow with n. With no more rows than `n_landmarks`,
    scikit-learn's own class does the work, and the answer is exact.

    Parameters
    ----------
    alpha : float or array-like of shape (n_targets,), default=1
        The ridge, one or one per target; 0 is least squares on the landmarks.
    kernel : str, callable or Kernel, default="linear"
        As for `Nystroem`. A `WhiteKernel` in a sum of scikit-learn's Gaussian-process
        kernels is noise of the targets, and added to alpha.
    gamma : float, sequence of float, str or None, default=None
        The width of the kernel, one or one per feature. From the rows: "scale" and
        "auto", as `SVC` has them, or "median". From rows and targets: "learn", one
        width, or "ard", one per feature, by the likelihood of 1000 rows'
        targets under a model of at most 250 landmarks; never less likely than "scale"
        and "median" there. None is scikit-learn's default.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1
        Zero coefficient of polynomial and sigmoid kernels.
    kernel_params : dict, default=None
        Further parameters of the kernel.
    n_landmarks : int or None, default=1000
        How many landmarks. With `epsilon`, `max_spectral_error` or
        `max_trace_error`, the most there may be; None for no limit.
    sampler : str, callable or array, default="auto"
        How landmarks are chosen, as for `Nystroem`.
    solver : {"auto", "direct", "cg", "full"}, default="auto"
        "direct" sums the Gram matrix of the features; "cg" makes a pass over the rows
        per step instead, which pays with many landmarks; "auto" counts operations.
        "full" solves (K + alpha·I)x = y on all n rows, to a relative residual of 1e-6,
        where landmarks are not enough: conjugate gradients in which the landmarks
        precondition, n²/2 kernel values per step unless K fits scikit-learn's
        `working_memory`. Rows of a file or of Dask are read once, and all work is done
        in this process; they are kept with the model, which makes n evaluations per
        prediction.
    epsilon : float, default=None
        As many landmarks as take the risk to at most 1 + 3·epsilon times that of exact
        kernel ridge regression (‖K − K̃‖₂ ≤ epsilon·alpha). Proven with `delta`.
    delta : float, default=None
        Failure probability for `epsilon` or `max_spectral_error`; implies the theory's
        constants.
    max_spectral_error : float, default=None
        λ > 0: as many landmarks as ‖K − K̃‖₂ ≤ λ takes.
    max_trace_error : float, default=None
        As many landmarks as tr(K − K̃) ≤ max_trace_error · tr K takes.
    fit_intercept : bool, default=False
        Whether to fit a constant, which the ridge does not shrink.
    random_state : int, RandomState instance or None, default=None
        The same int gives the same landmarks for every storage and number of threads.
    n_jobs : int, default=None
        Threads. None: as many as BLAS may use; -1: all cores.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    dual_coef_ : array of shape (n_landmarks,) or (n_landmarks, n_targets)
        `k(X, X_fit_) @ dual_coef_ + intercept_` predicts.
    X_fit_ : array, CSR matrix or list
        The landmarks; all rows in exact mode, and after "full" all rows of weight > 0.
        For kernel="precomputed" the landmarks' column numbers.
    intercept_ : float or ndarray of shape (n_targets,)
        The constant; 0.0 without one.
    landmarks_ : Landmarks
        All that is known about the landmarks; prints as one line. After "full" those
        that precondition, with the error of K̃ in `landmarks_.error`.
    approximation_error_ : TraceError or None
        tr(K − K̃)/tr K: exact after "direct", estimated on about 1024 rows after "cg",
        0 after "full"; its `at_most` is True where rounding allows only an upper bound.
        None where the kernel is indefinite.
    risk_bound_ : RiskBound or None
        What is known about the risk beside exact kernel ridge regression, where the
        trace error or `delta` gives a bound. None with an intercept or weights, for
        which nothing is proven.
    solver_ : str
        "direct", "cg", "full", or "exact".
    n_iter_ : int or None
        Steps of conjugate gradients.
    residual_ : float or None
        ‖b − Ax‖/‖b‖ that "full" has reached, the largest of all targets, found by a
        product in float64; no prediction of a training row is further off than that
        times ‖b‖.
    gamma_ : float or ndarray of shape (n_features,)
        What gamma="learn" or "ard" has learnt; absent otherwise.
    n_features_in_ : int
        Number of features seen during fit.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import KernelRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (5000, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(5000)
    >>> model = KernelRidge(kernel="rbf", gamma=1.0, alpha=0.1, n_landmarks=50)
    >>> model = model.set_params(random_state=0).fit(X, y)
    >>> bool(np.abs(model.predict([[np.pi / 2]]) - 1) < 0.03)
    True

    On all rows, with 50 landmarks to precondition:

    >>> full = KernelRidge(kernel="rbf", gamma=1.0, alpha=0.1, n_landmarks=50)
    >>> full = full.set_params(solver="full", random_state=0).fit(X, y)
    >>> full.n_iter_ < 20, full.residual_ < 1e-6, full.dual_coef_.shape
    (True, True, (5000,))
    """

    landmarks_: Landmarks
    approximation_error_: TraceError | None
    risk_bound_: RiskBound | None
    solver_: str
    n_iter_: int | None
    residual_: float | None

    def __init__(
        self,
        alpha: Any = 1,
        *,
        kernel: Any = "linear",
        gamma: Any = None,
        degree: Any = 3,
        coef0: Any = 1,
        kernel_params: dict[str, Any] | None = None,
        n_landmarks: Any = 1000,
        sampler: Any = "auto",
        solver: str = "auto",
        epsilon: Any = None,
        delta: Any = None,
        max_spectral_error: float | None = None,
        max_trace_error: float | None = None,
        fit_intercept: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.n_landmarks = n_landmarks
        self.sampler = sampler
        self.solver = solver
        self.epsilon = epsilon
        self.delta = delta
        self.max_spectral_error = max_spectral_error
        self.max_trace_error = max_trace_error
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows and targets.

        Parameters
        ----------
        X : array-like, CSR matrix, list, path or Source, (n_samples, n_features)
            Training rows; the square kernel matrix for kernel="precomputed".
        y : array-like or path, of shape (n_samples,) or (n_samples, n_targets)
            Targets, or a file that holds them, such as "y.npy". None where the source
            has them: `sources.open(path, target=...)`.
        sample_weight : float, array-like or path, default=None
            A row of weight w counts as w rows; weight 0 excludes it.

        Returns
        -------
        self : KernelRidge
            The fitted estimator.
        """
        with fit_context(self, X, y) as task:
            for name in ("_running", "_full"):
                self.__dict__.pop(name, None)
            X, Y, ravel = self._validate_rows_and_targets(X, y)
            alphas = check_alphas(self.alpha, Y.shape[1]) + self._white_noise()
            solver = check_solver(self.solver, alphas, (*RIDGE_SOLVERS, "full"))
            kernel, source, engine = self._resolve_inputs(
                X, task, sample_weight, targets=Y
            )
            stopping_rule = stopping_rule_for_risk(self, float(alphas.min()))
            self.residual_ = None
            if (
                uses_exact_solver(stopping_rule, self.sampler, source)
                and not self.fit_intercept
            ):
                engine.progress("exact solution", 0, 1)
                self._fit_exact(X, kernel, source, alphas, ravel)
            elif solver == "full":
                self._fit_full(kernel, source, stopping_rule, engine, alphas, ravel)
            else:
                passes_after = CG_PASSES if solver == "cg" else 1.0
                landmarks = select_landmarks_for_risk(
                    self, kernel, source, stopping_rule, engine, passes_after
                )
                fit = fit_ridge(
                    landmarks,
                    source,
                    alphas,
                    fit_intercept=self.fit_intercept,
                    solver=solver,
                    engine=engine,
                    seed=as_seed(self.random_state),
                )
                self._set_fit(
                    landmarks,
                    fit,
                    alphas,
                    ravel=ravel,
                    weighted=source.is_weighted,
                )
        return self

    @with_callbacks
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to a further batch of a stream of rows and targets.

        All rows so far count, in O(batch · s²); memory does not grow with the number of
        batches. Few weighted rows are kept; landmarks are chosen anew among them and
        the new ones where that leaves a tenth less of K, and the sums over all rows are
        then carried over to the new landmarks' features. The first call fits; `fit`
        forgets the stream. Always by the Gram matrix (`solver="direct"`). A width from
        the data ("scale", "learn") is that of the first batch. A model that was fitted
        by `fit` kept no sums: it begins anew, with a warning.

        Parameters
        ----------
        X : array-like, CSR matrix, list, path or Source, (n_samples, n_features)
            The rows of the batch.
        y : array-like or path, of shape (n_samples,) or (n_samples, n_targets)
            Their targets; None where the source has them.
        sample_weight : float, array-like or path, default=None
            A row of weight w counts as w rows; weight 0 excludes it.

        Returns
        -------
        self : KernelRidge
            Fitted to all rows so far.
        """
        with fit_context(self, X, y) as task:
            partial_fit_ridge(self, X, y, sample_weight, task)
        return self

    @lazy_for_dask
    @with_progress_bar
    def predict(
        self, X: Any, return_std: bool = False, noise: bool = False, out: Any = None
    ) -> Any:
        """Predict the targets of rows, with s kernel evaluations each.

        Parameters
        ----------
        X : array-like, CSR matrix or list, of shape (n_samples, n_features)
            Rows. For kernel="precomputed", their kernel values with all training rows,
            (n_samples, n_training), or `kernels.PrecomputedAtLandmarks` of those with
            the landmarks alone.
        return_std : bool, default=False
            Whether to return the predictive standard deviation too: that of the
            Gaussian process with kernel K̃ and noise alpha, scaled to the targets.
            After solver="full" with K itself, by conjugate gradients for every few
            rows: each as long as the fit.
        noise : bool, default=False
            Whether the deviation includes the noise alpha of a new target. That of a
            `WhiteKernel` is always included, as in scikit-learn's
            `GaussianProcessRegressor`.
        out : str, Path or array, default=None
            Where predictions go, instead of a new array: a file whose name ends in
            `.npy`, `.parquet` or `.zarr`, written block by block, complete or not at
            all; or an array to be filled. A file that exists is replaced only by
            `out=nystrom.sources.Overwrite(path)`. With `return_std` twice as many
            columns: the predictions, and after them their deviations.

        Returns
        -------
        mean : array of shape (n_samples,) or (n_samples, n_targets)
            Predictions, in the precision of X; `out` where it is given.
        std : ndarray of the same shape
            Only with `return_std`, and without `out`.
        """
        return self._predict(X, return_std=return_std, noise=noise, out=out)
