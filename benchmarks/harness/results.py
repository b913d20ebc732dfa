"""The CSV file of a run: a row per case, appended as it is found."""

from __future__ import annotations

import csv
from pathlib import Path

from .config import Case, Problem

KEY = ["experiment", *Problem._fields, "threads", "s", "seed", "method"]
FOUND = [
    "n",  # rows that there were
    "d",
    "origin",  # where the rows came from
    "gamma",
    "fit_seconds",  # choosing landmarks and the s × s factor, or fitting the model
    "transform_seconds",
    "learn_seconds",
    "peak_mb",  # above what was in memory before, the result included
    "evaluations",  # of the kernel
    "rank",  # columns of the features
    "spectral_error",
    "trace_error",
    "norm",  # ‖K‖₂ and tr K, which make the errors relative
    "trace",
    "error_rows",  # the errors are on so many of the rows
    "test_error",  # % wrong, or root mean squared error
]
VERSIONS = ["nystrom", "numpy", "scipy", "scikit-learn", "python", "cores"]
FIELDS = [*KEY, *FOUND, *VERSIONS]


def key(row: dict[str, str]) -> Case:
    """The case that a row is of."""
    problem = Problem(row["data"], int(row["rows"]), row["dtype"], row["width"])
    numbers = (int(row[name]) for name in ("threads", "s", "seed"))
    return Case(row["experiment"], problem, *numbers, row["method"])


def read(path: Path) -> list[dict[str, str]]:
    """The rows so far; half a line, of a run killed while writing, is cut off."""
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        path.write_bytes(whole)
    rows = list(csv.DictReader(whole.decode().splitlines()))
    if rows and list(rows[0]) != FIELDS:
        raise ValueError(
            f"{path.name} has other columns than this harness writes; move it away."
        )
    return rows


def append(path: Path, case: Case, found: dict) -> None:
    """Add the row of a case."""
    values = [case.experiment, *case.problem, *case[2:]]
    row = dict(zip(KEY, values, strict=True)) | found
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if file.tell() == 0:
            writer.writeheader()
        writer.writerow({name: _short(value) for name, value in row.items()})


def _short(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value
