"""Lloyd's k-means on Z, block by block (the paper's appendix on kernel k-means).

A centre is a mean of features, so it lies in the landmarks' span: centre j is
Σᵢ dual[i, j]·φ(landmark i), and ‖φ(x) − c‖² = k(x, x) − 2·k_S(x)·dual + ‖c‖² is exact,
the part of φ(x) outside the span included. Several restarts share every pass.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...columns import Columns
from ...engines import Engine
from ...features import FeatureMap
from ...landmarks import Landmarks
from ...sinks import ArraySink
from ...sources import Block, Source
from ..linear_map import LinearMap
from .start import HeldFeatures

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
    landmarks: Landmarks,
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
    mapping = FeatureMap.resolving(landmarks, source, center=False)
    size = max(SAMPLE_BYTES // (4 * max(1, mapping.rank)), 50 * n_clusters)
    sample = HeldFeatures.of(mapping, source, size, seed)
    points = np.concatenate([sample.start(n_clusters, seed + i) for i in range(n_init)])
    columns = _columns(mapping, landmarks, source, Centers.at(points, mapping.root))
    limit = tol * sample.variance
    n_passes, leading, moving = 0, np.ones(n_init, dtype=bool), np.ones(n_init, bool)
    n_empty = np.full(n_init, n_clusters)
    while (leading & moving).any() and n_passes < max_iter:
        centers = Centers.at(points, mapping.root)
        shared = (columns, centers, n_clusters)
        sums, counts, inertias = engine.reduce(_step, source, shared, "k-means")
        n_passes += 1
        before, points = points, _means(sums @ mapping.root, counts, points)
        for empty in np.unique(np.flatnonzero(counts == 0) // n_clusters):
            mine = slice(empty * n_clusters, (empty + 1) * n_clusters)
            rows = _farthest(columns, source, centers.part(mine), n_clusters, engine)
            far = mapping(source.take(rows))
            candidates = np.concatenate([far, sample.Z])
            _refill(points[mine], counts[mine] == 0, candidates)
        shifts = np.sum((points - before) ** 2, axis=1).reshape(n_init, -1)
        # Where distinct rows are fewer, clusters stay empty wherever they are put.
        empty, n_before = (counts == 0).reshape(n_init, -1), n_empty
        n_empty = np.count_nonzero(empty, axis=1)
        shifts[empty & (n_empty == n_before)[:, None]] = 0.0
        moving = shifts.sum(axis=1) > limit
        leading = inertias <= (1 + BEHIND) * inertias.min()
    # The centres have moved once more since they were judged.
    centers = Centers.at(points, mapping.root)
    shared = (columns, centers, n_clusters)
    _, counts, inertias = engine.reduce(_step, source, shared, "k-means")
    best = int(np.argmin(np.where(leading, inertias, np.inf)))
    mine = slice(best * n_clusters, (best + 1) * n_clusters)
    return Clusters(
        centers=centers.part(mine),
        wide=columns.wide,
        inertia=float(inertias[best]),
        n_iterations=n_passes,
        converged=not moving[best],
        n_distinct=int(np.count_nonzero(counts[mine])),
    )


def _farthest(
    columns: Columns, source: Source, centers: Centers, size: int, engine: Engine
) -> np.ndarray:
    """The rows farthest from their nearest centre, the farthest first."""
    sink = ArraySink((source.n_rows,))
    engine.map(_nearest_squares, source, sink, (columns, centers), "empty clusters")
    apart = sink.array * (source.weights > 0)
    return np.argsort(-apart, kind="stable")[:size]


def _nearest_squares(block: Block, columns: Columns, centers: Centers) -> np.ndarray:
    nearest = _distances(block, columns, centers).min(axis=1)
    return nearest + columns.diag(block.X)


def _refill(points: np.ndarray, empty: np.ndarray, candidates: np.ndarray) -> None:
    """Put centres without rows at candidates, each the farthest from all so far."""
    squares = np.vecdot(candidates, candidates)

    def apart(center: np.ndarray) -> np.ndarray:
        return squares - 2 * (candidates @ center) + center @ center

    nearest = np.min([apart(center) for center in points[~empty]], axis=0)
    for i in np.flatnonzero(empty):
        points[i] = candidates[int(np.argmax(nearest))]
        nearest = np.minimum(nearest, apart(points[i]))


def _columns(
    mapping: FeatureMap, landmarks: Landmarks, source: Source, centers: Centers
) -> Columns:
    """float32 values where distances to the centres are good enough with them."""
    half = -centers.squares / 2
    trial = LinearMap.as_precise_as_needed(landmarks, source, centers.dual, half)
    wide = not mapping.columns.narrow or trial.wide or trial.wide_sums
    return mapping.columns.widened() if wide else mapping.columns


def _step(
    block: Block, columns: Columns, centers: Centers, n_clusters: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums of kernel values and of weights by cluster, and the inertia, per restart."""
    K, w = _values(block, columns), np.ascontiguousarray(block.weights)
    apart = _distances_of(K, centers).reshape(len(K), -1, n_clusters)
    labels = apart.argmin(axis=2)  # (n, restarts)
    nearest = np.take_along_axis(apart, labels[:, :, None], axis=2)[:, :, 0]
    diagonal = columns.diag(block.X)
    inertia = w @ np.maximum(nearest + diagonal[:, None], 0.0)
    n_restarts = labels.shape[1]
    own = np.zeros((len(K), n_restarts * n_clusters), dtype=K.dtype)
    places = labels + n_clusters * np.arange(n_restarts)
    np.put_along_axis(own, places, w[:, None].astype(K.dtype), axis=1)
    sums = (own.T @ K).astype(np.float64)
    return sums, own.sum(axis=0, dtype=np.float64), inertia


def _values(block: Block, columns: Columns) -> np.ndarray:
    return columns.host(block.X, columns.dtype)


def _distances_of(K: np.ndarray, centers: Centers) -> np.ndarray:
    """‖φ(x) − c‖² − k(x, x)."""
    products = K @ centers.dual.astype(K.dtype, copy=False)
    return centers.squares - 2 * products.astype(np.float64)


def _distances(block: Block, columns: Columns, centers: Centers) -> np.ndarray:
    return _distances_of(_values(block, columns), centers)


def _means(sums: np.ndarray, counts: np.ndarray, before: np.ndarray) -> np.ndarray:
    full = counts > 0
    means = sums / np.where(full, counts, 1.0)[:, None]
    return np.where(full[:, None], means, before)


def assigned(block: Block, columns: Columns, centers: Centers) -> np.ndarray:
    """(n, 1): the number of the nearest centre of each row."""
    return _distances(block, columns, centers).argmin(axis=1, keepdims=True)


def distances(block: Block, columns: Columns, centers: Centers) -> np.ndarray:
    """‖φ(x) − c‖ of each row and centre."""
    squared = _distances(block, columns, centers)
    squared += columns.diag(block.X)[:, None]
    return np.sqrt(np.maximum(squared, 0.0))
