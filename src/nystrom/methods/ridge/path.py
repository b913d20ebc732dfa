"""All of a path of α at once: solutions, residuals and generalised cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...precision import EPS64

#: Residuals that sums over rows tell to this share are not taken from the rows again.
RIGHT = 0.01
#: Degrees of freedom whose square vanishes say nothing.
LEAST_LEFT = 1e-150


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
    most_rank: int  # no more directions do the rows have, less the intercept
    gram_error: float  # how far rounding may have got G

    @property
    def _value_error(self) -> float:
        """How far each of the values may be off: by sums, and by the eigensolver."""
        return self.gram_error + 10 * EPS64 * self.values.max(initial=0.0)

    @property
    def _cut(self) -> float:
        """σ² up to which a direction of G is rounding."""
        largest = float(self.values.max(initial=0.0))
        return max(EPS64 * len(self.values) * largest, self._value_error)

    @cached_property
    def _kept(self) -> int:
        """Directions of G above rounding."""
        return min(int(np.count_nonzero(self.values > self._cut)), self.most_rank)

    @property
    def interpolates(self) -> bool:
        """Whether Z spans all that targets can be: no part of any is outside."""
        return self._kept == self.most_rank

    def coefficients(self, alpha: float, cross: np.ndarray | None = None) -> np.ndarray:
        """θ for one α; among the least-squares solutions the smallest for α = 0.

        An α below rounding is 0 in directions that are noise, and these are left out.
        """
        cross = self.cross if cross is None else cross
        k = self._kept if alpha <= self._cut else len(self.values)
        shrunk = cross[:k] / (self.values[:k] + alpha)[:, None]
        return self.vectors[:, :k] @ shrunk

    def residual_squares(self, alphas: np.ndarray) -> np.ndarray:
        """(a, t): Σ w(y − ŷ)² on the rows themselves.

        What is taken off Σ wy² is b²(σ² + 2α)/(σ² + α)². As b²/σ², less what α leaves
        of it, it would be far off where σ² is rounding beside α. But where the rows are
        interpolated the difference itself is rounding, and b²/σ² all there is.
        """
        k = self._kept
        if self.interpolates:
            fitted = self.cross[:k] ** 2 / self.values[:k, None]  # (k, t)
            shrunk = alphas[:, None] / (self.values[:k] + alphas[:, None])
            return shrunk**2 @ fitted
        taken = self._shares(alphas, lambda v, a: (v + 2 * a) / (v + a) ** 2)
        return np.maximum(0.0, self.target_squares - taken @ self.cross**2)

    def residuals_are_right(self, alphas: np.ndarray) -> bool:
        """Whether rounding may have changed these squares by a hundredth at most."""
        if self.interpolates:
            return True
        off = self._value_error
        wrong = self._shares(
            alphas, lambda v, a: np.minimum(1.0, off / (v + a)) / (v + a)
        )
        rounding = wrong @ self.cross**2 + 10 * EPS64 * self.target_squares
        return bool(np.all(rounding <= RIGHT * self.residual_squares(alphas)))

    def _shares(
        self,
        alphas: np.ndarray,
        share: Callable[[np.ndarray, np.ndarray], np.ndarray],
    ) -> np.ndarray:
        """(a, r): a function of σ² and α; for α = 0 of directions above rounding."""
        v, a = np.broadcast_arrays(self.values, alphas[:, None])
        there = (a > 0) | (np.arange(len(self.values)) < self._kept)
        out = np.zeros(v.shape)
        out[there] = share(v[there], a[there])
        return out

    def degrees_left(self, alphas: np.ndarray) -> np.ndarray:
        """(a,): n − tr K̃(K̃ + αI)⁻¹, less one for an intercept.

        As n less the directions, and what α leaves of each: where there are as many as
        rows the degrees of freedom themselves would leave rounding.
        """
        if self.interpolates:
            used = self.values[: self._kept]
            left = np.sum(alphas[:, None] / (used + alphas[:, None]), axis=1)
            return self.n_rows - self.n_intercepts - len(used) + left
        used_up = self._shares(alphas, lambda v, a: v / (v + a)).sum(axis=1)
        return self.n_rows - self.n_intercepts - used_up

    def gcv(self, alphas: np.ndarray, squares: np.ndarray) -> np.ndarray:
        """(a, t): the mean squared error by generalised cross-validation.

        `squares` are the residuals', from `residual_squares` or from the rows.
        """
        left = self.degrees_left(alphas) / self.n_rows
        # As many degrees of freedom as rows leave 0/0: nothing can be said of such α.
        least = LEAST_LEFT if self.interpolates else EPS64
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = squares / self.weight / left[:, None] ** 2
        return np.where(left[:, None] > least, scores, np.inf)
