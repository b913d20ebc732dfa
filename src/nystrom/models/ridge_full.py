"""Exact kernel ridge regression on all rows: (K + αW⁻¹)x = y by preconditioned
conjugate gradients.

K is applied block by block (`KernelOperator`), preconditioned by K̃ + αI through the
Woodbury identity; iterations use float32 products, residuals are recomputed in
float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
from sklearn import get_config

from .. import _arrays as arrays
from .._arrays import Array, DeviceConstant
from .._precision import min_alpha, min_cholesky_ridge
from .._validation import check_finite
from ..engines import Engine
from ..engines.blas import blas_limit_for_size
from ..kernels import Kernel, Precomputed
from ..landmarks import Landmarks
from ..linalg.cross_kernel import CrossKernel, Ledger
from ..linalg.features import BlockFeatures, FeatureMap
from ..samplers.pool import as_float32_rows
from ..sources import Block, CachedRows, Source
from ..sources.output import ArraySink, Output
from .linear_map import LinearMap
from .ridge import add_ridge

#: Steps at most.
MAX_CG_ITERATIONS = 300
#: ‖b − Ax‖/‖b‖ at which a solution counts as found: what K·x is off by at most.
CG_RTOL = 1e-6
#: How far what is left may seem to fall between two exact products, where those of the
#: steps are rounded.
MAX_UNVERIFIED_REDUCTION = 1e-3
#: What is left after such a fall, as a share of what was left before it: with more the
#: products are too rounded, or nothing more can be had in float64.
STAGNATION_RATIO = 0.5
#: Steps that let what is left grow to so many times what it was, when it was last found
#: exactly, are rounding and nothing else. They are taken back.
DIVERGENCE_RATIO = 1e6

MatrixProduct = Callable[[np.ndarray], np.ndarray]


class NotPositiveDefiniteError(Exception):
    """A direction in which the matrix is not positive."""


@dataclass(frozen=True, eq=False)
class MixedPrecisionSolution:
    """x with Ax = b, column by column, and how it was found."""

    x: np.ndarray
    n_iterations: int
    residual: np.ndarray  # (t,) ‖b − Ax‖/‖b‖, by an exact product
    converged: bool


def mixed_precision_cg(
    multiply_fast: MatrixProduct,
    multiply_exact: MatrixProduct,
    b: np.ndarray,
    precondition: MatrixProduct,
    tolerance: float = CG_RTOL,
) -> MixedPrecisionSolution:
    """Ax = b for every column of b at once, each with steps of its own length.

    A positive definite; `quick` and `exactly` are V ↦ AV, the same function where no
    product is rounded.
    """
    b_norms = _column_norms(b)
    threshold, x, r = tolerance * b_norms, np.zeros_like(b), b.copy()
    verified_x = x  # where what is left was last found exactly
    residual_norms, verified_norms = (
        b_norms,
        b_norms,
    )  # ‖r‖ of each column: as it seems, and as it was found
    z = precondition(r)
    p, rho = z, _column_dots(r, z)
    multiply, converged, n_iterations = (
        multiply_fast,
        not np.any(residual_norms > threshold),
        0,
    )
    while n_iterations < MAX_CG_ITERATIONS and not converged:
        n_iterations += 1
        Ap = multiply(p)
        curvature, active = _column_dots(p, Ap), residual_norms > threshold
        is_descending = not np.any(active & ~(curvature > 0))
        if not is_descending and multiply is multiply_exact:
            raise NotPositiveDefiniteError
        step_length = np.where(
            active & (curvature > 0), rho / _nonzero_divisor(curvature), 0.0
        )
        x = x + step_length * p
        previous_r, r = r, r - step_length * Ap
        residual_norms = _column_norms(r)
        if not np.all(
            residual_norms <= DIVERGENCE_RATIO * verified_norms
        ):  # nan is astray
            x, is_descending = verified_x, False
        min_reduction = 0.0 if multiply is multiply_exact else MAX_UNVERIFIED_REDUCTION
        if not is_descending or np.all(
            residual_norms <= np.maximum(threshold, min_reduction * verified_norms)
        ):
            r = b - multiply_exact(x)
            residual_norms = _column_norms(r)
            converged = not np.any(residual_norms > threshold)
            stagnated = bool(
                np.any(
                    (residual_norms > threshold)
                    & (residual_norms > STAGNATION_RATIO * verified_norms)
                )
            )
            if stagnated and multiply is multiply_exact:
                break
            if stagnated or not is_descending:
                multiply, rho = multiply_exact, np.zeros_like(rho)  # begin anew
            verified_x, verified_norms = x, residual_norms
        z = precondition(r)
        # By the change of r, not by its size: right for a corrected r too.
        beta = np.where(
            rho > 0, _column_dots(z, r - previous_r) / _nonzero_divisor(rho), 0.0
        )
        p = z + np.maximum(beta, 0.0) * p
        rho = np.maximum(_column_dots(r, z), 0.0)
    if not converged:
        residual_norms = _column_norms(b - multiply_exact(x))
    return MixedPrecisionSolution(
        x, n_iterations, residual_norms / _nonzero_divisor(b_norms), bool(converged)
    )


def _column_dots(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.einsum("nt,nt->t", A, B)


def _column_norms(A: np.ndarray) -> np.ndarray:
    return np.sqrt(_column_dots(A, A))


def _nonzero_divisor(values: np.ndarray) -> np.ndarray:
    """To divide by, where it matters."""
    return np.where(values > 0, values, 1.0)


#: Rows of a block: two sides of so many stay in the cache between exp and product.
BLOCK_ROWS = 512
#: Share of the working memory that K may take; the preconditioner takes the rest.
KERNEL_MEMORY_SHARE = 0.75


class KernelOperator:
    """V ↦ KV: quickly by calling it, exactly by `exactly`."""

    def __init__(self, kernel: Kernel, points: Any, engine: Engine) -> None:
        # Every row is a point too: they are held here, and so is the work.
        self.engine, rows = engine.local, as_float32_rows(kernel, points, Ledger())
        self.fast = KernelBlocks.from_points(kernel, rows, wide=False)
        self.exact = self.fast
        if self.fast.narrow:
            self.exact = KernelBlocks.from_points(kernel, points, wide=True)
        self._store_blocks_if_they_fit(kernel.traits.uses_row_numbers)

    def _store_blocks_if_they_fit(self, is_precomputed: bool) -> None:
        """Keep the blocks that fit, in float64 if they do; a given K is kept anyway."""
        n, memory = self.fast.n_rows, get_config()["working_memory"] * 2**20
        self.stored: StoredKernelBlocks | None = None
        for blocks in () if is_precomputed else (self.exact, self.fast):
            size = 4 if blocks.narrow else 8
            if size * n * (n + BLOCK_ROWS) / 2 <= KERNEL_MEMORY_SHARE * memory:
                self.stored = StoredKernelBlocks.from_blocks(blocks, self.engine)
                self.fast = blocks
                break

    @property
    def is_exact(self) -> bool:
        """Whether the quick product is the exact one."""
        return self.fast is self.exact

    def __call__(self, V: np.ndarray) -> np.ndarray:
        return self._product(self.fast, V)

    def multiply_exact(self, V: np.ndarray) -> np.ndarray:
        """KV from float64 values."""
        return self._product(self.exact, V)

    def _product(self, blocks: KernelBlocks, V: np.ndarray) -> np.ndarray:
        # float32 has neither very large numbers nor very small ones.
        scale = np.abs(V).max(axis=0, initial=0.0)
        scale[~(scale > 0)] = 1.0
        use_stored = self.stored is not None and blocks is self.fast
        shared = (self.stored if use_stored else blocks, DeviceConstant(V / scale))
        product = self.engine.reduce(
            _stored_product_block if use_stored else _product_block,
            blocks.source,
            shared,
            "products with K",
        )
        if not np.isfinite(product.sum()):
            check_finite(product)
        return product * scale


@dataclass(frozen=True, eq=False)
class KernelBlocks:
    """The blocks of K on one side of its diagonal, made when they are asked for."""

    source: CachedRows
    parts: list[CrossKernel]  # of SIDE rows each

    @classmethod
    def from_points(cls, kernel: Kernel, points: Any, *, wide: bool) -> KernelBlocks:
        """Those of some rows with themselves."""
        n = arrays.count_rows(points)
        row_blocks = (
            arrays.slice_rows(points, a, min(a + BLOCK_ROWS, n))
            for a in range(0, n, BLOCK_ROWS)
        )
        return cls(
            CachedRows(points), [CrossKernel(kernel, rows, wide) for rows in row_blocks]
        )

    @property
    def n_rows(self) -> int:
        """Rows of K."""
        return self.source.n_rows

    @property
    def narrow(self) -> bool:
        """Whether values are float32."""
        return self.parts[0].narrow

    def upper_triangle_blocks(
        self, block: Block
    ) -> Iterator[tuple[slice, slice, Array]]:
        """(rows, columns, K there), from the diagonal to the right."""
        end = block.start + len(block)
        for start in range(block.start, end, BLOCK_ROWS):
            rows = slice(start, min(start + BLOCK_ROWS, end))
            X = arrays.slice_rows(block.X, start - block.start, rows.stop - block.start)
            for i in range(start // BLOCK_ROWS, len(self.parts)):
                columns = slice(i * BLOCK_ROWS, min((i + 1) * BLOCK_ROWS, self.n_rows))
                yield rows, columns, self.parts[i](X)


def _product_block(block: Block, blocks: KernelBlocks, V: DeviceConstant) -> np.ndarray:
    out = np.zeros(V.shape)
    for rows, columns, K in blocks.upper_triangle_blocks(block):
        V_on_device = V.to_device_of(K)
        out[rows] += arrays.to_host_float64(K @ V_on_device[columns])
        if columns.start > rows.start:
            out[columns] += arrays.to_host_float64(K.T @ V_on_device[rows])
    return out


class StoredKernelBlocks:
    """The same blocks, kept: for every SIDE rows all that is right of the diagonal."""

    process_safe = False  # a sink in this process

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self.strips: dict[int, np.ndarray] = {}

    @classmethod
    def from_blocks(cls, blocks: KernelBlocks, engine: Engine) -> StoredKernelBlocks:
        """All of them, evaluated once."""
        stored = cls(blocks.n_rows)
        engine.map(_row_strips_block, blocks.source, stored, (blocks,), "kernel matrix")
        return stored

    def open(self) -> None:
        """Nothing is to be made ready."""

    def put(self, start: int, rows: dict[int, np.ndarray]) -> None:
        """Keep the strips of a tile."""
        self.strips.update(rows)

    def close(self, complete: bool) -> None:
        """Nothing is to be ended."""


def _row_strips_block(block: Block, blocks: KernelBlocks) -> dict[int, np.ndarray]:
    strips: dict[int, np.ndarray] = {}
    dtype = blocks.parts[0].dtype
    for rows, columns, K in blocks.upper_triangle_blocks(block):
        if rows.start not in strips:
            shape = rows.stop - rows.start, blocks.n_rows - rows.start
            strips[rows.start] = np.empty(shape, dtype)
        right = slice(columns.start - rows.start, columns.stop - rows.start)
        strips[rows.start][:, right] = arrays.to_host(K)
    return strips


def _stored_product_block(
    block: Block, stored: StoredKernelBlocks, V: DeviceConstant
) -> np.ndarray:
    out = np.zeros(V.shape)
    for start in range(block.start, block.start + len(block), BLOCK_ROWS):
        K = stored.strips[start]
        V_on_device, end = V.to_device_of(K), start + len(K)
        out[start:end] += K @ V_on_device[start:]
        out[end:] += K[:, len(K) :].T @ V_on_device[start:end]
    return out


@dataclass(frozen=True, eq=False)
class WoodburyPreconditioner:
    """V ↦ (K̃ + αI)⁻¹V, column by column, each with its own α."""

    source: Source  # its rows are weighted
    features: Any  # of a block: Z in float64
    factors: dict[float, tuple[float, Any]]  # α, and the factor of BᵀB + αI
    alphas: np.ndarray  # (t,)
    norm: float  # of K̃
    engine: Engine

    @classmethod
    def from_landmarks(
        cls,
        landmarks: Landmarks,
        source: Source,
        alphas: np.ndarray,
        *,
        center: bool,
        engine: Engine,
    ) -> WoodburyPreconditioner:
        """By these landmarks, for these rows."""
        mapping = FeatureMap.for_ridge(
            landmarks, source, float(alphas.min()), center=False
        )
        tiles = BlockFeatures.from_root_and_shift(mapping.columns, mapping.root, None)
        features = store_features_if_they_fit(tiles, source, mapping.rank, engine)
        name = "preconditioner"
        G, total, weight = engine.reduce(_gram_sums_block, source, (features,), name)
        # Taking the mean off leaves the rounding of what it is taken off.
        norm, min_ridge = spectral_norm(G), min_cholesky_ridge(G)
        if center:
            G = G - np.outer(total, total / weight)
        factors = {}
        for alpha in np.unique(alphas):
            # Below the rounding of G it is raised, as this only preconditions.
            safe_alpha = max(float(alpha), min_ridge)
            ridged = add_ridge(G, safe_alpha)
            factors[float(alpha)] = safe_alpha, scipy.linalg.cho_factor(ridged)
        return cls(source, features, factors, alphas, norm, engine)

    def with_alphas(self, alphas: np.ndarray) -> WoodburyPreconditioner:
        """The same for other columns, with some of the same α."""
        return WoodburyPreconditioner(
            self.source, self.features, self.factors, alphas, self.norm, self.engine
        )

    def __call__(self, V: np.ndarray) -> np.ndarray:
        root = np.sqrt(self.source.weights)[:, None]
        # As targets they travel with their rows.
        weighted = self.source.replace(targets=root * V)
        name, engine = "preconditioning", self.engine.quiet()
        C = engine.reduce(
            _transposed_features_product_block, weighted, (self.features,), name
        )
        C, ridges = C.copy(), np.ones(len(self.alphas))
        for alpha, (safe_alpha, factor) in self.factors.items():
            mask = self.alphas == alpha
            C[:, mask] = scipy.linalg.cho_solve(factor, C[:, mask])
            ridges[mask] = safe_alpha
        sink = ArraySink(V.shape)
        engine.map(
            _features_product_block,
            self.source,
            sink,
            (self.features, DeviceConstant(C)),
            name,
        )
        return (V - root * sink.array) / ridges


def spectral_norm(G: np.ndarray) -> float:
    """The largest eigenvalue, by so many steps of the power method as tell its size."""
    v = np.ones(len(G))
    norm = 0.0
    for _ in range(30):
        v = G @ v
        norm = float(np.linalg.norm(v))
        if not norm > 0:
            return 0.0
        v /= norm
    return norm


def store_features_if_they_fit(
    tiles: BlockFeatures, source: Source, rank: int, engine: Engine
) -> Any:
    """Z of every row, in float64 or float32 if that fits; else made when asked for."""
    memory = (1 - KERNEL_MEMORY_SHARE) * get_config()["working_memory"] * 2**20
    for dtype in (np.float64, np.float32):
        if source.n_rows * rank * np.dtype(dtype).itemsize <= memory:
            sink = ArraySink((source.n_rows, rank), dtype=np.dtype(dtype))
            engine.map(
                _features_block, source, sink, (ComputedFeatures(tiles),), "features"
            )
            return StoredFeatures(sink.array)
    return ComputedFeatures(tiles)


@dataclass(frozen=True, eq=False)
class StoredFeatures:
    """Z of the rows of a block, from all of it."""

    Z: np.ndarray

    def __call__(self, block: Block) -> np.ndarray:
        rows = self.Z[block.start : block.start + len(block)]
        return rows.astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class ComputedFeatures:
    """Z of the rows of a block, made for it."""

    tiles: BlockFeatures

    def __call__(self, block: Block) -> np.ndarray:
        return arrays.to_host_float64(self.tiles(block.X))


def _features_block(block: Block, features: ComputedFeatures) -> np.ndarray:
    return features(block)


def _gram_sums_block(
    block: Block, features: Any
) -> tuple[np.ndarray, np.ndarray, float]:
    w = np.ascontiguousarray(block.weights)
    B = features(block) * np.sqrt(w)[:, None]
    return B.T @ B, np.sqrt(w) @ B, float(w.sum())


def _transposed_features_product_block(block: Block, features: Any) -> np.ndarray:
    return features(block).T @ block.targets


def _features_product_block(
    block: Block, features: Any, C: DeviceConstant
) -> np.ndarray:
    return features(block) @ C.values


@dataclass(frozen=True, eq=False)
class FullFit:
    """Coefficients on all rows, and what is known about them."""

    dual: np.ndarray  # (n, t)
    intercept: np.ndarray  # (t,)
    n_iterations: int
    residual: float  # the largest ‖b − Ax‖/‖b‖ of the targets
    converged: bool
    scales: np.ndarray  # (t,) σ̂² = yᵀ(K + αW⁻¹)⁻¹y/n


class FullRidge:
    """W^½KW^½ + αI of all rows, and how to solve with it."""

    def __init__(
        self,
        landmarks: Landmarks,
        rows: CachedRows,
        alphas: np.ndarray,
        *,
        fit_intercept: bool,
        engine: Engine,
    ) -> None:
        self.alphas, self.rows, self.fit_intercept = alphas, rows, fit_intercept
        self.root = np.sqrt(rows.weights)[:, None]
        with blas_limit_for_size(len(landmarks)):
            self.preconditioner = WoodburyPreconditioner.from_landmarks(
                landmarks, rows, alphas, center=fit_intercept, engine=engine.local
            )
        check_alpha_above_rounding(
            alphas, self.preconditioner.norm, landmarks.kernel, rows
        )
        self._kernel, self._engine = landmarks.kernel, engine

    @cached_property
    def kernel_operator(self) -> KernelOperator:
        """K, made when it is first needed."""
        return KernelOperator(self._kernel, self.rows.points, self._engine)

    @property
    def normalized_weights(self) -> np.ndarray:
        """(n,): w/Σw."""
        return self.rows.weights / float(self.rows.weights.sum())

    @cached_property
    def mean(self) -> np.ndarray:
        """(n,): the weighted mean of K's rows."""
        return self.kernel_operator.multiply_exact(self.normalized_weights[:, None])[
            :, 0
        ]

    def project_out_intercept(self, V: np.ndarray) -> np.ndarray:
        """V without its share of W^½1, where there is an intercept."""
        if not self.fit_intercept:
            return V
        return V - self.root * (self.root.T @ V) / float(self.rows.weights.sum())

    def solve(
        self,
        b: np.ndarray,
        alphas: np.ndarray,
        precondition: Callable | None = None,
        tolerance: float = CG_RTOL,
    ) -> MixedPrecisionSolution:
        """One solution for each column, with its α; b has been projected."""
        preconditioner = (
            self.preconditioner.with_alphas(alphas)
            if precondition is None
            else precondition
        )
        kernel_operator = self.kernel_operator

        def system_product(multiply_kernel: Callable) -> Callable:
            def multiply_system(V: np.ndarray) -> np.ndarray:
                return (
                    self.project_out_intercept(
                        self.root * multiply_kernel(self.root * V)
                    )
                    + alphas * V
                )

            return multiply_system

        multiply_exact = system_product(kernel_operator.multiply_exact)
        multiply_fast = (
            multiply_exact
            if kernel_operator.is_exact
            else system_product(kernel_operator)
        )
        scale = np.abs(b).max(axis=0, initial=0.0)  # whose square may be no number
        scale[scale == 0] = 1.0
        try:
            solution = mixed_precision_cg(
                multiply_fast,
                multiply_exact,
                b / scale,
                lambda V: self.project_out_intercept(preconditioner(V)),
                tolerance,
            )
        except NotPositiveDefiniteError:
            raise ValueError(not_definite_message(self._kernel)) from None
        return replace(solution, x=solution.x * scale)

    def fit(self, Y: np.ndarray, **options: Any) -> FullFit:
        """The coefficients for targets (n, t)."""
        target = self.project_out_intercept(self.root * Y)
        solution = self.solve(target, self.alphas, **options)
        dual, intercept = self.root * solution.x, np.zeros(Y.shape[1])
        if self.fit_intercept:
            w = self.rows.weights
            intercept = w @ (Y - self.kernel_operator.multiply_exact(dual)) / w.sum()
        squares = np.einsum("nt,nt->t", target, solution.x)
        n = max(float(self.rows.weights.sum()), float(len(Y)))
        return FullFit(
            dual,
            intercept,
            solution.n_iterations,
            float(solution.residual.max(initial=0.0)),
            solution.converged,
            np.maximum(squares, 0.0) / n,
        )


