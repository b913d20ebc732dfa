"""The algebra of a weighted sample SᵀKS: its ridge, and the root with it."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from .precision import least_ridge


def weighted(K: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """SᵀKS for the sampling matrix with these weights: wᵢ·wⱼ·kᵢⱼ."""
    with np.errstate(over="ignore"):
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
