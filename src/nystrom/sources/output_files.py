"""Files of rows, written atomically: under a temporary name beside the target, moved
there once complete.
"""

from __future__ import annotations

import io
import os
import secrets
import shutil
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import _arrays as arrays
from .._validation import import_optional


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The path of a file, or a folder, to write in place of another one.

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
    >>> from nystrom.sources.output_files import atomic_write
    >>> place = Path(tempfile.mkdtemp()) / "page.html"
    >>> with atomic_write(place) as beside:
    ...     _ = beside.write_text("<p>all of it</p>")
    >>> [file.name for file in place.parent.iterdir()]
    ['page.html']
    """
    target = Path(os.path.realpath(path))
    temporary = temporary_path(target)
    try:
        yield temporary
        move_into_place(temporary, target)
    finally:
        remove_temporary(temporary)


def temporary_path(path: Path) -> Path:
    """A name in the same folder that nothing has, and that no listing shows."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")


def move_into_place(temporary: Path, target: Path) -> None:
    """Put a file, or a folder, in its place once it is on the disk."""
    for file in [temporary] if temporary.is_file() else temporary.rglob("*"):
        if file.is_file():
            with file.open("rb+") as opened:
                os.fsync(opened.fileno())
    if target.is_dir():  # no system call replaces a folder that has something in it
        previous = target.with_name(f".{target.name}.{secrets.token_hex(4)}.old")
        os.replace(target, previous)
        try:
            os.replace(temporary, target)
        except BaseException:
            os.replace(previous, target)
            raise
        shutil.rmtree(previous, ignore_errors=True)
    else:
        os.replace(temporary, target)
    if os.name == "posix":  # the name, too, is on the disk then
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def remove_temporary(temporary: Path) -> None:
    """Throw away what was written and not moved."""
    if temporary.is_dir():
        shutil.rmtree(temporary, ignore_errors=True)
    else:
        temporary.unlink(missing_ok=True)


