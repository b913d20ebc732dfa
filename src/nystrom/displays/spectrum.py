"""The eigenvalues of K̃, with λ and the effective dimension."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .. import _arrays as arrays
from ..functions import approximate
from ..landmarks import Landmarks
from .axes import OfRows, check_landmarks, number, on_axes
from .leverage import natural_ridge


class SpectrumDisplay(OfRows):
    """The eigenvalues of K̃ in descending order, and the part of them above λ.

    Parameters
    ----------
    eigenvalues : ndarray of shape (rank,)
        The eigenvalues of K̃ that are not 0, descending.
    ridge : float
        λ: directions with larger eigenvalues count.

    Attributes
    ----------
    effective_dimension : float
        Σ σᵢ/(σᵢ + λ): how many directions there are at this λ.
    ax_, figure_, line_
        What `plot` drew.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import select_landmarks
    >>> from nystrom.displays import SpectrumDisplay
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> landmarks = select_landmarks(X, n_landmarks=30, random_state=0)
    >>> display = SpectrumDisplay.from_landmarks(landmarks, X, ridge=1.0)
    >>> 0 < display.effective_dimension < 30
    True
    """

    ax_: Any
    figure_: Any
    line_: Any

    def __init__(self, eigenvalues: np.ndarray, *, ridge: float) -> None:
        self.eigenvalues = np.asarray(eigenvalues, dtype=np.float64)
        self.ridge = ridge
        values = self.eigenvalues
        self.effective_dimension = float(np.sum(values / (values + ridge)))

    @classmethod
    def from_landmarks(  # type: ignore[override]
        cls,
        landmarks: Landmarks,
        X: Any,
        *,
        ridge: float | None = None,
        ax: Any = None,
        **line: Any,
    ) -> Self:
        """Draw the spectrum of K̃ for the rows X; `ridge` as for `LeverageDisplay`."""
        check_landmarks(landmarks)
        found = approximate(X, landmarks)
        ridge = natural_ridge(found) if ridge is None else ridge
        values = arrays.to_host(found.eigenvalues())
        return cls(values, ridge=ridge).plot(ax, **line)

    def plot(self, ax: Any = None, **line: Any) -> Self:
        """Draw on the axes given, or on new ones; further words go to `ax.plot`."""
        ax = on_axes(self, ax)
        order = np.arange(1, len(self.eigenvalues) + 1)
        options = {"label": "eigenvalues of K̃"} | line
        (self.line_,) = ax.plot(order, self.eigenvalues, **options)
        ax.axhline(
            self.ridge, color="C1", linestyle="--", label=f"λ = {number(self.ridge)}"
        )
        ax.axvline(
            self.effective_dimension,
            color="C2",
            linestyle=":",
            label=f"effective dimension {self.effective_dimension:.3g}",
        )
        ax.set(xscale="log", yscale="log", xlabel="number", ylabel="eigenvalue")
        ax.grid(alpha=0.3)
        ax.legend()
        return self
