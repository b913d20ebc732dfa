"""Around every fit: callbacks, memory, BLAS's threads, and no half of a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from numbers import Integral
from typing import Any

from ..edge.memory import explaining_memory
from ..edge.showing import showing
from ..engines.blas import blas_threads_for
from .callbacks import CallbackTask


@contextmanager
def fitting(estimator: Any, X: Any, y: Any) -> Iterator[CallbackTask]:
    """Around every fit: callbacks are told, and a fit that fails leaves no trace.

    One bar shows all of it. BLAS has one thread where the landmarks are few, for all
    that is not a pass too.
    """
    name, verbose = type(estimator).__name__, getattr(estimator, "verbose", 0)
    with showing(name, verbose):
        task = CallbackTask(estimator, X, y)
        before = dict(vars(estimator))
        try:
            with explaining_memory(name), _blas_for(estimator):
                yield task
        except BaseException:
            vars(estimator).clear()
            vars(estimator).update(before)
            raise
        task.end()


def _blas_for(estimator: Any) -> AbstractContextManager:
    """BLAS's threads for matrices of as many rows as there may be landmarks."""
    most = getattr(estimator, estimator._size)
    sizes = most if isinstance(most, (list, tuple)) else [most]
    known = all(isinstance(size, Integral) for size in sizes)
    return blas_threads_for(max(sizes, default=0)) if known else nullcontext()
