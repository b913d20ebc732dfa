"""`KernelProblem`: validated rows, their kernel and an engine; gamma from the data,
the selection of landmarks, and warnings about these.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from .._random import as_seed
from .._validation import both_given_error, check_choice, check_int
from ..engines import Engine, Threads, silent
from ..engines.context import current_device
from ..kernels import Kernel, Precomputed
from ..kernels.names import as_kernel
from ..landmarks import Landmarks
from ..samplers import (
    FixedSize,
    SpectralTolerance,
    StoppingRule,
    TraceTolerance,
    as_sampler,
)
from ..samplers.base import GivenPoints, GivenRows, Sampler
from ..samplers.streaming import update_from_batch
from ..sources import (
    Block,
    DenseRows,
    ObjectRows,
    RowNumbers,
    Source,
    Subset,
    as_source,
)
from ..sources.views import DeviceRows
from ._inputs import check_namespace, check_sample_weight, check_width, is_numpy_numbers
from ._progress import active_engine, announce_selection, resolve_engine, warn


def source_from_rows(X: Any, weights: np.ndarray | None = None) -> Source:
    """The source of X's checked rows, on the device in use if there is one."""
    source: Source
    source = DenseRows(X, weights) if is_numpy_numbers(X) else as_source(X, weights)
    device = current_device()
    if device is None:
        return source
    if not arrays.is_array(source.rows(0, 1)):
        raise ValueError(
            f"using(device={device!r}) needs dense rows of numbers, but X is sparse "
            "or holds objects; use X.toarray(), or omit device."
        )
    return DeviceRows(source, device)


#: One width for all features, one for each, or a matrix, learnt from targets.
LEARNED_GAMMAS = LEARN, LEARN_ARD, LEARN_MATRIX = "learn", "ard", "matrix"


#: Rows whose pairwise distances give the median.
MEDIAN_ROWS = 1000


def is_learned_gamma(gamma: Any) -> bool:
    """Whether the width is to be learnt from targets."""
    return isinstance(gamma, str) and gamma in LEARNED_GAMMAS


