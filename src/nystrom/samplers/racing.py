"""Rows drawn inside a pass: each tile hands back the few of its rows that may win.

A row's chance is known where its tile is worked on, and its luck is u(seed, row). So a
tile can say when each of its rows arrives, and only the first of all have to be
remembered: the same draw as one from a vector of all chances, without the vector.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import _arrays as arrays
from ..columns import Columns
from ..engines import Engine, storable
from ..randomness import Purpose
from ..refusals import check_finite
from ..residuals import Pass, residual
from ..sources import Block, Source
from ..sources import weights as row_weights
from .sifting import luck


@storable
@dataclass(frozen=True)
class Winners:
    """The first rows to arrive, with what is needed of them."""

    numbers: np.ndarray
    arrival: np.ndarray
    chances: np.ndarray
    weights: np.ndarray
    points: Any  # None where the source has them at hand
    most: int | None  # so many are remembered

    def __len__(self) -> int:
        return len(self.numbers)

    def __add__(self, other: Winners) -> Winners:
        points = self.points
        if points is not None:
            points = arrays.append_rows(points, other.points)
        both = Winners(
            np.concatenate([self.numbers, other.numbers]),
            np.concatenate([self.arrival, other.arrival]),
            np.concatenate([self.chances, other.chances]),
            np.concatenate([self.weights, other.weights]),
            points,
            self.most,
        )
        return both.first(self.most)

    def first(self, size: int | None) -> Winners:
        """The first of them; of equal ones those with the smaller number."""
        if size is None or len(self) <= size:
            return self
        limit = np.partition(self.arrival, size - 1)[size - 1]
        places = np.flatnonzero(self.arrival <= limit)
        if len(places) > size:
            order = np.lexsort((self.numbers[places], self.arrival[places]))
            places = np.sort(places[order[:size]])
        return self.at(places)

    def before(self, limit: float) -> Winners:
        """Those who arrive before the limit."""
        return self.at(np.flatnonzero(self.arrival < limit))

    def in_order(self) -> Winners:
        """The same, the first to arrive first."""
        return self.at(np.lexsort((self.numbers, self.arrival)))

    def at(self, places: np.ndarray) -> Winners:
        """Some of them."""
        points = self.points
        return Winners(
            self.numbers[places],
            self.arrival[places],
            self.chances[places],
            self.weights[places],
            None if points is None else arrays.take_rows(points, places),
            self.most,
        )

    def rows_of(self, source: Source) -> Any:
        """The rows themselves."""
        return source.numbered(self.numbers) if self.points is None else self.points


@dataclass(frozen=True)
class Race:
    """When rows arrive, and how many are remembered.

    By coins a row of chance p arrives at u/p: before 1 with probability p, and before c
    with probability min(1, c·p), so that a common factor may be left open until all
    chances are known. Otherwise at −log(1 − u)/p, and the first s are drawn one after
    the other ∝ p.
    """

    seed: int
    purpose: Purpose
    level: int = 0
    round: int = 0
    by_coins: bool = False
    most: int | None = None
    latest: float = np.inf  # who arrives later cannot win

    def run(self, block: Block, chances: np.ndarray, carried: bool) -> Winners:
        """Those of a tile who may win."""
        u = luck(block, self.seed, self.purpose, self.level, self.round)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            arrival = (u if self.by_coins else -np.log1p(-u)) / chances
        places = np.flatnonzero((chances > 0) & (arrival <= self.latest))
        numbers = block.numbers
        winners = Winners(
            places + block.start if numbers is None else numbers[places],
            arrival[places],
            chances[places],
            block.weights[places],
            None,
            self.most,
        )
        ahead = winners.first(self.most)
        if not carried:
            return ahead
        kept = places[np.searchsorted(winners.numbers, ahead.numbers)]
        return replace(ahead, points=arrays.take_rows(block.X, kept))

    def among(self, chances: np.ndarray) -> Winners:
        """Those of rows 0, 1, …, whose chances are all known."""
        return self.run(Block(0, None, np.ones(len(chances))), chances, False)


#: (what is left of each row, weights) ↦ (chances, sums that the pass is asked for)
Chances = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class ByResidual:
    """A row's chance is what is left of it, as it counts; and the sum of that."""

    def __call__(
        self, left: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        left = row_weights.weighted(weights, left)
        return left, np.array([left.sum()])


def race_by_residual(
    prepared: Pass,
    source: Source,
    chances: Chances,
    race: Race,
    *,
    engine: Engine,
    name: str,
) -> tuple[Winners, np.ndarray]:
    """One pass: who arrives first by what is left of each row, and sums over all rows.

    The last of the sums is the number of rows.
    """
    carried = not source.at_hand
    how = (prepared.columns, prepared.operand, prepared.rounding)
    shared = (*how, chances, race, carried)
    winners, sums = engine.reduce(_run, source, shared, name)
    prepared.ledger.passed(source)
    prepared.ledger.evaluated(int(sums[-1]) * (len(prepared.columns) + 1))
    if not np.all(np.isfinite(sums)):
        check_finite(sums)
    return winners, sums


def _run(
    block: Block,
    columns: Columns,
    operand: Any,
    rounding: float,
    chances_of: Chances,
    race: Race,
    carried: bool,
) -> tuple[Winners, np.ndarray]:
    left = np.empty(0)
    if len(block):  # a sifted tile may have no row left
        left = residual(block, columns, operand, rounding)
    chances, sums = chances_of(left, block.weights)
    return race.run(block, chances, carried), np.append(sums, float(len(block)))
