"""How Z = K_S·root is made, tile by tile: K̃ = ZZᵀ."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import _arrays as arrays
from . import precision
from ._arrays import Array
from .column_blocks import ColumnBlocks
from .columns import Columns, handed_out
from .engines import TILE, Engine, SumSink, Threads
from .factor import Factor
from .landmarks import Landmarks
from .operands import Operand
from .refusals import check_finite
from .sinks import ARRAY, Output, SplitSink
from .sources import Block, RowNumbers, Source
from .sources import weights as row_weights
from .trace_error import TraceError
from .tried import tried_rows

#: Targets that may be read at once.
FEW_TARGETS = 2**20


@dataclass(frozen=True, eq=False)
class Tiles:
    """Rows ↦ K_S·root − shift, or K_S − shift without a root: float64, on the device.

    Without a shift nothing is taken off.
    """

    columns: Columns
    root: ColumnBlocks | None
    shift: Operand | None

    @classmethod
    def by(
        cls, columns: Columns, root: np.ndarray | None, shift: np.ndarray | None
    ) -> Tiles:
        """With a root in blocks that skip its zeros, and a shift that is not 0."""
        moved = shift is not None and bool(shift.any())
        return cls(
            columns,
            None if root is None else ColumnBlocks.of(root),
            Operand(shift) if shift is not None and moved else None,
        )

    def __call__(self, X: Any) -> Array:
        Z = self.columns.float64(X)
        Z = Z if self.root is None else self.root.product(Z)
        return Z if self.shift is None else Z - self.shift.beside(Z)


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """How Z is made so that its Gram matrix is right to a thousandth of alpha.

    The product with `root` costs as much as the Gram matrix does, and is put off to
    after the sum where K_SS is conditioned well enough; a very smooth kernel needs it
    in every tile, and may need float64 kernel values for float32 rows.
    """

    columns: Columns
    factor: Factor
    alpha: float  # the least ridge that Z is to be right for
    whiten: bool  # Z per tile, instead of K_S per tile and root after the sum
    shift: np.ndarray  # (s,) taken off every row of K_S
    target_shift: np.ndarray  # (t,), or one for all
    noise: float = 0.0  # of float32 kernel values; root mean square
    resolves_trace: bool = True  # tr(K − K̃) can be read off the Gram matrix

    @classmethod
    def for_ridge(
        cls,
        landmarks: Landmarks,
        source: Source,
        alpha: float,
        *,
        center: bool,
        engine: Engine | None = None,
    ) -> FeatureMap:
        """For a ridge of `alpha`, the least that will be asked for.

        Targets that are not held in memory are read on the engine.
        """
        columns, n = landmarks.columns(), source.total_weight
        factor, rows = landmarks.factor.for_blocks(columns.dtype), tried_rows(source)
        noise, resolves_trace = 0.0, True
        with np.errstate(over="ignore", invalid="ignore"):
            K = columns.host(rows.points)
            if columns.narrow:
                wide = columns.widened()
                exact = wide.host(rows.points)
                noise = precision.noise_of(K, exact, factor.scale)
                lost = _lost(landmarks.factor, factor, exact, rows.weights)
                if precision.ridge_needs_float64(
                    factor.inverse_norm, lost, noise, n, alpha
                ):
                    columns, factor, K = wide, landmarks.factor, exact
                    noise = 0.0
                else:
                    resolves_trace = _resolves_trace(landmarks, rows, K, exact)
            squares = np.einsum("ij,ij->j", K, K) * (n / len(K))
        check_finite(squares)
        # The error told is read off the same sums, and right to a millionth of tr K.
        whole = n * float(np.mean(arrays.to_host(columns.diag(rows.points))))
        if whole > 0:
            alpha = min(alpha, precision.RESOLUTION / precision.GRAM_ERROR * whole)
        none = np.zeros(K.shape[1])
        mapping = cls(
            columns, factor, alpha, False, none, np.zeros(1), noise, resolves_trace
        )
        right = precision.unwhitened_gram_is_right(mapping.gram_error(squares), alpha)
        mapping = replace(mapping, whiten=not right)
        if not center:
            return mapping
        # Where the Gram matrix is right its mean is too, and can be taken off later.
        shift = row_weights.mean(rows.weights, K) if mapping.whiten else none
        if source.targets is None:
            return replace(mapping, shift=shift)
        target_shift = mean_target(source, engine or Threads(1))
        return replace(mapping, shift=shift, target_shift=target_shift)

    @classmethod
    def resolving(
        cls, landmarks: Landmarks, source: Source, *, center: bool
    ) -> FeatureMap:
        """For methods without a ridge: right to a share of tr K/s.

        Of tr HKH/s where the mean is taken off, which may be far less.
        """
        share = _mean_square(landmarks, source, center) * source.total_weight
        alpha = precision.RESOLUTION / precision.GRAM_ERROR * share
        return cls.for_ridge(
            landmarks, source, alpha / max(1, len(landmarks)), center=center
        )

    @property
    def root(self) -> np.ndarray:
        """(s, r): Z = K_S·root."""
        return self.factor.root

    @property
    def rank(self) -> int:
        """r, the columns of Z."""
        return self.factor.rank

    @property
    def center(self) -> np.ndarray:
        """(r,): the shift in the coordinates of Z."""
        return self.shift @ self.root

    def of_prefix(self, size: int) -> FeatureMap:
        """The map of the first landmarks alone: the first columns of the same Z."""
        if size == len(self.columns):
            return self  # an indefinite kernel's factor has no prefix but itself
        points = arrays.slice_rows(self.columns.points, 0, size)
        return replace(
            self,
            columns=replace(self.columns, points=points),
            factor=self.factor.prefix(size),
            shift=self.shift[:size],
        )

    def __call__(self, X: Any) -> Array:
        """Z of few rows, where they are."""
        K = self.columns.float64(X)
        return K @ arrays.from_host(self.root, K)

    def tiles(self) -> Tiles:
        """What is made of a tile before sums are taken."""
        if self.whiten:
            return Tiles.by(self.columns, self.root, self.center)
        return Tiles.by(self.columns, None, self.shift)

    def gram_error(self, squares: np.ndarray) -> float:
        """The rounding of the Gram matrix, from a sum K_SᵀK_S with this diagonal."""
        inverse_diagonal = np.vecdot(self.root, self.root)
        return precision.unwhitened_gram_error(squares, inverse_diagonal)


def _lost(
    whole: Factor, fewer: Factor, exact: np.ndarray, weights: np.ndarray
) -> float:
    """What the float32 factor does not resolve of the mean row's k(x, x).

    From the landmarks, and from the tried rows, `exact` kernel values of them: what is
    lost of a row may be far more than of any landmark.
    """
    if fewer is whole:
        return 0.0
    squares = []
    for factor in (whole, fewer):
        Z = exact @ factor.root
        squares.append(np.vecdot(Z, Z))
    of_rows = precision.most_lost(squares[0], squares[1], weights)
    return max(of_rows, whole.lost_to(fewer) / len(whole.L))


def _resolves_trace(
    landmarks: Landmarks, rows: Source, narrow: np.ndarray, exact: np.ndarray
) -> bool:
    """Whether float32 values of the tried rows tell what is left of them."""
    kxx = arrays.to_host(landmarks.columns().diag(rows.rows(0, rows.n_rows)))
    lefts = []
    for K, dtype in ((narrow, np.float32), (exact, np.float64)):
        Z = K @ landmarks.factor.for_blocks(dtype).root
        lefts.append(kxx - np.vecdot(Z, Z))
    return not precision.trace_needs_float64(lefts[0], lefts[1], rows.weights)


def mean_target(source: Source, engine: Engine) -> np.ndarray:
    """(t,): the weighted mean of the targets: at once, or added up tile by tile.

    No rows are read, and wherever the targets are, the mean is the same.
    """
    if source.n_rows * source.targets.shape[1] <= FEW_TARGETS:
        return row_weights.mean(source.weights, source.targets[: source.n_rows])
    held = isinstance(source.targets, np.ndarray)
    weights = source.weights if source.is_weighted else None
    alone = RowNumbers(source.n_rows, weights).having(targets=source.targets)
    engine = Threads(1) if held else engine
    weighted, plain, total = engine.reduce(_target_sums, alone, (), "mean of targets")
    return weighted / total if total > 0 else plain / source.n_rows


def _target_sums(block: Block) -> tuple[np.ndarray, np.ndarray, float]:
    assert block.targets is not None
    Y, w = block.targets, np.ascontiguousarray(block.weights)
    return w @ Y, Y.sum(axis=0), float(w.sum())


def _mean_square(landmarks: Landmarks, source: Source, center: bool) -> float:
    """The mean of ‖φ(x)‖², or of ‖φ(x) − mean‖², on a few rows."""
    columns = landmarks.columns(wide=True)
    X = tried_rows(source).points
    whole = float(np.mean(arrays.to_host(columns.diag(X))))
    if not center:
        return whole
    mean = np.mean(columns.host(X) @ landmarks.factor.root, axis=0)
    return max(whole - float(mean @ mean), precision.EPS64 * whole)


def features(
    landmarks: Landmarks,
    source: Source,
    engine: Engine,
    *,
    wide: bool,
    output: Output = ARRAY,
) -> Any:
    """Z = k(X, landmarks)·L⁻ᵀ for any rows, in their own precision.

    `wide` evaluates float32 rows in float64: see `features_need_float64`.
    """
    sink, shared = _feature_pass(landmarks, source, wide, output)
    engine.map(_features, source, sink, shared, "features")
    return output.result(sink)


def features_and_error(
    landmarks: Landmarks,
    source: Source,
    engine: Engine,
    *,
    wide: bool,
    output: Output = ARRAY,
) -> tuple[Any, TraceError]:
    """Z and, from the same pass, the relative trace error tr(K − ZZᵀ)/tr K."""
    sink, shared = _feature_pass(landmarks, source, wide, output)
    sums = SumSink(TILE)
    both = SplitSink(sink, sums)
    engine.map(_features_and_sums, source, both, shared, "features")
    kept, whole, squares = arrays.fetched(sums.total())
    nested = squares if landmarks.factor.is_nested else None
    rounding = whole * _rounding_of_features(landmarks, source, wide)
    error = TraceError.of_all(whole - kept, whole, source.n_rows, nested, rounding)
    return output.result(sink), error


def _feature_pass(
    landmarks: Landmarks, source: Source, wide: bool, output: Output
) -> tuple[Any, tuple]:
    first, kernel = source.given.rows(0, 1), landmarks.kernel
    like, dtype = kernel.like(first), kernel.dtype(first)
    columns = landmarks.columns(wide=wide)
    factor = landmarks.factor.for_blocks(columns.dtype)
    sink = output.sink(source, len(landmarks), dtype, like)
    return sink, (columns, columns.operand(factor.full_root), dtype)


def features_need_float64(landmarks: Landmarks, source: Source) -> bool:
    """Whether float32 values would show in what the features leave of k(x, x)."""
    if not landmarks.columns().narrow:
        return False
    narrow, wide, kxx, _ = _left_of_tried(landmarks, source)
    return precision.features_need_float64(narrow, wide, kxx)


def _rounding_of_features(landmarks: Landmarks, source: Source, wide: bool) -> float:
    """How far tr K̃ of these features may be off, as a share of tr K."""
    if wide or not landmarks.columns().narrow:
        return precision.residual_unit(np.float64, len(landmarks))
    return precision.rounding_of_left(*_left_of_tried(landmarks, source))


def _left_of_tried(landmarks: Landmarks, source: Source) -> tuple[np.ndarray, ...]:
    """What is left of the tried rows, by float32 and float64; k(x, x); weights."""
    rows = tried_rows(source)
    columns, X = landmarks.columns(), rows.points
    kxx, left = arrays.to_host(columns.diag(X)), []
    for c in (columns, columns.widened()):
        root = landmarks.factor.for_blocks(c.dtype).root
        with np.errstate(over="ignore", invalid="ignore"):
            taken = c.operand(root).squared_norms(c(X))
            left.append(kxx - arrays.to_host(taken))
    return left[0], left[1], kxx, rows.weights


def _features(block: Block, columns: Columns, root: ColumnBlocks, dtype: Any) -> Array:
    Z = root.product(columns(block.X))
    # The sum may overflow where no entry does: look closer before refusing.
    if not np.isfinite(float(arrays.namespace(Z).sum(Z))):
        check_finite(arrays.to_host(Z))
    return handed_out(Z, dtype)


def _features_and_sums(
    block: Block, columns: Columns, root: ColumnBlocks, dtype: Any
) -> tuple[Array, tuple[Any, Any, Array]]:
    Z, w = root.product(columns(block.X)), block.weights
    kept = row_weights.total(w, arrays.widen(arrays.squared_norms(Z)))
    if not np.isfinite(float(kept)):
        check_finite(arrays.to_host(Z * Z))
    whole = row_weights.total(w, columns.diag(block.X))
    by_column = arrays.widen(row_weights.squares_over_rows(w, Z))
    return handed_out(Z, dtype), (kept, whole, by_column)
