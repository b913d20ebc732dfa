"""What is to be predicted: guesses, labels, and what cannot be learnt."""

import json
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss, mean_squared_error, r2_score, roc_auc_score
from test_command import houses, run

from nystrom import load
from nystrom.cli.learning import Evaluation, comparison_warnings, split
from nystrom.cli.tables import (
    as_labels,
    find_columns,
    guess_task,
    parse_columns,
)


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
        ([True, False] * 20, "classification", "text"),
        ([*np.arange(99.5), "much"], "regression", "different numbers"),
        ([1, 2, "much"] * 20, "classification", "text"),
        (["01", "02", "13"] * 20, "classification", "codes"),
        (["yes", "no"] * 10, "classification", ""),
        ([0, 1] * 10, "classification", ""),
        ([0.5, 1.5] * 10, "classification", ""),
        ([*range(20)], "classification", ""),
        ([*range(21)], "regression", ""),
        ([0.1 * i for i in range(10)], "regression", ""),
        ([1.0, None, 2.0, None, 3.5], "regression", ""),
    ],
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
    assert as_labels(pd.Series(values)).tolist() == expected


def test_labels_that_the_model_does_not_know_are_no_score(tmp_path):
    X, inside = pets()
    path, _ = fitted(X.assign(inside=np.where(inside, "yes", "no")), tmp_path)
    X.assign(inside=np.where(inside, "YES", "NO")).to_csv(path, index=False)
    done = run("score", tmp_path / "m", path)
    assert done.exit_code == 1
    assert "in column 'inside' is not a class of the model ('no'" in done.stderr


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([f"${1000 + i:,}" for i in range(300)], "has 300 classes in 300 rows"),
        (pd.date_range("2020-01-01", periods=300).strftime("%Y-%m-%d"), "300 classes"),
        (["same"] * 300, "of 'price', and 1 different values"),
        ([None] * 299 + ["1"], "has 1 rows with a value of 'price'"),
        ([*map(str, range(299)), "12,5"], "'12,5' is not a number"),
        ([*map(str, range(299)), "many"], "Row 299, column 'price': 'many' is not"),
        (
            [*map(str, range(299)), "-1e200"],
            "Row 299, column 'price': '-1e200' is not",
        ),
    ],
    ids=["money", "dates", "one", "none", "comma", "a slip", "too large"],
)
def test_targets_of_which_nothing_can_be_learnt(values, message, tmp_path):
    _, done = fitted(pets()[0].assign(price=values), tmp_path)
    assert done.exit_code == 1
    assert message in done.stderr
    assert "--category" not in done.stderr
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("option", ["category", "ignore"])
def test_the_target_is_no_column_to_learn_from(option, tmp_path):
    X, inside = pets()
    _, done = fitted(X.assign(inside=inside), tmp_path, **{option: "inside"})
    assert done.exit_code == 1
    assert "'inside' is the target" in done.stderr


def test_a_negative_seed_is_a_wrong_option(tmp_path):
    X, inside = pets()
    _, done = fitted(X.assign(inside=inside), tmp_path, seed="-1")
    assert done.exit_code == 2
    assert "Invalid value for '--seed'" in done.stderr


@pytest.mark.parametrize(
    "counts",
    [[5] * 10, [15, 5], [15, 5, 1], [11, 5, 4], [*[5] * 4, *[3] * 7, 1]],
    ids=str,
)
def test_small_tables_of_classes_are_learnt(counts, tmp_path, seed):
    kinds = np.repeat([f"k{i:02}" for i in range(len(counts))], counts)
    X = pd.DataFrame(np.random.default_rng(seed).standard_normal((len(kinds), 3)))
    _, done = fitted(X.set_axis(list("abc"), axis=1).assign(y=kinds), tmp_path)
    assert done.exit_code == 0, done.stderr
    few = sum(count < 5 for count in counts)
    told = " ".join(done.stderr.split())
    assert (f"fewer than 5 rows, too few to test on: {few}, " in told) == (few > 0)
    classes = load(tmp_path / "m").nystrom_summary_["classes"]
    assert classes == sorted({*kinds})
    assert "Error" not in told


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([19, 1], "2 classes in 20 rows, such as"),
        ([1] * 20, "20 classes in 20 rows, such as"),
        ([26, 4, 4], "at least 2 classes of 5 rows are"),
        ([30], "of 'y', and 1 different values"),
        ([3, 2], "has 5 rows with a value of 'y'"),
        ([1, 1], "has 2 rows with a value of 'y'"),
    ],
    ids=str,
)
def test_too_few_rows_of_classes_are_told(counts, message, tmp_path):
    kinds = np.repeat([f"k{i:02}" for i in range(len(counts))], counts)
    X = pd.DataFrame({"a": np.random.default_rng(0).standard_normal(len(kinds))})
    _, done = fitted(X.assign(y=kinds), tmp_path)
    assert (done.exit_code, message in done.stderr) == (1, True), done.stderr


