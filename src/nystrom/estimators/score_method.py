"""`score` of estimators that predict: R², or the share that is right."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, r2_score

from .. import _arrays as arrays
from ..edge.rows import check_targets, in_memory
from ..refusals import named_plainly
from ..sources import recognised
from .checked_targets import all_targets


@named_plainly
class Scoring:
    """A mixin before scikit-learn's own: predictions may be on a device."""

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R² of the predictions; of a classifier, the share that is right.

        Parameters
        ----------
        X : as for `predict`
            Rows.
        y : array-like or path
            Their targets or classes; None where the source has them.
        sample_weight : array-like or path, default=None
            Weights of the rows.

        Returns
        -------
        score : float
            At most 1, the higher the better.
        """
        metric = accuracy_score if is_classifier(self) else r2_score
        X = recognised(X, getattr(self, "_fitted_names", None))
        if check_targets(X, y, type(self).__name__):
            y = all_targets(X)
        elif y is None:
            raise ValueError(
                f"{type(self).__name__}.score requires y to be passed, but the target "
                "y is None."
            )
        predicted = here(self.predict(X))  # type: ignore[attr-defined]
        return metric(
            here(y), predicted, sample_weight=here(sample_weight, "sample_weight")
        )


def here(values: Any, name: str = "y") -> Any:
    """Targets, predictions or weights on the host: computed, read, or fetched."""
    return arrays.fetched(in_memory(values, name))
