"""Chunks that were decoded last, shared by all threads.

An engine asks for tiles of 1024 rows, a file is decoded in chunks of many more: each is
decoded once, by the thread that is first, while others that want it wait.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

import numpy as np

#: Bytes that are kept, and how many chunks at least, whatever their size: a tile may
#: lie across two, and targets may be a chunk of their own.
MOST_BYTES, LEAST_CHUNKS = 2**27, 4


class _Chunk:
    """A chunk, or the promise of one."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.values: np.ndarray | None = None


class Recent:
    """A few chunks by what they are of; the one used longest ago is forgotten first."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._chunks: OrderedDict[Hashable, _Chunk] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, decode: Callable[[], np.ndarray]) -> np.ndarray:
        """The values of a chunk, decoded if they are not here."""
        with self._lock:
            chunk = self._chunks.setdefault(key, _Chunk())
            self._chunks.move_to_end(key)
        with chunk.lock:
            if chunk.values is None:
                chunk.values = decode()
                self._forget_some()
            return chunk.values

    def _forget_some(self) -> None:
        with self._lock:
            sizes = {
                key: 0 if chunk.values is None else chunk.values.nbytes
                for key, chunk in self._chunks.items()
            }
            total = sum(sizes.values())
            for key in list(sizes)[:-LEAST_CHUNKS]:
                if total <= MOST_BYTES:
                    break
                total -= sizes[key]
                del self._chunks[key]


RECENT = Recent()
# A child that is forked while a lock is held would wait for it for ever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=RECENT.clear)