def test_classes_of_few_rows_are_all_trained_on(seed):
    counts = [150, 40, 5, 4, 1]
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(5), counts))
    train, test = split(y, "classification", seed)
    assert sorted([*train, *test]) == [*range(200)]
    np.testing.assert_array_equal(np.bincount(y[test]), [30, 8, 1])


# --- against a linear model and a constant ------------------------------------------


def compared_with_baselines(table, tmp_path, *words):
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ["--target", "y", "-o", tmp_path / "m", "--landmarks", 20, *words]
    return run("fit", tmp_path / "t.csv", *words, "--report", tmp_path / "page.html")


@pytest.mark.parametrize(
    ("kind", "name", "description"),
    [
        ("a line", "linear", "a linear model"),
        ("two sides of a line", "linear", "a linear model"),
        ("rare at random", "constant", "a constant"),
    ],
)
def test_a_model_that_is_no_better_is_told(kind, name, description, tmp_path, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 2))
    y = X @ [1.0, 2.0] + 0.1 * rng.standard_normal(300)
    if kind == "two sides of a line":
        y = np.where(y > 0, "up", "down")
    if kind == "rare at random":
        y = rng.permutation(np.repeat(["often", "seldom"], [285, 15]))
    table = pd.DataFrame(X, columns=["a", "b"]).assign(y=y)
    done = compared_with_baselines(table, tmp_path)
    assert done.exit_code == 0, done.stderr
    about = load(tmp_path / "m").nystrom_summary_
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for text in (done.stdout, run("info", tmp_path / "m").stdout, page):
        words = " ".join(text.split())
        value = next(iter(about["held_out"][name].values()))
        assert f" than {description} ({value:.4f}" in words


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_a_model_that_is_better_has_no_warning(task, tmp_path, seed):
    X, inside = pets(600, seed)
    y = np.hypot(X.x, X.y) if task == "regression" else np.where(inside, "yes", "no")
    table = X.set_axis(["a", "b"], axis=1).assign(y=y)
    done = compared_with_baselines(table, tmp_path)
    assert "On the held-out rows" not in done.output
    assert "On the held-out rows" not in (tmp_path / "page.html").read_text(
        encoding="utf-8"
    )
    told = json.loads(run("info", tmp_path / "m", "--json").stdout)
    assert told["warnings"] == []


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_differences_are_judged_by_their_standard_error(task, rng):
    """From differences row by row."""
    truth, ours, linear = rng.normal(size=(3, 60))
    if task == "classification":
        truth, ours, linear = (part > 0 for part in (truth, ours, linear))
        ahead = (ours == truth) * 1.0 - (linear == truth)
    else:
        ahead = ((truth - linear) ** 2 - (truth - ours) ** 2) / np.var(truth)
    kind = ()
    if task == "classification":
        kind = np.ones((60, 2)) / 2, np.array([False, True])
    ours, linear = (Evaluation(truth, y, *kind) for y in (ours, linear))
    expected = np.mean(ahead), np.std(ahead, ddof=1) / np.sqrt(60)
    np.testing.assert_allclose(ours.advantage(linear), expected)


@pytest.mark.parametrize(
    ("ahead", "names"),
    [
        (-0.2, ["a linear", "gradient", "a constant"]),
        (-0.03, ["a linear", "a constant"]),
        (0.03, ["a linear", "a constant"]),
        (0.2, []),
    ],
)
def test_the_model_must_be_ahead_of_simple_ones_by_a_standard_error(ahead, names):
    """And not behind boosting by one, which is 0.05."""
    y = np.resize([1.0, 1.0, -1.0, -1.0], 100)
    errors = np.sqrt(1 + ahead + np.resize([0.5, -0.5], 100))
    other = Evaluation(y, y - errors)
    found = dict.fromkeys(("linear", "boosting", "constant"), other)
    texts = list(comparison_warnings({"nystrom": Evaluation(y, 0 * y), **found}))
    assert len(texts) == len(names)
    for name, text in zip(names, texts, strict=True):
        verdict = "clearly worse" if name == "gradient" else "not clearly better"
        assert f"is {verdict} than {name}" in text


@pytest.mark.parametrize("n_classes", [2, 3])
def test_metrics_are_those_of_scikit_learn(n_classes, rng):
    y, P = rng.integers(n_classes, size=80), rng.dirichlet(np.ones(n_classes), size=80)
    found = Evaluation(y, P.argmax(axis=1), P, np.arange(n_classes)).metrics()
    scores = P[:, 1] if n_classes == 2 else P
    assert found["AUC"] == pytest.approx(roc_auc_score(y, scores, multi_class="ovr"))
    assert found["log-loss"] == pytest.approx(log_loss(y, P))
    truth, predicted = rng.normal(size=(2, 80))
    found = Evaluation(truth, predicted).metrics()
    assert found["R²"] == pytest.approx(r2_score(truth, predicted))
    assert found["RMSE"] == pytest.approx(mean_squared_error(truth, predicted) ** 0.5)


