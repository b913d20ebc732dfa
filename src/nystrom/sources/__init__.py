"""Where rows come from.

A `Source` gives rows by number, block by block; nothing above it knows how they are
stored. `as_source` finds the one for an array, memory map, CSR matrix, data frame, list
or Dask array, `open` the one for files; `GeneratedRows` is for rows that a function
computes. For other rows, subclass `Source`: two methods, `rows` and `take`.

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
from .array_files import NpyRows
from .base import (
    Block,
    DenseRows,
    GeneratedRows,
    ObjectRows,
    RowNumbers,
    Source,
    SparseRows,
    Targets,
)
from .dask import DaskRows, is_dask
from .files import infer_source, open
from .output import Overwrite
from .tabular import ChunkedFileRows, FileError
from .views import CachedRows, ConcatenatedRows, Pair, Subset, TransformedRows

__all__ = [
    "Block",
    "CachedRows",
    "ChunkedFileRows",
    "ConcatenatedRows",
    "DaskRows",
    "DenseRows",
    "FileError",
    "GeneratedRows",
    "NpyRows",
    "ObjectRows",
    "Overwrite",
    "Pair",
    "RowNumbers",
    "Source",
    "SparseRows",
    "Subset",
    "Targets",
    "TransformedRows",
    "as_source",
    "infer_source",
    "is_dask",
    "open",
]


def as_source(X: Any, weights: np.ndarray | None = None) -> Source:
    """Return the source of the rows of X.

    Parameters
    ----------
    X : array, sparse matrix, data frame, list, path, Dask array or Source
        The rows.
    weights : ndarray or None, default=None
        Weights of the rows.

    Returns
    -------
    source : Source
        The rows, block by block.
    """
    X = infer_source(X)
    if isinstance(X, Source):
        return X if weights is None else X.replace(weights=weights)
    if is_dask(X):
        return DaskRows(X, weights)
    if sp.issparse(X):
        return SparseRows(X, weights)
    if hasattr(X, "to_numpy") and hasattr(X, "columns"):  # pandas, polars
        X = X.to_numpy()
    if not arrays.is_array(X) and hasattr(X, "__array__"):
        X = np.asarray(X)
    if arrays.is_array(X):
        if X.ndim == 2 and not _holds_objects(X):
            return DenseRows(X, weights)
        if X.ndim == 1 and _holds_objects(X):
            return ObjectRows(X, weights)
        return _as_numeric(X, weights)
    return _from_sequence(X, weights)


def _from_sequence(X: Any, weights: np.ndarray | None) -> Source:
    """Numbers first: a list of equally long lists of numbers is a matrix."""
    try:
        array = np.asarray(X)
    except ValueError:  # rows of different lengths
        return ObjectRows(X, weights)
    if array.ndim == 2 and array.dtype.kind in "biuf":
        return DenseRows(array, weights)
    if array.dtype.kind in "biufc":
        return _as_numeric(array, weights)
    return ObjectRows(X, weights)


def _holds_objects(X: Any) -> bool:
    return isinstance(X, np.ndarray) and X.dtype.kind in "OUSMmTV"


def _as_numeric(X: Any, weights: np.ndarray | None) -> Source:
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead, of shape {X.shape}. "
            "Reshape your data either using array.reshape(-1, 1) if your data has a "
            "single feature or array.reshape(1, -1) if it contains a single sample."
        )
    try:
        return DenseRows(X.astype(np.float64), weights)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"X holds {X.dtype} values that are not numbers ({error}). Encode text "
            "columns as numbers, or pass a list of objects with a kernel for them."
        ) from None
