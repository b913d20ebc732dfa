"""Length scales learned by the marginal likelihood of the landmark Gaussian process.

On at most 1000 rows and 250 landmarks; one shared gamma or one per feature (ARD);
never worse there than the starting values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize

from .. import _arrays as arrays
from .._random import Purpose, sample_by_exponential_keys, uniform_row_sample, uniforms
from ..engines import Engine
from ..engines.blas import blas_limit_for_size
from ..kernels import Kernel
from ..kernels.names import gamma_of, with_gamma
from ..kernels.stationary import WidthGradient, width_exponent
from ..linalg.cross_kernel import fetch_rows
from ..sources import Source
from ..sources.base import weighted_mean

#: Added to the landmarks' own matrix, of diagonal 1, where rows repeat each other.
JITTER = 1e-9
#: The constant's deviation, in those of the function: wide beside centred targets.
INTERCEPT_STD = 10.0
#: A target that varies by no more than this share of itself is constant.
CONSTANT_TARGET_RTOL = 1e-10


@dataclass(frozen=True)
class StandardizedTargets:
    """Targets of deviation 1, weights of mean 1, and the constant."""

    targets: np.ndarray  # (m, t)
    weights: np.ndarray  # (m,), > 0
    constant: float  # 0 without an intercept

    @classmethod
    def from_targets(
        cls, Y: np.ndarray, weights: np.ndarray, *, intercept: bool
    ) -> StandardizedTargets:
        """From targets as they are; those that do not vary are left out."""
        max_abs = np.abs(Y).max(axis=0, initial=0.0)
        # Divided first, so that no square overflows.
        Y = Y / np.where(max_abs > 0, max_abs, 1.0)
        w = weights / weights.mean()
        if intercept:
            Y = Y - weighted_mean(w, Y)
        std = np.sqrt(weighted_mean(w, Y**2))
        varies = std > CONSTANT_TARGET_RTOL
        return cls(Y[:, varies] / std[varies], w, INTERCEPT_STD if intercept else 0.0)


@dataclass(frozen=True)
class LikelihoodGradient:
    """−log p of the targets, per row and target, without what never changes."""

    value: float
    grad_columns: np.ndarray  # ∂/∂C, of the first rows that are Q too
    grad_log_alpha: float


@dataclass(frozen=True)
class LandmarkGP:
    """The features of all rows: what does not change with alpha."""

    observed: StandardizedTargets
    M: np.ndarray  # (s, s) L⁻¹ of the landmarks
    Z: np.ndarray  # (m, s + 1), the last column the constant
    gram: np.ndarray  # ZᵀWZ

    @classmethod
    def from_columns(cls, C: np.ndarray, observed: StandardizedTargets) -> LandmarkGP:
        """From the columns (m, s) of the landmarks, the first s of the rows."""
        (m, s), w = C.shape, observed.weights[:, None]
        if not np.isfinite(C).all():
            raise LinAlgError("not finite")
        M = _triangular_inverse(cholesky(C[:s] + JITTER * np.eye(s), lower=True))
        Z = np.empty((m, s + 1))
        np.matmul(C, M.T, out=Z[:, :s])
        Z[:, s] = observed.constant
        return cls(observed, M, Z, Z.T @ (w * Z))

    def fit(self, alpha: float) -> LandmarkGPFit:
        """With an alpha: −log p of the targets, and what it is made of."""
        Y, w, Z = self.observed.targets, self.observed.weights[:, None], self.Z
        (m, t), s = Y.shape, len(self.M)
        B = self.gram.copy()
        B.flat[:: s + 2] += alpha
        R = cholesky(B, lower=True)
        coef = cho_solve((R, True), Z.T @ (w * Y))
        residual = Y - Z @ coef
        # yᵀGy and Gy for G = (K̃ + αW⁻¹)⁻¹: a sum of squares, so that nothing cancels.
        squares = (w * residual**2).sum(axis=0) / alpha + (coef**2).sum(axis=0)
        log_determinant = 2 * np.log(np.diag(R)).sum() + (m - s - 1) * np.log(alpha)
        value = (t * log_determinant + m * np.log(squares).sum()) / (2 * m * t)
        return LandmarkGPFit(float(value), R, w * residual / alpha, squares)


class LandmarkGPFit(NamedTuple):
    """One alpha."""

    value: float
    R: np.ndarray  # RRᵀ = B = ZᵀWZ + αI
    a: np.ndarray  # (m, t) Gy
    squares: np.ndarray  # (t,) yᵀGy


def negative_log_likelihood(
    C: np.ndarray, alpha: float, observed: StandardizedTargets
) -> LikelihoodGradient:
    """From the columns (m, s) of the landmarks, which are the first s of the rows."""
    model = LandmarkGP.from_columns(C, observed)
    value, R, a, squares = model.fit(alpha)
    M, Z, w = model.M, model.Z, observed.weights[:, None]
    (m, t), s = a.shape, len(M)
    root = _triangular_inverse(R)
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
    return LikelihoodGradient(value, grad_columns, float(grad_log_alpha))


def _triangular_inverse(L: np.ndarray) -> np.ndarray:
    return solve_triangular(L, np.eye(len(L)), lower=True)


#: Rows that are looked at, and landmarks among them.
MAX_SUBSET_ROWS, MAX_SUBSET_LANDMARKS = 1000, 250


@dataclass(frozen=True, eq=False)
class TrainingSubset:
    """Some rows with their targets, the first of them landmarks."""

    X: Any  # float64 and centred, or CSR
    observed: StandardizedTargets
    n_landmarks: int

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
    ) -> TrainingSubset:
        """Rows drawn uniformly from a source with targets; at most `size` landmarks."""
        n = source.n_rows
        if source.is_weighted:  # rows of weight 0 are as if they were not there
            counts = (source.weights > 0).astype(np.float64)
            rows, _ = sample_by_exponential_keys(
                counts, uniforms(seed, Purpose.LENGTH_SCALES, 0, n), MAX_SUBSET_ROWS
            )
        else:
            rows = uniform_row_sample(seed, Purpose.LENGTH_SCALES, n, MAX_SUBSET_ROWS)
        Y = np.asarray(arrays.to_host(source.targets[rows]), np.float64)
        observed = StandardizedTargets.from_targets(
            Y, source.weights_of(rows), intercept=intercept
        )
        X = _as_centered_rows(fetch_rows(source, rows, engine), dense)
        return cls(X, observed, min(size, MAX_SUBSET_LANDMARKS, len(rows)))

    @property
    def is_uninformative(self) -> bool:
        """Whether nothing can be learnt: few rows, or no target that varies."""
        return len(self.observed.targets) < 3 or not self.observed.targets.shape[1]


def _as_centered_rows(X: Any, dense: bool) -> Any:
    """Rows here, in float64 and about their median; CSR rows as they are."""
    if sp.issparse(X) and not dense:
        return X.astype(np.float64)
    X = arrays.to_host_float64(X)  # of CSR rows too
    return X - np.median(X, axis=0)


#: Steps at most; each takes one look at the rows, or two. Begun so often.
MAX_ITERATIONS, MAX_RESTARTS = 20, 2
#: How far alpha may go, for kernels of k(x, x) = 1.
MIN_ALPHA, MAX_ALPHA = 1e-6, 1e4
#: A width changes by no more than this factor, up or down: where targets are noise, no
#: width is long enough. A feature that says nothing may vanish.
MAX_GAMMA_RATIO, MAX_ARD_GAMMA_RATIO = 1e3, 1e5


@dataclass(frozen=True, eq=False)
class LengthScaleObjective:
    """The value, and its gradient, at a place (log t, log alpha).

    Widths are t times those of the kernel, with one t for all features or one for
    each. Several keep near to each other by a prior: log t has deviation 1 about its
    mean. Without it 30 widths fit the noise of 400 rows.
    """

    subset: TrainingSubset
    pairs: WidthGradient
    prior: bool

    @classmethod
    def from_kernel(
        cls, kernel: Kernel, subset: TrainingSubset, *, ard: bool = False
    ) -> LengthScaleObjective:
        """For a kernel and the rows looked at."""
        pairs = WidthGradient(kernel, subset.X, subset.n_landmarks, per_feature=ard)
        return cls(subset, pairs, prior=ard)

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        t, alpha = np.exp(theta[:-1]), float(np.exp(theta[-1]))
        C, pullback = self.pairs.values_and_gradient(t)
        nll = negative_log_likelihood(C, alpha, self.subset.observed)
        grad_t, value, m = pullback(nll.grad_columns), nll.value, len(C)
        if self.prior:
            deviation = theta[:-1] - theta[:-1].mean()
            value += float(deviation @ deviation) / (2 * m)
            grad_t = grad_t + deviation / m
        return value, np.append(grad_t, nll.grad_log_alpha)

    def values(self, alphas: Sequence[float]) -> list[float]:
        """At the kernel's own widths, with some alphas; without the prior."""
        C, _ = self.pairs.values_and_gradient(np.ones(1))
        model = LandmarkGP.from_columns(C, self.subset.observed)
        return [model.fit(alpha).value for alpha in alphas]

    def optimize(self, start: np.ndarray) -> np.ndarray:
        """The place that a few steps reach.

        Where alpha is small, rounding of a slope may end them on the way; begun anew
        from there, without what they remember, they go on.
        """
        log_ratio = np.log(MAX_ARD_GAMMA_RATIO if self.prior else MAX_GAMMA_RATIO)
        bounds = [(t - log_ratio, t + log_ratio) for t in start[:-1]]
        bounds += [tuple(np.log([MIN_ALPHA, MAX_ALPHA]))]
        theta, max_evaluations = start, 2 * MAX_ITERATIONS
        for _ in range(MAX_RESTARTS):
            options = {"maxiter": MAX_ITERATIONS, "maxfun": max_evaluations}
            result: Any = minimize(
                self, theta, jac=True, method="L-BFGS-B", bounds=bounds, options=options
            )
            theta, max_evaluations = result.x, max_evaluations - result.nfev
            if max_evaluations <= 0:
                break
        return theta


