"""How the ridge leverage scores of the rows are spread, and where the landmarks are."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .. import _arrays as arrays
from ..approximation import Approximation
from ..functions import approximate
from ..landmarks import Landmarks
from .axes import OfRows, check_landmarks, number, on_axes


def natural_ridge(approximation: Approximation) -> float:
    """The λ that landmarks were drawn by; else what they leave of tr K, shared by all.

    That is what the paper's λ for k components is, (1/k)·Σ_{i>k} σᵢ(K), with what K̃
    leaves in place of what the best k directions would.
    """
    landmarks = approximation.landmarks
    if landmarks.ridge is not None:
        return landmarks.ridge
    # Where all rows are landmarks nothing is left but rounding.
    least = float(np.finfo(np.float32).eps) * approximation.trace()
    return max(approximation.trace_error, least) / len(landmarks)


class LeverageDisplay(OfRows):
    """A histogram of ridge leverage scores, with those of the landmarks below it.

    A row of score 1 is like no other; many rows of small scores are alike, and few
    landmarks stand for all of them. The scores add up to the effective dimension.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        Ridge leverage scores of the rows.
    ridge : float
        The λ that they are for.
    chosen : ndarray of int, default=None
        The row numbers of the landmarks, where they are rows.

    Attributes
    ----------
    effective_dimension : float
        The sum of the scores.
    ax_, figure_
        What `plot` drew on.

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

    ax_: Any
    figure_: Any

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

        `ridge` is λ; None: the one that the landmarks were drawn by, else what they
        leave of tr K divided by their number.
        """
        check_landmarks(landmarks)
        found = approximate(X, landmarks)
        ridge = natural_ridge(found) if ridge is None else ridge
        scores = arrays.to_host(found.leverage_scores(ridge))
        ours = landmarks.indices is not None and landmarks.n_rows == len(scores)
        chosen = landmarks.indices if ours else None
        return cls(scores, ridge=ridge, chosen=chosen).plot(ax, **bars)

    def plot(self, ax: Any = None, **bars: Any) -> Self:
        """Draw on the axes given, or on new ones; further words go to `ax.hist`."""
        ax = on_axes(self, ax)
        scores = self.scores[self.scores > 0]
        least = scores.min(initial=1.0)
        bins = np.geomspace(min(least, 0.5), max(1.0, scores.max(initial=1.0)), 41)
        ax.hist(scores, bins, **{"label": f"{len(self.scores)} rows"} | bars)
        if self.chosen is not None:
            marks = self.scores[self.chosen]
            ax.plot(
                marks,
                np.full(len(marks), 0.02),
                "|",
                color="C1",
                transform=ax.get_xaxis_transform(),
                label=f"{len(marks)} landmarks",
            )
        ax.set(
            xscale="log",
            yscale="log",
            xlabel=f"ridge leverage score, λ = {number(self.ridge)}",
            ylabel="rows",
            title=f"effective dimension {self.effective_dimension:.3g}",
        )
        ax.legend()
        return self
