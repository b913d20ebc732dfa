"""Tables of Arrow columns, on a local disk or in an object store.

Parquet files are fragments of a `pyarrow.dataset`, read by row groups, Arrow IPC files
by record batches. CSV files and streams of batches are written once to a temporary
Arrow IPC file, and read from there.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import and_
from typing import Any
from urllib.parse import unquote

import numpy as np

from .._digest import digest
from .._validation import import_optional
from .tabular import (
    ColumnNames,
    ColumnSelection,
    FileError,
    TabularFile,
    format_cell_location,
    merge_small_chunks,
    missing_value_error,
    not_a_number_error,
    not_numeric_error,
    wrap_decoding_errors,
)

#: Rows that columns are turned into at a time, so that they stay in the cache.
TRANSPOSE_ROWS = 4096
#: Bytes of text that are parsed at a time.
CSV_BLOCK_BYTES = 2**22
#: CSV files may be compressed, with one of these behind their ending.
COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
#: Bytes of these that are read at a time: in a store each read is a request.
READ_AHEAD_BYTES = 2**20
#: Files whose footers are kept.
MAX_OPEN_FILES = 64

_FRAGMENTS: dict[Any, Any] = {}


def _arrow(name: str = "pyarrow") -> Any:
    return import_optional(name, "io", "Reading Parquet, CSV and Arrow files")


# --- columns as rows ------------------------------------------------------------------


def is_text_type(kind: Any) -> bool:
    """Whether an Arrow type is of text, in a dictionary or not."""
    types = _arrow().types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    is_view = getattr(types, "is_string_view", types.is_string)
    return types.is_string(kind) or types.is_large_string(kind) or is_view(kind)


def is_list_type(kind: Any) -> bool:
    """Whether an Arrow type is of lists, such as embeddings."""
    types = _arrow().types
    is_list = types.is_list(kind) or types.is_large_list(kind)
    return is_list or types.is_fixed_size_list(kind)


def numpy_dtype(kind: Any) -> np.dtype | None:
    """NumPy's dtype for an Arrow type of numbers, or of lists of them; else None."""
    types = _arrow().types
    kind = kind.value_type if is_list_type(kind) else kind
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return np.dtype(kind.to_pandas_dtype())
    return None


