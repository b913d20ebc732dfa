"""Arrow IPC files (`.arrow`, `.feather`), read by record batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..optional import library
from .arrow_columns import ArrowTables, Schema
from .file_errors import decoding
from .stored import Names, merged


class ArrowFile(ArrowTables):
    """The columns of one Arrow file, compressed or not."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        with decoding(path, self.stamp, path, 0):
            with self._opened(None) as file:
                self.schema, n = Schema(path, file.schema), file.num_record_batches
            self.names = self.schema.names
            # One column tells how many rows a batch has.
            with self._opened(self.names[:1]) as file:
                sizes = [file.get_batch(i).num_rows for i in range(n)]
        bounds = np.cumsum([0, *sizes])
        self.batches = merged(bounds, len(self.names))
        self.bounds = bounds[self.batches]

    def _table(self, chunk: int, names: Names) -> Any:
        first, last = map(int, self.batches[chunk : chunk + 2])
        with self._opened(names) as file:
            batches = [file.get_batch(i) for i in range(first, last)]
            return _arrow().Table.from_batches(batches, file.schema)

    @contextmanager
    def _opened(self, names: Names | None) -> Iterator[Any]:
        """The file, of which only some columns are read; by reading, not mapping."""
        ipc = library("pyarrow.ipc", "io", "Reading Arrow files")
        places = None if names is None else [self.names.index(n) for n in names]
        options = ipc.IpcReadOptions(included_fields=places)
        with (
            _arrow().OSFile(self.path) as file,
            ipc.open_file(file, options=options) as opened,
        ):
            yield opened


def _arrow() -> Any:
    return library("pyarrow", "io", "Reading Arrow files")
