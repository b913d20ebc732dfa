"""A model file and a table: predictions in pieces, scores, and what a report needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, mean_squared_error, r2_score
from sklearn.pipeline import Pipeline

from ..persistence.files import load
from .columns import TableColumns
from .console import CommandError, unknown_column_error
from .learning import TrainingResult
from .tables import (
    check_output_paths,
    display_name,
    open_table_writer,
    read_pieces,
    table_format,
)
from .target import as_known_labels, target_values


def load_model(path: str) -> Pipeline:
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


def _encoded_pieces(
    model: Pipeline, path: str
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """The rows as they are, and as the model takes them."""
    columns = TableColumns.from_model(model)
    for piece in read_pieces(path):
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
    check_output_paths([output], [path, table], overwrite=overwrite)
    table_format(output)
    model = load_model(path)
    classifier = is_classifier(model)
    if probabilities and not classifier:
        raise CommandError("A regression has no probabilities; there are --deviations.")
    if deviations and classifier:
        raise CommandError("A classifier has no deviations; there are --probabilities.")
    with open_table_writer(output) as write:
        for piece, values in _encoded_pieces(model, table):
            if not len(piece):
                raise CommandError(f"{display_name(table)} has a header and no rows.")
            predictions = _prediction_columns(model, values, probabilities, deviations)
            result = pd.DataFrame(predictions, index=piece.index)
            if keep:
                kept = piece.drop(columns=[c for c in piece if c in result])
                result = pd.concat([kept, result], axis=1)
            write(result)


def _prediction_columns(
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


def predict_labelled_rows(
    model: Pipeline, path: str
) -> tuple[np.ndarray, np.ndarray, pd.DataFrame]:
    """Of the rows that have a value of the target: it, the prediction, the rows."""
    summary = model.nystrom_summary_
    target, task = summary["target"], summary["task"]
    truth, predictions, rows = [], [], []
    for piece, values in _encoded_pieces(model, path):
        if target not in piece.columns:
            purpose = " to compare with"
            raise unknown_column_error(
                display_name(path), target, piece.columns, purpose
            )
        present = piece[target].notna().to_numpy()
        if not present.any():
            continue
        truth.append(piece[target][present])
        predictions.append(model.predict(values[present]))
        rows.append(values[present])
    if not truth:
        raise CommandError(
            f"{display_name(path)} has no row with a value of {target!r}."
        )
    raw_target, predicted = pd.concat(truth), np.concatenate(predictions)
    if task == "regression":
        true = target_values(raw_target, task, target, path)
    else:
        true = as_known_labels(raw_target, model.classes_, target, path)
        predicted = predicted.astype(str)
    return true, predicted, pd.concat(rows)


def score_table(path: str, table: str) -> dict[str, float]:
    """How close the predictions are."""
    y_true, y_pred, _ = predict_labelled_rows(load_model(path), table)
    return {"rows": len(y_true), **score_metrics(y_true, y_pred)}


def score_metrics(y_true: np.ndarray, y_pred: np.ndarray) -> dict[str, float]:
    """R² and root mean squared error, or accuracy."""
    if y_pred.dtype.kind == "f":
        squares = float(mean_squared_error(y_true, y_pred))
        return {"R²": float(r2_score(y_true, y_pred)), "rmse": squares**0.5}
    return {"accuracy": float(accuracy_score(y_true, y_pred))}


def result_from_files(path: str, table: str) -> TrainingResult:
    """What a report tells, of a model from its file and rows that it did not see."""
    model = load_model(path)
    summary = model.nystrom_summary_
    y_true, y_pred, rows = predict_labelled_rows(model, table)
    return TrainingResult(
        model,
        summary["task"],
        summary["target"],
        TableColumns(**summary["columns"]),
        summary["rows"],
        summary["rows_without_target"],
        dict(summary["held_out"]),
        dict(summary["seconds"]),
        rows,
        y_true,
        y_pred,
        table_name=display_name(table),
    )
