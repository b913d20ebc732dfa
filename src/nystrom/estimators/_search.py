"""Grid search of the ridge estimators over gamma, number of landmarks and alpha;
splits, scorers of held-out rows, grids, warnings at grid edges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import LeaveOneOut, check_cv

from .. import _arrays as arrays
from .._random import Purpose, Stream
from .._validation import both_given_error, check_choice, check_int, check_numbers
from ..engines import Engine
from ..kernels import Kernel
from ..kernels.names import accepts_gamma
from ..landmarks import Landmarks
from ..linalg.cross_kernel import probe_rows
from ..models.calibration import ProbabilityLink, class_indices
from ..models.model_selection import (
    HeldOutSet,
    Measure,
    PathScores,
    Split,
    fit_probability_links,
    remove_class_weights,
    score_path,
)
from ..models.ridge import RidgeFit
from ..models.ridge_solvers import fit_from_moments
from ..samplers import FixedSize
from ..sources import Source
from ._base import asarray_like
from ._learning import can_learn_matrix
from ._problem import (
    LANDMARK_COUNT,
    LEARN_ARD,
    LEARN_MATRIX,
    KernelProblem,
    gamma_from_data,
)
from ._progress import warn
from ._ridge import BaseKernelRidge


def resolve_splits(cv: Any, y: Any, seed: int, allowed: str) -> list[Split] | str:
    """(train, test) row numbers, or the name of a score that needs none.

    `y` has one entry per row: targets, or numbers of classes, of which each fold gets
    its share. `allowed` are the words that cv may be, as an error lists them.
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
                f"cv={cv!r} folds are not possible with n_samples={n}; use 2 to "
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
    u = Stream(seed, Purpose.FOLD).uniforms(0, n_rows)
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


#: The alphas where none are given, in units of a typical k(x, x) and weight.
DEFAULT_ALPHAS = np.logspace(-3, 3, 13)
LEARNED_METRIC_ALPHAS = np.logspace(-6, 3, 19)
#: The widths that gammas="auto" stands for, in units of gamma="scale".
DEFAULT_GAMMA_FACTORS = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)
#: From so many rows on a matrix is learnt instead, in about the time of one more fit.
MIN_METRIC_ROWS = 10_000
#: A learnt matrix is not compared with gamma="scale" on all rows where its error on
#: held-out rows is below this share of that of "scale".
MAX_CLEAR_ERROR_RATIO = 0.9
#: The end of a grid is worth a word where the best there is better than its neighbour
#: by more than this share of the worst error in the grid.
GRID_EDGE_RTOL = 0.1
#: Fewer rows than this say too little for that.
MIN_ROWS_TO_WARN = 100


def default_alpha_grid(
    kernel: Kernel, source: Source, *, is_learned: bool
) -> np.ndarray:
    """The default grid, scaled to the kernel's values and the weights.

    Under a metric that was learnt, far smaller ridges may be best.
    """
    diagonal = arrays.to_host(kernel.diag(probe_rows(source).points))
    typical = float(np.mean(np.abs(diagonal), dtype=np.float64))
    if source.is_weighted:
        typical *= source.total_weight / np.count_nonzero(source.weights)
    is_in_range = 1e-100 < typical < 1e100
    grid = LEARNED_METRIC_ALPHAS if is_learned else DEFAULT_ALPHAS
    return grid * (10.0 ** round(np.log10(typical)) if is_in_range else 1)


def resolve_gamma_grid(gamma: Any, gammas: Any, kernel: Any) -> list[Any] | None:
    """The widths to try, as they were given; None where they come from the data."""
    takes_gamma = isinstance(kernel, str) and accepts_gamma(kernel)
    if gammas is None or (isinstance(gammas, str) and gammas == "auto"):
        return None if gamma is None and takes_gamma else [gamma]
    if gamma is not None:
        raise both_given_error(f"gamma={gamma!r}", f"gammas={gammas!r}", "the width")
    if not is_grid(gammas) or not len(gammas):
        raise ValueError(
            f"gammas={gammas!r} is not allowed; give one width or more, or 'auto'."
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
                f"prefer_fewer=True has no effect with n_landmarks={given!r}; give "
                "several numbers, such as [100, 300, 1000]."
            )
        return None
    sizes = sorted({check_int(size, "n_landmarks") for size in given})
    if not sizes:
        raise ValueError("n_landmarks is empty; give at least one number.")
    for name in ("max_spectral_error", "max_trace_error"):
        if (value := getattr(estimator, name)) is not None:
            raise both_given_error(
                f"n_landmarks={given!r}", f"{name}={value!r}", LANDMARK_COUNT
            )
    if estimator.prefer_fewer and not has_folds:
        raise ValueError(
            "prefer_fewer=True needs the standard error of several folds, but "
            f"cv={estimator.cv!r} has none; use cv=5."
        )
    return sizes