#: Where alpha begins, for kernels of k(x, x) = 1.
INITIAL_ALPHAS = (1e-3, 1e-1, 1e1)
#: Digits of a width that are kept: more say nothing, and hang on rounding.
GAMMA_DIGITS = 4


@dataclass(frozen=True)
class KernelCandidate:
    """A kernel and an alpha, with −log p of the targets."""

    kernel: Kernel
    alpha: float
    value: float

    @classmethod
    def evaluate(
        cls, kernel: Kernel, alphas: Sequence[float], subset: TrainingSubset
    ) -> list[KernelCandidate]:
        """Looked up on the rows, for each of some alphas."""
        values = LengthScaleObjective.from_kernel(kernel, subset).values(alphas)
        return [
            cls(kernel, alpha, value if np.isfinite(value) else np.inf)
            for alpha, value in zip(alphas, values, strict=True)
        ]

    def optimize(self, subset: TrainingSubset, *, ard: bool = False) -> KernelCandidate:
        """From here downwards; with one change for all widths, or one for each."""
        n_gammas = subset.X.shape[1] if ard else 1
        start = np.append(np.zeros(n_gammas), np.log(self.alpha))
        theta = LengthScaleObjective.from_kernel(self.kernel, subset, ard=ard).optimize(
            start
        )
        gamma = np.multiply(gamma_of(self.kernel), np.exp(theta[:-1]))
        is_vector = ard or np.ndim(gamma_of(self.kernel)) > 0
        kernel = with_gamma(self.kernel, _round_gamma(gamma if is_vector else gamma[0]))
        return KernelCandidate.evaluate(kernel, [float(np.exp(theta[-1]))], subset)[0]


