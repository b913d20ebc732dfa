"""Features Z = K_S L⁻ᵀ, block by block: K̃ = ZZᵀ; and affine maps of kernel values.

`FeatureMap` decides whether the product with L⁻ᵀ is per block or after
summation, and in which precision, so that the Gram matrix is accurate for a given
alpha. Every fitted model predicts, transforms or scores new rows through one
`LinearMap`, x ↦ k(x, landmarks) @ dual + intercept.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import _arrays as arrays
from .. import _precision as precision
from .._arrays import Array, DeviceConstant
from .._validation import KernelNotFiniteError, check_finite
from ..engines import TILE, Engine, SumSink, Threads
from ..landmarks import Landmarks
from ..sources import Block, RowNumbers, Source
from ..sources.base import weighted_mean, weighted_row_squares, weighted_sum
from ..sources.output import NEW_ARRAY, Output, SplitSink
from .cross_kernel import CrossKernel, cast_output, diag_float64, probe_rows
from .errors import TraceError
from .factor import ColumnBlocks, Factor

#: Targets that may be read at once.
MAX_TARGETS_AT_ONCE = 2**20
#: Sums are as accurate as for an alpha of this share of tr K, for the reported error.
MIN_ALPHA_RATIO = precision.GRAM_RESOLUTION / precision.MAX_GRAM_ERROR


class BlockFeatures:
    """Rows ↦ K_S·root − shift, or K_S − shift without a root: float64, on the device.

    Without a shift, or with one of 0, nothing is subtracted.
    """

    def __init__(
        self,
        columns: CrossKernel,
        root: np.ndarray | None = None,
        shift: np.ndarray | None = None,
    ) -> None:
        self.columns = columns
        self.root = None if root is None else ColumnBlocks.from_matrix(root)
        self.shift: DeviceConstant | None = None
        if shift is not None and shift.any():
            self.shift = DeviceConstant(shift)

    def __call__(self, X: Any) -> Array:
        Z = self.columns.float64(X)
        Z = Z if self.root is None else self.root.product(Z)
        return Z if self.shift is None else Z - self.shift.to_device_of(Z)


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """How Z is computed so that its Gram matrix is right to a thousandth of alpha.

    The product with `root` costs as much as the Gram matrix does, and comes after the
    sum where K_SS is conditioned well enough; a very smooth kernel needs it in every
    tile, and may need float64 kernel values for float32 rows.
    """

    columns: CrossKernel
    factor: Factor
    alpha: float  # the least ridge that Z is to be right for
    whiten: bool  # Z per tile, instead of K_S per tile and root after the sum
    shift: np.ndarray  # (s,) subtracted from every row of K_S
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
        columns, rows = landmarks.columns(), probe_rows(source)
        factor = landmarks.factor.for_block_dtype(columns.dtype)
        n, noise, resolves_trace = source.total_weight, 0.0, True
        with np.errstate(over="ignore", invalid="ignore"):
            K = arrays.to_host_float64(columns(rows.points))
            if columns.narrow:
                wide = columns.widened()
                exact = arrays.to_host_float64(wide(rows.points))
                noise = precision.float32_noise(K, exact, factor.scale)
                unresolved = _unresolved_trace(
                    landmarks.factor, factor, exact, rows.weights
                )
                if precision.ridge_needs_float64(
                    factor.inverse_norm, unresolved, noise, n, alpha
                ):
                    columns, factor, K, noise = wide, landmarks.factor, exact, 0.0
                else:
                    resolves_trace = _float32_resolves_trace(landmarks, rows, K, exact)
            squares = np.einsum("ij,ij->j", K, K) * (n / len(K))
        check_finite(squares)
        # The reported error comes from the same sums, and right to a millionth of tr K.
        diagonal = arrays.to_host(diag_float64(columns.kernel, rows.points))
        kernel_trace = n * float(np.mean(diagonal))
        if kernel_trace > 0:
            alpha = min(alpha, MIN_ALPHA_RATIO * kernel_trace)
        inverse_diagonal = np.vecdot(factor.root, factor.root)
        error = precision.unwhitened_gram_error(squares, inverse_diagonal)
        whiten = not precision.is_unwhitened_gram_accurate(error, alpha)
        shift, target_shift = np.zeros(K.shape[1]), np.zeros(1)
        # Where the Gram matrix is right its mean is too, and can be subtracted later.
        if center and whiten:
            shift = weighted_mean(rows.weights, K)
        if center and source.targets is not None:
            target_shift = mean_target(source, engine or Threads(1))
        return cls(
            columns, factor, alpha, whiten, shift, target_shift, noise, resolves_trace
        )

    @classmethod
    def whitened(
        cls,
        columns: CrossKernel,
        factor: Factor,
        target_shift: np.ndarray | None = None,
    ) -> FeatureMap:
        """Z in every tile, uncentered."""
        target_shift = np.zeros(1) if target_shift is None else target_shift
        return cls(columns, factor, 0.0, True, np.zeros(len(columns)), target_shift)

    @classmethod
    def without_ridge(
        cls, landmarks: Landmarks, source: Source, *, center: bool
    ) -> FeatureMap:
        """For methods without a ridge: right to a share of tr K/s.

        Of tr HKH/s where the mean is subtracted, which may be far less.
        """
        columns, X = landmarks.columns(wide=True), probe_rows(source).points
        mean = float(np.mean(arrays.to_host(diag_float64(columns.kernel, X))))
        if center:
            K = arrays.to_host_float64(columns(X))
            z = np.mean(K @ landmarks.factor.root, axis=0)
            mean = max(mean - float(z @ z), precision.EPS64 * mean)
        total = mean * source.total_weight
        alpha = MIN_ALPHA_RATIO * total / max(1, len(landmarks))
        return cls.for_ridge(landmarks, source, alpha, center=center)

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

    def prefix(self, size: int) -> FeatureMap:
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

    def tiles(self) -> BlockFeatures:
        """The features of a tile that sums are over."""
        if self.whiten:
            return BlockFeatures(self.columns, self.root, self.center)
        return BlockFeatures(self.columns, shift=self.shift)


def _unresolved_trace(
    whole: Factor, fewer: Factor, exact: np.ndarray, weights: np.ndarray
) -> float:
    """What the float32 factor does not resolve of the mean row's k(x, x).

    From the landmarks, and from the probe rows, `exact` kernel values of them: what is
    lost of a row may be far more than of any landmark.
    """
    if fewer is whole:
        return 0.0
    squares = []
    for factor in (whole, fewer):
        Z = exact @ factor.root
        squares.append(np.vecdot(Z, Z))
    of_rows = precision.max_unresolved(squares[0], squares[1], weights)
    return max(of_rows, whole.trace_lost_to(fewer) / len(whole.L))


def _float32_resolves_trace(
    landmarks: Landmarks, rows: Source, narrow: np.ndarray, exact: np.ndarray
) -> bool:
    """Whether float32 values of the probe rows resolve their residuals."""
    kxx = arrays.to_host(diag_float64(landmarks.kernel, rows.rows(0, rows.n_rows)))
    residuals = []
    for K, dtype in ((narrow, np.float32), (exact, np.float64)):
        Z = K @ landmarks.factor.for_block_dtype(dtype).root
        residuals.append(kxx - np.vecdot(Z, Z))
    return not precision.trace_needs_float64(residuals[0], residuals[1], rows.weights)


def mean_target(source: Source, engine: Engine) -> np.ndarray:
    """(t,): the weighted mean of the targets: at once, or added up tile by tile.

    No rows are read, and wherever the targets are, the mean is the same.
    """
    if source.n_rows * source.targets.shape[1] <= MAX_TARGETS_AT_ONCE:
        return weighted_mean(source.weights, source.targets[: source.n_rows])
    in_memory = isinstance(source.targets, np.ndarray)
    weights = source.weights if source.is_weighted else None
    targets_only = RowNumbers(source.n_rows, weights).replace(targets=source.targets)
    engine = Threads(1) if in_memory else engine
    weighted, unweighted, total = engine.reduce(
        _block_target_sums, targets_only, (), "mean of targets"
    )
    return weighted / total if total > 0 else unweighted / source.n_rows


def _block_target_sums(block: Block) -> tuple[np.ndarray, np.ndarray, float]:
    assert block.targets is not None
    Y, w = block.targets, np.ascontiguousarray(block.weights)
    return w @ Y, Y.sum(axis=0), float(w.sum())


def features(
    landmarks: Landmarks,
    source: Source,
    engine: Engine,
    *,
    wide: bool,
    output: Output = NEW_ARRAY,
) -> Any:
    """Z = k(X, landmarks)·L⁻ᵀ for any rows, in their own precision.

    `wide` evaluates float32 rows in float64: see `features_need_float64`.
    """
    sink, shared = _prepare_features(landmarks, source, wide, output)
    engine.map(_block_features, source, sink, shared, "features")
    return output.result(sink)


def features_and_error(
    landmarks: Landmarks,
    source: Source,
    engine: Engine,
    *,
    wide: bool,
    output: Output = NEW_ARRAY,
) -> tuple[Any, TraceError]:
    """Z and, from the same pass, the relative trace error tr(K − ZZᵀ)/tr K."""
    sink, shared = _prepare_features(landmarks, source, wide, output)
    sums = SumSink(TILE)
    sinks = SplitSink(sink, sums)
    engine.map(_block_features_and_sums, source, sinks, shared, "features")
    explained, kernel_trace, squares = arrays.tree_to_host(sums.total())
    path_squares = squares if landmarks.factor.is_nested else None
    rounding = kernel_trace * _rounding_of_features(landmarks, source, wide)
    error = TraceError.from_sums(
        kernel_trace - explained, kernel_trace, source.n_rows, path_squares, rounding
    )
    return output.result(sink), error


def _prepare_features(
    landmarks: Landmarks, source: Source, wide: bool, output: Output
) -> tuple[Any, tuple]:
    first, kernel = source.original.rows(0, 1), landmarks.kernel
    like, dtype = kernel.output_like(first), kernel.dtype(first)
    columns = landmarks.columns(wide=wide)
    factor = landmarks.factor.for_block_dtype(columns.dtype)
    sink = output.sink(source, len(landmarks), dtype, like)
    root = ColumnBlocks.from_matrix(factor.full_root, columns.dtype)
    return sink, (columns, root, dtype)


def features_need_float64(landmarks: Landmarks, source: Source) -> bool:
    """Whether float32 values would show in what the features leave of k(x, x)."""
    if not landmarks.columns().narrow:
        return False
    narrow, wide, kxx, _ = _probe_residuals(landmarks, source)
    # Features are float32 anyway: what is off by a few units of rounding is hidden.
    own_rounding = precision.block_residual_rounding(np.float32) * np.abs(kxx).mean()
    return precision.residuals_need_float64(narrow, wide, float(own_rounding))


def _rounding_of_features(landmarks: Landmarks, source: Source, wide: bool) -> float:
    """How far tr K̃ of these features may be off, as a share of tr K."""
    if wide or not landmarks.columns().narrow:
        return precision.residual_rounding(np.float64, len(landmarks))
    return precision.residual_trace_rounding(*_probe_residuals(landmarks, source))


def _probe_residuals(landmarks: Landmarks, source: Source) -> tuple[np.ndarray, ...]:
    """Residuals of the probe rows by float32 and float64; k(x, x); weights."""
    rows = probe_rows(source)
    columns, X = landmarks.columns(), rows.points
    kxx, residuals = arrays.to_host(diag_float64(columns.kernel, X)), []
    for c in (columns, columns.widened()):
        root = landmarks.factor.for_block_dtype(c.dtype).root
        with np.errstate(over="ignore", invalid="ignore"):
            blocks = ColumnBlocks.from_matrix(root, c.dtype)
            explained = blocks.squared_norms(c(X))
            residuals.append(kxx - arrays.to_host(explained))
    return *residuals, kxx, rows.weights


def _block_features(
    block: Block, columns: CrossKernel, root: ColumnBlocks, dtype: Any
) -> Array:
    Z = root.product(columns(block.X))
    # The sum may overflow where no entry does: check entries before refusing.
    if not np.isfinite(float(arrays.namespace(Z).sum(Z))):
        check_finite(arrays.to_host(Z))
    return cast_output(Z, dtype)


def _block_features_and_sums(
    block: Block, columns: CrossKernel, root: ColumnBlocks, dtype: Any
) -> tuple[Array, tuple[Any, Any, Array]]:
    Z, w = root.product(columns(block.X)), block.weights
    explained = weighted_sum(w, arrays.widen(arrays.squared_norms(Z)))
    if not np.isfinite(float(explained)):
        check_finite(arrays.to_host(Z * Z))
    kernel_trace = weighted_sum(w, diag_float64(columns.kernel, block.X))
    column_squares = arrays.widen(weighted_row_squares(w, Z))
    return cast_output(Z, dtype), (explained, kernel_trace, column_squares)


#: Points whose kernel values with a tile are computed at once: many do not fit.
MAX_POINTS_PER_BLOCK = 4096


@dataclass(frozen=True, eq=False)
class LinearMap:
    """x ↦ k_S(x)·dual + intercept."""

    dual: np.ndarray  # (s, t)
    intercept: np.ndarray  # (t,)
    wide: bool  # float32 rows are evaluated in float64; the result is float32
    wide_sums: bool = False  # float32 kernel values are added up in float64

    @classmethod
    def with_sufficient_precision(
        cls,
        landmarks: Landmarks,
        source: Source,
        dual: np.ndarray,
        intercept: np.ndarray,
    ) -> LinearMap:
        """In float64 where the probe rows differ between the precisions.

        Large coefficients of both signs cancel: mostly it is the sum that loses digits
        then, and the values, which cost more, may stay float32.
        """
        fast = cls(dual, intercept, wide=False)
        if not landmarks.columns().narrow or not dual.size:
            return fast
        probe = probe_rows(source)

        def evaluate_probe(mapping: LinearMap) -> np.ndarray:
            return arrays.to_host_float64(mapping(landmarks, probe, Threads(1)))

        exact = replace(fast, wide=True)
        reference = evaluate_probe(exact)
        for candidate in (fast, replace(fast, wide_sums=True)):
            # Coefficients, too, may be larger than float32 has numbers for.
            with suppress(KernelNotFiniteError):
                values = evaluate_probe(candidate)
                if not precision.results_need_float64(values, reference):
                    return candidate
        return exact

    def __call__(
        self,
        landmarks: Landmarks,
        source: Source,
        engine: Engine,
        name: str = "predictions",
        output: Output = NEW_ARRAY,
    ) -> Any:
        """The results of all rows, s kernel evaluations each."""
        first, kernel = source.original.rows(0, 1), landmarks.kernel
        like, dtype = kernel.output_like(first), kernel.dtype(first)
        sink = output.sink(source, self.dual.shape[1], dtype, like)
        shared = self.block_arguments(landmarks, dtype)
        engine.map(apply_to_block, source, sink, shared, name)
        return output.result(sink)

    def block_arguments(self, landmarks: Landmarks, dtype: Any) -> tuple:
        """What `apply_to_block` needs besides a block."""
        kernel, n, parts = landmarks.kernel, len(self.dual), []
        for start in range(0, max(n, 1), MAX_POINTS_PER_BLOCK):
            stop = min(start + MAX_POINTS_PER_BLOCK, n)
            points = arrays.slice_rows(landmarks.points, start, stop)
            dual = DeviceConstant(self.dual[start:stop])
            parts.append((CrossKernel(kernel, points, self.wide), dual))
        return parts, DeviceConstant(self.intercept), self.wide_sums, dtype


def apply_to_block(
    block: Block,
    parts: list[tuple[CrossKernel, DeviceConstant]],
    intercept: DeviceConstant,
    wide_sums: bool,
    dtype: Any,
) -> Array:
    """The results of the rows of a block."""
    values: Array = None
    for columns, dual in parts:
        K = columns(block.X)
        K = arrays.widen(K) if wide_sums else K
        product = K @ dual.to_device_of(K)
        values = product if values is None else values + product
    values = values + intercept.to_device_of(values)
    if not np.isfinite(float(arrays.namespace(values).sum(values))):
        check_finite(arrays.to_host(values))
    return cast_output(values, dtype)
