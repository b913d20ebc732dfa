"""Ctrl-C during a fit leaves nothing behind: no half model, no threads, no limits."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_info

from nystrom import Nystroem, kernels

if not hasattr(signal, "pthread_kill"):
    pytest.skip("a thread cannot be sent a signal here", allow_module_level=True)

X = np.random.default_rng(0).standard_normal((6000, 2))


@pytest.fixture(autouse=True)
def interruptible():
    """Python's own handler, which a process in the background lacks."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    limits = blas_limits()
    yield
    assert blas_limits() == limits
    # A thread that was just being started ends by itself; a stuck one does not.
    for thread in threading.enumerate():
        if thread.name.startswith("nystrom"):
            thread.join(timeout=5)
            assert not thread.is_alive()


def blas_limits():
    return sorted((info["filepath"], info["num_threads"]) for info in threadpool_info())


def press_ctrl_c():
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


class Linear:
    """Xᵀy on blocks; presses Ctrl-C in its call number `last`."""

    def __init__(self, last=None):
        self.calls, self.last = 0, last
        self.lock = threading.Lock()
        self.threads = set()

    def __call__(self, X, Y):
        with self.lock:
            self.calls += 1
            here = self.calls == self.last
            self.threads.add(threading.current_thread().name)
        if here:
            press_ctrl_c()
            time.sleep(0.02)
        # Slow enough for the engine to think threads worth starting.
        time.sleep(0.002)
        return X @ Y.T

    def kernel(self):
        return kernels.blockwise(self, diag=lambda X: np.sum(X * X, axis=1))


def estimator(kernel, **options):
    return Nystroem(kernel, n_components=5, random_state=0, **options)


def number_of_calls(method, n_jobs):
    whole = Linear()
    getattr(estimator(whole.kernel(), n_jobs=n_jobs), method)(X)
    return whole.calls, whole.threads


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_at_any_time_during_the_fit(method, n_jobs):
    calls, threads = number_of_calls(method, n_jobs)
    assert calls > 10
    assert any(name.startswith("nystrom") for name in threads) == (n_jobs == 2)
    for last in range(1, calls + 1, 2):
        interrupted = estimator(Linear(last).kernel(), n_jobs=n_jobs)
        before = set(vars(interrupted))
        with pytest.raises(KeyboardInterrupt):
            getattr(interrupted, method)(X)
        assert set(vars(interrupted)) - before <= {"n_features_in_"}
        with pytest.raises(NotFittedError):
            interrupted.transform(X)


def test_pairwise_kernel_stops_soon():
    """A function of two rows is left between two calls, not at the end of a tile."""
    calls = []

    def product(x, y):
        calls.append(1)
        if len(calls) == 100:
            press_ctrl_c()
        return float(x @ y)

    with pytest.raises(KeyboardInterrupt):
        estimator(product).fit(X)
    assert len(calls) < 200


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_signal_at_any_moment_leaves_all_or_nothing(tmp_path, seed):
    """SIGINT and SIGTERM, in fits and while files are written; no end is a fault too.

    `NYSTROM_MOMENTS=1000` tries as many moments.
    """
    n_moments = os.environ.get("NYSTROM_MOMENTS", "21")
    runs = Path(__file__).with_name("signalled_runs.py")
    done = subprocess.run(
        [sys.executable, runs, tmp_path, n_moments, str(seed)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == []
    met = found["met"]
    assert met.get("fit", 0) + met.get("save", 0) + met.get("write", 0) > 0, met
