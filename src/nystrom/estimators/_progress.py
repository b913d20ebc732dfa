"""Around every call: its engine, its one progress bar, warnings, scikit-learn's
callbacks, and lazy results for Dask arrays.
"""

from __future__ import annotations

import copy
import sys
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import wraps
from inspect import signature
from numbers import Integral
from typing import Any, TypeVar

import numpy as np

from ..engines import Bar, Engine, Threads, as_engine, checkpointed, current, using
from ..engines.base import ProgressHooks, report_work
from ..engines.blas import blas_limit_for_size
from ..engines.context import set_variable
from ..engines.progress import PassBars, WorkEstimate, write_above_status_line
from ..kernels import Kernel
from ..samplers import SpectralTolerance, StoppingRule
from ..samplers.cost import TRACE_TOLERANCE_LANDMARKS, expected_evaluations, forecast
from ..sources import Source, is_dask
from ..sources.arrow import progress_hook
from ..sources.dask import as_dask_matrix, column_names
from ._inputs import check_feature_names_match

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's mixin."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:  # type: ignore[no-redef]
        """The method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "with_callbacks"]

#: The fit that is running, for scikit-learn's callbacks.
_callback_task: ContextVar[Any] = ContextVar("nystrom_callback_task", default=None)
_F = TypeVar("_F", bound=Callable[..., Any])


#: Seconds that a method takes before it shows a bar. Fits have one from the beginning,
#: but searches call `predict` many times.
BAR_DELAY_SECONDS = 1.0


@contextmanager
def call_context(
    name: str, verbose: Any, delay: float = 0.0, work: tuple[float, int] = (1.0, 0)
) -> Iterator[Bar | None]:
    """If `verbose`, the bar of this call; of the one around it where there is one.

    `work` are passes, and selections of landmarks: see `WorkEstimate`. A MemoryError
    says what would help.
    """
    is_number = isinstance(verbose, (Integral, np.bool_)) or verbose is None
    if not is_number or (verbose or 0) < 0:
        raise ValueError(
            f"verbose={verbose!r} is not allowed; 0 is quiet and 1 shows a bar."
        )
    try:
        if not verbose:
            yield None
        elif (outer_bar := progress_hook.get()) is not None:
            yield outer_bar
        else:
            bar = Bar(None, 30, name, delay, *work)
            with bar, set_variable(progress_hook, bar):
                yield bar
    except (MemoryError, RuntimeError) as error:
        # Python's own words where there is no room for the stack of a thread.
        is_other = isinstance(error, RuntimeError) and "new thread" not in str(error)
        if is_other or "ran out of memory" in str(error):  # a call inside has said it
            raise
        what = f": {error}" if str(error) else ""
        raise MemoryError(
            f"{name} ran out of memory{what.rstrip('.')}. Use fewer landmarks "
            "(memory grows with their square), fewer threads (n_jobs=1), rows "
            "in float32, or rows that stay in a file (nystrom.sources.open)."
        ) from error


def method_progress_bar(
    estimator: Any, method: str
) -> AbstractContextManager[Bar | None]:
    """The bar of a method, if it takes long."""
    name = f"{type(estimator).__name__}.{method}"
    return call_context(name, estimator.verbose, BAR_DELAY_SECONDS)


def method_of_rows(method: _F) -> _F:
    """A method of rows X: with a bar, or lazy where X is Dask's.

    Rows that are to be written somewhere (`out`) are not lazy, nor is the covariance of
    all rows.
    """

    @wraps(method)
    def wrapper(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if is_dask(X):
            given = signature(method).bind(self, X, *args, **options).arguments
            if given.get("out") is None and not given.get("return_cov"):
                return lazy_result(method.__name__, self, X, args, options)
        with method_progress_bar(self, method.__name__):
            return method(self, X, *args, **options)

    return wrapper  # type: ignore[return-value]


@contextmanager
def fit_context(
    estimator: Any, X: Any, y: Any, passes: float | None = None
) -> Iterator[None]:
    """Around every fit: callbacks are called, and a fit that fails leaves no trace.

    One bar shows all of it, `passes` of it after the landmarks are selected. BLAS has
    one thread where the landmarks are few, also outside of passes.
    """
    name, size = type(estimator).__name__, estimator._max_landmarks()
    if passes is None:
        uses_cg = getattr(estimator, "solver", None) == "cg"
        passes = CG_PASSES if uses_cg else estimator._model_passes
    work = passes, estimator._n_selections
    with call_context(name, getattr(estimator, "verbose", 0), work=work):
        callback_names = ("_skl_callbacks", "_parent_callback_ctx")
        has_callbacks = any(hasattr(estimator, name) for name in callback_names)
        task = CallbackTask(estimator, X, y, work) if has_callbacks else None
        state_before = dict(vars(estimator))
        blas_limit = nullcontext() if size is None else blas_limit_for_size(size)
        try:
            with set_variable(_callback_task, task), blas_limit:
                yield
        except BaseException:
            vars(estimator).clear()
            vars(estimator).update(state_before)
            raise
        if task is not None:
            task.end()


def active_engine(source: Source | None = None) -> Engine | None:
    """The engine that was named, else the one where the rows are at home."""
    if current() is None and source is not None and source.default_engine is not None:
        return as_engine(source.default_engine)
    return current()


def resolve_engine(
    kernel: Kernel, n_jobs: int | None, verbose: Any, source: Source | None = None
) -> Engine:
    """The engine in use, else threads; with the fit's callbacks and, if `verbose`, the
    bar of the call, or else one for each pass.

    A Python function of two rows holds the interpreter and may not expect to be called
    from several threads: it gets one, unless `n_jobs` asks for more.
    """
    engine = active_engine(source)
    if engine is None:
        engine = Threads(1 if n_jobs is None and kernel.traits.costly else n_jobs)
    engine = checkpointed(engine)
    bar = (progress_hook.get() or PassBars()) if verbose else None
    hooks = [hook for hook in (_callback_task.get(), bar) if hook is not None]
    return engine.with_progress(ProgressHooks(*hooks)) if hooks else engine


#: Passes over all rows that conjugate gradients make after the selection, about.
CG_PASSES = 15.0
#: Steps that a fit is reported in to scikit-learn's callbacks.
N_CALLBACK_STEPS = 100


def announce_selection(
    sampler: Any,
    kernel: Kernel,
    source: Source,
    stopping_rule: StoppingRule,
    engine: Engine,
) -> None:
    """Report the work ahead, and for λ a forecast to read."""
    n, size = source.n_rows, getattr(stopping_rule, "n_landmarks", None)
    if isinstance(stopping_rule, SpectralTolerance):
        delta = getattr(sampler, "proven_delta", None)
        estimate = forecast(kernel, source, stopping_rule, delta, engine)
        report_work(engine.progress, "note", str(estimate))
        size = estimate.n_landmarks
    size = min(n, size or TRACE_TOLERANCE_LANDMARKS)
    selection = expected_evaluations(sampler, stopping_rule, n, size)
    report_work(engine.progress, "expect", selection, n * size)


class CallbackTask(WorkEstimate):
    """A fit as a task of scikit-learn's callbacks, in steps of one per cent.

    Steps are named after the pass that runs. It is a hook of engines; `end` comes after
    the fit.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, work: tuple[float, int]) -> None:
        super().__init__(*work)
        self.estimator, self.X, self.y, self.n_steps = estimator, X, y, 0
        self.root = estimator._init_callback_context(max_subtasks=N_CALLBACK_STEPS)
        self.root.call_on_fit_task_begin(estimator=estimator, X=X, y=y)

    def __call__(self, stage: str, done: int, total: int) -> None:
        self.tell(stage, done, total)

    def count(self, evaluations: float) -> None:
        """So many kernel evaluations more, and the steps that they complete."""
        super().count(evaluations)
        while self.n_steps < int(N_CALLBACK_STEPS * self.share):
            self.n_steps += 1
            step = self.root.subcontext(task_name=self.stage)
            step.call_on_fit_task_begin(estimator=self.estimator)
            step.call_on_fit_task_end(estimator=self.estimator)

    def end(self) -> None:
        """The fit is done."""
        self.root.call_on_fit_task_end(estimator=self.estimator, X=self.X, y=self.y)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """A warning that points at the user's own line, not at ours or scikit-learn's."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
        ("nystrom", "sklearn")
    ):
        frame, level = frame.f_back, level + 1
    with write_above_status_line():  # not into the line of a bar
        warnings.warn(message, category, stacklevel=level)


def lazy_result(method: str, fitted: Any, X: Any, args: tuple, options: dict) -> Any:
    """What a method returns for rows, as a lazy Dask array.

    What is fitted now counts, also if the estimator is fitted anew before the result is
    computed.
    """
    from dask import delayed

    check_feature_names_match(column_names(X), fitted._fitted_names)
    fitted, X = copy.copy(fitted), as_dask_matrix(X, known_lengths=False)
    vars(fitted).pop("feature_names_in_", None)  # chunks are arrays, without names
    # One row tells what comes out, and is refused where all would be.
    prototypes, is_tuple = _call_method(
        fitted, method, _prototype_row(fitted, X), args, options
    )
    widths = [part.shape[1] if part.ndim == 2 else 1 for part in prototypes]
    bounds = np.cumsum([0, *widths])
    side_by_side = X.map_blocks(
        _call_on_chunk,
        # Once for all chunks.
        fitted=delayed(fitted, name=f"fitted-{uuid.uuid4().hex}"),
        method=method,
        args=args,
        options=options,
        width=int(bounds[-1]),
        dtype=np.result_type(*prototypes),
        chunks=(X.chunks[0], (int(bounds[-1]),)),
        meta=np.empty((0, 0), np.result_type(*prototypes)),
    )
    lazy = []
    for part, start, stop in zip(prototypes, bounds[:-1], bounds[1:], strict=True):
        columns = slice(start, stop) if part.ndim == 2 else start
        lazy.append(side_by_side[:, columns].astype(part.dtype))
    return tuple(lazy) if is_tuple else lazy[0]


def _prototype_row(fitted: Any, X: Any) -> np.ndarray:
    """A row as those of X: a landmark if there are such, since any kernel takes it."""
    landmarks = getattr(fitted, "landmarks_", None)
    points = getattr(landmarks, "points", None)
    if isinstance(points, np.ndarray) and points.shape[1:] == X.shape[1:]:
        return points[:1].astype(X.dtype)
    return np.zeros((1, X.shape[1]), X.dtype)


def _call_method(
    fitted: Any, method: str, rows: np.ndarray, args: tuple, options: dict
) -> tuple[list[np.ndarray], bool]:
    """What the method returns for some rows, and whether that is several arrays."""
    with using(Threads(1)):  # Dask has threads of its own
        result = getattr(fitted, method)(rows, *args, **options)
    is_tuple = isinstance(result, tuple)
    return [np.asarray(part) for part in (result if is_tuple else (result,))], is_tuple


def _call_on_chunk(
    rows: Any, fitted: Any, method: str, args: tuple, options: dict, width: int
) -> np.ndarray:
    """All that the method returns for the rows of a chunk, side by side."""
    if len(rows) == 0:  # of a chunk of unknown length
        return np.empty((0, width))
    parts, _ = _call_method(fitted, method, np.asarray(rows), args, options)
    return np.concatenate([part.reshape(len(rows), -1) for part in parts], axis=1)
