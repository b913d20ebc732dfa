"""Passes on a Dask cluster: tiles are read and summed where the workers are; only the
root of the sum comes back.

Rows that are held here are scattered for a sum, once for several passes. Where they die
with a worker, the pass is begun again; all else Dask computes again by itself.
"""

from __future__ import annotations

import copy
import pickle
import uuid
import warnings
from collections.abc import Callable, Generator
from concurrent.futures import CancelledError
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

import dask
from dask.base import tokenize
from distributed import Client, Future, as_completed
from distributed.comm import CommClosedError

from ..sources import DaskRows, Source, Subset
from ..sources.dask import DaskChunks
from .base import (
    BlockEngine,
    Pass,
    ProgressHook,
    SumTree,
    count_tiles,
    results_in_order,
    silent,
    tile_blocks,
)
from .executor import (
    RemoteEngine,
    SourcePayload,
    add_copy,
    pickle_to_bytes,
    run_block,
    tile_row_bounds,
)
from .threads import Threads

#: A task takes a few milliseconds to start: so many for each thread of the workers,
#: each of so many tiles at most, and at least.
TASKS_PER_THREAD, MAX_TILES_PER_TASK, MIN_TILES_PER_TASK = 8, 256, 4
#: The most tiles of a task where rows come back, and how many such tasks at a time.
MAX_TILES_PER_MAP_TASK, MAP_TASKS_PER_THREAD = 16, 2
#: What is scattered stays there for so many passes, in case it is wanted again.
N_CACHED_PASSES = 4
#: How often a pass is begun again when what was scattered is lost with its workers.
MAX_ATTEMPTS = 5
#: So many tiles are worked on here where their rows are here.
MAX_LOCAL_TILES = 16
#: Where Dask begins to warn of what is sent with a task.
LARGE_GRAPH_OPTION = "distributed.admin.large-graph-warning-threshold"


