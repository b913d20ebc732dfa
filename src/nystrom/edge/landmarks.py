"""How many landmarks, by what sampler: from what users pass to landmarks."""

from __future__ import annotations

from typing import Any

from .. import _arrays as arrays
from ..engines import Engine, silent
from ..engines.progress import note, parts
from ..kernels import Kernel
from ..landmarks import Landmarks
from ..refusals import count
from ..samplers import Goal, MaxTraceError, Ridge, Size, as_sampler, choose
from ..samplers.forecast import forecast
from ..samplers.outlook import passes_to_choose
from ..sources import Source


def goal_from(
    n_landmarks: Any,
    sampler: Any,
    *,
    ridge: float | None = None,
    max_trace_error: float | None = None,
    default: int | None = None,
    name: str = "n_landmarks",
) -> Goal:
    """What says how many landmarks there are to be; a number beside it is a cap.

    A sampler's own `ridge` counts where none is given. `default` stands for a number
    that is None.
    """
    if ridge is not None and max_trace_error is not None:
        raise ValueError(
            f"ridge={ridge!r} and max_trace_error={max_trace_error!r} both say how "
            "many landmarks there are to be; give one of them."
        )
    if max_trace_error is not None:
        at_most = count(n_landmarks, name, optional=True)
        return MaxTraceError(max_trace_error, at_most)
    ridge = getattr(sampler, "ridge", None) if ridge is None else ridge
    if ridge is not None:
        return Ridge(ridge, count(n_landmarks, name, optional=True))
    size = count(n_landmarks, name, optional=default is not None) or default
    assert size is not None  # None is refused where there is no default
    return Size(size)


def choose_landmarks(
    kernel: Kernel,
    source: Source,
    goal: Goal,
    sampler: Any,
    *,
    random_state: Any,
    engine: Engine,
    delta: float | None = None,
    constants: str | None = None,
    nested: bool = False,
    passes_after: float = 0.0,
) -> Landmarks:
    """Landmarks by whatever stands for a sampler.

    `nested` puts redundant ones last where they were drawn in no order, for callers
    that need their factor anyway. Who follows the progress is told first what a ridge
    will take, and `passes_after`, that come when landmarks are chosen, how much of the
    whole that is.
    """
    able = as_sampler(sampler, goal, delta=delta, constants=constants)
    if isinstance(goal, Ridge) and engine.progress is not silent:
        proven = getattr(able, "proven_delta", None)
        found = forecast(kernel, source, goal, proven, engine)
        note(engine.progress, str(found))
    passes = passes_to_choose(able, goal, source.n_rows)
    choosing, _ = parts(engine.progress, passes, passes_after)
    with choosing:
        landmarks = choose(
            able, kernel, source, goal, random_state=random_state, engine=engine
        )
    if source.given is not source:  # a model holds points such as the rows given
        like = source.given.rows(0, 1)
        landmarks = landmarks.updated(points=arrays.beside(landmarks.points, like))
    in_order = getattr(able, "in_order", True)
    return landmarks.in_nested_order() if nested and not in_order else landmarks
