"""One self-contained HTML page about a model: no network, no scripts, plots as inline
SVG.
"""

from __future__ import annotations

import io
import platform
import re
import zlib
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import numpy as np

import nystrom

from ..displays import ErrorPathDisplay, LeverageDisplay, SpectrumDisplay
from ..sources.output_files import atomic_write
from .learning import TrainingResult, no_better
from .predicting import score_metrics

CSS = """
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
"""


def html_page(title: str, css: str, parts: Sequence[str]) -> str:
    """A whole page."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title>'
        f"<style>{css}</style></head><body><main><h1>{escape(title)}</h1>"
        f"{''.join(parts)}</main></body></html>"
    )


def html_section(title: str, body: str) -> str:
    """A heading and what is below it."""
    return f"<section><h2>{escape(title)}</h2>{body}</section>"


def html_table(rows: Sequence[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Rows whose first cell names them."""
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in rest)
        + "</tr>"
        for first, *rest in rows
    )
    top = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    top = f"<thead><tr>{top}</tr></thead>" if head else ""
    kind = ' class="grid"' if head else ""  # it scrolls; words of a list wrap
    return f'<div class="scroll"><table{kind}>{top}<tbody>{body}</tbody></table></div>'


def html_figure(draw: Callable[[Any], Any], caption: str, alternative: str) -> str:
    """A picture, drawn on axes of its own, with words for those who do not see it."""
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
    # Pictures of one page must not share the names of their parts.
    prefix = f"{zlib.crc32(alternative.encode()):08x}-"
    svg = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{prefix}", svg)
    labelled_tag = f'<svg role="img" aria-label="{escape(alternative)}"'
    svg = svg.replace("<svg", labelled_tag, 1)
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


#: Rows that the pictures of scores and spectrum are made of at most.
MAX_PLOTTED_ROWS = 20_000


def write_report(result: TrainingResult, path: str) -> None:
    """Write the page, complete or not at all."""
    text = render_report(result)
    with atomic_write(path) as beside:
        beside.write_text(text, encoding="utf-8")


def render_report(result: TrainingResult) -> str:
    """The page as text."""
    summary = result.model.nystrom_summary_
    title = f"{summary['task'].capitalize()} of {summary['target']}"
    parts = [
        html_section("In short", _summary_text(result, summary)),
        html_section("Predictions", _predictions(result)),
        html_section("Data", _data(summary)),
        html_section("Model", _model(summary)),
        html_section("The approximation", _approximation(result, summary)),
        html_section("Time", html_table(_seconds(summary), head=("stage", "seconds"))),
        html_section("To do it again", _reproduction_code(summary)),
    ]
    return html_page(title, CSS, parts)


def _summary_text(result: TrainingResult, summary: dict[str, Any]) -> str:
    ours, linear, constant = (
        summary["held_out"][name] for name in ("nystrom", "linear", "constant")
    )
    better = (
        "no better than" if "linear" in summary["no_better_than"] else "better than"
    )
    name = summary["score"]
    text = (
        f"{name[0].upper()}{name[1:]} {ours:.4f} on {summary['held_out_rows']} rows "
        "held "
        f"out of the fit: {better} a linear model ({linear:.4f}); a constant would "
        f"have {constant:.4f}."
    )
    if result.table_name is not None:
        score = next(iter(score_metrics(result.y_true, result.y_pred).values()))
        text += (
            f" On {len(result.y_true)} rows of {result.table_name} it is "
            f"{score:.4f}; rows "
            "that the model was fitted to would say little about new ones."
        )
    warning = no_better(summary)
    note = f"<p><strong>Warning:</strong> {escape(warning)}.</p>" if warning else ""
    return f"<p>{escape(text)}</p>{note}"


def _rows_description(result: TrainingResult) -> str:
    """Which rows the pictures are of."""
    return (
        "rows held out" if result.table_name is None else f"rows of {result.table_name}"
    )


def _data(summary: dict[str, Any]) -> str:
    columns = summary["columns"]
    rows = [("rows", str(summary["rows"]))]
    if summary["rows_without_target"]:
        rows.append(("rows without a target", str(summary["rows_without_target"])))
    for part in ("numbers", "dates", "categories"):
        if columns[part]:
            rows.append((part, ", ".join(columns[part])))
    for name, why in columns["left_out"].items():
        rows.append((f"left out: {name}", why))
    return html_table(rows)


def _model(summary: dict[str, Any]) -> str:
    return html_table(
        [
            ("kernel", summary["kernel"]),
            ("width, gamma", f"{summary['gamma']:.4g}"),
            ("ridge, alpha", f"{summary['alpha']:.4g}"),
            ("effective dimension", f"{summary['effective_dimension']:.3g}"),
            ("landmarks", str(summary["landmarks"])),
        ]
    )


