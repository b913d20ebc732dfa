"""Spectral embedding: leading eigenvectors of D^(−½)K̃D^(−½), D being the row sums of K̃.

K-means on its rows approximates the normalised cut, as in spectral clustering; here
from two passes over the rows instead of an n × n matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import _arrays as arrays
from ..columns import diagonal
from ..engines import Engine
from ..engines.blas import blas_threads_for
from ..engines.progress import expect
from ..features import FeatureMap
from ..kernels import NewRows
from ..landmarks import Landmarks
from ..moments import moments
from ..precision import EPS64
from ..sources import Source
from .linear_map import LinearMap
from .pca import leading_eigenpairs


@dataclass(frozen=True, eq=False)
class Embedding:
    """x ↦ (k_S(x)·dual)/d(x), with the degree d(x) = max(k_S(x)·degree, k(x, x))."""

    dual: np.ndarray  # (s, k)
    degree: np.ndarray  # (s,)
    values: np.ndarray  # (k,) eigenvalues, descending, at most 1


def embedding(
    landmarks: Landmarks,
    source: Source,
    n_components: int,
    engine: Engine,
    *,
    solver: str = "auto",
    seed: int = 0,
) -> tuple[Embedding, np.ndarray]:
    """The map, and the embedded rows (n, k)."""
    mapping = FeatureMap.resolving(landmarks, source, center=False)
    refuse_negative(landmarks)
    expect(engine.progress, 5)
    total = moments(mapping, source, engine, "degrees").feature_sum
    degree = mapping.root @ total
    d = degrees(landmarks, source, degree, engine)
    scaled = source.having(weights=source.weights / d)
    gram = moments(mapping, scaled, engine).gram
    k = min(n_components, mapping.rank)
    with blas_threads_for(len(gram)):
        values, vectors = leading_eigenpairs(gram, k, solver, seed, 0.0, None, "auto")
    floor = EPS64 * len(gram) * values.max(initial=0.0)
    kept = values > floor
    dual = mapping.root @ (vectors[:, kept] / np.sqrt(values[kept]))
    if not kept.any():  # no row is like any other: all are at one place
        dual, values, kept = np.zeros((len(degree), 1)), np.zeros(1), np.array([True])
    found = Embedding(dual, degree, values[kept])
    return found, embed(found, landmarks, source, engine, d)


def embed(
    known: Embedding,
    landmarks: Landmarks,
    source: Source,
    engine: Engine,
    d: np.ndarray | None = None,
) -> np.ndarray:
    """The embedded rows; `d` are their degrees, where they are known already."""
    d = degrees(landmarks, source, known.degree, engine) if d is None else d
    mapped = _mapped(landmarks, source, known.dual, engine, "embedding")
    return mapped / d[:, None]


def degrees(
    landmarks: Landmarks, source: Source, degree: np.ndarray, engine: Engine
) -> np.ndarray:
    """The row sums of K̃; at least k(x, x), which a row has of itself alone."""
    sums = _mapped(landmarks, source, degree[:, None], engine, "degrees")
    d = sums[:, 0]
    # New rows of a precomputed kernel come without it.
    if not isinstance(landmarks.kernel, NewRows):
        d = np.maximum(d, diagonal(landmarks.kernel, source, engine=engine))
    # A row without any affinity, its own included, is alone: any degree will do.
    return np.where(d > 0, d, 1.0)


def _mapped(
    landmarks: Landmarks, source: Source, dual: np.ndarray, engine: Engine, name: str
) -> np.ndarray:
    to_rows = LinearMap(dual, np.zeros(dual.shape[1]), wide=True)
    return arrays.host_values(to_rows(landmarks, source, engine, name))


def refuse_negative(landmarks: Landmarks) -> None:
    """An affinity is not negative."""
    K = landmarks.kernel.gram(landmarks.points)
    if K.min() < -1e-6 * np.abs(K).max():
        raise ValueError(
            f"The kernel {landmarks.kernel} has negative values, which are no "
            "affinities; use one such as 'rbf', 'laplacian' or 'chi2'."
        )
