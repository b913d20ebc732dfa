"""The Cholesky factor K_SS = LLᵀ in the order of selection, and of its leading blocks.

Z = K_S L⁻ᵀ nests: its first k columns are the features of the first k landmarks.
Landmarks that add nothing beyond rounding have no column. Everything is float64 on
the host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg

from .. import _arrays as arrays
from .._arrays import Array, DeviceConstant
from .._precision import (
    eigenvalue_cutoff,
    entry_roundoff,
    is_indefinite,
    residual_rounding,
)
from .._validation import check_finite
from ..engines.blas import blas_limit_for_size

#: Blocks that a matrix is cut into: with 8 a triangle takes 56 % of the multiply-adds
#: of a square, and the products are still large.
N_COLUMN_BLOCKS = 8
#: Columns that a block has at least.
MIN_BLOCK_COLUMNS = 64


@dataclass(frozen=True, eq=False)
class ColumnBlocks:
    """B in blocks of columns, each without the rows below its last that is not 0.

    K·B is then a product per block with as many columns of K as the block has rows.
    """

    parts: tuple[DeviceConstant, ...]
    n_columns: int

    @classmethod
    def from_matrix(cls, B: np.ndarray, dtype: np.dtype | None = None) -> ColumnBlocks:
        """The blocks of a matrix on the host, as operands for blocks of K."""
        r = B.shape[1]
        dtype = B.dtype if dtype is None else dtype
        filled = B != 0
        parts = []
        width = max(MIN_BLOCK_COLUMNS, -(-r // N_COLUMN_BLOCKS))
        for start in range(0, r, width):
            stop = min(start + width, r)
            rows = np.flatnonzero(filled[:, start:stop].any(axis=1))
            height = int(rows[-1]) + 1 if len(rows) else 1
            with np.errstate(over="ignore"):
                part = np.ascontiguousarray(B[:height, start:stop], dtype)
            parts.append(DeviceConstant(part))
        return cls(tuple(parts), r)

    def product(self, K: Array) -> Array:
        """K·B, where K is."""
        if not isinstance(K, np.ndarray):
            products = [
                K[:, : part.shape[0]] @ part.to_device_of(K) for part in self.parts
            ]
            return arrays.stack_columns(products) if products else K[:, :0]
        # Each block where it belongs: putting them together would cost a copy.
        parts = [part.values for part in self.parts]
        out = np.empty((len(K), self.n_columns), np.result_type(K, *parts))
        start = 0
        for part in parts:
            height, width = part.shape
            np.matmul(K[:, :height], part, out=out[:, start : start + width])
            start += width
        return out

    def squared_norms(self, K: Array) -> Array:
        """‖k·B‖² of each row of K, in float64; nothing is wider than a block."""
        xp = arrays.namespace(K)
        total = xp.zeros(K.shape[0], dtype=xp.float64, device=arrays.device(K))
        for part in self.parts:
            right = part.values if arrays.is_on_host(K) else part.to_device_of(K)
            product = K[:, : right.shape[0]] @ right
            total = total + arrays.widen(arrays.squared_norms(product))
        return total


#: Landmarks that are factored together.
BLOCK_ROWS = 64


def cholesky(K: np.ndarray, floor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L, (s, r), and the rows that have a column: K = LLᵀ up to the floors.

    In the order of K. A row whose residual is not above its floor gets no column.
    """
    s = len(K)
    # LAPACK's, where every row gets one. (K is symmetric: Kᵀ spares a copy by columns.)
    U, info = scipy.linalg.lapack.dpotrf(K.T, lower=0, clean=1)
    if not info and np.all(np.square(U.diagonal()) > floor):
        return U.T, np.arange(s)
    with blas_limit_for_size(
        BLOCK_ROWS
    ):  # threads wait for each other on narrow blocks
        return _blocked_cholesky(K, floor)


