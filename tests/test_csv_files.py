"""CSV files that are compressed, and lines that do not fit."""

from __future__ import annotations

import gzip
import pickle
import threading

import numpy as np
import pytest

from nystrom import KernelRidge, select_landmarks, sources
from nystrom.sources import FileError
from nystrom.sources import csv as csv_files
from nystrom.sources import csv as text_bytes
from nystrom.sources import tabular as recent

N_ROWS = 3000
#: Where threads begin to read.
STARTS = range(0, 80_000, 10_000)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(csv_files, "PARSE_BLOCK_BYTES", 20_000)
    monkeypatch.setattr(csv_files, "LINE_SEARCH_BYTES", 7)
    monkeypatch.setattr(text_bytes, "FEED_BYTES", 500)
    monkeypatch.setattr(text_bytes, "MIN_SEEK_POINT_BYTES", 10_000)
    recent.CHUNK_CACHE.clear()


@pytest.fixture
def lines(rng):
    X = rng.standard_normal((N_ROWS, 3))
    return ["a,b,y", *(",".join(map(repr, row)) for row in X.tolist())]


def written(tmp_path, lines, name="rows.csv", end="\n"):
    path, text = tmp_path / name, (end.join(lines) + end).encode()
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return path


# --- compressed ---------------------------------------------------------------------


def test_a_compressed_file_has_the_same_rows(lines, tmp_path):
    plain = sources.open(written(tmp_path, lines), target="y")
    packed = sources.open(written(tmp_path, lines, "rows.csv.gz"), target="y")
    assert packed.n_rows == plain.n_rows == N_ROWS
    for start, stop in ((0, 10), (2990, 3000), (1234, 1999), (0, 3000), (5, 5)):
        np.testing.assert_array_equal(packed.rows(start, stop), plain.rows(start, stop))
        np.testing.assert_array_equal(
            packed.targets[start:stop], plain.targets[start:stop]
        )
    options = {"gamma": 0.5, "n_landmarks": 30, "random_state": 0}
    chosen = [select_landmarks(rows, **options).indices for rows in (plain, packed)]
    np.testing.assert_array_equal(*chosen)


def test_tabs_headers_and_pickles(lines, tmp_path):
    tabs = [line.replace(",", "\t") for line in lines[1:]]
    path = written(tmp_path, tabs, "rows.tsv.gz")
    source = sources.open(path, header=False, target=-1)
    again = pickle.loads(pickle.dumps(source))
    recent.CHUNK_CACHE.clear()
    np.testing.assert_array_equal(again.rows(2000, 2100), source.rows(2000, 2100))
    assert again.rows(0, 1).shape == (1, 2)


def test_parts_and_zeros_are_one_file(lines, tmp_path):
    """As `cat a.gz b.gz` makes it, and tapes."""
    text = ("\n".join(lines) + "\n").encode()
    parts = [text[:30_000], text[30_000:30_001], b"", text[30_001:]]
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(b"".join(map(gzip.compress, parts)) + bytes(2000))
    assert text_bytes.GzipBytes(str(path)).read(0, 10**9) == text
    assert sources.open(path).n_rows == N_ROWS


def test_places_are_few_and_lead_anywhere(lines, tmp_path, rng, monkeypatch):
    monkeypatch.setattr(text_bytes, "MAX_SEEK_POINTS", 5)
    text = ("\n".join(lines) + "\n").encode()
    unpacked = text_bytes.GzipBytes(str(written(tmp_path, lines, "rows.csv.gz")))
    assert 2 <= len(unpacked._places) <= 5
    assert unpacked.size == len(text)
    for start in rng.integers(0, len(text), 30):
        assert unpacked.read(start, start + 999) == text[start : start + 999]
    found = []
    threads = [
        threading.Thread(target=lambda i=i: found.append(unpacked.read(i, i + 50_000)))
        for i in STARTS
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(
        text[i : i + 50_000] for i in range(0, 80_000, 10_000)
    )


@pytest.mark.parametrize("damage", ["cut", "changed", "no gzip"])
def test_a_damaged_file_is_told(damage, lines, tmp_path):
    path = written(tmp_path, lines, "rows.csv.gz")
    packed = bytearray(path.read_bytes())
    if damage == "changed":
        packed[len(packed) // 2] ^= 255
    path.write_bytes(packed[:-400] if damage == "cut" else packed)
    if damage == "no gzip":
        path.write_text("\n".join(lines))
    with pytest.raises(FileError, match=r"rows\.csv\.gz, from row 0 on: .*write"):
        sources.open(path)


def test_other_compressed_files_are_refused(tmp_path):
    (tmp_path / "rows.npy.gz").write_bytes(b"")
    with pytest.raises(ValueError, match=r"ending='\.npy\.gz' is unknown.*'\.csv\.gz'"):
        sources.open(tmp_path / "rows.npy.gz")


# --- lines that do not fit ----------------------------------------------------------


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"], ids=["LF", "CRLF", "blank"])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,2,3,4", "row 2345 has 4 values where there are 3 columns: '1,2,3,4'"),
        ("1,2", "row 2345 has 2 values where there are 3 columns: '1,2'"),
        ('1,"2,5",3,4', "row 2345 has 4 values where there are 3"),
    ],
)
def test_a_line_with_more_or_fewer_values(line, message, name, end, lines, tmp_path):
    lines[1 + 2345] = line
    path = written(tmp_path, lines, name, end)
    with pytest.raises(FileError, match=message):
        KernelRidge(n_landmarks=5).fit(sources.open(path, target="y"))


def test_a_line_that_is_not_utf8(lines, tmp_path):
    lines = [line.replace(",", ",Ulm,", 1) for line in lines]
    lines[1 + 2345] = lines[1 + 2345].replace("Ulm", "Köln")
    path = tmp_path / "rows.csv"
    path.write_bytes("\n".join(lines).encode("latin-1"))
    with pytest.raises(FileError, match=r"row 2345: the text is not UTF-8 .*Write it"):
        sources.open(path, target="Ulm", columns=["a"])
