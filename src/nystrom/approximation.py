"""K̃ = KS(SᵀKS)⁺SᵀK = ZZᵀ as an operator that knows its own error.

Nothing of size n × s is kept: every method is one or two passes over the rows, s kernel
evaluations each. Sums over rows are float64.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from . import _arrays as arrays
from ._arrays import Array
from .column_blocks import ColumnBlocks
from .columns import Columns, diagonal
from .engines import Engine
from .engines.blas import blas_threads_for
from .factor import Factor
from .features import FeatureMap, Tiles, features, features_need_float64
from .landmarks import Landmarks
from .moments import Moments, moments, trace_error
from .operands import Operand
from .precision import EPS64, residual_unit
from .randomness import Purpose, some_rows, uniforms
from .refusals import check_finite, count
from .residuals import prepare, residual, residuals
from .sinks import ArraySink
from .sources import Block, Source, Subset
from .sources import weights as row_weights
from .spectral_error import SpectralError, spectral_error
from .trace_error import TraceError

#: Rows on which the error is estimated where no pass over all of them gives it: about
#: so many, drawn by the root of what so many landmarks leave of each, and of a share of
#: the mean. Few rows may hold most of what is left: of 230 estimates from uniform rows
#: one in nine was off by more than three standard errors, and of these none.
ERROR_ROWS, FIRST_LANDMARKS, UNIFORM = 1024, 16, 0.1
#: Of k(x, x), where the first landmarks leave nothing.
LEAST_SIZE = 1e-8
#: How often chances are scaled, until they add up to the rows wanted.
SCALINGS = 20
TINY = np.finfo(np.float64).tiny


class Approximation:
    """K̃ for the rows of a source and the landmarks chosen from them.

    Made by `nystrom.approximate`. It has `shape`, `dtype` and `matvec`, so that
    `scipy.sparse.linalg.aslinearoperator` takes it.

    Attributes
    ----------
    landmarks : Landmarks
        What K̃ is built on; `landmarks.rank` is the rank of K̃.
    """

    dtype: np.dtype[Any] = np.dtype(np.float64)
    shape: tuple[int, int]

    def __init__(self, source: Source, landmarks: Landmarks, engine: Engine) -> None:
        self.source = source
        self.landmarks = landmarks
        self.engine = engine
        self.shape = (source.n_rows, source.n_rows)

    def features(self) -> Array:
        """Z = K_S·L⁻ᵀ, one column per landmark: K̃ = ZZᵀ."""
        return features(self.landmarks, self.source, self.engine, wide=self._wide)

    def matvec(self, v: np.ndarray) -> np.ndarray:
        """K̃v for a vector or for the columns of a matrix, in O(ns) time."""
        host = self._vectors(v)
        root, K_S = self._root, self._tiles(whitened=False)
        t = self._transposed_product(K_S, host)
        return _such_as(v, self._product(K_S, root @ (root.T @ t)))

    matmat = matvec
    rmatvec = matvec
    rmatmat = matvec
    __matmul__ = matvec

    def diagonal(self) -> np.ndarray:
        """k̃ᵢᵢ for every row."""
        return self._handed_out(self._exact_diagonal - self._residuals)

    def trace(self) -> float:
        """tr K̃."""
        return float((self._exact_diagonal - self._residuals).sum())

    def eigenvalues(self) -> np.ndarray:
        """All eigenvalues of K̃ that are not 0, descending."""
        values = self._gram_eigh[0]
        return self._handed_out(values[: self._n_above_rounding])

    def eigh(self, n_components: int) -> tuple[np.ndarray, np.ndarray]:
        """The largest eigenvalues of K̃, descending, and their eigenvectors as columns.

        K̃ has `landmarks.rank` eigenvalues that are not 0; no more come back.
        """
        count(n_components, "n_components", least=0)
        values, vectors = self._gram_eigh
        keep = min(n_components, self._n_above_rounding)
        found = self._Z_times(vectors[:, :keep] / np.sqrt(values[:keep]))
        return self._handed_out(values[:keep]), self._handed_out(found)

    def leverage_scores(self, ridge: float) -> np.ndarray:
        """Ridge leverage scores of all rows: those of K̃, and what it leaves over λ.

        zᵀ(ZᵀZ + λI)⁻¹z + (k − k̃)/λ, at most 1: near the exact scores where ‖K − K̃‖₂ is
        not above λ, and then closer than `nystrom.leverage_scores` of these landmarks.
        """
        _check_ridge(ridge)
        values, vectors = self._gram_eigh
        shrunk = Operand(vectors / np.sqrt(values + ridge))
        sink = ArraySink((self.shape[0],))
        shared = (self._tiles(whitened=True), shrunk)
        self.engine.map(_square_norms, self.source, sink, shared, "scores")
        check_finite(sink.array)
        left = np.maximum(self._residuals, 0.0) / ridge
        return self._handed_out(np.minimum(sink.array + left, 1.0))

    def solve(self, b: np.ndarray, ridge: float) -> np.ndarray:
        """(K̃ + ridge·I)⁻¹b, by Woodbury with one step of refinement, in O(ns²) time."""
        _check_ridge(ridge)
        host = self._vectors(b)
        x = self._woodbury(host, ridge)
        left = host - ridge * x - self._Z_times(self._Zt_times(x))
        return _such_as(b, x + self._woodbury(left, ridge))

    def _vectors(self, v: Any) -> np.ndarray:
        v = np.asarray(arrays.fetched(v), dtype=np.float64)
        if v.ndim not in (1, 2) or len(v) != self.shape[0]:
            raise ValueError(
                f"A vector of {self.shape[0]} entries, or a matrix with as many rows, "
                f"is needed; shape {v.shape} was given."
            )
        return v

    def _handed_out(self, values: np.ndarray) -> Array:
        """Results in the library and on the device of the rows, in float64."""
        like = self.landmarks.kernel.like(self.source.given.rows(0, 1))
        return _such_as(like, values)

    @property
    def trace_error(self) -> float:
        """tr(K − K̃), exact, from one pass; rows count with their weights."""
        return row_weights.total(self.source.weights, self._residuals)

    @property
    def relative_trace_error(self) -> TraceError:
        """tr(K − K̃)/tr K, exact."""
        whole = row_weights.total(self.source.weights, self._exact_diagonal)
        rounding = residual_unit(np.float64, len(self.landmarks)) * whole
        return TraceError.of_all(
            self.trace_error, whole, self.shape[0], rounding=rounding
        )

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
        count(limit, "n_rows")
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
        columns, root = self.landmarks.columns(), self.landmarks.factor.root
        ready = prepare(columns, self.source, root)
        return residuals(ready, self.source, engine=self.engine, name="trace error")

    @cached_property
    def _exact_diagonal(self) -> np.ndarray:
        return diagonal(self.landmarks.kernel, self.source, engine=self.engine)

    @cached_property
    def _gram_eigh(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenpairs of ZᵀZ, descending. Whitened per block: safe where K_SS is not."""
        columns, factor = self._columns, self._factor
        none = np.zeros(len(columns))
        mapping = FeatureMap(columns, factor, 0.0, True, none, none[:1])
        unweighted = self.source.having(weights=None, targets=None)
        G = moments(mapping, unweighted, self.engine).gram
        with blas_threads_for(len(G)):
            values, vectors = np.linalg.eigh(G)
        return np.maximum(values[::-1], 0.0), vectors[:, ::-1]

    @property
    def _n_above_rounding(self) -> int:
        values = self._gram_eigh[0]
        floor = EPS64 * len(values) * values.max(initial=0.0)
        return int(np.count_nonzero(values > floor))

    def _tiles(self, *, whitened: bool) -> Tiles:
        # Z is K_S·root per tile, then multiplied: where K_SS is badly conditioned, K_S
        # times root·small would lose what `solve` and `eigh` need.
        root = self._root if whitened else None
        return Tiles.by(self._columns, root, None)

    @cached_property
    def _wide(self) -> bool:
        """Whether float32 rows are evaluated in float64: the same for all of K̃."""
        return features_need_float64(self.landmarks, self.source)

    @property
    def _columns(self) -> Columns:
        return self.landmarks.columns(wide=self._wide)

    @property
    def _root(self) -> np.ndarray:
        """For the precision in which the rows are evaluated."""
        return self._factor.root

    @property
    def _factor(self) -> Factor:
        return self.landmarks.factor.for_blocks(self._columns.dtype)

    def _product(self, tiles: Tiles, small: np.ndarray) -> np.ndarray:
        sink = ArraySink((self.shape[0], *small.shape[1:]))
        shared = (tiles, Operand(small))
        self.engine.map(_times, self.source, sink, shared, "product")
        check_finite(sink.array)
        return sink.array

    def _transposed_product(self, tiles: Tiles, v: np.ndarray) -> np.ndarray:
        source = self.source.having(targets=v)
        found = self.engine.reduce(_transposed_times, source, (tiles,), "product")
        return arrays.to_host(found)

    def _Z_times(self, small: np.ndarray) -> np.ndarray:  # noqa: N802
        return self._product(self._tiles(whitened=True), small)

    def _Zt_times(self, v: np.ndarray) -> np.ndarray:  # noqa: N802
        return self._transposed_product(self._tiles(whitened=True), v)

    def _woodbury(self, b: np.ndarray, ridge: float) -> np.ndarray:
        values, vectors = self._gram_eigh
        shrunk = (vectors.T @ self._Zt_times(b)).T / (values + ridge)
        return (b - self._Z_times(vectors @ shrunk.T)) / ridge

    def __repr__(self) -> str:
        return f"<Approximation of {self.shape[0]} rows on {self.landmarks}>"

    def _repr_html_(self) -> str:
        return f"Approximation of {self.shape[0]} rows on{self.landmarks._repr_html_()}"


