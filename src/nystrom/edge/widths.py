"""gamma from the data: "scale" and "median"."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from ..engines import Engine
from ..sources import Block, Source

#: Rows whose pairwise distances give the median.
MEDIAN_ROWS = 1000


def width_from_data(rule: str, kernel: str, source: Source, engine: Engine) -> float:
    """The number that gamma="scale" or gamma="median" stands for.

    "scale": 1/(n_features · variance of all entries), as scikit-learn's `SVC`.
    "median": 1/(2·m²) for the median distance m of 1000 evenly spaced rows, and 1/m
    with city-block distances for the Laplacian kernel.
    """
    if rule == "scale":
        variance = _variance(source, engine)
        return 1.0 / (source.n_features * variance) if variance > 0 else 1.0  # type: ignore[operator]
    if rule != "median":
        raise ValueError(
            f"gamma={rule!r} is unknown; allowed: a number >= 0, one per feature, "
            "'scale', 'median', or None for the kernel's default."
        )
    if kernel in ("chi2", "poly", "polynomial", "sigmoid"):
        raise ValueError(
            f"gamma='median' is for kernels of a distance, not for kernel={kernel!r}; "
            "use a number, 'scale' or None."
        )
    n = source.n_rows
    m = min(n, MEDIAN_ROWS)
    X = arrays.host_values(source.take(np.arange(m) * n // m))
    if kernel == "laplacian":
        distances = arrays.cityblock(X, X)[np.triu_indices(m, 1)]
        power = 1.0
    else:
        X = X - X.mean(axis=0)
        norms = arrays.squared_norms(X)
        squares = norms[:, None] + norms - 2 * X @ X.T
        distances = 2 * np.maximum(squares, 0)[np.triu_indices(m, 1)]
        power = 2.0
    # Many copies of one row would make the median 0: the rest still has a scale.
    floor = arrays.epsilon(np.float64) * distances.max(initial=0.0) * 10**power
    apart = distances[distances > floor]
    return 1.0 / float(np.median(apart)) if len(apart) else 1.0


def _variance(source: Source, engine: Engine) -> float:
    first = arrays.host_values(source.rows(0, 1))
    origin = float(first.mean())  # near the data, so that squares do not cancel
    sums = engine.reduce(_sums, source, (origin,), "variance")
    total, squares = arrays.fetched(sums)
    count = source.n_rows * source.n_features  # type: ignore[operator]
    return max(0.0, squares / count - (total / count) ** 2)


def _sums(block: Block, origin: float) -> tuple[Any, Any]:
    X = block.X.toarray() if sp.issparse(block.X) else block.X
    X = arrays.widen(X) - origin
    return arrays.total(X), arrays.total(arrays.squared_norms(X))
