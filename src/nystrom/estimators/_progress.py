"""The engine a call runs on, and its one progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
)
from ..engines.base import ProgressHooks
from ..kernels import Kernel
from ..sources import Source

_current_bar: ContextVar[Bar | None] = ContextVar("nystrom_bar", default=None)
_F = TypeVar("_F", bound=Callable[..., Any])


#: Seconds that a method takes before it shows a bar. Fits have one from the beginning,
#: but searches call `predict` many times.
BAR_DELAY_SECONDS = 1.0


@contextmanager
def progress_bar(name: str, verbose: Any, delay: float = 0.0) -> Iterator[Bar | None]:
    """If `verbose`, the bar of this call; of the one around it where there is one."""
    check_verbose(verbose)
    if not verbose:
        yield None
    elif (outer_bar := _current_bar.get()) is not None:
        with outer_bar.part(0.5):
            yield outer_bar
    else:
        with Bar(name=name, patience=delay) as bar:
            token = _current_bar.set(bar)
            try:
                yield bar
            finally:
                _current_bar.reset(token)


def with_progress_bar(method: _F) -> _F:
    """A method of an estimator that has one bar, if it is `verbose` and takes long."""

    @wraps(method)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        name = f"{type(self).__name__}.{method.__name__}"
        with progress_bar(name, self.verbose, BAR_DELAY_SECONDS) as bar:
            if bar is not None:
                bar.expect(1)
            return method(self, *args, **kwargs)

    return wrapper  # type: ignore[return-value]


def with_function_progress_bar(function: _F) -> _F:
    """A function that has one bar, if its own argument `verbose` says so."""

    @wraps(function)
    def wrapper(*args: Any, verbose: Any = 0, **kwargs: Any) -> Any:
        with progress_bar(function.__name__, verbose):
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


#: Steps that each stage is reported in.
STEPS_PER_STAGE = 10


class CallbackTask:
    """The fit as a task, its stages as subtasks, each in ten steps.

    `progress` is an engine's hook; `begin` and `end` go around the fit.
    """

    def __init__(self, estimator: Any, X: Any, y: Any) -> None:
        self.estimator, self.X, self.y = estimator, X, y
        self.root: Any = None
        self.stage: Any = None
        self.name, self.steps = "", 0
        has_callbacks = hasattr(estimator, "_skl_callbacks")
        if has_callbacks or hasattr(estimator, "_parent_callback_ctx"):
            self.root = estimator._init_callback_context(max_subtasks=None)
            self.root.call_on_fit_task_begin(estimator=estimator, X=X, y=y)

    @property
    def hooks(self) -> tuple[ProgressHook, ...]:
        """The progress hooks for the engine: none where nobody listens."""
        return () if self.root is None else (self.progress,)

    def progress(self, stage: str, done: int, total: int) -> None:
        """Tell the callbacks how far a stage is."""
        if stage != self.name:
            self._end_stage()
            self.name, self.steps = stage, 0
            self.stage = self.root.subcontext(
                task_name=stage, max_subtasks=STEPS_PER_STAGE
            )
            self.stage.call_on_fit_task_begin(estimator=self.estimator)
        while self.steps < (
            STEPS_PER_STAGE * done // total if total else STEPS_PER_STAGE
        ):
            self.steps += 1
            step = self.stage.subcontext(task_name="rows")
            step.call_on_fit_task_begin(estimator=self.estimator)
            step.call_on_fit_task_end(estimator=self.estimator)

    def end(self) -> None:
        """The fit is done."""
        if self.root is not None:
            self._end_stage()
            self.root.call_on_fit_task_end(estimator=self.estimator, X=self.X, y=self.y)

    def _end_stage(self) -> None:
        if self.stage is not None:
            self.stage.call_on_fit_task_end(estimator=self.estimator)
            self.stage = None
