"""Files that a command writes, complete or not at all, and never over what it reads."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from nystrom.sinks import replacing

from .failures import CommandError
from .kinds import kind_of
from .plain_text import opened, separator_of


def check_places(
    writes: Sequence[str | None], reads: Sequence[str], *, overwrite: bool = False
) -> None:
    """Refuse before hours of work what could not, or should not, be written after."""
    taken = {_resolved(path): path for path in reads if path != "-"}
    for path in writes:
        if path is None or path == "-":
            continue
        if _resolved(path) in taken:
            raise CommandError(
                f"{path} is read, or written, by this very command, and would be "
                "lost; choose another name."
            )
        taken[_resolved(path)] = path
        _check_folder(path)
        if os.path.lexists(path) and not overwrite:
            raise CommandError(
                f"{path} exists already; choose another name, or add --overwrite to "
                "replace it."
            )


def _resolved(path: str) -> Path:
    return Path(path).resolve()


def _check_folder(path: str) -> None:
    place = _resolved(path)
    if place.is_dir():
        raise CommandError(f"{path} is a folder; give the name of a file in it.")
    if place.exists() and not place.is_file():
        raise CommandError(f"{path} is no file that could be replaced; choose a name.")
    if not place.parent.is_dir():
        raise CommandError(f"{path}: there is no folder {place.parent}; make it first.")
    try:
        tempfile.TemporaryFile(dir=place.parent).close()
    except OSError as error:
        raise CommandError(
            f"{path} cannot be written: {error.strerror}. Choose another folder."
        ) from None


@contextmanager
def rows_to(path: str) -> Iterator[Callable[[pd.DataFrame], None]]:
    """A function that writes rows after those before."""
    if path == "-":
        yield _CsvRows(sys.stdout, ",")
        sys.stdout.flush()
        return
    with replacing(path) as beside:
        if kind_of(path) == "parquet":
            rows = _ParquetRows(str(beside))
            try:
                yield rows
            finally:
                rows.close()
        else:
            with opened(beside, "wt", path) as text:
                yield _CsvRows(text, separator_of(path))


class _CsvRows:
    def __init__(self, text: Any, separator: str) -> None:
        self.text, self.separator, self.begun = text, separator, False

    def __call__(self, piece: pd.DataFrame) -> None:
        header, self.begun = not self.begun, True
        piece.to_csv(self.text, index=False, header=header, sep=self.separator)


class _ParquetRows:
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
