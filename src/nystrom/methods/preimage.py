"""The way back from coordinates to rows: ridge regression of rows on coordinates.

As scikit-learn's `KernelPCA.inverse_transform`, with the landmarks' coordinates as
landmarks. The coordinates of all rows are made block by block, and forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _arrays as arrays
from .._arrays import Array
from ..columns import Columns
from ..engines import Engine
from ..features import FeatureMap
from ..landmarks import Landmarks
from ..moments import moments
from ..operands import Operand
from ..sources import Block, Source
from .linear_map import LinearMap
from .ridge.problem import Centered, on_landmarks


@dataclass(frozen=True, eq=False)
class Preimage:
    """The way back: a map of coordinates, on the landmarks' coordinates."""

    landmarks: Landmarks
    map: LinearMap


class Coordinates(Source):
    """Coordinates of the rows of another source, with the rows as targets."""

    def __init__(self, source: Source, columns: Columns, forth: LinearMap) -> None:
        self.source, self.columns = source, columns
        self.on_device = source.on_device
        self.dual, self.intercept = Operand(forth.dual), Operand(forth.intercept)
        self.n_rows, self.n_features = source.n_rows, forth.dual.shape[1]
        self.weights = source.weights if source.is_weighted else None

    def rows(self, start: int, stop: int) -> Array:
        return self.of(self.source.rows(start, stop))

    def take(self, indices: np.ndarray) -> Array:
        return self.of(self.source.take(indices))

    def block(self, start: int, stop: int) -> Block:
        rows = self.source.rows(start, stop)
        targets = arrays.widen(rows)
        return Block(start, self.of(rows), self.weights[start:stop], targets)

    def of(self, rows: Any) -> Array:
        """The coordinates of some rows, where they are."""
        K = self.columns.float64(rows)
        return K @ self.dual.beside(K) + self.intercept.beside(K)


def preimage(
    landmarks: Landmarks, forth: LinearMap, source: Source, alpha: float, engine: Engine
) -> Preimage:
    """Learn the rows from their coordinates."""
    columns = landmarks.columns()
    columns = columns.widened() if columns.narrow else columns
    coordinates = Coordinates(source, columns, forth)
    at = coordinates.of(landmarks.points)
    name = "coordinates of landmarks"
    there = Landmarks(at, landmarks.kernel, name, source.n_rows)
    mapping = FeatureMap.for_ridge(there, coordinates, alpha, center=False)
    problem = Centered.of(moments(mapping, coordinates, engine, "inverse"), False)
    alphas = np.full(problem.cross.shape[1], alpha)
    back, _ = on_landmarks(mapping, problem, problem.solve(alphas))
    return Preimage(there, LinearMap(back, np.zeros(back.shape[1]), wide=True))
