"""Warnings a user should see once, at the line that caused them."""

from __future__ import annotations

import sys
import warnings

import numpy as np

from .. import _arrays as arrays
from ..engines.line import aside
from ..kernels import Kernel
from ..landmarks import Landmarks

#: K is nearly diagonal where more than this share of its trace is left, and landmarks
#: stand for fewer rows than this on the mean.
DIAGONAL, FEW_ROWS = 0.9, 2.0
#: K is nearly constant where its least entry is more than this share of its largest,
#: among so many landmarks.
CONSTANT, SOME_LANDMARKS = 0.9999, 32
#: What is left of all rows is nothing where float32 rounding may have made it.
NOTHING_LEFT = 1e-5


def warn_about(landmarks: Landmarks) -> None:
    """The warnings a user should see once: an indefinite kernel, a cap reached, a
    width that makes all rows alike or none.
    """
    if landmarks.indefinite:
        warn_indefinite(
            landmarks.kernel,
            "the landmarks were not chosen by its scores, and its negative part is "
            "dropped",
        )
    asked, error = landmarks.max_trace_error, landmarks.error
    if asked is not None and error is not None and error.value > asked:
        warn(
            f"max_trace_error={asked:.4g} was not reached: {len(landmarks)} landmarks, "
            f"of rank {landmarks.rank}, have relative trace error {error}. Raise the "
            "limit on their number, pass None for none, or allow a larger error."
        )
    if landmarks.n_wanted is not None:
        reached = (
            f" Relative trace error: {landmarks.error}." if landmarks.error else ""
        )
        warn(
            f"ridge={landmarks.ridge:.4g} asks for about {landmarks.n_wanted} "
            f"landmarks, more than the {len(landmarks)} allowed.{reached} Raise the "
            "limit, or pass None for none."
        )
    _warn_about_width(landmarks)


def _warn_about_width(landmarks: Landmarks) -> None:
    """Say so where a kernel of a distance finds no two rows alike, or all of them."""
    if not landmarks.kernel.traits.of_distance:
        return
    advice = "Look at the scale of the features (StandardScaler) and at gamma:"
    if _is_diagonal(landmarks):
        warn(
            f"K is nearly diagonal: {len(landmarks)} landmarks leave "
            f"{landmarks.error} of its trace. To {landmarks.kernel} hardly two rows "
            f"are alike. {advice} a smaller one, 'median', or 'learn' with targets."
        )
    elif _is_constant(landmarks):
        warn(
            f"K is nearly constant: to {landmarks.kernel} all rows are alike. "
            f"{advice} a larger one, 'median', or 'learn' with targets."
        )


def _is_diagonal(landmarks: Landmarks) -> bool:
    """Whether each landmark stands for little but itself.

    Of a diagonal K landmarks leave 1 − s/n; few of them may leave much of any K.
    """
    error, n = landmarks.error, landmarks.n_rows
    if error is None or n is None or error.value <= DIAGONAL:
        return False
    return (1 - error.value) * n < FEW_ROWS * len(landmarks)


def _is_constant(landmarks: Landmarks) -> bool:
    """Whether even landmarks, which are far from each other, look all the same."""
    s = len(landmarks)
    some = np.arange(0, s, -(-s // SOME_LANDMARKS))
    points = arrays.take_rows(landmarks.points, some)
    first = arrays.first_of_equals(points)
    if len(some) < 2 or (first is not None and not first.any()):
        return False  # they are the same
    K = landmarks.kernel.gram(points)
    return bool(K.min() > CONSTANT * K.max())


def warn_alike(landmarks: Landmarks, alike: bool | None = None) -> None:
    """Say so where nothing can be predicted, as a kernel sees no difference of rows.

    None where nobody has looked: one landmark that leaves nothing of a kernel of a
    distance is the same as all rows.
    """
    at_distance = landmarks.kernel.traits.of_distance
    if alike is None:
        error = landmarks.error
        little = error is not None and error.value <= NOTHING_LEFT
        alike = at_distance and landmarks.rank == 1 and little and landmarks.n_rows > 1
    # Different rows that are alike to a kernel of a distance: that was said of gamma.
    if alike and not (at_distance and _is_constant(landmarks)):
        warn(
            f"All rows of X are alike to {landmarks.kernel}, so that nothing but a "
            "constant can be predicted from them: look at the columns of X, and at the "
            "kernel."
        )


def warn_of_small_alpha(alpha: float, least: float) -> None:
    """Say so where alpha is lost in the rounding of what it is added to."""
    if 0 < alpha < least:
        warn(
            f"alpha={alpha:.3g} is less than float64 resolves beside this kernel "
            f"matrix, so that rounding decides how much it shrinks: raise it to "
            f"{least:.2g} or more, or use alpha=0 for least squares."
        )


def warn_indefinite(kernel: Kernel, consequence: str) -> None:
    """The warning that names the kernel, and says what follows."""
    warn(f"The kernel {kernel} is not positive semi-definite: {consequence}.")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """A warning that points at the user's own line, not at ours or scikit-learn's."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
        ("nystrom", "sklearn")
    ):
        frame, level = frame.f_back, level + 1
    with aside():  # not into the line of a bar
        warnings.warn(message, category, stacklevel=level)
