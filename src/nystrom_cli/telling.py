"""What is said while a command runs, on standard error, and what came of it."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.table import Table


class Teller:
    """Says what happens; nothing where it is to be quiet."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self.live = not quiet and sys.stderr.isatty()

    def __call__(self, text: str) -> None:
        if not self.quiet:
            Console(stderr=True, highlight=False).print(text, markup=False)

    def summary(self, found: dict[str, Any]) -> None:
        """What was learnt, as a table on standard output."""
        if self.quiet:
            return
        table = Table(show_header=False, box=None, pad_edge=False)
        table.add_column(style="bold", no_wrap=True)
        table.add_column(overflow="fold")
        for name, value in _lines(found):
            table.add_row(name, value)
        Console(highlight=False).print(table, markup=False)


def _lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    columns = found["columns"]
    ours, linear, constant = (
        found["held_out"][name] for name in ("nystrom", "linear", "constant")
    )
    error = found["approximation_error"]
    lines = [
        ("task", f"{found['task']} of {found['target']}"),
        ("rows", _rows(found)),
        *[
            (part, _listed(columns[part]))
            for part in ("numbers", "dates", "categories")
            if columns[part]
        ],
        ("landmarks", f"{found['landmarks']}, {found['kernel']}"),
        (
            "ridge",
            f"alpha = {found['alpha']:.3g}, which leaves an effective dimension of "
            f"{found['effective_dimension']:.3g}",
        ),
        ("error", f"{error:.3g} of tr K is not covered by the landmarks"),
        (
            f"{found['score']}",
            f"{ours:.4f} on {found['held_out_rows']} rows held out "
            f"(linear {linear:.4f}, constant {constant:.4f})" + _no_better(found),
        ),
        ("seconds", f"{sum(found['seconds'].values()):.1f}"),
    ]
    after = next(i for i, line in enumerate(lines) if line[0] == "landmarks")
    if columns["left_out"]:
        lines.insert(after, ("left out", _listed(list(columns["left_out"]))))
    if found.get("classes"):
        lines.insert(1, ("classes", _listed(found["classes"])))
    if "model" in found:
        lines.append(("model", found["model"]))
    return lines


def _no_better(found: dict[str, Any]) -> str:
    names = found["no_better_than"]
    return f": no better than {' or '.join(names)}" if names else ""


def _rows(found: dict[str, Any]) -> str:
    without = found["rows_without_target"]
    more = f", and {without} without a value of {found['target']}" if without else ""
    return f"{found['rows']}{more}"


def _listed(names: list[str], most: int = 12) -> str:
    """How many, and the first of them."""
    more = ", …" if len(names) > most else ""
    return f"{len(names)}: {', '.join(names[:most])}{more}"
