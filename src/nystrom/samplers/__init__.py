"""How landmarks are chosen.

A sampler is a callable `(kernel, source, n_landmarks, *, seed, engine) -> Landmarks`.
A name stands for one with its defaults: "auto", "recursive", "accelerated", "leverage",
"rpcholesky", "greedy", "kmeans", "uniform". The classes here take options; row numbers,
an array of points, or a function of your own work wherever a sampler does.

Examples
--------
>>> from nystrom import samplers
>>> samplers.as_sampler("recursive")
Recursive(constants=None, delta=None, ridge=None)
>>> samplers.Recursive(delta=0.01)
Recursive(constants=None, delta=0.01, ridge=None)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from ..kernels.names import unknown
from ..sources import Source, as_source
from .cholesky import Greedy, RPCholesky
from .gain import GainPivoted
from .given import GivenPoints, GivenRows
from .leverage import Leverage
from .moved import KMeans
from .recursive import Accelerated, Recursive
from .uniform import Uniform

__all__ = [
    "NAMES",
    "Accelerated",
    "GainPivoted",
    "GivenPoints",
    "GivenRows",
    "Greedy",
    "KMeans",
    "Leverage",
    "RPCholesky",
    "Recursive",
    "Uniform",
    "as_sampler",
    "growth_of",
]

NAMES: dict[str, Callable] = {
    "auto": GainPivoted,
    "accelerated": Accelerated,
    "greedy": Greedy,
    "kmeans": KMeans,
    "leverage": Leverage,
    "recursive": Recursive,
    "rpcholesky": RPCholesky,
    "uniform": Uniform,
}


def as_sampler(sampler: Any, **options: Any) -> Callable:
    """The sampler that a name, an object, row numbers or points stand for.

    Options that are not None are set on it; "auto" becomes a sampler that has them.
    """
    options = {name: value for name, value in options.items() if value is not None}
    if isinstance(sampler, str):
        if sampler not in NAMES:
            raise unknown("sampler", sampler, list(NAMES))
        make = Recursive if sampler == "auto" and options else NAMES[sampler]
        return _with_options(make(), options)
    if isinstance(sampler, type) and sampler in NAMES.values():
        raise TypeError(
            f"sampler={sampler.__name__} is a class; pass {sampler.__name__}()."
        )
    if callable(sampler):
        return _with_options(sampler, options)
    return _with_options(_given(sampler), options)


def growth_of(sampler: Callable, max_trace_error: float) -> Callable:
    """What makes a sampler's landmarks one after the other, until an error is reached.

    For samplers whose order does not depend on how many there are to be.
    """
    growth = getattr(sampler, "growth", None)
    if growth is None:
        name = getattr(sampler, "__name__", type(sampler).__name__)
        able = [repr(n) for n, make in NAMES.items() if hasattr(make, "growth")]
        raise ValueError(
            f"max_trace_error={max_trace_error!r} cannot be combined with the sampler "
            f"{name}, which needs the number of landmarks to begin with; samplers that "
            f"take it: {', '.join(able)}."
        )
    return growth


def _with_options(sampler: Callable, options: dict[str, Any]) -> Callable:
    if not options:
        return sampler
    known = {f.name for f in fields(sampler)} if is_dataclass(sampler) else set()
    wrong = sorted(set(options) - known)
    if wrong:
        name = getattr(sampler, "__name__", type(sampler).__name__)
        raise ValueError(
            f"{wrong[0]}={options[wrong[0]]!r} cannot be combined with the sampler "
            f"{name}; samplers that take it: 'recursive', 'leverage'."
        )
    return replace(sampler, **options)  # type: ignore[type-var]


def _given(landmarks: Any) -> Callable:
    if isinstance(landmarks, Source) or sp.issparse(landmarks):
        return _points(landmarks)
    array = landmarks if arrays.is_array(landmarks) else np.asarray(landmarks)
    if array.ndim in (1, 2) and array.shape[0] == 0:
        raise ValueError("sampler is an empty sequence; give at least one landmark.")
    if array.ndim == 1 and isinstance(array, np.ndarray) and array.dtype.kind in "iu":
        return GivenRows(array)
    if array.ndim == 2:
        return _points(array)
    if array.ndim == 1 and array.dtype.kind in "OUS":
        return GivenPoints(list(landmarks))
    raise TypeError(
        f"sampler={landmarks!r} is not a sampler; pass a name ({', '.join(NAMES)}), a "
        "value from nystrom.samplers, row numbers, an array of points, or a callable."
    )


def _points(landmarks: Any) -> Callable:
    source = as_source(landmarks)
    points = source.rows(0, source.n_rows)
    values = points.data if sp.issparse(points) else arrays.to_host(points)
    if not np.all(np.isfinite(values)):
        raise ValueError("The landmarks given as sampler contain NaN or infinity.")
    return GivenPoints(points)
