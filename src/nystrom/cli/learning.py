"""From a table to a fitted model: search for gamma, alpha and n_landmarks, held-out
score, final fit; and landmark rows of a table.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline

from ..estimators.kernel_ridge import KernelRidge
from ..estimators.kernel_ridge_classifier import KernelRidgeClassifier
from ..estimators.kernel_ridge_classifier_cv import KernelRidgeClassifierCV
from ..estimators.kernel_ridge_cv import KernelRidgeCV
from ..functions import approximate, select_landmarks
from .columns import (
    check_target,
    find_columns,
    guess_task,
    make_encoder,
    parse_columns,
    parse_target,
)
from .console import CommandError, say, unknown_column_error
from .tables import TableFile

#: Rows that the width, the ridge and the number of landmarks are chosen on at most.
MAX_SEARCH_ROWS = 50_000
#: Searches, of which each but the first goes beyond the end of the grid before.
MAX_SEARCHES = 3
#: Rows whose eigenvalues are computed at most; with more they are scaled to all.
MOST_FOR_EIGENVALUES = 20_000
#: The share of rows that is held out, and the most of them.
HELD_OUT_SHARE, MAX_HELD_OUT_ROWS = 0.2, 20_000
#: Classes with fewer rows are hardly learnt, which is said.
MIN_CLASS_ROWS = 5


class Evaluation(NamedTuple):
    """Rows with their targets and predictions, for a report."""

    rows: pd.DataFrame
    y_true: np.ndarray
    y_pred: np.ndarray
    file: TableFile | None = None  # where they are from; None for rows held out


class Problem(NamedTuple):
    """What is to be learnt: targets, and columns as numbers and text."""

    task: str  # "regression" or "classification"
    y: np.ndarray
    rows: pd.DataFrame
    columns: dict[str, Any]
    n_dropped: int  # rows without a target


def train(
    table: pd.DataFrame,
    target: str,
    file: TableFile,
    *,
    task: str | None,
    n_landmarks: int | None,
    categories: tuple[str, ...],
    ignored: tuple[str, ...],
    seed: int,
    verbose: int,
) -> tuple[Pipeline, Evaluation]:
    """Choose width, ridge and number of landmarks, score it, fit it on all rows.

    The pipeline has a `nystrom_summary_` and the eigenvalues of K̃: a report that is
    written later has other rows.
    """
    seconds: dict[str, float] = {}
    with _timed(seconds, "reading columns"):
        problem = read_problem(table, target, file, task, categories, ignored)
    task, y, rows, columns, n_dropped = problem
    in_train, in_test = split(y, task, seed)
    train, test = (rows.iloc[in_train], y[in_train]), (rows.iloc[in_test], y[in_test])
    size = n_landmarks or int(min(1000, max(20, len(in_train) // 4)))
    with _timed(seconds, "choosing"):
        some = np.random.default_rng(seed).permutation(len(in_train))[:MAX_SEARCH_ROWS]
        Z = make_encoder(columns).fit_transform(train[0].iloc[some])
        chosen = choose_estimator(Z, train[1][some], task, size, seed, verbose)
        chosen.set_params(alpha=chosen.alpha * len(in_train) / len(some))
    with _timed(seconds, "scoring"):
        scores, predictions = score_with_baselines(chosen, columns, task, train, test)
        errors = standard_errors(test[1], predictions)
    with _timed(seconds, "fitting all rows"):
        model = make_pipeline(make_encoder(columns), chosen).fit(rows, y)
        eigenvalues = _eigenvalues(model, rows, seed)
    landmarks, alpha = chosen.landmarks_, float(chosen.alpha)
    model.nystrom_eigenvalues_ = eigenvalues
    model.nystrom_summary_ = {
        "task": task,
        "target": target,
        "rows": len(y),
        "rows_without_target": n_dropped,
        "columns": columns,
        "classes": [str(name) for name in getattr(chosen, "classes_", ())],
        "landmarks": len(landmarks),
        "kernel": str(landmarks.kernel),
        "gamma": float(chosen.gamma),
        "alpha": alpha,
        # How many parameters the ridge leaves to the model.
        "effective_dimension": float(np.sum(eigenvalues / (eigenvalues + alpha))),
        "approximation_error": float(landmarks.error.value),
        "score": "R²" if task == "regression" else "accuracy",
        "held_out_rows": len(in_test),
        "held_out": scores,
        "standard_errors": errors,
        "no_better_than": no_better_than(scores, errors),
        "seconds": {name: round(value, 3) for name, value in seconds.items()},
    }
    warning = no_better_warning(model.nystrom_summary_)
    if warning:
        say(f"Warning: {warning}")
    return model, Evaluation(*test, predictions["nystrom"])


def read_problem(
    table: pd.DataFrame,
    target: str,
    file: TableFile,
    task: str | None,
    categories: tuple[str, ...],
    ignored: tuple[str, ...],
) -> Problem:
    """Guess the task and the kinds of columns, and say what was guessed."""
    check_names(table, (target, *categories, *ignored), file)
    for option, names in (("category", categories), ("ignore", ignored)):
        if target in names:
            raise CommandError(
                f"--{option} {target} is the target; it is no column to learn from. "
                "For classes give --task classification."
            )
    present = table[target].notna()
    n_dropped = int((~present).sum())
    raw_target = table[target][present]
    check_target(raw_target, file)
    if task is None:
        task, reason = guess_task(raw_target)
        say(f"{task}, since {reason} (--task says otherwise)")
    y = parse_target(raw_target, task, file)
    if n_dropped:
        say(f"rows without a value of {target!r}, left out: {n_dropped}")
    if task == "classification":
        _say_rare_classes(y)
    given = table[present].drop(columns=list({target, *ignored}))
    columns = find_columns(given, file, categories)
    for name, reason in columns["left_out"].items():
        say(f"column {name!r} is left out: {reason}")
    for name in columns["numbers"]:
        numbers = pd.to_numeric(table[name], errors="coerce")
        if (numbers - np.arange(len(table))).nunique() == 1:
            say(
                f"column {name!r} counts up by one from row to row; if it only numbers "
                f"them, --ignore {name}"
            )
    rows = parse_columns(columns, given, file)
    return Problem(task, y, rows, columns, n_dropped)


def check_names(table: pd.DataFrame, names: tuple[str, ...], file: TableFile) -> None:
    """Refuse columns that the table does not have."""
    for name in names:
        if name not in table.columns:
            raise unknown_column_error(file, name, table.columns)


def _say_rare_classes(y: np.ndarray) -> None:
    """Which classes have few rows: one line, however many there are."""
    names, counts = np.unique(y, return_counts=True)
    counted = zip(names, counts, strict=True)
    few = [(str(name), n) for name, n in counted if n < MIN_CLASS_ROWS]
    if len(few) == 1:
        name, count = few[0]
        say(f"class {name!r} has {count} of {len(y)} rows: too few to rely on")
    elif few:
        named = ", ".join(f"{name!r} {count}" for name, count in few[:5])
        more = ", …" if len(few) > 5 else ""
        say(
            f"{len(few)} classes have fewer than {MIN_CLASS_ROWS} of {len(y)} rows, "
            f"too few to rely on: {named}{more}"
        )


def split(y: np.ndarray, task: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows to train on, and those held out; classes in the same shares.

    Every class is trained on; of a class of one row nothing is held out, as it could
    only be wrong.
    """
    share = min(HELD_OUT_SHARE, MAX_HELD_OUT_ROWS / len(y))
    rows = np.arange(len(y))
    if task == "regression":
        train, test = train_test_split(rows, test_size=share, random_state=seed)
        return train, test
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    alone = counts[codes] == 1
    rest = rows[~alone]
    n_test = max(math.ceil(share * len(rest)), int(np.sum(counts > 1)))
    train, test = train_test_split(
        rest, test_size=n_test, random_state=seed, stratify=codes[rest]
    )
    return np.concatenate([train, rows[alone]]), test


