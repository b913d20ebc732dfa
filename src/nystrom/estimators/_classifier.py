"""Classifiers on landmarks: labels to ±1 targets, class weights, decisions,
probabilities.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import compute_class_weight, compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from .. import _arrays as arrays
from .._random import as_seed, sorted_row_sample
from .._validation import check_choice, check_positive
from ..landmarks import Landmarks
from ..models.calibration import (
    MAX_CALIBRATION_ROWS,
    ProbabilityLink,
    class_indices,
    fit_probability_link,
    leave_one_out_predictions,
)
from ..models.model_selection import remove_class_weights
from ..models.posterior import Posterior, conformal_quantiles
from ..models.ridge import RidgeFit
from ..sources import Source, Targets
from ..sources.output import MappedSink, Output
from ._inputs import check_labels, check_sample_weight, check_targets_in_source
from ._problem import KernelProblem
from ._progress import method_of_rows
from ._ridge import BaseKernelRidge, read_all_targets

#: Rows whose labels are read at a time.
LABEL_BLOCK_ROWS = 2**16
#: What a stream says of rows with several labels.
ONE_LABEL = "partial_fit takes one label per row; use fit for several."


class SignedTargets(Source):
    """±1 for each class, of the labels that another source has; one for two classes."""

    def __init__(self, labels: Any, codes: np.ndarray) -> None:
        self.labels, self.codes = labels, codes[1:] if len(codes) == 2 else codes
        self.n_rows, self.n_features = len(labels), len(self.codes)

    def rows(self, start: int, stop: int) -> np.ndarray:
        return self._encode(self.labels[start:stop])

    def take(self, indices: np.ndarray) -> np.ndarray:
        return self._encode(self.labels[indices])

    def _encode(self, labels: np.ndarray) -> np.ndarray:
        return 2.0 * (labels == self.codes) - 1


@dataclass(frozen=True, eq=False)
class RowLabels:
    """The classes of rows, one each, and how many rows each class has."""

    labels: Any  # (n, 1)
    codes: np.ndarray  # the different ones among them, ascending
    classes: np.ndarray  # what they stand for
    counts: np.ndarray

    @classmethod
    def from_array(cls, y: np.ndarray, classes: np.ndarray | None = None) -> RowLabels:
        """From labels in memory; all of `classes` count, also those without a row."""
        classes = np.unique(y) if classes is None else classes
        index = np.searchsorted(classes, y)
        counts = np.bincount(index, minlength=len(classes))
        return cls(index.reshape(-1, 1), np.arange(len(classes)), classes, counts)

    @classmethod
    def from_source(cls, source: Source) -> RowLabels:
        """Read the labels of a source once."""
        labels = source.targets
        if labels.shape[1] != 1:
            raise ValueError(
                f"The source has {labels.shape[1]} targets per row, but a classifier "
                "needs one. Pass y for several labels per row."
            )
        codes, counts = np.empty(0), np.empty(0, np.int64)
        for start in range(0, len(labels), LABEL_BLOCK_ROWS):
            block = labels[start : start + LABEL_BLOCK_ROWS]
            block_codes, block_counts = np.unique(block, return_counts=True)
            # Twice: it warns where classes are as many as rows.
            check_classification_targets(np.repeat(block_codes, 2))
            codes, inverse = np.unique(
                np.concatenate([codes, block_codes]), return_inverse=True
            )
            both = np.concatenate([counts, block_counts])
            counts = np.bincount(inverse, both).astype(int)
        is_integral = np.all(codes == np.rint(codes))
        names = labels.names if isinstance(labels, Targets) else None
        if names is not None:  # text where the file has it
            return cls(labels, codes, names[codes.astype(int)], counts)
        classes = codes.astype(np.int64 if is_integral else np.float64)
        return cls(labels, codes, classes, counts)

    def class_weights(self, class_weight: Any, totals: Any = None) -> np.ndarray:
        """(k,) those of the classes; balanced by `totals`, or by numbers of rows."""
        if class_weight == "balanced":
            totals = self.counts if totals is None else totals
            return totals.sum() / (len(totals) * np.where(totals > 0, totals, np.inf))
        return compute_class_weight(
            class_weight, classes=self.classes, y=self.classes.copy()
        )

    def row_weights(
        self, class_weight: Any, weights: np.ndarray | None, *, by_weight: bool
    ) -> np.ndarray:
        """The weights of the rows, times those of their classes.

        Classes are balanced by their weights, or by their numbers of rows.
        """
        totals = None
        if by_weight and weights is not None:
            totals = self.class_totals(weights)
        of_rows = self.class_weights(class_weight, totals)[self.class_indices]
        return of_rows if weights is None else weights * of_rows

    def class_totals(self, weights: np.ndarray) -> np.ndarray:
        """(k,): the weight of each class."""
        return np.bincount(self.class_indices, weights, len(self.classes))

    @property
    def class_indices(self) -> np.ndarray:
        """(n,): the number of each row's class."""
        indices = np.empty(len(self.labels), dtype=np.intp)
        for start in range(0, len(indices), LABEL_BLOCK_ROWS):
            rows = slice(start, start + LABEL_BLOCK_ROWS)
            labels = arrays.to_host(self.labels[rows])[:, 0]
            indices[rows] = np.searchsorted(self.codes, labels)
        return indices


