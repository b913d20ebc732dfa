"""What a sink can do, and sinks in memory: one array, and several side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from .. import _arrays as arrays
from .._arrays import Array


class Sink(Protocol):
    """Takes the rows that a pass makes, by the number of the first of them.

    An engine opens a sink before the first rows and closes it when the pass is over,
    `complete` or not. Rows arrive from several threads, in any order.
    """

    #: Whether rows may be put from another process: into a file, say, but not an array.
    anywhere: bool

    def open(self) -> None:
        """Make ready for rows, in every process that puts some."""

    def put(self, start: int, rows: Any) -> None:
        """Keep `rows` as rows `start`, `start + 1`, …"""

    def close(self, complete: bool) -> None:
        """Be done; what is not complete may be thrown away."""


@contextmanager
def opened(sink: Sink) -> Iterator[None]:
    """A sink that is open in a block of code; complete if that comes to its end."""
    complete = False
    try:
        sink.open()
        yield
        complete = True
    finally:
        sink.close(complete)


class ArraySink:
    """One array: made here, on the host in float64 unless `like` says otherwise."""

    anywhere = False

    def __init__(self, shape: tuple[int, ...], like: Any = None, dtype: Any = None):
        if like is None or arrays.namespace(like) is np:
            self.array = np.empty(shape, dtype=dtype or np.float64)
        else:
            xp = arrays.namespace(like)
            self.array = xp.empty(
                shape, dtype=dtype or like.dtype, device=arrays.device(like)
            )

    @classmethod
    def into(cls, array: Array) -> ArraySink:
        """The sink that fills an array there is."""
        sink = cls.__new__(cls)
        sink.array = array
        return sink

    @property
    def result(self) -> Array:
        """The array."""
        return self.array

    def open(self) -> None:
        pass

    def put(self, start: int, rows: Array) -> None:
        if not arrays.on_host(rows):  # made on a device: it may be another one
            rows = arrays.beside(rows, self.array, self.array.dtype)
        self.array[start : start + rows.shape[0], ...] = rows

    def close(self, complete: bool) -> None:
        pass


class ThenSink:
    """What a function makes of the rows, to another sink."""

    def __init__(self, sink: Any, then: Callable[[Any], Any]) -> None:
        self.sink, self.then, self.anywhere = sink, then, sink.anywhere

    @property
    def result(self) -> Any:
        """What the other sink hands back."""
        return self.sink.result

    def open(self) -> None:
        self.sink.open()

    def put(self, start: int, rows: Any) -> None:
        self.sink.put(start, self.then(rows))

    def close(self, complete: bool) -> None:
        self.sink.close(complete)


class SplitSink:
    """Each part of a tuple to a sink of its own."""

    def __init__(self, *sinks: Sink) -> None:
        self.sinks = sinks
        self.anywhere = all(sink.anywhere for sink in sinks)

    def open(self) -> None:
        for sink in self.sinks:
            sink.open()

    def put(self, start: int, rows: tuple[Any, ...]) -> None:
        for sink, part in zip(self.sinks, rows, strict=True):
            sink.put(start, part)

    def close(self, complete: bool) -> None:
        for sink in self.sinks:
            sink.close(complete)
