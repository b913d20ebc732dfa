"""What the columns of a table are: numbers, dates, categories, or nothing to use.

A model keeps it as the names of the parts of scikit-learn's `ColumnTransformer`, so
that new rows are read as the training rows were.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from .failures import CommandError

#: A column of text is a date where its first values look like this: 2026-11-17.
DATE = r"^\d{4}-\d{1,2}-\d{1,2}([ T].*)?$"
#: Values that are not numbers, as a share, up to which they are taken for mistakes.
FEW = 0.02
#: Text with more different values than this is a name or a note, not a category.
MOST_CATEGORIES = 200
#: Categories that have fewer rows, as a share, are taken together.
RARE = 0.002
PARTS = ("numbers", "dates", "categories")


@dataclass(frozen=True)
class Columns:
    """The columns that a model takes, by what they are, and those left out."""

    numbers: list[str] = field(default_factory=list)
    dates: list[str] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)  # why

    @property
    def used(self) -> list[str]:
        """All names, in the order of the parts."""
        return [*self.numbers, *self.dates, *self.categories]

    @classmethod
    def of(
        cls, table: pd.DataFrame, where: str, *, categories: tuple[str, ...] = ()
    ) -> Columns:
        """Look at all values of all columns."""
        found = cls()
        for name in table.columns:
            kind, why = _kind(table[name], str(name), where, name in categories)
            if kind is None:
                found.left_out[name] = why
            else:
                getattr(found, kind).append(name)
        if not found.used:
            raise CommandError(f"{where} has no column to learn from.")
        return found

    @classmethod
    def of_model(cls, model: Pipeline) -> Columns:
        """As a fitted model has them."""
        encoder = model[0]
        if not isinstance(encoder, ColumnTransformer):
            raise CommandError(
                "This model was not made by `nystrom fit`: it does not say what its "
                "columns are. Use it from Python, by nystrom.load."
            )
        parts = {name: list(columns) for name, _, columns in encoder.transformers_}
        numbers, dates, categories = (parts.get(part, []) for part in PARTS)
        return cls(numbers, dates, categories)

    def encoder(self) -> ColumnTransformer:
        """Numbers of mean 0 and deviation 1, missing ones in the middle; categories."""
        numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
        dates = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
        one_of = OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            min_frequency=RARE,
            sparse_output=False,
        )
        steps = (numbers, dates, one_of)
        listed = (self.numbers, self.dates, self.categories)
        return ColumnTransformer(
            [
                (part, step, columns)
                for part, step, columns in zip(PARTS, steps, listed, strict=True)
                if columns
            ]
        )

    def values(self, table: pd.DataFrame, where: str) -> pd.DataFrame:
        """The columns as numbers and text."""
        missing = [name for name in self.used if name not in table.columns]
        if missing:
            raise CommandError(
                f"{where} has no column {missing[0]!r}, which the model needs; it has "
                f"{', '.join(map(repr, table.columns[:10]))}."
            )
        found: dict[str, Any] = {}
        for name in self.numbers:
            found[name] = _numbers(table[name], name, where)
        for name in self.dates:
            found[name] = _days(table[name], name, where)
        for name in self.categories:
            found[name] = _texts(table[name])
        return pd.DataFrame(found, index=table.index)


def _kind(
    column: pd.Series, name: str, where: str, category: bool
) -> tuple[str | None, str]:
    given = column.dropna()
    if not len(given):
        return None, "no values"
    if category:
        return "categories", ""
    if pd.api.types.is_datetime64_any_dtype(column):
        return "dates", ""
    if pd.api.types.is_bool_dtype(given):
        return "categories", ""
    if pd.api.types.is_numeric_dtype(column):
        return ("numbers", "") if given.nunique() > 1 else (None, "one value only")
    text = given.astype(str).str.strip()
    if text.nunique() == 1:
        return None, "one value only"
    wrong = pd.to_numeric(text, errors="coerce").isna()
    if wrong.mean() <= FEW and (~wrong).sum() > 1:
        _numbers(column, name, where)  # refuses those that are not
        return "numbers", ""
    if text.str.match(DATE).mean() > 1 - FEW:
        _days(column, name, where)
        return "dates", ""
    if text.nunique() > max(MOST_CATEGORIES, 0.02 * len(text)) or (
        text.nunique() > 20 and text.nunique() > 0.5 * len(text)
    ):
        return None, f"{text.nunique()} different texts"
    return "categories", ""


def _numbers(column: pd.Series, name: str, where: str) -> np.ndarray:
    found = pd.to_numeric(column, errors="coerce")
    _refuse_wrong(column, found, name, where, "number")
    values = found.to_numpy(dtype=np.float64, na_value=np.nan)
    if np.isinf(values).any():
        at = int(np.flatnonzero(np.isinf(values))[0])
        raise CommandError(
            f"{place(where, column, at)}: {column.iloc[at]} is not a "
            "finite number; mend it, or leave it empty."
        )
    return values


def _days(column: pd.Series, name: str, where: str) -> np.ndarray:
    """Days since 1970; times of the day as parts."""
    if pd.api.types.is_datetime64_any_dtype(column):
        found = column
    else:
        found = pd.to_datetime(column, errors="coerce", format="ISO8601", utc=True)
        _refuse_wrong(column, found, name, where, "date such as 2026-11-17")
    if getattr(found.dtype, "tz", None) is not None:
        found = found.dt.tz_convert("UTC").dt.tz_localize(None)
    days = (found - pd.Timestamp(0)) / pd.Timedelta(days=1)
    return days.to_numpy(dtype=np.float64, na_value=np.nan)


def _texts(column: pd.Series) -> np.ndarray:
    """Text, with a name for what is missing: it may tell something."""
    text = column.astype(object).where(column.notna(), "(missing)")
    return text.map(lambda value: str(value).strip()).to_numpy(dtype=object)


def place(where: str, column: pd.Series, at: int) -> str:
    """Where a value is: tables count their rows from 0, after a line of names."""
    row = int(column.index[at])
    parquet = where.endswith((".parquet", ".pq"))
    in_file = f"row {row + 1}" if parquet else f"line {row + 2}"
    return f"{where}, {in_file}, column {column.name!r}"


def _refuse_wrong(
    column: pd.Series, found: pd.Series, name: str, where: str, what: str
) -> None:
    wrong = np.flatnonzero(found.isna().to_numpy() & column.notna().to_numpy())
    if len(wrong):
        at = int(wrong[0])
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise CommandError(
            f"{place(where, column, at)}: {column.iloc[at]!r} is not a "
            f"{what}, as the other values are{more}. Mend it, leave it empty, or take "
            f"the column for a category: --category {name}."
        )
