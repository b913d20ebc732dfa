"""‖K − K̃‖₂ by Lanczos on the residual, of all rows or of a stated part of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn import get_config

from . import _arrays as arrays
from ._arrays import Array
from .columns import Columns
from .engines import Engine
from .landmarks import Landmarks
from .operands import Operand
from .randomness import some_rows
from .sinks import ArraySink
from .sources import Block, Held, Source

#: Relative accuracy asked of Lanczos.
TOLERANCE = 1e-3


@dataclass(frozen=True)
class SpectralError:
    """What is known of ‖K − K̃‖₂.

    Attributes
    ----------
    lower : float
        The norm of the residual on the rows used, a Ritz value: never above the truth.
    upper : float
        tr(K − K̃): never below it.
    n_rows : int
        The rows used.
    exact : bool
        Whether these were all rows; `lower` is then the norm itself, to 1e-3.
    estimate : float
        `lower` times n/n_rows: what `lower` would be if the residual's top direction
        spread evenly over all rows. An estimate only, bounded by nothing.
    """

    lower: float
    upper: float
    n_rows: int
    exact: bool
    estimate: float

    def __float__(self) -> float:
        return self.lower


def spectral_error(
    landmarks: Landmarks,
    source: Source,
    engine: Engine,
    n_rows: int,
    seed: int,
    upper: float,
) -> SpectralError:
    """Bounds on ‖K − K̃‖₂ from at most `n_rows` rows, drawn uniformly."""
    rows = some_rows(source.n_rows, n_rows, seed)
    n, m = source.n_rows, len(rows)
    # Every row is a point too: they are held here, and so is the work.
    operator = Residual(landmarks, Held.of(source, rows), engine.local)
    lower = min(operator.norm(), upper)
    return SpectralError(lower, upper, m, m == n, lower * n / m)


class Residual:
    """K − ZZᵀ on some rows, kept in memory if it fits, else made anew each time."""

    def __init__(self, landmarks: Landmarks, source: Source, engine: Engine) -> None:
        n = source.n_rows
        self.source, self.engine = source, engine
        self.columns = Columns(landmarks.kernel, source.rows(0, n), wide=True)
        # Where the rows are: Lanczos asks for n numbers at a time.
        like = landmarks.kernel.like(source.rows(0, 1))
        float64 = arrays.own_dtype(np.dtype(np.float64), like)
        sink = ArraySink((n, landmarks.rank), like, float64)
        shared = (landmarks.columns(wide=True), Operand(landmarks.factor.root))
        engine.map(_times, source, sink, shared, "features of the rows")
        self.Z = sink.array
        self.matrix: Array = None
        if 8 * n * n <= get_config()["working_memory"] * 2**20:
            whole = ArraySink((n, n), like, float64)
            engine.map(_values, source, whole, (self.columns,), "kernel matrix")
            self.matrix = whole.array
            self.matrix -= self.Z @ self.Z.T

    def norm(self) -> float:
        """The largest eigenvalue, at least 0."""
        n = self.source.n_rows
        if n <= 64:
            return max(0.0, float(np.linalg.eigvalsh(self @ np.eye(n)).max()))
        operator = LinearOperator((n, n), matvec=self.__matmul__, dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(n)
        if not np.any(self @ start):
            return 0.0
        top = eigsh(
            operator,
            k=1,
            which="LA",
            tol=TOLERANCE,
            v0=start,
            return_eigenvectors=False,
        )
        return max(0.0, float(top[0]))

    def __matmul__(self, v: np.ndarray) -> np.ndarray:
        # W^½(K − ZZᵀ)W^½
        root = np.sqrt(self.source.weights).reshape((-1,) + (1,) * (v.ndim - 1))
        return root * self._unweighted(root * v)

    def _unweighted(self, v: np.ndarray) -> np.ndarray:
        there = arrays.from_host(v, self.Z)
        if self.matrix is not None:
            return arrays.to_host(self.matrix @ there)
        sink = ArraySink(v.shape, self.Z)
        shared = (self.columns, Operand(v))
        self.engine.map(_times, self.source, sink, shared, "residual")
        return arrays.to_host(sink.array - self.Z @ (self.Z.T @ there))


def _values(block: Block, columns: Columns) -> Array:
    return columns.float64(block.X)


def _times(block: Block, columns: Columns, small: Operand) -> Array:
    K = columns.float64(block.X)
    return K @ small.beside(K)
