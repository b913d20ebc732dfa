"""Where rows come from.

A `Source` hands out rows by number, block by block; nothing above it knows how they are
stored. `as_source` finds the one for an array, memory map, CSR matrix, data frame, list
or Dask array, `open` the one for files; `Made` is for rows that a function makes. To
bring rows from elsewhere, subclass `Source`: two methods, `rows` and `take`.

Examples
--------
>>> import numpy as np
>>> from nystrom.sources import as_source
>>> source = as_source(np.arange(6, dtype=np.int16).reshape(3, 2))
>>> source.rows(1, 3)
array([[2., 3.],
       [4., 5.]])
>>> as_source(["ACGT", "ACGA"]).take([1])
['ACGA']
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from .dask_rows import DaskRows, is_dask
from .file_errors import FileError
from .made import Made
from .memory import Dense, Objects, RowNumbers, Sparse
from .npy import NpyRows
from .opening import open
from .recognising import recognised
from .source import Block, Source
from .stacked import Stacked
from .stored import Chunked
from .targets import Targets
from .views import Held, Pair, Subset

__all__ = [
    "Block",
    "Chunked",
    "DaskRows",
    "Dense",
    "FileError",
    "Held",
    "Made",
    "NpyRows",
    "Objects",
    "Pair",
    "RowNumbers",
    "Source",
    "Sparse",
    "Stacked",
    "Subset",
    "Targets",
    "as_source",
    "is_dask",
    "open",
    "recognised",
]


def as_source(X: Any, weights: np.ndarray | None = None) -> Source:
    """The source of X's rows, by what X is."""
    X = recognised(X)
    if isinstance(X, Source):
        return X if weights is None else X.having(weights=weights)
    if is_dask(X):
        return DaskRows(X, weights)
    if sp.issparse(X):
        return Sparse(X, weights)
    if hasattr(X, "to_numpy") and hasattr(X, "columns"):  # pandas, polars
        X = X.to_numpy()
    if not arrays.is_array(X) and hasattr(X, "__array__"):
        X = np.asarray(X)
    if arrays.is_array(X):
        if X.ndim == 2 and not _holds_objects(X):
            return Dense(X, weights)
        if X.ndim == 1 and _holds_objects(X):
            return Objects(X, weights)
        return _as_numbers(X, weights)
    return _from_sequence(X, weights)


def _from_sequence(X: Any, weights: np.ndarray | None) -> Source:
    """Numbers first: a list of equally long lists of numbers is a matrix."""
    try:
        array = np.asarray(X)
    except ValueError:  # rows of different lengths
        return Objects(X, weights)
    if array.ndim == 2 and array.dtype.kind in "biuf":
        return Dense(array, weights)
    if array.dtype.kind in "biufc":
        return _as_numbers(array, weights)
    return Objects(X, weights)


def _holds_objects(X: Any) -> bool:
    return isinstance(X, np.ndarray) and X.dtype.kind in "OUSMmTV"


def _as_numbers(X: Any, weights: np.ndarray | None) -> Source:
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead, of shape {X.shape}. "
            "Reshape your data either using array.reshape(-1, 1) if your data has a "
            "single feature or array.reshape(1, -1) if it contains a single sample."
        )
    try:
        return Dense(X.astype(np.float64), weights)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"X holds {X.dtype} values that are not numbers ({error}). Encode text "
            "columns as numbers, or pass a list of objects with a kernel for them."
        ) from None
