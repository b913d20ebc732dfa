"""Regularised kernel CCA of two views from their Nyström features; no n × n matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from .. import _arrays as arrays
from .._arrays import Array
from .._precision import EPS64
from ..engines import Engine
from ..engines.blas import blas_limit_for_size
from ..landmarks import Landmarks
from ..linalg.errors import TraceError
from ..linalg.features import BlockFeatures, FeatureMap, LinearMap
from ..linalg.moments import moments, trace_error_after_pass
from ..sources import Block, Pair, Source
from .ridge import NormalEquations

FORMS = ("regularized", "paper")


@dataclass(frozen=True, eq=False)
class CanonicalView:
    """One view: its directions, and what K̃ leaves of it."""

    scores: LinearMap
    error: TraceError | None


@dataclass(frozen=True, eq=False)
class _WhitenedView:
    """One view's Gram matrix about its mean, in its eigenvectors, scaled by h(σ²)."""

    mapping: FeatureMap
    mean: np.ndarray  # (r,) of z, about the shift
    scaled: np.ndarray  # (r, r) V·diag(h)
    error: TraceError | None

    def view(self, coefficients: np.ndarray, *, center: bool) -> CanonicalView:
        """Directions, given in the scaled eigenvectors."""
        a = self.scaled @ coefficients
        mean = self.mapping.center + self.mean
        offset = mean @ a if center else np.zeros(a.shape[1])
        # Scores are small differences: float32 values would show.
        scores = LinearMap(self.mapping.root @ a, -offset, wide=True)
        return CanonicalView(scores, self.error)


def canonical_pairs(
    landmarks: Sequence[Landmarks],
    pair: Pair,
    n_components: int,
    alphas: tuple[float, float],
    engine: Engine,
    *,
    center: bool,
    form: str,
) -> tuple[np.ndarray, tuple[CanonicalView, CanonicalView]]:
    """The largest correlations (k,), descending, and their directions in both views."""
    views = zip(landmarks, (pair.first, pair.second), alphas, strict=True)
    x, y = (_whiten_view(*view, engine, center, form) for view in views)
    C = _cross_moments(x.mapping, y.mapping, pair, engine)
    if center:
        C -= pair.n_rows * np.outer(x.mean, y.mean)
    with blas_limit_for_size(len(C)):
        T = x.scaled.T @ C @ y.scaled
        U, correlations, Vt = scipy.linalg.svd(T, full_matrices=False)
    # None is above 1, but by what small directions are rounded.
    correlations = np.minimum(correlations, 1.0)
    k = min(n_components, len(correlations))
    U, V = U[:, :k], Vt[:k].T
    # Signs are free: the largest coefficient of X's direction is positive.
    largest = np.abs(U).argmax(axis=0) if k else np.empty(0, dtype=np.intp)
    signs = np.where(U[largest, np.arange(k)] < 0, -1.0, 1.0)
    directions = x.view(U * signs, center=center), y.view(V * signs, center=center)
    return correlations[:k], directions


def _whiten_view(
    landmarks: Landmarks,
    source: Source,
    alpha: float,
    engine: Engine,
    center: bool,
    form: str,
) -> _WhitenedView:
    with blas_limit_for_size(len(landmarks)):
        mapping = FeatureMap.for_ridge(landmarks, source, alpha, center=center)
    sums = moments(mapping, source, engine)
    problem = NormalEquations.from_moments(sums, center)
    with blas_limit_for_size(len(problem.gram)):
        values, vectors = np.linalg.eigh(problem.gram)
    # Directions that are rounding, beside all that was there before the mean was taken
    # off, have no say.
    rounding = EPS64 * (100 + len(values)) * sums.kernel_trace
    kept = values > rounding
    values = np.where(kept, values, 1.0)
    root = np.sqrt(values)
    h = root / (values + alpha) if form == "paper" else 1 / np.sqrt(values + alpha)
    scaled = vectors * np.where(kept, h, 0.0)
    error = trace_error_after_pass(landmarks, mapping, sums, source, engine)
    return _WhitenedView(mapping, problem.feature_mean, scaled, error)


def _cross_moments(
    first: FeatureMap, second: FeatureMap, pair: Pair, engine: Engine
) -> np.ndarray:
    """Σ (zx − cx)(zy − cy)ᵀ over all rows."""
    shared = (first.tiles(), second.tiles())
    sums = engine.reduce(_cross_moments_block, pair, shared, "cross products")
    C = arrays.to_host(sums)
    with blas_limit_for_size(len(C)):
        C = C if first.whiten else first.root.T @ C
        return C if second.whiten else C @ second.root


def _cross_moments_block(
    block: Block, first: BlockFeatures, second: BlockFeatures
) -> Array:
    X, Y = block.X
    return first(X).T @ second(Y)
