"""Validation of rows, targets, labels and weights, with hints for common mistakes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight

from .. import _arrays as arrays
from ..sources import (
    ObjectRows,
    Source,
    as_source,
    infer_source,
    is_dask,
)
from ..sources.dask import compute
from ..sources.files import values_in

#: How dates become numbers.
DATES_AS_NUMBERS_HINT = (
    "such as days: (dates - dates.min()) / numpy.timedelta64(1, 'D')"
)


def is_numpy_numbers(given: Any) -> bool:
    """Whether this is NumPy's own array of numbers: what is most often passed."""
    return type(given) is np.ndarray and given.dtype.kind in "iuf"


def check_input_type(given: Any, name: str = "X") -> None:
    """One error for what would else fail far below, or pass for numbers."""
    library, kind = type(given).__module__.partition(".")[0], type(given).__name__
    if library in ("polars", "narwhals") and kind == "LazyFrame":
        raise ValueError(
            f"{name} is a LazyFrame, which has no rows yet; pass {name}.collect()."
        )
    if isinstance(given, Mapping) and not sp.issparse(given):
        raise ValueError(
            f"{name} is a {kind}; pass its columns as a table, "
            f"pandas.DataFrame({name}), or as an array of shape (n_samples, "
            "n_features)."
        )
    if isinstance(given, (Iterator, Set)):
        raise ValueError(
            f"{name} is a {kind}, which has no order or no length; pass list({name}), "
            "or a nystrom.sources.Source for rows that come block by block."
        )
    if isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given):
        raise ValueError(
            f"{name} has masked values, and {np.ma.count_masked(given)} of them; "
            f"impute them, {name}.filled(...), or drop such rows."
        )
    if isinstance(given, np.ndarray) and given.dtype.names:
        raise ValueError(
            f"{name} is an array of records with the fields "
            f"{', '.join(given.dtype.names)}; pass "
            f"numpy.lib.recfunctions.structured_to_unstructured({name}) where all are "
            "numbers."
        )
    _check_no_datetimes(given, name)
    if name == "X" and library in ("pandas", "polars"):
        _check_no_text_columns(given)


def _check_no_datetimes(given: Any, name: str) -> None:
    """Dates and durations: whether they count in days or nanoseconds is no detail."""
    # A Dask series has `columns` too, but the dtype of one.
    if hasattr(given, "columns") and np.iterable(getattr(given, "dtypes", None)):
        for column, dtype in zip(given.columns, given.dtypes, strict=False):
            if _is_datetime(dtype):
                raise ValueError(
                    f"{name} has the column {column!r} of {dtype} values, which are "
                    "not numbers. Leave it out, or make numbers of it, "
                    f"{DATES_AS_NUMBERS_HINT}."
                )
    elif getattr(given, "ndim", 2) <= 2 and _is_datetime(getattr(given, "dtype", None)):
        if name == "X" and getattr(given, "ndim", 1) == 1:
            return  # single things: for a kernel that takes such
        raise ValueError(
            f"{name} holds {given.dtype} values, which are not numbers. Make numbers "
            f"of them, {DATES_AS_NUMBERS_HINT}."
        )


def _is_datetime(dtype: Any) -> bool:
    if hasattr(dtype, "is_temporal"):  # polars
        return bool(dtype.is_temporal())
    return getattr(dtype, "kind", "") in ("m", "M")


def _check_no_text_columns(given: Any) -> None:
    """Name the column that holds text; text that is numbers is accepted."""
    for i, column in enumerate(getattr(given, "columns", ())):
        values = given.iloc[:, i] if hasattr(given, "iloc") else given[:, i]
        is_polars_number = getattr(values.dtype, "is_numeric", bool)()
        if getattr(values.dtype, "kind", "O") != "O" or is_polars_number:
            continue
        for value in np.asarray(values, dtype=object):
            if isinstance(value, str) and not _is_numeric_text(value):
                raise ValueError(
                    f"X holds text where numbers are needed: {value!r} in the column "
                    f"{column!r}. Encode it as numbers, such as by scikit-learn's "
                    "OneHotEncoder in a ColumnTransformer, or leave it out."
                )


