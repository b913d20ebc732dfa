"""Kernels that the user brings: a function of two rows or of two blocks.

A plain callable takes two rows and returns a number, as in scikit-learn. Whether a
function takes blocks cannot be found out by trying it (`numpy.dot` on two blocks
returns a wrong matrix of the right shape when there are as many rows as features), so
`blockwise` says it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from .._arrays import Array
from .base import Kernel, Traits

#: What to do where a function of two rows is meant to be one of two blocks.
TWO_BLOCKS = "A function of two blocks is passed as kernels.blockwise(function)."
#: Rows of a block whose diagonal is k(x, x), where a function of blocks is all there
#: is: so many evaluations for one that is wanted, and as many times fewer calls.
DIAGONAL_ROWS = 32


@dataclass(frozen=True)
class Pairwise(Kernel):
    """k(x, y) = function(x, y, **params) on two rows of any kind."""

    function: Callable[..., float]
    params: dict[str, Any] = field(default_factory=dict)
    traits: ClassVar[Traits] = Traits(psd=None, any_rows=True, costly=True)

    def __call__(self, X: Any, Y: Any) -> Array:
        xs, ys = _rows(X), _rows(Y)
        K = [[self._value(x, y) for y in ys] for x in xs]
        return _block(np.asarray(K, dtype=np.float64).reshape(len(xs), len(ys)), X)

    def diag(self, X: Any) -> Array:
        values = [self._value(x, x) for x in _rows(X)]
        return _block(np.asarray(values, dtype=np.float64), X)

    def gram(self, Y: Any) -> np.ndarray:
        """kernel(Y, Y) with each pair evaluated once."""
        rows = _rows(arrays.widen(Y))
        K = np.empty((len(rows), len(rows)))
        for i, x in enumerate(rows):
            for j in range(i + 1):
                K[i, j] = K[j, i] = self._value(x, rows[j])
        return K

    def _value(self, x: Any, y: Any) -> float:
        try:
            value = self.function(x, y, **self.params)
        except Exception as error:
            if not getattr(error, "__notes__", None):
                error.add_note(f"kernel={self} was called with two rows. {TWO_BLOCKS}")
            raise
        try:
            if np.ndim(value) == 0:
                return float(value)
        except (TypeError, ValueError):
            pass
        raise ValueError(
            f"The kernel {self} returned {_shown(value)} for two rows; it must return "
            f"one number. {TWO_BLOCKS}"
        )

    def gram_evaluations(self, n_points: int) -> int:
        return n_points * (n_points + 1) // 2

    def __str__(self) -> str:
        return _name(self.function)


def _name(function: Callable) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _shown(value: Any) -> str:
    """What a function returned, in a few words."""
    if np.ndim(value) or sp.issparse(value):
        return f"a {type(value).__name__} of shape {tuple(np.shape(value))}"
    text = repr(value)
    return text if len(text) < 40 else f"a {type(value).__name__}"


def _rows(X: Any) -> list[Any]:
    """The rows one by one."""
    if sp.issparse(X):
        return [X[[i]] for i in range(X.shape[0])]
    if arrays.is_array(X):
        return [X[i, ...] for i in range(X.shape[0])]
    return list(X)


@dataclass(frozen=True)
class Blockwise(Kernel):
    """kernel(X, Y) = function(X, Y): a function of two blocks, see `blockwise`."""

    function: Callable[[Any, Any], Array]
    diagonal: Callable[[Any], Array] | None = None
    traits: ClassVar[Traits] = Traits(psd=None, any_rows=True)

    def __call__(self, X: Any, Y: Any) -> Array:
        K = self.function(X, Y)
        shape = (_length(X), _length(Y))
        if tuple(np.shape(K)) != shape:
            given = f"shape {tuple(np.shape(K))}" if np.ndim(K) else _shown(K)
            raise ValueError(
                f"The block kernel {self} returned {given} for blocks of {shape[0]} "
                f"and {shape[1]} rows; it must return {shape}. A function of two "
                "single rows is passed without kernels.blockwise."
            )
        self._refuse_what_is_no_number(_as_array(K))
        return _block(K, X)

    def _refuse_what_is_no_number(self, K: Array) -> None:
        if arrays.on_host(K) and K.dtype.kind not in "biufO":
            raise ValueError(
                f"The block kernel {self} returned {K.dtype} values; it must return "
                "real numbers."
            )

    def diag(self, X: Any) -> Array:
        if self.diagonal is not None:
            return _block(self.diagonal(X), X)
        values = np.empty(_length(X))
        for start in range(0, len(values), DIAGONAL_ROWS):
            stop = min(start + DIAGONAL_ROWS, len(values))
            rows = arrays.slice_rows(X, start, stop)
            values[start:stop] = arrays.to_host(self(rows, rows)).diagonal()
        return _block(values, X)

    def __str__(self) -> str:
        return _name(self.function)


def _length(X: Any) -> int:
    return X.shape[0] if hasattr(X, "shape") else len(X)


def _as_array(values: Any) -> Array:
    values = values.toarray() if sp.issparse(values) else values
    return values if arrays.is_array(values) else np.asarray(values)


def _block(values: Any, X: Any) -> Array:
    """What the user returned, in the precision of the rows."""
    values = _as_array(values)
    if arrays.is_array(X) and arrays.namespace(X) is not np:
        same = arrays.namespace(values) is arrays.namespace(X)
        values = values if same else arrays.from_host(values, X, values.dtype)
    wide = not arrays.is_block(X)
    return (
        arrays.widen(values) if wide else arrays.as_float(values, arrays.float_dtype(X))
    )


def blockwise(
    function: Callable[[Any, Any], Array],
    *,
    diag: Callable[[Any], Array] | None = None,
) -> Kernel:
    """A kernel from a function of two blocks of rows.

    Parameters
    ----------
    function : callable
        `function(X, Y)` returns the matrix of k(x, y), shape (rows of X, rows of Y). A
        block is a slice of what was passed in: an array, CSR rows, or a list of
        objects.
    diag : callable, optional
        `diag(X)` returns k(x, x) for each row. Without it they are taken from blocks
        of 32 rows against themselves: 32 evaluations for each, which count as one.

    Returns
    -------
    kernel : Kernel
        A value to pass as `kernel=`.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import kernels
    >>> minimum = kernels.blockwise(
    ...     lambda X, Y: np.minimum(X[:, None], Y[None]).sum(axis=2),
    ...     diag=lambda X: X.sum(axis=1),
    ... )
    >>> minimum(np.array([[1.0, 2.0]]), np.array([[2.0, 1.0], [0.0, 5.0]]))
    array([[2., 2.]])
    """
    return Blockwise(function, diag)
