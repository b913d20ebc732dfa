"""Algorithm 3 as one would write it down in NumPy: the peer for `recursive`.

Practical constants, whole blocks of K in memory, an explicit inverse. In the precision
of the data it is given.
"""

from __future__ import annotations

import numpy as np


def rbf(X: np.ndarray, Y: np.ndarray, gamma: float) -> np.ndarray:
    """exp(−γ‖x − y‖²) for all pairs, in one piece."""
    distances = (X**2).sum(axis=1)[:, None] + (Y**2).sum(axis=1) - 2 * X @ Y.T
    return np.exp(-gamma * distances)


def recursive_landmarks(
    X: np.ndarray, gamma: float, n_landmarks: int, seed: int
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
        K_sample = rbf(X[sample], X[sample], gamma)
        weighted = K_sample * np.outer(weights, weights)
        ridge = np.linalg.eigvalsh(weighted)[: len(sample) - k].sum() / k
        inverse = np.linalg.inv(K_sample + np.diag(ridge / weights**2))
        KS = rbf(X[rows], X[sample], gamma)
        captured = ((KS @ inverse.astype(X.dtype)) * KS).sum(axis=1)
        scores = np.maximum(0, 1 - captured) / ridge
        if level == 0:
            p = np.minimum(1, scores).astype(np.float64)
            return rng.choice(n, s, replace=False, p=p / p.sum())
        p = np.minimum(1, q * scores)
        kept = rng.random(len(rows)) < p
        sample, weights = rows[kept], 1 / np.sqrt(p[kept])
        weights = weights.astype(X.dtype)
    raise AssertionError("there is always a level 0")
