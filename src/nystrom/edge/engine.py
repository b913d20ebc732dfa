"""The engine that a call runs on."""

from __future__ import annotations

from typing import Any

from ..engines import Engine, Hook, Threads, as_engine, checkpointed, current
from ..engines.progress import Followers
from ..kernels import Kernel
from ..sources import Source
from .showing import bar_for


def engine_in_use(source: Source | None = None) -> Engine | None:
    """The engine that was named, else the one where the rows are at home."""
    if current() is None and source is not None and source.home is not None:
        return as_engine(source.home)
    return current()


def engine_for(
    kernel: Kernel,
    n_jobs: int | None,
    verbose: Any,
    *hooks: Hook,
    source: Source | None = None,
) -> Engine:
    """The engine in use, else threads; with hooks, and the call's bar if `verbose`.

    A Python function of two rows holds the interpreter and may not expect to be called
    from several threads: it gets one, unless `n_jobs` asks for more.
    """
    bar = bar_for(verbose)
    engine = engine_in_use(source)
    if engine is None:
        engine = Threads(1 if n_jobs is None and kernel.traits.costly else n_jobs)
    engine = checkpointed(engine)
    hooks = hooks if bar is None else (*hooks, bar)
    return engine.telling(Followers(*hooks)) if hooks else engine
