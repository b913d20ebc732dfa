"""Cost model of samplers: expected passes, and a forecast of landmarks and time for a
given λ.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _arrays as arrays
from .._precision import min_cholesky_ridge
from .._random import sorted_row_sample
from .._validation import check_finite
from ..engines import Engine
from ..engines.blas import blas_limit_for_size
from ..kernels import Kernel
from ..linalg.cross_kernel import CrossKernel, diag_float64
from ..linalg.residuals import residuals_to_scores, ridge_inverse_root, weighted_gram
from ..sources import Source
from .base import SpectralTolerance, StoppingRule, TraceTolerance
from .recursive import (
    PracticalRidge,
    ScoreTotals,
    TheoryRidge,
    accelerated_level_size,
)

#: Rows that are sampled, and the share of them that the others score: one in so many.
N_SAMPLED_ROWS, SCORED_ROW_STRIDE = 1000, 4
#: Passes over all rows with all landmarks that choosing amounts to: the levels, of
#: which the top one is half, and checks of the residual.
SELECTION_PASSES = 3.0
#: Multiply-adds of the small algebra, in s³.
CUBIC_MULTIPLY_ADDS = 4.0


@dataclass(frozen=True, repr=False)
class Forecast:
    """Estimated cost of landmarks with ‖K − K̃‖₂ ≤ max_spectral_error.

    Attributes
    ----------
    max_spectral_error : float
        The requested bound λ.
    n_rows : int
        Number of rows.
    effective_dimension : float
        Estimate of the effective dimension tr K(K + λI)⁻¹.
    n_landmarks : int
        Estimated number of landmarks; at most all rows.
    seconds : float
        Estimated time of the selection, from a rate measured on a small block.
    """

    max_spectral_error: float
    n_rows: int
    effective_dimension: float
    n_landmarks: int
    seconds: float

    def __str__(self) -> str:
        remark = " (nearly all)" if self.n_landmarks > 0.8 * self.n_rows else ""
        return (
            f"max_spectral_error={self.max_spectral_error:.4g}: about "
            f"{self.n_landmarks} landmarks of "
            f"{self.n_rows} rows{remark}, effective dimension about "
            f"{self.effective_dimension:.0f}, about {self.seconds:.2g} s"
        )

    def __repr__(self) -> str:
        return f"Forecast({self})"


def forecast(
    kernel: Kernel,
    source: Source,
    goal: SpectralTolerance,
    delta: float | None,
    engine: Engine,
) -> Forecast:
    """What `goal` takes, by Algorithm 2; with the theory's constants if δ is given."""
    n, ridge = source.n_rows, goal.max_spectral_error
    rows = sorted_row_sample(n, N_SAMPLED_ROWS)
    is_scored = np.arange(len(rows)) % SCORED_ROW_STRIDE == 0
    # Few rows are all in the sample; their scores are the exact ones.
    scored_rows, sample = rows[is_scored], rows if len(rows) == n else rows[~is_scored]
    points, X = source.take(sample), source.take(scored_rows)
    weights = np.sqrt(source.weights_of(sample))
    columns = CrossKernel(kernel, points)
    with blas_limit_for_size(N_SAMPLED_ROWS):
        gram = weighted_gram(kernel.gram(points), weights)
        check_finite(gram)
        started = time.perf_counter()
        K = arrays.to_host_float64(columns(X))
        evaluation_seconds = time.perf_counter() - started
        check_finite(K)
        started = time.perf_counter()
        K @ gram
        product_seconds = time.perf_counter() - started
        diagonal = arrays.to_host(diag_float64(columns.kernel, X))

        def scores_by_sample_of(n_rows: float) -> np.ndarray:
            """Scores of the rows, where the sample stands for so many."""
            scale = np.sqrt(n_rows / len(gram))
            SKS = weighted_gram(gram, np.full(len(gram), scale))
            safe_ridge = max(ridge, min_cholesky_ridge(SKS))
            F = K @ ridge_inverse_root(SKS, scale * weights, safe_ridge)
            residual = np.maximum(diagonal - np.vecdot(F, F), 0.0)
            return residuals_to_scores(residual, source.weights_of(scored_rows), ridge)

        # The recursion scores all rows by a sample of half of them.
        scores, exact = scores_by_sample_of(0.5 * n), scores_by_sample_of(1.0 * n)
    rule = PracticalRidge(ridge) if delta is None else TheoryRidge(ridge, delta)
    sampling_weights = rule.sampling_weights(scores, 0)
    rows_per_scored = n / len(scored_rows)
    totals = ScoreTotals.from_scores(scores, sampling_weights)
    totals = ScoreTotals(*(rows_per_scored * total for total in totals))
    p = np.minimum(1.0, rule.weight_factor(totals, 0) * sampling_weights)
    size = min(n, max(1, round(rows_per_scored * float(p.sum()))))
    if goal.at_most is not None:
        size = min(size, goal.at_most)
    per_value = evaluation_seconds / max(K.size, 1)
    per_product = product_seconds / max(K.size * len(gram), 1)
    n_threads = getattr(engine, "n_threads", 1)
    pass_seconds = n * size * (per_value + size / 2 * per_product) / n_threads
    cubic_seconds = CUBIC_MULTIPLY_ADDS * size**3 * per_product
    seconds = SELECTION_PASSES * pass_seconds + cubic_seconds
    d_eff = rows_per_scored * float(np.minimum(1.0, exact).sum())
    return Forecast(ridge, n, d_eff, size, seconds)


#: Landmarks that a trace error is expected to take, before anything is known.
TRACE_TOLERANCE_LANDMARKS = 128
#: Kernel evaluations of a selection of s from n rows, by the sampler's name: in units
#: of n·s, and more in units of s². Measured for 3,000 to 100,000 rows.
SELECTION_COSTS: dict[str, tuple[float, float]] = {
    "auto": (0.45, 22.0),
    "greedy": (3.0, 20.0),
    "kmeans": (0.5 + 5 * 0.25, 60.0),
    "recursive": (1.8, 0.0),
    "rpcholesky": (0.5, 5.0),
    "uniform": (0.0, 0.0),
    "given rows": (0.0, 0.0),
    "given points": (0.0, 0.0),
}
#: Of a sampler that is not known here.
DEFAULT_COST = (1.0, 0.0)
#: The same in units of n·s, where s doubles until a trace error is reached; and where
#: the recursion and a check find the s of a spectral error.
TRACE_TOLERANCE_COSTS = {"auto": 6.0, "greedy": 11.0, "rpcholesky": 5.0, "uniform": 4.0}
SPECTRAL_TOLERANCE_COST = 2.2


def expected_evaluations(
    sampler: Any, goal: StoppingRule, n_rows: int, n_landmarks: int
) -> float:
    """Kernel evaluations of a selection, about; of so many landmarks, as expected."""
    n, s, name = n_rows, n_landmarks, getattr(sampler, "name", "")
    if isinstance(goal, TraceTolerance):
        return TRACE_TOLERANCE_COSTS.get(name, 1.0) * n * s
    if name == "leverage":  # all of K
        return float(n * n)
    if isinstance(goal, SpectralTolerance):
        return SPECTRAL_TOLERANCE_COST * n * s
    if name == "accelerated":
        s = accelerated_level_size(n, s)
        name = "recursive"
    per_pair, per_square = SELECTION_COSTS.get(name, DEFAULT_COST)
    return 0.0 if s >= n else (per_pair * n + per_square * s) * s
