"""The loss of classes and its slope, summed over rows.

Decisions F = ZW + b; two classes have one column, with targets ±1, more have one each.
The objective is ½‖W‖² + C·Σ w·loss, as scikit-learn's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax

from ... import _arrays as arrays
from ...engines import Engine
from ...features import FeatureMap, Tiles
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
    shared = (mapping.tiles(), *operands(mapping, coef))
    found = engine.reduce(_slopes, source, shared, "logistic loss")
    loss, slope, total = arrays.fetched(found)
    if not np.isfinite(loss):
        check_finite(np.array([loss]))
    gradient = C * np.vstack([as_features(mapping, slope), total])
    gradient[:-1] += coef[:-1]
    if not fit_intercept:
        gradient[-1] = 0.0
    value = C * float(loss) + 0.5 * float(np.vdot(coef[:-1], coef[:-1]))
    return Slope(value, gradient)


def loss_at(
    coef: np.ndarray, mapping: FeatureMap, source: Source, engine: Engine
) -> float:
    """Σ w·loss alone."""
    shared = (mapping.tiles(), *operands(mapping, coef))
    loss, _, _ = engine.reduce(_slopes, source, shared, "logistic loss")
    return float(loss)


def operands(mapping: FeatureMap, coef: np.ndarray) -> tuple[Operand, Operand]:
    """What tiles are multiplied with, and what is added."""
    W, b = coef[:-1], coef[-1]
    return Operand(W if mapping.whiten else mapping.root @ W), Operand(b)


def as_features(mapping: FeatureMap, sums: np.ndarray) -> np.ndarray:
    """Sums over tiles, of Z or of K_S, as those of Z."""
    return sums if mapping.whiten else mapping.root.T @ sums


def _slopes(block: Block, tiles: Tiles, V: Operand, b: Operand) -> tuple:
    Z = tiles(block.X)
    F = arrays.to_host(Z @ V.beside(Z) + b.beside(Z))  # one number per row and class
    losses, R = losses_and_residuals(F, block.targets)
    w = np.ascontiguousarray(block.weights)
    R *= w[:, None]
    return float(w @ losses), Z.T @ arrays.from_host(R, Z), R.sum(axis=0)


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
