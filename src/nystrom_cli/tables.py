"""Tables in files: CSV, compressed CSV, TSV and Parquet, whole or piece by piece."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from . import interrupts
from .failures import CommandError
from .kinds import kind_of, shown
from .places import not_a_table
from .plain_text import check_encoding, separator_in

#: Rows of a piece: a hundred columns of them take 50 MB.
PIECE = 65_536
#: What stands for a missing value in text.
MISSING = ["", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL", "None"]
MISSING += ["?"]
#: 12,5 where values are separated by something else than commas.
DECIMAL_COMMA = r"^([+-]?\d*),(\d+)$"
DECIMAL_POINT = r"^[+-]?\d*\.\d+$"


def whole(path: str) -> pd.DataFrame:
    """All rows of a file."""
    found = pd.concat(list(pieces(path)), ignore_index=True)
    if not len(found):
        raise CommandError(f"{shown(path)} has a header and no rows.")
    return found


def pieces(path: str, size: int = PIECE) -> Iterator[pd.DataFrame]:
    """The rows of a file, so many at a time; the first may be empty."""
    if path != "-" and not Path(path).exists():
        raise CommandError(f"There is no file {path}.")
    read = _parquet_pieces if kind_of(path) == "parquet" else _csv_pieces
    begun = 0
    for piece in read(path, size):
        piece.index = pd.RangeIndex(begun, begun + len(piece))
        begun += len(piece)
        repeated = piece.columns[piece.columns.duplicated()]
        if len(repeated):
            raise CommandError(
                f"{shown(path)}: two columns are called {repeated[0]!r}; the first "
                "line has to give each a name of its own."
            )
        yield piece
    interrupts.pass_on()


def _csv_pieces(path: str, size: int) -> Iterator[pd.DataFrame]:
    """As text: what is a number is decided by whoever knows the column."""
    source: Any = _StandardInput() if path == "-" else path
    begins = source.first_line if path == "-" else None
    separator = separator_in(path, begins)
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
                interrupts.pass_on()
                if names is None:
                    names, piece = _names(piece.iloc[0]), piece.iloc[1:]
                piece.columns = names
                yield _read(piece, separator)
    except pd.errors.EmptyDataError:
        raise CommandError(f"{shown(path)} is empty.") from None
    except pd.errors.ParserError as error:
        raise CommandError(not_a_table(path, separator, error)) from None
    except UnicodeDecodeError as error:
        if path != "-":
            check_encoding(path)
        raise CommandError(f"{shown(path)} is not UTF-8 text: {error}.") from None
    except (OSError, EOFError) as error:
        raise CommandError(f"{shown(path)} cannot be read: {error}") from None


def _names(header: pd.Series) -> list[str]:
    """Of the columns; one without a name has its number."""
    texts = ["" if pd.isna(name) else str(name).strip() for name in header]
    return [name or f"column {place + 1}" for place, name in enumerate(texts)]


def _read(piece: pd.DataFrame, separator: str) -> pd.DataFrame:
    """Gaps where nothing is given, and points for decimal commas."""
    piece = piece.mask(piece.isin(MISSING))
    if separator == ",":
        return piece
    for name in piece.columns[~piece.columns.duplicated(keep=False)]:
        text = piece[name]
        commas = text.str.match(DECIMAL_COMMA, na=False)
        # With points too they may stand for thousands: nobody can know.
        if commas.any() and not text.str.match(DECIMAL_POINT, na=False).any():
            piece[name] = text.str.replace(DECIMAL_COMMA, r"\1.\2", regex=True)
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


def _parquet_pieces(path: str, size: int) -> Iterator[pd.DataFrame]:
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
