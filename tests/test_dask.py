"""A Dask cluster gives the same bits as threads, whatever happens to its workers."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from inspect import signature
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from lists import ESTIMATORS
from sklearn.base import clone, is_classifier
from threadpoolctl import threadpool_info, threadpool_limits

from nystrom import (
    KernelCCA,
    KernelKMeans,
    KernelLogisticRegression,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeCV,
    Nystroem,
    engines,
)
from nystrom.engines import TILE, Threads
from nystrom.engines.executor import MAX_INLINE_BYTES, SourcePayload
from nystrom.sources import DenseRows, Source, as_source, tabular
from nystrom.sources import dask as dask_rows
from nystrom.sources.output import ArraySink

distributed = pytest.importorskip("distributed", reason="needs nystrom[dask]")
da = pytest.importorskip("dask.array", reason="needs nystrom[dask]")
dd = pytest.importorskip("dask.dataframe", reason="needs nystrom[dask]")
import dask  # noqa: E402

from nystrom.engines.dask import Dask  # noqa: E402
from nystrom.sources.dask import DaskChunks  # noqa: E402

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.xdist_group("dask"),
    # Sockets of clusters that were killed on purpose, and of the scheduler's loop.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # by any signal, on Windows
N_ROWS = 20 * TILE + 77  # enough to be worth a cluster
QUIET = {"dashboard_address": ":0", "silence_logs": 100}


class Made(Source):
    """Rows that are made where they are asked for."""

    def __init__(self, n_rows, deadly=None):
        self.n_rows, self.n_features, self.deadly = n_rows, 3, deadly
        self.home_process = os.getpid()

    def rows(self, start, stop):
        elsewhere = os.getpid() != self.home_process
        if self.deadly is not None and start <= self.deadly < stop and elsewhere:
            os.kill(os.getpid(), KILL)
        return self.take(np.arange(start, stop))

    def take(self, indices):
        return np.sin(np.outer(np.asarray(indices) + 1.0, [1, 2, 3]))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_ROWS, 8)) * rng.choice([0.2, 1.0, 3.0], (N_ROWS, 1))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(N_ROWS)


@pytest.fixture(scope="module")
def client():
    """Two worker processes of one thread."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **QUIET) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def default_client(client):
    """A Dask array finds it by itself."""
    with client.as_current():
        yield client


@pytest.fixture
def threads():
    """A cluster of two threads of this process."""
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, **QUIET
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def same(here, there):
    np.testing.assert_array_equal(here, there, strict=True)


def squares(block, pause):
    time.sleep(pause)
    return block.X.T @ block.X, float(block.weights.sum())


def there(client, source, f=squares, shared=(0.0,)):
    return Dask(client).reduce(f, source, shared, "squares")


def ridge(**options):
    given = {"kernel": "rbf", "gamma": 0.1, "n_landmarks": 30, "random_state": 0}
    return KernelRidge(0.1, **{**given, **options})


# --- the same bits ------------------------------------------------------------------


def chunked(X):
    return da.from_array(X, chunks=((7001, 0, 3, N_ROWS - 7004), 5))


#: Where rows may be: made where they are wanted, held here, in chunks of Dask's.
SOURCES = {
    "made": lambda X: Made(len(X)),
    "held": as_source,
    "chunks": lambda X: as_source(chunked(X)),
}


def framed(X):
    """A data frame whose lengths nobody knows, with the same rows."""
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    return dd.from_pandas(frame, npartitions=3).dropna()


@pytest.mark.parametrize("store", [np.asarray, chunked, framed])
def test_regression_has_the_same_bits_for_every_storage(store, client, data):
    X, y = data
    w = np.linspace(0, 2, N_ROWS)
    here = ridge().fit(X, y, sample_weight=w)
    with engines.using(client):
        far = ridge().fit(store(X), y, sample_weight=w)
    same(here.X_fit_, far.X_fit_)
    same(here.dual_coef_, far.dual_coef_)
    assert here.approximation_error_ == far.approximation_error_


