"""Tables that others hold: data sets, partitions, filters, lists, streams, stores."""

import os
import pickle
import subprocess
import sys
import threading
import zipfile

import numpy as np
import pandas
import pyarrow as pa
import pytest
import zarr
from files import table, write_csv, write_parquet
from pyarrow import compute as pc
from pyarrow import csv as arrow_csv
from pyarrow import dataset as ds
from pyarrow import feather, parquet
from pyarrow import fs as arrow_fs
from sklearn.preprocessing import StandardScaler

from nystrom import KernelRidge, KernelRidgeClassifier, Nystroem, sources
from nystrom.sources import FileError, Source, as_source, tabular

N_ROWS = 3000


pytestmark = pytest.mark.usefixtures("small_chunks")


@pytest.fixture
def X(rng):
    return rng.standard_normal((N_ROWS, 4))


@pytest.fixture
def y(X):
    return np.sin(X[:, 0]) + X[:, 1]


def ridge(**options):
    return KernelRidge(
        kernel="rbf", gamma=0.2, n_landmarks=40, random_state=0, **options
    )


def all_rows(source):
    return source.rows(0, source.n_rows)


# --- data sets ----------------------------------------------------------------------


def test_a_data_set_is_read_as_it_says(X, tmp_path):
    """Its filter, schema, columns and CSV options count."""
    path = tmp_path / "rows.parquet"
    write_parquet(path, X, 300)
    whole = ds.dataset(path)
    kept = X[X[:, 0] > 0]
    np.testing.assert_array_equal(all_rows(as_source(whole)), X)
    filtered = as_source(whole.filter(pc.field("x0") > 0))
    np.testing.assert_array_equal(all_rows(filtered), kept)
    narrow = pa.schema([("x1", pa.float32()), ("x0", pa.float32())])
    source = as_source(ds.dataset(path, schema=narrow))
    assert source.feature_names == ("x1", "x0")
    assert source.rows(0, 3).dtype == np.float32
    np.testing.assert_array_equal(all_rows(source), X[:, [1, 0]].astype(np.float32))
    semicolons = tmp_path / "rows.txt"
    semicolons.write_text("a;b\n1;2\n3;4\n")
    options = ds.CsvFileFormat(arrow_csv.ParseOptions(delimiter=";"))
    source = as_source(ds.dataset(semicolons, format=options))
    np.testing.assert_array_equal(all_rows(source), [[1, 2], [3, 4]])
    model = Nystroem(n_components=9, random_state=0)
    expected = model.fit_transform(kept)
    np.testing.assert_array_equal(model.fit_transform(filtered), expected)


def test_a_filtered_data_set_is_never_held_whole(tmp_path):
    """32 MB of rows, and the peak of pyarrow's memory in a process of its own."""
    columns = np.random.default_rng(0).standard_normal((8, 2**19))
    rows = pa.table({f"x{i}": column for i, column in enumerate(columns)})
    parquet.write_table(rows, tmp_path / "rows.parquet", row_group_size=2**14)
    program = """if True:
        import sys, pyarrow, pyarrow.compute, pyarrow.dataset
        from nystrom import sources
        rows = pyarrow.dataset.dataset(sys.argv[1])
        rows = rows.filter(pyarrow.compute.field("x0") > -9)
        print(sources.as_source(rows).n_rows)
        print(pyarrow.default_memory_pool().max_memory())
    """
    run = [sys.executable, "-c", program, str(tmp_path / "rows.parquet")]
    done = subprocess.run(run, capture_output=True, check=True, text=True)
    n_rows, peak = map(int, done.stdout.split())
    assert n_rows == 2**19
    assert peak < 0.75 * 2**25


