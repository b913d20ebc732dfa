"""The loss of classes and its slope, summed over rows.

Decisions F = ZW + b; two classes have one column, with targets ±1, more have one each.
The objective is ½‖W‖² + C·Σ w·loss, as scikit-learn's. Z itself is never made: of K_S
and the root the small products are taken first, n·s·t multiply-adds in place of n·s².
Their rounding is that of the root, not of its square as in a Gram matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax

from ... import _arrays as arrays
from ...columns import Columns
from ...engines import Engine
from ...features import FeatureMap
from ...operands import Operand
from ...refusals import check_finite
from ...sources import Block, Source


@dataclass(frozen=True, eq=False)
class Slope:
    """The objective at some coefficients, and its gradient."""

    value: float
    gradient: np.ndarray  # (r + 1, t): of W, and of b below


def slope_at(
    coef: np.ndarray,
    mapping: FeatureMap,
    source: Source,
    C: float,
    fit_intercept: bool,
    engine: Engine,
) -> Slope:
    """In one pass: n·s kernel evaluations and 2·n·s·t multiply-adds."""
    loss, slope, total = _sums_at(coef, mapping, source, engine)
    gradient = C * np.vstack([mapping.root.T @ slope, total])
    gradient[:-1] += coef[:-1]
    if not fit_intercept:
        gradient[-1] = 0.0
    return Slope(C * loss + 0.5 * float(np.vdot(coef[:-1], coef[:-1])), gradient)


def mean_loss(
    coef: np.ndarray, mapping: FeatureMap, source: Source, engine: Engine
) -> float:
    """−log p of a row's own class, on the mean."""
    return _sums_at(coef, mapping, source, engine)[0] / source.total_weight


def loss_of_none(source: Source) -> float:
    """Σ w·loss where all coefficients are 0, and all classes alike."""
    return source.total_weight * float(np.log(max(2, source.targets.shape[1])))


def _sums_at(
    coef: np.ndarray, mapping: FeatureMap, source: Source, engine: Engine
) -> tuple[float, np.ndarray, np.ndarray]:
    dual, b = mapping.root @ coef[:-1], coef[-1]
    shared = (mapping.columns, Operand(dual), Operand(b))
    loss, slope, total = arrays.fetched(
        engine.reduce(_slopes, source, shared, "logistic loss")
    )
    if not np.isfinite(loss):
        check_finite(np.array([loss]))
    return float(loss), slope, total


def _slopes(block: Block, columns: Columns, dual: Operand, b: Operand) -> tuple:
    K = columns.float64(block.X)
    F = arrays.to_host(K @ dual.beside(K) + b.beside(K))  # a number per row and class
    losses, R = losses_and_residuals(F, block.targets)
    w = np.ascontiguousarray(block.weights)
    R *= w[:, None]
    return float(w @ losses), K.T @ arrays.from_host(R, K), R.sum(axis=0)


def losses_and_residuals(F: np.ndarray, Y: Any) -> tuple[np.ndarray, np.ndarray]:
    """−log p of each row's class, and its derivative by the row's decisions."""
    if Y.shape[1] == 1:
        margin = Y * F
        return -log_expit(margin[:, 0]), -Y * expit(-margin)
    own = Y > 0
    logs = log_softmax(F, axis=1)
    return -logs[own], np.exp(logs) - own


def probabilities(F: np.ndarray) -> np.ndarray:
    """(n, classes), from decisions (n, 1) or (n, classes)."""
    if F.shape[1] == 1:
        return np.hstack([expit(-F), expit(F)])
    return softmax(F, axis=1)


def log_probabilities(F: np.ndarray) -> np.ndarray:
    """Their logarithms, also where they vanish."""
    if F.shape[1] == 1:
        return np.hstack([log_expit(-F), log_expit(F)])
    return log_softmax(F, axis=1)
