"""Length scales learned by the marginal likelihood of the landmark Gaussian process.

On at most 1000 rows and 250 landmarks; one shared gamma or one per feature (ARD);
never worse there than the starting values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_solve, cholesky
from scipy.linalg.lapack import dtrtri
from scipy.optimize import minimize

from .. import _arrays as arrays
from .._random import Purpose, Stream
from ..engines import Engine
from ..engines.blas import blas_limit_for_size
from ..kernels import Kernel
from ..kernels.names import gamma_of, with_gamma
from ..kernels.stationary import WidthGradient, width_exponent
from ..linalg.cross_kernel import fetch_rows
from ..samplers.weighted_sampling import KeyedSampler
from ..sources import Source
from ..sources.base import weighted_mean

#: Rows used at most, and landmarks among them.
MAX_SUBSET_ROWS, MAX_SUBSET_LANDMARKS = 1000, 250
#: Added to the landmarks' own matrix, of diagonal 1, where rows repeat each other.
JITTER = 1e-9
#: The intercept's prior deviation, in those of the function: wide for centred targets.
INTERCEPT_STD = 10.0
#: A target that varies by no more than this share of itself is constant.
CONSTANT_TARGET_RTOL = 1e-10
#: Iterations at most, with one or two evaluations each; and how often they start anew.
MAX_ITERATIONS, MAX_RESTARTS = 20, 2
#: The iterations end where one lowers −log p by less than this share. L-BFGS's own 2e-9
#: takes a quarter to a third more evaluations, and changes −log p of a row by less than
#: 1e-4 (elevators, kin40k and protein).
MIN_LIKELIHOOD_GAIN = 1e-5
#: The range of alpha, for kernels of k(x, x) = 1, and its initial values.
MIN_ALPHA, MAX_ALPHA = 1e-6, 1e4
INITIAL_ALPHAS = (1e-3, 1e-1, 1e1)
#: A width changes by no more than this factor, up or down: where targets are noise, no
#: width is long enough. An irrelevant feature may vanish.
MAX_GAMMA_RATIO, MAX_ARD_GAMMA_RATIO = 1e3, 1e5
#: Columns of a triangle that are multiplied together.
TRIANGLE_BLOCK = 128
#: Significant digits of a width: more depend on rounding.
GAMMA_DIGITS = 4


@dataclass(frozen=True, eq=False)
class TrainingSubset:
    """Some rows with standardised targets, the first of them landmarks."""

    X: Any  # float64 and centred, or CSR
    targets: np.ndarray  # (m, t), of deviation 1
    weights: np.ndarray  # (m,), > 0, of mean 1
    intercept_std: float  # 0 without an intercept
    n_landmarks: int
    center: Any = 0.0  # what was subtracted from the rows
    mean_weight: float = 1.0  # what the weights were divided by
    row_numbers: np.ndarray | None = None  # in the source

    @classmethod
    def from_source(
        cls,
        source: Source,
        engine: Engine,
        *,
        size: int,
        intercept: bool,
        dense: bool,
        seed: int,
        max_rows: int = MAX_SUBSET_ROWS,
    ) -> TrainingSubset:
        """Rows drawn uniformly from a source with targets, the first `size` landmarks.

        They are in random order.
        """
        n, stream = source.n_rows, Stream(seed, Purpose.LENGTH_SCALES)
        if source.is_weighted:  # rows of weight 0 are as if they were not there
            counts = (source.weights > 0).astype(np.float64)
            sampler = KeyedSampler(stream, max_rows=max_rows)
            rows = sampler.sample(counts).sorted_by_key().numbers
        else:
            rows = stream.sample_rows(max_rows, n)
        Y = np.asarray(arrays.to_host(source.targets[rows]), np.float64)
        weights = source.weights_of(rows)
        mean_weight = float(weights.mean())
        w = weights / mean_weight
        X, center = fetch_rows(source, rows, engine), 0.0
        if sp.issparse(X) and not dense:
            X = X.astype(np.float64)
        else:
            X = arrays.to_host_float64(X)
            center = np.median(X, axis=0)
            X = X - center
        return cls(
            X,
            standardize_targets(Y, w, intercept=intercept),
            w,
            INTERCEPT_STD if intercept else 0.0,
            min(size, len(rows)),
            center,
            mean_weight,
            rows,
        )

    def __getitem__(self, rows: slice) -> TrainingSubset:
        """Some of the rows, with their landmarks."""
        return replace(
            self, X=self.X[rows], targets=self.targets[rows], weights=self.weights[rows]
        )


def standardize_targets(Y: np.ndarray, w: np.ndarray, *, intercept: bool) -> np.ndarray:
    """Targets of deviation 1, about their mean or 0; constant ones are dropped."""
    max_abs = np.abs(Y).max(axis=0, initial=0.0)
    # Divided first, so that no square overflows.
    Y = Y / np.where(max_abs > 0, max_abs, 1.0)
    if intercept:
        Y = Y - weighted_mean(w, Y)
    std = np.sqrt(weighted_mean(w, Y**2))
    varies = std > CONSTANT_TARGET_RTOL
    return Y[:, varies] / std[varies]


class LandmarkGP:
    """The features of all rows, which do not depend on alpha."""

    def __init__(self, C: np.ndarray, subset: TrainingSubset) -> None:
        """From the columns (m, s) of the landmarks, the first s of the rows."""
        (m, s), w = C.shape, subset.weights[:, None]
        if not np.isfinite(C).all():
            raise LinAlgError("not finite")
        self.subset = subset
        # (s, s) L⁻¹ of the landmarks
        self.M = triangular_inverse(cholesky(C[:s] + JITTER * np.eye(s), lower=True))
        self.Z = Z = np.empty((m, s + 1))  # the last column the intercept's
        np.matmul(C, self.M.T, out=Z[:, :s])
        Z[:, s] = subset.intercept_std
        self.gram = Z.T @ (w * Z)  # ZᵀWZ

    def fit(self, alpha: float) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """−log p per row and target, up to a constant; R, a = Gy and yᵀGy.

        RRᵀ = B = ZᵀWZ + αI and G = (K̃ + αW⁻¹)⁻¹.
        """
        Y, w, Z = self.subset.targets, self.subset.weights[:, None], self.Z
        (m, t), s = Y.shape, len(self.M)
        B = self.gram.copy()
        B.flat[:: s + 2] += alpha
        R = cholesky(B, lower=True)
        coef = cho_solve((R, True), Z.T @ (w * Y))
        residual = Y - Z @ coef
        # yᵀGy is a sum of squares, so that nothing cancels.
        squares = (w * residual**2).sum(axis=0) / alpha + (coef**2).sum(axis=0)
        log_determinant = 2 * np.log(np.diag(R)).sum() + (m - s - 1) * np.log(alpha)
        value = (t * log_determinant + m * np.log(squares).sum()) / (2 * m * t)
        return float(value), R, w * residual / alpha, squares

    def value_and_gradient(self, alpha: float) -> tuple[float, np.ndarray, float]:
        """−log p, its gradient by the columns C and that by log alpha."""
        value, R, a, squares = self.fit(alpha)
        M, Z, w = self.M, self.Z, self.subset.weights[:, None]
        (m, t), s = a.shape, len(M)
        root = triangular_inverse(R)
        inverse = root.T @ root  # B⁻¹
        # E = ∂/∂K̃ = (tG − mΣ aaᵀ/yᵀa)/(2mt), with GZ = WZB⁻¹ and ZᵀGZ = I − αB⁻¹.
        aZ = a.T @ Z[:, :s]
        ZEZ = (np.eye(s) - alpha * inverse[:s, :s]) / (2 * m)
        ZEZ -= (aZ / squares[:, None]).T @ aZ / (2 * t)
        grad_columns = Z @ (inverse[:, :s] @ M)  # 2EZL⁻¹
        grad_columns *= w / m
        grad_columns -= (a / squares) @ (aZ @ M) / t
        grad_columns[:s] -= M.T @ ZEZ @ M
        residual_dof = m - s - 1 + alpha * np.trace(inverse)  # tr αGW⁻¹
        noise = alpha * (a**2 / (w * squares)).sum()
        grad_log_alpha = residual_dof / (2 * m) - noise / (2 * t)
        return value, grad_columns, float(grad_log_alpha)


def triangular_inverse(L: np.ndarray) -> np.ndarray:
    """L⁻¹ of a lower triangle."""
    inverse, _ = dtrtri(L, lower=True)
    return inverse


def times_triangle(
    A: np.ndarray, T: np.ndarray, out: np.ndarray | None = None, *, lower: bool = False
) -> np.ndarray:
    """AT of an upper or lower triangle, without most of the products with its zeros."""
    out = np.empty_like(A) if out is None else out
    for i in range(0, len(T), TRIANGLE_BLOCK):
        columns = slice(i, i + TRIANGLE_BLOCK)
        rows = slice(i, None) if lower else slice(0, i + TRIANGLE_BLOCK)
        np.matmul(A[:, rows], T[rows, columns], out=out[:, columns])
    return out


def length_scale_objective(
    theta: np.ndarray, pairs: WidthGradient, subset: TrainingSubset
) -> tuple[float, np.ndarray]:
    """−log p and its gradient at theta = (log t, log alpha).

    Widths are t times those of the kernel, with one t for all features or one for
    each. Several have a prior: log t has deviation 1 about its mean. Without it 30
    widths fit the noise of 400 rows.
    """
    C, pullback = pairs.values_and_gradient(np.exp(theta[:-1]))
    alpha, m = float(np.exp(theta[-1])), len(C)
    value, grad_columns, grad_log_alpha = LandmarkGP(C, subset).value_and_gradient(
        alpha
    )
    grad_t = pullback(grad_columns)
    if pairs.per_feature:
        deviation = theta[:-1] - theta[:-1].mean()
        value += float(deviation @ deviation) / (2 * m)
        grad_t = grad_t + deviation / m
    return value, np.append(grad_t, grad_log_alpha)


class KernelCandidate(NamedTuple):
    """A kernel and an alpha, with −log p of the targets."""

    value: float
    alpha: float
    kernel: Kernel


def evaluate_kernel(
    kernel: Kernel, subset: TrainingSubset, alphas: Sequence[float] = INITIAL_ALPHAS
) -> list[KernelCandidate]:
    """−log p on the rows for each of some alphas, without the prior."""
    pairs = WidthGradient(kernel, subset.X, subset.n_landmarks, per_feature=False)
    model = LandmarkGP(pairs.values_and_gradient(np.ones(1))[0], subset)
    values = [model.fit(alpha)[0] for alpha in alphas]
    return [
        KernelCandidate(value if np.isfinite(value) else np.inf, alpha, kernel)
        for alpha, value in zip(alphas, values, strict=True)
    ]


def _optimize(
    start: KernelCandidate, subset: TrainingSubset, *, ard: bool = False
) -> KernelCandidate:
    """Minimised from here; with one change for all widths, or one for each.

    Where alpha is small, rounding of a slope may end the iterations before they
    converge; restarted from there, without their memory, they go on.
    """
    kernel, gamma = start.kernel, gamma_of(start.kernel)
    pairs = WidthGradient(kernel, subset.X, subset.n_landmarks, per_feature=ard)
    n_gammas = subset.X.shape[1] if ard else 1
    log_ratio = np.log(MAX_ARD_GAMMA_RATIO if ard else MAX_GAMMA_RATIO)
    bounds = [(-log_ratio, log_ratio)] * n_gammas
    bounds += [tuple(np.log([MIN_ALPHA, MAX_ALPHA]))]
    theta = np.append(np.zeros(n_gammas), np.log(start.alpha))
    max_evaluations = 2 * MAX_ITERATIONS
    for _ in range(MAX_RESTARTS):
        result: Any = minimize(
            length_scale_objective,
            theta,
            args=(pairs, subset),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={
                "maxiter": MAX_ITERATIONS,
                "maxfun": max_evaluations,
                "ftol": MIN_LIKELIHOOD_GAIN,
            },
        )
        theta, max_evaluations = result.x, max_evaluations - result.nfev
        if result.success or result.nit == MAX_ITERATIONS or max_evaluations <= 0:
            break
    new_gamma = np.multiply(gamma, np.exp(theta[:-1]))
    if not ard and np.ndim(gamma) == 0:
        new_gamma = new_gamma[0]
    rounded = np.vectorize(lambda g: float(f"{g:.{GAMMA_DIGITS}g}"))(new_gamma).tolist()
    alpha = float(np.exp(theta[-1]))
    return evaluate_kernel(with_gamma(kernel, rounded), subset, [alpha])[0]


def learn_length_scales(
    kernel: Kernel, gammas: Sequence[float], subset: TrainingSubset, *, ard: bool
) -> list[Kernel]:
    """The kernel with the likeliest width for all features; then with one for each.

    `gammas` are the initial ones; the first of them where nothing can be learnt.
    """
    starts = [with_gamma(kernel, gamma) for gamma in gammas]
    n_rows, n_targets = subset.targets.shape
    unchanged = [starts[0]] * (2 if ard else 1)
    if n_rows < 3 or not n_targets:
        return unchanged
    with (
        blas_limit_for_size(MAX_SUBSET_LANDMARKS),
        np.errstate(over="ignore", invalid="ignore"),
    ):
        try:
            return _select_kernels(starts, subset, ard)
        except LinAlgError:  # these rows give no finite numbers
            return unchanged


def _select_kernels(
    starts: list[Kernel], subset: TrainingSubset, ard: bool
) -> list[Kernel]:
    initial = _best([c for kernel in starts for c in evaluate_kernel(kernel, subset)])
    candidates = [_best([_optimize(initial, subset), initial])]
    learned = [candidates[0].kernel]
    if ard:
        standardized = _standardized_kernel(starts[0], subset)
        start = _best(evaluate_kernel(standardized, subset))
        if start.value < initial.value:
            candidates.append(_optimize(start, subset))
        per_feature = _optimize(_best(candidates), subset, ard=True)
        learned.append(_best([per_feature, *candidates]).kernel)
    return learned


def _best(candidates: list[KernelCandidate]) -> KernelCandidate:
    return min(candidates, key=lambda each: each.value)


def _standardized_kernel(kernel: Kernel, subset: TrainingSubset) -> Kernel:
    """gamma="scale" as if every feature were standardised.

    A constant one is dropped; or has the longest length, where each has one.
    """
    std = subset.X.std(axis=0)
    fallback_std = np.inf if hasattr(kernel, "gamma") else std.max()
    std = np.where(std > 0, std, fallback_std if std.any() else 1.0)
    gamma = 1 / (len(std) * std ** width_exponent(kernel))
    return with_gamma(kernel, tuple(gamma))
