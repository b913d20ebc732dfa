"""The posterior of ridge regression on Z, and deviations of its predictions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ... import _arrays as arrays
from ... import precision
from ...columns import Columns
from ...engines import Engine
from ...engines.blas import blas_threads_for
from ...features import FeatureMap
from ...landmarks import Landmarks
from ...operands import Operand
from ...residuals import prepare, residual, residuals
from ...sinks import ArraySink, Output
from ...sources import Block, Source
from ...tried import tried_rows
from ..linear_map import LinearMap, mapped
from .problem import Centered


@dataclass(frozen=True, eq=False)
class Posterior:
    """What predictive deviations need: the ridge problem on Z, and σ̂² per target.

    The deviation at x is that of the Gaussian process with covariance K̃ and noise α,
    scaled: σ̂²·(k(x,x) − ‖z‖² + α·(z − z̄)ᵀ(G + αI)⁻¹(z − z̄) [+ α/Σw]), with z̄ and the
    last term where there is an intercept (the DTC form).
    """

    root: np.ndarray  # (s, r)
    gram: np.ndarray  # (r, r)
    center: np.ndarray  # (s,) z̄ as kernel values with the landmarks, or 0
    own: float  # 1/Σw where there is an intercept, else 0
    alphas: np.ndarray  # (t,)
    scales: np.ndarray  # (t,) σ̂² = yᵀ(K̃ + αI)⁻¹y/n

    @cached_property
    def _eigh(self) -> tuple[np.ndarray, np.ndarray]:
        with blas_threads_for(len(self.gram)):
            values, vectors = np.linalg.eigh(self.gram)
        return np.maximum(values, 0.0), vectors

    def shrunk_root(self, alpha: float) -> np.ndarray:
        """R with ‖k_S·R‖² = zᵀ(G + αI)⁻¹z."""
        values, vectors = self._eigh
        return self.root @ (vectors / np.sqrt(values + alpha))


def posterior(
    mapping: FeatureMap, problem: Centered, alphas: np.ndarray, coef: np.ndarray
) -> Posterior:
    """The posterior of a problem that has been solved from its Gram matrix."""
    center, own = np.zeros(len(mapping.root)), 0.0
    if problem.fit_intercept:
        # z̄ is rootᵀ of the mean of kernel values; that mean is not kept, but any
        # vector with the same rootᵀ does.
        mean = mapping.center + problem.feature_mean
        center, own = mapping.factor.values_with_root(mean), 1 / problem.total_weight
    scales = np.full(len(alphas), np.nan)
    if np.all(alphas > 0):
        scales = problem.quadratic(alphas, coef) / problem.n_rows
    return Posterior(mapping.root, problem.gram, center, own, alphas, scales)


def deviations(
    landmarks: Landmarks,
    source: Source,
    posterior: Posterior,
    engine: Engine,
    *,
    wide: bool,
    noise: bool,
    white: float = 0.0,
) -> np.ndarray:
    """(n, t): the predictive standard deviation of every row and target.

    With all of the noise α, or with the part of it that is `white`.
    """
    root = posterior.root
    ready = prepare(landmarks.columns(), source, root)
    left = residuals(ready, source, engine=engine, name="residuals")
    columns = _columns(landmarks, source, posterior, wide)
    out = np.empty((source.n_rows, len(posterior.alphas)))
    for alpha in np.unique(posterior.alphas):
        R = posterior.shrunk_root(alpha)
        sink = ArraySink((source.n_rows,))
        shared = (columns, Operand(R), Operand(posterior.center @ R))
        engine.map(squared_projections, source, sink, shared, "deviations")
        share = _noise_share(alpha, noise, white)
        variance = left + alpha * (sink.array + posterior.own + share)
        those = posterior.alphas == alpha
        out[:, those] = np.sqrt(variance[:, None] * posterior.scales[those])
    return out


def predictions_and_deviations(
    landmarks: Landmarks,
    source: Source,
    mapping: LinearMap,
    posterior: Posterior,
    engine: Engine,
    *,
    noise: bool,
    white: float = 0.0,
    output: Output,
) -> Any:
    """(n, 2·t): predictions, and beside them their deviations, in one pass.

    The same numbers as apart, with no vector of all rows.
    """
    first, kernel = source.given.rows(0, 1), landmarks.kernel
    like, dtype = kernel.like(first), kernel.dtype(first)
    sink = output.sink(source, 2 * len(posterior.alphas), dtype, like)
    ready = prepare(landmarks.columns(), source, posterior.root)
    left = (ready.columns, ready.operand, ready.rounding)
    projections = []
    for alpha in np.unique(posterior.alphas):
        R = posterior.shrunk_root(alpha)
        M, offset = Operand(R), Operand(posterior.center @ R)
        own = posterior.own + _noise_share(alpha, noise, white)
        projections.append((float(alpha), own, M, offset))
    spread = Spread(
        _columns(landmarks, source, posterior, mapping.wide),
        projections,
        posterior.alphas,
        posterior.scales,
    )
    shared = (mapping.shared(landmarks, dtype), left, spread, dtype)
    engine.map(_both, source, sink, shared, "predictions")
    return output.result(sink)


@dataclass(frozen=True, eq=False)
class Spread:
    """What variances need besides the part of k(x, x) that is left."""

    columns: Columns
    projections: list[tuple[float, float, Operand, Operand]]  # one for each alpha
    alphas: np.ndarray
    scales: np.ndarray

    def deviations(self, block: Block, left: np.ndarray) -> np.ndarray:
        """(rows, t)."""
        out = np.empty((len(block), len(self.alphas)))
        for alpha, own, M, offset in self.projections:
            projected = squared_projections(block, self.columns, M, offset)
            variance = left + alpha * (projected + own)
            those = self.alphas == alpha
            out[:, those] = np.sqrt(variance[:, None] * self.scales[those])
        return out


def _noise_share(alpha: float, noise: bool, white: float) -> float:
    """The share of alpha that a deviation includes as noise of a new target."""
    return 1.0 if noise else white / alpha


def _both(
    block: Block, of_mean: tuple, of_left: tuple, spread: Spread, dtype: Any
) -> Any:
    mean = mapped(block, *of_mean)
    found = spread.deviations(block, residual(block, *of_left))
    return arrays.side_by_side([mean, arrays.from_host(found, mean, mean.dtype)])


def _columns(
    landmarks: Landmarks, source: Source, posterior: Posterior, wide: bool
) -> Columns:
    """Kernel values as precise as the projections need.

    float32 may do for predictions and not here: 1/√(σ² + α) times the root of a float64
    factor made deviations 220 times too large out of float32 rounding.
    """
    columns = landmarks.columns(wide=wide)
    if not columns.narrow:
        return columns
    tried = tried_rows(source)
    block = tried.block(0, tried.n_rows)
    found = []
    with np.errstate(over="ignore", invalid="ignore"):
        for each in (columns, columns.widened()):
            by_alpha = []
            for alpha in np.unique(posterior.alphas):
                R = posterior.shrunk_root(alpha)
                shared = (Operand(R), Operand(posterior.center @ R))
                by_alpha.append(squared_projections(block, each, *shared))
            found.append(np.column_stack(by_alpha) + posterior.own)
    # Deviations are the roots of these: half of the error.
    wrong = precision.results_need_float64(*found)
    return columns.widened() if wrong else columns


def squared_projections(
    block: Block, columns: Columns, M: Operand, offset: Operand
) -> np.ndarray:
    """‖k_S·M − offset‖² of each row."""
    K = columns.float64(block.X)
    projected = K @ M.beside(K) - offset.beside(K)
    return arrays.to_host(arrays.squared_norms(projected))
