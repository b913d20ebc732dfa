"""Rows that are stored nowhere: a function makes them when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _arrays as arrays
from .source import Source


class Made(Source):
    """The rows that a function makes, chunk by chunk.

    Parameters
    ----------
    make : callable
        `make(start, stop)` gives rows start to stop as an array, always the same ones,
        whenever and wherever it is called. It is called with whole chunks: start is a
        multiple of `chunk`, and stop the next one or the number of rows. To run in
        other processes it must be picklable: a function of a module, or a value with
        `__call__`.
    n_rows, n_features : int
        The shape of all rows.
    chunk : int
        Rows that are made at a time. Passes ask for 1024 rows from a multiple of 1024
        on, and fewer calls are made where `chunk` divides that.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import select_landmarks, sources
    >>> def walk(start, stop):
    ...     t = np.arange(start, stop)
    ...     return np.column_stack([np.cos(t), np.sin(t), t / 1e6])
    >>> landmarks = select_landmarks(
    ...     sources.Made(walk, 1_000_000, 3), n_landmarks=20, sampler="uniform",
    ...     random_state=0,
    ... )
    >>> landmarks.points.shape
    (20, 3)
    """

    make: Callable[[int, int], Any]
    chunk: int
    n_rows: int
    n_features: int | None
    #: Some rows cost as much as their chunks.
    at_hand = False

    def __init__(
        self,
        make: Callable[[int, int], Any],
        n_rows: int,
        n_features: int,
        chunk: int = 1024,
    ) -> None:
        self.make, self.chunk = make, chunk
        self.n_rows, self.n_features = n_rows, n_features

    def rows(self, start: int, stop: int) -> Any:
        first, last = start // self.chunk, -(-stop // self.chunk)
        if last - first == 1:
            begun = first * self.chunk
            return arrays.slice_rows(self._chunk(first), start - begun, stop - begun)
        return self.take(np.arange(start, stop))

    def take(self, indices: np.ndarray) -> Any:
        order = np.argsort(indices, kind="stable")
        wanted = np.asarray(indices, dtype=np.intp)[order]
        # Each chunk is made once, and of it only what is wanted is kept.
        chunks, begun = np.unique(wanted // self.chunk, return_index=True)
        found = [
            arrays.take_rows(self._chunk(chunk), rows - chunk * self.chunk)
            for chunk, rows in zip(chunks, np.split(wanted, begun[1:]), strict=False)
        ]
        if not found:
            return arrays.slice_rows(self._chunk(0), 0, 0)
        back = np.empty(len(order), dtype=np.intp)
        back[order] = np.arange(len(order))
        return arrays.take_rows(arrays.stack_rows(found), back)

    def _chunk(self, number: int) -> Any:
        start = int(number) * self.chunk
        stop = min(start + self.chunk, self.n_rows)
        rows = arrays.as_float(self.make(start, stop))
        if tuple(rows.shape) != (stop - start, self.n_features):
            raise ValueError(
                f"{self.make!r} made rows of shape {tuple(rows.shape)} for rows "
                f"{start} to {stop}; it must be {(stop - start, self.n_features)}."
            )
        return rows