def _blocked_cholesky(
    K: np.ndarray, floor: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    s = len(K)
    L, kept = np.zeros((s, s)), np.zeros(0, dtype=np.intp)
    for start in range(0, s, BLOCK_ROWS):
        rows = slice(start, min(start + BLOCK_ROWS, s))
        k = len(kept)
        # The residual of these rows' block, and its own factor.
        F = L[rows, :k]
        P = K[rows, rows] - F @ F.T
        new, V = unblocked_cholesky(P, floor[rows])
        b = len(new)
        L[rows, k : k + b] = V
        # All rows below, in one product and one solve.
        below = slice(rows.stop, s)
        if b and rows.stop < s:
            residual = K[below, start + new] - L[below, :k] @ L[start + new, :k].T
            corner = V[new]
            L[below, k : k + b] = scipy.linalg.solve_triangular(
                corner, residual.T, lower=True
            ).T
        kept = np.concatenate([kept, start + new])
    return np.ascontiguousarray(L[:, : len(kept)]), kept


def unblocked_cholesky(
    P: np.ndarray, floor: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Factor one block column by column: the rows kept, and the factor of all rows."""
    kept: list[int] = []
    V = np.zeros_like(P)
    for j in range(len(P)):
        column = P[j:, j] - V[j:, : len(kept)] @ V[j, : len(kept)]
        if column[0] > floor[j]:
            V[j:, len(kept)] = column / np.sqrt(column[0])
            kept.append(j)
    return np.array(kept, dtype=np.intp), V[:, : len(kept)]


def pivot_order(K: np.ndarray) -> np.ndarray:
    """The order of complete pivoting: each has the largest residual."""
    _, pivots, _, _ = scipy.linalg.lapack.dpstrf(K, tol=0.0, lower=1)
    return pivots - 1


def order_redundant_last(K: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """An order in which a good basis comes first, and its largest landmarks first.

    The basis is chosen by shares of k(x, x), as floors are: beside landmarks that are
    large, the residual of small ones is less than the rounding of the large.
    """
    root = np.sqrt(np.abs(np.diagonal(K)))
    root[root == 0] = 1.0
    order = pivot_order(K / root / root[:, None])
    _, kept = cholesky(K[np.ix_(order, order)], floor[order])
    basis = order[kept]
    basis = basis[pivot_order(K[np.ix_(basis, basis)])]
    return np.concatenate([basis, np.delete(order, kept)])


@dataclass(frozen=True, eq=False)
class Factor:
    """K̃ = K_S K_SS⁺ K_Sᵀ = ZZᵀ with Z = K_S·root."""

    L: np.ndarray  # (s, r): K_SS = LLᵀ; L[kept] is lower triangular
    kept: np.ndarray  # (r,) the landmarks that have a column, in its order
    diagonal: np.ndarray  # (s,) k(x, x)
    #: Whether Z is by eigenvectors, as for kernels that are not semi-definite: a
    #: Cholesky factor has no negative part to leave out.
    _root: np.ndarray | None = field(default=None, repr=False)
    indefinite: bool = False  # a negative eigenvalue beyond rounding

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: all else is computed from them again."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    @property
    def rank(self) -> int:
        """r, the columns of Z."""
        return self.L.shape[1]

    @cached_property
    def is_nested(self) -> bool:
        """Whether the first columns of Z are those of the first landmarks.

        No landmark has a share of the column of a later one: complete pivoting may keep
        landmarks in ascending order and still have passed over one before.
        """
        if self._root is not None or np.any(np.diff(self.kept) <= 0):
            return False
        before = np.arange(len(self.L))[:, None] < self.kept
        return not np.any(self.L[before])

    @cached_property
    def root(self) -> np.ndarray:
        """(s, r): K_S·root·rootᵀ·K_Sᵀ = K̃; root·rootᵀ = K_SS⁻¹ where all are kept."""
        if self._root is not None:
            return self._root
        corner = self._corner
        if not len(corner):
            return np.zeros_like(self.L)
        with blas_limit_for_size(len(corner)):
            # Lᵀ is upper triangular, and Fortran-ordered: its inverse needs no copies.
            inverse, _ = scipy.linalg.lapack.dtrtri(corner.T, lower=0)
        if corner is self.L:
            return inverse
        root = np.zeros_like(self.L)
        root[self.kept] = inverse
        return root

    @property
    def _corner(self) -> np.ndarray:
        """(r, r), lower triangular: the factor of the landmarks that are kept.

        L itself where every landmark has a column, in their own order.
        """
        has_all_columns = np.array_equal(self.kept, np.arange(len(self.L)))
        return self.L if has_all_columns else self.L[self.kept]

    @cached_property
    def full_root(self) -> np.ndarray:
        """(s, s): one column per landmark, 0 for those that add nothing."""
        if self._root is not None:  # symmetric, as L is the eigenvectors' here
            return self._root @ (self.L / np.linalg.norm(self.L, axis=0)).T
        if self._corner is self.L:
            return self.root
        full = np.zeros((len(self.L), len(self.L)))
        full[:, self.kept] = self.root
        return full

    @cached_property
    def inverse_norm(self) -> float:
        """1/λ for the smallest eigenvalue λ of K_SS that is kept."""
        return _squared_norm(self.root)

    @cached_property
    def norm(self) -> float:
        """The largest eigenvalue of K_SS."""
        return _squared_norm(self.L)

    @property
    def scale(self) -> float:
        """The largest |k(x, x)|; a norm where these vanish (additive χ²)."""
        return float(np.abs(self.diagonal).max(initial=0.0)) or self.norm

    def kernel_values_for(self, z: np.ndarray) -> np.ndarray:
        """(s,): a vector of kernel values k with rootᵀk = z."""
        return self.L @ z

    def for_block_dtype(self, block_dtype: Any) -> Factor:
        """The factor for kernel blocks of less precision, which resolve fewer."""
        known = self.__dict__.setdefault("_by_block_dtype", {})  # asked for often
        if block_dtype not in known:
            known[block_dtype] = self._truncated(block_dtype)
        return known[block_dtype]

    def _truncated(self, block_dtype: Any) -> Factor:
        if self._root is not None:
            values = np.vecdot(self.L.T, self.L.T)  # eigenvalues
            cut = eigenvalue_cutoff(values, self.scale, block_dtype)
            n_kept = int(np.count_nonzero(values > cut))
            if n_kept == self.rank:
                return self
            return replace(
                self,
                L=self.L[:, :n_kept],
                kept=self.kept[:n_kept],
                _root=self._root[:, :n_kept],
            )
        floor = residual_rounding(block_dtype, len(self.L)) * self.diagonal
        corner = self._corner  # a landmark without a column gets none
        if np.all(np.diagonal(corner) ** 2 > floor[self.kept]):
            return self
        with blas_limit_for_size(len(self.L)):
            L, still_kept = cholesky(corner @ corner.T, floor[self.kept])
            kept = self.kept[still_kept]
            rows = np.empty((len(self.L), len(kept)))
            rows[kept] = L = L[still_kept]
            rest = np.delete(np.arange(len(self.L)), kept)
            values = corner[still_kept] @ self.L[rest].T
            rows[rest] = scipy.linalg.solve_triangular(L, values, lower=True).T
        return Factor(rows, kept, self.diagonal)

    def trace_lost_to(self, truncated: Factor) -> float:
        """Σ of what another factor of the same landmarks leaves of K_SS beyond this."""
        squares = (np.vdot(f.L, f.L) for f in (self, truncated))
        return max(0.0, float(np.subtract(*squares)))

    def prefix(self, size: int) -> Factor:
        """The factor of the first landmarks alone."""
        if self.is_nested:
            n_kept = int(np.searchsorted(self.kept, size))
            L, kept = self.L[:size, :n_kept], self.kept[:n_kept]
            return Factor(L, kept, self.diagonal[:size])
        return factorize(self.L[:size] @ self.L[:size].T)


def _squared_norm(A: np.ndarray) -> float:
    """‖A‖₂²."""
    return largest_eigenvalue(lambda v: A.T @ (A @ v), A.shape[1])


def largest_eigenvalue(multiply: Callable[[np.ndarray], np.ndarray], n: int) -> float:
    """The norm of a semi-definite matrix, to its size: 30 steps of the power method."""
    v = np.ones(n)
    norm = 0.0
    for _ in range(30):
        v = multiply(v)
        norm = float(np.linalg.norm(v))
        if not norm > 0:
            return 0.0
        v /= norm
    return norm


def factorize(
    K: np.ndarray, value_dtype: Any = np.float64, *, psd: bool | None = True
) -> Factor:
    """The factor of K_SS, whose entries are right to `value_dtype`.

    In the order of the landmarks where all are kept. Where some are not, and the order
    is not one of pivots, the first ones may be a bad basis for the rest: complete
    pivoting chooses a better one. Where the kernel makes no promise (`psd` None), look
    first.
    """
    check_finite(K)
    diagonal = np.diagonal(K).copy()
    with blas_limit_for_size(len(K)):
        if not psd:
            values, vectors = np.linalg.eigh(K)
            if psd is False or is_indefinite(values, entry_roundoff(K, value_dtype)):
                return _factor_from_eigenvectors(values, vectors, diagonal, value_dtype)
        floor = residual_rounding(value_dtype, len(K)) * np.abs(diagonal)
        L, kept = cholesky(K, floor)
        if len(kept) == len(K):
            return Factor(L, kept, diagonal)
        order = order_redundant_last(K, floor)
        L, kept = cholesky(K[np.ix_(order, order)], floor[order])
    rows = np.empty_like(L)
    rows[order] = L
    return Factor(rows, order[kept], diagonal)


def _factor_from_eigenvectors(
    values: np.ndarray, vectors: np.ndarray, diagonal: np.ndarray, dtype: Any
) -> Factor:
    """The positive part of an indefinite K_SS."""
    values, vectors = values[::-1], vectors[:, ::-1]
    scale = float(np.abs(diagonal).max(initial=0.0)) or float(np.abs(values).max())
    n_kept = int(np.count_nonzero(values > eigenvalue_cutoff(values, scale, dtype)))
    values, vectors = values[:n_kept], vectors[:, :n_kept]
    root = vectors / np.sqrt(values)
    L = vectors * np.sqrt(values)
    return Factor(L, np.arange(n_kept), diagonal, root, indefinite=True)