@pytest.fixture(params=["parquet", "feather", "csv"])
def partitioned(request, X, tmp_path):
    """A folder with one file for each year and city."""
    write = {
        "parquet": write_parquet,
        "csv": write_csv,
        "feather": lambda path, X, chunk: feather.write_feather(table(X), path),
    }[request.param]
    for number, (year, city) in enumerate(
        [(2024, "Ulm"), (2025, "Köln"), (2025, "Ulm")]
    ):
        folder = tmp_path / "songs" / f"year={year}" / f"city={city}"
        folder.mkdir(parents=True)
        part = X[number * 1000 : (number + 1) * 1000]
        write(folder / f"rows.{request.param}", part, 300)
    return tmp_path / "songs"


def test_names_of_folders_are_columns(partitioned, X):
    columns = ["x0", "x1", "year"]
    source = sources.open(partitioned, columns=columns, target="city")
    years = np.repeat([2024, 2025, 2025], 1000)
    cities = np.repeat(["Ulm", "Köln", "Ulm"], 1000)
    np.testing.assert_array_equal(all_rows(source), np.column_stack([X[:, :2], years]))
    found = source.targets.names[source.targets[:][:, 0].astype(int)]
    np.testing.assert_array_equal(found, cities)
    numbers = np.array([2999, 0, 1500])
    np.testing.assert_array_equal(source.take(numbers)[:, 2], years[numbers])
    again = pickle.loads(pickle.dumps(source))
    tabular.CHUNK_CACHE.clear()
    np.testing.assert_array_equal(all_rows(again), all_rows(source))
    model = KernelRidgeClassifier(kernel="rbf", gamma=0.1, n_landmarks=30)
    assert model.fit(source).classes_.tolist() == ["Köln", "Ulm"]


@pytest.mark.parametrize("partitioned", ["parquet", "feather", "csv"], indirect=True)
@pytest.mark.parametrize("threshold", [-9, 0, 9])
def test_a_filter_leaves_rows_out(threshold, partitioned, X):
    chosen = (pc.field("year") == 2025) & (pc.field("x2") > threshold)
    kept = X[1000:][X[1000:, 2] > threshold]
    columns = ["x0", "x3"]
    if not len(kept):
        with pytest.raises(FileError, match="has no rows"):
            sources.open(partitioned, columns=columns, filter=chosen)
        return
    source = sources.open(partitioned, columns=columns, target="x2", filter=chosen)
    np.testing.assert_array_equal(all_rows(source), kept[:, [0, 3]])
    np.testing.assert_array_equal(source.targets[:][:, 0], kept[:, 2])
    tabular.CHUNK_CACHE.clear()
    again = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(again.take([7, 3]), kept[[7, 3]][:, [0, 3]])
    assert (
        source.fingerprint() != sources.open(partitioned, columns=columns).fingerprint()
    )


def test_filters_that_leave_as_many_rows(X, tmp_path):
    """Of one half of the row groups, then of the other: each has its own chunks."""
    write_parquet(tmp_path / "rows.parquet", X, 300, i=np.arange(N_ROWS))
    names, i = ["x0", "x1", "x2", "x3"], pc.field("i")
    for chosen, rows in [(i < 1500, X[:1500]), (i >= 1500, X[1500:])]:
        source = sources.open(tmp_path / "rows.parquet", columns=names, filter=chosen)
        np.testing.assert_array_equal(all_rows(source), rows)
        np.testing.assert_array_equal(source.take([5, 2]), rows[[5, 2]])


@pytest.mark.parametrize("ending", ["parquet", "csv", "feather"])
@pytest.mark.parametrize(
    ("chosen", "error", "message"),
    [
        (pc.field("q") > 1, FileError, r"filter=.*q.*columns of .*rows.*x0"),
        (pc.field("x0") == "a", FileError, "filter=.*x0.*no kernel"),
        (pc.field("x0") + 1, FileError, "filter=.*must evaluate to bool"),
        ([("x0", ">", 1)], TypeError, "filter=.*pyarrow.compute.field"),
        ("x0 > 1", TypeError, "filter=.*pyarrow.compute.field"),
    ],
)
def test_a_filter_that_cannot_be_applied(chosen, error, message, ending, X, tmp_path):
    path = tmp_path / f"rows.{ending}"
    if ending == "feather":
        feather.write_feather(table(X), path)
    else:
        (write_csv if ending == "csv" else write_parquet)(path, X, 300)
    with pytest.raises(error, match=message) as raised:
        sources.open(path, filter=chosen)
    assert "damaged" not in str(raised.value)


