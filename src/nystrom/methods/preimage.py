"""The way back from coordinates to rows: ridge regression of rows on coordinates.

As scikit-learn's `KernelPCA.inverse_transform`, with the landmarks' coordinates as
landmarks. The coordinates of all rows are made block by block, and forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _arrays as arrays
from ..engines import Engine
from ..kernels import Kernel
from ..landmarks import Landmarks
from ..sources import Block, Source
from .moments import Evaluate, feature_map, moments
from .ridge import Centered, on_landmarks


@dataclass(frozen=True, eq=False)
class Preimage:
    """k(coordinates, points)·dual is the row."""

    kernel: Kernel
    points: np.ndarray  # (s, k) the landmarks' coordinates
    dual: np.ndarray  # (s, d)


class Coordinates(Source):
    """Coordinates of the rows of another source, with the rows as targets."""

    def __init__(self, source: Source, evaluate: Evaluate, dual: Any, intercept: Any):
        self.source = source
        self.evaluate, self.dual, self.intercept = evaluate, dual, intercept
        self.n_rows, self.n_features = source.n_rows, dual.shape[1]
        self.weights = source.weights

    def rows(self, start: int, stop: int) -> np.ndarray:
        return self._coordinates(self.source.rows(start, stop))

    def take(self, indices: np.ndarray) -> np.ndarray:
        return self._coordinates(self.source.take(indices))

    def block(self, start: int, stop: int) -> Block:
        rows = self.source.rows(start, stop)
        weights = None if self.weights is None else self.weights[start:stop]
        targets = arrays.host_values(rows)
        return Block(start, self._coordinates(rows), weights, targets)

    def _coordinates(self, rows: Any) -> np.ndarray:
        return self.evaluate(rows) @ self.dual + self.intercept


def preimage(
    landmarks: Landmarks,
    dual: np.ndarray,
    intercept: np.ndarray,
    source: Source,
    alpha: float,
    engine: Engine,
) -> Preimage:
    """Learn the rows from their coordinates k_S·dual + intercept."""
    kernel, points = landmarks.kernel, landmarks.points
    wide = kernel.dtype(points) == np.float32
    wider = arrays.widen(points) if wide else points
    evaluate = Evaluate(kernel, kernel.against(wider), wide)
    at = evaluate(points) @ dual + intercept
    coordinates = Coordinates(source, evaluate, dual, intercept)
    there = Landmarks(at, kernel, "coordinates of landmarks", source.n_rows)
    made = feature_map(there, coordinates, alpha, center=False)
    problem = Centered.of(moments(made, coordinates, engine, "inverse"), False)
    alphas = np.full(problem.cross.shape[1], alpha)
    back, _ = on_landmarks(made, problem, problem.solve(alphas))
    return Preimage(kernel, at, back)
