"""Landmarks as pivots of a Cholesky factorisation: in order, with the factor so far.

K_SS = LLᵀ in the order of choice. Row x then has the factor row f = k_xS L⁻ᵀ, and
k(x, x) − ‖f‖² is what the pivots leave of it. Everything here is float64: a pivot is
chosen by what is left, the small difference of two numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from .. import _arrays as arrays
from ..engines import Engine
from ..factor import check_finite
from ..kernels import Kernel
from ..landmarks import Landmarks
from ..leverage import Residuals, residuals
from ..randomness import Purpose, race, uniforms
from ..sources import Source

#: What is left of k(x, x) below so many units of rounding is nothing: of the kernel's
#: blocks once, and of the factor for each landmark.
ROUNDING_UNITS = 10


class Pivots:
    """The rows chosen so far, and the Cholesky factor of their kernel matrix."""

    def __init__(self, kernel: Kernel, source: Source) -> None:
        self.kernel, self.source = kernel, source
        self.indices = np.empty(0, dtype=np.intp)
        self.L = np.empty((0, 0))
        self.n_evaluations = 0
        self.widened = False  # a pass over float32 rows ran in float64

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def points(self) -> Any:
        """The pivots themselves."""
        return self.source.take(self.indices)

    @property
    def root(self) -> np.ndarray:
        """B = L⁻ᵀ, upper triangular: a row's factor row is k_xS·B."""
        return scipy.linalg.solve_triangular(self.L, np.eye(len(self)), lower=True).T

    def evaluator(self) -> Callable:
        """X ↦ k(X, pivots), for rows in float64."""
        return self.kernel.against(arrays.widen(self.points))

    def factor_rows(self, X: Any) -> np.ndarray:
        """k_xS L⁻ᵀ for each row x of X."""
        if not len(self):
            return np.empty((_length(X), 0))
        K = arrays.host_values(self.evaluator()(arrays.widen(X)))
        self.n_evaluations += K.size
        check_finite(K)
        return scipy.linalg.solve_triangular(self.L, K.T, lower=True).T

    def residual_matrix(self, X: Any, F: np.ndarray) -> np.ndarray:
        """What is left of kernel(X, X), for few rows with factor rows F."""
        K = self.kernel.gram(X)
        self.n_evaluations += self.kernel.gram_evaluations(len(K))
        check_finite(K)
        return K - F @ F.T

    def add(
        self, indices: np.ndarray, least: float = 0.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Make these rows pivots, but for those of which nothing is left.

        Nothing is a share `least` of k(x, x), or rounding if that is more. Returns
        which of them they are, as places in `indices`, and their own block of the
        factor.
        """
        X = self.source.take(indices)
        F = self.factor_rows(X)
        P = self.residual_matrix(X, F)
        diagonal = np.diagonal(P) + np.vecdot(F, F)
        unit = rounding_unit(self.kernel, X, len(self) + len(P))
        kept, corner = cholesky(P, max(unit, least) * np.abs(diagonal))
        self.extend(indices[kept], F[kept], corner)
        return kept, corner

    def extend(self, indices: np.ndarray, F: np.ndarray, corner: np.ndarray) -> None:
        """Add pivots with factor rows F; corner·cornerᵀ is what was left of them."""
        k, b = len(self), len(indices)
        L = np.zeros((k + b, k + b))
        L[:k, :k], L[k:, :k], L[k:, k:] = self.L, F, corner
        self.L = L
        self.indices = np.concatenate([self.indices, indices])

    def shorten(self, size: int) -> None:
        """Keep the first `size` pivots."""
        self.indices, self.L = self.indices[:size], self.L[:size, :size]

    def residuals(
        self, source: Source, engine: Engine, stage: str = "residuals"
    ) -> np.ndarray:
        """What the pivots leave of k(x, x), for every row of a source."""
        points = self.points
        left: Residuals = residuals(
            self.kernel,
            source,
            points,
            self.root,
            engine=engine,
            triangular=True,
            rounding=rounding_unit(self.kernel, points, len(self)),
            stage=stage,
        )
        self.n_evaluations += left.n_evaluations
        self.widened |= left.widened
        return left.values

    def fill(self, size: int, seed: int) -> None:
        """Uniform rows up to `size`, where nothing is left to choose by.

        They add nothing to K̃, hence nothing to L: no pivot can follow.
        """
        missing = min(size, self.source.n_rows) - len(self)
        if missing > 0:
            free = np.ones(self.source.n_rows)
            free[self.indices] = 0
            u = uniforms(seed, Purpose.FILL, 0, len(free))
            self.indices = np.concatenate([self.indices, race(free, u, missing)[0]])

    def landmarks(self, sampler: str, **facts: Any) -> Landmarks:
        """The pivots as every sampler returns them."""
        notes = ("residuals in float64",) if self.widened else ()
        return Landmarks(
            points=self.points,
            kernel=self.kernel,
            sampler=sampler,
            n_rows=self.source.n_rows,
            indices=self.indices,
            n_kernel_evaluations=self.n_evaluations,
            notes=notes,
            **facts,
        )


def rounding_unit(kernel: Kernel, X: Any, size: int) -> float:
    """Below this share of it, what `size` pivots leave of k(x, x) is rounding."""
    eps = arrays.epsilon(kernel.dtype(X)) + size * arrays.epsilon(np.float64)
    return ROUNDING_UNITS * eps


def cholesky(P: np.ndarray, floor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The factor of P in its own order, less the rows left at their floor or below.

    Returns the rows kept and the factor of their part of P.
    """
    kept: list[int] = []
    V = np.zeros_like(P)
    for j in range(len(P)):
        column = P[:, j] - V[:, : len(kept)] @ V[j, : len(kept)]
        if column[j] > floor[j]:
            V[:, len(kept)] = column / np.sqrt(column[j])
            kept.append(j)
    return np.array(kept, dtype=np.intp), np.tril(V[kept, : len(kept)])


def _length(X: Any) -> int:
    return X.shape[0] if hasattr(X, "shape") else len(X)
