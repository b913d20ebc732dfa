"""Which C: by the loss on rows that were left out, warm from one to the next."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...engines import Engine
from ...engines.progress import parts
from ...features import FeatureMap
from ...randomness import Purpose, uniforms_at
from ...sources import Source
from .fit import Settings, reach
from .loss import mean_loss
from .sample import drawn_rows, knows_all_classes, part_of

#: Rows that C is chosen on at most; of each class one in so many is left out.
MOST_ROWS, ONE_IN = 2**16, 5
#: To compare them, no less of the objective need be left.
TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Chosen:
    """One of several C, what each of them lost, and where to begin with it."""

    C: float
    losses: np.ndarray  # −log p of a row that was left out, on the mean
    coef: np.ndarray | None  # None where a class was not among the rows


def best_cost(
    mapping: FeatureMap,
    source: Source,
    costs: np.ndarray,
    settings: Settings,
    engine: Engine,
) -> Chosen:
    """The C of least loss, from the smallest up.

    C stands beside a sum over rows: to mean the same, it counts for all of them.
    """
    rows, weights = drawn_rows(source, MOST_ROWS, settings.seed)
    out = _left_out(source, rows, settings.seed)
    if not out.any():
        raise ValueError(
            f"C={costs.tolist()} are chosen from by the loss on rows that are left "
            "out, and no class has a row to spare; give one C."
        )
    tested, trained = (
        part_of(source, rows[those], weights[those], engine) for those in (out, ~out)
    )
    scale = source.total_weight / trained.total_weight
    settings = replace(settings, tolerance=max(settings.tolerance, TOLERANCE))
    losses = np.full(len(costs), np.inf)
    coef, best = None, None
    each = parts(engine.progress, *[1.0] * len(costs))
    for place, part in zip(np.argsort(costs, kind="stable"), each, strict=True):
        C = scale * float(costs[place])
        with part:
            coef = reach(mapping, trained, C, settings, engine, coef).x
            losses[place] = mean_loss(coef, mapping, tested, engine)
        if best is None or losses[place] < best.losses.min():
            best = Chosen(float(costs[place]), losses.copy(), coef)
    assert best is not None
    # Without rows of a class its constant goes to −∞: nowhere to begin from.
    begin = best.coef if knows_all_classes(trained, 1) else None
    return replace(best, losses=losses, coef=begin)


def _left_out(source: Source, rows: np.ndarray, seed: int) -> np.ndarray:
    """Which of these rows are: of each class one in five, and never all."""
    Y = source.targets[rows]
    labels = Y[:, 0] > 0 if Y.shape[1] == 1 else Y.argmax(axis=1)
    order = np.lexsort((uniforms_at(seed, Purpose.FOLD, rows), labels))
    _, first, counts = np.unique(labels[order], return_index=True, return_counts=True)
    place = np.arange(len(rows)) - np.repeat(first, counts)  # within the class
    out = np.zeros(len(rows), dtype=bool)
    out[order] = place % ONE_IN == ONE_IN - 1
    if not out.any():  # few rows: one of the largest class, if it has another
        largest = counts.argmax()
        out[order[first[largest]]] = counts[largest] > 1
    return out
