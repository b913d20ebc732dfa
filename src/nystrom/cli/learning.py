"""From a table to a fitted model: search for gamma, alpha and n_landmarks, held-out
score, final fit; and landmark rows of a table.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

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
from .columns import TableColumns, check_columns_exist
from .console import CommandError
from .tables import check_output_paths, line_numbers, open_table_writer, read_table
from .target import (
    MIN_CLASS_ROWS,
    check_target,
    guess_task,
    rare_classes,
    target_values,
)

#: Rows that the width, the ridge and the number of landmarks are chosen on at most.
MAX_SEARCH_ROWS = 50_000
#: Times that widths are tried beyond the end of those before.
MAX_SEARCHES = 3


def search_estimator(
    columns: TableColumns,
    train: pd.DataFrame,
    y: np.ndarray,
    task: str,
    size: int,
    seed: int,
    verbose: int,
) -> Any:
    """The estimator, with width and ridge by cross-validation on some of the rows."""
    subset = np.random.default_rng(seed).permutation(len(y))[:MAX_SEARCH_ROWS]
    Z = columns.make_encoder().fit_transform(train.iloc[subset])
    search = KernelRidgeCV if task == "regression" else KernelRidgeClassifierCV
    sizes = sorted({max(10, size // 4), max(10, size // 2), size})
    common: dict[str, Any] = {
        "kernel": "rbf",
        "random_state": seed,
        "verbose": verbose,
    }
    fitted = fit_with_wider_grids(
        search(
            gammas="auto",
            n_landmarks=sizes,
            prefer_fewer=False,
            fit_intercept=True,
            cv=5,
            **common,
        ),
        Z,
        y[subset],
    )
    estimator_class = KernelRidge if task == "regression" else KernelRidgeClassifier
    return estimator_class(
        alpha=float(fitted.alpha_) * len(y) / len(subset),
        gamma=float(fitted.gamma_),
        n_landmarks=int(fitted.n_landmarks_),
        fit_intercept=True,
        **common,
    )


def fit_with_wider_grids(search: Any, Z: np.ndarray, y: np.ndarray) -> Any:
    """Fitted; where the best width is at the end of those tried, beyond it too.

    The library only warns, as whoever calls it can give other widths; here nobody can.
    """
    for _ in range(MAX_SEARCHES):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            search.fit(Z, y)
        boundary_warnings = [
            w for w in caught if str(w.message).startswith("The best of ")
        ]
        for other in caught:
            if other not in boundary_warnings:
                warnings.warn(other.message, stacklevel=2)
        if not any("gammas" in str(w.message) for w in boundary_warnings):
            break
        best, widths = search.gamma_, sorted(search.gammas_)
        step = 4.0 if best == widths[-1] else 0.25
        search.set_params(gammas=[best / step, best, best * step, best * step**2])
    return search


#: Rows that the eigenvalues are of at most; with more they are scaled to all.
MOST_FOR_EIGENVALUES = 20_000
#: The share of rows that is held out, and the most of them.
HELD_OUT_SHARE, MAX_HELD_OUT_ROWS = 0.2, 20_000


@dataclass
class TrainingResult:
    """A model, and what there is to say about it."""

    model: Pipeline
    task: str  # "regression" or "classification"
    target: str
    columns: TableColumns
    n_rows: int
    n_dropped: int
    scores: dict[str, float]  # on rows held out: ours, linear, constant
    seconds: dict[str, float]
    X_held_out: pd.DataFrame = field(repr=False)
    y_true: np.ndarray = field(repr=False)
    y_pred: np.ndarray = field(repr=False)  # by a model that did not see these rows
    table_name: str | None = None  # truth and predictions are of a table given later
    # Of the score minus that of the linear and of the constant model.
    standard_errors: dict[str, float] = field(default_factory=dict)

    @property
    def estimator(self) -> Any:
        """The kernel model at the end of the pipeline."""
        return self.model[-1]

    @property
    def score_name(self) -> str:
        """What the scores are."""
        return "R²" if self.task == "regression" else "accuracy"

    @property
    def effective_dimension(self) -> float:
        """Σ σ/(σ + alpha) over the eigenvalues σ of K̃: parameters that alpha leaves."""
        values = self.model.nystrom_eigenvalues_
        return float(np.sum(values / (values + self.estimator.alpha)))

    def summary(self) -> dict[str, Any]:
        """Plain numbers and text, for people and machines."""
        estimator, landmarks = self.estimator, self.estimator.landmarks_
        return {
            "task": self.task,
            "target": self.target,
            "rows": self.n_rows,
            "rows_without_target": self.n_dropped,
            "columns": {
                "numbers": list(self.columns.numbers),
                "dates": list(self.columns.dates),
                "categories": list(self.columns.categories),
                "left_out": dict(self.columns.left_out),
            },
            "classes": [str(name) for name in getattr(estimator, "classes_", ())],
            "landmarks": len(landmarks),
            "kernel": str(landmarks.kernel),
            "gamma": float(estimator.gamma),
            "alpha": float(estimator.alpha),
            "effective_dimension": self.effective_dimension,
            "approximation_error": float(landmarks.error.value),
            "score": self.score_name,
            "held_out_rows": len(self.y_true),
            "held_out": {name: float(value) for name, value in self.scores.items()},
            "standard_errors": dict(self.standard_errors),
            "no_better_than": [
                name
                for name, error in self.standard_errors.items()
                if self.scores["nystrom"] - self.scores[name] <= error
            ],
            "seconds": {name: round(value, 3) for name, value in self.seconds.items()},
        }


def train(
    table: pd.DataFrame,
    target: str,
    path: str,
    *,
    task: str | None,
    n_landmarks: int | None,
    categories: tuple[str, ...],
    ignored: tuple[str, ...],
    seed: int,
    verbose: int,
    log: Any,
) -> TrainingResult:
    """Choose width, ridge and number of landmarks, score it, fit it on all rows."""
    seconds: dict[str, float] = {}
    check_columns_exist(table, (target, *categories, *ignored), path)
    for option, names in (("category", categories), ("ignore", ignored)):
        if target in names:
            raise CommandError(
                f"--{option} {target} is the target; it is no column to learn from. "
                "For classes give --task classification."
            )
    raw_target = table[target]
    check_target(raw_target, target, path)
    if task is None:
        task, reason = guess_task(raw_target)
        log(f"{task}, since {reason} (--task says otherwise)")
    present = raw_target.notna().to_numpy()
    table, y = table[present], target_values(raw_target[present], task, target, path)
    if not present.all():
        log(f"rows without a value of {target!r}, left out: {(~present).sum()}")
    if task == "classification":
        _say_rare(y, log)
    with _record_seconds(seconds, "reading columns"):
        rows = table.drop(columns=list({target, *ignored}))
        columns = TableColumns.of(rows, path, categories=categories)
        values = columns.values(rows, path)
    for name, reason in columns.left_out.items():
        log(f"column {name!r} is left out: {reason}")
    for name in _row_number_columns(rows, columns):
        log(
            f"column {name!r} counts up by one from row to row; if it only "
            f"numbers them, --ignore {name}"
        )
    in_train, in_test = split(y, task, seed)
    train, test = values.iloc[in_train], values.iloc[in_test]
    y_train, y_test = y[in_train], y[in_test]
    size = n_landmarks or int(min(1000, max(20, len(y_train) // 4)))
    with _record_seconds(seconds, "choosing"):
        chosen = search_estimator(columns, train, y_train, task, size, seed, verbose)
    with _record_seconds(seconds, "scoring"):
        fitted = {
            name: make_pipeline(columns.make_encoder(), estimator).fit(train, y_train)
            for name, estimator in _models_to_compare(chosen, task).items()
        }
        scores = {
            name: float(model.score(test, y_test)) for name, model in fitted.items()
        }
        predictions = {name: model.predict(test) for name, model in fitted.items()}
        predicted = predictions["nystrom"]
        standard_errors = _standard_errors(y_test, predictions)
    with _record_seconds(seconds, "fitting all rows"):
        model = make_pipeline(columns.make_encoder(), chosen).fit(values, y)
        # Kept with the model: a report that is written later has other rows.
        model.nystrom_eigenvalues_ = _eigenvalues(model, values, seed)
    dropped = int((~present).sum())
    result = TrainingResult(
        model,
        task,
        target,
        columns,
        len(y),
        dropped,
        scores,
        seconds,
        test,
        y_test,
        predicted,
        standard_errors=standard_errors,
    )
    model.nystrom_summary_ = result.summary()
    warning = no_better(model.nystrom_summary_)
    if warning:
        log(f"Warning: {warning}")
    return result


def _row_number_columns(rows: pd.DataFrame, columns: TableColumns) -> list[str]:
    """Columns that may only number the rows, which tells nothing of new ones."""
    numbers = {
        name: pd.to_numeric(rows[name], errors="coerce") for name in columns.numbers
    }
    return [name for name, x in numbers.items() if (x - rows.index).nunique() == 1]


def _say_rare(y: np.ndarray, say: Any) -> None:
    """Which classes have few rows: one line, however many there are."""
    few = rare_classes(y)
    if len(few) == 1:
        ((name, count),) = few.items()
        say(f"class {name!r} has {count} of {len(y)} rows: too few to rely on")
    elif few:
        named = ", ".join(f"{name!r} {count}" for name, count in list(few.items())[:5])
        more = ", …" if len(few) > 5 else ""
        say(
            f"{len(few)} classes have fewer than {MIN_CLASS_ROWS} of {len(y)} rows, "
            "too few "
            f"to rely on: {named}{more}"
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


def _standard_errors(
    truth: np.ndarray, predictions: dict[str, np.ndarray]
) -> dict[str, float]:
    """Of our score minus each other one, from the differences row by row."""
    if truth.dtype.kind == "f":
        spread = float(np.var(truth)) or 1.0
        values = {
            name: -((truth - found) ** 2) / spread
            for name, found in predictions.items()
        }
    else:
        values = {
            name: (found == truth).astype(float) for name, found in predictions.items()
        }
    ours = values.pop("nystrom")
    return {
        name: float(np.std(ours - other, ddof=1) / math.sqrt(len(truth)))
        for name, other in values.items()
    }


def _eigenvalues(model: Pipeline, rows: pd.DataFrame, seed: int) -> np.ndarray:
    """Of the approximated kernel matrix K̃ of all rows, descending."""
    some = np.random.default_rng(seed).permutation(len(rows))[:MOST_FOR_EIGENVALUES]
    landmarks = model[-1].landmarks_
    of_some = approximate(model[:-1].transform(rows.iloc[some]), landmarks)
    return of_some.eigenvalues() * (len(rows) / len(some))


def no_better(about: dict[str, Any]) -> str:
    """A warning where held-out rows do not show that the model is worth it, or ""."""
    names = about["no_better_than"]
    if not names:
        return ""
    scores, errors = about["held_out"], about["standard_errors"]
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
        f"on {about['held_out_rows']} rows held out the model ({about['score']} "
        f"{scores['nystrom']:.4f}) is no better than {against}: {advice}"
    )


def _models_to_compare(chosen: Any, task: str) -> dict[str, Any]:
    """This model, a linear one, and none."""
    regression = task == "regression"
    return {
        "nystrom": clone(chosen),
        "linear": Ridge() if regression else LogisticRegression(max_iter=1000),
        "constant": DummyRegressor() if regression else DummyClassifier(),
    }


@contextmanager
def _record_seconds(seconds: dict[str, float], name: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - started


def write_landmark_rows(
    path: str,
    number: int,
    gamma: float | None,
    categories: tuple[str, ...],
    ignored: tuple[str, ...],
    output: str,
    seed: int,
    *,
    overwrite: bool,
) -> None:
    """Write the rows chosen, with their line in the file, the most telling first."""
    check_output_paths([output], [path], overwrite=overwrite)
    table = read_table(path)
    check_columns_exist(table, (*categories, *ignored), path)
    rows = table.drop(columns=list(ignored))
    columns = TableColumns.of(rows, path, categories=categories)
    Z = columns.make_encoder().fit_transform(columns.values(rows, path))
    width = "median" if gamma is None else gamma
    landmarks = select_landmarks(
        Z, gamma=width, n_landmarks=min(number, len(Z)), random_state=seed
    )
    indices = np.asarray(landmarks.indices)
    chosen = table.iloc[indices].reset_index(drop=True)
    with open_table_writer(output) as write:
        write(pd.concat([_row_positions(path, indices, chosen), chosen], axis=1))


def _row_positions(path: str, indices: np.ndarray, chosen: pd.DataFrame) -> pd.Series:
    """Where the rows are in the file: their lines, or their numbers from 1 on."""
    lines = line_numbers(path, indices.tolist())
    name = "row" if lines is None else "line"
    name = f"{name}_in_file" if name in chosen else name
    return pd.Series(indices + 1 if lines is None else lines, name=name)