def check_known_classes(y: np.ndarray, classes: np.ndarray) -> None:
    """A class of a later batch has to be one of the first."""
    if y.ndim > 1:
        raise ValueError(ONE_LABEL)
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise ValueError(
            f"y has the class {unknown.tolist()[0]!r}, which is not among "
            f"{classes.tolist()}; "
            "name all classes in the first call, partial_fit(X, y, classes=...)."
        )


@dataclass(frozen=True, eq=False)
class ClassLabels:
    """The classes of a fit."""

    binarizer: LabelBinarizer
    class_weights: np.ndarray | None  # (k,) where rows have one class
    rows: RowLabels | None  # None where a row may have several labels

    @property
    def is_multilabel(self) -> bool:
        """Whether a row may have several labels."""
        return self.rows is None


class BaseKernelClassifier(ClassifierMixin, BaseKernelRidge):
    """The base of KernelRidgeClassifier and KernelLogisticRegression."""

    class_weight: Any
    classes_: np.ndarray
    #: Whether "balanced" is about the weights of rows, or about their numbers: of
    #: scikit-learn's classes LogisticRegression does one, RidgeClassifier the other.
    _balances_by_weight = False
    #: Whether a row may have several labels.
    _takes_multilabel = False
    score = BaseKernelRidge.score

    def _validate(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        reset: bool = True,
        classes: np.ndarray | None = None,
        **changed: Any,
    ) -> KernelProblem:
        """What a fit works on, with targets of ±1: one for two classes.

        `classes` are all there are where the rows are a batch of a stream, ascending.
        """
        if not isinstance(self.class_weight, Mapping) and self.class_weight is not None:
            check_choice(self.class_weight, "class_weight", ["balanced"])
        X = self._validate_rows(X, reset=reset)
        binarizer = LabelBinarizer(pos_label=1, neg_label=-1)
        in_source = check_targets_in_source(X, y, type(self).__name__)
        if in_source and classes is not None:
            X, y, in_source = X.replace(targets=None), read_all_targets(X), False
        labels: RowLabels | None
        if in_source:
            labels = found = RowLabels.from_source(X)
            # Several rows of each, as there are: scikit-learn before 1.9 warns of
            # targets with as many classes as rows.
            binarizer.fit(np.repeat(found.classes, 3))
            Y: Any = Targets(SignedTargets(found.labels, found.codes))
        else:
            y = check_labels(X, y)
            if y.ndim == 2 and y.dtype == bool:
                y = y.astype(np.int64)  # a bool has no −1
            if classes is not None:
                check_known_classes(y, classes)
            binarizer.fit(y if classes is None else np.repeat(classes, 3))
            Y = binarizer.transform(y).astype(np.float64)
            labels = RowLabels.from_array(y, classes) if y.ndim == 1 else None
        weights = check_sample_weight(sample_weight, X)
        if isinstance(X, Source) and X.is_weighted:
            X, weights = X.replace(weights=None), X.weights
        class_weights = None
        if labels is not None and self.class_weight is not None:
            class_weights = labels.class_weights(self.class_weight)
            weights = labels.row_weights(
                self.class_weight, weights, by_weight=self._balances_by_weight
            )
        elif self.class_weight is not None:
            of_labels = compute_sample_weight(self.class_weight, y)
            weights = of_labels if weights is None else weights * of_labels
        if len(binarizer.classes_) < 2:
            raise ValueError(
                f"y has one class, {binarizer.classes_[0]}; at least two classes are "
                "needed."
            )
        given = ClassLabels(binarizer, class_weights, labels)
        if given.is_multilabel and not self._takes_multilabel:
            raise ValueError(
                f"y has several labels per row; fit a {type(self).__name__} for each "
                "of them: sklearn.multioutput.MultiOutputClassifier."
            )
        problem = self._resolve_problem(X, Y, weights, **changed)
        return replace(problem, is_single_target=Y.shape[1] == 1, labels=given)

    def _set_classes(self, given: ClassLabels) -> None:
        self._binarizer = given.binarizer
        self._is_multilabel = given.is_multilabel
        self.classes_ = given.binarizer.classes_

    @method_of_rows
    def decision_function(self, X: Any, out: Any = None) -> Any:
        """Compute the decision values of rows.

        Positive values mean the second class; with more than two classes there is one
        value per class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", their kernel values with all training rows, of shape
            (n_samples, n_training), or `kernels.PrecomputedAtLandmarks` with the values
            at the landmarks only.
        out : str, path-like or array, default=None
            Where the result goes instead of a new array: a file that ends in `.npy` or
            `.parquet`, which is written block by block, or an array to fill.
            An existing file is replaced only with
            `out=nystrom.sources.Overwrite(path)`.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Decision values in the precision of X, or `out`.
        """
        return self._predict(X, out, "decision_function")

    @method_of_rows
    def predict(self, X: Any, out: Any = None) -> Any:
        """Predict the class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", their kernel values with all training rows, of shape
            (n_samples, n_training), or `kernels.PrecomputedAtLandmarks` with the values
            at the landmarks only.
        out : str, path-like or array, default=None
            Where the result goes instead of a new array: a file that ends in `.npy` or
            `.parquet`, which is written block by block, or an array to fill.
            An existing file is replaced only with
            `out=nystrom.sources.Overwrite(path)`.

        Returns
        -------
        classes : ndarray of shape (n_samples,) or (n_samples, n_labels)
            Class labels, or `out`.
        """
        check_is_fitted(self, "dual_coef_")
        single = not self._is_multilabel
        output = Output(out, "label", single=single)
        width = 1 if single else len(self.classes_)
        no_decisions = np.zeros((1, self._model.map.dual.shape[1]))
        dtype = self._decode_decisions(no_decisions).dtype
        return self._map_decisions(
            X, "predict", output, width, self._decode_decisions, dtype
        )

    def _decode_decisions(self, values: np.ndarray) -> np.ndarray:
        """(n, t) ↦ (n, 1), or one column per label."""
        if self._is_multilabel:
            return self._binarizer.inverse_transform(2.0 * (values > 0) - 1)
        return self.classes_[class_indices(values)][:, None]

    def _map_decisions(
        self,
        X: Any,
        method: str,
        output: Output,
        width: int,
        function: Callable[[np.ndarray], np.ndarray],
        dtype: Any = None,
    ) -> Any:
        """A function of the decisions of rows, block by block.

        A dtype of None is the precision of the rows.
        """
        landmarks, source, engine = self._resolve_new_rows(X, self.dual_coef_, method)
        first = source.original.rows(0, 1)
        dtype = landmarks.kernel.dtype(first) if dtype is None else dtype
        # Names are NumPy's; numbers go where the rows are.
        is_numeric = dtype.kind in "biuf"
        like = landmarks.kernel.output_like(first) if is_numeric else None
        sink = output.sink(source, width, dtype, like)

        def map_block(F: Any) -> Any:
            values = function(arrays.to_host_float64(F)).astype(dtype)
            stays_on_host = arrays.is_on_host(F) or not is_numeric
            return values if stays_on_host else arrays.from_host(values, F, dtype)

        decisions = Output(MappedSink(sink, map_block))
        self._model.map(landmarks, source, engine, output=decisions)
        return output.result(sink)

    @method_of_rows
    def predict_proba(self, X: Any, out: Any = None) -> Any:
        """Predict the probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", their kernel values with all training rows, of shape
            (n_samples, n_training), or `kernels.PrecomputedAtLandmarks` with the values
            at the landmarks only.
        out : str, path-like or array, default=None
            Where the result goes instead of a new array: a file that ends in `.npy` or
            `.parquet`, which is written block by block, or an array to fill.
            An existing file is replaced only with
            `out=nystrom.sources.Overwrite(path)`.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Probabilities in the order of `classes_`, or `out`. For multilabel data, the
            probability of each label.
        """
        return self._probabilities(X, "predict_proba", out, log=False)

    @method_of_rows
    def predict_log_proba(self, X: Any, out: Any = None) -> Any:
        """Predict the logarithm of the probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", their kernel values with all training rows, of shape
            (n_samples, n_training), or `kernels.PrecomputedAtLandmarks` with the values
            at the landmarks only.
        out : str, path-like or array, default=None
            Where the result goes instead of a new array: a file that ends in `.npy` or
            `.parquet`, which is written block by block, or an array to fill.
            An existing file is replaced only with
            `out=nystrom.sources.Overwrite(path)`.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            Logarithms in the order of `classes_`, or `out`. They are finite even if a
            probability underflows to 0.
        """
        return self._probabilities(X, "predict_log_proba", out, log=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self._takes_multilabel
        tags.target_tags.multi_output = self._takes_multilabel
        return tags

    @abstractmethod
    def _probability_function(
        self, method: str, log: bool
    ) -> Callable[[np.ndarray], np.ndarray]:
        """The function that maps decisions to probabilities, or to their logarithms."""

    def _probabilities(self, X: Any, method: str, out: Any, *, log: bool) -> Any:
        """Probabilities from decisions, a column per class, block by block."""
        check_is_fitted(self, "dual_coef_")
        to_probabilities = self._probability_function(method, log)
        names = [f"probability_{label}" for label in self.classes_]
        output = Output(out, names=names)
        return self._map_decisions(X, method, output, len(names), to_probabilities)


class CalibratedClassifierMixin(BaseKernelClassifier):
    """The base of the ridge classifiers.

    Their probabilities come from `decision_function` by a link that is fitted with the
    model, to what it says of its training rows when each is left out, with its landmark
    if it is one, on at most 16 384 of them. The most probable class is that of
    `predict`.
    """

    _links: list[ProbabilityLink] | None
    #: −log p of the classes of rows left out, ascending, and the weights of the rows.
    _conformity: tuple[np.ndarray, np.ndarray | None] | None = None

    def _calibrate(
        self,
        landmarks: Landmarks,
        fit: RidgeFit,
        source: Source,
        problem: KernelProblem,
    ) -> None:
        """Fit the link to leave-one-out values of some rows: a pass over these."""
        self._links, self._conformity, given = None, None, problem.labels
        if not isinstance(fit.posterior, Posterior):
            return
        seed = as_seed(self.random_state)
        rows = sorted_row_sample(source.n_rows, MAX_CALIBRATION_ROWS, seed)
        F, Y, w = leave_one_out_predictions(
            landmarks,
            source,
            rows,
            fit.map,
            fit.posterior,
            problem.engine,
            given.class_weights,
        )
        columns = (
            [[j] for j in range(Y.shape[1])] if given.is_multilabel else [slice(None)]
        )
        self._links = [
            fit_probability_link(F[:, target], Y[:, target], w) for target in columns
        ]
        if not given.is_multilabel:
            w = remove_class_weights(Y, w, given.class_weights)
            losses = self._links[0].losses(F, class_indices(Y))[w > 0]
            order, w = np.argsort(losses), w[w > 0]
            self._conformity = losses[order], w[order] if np.ptp(w) else None

    @method_of_rows
    def predict_set(self, X: Any, coverage: float = 0.9) -> Any:
        """Predict a set of classes for each row, which contains its class this often.

        A set holds all classes of at least some probability, and always the most
        probable one. The probability is that which this share of the training rows
        reaches for its class, each row left out of the fit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", their kernel values with all training rows, of shape
            (n_samples, n_training), or `kernels.PrecomputedAtLandmarks` with the values
            at the landmarks only.
        coverage : float, default=0.9
            Share of new rows whose class is in their set, between 0 and 1.

        Returns
        -------
        sets : ndarray of bool of shape (n_samples, n_classes)
            Whether each class is in the set, in the order of `classes_`.
        """
        check_is_fitted(self, "dual_coef_")
        coverage = check_positive(coverage, "coverage", below=1.0)
        if self._is_multilabel:
            raise ValueError(
                "predict_set needs one class per row, but y had several labels per "
                "row; fit a classifier for each label."
            )
        if self._links is None or self._conformity is None:
            raise ValueError(
                "predict_set needs the Gram matrix, which conjugate gradients do not "
                "compute; fit with solver='direct'."
            )
        link, (losses, weights) = self._links[0], self._conformity
        weights = None if weights is None else weights[:, None]
        (limit,) = conformal_quantiles(losses[:, None], coverage, weights, "coverage")

        def classes_of(values: np.ndarray) -> np.ndarray:
            log_p = link.log_probabilities(values)
            return -log_p <= np.maximum(limit, -log_p.max(axis=1, keepdims=True))

        width, dtype = len(self.classes_), np.dtype(bool)
        output = Output(None)
        return self._map_decisions(X, "predict_set", output, width, classes_of, dtype)

    def _probability_function(
        self, method: str, log: bool
    ) -> Callable[[np.ndarray], np.ndarray]:
        """By the links that were fitted with the model."""
        links = self._links
        if links is None:
            raise ValueError(
                f"{method} needs the Gram matrix, which conjugate gradients do not "
                "compute; fit with solver='direct'."
            )
        probabilities_of = (
            ProbabilityLink.log_probabilities if log else ProbabilityLink.probabilities
        )

        def map_values(values: np.ndarray) -> np.ndarray:
            if len(links) == 1:
                return probabilities_of(links[0], values)
            # Of each label the probability that a row has it.
            pairs = zip(links, values.T, strict=True)
            parts = [probabilities_of(link, v[:, None])[:, 1] for link, v in pairs]
            return np.column_stack(parts)

        return map_values
