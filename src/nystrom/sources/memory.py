"""Rows held by a Python object: arrays and memory maps, CSR, lists, row numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from .._arrays import Array
from .source import Source


class Dense(Source):
    """The rows of a 2-D array of any array library, in memory or memory-mapped.

    A block of a memory map, of integers or of Fortran-ordered data is copied to floats,
    row after row, when it is asked for; the whole array never is.
    """

    n_rows: int
    n_features: int | None
    on_device: bool

    def __init__(self, X: Array, weights: np.ndarray | None = None) -> None:
        self.X = X
        self.n_rows, self.n_features = X.shape
        self.weights = weights
        self.on_device = not arrays.on_host(X)

    def rows(self, start: int, stop: int) -> Array:
        return arrays.as_float(self.X[start:stop, :])

    def take(self, indices: np.ndarray) -> Array:
        return arrays.as_float(arrays.take_rows(self.X, indices))


class Sparse(Source):
    """The rows of a CSR matrix."""

    n_rows: int
    n_features: int | None

    def __init__(self, X: Any, weights: np.ndarray | None = None) -> None:
        self.X = arrays.canonical(sp.csr_array(X))
        self.n_rows, self.n_features = X.shape
        self.weights = weights

    def rows(self, start: int, stop: int) -> Any:
        return arrays.as_float(self.X[start:stop])

    def take(self, indices: np.ndarray) -> Any:
        return arrays.as_float(self.X[indices])


class Objects(Source):
    """Rows of any kind: strings, graphs, trees; the kernel knows what they are."""

    n_rows: int

    def __init__(self, X: Sequence[Any], weights: np.ndarray | None = None) -> None:
        self.X = X
        self.n_rows = len(X)
        self.weights = weights

    def rows(self, start: int, stop: int) -> list[Any]:
        return list(self.X[start:stop])

    def take(self, indices: np.ndarray) -> list[Any]:
        return [self.X[i] for i in indices]


class RowNumbers(Source):
    """The numbers 0 … n − 1, for a kernel that looks rows up itself (precomputed)."""

    def __init__(self, n_rows: int, weights: np.ndarray | None = None) -> None:
        self.n_rows = n_rows
        self.weights = weights

    def rows(self, start: int, stop: int) -> np.ndarray:
        return np.arange(start, stop)

    def take(self, indices: np.ndarray) -> np.ndarray:
        return np.asarray(indices)