def _approximation(result: TrainingResult, summary: dict[str, Any]) -> str:
    landmarks, error = result.estimator.landmarks_, summary["approximation_error"]
    text = (
        f"{summary['landmarks']} rows stand for all. Of the kernel matrix's trace they "
        f"leave {'at most ' * landmarks.error.at_most}{error:.3g} uncovered; "
        + (
            "what is left hardly shows in predictions."
            if error < 0.05
            else "more landmarks would follow the data more closely."
            if error < 0.5
            else "the kernel is so narrow that each row is nearly its own: a smaller "
            "gamma or more landmarks may do better."
        )
    )
    rows = result.model[:-1].transform(result.X_held_out.iloc[:MAX_PLOTTED_ROWS])
    pictures = []
    if landmarks.error_path is not None:
        pictures.append(
            html_figure(
                lambda ax: ErrorPathDisplay.from_landmarks(landmarks, ax=ax),
                "How the error falls with the number of landmarks.",
                f"Error path: from {landmarks.error_path[0]:.2g} with one landmark to "
                f"{landmarks.error_path[-1]:.2g} with all {len(landmarks)}.",
            )
        )
    pictures.append(_spectrum(result, summary))
    # Fewer rows have smaller sums: the ridge that they would have had.
    ridge = summary["alpha"] * len(rows) / summary["rows"]
    pictures.append(_leverage(landmarks, rows, ridge, _rows_description(result)))
    return f"<p>{escape(text)}</p>" + "".join(pictures)


def _spectrum(found: TrainingResult, about: dict[str, Any]) -> str:
    def draw(ax: Any) -> None:
        values = found.model.nystrom_eigenvalues_
        SpectrumDisplay(values, ridge=about["alpha"]).plot(ax)

    return html_figure(
        draw,
        "The eigenvalues σ of the approximated kernel matrix of all rows, with λ = "
        f"alpha. The effective dimension, {about['effective_dimension']:.3g}, is the "
        "sum of σ/(σ + alpha): of the directions that the landmarks span, those with "
        "σ far above alpha count as 1 and those far below as 0. It is how many "
        f"parameters the ridge leaves to the model; near {about['landmarks']}, the "
        "number of landmarks, more of them may help.",
        "Eigenvalues of the approximation, falling, with alpha as a line.",
    )


def _leverage(landmarks: Any, rows: np.ndarray, ridge: float, which: str) -> str:
    def draw(ax: Any) -> None:
        LeverageDisplay.from_landmarks(landmarks, rows, ridge=ridge, ax=ax)
        # Among few rows scores add up to another number than that of all rows.
        ax.set(title="", xlabel="ridge leverage score")

    return html_figure(
        draw,
        f"Ridge leverage scores of {which}, among each other; one of score 1 is like "
        "no other.",
        "Histogram of ridge leverage scores.",
    )


def _predictions(result: TrainingResult) -> str:
    if result.task == "regression":
        return _prediction_scatter(
            result.y_true, result.y_pred, _rows_description(result)
        )
    return _confusion_table(result.y_true, result.y_pred)


def _prediction_scatter(truth: np.ndarray, predicted: np.ndarray, which: str) -> str:
    indices = np.linspace(0, len(truth) - 1, min(len(truth), 2000)).astype(int)

    def draw(ax: Any) -> None:
        ends = [min(truth.min(), predicted.min()), max(truth.max(), predicted.max())]
        ax.plot(ends, ends, ":", color="0.5")
        ax.scatter(truth[indices], predicted[indices], s=6, linewidths=0)
        ax.set(xlabel="true", ylabel="predicted")
        ax.locator_params(nbins=5)

    rmse = float(np.sqrt(np.mean((truth - predicted) ** 2)))
    rmse_text = np.format_float_positional(rmse, 4, fractional=False, trim="-")
    return html_figure(
        draw,
        f"Predicted against true values of {which}; root mean squared error "
        f"{rmse_text}.",
        "Scatter of predicted against true values, near the diagonal where they agree.",
    )


def _confusion_table(truth: np.ndarray, predicted: np.ndarray) -> str:
    """The largest classes; a table reads better than a picture of one."""
    names, counts = np.unique(truth, return_counts=True)
    names = names[np.argsort(-counts)][:12]
    rows = []
    for true in names:
        predicted_labels = predicted[truth == true]
        shares = [f"{np.mean(predicted_labels == name):.1%}" for name in names]
        rows.append((f"{true} ({len(predicted_labels)})", *shares))
    head = ("true \\ predicted", *(str(name) for name in names))
    return (
        "<p>Of the rows of each class, the share predicted as each.</p>"
        + html_table(rows, head=head)
    )


def _seconds(summary: dict[str, Any]) -> list[tuple[str, str]]:
    return [(name, f"{value:.2f}") for name, value in summary["seconds"].items()]


def _reproduction_code(summary: dict[str, Any]) -> str:
    regression = summary["task"] == "regression"
    name = "KernelRidge" if regression else "KernelRidgeClassifier"
    code = (
        f"{name}(alpha={summary['alpha']:.6g}, kernel='rbf', "
        f"gamma={summary['gamma']:.6g}, "
        f"n_landmarks={summary['landmarks']}, fit_intercept=True)"
    )
    versions = f"nystrom {nystrom.__version__}, Python {platform.python_version()}"
    return f"<pre><code>{escape(code)}</code></pre><p>{escape(versions)}</p>"
