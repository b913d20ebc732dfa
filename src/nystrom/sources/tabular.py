"""A file of columns read in chunks: the shared chunk cache, errors, and the choice of
columns.

A `TabularFile` holds a path and options, never an open handle, so it can be pickled
and read from any thread. It refuses to go on once the file has changed.
"""

from __future__ import annotations

import codecs
import errno
import os
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from .. import _arrays as arrays
from .._digest import digest
from .._validation import check_bool, unknown_name_error
from .base import ChunkedRows, Source


class FileError(ValueError):
    """Raised if a file does not contain the requested rows or columns, or changed."""


@dataclass(frozen=True)
class FileOptions:
    """How files are read, besides their path: see `sources.open`."""

    dataset: str | None = None
    delimiter: str | None = None
    header: bool = True
    encoding: str = "utf8"
    decimal: str = "."
    row_filter: Any = None
    storage_options: dict[str, Any] | None = None
    filesystem: Any = None
    flat: bool = False  # an array of one dimension is one column

    def __post_init__(self) -> None:
        check_bool(self.header, "header")
        for name, usual in {"delimiter": (None, "detect"), "decimal": ()}.items():
            given = getattr(self, name)
            if given not in usual and not (isinstance(given, str) and len(given) == 1):
                raise ValueError(f"{name}={given!r} is not allowed; use one character.")
        try:
            codecs.lookup(self.encoding)
        except (LookupError, TypeError):
            raise ValueError(
                f"encoding={self.encoding!r} is not allowed; use one that Python "
                "knows, such as 'latin-1'."
            ) from None
        is_expression = type(self.row_filter).__name__ == "Expression"
        if self.row_filter is not None and not is_expression:
            raise TypeError(
                f"filter={self.row_filter!r} is not allowed; use an expression such as "
                "pyarrow.compute.field('year') > 2000."
            )


def file_stamp(path: str, filesystem: Any = None) -> tuple[int, int]:
    """Size and time of the last change of a file, on the local disk or in a file
    system of pyarrow's.
    """
    try:
        if filesystem is None:
            status = os.stat(path)
            return status.st_size, status.st_mtime_ns
        info = filesystem.get_file_info(path)
    except OSError as error:
        reason = error.strerror or error
        raise FileError(f"{path} cannot be read: {reason}.") from error
    if info.size is None:
        raise FileError(f"{path} cannot be read: there is no such file.")
    return info.size, info.mtime_ns or 0


@contextmanager
def wrap_decoding_errors(file: TabularFile, first_row: int = 0) -> Iterator[None]:
    """Around a library that reads rows from one on: its errors name the file."""
    try:
        yield
    except (FileError, ImportError, MemoryError, AttributeError, TypeError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise
        file.check_unchanged(after_error=True)
        problem = (
            "The file is damaged or was cut off, or could not be fetched; write it "
            "again, or try again"
        )
        if isinstance(error, UnicodeDecodeError):
            problem = f"Its text {NOT_UTF8}"
        raise FileError(
            f"{file.path}, from row {first_row} on: {error or type(error).__name__}. "
            f"{problem}."
        ) from error


def cell_error(path: str, column: Any, row: int, problem: str) -> FileError:
    """The error for a cell: row numbers count from 0, as landmarks' do."""
    return FileError(
        f"{path}, column {column!r}, row {row}: {problem}. Correct it, drop such rows, "
        "or leave the column out with columns=[...]."
    )


MISSING = "a value is missing"
NOT_UTF8 = "is not UTF-8; name its encoding, such as encoding='latin-1'"


def not_numeric_error(path: str, column: Any, kind: Any) -> FileError:
    """The error for a column of something else."""
    return FileError(
        f"{path}, column {column!r} holds {kind} values, not numbers. Encode them as "
        "numbers, or leave the column out with columns=[...]."
    )


def truncated_file_error(path: str, row: int) -> FileError:
    """The error for rows that are not there."""
    return FileError(
        f"{path} ends before row {row}: the file is damaged or was cut off; write it "
        "again."
    )


def check_finite_rows(
    X: np.ndarray, path: str, columns: Sequence[Any], row_numbers: Any
) -> None:
    """Refuse NaN and infinity in rows of these numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum()):
            return
    # The sum may overflow where no entry does.
    for i, j in np.argwhere(~np.isfinite(X))[:1]:
        value = X[i, j]
        problem = MISSING if np.isnan(value) else f"{value} is not a finite number"
        raise cell_error(path, columns[j], int(row_numbers[i]), problem)


#: Bytes of chunks that are kept, and how many at least, whatever their size: a tile may
#: lie across two, and targets may be a chunk of their own.
MAX_CACHE_BYTES, MIN_CACHED_CHUNKS = 2**27, 4
#: Bytes that are kept of few rows that `take` returned: the same ones are measured on
#: again and again, and to find them takes a read of the whole file.
MAX_TAKEN_BYTES, MAX_CACHED_TAKE_ROWS = 2**24, 2**11
#: Chunks with fewer numbers than this are read together with their neighbours.
MIN_CHUNK_VALUES = 2**18


class _CacheEntry:
    """A chunk, or the promise of one."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.values: np.ndarray | None = None


class ChunkCache:
    """A few chunks by what they are of; the one used longest ago is forgotten first."""

    def __init__(self, max_bytes: int = MAX_CACHE_BYTES) -> None:
        self.max_bytes = max_bytes
        self.clear()
        # A child that is forked while a lock is held would wait for it for ever.
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.clear)

    def clear(self) -> None:
        """Forget everything."""
        self._chunks: OrderedDict[Hashable, _CacheEntry] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable, decode: Callable[[], np.ndarray]) -> np.ndarray:
        """The values of a chunk, decoded if they are not here; not to be changed."""
        with self._lock:
            entry = self._chunks.setdefault(key, _CacheEntry())
            self._chunks.move_to_end(key)
        with entry.lock:
            values = entry.values
            if values is None:
                values = decode()
                values.flags.writeable = False
                self._keep(key, entry, values)
            return values

    def _keep(self, key: Hashable, entry: _CacheEntry, values: np.ndarray) -> None:
        with self._lock:
            if self._chunks.get(key) is not entry:
                return  # forgotten while it was decoded
            entry.values = values
            self._bytes += values.nbytes
            while (
                self._bytes > self.max_bytes and len(self._chunks) > MIN_CACHED_CHUNKS
            ):
                _, oldest = self._chunks.popitem(last=False)
                self._bytes -= 0 if oldest.values is None else oldest.values.nbytes


