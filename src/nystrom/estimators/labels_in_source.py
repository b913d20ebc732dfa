"""Classes that come with the rows of a source, found and encoded block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from .. import _arrays as arrays
from ..edge.rows import check_weights
from ..sources import Source, Targets

#: Rows whose labels are read at a time.
ROWS = 2**16


class Signs(Source):
    """±1 for each class, of the labels that another source has."""

    def __init__(self, labels: Any, binarizer: LabelBinarizer) -> None:
        self.labels, self.binarizer = labels, binarizer
        self.names = labels.names if isinstance(labels, Targets) else None
        classes = binarizer.classes_
        self.n_rows = len(labels)
        self.n_features = 1 if len(classes) == 2 else len(classes)

    def rows(self, start: int, stop: int) -> np.ndarray:
        return self._encoded(self.labels[start:stop])

    def take(self, indices: np.ndarray) -> np.ndarray:
        return self._encoded(self.labels[indices])

    def _encoded(self, labels: np.ndarray) -> np.ndarray:
        known = _named(labels[:, 0], self.names, self.binarizer.classes_.dtype)
        return self.binarizer.transform(known).astype(np.float64)


@dataclass(frozen=True)
class LabelsInSource:
    """The classes among a source's targets, and how many rows each has."""

    labels: Any  # (n, 1)
    numbers: np.ndarray  # the different ones among them
    classes: np.ndarray  # what they stand for
    counts: np.ndarray

    @classmethod
    def of(cls, source: Source) -> LabelsInSource:
        """Read the labels once."""
        labels = source.targets
        if labels.shape[1] != 1:
            raise ValueError(
                f"The source has {labels.shape[1]} targets per row; classes are one "
                "column. Pass y for several labels of a row."
            )
        classes, counts = np.empty(0), np.empty(0, np.int64)
        for start in range(0, len(labels), ROWS):
            found, times = np.unique(labels[start : start + ROWS], return_counts=True)
            # Twice: it warns where classes are as many as rows.
            check_classification_targets(np.repeat(found, 2))
            both = np.concatenate([classes, found])
            classes, places = np.unique(both, return_inverse=True)
            counts = np.bincount(places, np.concatenate([counts, times])).astype(int)
        whole = np.all(classes == np.rint(classes))
        names = labels.names if isinstance(labels, Targets) else None
        known = _named(classes, names, np.int64 if whole else np.float64)
        return cls(labels, classes, known, counts)

    def signs(self, binarizer: LabelBinarizer) -> Targets:
        """Targets of ±1, one per class, or one for two classes."""
        return Targets(Signs(self.labels, binarizer))

    def weighted(
        self,
        class_weight: Any,
        source: Source,
        sample_weight: Any,
        *,
        by_weight: bool = False,
    ) -> np.ndarray | None:
        """The weights of the rows, times those of their classes.

        Classes are balanced by their weights, or by their numbers of rows.
        """
        weights = check_weights(sample_weight, source)
        if weights is None and source.is_weighted:
            weights = source.weights
        if class_weight is None:
            return weights
        of_class = self.class_weights(class_weight)
        assert of_class is not None
        if by_weight and weights is not None and class_weight == "balanced":
            of_class = balanced(self._totals(weights))
        out = np.ones(source.n_rows) if weights is None else weights.copy()
        for start, places in self._places():
            out[start : start + ROWS] *= of_class[places]
        return out

    def _places(self) -> Iterator[tuple[int, np.ndarray]]:
        """(first row, the number of each row's class), some rows at a time."""
        for start in range(0, len(self.labels), ROWS):
            labels = arrays.to_host(self.labels[start : start + ROWS])[:, 0]
            yield start, np.searchsorted(self.numbers, labels)

    def _totals(self, weights: np.ndarray) -> np.ndarray:
        """The weight of each class."""
        totals, n = np.zeros(len(self.classes)), len(self.classes)
        for start, places in self._places():
            totals += np.bincount(places, weights[start : start + ROWS], n)
        return totals

    def class_weights(self, class_weight: Any) -> np.ndarray | None:
        """(k,) those of the classes; None for none."""
        if class_weight is None:
            return None
        if class_weight == "balanced":
            return balanced(self.counts)
        return compute_class_weight(
            class_weight, classes=self.classes, y=self.classes.copy()
        )


def balanced(totals: np.ndarray) -> np.ndarray:
    """What makes classes of these totals count alike, as scikit-learn's "balanced"."""
    return totals.sum() / (len(totals) * np.where(totals > 0, totals, np.inf))


def _named(numbers: np.ndarray, names: np.ndarray | None, dtype: Any) -> np.ndarray:
    """Classes as users know them: text where the file has it."""
    return numbers.astype(dtype) if names is None else names[numbers.astype(int)]
