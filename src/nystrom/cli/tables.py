"""Tables in files, read by the package's columnar reader and written atomically."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..sources.arrow import CsvFile, CsvOptions
from ..sources.files import FORMATS, FileOptions, bare_suffix, open_files
from ..sources.output import atomic_write
from ..sources.tabular import FileError

#: Rows of a piece: a hundred columns of them take 50 MB.
PIECE_ROWS = 65_536
#: Text that stands for a missing value.
MISSING_MARKERS = ["", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null"]
MISSING_MARKERS += ["NULL", "None", "?"]
#: 12,5 where values are separated by something else than commas.
DECIMAL_COMMA_PATTERN = r"^([+-]?\d*),(\d+)$"
DECIMAL_POINT_PATTERN = r"^[+-]?\d*\.\d+$"


class CommandError(Exception):
    """The data, the model or the disk does not allow it; the message says what does."""


class TableFile:
    """A table, by its path or URL; "-" is CSV from standard input or to standard
    output.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        suffix = ".csv" if path == "-" else bare_suffix(path)
        kind, is_folder = FORMATS.get(suffix), Path(path).is_dir()
        if kind not in ("csv", "parquet", "ipc") and not is_folder:
            raise CommandError(
                f"{path}: the name must say what the file is: .csv, .tsv, .csv.gz, "
                ".parquet or .arrow; - is CSV from standard input or to standard "
                "output."
            )
        self.is_csv = kind == "csv"
        #: What its rows are counted in, in messages, from 1.
        self.unit = "line" if self.is_csv else "row"
        #: Between values; for files that are read, known once the first piece is.
        self.separator = "\t" if suffix == ".tsv" else ","

    def __str__(self) -> str:
        return "Standard input" if self.path == "-" else self.path

    def read(self) -> pd.DataFrame:
        """All rows."""
        return pd.concat(list(self.pieces()))

    def pieces(self) -> Iterator[pd.DataFrame]:
        """The rows in pieces.

        Rows are labelled by their line, from 1, not counting empty lines, or by their
        number in a Parquet or Arrow file. Cells of CSV files are text: whether a column
        has numbers is decided where all of it is known.
        """
        with ExitStack() as stack:
            path = self.path
            if path == "-":
                folder = stack.enter_context(tempfile.TemporaryDirectory())
                path = os.path.join(folder, "standard_input.csv")
                with open(path, "wb") as copy:
                    shutil.copyfileobj(sys.stdin.buffer, copy)
            options = FileOptions(csv=CsvOptions(delimiter="detect"))
            n_rows = 0
            try:
                for file in open_files(path, options):
                    if isinstance(file, CsvFile):
                        self.separator = file.csv.delimiter or ","
                    for piece in self._pieces_of(file):
                        n_rows += len(piece)
                        yield piece
            except FileNotFoundError:
                raise CommandError(f"There is no file {path}.") from None
            except FileError as error:
                text = str(error).replace(os.path.abspath(path), str(self))
                if "UTF-8" in text or r"\x00" in text:
                    raise CommandError(
                        f"{self} is not UTF-8 text. Save it as UTF-8 (in a "
                        "spreadsheet: as CSV UTF-8), or convert it: iconv -f "
                        f"WINDOWS-1252 (or UTF-16) -t UTF-8 {self.path} > new.csv"
                    ) from None
                raise CommandError(text) from None
            if not n_rows:
                raise CommandError(f"{self} has a header and no rows.")

    def _pieces_of(self, file: Any) -> Iterator[pd.DataFrame]:
        names = [n.strip() or f"column {i}" for i, n in enumerate(file.names, 1)]
        for name in names:
            if names.count(name) > 1:
                raise CommandError(
                    f"{self}: two columns are called {name!r}; the first line has to "
                    "give each a name of its own."
                )
        first = 2 if self.is_csv else 1
        for table in file.iter_tables():
            for start in range(0, table.num_rows, PIECE_ROWS):
                piece = table.slice(start, PIECE_ROWS).to_pandas()
                piece.columns = names
                n_lines = np.ones(len(piece), dtype=int)
                if self.is_csv:
                    for name in names:
                        n_lines += piece[name].str.count("\n").to_numpy(int)
                    if piece.iloc[-1].str.endswith("\n").any():
                        line = first + n_lines[:-1].sum()
                        raise CommandError(f"{self}, line {line}: a quote is open.")
                    piece = _clean(piece, decimal_comma=self.separator != ",")
                last = first + np.cumsum(n_lines)
                piece.index = pd.Index(last - n_lines)
                first = int(last[-1])
                yield piece

    @contextmanager
    def open_writer(self) -> Iterator[Callable[[pd.DataFrame], None]]:
        """A function that appends rows; the file is complete or not there."""
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter

        with ExitStack() as stack:
            stream: Any = sys.stdout.buffer
            if self.path != "-":
                temporary = stack.enter_context(atomic_write(self.path))
                packed = Path(self.path).suffix.lower() not in FORMATS
                codec = pa.Codec.detect(self.path).name if packed else None
                output = pa.output_stream(str(temporary), compression=codec)
                stream = stack.enter_context(output)
            writer: Any = None

            def write(piece: pd.DataFrame) -> None:
                nonlocal writer
                is_first, writer = writer is None, writer or stream
                if self.is_csv:
                    options = {"header": is_first, "sep": self.separator}
                    stream.write(piece.to_csv(index=False, **options).encode())
                    return
                table = pa.Table.from_pandas(piece, preserve_index=False)
                if is_first:
                    writer = stack.enter_context(ParquetWriter(stream, table.schema))
                writer.write_table(table.cast(writer.schema))

            if not self.is_csv and FORMATS[bare_suffix(self.path)] != "parquet":
                raise CommandError(f"{self}: tables are written as .csv or .parquet.")
            yield write


def _clean(piece: pd.DataFrame, *, decimal_comma: bool) -> pd.DataFrame:
    """Trimmed text, gaps where nothing is given, points for decimal commas."""
    for name in piece.columns:
        text = piece[name].str.strip()
        piece[name] = text = text.mask(text.isin(MISSING_MARKERS))
        commas = text.str.match(DECIMAL_COMMA_PATTERN, na=False)
        # With points too they may stand for thousands: nobody can know.
        points = text.str.match(DECIMAL_POINT_PATTERN, na=False)
        if decimal_comma and commas.any() and not points.any():
            piece[name] = text.str.replace(DECIMAL_COMMA_PATTERN, r"\1.\2", regex=True)
    return piece


def check_column(
    table: pd.DataFrame, name: str, file: TableFile, purpose: str = ""
) -> None:
    """Refuse a name that a table does not have."""
    if name in table.columns:
        return
    names = [str(column) for column in table.columns]
    by_lower_name = {each.lower(): each for each in names}
    matches = get_close_matches(name.strip().lower(), by_lower_name, n=1)
    suggestion = f"did you mean {by_lower_name[matches[0]]!r}? It" if matches else "it"
    more = ", …" if len(names) > 20 else ""
    raise CommandError(
        f"{file} has no column {name!r}{purpose}; {suggestion} has "
        f"{', '.join(map(repr, names[:20]))}{more}."
    )


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
