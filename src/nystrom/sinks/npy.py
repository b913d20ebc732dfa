"""`.npy` files: every row has its place, so that any process may write there."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np

from .. import _arrays as arrays
from .whole_file import Layout, WholeFile


class NpySink(WholeFile):
    """One array in a file."""

    anywhere = True

    def __init__(self, path: Path, layout: Layout) -> None:
        super().__init__(path, layout)
        begin = io.BytesIO()
        header = {
            "descr": np.lib.format.dtype_to_descr(layout.dtype),
            "fortran_order": False,
            "shape": layout.shape,
        }
        np.lib.format.write_array_header_1_0(begin, header)
        self._header = begin.getvalue()
        self._maker = os.getpid()
        self._file: Any = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_file": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    def _begin(self) -> None:
        # Elsewhere it is there already; if not, the pass is over and nobody reads it.
        made_here = os.getpid() == self._maker and not self._beside.exists()
        self._file = self._beside.open("xb+" if made_here else "rb+", buffering=0)
        if made_here:
            self._write(0, self._header)
            self._file.truncate(len(self._header) + self._row * self.layout.n_rows)

    @property
    def _row(self) -> int:
        """The bytes of a row."""
        return self.layout.dtype.itemsize * len(self.layout.names)

    def put(self, start: int, rows: Any) -> None:
        values = np.ascontiguousarray(arrays.to_host(rows), dtype=self.layout.dtype)
        self._write(len(self._header) + start * self._row, values.data.cast("B"))

    def _write(self, place: int, data: Any) -> None:
        with self._lock:
            self._file.seek(place)
            done = 0
            while done < len(data):
                done += self._file.write(data[done:])

    def _end(self, complete: bool) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
