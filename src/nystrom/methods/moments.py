"""Sums over rows of z, zzᵀ and zyᵀ: all that a linear method on Z needs of the data.

Z = K_S·root is made tile by tile and forgotten. Sums are float64, about a shift that is
near the mean where means will be taken off. Sums over disjoint rows add up, which is
how folds are had from one pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from .. import _arrays as arrays
from ..engines import Engine
from ..factor import Factor, check_finite
from ..kernels import Kernel
from ..landmarks import Landmarks, TraceError
from ..randomness import some_rows
from ..sources import Block, Source

#: Rows on which the size of the Gram matrix, and the shift, are estimated.
TRIED_ROWS = 256
#: Root mean square error of a float32 kernel value, as a share of k(x, x); measured.
FLOAT32_NOISE = 3e-8


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


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """How Z is made so that its Gram matrix is right to a thousandth of alpha.

    The product with `root` costs twice what the Gram matrix does, and is put off to
    after the sum where K_SS is conditioned well enough; a very smooth kernel needs it
    in every tile, and may need float64 kernel values for float32 rows.
    """

    kernel: Kernel
    points: Any
    factor: Factor
    alpha: float  # the least ridge that Z is to be right for
    wide: bool  # float32 rows are evaluated in float64
    whiten: bool  # Z per tile, instead of K_S per tile and root after the sum
    shift: np.ndarray  # (s,) taken off every row of K_S
    target_shift: np.ndarray  # (t,), or one for all

    @property
    def root(self) -> np.ndarray:
        """(s, r): Z = K_S·root."""
        return self.factor.root

    @property
    def rank(self) -> int:
        """r, the columns of Z."""
        return self.factor.rank

    def evaluator(self) -> Evaluate:
        """Rows ↦ K_S on the host in float64, evaluated as precisely as decided."""
        points = arrays.widen(self.points) if self.wide else self.points
        return Evaluate(self.kernel, self.kernel.against(points), self.wide)


@dataclass(frozen=True)
class Evaluate:
    """k(x, landmarks) and k(x, x) of rows, on the host, in float64 unless told."""

    kernel: Kernel
    against: Callable
    wide: bool  # float32 rows are evaluated in float64
    dtype: Any = np.float64  # what the values are handed out in

    def __call__(self, X: Any) -> np.ndarray:
        K = self.against(arrays.widen(X) if self.wide else X)
        return arrays.to_host(K).astype(self.dtype, copy=False)

    def diag(self, X: Any) -> np.ndarray:
        """k(x, x) of each row."""
        return arrays.host_values(self.kernel.diag(arrays.widen(X)))


def squared_projections(
    block: Block, evaluate: Evaluate, M: np.ndarray, offset: np.ndarray
) -> np.ndarray:
    """‖k_S·M − offset‖² of each row."""
    projected = evaluate(block.X) @ M - offset
    return np.vecdot(projected, projected)


def feature_map(
    landmarks: Landmarks, source: Source, alpha: float, *, center: bool
) -> FeatureMap:
    """Decide how Z is made for a ridge of `alpha`, the least that will be asked for."""
    kernel, points = landmarks.kernel, landmarks.points
    factor = landmarks.factor
    total = float(source.n_rows if source.weights is None else source.weights.sum())
    narrow = kernel.dtype(points) == np.float32
    wide = narrow and _needs_float64(factor, total, alpha)
    if wide:
        factor = factor.for_blocks(np.float64)
    none = np.zeros(0)
    made = FeatureMap(kernel, points, factor, alpha, wide, False, none, none)
    rows = some_rows(source.n_rows, TRIED_ROWS)
    K = made.evaluator()(source.take(rows))
    check_finite(K)
    size = float(np.linalg.norm(K @ K.T, 2)) * total / len(rows)
    whiten = not _is_safe(size, factor, alpha)
    shift, target_shift = _shifts(K, rows, source, center)
    # Where the Gram matrix is safe its mean is too, and can be taken off afterwards.
    shift = shift if whiten else np.zeros_like(shift)
    return replace(made, whiten=whiten, shift=shift, target_shift=target_shift)


def _needs_float64(factor: Factor, n_rows: float, alpha: float) -> bool:
    """Whether float32 kernel values would show in a ridge solution."""
    kept = factor.eigenvalues[: factor.rank]
    if not len(kept):
        return False
    # Rounding adds to the Gram matrix, and mixes with what is in it already.
    added = n_rows * (FLOAT32_NOISE * factor.scale) ** 2 / kept[-1]
    mixed = 2 * np.sqrt(alpha * added / n_rows)
    # Directions that float32 cannot resolve are lost; each may have n/s times its
    # eigenvalue in K.
    lost = factor.eigenvalues[factor.rank : factor.for_blocks(np.float64).rank]
    missed = float(lost.sum()) * n_rows / len(factor.eigenvalues)
    return added > 4e-3 * alpha or max(mixed, missed) > 1e-3 * alpha


def _is_safe(size: float, factor: Factor, alpha: float, margin: float = 1.0) -> bool:
    """Whether rootᵀ(K_SᵀK_S)root is right to a thousandth of alpha."""
    if not factor.rank:
        return True
    least = factor.eigenvalues[factor.rank - 1]
    return arrays.epsilon(np.float64) * size / least <= margin * 1e-3 * alpha


def _shifts(
    K: np.ndarray, rows: np.ndarray, source: Source, center: bool
) -> tuple[np.ndarray, np.ndarray]:
    Y = source.targets
    if not center:
        return np.zeros(K.shape[1]), np.zeros(1)
    w = source.weights
    some = None if w is None or not w[rows].any() else w[rows]
    shift = np.average(K, axis=0, weights=some)
    return shift, np.zeros(1) if Y is None else np.average(Y, axis=0, weights=w)


def moments(
    made: FeatureMap, source: Source, engine: Engine, stage: str = "Gram matrix"
) -> Moments:
    """The sums over all rows of a source, in one pass."""
    shift = made.shift @ made.root if made.whiten else made.shift
    root = made.root if made.whiten else None
    shared = (made.evaluator(), root, shift, made.target_shift)
    A, C, f, *rest = engine.reduce(_block_moments, source, shared, stage)
    if not np.isfinite(np.trace(A)):
        check_finite(A)
    if made.whiten:
        return Moments(_symmetric(A), C, f, *rest)
    # A few rows may be far larger than the tried ones.
    if not _is_safe(float(np.linalg.norm(A)), made.factor, made.alpha, margin=10):
        return moments(replace(made, whiten=True), source, engine, stage)
    root = made.root
    return Moments(_symmetric(root.T @ A @ root), root.T @ C, root.T @ f, *rest)


def _symmetric(A: np.ndarray) -> np.ndarray:
    return (A + A.T) / 2


def _block_moments(
    block: Block,
    evaluate: Evaluate,
    root: np.ndarray | None,
    shift: np.ndarray,
    target_shift: np.ndarray,
) -> tuple:
    Z = evaluate(block.X)
    diagonal = evaluate.diag(block.X)
    if root is not None:
        Z = Z @ root
    if shift.any():
        Z = Z - shift
    Y = np.zeros((len(Z), 0)) if block.targets is None else block.targets - target_shift
    w = block.weights
    if w is None:
        total, n_rows = float(len(Z)), len(Z)
        sums = Z.sum(axis=0), Y.sum(axis=0), np.einsum("ij,ij->j", Y, Y)
        return Z.T @ Z, Z.T @ Y, *sums, total, n_rows, float(diagonal.sum())
    root_w = np.sqrt(w)[:, None]
    Z, Y = Z * root_w, Y * root_w
    sums = root_w[:, 0] @ Z, root_w[:, 0] @ Y, np.einsum("ij,ij->j", Y, Y)
    total, n_rows = float(w.sum()), int(np.count_nonzero(w))
    return Z.T @ Z, Z.T @ Y, *sums, total, n_rows, float(w @ diagonal)


def trace_error(made: FeatureMap, sums: Moments) -> tuple[float, TraceError]:
    """An upper bound of tr(K − K̃), and tr(K − K̃)/tr K, from the Gram matrix."""
    c = made.shift @ made.root
    kept = np.trace(sums.gram) + 2 * c @ sums.feature_sum + sums.weight * (c @ c)
    left, whole = max(0.0, sums.kernel_trace - float(kept)), sums.kernel_trace
    share = left / whole if whole > 0 else 0.0
    error = TraceError(share, 0.0, sums.n_rows, exact=True)
    return left + _rounding_of_trace(made, float(kept), sums), error


def _rounding_of_trace(made: FeatureMap, kept: float, sums: Moments) -> float:
    """How far off tr K̃ may be."""
    eps = arrays.epsilon(np.float64)
    values = made.factor.eigenvalues[: made.rank]
    inverse = float(np.sum(1 / values))
    rounding = 10 * eps * sums.kernel_trace
    if not made.whiten and len(values):
        rounding += eps * float(values[0]) * kept * inverse
    if made.kernel.dtype(made.points) == np.float32 and not made.wide:
        added = sums.weight * (FLOAT32_NOISE * made.factor.scale) ** 2 * inverse
        rounding += added + 2 * np.sqrt(sums.kernel_trace * added)
    return rounding
