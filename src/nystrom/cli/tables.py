"""Tables in files: CSV, TSV, compressed or not, and Parquet; read whole or in pieces,
written atomically.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import pandas as pd

from ..sources.output_files import atomic_write
from .console import CommandError, raise_if_interrupted

#: What is between values, by how a name ends, where the first line does not say.
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
#: Files that are compressed, by how their names end.
OPENERS: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}


def open_text(path: str | Path, mode: str = "rt", name: str | None = None) -> TextIO:
    """A text file, compressed where its name (or the `name` that it will have) says."""
    opener = OPENERS.get(Path(name or path).suffix.lower(), open)
    # Spreadsheets begin files with a mark, which is no part of the first name.
    encoding = "utf-8-sig" if "r" in mode else "utf-8"
    return opener(path, mode, encoding=encoding, newline="")


def default_separator(path: str) -> str:
    """What the name of a file says is between values."""
    ends = [end.lower() for end in Path(path).suffixes]
    return next((SEPARATORS[end] for end in ends if end in SEPARATORS), ",")


def detect_separator(path: str, first_line: str | None = None) -> str:
    """What is between the names of a first line: European programs write semicolons."""
    usual = default_separator(path)
    if first_line is None:
        try:
            with open_text(path) as text:
                first_line = next((line for line in text if line.strip()), "")
        except (UnicodeError, EOFError, OSError, lzma.LZMAError):
            return usual  # whoever reads all of it will tell
    outside = "".join(first_line.split('"')[::2])
    return max(",;\t|", key=lambda sign: (outside.count(sign), sign == usual))


def check_encoding(path: str) -> None:
    """Refuse text that is not UTF-8, with its line and what to do."""
    with OPENERS.get(Path(path).suffix.lower(), open)(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                wide = number == 1 and line[:2] in (b"\xff\xfe", b"\xfe\xff")
                other = "UTF-16" if wide else "WINDOWS-1252"
                raise CommandError(
                    f"{path}, line {number}: this is not UTF-8 text, but perhaps "
                    f"{other}. Save it as UTF-8 (in a spreadsheet: as CSV UTF-8), or "
                    f"convert it: iconv -f {other} -t UTF-8 {path} > new.csv"
                ) from None


COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz")


def table_format(path: str) -> str:
    """ "parquet" or "csv", by the name of a file; "-" is CSV."""
    ends = [end.lower() for end in Path(path).suffixes]
    if len(ends) > 1 and ends[-1] in COMPRESSED_SUFFIXES:
        ends = [end for end in ends[:-1] if end in SEPARATORS]
    if path == "-" or (ends and ends[-1] in SEPARATORS):
        return "csv"
    if ends and ends[-1] in (".parquet", ".pq"):
        return "parquet"
    raise CommandError(
        f"{path}: the name must say what the file is: .csv, .tsv, .csv.gz or .parquet; "
        '"-" is CSV from standard input or to standard output.'
    )


def display_name(path: str) -> str:
    """What a table is called in messages."""
    return "Standard input" if path == "-" else path


#: Lines without anything on them that are skipped while lines are counted.
MAX_BLANK_LINES = 10**6


def format_location(path: str, row: int, column: Any) -> str:
    """Where a value is: rows count from 0, after a line of names."""
    lines = line_numbers(path, [row])
    in_file = f"row {row + 1}" if lines is None else f"line {lines[0]}"
    return f"{display_name(path)}, {in_file}, column {column!r}"


def line_numbers(path: str, rows: list[int]) -> list[int] | None:
    """The lines that rows begin at, as values may go over several; None if unknown."""
    if path == "-" or table_format(path) == "parquet":
        return None
    with open_text(path) as text:
        reader = csv.reader(
            text, delimiter=detect_separator(path), skipinitialspace=True
        )
        begins, last = [], 0
        try:
            for cells in islice(reader, max(rows) + 2 + MAX_BLANK_LINES):
                if cells:
                    begins.append(last + 1)
                last = reader.line_num
                if len(begins) > max(rows) + 1:
                    return [begins[row + 1] for row in rows]
        except csv.Error:
            pass
    return None


def parse_error_message(path: str, separator: str, error: Exception) -> str:
    """The line that has too many values, found by reading again."""
    message = str(error).removeprefix("Error tokenizing data. C error: ").strip()
    if path != "-":
        check_encoding(path)
        with open_text(path) as text:
            reader = csv.reader(text, delimiter=separator, skipinitialspace=True)
            last, width = 0, None
            try:
                for cells in reader:
                    width = len(cells) if width is None and cells else width
                    if width is not None and len(cells) > width:
                        return (
                            f"{path}, line {last + 1} has {len(cells)} values, and "
                            f"the first line {width} names. Where a value has the "
                            f'separator {separator!r} in it, put it into quotes: "…".'
                        )
                    last = reader.line_num
            except csv.Error:
                pass
    return f"{display_name(path)} is not a table: {message}"


#: Rows of a piece: a hundred columns of them take 50 MB.
PIECE_ROWS = 65_536
#: What stands for a missing value in text.
MISSING_MARKERS = [
    "",
    "NA",
    "N/A",
    "n/a",
    "#N/A",
    "<NA>",
    "NaN",
    "nan",
    "null",
    "NULL",
    "None",
]
MISSING_MARKERS += ["?"]
#: 12,5 where values are separated by something else than commas.
DECIMAL_COMMA_PATTERN = r"^([+-]?\d*),(\d+)$"
DECIMAL_POINT_PATTERN = r"^[+-]?\d*\.\d+$"


def read_table(path: str) -> pd.DataFrame:
    """All rows of a file."""
    table = pd.concat(list(read_pieces(path)), ignore_index=True)
    if not len(table):
        raise CommandError(f"{display_name(path)} has a header and no rows.")
    return table


def read_pieces(path: str, size: int = PIECE_ROWS) -> Iterator[pd.DataFrame]:
    """The rows of a file, so many at a time; the first may be empty."""
    if path != "-" and not Path(path).exists():
        raise CommandError(f"There is no file {path}.")
    read = _read_parquet_pieces if table_format(path) == "parquet" else _read_csv_pieces
    first_row = 0
    for piece in read(path, size):
        piece.index = pd.RangeIndex(first_row, first_row + len(piece))
        first_row += len(piece)
        repeated = piece.columns[piece.columns.duplicated()]
        if len(repeated):
            raise CommandError(
                f"{display_name(path)}: two columns are called {repeated[0]!r}; the "
                "first "
                "line has to give each a name of its own."
            )
        yield piece
    raise_if_interrupted()


def _read_csv_pieces(path: str, size: int) -> Iterator[pd.DataFrame]:
    """As text: what is a number is decided by whoever knows the column."""
    source: Any = _StandardInput() if path == "-" else path
    first_line = source.first_line if path == "-" else None
    separator = detect_separator(path, first_line)
    names = None
    try:
        with pd.read_csv(
            source,
            sep=separator,
            header=None,  # ours: pandas renames columns, and takes some for an index
            dtype=str,
            na_filter=False,
            skipinitialspace=True,
            chunksize=size,
        ) as reader:
            for piece in reader:
                raise_if_interrupted()
                if names is None:
                    names, piece = _header_names(piece.iloc[0]), piece.iloc[1:]
                piece.columns = names
                yield _clean_piece(piece, separator)
    except pd.errors.EmptyDataError:
        raise CommandError(f"{display_name(path)} is empty.") from None
    except pd.errors.ParserError as error:
        raise CommandError(parse_error_message(path, separator, error)) from None
    except UnicodeDecodeError as error:
        if path != "-":
            check_encoding(path)
        raise CommandError(
            f"{display_name(path)} is not UTF-8 text: {error}."
        ) from None
    except (OSError, EOFError) as error:
        raise CommandError(f"{display_name(path)} cannot be read: {error}") from None


def _header_names(header: pd.Series) -> list[str]:
    """Of the columns; one without a name has its number."""
    texts = ["" if pd.isna(name) else str(name).strip() for name in header]
    return [name or f"column {place + 1}" for place, name in enumerate(texts)]


def _clean_piece(piece: pd.DataFrame, separator: str) -> pd.DataFrame:
    """Gaps where nothing is given, and points for decimal commas."""
    piece = piece.mask(piece.isin(MISSING_MARKERS))
    if separator == ",":
        return piece
    for name in piece.columns[~piece.columns.duplicated(keep=False)]:
        text = piece[name]
        commas = text.str.match(DECIMAL_COMMA_PATTERN, na=False)
        # With points too they may stand for thousands: nobody can know.
        if commas.any() and not text.str.match(DECIMAL_POINT_PATTERN, na=False).any():
            piece[name] = text.str.replace(DECIMAL_COMMA_PATTERN, r"\1.\2", regex=True)
    return piece


class _StandardInput:
    """Standard input, of which the first line may be looked at before."""

    def __init__(self) -> None:
        self.first_line = self._first = sys.stdin.readline()

    def read(self, size: int = -1) -> str:
        if self._first:
            first, self._first = self._first, ""
            return first
        return sys.stdin.read(size)

    def __iter__(self) -> Iterator[str]:
        return iter(sys.stdin)


def _read_parquet_pieces(path: str, size: int) -> Iterator[pd.DataFrame]:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            if not file.metadata.num_rows:
                yield file.read().to_pandas()
            for batch in file.iter_batches(batch_size=size):
                yield batch.to_pandas()
    except (pa.ArrowException, OSError) as error:
        raise CommandError(f"{path} cannot be read as Parquet: {error}") from None


def check_output_paths(
    writes: Sequence[str | None], reads: Sequence[str], *, overwrite: bool = False
) -> None:
    """Refuse before hours of work what could not, or should not, be written after."""
    paths_in_use = {_resolved(path): path for path in reads if path != "-"}
    for path in writes:
        if path is None or path == "-":
            continue
        if _resolved(path) in paths_in_use:
            raise CommandError(
                f"{path} is read, or written, by this very command, and would be "
                "lost; choose another name."
            )
        paths_in_use[_resolved(path)] = path
        _check_folder(path)
        if os.path.lexists(path) and not overwrite:
            raise CommandError(
                f"{path} exists already; choose another name, or add --overwrite to "
                "replace it."
            )


def _resolved(path: str) -> Path:
    return Path(path).resolve()


def _check_folder(path: str) -> None:
    resolved = _resolved(path)
    if resolved.is_dir():
        raise CommandError(f"{path} is a folder; give the name of a file in it.")
    if resolved.exists() and not resolved.is_file():
        raise CommandError(f"{path} is no file that could be replaced; choose a name.")
    if not resolved.parent.is_dir():
        raise CommandError(
            f"{path}: there is no folder {resolved.parent}; make it first."
        )
    try:
        tempfile.TemporaryFile(dir=resolved.parent).close()
    except OSError as error:
        raise CommandError(
            f"{path} cannot be written: {error.strerror}. Choose another folder."
        ) from None


@contextmanager
def open_table_writer(path: str) -> Iterator[Callable[[pd.DataFrame], None]]:
    """A function that writes rows after those before."""
    if path == "-":
        yield _CsvWriter(sys.stdout, ",")
        sys.stdout.flush()
        return
    with atomic_write(path) as temporary:
        if table_format(path) == "parquet":
            rows = _ParquetTableWriter(str(temporary))
            try:
                yield rows
            finally:
                rows.close()
        else:
            with open_text(temporary, "wt", path) as text:
                yield _CsvWriter(text, default_separator(path))


class _CsvWriter:
    def __init__(self, text: Any, separator: str) -> None:
        self.text, self.separator, self.begun = text, separator, False

    def __call__(self, piece: pd.DataFrame) -> None:
        header, self.begun = not self.begun, True
        piece.to_csv(self.text, index=False, header=header, sep=self.separator)


class _ParquetTableWriter:
    def __init__(self, path: str) -> None:
        self.path = path
        self.writer: Any = None

    def __call__(self, piece: pd.DataFrame) -> None:
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter

        table = pa.Table.from_pandas(piece, preserve_index=False)
        if self.writer is None:
            self.writer = ParquetWriter(self.path, table.schema)
        self.writer.write_table(table.cast(self.writer.schema))

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