def test_folders_that_a_filter_excludes_are_not_read(X, tmp_path):
    for number, year in enumerate([2023, 2024, 2025]):
        folder = tmp_path / f"year={year}"
        folder.mkdir()
        write_parquet(folder / "rows.parquet", X[1000 * number :][:1000], 300)
    (tmp_path / "year=2024" / "rows.parquet").write_bytes(b"no table at all")
    chosen = (pc.field("year") == 2025) & (pc.field("x0") > 0)
    source = sources.open(tmp_path, columns=["x1"], filter=chosen)
    kept = X[2000:][X[2000:, 0] > 0]
    np.testing.assert_array_equal(all_rows(source), kept[:, 1:2])


def test_a_filter_is_for_tables_alone(X, tmp_path):
    np.save(tmp_path / "rows.npy", X)
    with pytest.raises(ValueError, match="filter= is for Parquet, CSV and Arrow"):
        sources.open(tmp_path / "rows.npy", filter=pc.field("x0") > 0)


def test_patterns_of_names(X, tmp_path):
    for number in range(4):
        folder = tmp_path / f"part={number % 2}"
        folder.mkdir(exist_ok=True)
        part = X[number * 700 : (number + 1) * 700]
        write_parquet(folder / f"rows-{number}.parquet", part, 300)
    names = ["x0", "x1", "x2", "x3"]
    in_order = np.concatenate([X[:700], X[1400:2100], X[700:1400], X[2100:2800]])
    for pattern, rows in [
        ("part=*/*.parquet", in_order),
        ("**/rows-?.parquet", in_order),
        ("**/rows-[01].parquet", X[:1400]),
        ("part=1/*.parquet", in_order[1400:]),
    ]:
        source = sources.open(f"{tmp_path}/{pattern}", columns=names)
        np.testing.assert_array_equal(all_rows(source), rows)
    source = sources.open(f"{tmp_path}/part=*/*.parquet")
    assert source.feature_names == (*names, "part")
    with pytest.raises(FileNotFoundError, match="holds no file that ends"):
        sources.open(f"{tmp_path}/part=*/*.csv")


# --- lists --------------------------------------------------------------------------


def embeddings(X, kind):
    values = pa.array(X[:, 1:].ravel())
    if kind == "fixed":
        return pa.FixedSizeListArray.from_arrays(values, 3)
    offsets = pa.array(np.arange(0, 3 * len(X) + 1, 3, dtype=np.int32))
    return pa.ListArray.from_arrays(offsets, values)


@pytest.mark.parametrize("kind", ["fixed", "list"])
@pytest.mark.parametrize("ending", [".parquet", ".arrow", "memory"])
def test_a_list_is_as_many_features(kind, ending, X, y, tmp_path):
    data = pa.table({"a": X[:, 0], "e": embeddings(X, kind), "y": y})
    path = tmp_path / f"rows{ending}"
    if ending == ".parquet":
        parquet.write_table(data, path, row_group_size=400)
    elif ending == ".arrow":
        feather.write_feather(data, path, chunksize=400)
    expected = ridge().fit(X, y)
    if ending == "memory":
        source = as_source(data.drop_columns(["y"])).replace(targets=y[:, None])
    else:
        source = sources.open(path, target="y")
    assert source.feature_names == ("a", "e_0", "e_1", "e_2")
    np.testing.assert_array_equal(all_rows(source), X)
    numbers = np.array([2000, 5])
    np.testing.assert_array_equal(source.take(numbers), X[numbers])
    model = ridge().fit(source)
    np.testing.assert_array_equal(model.predict(X).ravel(), expected.predict(X))
    if ending != "memory":  # of a path the columns with these features are read
        np.testing.assert_array_equal(model.predict(path), expected.predict(X))


