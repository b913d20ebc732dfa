"""Class probabilities from ridge decision values: a link fitted to held-out values.

Between log(1 + f), right for overlapping classes, and Platt's sigmoid, right for
separated ones. Held-out values are those of training rows, each left out by its
leverage, with its landmark if it is one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.special import log_softmax

from .. import _arrays as arrays
from .._arrays import Array, DeviceConstant
from .._precision import EPS64, min_cholesky_ridge
from ..engines import Engine
from ..engines.blas import blas_limit_for_size
from ..landmarks import Landmarks
from ..linalg.cross_kernel import CrossKernel
from ..linalg.features import LinearMap
from ..sources import Block, Source, Subset
from ..sources.output import ArraySink
from .posterior import (
    Posterior,
    own_landmarks_of_block,
    rows_that_are_landmarks,
    without_landmarks,
)
from .ridge import add_ridge

#: Rows that a link is fitted on, at most: for two numbers and one per class.
MAX_CALIBRATION_ROWS = 2**14
#: Grid of candidates; the rest of a link is a convex problem.
SHARPNESS_GRID = tuple(2.0**power for power in range(-1, 7))
#: Where the search begins.
INITIAL_SHARPNESS = 2.0
#: Newton's method ends when no more than this is to be gained, or after so many steps.
NEWTON_TOLERANCE, MAX_NEWTON_STEPS = 1e-13, 50
#: Below it float32 cannot separate classes any more.
MIN_SLOPE = 0.01
#: Values of held-out rows beyond this say no more: fits that pass through every target
#: leave rounding, divided by rounding.
MAX_DECISION_VALUE = 1e3

#: How fast values beyond ±1 still grow. Of 0.25, 0.5, 1 and no tail at all, on 156 sets
#: and ridges, it had the least log-loss (0.390, 0.392, 0.394, 0.402 on the mean), and
#: was on none of them worse than no tail by more than 0.0004.
TAIL = 0.25

#: A log-loss, and slopes that have it.
LossAndSlopes = tuple[float, np.ndarray]


@dataclass(frozen=True, eq=False)
class ProbabilityLink:
    """log p of each class, from one value per class, or one for two classes."""

    sharpness: float
    slopes: np.ndarray  # (classes,) all above 0
    tail: float = np.inf  # files of older versions have none

    def log_probabilities(self, F: np.ndarray) -> np.ndarray:
        """(n, classes), from values (n, 1) or (n, classes)."""
        D = log_odds_to_top(F, self.sharpness, self.tail)
        return log_softmax(self.slopes * D, axis=1)

    def probabilities(self, F: np.ndarray) -> np.ndarray:
        """Their exponentials."""
        return np.exp(self.log_probabilities(F))

    def losses(self, F: np.ndarray, class_index: np.ndarray) -> np.ndarray:
        """−log p of the class of each row, given by its index."""
        return -self.log_probabilities(F)[np.arange(len(F)), class_index]


def log_odds_to_top(F: np.ndarray, sharpness: float, tail: float) -> np.ndarray:
    """(n, classes): how far g of each is below the largest, as a number up to 0."""
    F = np.clip(F, -MAX_DECISION_VALUE, MAX_DECISION_VALUE)
    if np.isfinite(tail):
        excess = np.maximum(np.abs(F) - 1, 0)
        F = np.clip(F, -1, 1) + np.copysign(tail * np.log1p(excess / tail), F)
    F = np.hstack([-F, F]) if F.shape[1] == 1 else F
    u = sharpness * (1 + F)
    # Far below 0 it is u itself, and its exponential nothing.
    g = np.where(u < -30, u, np.log(np.logaddexp(0, np.maximum(u, -30))))
    return g - g.max(axis=1, keepdims=True)


def class_indices(Y: np.ndarray) -> np.ndarray:
    """The number of each row's class, from ±1; or from values, which class they say."""
    return (Y[:, 0] > 0).astype(int) if Y.shape[1] == 1 else Y.argmax(axis=1)


