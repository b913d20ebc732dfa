"""Display of a learnt metric: how much each feature counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from .. import _arrays as arrays
from .rows import BaseDisplay


class FeatureImportancesDisplay(BaseDisplay):
    """Bars of `feature_importances_`, the most important feature on top.

    Parameters
    ----------
    importances : ndarray of shape (n_features,)
        Importances of the features.
    feature_names : sequence of str, default=None
        Names of the features; by default "feature 0", "feature 1" and so on.

    Attributes
    ----------
    bars_ : matplotlib BarContainer
        Bars of the plot.
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure of the plot.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import KernelRidge
    >>> from nystrom.displays import FeatureImportancesDisplay
    >>> X = np.random.default_rng(0).standard_normal((500, 4))
    >>> y = np.sin(2 * X[:, 2])
    >>> model = KernelRidge(0.01, kernel="rbf", gamma="ard", random_state=0).fit(X, y)
    >>> display = FeatureImportancesDisplay.from_estimator(model, max_features=2)
    >>> display.ax_.get_yticklabels()[0].get_text()
    'feature 2'
    """

    bars_: Any

    def __init__(
        self, importances: np.ndarray, *, feature_names: Sequence[str] | None = None
    ) -> None:
        self.importances = np.asarray(importances, dtype=np.float64)
        if feature_names is None:
            feature_names = [f"feature {j}" for j in range(len(self.importances))]
        if len(feature_names) != len(self.importances):
            raise ValueError(
                f"There are {len(feature_names)} feature_names for "
                f"{len(self.importances)} features; give one name per feature."
            )
        self.feature_names = [str(name) for name in feature_names]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        feature_names: Sequence[str] | None = None,
        max_features: int = 20,
        ax: Any = None,
        **bar: Any,
    ) -> Self:
        """Draw the importances of an estimator with a learnt metric.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator with gamma="ard" or "matrix", or a pipeline that ends
            with one.
        feature_names : sequence of str, default=None
            Names of the features. By default those that the estimator was fitted with.
        max_features : int, default=20
            How many features are drawn, the most important ones.
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        **bar : dict
            Passed to `ax.barh`.

        Returns
        -------
        display : object
            The display, drawn.
        """
        is_pipeline = hasattr(estimator, "named_steps")
        last = estimator[-1] if is_pipeline else estimator
        if not hasattr(last, "feature_importances_"):
            raise ValueError(
                f"This {type(last).__name__} has no feature_importances_: they come "
                "with a learnt metric. Fit it with gamma='ard' or gamma='matrix'."
            )
        if feature_names is None:
            feature_names = getattr(last, "feature_names_in_", None)
            if is_pipeline and feature_names is None:
                feature_names = _names_before_last_step(estimator)
        importances = arrays.to_host(last.feature_importances_)
        display = cls(importances, feature_names=feature_names)
        return display.plot(max_features=max_features, ax=ax, **bar)

    def plot(self, *, max_features: int = 20, ax: Any = None, **bar: Any) -> Self:
        """Draw the bars.

        Parameters
        ----------
        max_features : int, default=20
            How many features are drawn, the most important ones.
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        **bar : dict
            Passed to `ax.barh`.

        Returns
        -------
        display : object
            This display.
        """
        ax = self._set_axes(ax)
        order = np.argsort(-self.importances, kind="stable")[:max_features]
        names = [self.feature_names[j] for j in order]
        self.bars_ = ax.barh(np.arange(len(order)), self.importances[order], **bar)
        ax.set_yticks(np.arange(len(order)), names)
        ax.invert_yaxis()
        ax.set_xlabel("importance (diagonal of the metric, sum 1)")
        ax.set_ylabel("feature")
        return self


def _names_before_last_step(pipeline: Any) -> Sequence[str] | None:
    """The names of the columns that a pipeline gives its last step, if it knows."""
    try:
        return pipeline[:-1].get_feature_names_out()
    except (AttributeError, ValueError):
        return None
