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
from .arrow_columns import as_matrix
from .file_errors import FileError, decoding, no_number
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

    def read(self, chunk: int, names: Names) -> np.ndarray:
        start, stop = map(int, self.offsets[chunk : chunk + 2])
        with open(self.path, "rb") as file:
            file.seek(start)
            text = file.read(stop - start)
        arrow, first_row = _arrow(), int(self.bounds[chunk])
        try:
            table = self._parsed(text, names, arrow.float64())
        except arrow.ArrowInvalid:
            self._refuse_text(text, names, first_row)
            raise
        if table.num_rows != self.bounds[chunk + 1] - first_row:
            raise FileError(
                f"{self.path}, from row {first_row} on: a value goes over several "
                "lines, which is not supported in CSV files; convert it to Parquet."
            )
        return as_matrix(self.path, table, tuple(map(str, names)), first_row)

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
                try:
                    if cell not in _EMPTY:
                        float(cell)
                except ValueError:
                    place = first_row + row
                    raise no_number(self.path, name, place, cell) from None


#: What stands for a missing value.
_EMPTY = ("", "#N/A", "NA", "N/A", "NULL", "null", "n/a", "NaN", "nan")


def _arrow() -> Any:
    return library("pyarrow", "io", "Reading CSV files")


def _csv() -> Any:
    return library("pyarrow.csv", "io", "Reading CSV files")
