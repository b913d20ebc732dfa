"""The seed that all tests run with; what contracts run over is in `lists.py`."""

from __future__ import annotations

import os
import signal

# Before SciPy is imported: scikit-learn's array API checks need it.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=30)
settings.register_profile("random", deadline=None, max_examples=300)
settings.load_profile(os.environ.get("NYSTROM_HYPOTHESIS", "fixed"))

# What begins in the background ignores Ctrl-C, and so would all that tests begin.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_generate_tests(metafunc):
    """`seed`: 42, or all of NYSTROM_SEEDS=0-99; a failure shows its seed."""
    if "seed" in metafunc.fixturenames:
        wanted = os.environ.get("NYSTROM_SEEDS", "42")
        first, _, last = wanted.partition("-")
        metafunc.parametrize("seed", range(int(first), int(last or first) + 1))


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)
