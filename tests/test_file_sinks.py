"""Results into files: block by block, in whatever order, complete or not at all."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from files import opened
from pyarrow import parquet
from sklearn.base import clone

from nystrom import (
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Nystroem,
    sources,
)
from nystrom.sources import DenseRows
from nystrom.sources import output as in_order
from nystrom.sources.output import MappedSink, Output, Overwrite, atomic_write

ENDINGS = [".npy", ".parquet"]
N_ROWS = 2500


@pytest.fixture
def X(rng):
    return rng.standard_normal((N_ROWS, 3)).astype(np.float32)


@pytest.fixture
def ridge(X):
    model = KernelRidge(kernel="rbf", gamma=0.3, n_landmarks=30, random_state=0)
    return model.fit(X, np.sin(X[:, 0]) + 3)


def rows_of(n_rows):
    """A source of so many rows, of which only their number counts."""
    return DenseRows(np.zeros((n_rows, 1)))


def read(path):
    """What is in a file of results."""
    if path.suffix == ".npy":
        return np.load(path)
    table = parquet.read_table(path)
    columns = np.column_stack([column.to_numpy() for column in table.columns])
    return columns if table.column_names[0][-1].isdigit() else columns[:, 0]


def left_in(folder):
    return sorted(os.listdir(folder))


# --- what is written ----------------------------------------------------------------


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("group", [1, 700, 1024, 2**18])
def test_predictions_from_a_file_into_a_file(
    ending, group, ridge, X, tmp_path, monkeypatch
):
    monkeypatch.setattr(in_order, "MAX_GROUP_ROWS", group if group > 1 else 3)
    X = X if group > 1 else X[:40]
    source = opened(tmp_path, "parquet", X)
    expected = ridge.predict(X)
    (tmp_path / "out").mkdir()
    path = tmp_path / "out" / f"predictions{ending}"
    for name in (path, Overwrite(path), Overwrite(str(path))):  # new, then replaced
        out = ridge.predict(source, out=name)
        assert out == path
        assert left_in(path.parent) == [path.name]
        found = read(out)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("ending", [".npy", ".parquet"])
@pytest.mark.parametrize("labels", [["no", "yes"], ["a", "b", "c"], [3, 5]], ids=str)
def test_classes_are_written_as_they_are(ending, labels, X, tmp_path):
    y = np.array(labels)[(X[:, 0] > 0) * (len(labels) - 1)]
    y[:2] = labels[:2]
    model = KernelRidgeClassifier(kernel="rbf", n_landmarks=20, random_state=0)
    expected = model.fit(X, y).predict(X)
    out = model.predict(X, out=tmp_path / f"labels{ending}")
    np.testing.assert_array_equal(read(out), expected)
    values = model.decision_function(X, out=tmp_path / f"values{ending}")
    np.testing.assert_array_equal(read(values), model.decision_function(X))


@pytest.mark.parametrize("ending", ENDINGS)
def test_rows_arrive_in_any_order_from_many_threads(ending, rng, tmp_path, monkeypatch):
    monkeypatch.setattr(in_order, "MAX_GROUP_ROWS", 130)
    rows = rng.standard_normal((2000, 3))
    output = Output(tmp_path / f"rows{ending}")
    sink = output.sink(rows_of(2000), 3, np.dtype(np.float64))
    sink.open()
    starts = rng.permutation(np.arange(0, 2000, 50))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda a: sink.put(int(a), rows[a : a + 50]), starts))
    assert not output.where.exists()
    sink.close(True)
    np.testing.assert_array_equal(read(output.result(sink)), rows)


# --- complete or not at all ---------------------------------------------------------


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("before", [False, True], ids=["new", "replacing"])
def test_a_pass_that_fails_leaves_what_was_there(
    ending, before, ridge, X, tmp_path, monkeypatch
):
    monkeypatch.setattr("nystrom.sources.tabular.MIN_CHUNK_VALUES", 500)
    data = tmp_path / "data"
    data.mkdir()
    spoilt = X.copy()
    spoilt[2222, 1] = np.nan
    source = opened(data, "npy", spoilt)  # in small chunks: some rows are written
    path = tmp_path / f"rows{ending}"
    if before:
        ridge.predict(X[:10], out=path)
    there = left_in(tmp_path)
    with pytest.raises(sources.FileError, match="row 2222"):
        ridge.predict(source, out=Overwrite(path))
    assert left_in(tmp_path) == there
    if before:
        np.testing.assert_array_equal(read(path), ridge.predict(X[:10]))


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("when", ["writing", "at the end", "moving", "interrupted"])
def test_a_disk_that_fills_up_leaves_nothing(
    ending, when, ridge, X, tmp_path, monkeypatch
):
    def full(*args, **options):
        if when == "interrupted":
            raise KeyboardInterrupt
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / f"rows{ending}"
    sink = Output(path).sink(rows_of(N_ROWS), 1, np.dtype(float))
    if when in ("at the end", "moving"):
        monkeypatch.setattr(os, "fsync" if when == "at the end" else "replace", full)
    else:
        monkeypatch.setattr(type(sink), "_write", full)
    error = KeyboardInterrupt if when == "interrupted" else OSError
    with pytest.raises(error):
        ridge.predict(X, out=path)
    monkeypatch.undo()
    assert left_in(tmp_path) == []


def test_rows_that_never_came_are_missed(tmp_path):
    sink = Output(tmp_path / "rows.parquet").sink(rows_of(100), 1, np.dtype(float))
    sink.open()
    sink.put(50, np.ones((50, 1)))
    with pytest.raises(RuntimeError, match="0 of 100 rows were received"):
        sink.close(True)
    assert left_in(tmp_path) == []


# --- what out may be ----------------------------------------------------------------


def test_out_is_refused_before_the_work_begins(ridge, X, tmp_path):
    path = tmp_path / "rows.txt"
    with pytest.raises(ValueError, match=r"ending='.txt' is unknown.*'.npy', '.parqu"):
        ridge.predict(X, out=path)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        ridge.predict(X, out=tmp_path / "no" / "rows.npy")
    (tmp_path / "kept.npy").mkdir()
    with pytest.raises(FileExistsError, match="is not overwritten"):
        ridge.predict(X, out=tmp_path / "kept.npy")
    with pytest.raises(TypeError, match="out=5 is not allowed; it is a path"):
        ridge.predict(X, out=5)
    with pytest.raises(ValueError, match=r"out has shape \(2500, 1\); .* \(2500,\)"):
        ridge.predict(X, out=np.empty((N_ROWS, 1)))
    with pytest.raises(ValueError, match=r"out has shape \(2500,\); .* \(2500, 2\)"):
        ridge.predict(X, return_std=True, out=np.empty(N_ROWS))


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    ("model", "method"),
    [
        (Nystroem(n_components=20), "transform"),
        (Nystroem(n_components=20), "fit_transform"),
        (KernelPCA(3, kernel="rbf", n_landmarks=20), "transform"),
        (KernelPCA(3, kernel="rbf", n_landmarks=N_ROWS), "fit_transform"),
        (KernelKMeans(3, n_landmarks=20), "transform"),
        (KernelKMeans(3, n_landmarks=20), "predict"),
        (KernelRidge(n_landmarks=20), "predict"),
        (KernelRidgeClassifier(n_landmarks=20), "predict"),
        (KernelRidgeClassifier(n_landmarks=20), "decision_function"),
        (KernelRidgeClassifier(n_landmarks=20), "predict_proba"),
    ],
)
def test_a_file_that_exists_is_replaced_only_when_asked_for(
    ending, model, method, X, tmp_path
):
    model = clone(model).set_params(random_state=0).fit(X, (X[:, 0] > 0).astype(float))
    path = tmp_path / f"rows{ending}"
    Output(path).store(X)
    told = r"exists already.*replace it: out=nystrom.sources.Overwrite\('.*rows"
    for given in (path, str(path)):
        with pytest.raises(FileExistsError, match=told):
            getattr(model, method)(X, out=given)
    np.testing.assert_array_equal(read(path), X)
    out = getattr(model, method)(X, out=Overwrite(path))
    assert out == path
    expected = getattr(model, method)(X)
    np.testing.assert_array_equal(read(path), expected)
    assert read(path).dtype == expected.dtype
    filled = np.empty_like(expected)
    assert getattr(model, method)(X, out=filled) is filled
    np.testing.assert_array_equal(filled, expected)


@pytest.mark.parametrize("ending", ENDINGS)
def test_rows_are_not_overwritten_by_what_is_made_of_them(ending, ridge, X, tmp_path):
    path = tmp_path / f"rows{ending}"
    Output(path).store(X)
    classes = KernelRidgeClassifier(n_landmarks=5).fit(X, X[:, 0] > 0)
    part, again = sources.open(path), tmp_path / "folder" / ".." / f"rows{ending}"
    (tmp_path / "folder").mkdir()
    for method in (ridge.predict, classes.predict, classes.decision_function):
        for given in (path, sources.open([part, part])):
            with pytest.raises(ValueError, match="from which the rows are read"):
                method(given, out=Overwrite(again))
            with pytest.raises(FileExistsError, match="exists already"):
                method(given, out=again)
    np.testing.assert_array_equal(read(path), X)
    assert left_in(tmp_path) == ["folder", f"rows{ending}"]


def test_a_sink_of_your_own(ridge, X):
    class Largest:
        result = -np.inf

        def open(self):
            pass

        def put(self, start, rows):
            self.result = max(self.result, float(rows.max()))

        def close(self, complete):
            assert complete

    found = ridge.predict(X, out=Largest())
    assert found == ridge.predict(X).max()
    assert (
        ridge.predict(X, out=MappedSink(Largest(), np.negative))
        == -ridge.predict(X).min()
    )


# --- for whoever writes a file in another way ---------------------------------------


def test_replacing_is_all_or_nothing(tmp_path):
    path, link = tmp_path / "page.html", tmp_path / "link.html"
    path.write_text("before")
    link.symlink_to(path.name)

    def begin(error):
        with atomic_write(path) as beside:
            beside.write_text("half")
            raise error

    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error):
            begin(error)
        assert path.read_text() == "before"
    with atomic_write(link) as beside:
        beside.write_text("after")
        assert path.read_text() == "before"
    assert path.read_text() == "after"
    assert link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [link, path]