def fit_probability_link(
    F: np.ndarray, Y: np.ndarray, weights: np.ndarray
) -> ProbabilityLink:
    """The link with the least log-loss on held-out rows, with targets ±1.

    Classes have Platt's smoothed targets, as if there were two more rows of each, one
    of them of other classes: no slope is infinite.
    """
    n_classes = max(2, Y.shape[1])
    Q = smooth_targets(class_indices(Y), n_classes, weights)
    fits: dict[int, LossAndSlopes] = {}

    def fit_at(i: int, start: np.ndarray) -> LossAndSlopes:
        if i not in fits:
            D = log_odds_to_top(F, SHARPNESS_GRID[i], TAIL)
            fits[i] = _fit_slopes(D, Q, start)
        return fits[i]

    i = SHARPNESS_GRID.index(INITIAL_SHARPNESS)
    best = fit_at(i, np.ones(n_classes))
    for step in (1, -1):  # downhill, in the one direction or the other
        while 0 <= i + step < len(SHARPNESS_GRID):
            neighbour = fit_at(i + step, best[1])
            if neighbour[0] >= best[0]:
                break
            i, best = i + step, neighbour
    return ProbabilityLink(SHARPNESS_GRID[i], best[1], TAIL)


def smooth_targets(
    class_index: np.ndarray, n_classes: int, weights: np.ndarray
) -> np.ndarray:
    """(n, classes): the weight of each row, most of it with its class."""
    w = np.asarray(weights, dtype=np.float64)
    n_rows = np.count_nonzero(w)
    # A row of weight w counts as w rows; small weights do not make fewer rows.
    w = w * max(1.0, n_rows / w.sum()) if n_rows else w
    counts = np.bincount(class_index, w, n_classes)[class_index]
    Q = np.repeat((w / (counts + 2) / (n_classes - 1))[:, None], n_classes, axis=1)
    Q[np.arange(len(class_index)), class_index] = w * (counts + 1) / (counts + 2)
    return Q


