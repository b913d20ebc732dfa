"""What the columns of a table are: numbers, dates, categories, or nothing to use.

A model keeps it as the names of the parts of scikit-learn's `ColumnTransformer`, so
that new rows are read as the training rows were.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from .failures import CommandError, no_column
from .kinds import shown
from .places import place
from .tables import DECIMAL_COMMA

#: A column of text is a date where its first values look like this: 2026-11-17.
DATE = r"^\d{4}-\d{1,2}-\d{1,2}([ T].*)?$"
#: Dates that may be read in two ways.
OTHER_DATE = r"^\d{1,2}[./-]\d{1,2}[./-]\d{2,4}([ T].*)?$"
#: Digits that are a code, such as a postal one: a number has no 0 before it.
CODE = r"^0\d+$"
#: Values that are not numbers, as a share, up to which they are taken for mistakes.
FEW = 0.02
#: Text with more different values than this is a name or a note, not a category.
MOST_CATEGORIES = 200
#: Categories that have fewer rows, as a share, are taken together.
RARE = 0.002
#: What to do about a value that is no number.
MEND = "Mend it, or leave it empty."
PARTS = ("numbers", "dates", "categories")


def check_names(table: pd.DataFrame, names: tuple[str, ...], where: str) -> None:
    """Refuse columns that the table does not have."""
    for name in names:
        if name not in table.columns:
            raise no_column(shown(where), name, table.columns)


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
            why = "; ".join(f"{name!r}: {why}" for name, why in found.left_out.items())
            raise CommandError(
                f"{shown(where)} has no column to learn from"
                + (f" ({why})." if why else ".")
            )
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

    def values(
        self,
        table: pd.DataFrame,
        where: str,
        advice: str = MEND,
    ) -> pd.DataFrame:
        """The columns as numbers and text; `advice` is for what is neither."""
        for name in self.used:
            if name not in table.columns:
                wanted = ", which the model needs"
                raise no_column(shown(where), name, table.columns, wanted)
        found: dict[str, Any] = {}
        for name in self.numbers:
            found[name] = _numbers(table[name], where, advice)
        for name in self.dates:
            found[name] = _days(table[name], where, advice)
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
    if pd.api.types.is_numeric_dtype(column) or _is_time_span(column):
        return ("numbers", "") if given.nunique() > 1 else (None, "one value only")
    text = given.astype(str).str.strip()
    if text.nunique() == 1:
        return None, "one value only"
    advice = f"Mend it, leave it empty, or take it for a category: --category {name}."
    if not text.str.match(CODE).any() and is_mostly_numbers(text):
        _numbers(column, where, advice)  # refuses those that are not
        return "numbers", ""
    if text.str.match(DATE).mean() > 1 - FEW:
        _days(column, where, advice)
        return "dates", ""
    if text.nunique() > max(MOST_CATEGORIES, 0.02 * len(text)) or (
        text.nunique() > 20 and text.nunique() > 0.5 * len(text)
    ):
        return None, _why_not(text)
    return "categories", ""


def is_mostly_numbers(text: pd.Series) -> bool:
    """Whether what is no number among given values is so rare that it is a mistake."""
    wrong = pd.to_numeric(text, errors="coerce").isna()
    return bool(wrong.mean() <= FEW and (~wrong).sum() > 1)


def _why_not(text: pd.Series) -> str:
    """What many different texts are, with one of them."""
    such = f"{text.nunique()} different texts, such as {text.iloc[0][:30]!r}"
    if text.str.match(OTHER_DATE).mean() > 1 - FEW:
        return f"{such}; dates are understood where they are written 2026-11-17"
    return such


def _is_time_span(column: pd.Series) -> bool:
    return pd.api.types.is_timedelta64_dtype(column)


def _numbers(column: pd.Series, where: str, advice: str) -> np.ndarray:
    if _is_time_span(column):
        return (column / pd.Timedelta(days=1)).to_numpy(np.float64, na_value=np.nan)
    found = pd.to_numeric(column, errors="coerce")
    _refuse_wrong(column, found, where, "number", advice)
    values = found.to_numpy(dtype=np.float64, na_value=np.nan)
    if np.isinf(values).any():
        at = int(np.flatnonzero(np.isinf(values))[0])
        raise CommandError(
            f"{_place(where, column, at)}: {column.iloc[at]} is not a "
            "finite number; mend it, or leave it empty."
        )
    return values


def _days(column: pd.Series, where: str, advice: str) -> np.ndarray:
    """Days since 1970; times of the day as parts."""
    if pd.api.types.is_datetime64_any_dtype(column):
        found = column
    else:
        text = column.astype(object).where(column.isna(), column.astype(str))
        found = pd.to_datetime(text, errors="coerce", format="ISO8601", utc=True)
        _refuse_wrong(column, found, where, "date such as 2026-11-17", advice)
    if getattr(found.dtype, "tz", None) is not None:
        found = found.dt.tz_convert("UTC").dt.tz_localize(None)
    days = (found - pd.Timestamp(0)) / pd.Timedelta(days=1)
    return days.to_numpy(dtype=np.float64, na_value=np.nan)


def _texts(column: pd.Series) -> np.ndarray:
    """Text, with a name for what is missing: it may tell something."""
    text = column.astype(object).where(column.notna(), "(missing)")
    return text.map(lambda value: str(value).strip()).to_numpy(dtype=object)


def _place(where: str, column: pd.Series, at: int) -> str:
    return place(where, int(column.index[at]), column.name)


def _refuse_wrong(
    column: pd.Series, found: pd.Series, where: str, what: str, advice: str
) -> None:
    wrong = np.flatnonzero(found.isna().to_numpy() & column.notna().to_numpy())
    if not len(wrong):
        return
    at = int(wrong[0])
    value = str(column.iloc[at])
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    if what == "number" and re.match(DECIMAL_COMMA, value):
        more += f"; its decimal sign is a point: {value.replace(',', '.')}"
    raise CommandError(
        f"{_place(where, column, at)}: {value!r} is not a {what}{more}. {advice}"
    )
