"""Gaussian-process regression on landmarks: hyper-parameters, posterior and draws.

Hyper-parameters maximise the collapsed bound of `models/evidence.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh
from scipy.optimize import minimize
from sklearn.base import clone

from .. import _arrays as arrays
from .. import _precision as precision
from .._random import Purpose, Stream, sorted_row_sample
from ..engines import Engine, Threads
from ..engines.blas import blas_limit_for_size
from ..kernels.gaussian_process import scale_names
from ..landmarks import Landmarks
from ..linalg.cross_kernel import CrossKernel, fetch_rows
from ..linalg.features import FeatureMap, mean_target
from ..linalg.moments import Moments, moments, trace_error_bound
from ..sources import Block, RowNumbers, Source, Subset, as_source
from .evidence import (
    EvidenceSums,
    ProcessRows,
    collapsed_evidence,
    evidence,
    evidence_bounds,
    host_rows,
)
from .posterior import Posterior
from .ridge import RidgeFit, RidgeTask
from .ridge_solvers import fit_from_moments

#: The value where the bound is not a number: a step to there is rejected.
REJECTED = 1e10
#: A step that changes the bound by less than this share of it is the last.
VALUE_RTOL = 1e-7
#: Rows up to which the norm of K − K̃ is bounded tile by tile, which takes as long as a
#: pass with 1024 landmarks; of more rows the trace is all that is known.
MAX_NORM_ROWS = 100_000
#: Newton steps on all rows, or on n of them with n·s² at most this: hyper-parameters
#: depend little on more. The largest of them, in log-parameters; the step of
#: differences for the curvature, and its least share.
MAX_FULL_STEPS, MAX_FULL_PRODUCTS, MAX_FULL_STEP = 3, 2**35, 1.0
CURVATURE_STEP, MIN_CURVATURE = 1e-3, 1e-3
#: Logarithms of factors of the constant and of the noise that are compared first.
START_GRID = np.linspace(-12, 12, 25)
#: Rows whose residuals are drawn together.
DRAWN_ROWS = 1000


#: An optimiser as scikit-learn calls it: (objective, theta, bounds) ↦ (theta, value).
Optimizer = Callable[..., tuple[np.ndarray, float]]


class Optimum(NamedTuple):
    """Where an optimisation ended; the bound there, per row."""

    kernel: Any
    value: float
    points: Any
    rows: ProcessRows


def maximize_evidence(
    kernel: Any,
    points: Any,
    rows: ProcessRows,
    *,
    max_steps: int,
    optimizer: Optimizer | None = None,
    move_points: np.ndarray | None = None,
    per_row: bool = True,
) -> Optimum:
    """Hyper-parameters of the largest bound, by L-BFGS or an optimiser of the user's.

    `move_points` are the scales of the features by which landmarks move too. An
    objective that is not one `per_row` is scikit-learn's, and so are the steps: the
    first ones are longer, and may lead to another optimum.
    """
    n, size, whiten = rows.source.n_rows, kernel.n_dims, False
    unit = n if per_row else 1
    S = np.asarray(host_rows(points)) if move_points is not None else points

    def unpack(x: np.ndarray) -> tuple[Any, Any]:
        changed = kernel.clone_with_theta(x[:size])
        if move_points is None:
            return changed, points
        return changed, x[size:].reshape(S.shape) * move_points

    def objective(x: np.ndarray, eval_gradient: bool = True) -> Any:
        nonlocal whiten
        try:
            found = evidence(*unpack(x), rows, gradient=eval_gradient, whiten=whiten)
        except (LinAlgError, ValueError, FloatingPointError):
            return (REJECTED, np.zeros_like(x)) if eval_gradient else REJECTED
        whiten = found.is_whitened
        if not eval_gradient:
            return -found.value / unit
        gradient = found.theta
        if move_points is not None:
            gradient = np.append(gradient, (found.points * move_points).ravel())
        if not np.isfinite(gradient).all():
            return REJECTED, np.zeros_like(x)
        return -found.value / unit, -gradient / unit

    bounds = kernel.bounds if size else np.empty((0, 2))
    start = np.clip(kernel.theta, *bounds.T)
    if optimizer is not None:
        theta, value = optimizer(objective, start, bounds=bounds)
        value = -float(value) * unit / n
        return Optimum(kernel.clone_with_theta(theta), value, points, rows)
    all_bounds: list[Any] = [tuple(pair) for pair in bounds]
    if move_points is not None:
        start = np.append(start, (S / move_points).ravel())
        all_bounds += [(None, None)] * S.size
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        result: Any = minimize(
            objective,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=all_bounds,
            options={
                "maxiter": max_steps,
                "maxfun": 2 * max_steps,
                "maxcor": 20,
                "ftol": VALUE_RTOL,
            },
        )
    learned, moved = unpack(result.x)
    return Optimum(learned, -float(result.fun) * unit / n, moved, rows)


def newton_steps(optimum: Optimum, points: Any, rows: ProcessRows, seed: int) -> Any:
    """The kernel after steps on all rows, or on many, as long as the bound rises.

    The curvature is that of rows that were optimised on, by differences of their
    gradient.
    """
    kernel, source = optimum.kernel, rows.source
    max_rows = MAX_FULL_PRODUCTS // arrays.count_rows(points) ** 2
    if source.n_rows > max_rows:
        numbers = sorted_row_sample(source.n_rows, max_rows, seed)
        rows = replace(rows, source=Subset(source, numbers))
    try:
        scale, directions = _curvature(optimum, seed)
        scale = scale * rows.source.n_rows
        before = evidence(kernel, points, rows)
        for _ in range(MAX_FULL_STEPS):
            step = directions @ ((directions.T @ before.theta) / scale)
            step *= min(1.0, MAX_FULL_STEP / max(np.abs(step).max(), 1e-300))
            theta = np.clip(kernel.theta + step, *kernel.bounds.T)
            changed = kernel.clone_with_theta(theta)
            after = evidence(changed, points, rows)
            if not after.value > before.value:
                break
            kernel, before = changed, after
    except (LinAlgError, ValueError):
        pass
    return kernel


def _curvature(optimum: Optimum, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, made positive, and eigenvectors of −∂²bound/∂theta² per row.

    With the first landmarks alone where there are many: it takes a gradient for each
    hyper-parameter, and only scales the steps.
    """
    kernel, points, part = optimum.kernel, optimum.points, optimum.rows
    if arrays.count_rows(points) > FIRST_LANDMARKS:
        points = points[:FIRST_LANDMARKS]
        part = part_of_rows(part, ROWS_PER_LANDMARK * FIRST_LANDMARKS, seed)

    def gradient(theta: np.ndarray, whiten: bool) -> np.ndarray:
        changed = kernel.clone_with_theta(theta)
        found = evidence(changed, points, part, whiten=whiten)
        return found.theta / part.source.n_rows

    theta, steps = kernel.theta, CURVATURE_STEP * np.eye(kernel.n_dims)
    start = evidence(kernel, points, part)
    at = start.theta / part.source.n_rows
    shifted = [gradient(theta + step, start.is_whitened) for step in steps]
    H = (at - np.array(shifted)) / CURVATURE_STEP
    values, vectors = np.linalg.eigh((H + H.T) / 2)
    values = np.abs(values)
    if not values.max() > 0:
        raise LinAlgError("the bound does not depend on theta")
    return np.maximum(values, MIN_CURVATURE * values.max()), vectors