def _fit_slopes(D: np.ndarray, Q: np.ndarray, start: np.ndarray) -> LossAndSlopes:
    """Slopes with the least −Σ Q·log p, by Newton's method, none below the least.

    log p is slope·D, normalised; the loss is per weight of all rows.
    """
    w = Q.sum(axis=1)
    total = max(float(w.sum()), np.finfo(np.float64).tiny)

    def loss(x: np.ndarray) -> float:
        return -float(np.vdot(Q, log_softmax(x * D, axis=1))) / total

    def gradient_and_hessian(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        P = np.exp(log_softmax(x * D, axis=1))
        gradient = np.einsum("nk,nk->k", w[:, None] * P - Q, D)
        PD = P * D
        H = np.diag(w @ (PD * D)) - PD.T @ (w[:, None] * PD)
        return gradient / total, H / total

    x, value = start, loss(start)
    for _ in range(MAX_NEWTON_STEPS):
        gradient, H = gradient_and_hessian(x)
        free = (x > MIN_SLOPE) | (gradient < 0)
        step = np.zeros_like(x)
        step[free] = np.linalg.lstsq(H[np.ix_(free, free)], gradient[free], 1e-12)[0]
        if gradient @ step <= NEWTON_TOLERANCE:
            break
        for halvings in range(30):
            candidate = np.maximum(x - step / 2**halvings, MIN_SLOPE)
            candidate_value = loss(candidate)
            if candidate_value <= value - 1e-4 * gradient @ (x - candidate):
                break
        else:
            break  # rounding
        x, value = candidate, candidate_value
    return value, x


def loo_divisor(leverage: Array) -> Array:
    """1 − Hᵢᵢ, at least rounding: rᵢ/(1 − Hᵢᵢ) is the residual of a row left out."""
    return arrays.clip_min(1 - leverage, 10 * EPS64)


def leave_one_out_predictions(
    landmarks: Landmarks,
    source: Source,
    rows: np.ndarray,
    mapping: LinearMap,
    posterior: Posterior,
    engine: Engine,
    class_weights: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predictions (m, t) for some rows, ascending, their targets and their weights.

    By one fit, and as exact as a fit without each.

    A row of weight w is w rows, of which one is left out; but the weight of its class
    (k,), which weights of rows were multiplied by, is left out with it. If the row is a
    landmark, its basis function is removed too, from one of the w: for the others, of
    which there are copies, there is a value more, at the end.
    """
    copies, numbers = rows_that_are_landmarks(landmarks, rows, posterior.root)
    shared = (
        landmarks.columns(wide=mapping.wide),
        DeviceConstant(mapping.dual),
        DeviceConstant(mapping.intercept),
        _leverage_projections(posterior),
        posterior.own,
        (copies, numbers),
        class_weights,
    )
    n_targets = mapping.dual.shape[1]
    sink = ArraySink((len(rows), 3 * n_targets + 1))
    subset, name = Subset(source, rows), "leave-one-out"
    engine.map(_leave_one_out_block, subset, sink, shared, name)
    F, kept, Y, removed = np.split(sink.array, np.arange(1, 4) * n_targets, axis=1)
    w = np.array(source.weights_of(rows), dtype=np.float64)
    rest = w[copies] - removed[copies, 0]
    copies, rest = copies[rest > 0], rest[rest > 0]
    w[copies] = removed[copies, 0]
    return (
        np.concatenate([F, kept[copies]]),
        np.concatenate([Y, Y[copies]]),
        np.concatenate([w, rest]),
    )


#: A projection for each different α, and the places of its targets.
LeverageProjections = list[tuple[DeviceConstant, DeviceConstant, np.ndarray]]


def _leverage_projections(posterior: Posterior) -> LeverageProjections:
    """M with ‖k_S·M − offset‖² = (z − z̄)ᵀ(G + αI)⁻¹(z − z̄)."""
    gram, projections = posterior.gram, []
    with blas_limit_for_size(len(gram)):
        for alpha in np.unique(posterior.alphas):
            M = posterior.root @ _inverse_sqrt(gram, alpha)
            constants = DeviceConstant(M), DeviceConstant(posterior.center @ M)
            targets = np.flatnonzero(posterior.alphas == alpha)
            projections.append((*constants, targets))
    return projections


def _inverse_sqrt(gram: np.ndarray, alpha: float) -> np.ndarray:
    """B with BBᵀ = (G + αI)⁻¹."""
    # An α below rounding, such as that of least squares, is raised to it.
    ridge = max(alpha, min_cholesky_ridge(gram))
    try:
        L = scipy.linalg.cholesky(add_ridge(gram, ridge), lower=True)
        return scipy.linalg.solve_triangular(L, np.eye(len(L)), lower=True).T
    except np.linalg.LinAlgError:
        # Rows that are alike leave rounding about their mean, less than 0 too.
        values, vectors = np.linalg.eigh(gram)
        cut = ridge + 2 * np.abs(values.min())
        return vectors * np.where(values > cut, 1 / np.sqrt(np.maximum(values, cut)), 0)


def _leave_one_out_block(
    block: Block,
    columns: CrossKernel,
    dual: DeviceConstant,
    intercept: DeviceConstant,
    projections: LeverageProjections,
    intercept_leverage: float,
    landmark_rows: tuple[np.ndarray, np.ndarray],
    class_weights: np.ndarray | None,
) -> np.ndarray:
    assert block.targets is not None
    K = columns.float64(block.X)
    Y = np.asarray(block.targets)
    F = arrays.to_host(K @ dual.to_device_of(K) + intercept.to_device_of(K))
    of_class = 1.0 if class_weights is None else class_weights[class_indices(Y)]
    removed = np.minimum(block.weights, of_class)
    values, kept = np.empty_like(F), np.empty_like(F)
    rows, numbers = own_landmarks_of_block(block, landmark_rows)
    for M, offset, target_indices in projections:
        P = K @ M.to_device_of(K) - offset.to_device_of(K)
        squares = arrays.to_host(arrays.squared_norms(P))
        fitted, y = F[:, target_indices], Y[:, target_indices]
        leverage = removed * (squares + intercept_leverage)
        kept[:, target_indices] = y - (y - fitted) / loo_divisor(leverage)[:, None]
        values[:, target_indices] = kept[:, target_indices]
        if len(rows):
            projected = arrays.to_host(arrays.take_rows(P, rows))
            share, rest = without_landmarks(projected, M.values[numbers])
            fitted = fitted[rows]
            fitted -= share[:, None] * dual.values[np.ix_(numbers, target_indices)]
            leverage = removed[rows] * (rest + intercept_leverage)
            left_out = y[rows] - (y[rows] - fitted) / loo_divisor(leverage)[:, None]
            values[np.ix_(rows, target_indices)] = left_out
    return np.hstack([values, kept, Y, removed[:, None]])
