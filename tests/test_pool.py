"""Executors of `concurrent.futures` do as threads do, to the same last bit."""

import os
import time
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from multiprocessing import get_context

import joblib
import numpy as np
import pytest
import scipy.sparse as sp

from nystrom import KernelRidge, Nystroem, engines
from nystrom.engines import TILE, ExecutorEngine, Threads
from nystrom.engines.executor import MAX_INLINE_BYTES, SourcePayload, TransferredTiles
from nystrom.sources import Block, Pair, Source, Subset, as_source
from nystrom.sources.output import ArraySink

pytestmark = pytest.mark.timeout(120)
N_ROWS = 9 * TILE + 5


def other_processes(n_workers):
    """Processes that have nothing of this one; the package is imported once for all."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["nystrom"])
    return ProcessPoolExecutor(n_workers, mp_context=context)


@pytest.fixture(scope="module")
def processes():
    with other_processes(2) as pool:
        yield pool


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_ROWS, 20))
    return X, np.sin(X[:, 0])


class AtOnce(Executor):
    """An executor of somebody else's, which says nothing about its workers."""

    def submit(self, f, /, *args, **kwargs):
        future = Future()
        future.set_result(f(*args, **kwargs))
        return future


def same(here, there):
    np.testing.assert_array_equal(here, there, strict=True)


def squares(block):
    first = block.X[0] if isinstance(block.X, tuple) else block.X
    targets = 0.0 if block.targets is None else float(block.targets.sum())
    return first.T @ first, float(block.weights.sum()), targets


def fitted(X, y):
    model = KernelRidge(0.1, kernel="rbf", n_landmarks=20, random_state=0)
    return model.fit(X, y, sample_weight=np.linspace(0, 1, len(y)))


@pytest.mark.parametrize("kind", ["processes", "threads", "somebody's"])
def test_every_executor_gives_the_same_bits(kind, request, data):
    pools = {"threads": ThreadPoolExecutor(2), "somebody's": AtOnce()}
    pool = pools.get(kind) or request.getfixturevalue("processes")
    X, y = data
    here = fitted(X, y)
    with engines.using(pool) as engine:
        there = fitted(X, y)
        features = Nystroem(n_components=5, random_state=0).fit_transform(X)
    assert isinstance(engine, ExecutorEngine)
    assert len(engine.passes) > 3
    same(here.dual_coef_, there.dual_coef_)
    same(here.landmarks_.indices, there.landmarks_.indices)
    same(features, Nystroem(n_components=5, random_state=0).fit_transform(X))
    for executor in pools.values():
        executor.shutdown()


#: Sources that travel in each of the ways there are.
SOURCES = {
    "held": as_source,
    "held, with targets": lambda X: as_source(X).replace(targets=X[:, :2]),
    "weighted": lambda X: as_source(X, np.arange(len(X)) % 3.0),
    "csr": lambda X: as_source(sp.csr_array(X * (X > 1))),
    "some": lambda X: Subset(as_source(X), np.arange(0, len(X), 2)),
    "pairs": lambda X: Pair(as_source(X), as_source(X[:, :2])),
    "made": lambda X: Made(len(X)),
    "made, with columns": lambda X: Made(len(X) * 4).replace(
        weights=np.arange(len(X) * 4) % 3.0, targets=np.ones((len(X) * 4, 1))
    ),
}


class Made(Source):
    """Rows that are made where they are asked for."""

    def __init__(self, n_rows):
        self.n_rows, self.n_features = n_rows, 3

    def rows(self, start, stop):
        return self.take(np.arange(start, stop))

    def take(self, indices):
        return np.sin(np.outer(np.asarray(indices) + 1.0, [1, 2, 3]))


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_travels(kind, processes, data):
    source = SOURCES[kind](data[0])
    here = Threads(1).reduce(squares, source, (), "squares")
    there = ExecutorEngine(processes).reduce(squares, source, (), "squares")
    gram, far = (g.toarray() if sp.issparse(g) else g for g in (here[0], there[0]))
    same(gram, far)
    assert here[1:] == there[1:]


def test_rows_that_arrive_between_numbers_are_moved():
    """XᵀX of such rows was another routine's, and rounded otherwise."""
    X = np.frombuffer(b"." + bytes(16 * TILE), offset=1).reshape(TILE, 2)
    assert not X.flags.aligned
    arrived = TransferredTiles(TILE, [(Block(0, X, None), TILE)])
    assert arrived.block(0, TILE).X.flags.aligned


