"""Values of rows that were held out, judged by scorers of scikit-learn's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring

from ..engines import Engine
from ..methods.link import Link, classes_of
from ..methods.ridge.class_errors import fit_links, row_weights
from ..methods.ridge.held_out import Part
from ..sources import Source

Scorer = Callable[..., Any]


def scorer_of(scoring: Any, estimator: Any) -> Scorer | None:
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


class RegressionValues(RegressorMixin, BaseEstimator):
    """What a scorer takes for an estimator: its predictions are known."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> np.ndarray:
        """Of the rows that were held out, and of no others."""
        return self.values[:, 0] if self.values.shape[1] == 1 else self.values


class ClassValues(ClassifierMixin, BaseEstimator):
    """What a scorer takes for a classifier: its decisions are known."""

    def __init__(
        self, values: np.ndarray, classes: np.ndarray, link: Callable[[], Link]
    ) -> None:
        self.values, self.classes_, self.link = values, classes, link

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def decision_function(self, X: Any) -> np.ndarray:
        """Of the rows that were held out, and of no others."""
        return self.values[:, 0] if self.values.shape[1] == 1 else self.values

    def predict(self, X: Any) -> np.ndarray:
        """Their classes."""
        return self.classes_[classes_of(self.values)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Their probabilities, by a link that is fitted when it is asked for."""
        return self.link().probabilities(self.values)


@dataclass(frozen=True, eq=False)
class RegressionErrors:
    """What a scorer says of predictions, with the other sign."""

    scorer: Scorer
    apart: bool  # each target by itself

    def __call__(
        self, parts: Sequence[Part], source: Source, engine: Engine
    ) -> np.ndarray:
        """(parts, fits, t), or (parts, fits, 1)."""
        errors = []
        for part in parts:
            F, (rows, Y, w) = part.values(source, engine), _rows_of(part, source)
            F, rows, Y, w = _counting(w, F, rows, Y, w)
            targets = [[t] for t in range(Y.shape[1])] if self.apart else [slice(None)]
            errors.append(
                [
                    [
                        -_asked(
                            self.scorer,
                            RegressionValues(F[:, fit, t]),
                            rows,
                            Y[:, t],
                            w,
                        )
                        for t in targets
                    ]
                    for fit in range(F.shape[1])
                ]
            )
        return np.array(errors)


@dataclass(frozen=True, eq=False)
class ScoredClasses:
    """What a scorer says of classes, decisions or probabilities; the other sign."""

    scorer: Scorer
    classes: np.ndarray
    class_weights: np.ndarray | None
    seed: int

    def __call__(
        self, parts: Sequence[Part], source: Source, engine: Engine
    ) -> np.ndarray:
        """(parts, fits)."""

        @cache
        def links() -> list[Link]:
            return fit_links(parts, source, self.seed, engine)

        errors = []
        for part in parts:
            F, (rows, Y, w) = part.values(source, engine), _rows_of(part, source)
            w = row_weights(Y, w, self.class_weights)
            F, rows, Y, w = _counting(w, F, rows, Y, w)
            y = self.classes[classes_of(Y)]
            made = [
                ClassValues(F[:, fit], self.classes, partial(_one_of, links, fit))
                for fit in range(F.shape[1])
            ]
            errors.append([-_asked(self.scorer, each, rows, y, w) for each in made])
        return np.array(errors)


def _one_of(links: Callable[[], list[Link]], fit: int) -> Link:
    return links()[fit]


def _rows_of(part: Part, source: Source) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers, targets and weights of a part's rows."""
    some = part.of(source)
    assert some.targets is not None
    rows = np.arange(some.n_rows) if part.rows is None else part.rows
    return rows, np.asarray(some.targets[: some.n_rows]), np.asarray(some.weights)


def _counting(w: np.ndarray, *arrays: np.ndarray) -> list[np.ndarray]:
    """Rows of weight 0 are excluded."""
    return [array[w > 0] for array in arrays]


def _asked(
    scorer: Scorer, estimator: Any, rows: np.ndarray, y: np.ndarray, w: np.ndarray
) -> float:
    """The score of one fit on one part; a number, the higher the better."""
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
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
    return float(score)
