"""KernelRidgeClassifier: ridge regression on ±1 targets, with calibrated
probabilities.
"""

from __future__ import annotations

from typing import Any, Self

from ..models.ridge_solvers import fit_ridge
from ._classifier import CalibratedClassifierMixin
from ._progress import fit_context, with_callbacks
from ._ridge import check_solver


class KernelRidgeClassifier(CalibratedClassifierMixin):
    """Classification by kernel ridge regression on landmarks.

    Classes become targets of ±1, one per class where there are more than two, as in
    `sklearn.linear_model.RidgeClassifier`. What the regression's values mean is fitted
    too: after the Gram matrix at most 16 384 rows are asked what a fit without them
    (and without the landmark that such a row may be) says of each, and `predict_proba`
    is calibrated on that, with the weights of rows and classes. (Not with solver="cg",
    which makes no Gram matrix.)

    Parameters
    ----------
    alpha : float, default=1.0
        The ridge.
    kernel : str, callable or Kernel, default="rbf"
        As for `KernelRidge`, whose default is scikit-learn's "linear".
    gamma, degree, coef0, kernel_params, n_landmarks, sampler, solver, epsilon, delta,\
 max_spectral_error, max_trace_error
        As for `KernelRidge`.
    class_weight : dict or "balanced", default=None
        Weights of the classes, multiplied with `sample_weight`. "balanced" goes by the
        number of rows of each, as in scikit-learn, and not by their weights.
    fit_intercept : bool, default=True
        Whether to fit a constant, which the ridge does not shrink.
    random_state, n_jobs, verbose
        As for `KernelRidge`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    dual_coef_, X_fit_, intercept_, landmarks_, approximation_error_, solver_, n_iter_,\
 risk_bound_, n_features_in_
        As for `KernelRidge`, with one target per class, or one for two classes.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nystrom import KernelRidgeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = KernelRidgeClassifier(
    ...     gamma=1e-3, alpha=0.1, n_landmarks=300, random_state=0
    ... ).fit(X[:1200], y[:1200])
    >>> model.score(X[1200:], y[1200:]) > 0.95
    True
    >>> model.predict_proba(X[1200:1201]).round(2).max() > 0.9
    np.True_
    """

    _takes_multilabel = True
    _model_passes = 1.5

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        kernel: Any = "rbf",
        gamma: Any = None,
        degree: Any = 3,
        coef0: Any = 1,
        kernel_params: dict[str, Any] | None = None,
        class_weight: Any = None,
        n_landmarks: Any = 1000,
        sampler: Any = "auto",
        solver: str = "auto",
        epsilon: Any = None,
        delta: Any = None,
        max_spectral_error: float | None = None,
        max_trace_error: float | None = None,
        fit_intercept: bool = True,
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
        self.class_weight = class_weight
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
        """Fit to rows and their classes.

        Parameters
        ----------
        X : array-like, CSR matrix, list, path or Source, (n_samples, n_features)
            Training rows; the square kernel matrix for kernel="precomputed".
        y : array-like or path, of shape (n_samples,) or (n_samples, n_labels)
            Classes; 0 and 1 for each label where a row may have several. None where the
            source has them, one number or text per row:
            `sources.open(path, target="label")`.
        sample_weight : float, array-like or path, default=None
            A row of weight w counts as w rows; weight 0 excludes it.

        Returns
        -------
        self : KernelRidgeClassifier
            The fitted estimator.
        """
        with fit_context(self, X, y):
            problem, given = self._validate_classes(X, y, sample_weight)
            alphas = self._check_alphas(problem)
            solver = check_solver(self.solver, alphas, self._solvers)
            stopping_rule = self._stopping_rule_for_risk(alphas)
            landmarks = self._select_landmarks_for_risk(problem, stopping_rule)
            task = self._ridge_task(problem, alphas)
            fit = fit_ridge(landmarks, task, solver)
            self._set_fit(landmarks, fit, problem, float(alphas.min()))
            self._set_classes(given)
            self._calibrate(landmarks, fit, task, given)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
