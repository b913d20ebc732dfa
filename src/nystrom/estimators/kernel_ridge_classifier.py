"""KernelRidgeClassifier: ridge regression on ±1 targets, with calibrated
probabilities; KernelRidgeClassifierCV, which chooses its parameters by
cross-validation.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .._random import as_seed
from .._validation import both_given_error
from ..models.model_selection import BEST_SCORES, ClassificationErrors
from ..models.ridge_solvers import fit_ridge
from ._classifier import ONE_LABEL, CalibratedClassifierMixin, ClassLabels
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

    Classes become targets of ±1, one per class if there are more than two, as in
    `sklearn.linear_model.RidgeClassifier`. `predict_proba` is calibrated on
    leave-one-out predictions of up to 16 384 training rows.

    Read more in the :doc:`user guide </classification>`.

    Parameters
    ----------
    alpha : float, default=1.0
        Regularisation strength (ridge).
    kernel : str, callable or Kernel, default="rbf"
        Name of a kernel as in scikit-learn, or "matern", "matern12", "matern32",
        "matern52" or "rational_quadratic"; a function of two rows; a kernel from
        `nystrom.kernels`; or "precomputed".
    gamma : float, sequence of float, str or None, default=None
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
        Number of landmarks. With `epsilon`, `max_spectral_error` or `max_trace_error`
        it is an upper limit, or None for no limit.
    sampler : str, callable or array-like, default="auto"
        How landmarks are selected: "auto", "recursive", "accelerated", "leverage",
        "rpcholesky", "greedy", "kmeans" or "uniform"; a sampler from
        `nystrom.samplers`; row numbers; or an array of points.
    solver : {"auto", "direct", "cg", "full"}, default="auto"
        Solver, as for `KernelRidge`. "cg" computes no Gram matrix and gives no
        probabilities.
    epsilon : float, default=None
        Select as many landmarks as needed to bound the risk by 1 + 3·`epsilon` times
        the risk of exact kernel ridge regression (‖K − K̃‖₂ ≤ `epsilon`·`alpha`).
        Proven only with `delta`.
    delta : float, default=None
        Failure probability of the guarantee for `epsilon` or `max_spectral_error`. It
        implies the constants of the paper's proofs, which select many more landmarks.
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
    solver_ : str
        The solver that was used: "direct", "cg", "full" or "exact".
    n_iter_ : int or None
        Number of conjugate gradient steps.
    risk_bound_ : RiskBound or None
        Bound on the risk relative to exact kernel ridge regression, if one is proven.
    gamma_ : float or ndarray of shape (n_features,) or (n_features, n_features)
        The learnt gamma, for gamma="learn", "ard" or "matrix". "learn" gives a number.
        "ard" gives a number or one per feature, and "matrix" these or a matrix,
        whichever predicts held-out rows best.
    feature_importances_ : ndarray of shape (n_features,)
        With gamma="ard" or "matrix": weight of each feature in the learnt distance, for
        features of variance 1. They sum to 1.
    n_features_in_ : int
        Number of features seen during fit.

    See Also
    --------
    KernelRidgeClassifierCV : Selects alpha, gamma and the number of landmarks.
    KernelLogisticRegression : Logistic loss, for overlapping classes.
    sklearn.linear_model.RidgeClassifier : The linear model.

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
        """Fit the model to rows and classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", the square kernel matrix.
        y : array-like of shape (n_samples,) or (n_samples, n_labels), default=None
            Class labels; for multilabel data, an indicator matrix of 0 and 1. None if
            the source has them: `sources.open(path, target="label")`.
        sample_weight : float, array-like of shape (n_samples,) or path, default=None
            Weights of the rows. A row of weight w counts as w rows; weight 0 excludes
            it.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with fit_context(self, X, y):
            problem = self._validate(X, y, sample_weight)
            alphas = self._check_alphas(problem)
            solver = check_solver(self.solver, alphas, self._solvers)
            stopping_rule = self._stopping_rule_for_risk(alphas)
            landmarks = self._select_landmarks(problem, stopping_rule)
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


#: Folds where `cv` says nothing.
N_FOLDS = 5


