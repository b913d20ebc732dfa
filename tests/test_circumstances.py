"""Fits where it is hard: side by side, in other processes, short of memory or disk."""

import os
import shutil
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from lists import CUBIC, ESTIMATORS, but, with_few_landmarks
from sklearn import config_context
from sklearn.base import clone
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_info

import nystrom
from nystrom import KernelKMeans, select_landmarks

HERE = Path(__file__).parent
unix = pytest.mark.skipif(
    sys.platform == "win32", reason="limits of processes are those of Unix"
)
linux = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="reads what only Linux tells"
)


#: On two threads, and the same every time.
FEW = [with_few_landmarks(each, random_state=0, n_jobs=2) for each in ESTIMATORS]


def made_of(fitted, X):
    """What a fitted estimator makes of its rows."""
    verb = "transform" if hasattr(fitted, "transform") else "predict"
    return np.asarray(getattr(fitted, verb)(X))


def blas_limits():
    return sorted((info["filepath"], info["num_threads"]) for info in threadpool_info())


def program(code, *args, before=(), **options):
    """Run code in a process of its own, which must end well or have nothing to do."""
    done = subprocess.run(
        [*before, sys.executable, "-c", code, *map(str, args)],
        capture_output=True,
        text=True,
        cwd=HERE,
        timeout=300,
        **options,
    )
    if "no threads" in done.stderr:
        pytest.skip("BLAS has no threads here")
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


# --- side by side -------------------------------------------------------------------


