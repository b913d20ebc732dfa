"""Sampling by exact ridge leverage scores (Algorithm 1), and guarantees."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

from .._precision import min_guaranteed_ridge
from ..landmarks import Landmarks
from ..linalg.cross_kernel import CrossKernel, diag_float64, kernel_trace
from ..linalg.errors import Guarantee
from ..linalg.residuals import KernelSpectrum, kernel_matrix
from .base import (
    FixedSize,
    IndefiniteKernelError,
    Sampler,
    SamplingProblem,
    SpectralTolerance,
    StoppingRule,
    check_max_spectral_error,
)
from .recursive_rules import PracticalRidge, PracticalSize, bernoulli_probabilities
from .spectral_check import ensure_spectral_error
from .weighted_sampling import (
    SampledRows,
    sample_bernoulli,
    sample_fixed_size,
)

#: δ where the theory's constants are asked for without one.
DEFAULT_DELTA = 0.01


@dataclass(frozen=True)
class GuaranteedSampler(Sampler):
    """A sampler with the constants of a proof, or with those used in practice."""

    constants: str | None = None
    delta: float | None = None
    max_spectral_error: float | None = None

    takes: ClassVar[tuple[type, ...]] = (FixedSize, SpectralTolerance)
    #: The theorem is proven for δ below 1 over this.
    inverse_max_delta: ClassVar[int]

    def __post_init__(self) -> None:
        if self.max_spectral_error is not None:
            check_max_spectral_error(self.max_spectral_error)
        delta, constants = self.delta, self.constants
        is_number = isinstance(delta, Real)
        if delta is not None and not (
            is_number and 0 < delta < 1 / self.inverse_max_delta
        ):
            raise ValueError(
                f"delta={delta!r} is not allowed; it is proven for 0 < delta < "
                f"1/{self.inverse_max_delta}."
            )
        if constants not in (None, "theory", "practical"):
            raise ValueError(
                f"constants={constants!r} is unknown; allowed: 'theory', 'practical', "
                "None."
            )
        if constants == "practical" and delta is not None:
            raise ValueError(
                f"delta={delta!r} belongs to constants='theory'; leave it out, or drop "
                "constants='practical'."
            )

    @property
    def proven_delta(self) -> float | None:
        """Failure probability of the theory's constants; None with practical ones."""
        if self.constants == "theory" or self.delta is not None:
            return self.delta or DEFAULT_DELTA
        return None

    @property
    def label(self) -> str:
        return self.name if self.proven_delta is None else f"{self.name} (theory)"


def make_guarantee(
    problem: SamplingProblem, ridge: float, probability: float, algorithm: str
) -> Guarantee | None:
    """The guarantee of a theorem, or a note why there is none.

    Theorems are about exact numbers. Landmarks of float32 rows make K̃ and features of
    float32 values, which may be further off than λ, whatever was chosen.
    """
    kernel, source = problem.kernel, problem.source
    first = source.rows(0, 1)
    columns = CrossKernel(kernel, first)
    if columns.narrow:
        min_ridge = min_guaranteed_ridge(_kernel_trace(problem, first), columns.dtype)
        if ridge < min_ridge:
            problem.ledger.note(
                f"no guarantee: float32 values resolve ‖K − K̃‖₂ to {min_ridge:.2g}, "
                f"not to {ridge:.2g}; pass float64 rows"
            )
            return None
    return Guarantee(ridge, probability, source.is_weighted, algorithm)


def _kernel_trace(problem: SamplingProblem, first: Any) -> float:
    """tr K, in which a row of a distance's kernel counts as any other."""
    kernel, source = problem.kernel, problem.source
    if kernel.traits.is_distance_based:
        problem.ledger.count_evaluations(1)
        return source.total_weight * float(diag_float64(kernel, first)[0])
    problem.ledger.count_pass(source, source.n_rows)
    return kernel_trace(kernel, source, engine=problem.engine)


