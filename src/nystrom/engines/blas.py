"""How many threads BLAS may use, and the limit of one thread while our own threads
work.

NumPy and SciPy each load a BLAS; threadpoolctl limits both. The limit is one number
per process, so overlapping passes share it: the first sets it and the last restores
it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from numbers import Integral
from typing import Any

import joblib
import scipy.linalg  # noqa: F401  (loads SciPy's BLAS before the libraries are listed)
from joblib.parallel import get_active_backend
from threadpoolctl import OpenBLASController, ThreadpoolController

_lock = threading.Lock()
_holders: set[object] = set()  # the passes that hold BLAS at one thread
_saved_limits: list[
    tuple[Any, int]
] = []  # each library, and its threads outside of them


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def available_blas_threads() -> int:
    """As many threads as BLAS may use now: few inside joblib's or Dask's workers."""
    with _lock:
        if _holders:
            counts = [count for _, count in _saved_limits]
        else:
            counts = [library.num_threads for library in _controller().lib_controllers]
    return max(counts, default=os.cpu_count() or 1)


def _take_control() -> None:
    """Let this thread set the limit: threadpoolctl ties it to the first that did.

    Passes share one limit, so the thread that ends the last may not be the one that
    began the first. (threadpoolctl before 3.7 has no such tie.)
    """
    release = getattr(OpenBLASController, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)


@cache
def _n_cores(count: Callable[[], int]) -> int:
    """The cores of this process, counted once: joblib reads files of the system."""
    return count()


def resolve_n_jobs(n_jobs: int | None) -> int:
    """The number of threads that scikit-learn's `n_jobs` stands for.

    None: as `joblib.parallel_config` says, else as many as BLAS may use. joblib counts
    the cores that a container's quota allows.
    """
    if n_jobs is None:
        _, n_jobs = get_active_backend()
    if n_jobs is None:
        return min(available_blas_threads(), _n_cores(joblib.cpu_count))
    is_int = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    if not is_int or n_jobs == 0:
        raise ValueError(
            f"n_jobs={n_jobs!r} is not allowed; use None (as joblib.parallel_config "
            "says, else as many threads as BLAS), a whole number >= 1, or -1 for all "
            "cores."
        )
    if n_jobs > 0:
        return int(n_jobs)
    return max(1, _n_cores(joblib.cpu_count) + 1 + int(n_jobs))


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """BLAS at one thread, also while other passes begin and end."""
    holder = object()
    try:
        _acquire_limit(holder)
        yield
    finally:
        try:
            _release_limit(holder)
        except BaseException:  # Ctrl-C just here must not leave BLAS at one thread
            _release_limit(holder)
            raise


def _acquire_limit(holder: object) -> None:
    with _lock:
        if _holders:
            _holders.add(holder)
            return
        libraries = _controller().lib_controllers
        _saved_limits[:] = [(library, library.num_threads) for library in libraries]
        _holders.add(holder)  # what is changed from here on, letting go undoes
        _take_control()
        for library, _ in _saved_limits:
            library.set_num_threads(1)


def _release_limit(holder: object) -> None:
    with _lock:
        if _holders == {holder}:
            _restore_limits()
        _holders.discard(holder)


def _restore_limits() -> None:
    _take_control()
    for library, count in _saved_limits:
        library.set_num_threads(count)
    _take_control()  # and nobody keeps it


def _reset_after_fork() -> None:
    """In a process just forked: passes of other threads are not here to end."""
    global _lock
    _lock = threading.Lock()
    if _holders:
        _restore_limits()
        _holders.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


#: Matrices of so many rows are worth more than one BLAS thread.
MIN_THREADED_MATRIX_ROWS = 2000


def blas_limit_for_size(size: int) -> AbstractContextManager:
    """Around the algebra of `size` × `size` matrices: one thread, unless large.

    Small ones gain nothing from more, and on a machine that is busy with other work
    they lose: a thread that waits for another spins. One eigendecomposition of 300 rows
    took 14 s instead of 30 ms.
    """
    return nullcontext() if size >= MIN_THREADED_MATRIX_ROWS else single_threaded_blas()
