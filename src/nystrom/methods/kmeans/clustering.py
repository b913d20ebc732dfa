"""Lloyd's k-means on Z, block by block (the paper's appendix on kernel k-means).

A centre is a mean of features, so it lies in the landmarks' span: centre j is
Σᵢ dual[i, j]·φ(landmark i), and ‖φ(x) − c‖² = k(x, x) − 2·k_S(x)·dual + ‖c‖² is exact,
the part of φ(x) outside the span included. Several restarts share every pass.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ... import _arrays as arrays
from ..._arrays import Array
from ...columns import Columns
from ...engines import Engine
from ...engines.progress import expect
from ...features import FeatureMap
from ...landmarks import Landmarks
from ...operands import Operand
from ...sinks import ArraySink
from ...sources import Block, Source
from ..linear_map import LinearMap
from .start import HeldFeatures

#: Features of the sample that restarts begin with, held meanwhile.
SAMPLE_BYTES = 64 * 2**20
#: Restarts further behind the best than this share stop together with it.
BEHIND = 1e-3
#: About as many passes as there often are.
USUAL_PASSES = 25


@dataclass(frozen=True, eq=False)
class Placed:
    """Centres for the blocks of a pass, wherever these are."""

    dual: Operand
    squares: Operand


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

    def placed(self) -> Placed:
        """What a pass needs of them."""
        return Placed(Operand(self.dual), Operand(self.squares))

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
    expect(engine.progress, min(USUAL_PASSES, max_iter + 1), about=True)
    while (leading & moving).any() and n_passes < max_iter:
        centers = Centers.at(points, mapping.root)
        sums, counts, inertias = _stepped(columns, source, centers, n_clusters, engine)
        n_passes += 1
        before, points = points, _means(sums @ mapping.root, counts, points)
        for empty in np.unique(np.flatnonzero(counts == 0) // n_clusters):
            mine = slice(empty * n_clusters, (empty + 1) * n_clusters)
            rows = _farthest(columns, source, centers.part(mine), n_clusters, engine)
            far = arrays.to_host(mapping(source.take(rows)))
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
    _, counts, inertias = _stepped(columns, source, centers, n_clusters, engine)
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
    shared = (columns, centers.placed())
    engine.map(_nearest_squares, source, sink, shared, "empty clusters")
    apart = sink.array * (source.weights > 0)
    return np.argsort(-apart, kind="stable")[:size]


def _nearest_squares(block: Block, columns: Columns, centers: Placed) -> np.ndarray:
    apart = _distances(block, columns, centers)
    nearest = arrays.namespace(apart).min(apart, axis=1)
    return arrays.to_host(nearest + columns.diag(block.X))


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


def _stepped(
    columns: Columns, source: Source, centers: Centers, n_clusters: int, engine: Engine
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One pass: sums by cluster and the inertia of every restart, on the host.

    Sums and counts are by the same power of two, with which float32 holds them.
    """
    power = -int(np.frexp(source.total_weight)[1])
    shared = (columns, centers.placed(), n_clusters, power)
    return arrays.fetched(engine.reduce(_step, source, shared, "k-means"))


def _step(
    block: Block, columns: Columns, centers: Placed, n_clusters: int, power: int
) -> tuple[Array, Array, Array]:
    """Sums of kernel values and of weights by cluster, and the inertia, per restart."""
    K = _values(block, columns)
    xp, n = arrays.namespace(K), K.shape[0]
    apart = xp.reshape(_distances_of(K, centers), (n, -1, n_clusters))
    labels = xp.argmin(apart, axis=2)  # (n, restarts)
    nearest = xp.min(apart, axis=2) + columns.diag(block.X)[:, None]
    w = arrays.from_host(block.weights, nearest)
    inertia = w @ arrays.at_least(nearest, 0.0)
    counted = arrays.from_host(np.ldexp(block.weights, power), nearest)
    own = arrays.by_label(labels, n_clusters, arrays.as_float(counted, K.dtype))
    own = xp.reshape(own, (n, -1))
    sums = arrays.widen(own.T @ K)
    return sums, xp.sum(own, axis=0, dtype=xp.float64), inertia


def _values(block: Block, columns: Columns) -> Array:
    return columns(block.X)


def _distances_of(K: Array, centers: Placed) -> Array:
    """‖φ(x) − c‖² − k(x, x), in float64."""
    products = arrays.widen(K @ centers.dual.beside(K))
    return centers.squares.beside(products) - 2 * products


def _distances(block: Block, columns: Columns, centers: Placed) -> Array:
    return _distances_of(_values(block, columns), centers)


def _means(sums: np.ndarray, counts: np.ndarray, before: np.ndarray) -> np.ndarray:
    full = counts > 0
    means = sums / np.where(full, counts, 1.0)[:, None]
    return np.where(full[:, None], means, before)


def assigned(block: Block, columns: Columns, centers: Placed) -> Array:
    """(n, 1): the number of the nearest centre of each row."""
    apart = _distances(block, columns, centers)
    return arrays.namespace(apart).argmin(apart, axis=1, keepdims=True)


def distances(block: Block, columns: Columns, centers: Placed) -> Array:
    """‖φ(x) − c‖ of each row and centre."""
    squared = _distances(block, columns, centers) + columns.diag(block.X)[:, None]
    return arrays.namespace(squared).sqrt(arrays.at_least(squared, 0.0))
