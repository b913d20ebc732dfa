"""The evidence of a Gaussian process on landmarks: a bound, its gradient, and bounds of
the exact value.

With noise of variance 1/pᵢ in row i, features Z = K_S L⁻ᵀ and K̃ = ZZᵀ, the collapsed
bound (Titsias 2009) on the log marginal likelihood of each target is

    log N(y; 0, K̃ + P⁻¹) − tr P(K − K̃)/2,    P = diag(p),

a function of A = ZᵀPZ, b = ZᵀPy, yᵀPy and tr PK: one pass over the rows. A second pass
differentiates it by the kernel's hyper-parameters and by the landmarks.
`evidence_bounds` adds an upper bound on the exact value from the same sums.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.linalg.lapack import dpotri, dsygst

from .. import _arrays as arrays
from .. import _precision as precision
from ..engines import Engine
from ..engines.blas import blas_limit_for_size
from ..kernels.gaussian_process import noise_and_gradient, values_and_pullback
from ..sources import Block, Source
from .length_scales import times_triangle, triangular_inverse
from .metric import row_slices

#: Added to K_SS, in units of its mean diagonal; the next where a factor needs it.
JITTERS = (1e-10, 1e-8, 1e-6)


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
    B_inverse = symmetric(dpotri(R, lower=True)[0])
    coef = B_inverse @ b
    log_determinant = 2 * np.log(np.diag(R)).sum() - sums.log_precision
    fit = sums.target_squares - np.einsum("st,st->t", b, coef)  # yᵀ(K̃ + P⁻¹)⁻¹y
    value = t * (n * np.log(2 * np.pi) + log_determinant + sums.residual_trace)
    value += float(np.maximum(fit, 0.0).sum())
    by_gram = -(t * B_inverse + coef @ coef.T - t * np.eye(s)) / 2
    return EvidenceGradient(-value / 2, by_gram, coef)


def evidence_bounds(
    sums: EvidenceSums,
    residual_trace: float,
    norm: float | None = None,
    gram_error: float = 0.0,
) -> tuple[float, float]:
    """Lower and upper bounds on the exact log marginal likelihood.

    With E = P^½(K − K̃)P^½ and ρ ≥ ‖E‖₂: K̃ ⪯ K gives log|K + P⁻¹| ≥ log|K̃ + P⁻¹|, and
    P^½KP^½ ⪯ P^½K̃P^½ + ρI gives yᵀ(K + P⁻¹)⁻¹y ≥ (yᵀPy − bᵀ(A + (1 + ρ)I)⁻¹b)/(1 + ρ)
    (Titsias 2014). `residual_trace` is tr E, rounding included, and bounds ‖E‖₂ where
    no smaller `norm` is known. A is off by a few times `gram_error` at most; that moves
    its determinant and the quadratic forms.
    """
    t = len(sums.target_squares)
    value, _, coef = collapsed_evidence(sums)
    rounding = 4 * gram_error * (t + float(np.vdot(coef, coef)))
    rounding += 10 * precision.EPS64 * (sums.target_squares.sum() + abs(value))
    lower = value - (t * (residual_trace - sums.residual_trace) + rounding) / 2
    rho = residual_trace if norm is None else min(norm, residual_trace)
    s, b = len(sums.gram), sums.cross
    R = cholesky(sums.gram + np.eye(s), lower=True)
    inflated = sums.gram + (1 + rho) * np.eye(s)
    fitted = np.einsum("st,st->t", b, np.linalg.solve(inflated, b))
    fit = np.maximum(sums.target_squares - fitted, 0.0) / (1 + rho)
    log_determinant = 2 * np.log(np.diag(R)).sum() - sums.log_precision
    constant = t * (sums.n_rows * np.log(2 * np.pi) + log_determinant)
    upper = -(constant + float(fit.sum()) - rounding) / 2
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


def host_rows(X: Any) -> Any:
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
    X = host_rows(block.X)
    Y, p, _ = shared.rows.targets_and_precision(block, shared.noise)
    Z, diagonal = np.empty((len(p), len(shared.root))), np.empty(len(p))
    for rows in row_slices(len(p)):
        C, _ = values_and_pullback(shared.kernel, X[rows], shared.points)
        if shared.whiten:
            times_triangle(C, shared.root, out=Z[rows])
        else:
            Z[rows] = C
        diagonal[rows], _ = values_and_pullback(shared.kernel, X[rows])
    cross = Z.T @ (p[:, None] * Y)
    Z *= np.sqrt(p)[:, None]
    positive = p > 0
    logs = float(np.log(p[positive]).sum())
    squares, n_rows = p @ Y**2, int(positive.sum())
    return Z.T @ Z, cross, squares, float(p @ diagonal), logs, n_rows


def _gradient_block(
    block: Block, shared: TileArguments, *gradient: np.ndarray
) -> tuple:
    """Derivatives by theta, by the points and by the white noise."""
    X = host_rows(block.X)
    Y, p, by_noise = shared.rows.targets_and_precision(block, shared.noise)
    parts = [
        _gradient_rows(X[rows], Y[rows], p[rows], by_noise[rows], shared, *gradient)
        for rows in row_slices(len(p))
    ]
    return tuple(sum(terms) for terms in zip(*parts, strict=True))


def _gradient_rows(
    X: Any,
    Y: np.ndarray,
    p: np.ndarray,
    by_noise: np.ndarray,
    shared: TileArguments,
    by_gram: np.ndarray,
    by_cross: np.ndarray,
) -> tuple:
    """What some rows add: few, so that their kernel values stay in the cache."""
    C, pullback = values_and_pullback(shared.kernel, X, shared.points)
    diagonal, diagonal_pullback = values_and_pullback(shared.kernel, X)
    Z = times_triangle(C, shared.root) if shared.whiten else C
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
        G = times_triangle(G, shared.root.T, lower=True)
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
    is_whitened: bool  # features were whitened row by row, as rounding demanded


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def evidence(
    kernel: Any,
    points: Any,
    rows: ProcessRows,
    *,
    gradient: bool = True,
    whiten: bool = False,
) -> Evidence:
    """The collapsed bound on all rows: one pass, and one more for the gradient.

    Where rounding demands it, features are whitened row by row, in another pass; with
    `whiten` they are from the beginning, as similar hyper-parameters demanded it.
    """
    with blas_limit_for_size(arrays.count_rows(points)):
        return _evidence(kernel, points, rows, gradient, whiten)


def _evidence(
    kernel: Any, points: Any, rows: ProcessRows, gradient: bool, whiten: bool
) -> Evidence:
    S = host_rows(points)
    K, pullback = values_and_pullback(kernel, S, S)
    L = _jittered_factor((K + K.T) / 2)
    L_inverse = triangular_inverse(L)
    root = L_inverse.T
    noise, noise_gradient = noise_and_gradient(kernel)
    shared = TileArguments(rows.without_source(), kernel, S, root, noise, whiten)
    total = rows.engine.reduce(_sums_block, rows.source, (shared,), "evidence")
    if not whiten:
        # (K_SᵀPK_S is rounded by more than the noise where K_SS is nearly singular.)
        squares, inverse_diagonal = np.diagonal(total[0]), np.vecdot(root, root)
        error = precision.unwhitened_gram_error(squares, inverse_diagonal)
        if not precision.is_unwhitened_gram_accurate(error, 1.0):
            return _evidence(kernel, points, rows, gradient, True)
        gram = symmetric(dsygst(total[0], L, lower=True)[0])
        cross = solve_triangular(L, total[1], lower=True)
        total = gram, cross, *total[2:]
    sums = EvidenceSums(*total)
    bound = collapsed_evidence(sums)
    if not np.isfinite(bound.value):
        raise LinAlgError("the bound is not finite")
    if not gradient:
        return Evidence(bound.value, np.empty(0), np.empty(0), sums, whiten)
    by_gram, by_cross = bound.gram, bound.cross
    if not whiten:
        by_gram, by_cross = unwhiten(by_gram, L_inverse), root @ by_cross
    by_theta, by_points, by_noise = rows.engine.reduce(
        _gradient_block,
        rows.source,
        (shared, by_gram, by_cross),
        "gradient of the evidence",
    )
    # The bound is a function of K_SS + K_SᵀPK_S, of K_SᵀPy, of log|K_SS| and of
    # tr K_SS⁻¹K_SᵀPK_S: by K_SS it changes as by A, but for the trace.
    t = len(sums.target_squares)
    by_K = unwhiten(bound.gram - t / 2 * sums.gram, L_inverse)
    landmarks_theta, landmarks_points = pullback(by_K)
    by_theta = by_theta + landmarks_theta + by_noise * noise_gradient
    if landmarks_points is not None:
        by_points = by_points + 2 * landmarks_points
    return Evidence(bound.value, by_theta, by_points, sums, whiten)


def _jittered_factor(K: np.ndarray) -> np.ndarray:
    """L with LLᵀ = K, and as little added to its diagonal as it takes."""
    scale = float(np.mean(np.diagonal(K)))
    if not np.isfinite(K).all():
        raise LinAlgError("the kernel matrix of the landmarks is not finite")
    for jitter in JITTERS:
        try:
            return cholesky(K + jitter * scale * np.eye(len(K)), lower=True)
        except LinAlgError:
            continue
    raise LinAlgError("the kernel matrix of the landmarks is not definite")


def unwhiten(M: np.ndarray, L_inverse: np.ndarray) -> np.ndarray:
    """L⁻ᵀML⁻¹ of a symmetric matrix."""
    return symmetric(dsygst(M, L_inverse, itype=3, lower=True)[0])


def symmetric(lower: np.ndarray) -> np.ndarray:
    """The symmetric matrix of a lower triangle; what is above it does not count."""
    full = np.tril(lower)
    full += np.tril(lower, -1).T
    return full
