"""A few rows to try a decision on: is float32 enough, how large is a typical value.

They are the same rows for every question. Where rows are not at hand they are read
once, together with whatever else is fetched first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _arrays as arrays
from .precision import TRIED_ROWS
from .randomness import some_rows
from .sources import Held, Source


def tried_rows(source: Source) -> Held:
    """A few rows, drawn uniformly, with their weights."""
    rows = some_rows(source.n_rows, TRIED_ROWS)
    if source.at_hand:
        return Held.of(source, rows)
    if source.kept is None:
        source.kept = source.take(rows)
    return Held(source.kept, source.weights_of(rows) if source.is_weighted else None)


def fetch(source: Source, indices: np.ndarray) -> Any:
    """Some rows; the few to try things on are read on the same way."""
    if source.at_hand or source.kept is not None:
        return source.take(indices)
    tried = some_rows(source.n_rows, TRIED_ROWS)
    rows = np.union1d(tried, indices)
    points = source.take(rows)
    source.kept = arrays.take_rows(points, np.searchsorted(rows, tried))
    return arrays.take_rows(points, np.searchsorted(rows, indices))
