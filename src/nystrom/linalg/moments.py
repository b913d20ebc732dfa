"""Moments Σz, Σzzᵀ and Σzyᵀ over all rows, z the features of a row, in one pass.

Sums are float64 and about a shift near the mean. Moments of disjoint sets of
rows add up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np

from .. import _arrays as arrays
from .. import _precision as precision
from .._validation import check_finite
from ..engines import Engine
from ..landmarks import Landmarks
from ..sources import Block, Source
from ..sources.base import are_unit_weights, weighted_row_sum, weighted_sum
from .cross_kernel import diag_float64
from .errors import TraceError, estimate_trace_error
from .factor import ColumnBlocks
from .features import BlockFeatures, FeatureMap

#: The Gram matrix is computed in so many panels of columns, each of at least so many:
#: without what is below them a partial sum takes five eighths of the memory. In time
#: few are best in NumPy, whose product of a matrix with itself makes half of it anyway;
#: libraries that make all of it gain from narrower ones.
N_PANELS, MIN_PANEL_COLUMNS, MIN_DEVICE_PANEL_COLUMNS = 4, 1024, 256


@dataclass(frozen=True, eq=False)
class Moments:
    """Weighted sums over rows, about the shifts c of z and m of y."""

    gram: np.ndarray  # (r, r) Σ w(z − c)(z − c)ᵀ
    cross: np.ndarray  # (r, t) Σ w(z − c)(y − m)ᵀ
    feature_sum: np.ndarray  # (r,) Σ w(z − c)
    target_sum: np.ndarray  # (t,) Σ w(y − m)
    target_squares: np.ndarray  # (t,) Σ w(y − m)²
    weight: float  # Σ w
    n_rows: int  # rows with w > 0
    kernel_trace: float  # Σ w k(x, x)
    gram_error: float = 0.0  # how far rounding may have got the Gram matrix

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            *(getattr(self, f.name) + getattr(other, f.name) for f in fields(self))
        )

    @classmethod
    def zero(cls, n_features: int, n_targets: int) -> Moments:
        """The sums over no rows."""
        r, t = n_features, n_targets
        squares = np.zeros((r, r)), np.zeros((r, t))
        return cls(*squares, np.zeros(r), np.zeros(t), np.zeros(t), 0.0, 0, 0.0)

    def first_features(self, n_features: int) -> Moments:
        """The sums of the first columns of Z alone."""
        r = n_features
        return replace(
            self,
            gram=self.gram[:r, :r],
            cross=self.cross[:r],
            feature_sum=self.feature_sum[:r],
        )


def moments(
    mapping: FeatureMap, source: Source, engine: Engine, name: str = "Gram matrix"
) -> Moments:
    """The sums over all rows of a source, in one pass."""
    shared = (mapping.tiles(), mapping.target_shift)
    block_sums = engine.reduce(_block_moments, source, shared, name)
    parts, C, f, *rest = arrays.tree_to_host(block_sums)  # s × s numbers, once
    del block_sums
    A = _assemble_gram(parts, len(f))
    del parts
    if not np.isfinite(np.trace(A)):
        check_finite(A)
    if mapping.whiten:
        sums = Moments(A, C, f, *rest)
        error = precision.centered_gram_rounding(mapping.center, sums.weight)
        return replace(sums, gram_error=error)
    # A few rows may be far larger than the probe rows.
    inverse_diagonal = np.vecdot(mapping.root, mapping.root)
    error = precision.unwhitened_gram_error(np.diagonal(A), inverse_diagonal)
    if not precision.is_unwhitened_gram_accurate(error, mapping.alpha, 2):
        return moments(replace(mapping, whiten=True), source, engine, name)
    root = ColumnBlocks.from_matrix(mapping.root)
    A = root.product(A)
    gram = root.product(A.T)
    cross, feature_sum = mapping.root.T @ C, f @ mapping.root
    sums = Moments(_symmetrize(gram), cross, feature_sum, *rest)
    return replace(sums, gram_error=error)


def _panels(n_columns: int, min_columns: int) -> Iterator[tuple[int, int]]:
    """(start, stop) of the columns of Z that are multiplied at a time."""
    width = max(min_columns, -(-n_columns // N_PANELS))
    return ((a, min(a + width, n_columns)) for a in range(0, n_columns, width))


def _assemble_gram(panels: tuple, n_columns: int) -> np.ndarray:
    A = np.empty((n_columns, n_columns))
    start = 0
    for diagonal_block, right in panels:
        stop = start + len(diagonal_block)
        A[start:stop, start:stop] = diagonal_block
        A[start:stop, stop:], A[stop:, start:stop] = right, right.T
        start = stop
    return _symmetrize(A)


def _symmetrize(A: np.ndarray) -> np.ndarray:
    """A with its upper half below too, in place, panel by panel."""
    for start, stop in _panels(len(A), MIN_PANEL_COLUMNS):
        diagonal_block = A[start:stop, start:stop]
        diagonal_block += diagonal_block.T.copy()
        diagonal_block /= 2
        A[stop:, start:stop] = A[start:stop, stop:].T
    return A


def _block_moments(
    block: Block, tiles: BlockFeatures, target_shift: np.ndarray
) -> tuple:
    Z, w = tiles(block.X), block.weights
    trace = weighted_sum(w, diag_float64(tiles.columns.kernel, block.X))
    Y = np.zeros((len(block), 0)) if block.targets is None else block.targets
    Y = arrays.to_device_of(Y, Z) - arrays.from_host(target_shift, Z)
    total, n_rows = float(w.sum()), int(np.count_nonzero(w))
    root_w = w
    if not are_unit_weights(w):
        root_w = np.sqrt(w)
        scale = arrays.from_host(root_w, Z)[:, None]
        Z, Y = Z * scale, Y * scale
    sums = weighted_row_sum(root_w, Z), weighted_row_sum(root_w, Y)
    squares = arrays.column_squared_norms(Y)
    # ZᵀZ by panels: each with itself, and with all columns after it.
    on_host = arrays.is_on_host(Z)
    min_columns = MIN_PANEL_COLUMNS if on_host else MIN_DEVICE_PANEL_COLUMNS
    panels = ((Z[:, a:b], Z[:, b:]) for a, b in _panels(Z.shape[1], min_columns))
    gram = tuple((P.T @ P, P.T @ right) for P, right in panels)
    return gram, Z.T @ Y, *sums, squares, total, n_rows, trace


def trace_error_after_pass(
    landmarks: Landmarks,
    mapping: FeatureMap,
    sums: Moments,
    source: Source,
    engine: Engine,
) -> TraceError:
    """tr(K − K̃)/tr K from the Gram matrix, of all landmarks and of every prefix.

    Estimated from some rows where the sums do not resolve it.
    """
    if not mapping.resolves_trace:
        return estimate_trace_error(landmarks, source, engine)
    squares, kernel_trace = _feature_squares(mapping, sums), sums.kernel_trace
    by_landmark = None
    if mapping.factor.is_nested:
        by_landmark = np.zeros(len(mapping.columns))
        by_landmark[mapping.factor.kept] = np.maximum(squares, 0.0)
    residual_trace = kernel_trace - float(squares.sum())
    # That of float32 values was found small on a few rows before.
    rounding = precision.trace_rounding(
        sums.gram_error, mapping.root, 0.0, kernel_trace, sums.weight
    )
    least = precision.residual_rounding(np.float64, len(mapping.columns)) * kernel_trace
    rounding = max(rounding, least)
    return TraceError.from_sums(
        residual_trace, kernel_trace, sums.n_rows, by_landmark, rounding
    )


def trace_error_bound(mapping: FeatureMap, sums: Moments) -> float:
    """An upper bound of tr(K − K̃), rounding included."""
    explained = float(_feature_squares(mapping, sums).sum())
    rounding = precision.trace_rounding(
        sums.gram_error,
        mapping.root,
        mapping.noise,
        sums.kernel_trace,
        sums.weight,
    )
    return max(0.0, sums.kernel_trace - explained) + rounding


def _feature_squares(mapping: FeatureMap, sums: Moments) -> np.ndarray:
    """(r,): Σ w·z² by column of Z; they add up to tr K̃."""
    c = mapping.center
    return np.diagonal(sums.gram) + 2 * c * sums.feature_sum + sums.weight * c * c
