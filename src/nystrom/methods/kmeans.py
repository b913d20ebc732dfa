"""Lloyd's k-means on Z, block by block (the paper's appendix on kernel k-means).

A centre is a mean of features, so it lies in the landmarks' span: centre j is
Σᵢ dual[i, j]·φ(landmark i), and ‖φ(x) − c‖² = k(x, x) − 2·k_S(x)·dual + ‖c‖² is exact,
the part of φ(x) outside the span included. Several restarts share every pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _arrays as arrays
from ..engines import Engine
from ..kernels import Kernel
from ..sinks import ArraySink
from ..sources import Block, Source
from .kmeans_start import Sample
from .linear_map import needs_float64
from .moments import Evaluate, FeatureMap

#: Features of the sample that restarts begin with, held meanwhile.
SAMPLE_BYTES = 64 * 2**20
#: Restarts further behind the best than this share stop together with it.
BEHIND = 1e-3


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

    def part(self, which: slice) -> Centers:
        """Some of them."""
        return Centers(self.points[which], self.dual[:, which], self.squares[which])


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
    points = np.concatenate([sample.start(n_clusters, seed + i) for i in range(n_init)])
    evaluate = evaluator(made, source, Centers.at(points, made.root))
    limit = tol * sample.variance
    n_passes, leading, moving = 0, np.ones(n_init, dtype=bool), np.ones(n_init, bool)
    while (leading & moving).any() and n_passes < max_iter:
        centers = Centers.at(points, made.root)
        shared = (evaluate, centers, n_clusters)
        sums, counts, inertias = engine.reduce(_step, source, shared, "k-means")
        n_passes += 1
        before, points = points, _means(sums @ made.root, counts, points)
        for empty in np.unique(np.flatnonzero(counts == 0) // n_clusters):
            mine = slice(empty * n_clusters, (empty + 1) * n_clusters)
            rows = _farthest(evaluate, source, centers.part(mine), n_clusters, engine)
            far = made.evaluator()(source.take(rows)) @ made.root
            candidates = np.concatenate([far, sample.Z])
            _refill(points[mine], counts[mine] == 0, candidates)
        shifts = np.sum((points - before) ** 2, axis=1).reshape(n_init, -1)
        moving = shifts.sum(axis=1) > limit
        leading = inertias <= (1 + BEHIND) * inertias.min()
    # The centres have moved once more since they were judged.
    centers = Centers.at(points, made.root)
    shared = (evaluate, centers, n_clusters)
    _, counts, inertias = engine.reduce(_step, source, shared, "k-means")
    best = int(np.argmin(np.where(leading, inertias, np.inf)))
    mine = slice(best * n_clusters, (best + 1) * n_clusters)
    return Clusters(
        centers=centers.part(mine),
        wide=evaluate.wide,
        inertia=float(inertias[best]),
        n_iterations=n_passes,
        converged=not moving[best],
        n_distinct=int(np.count_nonzero(counts[mine])),
    )


def _farthest(
    evaluate: Evaluate, source: Source, centers: Centers, size: int, engine: Engine
) -> np.ndarray:
    """The rows farthest from their nearest centre, the farthest first."""
    sink = ArraySink((source.n_rows,))
    engine.map(_nearest_squares, source, sink, (evaluate, centers), "empty clusters")
    apart = sink.array if source.weights is None else sink.array * (source.weights > 0)
    return np.argsort(-apart, kind="stable")[:size]


def _nearest_squares(block: Block, evaluate: Evaluate, centers: Centers) -> np.ndarray:
    nearest = _distances(evaluate(block.X), centers).min(axis=1)
    return nearest + evaluate.diag(block.X)


def _refill(points: np.ndarray, empty: np.ndarray, candidates: np.ndarray) -> None:
    """Put centres without rows at candidates, each the farthest from all so far."""
    squares = np.vecdot(candidates, candidates)

    def apart(center: np.ndarray) -> np.ndarray:
        return squares - 2 * (candidates @ center) + center @ center

    nearest = np.min([apart(center) for center in points[~empty]], axis=0)
    for i in np.flatnonzero(empty):
        points[i] = candidates[int(np.argmax(nearest))]
        nearest = np.minimum(nearest, apart(points[i]))


def values(kernel: Kernel, points: Any, *, wide: bool) -> Evaluate:
    """Kernel values that stay float32 for float32 rows, unless `wide`."""
    wide = wide or kernel.dtype(points) == np.float64
    points = arrays.widen(points) if wide else points
    dtype = np.float64 if wide else np.float32
    return Evaluate(kernel, kernel.against(points), wide, dtype)


def evaluator(made: FeatureMap, source: Source, centers: Centers) -> Evaluate:
    """float32 values where distances to the centres are good enough with them."""
    known = (made.kernel, made.points, source, centers.dual, -centers.squares / 2)
    narrow = made.kernel.dtype(made.points) == np.float32 and not made.wide
    narrow = narrow and not needs_float64(*known)
    return values(made.kernel, made.points, wide=not narrow)


def _step(
    block: Block, evaluate: Evaluate, centers: Centers, n_clusters: int
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


def assigned(block: Block, evaluate: Evaluate, centers: Centers) -> np.ndarray:
    """The number of the nearest centre of each row."""
    return _distances(evaluate(block.X), centers).argmin(axis=1)


def distances(block: Block, evaluate: Evaluate, centers: Centers) -> np.ndarray:
    """‖φ(x) − c‖ of each row and centre."""
    squared = _distances(evaluate(block.X), centers)
    squared += evaluate.diag(block.X)[:, None]
    return np.sqrt(np.maximum(squared, 0.0))
