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
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable, decode: Callable[[], np.ndarray]) -> np.ndarray:
        """The values of a chunk, decoded if they are not here."""
        with self._lock:
            chunk = self._chunks.setdefault(key, _Chunk())
            self._chunks.move_to_end(key)
        with chunk.lock:
            values = chunk.values
            if values is None:
                values = decode()
                self._keep(key, chunk, values)
            return values

    def _keep(self, key: Hashable, chunk: _Chunk, values: np.ndarray) -> None:
        with self._lock:
            if self._chunks.get(key) is not chunk:
                return  # forgotten while it was decoded
            chunk.values = values
            self._bytes += values.nbytes
            while self._bytes > MOST_BYTES and len(self._chunks) > LEAST_CHUNKS:
                _, oldest = self._chunks.popitem(last=False)
                self._bytes -= 0 if oldest.values is None else oldest.values.nbytes


RECENT = Recent()
# A child that is forked while a lock is held would wait for it for ever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=RECENT.clear)
