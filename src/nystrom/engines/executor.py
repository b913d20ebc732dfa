"""Passes on an executor of `concurrent.futures`, and what every remote engine sends to
its workers.

A small source (paths, options) is pickled as it is and reads its rows there. Long
weights and targets, or the rows of a large source, travel with each block of tiles.
"""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any

import joblib
import numpy as np
from joblib.parallel import get_active_backend

from .. import _arrays as arrays
from ..sources import Block, Source
from ..sources.base import are_unit_weights, unit_weights
from .base import (
    TILE,
    BlockEngine,
    Engine,
    Pass,
    ProgressHook,
    add_terms,
    count_tiles,
    results_in_order,
    silent,
)
from .blas import single_threaded_blas
from .threads import Threads


class RemoteEngine(Engine):
    """What is held in this process is worked on by its threads."""

    @property
    def local(self) -> Engine:
        """Threads of this process."""
        engine = Threads(progress=self.progress)
        engine.passes = self.passes
        return engine

    def each(
        self, f: Callable, items: Sequence[Any], multiply_adds: float
    ) -> list[Any]:
        """Apply a function to each item of a list, in order.

        Parameters
        ----------
        f : callable
            The function.
        items : sequence
            The items, held in this process.
        multiply_adds : float
            Approximate work of all items, in multiply-adds.

        Returns
        -------
        results : list
            One result per item.
        """
        return self.local.each(f, items, multiply_adds)


try:  # Dask brings it: functions that are of no module can travel too
    from cloudpickle import Pickler
except ImportError:
    from pickle import Pickler  # type: ignore[assignment]

#: Bytes up to which a source is sent as it is.
MAX_INLINE_BYTES = 2**20


@dataclass(frozen=True)
class OffsetArray:
    """Some entries of a long array, by the numbers that they have in it."""

    start: int
    values: Any

    def __getitem__(self, key: slice) -> np.ndarray:
        return self.values[key.start - self.start : key.stop - self.start]


class TransferredTiles(Source):
    """Tiles that were read where the source is held, by their first row."""

    def __init__(self, n_rows: int, tiles: list[tuple[Block, int]]) -> None:
        self.n_rows = n_rows
        self.tiles = {tile.start: (tile, length) for tile, length in tiles}

    def block(self, start: int, stop: int) -> Block:
        tile, length = self.tiles[start]
        weights = unit_weights(length) if tile.weights is None else tile.weights
        return replace(tile, X=arrays.as_aligned(tile.X), weights=weights)

    def rows(self, start: int, stop: int) -> Any:
        return self.block(start, stop).X

    def take(self, indices: np.ndarray) -> Any:
        raise NotImplementedError("A worker receives whole tiles only.")


def pickle_to_bytes(value: Any) -> bytes:
    """The value, ready to travel."""
    stream = io.BytesIO()
    Pickler(stream, protocol=5).dump(value)
    return stream.getvalue()


class SourcePayload:
    """A source, ready to travel.

    What is of the class `lazy_types` in it stays behind: `lazies` lists it, and
    `rebuild_source` puts in what stands for it there.
    """

    def __init__(self, source: Source, lazy_types: type | tuple = ()) -> None:
        self.source, self.n_rows = source, source.n_rows
        self.columns, self.lazies = list(_large_columns(source)), list[Any]()
        self.content: bytes | None
        stream = _BoundedBuffer()
        pickler = _DetachingPickler(stream, protocol=5)
        pickler.columns, pickler.lazies, pickler.lazy_types = (
            self.columns,
            self.lazies,
            lazy_types,
        )
        try:
            pickler.dump(source)
            self.content = stream.getvalue()
        except _TooLargeError:
            self.content, self.columns, self.lazies = None, [], []

    def part(self, first: int, last: int) -> list[Any]:
        """What tiles first to last need besides the content: columns, or the tiles."""
        start, stop = tile_row_bounds(first, last, self.n_rows)
        if self.content is not None:
            return [OffsetArray(start, column[start:stop]) for column in self.columns]
        return [self._tile(a, min(a + TILE, stop)) for a in range(start, stop, TILE)]

    def _tile(self, start: int, stop: int) -> Any:
        block = self.source.block(start, stop)
        if are_unit_weights(block.weights):
            return replace(block, weights=None), len(block)  # type: ignore[arg-type]
        return block, len(block)

    def rebuild_source(self, part: list[Any], replacements: Sequence[Any]) -> Source:
        """The source as it is where the work is done, for the tiles of one part."""
        if self.content is None:
            return TransferredTiles(self.n_rows, part)
        unpickler = _AttachingUnpickler(io.BytesIO(self.content))
        unpickler.found = {"column": part, "lazy": replacements}
        return unpickler.load()

    def __getstate__(self) -> dict[str, Any]:
        return {"content": self.content, "n_rows": self.n_rows}


