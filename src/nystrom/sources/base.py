"""What a source of rows can do, and a source that is some rows of another."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _arrays as arrays


@dataclass(frozen=True)
class Block:
    """Consecutive rows of a source: where they begin, the rows, weights, targets."""

    start: int
    X: Any
    weights: np.ndarray | None = None
    targets: np.ndarray | None = None


class Source(ABC):
    """Rows, block by block. Only `rows` and `take` differ between kinds of storage."""

    n_rows: int
    n_features: int | None = None  # None where the rows are not vectors
    weights: np.ndarray | None = None  # a row of weight w counts as w rows
    targets: np.ndarray | None = None  # (n_rows, n_targets), where there are any

    @abstractmethod
    def rows(self, start: int, stop: int) -> Any:
        """Rows start to stop, as the kernel takes them."""

    @abstractmethod
    def take(self, indices: np.ndarray) -> Any:
        """The rows with these numbers, in this order."""

    def block(self, start: int, stop: int) -> Block:
        """Rows start to stop with their weights and targets."""
        weights = None if self.weights is None else self.weights[start:stop]
        targets = None if self.targets is None else self.targets[start:stop]
        return Block(start, self.rows(start, stop), weights, targets)

    def having(self, **values: np.ndarray) -> Source:
        """The same rows with other `weights` or `targets`."""
        changed = copy.copy(self)
        for name, value in values.items():
            setattr(changed, name, value)
        return changed


class Subset(Source):
    """Some rows of another source, in ascending order of their numbers."""

    def __init__(self, source: Source, indices: np.ndarray) -> None:
        self.source = source
        self.indices = indices
        self.n_rows = len(indices)
        self.n_features = source.n_features
        self.weights = None if source.weights is None else source.weights[indices]
        self.targets = None if source.targets is None else source.targets[indices]

    def rows(self, start: int, stop: int) -> Any:
        return self.source.take(self.indices[start:stop])

    def take(self, indices: np.ndarray) -> Any:
        return self.source.take(self.indices[indices])


class Held(Source):
    """Some rows of another source, fetched once and kept."""

    def __init__(self, source: Source, indices: np.ndarray) -> None:
        self.points = source.take(indices)
        self.n_rows = len(indices)
        self.n_features = source.n_features
        self.weights = None if source.weights is None else source.weights[indices]

    def rows(self, start: int, stop: int) -> Any:
        if arrays.is_array(self.points):
            return self.points[start:stop, ...]
        return self.points[start:stop]

    def take(self, indices: np.ndarray) -> Any:
        if isinstance(self.points, list):
            return [self.points[i] for i in indices]
        return arrays.take_rows(self.points, indices)
