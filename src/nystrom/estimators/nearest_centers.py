"""Clusters of rows in the features, or in the embedding of spectral clustering."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from .. import _arrays as arrays
from ..edge.warnings import warn
from ..engines import Engine
from ..landmarks import Landmarks
from ..methods.kmeans.clustering import Centers, Clusters, assigned, cluster, distances
from ..methods.spectral_embedding import Embedding, embed, embedding
from ..sinks import Output
from ..sources import Source
from .on_landmarks import in_library_of

#: One number per row, in a new array.
LABELS = Output(single=True)


@dataclass(frozen=True, eq=False)
class OnFeatures:
    """Centres in the landmarks' span."""

    centers: Centers
    wide: bool  # whether distances need float64 kernel values

    def labels(
        self, landmarks: Landmarks, source: Source, engine: Engine, output: Output
    ) -> Any:
        """The nearest centre of each row, where it is to go."""
        sink = output.sink(source, 1, np.dtype(np.int32), _like(landmarks, source))
        engine.map(assigned, source, sink, self._shared(landmarks), "labels")
        return output.result(sink)

    def distances(
        self, landmarks: Landmarks, source: Source, engine: Engine, output: Output
    ) -> Any:
        """To every centre, where they are to go."""
        like = _like(landmarks, source)
        width, dtype = len(self.centers.points), arrays.host_dtype(like)
        sink = output.sink(source, width, dtype, like)
        engine.map(distances, source, sink, self._shared(landmarks), "distances")
        return output.result(sink)

    def _shared(self, landmarks: Landmarks) -> tuple[Any, ...]:
        return landmarks.columns(wide=self.wide), self.centers.placed()


@dataclass(frozen=True, eq=False)
class OnEmbedding:
    """Centres among the coordinates of rows."""

    embedding: Embedding
    centers: KMeans

    def labels(
        self, landmarks: Landmarks, source: Source, engine: Engine, output: Output
    ) -> Any:
        """The nearest centre of each row, where it is to go."""
        rows = embed(self.embedding, landmarks, source, engine)
        return output.keep(self._nearest(rows), _like(landmarks, source))

    def distances(
        self, landmarks: Landmarks, source: Source, engine: Engine, output: Output
    ) -> Any:
        """To every centre, where they are to go."""
        like = _like(landmarks, source)
        rows = embed(self.embedding, landmarks, source, engine)
        found = self.centers.transform(rows)
        return output.keep(found.astype(arrays.host_dtype(like), copy=False), like)

    def _nearest(self, rows: np.ndarray) -> np.ndarray:
        """As scikit-learn's `predict`, by NumPy.

        Its compiled loop takes centres of any shape and type as they come, out of a
        damaged model file too, and ends the process.
        """
        centers = self.centers.cluster_centers_
        apart = np.vecdot(centers, centers) - 2 * (rows @ centers.T)
        return apart.argmin(axis=1).astype(np.int32)


def _like(landmarks: Landmarks, source: Source) -> Any:
    """A row as it came, in whose library and precision results are."""
    return landmarks.kernel.like(source.given.rows(0, 1))


def fit_features(
    landmarks: Landmarks,
    source: Source,
    n_clusters: int,
    engine: Engine,
    *,
    n_init: int,
    max_iter: int,
    tol: float,
    seed: int,
) -> dict[str, Any]:
    """What is fitted, by its name, where centres are in the landmarks' span."""
    found = cluster(
        landmarks,
        source,
        n_clusters,
        engine,
        n_init=n_init,
        max_iter=int(max_iter),
        tol=float(tol),
        seed=seed,
    )
    _warn(found, n_clusters, max_iter)
    way = OnFeatures(found.centers, found.wide)
    return {
        "_embedding": None,
        "_centers_of_embedding": None,
        "_centers": found.centers,
        "_wide": found.wide,
        "dual_coef_": in_library_of(landmarks, found.centers.dual),
        "inertia_": found.inertia,
        "n_iter_": found.n_iterations,
        "labels_": way.labels(landmarks, source, engine, LABELS),
    }


def _warn(found: Clusters, n_clusters: int, max_iter: int) -> None:
    if found.n_distinct < n_clusters:
        warn(
            f"Number of distinct clusters ({found.n_distinct}) found smaller than "
            f"n_clusters ({n_clusters}). Possibly due to duplicate points in X.",
            ConvergenceWarning,
        )
    elif not found.converged and max_iter > 1:
        warn(
            f"The centres still moved after {max_iter} passes; raise max_iter or tol.",
            ConvergenceWarning,
        )


def fit_embedding(
    landmarks: Landmarks,
    source: Source,
    n_clusters: int,
    engine: Engine,
    *,
    n_init: int,
    max_iter: int,
    tol: float,
    seed: int,
) -> dict[str, Any]:
    """What is fitted, by its name, where centres are among coordinates."""
    found, rows = embedding(landmarks, source, n_clusters, engine, seed=seed)
    means = KMeans(
        n_clusters,
        n_init=n_init,
        max_iter=max_iter,
        tol=tol,
        random_state=seed % 2**32,
    ).fit(rows, sample_weight=source.weights)
    like = _like(landmarks, source)
    return {
        "_embedding": found,
        "_centers_of_embedding": means,
        "labels_": arrays.from_host(means.labels_, like, means.labels_.dtype),
        "inertia_": float(means.inertia_),
        "n_iter_": means.n_iter_,
    }
