"""Where the rows of a pass go: `Output` is what users give as `out`, a `Sink` takes
rows block by block.

Rows arrive from several threads, in any order. Files are written atomically: under a
temporary name beside the target, moved there once complete.
"""

from __future__ import annotations

import os
import secrets
import sys
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from .. import _arrays as arrays
from .._arrays import Array
from .._validation import import_optional, unknown_name_error


class Sink(Protocol):
    """Takes the rows that a pass makes, by the number of the first of them.

    An engine opens a sink before the first rows and closes it when the pass is over,
    `complete` or not. Rows arrive from several threads, in any order.
    """

    def open(self) -> None:
        """Make ready for rows."""
        return

    def put(self, start: int, rows: Any) -> None:
        """Keep `rows` as rows `start`, `start + 1`, …"""

    def close(self, complete: bool) -> None:
        """Be done; what is not complete may be thrown away."""
        return


@contextmanager
def open_sink(sink: Sink) -> Iterator[None]:
    """A sink that is open in a block of code; complete if that comes to its end."""
    complete = False
    try:
        sink.open()
        yield
        complete = True
    finally:
        sink.close(complete)


class ArraySink(Sink):
    """One array: a new one, on the host in float64 unless `like` says otherwise."""

    def __init__(self, shape: tuple[int, ...], like: Any = None, dtype: Any = None):
        if like is None or arrays.namespace(like) is np:
            self.array = np.empty(shape, dtype=dtype or np.float64)
        else:
            xp = arrays.namespace(like)
            self.array = xp.empty(
                shape, dtype=dtype or like.dtype, device=arrays.device(like)
            )

    @classmethod
    def from_array(cls, array: Array) -> ArraySink:
        """The sink that fills an array there is."""
        sink = cls.__new__(cls)
        sink.array = array
        return sink

    @property
    def result(self) -> Array:
        """The array."""
        return self.array

    def put(self, start: int, rows: Array) -> None:
        if not arrays.is_on_host(rows):  # on a device: it may be another one
            rows = arrays.to_device_of(rows, self.array, self.array.dtype)
        self.array[start : start + rows.shape[0], ...] = rows


class MappedSink(Sink):
    """What a function makes of the rows, to another sink."""

    def __init__(self, sink: Any, func: Callable[[Any], Any]) -> None:
        self.sink, self.func = sink, func

    @property
    def result(self) -> Any:
        """What the other sink returns."""
        return self.sink.result

    def open(self) -> None:
        self.sink.open()

    def put(self, start: int, rows: Any) -> None:
        self.sink.put(start, self.func(rows))

    def close(self, complete: bool) -> None:
        self.sink.close(complete)


class SplitSink(Sink):
    """Each part of a tuple to a sink of its own."""

    def __init__(self, *sinks: Sink) -> None:
        self.sinks = sinks

    def open(self) -> None:
        for sink in self.sinks:
            sink.open()

    def put(self, start: int, rows: tuple[Any, ...]) -> None:
        for sink, part in zip(self.sinks, rows, strict=True):
            sink.put(start, part)

    def close(self, complete: bool) -> None:
        for sink in self.sinks:
            sink.close(complete)


class OrderedSink(Sink):
    """Takes results in the order of their rows: what arrives early waits.

    An engine is never far ahead of the first row that is missing.
    """

    def __init__(self) -> None:
        self._next, self._out_of_order = 0, dict[int, Any]()
        self._lock = threading.Lock()

    def put(self, start: int, rows: Any) -> None:
        """Keep `rows` as rows `start`, `start + 1`, …"""
        with self._lock:
            self._out_of_order[start] = rows
            while self._next in self._out_of_order:
                self._next += self._append(self._out_of_order.pop(self._next))

    @abstractmethod
    def _append(self, rows: Any) -> int:
        """Take the next results; return how many rows they are of."""


