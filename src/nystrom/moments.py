"""Sums over rows of z, zzᵀ and zyᵀ: all that a linear method on Z needs of the data.

Z is made tile by tile and forgotten. Sums are float64, about a shift that is near the
mean where means will be taken off. Sums over disjoint rows add up, which is how folds
are had from one pass.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from . import precision
from .engines import Engine
from .features import FeatureMap, Tiles
from .refusals import check_finite
from .sources import Block, Source
from .sources import weights as row_weights
from .trace_error import TraceError


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

    def of_columns(self, n_features: int) -> Moments:
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
    A, C, f, *rest = engine.reduce(_block_moments, source, shared, name)
    if not np.isfinite(np.trace(A)):
        check_finite(A)
    if mapping.whiten:
        return Moments(_symmetric(A), C, f, *rest)
    # A few rows may be far larger than the tried ones.
    if not mapping.sums_are_right(float(np.linalg.norm(A)), margin=10):
        return moments(replace(mapping, whiten=True), source, engine, name)
    root = mapping.root
    return Moments(_symmetric(root.T @ A @ root), root.T @ C, root.T @ f, *rest)


def _symmetric(A: np.ndarray) -> np.ndarray:
    return (A + A.T) / 2


def _block_moments(block: Block, tiles: Tiles, target_shift: np.ndarray) -> tuple:
    Z, w = tiles(block.X), block.weights
    diagonal = tiles.columns.diag(block.X)
    Y = np.zeros((len(Z), 0)) if block.targets is None else block.targets - target_shift
    if row_weights.all_alike(w):
        total, n_rows = float(len(Z)), len(Z)
        sums = Z.sum(axis=0), Y.sum(axis=0)
    else:
        total, n_rows = float(w.sum()), int(np.count_nonzero(w))
        root_w = np.sqrt(w)
        Z, Y = Z * root_w[:, None], Y * root_w[:, None]
        sums = root_w @ Z, root_w @ Y
    squares, trace = np.einsum("ij,ij->j", Y, Y), row_weights.total(w, diagonal)
    return Z.T @ Z, Z.T @ Y, *sums, squares, total, n_rows, trace


def trace_error(mapping: FeatureMap, sums: Moments) -> TraceError:
    """tr(K − K̃)/tr K from the Gram matrix, of all landmarks and of every prefix."""
    squares, whole = _column_squares(mapping, sums), sums.kernel_trace
    by_landmark = None
    if mapping.factor.is_nested:
        by_landmark = np.zeros(len(mapping.columns))
        by_landmark[mapping.factor.kept] = np.maximum(squares, 0.0)
    left = whole - float(squares.sum())
    return TraceError.of_all(left, whole, sums.n_rows, by_landmark)


def trace_left(mapping: FeatureMap, sums: Moments) -> float:
    """An upper bound of tr(K − K̃), rounding included."""
    kept = float(_column_squares(mapping, sums).sum())
    rounding = precision.rounding_of_trace(
        mapping.factor.norm,
        mapping.factor.inverse_trace,
        mapping.factor.scale,
        kept,
        sums.kernel_trace,
        sums.weight,
        whitened=mapping.whiten,
        narrow=mapping.columns.narrow,
    )
    return max(0.0, sums.kernel_trace - kept) + rounding


def _column_squares(mapping: FeatureMap, sums: Moments) -> np.ndarray:
    """(r,): Σ w·z² by column of Z; they add up to tr K̃."""
    c = mapping.center
    return np.diagonal(sums.gram) + 2 * c * sums.feature_sum + sums.weight * c * c
