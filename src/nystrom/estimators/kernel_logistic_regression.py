"""KernelLogisticRegression: binary and multinomial logistic regression on landmarks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._random import as_seed
from .._validation import check_float, check_int, check_numbers
from ..linalg.errors import estimate_trace_error
from ..linalg.features import LinearMap
from ..models.logistic import (
    DescentResult,
    LogisticSettings,
    fit_logistic,
    log_probabilities,
    logistic_feature_map,
    probabilities,
    select_cost,
)
from ..sources import Source
from ._base import asarray_like
from ._classifier import BaseKernelClassifier, ClassLabels
from ._progress import fit_context, warn, with_callbacks
from ._ridge import RidgeModel


class KernelLogisticRegression(BaseKernelClassifier):
    """Kernel logistic regression on landmarks.

    The same model as `sklearn.linear_model.LogisticRegression` on the features of
    `Nystroem`, but the features are never stored: ½‖w‖² + C·Σ loss is minimised by a
    Newton method whose gradient is summed over blocks of rows and whose curvature comes
    from a sample. More than two classes are fitted together (multinomial).

    Read more in the :doc:`user guide </classification>`.

    Parameters
    ----------
    C : float or sequence of float, default=1.0
        Inverse regularisation strength, as in scikit-learn. Of several values, the one
        with the smallest loss on held-out rows is selected, on at most 65 536 rows.
    kernel : str, callable or Kernel, default="rbf"
        Name of a kernel as in scikit-learn, or "matern", "matern12", "matern32",
        "matern52" or "rational_quadratic"; a function of two rows; a kernel from
        `nystrom.kernels`; or "precomputed".
    gamma : float, sequence of float, str or None, default="scale"
        Inverse width of the kernel, one number or one per feature. "scale", "auto" (as
        in `SVC`) and "median" compute it from the rows. "learn" (one width), "ard" (one
        per feature) and "matrix" (a linear map of the features) learn it from rows and
        targets. None is scikit-learn's default, 1/n_features for most kernels.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1
        Constant term of the polynomial and sigmoid kernels.
    kernel_params : dict, default=None
        Further parameters of the kernel.
    class_weight : dict or "balanced", default=None
        Weights of the classes, multiplied by `sample_weight`. "balanced" uses weights
        inversely proportional to the number of rows of each class.
    n_landmarks : int or None, default=1000
        Number of landmarks. With `max_spectral_error` or `max_trace_error` it is an
        upper limit, or None for no limit.
    sampler : str, callable or array-like, default="auto"
        How landmarks are selected: "auto", "recursive", "accelerated", "leverage",
        "rpcholesky", "greedy", "kmeans" or "uniform"; a sampler from
        `nystrom.samplers`; row numbers; or an array of points.
    max_spectral_error : float, default=None
        Select as many landmarks as needed for ‖K − K̃‖₂ ≤ `max_spectral_error`.
    max_trace_error : float, default=None
        Select as many landmarks as needed for tr(K − K̃) ≤ `max_trace_error` · tr K.
    optimize_landmarks : bool, default=False
        Whether to move the landmarks, and to refine a learnt gamma, along the gradient
        of a bound on the likelihood of the targets. The result is used only if
        held-out rows become more likely, and their error grows by no more than noise.
        Landmarks are then points instead of rows.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not penalised.
    tol : float, default=1e-08
        Stop when the estimated remaining decrease is below this share of the objective.
        With the default, probabilities are within about 0.001 of those at the minimum.
    max_iter : int, default=100
        Maximum number of steps. A `ConvergenceWarning` reports when they are not
        enough.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers. The same int gives the same landmarks for every
        storage and number of threads.
    n_jobs : int or None, default=None
        Number of threads. None means as many as `joblib.parallel_config` or BLAS may
        use; -1 means all cores.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    C_ : float
        The C that was used.
    losses_ : ndarray or None
        Mean log-loss on held-out rows for each of several C.
    n_iter_ : int
        Number of steps on all rows.
    dual_coef_ : ndarray of shape (n_landmarks, n_outputs)
        Coefficients of the landmarks: the decision values are `k(X, X_fit_) @
        dual_coef_ + intercept_`. Two classes have one output.
    X_fit_ : array, sparse matrix or list
        The landmarks; all training rows in exact mode.
    intercept_ : float or ndarray of shape (n_outputs,)
        Intercept; 0.0 if `fit_intercept=False`.
    landmarks_ : Landmarks
        The landmarks with indices, errors and cost; prints as one line.
    approximation_error_ : TraceError or None
        Relative trace error tr(K − K̃)/tr K. None if the kernel is indefinite.
    n_features_in_ : int
        Number of features seen during fit.
    gamma_ : float or ndarray of shape (n_features,) or (n_features, n_features)
        The learnt gamma, for gamma="learn", "ard" or "matrix". "learn" gives a number.
        "ard" gives a number or one per feature, and "matrix" these or a matrix,
        whichever predicts held-out rows best.
    feature_importances_ : ndarray of shape (n_features,)
        With gamma="ard" or "matrix": weight of each feature in the learnt distance, for
        features of variance 1. They sum to 1.

    See Also
    --------
    KernelRidgeClassifierCV : Squared loss: faster, and selects gamma.
    sklearn.linear_model.LogisticRegression : The linear model.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nystrom import KernelLogisticRegression
    >>> X, y = load_digits(return_X_y=True)
    >>> model = KernelLogisticRegression(
    ...     C=[1, 10, 100, 1000], gamma=1e-3, n_landmarks=200, random_state=0
    ... ).fit(X[:1200], y[:1200])
    >>> model.predict_proba(X[1200:]).shape
    (597, 10)
    >>> model.score(X[1200:], y[1200:]) > 0.95
    True
    """

    _balances_by_weight = True
    _white_noise_is_alpha = False  # it is refused: there is no alpha
    _model_passes = 6.0
    losses_: Any

    def __init__(
        self,
        C: Any = 1.0,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: Any = 3,
        coef0: Any = 1,
        kernel_params: dict[str, Any] | None = None,
        class_weight: Any = None,
        n_landmarks: Any = 1000,
        sampler: Any = "auto",
        max_spectral_error: float | None = None,
        max_trace_error: float | None = None,
        optimize_landmarks: bool = False,
        fit_intercept: bool = True,
        tol: float = 1e-8,
        max_iter: int = 100,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.class_weight = class_weight
        self.n_landmarks = n_landmarks
        self.sampler = sampler
        self.max_spectral_error = max_spectral_error
        self.max_trace_error = max_trace_error
        self.optimize_landmarks = optimize_landmarks
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to rows and classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", the square kernel matrix.
        y : array-like of shape (n_samples,), default=None
            Class labels, or a path. None if the source has them: `sources.open(path,
            target="label")`.
        sample_weight : float, array-like of shape (n_samples,) or path, default=None
            Weights of the rows. A row of weight w counts as w rows; weight 0 excludes
            it.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with fit_context(self, X, y):
            Cs = np.atleast_1d(check_numbers(self.C, "C", positive=True))
            settings = LogisticSettings(
                fit_intercept=bool(self.fit_intercept),
                tolerance=check_float(self.tol, "tol", 0.0),
                max_iterations=check_int(self.max_iter, "max_iter"),
                seed=as_seed(self.random_state),
            )
            problem = self._validate(X, y, sample_weight)
            source, engine = problem.source, problem.engine
            _check_class_has_weight(source, problem.labels)
            landmarks = self._select_landmarks(problem)
            mapping = logistic_feature_map(landmarks, source, float(Cs.max()))
            C, self.losses_, start = float(Cs[0]), None, None
            if len(Cs) > 1:
                C, losses, start = select_cost(mapping, source, Cs, settings, engine)
                self.losses_ = asarray_like(landmarks, losses)
            result = fit_logistic(mapping, source, C, settings, engine, start)
            if not result.converged:
                self._warn_not_converged(result)
            error = estimate_trace_error(landmarks, source, engine)
            landmarks = self._set_landmarks(landmarks, error)
            linear_map = LinearMap.with_sufficient_precision(
                landmarks, source, mapping.root @ result.x[:-1], result.x[-1]
            )
            self._set_model(landmarks, RidgeModel(linear_map, problem.is_single_target))
            self._set_classes(problem.labels)
            self.C_, self.n_iter_ = C, result.n_iterations
        return self

    def _warn_not_converged(self, result: DescentResult) -> None:
        warn(
            f"Not converged in {result.n_iterations} steps: the objective can still "
            f"fall by {result.relative_gain:.1g} of its value, and tol is "
            f"{self.tol:g}. Raise max_iter={self.max_iter} or tol, scale the "
            "features, or use a smaller C.",
            ConvergenceWarning,
        )

    def _probability_function(
        self, method: str, log: bool
    ) -> Callable[[np.ndarray], np.ndarray]:
        return log_probabilities if log else probabilities


def _check_class_has_weight(source: Source, given: ClassLabels) -> None:
    """Refuse a class whose rows all have weight 0: its constant has no finite value."""
    if not source.is_weighted:
        return
    assert given.rows is not None
    totals = given.rows.class_totals(source.weights)
    if not totals.all():
        raise ValueError(
            f"The class {given.rows.classes[totals.argmin()]} has no row of positive "
            "weight; drop its rows, or give one of them a positive weight."
        )