def test_generated_rows_are_not_sent():
    source = SOURCES["made, with columns"](np.empty((N_ROWS, 1)))
    parcel = SourcePayload(source)
    assert parcel.content is not None
    assert len(parcel.content) < MAX_INLINE_BYTES // 100
    part = parcel.part(2, 3)
    assert [len(column.values) for column in part] == [TILE, TILE]
    assert SourcePayload(as_source(np.zeros((N_ROWS, 20)))).content is None


def deadly(block):
    if block.start == 3 * TILE:
        os._exit(9)
    time.sleep(0.01)
    return 1


def test_local_passes_are_reported(data):
    with ThreadPoolExecutor(1) as executor:
        engine = ExecutorEngine(executor)
        engine.local.reduce(len, as_source(data), (), "rows that are held here")
    assert engine.passes == ["rows that are held here"]


def test_a_worker_that_dies_is_one_clear_error():
    with other_processes(1) as pool:
        told = r"ProcessPoolExecutor died in the pass 'sum'"
        for _ in range(2):  # the second one finds nobody
            with pytest.raises(RuntimeError, match=told):
                ExecutorEngine(pool).reduce(deadly, Made(N_ROWS), (), "sum")


class Breaking(AtOnce):
    """A worker dies before the sixth task is handed over."""

    n_tasks = 0

    def submit(self, *task):
        self.n_tasks += 1
        if self.n_tasks == 6:
            raise BrokenExecutor("nobody is there")
        return super().submit(*task)


def test_a_worker_that_dies_while_tasks_are_handed_over_is_the_same_error():
    told = r"Breaking died in the pass 'sum' and stopped the others"
    with pytest.raises(RuntimeError, match=told):
        ExecutorEngine(Breaking()).reduce(squares, Made(N_ROWS), (), "sum")


BACKENDS = [("loky", 2), ("threading", 3), ("sequential", 1)]


@pytest.mark.parametrize(("backend", "n_jobs"), BACKENDS)
def test_every_backend_of_joblib_gives_the_same_bits(backend, n_jobs, data, tmp_path):
    X, y = data
    np.save(tmp_path / "rows.npy", X)
    model = KernelRidge(kernel="rbf", gamma=0.02, n_landmarks=30, random_state=0)
    expected = model.fit(X, y).predict(X)
    with joblib.parallel_config(backend, n_jobs=n_jobs), engines.using("joblib"):
        for rows in (X, tmp_path / "rows.npy"):  # sent, and read there
            same(model.fit(rows, y).predict(rows), expected)
        out = model.predict(X, out=tmp_path / "predicted.npy")
    same(np.load(out), expected)


def test_a_backend_without_generators_gives_the_same_bits(data, monkeypatch):
    """As Ray's, which collects what it was given."""
    parallel = joblib.Parallel

    def without(*args, return_as="list", **options):
        if return_as != "list":
            raise ValueError("not supported")
        return parallel(*args, **options)

    monkeypatch.setattr(joblib, "Parallel", without)
    engine = engines.JoblibEngine(2)
    whole = Threads(1).reduce(squares, Made(N_ROWS), (), "sum")
    for here, there in zip(
        whole, engine.reduce(squares, Made(N_ROWS), (), "sum"), strict=True
    ):
        same(here, there)


def test_an_error_on_a_worker_of_joblib_is_the_error():
    with (
        joblib.parallel_config("threading", n_jobs=2),
        pytest.raises(ArithmeticError, match="cannot be summed"),
    ):
        engines.JoblibEngine().reduce(failing, Made(N_ROWS), (), "sum")


def failing(block):
    if block.start == 5 * TILE:
        raise ArithmeticError("a tile that cannot be summed")
    return np.ones(len(block))


def test_an_error_of_a_tile_is_that_of_the_pass(processes):
    for _ in range(2):  # and the pool goes on
        with pytest.raises(ArithmeticError, match="cannot be summed"):
            ExecutorEngine(processes).map(
                failing, Made(N_ROWS), ArraySink((N_ROWS,)), (), "map"
            )


def doubled(block):
    return 2 * block.X


def test_tasks_of_several_tiles_put_all_their_rows():
    X = np.arange(70.0 * TILE + 5)[:, None]
    for executor in (AtOnce(), ThreadPoolExecutor(2)):
        with executor:
            pool, sink = ExecutorEngine(executor), ArraySink(X.shape)
            pool.n_workers = 2
            pool.map(doubled, as_source(X), sink, (), "rows")
            same(sink.array, 2 * X)
            total, *_ = pool.reduce(squares, as_source(X), (), "sums")
            same(total, Threads(1).reduce(squares, as_source(X), (), "sums")[0])
