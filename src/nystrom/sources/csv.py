"""CSV files: one pass finds where blocks of lines begin, then each is parsed by itself.

A line of text has no place that can be computed, so the file is read once when it is
opened, and lines are counted. Parquet is read many times faster: for data that is used
more than once, convert it.
"""

from __future__ import annotations

import csv
from collections.abc import Hashable
from typing import Any

import numpy as np

from ..optional import library
from .arrow_columns import as_matrix, as_texts
from .file_errors import FileError, decoding, missing, no_number
from .stored import Names, Stored
from .text_bytes import PlainBytes, UnpackedBytes

#: Bytes of text that are parsed at a time, about.
BLOCK_BYTES = 2**22
#: Bytes that are read at a time to find the end of a line.
LINE_BYTES = 2**13


class CsvFile(Stored):
    """The columns of one CSV file, all of them in float64."""

    by_rows = True

    def __init__(self, path: str, delimiter: str | None, header: bool) -> None:
        super().__init__(path)
        tabs = path.lower().removesuffix(".gz").endswith(".tsv")
        self.delimiter = ("\t" if tabs else ",") if delimiter is None else delimiter
        packed = path.lower().endswith(".gz")
        with decoding(path, self.stamp, path, 0):
            self.bytes = UnpackedBytes(path) if packed else PlainBytes(path)
            self._read_header(header)
            self._find_blocks()

    @property
    def options(self) -> Hashable:
        return self.delimiter, int(self.offsets[0])

    def dtype(self, names: Names) -> np.dtype:
        return np.dtype(np.float64)

    def hint(self, name: Any) -> str:
        """Other delimiters are common, and so are files without a header."""
        known = str(self.names[0])
        for sign in ";\t| ":
            if len(self.names) == 1 and sign in known and sign != self.delimiter:
                return f"values seem to be separated by {sign!r}: delimiter={sign!r}."
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
        with decoding(self.path, self.stamp, self.path, 0):
            try:
                self._parsed(block, (name,), _arrow().float64(), 0)
            except _arrow().ArrowInvalid:
                cells = self._parsed(block, (name,), _arrow().string(), 0)
            else:
                return False
        texts = [_is_text(cell) for cell in cells.column(str(name)).to_pylist()]
        return 2 * sum(texts) >= len(texts) > 0

    def read(self, chunk: int, names: Names) -> np.ndarray:
        text, arrow = self._text(chunk), _arrow()
        first_row = int(self.bounds[chunk])
        try:
            table = self._parsed(text, names, arrow.float64(), first_row)
        except arrow.ArrowInvalid:
            self._refuse_text(text, names, first_row)
            raise
        self._check_lines(table, chunk)
        return as_matrix(self.path, table, tuple(map(str, names)), first_row)

    def read_text(self, chunk: int, name: Any) -> np.ndarray:
        first_row = int(self.bounds[chunk])
        table = self._parsed(self._text(chunk), (name,), _arrow().string(), first_row)
        self._check_lines(table, chunk)
        texts = as_texts(self.path, table, str(name), first_row)
        if (texts == "").any():
            raise missing(self.path, name, first_row + int((texts == "").argmax()))
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
        options = _csv().ParseOptions(delimiter=self.delimiter)
        mode = _csv().ReadOptions(autogenerate_column_names=not header)
        table = _csv().read_csv(_arrow().py_buffer(line), mode, options)
        width = len(table.column_names)
        self.names = tuple(table.column_names) if header else tuple(range(width))

    def _find_blocks(self) -> None:
        """Where blocks of whole lines begin, and how many rows are before them."""
        offsets, rows = [self._begin], [0]
        while offsets[-1] < self.bytes.size:
            stop = self._end_of_line(offsets[-1] + BLOCK_BYTES)
            block = self.bytes.read(offsets[-1], stop)
            offsets.append(stop)
            rows.append(rows[-1] + sum(1 for line in block.splitlines() if line))
        self.offsets, self.bounds = np.array(offsets), np.array(rows)

    def _end_of_line(self, place: int) -> int:
        """Where the line ends that a place is in."""
        while place < self.bytes.size:
            found = self.bytes.read(place, place + LINE_BYTES)
            if b"\n" in found:
                return place + found.index(b"\n") + 1
            place += len(found)
        return self.bytes.size

    def _parsed(self, text: bytes, names: Names, kind: Any, first_row: int) -> Any:
        arrow_csv, wanted = _csv(), [str(name) for name in names]
        read = arrow_csv.ReadOptions(column_names=[str(name) for name in self.names])
        convert = arrow_csv.ConvertOptions(
            include_columns=wanted,
            column_types=dict.fromkeys(wanted, kind),
            strings_can_be_null=False,
        )
        parse = arrow_csv.ParseOptions(delimiter=self.delimiter)
        try:
            return arrow_csv.read_csv(_arrow().py_buffer(text), read, parse, convert)
        except _arrow().ArrowInvalid as error:
            told = str(error)
            if "Expected" in told or "invalid UTF8" in told:
                self._refuse_line(text, first_row)
            raise

    def _refuse_line(self, text: bytes, first_row: int) -> None:
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

    def _refuse_text(self, text: bytes, names: Names, first_row: int) -> None:
        """Find the first cell that is no number, and say where it is."""
        cells = self._parsed(text, names, _arrow().string(), first_row)
        for row in range(cells.num_rows):
            for name in names:
                cell = cells.column(str(name))[row].as_py()
                if _is_text(cell):
                    raise no_number(self.path, name, first_row + row, cell)


#: What stands for a missing value.
_EMPTY = ("", "#N/A", "NA", "N/A", "NULL", "null", "n/a", "NaN", "nan")


def _is_text(cell: str) -> bool:
    """Whether a cell has neither a number nor nothing."""
    try:
        if cell not in _EMPTY:
            float(cell)
    except ValueError:
        return True
    return False


def _arrow() -> Any:
    return library("pyarrow", "io", "Reading CSV files")


def _csv() -> Any:
    return library("pyarrow.csv", "io", "Reading CSV files")
