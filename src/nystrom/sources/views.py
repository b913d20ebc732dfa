"""Sources made of other sources: some rows, rows that are held, pairs of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _arrays as arrays
from .fingerprint import digest
from .source import Source
from .targets import Targets


class Subset(Source):
    """Some rows of another source, in ascending order of their numbers."""

    n_rows: int
    n_features: int | None
    on_device: bool
    at_hand: bool
    targets: Any
    is_part = True

    def __init__(self, source: Source, indices: np.ndarray) -> None:
        self.source = source
        self.indices = indices
        self.n_rows = len(indices)
        self.n_features = source.n_features
        self.on_device, self.at_hand = source.on_device, source.at_hand
        self.weights = source.weights_of(indices) if source.is_weighted else None
        self.targets = _some(source.targets, indices)

    def rows(self, start: int, stop: int) -> Any:
        return self.source.take(self.indices[start:stop])

    def take(self, indices: np.ndarray) -> Any:
        return self.source.take(self.indices[indices])

    def fingerprint(self) -> str:
        return digest(self.source.fingerprint(), self.indices, self._given())


def _some(targets: Any, indices: np.ndarray) -> Any:
    """The targets of some rows; those that are read go on to be."""
    if isinstance(targets, Targets):
        return targets.on(Subset(targets.of, indices))
    return None if targets is None else targets[indices]


class Held(Source):
    """Points that are kept in memory: some rows of another source, fetched once."""

    n_rows: int
    n_features: int | None
    on_device: bool
    is_part = True

    def __init__(self, points: Any, weights: np.ndarray | None = None) -> None:
        self.points = points
        self.n_rows = arrays.count_rows(points)
        self.on_device = not arrays.on_host(points)
        self.weights = weights
        shape: tuple[int, ...] = getattr(points, "shape", ())
        self.n_features = shape[1] if len(shape) == 2 else None

    @classmethod
    def of(cls, source: Source, indices: np.ndarray) -> Held:
        """These rows of a source, with their weights."""
        weights = source.weights_of(indices) if source.is_weighted else None
        return cls(source.take(indices), weights)

    def rows(self, start: int, stop: int) -> Any:
        return arrays.slice_rows(self.points, start, stop)

    def take(self, indices: np.ndarray) -> Any:
        return arrays.take_rows(self.points, indices)


class Pair(Source):
    """Two views of the same rows: every row is a pair."""

    first: Source
    second: Source
    n_rows: int
    on_device: bool

    def __init__(self, first: Source, second: Source) -> None:
        self.first, self.second = first, second
        self.n_rows = first.n_rows
        self.on_device = first.on_device

    def rows(self, start: int, stop: int) -> Any:
        return self.first.rows(start, stop), self.second.rows(start, stop)

    def take(self, indices: np.ndarray) -> Any:
        return self.first.take(indices), self.second.take(indices)