def tile_row_bounds(first: int, last: int, n_rows: int) -> tuple[int, int]:
    """The rows of tiles first to last."""
    return first * TILE, min(last * TILE, n_rows)


def _large_columns(source: Any) -> Iterator[np.ndarray]:
    """Weights and targets that are not small, of a source or those inside it."""
    for column in (source._weights, source.targets):
        if isinstance(column, np.ndarray) and column.nbytes > MAX_INLINE_BYTES // 16:
            yield column
    for inner in vars(source).values():
        if isinstance(inner, Source):
            yield from _large_columns(inner)


class _TooLargeError(Exception):
    pass


class _BoundedBuffer(io.BytesIO):
    """A stream for what is small."""

    def write(self, data: Any) -> int:
        if self.tell() + memoryview(data).nbytes > MAX_INLINE_BYTES:
            raise _TooLargeError
        return super().write(data)


class _DetachingPickler(Pickler):
    """Leaves out what travels another way."""

    columns: list[np.ndarray]
    lazies: list[Any]
    lazy_types: type | tuple

    def persistent_id(self, value: Any) -> tuple[str, int] | None:
        if isinstance(value, np.ndarray):
            if value.nbytes > MAX_INLINE_BYTES and not any(
                c is value for c in self.columns
            ):
                raise _TooLargeError  # before all of a memory map is read
            for i, column in enumerate(self.columns):
                if column is value:
                    return "column", i
        elif self.lazy_types and isinstance(value, self.lazy_types):
            if getattr(value, "carried", 0):  # data of a graph is held here
                raise _TooLargeError
            self.lazies.append(value)
            return "lazy", len(self.lazies) - 1
        return None


class _AttachingUnpickler(pickle.Unpickler):
    """Puts in what has come another way."""

    found: dict[str, Any]

    def persistent_load(self, persistent_id: tuple[str, int]) -> Any:
        kind, i = persistent_id
        return self.found[kind][i]


def run_block(
    work: Pass, first: int, last: int, part: list[Any] | None, *chunks: Any
) -> Any:
    """What `work` returns for tiles first to last, where its source is a payload."""
    replacements = [OffsetArray(first * TILE, rows) for rows in chunks]
    source = work.source.rebuild_source(part or [], replacements)
    return run_single_threaded(replace(work, source=source), first, last)


def run_single_threaded(work: Pass, first: int, last: int) -> Any:
    """What `work` returns for tiles first to last, with BLAS at one thread."""
    with single_threaded_blas():
        return work.run(first, last)


def add_copy(left: Any, right: Any) -> Any:
    """left + right; neither is changed, as a task may be run again."""
    return add_terms(copy.deepcopy(left), right)


#: Tasks for each worker, so many of them at a time, and the most tiles of one.
TASKS_PER_WORKER, QUEUED_TASKS_PER_WORKER, MAX_TILES_PER_TASK = 8, 2, 16


