"""Kernel ridge regression by one of the solvers.

`fit_ridge` sums the Gram matrix of the features ("direct"), makes a pass over the rows
per step ("cg"), solves with K itself ("full"), or counts the operations of the first
two ("auto"). `fit_exact` is scikit-learn's own solution where all rows are landmarks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from sklearn.kernel_ridge import KernelRidge as ExactKernelRidge

from .._precision import ALIKE, least_resolved_alpha
from .._validation import check_finite
from ..engines.blas import blas_limit_for_size
from ..kernels import Kernel, Precomputed
from ..landmarks import Landmarks
from ..linalg.factor import factorize
from ..linalg.features import FeatureMap
from ..linalg.moments import (
    Moments,
    are_alike,
    moments,
    trace_error_after_pass,
    trace_error_bound,
)
from ..sources import Source
from .linear_map import LinearMap
from .posterior import Posterior, conformal_quantiles, ridge_posterior
from .ridge import (
    EXACT_RISK,
    NormalEquations,
    RidgeFit,
    RidgeTask,
    dual_coefficients,
    precision_notes,
)
from .ridge_cg import LEVERAGE_ROWS_PER_LANDMARK, UNIFORM_ROWS_PER_LANDMARK, fit_cg
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
                landmarks, source, linear_map, task.engine, task.seed
            )
        return RidgeFit(
            map=linear_map,
            solver="direct",
            error=error,
            risk_bound=task.risk_bound(landmarks, error, residual_trace),
            posterior=posterior,
            notes=precision_notes(mapping),
            least_alpha=problem.least_alpha(float(alphas.min())),
            alike=are_alike(sums),
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


def fit_exact(landmarks: Landmarks, task: RidgeTask, X: Any) -> RidgeFit:
    """scikit-learn's own solution on our kernel matrix; all rows are landmarks.

    A coefficient for every row of X, as they were given; there is no intercept.
    """
    kernel, source, alphas = landmarks.kernel, task.source, task.alphas
    n, weights = source.n_rows, source.weights if source.is_weighted else None
    assert source.targets is not None
    Y = source.targets[:n]
    with blas_limit_for_size(n):
        K = kernel.gram(landmarks.points)
        check_finite(K)
        least = least_resolved_alpha(float(np.trace(K)))
        is_lost = 0 < alphas.min() < least and np.linalg.eigvalsh(K)[0] < least
        ridge = ExactKernelRidge(alpha=alphas, kernel="precomputed")
        dual = ridge.fit(K, Y, weights).dual_coef_.reshape(Y.shape)
    # A source may stand for a file that is gone; the rows of K are K itself.
    points, gram_kernel = landmarks.points, cast(Kernel | None, kernel)
    if isinstance(kernel, Precomputed):
        points, gram_kernel = kernel.matrix, None
    X = points if isinstance(X, Source) else X
    w = np.ones(n) if weights is None else weights
    squares = np.maximum(np.einsum("nt,nt->t", Y, dual), 0.0)
    scales = squares / max(w.sum(), np.count_nonzero(w))
    return RidgeFit(
        map=LinearMap(dual, np.zeros(len(alphas)), landmarks.columns().narrow),
        solver="exact",
        error=landmarks.error,
        risk_bound=EXACT_RISK,
        posterior=ExactPosterior(points, gram_kernel, weights, alphas, scales),
        least_alpha=least if is_lost else 0.0,
        alike=bool(n > 1 and 0 < K.max() * (1 - ALIKE) <= K.min()),
        X_fit=X,
    )


@dataclass(frozen=True, eq=False)
class ExactPosterior:
    """What deviations need where every row is a landmark."""

    points: Any  # the rows, or K itself
    kernel: Kernel | None  # None where K was given
    weights: np.ndarray | None
    alphas: np.ndarray
    scales: np.ndarray  # (t,) σ̂² = yᵀ(K + αW⁻¹)⁻¹y/n

    def std(self, *args: Any, **options: Any) -> np.ndarray:
        """As that of `Posterior`."""
        return self._posterior().std(*args, **options)

    def predict_with_std(self, *args: Any, **options: Any) -> Any:
        """As that of `Posterior`."""
        return self._posterior().predict_with_std(*args, **options)

    def quantiles(self, coverage: float, dual: np.ndarray) -> np.ndarray:
        """As those of `Posterior`, with every row left out once."""
        K = self._kernel_matrix()
        w = np.ones(len(K)) if self.weights is None else self.weights
        kept, scores = np.flatnonzero(w), np.empty(dual.shape)
        for alpha in np.unique(self.alphas):
            # The variance of yᵢ given all others is 1/Gᵢᵢ, its residual xᵢ/Gᵢᵢ.
            regularized = K[np.ix_(kept, kept)] + np.diag(alpha / w[kept])
            precision = np.diag(np.linalg.pinv(regularized, hermitian=True))
            mask = self.alphas == alpha
            residuals = dual[np.ix_(kept, mask)] / np.sqrt(precision)[:, None]
            scores[np.ix_(kept, mask)] = np.abs(residuals) / np.sqrt(self.scales[mask])
        return conformal_quantiles(np.sort(scores[kept], axis=0), coverage)

    def _kernel_matrix(self) -> np.ndarray:
        if self.kernel is not None:
            return self.kernel.gram(self.points)
        K = np.asarray(self.points, dtype=np.float64)
        return (K + K.T) / 2

    def _posterior(self) -> Posterior:
        """From the whole kernel matrix: only deviations need its eigenvectors."""
        K = self._kernel_matrix()
        factor = factorize(K)
        Z = K @ factor.root
        w = np.ones(len(K)) if self.weights is None else self.weights
        gram, center = Z.T @ (w[:, None] * Z), np.zeros(len(K))
        return Posterior(factor.root, gram, center, 0.0, self.alphas, self.scales)
