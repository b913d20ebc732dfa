"""Exact kernel ridge regression on all rows: (K + αW⁻¹)x = y by preconditioned
conjugate gradients.

K is applied block by block (`KernelBlocks`), preconditioned by K̃ + αI through the
Woodbury identity; iterations use float32 products, residuals are recomputed in
float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn import get_config

from .. import _arrays as arrays
from .._arrays import Array, DeviceConstant
from .._precision import min_alpha, min_cholesky_ridge
from .._validation import check_finite
from ..engines import Engine
from ..engines.blas import blas_limit_for_size
from ..kernels import Kernel, Precomputed
from ..landmarks import Landmarks
from ..linalg.conjugate_gradients import (
    CGSolution,
    MatrixProduct,
    NotPositiveDefiniteError,
    conjugate_gradients,
)
from ..linalg.cross_kernel import CrossKernel, Ledger, diag_float64, fetch_rows
from ..linalg.errors import estimate_trace_error
from ..linalg.factor import largest_eigenvalue
from ..linalg.features import BlockFeatures, FeatureMap, LinearMap
from ..samplers.pool import as_float32_rows
from ..sources import Block, CachedRows, Source
from ..sources.output import ArraySink, Output
from .ridge import EXACT_RISK, RidgeFactors, RidgeFit, RidgeTask

#: Steps at most.
MAX_CG_ITERATIONS = 300
#: ‖b − Ax‖/‖b‖ at which a solution counts as found: what K·x is off by at most.
CG_RTOL = 1e-6
#: Rows of a block: two sides of so many stay in the cache between exp and product.
BLOCK_ROWS = 512
#: Share of the working memory that K may take; the preconditioner takes the rest.
KERNEL_MEMORY_SHARE = 0.75


class KernelBlocks:
    """V ↦ KV by blocks of K from its diagonal to the right, for 512 rows at a time.

    Blocks are evaluated when they are needed, or once: it is the sink that stores them.
    """

    def __init__(
        self, kernel: Kernel, points: Any, engine: Engine, *, wide: bool
    ) -> None:
        self.source, self.engine = CachedRows(points), engine
        self.n_rows = self.source.n_rows
        self.parts = [
            CrossKernel(kernel, arrays.slice_rows(points, *self._bounds(start)), wide)
            for start in range(0, self.n_rows, BLOCK_ROWS)
        ]
        self.narrow = self.parts[0].narrow
        self.strips: dict[int, np.ndarray] = {}  # by their first row, if stored

    def _bounds(self, start: int) -> tuple[int, int]:
        return start, min(start + BLOCK_ROWS, self.n_rows)

    def open(self) -> None:
        """Nothing is to be prepared."""

    def put(self, start: int, rows: dict[int, np.ndarray]) -> None:
        """Store the strips of a tile."""
        self.strips.update(rows)

    def close(self, complete: bool) -> None:
        """Nothing is to be ended."""

    def __call__(self, V: np.ndarray) -> np.ndarray:
        # float32 has neither very large numbers nor very small ones.
        scale = np.abs(V).max(axis=0, initial=0.0)
        scale[~(scale > 0)] = 1.0
        shared, name = (DeviceConstant(V / scale),), "products with K"
        product = self.engine.reduce(self.block_product, self.source, shared, name)
        if not np.isfinite(product.sum()):
            check_finite(product)
        return product * scale

    def block_product(self, block: Block, V: DeviceConstant) -> np.ndarray:
        """What the blocks of some rows, and their transposes, add to KV."""
        out = np.zeros(V.shape)
        for rows, columns, K in self.upper_triangle_blocks(block):
            V_on_device = V.to_device_of(K)
            out[rows] += arrays.to_host_float64(K @ V_on_device[columns])
            # The transpose of all that is right of the diagonal block.
            right = slice(max(columns.start, rows.stop), columns.stop)
            if right.start < right.stop:
                K_right = K[:, right.start - columns.start :]
                out[right] += arrays.to_host_float64(K_right.T @ V_on_device[rows])
        return out

    def block_strips(self, block: Block) -> dict[int, np.ndarray]:
        """The blocks of some rows beside each other, by their first row."""
        strips: dict[int, np.ndarray] = {}
        for rows, columns, K in self.upper_triangle_blocks(block):
            if rows.start not in strips:
                shape = rows.stop - rows.start, self.n_rows - rows.start
                strips[rows.start] = np.empty(shape, self.parts[0].dtype)
            right = slice(columns.start - rows.start, columns.stop - rows.start)
            strips[rows.start][:, right] = arrays.to_host(K)
        return strips

    def upper_triangle_blocks(
        self, block: Block
    ) -> Iterator[tuple[slice, slice, Array]]:
        """(rows, columns, K there), from the diagonal to the right."""
        end = block.start + len(block)
        for start in range(block.start, end, BLOCK_ROWS):
            rows = slice(start, min(start + BLOCK_ROWS, end))
            if start in self.strips:
                yield rows, slice(start, self.n_rows), self.strips[start]
                continue
            X = arrays.slice_rows(block.X, start - block.start, rows.stop - block.start)
            for i in range(start // BLOCK_ROWS, len(self.parts)):
                yield rows, slice(*self._bounds(i * BLOCK_ROWS)), self.parts[i](X)


def kernel_products(
    kernel: Kernel, points: Any, engine: Engine
) -> tuple[KernelBlocks, KernelBlocks]:
    """V ↦ KV quickly, and exactly from float64 values; they may be the same."""
    # Every row is a point too: they are held here, and so is the work.
    engine, rows = engine.local, as_float32_rows(kernel, points, Ledger())
    fast = exact = KernelBlocks(kernel, rows, engine, wide=False)
    if fast.narrow:
        exact = KernelBlocks(kernel, points, engine, wide=True)
    # Blocks are stored if they fit, in float64 if they do; a given K is anyway.
    n, memory = fast.n_rows, get_config()["working_memory"] * 2**20
    for blocks in (exact, fast):
        size = (4 if blocks.narrow else 8) * n * (n + BLOCK_ROWS) / 2
        fits = size <= KERNEL_MEMORY_SHARE * memory
        if fits and not kernel.traits.uses_row_numbers:
            engine.map(blocks.block_strips, blocks.source, blocks, (), "kernel matrix")
            return blocks, exact
    return fast, exact


class WoodburyPreconditioner:
    """V ↦ (K̃ + αI)⁻¹V, column by column, each with its own α.

    The features of all rows are stored, in float32 too, if they fit.
    """

    def __init__(
        self,
        landmarks: Landmarks,
        source: Source,
        alphas: np.ndarray,
        *,
        center: bool,
        engine: Engine,
    ) -> None:
        mapping = FeatureMap.for_ridge(
            landmarks, source, float(alphas.min()), center=False
        )
        self.source, self.engine = source, engine  # rows are weighted
        self.tiles = BlockFeatures(mapping.columns, mapping.root)
        self.stored: np.ndarray | None = None  # (n, r)
        memory = (1 - KERNEL_MEMORY_SHARE) * get_config()["working_memory"] * 2**20
        shape = source.n_rows, mapping.rank
        for dtype in (np.dtype(np.float64), np.dtype(np.float32)):
            if self.stored is None and np.prod(shape) * dtype.itemsize <= memory:
                sink = ArraySink(shape, dtype=dtype)
                engine.map(self.block_features, source, sink, (), "features")
                self.stored = sink.array
        G, total, weight = engine.reduce(self.block_gram, source, (), "preconditioner")
        # A centred value keeps the rounding of the uncentred one.
        self.norm = largest_eigenvalue(lambda v: G @ v, len(G))  # of K̃
        min_ridge = min_cholesky_ridge(G)
        if center:
            G = G - np.outer(total, total / weight)
        self.factors = RidgeFactors(G, alphas, min_ridge)

    def __call__(self, V: np.ndarray, alphas: np.ndarray) -> np.ndarray:
        root = np.sqrt(self.source.weights)[:, None]
        # As targets they travel with their rows.
        weighted = self.source.replace(targets=root * V)
        name, engine = "preconditioning", self.engine.quiet()
        C = engine.reduce(self.block_transposed_product, weighted, (), name)
        C = self.factors.solve(C, alphas)
        sink = ArraySink(V.shape)
        engine.map(self.block_product, self.source, sink, (C,), name)
        return (V - root * sink.array) / np.maximum(alphas, self.factors.min_ridge)

    def block_features(self, block: Block) -> np.ndarray:
        """Z of the rows of a block in float64."""
        if self.stored is None:
            return arrays.to_host_float64(self.tiles(block.X))
        rows = self.stored[block.start : block.start + len(block)]
        return rows.astype(np.float64, copy=False)

    def block_gram(self, block: Block) -> tuple[np.ndarray, np.ndarray, float]:
        """BᵀB, Σ √w·b and Σ w, for B = W^½Z."""
        w = np.ascontiguousarray(block.weights)
        B = self.block_features(block) * np.sqrt(w)[:, None]
        return B.T @ B, np.sqrt(w) @ B, float(w.sum())

    def block_transposed_product(self, block: Block) -> np.ndarray:
        """ZᵀV, for V as targets."""
        return self.block_features(block).T @ block.targets

    def block_product(self, block: Block, C: np.ndarray) -> np.ndarray:
        """ZC."""
        return self.block_features(block) @ C


@dataclass(frozen=True, eq=False)
class FullFit:
    """Coefficients on all rows, and how accurate they are."""

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
            self.preconditioner = WoodburyPreconditioner(
                landmarks, rows, alphas, center=fit_intercept, engine=engine.local
            )
        norm = self.preconditioner.norm
        check_alpha_above_rounding(alphas, norm, landmarks.kernel, rows)
        self._kernel, self._engine = landmarks.kernel, engine

    @cached_property
    def kernel_products(self) -> tuple[KernelBlocks, KernelBlocks]:
        """V ↦ KV, quickly and exactly; K is computed when it is first needed."""
        return kernel_products(self._kernel, self.rows.points, self._engine)

    @property
    def normalized_weights(self) -> np.ndarray:
        """(n,): w/Σw."""
        return self.rows.weights / float(self.rows.weights.sum())

    @cached_property
    def mean(self) -> np.ndarray:
        """(n,): the weighted mean of K's rows."""
        weights = self.normalized_weights[:, None]
        return self.kernel_products[1](weights)[:, 0]

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
    ) -> CGSolution:
        """One solution for each column, with its α; b has been projected."""
        precondition = precondition or partial(self.preconditioner, alphas=alphas)

        def system(multiply_kernel: MatrixProduct) -> MatrixProduct:
            def multiply(V: np.ndarray) -> np.ndarray:
                KV = self.root * multiply_kernel(self.root * V)
                return self.project_out_intercept(KV) + alphas * V

            return multiply

        fast, exact = self.kernel_products
        multiply_exact = system(exact)
        multiply_fast = multiply_exact if fast is exact else system(fast)
        scale = np.abs(b).max(axis=0, initial=0.0)  # whose square may be no number
        scale[scale == 0] = 1.0
        try:
            solution = conjugate_gradients(
                multiply_fast,
                b / scale,
                lambda V: self.project_out_intercept(precondition(V)),
                rtol=tolerance,
                max_iterations=MAX_CG_ITERATIONS,
                multiply_exact=multiply_exact,
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
            intercept = w @ (Y - self.kernel_products[1](dual)) / w.sum()
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

    def predictive_variance(self, X: Any, alpha: float) -> np.ndarray:
        """(m,): of new rows, without noise and not scaled."""
        _, blocks = self.kernel_products
        kernel_blocks = [arrays.to_host_float64(part(X)) for part in blocks.parts]
        K = np.hstack(kernel_blocks)  # (m, n)
        prior = arrays.to_host(diag_float64(blocks.parts[0].kernel, X))
        if self.fit_intercept:
            w = self.normalized_weights
            prior = prior - 2 * K @ w + self.mean @ w
            prior = prior + alpha / float(self.rows.weights.sum())
            K -= self.mean
        b = self.project_out_intercept(self.root * K.T)
        solution = self.solve(b, np.full(len(K), alpha))
        return np.maximum(prior - np.einsum("nm,nm->m", b, solution.x), 0.0)


def check_alpha_above_rounding(
    alphas: np.ndarray, norm: float, kernel: Kernel, rows: CachedRows
) -> None:
    """α so small that K + αI is no better known than K's rounding."""
    limit = min_alpha(norm, kernel.dtype(arrays.widen(rows.rows(0, 1))))
    if alphas.min() < limit:
        raise ValueError(
            f"alpha={alphas.min():.3g} is too small for solver='full': the norm of K "
            f"is about {norm:.3g}, so rounding requires alpha >= {limit:.2g}. Raise "
            "alpha, or use solver='direct', which solves on the landmarks."
        )


def not_definite_message(kernel: Kernel) -> str:
    """What to say where K + αI has a direction that is not positive."""
    return (
        f"solver='full' needs a positive semi-definite kernel, but {kernel} is not on "
        "these rows. Use solver='direct', which drops the negative part."
    )


def fit_full(landmarks: Landmarks, task: RidgeTask) -> RidgeFit:
    """(K + αW⁻¹)x = y on all rows of weight > 0, which the landmarks precondition."""
    kernel, source, alphas = landmarks.kernel, task.source, task.alphas
    if kernel.traits.psd is False or landmarks.indefinite:
        raise ValueError(not_definite_message(kernel))
    kept = np.flatnonzero(source.weights)
    weights = source.weights_of(kept) if source.is_weighted else None
    Y = source.targets[: source.n_rows][kept]
    points = fetch_rows(source, kept, task.engine)
    points_like_input = points
    if source.original is not source:
        like = source.original.rows(0, 1)
        points_like_input = arrays.to_device_of(points, like)
    with blas_limit_for_size(len(landmarks)):
        problem = FullRidge(
            landmarks,
            CachedRows(points, weights),
            alphas,
            fit_intercept=task.fit_intercept,
            engine=task.engine,
        )
        fit = problem.fit(Y)
    message = (
        f"Conjugate gradients on all rows did not converge: after {fit.n_iterations} "
        f"steps the relative residual is {fit.residual:.2g}, not {CG_RTOL:g}. Raise "
        "n_landmarks, which makes for fewer steps, or alpha."
    )
    rows = Landmarks(points_like_input, kernel, "full", source.n_rows, indices=kept)
    return RidgeFit(
        map=LinearMap.with_sufficient_precision(rows, source, fit.dual, fit.intercept),
        solver="full",
        error=estimate_trace_error(landmarks, source, task.engine),
        risk_bound=EXACT_RISK,
        posterior=FullPosterior(
            landmarks.without_kernel_matrix(),
            weights,
            alphas,
            fit.scales,
            task.fit_intercept,
        ),
        n_iterations=fit.n_iterations,
        not_converged="" if fit.converged else message,
        residual=fit.residual,
        rows=rows,
    )


#: Numbers that are held at a time for each pair of a row and a new one, in all.
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

    def quantiles(self, coverage: float, dual: np.ndarray) -> np.ndarray:
        """Refused: no row is left out of a solution by conjugate gradients."""
        raise ValueError(
            "interval= needs leave-one-out residuals, which solver='full' does not "
            "compute; fit with solver='direct', or use return_std=True."
        )

    def predict_with_std(
        self,
        rows: Landmarks,
        source: Source,
        mapping: LinearMap,
        engine: Engine,
        *,
        noise: bool,
        white: float,
        output: Output,
    ) -> Any:
        """As that of `Posterior`, a solution with K for every new row."""
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
        memory = get_config()["working_memory"] * 2**20 / 4
        rows_that_fit = memory / (8 * ARRAYS_PER_PAIR * problem.rows.n_rows)
        size = int(np.clip(rows_that_fit, 1, MAX_ROWS_PER_SOLVE))
        mean = mapping(rows, source, engine)
        both = np.hstack([arrays.to_host_float64(mean)] * 2)
        std = both[:, len(self.alphas) :]
        for start in range(0, source.n_rows, size):
            stop = min(start + size, source.n_rows)
            X = source.rows(start, stop)
            for alpha in np.unique(self.alphas):
                variance = problem.predictive_variance(X, float(alpha))
                variance += alpha if noise else white
                mask = self.alphas == alpha
                scaled = variance[:, None] * self.scales[mask]
                std[start:stop, mask] = np.sqrt(scaled)
        if output.where is not None:
            both = both.astype(arrays.numpy_float_dtype(mean), copy=False)
        return output.store(both, mean)
