"""User input to kernel, source and landmarks: validation, hints for common mistakes,
warnings.

The only place where functions and estimators check rows, targets, weights, gamma and
the kernel. What they work on after that is a `KernelProblem`.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight

from .. import _arrays as arrays
from .._random import as_seed
from .._validation import check_int
from ..engines import Engine, ProgressHook, Threads
from ..engines.context import current_device
from ..engines.status_line import write_above_status_line
from ..kernels import Kernel, Precomputed
from ..kernels.names import as_kernel
from ..landmarks import Landmarks
from ..samplers import (
    FixedSize,
    SpectralTolerance,
    StoppingRule,
    TraceTolerance,
    as_sampler,
    run_sampler,
)
from ..samplers.base import GivenPoints, GivenRows
from ..samplers.streaming import update_from_batch
from ..sources import (
    Block,
    DenseRows,
    ObjectRows,
    RowNumbers,
    Source,
    Subset,
    as_source,
    infer_source,
    is_dask,
)
from ..sources.base import DeviceRows
from ..sources.dask import compute
from ..sources.files import values_in
from ._progress import active_engine, announce_selection, resolve_engine


@contextmanager
def explain_memory_errors(caller: str) -> Iterator[None]:
    """Let a MemoryError say what would help."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        # Python's own words where there is no room for the stack of a thread.
        if isinstance(error, RuntimeError) and "start new thread" not in str(error):
            raise
        what = f": {error}" if str(error) else ""
        raise MemoryError(
            f"{caller} ran out of memory{what.rstrip('.')}. Fewer landmarks take less, "
            "by their square; so do fewer threads (n_jobs=1), each of which has blocks "
            "of its own, rows in float32, and rows that stay in a file "
            "(nystrom.sources.open)."
        ) from error


#: K is nearly diagonal where more than this share of its trace is left, and landmarks
#: stand for fewer rows than this on the mean.
DIAGONAL_TRACE_ERROR, DIAGONAL_ROWS_PER_LANDMARK = 0.9, 2.0


#: K is nearly constant where its least entry is more than this share of its largest,
#: among so many landmarks.
CONSTANT_ENTRY_RATIO, N_PROBED_LANDMARKS = 0.9999, 32


#: A smaller relative trace error may be rounding of float32.
MAX_ROUNDING_ERROR = 1e-5


def warn_about_landmarks(landmarks: Landmarks) -> None:
    """The warnings a user should see once: an indefinite kernel, a cap reached, a
    width that makes all rows alike or none.
    """
    if landmarks.indefinite:
        warn_indefinite(
            landmarks.kernel,
            "the landmarks were not chosen by its scores, and its negative part is "
            "dropped",
        )
    max_trace_error, error = landmarks.max_trace_error, landmarks.error
    if (
        max_trace_error is not None
        and error is not None
        and error.value > max_trace_error
    ):
        warn(
            f"max_trace_error={max_trace_error:.4g} was not reached: "
            f"{len(landmarks)} landmarks, of rank {landmarks.rank}, have relative "
            f"trace error {error}. Raise the limit on their number, pass None for "
            "none, or allow a larger error."
        )
    if landmarks.n_requested is not None:
        error_sentence = f" Relative trace error: {error}." if error else ""
        warn(
            f"max_spectral_error={landmarks.ridge:.4g} asks for about "
            f"{landmarks.n_requested} landmarks, more than the {len(landmarks)} "
            f"allowed.{error_sentence} Raise the limit, or pass None for none."
        )
    _warn_about_gamma(landmarks)


def _warn_about_gamma(landmarks: Landmarks) -> None:
    """Say so where a kernel of a distance finds no two rows alike, or all of them."""
    if not landmarks.kernel.traits.is_distance_based:
        return
    advice = "Look at the scale of the features (StandardScaler) and at gamma:"
    if _is_nearly_diagonal(landmarks):
        warn(
            f"K is nearly diagonal: {len(landmarks)} landmarks leave "
            f"{landmarks.error} of its trace. To {landmarks.kernel} hardly two rows "
            f"are alike. {advice} a smaller one, 'median', or 'learn' with targets."
        )
    elif _is_nearly_constant(landmarks):
        warn(
            f"K is nearly constant: to {landmarks.kernel} all rows are alike. "
            f"{advice} a larger one, 'median', or 'learn' with targets."
        )


