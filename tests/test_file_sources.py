"""Rows from files: the same rows, the same landmarks, the same predictions; errors."""

import os
import pickle
import shutil
import sys
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import h5py
import numpy as np
import pandas
import pyarrow as pa
import pytest
import zarr
from files import FORMATS, opened, stored, table, write_parquet
from lists import ESTIMATORS
from pyarrow import dataset, parquet
from sklearn.base import clone, is_classifier

from nystrom import (
    KernelCCA,
    KernelKMeans,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeCV,
    Nystroem,
    select_landmarks,
    sources,
)
from nystrom.engines import Threads
from nystrom.sources import (
    ConcatenatedRows,
    FileError,
    Subset,
    as_source,
)
from nystrom.sources import tabular as recent

N_ROWS = 3000


pytestmark = pytest.mark.usefixtures("small_chunks")


@pytest.fixture
def X(rng):
    return rng.standard_normal((N_ROWS, 4))


@pytest.fixture
def y(X, rng):
    return np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(N_ROWS) + 7


#: Values that CSV writes and reads back to the last bit in float64 alone.
def narrow(kind):
    return np.float64 if kind == "csv" else np.float32


# --- rows ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(("n", "d", "chunk"), [(1, 1, 1), (7, 3, 2), (2049, 2, 97)])
def test_every_format_gives_the_same_rows(kind, n, d, chunk, rng, tmp_path):
    X, y = rng.standard_normal((n, d)), rng.standard_normal(n)
    source = opened(tmp_path, kind, X, chunk, target=y, weight=np.abs(y) + 1)
    assert (source.n_rows, source.n_features) == (n, d)
    assert not source.supports_random_access or n == 1
    for start, stop in [(0, n), (0, 1), (n // 3, n), (n // 2, n // 2)]:
        block = source.block(start, stop)
        np.testing.assert_array_equal(block.X, X[start:stop])
        np.testing.assert_array_equal(block.targets[:, 0], y[start:stop])
        np.testing.assert_array_equal(block.weights, np.abs(y[start:stop]) + 1)
        assert block.X.flags.c_contiguous
    for numbers in [rng.integers(0, n, 50), np.arange(n)[::-1], np.empty(0, int)]:
        np.testing.assert_array_equal(source.take(numbers), X[numbers])
        np.testing.assert_array_equal(source.targets[numbers][:, 0], y[numbers])
        some = Subset(source, np.sort(numbers)).block(0, len(numbers))
        np.testing.assert_array_equal(some.targets[:, 0], y[np.sort(numbers)])


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    ("stored_as", "given"),
    [(np.float32, np.float32), (np.int16, np.float64), (np.uint8, np.float64)],
)
def test_rows_are_floats_of_their_own_precision(kind, stored_as, given, rng, tmp_path):
    X = rng.integers(0, 100, (50, 3)).astype(stored_as)
    source = opened(tmp_path, kind, X)
    expected = np.float64 if kind == "csv" else given
    for rows in (source.rows(0, 50), source.take(np.array([3]))):
        assert rows.dtype == expected
    np.testing.assert_array_equal(source.rows(0, 50), X)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_source_is_pickled_without_its_file(kind, X, y, tmp_path):
    source = opened(tmp_path, kind, X, target=y, weight=np.ones(N_ROWS))
    source.rows(0, 10)
    sent = pickle.dumps(source.replace(weights=None))
    assert len(sent) < 4000
    again = pickle.loads(sent)
    np.testing.assert_array_equal(again.block(900, 1200).X, X[900:1200])
    np.testing.assert_array_equal(again.targets[5:9][:, 0], y[5:9])
    assert again.fingerprint() == source.replace(weights=None).fingerprint()


@pytest.mark.parametrize("kind", FORMATS)
def test_many_threads_read_at_once(kind, X, y, tmp_path, rng):
    source = opened(tmp_path, kind, X, chunk=100, target=y)
    ranges = [(a, min(a + 150, N_ROWS)) for a in range(0, N_ROWS, 150)] * 2
    numbers = [rng.integers(0, N_ROWS, 40) for _ in ranges]

    def right(place):
        (start, stop), those = ranges[place], numbers[place]
        block = source.block(start, stop)
        return (
            np.array_equal(block.X, X[start:stop])
            and np.array_equal(block.targets[:, 0], y[start:stop])
            and np.array_equal(source.take(those), X[those])
        )

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(right, rng.permutation(len(ranges))))


