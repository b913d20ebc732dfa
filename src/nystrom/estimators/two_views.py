"""X and y as two views of the same rows, each with its own kernel and ridge."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from ..edge.mistakes import refuse_mistakes
from ..edge.rows import (
    check_rows,
    check_targets,
    count_rows,
    holds_objects,
    not_in_memory,
    refuse_no_file,
)
from ..kernels import Precomputed
from ..refusals import number
from ..sources import Source, is_dask
from ..sources.opening import Options, targets_in
from .checked_targets import refuse_text_targets


def both_views(X: Any, y: Any) -> tuple[Any, Any]:
    """X and y; where a source has targets of its own, they are the second view."""
    X, y = not_in_memory(X), _from_file(y)
    refuse_mistakes(y, "y")
    if check_targets(X, y, "KernelCCA"):
        targets = X.targets
        refuse_text_targets(targets, "KernelCCA")
        return X.having(targets=None), getattr(targets, "of", targets)
    if y is None:
        raise ValueError("KernelCCA requires y to be passed, but the target y is None.")
    return X, y


def _from_file(y: Any) -> Any:
    """The rows of a file, where y is its path; one dimension is one column."""
    if not isinstance(y, (str, os.PathLike)):
        return y
    refuse_no_file(y, "y")
    targets = targets_in(os.path.abspath(y), Options(flat=True))
    refuse_text_targets(targets, "KernelCCA")
    return targets.of


def second_view(y: Any, *, beside: Any) -> Any:
    """y as rows, where X is: blocks of both are multiplied."""
    y = _as_rows(_from_file(y))
    dense = arrays.is_array(beside) and arrays.is_array(y)
    apart = dense and arrays.place(beside) != arrays.place(y)
    return arrays.beside(y, beside) if apart else y


def _as_rows(y: Any) -> Any:
    """Numbers in one dimension are one feature."""
    if isinstance(y, np.ndarray) and y.dtype == object:
        # Rows that are not numbers are for a kernel that takes them.
        with suppress(TypeError, ValueError):
            y = y.astype(np.float64)
    if is_dask(y) and y.ndim == 1 and hasattr(y, "to_frame"):
        y = y.to_frame()
    if isinstance(y, Source) or holds_objects(y):
        return check_rows(y, "y")
    rows = arrays.is_array(y) or sp.issparse(y) or hasattr(y, "columns")
    y = y if rows else np.asarray(y)
    return check_rows(y[:, None] if getattr(y, "ndim", 2) == 1 else y, "y")


def check_two_rows(X: Any) -> None:
    """One row has no correlation."""
    if count_rows(X) < 2:
        raise ValueError(
            "n_samples=1 has no correlation; at least two rows are needed."
        )


def pair_of_alphas(alpha: Any) -> tuple[float, float]:
    """The ridge of each view, from one for both or from two."""
    pair = isinstance(alpha, (tuple, list, np.ndarray)) and len(alpha) == 2
    first, second = alpha if pair else (alpha, alpha)
    alphas = number(first, "alpha", 0.0), number(second, "alpha", 0.0)
    if min(alphas) == 0:
        raise ValueError(
            f"alpha={alpha!r} is not allowed; without a ridge any two views "
            "correlate perfectly, so it must be > 0."
        )
    return alphas


def of_view(estimator: Any, i: int) -> dict[str, Any]:
    """The kernel of one view by its parameters, of which there may be pairs."""
    names = ("kernel", "gamma", "degree", "coef0", "kernel_params")
    values = {name: getattr(estimator, name) for name in names}
    of_view = {
        name: value[i] if isinstance(value, tuple) and len(value) == 2 else value
        for name, value in values.items()
    }
    kernel = of_view["kernel"]
    named = isinstance(kernel, str) and kernel == "precomputed"
    if named or isinstance(kernel, Precomputed):
        raise ValueError(
            "KernelCCA takes rows, not kernel='precomputed'; pass a kernel and the "
            "rows of each view."
        )
    return of_view
