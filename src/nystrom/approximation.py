"""K̃ = KS(SᵀKS)⁺SᵀK = ZZᵀ as an operator that knows its own error.

Nothing of size n × s is kept: every method is one or two passes over the rows, s kernel
evaluations each. Sums over rows are float64.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from . import _arrays as arrays
from ._arrays import Array
from .engines import Engine
from .factor import check_finite
from .kernels import Kernel
from .landmarks import Landmarks, TraceError
from .leverage import diagonal, residuals
from .sinks import ArraySink
from .sources import Block, Source, Subset
from .spectral import SpectralError, spectral_error


class Approximation:
    """K̃ for the rows of a source and the landmarks chosen from them.

    Made by `nystrom.approximate`. It has `shape`, `dtype` and `matvec`, so that
    `scipy.sparse.linalg.aslinearoperator` takes it.

    Attributes
    ----------
    landmarks : Landmarks
        What K̃ is built on; `landmarks.rank` is the rank of K̃.
    """

    dtype = np.dtype(np.float64)

    def __init__(self, source: Source, landmarks: Landmarks, engine: Engine) -> None:
        self.source = source
        self.landmarks = landmarks
        self.engine = engine
        self.shape = (source.n_rows, source.n_rows)

    def features(self) -> Array:
        """Z = KS(SᵀKS)^{+/2}, one column per landmark: K̃ = ZZᵀ."""
        return features(self.landmarks, self.source, self.engine)

    def matvec(self, v: np.ndarray) -> np.ndarray:
        """K̃v for a vector or for the columns of a matrix, in O(ns) time."""
        v = self._vectors(v)
        root = self.landmarks.factor.root
        shared = (self._evaluate, v)
        t = self.engine.reduce(_transposed_times, self.source, shared, "product")
        sink = ArraySink((self.shape[0], *v.shape[1:]))
        shared = (self._evaluate, root @ (root.T @ t))
        self.engine.map(_host_times, self.source, sink, shared, "product")
        return sink.array

    matmat = rmatvec = rmatmat = __matmul__ = matvec

    def diagonal(self) -> np.ndarray:
        """k̃ᵢᵢ for every row."""
        return self._exact_diagonal - self._residuals

    def trace(self) -> float:
        """tr K̃."""
        return float(self.diagonal().sum())

    def eigh(self, n_components: int) -> tuple[np.ndarray, np.ndarray]:
        """The largest eigenvalues of K̃, descending, and their eigenvectors as columns.

        K̃ has `landmarks.rank` eigenvalues that are not 0; no more come back.
        """
        _check_count(n_components, "n_components", least=0)
        values, vectors = self._gram_eigh
        floor = arrays.epsilon(np.float64) * len(values) * values.max(initial=0.0)
        keep = min(n_components, int(np.count_nonzero(values > floor)))
        return values[:keep], self._Z_times(vectors[:, :keep] / np.sqrt(values[:keep]))

    def solve(self, b: np.ndarray, ridge: float) -> np.ndarray:
        """(K̃ + ridge·I)⁻¹b, by Woodbury with one step of refinement, in O(ns²) time."""
        if not 0 < ridge < np.inf:
            raise ValueError(
                f"ridge={ridge!r} is not allowed; K̃ is singular, so it must be > 0."
            )
        b = self._vectors(b)
        x = self._woodbury(b, ridge)
        left = b - ridge * x - self._Z_times(self._Zt_times(x))
        return x + self._woodbury(left, ridge)

    def _vectors(self, v: Any) -> np.ndarray:
        v = np.asarray(v, dtype=np.float64)
        if v.ndim not in (1, 2) or len(v) != self.shape[0]:
            raise ValueError(
                f"A vector of {self.shape[0]} entries, or a matrix with as many rows, "
                f"is needed; shape {v.shape} was given."
            )
        return v

    @property
    def trace_error(self) -> float:
        """tr(K − K̃), exact, from one pass; rows count with their weights."""
        w = self.source.weights
        return float(np.sum(self._residuals if w is None else w * self._residuals))

    @property
    def relative_trace_error(self) -> TraceError:
        """tr(K − K̃)/tr K, exact."""
        w = self.source.weights
        diagonal = self._exact_diagonal
        total = float(np.sum(diagonal if w is None else w * diagonal))
        value = self.trace_error / total if total > 0 else 0.0
        return TraceError(value, 0.0, self.shape[0], exact=True)

    def spectral_error(
        self, n_rows: int | None = None, *, random_state: int = 0
    ) -> SpectralError:
        """‖K − K̃‖₂, bounded from both sides.

        Parameters
        ----------
        n_rows : int or None
            Lanczos runs on the residual of so many rows, drawn uniformly, or of all if
            there are no more. None: 4000. With all rows it costs n² kernel evaluations,
            per Lanczos step if K does not fit scikit-learn's `working_memory`.
        random_state : int
            Which rows: compare methods on the same ones.

        Returns
        -------
        error : SpectralError
            `lower` ≤ ‖K − K̃‖₂ ≤ `upper`; float(error) is `lower`.
        """
        limit = 4000 if n_rows is None else n_rows
        _check_count(limit, "n_rows", least=1)
        return spectral_error(
            self.landmarks,
            self.source,
            self.engine,
            limit,
            random_state,
            self.trace_error,
        )

    @cached_property
    def _residuals(self) -> np.ndarray:
        landmarks = self.landmarks
        return residuals(
            landmarks.kernel,
            self.source,
            landmarks.points,
            landmarks.factor.root,
            engine=self.engine,
            stage="trace error",
        ).values

    @cached_property
    def _exact_diagonal(self) -> np.ndarray:
        return diagonal(self.landmarks.kernel, self.source, engine=self.engine)

    @cached_property
    def _gram_eigh(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenpairs of ZᵀZ, descending. Whitened per block: safe where K_SS is not."""
        shared = (self._evaluate, self.landmarks.factor.root)
        G = self.engine.reduce(_whitened_gram, self.source, shared, "Gram matrix")
        values, vectors = np.linalg.eigh(G)
        return np.maximum(values[::-1], 0.0), vectors[:, ::-1]

    @cached_property
    def _evaluate(self) -> Callable:
        return self.landmarks.kernel.against(self.landmarks.points)

    # Z is K_S·root per tile, then multiplied: where K_SS is badly conditioned, K_S
    # times root·small would lose what `solve` and `eigh` need.

    def _Z_times(self, small: np.ndarray) -> np.ndarray:  # noqa: N802
        sink = ArraySink((self.shape[0], *small.shape[1:]))
        shared = (self._evaluate, self.landmarks.factor.root, small)
        self.engine.map(_whitened_times, self.source, sink, shared, "product")
        return sink.array

    def _Zt_times(self, v: np.ndarray) -> np.ndarray:  # noqa: N802
        shared = (self._evaluate, self.landmarks.factor.root, v)
        return self.engine.reduce(
            _whitened_transposed_times, self.source, shared, "product"
        )

    def _woodbury(self, b: np.ndarray, ridge: float) -> np.ndarray:
        values, vectors = self._gram_eigh
        shrunk = (vectors.T @ self._Zt_times(b)).T / (values + ridge)
        return (b - self._Z_times(vectors @ shrunk.T)) / ridge

    def __repr__(self) -> str:
        return f"<Approximation of {self.shape[0]} rows on {self.landmarks}>"


