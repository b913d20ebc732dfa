"""How long a small piece of work takes, to say how long a large one will."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What it returns, and the seconds that it took."""
    begun = time.perf_counter()
    result = work()
    return result, time.perf_counter() - begun