def gamma_from_data(rule: str, kernel: str, source: Source, engine: Engine) -> float:
    """The number that gamma="scale", gamma="auto" or gamma="median" stands for.

    "scale": 1/(n_features · variance of all entries), as scikit-learn's `SVC`.
    "auto": 1/n_features, as there; that is the default of all kernels but chi2.
    "median": 1/(2·m²) for the median distance m of 1000 evenly spaced rows, and 1/m
    with city-block distances for the Laplacian kernel.
    """
    if source.is_weighted and not np.all(source.weights > 0):
        source = Subset(source, np.flatnonzero(source.weights))
    if rule == "scale":
        variance = _entry_variance(source, engine)
        assert source.n_features is not None
        if not variance:
            return 1.0
        return _reciprocal_gamma(source.n_features * variance, rule)
    if rule == "auto":
        return 1.0 / source.n_features  # type: ignore[operator]
    if is_learned_gamma(rule):
        raise ValueError(
            f"gamma={rule!r} is learnt from targets, but there are none; use a "
            "number, 'scale' or 'median'."
        )
    check_choice(rule, "gamma", ["scale", "auto", "median", *LEARNED_GAMMAS])
    if kernel in ("chi2", "poly", "polynomial", "sigmoid"):
        raise ValueError(
            f"gamma='median' is for kernels of a distance, not for kernel={kernel!r}; "
            "use a number, 'scale' or None."
        )
    n = source.n_rows
    m = min(n, MEDIAN_ROWS)
    X = arrays.to_host_float64(source.take(np.arange(m) * n // m))
    if not np.diff(X, axis=0).any():
        return 1.0  # as scikit-learn has it: there is no scale to be had
    with np.errstate(over="ignore", invalid="ignore"):  # checked below
        distances, power = _pairwise_distances(X, kernel)
    if not np.isfinite(distances).all():
        raise _gamma_range_error(rule)
    # Many copies of one row would make the median 0: the rest still has a scale.
    cutoff = arrays.epsilon(np.float64) * distances.max(initial=0.0) * 10**power
    nonzero_distances = distances[distances > cutoff]
    median = np.median(nonzero_distances) if len(nonzero_distances) else 0.0
    return _reciprocal_gamma(float(median), rule)


def _pairwise_distances(X: np.ndarray, kernel: str) -> tuple[np.ndarray, float]:
    """1/gamma of all pairs of rows, and the power of the distance in it."""
    pairs = np.triu_indices(len(X), 1)
    if kernel == "laplacian":
        return arrays.cityblock(X, X)[pairs], 1.0
    X = X - X.mean(axis=0)
    norms = arrays.squared_norms(X)
    squares = norms[:, None] + norms - 2 * X @ X.T
    return 2 * np.maximum(squares, 0)[pairs], 2.0


def _reciprocal_gamma(spread: float, rule: str) -> float:
    """gamma, if float64 has such numbers."""
    with np.errstate(over="ignore", divide="ignore"):
        gamma = float(1.0 / np.float64(spread))
    if not 0 < gamma < np.inf:
        raise _gamma_range_error(rule)
    return gamma


def _gamma_range_error(rule: str) -> ValueError:
    return ValueError(
        f"gamma={rule!r} cannot be computed, because squared distances of rows are "
        "out of the range of float64. Scale X, for example with StandardScaler."
    )


def _entry_variance(source: Source, engine: Engine) -> float:
    first = arrays.to_host_float64(source.rows(0, 1))
    origin = float(first.mean())  # near the data, so that squares do not cancel
    sums = engine.reduce(_variance_sums_block, source, (origin,), "variance")
    total, squares, absolute_deviation = arrays.tree_to_host(sums)
    n_entries = source.n_rows * source.n_features  # type: ignore[operator]
    with np.errstate(over="ignore", invalid="ignore"):
        variance = float(squares / n_entries - np.square(np.float64(total / n_entries)))
    if not np.isfinite(variance):
        raise _gamma_range_error("scale")
    # Values that are all alike are apart from their mean by what it was rounded by.
    rounding = 10 * arrays.epsilon(np.float64) * abs(origin) * n_entries
    if variance <= 0 and rounding < absolute_deviation < 1:
        raise _gamma_range_error("scale")
    return max(0.0, variance)


def _variance_sums_block(block: Block, origin: float) -> tuple[Any, Any, Any]:
    X = block.X.toarray() if sp.issparse(block.X) else block.X
    with np.errstate(over="ignore"):  # refused once summed
        X = arrays.widen(X) - origin
        return (
            arrays.sum_float64(X),
            arrays.sum_float64(arrays.squared_norms(X)),
            arrays.sum_float64(arrays.namespace(X).abs(X)),
        )


@dataclass(frozen=True, eq=False)
class KernelProblem:
    """What functions and fits work on: validated rows, their kernel, and an engine."""

    kernel: Kernel  # with all its numbers
    source: Source  # rows with their targets and weights
    engine: Engine
    X: Any  # the rows as they were given, checked
    is_single_target: bool = False  # y had one dimension
    learned_gamma: str | None = None  # the rule by which the kernel was learnt
    error_ratio: float = 1.0  # held-out error as a share of that of gamma="scale"
    labels: Any = None  # the classes of the targets, for classification

    @classmethod
    def from_params(
        cls,
        X: Any,
        kernel: Any,
        *,
        caller: str,
        targets: Any = None,
        sample_weight: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        **params: Any,
    ) -> KernelProblem:
        """From rows that are checked, and the parameters of a kernel."""
        weights = check_sample_weight(sample_weight, X)
        if isinstance(kernel, str) and kernel == "precomputed":
            kernel = as_kernel(kernel, caller=caller, **params)
        source: Source
        if isinstance(kernel, Precomputed):
            matrix = as_dense_kernel_values(X)
            if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
                raise ValueError(
                    "kernel='precomputed' takes the square matrix of k(x, y) for all "
                    f"pairs of training rows; X has shape {tuple(matrix.shape)}."
                )
            kernel, source = Precomputed(matrix), RowNumbers(matrix.shape[0], weights)
        else:
            source = source_from_rows(X, weights)
            kernel = resolve_kernel(kernel, source, caller, n_jobs, **params)
        engine = resolve_engine(kernel, n_jobs, verbose, source)
        if targets is not None:
            source = source.replace(targets=targets)
        return cls(kernel, source, engine, X)

    def select_landmarks(
        self,
        stopping_rule: StoppingRule,
        sampler: Any,
        *,
        random_state: Any,
        nested: bool = False,
        **options: Any,
    ) -> Landmarks:
        """Landmarks by a sampler or what stands for one; never rows of weight 0.

        `nested` puts redundant ones last where they were drawn in no order, for callers
        that need their factor anyway. A progress bar says first how many landmarks
        `max_spectral_error` will take.
        """
        kernel, source, engine = self.kernel, self.source, self.engine
        sampler = as_sampler(sampler, stopping_rule, **options)
        if engine.progress is not silent:
            announce_selection(sampler, kernel, source, stopping_rule, engine)
        start_time = time.perf_counter()
        candidates, rows = source, None
        if source.is_weighted and not isinstance(sampler, GivenRows):
            weights = source.weights
            if not np.all(weights > 0):
                rows = np.flatnonzero(weights)
                candidates = Subset(source, rows)
                candidates.is_subset = False  # it is all that there is to choose from
        goal: Any = stopping_rule
        if isinstance(goal, FixedSize) and not isinstance(sampler, Sampler):
            goal = goal.n_landmarks  # what a function of the user's own takes
        seed = as_seed(random_state)
        landmarks = sampler(kernel, candidates, goal, seed=seed, engine=engine)
        if not isinstance(landmarks, Landmarks):
            raise TypeError(
                f"The sampler {sampler!r} returned {type(landmarks).__name__}; it must "
                "return nystrom.landmarks.Landmarks."
            )
        changes: dict[str, Any] = {"seconds": time.perf_counter() - start_time}
        if rows is not None:
            changes["n_rows"] = source.n_rows
            if landmarks.indices is not None:
                changes["indices"] = rows[landmarks.indices]
        if source.original is not source:  # a model holds points such as the rows given
            first = source.original.rows(0, 1)
            changes["points"] = arrays.to_device_of(landmarks.points, first)
        landmarks = landmarks.replace(**changes)
        is_nested = getattr(sampler, "is_ordered", True)
        return landmarks.in_nested_order() if nested and not is_nested else landmarks


def resolve_kernel(
    kernel: Any,
    source: Source,
    caller: str,
    n_jobs: int | None,
    *,
    gamma: Any = None,
    **params: Any,
) -> Kernel:
    """The kernel with all its numbers, if it takes such rows."""
    is_numeric = not isinstance(source, ObjectRows)
    if isinstance(gamma, str) and isinstance(kernel, str):
        engine = active_engine(source) or Threads(n_jobs)
        # No named kernel takes objects: below the rows are refused, not gamma.
        gamma = gamma_from_data(gamma, kernel, source, engine) if is_numeric else None
    resolved = as_kernel(
        kernel, n_features=source.n_features, gamma=gamma, caller=caller, **params
    )
    check_row_type(resolved, source)
    return resolved


def check_row_type(kernel: Kernel, source: Source) -> None:
    """Refuse objects, or rows of unequal length, for a kernel that takes vectors."""
    if not isinstance(source, ObjectRows) or kernel.traits.accepts_objects:
        return
    first = source.take(np.arange(1))[0]
    raise ValueError(
        f"The kernel {kernel} needs rows of numbers, all of one length, but row 0 of "
        f"X is a {type(first).__name__} of another length, or not of numbers. Encode "
        "the rows as numbers, or pass a kernel for such rows: a callable of two of "
        "them."
    )


def as_dense_kernel_values(X: Any) -> Any:
    """Values of a precomputed kernel as an array; they are not read from files."""
    X = X.X if isinstance(X, DenseRows) else X
    if isinstance(X, Source) or sp.issparse(X):
        given = "a sparse matrix" if sp.issparse(X) else "a source, or a file"
        raise ValueError(
            f"Values of a precomputed kernel must be a dense array; X is {given}. Load "
            "it, or convert it by X.toarray()."
        )
    return X if arrays.is_array(X) else np.asarray(X)


#: What two stopping rules would both set.
LANDMARK_COUNT = "the number of landmarks"


def stopping_rule_from_params(
    n_landmarks: Any,
    sampler: Any,
    *,
    max_spectral_error: float | None = None,
    max_trace_error: float | None = None,
    default: int | None = None,
    name: str = "n_landmarks",
) -> StoppingRule:
    """The stopping rule that the parameters stand for.

    Beside an error, the number of landmarks is an upper limit.

    A sampler's own `max_spectral_error` counts where none is given.
    `default` stands for a number that is None.
    """
    if max_spectral_error is not None and max_trace_error is not None:
        raise both_given_error(
            f"max_spectral_error={max_spectral_error!r}",
            f"max_trace_error={max_trace_error!r}",
            LANDMARK_COUNT,
        )
    if max_spectral_error is None and max_trace_error is None:
        max_spectral_error = getattr(sampler, "max_spectral_error", None)
    rules = (max_trace_error, max_spectral_error, default)
    is_optional = any(rule is not None for rule in rules)
    size = check_int(n_landmarks, name, optional=is_optional)
    if max_trace_error is not None:
        return TraceTolerance(max_trace_error, size)
    if max_spectral_error is not None:
        return SpectralTolerance(max_spectral_error, size)
    return FixedSize(size or default)  # type: ignore[arg-type]  # one of them is there


def check_streamable(kernel: Kernel, sampler: Any, caller: str) -> None:
    """Row numbers of one batch mean nothing in the next."""
    is_given = isinstance(as_sampler(sampler), (GivenRows, GivenPoints))
    if kernel.traits.uses_row_numbers or is_given:
        raise ValueError(
            f"{caller} supports neither kernel='precomputed' nor row numbers or "
            "points as sampler. Use fit, or another kernel and sampler."
        )


def update_landmarks(
    previous: Landmarks | None,
    problem: KernelProblem,
    stopping_rule: StoppingRule,
    sampler: Any,
    *,
    random_state: Any,
    caller: str,
    nested: bool = False,
    min_improvement: float = 1.0,
) -> Landmarks:
    """Landmarks of all rows so far: the previous ones, and a batch of new rows."""
    batch, seed = problem.source, 0  # the first seed goes with the rows that are kept
    if previous is not None:
        check_namespace(problem.X, previous.points, f"{caller}()")
        check_landmark_width(batch, previous.points)
        if sp.issparse(previous.points) != sp.issparse(batch.take(np.arange(1))):
            raise ValueError(
                "The new rows and the landmarks must both be sparse, or both be "
                "dense; convert one of them."
            )
    if previous is None or previous.reservoir is None:
        seed = as_seed(random_state)

    def select(source: Source, seed: int, goal: StoppingRule) -> Landmarks:
        rows = replace(problem, source=source)
        return rows.select_landmarks(goal, sampler, random_state=seed, nested=nested)

    return update_from_batch(
        previous,
        batch,
        select,
        stopping_rule,
        seed=seed,
        engine=problem.engine,
        min_improvement=min_improvement,
    )


def check_landmark_width(source: Source, points: Any) -> None:
    """New rows must have the features of the landmarks."""
    has_columns = arrays.is_array_or_csr(points) and points.ndim == 2
    width = points.shape[1] if has_columns else None
    check_width(source.n_features, width, "the landmarks have")


#: K is nearly diagonal if the relative trace error exceeds the first and landmarks
#: represent fewer rows than the second on average.
DIAGONAL_TRACE_ERROR, DIAGONAL_ROWS_PER_LANDMARK = 0.9, 2.0


#: K is nearly constant where its least entry is more than this share of its largest,
#: among so many landmarks.
CONSTANT_ENTRY_RATIO, N_PROBED_LANDMARKS = 0.9999, 32


def warn_about_landmarks(landmarks: Landmarks) -> None:
    """The warnings a user should see once: an indefinite kernel, a cap reached, a
    width that makes all rows alike or none.
    """
    if landmarks.indefinite:
        warn_indefinite(
            landmarks.kernel,
            "the landmarks were not chosen by its scores, and its negative part is "
            "dropped",
        )
    max_trace_error, error = landmarks.max_trace_error, landmarks.error
    if (
        max_trace_error is not None
        and error is not None
        and error.value > max_trace_error
    ):
        warn(
            f"max_trace_error={max_trace_error:.4g} was not reached: {len(landmarks)} "
            f"landmarks, of rank {landmarks.rank}, have relative trace error {error}. "
            "Allow more landmarks (None for any number), or a larger error."
        )
    if landmarks.n_requested is not None:
        error_sentence = f" Relative trace error: {error}." if error else ""
        warn(
            f"max_spectral_error={landmarks.ridge:.4g} needs about "
            f"{landmarks.n_requested} landmarks, more than the {len(landmarks)} "
            f"allowed.{error_sentence} Allow more landmarks (None for any number)."
        )
    if not landmarks.kernel.traits.is_distance_based:
        return
    advice = "Scale the features (StandardScaler) and change gamma:"
    if _is_nearly_diagonal(landmarks):
        warn(
            f"The kernel matrix is nearly diagonal: with {len(landmarks)} landmarks "
            f"the relative trace error is {landmarks.error}. The width of "
            f"{landmarks.kernel} is probably too small for these rows. {advice} a "
            "smaller gamma, 'median', or 'learn' with targets."
        )
    elif _is_nearly_constant(landmarks):
        warn(
            "The kernel matrix is nearly constant: the width of "
            f"{landmarks.kernel} is probably too large for these rows. {advice} a "
            "larger gamma, 'median', or 'learn' with targets."
        )


def _is_nearly_diagonal(landmarks: Landmarks) -> bool:
    """Whether each landmark represents little but itself.

    For a diagonal K the error is 1 − s/n; few landmarks have a large error for any K.
    """
    error, n = landmarks.error, landmarks.n_rows
    if error is None or n is None or error.value <= DIAGONAL_TRACE_ERROR:
        return False
    return (1 - error.value) * n < DIAGONAL_ROWS_PER_LANDMARK * len(landmarks)


def _is_nearly_constant(landmarks: Landmarks) -> bool:
    """Whether even landmarks, which are far from each other, look all the same."""
    s = len(landmarks)
    probed = np.arange(0, s, -(-s // N_PROBED_LANDMARKS))
    points = arrays.take_rows(landmarks.points, probed)
    is_first_copy = arrays.first_occurrences(points)
    if len(probed) < 2 or (is_first_copy is not None and not is_first_copy.any()):
        return False  # they are the same
    K = landmarks.kernel.gram(points)
    return bool(K.min() > CONSTANT_ENTRY_RATIO * K.max())


def warn_indefinite(kernel: Kernel, consequence: str) -> None:
    """The warning that names the kernel, and says what follows."""
    warn(f"The kernel {kernel} is not positive semi-definite: {consequence}.")
