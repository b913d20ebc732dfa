"""The default engine: threads over blocks of tiles, BLAS at one thread inside.

NumPy's products and exp release the interpreter lock, and exp itself has no threads,
so threads over rows are faster than threads inside BLAS.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .._validation import check_int
from ..sources import Source
from .base import BlockEngine, Pass, ProgressHook, results_in_order, silent, term_bytes
from .blas import resolve_n_jobs, single_threaded_blas

#: Seconds of work below which threads are not worth starting, and multiply-adds of
#: which the same holds: a hand-over takes up to a millisecond.
MIN_THREADED_SECONDS, MIN_THREADED_MULTIPLY_ADDS = 2e-3, 2e8
#: Bytes of a result of which as few as possible are to wait for each other.
LARGE_RESULT_BYTES = 2**25
#: Tiles per task on a device, which sums work on as one: 16 384 rows.
DEVICE_TILES_PER_TASK = 16


class Threads(BlockEngine):
    """Run passes on threads of this process.

    Parameters
    ----------
    n_jobs : int or None
        Number of threads. None means as many as `joblib.parallel_config` says, or
        otherwise as many as BLAS may use (few inside workers of joblib or Dask); -1
        means all cores that the quota of a container allows.
    progress : callable
        Called with (pass, tiles done, tiles in total).
    tiles_per_task : int
        Largest number of tiles per task. It affects only the time.
    """

    n_threads: int
    tiles_per_task: int

    def __init__(
        self,
        n_jobs: int | None = None,
        progress: ProgressHook = silent,
        tiles_per_task: int = 4,
    ) -> None:
        self.n_threads = resolve_n_jobs(n_jobs)
        self.progress = progress
        self.tiles_per_task = check_int(tiles_per_task, "tiles_per_task")
        # Seconds of a tile and bytes of its result, by the kind of pass.
        self._tile_costs: dict[Any, tuple[float, int]] = {}

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
        n_threads = min(self.n_threads, len(items))
        if n_threads < 2 or multiply_adds < MIN_THREADED_MULTIPLY_ADDS:
            return [f(item) for item in items]
        with (
            single_threaded_blas(),
            ThreadPoolExecutor(n_threads, thread_name_prefix="nystrom") as pool,
        ):
            return list(pool.map(f, items))

    def _max_tiles(self, source: Source) -> int:
        if source.on_device:
            return max(self.tiles_per_task, DEVICE_TILES_PER_TASK)
        return self.tiles_per_task

    def _results(
        self, work: Pass, blocks: list[tuple[int, int, int]]
    ) -> Generator[Any, None, None]:
        n_threads = 1 if work.source.on_device else self.n_threads  # it has its own
        stopped = threading.Event()

        def run_unless_stopped(first: int, last: int) -> Any:
            return None if stopped.is_set() else work.run(first, last)

        with single_threaded_blas():
            kind = work.f, tuple(getattr(a, "shape", None) for a in work.shared)
            if kind not in self._tile_costs:
                # The first tile tells whether threads are worth starting for the rest.
                started = time.perf_counter()
                result = work.run(0, 1)
                seconds = time.perf_counter() - started
                self._tile_costs[kind] = seconds, term_bytes(result)
                yield result
                del result  # it is the sum's by now
                blocks = blocks[1:]
            seconds, n_bytes = self._tile_costs[kind]
            seconds *= sum(last - first for first, last, _ in blocks)
            # A window of tasks, so that finished results never pile up.
            window = n_threads + (1 if n_bytes >= LARGE_RESULT_BYTES else n_threads)
            if min(n_threads, len(blocks)) < 2 or seconds < MIN_THREADED_SECONDS:
                for first, last, _ in blocks:
                    yield work.run(first, last)
                return
            pool = ThreadPoolExecutor(n_threads, thread_name_prefix="nystrom")
            calls = ((run_unless_stopped, first, last) for first, last, _ in blocks)
            try:
                yield from results_in_order(pool.submit, calls, window)
            finally:
                stopped.set()
                pool.shutdown(wait=True, cancel_futures=True)
