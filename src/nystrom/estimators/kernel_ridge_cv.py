"""`KernelRidgeCV`: the whole path over alpha from one pass over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.model_selection import LeaveOneOut, check_cv

from ..engines import Engine
from ..features import FeatureMap
from ..kernels.names import takes_width
from ..landmarks import Landmarks
from ..methods.ridge.cross_validation import Split, cross_validated, leave_one_out
from ..methods.ridge.fit import finish
from ..methods.ridge.problem import Centered
from ..moments import Moments, moments
from ..randomness import Purpose, seed_of, uniforms
from ..sources import Source
from .callbacks import with_callbacks
from .on_landmarks import fitting
from .ridge_base import OnRidge, columns_of, in_library_of


@dataclass(frozen=True, eq=False)
class _Trial:
    """One width: its landmarks, its sums, and the mean squared error of every α."""

    landmarks: Landmarks
    mapping: FeatureMap
    sums: Moments
    source: Source
    errors: np.ndarray  # (a, t)


class KernelRidgeCV(RegressorMixin, OnRidge):
    """Kernel ridge regression on landmarks, with alpha chosen by cross-validation.

    Generalised cross-validation scores all alphas from the one pass that a fit makes;
    exact leave-one-out takes a second one, and folds share the first. Landmarks are
    chosen once, from all rows.

    Parameters
    ----------
    alphas : array-like of float > 0, default=(0.1, 1.0, 10.0)
        The ridges to try.
    kernel, gamma, degree, coef0, kernel_params, n_landmarks, sampler
        As for `KernelRidge`.
    gammas : sequence, default=None
        Widths to try, each with landmarks and a pass of its own, instead of `gamma`.
    cv : None, "gcv", "loo", int, splitter or iterable, default=None
        None or "gcv": generalised cross-validation. "loo": exact leave-one-out. An int:
        so many folds, drawn at random. A scikit-learn splitter or an iterable of
        (train, test) row numbers: those.
    alpha_per_target : bool, default=False
        Whether each target gets an alpha of its own.
    fit_intercept : bool, default=False
        Whether to fit a constant, which the ridge does not shrink.
    ridge, max_trace_error, random_state, n_jobs, verbose
        As for `KernelRidge`.

    Attributes
    ----------
    alpha_ : float or ndarray of shape (n_targets,)
        The alpha chosen.
    gamma_ : object
        The width chosen, of `gammas`; `gamma` where none were given.
    best_score_ : float or ndarray of shape (n_targets,)
        Its score: the negative mean squared error.
    scores_ : ndarray of shape ([n_gammas,] n_alphas[, n_targets])
        The scores of all; by target with `alpha_per_target`.
    alphas_ : ndarray of shape (n_alphas,)
        What was tried.
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
    >>> model = KernelRidgeCV(np.logspace(-4, 4, 9), kernel="rbf", gamma=1.0)
    >>> model = model.set_params(n_landmarks=50, random_state=0).fit(X, y)
    >>> bool(abs(model.best_score_ + 0.25) < 0.02)
    True
    """

    def __init__(
        self,
        alphas=(0.1, 1.0, 10.0),
        *,
        kernel="linear",
        gamma=None,
        degree=3,
        coef0=1,
        kernel_params=None,
        gammas=None,
        cv=None,
        alpha_per_target=False,
        n_landmarks=1000,
        sampler="auto",
        ridge=None,
        max_trace_error=None,
        fit_intercept=False,
        random_state=None,
        n_jobs=None,
        verbose=0,
    ):
        self.alphas = alphas
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.gammas = gammas
        self.cv = cv
        self.alpha_per_target = alpha_per_target
        self.n_landmarks = n_landmarks
        self.sampler = sampler
        self.ridge = ridge
        self.max_trace_error = max_trace_error
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Choose alpha, and fit with it.

        Parameters
        ----------
        X : array-like, CSR matrix or list, of shape (n_samples, n_features)
            Training rows; the square kernel matrix for kernel="precomputed".
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : float or array-like of shape (n_samples,), default=None
            A row of weight w counts as w rows; weight 0 excludes it.

        Returns
        -------
        self : KernelRidgeCV
            The fitted estimator.
        """
        with fitting(self, X, y) as task:
            X, y = self._rows_and_targets(X, y)
            alphas = _check_alphas(self.alphas)
            gammas = self._check_gammas()
            seed = seed_of(self.random_state)
            splits = self._splits(X, y, seed)
            best, curves = None, []
            for gamma in gammas:
                kernel, source, engine = self._resolved(
                    X, task, sample_weight, gamma=gamma
                )
                source = source.having(targets=columns_of(y))
                landmarks = self._chosen(kernel, source, engine)
                trial = self._try(landmarks, source, alphas, splits, engine)
                curves.append(trial.errors)
                if best is None or self._least(trial) < self._least(best):
                    best, self.gamma_ = trial, gamma
            assert best is not None
            chosen = self._choose_alphas(alphas, best.errors)
            fit = finish(
                best.landmarks,
                best.mapping,
                best.sums,
                best.source,
                chosen,
                bool(self.fit_intercept),
            )
            self._keep(
                best.landmarks,
                fit,
                chosen,
                ravel=y.ndim == 1,
                weighted=sample_weight is not None,
            )
            self._keep_scores(
                best.landmarks, alphas, chosen, best.errors, np.array(curves)
            )
        return self

    def predict(self, X, return_std=False, noise=False):
        """Predict the targets of rows, as `KernelRidge.predict` does.

        Parameters
        ----------
        X : array-like, CSR matrix or list, of shape (n_samples, n_features)
            Rows.
        return_std : bool, default=False
            Whether to return the predictive standard deviation too.
        noise : bool, default=False
            Whether the deviation includes the noise of a new target.

        Returns
        -------
        mean : array of shape (n_samples,) or (n_samples, n_targets)
            Predictions, in the precision of X.
        std : ndarray of the same shape
            Only with `return_std`.
        """
        return self._predict(X, return_std=return_std, noise=noise)

    def _check_gammas(self) -> list[Any]:
        if self.gammas is None:
            return [self.gamma]
        if self.gamma is not None:
            raise ValueError(
                f"gamma={self.gamma!r} and gammas={self.gammas!r} both set the width; "
                "give one of them."
            )
        several = isinstance(self.gammas, (Sequence, np.ndarray))
        takes = isinstance(self.kernel, str) and takes_width(self.kernel)
        if not several or isinstance(self.gammas, str) or not len(self.gammas):
            raise ValueError(
                f"gammas={self.gammas!r} is not allowed; it is a sequence of at least "
                "one width."
            )
        if not takes:
            raise ValueError(
                f"gammas={self.gammas!r} cannot be combined with kernel="
                f"{self.kernel!r}; it is for kernels given by name that have a gamma."
            )
        return list(self.gammas)

    def _splits(self, X: Any, y: np.ndarray, seed: int) -> list[Split] | str:
        """(train, test) row numbers, or the name of a score that needs none."""
        cv, n = self.cv, len(y)
        if cv is None or isinstance(cv, str):
            if cv not in (None, "gcv", "loo"):
                raise ValueError(
                    f"cv={cv!r} is not allowed; use 'gcv', 'loo', a number of folds, a "
                    "scikit-learn splitter, or (train, test) row numbers."
                )
            return cv or "gcv"
        if isinstance(cv, LeaveOneOut):
            return "loo"
        if isinstance(cv, (int, np.integer)):
            if isinstance(cv, bool) or not 2 <= cv <= n:
                raise ValueError(
                    f"cv={cv!r} folds cannot be cut from n_samples={n}; use 2 to "
                    "n_samples folds, or cv='gcv'."
                )
            return random_folds(n, int(cv), seed)
        try:
            given = list(check_cv(cv).split(np.zeros((n, 1)), y))
            if not given:
                raise ValueError("there is no split")
            return [(_row_numbers(a, n), _row_numbers(b, n)) for a, b in given]
        except (TypeError, ValueError, IndexError) as error:
            raise ValueError(
                f"cv={cv!r} does not split {n} rows: {error}. Give a scikit-learn "
                "splitter, or pairs of row numbers (train, test), none of them empty."
            ) from error

    def _try(
        self,
        landmarks: Landmarks,
        source: Source,
        alphas: np.ndarray,
        splits: list[Split] | str,
        engine: Engine,
    ) -> _Trial:
        intercept = bool(self.fit_intercept)
        least = float(alphas.min())
        mapping = FeatureMap.for_ridge(landmarks, source, least, center=intercept)
        if not isinstance(splits, str):
            _check_weights(source, splits)
            errors, sums = cross_validated(
                mapping, source, splits, alphas, intercept, engine
            )
            return _Trial(landmarks, mapping, sums, source, errors)
        sums = moments(mapping, source, engine)
        problem = Centered.of(sums, intercept)
        if splits == "gcv":
            errors = problem.path.gcv(alphas)
        else:
            errors = leave_one_out(mapping, problem, source, alphas, engine)
        return _Trial(landmarks, mapping, sums, source, errors)

    def _least(self, trial: _Trial) -> float:
        """The least error that the alphas allow."""
        errors = trial.errors
        if self.alpha_per_target:
            return float(errors.min(axis=0).mean())
        return float(errors.mean(axis=1).min())

    def _choose_alphas(self, alphas: np.ndarray, errors: np.ndarray) -> np.ndarray:
        n_targets = errors.shape[1]
        if self.alpha_per_target:
            return alphas[np.argmin(errors, axis=0)]
        return np.full(n_targets, alphas[np.argmin(errors.mean(axis=1))])

    alpha_: float | np.ndarray
    best_score_: float | np.ndarray

    def _keep_scores(
        self,
        landmarks: Landmarks,
        alphas: np.ndarray,
        chosen: np.ndarray,
        errors: np.ndarray,
        curves: np.ndarray,
    ) -> None:
        by_target = self.alpha_per_target and self.dual_coef_.ndim == 2
        scores = -curves if by_target else -curves.mean(axis=2)
        scores = scores[0] if self.gammas is None else scores
        library = partial(in_library_of, landmarks)
        self.alphas_, self.scores_ = library(alphas), library(scores)
        if by_target:
            self.alpha_ = library(chosen)
            self.best_score_ = library(-errors.min(axis=0))
        else:
            self.alpha_ = float(chosen[0])
            self.best_score_ = float(-errors.mean(axis=1).min())


