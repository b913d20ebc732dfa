"""A costly kernel on fixed rows, whose values are kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .. import _arrays as arrays
from .._arrays import Array
from .base import Kernel, Traits


class Remembered(Kernel):
    """Another kernel on fixed rows, known by their numbers: no pair is evaluated twice.

    For kernels of which an evaluation is dear, and rows few enough for an n × n matrix.
    """

    kernel: Kernel
    rows: Any
    values: np.ndarray
    known: np.ndarray
    n_evaluations: int

    def __init__(self, kernel: Kernel, rows: Any) -> None:
        self.kernel, self.rows = kernel, arrays.widen(rows)
        n = arrays.count_rows(rows)
        self.values, self.known = np.empty((n, n)), np.zeros((n, n), dtype=bool)
        self.n_evaluations = 0

    @property
    def traits(self) -> Traits:
        return replace(self.kernel.traits, by_number=True)

    def like(self, X: Any) -> Any:
        return self.values

    def __call__(self, X: Any, Y: Any) -> Array:
        I, J = np.asarray(X), np.asarray(Y)  # noqa: E741
        for i in np.unique(I):
            new = np.unique(J[~self.known[i, J]])
            if len(new):
                row = arrays.take_rows(self.rows, np.array([i]))
                columns = arrays.take_rows(self.rows, new)
                values = arrays.host_values(self.kernel(row, columns))[0]
                self.values[i, new] = self.values[new, i] = values
                self.known[i, new] = self.known[new, i] = True
                self.n_evaluations += len(new)
        return self.values[np.ix_(I, J)]

    def diag(self, X: Any) -> Array:
        return np.array([self([i], [i])[0, 0] for i in np.asarray(X)])

    def gram(self, Y: Any) -> np.ndarray:
        return self(Y, Y)

    def __str__(self) -> str:
        return str(self.kernel)
