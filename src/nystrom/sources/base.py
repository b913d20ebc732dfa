"""The `Source` contract, and sources whose rows are in memory or computed on demand.

A source has rows and, optionally, weights (a row of weight w counts as w rows) and
targets. Only `rows` and `take` differ between kinds of storage.
"""

from __future__ import annotations

import copy
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from .._arrays import Array
from .._digest import digest, digest_row_indices


def unit_weights(n_rows: int) -> np.ndarray:
    """The weights of rows that all count alike."""
    return np.broadcast_to(np.float64(1.0), n_rows)


def are_unit_weights(weights: np.ndarray) -> bool:
    """Whether these are `ones`, or a slice of them."""
    return weights.strides == (0,) and bool(np.all(weights[:1] == 1))


def multiply_weights(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """wᵢ·vᵢ; the values themselves where all count alike."""
    if are_unit_weights(weights):
        return values
    with np.errstate(over="ignore"):  # what is not finite is refused by its user
        return weights * values


def weighted_sum(weights: np.ndarray, values: Array) -> Any:
    """Σ wᵢvᵢ, in float64: a number, or an array of one where the values are."""
    with np.errstate(over="ignore"):
        if are_unit_weights(weights):
            return arrays.sum_float64(values)
        if arrays.is_on_host(values):
            return float(weights @ values)
        return arrays.sum_float64(
            arrays.from_host(weights, values, weights.dtype) * values
        )


def weighted_row_sum(weights: np.ndarray, values: Array) -> Array:
    """Σ wᵢvᵢ over the rows of values, column by column, where these are."""
    if are_unit_weights(weights):
        return arrays.namespace(values).sum(values, axis=0)
    return arrays.from_host(weights, values) @ values


def weighted_row_squares(weights: np.ndarray, values: Array) -> Array:
    """Σ wᵢvᵢ² over the rows of values, column by column, where these are."""
    if are_unit_weights(weights):
        return arrays.column_squared_norms(values)
    return weighted_row_sum(weights, values * values)


def weighted_mean(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Σ wᵢvᵢ/Σ wᵢ over rows of values; of all alike where none counts."""
    if are_unit_weights(weights) or not weights.any():
        return values.mean(axis=0)
    return np.average(values, axis=0, weights=weights)


@dataclass(frozen=True)
class Block:
    """Rows of one tile of a source, with weights and targets."""

    start: int
    X: Any
    weights: np.ndarray
    targets: np.ndarray | None = None
    #: The numbers of the rows; None where they follow each other from `start` on.
    numbers: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.weights)


class Source(ABC):
    """Base class of rows that are read in blocks.

    A subclass sets `n_rows` and `n_features` and implements `rows` and `take`.
    """

    n_rows: int
    n_features: int | None = None  # None where the rows are not vectors
    #: What the features are called, where that is known; rows in another order of them
    #: are then refused by estimators.
    feature_names: tuple[str, ...] | None = None
    #: The files that rows are read from.
    files: tuple[str, ...] = ()
    #: (n_rows, n_targets), where there are any: an array, or `Targets` that are read.
    targets: Any = None
    #: Whether some rows cost no more than their share of all: not so in a file, where
    #: rows that are wanted again are better kept.
    supports_random_access: bool = True
    #: Whether it is part of another source.
    is_subset: bool = False
    #: A few rows that were read before.
    kept: Any = None
    #: Whether blocks are of a library with threads, or a device, of its own: one of
    #: them is then worked on at a time, and may be larger.
    on_device: bool = False
    #: What its passes run on where no engine is in use: whatever `engines.using` takes.
    default_engine: Any = None
    _weights: np.ndarray | None = None

    @abstractmethod
    def rows(self, start: int, stop: int) -> Any:
        """Read a block of consecutive rows.

        Parameters
        ----------
        start : int
            First row.
        stop : int
            Row after the last one.

        Returns
        -------
        rows : array, sparse matrix or list
            The rows, as the kernel accepts them.
        """

    @abstractmethod
    def take(self, indices: np.ndarray) -> Any:
        """Read the rows with the given numbers, in this order.

        Parameters
        ----------
        indices : ndarray of int
            Row numbers.

        Returns
        -------
        rows : array, sparse matrix or list
            The rows.
        """

    @property
    def weights(self) -> np.ndarray:
        """Weights of the rows, of shape (n_rows,); 1 unless given."""
        return unit_weights(self.n_rows) if self._weights is None else self._weights

    @weights.setter
    def weights(self, given: np.ndarray | None) -> None:
        self._weights = given

    @property
    def is_weighted(self) -> bool:
        """Whether weights were given."""
        return self._weights is not None

    @property
    def total_weight(self) -> float:
        """Sum of the weights."""
        return float(self.n_rows if self._weights is None else self._weights.sum())

    def weights_of(self, indices: np.ndarray) -> np.ndarray:
        """Get the weights of some rows.

        Parameters
        ----------
        indices : ndarray of int
            Row numbers.

        Returns
        -------
        weights : ndarray
            Their weights.
        """
        if self._weights is None:
            return unit_weights(len(indices))
        return self._weights[indices]

    def block(self, start: int, stop: int) -> Block:
        """Read a block of rows with weights and targets.

        Parameters
        ----------
        start : int
            First row.
        stop : int
            Row after the last one.

        Returns
        -------
        block : Block
            The block.
        """
        targets = None if self.targets is None else self.targets[start:stop]
        numbers = self.numbers(start, stop)
        weights = self.weights[start:stop]
        return Block(start, self.rows(start, stop), weights, targets, numbers)

    @property
    def original(self) -> Source:
        """The rows as they were given; results are returned in their library."""
        return self

    def numbers(self, start: int, stop: int) -> np.ndarray | None:
        """Get the row numbers of a block, if they differ from its positions.

        Parameters
        ----------
        start : int
            First row.
        stop : int
            Row after the last one.

        Returns
        -------
        numbers : ndarray of int or None
            Row numbers.
        """
        return None

    def take_numbered(self, numbers: np.ndarray) -> Any:
        """Read the rows with the given row numbers.

        Parameters
        ----------
        numbers : ndarray of int
            Row numbers.

        Returns
        -------
        rows : array, sparse matrix or list
            The rows.
        """
        return self.take(numbers)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "kept"}

    def fingerprint(self) -> str:
        """Compute a digest of rows, weights and targets.

        For many rows in memory it uses a part of them; for a file its path, size and
        time.

        Returns
        -------
        digest : str
            16 hexadecimal digits.
        """
        width = 8 * (self.n_features or 1)
        rows = self.take(digest_row_indices(self.n_rows, width))
        shape = (type(self).__name__, self.n_rows, self.n_features)
        return digest(shape, rows, self._weights_and_targets_digest())

    def _weights_and_targets_digest(self) -> str:
        """What the fingerprint says of weights and targets."""
        indices = digest_row_indices(self.n_rows, 8)
        weights = self.weights_of(indices) if self.is_weighted else None
        targets = self.targets
        if hasattr(targets, "of"):
            targets = targets.of.fingerprint()
        elif targets is not None:
            targets = targets[indices]
        return digest(weights, targets)

    def __repr__(self) -> str:
        said = [os.path.basename(file) for file in self.files[:1]]
        said += [f"{len(self.files) - 1} more files"] * (len(self.files) > 1)
        said.append(f"{self.n_rows:,} rows")
        if self.n_features is not None:
            said[-1] += f" × {self.n_features} features"
        if self.targets is not None:
            said.append(f"{self.targets.shape[-1]} targets")
        said += ["weighted"] * self.is_weighted
        return f"{type(self).__name__}({', '.join(said)})"

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError(
            f"{type(self).__name__} is a source, whose rows are not in memory. Wrap a "
            "transformer, BlockwiseTransformer(StandardScaler()), or read some rows, "
            "source.take([0, 1, 2])."
        )

    def replace(self, **values: Any) -> Source:
        """Return the same rows with other weights or targets.

        Parameters
        ----------
        **values : dict
            `weights` or `targets`.

        Returns
        -------
        source : Source
            A copy that shares the rows.
        """
        modified = copy.copy(self)
        for name, value in values.items():
            setattr(modified, name, value)
        return modified


def as_feature_names(columns: Iterable[Any]) -> tuple[str, ...] | None:
    """What columns are called; None unless all of them have names that are text."""
    names = tuple(columns)
    text = names and all(isinstance(name, str) for name in names)
    return tuple(map(str, names)) if text else None


class DenseRows(Source):
    """Rows of a 2-D array of any array library, in memory or memory-mapped.

    Blocks of memory maps, integers and Fortran-ordered arrays are copied to floats when
    they are read. The whole array is never copied.
    """

    def __init__(self, X: Array, weights: np.ndarray | None = None) -> None:
        self.X = X
        self.n_rows, self.n_features = X.shape
        self.weights = weights
        self.on_device = not arrays.is_on_host(X)

    def rows(self, start: int, stop: int) -> Array:
        return arrays.as_float(self.X[start:stop, :])

    def take(self, indices: np.ndarray) -> Array:
        return arrays.as_float(arrays.take_rows(self.X, indices))


class SparseRows(Source):
    """The rows of a CSR matrix."""

    def __init__(self, X: Any, weights: np.ndarray | None = None) -> None:
        self.X = arrays.as_canonical_csr(sp.csr_array(X))
        self.n_rows, self.n_features = X.shape
        self.weights = weights

    def rows(self, start: int, stop: int) -> Any:
        return arrays.as_float(self.X[start:stop])

    def take(self, indices: np.ndarray) -> Any:
        return arrays.as_float(self.X[indices])


class ObjectRows(Source):
    """Rows of any kind, such as strings or graphs, for a kernel of objects."""

    def __init__(self, X: Sequence[Any], weights: np.ndarray | None = None) -> None:
        self.X = X
        self.n_rows = len(X)
        self.weights = weights

    def rows(self, start: int, stop: int) -> list[Any]:
        return list(self.X[start:stop])

    def take(self, indices: np.ndarray) -> list[Any]:
        return [self.X[i] for i in indices]


class RowNumbers(Source):
    """The row numbers 0 … n − 1, for kernel="precomputed"."""

    def __init__(self, n_rows: int, weights: np.ndarray | None = None) -> None:
        self.n_rows = n_rows
        self.weights = weights

    def rows(self, start: int, stop: int) -> np.ndarray:
        return np.arange(start, stop)

    def take(self, indices: np.ndarray) -> np.ndarray:
        return np.asarray(indices)


class Targets:
    """Targets that are read from a source, like an array (n_rows, n_targets).

    Parameters
    ----------
    of : Source
        Source whose rows are the targets.
    single : bool
        Whether predictions have the shape (n_rows,) instead of (n_rows, n_targets).
    names : ndarray of str or bool, or None
        Class labels if the file has text or booleans: target i means `names[i]`.
    """

    of: Source
    single: bool
    names: np.ndarray | None
    shape: tuple[int, int]

    def __init__(
        self, of: Source, single: bool = False, names: np.ndarray | None = None
    ) -> None:
        self.of, self.single, self.names = of, single, names
        assert of.n_features is not None
        self.shape = (of.n_rows, of.n_features)

    def with_source(self, source: Source) -> Targets:
        """The same targets of other rows."""
        return Targets(source, self.single, self.names)

    def __repr__(self) -> str:
        classes = "" if self.names is None else f", {len(self.names)} classes"
        return f"Targets({len(self):,} rows × {self.shape[1]}{classes})"

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> np.ndarray:
        """Rows by a slice or by their numbers, in float64."""
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            rows = self.of.rows(start, max(start, stop))
            return np.ascontiguousarray(arrays.to_host_float64(rows)[::step])
        return arrays.to_host_float64(self.of.take(np.asarray(key)))


def check_targets_and_weights(source: Source) -> Source:
    """The source, with the targets and weights that a user gave it as they are used:
    numbers in two dimensions, or classes by their places among all of them.
    """
    given, weights = source.targets, source._weights
    if isinstance(given, (Sequence, np.ndarray)) or hasattr(given, "to_numpy"):
        values = np.asarray(given)
        values = np.array(values.tolist()) if values.dtype.kind == "O" else values
        classes = None
        if values.dtype.kind in "UST" and values.ndim == 1:
            classes, values = np.unique(values, return_inverse=True)
        is_finite = values.dtype.kind in "biuf" and np.isfinite(values).all()
        if len(values) != source.n_rows or values.ndim > 2 or not is_finite:
            raise ValueError(
                f"{type(source).__name__} has targets of shape {values.shape} and "
                f"dtype {values.dtype} for {source.n_rows} rows; it needs one finite "
                "number, or several, or the text of a class for each row."
            )
        if values.ndim == 1:
            codes = DenseRows(values[:, None])
            source = source.replace(targets=Targets(codes, True, classes))
    if weights is not None:
        weights = np.asarray(weights, dtype=np.float64)
        is_valid = weights.shape == (source.n_rows,) and np.all(weights >= 0)
        if not (is_valid and 0 < weights.max() < np.inf):
            raise ValueError(
                f"{type(source).__name__} has weights of shape {weights.shape} for "
                f"{source.n_rows} rows; they must be finite and >= 0 for every row, "
                "and > 0 for at least one."
            )
        source = source.replace(weights=weights)
    return source


class ChunkedRows(Source):
    """Rows in chunks, one after the other, each of which is read or made as a whole."""

    #: (chunks + 1,) the first row of each, and the number of all.
    bounds: np.ndarray

    @abstractmethod
    def _part(self, chunk: int, places: slice | np.ndarray) -> Any:
        """Some rows of a chunk, by their places in it: consecutive ones, or a list."""

    def _chunk_of(self, row: Any) -> Any:
        return np.searchsorted(self.bounds, row, side="right") - 1

    def _first_row(self, chunk: int) -> int:
        return int(self.bounds[chunk])

    def rows(self, start: int, stop: int) -> Any:
        stop = min(stop, self.n_rows)
        if stop <= start:
            return self._part(0, slice(0, 0))
        pieces = []
        for chunk in range(self._chunk_of(start), self._chunk_of(stop - 1) + 1):
            first = self._first_row(chunk)
            places = slice(max(0, start - first), stop - first)
            pieces.append(self._part(chunk, places))
        return pieces[0] if len(pieces) == 1 else arrays.stack_rows(pieces)

    def take(self, indices: np.ndarray) -> Any:
        # Each chunk is read once, and of it only what is wanted is kept.
        indices = np.asarray(indices, dtype=np.int64)
        order = np.argsort(indices, kind="stable")
        chunks, starts = np.unique(self._chunk_of(indices[order]), return_index=True)
        if not len(chunks):
            return self._part(0, slice(0, 0))
        pieces = [
            self._part(chunk, indices[positions] - self._first_row(chunk))
            for chunk, positions in zip(
                chunks.tolist(), np.split(order, starts[1:]), strict=True
            )
        ]
        inverse = np.empty_like(order)
        inverse[order] = np.arange(len(order))
        return arrays.take_rows(arrays.stack_rows(pieces), inverse)


class GeneratedRows(ChunkedRows):
    """Rows that a function generates, chunk by chunk.

    Parameters
    ----------
    make : callable
        `make(start, stop)` returns rows start to stop as an array, always the same
        ones. It is called with whole chunks. To run in other processes it must be
        picklable.
    n_rows : int
        Number of rows.
    n_features : int
        Number of features.
    chunk : int, default=1024
        Rows per call. Passes read 1024 rows at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import select_landmarks, sources
    >>> def walk(start, stop):
    ...     t = np.arange(start, stop)
    ...     return np.column_stack([np.cos(t), np.sin(t), t / 1e6])
    >>> landmarks = select_landmarks(
    ...     sources.GeneratedRows(walk, 1_000_000, 3), n_landmarks=20,
    ...     sampler="uniform", random_state=0,
    ... )
    >>> landmarks.points.shape
    (20, 3)
    """

    make: Callable[[int, int], Any]
    chunk: int
    #: Some rows cost as much as their chunks.
    supports_random_access = False

    def __init__(
        self,
        make: Callable[[int, int], Any],
        n_rows: int,
        n_features: int,
        chunk: int = 1024,
    ) -> None:
        self.make, self.chunk = make, chunk
        self.n_rows, self.n_features = n_rows, n_features

    def _chunk_of(self, row: Any) -> Any:
        return row // self.chunk

    def _first_row(self, chunk: int) -> int:
        return chunk * self.chunk

    def _part(self, chunk: int, places: slice | np.ndarray) -> Any:
        rows = self._generate_chunk(chunk)
        if isinstance(places, slice):
            return arrays.slice_rows(rows, places.start, places.stop)
        return arrays.take_rows(rows, places)

    def _generate_chunk(self, number: int) -> Any:
        start = int(number) * self.chunk
        stop = min(start + self.chunk, self.n_rows)
        rows = arrays.as_float(self.make(start, stop))
        if tuple(rows.shape) != (stop - start, self.n_features):
            raise ValueError(
                f"{self.make!r} returned rows of shape {tuple(rows.shape)} for rows "
                f"{start} to {stop}; it must be {(stop - start, self.n_features)}."
            )
        return rows
