"""Lloyd's k-means on Z, block by block (the paper's appendix on kernel k-means).

A centre is a mean of features, so it lies in the landmarks' span: centre j is
Σᵢ dual[i, j]·φ(landmark i), and ‖φ(x) − c‖² = k(x, x) − 2·k_S(x)·dual + ‖c‖² is exact,
the part of φ(x) outside the span included. Several restarts share every pass.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from .. import _arrays as arrays
from ..engines import Engine
from ..kernels import Kernel
from ..randomness import Purpose, race, some_rows, uniforms
from ..sources import Block, Held, Source
from .linear_map import needs_float64
from .moments import FeatureMap

#: Steps of Lloyd on the sample that restarts begin with; the passes over all rows go on
#: from there.
SAMPLE_STEPS = 50
#: Features of the sample that are held meanwhile.
SAMPLE_BYTES = 64 * 2**20


@dataclass(frozen=True, eq=False)
class Centers:
    """Centres in the landmarks' span, of one or several restarts side by side."""

    points: np.ndarray  # (c, r) in the coordinates of Z
    dual: np.ndarray  # (s, c): z·point = k_S·dual
    squares: np.ndarray  # (c,) ‖point‖²

    @classmethod
    def at(cls, points: np.ndarray, root: np.ndarray) -> Centers:
        """Centres at points of Z."""
        return cls(points, root @ points.T, np.vecdot(points, points))


@dataclass(frozen=True, eq=False)
class Clusters:
    """The best of the restarts."""

    centers: Centers
    wide: bool  # whether distances need float64 kernel values
    inertia: float  # Σ w‖φ(x) − c‖² about these centres
    n_iterations: int
    converged: bool
    n_distinct: int  # clusters that have rows


