"""Pivoted Cholesky on all rows: pivots at random by what is left, or the largest.

Both need to know what is left of k(x, x) for every row after every pivot, which would
take the whole n × s factor. But what is left only ever falls, so what an earlier pass
found is a bound: few rows need a closer look. Nothing larger than one number per row is
kept, the order of pivots is exactly that of the textbook algorithm, and a new pass is
made only when looking at rows one by one has become the dearer way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from ... import _arrays as arrays
from ...columns import diagonal
from ...engines.progress import expect
from ...refusals import check_finite
from ...sources import weights as row_weights
from ..choosing import IndefiniteKernelError, Work
from .pivots import Pivots

#: Rows looked at together: a quarter of the landmarks, within these bounds.
BATCH = (16, 256)
#: Seconds, roughly, for a row of a pass at k pivots and for a row looked at by itself:
#: once, per pivot, and per pivot squared. Only their ratio matters.
PASS_COST = (0.0, 3e-9, 6e-12)
LOOK_COST = (4e-5, 3e-8, 1e-10)


class Bounded(ABC):
    """Pivots chosen by what is left of each row, of which bounds are known."""

    def __init__(self, work: Work) -> None:
        self.work, self.source = work, work.source
        self.pivots = Pivots(work)
        self.exhausted = False  # all rows are within rounding of the pivots' span
        kxx = diagonal(work.kernel, work.source, engine=work.engine)
        self.bounds = self._weighted(kxx)
        work.ledger.evaluated(self.source.n_rows)
        self.in_vain = 0  # rows looked at since the last pass and not taken
        self.n_passes = 0
        self.n_known = 0  # pivots at the last pass
        self.size = 0  # how many pivots there are to be

    def _weighted(self, left: np.ndarray) -> np.ndarray:
        bounds = row_weights.weighted(self.source.weights, left)
        check_finite(bounds)  # a row of infinite rate would ring for ever
        return bounds

    def error(self, size: int) -> float:
        """tr(K − K̃), by what is left of every row."""
        name = f"trace error at {len(self.pivots)} landmarks"
        left = self.pivots.residuals(self.source, self.work.engine, name)
        self._know(left)
        return row_weights.total(self.source.weights, left)

    def grow(self, size: int) -> None:
        """Pivots until there are `size`, or nothing is left of any row."""
        n, self.size = self.source.n_rows, size
        batch = int(np.clip(size // 4, *BATCH))
        expect(self.work.engine.progress, 3, about=True)  # landmarks, a pass, and again
        # Ends: a look has pivots or rows seen in vain, and enough of these are a pass;
        # two passes without a pivot between them leave nothing.
        while len(self.pivots) < size and not self.exhausted:
            if self.in_vain > self._worth_a_pass(batch) or not self.bounds.any():
                self._know(self.pivots.residuals(self.source, self.work.engine))
                continue
            before = len(self.pivots)
            n_seen = self._look(min(batch, n), size - before)
            self.in_vain += n_seen - (len(self.pivots) - before)
            self.work.engine.progress("landmarks", len(self.pivots), size)

    def _worth_a_pass(self, batch: int) -> float:
        """How many rows looked at in vain cost as much as a pass over all of them."""
        n, k = self.source.n_rows, len(self.pivots)
        if self.work.kernel.traits.costly:  # an evaluation is what counts
            return max(batch, n)
        powers = (1, k, k * k)
        passing, looking = (
            sum(c * p for c, p in zip(costs, powers, strict=True))
            for costs in (PASS_COST, LOOK_COST)
        )
        return max(batch, n * passing / looking)

    def _know(self, left: np.ndarray) -> None:
        """What is left of every row."""
        self.bounds = self._weighted(left)
        self.bounds[self.pivots.indices] = 0.0
        # Not one pivot since the last pass: what seemed to be left was rounding.
        fruitless = self.n_passes > 0 and len(self.pivots) == self.n_known
        self.exhausted = fruitless or not self.bounds.any()
        self.n_known = len(self.pivots)
        self.in_vain = 0
        self.n_passes += 1

    @abstractmethod
    def _look(self, batch: int, size: int) -> int:
        """Make at most `size` of `batch` rows pivots; how many were looked at."""


class Batch:
    """A few rows looked at together: what is left of them, and pivots among them."""

    def __init__(self, rows: np.ndarray, growth: Bounded) -> None:
        self.rows, self.pivots = rows, growth.pivots
        self.X = X = growth.source.take(rows)
        self.F = self.pivots.factor_rows(X)
        self.P = self.pivots.residual_matrix(X, self.F)
        self.left = np.diagonal(self.P).copy()
        self.floor = self.pivots.floor(X, self.F, self.P, growth.size)
        _refuse_indefinite(self.left, self.floor, growth)
        self.weights = growth.source.weights_of(rows)
        self.V = np.zeros((len(rows), len(rows)))
        self.taken: list[int] = []

    def weighted_left(self) -> np.ndarray:
        """What is left of each row, as it counts; 0 if that is within rounding."""
        return self.weights * np.where(self.left > self.floor, self.left, 0.0)

    def take(self, j: int) -> None:
        """Make row j a pivot."""
        i = len(self.taken)
        column = self.P[:, j] - self.V[:, :i] @ self.V[j, :i]
        if column[j] > self.floor[j]:
            self.V[:, i] = column / np.sqrt(column[j])
            self.left -= self.V[:, i] ** 2
            self.taken.append(j)
        self.left[j] = 0.0

    def close(self) -> None:
        """Hand the pivots over."""
        taken = np.array(self.taken, dtype=np.intp)
        corner = np.tril(self.V[taken, : len(taken)])
        X = arrays.take_rows(self.X, taken)
        self.pivots.extend(self.rows[taken], X, self.F[taken], corner)


def _refuse_indefinite(left: np.ndarray, floor: np.ndarray, growth: Bounded) -> None:
    # Where the kernel makes no promise, less than nothing must not be left.
    if growth.work.kernel.traits.psd is None and np.any(
        left < -100 * len(floor) * floor
    ):
        raise IndefiniteKernelError


def smallest(values: np.ndarray, size: int) -> np.ndarray:
    """Places of the smallest finite values, those first; equals in order of place."""
    size = min(size, len(values))
    limit = np.partition(values, size - 1)[size - 1]
    places = np.flatnonzero((values <= limit) & np.isfinite(values))
    return places[np.argsort(values[places], kind="stable")][:size]
