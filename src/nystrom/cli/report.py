"""One self-contained HTML page about a model: no network, no scripts, plots as inline
SVG. `report.html` is its template.
"""

from __future__ import annotations

import io
import platform
import re
import zlib
from collections.abc import Callable
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import PredictionErrorDisplay
from sklearn.pipeline import Pipeline

import nystrom

from ..displays import ErrorPathDisplay, LeverageDisplay, SpectrumDisplay
from ..sources.output_files import atomic_write
from .learning import Evaluation, no_better_warning
from .predicting import score_metrics

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
    score, error = summary["score"], summary["approximation_error"]
    is_regression = summary["task"] == "regression"
    is_better = "linear" not in summary["no_better_than"]
    advice = "more landmarks would follow the data more closely"
    if error < 0.05:
        advice = "the rest hardly shows in predictions"
    elif error >= 0.5:
        advice = (
            "the kernel is so narrow that each row is nearly its own: a smaller gamma "
            "or more landmarks may do better"
        )
    on_table = ""
    if file is not None:
        on_table = (
            f"On {len(evaluation.y_true)} rows of {file} it is "
            f"{next(iter(score_metrics(evaluation).values())):.4f}; rows that the "
            "model was fitted to would say little about new ones."
        )
    return {
        **{name: f"{value:.4f}" for name, value in summary["held_out"].items()},
        "title": f"{summary['task'].capitalize()} of {summary['target']}",
        "score": f"{score[0].upper()}{score[1:]}",
        "held_out_rows": str(summary["held_out_rows"]),
        "better": "better than" if is_better else "no better than",
        "on_table": on_table,
        "kernel": summary["kernel"],
        "gamma": f"{summary['gamma']:.4g}",
        "alpha": f"{summary['alpha']:.4g}",
        "gamma_digits": f"{summary['gamma']:.6g}",
        "alpha_digits": f"{summary['alpha']:.6g}",
        "effective_dimension": f"{summary['effective_dimension']:.3g}",
        "landmarks": str(summary["landmarks"]),
        "approximation_error": "at most " * model[-1].landmarks_.error.at_most
        + f"{error:.3g}",
        "advice": advice,
        "rows": _rows_name(evaluation),
        "estimator": "KernelRidge" if is_regression else "KernelRidgeClassifier",
        "versions": f"nystrom {nystrom.__version__}, Python "
        f"{platform.python_version()}",
    }


def _elements(model: Pipeline, evaluation: Evaluation) -> dict[str, str]:
    """Tables and plots of the page."""
    summary, landmarks = model.nystrom_summary_, model[-1].landmarks_
    columns, alpha = summary["columns"], summary["alpha"]
    warning = no_better_warning(summary)
    if warning:
        warning = f"<p><strong>Warning:</strong> {escape(warning)}.</p>"
    is_regression = summary["task"] == "regression"
    data = {
        "rows": str(summary["rows"]),
        "rows without a target": str(summary["rows_without_target"] or ""),
        "numbers": ", ".join(columns["numbers"]),
        "dates": ", ".join(columns["dates"]),
        "categories": ", ".join(columns["categories"]),
        **{f"left out: {name}": why for name, why in columns["left_out"].items()},
    }
    seconds = {name: f"{value:.2f} s" for name, value in summary["seconds"].items()}
    rows = model[:-1].transform(evaluation.rows.iloc[:MAX_PLOTTED_ROWS])
    # Fewer rows have smaller sums: the ridge that they would have had.
    ridge = alpha * len(rows) / summary["rows"]

    def draw_leverage(ax: Any) -> None:
        LeverageDisplay.from_landmarks(landmarks, rows, ridge=ridge, ax=ax)
        # Among few rows scores add up to another number than that of all rows.
        ax.set(title="", xlabel="ridge leverage score")

    return {
        "warning": warning,
        "predictions": (_scatter if is_regression else _confusion)(evaluation),
        "data": _table({name: text for name, text in data.items() if text}),
        "seconds": _table(seconds),
        "error_path": _error_path(landmarks),
        "spectrum": _svg(
            SpectrumDisplay(model.nystrom_eigenvalues_, ridge=alpha).plot,
            "Eigenvalues of the approximation, falling, with alpha as a line.",
        ),
        "leverage": _svg(draw_leverage, "Histogram of ridge leverage scores."),
    }


def _rows_name(evaluation: Evaluation) -> str:
    file = evaluation.file
    return "rows held out" if file is None else f"rows of {file}"


def _error_path(landmarks: Any) -> str:
    """A figure, where the error of fewer landmarks is known."""
    path = landmarks.error_path
    if path is None:
        return ""
    svg = _svg(
        lambda ax: ErrorPathDisplay.from_landmarks(landmarks, ax=ax),
        f"Error path: from {path[0]:.2g} with one landmark to {path[-1]:.2g} with all "
        f"{len(landmarks)}.",
    )
    caption = "How the error falls with the number of landmarks."
    return f"<figure>{svg}<figcaption>{caption}</figcaption></figure>"


def _scatter(evaluation: Evaluation) -> str:
    def draw(ax: Any) -> None:
        PredictionErrorDisplay.from_predictions(
            evaluation.y_true,
            evaluation.y_pred,
            kind="actual_vs_predicted",
            subsample=2000,
            random_state=0,
            ax=ax,
            scatter_kwargs={"s": 6, "linewidths": 0},
        )
        ax.locator_params(nbins=5)

    rmse = score_metrics(evaluation)["rmse"]
    rmse_text = np.format_float_positional(rmse, 4, fractional=False, trim="-")
    svg = _svg(
        draw,
        "Scatter of predicted against true values, near the diagonal where they agree.",
    )
    return (
        f"<figure>{svg}<figcaption>Predicted against true values of "
        f"{escape(_rows_name(evaluation))}; root mean squared error {rmse_text}."
        "</figcaption></figure>"
    )


def _confusion(evaluation: Evaluation) -> str:
    """The largest classes; a table reads better than a picture of one."""
    y_true = pd.Series(evaluation.y_true, name="true")
    counts = y_true.value_counts()[:12]
    shares = pd.crosstab(y_true, evaluation.y_pred, normalize="index")
    shares = shares.reindex(counts.index, columns=counts.index, fill_value=0.0)
    shares.index = [f"{name} ({count})" for name, count in counts.items()]
    shares.columns.name = "true \\ predicted"
    text = "<p>Of the rows of each class, the share predicted as each.</p>"
    return text + _table(shares.map("{:.1%}".format))


def _table(table: Any) -> str:
    """A data frame, or a dict as rows of a name and a text."""
    is_grid = isinstance(table, pd.DataFrame)  # it scrolls; words of a list wrap
    frame = pd.DataFrame(table if is_grid else pd.Series(table))
    with pd.option_context("display.max_colwidth", None):  # no words are cut off
        html = frame.to_html(
            border=0, justify="left", classes="grid" * is_grid, header=is_grid
        )
    return f'<div class="scroll">{html}</div>'


def _svg(draw: Callable[[Any], Any], alternative: str) -> str:
    """A plot on axes of its own, with a text alternative."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    plot = Figure(figsize=(5, 3.4), layout="constrained")  # its text is read on phones
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
