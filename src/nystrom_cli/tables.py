"""Tables in files: CSV, gzipped CSV, TSV and Parquet, whole or piece by piece."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import pandas as pd

from .failures import CommandError

#: Rows of a piece: a hundred columns of them take 50 MB.
PIECE = 65_536
#: What stands for a missing value in text.
MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?"]
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}


def kind_of(path: str) -> str:
    """ "parquet" or "csv", by the name of a file; "-" is CSV."""
    ends = [end.lower() for end in Path(path).suffixes]
    if path == "-" or (ends and ends[-1] in SEPARATORS):
        return "csv"
    if ends and ends[-1] in (".gz", ".bz2", ".xz", ".zst") and len(ends) > 1:
        return "csv"
    if ends and ends[-1] in (".parquet", ".pq"):
        return "parquet"
    raise CommandError(
        f"{path}: the name must say what the file is: .csv, .tsv, .csv.gz or .parquet; "
        '"-" is CSV from standard input or to standard output.'
    )


def whole(path: str) -> pd.DataFrame:
    """All rows of a file."""
    found = pd.concat(list(pieces(path)), ignore_index=True)
    if not len(found):
        raise CommandError(f"{path} has a header and no rows.")
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
            raise CommandError(f"{path}: two columns are called {repeated[0]!r}.")
        yield piece


def _csv_pieces(path: str, size: int) -> Iterator[pd.DataFrame]:
    """As text: what is a number is decided by whoever knows the column."""
    source: Any = _StandardInput() if path == "-" else path
    ends = [end.lower() for end in Path(path).suffixes]
    separator = next((SEPARATORS[end] for end in ends if end in SEPARATORS), ",")
    try:
        with pd.read_csv(
            source,
            sep=separator,
            dtype=str,
            keep_default_na=False,
            na_values=MISSING,
            skipinitialspace=True,
            chunksize=size,
        ) as reader:
            yield from reader
    except pd.errors.EmptyDataError:
        raise CommandError(f"{_name(path)} is empty.") from None
    except pd.errors.ParserError as error:
        if getattr(source, "stopped", False):
            raise KeyboardInterrupt from None
        told = str(error).removeprefix("Error tokenizing data. C error: ")
        raise CommandError(f"{_name(path)} is not a table: {told.strip()}") from None
    except UnicodeDecodeError as error:
        raise CommandError(f"{_name(path)} is not UTF-8 text: {error}.") from None
    except (OSError, EOFError) as error:
        raise CommandError(f"{_name(path)} cannot be read: {error}") from None


class _StandardInput:
    """Remembers that it was stopped by Ctrl-C, which pandas takes for a bad file."""

    stopped = False

    def read(self, size: int = -1) -> str:
        try:
            return sys.stdin.read(size)
        except KeyboardInterrupt:
            self.stopped = True
            raise

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


def _name(path: str) -> str:
    return "Standard input" if path == "-" else path


def check_can_write(path: str) -> None:
    """Refuse before hours of work what could not be written after them."""
    if path == "-":
        return
    folder = Path(path).resolve().parent
    if not folder.is_dir():
        raise CommandError(f"{path}: there is no folder {folder}; make it first.")


class Writer:
    """A table that is written piece by piece, complete or not at all."""

    def __init__(self, path: str) -> None:
        self.path, self.kind = path, kind_of(path)
        check_can_write(path)
        self._beside = Path(path).with_name(f".{Path(path).name}.part")
        self._parquet: Any = None
        self._text: TextIO | None = None
        if self.kind == "csv":
            self._text = sys.stdout if path == "-" else self._opened()
        self._begun = False

    def _opened(self) -> Any:
        import gzip

        if Path(self.path).suffix == ".gz":
            return gzip.open(self._beside, "wt", encoding="utf-8", newline="")
        return self._beside.open("w", encoding="utf-8", newline="")

    def write(self, piece: pd.DataFrame) -> None:
        """These rows, after those before."""
        if self._text is not None:
            ends = Path(self.path).suffixes
            separator = "\t" if ".tsv" in ends else ","
            header = not self._begun
            piece.to_csv(self._text, index=False, header=header, sep=separator)
        else:
            import pyarrow as pa
            from pyarrow.parquet import ParquetWriter

            table = pa.Table.from_pandas(piece, preserve_index=False)
            if self._parquet is None:
                self._parquet = ParquetWriter(str(self._beside), table.schema)
            self._parquet.write_table(table.cast(self._parquet.schema))
        self._begun = True

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self._parquet is not None:
            self._parquet.close()
        if self.path == "-":
            sys.stdout.flush()
            return
        if self._text is not None:
            self._text.close()
        if kind is None and self._begun:
            self._beside.replace(self.path)
        else:
            self._beside.unlink(missing_ok=True)