def _check_ridge(ridge: float) -> None:
    if not 0 < ridge < np.inf:
        raise ValueError(
            f"ridge={ridge!r} is not allowed; K̃ is singular, so it must be > 0."
        )


def _such_as(like: Any, values: np.ndarray) -> Array:
    """Values in the library and on the device of what was given."""
    on_host = arrays.on_host(like)
    return values if on_host else arrays.from_host(values, like, values.dtype)


def estimated_error(
    landmarks: Landmarks, source: Source, engine: Engine
) -> TraceError | None:
    """The relative trace error from some rows; what is known already, if it is exact.

    For fits that make no pass which gives it exactly. One with few landmarks finds the
    rows that much is likely to be left of; it is not made where a value is a call.
    """
    if landmarks.error is not None and landmarks.error.exact:
        return landmarks.error
    rows = some_rows(source.n_rows, ERROR_ROWS)
    cheap = not landmarks.kernel.traits.costly and not landmarks.indefinite
    if cheap and len(rows) < source.n_rows:
        return _error_of_drawn_rows(landmarks, source, rows, engine)
    part = Approximation(Subset(source, rows), landmarks, engine)
    return TraceError.of_some(
        part._residuals,
        part._exact_diagonal,
        part.source.weights,
        source.n_rows,
        residual_unit(np.float64, len(landmarks)),
    )