def test_lists_that_do_not_fit_are_told(X, tmp_path):
    lists = X[:, 1:].tolist()
    for bad, message in [
        ([1.0], "a list of 1 values"),
        ([1.0, None, 2.0], "is missing"),
    ]:
        lists[2345] = bad
        parquet.write_table(pa.table({"e": lists}), tmp_path / "rows.parquet")
        source = sources.open(tmp_path / "rows.parquet")
        with pytest.raises(FileError, match=f"column 'e', row 2345: .*{message}"):
            all_rows(source)


# --- what other libraries hold ------------------------------------------------------


def test_frames_of_polars(X, y, tmp_path):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    path = tmp_path / "rows.parquet"
    write_parquet(path, X, 300)
    expected = ridge().fit(X, y).predict(X)
    lazy = polars.scan_parquet(path)
    model = ridge().fit(lazy, y)
    assert model.feature_names_in_.tolist() == ["x0", "x1", "x2", "x3"]
    np.testing.assert_array_equal(model.predict(lazy), expected)
    for kind in (polars.Array(polars.Float64, 3), polars.List(polars.Float64)):
        series = polars.Series("e", X[:, 1:].tolist(), dtype=kind)
        frame = polars.DataFrame({"a": X[:, 0], "e": series})
        np.testing.assert_array_equal(ridge().fit(frame, y).predict(frame), expected)


@pytest.mark.parametrize("dtype", [None, "arrow"])
def test_embeddings_in_pandas(dtype, X, y):
    frame = pandas.DataFrame({"e": list(X), "z": y})
    if dtype == "arrow":
        frame = pa.Table.from_pandas(frame).to_pandas(types_mapper=pandas.ArrowDtype)
    X_and_y = np.column_stack([X, y])
    found, expected = ridge().fit(frame, y), ridge().fit(X_and_y, y)
    np.testing.assert_array_equal(found.dual_coef_, expected.dual_coef_)
    assert found.feature_names_in_.tolist() == ["e_0", "e_1", "e_2", "e_3", "z"]
    np.testing.assert_array_equal(found.predict(frame), expected.predict(X_and_y))


def test_a_relation_of_duckdb(X, y):
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    names = ["a", "b", "c", "d"]
    relation = duckdb.from_df(pandas.DataFrame(X, columns=names)).filter("true")
    np.testing.assert_array_equal(all_rows(as_source(relation)), X)


class Stream:
    """Anything with Arrow's C stream."""

    def __init__(self, data):
        self.data = data

    def __arrow_c_stream__(self, requested_schema=None):
        return self.data.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("wrap", [Stream, lambda data: data.to_reader()])
def test_a_stream_is_written_out_once(wrap, X, y):
    source = as_source(wrap(table(X)))
    np.testing.assert_array_equal(all_rows(source), X)
    again = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(again.rows(5, 9), X[5:9])
    expected = ridge().fit(X, y).predict(X)
    np.testing.assert_array_equal(ridge().fit(wrap(table(X)), y).predict(X), expected)


@pytest.mark.parametrize("kind", ["csv", "stream", "lazy"])
def test_what_is_converted_is_known_by_what_it_was(kind, X, tmp_path):
    """A checkpoint goes on with the same rows, and refuses others."""

    def opened(X, delimiter=None):
        if kind == "csv":
            write_csv(tmp_path / "rows.csv", X, 300)
            os.utime(tmp_path / "rows.csv", ns=(1, 1))
            columns = None if delimiter is None else ["x0"]
            return sources.open(tmp_path / "rows.csv", columns=columns)
        if kind == "stream":
            return as_source(Stream(table(X)))
        return as_source(pytest.importorskip("polars").from_arrow(table(X)).lazy())

    before = opened(X).fingerprint()
    assert opened(X).fingerprint() == before
    assert opened(X[:-1]).fingerprint() != before
    if kind == "csv":
        assert opened(X, ",").fingerprint() != before


