"""What becomes of memory that a tile has freed: kept for the next one.

Dask's nannies have glibc hand back all that is freed at once. Every tile then gets new
pages, and to be given those may take longer than to compute what goes into them.
"""

from __future__ import annotations

import ctypes
import sys

#: glibc's numbers for the two options, and the bytes below which memory is not mapped
#: by itself, and up to which what is free at the end is kept.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
MAPPED, KEPT = 2**26, 2**27


def keep_freed_memory() -> None:
    """Up to 128 MB in this process, where its memory is glibc's."""
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, MAPPED)
        mallopt(M_TRIM_THRESHOLD, KEPT)
