"""Passes on a Dask cluster: tiles are read and summed where the workers are; only the
root of the sum comes back.

Blocks of rows held here are scattered once and cached by content. Waiting for
workers has a time limit, and passes whose data died with a worker are sent again.
"""

from __future__ import annotations

import copy
import pickle
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from importlib import import_module
from typing import Any

import dask
from dask import delayed
from dask.base import tokenize
from dask.sizeof import sizeof
from distributed import Client, Future, KilledWorker, wait

from ..sources import DaskRows, Source, Subset
from ..sources.dask import DaskChunks
from ..sources.output import Sink, open_sink
from .base import ProgressHook, SumTree, count_tiles, silent, tile_blocks
from .executor import (
    PassPayload,
    RemoteEngine,
    SourcePayload,
    add_copy,
    pickle_to_bytes,
    run_block,
    tile_row_bounds,
)

#: What is sent stays there for so many passes, in case it is wanted again, and goes in
#: pieces of so many bytes.
N_CACHED_PASSES, MAX_SCATTER_BYTES = 4, 2**26


class ScatterCache:
    """Parts of sources at the workers, by their content: none is sent twice.

    By content, since rows that are held here may be written to between two fits.
    """

    def __init__(self) -> None:
        self._cached: dict[str, tuple[Any, int]] = {}  # future, pass it was for
        self._pass_number = 0  # of the passes so far

    def get_futures(
        self,
        blocks: Iterable[list[Any]],
        scatter: Callable[[list[Any]], list[Any]],
    ) -> list[Any]:
        """A future for each part of a pass, None for an empty one; those that are
        missing are sent.
        """
        self._pass_number += 1
        digests: list[str] = []
        missing: dict[str, list[Any]] = {}
        pending_bytes = 0
        for block in blocks:
            digest = tokenize(block) if block else ""  # of the content
            digests.append(digest)
            if digest in self._cached:
                self._cached[digest] = self._cached[digest][0], self._pass_number
            elif block and digest not in missing:
                missing[digest] = block
                pending_bytes += sizeof(block)
            if pending_bytes > MAX_SCATTER_BYTES:
                self._send(missing, scatter)
                pending_bytes = 0
        self._send(missing, scatter)
        futures = [self._cached[d][0] if d else None for d in digests]
        for digest, (_, last_pass) in list(self._cached.items()):
            if last_pass <= self._pass_number - N_CACHED_PASSES:
                del self._cached[digest]
        return futures

    def _send(self, missing: dict[str, list[Any]], scatter: Callable) -> None:
        futures = scatter(list(missing.values())) if missing else []
        for digest, future in zip(missing, futures, strict=True):
            self._cached[digest] = future, self._pass_number
        missing.clear()

    def clear(self) -> None:
        """All of it is gone."""
        self._cached.clear()


#: A task takes a few milliseconds to start: so many for each thread of the workers,
#: each of so many tiles at most, and at least.
TASKS_PER_THREAD, MAX_TILES_PER_TASK, MIN_TILES_PER_TASK = 8, 256, 4
#: The most tiles of a task where rows come back, and how many such tasks at a time.
MAX_TILES_PER_MAP_TASK, MAP_TASKS_PER_THREAD = 16, 2
#: How often a pass is begun again when what was sent is lost with its workers.
MAX_ATTEMPTS = 5
#: Seconds between two looks at whether the cluster is still there.
POLL_SECONDS = 2.0
#: Tasks that are waited for together.
MAX_AWAITED_FUTURES = 64
#: What is "lost" is not failed: it is being computed again.
FAILED_STATUSES = ("error", "cancelled")
#: Where Dask begins to warn of what is sent with a task.
LARGE_GRAPH_OPTION = "distributed.admin.large-graph-warning-threshold"


class LostDataError(Exception):
    """What was sent to the workers is gone with them: it is to be sent again."""