@pytest.mark.parametrize(
    "estimator",
    [
        Nystroem(gamma=0.1, n_components=20, random_state=0),
        KernelPCA(2, kernel="rbf", gamma=0.1, n_landmarks=20, random_state=0),
        KernelKMeans(3, gamma=0.1, n_landmarks=20, max_iter=3, tol=1, random_state=0),
        KernelRidgeCV(kernel="rbf", gamma=0.1, n_landmarks=20, cv=2, random_state=0),
        KernelRidgeClassifier(kernel="rbf", gamma=0.1, n_landmarks=20, random_state=0),
        KernelLogisticRegression([0.1, 1.0], n_landmarks=20, random_state=0),
        KernelCCA(1, gamma=0.1, n_landmarks=20, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_dask_array_is_fitted_by_the_default_client(estimator, default_client, data):
    X, y = data
    y = X[:, :2] if isinstance(estimator, KernelCCA) else y
    y = y > 0 if is_classifier(estimator) else y
    rows = da.from_array(X, chunks=(9000, 8))
    here = estimator.fit(X, y).landmarks_
    far = estimator.fit(rows, da.from_array(y, chunks=9000)).landmarks_
    pair = isinstance(here, tuple)
    for a, b in zip(here, far, strict=True) if pair else [(here, far)]:
        same(a.indices, b.indices)
        assert a.error == b.error


@pytest.mark.parametrize("store", ["array", "derived", "frame"])
def test_a_persisted_array_is_fitted_where_it_is_held(store, client, data):
    """Also where its client is not the default one."""
    X, y = data
    rows = da.from_array(X, chunks=(3000, -1))
    if store == "frame":
        rows = rows.to_dask_dataframe(columns=[f"x{j}" for j in range(8)])
    held = client.persist(rows)
    held = held * 1.0 if store == "derived" else held
    target = client.persist(da.from_array(y, chunks=3000))
    with pytest.raises(ValueError, match="No clients found"):
        distributed.default_client()
    expected = ridge().fit(X, y)
    model = ridge().fit(held, target)
    same(model.landmarks_.indices, expected.landmarks_.indices)
    same(model.dual_coef_, expected.dual_coef_)
    with engines.using(Threads(1)):  # reads what the cluster holds
        same(ridge().fit(held, target).dual_coef_, expected.dual_coef_)
    lazy = model.predict(held)
    found = client.compute(lazy, sync=True)
    np.testing.assert_allclose(found, expected.predict(X), rtol=1e-7, atol=1e-9)


def test_a_persisted_array_on_another_cluster_is_refused(client, threads, data):
    held = threads.persist(da.from_array(data[0], chunks=(3000, -1)))
    with (
        engines.using(client),
        pytest.raises(ValueError, match=r"persisted by another client.*using"),
    ):
        ridge().fit(held, data[1])


def test_a_persisted_array_whose_client_is_closed_is_refused(data):
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, **QUIET
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as gone,
    ):
        held = gone.persist(da.from_array(data[0], chunks=(3000, -1)))
    with pytest.raises(ValueError, match=r"client is closed.*Create it again"):
        ridge().fit(held, data[1])


def test_without_a_client_threads_read_the_chunks(data):
    X, y = data
    lengths = []

    def seen(chunk):
        lengths.append(len(chunk))
        return chunk

    rows = chunked(X).rechunk({1: 8}).map_blocks(seen, dtype=X.dtype)
    lengths.clear()
    engine = Threads(2)
    source = as_source(rows)
    total, _ = engine.reduce(squares, source, (0.0,), "squares")
    assert sum(lengths) == N_ROWS  # each chunk once, though it has many tiles
    same(total, Threads(1).reduce(squares, as_source(X), (0.0,), "squares")[0])
    same(ridge().fit(X, y).dual_coef_, ridge().fit(rows, y).dual_coef_)


class Union(set):
    """A set that is added up."""

    def __add__(self, other):
        return Union(self | other)


def workers_of(block, flag):
    """Who worked on it; all but the first tiles wait for a file."""
    while block.start >= 8 * TILE and not Path(flag).exists():
        time.sleep(0.01)
    time.sleep(0.01)
    return Union([os.getpid()])


def doubled(block):
    return 2 * block.X


@pytest.mark.parametrize("kind", SOURCES)
def test_rows_come_back_to_their_places(kind, client, data):
    X = data[0]
    source = SOURCES[kind](X)
    sink, seen = ArraySink((N_ROWS, source.n_features)), []
    engine = Dask(client, progress=lambda *state: seen.append(state))
    engine.map(doubled, source, sink, (), "rows")
    same(sink.array, 2 * source.rows(0, N_ROWS))
    assert seen[0] == ("rows", 0, 21)
    assert seen[-1] == ("rows", 21, 21)
    assert engine.passes == ["rows"]


# --- what travels -------------------------------------------------------------------


def test_neither_chunks_nor_what_can_be_made_travel(data):
    X, y = data
    weights = np.ones(N_ROWS)
    for source in (as_source(chunked(X)), Made(10**9)):
        given = source.replace(targets=y[:, None], weights=weights)
        parcel = SourcePayload(given if source.n_rows == N_ROWS else source, DaskChunks)
        assert parcel.content is not None
        assert len(parcel.content) < MAX_INLINE_BYTES // 100
    assert SourcePayload(DenseRows(X)).content is None


WAYS_TO_CARRY = {
    "a memory map": lambda X: da.from_array(X, chunks=(len(X) // 8, X.shape[1])),
    "an array": lambda X: da.from_array(np.asarray(X), chunks=(len(X) // 3, 5)),
    "lazily changed": lambda X: 2.0 * da.from_array(X, chunks=-1) / 2.0,
    "a frame": lambda X: dd.from_pandas(pd.DataFrame(X), npartitions=4),
}


@pytest.fixture(scope="module")
def many_rows(tmp_path_factory):
    """64 MB in a memory map."""
    path = tmp_path_factory.mktemp("rows") / "X.npy"
    X = np.random.default_rng(0).standard_normal((80_000, 100))
    np.save(path, X)
    return np.load(path, mmap_mode="r")


@pytest.fixture(scope="module")
def small_workers():
    """Two worker processes with little memory."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="700MB", **QUIET
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.mark.parametrize("way", WAYS_TO_CARRY)
def test_data_in_the_graph_do_not_go_along_with_every_task(
    way, many_rows, small_workers
):
    """Workers hold a share of the rows; as many copies as tasks would kill them."""
    X, y = many_rows, np.sin(many_rows[:, 0])
    model, workers = ridge(gamma=0.002), small_workers.run(os.getpid)
    rows = WAYS_TO_CARRY[way](X)
    with (
        small_workers.as_current(),
        pytest.warns(UserWarning, match=r"holds 61 MiB .* in its graph") as told,
    ):
        found = model.fit(rows, y).predict(X[:500])
    assert sum("in its graph" in str(each.message) for each in told) == 1
    assert small_workers.run(os.getpid) == workers  # none died
    same(found, model.fit(X, y).predict(X[:500]))


def test_what_workers_read_or_hold_is_not_carried(client, many_rows, tmp_path):
    made = da.random.default_rng(0).standard_normal((80_000, 100), chunks=(20_000, 50))
    assert as_source(made).chunks.carried == 0
    made.to_zarr(str(tmp_path / "X.zarr"))
    assert as_source(da.from_zarr(str(tmp_path / "X.zarr"))).chunks.carried == 0
    persisted = client.persist(made)
    assert as_source(persisted).chunks.carried == 0
    some = as_source(made).take_lazily(
        np.arange(0, 80_000, 2)
    )  # numbers of rows are no rows
    assert some.chunks.carried == 0
    here = as_source(da.from_array(many_rows, chunks=(40_000, 100)))
    assert here.chunks.carried == many_rows.nbytes
    assert here.take_lazily(np.arange(5)).chunks.carried == many_rows.nbytes


def test_workers_of_others_are_not_changed(client):
    def plugins(dask_worker):
        return [name for name in dask_worker.plugins if "nystrom" in name]

    with engines.using(client):
        Nystroem(n_components=5).fit(Made(N_ROWS))
    assert not any(client.run(plugins).values())


def test_large_chunks_are_read_by_slices(many_rows, monkeypatch):
    monkeypatch.setattr(dask_rows, "READ_BYTES", 2**20)
    source = as_source(da.from_array(many_rows, chunks=-1))
    tabular.CHUNK_CACHE.clear()
    np.testing.assert_array_equal(source.rows(5_000, 5_010), many_rows[5_000:5_010])
    assert 0 < tabular.CHUNK_CACHE._bytes <= 2**20
    np.testing.assert_array_equal(source.rows(0, 4000), many_rows[:4000])
    taken = np.array([70_000, 3, 3])
    np.testing.assert_array_equal(source.take(taken), many_rows[taken])


def test_rows_that_are_held_here_are_sent_once_and_seen_when_they_change(client, data):
    X = data[0].copy()
    engine = Dask(client)

    def total():
        return engine.reduce(squares, as_source(X), (0.0,), "squares")[0]

    first = total()
    sent = {mark: future.key for mark, (future, _) in engine.scattered.items()}
    assert sent
    same(total(), first)
    again = {mark: future.key for mark, (future, _) in engine.scattered.items()}
    assert again == sent
    X[5] += 1.0
    same(total(), Threads(1).reduce(squares, as_source(X), (0.0,), "squares")[0])
    for _ in range(5):
        engine.reduce(squares, Made(N_ROWS), (0.0,), "another")
    total()
    assert len(engine.scattered) == len(sent)


def test_few_rows_that_are_here_stay_here(client, data, tmp_path):
    engine, shared = Dask(client), (str(tmp_path),)
    few, many = as_source(data[0][: 10 * TILE]), as_source(data[0])
    assert engine.reduce(workers_of, few, shared, "few") == {os.getpid()}
    assert os.getpid() not in engine.reduce(workers_of, many, shared, "many")
    assert engine.passes == ["few", "many"]


def _known_tasks(dask_scheduler):
    return list(dask_scheduler.tasks)


def blas_threads(block):
    found = [
        lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"
    ]
    return max(found)


def test_blas_has_one_thread_in_every_task(threads):
    with threadpool_limits(2, user_api="blas"):
        n_tiles = there(threads, Made(N_ROWS), blas_threads, ())
    assert n_tiles == 21


def test_the_environment_stays_as_it_was(client):
    before = dict(os.environ)
    with engines.using(client):
        ridge().fit(Made(N_ROWS), np.ones(N_ROWS))
    assert dict(os.environ) == before


def test_nothing_is_left_with_the_workers(client, data):
    before = set(client.run_on_scheduler(_known_tasks))
    with engines.using(client):
        ridge().fit(data[0], data[1])
    for _ in range(300):
        left = set(client.run_on_scheduler(_known_tasks)) - before
        if not left:
            break
        time.sleep(0.1)
    assert left == set()


# --- what goes wrong ----------------------------------------------------------------


def failing(block):
    if block.start == 5 * TILE:
        raise ArithmeticError("a tile that cannot be summed")
    return np.ones(3)


def unanswered(block):
    raise TimeoutError("the file server is gone")


def test_an_error_of_a_tile_is_that_of_the_pass(client, data):
    with pytest.raises(TimeoutError, match="file server"):  # not one of our waiting
        there(client, Made(N_ROWS), unanswered, ())
    with pytest.raises(ArithmeticError, match="cannot be summed"):
        there(client, Made(N_ROWS), failing, ())
    sink = ArraySink((N_ROWS,))
    with pytest.raises(ArithmeticError, match="cannot be summed"):
        Dask(client).map(failing, as_source(data[0]), sink, (), "rows")
    assert there(client, Made(N_ROWS))[1] == N_ROWS


@pytest.mark.parametrize("where", ["here", "there"])
def test_a_missing_value_is_named_by_row_and_column(where, client, data):
    X, y = data
    X = X.copy()
    X[12345, 6] = np.nan
    engine = client if where == "there" else Threads(2)
    with (
        engines.using(engine),
        pytest.raises(ValueError, match="NaN or infinity: row 12345, column 6"),
    ):
        ridge().fit(chunked(X), y)


@pytest.mark.parametrize(
    ("X", "told"),
    [
        (da.ones(5), "Array that is not a table"),
        (da.ones((3, 2), dtype="U3"), "not numbers"),
        (dask.delayed(np.ones)((3, 2)), "Delayed that is not a table"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(X, told):
    with pytest.raises(ValueError, match=told):
        as_source(X)


def test_an_asynchronous_client_is_refused():
    class Asynchronous:
        asynchronous = True

    with pytest.raises(TypeError, match="asynchronous"):
        Dask(Asynchronous())


# --- scores -------------------------------------------------------------------------


#: Each on threads; one of each class by the workers of a cluster.
SCORED = [e for e in ESTIMATORS if hasattr(e, "score")]
SCORES = [(e, store, "plain") for e in SCORED for store in ("array", "frame")]
SCORES += [(e, "array", "there") for e in {type(e): e for e in SCORED}.values()]


@pytest.mark.parametrize(("estimator", "store", "where"), SCORES, ids=str)
def test_scores_of_dask_rows_targets_and_weights(estimator, store, where, request):
    """Whichever of them are Dask's, and whoever computes: the score of the arrays."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 3))
    y, w = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(900), rng.uniform(0, 2, 900)
    if is_classifier(estimator):
        y = np.array(["low", "middle", "high"])[np.digitize(y, [-0.5, 0.5])]
    fitted = clone(estimator).fit(X[:300], y[:300])
    lazily = [framed(X), dd.from_pandas(pd.Series(y), npartitions=2)]
    if store == "array":
        lazily = [da.from_array(X, chunks=(400, 2)), da.from_array(y, chunks=250)]
    weights = [{}]
    if "sample_weight" in signature(fitted.score).parameters:
        weights += [{"sample_weight": each} for each in (w, da.from_array(w, 400))]
    client = request.getfixturevalue("client") if where == "there" else None
    with nullcontext() if client is None else client.as_current():
        for given in weights:
            expected = fitted.score(X, y, **(given and {"sample_weight": w}))
            for rows, targets in product((X, lazily[0]), (y, lazily[1])):
                found = fitted.score(rows, targets, **given)
                assert isinstance(found, float)
                assert found == pytest.approx(expected, rel=1e-9)


def test_a_score_of_persisted_rows_is_computed_where_they_are_held(client, data):
    X, y = data
    rows = client.persist(da.from_array(X, chunks=(3000, 8)))
    targets = client.persist(da.from_array(y, chunks=4000))
    fitted = ridge().fit(X[:2000], y[:2000])
    assert fitted.score(rows, targets) == pytest.approx(fitted.score(X, y), rel=1e-9)


# --- lazy results -------------------------------------------------------------------


def outputs(data):
    X, y = data
    options = {"kernel": "rbf", "gamma": 0.1, "n_landmarks": 20, "random_state": 0}
    two = np.stack([y, -y], axis=1)
    names = np.array(["low", "middle", "high"])[np.digitize(y, [-0.5, 0.5])]
    pca = KernelPCA(2, **options).fit(X[:3000])
    means = KernelKMeans(3, **options).fit(X[:3000])
    one = KernelRidge(0.1, **options).fit(X[:3000], y[:3000])
    both = KernelRidgeCV(**options).fit(X[:3000], two[:3000])
    classes = KernelRidgeClassifier(**options).fit(X[:3000], names[:3000])
    features = Nystroem(gamma=0.1, n_components=5, random_state=0).fit(X[:3000])
    exact = KernelPCA(2, kernel="rbf").fit(X[:100])
    return {
        "features": features.transform,
        "coordinates": pca.transform,
        "exact coordinates": exact.transform,
        "clusters": means.predict,
        "distances": means.transform,
        "one target": one.predict,
        "two targets": both.predict,
        "classes": classes.predict,
        "decisions": classes.decision_function,
    }


@pytest.fixture(scope="module")
def methods(data):
    return outputs(data)


KINDS = ["features", "coordinates", "exact coordinates", "clusters", "distances"]
KINDS += ["one target", "two targets", "classes", "decisions"]


def unwanted(chunk):
    raise AssertionError("a chunk was computed")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", KINDS)
def test_results_for_a_dask_array_are_lazy(kind, dtype, methods, data):
    X, method = data[0][:2500].astype(dtype), methods[kind]
    expected = method(X)
    lazy = method(da.from_array(X, chunks=((1000, 1500), 5)))
    assert isinstance(lazy, da.Array)
    assert lazy.chunks[0] == (1000, 1500)
    assert lazy.shape == expected.shape
    assert lazy.dtype == expected.dtype
    found = lazy.compute()
    assert found.dtype == expected.dtype
    if expected.dtype.kind == "f":
        precision = 1e-9 if dtype == np.float64 else 2e-3
        np.testing.assert_allclose(found, expected, rtol=precision, atol=precision)
    else:
        same(found, expected)
    rows = da.from_array(X, chunks=(1000, 8)).map_blocks(unwanted, dtype=dtype)
    method(rows)
    with pytest.raises(AssertionError, match="was computed"):
        method(rows).compute()


def test_lazy_rows_of_unknown_length_and_chunks_without_any(methods, data):
    X = data[0][:2500]
    rows = da.from_array(X, chunks=(500, 8))
    some = rows[rows[:, 0] > 1e9]  # none of them
    assert methods["two targets"](some).compute().shape == (0, 2)
    kept = rows[da.from_array(np.arange(2500) >= 700, chunks=500)]
    lazy = methods["features"](kept)
    assert np.isnan(lazy.shape[0])
    np.testing.assert_allclose(lazy.compute(), methods["features"](X[700:]), atol=1e-9)
    frame = framed(X)
    assert methods["clusters"](frame).compute().tolist() == (
        methods["clusters"](X).tolist()
    )


def test_lazy_deviations_come_with_lazy_means(data):
    X, y = data[0][:2500], data[1][:2500]
    rows = da.from_array(X, chunks=(1000, 8))
    for targets in (y, np.stack([y, -y], axis=1)):
        model = ridge().fit(X, targets)
        here, lazy = model.predict(X, return_std=True), model.predict(rows, True)
        for a, b in zip(here, dask.compute(*lazy), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-7)
            assert a.shape == b.shape


def test_lazy_results_are_those_of_the_fit_they_were_asked_of(data, client):
    X, y = data[0][:2500], data[1][:2500]
    rows = da.from_array(X, chunks=(1000, 8))
    model = ridge().fit(X, y)
    expected, lazy = model.predict(X), model.predict(rows)
    model.fit(X, -y)
    np.testing.assert_allclose(client.compute(lazy).result(), expected, atol=1e-9)


def test_fitting_and_transforming_is_lazy_too(data):
    X = data[0][:2500]
    rows = da.from_array(X, chunks=(1000, 8))
    for estimator in (
        Nystroem(gamma=0.1, n_components=5, random_state=0),
        KernelPCA(2, kernel="rbf", gamma=0.1, n_landmarks=20, random_state=0),
    ):
        lazy = estimator.fit_transform(rows)
        assert isinstance(lazy, da.Array)
        np.testing.assert_allclose(
            lazy.compute(), estimator.fit_transform(X), rtol=1e-7, atol=1e-9
        )


# --- workers that die, that join, and a scheduler that goes away --------------------


class Fragile:
    """A cluster of processes that are ours to kill; nobody starts them again."""

    def __init__(self):
        self.processes = []
        self.scheduler = self.start("dask_scheduler", "--port", "0", "--no-dashboard")
        lines = iter(self.scheduler.stderr.readline, b"")
        self.address = next(
            line.split()[-1].decode() for line in lines if b"Scheduler at:" in line
        )
        # Read on, so that it is never blocked by what it logs.
        self.reader = ThreadPoolExecutor(1)
        self.reader.submit(self.scheduler.stderr.read)
        self.client = distributed.Client(self.address, set_as_default=False, timeout=20)

    def start(self, what, *options):
        path = os.pathsep.join(p for p in sys.path if p)
        settings = {
            "PYTHONPATH": path,
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
        }
        process = subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{what}", *options],
            env={**os.environ, **settings},
            stderr=subprocess.PIPE if what == "dask_scheduler" else subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        self.processes.append(process)
        return process

    def join(self):
        """One more worker, sooner or later."""
        own = ("--no-nanny", "--nthreads", "1", "--no-dashboard")
        return self.start("dask_worker", self.address, *own)

    def pids(self):
        """Of the workers that answer: one that was just killed may still be known."""
        return list(self.client.run(os.getpid, on_error="ignore").values())

    def replace(self, n_workers):
        """The pids of so many workers, or more."""
        for _ in range(n_workers - len(self.pids())):
            self.join()
        for _ in range(600):
            if len(self.pids()) >= n_workers:
                return self.pids()
            time.sleep(0.1)
        raise TimeoutError(f"{n_workers} workers did not start")

    def close(self):
        self.client.close(timeout=1)
        for process in self.processes:
            process.kill()
            process.wait()
        self.reader.shutdown()
        self.scheduler.stderr.close()


@pytest.fixture(scope="module")
def fragile():
    cluster = Fragile()
    yield cluster
    cluster.close()


def once(f):
    """A progress hook that does f when some tiles are done, and not all."""
    done = []

    def hook(stage, n_done, n_tiles):
        if 0 < n_done < n_tiles and not done:
            done.append(stage)
            f()

    hook.done = done
    return hook


@pytest.mark.parametrize("kind", ["made", "chunks"])
def test_a_worker_killed_in_the_middle_changes_nothing(kind, fragile, data):
    X = data[0]
    source = SOURCES[kind](X)
    expected = Threads(1).reduce(squares, source, (0.0,), "squares")
    victim, *_ = fragile.replace(2)
    kill = once(lambda: os.kill(victim, KILL))
    engine = Dask(fragile.client, kill, patience=30)
    with fragile.client.as_current():
        found = engine.reduce(squares, source, (0.02,), "squares")
    assert kill.done == ["squares"]
    same(found[0], expected[0])
    assert victim not in fragile.pids()


def test_rows_are_whole_after_a_worker_died(fragile, data):
    victim, *_ = fragile.replace(2)
    kill = once(lambda: os.kill(victim, KILL))
    sink = Counting((N_ROWS, 8))
    engine = Dask(fragile.client, kill, patience=30)
    engine.map(doubled, as_source(data[0]), sink, (), "rows")
    assert kill.done
    same(sink.array, 2 * data[0])
    assert len(sink.starts) == len(set(sink.starts))  # none came twice


class Counting(ArraySink):
    """Remembers where rows were put."""

    def __init__(self, shape):
        super().__init__(shape)
        self.starts = []

    def put(self, start, rows):
        self.starts.append(start)
        super().put(start, rows)


def test_a_worker_that_joins_late_is_given_work(fragile, tmp_path):
    early = fragile.replace(1)

    def join():
        fragile.replace(len(early) + 1)
        (tmp_path / "joined").touch()

    joined = once(join)
    engine = Dask(fragile.client, joined, patience=30)
    shared = (str(tmp_path / "joined"),)
    found = engine.reduce(workers_of, Made(100 * TILE), shared, "workers")
    assert joined.done
    assert found - set(early)
    assert found == set(fragile.pids())


def test_tiles_that_kill_their_workers_are_named(fragile):
    fragile.replace(2)
    deadly = Made(N_ROWS, deadly=9 * TILE + 5)
    with pytest.raises(distributed.KilledWorker, match="squares-"):
        Dask(fragile.client, patience=30).reduce(squares, deadly, (0.01,), "squares")


def test_a_scheduler_that_goes_away_is_one_clear_error(fragile, data):
    """The last test on this cluster, for it is gone afterwards."""
    fragile.replace(1)
    model, before = ridge(), dict(vars(ridge()))
    fragile.client._timeout = 3  # it would try to connect again for longer
    engine = Dask(fragile.client, once(fragile.scheduler.kill), patience=5)
    with (
        engines.using(engine),
        pytest.raises(ConnectionError, match="The Dask cluster was lost in the pass"),
    ):
        model.fit(Made(60 * TILE), np.ones(60 * TILE))
    assert vars(model).keys() == before.keys()


# --- fits inside of a worker --------------------------------------------------------


def predictions_there(X, y, seed):
    """A fit inside of a task: its threads are those that a worker leaves to it."""
    fitted = KernelRidge(kernel="rbf", n_landmarks=20, random_state=seed).fit(X, y)
    return fitted.predict(X), engines.Threads().n_threads


@pytest.mark.parametrize("where", ["client", "threads"])
def test_fits_inside_of_workers(where, request, data):
    client = request.getfixturevalue(where)
    X, y = data[0][:3000], data[1][:3000]
    fits = [client.submit(predictions_there, X, y, seed) for seed in range(3)]
    for seed, (found, n_threads) in enumerate(client.gather(fits)):
        expected, _ = predictions_there(X, y, seed)
        same(found, expected)
        assert where == "threads" or n_threads == 1
