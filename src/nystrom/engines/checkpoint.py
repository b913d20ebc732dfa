"""Runs that survive a kill: an engine around an engine saves the results of passes in a
folder, and a repeated run replays them.

A repeated run takes the same way: what lies between passes follows from their results
and the seed. Passes are numbered and identified by digests of rows, function and
arguments. The folder holds one `.npz` file per pass, JSON and arrays without code, each
written atomically. A pass without a file is computed again.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import scipy.sparse as sp

from .._digest import digest
from .._validation import check_float
from ..sources import Block, Source
from ..sources.output import ArraySink, Sink, atomic_write, open_sink
from .base import FAN_IN, TILE, Engine, ProgressHook, SumTree, aligned_size, count_tiles

MANIFEST_FILE = "run.json"
#: Bytes of rows that are saved with a run.
MAX_SAVED_BYTES = 2**24

_STORABLE: dict[str, type] = {}


class CheckpointError(ValueError):
    """Raised if a checkpoint is damaged, or of other data, parameters or versions."""


class NotStorableError(TypeError):
    """A value that has no place in such a file."""


def storable(cls: type) -> type:
    """Mark a dataclass, whose fields are storable, by its name."""
    _STORABLE[cls.__name__] = cls
    return cls


def encode_value(value: Any, arrays: list[np.ndarray]) -> Any:
    """The value as JSON; arrays are put behind those found so far."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biuf":
        arrays.append(np.asarray(value))
        kind = "array" if isinstance(value, np.ndarray) else "scalar"
        return [kind, len(arrays) - 1]
    if type(value) in (tuple, list):
        kind, parts = type(value).__name__, value
    elif isinstance(value, sp.csr_array):
        kind, parts = "csr", [value.data, value.indices, value.indptr, value.shape]
    elif type(value) in _STORABLE.values():
        kind = type(value).__name__
        parts = [getattr(value, field.name) for field in fields(value)]
    else:
        raise NotStorableError(f"{type(value).__name__} cannot be stored.")
    return [kind, *(encode_value(part, arrays) for part in parts)]


def decode_value(tree: Any, arrays: list[np.ndarray]) -> Any:
    """The value that `encode_value` turned into JSON."""
    if not isinstance(tree, list):
        return tree
    kind, *parts = tree
    if kind in ("array", "scalar"):
        array = arrays[parts[0]]
        return array if kind == "array" else array[()]
    values = [decode_value(part, arrays) for part in parts]
    if kind == "csr":
        return sp.csr_array(tuple(values[:3]), shape=values[3])
    if kind in ("tuple", "list"):
        return tuple(values) if kind == "tuple" else values
    return _STORABLE[kind](*values)


#: What a pass is known by, in words: its name, and digests.
PassKey = dict[str, str]
#: What is known of a pass: how many of its tiles are done, and their sums in order,
#: each with its number of tiles.
Progress = tuple[int, Sequence[tuple[int, Any]]]


