"""Who is in a pool: the chances of rows by their scores, and the winners of a race."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...columns import diagonal
from ...randomness import race_probabilities
from ...refusals import check_finite
from ...sources import weights as row_weights
from ..choosing import Work
from ..racing import Winners
from ..recursive.levels import climb
from ..recursive.rules import PracticalSize
from .plan import Plan

#: The share of a pool that is drawn by k(x, x) alone: it bounds the pool's weights.
BY_DIAGONAL = 0.1


@dataclass(frozen=True)
class Seen:
    """What a pass over all rows, or some, has found left of them."""

    winners: Winners  # of the race for a pool, and the first that lost
    error: float  # what is left of these rows
    n_rows: int
    n_pivots: int
    all_rows: bool


def chances_by_score(work: Work, plan: Plan) -> np.ndarray:
    """How likely each of the work's rows is for a pool: mostly its score."""
    source = work.source
    kxx = diagonal(work.kernel, source, engine=work.engine)
    work.ledger.evaluated(source.n_rows)
    whole = row_weights.weighted(source.weights, kxx)
    check_finite(whole)
    if not plan.scores and work.kernel.traits.psd:
        return whole
    top = climb(work, PracticalSize(plan.level_size))
    assert top is not None  # practical levels halve at least once
    scores = np.minimum(1.0, top.scores)
    if not scores.any() or not whole.any():
        return whole
    by_score = (1 - BY_DIAGONAL) * scores / scores.sum()
    return by_score + BY_DIAGONAL * whole / whole.sum()


def members(winners: Winners, size: int) -> tuple[Winners, np.ndarray]:
    """The first of a race, by row number, and the probability that each is.

    Where there is a loser, which comes last, it tells how likely the others were.
    """
    limit = np.inf
    if winners.most is not None and len(winners) > size:
        winners = winners.in_order()
        limit = float(winners.arrival[size])
        winners = winners.at(np.arange(size))
    winners = winners.at(np.argsort(winners.numbers))
    return winners, race_probabilities(winners.chances, limit)
