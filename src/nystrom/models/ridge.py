"""Ridge regression on Nyström features, solved from moments alone.

Minimises Σ w(y − zᵀθ − β)² + α‖θ‖², which is kernel ridge regression with K̃ in
place of K; one eigendecomposition gives the whole path of α. `risk_bound` is the
paper's statistical guarantee.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg

from .._precision import EPS64, gram_rounding, least_resolved_alpha
from ..engines import Engine
from ..engines.blas import blas_limit_for_size
from ..landmarks import Landmarks
from ..linalg.errors import Guarantee, TraceError
from ..linalg.features import FeatureMap, LinearMap
from ..linalg.moments import Moments
from ..sources import Source

#: Residuals that sums resolve to this share are not recomputed from the rows.
RESIDUAL_RTOL = 0.01
#: Degrees of freedom whose square vanishes say nothing.
MIN_RESIDUAL_DOF = 1e-150


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """The ridge problem after centering, where there is an intercept.

    Without an intercept the means are 0.
    """

    gram: np.ndarray  # (r, r) G = Σ w zzᵀ
    cross: np.ndarray  # (r, t) b = Σ w zyᵀ
    target_squares: np.ndarray  # (t,) Σ wy²
    feature_mean: np.ndarray  # (r,) of z, about the shift
    target_mean: np.ndarray  # (t,) of y, about the shift
    total_weight: float
    n_rows: float  # how many rows these count as
    max_rank: int  # n_samples, less one for an intercept
    gram_error: float  # rounding of G at most
    fit_intercept: bool

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")  # refused where it is solved
    def from_moments(cls, sums: Moments, fit_intercept: bool) -> NormalEquations:
        """About the weighted means, if there is an intercept."""
        # A row of weight w counts as w rows, but small weights not as fewer rows.
        n_effective = max(sums.weight, float(sums.n_rows))
        target_squares = np.maximum(sums.target_squares, 0.0)
        # Before centering, after which little may remain.
        gram_error = max(sums.gram_error, gram_rounding(float(np.trace(sums.gram))))
        z, y, W = sums.feature_sum, sums.target_sum, sums.weight
        gram, cross = sums.gram, sums.cross
        feature_mean, target_mean = np.zeros(len(z)), np.zeros(len(y))
        if fit_intercept:
            gram = np.outer(z, z)
            gram /= -W  # in place, as these may be large
            gram += sums.gram
            cross = sums.cross - np.outer(z, y) / W
            target_squares = np.maximum(target_squares - y * y / W, 0.0)
            feature_mean, target_mean = z / W, y / W
        return cls(
            gram,
            cross,
            target_squares,
            feature_mean,
            target_mean,
            total_weight=W,
            n_rows=n_effective,
            max_rank=sums.n_rows - int(fit_intercept),
            gram_error=gram_error,
            fit_intercept=fit_intercept,
        )

    def solve(self, alphas: np.ndarray) -> np.ndarray:
        """θ, one column per target, each with its own α; least squares for α = 0."""
        coef = np.empty_like(self.cross)
        for alpha in np.unique(alphas):
            columns, factor = alphas == alpha, None
            b = self.cross[:, columns]
            # Where α is below rounding a factor may exist by chance, and solve for
            # noise.
            if alpha > 100 * self.gram_error:
                with suppress(np.linalg.LinAlgError):
                    ridged = add_ridge(self.gram, alpha)
                    factor = scipy.linalg.cho_factor(
                        ridged, lower=True, overwrite_a=True
                    )
            coef[:, columns] = (
                self.coefficients(alpha, self.eigenvectors.T @ b)
                if factor is None
                else scipy.linalg.cho_solve(factor, b)
            )
        return coef

    def least_alpha(self, alpha: float) -> float:
        """What α must be at least to be resolved in all directions; 0 if it is."""
        least = least_resolved_alpha(float(np.trace(self.gram)))
        if not 0 < alpha < least or not len(self.gram):
            return 0.0
        # Such an α is solved for in eigenvectors; in other directions it
        # changes nothing.
        return least if self.eigenvalues[-1] < least else 0.0

    @cached_property
    def _eigh(self) -> tuple[np.ndarray, np.ndarray]:
        if not np.all(np.isfinite(self.gram)):
            raise ValueError(
                "Sums over rows are too large for float64. Divide sample_weight by a "
                "number, and alpha by the same: that changes no solution."
            )
        with blas_limit_for_size(len(self.gram)):
            # Not numpy's, which is no faster and takes two more matrices to work in.
            values, vectors = scipy.linalg.eigh(self.gram)
        return np.maximum(values[::-1], 0.0), vectors[:, ::-1]

    @property
    def eigenvalues(self) -> np.ndarray:
        """(r,): σ² of G = QΣ²Qᵀ, descending, not negative; each α is a division."""
        return self._eigh[0]

    @property
    def eigenvectors(self) -> np.ndarray:
        """(r, r): Q."""
        return self._eigh[1]

    @cached_property
    def rotated_cross(self) -> np.ndarray:
        """(r, t): Qᵀb."""
        return self.eigenvectors.T @ self.cross

    @property
    def _eigenvalue_error(self) -> float:
        """How far each of the values may be off: by sums, and by the eigensolver."""
        return self.gram_error + 10 * EPS64 * self.eigenvalues.max(initial=0.0)

    @property
    def _eigenvalue_cutoff(self) -> float:
        """σ² up to which a direction of G is rounding."""
        largest = float(self.eigenvalues.max(initial=0.0))
        return max(EPS64 * len(self.eigenvalues) * largest, self._eigenvalue_error)

    @cached_property
    def _numerical_rank(self) -> int:
        """Directions of G above rounding."""
        n_resolved = np.count_nonzero(self.eigenvalues > self._eigenvalue_cutoff)
        return min(int(n_resolved), self.max_rank)

    @property
    def interpolates(self) -> bool:
        """Whether Z spans all that targets can be: no part of any is outside."""
        return self._numerical_rank == self.max_rank

    def coefficients(self, alpha: float, cross: np.ndarray | None = None) -> np.ndarray:
        """θ for one α; among the least-squares solutions the smallest for α = 0.

        An α below rounding is 0 in directions that are noise, and these are dropped.
        """
        cross = self.rotated_cross if cross is None else cross
        k = len(self.eigenvalues)
        if alpha <= self._eigenvalue_cutoff:
            k = self._numerical_rank
        shrunk = cross[:k] / (self.eigenvalues[:k] + alpha)[:, None]
        return self.eigenvectors[:, :k] @ shrunk

    def residual_squares(self, alphas: np.ndarray) -> np.ndarray:
        """(a, t): Σ w(y − ŷ)² on the rows themselves.

        Σ wy² less b²(σ² + 2α)/(σ² + α)². Written with b²/σ² it would be far off where
        σ² is rounding beside α. But where the rows are interpolated the difference is
        rounding itself, and b²/σ² is accurate.
        """
        k = self._numerical_rank
        if self.interpolates:
            fitted = self.rotated_cross[:k] ** 2 / self.eigenvalues[:k, None]  # (k, t)
            shrunk = alphas[:, None] / (self.eigenvalues[:k] + alphas[:, None])
            return shrunk**2 @ fitted
        explained = self._filter_factors(
            alphas, lambda v, a: (v + 2 * a) / (v + a) ** 2
        )
        return np.maximum(0.0, self.target_squares - explained @ self.rotated_cross**2)

    def residuals_are_accurate(self, alphas: np.ndarray) -> bool:
        """Whether rounding may have changed these squares by a hundredth at most."""
        if self.interpolates:
            return True
        eigenvalue_error = self._eigenvalue_error
        error_factors = self._filter_factors(
            alphas, lambda v, a: np.minimum(1.0, eigenvalue_error / (v + a)) / (v + a)
        )
        rounding = error_factors @ self.rotated_cross**2
        rounding += 10 * EPS64 * self.target_squares
        return bool(np.all(rounding <= RESIDUAL_RTOL * self.residual_squares(alphas)))

    def _filter_factors(
        self, alphas: np.ndarray, factor: Callable[[np.ndarray, np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """(a, r): a function of σ² and α; for α = 0 of directions above rounding."""
        v, a = np.broadcast_arrays(self.eigenvalues, alphas[:, None])
        included = (a > 0) | (np.arange(len(self.eigenvalues)) < self._numerical_rank)
        out = np.zeros(v.shape)
        out[included] = factor(v[included], a[included])
        return out

    def residual_degrees_of_freedom(self, alphas: np.ndarray) -> np.ndarray:
        """(a,): n − tr K̃(K̃ + αI)⁻¹, less one for an intercept.

        Where the rows are interpolated it is a sum of α/(σ² + α): the difference of n
        and the degrees of freedom would be rounding.
        """
        if self.interpolates:
            eigenvalues = self.eigenvalues[: self._numerical_rank]
            unfitted = np.sum(alphas[:, None] / (eigenvalues + alphas[:, None]), axis=1)
            return self.n_rows - int(self.fit_intercept) - len(eigenvalues) + unfitted
        fitted_dof = self._filter_factors(alphas, lambda v, a: v / (v + a)).sum(axis=1)
        return self.n_rows - int(self.fit_intercept) - fitted_dof

    def gcv(self, alphas: np.ndarray, squares: np.ndarray) -> np.ndarray:
        """(a, t): the mean squared error by generalised cross-validation.

        `squares` are the residuals', from `residual_squares` or from the rows.
        """
        residual_share = self.residual_degrees_of_freedom(alphas) / self.n_rows
        # As many degrees of freedom as rows leave 0/0: nothing can be said of such α.
        min_share = MIN_RESIDUAL_DOF if self.interpolates else EPS64
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = squares / self.total_weight / residual_share[:, None] ** 2
        return np.where(residual_share[:, None] > min_share, scores, np.inf)


def add_ridge(gram: np.ndarray, alpha: float) -> np.ndarray:
    """G + αI, laid out as LAPACK wants it: it may overwrite this, the only copy."""
    ridged = gram.copy(order="F")
    np.fill_diagonal(ridged, np.diagonal(ridged) + alpha)
    return ridged


class RidgeFactors:
    """V ↦ (G + αI)⁻¹V, column by column, each with its own α, to precondition.

    An α below `min_ridge`, the rounding of G, is raised to it.
    """

    def __init__(self, G: np.ndarray, alphas: np.ndarray, min_ridge: float) -> None:
        self.min_ridge = min_ridge
        ridges = {alpha: max(float(alpha), min_ridge) for alpha in np.unique(alphas)}
        self.factors = {
            alpha: scipy.linalg.cho_factor(add_ridge(G, ridge), overwrite_a=True)
            for alpha, ridge in ridges.items()
        }

    def solve(self, V: np.ndarray, alphas: np.ndarray) -> np.ndarray:
        """Each α is one of those that factors are known for."""
        out = np.empty_like(V)
        for alpha, factor in self.factors.items():
            mask = alphas == alpha
            out[:, mask] = scipy.linalg.cho_solve(
                factor, V[:, mask], check_finite=False
            )
        return out


def dual_coefficients(
    mapping: FeatureMap, problem: NormalEquations, coef: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """θ as coefficients of the landmarks' kernel values, and the intercept."""
    dual = mapping.root @ coef
    if not problem.fit_intercept:
        return dual, np.zeros(coef.shape[1])
    offset = problem.target_mean - problem.feature_mean @ coef
    return dual, offset + mapping.target_shift - mapping.shift @ dual


