"""Landmarks that are not rows: the default's, moved by one guarded Lloyd step.

For kernels that fall with a distance the landmarks may leave the rows. Moving each
towards the mean of the rows nearest to it lowers the trace error by a tenth to a
quarter; the spectral error may rise, and more steps make it worse. So there is one
step, of the length that fresh rows show to be best, and none if they do not gain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from ..engines import Engine, single_threaded_blas
from ..factor import least_ridge, ridge_root
from ..kernels import Kernel, Precomputed
from ..landmarks import Landmarks
from ..leverage import residuals
from ..randomness import Purpose, race, uniforms
from ..sources import Block, Source, Subset
from .gain import GainPivoted

NAME = "kmeans"
#: Rows per landmark whose means are taken.
ROWS_PER_LANDMARK = 40
#: Fresh rows to try it on: a quarter of all, within these bounds.
FRESH_ROWS = (256, 6000)
#: Lengths of the step that are tried.
LENGTHS = (1.0, 0.75, 0.5, 0.25)
#: A step must gain so many standard errors on the fresh rows.
SURE = 3.0


@dataclass(frozen=True)
class KMeans:
    """The landmarks of "auto", moved towards the means of their nearest rows.

    Lower trace error per landmark; the landmarks are then no rows of the data and have
    no row numbers. For dense vectors and kernels that fall with a distance (RBF,
    Matérn, rational quadratic, Laplacian, and sums, products and multiples of these).
    """

    def __call__(
        self,
        kernel: Kernel,
        source: Source,
        n_landmarks: int | None,
        *,
        seed: int,
        engine: Engine,
    ) -> Landmarks:
        _check(kernel, source)
        start = GainPivoted()(kernel, source, n_landmarks, seed=seed, engine=engine)
        if len(start) >= source.n_rows:  # every row: K̃ = K already
            return start.updated(
                sampler=NAME, indices=None, weights=None, probabilities=None
            )
        with single_threaded_blas():
            return moved(start, kernel, source, seed, engine)


def _check(kernel: Kernel, source: Source) -> None:
    if not kernel.of_distance:
        why = (
            "a precomputed kernel cannot be evaluated at new points"
            if isinstance(kernel, Precomputed)
            else f"{kernel} is not known to fall with a distance"
        )
        raise ValueError(
            f"sampler='kmeans' moves the landmarks off the rows, and {why}. Use "
            "sampler='auto', or one of the kernels RBF, Matern, RationalQuadratic, "
            "Laplacian."
        )
    if source.n_features is None or not arrays.is_array(source.rows(0, 1)):
        raise ValueError(
            "sampler='kmeans' needs dense rows of numbers: the mean of CSR rows is not "
            "sparse. Use sampler='auto', or X.toarray()."
        )


def moved(
    start: Landmarks, kernel: Kernel, source: Source, seed: int, engine: Engine
) -> Landmarks:
    """Each landmark moved towards the mean of its rows, if fresh rows gain by it."""
    n, s = source.n_rows, len(start)
    near = _uniform_rows(source, min(n, ROWS_PER_LANDMARK * s), seed, level=2)
    fresh = _uniform_rows(source, int(np.clip(n // 4, *FRESH_ROWS)), seed, level=3)
    Z = arrays.host_values(start.points)
    step = _means(kernel, start.points, Z, near, engine) - Z
    evaluations = near.n_rows * s
    lefts = {}
    for length in (0.0, *LENGTHS):
        points = arrays.from_host(Z + length * step, start.points)
        lefts[length], spent = _left(kernel, points, fresh, engine.here())
        evaluations += spent
    length = _best_length(lefts)
    note = f"moved {length:g} of the way to the means" if length else "not moved"
    return Landmarks(
        points=arrays.from_host(Z + length * step, start.points),
        kernel=kernel,
        sampler=NAME,
        n_rows=n,
        n_kernel_evaluations=start.n_kernel_evaluations + evaluations,
        pool=start.pool,
        notes=(*start.notes, note),
    )


def _uniform_rows(source: Source, size: int, seed: int, level: int) -> Subset:
    n = source.n_rows
    u = uniforms(seed, Purpose.FRESH, 0, n, level=level)
    return Subset(source, np.sort(race(None, u, size)[0]))


def _means(
    kernel: Kernel, points: Any, Z: np.ndarray, near: Source, engine: Engine
) -> np.ndarray:
    """The mean of the rows nearest to each landmark, itself counted as one of them."""
    shared = (kernel.against(points), len(Z))
    sums, counts = engine.reduce(_nearest_sums, near, shared, "means")
    return (sums + Z) / (counts + 1)[:, None]


def _nearest_sums(
    block: Block, evaluate: Callable, n_points: int
) -> tuple[np.ndarray, np.ndarray]:
    K = arrays.to_host(evaluate(block.X))
    # The kernel falls with the distance: nearest is where it is largest.
    nearest, rows = K.argmax(axis=1), np.arange(len(K))
    w = np.ones(len(K)) if block.weights is None else block.weights
    # A row whose kernel values all vanish is near to none.
    w = w * (K[rows, nearest] > 0)
    cells = sp.csr_array((w, (nearest, rows)), shape=(n_points, len(K)))
    return cells @ arrays.host_values(block.X), np.bincount(nearest, w, n_points)


def _left(
    kernel: Kernel, points: Any, fresh: Source, engine: Engine
) -> tuple[np.ndarray, int]:
    """What these landmarks leave of the fresh rows, and kernel evaluations made."""
    K = kernel.gram(points)
    ridge = least_ridge(K)
    B = ridge_root(K, np.ones(len(K)), ridge)
    left = residuals(kernel, fresh, points, B, engine=engine, triangular=True)
    evaluations = left.n_evaluations + kernel.gram_evaluations(len(K))
    w = 1.0 if fresh.weights is None else fresh.weights
    # The ridge itself leaves up to λ of a row that is spanned: no step gains by that.
    return w * np.where(left.values > ridge, left.values, 0.0), evaluations


def _best_length(lefts: dict[float, np.ndarray]) -> float:
    """The length that leaves least, if it surely leaves less than no step."""
    best, still = 0.0, lefts[0.0]
    for length in LENGTHS:
        gain = still - lefts[length]
        error = np.std(gain) / np.sqrt(len(gain))
        if gain.mean() > SURE * error and lefts[length].sum() < lefts[best].sum():
            best = length
    return best
