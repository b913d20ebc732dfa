"""`KernelRidgeCV`: the whole path over alpha from one pass over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.model_selection import LeaveOneOut, check_cv

from ..engines import Engine
from ..kernels import Kernel
from ..kernels.names import takes_width
from ..landmarks import Landmarks
from ..methods.ridge.cross_validation import Scored, Split, score_path
from ..methods.ridge.fit import finish
from ..randomness import Purpose, seed_of, uniforms
from ..refusals import count, switch
from ..samplers import Size
from ..sources import Source
from .callbacks import with_callbacks
from .lazily import chunk_by_chunk
from .on_landmarks import fitting, in_library_of
from .ridge_base import OnRidge, Scoring, as_numbers


class KernelRidgeCV(Scoring, RegressorMixin, OnRidge):
    """Kernel ridge regression on landmarks, with alpha chosen by cross-validation.

    Generalised cross-validation scores all alphas from the one pass that a fit makes;
    exact leave-one-out takes a second one, and folds share the first. Landmarks are
    chosen once, from all rows; several numbers of them are scored from the same pass,
    as the first ones of the most.

    Parameters
    ----------
    alphas : array-like of float > 0, default=(0.1, 1.0, 10.0)
        The ridges to try.
    kernel, gamma, degree, coef0, kernel_params, sampler
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
    n_landmarks : int, sequence of int or None, default=1000
        How many landmarks, as for `KernelRidge`; or the numbers to try, such as
        [100, 300, 1000].
    prefer_fewer : bool, default=False
        Which of several numbers of landmarks: the best, or with True the fewest that
        score within one standard error, over the folds of `cv`, of the best.
    ridge, max_trace_error, random_state, n_jobs, verbose
        As for `KernelRidge`.

    Attributes
    ----------
    alpha_ : float or ndarray of shape (n_targets,)
        The alpha chosen.
    gamma_ : object
        The width chosen, of `gammas`; `gamma` where none were given; where that is
        "learn" or "learn_each", what was learnt.
    n_landmarks_ : int
        How many landmarks the model has: the number chosen, where several were given.
    best_score_ : float or ndarray of shape (n_targets,)
        Its score: the negative mean squared error.
    scores_ : ndarray of shape ([n_gammas,] [n_numbers,] n_alphas[, n_targets])
        The scores of all; by number where `n_landmarks` is a sequence, in ascending
        order, and by target with `alpha_per_target`.
    n_landmarks_path_ : ndarray of int
        The numbers of landmarks tried, ascending.
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

    _switches = ("alpha_per_target", "fit_intercept", "prefer_fewer")
    gamma_: Any
    n_landmarks_: int
    scores_: np.ndarray
    n_landmarks_path_: np.ndarray
    alphas_: np.ndarray

    def __init__(
        self,
        alphas: Any = (0.1, 1.0, 10.0),
        *,
        kernel: Any = "linear",
        gamma: Any = None,
        degree: Any = 3,
        coef0: Any = 1,
        kernel_params: dict[str, Any] | None = None,
        gammas: Any = None,
        cv: Any = None,
        alpha_per_target: bool = False,
        n_landmarks: Any = 1000,
        prefer_fewer: bool = False,
        sampler: Any = "auto",
        ridge: float | None = None,
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
        self.alpha_per_target = alpha_per_target
        self.n_landmarks = n_landmarks
        self.prefer_fewer = prefer_fewer
        self.sampler = sampler
        self.ridge = ridge
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
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets. None where the source has them: `sources.open(path, target=...)`.
        sample_weight : float or array-like of shape (n_samples,), default=None
            A row of weight w counts as w rows; weight 0 excludes it.

        Returns
        -------
        self : KernelRidgeCV
            The fitted estimator.
        """
        with fitting(self, X, y) as task:
            X, Y, ravel = self._rows_and_targets(X, y)
            alphas = _check_alphas(self.alphas)
            gammas = self._check_gammas()
            seed = seed_of(self.random_state)
            splits = self._splits(Y, seed)
            sizes = self._check_sizes(splits)
            best, curves = None, []
            for gamma in gammas:
                kernel, source, engine = self._resolved(
                    X, task, sample_weight, targets=Y, gamma=gamma
                )
                scored = self._score(kernel, source, sizes, alphas, splits, engine)
                curves.append(scored.errors)
                if best is None or self._least(scored).min() < self._least(best).min():
                    best, self.gamma_ = scored, gamma
            assert best is not None
            place = self._choose_size(best)
            landmarks, mapping, sums = best.at(place)
            errors = best.errors[place]
            chosen = self._choose_alphas(alphas, errors)
            intercept = bool(self.fit_intercept)
            fit = finish(landmarks, mapping, sums, source, chosen, intercept)
            self._keep(
                landmarks,
                fit,
                chosen,
                ravel=ravel,
                weighted=source.is_weighted,
            )
            self._keep_scores(landmarks, alphas, chosen, errors, np.array(curves))
            self.n_landmarks_ = len(landmarks)
            self.n_landmarks_path_ = in_library_of(landmarks, np.array(best.sizes))
        return self

    @chunk_by_chunk
    def predict(
        self, X: Any, return_std: bool = False, noise: bool = False, out: Any = None
    ) -> Any:
        """Predict the targets of rows, as `KernelRidge.predict` does.

        Parameters
        ----------
        X : array-like, CSR matrix or list, of shape (n_samples, n_features)
            Rows.
        return_std : bool, default=False
            Whether to return the predictive standard deviation too.
        noise : bool, default=False
            Whether the deviation includes the noise of a new target.
        out : str, Path or array, default=None
            Where predictions go, instead of a new array: a file whose name ends in
            `.npy`, `.parquet` or `.zarr`, written block by block, complete or not at
            all; or an array to be filled. With `return_std` twice as many columns: the
            predictions, and after them their deviations.

        Returns
        -------
        mean : array of shape (n_samples,) or (n_samples, n_targets)
            Predictions, in the precision of X; `out` where it is given.
        std : ndarray of the same shape
            Only with `return_std`, and without `out`.
        """
        return self._predict(X, return_std=return_std, noise=noise, out=out)

    def _check_gammas(self) -> list[Any]:
        if self.gammas is None:
            return [self.gamma]
        if self.gamma is not None:
            raise ValueError(
                f"gamma={self.gamma!r} and gammas={self.gammas!r} both set the width; "
                "give one of them."
            )
        several = _is_list(self.gammas)
        takes = isinstance(self.kernel, str) and takes_width(self.kernel)
        if not several or not len(self.gammas):
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

    def _splits(self, Y: Any, seed: int) -> list[Split] | str:
        """(train, test) row numbers, or the name of a score that needs none."""
        cv, n = self.cv, len(Y)
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
            y = Y[:n]
            y = y[:, 0] if y.shape[1] == 1 else y
            given = list(check_cv(cv).split(np.zeros((n, 1)), y))
            if not given:
                raise ValueError("there is no split")
            return [(_row_numbers(a, n), _row_numbers(b, n)) for a, b in given]
        except (TypeError, ValueError, IndexError) as error:
            raise ValueError(
                f"cv={cv!r} does not split {n} rows: {error}. Give a scikit-learn "
                "splitter, or pairs of row numbers (train, test), none of them empty."
            ) from error

    def _check_sizes(self, splits: list[Split] | str) -> list[int] | None:
        """The numbers of landmarks to try, ascending; None where there is but one."""
        given = self.n_landmarks
        if not _is_list(given):
            if switch(self.prefer_fewer, "prefer_fewer"):
                raise ValueError(
                    f"prefer_fewer=True has no effect with n_landmarks={given!r}, one "
                    "number; give several to choose from, such as [100, 300, 1000], or "
                    "prefer_fewer=False."
                )
            return None
        sizes = sorted({count(size, "n_landmarks") for size in given})
        if not sizes:
            raise ValueError("n_landmarks is empty; give at least one number.")
        for name in ("ridge", "max_trace_error"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"n_landmarks={given!r} and {name}={getattr(self, name)!r} both "
                    "say how many landmarks there are to be; give one of them."
                )
        if self.prefer_fewer and (isinstance(splits, str) or len(splits) < 2):
            raise ValueError(
                f"prefer_fewer=True needs folds, which cv={self.cv!r} has not: without "
                "them there is no standard error. Use cv=5, or prefer_fewer=False."
            )
        return sizes

    def _score(
        self,
        kernel: Kernel,
        source: Source,
        sizes: list[int] | None,
        alphas: np.ndarray,
        splits: list[Split] | str,
        engine: Engine,
    ) -> Scored:
        if not isinstance(splits, str):
            _check_weights(source, splits)
        goal = None if sizes is None else Size(sizes[-1])
        landmarks = self._chosen(kernel, source, engine, goal)
        if sizes is None:
            sizes = [len(landmarks)]
        else:
            landmarks = landmarks.in_nested_order()
            if landmarks.indefinite:
                raise ValueError(
                    f"n_landmarks={self.n_landmarks!r}: the first landmarks of several "
                    f"cannot be told apart for {kernel}, which is not positive "
                    "semi-definite; give one number."
                )
            sizes = sorted({min(size, len(landmarks)) for size in sizes})
        return score_path(
            landmarks,
            source,
            sizes,
            alphas,
            splits,
            engine,
            fit_intercept=bool(self.fit_intercept),
        )

    def _least(self, scored: Scored) -> np.ndarray:
        """(sizes,): the least error that the alphas allow."""
        if self.alpha_per_target:
            return scored.errors.min(axis=1).mean(axis=1)
        return scored.errors.mean(axis=2).min(axis=1)

    def _choose_size(self, scored: Scored) -> int:
        """The place of the best number of landmarks, or of the fewest as good."""
        least = self._least(scored)
        best = int(np.argmin(least))
        if not self.prefer_fewer or scored.deviations is None:
            return best
        alpha = np.argmin(scored.errors[best].mean(axis=1))
        allowed = least[best] + scored.deviations[best, alpha].mean()
        return int(np.flatnonzero(least <= allowed)[0])

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
        scores = -curves if by_target else -curves.mean(axis=3)
        if not _is_list(self.n_landmarks):
            scores = scores[:, 0]
        scores = scores[0] if self.gammas is None else scores
        library = partial(in_library_of, landmarks)
        self.alphas_, self.scores_ = library(alphas), library(scores)
        if by_target:
            self.alpha_ = library(chosen)
            self.best_score_ = library(-errors.min(axis=0))
        else:
            self.alpha_ = float(chosen[0])
            self.best_score_ = float(-errors.mean(axis=1).min())


def _is_list(given: Any) -> bool:
    if isinstance(given, np.ndarray):
        return given.ndim > 0
    text = isinstance(given, (str, bytes, bytearray, memoryview))
    return isinstance(given, Sequence) and not text


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
    values = np.atleast_1d(as_numbers(alphas))
    if values.ndim != 1 or not len(values) or not np.all(np.isfinite(values)):
        raise ValueError(
            f"alphas={alphas!r} is not allowed; give one or more finite numbers > 0."
        )
    if np.any(values <= 0):
        raise ValueError(f"alphas={alphas!r} is not allowed; all must be > 0.")
    return values
