"""The s × s algebra: cut-offs, roots, and the ridge from a spectrum.

All of it in float64 on the host. Cut-offs are relative to the kernel's scale and to the
precision of the kernel blocks, never absolute.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg

from . import _arrays as arrays
from .engines import single_threaded_blas


class KernelNotFiniteError(ValueError):
    """A kernel returned nan or inf."""


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
        cut = _cut(self.eigenvalues, self.scale, block_dtype)
        rank = int(np.count_nonzero(self.eigenvalues > cut))
        return self if rank == self.rank else replace(self, rank=rank)

    @cached_property
    def root(self) -> np.ndarray:
        """(s, rank): root·rootᵀ = K_SS⁺."""
        return self.eigenvectors[:, : self.rank] / np.sqrt(
            self.eigenvalues[: self.rank]
        )

    @cached_property
    def symmetric_root(self) -> np.ndarray:
        """(s, s): K_SS^{+/2}, which has s columns also where the rank is less."""
        with _few_threads(len(self.eigenvalues)):
            return self.root @ self.eigenvectors[:, : self.rank].T


def factorize(K: np.ndarray, block_dtype: Any = np.float64) -> Factor:
    """The factor of K_SS for kernel blocks that are evaluated in `block_dtype`.

    Directions below 4·eps·√s·max kᵢᵢ are dropped: the usual s·eps·σ₁ throws away good
    ones in float32, where σ₁ is up to s times max kᵢᵢ. The eigenvalues themselves are
    computed in float64, and not known better than to about eps·σ₁ of that.
    """
    check_finite(K)
    n_points = len(K)
    with _few_threads(n_points):
        values, vectors = np.linalg.eigh(K)
    values, vectors = values[::-1], vectors[:, ::-1]
    # The diagonal may vanish (additive χ²): then the largest entry is the scale.
    scale = np.abs(np.diagonal(K)).max(initial=0.0) or np.abs(K).max(initial=0.0)
    rank = int(np.count_nonzero(values > _cut(values, scale, block_dtype)))
    indefinite = is_indefinite(values, rounding_of(K, block_dtype))
    return Factor(values, vectors, rank, indefinite, float(scale))


def _cut(eigenvalues: np.ndarray, scale: float, block_dtype: Any) -> float:
    """The eigenvalue of K_SS below which a direction is rounding."""
    blocks = 4 * arrays.epsilon(block_dtype) * scale
    solver = 4 * arrays.epsilon(np.float64) * eigenvalues.max(initial=0.0)
    return float(np.sqrt(len(eigenvalues)) * max(blocks, solver))


def _few_threads(n_points: int) -> AbstractContextManager:
    """Small matrices are slower on several threads."""
    return single_threaded_blas() if n_points <= 256 else nullcontext()


def is_indefinite(
    eigenvalues: np.ndarray, rounding: float = float(np.finfo(np.float64).eps)
) -> bool:
    """Whether one is negative beyond rounding: −10·eps·s times the largest."""
    size = np.abs(eigenvalues).max(initial=0.0)
    limit = 10 * rounding * len(eigenvalues) * size
    return bool(eigenvalues.min(initial=0.0) < -limit)


def rounding_of(K: np.ndarray, block_dtype: Any) -> float:
    """The unit round-off of K's entries, also of float32 values stored as float64."""
    with np.errstate(over="ignore"):
        narrow = block_dtype == np.float32 or np.array_equal(K, K.astype(np.float32))
    return arrays.epsilon(np.float32 if narrow else np.float64)


def check_finite(K: np.ndarray) -> None:
    """Refuse nan and inf."""
    if not np.all(np.isfinite(K)):
        raise KernelNotFiniteError(
            "The kernel returned nan or inf for these rows. Check its parameters (a "
            "large degree overflows, a fractional one of a negative number is nan) and "
            "the scale of the data."
        )


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


def least_ridge(SKS: np.ndarray) -> float:
    """The least ridge at which the Cholesky factor of SᵀKS + λI exists, rounded."""
    trace = float(np.trace(SKS))
    tiny = np.finfo(np.float64).tiny
    return max(10 * arrays.epsilon(np.float64) * len(SKS) * trace, tiny)


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
