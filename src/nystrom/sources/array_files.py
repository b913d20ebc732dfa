"""Arrays in `.npy`, HDF5 and Zarr files.

`.npy` rows are read at their offset and never memory-mapped: a truncated file is an
error instead of a crash. HDF5 and Zarr hold a matrix and one-column arrays of the
same length.
"""

from __future__ import annotations

import os
import uuid
from abc import abstractmethod
from collections.abc import Hashable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from typing import Any

import numpy as np

from .._digest import digest
from .._validation import import_optional
from .base import Source
from .tabular import (
    ChunkedFileRows,
    ColumnNames,
    FileError,
    FolderStamp,
    TabularFile,
    as_float_rows,
    check_finite_rows,
    not_numeric_error,
    regular_chunk_bounds,
    truncated_file_error,
    wrap_decoding_errors,
)

#: Rows that are wanted are read together with those between them up to so many bytes,
#: and so many at a time.
MAX_GAP_BYTES, MAX_SPAN_BYTES = 2**13, 2**23


class NpyFile(TabularFile):
    """The columns of a two-dimensional array, on a local disk or in a store."""

    filesystem: Any
    is_row_major: bool
    is_fortran_ordered: bool
    begin: int
    names: ColumnNames
    bounds: np.ndarray

    def __init__(
        self, path: str, allow_1d: bool = False, filesystem: Any = None
    ) -> None:
        self.filesystem = filesystem
        super().__init__(path)
        with wrap_decoding_errors(self, 0), self._open() as file:
            version = np.lib.format.read_magic(file)
            if version == (1, 0):
                header = np.lib.format.read_array_header_1_0(file)
            else:
                header = np.lib.format.read_array_header_2_0(file)
            shape, self.is_fortran_ordered, self._stored_dtype = header
            self.begin = file.tell()
        if allow_1d and len(shape) == 1:
            shape, self.is_fortran_ordered = (*shape, 1), False
        if len(shape) != 2:
            raise FileError(
                f"{path} holds an array of shape {shape}; rows are two-dimensional, "
                "array.reshape(-1, 1) makes them so."
            )
        n_rows, width = shape
        self.names = tuple(range(width))
        self.is_row_major = not self.is_fortran_ordered
        self.bounds = regular_chunk_bounds(n_rows, 1, width)
        needed = self.begin + n_rows * width * self._stored_dtype.itemsize
        if self.stamp.size < needed:
            raise truncated_file_error(
                path, (self.stamp.size - self.begin) * n_rows // needed
            )

    def _open(self) -> Any:
        if self.filesystem is not None:
            return self.filesystem.open_input_file(self.path)
        return open(self.path, "rb", buffering=0)

    def dtype(self, names: ColumnNames) -> np.dtype:
        if self._stored_dtype.kind not in "biuf":
            raise not_numeric_error(self.path, names[0], self._stored_dtype)
        return self._stored_dtype

    def holds_text(self, name: Any) -> bool:
        return self._stored_dtype.kind == "U" and len(self.names) == 1

    def holds_booleans(self, name: Any) -> bool:
        return self._stored_dtype.kind == "b"

    def read_text(self, chunk: int, name: Any) -> np.ndarray:
        return self.read(chunk, (name,))[:, 0]

    def read(self, chunk: int, names: ColumnNames) -> np.ndarray:
        start, stop = map(int, self.bounds[chunk : chunk + 2])
        with self._open() as file:
            if not self.is_fortran_ordered:
                return self.read_rows(file, start, stop)[:, names]
            columns = np.empty((len(names), stop - start), self._stored_dtype)
            for column, name in zip(columns, names, strict=True):
                self._fill(file, name * self.n_rows + start, column)
            return columns.T

    def read_rows(self, file: Any, start: int, stop: int) -> np.ndarray:
        """Whole rows, where they lie one after the other."""
        width = len(self.names)
        rows = np.empty((stop - start, width), self._stored_dtype)
        self._fill(file, start * width, rows)
        return rows

    def source(self, names: ColumnNames) -> Source:
        return (
            super().source(names) if self.is_fortran_ordered else NpyRows(self, names)
        )

    def _fill(self, file: Any, first: int, out: np.ndarray) -> None:
        """Read values one after the other, from the first so many on."""
        file.seek(self.begin + first * self._stored_dtype.itemsize)
        buffer, n_filled = out.reshape(-1).view(np.uint8).data, 0
        while n_filled < len(buffer):
            n_read = file.readinto(buffer[n_filled:])
            if not n_read:
                row = (first + n_filled // out.itemsize) // max(1, len(self.names))
                raise truncated_file_error(self.path, row)
            n_filled += n_read


class NpyRows(ChunkedFileRows):
    """Columns of a `.npy` file in C order, of which few rows can be read alone."""

    file: NpyFile

    def _take(self, indices: np.ndarray) -> np.ndarray:
        self.file.check_unchanged()
        rows, inverse = np.unique(indices, return_inverse=True)
        taken = np.empty((len(rows), len(self.names)), self.file.dtype(self.names))
        row_bytes = max(1, len(self.file.names) * taken.itemsize)
        is_near = np.diff(rows) * row_bytes <= MAX_GAP_BYTES + row_bytes
        is_same_span = np.diff(rows * row_bytes // MAX_SPAN_BYTES) == 0
        spans = np.split(rows, np.flatnonzero(~(is_near & is_same_span)) + 1)
        first = 0
        with wrap_decoding_errors(self.file, 0), self.file._open() as file:
            for wanted in spans if len(rows) else ():
                begin, end = int(wanted[0]), int(wanted[-1]) + 1
                span = self.file.read_rows(file, begin, end)[wanted - begin]
                taken[first : first + len(wanted)] = span[:, self.names]
                first += len(wanted)
        X = as_float_rows(taken)
        check_finite_rows(X, self.file.path, self.names, rows)
        return X[inverse]


class ArrayContainerFile(TabularFile):
    """The columns of one matrix of a file, and the other arrays beside it.

    Parameters
    ----------
    path : str
        The file, or what an open one is called.
    dataset : str or None
        Which array; None where there is but one.
    root : file, group or array
        What the library has opened, where that is not a path on the local disk.
    filesystem : pyarrow.fs.FileSystem or None
        Where the path is; None: on the local disk.
    """

    is_row_major = True

    def __init__(
        self,
        path: str,
        dataset: str | None,
        root: Any = None,
        filesystem: Any = None,
    ) -> None:
        self.root, self.filesystem = root, filesystem
        self.token = "" if root is None else uuid.uuid4().hex
        super().__init__(path)
        with self.opened() as arrays:
            self.dataset = self._chosen(arrays, dataset)
            matrix = arrays[self.dataset]
            n_rows, width = matrix.shape
            self._dtypes = {
                name: np.dtype(array.dtype)
                for name, array in arrays.items()
                if name == self.dataset or array.shape in ((n_rows,), (n_rows, 1))
            }
            chunk_rows = (getattr(matrix, "shards", None) or matrix.chunks or (1,))[0]
        self.names = tuple(range(width))
        self.bounds = regular_chunk_bounds(n_rows, chunk_rows, width)

    def _read_stamp(self) -> Any:
        """Of what has no time of its last change, the first and the last rows."""
        if self.root is None:
            return super()._read_stamp()
        with self.opened() as arrays:
            ends = {n: (a.shape, a[:1], a[-1:]) for n, a in arrays.items() if a.shape}
        return digest(ends)

    @abstractmethod
    @contextmanager
    def opened(self) -> Iterator[dict[str, Any]]:
        """The arrays of the file by their names, while it is open."""
        yield {}

    @property
    def options(self) -> Hashable:
        return self.dataset

    def unknown_column_hint(self, name: Any) -> str:
        others = [repr(other) for other in self._dtypes if other != self.dataset]
        hint = super().unknown_column_hint(name)
        if not others:
            return hint
        return f"{hint[:-1]}, or the name of another array: {', '.join(others)}."

    def has_column(self, name: Any) -> bool:
        is_array_name = isinstance(name, str) and name in self._dtypes
        return name in self.names or (is_array_name and name != self.dataset)

    def dtype(self, names: ColumnNames) -> np.dtype:
        dtypes = {name: self._dtypes[self._array_name(name)] for name in names}
        for name, dtype in dtypes.items():
            if dtype.kind not in "biuf":
                raise not_numeric_error(self.path, name, dtype)
        return np.result_type(*dtypes.values())

    def read(self, chunk: int, names: ColumnNames) -> np.ndarray:
        start, stop = map(int, self.bounds[chunk : chunk + 2])
        matrix_columns = [name for name in names if name in self.names]
        columns: dict[Any, np.ndarray] = {}
        with self.opened() as arrays:
            if matrix_columns:
                first, last = min(matrix_columns), max(matrix_columns) + 1
                block = arrays[self.dataset][start:stop, first:last]
                if tuple(range(first, last)) == names:
                    self._check_chunks(arrays, names, start, stop)
                    return block
                columns = {name: block[:, name - first] for name in matrix_columns}
            for name in set(names) - set(matrix_columns):
                columns[name] = arrays[name][start:stop].reshape(-1)
            self._check_chunks(arrays, names, start, stop)
        return np.stack([columns[name] for name in names], axis=1)

    def _check_chunks(
        self, arrays: dict[str, Any], names: ColumnNames, start: int, stop: int
    ) -> None:
        """After rows were read: refuse what has changed, where chunks are files."""

    def _array_name(self, name: Any) -> str:
        return name if isinstance(name, str) else self.dataset

    def _chosen(self, arrays: dict[str, Any], dataset: str | None) -> str:
        """The matrix: the one that is named, or the only one there is."""
        matrices = [name for name, array in arrays.items() if len(array.shape) == 2]
        if dataset is not None:
            dataset = dataset.strip("/")
        if dataset in matrices:
            return dataset  # type: ignore[return-value]
        listed = ", ".join(f"{n!r} {tuple(a.shape)}" for n, a in arrays.items())
        if dataset is None and len(matrices) > 1:  # (n, 1) targets are none
            matrices = [name for name in matrices if arrays[name].shape[1] > 1]
        if dataset is None and len(matrices) == 1:
            return matrices[0]
        raise FileError(
            f"{self.path}: dataset={dataset!r} names no matrix of rows; there are "
            f"{listed or 'no arrays'}. Give dataset= one of two dimensions."
        )


class Hdf5File(ArrayContainerFile):
    """The columns of a matrix in an HDF5 file."""

    @contextmanager
    def opened(self) -> Iterator[dict[str, Any]]:
        h5py = import_optional("h5py", "hdf5", "Reading HDF5 files")
        datasets: dict[str, Any] = {}

        def collect(name: str, thing: Any) -> None:
            if isinstance(thing, h5py.Dataset) and thing.shape is not None:
                datasets[name] = thing

        with ExitStack() as stack:
            file = self.root
            with wrap_decoding_errors(self, 0):
                if self.filesystem is not None:
                    stream = self.filesystem.open_input_file(self.path)
                    file = h5py.File(stack.enter_context(stream), "r")
                elif file is None:
                    file = h5py.File(self.path, "r")
            if self.root is None:
                stack.enter_context(file)
            file.visititems(collect)
            yield datasets


METADATA_FILES = ("zarr.json", ".zarray", ".zgroup")
#: What an array without a name is called.
ROOT_ARRAY = "the array"


class ZarrFile(ArrayContainerFile):
    """The columns of a matrix in a Zarr group, or of a Zarr array, in any store.

    Of a folder on the local disk, a chunk that changes is noticed.
    """

    stamp: Any

    def _read_stamp(self) -> Any:
        if self.root is not None:
            return super()._read_stamp()
        return FolderStamp.of(self._metadata and self.path)

    @property
    def _metadata(self) -> str:
        for name in METADATA_FILES:
            if os.path.exists(os.path.join(self.path, name)):
                return os.path.join(self.path, name)
        is_missing = not os.path.isdir(self.path)
        reason = (
            "cannot be read: No such folder"
            if is_missing
            else f"has no {METADATA_FILES[0]}"
        )
        raise FileError(f"{self.path} {reason}, and so is no Zarr array.")

    def check_unchanged(self) -> None:
        if self.root is None:
            self.stamp.check_file(self._metadata)

    def check_after_error(self) -> None:
        if self.root is None and hasattr(self, "stamp"):
            self.stamp.check(self.path)

    def _check_chunks(
        self, arrays: dict[str, Any], names: ColumnNames, start: int, stop: int
    ) -> None:
        if self.root is not None:
            return
        for array_name in {self._array_name(name) for name in names}:
            zarr_array = arrays[array_name]
            folder = os.path.normpath(os.path.join(self.path, zarr_array.path))
            self.stamp.check_files(folder, chunk_files(zarr_array, start, stop))

    @contextmanager
    def opened(self) -> Iterator[dict[str, Any]]:
        zarr = import_optional("zarr", "zarr", "Reading Zarr arrays")
        with wrap_decoding_errors(self, 0):
            root = zarr.open(self.path, mode="r") if self.root is None else self.root
            if isinstance(root, zarr.Array):
                arrays = {ROOT_ARRAY: root}
            else:
                members = root.members(max_depth=None)
                arrays = {name: a for name, a in members if isinstance(a, zarr.Array)}
        yield arrays


def chunk_files(array: Any, start: int, stop: int) -> Iterator[str]:
    """The files with rows start to stop of an array, by their names in its folder."""
    steps = getattr(array, "shards", None) or array.chunks
    rows = range(start // steps[0], -(-stop // steps[0]))
    others = (
        range(-(-size // step))
        for size, step in zip(array.shape[1:], steps[1:], strict=True)
    )
    for coordinates in product(rows, *others):
        yield os.path.join(*array.metadata.encode_chunk_key(coordinates).split("/"))