class ExecutorEngine(RemoteEngine, BlockEngine):
    """Run passes on the workers of an executor.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        `ProcessPoolExecutor`, `ThreadPoolExecutor`, mpi4py's `MPIPoolExecutor`, and so
        on. The caller shuts it down.
    progress : callable, default=silent
        Called with (pass, tiles done, tiles in total).
    """

    executor: Executor
    n_workers: int
    progress: ProgressHook

    def __init__(self, executor: Executor, progress: ProgressHook = silent) -> None:
        self.executor, self.progress = executor, progress
        self.n_workers = getattr(executor, "_max_workers", None) or joblib.cpu_count()
        self.label = type(executor).__name__
        self.shares_memory = isinstance(executor, ThreadPoolExecutor)

    def _max_tiles(self, source: Source) -> int:
        share = count_tiles(source.n_rows) // (TASKS_PER_WORKER * self.n_workers)
        return min(MAX_TILES_PER_TASK, max(1, 1 << share.bit_length() >> 1))

    def _results(
        self, work: Pass, blocks: list[tuple[int, int, int]]
    ) -> Generator[Any, None, None]:
        try:
            yield from self._submit(self._calls(work, blocks))
        except BrokenExecutor as error:
            raise RuntimeError(
                f"A worker of {self.label} died in the pass {self.passes[-1]!r} and "
                f"stopped the others ({error}). Pass a new executor and fit again."
            ) from error

    def _calls(
        self, work: Pass, blocks: list[tuple[int, int, int]]
    ) -> Iterator[tuple[Any, ...]]:
        """The function and arguments of the call for each block."""
        if self.shares_memory:
            for first, last, _ in blocks:
                yield run_single_threaded, work, first, last
            return
        source = SourcePayload(work.source)
        payload = pickle_to_bytes(replace(work, source=source, sink=None))
        for first, last, _ in blocks:
            yield _run_in_worker, payload, first, last, source.part(first, last)

    def _submit(self, calls: Iterator[tuple[Any, ...]]) -> Generator[Any, None, None]:
        """What the calls return, in order."""
        window = QUEUED_TASKS_PER_WORKER * self.n_workers
        return results_in_order(self.executor.submit, calls, window)


class JoblibEngine(ExecutorEngine):
    """Run passes on the workers of joblib.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Number of workers as joblib counts them; None means as `joblib.parallel_config`
        says.
    progress : callable, default=silent
        Called with (pass, tiles done, tiles in total).
    """

    def __init__(
        self, n_jobs: int | None = None, progress: ProgressHook = silent
    ) -> None:
        self.n_jobs, self.progress = n_jobs, progress
        self.label = "joblib"

    @property
    def n_workers(self) -> int:  # type: ignore[override]
        """Number of workers that joblib would use now."""
        return joblib.effective_n_jobs(self.n_jobs)

    @property
    def shares_memory(self) -> bool:  # type: ignore[override]
        """Whether the workers are threads, or this process itself."""
        backend, _ = get_active_backend()
        return self.n_workers == 1 or getattr(backend, "supports_sharedmem", False)

    def _submit(self, calls: Iterator[tuple[Any, ...]]) -> Generator[Any, None, None]:
        tasks = (joblib.delayed(function)(*given) for function, *given in calls)
        try:
            parallel = joblib.Parallel(self.n_jobs, return_as="generator")
        except ValueError:  # Ray's backend has no generators: some tasks at a time
            window = QUEUED_TASKS_PER_WORKER * self.n_workers
            while some := list(islice(tasks, window)):
                yield from joblib.Parallel(self.n_jobs)(some)
        else:
            yield from parallel(tasks)


def _run_in_worker(payload: bytes, first: int, last: int, part: list[Any]) -> Any:
    return run_block(_load_payload(payload), first, last, part)


@lru_cache(maxsize=1)
def _load_payload(payload: bytes) -> Pass:
    """The work of the pass, unpickled once in each process."""
    return pickle.loads(payload)
