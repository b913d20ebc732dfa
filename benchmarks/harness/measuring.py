"""Seconds, peak memory, threads and versions."""

from __future__ import annotations

import ctypes
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from threadpoolctl import threadpool_limits

import nystrom

STATUS = Path("/proc/self/status")


def versions() -> dict[str, object]:
    """What every row tells of the machine's software."""
    return {
        "nystrom": nystrom.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }


def timed(f: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds that f takes, and what it returns."""
    begun = time.perf_counter()
    result = f()
    return time.perf_counter() - begun, result


@contextmanager
def threads(n: int) -> Iterator[None]:
    """BLAS and OpenMP with n threads; n_jobs=None of this package follows them."""
    with threadpool_limits(n):
        yield


@dataclass
class Peak:
    """The most memory while the block ran, above that before it; None off Linux."""

    mb: float | None = None


@contextmanager
def peak_memory(*, mapped: bool = False) -> Iterator[Peak]:
    """Exact, by the kernel's high-water mark.

    With `mapped`, pages of files must not count, and only the high-water mark of all
    pages is kept by the kernel: anonymous pages are looked at every 5 ms instead.
    """
    peak = Peak()
    if not STATUS.exists():
        yield peak
        return
    ctypes.CDLL(None).malloc_trim(0)  # or freed pages would hide new ones
    if not mapped:
        before = _status("VmRSS:")
        Path("/proc/self/clear_refs").write_text("5")  # resets the mark
        yield peak
        peak.mb = _status("VmHWM:") - before
        return
    before, seen, done = _status("RssAnon:"), [0.0], threading.Event()

    def look() -> None:
        while not done.wait(0.005):
            seen[0] = max(seen[0], _status("RssAnon:"))

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()
    peak.mb = max(seen[0], _status("RssAnon:")) - before


def _status(name: str) -> float:
    """MB, of one line of the process's status."""
    lines = STATUS.read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024