def _is_nearly_diagonal(landmarks: Landmarks) -> bool:
    """Whether each landmark stands for little but itself.

    Of a diagonal K landmarks leave 1 − s/n; few of them may leave much of any K.
    """
    error, n = landmarks.error, landmarks.n_rows
    if error is None or n is None or error.value <= DIAGONAL_TRACE_ERROR:
        return False
    return (1 - error.value) * n < DIAGONAL_ROWS_PER_LANDMARK * len(landmarks)


def _is_nearly_constant(landmarks: Landmarks) -> bool:
    """Whether even landmarks, which are far from each other, look all the same."""
    s = len(landmarks)
    probed = np.arange(0, s, -(-s // N_PROBED_LANDMARKS))
    points = arrays.take_rows(landmarks.points, probed)
    is_first_copy = arrays.first_occurrences(points)
    if len(probed) < 2 or (is_first_copy is not None and not is_first_copy.any()):
        return False  # they are the same
    K = landmarks.kernel.gram(points)
    return bool(K.min() > CONSTANT_ENTRY_RATIO * K.max())


def warn_alike(landmarks: Landmarks, alike: bool | None = None) -> None:
    """Say so where nothing can be predicted, as a kernel sees no difference of rows.

    None: not known; one landmark that explains all of a kernel of a distance is then
    the same as all rows.
    """
    at_distance = landmarks.kernel.traits.is_distance_based
    if alike is None:
        error = landmarks.error
        little = error is not None and error.value <= MAX_ROUNDING_ERROR
        alike = at_distance and landmarks.rank == 1 and little and landmarks.n_rows > 1
    # Different rows that are alike to a kernel of a distance: that was said of gamma.
    if alike and not (at_distance and _is_nearly_constant(landmarks)):
        warn(
            f"All rows of X are alike to {landmarks.kernel}, so that nothing but a "
            "constant can be predicted from them: look at the columns of X, and at the "
            "kernel."
        )


def warn_of_small_alpha(alpha: float, least: float) -> None:
    """Say so where alpha is lost in the rounding of what it is added to."""
    if 0 < alpha < least:
        warn(
            f"alpha={alpha:.3g} is less than float64 resolves beside this kernel "
            f"matrix, so that rounding decides how much it shrinks: raise it to "
            f"{least:.2g} or more, or use alpha=0 for least squares."
        )


def warn_indefinite(kernel: Kernel, consequence: str) -> None:
    """The warning that names the kernel, and says what follows."""
    warn(f"The kernel {kernel} is not positive semi-definite: {consequence}.")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """A warning that points at the user's own line, not at ours or scikit-learn's."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
        ("nystrom", "sklearn")
    ):
        frame, level = frame.f_back, level + 1
    with write_above_status_line():  # not into the line of a bar
        warnings.warn(message, category, stacklevel=level)


#: How dates become numbers.
DATES_AS_NUMBERS_HINT = (
    "such as days: (dates - dates.min()) / numpy.timedelta64(1, 'D')"
)


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


def source_from_rows(X: Any, weights: np.ndarray | None = None) -> Source:
    """The source of X's rows, on the device in use if there is one."""
    source, device = as_source(X, weights), current_device()
    if device is None:
        return source
    if not arrays.is_array(source.rows(0, 1)):
        raise ValueError(
            f"using(device={device!r}) moves dense rows of numbers, and X holds others "
            "(CSR, or objects); convert them, X.toarray(), or leave device out."
        )
    return DeviceRows(source, device)


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


#: One width for all features, or one for each, learnt from targets.
LEARN, LEARN_ARD = "learn", "ard"


#: Rows whose pairwise distances give the median.
MEDIAN_ROWS = 1000


def is_learned_gamma(gamma: Any) -> bool:
    """Whether the width is to be learnt from targets."""
    return isinstance(gamma, str) and gamma in (LEARN, LEARN_ARD)


def gamma_from_data(rule: str, kernel: str, source: Source, engine: Engine) -> float:
    """The number that gamma="scale", gamma="auto" or gamma="median" stands for.

    "scale": 1/(n_features · variance of all entries), as scikit-learn's `SVC`.
    "auto": 1/n_features, as there; that is the default of all kernels but chi2.
    "median": 1/(2·m²) for the median distance m of 1000 evenly spaced rows, and 1/m
    with city-block distances for the Laplacian kernel.
    """
    if source.is_weighted and not np.all(source.weights > 0):
        source = Subset(source, np.flatnonzero(source.weights))
    if rule == "scale":
        variance = _entry_variance(source, engine)
        assert source.n_features is not None
        if not variance:
            return 1.0
        return _reciprocal_gamma(source.n_features * variance, rule)
    if rule == "auto":
        return 1.0 / source.n_features  # type: ignore[operator]
    if is_learned_gamma(rule):
        raise ValueError(
            f"gamma={rule!r} is learnt from targets, and there are none here: it is "
            "for regression, classification and Nystroem.fit(X, y). Use a number, "
            "'scale' or 'median'."
        )
    if rule != "median":
        raise ValueError(
            f"gamma={rule!r} is unknown; allowed: a number >= 0, one per feature, "
            f"'scale', 'auto', 'median', {LEARN!r} or {LEARN_ARD!r} where there are "
            "targets, or None for the kernel's default."
        )
    if kernel in ("chi2", "poly", "polynomial", "sigmoid"):
        raise ValueError(
            f"gamma='median' is for kernels of a distance, not for kernel={kernel!r}; "
            "use a number, 'scale' or None."
        )
    n = source.n_rows
    m = min(n, MEDIAN_ROWS)
    X = arrays.to_host_float64(source.take(np.arange(m) * n // m))
    if not np.diff(X, axis=0).any():
        return 1.0  # as scikit-learn has it: there is no scale to be had
    with np.errstate(over="ignore", invalid="ignore"):  # checked below
        distances, power = _pairwise_distances(X, kernel)
    if not np.isfinite(distances).all():
        raise _gamma_range_error(rule, np.inf)
    # Many copies of one row would make the median 0: the rest still has a scale.
    cutoff = arrays.epsilon(np.float64) * distances.max(initial=0.0) * 10**power
    nonzero_distances = distances[distances > cutoff]
    return _reciprocal_gamma(
        float(np.median(nonzero_distances)) if len(nonzero_distances) else 0.0, rule
    )


def _pairwise_distances(X: np.ndarray, kernel: str) -> tuple[np.ndarray, float]:
    """What gamma is to be one over, of all pairs of rows; and the power it grows by."""
    pairs = np.triu_indices(len(X), 1)
    if kernel == "laplacian":
        return arrays.cityblock(X, X)[pairs], 1.0
    X = X - X.mean(axis=0)
    norms = arrays.squared_norms(X)
    squares = norms[:, None] + norms - 2 * X @ X.T
    return 2 * np.maximum(squares, 0)[pairs], 2.0


def _reciprocal_gamma(spread: float, rule: str) -> float:
    """gamma, if float64 has such numbers."""
    with np.errstate(over="ignore", divide="ignore"):
        gamma = float(1.0 / np.float64(spread))
    if not 0 < gamma < np.inf:
        raise _gamma_range_error(rule, spread)
    return gamma


def _gamma_range_error(rule: str, spread: float) -> ValueError:
    size = "large" if not spread < 1 else "small"
    return ValueError(
        f"gamma={rule!r} is one over a squared distance of rows of X, which is too "
        f"{size} for float64; bring X to a usual scale, by StandardScaler or the like."
    )


def _entry_variance(source: Source, engine: Engine) -> float:
    first = arrays.to_host_float64(source.rows(0, 1))
    origin = float(first.mean())  # near the data, so that squares do not cancel
    sums = engine.reduce(_variance_sums_block, source, (origin,), "variance")
    total, squares, absolute_deviation = arrays.tree_to_host(sums)
    n_entries = source.n_rows * source.n_features  # type: ignore[operator]
    with np.errstate(over="ignore", invalid="ignore"):
        variance = float(squares / n_entries - np.square(np.float64(total / n_entries)))
    if not np.isfinite(variance):
        raise _gamma_range_error("scale", np.inf)
    # Values that are all alike are apart from their mean by what it was rounded by.
    rounding = 10 * arrays.epsilon(np.float64) * abs(origin) * n_entries
    if variance <= 0 and rounding < absolute_deviation < 1:
        raise _gamma_range_error("scale", 0.0)
    return max(0.0, variance)


def _variance_sums_block(block: Block, origin: float) -> tuple[Any, Any, Any]:
    X = block.X.toarray() if sp.issparse(block.X) else block.X
    with np.errstate(over="ignore"):  # refused once summed
        X = arrays.widen(X) - origin
        return (
            arrays.sum_float64(X),
            arrays.sum_float64(arrays.squared_norms(X)),
            arrays.sum_float64(arrays.namespace(X).abs(X)),
        )


@dataclass(frozen=True, eq=False)
class KernelProblem:
    """What functions and fits work on: validated rows, their kernel, and an engine."""

    kernel: Kernel  # with all its numbers
    source: Source  # rows with their targets and weights
    engine: Engine
    X: Any  # the rows as they were given, checked
    is_single_target: bool = False  # y had one dimension

    @classmethod
    def from_params(
        cls,
        X: Any,
        kernel: Any,
        *,
        caller: str,
        targets: Any = None,
        sample_weight: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        hooks: tuple[ProgressHook, ...] = (),
        **params: Any,
    ) -> KernelProblem:
        """From rows that are checked, and the parameters of a kernel."""
        weights = check_sample_weight(sample_weight, X)
        if isinstance(kernel, str) and kernel == "precomputed":
            kernel = as_kernel(kernel, caller=caller, **params)
        source: Source
        if isinstance(kernel, Precomputed):
            matrix = _check_square_matrix(X)
            kernel, source = Precomputed(matrix), RowNumbers(matrix.shape[0], weights)
        else:
            source = source_from_rows(X, weights)
            kernel = resolve_kernel(kernel, source, caller, n_jobs, **params)
        engine = resolve_engine(kernel, n_jobs, verbose, *hooks, source=source)
        if targets is not None:
            source = source.replace(targets=targets)
        return cls(kernel, source, engine, X)

    def select_landmarks(
        self,
        stopping_rule: StoppingRule,
        sampler: Any,
        *,
        random_state: Any,
        nested: bool = False,
        **options: Any,
    ) -> Landmarks:
        """Landmarks by whatever stands for a sampler.

        `nested` puts redundant ones last where they were drawn in no order, for callers
        that need their factor anyway. A progress bar says first how many landmarks
        `max_spectral_error` will take.
        """
        kernel, source, engine = self.kernel, self.source, self.engine
        sampler = as_sampler(sampler, stopping_rule, **options)
        announce_selection(sampler, kernel, source, stopping_rule, engine)
        landmarks = run_sampler(
            sampler,
            kernel,
            source,
            stopping_rule,
            random_state=random_state,
            engine=engine,
        )
        if source.original is not source:  # a model holds points such as the rows given
            points = arrays.to_device_of(landmarks.points, source.original.rows(0, 1))
            landmarks = landmarks.replace(points=points)
        is_nested = getattr(sampler, "is_ordered", True)
        return landmarks.in_nested_order() if nested and not is_nested else landmarks


def resolve_kernel(
    kernel: Any,
    source: Source,
    caller: str,
    n_jobs: int | None,
    *,
    gamma: Any = None,
    **params: Any,
) -> Kernel:
    """The kernel with all its numbers, if it takes such rows."""
    is_numeric = not isinstance(source, ObjectRows)
    if isinstance(gamma, str) and isinstance(kernel, str):
        engine = active_engine(source) or Threads(n_jobs)
        # No named kernel takes objects: below the rows are refused, not gamma.
        gamma = gamma_from_data(gamma, kernel, source, engine) if is_numeric else None
    resolved = as_kernel(
        kernel, n_features=source.n_features, gamma=gamma, caller=caller, **params
    )
    if not is_numeric and not resolved.traits.accepts_objects:
        first = source.take(np.arange(1))[0]
        if isinstance(first, (list, tuple, np.ndarray)):
            raise ValueError(
                f"The kernel {resolved} needs rows of numbers, all of one length; row "
                f"0 of X has {len(first)} entries, and others have more, fewer, or "
                "text. Give every row the same features, or pass a kernel for such "
                "rows: a callable of two of them."
            )
        raise ValueError(
            f"The kernel {resolved} needs rows of numbers, but X holds "
            f"{type(first).__name__} values. Encode them as numbers, or pass a kernel "
            "for such rows: a callable of two of them."
        )
    return resolved


def as_dense_kernel_values(X: Any) -> Any:
    """Values of a precomputed kernel as an array; they are not read from files."""
    X = X.X if isinstance(X, DenseRows) else X
    if isinstance(X, Source) or sp.issparse(X):
        given = "a sparse matrix" if sp.issparse(X) else "a source, or a file"
        raise ValueError(
            f"A precomputed kernel must be a dense square array, and the values of new "
            f"rows a dense array too; X is {given}. Load it, or convert it by "
            "X.toarray()."
        )
    return X if arrays.is_array(X) else np.asarray(X)


def _check_square_matrix(X: Any) -> Any:
    X = as_dense_kernel_values(X)
    if X.ndim != 2 or X.shape[0] != X.shape[1]:
        raise ValueError(
            f"kernel='precomputed' takes the square matrix of k(x, y) for all pairs of "
            f"training rows; X has shape {tuple(X.shape)}."
        )
    return X


def stopping_rule_from_params(
    n_landmarks: Any,
    sampler: Any,
    *,
    max_spectral_error: float | None = None,
    max_trace_error: float | None = None,
    default: int | None = None,
    name: str = "n_landmarks",
) -> StoppingRule:
    """What says how many landmarks there are to be; a number beside it is a cap.

    A sampler's own `max_spectral_error` counts where none is given.
    `default` stands for a number that is None.
    """
    if max_spectral_error is not None and max_trace_error is not None:
        raise two_rules_error(
            f"max_spectral_error={max_spectral_error!r}",
            f"max_trace_error={max_trace_error!r}",
        )
    if max_trace_error is not None:
        return TraceTolerance(
            max_trace_error, check_int(n_landmarks, name, optional=True)
        )
    if max_spectral_error is None:
        max_spectral_error = getattr(sampler, "max_spectral_error", None)
    if max_spectral_error is not None:
        return SpectralTolerance(
            max_spectral_error, check_int(n_landmarks, name, optional=True)
        )
    size = check_int(n_landmarks, name, optional=default is not None) or default
    assert size is not None  # None is refused where there is no default
    return FixedSize(size)


def two_rules_error(first: str, second: str) -> ValueError:
    """The error for two parameters that both bound the number of landmarks."""
    return ValueError(
        f"{first} and {second} both say how many landmarks there are to be; give one "
        "of them."
    )


def check_streamable(kernel: Kernel, sampler: Any, caller: str) -> None:
    """Row numbers of one batch mean nothing in the next."""
    if kernel.traits.uses_row_numbers:
        raise ValueError(
            f"{caller} takes rows, batch by batch; kernel='precomputed' has values of "
            "all pairs of them. Use fit, or a kernel that is a function of rows."
        )
    if isinstance(as_sampler(sampler), (GivenRows, GivenPoints)):
        raise ValueError(
            f"{caller} chooses landmarks again as rows come; a sampler that is row "
            "numbers or points leaves nothing to choose. Use fit, or a name such as "
            "sampler='auto'."
        )


def update_landmarks(
    previous: Landmarks | None,
    problem: KernelProblem,
    stopping_rule: StoppingRule,
    sampler: Any,
    *,
    random_state: Any,
    caller: str,
    nested: bool = False,
    min_improvement: float = 1.0,
) -> Landmarks:
    """Landmarks of all rows so far: the previous ones, and a batch of new rows."""
    batch, seed = problem.source, 0  # the first seed goes with the rows that are kept
    if previous is not None:
        check_namespace(problem.X, previous.points, f"{caller}()")
        check_landmark_width(batch, previous.points)
        if sp.issparse(previous.points) != sp.issparse(batch.take(np.arange(1))):
            raise ValueError(
                "The new rows and the landmarks must both be sparse, or both not."
            )
    if previous is None or previous.reservoir is None:
        seed = as_seed(random_state)

    def select(source: Source, seed: int, goal: StoppingRule) -> Landmarks:
        rows = replace(problem, source=source)
        return rows.select_landmarks(goal, sampler, random_state=seed, nested=nested)

    return update_from_batch(
        previous,
        batch,
        select,
        stopping_rule,
        seed=seed,
        engine=problem.engine,
        min_improvement=min_improvement,
    )


def check_landmark_width(source: Source, points: Any) -> None:
    """New rows must have the features of the landmarks."""
    has_columns = arrays.is_array_or_csr(points) and points.ndim == 2
    width = points.shape[1] if has_columns else None
    check_width(source.n_features, width, "the landmarks have")
