"""Gaussian-process regression on landmarks: the evidence, its gradient, certificates.

With noise of variance 1/pᵢ in row i, features Z = K_S L⁻ᵀ and K̃ = ZZᵀ, the collapsed
bound (Titsias 2009) on the log marginal likelihood of each target is

    log N(y; 0, K̃ + P⁻¹) − tr P(K − K̃)/2,    P = diag(p),

a function of A = ZᵀPZ, b = ZᵀPy, yᵀPy and tr PK: one pass over the rows. A second pass
differentiates it by the kernel's hyper-parameters and by the landmarks.
`evidence_bounds` adds an upper bound on the exact value from the same sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from scipy.optimize import minimize

from .. import _arrays as arrays
from .. import _precision as precision
from .._random import Purpose, uniform_row_sample
from ..engines import Engine, Threads
from ..engines.blas import blas_limit_for_size
from ..kernels.gaussian_process import noise_and_gradient, values_and_pullback
from ..landmarks import Landmarks
from ..linalg.cross_kernel import CrossKernel, fetch_rows
from ..linalg.features import FeatureMap, mean_target
from ..linalg.moments import Moments, moments, trace_error_bound
from ..sources import Block, RowNumbers, Source, as_source
from .length_scales import triangular_inverse
from .posterior import Posterior
from .ridge import RidgeFit, RidgeTask
from .ridge_solvers import fit_from_moments

#: Added to K_SS, in units of its mean diagonal; the next where a factor needs it.
JITTERS = (1e-10, 1e-8, 1e-6)
#: The value where the bound is not a number: a step to there is rejected.
REJECTED = 1e10
#: A step that changes the bound by less than this share of it is the last.
VALUE_RTOL = 1e-7
#: Rows up to which the norm of K − K̃ is bounded tile by tile, which takes as long as a
#: pass with 1024 landmarks; of more rows the trace is all that is known.
MAX_NORM_ROWS = 100_000
#: Newton steps on all rows, one of more than `MAX_NORM_ROWS`; the largest of them, in
#: log-parameters; the step of differences for the curvature, and its least share.
MAX_FULL_STEPS, MAX_FULL_STEP = 3, 1.0
CURVATURE_STEP, MIN_CURVATURE = 1e-3, 1e-3


class EvidenceSums(NamedTuple):
    """Sums over all rows from which the bound follows, p the precision of the noise."""

    gram: np.ndarray  # (s, s) A = Σ p zzᵀ
    cross: np.ndarray  # (s, t) b = Σ p zyᵀ
    target_squares: np.ndarray  # (t,) Σ py²
    kernel_trace: float  # Σ p k(x, x)
    log_precision: float  # Σ log p
    n_rows: int  # rows with p > 0

    @property
    def residual_trace(self) -> float:
        """tr P(K − K̃)."""
        return max(self.kernel_trace - float(np.trace(self.gram)), 0.0)


class EvidenceGradient(NamedTuple):
    """The collapsed bound and its derivatives by A and b; (I + A)⁻¹b."""

    value: float
    gram: np.ndarray
    cross: np.ndarray


def collapsed_evidence(sums: EvidenceSums) -> EvidenceGradient:
    """The bound, summed over targets."""
    A, b, n = sums.gram, sums.cross, sums.n_rows
    s, t = b.shape
    R = cholesky(A + np.eye(s), lower=True)
    R_inverse = triangular_inverse(R)
    B_inverse = R_inverse.T @ R_inverse
    coef = B_inverse @ b
    log_determinant = 2 * np.log(np.diag(R)).sum() - sums.log_precision
    fit = sums.target_squares - np.einsum("st,st->t", b, coef)  # yᵀ(K̃ + P⁻¹)⁻¹y
    value = t * (n * np.log(2 * np.pi) + log_determinant + sums.residual_trace)
    value += float(np.maximum(fit, 0.0).sum())
    by_gram = -(t * B_inverse + coef @ coef.T - t * np.eye(s)) / 2
    return EvidenceGradient(-value / 2, by_gram, coef)


def evidence_bounds(
    sums: EvidenceSums, residual_trace: float, norm: float | None = None
) -> tuple[float, float]:
    """Lower and upper bounds on the exact log marginal likelihood.

    With E = P^½(K − K̃)P^½ and ρ ≥ ‖E‖₂: K̃ ⪯ K gives log|K + P⁻¹| ≥ log|K̃ + P⁻¹|, and
    P^½KP^½ ⪯ P^½K̃P^½ + ρI gives yᵀ(K + P⁻¹)⁻¹y ≥ (yᵀPy − bᵀ(A + (1 + ρ)I)⁻¹b)/(1 + ρ)
    (Titsias 2014). `residual_trace` is tr E, rounding included, and bounds ‖E‖₂ where
    no smaller `norm` is known.
    """
    t = len(sums.target_squares)
    value = collapsed_evidence(sums).value
    lower = value - t * (residual_trace - sums.residual_trace) / 2
    rho = residual_trace if norm is None else min(norm, residual_trace)
    s, b = len(sums.gram), sums.cross
    R = cholesky(sums.gram + np.eye(s), lower=True)
    inflated = sums.gram + (1 + rho) * np.eye(s)
    fitted = np.einsum("st,st->t", b, np.linalg.solve(inflated, b))
    fit = np.maximum(sums.target_squares - fitted, 0.0) / (1 + rho)
    log_determinant = 2 * np.log(np.diag(R)).sum() - sums.log_precision
    constant = t * (sums.n_rows * np.log(2 * np.pi) + log_determinant)
    upper = -(constant + float(fit.sum())) / 2
    return float(lower), float(max(upper, lower))


@dataclass(frozen=True, eq=False)
class ProcessRows:
    """Rows with targets, and how their noise and scale are read."""

    source: Source  # targets; with `has_alpha` the last column is alpha of each row
    engine: Engine
    mean: np.ndarray  # (t,) subtracted from the targets
    scale: np.ndarray  # (t,) what they are divided by
    alpha: float = 0.0
    has_alpha: bool = False

    def targets_and_precision(
        self, block: Block, noise: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Standardised targets, p, and ∂p by the white noise."""
        given = arrays.to_host_float64(block.targets)
        Y, alpha = given[:, : len(self.mean)], self.alpha
        variance = (given[:, -1] if self.has_alpha else alpha) + noise
        w = np.asarray(block.weights)
        p = w / variance
        return (Y - self.mean) / self.scale, p, -p / variance

    def without_source(self) -> ProcessRows:
        """What every tile needs besides its rows."""
        return replace(self, source=None, engine=None)  # type: ignore[arg-type]