class DaskPass:
    """One pass over the tiles of a source, and its waiting for the workers."""

    def __init__(
        self,
        engine: Dask,
        payload: PassPayload,
        source_payload: SourcePayload,
        name: str,
    ) -> None:
        self.engine, self.client, self.name = engine, engine.client, name
        self.work, self.source_payload = pickle_to_bytes(payload), source_payload
        self.n_tiles = count_tiles(source_payload.n_rows)
        self.rows_of: dict[Any, tuple[int, int]] = {}  # of each task, by its key
        self.remaining: list[tuple[int, int]] | None = None  # blocks of a map
        self.no_workers_since: float | None = None

    def total(self) -> Any:
        """The sum over all tiles, added up by the workers."""
        return self._retry(self._total)

    def _total(self) -> Any:
        blocks = self._begin(MAX_TILES_PER_TASK)
        parts = (self.source_payload.part(first, last) for first, last, _ in blocks)
        part_futures = self.engine.sent.get_futures(parts, self._scatter)
        tree, leaves = SumTree(delayed(add_copy, pure=False)), []
        for (first, last, size), part in zip(blocks, part_futures, strict=True):
            leaves.append(self._task(first, last, part))
            tree.push(leaves[-1], size)
        root, *pending = self.client.compute([tree.total(), *leaves])
        n_done = 0
        try:
            while pending:
                self._wait([root, *pending[:MAX_AWAITED_FUTURES]], pending)
                # What is done is let go, so that the workers may forget it.
                done = [future for future in pending if future.done()]
                pending = [future for future in pending if future not in done]
                n_done = self._report(done, n_done)
            return self._result(root)
        finally:
            for future in [root, *pending]:  # also when it is interrupted
                future.release()

    def put_rows(self, sink: Sink) -> None:
        """Put the results for all tiles into the sink, as they are done."""
        self._retry(lambda: self._put_rows(sink))

    def _put_rows(self, sink: Sink) -> None:
        """Each block leaves those that remain when it is done."""
        blocks = self._begin(MAX_TILES_PER_MAP_TASK)
        if self.remaining is None:
            self.remaining = [(first, last) for first, last, _ in blocks]
        queued = list(self.remaining)
        n_done = self.n_tiles - sum(last - first for first, last in queued)
        running: dict[Future, tuple[int, int]] = {}
        while queued or running:
            while queued and len(running) < MAP_TASKS_PER_THREAD * self.n_threads:
                block = queued.pop(0)
                part = self.source_payload.part(*block)
                part_future = self._scatter([part])[0] if part else None
                task = self._task(*block, part_future)
                running[self.client.compute(task)] = block
            self._wait(list(running), list(running))
            for future in [future for future in running if future.done()]:
                tile_rows = self._result(future)
                self.remaining.remove(running.pop(future))
                for start, rows in tile_rows:
                    sink.put(start, rows)
                n_done = self._report([future], n_done)

    def _retry(self, attempt: Callable[[], Any]) -> Any:
        for _ in range(MAX_ATTEMPTS):
            try:
                return attempt()
            except LostDataError as error:
                self.engine.sent.clear()
                lost = error
        raise RuntimeError(
            f"The pass {self.name!r} was started {MAX_ATTEMPTS} times, and each time "
            f"workers died and lost the data sent to them ({lost}). Check the logs of "
            "the workers."
        )

    def _begin(self, max_tiles: int) -> list[tuple[int, int, int]]:
        """Send what all tasks share; (first tile, end, size) of all blocks."""
        # Other names each time: what was lost may still be known by its own.
        self.key = f"{self.name.replace(' ', '-')}-{uuid.uuid4().hex}"
        self.n_threads = self._count_threads()
        # Before any task: two threads that import it at once may lock each other out.
        self.client.run(import_module, __package__, on_error="ignore")
        share = self.n_tiles // (TASKS_PER_THREAD * self.n_threads)
        size = max(MIN_TILES_PER_TASK, 1 << share.bit_length() >> 1)
        # As the result of a task it is fetched once by each worker, also by those that
        # come late, and computed again when it is lost with one.
        with dask.config.set({LARGE_GRAPH_OPTION: "1TiB"}):
            self.remote_payload = self.client.submit(
                pickle.loads, self.work, key=f"work-{self.key}"
            )
        return tile_blocks(self.n_tiles, min(max_tiles, size))

    def _task(self, first: int, last: int, part: Future | None) -> Any:
        start, stop = tile_row_bounds(first, last, self.source_payload.n_rows)
        key = (self.key, first)  # one group of tasks: they wait at the scheduler
        self.rows_of[key] = start, stop
        chunks = [chunks.X[start:stop] for chunks in self.source_payload.lazies]
        return delayed(run_block, pure=False)(
            self.remote_payload, first, last, part, *chunks, dask_key_name=key
        )

    def _report(self, done: Sequence[Future], n_done: int) -> int:
        """Report the tiles of these tasks besides those done before: all of them."""
        for future in done:
            start, stop = self.rows_of[future.key]
            n_done += count_tiles(stop - start)
        self.engine.progress(self.name, n_done, self.n_tiles)
        return n_done

    def _count_threads(self) -> int:
        """How many threads the workers have; waits for the first worker."""
        try:
            self.client.wait_for_workers(1, timeout=self.engine.patience)
            return max(1, sum(self.client.nthreads().values()))
        except TimeoutError:
            raise self._no_workers_error() from None
        except OSError as error:
            raise self._unreachable_error() from error

    def _scatter(self, values: list[Any]) -> list[Future]:
        """Things at the workers, each at one of them."""
        try:
            return self.client.scatter(values, hash=False, timeout=self.engine.patience)
        except TimeoutError:
            raise self._no_workers_error() from None
        except Exception as error:  # of any kind, where a worker dies meanwhile
            raise self._lost_error(error) from error

    def _wait(self, futures: Sequence[Future], others: Sequence[Future]) -> None:
        """Return when one of the first is done; raise what any has failed by."""
        while True:
            try:
                wait(list(futures), timeout=POLL_SECONDS, return_when="FIRST_COMPLETED")
                break
            except TimeoutError:
                self._check_cluster()
            except CancelledError as error:
                raise self._lost_error(error) from None
        failed = [f for f in (*others, *futures) if f.status in FAILED_STATUSES]
        for future in failed:
            if future.status == "error":
                failure = future.exception()
                if isinstance(failure, KilledWorker):
                    raise self._killed_worker_error(failure, failed) from None
                future.result()
        if failed:
            raise self._lost_error("cancelled")

    def _result(self, future: Future) -> Any:
        """The result of a future that is done."""
        while True:
            try:
                return future.result(timeout=POLL_SECONDS)
            except TimeoutError:
                if future.status == "error":  # one of that name
                    raise
                self._check_cluster()
            except CancelledError as error:
                raise self._lost_error(error) from None
            except OSError as error:
                if self.client.status != "running":
                    raise self._lost_error(error) from None
                raise

    def _check_cluster(self) -> None:
        """Raise where there is nobody to wait for."""
        if self.client.status != "running":
            raise self._unreachable_error()
        try:
            workers = self.client.nthreads()
        except (OSError, TimeoutError) as error:
            raise self._unreachable_error() from error
        now = time.monotonic()
        if workers:
            self.no_workers_since = None
        elif self.no_workers_since is None:
            self.no_workers_since = now
        elif now - self.no_workers_since > self.engine.patience:
            raise self._no_workers_error()

    def _no_workers_error(self) -> RuntimeError:
        return RuntimeError(
            f"No worker of the Dask cluster at {self._address} appeared within "
            f"{self.engine.patience:g} s in the pass {self.name!r}. Start workers and "
            "fit again."
        )

    def _unreachable_error(self) -> ConnectionError:
        return ConnectionError(
            f"The Dask scheduler at {self._address} stopped responding in the pass "
            f"{self.name!r}. Nothing was fitted; connect to a cluster and fit again."
        )

    @property
    def _address(self) -> str:
        return getattr(self.client.scheduler, "address", "an unknown address")

    def _lost_error(self, reason: Any) -> Exception:
        """What was cancelled: with the scheduler, or for lack of what was sent."""
        if self.client.status != "running":
            return self._unreachable_error()
        return LostDataError(str(reason))

    def _killed_worker_error(
        self, error: KilledWorker, failed: Sequence[Future]
    ) -> RuntimeError:
        keys = {error.task, *(future.key for future in failed)}
        rows = sorted(self.rows_of[key] for key in keys if key in self.rows_of)
        row_ranges = " or ".join(f"rows {start} to {stop}" for start, stop in rows)
        return RuntimeError(
            f"In the pass {self.name!r} {row_ranges or error.task} killed "
            f"{error.allowed_failures + 1} workers one after the other. Check for "
            "rows that crash a library or take more memory than a worker has."
        )


