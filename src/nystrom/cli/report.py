"""One self-contained HTML page about a model: no network, no scripts, plots inside.
`report.html` is its template.
"""

from __future__ import annotations

import io
import platform
from base64 import b64encode
from collections.abc import Callable
from functools import partial
from html import escape
from inspect import getsource
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import PredictionErrorDisplay
from sklearn.pipeline import Pipeline

import nystrom

from ..displays import ErrorPathDisplay
from ..sources.files import file_format
from ..sources.output import atomic_write
from .learning import BASELINES, Evaluation
from .tables import TREATMENTS, make_encoder

#: What a gamma that is learnt is.
LEARNT_GAMMAS = {"ard": "learnt, one per column", "matrix": "learnt, a matrix"}


def write_report(model: Pipeline, held_out: Evaluation, path: str) -> None:
    """Write the page, complete or not at all."""
    page = Template(Path(__file__).with_name("report.html").read_text("utf-8"))
    text = {name: escape(value) for name, value in _texts(model).items()}
    html = page.substitute(text | _elements(model, held_out))
    with atomic_write(path) as temporary:
        temporary.write_text(html, encoding="utf-8")


def _texts(model: Pipeline) -> dict[str, str]:
    """Words and numbers of the page."""
    summary = model.nystrom_summary_
    score, value = next(iter(summary["held_out"]["nystrom"].items()))
    low, high = summary["intervals"][score]
    gamma, without = summary["gamma"], summary["rows_without_target"]
    return {
        "title": f"{summary['task'].capitalize()} of {summary['target']}",
        "score": f"{score[0].upper()}{score[1:]} {value:.4f} ({low:.4f} to {high:.4f})",
        "held_out_rows": str(summary["held_out_rows"]),
        "n_rows": f"{summary['rows']} rows"
        + f"; {without} more without a target were dropped" * (without > 0),
        "kernel": summary["kernel"],
        "gamma": LEARNT_GAMMAS.get(gamma) or f"{gamma:.4g}",
        "penalty": ", ".join(f"{k} = {v:.4g}" for k, v in summary["penalty"].items()),
        "landmarks": str(summary["landmarks"]),
        "approximation_error": "at most " * model[-1].landmarks_.error.at_most
        + f"{summary['approximation_error']:.3g}",
        **_snippet_values(model),
        "versions": f"nystrom {nystrom.__version__}, Python "
        f"{platform.python_version()}",
    }


def _elements(model: Pipeline, held_out: Evaluation) -> dict[str, str]:
    """Tables and plots of the page."""
    summary, landmarks = model.nystrom_summary_, model[-1].landmarks_
    error_path = ""
    if landmarks.error_path is not None:
        error_path = _figure(
            lambda ax: ErrorPathDisplay.from_landmarks(landmarks, ax=ax),
            "Relative trace error against the number of landmarks.",
        )
    return {
        "warnings": "".join(
            f"<p><strong>Warning:</strong> {escape(text)}</p>"
            for text in summary["warnings"]
        ),
        "comparison": _comparison(summary),
        "predictions": _scatter(held_out)
        if held_out.probabilities is None
        else _confusion(held_out),
        "columns": _columns(summary),
        "error_path": error_path,
    }


def _comparison(summary: dict[str, Any]) -> str:
    """Metrics of the model, with intervals, and of the baselines."""
    digits = partial(
        np.format_float_positional, precision=4, fractional=False, trim="-"
    )
    table = pd.DataFrame(summary["held_out"]).T.map(digits)
    interval = {
        name: f"{digits(low)} to {digits(high)}"
        for name, (low, high) in summary["intervals"].items()
    }
    table.loc["95 % interval"] = interval
    table = table.loc[["nystrom", "95 % interval", *BASELINES]]
    descriptions = {name: words for name, (words, _) in BASELINES.items()}
    return _table(table.rename({"nystrom": "this model", **descriptions}), "words")


