"""Ridge leverage scores, residual diagonal and effective dimension.

The λ-ridge leverage score of row i is lᵢ = (K(K + λI)⁻¹)ᵢᵢ (Definition 1), and their
sum is the effective dimension. From a weighted sample S of the rows, section 3.2's
Lemma gives an estimate with s kernel evaluations per row,

    l̃ᵢ = (1/λ)·(kᵢᵢ − k_iS (SᵀKS + λI)⁻¹ k_Si) = (1/λ)·(kᵢᵢ − ‖k_iS B‖²),

with B from one small factorisation. It is never below lᵢ when S has weights 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import get_config

from . import _arrays as arrays
from ._arrays import Array
from .engines import Engine
from .factor import (
    check_finite,
    is_indefinite,
    ridge_root,
    rounding_of,
    weighted,
)
from .kernels import Kernel
from .randomness import some_rows
from .sinks import ArraySink
from .sources import Block, Source

#: Rows on which float32 is compared with float64 before a pass in float32.
CHECKED_ROWS = 256
#: The pass stays in float32 while its error, root mean square over the checked rows, is
#: at most this share of the mean residual.
FLOAT32_ERROR = 0.02
#: Rows behind a quick estimate of the effective dimension.
SPECTRUM_ROWS = 1000
#: A triangular factor is multiplied in so many column blocks, skipping most zeros.
COLUMN_BLOCKS = 4


@dataclass(frozen=True)
class Residuals:
    """kᵢᵢ − ‖k_iS B‖² for all rows, and what it took."""

    values: np.ndarray  # (n,) float64, none negative
    n_evaluations: int
    widened: bool  # float32 was tried and failed: the pass ran in float64


def residuals(
    kernel: Kernel,
    source: Source,
    points: Any,
    B: np.ndarray,
    *,
    engine: Engine,
    triangular: bool = False,
    rounding: float = 0.0,
    stage: str = "residuals",
) -> Residuals:
    """The part of k(x, x) that the points leave over, for each row x.

    float32 rows are worked on in float32 as long as a few rows, tried in both
    precisions, show that rounding stays well below the residuals themselves. What is
    left below `rounding`, a share of k(x, x), counts as nothing.
    """
    n, s = source.n_rows, B.shape[0]
    n_evaluations, widened = n * (s + 1), False
    narrow = kernel.dtype(points) == np.float32
    # With few rows the check would cost as much as it saves.
    few = narrow and n <= 4 * CHECKED_ROWS
    if narrow and not few and s:
        widened = _float32_fails(kernel, source, points, B, triangular)
        n_evaluations += 2 * CHECKED_ROWS * (s + 1)
    wide = few or widened
    shared = (*_prepared(kernel, points, B, triangular, wide=wide), rounding)
    sink = ArraySink((n,))
    engine.map(_residual, source, sink, shared, stage)
    if not np.isfinite(sink.array.sum()):
        check_finite(sink.array)
    return Residuals(sink.array, n_evaluations, widened)


def _prepared(
    kernel: Kernel, points: Any, B: np.ndarray, triangular: bool, wide: bool
) -> tuple:
    """What every tile of a residual pass shares."""
    s, r = B.shape
    if s == 0:  # an empty sample leaves all of k(x, x)
        return kernel, None, [], wide
    points = arrays.widen(points) if wide else points
    width = -(-r // COLUMN_BLOCKS) if triangular else r
    like = kernel.like(points)
    dtype = np.dtype(np.float64) if wide else kernel.dtype(points)
    parts = []
    for left in range(0, r, max(1, width)):
        right = min(left + width, r)
        rows = right if triangular else s
        parts.append(arrays.from_host(B[:rows, left:right], like, dtype))
    return kernel, kernel.against(points), parts, wide


def _residual(
    block: Block,
    kernel: Kernel,
    evaluate: Any,
    parts: list[Array],
    wide: bool,
    rounding: float = 0.0,
) -> np.ndarray:
    # Rows are copied to float64 here, the kernel's own results (precomputed) below.
    X = arrays.widen(block.X) if wide else block.X
    diagonal = arrays.host_values(kernel.diag(X))
    if not parts:
        return diagonal
    K = evaluate(X)
    K = arrays.widen(K) if wide else K
    left = diagonal.copy()
    for part in parts:
        left -= arrays.to_host(arrays.squared_norms(K[:, : part.shape[0]] @ part))
    # What is left below rounding is nothing; the mean of noise is not.
    least = max(10 * arrays.epsilon(K.dtype, K), rounding)
    left[left < least * np.abs(diagonal)] = 0.0
    return left


def _float32_fails(
    kernel: Kernel, source: Source, points: Any, B: np.ndarray, triangular: bool
) -> bool:
    n = source.n_rows
    rows = np.arange(CHECKED_ROWS) * n // CHECKED_ROWS
    block = Block(0, source.take(rows))
    narrow, wide = (
        _residual(block, *_prepared(kernel, points, B, triangular, wide=w))
        for w in (False, True)
    )
    error = np.sqrt(np.mean((narrow - wide) ** 2))
    # `not ≤`, so that nan counts as a failure.
    return not error <= FLOAT32_ERROR * wide.mean()


def diagonal(kernel: Kernel, source: Source, *, engine: Engine) -> np.ndarray:
    """k(x, x) of every row."""
    sink = ArraySink((source.n_rows,))
    engine.map(_diagonal, source, sink, (kernel,), "diagonal")
    if not np.isfinite(sink.array.sum()):
        check_finite(sink.array)
    return sink.array


def _diagonal(block: Block, kernel: Kernel) -> np.ndarray:
    return arrays.host_values(kernel.diag(block.X))


def sample_scores(
    kernel: Kernel,
    source: Source,
    points: Any,
    SKS: np.ndarray,
    weights: np.ndarray,
    ridge: float,
    *,
    engine: Engine,
    stage: str = "scores",
) -> tuple[np.ndarray, Residuals]:
    """l̃ᵢ of every row from a weighted sample (the Lemma), and what the pass took.

    `SKS` is the weighted matrix SᵀKS. Rows of weight w count as w rows: their scores
    are those of W^½KW^½.
    """
    B = ridge_root(SKS, weights, ridge)
    left = residuals(
        kernel, source, points, B, engine=engine, triangular=True, stage=stage
    )
    scores = left.values  # in place: n numbers are the most that is in memory
    with np.errstate(over="ignore"):  # a sample of zeros leaves λ at the least number
        scores /= ridge
    if source.weights is not None:
        scores *= source.weights
    # Whatever is this far beyond 1 is certain to be taken, and sums must stay finite.
    return np.minimum(scores, 1 / arrays.epsilon(np.float64), out=scores), left


def kernel_matrix(kernel: Kernel, source: Source) -> np.ndarray:
    """All of K (of W^½KW^½ for weighted rows), for exact scores of few rows."""
    n = source.n_rows
    budget = get_config()["working_memory"]
    if 8 * n * n > budget * 2**20:
        raise ValueError(
            f"Exact leverage scores need the whole {n} × {n} kernel matrix, "
            f"{8 * n * n / 2**30:.1f} GiB, and working_memory is {budget} MiB. "
            "Estimate them from landmarks (landmarks=..., sampler='recursive'), use "
            "fewer rows, or raise sklearn.set_config(working_memory=...)."
        )
    K = kernel.gram(source.rows(0, n))
    check_finite(K)
    return K if source.weights is None else weighted(K, np.sqrt(source.weights))


def sampled_effective_dimension(kernel: Kernel, source: Source, ridge: float) -> float:
    """An estimate of d_eff(λ) from the eigenvalues of few rows, scaled up.

    Quick, and too small where d_eff is not far below the number of rows tried.
    """
    rows = some_rows(source.n_rows, SPECTRUM_ROWS)
    K = kernel.gram(source.take(rows))
    check_finite(K)
    total = float(source.n_rows)
    if source.weights is not None:
        K = weighted(K, np.sqrt(source.weights[rows]))
    values = np.maximum(np.linalg.eigvalsh(K), 0.0) * (total / len(rows))
    return float(np.sum(values / (values + ridge)))


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
        rounding = arrays.epsilon(np.float64) * float(self.eigenvalues.sum())
        return max(tail, rounding, np.finfo(np.float64).tiny)
