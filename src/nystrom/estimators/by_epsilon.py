"""epsilon: as many landmarks as a bound on the risk takes, or a word beforehand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..edge.landmarks import goal_from
from ..edge.warnings import warn
from ..engines import Engine
from ..kernels import Kernel
from ..landmarks import Landmarks
from ..samplers import Goal, Ridge, as_sampler
from ..samplers.forecast import forecast
from ..sources import Source

#: With no limit on the number of landmarks, say so when more than this are needed.
MANY_LANDMARKS = 5000


def goal_for(estimator: Any, alpha: float) -> Goal:
    """How many landmarks, for ridge regression with `alpha`, the least there is."""
    epsilon = estimator.epsilon
    if epsilon is None:
        return estimator._goal()
    number = isinstance(epsilon, (int, float, np.integer, np.floating))
    if not number or isinstance(epsilon, bool) or not 0 < epsilon < 1:
        raise ValueError(
            f"epsilon={epsilon!r} is not allowed; the bound 1 + 3·epsilon on the "
            "risk is proven for 0 < epsilon < 1."
        )
    for name in ("ridge", "max_trace_error"):
        if getattr(estimator, name) is not None:
            raise ValueError(
                f"epsilon={epsilon!r} and {name}={getattr(estimator, name)!r} both say "
                "how many landmarks there are to be; give one of them."
            )
    if alpha <= 0:
        raise ValueError(
            f"epsilon={epsilon!r} needs alpha > 0: landmarks are chosen for "
            f"‖K − K̃‖₂ ≤ epsilon·alpha, and alpha is {alpha:g}."
        )
    goal = goal_from(
        estimator.n_landmarks, estimator.sampler, ridge=float(epsilon * alpha)
    )
    as_sampler(estimator.sampler, goal)
    return goal


def chosen_for_risk(
    estimator: Any,
    kernel: Kernel,
    source: Source,
    goal: Goal,
    engine: Engine,
    passes_after: float = 1.0,
) -> Landmarks:
    """Landmarks; with epsilon none where it clearly takes more than allowed."""
    if estimator.epsilon is not None:
        assert isinstance(goal, Ridge)
        _refuse_too_many(estimator, kernel, source, goal, engine)
    landmarks = estimator._chosen(
        kernel, source, engine, goal, passes_after=passes_after, delta=estimator.delta
    )
    if estimator.epsilon is not None and landmarks.n_wanted is not None:
        assert isinstance(goal, Ridge)
        d_eff = landmarks.effective_dimension or math.nan
        raise _too_many(estimator.epsilon, goal, f"{landmarks.n_wanted}", d_eff)
    return landmarks


def _refuse_too_many(
    estimator: Any, kernel: Kernel, source: Source, goal: Ridge, engine: Engine
) -> None:
    """Say that epsilon takes more than is allowed, before the long work begins."""
    free = Ridge(goal.ridge)
    found = forecast(kernel, source, free, estimator.delta, engine)
    size, d_eff = found.n_landmarks, found.effective_dimension
    # The estimate may be off; only what is clearly too many is refused by it.
    if goal.at_most is not None and size > 3 * goal.at_most:
        raise _too_many(estimator.epsilon, goal, f"about {size}", d_eff)
    if goal.at_most is None and size > MANY_LANDMARKS:
        alpha = goal.ridge / estimator.epsilon
        warn(
            f"epsilon={estimator.epsilon:g} at alpha={alpha:g} takes about {size} "
            f"landmarks (effective dimension {d_eff:.0f}) and {found.seconds:.2g} "
            "s or more, which is long work; n_landmarks sets a limit."
        )


def _too_many(epsilon: float, goal: Ridge, wanted: str, d_eff: float) -> ValueError:
    alpha = goal.ridge / epsilon
    return ValueError(
        f"epsilon={epsilon:g} at alpha={alpha:g} takes {wanted} landmarks (effective "
        f"dimension {d_eff:.0f} at epsilon·alpha), and n_landmarks={goal.at_most} "
        "allows no "
        "more. Raise n_landmarks or pass None, allow a larger epsilon, or leave "
        "epsilon out to use n_landmarks as they are."
    )
