"""Targets that are read when they are asked for, instead of being held."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _arrays as arrays
from .source import Source, counted


class Targets:
    """Looks like an array of shape (n_rows, n_targets): the rows of a source.

    Parameters
    ----------
    of : Source
        Its rows are the targets.
    single : bool
        Whether they are one number per row, not a list of one: predictions then are
        too.
    names : ndarray of str or bool, or None
        What the numbers stand for, where the file has text, or true and false:
        names[number].
    """

    of: Source
    single: bool
    names: np.ndarray | None
    shape: tuple[int, int]

    def __init__(
        self, of: Source, single: bool = False, names: np.ndarray | None = None
    ) -> None:
        self.of, self.single, self.names = of, single, names
        assert of.n_features is not None
        self.shape = (of.n_rows, of.n_features)

    def on(self, rows: Source) -> Targets:
        """The same targets of other rows."""
        return Targets(rows, self.single, self.names)

    def __repr__(self) -> str:
        classes = "" if self.names is None else f", labels of {len(self.names)} classes"
        return f"Targets({counted(len(self), 'row')} × {self.shape[1]}{classes})"

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, which: Any) -> np.ndarray:
        """Rows by a slice or by their numbers, in float64."""
        if isinstance(which, slice):
            start, stop, step = which.indices(len(self))
            rows = self.of.rows(start, max(start, stop))
            return np.ascontiguousarray(arrays.host_values(rows)[::step])
        return arrays.host_values(self.of.take(np.asarray(which)))
