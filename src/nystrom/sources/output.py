"""Where the rows of a pass go: `Output` is what users give as `out`, a `Sink` takes
rows block by block.

Rows arrive from several threads, in any order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from .. import _arrays as arrays
from .._arrays import Array
from .._validation import unknown_name_error
from .output_files import AtomicFileSink, NpySink, OutputLayout, ParquetSink, ZarrSink


class Sink(Protocol):
    """Takes the rows that a pass makes, by the number of the first of them.

    An engine opens a sink before the first rows and closes it when the pass is over,
    `complete` or not. Rows arrive from several threads, in any order.
    """

    #: Whether rows may be put from another process: into a file, say, but not an array.
    process_safe: bool

    def open(self) -> None:
        """Make ready for rows, in every process that puts some."""

    def put(self, start: int, rows: Any) -> None:
        """Keep `rows` as rows `start`, `start + 1`, …"""

    def close(self, complete: bool) -> None:
        """Be done; what is not complete may be thrown away."""


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


class ArraySink:
    """One array: a new one, on the host in float64 unless `like` says otherwise."""

    process_safe = False

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

    def open(self) -> None:
        pass

    def put(self, start: int, rows: Array) -> None:
        if not arrays.is_on_host(rows):  # on a device: it may be another one
            rows = arrays.to_device_of(rows, self.array, self.array.dtype)
        self.array[start : start + rows.shape[0], ...] = rows

    def close(self, complete: bool) -> None:
        pass


class MappedSink:
    """What a function makes of the rows, to another sink."""

    def __init__(self, sink: Any, func: Callable[[Any], Any]) -> None:
        self.sink, self.func, self.process_safe = sink, func, sink.process_safe

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


class SplitSink:
    """Each part of a tuple to a sink of its own."""

    def __init__(self, *sinks: Sink) -> None:
        self.sinks = sinks
        self.process_safe = all(sink.process_safe for sink in sinks)

    def open(self) -> None:
        for sink in self.sinks:
            sink.open()

    def put(self, start: int, rows: tuple[Any, ...]) -> None:
        for sink, part in zip(self.sinks, rows, strict=True):
            sink.put(start, part)

    def close(self, complete: bool) -> None:
        for sink in self.sinks:
            sink.close(complete)


#: How a file is written, by how its name ends.
WRITERS: dict[str, Callable[[Path, OutputLayout], AtomicFileSink]] = {
    ".npy": NpySink,
    ".parquet": ParquetSink,
    ".zarr": ZarrSink,
}


@dataclass(frozen=True)
class Overwrite(os.PathLike):
    """The path of a file that may be replaced, for `out=` of any method.

    A file that exists is refused otherwise. Until the new one is complete, the old one
    stays in its place.

    Parameters
    ----------
    path : str or path
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
            _check_path(Path(self.where))
            if not isinstance(self.where, Overwrite):
                _refuse_existing(Path(self.where))
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
                    f"{error}. transform and predict write their rows to a file, block "
                    'by block, where they are given one: out="rows.npy".'
                ) from error
        if isinstance(self.where, (str, os.PathLike)):
            path = Path(self.where)
            column_names = (
                self._default_names(n_columns) if self.names is None else self.names
            )
            names = tuple(map(str, column_names))
            layout = OutputLayout(n_rows, names, np.dtype(dtype), self.single)
            return WRITERS[path.suffix.lower()](path, layout)
        if not arrays.is_array(self.where):
            return self.where
        shape = (n_rows,) if self.single else (n_rows, n_columns)
        if tuple(self.where.shape) != shape:
            raise ValueError(
                f"out has shape {tuple(self.where.shape)}; the rows to be put there "
                f"have shape {shape}."
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

    def _default_names(self, n_columns: int) -> list[str]:
        if self.single:
            return [self.name]
        return [f"{self.name}{i}" for i in range(n_columns)]


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
                f"out={str(path)!r} is the file that the rows are read from, which "
                "would be lost. Choose another name."
            )


def _refuse_existing(path: Path) -> None:
    """What is there is not lost by a name that is used twice."""
    if os.path.lexists(path):
        raise FileExistsError(
            f"out={str(path)!r} exists already. Choose another name, or replace it: "
            f"out=nystrom.sources.Overwrite({str(path)!r})."
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
    is_zarr = any(
        (path / name).exists() for name in ("zarr.json", ".zarray", ".zgroup")
    )
    if path.is_dir() and not (suffix == ".zarr" and is_zarr):
        raise FileExistsError(
            f"out={str(path)!r} is a folder that is no Zarr array; it is not "
            "overwritten. Choose another name."
        )
