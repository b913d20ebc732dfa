"""Canonical correlations of two views in factored form, nothing n × n.

With Zx = UxΣxVxᵀ per view, both forms of regularised kernel CCA are the singular values
of diag(hx)·VxᵀZxᵀZyVy·diag(hy). The program of the paper's appendix (correlation under
aᵀ(ZᵀZ + λI)a = 1) has h = (σ² + λ)^(−½). The matrix T printed there,
(K̃x + λxI)⁻¹K̃xK̃y(K̃y + λyI)⁻¹, has h = σ/(σ² + λ), which belongs to the constraint
‖(K̃ + λI)α‖ = 1 and is not the optimum of that program; `form="paper"` gives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from .. import _arrays as arrays
from .._arrays import Array
from ..approximation import told_error
from ..engines import Engine
from ..engines.blas import blas_threads_for
from ..engines.progress import expect
from ..features import FeatureMap, Tiles
from ..landmarks import Landmarks
from ..moments import moments
from ..precision import EPS64
from ..sources import Block, Pair, Source
from ..trace_error import TraceError
from .linear_map import LinearMap
from .ridge.problem import Centered

FORMS = ("regularized", "paper")


@dataclass(frozen=True, eq=False)
class View:
    """One view: its directions, and what K̃ leaves of it."""

    scores: LinearMap
    error: TraceError | None


@dataclass(frozen=True, eq=False)
class Canonical:
    """The canonical pairs, in order of their correlation."""

    correlations: np.ndarray  # (k,)
    views: tuple[View, View]


@dataclass(frozen=True, eq=False)
class _Side:
    """One view's Gram matrix about its mean, in its eigenvectors, scaled by h(σ²)."""

    mapping: FeatureMap
    mean: np.ndarray  # (r,) of z, about the shift
    scaled: np.ndarray  # (r, r) V·diag(h)
    error: TraceError | None

    def view(self, coefficients: np.ndarray, *, center: bool) -> View:
        """Directions, given in the scaled eigenvectors."""
        a = self.scaled @ coefficients
        offset = np.zeros(a.shape[1])
        if center:
            offset = (self.mapping.center + self.mean) @ a
        # Scores are small differences: float32 values would show.
        return View(LinearMap(self.mapping.root @ a, -offset, wide=True), self.error)


def canonical_pairs(
    landmarks: Sequence[Landmarks],
    maps: tuple[FeatureMap, FeatureMap],
    pair: Pair,
    n_components: int,
    alphas: tuple[float, float],
    engine: Engine,
    *,
    center: bool,
    form: str,
) -> Canonical:
    """The leading pairs of directions."""
    sources = pair.first, pair.second
    expect(engine.progress, 3)
    x, y = (
        _side(chosen, mapping, source, alpha, engine, center, form)
        for chosen, mapping, source, alpha in zip(
            landmarks, maps, sources, alphas, strict=True
        )
    )
    C = _cross(maps, pair, engine)
    if center:
        C -= pair.n_rows * np.outer(x.mean, y.mean)
    with blas_threads_for(len(C)):
        T = x.scaled.T @ C @ y.scaled
        U, correlations, Vt = scipy.linalg.svd(T, full_matrices=False)
    # None is above 1, but by what small directions are rounded.
    correlations = np.minimum(correlations, 1.0)
    k = min(n_components, len(correlations))
    U, V = U[:, :k], Vt[:k].T
    # Signs are free: the largest coefficient of X's direction is positive.
    largest = np.abs(U).argmax(axis=0) if k else np.empty(0, dtype=np.intp)
    signs = np.where(U[largest, np.arange(k)] < 0, -1.0, 1.0)
    views = x.view(U * signs, center=center), y.view(V * signs, center=center)
    return Canonical(correlations[:k], views)


def _side(
    landmarks: Landmarks,
    mapping: FeatureMap,
    source: Source,
    alpha: float,
    engine: Engine,
    center: bool,
    form: str,
) -> _Side:
    sums = moments(mapping, source, engine)
    problem = Centered.of(sums, center)
    with blas_threads_for(len(problem.gram)):
        values, vectors = np.linalg.eigh(problem.gram)
    # Directions that are rounding, beside all that was there before the mean was taken
    # off, have no say.
    rounding = EPS64 * (100 + len(values)) * sums.kernel_trace
    kept = values > rounding
    values = np.where(kept, values, 1.0)
    root = np.sqrt(values)
    h = root / (values + alpha) if form == "paper" else 1 / np.sqrt(values + alpha)
    scaled = vectors * np.where(kept, h, 0.0)
    error = told_error(landmarks, mapping, sums, source, engine)
    return _Side(mapping, problem.feature_mean, scaled, error)


def _cross(
    maps: tuple[FeatureMap, FeatureMap], pair: Pair, engine: Engine
) -> np.ndarray:
    """Σ (zx − cx)(zy − cy)ᵀ over all rows."""
    first, second = maps
    shared = (first.tiles(), second.tiles())
    found = engine.reduce(_block_cross, pair, shared, "cross products")
    C = arrays.to_host(found)
    with blas_threads_for(len(C)):
        C = C if first.whiten else first.root.T @ C
        return C if second.whiten else C @ second.root


def _block_cross(block: Block, first: Tiles, second: Tiles) -> Array:
    X, Y = block.X
    return first(X).T @ second(Y)
