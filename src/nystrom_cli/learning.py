"""From a table to a model: what is to be learnt, which numbers, and how good it is."""

from __future__ import annotations

import math
import time
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

from nystrom import approximate

from .columns import Columns, check_names
from .failures import CommandError
from .searching import chosen_estimator
from .target import FEW_ROWS, check_target, guess_task, rare, target_values

#: Rows that the eigenvalues are of at most; with more they are scaled to all.
MOST_FOR_EIGENVALUES = 20_000
#: The share of rows that is held out, and the most of them.
HELD_OUT, MOST_HELD_OUT = 0.2, 20_000


@dataclass
class Learnt:
    """A model, and what there is to say about it."""

    model: Pipeline
    task: str  # "regression" or "classification"
    target: str
    columns: Columns
    n_rows: int
    n_dropped: int
    scores: dict[str, float]  # on rows held out: ours, linear, constant
    seconds: dict[str, float]
    held_out: pd.DataFrame = field(repr=False)
    truth: np.ndarray = field(repr=False)
    predicted: np.ndarray = field(repr=False)  # by a model that did not see these rows
    of_table: str | None = None  # truth and predictions are of a table given later
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
            "held_out_rows": len(self.truth),
            "held_out": {name: float(value) for name, value in self.scores.items()},
            "standard_errors": dict(self.standard_errors),
            "no_better_than": [
                name
                for name, error in self.standard_errors.items()
                if self.scores["nystrom"] - self.scores[name] <= error
            ],
            "seconds": {name: round(value, 3) for name, value in self.seconds.items()},
        }


def learn(
    table: pd.DataFrame,
    target: str,
    where: str,
    *,
    task: str | None,
    n_landmarks: int | None,
    categories: tuple[str, ...],
    ignored: tuple[str, ...],
    seed: int,
    verbose: int,
    say: Any,
) -> Learnt:
    """Choose width, ridge and number of landmarks, score it, fit it on all rows."""
    seconds: dict[str, float] = {}
    check_names(table, (target, *categories, *ignored), where)
    for option, names in (("category", categories), ("ignore", ignored)):
        if target in names:
            raise CommandError(
                f"--{option} {target} is the target; it is no column to learn from. "
                "For classes give --task classification."
            )
    y_given = table[target]
    check_target(y_given, target, where)
    if task is None:
        task, why = guess_task(y_given)
        say(f"{task}, since {why} (--task says otherwise)")
    present = y_given.notna().to_numpy()
    table, y = table[present], target_values(y_given[present], task, target, where)
    if not present.all():
        say(f"rows without a value of {target!r}, left out: {(~present).sum()}")
    if task == "classification":
        _say_rare(y, say)
    with _timed(seconds, "reading columns"):
        rows = table.drop(columns=list({target, *ignored}))
        columns = Columns.of(rows, where, categories=categories)
        values = columns.values(rows, where)
    for name, why in columns.left_out.items():
        say(f"column {name!r} is left out: {why}")
    for name in _numbering(rows, columns):
        say(
            f"column {name!r} counts up by one from row to row; if it only "
            f"numbers them, --ignore {name}"
        )
    in_train, in_test = split(y, task, seed)
    train, test = values.iloc[in_train], values.iloc[in_test]
    y_train, y_test = y[in_train], y[in_test]
    size = n_landmarks or int(min(1000, max(20, len(y_train) // 4)))
    with _timed(seconds, "choosing"):
        chosen = chosen_estimator(columns, train, y_train, task, size, seed, verbose)
    with _timed(seconds, "scoring"):
        fitted = {
            name: make_pipeline(columns.encoder(), estimator).fit(train, y_train)
            for name, estimator in _rivals(chosen, task).items()
        }
        scores = {
            name: float(model.score(test, y_test)) for name, model in fitted.items()
        }
        predictions = {name: model.predict(test) for name, model in fitted.items()}
        predicted = predictions["nystrom"]
        standard_errors = _standard_errors(y_test, predictions)
    with _timed(seconds, "fitting all rows"):
        model = make_pipeline(columns.encoder(), chosen).fit(values, y)
        # Kept with the model: a report that is written later has other rows.
        model.nystrom_eigenvalues_ = _eigenvalues(model, values, seed)
    dropped = int((~present).sum())
    found = Learnt(
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
    model.nystrom_summary_ = found.summary()
    warning = no_better(model.nystrom_summary_)
    if warning:
        say(f"Warning: {warning}")
    return found


def _numbering(rows: pd.DataFrame, columns: Columns) -> list[str]:
    """Columns that may only number the rows, which tells nothing of new ones."""
    numbers = {
        name: pd.to_numeric(rows[name], errors="coerce") for name in columns.numbers
    }
    return [name for name, x in numbers.items() if (x - rows.index).nunique() == 1]


def _say_rare(y: np.ndarray, say: Any) -> None:
    """Which classes have few rows: one line, however many there are."""
    few = rare(y)
    if len(few) == 1:
        ((name, count),) = few.items()
        say(f"class {name!r} has {count} of {len(y)} rows: too few to rely on")
    elif few:
        named = ", ".join(f"{name!r} {count}" for name, count in list(few.items())[:5])
        more = ", …" if len(few) > 5 else ""
        say(
            f"{len(few)} classes have fewer than {FEW_ROWS} of {len(y)} rows, too few "
            f"to rely on: {named}{more}"
        )


def split(y: np.ndarray, task: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows to train on, and those held out; classes in the same shares.

    Every class is trained on; of a class of one row nothing is held out, as it could
    only be wrong.
    """
    share = min(HELD_OUT, MOST_HELD_OUT / len(y))
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


def _rivals(chosen: Any, task: str) -> dict[str, Any]:
    """This model, a linear one, and none."""
    regression = task == "regression"
    return {
        "nystrom": clone(chosen),
        "linear": Ridge() if regression else LogisticRegression(max_iter=1000),
        "constant": DummyRegressor() if regression else DummyClassifier(),
    }


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    begun = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - begun