def _host(X: Any) -> Any:
    """Rows as scikit-learn's kernels take them: dense float64, or objects."""
    if hasattr(X, "toarray"):
        X = X.toarray()
    return arrays.to_host_float64(X) if arrays.is_array(X) else X


class TileArguments(NamedTuple):
    """What a pass of the bound needs, the same for all tiles."""

    rows: ProcessRows
    kernel: Any  # scikit-learn's
    points: Any
    root: np.ndarray  # (s, s) L⁻ᵀ
    noise: float
    whiten: bool  # Z in every tile, instead of K_S there and L⁻ᵀ after the sum

    @property
    def evaluations_per_row(self) -> int:
        """Kernel values of each row, for progress."""
        return arrays.count_rows(self.points)


def _sums_block(block: Block, shared: TileArguments) -> tuple:
    X = _host(block.X)
    Y, p, _ = shared.rows.targets_and_precision(block, shared.noise)
    C, _ = values_and_pullback(shared.kernel, X, shared.points)
    diagonal, _ = values_and_pullback(shared.kernel, X)
    Z = C @ shared.root if shared.whiten else C
    weighted = Z * np.sqrt(p)[:, None]
    gram = weighted.T @ weighted
    positive = p > 0
    logs = float(np.log(p[positive]).sum())
    squares = p @ Y**2
    return (
        gram,
        Z.T @ (p[:, None] * Y),
        squares,
        float(p @ diagonal),
        logs,
        int(positive.sum()),
    )


def _gradient_block(
    block: Block, shared: TileArguments, by_gram: np.ndarray, by_cross: np.ndarray
) -> tuple:
    """Derivatives by theta, by the points and by the white noise."""
    X = _host(block.X)
    Y, p, by_noise = shared.rows.targets_and_precision(block, shared.noise)
    C, pullback = values_and_pullback(shared.kernel, X, shared.points)
    diagonal, diagonal_pullback = values_and_pullback(shared.kernel, X)
    Z = C @ shared.root if shared.whiten else C
    G = Z @ by_gram
    linear = Z @ by_cross
    t, positive = Y.shape[1], p > 0
    by_p = np.einsum("ij,ij->i", G, Z) + np.einsum("it,it->i", linear, Y)
    by_p -= (Y**2).sum(axis=1) / 2 + t * diagonal / 2
    by_p[positive] += t / (2 * p[positive])
    G *= 2
    G += Y @ by_cross.T
    G *= p[:, None]
    if shared.whiten:
        G = G @ shared.root.T
    by_theta, by_points = pullback(G)
    by_theta = by_theta + diagonal_pullback(-t * p / 2)[0]
    if by_points is None:
        by_points = np.zeros(0)
    return by_theta, by_points, float(by_p[positive] @ by_noise[positive])