@pytest.mark.parametrize("kind", [kind for kind in FORMATS if kind != "npy"])
def test_a_pass_decodes_every_chunk_once(kind, X, y, tmp_path, monkeypatch):
    source = opened(tmp_path, kind, X, chunk=1100, target=y)
    decoded, lock = [], threading.Lock()
    read = type(source.file).read

    def counted(self, chunk, names):
        with lock:
            decoded.append((chunk, names))
        return read(self, chunk, names)

    monkeypatch.setattr(type(source.file), "read", counted)
    total = Threads(3, tiles_per_task=1).reduce(_sums, source, (), "sums")
    np.testing.assert_allclose(total, X.sum(axis=0))
    assert len(decoded) == len(set(decoded))
    decoded.clear()
    source.take(np.random.default_rng(0).permutation(N_ROWS))
    assert len(decoded) == len(set(decoded))
    recent.CHUNK_CACHE.clear()
    decoded.clear()
    source.take(np.random.default_rng(0).permutation(N_ROWS))
    chunks = [chunk for chunk, _ in decoded]
    assert chunks == list(range(len(source.file.bounds) - 1))  # one forward read


def _sums(block):
    assert block.targets is not None
    return block.X.sum(axis=0)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint16, ">i8"])
def test_numbers_of_rows_count_whatever_their_dtype(kind, dtype, X, y, tmp_path):
    """[1, 0] in 32 bits has the bytes of [1] in 64."""
    source = opened(tmp_path, kind, X, target=y)
    # As many zeros behind it as make the bytes of one number of 64 bits.
    padded = np.zeros(8 // np.dtype(dtype).itemsize, dtype)
    padded[0] = 1
    for numbers in (padded, np.array([1]), padded[:1], np.array([1, 0])):
        rows, targets = source.take(numbers), source.targets[numbers]
        np.testing.assert_array_equal(rows, X[numbers.astype(int)])
        np.testing.assert_array_equal(targets[:, 0], y[numbers.astype(int)])


def test_few_rows_that_are_taken_again_are_not_read_again(X, y, tmp_path, monkeypatch):
    source = opened(tmp_path, "parquet", X, target=y)
    numbers = np.array([7, 2000, 7, 11])
    rows, targets = source.take(numbers), source.targets[numbers]
    recent.CHUNK_CACHE.clear()
    monkeypatch.setattr(type(source.file), "read", None)  # would be an error
    np.testing.assert_array_equal(source.replace(weights=y).take(numbers), rows)
    np.testing.assert_array_equal(source.targets[numbers], targets)


@pytest.mark.parametrize("held", [False, True], ids=["in the file", "planted: held"])
def test_targets_are_not_held(held, rng, tmp_path, monkeypatch):
    """What is alive does not grow with the rows; by a vector of targets it would."""
    monkeypatch.setattr("nystrom._random.CHUNK_ROWS", 2**12)  # numbers drawn at a time
    monkeypatch.setattr(recent.CHUNK_CACHE, "max_bytes", 0)
    monkeypatch.setattr("nystrom.linalg.features.MAX_TARGETS_AT_ONCE", 0)
    monkeypatch.setattr("nystrom.sources.output.MAX_GROUP_ROWS", 2**12)
    sizes, peaks = (20_000, 80_000), []
    for n in sizes:
        X = rng.standard_normal((n, 2)).astype(np.float32)
        source = opened(tmp_path, "parquet", X, 4096, target=X[:, 0])
        recent.CHUNK_CACHE.clear()
        del X
        tracemalloc.start()
        if held:
            source = source.replace(targets=source.targets[:])
        model = KernelRidge(
            kernel="rbf", n_landmarks=10, sampler="uniform", fit_intercept=True
        )
        model.set_params(random_state=0, n_jobs=1).fit(source)
        model.predict(source, out=tmp_path / f"{n}.npy")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    grown = (peaks[1] - peaks[0]) / (sizes[1] - sizes[0])
    assert grown > 7 if held else grown < 1, f"{grown:.1f} bytes a row"


# --- the same landmarks and the same answers ----------------------------------------


def sources_of(kind, X, folder, **given):
    """The source of a format; `stacked`: of rows in three files of other formats."""
    if kind != "stacked":
        return opened(folder, kind, X, **given)
    parts = []
    for part, (start, stop) in zip(
        ("parquet", "npy", "hdf5"), [(0, 700), (700, 1800), (1800, N_ROWS)], strict=True
    ):
        (folder / part).mkdir(exist_ok=True)
        some = {name: values[start:stop] for name, values in given.items()}
        parts.append(opened(folder / part, part, X[start:stop], **some))
    return ConcatenatedRows(parts)


@pytest.mark.parametrize("kind", [*FORMATS, "stacked"])
def test_the_same_seed_gives_the_same_model(kind, X, y, tmp_path, seed):
    X = X.astype(narrow(kind))
    y = y.astype(X.dtype).astype(np.float64)
    source = sources_of(kind, X, tmp_path, target=y.astype(X.dtype))
    options = {"gamma": 0.2, "n_landmarks": 50, "random_state": seed}
    here, there = (
        select_landmarks(rows, sampler="recursive", **options) for rows in (X, source)
    )
    np.testing.assert_array_equal(there.indices, here.indices)
    np.testing.assert_array_equal(there.points, here.points)
    model = KernelRidge(kernel="rbf", alpha=1e-3, fit_intercept=True, **options)
    expected = model.fit(X, y).predict(X)
    indices = model.landmarks_.indices
    model.fit(source)
    np.testing.assert_array_equal(model.landmarks_.indices, indices)
    np.testing.assert_array_equal(model.predict(source), expected)
    assert model.n_features_in_ == 4


@pytest.mark.parametrize(
    "make",
    [
        lambda **o: KernelRidge(kernel="rbf", solver="cg", fit_intercept=True, **o),
        lambda **o: KernelRidgeCV(kernel="rbf", fit_intercept=True, **o),
        lambda **o: KernelRidgeCV(kernel="rbf", cv="loo", **o),
        lambda **o: KernelRidgeCV(kernel="rbf", cv=3, **o),
        lambda **o: KernelRidge(kernel="rbf", **{**o, "n_landmarks": N_ROWS}),
    ],
    ids=["cg", "gcv", "loo", "folds", "exact"],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_way_to_fit_a_ridge(make, weighted, X, y, tmp_path, seed):
    X, y = X[:1500], y[:1500]
    w = np.arange(1500) % 3.0 if weighted else None
    source = opened(tmp_path, "parquet", X, target=y, weight=w)
    model = make(gamma=0.2, n_landmarks=40, random_state=seed)
    expected = model.fit(X, y, sample_weight=w).predict(X)
    np.testing.assert_array_equal(model.fit(source).predict(source), expected)


def test_classes_must_be_one_column_of_labels(X, y, tmp_path):
    path = stored(tmp_path, "parquet", X, y=y, z=y)
    with pytest.raises(ValueError, match=r"2 targets per row, but .* needs one"):
        KernelRidgeClassifier().fit(sources.open(path, target=["y", "z"]))
    with pytest.raises(ValueError, match="Unknown label type"):
        KernelRidgeClassifier().fit(sources.open(path, target="y"))


# --- what stands for rows -----------------------------------------------------------


def test_what_libraries_hold_open_is_read_from_its_file(X, tmp_path):
    with h5py.File(stored(tmp_path, "hdf5", X), "r") as file:
        from_hdf5 = as_source(file["rows/X"])
    from_zarr = as_source(zarr.open(str(stored(tmp_path, "zarr 3", X)))["X"])
    for source in (from_hdf5, from_zarr):
        assert isinstance(source, sources.ChunkedFileRows)
        np.testing.assert_array_equal(source.rows(0, N_ROWS), X)
    in_memory = zarr.array(X)
    np.testing.assert_array_equal(as_source(in_memory).rows(0, N_ROWS), X)
    as_table = as_source(table(X.astype(np.float32)))
    assert as_table.rows(0, 3).dtype == np.float32
    as_dataset = as_source(dataset.dataset(stored(tmp_path, "parquet", X)))
    np.testing.assert_array_equal(as_dataset.rows(0, N_ROWS), X)


def test_a_file_open_for_writing_is_refused(X, tmp_path):
    with (
        h5py.File(stored(tmp_path, "hdf5", X), "r+") as file,
        pytest.raises(ValueError, match="open with mode 'r'; open it so, or close"),
    ):
        as_source(file["rows/X"])


def test_what_newcomers_do_is_told(X, y, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a;b\n1;2\n3;4\n")
    with pytest.raises(ValueError, match=r"is unknown\. Allowed: 'a;b'"):
        sources.open(path, target="b")
    path.write_text("1.5,2\n3,4\n")
    with pytest.raises(ValueError, match=r"is unknown\. Allowed: '1.5', '2'"):
        sources.open(path, target=1)
    path.write_text("a,a,b\n1,2,3\n")
    for chosen in (None, ["a"]):
        with pytest.raises(ValueError, match="column 'a' occurs twice"):
            sources.open(path, columns=chosen)
    assert sources.open(path, columns=["b"]).rows(0, 1) == 3
    for text in ("größe,b\n1,2\n", "a,b\n1,größe\n2,klein\n"):
        path.write_bytes(text.encode("latin1"))
        with pytest.raises(FileError, match="text is not UTF-8"):
            sources.open(path, target="b")
    with pytest.raises(ValueError, match=r"y='y' is not a file; pass an array"):
        KernelRidge().fit(X, "y")
    with pytest.raises(ValueError, match=r"sample_weight='w.npy' is not a file"):
        KernelRidge().fit(X, y, sample_weight="w.npy")
    with pytest.raises(ValueError, match=r"y='y.csv' is not a file"):
        KernelCCA().fit(X, "y.csv")


def in_a_file(folder, name, kind, values):
    """One column of a file of some format."""
    path = folder / f"{name}.{kind}"
    if kind == "npy":
        np.save(path, values)
    elif kind == "parquet":
        parquet.write_table(pa.table({name: values}), path)
    else:
        pandas.DataFrame({name: values}).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("kind", ["npy", "parquet", "csv"])
@pytest.mark.parametrize(
    "estimator", [e for e in ESTIMATORS if hasattr(e, "score")], ids=str
)
def test_targets_and_weights_may_be_paths(estimator, kind, rng, tmp_path, monkeypatch):
    """`fit("X.npy", "y.npy")` is `fit(X, y)`, and so is `score`."""
    monkeypatch.chdir(tmp_path)
    X = rng.standard_normal((200, 3))
    y, w = X[:, 0] + 0.1 * rng.standard_normal(200), rng.uniform(0.5, 2, 200)
    if is_classifier(estimator):
        y = np.array(["no", "yes"])[(y > 0).astype(int)]
    np.save("X.npy", X)
    paths = [in_a_file(tmp_path, name, kind, v) for name, v in (("y", y), ("w", w))]
    y_given, w_given = paths[0].name, paths[1]  # text, and a path
    expected, found = clone(estimator), clone(estimator)
    if isinstance(estimator, KernelCCA):
        expected.fit(X, y)
        found.fit("X.npy", y_given)
        assert found.score("X.npy", y_given) == expected.score(X, y)
        return
    expected.fit(X, y, sample_weight=w)
    for rows in (X, "X.npy"):
        found.fit(rows, y_given, sample_weight=w_given)
        np.testing.assert_array_equal(found.predict(X), expected.predict(X))
        np.testing.assert_array_equal(
            getattr(found, "classes_", []), getattr(expected, "classes_", [])
        )
        score = found.score(rows, y_given, w_given)
        assert score == expected.score(X, y, sample_weight=w)


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_classes_in_a_file_of_their_own_keep_their_type(kind, X, tmp_path):
    labels = np.digitize(X[:, 0], [-0.5, 0.5]) - 1
    path = in_a_file(tmp_path, "y", kind, labels)
    model = KernelRidgeClassifier(kernel="rbf", n_landmarks=20, class_weight="balanced")
    model.set_params(random_state=0).fit(X, path)
    assert model.classes_.tolist() == [-1, 0, 1]
    assert model.classes_.dtype.kind == "i"
    np.save(tmp_path / "w.npy", np.ones(len(X)))
    weighted = clone(model).fit(X, path, sample_weight=tmp_path / "w.npy")
    np.testing.assert_allclose(
        weighted.decision_function(X), model.decision_function(X), atol=1e-9
    )


def test_columns_may_be_named_by_any_sequence(X, tmp_path):
    path = tmp_path / "rows.parquet"
    write_parquet(path, X, 300)
    chosen = pandas.Index(["x2", "x0"])
    for columns in (chosen, chosen.to_numpy(), tuple(chosen), dict.fromkeys(chosen)):
        source = sources.open(path, columns=columns, target=iter(["x1"]))
        np.testing.assert_array_equal(source.rows(0, 9), X[:9, [2, 0]])
        assert source.targets.shape == (N_ROWS, 1)
    with pytest.raises(ValueError, match="which has no order; use a list"):
        sources.open(path, columns={"x2", "x0"})


def test_a_folder_may_be_called_as_a_file_is(X, y, tmp_path):
    """Spark, Dask and pandas write "rows.parquet" as a folder of parts."""
    folder = tmp_path / "rows.parquet"
    (folder / "_temporary").mkdir(parents=True)
    for number, part in enumerate((slice(0, 700), slice(700, None))):
        write_parquet(folder / f"part-{number}.parquet", X[part], 300, y=y[part])
    write_parquet(folder / "_temporary" / "part-2.parquet", X, 300, y=y)
    source = sources.open(folder, target="y")
    np.testing.assert_array_equal(source.rows(0, source.n_rows), X)
    np.testing.assert_array_equal(source.targets[:][:, 0], y)


def test_a_folder_is_its_files_in_the_order_of_their_names(X, y, tmp_path):
    folder = tmp_path / "many"
    (folder / "later").mkdir(parents=True)
    for name, start in [("later/2", 2000), ("1", 1000), ("0", 0)]:
        part = slice(start, start + 1000)
        write_parquet(folder / f"{name}.parquet", X[part], 300, y=y[part])
    (folder / "_SUCCESS").touch()
    (folder / ".hidden.parquet").touch()
    source = sources.open(folder, target="y")
    np.testing.assert_array_equal(source.rows(900, 2100), X[900:2100])
    np.testing.assert_array_equal(source.targets[900:2100][:, 0], y[900:2100])
    names = ["0.parquet", "1.parquet", "later/2.parquet"]
    listed = sources.open([folder / name for name in names], target="y")
    np.testing.assert_array_equal(listed.rows(0, N_ROWS), X)
    parts = sources.open([sources.open(folder / name) for name in names])
    assert parts.n_features == 5
    assert len(Nystroem(n_components=5).fit([folder / n for n in names]).landmarks_)


def test_stacked_sources_keep_targets_and_weights(X, y):
    def parts(targets):
        return [
            sources.DenseRows(X[:1000], y[:1000] ** 2).replace(targets=targets[:1000]),
            sources.DenseRows(X[1000:].astype(np.float32)).replace(
                targets=targets[1000:]
            ),
        ]

    source = ConcatenatedRows(parts(y[:, None]))
    assert source.rows(998, 1002).dtype == np.float64
    np.testing.assert_allclose(source.rows(0, N_ROWS), X, atol=1e-6)
    np.testing.assert_array_equal(source.targets[:, 0], y)
    np.testing.assert_array_equal(source.weights[:1001], [*(y[:1000] ** 2), 1])
    with pytest.raises(ValueError, match=r"have \[4, 3\] columns"):
        ConcatenatedRows([sources.DenseRows(X), sources.DenseRows(X[:, :3])])
    with pytest.raises(ValueError, match="nothing to stack"):
        ConcatenatedRows([])


def test_sources_are_shown_in_a_line(X, y, tmp_path):
    path = stored(tmp_path, "parquet", X, y=y, w=y**2)
    source = sources.open(path, target="y", weight="w")
    for found, expected in [
        (source, "rows.parquet, 3,000 rows × 4 features, 1 targets, weighted"),
        (sources.open([path, path]), "rows.parquet, 1 more files, 6,000 rows × 6 feat"),
        (source.targets, "Targets(3,000 rows × 1)"),
        (as_source(X), "DenseRows(3,000 rows × 4 features)"),
        (as_source(["a", "b"]), "ObjectRows(2 rows)"),
    ]:
        assert expected in repr(found)


def test_fingerprints_tell_rows_apart(X, y, tmp_path):
    path = stored(tmp_path, "parquet", X, y=y)
    one = sources.open(path, target="y")
    assert one.fingerprint() == sources.open(path, target="y").fingerprint()
    others = [
        sources.open(path),
        sources.open(path, target="y", columns=["x0"]),
        sources.open(path, target="x0"),
        sources.open(path, target="y", weight="x0", columns=["x1"])
        if (X[:, 0] > 0).all()
        else one.replace(weights=y),
        Subset(one, np.arange(10)),
        ConcatenatedRows([one, one]),
        as_source(X),
        as_source(X[:-1]),
        as_source(X.astype(np.float32)),
        as_source(X + 1),
        as_source(X, y),
        as_source(["a", "b"]),
        as_source(["a", "c"]),
    ]
    marks = [source.fingerprint() for source in [one, *others]]
    assert len(set(marks)) == len(marks)
    assert as_source(X).fingerprint() == as_source(X.copy()).fingerprint()
    os.utime(path, ns=(1, 1))
    assert sources.open(path, target="y").fingerprint() != one.fingerprint()


# --- errors -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("where", ["rows", "target"])
def test_a_missing_value_is_told_with_file_column_and_row(kind, where, X, y, tmp_path):
    X, y = X.copy(), y.copy()
    if where == "rows":
        X[1234, 2] = np.nan
    else:
        y[1234] = np.nan
    source = opened(tmp_path, kind, X, target=y)
    named = {"rows": "'?x?2'?", "target": "'y'" if FORMATS[kind][2] else "4"}[where]
    message = rf"rows\.\w+, column {named}, row 1234: a value is missing"
    with pytest.raises(FileError, match=message):
        KernelRidge(kernel="rbf", n_landmarks=20).fit(source)


@pytest.mark.parametrize("kind", ["parquet", "feather, compressed"])
def test_a_null_is_a_missing_value(kind, tmp_path):
    column = pa.array([1.0, 2.0, None, 4.0])
    for name in ("a", "b"):
        values = {"a": pa.array([1, 2, 3, 4]), "b": pa.array([1.0, 2.0, 3.0, 4.0])}
        data = pa.table({**values, name: column})
        path = tmp_path / "rows.parquet"
        parquet.write_table(data, path)
        with pytest.raises(FileError, match=f"column '{name}', row 2: a value is miss"):
            sources.open(path).rows(0, 4)
    with pytest.raises(FileError, match="X, column 'b', row 2"):
        as_source(data)


def test_infinity_is_refused_and_large_numbers_are_not(X, tmp_path):
    X[::2] = 1e308
    assert opened(tmp_path, "parquet", X).rows(0, N_ROWS).max() == 1e308
    X[77, 1] = -np.inf
    for kind in ("npy", "parquet"):
        with pytest.raises(FileError, match=r"column '?x?1'?, row 77: -inf is not a f"):
            opened(tmp_path, kind, X).rows(0, N_ROWS)


def test_a_column_of_text_is_told(X, tmp_path):
    city = np.array(["Ulm"] * N_ROWS)
    for kind in ("parquet", "arrow"):
        path = stored(tmp_path, kind, X, city=city)
        message = r"column 'city' holds (large_)?string values, not numbers.*columns="
        with pytest.raises(FileError, match=message):
            sources.open(path)
        chosen = sources.open(path, columns=["x0", "x1"])
        np.testing.assert_array_equal(chosen.rows(0, 9), X[:9, :2])
    path = stored(tmp_path, "csv", X, city=city)
    assert sources.open(path, columns=["x1"]).rows(0, 9).shape == (9, 1)
    with pytest.raises(FileError, match="column 'city', row 0: 'Ulm' is not a number"):
        sources.open(path).rows(0, 1)


@pytest.mark.parametrize("kind", [k for k in FORMATS if "zarr" not in k and k != "csv"])
def test_a_file_that_changes_is_told(kind, X, tmp_path):
    source = opened(tmp_path, kind, X, chunk=200)
    source.rows(0, 10)
    path = Path(source.file.path)
    os.utime(path, ns=(10**18, 10**18))
    with pytest.raises(FileError, match="was written to since it was opened"):
        source.rows(2000, 3000)
    with path.open("ab") as file:
        file.write(b"more")
    with pytest.raises(FileError, match="was written to since it was opened"):
        source.take(np.array([2990]))
    path.unlink()
    with pytest.raises(FileError, match="cannot be read: No such file"):
        source.take(np.array([2990]))


def test_a_zarr_array_by_itself_in_shards(X, tmp_path):
    path = tmp_path / "alone.zarr"
    array = zarr.create_array(
        str(path), shape=X.shape, chunks=(50, 2), shards=(200, 4), dtype=X.dtype
    )
    array[:] = X
    source = sources.open(path)
    np.testing.assert_array_equal(source.rows(0, N_ROWS), X)
    np.testing.assert_array_equal(source.take([2100, 3]), X[[2100, 3]])
    array[2100] = 0.0
    assert sources.open(path).fingerprint() != source.fingerprint()


def test_a_zarr_array_that_is_gone_is_told(X, tmp_path):
    path = stored(tmp_path, "zarr 3", X, chunk=200)
    source = sources.open(path)
    shutil.rmtree(path)
    with pytest.raises(FileError, match="cannot be read: it is not a Zarr"):
        source.rows(0, 10)


@pytest.mark.parametrize("kind", [kind for kind in FORMATS if "zarr" not in kind])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.6, 0.99])
def test_a_file_that_was_cut_off_is_told(kind, share, X, tmp_path):
    path = stored(tmp_path, kind, X, chunk=200)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    if kind == "csv" and share:
        # Text may end anywhere, but not in the middle of a line with other columns.
        path.write_bytes(path.read_bytes().rpartition(b",")[0] + b"\n")
    with pytest.raises(FileError, match=r"rows\.\w+"):
        sources.open(path).rows(0, N_ROWS)


@pytest.mark.parametrize("kind", ["parquet", "feather, compressed", "hdf5", "zarr 3"])
def test_a_file_that_is_damaged_inside_is_told(kind, X, tmp_path):
    path = stored(tmp_path, kind, X, chunk=200)
    source = sources.open(path)
    file = path / "X" / "c" / "7" / "0" if "zarr" in kind else path
    stamp = os.stat(file)
    with file.open("rb+") as damaged:
        size = stamp.st_size
        damaged.seek(size // 3)
        damaged.write(b"\xff" * (size // 3))
        if "zarr" in kind:  # which has no check sums unless it is asked for
            damaged.truncate()
    os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    told = r"rows\.\w+, .*row"
    if "zarr" in kind:  # and is now shorter
        told = r"rows\.zarr was written to since it was opened"
    with pytest.raises(FileError, match=told):
        source.rows(0, N_ROWS)


def test_names_that_are_not_there(X, y, tmp_path):
    path = stored(tmp_path, "parquet", X, y=y)
    with pytest.raises(ValueError, match=r"rows.parquet: column='yy' is unknown; did"):
        sources.open(path, target="yy")
    with pytest.raises(ValueError, match="column 'x0' occurs twice"):
        sources.open(path, target="x0", columns=["x0", "x1"])
    with pytest.raises(ValueError, match="name one column"):
        sources.open(path, weight=["x0", "x1"])
    with pytest.raises(FileError, match="no remaining column for features"):
        sources.open(path, target=["x0", "x1", "x2", "x3", "y"])
    array = stored(tmp_path, "npy", X)
    with pytest.raises(ValueError, match=r"column=4 is unknown\. Allowed: '0', .*'3'"):
        sources.open(array, target=4)
    inside = stored(tmp_path, "hdf5", X, y=y)
    with pytest.raises(ValueError, match=r"column='z' is unknown.* Allowed: 'y', '0'"):
        sources.open(inside, target="z")
    with pytest.raises(FileError, match=r"dataset='z' is not a matrix.*'rows/X'"):
        sources.open(inside, dataset="z")


def test_paths_that_cannot_be_opened(X, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere.parquet does not exist"):
        Nystroem().fit("nowhere.parquet")
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        Nystroem().fit(tmp_path / "nowhere")
    (tmp_path / "rows.json").touch()
    with pytest.raises(ValueError, match=r"ending='.json' is unknown.*'.parquet'"):
        sources.open(tmp_path / "rows.json")
    with pytest.raises(FileNotFoundError, match="holds no file that ends in"):
        sources.open(tmp_path)
    (tmp_path / "empty.zarr").mkdir()
    with pytest.raises(FileError, match="it is not a Zarr array"):
        sources.open(tmp_path / "empty.zarr")
    np.save(tmp_path / "flat.npy", X[0])
    with pytest.raises(FileError, match=r"of shape \(4,\); it must be two-dim"):
        sources.open(tmp_path / "flat.npy")
    np.save(tmp_path / "text.npy", np.array([["a"]]))
    with pytest.raises(FileError, match="holds <U1 values, not numbers"):
        sources.open(tmp_path / "text.npy")
    np.save(tmp_path / "none.npy", X[:0])
    with pytest.raises(FileError, match="has no rows"):
        sources.open(tmp_path / "none.npy")
    path = stored(tmp_path, "npy", X)
    with pytest.raises(ValueError, match="Paths and sources are mixed"):
        sources.open([path, sources.open(path)])
    with pytest.raises(ValueError, match="cannot be selected from open sources"):
        sources.open([sources.open(path)], target=1)


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_weights_of_more_rows_than_are_read_at_a_time(kind, rng, tmp_path):
    """They are read by 65,536, and a model is that of the weights in memory."""
    n = 2**16 + 2**15
    X = rng.standard_normal((n, 2))
    y, w = np.sin(X[:, 0]), rng.integers(0, 5, n) * 1.0
    y[2**16 :] += 3 * (w[2**16 :] > 2)  # where the weights count
    source = opened(tmp_path, kind, X, 2**14, target=y, weight=w)
    np.testing.assert_array_equal(source.weights, w)
    model = KernelRidge(kernel="rbf", gamma=0.2, n_landmarks=20, random_state=0)
    found = model.fit(source).predict(X[:100])
    expected = model.fit(X, y, sample_weight=w).predict(X[:100])
    np.testing.assert_array_equal(found, expected)


def test_weights_must_be_weights(X, tmp_path):
    w = np.ones(N_ROWS)
    w[2500] = -1
    with pytest.raises(FileError, match="column 'w', row 2500: the weight -1 is neg"):
        opened(tmp_path, "parquet", X, weight=w)
    with pytest.raises(FileError, match="column 'w': all weights are 0"):
        opened(tmp_path, "parquet", X, weight=0 * w)
    source = opened(tmp_path, "parquet", X, weight=w**2)
    with pytest.raises(ValueError, match="sample_weight is given, but the source has"):
        KernelKMeans(2, n_landmarks=5).fit(source, sample_weight=w**2)


@pytest.mark.parametrize("make", [KernelRidge, KernelRidgeCV, KernelRidgeClassifier])
def test_targets_come_once(make, X, y, tmp_path):
    source = opened(tmp_path, "parquet", X, target=np.round(y))
    model = make(n_landmarks=20)
    with pytest.raises(ValueError, match="y is given, but the source has its own"):
        model.fit(source, np.round(y))
    with pytest.raises(ValueError, match=r"requires y .*sources.open"):
        model.fit(source.replace(targets=None))
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.fit(X)
    model.fit(source.replace(targets=None), np.round(y))
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4"):
        model.predict(sources.DenseRows(X[:, :3]))


@pytest.mark.parametrize(
    ("kind", "extra", "library"),
    [
        ("parquet", "io", "pyarrow"),
        ("csv", "io", "pyarrow"),
        ("arrow", "io", "pyarrow"),
        ("hdf5", "hdf5", "h5py"),
        ("zarr 3", "zarr", "zarr"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(
    kind, extra, library, X, tmp_path, monkeypatch
):
    path = stored(tmp_path, kind, X)
    for name in [name for name in sys.modules if name.split(".")[0] == library]:
        monkeypatch.setitem(sys.modules, name, None)
    message = rf'needs {library}, .*pip install "nystrom\[{extra}\]"'
    with pytest.raises(ImportError, match=message):
        sources.open(path)


def test_targets_and_weights_in_a_store(rng):
    fsspec = pytest.importorskip("fsspec", reason="needs nystrom[remote]")
    pytest.importorskip("pyarrow", reason="needs nystrom[io]")
    X, w = rng.standard_normal((300, 3)), rng.uniform(1, 2, 300)
    store, y = fsspec.filesystem("memory"), np.sin(X[:, 0])
    for name, values in {"X": X, "y": y, "w": w}.items():
        with store.open(f"/targets/{name}.npy", "wb") as file:
            np.save(file, values)
    url = "memory://targets"

    def fit(*data):
        return KernelRidge(n_landmarks=20, random_state=0).fit(*data).dual_coef_

    expected = fit(X, y, w)
    for rows in (X, f"{url}/X.npy", sources.open(f"{url}/X.npy")):
        found = fit(rows, f"{url}/y.npy", f"{url}/w.npy")
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    opened = sources.open(f"{url}/X.npy", target=f"{url}/y.npy")
    np.testing.assert_allclose(fit(opened), fit(X, y), rtol=1e-9)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        fit(X, f"{url}/none.npy")
