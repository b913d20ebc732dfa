"""`.npy` files: rows are read where they are in the file, which is never mapped whole.

Reading beats mapping here: a file that was cut off is an error instead of a crash, and
the size of the data is no address space.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .file_errors import FileError, cut_off, decoding, no_numbers, refuse_not_finite
from .fingerprint import digest
from .source import Source
from .stored import Names, Stored, as_rows, regular_bounds

#: Rows that are wanted are read together with those between them up to so many bytes,
#: and so many at a time.
GAP_BYTES, SPAN_BYTES = 2**13, 2**23


class NpyFile(Stored):
    """The columns of a two-dimensional array."""

    by_column: bool
    begin: int
    names: Names
    bounds: np.ndarray

    def __init__(self, path: str, flat: bool = False) -> None:
        super().__init__(path)
        with decoding(path, self.stamp, path, 0), open(path, "rb") as file:
            version = np.lib.format.read_magic(file)
            if version == (1, 0):
                header = np.lib.format.read_array_header_1_0(file)
            else:
                header = np.lib.format.read_array_header_2_0(file)
            shape, self.by_column, self._stored_as = header
            self.begin = file.tell()
        if flat and len(shape) == 1:
            shape, self.by_column = (*shape, 1), False
        if len(shape) != 2:
            raise FileError(
                f"{path} holds an array of shape {shape}; rows are two-dimensional, "
                "array.reshape(-1, 1) makes them so."
            )
        n_rows, width = shape
        self.names = tuple(range(width))
        # Rows one after the other are found without.
        self.bounds = np.array([0, n_rows])
        if self.by_column or self._stored_as.kind == "U":
            self.bounds = regular_bounds(n_rows, 1, width)
        needed = self.begin + n_rows * width * self._stored_as.itemsize
        if self.stamp.size < needed:
            raise cut_off(path, (self.stamp.size - self.begin) * n_rows // needed)

    def dtype(self, names: Names) -> np.dtype:
        if self._stored_as.kind not in "biuf":
            raise no_numbers(self.path, names[0], self._stored_as)
        return self._stored_as

    def holds_text(self, name: Any) -> bool:
        return self._stored_as.kind == "U" and len(self.names) == 1

    def holds_truth(self, name: Any) -> bool:
        return self._stored_as.kind == "b"

    def read_text(self, chunk: int, name: Any) -> np.ndarray:
        start, stop = map(int, self.bounds[chunk : chunk + 2])
        texts = np.empty(stop - start, self._stored_as)
        with open(self.path, "rb", buffering=0) as file:
            self.fill(file, start, texts)
        return texts

    def source(self, names: Names) -> Source:
        return super().source(names) if self.by_column else NpyRows(self, names)

    def read(self, chunk: int, names: Names) -> np.ndarray:
        """Column by column, as they lie in a Fortran-ordered file."""
        start, stop = map(int, self.bounds[chunk : chunk + 2])
        values = np.empty((stop - start, len(names)), self._stored_as)
        column = np.empty(stop - start, self._stored_as)
        with open(self.path, "rb", buffering=0) as file:
            for place, name in enumerate(names):
                self.fill(file, name * self.n_rows + start, column)
                values[:, place] = column
        return values

    def fill(self, file: Any, first: int, out: np.ndarray) -> None:
        """Read values one after the other, from the first so many on."""
        file.seek(self.begin + first * self._stored_as.itemsize)
        room, done = out.reshape(-1).view(np.uint8).data, 0
        while done < len(room):
            read = file.readinto(room[done:])
            if not read:
                row = (first + done // out.itemsize) // max(1, len(self.names))
                raise cut_off(self.path, row)
            done += read


class NpyRows(Source):
    """Some columns of a `.npy` file whose rows lie one after the other."""

    at_hand = False  # many small reads take longer than reading all that is between
    stored: NpyFile
    names: Names
    n_rows: int
    n_features: int | None

    def __init__(self, stored: NpyFile, names: Names) -> None:
        self.stored, self.names = stored, names
        self.n_rows, self.n_features = stored.n_rows, len(names)
        self.files: tuple[str, ...] = (stored.path,)
        self._as_stored = stored.dtype(names)
        self._places: Any = list(names)
        if names and names == tuple(range(names[0], names[0] + len(names))):
            self._places = slice(names[0], names[0] + len(names))

    def rows(self, start: int, stop: int) -> np.ndarray:
        self.stored.stamp.check(self.stored.path)
        with open(self.stored.path, "rb", buffering=0) as file:
            return self._floats(self._read(file, start, stop), range(start, stop))

    def take(self, indices: np.ndarray) -> np.ndarray:
        self.stored.stamp.check(self.stored.path)
        wanted, back = np.unique(np.asarray(indices, np.int64), return_inverse=True)
        rows = np.empty((len(wanted), len(self.stored.names)), self._as_stored)
        with open(self.stored.path, "rb", buffering=0) as file:
            for first, last in self._spans(wanted):
                begin, end = int(wanted[first]), int(wanted[last - 1]) + 1
                between = self._read(file, begin, end)
                np.take(between, wanted[first:last] - begin, 0, out=rows[first:last])
        return self._floats(rows, wanted)[back]

    def fingerprint(self) -> str:
        return digest(self.stored.identity, self.names, self._given())

    def _spans(self, wanted: np.ndarray) -> Any:
        """(first, last): places of rows near each other, which are read in one go."""
        if not len(wanted):
            return
        row = max(1, len(self.stored.names) * self._as_stored.itemsize)
        near = np.diff(wanted) * row <= GAP_BYTES + row
        same_span = np.diff(wanted * row // SPAN_BYTES) == 0
        ends = np.flatnonzero(~(near & same_span)) + 1
        yield from zip([0, *ends.tolist()], [*ends.tolist(), len(wanted)], strict=True)

    def _read(self, file: Any, start: int, stop: int) -> np.ndarray:
        width = len(self.stored.names)
        rows = np.empty((max(0, stop - start), width), self._as_stored)
        self.stored.fill(file, start * width, rows)
        return rows

    def _floats(self, rows: np.ndarray, numbers: Any) -> np.ndarray:
        X = as_rows(rows[:, self._places])
        refuse_not_finite(X, self.stored.path, self.names, numbers)
        return X
