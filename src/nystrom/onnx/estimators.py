"""ONNX nodes of fitted estimators: k(x, landmarks)·dual + intercept, class labels and
probabilities.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from .. import _arrays as arrays
from ..estimators._ridge import BaseKernelRidge
from ..estimators.kernel_pca import KernelPCA
from ..estimators.nystroem import Nystroem
from ..models.calibration import MAX_DECISION_VALUE, ProbabilityLink
from .kernels import NodeBuilder, kernel_nodes, landmark_points


def probability_nodes(nodes: NodeBuilder, decisions: str, estimator: Any) -> str | None:
    """(n, classes) in float64, as `predict_proba`; None where there are none."""
    logits = _logits(nodes, decisions, estimator)
    return None if logits is None else nodes.node("Softmax", logits, axis=1)


def _logits(nodes: NodeBuilder, decisions: str, estimator: Any) -> str | None:
    if not hasattr(estimator, "_links"):  # logistic: the values are log-odds
        return _two_class_logits(nodes, decisions, len(estimator.classes_))
    if estimator._links is None:  # conjugate gradients
        return None
    (link,) = estimator._links
    link_values = _link_below_max(nodes, decisions, link, len(estimator.classes_))
    return nodes.node("Mul", link_values, nodes.constant(link.slopes))


def _two_class_logits(nodes: NodeBuilder, decisions: str, n_classes: int) -> str:
    if n_classes > 2:
        return decisions
    zeros = nodes.node("Mul", decisions, nodes.constant(0.0))
    return nodes.node("Concat", zeros, decisions, axis=1)


def _link_below_max(
    nodes: NodeBuilder, F: str, link: ProbabilityLink, n_classes: int
) -> str:
    """As `methods.link.below_the_top`."""
    F = nodes.node("Max", F, nodes.constant(-MAX_DECISION_VALUE))
    F = nodes.node("Min", F, nodes.constant(MAX_DECISION_VALUE))
    if np.isfinite(link.tail):
        F = _with_tail(nodes, F, link.tail)
    if n_classes == 2:
        other = nodes.node("Neg", F)
        F = nodes.node("Concat", other, F, axis=1)
    shifted = nodes.node("Add", F, nodes.constant(1.0))
    u = nodes.node("Mul", shifted, nodes.constant(np.full(n_classes, link.sharpness)))
    g = nodes.node("Log", _softplus(nodes, u))
    is_small = nodes.node("Less", u, nodes.constant(-30.0))
    g = nodes.node("Where", is_small, u, g)
    top = nodes.node("ReduceMax", g, nodes.constant([1], np.int64), keepdims=1)
    return nodes.node("Sub", g, top)


def _with_tail(nodes: NodeBuilder, F: str, tail: float) -> str:
    """±(1 + tail·log(1 + t/tail)) for values ±(1 + t)."""
    inner = nodes.node("Max", F, nodes.constant(-1.0))
    inner = nodes.node("Min", inner, nodes.constant(1.0))
    excess = nodes.node("Sub", F, inner)  # with the sign of F
    grown = nodes.node("Mul", nodes.node("Abs", excess), nodes.constant(1 / tail))
    logs = nodes.node("Log", nodes.node("Add", grown, nodes.constant(1.0)))
    rest = nodes.node("Mul", logs, nodes.constant(tail))
    rest = nodes.node("Mul", rest, nodes.node("Sign", excess))
    return nodes.node("Add", inner, rest)


def _softplus(nodes: NodeBuilder, u: str) -> str:
    """log(1 + exp(u)), from −30 on; exp(u) there is still 10⁻¹³ of 1."""
    u = nodes.node("Max", u, nodes.constant(-30.0))
    exponential = nodes.node("Exp", nodes.node("Min", u, nodes.constant(30.0)))
    logarithm = nodes.node("Log", nodes.node("Add", exponential, nodes.constant(1.0)))
    # Where 1 + exp(u) would lose digits of exp(u), it is exp(u) itself; where exp(u)
    # is far above 1, u.
    tiny = nodes.node("Less", u, nodes.constant(-15.0))
    large = nodes.node("Greater", u, nodes.constant(30.0))
    return nodes.node(
        "Where", large, u, nodes.node("Where", tiny, exponential, logarithm)
    )


SUPPORTED_NAMES = "Nystroem, KernelRidge, KernelRidgeCV, the classifiers and KernelPCA"


class AffineMap(NamedTuple):
    """k(x, points)·dual + intercept."""

    dual: np.ndarray  # (s, t)
    intercept: np.ndarray  # (t,)


def affine_map(estimator: Any) -> AffineMap:
    """What a fitted estimator makes of kernel values."""
    check_is_fitted(estimator)
    if isinstance(estimator, Nystroem):
        dual = arrays.to_host(estimator.normalization_).T
        return AffineMap(dual, np.zeros(dual.shape[1]))
    if isinstance(estimator, KernelPCA):
        return _exact_coordinates(estimator) or AffineMap(
            estimator._map.dual, estimator._map.intercept
        )
    if isinstance(estimator, BaseKernelRidge):
        linear_map = estimator._model.map
        return AffineMap(linear_map.dual, linear_map.intercept)
    raise TypeError(
        f"A {type(estimator).__name__} has no form in ONNX here; there is one for "
        f"{SUPPORTED_NAMES}, and for pipelines with them nystrom.register_onnx()."
    )


def _exact_coordinates(estimator: KernelPCA) -> AffineMap | None:
    """scikit-learn's own coordinates, of few rows: centred values times directions.

    (k − mean(k) − r + m)·A with the column means r of K and their mean m. The columns
    of A add up to 0, as directions of a centred K do, so that mean(k) drops out.
    """
    sklearn_pca = estimator._exact
    if sklearn_pca is None:
        return None
    values, vectors = sklearn_pca.eigenvalues_, sklearn_pca.eigenvectors_
    A = np.zeros_like(vectors)
    A[:, values > 0] = vectors[:, values > 0] / np.sqrt(values[values > 0])
    if not estimator.center:
        return AffineMap(A, np.zeros(A.shape[1]))
    centerer = sklearn_pca._centerer
    offset = (centerer.K_fit_all_ - centerer.K_fit_rows_) @ A
    return AffineMap(A, offset)


def output_nodes(nodes: NodeBuilder, x: str, estimator: Any) -> str:
    """Features, coordinates, predictions or decisions, (n, t) in float64."""
    dual, intercept = affine_map(estimator)
    landmarks = estimator.landmarks_
    # All rows where landmarks only precondition, else the landmarks.
    points = landmark_points(getattr(estimator, "X_fit_", landmarks.points))
    K = kernel_nodes(nodes, nodes.wide(x), landmarks.kernel, points)
    return nodes.linear(K, dual, intercept)


def label_nodes(nodes: NodeBuilder, decisions: str, classes: np.ndarray) -> str:
    """The class of each row: the sign of one decision, or the largest of several."""
    if len(classes) == 2:
        above = nodes.node("Greater", decisions, nodes.constant(0.0))
        axes = nodes.constant([1], np.int64)
        class_index = nodes.node("Squeeze", nodes.node("Cast", above, to=7), axes)
    else:
        class_index = nodes.node("ArgMax", decisions, axis=1, keepdims=0)
    text = classes.dtype.kind in "OUS"
    labels = nodes.constant(classes, object if text else np.int64)
    return nodes.node("Gather", labels, class_index)


def onnx_classes(estimator: Any) -> np.ndarray | None:
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
