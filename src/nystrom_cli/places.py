"""Where a value is in a file: a row may take several lines, and lines be empty."""

from __future__ import annotations

import csv
from itertools import islice
from typing import Any

from .kinds import kind_of, shown
from .plain_text import check_encoding, opened, separator_in

#: Lines without anything on them that are skipped while lines are counted.
MOST_BLANK_LINES = 10**6


def place(path: str, row: int, column: Any) -> str:
    """Where a value is: rows count from 0, after a line of names."""
    lines = lines_of(path, [row])
    in_file = f"row {row + 1}" if lines is None else f"line {lines[0]}"
    return f"{shown(path)}, {in_file}, column {column!r}"


def lines_of(path: str, rows: list[int]) -> list[int] | None:
    """The lines that rows begin at, as values may go over several; None if unknown."""
    if path == "-" or kind_of(path) == "parquet":
        return None
    with opened(path) as text:
        reader = csv.reader(text, delimiter=separator_in(path), skipinitialspace=True)
        begins, last = [], 0
        try:
            for cells in islice(reader, max(rows) + 2 + MOST_BLANK_LINES):
                if cells:
                    begins.append(last + 1)
                last = reader.line_num
                if len(begins) > max(rows) + 1:
                    return [begins[row + 1] for row in rows]
        except csv.Error:
            pass
    return None


def not_a_table(path: str, separator: str, error: Exception) -> str:
    """The line that has too many values, found by reading again."""
    told = str(error).removeprefix("Error tokenizing data. C error: ").strip()
    if path != "-":
        check_encoding(path)
        with opened(path) as text:
            reader = csv.reader(text, delimiter=separator, skipinitialspace=True)
            last, width = 0, None
            try:
                for cells in reader:
                    width = len(cells) if width is None and cells else width
                    if width is not None and len(cells) > width:
                        return (
                            f"{path}, line {last + 1} has {len(cells)} values, and "
                            f"the first line {width} names. Where a value has the "
                            f'separator {separator!r} in it, put it into quotes: "…".'
                        )
                    last = reader.line_num
            except csv.Error:
                pass
    return f"{shown(path)} is not a table: {told}"
