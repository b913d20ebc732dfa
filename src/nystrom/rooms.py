"""Memory that is used again, tile after tile.

A tile makes a few arrays of some MB and forgets them. The system takes such memory back
at once, and to be given clear pages for the next tile may take a fifth of a pass. A
thread that works on tiles keeps what they have freed instead.

Lifetimes are what they always are: an array that anybody still holds, in this thread or
another, is not given out again.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

#: Bytes of arrays that are worth keeping: smaller ones cost nothing to be given, and of
#: larger ones a few would be most of the memory.
LEAST, MOST = 2**18, 2**26
#: Arrays that a thread keeps.
MOST_KEPT = 16


class _Kept(threading.local):
    buffers: list[np.ndarray] | None = None  # None: nothing is kept


_kept = _Kept()


def keep() -> None:
    """Keep what is freed from now on, for as long as this thread lives."""
    _kept.buffers = []


@contextmanager
def kept() -> Iterator[None]:
    """Keep what is freed in this thread until the end of the block."""
    before, _kept.buffers = _kept.buffers, []
    try:
        yield
    finally:
        _kept.buffers = before


def empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """As `np.empty`, of memory that has been used before where there is some."""
    buffers, dtype = _kept.buffers, np.dtype(dtype)
    n_bytes = prod(shape) * dtype.itemsize
    if buffers is None or not LEAST <= n_bytes <= MOST:
        return np.empty(shape, dtype)
    buffer = _free(buffers, n_bytes)
    return buffer[:n_bytes].view(dtype).reshape(shape)


def _free(buffers: list[np.ndarray], n_bytes: int) -> np.ndarray:
    """Bytes that nobody holds, at least so many and not far more; new ones if none."""
    free = [i for i in range(len(buffers)) if _references(buffers, i) == _UNUSED]
    for i in free:
        if n_bytes <= buffers[i].nbytes <= 1.25 * n_bytes:
            return buffers[i]
    if len(buffers) >= MOST_KEPT:  # of another shape, or all still in use
        del buffers[free[0] if free else 0]
    buffers.append(np.empty(n_bytes, np.uint8))
    return buffers[-1]


def _references(buffers: list[np.ndarray], i: int) -> int:
    """How many hold a buffer: every view of it does, and views of views."""
    return sys.getrefcount(buffers[i])


# What that is of a buffer in a list alone differs between Pythons, so it is counted.
_UNUSED = _references([np.empty(1)], 0) if hasattr(sys, "getrefcount") else -1
