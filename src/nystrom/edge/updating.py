"""New rows for old landmarks, as users pass them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from ..kernels import Kernel
from ..landmarks import Landmarks
from ..randomness import seed_of
from ..samplers import Goal, Size, as_sampler, choose
from ..samplers.given import GivenPoints, GivenRows
from ..samplers.updating import with_rows
from ..sources import Source, as_source
from .engine import engine_for
from .rows import check_namespace, check_rows, check_weights


def refuse_what_is_no_stream(kernel: Kernel, sampler: Any, caller: str) -> None:
    """Row numbers of one batch mean nothing in the next."""
    if kernel.traits.by_number:
        raise ValueError(
            f"{caller} takes rows, batch by batch; kernel='precomputed' has values of "
            "all pairs of them. Use fit, or a kernel that is a function of rows."
        )
    if isinstance(as_sampler(sampler), (GivenRows, GivenPoints)):
        raise ValueError(
            f"{caller} chooses landmarks again as rows come; a sampler that is row "
            "numbers or points leaves nothing to choose. Use fit, or a name such as "
            "sampler='auto'."
        )


def updated_landmarks(
    landmarks: Landmarks,
    X: Any,
    *,
    n_landmarks: int | None,
    sampler: Any,
    sample_weight: Any,
    random_state: Any,
    n_jobs: int | None,
) -> Landmarks:
    """Landmarks of all rows so far, old ones and new ones."""
    kernel, caller = landmarks.kernel, "Landmarks.updated_with"
    refuse_what_is_no_stream(kernel, sampler, caller)
    X = check_rows(X)
    check_namespace(X, landmarks.points, f"{caller}()")
    weights = check_weights(sample_weight, X)
    batch = as_source(X, weights)
    check_width(batch, landmarks)
    engine = engine_for(kernel, n_jobs, 0)
    goal: Goal = Size(len(landmarks) if n_landmarks is None else n_landmarks)
    able = as_sampler(sampler, goal)

    def chosen(source: Source, seed: int, goal: Goal) -> Landmarks:
        return choose(able, kernel, source, goal, random_state=seed, engine=engine)

    # The first seed goes with the rows that are kept.
    seed = 0 if landmarks.reservoir is not None else seed_of(random_state)
    return with_rows(landmarks, batch, chosen, goal, seed=seed, engine=engine)


def check_width(batch: Source, landmarks: Landmarks) -> None:
    """New rows must be as the landmarks are."""
    points = landmarks.points
    width = points.shape[1] if arrays.is_block(points) and points.ndim == 2 else None
    if width != batch.n_features:
        raise ValueError(
            f"The new rows have {batch.n_features} features, but the landmarks have "
            f"{width}."
        )
    if sp.issparse(points) != sp.issparse(batch.take(np.arange(1))):
        raise ValueError(
            "The new rows and the landmarks must both be sparse, or both not."
        )
