"""Widths of a kernel of a distance, learnt from the targets of some rows.

−log p of the targets under the landmark model (`likelihood.py`) is taken down, on at
most 1000 rows and 250 landmarks, from the better of the widths that are there to begin
with. What comes back is never worse than these on those rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError

from ...engines.blas import blas_threads_for
from ...kernels import Kernel
from ...kernels.names import width_of, with_width
from ...kernels.slopes import power_of
from .descent import Descent
from .looked import POINTS, Looked

#: Where alpha begins, for kernels of k(x, x) = 1.
ALPHAS = (1e-3, 1e-1, 1e1)
#: Digits of a width that are kept: more say nothing, and hang on rounding.
DIGITS = 4


@dataclass(frozen=True)
class Found:
    """A kernel and an alpha, with −log p of the targets."""

    kernel: Kernel
    alpha: float
    value: float

    @classmethod
    def at(cls, kernel: Kernel, alphas: Sequence[float], looked: Looked) -> list[Found]:
        """Looked up on the rows, for each of some alphas."""
        values = Descent.of(kernel, looked).values(alphas)
        return [
            cls(kernel, alpha, value if np.isfinite(value) else np.inf)
            for alpha, value in zip(alphas, values, strict=True)
        ]

    def lower(self, looked: Looked, *, each: bool = False) -> Found:
        """From here downwards; with one change for all widths, or one for each."""
        n_widths = looked.X.shape[1] if each else 1
        start = np.append(np.zeros(n_widths), np.log(self.alpha))
        place = Descent.of(self.kernel, looked, each=each).lowest(start)
        gamma = np.multiply(width_of(self.kernel), np.exp(place[:-1]))
        several = each or np.ndim(width_of(self.kernel)) > 0
        kernel = with_width(self.kernel, _rounded(gamma if several else gamma[0]))
        return Found.at(kernel, [float(np.exp(place[-1]))], looked)[0]


def learn(
    kernel: Kernel, widths: Sequence[float], looked: Looked, *, each: bool
) -> Kernel:
    """The kernel with the width that the targets speak for, or one for each feature.

    `widths` are those to begin with; the first of them where nothing can be learnt.
    """
    starts = [with_width(kernel, width) for width in widths]
    if looked.says_nothing:
        return starts[0]
    with blas_threads_for(POINTS), np.errstate(over="ignore", invalid="ignore"):
        try:
            return _learnt(starts, looked, each)
        except LinAlgError:  # no finite numbers come of these rows
            return starts[0]


def _learnt(starts: list[Kernel], looked: Looked, each: bool) -> Kernel:
    known = _tried(starts, looked)
    found = [_best(known).lower(looked)]
    if each:
        found += [_best(_tried(_by_spread(starts[0], looked), looked)).lower(looked)]
        found += [_best(found).lower(looked, each=True)]
        found = found[-1:] if found[-1].value <= _best(found).value else found
    return _best([*found, *known]).kernel


def _tried(kernels: list[Kernel], looked: Looked) -> list[Found]:
    return [found for kernel in kernels for found in Found.at(kernel, ALPHAS, looked)]


def _best(found: list[Found]) -> Found:
    return min(found, key=attrgetter("value"))


def _by_spread(kernel: Kernel, looked: Looked) -> list[Kernel]:
    """gamma="scale" as if every feature were standardised.

    One that does not vary is left out; or has the widest length, where each has one.
    """
    spread = looked.X.std(axis=0)
    widest = np.inf if hasattr(kernel, "gamma") else spread.max()
    spread = np.where(spread > 0, spread, widest if spread.any() else 1.0)
    gamma = 1 / (len(spread) * spread ** power_of(kernel))
    return [with_width(kernel, tuple(gamma))]


def _rounded(gamma: Any) -> Any:
    """To a few digits."""
    return np.vectorize(lambda g: float(f"{g:.{DIGITS}g}"))(gamma).tolist()
