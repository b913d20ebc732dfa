"""The column to predict: regression or classification, and its values."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .columns import CODE_PATTERN, TableColumns, is_mostly_numbers
from .console import CommandError
from .tables import display_name

#: Whole numbers with no more different values than this are taken for classes.
MAX_GUESSED_CLASSES = 20
#: Fewer rows than this tell nothing.
MIN_ROWS = 20
#: Classes with fewer rows are hardly learnt, which is said.
MIN_CLASS_ROWS = 5


def guess_task(y: pd.Series) -> tuple[str, str]:
    """Regression or classification, and why."""
    given = y.dropna()
    if pd.api.types.is_bool_dtype(given):
        return "classification", "the target is true or false"
    text = given.astype(str).str.strip()
    numbers = pd.to_numeric(text, errors="coerce")
    n_different = given.nunique()
    has_text = numbers.isna().any()
    if has_text and not (is_mostly_numbers(text) and n_different > MAX_GUESSED_CLASSES):
        return "classification", "the target is text"
    if text.str.match(CODE_PATTERN).any():
        return "classification", "the target is codes that begin with 0"
    whole_numbers = bool((numbers == numbers.round()).all())
    if n_different == 2 or (whole_numbers and n_different <= MAX_GUESSED_CLASSES):
        return "classification", f"the target has {n_different} different values"
    return "regression", f"the target has {n_different} different numbers"


def check_target(y: pd.Series, target: str, where: str) -> None:
    """Refuse what nothing can be learnt of."""
    given, file = y.dropna(), display_name(where)
    rows = "1 row" if len(given) == 1 else f"{len(given)} rows"
    if len(given) < MIN_ROWS:
        raise CommandError(
            f"{file} has {rows} with a value of {target!r}; {MIN_ROWS} are needed to "
            "learn from, and to say how well."
        )
    if given.astype(str).nunique() < 2:
        raise CommandError(
            f"{file}: all rows have the same {target!r}, {given.iloc[0]}; there is "
            "nothing to learn."
        )


def target_values(y: pd.Series, task: str, target: str, where: str) -> np.ndarray:
    """Numbers, or labels."""
    if task == "regression":
        advice = "Mend it, leave it empty, or learn classes: --task classification."
        values = TableColumns(numbers=[target]).values(y.to_frame(), where, advice)
        return values[target].to_numpy()
    values = as_labels(y)
    names, counts = np.unique(values, return_counts=True)
    n_classes = len(names)
    if n_classes > MAX_GUESSED_CLASSES and 2 * n_classes > len(values):
        raise CommandError(
            f"{display_name(where)}: column {target!r} has {n_classes} different "
            "values in "
            f"{len(values)} rows, such as {str(values[0])[:30]!r}, which are no "
            "classes. "
            "Choose another target; to learn a number, write digits and a point alone."
        )
    if np.sum(counts > 1) < 2:
        raise CommandError(
            f"{display_name(where)}: column {target!r} has {n_classes} classes in "
            f"{len(values)} rows, and {'only 1' if counts.max() > 1 else 'none'} with "
            "two rows or more; at least 2 such classes are needed to learn from. Add "
            "rows, or put rare classes together."
        )
    return values


def as_labels(y: pd.Series) -> np.ndarray:
    """Classes: whole numbers where all are such, else text, as a CSV file has it."""
    text = y.astype(str).str.strip()
    numbers = pd.to_numeric(text, errors="coerce")
    whole = numbers.notna().all() and (numbers == numbers.round()).all()
    if whole and not text.str.match(CODE_PATTERN).any() and numbers.abs().max() < 2**53:
        return numbers.astype(np.int64).to_numpy()
    return text.to_numpy(dtype=object).astype(str)


def as_known_labels(
    y: pd.Series, classes: np.ndarray, target: str, where: str
) -> np.ndarray:
    """Labels as a model with these classes knows them; some must be among them."""
    found = as_labels(y) if classes.dtype.kind == "i" else y.astype(str).str.strip()
    text = np.asarray(found).astype(str)
    if not np.isin(text, classes.astype(str)).any():
        raise CommandError(
            f"{display_name(where)}: no value of {target!r}, such as "
            f"{str(text[0])!r}, is a "
            f"class of the model ({', '.join(map(repr, classes[:5].tolist()))}"
            f"{', …' if len(classes) > 5 else ''}); write them alike."
        )
    return text


def rare_classes(y: np.ndarray) -> dict[str, int]:
    """Classes of few rows."""
    names, counts = np.unique(y, return_counts=True)
    few = counts < MIN_CLASS_ROWS
    return dict(zip(map(str, names[few]), counts[few].tolist(), strict=True))
