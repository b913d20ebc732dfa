"""Ridge regression on Z: minimise Σ w(y − zᵀθ − β)² + α‖θ‖², which is kernel ridge
regression with K̃ in place of K (the paper's appendix on kernel ridge regression).

From sums over rows alone; θ on Z becomes root·θ on the landmarks' kernel values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from .. import _arrays as arrays
from .moments import FeatureMap, Moments


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
    fit_intercept: bool

    @classmethod
    def of(cls, sums: Moments, fit_intercept: bool) -> Centered:
        """Take the weighted means off, if there is to be an intercept."""
        # A row of weight w counts as w rows; small weights do not make fewer rows.
        n = max(sums.weight, float(sums.n_rows))
        squares = np.maximum(sums.target_squares, 0.0)
        if not fit_intercept:
            r, t = sums.cross.shape
            means = np.zeros(r), np.zeros(t)
            return cls(sums.gram, sums.cross, squares, *means, sums.weight, n, False)
        z, y, W = sums.feature_sum, sums.target_sum, sums.weight
        return cls(
            gram=sums.gram - np.outer(z, z) / W,
            cross=sums.cross - np.outer(z, y) / W,
            target_squares=np.maximum(squares - y * y / W, 0.0),
            feature_mean=z / W,
            target_mean=y / W,
            total_weight=W,
            n_rows=n,
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
        if alpha > 0:
            try:
                ridged = self.gram + alpha * np.eye(len(self.gram))
                factor = scipy.linalg.cho_factor(ridged, lower=True, overwrite_a=True)
                return scipy.linalg.cho_solve(factor, b)
            except np.linalg.LinAlgError:  # α is below the rounding of G
                pass
        return self.path.coefficients(alpha, self.path.vectors.T @ b)

    def quadratic(self, alphas: np.ndarray) -> np.ndarray:
        """(t,): yᵀ(K̃ + αI)⁻¹y, each target with its own α > 0."""
        fitted = np.einsum("rt,rt->t", self.cross, self.solve(alphas))
        return np.maximum(self.target_squares - fitted, 0.0) / alphas

    @cached_property
    def path(self) -> Path:
        """The solutions for every α, from one eigendecomposition."""
        values, vectors = np.linalg.eigh(self.gram)
        values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
        return Path(
            values=values,
            vectors=vectors,
            cross=vectors.T @ self.cross,
            target_squares=self.target_squares,
            weight=self.total_weight,
            n_rows=self.n_rows,
            n_intercepts=int(self.fit_intercept),
        )


@dataclass(frozen=True, eq=False)
class Path:
    """Ridge solutions in the eigenvectors of G = QΣ²Qᵀ, where each α is a division."""

    values: np.ndarray  # (r,) σ², descending, not negative
    vectors: np.ndarray  # (r, r) Q
    cross: np.ndarray  # (r, t) Qᵀb
    target_squares: np.ndarray  # (t,)
    weight: float  # Σw
    n_rows: float  # how many rows these count as
    n_intercepts: int

    @cached_property
    def _kept(self) -> int:
        """Directions of G above rounding."""
        largest = self.values.max(initial=0.0)
        cut = arrays.epsilon(np.float64) * len(self.values) * largest
        return int(np.count_nonzero(self.values > cut))

    def coefficients(self, alpha: float, cross: np.ndarray | None = None) -> np.ndarray:
        """θ for one α; among the least-squares solutions the smallest for α = 0."""
        cross = self.cross if cross is None else cross
        k = self._kept if alpha == 0 else len(self.values)
        shrunk = cross[:k] / (self.values[:k] + alpha)[:, None]
        return self.vectors[:, :k] @ shrunk

    def residual_squares(self, alphas: np.ndarray) -> np.ndarray:
        """(a, t): Σ w(y − ŷ)² on the rows themselves."""
        k = self._kept
        fitted = self.cross[:k] ** 2 / self.values[:k, None]  # (k, t)
        outside = np.maximum(0.0, self.target_squares - fitted.sum(axis=0))
        shrunk = alphas[:, None] / (self.values[:k] + alphas[:, None])
        return outside + shrunk**2 @ fitted

    def degrees_of_freedom(self, alphas: np.ndarray) -> np.ndarray:
        """(a,): tr K̃(K̃ + αI)⁻¹, and one for an intercept."""
        shares = self.values / (self.values + alphas[:, None])
        return shares.sum(axis=1) + self.n_intercepts

    def gcv(self, alphas: np.ndarray) -> np.ndarray:
        """(a, t): the mean squared error by generalised cross-validation."""
        left = 1 - self.degrees_of_freedom(alphas) / self.n_rows
        # As many degrees of freedom as rows leave 0/0: nothing can be said of such α.
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = self.residual_squares(alphas) / self.weight / left[:, None] ** 2
        return np.where(left[:, None] > arrays.epsilon(np.float64), scores, np.inf)


def on_landmarks(
    made: FeatureMap, problem: Centered, coef: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """θ as coefficients of the landmarks' kernel values, and the intercept."""
    dual = made.root @ coef
    if not problem.fit_intercept:
        return dual, np.zeros(coef.shape[1])
    about_shift = problem.target_mean - problem.feature_mean @ coef
    return dual, about_shift + made.target_shift - made.shift @ dual


def squared_errors(
    sums: Moments, coef: np.ndarray, about_shift: np.ndarray
) -> np.ndarray:
    """(t,): Σ w(y − zᵀθ − β)² over the rows that the sums are of."""
    fitted = np.einsum("rt,rt->t", coef, sums.gram @ coef)
    mixed = np.einsum("rt,rt->t", coef, sums.cross)
    rest = sums.target_sum - sums.feature_sum @ coef
    total = sums.target_squares - 2 * mixed + fitted
    total += about_shift * (about_shift * sums.weight - 2 * rest)
    return np.maximum(total, 0.0)


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
        values, vectors = np.linalg.eigh(self.gram)
        return np.maximum(values, 0.0), vectors

    def shrunk_root(self, alpha: float) -> np.ndarray:
        """R with ‖k_S·R‖² = zᵀ(G + αI)⁻¹z."""
        values, vectors = self._eigh
        return self.root @ (vectors / np.sqrt(values + alpha))


def posterior(made: FeatureMap, problem: Centered, alphas: np.ndarray) -> Posterior:
    """The posterior of a problem that has been solved from its Gram matrix."""
    center, own = np.zeros(len(made.root)), 0.0
    if problem.fit_intercept:
        # z̄ is rootᵀ of the mean of kernel values; that mean is not kept, but any
        # vector with the same rootᵀ does, such as K_SS·root·z̄.
        mean = made.shift @ made.root + problem.feature_mean
        kept = made.factor.eigenvalues[: made.rank]
        center, own = (made.root * kept) @ mean, 1 / problem.total_weight
    scales = np.full(len(alphas), np.nan)
    if np.all(alphas > 0):
        scales = problem.quadratic(alphas) / problem.n_rows
    return Posterior(made.root, problem.gram, center, own, alphas, scales)
