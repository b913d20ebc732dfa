"""A few letters that tell one source from another."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import numpy as np

from .. import _arrays as arrays

#: Rows that are looked at where all would be too many.
SEEN_ROWS = 16


def digest(*parts: Any) -> str:
    """16 hexadecimal digits of some values, which print as what they are."""
    seen = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            seen.update(f"{part.shape}{part.dtype}".encode())
            seen.update(np.ascontiguousarray(part).tobytes())
        else:
            seen.update(repr(part).encode())
        seen.update(b"|")
    return seen.hexdigest()[:16]


def seen_rows(n_rows: int) -> np.ndarray:
    """The numbers of the rows that are looked at: evenly spaced, the last included."""
    m = min(n_rows, SEEN_ROWS)
    return np.unique(np.linspace(0, n_rows - 1, m).astype(np.int64)) if m else _NONE


def of_rows(rows: Any) -> Any:
    """Rows of any kind, as `digest` takes them."""
    if isinstance(rows, tuple):
        return tuple(digest(of_rows(part)) for part in rows)
    if arrays.is_block(rows):
        return arrays.to_host(rows)
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(rows))  # another in every process


_NONE = np.empty(0, dtype=np.int64)
