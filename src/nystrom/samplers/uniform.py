"""Uniform sampling: the baseline, and the fallback for indefinite kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .. import _arrays as arrays
from ..engines import Engine
from ..kernels import Kernel
from ..landmarks import Landmarks
from ..randomness import Purpose, race, race_probabilities, uniforms
from ..sources import Source
from .draws import Drawn, all_rows, as_landmarks
from .pivots import Pivots

#: Rows that become pivots together.
BATCH = 128


class InOrder:
    """Pivots in the order of the uniform draw, less rows that earlier ones nearly span.

    A pivot of which little is left multiplies the rounding of all that has more left.
    So rows with less left than the root of rounding are passed over.
    """

    def __init__(
        self, kernel: Kernel, source: Source, seed: int, engine: Engine
    ) -> None:
        self.pivots = Pivots(kernel, source)
        values = kernel.dtype(arrays.widen(source.take(np.arange(1))))
        self.least = arrays.epsilon(values) ** 0.5
        n = source.n_rows
        self.order, _ = race(source.weights, uniforms(seed, Purpose.DRAW, 0, n), n)
        self.n_seen = 0

    @property
    def exhausted(self) -> bool:
        """Whether no row is left."""
        return self.n_seen == len(self.order)

    def grow(self, size: int, left: np.ndarray | None = None) -> None:
        """Pivots until there are `size`, or no row is left."""
        while len(self.pivots) < size and not self.exhausted:
            n_next = min(BATCH, size - len(self.pivots))
            rows = self.order[self.n_seen : self.n_seen + n_next]
            self.n_seen += len(rows)
            self.pivots.add(rows, self.least)

    def landmarks(self) -> Landmarks:
        """The pivots so far."""
        return self.pivots.landmarks("uniform")


@dataclass(frozen=True)
class Uniform:
    """Every row with the same chance (∝ its weight, where rows have weights)."""

    growth = InOrder

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
        n = source.n_rows
        if n_landmarks >= n:
            return all_rows(kernel, source, "uniform")
        w = source.weights
        rows, limit = race(w, uniforms(seed, Purpose.DRAW, 0, n), n_landmarks)
        if w is None:
            p = np.full(n_landmarks, n_landmarks / n)
        else:
            p = race_probabilities(w[rows], limit)
        return as_landmarks(Drawn(rows, p), kernel, source, "uniform")


def uniform_instead(
    kernel: Kernel,
    source: Source,
    n_landmarks: int,
    seed: int,
    name: str,
    n_evaluations: int = 0,
) -> Landmarks:
    """Uniform landmarks where the kernel is indefinite and scores have no meaning."""
    drawn = Uniform()(kernel, source, n_landmarks, seed=seed, engine=None)  # type: ignore[arg-type]
    note = f"uniform instead of {name}: the kernel is indefinite"
    return replace(drawn, notes=(note,), n_kernel_evaluations=n_evaluations)
