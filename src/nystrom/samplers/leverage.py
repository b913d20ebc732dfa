"""Sampling by exact ridge leverage scores (Algorithm 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..landmarks import Landmarks
from ..linalg.residuals import KernelSpectrum, kernel_matrix
from .base import (
    FixedSize,
    IndefiniteKernelError,
    SamplingProblem,
    SpectralTolerance,
    StoppingRule,
)
from .guarantees import GuaranteedSampler, ensure_spectral_error, make_guarantee
from .recursive import PracticalRidge, PracticalSize, bernoulli_probabilities
from .weighted_sampling import SampledRows, sample_bernoulli, sample_fixed_size


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
    max_delta = 1 / 8

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
        middle = math.sqrt(low * high)
        if not 1e-150 < middle < math.inf:  # the product has vanished or overflowed
            middle = math.sqrt(low) * math.sqrt(high)
        expected = bernoulli_probabilities(spectrum.scores(middle), delta).sum()
        low, high = (middle, high) if expected > n_landmarks else (low, middle)
    return high
