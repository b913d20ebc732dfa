"""Grid search of the ridge estimators over gamma, number of landmarks and alpha;
splits, grids, warnings at grid edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import LeaveOneOut, check_cv

from .. import _arrays as arrays
from .._random import Purpose, uniforms
from .._validation import check_bool, check_int
from ..engines import Engine
from ..engines.base import progress_parts
from ..kernels import Kernel
from ..kernels.names import accepts_gamma
from ..landmarks import Landmarks
from ..linalg.cross_kernel import probe_rows
from ..models.model_selection import Measure, PathScores, Split, score_path
from ..models.ridge_solvers import RidgeFit, fit_from_moments
from ..samplers import FixedSize
from ..sources import Source
from ._base import CallbackTask, asarray_like
from ._inputs import gamma_from_data, warn
from ._progress import get_progress_bar
from ._ridge import BaseKernelRidge, as_float_array


def resolve_splits(cv: Any, y: Any, seed: int, allowed: str) -> list[Split] | str:
    """(train, test) row numbers, or the name of a score that needs none.

    `y` has one entry per row: targets, or numbers of classes, which are then spread
    over the folds. `names` are the words that are allowed, as an error says them.
    """
    n = len(y)
    if isinstance(cv, str):
        if cv not in allowed:
            raise ValueError(
                f"cv={cv!r} is not allowed; use {allowed}, a number of folds, a "
                "scikit-learn splitter, or (train, test) row numbers."
            )
        return cv
    if isinstance(cv, LeaveOneOut):
        return "loo"
    if isinstance(cv, (int, np.integer)):
        if isinstance(cv, bool) or not 2 <= cv <= n:
            raise ValueError(
                f"cv={cv!r} folds cannot be cut from n_samples={n}; use 2 to "
                f"n_samples folds, or cv={allowed.split(', ')[0]}."
            )
        is_class_index = getattr(y, "dtype", None) == np.intp
        return random_folds(n, int(cv), seed, y if is_class_index else None)
    try:
        pairs = list(check_cv(cv).split(np.zeros((n, 1)), y[:n]))
        if not pairs:
            raise ValueError("there is no split")
        return [(_as_row_indices(a, n), _as_row_indices(b, n)) for a, b in pairs]
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(
            f"cv={cv!r} does not split {n} rows: {error}. Give a scikit-learn "
            "splitter, or pairs of row numbers (train, test), none of them empty."
        ) from error


def _as_row_indices(rows: Any, n_rows: int) -> np.ndarray:
    """Row numbers from row numbers or a mask; negative ones count from the end."""
    rows = np.asarray(rows)
    if rows.dtype.kind not in "iub":
        raise ValueError(f"{rows.dtype} values are no row numbers")
    rows = np.arange(n_rows)[rows]
    if not len(rows):
        raise ValueError("a part is empty")
    return rows


def random_folds(
    n_rows: int, n_folds: int, seed: int, classes: np.ndarray | None = None
) -> list[Split]:
    """Folds of equal size, which rows being decided by numbers addressed by row.

    With classes each has its share in every fold, but for one row.
    """
    u = uniforms(seed, Purpose.FOLD, 0, n_rows)
    order = (
        np.argsort(u, kind="stable") if classes is None else np.lexsort((u, classes))
    )
    fold = np.empty(n_rows, dtype=np.int64)
    # Class after class: what one leaves of a round, the next goes on with.
    fold[order] = np.arange(n_rows) % n_folds
    return [
        (np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(n_folds)
    ]


def check_split_weights(source: Source, splits: list[Split]) -> None:
    """Every part has rows that count."""
    w = source.weights
    if source.is_weighted and any(
        not w[rows].any() for split in splits for rows in split
    ):
        raise ValueError(
            "A split has only rows of weight 0 to train or to test on; use fewer "
            "folds, or drop such rows."
        )


#: The alphas that are tried where none are given, in units of a typical k(x, x).
DEFAULT_ALPHAS = np.logspace(-3, 3, 13)
#: The widths that gammas="auto" stands for, in units of gamma="scale".
DEFAULT_GAMMA_FACTORS = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)
#: The end of a grid is worth a word where the best there is better than its neighbour
#: by more than this share of the worst error in the grid.
GRID_EDGE_RTOL = 0.01
#: Of a grid that nobody chose.
DEFAULT_GRID_EDGE_RTOL = 0.1
#: Fewer rows than this say too little for that.
MIN_ROWS_TO_WARN = 100


def check_alpha_grid(alphas: Any) -> None:
    """One or more numbers above 0, or None."""
    if alphas is None:
        return
    values = np.atleast_1d(as_float_array(alphas))
    if values.ndim != 1 or not len(values) or not np.all(np.isfinite(values)):
        raise ValueError(
            f"alphas={alphas!r} is not allowed; give one or more finite numbers > 0."
        )
    if np.any(values <= 0):
        raise ValueError(f"alphas={alphas!r} is not allowed; all must be > 0.")


def resolve_alpha_grid(alphas: Any, kernel: Kernel, source: Source) -> np.ndarray:
    """What was given; else the default grid, scaled to the kernel's values."""
    if alphas is not None:
        return np.atleast_1d(as_float_array(alphas))
    diagonal = arrays.to_host(kernel.diag(probe_rows(source).points))
    typical = float(np.mean(np.abs(diagonal), dtype=np.float64))
    is_in_range = 1e-100 < typical < 1e100
    return (
        DEFAULT_ALPHAS * 10.0 ** round(np.log10(typical))
        if is_in_range
        else DEFAULT_ALPHAS
    )


