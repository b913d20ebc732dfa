"""What ridge searches try: alphas, widths and numbers of landmarks, and their ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _arrays as arrays
from ..edge.warnings import warn
from ..kernels import Kernel
from ..kernels.names import takes_width
from ..refusals import count
from ..sources import Source
from ..tried import tried_rows
from .ridge_parameters import as_numbers

#: The alphas that are tried where none are given, in units of a typical k(x, x).
ALPHAS = np.logspace(-3, 3, 13)
#: The widths that gammas="auto" stands for, in units of gamma="scale".
WIDTHS = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)
#: The end of a grid is worth a word where the best there is better than its neighbour
#: by more than this share of the worst error in the grid.
WORTH = 0.01
#: Of a grid that nobody chose.
WORTH_OF_DEFAULTS = 0.1
#: Fewer rows than this say too little for that.
LEAST_ROWS = 100


def check_alphas_given(alphas: Any) -> None:
    """One or more numbers above 0, or None."""
    if alphas is None:
        return
    values = np.atleast_1d(as_numbers(alphas))
    if values.ndim != 1 or not len(values) or not np.all(np.isfinite(values)):
        raise ValueError(
            f"alphas={alphas!r} is not allowed; give one or more finite numbers > 0."
        )
    if np.any(values <= 0):
        raise ValueError(f"alphas={alphas!r} is not allowed; all must be > 0.")


def alphas_for(alphas: Any, kernel: Kernel, source: Source) -> np.ndarray:
    """What was given; else the default grid, scaled to the kernel's values."""
    if alphas is not None:
        return np.atleast_1d(as_numbers(alphas))
    diagonal = arrays.to_host(kernel.diag(tried_rows(source).points))
    typical = float(np.mean(np.abs(diagonal), dtype=np.float64))
    usual = 1e-100 < typical < 1e100
    return ALPHAS * 10.0 ** round(np.log10(typical)) if usual else ALPHAS


def widths_given(gamma: Any, gammas: Any, kernel: Any) -> list[Any] | None:
    """The widths to try, as they were given; None where they come from the data."""
    takes = isinstance(kernel, str) and takes_width(kernel)
    if isinstance(gammas, str) and gammas == "auto":
        return None if gamma is None and takes else [gamma]
    if gammas is None:
        return [gamma]
    if gamma is not None:
        raise ValueError(
            f"gamma={gamma!r} and gammas={gammas!r} both set the width; give one of "
            "them."
        )
    if not is_list(gammas) or not len(gammas):
        raise ValueError(
            f"gammas={gammas!r} is not allowed; it is a sequence of at least one "
            "width, or 'auto'."
        )
    if not takes:
        raise ValueError(
            f"gammas={gammas!r} cannot be combined with kernel={kernel!r}; it is for "
            "kernels given by name that have a gamma."
        )
    return list(gammas)


def sizes_given(estimator: Any, folds: bool) -> list[int] | None:
    """The numbers of landmarks to try, ascending; None where there is but one."""
    given = estimator.n_landmarks
    if not is_list(given):
        if estimator.prefer_fewer:
            raise ValueError(
                f"prefer_fewer=True has no effect with n_landmarks={given!r}, one "
                "number; give several to choose from, such as [100, 300, 1000], or "
                "prefer_fewer=False."
            )
        return None
    sizes = sorted({count(size, "n_landmarks") for size in given})
    if not sizes:
        raise ValueError("n_landmarks is empty; give at least one number.")
    for name in ("ridge", "max_trace_error"):
        if getattr(estimator, name) is not None:
            raise ValueError(
                f"n_landmarks={given!r} and {name}={getattr(estimator, name)!r} both "
                "say how many landmarks there are to be; give one of them."
            )
    if estimator.prefer_fewer and not folds:
        raise ValueError(
            f"prefer_fewer=True needs folds, which cv={estimator.cv!r} has not: "
            "without them there is no standard error. Use cv=5, or prefer_fewer=False."
        )
    return sizes


def is_list(given: Any) -> bool:
    """Whether several values were given."""
    if isinstance(given, np.ndarray):
        return given.ndim > 0
    text = isinstance(given, (str, bytes, bytearray, memoryview))
    return isinstance(given, Sequence) and not text


def warn_at_end(
    name: str, values: Sequence[Any], errors: np.ndarray, doubt: float, *, given: bool
) -> bool:
    """Say so where the best of a grid is at an end, and clearly better than inside.

    `doubt` is the standard error of the best, 0 where it is not known. Two values are
    no grid: one of them is always at an end.
    """
    if not all(isinstance(v, (int, float, np.number)) for v in values):
        return False  # a rule, or a width per feature: no order to be at the end of
    grid, first = np.unique(np.asarray(values, dtype=np.float64), return_index=True)
    if len(grid) < 3:
        return False
    errors = errors[first]
    best = int(np.argmin(errors))
    inner = {0: 1, len(grid) - 1: len(grid) - 2}.get(best)
    if inner is None:
        return False
    worst = float(np.abs(errors[np.isfinite(errors)]).max(initial=0.0))
    share = WORTH if given else WORTH_OF_DEFAULTS
    if not errors[inner] - errors[best] > max(share * worst, 2 * doubt):
        return False
    step = grid[best] / grid[inner]
    further = " and ".join(f"{grid[best] * step**i:.3g}" for i in (1, 2))
    which, direction = ("smallest", "smaller") if best == 0 else ("largest", "larger")
    warn(
        f"The best of {name}, {grid[best]:.4g}, is the {which} that was tried, and the "
        f"error still falls towards {direction} ones, from {errors[inner]:.4g} at "
        f"{grid[inner]:.4g} to {errors[best]:.4g}. Try {direction} {name} too, such as "
        f"{further}."
    )
    return True
