"""One self-contained HTML page about a model: no network, no scripts, plots as inline
SVG. `report.html` is its template.
"""

from __future__ import annotations

import io
import platform
import re
import zlib
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

from ..displays import ErrorPathDisplay, LeverageDisplay, SpectrumDisplay
from ..sources.files import file_format
from ..sources.output import atomic_write
from .learning import BASELINES, Evaluation, comparison_warnings, no_better_than
from .tables import TREATMENTS, make_encoder

#: Rows that the plot of leverage scores shows at most.
MAX_PLOTTED_ROWS = 20_000


def write_report(model: Pipeline, evaluation: Evaluation, path: str) -> None:
    """Write the page, complete or not at all."""
    page = Template(Path(__file__).with_name("report.html").read_text("utf-8"))
    text = {name: escape(value) for name, value in _texts(model, evaluation).items()}
    with atomic_write(path) as temporary:
        html = page.substitute(text | _elements(model, evaluation))
        temporary.write_text(html, encoding="utf-8")


def _texts(model: Pipeline, evaluation: Evaluation) -> dict[str, str]:
    """Words and numbers of the page."""
    summary, file = model.nystrom_summary_, evaluation.file
    error = summary["approximation_error"]
    score, value = next(iter(summary["held_out"]["nystrom"].items()))
    low, high = summary["intervals"][score]
    advice = "more landmarks would follow the data more closely"
    if error < 0.05:
        advice = "the rest hardly shows in predictions"
    elif error >= 0.5:
        advice = (
            "the kernel is very narrow: a smaller gamma or more landmarks may be better"
        )
    on_table = ""
    if file is not None:
        metrics = [f"{name} {x:.4g}" for name, x in evaluation.metrics().items()]
        on_table = (
            f"On {len(evaluation.y_true)} rows of {file}: {', '.join(metrics)}; rows "
            "that the model was fitted to would say little about new ones."
        )
    names = [BASELINES[name][0] for name in no_better_than(summary)]
    without = summary["rows_without_target"]
    return {
        "title": f"{summary['task'].capitalize()} of {summary['target']}",
        "score": f"{score[0].upper()}{score[1:]} {value:.4f} ({low:.4f} to {high:.4f})",
        "held_out_rows": str(summary["held_out_rows"]),
        "better": f"no better than {' or '.join(names)}"
        if names
        else "better than a linear model",
        "on_table": on_table,
        "n_rows": f"{summary['rows']} rows"
        + f", and {without} without a target, left out" * (without > 0),
        "kernel": summary["kernel"],
        "gamma": "a learnt matrix"
        if summary["gamma"] == "matrix"
        else f"{summary['gamma']:.4g}",
        "alpha": f"{summary['alpha']:.4g}",
        "effective_dimension": f"{summary['effective_dimension']:.3g}",
        "landmarks": str(summary["landmarks"]),
        "approximation_error": "at most " * model[-1].landmarks_.error.at_most
        + f"{error:.3g}",
        "advice": advice,
        "rows": "rows held out" if file is None else f"rows of {file}",
        "seconds": f"{summary['seconds']:.1f}",
        **_snippet_values(model),
        "versions": f"nystrom {nystrom.__version__}, Python "
        f"{platform.python_version()}",
    }


def _elements(model: Pipeline, evaluation: Evaluation) -> dict[str, str]:
    """Tables and plots of the page."""
    summary, landmarks = model.nystrom_summary_, model[-1].landmarks_
    alpha = summary["alpha"]
    rows = model[:-1].transform(evaluation.rows.iloc[:MAX_PLOTTED_ROWS])
    # Fewer rows have smaller sums: the ridge that they would have had.
    ridge = alpha * len(rows) / summary["rows"]

    def draw_leverage(ax: Any) -> None:
        LeverageDisplay.from_landmarks(landmarks, rows, ridge=ridge, ax=ax)
        # Among few rows scores add up to another number than that of all rows.
        ax.set(title="", xlabel="ridge leverage score")

    path, error_path = landmarks.error_path, ""
    if path is not None:
        svg = _svg(
            lambda ax: ErrorPathDisplay.from_landmarks(landmarks, ax=ax),
            f"Error path: from {path[0]:.2g} with one landmark to {path[-1]:.2g} with "
            f"all {len(landmarks)}.",
        )
        caption = "How the error falls with the number of landmarks."
        error_path = f"<figure>{svg}<figcaption>{caption}</figcaption></figure>"
    return {
        "warnings": "".join(
            f"<p><strong>Warning:</strong> {escape(text)}.</p>"
            for text in comparison_warnings(summary)
        ),
        "comparison": _comparison(summary),
        "predictions": _scatter(evaluation)
        if evaluation.probabilities is None
        else _confusion(evaluation),
        "columns": _columns(summary),
        "error_path": error_path,
        "spectrum": _svg(
            SpectrumDisplay(model.nystrom_eigenvalues_, ridge=alpha).plot,
            "Eigenvalues of the approximation, falling, with alpha as a line.",
        ),
        "leverage": _svg(draw_leverage, "Histogram of ridge leverage scores."),
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
        (name, "{:.3f} ± {:.3f}".format(*importances[name]), TREATMENTS[done[name]])
        for name in names
    ]
    lines += [
        (name, "", f"left out: {why}") for name, why in columns["left_out"].items()
    ]
    table = pd.DataFrame(lines, columns=["column", "importance", "treatment"])
    return _table(table.set_index("column").rename_axis(None), "words")