def _is_numeric_text(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


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


def open_rows(X: Any, names: Sequence[str] | None = None) -> Any:
    """X, or the source of it where it is not in memory: files, or Dask's.

    `names` are those of the features that are wanted of a path.
    """
    if is_numpy_numbers(X):
        return X
    source = as_source(X) if is_dask(X) else infer_source(X, names)
    check_input_type(source)
    if isinstance(source, str):
        raise ValueError(
            f"X={X!r} is text that names no file; give rows, or the path of a file, "
            "which ends in .csv, .parquet, .npy or another ending that sources.open "
            "knows."
        )
    return source


def load_values(y: Any, name: str = "y") -> Any:
    """Targets or weights on the host: computed, read from a path, or fetched."""
    if y is None or is_numpy_numbers(y):
        return y
    check_input_type(y, name)
    if isinstance(y, (str, os.PathLike)):
        check_file_exists(y, name)
        return values_in(os.path.abspath(y))
    return arrays.tree_to_host(np.asarray(compute(y)) if is_dask(y) else y)


def check_file_exists(y: Any, name: str) -> None:
    """Text in the place of targets or weights is the path of a file."""
    if not os.path.exists(y):
        column = "weight" if name == "sample_weight" else "target"
        raise ValueError(
            f"{name}={os.fspath(y)!r} names no file; give an array with an entry for "
            "each row, or the path of a file that holds one, such as 'y.npy'. A column "
            f"of X's own file is sources.open(X, {column}={os.fspath(y)!r})."
        )


def check_rows(X: Any, name: str = "X") -> Any:
    """X, if it is rows of finite numbers or of objects; else one clear error.

    Rows of a file are checked block by block, when they are read.
    """
    X = open_rows(X)
    if isinstance(X, Source) or has_object_rows(X):
        return X
    return check_numeric_rows(X, name)


def check_numeric_rows(X: Any, name: str = "X", estimator: Any = None) -> Any:
    """An array or CSR matrix of finite numbers in two dimensions."""
    if arrays.is_array(X) and arrays.namespace(X) is not np:
        return _check_array_api_rows(X)
    with explaining(**{name: X}):
        return check_array(
            X,
            accept_sparse="csr",
            dtype="numeric",
            input_name=name,
            estimator=estimator,
        )


def has_object_rows(X: Any) -> bool:
    """Whether X is a sequence of things that are not numbers, nor rows of numbers."""
    is_series = hasattr(X, "to_numpy") and not hasattr(X, "columns")
    if isinstance(X, np.ndarray) or is_series:
        is_object = X.ndim == 1 and np.asarray(X).dtype.kind in "OUST"
    elif isinstance(X, Sequence) and not isinstance(X, (str, bytes)):
        try:
            is_object = len(X) == 0 or isinstance(as_source(X), ObjectRows)
        except ValueError:
            is_object = False
    else:
        return False
    if is_object and len(X) == 0:
        raise ValueError("X is empty; at least one row is needed.")
    return is_object


@contextmanager
def explaining(**given: Any) -> Iterator[None]:
    """scikit-learn's errors for text, NaN and infinity, with place and what to do.

    `given` is what is checked, by its name: X=X, y=y.
    """
    try:
        # scikit-learn looks for what is not finite by a sum, which may overflow.
        with np.errstate(invalid="ignore"):
            yield
    except ValueError as error:
        said = str(error)
        text = ("could not convert string", "arrays of bytes/strings")
        if any(part in said for part in text):
            raise ValueError(
                f"X holds text where numbers are needed: {error}. Encode it as "
                "numbers, or pass a list of objects with a kernel for them, a "
                "callable of two."
            ) from None
        if "contains NaN" in said or "contains infinity" in said:
            # The one that is named; either where none is.
            named = [name for name in given if f"Input {name} " in said] or [*given]
            for name in named:
                found = not_finite(given[name], name)
                if found is not None:
                    raise found from None
        raise


def _check_array_api_rows(X: Any) -> Any:
    X = arrays.detach(X)
    xp = arrays.namespace(X)
    if xp.isdtype(X.dtype, "complex floating"):
        raise ValueError("Complex data not supported: X holds complex numbers.")
    if not arrays.has_float64(X):
        raise ValueError(
            f"X is on the device {arrays.device(X)}, which has no float64; sums over "
            "rows need it. Move X to the CPU, or to a device that has it."
        )
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(
            f"X has shape {tuple(X.shape)}; it must have two dimensions, with at least "
            "one row and one feature."
        )
    if not bool(xp.all(xp.isfinite(X))):
        found = not_finite(arrays.to_host(X), "X")
        raise found or ValueError("X contains NaN or infinity; drop such rows.")
    return X


def check_targets_in_source(X: Any, y: Any, caller: str) -> bool:
    """Whether the targets come with the rows of X; they come once, from somewhere."""
    in_source = isinstance(X, Source) and X.targets is not None
    if in_source and y is not None:
        raise ValueError(
            "y is given, and the source has targets of its own; give one of them."
        )
    if not in_source and y is None and isinstance(X, Source):
        raise ValueError(
            f"{caller} requires y to be passed, but the target y is None, and the "
            "source has none: name its column, sources.open(..., target=...)."
        )
    return in_source


def check_targets(X: Any, y: Any, caller: str) -> tuple[Any, bool]:
    """(n, t) targets of the rows of X, and whether they are one number per row.

    Floats on the host, or what a source has.
    """
    if check_targets_in_source(X, y, caller):
        check_numeric_targets(X.targets, caller)
        return X.targets, getattr(X.targets, "single", False)
    y = check_y_given(load_values(y), caller)
    if sp.issparse(y):
        raise ValueError("y is sparse; targets must be a dense array, y.toarray().")
    values = np.asarray(y, dtype=object) if isinstance(y, list) else np.asarray(y)
    if values.dtype.kind in "OUS":
        try:
            values.astype(np.float64)
        except (TypeError, ValueError) as error:
            # pandas.NA among numbers is a gap, not text.
            raise not_finite(values, "y") or ValueError(
                f"y holds something that is not a number: {str(error).rstrip('.')}. "
                "Encode it as numbers; for classes use KernelRidgeClassifier."
            ) from None
    with explaining(y=y):
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    check_consistent_length(X, y)
    return (y[:, None], True) if y.ndim == 1 else (y, False)


def check_y_given(y: Any, caller: str) -> Any:
    """y, which is not None."""
    if y is None:
        raise ValueError(f"{caller} requires y to be passed, but the target y is None.")
    return y


def check_numeric_targets(targets: Any, caller: str) -> None:
    """Classes of a file are no numbers."""
    names = getattr(targets, "names", None)
    if names is not None and names.dtype.kind != "b":
        raise ValueError(
            f"The target of the source is text (such as {str(names[0])!r}), and "
            f"{caller} takes numbers; for classes use KernelRidgeClassifier, or name "
            "another column."
        )


def check_labels(X: Any, y: Any, caller: str) -> np.ndarray:
    """(n,) classes of the rows of X, or (n, k) where a row may have several."""
    y = check_y_given(load_values(y), caller)
    if sp.issparse(y):
        raise ValueError("y is sparse; classes must be a dense array, y.toarray().")
    _check_no_missing_labels(np.asarray(y))
    with explaining(y=y):
        y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
    check_consistent_length(X, y)
    check_classification_targets(y)
    return column_or_1d(y, warn=True) if y.ndim == 2 and y.shape[1] == 1 else y


def _check_no_missing_labels(y: np.ndarray) -> None:
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


def check_learning_targets(X: Any, y: Any) -> Any:
    """Targets for gamma="learn" of y that may be anything, or of a source.

    Numbers are what is of a floating-point type; anything else stands for classes,
    which become ±1 for each of them.
    """
    if y is None:
        return getattr(X, "targets", None)
    y = np.asarray(load_values(y))
    check_consistent_length(X, y)
    if y.dtype.kind != "f":
        return LabelBinarizer(neg_label=-1).fit_transform(y).astype(np.float64)
    return check_targets(X, y, "gamma='learn'")[0]


def check_consistent_length(X: Any, y: Any, name: str = "y") -> None:
    """Refuse targets that are more or fewer than rows."""
    n_rows, n_targets = count_rows(X), count_rows(y)
    if n_rows != n_targets:
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"[{n_rows}, {n_targets}]. {name} has one entry for each row of X; give as "
            "many, in the same order."
        )


