"""Ridge regression on Z: minimise Σ w(y − zᵀθ − β)² + α‖θ‖², which is kernel ridge
regression with K̃ in place of K (the paper's appendix on kernel ridge regression).

From sums over rows alone; θ on Z becomes root·θ on the landmarks' kernel values.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from ...engines.blas import blas_threads_for
from ...features import FeatureMap
from ...moments import Moments
from ...precision import EPS64, gram_rounding, least_resolved_alpha
from .path import Path


@dataclass(frozen=True, eq=False)
class Centered:
    """The ridge problem that is left once an intercept has been taken out.

    Without an intercept the means are 0 and nothing is taken out.
    """

    gram: np.ndarray  # (r, r) G = Σ w zzᵀ
    cross: np.ndarray  # (r, t) b = Σ w zyᵀ
    target_squares: np.ndarray  # (t,) Σ wy²
    feature_mean: np.ndarray  # (r,) of z, about the shift
    target_mean: np.ndarray  # (t,) of y, about the shift
    total_weight: float
    n_rows: float  # how many rows these count as
    most_rank: int  # no more directions do the rows have, less the intercept
    gram_error: float  # how far rounding may have got G
    fit_intercept: bool

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")  # refused where it is solved
    def of(cls, sums: Moments, fit_intercept: bool) -> Centered:
        """Take the weighted means off, if there is to be an intercept."""
        # A row of weight w counts as w rows; small weights do not make fewer rows.
        n = max(sums.weight, float(sums.n_rows))
        squares = np.maximum(sums.target_squares, 0.0)
        # Before means are taken off, which may leave little.
        error = max(sums.gram_error, gram_rounding(float(np.trace(sums.gram))))
        if not fit_intercept:
            r, t = sums.cross.shape
            means = np.zeros(r), np.zeros(t)
            return cls(
                sums.gram,
                sums.cross,
                squares,
                *means,
                sums.weight,
                n,
                most_rank=sums.n_rows,
                gram_error=error,
                fit_intercept=False,
            )
        z, y, W = sums.feature_sum, sums.target_sum, sums.weight
        gram = np.outer(z, z)
        gram /= -W  # in place, as these may be large
        gram += sums.gram
        return cls(
            gram=gram,
            cross=sums.cross - np.outer(z, y) / W,
            target_squares=np.maximum(squares - y * y / W, 0.0),
            feature_mean=z / W,
            target_mean=y / W,
            total_weight=W,
            n_rows=n,
            most_rank=sums.n_rows - 1,
            gram_error=error,
            fit_intercept=True,
        )

    def solve(self, alphas: np.ndarray) -> np.ndarray:
        """θ, one column per target, each with its own α; least squares for α = 0."""
        coef = np.empty_like(self.cross)
        for alpha in np.unique(alphas):
            columns = alphas == alpha
            coef[:, columns] = self._solve_one(alpha, self.cross[:, columns])
        return coef

    def _solve_one(self, alpha: float, b: np.ndarray) -> np.ndarray:
        # Where α is below rounding a factor may exist by chance, and solve for noise.
        if alpha > 100 * self.gram_error:
            with suppress(np.linalg.LinAlgError):
                ridged = with_ridge(self.gram, alpha)
                factor = scipy.linalg.cho_factor(ridged, lower=True, overwrite_a=True)
                return scipy.linalg.cho_solve(factor, b)
        return self.path.coefficients(alpha, self.path.vectors.T @ b)

    def least_alpha(self, alpha: float) -> float:
        """What α must be at least to be resolved in all directions; 0 if it is."""
        least = least_resolved_alpha(float(np.trace(self.gram)))
        if not 0 < alpha < least or not len(self.gram):
            return 0.0
        # Such an α is solved for by this path. It changes nothing in other directions.
        return least if self.path.values[-1] < least else 0.0

    def quadratic(self, alphas: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """(t,): yᵀ(K̃ + αI)⁻¹y, each target with its own α > 0 and its solution."""
        fitted = np.einsum("rt,rt->t", self.cross, coef)
        return np.maximum(self.target_squares - fitted, 0.0) / alphas

    @cached_property
    def path(self) -> Path:
        """The solutions for every α, from one eigendecomposition."""
        if not np.all(np.isfinite(self.gram)):
            raise ValueError(
                "Sums over rows are too large for float64. Divide sample_weight by a "
                "number, and alpha by the same: that changes no solution."
            )
        with blas_threads_for(len(self.gram)):
            # Not numpy's, which is no faster and takes two more matrices to work in.
            values, vectors = scipy.linalg.eigh(self.gram)
        values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
        return Path(
            values=values,
            vectors=vectors,
            cross=vectors.T @ self.cross,
            target_squares=self.target_squares,
            weight=self.total_weight,
            n_rows=self.n_rows,
            n_intercepts=int(self.fit_intercept),
            most_rank=self.most_rank,
            gram_error=self.gram_error,
        )


def with_ridge(gram: np.ndarray, alpha: float) -> np.ndarray:
    """G + αI, laid out as LAPACK wants it: it may overwrite this, the only copy."""
    ridged = gram.copy(order="F")
    np.fill_diagonal(ridged, np.diagonal(ridged) + alpha)
    return ridged


def on_landmarks(
    mapping: FeatureMap, problem: Centered, coef: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """θ as coefficients of the landmarks' kernel values, and the intercept."""
    dual = mapping.root @ coef
    if not problem.fit_intercept:
        return dual, np.zeros(coef.shape[1])
    about_shift = problem.target_mean - problem.feature_mean @ coef
    return dual, about_shift + mapping.target_shift - mapping.shift @ dual


def squared_errors(
    sums: Moments, coef: np.ndarray, about_shift: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(t,): Σ w(y − zᵀθ − β)² over the rows of the sums, and its rounding at most."""
    fitted = np.einsum("rt,rt->t", coef, sums.gram @ coef)
    mixed = np.einsum("rt,rt->t", coef, sums.cross)
    rest = sums.target_sum - sums.feature_sum @ coef
    shifted = about_shift * (about_shift * sums.weight - 2 * rest)
    total = sums.target_squares - 2 * mixed + fitted + shifted
    size = sums.target_squares + 2 * np.abs(mixed) + np.abs(fitted) + np.abs(shifted)
    in_gram = max(sums.gram_error, gram_rounding(float(np.trace(sums.gram))))
    rounding = 10 * EPS64 * size + in_gram * np.einsum("rt,rt->t", coef, coef)
    return np.maximum(total, 0.0), rounding
