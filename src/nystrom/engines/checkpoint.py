"""An engine around an engine, which saves the results of passes and replays them in a
repeated run.

A repeated run takes the same way: what lies between passes follows from their
results and the seed. Passes are numbered and identified by digests of rows, function
and arguments.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..sources import Block, Source
from ..sources.base import digest, digest_row_indices
from ..sources.output import ArraySink, Sink, open_sink
from .base import (
    FAN_IN,
    TILE,
    Engine,
    ProgressHook,
    SumTree,
    aligned_size,
    count_tiles,
    show_note,
)
from .run_file import CheckpointStore, PartialSum, PassKey

__all__ = ["digest", "source_fingerprint"]


def source_fingerprint(source: Source) -> str:
    """What the rows, weights and targets of a source are known by.

    Its own `fingerprint()` where it has one, as files do; a view of another source is
    that source and what the view adds to it.
    """
    own_fingerprint, inner = (
        getattr(source, "fingerprint", None),
        getattr(source, "source", None),
    )
    state = dict(vars(source))
    weights_and_targets = state.get("_weights"), state.get("targets")
    rows: Any
    if callable(own_fingerprint):
        rows = str(own_fingerprint())
    elif isinstance(inner, Source):
        rows = (
            source_fingerprint(inner),
            {k: v for k, v in state.items() if k != "source"},
        )
    else:
        rows = source.take(
            digest_row_indices(source.n_rows, 8 * (source.n_features or 1))
        )
    return digest(source.n_rows, source.n_features, rows, weights_and_targets)


_LOG = logging.getLogger("nystrom")
#: Bytes of rows that are saved with a run.
MAX_SAVED_BYTES = 2**24


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
    run: CheckpointStore
    progress: ProgressHook

    def __init__(self, inner: Engine, run: CheckpointStore) -> None:
        self.inner, self.run = inner, run
        self.progress = inner.progress
        self._last_fingerprint: list[
            tuple[Source, str]
        ] = []  # the last rows, by which they go

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
            self._report_skipped(source, shared, name)
            with open_sink(sink):
                sink.put(0, self.run.result(number))
            return
        self._say_resumed(number, source, 0)
        self.passes.append(name)
        self.inner.with_progress(self.progress).map(f, source, sink, shared, name)
        rows = sink.array if type(sink) is ArraySink else None
        keep_rows = isinstance(rows, np.ndarray) and rows.nbytes <= MAX_SAVED_BYTES
        self.run.finish(number, key, rows, keep=keep_rows)

    def reduce(
        self, f: Callable, source: Source, shared: tuple[Any, ...], name: str
    ) -> Any:
        """The sum of f(block, *shared) over all tiles, in a fixed order."""
        key = self._key(f, source, shared, name)
        number = self.run.next_pass(key)
        if self.run.is_done(number):
            self._report_skipped(source, shared, name)
            return self.run.result(number)
        done = self.run.part(number)
        self._say_resumed(number, source, done.next_tile)
        self.begin_pass(name, source.n_rows, shared)
        total = self._sum(f, source, shared, key, done)
        self.run.finish(number, key, total, keep=True)
        return total

    def _sum(
        self,
        f: Callable,
        source: Source,
        shared: tuple[Any, ...],
        key: PassKey,
        saved: PartialSum,
    ) -> Any:
        """The sum, stretch by stretch: between two of them it can be saved."""
        n_tiles = count_tiles(source.n_rows)
        if n_tiles == 0:
            return self.inner.reduce(f, source, shared, key.name)
        tree, tile = SumTree.replace(saved.sums), saved.next_tile
        range_size = AdaptiveRangeSize(self.run.every / 4)
        try:
            while tile < n_tiles:
                size = range_size.next(tile)
                tile_range = TileRange.of(source, tile, min(tile + size, n_tiles))
                started = time.perf_counter()
                inner = self.inner.with_progress(self._offset_progress(tile, n_tiles))
                tree.push(inner.reduce(f, tile_range, shared, key.name), size)
                range_size.record_seconds(time.perf_counter() - started)
                tile += size
                if tile < n_tiles:
                    self.run.save_partial(key, PartialSum(tile, tree.partial))
        except BaseException:
            if saved.next_tile < tile < n_tiles:
                self.run.save_partial(key, PartialSum(tile, tree.partial), force=True)
            raise
        return tree.total()

    def _key(
        self, f: Callable, source: Source, shared: tuple[Any, ...], name: str
    ) -> PassKey:
        """What the pass is known by; its rows are looked at once for many passes."""
        if not self._last_fingerprint or self._last_fingerprint[0][0] is not source:
            self._last_fingerprint[:] = [(source, source_fingerprint(source))]
        function = f"{f.__module__}.{f.__qualname__}"
        return PassKey(name, function, self._last_fingerprint[0][1], digest(shared))

    def _offset_progress(self, first: int, n_tiles: int) -> Callable:
        def tell(name: str, done: int, total: int) -> None:
            if done:  # else it is the beginning of a range of tiles
                self.progress(name, first + done, n_tiles)

        return tell

    def _say_resumed(self, number: int, source: Source, tile: int) -> None:
        """Where a run that was saved goes on, before its first new tile."""
        if not self.run.resumed_at(number):
            return
        where = f", row {tile * TILE:,} of {source.n_rows:,}" if tile else ""
        text = f"resumed at pass {number + 1}{where} ({self.run.path.name})"
        show_note(self.progress, text)
        _LOG.info("%s", text)

    def _report_skipped(
        self, source: Source, shared: tuple[Any, ...], name: str
    ) -> None:
        """A pass that was run before counts as one."""
        n_tiles = count_tiles(source.n_rows)
        self.begin_pass(name, source.n_rows, shared)
        self.progress(name, n_tiles, n_tiles)

    def each(
        self, f: Callable, items: Sequence[Any], multiply_adds: float
    ) -> list[Any]:
        """f of each item, in order; quickly done again."""
        return self.inner.each(f, items, multiply_adds)

    @property
    def local(self) -> Engine:
        """The other engine's own: rows that are held here are few."""
        local = self.inner.local.with_progress(self.progress)
        local.passes = self.passes
        return local


