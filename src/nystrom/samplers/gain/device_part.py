"""A whole pool on the device of its rows: what `Part` does, with arrays of any library.

Only what decides leaves it: one number per row, and small matrices of proposals. A
device has threads of its own, so the pool is not cut into parts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from ... import _arrays as arrays
from ..._arrays import Array
from ...columns import Columns
from ...kernels import Kernel


class DevicePart:
    """Rows `points` of a pool, each standing for `weights` rows."""

    def __init__(
        self,
        kernel: Kernel,
        points: Any,
        weights: np.ndarray,
        capacity: int,
        wide: bool,
    ) -> None:
        self.columns = Columns(kernel, points, wide)
        like, dtype = kernel.like(points), np.float64 if wide else np.float32
        self.dtype = arrays.own_dtype(np.dtype(dtype), like)
        self.weights = arrays.from_host(weights, like, self.dtype)
        xp = arrays.namespace(like)
        shape = (capacity, len(weights))
        # A row for each pivot.
        self.F = xp.empty(shape, dtype=self.dtype, device=arrays.device(like))
        self.G = self.F[:0, :]  # the rows of F later than A
        self.forget()

    def forget(self) -> None:
        """Drop all proposals."""
        self.A = self.F[:0, :]  # what is left of kernel(proposals, points)

    def fill(self, rows: Array) -> np.ndarray:
        """Factor rows, (m, k), of earlier pivots; what they take of k(x, x)."""
        self.F[: rows.shape[1], :] = arrays.as_float(rows.T, self.dtype)
        return arrays.to_host(arrays.squared_norms(rows))

    def propose(
        self, X: Any, F_new: Array, kept: np.ndarray, G_kept: Array
    ) -> np.ndarray:
        """A of the proposals that are kept, brought up to date, and of new ones, X.

        F_new and G_kept are factor rows at the proposals, (c, k). Returns H's new
        columns.
        """
        old = arrays.take_rows(self.A, kept) - G_kept @ self.G
        K = arrays.as_float(self.columns(X), self.dtype)
        new = K - F_new @ self.F[: F_new.shape[1], :]
        self.A = arrays.append_rows(old, new)
        return arrays.host_values(self.A @ (new * self.weights).T)

    def take(self, chosen: np.ndarray, L: np.ndarray, k: int) -> np.ndarray:
        """Make rows of A pivots, after k others; what they take of k(x, x)."""
        inverse = scipy.linalg.solve_triangular(L, np.eye(len(L)), lower=True)
        self.G = arrays.from_host(inverse, self.F) @ arrays.take_rows(self.A, chosen)
        self.F[k : k + len(chosen), :] = self.G
        return arrays.host_values(arrays.column_squares(self.G))
