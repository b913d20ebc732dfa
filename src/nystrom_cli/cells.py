"""Cells of a column as numbers, days or text; what is none is told with its place."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from .failures import CommandError
from .places import place
from .tables import DECIMAL_COMMA

#: Values that are not numbers, as a share, up to which they are taken for mistakes.
FEW = 0.02
#: The largest number: squares of larger ones have no place in float64.
LARGEST = 1e150
#: What to do about a value that is no number.
MEND = "Mend it, or leave it empty."


def is_mostly_numbers(text: pd.Series) -> bool:
    """Whether what is no number among given values is so rare that it is a mistake."""
    wrong = pd.to_numeric(text, errors="coerce").isna()
    return bool(wrong.mean() <= FEW and (~wrong).sum() > 1)


def is_time_span(column: pd.Series) -> bool:
    """Whether a column of Parquet has durations."""
    return pd.api.types.is_timedelta64_dtype(column)


def numbers_of(column: pd.Series, where: str, advice: str) -> np.ndarray:
    """Finite numbers, NaN where none is given; durations in days."""
    if is_time_span(column):
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
    if np.nanmax(np.abs(values), initial=0.0) > LARGEST:
        at = int(np.flatnonzero(np.abs(values) > LARGEST)[0])
        raise CommandError(
            f"{_place(where, column, at)}: {column.iloc[at]} is too large, as its "
            f"square overflows; write the column in another unit, up to {LARGEST:g}."
        )
    return values


def days_of(column: pd.Series, where: str, advice: str) -> np.ndarray:
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


def texts_of(column: pd.Series) -> np.ndarray:
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