CHUNK_CACHE, TAKEN_ROWS = ChunkCache(), ChunkCache(MAX_TAKEN_BYTES)

ColumnNames = tuple[Any, ...]


class TabularFile(ABC):
    """A file: its columns, where its chunks begin, and how one is read.

    Path and options only, never a handle: it is opened for each chunk, and so may be
    pickled, and read from any thread.
    """

    path: str
    filesystem: Any = None  # pyarrow's, that the path is of; None: the local disk
    stamp: Any = None  # size and time of the file; text where it has none
    names: ColumnNames  # of its columns; numbers where they have none
    other_names: ColumnNames = ()  # of arrays beside the matrix that is read
    bounds: np.ndarray  # (chunks + 1,) first row of each, and the number of all
    options: Hashable = ()  # what else decides the values that are read
    token: str = ""  # of what is no file, and may change: no others' chunks
    #: Whether rows lie one after the other, so that one column costs as much as all.
    is_row_major = False
    #: Columns that are decoded together then, whichever of them are asked for.
    columns_read_together: ColumnNames = ()

    def check_unchanged(self, after_error: bool = False) -> None:
        """Refuse a file that is another one by now."""
        is_file = isinstance(self.stamp, tuple)
        if is_file and file_stamp(self.path, self.filesystem) != self.stamp:
            raise FileError(
                f"{self.path} was written to since it was opened. Open it again once "
                "it is complete."
            )

    @abstractmethod
    def dtype(self, names: ColumnNames) -> np.dtype:
        """The common dtype of some columns, which must be of numbers."""

    @abstractmethod
    def read(self, chunk: int, names: ColumnNames) -> np.ndarray:
        """(rows, columns) of one chunk, without missing values."""

    def holds_classes(self, name: Any) -> bool:
        """Whether a column has text, or true and false, that `read_text` reads."""
        return False

    def read_text(self, chunk: int, name: Any) -> np.ndarray:
        """(rows,): the texts of a column in one chunk, none missing."""
        raise NotImplementedError(f"{type(self).__name__} reads no text.")

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.bounds[-1])

    @property
    def identity(self) -> Hashable:
        """What is read, in so far as it decides the values."""
        return type(self).__name__, self.path, self.stamp, self.options

    def feature_names(self, names: ColumnNames) -> ColumnNames:
        """What the features of some columns are called: a list is several."""
        return names

    def convert(self, selection: ColumnSelection) -> TabularFile:
        """The file that the selected columns are read from."""
        return self

    def source(self, names: ColumnNames) -> Source:
        """The rows of some columns."""
        return ChunkedFileRows(self, names)

    def chunk(self, number: int, names: ColumnNames) -> np.ndarray:
        """One chunk of rows, checked: as it was decoded last, or now."""
        bounds = self.bounds[number : number + 2].tolist()
        key = (self.identity, self.token, *bounds, names)
        return CHUNK_CACHE.get(key, lambda: self._decode_chunk(number, names))

    def _decode_chunk(self, chunk: int, names: ColumnNames) -> np.ndarray:
        values = self.read_checked(self.read, chunk, names)
        start, stop = map(int, self.bounds[chunk : chunk + 2])
        X = as_float_rows(values, self.dtype(names))
        features = self.feature_names(names)
        check_finite_rows(X, self.path, features, range(start, stop))
        return X

    def read_checked(
        self, read: Callable[[int, Any], np.ndarray], chunk: int, names: Any
    ) -> np.ndarray:
        """What `read` finds in one chunk, of a file that has not changed."""
        self.check_unchanged()
        start, stop = map(int, self.bounds[chunk : chunk + 2])
        with wrap_decoding_errors(self, start):
            values = read(chunk, names)
        if len(values) != stop - start:
            raise truncated_file_error(self.path, start + len(values))
        return values


