"""Which rows are tested together: what `cv` stands for."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import LeaveOneOut, check_cv

from ..methods.ridge.cross_validation import Split
from ..randomness import Purpose, uniforms
from ..sources import Source


def splits_for(cv: Any, y: Any, seed: int, names: str) -> list[Split] | str:
    """(train, test) row numbers, or the name of a score that needs none.

    `y` has one entry per row: targets, or numbers of classes, which are then spread
    over the folds. `names` are the words that are allowed, as an error says them.
    """
    n = len(y)
    if isinstance(cv, str):
        if cv not in names:
            raise ValueError(
                f"cv={cv!r} is not allowed; use {names}, a number of folds, a "
                "scikit-learn splitter, or (train, test) row numbers."
            )
        return cv
    if isinstance(cv, LeaveOneOut):
        return "loo"
    if isinstance(cv, (int, np.integer)):
        if isinstance(cv, bool) or not 2 <= cv <= n:
            raise ValueError(
                f"cv={cv!r} folds cannot be cut from n_samples={n}; use 2 to "
                f"n_samples folds, or cv={names.split(', ')[0]}."
            )
        whole = getattr(y, "dtype", None) == np.intp
        return random_folds(n, int(cv), seed, y if whole else None)
    try:
        given = list(check_cv(cv).split(np.zeros((n, 1)), y[:n]))
        if not given:
            raise ValueError("there is no split")
        return [(_row_numbers(a, n), _row_numbers(b, n)) for a, b in given]
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(
            f"cv={cv!r} does not split {n} rows: {error}. Give a scikit-learn "
            "splitter, or pairs of row numbers (train, test), none of them empty."
        ) from error


def _row_numbers(rows: Any, n_rows: int) -> np.ndarray:
    """Row numbers from row numbers or a mask; negative ones count from the end."""
    rows = np.asarray(rows)
    if rows.dtype.kind not in "iub":
        raise ValueError(f"{rows.dtype} values are no row numbers")
    rows = np.arange(n_rows)[rows]
    if not len(rows):
        raise ValueError("a part is empty")
    return rows


def random_folds(
    n_rows: int, n_folds: int, seed: int, classes: np.ndarray | None = None
) -> list[Split]:
    """Folds of equal size, which rows being decided by numbers addressed by row.

    With classes each has its share in every fold, but for one row.
    """
    u = uniforms(seed, Purpose.FOLD, 0, n_rows)
    order = (
        np.argsort(u, kind="stable") if classes is None else np.lexsort((u, classes))
    )
    fold = np.empty(n_rows, dtype=np.int64)
    # Class after class: what one leaves of a round, the next goes on with.
    fold[order] = np.arange(n_rows) % n_folds
    return [
        (np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(n_folds)
    ]


def check_weights(source: Source, splits: list[Split]) -> None:
    """Every part has rows that count."""
    w = source.weights
    if source.is_weighted and any(
        not w[rows].any() for split in splits for rows in split
    ):
        raise ValueError(
            "A split has only rows of weight 0 to train or to test on; use fewer "
            "folds, or drop such rows."
        )