class Dask(RemoteEngine, BlockEngine):
    """Run passes on the workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
        Client connected to the cluster.
    progress : callable, default=silent
        Called with (pass, tiles done, tiles in total).
    patience : float, default=300.0
        Seconds that a pass waits for the first worker.
    """

    client: Client
    patience: float
    progress: ProgressHook

    def __init__(
        self,
        client: Client,
        progress: ProgressHook = silent,
        patience: float = 300.0,
    ) -> None:
        if client.asynchronous:
            raise TypeError(
                "The Dask client is asynchronous, which fit does not support; pass a "
                "client created without asynchronous=True."
            )
        self.client, self.progress, self.patience = client, progress, patience
        # What was scattered, by content, as rows may be written to between two fits;
        # with the number of the pass that used it last.
        self.scattered: dict[str, tuple[Future, int]] = {}

    def _max_tiles(self, source: Source) -> int:
        return MAX_TILES_PER_MAP_TASK

    def _results(
        self, work: Pass, blocks: list[tuple[int, int, int]]
    ) -> Generator[Any, None, None]:
        payload = self._source_payload(work.source)
        if _is_small_and_local(payload):
            yield from Threads()._results(work, blocks)
            return
        window = MAP_TASKS_PER_THREAD * self._count_threads()
        submit = self._submitter(work, payload)
        calls = ((first, last, payload.part(first, last)) for first, last, _ in blocks)
        yield from results_in_order(submit, calls, window)

    def reduce(
        self, f: Callable, source: Source, shared: tuple[Any, ...], name: str
    ) -> Any:
        """Apply a function to all tiles and sum the results in a fixed order.

        Parameters
        ----------
        f : callable
            `f(block, *shared)` is applied to each tile.
        source : Source
            The rows.
        shared : tuple
            Read-only arguments that are the same for all blocks.
        name : str
            Name of the pass, for progress and checkpoints.

        Returns
        -------
        total : object
            The sum, an array or a tuple of arrays.
        """
        source_payload = self._source_payload(source)
        if _is_small_and_local(source_payload):
            return self.local.reduce(f, source, shared, name)
        self.begin_pass(name, source.n_rows, shared)
        for _ in range(MAX_ATTEMPTS):
            submit = self._submitter(Pass(f, source, shared, True), source_payload)
            try:
                with self.client.as_current():
                    return self._sum(submit, source_payload, name)
            except (CancelledError, CommClosedError):  # what was scattered is gone
                self.scattered.clear()
            if self.client.status != "running":
                break
        raise ConnectionError(
            f"The Dask cluster was lost in the pass {name!r}. Check the logs of its "
            "workers, connect to a cluster, and fit again."
        )

    def _sum(self, submit: Callable, source_payload: SourcePayload, name: str) -> Any:
        """The sum over all tiles, added up by the workers."""
        n_tiles, n_done = count_tiles(source_payload.n_rows), 0
        share = n_tiles // (TASKS_PER_THREAD * self._count_threads())
        max_size = max(MIN_TILES_PER_TASK, 1 << share.bit_length() >> 1)
        blocks = tile_blocks(n_tiles, min(max_size, MAX_TILES_PER_TASK))
        tree = SumTree(partial(self.client.submit, add_copy, pure=False))
        n_tiles_of: dict[Any, int] = {}
        # It holds those that are not done: workers may forget the others.
        leaves = as_completed()
        try:
            for first, last, size in blocks:
                part = self._scatter(source_payload.part(first, last))
                leaf = submit(first, last, part)
                n_tiles_of[leaf.key] = last - first
                tree.push(leaf, size)
                leaves.add(leaf)
                del leaf
            root = tree.total()
            del tree
            for leaf in leaves:
                if leaf.status in ("error", "cancelled"):
                    leaf.result()
                n_done += n_tiles_of[leaf.key]
                self.progress(name, n_done, n_tiles)
                del leaf
            return root.result()
        finally:
            leaves.clear()
            self._forget()

    def _scatter(self, part: list[Any]) -> Future | None:
        """Part of a source at a worker, where it may be already."""
        if not part:
            return None
        content = tokenize(part)
        if content in self.scattered:
            future, _ = self.scattered[content]
        else:
            (future,) = self.client.scatter([part], hash=False)
        self.scattered[content] = future, len(self.passes)
        return future

    def _forget(self) -> None:
        """Let go of what was not used for some passes."""
        oldest = len(self.passes) - N_CACHED_PASSES
        kept = {c: held for c, held in self.scattered.items() if held[1] > oldest}
        self.scattered = kept

    def _submitter(self, work: Pass, source: SourcePayload) -> Callable[..., Future]:
        """A function that submits the task of a block of tiles."""
        name = f"{self.passes[-1].replace(' ', '-')}-{uuid.uuid4().hex}"
        payload = pickle_to_bytes(replace(work, source=source, sink=None))
        # As the result of a task it is fetched once by each worker, also by those that
        # come late, and computed again when it is lost with one.
        loaded = self._submit(f"work-{name}", pickle.loads, payload)

        def submit(first: int, last: int, part: Any) -> Future:
            start, stop = tile_row_bounds(first, last, source.n_rows)
            lazies = [chunks.X[start:stop] for chunks in source.lazies]
            rows = self.client.compute(lazies)
            key = (name, first)  # one group of tasks: they wait at the scheduler
            return self._submit(key, run_block, loaded, first, last, part, *rows)

        return submit

    def _submit(self, key: Any, f: Callable, *arguments: Any) -> Future:
        with dask.config.set({LARGE_GRAPH_OPTION: "1TiB"}):
            return self.client.submit(f, *arguments, key=key, pure=False)

    def _count_threads(self) -> int:
        """How many threads the workers have; waits for the first worker."""
        self.client.wait_for_workers(1, timeout=self.patience)
        # Before any task: two threads that import it at once may lock each other out.
        self.client.run(import_module, __package__, on_error="ignore")
        return max(1, sum(self.client.nthreads().values()))

    def _source_payload(self, source: Source) -> SourcePayload:
        source_payload = SourcePayload(_as_lazy(source), DaskChunks)
        if source_payload.content is None:
            _say_what_is_carried(source)
        for chunks in source_payload.lazies:
            if chunks.client not in (None, self.client):
                raise ValueError(
                    "The Dask array was persisted by another client than the one in "
                    f"use ({chunks.client!r}, not {self.client!r}), and its chunks "
                    "are not available there. Use the client that persisted it, "
                    "engines.using(client), or compute it."
                )
        return source_payload


def _say_what_is_carried(source: Source) -> None:
    """Once for each array that comes with its data: its rows are sent from here."""
    if isinstance(source, DaskChunks) and source.carried and not source.has_warned:
        source.has_warned = True
        warnings.warn(
            f"The Dask array holds {source.carried / 2**20:.0f} MiB of data in its "
            "graph, as dask.array.from_array of an array does. Rows are therefore "
            "read in this process, block by block, and sent to the workers. To let "
            "workers read them, keep X in files: nystrom.sources.open(path), or "
            "dask.array.from_zarr.",
            UserWarning,
            stacklevel=2,
        )
    for inner in vars(source).values():
        if isinstance(inner, Source):
            _say_what_is_carried(inner)


def _is_small_and_local(source_payload: SourcePayload) -> bool:
    """Whether the rows are held here, and too few to be sent."""
    is_held_here = (
        source_payload.content is None
        or len(source_payload.content) >= source_payload.n_rows
    )
    return is_held_here and count_tiles(source_payload.n_rows) <= MAX_LOCAL_TILES


def _as_lazy(source: Source) -> Source:
    """The source, with some rows of a Dask array as a Dask array themselves."""
    if type(source) is Subset and isinstance(source.source, DaskRows):
        weights = source.weights if source.is_weighted else None
        rows = source.source.take_lazily(source.indices)
        return rows.replace(weights=weights, targets=source.targets)
    inner = {name: v for name, v in vars(source).items() if isinstance(v, Source)}
    converted = {name: _as_lazy(v) for name, v in inner.items()}
    if all(converted[name] is inner[name] for name in inner):
        return source
    source = copy.copy(source)
    vars(source).update(converted)
    return source
