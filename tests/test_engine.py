"""Passes over the rows: the same sums always, and nothing left behind."""

import functools
import inspect
import itertools
import linecache
import os
import signal
import subprocess
import sys
import threading
import time
import weakref

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lists import ENGINES, ESTIMATORS, with_few_landmarks
from sklearn.base import clone
from threadpoolctl import (
    OpenBLASController,
    ThreadpoolController,
    threadpool_info,
    threadpool_limits,
)

import nystrom
from nystrom import engines
from nystrom.engines import (
    TILE,
    Engine,
    SumSink,
    Threads,
    blas,
    single_threaded_blas,
)
from nystrom.engines.base import SumTree, add_terms
from nystrom.estimators import _progress as edge
from nystrom.sources import RowNumbers, as_source
from nystrom.sources.output import ArraySink, SplitSink

SIZES = [1, TILE - 1, TILE, TILE + 1, 4 * TILE, 13 * TILE + 5]
each_engine = pytest.mark.parametrize("make", ENGINES, ids=lambda m: str(m.keywords))


def blas_threads():
    """How many threads each BLAS may use now."""
    return {
        lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"
    }


#: Not so in macOS's Accelerate, whose threads nobody counts or limits.
BLAS_COUNTS = bool(blas_threads())
counted = pytest.mark.skipif(not BLAS_COUNTS, reason="this BLAS has no limit to set")


def our_threads():
    return [t for t in threading.enumerate() if t.name.startswith("nystrom")]


def release_control():
    """Let any thread set BLAS's limit: threadpoolctl ties it to the first that did."""
    getattr(OpenBLASController, "clear_controlling_thread", lambda force: None)(
        force=True
    )


@pytest.fixture
def nothing_left(monkeypatch):
    """BLAS has three threads before and after the test, and ours are gone."""
    monkeypatch.setattr("joblib.cpu_count", lambda: 8)
    release_control()
    before = threadpool_limits(3, user_api="blas")
    release_control()
    yield
    for thread in our_threads():
        thread.join(timeout=10)
    threads, limits = our_threads(), blas_threads()
    release_control()
    before.restore_original_limits()
    release_control()
    assert threads == []
    assert limits == ({3} if BLAS_COUNTS else set())


def slowly(f):
    """f as work worth threads: its first tile takes a while."""

    def slow(block, *shared):
        if block.start == 0:
            time.sleep(0.01)
        return f(block, *shared)

    return slow


def rows_of(n_rows, rng):
    """Rows of very different size, whose sums round differently in every order."""
    X = rng.standard_normal((n_rows, 2)) * 10.0 ** rng.integers(-9, 9, (n_rows, 1))
    return as_source(X)


def sums(block, power):
    """One array and one number, as a pair."""
    return (block.X**power).T @ block.X, float(block.X.sum())


# --- results ------------------------------------------------------------------------


@pytest.mark.parametrize("n_rows", SIZES)
def test_map_equals_a_plain_loop(n_rows, rng):
    source = rows_of(n_rows, rng)
    for make in ENGINES:
        sink = ArraySink((n_rows, 2))
        sink.array[:] = np.nan
        make().map(slowly(lambda block, c: c * block.X), source, sink, (3.0,), "map")
        np.testing.assert_array_equal(sink.array, 3.0 * source.X)


@each_engine
def test_no_rows_beyond_the_last_are_asked_for(make):
    n_rows = 3 * TILE + 5
    source = RowNumbers(n_rows)
    total = make().reduce(lambda block: int(block.X.sum()), source, (), "sum")
    assert total == sum(range(n_rows))


def tree_sum(terms):
    """Four sums of 4ʲ terms one after the other: the order that is promised."""
    size, n = 1, len(terms)
    while 4 * size < n:
        size *= 4
    if n == 1:
        return terms[0]
    return functools.reduce(
        add_terms, [tree_sum(terms[i : i + size]) for i in range(0, n, size)]
    )


@pytest.mark.parametrize("n_rows", SIZES)
def test_reduce_has_the_same_bits_for_every_engine(n_rows, rng):
    source = rows_of(n_rows, rng)
    bounds = [(i, min(i + TILE, n_rows)) for i in range(0, n_rows, TILE)]
    with threadpool_limits(1, user_api="blas"):
        G, total = tree_sum([sums(source.block(i, j), 2) for i, j in bounds])
    for make in ENGINES:
        again, again_total = make().reduce(slowly(sums), source, (2,), "sums")
        np.testing.assert_array_equal(again, G)
        assert again_total == total


