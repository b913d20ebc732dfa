"""The engine that a call runs on."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from ..engines import Bar, Engine, Hook, Threads, as_engine, checkpointed, current
from ..kernels import Kernel
from ..sources import Source


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
    """The engine in use, else threads; with a bar if `verbose`, and any further hooks.

    A Python function of two rows holds the interpreter and may not expect to be called
    from several threads: it gets one, unless `n_jobs` asks for more.
    """
    _check_verbose(verbose)
    engine = engine_in_use(source)
    if engine is None:
        engine = Threads(1 if n_jobs is None and kernel.traits.costly else n_jobs)
    engine = checkpointed(engine)
    hooks = (*hooks, Bar()) if verbose else hooks
    if not hooks:
        return engine

    def all_hooks(stage: str, done: int, total: int) -> None:
        for hook in hooks:
            hook(stage, done, total)

    return engine.telling(all_hooks)


def _check_verbose(verbose: Any) -> None:
    if verbose is None:  # as quiet as 0
        return
    if not isinstance(verbose, (Integral, np.bool_)) or verbose < 0:
        raise ValueError(
            f"verbose={verbose!r} is not allowed; 0 is quiet and 1 shows a bar."
        )
