"""What can be wrong with a file of rows, each said once, with file, column and row."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np


class FileError(ValueError):
    """A file does not hold the rows that were asked for."""


@dataclass(frozen=True)
class Stamp:
    """Size and time of a file's last change: what it was when it was opened."""

    size: int
    mtime_ns: int

    @classmethod
    def of(cls, path: str) -> Stamp:
        """The stamp of a file as it is now."""
        try:
            found = os.stat(path)
        except OSError as error:
            raise FileError(f"{path} cannot be read: {error.strerror}.") from error
        return cls(found.st_size, found.st_mtime_ns)

    def check(self, path: str) -> None:
        """Refuse a file that is another one by now."""
        now = Stamp.of(path)
        if now == self:
            return
        change = "was written to"
        if now.size != self.size:
            change = f"went from {self.size} to {now.size} bytes"
        raise changed(path, change)


def changed(path: str, change: str = "was written to") -> FileError:
    """The error for a file that is another one by now."""
    return FileError(
        f"{path} {change} since it was opened; rows of two versions do not fit "
        "together. Open it again once it is complete."
    )


@contextmanager
def decoding(path: str, stamp: Any, stamped: str, start: int) -> Iterator[None]:
    """Around a library that reads rows from `start` on: its errors name the file."""
    try:
        yield
    except (FileError, ImportError, MemoryError, AttributeError, TypeError):
        raise
    except Exception as error:
        stamp.check(stamped)
        if isinstance(error, UnicodeDecodeError) or "invalid UTF8" in str(error):
            raise FileError(
                f"{path}, from row {start} on: the text is not UTF-8 ({error}). Write "
                "it again in this encoding."
            ) from error
        raise FileError(
            f"{path}, from row {start} on: {error or type(error).__name__}. The file "
            "is damaged or was cut off; write it again."
        ) from error


def place(path: str, column: Any, row: int) -> str:
    """Where something is: row numbers count from 0, as landmarks' do."""
    return f"{path}, column {column!r}, row {row}"


def missing(path: str, column: Any, row: int) -> FileError:
    """The error for a cell that is empty."""
    return FileError(
        f"{place(path, column, row)}: a value is missing. Impute it (no target), "
        "drop such rows, or leave the column out with columns=[...]."
    )


def no_number(path: str, column: Any, row: int, value: Any) -> FileError:
    """The error for a cell with text, or with a number that is not finite."""
    if isinstance(value, float):
        return FileError(
            f"{place(path, column, row)}: {value} is not a finite number. Replace it, "
            "drop such rows, or leave the column out with columns=[...]."
        )
    return FileError(
        f"{place(path, column, row)}: {value!r} is not a number. Encode it as one, or "
        "leave the column out with columns=[...]."
    )


def no_numbers(path: str, column: Any, kind: Any) -> FileError:
    """The error for a column of something else."""
    return FileError(
        f"{path}, column {column!r} holds {kind} values, not numbers. Encode them as "
        "numbers, or leave the column out with columns=[...]."
    )


def cut_off(path: str, row: int) -> FileError:
    """The error for rows that are not there."""
    return FileError(
        f"{path} ends before row {row}: the file is damaged or was cut off; write it "
        "again."
    )


def refuse_not_finite(
    X: np.ndarray, path: str, columns: Sequence[Any], numbers: Any
) -> None:
    """Refuse NaN and infinity in rows of these numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum()):
            return
    # The sum may overflow where no entry does.
    rows, places = np.nonzero(~np.isfinite(X))
    if not len(rows):
        return
    row, column = int(numbers[rows[0]]), columns[places[0]]
    value = X[rows[0], places[0]]
    if np.isnan(value):
        raise missing(path, column, row)
    raise no_number(path, column, row, float(value))
