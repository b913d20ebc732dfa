"""The bytes of a text file from any place on, compressed by gzip or not."""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

#: Compressed bytes that are fed at a time.
FED = 2**14
#: Places where unpacking can begin anew: so many at most, at first so far apart. Each
#: holds a window of 32 kB.
MOST_PLACES, APART = 256, 2**20
#: A gzip file, with its checksum.
GZIP = 31


class PlainBytes:
    """A file as it is."""

    def __init__(self, path: str) -> None:
        self.path, self.size = path, os.path.getsize(path)

    def read(self, start: int, stop: int) -> bytes:
        """Bytes `start` to `stop`."""
        with open(self.path, "rb") as file:
            file.seek(start)
            return file.read(stop - start)


class UnpackedBytes:
    """What is in a gzip file, read from the nearest place before that is kept.

    gzip has no places to begin at, so one pass keeps what the unpacking knows at some;
    to read from anywhere then takes no more than what is between two of them. They do
    not travel: elsewhere the pass is made again.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._places: list[tuple[int, int, Any]] = []
        self._keep_places()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_places": [], "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    def read(self, start: int, stop: int) -> bytes:
        """Bytes `start` to `stop`."""
        stop = min(stop, self.size)
        if start >= stop:
            return b""
        with self._lock:
            if not self._places:
                self._keep_places()
            place, at, unpacking = next(
                kept for kept in reversed(self._places) if kept[0] <= start
            )
            unpacking = unpacking.copy()
        parts = []
        with open(self.path, "rb") as file:
            file.seek(at)
            for text, _, _ in _unpacked(file, unpacking):
                parts.append(text[max(0, start - place) : max(0, stop - place)])
                place += len(text)
                if place >= stop:
                    break
        return b"".join(parts)

    def _keep_places(self) -> None:
        """One pass; where places get too many, every other one is let go of."""
        kept, apart, place = [(0, 0, zlib.decompressobj(GZIP))], APART, 0
        with open(self.path, "rb") as file:
            for text, at, unpacking in _unpacked(file, zlib.decompressobj(GZIP)):
                place += len(text)
                if place - kept[-1][0] >= apart:
                    kept.append((place, at, unpacking.copy()))
                if len(kept) > MOST_PLACES:
                    kept, apart = kept[::2], 2 * apart
        self._places, self.size = kept, place


def _unpacked(file: BinaryIO, unpacking: Any) -> Iterator[tuple[bytes, int, Any]]:
    """(text, the place in the file after it, the state there), piece by piece."""
    packed, ended = b"", False
    while packed := packed or file.read(FED):
        if ended:  # another part may follow, as in `cat a.gz b.gz`, or zeros
            packed = packed.lstrip(b"\0")
            if not packed:
                continue
        text = unpacking.decompress(packed)
        ended, packed = unpacking.eof, unpacking.unused_data
        if ended:
            unpacking = zlib.decompressobj(GZIP)
        yield text, file.tell() - len(packed), unpacking
    if not ended:
        raise EOFError("the gzip data ends too early")
