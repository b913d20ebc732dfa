"""K = LLᵀ in an order of choice, where rows that add nothing have no column.

In float64 on the host.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from .engines.blas import blas_threads_for

#: Landmarks that are factored together.
BLOCK = 64


def cholesky(K: np.ndarray, floor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L, (s, r), and the rows that have a column: K = LLᵀ up to the floors.

    In the order of K. A row with no more left than its floor gets no column.
    """
    s = len(K)
    # LAPACK's, where every row gets one. (K is symmetric: Kᵀ spares a copy by columns.)
    U, refused = scipy.linalg.lapack.dpotrf(K.T, lower=0, clean=1)
    if not refused and np.all(np.square(U.diagonal()) > floor):
        return U.T, np.arange(s)
    with blas_threads_for(BLOCK):  # threads wait for each other on narrow blocks
        return _cholesky_by_blocks(K, floor)


def _cholesky_by_blocks(
    K: np.ndarray, floor: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    s = len(K)
    L, kept = np.zeros((s, s)), np.zeros(0, dtype=np.intp)
    for start in range(0, s, BLOCK):
        rows = slice(start, min(start + BLOCK, s))
        k = len(kept)
        # What is left of these rows' block, and its own factor.
        F = L[rows, :k]
        P = K[rows, rows] - F @ F.T
        own, V = small_cholesky(P, floor[rows])
        b = len(own)
        L[rows, k : k + b] = V
        # All rows below, in one product and one solve.
        below = slice(rows.stop, s)
        if b and rows.stop < s:
            left = K[below, start + own] - L[below, :k] @ L[start + own, :k].T
            corner = V[own]
            L[below, k : k + b] = scipy.linalg.solve_triangular(
                corner, left.T, lower=True
            ).T
        kept = np.concatenate([kept, start + own])
    return np.ascontiguousarray(L[:, : len(kept)]), kept


def small_cholesky(P: np.ndarray, floor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same for one block, column by column: rows kept, and the factor of all."""
    kept: list[int] = []
    V = np.zeros_like(P)
    for j in range(len(P)):
        column = P[j:, j] - V[j:, : len(kept)] @ V[j, : len(kept)]
        if column[0] > floor[j]:
            V[j:, len(kept)] = column / np.sqrt(column[0])
            kept.append(j)
    return np.array(kept, dtype=np.intp), V[:, : len(kept)]


def pivoted_order(K: np.ndarray) -> np.ndarray:
    """The order of complete pivoting: each is the one of which most is left."""
    _, pivots, _, _ = scipy.linalg.lapack.dpstrf(K, tol=0.0, lower=1)
    return pivots - 1


def redundant_last(K: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """An order in which a good basis comes first, and its largest landmarks first.

    The basis is chosen by shares of k(x, x), as floors are: beside landmarks that are
    large, what is left of small ones is less than the rounding of the large.
    """
    root = np.sqrt(np.abs(np.diagonal(K)))
    root[root == 0] = 1.0
    order = pivoted_order(K / root / root[:, None])
    _, kept = cholesky(K[np.ix_(order, order)], floor[order])
    basis = order[kept]
    basis = basis[pivoted_order(K[np.ix_(basis, basis)])]
    return np.concatenate([basis, np.delete(order, kept)])
