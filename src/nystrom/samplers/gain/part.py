"""Some rows of a pool, with what the pool's products need of them.

Rows of the pool are columns here: a pivot's factor and what is left of a proposal are
rows of C-ordered arrays, so that new ones lie together and none is gathered by column.
A part is worked on by one thread; how a pool is cut follows from its size alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from ... import _arrays as arrays
from ...columns import Columns
from ...kernels import Kernel
from ...kernels.squared_distances import middle_of
from ...ledger import Ledger
from ...precision import values_fit_float32
from ...randomness import some_rows

#: Rows that a part has at most.
MOST_ROWS = 2048
#: Rows whose kernel values are tried in both precisions, of either kind, with so many
#: others.
TRIED_ROWS, MOST_OTHERS = 4, 256


def bounds(n_rows: int) -> np.ndarray:
    """Where to cut so many rows: an even number of parts, unless one will do."""
    n_parts = 1 if n_rows <= MOST_ROWS else 2 * -(-n_rows // (2 * MOST_ROWS))
    return np.linspace(0, n_rows, n_parts + 1).astype(np.intp)


def narrowed(kernel: Kernel, points: Any, ledger: Ledger) -> Any:
    """Dense float64 rows as float32 ones, where a kernel's values stay the same.

    About their median, which does not matter to a kernel of a distance: exp and
    products take half the time, and a ranking does not need more.
    """
    dense = arrays.is_array(points) and arrays.host_dtype(points) == np.dtype("f8")
    n = arrays.count_rows(points)
    if not dense or not kernel.traits.of_distance or not n:
        return points
    with np.errstate(over="ignore", invalid="ignore"):
        apart = points - arrays.from_host(middle_of(points), points)
        rows = arrays.as_float(apart, arrays.namespace(points).float32)
        # The farthest rows are rounded most.
        norms = arrays.to_host(arrays.squared_norms(apart))
        farthest = np.argsort(-norms, kind="stable")[:TRIED_ROWS]
        tried = np.concatenate([farthest, some_rows(n, TRIED_ROWS)])
        others = np.concatenate([tried, some_rows(n, MOST_OTHERS)])
        values, exact = (
            Columns(kernel, arrays.take_rows(X, tried)).host(
                arrays.take_rows(X, others)
            )
            for X in (rows, points)
        )
    ledger.evaluated(values.size + exact.size)
    return rows if values_fit_float32(values, exact) else points


class Part:
    """Rows `points` of a pool, each standing for `weights` rows."""

    def __init__(
        self,
        kernel: Kernel,
        points: Any,
        weights: np.ndarray,
        capacity: int,
        wide: bool,
    ) -> None:
        self.kernel, self.points, self.wide = kernel, points, wide
        dtype = np.float64 if wide else np.float32
        self.weights = weights.astype(dtype)
        self.F = np.empty((capacity, len(weights)), dtype)  # a row for each pivot
        self.G = self.F[:0]  # the rows of F later than A
        self._rooms, self._scratch = [self.F[:0], self.F[:0]], self.F[:0]
        self.forget()
        # Few points of many features are made dense once; so many are not.
        self.columns = None if sp.issparse(points) else Columns(kernel, points, wide)

    def forget(self) -> None:
        """Drop all proposals."""
        self.A = self.F[:0]  # what is left of kernel(proposals, points)

    def fill(self, rows: np.ndarray) -> np.ndarray:
        """Factor rows, (m, k), of earlier pivots; what they take of k(x, x)."""
        self.F[: rows.shape[1]] = rows.T
        return np.vecdot(rows, rows)

    def propose(
        self,
        X: Any,
        F_new: np.ndarray,
        kept: np.ndarray,
        G_kept: np.ndarray,
    ) -> np.ndarray:
        """A of the proposals that are kept, brought up to date, and of new ones, X.

        F_new and G_kept are factor rows at the proposals, (c, k). Returns this part's
        share of H's new columns.
        """
        old, new = len(kept), len(F_new)
        A, weighted = self._room(old + new), self._weighted(new)
        with np.errstate(over="ignore", invalid="ignore"):  # refused by the pool
            np.matmul(G_kept, self.G, out=A[:old])
            np.subtract(self.A[kept], A[:old], out=A[:old])
            np.matmul(F_new, self.F[: F_new.shape[1]], out=A[old:])
            np.subtract(self._kernel_rows(X), A[old:], out=A[old:])
            self.A = A
            np.multiply(self.weights, A[old:], out=weighted)
            return (A @ weighted.T).astype(np.float64)

    # The same rooms are used again: new memory is slow when it is first written to.

    def _room(self, size: int) -> np.ndarray:
        """Rows for a new A, not those of the last one, which it is made of."""
        self._rooms.reverse()
        if len(self._rooms[0]) < size:
            self._rooms[0] = np.empty((size, len(self.weights)), self.F.dtype)
        return self._rooms[0][:size]

    def _weighted(self, size: int) -> np.ndarray:
        if len(self._scratch) < size:
            self._scratch = np.empty((size, len(self.weights)), self.F.dtype)
        return self._scratch[:size]

    def _kernel_rows(self, X: Any) -> np.ndarray:
        if self.columns is not None:
            K = self.columns(X)
        else:
            K = Columns(self.kernel, X, self.wide)(self.points).T
        return K.astype(self.F.dtype, copy=False)

    def take(self, chosen: np.ndarray, L: np.ndarray, k: int) -> np.ndarray:
        """Make rows of A pivots, after k others; what they take of k(x, x)."""
        self.G = self.F[k : k + len(chosen)]
        self.G[:] = self.A[chosen]
        # G ← L⁻¹G in place: what is C-ordered here is Gᵀ to BLAS.
        trsm = scipy.linalg.get_blas_funcs("trsm", (self.G,))
        trsm(1, L, self.G.T, side=1, lower=1, trans_a=1, overwrite_b=1)
        return np.einsum("ij,ij->j", self.G, self.G)