def resolve_gamma_grid(gamma: Any, gammas: Any, kernel: Any) -> list[Any] | None:
    """The widths to try, as they were given; None where they come from the data."""
    takes_gamma = isinstance(kernel, str) and accepts_gamma(kernel)
    if isinstance(gammas, str) and gammas == "auto":
        return None if gamma is None and takes_gamma else [gamma]
    if gammas is None:
        return [gamma]
    if gamma is not None:
        raise ValueError(
            f"gamma={gamma!r} and gammas={gammas!r} both set the width; give one of "
            "them."
        )
    if not is_grid(gammas) or not len(gammas):
        raise ValueError(
            f"gammas={gammas!r} is not allowed; it is a sequence of at least one "
            "width, or 'auto'."
        )
    if not takes_gamma:
        raise ValueError(
            f"gammas={gammas!r} cannot be combined with kernel={kernel!r}; it is for "
            "kernels given by name that have a gamma."
        )
    return list(gammas)


def resolve_landmark_grid(estimator: Any, has_folds: bool) -> list[int] | None:
    """The numbers of landmarks to try, ascending; None where there is but one."""
    given = estimator.n_landmarks
    if not is_grid(given):
        if estimator.prefer_fewer:
            raise ValueError(
                f"prefer_fewer=True has no effect with n_landmarks={given!r}, one "
                "number; give several to choose from, such as [100, 300, 1000], or "
                "prefer_fewer=False."
            )
        return None
    sizes = sorted({check_int(size, "n_landmarks") for size in given})
    if not sizes:
        raise ValueError("n_landmarks is empty; give at least one number.")
    for name in ("max_spectral_error", "max_trace_error"):
        if getattr(estimator, name) is not None:
            raise ValueError(
                f"n_landmarks={given!r} and {name}={getattr(estimator, name)!r} both "
                "say how many landmarks there are to be; give one of them."
            )
    if estimator.prefer_fewer and not has_folds:
        raise ValueError(
            f"prefer_fewer=True needs folds, which cv={estimator.cv!r} has not: "
            "without them there is no standard error. Use cv=5, or prefer_fewer=False."
        )
    return sizes


def is_grid(given: Any) -> bool:
    """Whether several values were given."""
    if isinstance(given, np.ndarray):
        return given.ndim > 0
    text = isinstance(given, (str, bytes, bytearray, memoryview))
    return isinstance(given, Sequence) and not text


def warn_at_grid_edge(
    name: str,
    values: Sequence[Any],
    errors: np.ndarray,
    standard_error: float,
    *,
    is_user_grid: bool,
) -> bool:
    """Say so where the best of a grid is at an end, and clearly better than inside.

    `doubt` is the standard error of the best, 0 where it is not known. Two values are
    no grid: one of them is always at an end.
    """
    if not all(isinstance(v, (int, float, np.number)) for v in values):
        return False  # a rule, or a width per feature: no order to be at the end of
    grid, first = np.unique(np.asarray(values, dtype=np.float64), return_index=True)
    if len(grid) < 3:
        return False
    errors = errors[first]
    best = int(np.argmin(errors))
    inner = {0: 1, len(grid) - 1: len(grid) - 2}.get(best)
    if inner is None:
        return False
    worst = float(np.abs(errors[np.isfinite(errors)]).max(initial=0.0))
    share = GRID_EDGE_RTOL if is_user_grid else DEFAULT_GRID_EDGE_RTOL
    if not errors[inner] - errors[best] > max(share * worst, 2 * standard_error):
        return False
    step = grid[best] / grid[inner]
    further = " and ".join(f"{grid[best] * step**i:.3g}" for i in (1, 2))
    which, direction = ("smallest", "smaller") if best == 0 else ("largest", "larger")
    warn(
        f"The best of {name}, {grid[best]:.4g}, is the {which} that was tried, and the "
        f"error still falls towards {direction} ones, from {errors[inner]:.4g} at "
        f"{grid[inner]:.4g} to {errors[best]:.4g}. Try {direction} {name} too, such as "
        f"{further}."
    )
    return True


