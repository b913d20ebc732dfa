"""Landmarks that the user brings: row numbers, or points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engines import Engine
from ..kernels import Kernel, Precomputed
from ..landmarks import Landmarks
from ..sources import Source


@dataclass(frozen=True, eq=False)
class GivenRows:
    """These rows of the data."""

    indices: np.ndarray

    def __call__(
        self,
        kernel: Kernel,
        source: Source,
        n_landmarks: int | None,
        *,
        seed: int,
        engine: Engine,
    ) -> Landmarks:
        rows = np.asarray(self.indices)
        outside = rows[(rows < 0) | (rows >= source.n_rows)]
        if len(outside):
            raise ValueError(
                f"sampler has row number {outside[0]}, but the data has rows 0 to "
                f"{source.n_rows - 1}."
            )
        return Landmarks(
            points=source.take(rows),
            kernel=kernel,
            sampler="given rows",
            n_rows=source.n_rows,
            indices=rows,
        )


@dataclass(frozen=True, eq=False)
class GivenPoints:
    """These points, which need not be rows of the data."""

    points: Any

    def __call__(
        self,
        kernel: Kernel,
        source: Source,
        n_landmarks: int | None,
        *,
        seed: int,
        engine: Engine,
    ) -> Landmarks:
        if isinstance(kernel, Precomputed):
            raise ValueError(
                "With kernel='precomputed' there is nothing to evaluate at new points; "
                "give row numbers as sampler."
            )
        width = getattr(self.points, "shape", (0, source.n_features))[1]
        if source.n_features is not None and width != source.n_features:
            raise ValueError(
                f"The landmarks given as sampler have {width} features, but the data "
                f"has {source.n_features}."
            )
        return Landmarks(
            points=self.points,
            kernel=kernel,
            sampler="given points",
            n_rows=source.n_rows,
        )