@pytest.mark.parametrize("store", ["memory", "zip"])
def test_an_array_of_zarr_in_any_store_is_read_chunk_by_chunk(store, X, tmp_path):
    kept = zarr.storage.MemoryStore()
    if store == "zip":
        kept = zarr.storage.ZipStore(tmp_path / "rows.zip", mode="w")
    array = zarr.create_array(kept, shape=X.shape, chunks=(500, 4), dtype=X.dtype)
    array[:] = X
    source = as_source(array)
    assert isinstance(source, sources.ChunkedFileRows)
    np.testing.assert_array_equal(all_rows(source), X)
    np.testing.assert_array_equal(source.take([2000, 3]), X[[2000, 3]])
    if store == "memory":
        array[1000] = 0.0
        np.testing.assert_array_equal(
            as_source(array).rows(1000, 1001), np.zeros((1, 4))
        )
        np.testing.assert_array_equal(
            pickle.loads(pickle.dumps(as_source(array))).rows(5, 9), X[5:9]
        )
    else:
        kept.close()
        assert zipfile.is_zipfile(tmp_path / "rows.zip")


class Own(Source):
    """A source of a user's own, with a vector of targets."""

    def __init__(self, X, y):
        self.X, self.targets = X, y
        self.n_rows, self.n_features = X.shape

    def rows(self, start, stop):
        return self.X[start:stop]

    def take(self, indices):
        return self.X[indices]


@pytest.mark.parametrize("convert", [list, pandas.Series, np.ravel])
def test_targets_and_weights_of_ones_own_source_may_be_any_vector(convert, X, y):
    expected = ridge().fit(X, y)
    found = ridge().fit(Own(X, convert(y)))
    np.testing.assert_array_equal(found.dual_coef_, expected.dual_coef_)
    half, w = len(X) // 2, np.arange(len(X)) % 3 + 0.5
    parts = [Own(X[:half], convert(y[:half])), Own(X[half:], convert(y[half:]))]
    np.testing.assert_array_equal(ridge().fit(parts).dual_coef_, expected.dual_coef_)
    source = Own(X, y)
    source.weights = convert(w)
    found, expected = ridge().fit(source), ridge().fit(X, y, w)
    np.testing.assert_array_equal(found.dual_coef_, expected.dual_coef_)


def test_classes_in_ones_own_source(X, y):
    names = np.where(y > 0, "high", "low")
    model = KernelRidgeClassifier(kernel="rbf", n_landmarks=30, random_state=0)
    found, expected = (
        model.fit(Own(X, names)).predict(X),
        model.fit(X, names).predict(X),
    )
    np.testing.assert_array_equal(found, expected)


def negative(y):
    return np.where(np.arange(len(y)) == 7, -1.0, 1.0)


@pytest.mark.parametrize(
    ("targets", "weights", "message"),
    [
        (lambda y: y[:-1], None, r"Own.*targets of shape \(2999,\).*3000 rows"),
        (lambda y: y.reshape(-1, 1, 1), None, r"targets of shape \(3000, 1, 1\)"),
        (lambda y: np.where(y > 2, np.nan, y), None, "targets.*one finite number"),
        (lambda y: np.full(len(y), object()), None, "targets.*object"),
        (lambda y: y, lambda y: np.ones(9), r"weights of shape \(9,\).*3000 rows"),
        (lambda y: y, negative, "weights.*>= 0"),
        (lambda y: y, np.zeros_like, "weights.*> 0 for at least one"),
        (lambda y: y, lambda y: np.where(y > 2, np.nan, 1.0), "weights.*>= 0"),
    ],
)
def test_wrong_targets_and_weights_of_ones_own_source(targets, weights, message, X, y):
    source = Own(X, targets(y))
    source.weights = None if weights is None else weights(y)
    with pytest.raises(ValueError, match=message):
        ridge().fit(source)


