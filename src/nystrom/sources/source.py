"""What a source of rows can do."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import weights as row_weights


@dataclass(frozen=True)
class Block:
    """Rows of one tile of a source: where it begins, the rows, weights, targets."""

    start: int
    X: Any
    weights: np.ndarray
    targets: np.ndarray | None = None
    #: The numbers of the rows; None where they follow each other from `start` on.
    numbers: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.weights)


class Source(ABC):
    """Rows, block by block. Only `rows` and `take` differ between kinds of storage."""

    n_rows: int
    n_features: int | None = None  # None where the rows are not vectors
    targets: np.ndarray | None = None  # (n_rows, n_targets), where there are any
    #: Whether some rows cost no more than their share of all: not so in a file, where
    #: rows that are wanted again are better kept.
    at_hand = True
    #: What its passes run on where no engine is in use: whatever `engines.using` takes.
    home: Any = None
    _weights: np.ndarray | None = None

    @abstractmethod
    def rows(self, start: int, stop: int) -> Any:
        """Rows start to stop, as the kernel takes them."""

    @abstractmethod
    def take(self, indices: np.ndarray) -> Any:
        """The rows with these numbers, in this order."""

    @property
    def weights(self) -> np.ndarray:
        """(n_rows,): a row of weight w counts as w rows; 1 unless they were given."""
        return row_weights.ones(self.n_rows) if self._weights is None else self._weights

    @weights.setter
    def weights(self, given: np.ndarray | None) -> None:
        self._weights = given

    @property
    def is_weighted(self) -> bool:
        """Whether weights were given."""
        return self._weights is not None

    @property
    def total_weight(self) -> float:
        """As how many rows all of them count."""
        return float(self.n_rows if self._weights is None else self._weights.sum())

    def weights_of(self, indices: np.ndarray) -> np.ndarray:
        """The weights of some rows."""
        if self._weights is None:
            return row_weights.ones(len(indices))
        return self._weights[indices]

    def block(self, start: int, stop: int) -> Block:
        """Rows start to stop with their weights and targets."""
        targets = None if self.targets is None else self.targets[start:stop]
        numbers = self.numbers(start, stop)
        weights = self.weights[start:stop]
        return Block(start, self.rows(start, stop), weights, targets, numbers)

    def numbers(self, start: int, stop: int) -> np.ndarray | None:
        """The numbers by which rows start to stop are known, if they are others."""
        return None

    def numbered(self, numbers: np.ndarray) -> Any:
        """The rows that are known by these numbers."""
        return self.take(numbers)

    def having(self, **values: np.ndarray | None) -> Source:
        """The same rows with other `weights` or `targets`."""
        changed = copy.copy(self)
        for name, value in values.items():
            setattr(changed, name, value)
        return changed
