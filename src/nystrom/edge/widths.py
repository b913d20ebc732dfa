"""gamma from the data: "scale", "auto", "median"; "learn" where there are targets."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from ..engines import Engine
from ..sources import Block, Source, Subset

#: One width for all features, or one for each, learnt from targets.
ONE, EACH = "learn", "learn_each"
#: Rows whose pairwise distances give the median.
MEDIAN_ROWS = 1000


def is_learnt(gamma: Any) -> bool:
    """Whether the width is to be learnt from targets."""
    return isinstance(gamma, str) and gamma in (ONE, EACH)


def width_from_data(rule: str, kernel: str, source: Source, engine: Engine) -> float:
    """The number that gamma="scale", gamma="auto" or gamma="median" stands for.

    "scale": 1/(n_features · variance of all entries), as scikit-learn's `SVC`.
    "auto": 1/n_features, as there; that is the default of all kernels but chi2.
    "median": 1/(2·m²) for the median distance m of 1000 evenly spaced rows, and 1/m
    with city-block distances for the Laplacian kernel.
    """
    if source.is_weighted and not np.all(source.weights > 0):
        source = Subset(source, np.flatnonzero(source.weights))
    if rule == "scale":
        variance = _variance(source, engine)
        return _one_over(source.n_features * variance, rule) if variance else 1.0  # type: ignore[operator]
    if rule == "auto":
        return 1.0 / source.n_features  # type: ignore[operator]
    if is_learnt(rule):
        raise ValueError(
            f"gamma={rule!r} is learnt from targets, and there are none here: it is "
            "for regression, classification and Nystroem.fit(X, y). Use a number, "
            "'scale' or 'median'."
        )
    if rule != "median":
        raise ValueError(
            f"gamma={rule!r} is unknown; allowed: a number >= 0, one per feature, "
            f"'scale', 'auto', 'median', {ONE!r} or {EACH!r} where there are targets, "
            "or None for the kernel's default."
        )
    if kernel in ("chi2", "poly", "polynomial", "sigmoid"):
        raise ValueError(
            f"gamma='median' is for kernels of a distance, not for kernel={kernel!r}; "
            "use a number, 'scale' or None."
        )
    n = source.n_rows
    m = min(n, MEDIAN_ROWS)
    X = arrays.host_values(source.take(np.arange(m) * n // m))
    if not np.diff(X, axis=0).any():
        return 1.0  # as scikit-learn has it: there is no scale to be had
    with np.errstate(over="ignore", invalid="ignore"):  # looked at below
        distances, power = _distances(X, kernel)
    if not np.isfinite(distances).all():
        raise _out_of_range(rule, np.inf)
    # Many copies of one row would make the median 0: the rest still has a scale.
    floor = arrays.epsilon(np.float64) * distances.max(initial=0.0) * 10**power
    apart = distances[distances > floor]
    return _one_over(float(np.median(apart)) if len(apart) else 0.0, rule)


def _distances(X: np.ndarray, kernel: str) -> tuple[np.ndarray, float]:
    """What gamma is to be one over, of all pairs of rows; and the power it grows by."""
    pairs = np.triu_indices(len(X), 1)
    if kernel == "laplacian":
        return arrays.cityblock(X, X)[pairs], 1.0
    X = X - X.mean(axis=0)
    norms = arrays.squared_norms(X)
    squares = norms[:, None] + norms - 2 * X @ X.T
    return 2 * np.maximum(squares, 0)[pairs], 2.0


def _one_over(spread: float, rule: str) -> float:
    """gamma, if float64 has such numbers."""
    with np.errstate(over="ignore", divide="ignore"):
        gamma = float(1.0 / np.float64(spread))
    if not 0 < gamma < np.inf:
        raise _out_of_range(rule, spread)
    return gamma


def _out_of_range(rule: str, spread: float) -> ValueError:
    size = "large" if not spread < 1 else "small"
    return ValueError(
        f"gamma={rule!r} is one over a squared distance of rows of X, which is too "
        f"{size} for float64; bring X to a usual scale, by StandardScaler or the like."
    )


def _variance(source: Source, engine: Engine) -> float:
    first = arrays.host_values(source.rows(0, 1))
    origin = float(first.mean())  # near the data, so that squares do not cancel
    sums = engine.reduce(_sums, source, (origin,), "variance")
    total, squares, apart = arrays.fetched(sums)
    count = source.n_rows * source.n_features  # type: ignore[operator]
    with np.errstate(over="ignore", invalid="ignore"):
        variance = float(squares / count - np.square(np.float64(total / count)))
    if not np.isfinite(variance):
        raise _out_of_range("scale", np.inf)
    # Values that are all alike are apart from their mean by what it was rounded by.
    rounding = 10 * arrays.epsilon(np.float64) * abs(origin) * count
    if variance <= 0 and rounding < apart < 1:
        raise _out_of_range("scale", 0.0)
    return max(0.0, variance)


def _sums(block: Block, origin: float) -> tuple[Any, Any, Any]:
    X = block.X.toarray() if sp.issparse(block.X) else block.X
    with np.errstate(over="ignore"):  # refused once summed
        return _sums_of(arrays.widen(X) - origin)


def _sums_of(X: Any) -> tuple[Any, Any, Any]:
    apart = arrays.total(arrays.namespace(X).abs(X))
    return arrays.total(X), arrays.total(arrays.squared_norms(X)), apart
