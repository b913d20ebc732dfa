"""Rows that stand for all: landmarks of a table."""

from __future__ import annotations

import numpy as np
import pandas as pd

from nystrom import select_landmarks

from . import tables
from .columns import Columns
from .failures import CommandError


def choose_rows(
    path: str,
    number: int,
    gamma: float | None,
    categories: tuple[str, ...],
    ignored: tuple[str, ...],
    output: str,
    seed: int,
) -> None:
    """Write the rows chosen, with their line in the file, the most telling first."""
    table = tables.whole(path)
    for name in (*categories, *ignored):
        if name not in table.columns:
            raise CommandError(f"{path} has no column {name!r}.")
    rows = table.drop(columns=list(ignored))
    columns = Columns.of(rows, path, categories=categories)
    Z = columns.encoder().fit_transform(columns.values(rows, path))
    width = "median" if gamma is None else gamma
    found = select_landmarks(
        Z, gamma=width, n_landmarks=min(number, len(Z)), random_state=seed
    )
    indices = np.asarray(found.indices)
    chosen = table.iloc[indices].reset_index(drop=True)
    lines = pd.Series(indices + 2, name="line")
    with tables.Writer(output) as writer:
        writer.write(pd.concat([lines, chosen], axis=1))
