"""The likelihood of targets under the landmark model, and its gradient.

Targets are Gaussian with covariance σ²(K̃ + αW⁻¹), K̃ = CQ⁻¹Cᵀ for the columns C and the
landmarks' own matrix Q, one σ per target, which is its best. A constant among the
features, of large variance, stands for the intercept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular

from ...sources import weights as row_weights

#: Added to the landmarks' own matrix, of diagonal 1, where rows repeat each other.
JITTER = 1e-9
#: The constant's deviation, in those of the function: wide beside centred targets.
CONSTANT = 10.0
#: A target that varies by no more than this share of itself is constant.
VARIES = 1e-10


@dataclass(frozen=True)
class Observed:
    """Targets of deviation 1, weights of mean 1, and the constant."""

    targets: np.ndarray  # (m, t)
    weights: np.ndarray  # (m,), > 0
    constant: float  # 0 without an intercept

    @classmethod
    def of(cls, Y: np.ndarray, weights: np.ndarray, *, intercept: bool) -> Observed:
        """From targets as they are; those that do not vary are left out."""
        largest = np.abs(Y).max(axis=0, initial=0.0)
        # Divided first, so that no square overflows.
        Y = Y / np.where(largest > 0, largest, 1.0)
        w = weights / weights.mean()
        if intercept:
            Y = Y - row_weights.mean(w, Y)
        spread = np.sqrt(row_weights.mean(w, Y**2))
        told = spread > VARIES
        return cls(Y[:, told] / spread[told], w, CONSTANT if intercept else 0.0)


@dataclass(frozen=True)
class Likelihood:
    """−log p of the targets, per row and target, without what never changes."""

    value: float
    by_columns: np.ndarray  # ∂/∂C, of the first rows that are Q too
    by_log_alpha: float


@dataclass(frozen=True)
class Model:
    """The features of all rows: what does not change with alpha."""

    observed: Observed
    M: np.ndarray  # (s, s) L⁻¹ of the landmarks
    Z: np.ndarray  # (m, s + 1), the last column the constant
    gram: np.ndarray  # ZᵀWZ

    @classmethod
    def of(cls, C: np.ndarray, observed: Observed) -> Model:
        """From the columns (m, s) of the landmarks, the first s of the rows."""
        (m, s), w = C.shape, observed.weights[:, None]
        if not np.isfinite(C).all():
            raise LinAlgError("not finite")
        M = _inverse(cholesky(C[:s] + JITTER * np.eye(s), lower=True))
        Z = np.empty((m, s + 1))
        np.matmul(C, M.T, out=Z[:, :s])
        Z[:, s] = observed.constant
        return cls(observed, M, Z, Z.T @ (w * Z))

    def at(self, alpha: float) -> Fit:
        """With an alpha: −log p of the targets, and what it is made of."""
        Y, w, Z = self.observed.targets, self.observed.weights[:, None], self.Z
        (m, t), s = Y.shape, len(self.M)
        B = self.gram.copy()
        B.flat[:: s + 2] += alpha
        R = cholesky(B, lower=True)
        coef = cho_solve((R, True), Z.T @ (w * Y))
        left = Y - Z @ coef
        # yᵀGy and Gy for G = (K̃ + αW⁻¹)⁻¹: a sum of squares, so that nothing cancels.
        squares = (w * left**2).sum(axis=0) / alpha + (coef**2).sum(axis=0)
        logs = 2 * np.log(np.diag(R)).sum() + (m - s - 1) * np.log(alpha)
        value = (t * logs + m * np.log(squares).sum()) / (2 * m * t)
        return Fit(float(value), R, w * left / alpha, squares)


class Fit(NamedTuple):
    """One alpha."""

    value: float
    R: np.ndarray  # RRᵀ = B = ZᵀWZ + αI
    a: np.ndarray  # (m, t) Gy
    squares: np.ndarray  # (t,) yᵀGy


def likelihood(C: np.ndarray, alpha: float, observed: Observed) -> Likelihood:
    """From the columns (m, s) of the landmarks, which are the first s of the rows."""
    model = Model.of(C, observed)
    value, R, a, squares = model.at(alpha)
    M, Z, w = model.M, model.Z, observed.weights[:, None]
    (m, t), s = a.shape, len(M)
    root = _inverse(R)
    inverse = root.T @ root  # B⁻¹
    # E = ∂/∂K̃ = (tG − mΣ aaᵀ/yᵀa)/(2mt), with GZ = WZB⁻¹ and ZᵀGZ = I − αB⁻¹.
    across = a.T @ Z[:, :s]
    ZEZ = (np.eye(s) - alpha * inverse[:s, :s]) / (2 * m)
    ZEZ -= (across / squares[:, None]).T @ across / (2 * t)
    by_columns = Z @ (inverse[:, :s] @ M)  # 2EZL⁻¹
    by_columns *= w / m
    by_columns -= (a / squares) @ (across @ M) / t
    by_columns[:s] -= M.T @ ZEZ @ M
    free = m - s - 1 + alpha * np.trace(inverse)  # tr αGW⁻¹
    noise = alpha * (a**2 / (w * squares)).sum()
    by_log_alpha = free / (2 * m) - noise / (2 * t)
    return Likelihood(value, by_columns, float(by_log_alpha))


def _inverse(L: np.ndarray) -> np.ndarray:
    return solve_triangular(L, np.eye(len(L)), lower=True)
