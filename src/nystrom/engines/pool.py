"""Passes on an executor of `concurrent.futures`: threads, processes, MPI."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Generator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import closing
from functools import lru_cache
from typing import Any

from ..sinks import Sink, opened
from ..sources import Source
from .at_workers import Work, made, summed
from .elsewhere import Elsewhere
from .progress import Hook, silent
from .summing import Tree
from .tiles import blocks_of_tiles, count_tiles
from .travelling import AsItIs, Parcel, Part, bounds, pickled

#: Tasks for each worker, so many of them at a time, and the most tiles of one.
TASKS_PER_WORKER, AT_A_TIME, MOST_TILES = 8, 2, 16

Results = Generator[tuple[int, Any], None, None]


class Pool(Elsewhere):
    """Runs passes on the workers of an executor.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        `ProcessPoolExecutor`, `ThreadPoolExecutor`, mpi4py's `MPIPoolExecutor`, ….
        It stays the caller's, who shuts it down.
    progress : callable
        Called with (pass, tiles done, tiles in all).
    """

    executor: Executor
    n_workers: int
    progress: Hook

    def __init__(self, executor: Executor, progress: Hook = silent) -> None:
        self.executor, self.progress = executor, progress
        self.n_workers = getattr(executor, "_max_workers", None) or os.cpu_count() or 1

    def map(
        self,
        f: Callable,
        source: Source,
        sink: Sink,
        shared: tuple[Any, ...],
        name: str,
    ) -> None:
        """Put f(block, *shared) into the sink for every tile."""
        run = self._run(made, f, source, shared, name, sink)
        with opened(sink), closing(run) as results:
            for _, rows_of_tiles in results:
                for start, rows in rows_of_tiles:
                    sink.put(start, rows)

    def reduce(
        self, f: Callable, source: Source, shared: tuple[Any, ...], name: str
    ) -> Any:
        """The sum of f(block, *shared) over all tiles, always in the same order."""
        tree = Tree()
        with closing(self._run(summed, f, source, shared, name)) as results:
            for size, term in results:
                tree.push(term, size)
                del term  # not to be held while the next one is made
        return tree.total()

    def _run(
        self,
        task: Callable,
        f: Callable,
        source: Source,
        shared: tuple[Any, ...],
        name: str,
        sink: Sink | None = None,
    ) -> Results:
        """(size of the block, result) of each block of tiles, in order."""
        n_tiles = count_tiles(source.n_rows)
        share = n_tiles // (TASKS_PER_WORKER * self.n_workers)
        largest = min(MOST_TILES, max(1, 1 << share.bit_length() >> 1))
        blocks = list(blocks_of_tiles(n_tiles, largest))
        self.passes.append(name)
        self.progress(name, 0, n_tiles)
        begin = self._begun(task, f, source, shared, sink)
        waiting: dict[int, Future] = {}
        submitted = 0
        try:
            for i, (first, size) in enumerate(blocks):
                last = min(first + size, n_tiles)
                try:
                    while submitted < min(len(blocks), i + AT_A_TIME * self.n_workers):
                        start, length = blocks[submitted]
                        waiting[submitted] = begin(start, min(start + length, n_tiles))
                        submitted += 1
                    result = waiting.pop(i).result()
                except BrokenExecutor as error:
                    where = f"before the pass {name!r}"
                    if submitted:
                        rows = bounds(first, last, source.n_rows)
                        where = "in the pass {!r}, at rows {} to {} or soon after"
                        where = where.format(name, *rows)
                    raise RuntimeError(
                        f"A worker of {type(self.executor).__name__} died {where}, and "
                        f"the others with it ({error}). Make another executor and fit "
                        "again."
                    ) from error
                yield size, result
                self.progress(name, last, n_tiles)
        finally:
            for future in waiting.values():
                future.cancel()

    def _begun(
        self,
        task: Callable,
        f: Callable,
        source: Source,
        shared: tuple[Any, ...],
        sink: Sink | None,
    ) -> Callable[[int, int], Future]:
        """What submits the task of some tiles."""
        submit = self.executor.submit
        if isinstance(self.executor, ThreadPoolExecutor):
            here = Work(f, AsItIs(source), shared)
            return lambda first, last: submit(task, here, first, last, None)
        there = sink if sink is not None and sink.anywhere else None
        parcel = Parcel(source)
        payload = pickled(Work(f, parcel, shared, there))
        return lambda first, last: submit(
            _elsewhere, payload, task, first, last, parcel.part(first, last)
        )


def _elsewhere(
    payload: bytes, task: Callable, first: int, last: int, part: Part | None
) -> Any:
    return task(_work(payload), first, last, part)


@lru_cache(maxsize=1)
def _work(payload: bytes) -> Work:
    """The work of the pass, unpickled once in each process."""
    return pickle.loads(payload)
