"""Displays of rows: landmarks in a plane, ridge leverage scores, clusters; and the
axes and landmarks of every display.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from .._validation import import_optional
from ..estimators.kernel_kmeans import KernelKMeans
from ..functions import approximate
from ..landmarks import Landmarks, check_landmarks
from ..linalg.operator import Approximation

#: More rows than this are thinned out before they are drawn: a picture has no more.
MAX_DRAWN_ROWS = 5000


class BaseDisplay:
    """Arrays, and what `plot` drew them with."""

    ax_: Any
    figure_: Any
    line_: Any

    def _set_axes(self, ax: Any) -> Any:
        """The axes given, or new ones; kept as `ax_` and `figure_`."""
        if ax is None:
            pyplot = import_optional("matplotlib.pyplot", "plot", "A display")
            _, ax = pyplot.subplots(layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax


class BaseRowsDisplay(BaseDisplay):
    """A display of rows and landmarks, or of rows and an estimator's landmarks."""

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, **options: Any) -> Self:
        """Draw the rows X with the landmarks of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator with `landmarks_`, or a pipeline that ends with one.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", the square kernel matrix.
        **options : dict
            Passed to `from_landmarks`.

        Returns
        -------
        display : object
            The display, drawn.
        """
        return cls.from_landmarks(fitted_landmarks(estimator), X, **options)

    @classmethod
    def from_landmarks(cls, landmarks: Landmarks, X: Any, **options: Any) -> Self:
        """Draw the rows X with landmarks.

        Parameters
        ----------
        landmarks : Landmarks
            Landmarks from `select_landmarks` or `estimator.landmarks_`.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", the square kernel matrix.
        **options : dict
            Options of the display.

        Returns
        -------
        display : object
            The display, drawn.
        """
        raise NotImplementedError


def fitted_landmarks(estimator: Any) -> Landmarks:
    """The landmarks of a fitted estimator, or of the last step of a pipeline."""
    last = estimator[-1] if hasattr(estimator, "named_steps") else estimator
    landmarks = getattr(last, "landmarks_", None)
    if isinstance(landmarks, Landmarks):
        return landmarks
    raise ValueError(
        f"This {type(last).__name__} has no single set of landmarks. Fit an estimator "
        "of nystrom first; for KernelCCA use from_landmarks with one of its "
        "landmarks_."
    )


def thinned_indices(n_rows: int) -> np.ndarray:
    """Row numbers at equal distances, few enough to draw."""
    n_drawn = min(n_rows, MAX_DRAWN_ROWS)
    return np.unique(np.linspace(0, n_rows - 1, n_drawn).astype(int))


class PlaneProjection(NamedTuple):
    """Where rows are drawn, those of them that are, and what the axes are called."""

    rows: np.ndarray  # (m, 2)
    row_indices: np.ndarray  # (m,) their row numbers
    landmarks: np.ndarray | None  # (s, 2), where they have a place
    names: tuple[str, ...]


def project_to_plane(landmarks: Landmarks, X: Any, features: Any) -> PlaneProjection:
    """Two features by number or name, or the first two components ("components")."""
    if isinstance(features, str) and features == "components":
        return _project_to_components(landmarks, X)
    columns, points = _feature_indices(X, features), landmarks.points
    row_indices = thinned_indices(X.shape[0])
    is_matrix = len(getattr(points, "shape", ())) == 2
    landmark_points = _as_numpy(points)[:, columns] if is_matrix else None
    column_names = list(getattr(X, "columns", ()))
    names = [str(column_names[c]) if column_names else f"feature {c}" for c in columns]
    rows = _as_numpy(X)[row_indices][:, columns]
    return PlaneProjection(rows, row_indices, landmark_points, tuple(names))


def _project_to_components(landmarks: Landmarks, X: Any) -> PlaneProjection:
    """Coordinates along the two largest eigenvectors of K̃; landmarks by their rows."""
    approximation = approximate(X, landmarks)
    values, vectors = (arrays.to_host(part) for part in approximation.eigh(2))
    coordinates = np.zeros((approximation.shape[0], 2))
    coordinates[:, : len(values)] = vectors * np.sqrt(values)
    are_rows = landmarks.indices is not None and landmarks.n_rows == len(coordinates)
    landmark_points = coordinates[landmarks.indices] if are_rows else None
    row_indices = thinned_indices(len(coordinates))
    names = ("component 1", "component 2")
    return PlaneProjection(
        coordinates[row_indices], row_indices, landmark_points, names
    )


