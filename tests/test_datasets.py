"""Data sets from the archive: downloaded, kept, checked, and refused when wrong."""

from __future__ import annotations

import os
import re
from dataclasses import replace

import numpy as np
import pytest
from archive_server import MODULES, ArchiveServer, serve, year_text, zipped
from oracles_datasets import numeric_oracle

from nystrom import datasets
from nystrom.datasets.by_name import ARCHIVES

NAMES = sorted(MODULES)
FETCHERS = {name: getattr(datasets, f"fetch_{name}") for name in NAMES}
AT_ONCE = {"n_retries": 0, "delay": 0.0}


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with ArchiveServer() as running:
        yield running


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture
def served(monkeypatch, server, name):
    return serve(monkeypatch, server, name)


@pytest.fixture
def fetch(name, tmp_path):
    def call(**arguments):
        arguments = {"data_home": tmp_path, **AT_ONCE, **arguments}
        return FETCHERS[name](**arguments)

    return call


def tree(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_download_gives_what_the_files_hold(served, fetch, name):
    got = fetch(preprocess=False, dtype=np.float64)
    X, y, feature_names = numeric_oracle(name, served.X, served.y)
    np.testing.assert_array_equal(got.data, X)
    np.testing.assert_array_equal(got.target, y)
    assert got.feature_names == feature_names
    assert got.origin == "download"
    assert got.n_rows_whole == len(X)
    assert "part" not in got.DESCR.split("Rows:")[1].split("\n")[0]


def test_second_call_is_offline(served, fetch, server):
    first = fetch()
    requests = len(server.requests)
    assert requests == len(server.files)
    server.stop()
    second = fetch()
    assert len(server.requests) == requests
    assert second.origin == "cache"
    np.testing.assert_array_equal(second.data, first.data)
    np.testing.assert_array_equal(second.target, first.target)
    assert fetch(download_if_missing=False).origin == "cache"
    server.__enter__()  # the fixture stops it again


def test_download_if_missing_false_asks_nobody(served, fetch, server, tmp_path, name):
    with pytest.raises(OSError, match="download_if_missing=False"):
        fetch(download_if_missing=False)
    assert server.requests == []
    assert tree(tmp_path) == []


def test_the_error_says_all_there_is_to_do(served, fetch, server, tmp_path, name):
    server.files.clear()
    with pytest.raises(OSError, match="404") as caught:
        fetch()
    message = str(caught.value)
    for file in MODULES[name].ARCHIVE.files:
        assert file.url in message
    assert str(tmp_path / name) in message
    assert "path=" in message
    assert 'missing="generate"' in message
    assert tree(tmp_path) == []


def test_no_server(served, fetch, server, tmp_path):
    server.stop()
    with pytest.raises(OSError, match="cannot be had"):
        fetch()
    assert tree(tmp_path) == []
    server.__enter__()


def test_body_cut_short(served, fetch, server, tmp_path):
    server.missing_bytes = 7
    with pytest.raises(OSError, match="could not be downloaded"):
        fetch()
    assert tree(tmp_path) == []


@pytest.mark.parametrize("name", ["adult", "covertype"], indirect=True)
def test_whole_body_of_a_short_file(served, fetch, server, tmp_path):
    first = next(iter(server.files))
    server.files[first] = server.files[first][:-7]
    with pytest.raises(OSError, match="SHA256 checksum"):
        fetch()
    assert tree(tmp_path) == []


@pytest.mark.parametrize("name", ["cod_rna"], indirect=True)
def test_other_values_without_a_published_hash(served, fetch, server, tmp_path):
    lines = server.files["cod-rna.t"].splitlines(keepends=True)
    server.files["cod-rna.t"] = b"".join(lines[::-1])
    with pytest.raises(OSError, match="sha256 of its values"):
        fetch()
    assert tree(tmp_path) == []


@pytest.mark.parametrize("name", ["year_prediction_msd"], indirect=True)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: [lines[1], lines[0], *lines[2:]], "first row"),
        (lambda lines: lines[:-1], "rows, not"),
        (lambda lines: [*lines[:-1], b"1850" + lines[-1][4:]], "years from 1850"),
    ],
)
def test_other_songs(served, fetch, server, tmp_path, change, message):
    lines = year_text(served).splitlines()
    changed = zipped({"YearPredictionMSD.txt": b"\n".join(change(lines))})
    server.files["YearPredictionMSD.txt.zip"] = changed
    with pytest.raises(OSError, match=message):
        fetch()
    assert tree(tmp_path) == []