class Evidence(NamedTuple):
    """The collapsed bound at some hyper-parameters, and its gradient."""

    value: float
    theta: np.ndarray  # by theta
    points: np.ndarray  # by the landmarks; of size 0 where it is not known
    sums: EvidenceSums


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def evidence(
    kernel: Any, points: Any, rows: ProcessRows, *, gradient: bool = True
) -> Evidence:
    """The collapsed bound on all rows: one pass, and one more for the gradient."""
    S = _host(points)
    K, pullback = values_and_pullback(kernel, S, S)
    root = _inverse_root((K + K.T) / 2)
    noise, noise_gradient = noise_and_gradient(kernel)
    shared = TileArguments(rows.without_source(), kernel, S, root, noise, False)
    total = rows.engine.reduce(_sums_block, rows.source, (shared,), "evidence")
    # (K_SᵀPK_S is rounded by more than the noise where K_SS is nearly singular.)
    inverse_diagonal = np.vecdot(root, root)
    error = precision.unwhitened_gram_error(np.diagonal(total[0]), inverse_diagonal)
    if precision.is_unwhitened_gram_accurate(error, 1.0):
        sums = EvidenceSums(root.T @ total[0] @ root, root.T @ total[1], *total[2:])
    else:
        shared = shared._replace(whiten=True)
        total = rows.engine.reduce(_sums_block, rows.source, (shared,), "evidence")
        sums = EvidenceSums(*total)
    bound = collapsed_evidence(sums)
    if not np.isfinite(bound.value):
        raise LinAlgError("the bound is not finite")
    if not gradient:
        return Evidence(bound.value, np.empty(0), np.empty(0), sums)
    by_gram, by_cross = bound.gram, bound.cross
    if not shared.whiten:
        by_gram, by_cross = root @ by_gram @ root.T, root @ by_cross
    by_theta, by_points, by_noise = rows.engine.reduce(
        _gradient_block,
        rows.source,
        (shared, by_gram, by_cross),
        "gradient of the evidence",
    )
    # Through L to K_SS: A changes by −(EA + AE)/2 and b by −Eb/2, E = L⁻¹ dK_SS L⁻ᵀ.
    by_E = bound.gram @ sums.gram + bound.cross @ sums.cross.T / 2
    by_K = -root @ (by_E + by_E.T) @ root.T / 2
    landmarks_theta, landmarks_points = pullback(by_K)
    by_theta = by_theta + landmarks_theta + by_noise * noise_gradient
    if landmarks_points is not None:
        by_points = by_points + 2 * landmarks_points
    return Evidence(bound.value, by_theta, by_points, sums)


def _inverse_root(K: np.ndarray) -> np.ndarray:
    """L⁻ᵀ with LLᵀ = K, and as little added to its diagonal as it takes."""
    scale = float(np.mean(np.diagonal(K)))
    if not np.isfinite(K).all():
        raise LinAlgError("the kernel matrix of the landmarks is not finite")
    for jitter in JITTERS:
        try:
            L = cholesky(K + jitter * scale * np.eye(len(K)), lower=True)
            return triangular_inverse(L).T
        except LinAlgError:
            continue
    raise LinAlgError("the kernel matrix of the landmarks is not definite")


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
) -> Optimum:
    """Hyper-parameters of the largest bound, by L-BFGS or an optimiser of the user's.

    `move_points` are the scales of the features by which landmarks move too.
    """
    n, size = rows.source.n_rows, kernel.n_dims
    S = np.asarray(_host(points)) if move_points is not None else points

    def unpack(x: np.ndarray) -> tuple[Any, Any]:
        changed = kernel.clone_with_theta(x[:size])
        if move_points is None:
            return changed, points
        return changed, x[size:].reshape(S.shape) * move_points

    def objective(x: np.ndarray, eval_gradient: bool = True) -> Any:
        try:
            found = evidence(*unpack(x), rows, gradient=eval_gradient)
        except (LinAlgError, ValueError, FloatingPointError):
            return (REJECTED, np.zeros_like(x)) if eval_gradient else REJECTED
        if not eval_gradient:
            return -found.value / n
        gradient = found.theta
        if move_points is not None:
            gradient = np.append(gradient, (found.points * move_points).ravel())
        if not np.isfinite(gradient).all():
            return REJECTED, np.zeros_like(x)
        return -found.value / n, -gradient / n

    bounds = kernel.bounds if size else np.empty((0, 2))
    start = np.clip(kernel.theta, *bounds.T)
    if optimizer is not None:
        theta, value = optimizer(objective, start, bounds=bounds)
        return Optimum(kernel.clone_with_theta(theta), -float(value), points, rows)
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
    return Optimum(learned, -float(result.fun), moved, rows)