def _feature_indices(X: Any, features: Any) -> list[int]:
    names = list(getattr(X, "columns", ()))
    requested = list(features) if np.iterable(features) else [features]
    width = X.shape[1] if np.ndim(X) == 2 or sp.issparse(X) else 0
    indices = [names.index(f) if f in names else f for f in requested]
    valid = [c for c in indices if isinstance(c, (int, np.integer)) and 0 <= c < width]
    if len(requested) != 2 or len(valid) != 2:
        raise ValueError(
            f"features={features!r} is not allowed; give two of the columns of X, "
            f'which has {width}, by number or name, or "components".'
        )
    return [int(c) for c in valid]


def _as_numpy(X: Any) -> np.ndarray:
    if sp.issparse(X):
        return X.toarray()
    if hasattr(X, "to_numpy"):
        return X.to_numpy()
    return arrays.to_host(X) if arrays.is_array(X) else np.asarray(X)


@dataclass(eq=False)
class LandmarksDisplay(BaseRowsDisplay):
    """Rows in a plane, with the landmarks among them.

    Parameters
    ----------
    rows : ndarray of shape (n_drawn, 2)
        Coordinates of the rows.
    landmarks : ndarray of shape (n_landmarks, 2) or None
        Coordinates of the landmarks; None if they have none in this plane.
    names : pair of str
        Labels of the axes.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure of the plot.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import select_landmarks
    >>> from nystrom.displays import LandmarksDisplay
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> landmarks = select_landmarks(X, n_landmarks=30, random_state=0)
    >>> display = LandmarksDisplay.from_landmarks(landmarks, X, features=(0, 2))
    >>> display.landmarks.shape
    (30, 2)
    """

    rows: np.ndarray
    landmarks: np.ndarray | None
    names: tuple[str, ...]

    @classmethod
    def from_landmarks(  # type: ignore[override]
        cls,
        landmarks: Landmarks,
        X: Any,
        *,
        features: Any = (0, 1),
        ax: Any = None,
        **points: Any,
    ) -> Self:
        """Draw rows and landmarks.

        If there are many rows, a regular subset is drawn.

        Parameters
        ----------
        landmarks : Landmarks
            Landmarks from `select_landmarks` or `estimator.landmarks_`.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", the square kernel matrix.
        features : pair of int or str, or "components", default=(0, 1)
            Two columns of X by number or name, or "components" for the first two
            components of K̃.
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        **points : dict
            Passed to `ax.scatter`.

        Returns
        -------
        display : object
            The display, drawn.
        """
        check_landmarks(landmarks)
        projection = project_to_plane(landmarks, X, features)
        return cls(projection.rows, projection.landmarks, projection.names).plot(
            ax, **points
        )

    def plot(self, ax: Any = None, **points: Any) -> Self:
        """Draw rows and landmarks.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        **points : dict
            Passed to `ax.scatter`.

        Returns
        -------
        display : object
            The display, drawn.
        """
        ax = self._set_axes(ax)
        options = {"s": 6, "color": "0.6", "linewidths": 0, "label": "rows"}
        ax.scatter(*self.rows.T, **options | points)
        if self.landmarks is not None:
            label = f"{len(self.landmarks)} landmarks"
            ax.scatter(*self.landmarks.T, s=16, color="C1", label=label, zorder=3)
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        ax.legend()
        return self


def approximation_and_ridge(
    landmarks: Landmarks, X: Any, ridge: float | None
) -> tuple[Approximation, float]:
    """K̃ of rows, and λ: the one given, else the λ that landmarks were drawn by.

    Else the trace error divided by their number: the paper's λ for k components is
    (1/k)·Σ_{i>k} σᵢ(K), with the error of K̃ in place of that of the best k directions.
    """
    check_landmarks(landmarks)
    approximation = approximate(X, landmarks)
    if ridge is None:
        ridge = landmarks.ridge
    if ridge is None:
        # Where all rows are landmarks the error is rounding alone.
        min_error = float(np.finfo(np.float32).eps) * approximation.trace()
        ridge = max(approximation.trace_error, min_error) / len(landmarks)
    return approximation, ridge