def check_alpha_above_rounding(
    alphas: np.ndarray, norm: float, kernel: Kernel, rows: CachedRows
) -> None:
    """α so small that K + αI is no better known than K's rounding."""
    limit = min_alpha(norm, kernel.dtype(arrays.widen(rows.rows(0, 1))))
    if alphas.min() < limit:
        raise ValueError(
            f"alpha={alphas.min():.3g} is below what solver='full' can solve with: "
            f"the norm of K is about {norm:.3g}, and rounding leaves alpha >= "
            f"{limit:.2g}. Raise alpha, or use solver='direct', which solves on the "
            "landmarks."
        )


def not_definite_message(kernel: Kernel) -> str:
    """What to say where K + αI has a direction that is not positive."""
    return (
        f"solver='full' needs a positive semi-definite kernel, and {kernel} is none on "
        "these rows. Use solver='direct', which leaves the negative part out."
    )


def not_converged_message(fit: FullFit) -> str:
    """What to say, and what to do about it."""
    return (
        f"Conjugate gradients on all rows did not converge: after {fit.n_iterations} "
        "steps "
        f"the relative residual is {fit.residual:.2g}, not {CG_RTOL:g}. "
        "Raise n_landmarks, which makes for fewer steps, or alpha."
    )


#: Numbers that are held at a time for each pair of a row and a new one, all told.
ARRAYS_PER_PAIR = 12
#: New rows that are solved for at a time, at most.
MAX_ROWS_PER_SOLVE = 1024


