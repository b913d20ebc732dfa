"""The way down: −log p as a function of the logarithms of widths and alpha."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from ...kernels import Kernel
from ...kernels.slopes import Pairs
from .likelihood import Model, likelihood
from .looked import Looked

#: Steps at most; each takes one look at the rows, or two. Begun so often.
STEPS, TIMES = 20, 2
#: How far alpha may go, for kernels of k(x, x) = 1.
LEAST_ALPHA, MOST_ALPHA = 1e-6, 1e4
#: A width changes by no more than this factor, up or down: where targets are noise, no
#: width is long enough. A feature that says nothing may vanish.
FARTHEST, FARTHEST_OF_EACH = 1e3, 1e5


@dataclass(frozen=True, eq=False)
class Descent:
    """The value, and its gradient, at a place (log t, log alpha).

    Widths are t times those of the kernel, with one t for all features or one for
    each. Several keep near to each other by a prior: log t has deviation 1 about its
    mean. Without it 30 widths fit the noise of 400 rows.
    """

    looked: Looked
    pairs: Pairs
    prior: bool

    @classmethod
    def of(cls, kernel: Kernel, looked: Looked, *, each: bool = False) -> Descent:
        """For a kernel and the rows looked at."""
        pairs = Pairs(kernel, looked.X, looked.n_landmarks, each=each)
        return cls(looked, pairs, prior=each)

    def __call__(self, place: np.ndarray) -> tuple[float, np.ndarray]:
        t, alpha = np.exp(place[:-1]), float(np.exp(place[-1]))
        C, pull = self.pairs.at(t)
        found = likelihood(C, alpha, self.looked.observed)
        by_t, value, m = pull(found.by_columns), found.value, len(C)
        if self.prior:
            apart = place[:-1] - place[:-1].mean()
            value += float(apart @ apart) / (2 * m)
            by_t = by_t + apart / m
        return value, np.append(by_t, found.by_log_alpha)

    def values(self, alphas: Sequence[float]) -> list[float]:
        """At the kernel's own widths, with some alphas; without the prior."""
        C, _ = self.pairs.at(np.ones(1))
        model = Model.of(C, self.looked.observed)
        return [model.at(alpha).value for alpha in alphas]

    def lowest(self, start: np.ndarray) -> np.ndarray:
        """The place that a few steps reach.

        Where alpha is small, rounding of a slope may end them on the way; begun anew
        from there, without what they remember, they go on.
        """
        far = np.log(FARTHEST_OF_EACH if self.prior else FARTHEST)
        bounds = [(t - far, t + far) for t in start[:-1]]
        bounds += [tuple(np.log([LEAST_ALPHA, MOST_ALPHA]))]
        place, looks = start, 2 * STEPS
        for _ in range(TIMES):
            options = {"maxiter": STEPS, "maxfun": looks}
            found: Any = minimize(
                self, place, jac=True, method="L-BFGS-B", bounds=bounds, options=options
            )
            place, looks = found.x, looks - found.nfev
            if looks <= 0:
                break
        return place
