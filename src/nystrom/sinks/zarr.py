"""Zarr arrays, written chunk by chunk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..optional import library
from .in_order import InOrder
from .whole_file import Layout


class ZarrSink(InOrder):
    """One array in a folder."""

    def __init__(self, path: Path, layout: Layout) -> None:
        super().__init__(path, layout)
        self._zarr = library("zarr", "zarr", "Writing Zarr arrays")
        self._array: Any = None

    def _begin(self) -> None:
        shape = self.layout.shape
        self._array = self._zarr.create_array(
            str(self._beside),
            shape=shape,
            chunks=(min(self.group, shape[0]), *shape[1:]),
            dtype=self.layout.dtype,
        )

    def _write(self, start: int, rows: np.ndarray) -> None:
        shape = (len(rows), *self.layout.shape[1:])
        self._array[start : start + len(rows)] = rows.reshape(shape)

    def _finish(self, complete: bool) -> None:
        self._array = None