class CheckpointStore:
    """Folder that stores the passes of a run.

    Parameters
    ----------
    path : str or path-like
        The folder. It is created, or continued if it exists.
    every : float, default=300.0
        Seconds between saves within a pass. Results of whole passes are saved at once.
    """

    path: Path
    every: float

    def __init__(self, path: str | os.PathLike[str], every: float = 300.0) -> None:
        # A link is followed, not replaced.
        self.path = Path(os.path.realpath(path))
        self.every = check_float(every, "every", 0.0)

    @contextmanager
    def running(self, *, keep: bool = True) -> Iterator[CheckpointStore]:
        """Begin a run, or resume it from where it was saved.

        Parameters
        ----------
        keep : bool, default=True
            Whether to keep the folder when the run ends without an error.

        Yields
        ------
        store : CheckpointStore
            This store.
        """
        self.path.mkdir(exist_ok=True)
        for stale in self.path.glob(".*.part"):  # a process was killed while it wrote
            stale.unlink(missing_ok=True)
        self._seed = self._read_or_write_seed()
        self._n_passes = self._n_seeds = 0
        self._has_warned, self.saved_at = False, time.perf_counter()
        yield self
        if not keep:
            with suppress(OSError):  # files of others in it stay
                for file in [*self.path.glob("pass *.npz"), self.path / MANIFEST_FILE]:
                    file.unlink()
                self.path.rmdir()

    def _read_or_write_seed(self) -> int:
        manifest, version = (
            self.path / MANIFEST_FILE,
            sys.modules["nystrom"].__version__,
        )
        if not any(self.path.iterdir()):
            about = {"nystrom": version, "seed": secrets.randbits(63)}
            with atomic_write(manifest) as temporary:
                temporary.write_text(json.dumps(about))
        try:
            about = json.loads(manifest.read_bytes())
            written_by, seed = about["nystrom"], about["seed"]
        except (OSError, KeyError, ValueError, TypeError) as error:
            raise self._damaged_error(self.path, error) from None
        if written_by != version:
            raise CheckpointError(
                f"{self.path} was written by nystrom {written_by}, and this is nystrom "
                f"{version}: passes may differ. Continue with that version, or delete "
                "the folder to start again."
            )
        return seed

    def seed(self) -> int:
        """Return the next seed for random_state=None.

        The seed is the same when the run is repeated.

        Returns
        -------
        seed : int
            The seed.
        """
        self._n_seeds += 1
        return int(digest(self._seed, self._n_seeds), 16) >> 1

    def next_pass(self, key: PassKey) -> Progress:
        """Return what is stored of the pass that begins.

        Parameters
        ----------
        key : PassKey
            Name and digests of the pass.

        Returns
        -------
        n_done, sums : int, sequence of (int, object)
            Tiles that are done, and their sums.
        """
        self._n_passes += 1
        if not self._pass_file.exists():
            return 0, ()
        try:  # zipfile compares the checksums
            with open(self._pass_file, "rb") as stream, np.load(stream) as stored:
                about = json.loads(stored["about"].tobytes())
                arrays = [stored[f"{i}"] for i in range(len(stored.files) - 1)]
            saved_key, n_done = about["key"], about["n_done"]
        except (OSError, BadZipFile, KeyError, ValueError, EOFError) as error:
            raise self._damaged_error(self._pass_file, error) from None
        differing = [what for what in key if saved_key.get(what) != key[what]]
        if differing:
            raise CheckpointError(
                f"{self.path} belongs to another run: its pass {self._n_passes} "
                f"({saved_key.get('name')!r}) "
                f"had other {', other '.join(differing)}. Repeat that run, with the "
                "same data, parameters and versions, or delete the folder to start "
                "again."
            )
        return n_done, decode_value(about["sums"], arrays)

    def save(self, key: PassKey, n_done: int, sums: Sequence[tuple[int, Any]]) -> None:
        """Store what is known of the pass that began last.

        One warning reports that writing failed.

        Parameters
        ----------
        key : PassKey
            Name and digests of the pass.
        n_done : int
            Number of tiles that are done.
        sums : sequence of (int, object)
            Their sums in order, each with its number of tiles.
        """
        arrays = list[np.ndarray]()
        try:
            encoded = encode_value(list(sums), arrays)
        except NotStorableError:
            return
        about = {"key": key, "n_done": n_done, "sums": encoded}
        text = np.frombuffer(json.dumps(about).encode(), np.uint8)
        named = {f"{i}": array for i, array in enumerate(arrays)}
        try:
            with (
                atomic_write(self._pass_file) as temporary,
                open(temporary, "xb") as stream,
            ):
                np.savez(stream, about=text, **named)  # type: ignore[arg-type]
        except (OSError, BadZipFile, ValueError) as error:  # the last two by zipfile
            if not self._has_warned:
                warnings.warn(
                    f"The checkpoint {self.path} could not be written: {error}. The "
                    "old one is unchanged, and unsaved passes will be computed again.",
                    RuntimeWarning,
                    stacklevel=2,
                )
            self._has_warned = True
        self.saved_at = time.perf_counter()

    @property
    def _pass_file(self) -> Path:
        """Of the pass that began last."""
        return self.path / f"pass {self._n_passes - 1}.npz"

    def _damaged_error(self, path: Path, error: Exception) -> CheckpointError:
        return CheckpointError(
            f"{path} is not a checkpoint, or it is damaged ({error}). Delete the "
            "folder to start again, or name another one."
        )


def source_fingerprint(source: Source) -> str:
    """What the rows, weights and targets of a source are known by."""
    # Weights and targets once more: a source of one's own may say nothing of them.
    extra = source._weights_and_targets_digest()
    return digest(source.n_rows, source.n_features, source.fingerprint(), extra)


