"""Fitted estimators as nodes: each is k(x, landmarks)·dual + intercept, and labels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from .. import _arrays as arrays
from ..estimators.kernel_pca import KernelPCA
from ..estimators.nystroem import Nystroem
from ..estimators.ridge_base import OnRidge
from .kernel_nodes import kernel_columns, landmark_points
from .nodes import Nodes

ESTIMATORS = "Nystroem, KernelRidge, KernelRidgeCV, the classifiers and KernelPCA"


class Affine(NamedTuple):
    """k(x, points)·dual + intercept."""

    dual: np.ndarray  # (s, t)
    intercept: np.ndarray  # (t,)


def affine_of(estimator: Any) -> Affine:
    """What a fitted estimator makes of kernel values."""
    check_is_fitted(estimator)
    if isinstance(estimator, Nystroem):
        dual = arrays.to_host(estimator.normalization_).T
        return Affine(dual, np.zeros(dual.shape[1]))
    if isinstance(estimator, KernelPCA):
        return _exact_coordinates(estimator) or Affine(
            estimator._map.dual, estimator._map.intercept
        )
    if isinstance(estimator, OnRidge):
        found = estimator._model.map
        return Affine(found.dual, found.intercept)
    raise TypeError(
        f"A {type(estimator).__name__} has no form in ONNX here; there is one for "
        f"{ESTIMATORS}, and for pipelines with them nystrom.register_onnx()."
    )


def _exact_coordinates(estimator: KernelPCA) -> Affine | None:
    """scikit-learn's own coordinates, of few rows: centred values times directions.

    (k − mean(k) − r + m)·A with the column means r of K and their mean m. The columns
    of A add up to 0, as directions of a centred K do, so that mean(k) drops out.
    """
    theirs = estimator._exact
    if theirs is None:
        return None
    values, vectors = theirs.eigenvalues_, theirs.eigenvectors_
    A = np.zeros_like(vectors)
    A[:, values > 0] = vectors[:, values > 0] / np.sqrt(values[values > 0])
    if not estimator.center:
        return Affine(A, np.zeros(A.shape[1]))
    centerer = theirs._centerer
    offset = (centerer.K_fit_all_ - centerer.K_fit_rows_) @ A
    return Affine(A, offset)


def results(nodes: Nodes, x: str, estimator: Any) -> str:
    """Features, coordinates, predictions or decisions, (n, t) in float64."""
    dual, intercept = affine_of(estimator)
    landmarks = estimator.landmarks_
    # All rows where landmarks only precondition, else the landmarks.
    points = landmark_points(getattr(estimator, "X_fit_", landmarks.points))
    K = kernel_columns(nodes, nodes.wide(x), landmarks.kernel, points)
    return nodes.linear(K, dual, intercept)


def class_labels(nodes: Nodes, decisions: str, classes: np.ndarray) -> str:
    """The class of each row: the sign of one decision, or the largest of several."""
    if len(classes) == 2:
        above = nodes.node("Greater", decisions, nodes.constant(0.0))
        axes = nodes.constant([1], np.int64)
        number = nodes.node("Squeeze", nodes.node("Cast", above, to=7), axes)
    else:
        number = nodes.node("ArgMax", decisions, axis=1, keepdims=0)
    text = classes.dtype.kind in "OUS"
    named = nodes.constant(classes, object if text else np.int64)
    return nodes.node("Gather", named, number)


def checked_classes(estimator: Any) -> np.ndarray | None:
    """The labels of a classifier, as ONNX can tell them; None for other estimators."""
    if not is_classifier(estimator):
        return None
    classes = np.asarray(estimator.classes_)
    if getattr(estimator, "_binarizer", None) is not None and (
        str(getattr(estimator._binarizer, "y_type_", "")).startswith("multilabel")
    ):
        raise ValueError("Rows with several labels have no form in ONNX here.")
    if classes.dtype.kind in "biu":
        return classes.astype(np.int64)
    if classes.dtype.kind in "OUS":
        return np.array([str(label) for label in classes], dtype=object)
    if np.all(classes == np.round(classes)):
        return classes.astype(np.int64)
    raise ValueError(
        "Labels that are neither whole numbers nor text have no form in ONNX."
    )