def test_the_order_of_a_sum_would_show(rng):
    terms = list(rows_of(13 * TILE, rng).X.reshape(13, -1).sum(axis=1))
    orders = [sum(rng.permutation(terms)) for _ in range(20)]
    assert len({*orders, tree_sum(terms)}) > 1


def test_terms_are_added_in_the_order_that_is_promised(rng):
    for n_terms in range(1, 130):
        terms, tree = list(rng.standard_normal(n_terms)), SumTree()
        for term in terms:
            tree.push(term)
        assert tree.total() == tree_sum(terms)


@each_engine
def test_an_empty_source_is_a_pass_without_work(make):
    seen = []
    engine = make(progress=lambda *state: seen.append(state))
    source, sink = as_source(np.empty((0, 2))), ArraySink((0, 2))
    engine.map(lambda block: block.X, source, sink, (), "nothing")
    assert seen == [("nothing", 0, 0)]
    assert engine.passes == ["nothing"]


@each_engine
def test_results_may_be_read_only_and_are_not_written_into(make, rng):
    source, made = rows_of(5 * TILE + 7, rng), []

    def read_only(block):
        result, _ = sums(block, 1)
        result.flags.writeable = False
        made.append((result, result.copy()))
        return result

    total = make().reduce(read_only, source, (), "sum")
    expected, _ = make().reduce(sums, source, (1,), "sum")
    np.testing.assert_array_equal(total, expected)
    for result, copy in made:
        np.testing.assert_array_equal(result, copy)


def test_a_sum_has_the_wider_dtype_of_both():
    left, right = np.ones(2, np.float32), np.full(2, 1e-9)
    assert add_terms(left, right).dtype == add_terms(right, left).dtype == np.float64
    assert add_terms(np.ones(2, int), right)[0] > 1


# --- passes -------------------------------------------------------------------------


@each_engine
def test_every_pass_has_a_name(make, rng):
    engine, source = make(), rows_of(2 * TILE, rng)
    assert engine.passes == []
    engine.map(lambda block: block.X, source, ArraySink((2 * TILE, 2)), (), "first")
    engine.reduce(lambda block: 1, source, (), "second")
    engine.reduce(lambda block: 1, source, (), "first")
    assert engine.passes == ["first", "second", "first"]
    assert make().passes == []
    with pytest.raises(TypeError):
        engine.map(lambda block: block.X, source, ArraySink((2 * TILE, 2)), ())
    with pytest.raises(TypeError):
        engine.reduce(lambda block: 1, source, ())


@each_engine
def test_another_hook_and_no_hook_change_nothing_else(make, rng):
    seen, told, source = [], [], rows_of(3 * TILE + 5, rng)
    engine = make(progress=lambda *state: seen.append(state))
    assert isinstance(engine.local, Engine)
    silenced = {
        "quiet": engine.quiet(),
        "local": engine.local.quiet(),
        "telling": engine.with_progress(lambda *state: told.append(state)),
    }
    results = [e.reduce(sums, source, (2,), name) for name, e in silenced.items()]
    assert seen == []
    assert {state[0] for state in told} == {"telling"}
    results.append(engine.reduce(sums, source, (2,), "loud"))
    assert {state[0] for state in seen} == {"loud"}
    for G, total in results:
        np.testing.assert_array_equal(G, results[0][0])
        assert total == results[0][1]
    # One list for all of them: they are the same engine.
    assert engine.passes == [*silenced, "loud"]


# --- sinks --------------------------------------------------------------------------


class Watched:
    """A sink that keeps the order in which it was used."""

    def __init__(self, sink):
        self.sink, self.seen = sink, []

    def open(self):
        self.seen.append("open")
        self.sink.open()

    def put(self, start, rows):
        self.seen.append(start)
        self.sink.put(start, rows)

    def close(self, complete):
        self.seen.append(("close", complete))
        self.sink.close(complete)


