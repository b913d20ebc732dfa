"""The seed that all tests run with; what contracts run over is in `lists.py`."""

import os
import signal
from collections import defaultdict

# Before SciPy is imported: scikit-learn's array API checks need it.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

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


def pytest_collection_modifyitems(config, items):
    """NYSTROM_IN_TURN=1: of each test's sets of parameters a few per seed, in turn.

    A hundred seeds with all parameters are a day's work. So they are three hours, in
    which every test has every seed, and every set of its parameters one in fifty.
    """
    if "NYSTROM_IN_TURN" not in os.environ:
        return
    functions = defaultdict(lambda: defaultdict(list))
    for item in items:
        if "seed" in getattr(item, "fixturenames", ()):
            given = {k: v for k, v in item.callspec.indices.items() if k != "seed"}
            functions[item.function][tuple(given.items())].append(item)
    kept = {
        item
        for sets in functions.values()
        for turn, alike in enumerate(sets.values())
        for item in alike
        if (item.callspec.params["seed"] - turn) % min(len(sets), 50) == 0
    }
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


@pytest.fixture
def one_blas_thread():
    """Many small matrices: threads inside BLAS only wait for each other."""
    from nystrom.engines import single_threaded_blas

    with single_threaded_blas():
        yield


@pytest.fixture
def one_thread():
    """Nor do threads inside scikit-learn's k-means."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of files have a few hundred rows: tiles lie across several of them."""
    from nystrom.sources import arrow, tabular

    monkeypatch.setattr(tabular, "MIN_CHUNK_VALUES", 500)
    monkeypatch.setattr(arrow, "CSV_BLOCK_BYTES", 20_000)
    tabular.CHUNK_CACHE.clear()
    tabular.TAKEN_ROWS.clear()
