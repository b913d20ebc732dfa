"""Kernels as slow, obvious formulas of two rows.

The formulas use nothing of the package. A new kernel needs one row in `FORMULAS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nystrom import kernels


def rbf(gamma=1.0):
    return lambda x, y: math.exp(-sum(gamma * (x - y) ** 2))


def laplacian(gamma=1.0):
    return lambda x, y: math.exp(-sum(gamma * abs(x - y)))


def matern(length_scale, nu):
    def k(x, y):
        d = math.hypot(*((x - y) / length_scale))
        if nu == 0.5:
            return math.exp(-d)
        if nu == 1.5:
            return (1 + math.sqrt(3) * d) * math.exp(-math.sqrt(3) * d)
        return (1 + math.sqrt(5) * d + 5 * d**2 / 3) * math.exp(-math.sqrt(5) * d)

    return k


def rational_quadratic(length_scale, alpha):
    def k(x, y):
        d = math.hypot(*((x - y) / length_scale))
        return (1 + d**2 / (2 * alpha)) ** -alpha

    return k


def polynomial(gamma, degree, coef0):
    return lambda x, y: (gamma * sum(x * y) + coef0) ** degree


def sigmoid(gamma, coef0):
    return lambda x, y: math.tanh(gamma * sum(x * y) + coef0)


def linear(x, y):
    return sum(x * y)


def cosine(x, y):
    if not any(x) or not any(y):
        return 0.0
    return sum((x / math.hypot(*x)) * (y / math.hypot(*y)))


def additive_chi2(x, y):
    pairs = zip(x, y, strict=True)
    return -sum((a - b) ** 2 / (a + b) for a, b in pairs if a + b > 0)


def chi2(gamma):
    return lambda x, y: math.exp(gamma * additive_chi2(x, y))


def matrix(k, X, Y):
    """k of each pair of rows, in float64, by two loops."""
    X, Y = np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64)
    return np.array([[k(x, y) for y in Y] for x in X]).reshape(len(X), len(Y))


def no_formula(x, y):
    raise AssertionError(
        "This kernel has no formula; add a row to FORMULAS in tests/oracles_kernels.py."
    )


@dataclass(frozen=True)
class Case:
    """A kernel, its formula, and what it is for."""

    kernel: kernels.Kernel
    formula: Callable = no_formula
    histograms: bool = False  # rows have no negative entries, and are dense

    def rows(self, rng, n_rows, n_features=5, dtype=np.float64):
        """Random rows with some zeros, which CSR leaves out."""
        X = rng.standard_normal((n_rows, n_features))
        X *= rng.random(X.shape) < 0.7
        return (abs(X) if self.histograms else X).astype(dtype)

    def __str__(self):
        return str(self.kernel)


#: By the kernel's name, for kernels with other parameters than the default.
FORMULAS = {
    "additive_chi2": Case(kernels.AdditiveChi2(), additive_chi2, histograms=True),
    "chi2": Case(kernels.Chi2(0.3), chi2(0.3), histograms=True),
    "cosine": Case(kernels.Cosine(), cosine),
    "laplacian": Case(kernels.Laplacian(0.3), laplacian(0.3)),
    "linear": Case(kernels.Linear(), linear),
    "matern12": Case(kernels.Matern(1.5, 0.5), matern(1.5, 0.5)),
    "matern32": Case(kernels.Matern(1.5, 1.5), matern(1.5, 1.5)),
    "matern52": Case(kernels.Matern(1.5, 2.5), matern(1.5, 2.5)),
    "polynomial": Case(kernels.Polynomial(0.3, 3, 1.0), polynomial(0.3, 3, 1.0)),
    "rational_quadratic": Case(
        kernels.RationalQuadratic(1.5, 0.7), rational_quadratic(1.5, 0.7)
    ),
    "rbf": Case(kernels.RBF(0.3), rbf(0.3)),
    "sigmoid": Case(kernels.Sigmoid(0.3, 0.5), sigmoid(0.3, 0.5)),
}


def dense_likelihood(C, alpha, observed):
    """−log p per row and target, by the inverse and the determinant of all rows."""
    Y, w, c = observed.targets, observed.weights, observed.intercept_std
    m, t = Y.shape
    s = C.shape[1]
    K = C @ np.linalg.solve(C[:s] + 1e-9 * np.eye(s), C.T) + c**2
    M = K + np.diag(alpha / w)
    squares = np.einsum("it,ij,jt->t", Y, np.linalg.inv(M), Y)
    _, logs = np.linalg.slogdet(M)
    logs += np.log(w).sum()  # which never changes, and is left out
    return (t * logs + m * np.log(squares).sum()) / (2 * m * t)
