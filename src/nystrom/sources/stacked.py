"""Several sources, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _arrays as arrays
from .fingerprint import digest
from .source import Source
from .targets import Targets


class Stacked(Source):
    """The rows of several sources, one after the other.

    Rows must be of one kind: arrays with as many columns, or objects. float32 rows
    beside float64 ones are handed out as float64.

    Parameters
    ----------
    parts : sequence of Source
        At least one; those without rows are passed over.
    """

    parts: list[Source]
    bounds: np.ndarray
    n_rows: int
    n_features: int | None
    at_hand: bool
    targets: Any

    def __init__(self, parts: Sequence[Source]) -> None:
        self.parts = [part for part in parts if part.n_rows] or list(parts[:1])
        if not self.parts:
            raise ValueError("There is nothing to stack; give at least one source.")
        first = self.parts[0]
        for place, part in enumerate(self.parts):
            if part.n_features != first.n_features:
                raise ValueError(
                    f"Source {place} has {part.n_features} columns, and the first has "
                    f"{first.n_features}; all must have the same."
                )
        self.files: tuple[str, ...] = tuple(
            file for part in self.parts for file in part.files
        )
        self.feature_names: tuple[str, ...] | None = _same_names(self.parts)
        self.bounds = np.cumsum([0, *(part.n_rows for part in self.parts)])
        self.n_rows, self.n_features = int(self.bounds[-1]), first.n_features
        self.at_hand = all(part.at_hand for part in self.parts)
        if any(part.is_weighted for part in self.parts):
            self.weights = np.concatenate([part.weights for part in self.parts])
        self.targets = _stacked_targets(self.parts)
        self._wide = len({_dtype(part) for part in self.parts}) > 1

    def rows(self, start: int, stop: int) -> Any:
        first = int(np.searchsorted(self.bounds, start, side="right")) - 1
        last = max(first + 1, int(np.searchsorted(self.bounds, stop, side="left")))
        first, last = min(first, len(self.parts) - 1), min(last, len(self.parts))
        pieces = []
        for place in range(first, last):
            part, begin = self.parts[place], int(self.bounds[place])
            piece = part.rows(max(0, start - begin), min(stop - begin, part.n_rows))
            pieces.append(self._alike(piece))
        return _one_after_the_other(pieces)

    def take(self, indices: np.ndarray) -> Any:
        indices = np.asarray(indices, dtype=np.int64)
        order = np.argsort(indices, kind="stable")
        ends = np.searchsorted(indices[order], self.bounds[1:-1], side="left")
        pieces: list[Any] = []
        for place, those in enumerate(np.split(order, ends)):
            if len(those) or not (pieces or place < len(self.parts) - 1):
                local = indices[those] - self.bounds[place]
                pieces.append(self._alike(self.parts[place].take(local)))
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return arrays.take_rows(_one_after_the_other(pieces), back)

    def fingerprint(self) -> str:
        return digest([part.fingerprint() for part in self.parts], self._given())

    def _alike(self, rows: Any) -> Any:
        return arrays.widen(rows) if self._wide else rows


def _same_names(parts: Sequence[Source]) -> tuple[str, ...] | None:
    """The names of the features, which must be alike where there are any."""
    known = {part.feature_names: None for part in parts if part.feature_names}
    if len(known) > 1:
        first, second, *_ = known
        raise ValueError(
            f"The sources have other columns, {', '.join(first or ())} and "
            f"{', '.join(second or ())}; open all with the same columns=[...]."
        )
    return next(iter(known), None)


def _one_after_the_other(pieces: list[Any]) -> Any:
    whole = pieces[0]
    for piece in pieces[1:]:
        whole = arrays.append_rows(whole, piece)
    return whole


def _dtype(part: Source) -> Any:
    rows = part.take(np.arange(min(1, part.n_rows)))
    return getattr(rows, "dtype", None)


def _stacked_targets(parts: Sequence[Source]) -> Any:
    """The targets of all; None where one has none."""
    targets = [part.targets for part in parts]
    if any(given is None for given in targets):
        return None
    if all(isinstance(given, np.ndarray) for given in targets):
        return np.concatenate(targets)
    if all(isinstance(given, Targets) for given in targets):
        _check_same_names(targets)
        return targets[0].on(Stacked([given.of for given in targets]))
    raise ValueError(
        "Some of these sources read their targets and some hold them; give all of them "
        "to open(..., target=...), or none and pass y."
    )


def _check_same_names(targets: Sequence[Targets]) -> None:
    first, *others = (
        None if given.names is None else given.names.tolist() for given in targets
    )
    for further in others:
        if further != first:
            raise ValueError(
                "The sources have other texts as targets, so that their numbers stand "
                "for others; open the files together, sources.open([first, second], "
                "target=...)."
            )
