"""The cross-kernel X ↦ k(X, S) at fixed points S, and the diagonal k(x, x).

All kernel values are evaluated here: precision and device are decided once. `Ledger`
counts evaluations and passes; `probe_rows` are the few rows on which float32 and
float64 are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .. import _arrays as arrays
from .._arrays import Array
from .._precision import N_PROBE_ROWS
from .._random import sorted_row_sample
from .._validation import KernelNotFiniteError, check_finite
from ..engines import Engine, ProgressHook, silent, storable
from ..engines.base import report_work
from ..kernels import Kernel
from ..sources import Block, CachedRows, Source
from ..sources.base import weighted_sum
from ..sources.output import ArraySink


class Ledger:
    """Counts of kernel evaluations and passes, and notes, that travel with the work."""

    def __init__(self, progress: ProgressHook = silent) -> None:
        self.n_evaluations = 0
        self.n_passes = 0
        self.notes: list[str] = []
        self._progress = progress

    def count_evaluations(self, n_entries: int) -> None:
        """So many entries of K were evaluated, outside of passes."""
        self.n_evaluations += n_entries
        report_work(self._progress, "count", n_entries)

    def count_pass(self, source: Any, n_entries: int) -> None:
        """A pass over all rows of a source evaluated so many entries of K.

        The engine has reported them. Rows that are part of another source are no pass.
        """
        self.n_evaluations += n_entries
        self.n_passes += not source.is_subset

    def count_fetch(self, source: Any) -> None:
        """Some rows of a source were fetched, which takes a pass if it is a file."""
        self.n_passes += not source.supports_random_access

    def note(self, text: str) -> None:
        """Something the reader should know; once."""
        if text not in self.notes:
            self.notes.append(text)


@dataclass(frozen=True, eq=False)
class CrossKernel:
    """k(x, s) for the rows x of any block and fixed points s.

    Called, it gives a block in the library, on the device and in the precision of the
    rows: what n·s² work is done on. `float64` gives the same in float64.
    """

    kernel: Kernel
    points: Any
    wide: bool = False  # float32 rows are evaluated in float64
    #: How to evaluate rows, by where they are: the points go there once.
    _evaluators: dict[Any, Callable] = field(
        init=False, repr=False, default_factory=dict
    )

    def __reduce__(self) -> tuple[Any, ...]:
        # Other processes have devices of their own.
        return CrossKernel, (self.kernel, self.points, self.wide)

    def __call__(self, X: Any) -> Array:
        # Also where float32 rows meet float64 points: what was fitted in float64.
        in_float64 = self.wide or (
            arrays.is_array_or_csr(X)
            and arrays.numpy_float_dtype(X) == np.float32
            and arrays.is_array_or_csr(self.points)
            and arrays.numpy_float_dtype(self.points) == np.float64
            and not self.kernel.traits.uses_row_numbers
        )
        # Rows are copied to float64, and so are values that were given (precomputed).
        X = arrays.widen(X) if in_float64 else X
        where = arrays.device_key(X)
        if where not in self._evaluators:
            points = self.points
            if where != arrays.device_key(points):
                points = arrays.to_device_of(points, X)
            points = arrays.widen(points) if self.wide else points
            self._evaluators[where] = self.kernel.evaluator(points)
        K = self._evaluators[where](X)
        return arrays.widen(K) if in_float64 else K

    def float64(self, X: Any) -> Array:
        """The values in float64, where the rows are."""
        return arrays.widen(self(X))

    def __len__(self) -> int:
        return arrays.count_rows(self.points)

    @property
    def evaluations_per_row(self) -> int:
        """Values of each row that a pass with these columns evaluates."""
        return len(self)

    @property
    def dtype(self) -> np.dtype:
        """The precision of the values, for rows such as the points."""
        return np.dtype(np.float64) if self.wide else self.kernel.dtype(self.points)

    @property
    def narrow(self) -> bool:
        """Whether the values are float32."""
        return self.dtype == np.float32

    def widened(self) -> CrossKernel:
        """The same columns, evaluated in float64."""
        return self if self.wide else replace(self, wide=True)


def cast_output(values: Array, dtype: Any) -> Array:
    """Results in the precision of the rows they are of, if that has such numbers."""
    with np.errstate(over="ignore"):
        narrow = arrays.as_float(values, arrays.library_dtype(dtype, values))
    xp = arrays.namespace(narrow)
    if narrow.dtype == values.dtype or bool(xp.all(xp.isfinite(narrow))):
        return narrow
    largest = float(np.abs(arrays.to_host(values)).max())
    raise KernelNotFiniteError(
        f"Results of up to {largest:.2g} are too large for {np.dtype(dtype)}, the "
        "precision of these rows; pass them in float64, or on a smaller scale."
    )


def kernel_diagonal(kernel: Kernel, source: Source, *, engine: Engine) -> np.ndarray:
    """k(x, x) of every row."""
    sink = ArraySink((source.n_rows,))
    engine.map(_block_diagonal, source, sink, (kernel,), "diagonal")
    if not np.isfinite(sink.array.sum()):
        check_finite(sink.array)
    return sink.array


def _block_diagonal(block: Block, kernel: Kernel) -> np.ndarray:
    return arrays.to_host(diag_float64(kernel, block.X))


def kernel_trace(kernel: Kernel, source: Source, *, engine: Engine) -> float:
    """Σ w·k(x, x) over all rows, and no vector of them."""
    return float(engine.reduce(_block_trace, source, (kernel,), "diagonal"))


def _block_trace(block: Block, kernel: Kernel) -> Any:
    return weighted_sum(block.weights, diag_float64(kernel, block.X))


def diag_float64(kernel: Kernel, X: Any) -> Array:
    """k(x, x) of rows, where they are, always in float64: that costs little.

    Residuals are differences of it, and a small one must not vanish.
    """
    if not kernel.traits.is_distance_based:
        return arrays.widen(kernel.diag(arrays.widen(X)))
    # Of a distance it is a constant: as many rows of zeros do, which take no memory.
    xp = arrays.namespace(X)
    zero = xp.zeros((1, 1), dtype=xp.float64, device=arrays.device(X))
    return arrays.widen(kernel.diag(xp.broadcast_to(zero, X.shape)))


def probe_rows(source: Source) -> CachedRows:
    """A few rows, drawn uniformly, with their weights."""
    rows = sorted_row_sample(source.n_rows, N_PROBE_ROWS)
    if source.supports_random_access:
        return CachedRows.of(source, rows)
    if source.kept is None:
        source.kept = source.take(rows)
    return CachedRows(
        source.kept, source.weights_of(rows) if source.is_weighted else None
    )


def fetch_rows(
    source: Source, indices: np.ndarray, engine: Engine | None = None
) -> Any:
    """Some rows; the probe rows are read in the same pass.

    With an engine it is a pass over all rows on its workers; without one, and where
    rows can be read at random, they are read here.
    """
    if source.supports_random_access or source.kept is not None:
        return source.take(indices)
    probes = sorted_row_sample(source.n_rows, N_PROBE_ROWS)
    rows = np.union1d(probes, indices)
    if engine is None:
        points = source.take(rows)
    else:
        points = engine.reduce(_fetch_from_block, source, (rows,), "rows").points
    source.kept = arrays.take_rows(points, np.searchsorted(rows, probes))
    return arrays.take_rows(points, np.searchsorted(rows, indices))


@storable
@dataclass(frozen=True)
class FetchedRows:
    """Rows that a pass has come across, in the order of their numbers."""

    points: Any

    def __add__(self, other: FetchedRows) -> FetchedRows:
        return arrays.stack_fields(self, other, ["points"])


def _fetch_from_block(block: Block, numbers: np.ndarray) -> FetchedRows:
    first, last = np.searchsorted(numbers, [block.start, block.start + len(block)])
    return FetchedRows(arrays.take_rows(block.X, numbers[first:last] - block.start))
