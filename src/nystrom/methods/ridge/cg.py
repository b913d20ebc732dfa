"""Ridge regression on Z by conjugate gradients, for many landmarks.

A step costs one pass of n·s kernel evaluations and no s × s product per block, where
the Gram matrix costs n·s². The preconditioner is the Gram matrix of few rows, drawn by
their ridge leverage scores at α and weighted: by the paper's ½ … 3/2 bound the
condition number is then a small constant, however badly conditioned K_SS is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from ... import _arrays as arrays
from ..._arrays import Array
from ...columns import Columns
from ...engines import Engine
from ...engines.progress import expect, parts
from ...features import FeatureMap
from ...moments import moments
from ...operands import Operand
from ...precision import least_ridge
from ...randomness import Purpose, some_rows, uniforms
from ...samplers.draws import probabilities_with_sum
from ...sinks import ArraySink
from ...sources import Block, Source, Subset
from ...sources import weights as row_weights
from .posterior import squared_projections
from .problem import with_ridge

#: Rows behind the first, uniform, estimate of the Gram matrix, and behind the one that
#: preconditions, in multiples of s.
FIRST_ROWS, DRAWN_ROWS = 4, 8
#: Values of K that are made and used at a time: with thousands of landmarks those of a
#: tile do not stay in the cache between the two products.
CACHED_VALUES = 2**19
#: Columns of the random projection that leverage scores are read off.
PROJECTED = 16
#: Residual, in the preconditioner's norm, at which a solution counts as found.
TOLERANCE = 1e-7
MOST_ITERATIONS, USUAL_ITERATIONS = 100, 20
#: Where what is left of a target, squared in that norm, grows to so many times what it
#: has been, steps are rounding and nothing else.
ASTRAY = 1e12


@dataclass(frozen=True, eq=False)
class Solved:
    """θ on Z, the intercept, and how long it took."""

    dual: np.ndarray  # (s, t) on the landmarks' kernel values
    intercept: np.ndarray  # (t,)
    n_iterations: int
    converged: bool


def solve_cg(
    mapping: FeatureMap,
    source: Source,
    alphas: np.ndarray,
    fit_intercept: bool,
    engine: Engine,
    seed: int,
) -> Solved:
    """Ridge regression for every target with its own α > 0."""
    columns, told = mapping.columns, engine.progress
    shared = (columns, mapping.target_shift)
    # In passes of one product each.
    summing, preconditioning, stepping = parts(told, 1.0, 2.0, USUAL_ITERATIONS)
    with summing:
        expect(told, 1)
        sums = engine.reduce(_first_sums, source, shared, "right-hand side")
    K_sum, K_cross, y_sum, total = arrays.fetched(sums)
    n_targets = K_cross.shape[1]
    # The shift is only near the mean; here it is the mean itself.
    mean = K_sum / total if fit_intercept else np.zeros_like(K_sum)
    y_mean = y_sum / total if fit_intercept else np.zeros(n_targets)
    mapping = replace(mapping, shift=mean)
    b = mapping.root.T @ (K_cross - np.outer(mean, y_sum))

    def times_gram(V: np.ndarray) -> np.ndarray:
        U = mapping.root @ V
        operands = (columns, Operand(U), Operand(mean @ U))
        sums = engine.reduce(_products, source, operands, "conjugate gradients")
        KtKU, fitted = arrays.fetched(sums)
        return mapping.root.T @ (KtKU - np.outer(mean, fitted))

    with preconditioning:
        precondition = preconditioner(mapping, source, alphas, engine, seed)
    with stepping:
        expect(told, USUAL_ITERATIONS, about=True)
        coef, n_iterations, converged = conjugate_gradients(
            lambda V: times_gram(V) + alphas * V, b, precondition
        )
    dual = mapping.root @ coef
    intercept = np.zeros(n_targets)
    if fit_intercept:
        intercept = mapping.target_shift + y_mean - mean @ dual
    return Solved(dual, intercept, n_iterations, converged)


def conjugate_gradients(
    times: Callable[[np.ndarray], np.ndarray],
    b: np.ndarray,
    precondition: Callable[[np.ndarray], np.ndarray],
) -> tuple[np.ndarray, int, bool]:
    """Solve for every column of b at once; the number of steps, and whether all did.

    Of a column that does not get there, what left least.
    """
    x = np.zeros_like(b)
    r = b.copy()
    z = precondition(r)
    p = z.copy()
    rho = np.einsum("rt,rt->t", r, z)
    goal, best, least = TOLERANCE**2 * rho, x.copy(), rho
    open_ = np.ones(len(rho), dtype=bool)
    for step in range(MOST_ITERATIONS):
        open_ &= (rho > goal) & (rho <= ASTRAY * least)
        if not open_.any():
            return best, step, bool((least <= goal).all())
        Ap = times(p)
        curvature = np.einsum("rt,rt->t", p, Ap)
        open_ &= curvature > 0  # else p is rounding
        with np.errstate(over="ignore", invalid="ignore"):  # such an x is not the best
            length = np.where(open_, rho / np.where(open_, curvature, 1.0), 0.0)
            x += length * p
            r -= length * Ap
        z = precondition(r)
        before, rho = rho, np.maximum(np.einsum("rt,rt->t", r, z), 0.0)
        p = z + np.where(open_, rho / np.where(before > 0, before, 1.0), 0.0) * p
        best = np.where(rho < least, x, best)
        least = np.minimum(rho, least)
    return best, MOST_ITERATIONS, bool((least <= goal).all())


def preconditioner(
    mapping: FeatureMap, source: Source, alphas: np.ndarray, engine: Engine, seed: int
) -> Callable[[np.ndarray], np.ndarray]:
    """V ↦ (G̃ + αI)⁻¹V, column by column, G̃ from drawn and weighted rows."""
    rows, weights = drawn_rows(mapping, source, float(alphas.min()), engine, seed)
    G = _gram_of(mapping, source, rows, weights, engine)
    columns = {alpha: alphas == alpha for alpha in np.unique(alphas)}
    factors = {
        alpha: scipy.linalg.cho_factor(_ridged(G, alpha), overwrite_a=True)
        for alpha in columns
    }

    def precondition(V: np.ndarray) -> np.ndarray:
        out = np.empty_like(V)
        for alpha, those in columns.items():
            out[:, those] = scipy.linalg.cho_solve(
                factors[alpha], V[:, those], check_finite=False
            )
        return out

    return precondition


def drawn_rows(
    mapping: FeatureMap, source: Source, alpha: float, engine: Engine, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows kept by coins in proportion to w·zᵀ(G + αI)⁻¹z, and weights 1/p.

    The scores are estimated from a uniform sample's Gram matrix, through a random
    projection: s products per row instead of s².
    """
    n, s = source.n_rows, len(mapping.shift)
    wanted = DRAWN_ROWS * s
    if n <= wanted + FIRST_ROWS * s:
        return np.arange(n), np.ones(n)
    first = some_rows(n, FIRST_ROWS * s, seed)
    G = _gram_of(mapping, source, first, np.full(len(first), n / len(first)), engine)
    L = scipy.linalg.cholesky(_ridged(G, alpha), lower=True, overwrite_a=True)
    signs = np.random.default_rng(seed).integers(0, 2, (len(G), PROJECTED)) * 2.0 - 1
    M = mapping.root @ scipy.linalg.solve_triangular(L.T, signs) / np.sqrt(PROJECTED)
    sink = ArraySink((n,))
    shared = (mapping.columns, Operand(M), Operand(mapping.shift @ M))
    engine.map(squared_projections, source, sink, shared, "leverage scores")
    w = source.weights
    # No score is above 1, though rows in directions that the first sample has not seen
    # seem so.
    scores = np.minimum(1.0, sink.array * w)
    # A tenth is drawn uniformly, which bounds every weight.
    uniform = w / w.sum()
    total = float(scores.sum())
    shares = 0.9 * scores / total + 0.1 * uniform if total > 0 else uniform
    p = probabilities_with_sum(shares, wanted)
    rows = np.flatnonzero(uniforms(seed, Purpose.PRECONDITION, 0, n) < p)
    return rows, 1 / p[rows]