class ChunkedFileRows(ChunkedRows):
    """Columns of a file that is read in chunks."""

    file: TabularFile
    names: ColumnNames
    supports_random_access = False

    def __init__(self, file: TabularFile, names: ColumnNames) -> None:
        self.file, self.names = file, names
        self.n_rows, self.n_features = file.n_rows, len(file.feature_names(names))
        self.files: tuple[str, ...] = (file.path,)
        together = file.columns_read_together
        self._decoded_columns = together if set(names) <= set(together) else names
        self._dtype = row_dtype(file.dtype(names))
        self._key: Hashable = names  # what values depend on, besides file and rows

    @property
    def bounds(self) -> np.ndarray:  # type: ignore[override]
        """Where chunks of the file begin."""
        return self.file.bounds

    def take(self, indices: np.ndarray) -> np.ndarray:
        indices = np.asarray(indices, np.int64)  # equal bytes are equal numbers
        if not 0 < len(indices) <= MAX_CACHED_TAKE_ROWS:
            return self._take(indices)
        file = self.file
        key = (file.identity, file.token, self._key, indices.tobytes())
        return TAKEN_ROWS.get(key, lambda: self._take(indices))

    def _take(self, indices: np.ndarray) -> np.ndarray:
        return super().take(indices)

    def fingerprint(self) -> str:
        return digest(self.file.identity, self._key, self._weights_and_targets_digest())

    def _part(self, chunk: int, places: slice | np.ndarray) -> np.ndarray:
        decoded = self._decoded_columns
        rows = self.file.chunk(chunk, decoded)[places]
        if decoded == self.names:
            return rows
        return as_float_rows(rows[:, [decoded.index(name) for name in self.names]])


def row_dtype(dtype: Any) -> np.dtype:
    """The dtype of rows of such values."""
    return np.dtype(arrays.float_dtype(np.empty(0, dtype)))


def as_float_rows(values: np.ndarray, dtype: Any = None) -> np.ndarray:
    """Values as floats, row after row."""
    return arrays.as_float(values, row_dtype(values.dtype if dtype is None else dtype))


def merge_small_chunks(bounds: np.ndarray, n_columns: int) -> np.ndarray:
    """Which of the bounds are kept where small chunks are read together."""
    boundaries = [0]
    for i in range(1, len(bounds)):
        values = (bounds[i] - bounds[boundaries[-1]]) * max(1, n_columns)
        if values >= MIN_CHUNK_VALUES or i == len(bounds) - 1:
            boundaries.append(i)
    return np.array(boundaries)