#: Rows that hyper-parameters are learnt on: so many per landmark, at least and at most.
#: With `move_points`, three times as many.
ROWS_PER_LANDMARK, MIN_PART_ROWS, MAX_PART_ROWS = 8, 2000, 16_000
#: Rows of the exact process whose optimum is where the bound begins, with restarts.
START_ROWS = 400
#: Landmarks of the first round, at most, with fewer rows.
FIRST_LANDMARKS = 512
#: L-BFGS steps of the exact start, of each of the rounds, and with moving landmarks.
START_STEPS, ROUND_STEPS, MOVING_STEPS = 50, (30, 20), 60


def part_of_rows(rows: ProcessRows, size: int, seed: int) -> ProcessRows:
    """Some rows, drawn uniformly and in random order, held in memory."""
    source = rows.source
    numbers = Stream(seed, Purpose.LENGTH_SCALES).sample_rows(size, source.n_rows)
    numbers = numbers[source.weights_of(numbers) > 0]
    X = host_rows(fetch_rows(source, numbers, rows.engine))
    Y = arrays.to_host_float64(source.targets[numbers])
    weights = source.weights_of(numbers) if source.is_weighted else None
    part = as_source(X, weights).replace(targets=Y)
    return replace(rows, source=part, engine=rows.engine.local.quiet())


#: (kernel, rows) ↦ landmarks
Selection = Callable[[Any, ProcessRows], Any]


