"""Rows of a Dask array or data frame, computed chunk by chunk.

With `engines.dask` and `estimators._progress`, all that knows Dask.
"""

from __future__ import annotations

import io
import sys
import uuid
from contextlib import nullcontext, suppress
from itertools import pairwise
from typing import Any

import numpy as np

from .. import _arrays as arrays
from .base import ChunkedRows, Source, as_feature_names
from .tabular import CHUNK_CACHE

#: A graph that holds more bytes of arrays than this, and more than this share of what
#: it makes, is not sent to workers: each of its tasks would take them along.
MOST_CARRIED, SHARE_CARRIED = 2**21, 1 / 8
#: Bytes of rows that are read at a time of such an array.
READ_BYTES = 2**26


def is_dask(X: Any) -> bool:
    """Check whether X is a Dask array or data frame.

    Parameters
    ----------
    X : object
        Anything.

    Returns
    -------
    answer : bool
        Whether it is.
    """
    library = type(X).__module__.partition(".")[0]
    return library in ("dask", "dask_expr") and hasattr(type(X), "__dask_graph__")


class DaskRows(Source):
    """The rows of a Dask array or data frame.

    Chunks of columns are joined. Chunks of unknown length are counted once. Each chunk
    is computed by Dask's current scheduler when its rows are read; with the Dask
    engine, by the worker that processes them.
    """

    n_rows: int
    n_features: int | None
    supports_random_access = False

    def __init__(self, X: Any, weights: np.ndarray | None = None) -> None:
        self.chunks: Any = DaskChunks(as_dask_matrix(X))
        self.feature_names: tuple[str, ...] | None = column_names(X)
        self.n_rows, self.n_features = self.chunks.X.shape
        self.weights = weights

    @property
    def default_engine(self) -> Any:
        """The client whose cluster holds the chunks, else Dask's default; or None."""
        if self.chunks.client is not None:
            return self.chunks.client
        distributed = sys.modules.get("distributed")
        try:
            return distributed and distributed.default_client()
        except ValueError:
            return None

    def rows(self, start: int, stop: int) -> np.ndarray:
        return _as_finite_rows(self.chunks[start:stop], start)

    def take(self, indices: np.ndarray) -> np.ndarray:
        unique_rows, inverse = np.unique(np.asarray(indices, int), return_inverse=True)
        rows = self.chunks.compute(self.chunks.X[unique_rows])
        return arrays.as_float(_as_finite_rows(rows, unique_rows)[inverse])

    def take_lazily(self, indices: np.ndarray) -> DaskRows:
        """These rows, in ascending order, as lazy as all of them."""
        some = DaskRows(self.chunks.X[indices])
        # The numbers of rows in its graph are no rows.
        some.chunks = DaskChunks(some.chunks.X, carried=self.chunks.carried)
        return some


def column_names(X: Any) -> tuple[str, ...] | None:
    """What the columns of a data frame are called."""
    return as_feature_names(X.columns) if hasattr(type(X), "columns") else None