def _columns(summary: dict[str, Any]) -> str:
    """What was done to each column, the most important ones first."""
    columns, importances = summary["columns"], summary["importances"]
    done = {name: kind for kind in TREATMENTS for name in columns[kind]}
    names = sorted(importances, key=lambda name: -importances[name][0])
    lines = [
        (name, "{:z.3f} ± {:.3f}".format(*importances[name]), TREATMENTS[done[name]])
        for name in names
    ]
    lines += [
        (name, "", f"dropped: {why}") for name, why in summary["left_out"].items()
    ]
    table = pd.DataFrame(lines, columns=["column", "importance", "treatment"])
    return _table(table.set_index("column").rename_axis(None), "words")


def _scatter(evaluation: Evaluation) -> str:
    def draw(ax: Any) -> None:
        PredictionErrorDisplay.from_predictions(
            evaluation.y_true,
            evaluation.y_pred,
            kind="actual_vs_predicted",
            subsample=2000,
            random_state=0,
            scatter_kwargs={"s": 6, "linewidths": 0},
            ax=ax,
        )
        ax.locator_params(nbins=5)

    return _figure(draw, "Predicted against true values of held-out rows.")


def _confusion(evaluation: Evaluation) -> str:
    """The largest classes; a table reads better than a picture of one."""
    y_true = pd.Series(evaluation.y_true.astype(str), name="true")
    counts = y_true.value_counts()[:12]
    shares = pd.crosstab(y_true, evaluation.y_pred.astype(str), normalize="index")
    shares = shares.reindex(counts.index, columns=counts.index, fill_value=0.0)
    shares.index = [f"{name} ({count})" for name, count in counts.items()]
    shares.columns.name = "true \\ predicted"
    text = "<p>Each line shows how the rows of one class were predicted.</p>"
    return text + _table(shares.map("{:.1%}".format))


def _table(table: pd.DataFrame, kind: str = "grid") -> str:
    """A grid of numbers scrolls; words wrap."""
    with pd.option_context("display.max_colwidth", None):  # no words are cut off
        html = table.to_html(border=0, justify="left", classes=kind)
    return f'<div class="scroll">{html}</div>'


def _figure(draw: Callable[[Any], Any], caption: str) -> str:
    """A plot on axes of its own."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    plot = Figure(figsize=(4.6, 3.4), layout="constrained")  # readable on phones
    draw(plot.subplots())
    file = io.BytesIO()
    # No date and no random names: the same model gives the same page.
    with rc_context({"svg.hashsalt": "nystrom"}):
        plot.savefig(file, format="svg", metadata={"Date": None})
    data = b64encode(file.getvalue()).decode()
    image = f'<img alt="{escape(caption)}" src="data:image/svg+xml;base64,{data}">'
    return f"<figure>{image}<figcaption>{escape(caption)}</figcaption></figure>"


def _snippet_values(model: Pipeline) -> dict[str, str]:
    """What the code of the page is about: the table, its columns, the estimator."""
    summary, estimator = model.nystrom_summary_, model[-1]
    columns, path, separator = (summary[k] for k in ("columns", "table", "separator"))
    texts = [*columns["categories"], *columns["text"]]
    if summary["task"] == "classification" and estimator.classes_.dtype.kind != "i":
        texts.append(summary["target"])
    kind = "csv" if path == "-" else file_format(path)
    read = f"pd.read_{'feather' if kind == 'ipc' else 'parquet'}({path!r})"
    if kind == "csv":
        read = (
            f"pd.read_csv({path!r}, sep={separator!r}, decimal="
            f"{'.' if separator == ',' else ','!r}, na_values=['?'], "
            f"skipinitialspace=True, dtype={dict.fromkeys(texts, 'str')!r})"
            ".rename(columns=str.strip)"
        )
    return {
        "estimator": type(estimator).__name__,
        "columns_by_kind": repr(columns),
        "texts": repr(texts),
        "encoder": getsource(make_encoder),
        "read": read,
        "target": repr(summary["target"]),
        "penalties": f"C={estimator.C!r}, " if "C" in summary["penalty"] else "",
        "gamma_digits": repr(summary["gamma"]),
        "n_landmarks": str(estimator.n_landmarks),
        "seed": str(summary["seed"]),
    }