def learn_hyperparameters(
    kernel: Any,
    rows: ProcessRows,
    select: Selection,
    *,
    n_landmarks: int,
    optimizer: Optimizer | None,
    restarts: list[np.ndarray],
    move: bool,
    seed: int,
) -> Optimum:
    """Hyper-parameters by the bound on part of the rows; landmarks selected in between.

    The exact likelihood of a few rows has the optimum to begin with, if the bound there
    is no worse than at the initial values; `restarts` are further ones.
    """
    size = min(max(ROWS_PER_LANDMARK * n_landmarks, MIN_PART_ROWS), MAX_PART_ROWS)
    size = size * 3 if move else size
    part = part_of_rows(rows, max(size, 2 * n_landmarks), seed)
    if optimizer is not None:
        starts = [kernel, *(kernel.clone_with_theta(theta) for theta in restarts)]
        points = [select(start, part) for start in starts]
        found = [
            maximize_evidence(
                start, S, part, max_steps=0, optimizer=optimizer, per_row=False
            )
            for start, S in zip(starts, points, strict=True)
        ]
        return max(found, key=lambda optimum: optimum.value)
    best = _best_start(kernel, part, select, restarts)
    few = part
    if n_landmarks > FIRST_LANDMARKS:
        few = part_of_rows(part, ROWS_PER_LANDMARK * FIRST_LANDMARKS, seed)
    for on, steps, size in zip(
        (few, part), ROUND_STEPS, (FIRST_LANDMARKS, n_landmarks), strict=True
    ):
        points = select(best.kernel, on)[:size]
        best = maximize_evidence(best.kernel, points, on, max_steps=steps)
    if not move:
        return best
    return move_points(best.kernel, select(best.kernel, part), part)


def move_points(kernel: Any, points: Any, part: ProcessRows) -> Optimum:
    """Hyper-parameters and landmarks of the largest bound on rows in memory."""
    X = part.source.rows(0, part.source.n_rows)
    scale = np.asarray(X).std(axis=0)
    return maximize_evidence(
        kernel,
        points,
        part,
        max_steps=MOVING_STEPS,
        move_points=np.where(scale > 0, scale, 1.0),
    )


def _best_start(
    kernel: Any, part: ProcessRows, select: Selection, restarts: list[np.ndarray]
) -> Optimum:
    """The kernel as it is, or at the optimum of the exact likelihood of a few rows.

    Where the landmarks leave more than the noise, also with as much more noise: the
    bound can be so low without it that the next step takes the targets for noise.
    """
    few = part_of_rows(part, START_ROWS, 0)
    points = few.source.rows(0, few.source.n_rows)
    starts = [kernel, *(kernel.clone_with_theta(theta) for theta in restarts)]
    exact = max(
        (
            maximize_evidence(k, points, few, max_steps=START_STEPS, per_row=False)
            for k in starts
        ),
        key=lambda optimum: optimum.value,
    )
    candidates = []
    for start in (kernel, exact.kernel):
        try:
            points = select(start, part)
            found = evidence(start, points, part, gradient=False)
            candidates.append(Optimum(start, found.value, None, part))
            residual = found.sums.residual_trace / found.sums.n_rows
            if residual > 1:
                start = _with_more_noise(start, 1 + residual)
                found = evidence(start, points, part, gradient=False)
                candidates.append(Optimum(start, found.value, None, part))
        except (LinAlgError, ValueError):
            continue
    if not candidates:
        raise likelihood_error(kernel)
    return max(candidates, key=lambda optimum: optimum.value)


def _with_more_noise(kernel: Any, factor: float) -> Any:
    """The kernel with its white noise times a factor, within its bounds."""
    names = [
        h.name
        for h in kernel.hyperparameters
        if not h.fixed
        for _ in range(h.n_elements)
    ]
    is_noise = np.array([name.endswith("noise_level") for name in names], dtype=bool)
    theta = np.clip(kernel.theta + np.log(factor) * is_noise, *kernel.bounds.T)
    return kernel.clone_with_theta(theta)


def likelihood_error(kernel: Any) -> ValueError:
    """What to do where the likelihood is not a number."""
    return ValueError(
        f"The log marginal likelihood for kernel={kernel} is not a number: squares of "
        "X or y exceed float64, or the kernel is not positive semi-definite. "
        "Standardise X and y, or use another kernel."
    )


