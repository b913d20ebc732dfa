"""Landmarks that the user brings: row numbers, or points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..landmarks import Landmarks
from .choosing import Sampler, Work


@dataclass(frozen=True, eq=False)
class GivenRows(Sampler):
    """These rows of the data."""

    indices: np.ndarray
    name = "given rows"
    in_order = True
    chooses = False
    all_rows_will_do = False
    needs_psd = False
    takes_weightless = True  # row numbers count all rows

    def choose(self, work: Work, goal: Any) -> Landmarks:
        rows, n = np.asarray(self.indices), work.source.n_rows
        outside = rows[(rows < 0) | (rows >= n)]
        if len(outside):
            raise ValueError(
                f"sampler has row number {outside[0]}, but the data has rows 0 to "
                f"{n - 1}."
            )
        points = work.source.take(rows)
        return Landmarks(points, work.kernel, self.name, n, indices=rows)


@dataclass(frozen=True, eq=False)
class GivenPoints(Sampler):
    """These points, which need not be rows of the data."""

    points: Any
    name = "given points"
    in_order = True
    chooses = False
    all_rows_will_do = False
    needs_psd = False

    def choose(self, work: Work, goal: Any) -> Landmarks:
        if work.kernel.traits.by_number:
            raise ValueError(
                "With kernel='precomputed' there is nothing to evaluate at new points; "
                "give row numbers as sampler."
            )
        n_features = work.source.n_features
        width = getattr(self.points, "shape", (0, n_features))[1]
        if n_features is not None and width != n_features:
            raise ValueError(
                f"The landmarks given as sampler have {width} features, but the data "
                f"has {n_features}."
            )
        return Landmarks(self.points, work.kernel, self.name, work.source.n_rows)
