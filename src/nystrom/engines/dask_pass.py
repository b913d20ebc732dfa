"""One pass on a Dask cluster, as a graph of tasks.

Sums over blocks of tiles, and above them the same tree of sums that threads add up in,
so that results agree to the last bit. Only its root comes back.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from weakref import WeakSet

import dask
from dask import delayed
from distributed import Client, Future, WorkerPlugin

from .at_workers import Work, added, made, summed
from .awaiting import LostError, Watch
from .freed_memory import keep_freed_memory
from .progress import Hook
from .sending import Sent
from .summing import Tree
from .tiles import blocks_of_tiles, count_tiles
from .travelling import Parcel, bounds, pickled

#: A task takes a few milliseconds to hand out: so many for each thread of the workers,
#: each of so many tiles at most, and at least.
TASKS_PER_THREAD, MOST_TILES, LEAST_TILES = 8, 256, 4
#: The most tiles of a task where rows come back, and how many such tasks at a time.
MOST_TILES_OF_ROWS, AT_A_TIME = 16, 2
#: How often a pass is begun again when what was sent is lost with its workers.
ATTEMPTS = 5
#: Tasks that are waited for together.
WAITED = 64
#: Where Dask begins to warn of what is sent with a task.
LARGE_GRAPH = "distributed.admin.large-graph-warning-threshold"


class Pass:
    """One pass over the tiles of a source."""

    def __init__(
        self, work: Work, parcel: Parcel, watch: Watch, sent: Sent, progress: Hook
    ) -> None:
        self.work, self.parcel = pickled(work), parcel
        self.watch, self.client, self.sent = watch, watch.client, sent
        self.progress, self.name = progress, watch.name
        self.n_tiles, self.n_done = count_tiles(parcel.n_rows), 0
        self.work_there: Any = None
        progress(self.name, 0, self.n_tiles)

    def total(self) -> Any:
        """The sum over all tiles, added up by the workers."""
        for _ in range(ATTEMPTS):
            try:
                return self._total()
            except LostError as error:
                self.sent.clear()
                self.n_done, lost = 0, error
        raise self._given_up(lost)

    def _total(self) -> Any:
        blocks = self._begin(MOST_TILES)
        parts = self.sent.there(
            (self.parcel.part(*block) for block, _ in blocks), self.watch.sent
        )
        tree, leaves = Tree(delayed(added, pure=False)), []
        for (block, size), part in zip(blocks, parts, strict=True):
            leaves.append(self._task(summed, *block, part))
            tree.push(leaves[-1], size)
        root, *pending = self.client.compute([tree.total(), *leaves])
        try:
            while pending:
                self.watch.some_done([root, *pending[:WAITED]], pending)
                # What is done is let go, so that the workers may forget it.
                done, pending = _apart(pending)
                self._tell(done)
            return self.watch.value(root)
        finally:
            for future in [root, *pending]:  # also when it is interrupted
                future.release()

    def rows(self) -> Iterator[list]:
        """What the tiles of each block made, as they are done."""
        remaining: list[tuple[int, int]] | None = None
        for _ in range(ATTEMPTS):
            try:
                blocks = [block for block, _ in self._begin(MOST_TILES_OF_ROWS)]
                remaining = blocks if remaining is None else remaining
                yield from self._rows(remaining)
                return
            except LostError as error:
                lost = error
        raise self._given_up(lost)

    def _rows(self, remaining: list[tuple[int, int]]) -> Iterator[list]:
        """Each block is taken from those that remain when it is done."""
        waiting = list(remaining)
        running: dict[Future, tuple[int, int]] = {}
        while waiting or running:
            while waiting and len(running) < AT_A_TIME * self.n_threads:
                block = waiting.pop(0)
                part = self.parcel.part(*block)
                there = None if part is None else self.watch.sent([part])[0]
                task = self._task(made, *block, there)
                running[self.client.compute(task)] = block
            self.watch.some_done(list(running), list(running))
            for future in [future for future in running if future.done()]:
                rows = self.watch.value(future)
                block = running.pop(future)
                remaining.remove(block)
                yield rows
                self._tell([future])

    def _begin(self, most_tiles: int) -> list[tuple[tuple[int, int], int]]:
        """Send what all tasks share; (tiles first to last, size) of all blocks."""
        # Other names each time: what was lost may still be known by its own.
        self.key = f"{self.name.replace(' ', '-')}-{uuid.uuid4().hex}"
        self.n_threads = self.watch.n_threads()
        _import_at_workers(self.client)
        share = self.n_tiles // (TASKS_PER_THREAD * self.n_threads)
        largest = min(most_tiles, max(LEAST_TILES, 1 << share.bit_length() >> 1))
        # As the result of a task it is fetched once by each worker, also by those that
        # come late, and made again when it is lost with one.
        with dask.config.set({LARGE_GRAPH: "1TiB"}):
            self.work_there = self.client.submit(
                pickle.loads, self.work, key=f"work-{self.key}"
            )
        blocks = blocks_of_tiles(self.n_tiles, largest)
        return [((a, min(a + size, self.n_tiles)), size) for a, size in blocks]

    def _task(self, f: Callable, first: int, last: int, part: Future | None) -> Any:
        start, stop = bounds(first, last, self.parcel.n_rows)
        key = (self.key, first)  # one group of tasks: they wait at the scheduler
        self.watch.rows_of[key] = start, stop
        chunks = [chunks.X[start:stop] for chunks in self.parcel.left]
        return delayed(f, pure=False)(
            self.work_there, first, last, part, *chunks, dask_key_name=key
        )

    def _tell(self, done: Sequence[Future]) -> None:
        for future in done:
            start, stop = self.watch.rows_of[future.key]
            self.n_done += count_tiles(stop - start)
        self.progress(self.name, self.n_done, self.n_tiles)

    def _given_up(self, error: Exception) -> RuntimeError:
        return RuntimeError(
            f"The pass {self.name!r} was begun {ATTEMPTS} times, and each time workers "
            f"died with what had been sent to them ({error}). Look at why they die."
        )


class _Importing(WorkerPlugin):
    """Has the package imported by every worker, also by those that come late."""

    name = "nystrom"

    def setup(self, worker: Any) -> None:
        """Processes that a nanny has made are for such work alone."""
        if getattr(worker, "nanny", None):
            keep_freed_memory()


_clients = WeakSet[Client]()


def _import_at_workers(client: Client) -> None:
    """Before any task: two threads that import it at once may lock each other out."""
    if client not in _clients:
        client.register_plugin(_Importing())
        _clients.add(client)


def _apart(futures: Sequence[Future]) -> tuple[list[Future], list[Future]]:
    """Those that are done, and those that are not."""
    done = [future for future in futures if future.done()]
    return done, [future for future in futures if future not in done]
