"""Ridge regression on landmarks written out densely, and once in sixty digits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext

import numpy as np

#: Singular values of K_SS below this share of the largest are rounding.
CUT = 5e-15


@dataclass(frozen=True)
class Dense:
    """K̃ among rows, K̃ of new rows with them, and k(x, x) of the new rows."""

    K: np.ndarray  # (n, n)
    K_new: np.ndarray  # (m, n)
    diagonal: np.ndarray  # (m,)
    weights: np.ndarray  # (n,)

    @classmethod
    def of(cls, kernel, X, points, X_new, weights=None):
        inverse = np.linalg.pinv(kernel(points, points), rcond=CUT, hermitian=True)
        K_S = kernel(X, points)
        return cls(
            K_S @ inverse @ K_S.T,
            kernel(X_new, points) @ inverse @ K_S.T,
            np.array([kernel(x[None], x[None])[0, 0] for x in X_new]),
            np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float),
        )

    def predict(self, y, alpha, *, intercept=False):
        """K̃(K̃ + αW⁻¹)⁻¹y, where W⁻¹ may be infinite, and a constant by Lagrange."""
        half, A = self._system(alpha)
        beta = self._constant(y, alpha) if intercept else 0.0
        return self.K_new @ (half * np.linalg.solve(A, half * (y - beta))) + beta

    def deviation(self, y, alpha, *, intercept=False, noise=False, scale=None):
        """That of the Gaussian process with covariance K̃, noise α and scale σ̂².

        A constant has a flat prior.
        """
        half, A = self._system(alpha)
        Q = half[:, None] * self.K_new.T
        solved = np.linalg.solve(A, Q)
        variance = self.diagonal - np.einsum("nm,nm->m", Q, solved)
        if intercept:
            left = 1 - half @ solved
            variance += left**2 / (half @ np.linalg.solve(A, half))
        scale = self.scale(y, alpha, intercept) if scale is None else scale
        return np.sqrt(scale * (variance + alpha * noise))

    def scale(self, y, alpha, intercept=False):
        """σ̂² = yᵀ(K̃ + αW⁻¹)⁻¹y over the number of rows."""
        half, A = self._system(alpha)
        beta = self._constant(y, alpha) if intercept else 0.0
        r = half * (y - beta)
        w = self.weights
        return r @ np.linalg.solve(A, r) / max(w.sum(), np.count_nonzero(w))

    def _system(self, alpha):
        half = np.sqrt(self.weights)
        return half, half[:, None] * self.K * half + alpha * np.eye(len(half))

    def _constant(self, y, alpha):
        half, A = self._system(alpha)
        return half @ np.linalg.solve(A, half * y) / (half @ np.linalg.solve(A, half))


def left_out_scores(kernel, X, landmarks, y, alpha, weights=None, intercept=False):
    """Residuals over deviations of scale 1, of each row left out of a fit of its own.

    Of all rows of weight > 0; a landmark is left out with its row.
    """
    w = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)
    (Z_all,) = features(kernel, X[landmarks], X)
    scores = []
    for i in np.flatnonzero(w):
        Z = Z_all
        if i in landmarks:
            (Z,) = features(kernel, X[np.setdiff1d(landmarks, i)], X)
        residual = kernel(X[:1], X[:1])[0, 0] - Z[i] @ Z[i]
        rest = np.where(np.arange(len(X)) == i, 0.0, w)
        center = np.average(Z, axis=0, weights=rest) * intercept
        mean = np.average(y, weights=rest) * intercept
        C, z = Z - center, Z[i] - center
        B = C.T @ (rest[:, None] * C) + alpha * np.eye(Z.shape[1])
        predicted = mean + z @ np.linalg.solve(B, C.T @ (rest * (y - mean)))
        leverage = z @ np.linalg.solve(B, z) + intercept / rest.sum()
        deviation = np.sqrt(residual + alpha * (leverage + 1))
        scores.append((y[i] - predicted) / deviation)
    return np.array(scores)


def features(kernel, points, *rows):
    """Z = K_S·U·Λ^{−½} for each of several sets of rows, in the dtype of the rows."""
    values, U = np.linalg.eigh(kernel(points, points))
    kept = values > CUT * values.max()
    root = U[:, kept] / np.sqrt(values[kept])
    return [kernel(X, points) @ root for X in rows]


def by_orthogonal_factor(Z, Z_new, y, alpha):
    """Ridge regression on Z without its Gram matrix: least squares on [Z; √α·I]."""
    stacked = np.vstack([Z, np.sqrt(alpha) * np.eye(Z.shape[1])])
    Q, R = np.linalg.qr(stacked)
    return Z_new @ np.linalg.solve(R, Q[: len(Z)].T @ y)


# The same in sixty digits, where no condition number of float64 rows matters


def rbf_digits(X, Y, gamma):
    squares = np.sum((X[:, None] - Y[None]) ** 2, axis=2)
    return np.vectorize(lambda d: (-gamma * d).exp(), otypes=[object])(squares)


def polynomial_digits(X, Y, gamma, degree, coef0):
    return (gamma * (X @ Y.T) + coef0) ** degree


def linear_digits(X, Y):
    return X @ Y.T


def in_sixty_digits(kernel, X, points, X_new, y, alpha, **parameters):
    """Predictions with 60 digits from the float64 rows on, rounded at the very end."""
    with localcontext(Context(prec=60)):
        X, points, X_new, y = map(_digits, (X, points, X_new, y))
        parameters = {k: Decimal(v) for k, v in parameters.items()}
        K = kernel(points, points, **parameters)
        S = _spanning(K)
        points, K = points[S], K[np.ix_(S, S)]
        K_S = kernel(X, points, **parameters)
        c = _solve(K_S.T @ K_S + Decimal(alpha) * K, K_S.T @ y)
        return (kernel(X_new, points, **parameters) @ c).astype(np.float64)


def _digits(values):
    return np.vectorize(Decimal, otypes=[object])(np.asarray(values, dtype=np.float64))


def _spanning(K):
    """Landmarks whose rows span those of all: pivoted elimination down to 10⁻⁴⁰."""
    left, chosen = K.copy(), []
    largest = max(np.diagonal(K))
    while len(chosen) < len(K):
        pivot = int(np.argmax(np.diagonal(left)))
        if left[pivot, pivot] < largest * Decimal("1e-40"):
            break
        chosen.append(pivot)
        left = left - np.outer(left[:, pivot], left[pivot]) / left[pivot, pivot]
    return chosen


def _solve(A, b):
    """Elimination of a positive definite matrix."""
    A, b = A.copy(), b.copy()
    n = len(A)
    for i in range(n):
        factors = A[i + 1 :, i] / A[i, i]
        A[i + 1 :, i:] -= np.outer(factors, A[i, i:])
        b[i + 1 :] -= factors * b[i]
    x = np.empty(n, dtype=object)
    for i in reversed(range(n)):
        x[i] = (b[i] - np.dot(A[i, i + 1 :], x[i + 1 :]) if i < n - 1 else b[i]) / A[
            i, i
        ]
    return x


def relative(found, expected):
    """Root mean square error as a share of the values' own size."""
    error = np.asarray(found, dtype=np.float64) - expected
    return math.sqrt(np.mean(error**2) / np.mean(np.asarray(expected) ** 2))
