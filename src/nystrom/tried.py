"""A few rows to try a decision on: is float32 enough, how large is a typical value.

They are the same rows for every question. Where rows are not at hand they are read
once, together with whatever else is fetched first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _arrays as arrays
from .engines import Engine, storable
from .precision import TRIED_ROWS
from .randomness import some_rows
from .sources import Block, Held, Source


def tried_rows(source: Source) -> Held:
    """A few rows, drawn uniformly, with their weights."""
    rows = some_rows(source.n_rows, TRIED_ROWS)
    if source.at_hand:
        return Held.of(source, rows)
    if source.kept is None:
        source.kept = source.take(rows)
    return Held(source.kept, source.weights_of(rows) if source.is_weighted else None)


def fetch(source: Source, indices: np.ndarray, engine: Engine | None = None) -> Any:
    """Some rows; the few to try things on are read on the same way.

    With an engine it is a pass over all rows, made where they are; without one, and
    where rows are at hand, they are taken here.
    """
    if source.at_hand or source.kept is not None:
        return source.take(indices)
    tried = some_rows(source.n_rows, TRIED_ROWS)
    rows = np.union1d(tried, indices)
    if engine is None:
        points = source.take(rows)
    else:
        points = engine.reduce(_found, source, (rows,), "rows").points
    source.kept = arrays.take_rows(points, np.searchsorted(rows, tried))
    return arrays.take_rows(points, np.searchsorted(rows, indices))


@storable
@dataclass(frozen=True)
class Found:
    """Rows that a pass has come across, in the order of their numbers."""

    points: Any

    def __add__(self, later: Found) -> Found:
        return Found(arrays.append_rows(self.points, later.points))


def _found(block: Block, wanted: np.ndarray) -> Found:
    first, last = np.searchsorted(wanted, [block.start, block.start + len(block)])
    return Found(arrays.take_rows(block.X, wanted[first:last] - block.start))