def choose_estimator(
    Z: np.ndarray, y: np.ndarray, task: str, size: int, seed: int, verbose: int
) -> Any:
    """An estimator whose width, ridge and number of landmarks are cross-validated."""
    is_regression = task == "regression"
    common: dict[str, Any] = {"kernel": "rbf", "random_state": seed, "verbose": verbose}
    search = (KernelRidgeCV if is_regression else KernelRidgeClassifierCV)(
        gammas="auto",
        n_landmarks=sorted({max(10, size // 4), max(10, size // 2), size}),
        prefer_fewer=False,
        fit_intercept=True,
        cv=5,
        **common,
    )
    fit_with_wider_grids(search, Z, y)
    return (KernelRidge if is_regression else KernelRidgeClassifier)(
        alpha=float(search.alpha_),
        gamma=search.gamma_,
        n_landmarks=int(search.n_landmarks_),
        fit_intercept=True,
        **common,
    )


def fit_with_wider_grids(search: Any, Z: Any, y: Any) -> None:
    """Fit; where the best width is at the end of the grid, search beyond it too.

    The library only warns, as its caller can give other widths; here nobody can.
    """
    for _ in range(MAX_SEARCHES):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            search.fit(Z, y)
        at_end = [w for w in caught if str(w.message).startswith("The best of ")]
        for other in caught:
            if other not in at_end:
                warnings.warn(other.message, stacklevel=2)
        if not any("gammas" in str(w.message) for w in at_end):
            break
        best = search.gamma_
        step = 4.0 if best == max(search.gammas_) else 0.25
        search.set_params(gammas=[best / step, best, best * step, best * step**2])


def score_with_baselines(
    chosen: Any, columns: dict[str, Any], task: str, train: Any, test: Any
) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """Scores and predictions of this model, a linear one and a constant on rows held
    out.
    """
    models = {"linear": Ridge(), "constant": DummyRegressor()}
    if task == "classification":
        linear = LogisticRegression(max_iter=1000)
        models = {"linear": linear, "constant": DummyClassifier()}
    scores, predictions = {}, {}
    for name, estimator in {"nystrom": clone(chosen), **models}.items():
        model = make_pipeline(make_encoder(columns), estimator).fit(*train)
        scores[name] = float(model.score(*test))
        predictions[name] = model.predict(test[0])
    return scores, predictions


def standard_errors(
    truth: np.ndarray, predictions: dict[str, np.ndarray]
) -> dict[str, float]:
    """Of our score minus each other one, from the differences row by row."""
    values = {name: found == truth for name, found in predictions.items()}
    if truth.dtype.kind == "f":
        spread = float(np.var(truth)) or 1.0
        for name, found in predictions.items():
            values[name] = -((truth - found) ** 2) / spread
    ours = values.pop("nystrom").astype(float)
    return {
        name: float(np.std(ours - other, ddof=1) / math.sqrt(len(truth)))
        for name, other in values.items()
    }


def no_better_than(scores: dict[str, float], errors: dict[str, float]) -> list[str]:
    """The baselines that the model is not ahead of by more than a standard error."""
    return [
        name
        for name, error in errors.items()
        if scores["nystrom"] - scores[name] <= error
    ]


def no_better_warning(summary: dict[str, Any]) -> str:
    """A warning where held-out rows do not show that the model is worth it, or ""."""
    names = summary["no_better_than"]
    if not names:
        return ""
    scores, errors = summary["held_out"], summary["standard_errors"]
    article = {"linear": "a linear model", "constant": "a constant"}
    against = " or ".join(
        f"{article[name]} ({scores[name]:.4f}, standard error of the difference "
        f"{errors[name]:.2g})"
        for name in names
    )
    advice = (
        "the columns may say little about the target, or the rows be too few"
        if "constant" in names
        else "a linear model is simpler, and may be as good"
    )
    return (
        f"on {summary['held_out_rows']} rows held out the model ({summary['score']} "
        f"{scores['nystrom']:.4f}) is no better than {against}: {advice}"
    )


def _eigenvalues(model: Pipeline, rows: pd.DataFrame, seed: int) -> np.ndarray:
    """Of the approximated kernel matrix K̃ of all rows, descending."""
    some = np.random.default_rng(seed).permutation(len(rows))[:MOST_FOR_EIGENVALUES]
    landmarks = model[-1].landmarks_
    of_some = approximate(model[:-1].transform(rows.iloc[some]), landmarks)
    return of_some.eigenvalues() * (len(rows) / len(some))


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - started


def landmark_rows(
    file: TableFile,
    n_landmarks: int,
    gamma: float | None,
    categories: tuple[str, ...],
    ignored: tuple[str, ...],
    seed: int,
) -> pd.DataFrame:
    """Landmarks of a table, with their line in the file, in the order of selection."""
    table = file.read()
    check_names(table, (*categories, *ignored), file)
    rows = table.drop(columns=list(ignored))
    columns = find_columns(rows, file, categories)
    Z = make_encoder(columns).fit_transform(parse_columns(columns, rows, file))
    landmarks = select_landmarks(
        Z,
        gamma="median" if gamma is None else gamma,
        n_landmarks=min(n_landmarks, len(Z)),
        random_state=seed,
    )
    chosen = table.iloc[np.asarray(landmarks.indices)]
    name = file.unit if file.unit not in chosen else f"{file.unit}_in_file"
    return chosen.reset_index(names=name)
