"""Rows that are written one after the other, whatever order they arrive in."""

from __future__ import annotations

import threading
from abc import abstractmethod
from pathlib import Path
from typing import Any

import numpy as np

from .. import _arrays as arrays
from .whole_file import Layout, WholeFile

#: Numbers that are written at a time, and rows at most.
VALUES, MOST_ROWS = 2**22, 2**18


class InOrder(WholeFile):
    """A file that takes rows in groups of one size, one group after the other.

    What arrives early waits: an engine is never far ahead of the first row missing.
    """

    def __init__(self, path: Path, layout: Layout) -> None:
        super().__init__(path, layout)
        self.group = max(1, min(MOST_ROWS, VALUES // max(1, len(layout.names))))
        self._lock = threading.Lock()
        self._early: dict[int, np.ndarray] = {}
        self._waiting: list[np.ndarray] = []
        self._next = self._written = 0

    def put(self, start: int, rows: Any) -> None:
        rows = arrays.to_host(rows)
        rows = rows.reshape(len(rows), -1).astype(self.layout.dtype, copy=False)
        with self._lock:
            self._early[start] = rows
            while self._next in self._early:
                ready = self._early.pop(self._next)
                self._waiting.append(ready)
                self._next += len(ready)
                if self._next - self._written >= self.group:
                    self._write_groups(self.group)

    def _end(self, complete: bool) -> None:
        if complete:
            self._write_groups(1)
            if self._written != self.layout.n_rows:
                raise RuntimeError(
                    f"{self.path}: {self._written} of {self.layout.n_rows} rows came."
                )
        self._waiting, self._early = [], {}
        self._finish(complete)

    def _write_groups(self, least: int) -> None:
        """Write what waits, group by group, until there are fewer rows than `least`."""
        rows = np.concatenate(self._waiting) if self._waiting else np.empty((0, 1))
        while len(rows) >= least:
            now, rows = rows[: self.group], rows[self.group :]
            self._write(self._written, now)
            self._written += len(now)
        self._waiting = [rows] if len(rows) else []

    @abstractmethod
    def _write(self, start: int, rows: np.ndarray) -> None:
        """Write the next rows, (rows, columns)."""

    @abstractmethod
    def _finish(self, complete: bool) -> None:
        """Let go of the file."""
