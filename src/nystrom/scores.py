"""Ridge leverage scores and effective dimension, exact and from a sample.

The λ-ridge leverage score of row i is lᵢ = (K(K + λI)⁻¹)ᵢᵢ (Definition 1), and their
sum is the effective dimension (Fact 2). From a weighted sample S of the rows, Lemma 6
(section 4.2) gives an estimate with s kernel evaluations per row,

    l̃ᵢ = (1/λ)·(kᵢᵢ − k_iS (SᵀKS + λI)⁻¹ k_Si) = (1/λ)·(kᵢᵢ − ‖k_iS B‖²),

with B from one small factorisation. It is never below lᵢ when S has weights 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import get_config

from .engines import Engine
from .kernels import Kernel
from .precision import EPS64, is_indefinite, rounding_of
from .refusals import check_finite
from .residuals import Pass, residuals
from .ridge_root import weighted
from .sources import Source
from .sources import weights as row_weights


def sample_scores(
    ready: Pass, source: Source, ridge: float, *, engine: Engine, name: str = "scores"
) -> np.ndarray:
    """l̃ᵢ of every row from a weighted sample (Lemma 6).

    Rows of weight w count as w rows: their scores are those of W^½KW^½.
    """
    left = residuals(ready, source, engine=engine, name=name)
    return as_scores(left, source.weights, ridge)


def as_scores(left: np.ndarray, weights: np.ndarray, ridge: float) -> np.ndarray:
    """l̃ of rows of which the sample leaves so much; in place."""
    with np.errstate(over="ignore"):  # a sample of zeros leaves λ at the least number
        left /= ridge
        if not row_weights.all_alike(weights):
            left *= weights
    # Whatever is this far beyond 1 is certain to be taken, and sums must stay finite.
    return np.minimum(left, 1 / EPS64, out=left)


def kernel_matrix(kernel: Kernel, source: Source) -> np.ndarray:
    """All of K (of W^½KW^½ for weighted rows), for exact scores of few rows."""
    n = source.n_rows
    budget = get_config()["working_memory"]
    if 8 * n * n > budget * 2**20:
        raise ValueError(
            f"Exact leverage scores need the whole {n} × {n} kernel matrix, "
            f"{8 * n * n / 2**20:.0f} MiB, and working_memory is {budget} MiB. "
            "Estimate them from landmarks (landmarks=..., sampler='recursive'), use "
            "fewer rows, or raise sklearn.set_config(working_memory=...)."
        )
    K = kernel.gram(source.rows(0, n))
    if source.is_weighted:
        K = weighted(K, np.sqrt(source.weights))
    check_finite(K)
    return K


@dataclass(frozen=True)
class Spectrum:
    """The eigendecomposition of a whole kernel matrix, and exact scores from it."""

    eigenvalues: np.ndarray  # (n,), descending, not negative
    squared_eigenvectors: np.ndarray  # (n, n), entry by entry
    indefinite: bool  # a negative eigenvalue beyond rounding

    @classmethod
    def of(cls, K: np.ndarray, dtype: Any = np.float64) -> Spectrum:
        """The spectrum of K, evaluated in `dtype`; negative eigenvalues count as 0."""
        values, vectors = np.linalg.eigh(K)
        np.square(vectors, out=vectors)
        indefinite = is_indefinite(values, rounding_of(K, dtype))
        return cls(np.maximum(values[::-1], 0.0), vectors[:, ::-1], indefinite)

    def scores(self, ridge: float) -> np.ndarray:
        """lᵢ = (K(K + λI)⁻¹)ᵢᵢ."""
        shrunk = self.eigenvalues / (self.eigenvalues + ridge)
        return np.clip(self.squared_eigenvectors @ shrunk, 0.0, 1.0)

    def effective_dimension(self, ridge: float) -> float:
        """tr K(K + λI)⁻¹."""
        return float(np.sum(self.eigenvalues / (self.eigenvalues + ridge)))

    def tail_ridge(self, rank: int) -> float:
        """λ = (1/k)·Σ_{i>k} σᵢ, at least the rounding error of K."""
        tail = float(self.eigenvalues[rank:].sum()) / rank
        rounding = EPS64 * float(self.eigenvalues.sum())
        return max(tail, rounding, np.finfo(np.float64).tiny)
