"""KernelLogisticRegression: binary and multinomial logistic regression on landmarks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._random import as_seed
from .._validation import check_float, check_int, check_numbers
from ..linalg.errors import estimate_trace_error
from ..models.logistic import (
    DescentResult,
    LogisticSettings,
    fit_logistic,
    log_probabilities,
    logistic_feature_map,
    probabilities,
    select_cost,
    to_linear_map,
)
from ..sources import Source
from ._base import asarray_like
from ._classifier import BaseKernelClassifier, ClassLabels
from ._progress import fit_context, with_callbacks
from ._ridge import RidgeModel
from ._warnings import warn, warn_alike


class KernelLogisticRegression(BaseKernelClassifier):
    """Logistic regression with a kernel, on landmarks: probabilities of classes.

    `sklearn.linear_model.LogisticRegression` on the features of `Nystroem`, without
    ever holding these: ½‖w‖² + C·Σ loss is minimised from sums over blocks of rows. The
    first steps use a sample; then each is a pass of n·s kernel evaluations, and
    near Newton's, as its curvature is measured on the sample. More than two classes are
    fitted together (multinomial).

    Parameters
    ----------
    C : float or sequence of float, default=1.0
        The inverse strength of regularisation, as in scikit-learn: the loss of all rows
        counts C times. Of several the one with the least loss on rows left out is
        chosen, on at most 65 536 rows and one set of landmarks.
    kernel : str, callable or Kernel, default="rbf"
        As for `KernelRidge`.
    gamma : float, sequence of float, str or None, default="scale"
        As for `KernelRidge`.
    degree, coef0, kernel_params, n_landmarks, sampler
        As for `KernelRidge`.
    max_spectral_error, max_trace_error, optimize_landmarks
        As for `KernelRidge`.
    class_weight : dict or "balanced", default=None
        Weights of the classes, multiplied with `sample_weight`.
    fit_intercept : bool, default=True
        Whether to fit a constant, which is not regularised.
    tol : float, default=1e-8
        Steps end when no more than this share of the objective is left to be gained, as
        estimated from gradient and curvature. Probabilities are then within about 0.001
        of those at the minimum; with 1e-6 they were off by up to 0.05.
    max_iter : int, default=100
        Steps at most; where they were not enough, a ConvergenceWarning says so.
    random_state, n_jobs, verbose
        As for `KernelRidge`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    C_ : float
        The C that was used.
    losses_ : ndarray or None
        For each of several C, −log p of a row that was left out, on the mean.
    n_iter_ : int
        Steps on all rows, with the C that was used.
    dual_coef_, X_fit_, intercept_, landmarks_, approximation_error_, n_features_in_
        As for `KernelRidge`, with one column per class, or one for two classes.

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
        """Fit to rows and their classes.

        Parameters
        ----------
        X : array-like, CSR matrix, list, path or Source, (n_samples, n_features)
            Training rows; the square kernel matrix for kernel="precomputed".
        y : array-like or path, of shape (n_samples,)
            Classes; None where the source has them, one number or text per row.
        sample_weight : float, array-like or path, default=None
            A row of weight w counts as w rows; weight 0 excludes it.

        Returns
        -------
        self : KernelLogisticRegression
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
            warn_alike(landmarks)
            linear_map = to_linear_map(landmarks, source, mapping, result.x)
            self._set_model(landmarks, RidgeModel(linear_map, problem.is_single_target))
            self._set_classes(problem.labels)
            self.C_, self.n_iter_ = C, result.n_iterations
        return self

    def _warn_not_converged(self, result: DescentResult) -> None:
        advice = f"Raise max_iter={self.max_iter} or tol,"
        if result.n_iterations < self.max_iter:
            advice = (
                "No step goes further down: rounding hides it. Scale the features, so "
                "that kernel values are of similar size,"
            )
        warn(
            f"Not converged in {result.n_iterations} steps: about "
            f"{result.relative_gain:.1g} of the objective is left to be gained, tol is "
            f"{self.tol:g}. {advice} or take a smaller C.",
            ConvergenceWarning,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags

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
            f"The class {given.rows.classes[totals.argmin()]} has no row of weight > "
            "0; leave its rows out, or give one of them a weight."
        )
