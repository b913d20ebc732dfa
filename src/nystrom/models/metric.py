"""The metric of a kernel learnt from targets: k(x, y) = κ((x − y)ᵀM(x − y)).

Directions in which the regression function changes matter; M is the average outer
product of its gradients (AGOP), as in recursive feature machines (Radhakrishnan et al.
2024). A few starts and rounds are compared by their error on held-out rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh, solve_triangular

from .. import _arrays as arrays
from ..kernels import Kernel
from ..kernels.stationary import EuclideanKernel, Mahalanobis
from .length_scales import TrainingSubset

#: Rows that metrics are learnt on, at most, and landmarks among them.
MAX_METRIC_ROWS, MAX_METRIC_LANDMARKS = 6000, 256
#: Landmarks that the best metrics are compared with, at most, and rows for each. With
#: few of them smooth functions win: on Adult, 256 landmarks preferred a full matrix
#: that is worse than a width per feature with 1000 (log-loss .312 and .301).
MAX_COMPARED_LANDMARKS, ROWS_PER_COMPARED_LANDMARK = 512, 16
#: How often all widths of the best metric may be halved.
MAX_HALVINGS = 3
#: The share of them that is held out to compare metrics.
HELD_OUT_SHARE = 0.2
#: Rows whose gradients are averaged, at most.
MAX_GRADIENT_ROWS = 4000
#: Rounds of gradients from one start, and how many in a row may bring nothing.
MAX_ROUNDS, MAX_STALE_ROUNDS = 5, 2
#: Factors of all widths, and ridges, that are compared in each round.
WIDTH_FACTORS = (0.5, 1.0, 2.0)
TRIED_ALPHAS = tuple(10.0 ** (power / 2) for power in range(-16, 5))
#: Directions of M below this share of its largest eigenvalue are dropped.
MIN_EIGENVALUE_RATIO = 1e-6
#: A metric replaces a simpler one if its error is smaller by this share.
MIN_GAIN = 1e-3
#: Added to K_SS, of diagonal 1.
JITTER = 1e-8
#: Rows whose features are held at once.
BLOCK_ROWS = 2048


@dataclass(frozen=True, eq=False)
class Metric:
    """A kernel of unit length scale after a linear map of the rows."""

    kernel: EuclideanKernel
    transform: np.ndarray  # (n_features, n_components)

    @classmethod
    def of(cls, kernel: Any, n_features: int) -> Metric:
        """That of a kernel of the Euclidean distance, or of `Mahalanobis`."""
        if isinstance(kernel, Mahalanobis):
            inner = cls.of(kernel.kernel, kernel.transform.shape[1])
            return cls(inner.kernel, kernel.transform @ inner.transform)
        name = "gamma" if hasattr(kernel, "gamma") else "length_scale"
        width = np.asarray(getattr(kernel, name))
        scale = np.sqrt(width) if name == "gamma" else 1 / width
        unit = replace(kernel, **{name: 1.0})
        return cls(unit, np.diag(np.broadcast_to(scale, n_features)))

    @property
    def is_diagonal(self) -> bool:
        """Whether there is a width per feature, and no more."""
        T = self.transform
        return T.shape[0] == T.shape[1] and not (T - np.diag(np.diag(T))).any()

    def with_equal_widths(self, X: np.ndarray) -> Metric:
        """One width for all features of variance 1; rows are as far apart as here."""
        std = np.std(X, axis=0)
        scale = np.divide(1, std, out=np.zeros_like(std), where=std > 0)
        spread = np.var(self.map(X), axis=0).sum() / max(np.sum(std > 0), 1)
        return self.with_transform(np.diag(scale * np.sqrt(spread)))

    def as_kernel(self) -> Kernel:
        """The kernel: with widths where these are enough."""
        if not self.is_diagonal:
            return Mahalanobis(self.kernel, self.transform)
        scale = np.abs(np.diag(self.transform))
        if hasattr(self.kernel, "gamma"):
            gamma = scale**2
            return replace(self.kernel, gamma=_one_or_all(gamma))  # type: ignore[type-var]
        if not scale.all():
            return Mahalanobis(self.kernel, self.transform)
        return replace(self.kernel, length_scale=_one_or_all(1 / scale))  # type: ignore[type-var]

    def map(self, X: np.ndarray) -> np.ndarray:
        """Rows in the coordinates of the metric."""
        return X @ self.transform

    def unmap(self, U: np.ndarray) -> np.ndarray:
        """The shortest rows that have these coordinates."""
        return U @ np.linalg.pinv(self.transform)

    def scaled(self, factor: float) -> Metric:
        """All lengths divided by a factor."""
        return replace(self, transform=self.transform * factor)

    def with_transform(self, transform: np.ndarray) -> Metric:
        """The same kernel after another map."""
        return replace(self, transform=transform)


def _one_or_all(widths: np.ndarray) -> float | tuple[float, ...]:
    is_equal = bool(np.all(widths == widths[0]))
    return float(widths[0]) if is_equal else tuple(widths.tolist())


def profile_argument(
    kernel: EuclideanKernel, X: np.ndarray, points: np.ndarray
) -> np.ndarray:
    """c·‖x − point‖², of which a kernel of unit length scale is a function."""
    c, _ = kernel._constant_and_scale
    D = X @ (-2 * points.T)
    D += arrays.squared_norms(X)[:, None]
    D += arrays.squared_norms(points)
    np.maximum(D, 0.0, out=D)
    D *= c
    return D


def kernel_values(
    kernel: EuclideanKernel, X: np.ndarray, points: np.ndarray
) -> np.ndarray:
    """k of rows with points."""
    return kernel._profile(profile_argument(kernel, X, points))


def values_and_slopes(
    kernel: EuclideanKernel, X: np.ndarray, points: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """k of rows with points, and 2·∂k/∂‖x − point‖²."""
    c, _ = kernel._constant_and_scale
    D = profile_argument(kernel, X, points)
    if X is points:
        np.fill_diagonal(D, 0.0)
    K = kernel._profile(D.copy())
    slopes = kernel._profile_derivative(D, K)
    slopes *= 2 * c
    return K, slopes


@dataclass(frozen=True, eq=False)
class MetricFit:
    """A ridge regression under a metric, by its error on held-out rows."""

    error: float
    metric: Metric
    points: np.ndarray  # (s, r) landmarks in the coordinates of the metric
    dual: np.ndarray  # (s, t)
    noise: float  # the α of the largest likelihood of the held-out rows
    loss: float  # −log p of them with it


@dataclass(frozen=True, eq=False)
class MetricSearch:
    """Rows to fit and rows to compare metrics by; the first rows are landmarks."""

    train: TrainingSubset
    test: TrainingSubset

    @classmethod
    def from_subset(cls, subset: TrainingSubset) -> MetricSearch:
        """The last rows of the subset, which are in random order, are held out."""
        m = len(subset.X)
        n_train = max(m - round(HELD_OUT_SHARE * m), 1)
        first, last = subset[:n_train], subset[n_train:]
        return cls(replace(first, n_landmarks=min(subset.n_landmarks, n_train)), last)

    def fit(
        self,
        metric: Metric,
        factors: Sequence[float] = (1.0,),
        landmarks: np.ndarray | None = None,
    ) -> MetricFit:
        """The best width and ridge for a metric; an error of inf where none is."""
        if landmarks is None:
            landmarks = self.train.X[: self.train.n_landmarks]
        fits = [self._fit_width(metric.scaled(f), landmarks) for f in factors]
        return min(fits, key=lambda each: each.error)

    def _fit_width(self, metric: Metric, landmarks: np.ndarray) -> MetricFit:
        points, rows = metric.map(landmarks), self.train
        s, n_targets = len(points), rows.targets.shape[1]
        failed = MetricFit(np.inf, metric, points, np.empty(0), np.nan, np.inf)
        K = kernel_values(metric.kernel, points, points)
        np.fill_diagonal(K, 1 + JITTER)
        gram, cross = np.zeros((s, s)), np.zeros((s, n_targets))
        try:
            L = cholesky(K, lower=True)
            for start in range(0, len(rows.X), BLOCK_ROWS):
                block = rows[start : start + BLOCK_ROWS]
                Z = self._features(metric, points, L, block.X)
                weighted = Z * block.weights
                gram += weighted @ Z.T
                cross += weighted @ block.targets
            values, vectors = eigh(gram)
        except (LinAlgError, ValueError):
            return failed
        cross = vectors.T @ cross
        T = vectors.T @ self._features(metric, points, L, self.test.X)
        best, best_coef = np.inf, None
        least_loss, noise = np.inf, np.nan
        for alpha in TRIED_ALPHAS:
            coef = cross / (np.maximum(values, 0.0) + alpha)[:, None]
            squares = (self.test.targets - T.T @ coef) ** 2
            error = float(self.test.weights @ squares.mean(axis=1))
            if error < best:
                best, best_coef = error, coef
            loss = self._negative_log_density(squares, T**2, values, alpha)
            if loss < least_loss:
                least_loss, noise = loss, alpha
        if best_coef is None:
            return failed
        dual = solve_triangular(L, vectors @ best_coef, lower=True, trans="T")
        error = best / self.test.weights.sum()
        return MetricFit(error, metric, points, dual, noise, least_loss)

    def _negative_log_density(
        self, squares: np.ndarray, T2: np.ndarray, values: np.ndarray, alpha: float
    ) -> float:
        """−log p of the held-out targets, with the scale of all deviations that fits.

        `T2` are squared features (s, m) in the basis of the Gram matrix's eigenvectors.
        """
        residual_diagonal = np.maximum(1 - T2.sum(axis=0), 0.0)
        leverages = (1 / (np.maximum(values, 0.0) + alpha)) @ T2
        variance = residual_diagonal + alpha * (1 + leverages)
        w = self.test.weights / self.test.weights.sum()
        scales = w @ (squares / variance[:, None])
        return float(w @ np.log(variance) + np.log(scales).mean())

    def _features(
        self, metric: Metric, points: np.ndarray, L: np.ndarray, X: np.ndarray
    ) -> np.ndarray:
        """(s, n)."""
        C = kernel_values(metric.kernel, metric.map(X), points)
        return solve_triangular(L, C.T, lower=True)

    def gradient_metric(self, fit: MetricFit, *, diagonal: bool) -> Metric:
        """The metric of the fit's average gradient outer product."""
        X = self.train.X[:MAX_GRADIENT_ROWS]
        rows, T = fit.metric.map(X), fit.metric.transform
        kernel = fit.metric.kernel
        _, slope = values_and_slopes(kernel, rows, fit.points)
        M = np.zeros((T.shape[1], T.shape[1]))
        for dual in fit.dual.T:
            G = slope * dual
            gradients = G.sum(axis=1)[:, None] * rows - G @ fit.points
            M += gradients.T @ gradients
        M = T @ M @ T.T
        if diagonal:
            transform = np.diag(np.sqrt(np.diag(M)))
        else:
            values, vectors = eigh(M)
            kept = values > MIN_EIGENVALUE_RATIO * values[-1]
            transform = vectors[:, kept] * np.sqrt(values[kept])
        spread = np.var(X @ transform, axis=0).sum()
        if not spread > 0:  # the fit is constant
            return fit.metric
        # As far apart as the rows were before.
        transform *= np.sqrt(np.var(rows, axis=0).sum() / spread)
        return fit.metric.with_transform(transform)

    def best(self, fits: Sequence[MetricFit]) -> MetricFit:
        """The fit of the least error; of nearly the same error the first."""
        best = fits[0]
        for fit in fits[1:]:
            if fit.error < (1 - MIN_GAIN) * best.error:
                best = fit
        return best

    def compare(self, metrics: Sequence[Metric]) -> Metric:
        """The metric of the least error, with narrower widths where these are better.

        More landmarks serve narrower widths than few, which metrics are found with.
        """
        best = self.best([self.fit(metric) for metric in metrics])
        for _ in range(MAX_HALVINGS):
            narrower = self.fit(best.metric.scaled(2.0))
            if self.best([best, narrower]) is best:
                break
            best = narrower
        return best.metric

    def improve(self, start: MetricFit, *, diagonal: bool) -> MetricFit:
        """The best of some rounds of gradients."""
        best, current, n_stale = start, start, 0
        for _ in range(MAX_ROUNDS):
            if not current.dual.size:
                break
            metric = self.gradient_metric(current, diagonal=diagonal)
            current = self.fit(metric, WIDTH_FACTORS)
            is_better = current.error < (1 - MIN_GAIN) * best.error
            best, n_stale = (current, 0) if is_better else (best, n_stale + 1)
            if n_stale == MAX_STALE_ROUNDS:
                break
        return best


