"""Residuals k(x, x) − ‖k_S(x)B‖² and ridge leverage scores, from a sample or exact.

With B from SᵀKS + λI the residuals over λ are the scores of Lemma 6; with B = L⁻ᵀ
they are the diagonal of K − K̃. `KernelSpectrum` gives exact scores from the
eigenvalues of K.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from sklearn import get_config

from .. import _arrays as arrays
from .. import _precision as precision
from .._precision import EPS64, entry_roundoff, is_indefinite, min_cholesky_ridge
from .._validation import check_finite
from ..engines import Engine
from ..kernels import Kernel
from ..sources import Block, Source
from ..sources.base import are_unit_weights
from ..sources.output import ArraySink
from .cross_kernel import CrossKernel, Ledger, diag_float64, probe_rows
from .factor import ColumnBlocks


@dataclass(frozen=True)
class ResidualPass:
    """k(x, x) − ‖k_S(x)B‖² of rows x, in the precision that it takes."""

    columns: CrossKernel
    B: ColumnBlocks
    rounding: float = 0.0  # a residual below this share of k(x, x) is 0
    widened: bool = False  # float32 is not enough: the pass runs in float64


def prepare_residuals(
    columns: CrossKernel,
    source: Source,
    B: np.ndarray,
    *,
    ledger: Ledger | None = None,
    rounding: float = 0.0,
) -> ResidualPass:
    """Decide the precision of a residual pass over a source.

    float32 rows are worked on in float32 as long as a few rows, evaluated in both
    precisions, show that rounding stays well below the residuals themselves.
    """
    widened = False
    too_few = columns.narrow and precision.too_few_to_probe(source.n_rows)
    if columns.narrow and not too_few and len(B):
        if ledger is not None:
            ledger.count_evaluations(2 * precision.N_PROBE_ROWS * (len(B) + 1))
        widened = _needs_float64(columns, source, B)
    columns = columns.widened() if too_few or widened else columns
    B_blocks = ColumnBlocks.from_matrix(B, columns.dtype)
    return ResidualPass(columns, B_blocks, rounding, widened)


def residuals(
    prepared: ResidualPass, source: Source, *, engine: Engine, name: str
) -> np.ndarray:
    """k(x, x) − ‖k_S(x)B‖² of every row of a source: (n,), float64."""
    sink = ArraySink((source.n_rows,))
    engine.map(block_residuals, source, sink, (prepared,), name)
    if not np.isfinite(sink.array.sum()):
        check_finite(sink.array)
    return sink.array


def block_residuals(block: Block, prepared: ResidualPass) -> np.ndarray:
    """k(x, x) − ‖k_S(x)B‖² of each row of a block; 0 where it is rounding."""
    columns, B = prepared.columns, prepared.B
    diagonal = diag_float64(columns.kernel, block.X)
    if not B.n_columns:  # an empty sample leaves all of k(x, x)
        return arrays.to_host(diagonal)
    K = columns(block.X)
    row_residuals = diagonal - B.squared_norms(K)
    # A residual below rounding is 0; the mean of noise is not.
    floor = max(precision.block_residual_rounding(K.dtype, K), prepared.rounding)
    row_residuals[row_residuals < floor * abs(diagonal)] = 0.0
    return arrays.to_host(row_residuals)


def _needs_float64(columns: CrossKernel, source: Source, B: np.ndarray) -> bool:
    probes = probe_rows(source)
    block = probes.block(0, probes.n_rows)
    with np.errstate(over="ignore", invalid="ignore"):
        narrow, wide = (
            block_residuals(
                block, ResidualPass(c, ColumnBlocks.from_matrix(B, c.dtype))
            )
            for c in (columns, columns.widened())
        )
    return precision.residuals_need_float64(narrow, wide)


def weighted_gram(K: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """SᵀKS for the sampling matrix with these weights: wᵢ·wⱼ·kᵢⱼ."""
    with np.errstate(over="ignore"):
        return K * weights[:, None] * weights[None, :]


def tail_ridge(SKS: np.ndarray, rank: int) -> float:
    """λ = (1/k)·Σ_{i>k} σᵢ(SᵀKS).

    Where the sample has rank ≤ k the tail is rounding noise of either sign; λ is then
    the least ridge at which SᵀKS + λI is safely definite.
    """
    values = np.linalg.eigvalsh(SKS)
    tail = float(values[: max(0, len(values) - rank)].sum())
    return max(tail / rank, min_cholesky_ridge(SKS))


def ridge_inverse_root(
    SKS: np.ndarray, weights: np.ndarray, ridge: float
) -> np.ndarray:
    """B, upper triangular, with K_S B Bᵀ K_Sᵀ = KS(SᵀKS + λI)⁻¹SᵀK.

    K_S here are the unweighted columns: the weights are in B.
    """
    try:
        L = np.linalg.cholesky(SKS + ridge * np.eye(len(SKS)))
    except np.linalg.LinAlgError:
        # Entries rounded to float32 can make SᵀKS more indefinite than λ makes up for.
        safe = ridge - 2 * float(np.linalg.eigvalsh(SKS)[0])
        L = np.linalg.cholesky(SKS + safe * np.eye(len(SKS)))
    return scipy.linalg.solve_triangular(
        L, np.diag(weights), lower=True, overwrite_b=True
    ).T


def residuals_to_scores(
    residual: np.ndarray, weights: np.ndarray, ridge: float
) -> np.ndarray:
    """l̃ of rows (Lemma 6) of which the weighted sample leaves so much; in place.

    Rows of weight w count as w rows: their scores are those of W^½KW^½.
    """
    with np.errstate(over="ignore"):  # a sample of zeros leaves λ at the least number
        residual /= ridge
        if not are_unit_weights(weights):
            residual *= weights
    # Whatever is this far beyond 1 is certain to be sampled, and sums must stay finite.
    return np.minimum(residual, 1 / EPS64, out=residual)


def kernel_matrix(kernel: Kernel, source: Source) -> np.ndarray:
    """All of K (of W^½KW^½ for weighted rows), for exact scores of few rows."""
    n = source.n_rows
    memory_mib = get_config()["working_memory"]
    if 8 * n * n > memory_mib * 2**20:
        raise ValueError(
            f"Exact leverage scores need the whole {n} × {n} kernel matrix, "
            f"{8 * n * n / 2**20:.0f} MiB, and working_memory is {memory_mib} MiB. "
            "Estimate them from landmarks (landmarks=..., sampler='recursive'), use "
            "fewer rows, or raise sklearn.set_config(working_memory=...)."
        )
    K = kernel.gram(source.rows(0, n))
    if source.is_weighted:
        K = weighted_gram(K, np.sqrt(source.weights))
    check_finite(K)
    return K


@dataclass(frozen=True)
class KernelSpectrum:
    """The eigendecomposition of a whole kernel matrix, and exact scores from it."""

    eigenvalues: np.ndarray  # (n,), descending, not negative
    squared_eigenvectors: np.ndarray  # (n, n), entry by entry
    indefinite: bool  # a negative eigenvalue beyond rounding

    @classmethod
    def from_kernel_matrix(
        cls, K: np.ndarray, dtype: Any = np.float64
    ) -> KernelSpectrum:
        """The spectrum of K, evaluated in `dtype`; negative eigenvalues count as 0."""
        values, vectors = np.linalg.eigh(K)
        np.square(vectors, out=vectors)
        indefinite = is_indefinite(values, entry_roundoff(K, dtype))
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