class AdaptiveRangeSize:
    """How many tiles are added up at a time: ever more, until that takes long.

    Only so many as may be summed elsewhere: see `Tree` for why.
    """

    def __init__(self, target_seconds: float) -> None:
        self.seconds, self.size, self._last_seconds = target_seconds, 1, 0.0

    def next(self, tile: int) -> int:
        """The size of the stretch that begins at this tile."""
        if tile == 0:
            return self.size
        if FAN_IN * self._last_seconds <= self.seconds:
            self.size *= FAN_IN
        elif self._last_seconds > FAN_IN * self.seconds:
            self.size = max(1, self.size // FAN_IN)
        self.size = aligned_size(tile, self.size)
        return self.size

    def record_seconds(self, seconds: float) -> None:
        """The last one took so long."""
        self._last_seconds = seconds


class TileRange(Source):
    """Some tiles of another source, which stay where they are."""

    def __init__(self, source: Source, first_row: int, n_rows: int) -> None:
        self.source, self.first, self.n_rows = source, first_row, n_rows
        self.n_features, self.supports_random_access = (
            source.n_features,
            source.supports_random_access,
        )

    @classmethod
    def of(cls, source: Source, tile: int, last: int) -> Source:
        """The tiles up to the last; the source itself where these are all."""
        start, stop = tile * TILE, min(last * TILE, source.n_rows)
        if start == 0 and stop == source.n_rows:
            return source
        return cls(source, start, stop - start)

    def block(self, start: int, stop: int) -> Block:
        return self.source.block(self.first + start, self.first + stop)

    def rows(self, start: int, stop: int) -> Any:
        return self.source.rows(self.first + start, self.first + stop)

    def take(self, indices: np.ndarray) -> Any:
        return self.source.take(self.first + np.asarray(indices))
