"""The clusters of kernel k-means in a plane."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..estimators.kernel_kmeans import KernelKMeans
from .axes import landmarks_of, on_axes
from .in_two_dimensions import plane


class ClusterDisplay:
    """Rows as points of a plane, coloured by cluster.

    Parameters
    ----------
    rows : ndarray of shape (n_drawn, 2)
        Where the rows are.
    labels : ndarray of shape (n_drawn,)
        The cluster of each.
    sizes : ndarray of shape (n_clusters,)
        How many of all rows each cluster has.
    names : pair of str
        What the axes are called.

    Attributes
    ----------
    ax_, figure_
        What `plot` drew on.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from nystrom import KernelKMeans
    >>> from nystrom.displays import ClusterDisplay
    >>> X, _ = make_moons(400, noise=0.05, random_state=0)
    >>> model = KernelKMeans(2, gamma=20, n_landmarks=60, random_state=0).fit(X)
    >>> int(ClusterDisplay.from_estimator(model, X).sizes.sum())
    400
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        rows: np.ndarray,
        labels: np.ndarray,
        sizes: np.ndarray,
        names: tuple[str, str],
    ) -> None:
        self.rows = rows
        self.labels = labels
        self.sizes = sizes
        self.names = names

    @classmethod
    def from_estimator(
        cls,
        estimator: KernelKMeans,
        X: Any,
        *,
        features: Any = (0, 1),
        ax: Any = None,
        **points: Any,
    ) -> Self:
        """Draw the rows X by the cluster that a fitted `KernelKMeans` puts them in.

        `features` are two columns of X by number or name, or "components".
        """
        if not isinstance(estimator, KernelKMeans):
            raise TypeError(
                f"ClusterDisplay draws a fitted KernelKMeans, not "
                f"{type(estimator).__name__}."
            )
        found = plane(landmarks_of(estimator), X, features)
        labels = np.asarray(estimator.predict(X))
        sizes = np.bincount(labels, minlength=estimator.n_clusters)
        return cls(found.rows, labels[found.drawn], sizes, found.names).plot(
            ax, **points
        )

    def plot(self, ax: Any = None, **points: Any) -> Self:
        """Draw on the axes given, or on new ones; further words go to `ax.scatter`."""
        ax = on_axes(self, ax)
        for cluster, size in enumerate(self.sizes):
            own = self.rows[self.labels == cluster]
            label = f"{cluster}: {size} rows"
            ax.scatter(*own.T, **{"s": 6, "linewidths": 0, "label": label} | points)
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        if len(self.sizes) <= 12:
            ax.legend(title="cluster")
        return self