def persisting_client(X: Any) -> Any:
    """The client of the cluster that chunks of X are held on (`persist`), or None."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    graph = X.__dask_graph__()
    for layer in getattr(graph, "layers", {"": graph}).values():
        # Layers that are not written out have no chunks of their own.
        tasks = getattr(layer, "mapping", layer if isinstance(layer, dict) else {})
        for task in tasks.values():
            value = getattr(task, "value", task)
            if isinstance(value, distributed.Future):
                return _check_connected(value.client)
    return None


def compute(X: Any) -> Any:
    """The values of a Dask array or data frame, by the cluster that holds it."""
    return _compute_on(X, persisting_client(X))


def carried_bytes(X: Any) -> int:
    """The bytes of arrays that the graph of X holds, as `da.from_array` puts them."""
    from cloudpickle import Pickler

    class Counting(Pickler):
        """Goes through all that would be sent, and passes over what arrays hold."""

        def persistent_id(self, thing: Any) -> int | None:
            if not isinstance(thing, np.ndarray) or thing.dtype.hasobject:
                return None
            sizes[id(thing)] = thing.nbytes
            return id(thing)

    sizes: dict[int, int] = {}
    with suppress(Exception):  # what cannot be pickled is sent in ways of Dask's own
        Counting(_Nowhere(), protocol=5).dump(X.__dask_graph__())
    return sum(sizes.values())


class _Nowhere(io.BytesIO):
    """A stream that keeps nothing."""

    def write(self, data: Any) -> int:
        return memoryview(data).nbytes


def _compute_on(X: Any, client: Any) -> Any:
    return X.compute() if client is None else client.compute(X, sync=True)


def _check_connected(client: Any) -> Any:
    if client.status in ("closed", "closing"):
        raise ValueError(
            "X is a Dask array that was persisted on a cluster whose client is "
            "closed; its chunks are lost. Create it again, and keep the client open."
        )
    return client


def as_dask_matrix(X: Any, known_lengths: bool = True) -> Any:
    """A Dask array of numbers with all columns in each chunk.

    `lengths`: and with known lengths of chunks, which may have to be counted.
    """
    client = persisting_client(X)
    with nullcontext() if client is None else client.as_current():
        if not known_lengths or client is not None or carried_bytes(X) <= MOST_CARRIED:
            return _as_dask_matrix(X, known_lengths)
        import dask

        with dask.config.set(scheduler="threads"):  # counted where the data is
            return _as_dask_matrix(X, known_lengths)


def _as_dask_matrix(X: Any, known_lengths: bool) -> Any:
    if hasattr(type(X), "columns"):
        X = X.to_dask_array(lengths=known_lengths or None)
    if not hasattr(type(X), "chunks") or X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got a Dask {type(X).__name__} that is not a table; "
            "pass a Dask array of shape (n_samples, n_features), or a data frame."
        )
    if X.dtype.kind not in "biuf":
        raise ValueError(
            f"X holds {X.dtype} values that are not numbers. Encode text columns as "
            "numbers."
        )
    if known_lengths and np.isnan(X.shape[0]):
        X = X.copy().compute_chunk_sizes()  # the caller's array stays as it is
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def _as_finite_rows(rows: Any, start: Any) -> np.ndarray:
    """Rows of a chunk as floats; `start` is the number of the first, or all numbers."""
    rows = arrays.as_float(np.asarray(rows))
    if not np.isfinite(rows).all():
        i, column = np.argwhere(~np.isfinite(rows))[0]
        row = start + i if np.ndim(start) == 0 else start[i]
        raise ValueError(
            f"X contains NaN or infinity: row {row}, column {column}. Impute it, for "
            "example with scikit-learn's SimpleImputer, or drop such rows."
        )
    return rows


class DaskChunks(ChunkedRows):
    """The array, chunk by chunk; those read last are kept for the tiles to come."""

    def __init__(self, X: Any, carried: int | None = None) -> None:
        self.X, self.client = X, persisting_client(X)
        self.n_rows, self.n_features = X.shape
        #: Bytes that the graph brings along; 0 where workers make, read or hold them.
        self.carried = self._carried() if carried is None else carried
        #: Whether this was said; see `engines/dask.py`.
        self.has_warned = False
        self.bounds = np.unique(np.cumsum([0, *X.chunks[0]]))  # without empty chunks
        if self.carried:
            most = max(1, READ_BYTES // max(1, X.dtype.itemsize * X.shape[1]))
            between = [np.arange(a, b, most) for a, b in pairwise(self.bounds)]
            self.bounds = np.concatenate([*between, self.bounds[-1:]])
        self._token = uuid.uuid4().hex  # what its chunks are kept by

    def __reduce__(self) -> tuple[type, tuple]:
        # Where it is copied to, it begins anew.
        return type(self), (self.X, self.carried)

    def _carried(self) -> int:
        if self.client is not None:
            return 0
        carried = carried_bytes(self.X)
        much = carried > max(MOST_CARRIED, SHARE_CARRIED * self.X.nbytes)
        return carried if much else 0

    def __getitem__(self, key: slice) -> np.ndarray:
        return self.rows(key.start, key.stop)

    def _part(self, chunk: int, places: slice | np.ndarray) -> np.ndarray:
        begin, end = map(int, self.bounds[chunk : chunk + 2])

        def compute_chunk() -> np.ndarray:
            # A view, since what is kept is read-only, and the user's array is not.
            return np.asarray(self.compute(self.X[begin:end])).view()

        return CHUNK_CACHE.get((self._token, begin), compute_chunk)[places]

    def compute(self, part: Any) -> Any:
        """Some of the array, by the cluster that holds it; here, where data is here."""
        if self.carried:
            return part.compute(scheduler="threads")
        return _compute_on(part, self.client)