def count_rows(X: Any) -> int:
    """How many rows a source, array or list has."""
    return X.n_rows if isinstance(X, Source) else arrays.count_rows(X)


def check_width(
    given: int | None, expected: int | None, whose: str, name: str = "X"
) -> None:
    """Refuse rows that have more or fewer features than those before."""
    if given != expected:
        raise ValueError(
            f"{name} has {given} features, but {whose} {expected} features."
        )


def check_feature_names_match(given: Any, fitted: list[str] | None) -> None:
    """New rows have the features of the old ones, in their order."""
    if given is None or fitted is None or list(given) == fitted:
        return
    missing = [name for name in fitted if name not in given]
    difference = f"{missing[0]!r} is missing" if missing else "their order is another"
    raise ValueError(
        "The feature names should match those that were passed during fit: "
        f"{difference}. Name the columns, sources.open(path, "
        "columns=list(model.feature_names_in_))."
    )


def check_sample_weight(sample_weight: Any, X: Any) -> np.ndarray | None:
    """The weights of X's rows: none negative, not all 0; None where none are given."""
    if sample_weight is None:
        return None
    if isinstance(X, Source) and X.is_weighted:
        raise ValueError(
            "sample_weight is given, and the source has weights of its own; give one "
            "of them."
        )
    given = load_values(sample_weight, "sample_weight")
    rows = np.empty((count_rows(X), 1))
    try:
        weights = _check_sample_weight(given, rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        if "sample_weight" in str(error) or "Sample weights" in str(error):
            raise
        raise ValueError(
            f"sample_weight holds something that is not a number: {error}. It is one "
            "number per row, or None."
        ) from None
    if np.any(weights < 0) or not np.any(weights > 0):
        raise ValueError(
            "sample_weight must be >= 0 for every row and > 0 for at least one; a row "
            "of weight w counts as w rows."
        )
    return weights


def check_namespace(X: Any, fitted: Any, method: str) -> None:
    """New rows must come in the array library that the estimator was fitted in."""
    if not arrays.is_array_or_csr(X) or not arrays.is_array_or_csr(fitted):
        return
    given, expected = arrays.namespace(X), arrays.namespace(fitted)
    if given is not expected:
        raise ValueError(
            f"Inputs passed to {method} must use the same namespace as those passed to "
            f"fit(): {given.__name__} was given, and {expected.__name__} is expected. "
            "Convert X, or fit again."
        )
