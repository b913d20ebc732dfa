"""Landmarks of a stream: chosen again and again from few rows that stand for all.

The rows kept of all batches so far and those of a new batch are weighted, put together
and chosen from, as any weighted rows are. That takes O(batch·s²), however many there
were before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from .. import _arrays as arrays
from ..engines import Engine
from ..landmarks import Landmarks
from ..moments import moments
from ..precision import EPS64, ROUNDING_UNITS
from ..reservoir import PER_LANDMARK, Reservoir, whitened
from ..sources import Source
from ..trace_error import TraceError
from .goal import Goal, MaxTraceError

#: What is proven, or known of a draw, is so for the rows that there were.
UNKNOWN: dict[str, Any] = {"guarantee": None, "evidence": None}
#: Landmarks of a source, by a seed.
Choice = Callable[[Source, int, Goal], Landmarks]
#: How often a smaller error is aimed at, each time by this more than what was missed.
AIMS, CLOSER = 4, 0.95
#: Landmarks that leave so many times what they left before a batch are chosen anew.
GROWN = 1.5


def with_rows(
    before: Landmarks | None,
    batch: Source,
    choose: Choice,
    goal: Goal,
    *,
    seed: int,
    engine: Engine,
    steady: float = 1.0,
) -> Landmarks:
    """Landmarks for all rows so far, which `choose` finds among those that are kept.

    They stay as they are until enough rows have come, or rows that they leave too much
    of, and where new ones would not leave `steady` times less.
    """
    tolerance = goal.tolerance if isinstance(goal, MaxTraceError) else np.inf
    if before is None:
        reservoir = Reservoir.of(batch, seed)
    else:
        known: Reservoir | None = before.reservoir
        known = Reservoir.of_landmarks(before, seed) if known is None else known
        reservoir = known.joined(batch)
        if not reservoir.is_due(PER_LANDMARK * len(before)):
            error = _error_with(batch, before, known, engine)
            if not _is_stale(before, error, tolerance):
                return before.updated(
                    reservoir=reservoir, n_rows=reservoir.n_rows, error=error, **UNKNOWN
                )
    chosen, kept, error = _chosen(reservoir, choose, goal, engine)
    if before is not None and steady > 1:
        still, its_error = reservoir.looked_at(before, engine)
        if its_error.value <= min(steady * error.value, max(tolerance, error.value)):
            chosen, kept, error = before, still, its_error
    return chosen.updated(reservoir=kept, n_rows=kept.n_rows, error=error, **UNKNOWN)


def _chosen(
    reservoir: Reservoir, choose: Choice, goal: Goal, engine: Engine
) -> tuple[Landmarks, Reservoir, TraceError]:
    """Landmarks of kept rows, what is kept from now on, and what they leave of all.

    Of kept rows they leave less than of those that these stand for: where that is more
    than was asked for, less is aimed at.
    """
    seed = (reservoir.seed + reservoir.n_choices) % 2**64
    aim = goal
    for _ in range(AIMS):
        chosen = choose(reservoir.source, seed, aim)
        indices = chosen.indices
        chosen = chosen.updated(
            indices=None if indices is None else reservoir.numbers[indices],
            n_rows=reservoir.n_rows,
            weights=None,
            probabilities=None,
        )
        kept, error = reservoir.looked_at(chosen, engine)
        if not (isinstance(goal, MaxTraceError) and isinstance(aim, MaxTraceError)):
            break
        chosen = chosen.updated(max_trace_error=goal.tolerance)
        if error.value <= goal.tolerance or len(chosen) == goal.at_most:
            break
        closer = CLOSER * goal.tolerance / error.value
        aim = replace(aim, tolerance=closer * aim.tolerance)
    return chosen, kept, error


def _error_with(
    batch: Source, before: Landmarks, known: Reservoir, engine: Engine
) -> TraceError | None:
    """What landmarks leave of all rows: as was known of the others, and of a batch."""
    if before.error is None:
        return None
    mapping = whitened(before)
    sums = moments(mapping, batch, engine, "rows of the batch")
    diagonal = arrays.to_host(mapping.columns.diag(known.points))
    left = sums.kernel_trace - float(np.trace(sums.gram))
    whole = float(known.weights @ diagonal)
    error = before.error.joined(whole, left, sums.kernel_trace, batch.n_rows)
    # Kept rows stand for others, whose k(x, x) may be another.
    return replace(error, exact=error.exact and known.is_whole)


def _is_stale(before: Landmarks, now: TraceError | None, tolerance: float) -> bool:
    """Whether the rows that have come are too much for the landmarks."""
    if before.error is None or now is None:
        return False
    was, rounding = before.error.value, ROUNDING_UNITS * EPS64 * len(before)
    return now.value > max(GROWN * was, rounding) or was <= tolerance < now.value
