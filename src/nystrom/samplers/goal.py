"""How many landmarks there are to be: a number, or as many as something takes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

from ..refusals import count


@dataclass(frozen=True)
class Size:
    """So many landmarks; all rows where there are no more."""

    n_landmarks: int

    def __post_init__(self) -> None:
        count(self.n_landmarks, "n_landmarks")

    def __str__(self) -> str:
        return f"n_landmarks={self.n_landmarks}"


@dataclass(frozen=True)
class Ridge:
    """As many as ‖K − K̃‖₂ ≤ ridge takes, at most `at_most`."""

    ridge: float
    at_most: int | None = None

    def __post_init__(self) -> None:
        check_ridge(self.ridge)
        count(self.at_most, "at_most", optional=True)

    def __str__(self) -> str:
        return f"ridge={self.ridge}"


@dataclass(frozen=True)
class MaxTraceError:
    """As many as tr(K − K̃) ≤ tolerance·tr K takes, at most `at_most`."""

    tolerance: float
    at_most: int | None = None

    def __post_init__(self) -> None:
        number = isinstance(self.tolerance, Real)
        if not number or not 0 < float(self.tolerance) < 1:
            raise ValueError(
                f"max_trace_error={self.tolerance!r} is not allowed; it is "
                "tr(K − K̃)/tr K, a number between 0 and 1, or None to let the number "
                "of landmarks decide."
            )
        count(self.at_most, "at_most", optional=True)

    def __str__(self) -> str:
        return f"max_trace_error={self.tolerance}"


Goal = Size | Ridge | MaxTraceError


def as_goal(goal: Any, ridge: float | None = None) -> Goal:
    """A goal as it is; a number is a size, or the most there may be beside a ridge."""
    if isinstance(goal, Goal):
        return goal
    if ridge is not None:
        return Ridge(ridge, at_most=goal)
    if goal is None:
        raise TypeError("How many landmarks? Give a number, or a goal.")
    return Size(int(goal))


def check_ridge(ridge: Any) -> None:
    """λ must be a finite number > 0."""
    number = isinstance(ridge, Real) and not isinstance(ridge, bool)
    if not number or not 0 < float(ridge) < math.inf:
        raise ValueError(
            f"ridge={ridge!r} is not allowed; λ is a finite number > 0, or None to let "
            "n_landmarks decide."
        )
