"""The default engine: threads over blocks of tiles, BLAS at one thread inside.

NumPy's products and exp release the interpreter lock, and exp itself has no threads:
threads over rows are faster than threads inside BLAS.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Any

from ..sinks import Sink
from ..sources import Source
from . import base
from .base import Tree
from .blas import single_threaded_blas, threads_for
from .progress import Hook, silent


class Threads:
    """Runs passes on `n_jobs` threads.

    Parameters
    ----------
    n_jobs : int or None
        None: as many threads as BLAS may use when the engine is made, hence few inside
        joblib's or Dask's workers. -1: all cores.
    progress : callable
        Called with (stage, tiles done, tiles in all).
    tiles_per_task : int
        A power of two, at most so many tiles of rows per task: enough for the overhead
        of a task to vanish. No result depends on it.
    """

    def __init__(
        self,
        n_jobs: int | None = None,
        progress: Hook = silent,
        tiles_per_task: int = 16,
    ) -> None:
        if tiles_per_task < 1 or tiles_per_task & (tiles_per_task - 1):
            raise ValueError(
                f"tiles_per_task={tiles_per_task!r} is not allowed; it must be a power "
                "of two, so that sums do not depend on it."
            )
        self.n_threads = threads_for(n_jobs)
        self.progress = progress
        self.tiles_per_task = tiles_per_task

    def map(
        self,
        f: Callable,
        source: Source,
        sink: Sink,
        shared: tuple = (),
        stage: str = "",
    ) -> None:
        """Put f(block, *shared) into the sink for every tile."""

        def task(first: int, last: int) -> None:
            for start, stop in _tiles(source.n_rows, first, last):
                sink.put(start, f(source.block(start, stop), *shared))

        with closing(self._run(task, source.n_rows, stage)) as results:
            for _ in results:
                pass

    def reduce(
        self, f: Callable, source: Source, shared: tuple = (), stage: str = ""
    ) -> Any:
        """The sum of f(block, *shared) over all tiles, always in the same order."""

        def task(first: int, last: int) -> Any:
            tree = Tree()
            for start, stop in _tiles(source.n_rows, first, last):
                tree.push(f(source.block(start, stop), *shared))
            return tree.total()

        tree = Tree()
        # Closed also when Ctrl-C arrives here: threads end, BLAS gets its threads back.
        with closing(self._run(task, source.n_rows, stage)) as results:
            for size, term in results:
                tree.push(term, size)
        return tree.total()

    def _run(
        self, task: Callable[[int, int], Any], n_rows: int, stage: str
    ) -> Iterator[tuple[int, Any]]:
        """(number of tiles, result) of each block of tiles, in order."""
        n_tiles = -(-n_rows // base.TILE)
        size = self.tiles_per_task
        while size > 1 and n_tiles < 4 * size * self.n_threads:
            size //= 2  # still a power of two: see Tree
        bounds = [(b, min(b + size, n_tiles)) for b in range(0, n_tiles, size)]
        self.progress(stage, 0, n_tiles)
        with single_threaded_blas():
            if self.n_threads == 1 or len(bounds) == 1:
                for first, last in bounds:
                    yield size, task(first, last)
                    self.progress(stage, last, n_tiles)
            else:
                yield from self._run_threads(task, bounds, size, stage)

    def _run_threads(
        self, task: Callable, bounds: list[tuple[int, int]], size: int, stage: str
    ) -> Iterator[tuple[int, Any]]:
        stopped = threading.Event()

        def unless_stopped(first: int, last: int) -> Any:
            return None if stopped.is_set() else task(first, last)

        n_tiles = bounds[-1][1]
        pool = ThreadPoolExecutor(self.n_threads, thread_name_prefix="nystrom")
        try:
            # A window of tasks, so that finished results never pile up.
            waiting: dict[int, Future] = {}
            submitted = 0
            for i in range(len(bounds)):
                while submitted < len(bounds) and submitted < i + 2 * self.n_threads:
                    first, last = bounds[submitted]
                    waiting[submitted] = pool.submit(unless_stopped, first, last)
                    submitted += 1
                yield size, waiting.pop(i).result()
                self.progress(stage, bounds[i][1], n_tiles)
        finally:
            stopped.set()
            pool.shutdown(wait=True, cancel_futures=True)


def _tiles(n_rows: int, first: int, last: int) -> Iterator[tuple[int, int]]:
    for tile in range(first, last):
        yield tile * base.TILE, min((tile + 1) * base.TILE, n_rows)
