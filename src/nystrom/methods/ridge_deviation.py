"""Deviations of ridge predictions, by blocks of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _arrays as arrays
from ..engines import Engine
from ..kernels import Kernel
from ..leverage import residuals
from ..sinks import ArraySink
from ..sources import Source
from .moments import Evaluate, squared_projections
from .ridge import Posterior


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
        engine.map(squared_projections, source, sink, shared, "deviations")
        variance = left + alpha * (sink.array + known.own + noise)
        those = known.alphas == alpha
        out[:, those] = np.sqrt(variance[:, None] * known.scales[those])
    return out
