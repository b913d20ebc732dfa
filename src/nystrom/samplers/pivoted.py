"""What samplers have in common whose landmarks come one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol

import numpy as np

from ..engines import Engine, single_threaded_blas
from ..kernels import Kernel
from ..landmarks import Landmarks
from ..sources import Source
from .draws import all_rows
from .pivots import Pivots
from .recursion import IndefiniteKernelError
from .uniform import uniform_instead


class Growth(Protocol):
    """Landmarks in a sampler's own order, as many as asked for, and more later."""

    pivots: Pivots
    exhausted: bool  # nothing is left of any row

    def grow(self, size: int, left: np.ndarray | None = None) -> None:
        """Go on until there are `size`; `left` is what is left of every row."""

    def landmarks(self) -> Landmarks:
        """What was chosen."""


class Pivoted:
    """A sampler that grows: `growth(kernel, source, seed, engine)` makes a `Growth`."""

    name: ClassVar[str]
    growth: ClassVar[Callable[..., Growth]]

    def __call__(
        self,
        kernel: Kernel,
        source: Source,
        n_landmarks: int | None,
        *,
        seed: int,
        engine: Engine,
    ) -> Landmarks:
        assert n_landmarks is not None
        if n_landmarks >= source.n_rows:
            return all_rows(kernel, source, self.name)
        if kernel.psd is False:
            return uniform_instead(kernel, source, n_landmarks, seed, self.name)
        with single_threaded_blas():
            growth = type(self).growth(kernel, source, seed, engine)
            try:
                growth.grow(n_landmarks)
            except IndefiniteKernelError as found:
                spent = growth.pivots.n_evaluations + found.n_evaluations
                return uniform_instead(
                    kernel, source, n_landmarks, seed, self.name, spent
                )
            growth.pivots.fill(n_landmarks, seed)
            return growth.landmarks()
