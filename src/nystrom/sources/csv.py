"""CSV files, plain or gzip: one pass finds where blocks of lines begin, then each
block is parsed by itself.
"""

from __future__ import annotations

import csv
import os
import threading
import zlib
from collections.abc import Hashable, Iterator
from typing import Any, BinaryIO

import numpy as np

from .._validation import import_optional
from .arrow import column_to_texts, table_to_matrix
from .tabular import (
    ColumnNames,
    FileError,
    TabularFile,
    missing_value_error,
    not_a_number_error,
    wrap_decoding_errors,
)

#: Compressed bytes that are fed at a time.
FEED_BYTES = 2**14
#: Places where unpacking can begin anew: so many at most, at first so far apart. Each
#: holds a window of 32 kB.
MAX_SEEK_POINTS, MIN_SEEK_POINT_BYTES = 256, 2**20
#: A gzip file, with its checksum.
GZIP_WBITS = 31


class PlainBytes:
    """A file as it is."""

    def __init__(self, path: str) -> None:
        self.path, self.size = path, os.path.getsize(path)

    def read(self, start: int, stop: int) -> bytes:
        """Bytes `start` to `stop`."""
        with open(self.path, "rb") as file:
            file.seek(start)
            return file.read(stop - start)


class GzipBytes:
    """What is in a gzip file, read from the nearest place before that is kept.

    gzip has no places to begin at, so one pass keeps what the unpacking knows at some;
    to read from anywhere then takes no more than what is between two of them. They do
    not travel: elsewhere the pass is made again.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._places: list[tuple[int, int, Any]] = []
        self._index_seek_points()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_places": [], "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    def read(self, start: int, stop: int) -> bytes:
        """Bytes `start` to `stop`."""
        stop = min(stop, self.size)
        if start >= stop:
            return b""
        with self._lock:
            if not self._places:
                self._index_seek_points()
            offset, file_offset, decompressor = next(
                point for point in reversed(self._places) if point[0] <= start
            )
            decompressor = decompressor.copy()
        parts = []
        with open(self.path, "rb") as file:
            file.seek(file_offset)
            for text, _, _ in _decompress(file, decompressor):
                parts.append(text[max(0, start - offset) : max(0, stop - offset)])
                offset += len(text)
                if offset >= stop:
                    break
        return b"".join(parts)

    def _index_seek_points(self) -> None:
        """One pass; where places get too many, every other one is let go of."""
        points, spacing, offset = (
            [(0, 0, zlib.decompressobj(GZIP_WBITS))],
            MIN_SEEK_POINT_BYTES,
            0,
        )
        with open(self.path, "rb") as file:
            for text, file_offset, decompressor in _decompress(
                file, zlib.decompressobj(GZIP_WBITS)
            ):
                offset += len(text)
                if offset - points[-1][0] >= spacing:
                    points.append((offset, file_offset, decompressor.copy()))
                if len(points) > MAX_SEEK_POINTS:
                    points, spacing = points[::2], 2 * spacing
        self._places, self.size = points, offset


def _decompress(file: BinaryIO, decompressor: Any) -> Iterator[tuple[bytes, int, Any]]:
    """(text, the place in the file after it, the state there), piece by piece."""
    compressed, at_end = b"", False
    while compressed := compressed or file.read(FEED_BYTES):
        if at_end:  # another part may follow, as in `cat a.gz b.gz`, or zeros
            compressed = compressed.lstrip(b"\0")
            if not compressed:
                continue
        text = decompressor.decompress(compressed)
        at_end, compressed = decompressor.eof, decompressor.unused_data
        if at_end:
            decompressor = zlib.decompressobj(GZIP_WBITS)
        yield text, file.tell() - len(compressed), decompressor
    if not at_end:
        raise EOFError("the gzip data ends too early")


#: Bytes of text that are parsed at a time, about.
PARSE_BLOCK_BYTES = 2**22
#: Bytes that are read at a time to find the end of a line.
LINE_SEARCH_BYTES = 2**13


class CsvFile(TabularFile):
    """The columns of one CSV file, all of them in float64."""

    is_row_major = True

    def __init__(self, path: str, delimiter: str | None, header: bool) -> None:
        super().__init__(path)
        is_tsv = path.lower().removesuffix(".gz").endswith(".tsv")
        self.delimiter = ("\t" if is_tsv else ",") if delimiter is None else delimiter
        is_gzip = path.lower().endswith(".gz")
        with wrap_decoding_errors(path, self.stamp, path, 0):
            self.bytes = GzipBytes(path) if is_gzip else PlainBytes(path)
            self._read_header(header)
            self._find_blocks()

    @property
    def options(self) -> Hashable:
        return self.delimiter, int(self.offsets[0])

    def dtype(self, names: ColumnNames) -> np.dtype:
        return np.dtype(np.float64)

    def unknown_column_hint(self, name: Any) -> str:
        """Other delimiters are common, and so are files without a header."""
        first_name = str(self.names[0])
        for character in ";\t| ":
            if (
                len(self.names) == 1
                and character in first_name
                and character != self.delimiter
            ):
                option = f"delimiter={character!r}"
                return f"values seem to be separated by {character!r}: {option}."
        if isinstance(name, int):
            return (
                f"columns of this file have names: {', '.join(map(repr, self.names))}. "
                "Where its first line is a row, header=False gives them numbers."
            )
        return ""

    def holds_text(self, name: Any) -> bool:
        """Whether half of the first block is; a slip among numbers makes no text."""
        if len(self.bounds) < 2:
            return False
        block = self._text(0)
        with wrap_decoding_errors(self.path, self.stamp, self.path, 0):
            try:
                self._parse_block(block, (name,), _pyarrow().float64(), 0)
            except _pyarrow().ArrowInvalid:
                cells = self._parse_block(block, (name,), _pyarrow().string(), 0)
            else:
                return False
        texts = [_is_text(cell) for cell in cells.column(str(name)).to_pylist()]
        return 2 * sum(texts) >= len(texts) > 0

    def read(self, chunk: int, names: ColumnNames) -> np.ndarray:
        text, arrow = self._text(chunk), _pyarrow()
        first_row = int(self.bounds[chunk])
        try:
            table = self._parse_block(text, names, arrow.float64(), first_row)
        except arrow.ArrowInvalid:
            self._raise_bad_cell(text, names, first_row)
            raise
        self._check_lines(table, chunk)
        return table_to_matrix(self.path, table, tuple(map(str, names)), first_row)

    def read_text(self, chunk: int, name: Any) -> np.ndarray:
        first_row = int(self.bounds[chunk])
        table = self._parse_block(
            self._text(chunk), (name,), _pyarrow().string(), first_row
        )
        self._check_lines(table, chunk)
        texts = column_to_texts(self.path, table, str(name), first_row)
        if (texts == "").any():
            raise missing_value_error(
                self.path, name, first_row + int((texts == "").argmax())
            )
        return texts

    def _text(self, chunk: int) -> bytes:
        return self.bytes.read(*map(int, self.offsets[chunk : chunk + 2]))

    def _check_lines(self, table: Any, chunk: int) -> None:
        first_row, last_row = map(int, self.bounds[chunk : chunk + 2])
        if table.num_rows != last_row - first_row:
            raise FileError(
                f"{self.path}, from row {first_row} on: a value goes over several "
                "lines, which is not supported in CSV files; convert it to Parquet."
            )

    def _read_header(self, header: bool) -> None:
        stop = 0
        line = b""
        while not line.strip() and stop < self.bytes.size:
            start, stop = stop, self._end_of_line(stop)
            line = self.bytes.read(start, stop)
        if not line.strip():
            raise FileError(f"{self.path} is empty.")
        self._begin = stop if header else start
        options = _pyarrow_csv().ParseOptions(delimiter=self.delimiter)
        mode = _pyarrow_csv().ReadOptions(autogenerate_column_names=not header)
        table = _pyarrow_csv().read_csv(_pyarrow().py_buffer(line), mode, options)
        width = len(table.column_names)
        self.names = tuple(table.column_names) if header else tuple(range(width))

    def _find_blocks(self) -> None:
        """Where blocks of whole lines begin, and how many rows are before them."""
        offsets, rows = [self._begin], [0]
        while offsets[-1] < self.bytes.size:
            stop = self._end_of_line(offsets[-1] + PARSE_BLOCK_BYTES)
            block = self.bytes.read(offsets[-1], stop)
            offsets.append(stop)
            rows.append(rows[-1] + sum(1 for line in block.splitlines() if line))
        self.offsets, self.bounds = np.array(offsets), np.array(rows)

    def _end_of_line(self, offset: int) -> int:
        """Where the line ends that a place is in."""
        while offset < self.bytes.size:
            text = self.bytes.read(offset, offset + LINE_SEARCH_BYTES)
            if b"\n" in text:
                return offset + text.index(b"\n") + 1
            offset += len(text)
        return self.bytes.size

    def _parse_block(
        self, text: bytes, names: ColumnNames, kind: Any, first_row: int
    ) -> Any:
        arrow_csv, column_names = _pyarrow_csv(), [str(name) for name in names]
        read = arrow_csv.ReadOptions(column_names=[str(name) for name in self.names])
        convert = arrow_csv.ConvertOptions(
            include_columns=column_names,
            column_types=dict.fromkeys(column_names, kind),
            strings_can_be_null=False,
        )
        parse = arrow_csv.ParseOptions(delimiter=self.delimiter)
        try:
            return arrow_csv.read_csv(_pyarrow().py_buffer(text), read, parse, convert)
        except _pyarrow().ArrowInvalid as error:
            message = str(error)
            if "Expected" in message or "invalid UTF8" in message:
                self._raise_bad_line(text, first_row)
            raise

    def _raise_bad_line(self, text: bytes, first_row: int) -> None:
        """Find the first line that is not UTF-8, or has more or fewer values."""
        width = len(self.names)
        lines = [line for line in text.splitlines() if line]
        for row, line in enumerate(lines, start=first_row):
            where = f"{self.path}, row {row}"
            try:
                known = line.decode()
            except UnicodeDecodeError as error:
                raise FileError(
                    f"{where}: the text is not UTF-8 ({error}). Write it again in this "
                    "encoding."
                ) from error
            values = next(csv.reader([known], delimiter=self.delimiter))
            if len(values) != width and known.count('"') % 2 == 0:
                raise FileError(
                    f"{where} has {len(values)} values where there are {width} "
                    f"columns: {known[:80]!r}. Put values with {self.delimiter!r} in "
                    "them into quotes, and write what is missing."
                )

    def _raise_bad_cell(self, text: bytes, names: ColumnNames, first_row: int) -> None:
        """Find the first cell that is no number, and say where it is."""
        cells = self._parse_block(text, names, _pyarrow().string(), first_row)
        for row in range(cells.num_rows):
            for name in names:
                cell = cells.column(str(name))[row].as_py()
                if _is_text(cell):
                    raise not_a_number_error(self.path, name, first_row + row, cell)


#: What stands for a missing value.
_MISSING_MARKERS = ("", "#N/A", "NA", "N/A", "NULL", "null", "n/a", "NaN", "nan")


def _is_text(cell: str) -> bool:
    """Whether a cell has neither a number nor nothing."""
    try:
        if cell not in _MISSING_MARKERS:
            float(cell)
    except ValueError:
        return True
    return False


def _pyarrow() -> Any:
    return import_optional("pyarrow", "io", "Reading CSV files")


def _pyarrow_csv() -> Any:
    return import_optional("pyarrow.csv", "io", "Reading CSV files")
