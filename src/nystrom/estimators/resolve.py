"""The edge: from what a user passes to kernel, source, engine and landmarks."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight

from .. import _arrays as arrays
from ..engines import Bar, Engine, Hook, Threads, silent
from ..kernels import Kernel, Pairwise, Precomputed
from ..kernels.names import as_kernel
from ..landmarks import Landmarks
from ..randomness import seed_of
from ..samplers import GivenRows, as_sampler, growth_of
from ..samplers.tolerance import check_tolerance, until
from ..sources import Dense, Objects, RowNumbers, Source, Subset, as_source
from .widths import width_from_data


def engine_for(
    kernel: Kernel, n_jobs: int | None, verbose: Any, *hooks: Hook
) -> Engine:
    """Threads with a bar if `verbose`, and any further progress hooks.

    A Python function of two rows holds the interpreter and may not expect to be called
    from several threads: it gets one, unless `n_jobs` asks for more.
    """
    n_jobs = 1 if n_jobs is None and isinstance(kernel, Pairwise) else n_jobs
    hooks = (*hooks, Bar()) if verbose else hooks
    if not hooks:
        return Threads(n_jobs, silent)

    def all_hooks(stage: str, done: int, total: int) -> None:
        for hook in hooks:
            hook(stage, done, total)

    return Threads(n_jobs, all_hooks)


def check_rows(X: Any) -> Any:
    """X, if it is rows of finite numbers or of objects; else one clear error."""
    if isinstance(X, Source):
        return X
    if arrays.is_array(X) and arrays.namespace(X) is not np:
        return _check_foreign(X)
    if holds_objects(X):
        return X
    with explaining_text():
        return check_array(X, accept_sparse="csr", dtype="numeric")


def holds_objects(X: Any) -> bool:
    """Whether X is a sequence of things that are not numbers, nor rows of numbers."""
    series = hasattr(X, "to_numpy") and not hasattr(X, "columns")
    if isinstance(X, np.ndarray) or series:
        objects = X.ndim == 1 and np.asarray(X).dtype.kind in "OUST"
    elif isinstance(X, Sequence) and not isinstance(X, (str, bytes)):
        try:
            objects = len(X) == 0 or isinstance(as_source(X), Objects)
        except ValueError:
            objects = False
    else:
        return False
    if objects and len(X) == 0:
        raise ValueError("X is empty; at least one row is needed.")
    return objects


@contextmanager
def fitted_or_not(estimator: Any) -> Iterator[None]:
    """Leave the estimator as it was if the fit does not come to its end."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


@contextmanager
def explaining_text() -> Iterator[None]:
    """scikit-learn's "could not convert string to float", with what to do about it."""
    try:
        yield
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        raise ValueError(
            f"X holds text where numbers are needed: {error}. Encode it as numbers, or "
            "pass a list of objects with a kernel for them, a callable of two."
        ) from None


def _check_foreign(X: Any) -> Any:
    xp = arrays.namespace(X)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(
            f"X has shape {tuple(X.shape)}; it must have two dimensions, with at least "
            "one row and one feature."
        )
    if not bool(xp.all(xp.isfinite(X))):
        raise ValueError("X contains NaN or infinity; impute or drop such rows.")
    return X


def kernel_and_source(
    X: Any,
    kernel: Any,
    *,
    sample_weight: Any = None,
    caller: str,
    n_jobs: int | None = None,
    gamma: Any = None,
    **params: Any,
) -> tuple[Kernel, Source]:
    """The kernel with all its numbers, and the rows it works on; X is checked."""
    weights = None
    if sample_weight is not None:
        weights = _weights(sample_weight, X)
    if isinstance(kernel, str) and kernel == "precomputed":
        kernel = as_kernel(kernel, gamma=gamma, caller=caller, **params)
    if isinstance(kernel, Precomputed):
        matrix = _square(X)
        return Precomputed(matrix), RowNumbers(matrix.shape[0], weights)
    source = as_source(X, weights)
    numeric = not isinstance(source, Objects)
    if isinstance(gamma, str) and isinstance(kernel, str) and numeric:
        gamma = width_from_data(gamma, kernel, source, Threads(n_jobs))
    resolved = as_kernel(
        kernel, n_features=source.n_features, gamma=gamma, caller=caller, **params
    )
    if not numeric and not resolved.any_rows:
        raise ValueError(
            f"The kernel {resolved} needs rows of numbers, but X holds "
            f"{type(source.take(np.arange(1))[0]).__name__} values. Encode them as "
            "numbers, or pass a kernel for such rows: a callable of two of them."
        )
    return resolved, source


def _square(X: Any) -> Any:
    if isinstance(X, Dense):
        X = X.X
    if isinstance(X, Source) or sp.issparse(X):
        raise ValueError("A precomputed kernel must be a dense square array.")
    X = X if arrays.is_array(X) else np.asarray(X)
    if X.ndim != 2 or X.shape[0] != X.shape[1]:
        raise ValueError(
            f"kernel='precomputed' takes the square matrix of k(x, y) for all pairs of "
            f"training rows; X has shape {tuple(X.shape)}."
        )
    return X