#: So many tiles are worked on here where their rows are here.
MAX_LOCAL_TILES = 16


class Dask(RemoteEngine):
    """Run passes on the workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
        Client connected to the cluster.
    progress : callable, default=silent
        Called with (pass, tiles done, tiles in total).
    patience : float, default=300.0
        Seconds to wait for a worker if there is none.
    """

    client: Client
    patience: float
    sent: ScatterCache
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
        self.sent = ScatterCache()

    def map(
        self,
        f: Callable,
        source: Source,
        sink: Sink,
        shared: tuple[Any, ...],
        name: str,
    ) -> None:
        """Apply a function to all tiles and write its rows to a sink.

        Parameters
        ----------
        f : callable
            `f(block, *shared)` is applied to each tile.
        source : Source
            The rows.
        sink : sink
            Receives the rows of the results.
        shared : tuple
            Read-only arguments that are the same for all blocks.
        name : str
            Name of the pass, for progress and checkpoints.
        """
        source_payload = self._source_payload(source)
        if _is_small_and_local(source_payload):
            self.local.map(f, source, sink, shared, name)
            return
        self.begin_pass(name, source.n_rows, shared)
        payload = PassPayload.of(f, source_payload, shared, sink)
        with open_sink(sink), self.client.as_current():
            DaskPass(self, payload, source_payload, name).put_rows(sink)

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
        payload = PassPayload.of(f, source_payload, shared, None)
        with self.client.as_current():
            return DaskPass(self, payload, source_payload, name).total()

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


def _say_what_is_carried(source: Any) -> None:
    """Once for each array that comes with its data: its rows are sent from here."""
    for thing in vars(source).values():
        if isinstance(thing, Source):
            _say_what_is_carried(thing)
        elif isinstance(thing, DaskChunks) and thing.carried and not thing.with_error:
            thing.with_error = True
            warnings.warn(
                f"The Dask array holds {thing.carried / 2**20:.0f} MiB of data in "
                "its graph, as dask.array.from_array of an array does. Rows are "
                "therefore read in this process, block by block, and sent to the "
                "workers. To let workers read them, keep X in files: "
                "nystrom.sources.open(path), or dask.array.from_zarr.",
                UserWarning,
                stacklevel=2,
            )


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
