"""Tables as people have them: what programs for tables write, and how they are told."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from test_command import houses, run

from nystrom.cli.tables import open_writer, read_table

ROWS = "size,rooms,town\n80.5,3,Köln\n,4,Ulm\n"


def read(tmp_path, text, name="t.csv", encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return read_table(str(path))


def refusal(tmp_path, text, name="t.csv", encoding="utf-8"):
    with pytest.raises(ValueError, match=r"t\.") as told:
        read(tmp_path, text, name, encoding)
    return str(told.value)


@pytest.mark.parametrize(
    "text",
    [
        ROWS,
        "\ufeff" + ROWS,
        ROWS.replace("\n", "\r\n"),
        "\n" + ROWS.replace("\n", "\n\n"),
        ROWS.replace(",", ";"),
        ROWS.replace(",", ";").replace(".", ","),
        ROWS.replace(",", "\t"),
        ROWS.replace(",", "|"),
        ROWS.replace("size", '"size"').replace("Ulm", '"Ulm"'),
        ROWS.replace(",", " , "),
        ROWS.replace("\n,", "\nn/a,"),
        ROWS.replace("\n,", "\n#N/A,"),
    ],
    ids=lambda text: repr(text[:24]),
)
def test_what_programs_for_tables_write(text, tmp_path):
    found = read(tmp_path, text)
    assert list(found.columns) == ["size", "rooms", "town"]
    assert found["size"].astype(float).fillna(-1).tolist() == [80.5, -1]
    assert [name.strip() for name in found["town"]] == ["Köln", "Ulm"]


def test_standard_input_is_read_as_files_are(monkeypatch):
    text = "\ufeffa;b\n1,5;x\n2;y, z\n"
    stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
    monkeypatch.setattr("sys.stdin", stdin)
    found = read_table("-")
    assert found.to_dict("list") == {"a": ["1.5", "2"], "b": ["x", "y, z"]}


def test_commas_are_no_decimal_signs_where_points_are(tmp_path):
    """1.234 and 12,5 in one column: one of them has a sign for thousands."""
    found = read(tmp_path, "a;b\n1.234;1\n12,5;2\n")
    assert found["a"].tolist() == ["1.234", "12,5"]


def test_columns_without_names_and_a_name_that_looks_missing(tmp_path):
    found = read(tmp_path, ",NA,x,\n1,2,3,\n")
    assert list(found.columns) == ["column 1", "NA", "x", "column 4"]


@pytest.mark.parametrize(
    ("text", "name", "encoding", "message"),
    [
        ("a,a,b\n1,2,3\n", "t.csv", "utf-8", "two columns are called 'a'"),
        ("a,b\n1,2,3\n4,5,6\n", "t.csv", "utf-8", "row 0 has 3 values"),
        ('a,b\n"x\ny",2\n1,2,3\n', "t.csv", "utf-8", "row 1 has 3 values"),
        ("a,b\n1,Köln\n", "t.csv", "latin-1", "the text is not UTF-8"),
        ("a,b\n1,Köln\n", "t.csv", "utf-16", "t.csv"),
        ("a,b\n1,2\n", "t.json.gz", "utf-8", "the ending='.gz' is unknown"),
        ("\n\n", "t.csv", "utf-8", "is empty"),
        (
            'a,b\n1,2\n1,"2\n3,4\n5,6\n',
            "t.csv",
            "utf-8",
            "a quote is not closed",
        ),
        ("a,b\n1,2\n", "t.csv.gz", "utf-8", "t.csv.gz"),
    ],
    ids=str,
)
def test_what_is_no_table_is_told(text, name, encoding, message, tmp_path):
    assert message in refusal(tmp_path, text, name, encoding)


def test_rows_are_numbered_from_0(tmp_path):
    """Values of several lines, and empty lines, are no rows of their own."""
    found = read(tmp_path, 'note,a\n"one\ntwo",1\n\nx,2\n"three\nfour",many\n')
    assert found.index.tolist() == [0, 1, 2]


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_what_is_written_is_read_again(ending, tmp_path):
    path = str(tmp_path / f"t{ending}")
    piece = pd.DataFrame({"a": [1, 2], "b": ["x, y", 'ö "z"']})
    with open_writer(path) as write:
        write(piece)
        write(piece)
    found = read_table(path)
    assert found["a"].tolist() == ["1", "2"] * 2
    assert found["b"].tolist() == ["x, y", 'ö "z"'] * 2


def test_the_index_of_a_data_frame_is_no_column(tmp_path):
    table = pd.DataFrame({"a": [3, 1], "b": ["x", "y"]}, index=[7, 2])
    table.to_parquet(tmp_path / "t.parquet")
    found = read_table(str(tmp_path / "t.parquet"))
    assert found.to_dict("list") == table.to_dict("list")
    assert found.index.tolist() == [0, 1]


def test_pieces_of_parquet_with_gaps_in_one_of_them(tmp_path):
    path = str(tmp_path / "t.parquet")
    with open_writer(path) as write:
        write(pd.DataFrame({"a": [1, 2]}))
        write(pd.DataFrame({"a": [3.0, np.nan]}))
    assert pd.read_parquet(path)["a"].isna().tolist() == [False, False, False, True]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    houses().to_csv(folder / "t.csv", index=False)
    words = ["--target", "price", "-o", folder / "m", "--landmarks", 20]
    assert run("fit", folder / "t.csv", *words).exit_code == 0
    return folder


def test_a_table_of_semicolons_gives_the_same_model(fitted, tmp_path):
    houses().to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",")
    words = ["--target", "price", "-o", tmp_path / "m", "--landmarks", 20, "--json"]
    found = json.loads(run("fit", tmp_path / "t.csv", *words).stdout)
    here = json.loads(run("info", fitted / "m", "--json").stdout)
    for key in ("columns", "held_out", "penalty", "gamma"):
        assert found[key] == here[key]
    predicted = [run("predict", fitted / "m", f / "t.csv") for f in (fitted, tmp_path)]
    assert predicted[0].stdout == predicted[1].stdout


@pytest.mark.parametrize(
    "words",
    [
        ["fit", "t.csv", "--target", "price", "-o", "t.csv"],
        ["fit", "t.csv", "--target", "price", "-o", "n", "--report", "t.csv"],
        ["fit", "t.csv", "--target", "price", "-o", "n", "--report", "./n"],
        ["predict", "m", "t.csv", "-o", "link.csv"],
        ["predict", "m", "t.csv", "-o", "m"],
    ],
    ids=" ".join,
)
def test_nothing_is_written_over_what_is_read(words, fitted, monkeypatch):
    monkeypatch.chdir(fitted)
    if not (fitted / "link.csv").exists():
        (fitted / "link.csv").symlink_to("t.csv")
    before = {path: path.read_bytes() for path in fitted.iterdir()}
    done = run(*words)
    assert done.exit_code == 1
    assert "would be lost" in done.stderr
    assert before == {path: path.read_bytes() for path in fitted.iterdir()}


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (".", "exists already (--overwrite replaces it)"),
        ("none/m", "cannot be written (no such folder, or no permission)"),
        ("/dev/null", "exists already (--overwrite replaces it)"),
    ],
)
def test_outputs_are_checked_before_the_work(place, message, fitted, monkeypatch):
    monkeypatch.chdir(fitted)
    monkeypatch.setattr("nystrom.cli.learning.read_table", None)
    done = run("fit", "t.csv", "--target", "price", "-o", place, "--overwrite")
    assert (done.exit_code, message in done.stderr) == (1, True)


def test_tables_are_written_in_known_formats(fitted):
    done = run("predict", fitted / "m", fitted / "t.csv", "-o", fitted / "out.xlsx")
    assert (done.exit_code, "are written as .csv" in done.stderr) == (1, True)
