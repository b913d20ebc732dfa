"""An engine around an engine, which saves what passes have found.

A run that is begun again goes the same way: what lies between its passes follows from
their results and the seed. So passes are numbered, and those that were saved are not
run again; their results are given back.

Sums are saved, finished or not. Rows that a pass makes are saved when it is finished,
and if they are few: features and predictions of many rows are made again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import sinks
from ..sinks import Sink
from ..sources import Block, Source
from . import engine
from .engine import Engine
from .fingerprint import digest, fingerprint
from .progress import Hook, note
from .run_file import Part, PassKey, RunFile
from .summing import FAN_IN, Tree, whole_sum
from .tiles import count_tiles

_LOG = logging.getLogger("nystrom")
#: Bytes of rows that are saved with a run.
MOST_BYTES = 2**24


class Checkpoint(Engine):
    """Runs passes on another engine and keeps their results in a file.

    Parameters
    ----------
    inner : Engine
        What runs the passes.
    run : RunFile
        Where their results are kept, inside of `run.running()`.
    """

    inner: Engine
    run: RunFile
    progress: Hook

    def __init__(self, inner: Engine, run: RunFile) -> None:
        self.inner, self.run = inner, run
        self.progress = inner.progress
        self._known: list[tuple[Source, str]] = []  # the last rows, by which they go

    def map(
        self,
        f: Callable,
        source: Source,
        sink: Sink,
        shared: tuple[Any, ...],
        name: str,
    ) -> None:
        """Put f(block, *shared) into the sink for every tile."""
        key = self._key(f, source, shared, name)
        number = self.run.next_pass(key)
        if self.run.is_done(number):
            self._skip(source, name)
            with sinks.opened(sink):
                sink.put(0, self.run.result(number))
            return
        self._say_resumed(number, source, 0)
        self.passes.append(name)
        self.inner.telling(self.progress).map(f, source, sink, shared, name)
        rows = sink.array if type(sink) is sinks.ArraySink else None
        few = isinstance(rows, np.ndarray) and rows.nbytes <= MOST_BYTES
        self.run.finish(number, key, rows, keep=few)

    def reduce(
        self, f: Callable, source: Source, shared: tuple[Any, ...], name: str
    ) -> Any:
        """The sum of f(block, *shared) over all tiles, in a fixed order."""
        key = self._key(f, source, shared, name)
        number = self.run.next_pass(key)
        if self.run.is_done(number):
            self._skip(source, name)
            return self.run.result(number)
        done = self.run.part(number)
        self._say_resumed(number, source, done.next_tile)
        self.passes.append(name)
        total = self._sum(f, source, shared, key, done)
        self.run.finish(number, key, total, keep=True)
        return total

    def _sum(
        self,
        f: Callable,
        source: Source,
        shared: tuple[Any, ...],
        key: PassKey,
        done: Part,
    ) -> Any:
        """The sum, stretch by stretch: between two of them it can be saved."""
        n_tiles = count_tiles(source.n_rows)
        if n_tiles == 0:
            return self.inner.reduce(f, source, shared, key.name)
        tree, tile = Tree.having(done.sums), done.next_tile
        lengths = Stretches(self.run.every / 4)
        try:
            while tile < n_tiles:
                size = lengths.next(tile)
                stretch = Stretch.of(source, tile, min(tile + size, n_tiles))
                begun = time.perf_counter()
                inner = self.inner.telling(self._telling(tile, n_tiles))
                tree.push(inner.reduce(f, stretch, shared, key.name), size)
                lengths.took(time.perf_counter() - begun)
                tile += size
                if tile < n_tiles:
                    self.run.keep_part(key, Part(tile, tree.partial))
        except BaseException:
            if done.next_tile < tile < n_tiles:
                self.run.keep_part(key, Part(tile, tree.partial), now=True)
            raise
        return tree.total()

    def _key(
        self, f: Callable, source: Source, shared: tuple[Any, ...], name: str
    ) -> PassKey:
        """What the pass is known by; its rows are looked at once for many passes."""
        if not self._known or self._known[0][0] is not source:
            self._known[:] = [(source, fingerprint(source))]
        function = f"{f.__module__}.{f.__qualname__}"
        return PassKey(name, function, self._known[0][1], digest(shared))

    def _telling(self, first: int, n_tiles: int) -> Callable:
        def tell(name: str, done: int, total: int) -> None:
            if done or not first:  # the beginning of the pass, not of a stretch
                self.progress(name, first + done, n_tiles)

        return tell

    def _say_resumed(self, number: int, source: Source, tile: int) -> None:
        """Where a run that was saved goes on, before its first new tile."""
        if not self.run.resumed_at(number):
            return
        where = f", row {tile * engine.TILE:,} of {source.n_rows:,}" if tile else ""
        text = f"resumed at pass {number + 1}{where} ({self.run.path.name})"
        note(self.progress, text)
        _LOG.info("%s", text)

    def _skip(self, source: Source, name: str) -> None:
        """A pass that was run before counts as one."""
        n_tiles = count_tiles(source.n_rows)
        self.passes.append(name)
        self.progress(name, 0, n_tiles)
        self.progress(name, n_tiles, n_tiles)

    def each(
        self, f: Callable, items: Sequence[Any], multiply_adds: float
    ) -> list[Any]:
        """f of each item, in order; quickly done again."""
        return self.inner.each(f, items, multiply_adds)

    @property
    def local(self) -> Engine:
        """The other engine's own: rows that are held here are few."""
        local = self.inner.local.telling(self.progress)
        local.passes = self.passes
        return local


class Stretches:
    """How many tiles are added up at a time: ever more, until that takes long.

    Only so many as may be summed elsewhere: see `Tree` for why.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds, self.size, self._took = seconds, 1, 0.0

    def next(self, tile: int) -> int:
        """The size of the stretch that begins at this tile."""
        if tile == 0:
            return self.size
        if FAN_IN * self._took <= self.seconds:
            self.size *= FAN_IN
        elif self._took > FAN_IN * self.seconds:
            self.size = max(1, self.size // FAN_IN)
        self.size = whole_sum(tile, self.size)
        return self.size

    def took(self, seconds: float) -> None:
        """The last one took so long."""
        self._took = seconds


class Stretch(Source):
    """Some tiles of another source, which stay where they are."""

    def __init__(self, source: Source, first: int, n_rows: int) -> None:
        self.source, self.first, self.n_rows = source, first, n_rows
        self.n_features, self.at_hand = source.n_features, source.at_hand

    @classmethod
    def of(cls, source: Source, tile: int, last: int) -> Source:
        """The tiles up to the last; the source itself where these are all."""
        start, stop = tile * engine.TILE, min(last * engine.TILE, source.n_rows)
        if start == 0 and stop == source.n_rows:
            return source
        return cls(source, start, stop - start)

    def block(self, start: int, stop: int) -> Block:
        return self.source.block(self.first + start, self.first + stop)

    def rows(self, start: int, stop: int) -> Any:
        return self.source.rows(self.first + start, self.first + stop)

    def take(self, indices: np.ndarray) -> Any:
        return self.source.take(self.first + np.asarray(indices))
