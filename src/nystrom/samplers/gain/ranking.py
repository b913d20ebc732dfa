"""Pivots of a few proposals, one after the other, by what each takes off the error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: A proposal that earlier pivots have taken down to this share of what it had is left
#: out: its gain is the ratio of two small differences by then.
LEAST_SHARE = 0.02


@dataclass(frozen=True)
class Ranked:
    """Which proposals were taken, and what became of all of them."""

    chosen: np.ndarray  # in order
    gains: np.ndarray  # of each proposal by now, −1 for those out of the race
    H: np.ndarray  # the proposals' H by now


def best_pivots(
    P: np.ndarray, H: np.ndarray, started: np.ndarray, floor: np.ndarray, size: int
) -> Ranked:
    """Take `size` times the j of largest gain Hⱼⱼ/Pⱼⱼ.

    P is what is left of the kernel matrix of the proposals, H = A diag(ω) Aᵀ for what
    is left of their rows over the pool. Taking j deflates both,

        P ← P − qqᵀPⱼⱼ,   H ← H − quᵀ − uqᵀ,   q = P·ⱼ/Pⱼⱼ,   u = H·ⱼ − ½·Hⱼⱼ·q,

    and each step needs one column and the diagonal of either: columns are brought up to
    date when they are needed, H as a whole at the end.
    """
    n_proposals = len(P)
    size = min(size, n_proposals)
    V = np.zeros((n_proposals, size))  # P = P₀ − VVᵀ
    Q, U = np.zeros_like(V), np.zeros_like(V)
    p, h = np.diagonal(P).copy(), np.diagonal(H).copy()
    least = np.maximum(LEAST_SHARE * started, floor)
    free = np.ones(n_proposals, dtype=bool)
    chosen: list[int] = []
    for i in range(size):
        gains = _gains(p, h, free & (p > least))
        j = int(np.argmax(gains))
        if gains[j] <= 0:
            break
        column = P[:, j] - V[:, :i] @ V[j, :i]
        pivot = column[j]
        if not pivot > least[j]:  # the running diagonal has lost it to rounding
            p[j] = 0.0
            continue
        q = column / pivot
        u = H[:, j] - Q[:, :i] @ U[j, :i] - U[:, :i] @ Q[j, :i]
        u -= 0.5 * u[j] * q
        V[:, i], Q[:, i], U[:, i] = column / np.sqrt(pivot), q, u
        p -= V[:, i] ** 2
        h -= 2 * q * u
        free[j] = False
        chosen.append(j)
    taken = np.array(chosen, dtype=np.intp)
    gains = _gains(p, h, free & (p > least))
    return Ranked(taken, gains, H - Q @ U.T - U @ Q.T)


def _gains(p: np.ndarray, h: np.ndarray, eligible: np.ndarray) -> np.ndarray:
    return np.where(eligible, h / np.where(eligible, p, 1.0), -1.0)