def _ridged(G: np.ndarray, alpha: float) -> np.ndarray:
    """G + αI; α below the rounding of G is raised, as this only preconditions."""
    return with_ridge(G, max(alpha, least_ridge(G)))


def _gram_of(
    mapping: FeatureMap,
    source: Source,
    rows: np.ndarray,
    weights: np.ndarray,
    engine: Engine,
) -> np.ndarray:
    some = Subset(source, rows)
    weighted = some.having(weights=row_weights.weighted(some.weights, weights))
    return moments(mapping, weighted, engine, "preconditioner").gram


def _first_sums(block: Block, columns: Columns, target_shift: np.ndarray) -> tuple:
    assert block.targets is not None
    K, w = columns.float64(block.X), np.ascontiguousarray(block.weights)
    wY = w[:, None] * (block.targets - target_shift)
    there = arrays.from_host(wY, K)
    return arrays.from_host(w, K) @ K, K.T @ there, wY.sum(axis=0), float(w.sum())


def _products(
    block: Block, columns: Columns, U: Operand, offset: Operand
) -> tuple[Array, Array]:
    """KᵀW(KU − offset) and the column sums of W(KU − offset)."""
    n = arrays.count_rows(block.X)
    step = max(1, CACHED_VALUES // len(U)) if arrays.on_host(block.X) else n
    product: Array = 0.0
    total: Array = 0.0
    for start in range(0, n, step):
        stop = min(start + step, n)
        K = columns.float64(arrays.slice_rows(block.X, start, stop))
        fitted = K @ U.beside(K)
        fitted -= offset.beside(K)
        if not row_weights.all_alike(block.weights):
            fitted *= arrays.from_host(block.weights[start:stop], K)[:, None]
        product = product + K.T @ fitted
        total = total + arrays.namespace(K).sum(fitted, axis=0)
    return product, total