def learn_metric(
    equal_widths: Sequence[Kernel],
    likelihood_widths: Kernel,
    subset: TrainingSubset,
    larger_subset: TrainingSubset | None,
    *,
    matrix: bool,
) -> Kernel:
    """The kernel with the metric of the least held-out error.

    Starts are kernels of one width and one with the widths of the marginal likelihood;
    from the best width, rounds of gradients with a width per feature. With `matrix`,
    rounds with a full matrix too, from the best of each kind. No start is better on the
    held-out rows than the best of its kind. These are compared on the larger subset,
    with more landmarks, if there is one.
    """
    n_features = subset.X.shape[1]
    search = MetricSearch.from_subset(subset)
    if not len(search.test.X) or not subset.targets.shape[1]:
        return equal_widths[0]
    metrics = [Metric.of(kernel, n_features) for kernel in equal_widths]
    best_width = search.best([search.fit(metric) for metric in metrics])
    best_width = search.best([best_width, search.fit(best_width.metric, WIDTH_FACTORS)])
    by_likelihood = search.fit(Metric.of(likelihood_widths, n_features), WIDTH_FACTORS)
    by_gradients = search.improve(best_width, diagonal=True)
    finalists = [best_width, by_likelihood, by_gradients]
    if matrix:
        for start in (best_width, search.best([by_likelihood, by_gradients])):
            finalists.append(search.improve(start, diagonal=False))
    if larger_subset is None:
        return search.best(finalists).metric.as_kernel()
    search = MetricSearch.from_subset(larger_subset)
    return search.compare([fit.metric for fit in finalists]).as_kernel()