def _column_values(column: Any, width: int, path: str, name: Any, row: int) -> Any:
    """(rows, width): a column without missing values."""
    if numpy_dtype(column.type) is None:
        raise not_numeric_error(path, name, column.type)
    if column.null_count:
        null = column.is_null().to_numpy(zero_copy_only=False).argmax()
        raise missing_value_error(path, name, row + int(null))
    if not is_list_type(column.type):
        return column.to_numpy()[:, None]
    compute = _arrow("pyarrow.compute")
    lengths = compute.list_value_length(column).to_numpy(zero_copy_only=False)
    if (lengths != width).any():
        bad = int((lengths != width).argmax())
        raise FileError(
            f"{format_cell_location(path, name, row + bad)}: a list of {lengths[bad]} "
            f"values, where others have {width}; all must have the same."
        )
    values = compute.list_flatten(column)
    if values.null_count:
        null = values.is_null().to_numpy(zero_copy_only=False).argmax()
        raise missing_value_error(path, name, row + int(null) // width)
    return values.to_numpy().reshape(-1, width)


def table_to_matrix(
    path: str, table: Any, widths: dict[Any, int], first_row: int
) -> np.ndarray:
    """(rows, features): columns of a table, a list as so many features as it has."""
    columns = [
        _column_values(column, width, path, name, first_row)
        for (name, width), column in zip(widths.items(), table.columns, strict=True)
    ]
    dtype = np.result_type(*columns) if columns else np.float64
    out = np.empty((table.num_rows, sum(widths.values())), dtype)
    for start in range(0, len(out), TRANSPOSE_ROWS):
        rows, j = slice(start, start + TRANSPOSE_ROWS), 0
        for column in columns:
            out[rows, j : j + column.shape[1]] = column[rows]
            j += column.shape[1]
    return out


def list_width(column: Any) -> int:
    """How many features a column is: as many as the values of its first list."""
    if not is_list_type(column.type):
        return 1
    if _arrow().types.is_fixed_size_list(column.type):
        return column.type.list_size
    return len(column[0]) if len(column) and column[0].is_valid else 1


def expand_names(widths: dict[Any, int]) -> ColumnNames:
    """What the features are called: a list e of two values is e_0 and e_1."""
    names: list[Any] = []
    for name, width in widths.items():
        names += [name] if width == 1 else [f"{name}_{i}" for i in range(width)]
    return tuple(names)


def matrix_in_memory(table: Any) -> tuple[np.ndarray, ColumnNames]:
    """The rows of an Arrow table that is held in memory, and their names."""
    widths = {name: list_width(table.column(name)) for name in table.schema.names}
    return table_to_matrix("X", table, widths, 0), expand_names(widths)


# --- files of columns -----------------------------------------------------------------


def add_constants(table: Any, constants: dict[str, tuple[Any, Any]]) -> Any:
    """A table with columns that are the same for all rows, of a type and value each."""
    for name, (kind, value) in constants.items():
        if name not in table.column_names:
            constant = _arrow().repeat(_arrow().scalar(value, kind), len(table))
            table = table.append_column(name, constant)
    return table


class ArrowFile(TabularFile):
    """The columns of one Parquet or Arrow IPC file.

    Parameters
    ----------
    path : str
        The file, as its file system knows it.
    file_format : "parquet" or "ipc"
        How it is stored.
    filesystem : pyarrow.fs.FileSystem or None
        Where it is; None: on the local disk.
    folder_columns : dict of str to (pyarrow.DataType, value)
        Columns that are the same for all rows, by the names of the folders (Hive).
    row_filter : pyarrow.compute.Expression or None
        Only rows for which it is true.
    schema : pyarrow.Schema or None
        What columns there are, and of which types; None: as they are stored.
    converted : TemporaryTable or None
        Where the columns are that `path` was converted to.
    stamp, key : values
        What is known of `path` then, and of how it was converted.
    """

    def __init__(
        self,
        path: str,
        file_format: str,
        *,
        filesystem: Any = None,
        folder_columns: dict[str, tuple[Any, Any]] | None = None,
        row_filter: Any = None,
        schema: Any = None,
        converted: TemporaryTable | None = None,
        stamp: Any = None,
        key: Any = None,
    ) -> None:
        self.filesystem, self.file_format = filesystem, file_format
        self.converted, self.row_filter = converted, row_filter
        self.stamp, self.token = stamp, "" if converted is None else converted.path
        self.folder_columns = folder_columns or {}
        super().__init__(path)
        self.label = {"ipc": "Arrow"}.get(file_format, file_format.title())
        self._key = digest(
            *(file_format, str(row_filter), str(schema), str(self.folder_columns)),
            *(getattr(filesystem, "type_name", ""), key),
        )
        with wrap_decoding_errors(self, 0):
            self.schema = self._own_schema() if schema is None else schema
            self.names = tuple(self.schema.names)
            bounds = np.cumsum([0, *self._group_sizes()])
            self._read_widths()
        groups = merge_small_chunks(bounds, len(self.names))
        self.groups = np.column_stack([groups[:-1], groups[1:]])
        self.bounds = bounds[groups]
        if row_filter is not None:
            with wrap_decoding_errors(self, 0):
                self._count_filtered()

    @property
    def options(self) -> Any:
        return self._key

    @property
    def _stored_in(self) -> Any:
        return self.filesystem if self.converted is None else None

    def _read_stamp(self) -> Any:
        return self.stamp or super()._read_stamp()

    def _fragment(self) -> Any:
        """The open file, with its footer; of some files it is kept."""
        fragment = _FRAGMENTS.get(self.cache_key)
        if fragment is None:
            datasets = _arrow("pyarrow.dataset")
            known = [
                datasets.field(k) == v for k, (_, v) in self.folder_columns.items()
            ]
            formats = {
                "parquet": datasets.ParquetFileFormat,
                "ipc": datasets.IpcFileFormat,
            }
            fragment = formats[self.file_format]().make_fragment(
                self.path if self.converted is None else self.converted.path,
                self._stored_in or _arrow("pyarrow.fs").LocalFileSystem(),
                *([reduce(and_, known)] if known else []),
            )
            while len(_FRAGMENTS) >= MAX_OPEN_FILES:
                _FRAGMENTS.pop(next(iter(_FRAGMENTS)), None)
            _FRAGMENTS[self.cache_key] = fragment
        return fragment

    def _own_schema(self) -> Any:
        stored = self._fragment().physical_schema
        others = [(k, kind) for k, (kind, _) in self.folder_columns.items()]
        fields = [f for f in others if f[0] not in stored.names]
        return _arrow().schema([*stored, *_arrow().schema(fields)])

    def _group_sizes(self) -> list[int]:
        if self.file_format == "parquet":
            return [group.num_rows for group in self._fragment().row_groups]
        with self._open_ipc(()) as file:
            return [file.get_batch(i).num_rows for i in range(file.num_record_batches)]

    def _read_widths(self) -> None:
        """How many features each column is: of lists that have no fixed size, one is
        read.
        """
        self._widths: dict[str, int] = {}
        for field in self.schema:
            column = _arrow().chunked_array([], field.type)
            if is_list_type(field.type):
                scanner = self._fragment().scanner(self.schema, columns=[field.name])
                column = scanner.head(1).column(0)
            self._widths[field.name] = list_width(column)

    def _count_filtered(self) -> None:
        counts = [
            self._read_table(chunk, self.names[:1]).num_rows
            for chunk in range(len(self.groups))
        ]
        kept = np.flatnonzero(counts)
        self.groups = self.groups[kept]
        self.bounds = np.cumsum([0, *np.asarray(counts, dtype=np.int64)[kept]])

    def _read_table(self, chunk: int, names: ColumnNames) -> Any:
        """Some columns of a chunk."""
        first, last = map(int, self.groups[chunk])
        names = tuple(map(stored_name, names))
        if self.file_format == "parquet":
            part = self._fragment().subset(row_group_ids=list(range(first, last)))
            return part.to_table(
                self.schema, list(names), self.row_filter, use_threads=False
            )
        with self._open_ipc(names) as file:
            batches = [file.get_batch(i) for i in range(first, last)]
            table = _arrow().Table.from_batches(batches, file.schema)
        table = add_constants(table, self.folder_columns)
        if self.row_filter is not None:
            table = table.filter(self.row_filter)
        return table.select(names)

    def iter_tables(self) -> Iterator[Any]:
        """All columns, part by part, with their cells as they are."""
        for chunk in range(len(self.groups)):
            with wrap_decoding_errors(self, int(self.bounds[chunk])):
                yield self._read_table(chunk, self.names)

    @contextmanager
    def _open_ipc(self, names: ColumnNames) -> Iterator[Any]:
        """The file, of which only some columns are read; by reading, not mapping."""
        ipc, fragment = _arrow("pyarrow.ipc"), self._fragment()
        stored = fragment.physical_schema.names
        fields = None
        if self.row_filter is None:  # one column tells how many rows a batch has
            fields = [stored.index(n) for n in names if n in stored] or [0]
        options = ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        with (
            fragment.filesystem.open_input_file(fragment.path) as file,
            ipc.open_file(file, options=options) as reader,
        ):
            yield reader

    def feature_names(self, names: ColumnNames) -> ColumnNames:
        return expand_names({name: self._widths[stored_name(name)] for name in names})

    def dtype(self, names: ColumnNames) -> np.dtype:
        dtypes = []
        for name in names:
            kind = self.schema.field(stored_name(name)).type
            dtypes.append(numpy_dtype(kind))
            if dtypes[-1] is None:
                raise not_numeric_error(self.path, name, kind)
        return np.result_type(*dtypes)  # type: ignore[arg-type]

    def holds_text(self, name: Any) -> bool:
        return is_text_type(self.schema.field(stored_name(name)).type)

    def holds_booleans(self, name: Any) -> bool:
        return _arrow().types.is_boolean(self.schema.field(stored_name(name)).type)

    def read(self, chunk: int, names: ColumnNames) -> np.ndarray:
        table = self._read_table(chunk, names)
        widths = {n: self._widths[stored_name(n)] for n in names}
        return table_to_matrix(self.path, table, widths, int(self.bounds[chunk]))

    def read_text(self, chunk: int, name: Any) -> np.ndarray:
        column = self._read_table(chunk, (name,)).column(0)
        texts = np.array(column.cast(_arrow().string()).to_pylist(), dtype=object)
        is_missing = (texts == None) | (texts == "")  # noqa: E711
        if is_missing.any():
            row = int(self.bounds[chunk]) + int(is_missing.argmax())
            raise missing_value_error(self.path, name, row)
        return texts.astype(np.str_)


# --- what is converted once -----------------------------------------------------------


class TemporaryTable:
    """A file of columns in a temporary folder, for this process and its neighbours.

    It is removed when nothing refers to it any more, when the process ends, and when
    writing it fails. On another machine it is written again.

    Parameters
    ----------
    write : callable
        Writes the file to the path that it is given.
    name : str
        What the file is called.
    """

    def __init__(self, write: Callable[[str], None], name: str = "rows.arrow") -> None:
        folder = tempfile.mkdtemp(prefix="nystrom-")
        self.path, self.write = os.path.join(folder, name), write
        remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        try:
            write(self.path)
        except BaseException as error:
            remove()
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                raise OSError(
                    errno.ENOSPC,
                    f"There is no room for a converted copy of the rows in {folder}; "
                    "set TMPDIR to a folder on a larger disk, or write the rows to "
                    "Parquet",
                ) from error
            raise

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen_temporary, (self.path, self.write)


_WRITTEN_AGAIN: dict[str, TemporaryTable] = {}


def _reopen_temporary(path: str, write: Callable[[str], None]) -> TemporaryTable:
    if os.path.exists(path):  # another process removes it
        table = TemporaryTable.__new__(TemporaryTable)
        table.path, table.write = path, write
        return table
    if path not in _WRITTEN_AGAIN:
        _WRITTEN_AGAIN[path] = TemporaryTable(write, os.path.basename(path))
    return _WRITTEN_AGAIN[path]


#: Called with a stage, the steps that are done and the number of all.
ProgressHook = Callable[[str, int, int], None]
_conversion_progress: ContextVar[ProgressHook] = ContextVar(
    "nystrom_conversion_progress", default=lambda stage, done, total: None
)


@contextmanager
def report_conversions(hook: ProgressHook | None) -> Iterator[None]:
    """In this block of code, report the conversion of files to a hook, if there is one,
    such as the bar of a call.
    """
    token = _conversion_progress.set(hook or _conversion_progress.get())
    try:
        yield
    finally:
        _conversion_progress.reset(token)


def write_batches(
    batches: Any, path: str, report: Callable[[], None] = lambda: None
) -> None:
    """Write a stream of record batches to an Arrow IPC file, one batch at a time."""
    with _arrow("pyarrow.ipc").new_file(path, batches.schema) as file:
        for batch in batches:
            file.write_batch(batch)
            report()


class Stream:
    """A stream of batches that is written out once; it cannot be read again."""

    def __init__(self, batches: Any) -> None:
        self.batches = batches

    def __call__(self, path: str) -> None:
        write_batches(self.batches, path)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial, (_refuse_stream,)


def _refuse_stream(path: str) -> None:
    raise FileError(
        "The rows came from a stream that was read on another machine. Write them to "
        "Parquet files that all workers see, and open these."
    )


def stream_file(X: Any) -> ArrowFile:
    """The rows of a data set, stream or lazy frame, written to a temporary file."""
    if hasattr(X, "sink_parquet"):  # a lazy frame of polars
        table = TemporaryTable(X.sink_parquet, "rows.parquet")
    else:
        is_dataset = hasattr(X, "scanner")
        reader = _scan(X) if is_dataset else _arrow().RecordBatchReader.from_stream(X)
        table = TemporaryTable(Stream(reader))
    kind = "parquet" if table.path.endswith(".parquet") else "ipc"
    file = ArrowFile(type(X).__name__, kind, converted=table, stamp="read")
    if len(file.groups):  # known by its first and its last rows
        first, last = (file._read_table(i, file.names) for i in (0, -1))
        ends = first.slice(0, 1).to_pylist(), last.slice(len(last) - 1).to_pylist()
        file.stamp = digest(file.bounds, str(file.schema), ends)
    return file


def _scan(dataset: Any) -> Any:
    """The batches of a data set; by itself, pyarrow would keep all bytes of a file."""
    datasets = _arrow("pyarrow.dataset")
    options: dict[str, Any] = {"batch_readahead": 1, "fragment_readahead": 1}
    if isinstance(getattr(dataset, "format", None), datasets.ParquetFileFormat):
        unbuffered = datasets.ParquetFragmentScanOptions(pre_buffer=False)
        options["fragment_scan_options"] = unbuffered
    return dataset.scanner(**options).to_reader()


def dataset_files(dataset: Any) -> list[ArrowFile]:
    """The files of a `pyarrow.dataset`, read by its schema, filter and partitions."""
    datasets = _arrow("pyarrow.dataset")
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # filtered, or with other columns: only a scan knows by what
        fragments = []
    is_parquet = [isinstance(f, datasets.ParquetFileFragment) for f in fragments]
    if not fragments or not all(is_parquet):
        return [stream_file(dataset)]
    return [
        ArrowFile(
            fragment.path,
            "parquet",
            filesystem=None if _is_local(fragment) else fragment.filesystem,
            folder_columns={
                name: (dataset.schema.field(name).type, value)
                for name, value in datasets.get_partition_keys(
                    fragment.partition_expression
                ).items()
            },
            schema=dataset.schema,
        )
        for fragment in fragments
    ]


def _is_local(fragment: Any) -> bool:
    return isinstance(fragment.filesystem, _arrow("pyarrow.fs").LocalFileSystem)


def folder_columns(
    paths: Sequence[str], base: str | None
) -> list[dict[str, tuple[Any, Any]]]:
    """The columns that folders below `base` name, such as year=2025, of each file:
    whole numbers where all of them are, else text.
    """
    found: list[dict[str, str]] = []
    for path in paths:
        folders = [] if base is None else path[len(base) :].split("/")[:-1]
        pairs = [unquote(f).partition("=")[::2] for f in folders if "=" in f]
        found.append(dict(pairs))
    named = {name for each in found for name in each}
    texts = {name: [each[name] for each in found if name in each] for name in named}
    kinds: dict[str, tuple[Any, Callable]] = {}
    for name, values in texts.items():
        are_numbers = all(re.fullmatch(r"-?\d{1,18}", value) for value in values)
        kinds[name] = (
            (_arrow().int64(), int) if are_numbers else (_arrow().string(), str)
        )
    return [{k: (kinds[k][0], kinds[k][1](v)) for k, v in e.items()} for e in found]


# --- CSV ------------------------------------------------------------------------------

#: What stands for a missing value.
_MISSING_MARKERS = ("", "#N/A", "NA", "N/A", "NULL", "null", "n/a", "NaN", "nan")


@dataclass(frozen=True)
class CsvOptions:
    """How a CSV file is written."""

    delimiter: str | None = None
    header: bool = True
    encoding: str = "utf8"
    decimal: str = "."


class CsvFile(TabularFile):
    """A CSV file, compressed or not, of which the first lines are read; `convert` reads
    the rest.
    """

    def __init__(
        self,
        path: str,
        csv: CsvOptions,
        filesystem: Any = None,
        folder_columns: dict[str, tuple[Any, Any]] | None = None,
        row_filter: Any = None,
    ) -> None:
        self.filesystem, self.csv, self.row_filter = filesystem, csv, row_filter
        self.folder_columns = folder_columns or {}
        super().__init__(path)
        self._bad_rows: list[Any] = []
        if csv.delimiter == "detect":
            with wrap_decoding_errors(self, 0):
                self.csv = replace(csv, delimiter=self._detect_delimiter())
        with wrap_decoding_errors(self, 0), self._explain_errors():
            with self._open() as (_, reader):
                head = next(iter(reader), None)
            self.bounds = np.array([0, 0 if head is None else len(head)])
            stored = reader.schema.names
        self.names = tuple(stored) if csv.header else tuple(range(len(stored)))
        columns = [] if head is None else zip(self.names, head.columns, strict=True)
        self._texts = {name for name, column in columns if self._is_text(column)}
        for name, (kind, _) in self.folder_columns.items():
            self._texts |= {name} if is_text_type(kind) else set()
        self.names += tuple(self.folder_columns)

    @contextmanager
    def _stream(self) -> Iterator[tuple[Any, Any]]:
        """The file, and the stream of its bytes, decompressed if its name says so."""
        filesystem = self.filesystem or _arrow("pyarrow.fs").LocalFileSystem()
        with filesystem.open_input_file(self.path) as file:
            if not self.path.lower().endswith(COMPRESSED):
                yield file, file
                return
            codec = _arrow().Codec.detect(self.path.lower()).name
            buffered = _arrow().BufferedInputStream(file, READ_AHEAD_BYTES)
            with _arrow().CompressedInputStream(buffered, codec) as stream:
                yield file, stream

    def _detect_delimiter(self) -> str:
        """What the first line has most of, outside of quotes; else the usual one."""
        usual = "\t" if ".tsv" in os.path.basename(self.path).lower() else ","
        with self._stream() as (_, stream):
            head = stream.read(CSV_BLOCK_BYTES).decode(self.csv.encoding, "replace")
        lines = [line for line in head.splitlines() if line.strip()] or [""]
        outside = "".join(lines[0].split('"')[::2])
        return max(",;\t|", key=lambda d: (outside.count(d), d == usual))

    def iter_tables(self) -> Iterator[Any]:
        """All columns, part by part, with their cells as text."""
        string = _arrow().string()
        types = {stored_name(n): string for n in self.names}
        with (
            wrap_decoding_errors(self, 0),
            self._explain_errors(),
            self._open(types) as (_, reader),
        ):
            for batch in reader:
                yield add_constants(
                    _arrow().Table.from_batches([batch]), self.folder_columns
                )

    @contextmanager
    def _open(
        self, types: dict[str, Any] | None = None, columns: list[str] | None = None
    ) -> Iterator[Any]:
        """The file, and the stream of its batches; of these columns, if they are given,
        where a type of None is found from the first rows.
        """
        arrow_csv, csv = _arrow("pyarrow.csv"), self.csv
        is_tsv = ".tsv" in os.path.basename(self.path).lower()
        delimiter = csv.delimiter or ("\t" if is_tsv else ",")
        convert = arrow_csv.ConvertOptions(
            column_types={n: kind for n, kind in (types or {}).items() if kind},
            include_columns=columns,
            decimal_point=csv.decimal,
        )
        parse = arrow_csv.ParseOptions(
            delimiter=delimiter,
            newlines_in_values=True,
            invalid_row_handler=self._refuse_row,
        )
        read = arrow_csv.ReadOptions(
            block_size=CSV_BLOCK_BYTES,
            use_threads=False,  # else errors do not know their row
            encoding=csv.encoding,
            autogenerate_column_names=not csv.header,
        )
        with (
            self._stream() as (file, stream),
            arrow_csv.open_csv(stream, read, parse, convert) as reader,
        ):
            yield file, reader

    def _refuse_row(self, row: Any) -> str:
        self._bad_rows.append(row)
        return "error"

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Around pyarrow's reader: its errors name row and column."""
        try:
            yield
        except (_arrow().ArrowInvalid, UnicodeDecodeError) as error:
            message = str(error)
            if "Empty CSV" in message:
                raise FileError(f"{self.path} is empty.") from None
            if self._bad_rows:
                bad = self._bad_rows[0]
                raise FileError(
                    f"{self.path}, row {self._data_row(bad.number)} has "
                    f"{bad.actual_columns} values where there are "
                    f"{bad.expected_columns} columns: {bad.text[:80]!r}. Put values "
                    "with the delimiter in them into quotes, and write what is missing."
                ) from None
            where = re.match(r"In CSV column #(\d+): Row #(\d+): ", message)
            if where is None:
                raise
            name, row = self.names[int(where[1])], self._data_row(int(where[2]))
            if "UTF8" in message:
                raise FileError(
                    f"{format_cell_location(self.path, name, row)}: the text is not "
                    "UTF-8. Say what it is, encoding='latin-1', or write it again."
                ) from None
            value = re.search(r"invalid value '(.*)'", message, re.DOTALL)
            cell = value[1] if value else message
            raise not_a_number_error(self.path, name, row, cell) from None

    def _data_row(self, number: int | None) -> int:
        return (number or 0) - (2 if self.csv.header else 1)

    def _is_text(self, column: Any) -> bool:
        """Whether half of the first cells are; a slip among numbers makes no text."""
        types = _arrow().types
        if types.is_floating(column.type) or types.is_integer(column.type):
            return False
        cells = [str(c) for c in column.to_pylist() if c is not None]
        return len(cells) > 0 and 2 * sum(map(self._is_word, cells)) >= len(column)

    def _is_word(self, cell: str) -> bool:
        try:
            if cell not in _MISSING_MARKERS:
                float(cell.replace(self.csv.decimal, "."))
        except ValueError:
            return True
        return False

    def holds_text(self, name: Any) -> bool:
        return name in self._texts

    def dtype(self, names: ColumnNames) -> np.dtype:
        return np.dtype(np.float64)

    def read(self, chunk: int, names: ColumnNames) -> np.ndarray:
        raise NotImplementedError("A CSV file is converted before it is read.")

    def unknown_column_hint(self, name: Any) -> str:
        """Other delimiters are common, and so are files without a header."""
        hint, first_name = super().unknown_column_hint(name), str(self.names[0])
        for character in ";\t| ":
            if len(self.names) == 1 and character in first_name:
                option = f"delimiter={character!r}"
                return f"values seem to be separated by {character!r}: {option}."
        if isinstance(name, int) and not hint:
            return (
                f"columns of this file have names: {', '.join(map(repr, self.names))}. "
                "Where its first line is a row, header=False gives them numbers."
            )
        return hint

    def convert(self, selection: ColumnSelection) -> ArrowFile:
        """The selected columns, as numbers and text, in a temporary file."""
        kinds = dict.fromkeys(selection.numbers, _arrow().float64())
        if selection.text:
            kinds |= dict.fromkeys(selection.targets, _arrow().string())
        condition = "" if self.row_filter is None else str(self.row_filter)
        for name in self.names:
            if stored_name(name) in condition:  # perhaps part of another name
                kinds.setdefault(name, None)
        stored = [name for name in kinds if name not in self.folder_columns]
        types = {stored_name(name): kinds[name] for name in stored}
        table = TemporaryTable(partial(self._write, types))
        file = ArrowFile(
            self.path,
            "ipc",
            filesystem=self.filesystem,
            folder_columns=self.folder_columns,
            row_filter=self.row_filter,
            converted=table,
            stamp=self.stamp,
            key=(str(self.csv), str(types)),
        )
        file.names, file.label = (*stored, *file.folder_columns), "Csv"
        return file

    def _write(self, types: dict[str, Any], path: str) -> None:
        with (
            wrap_decoding_errors(self, 0),
            self._explain_errors(),
            self._open(types, list(types)) as (file, reader),
        ):
            stage = f"converting {os.path.basename(self.path)}"
            n_steps = -(-self.stamp.size // CSV_BLOCK_BYTES)
            report = _conversion_progress.get()
            report(stage, 0, n_steps)
            write_batches(
                reader,
                path,
                lambda: report(stage, file.tell() // CSV_BLOCK_BYTES, n_steps),
            )
            report(stage, n_steps, n_steps)
        self.check_unchanged()


def stored_name(name: Any) -> str:
    """The name of a column in a table, where a file without a header has numbers."""
    return name if isinstance(name, str) else f"f{name}"