def test_rows_outside_of_memory_are_no_array(X, y):
    with pytest.raises(TypeError, match=r"BlockwiseTransformer\(StandardScaler"):
        StandardScaler().fit(Own(X, y))


# --- objects with targets among their columns -----------------------------------------


def as_lazy_frame(path):
    return pytest.importorskip("polars").scan_parquet(path)


def as_zarr_group(path):
    group = zarr.open_group(zarr.storage.MemoryStore(), mode="w")
    data = parquet.read_table(path)
    values = np.column_stack([data[f"x{j}"] for j in range(4)])
    for name, each in {"X": values, "y": data["y"].to_numpy()}.items():
        group.create_array(name, shape=each.shape, dtype=each.dtype)[:] = each
    return group


@pytest.mark.parametrize(
    "wrap",
    [
        as_lazy_frame,
        as_zarr_group,
        ds.dataset,
        lambda path: ds.dataset(path).scanner(),
        lambda path: ds.dataset(path).filter(pc.field("x0") > -99),
        lambda path: pa.RecordBatchReader.from_stream(parquet.read_table(path)),
    ],
)
def test_an_object_may_have_the_targets(wrap, X, y, tmp_path):
    write_parquet(tmp_path / "rows.parquet", X, 300, y=y)
    source = sources.open(wrap(tmp_path / "rows.parquet"), target="y")
    expected = ridge().fit(X, y).dual_coef_
    np.testing.assert_array_equal(ridge().fit(source).dual_coef_, expected)


@pytest.mark.parametrize("given", [None, 3, [], b"rows.npy", np.ones((3, 2)), [3]])
def test_what_cannot_be_opened_is_one_error(given):
    message = r"path is of type .*; it is a path.*Pass rows that are in memory"
    with pytest.raises(TypeError, match=message):
        sources.open(given)


def test_options_of_files_are_not_for_objects(X, tmp_path):
    write_parquet(tmp_path / "rows.parquet", X, 300)
    frame = ds.dataset(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="filter= is for files; filter the"):
        sources.open(frame, filter=pc.field("x0") > 0)


# --- stores -------------------------------------------------------------------------


def memory_store(folder):
    """The files of a folder in fsspec's memory: its URL, and how to open it."""
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    for path in folder.rglob("*"):
        if path.is_file():
            memory.put(str(path), f"/bucket/{path.relative_to(folder).as_posix()}")
    return "memory://bucket", [{}, {"storage_options": {}}, {"filesystem": memory}]


@pytest.fixture(scope="module")
def s3():
    """A server of S3's protocol on this machine, and its address."""
    server = pytest.importorskip("moto.server", reason="moto[server] is not installed")
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture
def s3_store(s3):
    """Puts the files of a folder there."""

    def put(folder):
        import s3fs

        options = {"key": "a", "secret": "b", "endpoint_url": s3}
        files = s3fs.S3FileSystem(**options)
        files.mkdirs("bucket", exist_ok=True)
        for path in folder.rglob("*"):
            if path.is_file():
                files.put(str(path), f"bucket/{path.relative_to(folder).as_posix()}")
        native = arrow_fs.S3FileSystem(
            access_key="a",
            secret_key="b",
            endpoint_override=s3.removeprefix("http://"),
            scheme="http",
            region="us-east-1",
        )
        given = [{"storage_options": options}, {"filesystem": native}]
        return "s3://bucket", [*given, {"filesystem": files}]

    return put


@pytest.fixture(params=["memory", "s3"])
def put(request):
    """What puts the files of a folder into a store."""
    if request.param == "memory":
        return memory_store
    return request.getfixturevalue("s3_store")


