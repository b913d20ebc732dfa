"""Validation of rows, targets, labels and weights."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight

from .. import _arrays as arrays
from ..sources import ObjectRows, Source, as_source, infer_source, is_dask
from ..sources.dask import compute
from ..sources.files import is_url, values_in


def is_numpy_numbers(given: Any) -> bool:
    """Whether this is NumPy's own array of numbers: what is most often passed."""
    return type(given) is np.ndarray and given.dtype.kind in "iuf"


def check_input_type(given: Any, name: str = "X") -> None:
    """Refuse what has no rows in an order, or would pass for numbers."""
    kind = type(given).__name__
    is_mapping = isinstance(given, Mapping) and not sp.issparse(given)
    if is_mapping or isinstance(given, (Iterator, Set)) or kind == "LazyFrame":
        raise ValueError(
            f"{name} is a {kind}; pass an array, a data frame (collected), a list, a "
            "path, or a nystrom.sources.Source."
        )
    if isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given):
        raise ValueError(f"{name} has masked values; fill them, or drop such rows.")
    # A Dask series has `columns` too, but the dtype of one.
    dtypes = getattr(given, "dtypes", None) if hasattr(given, "columns") else None
    for dtype in dtypes if np.iterable(dtypes) else [getattr(given, "dtype", None)]:
        is_polars_date = getattr(dtype, "is_temporal", bool)()
        if is_polars_date or getattr(dtype, "kind", "") in ("m", "M", "V"):
            raise ValueError(
                f"{name} holds {dtype} values, which are not numbers; convert them "
                "(dates to days or seconds), or drop them."
            )


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
            f"X={X!r} is text that does not name a file; pass rows, or the path of a "
            "file, such as rows.csv, rows.parquet or rows.npy."
        )
    return source


def load_values(y: Any, name: str = "y") -> Any:
    """Targets or weights on the host: computed, read from a path, or fetched."""
    if y is None or is_numpy_numbers(y):
        return y
    check_input_type(y, name)
    if isinstance(y, (str, os.PathLike)):
        check_file_exists(y, name)
        return values_in(os.fspath(y))
    return arrays.tree_to_host(np.asarray(compute(y)) if is_dask(y) else y)


