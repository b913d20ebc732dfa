"""Predictive variance of ridge regression on Nyström features (the DTC Gaussian
process), calibrated by rows that are left out, and prediction intervals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from .. import _arrays as arrays
from .. import _precision as precision
from .._arrays import DeviceConstant
from .._precision import EPS64
from .._random import sorted_row_sample
from .._validation import check_finite
from ..engines import Engine
from ..engines.blas import blas_limit_for_size
from ..landmarks import Landmarks
from ..linalg.cross_kernel import CrossKernel, probe_rows
from ..linalg.features import FeatureMap, LinearMap, apply_to_block
from ..linalg.residuals import ResidualPass, block_residuals, prepare_residuals
from ..sources import Block, Source, Subset
from ..sources.output import ArraySink, Output
from .ridge import NormalEquations


@dataclass(frozen=True, eq=False)
class Posterior:
    """What predictive deviations need: the ridge problem on Z, and σ̂² per target.

    The deviation at x is that of the Gaussian process with covariance K̃ and noise α,
    scaled: σ̂²·(k(x,x) − ‖z‖² + α·(z − z̄)ᵀ(G + αI)⁻¹(z − z̄) [+ α/Σw]), with z̄ and the
    last term where there is an intercept (the DTC form).
    """

    root: np.ndarray  # (s, r)
    gram: np.ndarray  # (r, r)
    center: np.ndarray  # (s,) z̄ as kernel values with the landmarks, or 0
    own: float  # 1/Σw where there is an intercept, else 0
    alphas: np.ndarray  # (t,)
    scales: np.ndarray  # (t,) σ̂², by rows left out, or yᵀ(K̃ + αI)⁻¹y/n
    #: (m, t): |y − ŷ| over the deviation of rows left out, ascending; None: not known.
    scores: np.ndarray | None = None
    #: (m, t): the weights of these rows, in the order of the scores; None: all alike.
    score_weights: np.ndarray | None = None

    def regularized_root(self, alpha: float) -> np.ndarray:
        """R with ‖k_S·R‖² = zᵀ(G + αI)⁻¹z."""
        s = len(self.gram)
        with blas_limit_for_size(s):
            try:
                L = cholesky(self.gram + alpha * np.eye(s), lower=True)
                return self.root @ solve_triangular(L, np.eye(s), lower=True).T
            except LinAlgError:  # α is below the rounding of G
                values, vectors = np.linalg.eigh(self.gram)
                return self.root @ (vectors / np.sqrt(np.maximum(values, 0.0) + alpha))

    def calibrate(
        self,
        landmarks: Landmarks,
        source: Source,
        mapping: LinearMap,
        engine: Engine,
        seed: int,
        *,
        weights_count_rows: bool = False,
    ) -> Posterior:
        """Deviations scaled so that those of rows left out are right on average.

        Some rows are left out one by one, in closed form, with all their weight; α and
        the other landmarks are those of all rows. A row that is a landmark takes its
        basis function along: new rows are no landmarks. Where `weights_count_rows`, a
        row of weight w counts as w rows; else weights are about noise, and rows count
        alike.
        """
        rows = landmarks.held_out
        if rows is None:
            rows = sorted_row_sample(source.n_rows, MAX_CALIBRATION_ROWS, seed)
        rows = rows[source.weights_of(rows) > 0]
        if len(rows) < MIN_CALIBRATION_ROWS or not np.all(self.alphas > 0):
            return self
        sample = Subset(source, rows)
        sink = ArraySink((len(rows), len(self.alphas)))
        dtype = landmarks.kernel.dtype(source.original.rows(0, 1))
        variance = self._predictive_variance(landmarks, source, mapping.wide, True, 0.0)
        shared = (
            mapping.block_arguments(landmarks, dtype),
            variance,
            DeviceConstant(mapping.dual),
            self.root,
            rows_that_are_landmarks(landmarks, rows, self.root),
        )
        engine.map(_score_block, sample, sink, shared, "calibration")
        weights = source.weights_of(rows) if weights_count_rows else np.ones(len(rows))
        return self.scaled_to(np.abs(sink.array), weights)

    def scaled_to(self, scores: np.ndarray, weights: np.ndarray) -> Posterior:
        """Scaled so that these scores (m, t) have mean square 1; as it is if it can't.

        The weights (m,) are those of the rows. A target that is fitted exactly stays as
        it is, and changes no other.
        """
        is_exact = (self.scales == 0) | ~scores.any(axis=0)
        scores = np.where(is_exact, 1.0, scores)
        order = np.argsort(scores, axis=0)
        scores = np.take_along_axis(scores, order, axis=0)
        score_weights = weights[order] if np.ptp(weights) else None
        factor = np.sqrt(np.average(scores**2, axis=0, weights=score_weights))
        if is_exact.all() or not np.all(np.isfinite(factor) & (factor > 0)):
            return self
        return replace(
            self,
            scales=self.scales * factor**2,
            scores=scores / factor,
            score_weights=score_weights,
        )

    def quantiles(self, coverage: float, dual: np.ndarray) -> np.ndarray:
        """(t,): half the width of an interval of this coverage, in deviations."""
        return conformal_quantiles(self.scores, coverage, self.score_weights)

    def predict_with_std(
        self,
        landmarks: Landmarks,
        source: Source,
        mapping: LinearMap,
        engine: Engine,
        *,
        noise: bool,
        white: float,
        output: Output,
    ) -> Any:
        """(n, 2·t): predictions, and beside them their deviations, in one pass.

        With all of the noise α, or with the part of it that is `white`. A new array is
        in float64, with predictions that are rounded to the precision of the rows.
        """
        first, kernel = source.original.rows(0, 1), landmarks.kernel
        like, dtype = kernel.output_like(first), kernel.dtype(first)
        sink_dtype = np.dtype(np.float64) if output.where is None else dtype
        sink = output.sink(source, 2 * len(self.alphas), sink_dtype, like)
        variance = self._predictive_variance(
            landmarks, source, mapping.wide, noise, white
        )
        shared = (mapping.block_arguments(landmarks, dtype), variance)
        engine.map(_mean_and_std_block, source, sink, shared, "predictions")
        return output.result(sink)

    def _predictive_variance(
        self,
        landmarks: Landmarks,
        source: Source,
        wide: bool,
        noise: bool,
        white: float,
    ) -> PredictiveVariance:
        projections = []
        for alpha in np.unique(self.alphas):
            R = self.regularized_root(alpha)
            # The share of alpha that is noise of a new target.
            share = 1.0 if noise else white / alpha
            constants = DeviceConstant(R), DeviceConstant(self.center @ R)
            projections.append((float(alpha), share, *constants))
        columns = _columns_with_sufficient_precision(
            landmarks.columns(wide=wide), source, projections, self.own
        )
        prepared = prepare_residuals(landmarks.columns(), source, self.root)
        return PredictiveVariance(
            prepared, columns, projections, self.own, self.alphas, self.scales
        )


#: Rows that are left out to calibrate deviations, at most and at least. From 10 rows on
#: deviations scaled by rows left out covered new rows better than, or as well as, those
#: scaled by likelihood (200 draws for each of 10 to 80 rows and four alphas).
MAX_CALIBRATION_ROWS, MIN_CALIBRATION_ROWS = 2048, 10


def conformal_quantiles(
    scores: np.ndarray | None,
    coverage: float,
    weights: np.ndarray | None = None,
    name: str = "interval",
) -> np.ndarray:
    """The ⌈(m + 1)·coverage⌉-th smallest of m scores, ascending, for each target.

    With weights, of the scores' order: rows count by their share of all m. `name` is
    that of the parameter.
    """
    if scores is None:
        raise ValueError(
            "interval= needs leave-one-out residuals, but this model has none, "
            f"because it has fewer than {MIN_CALIBRATION_ROWS} rows or fits all of "
            "them exactly. Fit with more rows, or use return_std=True."
        )
    m = len(scores)
    k = int(np.ceil((m + 1) * coverage))
    if k > m:
        raise ValueError(
            f"{name}={coverage:g} needs more than the {m} leave-one-out residuals "
            f"of this model; at most {m / (m + 1):.4g} is possible here."
        )
    if weights is None:
        return scores[k - 1]
    shares = np.cumsum(weights, axis=0)
    below = shares < shares[-1] * min((m + 1) * coverage / m, 1 - EPS64)
    return np.take_along_axis(scores, below.sum(axis=0)[None], axis=0)[0]


#: α, its share that is noise, M and offset of the squared projections; for each α.
Projections = list[tuple[float, float, DeviceConstant, DeviceConstant]]


@dataclass(frozen=True, eq=False)
class PredictiveVariance:
    """What a pass needs for the deviations of its rows."""

    residual_pass: ResidualPass
    columns: CrossKernel
    projections: Projections
    own: float
    alphas: np.ndarray
    scales: np.ndarray

    def leave_one_out_scores(
        self,
        block: Block,
        mean: np.ndarray,
        dual: DeviceConstant,
        root: np.ndarray,
        rows: np.ndarray,
        numbers: np.ndarray,
    ) -> np.ndarray:
        """(rows, t): residuals over deviations, for each row left out of the fit.

        Of these rows, which are the landmarks of these numbers, without the landmark.
        """
        w, Y = np.asarray(block.weights), np.asarray(block.targets)
        residual_diagonal, out = self._residual_diagonal(block), np.empty(Y.shape)
        # k(x, x) − k̃(x, x) of a landmark, with K̃ of all others.
        residual_diagonal[rows] = 1 / np.vecdot(root[numbers], root[numbers])
        K = self.columns.float64(block.X)
        for alpha, _, M, offset in self.projections:
            mask = self.alphas == alpha
            P, fitted = K @ M.to_device_of(K) - offset.to_device_of(K), mean[:, mask]
            leverage = arrays.to_host(arrays.squared_norms(P))
            own = arrays.to_host(arrays.take_rows(P, rows))
            share, leverage[rows] = without_landmarks(own, M.values[numbers])
            fitted[rows] -= share[:, None] * dual.values[np.ix_(numbers, mask)]
            leverage += self.own
            divisor = np.maximum(1 - w * leverage, 10 * EPS64)
            variance = residual_diagonal + alpha * (leverage / divisor + 1)
            residuals = (Y[:, mask] - fitted) / divisor[:, None]
            out[:, mask] = residuals / np.sqrt(variance[:, None] * self.scales[mask])
        return out

    def _residual_diagonal(self, block: Block) -> np.ndarray:
        residual_diagonal = block_residuals(block, self.residual_pass)
        check_finite(residual_diagonal)
        return residual_diagonal

    def std(self, block: Block) -> np.ndarray:
        """(rows, t)."""
        residual_diagonal = self._residual_diagonal(block)
        out = np.empty((len(block), len(self.alphas)))
        for alpha, share, M, offset in self.projections:
            squares = squared_projections_block(block, self.columns, M, offset)
            variance = residual_diagonal + alpha * (squares + self.own + share)
            mask = self.alphas == alpha
            out[:, mask] = np.sqrt(variance[:, None] * self.scales[mask])
        return out


def rows_that_are_landmarks(
    landmarks: Landmarks, rows: np.ndarray, root: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Positions among the rows, ascending, and which landmarks these are.

    Landmarks that are no rows, or have no basis function, do not count.
    """
    if landmarks.indices is None:
        none = np.empty(0, dtype=np.intp)
        return none, none
    used = np.flatnonzero(root.any(axis=1))
    indices = landmarks.indices[used]
    _, positions, numbers = np.intersect1d(rows, indices, return_indices=True)
    return positions, used[numbers]


