"""The engine a call runs on, and its one progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from numbers import Integral
from typing import Any, TypeVar

import numpy as np

from ..engines import (
    Bar,
    Engine,
    ProgressHook,
    Threads,
    as_engine,
    checkpointed,
    current,
    silent,
)
from ..engines.base import ProgressHooks, report_work, show_note
from ..engines.progress import WorkEstimate
from ..kernels import Kernel
from ..samplers import SpectralTolerance, StoppingRule
from ..samplers.cost import (
    TRACE_TOLERANCE_LANDMARKS,
    expected_evaluations,
    forecast,
)
from ..sources import Source
from ..sources.arrow import report_conversions

_current_bar: ContextVar[Bar | None] = ContextVar("nystrom_bar", default=None)
_F = TypeVar("_F", bound=Callable[..., Any])


#: Seconds that a method takes before it shows a bar. Fits have one from the beginning,
#: but searches call `predict` many times.
BAR_DELAY_SECONDS = 1.0


@contextmanager
def progress_bar(
    name: str,
    verbose: Any,
    delay: float = 0.0,
    work: tuple[float, int] = (1.0, 0),
) -> Iterator[Bar | None]:
    """If `verbose`, the bar of this call; of the one around it where there is one.

    `work` are passes, and selections of landmarks: see `WorkEstimate`.
    """
    check_verbose(verbose)
    if not verbose:
        yield None
    elif (outer_bar := _current_bar.get()) is not None:
        yield outer_bar
    else:
        with Bar(None, 30, name, delay, *work) as bar:
            token = _current_bar.set(bar)
            try:
                with report_conversions(bar):
                    yield bar
            finally:
                _current_bar.reset(token)


def with_progress_bar(method: _F) -> _F:
    """A method of an estimator that has one bar, if it is `verbose` and takes long."""

    @wraps(method)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        name = f"{type(self).__name__}.{method.__name__}"
        work = 3.0 if kwargs.get("return_std") else 1.0, 0
        with progress_bar(name, self.verbose, BAR_DELAY_SECONDS, work):
            return method(self, *args, **kwargs)

    return wrapper  # type: ignore[return-value]


def with_function_progress_bar(function: _F) -> _F:
    """A function that has one bar, if its own argument `verbose` says so."""

    @wraps(function)
    def wrapper(*args: Any, verbose: Any = 0, **kwargs: Any) -> Any:
        name = function.__name__
        work = (MODEL_PASSES[name], 1) if name in MODEL_PASSES else (1.0, 0)
        with progress_bar(name, verbose, work=work):
            return function(*args, verbose=verbose, **kwargs)

    return wrapper  # type: ignore[return-value]


def get_progress_bar(verbose: Any) -> Bar | None:
    """The bar of the call that is running, if `verbose`; else one for each pass."""
    check_verbose(verbose)
    return (_current_bar.get() or Bar()) if verbose else None


def check_verbose(verbose: Any) -> None:
    """0 or more; None is as quiet as 0."""
    if verbose is None:
        return
    if not isinstance(verbose, (Integral, np.bool_)) or verbose < 0:
        raise ValueError(
            f"verbose={verbose!r} is not allowed; 0 is quiet and 1 shows a bar."
        )


def active_engine(source: Source | None = None) -> Engine | None:
    """The engine that was named, else the one where the rows are at home."""
    if current() is None and source is not None and source.default_engine is not None:
        return as_engine(source.default_engine)
    return current()


def resolve_engine(
    kernel: Kernel,
    n_jobs: int | None,
    verbose: Any,
    *hooks: ProgressHook,
    source: Source | None = None,
) -> Engine:
    """The engine in use, else threads; with hooks, and the call's bar if `verbose`.

    A Python function of two rows holds the interpreter and may not expect to be called
    from several threads: it gets one, unless `n_jobs` asks for more.
    """
    bar = get_progress_bar(verbose)
    engine = active_engine(source)
    if engine is None:
        engine = Threads(1 if n_jobs is None and kernel.traits.costly else n_jobs)
    engine = checkpointed(engine)
    hooks = hooks if bar is None else (*hooks, bar)
    return engine.with_progress(ProgressHooks(*hooks)) if hooks else engine


#: Passes over all rows that follow the selection of landmarks, about; spectral
#: embeddings, k-means and logistic regression find their number on the way.
MODEL_PASSES: dict[str, float] = {
    "select_landmarks": 0.0,
    "KernelCCA": 1.5,  # for either view
    "KernelKMeans": 10.0,
    "KernelLogisticRegression": 6.0,
    "KernelRidgeClassifier": 1.5,
    "KernelRidgeClassifierCV": 2.0,
    "spectral_embedding": 3.0,
}
#: The same of conjugate gradients; and widths that a search with gammas="auto" tries.
CG_PASSES, N_DEFAULT_GAMMAS = 15.0, 5
#: Steps that a fit is reported in to scikit-learn's callbacks.
N_CALLBACK_STEPS = 100


def model_work(estimator: Any, passes: float | None = None) -> tuple[float, int]:
    """Passes after each selection of landmarks in a fit, and how many selections."""
    names = [cls.__name__ for cls in type(estimator).__mro__]
    if passes is None:
        known = (MODEL_PASSES[name] for name in names if name in MODEL_PASSES)
        uses_cg = getattr(estimator, "solver", None) == "cg"
        passes = CG_PASSES if uses_cg else next(known, 1.0)
    gammas = getattr(estimator, "gammas", None)
    if isinstance(gammas, str):  # "auto"
        return passes, N_DEFAULT_GAMMAS
    n_gammas = len(gammas) if isinstance(gammas, Sized) else 1
    return passes, 2 if "KernelCCA" in names else max(1, n_gammas)


def announce_selection(
    sampler: Any,
    kernel: Kernel,
    source: Source,
    stopping_rule: StoppingRule,
    engine: Engine,
) -> None:
    """Report the work ahead, and for λ a forecast to read."""
    if engine.progress is silent:
        return
    n, size = source.n_rows, getattr(stopping_rule, "n_landmarks", None)
    if isinstance(stopping_rule, SpectralTolerance):
        delta = getattr(sampler, "proven_delta", None)
        estimate = forecast(kernel, source, stopping_rule, delta, engine)
        show_note(engine.progress, str(estimate))
        size = estimate.n_landmarks
    size = min(n, size or TRACE_TOLERANCE_LANDMARKS)
    selection = expected_evaluations(sampler, stopping_rule, n, size)
    report_work(engine.progress, "expect", selection, n * size)


class CallbackTask:
    """A fit as a task of scikit-learn's callbacks, in steps of one per cent.

    Steps are named after the pass that runs. `progress` is an engine's hook; `end`
    comes after the fit.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, work: tuple[float, int]) -> None:
        self.estimator, self.X, self.y = estimator, X, y
        self.root: Any = None
        self.n_steps = 0
        has_callbacks = hasattr(estimator, "_skl_callbacks")
        if has_callbacks or hasattr(estimator, "_parent_callback_ctx"):
            self.work = WorkEstimate(*work)
            self.begin_pass, self.expect = self.work.begin_pass, self.work.expect
            self.root = estimator._init_callback_context(max_subtasks=N_CALLBACK_STEPS)
            self.root.call_on_fit_task_begin(estimator=estimator, X=X, y=y)

    @property
    def hooks(self) -> tuple[ProgressHook, ...]:
        """The progress hooks for the engine: none without callbacks."""
        return () if self.root is None else (self,)

    def __call__(self, stage: str, done: int, total: int) -> None:
        """The hook of engines."""
        self.work.tell(stage, done, total)
        self._report_steps()

    def count(self, evaluations: float) -> None:
        """So many kernel evaluations more, outside of passes."""
        self.work.count(evaluations)
        self._report_steps()

    def end(self) -> None:
        """The fit is done."""
        if self.root is not None:
            self.root.call_on_fit_task_end(estimator=self.estimator, X=self.X, y=self.y)

    def _report_steps(self) -> None:
        while self.n_steps < int(N_CALLBACK_STEPS * self.work.share):
            self.n_steps += 1
            step = self.root.subcontext(task_name=self.work.stage)
            step.call_on_fit_task_begin(estimator=self.estimator)
            step.call_on_fit_task_end(estimator=self.estimator)
