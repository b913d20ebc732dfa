"""Predictions of kernel ridge regression, and their deviations, by blocks of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _arrays as arrays
from .._arrays import Array
from ..engines import Engine
from ..factor import check_finite
from ..kernels import Kernel
from ..leverage import residuals
from ..sinks import ArraySink
from ..sources import Block, Source
from .moments import Evaluate
from .ridge import Posterior


def predict(
    kernel: Kernel,
    points: Any,
    source: Source,
    dual: np.ndarray,
    intercept: np.ndarray,
    engine: Engine,
    *,
    wide: bool,
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
    engine.map(_predict, source, sink, shared, "predictions")
    return sink.array


def _predict(
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


def deviations(
    kernel: Kernel,
    points: Any,
    source: Source,
    known: Posterior,
    engine: Engine,
    *,
    wide: bool,
    noise: bool,
) -> np.ndarray:
    """(n, t): the predictive standard deviation of every row and target."""
    left = residuals(kernel, source, points, known.root, engine=engine).values
    evaluate = Evaluate(
        kernel, kernel.against(arrays.widen(points) if wide else points), wide
    )
    out = np.empty((source.n_rows, len(known.alphas)))
    for alpha in np.unique(known.alphas):
        R = known.shrunk_root(alpha)
        sink = ArraySink((source.n_rows,))
        shared = (evaluate, R, known.center @ R)
        engine.map(_squared_norms, source, sink, shared, "deviations")
        variance = left + alpha * (sink.array + known.own + noise)
        those = known.alphas == alpha
        out[:, those] = np.sqrt(variance[:, None] * known.scales[those])
    return out


def _squared_norms(
    block: Block, evaluate: Evaluate, R: np.ndarray, offset: np.ndarray
) -> np.ndarray:
    projected = evaluate(block.X) @ R - offset
    return np.vecdot(projected, projected)
