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
        width, by the likelihood of 1000 rows' targets under a model of at most 250
        landmarks; "ard", one width per feature; "matrix", a linear map of the
        features. The last two compare a few candidates by their error on held-out
        rows of a sample of at most 6000, "scale", "median" and "learn" among them.
        None is scikit-learn's default.
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
    optimize_landmarks : bool, default=False
        Whether to move the landmarks, and to refine a gamma that is learnt, along the
        gradient of a bound on the likelihood of the targets. They are then not rows of
        X, and predict far better where few landmarks are too few for K. At most 60
        steps on 24 rows per landmark, at most 25,000; kept only if the error on
        held-out rows falls. They begin at uniform rows, or at those of a `sampler`
        other than "auto".
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
        What gamma="learn", "ard" or "matrix" has learnt: a number, one per feature, or
        a matrix; absent otherwise.
    feature_importances_ : ndarray of shape (n_features,)
        With gamma="ard" or "matrix": how much each feature counts in the distance, the
        diagonal of the matrix times the variance of the feature; they add up to 1.
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
                landmarks = self._select_landmarks_for_risk(problem, stopping_rule)
                fit = fit_ridge(landmarks, task, solver)
            self._set_fit(landmarks, fit, problem, float(alphas.min()))
            self.residual_, self._running = fit.residual, None
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
        with fit_context(self, X, y):
            self._fit_batch(X, y, sample_weight)
            self.residual_ = None
        return self


class KernelRidgeCV(BaseKernelRegressor, RidgeSearchMixin):
    """Kernel ridge regression on landmarks, with alpha chosen by cross-validation.

    Generalised cross-validation scores all alphas from the one pass that a fit makes;
    exact leave-one-out takes a second one, and folds share the first. Landmarks are
    chosen once, from all rows; several numbers of them are scored from the same pass,
    as the first ones of the most. Where the best is at the end of a grid, and clearly
    better than its neighbour, a warning says in which direction to go on.

    Parameters
    ----------
    alphas : array-like of float > 0, default=None
        The ridges to try. None: 13 of them, from a thousandth to a thousand times the
        power of ten nearest to a typical k(x, x), which of many kernels is 1; from a
        millionth, where gamma is "ard" or "matrix" or landmarks are optimised.
    kernel : str, callable or Kernel, default="rbf"
        As for `KernelRidge`, whose default is scikit-learn's "linear".
    gamma, degree, coef0, kernel_params, sampler
        As for `KernelRidge`.
    gammas : sequence or "auto", default=None
        Widths to try, each with landmarks and a pass of its own, instead of `gamma`.
        "auto": 1/16, 1/4, 1, 4 and 16 times gamma="scale".
    cv : None, "gcv", "loo", int, splitter or iterable, default=None
        None or "gcv": generalised cross-validation. "loo": exact leave-one-out. An int:
        so many folds, drawn at random. A scikit-learn splitter or an iterable of
        (train, test) row numbers: those. With `scoring` None is "loo".
    scoring : str or callable, default=None
        A scorer of scikit-learn's, by name or `scorer(estimator, X, y)`, for what is
        predicted of rows left out, in one more pass: by folds for each of them, by
        leave-one-out for all rows at once. One number is held for each row of a fold,
        target, alpha and number of landmarks. Its X are row numbers; weights are
        passed on as `sample_weight`. None: the negative mean squared error.
    alpha_per_target : bool, default=False
        Whether each target gets an alpha of its own.
    fit_intercept : bool, default=False
        Whether to fit a constant, which the ridge does not shrink.
    n_landmarks : int, sequence of int or None, default=1000
        How many landmarks, as for `KernelRidge`; or the numbers to try, such as
        [100, 300, 1000].
    prefer_fewer : bool, default=False
        Which of several numbers of landmarks: the best, or with True the fewest that
        score within one standard error, over the folds of `cv`, of the best.
    max_spectral_error, max_trace_error, optimize_landmarks, random_state, n_jobs,\
 verbose
        As for `KernelRidge`.

    Attributes
    ----------
    alpha_ : float or ndarray of shape (n_targets,)
        The alpha chosen.
    gamma_ : object
        The width chosen, of `gammas`; `gamma` where none were given; where that is
        "learn", "ard" or "matrix", what was learnt.
    n_landmarks_ : int
        How many landmarks the model has: the number chosen, where several were given.
    best_score_ : float or ndarray of shape (n_targets,)
        Its score: the negative mean squared error, or that of `scoring`.
    scores_ : ndarray of shape ([n_gammas,] [n_numbers,] n_alphas[, n_targets])
        The scores of all; by number where `n_landmarks` is a sequence, in ascending
        order, and by target with `alpha_per_target`.
    n_landmarks_path_ : ndarray of int
        The numbers of landmarks, ascending.
    alphas_ : ndarray of shape (n_alphas,)
    gammas_ : list
        The candidates.
    dual_coef_, X_fit_, intercept_, landmarks_, approximation_error_, solver_, \
risk_bound_, n_features_in_
        As for `KernelRidge`, for the alpha chosen.

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
        """Choose alpha, and fit with it.

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
        self : KernelRidgeCV
            The fitted estimator.
        """
        with fit_context(self, X, y):
            problem = self._validate(X, y, sample_weight, gamma=None)
            landmarks, fit, task = self._search(problem, self._criterion(problem))
            self._set_fit(landmarks, fit, problem, float(task.alphas.min()))
        return self

    def _criterion(self, problem: KernelProblem) -> SearchCriterion:
        """How: by squared errors, or by what a scorer says of rows left out."""
        scorer, Y = check_scorer(self.scoring, self), problem.source.targets
        assert Y is not None
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
