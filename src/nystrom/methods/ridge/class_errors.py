"""How well held-out values tell classes: accuracy, balanced accuracy or log-loss.

Sums over the rows of each part, in one pass; where probabilities are asked for, their
links are fitted before that, on some of the rows. Weights are those of the rows alone:
a class that counts more in the fits does not in what is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ... import _arrays as arrays
from ...columns import Columns
from ...engines import Engine
from ...randomness import some_rows
from ...sources import Block, Source
from ..link import Link, classes_of, fit_link
from .held_out import Fitted, LeftOut, Part, values_of

#: Rows that a link is fitted on, at most: for two numbers and one per class; and those
#: that each of many links is fitted on, which are only to be compared.
LINKED_ROWS, COMPARED_ROWS = 2**14, 2**12
#: What can be measured, and the best of it.
MEASURES = {"accuracy": 1.0, "balanced_accuracy": 1.0, "log_loss": 0.0}


@dataclass(frozen=True, eq=False)
class ClassErrors:
    """Errors of all fits on each part, by one of `MEASURES`."""

    name: str
    class_weights: np.ndarray | None  # (k,) that the weights of rows were multiplied by
    seed: int

    def __call__(
        self, parts: Sequence[Part], source: Source, engine: Engine
    ) -> np.ndarray:
        """(parts, fits): the best there is, less what was reached."""
        links = None
        if self.name == "log_loss":
            links = fit_links(parts, source, self.seed, engine)
        errors = []
        for part in parts:
            shared = (part.columns, part.fits, links, self.class_weights)
            name = "held-out classes"
            sums = engine.reduce(_tallied, part.of(source), shared, name)
            errors.append(self._error(*arrays.fetched(sums)))
        return np.array(errors)

    def _error(
        self, right: np.ndarray, there: np.ndarray, loss: np.ndarray
    ) -> np.ndarray:
        if self.name == "log_loss":
            return loss / there.sum()
        if self.name == "accuracy":
            return 1 - right.sum(axis=1) / there.sum()
        seen = there > 0
        return 1 - (right[:, seen] / there[seen]).mean(axis=1)


def fit_links(
    parts: Sequence[Part],
    source: Source,
    seed: int,
    engine: Engine,
) -> list[Link]:
    """A link for each fit, from the held-out values of all parts together.

    With the weights of rows and classes, as the links of models are fitted.
    """
    rows = some_rows(source.n_rows, COMPARED_ROWS, seed)
    values, targets, weights = [], [], []
    for part in (part.among(rows) for part in parts):
        some = part.of(source)
        assert some.targets is not None
        if not some.n_rows:
            continue
        values.append(part.values(source, engine))
        targets.append(np.asarray(some.targets[: some.n_rows]))
        weights.append(np.asarray(some.weights))
    F, Y, w = (np.concatenate(each) for each in (values, targets, weights))
    return [fit_link(F[:, fit], Y, w) for fit in range(F.shape[1])]


def row_weights(
    Y: np.ndarray, weights: np.ndarray, class_weights: np.ndarray | None
) -> np.ndarray:
    """Weights of rows without those of their classes; 0 where a class has none."""
    if class_weights is None:
        return np.asarray(weights)
    of_class = class_weights[classes_of(Y)]
    return np.divide(weights, of_class, out=np.zeros(len(Y)), where=of_class > 0)


def _tallied(
    block: Block,
    columns: Columns,
    fits: Fitted | LeftOut,
    links: list[Link] | None,
    class_weights: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Σ w of rows told right, by fit and class; of all, by class; Σ w·loss, by fit."""
    F, Y = values_of(block, columns, fits), np.asarray(block.targets)
    w, own = row_weights(Y, block.weights, class_weights), classes_of(Y)
    n_classes, n_fits = max(2, Y.shape[1]), F.shape[1]
    right, loss = np.zeros((n_fits, n_classes)), np.zeros(n_fits)
    for fit in range(n_fits):
        told = classes_of(F[:, fit]) == own
        right[fit] = np.bincount(own, w * told, n_classes)
        if links is not None:
            loss[fit] = w @ links[fit].losses(F[:, fit], own)
    return right, np.bincount(own, w, n_classes), loss