def _check_count(value: Any, name: str, least: int) -> None:
    if not isinstance(value, Integral) or value < least:
        raise ValueError(
            f"{name}={value!r} is not allowed; it must be a whole number >= {least}."
        )


def features(landmarks: Landmarks, source: Source, engine: Engine) -> Array:
    """Z = k(X, landmarks)·K_SS^{+/2} for any rows, in their own precision."""
    Z, _ = _features(landmarks, source, engine, with_error=False)
    return Z


def features_and_error(
    landmarks: Landmarks, source: Source, engine: Engine
) -> tuple[Array, TraceError]:
    """Z and, from the same pass, the relative trace error tr(K − ZZᵀ)/tr K."""
    return _features(landmarks, source, engine, with_error=True)


def _features(
    landmarks: Landmarks, source: Source, engine: Engine, *, with_error: bool
) -> Any:
    first = source.rows(0, 1)
    like, dtype = landmarks.kernel.like(first), landmarks.kernel.dtype(first)
    root = arrays.from_host(landmarks.factor.symmetric_root, like, dtype)
    sink = ArraySink((source.n_rows, len(landmarks)), like, root.dtype)
    evaluate = landmarks.kernel.against(landmarks.points)
    if not with_error:
        engine.map(_times, source, sink, (evaluate, root), "features")
        return sink.array, None
    error = _ErrorSink(sink, source.n_rows)
    shared = (evaluate, root, landmarks.kernel)
    engine.map(_features_with_residual, source, error, shared, "features")
    return sink.array, error.total()


