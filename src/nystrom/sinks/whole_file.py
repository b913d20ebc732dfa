"""A file that is complete or not there at all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .replacing import discard, move, name_beside


@dataclass(frozen=True)
class Layout:
    """What is written: so many rows, their columns and dtype."""

    n_rows: int
    names: tuple[str, ...]
    dtype: np.dtype
    single: bool = False  # one number per row, not a list of one

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of all rows together."""
        return (self.n_rows,) if self.single else (self.n_rows, len(self.names))


class WholeFile(ABC):
    """Is written beside its place, under another name, and moved there at the end.

    Whoever looks there finds all rows, or what was there before.
    """

    anywhere = False

    def __init__(self, path: Path, layout: Layout) -> None:
        self.path, self.layout = path, layout
        self._beside = name_beside(path)

    @property
    def result(self) -> Path:
        """What is handed back to whoever asked for the rows."""
        return self.path

    def open(self) -> None:
        """Begin the file beside its place."""
        try:
            self._begin()
        except BaseException:
            self.close(False)
            raise

    @abstractmethod
    def put(self, start: int, rows: Any) -> None:
        """Keep `rows` as rows `start`, `start + 1`, …"""

    def close(self, complete: bool) -> None:
        """Move the file to its place, or throw it away."""
        try:
            if complete:
                self._end(complete)
                move(self._beside, self.path)
        finally:
            try:
                with suppress(Exception):  # what went wrong before is what matters
                    self._end(False)
            finally:  # Ctrl-C, too
                discard(self._beside)

    @abstractmethod
    def _begin(self) -> None:
        """Make the file."""

    @abstractmethod
    def _end(self, complete: bool) -> None:
        """Write what is left, if it is to be complete, and let go of the file."""
