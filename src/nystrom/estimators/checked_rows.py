"""Rows as scikit-learn checks them: widths and names, of old rows and new ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    validate_data,
)

from .. import _arrays as arrays
from ..edge.rows import check_rows, explaining, holds_objects, not_in_memory
from ..sources import Source


class ChecksRows:
    """A mixin for estimators that remember what features they were fitted to."""

    n_features_in_: int

    def _validated(self, X: Any, *, reset: bool) -> Any:
        """X checked by scikit-learn's rules, or as it is where its rows are objects.

        Paths become sources, whose rows are checked when they are read.
        """
        X = not_in_memory(X, None if reset else self._fitted_names)
        if isinstance(X, Source):
            self._check_width(X, reset=reset)
            return X
        if holds_objects(X):
            for name in ("n_features_in_", "feature_names_in_") if reset else ():
                self.__dict__.pop(name, None)
            return check_rows(X)
        if not arrays.on_host(X):
            # As scikit-learn would, whether or not its array API dispatch is on.
            X = check_rows(X)
            _check_feature_names(self, X, reset=reset)
            _check_n_features(self, X, reset=reset)
            return X
        with explaining(X=X):
            if not reset and self._names_unheard(X):
                X = check_array(X, accept_sparse="csr", dtype="numeric", estimator=self)
                _check_n_features(self, X, reset=False)
                return X
            return validate_data(
                self, X, accept_sparse="csr", dtype="numeric", reset=reset
            )

    def _check_width(self, source: Source, *, reset: bool) -> None:
        """Remember how many features there are, or compare with what was fitted."""
        width = source.n_features
        if reset:
            for name in ("n_features_in_", "feature_names_in_"):
                self.__dict__.pop(name, None)
            if width is not None:
                self.n_features_in_ = width
            if source.feature_names:
                self.feature_names_in_ = np.array(source.feature_names, dtype=object)
            self._names_from_source = bool(source.feature_names)
        elif width is not None and width != getattr(self, "n_features_in_", width):
            raise ValueError(
                f"X has {width} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        else:
            refuse_other_names(source.feature_names, self._fitted_names)

    @property
    def _fitted_names(self) -> list[str] | None:
        """What the features were called in `fit`, if they had names."""
        names = self.__dict__.get("feature_names_in_")
        return None if names is None else list(names)

    def _names_unheard(self, X: Any) -> bool:
        """Whether names came from a file, and X is an array: no reason to warn.

        Rows of a file are often compared with some that are in memory.
        """
        return not hasattr(X, "columns") and vars(self).get("_names_from_source", False)


def refuse_other_names(given: Any, fitted: list[str] | None) -> None:
    """New rows have the features of the old ones, in their order."""
    if given is None or fitted is None or list(given) == fitted:
        return
    missing = [name for name in fitted if name not in given]
    how = f"{missing[0]!r} is missing" if missing else "their order is another"
    raise ValueError(
        "The feature names should match those that were passed during fit: "
        f"{how}. Name the columns, sources.open(path, "
        "columns=list(model.feature_names_in_))."
    )
