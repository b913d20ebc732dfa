"""Sums over a stream of rows, which are carried from landmarks to other landmarks.

Rows that are gone cannot be mapped again. Their features in the old landmarks' span
can: z′ ≈ Tz. What that leaves out is made up for by the rows that were kept, for which
both are known. Regressed on z, they tell a better T, which also has what z says of z′
outside of the span; and what that leaves of them, r = z′ − Tz, stands for what it
leaves of all rows: Σz′z′ᵀ ≈ T(Σzzᵀ)Tᵀ + Σω·rrᵀ, whose second term is small. (With T the
projection alone, products of Tz and r are estimated too: with heavy tails they took
half of a direction away, and predictions were wrong by a multiple of the targets.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from ... import _arrays as arrays
from ..._arrays import Array
from ...engines import Engine
from ...engines.blas import blas_threads_for
from ...features import FeatureMap, Tiles
from ...landmarks import Landmarks
from ...moments import Moments, moments
from ...reservoir import Reservoir, whitened
from ...sources import Block, Source
from .fit import RidgeFit, finish

#: Directions in which kept rows have a smaller share of their features are projected:
#: they are too few to tell more.
LEAST_SHARE = 1e-3


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
    name, kept = "sums of kept rows", reservoir.source
    was, now = (moments(mapping, kept, engine, name) for mapping in (old, new))
    tiles = new.tiles(), old.tiles()
    found = engine.reduce(_products, kept, tiles, "products of kept rows")
    with blas_threads_for(len(new.root)):
        T = new.root.T @ (old.columns.host(new.columns.points) @ old.root)
        W = _with_one(was)
        T = _regressed(T, arrays.fetched(found)[0], W)
        gone = T @ (_with_one(sums) - W)  # Σ Tz(z, 1)ᵀ of all other rows
        gram = gone @ T.T + now.gram
        # What is estimated may have taken more than there was.
        values, vectors = np.linalg.eigh((gram + gram.T) / 2)
        gram = (vectors * np.maximum(values, 0.0)) @ vectors.T
    cross = sums.cross - was.cross, (sums.target_sum - was.target_sum)[None]
    return replace(
        sums,
        gram=(gram + gram.T) / 2,
        cross=T @ np.concatenate(cross) + now.cross,
        feature_sum=gone[:, -1] + now.feature_sum,
    )


def _products(block: Block, new: Tiles, old: Tiles) -> tuple[Array]:
    """Σ ω·z′(z, 1)ᵀ."""
    Z = old(block.X)
    scale = arrays.from_host(block.weights, Z)[:, None]
    return (new(block.X).T @ arrays.side_by_side([Z * scale, scale]),)


def _with_one(sums: Moments) -> np.ndarray:
    """Σ w(z, 1)(z, 1)ᵀ."""
    f = sums.feature_sum[:, None]
    return np.block([[sums.gram, f], [f.T, np.array([[sums.weight]])]])


def _regressed(T: np.ndarray, products: np.ndarray, W: np.ndarray) -> np.ndarray:
    """(T, 0), and what Σ ω·z′(z, 1)ᵀ and W = Σ ω(z, 1)(z, 1)ᵀ tell beside it."""
    T = np.append(T, np.zeros((len(T), 1)), axis=1)
    size = np.sqrt(np.diagonal(W))
    size = np.where(size > 0, size, 1.0)
    A = W / size / size[:, None]
    np.einsum("ii->i", A)[:] += LEAST_SHARE
    beside = (products - T @ W) / size
    return T + scipy.linalg.solve(A, beside.T, assume_a="pos").T / size
