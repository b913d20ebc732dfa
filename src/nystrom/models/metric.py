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
from scipy.linalg import LinAlgError, cholesky, eigh

from .. import _arrays as arrays
from ..engines import Engine
from ..kernels import Kernel
from ..kernels.stationary import EuclideanKernel, Mahalanobis
from ..sources import Block, DenseRows
from .length_scales import TrainingSubset, times_triangle, triangular_inverse

#: Rows that metrics are learnt on, at most, and landmarks among them.
MAX_METRIC_ROWS, MAX_METRIC_LANDMARKS = 6000, 256
#: Landmarks that the best metrics are compared with, at most, and rows for each (six
#: tiles of 1024 rows, and 1536 that are held out). With few of them smooth functions
#: win: on Adult, 256 landmarks preferred a full matrix that is worse than a width per
#: feature with 1000 (log-loss .312 and .301). Gradients with 256 landmarks give worse
#: matrices too: the RMSE on 12 sets is 5 to 11 % lower with those of 512 (kin40k with
#: 1000 landmarks .158 instead of .189).
MAX_COMPARED_LANDMARKS, ROWS_PER_COMPARED_LANDMARK = 512, 15
#: How often all widths of the best metric may be halved.
MAX_HALVINGS = 3
#: The share of them that is held out to compare metrics.
HELD_OUT_SHARE = 0.2
#: Rows whose gradients are averaged, at most.
MAX_GRADIENT_ROWS = 4000
#: Rounds of gradients from one start. They end where one is no better than the round
#: before it; the first may be worse than the start, of which it keeps the width alone.
MAX_ROUNDS = 8
#: Ridges that are compared in each fit.
TRIED_ALPHAS = tuple(10.0 ** (power / 2) for power in range(-16, 5))
#: Directions of M below this share of its largest eigenvalue are dropped.
MIN_EIGENVALUE_RATIO = 1e-6
#: A metric replaces a simpler one if its error is smaller by this share.
MIN_GAIN = 1e-3
#: For classes, a metric that gradients improve must be better by this share. On Adult,
#: matrices of few dimensions have a squared error that is 1 to 2 % less on such few
#: rows, but the log-loss of all rows is larger: .312 on average over four seeds, and
#: .306 with this rule.
MIN_CLASS_GAIN = 0.02
#: Added to K_SS, of diagonal 1.
JITTER = 1e-8
#: Rows whose kernel values are held at once: few, so that they stay in the cache of one
#: core. With 512 landmarks and two threads a gradient takes 10 ms a tile with 128 rows,
#: 12 with 256 and 14 with 64, whose products are slower.
BLOCK_ROWS = 128


def row_slices(n_rows: int) -> list[slice]:
    """Blocks of rows."""
    return [slice(i, i + BLOCK_ROWS) for i in range(0, n_rows, BLOCK_ROWS)]


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


