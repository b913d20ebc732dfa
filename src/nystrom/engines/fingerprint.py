"""Whether two runs are the same: what the rows of a pass are known by."""

from __future__ import annotations

from typing import Any

from ..sources import Source
from ..sources.fingerprint import digest, seen_rows

__all__ = ["digest", "fingerprint"]


def fingerprint(source: Source) -> str:
    """What the rows, weights and targets of a source are known by.

    Its own `fingerprint()` where it has one, as files do; a view of another source is
    that source and what the view adds to it.
    """
    own, inner = getattr(source, "fingerprint", None), getattr(source, "source", None)
    state = dict(vars(source))
    given = state.get("_weights"), state.get("targets")
    rows: Any
    if callable(own):
        rows = str(own())
    elif isinstance(inner, Source):
        rows = fingerprint(inner), {k: v for k, v in state.items() if k != "source"}
    else:
        rows = source.take(seen_rows(source.n_rows, 8 * (source.n_features or 1)))
    return digest(source.n_rows, source.n_features, rows, given)
