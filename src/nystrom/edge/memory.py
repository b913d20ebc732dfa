"""What is said where memory ran out: what was wanted, and what takes less."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def explaining_memory(caller: str) -> Iterator[None]:
    """Let a MemoryError say what would help."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        # Python's own words where there is no room for the stack of a thread.
        if isinstance(error, RuntimeError) and "start new thread" not in str(error):
            raise
        what = f": {error}" if str(error) else ""
        raise MemoryError(
            f"{caller} ran out of memory{what.rstrip('.')}. Fewer landmarks take less, "
            "by their square; so do fewer threads (n_jobs=1), each of which has blocks "
            "of its own, rows in float32, and rows that stay in a file "
            "(nystrom.sources.open)."
        ) from error