# --- files ----------------------------------------------------------------------------


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The path of a file to write in place of another one.

    A reader of `path` finds all of it, or what was there before: it is written
    under another name beside it, and moved once all went well. After an error, or
    Ctrl-C, nothing remains.

    Parameters
    ----------
    path : str or path
        Where it is to be in the end. A link is followed, not replaced.

    Yields
    ------
    beside : Path
        Where to write it.

    Examples
    --------
    >>> import tempfile
    >>> from nystrom.sources.output import atomic_write
    >>> place = Path(tempfile.mkdtemp()) / "page.html"
    >>> with atomic_write(place) as beside:
    ...     _ = beside.write_text("<p>all of it</p>")
    >>> [file.name for file in place.parent.iterdir()]
    ['page.html']
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        yield temporary
        move_into_place(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def move_into_place(temporary: Path, target: Path) -> None:
    """Put a file in its place once it is on the disk."""
    with temporary.open("rb+") as opened:
        os.fsync(opened.fileno())
    os.replace(temporary, target)
    if os.name == "posix":  # the name, too, is on the disk then
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


#: Numbers that are written at a time, and rows at most.
GROUP_VALUES, MAX_GROUP_ROWS = 2**22, 2**18


class FileSink(OrderedSink):
    """A file that is written beside its place, under another name, and moved there at
    the end: a reader finds all rows, or what was there before.

    Rows are written in groups of one size, one group after the other.

    Parameters
    ----------
    path : Path
        Where the file goes.
    n_rows, names, dtype : int, tuple of str, dtype
        How many rows are written, of which columns, as which type.
    single : bool
        Whether there is one number per row, not a list of one.
    """

    def __init__(
        self,
        path: Path,
        n_rows: int,
        names: tuple[str, ...],
        dtype: np.dtype,
        single: bool = False,
    ) -> None:
        super().__init__()
        self.path, self.n_rows, self.names, self.dtype = path, n_rows, names, dtype
        self.shape = (n_rows,) if single else (n_rows, len(names))
        self.group = max(1, min(MAX_GROUP_ROWS, GROUP_VALUES // max(1, len(names))))
        self._opened, self._n_written = ExitStack(), 0
        self._buffered: list[np.ndarray] = []

    @property
    def result(self) -> Path:
        """What the caller gets."""
        return self.path

    def open(self) -> None:
        """Begin the file beside its place."""
        temporary = self._opened.enter_context(atomic_write(self.path))
        self._file = self._opened.enter_context(closing(self._begin(temporary)))

    def _append(self, rows: Any) -> int:
        rows = arrays.to_host(rows)
        rows = rows.reshape(len(rows), -1).astype(self.dtype, copy=False)
        self._buffered.append(rows)
        if self._next + len(rows) - self._n_written >= self.group:
            self._write_groups(self.group)
        return len(rows)

    def close(self, complete: bool) -> None:
        """Move the file to its place, or throw it away."""
        if not complete:
            # atomic_write removes the temporary file if it sees an error. Errors of
            # closing are not raised: what went wrong before matters.
            failure = RuntimeError("the pass has failed")
            with suppress(Exception):
                self._opened.__exit__(type(failure), failure, None)
            return
        with self._opened:
            self._write_groups(1)
            if self._n_written != self.n_rows:
                raise RuntimeError(
                    f"{self.path}: {self._n_written} of {self.n_rows} rows were "
                    "received."
                )

    def _write_groups(self, min_rows: int) -> None:
        """Write what waits, group by group, until fewer rows than `min_rows` wait."""
        rows = np.concatenate(self._buffered) if self._buffered else np.empty((0, 1))
        while len(rows) >= min_rows:
            group_rows, rows = rows[: self.group], rows[self.group :]
            self._write(group_rows)
            self._n_written += len(group_rows)
        self._buffered = [rows] if len(rows) else []

    @abstractmethod
    def _begin(self, path: Path) -> Any:
        """Make the file."""

    @abstractmethod
    def _write(self, rows: np.ndarray) -> None:
        """Write the next rows, (rows, columns)."""


class NpySink(FileSink):
    """One array in a file."""

    def _begin(self, path: Path) -> Any:
        file = path.open("xb")
        header = {
            "descr": np.lib.format.dtype_to_descr(self.dtype),
            "fortran_order": False,
            "shape": self.shape,
        }
        np.lib.format.write_array_header_1_0(file, header)
        return file

    def _write(self, rows: np.ndarray) -> None:
        self._file.write(np.ascontiguousarray(rows).data.cast("B"))


class ParquetSink(FileSink):
    """A table with a column of numbers for each column of the rows."""

    def _begin(self, path: Path) -> Any:
        arrow = import_optional("pyarrow", "io", "Writing Parquet files")
        parquet = import_optional("pyarrow.parquet", "io", "Writing Parquet files")
        kind = arrow.from_numpy_dtype(self.dtype)
        return parquet.ParquetWriter(
            path, arrow.schema([(name, kind) for name in self.names])
        )

    def _write(self, rows: np.ndarray) -> None:
        arrow, schema = sys.modules["pyarrow"], self._file.schema
        columns = [np.ascontiguousarray(column) for column in rows.T]
        table = arrow.table(columns, schema=schema)
        self._file.write_table(table, row_group_size=max(1, len(rows)))


#: How a file is written, by how its name ends.
WRITERS: dict[str, type[FileSink]] = {".npy": NpySink, ".parquet": ParquetSink}


@dataclass(frozen=True)
class Overwrite(os.PathLike):
    """Path of a file that may be replaced, for `out=` of any method.

    Otherwise, existing files are refused. The old file stays in place until the new one
    is complete.

    Parameters
    ----------
    path : str or path-like
        Where the result goes.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from nystrom import Nystroem, sources
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> model = Nystroem(n_components=5, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/Z.npy"
    ...     _ = model.transform(X, out=path)
    ...     _ = model.transform(X[:100], out=sources.Overwrite(path))
    ...     np.load(path).shape
    (100, 5)
    """

    path: str | os.PathLike[str]

    def __fspath__(self) -> str:
        return os.fspath(self.path)


@dataclass(frozen=True)
class Output:
    """What a user gave as `out`, and how the columns are called in a table.

    Parameters
    ----------
    where : None, str, Path, array or sink
        None makes an array. A path is written to by its ending, complete or not at all;
        what exists there is replaced only where it is an `Overwrite`.
    name : str
        What a column is called; several have numbers after it.
    names : sequence of str or None
        What all of them are called, where it is known.
    single : bool
        Whether there is one number per row, not a list of one.
    """

    where: Any = None
    name: str = "value"
    names: Sequence[str] | None = None
    single: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.where, (str, os.PathLike)):
            path = Path(self.where)
            _check_path(path)
            if os.path.lexists(path) and not isinstance(self.where, Overwrite):
                raise FileExistsError(
                    f"out={str(path)!r} exists already. Choose another name, or "
                    f"replace it: out=nystrom.sources.Overwrite({str(path)!r})."
                )
        elif self.where is not None and not _is_array_or_sink(self.where):
            raise TypeError(
                f"out={self.where!r} is not allowed; it is a path that ends in "
                f"{', '.join(WRITERS)}, or an array to be filled."
            )

    def sink(self, source: Any, n_columns: int, dtype: Any, like: Any = None) -> Any:
        """What takes so many columns for every row of a source."""
        if isinstance(self.where, (str, os.PathLike)):
            _check_not_input(Path(self.where), source.files)
        return self._sink(source.n_rows, n_columns, dtype, like)

    def _sink(self, n_rows: int, n_columns: int, dtype: Any, like: Any = None) -> Any:
        if self.where is None:
            array_dtype = dtype if like is None else arrays.library_dtype(dtype, like)
            try:
                return ArraySink((n_rows, n_columns), like, array_dtype)
            except MemoryError as error:
                raise MemoryError(
                    f"{error}. Write the result to a file, block by block: "
                    'out="rows.npy".'
                ) from error
        if isinstance(self.where, (str, os.PathLike)):
            path, names = Path(self.where), self.names
            if names is None:
                names = [f"{self.name}{i}" for i in range(n_columns)]
                names = [self.name] if self.single else names
            write = WRITERS[path.suffix.lower()]
            columns = tuple(map(str, names))
            return write(path, n_rows, columns, np.dtype(dtype), self.single)
        if not arrays.is_array(self.where):
            return self.where
        shape = (n_rows,) if self.single else (n_rows, n_columns)
        if tuple(self.where.shape) != shape:
            raise ValueError(
                f"out has shape {tuple(self.where.shape)}; the result has shape "
                f"{shape}."
            )
        target = self.where[:, None] if self.single else self.where
        return ArraySink.from_array(target)

    def result(self, sink: Any) -> Any:
        """What is returned once the sink has all rows."""
        if self.where is None:
            return sink.array[:, 0] if self.single else sink.array
        return self.where if arrays.is_array(self.where) else sink.result

    def store(self, rows: np.ndarray, like: Any = None) -> Any:
        """Rows that there are already, put where they are to go."""
        if self.where is None:
            return rows if like is None else arrays.from_host(rows, like, rows.dtype)
        columns = rows.reshape(len(rows), -1)
        sink = self._sink(*columns.shape, rows.dtype)
        with open_sink(sink):
            sink.put(0, columns)
        return self.result(sink)


#: A new array.
NEW_ARRAY = Output()


def _is_array_or_sink(where: Any) -> bool:
    return arrays.is_array(where) or all(
        hasattr(where, name) for name in ("open", "put", "close", "result")
    )


def _check_not_input(path: Path, files: Sequence[str]) -> None:
    """Rows that are read are not replaced by what is computed from them."""
    for file in files:
        if path.exists() and os.path.exists(file) and path.samefile(file):
            raise ValueError(
                f"out={str(path)!r} is the file from which the rows are read. Choose "
                "another name."
            )


def _check_path(path: Path) -> None:
    """What can be known to go wrong is said before the work begins."""
    suffix = path.suffix.lower()
    if suffix not in WRITERS:
        raise unknown_name_error(
            f"out={str(path)!r}: the ending", suffix, list(WRITERS)
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(f"out={str(path)!r}: there is no folder {path.parent}.")
    if path.is_dir():
        raise FileExistsError(
            f"out={str(path)!r} is a folder; it is not overwritten. Choose another "
            "name."
        )