def own_landmarks_of_block(
    block: Block, landmark_rows: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Those of `rows_that_are_landmarks` in a block, by their places in it."""
    positions, numbers = landmark_rows
    ends = [block.start, block.start + len(block)]
    own = slice(*np.searchsorted(positions, ends))
    return positions[own] - block.start, numbers[own]


def without_landmarks(
    P: np.ndarray, basis: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of each row: what its value changes by per coefficient removed, and its leverage.

    P are the projections of the rows by M, and the basis are rows of M. (MMᵀ)ᵢᵢ is the
    variance of landmark i's coefficient, and Mᵢ·p its covariance with the row's value:
    the constraint that the coefficient is 0 is a step along Mᵢ.
    """
    squares = np.vecdot(basis, basis)
    share = np.vecdot(P, basis)
    share = np.divide(share, squares, out=np.zeros_like(share), where=squares > 0)
    rest = P - share[:, None] * basis
    return share, np.vecdot(rest, rest)


def _score_block(
    block: Block,
    map_arguments: tuple,
    variance: PredictiveVariance,
    dual: DeviceConstant,
    root: np.ndarray,
    landmark_rows: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:
    mean = arrays.to_host_float64(apply_to_block(block, *map_arguments))
    own = own_landmarks_of_block(block, landmark_rows)
    return variance.leave_one_out_scores(block, mean, dual, root, *own)


def _mean_and_std_block(
    block: Block, map_arguments: tuple, variance: PredictiveVariance
) -> Any:
    mean = arrays.widen(apply_to_block(block, *map_arguments))
    return arrays.stack_columns([mean, arrays.from_host(variance.std(block), mean)])


def _columns_with_sufficient_precision(
    columns: CrossKernel, source: Source, projections: Projections, own: float
) -> CrossKernel:
    """Kernel values as precise as the projections need.

    float32 may do for predictions and not here: 1/√(σ² + α) times the root of a float64
    factor made deviations 220 times too large out of float32 rounding.
    """
    if not columns.narrow:
        return columns
    probes = probe_rows(source)
    block = probes.block(0, probes.n_rows)
    with np.errstate(over="ignore", invalid="ignore"):
        narrow, wide = (
            np.column_stack(
                [squared_projections_block(block, c, *p[2:]) for p in projections]
            )
            + own
            for c in (columns, columns.widened())
        )
    # Deviations are the roots of these: half of the error.
    wrong = precision.results_need_float64(narrow, wide)
    return columns.widened() if wrong else columns


def squared_projections_block(
    block: Block, columns: CrossKernel, M: DeviceConstant, offset: DeviceConstant
) -> np.ndarray:
    """‖k_S·M − offset‖² of each row."""
    K = columns.float64(block.X)
    projected = K @ M.to_device_of(K) - offset.to_device_of(K)
    return arrays.to_host(arrays.squared_norms(projected))


def ridge_posterior(
    mapping: FeatureMap, problem: NormalEquations, alphas: np.ndarray, coef: np.ndarray
) -> Posterior:
    """The posterior of a problem that has been solved from its Gram matrix."""
    center, intercept_leverage = np.zeros(len(mapping.root)), 0.0
    if problem.fit_intercept:
        # z̄ is rootᵀ of the mean of kernel values; that mean is not stored, but any
        # vector with the same rootᵀ does.
        mean = mapping.center + problem.feature_mean
        center, intercept_leverage = (
            mapping.factor.kernel_values_for(mean),
            1 / problem.total_weight,
        )
    scales = np.full(len(alphas), np.nan)
    if np.all(alphas > 0):
        fitted = np.einsum("rt,rt->t", problem.cross, coef)
        # yᵀ(K̃ + αI)⁻¹y/n
        scales = np.maximum(problem.target_squares - fitted, 0.0) / alphas
        scales /= problem.n_rows
    return Posterior(
        mapping.root, problem.gram, center, intercept_leverage, alphas, scales
    )
