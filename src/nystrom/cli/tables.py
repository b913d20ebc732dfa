"""Tables in files: CSV, TSV, compressed or not, and Parquet; read whole or in pieces,
written atomically.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import os
import re
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pandas as pd

from ..sources.output_files import atomic_write
from .console import CommandError

#: The separator by the suffix of a file, where the first line does not show another.
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
#: Compressed files, by their suffix.
OPENERS: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
#: Rows of a piece: a hundred columns of them take 50 MB.
PIECE_ROWS = 65_536
#: More is a quote that is not closed.
MAX_CELL_CHARACTERS = 2**24
#: Text that stands for a missing value.
MISSING_MARKERS = ["", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null"]
MISSING_MARKERS += ["NULL", "None", "?"]
#: Bytes that are not UTF-8, and how UTF-16 begins.
UNDECODED_PATTERN = re.compile("[\udc80-\udcff]")
WIDE_MARKS = ("\udcff\udcfe", "\udcfe\udcff")
#: 12,5 where values are separated by something else than commas.
DECIMAL_COMMA_PATTERN = r"^([+-]?\d*),(\d+)$"
DECIMAL_POINT_PATTERN = r"^[+-]?\d*\.\d+$"


class TableFile:
    """A CSV or Parquet file, by its name; "-" is standard input or output."""

    def __init__(self, path: str) -> None:
        self.path = path
        suffixes = ["", ".csv"] if path == "-" else ["", *Path(path).suffixes]
        last = suffixes.pop().lower()
        self.opener: Callable[..., Any] = OPENERS.get(last, open)
        kind = suffixes[-1].lower() if last in OPENERS else last
        self.is_parquet = kind in (".parquet", ".pq")
        #: What its rows are counted in, in messages.
        self.unit = "row" if self.is_parquet else "line"
        self.separator = SEPARATORS.get(kind, ",")
        if not self.is_parquet and kind not in SEPARATORS:
            raise CommandError(
                f"{path}: the name must say what the file is: .csv, .tsv, .csv.gz or "
                '.parquet; "-" is CSV from standard input or to standard output.'
            )

    def __str__(self) -> str:
        return "Standard input" if self.path == "-" else self.path

    def read(self) -> pd.DataFrame:
        """All rows."""
        table = pd.concat(list(self.pieces()))
        if not len(table):
            raise CommandError(f"{self} has a header and no rows.")
        return table

    def pieces(self, n_rows: int | None = None) -> Iterator[pd.DataFrame]:
        """The rows in pieces, the first of which may be empty.

        Rows are labelled by their line, from 1, or by their number in a Parquet file.
        """
        if self.path != "-" and not Path(self.path).exists():
            raise CommandError(f"There is no file {self.path}.")
        read = self._parquet_pieces if self.is_parquet else self._csv_pieces
        for piece in read(n_rows or PIECE_ROWS):
            repeated = piece.columns[piece.columns.duplicated()]
            if len(repeated):
                raise CommandError(
                    f"{self}: two columns are called {repeated[0]!r}; the first line "
                    "has to give each a name of its own."
                )
            yield piece

    def _parquet_pieces(self, n_rows: int) -> Iterator[pd.DataFrame]:
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile

        try:
            with ParquetFile(self.path) as file:
                if not file.metadata.num_rows:
                    yield file.read().to_pandas()
                first = 1
                for batch in file.iter_batches(batch_size=n_rows):
                    piece = batch.to_pandas()
                    piece.index = pd.RangeIndex(first, first + len(piece))
                    first += len(piece)
                    yield piece
        except (pa.ArrowException, OSError) as error:
            raise CommandError(f"{self} cannot be read as Parquet: {error}") from None

    def _csv_pieces(self, n_rows: int) -> Iterator[pd.DataFrame]:
        """As text: whether a column has numbers is decided where all of it is known."""
        with ExitStack() as stack:
            try:
                file: Any = sys.stdin.buffer
                if self.path != "-":
                    file = stack.enter_context(self.opener(self.path, "rb"))
                # Spreadsheets begin files with a mark, which is no part of a name.
                text = TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="")
                stack.callback(text.detach)
                lines = self._checked_lines(text)
                head: list[str] = []
                for line in lines:
                    head.append(line)
                    if line.strip():
                        break
                # European programs write semicolons.
                outside = "".join(head[-1].split('"')[::2])
                separator = max(
                    ",;\t|", key=lambda s: (outside.count(s), s == self.separator)
                )
                records = self._records(chain(head, lines), separator)
                _, header = next(records)
                names = [
                    name.strip() or f"column {i}" for i, name in enumerate(header, 1)
                ]
                is_first = True
                while (piece := [*islice(records, n_rows)]) or is_first:
                    rows = [cells for _, cells in piece]
                    labels = [line for line, _ in piece]
                    table = pd.DataFrame(rows, labels, names, dtype=str)
                    yield _clean(table, decimal_comma=separator != ",")
                    is_first = False
            except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
                raise CommandError(f"{self} cannot be read: {error}") from None

    def _checked_lines(self, text: TextIOWrapper) -> Iterator[str]:
        """The lines, refused where they are not UTF-8, and an empty one at the end."""
        for number, line in enumerate(text, start=1):
            if UNDECODED_PATTERN.search(line):
                is_wide = number == 1 and line[:2] in WIDE_MARKS
                other = "UTF-16" if is_wide else "WINDOWS-1252"
                raise CommandError(
                    f"{self}, line {number}: this is not UTF-8 text, but perhaps "
                    f"{other}. Save it as UTF-8 (in a spreadsheet: as CSV UTF-8), or "
                    f"convert it: iconv -f {other} -t UTF-8 {self.path} > new.csv"
                )
            yield line
        yield "\n"

    def _records(
        self, lines: Iterator[str], separator: str
    ) -> Iterator[tuple[int, list[str]]]:
        """The line that each row begins at, and its cells; all as many as names."""
        csv.field_size_limit(MAX_CELL_CHARACTERS)
        reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
        begin, width, cells = 1, 0, [""]
        try:
            for cells in reader:
                if cells not in ([], [""]):
                    width = width or len(cells)
                    if len(cells) > width:
                        raise CommandError(
                            f"{self}, line {begin} has {len(cells)} values, and the "
                            f"first line {width} names. Where a value has the "
                            f'separator {separator!r} in it, put it into quotes: "…".'
                        )
                    yield begin, cells + [""] * (width - len(cells))
                last, begin = begin, reader.line_num + 1
        except csv.Error as error:
            raise CommandError(f"{self}, line {begin}: {error}.") from None
        if cells:  # the empty line at the end became part of a value
            raise CommandError(f"{self}, line {last}: a quote is not closed.")
        if not width:
            raise CommandError(f"{self} is empty.")

    @contextmanager
    def open_writer(self) -> Iterator[Callable[[pd.DataFrame], None]]:
        """A function that appends rows; the file is complete or not there."""
        with ExitStack() as stack:
            output: Any = sys.stdout
            if self.path != "-":
                output = stack.enter_context(atomic_write(self.path))
            if self.path != "-" and not self.is_parquet:
                text = self.opener(output, "wt", encoding="utf-8", newline="")
                output = stack.enter_context(text)
            parquet: Any = None
            is_first = True

            def write(piece: pd.DataFrame) -> None:
                nonlocal parquet, is_first
                if not self.is_parquet:
                    piece.to_csv(
                        output, index=False, header=is_first, sep=self.separator
                    )
                    is_first = False
                    return
                import pyarrow as pa
                from pyarrow.parquet import ParquetWriter

                table = pa.Table.from_pandas(piece, preserve_index=False)
                if parquet is None:
                    parquet = stack.enter_context(ParquetWriter(output, table.schema))
                parquet.write_table(table.cast(parquet.schema))

            yield write


def _clean(piece: pd.DataFrame, *, decimal_comma: bool) -> pd.DataFrame:
    """Gaps where nothing is given, and points for decimal commas."""
    piece = piece.mask(piece.isin(MISSING_MARKERS))
    if not decimal_comma:
        return piece
    for name in piece.columns[~piece.columns.duplicated(keep=False)]:
        text = piece[name]
        commas = text.str.match(DECIMAL_COMMA_PATTERN, na=False)
        # With points too they may stand for thousands: nobody can know.
        if commas.any() and not text.str.match(DECIMAL_POINT_PATTERN, na=False).any():
            piece[name] = text.str.replace(DECIMAL_COMMA_PATTERN, r"\1.\2", regex=True)
    return piece


def check_output_paths(
    writes: Sequence[str | None], reads: Sequence[str], *, overwrite: bool
) -> None:
    """Refuse before hours of work what could not, or should not, be written after."""
    in_use = {Path(path).resolve() for path in reads if path != "-"}
    for path in writes:
        if path is None or path == "-":
            continue
        resolved = Path(path).resolve()
        if resolved in in_use:
            raise CommandError(
                f"{path} is read, or written, by this very command, and would be "
                "lost; choose another name."
            )
        in_use.add(resolved)
        if resolved.exists() and not resolved.is_file():
            raise CommandError(
                f"{path} is a folder or device; give the name of a file to write."
            )
        try:
            tempfile.TemporaryFile(dir=resolved.parent).close()
        except OSError as error:
            raise CommandError(
                f"{path} cannot be written: {error.strerror}. Choose another folder."
            ) from None
        if os.path.lexists(path) and not overwrite:
            raise CommandError(
                f"{path} exists already; choose another name, or add --overwrite to "
                "replace it."
            )