@pytest.mark.parametrize("estimator", FEW, ids=str)
def test_fits_from_several_threads_are_those_of_one(estimator, rng):
    rows = [rng.standard_normal((1500, 3)) for _ in range(3)]
    fitted = [clone(estimator).fit(X, (X[:, 0] > 0).astype(float)) for X in rows]
    expected = [made_of(one, X) for one, X in zip(fitted, rows, strict=True)]
    before, filters = blas_limits(), list(warnings.filters)
    together, found = threading.Barrier(len(rows)), {}

    def fit(i):
        together.wait()
        X = rows[i]
        one = clone(estimator).fit(X, (X[:, 0] > 0).astype(float))
        found[i] = made_of(one, X)

    threads = [threading.Thread(target=fit, args=(i,)) for i in range(len(rows))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, rows_made in enumerate(expected):
        np.testing.assert_array_equal(found[i], rows_made)
    assert blas_limits() == before
    assert list(warnings.filters) == filters


def test_filters_of_warnings_are_changed_by_one_thread_at_a_time(rng, monkeypatch):
    """They are the process's: two that change them at once leave one's behind."""
    X, fit = rng.standard_normal((300, 2)), KMeans.fit
    second_is_in, first_is_out = threading.Event(), threading.Event()

    def slow(self, *args, **options):
        if threading.current_thread().name == "first":
            first_is_in.set()
            second_is_in.wait(0.3)
        else:
            second_is_in.set()
            first_is_out.wait(0.3)
        return fit(self, *args, **options)

    def first():
        KernelKMeans(3, n_landmarks=20, n_init=1).fit(X)
        first_is_out.set()

    first_is_in = threading.Event()
    monkeypatch.setattr(KMeans, "fit", slow)
    filters = list(warnings.filters)
    thread = threading.Thread(target=first, name="first")
    thread.start()
    first_is_in.wait(10)
    KernelKMeans(3, n_landmarks=20, n_init=1).fit(X)
    thread.join()
    assert list(warnings.filters) == filters


# --- short of memory ----------------------------------------------------------------

SHORT = """
import resource, sys
import numpy as np
from nystrom import KernelRidge, leverage_scores
rng = np.random.default_rng(0)
X = rng.standard_normal((20_000, 4))
y = np.sin(X[:, 0])
model = KernelRidge(kernel="rbf", n_landmarks=50, n_jobs=2, random_state=0).fit(X, y)
expected = model.predict(X)
model.set_params(n_landmarks=6000, sampler="uniform")
before = dict(vars(model))
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
told = []
for room in (2**24, 2**26, 2**27, 2**28):
    resource.setrlimit(resource.RLIMIT_AS, (used + room, resource.RLIM_INFINITY))
    for work in (
        lambda: model.fit(X, y),
        lambda: leverage_scores(X[:9000], ridge=1.0),
    ):
        try:
            work()
        except MemoryError as error:
            told.append(str(error))
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is before[name] for name in before)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
assert len(told) >= 4, told
assert all("Use fewer landmarks" in text for text in told), told
assert any("KernelRidge ran out of memory" in text for text in told), told
assert np.array_equal(model.predict(X), expected)
model.set_params(n_landmarks=50, sampler="auto").fit(X, y)
assert np.array_equal(model.predict(X), expected)
"""


@linux
def test_without_memory_a_fit_says_what_takes_less_and_changes_nothing():
    program(SHORT)


def test_a_result_too_large_for_memory_suggests_a_file():
    X = np.broadcast_to(np.zeros((1, 2)), (2**47, 2))
    from nystrom.sources import DenseRows
    from nystrom.sources.output import NEW_ARRAY

    with pytest.raises(MemoryError, match=r'result to a file.*out="rows.npy"'):
        NEW_ARRAY.sink(DenseRows(X), 1000, np.float64)


@pytest.mark.parametrize("sampler", but(CUBIC))
def test_with_little_working_memory_landmarks_are_nearly_as_good(sampler, rng):
    """Pools are smaller: errors are 1.15 times as large in the mean, 1.8 at most.

    By 40 seeds; their logarithms have a standard deviation of 0.14. Uniform rows have
    3000 times the error.
    """
    X = rng.standard_normal((3000, 3))
    options = {"gamma": 0.2, "n_landmarks": 400, "sampler": sampler, "random_state": 0}
    if sampler == "greedy":
        options["n_landmarks"] = 60
    plain = nystrom.approximate(X, select_landmarks(X, **options)).trace_error
    with config_context(working_memory=1):
        short = nystrom.approximate(X, select_landmarks(X, **options)).trace_error
    assert short <= 3 * plain + 1e-12


@pytest.mark.parametrize("estimator", FEW, ids=str)
def test_with_little_working_memory_estimators_fit_alike(estimator, rng):
    X = rng.standard_normal((1500, 3))
    y = (X[:, 0] > 0).astype(float)
    plain = made_of(clone(estimator).fit(X, y), X)
    with config_context(working_memory=1):
        short = made_of(clone(estimator).fit(X, y), X)
    # "full" holds K where there is room, and else evaluates it again at every step.
    steps = getattr(estimator, "solver", None) == "full"
    np.testing.assert_allclose(short, plain, rtol=0, atol=1e-9 if steps else 0)


# --- short of disk ------------------------------------------------------------------

FULL = """
import os, sys
from pathlib import Path
import numpy as np
import nystrom
from nystrom import Nystroem, load, save
from nystrom.sources import Overwrite
folder, limited = Path(sys.argv[1]), sys.argv[2] == "limit"
X = np.random.default_rng(0).standard_normal((3000, 8))
small = Nystroem(n_components=2, random_state=0).fit(X[:50])
large = Nystroem(n_components=300, random_state=0).fit(X)

def save_to(path):
    return lambda model, X: save(model, path)

def rows_to(path):
    return lambda model, X: model.transform(X, out=Overwrite(path))

writers = {"model.nystrom": save_to, "rows.npy": rows_to, "rows.parquet": rows_to}
for name, writer in writers.items():
    path = folder / name
    write = writer(path)
    write(small, X[:50])
    before = path.read_bytes()
    if limited:
        import resource
        most = resource.RLIM_INFINITY
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, most))
    try:
        write(large, X)
    except OSError as error:
        print(name, error.errno)
    else:
        raise AssertionError(f"{name} was written to a full disk")
    assert path.read_bytes() == before, f"{name} is not what it was"
    assert [p.name for p in folder.iterdir()] == [name], list(folder.iterdir())
    if limited:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    write(small, X[:50])
    path.unlink()
"""


@unix
def test_a_file_that_may_grow_no_further_leaves_what_was_there(tmp_path):
    assert program(FULL, tmp_path, "limit").count("\n") == 3


@linux
def test_a_full_disk_leaves_what_was_there(tmp_path):
    """A disk of one megabyte, in a name space of its own, which ends with it."""
    mounted = f'mount -t tmpfs -o size=1m none "{tmp_path}" && exec "$@"'
    alone = ["unshare", "--mount", "sh", "-c", mounted, "sh"]
    if not shutil.which("unshare") or subprocess.call([*alone, "true"], stderr=-3):
        pytest.skip("a small disk cannot be mounted here")
    assert program(FULL, tmp_path, "disk", before=alone).count("\n") == 3


# --- cores that are busy with other work --------------------------------------------

ASLEEP = """
import os, sys, threading, time
import numpy as np
from sklearn.base import clone
from nystrom.engines.blas import available_blas_threads
from test_circumstances import FEW, made_of

def woken():
    '''How often each thread that is not Python's has run.'''
    ours = {str(thread.native_id) for thread in threading.enumerate()}
    found = {}
    for task in os.listdir("/proc/self/task"):
        if task not in ours:
            with open(f"/proc/self/task/{task}/status") as file:
                lines = [line for line in file if "ctxt_switches" in line]
            found[task] = sum(int(line.split()[1]) for line in lines)
    return found

def settled():
    before = None
    for _ in range(200):
        now = woken()
        if now == before:
            return now
        before = now
        time.sleep(0.05)

def work(estimator, X):
    y = (X[:, 0] > 0).astype(float)
    made_of(clone(estimator).fit(X, y), X)

X = np.random.default_rng(0).standard_normal((600, 40))
available_blas_threads()  # looking for libraries may fork, which wakes threads too
begun = settled()
if not begun:
    sys.exit("no threads")
roused = []
for n_landmarks in (300, 1000):
    for estimator in map(clone, FEW):
        if "n_landmarks" in estimator.get_params():
            estimator.set_params(n_landmarks=n_landmarks, n_jobs=1)
        else:
            estimator.set_params(n_components=300, n_jobs=1)
        before = settled()
        work(estimator, X)
        if settled() != before:
            roused.append((n_landmarks, str(estimator)))
before = settled()
A = X @ X.T
np.linalg.eigh(A)
print("fault found" if settled() != before else "blind")
print(*roused, sep="\\n")
"""


@linux
def test_small_algebra_wakes_no_thread_of_blas():
    """A BLAS thread that waits for a busy core takes seconds for milliseconds' work.

    Its threads sleep through every fit: none is given work that is not worth it.
    """
    wanted = {"OPENBLAS_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    env = {**os.environ, **wanted, "OMP_NUM_THREADS": "1"}
    first, *roused = program(ASLEEP, env=env).splitlines()
    if first == "blind":
        pytest.skip("BLAS does not use its threads here")
    assert [line for line in roused if line] == []