def cluster(
    made: FeatureMap,
    source: Source,
    n_clusters: int,
    engine: Engine,
    *,
    n_init: int,
    max_iter: int,
    tol: float,
    seed: int,
) -> Clusters:
    """k-means with `n_init` restarts, until no centre moves by more than the tolerance.

    Every restart begins with k-means++ and a few steps on a sample of rows.
    """
    size = max(SAMPLE_BYTES // (4 * max(1, made.rank)), 50 * n_clusters)
    sample = Sample.of(made, source, size, seed)
    starts = [sample.start(n_clusters, seed + i) for i in range(n_init)]
    points = np.concatenate(starts)
    evaluate = evaluator(made, source, Centers.at(points, made.root))
    limit = tol * sample.variance
    best = None
    n_passes, moving = 0, True
    while moving and n_passes < max_iter:
        centers = Centers.at(points, made.root)
        shared = (evaluate, centers, n_clusters)
        sums, counts, inertias = engine.reduce(_step, source, shared, "k-means")
        n_passes += 1
        best = _better(best, centers, inertias, counts, n_clusters)
        moved = _means(sums @ made.root, counts, points)
        moved = _refill(moved, counts, sample, n_clusters)
        shifts = np.sum((moved - points) ** 2, axis=1).reshape(n_init, -1).sum(axis=1)
        # Restarts that are behind stop with the one that leads.
        moving = bool(shifts[np.argmin(inertias)] > limit)
        points = moved
    # The centres moved once more after they were last judged.
    centers = Centers.at(points, made.root)
    shared = (evaluate, centers, n_clusters)
    _, counts, inertias = engine.reduce(_step, source, shared, "k-means")
    best = _better(best, centers, inertias, counts, n_clusters)
    wide = evaluate.dtype == np.float64
    return replace(best, wide=wide, n_iterations=n_passes, converged=not moving)


def _better(
    best: Clusters | None,
    centers: Centers,
    inertias: np.ndarray,
    counts: np.ndarray,
    n_clusters: int,
) -> Clusters:
    """The restart of least inertia, or the best so far."""
    i = int(np.argmin(inertias))
    if best is not None and best.inertia <= inertias[i]:
        return best
    mine = slice(i * n_clusters, (i + 1) * n_clusters)
    chosen = Centers(centers.points[mine], centers.dual[:, mine], centers.squares[mine])
    n_distinct = int(np.count_nonzero(counts[mine]))
    return Clusters(chosen, True, float(inertias[i]), 0, False, n_distinct)


@dataclass(frozen=True)
class Values:
    """k(x, landmarks) of rows on the host, in the precision that distances need."""

    kernel: Kernel
    against: Callable
    dtype: np.dtype

    @classmethod
    def of(cls, kernel: Kernel, points: Any, *, wide: bool) -> Values:
        """float32 values of float32 rows, unless `wide`."""
        wide = wide or kernel.dtype(points) == np.float64
        points = arrays.widen(points) if wide else points
        dtype = np.dtype(np.float64 if wide else np.float32)
        return cls(kernel, kernel.against(points), dtype)

    def __call__(self, X: Any) -> np.ndarray:
        X = arrays.widen(X) if self.dtype == np.float64 else X
        return arrays.to_host(self.against(X)).astype(self.dtype, copy=False)

    def diag(self, X: Any) -> np.ndarray:
        """k(x, x) of each row."""
        return arrays.host_values(self.kernel.diag(arrays.widen(X)))


def evaluator(made: FeatureMap, source: Source, centers: Centers) -> Values:
    """float32 values where distances to the centres are good enough with them."""
    known = (made.kernel, made.points, source, centers.dual, -centers.squares / 2)
    narrow = made.kernel.dtype(made.points) == np.float32 and not made.wide
    narrow = narrow and not needs_float64(*known)
    return Values.of(made.kernel, made.points, wide=not narrow)


def _step(
    block: Block, evaluate: Values, centers: Centers, n_clusters: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums of kernel values and of weights by cluster, and the inertia, per restart."""
    K = evaluate(block.X)
    w = np.ones(len(K)) if block.weights is None else block.weights
    apart = _distances(K, centers).reshape(len(K), -1, n_clusters)
    labels = apart.argmin(axis=2)  # (n, restarts)
    nearest = np.take_along_axis(apart, labels[:, :, None], axis=2)[:, :, 0]
    diagonal = evaluate.diag(block.X)
    inertia = w @ np.maximum(nearest + diagonal[:, None], 0.0)
    n_restarts = labels.shape[1]
    own = np.zeros((len(K), n_restarts * n_clusters), dtype=K.dtype)
    columns = labels + n_clusters * np.arange(n_restarts)
    np.put_along_axis(own, columns, w[:, None].astype(K.dtype), axis=1)
    sums = (own.T @ K).astype(np.float64)
    return sums, own.sum(axis=0, dtype=np.float64), inertia


def _distances(K: np.ndarray, centers: Centers) -> np.ndarray:
    """‖φ(x) − c‖² − k(x, x)."""
    products = K @ centers.dual.astype(K.dtype, copy=False)
    return centers.squares - 2 * products.astype(np.float64)


def _means(sums: np.ndarray, counts: np.ndarray, before: np.ndarray) -> np.ndarray:
    full = counts > 0
    means = sums / np.where(full, counts, 1.0)[:, None]
    return np.where(full[:, None], means, before)


def _refill(
    points: np.ndarray,
    counts: np.ndarray,
    sample: Sample,
    n_clusters: int,
) -> np.ndarray:
    """Put centres without rows where the sample is farthest from all others."""
    for empty in np.flatnonzero(counts == 0):
        first = empty - empty % n_clusters
        others = points[first : first + n_clusters]
        points[empty] = sample.farthest_from(others)
    return points


@dataclass(frozen=True, eq=False)
class Sample:
    """Features of some rows, held while restarts begin."""

    Z: np.ndarray  # (m, r)
    weights: np.ndarray  # (m,)

    @classmethod
    def of(cls, made: FeatureMap, source: Source, size: int, seed: int) -> Sample:
        """Rows drawn uniformly, all if there are no more; rows of weight 0 never."""
        w = source.weights
        if w is None:
            rows = some_rows(source.n_rows, size, seed)
        else:
            u = uniforms(seed, Purpose.CHECK, 0, source.n_rows)
            rows = np.sort(race((w > 0).astype(np.float64), u, size)[0])
        held = Held(source, rows)
        evaluate, parts = made.evaluator(), []
        for start in range(0, held.n_rows, 4096):
            X = held.rows(start, min(start + 4096, held.n_rows))
            parts.append((evaluate(X) @ made.root).astype(np.float32))
        own = np.ones(len(rows)) if w is None else w[rows]
        return cls(np.concatenate(parts), own)

    @property
    def variance(self) -> float:
        """The mean variance of a feature, by which the tolerance is measured."""
        return float(np.mean(np.var(self.Z, axis=0)))

    def start(self, n_clusters: int, seed: int) -> np.ndarray:
        """Centres by k-means++ and a few steps on the sample."""
        seed = seed % 2**32
        if len(self.Z) < n_clusters:
            order = np.arange(n_clusters) % len(self.Z)
            return self.Z[order].astype(np.float64)
        means = KMeans(n_clusters, n_init=1, max_iter=SAMPLE_STEPS, random_state=seed)
        with warnings.catch_warnings():
            # Fewer distinct rows than clusters is told once, of all rows.
            warnings.simplefilter("ignore", ConvergenceWarning)
            means.fit(self.Z, sample_weight=self.weights)
        return means.cluster_centers_.astype(np.float64)

    def farthest_from(self, centers: np.ndarray) -> np.ndarray:
        """The sampled row whose nearest centre is farthest."""
        squares = np.vecdot(centers, centers)
        left = (squares - 2 * (self.Z @ centers.T)).min(axis=1)
        left += np.vecdot(self.Z, self.Z)
        return self.Z[int(np.argmax(left))].astype(np.float64)


def assigned(block: Block, evaluate: Values, centers: Centers) -> np.ndarray:
    """The number of the nearest centre of each row."""
    return _distances(evaluate(block.X), centers).argmin(axis=1)


def distances(block: Block, evaluate: Values, centers: Centers) -> np.ndarray:
    """‖φ(x) − c‖ of each row and centre."""
    squared = _distances(evaluate(block.X), centers)
    squared += evaluate.diag(block.X)[:, None]
    return np.sqrt(np.maximum(squared, 0.0))
