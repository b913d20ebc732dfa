"""Sums over a stream of rows, which are carried from landmarks to other landmarks.

Rows that are gone cannot be mapped again. Their features in the old landmarks' span
can: z′ ≈ Tz. What that leaves out is made up for by the rows that were kept, for which
both are known: Σz′z′ᵀ ≈ T(Σzzᵀ)Tᵀ + Σω(z′z′ᵀ − Tz(Tz)ᵀ). The sum is over all rows, and
only a small difference is estimated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...engines import Engine
from ...engines.blas import blas_threads_for
from ...features import FeatureMap
from ...landmarks import Landmarks
from ...moments import Moments, moments
from ...reservoir import Reservoir, whitened
from ...sources import Source
from .fit import RidgeFit, finish


@dataclass(frozen=True, eq=False)
class RunningSums:
    """Σ zzᵀ, Σ zyᵀ over all rows so far, in the features of some landmarks."""

    sums: Moments
    target_shift: np.ndarray  # (t,) near the mean of the targets

    @classmethod
    def of(cls, landmarks: Landmarks, batch: Source, engine: Engine) -> RunningSums:
        """Of a first batch."""
        assert batch.targets is not None
        shift = np.average(batch.targets, axis=0, weights=batch.weights)
        sums = moments(whitened(landmarks, shift), batch, engine)
        return cls(sums, shift)

    def having(
        self, old: Landmarks, new: Landmarks, batch: Source, engine: Engine
    ) -> RunningSums:
        """With another batch, in the features of landmarks that may be others."""
        mapping, sums = whitened(new, self.target_shift), self.sums
        if new.points is not old.points:
            before = whitened(old, self.target_shift)
            sums = carried(sums, before, mapping, old.reservoir, engine)
        return replace(self, sums=sums + moments(mapping, batch, engine))

    def solved(
        self,
        landmarks: Landmarks,
        alphas: np.ndarray,
        *,
        fit_intercept: bool,
    ) -> RidgeFit:
        """Ridge regression of all rows so far, one α for each target."""
        shift, sums = self.target_shift, self.sums
        if not fit_intercept:  # a shift is nothing that a ridge may leave out
            shift, sums = np.zeros_like(shift), about_zero(sums, shift)
        mapping, rows = whitened(landmarks, shift), landmarks.reservoir.source
        fit = finish(landmarks, mapping, sums, rows, alphas, fit_intercept)
        # The trace is that of sums which are partly estimated.
        return replace(fit, error=landmarks.error, trace_left=None, notes=())


def about_zero(sums: Moments, shift: np.ndarray) -> Moments:
    """Sums with y − m, as sums with y."""
    squares = 2 * shift * sums.target_sum + sums.weight * shift**2
    return replace(
        sums,
        cross=sums.cross + np.outer(sums.feature_sum, shift),
        target_sum=sums.target_sum + sums.weight * shift,
        target_squares=sums.target_squares + squares,
    )


def carried(
    sums: Moments,
    old: FeatureMap,
    new: FeatureMap,
    reservoir: Reservoir,
    engine: Engine,
) -> Moments:
    """Sums in old features, as sums in new ones."""
    name = "sums of kept rows"
    kept = reservoir.source
    was, now = (moments(mapping, kept, engine, name) for mapping in (old, new))
    with blas_threads_for(len(new.root)):
        T = new.root.T @ (old.columns.host(new.columns.points) @ old.root)
        gram = T @ (sums.gram - was.gram) @ T.T + now.gram
        # What is estimated may have taken more than there was.
        values, vectors = np.linalg.eigh((gram + gram.T) / 2)
        gram = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return replace(
        sums,
        gram=(gram + gram.T) / 2,
        cross=T @ (sums.cross - was.cross) + now.cross,
        feature_sum=T @ (sums.feature_sum - was.feature_sum) + now.feature_sum,
    )