@dataclass(frozen=True, eq=False)
class FullPosterior:
    """What deviations need besides the rows."""

    landmarks: Landmarks  # that precondition
    weights: np.ndarray | None  # (n,) of the rows
    alphas: np.ndarray  # (t,)
    scales: np.ndarray  # (t,) σ̂² = yᵀ(K + αW⁻¹)⁻¹y/n
    fit_intercept: bool

    def std(
        self,
        rows: Landmarks,
        source: Source,
        engine: Engine,
        *,
        wide: bool,
        noise: bool,
        white: float = 0.0,
    ) -> np.ndarray:
        """(m, t): the predictive standard deviation of every new row and target."""
        if isinstance(rows.kernel, Precomputed):
            raise ValueError(
                "return_std=True after solver='full' needs the kernel matrix of the "
                "training rows, which a model with kernel='precomputed' does not keep; "
                "fit with solver='direct'."
            )
        problem = FullRidge(
            self.landmarks,
            CachedRows(rows.points, self.weights),
            self.alphas,
            fit_intercept=self.fit_intercept,
            engine=engine,
        )
        return self.deviations(problem, source, noise=noise, white=white)

    def predict_with_std(
        self,
        rows: Landmarks,
        source: Source,
        mapping: LinearMap,
        engine: Engine,
        *,
        noise: bool,
        white: float = 0.0,
        output: Output,
    ) -> Any:
        """(m, 2·t): predictions, and beside them their deviations."""
        mean = mapping(rows, source, engine)
        std = self.std(
            rows, source, engine, wide=mapping.wide, noise=noise, white=white
        )
        both = np.hstack([arrays.to_host_float64(mean), std])
        dtype = arrays.numpy_float_dtype(mean)
        return output.store(both.astype(dtype, copy=False), mean)

    def deviations(
        self, problem: FullRidge, source: Source, *, noise: bool, white: float = 0.0
    ) -> np.ndarray:
        """(m, t): the predictive standard deviation of every new row and target.

        With all of the noise α, or with the part of it that is `white`.
        """
        memory = get_config()["working_memory"] * 2**20 / 4
        rows_that_fit = memory / (8 * ARRAYS_PER_PAIR * problem.rows.n_rows)
        size = int(np.clip(rows_that_fit, 1, MAX_ROWS_PER_SOLVE))
        out = np.empty((source.n_rows, len(self.alphas)))
        for start in range(0, source.n_rows, size):
            stop = min(start + size, source.n_rows)
            X = source.rows(start, stop)
            for alpha in np.unique(self.alphas):
                variance = self._variances(problem, X, float(alpha))
                variance += alpha if noise else white
                mask = self.alphas == alpha
                scaled = variance[:, None] * self.scales[mask]
                out[start:stop, mask] = np.sqrt(scaled)
        return out

    def _variances(self, problem: FullRidge, X: object, alpha: float) -> np.ndarray:
        blocks = problem.kernel_operator.exact
        K = np.hstack([part.to_host(X) for part in blocks.parts])  # (m, n)
        prior_variance = arrays.to_host(blocks.parts[0].diag(X))
        if problem.fit_intercept:
            prior_variance = (
                prior_variance
                - 2 * K @ problem.normalized_weights
                + problem.mean @ problem.normalized_weights
            )
            prior_variance = prior_variance + alpha / float(problem.rows.weights.sum())
            K -= problem.mean
        b = problem.project_out_intercept(problem.root * K.T)
        solution = problem.solve(b, np.full(len(K), alpha))
        explained = np.einsum("nm,nm->m", b, solution.x)
        return np.maximum(prior_variance - explained, 0.0)
