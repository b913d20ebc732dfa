"""One self-contained HTML page about a model: no network, no scripts, plots as inline
SVG.
"""

from __future__ import annotations

import io
import platform
import re
import zlib
from collections.abc import Callable
from html import escape
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

PAGE = Template("""\
<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><title>$title</title>
<style>
:root { color-scheme: light dark; --line: #8886; --back: #fff; --ink: #1a1a1a }
@media (prefers-color-scheme: dark) { :root { --back: #16181c; --ink: #e8e8e8 } }
* { box-sizing: border-box }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back);
       max-width: 60rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2rem }
.scroll { overflow-x: auto }
table { border-collapse: collapse }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; vertical-align: top;
         border-bottom: 1px solid var(--line) }
.grid th, .grid td { white-space: nowrap }
pre { padding: .6rem; border: 1px solid var(--line); white-space: pre-wrap }
figure { margin: 1rem 0 }
figure svg { width: 100%; max-width: 36rem; height: auto; background: #fff }
figcaption { font-size: .9rem }
@media print { body { max-width: none } figure, tr { break-inside: avoid }
  h2 { break-after: avoid } figure svg { max-width: 26rem } }
</style></head><body><main><h1>$title</h1>
<section><h2>In short</h2><p>$summary</p>$warning</section>
<section><h2>Predictions</h2>$predictions</section>
<section><h2>Data</h2>$data</section>
<section><h2>Model</h2>$model</section>
<section><h2>The approximation</h2><p>$approximation</p>$figures</section>
<section><h2>Time</h2>$seconds</section>
<section><h2>To do it again</h2><pre><code>$code</code></pre><p>$versions</p></section>
</main></body></html>
""")
#: Rows that the plots of scores and spectrum show at most.
MAX_PLOTTED_ROWS = 20_000


def write_report(model: Pipeline, evaluation: Evaluation, path: str) -> None:
    """Write the page, complete or not at all."""
    text = render_report(model, evaluation)
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def render_report(model: Pipeline, evaluation: Evaluation) -> str:
    """The page as text."""
    summary = model.nystrom_summary_
    columns = summary["columns"]
    file = evaluation.file
    which = "rows held out" if file is None else f"rows of {file}"
    warning = no_better_warning(summary)
    is_regression = summary["task"] == "regression"
    predictions = (
        _scatter(evaluation, which) if is_regression else _confusion(evaluation)
    )
    data = {
        "rows": str(summary["rows"]),
        "rows without a target": str(summary["rows_without_target"] or ""),
        **{
            kind: ", ".join(columns[kind])
            for kind in ("numbers", "dates", "categories")
        },
        **{f"left out: {name}": why for name, why in columns["left_out"].items()},
    }
    parameters = {
        "kernel": summary["kernel"],
        "width, gamma": f"{summary['gamma']:.4g}",
        "ridge, alpha": f"{summary['alpha']:.4g}",
        "effective dimension": f"{summary['effective_dimension']:.3g}",
        "landmarks": str(summary["landmarks"]),
    }
    code = (
        f"{'KernelRidge' if is_regression else 'KernelRidgeClassifier'}("
        f"alpha={summary['alpha']:.6g}, kernel='rbf', gamma={summary['gamma']:.6g}, "
        f"n_landmarks={summary['landmarks']}, fit_intercept=True)"
    )
    versions = f"nystrom {nystrom.__version__}, Python {platform.python_version()}"
    return PAGE.substitute(
        title=escape(f"{summary['task'].capitalize()} of {summary['target']}"),
        summary=escape(_summary_text(summary, evaluation)),
        warning=warning and f"<p><strong>Warning:</strong> {escape(warning)}.</p>",
        predictions=predictions,
        data=_table({name: text for name, text in data.items() if text}),
        model=_table(parameters),
        approximation=escape(_approximation_text(model)),
        figures=_approximation_figures(model, evaluation, which),
        seconds=_table({k: f"{v:.2f} s" for k, v in summary["seconds"].items()}),
        code=escape(code),
        versions=escape(versions),
    )


