"""The paper's theorems as calibrated statistical tests, and proof that they can fail.

A statement that holds with probability 1 − δ may fail in a share δ of the seeds; each
test counts failures over many and allows as many as a binomial variable exceeds once in
a million. The matrices have a known finite factor, K = BBᵀ with B of few columns, so
that every statement about K is one about small matrices.
"""

import math

import numpy as np
import pytest
import scipy.linalg
from oracles_sampling import tail
from scipy.stats import binom

from nystrom import select_landmarks
from nystrom.engines import Threads
from nystrom.kernels import Linear
from nystrom.linalg.cross_kernel import Ledger
from nystrom.samplers import recursive as rules
from nystrom.samplers.base import SamplingProblem
from nystrom.samplers.recursive import (
    TheoryRidge,
    TheorySize,
    bernoulli_probabilities,
    iterate_levels,
)
from nystrom.samplers.weighted_sampling import sample_bernoulli
from nystrom.sources import as_source

pytestmark = pytest.mark.usefixtures("one_blas_thread")

DELTA = 0.03


def factor_of_kernel(rng, n, d=12):
    """B: a decaying spectrum, and a few rows alone in the last directions."""
    B = rng.standard_normal((n, d)) * 0.6 ** np.arange(d)
    B[:, -2:] = 0
    B[: n // 100, -2:] = 0.5 * rng.standard_normal((n // 100, 2))
    return B


def effective_dimension(B, ridge):
    values = np.linalg.eigvalsh(B.T @ B)
    return float(np.sum(values / (values + ridge)))


def scores_of(B, ridge):
    """The exact scores (B(BᵀB + λI)⁻¹Bᵀ)ᵢᵢ."""
    G = B.T @ B + ridge * np.eye(B.shape[1])
    return np.einsum("ij,ji->i", B, np.linalg.solve(G, B.T))


def ridge_for(B, dimension):
    """λ with d_eff(λ) = dimension."""
    low, high = 1e-6, float(np.sum(B**2)) * 1e3
    while high > 1.0001 * low:
        middle = math.sqrt(low * high)
        too_small = effective_dimension(B, middle) > dimension
        low, high = (middle, high) if too_small else (low, middle)
    return high


def spectral_error(B, rows):
    """‖K − K̃‖₂, which is ‖B(I − P)‖² for the projection P on the rows chosen."""
    _, values, V = np.linalg.svd(B[rows], full_matrices=False)
    V = V[values > 1e-10 * values.max(initial=1e-300)]
    return np.linalg.norm(B - B @ V.T @ V, 2) ** 2


def spread(B, kept, ridge):
    """The extreme eigenvalues of BᵀSSᵀB + λI against BᵀB + λI."""
    small = ridge * np.eye(B.shape[1])
    SB = B[kept.indices] * kept.weights[:, None]
    values = scipy.linalg.eigh(SB.T @ SB + small, B.T @ B + small, eigvals_only=True)
    return values.min(), values.max()


def outside_invariant(B, kept, ridge):
    """Whether ½(BᵀB + λI) ⪯ BᵀSSᵀB + λI ⪯ 3/2(BᵀB + λI) is false."""
    low, high = spread(B, kept, ridge)
    return low < 0.5 or high > 1.5


def allowed(n_runs, probability):
    """Failures that are exceeded once in a million."""
    return binom.ppf(1 - 1e-6, n_runs, probability)


def seeds(seed, n_runs):
    return range(n_runs * seed, n_runs * (seed + 1))


# One run of each algorithm: the rows kept, and the probabilities they were kept with


def algorithm_1(B, ridge, seed, delta=DELTA, oversampling=16.0):
    p = bernoulli_probabilities(scores_of(B, ridge), delta, oversampling)
    return sample_bernoulli(p, seed), p


def work_on(B, seed):
    return SamplingProblem(Linear(), as_source(B), seed, Threads(1), Ledger())


def algorithm_2(B, ridge, seed, delta=DELTA, oversampling=16.0):
    rule = TheoryRidge(ridge, delta, oversampling)
    levels = [*iterate_levels(work_on(B, seed), rule)]
    assert len(levels) >= 2
    p = levels[-1].probabilities
    return sample_bernoulli(p, seed), p


def algorithm_3(B, size, seed, delta=DELTA):
    rule = TheorySize(size, delta)
    levels = [*iterate_levels(work_on(B, seed), rule)]
    assert len(levels) >= 2
    p = levels[-1].probabilities
    return sample_bernoulli(p, seed), p, levels[-1].ridge


@pytest.fixture
def small_c(monkeypatch):
    """c = 640 would need 4000 landmarks; the sampling itself does not depend on c."""
    monkeypatch.setattr(rules, "THEORY_C", 18)


SIZE = 150  # k = 1 on every level, for c = 18


# Theorem 3


def test_theorem_3_for_exact_scores(rng, seed):
    B, delta, n_runs = factor_of_kernel(rng, 1000), 0.12, 200
    ridge = ridge_for(B, 3)
    errors, too_many = 0, 0
    for run in seeds(seed, n_runs):
        kept, p = algorithm_1(B, ridge, run, delta)
        assert p.min() < 0.9  # rows are really drawn
        errors += spectral_error(B, kept.indices) > ridge
        assert p.sum() >= 3 * math.log(2 / delta)
        too_many += len(kept.indices) > 2 * p.sum()
    assert errors <= allowed(n_runs, delta)
    assert too_many <= allowed(n_runs, delta)


def test_the_leverage_sampler_keeps_the_rows_of_algorithm_1(rng, seed):
    B = factor_of_kernel(rng, 400)
    ridge = ridge_for(B, 2)
    landmarks = select_landmarks(
        B, kernel="linear", sampler="leverage", max_spectral_error=ridge, delta=0.1,
        random_state=seed,
    )  # fmt: skip
    kept, p = algorithm_1(B, ridge, seed, 0.1)
    np.testing.assert_array_equal(landmarks.indices, kept.indices)
    np.testing.assert_allclose(landmarks.probabilities, p[kept.indices], rtol=1e-8)
    np.testing.assert_allclose(landmarks.weights, kept.weights, rtol=1e-8)
    assert landmarks.effective_dimension == pytest.approx(2, rel=1e-3)
    assert landmarks.guarantee.ridge == ridge
    assert landmarks.guarantee.probability == pytest.approx(0.9)


def test_the_leverage_sampler_finds_the_ridge_that_a_size_stands_for(rng, seed):
    B = factor_of_kernel(rng, 400)
    landmarks = select_landmarks(
        B, kernel="linear", sampler="leverage", n_landmarks=150, delta=0.1,
        random_state=seed,
    )  # fmt: skip
    _, p = algorithm_1(B, landmarks.guarantee.ridge, seed, 0.1)
    assert p.sum() <= 150
    _, p = algorithm_1(B, 0.95 * landmarks.guarantee.ridge, seed, 0.1)
    assert p.sum() > 150


# Algorithm 2


def test_algorithm_2_keeps_its_promise(rng, seed):
    B, n_runs = factor_of_kernel(rng, 2500), 25
    ridge = ridge_for(B, 1.5)
    exact = scores_of(B, ridge)
    d_eff = exact.sum()
    most = 384 * (d_eff + 1) * math.log((d_eff + 1) / DELTA)
    failures = np.zeros(5, dtype=int)
    for run in seeds(seed, n_runs):
        kept, p = algorithm_2(B, ridge, run)
        assert p.min() < 0.9
        assert p.sum() >= 3 * math.log(2 / DELTA)
        size = len(kept.indices)
        failures += [
            spectral_error(B, kept.indices) > ridge,
            outside_invariant(B, kept, ridge),
            np.any(p < np.minimum(1, 16 * exact * math.log(d_eff / DELTA))),
            size > most,
            size > 2 * p.sum(),
        ]
    assert np.all(failures <= allowed(n_runs, 3 * DELTA))


def test_just_below_the_norm_not_any_row_will_do(seed):
    """d_eff < ½ means λ > ‖K‖; with more, a row that says little must not stand alone.

    Two hundred copies of one row and 35 of their own kind, which have two fifths of the
    scores; that none of the copies is kept has probability 10⁻¹².
    """
    B = np.zeros((235, 36))
    B[:200, 0] = 1.0
    B[200:, 1:] = np.sqrt(2.2) * np.eye(35)
    ridge = 199.0
    assert 0.5 < effective_dimension(B, ridge) < 0.9
    for run in seeds(seed, 20):
        landmarks = select_landmarks(
            B,
            kernel="linear",
            max_spectral_error=ridge,
            delta=DELTA,
            sampler="leverage",
            random_state=run,
        )
        assert spectral_error(B, landmarks.indices) <= ridge


def test_a_guarantee_for_weighted_rows_is_one_for_the_weighted_matrix(rng, seed):
    """W^½KW^½, of which rows of weight 0 are no part."""
    B = factor_of_kernel(rng, 2500)
    w = np.where(rng.uniform(size=2500) < 0.2, 0, rng.uniform(0.1, 3, 2500))
    weighted = np.sqrt(w)[:, None] * B
    ridge = ridge_for(weighted, 2)
    landmarks = select_landmarks(
        B,
        kernel="linear",
        max_spectral_error=ridge,
        delta=DELTA,
        sample_weight=w,
        random_state=seed,
    )
    assert len(landmarks) < 1500
    assert landmarks.guarantee.ridge == ridge
    assert spectral_error(weighted, landmarks.indices) <= ridge


# Algorithm 3


@pytest.mark.usefixtures("small_c")
def test_algorithm_3_keeps_its_promise(rng, seed):
    B, n_runs = factor_of_kernel(rng, 1200), 25
    ridge = tail(B.T @ B, 1)
    failures = np.zeros(4, dtype=int)
    for run in seeds(seed, n_runs):
        kept, p, estimate = algorithm_3(B, SIZE, run)
        assert p.min() < 0.9
        failures += [
            spectral_error(B, kept.indices) > min(ridge, estimate),
            outside_invariant(B, kept, ridge),
            outside_invariant(B, kept, estimate),
            estimate > 3 * ridge,
        ]
    assert np.all(failures <= allowed(n_runs, 3 * DELTA))


def test_algorithm_3_keeps_its_promise_with_its_own_c(rng, seed):
    B, size = factor_of_kernel(rng, 4200), 4100
    landmarks = select_landmarks(
        B,
        kernel="linear",
        sampler="recursive",
        n_landmarks=size,
        delta=0.031,
        random_state=seed,
    )
    assert len(landmarks) < 3000  # rows are really drawn
    assert landmarks.guarantee.probability == pytest.approx(1 - 3 * 0.031)
    assert landmarks.guarantee.ridge == landmarks.ridge
    assert landmarks.ridge <= 3 * tail(B.T @ B, 1)
    assert spectral_error(B, landmarks.indices) <= landmarks.ridge


# Power: the same check with a fault


def test_the_invariant_fails_without_weights(rng, seed):
    B = factor_of_kernel(rng, 2500)
    ridge = ridge_for(B, 3)
    kept, p = algorithm_1(B, ridge, seed)
    assert p.min() < 0.4
    ones = sample_bernoulli((np.isin(np.arange(len(B)), kept.indices)) * 1.0, 0)
    np.testing.assert_array_equal(ones.indices, kept.indices)
    assert not outside_invariant(B, kept, ridge)
    assert outside_invariant(B, ones, ridge)
