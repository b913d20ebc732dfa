"""What every kernel can do, and what is known of it.

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


@dataclass(frozen=True)
class Traits:
    """What is known of a kernel beyond its values."""

    #: True: positive semi-definite for any rows; False: known not to be; None: unknown.
    psd: bool | None = True
    #: Whether rows may be anything, not only vectors.
    any_rows: bool = False
    #: Whether k(x, y) falls with a distance of x and y, and depends on nothing else.
    of_distance: bool = False
    #: Whether an evaluation is a call of a Python function: dearer than all else, and
    #: to be made from one thread.
    costly: bool = False
    #: Whether the points are row numbers of a given matrix.
    by_number: bool = False

    def __and__(self, other: Traits) -> Traits:
        """What is known of the sum, and of the product, of two kernels."""
        return Traits(
            # An indefinite kernel with another may still be definite.
            psd=True if self.psd and other.psd else None,
            any_rows=self.any_rows and other.any_rows,
            of_distance=self.of_distance and other.of_distance,
            costly=self.costly or other.costly,
            by_number=self.by_number or other.by_number,
        )


class Kernel(ABC):
    """k(x, y) for all pairs of rows of two blocks."""

    @property
    def traits(self) -> Traits:
        """What is known of this kernel; where always the same, a class attribute."""
        return Traits()

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
        """kernel(Y, Y) on the host in float64, symmetric to the last bit.

        Equal rows of Y have equal rows here too: a product rounds by where a row is,
        and copies that differ would count for the rank.
        """
        wide = arrays.widen(Y)
        # A result that is not finite is refused by whoever asked for it.
        with np.errstate(over="ignore", invalid="ignore"):
            K = np.array(arrays.to_host(self(wide, wide)), dtype=np.float64)
            K += K.T
            K *= 0.5
            np.fill_diagonal(K, arrays.to_host(self.diag(wide)))
        first = arrays.first_of_equals(wide)
        return K if first is None else K[np.ix_(first, first)]

    def gram_evaluations(self, n_points: int) -> int:
        """How many kernel evaluations `gram` of so many points makes."""
        return n_points * n_points + n_points

    def like(self, X: Any) -> Any:
        """An array in whose library, and on whose device, blocks for rows X are."""
        return X if arrays.is_block(X) else np.empty(0)

    def dtype(self, X: Any) -> np.dtype:
        """The precision of this kernel's blocks on rows such as X."""
        return arrays.host_dtype(self.like(X))

    # The algebra is made of kernels, hence imported where it is used.

    def __add__(self, other: Kernel) -> Kernel:
        from .algebra import Sum

        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        from .algebra import Multiple, Product

        if isinstance(other, Kernel):
            return Product(self, other)
        if isinstance(other, Real):
            return Multiple(self, float(other))
        return NotImplemented

    __rmul__ = __mul__

    def __str__(self) -> str:
        values = ((f.name, getattr(self, f.name)) for f in fields(self))  # type: ignore[arg-type]
        shown = ", ".join(f"{name}={short(v)}" for name, v in values)
        return f"{type(self).__name__}({shown})"


def _swapped(kernel: Kernel, Y: Any, X: Any) -> Array:
    return kernel(X, Y)


def short(value: Any) -> str:
    """A parameter, as it is printed."""
    if isinstance(value, tuple) and len(value) > 3:
        return f"({short(value[0])}, … {len(value)} values)"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def constant(X: Any, value: float) -> Array:
    """The same k(x, x) for every row of X."""
    xp = arrays.namespace(X)
    like = {} if xp is np else {"device": arrays.device(X)}
    return xp.full(X.shape[0], value, dtype=arrays.float_dtype(X), **like)
