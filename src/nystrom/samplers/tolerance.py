"""As many landmarks as a trace error takes: the shortest prefix of a sampler's order.

The set grows, doubling, from the landmarks there are. A pass over all rows gives the
error reached, and what it leaves of each row is what the next ones are chosen by. Once
the error is low enough, the squared columns of K_S L⁻ᵀ, added up over all rows, give
the error of every prefix in one more pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _arrays as arrays
from ..engines import Engine, single_threaded_blas
from ..kernels import Kernel
from ..landmarks import Landmarks, TraceError
from ..leverage import FLOAT32_ERROR, diagonal
from ..sources import Block, Source
from .pivoted import Growth
from .pivots import Pivots
from .recursion import IndefiniteKernelError

#: Landmarks to begin with.
FIRST = 64


@dataclass(frozen=True)
class Reached:
    """What the landmarks so far leave: of each row, and of tr K."""

    left: np.ndarray
    error: float  # Σ w·left
    whole: float  # tr K


def until(
    make: Callable[..., Growth],
    kernel: Kernel,
    source: Source,
    tolerance: float,
    largest: int | None,
    *,
    seed: int,
    engine: Engine,
) -> Landmarks:
    """Landmarks until tr(K − K̃) ≤ tolerance·tr K, or there are `largest`."""
    n = source.n_rows
    most = n if largest is None else min(largest, n)
    with single_threaded_blas():
        try:
            if kernel.psd is False:
                raise IndefiniteKernelError(0)
            growth = make(kernel, source, seed, engine)
            whole = _total(source, diagonal(kernel, source, engine=engine))
            growth.pivots.n_evaluations += n
            if whole < 0:
                raise IndefiniteKernelError(0)
            reached = _grow(growth, source, engine, tolerance, whole, most)
            error = reached.error
            if error <= tolerance * whole:
                error = _shorten(growth.pivots, source, engine, reached, tolerance)
        except IndefiniteKernelError:
            raise ValueError(
                f"max_trace_error={tolerance} has no meaning for {kernel}, which is "
                "not positive semi-definite; give the number of landmarks instead."
            ) from None
        if len(growth.pivots) == 0:  # K = 0, and any row will do
            growth.pivots.fill(1, seed)
    relative = error / whole if whole > 0 else 0.0
    return growth.landmarks().updated(
        error=TraceError(relative, 0.0, n, exact=True), max_trace_error=tolerance
    )


def _grow(
    growth: Growth,
    source: Source,
    engine: Engine,
    tolerance: float,
    whole: float,
    most: int,
) -> Reached:
    size, left = min(FIRST, most), None
    while True:
        growth.grow(size, left)
        stage = f"trace error at {len(growth.pivots)} landmarks"
        left = growth.pivots.residuals(source, engine, stage)
        error = _total(source, left)
        if error <= tolerance * whole or growth.exhausted or size == most:
            return Reached(left, error, whole)
        size = min(2 * size, most)


def _shorten(
    pivots: Pivots,
    source: Source,
    engine: Engine,
    reached: Reached,
    tolerance: float,
) -> float:
    """Keep the shortest prefix whose error is low enough; that error."""
    if len(pivots) == 0:
        return reached.error
    shared = (pivots.evaluator(), pivots.root)
    columns = engine.reduce(_column_sums, source, shared, "shortest prefix")
    pivots.n_evaluations += source.n_rows * len(pivots)
    # From the end: adding up small numbers loses nothing, taking them off tr K would.
    after = reached.error + np.concatenate([np.cumsum(columns[::-1])[::-1], [0.0]])
    # What is left counts as 0 where it is negative: then there is more than tr K.
    share = max(1e-6, 10 * arrays.epsilon(pivots.kernel.dtype(pivots.points)) ** 0.5)
    rounding = FLOAT32_ERROR * reached.error + share * reached.whole
    if pivots.kernel.psd is None and after[0] - reached.whole > rounding:
        raise IndefiniteKernelError(0)
    size = int(np.flatnonzero(after <= tolerance * reached.whole)[0])
    pivots.shorten(max(1, size))
    return float(after[max(1, size)])


def _column_sums(block: Block, evaluate: Callable, root: np.ndarray) -> np.ndarray:
    F = arrays.host_values(evaluate(arrays.widen(block.X))) @ root
    np.square(F, out=F)
    return F.sum(axis=0) if block.weights is None else block.weights @ F


def _total(source: Source, values: np.ndarray) -> float:
    return float(values.sum() if source.weights is None else source.weights @ values)


def check_tolerance(tolerance: Any) -> None:
    """The relative trace error is a number between 0 and 1."""
    if tolerance is None:
        return
    if not isinstance(tolerance, (float, int, np.floating)) or not 0 < tolerance < 1:
        raise ValueError(
            f"max_trace_error={tolerance!r} is not allowed; it is tr(K − K̃)/tr K, a "
            "number between 0 and 1, or None to let the number of landmarks decide."
        )
