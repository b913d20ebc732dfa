"""Zarr arrays in a folder, of version 2 or 3.

The stamp is of all files in it. While rows are read, those of their chunks are looked
at. A chunk that was never written holds the array's fill value, as Zarr has it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

from ..optional import library
from .array_in_file import ArrayInFile
from .file_errors import FileError, decoding
from .folder_stamp import FolderStamp
from .stored import Names

METADATA = ("zarr.json", ".zarray", ".zgroup")
#: What an array without a name is called.
ALONE = "the array"


class ZarrFile(ArrayInFile):
    """The columns of a matrix in a Zarr group, or of a Zarr array."""

    stamp: FolderStamp

    def _stamp(self) -> FolderStamp:
        return FolderStamp.of(self._metadata and self.path)

    @property
    def _metadata(self) -> str:
        for name in METADATA:
            if os.path.exists(os.path.join(self.path, name)):
                return os.path.join(self.path, name)
        gone = not os.path.isdir(self.path)
        why = "cannot be read: No such folder" if gone else f"has no {METADATA[0]}"
        raise FileError(f"{self.path} {why}, and so is no Zarr array.")

    def _check_unchanged(self) -> None:
        self.stamp.check_file(self._metadata)

    def _check_chunks(
        self, arrays: dict[str, Any], names: Names, start: int, stop: int
    ) -> None:
        for array in {self._array_of(name) for name in names}:
            found = arrays[array]
            folder = os.path.join(self.path, found.path) if found.path else self.path
            self.stamp.check_files(folder, chunk_files(found, start, stop))

    @contextmanager
    def opened(self) -> Iterator[dict[str, Any]]:
        zarr = library("zarr", "zarr", "Reading Zarr arrays")
        with decoding(self.path, self.stamp, self.stamped, 0):
            root = zarr.open(self.path, mode="r")
            if isinstance(root, zarr.Array):
                found = {ALONE: root}
            else:
                members = root.members(max_depth=None)
                found = {name: a for name, a in members if isinstance(a, zarr.Array)}
        yield found


def chunk_files(array: Any, start: int, stop: int) -> Iterator[str]:
    """The files with rows start to stop of an array, by their names in its folder."""
    steps = getattr(array, "shards", None) or array.chunks
    rows = range(start // steps[0], -(-stop // steps[0]))
    others = (
        range(-(-size // step))
        for size, step in zip(array.shape[1:], steps[1:], strict=True)
    )
    for place in product(rows, *others):
        yield os.path.join(*array.metadata.encode_chunk_key(place).split("/"))
