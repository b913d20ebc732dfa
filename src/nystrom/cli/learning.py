"""Fit a model to the rows of a table, compare it with baselines, predict with it."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import click
import numpy as np
import pandas as pd
from sklearn import metrics
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline

from nystrom import (
    KernelLogisticRegression,
    KernelRidgeClassifierCV,
    KernelRidgeCV,
    load,
)

from .tables import (
    MIN_CLASS_ROWS,
    as_known_labels,
    check_column,
    find_columns,
    guess_task,
    make_encoder,
    parse_columns,
    parse_numbers,
    parse_target,
    read_pieces,
    read_table,
)

#: Rows that the width and the number of landmarks are chosen on at most.
MAX_SEARCH_ROWS = 50_000
#: Widths to search, relative to gamma="scale".
RELATIVE_GAMMAS = 4.0 ** np.arange(-5, 4)
#: Inverse penalties of a classifier to choose from.
CLASSIFIER_CS = (10.0 ** np.arange(-2, 4)).tolist()
#: From so many rows on, and up to so many encoded columns, a metric is learnt too.
MIN_METRIC_ROWS, MAX_METRIC_FEATURES = 1000, 1000
#: The share of rows that is held out, and the most of them.
HELD_OUT_SHARE, MAX_HELD_OUT_ROWS = 0.2, 20_000
#: Bootstrap samples of rows held out, for intervals of 95 %.
N_BOOTSTRAP = 100
#: Rows whose columns are permuted at most, and how often.
MAX_PERMUTED_ROWS, N_PERMUTATIONS = 1000, 5
#: What the baselines are called, and what to do where the model is no better.
BASELINES = {
    "linear": ("a linear model", "Consider the linear model, which is simpler"),
    "boosting": ("gradient boosting", "Consider boosting instead"),
    "constant": ("a constant", "Add rows, or columns that inform about the target"),
}


def say(text: str) -> None:
    """Print progress on standard error, unless the command is to be quiet."""
    options = click.get_current_context().params
    if not (options.get("quiet") or options.get("as_json")):
        click.echo(text, err=True)


class Evaluation(NamedTuple):
    """Targets of rows, and their predictions; of a classifier, probabilities too."""

    y_true: np.ndarray
    y_pred: np.ndarray
    probabilities: np.ndarray | None = None  # (rows, classes)
    classes: np.ndarray | None = None

    @classmethod
    def of(cls, model: Any, rows: pd.DataFrame, y: np.ndarray) -> Evaluation:
        """Predictions of a model for rows with these targets."""
        if not is_classifier(model):
            return cls(y, model.predict(rows))
        return cls(y, model.predict(rows), model.predict_proba(rows), model.classes_)

    def metrics(self, indices: Any = slice(None)) -> dict[str, float]:
        """R², RMSE and MAE, or accuracy, AUC and log-loss, of some of the rows.

        The AUC is the mean over classes, each against all others.
        """
        y, found = self.y_true[indices], self.y_pred[indices]
        if self.probabilities is None or self.classes is None:
            return {
                "R²": float(metrics.r2_score(y, found)),
                "RMSE": float(metrics.root_mean_squared_error(y, found)),
                "MAE": float(metrics.mean_absolute_error(y, found)),
            }
        shares = self.probabilities[indices]
        scores = {"accuracy": float(metrics.accuracy_score(y, found))}
        present = np.flatnonzero(np.isin(self.classes, y))
        if len(present) > 1:  # else it is not defined
            auc, classes = metrics.roc_auc_score, self.classes
            areas = [auc(y == classes[j], shares[:, j]) for j in present]
            scores["AUC"] = float(np.mean(areas))
        loss = metrics.log_loss(y, shares, labels=self.classes)
        return scores | {"log-loss": float(loss)}

    def intervals(self, seed: int) -> dict[str, list[float]]:
        """Of 95 %, by the bootstrap over rows."""
        rng, n = np.random.default_rng(seed), len(self.y_true)
        samples = [rng.integers(n, size=n) for _ in range(N_BOOTSTRAP)]
        found = pd.DataFrame([self.metrics(rows) for rows in samples])
        return {name: found[name].quantile([0.025, 0.975]).tolist() for name in found}

    def advantage(self, other: Evaluation) -> tuple[float, float]:
        """How much better than others the predictions are in R² or accuracy, and the
        standard error, from differences row by row.
        """
        if self.probabilities is None:
            spread = float(np.var(self.y_true)) or 1.0
            ours, others = (self.y_true - e.y_pred for e in (self, other))
            ahead = (others**2 - ours**2) / spread
        else:
            ours, others = (e.y_pred == e.y_true for e in (self, other))
            ahead = ours.astype(float) - others
        error = np.std(ahead, ddof=1) / math.sqrt(len(ahead))
        return float(np.mean(ahead)), float(error)


def train(
    path: str,
    target: str,
    *,
    landmarks: int | None,
    seed: int,
    verbose: int,
    **options: Any,
) -> tuple[Pipeline, Evaluation]:
    """Choose width, penalty and number of landmarks, score it, fit it on all rows.

    The pipeline has a `nystrom_summary_`.
    """
    started = time.perf_counter()
    table = read_table(path)
    say(f"rows: {len(table)}, columns: {table.shape[1]}")
    task, y, rows, columns, left_out = read_problem(table, target, **options)
    in_train, in_test = split(y, task, seed)
    size = landmarks or int(min(1000, max(20, len(in_train) // 4)))
    some = np.random.default_rng(seed).permutation(in_train)[:MAX_SEARCH_ROWS]
    with warnings.catch_warnings():
        # The advice to search beyond a grid is for callers who give one.
        warnings.filterwarnings("ignore", "The best of ")
        Z = make_encoder(columns).fit_transform(rows.iloc[some])
        chosen = choose_estimator(Z, y[some], task, size, seed, verbose)
        estimators = {"nystrom": clone(chosen), **baselines(task, seed)}
        found: dict[str, Evaluation] = {}
        for name, estimator in estimators.items():
            model = make_pipeline(make_encoder(columns), estimator)
            model.fit(rows.iloc[in_train], y[in_train])
            found[name] = Evaluation.of(model, rows.iloc[in_test], y[in_test])
            if name == "nystrom":
                few = in_test[:MAX_PERMUTED_ROWS]
                importances = find_importances(model, rows.iloc[few], y[few], seed)
        model = make_pipeline(make_encoder(columns), chosen).fit(rows, y)
    model.nystrom_summary_ = {
        "task": task,
        "target": target,
        "table": path,
        "separator": table.attrs.get("separator", ","),
        "rows": len(y),
        "rows_without_target": len(table) - len(y),
        "columns": columns,
        "left_out": left_out,
        "importances": importances,
        "classes": [str(name) for name in getattr(chosen, "classes_", ())],
        "landmarks": len(chosen.landmarks_),
        "kernel": str(chosen.landmarks_.kernel),
        "gamma": chosen.gamma,
        "penalty": {"alpha": chosen.alpha_}
        if task == "regression"
        else {"C": chosen.C_},
        "approximation_error": float(chosen.landmarks_.error.value),
        "held_out_rows": len(in_test),
        "held_out": {name: each.metrics() for name, each in found.items()},
        "intervals": found["nystrom"].intervals(seed),
        "warnings": list(comparison_warnings(found)),
        "seed": seed,
        "seconds": round(time.perf_counter() - started, 3),
    }
    return model, found["nystrom"]


def read_problem(
    table: pd.DataFrame,
    target: str,
    task: str | None,
    category: tuple[str, ...],
    ignore: tuple[str, ...],
) -> tuple[str, np.ndarray, pd.DataFrame, dict[str, list[str]], dict[str, str]]:
    """Guess the task and the kinds of columns, and say what was guessed."""
    for name in (target, *category, *ignore):
        check_column(table, name)
    if target in (*category, *ignore):
        raise ValueError(
            f"{target!r} is the target and cannot be used with --category or "
            "--ignore; for classes use --task classification."
        )
    table = table[table[target].notna()]
    if task is None:
        task, reason = guess_task(table[target])
        say(f"{task}, because {reason} (--task overrides this)")
    y = parse_target(table[target], task)
    if task == "classification":
        counts = pd.Series(y).value_counts().sort_index()
        rare = counts[counts < MIN_CLASS_ROWS].index.astype(str)
        if len(rare):
            few = f"fewer than {MIN_CLASS_ROWS} rows, too few to test on"
            say(f"classes with {few}: {len(rare)}, such as {', '.join(rare[:5])}")
    given = table.drop(columns=list({target, *ignore}))
    columns, left_out = find_columns(given, category)
    for name, reason in left_out.items():
        say(f"column {name!r} is dropped: {reason}")
    return task, y, parse_columns(columns, given), columns, left_out


def split(y: np.ndarray, task: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows to train on, and those held out; classes in the same shares.

    Rows of classes that are too small for that are all trained on.
    """
    share, rows = min(HELD_OUT_SHARE, MAX_HELD_OUT_ROWS / len(y)), np.arange(len(y))
    is_rare, strata = np.zeros(len(y), dtype=bool), None
    if task == "classification":
        _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        is_rare = counts[codes] < MIN_CLASS_ROWS
        strata = codes[~is_rare]
    train, test = train_test_split(
        rows[~is_rare], test_size=share, random_state=seed, stratify=strata
    )
    return np.concatenate([train, rows[is_rare]]), test


