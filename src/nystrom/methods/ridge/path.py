"""All of a path of α at once: solutions, residuals and generalised cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...precision import EPS64


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
    gram_error: float  # how far rounding may have got G

    @property
    def _cut(self) -> float:
        """σ² up to which a direction of G is rounding."""
        largest = float(self.values.max(initial=0.0))
        return max(EPS64 * len(self.values) * largest, self.gram_error)

    @cached_property
    def _kept(self) -> int:
        """Directions of G above rounding."""
        return int(np.count_nonzero(self.values > self._cut))

    def coefficients(self, alpha: float, cross: np.ndarray | None = None) -> np.ndarray:
        """θ for one α; among the least-squares solutions the smallest for α = 0.

        An α below rounding is 0 in directions that are noise, and these are left out.
        """
        cross = self.cross if cross is None else cross
        k = self._kept if alpha <= self._cut else len(self.values)
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
        return np.where(left[:, None] > EPS64, scores, np.inf)