@dataclass(frozen=True, eq=False)
class SearchCriterion:
    """How what is tried is judged."""

    splits: list[Split] | str
    measure: Measure | None  # None: squared errors
    best_possible: float  # scores are this, less the errors


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The best of all, fitted to all rows."""

    landmarks: Landmarks
    fit: RidgeFit
    alphas: np.ndarray  # (t,) with white noise of the kernel
    source: Source
    engine: Engine


class RidgeSearchMixin(BaseKernelRidge):
    """The base of KernelRidgeCV and KernelRidgeClassifierCV."""

    alphas: Any
    gammas: Any
    cv: Any
    prefer_fewer: bool
    alpha_per_target: bool = False
    gamma_: Any
    gammas_: list[Any]
    n_landmarks_: int
    scores_: np.ndarray
    n_landmarks_path_: np.ndarray
    alphas_: np.ndarray
    alpha_: float | np.ndarray
    best_score_: float | np.ndarray

    def _search(
        self,
        X: Any,
        Y: Any,
        sample_weight: Any,
        task: CallbackTask,
        search: SearchCriterion,
        ravel: bool,
    ) -> SearchResult:
        """Try everything, fit with the best, and keep the scores."""
        resolve = partial(self._resolve_inputs, X, task, sample_weight)
        check_bool(self.prefer_fewer, "prefer_fewer")
        has_folds = not isinstance(search.splits, str) and len(search.splits) > 1
        sizes = resolve_landmark_grid(self, has_folds)
        gammas = resolve_gamma_grid(self.gamma, self.gammas, self.kernel)
        if gammas is None:
            _, source, engine = resolve(gamma=1.0)
            preparing, _ = progress_parts(engine.progress, 0.02, 1.0)
            with preparing:
                scale = gamma_from_data("scale", self.kernel, source, engine)
            gammas = [scale * factor for factor in DEFAULT_GAMMA_FACTORS]
        self.gammas_ = list(gammas)
        best, alphas = None, None
        errors_by_gamma: list[np.ndarray] = []  # sums of other widths are not kept
        stages = progress_parts(get_progress_bar(self.verbose), *[1.0] * len(gammas))
        for gamma, stage in zip(gammas, stages, strict=True):
            with stage:
                kernel, source, engine = resolve(gamma=gamma, targets=Y)
                if alphas is None:
                    alphas = resolve_alpha_grid(self.alphas, kernel, source)
                scored = self._score_grid(kernel, source, sizes, alphas, search, engine)
            errors_by_gamma.append(scored.errors)
            min_error = self._min_errors(scored.errors).min()
            if best is None or min_error < self._min_errors(best.errors).min():
                best, self.gamma_ = scored, gamma
        assert best is not None
        assert alphas is not None
        size_index = self._choose_size(best)
        landmarks, mapping, sums = best.prefix(size_index)
        best_alphas = self._choose_alphas(alphas, best.errors[size_index], Y.shape[1])
        intercept, white = bool(self.fit_intercept), self._white_noise()
        fit = fit_from_moments(
            landmarks, mapping, sums, source, best_alphas + white, intercept, engine
        )
        self._set_scores(
            landmarks,
            alphas,
            best_alphas,
            best,
            size_index,
            errors_by_gamma,
            search.best_possible,
            ravel,
        )
        if source.n_rows >= MIN_ROWS_TO_WARN:
            self._warn_at_grid_edges(alphas, gammas, best, size_index, errors_by_gamma)
        return SearchResult(landmarks, fit, best_alphas + white, source, engine)

    def _score_grid(
        self,
        kernel: Kernel,
        source: Source,
        sizes: list[int] | None,
        alphas: np.ndarray,
        search: SearchCriterion,
        engine: Engine,
    ) -> PathScores:
        if not isinstance(search.splits, str):
            check_split_weights(source, search.splits)
        stopping_rule = None if sizes is None else FixedSize(sizes[-1])
        landmarks = self._select_landmarks(
            kernel, source, engine, stopping_rule, passes_after=1.5
        )
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
            alphas + self._white_noise(),
            search.splits,
            engine,
            fit_intercept=bool(self.fit_intercept),
            measure=search.measure,
        )

    def _min_errors(self, errors: np.ndarray) -> np.ndarray:
        """(sizes,): the least error that the alphas allow."""
        if self.alpha_per_target:
            return errors.min(axis=1).mean(axis=1)
        return errors.mean(axis=2).min(axis=1)

    def _choose_size(self, scored: PathScores) -> int:
        """The place of the best number of landmarks, or of the fewest as good."""
        min_errors = self._min_errors(scored.errors)
        best = int(np.argmin(min_errors))
        if not self.prefer_fewer or scored.standard_errors is None:
            return best
        alpha = np.argmin(scored.errors[best].mean(axis=1))
        max_error = min_errors[best] + scored.standard_errors[best, alpha].mean()
        return int(np.flatnonzero(min_errors <= max_error)[0])

    def _choose_alphas(
        self, alphas: np.ndarray, errors: np.ndarray, n_targets: int
    ) -> np.ndarray:
        """(t,): of equally good ones the largest, which shrinks most."""
        order = np.argsort(-alphas, kind="stable")
        alphas, errors = alphas[order], errors[order]
        if self.alpha_per_target:
            return alphas[np.argmin(errors, axis=0)]
        return np.full(n_targets, alphas[np.argmin(errors.mean(axis=1))])

    def _set_scores(
        self,
        landmarks: Landmarks,
        alphas: np.ndarray,
        best_alphas: np.ndarray,
        best: PathScores,
        size_index: int,
        errors_by_gamma: list[np.ndarray],
        best_possible: float,
        ravel: bool,
    ) -> None:
        errors = np.array(errors_by_gamma)
        by_target = self.alpha_per_target and not ravel
        scores = best_possible - (errors if by_target else errors.mean(axis=3))
        if not is_grid(self.n_landmarks):
            scores = scores[:, 0]
        is_single_gamma = self.gammas is None or isinstance(self.gammas, str)
        scores = scores[0] if is_single_gamma and len(errors_by_gamma) == 1 else scores
        as_array = partial(asarray_like, landmarks)
        self.alphas_, self.scores_ = as_array(alphas), as_array(scores)
        best_errors = best.errors[size_index]
        if by_target:
            self.alpha_ = as_array(best_alphas)
            self.best_score_ = as_array(best_possible - best_errors.min(axis=0))
        else:
            self.alpha_ = float(best_alphas[0])
            self.best_score_ = float(best_possible - best_errors.mean(axis=1).min())
        self.n_landmarks_ = len(landmarks)
        self.n_landmarks_path_ = as_array(np.array(best.sizes))

    def _warn_at_grid_edges(
        self,
        alphas: np.ndarray,
        gammas: list[Any],
        best: PathScores,
        size_index: int,
        errors_by_gamma: list[np.ndarray],
    ) -> None:
        """Say in which direction to go on, where the best is at the end of a grid."""
        errors, standard_errors = best.errors[size_index], best.standard_errors
        alpha_standard_errors = (
            np.zeros_like(errors)
            if standard_errors is None
            else standard_errors[size_index]
        )
        if not self.alpha_per_target:
            errors, alpha_standard_errors = (
                errors.mean(axis=1)[:, None],
                alpha_standard_errors.mean(axis=1)[:, None],
            )
        is_user_grid = self.alphas is not None
        for target_errors, target_standard_errors in zip(
            errors.T, alpha_standard_errors.T, strict=True
        ):
            standard_error = float(target_standard_errors[np.argmin(target_errors)])
            if warn_at_grid_edge(
                "alphas",
                list(alphas),
                target_errors,
                standard_error,
                is_user_grid=is_user_grid,
            ):
                break  # once is enough
        gamma_errors = np.array(
            [self._min_errors(curve).min() for curve in errors_by_gamma]
        )
        gamma_standard_error = float(alpha_standard_errors.ravel()[np.argmin(errors)])
        is_user_grid = not isinstance(self.gammas, str)
        warn_at_grid_edge(
            "gammas",
            gammas,
            gamma_errors,
            gamma_standard_error,
            is_user_grid=is_user_grid,
        )