class _ErrorSink:
    """Rows of Z to their array, and the sums behind the trace error by tile."""

    def __init__(self, sink: ArraySink, n_rows: int) -> None:
        self.sink = sink
        self.n_rows = n_rows
        self.sums: dict[int, tuple[float, float]] = {}

    def put(self, start: int, rows: Any) -> None:
        Z, kept, whole = rows
        self.sink.put(start, Z)
        self.sums[start] = (kept, whole)

    def total(self) -> TraceError:
        kept, whole = np.array([self.sums[i] for i in sorted(self.sums)]).sum(axis=0)
        value = max(0.0, float(1 - kept / whole)) if whole > 0 else 0.0
        return TraceError(value, 0.0, self.n_rows, exact=True)


def _features_with_residual(
    block: Block, evaluate: Callable, root: Array, kernel: Kernel
) -> tuple[Array, float, float]:
    Z = evaluate(block.X) @ root
    kept = arrays.to_host(arrays.squared_norms(Z)).sum(dtype=np.float64)
    whole = arrays.to_host(kernel.diag(block.X)).sum(dtype=np.float64)
    if not np.isfinite(kept):
        check_finite(arrays.to_host(Z))
    return Z, float(kept), float(whole)


def estimated_error(
    landmarks: Landmarks, source: Source, engine: Engine, rows: np.ndarray
) -> TraceError:
    """The relative trace error from some rows, with its standard error."""
    some = Subset(source, rows)
    exact = len(rows) == source.n_rows
    part = Approximation(some, landmarks, engine)
    left, whole = part._residuals, part._exact_diagonal
    if whole.sum() <= 0:
        return TraceError(0.0, 0.0, len(rows), exact)
    ratio = float(left.sum() / whole.sum())
    spread = float(np.std(left - ratio * whole)) / np.sqrt(len(rows)) / whole.mean()
    # Without replacement: no error is left once all rows are in.
    spread *= np.sqrt(1 - len(rows) / source.n_rows)
    return TraceError(ratio, spread, len(rows), exact)


def _times(block: Block, evaluate: Callable, small: Array) -> Array:
    Z = evaluate(block.X) @ small
    # The sum may overflow where no entry does: look closer before refusing.
    if not np.isfinite(float(arrays.namespace(Z).sum(Z))):
        check_finite(arrays.to_host(Z))
    return Z


def _host_times(block: Block, evaluate: Callable, small: np.ndarray) -> np.ndarray:
    return arrays.host_values(evaluate(block.X)) @ small


def _transposed_times(block: Block, evaluate: Callable, v: np.ndarray) -> np.ndarray:
    K = arrays.host_values(evaluate(block.X))
    return K.T @ v[block.start : block.start + len(K)]


def _whitened(block: Block, evaluate: Callable, root: np.ndarray) -> np.ndarray:
    return arrays.host_values(evaluate(block.X)) @ root


def _whitened_gram(block: Block, evaluate: Callable, root: np.ndarray) -> np.ndarray:
    Z = _whitened(block, evaluate, root)
    return Z.T @ Z


def _whitened_times(
    block: Block, evaluate: Callable, root: np.ndarray, small: np.ndarray
) -> np.ndarray:
    return _whitened(block, evaluate, root) @ small


def _whitened_transposed_times(
    block: Block, evaluate: Callable, root: np.ndarray, v: np.ndarray
) -> np.ndarray:
    Z = _whitened(block, evaluate, root)
    return Z.T @ v[block.start : block.start + len(Z)]
