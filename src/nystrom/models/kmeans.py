"""Kernel k-means on Nyström features: Lloyd's algorithm with restarts that share every
pass over the rows.

A centre is Σᵢ dual[i, j]·φ(landmark i), so distances in feature space are exact;
k-means++ starts on a sample.
"""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from .. import _arrays as arrays
from .._arrays import Array, DeviceConstant
from .._precision import squares_fit_float32
from .._random import Purpose, Stream, sorted_row_sample
from ..engines import Engine
from ..landmarks import Landmarks
from ..linalg.cross_kernel import CrossKernel, diag_float64
from ..linalg.features import FeatureMap, LinearMap
from ..samplers.weighted_sampling import KeyedSampler
from ..sources import Block, CachedRows, Source
from ..sources.output import ArraySink

#: Steps of Lloyd on the sample; the passes over all rows go on from there.
SAMPLE_MAX_ITER = 50
#: Rows whose features are computed at a time.
FEATURE_BLOCK_ROWS = 4096
#: Filters of warnings are the process's: threads that change them take turns, or what
#: one of them found would stay.
_WARNING_FILTER_LOCK = threading.Lock()


@dataclass(frozen=True, eq=False)
class FeatureSample:
    """Features of some rows."""

    Z: np.ndarray  # (m, r) float32, or float64 where their squares are none
    weights: np.ndarray  # (m,)

    @classmethod
    def from_source(
        cls, mapping: FeatureMap, source: Source, size: int, seed: int
    ) -> FeatureSample:
        """Rows drawn uniformly, all if there are no more; rows of weight 0 never."""
        if not source.is_weighted:
            rows = sorted_row_sample(source.n_rows, size, seed)
        else:
            sampler = KeyedSampler(Stream(seed, Purpose.CHECK), max_rows=size)
            rows = sampler.sample((source.weights > 0).astype(np.float64)).numbers
        sample, blocks = CachedRows.of(source, rows), []
        squares = arrays.to_host(diag_float64(mapping.columns.kernel, sample.points))
        narrow = squares_fit_float32(squares)  # ‖z‖² is at most k(x, x)
        for start in range(0, sample.n_rows, FEATURE_BLOCK_ROWS):
            stop = min(start + FEATURE_BLOCK_ROWS, sample.n_rows)
            Z = mapping(sample.rows(start, stop))
            if narrow:
                Z = arrays.as_float(Z, arrays.namespace(Z).float32)
            blocks.append(arrays.to_host(Z))
        return cls(np.concatenate(blocks), np.ascontiguousarray(sample.weights))

    @property
    def variance(self) -> float:
        """The mean variance of a feature, by which the tolerance is measured."""
        return float(np.mean(np.var(self.Z, axis=0))) if self.Z.size else 0.0

    def initial_centers(self, n_clusters: int, seed: int) -> np.ndarray:
        """Centres by k-means++ and a few steps on the sample."""
        if len(self.Z) < n_clusters or not self.Z.shape[1]:
            order = np.arange(n_clusters) % len(self.Z)
            return self.Z[order].astype(np.float64)
        kmeans = KMeans(
            n_clusters, n_init=1, max_iter=SAMPLE_MAX_ITER, random_state=seed % 2**32
        )
        # Weights by a power of two change nothing but what float32 can hold; one over
        # the least of them must be a number, too.
        weights = np.ldexp(self.weights, -np.frexp(self.weights.max())[1])
        weights[weights < np.finfo(np.float32).tiny] = 0.0
        with _WARNING_FILTER_LOCK, warnings.catch_warnings():
            # Fewer distinct rows than clusters is reported once, for all rows.
            warnings.simplefilter("ignore", ConvergenceWarning)
            kmeans.fit(self.Z, sample_weight=weights)
        return kmeans.cluster_centers_.astype(np.float64)


#: Features of the sample that restarts begin with, held meanwhile.
SAMPLE_BYTES = 64 * 2**20
#: Restarts further behind the best than this share stop together with it.
INERTIA_RTOL = 1e-3


#: `dual` and `squares` of centres, for the blocks of a pass, wherever these are.
DeviceCenters = tuple[DeviceConstant, DeviceConstant]