def _weights(sample_weight: Any, X: Any) -> np.ndarray:
    n = (
        X.n_rows
        if isinstance(X, Source)
        else X.shape[0]
        if hasattr(X, "shape")
        else len(X)
    )
    weights = _check_sample_weight(sample_weight, np.empty((n, 1)), dtype=np.float64)
    if np.any(weights < 0) or not np.any(weights > 0):
        raise ValueError(
            "sample_weight must be >= 0 for every row and > 0 for at least one; a row "
            "of weight w counts as w rows."
        )
    return weights


def check_namespace(X: Any, fitted: Any, method: str) -> None:
    """New rows must come in the array library that the estimator was fitted in."""
    if not arrays.is_block(X) or not arrays.is_block(fitted):
        return
    given, expected = arrays.namespace(X), arrays.namespace(fitted)
    if given is not expected:
        raise ValueError(
            f"Inputs passed to {method} must use the same namespace as those passed to "
            f"fit(): {given.__name__} was given, and {expected.__name__} is expected. "
            "Convert X, or fit again."
        )


def check_count(value: Any, name: str, *, optional: bool = False) -> int | None:
    """A whole number >= 1, or None where that is allowed."""
    if value is None and optional:
        return None
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < 1:
        allowed = "a whole number >= 1" + (" or None" if optional else "")
        raise ValueError(f"{name}={value!r} is not allowed; {name} must be {allowed}.")
    return int(value)


@dataclass(frozen=True)
class Options:
    """What a sampler may be told; None leaves its default."""

    ridge: float | None = None
    delta: float | None = None
    constants: str | None = None
    max_trace_error: float | None = None

    def __post_init__(self) -> None:
        check_tolerance(self.max_trace_error)
        if self.max_trace_error is not None and self.ridge is not None:
            raise ValueError(
                f"ridge={self.ridge!r} and max_trace_error={self.max_trace_error!r} "
                "both say how many landmarks there are to be; give one of them."
            )


def choose(
    kernel: Kernel,
    source: Source,
    n_landmarks: int | None,
    sampler: Any,
    options: Options,
    *,
    random_state: Any,
    engine: Engine,
) -> Landmarks:
    """Landmarks by a sampler, timed; rows of weight 0 are left out."""
    chosen_by = as_sampler(
        sampler, ridge=options.ridge, delta=options.delta, constants=options.constants
    )
    begun = time.perf_counter()
    rows = None
    candidates = source
    weights = None if isinstance(chosen_by, GivenRows) else source.weights
    if weights is not None and not np.all(weights > 0):
        rows = np.flatnonzero(weights)
        candidates = Subset(source, rows)
    seed = seed_of(random_state)
    if options.max_trace_error is not None:
        landmarks = until(
            growth_of(chosen_by, options.max_trace_error),
            kernel,
            candidates,
            options.max_trace_error,
            n_landmarks,
            seed=seed,
            engine=engine,
        )
    else:
        landmarks = chosen_by(kernel, candidates, n_landmarks, seed=seed, engine=engine)
    if not isinstance(landmarks, Landmarks):
        raise TypeError(
            f"The sampler {sampler!r} returned {type(landmarks).__name__}; it must "
            "return nystrom.landmarks.Landmarks."
        )
    changes: dict[str, Any] = {"seconds": time.perf_counter() - begun}
    if rows is not None and landmarks.indices is not None:
        changes |= {"indices": rows[landmarks.indices], "n_rows": source.n_rows}
    return landmarks.updated(**changes)


def warn_about(landmarks: Landmarks) -> None:
    """The warnings a user should see once: an indefinite kernel, a cap reached."""
    if landmarks.indefinite:
        warn_indefinite(
            landmarks.kernel,
            "the landmarks were not chosen by its scores, and its negative part is "
            "dropped",
        )
    asked, error = landmarks.max_trace_error, landmarks.error
    if asked is not None and error is not None and error.value > asked:
        warn(
            f"max_trace_error={asked:.4g} was not reached: {len(landmarks)} landmarks, "
            f"of rank {landmarks.rank}, have relative trace error {error}. Raise the "
            "limit on their number, pass None for none, or allow a larger error."
        )
    if landmarks.n_wanted is not None:
        reached = (
            f" Relative trace error: {landmarks.error}." if landmarks.error else ""
        )
        warn(
            f"ridge={landmarks.ridge:.4g} asks for about {landmarks.n_wanted} "
            f"landmarks, more than the {len(landmarks)} allowed.{reached} Raise the "
            "limit, or pass None for none."
        )


def warn_indefinite(kernel: Kernel, consequence: str) -> None:
    """The warning that names the kernel, and says what follows."""
    warn(f"The kernel {kernel} is not positive semi-definite: {consequence}.")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """A warning that points at the user's own line, not at ours or scikit-learn's."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
        ("nystrom", "sklearn")
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
