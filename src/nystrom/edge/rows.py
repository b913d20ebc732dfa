"""Rows and their weights, as users pass them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight

from .. import _arrays as arrays
from ..engines.using import current_device
from ..sources import Objects, Source, as_source, is_dask, recognised
from ..sources.dask_rows import computed
from ..sources.on_device import OnDevice
from ..sources.opening import values_in
from .mistakes import not_finite, refuse_mistakes


def not_in_memory(X: Any, names: Sequence[str] | None = None) -> Any:
    """X, or the source of it where it is not in memory: files, or Dask's.

    `names` are those of the features that are wanted of a path.
    """
    refuse_mistakes(X)
    found = as_source(X) if is_dask(X) else recognised(X, names)
    if isinstance(found, str):
        raise ValueError(
            f"X={X!r} is text that names no file; give rows, or the path of a file, "
            "which ends in .csv, .parquet, .npy or another ending that sources.open "
            "knows."
        )
    return found


def in_memory(y: Any, name: str = "y") -> Any:
    """Targets or weights, here: computed where they are Dask's, read from a path."""
    refuse_mistakes(y, name)
    if isinstance(y, (str, os.PathLike)):
        refuse_no_file(y, name)
        return values_in(os.path.abspath(y))
    return np.asarray(computed(y)) if is_dask(y) else y


def refuse_no_file(y: Any, name: str) -> None:
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
    X = not_in_memory(X)
    if isinstance(X, Source):
        return X
    if arrays.is_array(X) and arrays.namespace(X) is not np:
        return _check_foreign(X)
    if holds_objects(X):
        return X
    with explaining(**{name: X}):
        return check_array(X, accept_sparse="csr", dtype="numeric", input_name=name)


def holds_objects(X: Any) -> bool:
    """Whether X is a sequence of things that are not numbers, nor rows of numbers."""
    series = hasattr(X, "to_numpy") and not hasattr(X, "columns")
    if isinstance(X, np.ndarray) or series:
        objects = X.ndim == 1 and np.asarray(X).dtype.kind in "OUST"
    elif isinstance(X, Sequence) and not isinstance(X, (str, bytes)):
        try:
            objects = len(X) == 0 or isinstance(as_source(X), Objects)
        except ValueError:
            objects = False
    else:
        return False
    if objects and len(X) == 0:
        raise ValueError("X is empty; at least one row is needed.")
    return objects


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


def rows_of(X: Any, weights: np.ndarray | None = None) -> Source:
    """The source of X's rows, on the device in use if there is one."""
    source, device = as_source(X, weights), current_device()
    if device is None:
        return source
    if not arrays.is_array(source.rows(0, 1)):
        raise ValueError(
            f"using(device={device!r}) moves dense rows of numbers, and X holds others "
            "(CSR, or objects); convert them, X.toarray(), or leave device out."
        )
    return OnDevice(source, device)


def _check_foreign(X: Any) -> Any:
    X = arrays.detached(X)
    xp = arrays.namespace(X)
    if xp.isdtype(X.dtype, "complex floating"):
        raise ValueError("Complex data not supported: X holds complex numbers.")
    if not arrays.has_float64(X):
        raise ValueError(
            f"X is on the device {arrays.device(X)}, which has no float64; sums over "
            "rows are taken in it. Move X to the CPU, or to a device that has it."
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


def count_rows(X: Any) -> int:
    """How many rows a source, array or list has."""
    return X.n_rows if isinstance(X, Source) else arrays.count_rows(X)


def check_targets(X: Any, y: Any, caller: str) -> bool:
    """Whether the targets come with the rows of X; they come once, from somewhere."""
    own = isinstance(X, Source) and X.targets is not None
    if own and y is not None:
        raise ValueError(
            "y is given, and the source has targets of its own; give one of them."
        )
    if not own and y is None and isinstance(X, Source):
        raise ValueError(
            f"{caller} requires y to be passed, but the target y is None, and the "
            "source has none: name its column, sources.open(..., target=...)."
        )
    return own


def check_lengths(X: Any, y: Any, name: str = "y") -> None:
    """Refuse targets that are more or fewer than rows, where both can be counted."""
    n_rows, n_targets = _known_length(X), _known_length(y)
    if None not in (n_rows, n_targets) and n_rows != n_targets:
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"[{n_rows}, {n_targets}]. {name} has one entry for each row of X; give as "
            "many, in the same order."
        )


def _known_length(rows: Any) -> int | None:
    if isinstance(rows, Source):
        return rows.n_rows
    shape = getattr(rows, "shape", None)
    if shape is not None:
        return shape[0] if shape else None
    return len(rows) if hasattr(rows, "__len__") else None


def check_weights(sample_weight: Any, X: Any) -> np.ndarray | None:
    """The weights of X's rows: none negative, not all 0; None where none are given."""
    if sample_weight is None:
        return None
    if isinstance(X, Source) and X.is_weighted:
        raise ValueError(
            "sample_weight is given, and the source has weights of its own; give one "
            "of them."
        )
    given = arrays.fetched(in_memory(sample_weight, "sample_weight"))
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
    if not arrays.is_block(X) or not arrays.is_block(fitted):
        return
    given, expected = arrays.namespace(X), arrays.namespace(fitted)
    if given is not expected:
        raise ValueError(
            f"Inputs passed to {method} must use the same namespace as those passed to "
            f"fit(): {given.__name__} was given, and {expected.__name__} is expected. "
            "Convert X, or fit again."
        )
