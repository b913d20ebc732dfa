"""Uniform sampling: the baseline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import _arrays as arrays
from ..landmarks import Landmarks
from ..randomness import Purpose, first_rows
from ..refusals import check_finite
from ..residuals import residual
from ..sources import Block
from ..sources import weights as row_weights
from .choosing import Work
from .draws import as_landmarks, uniformly
from .goal import Size
from .pivoting.growth import Growing, Growth
from .pivoting.pivots import Pivots
from .racing import Race

#: Rows that become pivots together.
BATCH = 128
#: Powers of rounding that must be left of a row, as a share of k(x, x): at first, and
#: of rows that were passed over.
POWERS = (0.5, 0.75, 1.0)


class InOrder:
    """Pivots in the order of the uniform draw, less rows that earlier ones nearly span.

    A pivot of which little is left multiplies the rounding of all that has more left.
    So rows with less left than the root of rounding are passed over, and seen again
    once all others have been.
    """

    def __init__(self, work: Work) -> None:
        self.pivots = Pivots(work)
        source = work.source
        values = work.kernel.dtype(arrays.widen(source.take(np.arange(1))))
        self.least = [arrays.epsilon(values) ** power for power in POWERS]
        self.work = work
        self.order = np.empty(0, dtype=np.intp)
        self.passed_over: list[np.ndarray] = []
        self.exhausted = False  # no row is left
        self.n_seen = 0

    def grow(self, size: int) -> None:
        """Pivots until there are `size`, or no row is left."""
        # Ends: rows are seen once for each share that must be left of them.
        while len(self.pivots) < size and not self.exhausted:
            n_next = min(BATCH, size - len(self.pivots))
            rows = self._next(n_next)
            kept = self.pivots.add(rows, least=self.least[0])
            self.passed_over.append(np.delete(rows, kept))
            if len(rows) < n_next:
                self._see_again()

    def _see_again(self) -> None:
        """Begin anew with the rows that were passed over, and need less left of them.

        Unless it was rounding that was left.
        """
        self.order, self.n_seen = np.concatenate(self.passed_over), 0
        self.passed_over = []
        self.exhausted = len(self.least) == 1 or not len(self.order)
        self.least = self.least[1:]

    def _next(self, size: int) -> np.ndarray:
        """The next rows of the draw, which is made longer as it is needed."""
        begun, self.n_seen = self.n_seen, self.n_seen + size
        source, seed = self.work.source, self.work.seed
        first_time = len(self.least) == len(POWERS)
        if first_time and len(self.order) < min(self.n_seen, source.n_rows):
            longer = 2 * self.n_seen
            if source.is_weighted:
                race = Race(seed, Purpose.DRAW, most=longer)
                self.order = race.among(source.weights).in_order().numbers
            else:
                self.order = first_rows(seed, Purpose.DRAW, source.n_rows, longer)
        return self.order[begun : self.n_seen]

    def error(self, size: int) -> float:
        """tr(K − K̃), and no row's part in it."""
        source, ready = self.work.source, self.pivots.prepared(self.work.source)
        shared = (ready.columns, ready.operand, ready.rounding)
        name = f"trace error at {len(self.pivots)} landmarks"
        left = float(self.work.engine.reduce(_left, source, shared, name))
        self.work.ledger.passed(source)
        self.work.ledger.evaluated(source.n_rows * (len(self.pivots) + 1))
        check_finite(np.asarray(left))
        return left


def _left(block: Block, *shared: Any) -> float:
    return row_weights.total(block.weights, residual(block, *shared))


@dataclass(frozen=True)
class Uniform(Growing):
    """Every row with the same chance (∝ its weight, where rows have weights).

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import samplers, select_landmarks
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> options = {"n_landmarks": 20, "random_state": 0}
    >>> chosen = select_landmarks(X, sampler=samplers.Uniform(), **options)
    >>> len(chosen), chosen.sampler
    (20, 'uniform')
    """

    name = "uniform"
    growth: ClassVar[Callable[..., Growth]] = InOrder
    needs_psd = False
    in_order = False

    def choose(self, work: Work, goal: Any) -> Landmarks:
        if isinstance(goal, Size):  # as they come: nothing to evaluate
            work.ledger.fetched(work.source)
            drawn = uniformly(work.source, goal.n_landmarks, work.seed)
            return as_landmarks(drawn, work.kernel, work.source, self.name)
        return super().choose(work, goal)