@dataclass(frozen=True)
class Drawing:
    """How rows are drawn: p = rate·w·(size + floor), at most 1."""

    columns: Columns  # of the first landmarks
    operand: ColumnBlocks
    floor: float = 0.0
    rate: float = 0.0

    def sizes(self, X: Any, kxx: np.ndarray) -> np.ndarray:
        """Of what is likely to be left of each row."""
        taken = arrays.to_host(self.operand.squared_norms(self.columns(X)))
        return np.sqrt(np.maximum(kxx - taken, 0.0) * np.abs(kxx)) + self.floor

    def chances(self, sizes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """p of each row."""
        return np.minimum(self.rate * weights * sizes, 1.0)

    def scaled(self, sizes: np.ndarray, weights: np.ndarray, share: float) -> Drawing:
        """So that a share of such rows is drawn."""
        rate = share / max(float(np.mean(weights * sizes)), TINY)
        how = replace(self, rate=rate)
        for _ in range(SCALINGS):  # what is cut at 1 is made up for by others
            found = float(np.mean(how.chances(sizes, weights)))
            if found <= 0:
                break
            how = replace(how, rate=how.rate * min(share / found, 10.0))
        return how


def _error_of_drawn_rows(
    landmarks: Landmarks, source: Source, pilot: np.ndarray, engine: Engine
) -> TraceError:
    """From rows drawn by chances that a pilot of uniform rows scales."""
    first = landmarks[: min(FIRST_LANDMARKS, len(landmarks))]
    # In float64: what float32 rounds to nothing may be most of what is left.
    columns = first.columns(wide=True)
    how = Drawing(columns, columns.operand(first.factor.root))
    few = Subset(source, pilot)
    block = few.block(0, few.n_rows)
    X, weights = block.X, block.weights
    kxx = arrays.to_host(columns.diag(X))
    sizes = how.sizes(X, kxx)
    floor = max(UNIFORM * float(np.mean(sizes)), LEAST_SIZE * float(np.mean(abs(kxx))))
    how = replace(how, floor=floor)
    how = how.scaled(sizes + floor, weights, ERROR_ROWS / source.n_rows)
    wide = landmarks.columns(wide=True)
    shared = (how, wide, wide.operand(landmarks.factor.root))
    sums = engine.reduce(_drawn_left, source, shared, "trace error")
    left, variance, whole, n_drawn = (float(x) for x in arrays.fetched(sums))
    check_finite(np.array([left, whole]))
    unit = residual_unit(np.float64, len(landmarks))
    return TraceError.of_drawn(left, variance, whole, int(n_drawn), unit)


def _drawn_left(
    block: Block, how: Drawing, columns: Columns, root: ColumnBlocks
) -> tuple[float, float, float, float]:
    """Σ w·left/p over the rows drawn, its variance; Σ w·k(x, x) of all; how many."""
    kxx = arrays.to_host(columns.diag(block.X))
    whole = float(row_weights.total(block.weights, kxx))
    p = how.chances(how.sizes(block.X, kxx), block.weights)
    start, stop = block.start, block.start + len(block)
    rows = np.flatnonzero(uniforms(0, Purpose.CHECK, start, stop, level=2) < p)
    if not len(rows):
        return 0.0, 0.0, whole, 0.0
    few = Block(0, arrays.take_rows(block.X, rows), block.weights[rows])
    p = p[rows]
    left = few.weights * residual(few, columns, root) / p
    return float(left.sum()), float((1 - p) @ left**2), whole, float(len(rows))


def told_error(
    landmarks: Landmarks,
    mapping: FeatureMap,
    sums: Moments,
    source: Source,
    engine: Engine,
) -> TraceError | None:
    """The relative trace error after a pass of sums: exact where these resolve it."""
    if mapping.resolves_trace:
        return trace_error(mapping, sums)
    return estimated_error(landmarks, source, engine)


def _times(block: Block, tiles: Tiles, small: Operand) -> np.ndarray:
    Z = tiles(block.X)
    return arrays.to_host(Z @ small.beside(Z))


def _square_norms(block: Block, tiles: Tiles, small: Operand) -> np.ndarray:
    product = _times(block, tiles, small)
    return np.einsum("ij,ij->i", product, product)


def _transposed_times(block: Block, tiles: Tiles) -> Array:
    Z = tiles(block.X)
    return Z.T @ arrays.beside(block.targets, Z)
