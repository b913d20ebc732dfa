"""Landmarks of a stream: chosen again and again from few rows that stand for all.

The rows kept of all batches so far and those of a new batch are weighted, put together
and chosen from, as any weighted rows are. That takes O(batch·s²), however many there
were before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..engines import Engine
from ..landmarks import Landmarks
from ..reservoir import PER_LANDMARK, Reservoir
from ..sources import Source

#: What is proven, or known of a draw, is so for the rows that there were.
UNKNOWN: dict[str, Any] = {"guarantee": None, "evidence": None}


def with_rows(
    before: Landmarks | None,
    batch: Source,
    choose: Callable[[Source, int], Landmarks],
    *,
    seed: int,
    engine: Engine,
    steady: float = 1.0,
) -> Landmarks:
    """Landmarks for all rows so far, which `choose` finds among those that are kept.

    They stay as they are until enough rows have come, and where new ones would not
    leave `steady` times less.
    """
    if before is None:
        reservoir = Reservoir.of(batch, seed)
    else:
        known: Reservoir | None = before.reservoir
        known = Reservoir.of_landmarks(before, seed) if known is None else known
        reservoir = known.joined(batch)
        if not reservoir.is_due(PER_LANDMARK * len(before)):
            # What was exact was so for fewer rows.
            error = before.error and replace(before.error, exact=False, path=None)
            return before.updated(
                reservoir=reservoir, n_rows=reservoir.n_rows, error=error, **UNKNOWN
            )
    chosen = choose(reservoir.source, (reservoir.seed + reservoir.n_choices) % 2**64)
    indices = chosen.indices
    chosen = chosen.updated(
        indices=None if indices is None else reservoir.numbers[indices],
        n_rows=reservoir.n_rows,
        weights=None,
        probabilities=None,
    )
    kept, error = reservoir.looked_at(chosen, engine)
    if before is not None and steady > 1:
        still, its_error = reservoir.looked_at(before, engine)
        if its_error.value <= steady * error.value:
            chosen, kept, error = before, still, its_error
    return chosen.updated(reservoir=kept, n_rows=kept.n_rows, error=error, **UNKNOWN)