def is_grid(given: Any) -> bool:
    """Whether several values were given."""
    if isinstance(given, np.ndarray):
        return given.ndim > 0
    text = isinstance(given, (str, bytes, bytearray, memoryview))
    return isinstance(given, Sequence) and not text


def warn_at_grid_edge(name: str, values: Sequence[Any], errors: np.ndarray) -> None:
    """Warn where the best of a grid is at an end, and clearly better than inside.

    Two values are no grid: one of them is always at an end.
    """
    if not all(isinstance(v, (int, float, np.number)) for v in values):
        return  # a rule, or a width per feature: no order to be at the end of
    grid, first = np.unique(np.asarray(values, dtype=np.float64), return_index=True)
    errors = errors[first]
    best = int(np.argmin(errors))
    if len(grid) < 3 or 0 < best < len(grid) - 1:
        return
    inner, end, direction = 1, "smallest", "smaller"
    if best > 0:
        inner, end, direction = best - 1, "largest", "larger"
    worst = float(np.abs(errors[np.isfinite(errors)]).max(initial=0.0))
    if errors[inner] - errors[best] > GRID_EDGE_RTOL * worst:
        warn(
            f"The best of {name}, {grid[best]:.4g}, is the {end} of the grid, and the "
            f"error still falls towards {direction} ones. Try {direction} {name} too."
        )


Scorer = Callable[..., Any]


def check_scorer(scoring: Any, estimator: Any) -> Scorer | None:
    """The scorer of this name, or the one given; None for none."""
    if scoring is None:
        return None
    if not callable(scoring):
        check_choice(scoring, "scoring", get_scorer_names())
    return check_scoring(estimator, scoring=scoring)


class HeldOutRegressor(RegressorMixin, BaseEstimator):
    """An estimator for scorers that has predictions of held-out rows alone."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> np.ndarray:
        """Of the rows that were held out, and of no others."""
        return _drop_single_column(self.values)


class HeldOutClassifier(ClassifierMixin, BaseEstimator):
    """A classifier for scorers that has decisions of held-out rows alone."""

    def __init__(
        self, values: np.ndarray, classes: np.ndarray, links: Callable, index: int
    ) -> None:
        self.values, self.classes_ = values, classes
        self.links, self.index = links, index

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def decision_function(self, X: Any) -> np.ndarray:
        """Of the rows that were held out, and of no others."""
        return _drop_single_column(self.values)

    def predict(self, X: Any) -> np.ndarray:
        """Their classes."""
        return self.classes_[class_indices(self.values)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Their probabilities, by a link that is fitted when it is asked for."""
        return self.links()[self.index].probabilities(self.values)


@dataclass(frozen=True, eq=False)
class ScorerErrors:
    """Minus the score of held-out rows, by a scorer of scikit-learn."""

    scorer: Scorer
    per_target: bool = False  # each target by itself
    classes: np.ndarray | None = None  # None: regression
    class_weights: np.ndarray | None = None
    seed: int = 0

    def __call__(
        self, parts: Sequence[HeldOutSet], source: Source, engine: Engine
    ) -> np.ndarray:
        """(parts, fits, t), or (parts, fits, 1)."""

        @cache
        def links() -> list[ProbabilityLink]:
            return fit_probability_links(parts, source, self.seed, engine)

        targets: list[Any] = [slice(None)]
        if self.per_target:
            targets = [[t] for t in range(source.targets.shape[1])]
        errors = []
        for part in parts:
            subset = part.subset_of(source)
            numbers = np.arange(subset.n_rows) if part.rows is None else part.rows
            Y, F = np.asarray(subset.targets[:]), part.predict(source, engine)
            w = remove_class_weights(Y, subset.weights, self.class_weights)
            rows, Y, F, w = (values[w > 0] for values in (numbers, Y, F, w))
            for fit, t in product(range(F.shape[1]), targets):
                estimator: Any = HeldOutRegressor(F[:, fit, t])
                y = _drop_single_column(Y[:, t])
                if self.classes is not None:
                    estimator = HeldOutClassifier(F[:, fit], self.classes, links, fit)
                    y = self.classes[class_indices(Y)]
                errors.append(_error(self.scorer, estimator, rows, y, w))
        return np.reshape(errors, (len(parts), F.shape[1], len(targets)))


def _drop_single_column(values: np.ndarray) -> np.ndarray:
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def _error(
    scorer: Scorer, estimator: Any, rows: np.ndarray, y: np.ndarray, w: np.ndarray
) -> float:
    """Minus the score of one fit on one part."""
    weights = {} if np.all(w == 1) else {"sample_weight": w}
    try:
        score = scorer(estimator, rows[:, None], y, **weights)
    except TypeError as error:
        if not weights:
            raise
        raise ValueError(
            f"scoring={scorer!r} takes no sample_weight ({error}); give one that does, "
            "or fit without weights."
        ) from error
    return -float(score)