@pytest.mark.parametrize("name", ["year_prediction_msd"], indirect=True)
def test_an_error_page_instead_of_the_file(served, fetch, server, tmp_path):
    server.files["YearPredictionMSD.txt.zip"] = b"<html>moved</html>"
    with pytest.raises(OSError, match="cannot be read as YearPredictionMSD"):
        fetch()
    assert tree(tmp_path) == []


def test_tries_again(served, fetch, server):
    server.failures = [503, 503]
    assert fetch(n_retries=2).origin == "download"
    assert len(server.requests) == 2 + len(server.files)
    server.requests.clear()


def test_gives_up(served, fetch, server, tmp_path):
    server.failures = [503, 503]
    with pytest.raises(OSError, match="503"):
        fetch(n_retries=1)
    assert len(server.requests) == 2
    assert tree(tmp_path) == []


def damage(folder):
    made = (".sha256", ".npz")
    path = sorted(p for p in folder.iterdir() if p.suffix not in made)[0]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    return path


def test_damaged_file_is_replaced(served, fetch, tmp_path, name):
    first = fetch()
    damaged = damage(tmp_path / name)
    with pytest.warns(
        UserWarning, match=f"{re.escape(damaged.name)} was damaged"
    ) as caught:
        second = fetch()
    assert [warning.filename for warning in caught] == [__file__]
    assert second.origin == "download"
    np.testing.assert_array_equal(second.data, first.data)
    assert fetch().origin == "cache"


def test_damaged_file_offline_is_one_clear_error(served, fetch, server, tmp_path, name):
    fetch()
    damaged = damage(tmp_path / name)
    server.stop()
    for arguments in ({}, {"download_if_missing": False}):
        with pytest.raises(OSError, match="damaged") as caught:
            fetch(**arguments)
        assert str(damaged) in str(caught.value)
    assert damaged.exists()  # the user's to delete
    server.__enter__()


@pytest.mark.parametrize("name", ["cod_rna", "year_prediction_msd"], indirect=True)
def test_own_hash_is_kept_where_none_is_published(
    served, fetch, server, tmp_path, name
):
    fetch()
    kept = [f"{file.filename}.sha256" for file in MODULES[name].ARCHIVE.files]
    for record in kept:
        digest, filename = (tmp_path / name / record).read_text().split()
        assert re.fullmatch("[0-9a-f]{64}", digest)
        assert f"{filename}.sha256" == record
    copies = ["parsed.npz"] if name == "year_prediction_msd" else []
    assert tree(tmp_path / name) == sorted([*server.files, *kept, *copies])


@pytest.fixture
def parses(monkeypatch):
    """How often the text of YearPredictionMSD was read."""
    module, calls = MODULES["year_prediction_msd"], []

    def read_text(stream):
        calls.append(stream)
        return module.read_text(stream)

    monkeypatch.setattr(module, "ARCHIVE", replace(module.ARCHIVE, read_text=read_text))
    return calls


@pytest.mark.parametrize("name", ["year_prediction_msd"], indirect=True)
def test_long_text_is_read_once(served, fetch, parses, tmp_path, name, server):
    first = fetch(dtype=np.float64)
    second = fetch(dtype=np.float64)
    assert second.origin == "cache"
    assert len(parses) == 1
    np.testing.assert_array_equal(first.data, second.data)
    np.testing.assert_array_equal(first.target, second.target)

    copy = tmp_path / name / "parsed.npz"
    copy.write_bytes(copy.read_bytes()[:-40])
    np.testing.assert_array_equal(fetch(dtype=np.float64).data, first.data)
    assert len(parses) == 2
    np.testing.assert_array_equal(fetch(dtype=np.float64).data, first.data)
    assert len(parses) == 2


@pytest.mark.parametrize("name", ["year_prediction_msd"], indirect=True)
def test_a_copy_of_another_file_is_not_used(served, fetch, parses, tmp_path, name):
    first = fetch(preprocess=False)
    (archive,) = (tmp_path / name).glob("*.zip")
    served.X[3, 5] += 1
    archive.write_bytes(zipped({"YearPredictionMSD.txt": year_text(served)}))
    (tmp_path / name / f"{archive.name}.sha256").unlink()
    second = fetch(preprocess=False)
    assert len(parses) == 2
    assert second.data[3, 5] == pytest.approx(first.data[3, 5] + 1)


