"""Kernel ridge regression by four solvers, each with one method `fit`.

`Direct` sums the Gram matrix of the features, `ConjugateGradient` makes a pass over the
rows per step, `Full` solves with K itself, `Exact` is scikit-learn's own solution where
all rows are landmarks. `Auto` counts the operations of the first two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
from sklearn.kernel_ridge import KernelRidge as ExactKernelRidge

from .. import _arrays as arrays
from .._precision import ALIKE, least_resolved_alpha
from .._validation import check_finite
from ..engines import Engine
from ..engines.blas import blas_limit_for_size
from ..kernels import Kernel, Precomputed
from ..landmarks import Landmarks
from ..linalg.cross_kernel import fetch_rows
from ..linalg.errors import TraceError
from ..linalg.factor import factorize
from ..linalg.features import FeatureMap
from ..linalg.moments import Moments, are_alike, moments, trace_error_bound
from ..linalg.operator import estimate_trace_error, trace_error_after_pass
from ..sources import CachedRows, Source
from .linear_map import LinearMap
from .posterior import Posterior, ridge_posterior
from .ridge import NormalEquations, RiskBound, dual_coefficients, risk_bound
from .ridge_cg import LEVERAGE_ROWS_PER_LANDMARK, UNIFORM_ROWS_PER_LANDMARK, solve_cg
from .ridge_full import (
    FullPosterior,
    FullRidge,
    not_converged_message,
    not_definite_message,
)

#: What `solver="auto"` weighs, in float64 multiply-adds as a matrix product does them:
#: a kernel value beyond its product over features, and conjugate-gradient steps.
KERNEL_VALUE_COST, EXPECTED_CG_STEPS = 120, 32
#: The Gram matrix of whitened tiles in units of the other: both are half a product, and
#: so is that with a triangular root.
WHITENED_GRAM_COST = 2
#: What is known of the risk of a solution with K itself.
EXACT_RISK = RiskBound(1.0, 1.0, "being exact")


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """Coefficients of kernel values, and what is known about them."""

    map: LinearMap
    solver: str
    error: TraceError | None  # relative, of K̃
    risk_bound: RiskBound | None
    posterior: Posterior | ExactPosterior | FullPosterior | None  # None: not known
    n_iterations: int | None = None
    not_converged: str = ""  # what to say where it has not
    residual: float | None = None  # the largest ‖b − Ax‖/‖b‖ of the targets
    notes: tuple[str, ...] = ()
    least_alpha: float = 0.0  # rounding hides a smaller one in some direction
    alike: bool | None = None  # whether features are the same for all rows
    rows: Landmarks | None = None  # what predicts, where it is not the landmarks
    X_fit: Any = None  # what is called so, where it is not the points

    @property
    def is_exact(self) -> bool:
        """Whether the solution is that with K, not with K̃."""
        return self.risk_bound == EXACT_RISK


@dataclass(frozen=True, eq=False)
class RidgeTask:
    """Ridge regression of a source's targets, one α for each."""

    source: Source
    alphas: np.ndarray  # (t,)
    fit_intercept: bool
    engine: Engine
    seed: int = 0

    def features(self, landmarks: Landmarks) -> FeatureMap:
        """Z, in the precision that the least α needs."""
        return FeatureMap.for_ridge(
            landmarks,
            self.source,
            float(self.alphas.min()),
            center=self.fit_intercept,
            engine=self.engine,
        )

    def risk_bound(
        self,
        landmarks: Landmarks,
        error: TraceError | None,
        residual_trace: float | None = None,
    ) -> RiskBound | None:
        """What is proven of the risk; with an intercept or weights nothing is."""
        known_error = landmarks.with_error(error).error
        if self.fit_intercept or self.source.is_weighted or known_error is None:
            return None
        return risk_bound(float(self.alphas.min()), residual_trace, landmarks.guarantee)


class RidgeSolver(Protocol):
    """A way to solve a `RidgeTask`."""

    def fit(self, landmarks: Landmarks, task: RidgeTask) -> RidgeFit:
        """The solution, which the landmarks approximate or precondition."""


@dataclass(frozen=True)
class Direct:
    """The Gram matrix of the features from one pass, and one solution of size s × s."""

    def fit(
        self,
        landmarks: Landmarks,
        task: RidgeTask,
        mapping: FeatureMap | None = None,
    ) -> RidgeFit:
        """From the sums over all rows."""
        with blas_limit_for_size(len(landmarks)):
            mapping = task.features(landmarks) if mapping is None else mapping
            sums = moments(mapping, task.source, task.engine)
            return fit_from_moments(landmarks, mapping, sums, task)


