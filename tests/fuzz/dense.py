"""Dense float64 answers, and how far rounding may carry the library from them.

Everything here is O(n³) and obvious. With D = diag K, rows and landmarks are looked at
through D^(−½)KD^(−½), in which no row is larger than another: cuts and errors of the
library are relative to k(x, x) too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from nystrom.kernels import Blockwise, Kernel
from nystrom.kernels.base import Product, Scaled, Sum

EPS = {np.dtype(t): float(np.finfo(t).eps) for t in (np.float32, np.float64)}
EPS64 = EPS[np.dtype(np.float64)]
#: What a distance by a product may be off by; see FAR in precision.py.
DISTANCES = 4e-10


class WrongError(AssertionError):
    """An answer that is not the dense one, or is none."""


def require(holds, what):
    """Raise with what is wrong, unless it holds."""
    if not holds:
        raise WrongError(what)


def values(kernel, X, Y) -> np.ndarray:
    """k(X, Y) in float64; of a distance from differences, one row of Y at a time."""
    with np.errstate(all="ignore"):
        if isinstance(kernel, Blockwise) and isinstance(kernel.function, Kernel):
            return values(kernel.function, X, Y)
        if isinstance(kernel, (Sum, Product)):
            left, right = (values(k, X, Y) for k in (kernel.left, kernel.right))
            return left + right if isinstance(kernel, Sum) else left * right
        if isinstance(kernel, Scaled):
            return kernel.factor * values(kernel.kernel, X, Y)
        if not kernel.traits.is_distance_based:
            return np.asarray(kernel(X, Y), dtype=np.float64)
        origin = np.zeros((1, X.shape[1]))
        return np.column_stack([kernel(X - y, origin)[:, 0] for y in Y])


def noise(kernel, X, points, exact, size) -> float:
    """How far values by a product are from those by differences, as a share of size.

    What rounding leaves of a distance depends on the rows; see FAR in precision.py.
    """
    X = sp.csr_array(X) if sp.issparse(X) else X
    with np.errstate(all="ignore"):
        apart = np.abs(np.asarray(kernel(X, points)) - exact)
        return float(np.nanmax(np.where(size > 0, apart / size, 0.0), initial=0.0))


@dataclass(frozen=True, eq=False)
class Dense:
    """K of all rows and the columns of the landmarks, in float64."""

    K: np.ndarray  # (n, n)
    K_S: np.ndarray  # (n, s)
    K_SS: np.ndarray  # (s, s)
    weights: np.ndarray  # (n,)
    unit: float  # the rounding of the library's values, as a share of k(x, x)
    value_unit: float  # the same of those that the landmarks' factor is made of
    found_indefinite: bool  # K, by the library
    rounding: float = EPS64  # of K here

    @classmethod
    def of(cls, case, landmarks) -> Dense:
        """For the landmarks that were chosen in a case."""
        w = np.ones(len(case.rows)) if case.weights is None else case.weights
        found = landmarks.indefinite or "indefinite" in str(landmarks.notes)
        if "matrix" in case.notes:
            given, S = case.notes["matrix"], np.asarray(landmarks.points)
            K, eps = given.astype(np.float64), EPS[given.dtype]
            return cls(K, K[:, S], K[np.ix_(S, S)], w, eps, eps, found, eps)
        k, X, P = landmarks.kernel, case.rows.exact, landmarks.points
        wide = (P.toarray() if sp.issparse(P) else np.asarray(P)).astype(np.float64)
        K, K_S, K_SS = (values(k, A, B) for A, B in ((X, X), (X, wide), (wide, wide)))
        size = np.sqrt(np.abs(np.outer(np.diagonal(K), np.diagonal(K_SS))))
        kept = case.rows.original
        if not isinstance(kept, np.ndarray) and not sp.issparse(kept):
            kept = X.astype(np.float32 if case.rows.narrow else np.float64)
        P64, kept64 = P.astype(np.float64), kept.astype(np.float64)
        wide_unit = max(EPS64, noise(k, kept64, P64, K_S, size))
        unit = max(EPS[np.dtype(k.dtype(P))], noise(k, kept, P, K_S, size), wide_unit)
        return cls(K, K_S, K_SS, w, unit, wide_unit, found)

    @property
    def finite(self) -> bool:
        """Whether no kernel value overflows."""
        return all(np.all(np.isfinite(M)) for M in (self.K, self.K_S, self.K_SS))

    @cached_property
    def indefinite(self) -> bool:
        """Whether K is, of which a few landmarks may show nothing.

        Also as D^(−½)KD^(−½), where large rows do not hide small ones.
        """
        if self.found_indefinite or not self.finite:
            return self.found_indefinite
        keep = self.diagonal > 0
        root = np.sqrt(self.diagonal[keep])
        scaled = self.K[np.ix_(keep, keep)] / np.outer(root, root)
        return any(
            len(found) > 0
            and found[0] < -10 * len(self.K) * self.rounding * np.abs(found).max()
            for found in map(np.linalg.eigvalsh, (self.K, scaled))
        )

    @property
    def diagonal(self) -> np.ndarray:
        """k(x, x)."""
        return np.abs(np.diagonal(self.K))

    @cached_property
    def trace(self) -> float:
        """Σ w·k(x, x)."""
        return float(self.weights @ self.diagonal)

    @property
    def size(self) -> int:
        """s."""
        return len(self.K_SS)

    @cached_property
    def normalized(self) -> np.ndarray:
        """Eigenvalues of D^(−½)K_SSD^(−½), ascending; landmarks with k = 0 left out."""
        d = np.diagonal(self.K_SS)
        keep = d > 0
        root = np.sqrt(d[keep])
        return np.linalg.eigvalsh(self.K_SS[np.ix_(keep, keep)] / np.outer(root, root))

    @property
    def least_rank(self) -> int:
        """Landmarks that are dropped leave s·10·(eps + s·eps64) of D^(−½)K_SSD^(−½).

        So (by Weyl) as many columns are kept as there are eigenvalues above that; twice
        as much for the rounding of its entries.
        """
        s = self.size
        return int(np.sum(self.normalized > 20 * s * (self.value_unit + s * EPS64)))

    @cached_property
    def slack(self) -> float:
        """How far ‖z‖²/k(x, x) may be off: 3·s·unit/λ_min to first order, tenfold.

        z = k_S·L⁻ᵀ, and δ‖z‖² ≤ 2‖z‖·‖δk_S‖·‖L⁻¹‖ + ‖z‖²·‖δK_SS‖·‖L⁻¹‖². Where K_SS is
        singular nothing follows from that: inf.
        """
        if len(self.normalized) < self.size or self.normalized[0] <= 0:
            return np.inf
        unit = self.unit + self.size * EPS64
        return 30 * self.size * unit / float(self.normalized[0])

    @property
    def overshoot(self) -> float:
        """How much of k(x, x) the features may have too much.

        A column is what is left of a landmark, above 10 units, so that rounding of one
        unit is at most √(unit/10) in each entry: 2·s·√(unit/10) in the square of s, and
        fiftyfold for what one column hands on to the next.
        """
        root = 40 * self.size * np.sqrt(self.unit + self.size * EPS64)
        return float(min(self.slack, root)) + 20 * self.size * self.unit

    @cached_property
    def features(self) -> np.ndarray:
        """Z, where K_SS is not singular."""
        root = np.sqrt(np.diagonal(self.K_SS))
        L = np.linalg.cholesky(self.K_SS / np.outer(root, root))
        return scipy.linalg.solve_triangular(L, (self.K_S / root).T, lower=True).T

    @property
    def left(self) -> np.ndarray:
        """k(x, x) − k̃(x, x) of each row, where K_SS is not singular."""
        return self.diagonal - np.sum(self.features**2, axis=1)

    def share(self, left) -> float:
        """A sum over rows as a share of tr K."""
        return float(self.weights @ left) / self.trace if self.trace > 0 else 0.0

    @cached_property
    def best(self) -> float:
        """The relative trace error of the best approximation of this rank."""
        root = np.sqrt(self.weights)
        found = np.linalg.eigvalsh(self.K * np.outer(root, root))
        few = found[: max(0, len(found) - self.size)]
        return float(np.maximum(few, 0.0).sum()) / self.trace if self.trace > 0 else 0.0

    def ridge(self, Y, alphas, center) -> np.ndarray:
        """Predictions of ridge regression on Z, each target with its own alpha."""
        w = self.weights / self.weights.sum()
        Z, mean = self.features, np.zeros(Y.shape[1])
        if center:
            Z, mean = Z - w @ Z, w @ Y
        root = np.sqrt(self.weights)[:, None]
        U, sigma, V = np.linalg.svd(root * Z, full_matrices=False)
        shrunk = sigma[:, None] / (sigma[:, None] ** 2 + alphas)
        return mean + Z @ (V.T @ (shrunk * (U.T @ (root * (Y - mean)))))

    def full(self, Y, alphas, center) -> np.ndarray:
        """Predictions of ridge regression on K itself, each target with its alpha."""
        root = np.sqrt(self.weights)[:, None]
        H = np.eye(len(Y))
        if center:
            H -= root @ root.T / self.weights.sum()
        values, vectors = np.linalg.eigh(H @ (root * self.K * root.T) @ H)
        shrunk = 1 / (np.maximum(values, 0.0)[:, None] + alphas)
        x = H @ vectors @ (shrunk * (vectors.T @ (H @ (root * Y))))
        found = self.K @ (root * x)
        mean = self.weights @ (Y - found) / self.weights.sum() if center else 0.0
        return found + mean
