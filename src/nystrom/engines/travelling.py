"""How a source travels to where its tiles are worked on.

A source that is small (paths and options, or how to make its rows) goes there as it is,
and reads its rows there. Weights and targets that are held here go along with each
block of tiles, and so do the rows themselves where the source holds them.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import _arrays as arrays
from ..sources import Block, Source
from ..sources import weights as row_weights
from . import engine

try:  # Dask brings it: functions that are of no module can travel too
    from cloudpickle import Pickler
except ImportError:
    from pickle import Pickler  # type: ignore[assignment]

#: Bytes up to which a source is sent as it is.
SMALL = 2**20


@dataclass(frozen=True)
class Window:
    """Some entries of a long array, by the numbers that they have in it."""

    start: int
    values: Any

    def __getitem__(self, wanted: slice) -> np.ndarray:
        return self.values[wanted.start - self.start : wanted.stop - self.start]


class Arrived(Source):
    """Tiles that were read where the source is held, by their first row."""

    def __init__(self, n_rows: int, tiles: list[tuple[Block, int]]) -> None:
        self.n_rows = n_rows
        self.tiles = {tile.start: (tile, length) for tile, length in tiles}

    def block(self, start: int, stop: int) -> Block:
        tile, length = self.tiles[start]
        weights = row_weights.ones(length) if tile.weights is None else tile.weights
        return replace(tile, X=arrays.aligned(tile.X), weights=weights)

    def rows(self, start: int, stop: int) -> Any:
        return self.block(start, stop).X

    def take(self, indices: np.ndarray) -> Any:
        raise NotImplementedError("Only whole tiles have travelled.")


@dataclass(frozen=True, eq=False)
class Part:
    """What some tiles need besides the source: columns of it, or the tiles."""

    things: list[Any]

    def fingerprint(self) -> tuple[bytes, int]:
        """The same for the same content; and how many bytes that is."""
        found, stream, n_bytes = hashlib.blake2b(digest_size=16), io.BytesIO(), 0

        def look_at(buffer: pickle.PickleBuffer) -> None:
            nonlocal n_bytes
            found.update(buffer.raw())
            n_bytes += buffer.raw().nbytes

        Pickler(stream, protocol=5, buffer_callback=look_at).dump(self.things)
        found.update(stream.getbuffer())
        return found.digest(), n_bytes + stream.tell()


def pickled(value: Any) -> bytes:
    """The value, ready to travel."""
    stream = io.BytesIO()
    Pickler(stream, protocol=5).dump(value)
    return stream.getvalue()


class AsItIs:
    """A source that need not travel."""

    def __init__(self, source: Source) -> None:
        self.source, self.n_rows = source, source.n_rows

    def unpacked(self, part: Part | None, stand_ins: Sequence[Any] = ()) -> Source:
        """The source."""
        return self.source


class Parcel:
    """A source made ready to travel.

    What is of the class `lazily` in it stays behind: `left` lists it, and `unpacked`
    puts in what stands for it there.
    """

    def __init__(self, source: Source, lazily: type | tuple = ()) -> None:
        self.source, self.n_rows = source, source.n_rows
        self.columns, self.left = list(_long_columns(source)), list[Any]()
        self.content: bytes | None
        stream = _Limited()
        pickler = _Leaving(stream, protocol=5)
        pickler.columns, pickler.left, pickler.lazily = self.columns, self.left, lazily
        try:
            pickler.dump(source)
            self.content = stream.getvalue()
        except _TooLargeError:
            self.content, self.columns, self.left = None, [], []

    def part(self, first: int, last: int) -> Part | None:
        """What tiles first to last need besides the content; None for nothing."""
        start, stop = bounds(first, last, self.n_rows)
        if self.content is not None:
            things = [Window(start, column[start:stop]) for column in self.columns]
            return Part(things) if things else None
        starts = range(start, stop, engine.TILE)
        return Part([self._tile(a, min(a + engine.TILE, stop)) for a in starts])

    def _tile(self, start: int, stop: int) -> Any:
        block = self.source.block(start, stop)
        if row_weights.all_alike(block.weights):
            return replace(block, weights=None), len(block)  # type: ignore[arg-type]
        return block, len(block)

    def unpacked(self, part: Part | None, stand_ins: Sequence[Any] = ()) -> Source:
        """The source as it is where the work is done, for the tiles of one part."""
        things = [] if part is None else part.things
        if self.content is None:
            return Arrived(self.n_rows, things)
        unpickler = _Finding(io.BytesIO(self.content))
        unpickler.found = {"column": things, "left": stand_ins}
        return unpickler.load()

    def __getstate__(self) -> dict[str, Any]:
        return {"content": self.content, "n_rows": self.n_rows}


def bounds(first: int, last: int, n_rows: int) -> tuple[int, int]:
    """The rows of tiles first to last."""
    return first * engine.TILE, min(last * engine.TILE, n_rows)


def _long_columns(source: Any) -> Iterator[np.ndarray]:
    """Weights and targets that are not small, of a source or those it is made of."""
    for column in (source._weights, source.targets):
        if isinstance(column, np.ndarray) and column.nbytes > SMALL // 16:
            yield column
    for inner in vars(source).values():
        if isinstance(inner, Source):
            yield from _long_columns(inner)


class _TooLargeError(Exception):
    pass


class _Limited(io.BytesIO):
    """A stream for what is small."""

    def write(self, data: Any) -> int:
        if self.tell() + memoryview(data).nbytes > SMALL:
            raise _TooLargeError
        return super().write(data)


class _Leaving(Pickler):
    """Leaves out what travels another way."""

    columns: list[np.ndarray]
    left: list[Any]
    lazily: type | tuple

    def persistent_id(self, thing: Any) -> tuple[str, int] | None:
        if isinstance(thing, np.ndarray):
            if thing.nbytes > SMALL and not any(c is thing for c in self.columns):
                raise _TooLargeError  # before all of a memory map is read
            for place, column in enumerate(self.columns):
                if column is thing:
                    return "column", place
        elif self.lazily and isinstance(thing, self.lazily):
            if getattr(thing, "carried", 0):  # data of a graph is held here
                raise _TooLargeError
            self.left.append(thing)
            return "left", len(self.left) - 1
        return None


class _Finding(pickle.Unpickler):
    """Puts in what has come another way."""

    found: dict[str, Any]

    def persistent_load(self, what: tuple[str, int]) -> Any:
        kind, place = what
        return self.found[kind][place]
