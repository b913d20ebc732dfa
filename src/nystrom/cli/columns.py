"""What the columns of a table are (numbers, dates, categories, unused), and their
cells as numbers or text.

A model keeps it as the step names of scikit-learn's `ColumnTransformer`, so that new
rows are read as the training rows were.
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

from .console import CommandError, unknown_column_error
from .tables import DECIMAL_COMMA_PATTERN, display_name, format_location

#: Values that are not numbers, as a share, up to which they are taken for mistakes.
MAX_MISTAKE_SHARE = 0.02
#: The largest number: squares of larger ones have no place in float64.
LARGEST = 1e150
#: What to do about a value that is no number.
DEFAULT_ADVICE = "Mend it, or leave it empty."


def is_mostly_numbers(text: pd.Series) -> bool:
    """Whether what is no number among given values is so rare that it is a mistake."""
    wrong = pd.to_numeric(text, errors="coerce").isna()
    return bool(wrong.mean() <= MAX_MISTAKE_SHARE and (~wrong).sum() > 1)


def is_duration(column: pd.Series) -> bool:
    """Whether a column of Parquet has durations."""
    return pd.api.types.is_timedelta64_dtype(column)


def parse_numbers(column: pd.Series, where: str, advice: str) -> np.ndarray:
    """Finite numbers, NaN where none is given; durations in days."""
    if is_duration(column):
        return (column / pd.Timedelta(days=1)).to_numpy(np.float64, na_value=np.nan)
    parsed = pd.to_numeric(column, errors="coerce")
    _check_parsed(column, parsed, where, "number", advice)
    values = parsed.to_numpy(dtype=np.float64, na_value=np.nan)
    if np.isinf(values).any():
        position = int(np.flatnonzero(np.isinf(values))[0])
        raise CommandError(
            f"{_format_cell_location(where, column, position)}: "
            f"{column.iloc[position]} is not a "
            "finite number; mend it, or leave it empty."
        )
    if np.nanmax(np.abs(values), initial=0.0) > LARGEST:
        position = int(np.flatnonzero(np.abs(values) > LARGEST)[0])
        raise CommandError(
            f"{_format_cell_location(where, column, position)}: "
            f"{column.iloc[position]} is too large, as its "
            f"square overflows; write the column in another unit, up to {LARGEST:g}."
        )
    return values


def parse_days(column: pd.Series, where: str, advice: str) -> np.ndarray:
    """Days since 1970; times of the day as parts."""
    if pd.api.types.is_datetime64_any_dtype(column):
        parsed = column
    else:
        text = column.astype(object).where(column.isna(), column.astype(str))
        parsed = pd.to_datetime(text, errors="coerce", format="ISO8601", utc=True)
        _check_parsed(column, parsed, where, "date such as 2026-11-17", advice)
    if getattr(parsed.dtype, "tz", None) is not None:
        parsed = parsed.dt.tz_convert("UTC").dt.tz_localize(None)
    days = (parsed - pd.Timestamp(0)) / pd.Timedelta(days=1)
    return days.to_numpy(dtype=np.float64, na_value=np.nan)


def as_texts(column: pd.Series) -> np.ndarray:
    """Text, with a name for what is missing: it may tell something."""
    text = column.astype(object).where(column.notna(), "(missing)")
    return text.map(lambda value: str(value).strip()).to_numpy(dtype=object)


def _format_cell_location(where: str, column: pd.Series, at: int) -> str:
    return format_location(where, int(column.index[at]), column.name)


def _check_parsed(
    column: pd.Series, parsed: pd.Series, where: str, expected: str, advice: str
) -> None:
    bad_positions = np.flatnonzero(parsed.isna().to_numpy() & column.notna().to_numpy())
    if not len(bad_positions):
        return
    position = int(bad_positions[0])
    value = str(column.iloc[position])
    more = f" (and {len(bad_positions) - 1} more)" if len(bad_positions) > 1 else ""
    if expected == "number" and re.match(DECIMAL_COMMA_PATTERN, value):
        more += f"; its decimal sign is a point: {value.replace(',', '.')}"
    raise CommandError(
        f"{_format_cell_location(where, column, position)}: {value!r} is not a "
        f"{expected}{more}. {advice}"
    )


#: A column of text is a date where its first values look like this: 2026-11-17.
ISO_DATE_PATTERN = r"^\d{4}-\d{1,2}-\d{1,2}([ T].*)?$"
#: Dates that may be read in two ways.
AMBIGUOUS_DATE_PATTERN = r"^\d{1,2}[./-]\d{1,2}[./-]\d{2,4}([ T].*)?$"
#: Digits that are a code, such as a postal one: a number has no 0 before it.
CODE_PATTERN = r"^0\d+$"
#: Text with more different values than this is a name or a note, not a category.
MAX_CATEGORIES = 200
#: Categories that have fewer rows, as a share, are taken together.
MIN_CATEGORY_SHARE = 0.002
COLUMN_KINDS = ("numbers", "dates", "categories")


def check_columns_exist(
    table: pd.DataFrame, names: tuple[str, ...], where: str
) -> None:
    """Refuse columns that the table does not have."""
    for name in names:
        if name not in table.columns:
            raise unknown_column_error(display_name(where), name, table.columns)


@dataclass(frozen=True)
class TableColumns:
    """The columns that a model takes, by what they are, and those left out."""

    numbers: list[str] = field(default_factory=list)
    dates: list[str] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)  # why

    @property
    def used_names(self) -> list[str]:
        """All names, in the order of the parts."""
        return [*self.numbers, *self.dates, *self.categories]

    @classmethod
    def of(
        cls, table: pd.DataFrame, where: str, *, categories: tuple[str, ...] = ()
    ) -> TableColumns:
        """Look at all values of all columns."""
        columns = cls()
        for name in table.columns:
            kind, reason = _column_kind(
                table[name], str(name), where, name in categories
            )
            if kind is None:
                columns.left_out[name] = reason
            else:
                getattr(columns, kind).append(name)
        if not columns.used_names:
            reason = "; ".join(
                f"{name!r}: {reason}" for name, reason in columns.left_out.items()
            )
            raise CommandError(
                f"{display_name(where)} has no column to learn from"
                + (f" ({reason})." if reason else ".")
            )
        return columns

    @classmethod
    def from_model(cls, model: Pipeline) -> TableColumns:
        """As a fitted model has them."""
        encoder = model[0]
        if not isinstance(encoder, ColumnTransformer):
            raise CommandError(
                "This model was not made by `nystrom fit`: it does not say what its "
                "columns are. Use it from Python, by nystrom.load."
            )
        parts = {name: list(columns) for name, _, columns in encoder.transformers_}
        numbers, dates, categories = (parts.get(part, []) for part in COLUMN_KINDS)
        return cls(numbers, dates, categories)

    def make_encoder(self) -> ColumnTransformer:
        """Numbers of mean 0 and deviation 1, missing ones in the middle; categories."""
        numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
        dates = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
        one_hot = OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            min_frequency=MIN_CATEGORY_SHARE,
            sparse_output=False,
        )
        steps = (numbers, dates, one_hot)
        names_by_kind = (self.numbers, self.dates, self.categories)
        return ColumnTransformer(
            [
                (part, step, columns)
                for part, step, columns in zip(
                    COLUMN_KINDS, steps, names_by_kind, strict=True
                )
                if columns
            ]
        )

    def values(
        self,
        table: pd.DataFrame,
        where: str,
        advice: str = DEFAULT_ADVICE,
    ) -> pd.DataFrame:
        """The columns as numbers and text; `advice` is for what is neither."""
        for name in self.used_names:
            if name not in table.columns:
                purpose = ", which the model needs"
                raise unknown_column_error(
                    display_name(where), name, table.columns, purpose
                )
        values: dict[str, Any] = {}
        for name in self.numbers:
            values[name] = parse_numbers(table[name], where, advice)
        for name in self.dates:
            values[name] = parse_days(table[name], where, advice)
        for name in self.categories:
            values[name] = as_texts(table[name])
        return pd.DataFrame(values, index=table.index)


def _column_kind(
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
    if pd.api.types.is_numeric_dtype(column) or is_duration(column):
        return ("numbers", "") if given.nunique() > 1 else (None, "one value only")
    text = given.astype(str).str.strip()
    if text.nunique() == 1:
        return None, "one value only"
    advice = f"Mend it, leave it empty, or take it for a category: --category {name}."
    if not text.str.match(CODE_PATTERN).any() and is_mostly_numbers(text):
        parse_numbers(column, where, advice)  # refuses those that are not
        return "numbers", ""
    if text.str.match(ISO_DATE_PATTERN).mean() > 1 - MAX_MISTAKE_SHARE:
        parse_days(column, where, advice)
        return "dates", ""
    if text.nunique() > max(MAX_CATEGORIES, 0.02 * len(text)) or (
        text.nunique() > 20 and text.nunique() > 0.5 * len(text)
    ):
        return None, _exclusion_reason(text)
    return "categories", ""


def _exclusion_reason(text: pd.Series) -> str:
    """What many different texts are, with one of them."""
    description = f"{text.nunique()} different texts, such as {text.iloc[0][:30]!r}"
    if text.str.match(AMBIGUOUS_DATE_PATTERN).mean() > 1 - MAX_MISTAKE_SHARE:
        return f"{description}; dates are understood where they are written 2026-11-17"
    return description
