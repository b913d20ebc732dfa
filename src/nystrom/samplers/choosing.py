"""What is done alike whenever landmarks are chosen, whatever the sampler and the goal.

A `Sampler` writes `choose`; around it go the seed, the clock, rows of weight 0, BLAS at
one thread, the ledger of kernel evaluations, goals that all rows meet, and kernels that
turn out to be indefinite.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..engines import Engine, single_threaded_blas
from ..kernels import Kernel
from ..landmarks import Landmarks
from ..ledger import Ledger
from ..randomness import seed_of
from ..sources import Source, Subset
from .draws import all_rows, as_landmarks, uniformly
from .goal import Goal, MaxTraceError, Ridge, Size, as_goal


class IndefiniteKernelError(Exception):
    """The kernel is not positive semi-definite: scores have no meaning."""


@dataclass(frozen=True)
class Work:
    """What there is to choose from, and what it costs."""

    kernel: Kernel
    source: Source
    seed: int
    engine: Engine
    ledger: Ledger


class Sampler(ABC):
    """Chooses landmarks for a goal.

    A sampler is a callable; a number of landmarks stands for a goal.
    """

    #: What its landmarks are called.
    name: ClassVar[str]
    #: The goals that it takes.
    takes: ClassVar[tuple[type, ...]] = (Size,)
    #: Whether there is anything to choose, and a number of landmarks to say.
    chooses: ClassVar[bool] = True
    #: Whether it has nothing to choose where the goal is all rows or more.
    all_rows_will_do: ClassVar[bool] = True
    #: Whether its choice means nothing where the kernel is indefinite.
    needs_psd: ClassVar[bool] = True
    #: Whether rows of weight 0 may be among the landmarks.
    takes_weightless: ClassVar[bool] = False

    #: Whether the order of its landmarks says something: that of pivots, or the user's.
    in_order: ClassVar[bool] = False

    ridge: float | None = None

    @abstractmethod
    def choose(self, work: Work, goal: Any) -> Landmarks:
        """The landmarks; evaluations and notes go into `work.ledger`."""

    def __call__(
        self,
        kernel: Kernel,
        source: Source,
        goal: Goal | int | None,
        *,
        seed: int,
        engine: Engine,
    ) -> Landmarks:
        ledger = Ledger()
        if self.chooses:
            goal = as_goal(goal, self.ridge)
        work = Work(kernel, source, seed, engine, ledger)
        n = source.n_rows
        if self.all_rows_will_do and isinstance(goal, Size) and goal.n_landmarks >= n:
            return all_rows(kernel, source, self.label)
        # One BLAS thread for the small algebra too: the number of threads must not
        # change a single bit of what decides.
        with single_threaded_blas():
            try:
                if self.needs_psd and kernel.traits.psd is False:
                    raise IndefiniteKernelError
                chosen = self.choose(work, goal)
            except IndefiniteKernelError:
                return _uniform_instead(work, as_goal(goal), self.label)
        return chosen.updated(
            n_kernel_evaluations=ledger.n_evaluations,
            n_passes=ledger.n_passes,
            notes=(*ledger.notes, *chosen.notes),
        )

    @property
    def label(self) -> str:
        """The name, as landmarks print it."""
        return self.name


def _uniform_instead(work: Work, goal: Goal, name: str) -> Landmarks:
    """Uniform landmarks where the kernel is indefinite and scores have no meaning."""
    size = goal.n_landmarks if isinstance(goal, Size) else goal.at_most
    if size is None or isinstance(goal, MaxTraceError):
        instead = (
            "n_landmarks" if isinstance(goal, Ridge) else "the number of landmarks"
        )
        raise ValueError(
            f"{goal} has no meaning for {work.kernel}, which is not positive "
            f"semi-definite; give {instead} instead."
        ) from None
    return as_landmarks(
        uniformly(work.source, size, work.seed),
        work.kernel,
        work.source,
        "uniform",
        notes=(f"uniform instead of {name}: the kernel is indefinite",),
        n_kernel_evaluations=work.ledger.n_evaluations,
    )


def choose(
    sampler: Callable,
    kernel: Kernel,
    source: Source,
    goal: Goal,
    *,
    random_state: Any,
    engine: Engine,
) -> Landmarks:
    """Landmarks by a sampler or a plain function, timed; never rows of weight 0."""
    begun = time.perf_counter()
    candidates, rows = source, None
    if source.is_weighted and not getattr(sampler, "takes_weightless", False):
        weights = source.weights
        if not np.all(weights > 0):
            rows = np.flatnonzero(weights)
            candidates = Subset(source, rows)
            candidates.is_part = False  # it is all that there is to choose from
    # A function of the user's own takes a number, not a goal.
    plain = isinstance(goal, Size) and not isinstance(sampler, Sampler)
    wanted = goal.n_landmarks if plain else goal  # type: ignore[union-attr]
    seed = seed_of(random_state)
    chosen = sampler(kernel, candidates, wanted, seed=seed, engine=engine)
    if not isinstance(chosen, Landmarks):
        raise TypeError(
            f"The sampler {sampler!r} returned {type(chosen).__name__}; it must return "
            "nystrom.landmarks.Landmarks."
        )
    changes: dict[str, Any] = {"seconds": time.perf_counter() - begun}
    if rows is not None:
        changes["n_rows"] = source.n_rows
        if chosen.indices is not None:
            changes["indices"] = rows[chosen.indices]
    return chosen.updated(**changes)
