"""Base class of samplers, stopping rules, and the driver shared by all samplers.

A sampler writes `choose`. The driver adds single-threaded BLAS, the ledger of kernel
evaluations, and the fallback to uniform sampling for indefinite kernels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._random import Stream
from .._validation import check_finite, check_int, check_positive
from ..engines import Engine, single_threaded_blas
from ..kernels import Kernel
from ..landmarks import Landmarks
from ..linalg.cross_kernel import Ledger, fetch_rows, kernel_diagonal, kernel_trace
from ..linalg.residuals import ResidualPass, residuals
from ..sources import CachedRows, Source
from .weighted_sampling import (
    BernoulliSubset,
    KeyedSampler,
    NumberedSubset,
    SampledRows,
    WeightedSample,
    WeightFunction,
    max_listed_rows,
    residual_weights,
    sample_block_by_residual,
    sample_uniformly,
)


@dataclass(frozen=True)
class FixedSize:
    """Stopping rule: a number of landmarks.

    Parameters
    ----------
    n_landmarks : int
        Number of landmarks; all rows if there are no more.
    """

    n_landmarks: int

    def __post_init__(self) -> None:
        check_int(self.n_landmarks, "n_landmarks")

    def __str__(self) -> str:
        return f"n_landmarks={self.n_landmarks}"


@dataclass(frozen=True)
class SpectralTolerance:
    """Stopping rule: as many landmarks as needed for a spectral error.

    Parameters
    ----------
    max_spectral_error : float
        Bound on ‖K − K̃‖₂.
    at_most : int or None
        Maximum number of landmarks.
    """

    max_spectral_error: float
    at_most: int | None = None

    def __post_init__(self) -> None:
        check_positive(self.max_spectral_error, "max_spectral_error")
        check_int(self.at_most, "at_most", optional=True)

    def __str__(self) -> str:
        return f"max_spectral_error={self.max_spectral_error}"


@dataclass(frozen=True)
class TraceTolerance:
    """Stopping rule: as many landmarks as needed for a relative trace error.

    Parameters
    ----------
    tolerance : float
        Bound on tr(K − K̃)/tr K.
    at_most : int or None
        Maximum number of landmarks.
    """

    tolerance: float
    at_most: int | None = None

    def __post_init__(self) -> None:
        check_positive(self.tolerance, "max_trace_error", below=1)
        check_int(self.at_most, "at_most", optional=True)

    def __str__(self) -> str:
        return f"max_trace_error={self.tolerance}"


StoppingRule = FixedSize | SpectralTolerance | TraceTolerance


class IndefiniteKernelError(Exception):
    """The kernel is not positive semi-definite: scores have no meaning."""


@dataclass(frozen=True)
class SamplingProblem:
    """What there is to choose from, and what it costs."""

    kernel: Kernel
    source: Source
    seed: int
    engine: Engine
    ledger: Ledger

    def gram(self, points: Any) -> np.ndarray:
        """The kernel matrix of a few points."""
        K = self.kernel.gram(points)
        self.ledger.count_evaluations(self.kernel.gram_evaluations(len(K)))
        return K

    def fetch(self, numbers: np.ndarray) -> NumberedSubset:
        """These rows; without random access they are fetched, in one pass."""
        source = self.source
        if source.supports_random_access:
            return NumberedSubset(source, numbers)
        weights = source.weights_of(numbers) if source.is_weighted else None
        self.ledger.count_fetch(source)
        rows = CachedRows(fetch_rows(source, numbers, self.engine), weights)
        return NumberedSubset(rows, numbers, np.arange(len(numbers)))

    def subsample(self, size: int, stream: Stream) -> Source:
        """Rows drawn uniformly: exactly `size` where they may be listed, else about."""
        n = self.source.n_rows
        if size >= n:
            return self.source
        if size > max_listed_rows(self.source):
            return BernoulliSubset(self.source, size / n, stream)
        return self.fetch(np.sort(stream.sample_rows(size, n)))

    def diagonal(self) -> np.ndarray:
        """k(x, x) of every row."""
        self.ledger.count_evaluations(self.source.n_rows)
        return kernel_diagonal(self.kernel, self.source, engine=self.engine)

    def trace(self) -> float:
        """Σ w·k(x, x) over all rows."""
        self.ledger.count_pass(self.source, self.source.n_rows)
        return kernel_trace(self.kernel, self.source, engine=self.engine)

    def residuals(self, prepared: ResidualPass, rows: Source, name: str) -> np.ndarray:
        """k(x, x) − ‖k_S(x)B‖² of every row of a source."""
        self.ledger.count_pass(rows, rows.n_rows * (len(prepared.columns) + 1))
        return residuals(prepared, rows, engine=self.engine, name=name)

    def sample_by_residual(
        self,
        prepared: ResidualPass,
        rows: Source,
        sampler: KeyedSampler,
        name: str,
        weight_function: WeightFunction = residual_weights,
    ) -> tuple[WeightedSample, np.ndarray]:
        """One pass: a sample of rows by their residual, and sums over all of them.

        The last of the sums is the number of rows.
        """
        carry_points = not rows.supports_random_access
        shared = (prepared, weight_function, sampler, carry_points)
        sample, sums = self.engine.reduce(sample_block_by_residual, rows, shared, name)
        self.ledger.count_pass(rows, int(sums[-1]) * (len(prepared.columns) + 1))
        check_finite(sums)
        return sample, sums

    def landmarks(self, sample: SampledRows, name: str, **fields: Any) -> Landmarks:
        """The rows drawn, as every sampler returns them."""
        return sample.as_landmarks(self.kernel, self.source, name, **fields)


class Sampler(ABC):
    """Base class of samplers.

    A subclass implements `choose`. A sampler is a callable `(kernel, source, goal, *,
    seed, engine) -> Landmarks`; a number as goal means `FixedSize`.
    """

    #: Name of the sampler in printed landmarks.
    name: ClassVar[str]
    #: Stopping rules that the sampler supports.
    takes: ClassVar[tuple[type, ...]] = (FixedSize,)
    #: Whether it returns all rows if at least as many landmarks are requested.
    returns_all_rows: ClassVar[bool] = True
    #: Whether it needs a positive semi-definite kernel.
    needs_psd: ClassVar[bool] = True
    #: Whether its landmarks are ordered by selection, and must stay so.
    is_ordered: ClassVar[bool] = False

    max_spectral_error: float | None = None

    @abstractmethod
    def choose(self, problem: SamplingProblem, goal: Any) -> Landmarks:
        """Select landmarks; count evaluations and notes in `problem.ledger`.

        Parameters
        ----------
        problem : SamplingProblem
            Kernel, rows, seed and engine.
        goal : StoppingRule
            When to stop.

        Returns
        -------
        landmarks : Landmarks
            The selected landmarks.
        """

    def __call__(
        self,
        kernel: Kernel,
        source: Source,
        goal: StoppingRule | int | None,
        *,
        seed: int,
        engine: Engine,
    ) -> Landmarks:
        ledger = Ledger(engine.progress)
        if not isinstance(goal, StoppingRule):
            if self.max_spectral_error is not None:
                goal = SpectralTolerance(self.max_spectral_error, at_most=goal)
            elif goal is None:
                raise TypeError(
                    "The number of landmarks is missing; pass a number or a stopping "
                    "rule."
                )
            else:
                goal = FixedSize(int(goal))
        problem = SamplingProblem(kernel, source, seed, engine, ledger)
        n = source.n_rows
        wants_all_rows = isinstance(goal, FixedSize) and goal.n_landmarks >= n
        if self.returns_all_rows and wants_all_rows:
            return problem.landmarks(SampledRows.all_of(n), self.label)
        # One BLAS thread for the small algebra too: the number of threads must not
        # change a single bit of what decides.
        with single_threaded_blas():
            try:
                if self.needs_psd and kernel.traits.psd is False:
                    raise IndefiniteKernelError
                chosen = self.choose(problem, goal)
            except IndefiniteKernelError:
                return _fall_back_to_uniform(problem, goal, self.label)
        return chosen.replace(
            n_kernel_evaluations=ledger.n_evaluations,
            n_passes=ledger.n_passes,
            notes=(*ledger.notes, *chosen.notes),
        )

    @property
    def label(self) -> str:
        """Name under which landmarks print their sampler."""
        return self.name


def _fall_back_to_uniform(
    problem: SamplingProblem, goal: StoppingRule, name: str
) -> Landmarks:
    """Uniform landmarks where the kernel is indefinite and scores have no meaning."""
    size = goal.n_landmarks if isinstance(goal, FixedSize) else goal.at_most
    if size is None or isinstance(goal, TraceTolerance):
        raise ValueError(
            f"{goal} is not defined for {problem.kernel}, which is not positive "
            "semi-definite; give n_landmarks instead."
        ) from None
    return problem.landmarks(
        sample_uniformly(problem.source, size, problem.seed),
        "uniform",
        notes=(f"uniform instead of {name}: the kernel is indefinite",),
        n_kernel_evaluations=problem.ledger.n_evaluations,
    )


@dataclass(frozen=True, eq=False)
class GivenRows:
    """Use given rows as landmarks.

    Parameters
    ----------
    indices : ndarray of int
        Row numbers.
    """

    indices: np.ndarray
    name: ClassVar[str] = "given rows"
    is_ordered: ClassVar[bool] = True

    def __call__(
        self, kernel: Kernel, source: Source, goal: Any, *, seed: int, engine: Engine
    ) -> Landmarks:
        rows, n = np.asarray(self.indices), source.n_rows
        outside = rows[(rows < 0) | (rows >= n)]
        if len(outside):
            raise ValueError(
                f"sampler has row number {outside[0]}, but the data has rows 0 to "
                f"{n - 1}."
            )
        return Landmarks(source.take(rows), kernel, self.name, n, indices=rows)


@dataclass(frozen=True, eq=False)
class GivenPoints:
    """Use given points as landmarks, which need not be rows.

    Parameters
    ----------
    points : array, sparse matrix or list
        The points.
    """

    points: Any
    name: ClassVar[str] = "given points"
    is_ordered: ClassVar[bool] = True

    def __call__(
        self, kernel: Kernel, source: Source, goal: Any, *, seed: int, engine: Engine
    ) -> Landmarks:
        if kernel.traits.uses_row_numbers:
            raise ValueError(
                "With kernel='precomputed' the kernel cannot be evaluated at new "
                "points; give row numbers as sampler."
            )
        n_features = source.n_features
        width = getattr(self.points, "shape", (0, n_features))[1]
        if n_features is not None and width != n_features:
            raise ValueError(
                f"The landmarks given as sampler have {width} features, but the data "
                f"has {n_features}."
            )
        return Landmarks(self.points, kernel, self.name, source.n_rows)