def test_rows_in_a_store_give_the_same_bits(put, X, y, tmp_path):
    for number, part in enumerate(np.array_split(np.arange(N_ROWS), 3)):
        folder = tmp_path / f"year={2020 + number}"
        folder.mkdir()
        write_parquet(folder / "rows.parquet", X[part], 400, y=y[part])
        write_csv(folder / "rows.csv", X[part], 400, y=y[part])
        feather.write_feather(table(X[part], y=y[part]), folder / "rows.feather")
    url, ways = put(tmp_path)
    late = pc.field("year") > 2020
    for ending in ("parquet", "csv", "feather"):
        chosen = {} if ending == "csv" else {"filter": late}
        local = sources.open(f"{tmp_path}/*/*.{ending}", target="y", **chosen)
        expected = ridge().fit(local)
        for way in ways:
            tabular.CHUNK_CACHE.clear()
            source = sources.open(f"{url}/*/*.{ending}", target="y", **chosen, **way)
            found = ridge().fit(source)
            np.testing.assert_array_equal(found.dual_coef_, expected.dual_coef_)
            assert source.feature_names == local.feature_names
        if "memory" not in url:  # which every process has for itself
            again = pickle.loads(pickle.dumps(source))
            np.testing.assert_array_equal(again.rows(3, 9), local.rows(3, 9))
    if "memory" in url:  # a URL alone
        path = f"{url}/year=2020/rows.parquet"
        found = ridge().fit(path, np.arange(1000.0)).predict(path)
        assert found.shape == (1000,)


def test_arrays_in_a_store(put, X, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file.create_dataset("X", data=X, chunks=(500, 4))
    group = zarr.open_group(str(tmp_path / "rows.zarr"), mode="w")
    group.create_array("X", shape=X.shape, chunks=(500, 4), dtype=X.dtype)[:] = X
    np.save(tmp_path / "rows.npy", X)
    url, ways = put(tmp_path)
    for name in ("rows.h5", "rows.zarr", "rows.npy"):
        source = sources.open(f"{url}/{name}", **ways[0])
        np.testing.assert_array_equal(all_rows(source), X)
        again = pickle.loads(pickle.dumps(source))
        tabular.CHUNK_CACHE.clear()
        np.testing.assert_array_equal(again.rows(900, 1200), X[900:1200])
        np.testing.assert_array_equal(again.take([1200, 9, 9]), X[[1200, 9, 9]])
        assert (
            again.fingerprint()
            == sources.open(f"{url}/{name}", **ways[0]).fingerprint()
        )


def test_what_is_not_in_a_store_is_told(put, X, tmp_path):
    write_parquet(tmp_path / "rows.parquet", X, 300)
    url, (way, *_) = put(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"none\.parquet does not exist"):
        sources.open(f"{url}/none.parquet", **way)


def test_a_store_that_fails_in_the_middle_is_one_error(X, y, tmp_path):
    local = pytest.importorskip("fsspec.implementations.local")
    write_parquet(tmp_path / "rows.parquet", X, 300, y=y)
    failing = threading.Event()

    class Failing(local.LocalFileOpener):
        def read(self, *args):
            if failing.is_set():
                raise OSError("the network is down")
            return super().read(*args)

    class Store(local.LocalFileSystem):
        def _open(self, path, mode="rb", **options):
            return Failing(path, mode, fs=self, **options)

    path = os.fspath(tmp_path / "rows.parquet")
    source = sources.open(path, target="y", filesystem=Store())
    np.testing.assert_array_equal(source.rows(0, 10), X[:10])
    failing.set()
    with pytest.raises(FileError, match=r"rows\.parquet.*the network is down"):
        ridge().fit(source)


def test_a_scheme_that_nobody_knows_is_told():
    with pytest.raises(ValueError, match="nowhere"):
        sources.open("nowhere://bucket/rows.parquet")
