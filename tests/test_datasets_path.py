"""Data sets from files of one's own, and the paper's preprocessing."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from archive_server import MODULES, sample, text, year_text, zipped
from oracles_datasets import numeric_oracle, standardised_oracle

from nystrom import datasets
from nystrom.datasets.adult_columns import COLUMNS
from nystrom.datasets.preprocessing import BLOCK_ROWS, standardised

NAMES = sorted(MODULES)
FETCHERS = {name: getattr(datasets, f"fetch_{name}") for name in NAMES}


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("path= must not download")

    monkeypatch.setattr("sklearn.datasets.fetch_file", refuse)


def as_served(name, folder):
    files = sample(name).files
    for filename, content in files.items():
        (folder / filename).write_bytes(content)
    return [folder / filename for filename in files]


def plain_texts(name):
    """The texts of a set, out of whatever the archive wraps them in."""
    files = sample(name).files
    if name == "covertype":
        return {"covtype.data": gzip.decompress(files["covtype.data.gz"])}
    if name == "year_prediction_msd":
        return {"YearPredictionMSD.txt": year_text(sample(name))}
    return files


def plain(name, folder):
    for filename, content in plain_texts(name).items():
        (folder / filename).write_bytes(content)
    return [folder / filename for filename in plain_texts(name)]


def gzipped(name, folder):
    paths = []
    for filename, content in plain_texts(name).items():
        paths.append(folder / f"{filename}.gz")
        paths[-1].write_bytes(gzip.compress(content, mtime=0))
    return paths


def one_zip(name, folder):
    """All files in one zip, in another order and with something else beside them."""
    texts = dict(reversed(plain_texts(name).items()))
    path = folder / "all.zip"
    path.write_bytes(zipped({"readme": b"about", **texts}))
    return path


def zip_of_gzip(name, folder):
    texts = {f"{n}.gz": gzip.compress(c, mtime=0) for n, c in plain_texts(name).items()}
    path = folder / "all.zip"
    path.write_bytes(zipped(texts))
    return path


def arrays(name, folder):
    here = sample(name)
    np.savez_compressed(folder / "all.npz", X=here.X, y=here.y, more=1)
    return folder / "all.npz"


@pytest.mark.parametrize(
    "give", [as_served, plain, gzipped, one_zip, zip_of_gzip, arrays]
)
def test_every_format_gives_the_same(give, name, tmp_path):
    got = FETCHERS[name](path=give(name, tmp_path), preprocess=False, dtype=np.float64)
    here = sample(name)
    X, y, feature_names = numeric_oracle(name, here.X, here.y)
    np.testing.assert_array_equal(got.data, X)
    np.testing.assert_array_equal(got.target, y)
    assert got.feature_names == feature_names
    assert got.origin == "file"


def test_a_part_says_so(name, tmp_path):
    got = FETCHERS[name](path=str(as_served(name, tmp_path)[0]))
    whole = MODULES[name].ARCHIVE.n_rows
    assert got.n_rows_whole == whole > len(got.data)
    assert f"part: the whole set has {whole} rows" in got.DESCR
    assert MODULES[name].ARCHIVE.licence in got.DESCR


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_adult_with_a_header(tmp_path, compress):
    here = sample("adult")
    lines = [",".join([*row, label]) for row, label in zip(here.X, here.y, strict=True)]
    path = tmp_path / "adult.csv"
    path.write_bytes(compress(text([",".join([*COLUMNS, "income"]), *lines])))
    X, y = datasets.fetch_adult(path=path, preprocess=False, return_X_y=True)
    wanted, target, _ = numeric_oracle("adult", here.X, here.y)
    np.testing.assert_array_equal(X, wanted)
    np.testing.assert_array_equal(y, target)


def test_a_part_of_adult_has_the_columns_of_the_whole(tmp_path):
    train, test = as_served("adult", tmp_path)
    first = datasets.fetch_adult(path=train)
    second = datasets.fetch_adult(path=test)
    assert first.feature_names == second.feature_names
    assert first.data.shape[1] == second.data.shape[1] == 108
    assert sum("=?" in column for column in first.feature_names) == 3
    assert first.target_names == ["<=50K", ">50K"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_preprocessing(name, tmp_path, dtype):
    got = FETCHERS[name](path=arrays(name, tmp_path), dtype=dtype)
    here = sample(name)
    wanted = standardised_oracle(numeric_oracle(name, here.X, here.y)[0])
    assert got.data.dtype == dtype
    assert got.data.flags.c_contiguous
    accuracy = 1e-12 if dtype is np.float64 else 1e-6
    np.testing.assert_allclose(got.data, wanted, rtol=accuracy, atol=accuracy)
    constant = wanted.any(axis=0) == 0
    assert (got.data[:, constant] == 0).all()
    assert constant.any() == (name in ("adult", "covertype"))
    data = got.data[:, ~constant].astype(float)
    np.testing.assert_allclose(data.mean(axis=0), 0, atol=accuracy)
    np.testing.assert_allclose(data.var(axis=0), 1, rtol=10 * accuracy)


@pytest.mark.parametrize("n_rows", [1, BLOCK_ROWS, 2 * BLOCK_ROWS + 1])
def test_standardising_by_blocks(n_rows):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 4)) * [1, 1e-3, 1e3, 0] + [0, 1e6, 5, 0.1]
    got = standardised(X, np.dtype(np.float64))
    # A mean of 1e6 beside a deviation of 1e-3 leaves 1e9 roundings.
    np.testing.assert_allclose(got, standardised_oracle(X), rtol=1e-6, atol=1e-6)
    assert (got[:, 3] == 0).all()
    if n_rows > 1:
        np.testing.assert_allclose(got[:, :3].mean(axis=0), 0, atol=1e-9)


@pytest.mark.parametrize("row", [1, -1])
def test_constant_but_for_one_row_is_not_constant(row):
    X = np.full((2 * BLOCK_ROWS, 1), 0.1, np.float32)
    X[row] = 0.2
    assert standardised(X, np.dtype(np.float32)).std() == pytest.approx(1, rel=1e-4)


def test_path_that_is_not_there(name, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere is not there") as caught:
        FETCHERS[name](path=tmp_path / "nowhere", missing="generate")
    assert MODULES[name].ARCHIVE.files[0].filename in str(caught.value)
    with pytest.raises(FileNotFoundError, match="is a folder"):
        FETCHERS[name](path=tmp_path)
    with pytest.raises(ValueError, match="names no file"):
        FETCHERS[name](path=[])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"data": np.zeros((2, 54)), "y": [1, 2]}, "arrays X and y; it has: data, y"),
        ({"X": np.zeros((2, 53)), "y": [1, 2]}, "X is 2 × 53, but .* has 54 columns"),
        ({"X": np.zeros(54), "y": [1]}, "X is 54, but"),
        ({"X": np.zeros((2, 54)), "y": [1, 2, 3]}, "X has 2 rows"),
        ({"X": np.zeros((0, 54)), "y": []}, "no rows"),
        ({"X": np.zeros((2, 54)), "y": [0, 1]}, "other than 1, 2, ..., 7"),
        ({"X": np.full((2, 54), np.nan), "y": [1, 2]}, "not a number"),
        ({"X": np.full((2, 54), "a"), "y": [1, 2]}, "numbers are needed"),
        ({"X": np.full((2, 54), None), "y": [1, 2]}, "cannot be read as Covertype"),
    ],
)
def test_wrong_arrays(tmp_path, arrays, message):
    np.savez(tmp_path / "wrong.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        datasets.fetch_covertype(path=tmp_path / "wrong.npz")


ADULT_LINE = (
    "39, Private, 77516, Masters, 13, Divorced, Sales, Wife, White, Male, 0, 0, 40, "
    "Cuba, <=50K"
)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("covertype", b"", "no rows"),
        ("covertype", b"1,2,3\n", "3 values, not 55"),
        ("covertype", b"1,2\n1,2,3\n", "cannot be read as Covertype"),
        ("covertype", b"a,b\n", "cannot be read as Covertype"),
        ("covertype", gzip.compress(b"1,2,3\n" * 99, mtime=0)[:-9], "cannot be read"),
        ("covertype", zipped({"a": b"1", "b": b"2"}), "none of them the set's: a, b"),
        ("year_prediction_msd", b"2001,1.5\n", "2 values, not 91"),
        ("cod_rna", b"1 1:2 9:3\n", "cannot be read as Cod-RNA"),
        ("cod_rna", b"3 1:2\n", "other than -1 and 1"),
        ("cod_rna", b"", "no rows"),
        ("adult", b"39, Private\n", "a line of 2 values, not 15"),
        ("adult", b"", "no rows"),
        ("adult", b"age,income\n", "its header is age, income"),
        ("adult", ADULT_LINE.replace("Cuba", "Atlantis").encode(), "Atlantis"),
        ("adult", ADULT_LINE.replace("39", "old").encode(), "column age of Adult"),
        ("adult", ADULT_LINE.replace("<=50K", "rich").encode(), "income of Adult"),
    ],
)
def test_wrong_text(tmp_path, name, content, message):
    (tmp_path / "wrong").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        FETCHERS[name](path=tmp_path / "wrong")


def test_adult_needs_text(tmp_path):
    np.savez(tmp_path / "wrong.npz", X=np.zeros((2, 14)), y=[0, 1])
    with pytest.raises(ValueError, match="text is needed"):
        datasets.fetch_adult(path=tmp_path / "wrong.npz")


def test_cut_npz(tmp_path):
    path = arrays("cod_rna", tmp_path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ValueError, match="or was cut short"):
        datasets.fetch_cod_rna(path=path)