class PointColumns:
    """Kernel values of a few rows at a time with fixed points, in memory used again.

    The kernel is one of unit length scale. New arrays of this size cost as much time as
    what is computed in them, as the system maps their pages for each block.
    """

    def __init__(self, kernel: EuclideanKernel, points: np.ndarray) -> None:
        self.kernel, self.n_points = kernel, len(points)
        self._c, _ = kernel._constant_and_scale
        # c‖x − p‖² as one product, [x, ‖x‖², 1]·[−2cp, c, c‖p‖²].
        ones = np.ones(len(points))
        squares = arrays.squared_norms(points)
        self._right = self._c * np.vstack([-2 * points.T, ones, squares])
        self._buffer = np.empty((BLOCK_ROWS, len(points)))

    def values(self, X: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """k of rows with the points."""
        D = np.empty((len(X), self.n_points)) if out is None else out
        for rows in row_slices(len(X)):
            part = D[rows]
            self._arguments(X[rows], part)
            self.kernel._profile_and_slope(part, self._buffer[: len(part)])
        return D

    def values_and_slopes(
        self, X: np.ndarray, out: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """The values in `out`, and 2·∂k/∂‖x − p‖²: an array times a factor.

        Of at most `BLOCK_ROWS` rows. The next call overwrites the array.
        """
        self._arguments(X, out)
        slopes, factor = self.kernel._profile_and_slope(out, self._buffer[: len(X)])
        return slopes, 2 * self._c * factor

    def _arguments(self, X: np.ndarray, out: np.ndarray) -> None:
        left = np.column_stack([X, arrays.squared_norms(X), np.ones(len(X))])
        np.matmul(left, self._right, out=out)


def values_and_slopes(
    kernel: EuclideanKernel, points: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """k among the points, of diagonal 1, and 2·∂k/∂‖x − y‖², of diagonal 0."""
    columns, K = PointColumns(kernel, points), np.empty((len(points), len(points)))
    slopes = np.empty_like(K)
    for rows in row_slices(len(points)):
        part, factor = columns.values_and_slopes(points[rows], K[rows])
        np.multiply(part, factor, out=slopes[rows])
    np.fill_diagonal(K, 1.0)
    np.fill_diagonal(slopes, 0.0)
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


def _sums_block(
    block: Block, metric: Metric, points: np.ndarray, root: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """ZᵀWZ and ZᵀWy of the features Z = CL⁻ᵀ."""
    C = PointColumns(metric.kernel, points).values(metric.map(block.X))
    scale = np.sqrt(block.weights)[:, None]
    Z = times_triangle(C, root)
    Z *= scale
    return Z.T @ Z, Z.T @ (scale * np.asarray(block.targets))


def n_train_rows(n_rows: int) -> int:
    """How many of the rows of a subset, the first ones, metrics are fitted to."""
    return max(n_rows - round(HELD_OUT_SHARE * n_rows), 1)


@dataclass(frozen=True, eq=False)
class MetricSearch:
    """Rows to fit and rows to compare metrics by; the first rows are landmarks."""

    train: TrainingSubset
    test: TrainingSubset
    engine: Engine

    @classmethod
    def from_subset(cls, subset: TrainingSubset, engine: Engine) -> MetricSearch:
        """The last rows of the subset, which are in random order, are held out."""
        n_train = n_train_rows(len(subset.X))
        first, last = subset[:n_train], subset[n_train:]
        first = replace(first, n_landmarks=min(subset.n_landmarks, n_train))
        return cls(first, last, engine)

    def fit(self, metric: Metric, landmarks: np.ndarray | None = None) -> MetricFit:
        """The best ridge for a metric; an error of inf where none is."""
        rows, test = self.train, self.test
        if landmarks is None:
            landmarks = rows.X[: rows.n_landmarks]
        points = metric.map(landmarks)
        failed = MetricFit(np.inf, metric, points, np.empty(0), np.nan, np.inf)
        K = PointColumns(metric.kernel, points).values(points)
        np.fill_diagonal(K, 1 + JITTER)
        try:
            root = triangular_inverse(cholesky(K, lower=True)).T
            source = DenseRows(rows.X, rows.weights).replace(targets=rows.targets)
            shared = (metric, points, root)
            gram, cross = self.engine.reduce(_sums_block, source, shared, "metric")
            values, vectors = eigh(gram, driver="evd")
        except (LinAlgError, ValueError):
            return failed
        basis = root @ vectors
        Z = PointColumns(metric.kernel, points).values(metric.map(test.X)) @ basis
        alphas = np.array(TRIED_ALPHAS)[:, None]
        inverse = 1 / (np.maximum(values, 0.0) + alphas)
        coefs = inverse[:, :, None] * (vectors.T @ cross)
        squares = (test.targets[:, None] - np.tensordot(Z, coefs, (1, 1))) ** 2
        errors = test.weights @ squares.mean(axis=2)
        if not np.isfinite(errors).all():
            return failed
        losses = self._negative_log_density(squares, Z**2, inverse.T, alphas.T)
        dual = basis @ coefs[np.argmin(errors)]
        error = float(errors.min() / test.weights.sum())
        noise = TRIED_ALPHAS[np.argmin(losses)]
        return MetricFit(error, metric, points, dual, noise, float(losses.min()))

    def _negative_log_density(
        self, squares: np.ndarray, Z2: np.ndarray, inverse: np.ndarray, alpha: Any
    ) -> np.ndarray:
        """−log p of the held-out targets, with the scale of all deviations that fits.

        For each alpha; `squares` are (rows, alphas, targets). `Z2` are squared features
        (rows, s) in the basis of the Gram matrix's eigenvectors, and `inverse` (s,
        alphas) those of its eigenvalues and alpha.
        """
        residual_diagonal = np.maximum(1 - Z2.sum(axis=1), 0.0)[:, None]
        leverages = Z2 @ inverse
        variance = residual_diagonal + alpha * (1 + leverages)
        w = self.test.weights / self.test.weights.sum()
        scales = np.tensordot(w, squares / variance[:, :, None], 1)
        return w @ np.log(variance) + np.log(scales).mean(axis=1)

    def gradient_metric(self, fit: MetricFit, *, diagonal: bool) -> Metric:
        """The metric of the fit's average gradient outer product."""
        X = self.train.X[:MAX_GRADIENT_ROWS]
        rows, T = fit.metric.map(X), fit.metric.transform
        columns = PointColumns(fit.metric.kernel, fit.points)
        C = np.empty((BLOCK_ROWS, len(fit.points)))
        M = np.zeros((T.shape[1], T.shape[1]))
        for part in row_slices(len(rows)):
            U = rows[part]
            slopes, factor = columns.values_and_slopes(U, C[: len(U)])
            for dual in factor * fit.dual.T:
                G = slopes * dual
                gradients = G.sum(axis=1)[:, None] * U - G @ fit.points
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

    def narrowed(self, fit: MetricFit) -> MetricFit:
        """The fit with all widths halved as long as that is better.

        More landmarks serve narrower widths than few, which metrics are found with.
        """
        for _ in range(MAX_HALVINGS):
            narrower = self.fit(fit.metric.scaled(2.0))
            if self.best([fit, narrower]) is fit:
                break
            fit = narrower
        return fit

    def improve(self, start: MetricFit, *, diagonal: bool) -> MetricFit:
        """The best of some rounds of gradients."""
        best = current = start
        for n_rounds in range(MAX_ROUNDS):
            if not current.dual.size:
                break
            fit = self.fit(self.gradient_metric(current, diagonal=diagonal))
            if n_rounds and fit.error >= (1 - MIN_GAIN) * current.error:
                break
            current, best = fit, self.best([best, fit])
        return best


def learn_metric(
    equal_widths: Sequence[Kernel],
    likelihood_widths: Kernel,
    subset: TrainingSubset,
    larger_subset: TrainingSubset | None,
    engine: Engine,
    *,
    matrix: bool,
    for_classes: bool,
) -> tuple[Kernel, float]:
    """The kernel with the metric of the least held-out error; and that error, as a
    share of the error of the first of `equal_widths`.

    On the subset, kernels of one width are compared with the widths of the marginal
    likelihood, and with a width per feature by rounds of gradients from the best of one
    width. On the larger subset, with more landmarks, these start rounds of gradients:
    of a width per feature, or with `matrix` of a full matrix, then from one width too.
    Without a larger subset the first comparison decides.
    """
    n_features = subset.X.shape[1]
    search = MetricSearch.from_subset(subset, engine)
    if not len(search.test.X) or not subset.targets.shape[1]:
        return equal_widths[0], 1.0
    fits = [search.fit(Metric.of(kernel, n_features)) for kernel in equal_widths]
    first, width = fits[0], search.best(fits)
    by_likelihood = search.fit(Metric.of(likelihood_widths, n_features))
    by_likelihood = search.narrowed(by_likelihood)
    by_gradients = search.improve(width, diagonal=True)
    found = [first, width, by_likelihood, by_gradients]
    if larger_subset is None:
        best = search.best(found)
        return best.metric.as_kernel(), best.error / first.error
    search = MetricSearch.from_subset(larger_subset, engine)
    refitted = {m: search.fit(m) for m in dict.fromkeys(f.metric for f in found)}
    first, width, by_likelihood, by_gradients = (refitted[f.metric] for f in found)
    best = search.best([first, width, by_likelihood, by_gradients])
    starts = [search.best([by_likelihood, by_gradients])]
    if matrix:
        starts.insert(0, search.narrowed(width))
    improved = search.best(
        [search.improve(s, diagonal=not matrix) for s in dict.fromkeys(starts)]
    )
    min_gain = MIN_CLASS_GAIN if for_classes else MIN_GAIN
    if improved.error < (1 - min_gain) * best.error:
        best = improved
    best = search.narrowed(best)
    return best.metric.as_kernel(), best.error / first.error
