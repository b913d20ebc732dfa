"""The command `nystrom`, as a person with a table uses it."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="the command needs nystrom[cli]")
testing = pytest.importorskip("click.testing", reason="the command needs nystrom[cli]")
pytest.importorskip("pyarrow", reason="the command needs nystrom[cli]")

from nystrom import load  # noqa: E402
from nystrom.cli.commands import nystrom  # noqa: E402
from nystrom.cli.tables import parse_columns  # noqa: E402


def houses(n=400, seed=0):
    """Numbers with gaps, categories, dates, names, and a price."""
    rng = np.random.default_rng(seed)
    size = rng.normal(80, 20, n)
    rooms = rng.integers(1, 7, n)
    town = rng.choice(["Ulm", "Köln", "Bonn"], n, p=[0.5, 0.3, 0.2])
    sold = pd.date_range("2020-01-01", periods=n, freq="1D")
    price = 1500 * size + 30000 * np.sin(rooms) + np.where(town == "Köln", 2e4, 0)
    table = pd.DataFrame(
        {
            "size": np.where(np.arange(n) % 50 == 7, np.nan, size).round(1),
            "rooms": rooms,
            "town": town,
            "sold": sold.strftime("%Y-%m-%d"),
            "name": [f"house, no. {i}" for i in range(n)],
            "price": (price + 3000 * rng.standard_normal(n)).round(),
        }
    )
    table.loc[3, "price"] = np.nan
    return table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    table = houses()
    table.to_csv(folder / "houses.csv", index=False)
    table.to_parquet(folder / "houses.parquet", index=False)
    dear = table.dropna().assign(dear=lambda t: np.where(t.price > 1.2e5, "yes", "no"))
    dear.drop(columns="price").to_csv(folder / "dear.csv", index=False)
    done = run("fit", folder / "houses.csv", "--target", "price", "-o", folder / "m")
    assert done.exit_code == 0, done.output
    done = run("fit", folder / "dear.csv", "--target", "dear", "-o", folder / "c")
    assert done.exit_code == 0, done.output
    return folder


def run(*words, stdin=None):
    return testing.CliRunner().invoke(nystrom, [str(word) for word in words], stdin)


def test_fit_says_what_it_did_and_how_good_it_is(folder, tmp_path):
    done = run("fit", folder / "houses.csv", "--target", "price", "-o", tmp_path / "m")
    assert done.exit_code == 0
    assert "regression of price" in done.stdout
    assert "399, and 1 without a value of price" in done.stdout
    words = [" ".join(line.split()) for line in done.stdout.splitlines()]
    for line in ("numbers 2: size, rooms", "dates 1: sold", "categories 1: town"):
        assert line in words
    assert "regression, because the target has" in done.stderr
    assert "column 'name' is dropped" in done.stderr
    assert (tmp_path / "m").exists()


def test_fit_is_better_than_a_line_and_says_so_as_json(folder, tmp_path):
    words = ["fit", folder / "houses.csv", "--target", "price", "-o", tmp_path / "m"]
    done = run(*words, "--json")
    found = json.loads(done.stdout)
    assert done.stderr == ""
    held_out = found["held_out"]
    scores = [held_out[name]["R²"] for name in ("nystrom", "linear", "constant")]
    assert scores == sorted(scores, reverse=True)
    assert held_out["boosting"]["RMSE"] < held_out["linear"]["RMSE"]
    for name, (low, high) in found["intervals"].items():
        assert low < held_out["nystrom"][name] < high
    assert max(found["importances"], key=found["importances"].get) == "size"
    assert found["task"] == "regression"
    assert found["rows_without_target"] == 1
    again = json.loads(run(*words, "--json", "--overwrite").stdout)
    assert again["held_out"] == held_out


def test_what_exists_is_replaced_only_when_asked_for(folder, tmp_path):
    table, target = folder / "houses.csv", tmp_path / "target.csv"
    model = tmp_path / "model.nystrom"
    assert run("fit", table, "--target", "price", "-o", model).exit_code == 0
    for words in (
        ["fit", table, "--target", "price", "--landmarks", 5, "-o"],
        ["fit", table, "--target", "price", "-o", tmp_path / "other", "--report"],
        ["predict", model, table, "-o"],
    ):
        target.write_text("precious")
        done = run(*words, target)
        assert done.exit_code == 1
        assert f"{target} exists already" in done.output
        assert "--overwrite" in done.output
        assert target.read_text() == "precious"
        done = run(*words, target, "--overwrite")
        assert done.exit_code == 0, done.output
        assert target.read_bytes() != b"precious"


def test_score_on_rows_held_out_is_that_of_a_model_that_did_not_see_them(folder):
    """A fifth of the rows: the model in the file has seen them, and scores higher."""
    held_out = load(folder / "m").nystrom_summary_["held_out"]["nystrom"]["R²"]
    found = json.loads(
        run("score", folder / "m", folder / "houses.csv", "--json").stdout
    )
    assert found["rows"] == 399
    assert 0.5 < held_out < found["R²"]


def test_predict_gives_what_the_model_gives(folder, tmp_path):
    out = tmp_path / "out.csv"
    done = run("predict", folder / "m", folder / "houses.csv", "-o", out)
    assert done.exit_code == 0, done.output
    found = pd.read_csv(out)
    assert list(found.columns) == ["prediction"]
    model, table = load(folder / "m"), houses()
    columns = model.nystrom_summary_["columns"]
    rows = parse_columns(columns, table)
    np.testing.assert_allclose(found["prediction"], model.predict(rows))


def test_predict_keeps_columns_and_tells_deviations(folder, tmp_path):
    out = tmp_path / "out.parquet"
    words = ["--uncertainty", "--keep-columns", "-o", out]
    assert (
        run("predict", folder / "m", folder / "houses.parquet", *words).exit_code == 0
    )
    found = pd.read_parquet(out)
    assert list(found.columns) == [*houses().columns, "prediction", "deviation"]
    known = found.dropna(subset="price")
    within = abs(known.price - known.prediction) < 2 * known.deviation
    assert within.mean() > 0.8


def test_columns_are_kept_beside_their_predictions_in_every_piece(folder, tmp_path):
    """More rows than a piece has: each prediction stays with its row."""
    table = houses().sample(66_000, replace=True, random_state=0)
    table = table.assign(number=np.arange(len(table)))
    new, out, alone = (tmp_path / f"{name}.parquet" for name in ("new", "out", "alone"))
    table.to_parquet(new, index=False)
    assert run("predict", folder / "m", new, "-o", out, "--keep-columns").exit_code == 0
    assert run("predict", folder / "m", new, "-o", alone).exit_code == 0
    found = pd.read_parquet(out)
    assert found["number"].tolist() == [*range(66_000)]
    pd.testing.assert_frame_equal(found[table.columns], pd.read_parquet(new))
    expected = pd.read_parquet(alone)["prediction"]
    pd.testing.assert_series_equal(found["prediction"], expected)


def test_probabilities_add_up_and_decide(folder):
    done = run("predict", folder / "c", folder / "dear.csv", "--uncertainty")
    lines = [line.split(",") for line in done.stdout.splitlines()]
    assert lines[0] == ["prediction", "probability_no", "probability_yes"]
    shares = np.array([line[1:] for line in lines[1:]], dtype=float)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    said = np.array([line[0] for line in lines[1:]])
    np.testing.assert_array_equal(said == "yes", shares[:, 1] > shares[:, 0])
    found = json.loads(run("score", folder / "c", folder / "dear.csv", "--json").stdout)
    assert found["accuracy"] > 0.85


def test_a_category_and_a_gap_that_no_training_row_had(folder):
    new = houses(5).assign(town=["Trier", None, "Ulm", "Bonn", "Köln"], size=np.nan)
    done = run("predict", folder / "m", "-", stdin=new.to_csv(index=False))
    values = np.array(done.stdout.split()[1:], dtype=float)
    assert len(values) == 5
    assert np.isfinite(values).all()


def test_info(folder):
    assert "regression of price" in run("info", folder / "m").stdout
    about = json.loads(run("info", folder / "c", "--json").stdout)
    assert about["task"] == "classification"


def test_options_decide_over_guesses(folder, tmp_path):
    words = ["--target", "rooms", "-o", tmp_path / "m", "--json"]
    guessed = json.loads(run("fit", folder / "houses.csv", *words).stdout)
    assert guessed["task"] == "classification"
    words += ["--overwrite", "--task", "regression"]
    words += ["--ignore", "price", "--landmarks", 15]
    told = json.loads(run("fit", folder / "houses.csv", *words).stdout)
    assert told["task"] == "regression"
    assert told["landmarks"] <= 15
    assert "price" not in told["columns"]["numbers"]


def broken(tmp_path, **changes):
    table = houses().astype(object)
    for name, (row, value) in changes.items():
        table.loc[row, name] = value
    table.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rooms": (123, "many")}, "Row 123, column 'rooms': 'many' is not a number"),
        (
            {"rooms": (2, "inf")},
            "Row 2, column 'rooms': 'inf' is not a number up to 1e+150",
        ),
        ({"sold": (9, "2020-13-45")}, "Row 9, column 'sold': '2020-13-45' is not a"),
        ({"price": (60, "much")}, "Row 60, column 'price': 'much' is not a number"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_wrong_value_is_told_with_its_place(changes, message, tmp_path):
    table = broken(tmp_path, **changes)
    words = ["--target", "price", "--task", "regression", "-o", tmp_path / "m"]
    done = run("fit", table, *words)
    assert done.exit_code == 1
    assert message in done.stderr
    assert "Traceback" not in done.output
    assert not (tmp_path / "m").exists()


def test_a_wrong_value_among_new_rows(folder, tmp_path):
    table = broken(tmp_path, rooms=(300, "some"))
    done = run("predict", folder / "m", table, "-o", tmp_path / "out.csv")
    assert done.exit_code == 1
    assert "Row 300, column 'rooms': 'some' is not a number" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fit", "none.csv", "--target", "a", "-o", "m"], "none.csv does not exist"),
        (["fit", "t.csv", "--target", "c", "-o", "m"], "column='c' is unknown"),
        (["fit", "t.csv", "--target", "B", "-o", "m"], "did you mean 'b'?"),
        (["fit", "t.xls", "--target", "c", "-o", "m"], "the ending='.xls' is unknown"),
        (["fit", "empty.csv", "--target", "a", "-o", "m"], "empty.csv is empty"),
        (["fit", "head.csv", "--target", "a", "-o", "m"], "a header and no rows"),
        (["fit", "ragged.csv", "--target", "a", "-o", "m"], "row 1 has 3 val"),
        (
            ["fit", "t.csv", "--target", "a", "-o", "no/m"],
            "no/m cannot be written (no such folder",
        ),
        (
            ["fit", "t.csv", "--target", "b", "-o", "m"],
            "2 rows with a value of 'b'",
        ),
        (["info", "t.xls"], "is not a model file"),
        (["predict", "other", "t.csv"], "has no model that `nystrom fit` wrote"),
        (["predict", "none", "t.csv"], "There is no file none"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[1],
)
def test_what_cannot_be_done_is_told_in_a_line(words, message, tmp_path, monkeypatch):
    from nystrom import Nystroem, save

    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "t.xls").write_text("a,b\n1,2\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "head.csv").write_text("a,b\n")
    (tmp_path / "ragged.csv").write_text("a,b\n1,2\n3,4,5\n")
    save(Nystroem(), "other")
    done = run(*words)
    assert done.exit_code == 1
    assert message in done.stderr
    assert "Traceback" not in done.output


def test_debug_shows_tracebacks():
    done = run("--debug", "fit", "none.csv", "--target", "a", "-o", "m")
    assert "none.csv does not exist" in str(done.exception)


MAIN = "import sys; from nystrom.cli import main; sys.argv[0] = 'nystrom'; main()"


def command(*words, **options):
    return subprocess.Popen(
        [sys.executable, "-c", MAIN, *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from nystrom.cli.commands import nystrom\n"
        "try: nystrom(['--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('matplotlib', 'polars', 'dask') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.rstrip().endswith("[]")
    assert "Exit codes" in done.stdout


def test_a_pipe_of_commands(folder):
    process = command("predict", folder / "m", "-")
    out, err = process.communicate(houses(7).to_csv(index=False))
    assert (process.returncode, err) == (0, "")
    assert len(out.splitlines()) == 8


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_stops_cleanly(folder, tmp_path):
    """While it waits for rows, and whatever it was doing: nothing is left behind."""
    process = command("predict", folder / "m", "-", "-o", tmp_path / "out.csv")
    process.stdin.write(houses(50).to_csv(index=False))
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.stdin.close()
    process.stdin = None
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert err.strip() == "Stopped; no file was written."
    assert not list(tmp_path.iterdir())
