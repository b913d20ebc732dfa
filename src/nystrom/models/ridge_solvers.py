"""Kernel ridge regression by one of the solvers.

`fit_ridge` sums the Gram matrix of the features ("direct"), makes a pass over the rows
per step ("cg"), solves with K itself ("full"), or counts the operations of the first
two ("auto"). `fit_exact` is scikit-learn's own solution where all rows are landmarks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.kernel_ridge import KernelRidge as ExactKernelRidge

from .. import _arrays as arrays
from .._arrays import Array, DeviceConstant
from .._precision import least_resolved_alpha, min_cholesky_ridge
from .._random import Purpose, Stream, sorted_row_sample
from .._validation import check_finite
from ..engines import Engine
from ..engines.blas import blas_limit_for_size
from ..kernels import Kernel, Precomputed
from ..landmarks import Landmarks
from ..linalg.conjugate_gradients import conjugate_gradients
from ..linalg.cross_kernel import CrossKernel
from ..linalg.errors import estimate_trace_error
from ..linalg.factor import factorize
from ..linalg.features import FeatureMap, LinearMap
from ..linalg.moments import Moments, moments, trace_error_after_pass, trace_error_bound
from ..samplers.weighted_sampling import inclusion_probabilities_with_sum
from ..sources import Block, Source, Subset
from ..sources.base import are_unit_weights, multiply_weights
from ..sources.output import ArraySink
from .posterior import (
    MIN_CALIBRATION_ROWS,
    Posterior,
    ridge_posterior,
    squared_projections_block,
)
from .ridge import (
    EXACT_RISK,
    NormalEquations,
    RidgeFactors,
    RidgeFit,
    RidgeTask,
    add_ridge,
    dual_coefficients,
    precision_notes,
)
from .ridge_full import fit_full

#: What `solver="auto"` weighs, in float64 multiply-adds as a matrix product does them:
#: a kernel value beyond its product over features, and conjugate-gradient steps.
KERNEL_VALUE_COST, EXPECTED_CG_STEPS = 120, 32
#: The Gram matrix of whitened tiles in units of the other: both are half a product, and
#: so is that with a triangular root.
WHITENED_GRAM_COST = 2


def fit_ridge(landmarks: Landmarks, task: RidgeTask, solver: str) -> RidgeFit:
    """By "auto", "direct", "cg" or "full"."""
    if solver == "full":
        return fit_full(landmarks, task)
    source, alpha = task.source, float(task.alphas.min())
    with blas_limit_for_size(len(landmarks)):
        mapping = FeatureMap.for_ridge(
            landmarks, source, alpha, center=task.fit_intercept, engine=task.engine
        )
        if solver == "auto":
            solver = choose_solver(mapping, source)
        if solver == "cg":
            return fit_cg(landmarks, mapping, task)
        sums = moments(mapping, source, task.engine)
        return fit_from_moments(landmarks, mapping, sums, task)


def fit_from_moments(
    landmarks: Landmarks, mapping: FeatureMap, sums: Moments, task: RidgeTask
) -> RidgeFit:
    """From the sums over all rows to the fit."""
    alphas, source = task.alphas, task.source
    with blas_limit_for_size(len(landmarks)):
        problem = NormalEquations.from_moments(sums, task.fit_intercept)
        coef = problem.solve(alphas)
        dual, intercept = dual_coefficients(mapping, problem, coef)
        linear_map = LinearMap.with_sufficient_precision(
            landmarks, source, dual, intercept
        )
        error = trace_error_after_pass(landmarks, mapping, sums, source, task.engine)
        residual_trace = trace_error_bound(mapping, sums)
        posterior = ridge_posterior(mapping, problem, alphas, coef)
        if task.calibrate:
            posterior = posterior.calibrate(
                landmarks,
                source,
                linear_map,
                task.engine,
                task.seed,
                weights_count_rows=True,
            )
        return RidgeFit(
            map=linear_map,
            solver="direct",
            error=error,
            risk_bound=task.risk_bound(landmarks, residual_trace),
            posterior=posterior,
            notes=precision_notes(mapping),
            least_alpha=problem.least_alpha(float(alphas.min())),
        )


def choose_solver(mapping: FeatureMap, source: Source) -> str:
    """The solver that a count of multiply-adds favours."""
    n, s = source.n_rows, len(mapping.shift)
    if mapping.alpha == 0 or mapping.columns.kernel.traits.costly:
        return "direct"  # no condition number to rely on; evaluations are costly
    gram_cost = s**2 * (WHITENED_GRAM_COST if mapping.whiten else 1)
    direct_cost = n * gram_cost
    # A float32 product is twice as fast.
    narrow = mapping.columns.narrow
    product_cost = (source.n_features or 1) * (0.5 if narrow else 1) * 2
    evaluation_cost = KERNEL_VALUE_COST * (1 if narrow else 2) + product_cost
    preconditioner_rows = (UNIFORM_ROWS_PER_LANDMARK + LEVERAGE_ROWS_PER_LANDMARK) * s
    cg_cost = (
        EXPECTED_CG_STEPS * n * s * evaluation_cost + preconditioner_rows * gram_cost
    )
    return "cg" if cg_cost < direct_cost else "direct"


#: Rows behind the first, uniform, estimate of the Gram matrix, and behind the one that
#: preconditions, in multiples of s.
UNIFORM_ROWS_PER_LANDMARK, LEVERAGE_ROWS_PER_LANDMARK = 4, 8
#: Values of K computed and used at a time: with thousands of landmarks those of a
#: tile do not stay in the cache between the two products.
MAX_CACHED_KERNEL_VALUES = 2**19
#: Columns of the random projection that leverage scores are read off.
N_PROJECTIONS = 16
#: Residual, in the preconditioner's norm, at which a solution counts as found.
CG_RTOL = 1e-7
MAX_CG_ITERATIONS = 100


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
            rtol=CG_RTOL,
            max_iterations=MAX_CG_ITERATIONS,
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
        risk_bound=task.risk_bound(landmarks),
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
    rows = np.flatnonzero(Stream(seed, Purpose.PRECONDITION).uniforms(0, n) < p)
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
    cached = max(1, MAX_CACHED_KERNEL_VALUES // U.shape[0])
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


def fit_exact(landmarks: Landmarks, task: RidgeTask, X: Any) -> RidgeFit:
    """scikit-learn's own solution on our kernel matrix; all rows are landmarks.

    A coefficient for every row of X, as they were given; there is no intercept.
    """
    kernel, source, alphas = landmarks.kernel, task.source, task.alphas
    n, weights = source.n_rows, source.weights if source.is_weighted else None
    Y = source.targets[:n]
    with blas_limit_for_size(n):
        K = kernel.gram(landmarks.points)
        check_finite(K)
        least = least_resolved_alpha(float(np.trace(K)))
        is_lost = 0 < alphas.min() < least and np.linalg.eigvalsh(K)[0] < least
        ridge = ExactKernelRidge(alpha=alphas, kernel="precomputed")
        dual = ridge.fit(K, Y, weights).dual_coef_.reshape(Y.shape)
    # A source may stand for a file that is gone; the rows of K are K itself.
    points = kernel.matrix if isinstance(kernel, Precomputed) else landmarks.points
    X = points if isinstance(X, Source) else X
    w = np.ones(n) if weights is None else weights
    squares = np.maximum(np.einsum("nt,nt->t", Y, dual), 0.0)
    scales = squares / max(w.sum(), np.count_nonzero(w))
    return RidgeFit(
        map=LinearMap(dual, np.zeros(len(alphas)), landmarks.columns().narrow),
        solver="exact",
        error=landmarks.error,
        risk_bound=EXACT_RISK,
        posterior=ExactPosterior(landmarks.points, kernel, weights, alphas, scales),
        least_alpha=least if is_lost else 0.0,
        X_fit=X,
    )


@dataclass(frozen=True, eq=False)
class ExactPosterior:
    """What deviations need where every row is a landmark."""

    points: Any
    kernel: Kernel  # with its matrix where that was given
    weights: np.ndarray | None
    alphas: np.ndarray
    scales: np.ndarray  # (t,) σ̂² = yᵀ(K + αW⁻¹)⁻¹y/n

    def predict_with_std(
        self, rows: Any, source: Source, mapping: LinearMap, *args: Any, **options: Any
    ) -> Any:
        """As that of `Posterior`."""
        posterior = self._calibrate(self._posterior(), mapping.dual)
        return posterior.predict_with_std(rows, source, mapping, *args, **options)

    def quantiles(self, coverage: float, dual: np.ndarray) -> np.ndarray:
        """As those of `Posterior`."""
        none = np.empty((0, 0))
        posterior = Posterior(none, none, none, 0.0, self.alphas, self.scales)
        return self._calibrate(posterior, dual).quantiles(coverage, dual)

    def _calibrate(self, posterior: Posterior, dual: np.ndarray) -> Posterior:
        """As that of `Posterior`, with every row left out once."""
        K = self.kernel.gram(self.points)
        w = np.ones(len(K)) if self.weights is None else self.weights
        kept = np.flatnonzero(w)
        if len(kept) < MIN_CALIBRATION_ROWS:
            return posterior
        scores = np.empty((len(kept), dual.shape[1]))
        for alpha in np.unique(self.alphas):
            # With the noise of a row's weight, the variance of yᵢ given all others is
            # 1/Gᵢᵢ, and its residual xᵢ/Gᵢᵢ.
            noise = alpha / w[kept]
            G = np.linalg.pinv(K[np.ix_(kept, kept)] + np.diag(noise), hermitian=True)
            variance = 1 / np.diag(G)
            mask = self.alphas == alpha
            residuals = np.abs(dual[np.ix_(kept, mask)] * variance[:, None])
            variance = np.maximum(variance - noise, 0) + alpha
            std = np.sqrt(variance[:, None] * self.scales[mask])
            with np.errstate(divide="ignore", invalid="ignore"):  # a target that is 0
                scores[:, mask] = residuals / std
        return posterior.scaled_to(scores, w[kept])

    def _posterior(self) -> Posterior:
        """From the whole kernel matrix: only deviations need its eigenvectors."""
        K = self.kernel.gram(self.points)
        factor = factorize(K)
        Z = K @ factor.root
        w = np.ones(len(K)) if self.weights is None else self.weights
        gram, center = Z.T @ (w[:, None] * Z), np.zeros(len(K))
        return Posterior(factor.root, gram, center, 0.0, self.alphas, self.scales)
