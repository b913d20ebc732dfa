"""KernelRidge: scikit-learn's estimator on landmarks, with direct, cg, full and exact
solvers, a risk bound (epsilon) and partial_fit; KernelRidgeCV, which chooses alpha,
gamma and the number of landmarks by cross-validation.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .._random import as_seed
from ..models.ridge_solvers import fit_exact, fit_ridge
from ._base import exact_landmarks, uses_exact_solver
from ._problem import KernelProblem
from ._progress import fit_context, with_callbacks
from ._ridge import BaseKernelRegressor, check_solver
from ._search import (
    RidgeSearchMixin,
    ScorerErrors,
    SearchCriterion,
    check_scorer,
    resolve_splits,
)


class KernelRidge(BaseKernelRegressor):
    """Kernel ridge regression on landmarks.

    A drop-in replacement for `sklearn.kernel_ridge.KernelRidge` that runs in O(n·s²)
    time with s landmarks, in memory that does not grow with the number of rows n. With
    no more rows than `n_landmarks`, scikit-learn's own class does the work and the
    solution is exact.

    Read more in the :doc:`user guide </regression>`.

    Parameters
    ----------
    alpha : float or array-like of shape (n_targets,), default=1
        Regularisation strength (ridge), one number or one per target. 0 is least
        squares on the landmarks.
    kernel : str, callable or Kernel, default="linear"
        Name of a kernel as in scikit-learn, or "matern", "matern12", "matern32",
        "matern52" or "rational_quadratic"; a function of two rows; a kernel from
        `nystrom.kernels`; or "precomputed". A `WhiteKernel` in a sum of
        scikit-learn's Gaussian process kernels is noise of the targets and is added to
        `alpha`.
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
    n_landmarks : int or None, default=1000
        Number of landmarks. With `epsilon`, `max_spectral_error` or `max_trace_error`
        it is an upper limit, or None for no limit.
    sampler : str, callable or array-like, default="auto"
        How landmarks are selected: "auto", "recursive", "accelerated", "leverage",
        "rpcholesky", "greedy", "kmeans" or "uniform"; a sampler from
        `nystrom.samplers`; row numbers; or an array of points.
    solver : {"auto", "direct", "cg", "full"}, default="auto"
        "direct" sums the s × s Gram matrix of the features in one pass. "cg" runs
        conjugate gradients with one pass per step, which pays with many landmarks.
        "auto" selects the one with fewer operations. "full" solves (K + alpha·I)x = y
        on all n rows without approximation, by conjugate gradients with the landmarks
        as preconditioner; the model then stores all rows.
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
    fit_intercept : bool, default=False
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
    dual_coef_ : ndarray of shape (n_landmarks,) or (n_landmarks, n_targets)
        Coefficients of the landmarks. Predictions are `k(X, X_fit_) @ dual_coef_ +
        intercept_`.
    X_fit_ : array, sparse matrix or list
        The landmarks; all rows in exact mode, and all rows of positive weight with
        solver="full". For kernel="precomputed", the column numbers of the landmarks.
    intercept_ : float or ndarray of shape (n_targets,)
        Intercept; 0.0 if `fit_intercept=False`.
    landmarks_ : Landmarks
        The landmarks with indices, errors and cost; prints as one line. With
        solver="full", the landmarks of the preconditioner.
    approximation_error_ : TraceError or None
        Relative trace error tr(K − K̃)/tr K: exact for solver="direct", estimated on
        about 1024 rows for "cg", 0 for "full". None if the kernel is indefinite.
    risk_bound_ : RiskBound or None
        Bound on the risk relative to exact kernel ridge regression, if the trace error
        or `delta` proves one. None with an intercept or weights.
    solver_ : str
        The solver that was used: "direct", "cg", "full" or "exact".
    n_iter_ : int or None
        Number of conjugate gradient steps.
    residual_ : float or None
        Relative residual ‖b − Ax‖/‖b‖ that solver="full" reached, computed in float64;
        the largest over the targets.
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
    KernelRidgeCV : Selects alpha, gamma and the number of landmarks.
    KernelRidgeClassifier : The same loss for classification.
    sklearn.kernel_ridge.KernelRidge : Exact kernel ridge regression.

    Notes
    -----
    The estimator minimises Σ wᵢ(yᵢ − f(xᵢ))² + α‖f‖² over the functions f that the
    landmarks span. This is kernel ridge regression with the Nyström approximation K̃ in
    place of the kernel matrix K.

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

    _solvers = ("auto", "direct", "cg", "full")

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
        optimize_landmarks: bool = False,
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
        self.optimize_landmarks = optimize_landmarks
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to rows and targets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", the square kernel matrix.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Targets, or a file with targets such as "y.npy". None if the source has
            them: `sources.open(path, target=...)`.
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
            task = self._ridge_task(problem, alphas)
            if not self.fit_intercept and uses_exact_solver(
                stopping_rule, self.sampler, problem.source
            ):
                landmarks = exact_landmarks(problem.kernel, problem.source)
                fit = fit_exact(landmarks, task, problem.X)
            else:
                landmarks = self._select_landmarks(problem, stopping_rule)
                fit = fit_ridge(landmarks, task, solver)
            self._set_fit(landmarks, fit, problem, float(alphas.min()))
            self.residual_, self._running = fit.residual, None
        return self

    @with_callbacks
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Update the model with a further batch of a stream of rows.

        All rows so far count, in O(batch · s²) time and in memory that does not grow
        with the number of batches. A few weighted rows represent earlier rows;
        landmarks are selected again among these and the new rows when this reduces the
        trace error by a tenth. The first call fits, and `fit` forgets the stream. The
        solver is always "direct". A gamma from the data ("scale", "learn") is that of
        the first batch.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows of the batch.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Targets of the batch. None if the source has them.
        sample_weight : float, array-like of shape (n_samples,) or path, default=None
            Weights of the rows. A row of weight w counts as w rows; weight 0 excludes
            it.

        Returns
        -------
        self : object
            The estimator, fitted to all rows so far.
        """
        with fit_context(self, X, y):
            self._fit_batch(X, y, sample_weight)
            self.residual_ = None
        return self


class KernelRidgeCV(BaseKernelRegressor, RidgeSearchMixin):
    """Kernel ridge regression on landmarks, with cross-validated parameters.

    All values of alpha and all numbers of landmarks are scored from one pass over the
    rows. Landmarks are selected once per gamma, from all rows and without the targets.
    If the best value lies at the end of a grid and is clearly better than its
    neighbour, a warning suggests values to add.

    Read more in the :doc:`user guide </regression>`.

    Parameters
    ----------
    alphas : array-like of float, default=None
        Values of alpha to compare, all positive. None compares 13 values from 1e-3 to
        1e3, in units of a typical k(x, x) and of the mean weight; from 1e-6 for
        gamma="ard" or "matrix". With `optimize_landmarks` and one gamma, None is the
        noise that was learnt with the landmarks.
    kernel : str, callable or Kernel, default="rbf"
        Name of a kernel as in scikit-learn, or "matern", "matern12", "matern32",
        "matern52" or "rational_quadratic"; a function of two rows; a kernel from
        `nystrom.kernels`; or "precomputed".
    gamma : float, sequence of float, str or None, default=None
        Inverse width of the kernel, one number or one per feature. "scale", "auto" (as
        in `SVC`) and "median" compute it from the rows. "learn" (one width), "ard" (one
        per feature) and "matrix" (a linear map of the features) learn it from rows and
        targets. None leaves the choice to `gammas`; where that does not choose, it is
        scikit-learn's default, 1/n_features for most kernels.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1
        Constant term of the polynomial and sigmoid kernels.
    kernel_params : dict, default=None
        Further parameters of the kernel.
    gammas : sequence, "auto" or None, default=None
        Values of gamma to compare, each with its own landmarks and pass. None uses
        `gamma` alone. If that is None too, and there are 10,000 rows or more, at most
        1024 features and a kernel of the Euclidean distance, it compares gamma="scale"
        with gamma="matrix", on a sample alone if the matrix is clearly better there.
        "auto" does the same, and with fewer rows compares 1/16, 1/4, 1, 4 and 16 times
        gamma="scale".
    cv : None, "gcv", "loo", int, splitter or iterable, default=None
        "gcv" is generalised cross-validation, "loo" exact leave-one-out, an int the
        number of random folds. A splitter or an iterable of (train, test) row numbers
        is used as given. None means "loo" with `scoring`, leave-one-out of at most
        10,000 rows where gamma="ard" or "matrix" is compared, and else "gcv".
    scoring : str or callable, default=None
        Scorer of scikit-learn for predictions of held-out rows, by name or as
        `scorer(estimator, X, y)`, whose X are row numbers. None is the negative mean
        squared error.
    alpha_per_target : bool, default=False
        Whether to select one alpha per target.
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
    fit_intercept : bool, default=False
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
    alpha_ : float or ndarray of shape (n_targets,)
        Selected alpha.
    gamma_ : object
        Selected gamma. With gamma="learn", "ard" or "matrix", the learnt one: a number,
        one per feature, or a matrix.
    n_landmarks_ : int
        Number of landmarks of the model.
    best_score_ : float or ndarray of shape (n_targets,)
        Score of the selected parameters: the negative mean squared error, or that of
        `scoring`.
    scores_ : ndarray of shape ([n_gammas,] [n_numbers,] n_alphas[, n_targets])
        Scores of all candidates. The dimensions in brackets exist if several values
        were compared, the last one with `alpha_per_target`.
    n_landmarks_path_ : ndarray of int
        The numbers of landmarks, ascending.
    alphas_ : ndarray of shape (n_alphas,)
        Values of alpha that were compared.
    gammas_ : list
        The candidates.
    dual_coef_ : ndarray of shape (n_landmarks,) or (n_landmarks, n_targets)
        Coefficients of the landmarks. Predictions are `k(X, X_fit_) @ dual_coef_ +
        intercept_`.
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
    risk_bound_ : RiskBound or None
        Bound on the risk relative to exact kernel ridge regression, if one is proven.
    n_features_in_ : int
        Number of features seen during fit.
    feature_importances_ : ndarray of shape (n_features,)
        With gamma="ard" or "matrix": weight of each feature in the learnt distance, for
        features of variance 1. They sum to 1.

    See Also
    --------
    KernelRidge : The same model with a given alpha.
    KernelRidgeClassifierCV : The same search for classification.
    sklearn.linear_model.RidgeCV : Cross-validated linear ridge regression.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import KernelRidgeCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (3000, 1))
    >>> y = np.sin(X[:, 0]) + 0.5 * rng.standard_normal(3000)
    >>> model = KernelRidgeCV(np.logspace(-4, 4, 9), gamma=1.0)
    >>> model = model.set_params(n_landmarks=50, random_state=0).fit(X, y)
    >>> bool(abs(model.best_score_ + 0.25) < 0.02)
    True
    """

    _bool_params = (
        "alpha_per_target",
        "fit_intercept",
        "optimize_landmarks",
        "prefer_fewer",
    )

    def __init__(
        self,
        alphas: Any = None,
        *,
        kernel: Any = "rbf",
        gamma: Any = None,
        degree: Any = 3,
        coef0: Any = 1,
        kernel_params: dict[str, Any] | None = None,
        gammas: Any = None,
        cv: Any = None,
        scoring: Any = None,
        alpha_per_target: bool = False,
        n_landmarks: Any = 1000,
        prefer_fewer: bool = False,
        sampler: Any = "auto",
        max_spectral_error: float | None = None,
        max_trace_error: float | None = None,
        optimize_landmarks: bool = False,
        fit_intercept: bool = False,
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
        self.alpha_per_target = alpha_per_target
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
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Targets, or a file with targets such as "y.npy". None if the source has
            them: `sources.open(path, target=...)`.
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
            self._search(problem, self._criterion(problem))
        return self

    def _criterion(self, problem: KernelProblem) -> SearchCriterion:
        """Squared errors, or the scores of held-out rows by the scorer."""
        scorer, Y = check_scorer(self.scoring, self), problem.source.targets
        default_cv, allowed = "gcv", "'gcv', 'loo'"
        if scorer is not None:
            default_cv, allowed = "loo", "'loo'"
        splits = resolve_splits(
            default_cv if self.cv is None else self.cv,
            Y[:, 0] if isinstance(Y, np.ndarray) and Y.shape[1] == 1 else Y,
            as_seed(self.random_state),
            allowed,
        )
        measure = None
        if scorer is not None:
            measure = ScorerErrors(scorer, bool(self.alpha_per_target))
        return SearchCriterion(splits, measure, 0.0)