def newton_steps(optimum: Optimum, points: Any, rows: ProcessRows) -> Any:
    """The kernel after steps on all rows, as long as the bound rises by them.

    The curvature is that of the rows that were optimised on, by differences of their
    gradient.
    """
    kernel, n = optimum.kernel, rows.source.n_rows
    try:
        scale, directions = _curvature(optimum)
        before = evidence(kernel, points, rows)
        for _ in range(MAX_FULL_STEPS if n <= MAX_NORM_ROWS else 1):
            step = directions @ ((directions.T @ before.theta) / (n * scale))
            step *= min(1.0, MAX_FULL_STEP / max(np.abs(step).max(), 1e-300))
            theta = np.clip(kernel.theta + step, *kernel.bounds.T)
            changed = kernel.clone_with_theta(theta)
            after = evidence(changed, points, rows, gradient=n <= MAX_NORM_ROWS)
            if not after.value > before.value:
                break
            kernel, before = changed, after
    except (LinAlgError, ValueError):
        pass
    return kernel


def _curvature(optimum: Optimum) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, made positive, and eigenvectors of −∂²bound/∂theta² per row."""
    kernel, part = optimum.kernel, optimum.rows

    def gradient(theta: np.ndarray) -> np.ndarray:
        changed = kernel.clone_with_theta(theta)
        return evidence(changed, optimum.points, part).theta / part.source.n_rows

    theta, at = kernel.theta, gradient(kernel.theta)
    steps = CURVATURE_STEP * np.eye(len(theta))
    H = np.array([(at - gradient(theta + step)) / CURVATURE_STEP for step in steps])
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
#: L-BFGS steps of the exact start, of each of the rounds, and with moving landmarks.
START_STEPS, ROUND_STEPS, MOVING_STEPS = 50, (30, 20), 60


def part_of_rows(rows: ProcessRows, size: int, seed: int) -> ProcessRows:
    """Some rows, drawn uniformly and in random order, held in memory."""
    source = rows.source
    numbers = uniform_row_sample(seed, Purpose.LENGTH_SCALES, source.n_rows, size)
    numbers = numbers[source.weights_of(numbers) > 0]
    X = _host(fetch_rows(source, numbers, rows.engine))
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
    size = ROWS_PER_LANDMARK * n_landmarks * (3 if move else 1)
    size = min(max(size, MIN_PART_ROWS), MAX_PART_ROWS * (3 if move else 1))
    part = part_of_rows(rows, max(size, 2 * n_landmarks), seed)
    if optimizer is not None:
        starts = [kernel, *(kernel.clone_with_theta(theta) for theta in restarts)]
        points = [select(start, part) for start in starts]
        found = [
            maximize_evidence(start, S, part, max_steps=0, optimizer=optimizer)
            for start, S in zip(starts, points, strict=True)
        ]
        return max(found, key=lambda optimum: optimum.value)
    best = _best_start(kernel, part, select, restarts)
    for steps in ROUND_STEPS:
        points = select(best.kernel, part)
        best = maximize_evidence(best.kernel, points, part, max_steps=steps)
    if not move:
        return best
    X = part.source.rows(0, part.source.n_rows)
    scale = np.asarray(X).std(axis=0)
    return maximize_evidence(
        best.kernel,
        select(best.kernel, part),
        part,
        max_steps=MOVING_STEPS,
        move_points=np.where(scale > 0, scale, 1.0),
    )


def _best_start(
    kernel: Any, part: ProcessRows, select: Selection, restarts: list[np.ndarray]
) -> Optimum:
    """The kernel as it is, or at the optimum of the exact likelihood of a few rows."""
    few = part_of_rows(part, START_ROWS, 0)
    points = few.source.rows(0, few.source.n_rows)
    starts = [kernel, *(kernel.clone_with_theta(theta) for theta in restarts)]
    exact = max(
        (maximize_evidence(k, points, few, max_steps=START_STEPS) for k in starts),
        key=lambda optimum: optimum.value,
    )
    candidates = []
    for start in (kernel, exact.kernel):
        try:
            found = evidence(start, select(start, part), part, gradient=False)
            candidates.append(Optimum(start, found.value, None, part))
        except (LinAlgError, ValueError):
            continue
    return max(candidates, key=lambda optimum: optimum.value, default=exact)


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
    return mean, np.where(std > 10 * precision.EPS64, std, 1.0)


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
        bounds = evidence_bounds(sums, residual_trace, norm)
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
