"""Kernels, as users pass them, with the rows that they are for."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from ..engines import Threads
from ..kernels import Kernel, Precomputed
from ..kernels.names import as_kernel
from ..sources import Dense, Objects, RowNumbers, Source
from .engine import engine_in_use
from .rows import check_weights, rows_of
from .widths import width_from_data


def kernel_and_source(
    X: Any,
    kernel: Any,
    *,
    sample_weight: Any = None,
    caller: str,
    n_jobs: int | None = None,
    gamma: Any = None,
    **params: Any,
) -> tuple[Kernel, Source]:
    """The kernel with all its numbers, and the rows it works on; X is checked."""
    weights = check_weights(sample_weight, X)
    if isinstance(kernel, str) and kernel == "precomputed":
        kernel = as_kernel(kernel, gamma=gamma, caller=caller, **params)
    if isinstance(kernel, Precomputed):
        matrix = _square(X)
        return Precomputed(matrix), RowNumbers(matrix.shape[0], weights)
    source = rows_of(X, weights)
    numeric = not isinstance(source, Objects)
    if isinstance(gamma, str) and isinstance(kernel, str):
        engine = engine_in_use(source) or Threads(n_jobs)
        # Of objects no named kernel is, and what is refused below are the rows.
        gamma = width_from_data(gamma, kernel, source, engine) if numeric else None
    resolved = as_kernel(
        kernel, n_features=source.n_features, gamma=gamma, caller=caller, **params
    )
    if not numeric and not resolved.traits.any_rows:
        first = source.take(np.arange(1))[0]
        if isinstance(first, (list, tuple, np.ndarray)):
            raise ValueError(
                f"The kernel {resolved} needs rows of numbers, all of one length; row "
                f"0 of X has {len(first)} entries, and others have more, fewer, or "
                "text. Give every row the same features, or pass a kernel for such "
                "rows: a callable of two of them."
            )
        raise ValueError(
            f"The kernel {resolved} needs rows of numbers, but X holds "
            f"{type(first).__name__} values. Encode them as "
            "numbers, or pass a kernel for such rows: a callable of two of them."
        )
    return resolved, source


def dense_values(X: Any) -> Any:
    """Values of a precomputed kernel as an array; they are not read from files."""
    X = X.X if isinstance(X, Dense) else X
    if isinstance(X, Source) or sp.issparse(X):
        given = "a sparse matrix" if sp.issparse(X) else "a source, or a file"
        raise ValueError(
            f"A precomputed kernel must be a dense square array, and the values of new "
            f"rows a dense array too; X is {given}. Load it, or convert it by "
            "X.toarray()."
        )
    return X if arrays.is_array(X) else np.asarray(X)


def _square(X: Any) -> Any:
    X = dense_values(X)
    if X.ndim != 2 or X.shape[0] != X.shape[1]:
        raise ValueError(
            f"kernel='precomputed' takes the square matrix of k(x, y) for all pairs of "
            f"training rows; X has shape {tuple(X.shape)}."
        )
    return X