def test_intervals_cover_the_truth(rng):
    """Of the RMSE of errors that are standard normal: 1, nearly always."""
    n_covering = 0
    for seed in range(40):
        errors = np.random.default_rng(seed).normal(size=200)
        low, high = Evaluation(errors, 0 * errors).intervals(seed)["RMSE"]
        n_covering += low < 1 < high
    assert n_covering >= 30  # of 38; fewer than 1 in 10^4


def test_warnings_are_words(tmp_path, monkeypatch):
    def warned(*_, **__):
        with ThreadPoolExecutor(1) as others:  # as the engine's threads may
            others.submit(warnings.warn, "Mind\nthe gap.").result()
        raise ValueError("Enough.")

    monkeypatch.setattr("nystrom.cli.commands.train", warned)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        _, done = fitted(houses(), tmp_path)
    assert done.stderr.splitlines()[-2:] == ["Warning: Mind the gap.", "Error: Enough."]
    assert ".py" not in done.stderr


# --- columns ------------------------------------------------------------------------


def test_why_a_column_is_left_out():
    table = pd.DataFrame(
        {"x": np.arange(400.0), "money": [f"${1000 + i:,}" for i in range(400)]}
    )
    assert "such as '$1,000'" in find_columns(table)[1]["money"]
    with pytest.raises(ValueError, match=r"no column to learn from \('money': 400"):
        find_columns(table[["money"]])


def test_codes_are_categories_and_times_of_day_parts_of_days():
    times = pd.date_range("2020-01-01", periods=40, freq="6h", tz="UTC")
    table = pd.DataFrame({"zip": ["01234", "50667"] * 20, "sold": times})
    columns, _ = find_columns(table)
    assert (columns["categories"], columns["dates"]) == (["zip"], ["sold"])
    days = parse_columns(columns, table)["sold"]
    np.testing.assert_allclose(days, 18262 + np.arange(40) / 4)


def test_what_new_rows_lack_is_told_without_options_of_fit(tmp_path):
    _, done = fitted(houses(), tmp_path)
    assert done.exit_code == 0, done.stderr
    table = houses().assign(sold=12.5)
    table.to_parquet(tmp_path / "new.parquet")
    done = run("predict", tmp_path / "m", tmp_path / "new.parquet")
    assert "Row 0, column 'sold': '12.5' is not a date" in done.stderr
    assert "--category" not in done.stderr


@pytest.mark.skipif(
    int(pd.__version__.partition(".")[0]) < 3, reason="pandas 2 counts in nanoseconds"
)
def test_dates_of_any_year(tmp_path):
    """Also one that stands for no end, which nanoseconds since 1970 do not reach."""
    until = ["9999-12-31", "2020-01-02", "1501-01-01"] * 100
    path, done = fitted(pets()[0].assign(until=until, inside=pets()[1]), tmp_path)
    assert done.exit_code == 0, done.stderr
    table = pd.read_csv(path)
    days = parse_columns(find_columns(table)[0], table)["until"]
    assert days[:3].tolist() == [2932896.0, 18263.0, -171299.0]


def test_text_under_any_name_and_text_without_words(tmp_path):
    X, inside = pets()
    notes = [f"one of {i} small {i % 7} pets" for i in range(300)]
    lines = ["! ? - " + "." * i for i in range(300)]
    table = X.assign(**{"a__note": notes}, line=lines, inside=inside)
    _, done = fitted(table, tmp_path)
    assert done.exit_code == 0, done.stderr
    assert load(tmp_path / "m").nystrom_summary_["columns"]["text"] == ["a__note"]
    assert "column 'line' is dropped: 300 different texts" in done.stderr
    assert "Warning: invalid value" not in done.stderr


def test_whole_numbers_are_one_category_beside_gaps_and_without():
    code = pd.Series([3.0, np.nan, 12.0, 2.5])
    columns = {**find_columns(pd.DataFrame({"x": [1, 2]}))[0], "categories": ["code"]}
    columns["numbers"] = []
    found = parse_columns(columns, pd.DataFrame({"code": code}))["code"]
    assert found.tolist() == ["3", "(missing)", "12", "2.5"]


def test_the_penalty_is_chosen_for_the_model_of_all_rows(tmp_path):
    """Its kernel may be another one than that of the model that is scored."""
    X, inside = pets()
    fitted(X.assign(inside=inside), tmp_path)
    model = load(tmp_path / "m")
    assert model.nystrom_summary_["penalty"] == {"C": model[-1].C_}
    assert np.isfinite(model[-1].losses_).all()


def test_width_is_chosen_by_probabilities(tmp_path, seed):
    """Where one class is always the more probable, accuracy says nothing of widths."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, 900)
    y = rng.random(900) < np.where(np.sin(4 * x) > 0, 0.3, 0.01)
    fitted(pd.DataFrame({"x": x, "y": y}), tmp_path)
    model = load(tmp_path / "m")
    x = np.linspace(-1.9, 1.9, 200)
    shares = model.predict_proba(pd.DataFrame({"x": x}))[:, 1]
    assert shares[np.sin(4 * x) > 0.5].mean() > 0.2
    assert shares[np.sin(4 * x) < -0.5].mean() < 0.1
