"""KernelRidgeClassifier: ridge regression on ±1 targets, with calibrated
probabilities; KernelRidgeClassifierCV, which chooses its parameters by
cross-validation.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .._random import as_seed
from .._validation import both_given_error
from ..models.calibration import class_indices
from ..models.model_selection import BEST_SCORES, ClassificationErrors
from ..models.ridge_solvers import fit_ridge
from ._classifier import (
    LABEL_BLOCK_ROWS,
    ONE_LABEL,
    CalibratedClassifierMixin,
    ClassLabels,
)
from ._progress import fit_context, with_callbacks
from ._ridge import check_solver
from ._search import (
    RidgeSearchMixin,
    ScorerErrors,
    SearchCriterion,
    check_scorer,
    resolve_splits,
)


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
 max_spectral_error, max_trace_error, optimize_landmarks
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
        optimize_landmarks: bool = False,
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
        self.optimize_landmarks = optimize_landmarks
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
            problem = self._validate(X, y, sample_weight)
            alphas = self._check_alphas(problem)
            solver = check_solver(self.solver, alphas, self._solvers)
            stopping_rule = self._stopping_rule_for_risk(alphas)
            landmarks = self._select_landmarks_for_risk(problem, stopping_rule)
            task = self._ridge_task(problem, alphas)
            fit = fit_ridge(landmarks, task, solver)
            self._set_fit(landmarks, fit, problem, float(alphas.min()))
            self._set_classes(problem.labels)
            self._calibrate(landmarks, fit, problem.source, problem)
            self._running = None
        return self

    @with_callbacks
    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Fit to a further batch of a stream of rows and their classes.

        All rows so far count, as in `KernelRidge.partial_fit`. Probabilities are
        calibrated on the weighted rows that are kept of the stream.

        Parameters
        ----------
        X : array-like, CSR matrix, list, path or Source, (n_samples, n_features)
            The rows of the batch.
        y : array-like or path, of shape (n_samples,)
            Their classes, one per row; None where the source has them.
        classes : array-like of shape (n_classes,), default=None
            All classes of the stream. Needed in the first call if not all of them are
            in its y; later calls may leave it out.
        sample_weight : float, array-like or path, default=None
            A row of weight w counts as w rows; weight 0 excludes it.

        Returns
        -------
        self : KernelRidgeClassifier
            Fitted to all rows so far.
        """
        with fit_context(self, X, y):
            if isinstance(self.class_weight, str):
                raise ValueError(
                    "class_weight='balanced' needs the classes of all rows, which "
                    "partial_fit has not seen; give a dict of weights."
                )
            known = None if classes is None else np.unique(np.asarray(classes))
            if vars(self).get("_running") is not None:
                if known is not None and not np.array_equal(known, self.classes_):
                    raise both_given_error(
                        f"classes={known.tolist()}",
                        f"classes={self.classes_.tolist()} of the first call",
                        "the classes",
                    )
                known = self.classes_
            batch, landmarks, fit = self._fit_batch(X, y, sample_weight, classes=known)
            if batch.labels.is_multilabel:
                raise ValueError(ONE_LABEL)
            self._set_classes(batch.labels)
            kept = landmarks.reservoir
            indices = landmarks.indices
            if indices is not None:  # their places among the rows that are kept
                places = np.searchsorted(kept.numbers, indices)
                is_kept = np.isin(indices, kept.numbers)
                indices = np.where(is_kept, places, -1)
            landmarks = landmarks.replace(indices=indices)
            self._calibrate(landmarks, fit, kept.source, batch)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


#: Folds where `cv` says nothing.
N_FOLDS = 5


