"""Kernel PCA of K̃ from the Gram matrix of Nyström features, its inverse map by ridge
regression, and spectral embedding: leading eigenvectors of D^(−½)K̃D^(−½).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import ArpackError, eigsh
from sklearn.utils.extmath import randomized_svd

from .. import _arrays as arrays
from .._arrays import Array, DeviceConstant
from .._precision import EPS64, min_eigenvalue_ratio
from ..engines import Engine
from ..engines.blas import blas_limit_for_size
from ..kernels import PrecomputedCross
from ..landmarks import Landmarks
from ..linalg.cross_kernel import CrossKernel, kernel_diagonal
from ..linalg.errors import TraceError
from ..linalg.features import FeatureMap, LinearMap
from ..linalg.moments import Moments, moments, trace_error_after_pass
from ..sources import Block, Source
from ..sources.views import SourceView
from .ridge import NormalEquations, dual_coefficients

#: With fewer components than this, and more landmarks than that, Lanczos is faster.
MAX_LANCZOS_COMPONENTS, MIN_LANCZOS_LANDMARKS = 10, 200
#: Restarts that ARPACK has at least.
MIN_ARPACK_RESTARTS = 50


@dataclass(frozen=True, eq=False)
class PrincipalComponents:
    """Directions, as coefficients of kernel values with the landmarks."""

    dual: np.ndarray  # (s, k): k_S(x)·dual − offset are the coordinates of x
    offset: np.ndarray  # (k,), 0 where no mean is subtracted
    values: np.ndarray  # (k,) eigenvalues of K̃, or of HK̃H, descending
    total: float  # the trace of K, or of HKH as far as K̃ knows the mean
    error: TraceError | None
    sizes: np.ndarray  # numbers of landmarks, ascending, the last all of them
    explained_variance_path: np.ndarray  # (sizes, k) the components' share of the trace


def principal_components(
    landmarks: Landmarks,
    source: Source,
    n_components: int | None,
    engine: Engine,
    solver: EigenSolver,
    *,
    center: bool,
) -> PrincipalComponents:
    """The leading components; as many as K̃ has rank for None."""
    mapping = FeatureMap.without_ridge(landmarks, source, center=center)
    sums = moments(mapping, source, engine)
    problem = NormalEquations.from_moments(sums, center)
    rank, root = mapping.rank, mapping.root
    k = min(rank, rank if n_components is None else n_components)
    with blas_limit_for_size(rank):
        values, vectors = solver.leading_pairs(problem.gram, k)
    mean = np.zeros(len(root))
    if center:
        # Any vector of kernel values with the same rootᵀ stands for the mean.
        mean = mapping.factor.kernel_values_for(mapping.center + problem.feature_mean)
    mean_z = mean @ root
    total = sums.kernel_trace - sums.weight * float(mean_z @ mean_z)
    path = explained_variance_path(mapping, problem, sums, values)
    cutoff = min_eigenvalue_ratio(mapping.columns.narrow)
    # What is rounding beside the largest eigenvalue counts as 0.
    values = np.where(values > cutoff * values.max(initial=0.0), values, 0.0)
    dual = (root @ vectors) * (values > 0)
    error = trace_error_after_pass(landmarks, mapping, sums, source, engine)
    return PrincipalComponents(dual, mean @ dual, values, total, error, *path)


def explained_variance_path(
    mapping: FeatureMap,
    problem: NormalEquations,
    sums: Moments,
    eigenvalues: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """What the components of the first landmarks alone have of the whole trace.

    For all landmarks, half of them, a quarter, …: eigenvalues of leading blocks of the
    one Gram matrix. All that together takes a seventh of what the whole one does, whose
    eigenvalues are known.
    """
    s, n_components = len(mapping.columns), max(1, len(eigenvalues))
    sizes = [s]
    while mapping.factor.is_nested and sizes[-1] // 2 >= n_components:
        sizes.append(sizes[-1] // 2)
    mean = mapping.center + problem.feature_mean
    ratios = np.zeros((len(sizes), n_components))
    for row, size in enumerate(sizes):
        r = mapping.factor.prefix(size).rank if size < s else mapping.rank
        total = sums.kernel_trace
        if problem.fit_intercept:
            total -= sums.weight * float(mean[:r] @ mean[:r])
        k = min(n_components, r)
        if k and total > 0:
            values = eigenvalues
            if size < s:
                block = problem.gram[:r, :r]
                values = np.maximum(_largest_eigenpairs(block, k)[0][::-1], 0.0)
            ratios[row, :k] = values / total
    return np.array(sizes[::-1]), ratios[::-1]


@dataclass(frozen=True)
class EigenSolver:
    """How leading eigenvectors are computed, with scikit-learn's parameters."""

    name: str = "auto"
    tol: float = 0.0
    max_iter: int | None = None
    iterated_power: int | str = "auto"
    seed: int = 0

    def leading_pairs(self, G: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k largest eigenvalues of G ⪰ 0, descending, and eigenvectors."""
        r, name = len(G), self.name
        if name == "auto":
            lanczos = r > MIN_LANCZOS_LANDMARKS and k < MAX_LANCZOS_COMPONENTS
            name = "arpack" if lanczos else "dense"
        if k == 0:
            return np.zeros(0), np.zeros((r, 0))
        if name == "dense" or k >= r:
            values, vectors = _largest_eigenpairs(G, k)
        elif name == "arpack":
            values, vectors = self._lanczos_pairs(G, k)
        else:
            vectors, values, _ = randomized_svd(
                G, k, n_iter=self.iterated_power, random_state=self.seed % 2**32
            )
        order = np.argsort(values)[::-1]
        return np.maximum(values[order], 0.0), vectors[:, order]

    def _lanczos_pairs(self, G: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The same by ARPACK; by LAPACK where that fails, many being as good as equal.

        From half as many restarts as G has rows on LAPACK would have been faster;
        ARPACK's own limit is twenty times that: a minute for a thousand rows.
        """
        start = np.random.default_rng(self.seed).uniform(-1, 1, len(G))
        max_iter = self.max_iter
        if max_iter is None:
            max_iter = max(MIN_ARPACK_RESTARTS, len(G) // 2)
        try:
            return eigsh(G, k, which="LA", tol=self.tol, maxiter=max_iter, v0=start)
        except ArpackError:
            return _largest_eigenpairs(G, k)


def _largest_eigenpairs(G: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues of G, ascending, and eigenvectors.

    LAPACK's way to some of them may fail, or find fewer, where many are as good as
    equal; that to all of them does not.
    """
    r = len(G)
    with suppress(np.linalg.LinAlgError):
        values, vectors = scipy.linalg.eigh(G, subset_by_index=(r - k, r - 1))
        if len(values) == k:
            return values, vectors
    values, vectors = np.linalg.eigh(G)
    return values[r - k :], vectors[:, r - k :]


@dataclass(frozen=True, eq=False)
class SpectralEmbeddingMap:
    """x ↦ (k_S(x)·dual)/d(x), with the degree d(x) = max(k_S(x)·degree, k(x, x))."""

    dual: np.ndarray  # (s, k)
    degree: np.ndarray  # (s,)
    values: np.ndarray  # (k,) eigenvalues, descending, at most 1


def fit_spectral_embedding(
    landmarks: Landmarks,
    source: Source,
    n_components: int,
    engine: Engine,
    *,
    seed: int = 0,
) -> tuple[SpectralEmbeddingMap, np.ndarray]:
    """The map, and the embedded rows (n, k)."""
    mapping = FeatureMap.without_ridge(landmarks, source, center=False)
    check_nonnegative_kernel(landmarks)
    total = moments(mapping, source, engine, "degrees").feature_sum
    degree = mapping.root @ total
    d = row_degrees(landmarks, source, degree, engine)
    scaled = source.replace(weights=source.weights / d)
    gram = moments(mapping, scaled, engine).gram
    k = min(n_components, mapping.rank)
    with blas_limit_for_size(len(gram)):
        values, vectors = EigenSolver(seed=seed).leading_pairs(gram, k)
    cutoff = EPS64 * len(gram) * values.max(initial=0.0)
    kept = values > cutoff
    dual = mapping.root @ (vectors[:, kept] / np.sqrt(values[kept]))
    if not kept.any():  # no row is like any other: all are at one place
        dual, values, kept = np.zeros((len(degree), 1)), np.zeros(1), np.array([True])
    embedding_map = SpectralEmbeddingMap(dual, degree, values[kept])
    return embedding_map, embed_rows(embedding_map, landmarks, source, engine, d)


def embed_rows(
    embedding_map: SpectralEmbeddingMap,
    landmarks: Landmarks,
    source: Source,
    engine: Engine,
    d: np.ndarray | None = None,
) -> np.ndarray:
    """The embedded rows; `d` are their degrees, where they are known already."""
    d = row_degrees(landmarks, source, embedding_map.degree, engine) if d is None else d
    mapped = _apply_dual(landmarks, source, embedding_map.dual, engine, "embedding")
    return mapped / d[:, None]


def row_degrees(
    landmarks: Landmarks, source: Source, degree: np.ndarray, engine: Engine
) -> np.ndarray:
    """The row sums of K̃; at least k(x, x), which a row has of itself alone."""
    sums = _apply_dual(landmarks, source, degree[:, None], engine, "degrees")
    d = sums[:, 0]
    # New rows of a precomputed kernel come without it.
    if not isinstance(landmarks.kernel, PrecomputedCross):
        d = np.maximum(d, kernel_diagonal(landmarks.kernel, source, engine=engine))
    # A row without any affinity, its own included, is alone: any degree will do.
    return np.where(d > 0, d, 1.0)


def _apply_dual(
    landmarks: Landmarks, source: Source, dual: np.ndarray, engine: Engine, name: str
) -> np.ndarray:
    linear_map = LinearMap(dual, np.zeros(dual.shape[1]), wide=True)
    return arrays.to_host_float64(linear_map(landmarks, source, engine, name))


def check_nonnegative_kernel(landmarks: Landmarks) -> None:
    """An affinity is not negative."""
    K = landmarks.kernel.gram(landmarks.points)
    if K.min() < -1e-6 * np.abs(K).max():
        raise ValueError(
            f"The kernel {landmarks.kernel} has negative values, which are not "
            "affinities; use one such as 'rbf', 'laplacian' or 'chi2'."
        )


@dataclass(frozen=True, eq=False)
class Preimage:
    """The way back: a map of coordinates, on the landmarks' coordinates."""

    landmarks: Landmarks
    map: LinearMap


class CoordinateSource(SourceView):
    """Coordinates of the rows of another source, with the rows as targets."""

    def __init__(
        self, source: Source, columns: CrossKernel, forward_map: LinearMap
    ) -> None:
        super().__init__(source)
        self.columns, self.n_features = columns, forward_map.dual.shape[1]
        self.dual = DeviceConstant(forward_map.dual)
        self.intercept = DeviceConstant(forward_map.intercept)

    def rows(self, start: int, stop: int) -> Array:
        return self.map_rows(self.source.rows(start, stop))

    def take(self, indices: np.ndarray) -> Array:
        return self.map_rows(self.source.take(indices))

    def block(self, start: int, stop: int) -> Block:
        rows = self.source.rows(start, stop)
        targets = arrays.widen(rows)
        return Block(start, self.map_rows(rows), self.weights[start:stop], targets)

    def map_rows(self, rows: Any) -> Array:
        """The coordinates of some rows, where they are."""
        K = self.columns.float64(rows)
        return K @ self.dual.to_device_of(K) + self.intercept.to_device_of(K)


def fit_preimage(
    landmarks: Landmarks,
    forward_map: LinearMap,
    source: Source,
    alpha: float,
    engine: Engine,
) -> Preimage:
    """Learn the rows from their coordinates."""
    columns = landmarks.columns(wide=landmarks.columns().narrow)
    coordinates = CoordinateSource(source, columns, forward_map)
    points, name = coordinates.map_rows(landmarks.points), "coordinates of landmarks"
    inverse = Landmarks(points, landmarks.kernel, name, source.n_rows)
    mapping = FeatureMap.for_ridge(inverse, coordinates, alpha, center=False)
    sums = moments(mapping, coordinates, engine, "inverse")
    problem = NormalEquations.from_moments(sums, False)
    alphas = np.full(problem.cross.shape[1], alpha)
    dual, _ = dual_coefficients(mapping, problem, problem.solve(alphas))
    return Preimage(inverse, LinearMap(dual, np.zeros(dual.shape[1]), wide=True))
