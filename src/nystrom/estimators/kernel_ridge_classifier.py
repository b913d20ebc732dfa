"""`KernelRidgeClassifier`: classes by ridge regression of ±1 on landmarks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import column_or_1d, compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from .. import _arrays as arrays
from ..edge.engine import engine_for
from ..edge.rows import (
    check_lengths,
    check_targets,
    explaining_text,
    holds_objects,
    in_memory,
    not_in_memory,
)
from ..methods.ridge.fit import fit_ridge
from ..randomness import seed_of
from ..sinks import Output, ThenSink
from ..sources import Source, recognised
from .callbacks import with_callbacks
from .labels_in_source import LabelsInSource
from .lazily import chunk_by_chunk
from .on_landmarks import fitting
from .ridge_base import OnRidge, Scoring, check_alphas, check_solver


class KernelRidgeClassifier(Scoring, ClassifierMixin, OnRidge):
    """Classification by kernel ridge regression on landmarks.

    Classes become targets of ±1, one per class where there are more than two, as in
    `sklearn.linear_model.RidgeClassifier`.

    Parameters
    ----------
    alpha : float, default=1.0
        The ridge.
    kernel, gamma, degree, coef0, kernel_params, n_landmarks, sampler, solver, epsilon,\
 delta, ridge, max_trace_error
        As for `KernelRidge`.
    class_weight : dict or "balanced", default=None
        Weights of the classes, multiplied with `sample_weight`.
    fit_intercept : bool, default=True
        Whether to fit a constant, which the ridge does not shrink.
    random_state, n_jobs, verbose
        As for `KernelRidge`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    dual_coef_, X_fit_, intercept_, landmarks_, approximation_error_, solver_, n_iter_,\
 risk_bound_, n_features_in_
        As for `KernelRidge`, with one target per class, or one for two classes.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nystrom import KernelRidgeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = KernelRidgeClassifier(
    ...     kernel="rbf", gamma=1e-3, alpha=0.1, n_landmarks=300, random_state=0
    ... ).fit(X[:1200], y[:1200])
    >>> model.score(X[1200:], y[1200:]) > 0.95
    True
    """

    classes_: Any

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        kernel: Any = "linear",
        gamma: Any = None,
        degree: Any = 3,
        coef0: Any = 1,
        kernel_params: dict[str, Any] | None = None,
        class_weight: Any = None,
        n_landmarks: Any = 1000,
        sampler: Any = "auto",
        solver: str = "auto",
        epsilon: Any = None,
        delta: Any = None,
        ridge: float | None = None,
        max_trace_error: float | None = None,
        fit_intercept: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.class_weight = class_weight
        self.n_landmarks = n_landmarks
        self.sampler = sampler
        self.solver = solver
        self.epsilon = epsilon
        self.delta = delta
        self.ridge = ridge
        self.max_trace_error = max_trace_error
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows and their classes.

        Parameters
        ----------
        X : array-like, CSR matrix, list, path or Source, (n_samples, n_features)
            Training rows; the square kernel matrix for kernel="precomputed".
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Classes; 0 and 1 for each label where a row may have several. None where the
            source has them, one number or text per row:
            `sources.open(path, target="label")`.
        sample_weight : float or array-like of shape (n_samples,), default=None
            A row of weight w counts as w rows; weight 0 excludes it.

        Returns
        -------
        self : KernelRidgeClassifier
            The fitted estimator.
        """
        with fitting(self, X, y) as task:
            _check_class_weight(self.class_weight)
            X = recognised(X)
            binarizer = LabelBinarizer(pos_label=1, neg_label=-1)
            if check_targets(X, y, type(self).__name__):
                X = self._validated(X, reset=True)
                labels = LabelsInSource.of(X)
                Y: Any = labels.signs(binarizer.fit(labels.classes))
                weights = labels.weighted(self.class_weight, X, sample_weight)
                X, sample_weight = X.having(weights=None), None
            else:
                X, y = self._rows_and_classes(X, y)
                Y = binarizer.fit_transform(y).astype(np.float64)
                weights = self._weights_with_classes(y, sample_weight)
            if len(binarizer.classes_) < 2:
                raise ValueError(
                    f"y has one class, {binarizer.classes_[0]}; at least two classes "
                    "are needed."
                )
            alphas = check_alphas(self.alpha, Y.shape[1])
            solver = check_solver(self.solver, alphas)
            kernel, source, engine = self._resolved(X, task, weights)
            source = source.having(targets=Y)
            goal = self._goal_for(float(alphas.min()))
            landmarks = self._choose(kernel, source, goal, engine)
            fit = fit_ridge(
                landmarks,
                source,
                alphas,
                fit_intercept=bool(self.fit_intercept),
                solver=solver,
                engine=engine,
                seed=seed_of(self.random_state),
            )
            self._keep(
                landmarks,
                fit,
                alphas,
                ravel=Y.shape[1] == 1,
                weighted=weights is not None,
            )
            self._binarizer = binarizer
            self.classes_ = binarizer.classes_
        return self

    @chunk_by_chunk
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
        landmarks, source = self._for_new_rows(X, self.dual_coef_, "predict")
        engine = engine_for(landmarks.kernel, self.n_jobs, self.verbose)
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

    def _rows_and_classes(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        X, y = not_in_memory(X), in_memory(y)
        if sp.issparse(y):
            raise ValueError("y is sparse; classes must be a dense array, y.toarray().")
        y = arrays.fetched(y)
        if isinstance(X, Source) or holds_objects(X) or not arrays.on_host(X):
            self._require(y)
            X = self._validated(X, reset=True)
            y = np.asarray(y)
            check_lengths(X, y)
        else:
            check_lengths(X, y)
            with explaining_text():
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
        return own * compute_sample_weight(self.class_weight, y)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def _check_class_weight(class_weight: Any) -> None:
    named = isinstance(class_weight, str) and class_weight == "balanced"
    if class_weight is not None and not named and not isinstance(class_weight, Mapping):
        raise ValueError(
            f"class_weight={class_weight!r} is not allowed; it is 'balanced', a dict "
            "of a weight for each class, or None."
        )