def choose_estimator(
    Z: np.ndarray, y: np.ndarray, task: str, size: int, seed: int, verbose: int
) -> Any:
    """An estimator whose width and number of landmarks are cross-validated.

    Each of its fits chooses its own penalty, as a metric that is learnt again may be
    another one. A classifier is searched for with squared loss, which is fast, by the
    log-loss of calibrated probabilities; it is fitted with logistic loss, whose
    probabilities are better. A matrix that is learnt for squared loss may be worse for
    them than widths.
    """
    is_regression = task == "regression"
    common: dict[str, Any] = {"kernel": "rbf", "random_state": seed, "verbose": verbose}
    scale = 1 / (Z.shape[1] * (np.var(Z) or 1.0))  # gamma="scale"
    gammas = (scale * RELATIVE_GAMMAS).tolist()
    if len(Z) >= MIN_METRIC_ROWS and Z.shape[1] <= MAX_METRIC_FEATURES:
        gammas += ["matrix"] if is_regression else ["ard", "matrix"]
    search = (KernelRidgeCV if is_regression else KernelRidgeClassifierCV)(
        gammas=gammas,
        scoring=None if is_regression else "log_loss",
        n_landmarks=sorted({max(10, size // 4), max(10, size // 2), size}),
        prefer_fewer=False,
        fit_intercept=True,
        cv=5,
        **common,
    )
    search.fit(Z, y)
    best = int(search.scores_.reshape(len(gammas), -1).max(axis=1).argmax())
    common |= {"gamma": gammas[best], "n_landmarks": int(search.n_landmarks_)}
    if is_regression:
        return KernelRidgeCV(fit_intercept=True, **common)
    return KernelLogisticRegression(CLASSIFIER_CS, **common)


def baselines(task: str, seed: int) -> dict[str, Any]:
    """The models that ours is compared with."""
    if task == "regression":
        boosting = HistGradientBoostingRegressor(random_state=seed)
        return {"linear": Ridge(), "boosting": boosting, "constant": DummyRegressor()}
    return {
        "linear": LogisticRegression(max_iter=1000),
        "boosting": HistGradientBoostingClassifier(random_state=seed),
        "constant": DummyClassifier(),
    }


def find_importances(
    model: Pipeline, rows: pd.DataFrame, y: np.ndarray, seed: int
) -> dict[str, list[float]]:
    """How much the score falls when a column is permuted, and its deviation."""
    found = permutation_importance(
        model, rows, y, n_repeats=N_PERMUTATIONS, random_state=seed
    )
    values = np.column_stack([found.importances_mean, found.importances_std])
    return dict(zip(rows.columns, values.tolist(), strict=True))


def comparison_warnings(found: dict[str, Evaluation]) -> Iterator[str]:
    """Where held-out rows do not show that the model is worth it.

    It has to be ahead of simpler ones by more than a standard error, and not behind
    boosting by as much.
    """
    ours = found["nystrom"]
    score, value = next(iter(ours.metrics().items()))
    for name, (description, advice) in BASELINES.items():
        ahead, error = ours.advantage(found[name])
        if ahead < -error if name == "boosting" else ahead <= error:
            verdict = "clearly worse" if name == "boosting" else "not clearly better"
            yield (
                f"On the held-out rows the model ({score} {value:.4f}) is {verdict} "
                f"than {description} ({found[name].metrics()[score]:.4f}, standard "
                f"error of the difference {error:.2g}). {advice}."
            )


# ----------------------------------------------------------------------- fitted models


def load_model(path: str) -> Pipeline:
    """A model that `nystrom fit` saved."""
    model = load(path)
    if not hasattr(model, "nystrom_summary_"):
        raise ValueError(f"{path} has no model that `nystrom fit` wrote; run it first.")
    return model


def predicted_pieces(
    model: Pipeline, path: str, *, uncertainty: bool, keep_columns: bool
) -> Iterator[pd.DataFrame]:
    """Predictions, alone or beside the columns of the table, piece by piece."""
    for piece in read_pieces(path):
        values = parse_columns(model.nystrom_summary_["columns"], piece)
        if not uncertainty:
            found = {"prediction": model.predict(values)}
        elif is_classifier(model):
            shares = model.predict_proba(values)
            found = {"prediction": model.classes_[np.argmax(shares, axis=1)]}
            for name, column in zip(model.classes_, shares.T, strict=True):
                found[f"probability_{name}"] = column
        else:
            mean, std = model.predict(values, return_std=True, noise=True)
            found = {"prediction": mean, "deviation": std}
        result = pd.DataFrame(found, index=piece.index)
        if keep_columns:
            kept = piece.drop(columns=[name for name in piece if name in result])
            result = pd.concat([kept, result], axis=1)
        yield result


def evaluate(model: Pipeline, path: str) -> Evaluation:
    """The rows of a table that have a value of the target, and predictions of it."""
    summary, table = model.nystrom_summary_, read_table(path)
    target = summary["target"]
    check_column(table, target, " to compare with")
    known = table[table[target].notna()]
    if not len(known):
        raise ValueError(f"{path} needs values of {target!r} to compare with.")
    if summary["task"] == "regression":
        y = parse_numbers(known[target])
    else:
        y = as_known_labels(known[target], model.classes_)
    return Evaluation.of(model, parse_columns(summary["columns"], known), y)
