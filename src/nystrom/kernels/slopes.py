"""How a kernel of a distance changes with its widths.

The kernel is a profile of A = Σⱼ tⱼδⱼ(x, y), where δⱼ is what feature j adds to the
kernel's own argument and tⱼ how many times its width is changed. So ∂k/∂log tⱼ is the
profile's slope at A times tⱼδⱼ. In float64 and NumPy, for few rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from .base import Kernel
from .entrywise import Laplacian
from .euclidean import Euclidean

#: Σ Gᵢₖ ∂kᵢₖ/∂log tⱼ for each j, given G.
Pull = Callable[[np.ndarray], np.ndarray]


def has_slopes(kernel: Kernel) -> bool:
    """Whether the kernel is one of those that this file knows."""
    return isinstance(kernel, (Euclidean, Laplacian))


def power_of(kernel: Kernel) -> int:
    """How δⱼ grows with the scale of feature j: a square, or as that itself."""
    return 2 if isinstance(kernel, Euclidean) else 1


class Pairs:
    """Rows with the first of them, under a kernel whose widths change.

    With `each` there is one t per feature, else one for all.
    """

    def __init__(self, kernel: Any, X: Any, n_first: int, *, each: bool) -> None:
        self.kernel, self.each = kernel, each
        self.squared = isinstance(kernel, Euclidean)
        c, scale = kernel._distance if self.squared else (-1.0, kernel.gamma)
        self.sign = np.sign(c)
        by = np.sqrt(np.abs(c)) * np.asarray(scale)
        self.X = _times(X, by)
        self.Y = arrays.slice_rows(self.X, 0, n_first)
        self._whole = None if each else self._distances(np.ones(1))

    def at(self, t: np.ndarray) -> tuple[np.ndarray, Pull]:
        """The kernel's values, and what a change of log t does to a sum of them."""
        A = self._distances(t) if self._whole is None else t[0] * self._whole
        A *= self.sign
        K = self._profile(A.copy())

        def pull(G: np.ndarray) -> np.ndarray:
            M = G * self._slope(A)
            if not self.each:
                return np.array([np.vdot(M, A)])
            return self.sign * t * self._moments(M)

        return K, pull

    def _profile(self, A: np.ndarray) -> np.ndarray:
        return self.kernel._profile(A) if self.squared else np.exp(A)

    def _slope(self, A: np.ndarray) -> np.ndarray:
        return self.kernel._slope(A) if self.squared else np.exp(A)

    def _distances(self, t: np.ndarray) -> np.ndarray:
        """Σⱼ tⱼδⱼ without its sign."""
        if not self.squared:
            return arrays.cityblock(_times(self.X, t), _times(self.Y, t))
        X, Y = (_times(rows, np.sqrt(t)) for rows in (self.X, self.Y))
        A = arrays.dot(X, Y)
        A *= -2
        A += arrays.squared_norms(X)[:, None]
        A += arrays.squared_norms(Y)
        np.fill_diagonal(A, 0.0)  # not rounding, of which Matérn takes the root
        return np.maximum(A, 0.0, out=A)

    def _moments(self, M: np.ndarray) -> np.ndarray:
        """Σ Mᵢₖ δⱼ(xᵢ, yₖ) for each feature j."""
        X, Y = self.X, self.Y
        if self.squared:
            mixed = np.einsum("ij,ij->j", M @ Y, X)
            return M.sum(axis=1) @ X**2 + M.sum(axis=0) @ Y**2 - 2 * mixed
        return np.array(
            [
                np.vdot(M, np.abs(np.subtract.outer(X[:, j], Y[:, j])))
                for j in range(X.shape[1])
            ]
        )


def _times(X: Any, by: np.ndarray) -> Any:
    return sp.csr_array(X.multiply(by)) if sp.issparse(X) else X * by
