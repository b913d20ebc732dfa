"""Warnings a user should see once, at the line that caused them."""

from __future__ import annotations

import sys
import warnings

from ..kernels import Kernel
from ..landmarks import Landmarks


def warn_about(landmarks: Landmarks) -> None:
    """The warnings a user should see once: an indefinite kernel, a cap reached."""
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
    warnings.warn(message, category, stacklevel=level)
