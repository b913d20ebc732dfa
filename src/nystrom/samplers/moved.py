"""Landmarks moved off the rows: one guarded Lloyd step from those of the default
sampler.

Moving each landmark towards the mean of its nearest rows lowers the trace error. The
step length is the best on validation rows; there is no step if none improves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import _arrays as arrays
from .._arrays import Array
from .._precision import min_cholesky_ridge
from .._random import Purpose, Stream
from ..kernels import Kernel
from ..landmarks import Landmarks
from ..linalg.cross_kernel import CrossKernel
from ..linalg.residuals import prepare_residuals, ridge_inverse_root
from ..sources import Block, Source
from ..sources.base import multiply_weights
from .base import FixedSize, Sampler, SamplingProblem
from .pooled_greedy import VALIDATION_SHARES, PooledGreedy
from .weighted_sampling import NumberedSubset, SampledRows

#: Rows per landmark that the means are of.
MEAN_ROWS_PER_LANDMARK = 40
#: Fresh rows to try it on: a quarter of all, within these bounds.
STEP_VALIDATION_ROWS_RANGE = (256, 6000)
#: Lengths of the step to choose from.
STEP_LENGTHS = (1.0, 0.75, 0.5, 0.25)
#: A step must gain so many standard errors on the fresh rows.
MIN_GAIN_STANDARD_ERRORS = 3.0


@dataclass(frozen=True)
class KMeans(Sampler):
    """Landmarks of "auto", moved towards the means of their nearest rows.

    The trace error is smaller, but the landmarks are not rows of the data and have no
    row numbers. For dense vectors and kernels that decrease with a distance (RBF,
    Matérn, rational quadratic, Laplacian, and sums, products and multiples of these).

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import samplers, select_landmarks
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> options = {"n_landmarks": 20, "random_state": 0}
    >>> chosen = select_landmarks(X, sampler=samplers.KMeans(), **options)
    >>> len(chosen), chosen.sampler
    (20, 'kmeans')
    """

    name = "kmeans"
    returns_all_rows = False  # what it cannot move is refused all the same

    def choose(self, problem: SamplingProblem, goal: FixedSize) -> Landmarks:
        _check_movable(problem.kernel, problem.source)
        if goal.n_landmarks >= problem.source.n_rows:  # every row: K̃ = K already
            every_row = SampledRows.all_of(problem.source.n_rows)
            landmarks = problem.landmarks(every_row, self.name)
            return replace(landmarks, indices=None, probabilities=None)
        start = PooledGreedy().choose(problem, goal)
        return _move_landmarks(start, problem, self.name)


def _check_movable(kernel: Kernel, source: Source) -> None:
    is_dense = source.n_features is not None and arrays.is_array(source.rows(0, 1))
    if not kernel.traits.is_distance_based or not is_dense:
        raise ValueError(
            "sampler='kmeans' moves the landmarks off the rows; it needs dense rows of "
            "numbers and a kernel of a distance (RBF, Matern, RationalQuadratic, "
            f"Laplacian), not {kernel}. Use sampler='auto'."
        )


def _move_landmarks(start: Landmarks, problem: SamplingProblem, name: str) -> Landmarks:
    """Each landmark moved towards the mean of its rows, if fresh rows gain by it."""
    n, s = problem.source.n_rows, len(start)
    mean_rows = _uniform_rows(
        problem, min(n, MEAN_ROWS_PER_LANDMARK * s), level=len(VALIDATION_SHARES) + 1
    )
    validation_rows = _uniform_rows(
        problem,
        int(np.clip(n // 4, *STEP_VALIDATION_ROWS_RANGE)),
        level=len(VALIDATION_SHARES) + 2,
    )
    Z = arrays.to_host_float64(start.points)
    step = _cell_means(start, Z, mean_rows, problem) - Z
    residuals_by_length = {}
    for length in (0.0, *STEP_LENGTHS):
        points = arrays.from_host(Z + length * step, start.points)
        residuals_by_length[length] = _validation_residuals(
            points, validation_rows, problem
        )
    length = _best_length(residuals_by_length)
    note = f"moved {length:g} of the way to the means" if length else "not moved"
    problem.ledger.note(note)
    points = arrays.from_host(Z + length * step, start.points)
    return Landmarks(points, problem.kernel, name, n)


def _uniform_rows(problem: SamplingProblem, size: int, level: int) -> NumberedSubset:
    n = problem.source.n_rows
    rows = Stream(problem.seed, Purpose.VALIDATION, level).sample_rows(size, n)
    return problem.fetch(np.sort(rows))


def _cell_means(
    start: Landmarks, Z: np.ndarray, mean_rows: Source, problem: SamplingProblem
) -> np.ndarray:
    """The mean of the rows nearest to each landmark, itself counted as one of them."""
    shared = (start.columns(), len(Z))
    cell_sums = problem.engine.reduce(_block_cell_sums, mean_rows, shared, "means")
    sums, counts = arrays.tree_to_host(cell_sums)
    problem.ledger.count_pass(mean_rows, mean_rows.n_rows * len(Z))
    return (sums + Z) / (counts + 1)[:, None]


def _block_cell_sums(
    block: Block, columns: CrossKernel, n_points: int
) -> tuple[Array, Array]:
    K, X = columns(block.X), arrays.widen(block.X)
    xp = arrays.namespace(K)
    # The kernel falls with the distance: nearest is where it is largest.
    nearest = xp.argmax(K, axis=1)
    # A row whose kernel values all vanish is near to none.
    w = arrays.from_host(block.weights, X) * arrays.as_float(xp.max(K, axis=1) > 0)
    return arrays.sums_by_label(X, nearest, n_points, w)


def _validation_residuals(
    points: Any, validation_rows: Source, problem: SamplingProblem
) -> np.ndarray:
    """What these landmarks leave of the fresh rows, as they count."""
    K = problem.gram(points)
    ridge = min_cholesky_ridge(K)
    root = ridge_inverse_root(K, np.ones(len(K)), ridge)
    columns = CrossKernel(problem.kernel, points)
    prepared = prepare_residuals(columns, validation_rows, root, ledger=problem.ledger)
    residual = problem.residuals(prepared, validation_rows, "fresh rows")
    # The ridge itself leaves up to λ of a row that is spanned, and rounding far less
    # than that: no step gains by either.
    return multiply_weights(
        validation_rows.weights, np.where(residual > 2 * ridge, residual, 0.0)
    )


def _best_length(residuals_by_length: dict[float, np.ndarray]) -> float:
    """The length that leaves least, if it surely leaves less than no step."""
    best, unmoved = 0.0, residuals_by_length[0.0]
    for length in STEP_LENGTHS:
        gain = unmoved - residuals_by_length[length]
        error = np.std(gain) / np.sqrt(len(gain))
        if (
            gain.mean() > MIN_GAIN_STANDARD_ERRORS * error
            and residuals_by_length[length].sum() < residuals_by_length[best].sum()
        ):
            best = length
    return best
