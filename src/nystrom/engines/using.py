"""Which engine runs the passes of a block of code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from .adapting import as_engine
from .engine import Engine

_current: ContextVar[Engine | None] = ContextVar("nystrom_engine", default=None)


@contextmanager
def using(engine: Any) -> Iterator[Engine]:
    """Run all passes of a block of code on one engine.

    Estimators and functions make an engine of threads by their own `n_jobs` otherwise.

    Parameters
    ----------
    engine : Engine, distributed.Client or concurrent.futures.Executor
        What runs the passes; it decides about threads, and `n_jobs` has no say. A
        client stands for the workers of its Dask cluster, an executor for its own.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nystrom import Nystroem, engines
    >>> X, _ = load_iris(return_X_y=True)
    >>> with engines.using(engines.Threads(2)):
    ...     Z = Nystroem(n_components=20, random_state=0).fit_transform(X)
    >>> Z.shape
    (150, 20)
    """
    engine = as_engine(engine)
    before = _current.set(engine)
    try:
        yield engine
    finally:
        _current.reset(before)


def current() -> Engine | None:
    """The engine in use; None where none was named."""
    return _current.get()
