"""Fit a model to the rows of a table, compare it with baselines, predict with it."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline

from nystrom import (
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
    KernelRidgeCV,
    approximate,
    load,
    select_landmarks,
)

from .tables import (
    CommandError,
    TableFile,
    as_known_labels,
    check_column,
    check_target,
    find_columns,
    guess_task,
    make_encoder,
    parse_columns,
    parse_target,
)

#: Rows that the width, the ridge and the number of landmarks are chosen on at most.
MAX_SEARCH_ROWS = 50_000
#: Widths to search, relative to gamma="scale".
RELATIVE_GAMMAS = 4.0 ** np.arange(-5, 4)
#: From so many rows on, and up to so many encoded columns, a metric is learnt too.
MIN_METRIC_ROWS, MAX_METRIC_FEATURES = 1000, 1000
#: Rows whose eigenvalues are computed at most; with more they are scaled to all.
MAX_EIGENVALUE_ROWS = 20_000
#: The share of rows that is held out, and the most of them.
HELD_OUT_SHARE, MAX_HELD_OUT_ROWS = 0.2, 20_000
#: Classes with fewer rows are hardly learnt, which is said.
MIN_CLASS_ROWS = 5
#: Bootstrap samples of rows held out, for intervals of 95 %.
N_BOOTSTRAP = 100
#: Rows whose columns are permuted at most, and how often.
MAX_PERMUTED_ROWS, N_PERMUTATIONS = 1000, 5
#: What the baselines are called, and what to do where the model is no better.
BASELINES = {
    "linear": ("a linear model", "it is simpler, and may be as good"),
    "boosting": ("gradient boosting", "consider it instead"),
    "constant": (
        "a constant",
        "the columns may say little about the target, or the rows be too few",
    ),
}


def is_quiet() -> bool:
    """Whether the command that runs has --quiet or --json."""
    options = click.get_current_context().params
    return bool(options.get("quiet") or options.get("as_json"))


def say(text: str) -> None:
    """Print progress on standard error, unless the command is to be quiet."""
    if not is_quiet():
        click.echo(text, err=True)


class Evaluation(NamedTuple):
    """Rows with their targets and predictions."""

    rows: pd.DataFrame
    y_true: np.ndarray
    y_pred: np.ndarray
    probabilities: np.ndarray | None = None  # (rows, classes), of a classifier
    codes: np.ndarray | None = None  # the number of the true class, -1: unknown
    file: TableFile | None = None  # where they are from; None for rows held out

    @classmethod
    def of(cls, model: Any, rows: pd.DataFrame, y: np.ndarray) -> Evaluation:
        """Predictions of a model for rows with these targets."""
        if not is_classifier(model):
            return cls(rows, y, model.predict(rows))
        shares = model.predict_proba(rows)
        codes = pd.Index(model.classes_.astype(str)).get_indexer(y.astype(str))
        return cls(rows, y, model.predict(rows), shares, codes)

    def metrics(self, indices: Any = slice(None)) -> dict[str, float]:
        """R², RMSE and MAE, or accuracy, AUC and log-loss, of some of the rows.

        The AUC is the mean over classes, each against all others.
        """
        y, found = self.y_true[indices], self.y_pred[indices]
        if self.probabilities is None or self.codes is None:
            errors = np.abs(y - found)
            rmse, mae = np.sqrt(np.mean(errors**2)), np.mean(errors)
            r2 = 1 - rmse**2 / (np.var(y) or 1.0)
            return {"R²": float(r2), "RMSE": float(rmse), "MAE": float(mae)}
        metrics = {"accuracy": float(np.mean(y.astype(str) == found.astype(str)))}
        shares, codes = self.probabilities[indices], self.codes[indices]
        shares, codes = shares[codes >= 0], codes[codes >= 0]
        present = np.unique(codes)
        if len(present) > 1:  # else it is not defined
            classes = [1] if shares.shape[1] == 2 else present
            areas = [roc_auc_score(codes == c, shares[:, c]) for c in classes]
            metrics["AUC"] = float(np.mean(areas))
        of_truth = np.maximum(shares[np.arange(len(codes)), codes], 1e-15)
        return metrics | {"log-loss": float(-np.mean(np.log(of_truth)))}

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
    table: pd.DataFrame,
    target: str,
    file: TableFile,
    *,
    landmarks: int | None,
    seed: int,
    verbose: int,
    **options: Any,
) -> tuple[Pipeline, Evaluation]:
    """Choose width, ridge and number of landmarks, score it, fit it on all rows.

    The pipeline has a `nystrom_summary_` and the eigenvalues of K̃: a report that is
    written later has other rows.
    """
    started = time.perf_counter()
    task, y, rows, columns = read_problem(table, target, file, **options)
    in_train, in_test = split(y, task, seed)
    size = landmarks or int(min(1000, max(20, len(in_train) // 4)))
    some = np.random.default_rng(seed).permutation(in_train)[:MAX_SEARCH_ROWS]
    Z = make_encoder(columns).fit_transform(rows.iloc[some])
    chosen = choose_estimator(Z, y[some], task, size, seed, verbose)
    chosen.set_params(alpha=chosen.alpha * len(in_train) / len(some))
    found: dict[str, Evaluation] = {}
    for name, estimator in {"nystrom": clone(chosen), **baselines(task, seed)}.items():
        model = make_pipeline(make_encoder(columns), estimator)
        model.fit(rows.iloc[in_train], y[in_train])
        found[name] = Evaluation.of(model, rows.iloc[in_test], y[in_test])
        if name == "nystrom":
            importances = find_importances(model, found[name], seed)
    ours = found["nystrom"]
    model = make_pipeline(make_encoder(columns), chosen).fit(rows, y)
    eigenvalues = find_eigenvalues(model, rows, seed)
    alpha, selected = float(chosen.alpha), chosen.landmarks_
    model.nystrom_eigenvalues_ = eigenvalues
    model.nystrom_summary_ = {
        "task": task,
        "target": target,
        "table": file.path,
        "separator": file.separator,
        "rows": len(y),
        "rows_without_target": len(table) - len(y),
        "columns": columns,
        "importances": importances,
        "classes": [str(name) for name in getattr(chosen, "classes_", ())],
        "landmarks": len(selected),
        "kernel": str(selected.kernel),
        "gamma": chosen.gamma,
        "alpha": alpha,
        # How many parameters the ridge leaves to the model.
        "effective_dimension": float(np.sum(eigenvalues / (eigenvalues + alpha))),
        "approximation_error": float(selected.error.value),
        "held_out_rows": len(in_test),
        "held_out": {name: each.metrics() for name, each in found.items()},
        "intervals": ours.intervals(seed),
        "advantages": {name: ours.advantage(found[name]) for name in BASELINES},
        "seed": seed,
        "seconds": round(time.perf_counter() - started, 3),
    }
    for warning in comparison_warnings(model.nystrom_summary_):
        say(f"Warning: {warning}")
    return model, ours


def read_problem(
    table: pd.DataFrame,
    target: str,
    file: TableFile,
    task: str | None,
    category: tuple[str, ...],
    ignore: tuple[str, ...],
) -> tuple[str, np.ndarray, pd.DataFrame, dict[str, Any]]:
    """Guess the task and the kinds of columns, and say what was guessed."""
    for name in (target, *category, *ignore):
        check_column(table, name, file)
    if target in (*category, *ignore):
        raise CommandError(
            f"{target!r} is the target and cannot be used with --category or "
            "--ignore; for classes use --task classification."
        )
    present = table[target].notna()
    raw_target = table[target][present]
    check_target(raw_target, file)
    if task is None:
        task, reason = guess_task(raw_target)
        say(f"{task}, since {reason} (--task says otherwise)")
    y = parse_target(raw_target, task, file)
    if not present.all():
        say(f"rows without a value of {target!r}, left out: {(~present).sum()}")
    if task == "classification":
        counts = pd.Series(y).value_counts().sort_index()
        rare = counts[counts < MIN_CLASS_ROWS]
        if len(rare):
            named = ", ".join(f"{name!s} ({n})" for name, n in rare[:5].items())
            few = f"fewer than {MIN_CLASS_ROWS} rows, too few to rely on"
            say(f"classes with {few}: {len(rare)}, {named}" + ", …" * (len(rare) > 5))
    given = table[present].drop(columns=list({target, *ignore}))
    columns = find_columns(given, file, category)
    for name, reason in columns["left_out"].items():
        say(f"column {name!r} is left out: {reason}")
    for name in columns["numbers"]:
        numbers = pd.to_numeric(table[name], errors="coerce")
        if (numbers - np.arange(len(table))).nunique() == 1:
            say(
                f"column {name!r} counts up by one from row to row; if it only numbers "
                f"them, --ignore {name}"
            )
    return task, y, parse_columns(columns, given, file), columns


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
    scale = 1 / (Z.shape[1] * (np.var(Z) or 1.0))  # gamma="scale"
    gammas = (scale * RELATIVE_GAMMAS).tolist()
    if len(Z) >= MIN_METRIC_ROWS and Z.shape[1] <= MAX_METRIC_FEATURES:
        gammas.append("matrix")
    search = (KernelRidgeCV if is_regression else KernelRidgeClassifierCV)(
        gammas=gammas,
        n_landmarks=sorted({max(10, size // 4), max(10, size // 2), size}),
        prefer_fewer=False,
        fit_intercept=True,
        cv=5,
        **common,
    )
    with warnings.catch_warnings():
        # The advice to search beyond the grid is for callers who give one.
        warnings.filterwarnings("ignore", "The best of ")
        search.fit(Z, y)
    best = int(search.scores_.reshape(len(gammas), -1).max(axis=1).argmax())
    return (KernelRidge if is_regression else KernelRidgeClassifier)(
        alpha=float(search.alpha_),
        gamma=gammas[best],
        n_landmarks=int(search.n_landmarks_),
        fit_intercept=True,
        **common,
    )


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
    model: Pipeline, held_out: Evaluation, seed: int
) -> dict[str, list[float]]:
    """How much the score falls when a column is permuted, and its deviation."""
    found = permutation_importance(
        model,
        held_out.rows[:MAX_PERMUTED_ROWS],
        held_out.y_true[:MAX_PERMUTED_ROWS],
        n_repeats=N_PERMUTATIONS,
        random_state=seed,
    )
    values = np.column_stack([found.importances_mean, found.importances_std])
    return dict(zip(held_out.rows.columns, values.tolist(), strict=True))


def find_eigenvalues(model: Pipeline, rows: pd.DataFrame, seed: int) -> np.ndarray:
    """Of the approximated kernel matrix K̃ of all rows, descending."""
    some = np.random.default_rng(seed).permutation(len(rows))[:MAX_EIGENVALUE_ROWS]
    of_some = approximate(model[:-1].transform(rows.iloc[some]), model[-1].landmarks_)
    return of_some.eigenvalues() * (len(rows) / len(some))


def no_better_than(summary: dict[str, Any]) -> list[str]:
    """The baselines that make the model look needless on held-out rows.

    It has to be ahead of simpler ones by more than a standard error, and not behind
    boosting by as much.
    """
    advantages = summary["advantages"]
    limits = {name: error for name, (_, error) in advantages.items()}
    limits["boosting"] = -limits.get("boosting", 0.0)
    return [name for name in advantages if advantages[name][0] <= limits[name]]


def comparison_warnings(summary: dict[str, Any]) -> Iterator[str]:
    """Where held-out rows do not show that the model is worth it."""
    scores = {name: next(iter(m.items())) for name, m in summary["held_out"].items()}
    score, ours = scores["nystrom"]
    for name in no_better_than(summary):
        description, advice = BASELINES[name]
        yield (
            f"on {summary['held_out_rows']} rows held out the model ({score} "
            f"{ours:.4f}) is no better than {description} ({scores[name][1]:.4f}, "
            f"standard error of the difference {summary['advantages'][name][1]:.2g}): "
            f"{advice}"
        )


# ------------------------------------------------------------------- fitted models


def load_model(path: str) -> Pipeline:
    """A model that `nystrom fit` saved."""
    if not Path(path).exists():
        raise CommandError(f"There is no file {path}.")
    model = load(path)
    if not hasattr(model, "nystrom_summary_"):
        raise CommandError(
            f"{path} was not written by `nystrom fit`; fit a model with it first."
        )
    return model


def predicted_pieces(
    model: Pipeline,
    file: TableFile,
    *,
    probabilities: bool,
    deviations: bool,
    keep_columns: bool,
) -> Iterator[pd.DataFrame]:
    """Predictions, alone or beside the columns of the table, piece by piece."""
    if deviations if is_classifier(model) else probabilities:
        raise CommandError(
            "--probabilities needs a classifier, and --deviations a regression."
        )
    for piece in file.pieces():
        values = parse_columns(model.nystrom_summary_["columns"], piece, file)
        if deviations:
            mean, std = model.predict(values, return_std=True, noise=True)
            found = {"prediction": mean, "deviation": std}
        elif probabilities:
            shares = model.predict_proba(values)
            found = {"prediction": model.classes_[np.argmax(shares, axis=1)]}
            for name, column in zip(model.classes_, shares.T, strict=True):
                found[f"probability_{name}"] = column
        else:
            found = {"prediction": model.predict(values)}
        result = pd.DataFrame(found, index=piece.index)
        if keep_columns:
            kept = piece.drop(columns=[name for name in piece if name in result])
            result = pd.concat([kept, result], axis=1)
        yield result


def evaluate(model: Pipeline, file: TableFile) -> Evaluation:
    """The rows of a table that have a value of the target, and predictions of it."""
    summary, parts = model.nystrom_summary_, []
    target = summary["target"]
    for piece in file.pieces():
        check_column(piece, target, file, " to compare with")
        known = piece[piece[target].notna()]
        values = parse_columns(summary["columns"], known, file)
        parts.append(values.assign(**{target: known[target]}))
    rows = pd.concat(parts)
    if not len(rows):
        raise CommandError(f"{file} has no row with a value of {target!r}.")
    if summary["task"] == "regression":
        y = parse_target(rows[target], "regression", file)
    else:
        y = as_known_labels(rows[target], model.classes_, file)
    return Evaluation.of(model, rows.drop(columns=target), y)._replace(file=file)


def landmark_rows(
    file: TableFile,
    number: int,
    gamma: float | None,
    category: tuple[str, ...],
    ignore: tuple[str, ...],
    seed: int,
) -> pd.DataFrame:
    """Landmarks of a table, with their line in the file, in the order of selection."""
    table = file.read()
    for name in (*category, *ignore):
        check_column(table, name, file)
    rows = table.drop(columns=list(ignore))
    columns = find_columns(rows, file, category)
    Z = make_encoder(columns).fit_transform(parse_columns(columns, rows, file))
    landmarks = select_landmarks(
        Z,
        gamma="median" if gamma is None else gamma,
        n_landmarks=min(number, len(Z)),
        random_state=seed,
    )
    chosen = table.iloc[np.asarray(landmarks.indices)]
    name = file.unit if file.unit not in chosen else f"{file.unit}_in_file"
    return chosen.reset_index(names=name)