class Checkpoint(Engine):
    """Run passes on another engine and store their results in a folder.

    Parameters
    ----------
    inner : Engine
        Engine that runs the passes.
    run : CheckpointStore
        Where results are stored, inside `run.running()`.
    """

    inner: Engine
    run: CheckpointStore
    progress: ProgressHook

    def __init__(self, inner: Engine, run: CheckpointStore) -> None:
        self.inner, self.run = inner, run
        self.progress = inner.progress
        self._last_fingerprint: list[tuple[Source, str]] = []

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
        key, _, sums = self._begin(f, source, shared, name)
        if sums:
            with open_sink(sink):
                sink.put(0, sums[0][1])
            return
        inner = self.inner.with_progress(self._offset_progress(0, source))
        inner.map(f, source, sink, shared, name)
        rows = sink.array if type(sink) is ArraySink else None
        if isinstance(rows, np.ndarray) and rows.nbytes <= MAX_SAVED_BYTES:
            n_tiles = count_tiles(source.n_rows)
            self.run.save(key, n_tiles, [(n_tiles, rows)])

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
        key, tile, sums = self._begin(f, source, shared, name)
        n_tiles, run = count_tiles(source.n_rows), self.run
        tree, size, seconds = SumTree.replace(sums), 1, 0.0
        # Range by range: between two of them it can be saved.
        while tile < n_tiles:
            size = next_range_size(tile, size, seconds, run.every / 4)
            tile_range = TileRange(source, tile, tile + size)
            started = time.perf_counter()
            inner = self.inner.with_progress(self._offset_progress(tile, source))
            tree.push(inner.reduce(f, tile_range, shared, name), size)
            now = time.perf_counter()
            seconds, tile = now - started, tile + size
            if tile < n_tiles and now - run.saved_at >= run.every:
                run.save(key, tile, tree.partial)
        total = tree.total()
        if seconds:  # else all of it was saved
            run.save(key, n_tiles, [(n_tiles, total)])
        return total

    def _begin(
        self, f: Callable, source: Source, shared: tuple[Any, ...], name: str
    ) -> tuple[PassKey, int, Sequence[tuple[int, Any]]]:
        """What the pass is known by, and what was saved of it."""
        # Many passes over the same rows read them once.
        if not self._last_fingerprint or self._last_fingerprint[0][0] is not source:
            self._last_fingerprint[:] = [(source, source_fingerprint(source))]
        key = {
            "name": name,
            "function": f"{f.__module__}.{f.__qualname__}",
            "rows, weights or targets": self._last_fingerprint[0][1],
            "parameters": digest(shared),
        }
        n_done, sums = self.run.next_pass(key)
        self.begin_pass(name, source.n_rows, shared)
        if n_done:
            self.progress(name, n_done, count_tiles(source.n_rows))
        return key, n_done, sums

    def _offset_progress(self, first: int, source: Source) -> Callable:
        n_tiles = count_tiles(source.n_rows)

        def report(name: str, done: int, total: int) -> None:
            if done:  # else it is the beginning of a range of tiles
                self.progress(name, first + done, n_tiles)

        return report

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
        return self.inner.each(f, items, multiply_adds)

    @property
    def local(self) -> Engine:
        """The other engine's own: rows that are held here are few."""
        local = self.inner.local.with_progress(self.progress)
        local.passes = self.passes
        return local


def next_range_size(tile: int, size: int, seconds: float, target: float) -> int:
    """How many tiles are summed next, where the last `size` took so many seconds: ever
    more until that takes long, and only so many as may be one term of a `SumTree`.
    """
    if FAN_IN * seconds <= target and tile:
        size *= FAN_IN
    elif seconds > FAN_IN * target:
        size = max(1, size // FAN_IN)
    return aligned_size(tile, size)


class TileRange(Source):
    """Some tiles of another source, which stay where they are."""

    def __init__(self, source: Source, tile: int, last: int) -> None:
        self.source, self.first = source, tile * TILE
        self.n_rows = min(last * TILE, source.n_rows) - self.first
        self.n_features = source.n_features
        self.supports_random_access = source.supports_random_access

    def block(self, start: int, stop: int) -> Block:
        return self.source.block(self.first + start, self.first + stop)

    def rows(self, start: int, stop: int) -> Any:
        return self.source.rows(self.first + start, self.first + stop)

    def take(self, indices: np.ndarray) -> Any:
        return self.source.take(self.first + np.asarray(indices))