@each_engine
def test_a_sink_is_opened_before_the_rows_and_closed_after_them(make, rng):
    source, sink = rows_of(7 * TILE, rng), Watched(ArraySink((7 * TILE, 2)))
    make().map(slowly(lambda block: block.X), source, sink, (), "rows")
    first, *puts, last = sink.seen
    assert first == "open"
    assert sorted(puts) == [i * TILE for i in range(7)]
    assert last == ("close", True)
    np.testing.assert_array_equal(sink.sink.array, source.X)


def rows_and_sums(block, power):
    return 2 * block.X, sums(block, power)


@each_engine
def test_rows_and_sums_of_one_pass_are_those_of_two(make, rng):
    n_rows = 13 * TILE + 5
    source, rows, added = rows_of(n_rows, rng), ArraySink((n_rows, 2)), SumSink(TILE)
    parts = [Watched(rows), Watched(added)]
    make().map(slowly(rows_and_sums), source, SplitSink(*parts), (2,), "both")
    np.testing.assert_array_equal(rows.array, 2 * source.X)
    G, total = make().reduce(sums, source, (2,), "sums")
    np.testing.assert_array_equal(added.total()[0], G)
    assert added.total()[1] == total
    for part in parts:
        assert part.seen[0] == "open"
        assert part.seen[-1] == ("close", True)


@given(data=st.data(), n_terms=st.integers(1, 40))
def test_a_sum_does_not_depend_on_the_order_of_arrival(data, n_terms):
    seed = data.draw(st.integers(0, 2**32 - 1))
    terms = list(np.random.default_rng(seed).standard_normal(n_terms))
    sink = SumSink(TILE)
    for i in data.draw(st.permutations(range(n_terms))):
        sink.put(i * TILE, terms[i])
    assert sink.total() == tree_sum(terms)


# --- using --------------------------------------------------------------------------


def results_of(estimator, X):
    """The estimator fitted, and applied to its own rows."""
    fitted = clone(estimator).fit(X, (X[:, 0] > 0).astype(float))
    verbs = [verb for verb in ("transform", "predict") if hasattr(fitted, verb)]
    assert verbs
    return [getattr(fitted, verb)(X) for verb in verbs]


@pytest.fixture
def no_other_engine(monkeypatch):
    """What n_jobs would make is an error."""

    def refuse(n_jobs):
        raise AssertionError(f"an engine of n_jobs={n_jobs}")

    monkeypatch.setattr(edge, "Threads", refuse)