def _scatter(evaluation: Evaluation) -> str:
    options = {"subsample": 2000, "random_state": 0, "kind": "actual_vs_predicted"}
    small = {"s": 6, "linewidths": 0}
    draw = partial(
        PredictionErrorDisplay.from_predictions,
        evaluation.y_true,
        evaluation.y_pred,
        scatter_kwargs=small,
        **options,
    )
    words = "Scatter of predicted against true values, near the diagonal."
    svg = _svg(lambda ax: draw(ax=ax).ax_.locator_params(nbins=5), words)
    return f"<figure>{svg}<figcaption>Predicted against true.</figcaption></figure>"


def _confusion(evaluation: Evaluation) -> str:
    """The largest classes; a table reads better than a picture of one."""
    y_true = pd.Series(evaluation.y_true.astype(str), name="true")
    counts = y_true.value_counts()[:12]
    shares = pd.crosstab(y_true, evaluation.y_pred.astype(str), normalize="index")
    shares = shares.reindex(counts.index, columns=counts.index, fill_value=0.0)
    shares.index = [f"{name} ({count})" for name, count in counts.items()]
    shares.columns.name = "true \\ predicted"
    text = "<p>Of the rows of each class, the share predicted as each.</p>"
    return text + _table(shares.map("{:.1%}".format))


def _table(table: pd.DataFrame, kind: str = "grid") -> str:
    """A grid of numbers scrolls; words wrap."""
    with pd.option_context("display.max_colwidth", None):  # no words are cut off
        html = table.to_html(border=0, justify="left", classes=kind)
    return f'<div class="scroll">{html}</div>'


def _svg(draw: Callable[[Any], Any], alternative: str) -> str:
    """A plot on axes of its own, with a text alternative."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    plot = Figure(
        figsize=(4.6, 3.4), layout="constrained"
    )  # its text is read on phones
    FigureCanvasSVG(plot)
    draw(plot.subplots())
    text = io.StringIO()
    # No date and no random names: the same model gives the same page.
    with rc_context({"svg.hashsalt": alternative}):
        plot.savefig(text, format="svg", metadata={"Date": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # Plots of one page must not share the names of their parts.
    prefix = f"{zlib.crc32(alternative.encode()):08x}-"
    svg = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{prefix}", svg)
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(alternative)}"', 1)


def _snippet_values(model: Pipeline) -> dict[str, str]:
    """What the code of the page is about: the table, its columns, the estimator."""
    summary, estimator = model.nystrom_summary_, model[-1]
    columns, path, separator = (summary[k] for k in ("columns", "table", "separator"))
    texts = [*columns["categories"], *columns["text"]]
    if summary["task"] == "classification" and estimator.classes_.dtype.kind != "i":
        texts.append(summary["target"])
    read = f"pd.read_parquet({path!r})"
    if path == "-" or file_format(path) == "csv":
        read = (
            f"pd.read_csv({path!r}, sep={separator!r}, decimal="
            f"{'.' if separator == ',' else ','!r}, na_values=['?'], "
            f"dtype={dict.fromkeys(texts, 'str')!r})"
        )
    return {
        "estimator": type(estimator).__name__,
        "columns_by_kind": repr({kind: columns[kind] for kind in TREATMENTS}),
        "encoder": re.sub(r"( ->|:) [\w\[, \]]+(?=[:)])", "", getsource(make_encoder)),
        "read": read,
        "target": repr(summary["target"]),
        "alpha_digits": repr(summary["alpha"]),
        "gamma_digits": repr(summary["gamma"]),
        "n_landmarks": str(estimator.n_landmarks),
        "seed": str(summary["seed"]),
    }
