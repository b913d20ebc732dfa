"""Whether predictive deviations are what they say: how many targets lie within them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import erf

from .axes import on_axes

#: The shares of normal intervals that are looked at.
LEVELS = np.linspace(0.02, 0.98, 49)


class CoverageDisplay:
    """The share of targets inside intervals, against the share that should be.

    For normal intervals mean ± z·std of growing width. On the diagonal the deviations
    are right; below it they are too small, above it too large. For the probabilities of
    classifiers scikit-learn has `sklearn.calibration.CalibrationDisplay`.

    Parameters
    ----------
    distances : ndarray of shape (n_rows,)
        `|y − mean|/std` of rows that the model was not fitted on.
    name : str, default=None
        For the legend.

    Attributes
    ----------
    expected, observed : ndarray
        The shares, and what was found.
    ax_, figure_, line_
        What `plot` drew.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import KernelRidge
    >>> from nystrom.displays import CoverageDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (1000, 1))
    >>> y = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(1000)
    >>> model = KernelRidge(0.1, kernel="rbf", n_landmarks=40, random_state=0)
    >>> model = model.fit(X[:500], y[:500])
    >>> display = CoverageDisplay.from_estimator(model, X[500:], y[500:])
    >>> bool(abs(display.within(0.95) - 0.95) < 0.04)
    True
    """

    ax_: Any
    figure_: Any
    line_: Any

    def __init__(self, distances: np.ndarray, *, name: str | None = None) -> None:
        self.distances = np.asarray(distances, dtype=np.float64).ravel()
        self.name = name
        self.expected = LEVELS
        self.observed = np.array([self.within(level) for level in LEVELS])

    def within(self, level: float) -> float:
        """The share of targets inside the interval that should hold so many."""
        # A normal deviate is within ±z with probability erf(z/√2).
        return float(np.mean(erf(self.distances / np.sqrt(2)) <= level))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        noise: bool = True,
        name: str | None = None,
        ax: Any = None,
        **line: Any,
    ) -> Self:
        """Draw the deviations of a fitted `KernelRidge` or `KernelRidgeCV` on new rows.

        With `noise` of predictions of new targets; without it of their mean, which
        targets with noise do not stay within.
        """
        if not hasattr(estimator, "predict"):
            raise TypeError(
                f"{type(estimator).__name__} predicts nothing; CoverageDisplay "
                "draws a fitted KernelRidge or KernelRidgeCV."
            )
        mean, std = estimator.predict(X, return_std=True, noise=noise)
        return cls.from_predictions(y, mean, std, name=name, ax=ax, **line)

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        mean: Any,
        std: Any,
        *,
        name: str | None = None,
        ax: Any = None,
        **line: Any,
    ) -> Self:
        """Draw targets, predicted means and deviations, however they were found."""
        y, mean, std = (np.asarray(part, dtype=np.float64) for part in (y, mean, std))
        if y.shape != mean.shape:
            raise ValueError(
                f"y has shape {y.shape} and mean {mean.shape}; give the targets of the "
                "rows that were predicted."
            )
        if std.ndim < y.ndim:
            std = std[:, None]  # one for all targets
        with np.errstate(divide="ignore", invalid="ignore"):
            distances = np.abs(y - mean) / std
        # A deviation of 0 holds what is hit exactly, and nothing else.
        return cls(np.nan_to_num(distances, nan=0.0), name=name).plot(ax, **line)

    def plot(self, ax: Any = None, **line: Any) -> Self:
        """Draw on the axes given, or on new ones; further words go to `ax.plot`."""
        ax = on_axes(self, ax)
        ax.plot([0, 1], [0, 1], ":", color="0.5")
        label = f"{self.within(0.95):.1%} within the 95 % interval"
        label = label if self.name is None else f"{self.name}: {label}"
        options = {"label": label} | line
        (self.line_,) = ax.plot(self.expected, self.observed, **options)
        ax.set(
            xlabel="share that should lie within",
            ylabel="share that does",
            xlim=(0, 1),
            ylim=(0, 1),
            aspect="equal",
        )
        ax.grid(alpha=0.3)
        ax.legend(loc="upper left")
        return self
