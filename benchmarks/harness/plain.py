"""Two algorithms as one would write them down in NumPy, in the precision of the data.

Algorithm 3, the peer for `recursive`: practical constants, whole blocks of K in memory,
an explicit inverse. Randomly pivoted Cholesky in blocks with rejection, the peer for
`rpcholesky` and `auto`: the whole n × s factor in memory.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


class RBF:
    """exp(−γ‖x − y‖²) for all pairs, in one piece; it counts its values."""

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma
        self.evaluations = 0

    def __call__(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        self.evaluations += len(X) * len(Y)
        distances = (X**2).sum(axis=1)[:, None] + (Y**2).sum(axis=1) - 2 * X @ Y.T
        return np.exp(-self.gamma * distances)


class PlainNystroem:
    """KS(SᵀKS)^(-1/2) by an eigendecomposition, for landmarks of a function below."""

    def __init__(self, choose: Callable, gamma: float, s: int, seed: int) -> None:
        self.choose, self.s, self.seed = choose, s, seed
        self.kernel = RBF(gamma)

    def fit(self, X: np.ndarray) -> PlainNystroem:
        """Choose landmarks and factor their kernel matrix."""
        self.kernel.evaluations = 0
        self.landmarks = X[self.choose(X, self.kernel, self.s, self.seed)]
        wide = self.landmarks.astype(np.float64)
        values, vectors = np.linalg.eigh(self.kernel(wide, wide))
        # Directions below the rounding of K's rows would only amplify it.
        keep = values > np.finfo(X.dtype).eps * values[-1]
        root = vectors[:, keep] / np.sqrt(values[keep])
        self.root = root.astype(X.dtype)
        self.chosen = self.kernel.evaluations
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """The features of rows."""
        return self.kernel(X, self.landmarks) @ self.root

    def evaluations(self, n: int) -> int:
        """Kernel values for fit and for the transform of n rows."""
        return self.chosen + n * self.s


def recursive_landmarks(
    X: np.ndarray, kernel: RBF, n_landmarks: int, seed: int
) -> np.ndarray:
    """Row numbers of the landmarks."""
    rng = np.random.default_rng(seed)
    n, s = len(X), n_landmarks
    q = np.log(s)
    k = int(np.ceil(s / (4 * q)))
    order = rng.permutation(n)
    n_levels = int(np.ceil(np.log2(n / s)))
    sample = order[: int(np.ceil(n / 2**n_levels))]
    weights = np.ones(len(sample), dtype=X.dtype)
    for level in range(n_levels - 1, -1, -1):
        rows = order[: int(np.ceil(n / 2**level))]
        K_sample = kernel(X[sample], X[sample])
        weighted = K_sample * np.outer(weights, weights)
        ridge = np.linalg.eigvalsh(weighted)[: len(sample) - k].sum() / k
        inverse = np.linalg.inv(K_sample + np.diag(ridge / weights**2))
        KS = kernel(X[rows], X[sample])
        captured = ((KS @ inverse.astype(X.dtype)) * KS).sum(axis=1)
        scores = np.maximum(0, 1 - captured) / ridge
        if level == 0:
            p = np.minimum(1, scores).astype(np.float64)
            return rows[rng.choice(n, s, replace=False, p=p / p.sum())]
        p = np.minimum(1, q * scores)
        kept = rng.random(len(rows)) < p
        sample, weights = rows[kept], 1 / np.sqrt(p[kept])
        weights = weights.astype(X.dtype)
    raise AssertionError("there is always a level 0")


def rpcholesky_landmarks(
    X: np.ndarray, kernel: RBF, n_landmarks: int, seed: int, block: int = 100
) -> np.ndarray:
    """Row numbers of the landmarks."""
    rng = np.random.default_rng(seed)
    n, s = len(X), n_landmarks
    factor = np.zeros((n, s), dtype=X.dtype)
    left = np.ones(n)
    chosen: list[int] = []
    while len(chosen) < s:
        k = len(chosen)
        rows = rng.choice(n, block, p=left / left.sum())
        columns = kernel(X, X[rows]) - factor[:, :k] @ factor[rows, :k].T
        corner = columns[rows].astype(np.float64)
        limits = rng.random(block) * np.diagonal(corner)
        accepted: list[int] = []
        for j in range(block):
            pivot = corner[j, j]
            if pivot > max(limits[j], 1e-6):
                corner[j:, j] /= np.sqrt(pivot)
                below = corner[j + 1 :, j]
                corner[j + 1 :, j + 1 :] -= np.outer(below, below)
                accepted.append(j)
        accepted = accepted[: s - k]
        L = np.tril(corner[np.ix_(accepted, accepted)])
        new = np.linalg.solve(L, columns[:, accepted].T.astype(np.float64)).T
        factor[:, k : k + len(accepted)] = new
        left = np.maximum(left - (new**2).sum(axis=1), 0)
        left[rows[accepted]] = 0
        chosen += [int(row) for row in rows[accepted]]
    return np.array(chosen)
