"""Sources of other sources: a subset of the rows, cached rows, transformed rows, pairs
of views, a concatenation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from .base import Source, Targets, digest


class Subset(Source):
    """Some rows of another source, in ascending order of their numbers."""

    n_rows: int
    n_features: int | None
    on_device: bool
    supports_random_access: bool
    targets: Any
    is_subset = True

    def __init__(self, source: Source, indices: np.ndarray) -> None:
        self.source = source
        self.indices = indices
        self.n_rows = len(indices)
        self.n_features = source.n_features
        self.on_device, self.supports_random_access = (
            source.on_device,
            source.supports_random_access,
        )
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

    n_rows: int
    n_features: int | None
    on_device: bool
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
        """These rows of a source, with their weights."""
        weights = source.weights_of(indices) if source.is_weighted else None
        return cls(source.take(indices), weights)

    def rows(self, start: int, stop: int) -> Any:
        return arrays.slice_rows(self.points, start, stop)

    def take(self, indices: np.ndarray) -> Any:
        return arrays.take_rows(self.points, indices)


class TransformedRows(Source):
    """The rows of another source, transformed whenever they are read.

    Parameters
    ----------
    source : Source
        The rows, with targets and weights if it has any.
    transformer : fitted transformer
        Its `transform` returns as many rows as it is given, an array or CSR matrix.
    """

    n_rows: int
    n_features: int | None
    on_device: bool
    supports_random_access: bool
    targets: Any

    def __init__(self, source: Source, transformer: Any) -> None:
        self.source, self.transformer = source, transformer
        self.n_rows, self.files = source.n_rows, source.files
        self.on_device, self.supports_random_access = (
            source.on_device,
            source.supports_random_access,
        )
        self.weights = source.weights if source.is_weighted else None
        self.targets = source.targets
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
    n_rows: int
    on_device: bool

    def __init__(self, first: Source, second: Source) -> None:
        self.first, self.second = first, second
        self.n_rows = first.n_rows
        self.on_device = first.on_device

    def rows(self, start: int, stop: int) -> Any:
        return self.first.rows(start, stop), self.second.rows(start, stop)

    def take(self, indices: np.ndarray) -> Any:
        return self.first.take(indices), self.second.take(indices)


class ConcatenatedRows(Source):
    """The rows of several sources, one after the other.

    Rows must be of one kind: arrays with as many columns, or objects. float32 rows
    beside float64 ones become float64.

    Parameters
    ----------
    parts : sequence of Source
        At least one; those without rows are passed over.
    """

    parts: list[Source]
    bounds: np.ndarray
    n_rows: int
    n_features: int | None
    supports_random_access: bool
    targets: Any

    def __init__(self, parts: Sequence[Source]) -> None:
        self.parts = [part for part in parts if part.n_rows] or list(parts[:1])
        if not self.parts:
            raise ValueError("There is nothing to stack; give at least one source.")
        first = self.parts[0]
        for position, part in enumerate(self.parts):
            if part.n_features != first.n_features:
                raise ValueError(
                    f"Source {position} has {part.n_features} columns, and the first "
                    "has "
                    f"{first.n_features}; all must have the same."
                )
        self.files: tuple[str, ...] = tuple(
            file for part in self.parts for file in part.files
        )
        self.feature_names: tuple[str, ...] | None = _common_feature_names(self.parts)
        self.bounds = np.cumsum([0, *(part.n_rows for part in self.parts)])
        self.n_rows, self.n_features = int(self.bounds[-1]), first.n_features
        self.supports_random_access = all(
            part.supports_random_access for part in self.parts
        )
        if any(part.is_weighted for part in self.parts):
            self.weights = np.concatenate([part.weights for part in self.parts])
        self.targets = _concatenate_targets(self.parts)
        self._wide = len({_stored_dtype(part) for part in self.parts}) > 1

    def rows(self, start: int, stop: int) -> Any:
        first = int(np.searchsorted(self.bounds, start, side="right")) - 1
        last = max(first + 1, int(np.searchsorted(self.bounds, stop, side="left")))
        first, last = min(first, len(self.parts) - 1), min(last, len(self.parts))
        pieces = []
        for i in range(first, last):
            part, offset = self.parts[i], int(self.bounds[i])
            piece = part.rows(max(0, start - offset), min(stop - offset, part.n_rows))
            pieces.append(self._as_common_dtype(piece))
        return _concatenate(pieces)

    def take(self, indices: np.ndarray) -> Any:
        indices = np.asarray(indices, dtype=np.int64)
        order = np.argsort(indices, kind="stable")
        ends = np.searchsorted(indices[order], self.bounds[1:-1], side="left")
        pieces: list[Any] = []
        for i, positions in enumerate(np.split(order, ends)):
            if len(positions) or not (pieces or i < len(self.parts) - 1):
                local = indices[positions] - self.bounds[i]
                pieces.append(self._as_common_dtype(self.parts[i].take(local)))
        inverse = np.empty_like(order)
        inverse[order] = np.arange(len(order))
        return arrays.take_rows(_concatenate(pieces), inverse)

    def fingerprint(self) -> str:
        return digest(
            [part.fingerprint() for part in self.parts],
            self._weights_and_targets_digest(),
        )

    def _as_common_dtype(self, rows: Any) -> Any:
        return arrays.widen(rows) if self._wide else rows


def _common_feature_names(parts: Sequence[Source]) -> tuple[str, ...] | None:
    """The names of the features, which must be alike where there are any."""
    distinct = {part.feature_names: None for part in parts if part.feature_names}
    if len(distinct) > 1:
        first, second, *_ = distinct
        raise ValueError(
            f"The sources have other columns, {', '.join(first or ())} and "
            f"{', '.join(second or ())}; open all with the same columns=[...]."
        )
    return next(iter(distinct), None)


def _concatenate(pieces: list[Any]) -> Any:
    whole = pieces[0]
    for piece in pieces[1:]:
        whole = arrays.stack_rows([whole, piece])
    return whole


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
    if all(isinstance(given, Targets) for given in targets):
        _check_same_classes(targets)
        return targets[0].with_source(ConcatenatedRows([given.of for given in targets]))
    raise ValueError(
        "Some of these sources read their targets and some hold them; give all of them "
        "to open(..., target=...), or none and pass y."
    )


def _check_same_classes(targets: Sequence[Targets]) -> None:
    first, *others = (
        None if given.names is None else given.names.tolist() for given in targets
    )
    for other in others:
        if other != first:
            raise ValueError(
                "The sources have other texts as targets, so that their numbers stand "
                "for others; open the files together, sources.open([first, second], "
                "target=...)."
            )
