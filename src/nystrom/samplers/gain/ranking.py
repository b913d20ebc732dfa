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
    L: np.ndarray  # lower triangular: LLᵀ is what was left of K at those chosen
    gains: np.ndarray  # of each proposal by now, −1 for those out of the race
    H: np.ndarray  # the proposals' H by now


def best_pivots(
    P: np.ndarray, H: np.ndarray, started: np.ndarray, floor: np.ndarray, size: int
) -> Ranked:
    """Take `size` times the j of largest gain Hⱼⱼ/Pⱼⱼ.

    P is what is left of the kernel matrix of the proposals, H = A diag(ω) Aᵀ for what
    is left of their rows over the pool. Taking j deflates both,

        P ← P − qqᵀPⱼⱼ,   H ← H − quᵀ − uqᵀ,   q = P·ⱼ/Pⱼⱼ,   u = H·ⱼ − ½·Hⱼⱼ·q,

    and each step needs one row and the diagonal of either: rows are brought up to date
    when they are needed, H as a whole at the end.

    Pⱼⱼ is known to about its floor, and what is off in it is off in all that j takes:
    of rows with about the same gain, one that is near rounding would leave nothing of
    the others but noise. So a gain counts by Pⱼⱼ/(Pⱼⱼ + floorⱼ).
    """
    n_proposals = len(P)
    size = min(size, n_proposals)
    V = np.empty((size, n_proposals))  # P = P₀ − VᵀV
    # q and u of each step, and the same the other way round: one product then brings a
    # row of H up to date.
    QU, UQ = np.empty((size, 2, n_proposals)), np.empty((size, 2, n_proposals))
    p, h = P.diagonal().copy(), H.diagonal().copy()
    least = np.maximum(LEAST_SHARE * started, floor)
    gains, scratch = np.empty(n_proposals), np.empty(n_proposals)
    chosen: list[int] = []
    for _ in range(size):
        gains.fill(-1.0)
        np.add(p, floor, out=scratch)
        np.divide(h, scratch, out=gains, where=p > least)
        j = int(gains.argmax())
        if gains[j] <= 0:
            break
        i = len(chosen)
        row = P[j] - V[:i, j] @ V[:i]
        pivot = row[j]
        if pivot > least[j]:  # else the running diagonal has lost it to rounding
            q, u = QU[i]
            np.divide(row, pivot, out=q)
            u[:] = H[j]
            u -= UQ[:i, :, j].ravel() @ QU[:i].reshape(2 * i, n_proposals)
            u -= (0.5 * u[j]) * q
            UQ[i, 0], UQ[i, 1] = u, q
            np.divide(row, np.sqrt(pivot), out=V[i])
            p -= np.square(V[i], out=scratch)
            np.multiply(q, u, out=scratch)
            scratch *= 2
            h -= scratch
            chosen.append(j)
        least[j] = np.inf  # out of the race
    i, taken = len(chosen), np.array(chosen, dtype=np.intp)
    gains.fill(-1.0)
    np.divide(h, p, out=gains, where=p > least)
    crossed = QU[:i].reshape(2 * i, n_proposals).T @ UQ[:i].reshape(2 * i, n_proposals)
    return Ranked(taken, np.tril(V[:i, taken].T), gains, H - crossed)
