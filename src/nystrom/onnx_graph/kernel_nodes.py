"""Kernels as nodes: k(x, landmarks) of the rows that come in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from ..kernels import (
    RBF,
    Cosine,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
)
from ..kernels.algebra import Multiple, Product, Sum
from ..precision import EPS64, FAR
from .nodes import Nodes


def kernel_columns(nodes: Nodes, x: str, kernel: Kernel, points: np.ndarray) -> str:
    """k(x, points) for the rows that x names, in float64."""
    if isinstance(kernel, (Sum, Product)):
        left = kernel_columns(nodes, x, kernel.left, points)
        right = kernel_columns(nodes, x, kernel.right, points)
        return nodes.node("Add" if isinstance(kernel, Sum) else "Mul", left, right)
    if isinstance(kernel, Multiple):
        inner = kernel_columns(nodes, x, kernel.kernel, points)
        return nodes.node("Mul", inner, nodes.constant(kernel.factor))
    made = WRITERS.get(type(kernel))
    if made is None:
        raise ValueError(
            f"{kernel} has no form in ONNX here; there are "
            f"{', '.join(cls.__name__ for cls in WRITERS)}, and their sums, products "
            "and multiples."
        )
    return made(nodes, x, kernel, points)


def landmark_points(points: Any) -> np.ndarray:
    """The landmarks as a float64 array."""
    if sp.issparse(points):
        return points.toarray().astype(np.float64)
    if not arrays.is_array(points):
        raise ValueError("Only rows of numbers have a form in ONNX.")
    return arrays.to_host(points).astype(np.float64)


def _squared(nodes: Nodes, x: str, points: np.ndarray, scale: Any) -> str:
    """‖(x − y)·scale‖², of rows moved to the landmarks' centre, where less cancels.

    Distances from landmarks that are far from it are found by differences, which takes
    more memory. So the centre is their median, which few far ones hardly move.
    """
    center = np.median(points, axis=0)
    # One number for each feature: runtimes fold a single one into the product, as a
    # float32.
    scales = np.broadcast_to(np.asarray(scale, dtype=np.float64), center.shape)
    Y = (points - center) * scales
    moved = nodes.node("Sub", x, nodes.constant(center))
    X = nodes.node("Mul", moved, nodes.constant(scales))
    far = EPS64 * np.einsum("ij,ij->i", Y, Y) > FAR[np.dtype(np.float64)]
    if not far.any():
        return _by_products(nodes, X, Y)
    if far.all():
        return _by_differences(nodes, X, Y)
    parts = _by_products(nodes, X, Y[~far]), _by_differences(nodes, X, Y[far])
    places = np.argsort(np.concatenate([np.flatnonzero(~far), np.flatnonzero(far)]))
    both = nodes.node("Concat", *parts, axis=1)
    return nodes.node("Gather", both, nodes.constant(places, np.int64), axis=1)


def _by_products(nodes: Nodes, X: str, Y: np.ndarray) -> str:
    cross = nodes.node("MatMul", X, nodes.constant(-2 * Y.T))
    sums = nodes.node("Add", nodes.sum_of_squares(X), cross)
    D = nodes.node("Add", sums, nodes.constant(np.einsum("ij,ij->i", Y, Y)))
    return nodes.node("Max", D, nodes.constant(0.0))


def _by_differences(nodes: Nodes, X: str, Y: np.ndarray) -> str:
    """A number for each row, landmark and feature: for few landmarks."""
    rows = nodes.node("Unsqueeze", X, nodes.constant([1], np.int64))
    apart = nodes.node("Sub", rows, nodes.constant(Y))
    axes = nodes.constant([2], np.int64)
    return nodes.node("ReduceSumSquare", apart, axes, keepdims=0)


def _decay(nodes: Nodes, distances: str, factor: float = -1.0) -> str:
    return nodes.node("Exp", nodes.node("Mul", distances, nodes.constant(factor)))


def _rbf(nodes: Nodes, x: str, kernel: Any, points: np.ndarray) -> str:
    return _decay(nodes, _squared(nodes, x, points, np.sqrt(kernel.gamma)))


def _matern(nodes: Nodes, x: str, kernel: Any, points: np.ndarray) -> str:
    scale = np.sqrt(2 * kernel.nu) / np.asarray(kernel.length_scale)
    squares = _squared(nodes, x, points, scale)
    r = nodes.node("Sqrt", squares)
    decay = _decay(nodes, r)
    if kernel.nu == 0.5:
        return decay
    factor = nodes.node("Add", r, nodes.constant(1.0))
    if kernel.nu == 2.5:
        third = nodes.node("Div", squares, nodes.constant(3.0))
        factor = nodes.node("Add", factor, third)
    return nodes.node("Mul", factor, decay)


def _rational_quadratic(nodes: Nodes, x: str, kernel: Any, points: np.ndarray) -> str:
    D = _squared(nodes, x, points, 1 / np.asarray(kernel.length_scale))
    share = nodes.node("Div", D, nodes.constant(2 * kernel.alpha))
    one_more = nodes.node("Add", share, nodes.constant(1.0))
    return nodes.node("Pow", one_more, nodes.constant(-kernel.alpha))


def _laplacian(nodes: Nodes, x: str, kernel: Any, points: np.ndarray) -> str:
    """Through rows × landmarks × features numbers: for few rows at a time."""
    scaled = nodes.node("Mul", x, nodes.constant(kernel.gamma))
    apart = nodes.node("Unsqueeze", scaled, nodes.constant([1], np.int64))
    Y = nodes.constant((points * np.asarray(kernel.gamma))[None])
    distances = nodes.node("Abs", nodes.node("Sub", apart, Y))
    axes = nodes.constant([2], np.int64)
    return _decay(nodes, nodes.node("ReduceSum", distances, axes, keepdims=0))


def _product(nodes: Nodes, x: str, kernel: Any, points: np.ndarray) -> str:
    return nodes.node("MatMul", x, nodes.constant(points.T))


def _shifted(nodes: Nodes, x: str, kernel: Any, points: np.ndarray) -> str:
    """gamma·xᵀy + coef0."""
    P = nodes.node("MatMul", x, nodes.constant(kernel.gamma * points.T))
    return nodes.node("Add", P, nodes.constant(kernel.coef0))


def _polynomial(nodes: Nodes, x: str, kernel: Any, points: np.ndarray) -> str:
    P = _shifted(nodes, x, kernel, points)
    return nodes.node("Pow", P, nodes.constant(kernel.degree))


def _sigmoid(nodes: Nodes, x: str, kernel: Any, points: np.ndarray) -> str:
    # Tanh has no float64 form in every runtime: 1 − 2/(1 + exp(2p)).
    P = _shifted(nodes, x, kernel, points)
    grown = _decay(nodes, P, 2.0)
    below = nodes.node("Add", grown, nodes.constant(1.0))
    return nodes.node(
        "Sub", nodes.constant(1.0), nodes.node("Div", nodes.constant(2.0), below)
    )


def _cosine(nodes: Nodes, x: str, kernel: Any, points: np.ndarray) -> str:
    norms = np.linalg.norm(points, axis=1, keepdims=True)
    P = nodes.node("MatMul", x, nodes.constant((points / np.where(norms, norms, 1)).T))
    own = nodes.node("Sqrt", nodes.sum_of_squares(x))
    # A row of zeros has products of 0 with all: whatever they are divided by.
    tiny = nodes.constant(np.finfo(np.float64).tiny)
    return nodes.node("Div", P, nodes.node("Max", own, tiny))


WRITERS: dict[type[Kernel], Callable[[Nodes, str, Any, np.ndarray], str]] = {
    Cosine: _cosine,
    Laplacian: _laplacian,
    Linear: _product,
    Matern: _matern,
    Polynomial: _polynomial,
    RBF: _rbf,
    RationalQuadratic: _rational_quadratic,
    Sigmoid: _sigmoid,
}
