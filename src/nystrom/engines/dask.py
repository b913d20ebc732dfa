"""Passes on a Dask cluster: tiles are read and summed where the workers are."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

from distributed import Client

from ..sinks import Sink, opened
from ..sources import DaskRows, Source, Subset
from ..sources.dask_rows import Chunks
from .at_workers import Work
from .awaiting import Watch
from .dask_pass import Pass
from .elsewhere import Elsewhere
from .progress import Hook, silent
from .sending import Sent
from .tiles import count_tiles
from .travelling import Parcel

#: So many tiles are worked on here where their rows are here.
FEW_TILES = 16


class Dask(Elsewhere):
    """Runs passes on the workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
        Connected to the cluster.
    progress : callable
        Called with (pass, tiles done, tiles in all).
    patience : float
        Seconds to wait for a worker where there is none.
    """

    client: Client
    patience: float
    sent: Sent
    progress: Hook

    def __init__(
        self, client: Client, progress: Hook = silent, patience: float = 300.0
    ) -> None:
        if client.asynchronous:
            raise TypeError(
                "The Dask client is asynchronous, and fits are not; pass one that was "
                "made without asynchronous=True."
            )
        self.client, self.progress, self.patience = client, progress, patience
        self.sent = Sent()

    def map(
        self,
        f: Callable,
        source: Source,
        sink: Sink,
        shared: tuple[Any, ...],
        name: str,
    ) -> None:
        """Put f(block, *shared) into the sink for every tile."""
        parcel = self._parcel(source)
        if _is_little(parcel):
            self.local.map(f, source, sink, shared, name)
            return
        there = sink if sink.anywhere else None
        work = Work(f, parcel, shared, there)
        with opened(sink), self.client.as_current():
            for rows_of_tiles in self._pass(work, parcel, name).rows():
                for start, rows in rows_of_tiles:
                    sink.put(start, rows)

    def reduce(
        self, f: Callable, source: Source, shared: tuple[Any, ...], name: str
    ) -> Any:
        """The sum of f(block, *shared) over all tiles, always in the same order."""
        parcel = self._parcel(source)
        if _is_little(parcel):
            return self.local.reduce(f, source, shared, name)
        with self.client.as_current():
            return self._pass(Work(f, parcel, shared), parcel, name).total()

    def _parcel(self, source: Source) -> Parcel:
        parcel = Parcel(_as_lazy(source), Chunks)
        if parcel.content is None:
            _say_what_is_carried(source)
        for chunks in parcel.left:
            if chunks.client not in (None, self.client):
                raise ValueError(
                    "The Dask array was persisted by another client than the one in "
                    f"use ({chunks.client!r}, not {self.client!r}), and its chunks "
                    "cannot be had from there. Use the client that persisted it, "
                    "engines.using(client), or compute it."
                )
        return parcel

    def _pass(self, work: Work, parcel: Parcel, name: str) -> Pass:
        self.passes.append(name)
        watch = Watch(self.client, self.patience, name)
        return Pass(work, parcel, watch, self.sent, self.progress)


def _say_what_is_carried(source: Any) -> None:
    """Once for each array that comes with its data: its rows are sent from here."""
    for thing in vars(source).values():
        if isinstance(thing, Source):
            _say_what_is_carried(thing)
        elif isinstance(thing, Chunks) and thing.carried and not thing.told:
            thing.told = True
            warnings.warn(
                f"The Dask array holds {thing.carried / 2**20:.0f} MiB of data in its "
                "graph, as dask.array.from_array of an array does, and each task would "
                "take all of it to a worker. So rows are read in this process, block "
                "by block, and sent to the workers. To have workers read them, keep X "
                "in files: nystrom.sources.open(path), or dask.array.from_zarr.",
                UserWarning,
                stacklevel=2,
            )


def _is_little(parcel: Parcel) -> bool:
    """Whether the rows are held here, and too few to be sent elsewhere."""
    held = parcel.content is None or len(parcel.content) >= parcel.n_rows
    return held and count_tiles(parcel.n_rows) <= FEW_TILES


def _as_lazy(source: Source) -> Source:
    """The source, with some rows of a Dask array as a Dask array themselves."""
    if type(source) is Subset and isinstance(source.source, DaskRows):
        weights = source.weights if source.is_weighted else None
        some = source.source.some(source.indices)
        return some.having(weights=weights, targets=source.targets)
    inner = {name: v for name, v in vars(source).items() if isinstance(v, Source)}
    changed = {name: _as_lazy(v) for name, v in inner.items()}
    if all(changed[name] is inner[name] for name in inner):
        return source
    source = copy.copy(source)
    vars(source).update(changed)
    return source
