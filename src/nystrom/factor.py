"""The factor of K_SS, and of its first landmarks alone.

K_SS = LLᵀ by Cholesky in the order of choice, and Z = K_S·L⁻ᵀ. Each column is what the
ones before leave of a landmark: ten to a hundred times more accurate than the symmetric
root, whose every column has 1/√λ_min in it (benchmarks/factor.py). And it nests: the
first k columns of Z are the features of the first k landmarks. A landmark of which
nothing is left beyond rounding has no column.

All of it in float64 on the host.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg

from .cholesky import cholesky, redundant_last
from .engines.blas import blas_threads_for
from .precision import (
    eigenvalue_cut,
    is_indefinite,
    residual_unit,
    rounding_of,
)
from .refusals import check_finite


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
        """The fields alone: all else is made of them anew."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

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
        if not self.rank:
            return np.zeros_like(self.L)
        with blas_threads_for(self.rank):
            # Lᵀ is upper triangular, and Fortran-ordered: its inverse needs no copies.
            inverse, _ = scipy.linalg.lapack.dtrtri(self._corner.T, lower=0)
        if self._keeps_all:
            return inverse
        root = np.zeros_like(self.L)
        root[self.kept] = inverse
        return root

    @property
    def _keeps_all(self) -> bool:
        """Whether every landmark has a column, in their own order."""
        return np.array_equal(self.kept, np.arange(len(self.L)))

    @property
    def _corner(self) -> np.ndarray:
        """(r, r), lower triangular: the factor of the landmarks that are kept."""
        return self.L if self._keeps_all else self.L[self.kept]

    @cached_property
    def full_root(self) -> np.ndarray:
        """(s, s): one column per landmark, 0 for those that add nothing."""
        if self._root is not None:  # symmetric, as L is the eigenvectors' here
            return self._root @ (self.L / np.linalg.norm(self.L, axis=0)).T
        if self._keeps_all:
            return self.root
        full = np.zeros((len(self.L), len(self.L)))
        full[:, self.kept] = self.root
        return full

    @cached_property
    def inverse_norm(self) -> float:
        """1/λ for the smallest eigenvalue λ of K_SS that is kept."""
        return _squared_norm(self.root)

    @property
    def inverse_trace(self) -> float:
        """Σ 1/λ over the eigenvalues of K_SS that are kept."""
        return float(np.vdot(self.root, self.root))

    @cached_property
    def norm(self) -> float:
        """The largest eigenvalue of K_SS."""
        return _squared_norm(self.L)

    @property
    def scale(self) -> float:
        """The largest |k(x, x)|; a norm where these vanish (additive χ²)."""
        return float(np.abs(self.diagonal).max(initial=0.0)) or self.norm

    def values_with_root(self, z: np.ndarray) -> np.ndarray:
        """(s,): a vector of kernel values k with rootᵀk = z."""
        return self.L @ z

    @cached_property
    def _for_blocks(self) -> dict[np.dtype, Factor]:
        """What `for_blocks` has found: it is asked for more than once."""
        return {}

    def for_blocks(self, block_dtype: Any) -> Factor:
        """The factor for kernel blocks of less precision, which resolve fewer."""
        dtype = np.dtype(block_dtype)
        if dtype not in self._for_blocks:
            self._for_blocks[dtype] = self._resolved(dtype)
        return self._for_blocks[dtype]

    def _resolved(self, block_dtype: Any) -> Factor:
        if self._root is not None:
            values = np.vecdot(self.L.T, self.L.T)  # eigenvalues
            cut = eigenvalue_cut(values, self.scale, block_dtype)
            few = int(np.count_nonzero(values > cut))
            if few == self.rank:
                return self
            return replace(
                self, L=self.L[:, :few], kept=self.kept[:few], _root=self._root[:, :few]
            )
        floor = residual_unit(block_dtype, len(self.L)) * self.diagonal
        corner = self._corner  # who has no column now gets none then
        if np.all(np.diagonal(corner) ** 2 > floor[self.kept]):
            return self
        with blas_threads_for(len(self.L)):
            L, fewer = cholesky(corner @ corner.T, floor[self.kept])
            kept = self.kept[fewer]
            rows = np.empty((len(self.L), len(kept)))
            rows[kept] = L = L[fewer]
            rest = np.delete(np.arange(len(self.L)), kept)
            values = corner[fewer] @ self.L[rest].T
            rows[rest] = scipy.linalg.solve_triangular(L, values, lower=True).T
        return Factor(rows, kept, self.diagonal)

    def lost_to(self, fewer: Factor) -> float:
        """Σ of what another factor of the same landmarks leaves of K_SS beyond this."""
        squares = (np.vdot(f.L, f.L) for f in (self, fewer))
        return max(0.0, float(np.subtract(*squares)))

    def prefix(self, size: int) -> Factor:
        """The factor of the first landmarks alone."""
        if self.is_nested:
            few = int(np.searchsorted(self.kept, size))
            L, kept = self.L[:size, :few], self.kept[:few]
            return Factor(L, kept, self.diagonal[:size])
        return factorize(self.L[:size] @ self.L[:size].T)


def _squared_norm(A: np.ndarray) -> float:
    """‖A‖₂², by so many steps of the power method that its size is right."""
    v = np.ones(A.shape[1])
    norm = 0.0
    for _ in range(30):
        v = A.T @ (A @ v)
        norm = float(np.linalg.norm(v))
        if norm == 0.0:
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
    with blas_threads_for(len(K)):
        if not psd:
            values, vectors = np.linalg.eigh(K)
            if psd is False or is_indefinite(values, rounding_of(K, value_dtype)):
                return _by_eigenvectors(values, vectors, diagonal, value_dtype)
        floor = residual_unit(value_dtype, len(K)) * np.abs(diagonal)
        L, kept = cholesky(K, floor)
        if len(kept) == len(K):
            return Factor(L, kept, diagonal)
        order = redundant_last(K, floor)
        L, kept = cholesky(K[np.ix_(order, order)], floor[order])
    rows = np.empty_like(L)
    rows[order] = L
    return Factor(rows, order[kept], diagonal)


def _by_eigenvectors(
    values: np.ndarray, vectors: np.ndarray, diagonal: np.ndarray, dtype: Any
) -> Factor:
    """The positive part of an indefinite K_SS."""
    values, vectors = values[::-1], vectors[:, ::-1]
    scale = float(np.abs(diagonal).max(initial=0.0)) or float(np.abs(values).max())
    few = int(np.count_nonzero(values > eigenvalue_cut(values, scale, dtype)))
    values, vectors = values[:few], vectors[:, :few]
    root = vectors / np.sqrt(values)
    L = vectors * np.sqrt(values)
    return Factor(L, np.arange(few), diagonal, root, indefinite=True)
