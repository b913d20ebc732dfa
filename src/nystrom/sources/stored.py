"""One file of rows, in chunks, and the source that its columns make."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from .. import _arrays as arrays
from .file_errors import Stamp, cut_off, decoding, refuse_not_finite
from .fingerprint import digest
from .recent import RECENT
from .source import Source

#: Chunks with fewer numbers than this are read together with their neighbours.
LEAST_VALUES = 2**18
#: Where few rows are taken they are remembered, the last so many times: the same ones
#: are measured on again and again, and to find them takes a read of the whole file.
FEW_ROWS, REMEMBERED = 2**11, 4

Names = tuple[Any, ...]


class Stored(ABC):
    """A file: its columns, where its chunks begin, and how one is read.

    Path and options only, never a handle: it is opened for each chunk, and so may be
    pickled, and read from any thread.
    """

    path: str
    stamp: Any  # of the file, or of a folder with one per chunk
    names: Names  # of its columns; numbers where they have none
    bounds: np.ndarray  # (chunks + 1,) first row of each, and the number of all
    #: Whether rows lie one after the other, so that one column costs as much as all.
    by_rows = False
    #: Columns that are decoded together then, whichever of them are asked for.
    together: Names = ()

    def __init__(self, path: str) -> None:
        self.path = path
        self.stamp = self._stamp()
        self._taken: dict[Hashable, np.ndarray] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_taken": {}}

    @property
    def stamped(self) -> str:
        """The file whose size and time tell of a change."""
        return self.path

    def _stamp(self) -> Any:
        return Stamp.of(self.stamped)

    def _check_unchanged(self) -> None:
        """Before a chunk is read."""
        self.stamp.check(self.stamped)

    @abstractmethod
    def dtype(self, names: Names) -> np.dtype:
        """The common dtype of some columns, which must be of numbers."""

    @abstractmethod
    def read(self, chunk: int, names: Names) -> np.ndarray:
        """(rows, columns) of one chunk, without missing values."""

    def holds_text(self, name: Any) -> bool:
        """Whether a column has text that `read_text` reads."""
        return False

    def holds_truth(self, name: Any) -> bool:
        """Whether a column has true and false, which are read as 1 and 0."""
        return False

    def read_text(self, chunk: int, name: Any) -> np.ndarray:
        """(rows,): the texts of a column in one chunk, none missing."""
        raise NotImplementedError(f"{type(self).__name__} reads no text.")

    def texts(self, number: int, name: Any) -> np.ndarray:
        """The texts of a column in one chunk, of a file that has not changed."""
        self._check_unchanged()
        start, stop = map(int, self.bounds[number : number + 2])
        with decoding(self.path, self.stamp, self.stamped, start):
            found = self.read_text(number, name)
        if len(found) != stop - start:
            raise cut_off(self.path, start + len(found))
        return found

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.bounds[-1])

    @property
    def identity(self) -> Hashable:
        """What is read, in so far as it decides the values."""
        return type(self).__name__, self.path, self.stamp, self.options

    @property
    def options(self) -> Hashable:
        """What else decides what is read."""
        return ()

    #: What columns may be called besides their names, for an error to say.
    also = ""

    def hint(self, name: Any) -> str:
        """What may have gone wrong where there is no column of this name."""
        return ""

    def has(self, name: Any) -> bool:
        """Whether there is such a column."""
        return name in self.names

    def source(self, names: Names) -> Source:
        """The rows of some columns."""
        return Chunked(self, names)

    def remembered(self, key: Hashable, take: Callable[[], np.ndarray]) -> np.ndarray:
        """Rows that were taken before, or are now."""
        rows = self._taken.get(key)
        if rows is None:
            rows = take()
            rows.flags.writeable = False
            kept = list(self._taken.items())[1 - REMEMBERED :]
            self._taken = {**dict(kept), key: rows}  # at once: others may look
        return rows

    def chunk(self, number: int, names: Names) -> np.ndarray:
        """One chunk of rows, checked: as it was decoded last, or now."""
        key = (self.identity, *self.bounds[number : number + 2].tolist(), names)
        return RECENT.get(key, lambda: self._decoded(number, names))

    def _decoded(self, number: int, names: Names) -> np.ndarray:
        self._check_unchanged()
        start, stop = map(int, self.bounds[number : number + 2])
        with decoding(self.path, self.stamp, self.stamped, start):
            values = self.read(number, names)
        if len(values) != stop - start:
            raise cut_off(self.path, start + len(values))
        X = as_rows(values, self.dtype(names))
        refuse_not_finite(X, self.path, names, range(start, stop))
        X.flags.writeable = False
        return X


class Chunked(Source):
    """Some columns of a file that is read in chunks."""

    stored: Stored
    names: Names
    n_rows: int
    n_features: int | None
    at_hand = False

    def __init__(self, stored: Stored, names: Names) -> None:
        self.stored, self.names = stored, names
        self.n_rows, self.n_features = stored.n_rows, len(names)
        self.files: tuple[str, ...] = (stored.path,)
        group = stored.together if set(names) <= set(stored.together) else names
        self._group = group
        self._places = None if group == names else [group.index(n) for n in names]
        self._dtype = float_dtype(stored.dtype(names))
        self._key: Hashable = names  # what values depend on, besides file and rows

    def rows(self, start: int, stop: int) -> np.ndarray:
        bounds = self.stored.bounds
        first = int(np.searchsorted(bounds, start, side="right")) - 1
        last = int(np.searchsorted(bounds, stop, side="left"))
        parts = [
            self._rows_of(chunk)[max(0, start - bounds[chunk]) : stop - bounds[chunk]]
            for chunk in range(first, last)
            if stop > start
        ]
        if len(parts) == 1:
            return self._picked(parts[0])
        none = np.empty((0, self.n_features or 0), self._dtype)
        return np.concatenate([none, *map(self._picked, parts)])

    def take(self, indices: np.ndarray) -> np.ndarray:
        indices = np.asarray(indices, np.int64)  # equal bytes are equal numbers
        if not 0 < len(indices) <= FEW_ROWS:
            return self._take(indices)
        key = (self._key, indices.tobytes())
        return self.stored.remembered(key, lambda: self._take(indices))

    def _take(self, indices: np.ndarray) -> np.ndarray:
        out = np.empty((len(indices), self.n_features or 0), self._dtype)
        # One forward read, each chunk once.
        order = np.argsort(indices, kind="stable")
        chunks = np.searchsorted(self.stored.bounds, indices[order], side="right") - 1
        ends = np.flatnonzero(np.diff(chunks)) + 1
        for places in np.split(order, ends) if len(order) else ():
            chunk = np.searchsorted(self.stored.bounds, indices[places[0]], "right") - 1
            local = indices[places] - self.stored.bounds[chunk]
            out[places] = self._picked(self._rows_of(int(chunk))[local])
        return out

    def fingerprint(self) -> str:
        return digest(self.stored.identity, self._key, self._given())

    def _rows_of(self, chunk: int) -> np.ndarray:
        return self.stored.chunk(chunk, self._group)

    def _picked(self, rows: np.ndarray) -> np.ndarray:
        return rows if self._places is None else as_rows(rows[:, self._places])


def float_dtype(dtype: Any) -> np.dtype:
    """The dtype that rows of it are handed out in."""
    return np.dtype(arrays.float_dtype(np.empty(0, dtype)))


def as_rows(values: np.ndarray, dtype: Any = None) -> np.ndarray:
    """Values as floats, row after row."""
    return arrays.as_float(
        values, float_dtype(values.dtype if dtype is None else dtype)
    )


def merged(bounds: np.ndarray, n_columns: int) -> np.ndarray:
    """Which of the bounds are kept where small chunks are read together."""
    kept = [0]
    for place in range(1, len(bounds)):
        values = (bounds[place] - bounds[kept[-1]]) * max(1, n_columns)
        if values >= LEAST_VALUES or place == len(bounds) - 1:
            kept.append(place)
    return np.array(kept)


def regular_bounds(n_rows: int, step: int, n_columns: int) -> np.ndarray:
    """Bounds of chunks of `step` rows, or of as many of them as are read together."""
    step = max(1, step)
    step *= max(1, -(-LEAST_VALUES // (step * max(1, n_columns))))
    return np.append(np.arange(0, n_rows, step), n_rows)
