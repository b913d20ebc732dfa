"""What the columns of a table are: numbers, dates, categories, or nothing to use.

A model keeps it as the names of the parts of scikit-learn's `ColumnTransformer`, so
that new rows are read as the training rows were.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from .cells import (
    FEW,
    MEND,
    days_of,
    is_mostly_numbers,
    is_time_span,
    numbers_of,
    texts_of,
)
from .failures import CommandError, no_column
from .kinds import shown

#: A column of text is a date where its first values look like this: 2026-11-17.
DATE = r"^\d{4}-\d{1,2}-\d{1,2}([ T].*)?$"
#: Dates that may be read in two ways.
OTHER_DATE = r"^\d{1,2}[./-]\d{1,2}[./-]\d{2,4}([ T].*)?$"
#: Digits that are a code, such as a postal one: a number has no 0 before it.
CODE = r"^0\d+$"
#: Text with more different values than this is a name or a note, not a category.
MOST_CATEGORIES = 200
#: Categories that have fewer rows, as a share, are taken together.
RARE = 0.002
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
            found[name] = numbers_of(table[name], where, advice)
        for name in self.dates:
            found[name] = days_of(table[name], where, advice)
        for name in self.categories:
            found[name] = texts_of(table[name])
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
    if pd.api.types.is_numeric_dtype(column) or is_time_span(column):
        return ("numbers", "") if given.nunique() > 1 else (None, "one value only")
    text = given.astype(str).str.strip()
    if text.nunique() == 1:
        return None, "one value only"
    advice = f"Mend it, leave it empty, or take it for a category: --category {name}."
    if not text.str.match(CODE).any() and is_mostly_numbers(text):
        numbers_of(column, where, advice)  # refuses those that are not
        return "numbers", ""
    if text.str.match(DATE).mean() > 1 - FEW:
        days_of(column, where, advice)
        return "dates", ""
    if text.nunique() > max(MOST_CATEGORIES, 0.02 * len(text)) or (
        text.nunique() > 20 and text.nunique() > 0.5 * len(text)
    ):
        return None, _why_not(text)
    return "categories", ""


def _why_not(text: pd.Series) -> str:
    """What many different texts are, with one of them."""
    such = f"{text.nunique()} different texts, such as {text.iloc[0][:30]!r}"
    if text.str.match(OTHER_DATE).mean() > 1 - FEW:
        return f"{such}; dates are understood where they are written 2026-11-17"
    return such
