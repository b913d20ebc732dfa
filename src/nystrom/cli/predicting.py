"""A model file and a table: predictions in pieces, scores, and rows for a report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, mean_squared_error, r2_score
from sklearn.pipeline import Pipeline

from ..persistence import load
from .columns import as_known_labels, parse_columns, parse_target
from .console import CommandError, unknown_column_error
from .learning import Evaluation
from .tables import TableFile


def load_model(path: str) -> Pipeline:
    """A model that `nystrom fit` saved."""
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


def predicted_pieces(
    model: Pipeline,
    file: TableFile,
    *,
    probabilities: bool,
    deviations: bool,
    keep_columns: bool,
) -> Iterator[pd.DataFrame]:
    """Predictions, alone or beside the columns of the table, piece by piece."""
    if probabilities and not is_classifier(model):
        raise CommandError("A regression has no probabilities; there are --deviations.")
    if deviations and is_classifier(model):
        raise CommandError("A classifier has no deviations; there are --probabilities.")
    for piece in file.pieces():
        if not len(piece):
            raise CommandError(f"{file} has a header and no rows.")
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
    summary = model.nystrom_summary_
    target = summary["target"]
    truth, predictions, rows = [], [], []
    for piece in file.pieces():
        values = parse_columns(summary["columns"], piece, file)
        if target not in piece.columns:
            wanted = " to compare with"
            raise unknown_column_error(file, target, piece.columns, wanted)
        present = piece[target].notna()
        if present.any():
            truth.append(piece[target][present])
            rows.append(values[present])
            predictions.append(model.predict(values[present]))
    if not truth:
        raise CommandError(f"{file} has no row with a value of {target!r}.")
    raw_target, y_pred = pd.concat(truth), np.concatenate(predictions)
    if summary["task"] == "regression":
        y_true = parse_target(raw_target, "regression", file)
    else:
        y_true = as_known_labels(raw_target, model.classes_, file)
        y_pred = y_pred.astype(str)
    return Evaluation(pd.concat(rows), y_true, y_pred, file)


def score_metrics(evaluation: Evaluation) -> dict[str, float]:
    """R² and root mean squared error, or accuracy."""
    y_true, y_pred = evaluation.y_true, evaluation.y_pred
    if y_pred.dtype.kind == "f":
        squares = float(mean_squared_error(y_true, y_pred))
        return {"R²": float(r2_score(y_true, y_pred)), "rmse": squares**0.5}
    return {"accuracy": float(accuracy_score(y_true, y_pred))}
