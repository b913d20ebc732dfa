"""Spectral embedding: leading eigenvectors of D^(−½)K̃D^(−½), D the row sums of K̃, in
linear time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import _arrays as arrays
from .._precision import EPS64
from ..engines import Engine
from ..engines.blas import blas_limit_for_size
from ..kernels import PrecomputedCross
from ..landmarks import Landmarks
from ..linalg.cross_kernel import kernel_diagonal
from ..linalg.features import FeatureMap
from ..linalg.moments import moments
from ..sources import Source
from .linear_map import LinearMap
from .pca import leading_eigenpairs


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
    solver: str = "auto",
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
        values, vectors = leading_eigenpairs(gram, k, solver, seed, 0.0, None, "auto")
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
            f"The kernel {landmarks.kernel} has negative values, which are no "
            "affinities; use one such as 'rbf', 'laplacian' or 'chi2'."
        )
