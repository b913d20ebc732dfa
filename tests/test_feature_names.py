"""Columns that have names: new rows are taken by them, or refused."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from nystrom import KernelPCA, KernelRidge, Nystroem, load, save, sources
from nystrom.sources import ConcatenatedRows

NAMES = ["a", "b", "größe"]


@pytest.fixture
def frame(rng):
    return pd.DataFrame(rng.standard_normal((300, 3)), columns=NAMES)


@pytest.fixture
def y(frame):
    return np.sin(frame["a"].to_numpy()) + frame["b"].to_numpy()


def ridge():
    options = {"kernel": "rbf", "gamma": 0.2, "alpha": 1e-2}
    return KernelRidge(**options, n_landmarks=30, random_state=0)


@pytest.fixture
def fitted(frame, y, tmp_path):
    frame.assign(y=y).to_parquet(tmp_path / "rows.parquet")
    return ridge().fit(sources.open(tmp_path / "rows.parquet", target="y"))


def test_names_are_kept(fitted, frame, y, tmp_path):
    assert fitted.feature_names_in_.tolist() == NAMES
    path = tmp_path / "model.nystrom"
    save(fitted, path)
    assert load(path).feature_names_in_.tolist() == NAMES
    # Rows in memory need not have them.
    assert_array_equal(load(path).predict(frame.to_numpy()), fitted.predict(frame))
    fitted.fit(frame.to_numpy(), y)
    assert not hasattr(fitted, "feature_names_in_")


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
def test_a_path_gives_the_columns_that_were_fitted(fitted, frame, y, ending, tmp_path):
    """In their order, whatever else there is."""
    path = tmp_path / f"new.{ending}"
    other = frame[NAMES[::-1]].assign(y=y, text="none")
    if ending == "csv":
        other.to_csv(path, index=False)
    else:
        getattr(other, f"to_{ending}")(path)
    np.testing.assert_allclose(fitted.predict(path), fitted.predict(frame), rtol=1e-12)
    assert fitted.score(path, y) == pytest.approx(fitted.score(frame, y))


@pytest.mark.parametrize("make", [Nystroem, KernelPCA])
def test_transformers_take_paths_by_name(make, frame, tmp_path):
    frame.to_parquet(tmp_path / "rows.parquet")
    frame[NAMES[::-1]].assign(text="x").to_parquet(tmp_path / "new.parquet")
    for size in (3, 400):  # landmarks, and all rows
        size = {"n_components": 3} if make is Nystroem else {"n_landmarks": size}
        model = make(kernel="rbf", random_state=0, **size)
        model.fit(tmp_path / "rows.parquet")
        made = model.transform(tmp_path / "new.parquet")
        np.testing.assert_allclose(made, model.transform(frame), atol=1e-12)


def test_rows_in_another_order_are_refused(fitted, frame, tmp_path):
    path = tmp_path / "new.parquet"
    frame[["b", "a", "größe"]].to_parquet(path)
    with pytest.raises(
        ValueError, match=r"during fit: their order is another.*columns"
    ):
        fitted.predict(sources.open(path))
    with pytest.raises(ValueError, match="names should match"):
        fitted.predict(frame[["b", "a", "größe"]])
    with pytest.raises(ValueError, match="their order is another"):
        fitted.predict(pa.Table.from_pandas(frame[["b", "a", "größe"]]))
    frame.rename(columns={"b": "c"}).to_parquet(path)
    with pytest.raises(ValueError, match="'b' is missing"):
        fitted.predict(path)
    by_frame = ridge().fit(frame, frame["a"])
    with pytest.raises(ValueError, match="'b' is missing"):
        by_frame.predict(path)


def test_rows_without_names_are_taken_as_they_are(fitted, frame, tmp_path):
    np.save(tmp_path / "new.npy", frame.to_numpy())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fitted.predict(tmp_path / "new.npy")
    assert_array_equal(found, fitted.predict(frame))


def test_sources_with_other_columns_are_not_stacked(frame, tmp_path):
    frame.to_parquet(tmp_path / "one.parquet")
    frame[["b", "a", "größe"]].to_parquet(tmp_path / "two.parquet")
    parts = [sources.open(tmp_path / f"{name}.parquet") for name in ("one", "two")]
    with pytest.raises(ValueError, match="a, b, größe and b, a, größe; open all with"):
        ConcatenatedRows(parts)
    # Files that are opened together are read by name.
    both = sources.open([tmp_path / "one.parquet", tmp_path / "two.parquet"])
    assert_array_equal(both.rows(300, 600), frame.to_numpy())


def test_dask_frames_have_names(frame, y):
    dask_frame = pytest.importorskip("dask.dataframe")
    model = ridge().fit(dask_frame.from_pandas(frame, npartitions=3), y)
    assert model.feature_names_in_.tolist() == NAMES
    new = dask_frame.from_pandas(frame, npartitions=2)
    lazy = model.predict(new)
    np.testing.assert_allclose(lazy.compute(), model.predict(frame), rtol=1e-9)
    with pytest.raises(ValueError, match="their order is another"):
        model.predict(new[["b", "a", "größe"]])


def test_targets_and_weights_may_be_series_of_dask(frame, y):
    dask_frame = pytest.importorskip("dask.dataframe")
    lazy = dask_frame.from_pandas(frame.assign(y=y, w=np.abs(y)), npartitions=3)
    found = ridge().fit(lazy[NAMES], lazy["y"], sample_weight=lazy["w"])
    expected = ridge().fit(frame, y, sample_weight=np.abs(y))
    assert_array_equal(found.landmarks_.indices, expected.landmarks_.indices)
    np.testing.assert_allclose(found.predict(frame), expected.predict(frame), rtol=1e-9)
    times = lazy["y"].astype("datetime64[ns]")
    with pytest.raises(ValueError, match=r"y holds datetime64.* not numbers"):
        ridge().fit(lazy[NAMES], times)


def test_batches_of_a_stream_may_be_files(frame, y, tmp_path):
    parts = [slice(0, 100), slice(100, 200), slice(200, 300)]
    for number, part in enumerate(parts):
        path = tmp_path / f"{number}.parquet"
        frame.assign(y=y)[part].to_parquet(path)
    files = [tmp_path / f"{number}.parquet" for number in range(3)]
    model, expected = ridge(), ridge()
    for file, part in zip(files, parts, strict=True):
        model.partial_fit(sources.open(file, target="y"))
        expected.partial_fit(frame[part], y[part])
    np.testing.assert_allclose(model.predict(frame), expected.predict(frame), rtol=1e-9)
    model.partial_fit(files[0], y[:100])  # by the names that were fitted
    other = sources.open(files[0], target="y", columns=["b", "a", "größe"])
    with pytest.raises(ValueError, match="their order is another"):
        model.partial_fit(other)
    with pytest.raises(ValueError, match="requires y to be passed"):
        ridge().partial_fit(frame)
