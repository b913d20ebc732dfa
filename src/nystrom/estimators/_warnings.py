"""Warnings that a fit may give, each with what to do."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from .. import _arrays as arrays
from ..engines.progress import write_above_status_line
from ..kernels import Kernel
from ..landmarks import Landmarks


@contextmanager
def explain_memory_errors(caller: str) -> Iterator[None]:
    """Let a MemoryError say what would help."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        # Python's own words where there is no room for the stack of a thread.
        if isinstance(error, RuntimeError) and "start new thread" not in str(error):
            raise
        what = f": {error}" if str(error) else ""
        raise MemoryError(
            f"{caller} ran out of memory{what.rstrip('.')}. Use fewer landmarks "
            "(memory grows with their square), fewer threads (n_jobs=1), rows "
            "in float32, or rows that stay in a file (nystrom.sources.open)."
        ) from error


#: K is nearly diagonal if the relative trace error exceeds the first and landmarks
#: represent fewer rows than the second on average.
DIAGONAL_TRACE_ERROR, DIAGONAL_ROWS_PER_LANDMARK = 0.9, 2.0


#: K is nearly constant where its least entry is more than this share of its largest,
#: among so many landmarks.
CONSTANT_ENTRY_RATIO, N_PROBED_LANDMARKS = 0.9999, 32


def warn_about_landmarks(landmarks: Landmarks) -> None:
    """The warnings a user should see once: an indefinite kernel, a cap reached, a
    width that makes all rows alike or none.
    """
    if landmarks.indefinite:
        warn_indefinite(
            landmarks.kernel,
            "the landmarks were not chosen by its scores, and its negative part is "
            "dropped",
        )
    max_trace_error, error = landmarks.max_trace_error, landmarks.error
    if (
        max_trace_error is not None
        and error is not None
        and error.value > max_trace_error
    ):
        warn(
            f"max_trace_error={max_trace_error:.4g} was not reached: {len(landmarks)} "
            f"landmarks, of rank {landmarks.rank}, have relative trace error {error}. "
            "Raise the limit, pass None for no limit, or allow a larger error."
        )
    if landmarks.n_requested is not None:
        error_sentence = f" Relative trace error: {error}." if error else ""
        warn(
            f"max_spectral_error={landmarks.ridge:.4g} needs about "
            f"{landmarks.n_requested} landmarks, more than the {len(landmarks)} "
            f"allowed.{error_sentence} Raise the limit, or pass None for no limit."
        )
    if not landmarks.kernel.traits.is_distance_based:
        return
    advice = "Scale the features (StandardScaler) and change gamma:"
    if _is_nearly_diagonal(landmarks):
        warn(
            f"The kernel matrix is nearly diagonal: with {len(landmarks)} landmarks "
            f"the relative trace error is {landmarks.error}. The width of "
            f"{landmarks.kernel} is probably too small for these rows. {advice} a "
            "smaller gamma, 'median', or 'learn' with targets."
        )
    elif _is_nearly_constant(landmarks):
        warn(
            "The kernel matrix is nearly constant: the width of "
            f"{landmarks.kernel} is probably too large for these rows. {advice} a "
            "larger gamma, 'median', or 'learn' with targets."
        )


def _is_nearly_diagonal(landmarks: Landmarks) -> bool:
    """Whether each landmark stands for little but itself.

    Of a diagonal K landmarks leave 1 − s/n; few of them may leave much of any K.
    """
    error, n = landmarks.error, landmarks.n_rows
    if error is None or n is None or error.value <= DIAGONAL_TRACE_ERROR:
        return False
    return (1 - error.value) * n < DIAGONAL_ROWS_PER_LANDMARK * len(landmarks)


def _is_nearly_constant(landmarks: Landmarks) -> bool:
    """Whether even landmarks, which are far from each other, look all the same."""
    s = len(landmarks)
    probed = np.arange(0, s, -(-s // N_PROBED_LANDMARKS))
    points = arrays.take_rows(landmarks.points, probed)
    is_first_copy = arrays.first_occurrences(points)
    if len(probed) < 2 or (is_first_copy is not None and not is_first_copy.any()):
        return False  # they are the same
    K = landmarks.kernel.gram(points)
    return bool(K.min() > CONSTANT_ENTRY_RATIO * K.max())


def warn_of_small_alpha(alpha: float, least: float) -> None:
    """Warn about an alpha below the rounding of the matrix that it is added to."""
    if 0 < alpha < least:
        warn(
            f"alpha={alpha:.3g} is below the rounding of this kernel matrix in "
            f"float64. Raise it to {least:.2g} or more, or use alpha=0 for least "
            "squares."
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
    with write_above_status_line():  # not into the line of a bar
        warnings.warn(message, category, stacklevel=level)
