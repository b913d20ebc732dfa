"""Ridge regression on Nyström features by preconditioned conjugate gradients, for many
landmarks.

One pass of n·s kernel evaluations per iteration; the preconditioner is the Gram
matrix of rows sampled by their ridge leverage scores, so the condition number is
bounded.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg

from .. import _arrays as arrays
from .._arrays import Array, DeviceConstant
from .._precision import min_cholesky_ridge
from .._random import Purpose, sorted_row_sample, uniforms
from ..engines import Engine
from ..engines.blas import blas_limit_for_size
from ..landmarks import Landmarks
from ..linalg.conjugate_gradients import conjugate_gradients
from ..linalg.cross_kernel import CrossKernel
from ..linalg.errors import estimate_trace_error
from ..linalg.features import FeatureMap
from ..linalg.moments import moments
from ..samplers.weighted_sampling import inclusion_probabilities_with_sum
from ..sources import Block, Source, Subset
from ..sources.base import are_unit_weights, multiply_weights
from ..sources.output import ArraySink
from .linear_map import LinearMap
from .posterior import squared_projections_block
from .ridge import RidgeFactors, RidgeFit, RidgeTask, add_ridge, precision_notes

#: Rows behind the first, uniform, estimate of the Gram matrix, and behind the one that
#: preconditions, in multiples of s.
UNIFORM_ROWS_PER_LANDMARK, LEVERAGE_ROWS_PER_LANDMARK = 4, 8
#: Values of K computed and used at a time: with thousands of landmarks those of a
#: tile do not stay in the cache between the two products.
MAX_CACHED_KERNEL_VALUES = 2**19
#: Columns of the random projection that leverage scores are read off.
N_PROJECTIONS = 16
#: Residual, in the preconditioner's norm, at which a solution counts as found.
RTOL = 1e-7
MAX_ITERATIONS = 100


def fit_cg(landmarks: Landmarks, mapping: FeatureMap, task: RidgeTask) -> RidgeFit:
    """A pass over the rows per step; without a Gram matrix, and so without deviations.

    Every target has its own α > 0.
    """
    source, alphas, engine = task.source, task.alphas, task.engine
    with blas_limit_for_size(len(landmarks)):
        columns = mapping.columns
        shared = (columns, mapping.target_shift)
        sums = engine.reduce(_right_hand_side_block, source, shared, "right-hand side")
        K_sum, K_cross, y_sum, total = arrays.tree_to_host(sums)
        n_targets = K_cross.shape[1]
        # The shift is only near the mean; here it is the mean itself.
        mean = K_sum / total if task.fit_intercept else np.zeros_like(K_sum)
        y_mean = y_sum / total if task.fit_intercept else np.zeros(n_targets)
        mapping = replace(mapping, shift=mean)
        b = mapping.root.T @ (K_cross - np.outer(mean, y_sum))

        def multiply_gram(V: np.ndarray) -> np.ndarray:
            U = mapping.root @ V
            operands = (columns, DeviceConstant(U), DeviceConstant(mean @ U))
            name = "conjugate gradients"
            sums = engine.reduce(_gram_product_block, source, operands, name)
            KtKU, fitted = arrays.tree_to_host(sums)
            return mapping.root.T @ (KtKU - np.outer(mean, fitted))

        rows, weights = sample_rows_by_leverage(
            mapping, source, float(alphas.min()), engine, task.seed
        )
        G = _weighted_gram(mapping, source, rows, weights, engine)
        preconditioner = RidgeFactors(G, alphas, min_cholesky_ridge(G))
        solution = conjugate_gradients(
            lambda V: multiply_gram(V) + alphas * V,
            b,
            lambda V: preconditioner.solve(V, alphas),
            rtol=RTOL,
            max_iterations=MAX_ITERATIONS,
        )
        dual = mapping.root @ solution.x
        intercept = np.zeros(n_targets)
        if task.fit_intercept:
            intercept = mapping.target_shift + y_mean - mean @ dual
        linear_map = LinearMap.with_sufficient_precision(
            landmarks, source, dual, intercept
        )
        error = estimate_trace_error(landmarks, source, engine)
    message = (
        f"Conjugate gradients did not converge in {solution.n_iterations} steps; "
        "use solver='direct'."
    )
    return RidgeFit(
        map=linear_map,
        solver="cg",
        error=error,
        risk_bound=task.risk_bound(landmarks, error),
        posterior=None,
        n_iterations=solution.n_iterations,
        not_converged="" if solution.converged else message,
        notes=precision_notes(mapping),
    )


def sample_rows_by_leverage(
    mapping: FeatureMap, source: Source, alpha: float, engine: Engine, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows kept by coins in proportion to w·zᵀ(G + αI)⁻¹z, and weights 1/p.

    The scores are estimated from a uniform sample's Gram matrix, through a random
    projection: s products per row instead of s².
    """
    n, s = source.n_rows, len(mapping.shift)
    n_sampled = LEVERAGE_ROWS_PER_LANDMARK * s
    if n <= n_sampled + UNIFORM_ROWS_PER_LANDMARK * s:
        return np.arange(n), np.ones(n)
    uniform = sorted_row_sample(n, UNIFORM_ROWS_PER_LANDMARK * s, seed)
    weights = np.full(len(uniform), n / len(uniform))
    G = _weighted_gram(mapping, source, uniform, weights, engine)
    ridged = add_ridge(G, max(alpha, min_cholesky_ridge(G)))
    L = scipy.linalg.cholesky(ridged, lower=True, overwrite_a=True)
    shape = len(G), N_PROJECTIONS
    signs = np.random.default_rng(seed).integers(0, 2, shape) * 2.0 - 1
    projected = scipy.linalg.solve_triangular(L.T, signs)
    M = mapping.root @ projected / np.sqrt(N_PROJECTIONS)
    sink = ArraySink((n,))
    shared = (mapping.columns, DeviceConstant(M), DeviceConstant(mapping.shift @ M))
    engine.map(squared_projections_block, source, sink, shared, "leverage scores")
    w = source.weights
    # No score is above 1, though rows in directions that the first sample has not seen
    # seem so.
    scores = np.minimum(1.0, sink.array * w)
    # A tenth is drawn uniformly, which bounds every weight.
    uniform_weights = w / w.sum()
    total = float(scores.sum())
    weights = uniform_weights
    if total > 0:
        weights = 0.9 * scores / total + 0.1 * uniform_weights
    p = inclusion_probabilities_with_sum(weights, n_sampled)
    rows = np.flatnonzero(uniforms(seed, Purpose.PRECONDITION, 0, n) < p)
    return rows, 1 / p[rows]


