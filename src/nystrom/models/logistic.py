"""Kernel logistic regression on landmarks: loss and gradient in one pass, L-BFGS that
starts from the Hessian of sampled rows, and the choice of C by held-out loss.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.linalg
from scipy.special import expit, log_expit, log_softmax, softmax

from .. import _arrays as arrays
from .._arrays import DeviceConstant
from .._precision import EPS64
from .._random import Purpose, Stream, sorted_row_sample
from .._validation import check_finite
from ..engines import TILE, Engine
from ..engines.blas import blas_limit_for_size
from ..landmarks import Landmarks
from ..linalg.conjugate_gradients import conjugate_gradients
from ..linalg.cross_kernel import CrossKernel, fetch_rows
from ..linalg.features import BlockFeatures, FeatureMap
from ..samplers.weighted_sampling import KeyedSampler
from ..sources import Block, CachedRows, Source, Subset

InverseHessian = Callable[[np.ndarray], np.ndarray]  # V ↦ H⁻¹V

#: Steps that are remembered.
LBFGS_MEMORY = 10
#: The Hessian is evaluated anew where more than this share remains after a step;
#: that of a sample after one step, and then each time after twice as many.
SLOW_PROGRESS_RATIO = 0.1
#: A step must take this share of what the gradient promises; else it is
#: shortened, so often at most.
ARMIJO_CONSTANT, MAX_LINE_SEARCH_STEPS = 1e-4, 20
#: A value that falls by a smaller share is the same but for rounding; then a step is
#: good if the gradient along it has fallen, and the last one if it has not.
VALUE_RTOL = 1e-14
#: No more than this share of the value is to be gained where no step goes down.
ROUNDING_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class ValueAndGradient:
    """The objective at a point, and its gradient."""

    value: float
    gradient: np.ndarray


@dataclass(frozen=True, eq=False)
class DescentResult:
    """Where the descent ended."""

    x: np.ndarray
    n_iterations: int
    relative_gain: float  # to be gained, as a share of the value
    converged: bool


def minimize_quasi_newton(
    x: np.ndarray,
    objective: Callable[[np.ndarray], ValueAndGradient],
    inverse_hessian_at: Callable[[np.ndarray], InverseHessian],
    *,
    hessian_is_exact: bool,
    tolerance: float,
    max_iterations: int,
    start_value: ValueAndGradient | None = None,
    min_value: float = np.finfo(np.float64).tiny,
) -> DescentResult:
    """Down to where no more than a share `tolerance` of the value is to be gained.

    A value below `min_value` counts as 0. What is to be gained is estimated by half of
    gᵀH⁻¹g, g the gradient. `start_value` is the objective at x, where it is known. An
    exact Hessian is that of the function itself, not of a sample: then steps are
    Newton's as long as they are poor.
    """
    current, solve = start_value or objective(x), inverse_hessian_at(x)
    steps: deque = deque(maxlen=LBFGS_MEMORY)
    previous_gain, steps_since_update, update_interval, is_flat = np.inf, 0, 1, False
    for iteration in range(max_iterations + 1):
        gain, direction = _newton_step(current, steps, solve, hessian_is_exact)
        if (
            gain > SLOW_PROGRESS_RATIO * previous_gain
            and steps_since_update >= update_interval
        ):
            solve, steps_since_update = inverse_hessian_at(x), 0
            update_interval *= 1 if hessian_is_exact else 2
            # The curvature was another one where older steps began.
            while len(steps) > (0 if hessian_is_exact else 1):
                steps.popleft()
            gain, direction = _newton_step(current, steps, solve, hessian_is_exact)
        relative_gain = gain / 2 / max(abs(current.value), min_value)
        if relative_gain <= tolerance or iteration == max_iterations:
            break
        accepted = None
        if not is_flat or gain < previous_gain / 2:
            accepted = _line_search(x, current, direction, gain, objective)
        if accepted is None:  # the rest is rounding, or H is far from right
            tolerance = max(tolerance, ROUNDING_TOLERANCE)
            break
        next_x, next_point = accepted
        is_flat = current.value - next_point.value <= VALUE_RTOL * abs(current.value)
        steps.append((next_x - x, next_point.gradient - current.gradient))
        x, current, previous_gain = next_x, next_point, gain
        steps_since_update += 1
    return DescentResult(x, iteration, relative_gain, relative_gain <= tolerance)


def _newton_step(
    point: ValueAndGradient, steps: deque, solve: InverseHessian, hessian_is_exact: bool
) -> tuple[float, np.ndarray]:
    """gᵀH⁻¹g and the step −H⁻¹g."""
    direction = -_apply_inverse_hessian(point.gradient, steps, solve, hessian_is_exact)
    return max(0.0, -float(np.vdot(point.gradient, direction))), direction


def _line_search(
    x: np.ndarray,
    start: ValueAndGradient,
    direction: np.ndarray,
    gain: float,
    objective: Callable[[np.ndarray], ValueAndGradient],
) -> tuple[np.ndarray, ValueAndGradient] | None:
    """The first point on the way that is low enough: the whole step, or shorter ones.

    Each is where the parabola through what is known has its least value, within bounds.
    """
    step_length = 1.0
    for _ in range(MAX_LINE_SEARCH_STEPS):
        candidate = x + step_length * direction
        evaluated = objective(candidate)
        is_flat = evaluated.value <= start.value + VALUE_RTOL * abs(start.value)
        gradient_has_fallen = (
            abs(float(np.vdot(evaluated.gradient, direction))) <= gain / 2
        )
        if evaluated.value <= start.value - ARMIJO_CONSTANT * step_length * gain or (
            is_flat and gradient_has_fallen
        ):
            return candidate, evaluated
        curvature = max(
            evaluated.value - start.value + step_length * gain, gain * VALUE_RTOL
        )
        step_length *= float(np.clip(step_length * gain / (2 * curvature), 0.1, 0.5))
    return None


def _apply_inverse_hessian(
    g: np.ndarray, steps: deque, solve: InverseHessian, hessian_is_exact: bool
) -> np.ndarray:
    """The inverse curvature times g, corrected by the steps so far.

    A sample may be flat where few of the rows are not: then less of its inverse counts,
    as the last step says, or every step would be found too long by several passes.
    """
    q, coefficients = g.copy(), []
    pairs = [(s, y, float(np.vdot(s, y))) for s, y in steps]
    pairs = [each for each in pairs if each[2] > 0]
    for s, y, sy in reversed(pairs):
        coefficient = float(np.vdot(s, q)) / sy
        q -= coefficient * y
        coefficients.append(coefficient)
    q = solve(q)
    if pairs and not hessian_is_exact:
        _, y, sy = pairs[-1]
        q *= min(1.0, sy / float(np.vdot(y, solve(y))))
    for (s, y, sy), coefficient in zip(pairs, reversed(coefficients), strict=True):
        q += (coefficient - float(np.vdot(y, q)) / sy) * s
    return q


def objective_and_gradient(
    coef: np.ndarray,
    mapping: FeatureMap,
    source: Source,
    C: float,
    fit_intercept: bool,
    engine: Engine,
) -> ValueAndGradient:
    """In one pass: n·s kernel evaluations and 2·n·s·t multiply-adds."""
    loss, loss_gradient, intercept_gradient = _loss_sums(coef, mapping, source, engine)
    gradient = C * np.vstack([mapping.root.T @ loss_gradient, intercept_gradient])
    gradient[:-1] += coef[:-1]
    if not fit_intercept:
        gradient[-1] = 0.0
    return ValueAndGradient(
        C * loss + 0.5 * float(np.vdot(coef[:-1], coef[:-1])), gradient
    )


def null_loss(source: Source) -> float:
    """Σ w·loss where all coefficients are 0, and all classes alike."""
    return source.total_weight * float(np.log(max(2, source.targets.shape[1])))


def _loss_sums(
    coef: np.ndarray, mapping: FeatureMap, source: Source, engine: Engine
) -> tuple[float, np.ndarray, np.ndarray]:
    dual, b = mapping.root @ coef[:-1], coef[-1]
    shared = (mapping.columns, DeviceConstant(dual), DeviceConstant(b))
    loss, loss_gradient, intercept_gradient = arrays.tree_to_host(
        engine.reduce(_loss_sums_block, source, shared, "logistic loss")
    )
    if not np.isfinite(loss):
        check_finite(np.array([loss]))
    return float(loss), loss_gradient, intercept_gradient


def _loss_sums_block(
    block: Block, columns: CrossKernel, dual: DeviceConstant, b: DeviceConstant
) -> tuple:
    K = columns.float64(block.X)
    # A number per row and class.
    F = arrays.to_host(K @ dual.to_device_of(K) + b.to_device_of(K))
    losses, R = losses_and_residuals(F, block.targets)
    w = np.ascontiguousarray(block.weights)
    R *= w[:, None]
    return float(w @ losses), K.T @ arrays.from_host(R, K), R.sum(axis=0)


def losses_and_residuals(F: np.ndarray, Y: Any) -> tuple[np.ndarray, np.ndarray]:
    """−log p of each row's class, and its derivative by the row's decisions."""
    if Y.shape[1] == 1:
        margin = Y * F
        return -log_expit(margin[:, 0]), -Y * expit(-margin)
    is_own_class = Y > 0
    logs = log_softmax(F, axis=1)
    return -logs[is_own_class], np.exp(logs) - is_own_class


def probabilities(F: np.ndarray) -> np.ndarray:
    """(n, classes), from decisions (n, 1) or (n, classes)."""
    if F.shape[1] == 1:
        return np.hstack([expit(-F), expit(F)])
    return softmax(F, axis=1)


def log_probabilities(F: np.ndarray) -> np.ndarray:
    """Their logarithms, also where they vanish."""
    if F.shape[1] == 1:
        return np.hstack([log_expit(-F), log_expit(F)])
    return log_softmax(F, axis=1)


#: A class with fewer rows among them is not known well enough to begin with.
MIN_ROWS_PER_CLASS = 10


def sample_rows_by_weight(
    source: Source, size: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """At most so many rows in proportion to their weights, ascending.

    With them weights that add up to those of all, on average; rows of weight 0 are not
    drawn.
    """
    if not source.is_weighted:
        rows = sorted_row_sample(source.n_rows, size, seed)
        return rows, np.full(len(rows), source.n_rows / len(rows))
    sampler = KeyedSampler(Stream(seed, Purpose.PRECONDITION), max_rows=size + 1)
    sample, p = sampler.sample(source.weights).fixed_size(size)
    order = np.argsort(sample.numbers)
    return sample.numbers[order], (sample.sampling_weights / p)[order]


def weighted_subset(
    source: Source, rows: np.ndarray, weights: np.ndarray, engine: Engine
) -> Source:
    """Some rows with other weights; without random access they are read once."""
    if source.supports_random_access:
        return Subset(source, rows).replace(weights=weights)
    in_memory = CachedRows(fetch_rows(source, rows, engine), weights)
    return in_memory.replace(targets=source.targets[rows])


def representative_sample(
    source: Source, size: int, engine: Engine, seed: int
) -> Source:
    """A sample; the source itself where that has hardly more rows."""
    if source.n_rows <= 2 * size:
        return source
    return weighted_subset(source, *sample_rows_by_weight(source, size, seed), engine)


def has_all_classes(sample: Source, min_rows: int = MIN_ROWS_PER_CLASS) -> bool:
    """Whether each class has enough rows, for targets of ±1."""
    membership = sample.targets[: sample.n_rows] > 0
    smallest_class = membership.sum(axis=0).min()
    if membership.shape[1] == 1:
        smallest_class = min(smallest_class, (~membership).sum())
    return bool(smallest_class >= min_rows)


#: Rows in the sample, for each landmark: of two classes, and of more, where their
#: features are held.
ROWS_PER_LANDMARK, MULTICLASS_ROWS_PER_LANDMARK = 64, 16
#: Conjugate gradients end at this share of the right-hand side, or after so many steps:
#: with ten times as exact directions the number of steps was the same.
CG_RTOL, MAX_CG_STEPS = 0.1, 50
#: Added to the diagonal, as a share of it, for each column: what rounding may take.
DIAGONAL_ROUNDING = 4 * EPS64
#: Factors with which they took more than this are computed anew at the next iterate.
REFACTOR_AFTER_CG_STEPS = 10


@dataclass(frozen=True, eq=False)
class SampleBlock:
    """Some rows of the sample."""

    Z: Any  # (m, q) where the rows are, the last column 1 with an intercept
    w: np.ndarray  # (m,) C times the weights

    def multiply(self, V: np.ndarray) -> np.ndarray:
        """ZV, for V (q, t)."""
        return arrays.to_host_float64(self.Z @ arrays.from_host(V, self.Z))

    def gram(self, w: np.ndarray) -> Any:
        """Σ w·zzᵀ, where the rows are."""
        B = self.Z * arrays.from_host(np.sqrt(w), self.Z)[:, None]
        return B.T @ B


@dataclass(eq=False)
class SampledHessian:
    """H on rows that count for all, at one place after the other."""

    mapping: FeatureMap
    sample: Source
    C: float
    fit_intercept: bool
    _factors: list[tuple] = field(default_factory=list, init=False)
    _n_cg_steps: int = field(default=0, init=False)  # with these factors, at most

    def inverse_at(self, coef: np.ndarray) -> InverseHessian:
        """V ↦ H⁻¹V at some coefficients, for V and the result (r + 1, t)."""
        coef = coef[: len(self.penalty_diagonal)]
        if coef.shape[1] == 1:
            gram: Any = 0.0
            for block in self._sample_blocks():
                p = probabilities(block.multiply(coef))[:, 1]
                gram = gram + block.gram(block.w * p * (1 - p))
            factor = self._factor_hessian(gram)
            return partial(self._pad_intercept, partial(_cho_solve, factor))
        P = [probabilities(block.multiply(coef)) for block in self._stored_blocks]
        if not self._factors or self._n_cg_steps > REFACTOR_AFTER_CG_STEPS:
            self._factors, self._n_cg_steps = self._factor_class_blocks(P), 0
        return partial(self._pad_intercept, partial(self._solve_by_cg, P))

    @cached_property
    def penalty_diagonal(self) -> np.ndarray:
        """(q,) 1, and 0 for the intercept."""
        return np.append(np.ones(self.mapping.rank), [0.0] * bool(self.fit_intercept))

    def _sample_blocks(self) -> Iterator[SampleBlock]:
        tiles = BlockFeatures(self.mapping.columns, self.mapping.root)
        for start in range(0, self.sample.n_rows, TILE):
            block = self.sample.block(start, min(start + TILE, self.sample.n_rows))
            Z = tiles(block.X)
            if self.fit_intercept:
                one = arrays.from_host(np.ones((len(block), 1)), Z)
                Z = arrays.stack_columns([Z, one])
            yield SampleBlock(Z, self.C * block.weights)

    @cached_property
    def _stored_blocks(self) -> list[SampleBlock]:
        return list(self._sample_blocks())

    def _factor_class_blocks(self, P: list[np.ndarray]) -> list[tuple]:
        """The factor of the block of each class."""
        factors = []
        for k in range(P[0].shape[1]):
            pairs = zip(self._stored_blocks, (each[:, k] for each in P), strict=True)
            gram = sum(block.gram(block.w * p * (1 - p)) for block, p in pairs)
            factors.append(self._factor_hessian(gram))
        return factors

    def _factor_hessian(self, gram: Any) -> tuple:
        H = arrays.to_host_float64(gram)
        diagonal = np.einsum("ii->i", H)
        # Each column by its own size: one for all would hide those of small features.
        # An intercept has no curvature where all is certain; then that of little doubt.
        total = self.C * self.sample.total_weight * (1 - self.penalty_diagonal)
        jitter = DIAGONAL_ROUNDING * len(H) * np.maximum(diagonal, total)
        jitter = np.maximum(jitter, np.finfo(np.float64).tiny)
        diagonal += self.penalty_diagonal + jitter
        # H is its own transpose, which is where LAPACK finds it.
        return scipy.linalg.cho_factor(H.T, overwrite_a=True, check_finite=False)

    def _pad_intercept(self, solve: InverseHessian, V: np.ndarray) -> np.ndarray:
        """The row of the intercept is there where it is none, too."""
        out, q = np.zeros_like(V), len(self.penalty_diagonal)
        out[:q] = solve(V[:q])
        return out

    def _precondition(self, V: np.ndarray) -> np.ndarray:
        """Block by block; without what is added to all classes alike, which is none."""
        pairs = zip(self._factors, V.T, strict=True)
        solution = np.array([_cho_solve(factor, v) for factor, v in pairs]).T
        return solution - solution.mean(axis=1, keepdims=True)

    def _solve_by_cg(self, P: list[np.ndarray], V: np.ndarray) -> np.ndarray:
        def by_class(function: InverseHessian) -> InverseHessian:
            """All classes are one system: its unknowns in one column."""
            return lambda v: function(v.reshape(V.shape)).reshape(-1, 1)

        solution = conjugate_gradients(
            by_class(partial(self._multiply_hessian, P)),
            (V - V.mean(axis=1, keepdims=True)).reshape(-1, 1),
            by_class(self._precondition),
            rtol=CG_RTOL,
            max_iterations=MAX_CG_STEPS,
        )
        self._n_cg_steps = max(self._n_cg_steps, solution.n_iterations)
        # Not the best x, which is 0 where rounding lets no step help: a direction of 0
        # would seem to be the minimum.
        return solution.last_x.reshape(V.shape)

    def _multiply_hessian(self, P: list[np.ndarray], V: np.ndarray) -> np.ndarray:
        """HV."""
        out = self.penalty_diagonal[:, None] * V
        for part, probabilities_of_block in zip(self._stored_blocks, P, strict=True):
            U = part.multiply(V) * probabilities_of_block
            U -= probabilities_of_block * U.sum(axis=1, keepdims=True)
            U *= part.w[:, None]
            out += arrays.to_host_float64(part.Z.T @ arrays.from_host(U, part.Z))
        return out


def _cho_solve(factor: tuple, V: np.ndarray) -> np.ndarray:
    return scipy.linalg.cho_solve(factor, V, check_finite=False)


#: On the sample the objective is minimised to this share, in so many steps:
#: its minimum is not that of all rows.
SAMPLE_TOLERANCE, SAMPLE_MAX_ITERATIONS = 1e-3, 30


@dataclass(frozen=True)
class LogisticSettings:
    """Parameters of the descent."""

    fit_intercept: bool
    tolerance: float
    max_iterations: int
    seed: int


def logistic_feature_map(
    landmarks: Landmarks, source: Source, max_C: float
) -> FeatureMap:
    """Z as exact as the largest C needs it.

    A row's share of the Hessian is at most ¼: as of ridge regression with α = 4/C.
    """
    return FeatureMap.for_ridge(landmarks, source, 4 / max_C, center=False)


def fit_logistic(
    mapping: FeatureMap,
    source: Source,
    C: float,
    settings: LogisticSettings,
    engine: Engine,
    start: np.ndarray | None = None,
) -> DescentResult:
    """Coefficients (r + 1, t) on Z, the intercept last, for targets of ±1."""
    fit_intercept, t = settings.fit_intercept, source.targets.shape[1]
    zero_coef = np.zeros((mapping.rank + 1, t))
    with blas_limit_for_size(mapping.rank):
        size = ROWS_PER_LANDMARK if t == 1 else MULTICLASS_ROWS_PER_LANDMARK
        size *= mapping.rank + 2
        sample = representative_sample(source, size, engine, settings.seed)
        hessian = SampledHessian(mapping, sample, C, fit_intercept)

        def objective(
            coef: np.ndarray, rows: Source = source, engine: Engine = engine
        ) -> ValueAndGradient:
            return objective_and_gradient(coef, mapping, rows, C, fit_intercept, engine)

        if start is None:
            start = zero_coef
            if sample is not source and has_all_classes(sample):
                start = minimize_quasi_newton(
                    zero_coef,
                    partial(objective, rows=sample, engine=engine.local.quiet()),
                    hessian.inverse_at,
                    hessian_is_exact=True,
                    tolerance=SAMPLE_TOLERANCE,
                    max_iterations=SAMPLE_MAX_ITERATIONS,
                ).x
        if not np.isfinite(C * null_loss(source)):
            raise ValueError(
                f"C={C:g} times the weights of all rows is too large for float64; use "
                "a smaller C, which changes the solution by rounding only."
            )
        start_value = objective(start)
        if not start_value.value <= C * null_loss(source):
            start, start_value = zero_coef, objective(zero_coef)
        return minimize_quasi_newton(
            start,
            objective,
            hessian.inverse_at,
            hessian_is_exact=sample is source,
            start_value=start_value,
            min_value=EPS64 * C * null_loss(source),
            tolerance=settings.tolerance,
            max_iterations=settings.max_iterations,
        )


#: Rows that C is chosen on at most; of each class one in so many is held out.
MAX_SELECTION_ROWS, HELD_OUT_EVERY = 2**16, 5
#: To compare them, this share of the objective is accurate enough.
SELECTION_TOLERANCE = 1e-6


def select_cost(
    mapping: FeatureMap,
    source: Source,
    Cs: np.ndarray,
    settings: LogisticSettings,
    engine: Engine,
) -> tuple[float, np.ndarray, np.ndarray | None]:
    """The C of least loss; the mean −log p of held-out rows of each; coefficients.

    The coefficients are None where a class was not among the rows.

    C stands beside a sum over rows: to mean the same, it counts for all of them.
    """
    rows, weights = sample_rows_by_weight(source, MAX_SELECTION_ROWS, settings.seed)
    is_held_out = _held_out_mask(source, rows, settings.seed)
    if not is_held_out.any():
        raise ValueError(
            f"C={Cs.tolist()} cannot be compared on held-out rows, because no class "
            "has enough of them; pass one C."
        )
    test, train = (
        weighted_subset(source, rows[mask], weights[mask], engine)
        for mask in (is_held_out, ~is_held_out)
    )
    scale = source.total_weight / train.total_weight
    settings = replace(settings, tolerance=max(settings.tolerance, SELECTION_TOLERANCE))
    losses = np.full(len(Cs), np.inf)
    coef, best_coef, best = None, None, None
    for i in np.argsort(Cs, kind="stable"):
        C = scale * float(Cs[i])
        coef = fit_logistic(mapping, train, C, settings, engine, coef).x
        losses[i] = _loss_sums(coef, mapping, test, engine)[0] / test.total_weight
        if best is None or losses[i] < losses[best]:
            best, best_coef = i, coef
    # Without rows of a class its constant goes to −∞: nowhere to begin from.
    start = best_coef if has_all_classes(train, 1) else None
    return float(Cs[best]), losses, start


def _held_out_mask(source: Source, rows: np.ndarray, seed: int) -> np.ndarray:
    """Which of these rows are: of each class one in five, and never all."""
    Y = source.targets[rows]
    labels = Y[:, 0] > 0 if Y.shape[1] == 1 else Y.argmax(axis=1)
    order = np.lexsort((Stream(seed, Purpose.FOLD).uniforms_at(rows), labels))
    _, first, counts = np.unique(labels[order], return_index=True, return_counts=True)
    rank_in_class = np.arange(len(rows)) - np.repeat(first, counts)  # within the class
    is_held_out = np.zeros(len(rows), dtype=bool)
    is_held_out[order] = rank_in_class % HELD_OUT_EVERY == HELD_OUT_EVERY - 1
    if not is_held_out.any():  # few rows: one of the largest class, if it has another
        largest_class = counts.argmax()
        is_held_out[order[first[largest_class]]] = counts[largest_class] > 1
    return is_held_out
