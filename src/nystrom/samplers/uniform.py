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


class InOrder:
    """Pivots in the order of the uniform draw, less rows that earlier ones nearly span.

    A pivot of which little is left multiplies the rounding of all that has more left.
    So rows with less left than the root of rounding are passed over.
    """

    def __init__(self, work: Work) -> None:
        self.pivots = Pivots(work)
        source = work.source
        values = work.kernel.dtype(arrays.widen(source.take(np.arange(1))))
        self.least = arrays.epsilon(values) ** 0.5
        self.work = work
        self.order = np.empty(0, dtype=np.intp)
        self.exhausted = False  # no row is left
        self.n_seen = 0

    def grow(self, size: int) -> None:
        """Pivots until there are `size`, or no row is left."""
        while len(self.pivots) < size and not self.exhausted:  # rows are seen once
            n_next = min(BATCH, size - len(self.pivots))
            rows = self._next(n_next)
            self.exhausted = len(rows) < n_next
            self.pivots.add(rows, least=self.least)

    def _next(self, size: int) -> np.ndarray:
        """The next rows of the draw, which is made longer as it is needed."""
        begun, self.n_seen = self.n_seen, self.n_seen + size
        source, seed = self.work.source, self.work.seed
        if self.n_seen > len(self.order) and len(self.order) < source.n_rows:
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
