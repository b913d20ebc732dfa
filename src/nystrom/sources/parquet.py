"""Parquet files, read by row groups; columns that are not asked for are not read."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ..optional import library
from .arrow_columns import ArrowTables, Schema
from .file_errors import Stamp, decoding
from .stored import Names, merged


class ParquetFile(ArrowTables):
    """The columns of one Parquet file."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        with decoding(path, self.stamp, path, 0):
            footer = _footer(path, self.stamp)
            self.schema = Schema(path, footer.schema.to_arrow_schema())
        self.names = self.schema.names
        sizes = [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]
        bounds = np.cumsum([0, *sizes])
        self.groups = merged(bounds, len(self.names))
        self.bounds = bounds[self.groups]

    def _table(self, chunk: int, names: Names) -> Any:
        groups = list(range(*map(int, self.groups[chunk : chunk + 2])))
        footer = _footer(self.path, self.stamp)
        with _parquet().ParquetFile(self.path, metadata=footer) as file:
            return file.read_row_groups(groups, columns=list(names))


def _parquet() -> Any:
    return library("pyarrow.parquet", "io", "Reading Parquet files")


@lru_cache(maxsize=64)
def _footer(path: str, stamp: Stamp) -> Any:
    """What stands at the end of the file; of many row groups it is long."""
    return _parquet().read_metadata(path)
