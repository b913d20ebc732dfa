"""Components, projections and canonical correlations written out with n × n matrices.

Nothing here looks at the library: `kernel` is a function of two blocks of rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from oracles_ridge import features


def nystrom_matrix(kernel, points, X, X_new=None):
    """K̃ among the rows X, or of new rows with them."""
    Z, Z_new = features(kernel, points, X, X if X_new is None else X_new)
    return Z_new @ Z.T


def centering(n):
    """H = I − 11ᵀ/n."""
    return np.eye(n) - np.full((n, n), 1 / n)


@dataclass(frozen=True)
class DenseComponents:
    """The eigenvectors of K̃, or of HK̃H, and the projections on them."""

    values: np.ndarray  # (k,) descending
    train: np.ndarray  # (n, k) coordinates, up to sign
    new: np.ndarray  # (m, k)
    total: float  # tr K − 1ᵀK̃1/n, or tr K

    @classmethod
    def of(cls, kernel, points, X, X_new, k, *, center):
        n = len(X)
        K, K_new = (nystrom_matrix(kernel, points, X, rows) for rows in (X, X_new))
        trace = float(np.trace(kernel(X, X)))
        if center:
            H = centering(n)
            trace -= K.sum() / n
            K_new = (K_new - K.mean(axis=0)) @ H
            K = H @ K @ H
        values, U = np.linalg.eigh((K + K.T) / 2)
        values, U = values[::-1][:k], U[:, ::-1][:, :k]
        return cls(values, U * np.sqrt(values), K_new @ U / np.sqrt(values), trace)


def captured(kernel, points, X, directions):
    """‖P·φ(x)‖² summed over rows, P on the span of Σⱼ directionsⱼφ(pointⱼ).

    Exact kernel values, and no belief that the directions are orthonormal.
    """
    products = kernel(X, points) @ directions
    gram = directions.T @ kernel(points, points) @ directions
    values, V = np.linalg.eigh(gram)
    kept = values > 1e-10 * values.max()
    return float(np.sum((products @ V[:, kept]) ** 2 / values[kept]))


def projection_costs(K, approximation, Q):
    """tr(K − XKX) and tr(K̃ − XK̃X) + tr(K − K̃) for the projection X = QQᵀ."""
    cost = np.trace(K) - np.trace(Q.T @ K @ Q)
    return cost, np.trace(K) - np.trace(Q.T @ approximation @ Q)


def half(A, ridge):
    """(A² + λA)^(−½)A = U·sqrt(v/(v + λ))·Uᵀ for A = UvUᵀ ⪰ 0."""
    values, U = np.linalg.eigh((A + A.T) / 2)
    values = np.maximum(values, 0)
    return (U * np.sqrt(values / (values + ridge))) @ U.T


def program_matrix(A, B, ridges):
    """Its singular values are those of the regularised program, its σ₁ the optimum."""
    return half(A, ridges[0]) @ half(B, ridges[1])


def printed_matrix(A, B, ridges):
    """T = (A + λxI)⁻¹AB(B + λyI)⁻¹."""
    I = np.eye(len(A))  # noqa: E741
    left = np.linalg.solve(A + ridges[0] * I, A)
    return left @ np.linalg.solve(B + ridges[1] * I, B).T


FORMS = {"regularized": program_matrix, "paper": printed_matrix}


def correlations(A, B, ridges, form="regularized"):
    """The singular values of the form's matrix, descending."""
    return np.linalg.svd(FORMS[form](A, B, ridges), compute_uv=False)


def attained(A, B, ridges, a, b):
    """aᵀABb, with a and b scaled to aᵀ(A² + λxA)a = 1 and the same for b."""
    sizes = [
        np.sqrt(v @ (M @ M + ridge * M) @ v)
        for v, M, ridge in zip((a, b), (A, B), ridges, strict=True)
    ]
    return a @ A @ B @ b / (sizes[0] * sizes[1])
