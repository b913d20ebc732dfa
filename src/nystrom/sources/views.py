"""Sources of other sources: some of their rows, transformed, on a device, in pairs, or
one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from .._digest import digest
from .base import ChunkedRows, Source, Targets


class SourceView(Source):
    """A source that reads the rows of another one, with their weights and targets."""

    source: Source

    def __init__(self, source: Source) -> None:
        self.source = source
        self.n_rows, self.n_features = source.n_rows, source.n_features
        self.files, self.on_device = source.files, source.on_device
        self.supports_random_access = source.supports_random_access
        self.weights = source.weights if source.is_weighted else None
        self.targets = source.targets


class DeviceRows(SourceView):
    """The rows of another source as torch tensors on a device.

    A block is moved when it is asked for; the device never holds all rows.
    """

    def __init__(self, source: Source, device: str) -> None:
        super().__init__(source)
        self.device, self.on_device = device, True

    @property
    def original(self) -> Source:
        return self.source

    def rows(self, start: int, stop: int) -> Any:
        return arrays.as_torch_tensor(self.source.rows(start, stop), self.device)

    def take(self, indices: np.ndarray) -> Any:
        return arrays.as_torch_tensor(self.source.take(indices), self.device)


class Subset(SourceView):
    """Some rows of another source, in ascending order of their numbers."""

    is_subset = True

    def __init__(self, source: Source, indices: np.ndarray) -> None:
        super().__init__(source)
        self.indices, self.n_rows = indices, len(indices)
        self.weights = source.weights_of(indices) if source.is_weighted else None
        self.targets = _subset_targets(source.targets, indices)

    def rows(self, start: int, stop: int) -> Any:
        return self.source.take(self.indices[start:stop])

    def take(self, indices: np.ndarray) -> Any:
        return self.source.take(self.indices[indices])

    def fingerprint(self) -> str:
        return digest(
            self.source.fingerprint(), self.indices, self._weights_and_targets_digest()
        )


def _subset_targets(targets: Any, indices: np.ndarray) -> Any:
    """The targets of some rows; those that are read go on to be."""
    if isinstance(targets, Targets):
        return targets.with_source(Subset(targets.of, indices))
    return None if targets is None else targets[indices]


class CachedRows(Source):
    """Points that are kept in memory: some rows of another source, fetched once."""

    is_subset = True

    def __init__(self, points: Any, weights: np.ndarray | None = None) -> None:
        self.points = points
        self.n_rows = arrays.count_rows(points)
        self.on_device = not arrays.is_on_host(points)
        self.weights = weights
        shape: tuple[int, ...] = getattr(points, "shape", ())
        self.n_features = shape[1] if len(shape) == 2 else None

    @classmethod
    def of(cls, source: Source, indices: np.ndarray) -> CachedRows:
        """Fetch rows of a source with their weights.

        Parameters
        ----------
        source : Source
            The rows.
        indices : ndarray of int
            Row numbers.

        Returns
        -------
        rows : CachedRows
            The rows in memory.
        """
        weights = source.weights_of(indices) if source.is_weighted else None
        return cls(source.take(indices), weights)

    def rows(self, start: int, stop: int) -> Any:
        return arrays.slice_rows(self.points, start, stop)

    def take(self, indices: np.ndarray) -> Any:
        return arrays.take_rows(self.points, indices)


class TransformedRows(SourceView):
    """Rows of another source, transformed when they are read.

    Parameters
    ----------
    source : Source
        The rows, with targets and weights if it has any.
    transformer : fitted transformer
        Its `transform` returns as many rows as it gets, as an array or sparse matrix.
    """

    transformer: Any

    def __init__(self, source: Source, transformer: Any) -> None:
        super().__init__(source)
        self.transformer = transformer
        self._no_rows = self.take(np.arange(1))[:0]
        self.n_features = self._no_rows.shape[1]

    @property
    def default_engine(self) -> Any:
        """That of the rows which are transformed."""
        return self.source.default_engine

    def rows(self, start: int, stop: int) -> Any:
        return self._transform(self.source.rows(start, stop))

    def take(self, indices: np.ndarray) -> Any:
        return self._transform(self.source.take(indices))

    def _transform(self, rows: Any) -> Any:
        if arrays.count_rows(rows) == 0:  # which transformers refuse
            return self._no_rows
        found = self.transformer.transform(rows)
        found = found.tocsr() if sp.issparse(found) else np.asarray(found)
        return arrays.as_float(found)

    def fingerprint(self) -> str:
        return digest(
            self.source.fingerprint(),
            self.transformer,
            self._weights_and_targets_digest(),
        )


class Pair(Source):
    """Two views of the same rows: every row is a pair."""

    first: Source
    second: Source

    def __init__(self, first: Source, second: Source) -> None:
        self.first, self.second = first, second
        self.n_rows = first.n_rows
        self.on_device = first.on_device

    def rows(self, start: int, stop: int) -> Any:
        return self.first.rows(start, stop), self.second.rows(start, stop)

    def take(self, indices: np.ndarray) -> Any:
        return self.first.take(indices), self.second.take(indices)


class ConcatenatedRows(ChunkedRows):
    """The rows of several sources, one after the other.

    Rows must be of one kind: arrays with as many columns, or objects. float32 rows
    beside float64 ones become float64.

    Parameters
    ----------
    parts : sequence of Source
        Sources to join, at least one. Sources without rows are left out.
    """

    parts: list[Source]
    bounds: np.ndarray

    def __init__(self, parts: Sequence[Source]) -> None:
        self.parts = [part for part in parts if part.n_rows] or list(parts[:1])
        if not self.parts:
            raise ValueError("There is nothing to stack; give at least one source.")
        widths = [part.n_features for part in self.parts]
        if len(set(widths)) > 1:
            raise ValueError(
                f"The sources have {widths} columns; all must have the same number."
            )
        self.files = tuple(file for part in self.parts for file in part.files)
        self.feature_names: tuple[str, ...] | None = _common_feature_names(self.parts)
        self.bounds = np.cumsum([0, *(part.n_rows for part in self.parts)])
        self.n_rows, self.n_features = int(self.bounds[-1]), widths[0]
        self.supports_random_access = all(
            part.supports_random_access for part in self.parts
        )
        if any(part.is_weighted for part in self.parts):
            self.weights = np.concatenate([part.weights for part in self.parts])
        self.targets = _concatenate_targets(self.parts)
        self._wide = len({_stored_dtype(part) for part in self.parts}) > 1

    def _part(self, chunk: int, places: slice | np.ndarray) -> Any:
        part = self.parts[chunk]
        if isinstance(places, slice):
            rows = part.rows(places.start, min(places.stop, part.n_rows))
        else:
            rows = part.take(places)
        return arrays.widen(rows) if self._wide else rows

    def fingerprint(self) -> str:
        return digest(
            [part.fingerprint() for part in self.parts],
            self._weights_and_targets_digest(),
        )


def _common_feature_names(parts: Sequence[Source]) -> tuple[str, ...] | None:
    """The names of the features, which must be alike where there are any."""
    distinct = {part.feature_names: None for part in parts if part.feature_names}
    if len(distinct) > 1:
        raise ValueError(
            f"The sources have different columns, {', '.join(map(str, distinct))}; "
            "open all with the same columns=[...]."
        )
    return next(iter(distinct), None)


def _stored_dtype(part: Source) -> Any:
    if hasattr(part, "_dtype"):  # of a file, of which nothing need be read
        return part._dtype
    rows = part.take(np.arange(min(1, part.n_rows)))
    return getattr(rows, "dtype", None)


def _concatenate_targets(parts: Sequence[Source]) -> Any:
    """The targets of all; None where one has none."""
    targets = [part.targets for part in parts]
    if any(given is None for given in targets):
        return None
    if all(isinstance(given, np.ndarray) for given in targets):
        return np.concatenate(targets)
    names: list[Any] = [getattr(given, "names", None) for given in targets]
    are_read = all(isinstance(given, Targets) for given in targets)
    if not are_read or not all(np.array_equal(n, names[0]) for n in names):
        raise ValueError(
            "The sources have targets of different kinds, or different texts as "
            "classes; open the files together, sources.open([first, second], "
            "target=...), or give no targets and pass y."
        )
    return targets[0].with_source(ConcatenatedRows([given.of for given in targets]))