@pytest.mark.parametrize("estimator", map(with_few_landmarks, ESTIMATORS), ids=str)
def test_an_estimator_runs_on_the_engine_in_use(estimator, rng, request):
    X = rng.standard_normal((3 * TILE // 2, 3))
    expected = results_of(estimator, X)
    request.getfixturevalue("no_other_engine")
    with pytest.raises(AssertionError, match="an engine of n_jobs"):
        results_of(estimator, X)
    names = []
    for make in (ENGINES[0], ENGINES[-1]):
        engine = make()
        with engines.using(engine):
            found = results_of(estimator, X)
        assert len(engine.passes) > 1
        names.append(engine.passes)
        for one, two in zip(expected, found, strict=True):
            np.testing.assert_array_equal(one, two)
    # The same passes in the same order: each is known by its number.
    assert names[0] == names[1]


FUNCTIONS = {
    "select_landmarks": lambda X: nystrom.select_landmarks(X, n_landmarks=9),
    "approximate": lambda X: nystrom.approximate(X, given_rows(X)) @ np.ones(len(X)),
    "leverage_scores": lambda X: nystrom.leverage_scores(
        X, ridge=1.0, landmarks=given_rows(X)
    ),
    "effective_dimension": lambda X: nystrom.effective_dimension(
        X, ridge=1.0, landmarks=given_rows(X)
    ),
    "spectral_embedding": lambda X: nystrom.spectral_embedding(X, n_landmarks=9),
}
#: What goes through no rows, or looks at few of them, which are held here.
OTHERS = ("load", "save", "show_versions", "export_onnx", "register_onnx")
OTHERS += ("estimate_n_landmarks",)


def given_rows(X):
    return nystrom.select_landmarks(X, sampler=np.arange(9))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_runs_on_the_engine_in_use(name, rng, no_other_engine):
    assert FUNCTIONS.keys() == {f for f in nystrom.__all__ if is_function(f)}
    engine = Threads(1)
    with engines.using(engine):
        FUNCTIONS[name](rng.standard_normal((300, 3)))
    assert engine.passes


def is_function(name):
    """Whether it is one that goes through rows."""
    return name not in OTHERS and inspect.isfunction(getattr(nystrom, name))


def test_verbose_tells_of_passes_on_the_engine_in_use(rng, capsys):
    seen = []
    engine = Threads(1, progress=lambda *state: seen.append(state))
    X = rng.standard_normal((300, 3))
    with engines.using(engine):
        nystrom.select_landmarks(X, n_landmarks=9)
        assert capsys.readouterr().err == ""
        assert seen
        n_passes = len(engine.passes)
        nystrom.select_landmarks(X, n_landmarks=9, verbose=1)
    assert "100 %" in capsys.readouterr().err
    assert len(engine.passes) > n_passes


def test_the_innermost_engine_is_in_use_and_the_outer_one_again_after_it():
    one, two = Threads(1), Threads(1)
    assert engines.current() is None
    with engines.using(one) as given_back:
        assert given_back is one
        assert engines.current() is one
        with engines.using(two):
            assert engines.current() is two
        assert engines.current() is one
        with engines.using(one):
            assert engines.current() is one
        assert engines.current() is one
    assert engines.current() is None


def test_after_an_error_the_engine_is_in_use_no_more():
    one, two = Threads(1), Threads(1)
    with engines.using(one):
        with pytest.raises(ExpectedError), engines.using(two):
            raise ExpectedError
        assert engines.current() is one
    with pytest.raises(ExpectedError), engines.using(two):
        raise ExpectedError
    assert engines.current() is None


@pytest.mark.parametrize("engine", [2, "threads", Threads, object()])
def test_what_is_no_engine_is_refused(engine):
    one = Threads(1)
    with engines.using(one):
        with (
            pytest.raises(TypeError, match=r"is not an engine; .*Threads\(n_jobs=2\)"),
            engines.using(engine),
        ):
            pass
        assert engines.current() is one


# --- BLAS ---------------------------------------------------------------------------


@counted
@each_engine
def test_blas_has_one_thread_inside_a_pass(make, rng, nothing_left):
    seen = set()

    def look(block):
        if block.start in (0, 5 * TILE):
            seen.update(blas_threads())
        return 0

    make().reduce(slowly(look), rows_of(8 * TILE, rng), (), "sum")
    assert seen == {1}


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="reads what only Linux tells"
)
def test_every_blas_that_is_loaded_is_known_to_be_there():
    """Also those in wheels of NumPy and SciPy, which have names of their own."""
    with open("/proc/self/maps") as file:
        loaded = {line.split()[-1] for line in file if "openblas" in line}
    known = {lib["filepath"] for lib in threadpool_info() if lib["user_api"] == "blas"}
    assert {os.path.realpath(path) for path in loaded} <= set(
        map(os.path.realpath, known)
    )


def in_thread(f, *args):
    """f(*args) in a thread of its own, and wait for it."""
    thread = threading.Thread(target=f, args=args)
    thread.start()
    thread.join()


@counted
@pytest.mark.parametrize("run", [lambda f, *args: f(*args), in_thread])
def test_the_last_to_end_restores_the_limit_from_whichever_thread(run, nothing_left):
    first, second = single_threaded_blas(), single_threaded_blas()
    first.__enter__()
    run(second.__enter__)
    first.__exit__(None, None, None)
    assert blas_threads() == {1}
    run(second.__exit__, None, None, None)
    assert blas_threads() == {3}


def interrupted_at(event, path, f):
    """f(), with Ctrl-C at line number `event` that runs in a file; whether it came.

    Python looks for signals where something is called: not at `try` and `finally`, and
    at a `with` that is come back to only once it has let go of what it holds.
    """
    seen = itertools.count()

    def call(frame, kind, _):
        if frame.f_code.co_filename != path:
            return None
        been = set()

        def line(frame, kind, _):
            text = linecache.getline(path, frame.f_lineno).strip()
            again = text.startswith("with ") and text in been
            been.add(text)
            calls = kind == "line" and not again and text not in ("try:", "finally:")
            if calls and next(seen) == event:
                raise KeyboardInterrupt
            return line

        return line

    before = sys.gettrace()
    sys.settrace(call)
    try:
        f()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@counted
def test_ctrl_c_at_every_line_gives_blas_its_threads_back(nothing_left):
    def hold():
        with single_threaded_blas():
            pass

    hold()  # what is done once is done
    n_lines = 0
    while interrupted_at(n_lines, blas.__file__, hold):
        assert blas_threads() == {3}
        assert Threads().n_threads == 3
        n_lines += 1
        assert n_lines < 200
    assert n_lines > 10
    with single_threaded_blas():
        assert blas_threads() == {1}


FORKED = """
import os, sys, threading, time
import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits
from nystrom import Nystroem
from nystrom.engines import Threads, blas, single_threaded_blas
from nystrom.sources import as_source

def fit():
    return Nystroem(n_components=9, n_jobs=2, random_state=0).fit_transform(X)

def threads():
    libraries = threadpool_info()
    return {lib["num_threads"] for lib in libraries if lib["user_api"] == "blas"}

def forked():
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    right = np.array_equal(fit(), Z) and threads() == {3}
    os._exit(0 if right else 1)

X = np.random.default_rng(0).standard_normal((9000, 3))
threadpool_limits(3, user_api="blas")
blas._take_control()
Z = fit()
assert forked() == 0, "after a fit"

inside, go_on = threading.Event(), threading.Event()

def wait(block):
    inside.set()
    go_on.wait()
    return 0

other = threading.Thread(
    target=Threads(1).reduce, args=(wait, as_source(X[:5]), (), "wait")
)
other.start()
inside.wait()
assert threads() == {1}
assert forked() == 0, "while another thread is in a pass"
with blas._lock:
    assert forked() == 0, "while another thread begins one"
go_on.set()
other.join()
assert threads() == {3}
"""


@counted
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_fits_as_if_nobody_else_did():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


# --- what goes wrong ----------------------------------------------------------------


class ExpectedError(Exception):
    pass


class FailingSink(ArraySink):
    def put(self, start, rows):
        if start == 3 * TILE:
            raise ExpectedError
        super().put(start, rows)


class FailingSource(type(as_source(np.empty((1, 1))))):
    def rows(self, start, stop):
        if start == 3 * TILE:
            raise ExpectedError
        return super().rows(start, stop)


def fail(block):
    if block.start == 3 * TILE:
        raise ExpectedError
    return block.X[:, 0]


def failing_hook(stage, done, total):
    if done >= 3:
        raise ExpectedError


@each_engine
@pytest.mark.parametrize("culprit", ["function", "sink", "source", "hook"])
def test_an_error_comes_through_and_leaves_nothing_behind(
    culprit, make, rng, nothing_left
):
    X = rng.standard_normal((9 * TILE, 2))
    source = FailingSource(X) if culprit == "source" else as_source(X)
    f = fail if culprit == "function" else lambda block: block.X[:, 0]
    make_sink = FailingSink if culprit == "sink" else ArraySink
    sink = Watched(make_sink((len(X),)))
    hook = {"progress": failing_hook} if culprit == "hook" else {}
    engine = make(**hook)
    with pytest.raises(ExpectedError):
        engine.map(slowly(f), source, sink, (), "map")
    assert sink.seen[0] == "open"
    assert sink.seen[-1] == ("close", False)
    if culprit in ("function", "hook"):
        with pytest.raises(ExpectedError):
            engine.reduce(slowly(lambda block: f(block).sum()), source, (), "sum")


def test_after_an_error_no_work_goes_on_and_none_is_begun(rng, nothing_left):
    begun, ended = [], []

    def count(block):
        begun.append(block.start)
        if block.start == TILE:
            raise ExpectedError
        time.sleep(0.02)
        ended.append(block.start)
        return 1

    with pytest.raises(ExpectedError):
        Threads(3, tiles_per_task=1).reduce(count, rows_of(100 * TILE, rng), (), "sum")
    assert len(begun) < 20
    assert {*begun} - {*ended} == {TILE}


@pytest.fixture
def interrupts():
    """Ctrl-C raises KeyboardInterrupt, as it does when Python runs in a terminal."""
    if not hasattr(signal, "pthread_kill"):
        pytest.skip("a thread cannot be sent a signal here")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("at", [0, 1, 7, 20])
def test_ctrl_c_ends_the_pass_and_leaves_nothing_behind(
    at, n_jobs, rng, interrupts, nothing_left
):
    begun, main = [], threading.main_thread().ident

    def press(block):
        begun.append(block.start)
        if block.start == at * TILE:
            signal.pthread_kill(main, signal.SIGINT)
        time.sleep(0.002)
        return 1

    engine = Threads(n_jobs, tiles_per_task=1)
    with pytest.raises(KeyboardInterrupt):
        engine.reduce(press, rows_of(200 * TILE, rng), (), "sum")
    assert len(begun) < 100
    assert engine.reduce(slowly(lambda block: 1), rows_of(9 * TILE, rng), (), "") == 9


# --- n_jobs -------------------------------------------------------------------------


@counted
def test_no_n_jobs_means_as_many_threads_as_blas(nothing_left):
    assert Threads().n_threads == 3
    with threadpool_limits(1, user_api="blas"):
        assert Threads().n_threads == 1
    with single_threaded_blas():  # inside a pass: what it was before
        assert Threads().n_threads == 3


@counted
def test_no_n_jobs_where_numpy_and_scipy_have_different_limits(monkeypatch):
    monkeypatch.setattr("joblib.cpu_count", lambda: 8)
    first, *_ = ThreadpoolController().select(user_api="blas").lib_controllers
    with threadpool_limits(3, user_api="blas"):
        first.set_num_threads(2)
        outside = Threads().n_threads
        with single_threaded_blas():
            assert Threads().n_threads == outside


def test_n_jobs_counts_threads_and_below_zero_leaves_cores_free(monkeypatch):
    monkeypatch.setattr("joblib.cpu_count", lambda: 6)
    numbers = {1: 1, 5: 5, np.int64(2): 2, -1: 6, -2: 5, -6: 1, -40: 1}
    assert {n: Threads(n).n_threads for n in numbers} == numbers


@counted
def test_no_n_jobs_is_what_joblib_says_within_a_quota(monkeypatch):
    monkeypatch.setattr("joblib.cpu_count", lambda: 8)
    with threadpool_limits(3, user_api="blas"):
        for n_jobs in (1, 5):
            with joblib.parallel_config(n_jobs=n_jobs):
                assert Threads().n_threads == n_jobs
                assert Threads(2).n_threads == 2
        assert Threads().n_threads == 3
        # A container with a quota of two of the cores.
        monkeypatch.setattr("joblib.cpu_count", lambda: 2)
        assert Threads().n_threads == 2
        assert Threads(-1).n_threads == 2


def test_numbers_that_are_none_are_refused():
    for n_jobs in (0, True, 1.5, "2", "two", float("nan"), [1]):
        with pytest.raises(ValueError, match=r"n_jobs=.* is not allowed; use None"):
            Threads(n_jobs)
    for tiles in (0, 1.5, -4, True):
        with pytest.raises(ValueError, match="tiles_per_task="):
            Threads(1, tiles_per_task=tiles)


@pytest.mark.parametrize(("n_jobs", "most"), [(1, 5), (2, 9)])
def test_few_terms_of_a_sum_are_alive(n_jobs, most):
    """Four sums of 1, 4, 16 and 64 tiles, what is made, and what waits for others."""
    alive, seen, lock = set(), [], threading.Lock()

    def term(block):
        made = np.ones(2**22 // 8)
        with lock:
            alive.add(id(made))
            seen.append(len(alive))
        weakref.finalize(made, alive.discard, id(made))
        return made

    total = Threads(n_jobs).reduce(term, RowNumbers(200 * TILE), (), "sum")
    assert total[0] == 200
    assert max(seen) <= most


# --- progress -----------------------------------------------------------------------


@pytest.mark.parametrize("n_rows", SIZES)
@each_engine
def test_progress_rises_to_the_total_in_the_callers_thread(make, n_rows, rng):
    seen, threads = [], set()

    def hook(*state):
        seen.append(state)
        threads.add(threading.current_thread())

    engine = make(progress=hook)
    engine.reduce(slowly(sums), rows_of(n_rows, rng), (1,), "a stage")
    n_tiles = -(-n_rows // TILE)
    stages, done, totals = zip(*seen, strict=True)
    assert set(stages) == {"a stage"}
    assert set(totals) == {n_tiles}
    assert done[0] == 0
    assert done[-1] == n_tiles
    assert list(done) == sorted(set(done))
    assert threads == {threading.current_thread()}
