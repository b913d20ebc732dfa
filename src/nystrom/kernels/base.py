"""Base class of kernels, their traits, sums, products and multiples, and parameter
checks.

A kernel is an immutable value with two methods to write: `kernel(X, Y)` on two
blocks of rows and `kernel.diag(X)`. Everything else has a default.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any

import numpy as np

from .. import _arrays as arrays
from .._arrays import Array
from .._validation import check_numbers


@dataclass(frozen=True)
class Traits:
    """Properties of a kernel."""

    #: True: positive semi-definite for any rows; False: known not to be; None: unknown.
    psd: bool | None = True
    #: Whether rows may be anything, not only vectors.
    accepts_objects: bool = False
    #: Whether k(x, y) falls with a distance of x and y, and depends on nothing else.
    is_distance_based: bool = False
    #: Whether an evaluation is a call of a Python function: slower than all else, and
    #: from one thread only.
    costly: bool = False
    #: Whether the points are row numbers of a given matrix.
    uses_row_numbers: bool = False

    def __and__(self, other: Traits) -> Traits:
        """What is known of the sum, and of the product, of two kernels."""
        return Traits(
            # An indefinite kernel with another may still be definite.
            psd=True if self.psd and other.psd else None,
            accepts_objects=self.accepts_objects and other.accepts_objects,
            is_distance_based=self.is_distance_based and other.is_distance_based,
            costly=self.costly or other.costly,
            uses_row_numbers=self.uses_row_numbers or other.uses_row_numbers,
        )


class Kernel(ABC):
    """Base class of kernels.

    `kernel(X, Y)` is the block of kernel values of two blocks of rows. A subclass is a
    frozen dataclass that implements `__call__(X, Y)` and `diag(X)`. Kernels add and
    multiply.
    """

    @property
    def traits(self) -> Traits:
        """Properties of this kernel, such as whether it is positive semi-definite."""
        return Traits()

    @abstractmethod
    def __call__(self, X: Any, Y: Any) -> Array:
        """k(x, y) for each row x of X and y of Y, shape (len X, len Y)."""

    @abstractmethod
    def diag(self, X: Any) -> Array:
        """Compute k(x, x) for each row x of X.

        Parameters
        ----------
        X : block of rows
            The rows.

        Returns
        -------
        diagonal : array of shape (n_rows,)
            Kernel values.
        """

    def evaluator(self, Y: Any) -> Callable[[Any], Array]:
        """Return the function X ↦ kernel(X, Y) for a fixed block Y.

        A kernel may prepare Y once here.

        Parameters
        ----------
        Y : block of rows
            The fixed rows.

        Returns
        -------
        evaluate : callable
            Function of a block X.
        """
        return lambda X: self(X, Y)

    def gram(self, Y: Any) -> np.ndarray:
        """Compute the symmetric matrix kernel(Y, Y) in float64.

        Equal rows of Y have equal rows in the result, although a matrix product may
        round them differently: otherwise, copies would count for the rank.

        Parameters
        ----------
        Y : block of rows
            The rows.

        Returns
        -------
        gram : ndarray of shape (n_rows, n_rows)
            Kernel matrix on the host.
        """
        wide = arrays.widen(Y)
        # A result that is not finite is refused by whoever asked for it.
        with np.errstate(over="ignore", invalid="ignore"):
            K = np.array(arrays.to_host(self(wide, wide)), dtype=np.float64)
            K += K.T
            K *= 0.5
            np.fill_diagonal(K, arrays.to_host(self.diag(wide)))
        first = arrays.first_occurrences(wide)
        return K if first is None else K[np.ix_(first, first)]

    def gram_evaluations(self, n_points: int) -> int:
        """Count the kernel evaluations of `gram`.

        Parameters
        ----------
        n_points : int
            Number of points.

        Returns
        -------
        count : int
            Number of evaluations.
        """
        return n_points * n_points + n_points

    def output_like(self, X: Any) -> Any:
        """Return an array with the library and device of kernel blocks for rows X.

        Parameters
        ----------
        X : block of rows
            The rows.

        Returns
        -------
        like : array
            An example array.
        """
        return X if arrays.is_array_or_csr(X) else np.empty(0)

    def dtype(self, X: Any) -> np.dtype:
        """Return the precision of kernel blocks on rows such as X.

        Parameters
        ----------
        X : block of rows
            The rows.

        Returns
        -------
        dtype : numpy.dtype
            Either float32 or float64.
        """
        return arrays.numpy_float_dtype(self.output_like(X))

    def __add__(self, other: Kernel) -> Kernel:
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        if isinstance(other, Kernel):
            return Product(self, other)
        if isinstance(other, Real):
            return Scaled(self, float(other))
        return NotImplemented

    __rmul__ = __mul__

    def __str__(self) -> str:
        values = ((f.name, getattr(self, f.name)) for f in fields(self))  # type: ignore[arg-type]
        shown = ", ".join(f"{name}={format_parameter(v)}" for name, v in values)
        return f"{type(self).__name__}({shown})"


def format_parameter(value: Any) -> str:
    """A parameter, as it is printed."""
    if isinstance(value, tuple) and len(value) > 3:
        return f"({format_parameter(value[0])}, … {len(value)} values)"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def constant_diagonal(X: Any, value: float) -> Array:
    """The same k(x, x) for every row of X."""
    dtype, device = arrays.float_dtype(X), arrays.device(X)
    return arrays.namespace(X).full(X.shape[0], value, dtype=dtype, device=device)


@dataclass(frozen=True)
class CombinedKernel(Kernel):
    """Two kernels, joined entry by entry."""

    left: Kernel
    right: Kernel

    @staticmethod
    @abstractmethod
    def _combine(left: Any, right: Any, /) -> Any:
        """An entry from the entries of both."""

    @property
    def traits(self) -> Traits:
        return self.left.traits & self.right.traits

    def __call__(self, X: Any, Y: Any) -> Array:
        return self._combine(self.left(X, Y), self.right(X, Y))

    def diag(self, X: Any) -> Array:
        return self._combine(self.left.diag(X), self.right.diag(X))

    def evaluator(self, Y: Any) -> Callable[[Any], Array]:
        left, right = self.left.evaluator(Y), self.right.evaluator(Y)
        return lambda X: self._combine(left(X), right(X))

    def dtype(self, X: Any) -> np.dtype:
        return min(self.left.dtype(X), self.right.dtype(X), key=lambda d: d.itemsize)


class Sum(CombinedKernel):
    """k(x, y) = left(x, y) + right(x, y)."""

    _combine = staticmethod(operator.add)

    def __str__(self) -> str:
        return f"{self.left} + {self.right}"


class Product(CombinedKernel):
    """k(x, y) = left(x, y) · right(x, y)."""

    _combine = staticmethod(operator.mul)

    def __str__(self) -> str:
        return f"{_parenthesize_sum(self.left)} * {_parenthesize_sum(self.right)}"


@dataclass(frozen=True)
class Scaled(Kernel):
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

    def evaluator(self, Y: Any) -> Callable[[Any], Array]:
        evaluate = self.kernel.evaluator(Y)
        return lambda X: evaluate(X) * self.factor

    def gram(self, Y: Any) -> np.ndarray:
        return self.kernel.gram(Y) * self.factor

    def gram_evaluations(self, n_points: int) -> int:
        return self.kernel.gram_evaluations(n_points)

    def dtype(self, X: Any) -> np.dtype:
        return self.kernel.dtype(X)

    def __str__(self) -> str:
        return f"{format_parameter(self.factor)} * {_parenthesize_sum(self.kernel)}"


def _parenthesize_sum(kernel: Kernel) -> str:
    return f"({kernel})" if isinstance(kernel, Sum) else str(kernel)


def set_checked(kernel: Any, name: str, check: Callable, **bounds: Any) -> None:
    """Make a field of a frozen kernel what its check returns, or refuse it."""
    object.__setattr__(kernel, name, check(getattr(kernel, name), name, **bounds))


def check_per_feature(
    value: Any, name: str, *, positive: bool = False
) -> float | tuple[float, ...]:
    """A number > 0, or one per feature as a tuple; some may be 0 if not `positive`."""
    values = check_numbers(value, name, positive=positive)
    if not values.any():
        raise ValueError(
            f"{name}={value!r} is not allowed: all rows would look the same. Give "
            "numbers > 0; in a sequence with one per feature, 0 drops a feature."
        )
    return tuple(values.tolist()) if values.ndim else float(values)


def check_n_features(values: Any, name: str, n_features: int) -> None:
    """Refuse a sequence that has not one number per feature."""
    if isinstance(values, tuple) and len(values) != n_features:
        raise ValueError(
            f"{name} has {len(values)} values, but rows have {n_features} features; "
            "give one number per feature, or a single number."
        )
