"""The approximation K̃ = ZZᵀ as a linear operator, with its exact errors.

Nothing of size n × s is kept: each method is one or two passes over the rows. ‖K −
K̃‖₂ is bounded by Lanczos on all rows or on a sample of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator
from sklearn import get_config

from .. import _arrays as arrays
from .._arrays import Array, DeviceConstant
from .._precision import EPS64, residual_rounding
from .._random import sorted_row_sample
from .._validation import check_finite, check_int, check_positive
from ..engines import Engine
from ..engines.blas import blas_limit_for_size
from ..landmarks import Landmarks
from ..sources import Block, CachedRows, Source
from ..sources.base import weighted_sum
from ..sources.output import ArraySink
from .cross_kernel import CrossKernel, kernel_diagonal
from .errors import TraceError, top_eigenpair
from .features import BlockFeatures, FeatureMap, features, features_need_float64
from .moments import moments
from .residuals import prepare_residuals, residuals


@dataclass(frozen=True)
class SpectralError:
    """Bounds of the spectral error ‖K − K̃‖₂.

    Attributes
    ----------
    lower : float
        Norm of the residual on the rows used (a Ritz value), never above ‖K − K̃‖₂.
    upper : float
        The trace error tr(K − K̃), never below ‖K − K̃‖₂.
    n_rows : int
        Number of rows used.
    exact : bool
        Whether all rows were used; `lower` is then the norm itself, to 1e-3.
    estimate : float
        `lower` times n/n_rows. An estimate without a bound.
    """

    lower: float
    upper: float
    n_rows: int
    exact: bool
    estimate: float

    def __float__(self) -> float:
        return self.lower


def residual_operator(
    landmarks: Landmarks, source: Source, engine: Engine
) -> LinearOperator:
    """W^½(K − ZZᵀ)W^½ on some rows, held in memory if it fits, else computed anew."""
    n = source.n_rows
    K = BlockFeatures(CrossKernel(landmarks.kernel, source.rows(0, n), wide=True))
    # On the device of the rows: Lanczos multiplies n numbers at a time.
    like = landmarks.kernel.output_like(source.rows(0, 1))
    float64 = arrays.library_dtype(np.dtype(np.float64), like)
    sink = ArraySink((n, landmarks.rank), like, float64)
    K_S = BlockFeatures(landmarks.columns(wide=True))
    shared = (K_S, DeviceConstant(landmarks.factor.root))
    engine.map(_block_product, source, sink, shared, "features of the rows")
    Z, matrix = sink.array, None
    if 8 * n * n <= get_config()["working_memory"] * 2**20:
        kernel_sink = ArraySink((n, n), like, float64)
        engine.map(_block_values, source, kernel_sink, (K,), "kernel matrix")
        matrix = kernel_sink.array
        matrix -= Z @ Z.T

    def multiply(v: np.ndarray) -> np.ndarray:
        root = np.sqrt(source.weights).reshape((-1,) + (1,) * (v.ndim - 1))
        v = root * v
        device_v = arrays.from_host(v, Z)
        if matrix is not None:
            return root * arrays.to_host(matrix @ device_v)
        sink = ArraySink(v.shape, Z)
        engine.map(_block_product, source, sink, (K, DeviceConstant(v)), "residual")
        return root * arrays.to_host(sink.array - Z @ (Z.T @ device_v))

    return LinearOperator((n, n), multiply, matmat=multiply)


class Approximation:
    """The Nyström approximation K̃ of rows, as an operator.

    Created by `nystrom.approximate`. It has `shape`, `dtype` and `matvec`, so
    `scipy.sparse.linalg.aslinearoperator` accepts it.

    Attributes
    ----------
    landmarks : Landmarks
        The landmarks; `landmarks.rank` is the rank of K̃.
    """

    dtype: np.dtype[Any] = np.dtype(np.float64)
    shape: tuple[int, int]

    def __init__(self, source: Source, landmarks: Landmarks, engine: Engine) -> None:
        self.source = source
        self.landmarks = landmarks
        self.engine = engine
        self.shape = (source.n_rows, source.n_rows)

    def features(self) -> Array:
        """Compute the features Z = K_S·L⁻ᵀ, with K̃ = ZZᵀ.

        Returns
        -------
        Z : array of shape (n_samples, n_landmarks)
            One column per landmark.
        """
        wide = self._mapping.columns.wide
        return features(self.landmarks, self.source, self.engine, wide=wide)

    def matvec(self, v: np.ndarray) -> np.ndarray:
        """Multiply K̃ by a vector or matrix in O(n·s) time.

        Parameters
        ----------
        v : array-like of shape (n_samples,) or (n_samples, k)
            A vector, or a matrix whose columns are vectors.

        Returns
        -------
        product : ndarray
            K̃v, of the same shape.
        """
        host = self._check_vectors(v)
        root, K_S = self._mapping.root, BlockFeatures(self._mapping.columns)
        t = self._transposed_product(K_S, host)
        return arrays.to_device_of(self._product(K_S, root @ (root.T @ t)), v)

    matmat = matvec
    rmatvec = matvec
    rmatmat = matvec
    __matmul__ = matvec

    def diagonal(self) -> np.ndarray:
        """Compute the diagonal of K̃.

        Returns
        -------
        diagonal : ndarray of shape (n_samples,)
            Diagonal entries.
        """
        return self._to_output(self._exact_diagonal - self._residuals)

    def trace(self) -> float:
        """Compute the trace of K̃.

        Returns
        -------
        trace : float
            Sum of the diagonal.
        """
        return float((self._exact_diagonal - self._residuals).sum())

    def eigenvalues(self) -> np.ndarray:
        """Compute all non-zero eigenvalues of K̃.

        Returns
        -------
        eigenvalues : ndarray of shape (rank,)
            In descending order.
        """
        values = self._gram_eigh[0]
        return self._to_output(values[: self._numerical_rank])

    def eigh(self, n_components: int) -> tuple[np.ndarray, np.ndarray]:
        """Compute the largest eigenvalues of K̃ and their eigenvectors.

        Parameters
        ----------
        n_components : int
            Number of eigenvalues; at most the rank of K̃ are returned.

        Returns
        -------
        eigenvalues : ndarray of shape (n_components,)
            In descending order.
        eigenvectors : ndarray of shape (n_samples, n_components)
            As columns.
        """
        check_int(n_components, "n_components", minimum=0)
        values, vectors = self._gram_eigh
        n_kept = min(n_components, self._numerical_rank)
        scaled = vectors[:, :n_kept] / np.sqrt(values[:n_kept])
        eigenvectors = self._product(self._mapping.tiles(), scaled)
        return self._to_output(values[:n_kept]), self._to_output(eigenvectors)

    def leverage_scores(self, ridge: float) -> np.ndarray:
        """Compute the ridge leverage scores of all rows.

        The scores are zᵀ(ZᵀZ + λI)⁻¹z + (k − k̃)/λ, at most 1. They are close to the
        exact scores if ‖K − K̃‖₂ ≤ λ, and then closer than `nystrom.leverage_scores`
        from the same landmarks.

        Parameters
        ----------
        ridge : float
            The ridge λ, positive.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Scores in [0, 1].
        """
        check_positive(ridge, "ridge")
        values, vectors = self._gram_eigh
        shrunk = DeviceConstant(vectors / np.sqrt(values + ridge))
        sink = ArraySink((self.shape[0],))
        shared = (self._mapping.tiles(), shrunk)
        self.engine.map(_block_squared_norms, self.source, sink, shared, "scores")
        check_finite(sink.array)
        residual_scores = np.maximum(self._residuals, 0.0) / ridge
        return self._to_output(np.minimum(sink.array + residual_scores, 1.0))

    def solve(self, b: np.ndarray, ridge: float) -> np.ndarray:
        """Solve (K̃ + ridge·I)x = b in O(n·s²) time.

        Uses the Woodbury identity with one step of iterative refinement.

        Parameters
        ----------
        b : array-like of shape (n_samples,) or (n_samples, k)
            A vector, or a matrix whose columns are vectors.
        ridge : float
            The ridge, positive.

        Returns
        -------
        x : ndarray
            Solution, of the same shape as b.
        """
        check_positive(ridge, "ridge")
        host = self._check_vectors(b)
        Z, (values, vectors) = self._mapping.tiles(), self._gram_eigh

        def solve_woodbury(r: np.ndarray) -> np.ndarray:
            shrunk = (vectors.T @ self._transposed_product(Z, r)).T / (values + ridge)
            return (r - self._product(Z, vectors @ shrunk.T)) / ridge

        x = solve_woodbury(host)
        fitted = self._product(Z, self._transposed_product(Z, x))
        x = x + solve_woodbury(host - ridge * x - fitted)
        return arrays.to_device_of(x, b)

    def _check_vectors(self, v: Any) -> np.ndarray:
        v = np.asarray(arrays.tree_to_host(v), dtype=np.float64)
        if v.ndim not in (1, 2) or len(v) != self.shape[0]:
            raise ValueError(
                f"A vector of {self.shape[0]} entries, or a matrix with as many rows, "
                f"is needed; shape {v.shape} was given."
            )
        return v

    def _to_output(self, values: np.ndarray) -> Array:
        """Results in the library and on the device of the rows, in float64."""
        like = self.landmarks.kernel.output_like(self.source.original.rows(0, 1))
        return arrays.to_device_of(values, like)

    @property
    def trace_error(self) -> float:
        """Exact trace error tr(K − K̃), weighted if rows have weights."""
        return weighted_sum(self.source.weights, self._residuals)

    @property
    def relative_trace_error(self) -> TraceError:
        """Exact relative trace error tr(K − K̃)/tr K."""
        kernel_trace = weighted_sum(self.source.weights, self._exact_diagonal)
        rounding = residual_rounding(np.float64, len(self.landmarks)) * kernel_trace
        return TraceError.from_sums(
            self.trace_error, kernel_trace, self.shape[0], rounding=rounding
        )

    def spectral_error(
        self, n_rows: int | None = None, *, random_state: int = 0
    ) -> SpectralError:
        """Bound the spectral error ‖K − K̃‖₂ from both sides.

        Parameters
        ----------
        n_rows : int or None, default=None
            Number of rows, drawn uniformly, on whose residual Lanczos iterations run.
            None means 4000. With all rows it costs n² kernel evaluations, per step if K
            does not fit scikit-learn's `working_memory`.
        random_state : int, default=0
            Seed of the draw. Compare methods on the same rows.

        Returns
        -------
        error : SpectralError
            `lower` ≤ ‖K − K̃‖₂ ≤ `upper`; `float(error)` is `lower`.
        """
        limit = 4000 if n_rows is None else n_rows
        check_int(limit, "n_rows")
        rows = sorted_row_sample(self.shape[0], limit, random_state)
        n, m, upper = self.shape[0], len(rows), self.trace_error
        # Every row is a point too: they are held here, and so is the work.
        operator = residual_operator(
            self.landmarks, CachedRows.of(self.source, rows), self.engine.local
        )
        lower = min(top_eigenpair(operator)[0], upper)
        return SpectralError(lower, upper, m, m == n, lower * n / m)

    @cached_property
    def _residuals(self) -> np.ndarray:
        columns, root = self.landmarks.columns(), self.landmarks.factor.root
        prepared = prepare_residuals(columns, self.source, root)
        return residuals(prepared, self.source, engine=self.engine, name="trace error")

    @cached_property
    def _exact_diagonal(self) -> np.ndarray:
        return kernel_diagonal(self.landmarks.kernel, self.source, engine=self.engine)

    @cached_property
    def _gram_eigh(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenpairs of ZᵀZ, descending. Whitened per block: safe where K_SS is not."""
        unweighted = self.source.replace(weights=None, targets=None)
        G = moments(self._mapping, unweighted, self.engine).gram
        with blas_limit_for_size(len(G)):
            values, vectors = np.linalg.eigh(G)
        return np.maximum(values[::-1], 0.0), vectors[:, ::-1]

    @property
    def _numerical_rank(self) -> int:
        values = self._gram_eigh[0]
        floor = EPS64 * len(values) * values.max(initial=0.0)
        return int(np.count_nonzero(values > floor))

    @cached_property
    def _mapping(self) -> FeatureMap:
        """Z per tile, all of it in the same precision.

        Where K_SS is badly conditioned, K_S·(root·small) instead of Z·small would lose
        what `solve` and `eigh` need.
        """
        wide = features_need_float64(self.landmarks, self.source)
        columns = self.landmarks.columns(wide=wide)
        factor = self.landmarks.factor.for_block_dtype(columns.dtype)
        return FeatureMap.whitened(columns, factor)

    def _product(self, tiles: BlockFeatures, small: np.ndarray) -> np.ndarray:
        sink = ArraySink((self.shape[0], *small.shape[1:]))
        shared = (tiles, DeviceConstant(small))
        self.engine.map(_block_product, self.source, sink, shared, "product")
        check_finite(sink.array)
        return sink.array

    def _transposed_product(self, tiles: BlockFeatures, v: np.ndarray) -> np.ndarray:
        source = self.source.replace(targets=v)
        product = self.engine.reduce(
            _block_transposed_product, source, (tiles,), "product"
        )
        return arrays.to_host(product)

    def __repr__(self) -> str:
        return f"<Approximation of {self.shape[0]} rows on {self.landmarks}>"

    def _repr_html_(self) -> str:
        return f"Approximation of {self.shape[0]} rows on{self.landmarks._repr_html_()}"


def _block_values(block: Block, tiles: BlockFeatures) -> Array:
    return tiles(block.X)


def _block_product(block: Block, tiles: BlockFeatures, factor: DeviceConstant) -> Array:
    Z = tiles(block.X)
    return Z @ factor.to_device_of(Z)


def _block_squared_norms(
    block: Block, tiles: BlockFeatures, small: DeviceConstant
) -> np.ndarray:
    product = arrays.to_host(_block_product(block, tiles, small))
    return np.einsum("ij,ij->i", product, product)


def _block_transposed_product(block: Block, tiles: BlockFeatures) -> Array:
    Z = tiles(block.X)
    return Z.T @ arrays.to_device_of(block.targets, Z)