class KernelRidgeClassifierCV(CalibratedClassifierMixin, RidgeSearchMixin):
    """Kernel ridge classification with cross-validated parameters.

    Landmarks are selected once per gamma. One pass sums the moments of all folds, which
    give the fits for every alpha and every number of landmarks; a second pass scores
    them on held-out rows. The best model is fitted to all rows, and `predict_proba` is
    calibrated as for `KernelRidgeClassifier`. If the best value lies at the end of a
    grid and is clearly better than its neighbour, a warning suggests values to add.

    Read more in the :doc:`user guide </classification>`.

    Parameters
    ----------
    alphas : array-like of float, default=None
        Values of alpha to compare, all positive. None compares 13 values from 1e-3 to
        1e3, in units of a typical k(x, x) and of the mean weight. Of equally good ones
        the largest is selected.
    kernel : str, callable or Kernel, default="rbf"
        Name of a kernel as in scikit-learn, or "matern", "matern12", "matern32",
        "matern52" or "rational_quadratic"; a function of two rows; a kernel from
        `nystrom.kernels`; or "precomputed".
    gamma : float, sequence of float, str or None, default=None
        Inverse width of the kernel, one number or one per feature. "scale", "auto" (as
        in `SVC`) and "median" compute it from the rows. "learn" (one width), "ard" (one
        per feature) and "matrix" (a linear map of the features) learn it from rows and
        targets. None leaves the choice to `gammas`.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1
        Constant term of the polynomial and sigmoid kernels.
    kernel_params : dict, default=None
        Further parameters of the kernel.
    gammas : sequence or "auto", default="auto"
        Values of gamma to compare, each with its own landmarks and pass. "auto"
        compares gamma="scale" with gamma="matrix" for 10,000 rows or more, at most 1024
        features and a kernel of the Euclidean distance, on a sample of the rows if
        the matrix is clearly better there; otherwise 1/16, 1/4, 1, 4 and 16 times
        gamma="scale". If `gamma` is given, "auto" uses that alone.
    cv : None, "loo", int, splitter or iterable, default=None
        Number of random stratified folds; None means 5. "loo" is leave-one-out. A
        splitter or an iterable of (train, test) row numbers is used as given.
    scoring : str or callable, default="accuracy"
        "accuracy", "balanced_accuracy", "log_loss", or a scorer of scikit-learn by name
        or as `scorer(estimator, X, y)`, whose X are row numbers. Rows count with their
        `sample_weight`, not with that of their class.
    class_weight : dict or "balanced", default=None
        Weights of the classes, multiplied by `sample_weight`. "balanced" uses weights
        inversely proportional to the number of rows of each class.
    n_landmarks : int, sequence of int or None, default=1000
        Number of landmarks, or several numbers to compare, such as [100, 300, 1000].
        With `max_spectral_error` or `max_trace_error` it is an upper limit, or None for
        no limit.
    prefer_fewer : bool, default=False
        Whether to select the smallest number of landmarks whose score is within one
        standard error, over the folds of `cv`, of the best.
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
    alpha_ : float
        Selected alpha.
    gamma_ : object
        Selected gamma. With gamma="learn", "ard" or "matrix", the learnt one: a number,
        one per feature, or a matrix.
    n_landmarks_ : int
        Number of landmarks of the model.
    best_score_ : float
        Mean score of the selected parameters over the folds.
    scores_ : ndarray of shape ([n_gammas,] [n_numbers,] n_alphas)
        Scores of all candidates. The dimensions in brackets exist if several values
        were compared.
    gammas_ : list
        Values of gamma that were compared.
    alphas_ : ndarray of shape (n_alphas,)
        Values of alpha that were compared.
    n_landmarks_path_ : ndarray of int
        Numbers of landmarks that were compared, ascending.
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
    solver_ : str
        The solver that was used: "direct", "cg", "full" or "exact".
    feature_importances_ : ndarray of shape (n_features,)
        With gamma="ard" or "matrix": weight of each feature in the learnt distance, for
        features of variance 1. They sum to 1.
    n_features_in_ : int
        Number of features seen during fit.

    See Also
    --------
    KernelRidgeClassifier : The same model with a given alpha.
    KernelLogisticRegression : Logistic loss, for overlapping classes.
    sklearn.linear_model.RidgeClassifierCV : The linear model.

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
        """Select the parameters and fit the model with them.

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
            problem = self._validate(X, y, sample_weight, gamma=None)
            landmarks, fit = self._search(problem, self._criterion(problem.labels))
            self._set_classes(problem.labels)
            self._calibrate(landmarks, fit, problem.source, problem)
        return self

    def _criterion(self, given: ClassLabels) -> SearchCriterion:
        """Sums over held-out rows for the scores of `BEST_SCORES`, else a scorer."""
        seed, weights = as_seed(self.random_state), given.class_weights
        assert given.rows is not None  # several labels are refused
        indices = given.rows.class_indices
        cv = min(N_FOLDS, len(indices)) if self.cv is None else self.cv
        splits = resolve_splits(cv, indices, seed, "'loo'")
        name = "log_loss" if self.scoring == "neg_log_loss" else self.scoring
        if isinstance(name, str) and name in BEST_SCORES:
            errors = ClassificationErrors(name, weights, seed)
            return SearchCriterion(splits, errors, BEST_SCORES[name])
        scorer = check_scorer("accuracy" if name is None else name, self)
        assert scorer is not None
        classes = given.binarizer.classes_
        measure = ScorerErrors(scorer, False, classes, weights, seed)
        return SearchCriterion(splits, measure, 0.0)
