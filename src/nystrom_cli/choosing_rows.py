"""Rows that stand for all: landmarks of a table."""

from __future__ import annotations

import numpy as np
import pandas as pd

from nystrom import select_landmarks

from . import tables
from .columns import Columns, check_names
from .places import lines_of
from .writing import check_places, rows_to


def choose_rows(
    path: str,
    number: int,
    gamma: float | None,
    categories: tuple[str, ...],
    ignored: tuple[str, ...],
    output: str,
    seed: int,
    *,
    overwrite: bool,
) -> None:
    """Write the rows chosen, with their line in the file, the most telling first."""
    check_places([output], [path], overwrite=overwrite)
    table = tables.whole(path)
    check_names(table, (*categories, *ignored), path)
    rows = table.drop(columns=list(ignored))
    columns = Columns.of(rows, path, categories=categories)
    Z = columns.encoder().fit_transform(columns.values(rows, path))
    width = "median" if gamma is None else gamma
    found = select_landmarks(
        Z, gamma=width, n_landmarks=min(number, len(Z)), random_state=seed
    )
    indices = np.asarray(found.indices)
    chosen = table.iloc[indices].reset_index(drop=True)
    with rows_to(output) as write:
        write(pd.concat([_places(path, indices, chosen), chosen], axis=1))


def _places(path: str, indices: np.ndarray, chosen: pd.DataFrame) -> pd.Series:
    """Where the rows are in the file: their lines, or their numbers from 1 on."""
    lines = lines_of(path, indices.tolist())
    name = "row" if lines is None else "line"
    name = f"{name}_in_file" if name in chosen else name
    return pd.Series(indices + 1 if lines is None else lines, name=name)