def sum_of_squared_errors(
    sums: Moments, coef: np.ndarray, offset: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(t,): Σ w(y − zᵀθ − β)² over the rows of the sums, and its rounding at most."""
    fitted = np.einsum("rt,rt->t", coef, sums.gram @ coef)
    cross_term = np.einsum("rt,rt->t", coef, sums.cross)
    target_residual = sums.target_sum - sums.feature_sum @ coef
    shifted = offset * (offset * sums.weight - 2 * target_residual)
    total = sums.target_squares - 2 * cross_term + fitted + shifted
    magnitude = (
        sums.target_squares + 2 * np.abs(cross_term) + np.abs(fitted) + np.abs(shifted)
    )
    gram_error = max(sums.gram_error, gram_rounding(float(np.trace(sums.gram))))
    rounding = 10 * EPS64 * magnitude + gram_error * np.einsum("rt,rt->t", coef, coef)
    return np.maximum(total, 0.0), rounding


@dataclass(frozen=True)
class RiskBound:
    """A bound on the risk relative to exact kernel ridge regression.

    The risk with K̃ is at most `factor` times the risk with K.

    Attributes
    ----------
    factor : float
        The factor.
    probability : float
        Probability with which it holds, at least.
    reason : str
        Theorem and error that it rests on.
    """

    factor: float
    probability: float
    reason: str

    def __str__(self) -> str:
        qualifier = (
            "" if self.probability == 1 else f" (probability {self.probability:g})"
        )
        return f"risk ≤ {self.factor:.4g} × exact risk{qualifier}, by {self.reason}"


def risk_bound(
    alpha: float, residual_trace: float | None, guarantee: Guarantee | None
) -> RiskBound | None:
    """The best bound that is known; None where ε would be 1 or more."""
    bounds = []
    # ‖K − K̃‖₂ ≤ tr(K − K̃): measured, so certain.
    if residual_trace is not None and residual_trace < alpha:
        factor = 1 + 3 * residual_trace / alpha
        bounds.append(RiskBound(factor, 1.0, "the trace error"))
    if guarantee is not None and guarantee.ridge < alpha:
        factor = 1 + 3 * guarantee.ridge / alpha
        bounds.append(RiskBound(factor, guarantee.probability, guarantee.algorithm))
    return min(bounds, key=lambda b: b.factor, default=None)


#: What is known of the risk of a solution with K itself.
EXACT_RISK = RiskBound(1.0, 1.0, "being exact")


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """Coefficients of kernel values, and what is known about them."""

    map: LinearMap
    solver: str
    error: TraceError | None  # relative, of K̃
    risk_bound: RiskBound | None
    posterior: Any  # of models/posterior.py, ridge_full.py or ridge_solvers.py, or None
    n_iterations: int | None = None
    not_converged: str = ""  # what to say where it has not
    residual: float | None = None  # the largest ‖b − Ax‖/‖b‖ of the targets
    notes: tuple[str, ...] = ()
    least_alpha: float = 0.0  # rounding hides a smaller one in some direction
    rows: Landmarks | None = None  # what predicts, where it is not the landmarks
    X_fit: Any = None  # what is called so, where it is not the points


@dataclass(frozen=True, eq=False)
class RidgeTask:
    """Ridge regression of a source's targets, one α for each."""

    source: Source
    alphas: np.ndarray  # (t,)
    fit_intercept: bool
    engine: Engine
    seed: int = 0
    calibrate: bool = False  # deviations, by rows left out

    def risk_bound(
        self, landmarks: Landmarks, residual_trace: float | None = None
    ) -> RiskBound | None:
        """What is proven of the risk; with an intercept or weights nothing is."""
        if self.fit_intercept or self.source.is_weighted or landmarks.indefinite:
            return None
        return risk_bound(float(self.alphas.min()), residual_trace, landmarks.guarantee)


def precision_notes(mapping: FeatureMap) -> tuple[str, ...]:
    """What the reader should know of the precision of Z."""
    return ("kernel values in float64 for this alpha",) if mapping.columns.wide else ()
