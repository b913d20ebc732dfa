"""Sums, products and multiples of kernels, which are kernels again."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._arrays import Array
from .base import Kernel, Traits, short


@dataclass(frozen=True)
class Joined(Kernel):
    """Two kernels, joined entry by entry."""

    left: Kernel
    right: Kernel

    @staticmethod
    @abstractmethod
    def _join(left: Any, right: Any) -> Any:
        """An entry from the entries of both."""

    @property
    def traits(self) -> Traits:
        return self.left.traits & self.right.traits

    def __call__(self, X: Any, Y: Any) -> Array:
        return self._join(self.left(X, Y), self.right(X, Y))

    def diag(self, X: Any) -> Array:
        return self._join(self.left.diag(X), self.right.diag(X))

    def against(self, Y: Any) -> Callable[[Any], Array]:
        return partial(_joined, self._join, self.left.against(Y), self.right.against(Y))

    def dtype(self, X: Any) -> np.dtype:
        return min(self.left.dtype(X), self.right.dtype(X), key=lambda d: d.itemsize)


class Sum(Joined):
    """k(x, y) = left(x, y) + right(x, y)."""

    @staticmethod
    def _join(left: Any, right: Any) -> Any:
        return left + right

    def __str__(self) -> str:
        return f"{self.left} + {self.right}"


class Product(Joined):
    """k(x, y) = left(x, y) · right(x, y)."""

    @staticmethod
    def _join(left: Any, right: Any) -> Any:
        return left * right

    def __str__(self) -> str:
        return f"{_as_factor(self.left)} * {_as_factor(self.right)}"


@dataclass(frozen=True)
class Multiple(Kernel):
    """k(x, y) = factor · kernel(x, y), factor > 0."""

    kernel: Kernel
    factor: float

    def __post_init__(self) -> None:
        if not (0 < self.factor < np.inf):
            raise ValueError(
                f"A kernel can be multiplied by a finite number > 0, not by "
                f"{self.factor!r}: the result would not be a kernel."
            )

    @property
    def traits(self) -> Traits:
        return self.kernel.traits

    def __call__(self, X: Any, Y: Any) -> Array:
        return self.kernel(X, Y) * self.factor

    def diag(self, X: Any) -> Array:
        return self.kernel.diag(X) * self.factor

    def against(self, Y: Any) -> Callable[[Any], Array]:
        return partial(_times, self.kernel.against(Y), self.factor)

    def gram(self, Y: Any) -> np.ndarray:
        return self.kernel.gram(Y) * self.factor

    def gram_evaluations(self, n_points: int) -> int:
        return self.kernel.gram_evaluations(n_points)

    def dtype(self, X: Any) -> np.dtype:
        return self.kernel.dtype(X)

    def __str__(self) -> str:
        return f"{short(self.factor)} * {_as_factor(self.kernel)}"


def _as_factor(kernel: Kernel) -> str:
    return f"({kernel})" if isinstance(kernel, Sum) else str(kernel)


def _joined(join: Callable, left: Callable, right: Callable, X: Any) -> Array:
    return join(left(X), right(X))


def _times(evaluate: Callable, factor: float, X: Any) -> Array:
    return evaluate(X) * factor
