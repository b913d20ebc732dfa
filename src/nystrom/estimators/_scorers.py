"""scikit-learn scorers applied to held-out predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring

from ..engines import Engine
from ..models.calibration import ProbabilityLink, class_indices
from ..models.held_out import HeldOutSet
from ..models.model_selection import fit_probability_links, remove_class_weights
from ..sources import Source

Scorer = Callable[..., Any]


def check_scorer(scoring: Any, estimator: Any) -> Scorer | None:
    """The scorer of this name, or the one given; None for none."""
    if scoring is None:
        return None
    if not isinstance(scoring, str) and not callable(scoring):
        raise ValueError(
            f"scoring={scoring!r} is not allowed; it is the name of a scorer of "
            "scikit-learn's, a callable scorer(estimator, X, y), or None."
        )
    try:
        return check_scoring(estimator, scoring=scoring)
    except ValueError:
        raise ValueError(
            f"scoring={scoring!r} is not allowed; sklearn.metrics.get_scorer_names() "
            "has the names of scorers."
        ) from None


class HeldOutRegressor(RegressorMixin, BaseEstimator):
    """What a scorer takes for an estimator: its predictions are known."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> np.ndarray:
        """Of the rows that were held out, and of no others."""
        return _drop_single_column(self.values)


class HeldOutClassifier(ClassifierMixin, BaseEstimator):
    """What a scorer takes for a classifier: its decisions are known."""

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
class RegressionScorerErrors:
    """What a scorer says of predictions, with the other sign."""

    scorer: Scorer
    per_target: bool  # each target by itself

    def __call__(
        self, parts: Sequence[HeldOutSet], source: Source, engine: Engine
    ) -> np.ndarray:
        """(parts, fits, t), or (parts, fits, 1)."""
        errors = []
        for part in parts:
            rows, Y, w, F = _test_rows(part, source, engine)
            targets: list[Any] = [[t] for t in range(Y.shape[1])]
            targets = targets if self.per_target else [slice(None)]
            for fit, t in product(range(F.shape[1]), targets):
                regressor = HeldOutRegressor(F[:, fit, t])
                errors.append(_error(self.scorer, regressor, rows, Y[:, t], w))
        return np.reshape(errors, (len(parts), F.shape[1], len(targets)))


@dataclass(frozen=True, eq=False)
class ClassificationScorerErrors:
    """What a scorer says of classes, decisions or probabilities; the other sign."""

    scorer: Scorer
    classes: np.ndarray
    class_weights: np.ndarray | None
    seed: int

    def __call__(
        self, parts: Sequence[HeldOutSet], source: Source, engine: Engine
    ) -> np.ndarray:
        """(parts, fits)."""

        @cache
        def links() -> list[ProbabilityLink]:
            return fit_probability_links(parts, source, self.seed, engine)

        errors = []
        for part in parts:
            rows, Y, w, F = _test_rows(part, source, engine, self.class_weights)
            y = self.classes[class_indices(Y)]
            for fit in range(F.shape[1]):
                classifier = HeldOutClassifier(F[:, fit], self.classes, links, fit)
                errors.append(_error(self.scorer, classifier, rows, y, w))
        return np.reshape(errors, (len(parts), F.shape[1]))


def _drop_single_column(values: np.ndarray) -> np.ndarray:
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def _test_rows(
    part: HeldOutSet,
    source: Source,
    engine: Engine,
    class_weights: np.ndarray | None = None,
) -> list[np.ndarray]:
    """Numbers, targets, weights and values of a part's rows; not those of weight 0."""
    subset = part.subset_of(source)
    assert subset.targets is not None
    rows = np.arange(subset.n_rows) if part.rows is None else part.rows
    Y, w = np.asarray(subset.targets[: subset.n_rows]), np.asarray(subset.weights)
    w = remove_class_weights(Y, w, class_weights)
    return [values[w > 0] for values in (rows, Y, w, part.predict(source, engine))]


def _error(
    scorer: Scorer, estimator: Any, rows: np.ndarray, y: np.ndarray, w: np.ndarray
) -> float:
    """Minus the score of one fit on one part."""
    y = _drop_single_column(y)
    weights = {} if np.all(w == 1) else {"sample_weight": w}
    try:
        score = scorer(estimator, rows[:, None], y, **weights)
    except TypeError as error:
        if not weights:
            raise
        raise ValueError(
            f"scoring={scorer!r} was asked with sample_weight, and takes none: {error}."
            " Give one that does, or fit without weights."
        ) from error
    return -float(score)
