"""KernelRidgeCV: KernelRidge with alpha, gamma and the number of landmarks chosen by
cross-validation.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .._random import as_seed
from ._problem import KernelProblem
from ._progress import fit_context, with_callbacks
from ._ridge import BaseKernelRegressor
from ._search import (
    RegressionScorerErrors,
    RidgeSearchMixin,
    SearchCriterion,
    check_scorer,
    resolve_splits,
)


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
        power of ten nearest to a typical k(x, x), which of many kernels is 1.
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
    max_spectral_error, max_trace_error, random_state, n_jobs, verbose
        As for `KernelRidge`.

    Attributes
    ----------
    alpha_ : float or ndarray of shape (n_targets,)
        The alpha chosen.
    gamma_ : object
        The width chosen, of `gammas`; `gamma` where none were given; where that is
        "learn" or "ard", what was learnt.
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

    _bool_params = ("alpha_per_target", "fit_intercept", "prefer_fewer")

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
            measure = RegressionScorerErrors(scorer, bool(self.alpha_per_target))
        return SearchCriterion(splits, measure, 0.0)
