"""What the columns of a table are (numbers, dates, categories, text, unused), their
cells as numbers or text, and the target.

Columns are a dict of names by kind, which a model keeps in its summary, so that new
rows are read as the training rows were.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from .tables import DECIMAL_COMMA_PATTERN, CommandError, TableFile, check_column

#: The kinds of columns, and what is done to them.
TREATMENTS = {
    "numbers": "standardised; where missing, the median",
    "dates": "days since 1970, standardised; where missing, the median",
    "categories": "an indicator for each value; rare ones together, missing is one",
    "text": "words by TF-IDF, their 10 main components",
}

#: Values that are not numbers, as a share, up to which they are mistakes.
MAX_MISTAKE_SHARE = 0.02
#: The largest number: squares of larger ones overflow in float64.
LARGEST = 1e150
#: A column of text is a date where its values look like this: 2026-11-17.
ISO_DATE_PATTERN = r"^\d{4}-\d{1,2}-\d{1,2}([ T].*)?$"
#: Dates that may be read in two ways.
AMBIGUOUS_DATE_PATTERN = r"^\d{1,2}[./-]\d{1,2}[./-]\d{2,4}([ T].*)?$"
#: Digits that are a code, such as a postal one: a number has no 0 before it.
CODE_PATTERN = r"^0\d+$"
#: Text with more different values than this is a name or a note, not a category.
MAX_CATEGORIES = 200
#: Words that a note has on average; with fewer it is a name or a code.
MIN_WORDS = 4
#: Whole numbers with no more different values than this are classes.
MAX_GUESSED_CLASSES = 20
#: Fewer rows than this are too few to learn from.
MIN_ROWS = 20


def find_columns(
    table: pd.DataFrame, file: TableFile, categories: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The names of columns by their kind, and why others are left out."""
    columns: dict[str, Any] = {kind: [] for kind in TREATMENTS}
    columns["left_out"] = {}
    for name in table.columns:
        kind = _column_kind(table[name], file, name in categories)
        if kind in columns:
            columns[kind].append(name)
        else:
            columns["left_out"][name] = kind
    if len(columns["left_out"]) == table.shape[1]:
        reasons = [f"{name!r}: {why}" for name, why in columns["left_out"].items()]
        raise CommandError(
            f"{file} has no column to learn from ({'; '.join(reasons)})."
        )
    return columns


def _column_kind(column: pd.Series, file: TableFile, is_category: bool) -> str:
    """A kind of TREATMENTS, or why it is left out."""
    given, types = column.dropna(), pd.api.types
    if not len(given):
        return "no values"
    if is_category or types.is_bool_dtype(given):
        return "categories"
    if types.is_datetime64_any_dtype(column):
        return "dates"
    text = given.astype(str).str.strip()
    n_different = text.nunique()
    if n_different == 1:
        return "one value only"
    if types.is_numeric_dtype(column) or types.is_timedelta64_dtype(column):
        return "numbers"
    advice = "Mend it, leave it empty, or take it for a category: --category "
    advice += f"{column.name}."
    if not text.str.match(CODE_PATTERN).any() and _is_mostly_numbers(text):
        parse_numbers(column, file, advice)  # refuses those that are not
        return "numbers"
    if text.str.match(ISO_DATE_PATTERN).mean() > 1 - MAX_MISTAKE_SHARE:
        parse_days(column, file, advice)
        return "dates"
    is_key = n_different > 20 and n_different > 0.5 * len(text)
    if not is_key and n_different <= max(MAX_CATEGORIES, 0.02 * len(text)):
        return "categories"
    if text.str.split().str.len().mean() >= MIN_WORDS:
        return "text"
    reason = f"{n_different} different texts, such as {text.iloc[0][:30]!r}"
    if text.str.match(AMBIGUOUS_DATE_PATTERN).mean() > 1 - MAX_MISTAKE_SHARE:
        reason += "; dates are understood where they are written 2026-11-17"
    return reason