def _row_numbers(rows: Any, n_rows: int) -> np.ndarray:
    """Row numbers from row numbers or a mask; negative ones count from the end."""
    rows = np.asarray(rows)
    if rows.dtype.kind not in "iub":
        raise ValueError(f"{rows.dtype} values are no row numbers")
    rows = np.arange(n_rows)[rows]
    if not len(rows):
        raise ValueError("a part is empty")
    return rows


def random_folds(n_rows: int, n_folds: int, seed: int) -> list[Split]:
    """Folds of equal size, which rows being decided by numbers addressed by row."""
    order = np.argsort(uniforms(seed, Purpose.FOLD, 0, n_rows), kind="stable")
    fold = np.empty(n_rows, dtype=np.int64)
    fold[order] = np.arange(n_rows) % n_folds
    return [
        (np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(n_folds)
    ]


def _check_weights(source: Source, splits: list[Split]) -> None:
    w = source.weights
    if source.is_weighted and any(
        not w[rows].any() for split in splits for rows in split
    ):
        raise ValueError(
            "A split has only rows of weight 0 to train or to test on; use fewer "
            "folds, or drop such rows."
        )


def _check_alphas(alphas: Any) -> np.ndarray:
    try:
        values = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 1 or not len(values) or not np.all(np.isfinite(values)):
        raise ValueError(
            f"alphas={alphas!r} is not allowed; give one or more finite numbers > 0."
        )
    if np.any(values <= 0):
        raise ValueError(f"alphas={alphas!r} is not allowed; all must be > 0.")
    return values