@dataclass(frozen=True)
class OutputLayout:
    """What is written: so many rows, their columns and dtype."""

    n_rows: int
    names: tuple[str, ...]
    dtype: np.dtype
    single: bool = False  # one number per row, not a list of one

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of all rows together."""
        return (self.n_rows,) if self.single else (self.n_rows, len(self.names))


class AtomicFileSink(ABC):
    """Is written beside its place, under another name, and moved there at the end.

    A reader finds all rows, or what was there before.
    """

    process_safe = False

    def __init__(self, path: Path, layout: OutputLayout) -> None:
        self.path, self.layout = path, layout
        self._temporary_path = temporary_path(path)

    @property
    def result(self) -> Path:
        """What the caller gets."""
        return self.path

    def open(self) -> None:
        """Begin the file beside its place."""
        try:
            self._begin()
        except BaseException:
            self.close(False)
            raise

    @abstractmethod
    def put(self, start: int, rows: Any) -> None:
        """Keep `rows` as rows `start`, `start + 1`, …"""

    def close(self, complete: bool) -> None:
        """Move the file to its place, or throw it away."""
        try:
            if complete:
                self._end(complete)
                move_into_place(self._temporary_path, self.path)
        finally:
            try:
                with suppress(Exception):  # what went wrong before is what matters
                    self._end(False)
            finally:  # Ctrl-C, too
                remove_temporary(self._temporary_path)

    @abstractmethod
    def _begin(self) -> None:
        """Make the file."""

    @abstractmethod
    def _end(self, complete: bool) -> None:
        """Write the rest, if it is to be complete, and let go of the file."""


#: Numbers that are written at a time, and rows at most.
GROUP_VALUES, MAX_GROUP_ROWS = 2**22, 2**18


class OrderedFileSink(AtomicFileSink):
    """A file that takes rows in groups of one size, one group after the other.

    What arrives early waits: an engine is never far ahead of the first row missing.
    """

    def __init__(self, path: Path, layout: OutputLayout) -> None:
        super().__init__(path, layout)
        self.group = max(
            1, min(MAX_GROUP_ROWS, GROUP_VALUES // max(1, len(layout.names)))
        )
        self._lock = threading.Lock()
        self._out_of_order: dict[int, np.ndarray] = {}
        self._buffered: list[np.ndarray] = []
        self._next = self._n_written = 0

    def put(self, start: int, rows: Any) -> None:
        rows = arrays.to_host(rows)
        rows = rows.reshape(len(rows), -1).astype(self.layout.dtype, copy=False)
        with self._lock:
            self._out_of_order[start] = rows
            while self._next in self._out_of_order:
                next_rows = self._out_of_order.pop(self._next)
                self._buffered.append(next_rows)
                self._next += len(next_rows)
                if self._next - self._n_written >= self.group:
                    self._write_groups(self.group)

    def _end(self, complete: bool) -> None:
        if complete:
            self._write_groups(1)
            if self._n_written != self.layout.n_rows:
                raise RuntimeError(
                    f"{self.path}: {self._n_written} of {self.layout.n_rows} rows came."
                )
        self._buffered, self._out_of_order = [], {}
        self._finish(complete)

    def _write_groups(self, min_rows: int) -> None:
        """Write what waits, group by group, until there are fewer rows than `least`."""
        rows = np.concatenate(self._buffered) if self._buffered else np.empty((0, 1))
        while len(rows) >= min_rows:
            group_rows, rows = rows[: self.group], rows[self.group :]
            self._write(self._n_written, group_rows)
            self._n_written += len(group_rows)
        self._buffered = [rows] if len(rows) else []

    @abstractmethod
    def _write(self, start: int, rows: np.ndarray) -> None:
        """Write the next rows, (rows, columns)."""

    @abstractmethod
    def _finish(self, complete: bool) -> None:
        """Let go of the file."""


class NpySink(AtomicFileSink):
    """One array in a file."""

    process_safe = True

    def __init__(self, path: Path, layout: OutputLayout) -> None:
        super().__init__(path, layout)
        buffer = io.BytesIO()
        header = {
            "descr": np.lib.format.dtype_to_descr(layout.dtype),
            "fortran_order": False,
            "shape": layout.shape,
        }
        np.lib.format.write_array_header_1_0(buffer, header)
        self._header = buffer.getvalue()
        self._owner_pid = os.getpid()
        self._file: Any = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_file": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    def _begin(self) -> None:
        # In another process it is there already; if not, the pass is over.
        creates_file = (
            os.getpid() == self._owner_pid and not self._temporary_path.exists()
        )
        self._file = self._temporary_path.open(
            "xb+" if creates_file else "rb+", buffering=0
        )
        if creates_file:
            self._write(0, self._header)
            self._file.truncate(
                len(self._header) + self._row_bytes * self.layout.n_rows
            )

    @property
    def _row_bytes(self) -> int:
        """The bytes of a row."""
        return self.layout.dtype.itemsize * len(self.layout.names)

    def put(self, start: int, rows: Any) -> None:
        values = np.ascontiguousarray(arrays.to_host(rows), dtype=self.layout.dtype)
        self._write(len(self._header) + start * self._row_bytes, values.data.cast("B"))

    def _write(self, offset: int, data: Any) -> None:
        with self._lock:
            self._file.seek(offset)
            n_written = 0
            while n_written < len(data):
                n_written += self._file.write(data[n_written:])

    def _end(self, complete: bool) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class ParquetSink(OrderedFileSink):
    """A table with a column of numbers for each column of the rows."""

    def __init__(self, path: Path, layout: OutputLayout) -> None:
        super().__init__(path, layout)
        self._arrow = import_optional("pyarrow", "io", "Writing Parquet files")
        self._parquet = import_optional(
            "pyarrow.parquet", "io", "Writing Parquet files"
        )
        self._writer: Any = None

    def _begin(self) -> None:
        kind = self._arrow.from_numpy_dtype(self.layout.dtype)
        self._schema = self._arrow.schema([(name, kind) for name in self.layout.names])
        self._writer = self._parquet.ParquetWriter(self._temporary_path, self._schema)

    def _write(self, start: int, rows: np.ndarray) -> None:
        columns = [np.ascontiguousarray(rows[:, j]) for j in range(rows.shape[1])]
        table = self._arrow.table(columns, schema=self._schema)
        self._writer.write_table(table, row_group_size=max(1, len(rows)))

    def _finish(self, complete: bool) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()


class ZarrSink(OrderedFileSink):
    """One array in a folder."""

    def __init__(self, path: Path, layout: OutputLayout) -> None:
        super().__init__(path, layout)
        self._zarr = import_optional("zarr", "zarr", "Writing Zarr arrays")
        self._array: Any = None

    def _begin(self) -> None:
        shape = self.layout.shape
        self._array = self._zarr.create_array(
            str(self._temporary_path),
            shape=shape,
            chunks=(min(self.group, shape[0]), *shape[1:]),
            dtype=self.layout.dtype,
        )

    def _write(self, start: int, rows: np.ndarray) -> None:
        shape = (len(rows), *self.layout.shape[1:])
        self._array[start : start + len(rows)] = rows.reshape(shape)

    def _finish(self, complete: bool) -> None:
        self._array = None
