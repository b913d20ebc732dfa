"""Which C: by the loss on rows that were left out, warm from one to the next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ... import _arrays as arrays
from ...engines import Engine
from ...features import FeatureMap
from ...randomness import some_rows
from ...sources import Source, Subset
from .fit import Settings, reach
from .loss import loss_at

#: Rows that C is chosen on at most, and the share of them that is left out.
MOST_ROWS, LEFT_OUT = 2**16, 0.2


@dataclass(frozen=True, eq=False)
class Chosen:
    """One of several C, what each of them lost, and where to begin with it."""

    C: float
    losses: np.ndarray  # −log p of a row that was left out, on the mean
    coef: np.ndarray


def best_cost(
    mapping: FeatureMap,
    source: Source,
    costs: np.ndarray,
    settings: Settings,
    engine: Engine,
) -> Chosen:
    """The C of least loss, from the smallest up.

    On some rows where there are many. C stands beside a sum over rows: to mean the
    same, it counts for all of them.
    """
    rows = some_rows(source.n_rows, MOST_ROWS, settings.seed)
    mixed = np.random.default_rng(settings.seed).permutation(rows)
    n_out = max(1, int(LEFT_OUT * len(rows)))
    out, rest = (np.sort(part) for part in (mixed[:n_out], mixed[n_out:]))
    tested, trained = Subset(source, out), Subset(source, rest)
    scale = source.total_weight / trained.total_weight
    losses = np.full(len(costs), np.inf)
    best, coef = None, None
    for place in np.argsort(costs, kind="stable"):
        C = scale * float(costs[place])
        coef = reach(mapping, trained, C, settings, engine, coef).x
        losses[place] = loss_at(coef, mapping, tested, engine) / tested.total_weight
        if losses[place] == losses.min():
            best = coef
    assert best is not None
    return Chosen(float(costs[np.argmin(losses)]), losses, arrays.to_host(best))
