"""The error against the number of landmarks, all from one fit."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..landmarks import Landmarks
from ..refusals import number as check_number
from .axes import check_landmarks, landmarks_of, number, on_axes


class ErrorPathDisplay:
    """tr(K − K̃)/tr K of the first landmark, the first two, and so on.

    Parameters
    ----------
    errors : ndarray of shape (n_landmarks,)
        The relative trace error of every number of landmarks.
    goal : float, default=None
        An error that is wanted: the fewest landmarks that reach it are marked.
    name : str, default=None
        For the legend.

    Attributes
    ----------
    n_landmarks : int or None
        The fewest landmarks that reach the goal; None without one, or if none do.
    ax_, figure_, line_
        What `plot` drew.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import Nystroem
    >>> from nystrom.displays import ErrorPathDisplay
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> features = Nystroem(n_components=60, random_state=0)
    >>> _ = features.fit_transform(X)
    >>> display = ErrorPathDisplay.from_estimator(features, goal=0.01)
    >>> display.n_landmarks < 60
    True
    """

    ax_: Any
    figure_: Any
    line_: Any

    def __init__(
        self,
        errors: np.ndarray,
        *,
        goal: float | None = None,
        name: str | None = None,
    ) -> None:
        self.errors = np.asarray(errors, dtype=np.float64)
        self.goal = goal
        self.name = name
        self.n_landmarks: int | None = None
        if goal is not None:
            check_number(goal, "goal", least=0.0)
            enough = np.flatnonzero(self.errors <= goal)
            self.n_landmarks = int(enough[0]) + 1 if len(enough) else None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        goal: float | None = None,
        name: str | None = None,
        ax: Any = None,
        **line: Any,
    ) -> Self:
        """Draw the path of a fitted estimator; the parameters are those of `plot`."""
        found = landmarks_of(estimator)
        return cls.from_landmarks(found, goal=goal, name=name, ax=ax, **line)

    @classmethod
    def from_landmarks(
        cls,
        landmarks: Landmarks,
        *,
        goal: float | None = None,
        name: str | None = None,
        ax: Any = None,
        **line: Any,
    ) -> Self:
        """Draw the path of landmarks whose error a pass over all rows has found."""
        check_landmarks(landmarks)
        path = landmarks.error_path
        if path is None:
            raise ValueError(
                "The error of fewer landmarks is not known here. It is after "
                "Nystroem.fit_transform, after a fit of KernelRidge, KernelPCA or "
                "KernelCCA, and with max_trace_error=; not for landmarks without an "
                "order of their own, and not after Nystroem.fit alone."
            )
        name = landmarks.sampler if name is None else name
        return cls(path, goal=goal, name=name).plot(ax, **line)

    def plot(self, ax: Any = None, **line: Any) -> Self:
        """Draw on the axes given, or on new ones; further words go to `ax.plot`."""
        ax = on_axes(self, ax)
        sizes = np.arange(1, len(self.errors) + 1)
        # What is 0 has no place on a logarithmic axis.
        shown = np.where(self.errors > 0, self.errors, np.nan)
        (self.line_,) = ax.plot(sizes, shown, **{"label": self.name} | line)
        ax.set(
            xlabel="landmarks",
            ylabel="relative trace error, tr(K − K̃)/tr K",
            yscale="log" if np.any(self.errors > 0) else "linear",
        )
        ax.grid(alpha=0.3)
        if self.goal is not None:
            self._mark(ax)
        if self.name is not None:
            ax.legend()
        return self

    def _mark(self, ax: Any) -> None:
        """The goal, and how many landmarks it takes."""
        color = self.line_.get_color()
        if self.goal:
            ax.axhline(self.goal, color=color, linestyle=":", linewidth=1)
        if self.n_landmarks is None:
            text, where = f"{number(self.goal or 0.0)} is not reached", len(self.errors)
        else:
            text, where = f"{self.n_landmarks} landmarks", self.n_landmarks
            ax.axvline(where, color=color, linestyle=":", linewidth=1)
        right = where > len(self.errors) / 2
        # At the top, where the curve is not: it has fallen to the goal by then.
        ax.annotate(
            text,
            (where, 1),
            xycoords=ax.get_xaxis_transform(),
            xytext=(-6 if right else 6, -6),
            textcoords="offset points",
            ha="right" if right else "left",
            va="top",
        )