class KernelRidgeClassifierCV(CalibratedClassifierMixin, RidgeSearchMixin):
    """Classification by kernel ridge regression, with all numbers chosen from the data.

    For each width landmarks are chosen once; one pass over the rows makes the sums of
    all folds, from which every alpha and every number of landmarks is solved for, and
    one pass of predictions tells how well the rows of each fold are classified by fits
    to the others. The best is fitted to all rows, and `predict_proba` calibrated as for
    `KernelRidgeClassifier`. Where the best is at the end of a grid, and clearly better
    than its neighbour, a warning says in which direction to go on.

    Parameters
    ----------
    alphas : array-like of float > 0, default=None
        The ridges to try. None: 13 of them, from a thousandth to a thousand times the
        power of ten nearest to a typical k(x, x), which of many kernels is 1. Of
        equally good ones the largest is selected.
    kernel : str, callable or Kernel, default="rbf"
        As for `KernelRidge`.
    gamma : float, "scale", "auto" or "median", default=None
        The width, as for `KernelRidge`, where it is not to be chosen.
    degree, coef0, kernel_params, sampler
        As for `KernelRidge`.
    gammas : sequence or "auto", default="auto"
        Widths to try. "auto": 1/16, 1/4, 1, 4 and 16 times gamma="scale", if the kernel
        has a width and `gamma` is not given.
    cv : None, "loo", int, splitter or iterable, default=None
        An int: so many folds, drawn at random, with all classes in each. None: 5.
        "loo": leave-one-out. A scikit-learn splitter or an iterable of (train, test)
        row numbers: those.
    scoring : str or callable, default="accuracy"
        "accuracy", "balanced_accuracy" or "log_loss"; or a scorer of scikit-learn's, by
        name or as `scorer(estimator, X, y)`, whose X are row numbers: of it one number
        is held for each row of a fold, class, alpha and number of landmarks. Rows count
        with their `sample_weight`, not with that of their class. Probabilities of rows
        left out are by links that are fitted to them, on at most 4096.
    class_weight : dict or "balanced", default=None
        Weights of the classes, multiplied with `sample_weight`.
    n_landmarks : int, sequence of int or None, default=1000
        How many landmarks; or the numbers to try, such as [100, 300, 1000].
    prefer_fewer : bool, default=False
        Which of several numbers of landmarks: the best, or with True the fewest that
        score within one standard error, over the folds of `cv`, of the best.
    max_spectral_error, max_trace_error, optimize_landmarks
        As for `KernelRidge`.
    fit_intercept : bool, default=True
        Whether to fit a constant, which the ridge does not shrink.
    random_state, n_jobs, verbose
        As for `KernelRidge`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    alpha_, gamma_, n_landmarks_
        What was chosen.
    best_score_ : float
        Its score, the mean over folds.
    scores_ : ndarray of shape ([n_gammas,] [n_numbers,] n_alphas)
        The scores of all; by width where there were several, and by number where
        `n_landmarks` is a sequence, in ascending order.
    gammas_, alphas_, n_landmarks_path_
        The candidates.
    dual_coef_, X_fit_, intercept_, landmarks_, approximation_error_, solver_, \
n_features_in_
        As for `KernelRidgeClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nystrom import KernelRidgeClassifierCV
    >>> X, y = load_digits(return_X_y=True)
    >>> model = KernelRidgeClassifierCV(n_landmarks=[50, 200], random_state=0)
    >>> model = model.fit(X[:1200], y[:1200])
    >>> model.n_landmarks_
    200
    >>> model.score(X[1200:], y[1200:]) > 0.95
    True
    >>> model.predict_proba(X[1200:]).shape
    (597, 10)
    """

    _bool_params = ("fit_intercept", "optimize_landmarks", "prefer_fewer")
    _model_passes = 2.0

    def __init__(
        self,
        alphas: Any = None,
        *,
        kernel: Any = "rbf",
        gamma: Any = None,
        degree: Any = 3,
        coef0: Any = 1,
        kernel_params: dict[str, Any] | None = None,
        gammas: Any = "auto",
        cv: Any = None,
        scoring: Any = "accuracy",
        class_weight: Any = None,
        n_landmarks: Any = 1000,
        prefer_fewer: bool = False,
        sampler: Any = "auto",
        max_spectral_error: float | None = None,
        max_trace_error: float | None = None,
        optimize_landmarks: bool = False,
        fit_intercept: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alphas = alphas
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.class_weight = class_weight
        self.n_landmarks = n_landmarks
        self.prefer_fewer = prefer_fewer
        self.sampler = sampler
        self.max_spectral_error = max_spectral_error
        self.max_trace_error = max_trace_error
        self.optimize_landmarks = optimize_landmarks
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose width, number of landmarks and alpha, and fit with them.

        Parameters
        ----------
        X : array-like, CSR matrix, list, path or Source, (n_samples, n_features)
            Training rows; the square kernel matrix for kernel="precomputed".
        y : array-like or path, of shape (n_samples,)
            Classes; None where the source has them, one number or text per row:
            `sources.open(path, target="label")`.
        sample_weight : float, array-like or path, default=None
            A row of weight w counts as w rows; weight 0 excludes it.

        Returns
        -------
        self : KernelRidgeClassifierCV
            The fitted estimator.
        """
        with fit_context(self, X, y):
            problem = self._validate(X, y, sample_weight, gamma=None)
            criterion = self._criterion(problem.source.targets, problem.labels)
            landmarks, fit, task = self._search(problem, criterion)
            self._set_fit(landmarks, fit, problem, float(task.alphas.min()))
            self._set_classes(problem.labels)
            self._calibrate(landmarks, fit, problem.source, problem)
        return self

    def _criterion(self, Y: Any, given: ClassLabels) -> SearchCriterion:
        """How: by sums over held-out rows, or by what a scorer says of them."""
        seed, weights = as_seed(self.random_state), given.class_weights
        cv = min(N_FOLDS, len(Y)) if self.cv is None else self.cv
        splits = resolve_splits(cv, _all_class_indices(Y), seed, "'loo'")
        name = "log_loss" if self.scoring == "neg_log_loss" else self.scoring
        if isinstance(name, str) and name in BEST_SCORES:
            errors = ClassificationErrors(name, weights, seed)
            return SearchCriterion(splits, errors, BEST_SCORES[name])
        scorer = check_scorer("accuracy" if name is None else name, self)
        assert scorer is not None
        classes = given.binarizer.classes_
        measure = ScorerErrors(scorer, False, classes, weights, seed)
        return SearchCriterion(splits, measure, 0.0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags


def _all_class_indices(Y: Any) -> np.ndarray:
    """(n,) of all rows, from ±1 for each class."""
    indices = np.empty(len(Y), dtype=np.intp)
    for start in range(0, len(Y), LABEL_BLOCK_ROWS):
        indices[start : start + LABEL_BLOCK_ROWS] = class_indices(
            np.asarray(Y[start : start + LABEL_BLOCK_ROWS])
        )
    return indices
