"""How landmarks are chosen.

A sampler is a callable `(kernel, source, goal, *, seed, engine) -> Landmarks`; a number
stands for a goal, and a function of your own is called with one.
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
from ..refusals import unknown
from ..sources import Source, as_source
from .choosing import Sampler, choose
from .exact_scores import Leverage
from .gain.by_gain import GainPivoted
from .gain.lloyd import KMeans
from .given import GivenPoints, GivenRows
from .goal import Goal, MaxTraceError, Ridge, Size
from .pivoting.greedy import Greedy
from .pivoting.rpcholesky import RPCholesky
from .recursive.algorithms import Accelerated, Recursive
from .uniform import Uniform

__all__ = [
    "NAMES",
    "Accelerated",
    "GainPivoted",
    "GivenPoints",
    "GivenRows",
    "Goal",
    "Greedy",
    "KMeans",
    "Leverage",
    "MaxTraceError",
    "RPCholesky",
    "Recursive",
    "Ridge",
    "Sampler",
    "Size",
    "Uniform",
    "as_sampler",
    "choose",
]

NAMES: dict[str, type[Sampler]] = {
    "auto": GainPivoted,
    "accelerated": Accelerated,
    "greedy": Greedy,
    "kmeans": KMeans,
    "leverage": Leverage,
    "recursive": Recursive,
    "rpcholesky": RPCholesky,
    "uniform": Uniform,
}


def as_sampler(sampler: Any, goal: Goal | None = None, **options: Any) -> Callable:
    """The sampler that a name, an object, row numbers or points stand for.

    It must take the goal. Options that are not None are set on it; "auto" becomes a
    sampler that has them.
    """
    options = {name: value for name, value in options.items() if value is not None}
    if isinstance(sampler, str):
        if sampler not in NAMES:
            raise unknown("sampler", sampler, list(NAMES))
        proven = options or isinstance(goal, Ridge)
        sampler = Recursive() if sampler == "auto" and proven else NAMES[sampler]()
    elif isinstance(sampler, type) and sampler in NAMES.values():
        raise TypeError(
            f"sampler={sampler.__name__} is a class; pass {sampler.__name__}()."
        )
    elif not callable(sampler):
        sampler = _given(sampler)
    for name, value in options.items():
        known = {f.name for f in fields(sampler)} if is_dataclass(sampler) else set()
        if name not in known:
            having = [n for n, make in NAMES.items() if name in _options_of(make)]
            raise _cannot_combine(f"{name}={value!r}", sampler, having)
    if goal is not None and type(goal) not in getattr(sampler, "takes", (Size,)):
        taking = [n for n, make in NAMES.items() if type(goal) in make.takes]
        raise _cannot_combine(str(goal), sampler, taking)
    return replace(sampler, **options) if options else sampler


def _options_of(make: type[Sampler]) -> set[str]:
    return {f.name for f in fields(make)}  # type: ignore[arg-type]


def _cannot_combine(what: str, sampler: Any, able: list[str]) -> ValueError:
    name = getattr(sampler, "__name__", type(sampler).__name__)
    return ValueError(
        f"{what} cannot be combined with the sampler {name}; samplers that take it: "
        f"{', '.join(map(repr, able))}."
    )


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