def check_file_exists(y: Any, name: str) -> None:
    """Text in the place of targets or weights is the path of a file."""
    if not is_url(y) and not os.path.exists(y):
        column = "weight" if name == "sample_weight" else "target"
        raise ValueError(
            f"{name}={os.fspath(y)!r} is not a file; pass an array, the path of a "
            "file, or for a column of X's own file "
            f"sources.open(X, {column}={os.fspath(y)!r})."
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
    with explain_non_numeric(name):
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


#: What errors of scikit-learn and NumPy say of values that are not numbers.
NON_NUMERIC = "could not convert string", "arrays of bytes/strings"


@contextmanager
def explain_non_numeric(name: str) -> Iterator[None]:
    """Errors for values that are not numbers, with the argument that has them."""
    try:
        # scikit-learn looks for what is not finite by a sum, which may overflow.
        with np.errstate(invalid="ignore"):
            yield
    except ValueError as error:
        if not any(words in str(error) for words in NON_NUMERIC):
            raise
        raise ValueError(
            f"{name} holds something that is not a number: {error}. Encode it as "
            "numbers, use a kernel of objects for X, or a classifier for classes in y."
        ) from None


def _check_array_api_rows(X: Any) -> Any:
    X = arrays.detach(X)
    xp = arrays.namespace(X)
    if X.ndim != 2 or 0 in X.shape or xp.isdtype(X.dtype, "complex floating"):
        raise ValueError(
            f"X has shape {tuple(X.shape)} and dtype {X.dtype}; it must have two "
            "dimensions, at least one row and one feature, and real numbers."
        )
    if not arrays.has_float64(X):
        raise ValueError(
            f"X is on the device {arrays.device(X)}, which has no float64; sums over "
            "rows need it. Move X to the CPU, or to a device that has it."
        )
    if not bool(xp.all(xp.isfinite(X))):
        raise ValueError("Input X contains NaN or infinity; impute or drop such rows.")
    return X


def check_targets_in_source(X: Any, y: Any, caller: str) -> bool:
    """Whether the targets come with the rows of X; they come once, from somewhere."""
    in_source = isinstance(X, Source) and X.targets is not None
    if in_source and y is not None:
        raise ValueError(
            "y is given, but the source has its own targets; use one of them."
        )
    if not in_source and y is None:
        raise ValueError(
            f"{caller} requires y to be passed, but the target y is None. Pass it, or "
            "name its column of a file, sources.open(..., target=...)."
        )
    return in_source


def check_targets(X: Any, y: Any, caller: str) -> tuple[Any, bool]:
    """(n, t) targets of the rows of X, and whether they are one number per row.

    Floats on the host, or what a source has.
    """
    if check_targets_in_source(X, y, caller):
        check_numeric_targets(X.targets, caller)
        return X.targets, getattr(X.targets, "single", False)
    with explain_non_numeric("y"):
        y = check_array(
            load_values(y), ensure_2d=False, dtype=np.float64, input_name="y"
        )
    check_consistent_length(X, y)
    return (y[:, None], True) if y.ndim == 1 else (y, False)


def check_numeric_targets(targets: Any, caller: str) -> None:
    """Classes of a file are no numbers."""
    names = getattr(targets, "names", None)
    if names is not None and names.dtype.kind != "b":
        raise ValueError(
            f"The target of the source is text (such as {str(names[0])!r}), but "
            f"{caller} needs numbers; for classes use KernelRidgeClassifier, or name "
            "another column."
        )


def check_labels(X: Any, y: Any) -> np.ndarray:
    """(n,) classes of the rows of X, or (n, k) where a row may have several."""
    y = load_values(y)
    labels = np.asarray(y) if not sp.issparse(y) else np.empty(0)
    if labels.dtype.kind == "O" and any(
        type(label).__name__ in ("NoneType", "NAType") for label in labels.ravel()
    ):
        raise ValueError("y has rows without a label; drop them, or label them.")
    y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
    check_consistent_length(X, y)
    if y.dtype.kind == "O" and len({isinstance(each, str) for each in y.flat}) > 1:
        raise ValueError(
            "y has labels that are text and labels that are not; convert all of them "
            "to text, or all to numbers."
        )
    check_classification_targets(y)
    if type_of_target(y) == "multiclass-multioutput":
        raise ValueError(
            f"y has {y.shape[1]} columns of classes, but a classifier predicts one; "
            "fit one for each column: sklearn.multioutput.MultiOutputClassifier."
        )
    return column_or_1d(y, warn=True) if y.ndim == 2 and y.shape[1] == 1 else y


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


def check_consistent_length(X: Any, y: Any) -> None:
    """Refuse targets that are more or fewer than rows."""
    n_rows, n_targets = count_rows(X), count_rows(y)
    if n_rows != n_targets:
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"[{n_rows}, {n_targets}]. y has one entry for each row of X."
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
        f"{difference}. Name the columns: sources.open(path, "
        "columns=list(model.feature_names_in_))."
    )


def check_sample_weight(sample_weight: Any, X: Any) -> np.ndarray | None:
    """The weights of X's rows: none negative, not all 0; None where none are given."""
    if sample_weight is None:
        return None
    if isinstance(X, Source) and X.is_weighted:
        raise ValueError(
            "sample_weight is given, but the source has its own weights; use one of "
            "them."
        )
    given = load_values(sample_weight, "sample_weight")
    rows = np.empty((count_rows(X), 1))
    with explain_non_numeric("sample_weight"):
        weights = _check_sample_weight(given, rows, dtype=np.float64)
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
            f"Inputs passed to {method} must use the same namespace as those passed "
            f"to fit(): {given.__name__} was given, but {expected.__name__} is "
            "expected. Convert X, or fit again."
        )
