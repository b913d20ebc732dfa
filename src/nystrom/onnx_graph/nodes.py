"""Where nodes of a graph go: into a file of our own, or into one that skl2onnx makes.

All arithmetic is float64, whatever comes in and goes out: coefficients that cancel lose
nothing that they have not lost in Python.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

#: The operators' version: the first in which reductions take their axes as an input.
OPSET = 18


class Nodes(ABC):
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


class OwnNodes(Nodes):
    """For a file of our own."""

    def __init__(self, helper: Any, numpy_helper: Any) -> None:
        self.helper, self.numpy_helper = helper, numpy_helper
        self.made: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        name = f"c{len(self.constants)}"
        array = np.array(value, dtype=dtype)
        self.constants.append(self.numpy_helper.from_array(array, name))
        return name

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.made)}"
        made = self.helper.make_node(operator, inputs, [name], name, **attributes)
        self.made.append(made)
        return name

    def called(self, value: str, name: str) -> None:
        """Let a value go out by this name."""
        self.made.append(self.helper.make_node("Identity", [value], [name]))