def fit_scale_and_noise(
    kernel: Any, points: Any, rows: ProcessRows, noise_ratio: float | None = None
) -> Any:
    """The kernel with the constant and the white noise of the largest bound.

    For kernels that have `scale_names`. One pass over the rows: both scale its sums,
    which are accurate for noise of about `noise_ratio` times the constant, by default
    that of the kernel.
    """
    params, names = kernel.get_params(), scale_names(kernel)
    assert names is not None
    bounds = []
    for name in (names.constant, names.noise):
        given = params[f"{name}_bounds"]
        bounds.append(np.log([params[name]] * 2 if isinstance(given, str) else given))
    low, high = np.transpose(bounds)
    constant = params[names.constant]
    if noise_ratio is None:
        noise_ratio = params[names.noise] / constant
    given = np.clip(np.log([constant, constant * noise_ratio]), low, high)
    constant, noise = np.exp(given).tolist()
    kernel = clone(kernel).set_params(**{names.constant: constant, names.noise: noise})
    sums = evidence(kernel, points, rows, gradient=False).sums
    values, vectors = eigh(sums.gram)
    fitted = ((vectors.T @ sums.cross) ** 2).sum(axis=1)
    # Directions of rounding would be scaled up as the noise goes to 0.
    kept = values > precision.EPS64 * len(values) * values[-1]
    values, fitted = values[kept], fitted[kept]
    n, t = sums.n_rows, sums.cross.shape[1]

    def loss(x: np.ndarray) -> float:
        """−bound/n, up to a constant."""
        scale, level = np.exp(x)
        gain = scale / constant
        inflation = (rows.alpha + noise) / (rows.alpha + level)
        ratio = gain * inflation
        squares = (
            sums.target_squares.sum() - ratio * (fitted / (1 + ratio * values)).sum()
        )
        log_determinant = np.log1p(ratio * values).sum() - n * np.log(inflation)
        trace = ratio * sums.residual_trace
        return (t * (log_determinant + trace) + inflation * squares) / (2 * n)

    starts = given + list(product(START_GRID, repeat=2))
    starts = np.clip(starts, low, high)
    found = minimize(
        loss,
        min(starts, key=loss),
        method="Nelder-Mead",
        bounds=np.column_stack([low, high]),
    )
    scale, level = np.exp(np.clip(found.x, low, high)).tolist()
    return kernel.set_params(**{names.constant: scale, names.noise: level})


def target_statistics(source: Source, engine: Engine) -> tuple[np.ndarray, np.ndarray]:
    """(t,): the weighted mean and deviation of targets; 1 for a constant one."""
    mean = mean_target(source, engine)
    weights = source.weights if source.is_weighted else None
    targets_only = RowNumbers(source.n_rows, weights).replace(targets=source.targets)
    in_memory = isinstance(source.targets, np.ndarray)
    engine = Threads(1) if in_memory else engine
    squares = engine.reduce(
        _target_squares_block, targets_only, (mean,), "deviation of targets"
    )
    std = np.sqrt(squares / source.total_weight)
    return mean, np.where(std > 10 * precision.EPS64 * np.abs(mean), std, 1.0)


def _target_squares_block(block: Block, mean: np.ndarray) -> np.ndarray:
    return np.asarray(block.weights) @ (np.asarray(block.targets) - mean) ** 2


@dataclass(frozen=True, eq=False)
class ProcessFit:
    """The posterior on landmarks, and what is known of the exact process."""

    ridge: RidgeFit
    posterior: Posterior  # not calibrated
    calibrated: Posterior  # by rows left out, for intervals
    evidence: float
    bounds: tuple[float, float]
    sums: EvidenceSums

    @property
    def kl_bound(self) -> float:
        """KL(this posterior ‖ the exact one) = log p(y) − bound is at most this."""
        return self.bounds[1] - self.bounds[0]


