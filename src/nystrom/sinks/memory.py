"""A sink that is one array, allocated once."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from .. import _arrays as arrays
from .._arrays import Array


class Sink(Protocol):
    """Takes rows from `start` on."""

    def put(self, start: int, rows: Array) -> None:
        """Keep `rows` as rows `start`, `start + 1`, …"""


class ArraySink:
    """One preallocated array; on the host in float64 unless `like` says otherwise."""

    def __init__(self, shape: tuple[int, ...], like: Any = None, dtype: Any = None):
        if like is None or arrays.namespace(like) is np:
            self.array = np.empty(shape, dtype=dtype or np.float64)
        else:
            xp = arrays.namespace(like)
            self.array = xp.empty(
                shape, dtype=dtype or like.dtype, device=arrays.device(like)
            )

    def put(self, start: int, rows: Array) -> None:
        self.array[start : start + rows.shape[0], ...] = rows
