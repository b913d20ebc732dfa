"""What a source of rows can do."""

from __future__ import annotations

import copy
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import weights as row_weights
from .fingerprint import digest, seen_rows


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
    #: What the features are called, where that is known; rows in another order of them
    #: are then refused by estimators.
    feature_names: tuple[str, ...] | None = None
    #: The files that rows are read from.
    files: tuple[str, ...] = ()
    #: (n_rows, n_targets), where there are any: an array, or `Targets` that are read.
    targets: Any = None
    #: Whether some rows cost no more than their share of all: not so in a file, where
    #: rows that are wanted again are better kept.
    at_hand: bool = True
    #: Whether it is part of another source.
    is_part: bool = False
    #: A few rows that were read before; see `tried.py`.
    kept: Any = None
    #: Whether blocks are of a library with threads, or a device, of its own: one of
    #: them is then worked on at a time, and may be larger.
    on_device: bool = False
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

    @property
    def given(self) -> Source:
        """The rows as they were given: results are handed out in their library."""
        return self

    def numbers(self, start: int, stop: int) -> np.ndarray | None:
        """The numbers by which rows start to stop are known, if they are others."""
        return None

    def numbered(self, numbers: np.ndarray) -> Any:
        """The rows that are known by these numbers."""
        return self.take(numbers)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "kept"}

    def fingerprint(self) -> str:
        """16 hexadecimal digits that other rows, weights or targets would change.

        Of many rows in memory some are looked at; of a file its path, size and time.
        """
        width = 8 * (self.n_features or 1)
        rows = self.take(seen_rows(self.n_rows, width))
        shape = (type(self).__name__, self.n_rows, self.n_features)
        return digest(shape, rows, self._given())

    def _given(self) -> str:
        """What the fingerprint says of weights and targets."""
        some = seen_rows(self.n_rows, 8)
        weights = self.weights_of(some) if self.is_weighted else None
        targets = self.targets
        if hasattr(targets, "of"):
            targets = targets.of.fingerprint()
        elif targets is not None:
            targets = targets[some]
        return digest(weights, targets)

    def __repr__(self) -> str:
        parts = getattr(self, "parts", None) or [self]
        kinds = {type(getattr(part, "stored", part)).__name__ for part in parts}
        kind, where = type(self).__name__, []
        if self.files and len(kinds) == 1:
            kind = kinds.pop().removesuffix("File") + "Source"
        if len(self.files) == 1:
            where = [repr(os.path.basename(self.files[0]))]
        elif self.files:
            where = [f"{len(self.files)} files"]
        elif len(parts) > 1:
            where = [f"{len(parts)} sources"]
        shape = counted(getattr(self, "n_rows", 0), "row")
        if self.n_features is not None:
            shape += f" × {counted(self.n_features, 'feature')}"
        said = [*where, shape, *_targets_in_words(self.targets, self.files)]
        return f"{kind}({', '.join([*said, *['weighted'] * self.is_weighted])})"

    def having(self, **values: Any) -> Source:
        """The same rows with other `weights` or `targets`."""
        changed = copy.copy(self)
        for name, value in values.items():
            setattr(changed, name, value)
        return changed


def counted(number: int, what: str) -> str:
    """1 row, 1,000 rows."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _targets_in_words(targets: Any, files: tuple[str, ...]) -> list[str]:
    """What a repr says of targets: their columns, or the file that they are in."""
    if targets is None:
        return []
    of = getattr(targets, "of", None)
    first = (getattr(of, "parts", None) or [of])[0]
    stored, names = getattr(first, "stored", None), getattr(first, "names", None)
    if stored is None or names is None:
        return [counted(targets.shape[1] if len(targets.shape) == 2 else 1, "target")]
    if stored.path not in files:
        return [f"target in {os.path.basename(stored.path)!r}"]
    if len(names) > 3:
        return [f"{len(names)} targets"]
    texts = [repr(n) if isinstance(n, str) else f"column {n}" for n in names]
    return [f"target{'s' * (len(names) > 1)} {' and '.join(texts)}"]


def names_among(columns: Iterable[Any]) -> tuple[str, ...] | None:
    """What columns are called; None unless all of them have names that are text."""
    names = tuple(columns)
    text = names and all(isinstance(name, str) for name in names)
    return tuple(map(str, names)) if text else None
