"""What classifiers on landmarks share: classes, their weights, labels of new rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import (
    column_or_1d,
    compute_class_weight,
    compute_sample_weight,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from .. import _arrays as arrays
from ..edge.mistakes import refuse_missing_labels
from ..edge.rows import (
    check_lengths,
    check_targets,
    explaining,
    holds_objects,
    in_memory,
    not_in_memory,
)
from ..edge.showing import shown
from ..refusals import named_plainly
from ..sinks import Output, ThenSink
from ..sources import Source, recognised
from .labels_in_source import LabelsInSource, balanced
from .lazily import chunk_by_chunk
from .ridge_base import OnRidge
from .score_method import Scoring


@dataclass(frozen=True, eq=False)
class Classes:
    """Rows with classes, as targets of ±1."""

    X: Any
    Y: Any  # (n, t): one column for two classes, else one for each
    weights: Any  # of the rows, with those of their classes
    binarizer: LabelBinarizer
    class_weights: np.ndarray | None = None  # (k,) where rows have one class

    @property
    def several(self) -> bool:
        """Whether a row may have several labels."""
        return self.binarizer.y_type_.startswith("multilabel")


@named_plainly
class OnClasses(Scoring, ClassifierMixin, OnRidge):
    """The base of KernelRidgeClassifier and KernelLogisticRegression."""

    class_weight: Any
    classes_: np.ndarray
    #: Whether "balanced" is about the weights of rows, or about their numbers: of
    #: scikit-learn's classes LogisticRegression does one, RidgeClassifier the other.
    _balances_weights = False

    def _classes(self, X: Any, y: Any, sample_weight: Any) -> Classes:
        """What was given, checked."""
        check_class_weight(self.class_weight)
        X = recognised(X)
        binarizer = LabelBinarizer(pos_label=1, neg_label=-1)
        if check_targets(X, y, type(self).__name__):
            X = self._validated(X, reset=True)
            labels = LabelsInSource.of(X)
            # Several rows of each, as there are: scikit-learn before 1.9 warns of
            # targets with as many classes as rows.
            Y: Any = labels.signs(binarizer.fit(np.repeat(labels.classes, 3)))
            weights = labels.weighted(
                self.class_weight, X, sample_weight, by_weight=self._balances_weights
            )
            X = X.having(weights=None)
            of_class = labels.class_weights(self.class_weight)
        else:
            X, y = self._rows_and_classes(X, y)
            if y.ndim == 2 and y.dtype == bool:
                y = y.astype(np.int64)  # a bool has no −1
            Y = binarizer.fit_transform(y).astype(np.float64)
            given = in_memory(sample_weight, "sample_weight")
            weights = self._weights_with_classes(y, given)
            of_class = self._class_weights(binarizer, y)
        if len(binarizer.classes_) < 2:
            raise ValueError(
                f"y has one class, {binarizer.classes_[0]}; at least two classes are "
                "needed."
            )
        return Classes(X, Y, weights, binarizer, of_class)

    def _keep_classes(self, binarizer: LabelBinarizer) -> None:
        self._binarizer = binarizer
        self.classes_ = binarizer.classes_

    @chunk_by_chunk
    @shown
    def decision_function(self, X: Any, out: Any = None) -> Any:
        """The regression's values: above 0 for the second class, or one per class.

        Parameters
        ----------
        X : array-like, CSR matrix or list, of shape (n_samples, n_features)
            Rows.
        out : str, Path or array, default=None
            Where the values go, as for `KernelRidge.predict`.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            In the precision of X; `out` where it is given.
        """
        return self._predict(X, out=out, method="decision_function")

    @chunk_by_chunk
    @shown
    def predict(self, X: Any, out: Any = None) -> Any:
        """The class of each row.

        Parameters
        ----------
        X : array-like, CSR matrix or list, of shape (n_samples, n_features)
            Rows.
        out : str, Path or array, default=None
            Where the labels go, as for `KernelRidge.predict`.

        Returns
        -------
        classes : ndarray of shape (n_samples,) or (n_samples, n_labels)
            Labels; `out` where it is given.
        """
        check_is_fitted(self, "dual_coef_")
        if out is None:
            decided = self._predict(X)
            labels = self._labels_of(decided)
            # Names are NumPy's; numbers go where the rows are.
            host = arrays.on_host(decided) or labels.dtype.kind not in "biuf"
            return labels if host else arrays.from_host(labels, decided, labels.dtype)
        single = not self._binarizer.y_type_.startswith("multilabel")
        output = Output(out, "label", single=single)
        landmarks, source, engine = self._for_new_rows(X, self.dual_coef_, "predict")
        width = 1 if single else len(self.classes_)
        dtype = self._labels_of(np.zeros((1, self._model.map.dual.shape[1]))).dtype
        sink = output.sink(source, width, dtype)
        labelled = Output(ThenSink(sink, self._labels_of_rows))
        self._model.map(landmarks, source, engine, output=labelled)
        return output.result(sink)

    def _labels_of_rows(self, values: Any) -> np.ndarray:
        """(n, t) ↦ (n, 1), or one column per label."""
        values = values[:, 0] if self._model.ravel else values
        return self._labels_of(values).reshape(len(values), -1)

    def _labels_of(self, values: Any) -> np.ndarray:
        values = arrays.to_host(values)
        if self._binarizer.y_type_.startswith("multilabel"):
            return self._binarizer.inverse_transform(2.0 * (values > 0) - 1)
        if values.ndim == 1 or values.shape[1] == 1:
            values = values.ravel()
            return self.classes_[(values > 0).astype(int)]
        return self.classes_[values.argmax(axis=1)]

    @chunk_by_chunk
    @shown
    def predict_proba(self, X: Any, out: Any = None) -> Any:
        """The probability of each class, row by row.

        Parameters
        ----------
        X : array-like, CSR matrix or list, of shape (n_samples, n_features)
            Rows.
        out : str, Path or array, default=None
            Where they go, as for `KernelRidge.predict`.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`; `out` where it is given. Where a row may have
            several labels, the probability of each label.
        """
        return self._of_decisions(X, "predict_proba", out, log=False)

    @chunk_by_chunk
    @shown
    def predict_log_proba(self, X: Any, out: Any = None) -> Any:
        """The logarithms of `predict_proba`, also where these vanish.

        The parameters are those of `predict_proba`.
        """
        return self._of_decisions(X, "predict_log_proba", out, log=True)

    @abstractmethod
    def _shares(self, method: str, log: bool) -> Callable[[np.ndarray], np.ndarray]:
        """What makes probabilities, or their logarithms, of decisions."""

    def _of_decisions(self, X: Any, method: str, out: Any, *, log: bool) -> Any:
        """Probabilities from decisions, a column per class, block by block."""
        check_is_fitted(self, "dual_coef_")
        made = self._shares(method, log)
        names = [f"probability_{label}" for label in self.classes_]
        output = Output(out, names=names)
        landmarks, source, engine = self._for_new_rows(X, self.dual_coef_, method)
        first = source.given.rows(0, 1)
        like, dtype = landmarks.kernel.like(first), landmarks.kernel.dtype(first)
        sink = output.sink(source, len(names), dtype, like)

        def of_block(F: Any) -> Any:
            found = made(arrays.host_values(F)).astype(dtype)
            return found if arrays.on_host(F) else arrays.from_host(found, F)

        then = Output(ThenSink(sink, of_block))
        self._model.map(landmarks, source, engine, output=then)
        return output.result(sink)

    def _rows_and_classes(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        X, y = not_in_memory(X), in_memory(y)
        if sp.issparse(y):
            raise ValueError("y is sparse; classes must be a dense array, y.toarray().")
        y = arrays.fetched(y)
        if y is not None:
            refuse_missing_labels(np.asarray(y))
        if isinstance(X, Source) or holds_objects(X) or not arrays.on_host(X):
            self._require(y)
            X = self._validated(X, reset=True)
            y = np.asarray(y)
            check_lengths(X, y)
        else:
            check_lengths(X, y)
            with explaining(X=X, y=y):
                X, y = validate_data(self, X, y, accept_sparse="csr", multi_output=True)
        y = np.asarray(y)
        check_classification_targets(y)
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        return X, y

    def _weights_with_classes(self, y: np.ndarray, sample_weight: Any) -> Any:
        if self.class_weight is None:
            return sample_weight
        rows = np.empty((len(y), 1))
        own = _check_sample_weight(sample_weight, rows, dtype=np.float64)
        if self.class_weight == "balanced" and self._balances_weights:
            classes, places = np.unique(y, return_inverse=True)
            return own * balanced(np.bincount(places, own, len(classes)))[places]
        return own * compute_sample_weight(self.class_weight, y)

    def _class_weights(
        self, binarizer: LabelBinarizer, y: np.ndarray
    ) -> np.ndarray | None:
        """(k,) those of the classes, where a row has one."""
        if self.class_weight is None or y.ndim > 1:
            return None
        return compute_class_weight(self.class_weight, classes=binarizer.classes_, y=y)


def check_class_weight(class_weight: Any) -> None:
    named = isinstance(class_weight, str) and class_weight == "balanced"
    if class_weight is not None and not named and not isinstance(class_weight, Mapping):
        raise ValueError(
            f"class_weight={class_weight!r} is not allowed; it is 'balanced', a dict "
            "of a weight for each class, or None."
        )
