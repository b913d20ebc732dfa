"""Algorithm 1: sampling by exact ridge leverage scores, from the whole of K."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..landmarks import Landmarks
from ..scores import Spectrum, kernel_matrix
from .choosing import IndefiniteKernelError, Work
from .draws import Drawn, as_landmarks, exactly, kept_by_coins
from .enough import enough_for
from .goal import Goal, Ridge, Size
from .recursive.rules import PracticalRidge, PracticalSize, coin_probabilities
from .theory import WithTheory, promised


@dataclass(frozen=True)
class Leverage(WithTheory):
    """RLS-Nyström sampling with exact scores (Algorithm 1).

    O(n²) kernel evaluations and O(n³) time: for checking the others, and for few rows.

    Parameters
    ----------
    constants : {"practical", "theory"} or None
        None: theory if `delta` is given, else practical.
    delta : float or None
        The guarantee fails with probability at most delta; below 1/8.
    ridge : float or None
        λ > 0: as many rows as ‖K − K̃‖₂ ≤ λ takes, looked at afterwards as for
        `Recursive`. None: with practical constants λ is the tail of the spectrum that
        `n_landmarks` stands for, with the theory's it is the smallest λ for which
        `n_landmarks` rows are expected.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import samplers, select_landmarks
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> proven = samplers.Leverage(delta=0.01)
    >>> options = {"gamma": 0.1, "ridge": 20.0, "random_state": 0}
    >>> print(select_landmarks(X, sampler=proven, **options).guarantee)
    ‖K − K̃‖₂ ≤ 20 with probability ≥ 0.99
    """

    name = "leverage"
    delta_below = 8

    def choose(self, work: Work, goal: Goal) -> Landmarks:
        kernel, source = work.kernel, work.source
        work.engine.progress("exact scores", 0, 1)
        K = kernel_matrix(kernel, source)
        work.ledger.evaluated(kernel.gram_evaluations(source.n_rows))
        spectrum = Spectrum.of(K, kernel.dtype(source.rows(0, 1)))
        if kernel.traits.psd is None and spectrum.indefinite:
            raise IndefiniteKernelError
        delta = self.proven_delta
        ridge, drawn = _draw(spectrum, goal, delta, work.seed)
        guarantee = None
        if delta is not None and drawn.n_wanted is None:
            guarantee = promised(work, ridge, 1 - delta, "Algorithm 1")
        landmarks = as_landmarks(
            drawn,
            kernel,
            source,
            self.label,
            ridge=ridge,
            effective_dimension=spectrum.effective_dimension(ridge),
            guarantee=guarantee,
        )
        if isinstance(goal, Ridge) and delta is None and drawn.n_wanted is None:
            return enough_for(goal.ridge, landmarks, work, goal.at_most)
        return landmarks


def _draw(
    spectrum: Spectrum, goal: Goal, delta: float | None, seed: int
) -> tuple[float, Drawn]:
    """λ and the rows, for each of the four cases."""
    at_most = None
    if isinstance(goal, Ridge):
        ridge, at_most = goal.ridge, goal.at_most
    else:
        assert isinstance(goal, Size)
        if delta is None:
            ridge = spectrum.tail_ridge(PracticalSize(goal.n_landmarks).k)
            return ridge, exactly(goal.n_landmarks, spectrum.scores(ridge), seed)
        ridge = _ridge_for_size(spectrum, goal.n_landmarks, delta)  # as many expected
    scores = spectrum.scores(ridge)
    if delta is None:
        p = PracticalRidge(ridge).probabilities(scores, 0)
    else:
        p = coin_probabilities(scores, delta)
    d_eff = spectrum.effective_dimension(ridge)
    return ridge, kept_by_coins(p, seed, at_most, d_eff)


def _ridge_for_size(spectrum: Spectrum, n_landmarks: int, delta: float) -> float:
    """The smallest λ, to 1 %, at which Algorithm 1 expects at most so many rows."""
    low = spectrum.tail_ridge(len(spectrum.eigenvalues))
    high = max(low, float(spectrum.eigenvalues.sum()))
    # Few times: they add up to at most 16·log(1/δ)·tr K/λ, and λ begins with tr K.
    while coin_probabilities(spectrum.scores(high), delta).sum() > n_landmarks:
        high *= 2
    # At most 18 times, log(high/low) being halved.
    while high > 1.01 * low:
        middle = _between(low, high)
        expected = coin_probabilities(spectrum.scores(middle), delta).sum()
        low, high = (middle, high) if expected > n_landmarks else (low, middle)
    return high


def _between(low: float, high: float) -> float:
    """√(low·high), also where the product overflows or vanishes."""
    product = low * high
    if 1e-300 < product < math.inf:
        return math.sqrt(product)
    return math.sqrt(low) * math.sqrt(high)
