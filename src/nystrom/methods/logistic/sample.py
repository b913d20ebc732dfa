"""Few rows that count for all: where the curvature is looked at, and C is chosen."""

from __future__ import annotations

import numpy as np

from ...engines import Engine
from ...randomness import Purpose, race, race_probabilities, some_rows, uniforms
from ...sources import Held, Source, Subset
from ...tried import fetch

#: A class with fewer rows among them is not known well enough to begin with.
ENOUGH = 10


def drawn_rows(source: Source, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """At most so many rows in proportion to their weights, ascending.

    With them weights that add up to those of all, on average; rows of weight 0 are not
    drawn.
    """
    if not source.is_weighted:
        rows = some_rows(source.n_rows, size, seed)
        return rows, np.full(len(rows), source.n_rows / len(rows))
    u = uniforms(seed, Purpose.PRECONDITION, 0, source.n_rows)
    rows, limit = race(source.weights, u, size)
    rows = np.sort(rows)
    own = source.weights_of(rows)
    return rows, own / race_probabilities(own, limit)


def part_of(
    source: Source, rows: np.ndarray, weights: np.ndarray, engine: Engine
) -> Source:
    """Some rows with other weights; those that are not at hand are read once."""
    if source.at_hand:
        return Subset(source, rows).having(weights=weights)
    held = Held(fetch(source, rows, engine), weights)
    return held.having(targets=source.targets[rows])


def counting_for_all(source: Source, size: int, engine: Engine, seed: int) -> Source:
    """A sample; the source itself where that has hardly more rows."""
    if source.n_rows <= 2 * size:
        return source
    return part_of(source, *drawn_rows(source, size, seed), engine)


def knows_all_classes(sample: Source, enough: int = ENOUGH) -> bool:
    """Whether each class has enough rows, for targets of ±1."""
    own = sample.targets[: sample.n_rows] > 0
    least = own.sum(axis=0).min()
    if own.shape[1] == 1:
        least = min(least, (~own).sum())
    return bool(least >= enough)
