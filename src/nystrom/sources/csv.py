"""CSV files: one pass finds where blocks of lines begin, then each is parsed by itself.

A line of text has no place that can be computed, so the file is read once when it is
opened, and lines are counted. Parquet is read many times faster: for data that is used
more than once, convert it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from ..optional import library
from .arrow_columns import as_matrix, as_texts
from .file_errors import FileError, decoding, missing, no_number
from .stored import Names, Stored

#: Bytes of text that are parsed at a time, about.
BLOCK_BYTES = 2**22


class CsvFile(Stored):
    """The columns of one CSV file, all of them in float64."""

    by_rows = True

    def __init__(self, path: str, delimiter: str | None, header: bool) -> None:
        super().__init__(path)
        tabs = path.lower().endswith(".tsv")
        self.delimiter = ("\t" if tabs else ",") if delimiter is None else delimiter
        with decoding(path, self.stamp, path, 0):
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
                self._parsed(block, (name,), _arrow().float64())
            except _arrow().ArrowInvalid:
                cells = self._parsed(block, (name,), _arrow().string())
            else:
                return False
        texts = [_is_text(cell) for cell in cells.column(str(name)).to_pylist()]
        return 2 * sum(texts) >= len(texts) > 0

    def read(self, chunk: int, names: Names) -> np.ndarray:
        text, arrow = self._text(chunk), _arrow()
        first_row = int(self.bounds[chunk])
        try:
            table = self._parsed(text, names, arrow.float64())
        except arrow.ArrowInvalid:
            self._refuse_text(text, names, first_row)
            raise
        self._check_lines(table, chunk)
        return as_matrix(self.path, table, tuple(map(str, names)), first_row)

    def read_text(self, chunk: int, name: Any) -> np.ndarray:
        table = self._parsed(self._text(chunk), (name,), _arrow().string())
        self._check_lines(table, chunk)
        texts = as_texts(self.path, table, str(name), int(self.bounds[chunk]))
        if (texts == "").any():
            row = int(self.bounds[chunk]) + int((texts == "").argmax())
            raise missing(self.path, name, row)
        return texts

    def _text(self, chunk: int) -> bytes:
        start, stop = map(int, self.offsets[chunk : chunk + 2])
        with open(self.path, "rb") as file:
            file.seek(start)
            return file.read(stop - start)

    def _check_lines(self, table: Any, chunk: int) -> None:
        first_row, last_row = map(int, self.bounds[chunk : chunk + 2])
        if table.num_rows != last_row - first_row:
            raise FileError(
                f"{self.path}, from row {first_row} on: a value goes over several "
                "lines, which is not supported in CSV files; convert it to Parquet."
            )

    def _read_header(self, header: bool) -> None:
        with open(self.path, "rb") as file:
            line = file.readline()
            while line and not line.strip():
                line = file.readline()
            self._begin = file.tell() if header else file.tell() - len(line)
        if not line:
            raise FileError(f"{self.path} is empty.")
        options = _csv().ParseOptions(delimiter=self.delimiter)
        mode = _csv().ReadOptions(autogenerate_column_names=not header)
        table = _csv().read_csv(_arrow().py_buffer(line), mode, options)
        width = len(table.column_names)
        self.names = tuple(table.column_names) if header else tuple(range(width))

    def _find_blocks(self) -> None:
        """Where blocks of whole lines begin, and how many rows are before them."""
        offsets, rows = [self._begin], [0]
        with open(self.path, "rb") as file:
            file.seek(self._begin)
            while block := file.read(BLOCK_BYTES):
                block += file.readline()
                n_lines = sum(1 for line in block.splitlines() if line)
                offsets.append(file.tell())
                rows.append(rows[-1] + n_lines)
        self.offsets, self.bounds = np.array(offsets), np.array(rows)

    def _parsed(self, text: bytes, names: Names, kind: Any) -> Any:
        csv, wanted = _csv(), [str(name) for name in names]
        read = csv.ReadOptions(column_names=[str(name) for name in self.names])
        convert = csv.ConvertOptions(
            include_columns=wanted,
            column_types=dict.fromkeys(wanted, kind),
            strings_can_be_null=False,
        )
        parse = csv.ParseOptions(delimiter=self.delimiter)
        return csv.read_csv(_arrow().py_buffer(text), read, parse, convert)

    def _refuse_text(self, text: bytes, names: Names, first_row: int) -> None:
        """Find the first cell that is no number, and say where it is."""
        cells = self._parsed(text, names, _arrow().string())
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