@dataclass(frozen=True, eq=False)
class SearchCriterion:
    """How candidates are scored."""

    splits: list[Split] | str
    measure: Measure | None  # None: squared errors
    best_possible: float  # scores are this, less the errors


@dataclass(frozen=True, eq=False)
class GridScores:
    """The candidates and their errors."""

    gammas: list[Any]
    alphas: np.ndarray
    errors: list[np.ndarray]  # of each gamma, (sizes, a, t)
    best: PathScores  # of the best gamma
    gamma: Any  # the best


def _min_errors(errors: np.ndarray) -> np.ndarray:
    """(sizes,): the least error that the alphas allow, of (sizes, alphas, targets)."""
    return errors.min(axis=1).mean(axis=1)


class RidgeSearchMixin(BaseKernelRidge):
    """The base of KernelRidgeCV and KernelRidgeClassifierCV."""

    alphas: Any
    gammas: Any
    prefer_fewer: bool
    alpha_per_target: bool = False
    alpha_: float | np.ndarray
    best_score_: float | np.ndarray

    @property
    def _n_selections(self) -> int:  # type: ignore[override]
        if isinstance(self.gammas, str):  # "auto"
            return len(DEFAULT_GAMMA_FACTORS)
        return max(1, len(self.gammas)) if is_grid(self.gammas) else 1

    def _search(
        self, problem: KernelProblem, search: SearchCriterion
    ) -> tuple[Landmarks, RidgeFit]:
        """Fit the best candidate to all rows; set the scores and the fitted model."""
        scores = self._score_gammas(problem, search)
        best, source = scores.best, problem.source
        size_index = self._choose_size(best)
        landmarks, mapping, sums = best.prefix(size_index)
        alphas = self._choose_alphas(
            scores.alphas, best.errors[size_index], source.targets.shape[1]
        )
        task = self._ridge_task(problem, alphas + self._white_noise())
        fit = fit_from_moments(landmarks, mapping, sums, task)
        self.gammas_, self.gamma_ = list(scores.gammas), scores.gamma
        self.n_landmarks_ = len(landmarks)
        as_array = partial(asarray_like, landmarks)
        self.n_landmarks_path_ = as_array(np.array(best.sizes))
        self.alphas_ = as_array(scores.alphas)
        errors, best_errors = np.array(scores.errors), best.errors[size_index]
        best_scores = search.best_possible - best_errors.min(axis=0)
        if self.alpha_per_target and not problem.is_single_target:
            self.alpha_, self.best_score_ = as_array(alphas), as_array(best_scores)
        else:
            self.alpha_, self.best_score_ = float(alphas[0]), float(best_scores[0])
            errors = errors[..., 0]
        errors = errors if is_grid(self.n_landmarks) else errors[:, 0]
        is_single_gamma = self.gammas is None or isinstance(self.gammas, str)
        errors = errors[0] if is_single_gamma and len(errors) == 1 else errors
        self.scores_ = as_array(search.best_possible - errors)
        if source.n_rows >= MIN_ROWS_TO_WARN:
            self._warn_at_grid_edges(scores, size_index)
        self._set_fit(landmarks, fit, problem, float(task.alphas.min()))
        return landmarks, fit

    def _score_gammas(
        self, problem: KernelProblem, search: SearchCriterion
    ) -> GridScores:
        """Errors of all widths, each with landmarks of its own."""
        splits, source = search.splits, problem.source
        has_folds = not isinstance(splits, str) and len(splits) > 1
        alphas = self.alphas
        if alphas is not None:
            alphas = np.atleast_1d(check_numbers(alphas, "alphas", positive=True))
        sizes = resolve_landmark_grid(self, has_folds)
        gammas = resolve_gamma_grid(self.gamma, self.gammas, self.kernel)
        if not isinstance(splits, str):
            check_split_weights(source, splits)
        learned = None
        if gammas is None:
            gammas, learned = self._automatic_gammas(problem)
        rules = {gamma for gamma in gammas if isinstance(gamma, str)}
        is_metric = not rules.isdisjoint((LEARN_ARD, LEARN_MATRIX))
        if self.cv is None and splits == "gcv" and is_metric:
            # Generalised cross-validation takes all leverages to be alike. Where noise
            # differs among rows it chose an alpha of 1e-6 instead of 0.1, and the RMSE
            # was .66 instead of .15 on 12 000 rows.
            search = replace(search, splits="loo of some")
        best, best_gamma = None, None
        errors: list[np.ndarray] = []  # sums of other widths are not kept
        stopping_rule = None if sizes is None else FixedSize(sizes[-1])
        for gamma in gammas:
            if learned is not None and gamma == LEARN_MATRIX:
                problem = learned
            else:
                problem = self._with_gamma(problem, gamma)
            landmarks = self._select_landmarks(problem, stopping_rule)
            if alphas is None:
                is_learned = is_metric or bool(self.optimize_landmarks)
                alphas = default_alpha_grid(
                    problem.kernel, source, is_learned=is_learned
                )
                # Landmarks that were moved for these targets fit them too well for a
                # score by the same rows; the noise was learnt with them.
                if self.optimize_landmarks and landmarks.ridge and len(gammas) == 1:
                    alphas = np.array([landmarks.ridge])
            scored = self._score_grid(problem, landmarks, sizes, alphas, search)
            errors.append(scored.errors)
            min_error = _min_errors(scored.errors).min()
            if best is None or min_error < _min_errors(best.errors).min():
                best, best_gamma = scored, gamma
        assert best is not None
        assert alphas is not None
        return GridScores(gammas, alphas, errors, best, best_gamma)

    def _automatic_gammas(
        self, problem: KernelProblem
    ) -> tuple[list[Any], KernelProblem | None]:
        """The candidates where neither gamma nor gammas are given.

        And the problem with a learnt matrix, where that was learnt to choose them.
        """
        source = problem.source
        if can_learn_matrix(self.kernel, source):
            if self.optimize_landmarks:  # which refines the matrix, at its own cost
                return [LEARN_MATRIX], None
            if source.n_rows >= MIN_METRIC_ROWS:
                learned = self._with_gamma(problem, LEARN_MATRIX)
                if learned.error_ratio < MAX_CLEAR_ERROR_RATIO:
                    return [LEARN_MATRIX], learned
                if learned.error_ratio == 1:  # it is the kernel of "scale"
                    return ["scale"], None
                return ["scale", LEARN_MATRIX], learned
        if self.gammas is None:
            return [None], None
        scale = gamma_from_data("scale", self.kernel, source, problem.engine)
        return [scale * factor for factor in DEFAULT_GAMMA_FACTORS], None

    def _score_grid(
        self,
        problem: KernelProblem,
        landmarks: Landmarks,
        sizes: list[int] | None,
        alphas: np.ndarray,
        search: SearchCriterion,
    ) -> PathScores:
        """Errors of all numbers of landmarks and alphas, for one width.

        Of each target where it has an alpha of its own, else on average.
        """
        if sizes is None:
            sizes = [len(landmarks)]
        else:
            landmarks = landmarks.in_nested_order()
            if landmarks.indefinite:
                raise ValueError(
                    f"n_landmarks={self.n_landmarks!r} needs a positive semi-definite "
                    f"kernel, which {problem.kernel} is not; give one number."
                )
            sizes = sorted({min(size, len(landmarks)) for size in sizes})
        scores = score_path(
            landmarks,
            problem.source,
            sizes,
            alphas + self._white_noise(),
            search.splits,
            problem.engine,
            fit_intercept=bool(self.fit_intercept),
            measure=search.measure,
        )
        if self.alpha_per_target:
            return scores
        mean_errors = scores.errors.mean(axis=2, keepdims=True)
        return replace(scores, errors=mean_errors)  # one alpha for all targets

    def _choose_size(self, scored: PathScores) -> int:
        """The index of the best number of landmarks, or of the fewest as good."""
        min_errors = _min_errors(scored.errors)
        best = int(np.argmin(min_errors))
        if not self.prefer_fewer or scored.standard_errors is None:
            return best
        alpha = np.argmin(scored.errors[best].mean(axis=1))
        max_error = min_errors[best] + scored.standard_errors[best, alpha].mean()
        return int(np.flatnonzero(min_errors <= max_error)[0])

    @staticmethod
    def _choose_alphas(
        alphas: np.ndarray, errors: np.ndarray, n_targets: int
    ) -> np.ndarray:
        """(t,): of equally good ones the largest, which shrinks most."""
        order = np.argsort(-alphas, kind="stable")
        best = np.argmin(errors[order], axis=0)
        return np.broadcast_to(alphas[order][best], (n_targets,))

    def _warn_at_grid_edges(self, scores: GridScores, size_index: int) -> None:
        """Warn where the best alpha or gamma is at an end of its grid."""
        errors = scores.best.errors[size_index].mean(axis=1)
        warn_at_grid_edge("alphas", list(scores.alphas), errors)
        if not isinstance(self.gammas, str):  # they were given
            min_errors = [_min_errors(curve).min() for curve in scores.errors]
            warn_at_grid_edge("gammas", scores.gammas, np.array(min_errors))