def fit_process(
    landmarks: Landmarks,
    rows: ProcessRows,
    noise: float,
    *,
    seed: int,
) -> ProcessFit:
    """The posterior with K̃ of these landmarks, in one pass.

    The weights of the source are those of the noise: row i has variance noise/wᵢ.
    """
    source, engine, t = rows.source, rows.engine, len(rows.mean)
    with blas_limit_for_size(len(landmarks)):
        mapping = FeatureMap.for_ridge(
            landmarks, source, noise, center=False, engine=engine
        )
        mapping = replace(mapping, target_shift=rows.mean)
        found = moments(mapping, source, engine)
        task = RidgeTask(source, np.full(t, noise), False, engine, seed)
        ridge = fit_from_moments(landmarks, mapping, found, task)
        ridge = replace(ridge, map=replace(ridge.map, intercept=rows.mean))
        sums = _evidence_sums(found, source, noise, rows.scale)
        residual_trace = trace_error_bound(mapping, found) / noise
        residual_trace = max(residual_trace, sums.residual_trace)
        norm = None
        if source.n_rows <= MAX_NORM_ROWS:
            shared = mapping.columns.widened(), mapping.root
            norm = engine.reduce(_norm_block, source, shared, "certificate") / noise
        bounds = evidence_bounds(sums, residual_trace, norm, found.gram_error / noise)
        value = collapsed_evidence(sums).value
    assert isinstance(ridge.posterior, Posterior)
    posterior = replace(ridge.posterior, scales=rows.scale**2)
    calibrated = posterior.calibrate(landmarks, source, ridge.map, engine, seed)
    return ProcessFit(ridge, posterior, calibrated, value, bounds, sums)


def _norm_block(block: Block, columns: CrossKernel, root: np.ndarray) -> float:
    """A bound on ‖W^½(K − K̃)W^½‖₂ of the rows of a tile.

    K − K̃ is semi-definite, so that the norm of all of it is at most the sum of those
    of its diagonal blocks. Of a block E it is at most tr E, ‖E²‖_F^½ and the largest
    sum of |E| over a row.
    """
    K = columns.kernel.gram(block.X)
    Z = arrays.to_host_float64(columns(block.X)) @ root
    w = np.sqrt(np.asarray(block.weights))
    trace = float(np.diagonal(K) @ w**2)
    E = Z @ Z.T
    np.subtract(K, E, out=E)
    del K  # a block of rows by rows is large beside one of rows by landmarks
    E *= w
    E *= w[:, None]
    rounding = precision.residual_rounding(np.float64, len(root)) * trace
    bounds = (
        float(np.trace(E)),
        float(np.sqrt(np.linalg.norm(E @ E))),
        float(np.abs(E).sum(axis=1).max()),
    )
    return max(min(bounds), 0.0) + rounding


def _evidence_sums(
    found: Moments, source: Source, noise: float, scale: np.ndarray
) -> EvidenceSums:
    weights = source.weights
    logs = float(np.log(weights[weights > 0]).sum()) if source.is_weighted else 0.0
    return EvidenceSums(
        found.gram / noise,
        found.cross / (noise * scale),
        found.target_squares / (noise * scale**2),
        found.kernel_trace / noise,
        logs - found.n_rows * np.log(noise),
        found.n_rows,
    )


@dataclass(frozen=True, eq=False)
class JointPosterior:
    """The posterior of several rows together.

    Of unit scale, their covariance is E + QQᵀ with E = K − BBᵀ + noise, what the
    landmarks do not explain, and B, Q of as many columns as landmarks.
    """

    landmarks: Landmarks
    posterior: Posterior
    white: float  # the variance of the noise

    @cached_property
    def _root(self) -> np.ndarray:
        """R with Q = K_S R."""
        alpha = float(self.posterior.alphas[0])
        return np.sqrt(alpha) * self.posterior.regularized_root(alpha)

    def __call__(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """E and Q of some rows."""
        X = arrays.widen(X)
        K = arrays.to_host_float64(self.landmarks.columns(wide=True)(X))
        B = K @ self.posterior.root
        E = self.landmarks.kernel.gram(X) - B @ B.T
        E[np.diag_indices_from(E)] += self.white
        return E, K @ self._root

    def draw(self, source: Source, n_draws: int, rng: Any) -> np.ndarray:
        """(n, n_draws) about 0: QQᵀ jointly for all rows, E for each block of them."""
        n = source.n_rows
        u = rng.standard_normal((self._root.shape[1], n_draws))
        draws = np.empty((n, n_draws))
        for start in range(0, n, DRAWN_ROWS):
            stop = min(start + DRAWN_ROWS, n)
            E, Q = self(source.rows(start, stop))
            draws[start:stop] = Q @ u + _draw(E, n_draws, rng)
        return draws


def _draw(covariance: np.ndarray, n_draws: int, rng: Any) -> np.ndarray:
    """(n, n_draws) with this covariance, which may be singular."""
    normal = rng.standard_normal((len(covariance), n_draws))
    try:
        return cholesky(covariance, lower=True) @ normal
    except LinAlgError:
        values, vectors = np.linalg.eigh(covariance)
        return (vectors * np.sqrt(np.maximum(values, 0.0))) @ normal