def _weighted_gram(
    mapping: FeatureMap,
    source: Source,
    rows: np.ndarray,
    weights: np.ndarray,
    engine: Engine,
) -> np.ndarray:
    subset = Subset(source, rows)
    weighted_subset = subset.replace(weights=multiply_weights(subset.weights, weights))
    return moments(mapping, weighted_subset, engine, "preconditioner").gram


def _right_hand_side_block(
    block: Block, columns: CrossKernel, target_shift: np.ndarray
) -> tuple:
    assert block.targets is not None
    K, w = columns.float64(block.X), np.ascontiguousarray(block.weights)
    wY = w[:, None] * (block.targets - target_shift)
    products = arrays.from_host(w, K) @ K, K.T @ arrays.from_host(wY, K)
    return *products, wY.sum(axis=0), float(w.sum())


def _gram_product_block(
    block: Block, columns: CrossKernel, U: DeviceConstant, offset: DeviceConstant
) -> tuple[Array, Array]:
    """KᵀW(KU − offset) and the column sums of W(KU − offset)."""
    n = arrays.count_rows(block.X)
    cached = max(1, MAX_CACHED_KERNEL_VALUES // len(U))
    step = cached if arrays.is_on_host(block.X) else n
    product: Array = 0.0
    total: Array = 0.0
    for start in range(0, n, step):
        stop = min(start + step, n)
        K = columns.float64(arrays.slice_rows(block.X, start, stop))
        fitted = K @ U.to_device_of(K)
        fitted -= offset.to_device_of(K)
        if not are_unit_weights(block.weights):
            fitted *= arrays.from_host(block.weights[start:stop], K)[:, None]
        product = product + K.T @ fitted
        total = total + arrays.namespace(K).sum(fitted, axis=0)
    return product, total
