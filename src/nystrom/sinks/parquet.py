"""Parquet files, written by row groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..optional import library
from .in_order import InOrder
from .whole_file import Layout


class ParquetSink(InOrder):
    """A table with a column of numbers for each column of the rows."""

    def __init__(self, path: Path, layout: Layout) -> None:
        super().__init__(path, layout)
        self._arrow = library("pyarrow", "io", "Writing Parquet files")
        self._parquet = library("pyarrow.parquet", "io", "Writing Parquet files")
        self._writer: Any = None

    def _begin(self) -> None:
        kind = self._arrow.from_numpy_dtype(self.layout.dtype)
        self._schema = self._arrow.schema([(name, kind) for name in self.layout.names])
        self._writer = self._parquet.ParquetWriter(self._beside, self._schema)

    def _write(self, start: int, rows: np.ndarray) -> None:
        columns = [np.ascontiguousarray(rows[:, j]) for j in range(rows.shape[1])]
        table = self._arrow.table(columns, schema=self._schema)
        self._writer.write_table(table, row_group_size=max(1, len(rows)))

    def _finish(self, complete: bool) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
