"""What all functions are given, resolved once: kernel, rows and engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .. import _arrays as arrays
from ..edge.engine import engine_for
from ..edge.kernel import kernel_and_source
from ..edge.landmarks import choose_landmarks
from ..edge.rows import check_rows
from ..edge.warnings import warn_about
from ..engines import Engine
from ..kernels import Kernel, Precomputed
from ..landmarks import Landmarks
from ..samplers import Goal
from ..samplers.goal import check_ridge
from ..sources import Source

#: Landmarks where the user names neither their number nor a ridge.
DEFAULT_LANDMARKS = 1000


@dataclass(frozen=True)
class Problem:
    """The kernel with all its numbers, the rows, the engine, and landmarks if given."""

    kernel: Kernel
    source: Source
    engine: Engine
    landmarks: Landmarks | None = None

    @classmethod
    def of(
        cls,
        caller: str,
        X: Any,
        kernel: Any = None,
        *,
        landmarks: Landmarks | None = None,
        sample_weight: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        **params: Any,
    ) -> Self:
        """From what a user passed; the kernel of landmarks stands before another."""
        if landmarks is not None:
            check_landmarks(landmarks)
            kernel, params = landmarks.kernel, {}
        resolved, source = kernel_and_source(
            check_rows(X),
            kernel,
            sample_weight=sample_weight,
            caller=caller,
            n_jobs=n_jobs,
            **params,
        )
        if landmarks is not None:
            _check_width(source, landmarks)
            if resolved.traits.by_number:
                landmarks = landmarks.updated(kernel=resolved)
        engine = engine_for(resolved, n_jobs, verbose, source=source)
        return cls(resolved, source, engine, landmarks)

    def chosen(self, goal: Goal, sampler: Any, **options: Any) -> Landmarks:
        """Landmarks by the sampler, as many as asked for; warns of what is amiss."""
        landmarks = choose_landmarks(
            self.kernel, self.source, goal, sampler, engine=self.engine, **options
        )
        warn_about(landmarks)
        return landmarks

    def such_as_rows(self, values: np.ndarray) -> Any:
        """Results where the rows are, in their precision; on the host as they are."""
        like = self.kernel.like(self.source.given.rows(0, 1))
        on_host = arrays.on_host(like)
        return values if on_host else arrays.from_host(values, like, like.dtype)


def check_needed_ridge(ridge: float) -> None:
    """λ where no function can do without it."""
    if ridge is None:
        raise ValueError("ridge=None is not allowed here; λ is a finite number > 0.")
    check_ridge(ridge)


def check_landmarks(landmarks: Any) -> None:
    """Refuse what is no value of that name."""
    if not isinstance(landmarks, Landmarks):
        raise TypeError(
            f"landmarks is a {type(landmarks).__name__}; pass what select_landmarks "
            "returned, or an estimator's landmarks_. Row numbers and points become "
            "landmarks by select_landmarks(X, sampler=...)."
        )


def _check_width(source: Source, landmarks: Landmarks) -> None:
    if isinstance(landmarks.kernel, Precomputed) and source.n_rows != landmarks.n_rows:
        raise ValueError(
            f"The landmarks are row numbers of a kernel matrix of {landmarks.n_rows} "
            f"rows, but X has {source.n_rows}."
        )
    shape: tuple[int, ...] = getattr(landmarks.points, "shape", ())
    if (
        source.n_features is not None
        and len(shape) == 2
        and shape[1] != source.n_features
    ):
        raise ValueError(
            f"X has {source.n_features} features, but the landmarks have {shape[1]}."
        )
