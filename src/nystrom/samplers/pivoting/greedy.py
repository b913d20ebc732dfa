"""Completely pivoted Cholesky: the next pivot is the row with most left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .bounded import Batch, Bounded, smallest
from .growth import Growing, Growth


class Greedily(Bounded):
    """The next pivot is the row with most left; of equal ones the first."""

    def _look(self, batch: int, size: int) -> int:
        rows = smallest(-self.bounds, batch + 1)
        rows = rows[self.bounds[rows] > 0]
        if len(rows) == 0:  # only of a kernel that is not definite
            self.bounds[:] = 0.0
            return 0
        outside = self.bounds[rows[-1]] if len(rows) > batch else 0.0
        rows = np.sort(rows[:batch])  # argmax then takes the first of equals
        looked = Batch(rows, self)
        slack = 10 * looked.weights * looked.floor
        while len(looked.taken) < size:  # at most once for each row of the batch
            left = looked.weighted_left()
            j = int(np.argmax(left))
            # Bounds are rounded too, and equal rows must not seem less than equal.
            if left[j] <= 0 or left[j] + slack[j] < outside:
                break
            looked.take(j)
        self.bounds[rows] = looked.weighted_left()
        looked.close()
        return len(rows)


@dataclass(frozen=True)
class Greedy(Growing):
    """Cholesky with complete pivoting: each landmark is the row with most left.

    Deterministic, and good for few landmarks of a smooth kernel; it runs after
    outliers.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import samplers, select_landmarks
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> options = {"n_landmarks": 20, "random_state": 0}
    >>> chosen = select_landmarks(X, sampler=samplers.Greedy(), **options)
    >>> len(chosen), chosen.sampler
    (20, 'greedy')
    """

    name = "greedy"
    growth: ClassVar[Callable[..., Growth]] = Greedily
