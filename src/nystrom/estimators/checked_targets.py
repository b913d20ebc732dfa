"""Targets, checked together with their rows, or as a source has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from .. import _arrays as arrays
from ..edge.mistakes import not_finite
from ..edge.rows import (
    check_lengths,
    check_targets,
    explaining,
    holds_objects,
    in_memory,
    not_in_memory,
)
from ..sources import Source
from .checked_rows import ChecksRows


class ChecksTargets(ChecksRows):
    """A mixin for estimators that learn numbers."""

    def _rows_and_targets(
        self, X: Any, y: Any, *, reset: bool = True
    ) -> tuple[Any, Any, bool]:
        """X and targets checked, and whether these are one number per row.

        Targets are (n, t) floats on the host, or come with the rows of a source.
        """
        X = not_in_memory(X, None if reset else self._fitted_names)
        y = in_memory(y)
        if check_targets(X, y, type(self).__name__):
            refuse_text_targets(X.targets, type(self).__name__)
            single = getattr(X.targets, "single", False)
            return self._validated(X, reset=reset), X.targets, single
        y = arrays.fetched(y)
        _refuse_text(y)
        if isinstance(X, Source) or holds_objects(X) or not arrays.on_host(X):
            self._require(y)
            X = self._validated(X, reset=reset)
            with explaining(y=y):
                y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
            check_lengths(X, y)
        else:
            check_lengths(X, y)
            with explaining(X=X, y=y):
                X, y = validate_data(
                    self,
                    X,
                    y,
                    accept_sparse="csr",
                    multi_output=True,
                    y_numeric=True,
                    reset=reset,
                )
        y = y.astype(np.float64, copy=False)
        if not np.isfinite(y).all():  # None among objects, which is a number to NumPy
            raise not_finite(y, "y") or ValueError("y is not finite.")
        if y.ndim > 2:
            raise ValueError(
                f"y has shape {y.shape}; it must be (n_samples,) or (n_samples, "
                "n_targets)."
            )
        return X, columns_of(y), y.ndim == 1

    def _require(self, y: Any) -> None:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is "
                "None."
            )


def _refuse_text(y: Any) -> None:
    """Text that is no number has no place in y."""
    if y is None or (arrays.is_array(y) and not isinstance(y, np.ndarray)):
        return
    if sp.issparse(y):
        raise ValueError("y is sparse; targets must be a dense array, y.toarray().")
    values = np.asarray(y, dtype=object) if isinstance(y, list) else np.asarray(y)
    if values.dtype.kind in "OUS":
        try:
            values.astype(np.float64)
        except (TypeError, ValueError) as error:
            found = not_finite(values, "y")  # pandas.NA among numbers
            if found is not None:
                raise found from None
            raise ValueError(
                "y holds something that is not a number: "
                f"{str(error).rstrip('.')}. Encode it as numbers; for classes use "
                "KernelRidgeClassifier."
            ) from None


def refuse_text_targets(targets: Any, caller: str) -> None:
    """Classes of a file are no numbers."""
    names = getattr(targets, "names", None)
    if names is not None and names.dtype.kind != "b":
        raise ValueError(
            f"The target of the source is text (such as {str(names[0])!r}), and "
            f"{caller} takes numbers; for classes use KernelRidgeClassifier, or name "
            "another column."
        )


def all_targets(source: Source) -> np.ndarray:
    """The targets that a source has, as users know them."""
    targets = source.targets
    values = targets[: source.n_rows]
    values = values[:, 0] if getattr(targets, "single", False) else values
    names = getattr(targets, "names", None)
    return values if names is None else names[values.astype(int)]


def columns_of(y: np.ndarray) -> np.ndarray:
    """y as (n, t)."""
    return y[:, None] if y.ndim == 1 else y
