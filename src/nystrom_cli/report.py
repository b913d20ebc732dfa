"""One HTML page about a model: no network, no scripts, pictures as SVG in the page."""

from __future__ import annotations

import platform
from html import escape
from typing import Any

import numpy as np

import nystrom
from nystrom.displays import ErrorPathDisplay, LeverageDisplay, SpectrumDisplay
from nystrom.sinks import replacing

from .learning import Learnt, no_better
from .page import CSS, figure, page, section, table
from .predicting import measures

#: Rows that the pictures of scores and spectrum are made of at most.
MOST_ROWS = 20_000


def write_report(found: Learnt, path: str) -> None:
    """Write the page, complete or not at all."""
    text = report(found)
    with replacing(path) as beside:
        beside.write_text(text, encoding="utf-8")


def report(found: Learnt) -> str:
    """The page as text."""
    about = found.model.nystrom_summary_
    title = f"{about['task'].capitalize()} of {about['target']}"
    parts = [
        section("In short", _in_short(found, about)),
        section("Predictions", _predictions(found)),
        section("Data", _data(about)),
        section("Model", _model(about)),
        section("The approximation", _approximation(found, about)),
        section("Time", table(_seconds(about), head=("stage", "seconds"))),
        section("To do it again", _again(about)),
    ]
    return page(title, CSS, parts)


def _in_short(found: Learnt, about: dict[str, Any]) -> str:
    ours, linear, constant = (
        about["held_out"][name] for name in ("nystrom", "linear", "constant")
    )
    better = "no better than" if "linear" in about["no_better_than"] else "better than"
    name = about["score"]
    said = (
        f"{name[0].upper()}{name[1:]} {ours:.4f} on {about['held_out_rows']} rows held "
        f"out of the fit: {better} a linear model ({linear:.4f}); a constant would "
        f"have {constant:.4f}."
    )
    if found.of_table is not None:
        here = next(iter(measures(found.truth, found.predicted).values()))
        said += (
            f" On {len(found.truth)} rows of {found.of_table} it is {here:.4f}; rows "
            "that the model was fitted to would say little about new ones."
        )
    warning = no_better(about)
    note = f"<p><strong>Warning:</strong> {escape(warning)}.</p>" if warning else ""
    return f"<p>{escape(said)}</p>{note}"


def _rows_shown(found: Learnt) -> str:
    """Which rows the pictures are of."""
    return "rows held out" if found.of_table is None else f"rows of {found.of_table}"


def _data(about: dict[str, Any]) -> str:
    columns = about["columns"]
    rows = [("rows", str(about["rows"]))]
    if about["rows_without_target"]:
        rows.append(("rows without a target", str(about["rows_without_target"])))
    for part in ("numbers", "dates", "categories"):
        if columns[part]:
            rows.append((part, ", ".join(columns[part])))
    for name, why in columns["left_out"].items():
        rows.append((f"left out: {name}", why))
    return table(rows)


def _model(about: dict[str, Any]) -> str:
    return table(
        [
            ("kernel", about["kernel"]),
            ("width, gamma", f"{about['gamma']:.4g}"),
            ("ridge, alpha", f"{about['alpha']:.4g}"),
            ("effective dimension", f"{about['effective_dimension']:.3g}"),
            ("landmarks", str(about["landmarks"])),
        ]
    )


def _approximation(found: Learnt, about: dict[str, Any]) -> str:
    landmarks, error = found.estimator.landmarks_, about["approximation_error"]
    said = (
        f"{about['landmarks']} rows stand for all. Of the kernel matrix's trace they "
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
    rows = found.model[:-1].transform(found.held_out.iloc[:MOST_ROWS])
    pictures = []
    if landmarks.error_path is not None:
        pictures.append(
            figure(
                lambda ax: ErrorPathDisplay.from_landmarks(landmarks, ax=ax),
                "How the error falls with the number of landmarks.",
                f"Error path: from {landmarks.error_path[0]:.2g} with one landmark to "
                f"{landmarks.error_path[-1]:.2g} with all {len(landmarks)}.",
            )
        )
    pictures.append(_spectrum(found, about))
    # Fewer rows have smaller sums: the ridge that they would have had.
    ridge = about["alpha"] * len(rows) / about["rows"]
    pictures.append(_leverage(landmarks, rows, ridge, _rows_shown(found)))
    return f"<p>{escape(said)}</p>" + "".join(pictures)


def _spectrum(found: Learnt, about: dict[str, Any]) -> str:
    def draw(ax: Any) -> None:
        values = found.model.nystrom_eigenvalues_
        SpectrumDisplay(values, ridge=about["alpha"]).plot(ax)

    return figure(
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

    return figure(
        draw,
        f"Ridge leverage scores of {which}, among each other; one of score 1 is like "
        "no other.",
        "Histogram of ridge leverage scores.",
    )


def _predictions(found: Learnt) -> str:
    if found.task == "regression":
        return _against_truth(found.truth, found.predicted, _rows_shown(found))
    return _confusion(found.truth, found.predicted)


def _against_truth(truth: np.ndarray, predicted: np.ndarray, which: str) -> str:
    some = np.linspace(0, len(truth) - 1, min(len(truth), 2000)).astype(int)

    def draw(ax: Any) -> None:
        ends = [min(truth.min(), predicted.min()), max(truth.max(), predicted.max())]
        ax.plot(ends, ends, ":", color="0.5")
        ax.scatter(truth[some], predicted[some], s=6, linewidths=0)
        ax.set(xlabel="true", ylabel="predicted")
        ax.locator_params(nbins=5)

    off = float(np.sqrt(np.mean((truth - predicted) ** 2)))
    told = np.format_float_positional(off, 4, fractional=False, trim="-")
    return figure(
        draw,
        f"Predicted against true values of {which}; root mean squared error {told}.",
        "Scatter of predicted against true values, near the diagonal where they agree.",
    )


def _confusion(truth: np.ndarray, predicted: np.ndarray) -> str:
    """The largest classes; a table reads better than a picture of one."""
    names, counts = np.unique(truth, return_counts=True)
    names = names[np.argsort(-counts)][:12]
    rows = []
    for true in names:
        own = predicted[truth == true]
        shares = [f"{np.mean(own == name):.1%}" for name in names]
        rows.append((f"{true} ({len(own)})", *shares))
    head = ("true \\ predicted", *(str(name) for name in names))
    return "<p>Of the rows of each class, the share predicted as each.</p>" + table(
        rows, head=head
    )


def _seconds(about: dict[str, Any]) -> list[tuple[str, str]]:
    return [(name, f"{value:.2f}") for name, value in about["seconds"].items()]


def _again(about: dict[str, Any]) -> str:
    regression = about["task"] == "regression"
    name = "KernelRidge" if regression else "KernelRidgeClassifier"
    code = (
        f"{name}(alpha={about['alpha']:.6g}, kernel='rbf', gamma={about['gamma']:.6g}, "
        f"n_landmarks={about['landmarks']}, fit_intercept=True)"
    )
    made_by = f"nystrom {nystrom.__version__}, Python {platform.python_version()}"
    return f"<pre><code>{escape(code)}</code></pre><p>{escape(made_by)}</p>"