@dataclass(frozen=True, eq=False)
class ClusterCenters:
    """Centres in the landmarks' span, of one or several restarts side by side."""

    points: np.ndarray  # (c, r) in the coordinates of Z
    dual: np.ndarray  # (s, c): z·point = k_S·dual
    squares: np.ndarray  # (c,) ‖point‖²

    @classmethod
    def from_points(cls, points: np.ndarray, root: np.ndarray) -> ClusterCenters:
        """Centres at points of Z."""
        return cls(points, root @ points.T, np.vecdot(points, points))

    def to_device(self) -> DeviceCenters:
        """What a pass needs of them."""
        return DeviceConstant(self.dual), DeviceConstant(self.squares)

    def take(self, which: slice) -> ClusterCenters:
        """Some of them."""
        return ClusterCenters(
            self.points[which], self.dual[:, which], self.squares[which]
        )


@dataclass(frozen=True, eq=False)
class KMeansFit:
    """The best of the restarts."""

    centers: ClusterCenters
    wide: bool  # whether distances need float64 kernel values
    inertia: float  # Σ w‖φ(x) − c‖² about these centres
    n_iterations: int
    converged: bool
    n_distinct: int  # clusters that have rows


def fit_kmeans(
    landmarks: Landmarks,
    source: Source,
    n_clusters: int,
    engine: Engine,
    *,
    n_init: int,
    max_iter: int,
    tol: float,
    seed: int,
) -> KMeansFit:
    """k-means with `n_init` restarts, until no centre moves by more than the tolerance.

    Every restart begins with k-means++ and a few steps on a sample of rows.
    """
    mapping = FeatureMap.without_ridge(landmarks, source, center=False)
    sample_size = max(SAMPLE_BYTES // (4 * max(1, mapping.rank)), 50 * n_clusters)
    sample = FeatureSample.from_source(mapping, source, sample_size, seed)
    points = np.concatenate(
        [sample.initial_centers(n_clusters, seed + i) for i in range(n_init)]
    )
    centers = ClusterCenters.from_points(points, mapping.root)
    trial = LinearMap.with_sufficient_precision(
        landmarks, source, centers.dual, -centers.squares / 2
    )
    # float32 values where distances to the centres are good enough with them.
    wide = not mapping.columns.narrow or trial.wide or trial.wide_sums
    columns = mapping.columns.widened() if wide else mapping.columns
    max_shift = tol * sample.variance
    n_passes = 0
    is_leading, is_moving = np.ones((2, n_init), dtype=bool)
    n_empty = np.full(n_init, n_clusters)
    while (is_leading & is_moving).any() and n_passes < max_iter:
        centers = ClusterCenters.from_points(points, mapping.root)
        sums, counts, inertias = _lloyd_pass(
            columns, source, centers, n_clusters, engine
        )
        n_passes += 1
        is_occupied = (counts > 0)[:, None]
        means = sums @ mapping.root / np.where(is_occupied, counts[:, None], 1.0)
        previous_points, points = points, np.where(is_occupied, means, points)
        for empty in np.unique(np.flatnonzero(counts == 0) // n_clusters):
            own_centers = slice(empty * n_clusters, (empty + 1) * n_clusters)
            rows = _farthest_rows(
                columns, source, centers.take(own_centers), n_clusters, engine
            )
            far_features = arrays.to_host(mapping(source.take(rows)))
            candidates = np.concatenate([far_features, sample.Z])
            _reseed_empty_clusters(
                points[own_centers], counts[own_centers] == 0, candidates
            )
        shifts = np.sum((points - previous_points) ** 2, axis=1).reshape(n_init, -1)
        # Where distinct rows are fewer, clusters stay empty wherever they are put.
        empty, n_empty_before = (counts == 0).reshape(n_init, -1), n_empty
        n_empty = np.count_nonzero(empty, axis=1)
        shifts[empty & (n_empty == n_empty_before)[:, None]] = 0.0
        is_moving = shifts.sum(axis=1) > max_shift
        is_leading = inertias <= (1 + INERTIA_RTOL) * inertias.min()
    # The centres have moved once more since they were judged.
    centers = ClusterCenters.from_points(points, mapping.root)
    _, counts, inertias = _lloyd_pass(columns, source, centers, n_clusters, engine)
    best = int(np.argmin(np.where(is_leading, inertias, np.inf)))
    own_centers = slice(best * n_clusters, (best + 1) * n_clusters)
    return KMeansFit(
        centers=centers.take(own_centers),
        wide=columns.wide,
        inertia=float(inertias[best]),
        n_iterations=n_passes,
        converged=not is_moving[best],
        n_distinct=int(np.count_nonzero(counts[own_centers])),
    )


def _farthest_rows(
    columns: CrossKernel,
    source: Source,
    centers: ClusterCenters,
    size: int,
    engine: Engine,
) -> np.ndarray:
    """The rows farthest from their nearest centre, the farthest first."""
    sink = ArraySink((source.n_rows,))
    shared = (columns, centers.to_device())
    engine.map(_nearest_squared_distances_block, source, sink, shared, "empty clusters")
    squared_distances = sink.array * (source.weights > 0)
    return np.argsort(-squared_distances, kind="stable")[:size]


def _nearest_squared_distances_block(
    block: Block, columns: CrossKernel, centers: DeviceCenters
) -> np.ndarray:
    D = _relative_squared_distances(columns(block.X), centers)
    nearest = arrays.namespace(D).min(D, axis=1)
    return arrays.to_host(nearest + diag_float64(columns.kernel, block.X))


def _reseed_empty_clusters(
    points: np.ndarray, empty: np.ndarray, candidates: np.ndarray
) -> None:
    """Put centres without rows at candidates, each the farthest from all so far."""
    squares = np.vecdot(candidates, candidates)

    def squared_distances_to(center: np.ndarray) -> np.ndarray:
        return squares - 2 * (candidates @ center) + center @ center

    nearest = np.min(
        [squared_distances_to(center) for center in points[~empty]], axis=0
    )
    for i in np.flatnonzero(empty):
        points[i] = candidates[int(np.argmax(nearest))]
        nearest = np.minimum(nearest, squared_distances_to(points[i]))


def _lloyd_pass(
    columns: CrossKernel,
    source: Source,
    centers: ClusterCenters,
    n_clusters: int,
    engine: Engine,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One pass: sums by cluster and the inertia of every restart, on the host.

    Sums and counts are by the same power of two, with which float32 holds them.
    """
    power = -int(np.frexp(source.total_weight)[1])
    shared = (columns, centers.to_device(), n_clusters, power)
    return arrays.tree_to_host(engine.reduce(_lloyd_block, source, shared, "k-means"))


def _lloyd_block(
    block: Block,
    columns: CrossKernel,
    centers: DeviceCenters,
    n_clusters: int,
    power: int,
) -> tuple[Array, Array, Array]:
    """Sums of kernel values and of weights by cluster, and the inertia, per restart."""
    K = columns(block.X)
    xp, n = arrays.namespace(K), K.shape[0]
    D = _relative_squared_distances(K, centers)
    D = xp.reshape(D, (n, -1, n_clusters))
    labels = xp.argmin(D, axis=2)  # (n, restarts)
    nearest = xp.min(D, axis=2) + diag_float64(columns.kernel, block.X)[:, None]
    w = arrays.from_host(block.weights, nearest)
    inertia = w @ arrays.clip_min(nearest, 0.0)
    scaled_weights = arrays.from_host(np.ldexp(block.weights, power), nearest)
    membership = arrays.weighted_one_hot(
        labels, n_clusters, arrays.as_float(scaled_weights, K.dtype)
    )
    membership = xp.reshape(membership, (n, -1))
    sums = arrays.widen(membership.T @ K)
    return sums, xp.sum(membership, axis=0, dtype=xp.float64), inertia


def _relative_squared_distances(K: Array, centers: DeviceCenters) -> Array:
    """‖φ(x) − c‖² − k(x, x), in float64."""
    dual, squares = centers
    products = arrays.widen(K @ dual.to_device_of(K))
    return squares.to_device_of(products) - 2 * products


def assign_block(block: Block, columns: CrossKernel, centers: DeviceCenters) -> Array:
    """(n, 1): the number of the nearest centre of each row."""
    D = _relative_squared_distances(columns(block.X), centers)
    return arrays.namespace(D).argmin(D, axis=1, keepdims=True)


def distances_block(
    block: Block, columns: CrossKernel, centers: DeviceCenters
) -> Array:
    """‖φ(x) − c‖ of each row and centre."""
    D = _relative_squared_distances(columns(block.X), centers)
    D = D + diag_float64(columns.kernel, block.X)[:, None]
    return arrays.namespace(D).sqrt(arrays.clip_min(D, 0.0))
