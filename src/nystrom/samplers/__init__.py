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
Recursive(constants=None, delta=None, max_spectral_error=None)
>>> samplers.Recursive(delta=0.01)
Recursive(constants=None, delta=0.01, max_spectral_error=None)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from .._validation import check_choice
from ..sources import Source, as_source
from .base import (
    FixedSize,
    GivenPoints,
    GivenRows,
    Sampler,
    SpectralTolerance,
    StoppingRule,
    TraceTolerance,
)
from .leverage import Leverage
from .moved import KMeans
from .pivoting import Greedy, RPCholesky, Uniform
from .pooled_greedy import PooledGreedy
from .recursive import Accelerated, Recursive

__all__ = [
    "NAMES",
    "Accelerated",
    "FixedSize",
    "GivenPoints",
    "GivenRows",
    "Greedy",
    "KMeans",
    "Leverage",
    "PooledGreedy",
    "RPCholesky",
    "Recursive",
    "Sampler",
    "SpectralTolerance",
    "StoppingRule",
    "TraceTolerance",
    "Uniform",
    "as_sampler",
]

NAMES: dict[str, type[Sampler]] = {
    "auto": PooledGreedy,
    "accelerated": Accelerated,
    "greedy": Greedy,
    "kmeans": KMeans,
    "leverage": Leverage,
    "recursive": Recursive,
    "rpcholesky": RPCholesky,
    "uniform": Uniform,
}


def as_sampler(
    sampler: Any, goal: StoppingRule | None = None, **options: Any
) -> Callable:
    """Return the sampler for a name, an object, row numbers or points.

    Options that are not None are set on it; "auto" becomes a sampler that has them.

    Parameters
    ----------
    sampler : str, callable or array-like
        How landmarks are selected: "auto", "recursive", "accelerated", "leverage",
        "rpcholesky", "greedy", "kmeans" or "uniform"; a sampler from
        `nystrom.samplers`; row numbers; or an array of points.
    goal : StoppingRule or None, default=None
        Stopping rule that the sampler must support.
    **options : dict
        Options of the sampler, such as `delta`.

    Returns
    -------
    sampler : callable
        The sampler.
    """
    options = {name: value for name, value in options.items() if value is not None}
    if isinstance(sampler, str):
        check_choice(sampler, "sampler", NAMES)
        needs_theory = options or isinstance(goal, SpectralTolerance)
        sampler = (
            Recursive() if sampler == "auto" and needs_theory else NAMES[sampler]()
        )
    elif not callable(sampler) or isinstance(sampler, type):
        sampler = _sampler_from_landmarks(sampler)
    for name, value in options.items():
        if name not in _option_names(sampler):
            supported = [n for n, each in NAMES.items() if name in _option_names(each)]
            raise _cannot_combine(f"{name}={value!r}", sampler, supported)
    if goal is not None and type(goal) not in getattr(sampler, "takes", (FixedSize,)):
        accepting = [n for n, each in NAMES.items() if type(goal) in each.takes]
        raise _cannot_combine(str(goal), sampler, accepting)
    return replace(sampler, **options) if options else sampler


def _option_names(sampler: Any) -> set[str]:
    return {f.name for f in fields(sampler)} if is_dataclass(sampler) else set()


def _cannot_combine(option: str, sampler: Any, supported: list[str]) -> ValueError:
    name = getattr(sampler, "__name__", type(sampler).__name__)
    return ValueError(
        f"{option} cannot be combined with the sampler {name}; samplers that take it: "
        f"{', '.join(map(repr, supported))}."
    )


def _sampler_from_landmarks(landmarks: Any) -> Callable:
    if isinstance(landmarks, Source) or sp.issparse(landmarks):
        return _sampler_from_points(landmarks)
    array = landmarks if arrays.is_array(landmarks) else np.asarray(landmarks)
    if array.ndim in (1, 2) and array.shape[0] == 0:
        raise ValueError("sampler is an empty sequence; give at least one landmark.")
    if array.ndim == 1 and isinstance(array, np.ndarray) and array.dtype.kind in "iu":
        return GivenRows(array)
    if array.ndim == 2:
        return _sampler_from_points(array)
    if array.ndim == 1 and array.dtype.kind in "OUS":
        return GivenPoints(list(landmarks))
    raise TypeError(
        f"sampler={landmarks!r} is not a sampler; pass a name ({', '.join(NAMES)}), a "
        "value from nystrom.samplers, row numbers, an array of points, or a callable."
    )


def _sampler_from_points(landmarks: Any) -> Callable:
    source = as_source(landmarks)
    points = source.rows(0, source.n_rows)
    values = points.data if sp.issparse(points) else arrays.to_host(points)
    if not np.all(np.isfinite(values)):
        raise ValueError("The landmarks given as sampler contain NaN or infinity.")
    return GivenPoints(points)
