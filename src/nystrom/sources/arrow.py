"""Parquet and Arrow IPC files: columns of Arrow tables as float rows, read by row
group or record batch.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from .._validation import import_optional
from .tabular import (
    ColumnNames,
    FileStamp,
    TabularFile,
    merge_small_chunks,
    missing_value_error,
    not_numeric_error,
    wrap_decoding_errors,
)

#: Rows that columns are turned into at a time, so that they stay in the cache.
TRANSPOSE_ROWS = 4096


def numpy_dtype(path: str, name: Any, kind: Any) -> np.dtype:
    """NumPy's dtype for an Arrow type, which must be of numbers."""
    types = import_optional("pyarrow", "io", "Reading Arrow tables").types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return np.dtype(kind.to_pandas_dtype())
    raise not_numeric_error(path, name, kind)


def table_to_matrix(
    path: str, table: Any, names: ColumnNames, first_row: int
) -> np.ndarray:
    """(rows, columns): the columns of a table, none of whose values may be missing."""
    columns = []
    for name in names:
        column = table.column(name)
        numpy_dtype(path, name, column.type)
        if column.null_count:
            row = column.is_null().to_numpy(zero_copy_only=False).argmax()
            raise missing_value_error(path, name, first_row + int(row))
        columns.append(column.to_numpy())
    dtype = np.result_type(*columns) if columns else np.float64
    out = np.empty((table.num_rows, len(columns)), dtype)
    for start in range(0, len(out), TRANSPOSE_ROWS):
        rows = slice(start, start + TRANSPOSE_ROWS)
        for j, column in enumerate(columns):
            out[rows, j] = column[rows]
    return out


def is_text_type(kind: Any) -> bool:
    """Whether an Arrow type is of text, in a dictionary or not."""
    types = import_optional("pyarrow", "io", "Reading Arrow tables").types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return types.is_string(kind) or types.is_large_string(kind)


def column_to_texts(path: str, table: Any, name: Any, first_row: int) -> np.ndarray:
    """A column of text, none of whose values may be missing."""
    column = table.column(name)
    if column.null_count:
        row = column.is_null().to_numpy(zero_copy_only=False).argmax()
        raise missing_value_error(path, name, first_row + int(row))
    return np.array(column.to_pylist(), dtype=np.str_)


class ArrowSchema:
    """Names and types of the columns of a table."""

    def __init__(self, path: str, schema: Any) -> None:
        self.path = path
        self.names = tuple(schema.names)
        self.type_names = dict(zip(schema.names, map(str, schema.types), strict=True))
        self.texts = frozenset(
            name
            for name, kind in zip(schema.names, schema.types, strict=True)
            if is_text_type(kind)
        )
        self._dtypes: dict[Any, np.dtype | None] = {}
        for name, kind in zip(schema.names, schema.types, strict=True):
            try:
                self._dtypes[name] = numpy_dtype(path, name, kind)
            except ValueError:
                self._dtypes[name] = None

    def dtype(self, names: ColumnNames) -> np.dtype:
        """The common dtype of some columns."""
        for name in names:
            if self._dtypes[name] is None:
                raise not_numeric_error(self.path, name, self.type_names[name])
        return np.result_type(*(self._dtypes[name] for name in names))  # type: ignore[arg-type]


class ArrowTableFile(TabularFile):
    """A file whose chunks are Arrow tables."""

    schema: ArrowSchema

    @abstractmethod
    def _read_table(self, chunk: int, names: ColumnNames) -> Any:
        """Some columns of a chunk."""

    def dtype(self, names: ColumnNames) -> np.dtype:
        return self.schema.dtype(names)

    def holds_text(self, name: Any) -> bool:
        return name in self.schema.texts

    def holds_booleans(self, name: Any) -> bool:
        return self.schema.type_names.get(name) == "bool"

    def read(self, chunk: int, names: ColumnNames) -> np.ndarray:
        table = self._read_table(chunk, names)
        return table_to_matrix(self.path, table, names, int(self.bounds[chunk]))

    def read_text(self, chunk: int, name: Any) -> np.ndarray:
        table = self._read_table(chunk, (name,))
        return column_to_texts(self.path, table, name, int(self.bounds[chunk]))


class ArrowIpcFile(ArrowTableFile):
    """The columns of one Arrow file, compressed or not."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        with wrap_decoding_errors(path, self.stamp, path, 0):
            with self._open_file(None) as file:
                self.schema, n = ArrowSchema(path, file.schema), file.num_record_batches
            self.names = self.schema.names
            # One column tells how many rows a batch has.
            with self._open_file(self.names[:1]) as file:
                sizes = [file.get_batch(i).num_rows for i in range(n)]
        bounds = np.cumsum([0, *sizes])
        self.batches = merge_small_chunks(bounds, len(self.names))
        self.bounds = bounds[self.batches]

    def _read_table(self, chunk: int, names: ColumnNames) -> Any:
        first, last = map(int, self.batches[chunk : chunk + 2])
        with self._open_file(names) as file:
            batches = [file.get_batch(i) for i in range(first, last)]
            return _pyarrow().Table.from_batches(batches, file.schema)

    @contextmanager
    def _open_file(self, names: ColumnNames | None) -> Iterator[Any]:
        """The file, of which only some columns are read; by reading, not mapping."""
        ipc = import_optional("pyarrow.ipc", "io", "Reading Arrow files")
        field_indices = None if names is None else [self.names.index(n) for n in names]
        options = ipc.IpcReadOptions(included_fields=field_indices)
        with (
            _pyarrow().OSFile(self.path) as file,
            ipc.open_file(file, options=options) as reader,
        ):
            yield reader


def _pyarrow() -> Any:
    return import_optional("pyarrow", "io", "Reading Arrow files")


class ParquetFile(ArrowTableFile):
    """The columns of one Parquet file."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        with wrap_decoding_errors(path, self.stamp, path, 0):
            footer = _read_footer(path, self.stamp)
            self.schema = ArrowSchema(path, footer.schema.to_arrow_schema())
        self.names = self.schema.names
        sizes = [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]
        bounds = np.cumsum([0, *sizes])
        self.groups = merge_small_chunks(bounds, len(self.names))
        self.bounds = bounds[self.groups]

    def _read_table(self, chunk: int, names: ColumnNames) -> Any:
        groups = list(range(*map(int, self.groups[chunk : chunk + 2])))
        footer = _read_footer(self.path, self.stamp)
        with _pyarrow_parquet().ParquetFile(self.path, metadata=footer) as file:
            return file.read_row_groups(groups, columns=list(names))


def _pyarrow_parquet() -> Any:
    return import_optional("pyarrow.parquet", "io", "Reading Parquet files")


@lru_cache(maxsize=64)
def _read_footer(path: str, stamp: FileStamp) -> Any:
    """What stands at the end of the file; of many row groups it is long."""
    return _pyarrow_parquet().read_metadata(path)
