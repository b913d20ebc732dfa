"""Canonical correlations of two views in factored form, nothing n × n.

With Zx = UxΣxVxᵀ per view, both forms of regularised kernel CCA are the singular values
of diag(hx)·VxᵀZxᵀZyVy·diag(hy). The program of the paper's appendix (correlation under
aᵀ(ZᵀZ + λI)a = 1) has h = (σ² + λ)^(−½). The matrix T printed there,
(K̃x + λxI)⁻¹K̃xK̃y(K̃y + λyI)⁻¹, has h = σ/(σ² + λ), which belongs to the constraint
‖(K̃ + λI)α‖ = 1 and is not the optimum of that program; `form="paper"` gives it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from .. import _arrays as arrays
from ..engines import Engine
from ..landmarks import TraceError
from ..sources import Block, Source
from .moments import Evaluate, FeatureMap, moments, trace_error
from .ridge import Centered

FORMS = ("regularized", "paper")


class Pair(Source):
    """Two views of the same rows: every row is a pair."""

    def __init__(self, first: Source, second: Source) -> None:
        self.first, self.second = first, second
        self.n_rows = first.n_rows

    def rows(self, start: int, stop: int) -> Any:
        return self.first.rows(start, stop), self.second.rows(start, stop)

    def take(self, indices: np.ndarray) -> Any:
        return self.first.take(indices), self.second.take(indices)


@dataclass(frozen=True, eq=False)
class View:
    """One view: its directions as coefficients of kernel values, and its mean."""

    dual: np.ndarray  # (s, k)
    offset: np.ndarray  # (k,) what is taken off the scores
    error: TraceError


@dataclass(frozen=True, eq=False)
class Canonical:
    """The canonical pairs, in order of their correlation."""

    correlations: np.ndarray  # (k,)
    views: tuple[View, View]


@dataclass(frozen=True, eq=False)
class _Side:
    """One view's Gram matrix about its mean, in its eigenvectors, scaled by h(σ²)."""

    made: FeatureMap
    mean: np.ndarray  # (r,) of z, about the shift
    scaled: np.ndarray  # (r, r) V·diag(h)
    error: TraceError

    def view(self, coefficients: np.ndarray, *, center: bool) -> View:
        """Directions, given in the scaled eigenvectors."""
        a = self.scaled @ coefficients
        mean = self.made.shift @ self.made.root + self.mean
        offset = mean @ a if center else np.zeros(a.shape[1])
        return View(self.made.root @ a, offset, self.error)


def canonical_pairs(
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
    x, y = (
        _side(made, source, alpha, engine, center, form)
        for made, source, alpha in zip(maps, sources, alphas, strict=True)
    )
    C = _cross(maps, pair, engine)
    if center:
        C -= pair.n_rows * np.outer(x.mean, y.mean)
    U, correlations, Vt = scipy.linalg.svd(
        x.scaled.T @ C @ y.scaled, full_matrices=False
    )
    k = min(n_components, len(correlations))
    U, V = U[:, :k], Vt[:k].T
    # Signs are free: the largest coefficient of X's direction is positive.
    largest = np.abs(U).argmax(axis=0)
    signs = np.where(U[largest, np.arange(k)] < 0, -1.0, 1.0)
    views = x.view(U * signs, center=center), y.view(V * signs, center=center)
    return Canonical(correlations[:k], views)


def _side(
    made: FeatureMap,
    source: Source,
    alpha: float,
    engine: Engine,
    center: bool,
    form: str,
) -> _Side:
    sums = moments(made, source, engine)
    problem = Centered.of(sums, center)
    values, vectors = np.linalg.eigh(problem.gram)
    # Directions that are rounding, beside all that was there before the mean was taken
    # off, have no say.
    rounding = arrays.epsilon(np.float64) * (100 + len(values)) * sums.kernel_trace
    kept = values > rounding
    values = np.where(kept, values, 1.0)
    root = np.sqrt(values)
    h = root / (values + alpha) if form == "paper" else 1 / np.sqrt(values + alpha)
    _, error = trace_error(made, sums)
    return _Side(made, problem.feature_mean, vectors * np.where(kept, h, 0.0), error)


def _cross(
    maps: tuple[FeatureMap, FeatureMap], pair: Pair, engine: Engine
) -> np.ndarray:
    """Σ (zx − cx)(zy − cy)ᵀ over all rows."""
    shared = tuple(
        (made.evaluator(), made.root, made.shift @ made.root)
        if made.whiten
        else (made.evaluator(), None, made.shift)
        for made in maps
    )
    C = engine.reduce(_block_cross, pair, shared, "cross products")
    for i, made in enumerate(maps):
        if not made.whiten:
            C = made.root.T @ C if i == 0 else C @ made.root
    return C


def _block_cross(block: Block, first: tuple, second: tuple) -> np.ndarray:
    X, Y = (
        _features(rows, *how)
        for rows, how in zip(block.X, (first, second), strict=True)
    )
    return X.T @ Y


def _features(
    X: Any, evaluate: Evaluate, root: np.ndarray | None, shift: np.ndarray
) -> np.ndarray:
    Z = evaluate(X)
    Z = Z if root is None else Z @ root
    return Z - shift if shift.any() else Z
