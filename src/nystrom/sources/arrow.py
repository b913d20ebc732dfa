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
from functools import partial, reduce
from itertools import chain, islice
from operator import and_
from typing import Any
from urllib.parse import unquote

import numpy as np

from .._digest import digest
from .._validation import import_optional
from .tabular import (
    MISSING,
    NOT_UTF8,
    ColumnNames,
    ColumnSelection,
    FileError,
    FileOptions,
    TabularFile,
    cell_error,
    file_stamp,
    merge_small_chunks,
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
#: A cell with a number, with a decimal point or comma.
NUMBER_PATTERN = re.compile(r"[-+]?[\d.,]+([eE][-+]?\d+)?")
#: Files whose footers are kept.
MAX_OPEN_FILES = 64

_FRAGMENTS: dict[Any, Any] = {}


def _arrow(name: str = "pyarrow") -> Any:
    return import_optional(name, "io", "Reading Parquet, CSV and Arrow files")


# --- columns as rows ------------------------------------------------------------------


def is_class_type(kind: Any) -> bool:
    """Whether an Arrow type is of text, maybe in a dictionary, or of true and false."""
    types = _arrow().types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    is_view = getattr(types, "is_string_view", types.is_string)
    is_text = types.is_string(kind) or types.is_large_string(kind) or is_view(kind)
    return is_text or types.is_boolean(kind)


def is_list_type(kind: Any) -> bool:
    """Whether an Arrow type is of lists, such as embeddings."""
    types = _arrow().types
    is_list = types.is_list(kind) or types.is_large_list(kind)
    return is_list or types.is_fixed_size_list(kind)


def numpy_dtype(path: str, name: Any, kind: Any) -> np.dtype:
    """NumPy's dtype for an Arrow type of numbers, or of lists of them."""
    types = _arrow().types
    item = kind.value_type if is_list_type(kind) else kind
    if types.is_integer(item) or types.is_floating(item) or types.is_boolean(item):
        return np.dtype(item.to_pandas_dtype())
    raise not_numeric_error(path, name, kind)


def _column_values(column: Any, width: int, path: str, name: Any, row: int) -> Any:
    """(rows, width): a column without missing values."""
    numpy_dtype(path, name, column.type)
    values = column
    if is_list_type(column.type) and not column.null_count:
        compute = _arrow("pyarrow.compute")
        lengths = compute.list_value_length(column).to_numpy(zero_copy_only=False)
        for bad in np.flatnonzero(lengths != width)[:1]:
            problem = f"a list of {lengths[bad]} values, where others have {width}"
            raise cell_error(path, name, row + int(bad), problem)
        values = compute.list_flatten(column)
    if values.null_count:
        null = int(values.is_null().to_numpy(zero_copy_only=False).argmax())
        bad = null if values is column else null // width
        raise cell_error(path, name, row + bad, MISSING)
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


def make_fragment(
    path: str, file_format: str, filesystem: Any, constants: dict[str, Any]
) -> Any:
    """A Parquet or Arrow IPC file as part of a `pyarrow.dataset`, with columns that are
    the same for all rows.
    """
    datasets = _arrow("pyarrow.dataset")
    kind = {"parquet": datasets.ParquetFileFormat, "ipc": datasets.IpcFileFormat}
    known = [datasets.field(name) == value for name, value in constants.items()]
    filesystem = filesystem or _arrow("pyarrow.fs").LocalFileSystem()
    partition = [reduce(and_, known)] if known else []
    return kind[file_format]().make_fragment(path, filesystem, *partition)


def add_constants(table: Any, constants: dict[str, Any]) -> Any:
    """A table with columns that are the same for all rows."""
    for name, value in constants.items():
        if name not in table.column_names:
            column = _arrow().repeat(_arrow().scalar(value), len(table))
            table = table.append_column(name, column)
    return table


def check_filter(path: str, schema: Any, row_filter: Any) -> None:
    """Refuse a filter of columns that are not there, or of other types."""
    if row_filter is None:
        return
    try:
        schema.empty_table().filter(row_filter)
    except _arrow().ArrowException as error:
        problem = str(error).splitlines()[0]
        raise FileError(
            f"filter={row_filter} cannot be applied: {problem}. The columns of {path} "
            f"are {', '.join(f'{field.name} ({field.type})' for field in schema)}."
        ) from None


class ArrowFile(TabularFile):
    """The columns of one Parquet or Arrow IPC file.

    Parameters
    ----------
    fragment : pyarrow.dataset.Fragment
        The file, with the columns that its folders name (Hive).
    row_filter : pyarrow.compute.Expression or None
        Only rows for which it is true.
    schema : pyarrow.Schema or None
        What columns there are, and of which types; None: as they are stored.
    converted : TemporaryTable or None
        The file itself, where it is a copy of something else.
    source : (path, filesystem, stamp) or None
        Of what it is a copy.
    """

    def __init__(
        self,
        fragment: Any,
        *,
        row_filter: Any = None,
        schema: Any = None,
        converted: TemporaryTable | None = None,
        source: tuple[str, Any, Any] | None = None,
    ) -> None:
        datasets = _arrow("pyarrow.dataset")
        self.is_parquet = isinstance(fragment, datasets.ParquetFileFragment)
        self.format = "parquet" if self.is_parquet else "ipc"
        self.constants = datasets.get_partition_keys(fragment.partition_expression)
        self.row_filter, self.converted = row_filter, converted
        self.token = "" if converted is None else converted.path
        if source is None:
            filesystem = fragment.filesystem
            if isinstance(filesystem, _arrow("pyarrow.fs").LocalFileSystem):
                filesystem = None
            source = fragment.path, filesystem, file_stamp(fragment.path, filesystem)
        self.path, self.filesystem, self.stamp = source
        self.options = digest(str(row_filter), str(schema), str(self.constants))
        self.fragment = fragment
        with wrap_decoding_errors(self):
            if schema is None:
                schema = add_constants(
                    self._fragment.physical_schema.empty_table(), self.constants
                ).schema
            self.schema, self.names = schema, tuple(schema.names)
            check_filter(self.path, schema, row_filter)
            bounds = np.cumsum([0, *self._group_sizes()])
            self._widths = {name: self._width(name) for name in schema.names}
            groups = merge_small_chunks(bounds, len(self.names))
            self.groups = np.column_stack([groups[:-1], groups[1:]])
            self.bounds = bounds[groups]
            if row_filter is not None:
                self._count_filtered()

    @property
    def _fragment(self) -> Any:
        """The open file, with its footer; of some files it is kept."""
        key, stored = (self.identity, self.token), self.fragment
        fragment = _FRAGMENTS.get(key)
        if fragment is None:
            fragment = stored.format.make_fragment(
                stored.path, stored.filesystem, stored.partition_expression
            )
            while len(_FRAGMENTS) >= MAX_OPEN_FILES:
                _FRAGMENTS.pop(next(iter(_FRAGMENTS)), None)
            _FRAGMENTS[key] = fragment
        return fragment

    def _group_sizes(self) -> list[int]:
        if self.is_parquet:
            return [group.num_rows for group in self._fragment.row_groups]
        with self._open_ipc(()) as file:
            return [file.get_batch(i).num_rows for i in range(file.num_record_batches)]

    def _width(self, name: str) -> int:
        """How many features a column is: of lists that have no fixed size, one is
        read.
        """
        if not is_list_type(self.schema.field(name).type):
            return 1
        scanner = self._fragment.scanner(self.schema, columns=[name])
        return list_width(scanner.head(1).column(0))

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
        if self.is_parquet:
            part = self._fragment.subset(row_group_ids=list(range(first, last)))
            columns = list(map(stored_name, names))
            return part.to_table(
                self.schema, columns, self.row_filter, use_threads=False
            )
        with self._open_ipc(names) as file:
            batches = [file.get_batch(i) for i in range(first, last)]
            table = _arrow().Table.from_batches(batches, file.schema)
        table = add_constants(table, self.constants)
        if self.row_filter is not None:
            table = table.filter(self.row_filter)
        return table.select(list(map(stored_name, names)))

    def iter_tables(self) -> Iterator[Any]:
        """All columns, part by part, with their cells as they are."""
        for chunk in range(len(self.groups)):
            with wrap_decoding_errors(self, int(self.bounds[chunk])):
                yield self._read_table(chunk, self.names)

    @contextmanager
    def _open_ipc(self, names: ColumnNames) -> Iterator[Any]:
        """The file, of which only some columns are read; by reading, not mapping."""
        ipc, fragment = _arrow("pyarrow.ipc"), self._fragment
        stored = fragment.physical_schema.names
        fields = None
        if self.row_filter is None:  # one column tells how many rows a batch has
            wanted = map(stored_name, names)
            fields = [stored.index(n) for n in wanted if n in stored] or [0]
        options = ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        with (
            fragment.filesystem.open_input_file(fragment.path) as file,
            ipc.open_file(file, options=options) as reader,
        ):
            yield reader

    def feature_names(self, names: ColumnNames) -> ColumnNames:
        return expand_names({name: self._widths[stored_name(name)] for name in names})

    def dtype(self, names: ColumnNames) -> np.dtype:
        kinds = {name: self.schema.field(stored_name(name)).type for name in names}
        return np.result_type(*(numpy_dtype(self.path, *i) for i in kinds.items()))

    def holds_classes(self, name: Any) -> bool:
        return is_class_type(self.schema.field(stored_name(name)).type)

    def read(self, chunk: int, names: ColumnNames) -> np.ndarray:
        table = self._read_table(chunk, names)
        widths = {n: self._widths[stored_name(n)] for n in names}
        return table_to_matrix(self.path, table, widths, int(self.bounds[chunk]))

    def read_text(self, chunk: int, name: Any) -> np.ndarray:
        column = self._read_table(chunk, (name,)).column(0)
        texts = np.array(column.cast(_arrow().string()).to_pylist(), dtype=object)
        for missing in np.flatnonzero((texts == None) | (texts == ""))[:1]:  # noqa: E711
            row = int(self.bounds[chunk] + missing)
            raise cell_error(self.path, name, row, MISSING)
        return texts.astype(np.str_)


def dataset_files(dataset: Any) -> list[ArrowFile]:
    """The files of a `pyarrow.dataset`, read by its schema, filter and partitions."""
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # filtered, or with other columns: only a scan knows by what
        fragments = []
    kind = _arrow("pyarrow.dataset").ParquetFileFragment
    if not fragments or not all(isinstance(f, kind) for f in fragments):
        return [stream_file(dataset)]
    return [ArrowFile(fragment, schema=dataset.schema) for fragment in fragments]


def folder_columns(paths: Sequence[str], base: str) -> list[dict[str, Any]]:
    """The columns that folders below `base` name, such as year=2025, of each file:
    whole numbers where all of them are, else text.
    """
    found = []
    for path in paths:
        folders = map(unquote, path[len(base) :].split("/")[:-1])
        found.append(dict(f.split("=", 1) for f in folders if "=" in f))
    texts = {
        name
        for columns in found
        for name, value in columns.items()
        if not re.fullmatch(r"-?\d{1,18}", value)
    }
    return [{n: v if n in texts else int(v) for n, v in c.items()} for c in found]


def kept_by_folder(fragments: list[Any], schema: Any, row_filter: Any) -> set[str]:
    """The paths of files of which a filter keeps rows, as far as folders say it."""
    if not fragments:
        return set()
    datasets = _arrow("pyarrow.dataset")
    first = fragments[0]
    whole = datasets.FileSystemDataset(
        fragments, schema, first.format, first.filesystem
    )
    return {fragment.path for fragment in whole.get_fragments(row_filter)}


# --- what is converted once -----------------------------------------------------------


class TemporaryTable:
    """A file of columns in a temporary folder, for this process and its neighbours.

    It is removed when nothing refers to it any more, when the process ends, and when
    writing it fails.

    Parameters
    ----------
    write : callable
        Writes the file to the path that it is given.
    name : str
        What the file is called.
    """

    def __init__(self, write: Callable[[str], Any], name: str = "rows.arrow") -> None:
        folder = tempfile.mkdtemp(prefix="nystrom-")
        self.path = os.path.join(folder, name)
        remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        try:
            write(self.path)
        except BaseException as error:
            remove()
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                raise OSError(
                    errno.ENOSPC,
                    "There is not enough space for a converted copy of the rows in "
                    f"{folder}; set TMPDIR to a folder on a larger disk, or write the "
                    "rows to Parquet",
                ) from error
            raise

    def __setstate__(self, state: dict[str, Any]) -> None:
        if not os.path.exists(state["path"]):
            raise FileError(
                "The rows were converted to a temporary file on another machine. Write "
                "them to Parquet files that all workers see, and open these."
            )
        vars(self).update(state)  # the process that wrote it removes it


#: The bar of a call, or another hook: called with a stage, the steps that are done and
#: the number of all.
progress_hook: ContextVar[Any] = ContextVar("nystrom_progress", default=None)


def write_tables(tables: Iterator[Any], schema: Any, path: str) -> None:
    """Write tables to an Arrow IPC file, one after the other."""
    with _arrow("pyarrow.ipc").new_file(path, schema) as file:
        for table in tables:
            file.write(table)


def stream_file(X: Any) -> ArrowFile:
    """The rows of a data set, stream or lazy frame, written to a temporary file."""
    if hasattr(X, "sink_parquet"):  # a lazy frame of polars
        table, kind = TemporaryTable(X.sink_parquet, "rows.parquet"), "parquet"
    else:
        scanner = _scanner(X) if hasattr(X, "scanner") else X
        is_scanner = hasattr(scanner, "to_reader")
        from_stream = _arrow().RecordBatchReader.from_stream
        reader = scanner.to_reader() if is_scanner else from_stream(X)
        write = partial(write_tables, reader, reader.schema)
        table, kind = TemporaryTable(write), "ipc"
    fragment = make_fragment(table.path, kind, None, {})
    name = type(X).__name__
    file = ArrowFile(fragment, converted=table, source=(name, None, ""))
    if len(file.groups):  # known by its first and its last rows
        first, last = (file._read_table(i, file.names) for i in (0, -1))
        ends = first.slice(0, 1).to_pylist(), last.slice(len(last) - 1).to_pylist()
        file.stamp = digest(file.bounds, str(file.schema), ends)
    return file


def _scanner(dataset: Any) -> Any:
    """Of a data set; by itself, pyarrow would keep all bytes of a file."""
    datasets = _arrow("pyarrow.dataset")
    options: dict[str, Any] = {"batch_readahead": 1, "fragment_readahead": 1}
    if isinstance(getattr(dataset, "format", None), datasets.ParquetFileFormat):
        unbuffered = datasets.ParquetFragmentScanOptions(pre_buffer=False)
        options["fragment_scan_options"] = unbuffered
    return dataset.scanner(**options)


# --- CSV ------------------------------------------------------------------------------


class CsvFile(TabularFile):
    """A CSV file, compressed or not, of which the first lines are read; `convert` reads
    the rest.
    """

    def __init__(
        self,
        path: str,
        csv: FileOptions,
        filesystem: Any = None,
        constants: dict[str, Any] | None = None,
    ) -> None:
        self.path, self.filesystem, self.csv = path, filesystem, csv
        self.constants = constants or {}
        self.stamp = file_stamp(path, filesystem)
        self._bad_rows: list[Any] = []
        is_tsv = ".tsv" in os.path.basename(path).lower()
        self.delimiter = csv.delimiter or ("\t" if is_tsv else ",")
        with wrap_decoding_errors(self), self._explain_errors():
            if csv.delimiter == "detect":
                self.delimiter = self._detect_delimiter("\t" if is_tsv else ",")
            with self._open() as (_, reader):
                batches = list(islice(reader, 1))
                head = _arrow().Table.from_batches(batches, reader.schema)
            head = add_constants(head, self.constants)
            check_filter(path, head.schema, csv.row_filter)
            names = head.schema.names
        self.bounds = np.array([0, len(head)])
        if not csv.header:
            names = [*range(len(reader.schema)), *self.constants]
        self.names = tuple(names)
        self._classes = {
            n for n, c in zip(names, head.columns, strict=True) if _is_text(c)
        }

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

    def _detect_delimiter(self, usual: str) -> str:
        """What the first line has most of, outside of quotes; else the usual one."""
        with self._stream() as (_, stream):
            head = stream.read(CSV_BLOCK_BYTES).decode(self.csv.encoding, "replace")
        lines = [line for line in head.splitlines() if line.strip()] or [""]
        outside = "".join(lines[0].split('"')[::2])
        return max(",;\t|", key=lambda d: (outside.count(d), d == usual))

    @contextmanager
    def _open(
        self, types: dict[str, Any] | None = None, columns: Sequence[str] = ()
    ) -> Iterator[Any]:
        """The file, and the stream of its batches: of these columns, or of all. A type
        that is None is found from the first rows.
        """
        arrow_csv = _arrow("pyarrow.csv")
        convert = arrow_csv.ConvertOptions(
            column_types={n: kind for n, kind in (types or {}).items() if kind},
            include_columns=list(columns),
            decimal_point=self.csv.decimal,
        )
        parse = arrow_csv.ParseOptions(
            delimiter=self.delimiter,
            newlines_in_values=True,
            invalid_row_handler=self._refuse_row,
        )
        read = arrow_csv.ReadOptions(
            block_size=CSV_BLOCK_BYTES,
            use_threads=False,  # else errors do not know their row
            encoding=self.csv.encoding,
            autogenerate_column_names=not self.csv.header,
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
        except _arrow().ArrowInvalid as error:
            for bad in self._bad_rows[:1]:
                advice = "Quote values that contain the delimiter; add missing ones."
                if bad.expected_columns == 1:
                    others = [d for d in ";,\t|" if d != self.delimiter]
                    other = max(others, key=bad.text.count)
                    advice = f"Name it, delimiter={other!r}, or delimiter='detect'."
                raise FileError(
                    f"{self.path}, row {self._data_row(bad.number)} has "
                    f"{bad.actual_columns} values where there are "
                    f"{bad.expected_columns} columns: {bad.text[:80]!r}. {advice}"
                ) from None
            message = str(error)
            if "Empty CSV" in message:
                raise FileError(f"{self.path} is empty.") from None
            where = re.match(r"In CSV column #(\d+): Row #(\d+): ", message)
            if where is None:
                raise
            value = re.search(r"invalid value '(.*)'", message, re.DOTALL)
            problem = f"{value[1]!r} is not a number" if value else message
            if "UTF8" in message:
                problem = f"the text {NOT_UTF8}"
            name, row = self.names[int(where[1])], self._data_row(int(where[2]))
            raise cell_error(self.path, name, row, problem) from None

    def _data_row(self, number: int | None) -> int:
        return (number or 0) - (2 if self.csv.header else 1)

    def holds_classes(self, name: Any) -> bool:
        return name in self._classes

    def dtype(self, names: ColumnNames) -> np.dtype:
        return np.dtype(np.float64)

    def read(self, chunk: int, names: ColumnNames) -> np.ndarray:
        raise NotImplementedError("A CSV file is converted before it is read.")

    def iter_tables(self, types: dict[str, Any] | None = None) -> Iterator[Any]:
        """Columns with their types, part by part; all with their cells as text unless
        types are given.
        """
        columns = tuple(types or ())
        if types is None:
            types = dict.fromkeys(map(stored_name, self.names), _arrow().string())
        stage = f"converting {os.path.basename(self.path)}"
        n_steps = -(-self.stamp[0] // CSV_BLOCK_BYTES)
        report = progress_hook.get() or (lambda *step: None)
        report(stage, 0, n_steps)
        with (
            wrap_decoding_errors(self),
            self._explain_errors(),
            self._open(types, columns) as (file, reader),
        ):
            for batch in reader:
                table = _arrow().Table.from_batches([batch])
                table = add_constants(table, self.constants)
                if self.csv.row_filter is not None:
                    table = table.filter(self.csv.row_filter)
                yield table
                report(stage, file.tell() // CSV_BLOCK_BYTES, n_steps)
        report(stage, n_steps, n_steps)
        self.check_unchanged()

    def convert(self, selection: ColumnSelection) -> ArrowFile:
        """The selected columns, as numbers and text, in a temporary file."""
        kinds = dict.fromkeys(selection.numbers, _arrow().float64())
        if selection.classes:
            kinds |= dict.fromkeys(selection.targets, _arrow().string())
        condition = str(self.csv.row_filter)
        for name in self.names:
            if stored_name(name) in condition:  # perhaps part of another name
                kinds.setdefault(name, None)
        stored = [name for name in kinds if name not in self.constants]
        types = {stored_name(name): kinds[name] for name in stored}

        def write(path: str) -> None:
            tables = self.iter_tables(types)
            for first in tables:
                write_tables(chain([first], tables), first.schema, path)
                return
            raise FileError(f"{self.path} has no rows; at least one is needed.")

        table = TemporaryTable(write)
        fragment = make_fragment(table.path, "ipc", None, {})
        source = (self.path, self.filesystem, self.stamp)
        file = ArrowFile(fragment, converted=table, source=source)
        file.names = (*stored, *self.constants)
        signs = self.delimiter, self.csv.header, self.csv.encoding, self.csv.decimal
        file.options = digest(signs, condition, str(types))
        return file


def _is_text(column: Any) -> bool:
    """Whether half of the cells are no numbers; a slip among numbers makes no text."""
    types = _arrow().types
    if types.is_integer(column.type) or types.is_floating(column.type):
        return False
    cells = [str(cell).strip() for cell in column.to_pylist() if cell is not None]
    n_numbers = sum(map(bool, map(NUMBER_PATTERN.fullmatch, cells)))
    return len(cells) > 0 and n_numbers <= len(column) / 2


def stored_name(name: Any) -> str:
    """The name of a column in a table, where a file without a header has numbers."""
    return name if isinstance(name, str) else f"f{name}"
