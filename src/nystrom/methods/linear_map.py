"""k(X, landmarks)·dual + intercept for any rows, block by block.

What every fitted method does to new rows: predictions, coordinates, distances.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _arrays as arrays
from .._arrays import Array
from ..engines import Engine, Threads
from ..factor import check_finite
from ..kernels import Kernel
from ..randomness import some_rows
from ..sinks import ArraySink
from ..sources import Block, Held, Source

#: Results stay in float32 while they differ from float64 by at most this share, on so
#: many rows.
FLOAT32_ERROR, TRIED_ROWS = 1e-4, 256


def linear_map(
    kernel: Kernel,
    points: Any,
    source: Source,
    dual: np.ndarray,
    intercept: np.ndarray,
    engine: Engine,
    *,
    wide: bool,
    stage: str = "predictions",
) -> Array:
    """k(X, points)·dual + intercept, s kernel evaluations per row.

    `wide` evaluates the kernel of float32 rows in float64; the result is float32.
    """
    first = source.rows(0, 1)
    like = kernel.like(first)
    small = arrays.from_host(dual, like, kernel.dtype(first))
    sink = ArraySink((source.n_rows, dual.shape[1]), like, small.dtype)
    evaluate = kernel.against(arrays.widen(points) if wide else points)
    shared = (evaluate, dual, intercept, wide, small.dtype)
    engine.map(_mapped, source, sink, shared, stage)
    return sink.array


def _mapped(
    block: Block,
    evaluate: Any,
    dual: np.ndarray,
    intercept: np.ndarray,
    wide: bool,
    dtype: Any,
) -> Array:
    K = evaluate(arrays.widen(block.X) if wide else block.X)
    rows = K @ arrays.from_host(dual, K) + arrays.from_host(intercept, K)
    if not np.isfinite(float(arrays.namespace(rows).sum(rows))):
        check_finite(arrays.to_host(rows))
    return arrays.as_float(rows, dtype)


def needs_float64(
    kernel: Kernel,
    points: Any,
    source: Source,
    dual: np.ndarray,
    intercept: np.ndarray,
) -> bool:
    """Whether float32 rows need float64 kernel values to be mapped well.

    Coefficients of both signs cancel; how much, a few rows in both precisions tell.
    """
    if kernel.dtype(points) != np.float32 or not dual.size:
        return False
    rows = Held(source, some_rows(source.n_rows, TRIED_ROWS))
    known = (kernel, points, rows, dual, intercept, Threads(1))
    narrow, wide = (
        arrays.host_values(linear_map(*known, wide=w)) for w in (False, True)
    )
    size = np.sqrt(np.mean(wide**2, axis=0))
    error = np.sqrt(np.mean((narrow - wide) ** 2, axis=0))
    return not bool(np.all(error <= FLOAT32_ERROR * size))
