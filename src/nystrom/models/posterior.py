"""Predictive variance of ridge regression on Nyström features (the DTC Gaussian
process).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .. import _arrays as arrays
from .. import _precision as precision
from .._arrays import DeviceConstant
from ..engines import Engine
from ..engines.blas import blas_limit_for_size
from ..landmarks import Landmarks
from ..linalg.cross_kernel import CrossKernel, probe_rows
from ..linalg.features import FeatureMap
from ..linalg.residuals import block_residuals, prepare_residuals, residuals
from ..sources import Block, Source
from ..sources.output import ArraySink, Output
from .linear_map import LinearMap, apply_to_block
from .ridge import NormalEquations


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
        with blas_limit_for_size(len(self.gram)):
            values, vectors = np.linalg.eigh(self.gram)
        return np.maximum(values, 0.0), vectors

    def regularized_root(self, alpha: float) -> np.ndarray:
        """R with ‖k_S·R‖² = zᵀ(G + αI)⁻¹z."""
        values, vectors = self._eigh
        return self.root @ (vectors / np.sqrt(values + alpha))

    def std(
        self, landmarks: Landmarks, source: Source, engine: Engine, **options: Any
    ) -> np.ndarray:
        """(n, t): as `predictive_std`."""
        return predictive_std(landmarks, source, self, engine, **options)

    def predict_with_std(
        self,
        landmarks: Landmarks,
        source: Source,
        mapping: LinearMap,
        engine: Engine,
        **options: Any,
    ) -> Any:
        """(n, 2·t): as the function of that name."""
        return predict_with_std(landmarks, source, mapping, self, engine, **options)


def ridge_posterior(
    mapping: FeatureMap, problem: NormalEquations, alphas: np.ndarray, coef: np.ndarray
) -> Posterior:
    """The posterior of a problem that has been solved from its Gram matrix."""
    center, intercept_leverage = np.zeros(len(mapping.root)), 0.0
    if problem.fit_intercept:
        # z̄ is rootᵀ of the mean of kernel values; that mean is not kept, but any
        # vector with the same rootᵀ does.
        mean = mapping.center + problem.feature_mean
        center, intercept_leverage = (
            mapping.factor.kernel_values_for(mean),
            1 / problem.total_weight,
        )
    scales = np.full(len(alphas), np.nan)
    if np.all(alphas > 0):
        scales = problem.inverse_quadratic_form(alphas, coef) / problem.n_rows
    return Posterior(
        mapping.root, problem.gram, center, intercept_leverage, alphas, scales
    )


def predictive_std(
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
    prepared = prepare_residuals(landmarks.columns(), source, root)
    residual_diagonal = residuals(prepared, source, engine=engine, name="residuals")
    columns = _columns(landmarks, source, posterior, wide)
    out = np.empty((source.n_rows, len(posterior.alphas)))
    for alpha in np.unique(posterior.alphas):
        R = posterior.regularized_root(alpha)
        sink = ArraySink((source.n_rows,))
        shared = (columns, DeviceConstant(R), DeviceConstant(posterior.center @ R))
        engine.map(squared_projections_block, source, sink, shared, "deviations")
        share = _noise_share(alpha, noise, white)
        variance = residual_diagonal + alpha * (sink.array + posterior.own + share)
        mask = posterior.alphas == alpha
        out[:, mask] = np.sqrt(variance[:, None] * posterior.scales[mask])
    return out


def predict_with_std(
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
    first, kernel = source.original.rows(0, 1), landmarks.kernel
    like, dtype = kernel.output_like(first), kernel.dtype(first)
    sink = output.sink(source, 2 * len(posterior.alphas), dtype, like)
    prepared = prepare_residuals(landmarks.columns(), source, posterior.root)
    residual_arguments = (prepared.columns, prepared.operand, prepared.rounding)
    projections = []
    for alpha in np.unique(posterior.alphas):
        R = posterior.regularized_root(alpha)
        M, offset = DeviceConstant(R), DeviceConstant(posterior.center @ R)
        own = posterior.own + _noise_share(alpha, noise, white)
        projections.append((float(alpha), own, M, offset))
    variance = PredictiveVariance(
        _columns(landmarks, source, posterior, mapping.wide),
        projections,
        posterior.alphas,
        posterior.scales,
    )
    shared = (
        mapping.block_arguments(landmarks, dtype),
        residual_arguments,
        variance,
        dtype,
    )
    engine.map(_predict_with_std_block, source, sink, shared, "predictions")
    return output.result(sink)


@dataclass(frozen=True, eq=False)
class PredictiveVariance:
    """What variances need besides the part of k(x, x) that is left."""

    columns: CrossKernel
    projections: list[
        tuple[float, float, DeviceConstant, DeviceConstant]
    ]  # one for each alpha
    alphas: np.ndarray
    scales: np.ndarray

    def deviations(self, block: Block, residual_diagonal: np.ndarray) -> np.ndarray:
        """(rows, t)."""
        out = np.empty((len(block), len(self.alphas)))
        for alpha, own, M, offset in self.projections:
            projected = squared_projections_block(block, self.columns, M, offset)
            variance = residual_diagonal + alpha * (projected + own)
            mask = self.alphas == alpha
            out[:, mask] = np.sqrt(variance[:, None] * self.scales[mask])
        return out


def _noise_share(alpha: float, noise: bool, white: float) -> float:
    """The share of alpha that a deviation includes as noise of a new target."""
    return 1.0 if noise else white / alpha


def _predict_with_std_block(
    block: Block,
    map_arguments: tuple,
    residual_arguments: tuple,
    predictive_variance: PredictiveVariance,
    dtype: Any,
) -> Any:
    mean = apply_to_block(block, *map_arguments)
    std = predictive_variance.deviations(
        block, block_residuals(block, *residual_arguments)
    )
    return arrays.stack_columns([mean, arrays.from_host(std, mean, mean.dtype)])


def _columns(
    landmarks: Landmarks, source: Source, posterior: Posterior, wide: bool
) -> CrossKernel:
    """Kernel values as precise as the projections need.

    float32 may do for predictions and not here: 1/√(σ² + α) times the root of a float64
    factor made deviations 220 times too large out of float32 rounding.
    """
    columns = landmarks.columns(wide=wide)
    if not columns.narrow:
        return columns
    tried = probe_rows(source)
    block = tried.block(0, tried.n_rows)
    found = []
    with np.errstate(over="ignore", invalid="ignore"):
        for each in (columns, columns.widened()):
            by_alpha = []
            for alpha in np.unique(posterior.alphas):
                R = posterior.regularized_root(alpha)
                shared = (DeviceConstant(R), DeviceConstant(posterior.center @ R))
                by_alpha.append(squared_projections_block(block, each, *shared))
            found.append(np.column_stack(by_alpha) + posterior.own)
    # Deviations are the roots of these: half of the error.
    wrong = precision.results_need_float64(*found)
    return columns.widened() if wrong else columns


def squared_projections_block(
    block: Block, columns: CrossKernel, M: DeviceConstant, offset: DeviceConstant
) -> np.ndarray:
    """‖k_S·M − offset‖² of each row."""
    K = columns.float64(block.X)
    projected = K @ M.to_device_of(K) - offset.to_device_of(K)
    return arrays.to_host(arrays.squared_norms(projected))