class LeverageDisplay(BaseRowsDisplay):
    """Histogram of ridge leverage scores, with those of the landmarks below it.

    A row of score 1 resembles no other row. Many rows with small scores resemble each
    other, and a few landmarks represent all of them. The sum of the scores is the
    effective dimension.

    Parameters
    ----------
    scores : ndarray of shape (n_samples,)
        Ridge leverage scores of the rows.
    ridge : float
        The ridge λ of the scores.
    chosen : ndarray of int, default=None
        Row numbers of the landmarks, if they are rows.

    Attributes
    ----------
    effective_dimension : float
        Sum of the scores.
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure of the plot.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import select_landmarks
    >>> from nystrom.displays import LeverageDisplay
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> landmarks = select_landmarks(X, n_landmarks=30, random_state=0)
    >>> display = LeverageDisplay.from_landmarks(landmarks, X)
    >>> display.scores.shape
    (500,)
    """

    def __init__(
        self, scores: np.ndarray, *, ridge: float, chosen: np.ndarray | None = None
    ) -> None:
        self.scores = np.asarray(scores, dtype=np.float64)
        self.ridge = ridge
        self.chosen = chosen
        self.effective_dimension = float(self.scores.sum())

    @classmethod
    def from_landmarks(  # type: ignore[override]
        cls,
        landmarks: Landmarks,
        X: Any,
        *,
        ridge: float | None = None,
        ax: Any = None,
        **bars: Any,
    ) -> Self:
        """Draw the scores of the rows X, estimated from landmarks in two passes.

        Parameters
        ----------
        landmarks : Landmarks
            Landmarks from `select_landmarks` or `estimator.landmarks_`.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", the square kernel matrix.
        ridge : float, default=None
            The ridge λ. None uses the λ of the selection, otherwise the trace error
            divided by the number of landmarks.
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        **bars : dict
            Passed to `ax.hist`.

        Returns
        -------
        display : object
            The display, drawn.
        """
        approximation, ridge = approximation_and_ridge(landmarks, X, ridge)
        scores = arrays.to_host(approximation.leverage_scores(ridge))
        are_rows = landmarks.indices is not None and landmarks.n_rows == len(scores)
        chosen = landmarks.indices if are_rows else None
        return cls(scores, ridge=ridge, chosen=chosen).plot(ax, **bars)

    def plot(self, ax: Any = None, **bars: Any) -> Self:
        """Draw the histogram.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        **bars : dict
            Passed to `ax.hist`.

        Returns
        -------
        display : object
            The display, drawn.
        """
        ax = self._set_axes(ax)
        scores = self.scores[self.scores > 0]
        min_score = scores.min(initial=1.0)
        bins = np.geomspace(min(min_score, 0.5), max(1.0, scores.max(initial=1.0)), 41)
        ax.hist(scores, bins, **{"label": f"{len(self.scores)} rows"} | bars)
        if self.chosen is not None:
            landmark_scores = self.scores[self.chosen]
            ax.plot(
                landmark_scores,
                np.full(len(landmark_scores), 0.02),
                "|",
                color="C1",
                transform=ax.get_xaxis_transform(),
                label=f"{len(landmark_scores)} landmarks",
            )
        ax.set(
            xscale="log",
            yscale="log",
            xlabel=f"ridge leverage score, λ = {self.ridge:.2g}",
            ylabel="rows",
            title=f"effective dimension {self.effective_dimension:.3g}",
        )
        ax.legend()
        return self


@dataclass(eq=False)
class ClusterDisplay(BaseDisplay):
    """Rows in a plane, coloured by cluster.

    Parameters
    ----------
    rows : ndarray of shape (n_drawn, 2)
        Coordinates of the rows.
    labels : ndarray of shape (n_drawn,)
        Cluster of each row.
    sizes : ndarray of shape (n_clusters,)
        Number of rows of each cluster.
    names : pair of str
        Labels of the axes.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure of the plot.

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

    rows: np.ndarray
    labels: np.ndarray
    sizes: np.ndarray
    names: tuple[str, ...]

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
        """Draw the rows X coloured by the clusters of a fitted `KernelKMeans`.

        Parameters
        ----------
        estimator : KernelKMeans
            The fitted estimator.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", the square kernel matrix.
        features : pair of int or str, or "components", default=(0, 1)
            Two columns of X by number or name, or "components" for the first two
            components of K̃.
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        **points : dict
            Passed to `ax.scatter`.

        Returns
        -------
        display : object
            The display, drawn.
        """
        if not isinstance(estimator, KernelKMeans):
            raise TypeError(
                f"ClusterDisplay draws a fitted KernelKMeans, not "
                f"{type(estimator).__name__}."
            )
        projection = project_to_plane(fitted_landmarks(estimator), X, features)
        labels = np.asarray(estimator.predict(X))
        sizes = np.bincount(labels, minlength=estimator.n_clusters)
        return cls(
            projection.rows, labels[projection.row_indices], sizes, projection.names
        ).plot(ax, **points)

    def plot(self, ax: Any = None, **points: Any) -> Self:
        """Draw the clusters.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        **points : dict
            Passed to `ax.scatter`.

        Returns
        -------
        display : object
            The display, drawn.
        """
        ax = self._set_axes(ax)
        for cluster, size in enumerate(self.sizes):
            members = self.rows[self.labels == cluster]
            label = f"{cluster}: {size} rows"
            ax.scatter(*members.T, **{"s": 6, "linewidths": 0, "label": label} | points)
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        if len(self.sizes) <= 12:
            ax.legend(title="cluster")
        return self
