"""CSV files: converted once, compressed or not, and lines that do not fit."""

import bz2
import datetime
import gc
import gzip
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from nystrom import KernelRidge, select_landmarks, sources
from nystrom.engines.context import set_variable
from nystrom.sources import FileError, arrow
from nystrom.sources import tabular as recent

N_ROWS = 3000


@pytest.fixture(autouse=True)
def temporary(small_chunks, monkeypatch, tmp_path):
    """The folder that rows are converted in."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def lines(rng):
    X = rng.standard_normal((N_ROWS, 3))
    return ["a,b,y", *(",".join(map(repr, row)) for row in X.tolist())]


PACKING = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": lambda text: pa.compress(text, "zstd", asbytes=True),
    "": bytes,
}


def written(tmp_path, lines, name="rows.csv", end="\n"):
    path, text = tmp_path / name, (end.join(lines) + end).encode()
    ending = path.suffix if path.suffix in PACKING else ""
    path.write_bytes(PACKING[ending](text))
    return path


# --- compressed ---------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".zst"])
def test_a_compressed_file_has_the_same_rows(ending, lines, tmp_path):
    plain = sources.open(written(tmp_path, lines), target="y")
    packed = sources.open(written(tmp_path, lines, f"rows.csv{ending}"), target="y")
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


def test_parts_are_one_file(lines, tmp_path):
    """As `cat a.gz b.gz` joins them."""
    text = ("\n".join(lines) + "\n").encode()
    parts = [text[:30_000], text[30_000:30_001], b"", text[30_001:]]
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(b"".join(map(gzip.compress, parts)))
    assert sources.open(path).n_rows == N_ROWS


@pytest.mark.parametrize("damage", ["cut", "changed", "no gzip"])
def test_a_damaged_file_is_told(damage, lines, tmp_path):
    path = written(tmp_path, lines, "rows.csv.gz")
    packed = bytearray(path.read_bytes())
    if damage == "changed":
        packed[len(packed) // 2] ^= 255
    path.write_bytes(packed[:-400] if damage == "cut" else packed)
    if damage == "no gzip":
        path.write_text("\n".join(lines))
    with pytest.raises(FileError, match=r"rows\.csv\.gz,"):
        sources.open(path)


def test_other_compressed_files_are_refused(tmp_path):
    (tmp_path / "rows.npy.gz").write_bytes(b"")
    with pytest.raises(ValueError, match=r"ending='\.gz' is unknown"):
        sources.open(tmp_path / "rows.npy.gz")


# --- how it is written --------------------------------------------------------------


def test_decimal_commas_encodings_and_values_over_several_lines(tmp_path):
    path = tmp_path / "rows.csv"
    text = 'größe;ort;"y\n in m"\n1,5;"Köln\nMitte";2\n-2,25;Ulm;3,5\n'
    path.write_bytes(text.encode("latin-1"))
    options = {"delimiter": ";", "decimal": ",", "encoding": "latin-1"}
    source = sources.open(path, target="ort", **options)
    np.testing.assert_array_equal(source.rows(0, 2), [[1.5, 2], [-2.25, 3.5]])
    assert source.targets.names.tolist() == ["Köln\nMitte", "Ulm"]
    assert source.feature_names == ("größe", "y\n in m")


def test_whole_numbers_first_are_no_promise(tmp_path):
    """The type of a column is not guessed by its first rows."""
    path = tmp_path / "rows.csv"
    values = [*range(5000), 0.5]
    path.write_text("a,b\n" + "\n".join(f"{v},{v}" for v in values))
    np.testing.assert_array_equal(
        sources.open(path).rows(4999, 5001)[:, 0], [4999, 0.5]
    )


# --- the temporary file -------------------------------------------------------------


def test_the_converted_file_is_removed_with_the_source(lines, tmp_path, temporary):
    source = sources.open(written(tmp_path, lines), target="y")
    assert len(list(temporary.rglob("*.ipc"))) == 1
    model = KernelRidge(n_landmarks=5).fit(source)
    del source, model
    gc.collect()
    assert not list(temporary.iterdir())


def test_nothing_is_left_after_an_error_or_a_full_disk(lines, tmp_path, temporary):
    lines[1 + 2345] = "1,x,3"
    message = "column 'b', row 2345: 'x' is not a number"
    with pytest.raises(FileError, match=message) as held:  # with all that it refers to
        sources.open(written(tmp_path, lines))
    assert not list(temporary.iterdir())
    del held

    def full(path):
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match=r"not enough space .*TMPDIR"):
        arrow.TemporaryTable(full)
    assert not list(temporary.iterdir())
    program = (
        "import sys; from nystrom import sources; s = sources.open(sys.argv[1]);"
        "raise ZeroDivisionError"
    )
    lines[1 + 2345] = "1,2,3"
    path = written(tmp_path, lines)
    environment = {**os.environ, "TMPDIR": str(temporary)}
    done = subprocess.run([sys.executable, "-c", program, path], env=environment)
    assert done.returncode == 1
    assert not list(temporary.iterdir())


def test_on_another_machine_it_is_refused(lines, tmp_path, temporary):
    source = sources.open(written(tmp_path, lines), target="y")
    sent = pickle.dumps(source)
    np.testing.assert_array_equal(
        pickle.loads(sent).rows(0, N_ROWS), source.rows(0, N_ROWS)
    )
    for folder in temporary.iterdir():  # another machine has it not
        shutil.rmtree(folder)
    with pytest.raises(FileError, match=r"on another machine\. Write them to Parquet"):
        pickle.loads(sent)


@pytest.mark.parametrize("added", ["1,2,3\n", ""], ids=["longer", "other time"])
def test_a_file_that_changes_after_its_conversion_is_one_error(added, lines, tmp_path):
    path = written(tmp_path, lines)
    source = sources.open(path, target="y")
    os.utime(path, ns=(1, 1))
    with open(path, "a") as file:
        file.write(added)
    recent.CHUNK_CACHE.clear()
    with pytest.raises(FileError, match=r"since it was opened.*Open it again"):
        KernelRidge(n_landmarks=5).fit(source)


def test_a_filter_of_columns_that_are_not_features(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(
        "a,day,city,y\n1,2024-12-31,Ulm,5\n2,2025-01-01,Ulm,6\n3,2025-01-02,Bonn,7\n"
    )
    date = pc.field("day") >= datetime.date(2025, 1, 1)
    for condition, rows in [
        (date, [[2], [3]]),
        (pc.field("city") == "Ulm", [[1], [2]]),
        (date & (pc.field("y") < 7), [[2]]),
    ]:
        source = sources.open(path, columns=["a"], target="y", filter=condition)
        np.testing.assert_array_equal(source.rows(0, source.n_rows), rows)
        np.testing.assert_array_equal(source.targets[:], np.array(rows) + 4)


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz"])
def test_a_bar_shows_the_conversion(name, lines, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(arrow, "CSV_BLOCK_BYTES", 1024)
    monkeypatch.setattr(arrow, "READ_AHEAD_BYTES", 1024)
    path = written(tmp_path, lines, name)
    steps = []
    with set_variable(arrow.progress_hook, lambda *step: steps.append(step)):
        sources.open(path, target="y")
    stages, done, total = zip(*steps, strict=True)
    assert set(stages) == {f"converting {name}"}
    assert len(set(total)) == 1
    assert (done[0], done[-1]) == (0, total[0])
    assert list(done) == sorted(done)
    assert len(set(done)) > 3
    sources.open(path, target="y", verbose=1)
    assert "sources.open" in capsys.readouterr().err


# --- lines that do not fit ----------------------------------------------------------


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"], ids=["LF", "CRLF", "blank"])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,2,3,4", "row 2345 has 4 values where there are 3 columns: '1,2,3,4'"),
        ("1,2", "row 2345 has 2 values where there are 3 columns: '1,2'"),
        ('1,"2,5",3,4', "row 2345 has 4 values where there are 3"),
        ("1,2.5.1,3", r"column 'b', row 2345: '2\.5\.1' is not a number"),
    ],
)
def test_a_line_that_does_not_fit(line, message, name, end, lines, tmp_path):
    lines[1 + 2345] = line
    path = written(tmp_path, lines, name, end)
    with pytest.raises(FileError, match=message):
        KernelRidge(n_landmarks=5).fit(sources.open(path, target="y"))


def test_a_line_that_is_not_utf8(lines, tmp_path):
    lines = [line.replace(",", ",Ulm,", 1) for line in lines]
    lines[1 + 2345] = lines[1 + 2345].replace("Ulm", "Köln")
    path = tmp_path / "rows.csv"
    path.write_bytes("\n".join(lines).encode("latin-1"))
    with pytest.raises(FileError, match=r"row 2345: the text is not UTF-8.*latin-1"):
        sources.open(path, target="Ulm", columns=["a"])


def test_a_header_that_is_not_utf8(lines, tmp_path):
    lines[0] = "a,größe,y"
    path = tmp_path / "rows.csv"
    path.write_bytes("\n".join(lines).encode("latin-1"))
    with pytest.raises(FileError, match=r"not UTF-8.*encoding='latin-1'"):
        sources.open(path, target="y")
    source = sources.open(path, target="y", encoding="latin-1")
    assert source.feature_names == ("a", "größe")


def test_another_delimiter_is_named(lines, tmp_path):
    lines = [
        line.replace(".", "§").replace(",", ";").replace("§", ",") for line in lines
    ]
    path = written(tmp_path, lines)
    with pytest.raises(FileError, match=r"delimiter=';', or delimiter='detect'"):
        sources.open(path, target="y")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"delimiter": "||"}, r"delimiter='\|\|' is not allowed.*one character"),
        ({"delimiter": ""}, "delimiter='' is not allowed"),
        ({"decimal": 3}, "decimal=3 is not allowed"),
        ({"encoding": "klingon"}, "encoding='klingon' is not allowed"),
        ({"header": 0}, "header=0 is not allowed; header must be True or False"),
        ({"header": None}, "header=None is not allowed"),
    ],
)
def test_wrong_options(option, message, lines, tmp_path):
    with pytest.raises(ValueError, match=message):
        sources.open(written(tmp_path, lines), target="y", **option)
