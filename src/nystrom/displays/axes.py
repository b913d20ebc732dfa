"""What all displays share: axes to draw on, and what they are made from."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..landmarks import Landmarks
from ..optional import library
from ..refusals import named_plainly

#: More rows than this are thinned out before they are drawn: a picture has no more.
MOST_POINTS = 5000


@named_plainly
class OfRows:
    """A display of rows and landmarks, which an estimator has as well."""

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, **options: Any) -> Self:
        """Draw the rows X with the landmarks of a fitted estimator.

        Further words are those of `from_landmarks`.
        """
        return cls.from_landmarks(landmarks_of(estimator), X, **options)

    @classmethod
    def from_landmarks(cls, landmarks: Landmarks, X: Any, **options: Any) -> Self:
        """Draw the rows X and landmarks."""
        raise NotImplementedError


def on_axes(display: Any, ax: Any) -> Any:
    """The axes given, or new ones; kept as `ax_` and `figure_`."""
    if ax is None:
        pyplot = library("matplotlib.pyplot", "plot", "A display")
        _, ax = pyplot.subplots(layout="constrained")
    display.ax_, display.figure_ = ax, ax.figure
    return ax


def landmarks_of(estimator: Any) -> Landmarks:
    """The landmarks of a fitted estimator, or of the last step of a pipeline."""
    last = estimator[-1] if hasattr(estimator, "named_steps") else estimator
    found = getattr(last, "landmarks_", None)
    if isinstance(found, Landmarks):
        return found
    if isinstance(found, tuple):
        raise TypeError(
            f"A {type(last).__name__} has landmarks of either side; use "
            "from_landmarks(estimator.landmarks_[0], ...)."
        )
    raise ValueError(
        f"This {type(last).__name__} has no landmarks: fit it first, or give an "
        "estimator of nystrom."
    )


def check_landmarks(landmarks: Any) -> None:
    """Refuse what is not landmarks, with a word on where they come from."""
    if not isinstance(landmarks, Landmarks):
        raise TypeError(
            f"landmarks are Landmarks, not {type(landmarks).__name__}: from "
            "nystrom.select_landmarks, or estimator.landmarks_."
        )


def thinned(n_rows: int) -> np.ndarray:
    """Row numbers at equal distances, few enough to draw."""
    return np.unique(np.linspace(0, n_rows - 1, min(n_rows, MOST_POINTS)).astype(int))


def number(value: float) -> str:
    """A number as it is written beside a line: 0.012, 3·10⁻⁵."""
    text = f"{value:.2g}"
    if "e" not in text:
        return text
    digits, exponent = text.split("e")
    power = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{power}" if digits == "1" else f"{digits}·10{power}"