def _summary_text(summary: dict[str, Any], evaluation: Evaluation) -> str:
    scores, name = summary["held_out"], summary["score"]
    better = (
        "no better than" if "linear" in summary["no_better_than"] else "better than"
    )
    text = (
        f"{name[0].upper()}{name[1:]} {scores['nystrom']:.4f} on "
        f"{summary['held_out_rows']} rows held out of the fit: {better} a linear model "
        f"({scores['linear']:.4f}); a constant would have {scores['constant']:.4f}."
    )
    if evaluation.file is not None:
        score = next(iter(score_metrics(evaluation).values()))
        text += (
            f" On {len(evaluation.y_true)} rows of {evaluation.file} it is "
            f"{score:.4f}; rows that the model was fitted to would say little about "
            "new ones."
        )
    return text


def _approximation_text(model: Pipeline) -> str:
    landmarks = model[-1].landmarks_
    error = model.nystrom_summary_["approximation_error"]
    advice = "more landmarks would follow the data more closely"
    if error < 0.05:
        advice = "the rest hardly shows in predictions"
    elif error >= 0.5:
        advice = (
            "the kernel is so narrow that each row is nearly its own: a smaller gamma "
            "or more landmarks may do better"
        )
    return (
        f"{len(landmarks)} rows stand for all. Of the kernel matrix's trace they leave "
        f"{'at most ' * landmarks.error.at_most}{error:.3g} uncovered; {advice}."
    )


def _approximation_figures(model: Pipeline, evaluation: Evaluation, which: str) -> str:
    """Error path, spectrum and leverage scores."""
    summary, landmarks = model.nystrom_summary_, model[-1].landmarks_
    alpha, path = summary["alpha"], landmarks.error_path
    rows = model[:-1].transform(evaluation.rows.iloc[:MAX_PLOTTED_ROWS])
    # Fewer rows have smaller sums: the ridge that they would have had.
    ridge = alpha * len(rows) / summary["rows"]

    def draw_leverage(ax: Any) -> None:
        LeverageDisplay.from_landmarks(landmarks, rows, ridge=ridge, ax=ax)
        # Among few rows scores add up to another number than that of all rows.
        ax.set(title="", xlabel="ridge leverage score")

    figures = [
        _figure(
            SpectrumDisplay(model.nystrom_eigenvalues_, ridge=alpha).plot,
            "The eigenvalues σ of the approximated kernel matrix of all rows, with λ = "
            f"alpha. The effective dimension, {summary['effective_dimension']:.3g}, is "
            "the sum of σ/(σ + alpha): of the directions that the landmarks span, "
            "those with σ far above alpha count as 1 and those far below as 0. It is "
            "how many parameters the ridge leaves to the model; near "
            f"{len(landmarks)}, the number of landmarks, more of them may help.",
            "Eigenvalues of the approximation, falling, with alpha as a line.",
        ),
        _figure(
            draw_leverage,
            f"Ridge leverage scores of {which}, among each other; one of score 1 is "
            "like no other.",
            "Histogram of ridge leverage scores.",
        ),
    ]
    if path is not None:
        error_path = _figure(
            lambda ax: ErrorPathDisplay.from_landmarks(landmarks, ax=ax),
            "How the error falls with the number of landmarks.",
            f"Error path: from {path[0]:.2g} with one landmark to {path[-1]:.2g} with "
            f"all {len(landmarks)}.",
        )
        figures.insert(0, error_path)
    return "".join(figures)


def _scatter(evaluation: Evaluation, which: str) -> str:
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
    return _figure(
        draw,
        f"Predicted against true values of {which}; root mean squared error "
        f"{rmse_text}.",
        "Scatter of predicted against true values, near the diagonal where they agree.",
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


def _figure(draw: Callable[[Any], Any], caption: str, alternative: str) -> str:
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
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{escape(alternative)}"', 1)
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"