def learn_length_scales(
    kernel: Kernel, gammas: Sequence[float], subset: TrainingSubset, *, ard: bool
) -> Kernel:
    """The kernel with the width that the targets speak for, or one for each feature.

    `gammas` are those to begin with; the first of them where nothing can be learnt.
    """
    starts = [with_gamma(kernel, gamma) for gamma in gammas]
    if subset.is_uninformative:
        return starts[0]
    with (
        blas_limit_for_size(MAX_SUBSET_LANDMARKS),
        np.errstate(over="ignore", invalid="ignore"),
    ):
        try:
            return _select_kernel(starts, subset, ard)
        except LinAlgError:  # no finite numbers come of these rows
            return starts[0]


def _select_kernel(starts: list[Kernel], subset: TrainingSubset, ard: bool) -> Kernel:
    start_candidates = _evaluate_kernels(starts, subset)
    candidates = [_best_candidate(start_candidates).optimize(subset)]
    if ard:
        candidates += [
            _best_candidate(
                _evaluate_kernels(_standardized_kernels(starts[0], subset), subset)
            ).optimize(subset)
        ]
        candidates += [_best_candidate(candidates).optimize(subset, ard=True)]
        candidates = (
            candidates[-1:]
            if candidates[-1].value <= _best_candidate(candidates).value
            else candidates
        )
    return _best_candidate([*candidates, *start_candidates]).kernel


def _evaluate_kernels(
    kernels: list[Kernel], subset: TrainingSubset
) -> list[KernelCandidate]:
    return [
        candidate
        for kernel in kernels
        for candidate in KernelCandidate.evaluate(kernel, INITIAL_ALPHAS, subset)
    ]


def _best_candidate(candidates: list[KernelCandidate]) -> KernelCandidate:
    return min(candidates, key=attrgetter("value"))


def _standardized_kernels(kernel: Kernel, subset: TrainingSubset) -> list[Kernel]:
    """gamma="scale" as if every feature were standardised.

    One that does not vary is left out; or has the widest length, where each has one.
    """
    std = subset.X.std(axis=0)
    fallback_std = np.inf if hasattr(kernel, "gamma") else std.max()
    std = np.where(std > 0, std, fallback_std if std.any() else 1.0)
    gamma = 1 / (len(std) * std ** width_exponent(kernel))
    return [with_gamma(kernel, tuple(gamma))]


def _round_gamma(gamma: Any) -> Any:
    """To a few digits."""
    return np.vectorize(lambda g: float(f"{g:.{GAMMA_DIGITS}g}"))(gamma).tolist()
