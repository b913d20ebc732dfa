"""‖K − K̃‖₂ and tr(K − K̃) on a dense K, for features Z with K̃ = ZZᵀ.

Nothing of the package is used here but blocks of kernel values, so that a fault of its
factor shows as an error.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from nystrom.kernels import RBF

STEPS = 25


class DenseKernel:
    """K on some rows, computed once; errors of many approximations against it."""

    def __init__(self, X: np.ndarray, gamma: float) -> None:
        X, kernel = X.astype(np.float64), RBF(gamma)
        self.K = np.empty((len(X), len(X)))
        against = kernel.evaluator(X)
        for start in range(0, len(X), 1000):
            self.K[start : start + 1000] = against(X[start : start + 1000])
        np.fill_diagonal(self.K, 1.0)
        self.trace = float(len(X))
        self.norm = float(self.spectral_errors([np.zeros((len(X), 0))])[0])

    def trace_error(self, Z: np.ndarray) -> float:
        """tr(K − ZZᵀ), row by row: a sum of differences rounds less."""
        return float((1.0 - np.vecdot(Z, Z, axis=1)).sum())

    def spectral_errors(self, Zs: list[np.ndarray], steps: int = STEPS) -> np.ndarray:
        """‖K − ZZᵀ‖₂ for each Z by Lanczos in lock-step: one product with K serves all.

        All begin at the same vector, so that what is not converged hardly shows in
        ratios.
        """
        start = np.random.default_rng(0).standard_normal((len(self.K), 1))
        V = np.repeat(start / np.linalg.norm(start), len(Zs), axis=1)
        basis: list[np.ndarray] = []
        diagonal, beside = [], []
        for _ in range(steps):
            basis.append(V)
            W = self.K @ V
            for i, Z in enumerate(Zs):
                W[:, i] -= Z @ (Z.T @ V[:, i])
            diagonal.append((W * V).sum(axis=0))
            for Q in basis + basis:  # twice: once leaves part of what has cancelled
                W -= Q * (Q * W).sum(axis=0)
            beside.append(np.linalg.norm(W, axis=0))
            V = W / np.where(beside[-1] > 0, beside[-1], 1)
        tridiagonal = zip(np.array(diagonal).T, np.array(beside[:-1]).T, strict=True)
        values = (scipy.linalg.eigvalsh_tridiagonal(d, e) for d, e in tridiagonal)
        return np.array([np.abs(v).max() for v in values])
