"""Zarr arrays in a folder, of version 2 or 3.

The stamp is that of the metadata: a chunk that is written later is not noticed, and one
that is missing holds the array's fill value, as Zarr has it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..optional import library
from .array_in_file import ArrayInFile
from .file_errors import FileError, decoding

METADATA = ("zarr.json", ".zarray", ".zgroup")
#: What an array without a name is called.
ALONE = "the array"


class ZarrFile(ArrayInFile):
    """The columns of a matrix in a Zarr group, or of a Zarr array."""

    @property
    def stamped(self) -> str:
        for name in METADATA:
            if os.path.exists(os.path.join(self.path, name)):
                return os.path.join(self.path, name)
        raise FileError(f"{self.path} is no Zarr array: it has no {METADATA[0]}.")

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
