"""Arrays in `.npy`, HDF5 and Zarr files.

`.npy` rows are read at their offset and never memory-mapped: a truncated file is an
error instead of a crash. HDF5 and Zarr hold a matrix and one-column arrays of the
same length.
"""

from __future__ import annotations

import uuid
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .._digest import digest
from .._validation import import_optional
from .base import Source
from .tabular import (
    ChunkedFileRows,
    ColumnNames,
    FileError,
    TabularFile,
    as_float_rows,
    check_finite_rows,
    file_stamp,
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

    def __init__(self, path: str, flat: bool = False, filesystem: Any = None) -> None:
        self.path, self.filesystem = path, filesystem
        self.stamp = file_stamp(path, filesystem)
        with wrap_decoding_errors(self), self.open() as file:
            version = np.lib.format.read_magic(file)
            if version == (1, 0):
                header = np.lib.format.read_array_header_1_0(file)
            else:
                header = np.lib.format.read_array_header_2_0(file)
            shape, self.is_fortran_ordered, self._stored_dtype = header
            self.begin = file.tell()
        if flat and len(shape) == 1:
            shape, self.is_fortran_ordered = (*shape, 1), False
        if len(shape) != 2:
            raise FileError(
                f"{path} holds an array of shape {shape}; it must be two-dimensional, "
                "as after array.reshape(-1, 1)."
            )
        n_rows, width = shape
        self.names = tuple(range(width))
        self.is_row_major = not self.is_fortran_ordered
        self.bounds = regular_chunk_bounds(n_rows, 1, width)
        needed = self.begin + n_rows * width * self._stored_dtype.itemsize
        size = self.stamp[0]
        if size < needed:
            raise truncated_file_error(path, (size - self.begin) * n_rows // needed)

    def open(self) -> Any:
        """The file."""
        if self.filesystem is not None:
            return self.filesystem.open_input_file(self.path)
        return open(self.path, "rb")

    def dtype(self, names: ColumnNames) -> np.dtype:
        if self._stored_dtype.kind not in "biuf":
            raise not_numeric_error(self.path, names[0], self._stored_dtype)
        return self._stored_dtype

    def holds_classes(self, name: Any) -> bool:
        kind = self._stored_dtype.kind
        return kind == "b" or (kind == "U" and len(self.names) == 1)

    def read_text(self, chunk: int, name: Any) -> np.ndarray:
        return self.read(chunk, (name,))[:, 0].astype(str)

    def read(self, chunk: int, names: ColumnNames) -> np.ndarray:
        start, stop = map(int, self.bounds[chunk : chunk + 2])
        with self.open() as file:
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
        kind = ChunkedFileRows if self.is_fortran_ordered else NpyRows
        return kind(self, names)

    def _fill(self, file: Any, first: int, out: np.ndarray) -> None:
        """Read values one after the other, from the first so many on."""
        file.seek(self.begin + first * self._stored_dtype.itemsize)
        n_read = file.readinto(out.reshape(-1).view(np.uint8).data)
        if n_read < out.nbytes:
            row = (first + n_read // out.itemsize) // max(1, len(self.names))
            raise truncated_file_error(self.path, row)


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
        with wrap_decoding_errors(self.file, 0), self.file.open() as file:
            for wanted in spans if len(rows) else ():
                begin, end = int(wanted[0]), int(wanted[-1]) + 1
                span = self.file.read_rows(file, begin, end)[wanted - begin]
                taken[first : first + len(wanted)] = span[:, self.names]
                first += len(wanted)
        X = as_float_rows(taken)
        check_finite_rows(X, self.file.path, self.names, rows)
        return X[inverse]


class ArrayContainerFile(TabularFile):
    """The columns of one matrix of a file, and the other arrays beside it."""

    is_row_major = True

    def _read_shapes(self, dataset: str | None) -> None:
        """Find the matrix: the one that is named, or the only one there is."""
        with self.opened() as arrays:
            self.dataset = self._find_matrix(arrays, dataset)
            matrix = arrays[self.dataset]
            n_rows, width = matrix.shape
            self._dtypes = {
                name: np.dtype(array.dtype)
                for name, array in arrays.items()
                if name == self.dataset or array.shape in ((n_rows,), (n_rows, 1))
            }
            chunk_rows = (getattr(matrix, "shards", None) or matrix.chunks or (1,))[0]
        self.options, self.names = self.dataset, tuple(range(width))
        self.other_names = tuple(n for n in self._dtypes if n != self.dataset)
        self.bounds = regular_chunk_bounds(n_rows, chunk_rows, width)

    @abstractmethod
    @contextmanager
    def opened(self) -> Iterator[dict[str, Any]]:
        """The arrays of the file by their names, while it is open."""
        yield {}

    def dtype(self, names: ColumnNames) -> np.dtype:
        dtypes = []
        for name in names:
            array = name if isinstance(name, str) else self.dataset
            dtypes.append(self._dtypes[array])
            if dtypes[-1].kind not in "biuf":
                raise not_numeric_error(self.path, name, dtypes[-1])
        return np.result_type(*dtypes)

    def read(self, chunk: int, names: ColumnNames) -> np.ndarray:
        rows = slice(*map(int, self.bounds[chunk : chunk + 2]))
        in_matrix = [name for name in names if name in self.names]
        columns: dict[Any, np.ndarray] = {}
        with self.opened() as arrays:
            if in_matrix:
                first, last = min(in_matrix), max(in_matrix) + 1
                block = arrays[self.dataset][rows, first:last]
                if tuple(range(first, last)) == names:
                    return block
                columns = {name: block[:, name - first] for name in in_matrix}
            for name in set(names) - set(in_matrix):
                columns[name] = arrays[name][rows].reshape(-1)
        return np.stack([columns[name] for name in names], axis=1)

    def _find_matrix(self, arrays: dict[str, Any], dataset: str | None) -> str:
        matrices = [name for name, array in arrays.items() if len(array.shape) == 2]
        if dataset is not None:
            matrices = [name for name in matrices if name == dataset.strip("/")]
        elif len(matrices) > 1:  # (n, 1) targets are none
            matrices = [name for name in matrices if arrays[name].shape[1] > 1]
        if len(matrices) == 1:
            return matrices[0]
        listed = ", ".join(f"{n!r} {tuple(a.shape)}" for n, a in arrays.items())
        raise FileError(
            f"{self.path}: dataset={dataset!r} is not a matrix; the file has "
            f"{listed or 'no arrays'}. Set dataset= to a two-dimensional array."
        )


class Hdf5File(ArrayContainerFile):
    """The columns of a matrix in an HDF5 file, on a local disk or in a store."""

    def __init__(
        self, path: str, dataset: str | None = None, filesystem: Any = None
    ) -> None:
        self.path, self.filesystem = path, filesystem
        self.stamp = file_stamp(path, filesystem)
        self._read_shapes(dataset)

    @contextmanager
    def opened(self) -> Iterator[dict[str, Any]]:
        h5py = import_optional("h5py", "hdf5", "Reading HDF5 files")
        datasets: dict[str, Any] = {}

        def collect(name: str, thing: Any) -> None:
            if isinstance(thing, h5py.Dataset) and thing.shape is not None:
                datasets[name] = thing

        with ExitStack() as stack:
            with wrap_decoding_errors(self):
                stored: Any = self.path
                if self.filesystem is not None:
                    stored = self.filesystem.open_input_file(self.path)
                    stack.enter_context(stored)
                file = stack.enter_context(h5py.File(stored, "r"))
                file.visititems(collect)
            yield datasets


METADATA_FILES = ("zarr.json", ".zarray", ".zgroup")


class ZarrFile(ArrayContainerFile):
    """The columns of a matrix in a Zarr group, or of a Zarr array, in any store.

    It is known by the sizes and times of all files of a folder, and by its first and
    last rows in another store. Changes are not noticed before it is opened again.

    Parameters
    ----------
    path : str
        The folder, or what an open group or array is called.
    dataset : str or None
        Which array; None where there is but one.
    root : zarr.Group, zarr.Array or None
        What is open already, where that is no folder on the local disk.
    """

    def __init__(self, path: str, dataset: str | None = None, root: Any = None) -> None:
        self.path, self.root = path, root
        if root is None:
            self.stamp = self._folder_stamp()
        else:
            self.token = uuid.uuid4().hex  # it may be written to
            with self.opened() as arrays:
                ends = {
                    n: (a.shape, a[:1], a[-1:]) for n, a in arrays.items() if a.shape
                }
            self.stamp = digest(ends)
        self._read_shapes(dataset)

    def _folder_stamp(self) -> str:
        files = sorted(file for file in Path(self.path).rglob("*") if file.is_file())
        if not {file.name for file in files} & set(METADATA_FILES):
            raise FileError(f"{self.path} cannot be read: it is not a Zarr array.")
        return digest([(str(file), *file_stamp(str(file))) for file in files])

    def check_unchanged(self, after_error: bool = False) -> None:
        if after_error and self.root is None and self._folder_stamp() != self.stamp:
            raise FileError(
                f"{self.path} was written to since it was opened. Open it again once "
                "it is complete."
            )

    @contextmanager
    def opened(self) -> Iterator[dict[str, Any]]:
        zarr = import_optional("zarr", "zarr", "Reading Zarr arrays")
        with wrap_decoding_errors(self):
            root = zarr.open(self.path, mode="r") if self.root is None else self.root
            if isinstance(root, zarr.Array):
                arrays = {"the array": root}
            else:
                members = root.members(max_depth=None)
                arrays = {name: a for name, a in members if isinstance(a, zarr.Array)}
        yield arrays
