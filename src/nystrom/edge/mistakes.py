"""What is often passed for rows, targets or weights and is none, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any

import numpy as np
import scipy.sparse as sp

#: How dates become numbers.
AS_NUMBERS = "such as days: (dates - dates.min()) / numpy.timedelta64(1, 'D')"


def refuse_mistakes(given: Any, name: str = "X") -> None:
    """One error for what would else fail far below, or pass for numbers."""
    if _is_lazy_frame(given):
        raise ValueError(
            f"{name} is a {type(given).__name__}, which has no rows yet; pass "
            f"{name}.collect()."
        )
    if isinstance(given, Mapping) and not sp.issparse(given):
        raise ValueError(
            f"{name} is a {type(given).__name__}; pass its columns as a table, "
            f"pandas.DataFrame({name}), or as an array of shape (n_samples, "
            "n_features)."
        )
    if isinstance(given, (Iterator, Set)):
        raise ValueError(
            f"{name} is a {type(given).__name__}, which has no order or no length; "
            f"pass list({name}), or a nystrom.sources.Source for rows that are made "
            "block by block."
        )
    if isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given):
        raise ValueError(
            f"{name} has masked values, and {np.ma.count_masked(given)} of them; "
            f"impute them, {name}.filled(...), or drop such rows."
        )
    _refuse_records(given, name)
    _refuse_times(given, name)
    if name == "X" and _library(given) in ("pandas", "polars"):
        _refuse_text_columns(given)


def refuse_missing_labels(y: np.ndarray) -> None:
    """Labels of rows that have none: scikit-learn calls their type unknown."""
    if y.dtype.kind == "f":
        found = not_finite(y, "y")
        if found is not None:
            raise found
    if y.dtype.kind != "O":
        return
    for row, label in enumerate(y.ravel()):
        if label is None or type(label).__name__ == "NAType" or label != label:
            raise ValueError(
                f"y has no label in row {row}, but {label!r}; drop such rows, or give "
                "them a label of their own."
            )


def not_finite(given: Any, name: str) -> ValueError | None:
    """The error for the first NaN or infinity, with its place; None if there is none.

    Called where a check has failed already: it may take time.
    """
    try:
        rows, columns, is_missing = _where_not_finite(given)
    except (TypeError, ValueError):  # no numbers at all: another error tells
        return None
    if not len(rows):
        return None
    missing = is_missing[0]
    kind = "NaN" if missing else "infinity"
    place = f"row {rows[0]}"
    if np.ndim(given) > 1:
        names = list(getattr(given, "columns", range(np.shape(given)[1])))
        place += f", column {names[columns[0]]!r}"
    n_rows = len(np.unique(rows))
    of_others = f" ({n_rows} rows have such values)" if n_rows > 1 else ""
    if name == "X" and missing:
        advice = (
            "Impute it, such as by scikit-learn's SimpleImputer in a pipeline, drop "
            "such rows, or use an estimator that takes NaN, such as "
            "HistGradientBoostingRegressor or HistGradientBoostingClassifier."
        )
    elif name == "X":
        advice = "Replace it by a finite number, or drop such rows."
    else:
        advice = f"Drop such rows of X and {name}; nothing can be learnt from them."
    return ValueError(f"Input {name} contains {kind}: {place}{of_others}. {advice}")


def _where_not_finite(given: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns and whether it is NaN, of entries in the order of rows."""
    if sp.issparse(given):
        entries = given.tocsr().tocoo()  # by rows
        rows, columns, values = entries.row, entries.col, entries.data
        at = np.flatnonzero(~np.isfinite(values))
        return rows[at], columns[at], np.isnan(values[at])
    if hasattr(given, "columns"):
        frame = given.iloc if hasattr(given, "iloc") else given  # pandas, or polars
        each = [_as_floats(frame[:, i]) for i in range(given.shape[1])]
        values = np.column_stack(each)
    else:
        values = _as_floats(given)
    places = np.nonzero(~np.isfinite(values))
    return places[0], places[-1], np.isnan(values[places])


def _as_floats(values: Any) -> np.ndarray:
    """float64, with NaN for None and pandas.NA."""
    values = np.asarray(values)
    if values.dtype.kind == "O":
        gap = [type(v).__name__ in ("NAType", "NoneType") for v in values.ravel()]
        values = np.where(np.reshape(gap, values.shape), np.nan, values)
    return values.astype(np.float64)


def _library(given: Any) -> str:
    return type(given).__module__.partition(".")[0]


def _is_lazy_frame(given: Any) -> bool:
    library = _library(given)
    return library in ("polars", "narwhals") and type(given).__name__ == "LazyFrame"


def _refuse_text_columns(given: Any) -> None:
    """Text in a table is told with its column; text that is numbers is let through."""
    for place, column in enumerate(getattr(given, "columns", ())):
        values = given.iloc[:, place] if hasattr(given, "iloc") else given[:, place]
        if getattr(values.dtype, "kind", "O") != "O" or _is_polars_number(values.dtype):
            continue
        for value in np.asarray(values, dtype=object):
            if isinstance(value, str) and not _is_number(value):
                raise ValueError(
                    f"X holds text where numbers are needed: {value!r} in the column "
                    f"{column!r}. Encode it as numbers, such as by scikit-learn's "
                    "OneHotEncoder in a ColumnTransformer, or leave it out."
                )


def _is_polars_number(dtype: Any) -> bool:
    return hasattr(dtype, "is_numeric") and bool(dtype.is_numeric())


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _refuse_records(given: Any, name: str) -> None:
    fields = getattr(getattr(given, "dtype", None), "names", None)
    if isinstance(given, np.ndarray) and fields:
        raise ValueError(
            f"{name} is an array of records with the fields {', '.join(fields)}; pass "
            f"numpy.lib.recfunctions.structured_to_unstructured({name}) where all are "
            "numbers."
        )


def _refuse_times(given: Any, name: str) -> None:
    """Dates and durations: whether they count in days or nanoseconds is no detail."""
    # A Dask series has `columns` too, but the dtype of one.
    if hasattr(given, "columns") and np.iterable(getattr(given, "dtypes", None)):
        for column, dtype in zip(given.columns, given.dtypes, strict=False):
            if _is_time(dtype):
                raise ValueError(
                    f"{name} has the column {column!r} of {dtype} values, which are "
                    f"not numbers. Leave it out, or make numbers of it, {AS_NUMBERS}."
                )
    elif getattr(given, "ndim", 2) <= 2 and _is_time(getattr(given, "dtype", None)):
        if name == "X" and getattr(given, "ndim", 1) == 1:
            return  # single things: for a kernel that takes such
        raise ValueError(
            f"{name} holds {given.dtype} values, which are not numbers. Make numbers "
            f"of them, {AS_NUMBERS}."
        )


def _is_time(dtype: Any) -> bool:
    if hasattr(dtype, "is_temporal"):  # polars
        return bool(dtype.is_temporal())
    return getattr(dtype, "kind", "") in ("m", "M")
