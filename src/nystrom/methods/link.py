"""From the values of a ridge regression to probabilities of classes.

Fitted to targets of ±1 such a value estimates 2p − 1: where classes overlap, log(1 + f)
is a logarithm of p, and where they lie apart only its order counts. The link has both
ends: log p = slope·log(1 + exp(sharpness·(1 + f))) + bias, but for the sum over all
classes, is a power of 1 + f where it is sharp, and with little sharpness Platt's
exp(slope·f). It is fitted to values of rows that the regression has not seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax

#: What is tried; the rest of a link is a convex problem.
SHARPNESS = tuple(2.0**power for power in range(-1, 7))
#: Where the search begins.
FIRST = 2.0
#: Newton's method ends when no more than this is to be gained, or after so many steps.
TOLERANCE, MOST_STEPS = 1e-13, 50
#: Values of left-out rows beyond this say no more: fits that pass through every target
#: leave rounding, divided by rounding.
LARGEST = 1e3

#: A log-loss, and slope and bias that have it.
Fit = tuple[float, np.ndarray]


@dataclass(frozen=True, eq=False)
class Link:
    """log p of each class, from one value per class, or one for two classes."""

    sharpness: float
    slope: float  # not negative
    bias: np.ndarray  # (classes,)

    def log_probabilities(self, F: np.ndarray) -> np.ndarray:
        """(n, classes), from values (n, 1) or (n, classes)."""
        return log_softmax(self.slope * bent(F, self.sharpness) + self.bias, axis=1)

    def probabilities(self, F: np.ndarray) -> np.ndarray:
        """Their exponentials."""
        return np.exp(self.log_probabilities(F))

    def losses(self, F: np.ndarray, own: np.ndarray) -> np.ndarray:
        """−log p of the class of each row, told by its number."""
        return -self.log_probabilities(F)[np.arange(len(F)), own]


def bent(F: np.ndarray, sharpness: float) -> np.ndarray:
    """log(log(1 + exp(sharpness·(1 + f)))), a column per class."""
    F = np.clip(F, -LARGEST, LARGEST)
    F = np.hstack([-F, F]) if F.shape[1] == 1 else F
    u = sharpness * (1 + F)
    # Far below 0 it is u itself, and its exponential nothing.
    return np.where(u < -30, u, np.log(np.logaddexp(0, np.maximum(u, -30))))


def classes_of(Y: np.ndarray) -> np.ndarray:
    """The number of each row's class, from ±1; or from values, which class they say."""
    return (Y[:, 0] > 0).astype(int) if Y.shape[1] == 1 else Y.argmax(axis=1)


def fit_link(F: np.ndarray, Y: np.ndarray, weights: np.ndarray) -> Link:
    """The link with the least log-loss on rows that were left out, with targets ±1.

    Classes are told with Platt's doubt, as if two more rows of each had been seen, one
    of them of other classes: no slope or bias is infinite.
    """
    n_classes = max(2, Y.shape[1])
    Q = doubted(classes_of(Y), n_classes, weights)
    known: dict[int, Fit] = {}

    def tried(place: int, start: np.ndarray) -> Fit:
        if place not in known:
            known[place] = _fitted(bent(F, SHARPNESS[place]), Q, start)
        return known[place]

    place = SHARPNESS.index(FIRST)
    best = tried(place, np.r_[1.0, np.zeros(n_classes)])
    for step in (1, -1):  # downhill, in the one direction or the other
        while 0 <= place + step < len(SHARPNESS):
            other = tried(place + step, best[1])
            if other[0] >= best[0]:
                break
            place, best = place + step, other
    slope, bias = float(best[1][0]), best[1][1:]
    return Link(SHARPNESS[place], slope, bias - bias.mean())


def doubted(own: np.ndarray, n_classes: int, weights: np.ndarray) -> np.ndarray:
    """(n, classes): the weight of each row, most of it with its class."""
    w = np.asarray(weights, dtype=np.float64)
    n_rows = np.count_nonzero(w)
    # A row of weight w counts as w rows; small weights do not make fewer rows.
    w = w * max(1.0, n_rows / w.sum()) if n_rows else w
    counts = np.bincount(own, w, n_classes)[own]
    Q = np.repeat((w / (counts + 2) / (n_classes - 1))[:, None], n_classes, axis=1)
    Q[np.arange(len(own)), own] = w * (counts + 1) / (counts + 2)
    return Q


def _fitted(G: np.ndarray, Q: np.ndarray, start: np.ndarray) -> Fit:
    """Slope and bias with the least −Σ Q·log p, by Newton's method."""
    w = Q.sum(axis=1)
    problem = _Slopes(G, Q, w, max(float(w.sum()), np.finfo(np.float64).tiny))
    x, value = start, problem.value(start)
    for _ in range(MOST_STEPS):
        gradient, H = problem.derivatives(x)
        step = np.linalg.lstsq(H, gradient, rcond=1e-12)[0]
        gain = float(gradient @ step)
        if gain <= TOLERANCE:
            break
        length = 1.0
        while length > 1e-6:  # the full step but for a few at the start
            there = problem.value(x - length * step)
            if there <= value - 1e-4 * length * gain:
                break
            length /= 2
        else:
            break  # rounding
        x, value = x - length * step, there
    if x[0] < 0:  # classes that are not where they are told to be: only their shares
        x = np.r_[0.0, np.log(np.maximum(Q.sum(axis=0), np.finfo(np.float64).tiny))]
        value = problem.value(x)
    return value, x


@dataclass(frozen=True, eq=False)
class _Slopes:
    """−Σ Q·log p over the weight of all rows, where log p is slope·G + bias."""

    G: np.ndarray  # (n, k)
    Q: np.ndarray  # (n, k)
    w: np.ndarray  # (n,)
    whole: float

    def value(self, x: np.ndarray) -> float:
        logs = log_softmax(x[0] * self.G + x[1:], axis=1)
        return -float(np.vdot(self.Q, logs)) / self.whole

    def derivatives(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradient and the Hessian matrix, of the slope first."""
        G, w = self.G, self.w
        P = np.exp(log_softmax(x[0] * G + x[1:], axis=1))
        wP, mean = w[:, None] * P, np.vecdot(P, G)
        left = wP - self.Q
        gradient = np.r_[np.vdot(left, G), left.sum(axis=0)]
        H = np.empty((len(x), len(x)))
        H[1:, 1:] = np.diag(wP.sum(axis=0)) - P.T @ wP
        H[0, 1:] = H[1:, 0] = np.einsum("nk,nk->k", wP, G - mean[:, None])
        H[0, 0] = np.vdot(wP, (G - mean[:, None]) ** 2)
        return gradient / self.whole, H / self.whole
