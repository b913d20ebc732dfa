"""The s × s algebra: the factor of K_SS, roots, and the ridge from a spectrum.

All of it in float64 on the host.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg

from .engines.blas import blas_threads_for
from .precision import eigenvalue_cut, is_indefinite, least_ridge, rounding_of
from .refusals import check_finite


@dataclass(frozen=True, eq=False)
class Factor:
    """The eigendecomposition of K_SS, cut where rounding takes over.

    K̃ = K_S K_SS⁺ K_Sᵀ = Z Zᵀ with Z = K_S·root.
    """

    eigenvalues: np.ndarray  # (s,), descending; those of the kept directions first
    eigenvectors: np.ndarray  # (s, s)
    rank: int  # directions kept
    indefinite: bool  # a negative eigenvalue beyond rounding
    scale: float  # the largest |kᵢᵢ|

    def for_blocks(self, block_dtype: Any) -> Factor:
        """The same decomposition, cut for kernel blocks of another precision."""
        cut = eigenvalue_cut(self.eigenvalues, self.scale, block_dtype)
        rank = int(np.count_nonzero(self.eigenvalues > cut))
        return self if rank == self.rank else replace(self, rank=rank)

    @property
    def kept_eigenvalues(self) -> np.ndarray:
        """(rank,)."""
        return self.eigenvalues[: self.rank]

    @cached_property
    def root(self) -> np.ndarray:
        """(s, rank): root·rootᵀ = K_SS⁺."""
        return self.eigenvectors[:, : self.rank] / np.sqrt(self.kept_eigenvalues)

    @cached_property
    def symmetric_root(self) -> np.ndarray:
        """(s, s): K_SS^{+/2}, which has s columns also where the rank is less."""
        with blas_threads_for(len(self.eigenvalues)):
            return self.root @ self.eigenvectors[:, : self.rank].T

    def values_with_root(self, z: np.ndarray) -> np.ndarray:
        """(s,): a vector of kernel values k with rootᵀk = z, as K_SS·root·z."""
        return (self.root * self.kept_eigenvalues) @ z


def factorize(K: np.ndarray, block_dtype: Any = np.float64) -> Factor:
    """The factor of K_SS for kernel blocks that are evaluated in `block_dtype`."""
    check_finite(K)
    with blas_threads_for(len(K)):
        values, vectors = np.linalg.eigh(K)
    values, vectors = values[::-1], vectors[:, ::-1]
    # The diagonal may vanish (additive χ²): then the largest entry is the scale.
    scale = np.abs(np.diagonal(K)).max(initial=0.0) or np.abs(K).max(initial=0.0)
    cut = eigenvalue_cut(values, scale, block_dtype)
    rank = int(np.count_nonzero(values > cut))
    indefinite = is_indefinite(values, rounding_of(K, block_dtype))
    return Factor(values, vectors, rank, indefinite, float(scale))


def weighted(K: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """SᵀKS for the sampling matrix with these weights: wᵢ·wⱼ·kᵢⱼ."""
    return K * weights[:, None] * weights[None, :]


def tail_ridge(SKS: np.ndarray, rank: int) -> float:
    """λ = (1/k)·Σ_{i>k} σᵢ(SᵀKS).

    Where the sample has rank ≤ k the tail is rounding noise of either sign; λ is then
    the least ridge at which SᵀKS + λI is safely definite.
    """
    values = np.linalg.eigvalsh(SKS)
    tail = float(values[: max(0, len(values) - rank)].sum())
    return max(tail / rank, least_ridge(SKS))


def ridge_root(SKS: np.ndarray, weights: np.ndarray, ridge: float) -> np.ndarray:
    """B, upper triangular, with K_S B Bᵀ K_Sᵀ = KS(SᵀKS + λI)⁻¹SᵀK.

    K_S here are the unweighted columns: the weights are in B.
    """
    try:
        L = np.linalg.cholesky(SKS + ridge * np.eye(len(SKS)))
    except np.linalg.LinAlgError:
        # Entries rounded to float32 can make SᵀKS more indefinite than λ makes up for.
        safe = ridge - 2 * float(np.linalg.eigvalsh(SKS)[0])
        L = np.linalg.cholesky(SKS + safe * np.eye(len(SKS)))
    return scipy.linalg.solve_triangular(
        L, np.diag(weights), lower=True, overwrite_b=True
    ).T
