"""Where the landmarks lie among the rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..landmarks import Landmarks
from .axes import OfRows, check_landmarks, on_axes
from .in_two_dimensions import plane


class LandmarksDisplay(OfRows):
    """Rows as points of a plane, and the landmarks among them.

    Parameters
    ----------
    rows : ndarray of shape (n_drawn, 2)
        Where the rows are.
    landmarks : ndarray of shape (n_landmarks, 2) or None
        Where the landmarks are; None where they have no place in this plane.
    names : pair of str
        What the axes are called.

    Attributes
    ----------
    ax_, figure_
        What `plot` drew on.

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

    ax_: Any
    figure_: Any

    def __init__(
        self, rows: np.ndarray, landmarks: np.ndarray | None, names: tuple[str, str]
    ) -> None:
        self.rows = rows
        self.landmarks = landmarks
        self.names = names

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
        """Draw the rows X and landmarks.

        `features` are two columns of X by number or name, or "components" for the
        first two components of K̃. Of many rows every so many are drawn.
        """
        check_landmarks(landmarks)
        found = plane(landmarks, X, features)
        return cls(found.rows, found.landmarks, found.names).plot(ax, **points)

    def plot(self, ax: Any = None, **points: Any) -> Self:
        """Draw on the axes given, or on new ones; further words go to `ax.scatter`."""
        ax = on_axes(self, ax)
        options = {"s": 6, "color": "0.6", "linewidths": 0, "label": "rows"}
        ax.scatter(*self.rows.T, **options | points)
        if self.landmarks is not None:
            label = f"{len(self.landmarks)} landmarks"
            ax.scatter(*self.landmarks.T, s=16, color="C1", label=label, zorder=3)
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        ax.legend()
        return self
