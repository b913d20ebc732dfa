"""Columns of Arrow tables as rows of numbers: for Parquet, CSV and Arrow files."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from ..optional import library
from .file_errors import missing, no_numbers
from .stored import Names, Stored

#: Rows that columns are turned into at a time, so that they stay in the cache.
TURNED_ROWS = 4096


def numpy_dtype(path: str, name: Any, kind: Any) -> np.dtype:
    """NumPy's dtype for an Arrow type, which must be of numbers."""
    types = library("pyarrow", "io", "Reading Arrow tables").types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return np.dtype(kind.to_pandas_dtype())
    raise no_numbers(path, name, kind)


def as_matrix(path: str, table: Any, names: Names, first_row: int) -> np.ndarray:
    """(rows, columns): the columns of a table, none of whose values may be missing."""
    columns = []
    for name in names:
        column = table.column(name)
        numpy_dtype(path, name, column.type)
        if column.null_count:
            row = column.is_null().to_numpy(zero_copy_only=False).argmax()
            raise missing(path, name, first_row + int(row))
        columns.append(column.to_numpy())
    dtype = np.result_type(*columns) if columns else np.float64
    out = np.empty((table.num_rows, len(columns)), dtype)
    for start in range(0, len(out), TURNED_ROWS):
        part = slice(start, start + TURNED_ROWS)
        for place, column in enumerate(columns):
            out[part, place] = column[part]
    return out


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is of text, in a dictionary or not."""
    types = library("pyarrow", "io", "Reading Arrow tables").types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return types.is_string(kind) or types.is_large_string(kind)


def as_texts(path: str, table: Any, name: Any, first_row: int) -> np.ndarray:
    """A column of text, none of whose values may be missing."""
    column = table.column(name)
    if column.null_count:
        row = column.is_null().to_numpy(zero_copy_only=False).argmax()
        raise missing(path, name, first_row + int(row))
    return np.array(column.to_pylist(), dtype=np.str_)


class Schema:
    """Names and types of the columns of a table."""

    def __init__(self, path: str, schema: Any) -> None:
        self.path = path
        self.names = tuple(schema.names)
        self.kinds = dict(zip(schema.names, map(str, schema.types), strict=True))
        self.texts = frozenset(
            name
            for name, kind in zip(schema.names, schema.types, strict=True)
            if is_text(kind)
        )
        self._dtypes: dict[Any, np.dtype | None] = {}
        for name, kind in zip(schema.names, schema.types, strict=True):
            try:
                self._dtypes[name] = numpy_dtype(path, name, kind)
            except ValueError:
                self._dtypes[name] = None

    def dtype(self, names: Names) -> np.dtype:
        """The common dtype of some columns."""
        for name in names:
            if self._dtypes[name] is None:
                raise no_numbers(self.path, name, self.kinds[name])
        return np.result_type(*(self._dtypes[name] for name in names))  # type: ignore[arg-type]


class ArrowTables(Stored):
    """A file whose chunks are Arrow tables."""

    schema: Schema

    @abstractmethod
    def _table(self, chunk: int, names: Names) -> Any:
        """Some columns of a chunk."""

    def dtype(self, names: Names) -> np.dtype:
        return self.schema.dtype(names)

    def holds_text(self, name: Any) -> bool:
        return name in self.schema.texts

    def holds_truth(self, name: Any) -> bool:
        return self.schema.kinds.get(name) == "bool"

    def read(self, chunk: int, names: Names) -> np.ndarray:
        table = self._table(chunk, names)
        return as_matrix(self.path, table, names, int(self.bounds[chunk]))

    def read_text(self, chunk: int, name: Any) -> np.ndarray:
        table = self._table(chunk, (name,))
        return as_texts(self.path, table, name, int(self.bounds[chunk]))
