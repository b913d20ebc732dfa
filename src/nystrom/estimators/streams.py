"""partial_fit: landmarks of all rows so far, from few that are kept and a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..edge.landmarks import choose_landmarks
from ..edge.rows import check_namespace
from ..edge.updating import check_width, refuse_what_is_no_stream
from ..engines import Engine
from ..landmarks import Landmarks
from ..randomness import seed_of
from ..samplers import Goal
from ..samplers.updating import with_rows
from ..sources import Source
from .callbacks import CallbackTask


def streamed(
    estimator: Any,
    X: Any,
    task: CallbackTask,
    goal: Goal,
    *,
    targets: np.ndarray | None = None,
    sample_weight: Any = None,
    steady: float = 1.0,
) -> tuple[Landmarks, Source, Engine]:
    """Landmarks of all rows so far, the batch as a source, and the engine."""
    before, caller = estimator.__dict__.get("landmarks_"), type(estimator).__name__
    caller = f"{caller}.partial_fit"
    fixed: dict[str, Any] = {}
    if before is not None:
        names = ("gamma", "degree", "coef0", "kernel_params")
        fixed = {"kernel": before.kernel, **dict.fromkeys(names)}
        refuse_what_is_no_stream(before.kernel, estimator.sampler, caller)
    kernel, batch, engine = estimator._resolved(
        X, task, sample_weight, targets=targets, **fixed
    )
    refuse_what_is_no_stream(kernel, estimator.sampler, caller)
    seed = 0  # goes with the rows that are kept
    if before is not None:
        check_namespace(X, before.points, f"{caller}()")
        check_width(batch, before)
    if before is None or before.reservoir is None:
        seed = seed_of(estimator.random_state)

    def chosen(source: Source, seed: int, goal: Goal) -> Landmarks:
        return choose_landmarks(
            kernel,
            source,
            goal,
            estimator.sampler,
            random_state=seed,
            engine=engine,
            nested=True,
            passes_after=1.0,
        )

    landmarks = with_rows(
        before, batch, chosen, goal, seed=seed, engine=engine, steady=steady
    )
    return landmarks, batch, engine