@dataclass(frozen=True)
class Leverage(GuaranteedSampler):
    """Sampling by exact ridge leverage scores, Algorithm 1 of the paper.

    It needs O(n²) kernel evaluations and O(n³) time: for few rows and for comparisons.

    Parameters
    ----------
    constants : {"practical", "theory"} or None
        None means theory if `delta` is given, practical otherwise.
    delta : float or None
        The guarantee fails with probability at most delta. Below 1/8.
    max_spectral_error : float or None
        Select as many rows as needed for ‖K − K̃‖₂ ≤ `max_spectral_error`, checked as
        for `Recursive`. None derives λ from `n_landmarks`.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import samplers, select_landmarks
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> proven = samplers.Leverage(delta=0.01)
    >>> options = {"gamma": 0.1, "max_spectral_error": 20.0, "random_state": 0}
    >>> print(select_landmarks(X, sampler=proven, **options).guarantee)
    ‖K − K̃‖₂ ≤ 20 with probability ≥ 0.99
    """

    name = "leverage"
    inverse_max_delta = 8

    def choose(self, problem: SamplingProblem, goal: StoppingRule) -> Landmarks:
        kernel, source = problem.kernel, problem.source
        K = kernel_matrix(kernel, source)
        problem.ledger.count_evaluations(kernel.gram_evaluations(source.n_rows))
        spectrum = KernelSpectrum.from_kernel_matrix(K, kernel.dtype(source.rows(0, 1)))
        if kernel.traits.psd is None and spectrum.indefinite:
            raise IndefiniteKernelError
        delta = self.proven_delta
        ridge, sample = _sample_rows(spectrum, goal, delta, problem.seed)
        guarantee = None
        if delta is not None and sample.n_requested is None:
            guarantee = make_guarantee(problem, ridge, 1 - delta, "Algorithm 1")
        landmarks = problem.landmarks(
            sample,
            self.label,
            ridge=ridge,
            effective_dimension=spectrum.effective_dimension(ridge),
            guarantee=guarantee,
        )
        if (
            isinstance(goal, SpectralTolerance)
            and delta is None
            and sample.n_requested is None
        ):
            return ensure_spectral_error(
                goal.max_spectral_error, landmarks, problem, goal.at_most
            )
        return landmarks


def _sample_rows(
    spectrum: KernelSpectrum, goal: StoppingRule, delta: float | None, seed: int
) -> tuple[float, SampledRows]:
    """λ and the rows, for each of the four cases."""
    at_most = None
    if isinstance(goal, SpectralTolerance):
        ridge, at_most = goal.max_spectral_error, goal.at_most
    else:
        assert isinstance(goal, FixedSize)
        if delta is None:
            ridge = spectrum.tail_ridge(PracticalSize(goal.n_landmarks).k)
            return ridge, sample_fixed_size(
                goal.n_landmarks, spectrum.scores(ridge), seed
            )
        ridge = _ridge_for_size(spectrum, goal.n_landmarks, delta)  # as many expected
    scores = spectrum.scores(ridge)
    if delta is None:
        p = PracticalRidge(ridge).probabilities(scores, 0)
    else:
        p = bernoulli_probabilities(scores, delta)
    d_eff = spectrum.effective_dimension(ridge)
    return ridge, sample_bernoulli(p, seed, at_most, d_eff)


def _ridge_for_size(spectrum: KernelSpectrum, n_landmarks: int, delta: float) -> float:
    """The smallest λ, to 1 %, at which Algorithm 1 expects at most so many rows."""
    low = spectrum.tail_ridge(len(spectrum.eigenvalues))
    high = max(low, float(spectrum.eigenvalues.sum()))
    # Few times: they add up to at most 16·log(1/δ)·tr K/λ, and λ begins with tr K.
    while bernoulli_probabilities(spectrum.scores(high), delta).sum() > n_landmarks:
        high *= 2
    # At most 18 times, log(high/low) being halved.
    while high > 1.01 * low:
        middle = _geometric_mean(low, high)
        expected = bernoulli_probabilities(spectrum.scores(middle), delta).sum()
        low, high = (middle, high) if expected > n_landmarks else (low, middle)
    return high


def _geometric_mean(low: float, high: float) -> float:
    """√(low·high), also where the product overflows or vanishes."""
    product = low * high
    if 1e-300 < product < math.inf:
        return math.sqrt(product)
    return math.sqrt(low) * math.sqrt(high)
