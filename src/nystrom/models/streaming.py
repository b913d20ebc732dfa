"""Moments over a stream of batches, transferred when the landmarks change.

Past rows are gone: their features are mapped by a regression fitted on the
reservoir's rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from .. import _arrays as arrays
from .._arrays import Array
from ..engines import Engine, Threads
from ..engines.blas import blas_limit_for_size
from ..landmarks import Landmarks
from ..linalg.features import BlockFeatures, FeatureMap
from ..linalg.moments import Moments, moments
from ..samplers.streaming import Reservoir, whitened_feature_map
from ..sources import Block, Source
from .ridge import RidgeFit, RidgeTask
from .ridge_solvers import fit_from_moments

#: Directions in which kept rows have a smaller share of their features are projected:
#: they are too few to resolve more.
TRANSFER_RIDGE = 1e-3


@dataclass(frozen=True, eq=False)
class StreamingMoments:
    """Σ zzᵀ, Σ zyᵀ over all rows so far, in the features of some landmarks."""

    sums: Moments
    target_shift: np.ndarray  # (t,) near the mean of the targets

    @classmethod
    def from_batch(
        cls, landmarks: Landmarks, batch: Source, engine: Engine
    ) -> StreamingMoments:
        """Of a first batch."""
        shift = np.average(batch.targets, axis=0, weights=batch.weights)
        sums = moments(whitened_feature_map(landmarks, shift), batch, engine)
        return cls(sums, shift)

    def update(
        self, old: Landmarks, new: Landmarks, batch: Source, engine: Engine
    ) -> StreamingMoments:
        """With another batch, in the features of landmarks that may be others."""
        mapping, sums = whitened_feature_map(new, self.target_shift), self.sums
        if new.points is not old.points:
            old_mapping = whitened_feature_map(old, self.target_shift)
            sums = transfer_moments(sums, old_mapping, mapping, old.reservoir, engine)
        return replace(self, sums=sums + moments(mapping, batch, engine))

    def solve(
        self, landmarks: Landmarks, alphas: np.ndarray, *, fit_intercept: bool
    ) -> RidgeFit:
        """Ridge regression of all rows so far, one α for each target."""
        shift, sums = self.target_shift, self.sums
        if not fit_intercept:  # a shift is nothing that a ridge may leave out
            shift, sums = np.zeros_like(shift), uncenter_targets(sums, shift)
        mapping = whitened_feature_map(landmarks, shift)
        rows = landmarks.reservoir.source
        task = RidgeTask(rows, alphas, fit_intercept, Threads(1))
        fit = fit_from_moments(landmarks, mapping, sums, task)
        # The trace is that of sums which are partly estimated: nothing is proven.
        return replace(fit, error=landmarks.error, risk_bound=None, notes=())


def uncenter_targets(sums: Moments, shift: np.ndarray) -> Moments:
    """Sums with y − m, as sums with y."""
    squares = 2 * shift * sums.target_sum + sums.weight * shift**2
    return replace(
        sums,
        cross=sums.cross + np.outer(sums.feature_sum, shift),
        target_sum=sums.target_sum + sums.weight * shift,
        target_squares=sums.target_squares + squares,
    )


def transfer_moments(
    sums: Moments,
    old: FeatureMap,
    new: FeatureMap,
    reservoir: Reservoir,
    engine: Engine,
) -> Moments:
    """Sums in old features, as sums in new ones."""
    name, kept = "sums of kept rows", reservoir.source
    kept_old, kept_new = (
        moments(mapping, kept, engine, name) for mapping in (old, new)
    )
    tiles = new.tiles(), old.tiles()
    products = engine.reduce(
        _cross_products_block, kept, tiles, "products of kept rows"
    )
    with blas_limit_for_size(len(new.root)):
        K = arrays.to_host_float64(old.columns(new.columns.points))
        T = new.root.T @ (K @ old.root)
        W = _augmented_gram(kept_old)
        T = _regress_transfer(T, arrays.tree_to_host(products)[0], W)
        other_rows = T @ (_augmented_gram(sums) - W)  # Σ Tz(z, 1)ᵀ of all other rows
        gram = other_rows @ T.T + kept_new.gram
        # An estimate may exceed the sums it is subtracted from.
        values, vectors = np.linalg.eigh((gram + gram.T) / 2)
        gram = (vectors * np.maximum(values, 0.0)) @ vectors.T
    cross = sums.cross - kept_old.cross, (sums.target_sum - kept_old.target_sum)[None]
    return replace(
        sums,
        gram=(gram + gram.T) / 2,
        cross=T @ np.concatenate(cross) + kept_new.cross,
        feature_sum=other_rows[:, -1] + kept_new.feature_sum,
    )


def _cross_products_block(
    block: Block, new: BlockFeatures, old: BlockFeatures
) -> tuple[Array]:
    """Σ ω·z′(z, 1)ᵀ."""
    Z = old(block.X)
    scale = arrays.from_host(block.weights, Z)[:, None]
    return (new(block.X).T @ arrays.stack_columns([Z * scale, scale]),)


def _augmented_gram(sums: Moments) -> np.ndarray:
    """Σ w(z, 1)(z, 1)ᵀ."""
    f = sums.feature_sum[:, None]
    return np.block([[sums.gram, f], [f.T, np.array([[sums.weight]])]])


def _regress_transfer(T: np.ndarray, products: np.ndarray, W: np.ndarray) -> np.ndarray:
    """(T, 0), and what Σ ω·z′(z, 1)ᵀ and W = Σ ω(z, 1)(z, 1)ᵀ add to it."""
    T = np.append(T, np.zeros((len(T), 1)), axis=1)
    scale = np.sqrt(np.diagonal(W))
    scale = np.where(scale > 0, scale, 1.0)
    A = W / scale / scale[:, None]
    np.einsum("ii->i", A)[:] += TRANSFER_RIDGE
    remainder = (products - T @ W) / scale
    return T + scipy.linalg.solve(A, remainder.T, assume_a="pos").T / scale
