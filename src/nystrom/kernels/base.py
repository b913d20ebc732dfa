"""What every kernel can do, and sums and products of kernels.

A kernel is an immutable value with two methods to write, `kernel(X, Y)` on two blocks
of rows and `kernel.diag(X)`; the rest follows from these two.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from .. import _arrays as arrays
from .._arrays import Array


class Kernel(ABC):
    """k(x, y) for all pairs of rows of two blocks."""

    #: True: positive semi-definite for any rows; False: known not to be; None: unknown.
    psd: bool | None = True
    #: Whether rows may be anything, not only vectors.
    any_rows: bool = False
    #: Whether k(x, y) falls with a distance of x and y, and depends on nothing else.
    of_distance: bool = False

    @abstractmethod
    def __call__(self, X: Any, Y: Any) -> Array:
        """k(x, y) for each row x of X and y of Y, shape (len X, len Y)."""

    @abstractmethod
    def diag(self, X: Any) -> Array:
        """k(x, x) for each row x of X."""

    def against(self, Y: Any) -> Callable[[Any], Array]:
        """X ↦ kernel(X, Y) for fixed Y; a kernel may prepare Y once here."""
        return partial(_swapped, self, Y)

    def gram(self, Y: Any) -> np.ndarray:
        """kernel(Y, Y) on the host in float64, symmetric to the last bit."""
        wide = arrays.widen(Y)
        K = np.array(arrays.to_host(self(wide, wide)), dtype=np.float64)
        K += K.T
        K *= 0.5
        np.fill_diagonal(K, arrays.to_host(self.diag(wide)))
        return K

    def gram_evaluations(self, n_points: int) -> int:
        """How many kernel evaluations `gram` of so many points makes."""
        return n_points * n_points + n_points

    def like(self, X: Any) -> Any:
        """An array in whose library, and on whose device, blocks for rows X are."""
        return X if arrays.is_block(X) else np.empty(0)

    def dtype(self, X: Any) -> np.dtype:
        """The precision of this kernel's blocks on rows such as X."""
        return arrays.host_dtype(self.like(X))

    def __add__(self, other: Kernel) -> Kernel:
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        if isinstance(other, Kernel):
            return Product(self, other)
        if isinstance(other, Real):
            return Multiple(self, float(other))
        return NotImplemented

    __rmul__ = __mul__

    def __str__(self) -> str:
        values = ((f.name, getattr(self, f.name)) for f in fields(self))  # type: ignore[arg-type]
        shown = ", ".join(f"{name}={_short(v)}" for name, v in values)
        return f"{type(self).__name__}({shown})"


def _swapped(kernel: Kernel, Y: Any, X: Any) -> Array:
    return kernel(X, Y)


def _short(value: Any) -> str:
    if isinstance(value, tuple) and len(value) > 3:
        return f"({_short(value[0])}, … {len(value)} values)"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def per_feature(value: Any, name: str) -> float | tuple[float, ...]:
    """A number, or one number per feature as a tuple, none of them negative."""
    if np.ndim(value) == 0:
        return number(value, name, least=0.0)
    if np.ndim(value) > 1:
        raise ValueError(
            f"{name} has {np.ndim(value)} dimensions; give one number, or a sequence "
            "with one number per feature."
        )
    return tuple(number(v, name, least=0.0) for v in value)


def number(value: Any, name: str, least: float = -np.inf) -> float:
    """A finite number, as Python's own float; at least `least`."""
    real = isinstance(value, Real) and not isinstance(value, bool)
    if not real or not np.isfinite(value) or value < least:
        bound = "" if least == -np.inf else f" >= {least:g}"
        shown = value if real else repr(value)
        raise ValueError(
            f"{name}={shown} is not allowed; {name} is a finite number{bound}."
        )
    return float(value)


def set_numbers(kernel: Any, **least: float) -> None:
    """Make the named fields of a frozen kernel floats, or refuse them."""
    for name, bound in least.items():
        value = number(getattr(kernel, name), name, bound)
        object.__setattr__(kernel, name, value)


def check_width(values: Any, name: str, n_features: int) -> None:
    """Refuse a sequence that has not one number per feature."""
    if isinstance(values, tuple) and len(values) != n_features:
        raise ValueError(
            f"{name} has {len(values)} values, but rows have {n_features} features; "
            "give one number per feature, or a single number."
        )


@dataclass(frozen=True)
class Sum(Kernel):
    """k(x, y) = left(x, y) + right(x, y)."""

    left: Kernel
    right: Kernel

    @property
    def psd(self) -> bool | None:  # type: ignore[override]
        return _both(self.left.psd, self.right.psd)

    @property
    def any_rows(self) -> bool:  # type: ignore[override]
        return self.left.any_rows and self.right.any_rows

    @property
    def of_distance(self) -> bool:  # type: ignore[override]
        return self.left.of_distance and self.right.of_distance

    def __call__(self, X: Any, Y: Any) -> Array:
        return self.left(X, Y) + self.right(X, Y)

    def diag(self, X: Any) -> Array:
        return self.left.diag(X) + self.right.diag(X)

    def against(self, Y: Any) -> Callable[[Any], Array]:
        return partial(_added, self.left.against(Y), self.right.against(Y))

    def dtype(self, X: Any) -> np.dtype:
        return min(self.left.dtype(X), self.right.dtype(X), key=lambda d: d.itemsize)

    def __str__(self) -> str:
        return f"{self.left} + {self.right}"


@dataclass(frozen=True)
class Product(Kernel):
    """k(x, y) = left(x, y) · right(x, y)."""

    left: Kernel
    right: Kernel

    @property
    def psd(self) -> bool | None:  # type: ignore[override]
        return _both(self.left.psd, self.right.psd)

    @property
    def any_rows(self) -> bool:  # type: ignore[override]
        return self.left.any_rows and self.right.any_rows

    @property
    def of_distance(self) -> bool:  # type: ignore[override]
        return self.left.of_distance and self.right.of_distance

    def __call__(self, X: Any, Y: Any) -> Array:
        return self.left(X, Y) * self.right(X, Y)

    def diag(self, X: Any) -> Array:
        return self.left.diag(X) * self.right.diag(X)

    def against(self, Y: Any) -> Callable[[Any], Array]:
        return partial(_multiplied, self.left.against(Y), self.right.against(Y))

    def dtype(self, X: Any) -> np.dtype:
        return min(self.left.dtype(X), self.right.dtype(X), key=lambda d: d.itemsize)

    def __str__(self) -> str:
        return " * ".join(
            f"({k})" if isinstance(k, Sum) else str(k) for k in (self.left, self.right)
        )


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
    def psd(self) -> bool | None:  # type: ignore[override]
        return self.kernel.psd

    @property
    def any_rows(self) -> bool:  # type: ignore[override]
        return self.kernel.any_rows

    @property
    def of_distance(self) -> bool:  # type: ignore[override]
        return self.kernel.of_distance

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
        shown = f"({self.kernel})" if isinstance(self.kernel, Sum) else str(self.kernel)
        return f"{_short(self.factor)} * {shown}"


def _both(left: bool | None, right: bool | None) -> bool | None:
    # The sum or product of an indefinite kernel with another may still be definite.
    return True if left and right else None


def _added(left: Callable, right: Callable, X: Any) -> Array:
    return left(X) + right(X)


def _multiplied(left: Callable, right: Callable, X: Any) -> Array:
    return left(X) * right(X)


def _times(evaluate: Callable, factor: float, X: Any) -> Array:
    return evaluate(X) * factor