@dataclass(frozen=True)
class ConjugateGradient:
    """A pass over the rows per step, which pays with many landmarks."""

    def fit(
        self,
        landmarks: Landmarks,
        task: RidgeTask,
        mapping: FeatureMap | None = None,
    ) -> RidgeFit:
        """Without a Gram matrix, and so without deviations."""
        source, alphas, engine = task.source, task.alphas, task.engine
        with blas_limit_for_size(len(landmarks)):
            mapping = task.features(landmarks) if mapping is None else mapping
            solution = solve_cg(
                mapping, source, alphas, task.fit_intercept, engine, task.seed
            )
            linear_map = LinearMap.with_sufficient_precision(
                landmarks, source, solution.dual, solution.intercept
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


@dataclass(frozen=True)
class Auto:
    """`Direct` or `ConjugateGradient`, by a count of multiply-adds."""

    def fit(self, landmarks: Landmarks, task: RidgeTask) -> RidgeFit:
        """By the solver that is faster."""
        with blas_limit_for_size(len(landmarks)):
            mapping = task.features(landmarks)
        use_cg = choose_solver(mapping, task.source) == "cg"
        solver = ConjugateGradient() if use_cg else Direct()
        return solver.fit(landmarks, task, mapping)


@dataclass(frozen=True)
class Full:
    """(K + αW⁻¹)x = y on all rows, which the landmarks precondition."""

    def fit(self, landmarks: Landmarks, task: RidgeTask) -> RidgeFit:
        """A coefficient for every row of weight > 0."""
        kernel, source, alphas = landmarks.kernel, task.source, task.alphas
        if kernel.traits.psd is False or landmarks.indefinite:
            raise ValueError(not_definite_message(kernel))
        kept = np.flatnonzero(source.weights)
        weights = source.weights_of(kept) if source.is_weighted else None
        assert source.targets is not None
        Y = source.targets[: source.n_rows][kept]
        points = fetch_rows(source, kept, task.engine)
        points_like_input = points
        if source.original is not source:
            like = source.original.rows(0, 1)
            points_like_input = arrays.to_device_of(points, like)
        with blas_limit_for_size(len(landmarks)):
            problem = FullRidge(
                landmarks,
                CachedRows(points, weights),
                alphas,
                fit_intercept=task.fit_intercept,
                engine=task.engine,
            )
            fit = problem.fit(Y)
        rows = Landmarks(points_like_input, kernel, "full", source.n_rows, indices=kept)
        return RidgeFit(
            map=LinearMap.with_sufficient_precision(
                rows, source, fit.dual, fit.intercept
            ),
            solver="full",
            error=estimate_trace_error(landmarks, source, task.engine),
            risk_bound=EXACT_RISK,
            posterior=FullPosterior(
                landmarks.without_kernel_matrix(),
                weights,
                alphas,
                fit.scales,
                task.fit_intercept,
            ),
            n_iterations=fit.n_iterations,
            not_converged="" if fit.converged else not_converged_message(fit),
            residual=fit.residual,
            rows=rows,
        )


@dataclass(frozen=True)
class Exact:
    """scikit-learn's own solution on our kernel matrix; all rows are landmarks."""

    X: Any  # the rows as they were given

    def fit(self, landmarks: Landmarks, task: RidgeTask) -> RidgeFit:
        """A coefficient for every row; there is no intercept."""
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
        X = points if isinstance(self.X, Source) else self.X
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


SOLVERS: dict[str, RidgeSolver] = {
    "auto": Auto(),
    "direct": Direct(),
    "cg": ConjugateGradient(),
    "full": Full(),
}


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

    def _posterior(self) -> Posterior:
        """From the whole kernel matrix: only deviations need its eigenvectors."""
        if self.kernel is not None:
            K = self.kernel.gram(self.points)
        else:
            K = np.asarray(self.points, dtype=np.float64)
            K = (K + K.T) / 2
        factor = factorize(K)
        Z = K @ factor.root
        w = np.ones(len(K)) if self.weights is None else self.weights
        gram, center = Z.T @ (w[:, None] * Z), np.zeros(len(K))
        return Posterior(factor.root, gram, center, 0.0, self.alphas, self.scales)


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
        return RidgeFit(
            map=linear_map,
            solver="direct",
            error=error,
            risk_bound=task.risk_bound(landmarks, error, residual_trace),
            posterior=ridge_posterior(mapping, problem, alphas, coef),
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


def precision_notes(mapping: FeatureMap) -> tuple[str, ...]:
    """What the reader should know of the precision of Z."""
    return ("kernel values in float64 for this alpha",) if mapping.columns.wide else ()