def regular_chunk_bounds(n_rows: int, step: int, n_columns: int) -> np.ndarray:
    """Bounds of chunks of `step` rows, or of as many of them as are read together."""
    step = max(1, step)
    step *= max(1, -(-MIN_CHUNK_VALUES // (step * max(1, n_columns))))
    return np.append(np.arange(0, n_rows, step), n_rows)


#: Text with more different values than this is no class.
MAX_CLASSES = 10_000


class ClassCodes(ChunkedFileRows):
    """For each row the place of its text among all that the files have."""

    def __init__(self, file: TabularFile, name: Any, classes: np.ndarray) -> None:
        self.file, self.names, self.found = file, (name,), classes
        self.n_rows, self.n_features = file.n_rows, 1
        self._dtype = np.dtype(np.float64)
        # The same text has another place in another list of classes.
        self._key = (*self.names, "text", digest(classes))

    def _part(self, chunk: int, places: slice | np.ndarray) -> np.ndarray:
        bounds = self.file.bounds[chunk : chunk + 2].tolist()
        key = (self.file.identity, self.file.token, *bounds, self._key)
        return CHUNK_CACHE.get(key, lambda: self._encode_chunk(chunk))[places]

    def _encode_chunk(self, chunk: int) -> np.ndarray:
        texts = self.file.read_checked(self.file.read_text, chunk, self.names[0])
        return np.searchsorted(self.found, texts).astype(np.float64)[:, None]


def distinct_texts(files: Sequence[TabularFile], name: Any) -> np.ndarray:
    """The different texts of a column, in order: one read of it."""
    texts: set[str] = set()
    for file in files:
        for chunk in range(len(file.bounds) - 1):
            texts.update(file.read_checked(file.read_text, chunk, name).tolist())
            if len(texts) > MAX_CLASSES:
                raise FileError(
                    f"{file.path}, column {name!r} holds more than {MAX_CLASSES} "
                    "different texts, which are not classes; name another target."
                )
    return np.array(sorted(texts))


@dataclass(frozen=True)
class ColumnSelection:
    """The columns of a file by what they are for."""

    features: ColumnNames
    targets: ColumnNames
    weight: ColumnNames  # one, or none
    single: bool  # the target was named alone, not in a list
    classes: bool = False  # the target is text, or true and false

    @property
    def all(self) -> ColumnNames:
        """Every column that is read."""
        return (*self.features, *self.targets, *self.weight)

    @property
    def numbers(self) -> ColumnNames:
        """Every column that is read as numbers."""
        return (*self.features, *(() if self.classes else self.targets), *self.weight)


def select_columns(
    file: TabularFile, columns: Any = None, target: Any = None, weight: Any = None
) -> ColumnSelection:
    """The columns that are asked for; all others are features."""
    single = target is not None and not _is_collection(target)
    targets = _resolve_columns(file, target)
    weights = _resolve_columns(file, weight)
    if len(weights) > 1:
        raise ValueError(f"weight={weight!r} is not allowed; name one column.")
    if columns is None:
        features = tuple(n for n in file.names if n not in (*targets, *weights))
    else:
        features = _resolve_columns(file, columns)
    if not features:
        raise FileError(
            f"{file.path} has no remaining column for features; name fewer targets."
        )
    classes = single and file.holds_classes(*targets)
    selection = ColumnSelection(features, targets, weights, single, classes)
    for name in selection.all:
        if selection.all.count(name) > 1 or file.names.count(name) > 1:
            raise ValueError(
                f"{file.path}: column {name!r} occurs twice, in the file or in the "
                "request; names must be unique, and a column is a feature, a target "
                "or the weight."
            )
    check_columns(file, selection)
    return selection


def check_columns(file: TabularFile, selection: ColumnSelection) -> None:
    """A file must have the columns, with numbers, or classes in the target."""
    _resolve_columns(file, selection.all)
    for name in selection.numbers:
        file.dtype((name,))
    if selection.classes and not file.holds_classes(*selection.targets):
        raise FileError(
            f"{file.path}, column {selection.targets[0]!r} holds no text, unlike in "
            "the other files; write all files with the same types."
        )


def _is_collection(names: Any) -> bool:
    if isinstance(names, Set):
        raise ValueError(
            f"Columns are given as {names!r}, which has no order; use a list."
        )
    return isinstance(names, Iterable) and not isinstance(names, str)


def _resolve_columns(file: TabularFile, names: Any) -> ColumnNames:
    """Names of columns, as the file has them."""
    if names is None:
        return ()
    requested = tuple(names) if _is_collection(names) else (names,)
    return tuple(_resolve_column(file, name) for name in requested)


def _resolve_column(file: TabularFile, name: Any) -> Any:
    width = len(file.names)
    if isinstance(name, Integral) and not isinstance(name, bool):
        name = int(name)
        if name < 0 and name + width in file.names:
            return name + width
    if name in (*file.names, *file.other_names):
        return name
    known = [str(known) for known in (*file.other_names, *file.names)]
    shown = known if width <= 20 else [*known[:19], "…", known[-1]]
    raise unknown_name_error(f"{file.path}: column", name, shown)


#: Rows whose weights are read at a time.
WEIGHT_BLOCK_ROWS = 2**16


def read_weights(source: Source, path: str, name: Any) -> np.ndarray:
    """The weights of all rows, held as one vector: 8 bytes a row."""
    weights = np.empty(source.n_rows)
    for start in range(0, source.n_rows, WEIGHT_BLOCK_ROWS):
        values = source.rows(start, min(start + WEIGHT_BLOCK_ROWS, source.n_rows))[:, 0]
        weights[start : start + len(values)] = values
        if values.min() < 0:
            row = start + int(values.argmin())
            raise cell_error(
                path, name, row, f"the weight {values.min():g} is negative"
            )
    if not weights.any():
        raise FileError(
            f"{path}, column {name!r}: all weights are 0; give at least one > 0."
        )
    return weights
