"""What is known about a data set: an `Archive` holds the facts, and does nothing.

The functions in it are those in which the sets differ. All else is done once, for all
of them: finding the files (`downloading`), opening them (`original_files`), and turning
numbers into what the user gets (`loading`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

#: X and y as they are in the files, before any category becomes a number.
RawTable = tuple[np.ndarray, np.ndarray]
#: X and y in numbers, and the names of X's columns.
NumericTable = tuple[np.ndarray, np.ndarray, list[str]]


def nothing_more_to_check(X: np.ndarray, y: np.ndarray) -> str:
    """Of a set whose files have known hashes."""
    return ""


@dataclass(frozen=True)
class ArchiveFile:
    """One file of a public archive; `sha256` is None where none has been published."""

    url: str
    filename: str
    sha256: str | None

    @property
    def names_inside(self) -> tuple[str, ...]:
        """What the file can be called inside a zip."""
        bare = self.filename.removesuffix(".zip").removesuffix(".gz")
        return (bare, f"{bare}.gz")


@dataclass(frozen=True)
class Archive:
    """A data set: where it is, what it looks like, how its text is read.

    `n_rows` and `n_columns` are those of the original, without the target; `read_text`
    reads one file of it, `as_numbers` encodes what was read, `draw` generates a table
    that could have been read, and `differs_in` says in what a table is not the original
    (or nothing), beyond its shape. `keeps_parsed` is for text that takes long to read.
    """

    name: str
    title: str
    about: str
    page: str
    licence: str
    citation: str
    files: tuple[ArchiveFile, ...]
    n_rows: int
    n_columns: int
    read_text: Callable[[BinaryIO], RawTable]
    as_numbers: Callable[[np.ndarray, np.ndarray], NumericTable]
    draw: Callable[[int, np.random.Generator], RawTable]
    differs_in: Callable[[np.ndarray, np.ndarray], str] = nothing_more_to_check
    keeps_parsed: bool = False
    preprocessing: str = "all columns have mean 0 and variance 1"
    target_names: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return self.title
