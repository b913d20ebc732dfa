"""ONNX nodes that compute k(x, landmarks).

All arithmetic is float64, whatever the type of the inputs and outputs, so that
coefficients that cancel lose no more than in Python.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from .._precision import EPS64, MAX_DISTANCE_ERROR
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
from ..kernels.base import Product, Scaled, Sum

#: The operators' version: the first in which reductions take their axes as an input.
OPSET = 18


class NodeBuilder(ABC):
    """Nodes of a graph, one after the other; a value goes by its name."""

    @abstractmethod
    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        """An array or number that is part of the graph."""

    @abstractmethod
    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """What an operator makes of its inputs."""

    def wide(self, value: str) -> str:
        """As float64."""
        return self.node("Cast", value, to=11)

    def sum_of_squares(self, value: str) -> str:
        """‖x‖² of each row, as a column."""
        axes = self.constant([1], np.int64)
        return self.node("ReduceSumSquare", value, axes, keepdims=1)

    def linear(self, value: str, matrix: np.ndarray, offset: np.ndarray) -> str:
        """value·matrix + offset."""
        product = self.node("MatMul", value, self.constant(matrix))
        return self.node("Add", product, self.constant(offset))


class OnnxNodeBuilder(NodeBuilder):
    """For a file of our own."""

    def __init__(self, helper: Any, numpy_helper: Any) -> None:
        self.helper, self.numpy_helper = helper, numpy_helper
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        name = f"c{len(self.constants)}"
        array = np.array(value, dtype=dtype)
        self.constants.append(self.numpy_helper.from_array(array, name))
        return name

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        node = self.helper.make_node(operator, inputs, [name], name, **attributes)
        self.nodes.append(node)
        return name

    def name_output(self, value: str, name: str) -> None:
        """Let a value go out by this name."""
        self.nodes.append(self.helper.make_node("Identity", [value], [name]))


def kernel_nodes(nodes: NodeBuilder, x: str, kernel: Kernel, points: np.ndarray) -> str:
    """k(x, points) for the rows that x names, in float64."""
    if isinstance(kernel, (Sum, Product)):
        left = kernel_nodes(nodes, x, kernel.left, points)
        right = kernel_nodes(nodes, x, kernel.right, points)
        return nodes.node("Add" if isinstance(kernel, Sum) else "Mul", left, right)
    if isinstance(kernel, Scaled):
        inner = kernel_nodes(nodes, x, kernel.kernel, points)
        return nodes.node("Mul", inner, nodes.constant(kernel.factor))
    make_nodes = KERNEL_NODES.get(type(kernel))
    if make_nodes is None:
        raise ValueError(
            f"{kernel} has no form in ONNX here; there are "
            f"{', '.join(cls.__name__ for cls in KERNEL_NODES)}, and their sums, "
            "products "
            "and multiples."
        )
    return make_nodes(nodes, x, kernel, points)


def landmark_points(points: Any) -> np.ndarray:
    """The landmarks as a float64 array."""
    if sp.issparse(points):
        return points.toarray().astype(np.float64)
    if not arrays.is_array(points):
        raise ValueError("Only rows of numbers have a form in ONNX.")
    return arrays.to_host(points).astype(np.float64)


def _squared_distances(
    nodes: NodeBuilder, x: str, points: np.ndarray, scale: Any
) -> str:
    """‖(x − y)·scale‖², of rows moved to the landmarks' centre, where less cancels.

    Distances from landmarks that are far from it are found by differences, which takes
    more memory. So the centre is their median, which few far ones hardly move.
    """
    center = np.median(points, axis=0)
    # One number for each feature: runtimes fold a single one into the product, as a
    # float32.
    scales = np.broadcast_to(np.asarray(scale, dtype=np.float64), center.shape)
    Y = (points - center) * scales
    centered = nodes.node("Sub", x, nodes.constant(center))
    X = nodes.node("Mul", centered, nodes.constant(scales))
    far = EPS64 * np.einsum("ij,ij->i", Y, Y) > MAX_DISTANCE_ERROR[np.dtype(np.float64)]
    if not far.any():
        return _distances_by_products(nodes, X, Y)
    if far.all():
        return _distances_by_differences(nodes, X, Y)
    parts = (
        _distances_by_products(nodes, X, Y[~far]),
        _distances_by_differences(nodes, X, Y[far]),
    )
    order = np.argsort(np.concatenate([np.flatnonzero(~far), np.flatnonzero(far)]))
    both = nodes.node("Concat", *parts, axis=1)
    return nodes.node("Gather", both, nodes.constant(order, np.int64), axis=1)


def _distances_by_products(nodes: NodeBuilder, X: str, Y: np.ndarray) -> str:
    cross = nodes.node("MatMul", X, nodes.constant(-2 * Y.T))
    sums = nodes.node("Add", nodes.sum_of_squares(X), cross)
    D = nodes.node("Add", sums, nodes.constant(np.einsum("ij,ij->i", Y, Y)))
    return nodes.node("Max", D, nodes.constant(0.0))


def _distances_by_differences(nodes: NodeBuilder, X: str, Y: np.ndarray) -> str:
    """A number for each row, landmark and feature: for few landmarks."""
    rows = nodes.node("Unsqueeze", X, nodes.constant([1], np.int64))
    differences = nodes.node("Sub", rows, nodes.constant(Y))
    axes = nodes.constant([2], np.int64)
    return nodes.node("ReduceSumSquare", differences, axes, keepdims=0)


def _exp_multiple(nodes: NodeBuilder, distances: str, factor: float = -1.0) -> str:
    return nodes.node("Exp", nodes.node("Mul", distances, nodes.constant(factor)))


def _rbf(nodes: NodeBuilder, x: str, kernel: Any, points: np.ndarray) -> str:
    return _exp_multiple(
        nodes, _squared_distances(nodes, x, points, np.sqrt(kernel.gamma))
    )


def _matern(nodes: NodeBuilder, x: str, kernel: Any, points: np.ndarray) -> str:
    scale = np.sqrt(2 * kernel.nu) / np.asarray(kernel.length_scale)
    squares = _squared_distances(nodes, x, points, scale)
    r = nodes.node("Sqrt", squares)
    decay = _exp_multiple(nodes, r)
    if kernel.nu == 0.5:
        return decay
    factor = nodes.node("Add", r, nodes.constant(1.0))
    if kernel.nu == 2.5:
        third = nodes.node("Div", squares, nodes.constant(3.0))
        factor = nodes.node("Add", factor, third)
    return nodes.node("Mul", factor, decay)


def _rational_quadratic(
    nodes: NodeBuilder, x: str, kernel: Any, points: np.ndarray
) -> str:
    D = _squared_distances(nodes, x, points, 1 / np.asarray(kernel.length_scale))
    ratio = nodes.node("Div", D, nodes.constant(2 * kernel.alpha))
    base = nodes.node("Add", ratio, nodes.constant(1.0))
    return nodes.node("Pow", base, nodes.constant(-kernel.alpha))


def _laplacian(nodes: NodeBuilder, x: str, kernel: Any, points: np.ndarray) -> str:
    """Through rows × landmarks × features numbers: for few rows at a time."""
    scaled = nodes.node("Mul", x, nodes.constant(kernel.gamma))
    rows = nodes.node("Unsqueeze", scaled, nodes.constant([1], np.int64))
    Y = nodes.constant((points * np.asarray(kernel.gamma))[None])
    distances = nodes.node("Abs", nodes.node("Sub", rows, Y))
    axes = nodes.constant([2], np.int64)
    return _exp_multiple(nodes, nodes.node("ReduceSum", distances, axes, keepdims=0))


def _linear(nodes: NodeBuilder, x: str, kernel: Any, points: np.ndarray) -> str:
    return nodes.node("MatMul", x, nodes.constant(points.T))


def _scaled_product(nodes: NodeBuilder, x: str, kernel: Any, points: np.ndarray) -> str:
    """gamma·xᵀy + coef0."""
    P = nodes.node("MatMul", x, nodes.constant(kernel.gamma * points.T))
    return nodes.node("Add", P, nodes.constant(kernel.coef0))


def _polynomial(nodes: NodeBuilder, x: str, kernel: Any, points: np.ndarray) -> str:
    P = _scaled_product(nodes, x, kernel, points)
    return nodes.node("Pow", P, nodes.constant(kernel.degree))


def _sigmoid(nodes: NodeBuilder, x: str, kernel: Any, points: np.ndarray) -> str:
    # Tanh has no float64 form in every runtime: 1 − 2/(1 + exp(2p)).
    P = _scaled_product(nodes, x, kernel, points)
    exponential = _exp_multiple(nodes, P, 2.0)
    denominator = nodes.node("Add", exponential, nodes.constant(1.0))
    return nodes.node(
        "Sub", nodes.constant(1.0), nodes.node("Div", nodes.constant(2.0), denominator)
    )


def _cosine(nodes: NodeBuilder, x: str, kernel: Any, points: np.ndarray) -> str:
    norms = np.linalg.norm(points, axis=1, keepdims=True)
    P = nodes.node("MatMul", x, nodes.constant((points / np.where(norms, norms, 1)).T))
    row_norms = nodes.node("Sqrt", nodes.sum_of_squares(x))
    # A row of zeros has products of 0 with all: whatever they are divided by.
    tiny = nodes.constant(np.finfo(np.float64).tiny)
    return nodes.node("Div", P, nodes.node("Max", row_norms, tiny))


KERNEL_NODES: dict[type[Kernel], Callable[[NodeBuilder, str, Any, np.ndarray], str]] = {
    Cosine: _cosine,
    Laplacian: _laplacian,
    Linear: _linear,
    Matern: _matern,
    Polynomial: _polynomial,
    RBF: _rbf,
    RationalQuadratic: _rational_quadratic,
    Sigmoid: _sigmoid,
}
