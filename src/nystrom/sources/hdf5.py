"""HDF5 files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..optional import library
from .array_in_file import ArrayInFile
from .file_errors import decoding


class Hdf5File(ArrayInFile):
    """The columns of a matrix in an HDF5 file."""

    @contextmanager
    def opened(self) -> Iterator[dict[str, Any]]:
        h5py = library("h5py", "hdf5", "Reading HDF5 files")
        found: dict[str, Any] = {}

        def see(name: str, thing: Any) -> None:
            if isinstance(thing, h5py.Dataset) and thing.shape is not None:
                found[name] = thing

        with decoding(self.path, self.stamp, self.path, 0):
            file = h5py.File(self.path, "r")
        with file:
            file.visititems(see)
            yield found
