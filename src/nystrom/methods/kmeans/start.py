"""Where k-means begins: k-means++ and a few steps on a sample of rows that is held."""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from ... import _arrays as arrays
from ...features import FeatureMap
from ...precision import squares_fit_float32
from ...randomness import Purpose, race, some_rows, uniforms
from ...sources import Held, Source

#: Steps of Lloyd on the sample; the passes over all rows go on from there.
SAMPLE_STEPS = 50
#: Rows whose features are made at a time.
ROWS = 4096
#: Filters of warnings are the process's: threads that change them take turns, or what
#: one of them found would stay.
_FILTERS = threading.Lock()


@dataclass(frozen=True, eq=False)
class HeldFeatures:
    """Features of some rows."""

    Z: np.ndarray  # (m, r) float32, or float64 where their squares are none
    weights: np.ndarray  # (m,)

    @classmethod
    def of(
        cls, mapping: FeatureMap, source: Source, size: int, seed: int
    ) -> HeldFeatures:
        """Rows drawn uniformly, all if there are no more; rows of weight 0 never."""
        if not source.is_weighted:
            rows = some_rows(source.n_rows, size, seed)
        else:
            u = uniforms(seed, Purpose.CHECK, 0, source.n_rows)
            rows = np.sort(race((source.weights > 0).astype(np.float64), u, size)[0])
        held, parts = Held.of(source, rows), []
        squares = arrays.to_host(mapping.columns.diag(held.rows(0, held.n_rows)))
        narrow = squares_fit_float32(squares)  # ‖z‖² is at most k(x, x)
        for start in range(0, held.n_rows, ROWS):
            X = held.rows(start, min(start + ROWS, held.n_rows))
            Z = mapping(X)
            if narrow:
                Z = arrays.as_float(Z, arrays.namespace(Z).float32)
            parts.append(arrays.to_host(Z))
        return cls(np.concatenate(parts), np.ascontiguousarray(held.weights))

    @property
    def variance(self) -> float:
        """The mean variance of a feature, by which the tolerance is measured."""
        return float(np.mean(np.var(self.Z, axis=0))) if self.Z.size else 0.0

    def start(self, n_clusters: int, seed: int) -> np.ndarray:
        """Centres by k-means++ and a few steps on the sample."""
        if len(self.Z) < n_clusters or not self.Z.shape[1]:
            order = np.arange(n_clusters) % len(self.Z)
            return self.Z[order].astype(np.float64)
        means = KMeans(
            n_clusters, n_init=1, max_iter=SAMPLE_STEPS, random_state=seed % 2**32
        )
        # Weights by a power of two change nothing but what float32 can hold; one over
        # the least of them must be a number, too.
        weights = np.ldexp(self.weights, -np.frexp(self.weights.max())[1])
        weights[weights < np.finfo(np.float32).tiny] = 0.0
        with _FILTERS, warnings.catch_warnings():
            # Fewer distinct rows than clusters is told once, of all rows.
            warnings.simplefilter("ignore", ConvergenceWarning)
            means.fit(self.Z, sample_weight=weights)
        return means.cluster_centers_.astype(np.float64)
