"""The columns of K at some points: X ↦ k(X, S) and k(x, x).

The one evaluator. How precisely rows are evaluated, and where the values are wanted, is
said here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from . import _arrays as arrays
from ._arrays import Array
from .column_blocks import ColumnBlocks
from .engines import Engine
from .kernels import Kernel
from .refusals import KernelNotFiniteError, check_finite
from .sinks import ArraySink
from .sources import Block, Source
from .sources import weights as row_weights


@dataclass(frozen=True, eq=False)
class Columns:
    """k(x, s) for the rows x of any block and fixed points s.

    Called, it gives a block in the library, on the device and in the precision of the
    rows: what n·s² work is done on. `float64` gives the same in float64, and `host`
    brings the values of a few rows to the host.
    """

    kernel: Kernel
    points: Any
    wide: bool = False  # float32 rows are evaluated in float64
    #: How to evaluate rows, by where they are: the points go there once.
    _evaluate: dict[Any, Callable] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_evaluate", {})
        if len(self):  # no points have no columns, nor can every kernel prepare none
            self._evaluate[arrays.place(self.points)] = self._against(self.points)

    def _against(self, points: Any) -> Callable:
        return self.kernel.against(arrays.widen(points) if self.wide else points)

    def _values(self, X: Any) -> Array:
        where = arrays.place(X)
        if where not in self._evaluate:
            self._evaluate[where] = self._against(arrays.beside(self.points, X))
        return self._evaluate[where](X)

    def __reduce__(self) -> tuple[Any, ...]:
        # Other processes have devices of their own.
        return Columns, (self.kernel, self.points, self.wide)

    def __call__(self, X: Any) -> Array:
        if not self.wide and not self._has_more_digits_than(X):
            return self._values(X)
        # Rows are copied to float64, and so are values that were given (precomputed).
        return arrays.widen(self._values(arrays.widen(X)))

    def _has_more_digits_than(self, X: Any) -> bool:
        """Whether float32 rows meet float64 points: what was fitted in float64."""
        return (
            not self.kernel.traits.by_number
            and arrays.is_block(X)
            and arrays.host_dtype(X) == np.float32
            and arrays.is_block(self.points)
            and arrays.host_dtype(self.points) == np.float64
        )

    def float64(self, X: Any) -> Array:
        """The values in float64, where the rows are."""
        return arrays.widen(self(X))

    def host(self, X: Any) -> np.ndarray:
        """The values of a few rows on the host, in float64."""
        return arrays.host_values(self(X))

    def diag(self, X: Any) -> Array:
        """k(x, x) of each row in float64, where the rows are."""
        return diag64(self.kernel, X)

    def __len__(self) -> int:
        return arrays.count_rows(self.points)

    @property
    def dtype(self) -> np.dtype:
        """The precision of the values, for rows such as the points."""
        return np.dtype(np.float64) if self.wide else self.kernel.dtype(self.points)

    @property
    def narrow(self) -> bool:
        """Whether the values are float32."""
        return self.dtype == np.float32

    def widened(self) -> Columns:
        """The same columns, evaluated in float64."""
        return self if self.wide else replace(self, wide=True)

    def operand(self, B: np.ndarray) -> ColumnBlocks:
        """A matrix on the host, to multiply blocks with."""
        return ColumnBlocks.of(B, self.dtype)


def handed_out(values: Array, dtype: Any) -> Array:
    """Results in the precision of the rows they are of, if that has such numbers."""
    with np.errstate(over="ignore"):
        narrow = arrays.as_float(values, arrays.own_dtype(dtype, values))
    if narrow.dtype == values.dtype or _all_finite(narrow):
        return narrow
    largest = float(np.abs(arrays.to_host(values)).max())
    raise KernelNotFiniteError(
        f"Results of up to {largest:.2g} are too large for {np.dtype(dtype)}, the "
        "precision of these rows; pass them in float64, or on a smaller scale."
    )


def _all_finite(values: Array) -> bool:
    xp = arrays.namespace(values)
    return bool(xp.all(xp.isfinite(values)))


def diagonal(kernel: Kernel, source: Source, *, engine: Engine) -> np.ndarray:
    """k(x, x) of every row."""
    sink = ArraySink((source.n_rows,))
    engine.map(_diagonal, source, sink, (kernel,), "diagonal")
    if not np.isfinite(sink.array.sum()):
        check_finite(sink.array)
    return sink.array


def _diagonal(block: Block, kernel: Kernel) -> np.ndarray:
    return arrays.to_host(diag64(kernel, block.X))


def trace(kernel: Kernel, source: Source, *, engine: Engine) -> float:
    """Σ w·k(x, x) over all rows, and no vector of them."""
    return float(engine.reduce(_weighted_diagonal, source, (kernel,), "diagonal"))


def _weighted_diagonal(block: Block, kernel: Kernel) -> Any:
    return row_weights.total(block.weights, diag64(kernel, block.X))


def diag64(kernel: Kernel, X: Any) -> Array:
    """k(x, x) of rows, where they are, always in float64: that costs little.

    What is left of it is a difference, and a small number must not vanish.
    """
    # Of a distance it is a constant, and no row need be copied.
    wide = _wide_zeros(X) if kernel.traits.of_distance else arrays.widen(X)
    return arrays.widen(kernel.diag(wide))


def _wide_zeros(X: Any) -> Array:
    """As many rows in float64, where X is, that take no memory."""
    xp = arrays.namespace(X)
    there = {} if xp is np else {"device": arrays.device(X)}
    return xp.broadcast_to(xp.zeros((1, 1), dtype=xp.float64, **there), X.shape)
