"""What is to be predicted: guesses, labels, and what cannot be learnt."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from test_command import houses, run

from nystrom_cli.columns import Columns
from nystrom_cli.searching import searched
from nystrom_cli.target import guess_task, labels


def pets(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    return pd.DataFrame(X, columns=["x", "y"]), np.hypot(*X.T) < 1


def fitted(table, folder, ending=".csv", **options):
    path = folder / f"t{ending}"
    if ending == ".csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path)
    told = [word for pair in options.items() for word in (f"--{pair[0]}", pair[1])]
    words = ["--target", table.columns[-1], "-o", folder / "m", "--landmarks", 20]
    return path, run("fit", path, *words, *told)


@pytest.mark.parametrize(
    ("values", "task", "why"),
    [
        ([True, False] * 20, "classification", "true or false"),
        ([*np.arange(99.5), "much"], "regression", "different numbers"),
        ([1, 2, "much"] * 20, "classification", "text"),
        (["01", "02", "13"] * 20, "classification", "codes"),
    ],
    ids=["booleans", "a slip among numbers", "text", "codes"],
)
def test_guesses_and_why(values, task, why):
    found = guess_task(pd.Series(values))
    assert found[0] == task
    assert why in found[1]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([True, False], ["True", "False"]),
        (["1", "2.0"], [1, 2]),
        (["01234", "50667"], ["01234", "50667"]),
        ([" yes", "no "], ["yes", "no"]),
        ([0.5, 1.5], ["0.5", "1.5"]),
        (pd.Categorical(["b", "a"]), ["b", "a"]),
        (pd.array([1, 2], dtype="Int64"), [1, 2]),
    ],
    ids=str,
)
def test_labels(values, expected):
    assert labels(pd.Series(values)).tolist() == expected


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_true_and_false_are_the_same_from_every_file(ending, tmp_path):
    X, inside = pets()
    path, done = fitted(X.assign(inside=inside), tmp_path, ending)
    assert "since the target is" in done.stderr
    assert "False, True" in done.stdout
    for other in (".csv", ".parquet"):
        folder = tmp_path / other[1:]
        folder.mkdir()
        table = X.assign(inside=inside)
        there = folder / f"t{other}"
        if other == ".csv":
            table.to_csv(there, index=False)
        else:
            table.to_parquet(there)
        found = json.loads(run("score", tmp_path / "m", there, "--json").stdout)
        assert found["accuracy"] > 0.9
    shares = run("predict", tmp_path / "m", path, "--probabilities").stdout
    assert shares.startswith("prediction,probability_False,probability_True\n")


def test_labels_that_the_model_does_not_know_are_no_score(tmp_path):
    X, inside = pets()
    path, _ = fitted(X.assign(inside=np.where(inside, "yes", "no")), tmp_path)
    X.assign(inside=np.where(inside, "YES", "NO")).to_csv(path, index=False)
    done = run("score", tmp_path / "m", path)
    assert done.exit_code == 1
    assert "no value of 'inside'" in done.stderr
    assert "is a class of the model ('no', 'yes')" in done.stderr


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([f"${1000 + i:,}" for i in range(300)], "300 different values in 300 rows"),
        (pd.date_range("2020-01-01", periods=300).strftime("%Y-%m-%d"), "no classes"),
        (["same"] * 300, "all rows have the same 'price', same"),
        ([None] * 299 + ["1"], "has 1 row with a value of 'price'"),
        ([*map(str, range(299)), "12,5"], "its decimal sign is a point: 12.5"),
        ([*map(str, range(299)), "many"], "line 301, column 'price': 'many' is not"),
    ],
    ids=["money", "dates", "one", "none", "comma", "a slip"],
)
def test_targets_of_which_nothing_can_be_learnt(values, message, tmp_path):
    _, done = fitted(pets()[0].assign(price=values), tmp_path)
    assert done.exit_code == 1
    assert message in done.stderr
    assert "--category" not in done.stderr
    assert not (tmp_path / "m").exists()


def test_a_class_of_one_row_is_told(tmp_path):
    X, inside = pets()
    kinds = np.where(inside, "cat", "dog").astype(object)
    kinds[7] = "unicorn"
    _, done = fitted(X.assign(kind=kinds), tmp_path)
    assert done.exit_code == 0
    assert "class 'unicorn' has 1 of 300 rows" in done.stderr
    assert "3: cat, dog, unicorn" in done.stdout


def test_widths_beyond_the_end_are_tried():
    """The library warns of an end of its grid; here nobody can give other widths."""

    class Search:
        """The best is 1/100, as a search sees it through its grid."""

        gammas = (1.0, 4.0, 16.0)

        def set_params(self, gammas):
            self.gammas = gammas

        def fit(self, X, y):
            self.gammas_ = list(self.gammas)
            self.gamma_ = min(self.gammas, key=lambda g: abs(np.log(g * 100)))
            if self.gamma_ in (min(self.gammas), max(self.gammas)):
                warnings.warn(f"The best of gammas, {self.gamma_}", stacklevel=1)
            warnings.warn("Something else.", stacklevel=1)

    with pytest.warns(UserWarning, match="else") as told:
        found = searched(Search(), None, None)
    assert found.gamma_ == 1 / 64
    assert {str(warning.message) for warning in told} == {"Something else."}


def test_warnings_are_words(tmp_path, monkeypatch):
    def warned(*_, **__):
        for _ in range(3):
            warnings.warn("Mind\nthe gap.", UserWarning, stacklevel=1)
        raise ValueError("Enough.")

    monkeypatch.setattr("nystrom_cli.learning.learn", warned)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        _, done = fitted(houses(), tmp_path)
    assert done.stderr.splitlines()[-2:] == ["Warning: Mind the gap.", "Error: Enough."]
    assert ".py" not in done.stderr


# --- columns ------------------------------------------------------------------------


def test_why_a_column_is_left_out():
    days = pd.date_range("2020-01-01", periods=400)
    table = pd.DataFrame(
        {
            "x": np.arange(400.0),
            "german": days.strftime("%d.%m.%Y"),
            "american": days.strftime("%m/%d/%Y"),
            "money": [f"${1000 + i:,}" for i in range(400)],
        }
    )
    found = Columns.of(table, "t.csv")
    for name in ("german", "american"):
        assert "written 2026-11-17" in found.left_out[name]
    assert "such as '$1,000'" in found.left_out["money"]
    with pytest.raises(Exception, match=r"no column to learn from \('money': 400"):
        Columns.of(table[["money"]], "t.csv")


def test_codes_are_categories_and_durations_numbers():
    table = pd.DataFrame(
        {
            "zip": ["01234", "50667"] * 20,
            "took": pd.to_timedelta(np.arange(40), unit="h"),
        }
    )
    found = Columns.of(table, "t.parquet")
    assert (found.categories, found.numbers) == (["zip"], ["took"])
    hours = found.values(table, "t.parquet")["took"] * 24
    np.testing.assert_allclose(hours, np.arange(40))


def test_a_column_that_numbers_the_rows_is_told(tmp_path):
    X, inside = pets()
    table = X.assign(id=np.arange(300) + 7, inside=inside.astype(object))
    table.loc[5, "inside"] = None  # rows that are not used count too
    _, done = fitted(table, tmp_path)
    assert "column 'id' counts up by one" in done.stderr
    assert done.stderr.count("counts up") == 1


def test_what_new_rows_lack_is_told_without_options_of_fit(tmp_path):
    path, done = fitted(houses(), tmp_path)
    assert done.exit_code == 0, done.stderr
    table = houses().assign(sold=12.5)
    table.to_parquet(tmp_path / "new.parquet")
    done = run("predict", tmp_path / "m", tmp_path / "new.parquet")
    assert "row 1, column 'sold': '12.5' is not a date" in done.stderr
    assert "--category" not in done.stderr
    done = run("predict", path, tmp_path / "m")
    assert "the model comes first" in done.stderr