def make_encoder(columns: dict[str, Any]) -> ColumnTransformer:
    """Make numbers of columns that are known by their kind."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    categories = OneHotEncoder(
        handle_unknown="infrequent_if_exist", min_frequency=0.002, sparse_output=False
    )
    words = HashingVectorizer(n_features=1024)
    text = make_pipeline(words, TfidfTransformer(), TruncatedSVD(10, random_state=0))
    steps = [
        ("numbers", numbers, columns["numbers"] + columns["dates"]),
        ("categories", categories, columns["categories"]),
        *[(f"text {name}", text, name) for name in columns["text"]],
    ]
    return ColumnTransformer([step for step in steps if step[2]])


def parse_columns(
    columns: dict[str, Any], table: pd.DataFrame, file: TableFile
) -> pd.DataFrame:
    """The columns as numbers and text, as the encoder takes them."""
    values: dict[str, np.ndarray] = {}
    for kind in TREATMENTS:
        for name in columns[kind]:
            check_column(table, name, file, ", which the model needs")
            if kind == "numbers":
                values[name] = parse_numbers(table[name], file)
            elif kind == "dates":
                values[name] = parse_days(table[name], file)
            else:  # a missing value has a name, as it may be informative
                cells = (
                    table[name].astype(object).where(table[name].notna(), "(missing)")
                )
                values[name] = cells.astype(str).str.strip().to_numpy(dtype=object)
    return pd.DataFrame(values, index=table.index)


def parse_numbers(
    column: pd.Series, file: TableFile, advice: str = "Mend it, or leave it empty."
) -> np.ndarray:
    """Finite numbers, NaN where none is given; durations in days."""
    if pd.api.types.is_timedelta64_dtype(column):
        return (column / pd.Timedelta(days=1)).to_numpy(np.float64, na_value=np.nan)
    numbers = pd.to_numeric(column, errors="coerce")
    values = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    is_text = np.isnan(values) & column.notna().to_numpy()
    _refuse(column, is_text, file, "is not a number", advice)
    _refuse(column, np.isinf(values), file, "is not a finite number", advice)
    too_large = "is too large, as its square overflows"
    unit = f"Write the column in another unit, up to {LARGEST:g}."
    _refuse(column, np.abs(values) > LARGEST, file, too_large, unit)
    return values


def parse_days(
    column: pd.Series, file: TableFile, advice: str = "Mend it, or leave it empty."
) -> np.ndarray:
    """Days since 1970; times of the day as fractions."""
    parsed = column
    if not pd.api.types.is_datetime64_any_dtype(column):
        text = column.astype(object).where(column.isna(), column.astype(str))
        parsed = pd.to_datetime(text, errors="coerce", format="ISO8601", utc=True)
        wrong = (parsed.isna() & column.notna()).to_numpy()
        _refuse(column, wrong, file, "is not a date such as 2026-11-17", advice)
    if getattr(parsed.dtype, "tz", None) is not None:
        parsed = parsed.dt.tz_convert("UTC").dt.tz_localize(None)
    days = (parsed - pd.Timestamp(0)) / pd.Timedelta(days=1)
    return days.to_numpy(dtype=np.float64, na_value=np.nan)


def _refuse(
    column: pd.Series, wrong: np.ndarray, file: TableFile, problem: str, advice: str
) -> None:
    """An error for the first of the wrong cells, if there are any."""
    if not wrong.any():
        return
    first = int(np.argmax(wrong))
    value = str(column.iloc[first])
    more = f" (and {wrong.sum() - 1} more)" if wrong.sum() > 1 else ""
    if problem == "is not a number" and re.match(DECIMAL_COMMA_PATTERN, value):
        more += f"; its decimal sign is a point: {value.replace(',', '.')}"
    raise CommandError(
        f"{file}, {file.unit} {column.index[first]}, column {column.name!r}: "
        f"{value!r} {problem}{more}. {advice}"
    )


def _is_mostly_numbers(text: pd.Series) -> bool:
    """Whether values that are no numbers are so rare that they are mistakes."""
    wrong = pd.to_numeric(text, errors="coerce").isna()
    return bool(wrong.mean() <= MAX_MISTAKE_SHARE and (~wrong).sum() > 1)


# -------------------------------------------------------------------------- the target


def guess_task(y: pd.Series) -> tuple[str, str]:
    """Regression or classification, and why."""
    given = y.dropna()
    if pd.api.types.is_bool_dtype(given):
        return "classification", "the target is true or false"
    text = given.astype(str).str.strip()
    numbers = pd.to_numeric(text, errors="coerce")
    n_different = given.nunique()
    is_few = n_different <= MAX_GUESSED_CLASSES
    if numbers.isna().any() and (is_few or not _is_mostly_numbers(text)):
        return "classification", "the target is text"
    if text.str.match(CODE_PATTERN).any():
        return "classification", "the target is codes that begin with 0"
    if n_different == 2 or (is_few and (numbers == numbers.round()).all()):
        return "classification", f"the target has {n_different} different values"
    return "regression", f"the target has {n_different} different numbers"


def check_target(y: pd.Series, file: TableFile) -> None:
    """Refuse a target with too few values, or with a single one."""
    if len(y) < MIN_ROWS:
        rows = "1 row" if len(y) == 1 else f"{len(y)} rows"
        raise CommandError(
            f"{file} has {rows} with a value of {y.name!r}; {MIN_ROWS} are needed to "
            "learn from, and to say how well."
        )
    if y.astype(str).nunique() < 2:
        raise CommandError(
            f"{file}: all rows have the same {y.name!r}, {y.iloc[0]}; there is nothing "
            "to learn."
        )


def parse_target(y: pd.Series, task: str, file: TableFile) -> np.ndarray:
    """Numbers, or labels."""
    if task == "regression":
        advice = "Mend it, leave it empty, or learn classes: --task classification."
        return parse_numbers(y, file, advice)
    labels = as_labels(y)
    counts = np.unique(labels, return_counts=True)[1]
    n_classes, n_rows = len(counts), len(labels)
    if n_classes > MAX_GUESSED_CLASSES and 2 * n_classes > n_rows:
        raise CommandError(
            f"{file}: column {y.name!r} has {n_classes} different values in {n_rows} "
            f"rows, such as {str(labels[0])[:30]!r}, which are no classes. Choose "
            "another target; to learn a number, write digits and a point alone."
        )
    if np.sum(counts > 1) < 2:
        raise CommandError(
            f"{file}: column {y.name!r} has {n_classes} classes in {n_rows} rows, and "
            f"{'only 1' if counts.max() > 1 else 'none'} with two rows or more; at "
            "least 2 such classes are needed to learn from. Add rows, or merge rare "
            "classes."
        )
    return labels


def as_labels(y: pd.Series) -> np.ndarray:
    """Classes: whole numbers where all are such, else text, as a CSV file has it."""
    text = y.astype(str).str.strip()
    numbers = pd.to_numeric(text, errors="coerce")
    whole = numbers.notna().all() and (numbers == numbers.round()).all()
    if whole and not text.str.match(CODE_PATTERN).any() and numbers.abs().max() < 2**53:
        return numbers.astype(np.int64).to_numpy()
    return text.to_numpy(dtype=object).astype(str)


def as_known_labels(y: pd.Series, classes: np.ndarray, file: TableFile) -> np.ndarray:
    """Labels as the text of a model's classes; some must be among them."""
    found = as_labels(y) if classes.dtype.kind == "i" else y.astype(str).str.strip()
    text = np.asarray(found).astype(str)
    if not np.isin(text, classes.astype(str)).any():
        known = ", ".join(map(repr, classes[:5].tolist())) + ", …" * (len(classes) > 5)
        raise CommandError(
            f"{file}: no value of {y.name!r}, such as {str(text[0])!r}, is a class of "
            f"the model ({known}); write them alike."
        )
    return text
