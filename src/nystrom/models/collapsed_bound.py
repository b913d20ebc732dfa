"""The collapsed variational bound of the landmark Gaussian process, and its gradient.

With features of s landmarks, K̃ ≈ K, and noise α relative to the signal, the bound on
the log likelihood of targets y is

    log N(y; 0, σ²(K̃ + αI)) − tr(K − K̃)/(2α),

maximised over σ² in closed form (Titsias 2009). `optimize_landmarks` moves landmarks,
the linear map in front of the kernel and α along its gradient. A value and a gradient
take two passes over the rows, 3·n·s² multiply-adds, and nothing of size n × s is held.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky
from scipy.linalg.lapack import dpotri, dsygst

from .. import _precision as precision
from ..engines import Engine
from ..kernels import Kernel
from ..kernels.stationary import EuclideanKernel
from ..sources import Block, DenseRows, Source
from .evidence import symmetric, unwhiten
from .length_scales import TrainingSubset, times_triangle, triangular_inverse
from .metric import (
    BLOCK_ROWS,
    JITTER,
    Metric,
    MetricSearch,
    PointColumns,
    row_slices,
    values_and_slopes,
)

#: The least and largest α.
ALPHA_RANGE = (1e-7, 1e4)
#: The α to begin with is the best of these.
INITIAL_ALPHAS = tuple(10.0**power for power in range(-5, 2))
#: The value where the bound is not a number: a step to there is not made.
REJECTED = 1e10
#: Rows per landmark that the bound is summed over, at most, and rows in all.
ROWS_PER_LANDMARK, MIN_BOUND_ROWS, MAX_BOUND_ROWS = 40, 2000, 25_000
#: Adam steps, each one value and gradient. After every few of them rows that the bound
#: has not seen are predicted; the steps end where −2·log p of such a row falls by less
#: than this. The bound of its own rows goes on to grow (elevators: no gain after 16
#: steps, kin40k: still after 64).
MAX_STEPS, CHECK_STEPS, MIN_LOSS_GAIN = 64, 8, 0.01
#: The length of Adam's first steps, in log widths, log α, entries of the map and units
#: of landmarks; how its averages decay. On problems with 192 landmarks 48 of these
#: steps raised the bound as much as about 70 evaluations of L-BFGS on pol and protein,
#: 100 on bike and 50 on elevators and kin40k, where 100 of L-BFGS with a matrix got
#: further. No line search fails by rounding. Lengths of .1 are too long for a matrix.
STEP_LENGTH, MEAN_DECAY, SQUARE_DECAY, MIN_GRADIENT = 0.05, 0.9, 0.999, 1e-12
#: After so many steps without a gain they are halved: too long where noise is small.
PATIENCE = 4
#: Where rows times landmarks² are at most this, a step takes milliseconds, and a few
#: hundred rows that were not seen tell little after 8: there are more steps, and they
#: end only after so many checks without a gain. With 64 steps of length .03 the RMSE on
#: 30 sets of 500 to 3000 rows was 4 % larger.
CHEAP_PRODUCTS, CHEAP_STEPS, CHEAP_CHECKS = 2**27, 128, 5
#: Steps from each start, and rows per landmark for them; the best start goes on. Equal
#: widths are often better (kin40k: RMSE .083, and .163 from a learnt matrix).
RACE_STEPS, RACE_ROWS_PER_LANDMARK = 8, 8
#: A position is not kept where the mean squared error of rows that the bound has not
#: seen is larger than at the start by more than this: twice the standard error of a
#: ratio of 3000 rows.
MAX_ERROR_RATIO = 1.05
#: The metric to begin with is the best of these multiples of the one given: landmarks
#: that move serve narrower kernels than those that do not.
INITIAL_FACTORS = (0.5, 1.0, 2.0, 4.0, 8.0)
#: Of nearly the same value per row the narrowest: K_SS is best conditioned there.
START_TOLERANCE = 0.01


class Race:
    """Stops steps from a start that falls short of what another one has reached.

    Called after each step. The next ones may bring twice as much as those before.
    """

    def __init__(self, best_value: float, value: float) -> None:
        self.best_value, self.value = best_value, value

    def __call__(self, n_steps: int, position: BoundStart) -> None:
        gain = (self.value - position.value) / n_steps
        hoped = position.value - 2 * gain * (RACE_STEPS - n_steps)
        if n_steps >= RACE_STEPS // 2 and hoped > self.best_value:
            raise StopIteration


class FeatureSums(NamedTuple):
    """Sums over all rows of features z = L⁻¹c, with K_SS = LLᵀ; the bound follows."""

    L_inverse: np.ndarray
    kernel_squares: np.ndarray  # (s,) Σ wc²
    gram: np.ndarray  # (s, s) the lower triangle of A = ZᵀWZ
    cross: np.ndarray  # (s, t) b = ZᵀWy
    target_squares: np.ndarray  # (t,) Σ wy²
    weight: float  # Σ w, that is tr WK where k(x, x) = 1
    n_rows: int

    @property
    def residual_trace(self) -> float:
        """tr W(K − K̃)."""
        return max(self.weight - float(np.trace(self.gram)), 0.0)

    def needs_whitening(self, alpha: float) -> bool:
        """Whether L⁻¹(CᵀWC)L⁻ᵀ, of kernel values C, is too much rounded for alpha."""
        error = precision.unwhitened_gram_error(
            self.kernel_squares, np.vecdot(self.L_inverse.T, self.L_inverse.T)
        )
        return not precision.is_unwhitened_gram_accurate(error, alpha)


class BoundGradient(NamedTuple):
    """The bound per row with the other sign, and its derivatives."""

    value: float
    log_alpha: float
    gram: np.ndarray  # by A
    cross: np.ndarray  # by b
    landmarks: np.ndarray  # (s, s) by K_SS, where CᵀWC and CᵀWy stay


def bound_value(
    features: FeatureSums, alpha: float
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """−bound/n, up to a constant; R, RRᵀ = A + αI; coefficients; yᵀ(K̃ + αW⁻¹)⁻¹y."""
    n, s = features.n_rows, len(features.cross)
    R = cholesky(features.gram + alpha * np.eye(s), lower=True)
    coef = cho_solve((R, True), features.cross)
    explained = np.einsum("st,st->t", features.cross, coef)
    fit = (features.target_squares - explained) / alpha
    if not np.all(fit > 0):
        raise LinAlgError("the targets are fitted to rounding")
    log_determinant = 2 * np.log(np.diag(R)).sum() + (n - s) * np.log(alpha)
    value = log_determinant / (2 * n) + np.log(fit / n).mean() / 2
    value += features.residual_trace / (2 * alpha * n)
    return float(value), R, coef, fit


def bound_gradient(features: FeatureSums, alpha: float) -> BoundGradient:
    """−bound/n, up to a constant, and its derivatives by the sums and K_SS."""
    n, (s, t) = features.n_rows, features.cross.shape
    value, R, coef, fit = bound_value(features, alpha)
    B_inverse, _ = dpotri(R, lower=True)  # (A + αI)⁻¹, its lower triangle
    by_fit = 1 / (2 * t * fit)
    by_log_alpha = (alpha * np.trace(B_inverse) + n - s) / (2 * n)
    by_log_alpha += (by_fit * (np.einsum("st,st->t", coef, coef) - fit)).sum()
    by_log_alpha -= features.residual_trace / (2 * alpha * n)
    by_A = symmetric(B_inverse) / (2 * n) + (coef * (by_fit / alpha)) @ coef.T
    by_A.flat[:: s + 1] -= 1 / (2 * alpha * n)
    # With P = CᵀWC + αK_SS the bound is a function of P, of CᵀWy, of log|K_SS| and of
    # tr K_SS⁻¹CᵀWC; through P it depends on K_SS as on CᵀWC, α times.
    by_K_SS = unwhiten(
        alpha * by_A + features.gram / (2 * alpha * n), features.L_inverse
    )
    by_cross = -2 * coef * (by_fit / alpha)
    return BoundGradient(value, float(by_log_alpha), by_A, by_cross, by_K_SS)


def _sums_block(
    block: Block,
    kernel: EuclideanKernel,
    points: np.ndarray,
    W: np.ndarray,
    root: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """CᵀWC and CᵀWy; with the root L⁻ᵀ those of features."""
    scale = np.sqrt(block.weights)[:, None]
    C = PointColumns(kernel, points).values(block.X @ W)
    C *= scale
    if root is not None:
        C = times_triangle(C, root)
    # (SciPy's dsyrk would keep other threads from running.)
    return C.T @ C, C.T @ (scale * np.asarray(block.targets))


def _gradient_block(
    block: Block,
    kernel: EuclideanKernel,
    points: np.ndarray,
    W: np.ndarray,
    root: np.ndarray | None,
    by_gram: np.ndarray,
    by_cross: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """What the rows add to the derivatives by the points and by the map W.

    The given derivatives are by the sums of `_sums_block`.
    """
    X, Y, w = block.X @ W, np.asarray(block.targets), block.weights[:, None]
    columns, s = PointColumns(kernel, points), len(points)
    by_kernel_values = 2 * by_gram
    points_and_ones = np.column_stack([points, np.ones(s)])
    rows_and_ones = w * np.column_stack([X, np.ones(len(X))])
    C_buffer, G_buffer = np.empty((2, BLOCK_ROWS, s))
    by_points, by_rows = np.zeros((s, X.shape[1] + 1)), np.empty_like(rows_and_ones)
    for rows in row_slices(len(X)):
        C, G = C_buffer[: len(X[rows])], G_buffer[: len(X[rows])]
        slopes, factor = columns.values_and_slopes(X[rows], C)
        Z = C if root is None else times_triangle(C, root)
        np.matmul(Z, by_kernel_values, out=G)
        G += Y[rows] @ by_cross.T
        if root is not None:
            G = times_triangle(G, root.T, lower=True)
        G *= slopes
        by_points += G.T @ rows_and_ones[rows]
        np.matmul(G, points_and_ones, out=by_rows[rows])
    by_points = by_points[:, -1:] * points - by_points[:, :-1]
    by_rows = w * (by_rows[:, -1:] * X - by_rows[:, :-1])
    return factor * by_points, factor * (block.X.T @ by_rows)


class BoundStart(NamedTuple):
    """Where the bound is optimised from."""

    value: float  # −bound/n
    metric: Metric
    points: np.ndarray  # landmarks in the coordinates of the metric
    noise: float


@dataclass(frozen=True, eq=False)
class BoundProblem:
    """The bound as a function of landmarks, of the map of a metric and of α."""

    metric: Metric
    source: Source  # rows in the coordinates of the metric, standardised targets
    engine: Engine
    structure: str  # of the change of the map: "fixed", "width", "diagonal", "matrix"
    n_landmarks: int
    alpha: float | None = None  # None: learnt too

    def improve(
        self,
        start: BoundStart,
        n_steps: int,
        after_step: Callable[[int, BoundStart], None] | None = None,
    ) -> BoundStart:
        """The best of some steps of Adam, in the coordinates of its metric.

        Their length falls to a tenth in `MAX_STEPS` or more. It is halved, and they
        begin anew at the best position, where some of them bring nothing. `after_step`
        gets the number of steps and the best position; it may raise StopIteration.
        """
        theta = self.pack(start.points, start.noise)
        best_value, best_theta, last_value = np.inf, theta, np.inf
        rate, n_moments, whiten = STEP_LENGTH, 0, False
        mean = square = np.zeros_like(theta)
        for n_done in range(1, n_steps + 1):
            value, gradient, whiten = self.value_and_gradient(theta, whiten=whiten)
            if value < best_value:
                best_value, best_theta = value, theta
            if n_done == 1:
                last_value = value
            position = self._position(best_value, best_theta)
            if after_step is not None:
                try:
                    after_step(n_done, position)
                except StopIteration:
                    break
            if n_done % PATIENCE == 0:
                is_stuck, last_value = not best_value < last_value, best_value
            else:
                is_stuck = value >= REJECTED
            if is_stuck:
                rate, theta = rate / 2, best_theta
                n_moments, mean, square = 0, 0 * mean, 0 * square
                continue
            n_moments += 1
            mean = MEAN_DECAY * mean + (1 - MEAN_DECAY) * gradient
            square = SQUARE_DECAY * square + (1 - SQUARE_DECAY) * gradient**2
            scale = np.sqrt(square / (1 - SQUARE_DECAY**n_moments)) + MIN_GRADIENT
            step = mean / (1 - MEAN_DECAY**n_moments) / scale
            theta = theta - rate * (1 - 0.9 * n_done / max(n_steps, MAX_STEPS)) * step
        return position

    def _position(self, value: float, theta: np.ndarray) -> BoundStart:
        W, landmarks, noise = self.unpack(theta)
        metric = self.metric.with_transform(self.metric.transform @ W)
        return BoundStart(value, metric, landmarks @ W, noise)

    @cached_property
    def landmark_scale(self) -> np.ndarray:
        """Units of landmarks by feature, for steps of a good length in each.

        Between the spread of the rows and the length of the kernel, 1. In nine cases
        (five sets, widths or a matrix) the bound after 30 evaluations of L-BFGS was the
        largest of the three in six, and at most .003 below in the others. In units of
        the kernel it rose slowly on bike and elevators, where most features spread by
        .03 or less.
        """
        std = np.asarray(self.source.rows(0, self.source.n_rows)).std(axis=0)
        return np.sqrt(np.where(std > 0, std, 1.0))

    @property
    def n_map_parameters(self) -> int:
        """How many numbers change the map."""
        r = self.metric.transform.shape[1]
        return {"fixed": 0, "width": 1, "diagonal": r, "matrix": r * r}[self.structure]

    def unpack(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """The change W of the map, the landmarks before it, and α."""
        r, size = self.metric.transform.shape[1], self.n_map_parameters
        if self.structure == "matrix":
            W = np.eye(r) + theta[:size].reshape(r, r)
        else:
            W = np.diag(np.exp(np.broadcast_to(theta[:size] if size else 0.0, r)))
        alpha = self.alpha
        if alpha is None:
            alpha = float(np.exp(np.clip(theta[size], *np.log(ALPHA_RANGE))))
        landmarks = theta[-self.n_landmarks * r :].reshape(-1, r)
        return W, landmarks * self.landmark_scale, alpha

    def pack(self, points: np.ndarray, alpha: float) -> np.ndarray:
        """The parameters of these landmarks and α, with the map as it is."""
        noise = [np.log(alpha)] if self.alpha is None else []
        landmarks = (points / self.landmark_scale).ravel()
        return np.concatenate([np.zeros(self.n_map_parameters), noise, landmarks])

    def features(
        self, W: np.ndarray, points: np.ndarray, K_SS: np.ndarray, *, whiten: bool
    ) -> FeatureSums:
        """One pass, for points in the coordinates after W.

        With `whiten` each row becomes features before they are summed; the sum of
        kernel values, which is whitened in the end, is faster. LinAlgError where K_SS
        is singular.
        """
        L = cholesky(K_SS, lower=True)
        L_inverse = triangular_inverse(L)
        source, root = self.source, L_inverse.T if whiten else None
        gram, cross = self.engine.reduce(
            _sums_block, source, (self.metric.kernel, points, W, root), "bound"
        )
        if whiten:
            kernel_squares = np.vecdot(L @ gram, L)
        else:
            kernel_squares = np.diagonal(gram)
            gram, _ = dsygst(np.tril(gram), L, lower=True)
            cross = L_inverse @ cross
        assert source.targets is not None
        Y, w = np.asarray(source.targets[: source.n_rows]), source.weights
        return FeatureSums(
            L_inverse,
            kernel_squares,
            gram,
            cross,
            target_squares=w @ Y**2,
            weight=float(source.total_weight),
            n_rows=source.n_rows,
        )

    def landmark_kernel(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """K_SS with its jitter, and the slopes of its entries."""
        K, slopes = values_and_slopes(self.metric.kernel, points)
        np.fill_diagonal(K, 1 + JITTER)
        return K, slopes

    def value_and_gradient(
        self, theta: np.ndarray, *, whiten: bool = False
    ) -> tuple[float, np.ndarray, bool]:
        """−bound/n, its gradient, and whether rounding demands whitened rows here.

        `whiten` is the last of these at similar parameters. A large value where the
        bound is not a number.
        """
        W, landmarks, alpha = self.unpack(theta)
        points = landmarks @ W
        K_SS, slopes = self.landmark_kernel(points)
        try:
            features = self.features(W, points, K_SS, whiten=whiten)
            needs_whitening = features.needs_whitening(alpha)
            if needs_whitening and not whiten:
                features, whiten = self.features(W, points, K_SS, whiten=True), True
            bound = bound_gradient(features, alpha)
        except (LinAlgError, ValueError):
            return REJECTED, np.zeros_like(theta), whiten
        by_gram, by_cross, root = bound.gram, bound.cross, features.L_inverse.T
        if not whiten:
            by_gram, by_cross = unwhiten(by_gram, features.L_inverse), root @ by_cross
        shared = (self.metric.kernel, points, W, root if whiten else None)
        by_points, by_W = self.engine.reduce(
            _gradient_block,
            self.source,
            (*shared, by_gram, by_cross),
            "gradient of the bound",
        )
        G = bound.landmarks * slopes
        by_points = by_points + 2 * (G.sum(axis=1)[:, None] * points - G @ points)
        by_W = by_W + landmarks.T @ by_points
        head = {
            "fixed": np.empty(0),
            "width": np.array([np.diag(by_W) @ np.diag(W)]),
            "diagonal": np.diag(by_W) * np.diag(W),
            "matrix": by_W.ravel(),
        }[self.structure]
        noise = [bound.log_alpha] if self.alpha is None else []
        by_landmarks = by_points @ W.T * self.landmark_scale
        gradient = np.concatenate([head, noise, by_landmarks.ravel()])
        return bound.value, gradient, needs_whitening

    def best_start(self, points: np.ndarray) -> tuple[float, float]:
        """The least −bound/n for these landmarks, and its α."""
        K_SS, _ = self.landmark_kernel(points)
        alphas = INITIAL_ALPHAS if self.alpha is None else (self.alpha,)
        found = [(np.inf, alphas[0])]
        with contextlib.suppress(LinAlgError, ValueError):
            W = np.eye(points.shape[1])
            features = self.features(W, points, K_SS, whiten=True)
            for alpha in reversed(alphas):  # the smaller, the sooner it fails
                found.append((bound_value(features, alpha)[0], alpha))
        return min(found)


def optimize_landmarks(
    kernel: Kernel,
    points: np.ndarray,
    subset: TrainingSubset,
    engine: Engine,
    *,
    structure: str,
    alpha: float | None = None,
    max_steps: int | None = None,
) -> tuple[Kernel, np.ndarray, float | None]:
    """Landmarks moved, and widths or the matrix of the kernel changed, by the bound.

    Returns the kernel, the points and the α that goes with them, if one is known: where
    none is given, the α of the largest likelihood of rows that the bound has not seen.
    `points` are centred as the rows of the subset. What was given is returned where
    these rows are less likely after the move, or their error clearly larger. The loop
    ends after `max_steps` steps, each with one evaluation of the bound, or sooner if
    these rows become no likelier.
    """
    search = MetricSearch.from_subset(subset, engine)
    given, rows = Metric.of(kernel, subset.X.shape[1]), search.train
    few = rows[: max(RACE_ROWS_PER_LANDMARK * len(points), MIN_BOUND_ROWS)]

    def problem_for(metric: Metric, part: TrainingSubset) -> BoundProblem:
        mapped = DenseRows(metric.map(part.X), part.weights)
        source = mapped.replace(targets=part.targets)
        return BoundProblem(metric, source, engine, structure, len(points), alpha)

    def scaled(metric: Metric) -> BoundStart:
        """With the best of some widths for all features, and the best noise."""
        factors = (1.0,) if structure == "fixed" else INITIAL_FACTORS
        starts = []
        for each in map(metric.scaled, factors):
            mapped = each.map(points)
            value, noise = problem_for(each, few).best_start(mapped)
            starts.append(BoundStart(value, each, mapped, noise))
        least = min(start.value for start in starts)
        return [s for s in starts if s.value <= least + START_TOLERANCE][-1]

    starts = [scaled(given)]
    if structure in ("diagonal", "matrix"):
        equal = scaled(given.with_equal_widths(rows.X))
        leader = problem_for(starts[0].metric, few).improve(starts[0], RACE_STEPS)
        race = Race(leader.value, equal.value)
        equal = problem_for(equal.metric, few).improve(equal, RACE_STEPS, race)
        starts = [leader, equal]
    before = search.fit(given, landmarks=points)
    best, least_loss = before, before.loss
    is_cheap = len(rows.X) * len(points) ** 2 <= CHEAP_PRODUCTS
    max_idle_checks, idle_checks = CHEAP_CHECKS if is_cheap else 1, 0
    max_steps = max_steps or (CHEAP_STEPS if is_cheap else MAX_STEPS)
    last_value = np.inf

    def check(n_steps: int, position: BoundStart) -> None:
        """Keep the likeliest position; stop where none has become much likelier."""
        nonlocal best, least_loss, idle_checks, last_value
        if n_steps % CHECK_STEPS or position.value == last_value:
            return
        last_value = position.value
        landmarks = position.metric.unmap(position.points)
        fit = search.fit(position.metric, landmarks=landmarks)
        has_gained = n_steps <= CHECK_STEPS or fit.loss <= least_loss - MIN_LOSS_GAIN
        least_loss = min(least_loss, fit.loss)
        if fit.loss < best.loss and fit.error <= MAX_ERROR_RATIO * before.error:
            best = fit
        idle_checks = 0 if has_gained else idle_checks + 1
        if idle_checks >= max_idle_checks:
            raise StopIteration

    for start in sorted(starts, key=lambda start: start.value):
        check(0, start)
        result = problem_for(start.metric, rows).improve(start, max_steps, check)
        if result.value < REJECTED:
            break
    if best is before:
        return kernel, points, alpha
    noise = best.noise if alpha is None else alpha
    learned = kernel if structure == "fixed" else best.metric.as_kernel()
    return learned, best.metric.unmap(best.points), noise
