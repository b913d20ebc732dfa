"""A model and a table: predictions piece by piece, a score, what a report needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, mean_squared_error, r2_score
from sklearn.pipeline import Pipeline

from nystrom import load

from . import tables
from .columns import Columns
from .failures import CommandError, no_column
from .kinds import kind_of, shown
from .learning import Learnt
from .target import compared, target_values
from .writing import check_places, rows_to


def loaded(path: str) -> Pipeline:
    """A model that `nystrom fit` made."""
    if not Path(path).exists():
        raise CommandError(f"There is no file {path}.")
    if Path(path).suffix.lower() in (".csv", ".tsv", ".gz", ".parquet", ".pq"):
        raise CommandError(
            f"{path} is a table by its name, not a model; the model comes first, then "
            "the table."
        )
    model = load(path)
    if not hasattr(model, "nystrom_summary_"):
        raise CommandError(
            f"{path} is a {type(model).__name__} that `nystrom fit` did not make; use "
            "it from Python, by nystrom.load."
        )
    return model


def _pieces(model: Pipeline, path: str) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """The rows as they are, and as the model takes them."""
    columns = Columns.of_model(model)
    for piece in tables.pieces(path):
        yield piece, columns.values(piece, path)


def predict_table(
    path: str,
    table: str,
    output: str,
    *,
    overwrite: bool,
    probabilities: bool,
    deviations: bool,
    keep: bool,
) -> None:
    """Write predictions beside each other or beside the columns that were there."""
    check_places([output], [path, table], overwrite=overwrite)
    kind_of(output)
    model = loaded(path)
    classifier = is_classifier(model)
    if probabilities and not classifier:
        raise CommandError("A regression has no probabilities; there are --deviations.")
    if deviations and classifier:
        raise CommandError("A classifier has no deviations; there are --probabilities.")
    with rows_to(output) as write:
        for piece, values in _pieces(model, table):
            if not len(piece):
                raise CommandError(f"{shown(table)} has a header and no rows.")
            found = _predicted(model, values, probabilities, deviations)
            result = pd.DataFrame(found, index=piece.index)
            if keep:
                kept = piece.drop(columns=[c for c in piece if c in result])
                result = pd.concat([kept, result], axis=1)
            write(result)


def _predicted(
    model: Pipeline, values: pd.DataFrame, probabilities: bool, deviations: bool
) -> dict[str, Any]:
    if deviations:
        mean, std = model.predict(values, return_std=True, noise=True)
        return {"prediction": mean, "deviation": std}
    if not probabilities:
        return {"prediction": model.predict(values)}
    shares = model.predict_proba(values)
    named = {f"probability_{c}": shares[:, i] for i, c in enumerate(model.classes_)}
    return {"prediction": model.classes_[np.argmax(shares, axis=1)], **named}


def truth_and_predictions(
    model: Pipeline, path: str
) -> tuple[np.ndarray, np.ndarray, pd.DataFrame]:
    """Of the rows that have a value of the target: it, the prediction, the rows."""
    about = model.nystrom_summary_
    target, task = about["target"], about["task"]
    truth, found, rows = [], [], []
    for piece, values in _pieces(model, path):
        if target not in piece.columns:
            wanted = " to compare with"
            raise no_column(shown(path), target, piece.columns, wanted)
        present = piece[target].notna().to_numpy()
        if not present.any():
            continue
        truth.append(piece[target][present])
        found.append(model.predict(values[present]))
        rows.append(values[present])
    if not truth:
        raise CommandError(f"{shown(path)} has no row with a value of {target!r}.")
    given, predicted = pd.concat(truth), np.concatenate(found)
    if task == "regression":
        true = target_values(given, task, target, path)
    else:
        true = compared(given, model.classes_, target, path)
        predicted = predicted.astype(str)
    return true, predicted, pd.concat(rows)


def score_table(path: str, table: str) -> dict[str, float]:
    """How close the predictions are."""
    truth, found, _ = truth_and_predictions(loaded(path), table)
    return {"rows": len(truth), **measures(truth, found)}


def measures(truth: np.ndarray, found: np.ndarray) -> dict[str, float]:
    """R² and root mean squared error, or accuracy."""
    if found.dtype.kind == "f":
        squares = float(mean_squared_error(truth, found))
        return {"R²": float(r2_score(truth, found)), "rmse": squares**0.5}
    return {"accuracy": float(accuracy_score(truth, found))}


def learnt_again(path: str, table: str) -> Learnt:
    """What a report tells, of a model from its file and rows that it did not see."""
    model = loaded(path)
    about = model.nystrom_summary_
    truth, found, rows = truth_and_predictions(model, table)
    return Learnt(
        model,
        about["task"],
        about["target"],
        Columns(**about["columns"]),
        about["rows"],
        about["rows_without_target"],
        dict(about["held_out"]),
        dict(about["seconds"]),
        rows,
        truth,
        found,
        of_table=shown(table),
    )
