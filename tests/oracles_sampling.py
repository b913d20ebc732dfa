"""Dense, slow and obvious: the paper's formulas on the whole kernel matrix.

Nothing here looks at the library. `K` is always the n × n matrix, and each algorithm is
the recursion as it is printed. What is random comes in as numbers: `membership[i]`
decides to which halves row i belongs, and `coins(level)[i]` whether it is kept there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from scipy.spatial.distance import cdist


def rbf_matrix(X: np.ndarray, gamma: float) -> np.ndarray:
    """exp(−γ‖x − y‖²) for all pairs of rows."""
    return np.exp(-gamma * cdist(X, X, "sqeuclidean"))


def exact_scores(K: np.ndarray, ridge: float) -> np.ndarray:
    """Definition 1: the diagonal of K(K + λI)⁻¹."""
    return np.diag(K @ np.linalg.inv(K + ridge * np.eye(len(K))))


def lemma_scores(
    K: np.ndarray, rows: np.ndarray, weights: np.ndarray, ridge: float
) -> np.ndarray:
    """The Lemma: (1/λ)·(K − KS(SᵀKS + λI)⁻¹SᵀK)ᵢᵢ for every row."""
    KS = K[:, rows] * weights
    SKS = KS[rows] * weights[:, None]
    inside = np.linalg.solve(SKS + ridge * np.eye(len(rows)), KS.T)
    return (np.diag(K) - np.einsum("ij,ji->i", KS, inside)) / ridge


def nystrom(K: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """K̃ = KS(SᵀKS)⁺SᵀK."""
    inner = np.linalg.pinv(K[np.ix_(rows, rows)], rcond=1e-11, hermitian=True)
    return K[:, rows] @ inner @ K[rows]


def tail(K: np.ndarray, k: int) -> float:
    """(1/k)·Σ_{i>k} σᵢ(K)."""
    return float(np.sort(np.linalg.eigvalsh(K))[::-1][k:].sum()) / k


@dataclass
class DenseLevel:
    """One call of a recursive algorithm that was not its base case."""

    rows: np.ndarray
    sample: np.ndarray  # Ŝ: rows of the whole matrix,
    weights: np.ndarray  # and its entries
    ridge: float
    probabilities: np.ndarray


Coins = Callable[[int], np.ndarray]


def algorithm_2(
    K: np.ndarray,
    ridge: float,
    delta: float,
    membership: np.ndarray,
    coins: Coins,
    *,
    oversampling: float = 16.0,
) -> list[DenseLevel]:
    """RecursiveRLS-Nyström for a fixed λ; levels from the smallest to the whole."""
    levels: list[DenseLevel] = []

    def call(rows: np.ndarray, delta: float, level: int) -> tuple:
        m = len(rows)
        if m <= 192 * math.log(1 / delta):
            return rows, np.ones(m)
        half = rows[membership[rows] < 2.0 ** -(level + 1)]
        sample, weights = call(half, delta / 3, level + 1)
        scores = 3 / 2 * lemma_scores(K, sample, weights, ridge)[rows]
        log = math.log(max(1, scores.sum()) / delta)
        p = np.minimum(1, scores * oversampling * log)
        levels.append(DenseLevel(rows, sample, weights, ridge, p))
        kept = coins(level)[rows] < p
        return rows[kept], 1 / np.sqrt(p[kept])

    call(np.arange(len(K)), delta, 0)
    return levels


def algorithm_3(
    K: np.ndarray,
    size: int,
    delta: float,
    membership: np.ndarray,
    coins: Coins,
    *,
    c: float,
    oversampling: float = 16.0,
) -> list[DenseLevel]:
    """Recursive RLS-Nyström for a fixed sample size; levels as in `algorithm_2`."""
    levels: list[DenseLevel] = []

    def call(rows: np.ndarray, delta: float, level: int) -> tuple:
        m = len(rows)
        if m <= size:
            return rows, np.ones(m)
        half = rows[membership[rows] < 2.0 ** -(level + 1)]
        sample, weights = call(half, delta / 3, level + 1)
        fitting = [
            k for k in range(1, size + 1) if c * k * math.log(2 * k / delta) <= size
        ]
        k = max(fitting)
        S = np.outer(weights, weights) * K[np.ix_(sample, sample)]
        ridge = tail(S, k)
        scores = 5 * lemma_scores(K, sample, weights, ridge)[rows]
        p = np.minimum(1, scores * oversampling * math.log(2 * k / delta))
        levels.append(DenseLevel(rows, sample, weights, ridge, p))
        kept = coins(level)[rows] < p
        return rows[kept], 1 / np.sqrt(p[kept])

    call(np.arange(len(K)), delta, 0)
    return levels


def practical_2(
    K: np.ndarray,
    ridge: float,
    membership: np.ndarray,
    coins: Coins,
    *,
    largest: int | None = None,
) -> list[DenseLevel]:
    """Algorithm 2 in practice: halves of fixed size, factor 1, no δ."""

    def probabilities(scores: np.ndarray, level: int) -> np.ndarray:
        p = 2 * scores * max(1, math.log(max(1, scores.sum())))
        p = _at_most(p, 2 * largest) if largest and level else p
        return np.minimum(1, p)

    return _practical(K, 192, lambda S: ridge, probabilities, 1, 1, membership, coins)


def practical_3(
    K: np.ndarray,
    size: int,
    membership: np.ndarray,
    coins: Coins,
    *,
    base: int | None = None,
) -> list[DenseLevel]:
    """The authors' program: q = log s, k = ⌈s/4q⌉, p = min(1, q·l̃) between levels.

    It takes the first half of at most `base` rows whole, s there.
    """
    base = size if base is None else base
    q = math.log(size)
    k = math.ceil(size / (4 * q))

    def ridge(S: np.ndarray) -> float:
        top = np.sort(np.linalg.eigvalsh(S))[::-1][:k]
        return (np.trace(S) - top.sum()) / k

    def probabilities(scores: np.ndarray, level: int) -> np.ndarray:
        return _at_most(np.minimum(1, q * scores), 2 * size)

    return _practical(K, base, ridge, probabilities, k + 1, size, membership, coins)


def _practical(
    K: np.ndarray,
    base: int,
    ridge_of: Callable,
    probabilities: Callable,
    least: int,
    refill: int,
    membership: np.ndarray,
    coins: Coins,
) -> list[DenseLevel]:
    n = len(K)
    order = np.argsort(membership)  # one permutation; every half is a prefix of it
    sizes = [n]
    while sizes[-1] > base:
        sizes.append(math.ceil(n / 2 ** len(sizes)))
    sample = np.sort(order[: sizes[-1]])
    weights = np.ones(len(sample))
    levels = []
    for level in range(len(sizes) - 2, -1, -1):
        rows = np.sort(order[: sizes[level]])
        S = np.outer(weights, weights) * K[np.ix_(sample, sample)]
        ridge = ridge_of(S)
        scores = lemma_scores(K, sample, weights, ridge)[rows]
        p = probabilities(scores, level)
        levels.append(DenseLevel(rows, sample, weights, ridge, p))
        u = coins(level)[rows]
        kept = u < p
        if kept.sum() < least:  # as many as needed with the smallest coins
            kept = np.isin(np.arange(len(rows)), np.argsort(u)[:refill])
            p = np.full(len(rows), refill / len(rows))
        sample, weights = rows[kept], 1 / np.sqrt(p[kept])
    return levels


def _at_most(p: np.ndarray, total: float) -> np.ndarray:
    return p * min(1, total / p.sum())


def successive_draws(weights: np.ndarray, size: int) -> dict[tuple[int, ...], float]:
    """The probability of every ordered draw without replacement ∝ weights."""
    chances = {}
    for order in permutations(range(len(weights)), size):
        left, chance = float(np.sum(weights)), 1.0
        for i in order:
            chance *= weights[i] / left
            left -= weights[i]
        chances[order] = chance
    return chances