@pytest.mark.parametrize("name", ["adult"], indirect=True)
def test_one_good_file_of_two_is_kept(served, fetch, server, tmp_path):
    test_file = server.files.pop("adult.test")
    with pytest.raises(OSError, match="404"):
        fetch()
    assert tree(tmp_path) == ["adult", os.path.join("adult", "adult.data")]
    server.files["adult.test"] = test_file
    server.requests.clear()
    assert fetch().origin == "download"
    assert server.requests == ["adult.test"]


def test_missing_generate(served, fetch, server, name):
    server.files.clear()
    with pytest.warns(UserWarning, match="replaced by generated data") as caught:
        got = fetch(missing="generate")
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert "404" in str(caught[0].message)
    assert got.origin == "generated stand-in"
    assert "generated stand-in" in got.DESCR.split(".")[0]
    wanted = datasets.make_stand_in(name, n_samples=len(served.X))
    np.testing.assert_array_equal(got.data, wanted.data)
    np.testing.assert_array_equal(got.target, wanted.target)


def test_missing_generate_prefers_the_data(served, fetch):
    assert fetch(missing="generate").origin == "download"
    assert fetch(missing="generate", download_if_missing=False).origin == "cache"


def test_data_home(served, fetch, name, tmp_path, monkeypatch):
    monkeypatch.setenv("NYSTROM_DATA_HOME", str(tmp_path / "by_variable"))
    fetch(data_home=None)
    assert tree(tmp_path)[0] == "by_variable"
    assert (tmp_path / "by_variable" / name).is_dir()
    fetch(data_home=tmp_path / "by_argument")
    assert (tmp_path / "by_argument" / name).is_dir()
    assert datasets.get_data_home() == tmp_path / "by_variable"
    monkeypatch.delenv("NYSTROM_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert datasets.get_data_home() == tmp_path / "nystrom_data"


def test_clear_data_home(served, fetch, tmp_path, name):
    fetch()
    datasets.clear_data_home(tmp_path)
    assert not tmp_path.exists()
    fetch()
    (tmp_path / name / "mine.txt").write_text("keep")
    datasets.clear_data_home(tmp_path)
    assert tree(tmp_path) == [name, os.path.join(name, "mine.txt")]


def test_return_X_y(served, fetch):
    X, y = fetch(return_X_y=True)
    got = fetch()
    np.testing.assert_array_equal(X, got.data)
    np.testing.assert_array_equal(y, got.target)


@pytest.mark.parametrize("name", ["covertype"], indirect=True)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"missing": "ignore"}, "missing='ignore' is unknown. Allowed: 'raise', 'gen"),
        ({"dtype": np.int32}, "Allowed: float32, float64"),
        ({"dtype": "no such"}, "Allowed: float32, float64"),
        ({"dtype": None}, "Allowed: float32, float64"),
        ({"n_retries": -1}, "n_retries=-1"),
        ({"delay": -0.5}, "delay=-0.5"),
    ],
)
def test_bad_arguments(served, fetch, server, arguments, message):
    with pytest.raises(ValueError, match=message):
        fetch(**arguments)
    assert server.requests == []


def test_arguments_are_keywords(name, tmp_path):
    with pytest.raises(TypeError, match="positional"):
        FETCHERS[name](tmp_path)


def test_the_registry_is_well_formed():
    shapes = {name: (a.n_rows, a.n_columns) for name, a in ARCHIVES.items()}
    assert shapes == {
        "adult": (48842, 14),
        "cod_rna": (331152, 8),
        "covertype": (581012, 54),
        "year_prediction_msd": (515345, 90),
    }
    files = [file for archive in ARCHIVES.values() for file in archive.files]
    assert len({file.url for file in files}) == len(files) == 6
    assert len({file.filename for file in files}) == len(files)
    for file in files:
        assert file.url.startswith("https://")
        assert file.sha256 is None or re.fullmatch("[0-9a-f]{64}", file.sha256)
        assert os.path.basename(file.filename) == file.filename
    for archive in ARCHIVES.values():
        assert archive.page.startswith("https://")
        assert archive.licence
        assert archive.citation


@pytest.mark.skipif(
    os.environ.get("NYSTROM_NETWORK_TESTS") != "1",
    reason="uses the network: set NYSTROM_NETWORK_TESTS=1",
)
def test_the_real_archives(name, tmp_path):
    got = FETCHERS[name](data_home=tmp_path)
    assert got.origin == "download"
    assert len(got.data) == ARCHIVES[name].n_rows
    assert FETCHERS[name](data_home=tmp_path).origin == "cache"
