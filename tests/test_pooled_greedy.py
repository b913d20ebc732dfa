"""The default sampler: pivots by gain on pools, held against dense formulas.

No theorem covers the choice by gain. What can be checked exactly is checked on the
whole matrix; what is random has bounds calibrated over many seeds.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles_sampling import rbf_matrix
from sklearn import config_context
from sklearn.metrics.pairwise import rbf_kernel

from nystrom import approximate, select_landmarks
from nystrom._precision import MIN_FLOAT32_TRACE_ERROR
from nystrom.engines import Threads
from nystrom.kernels import RBF, Polynomial
from nystrom.linalg.cross_kernel import Ledger
from nystrom.samplers import pool as pools
from nystrom.samplers import pooled_greedy as by_gain
from nystrom.samplers import pooled_greedy as plan
from nystrom.samplers.base import SamplingProblem
from nystrom.samplers.pivoting import Pivots
from nystrom.samplers.pool import (
    MAX_PART_ROWS,
    MIN_RESIDUAL_SHARE,
    RowPool,
    rank_by_gain,
)
from nystrom.samplers.pooled_greedy import (
    VALIDATION_SHARES,
    PooledGreedy,
    PoolPlan,
    pool_sampling_weights,
)
from nystrom.samplers.recursive import PracticalSize, run_recursion
from nystrom.samplers.weighted_sampling import (
    inclusion_probabilities_with_sum,
    residual_weights,
)
from nystrom.sources import as_source

pytestmark = pytest.mark.usefixtures("one_blas_thread")

GAMMA = 0.3
ENGINE = Threads(1)


@pytest.fixture
def X(rng):
    return rng.standard_normal((60, 3))


def work_on(X, seed=0, gamma=GAMMA, weights=None, kernel=None):
    kernel = kernel or RBF(gamma)
    return SamplingProblem(kernel, as_source(X, weights), seed, ENGINE, Ledger())


# Pivots of a few proposals


def deflated(R, j):
    """What is left of R once j is a pivot."""
    return R - np.outer(R[:, j], R[j]) / R[j, j]


def left_of(K, rows):
    """K − K_·S K_SS⁻¹ K_S·."""
    if len(rows) == 0:
        return K
    return K - K[:, rows] @ np.linalg.solve(K[np.ix_(rows, rows)], K[rows])


def dense_gains(R, w, proposals):
    """Σᵢ ωᵢ rᵢⱼ²/rⱼⱼ of each proposal."""
    A = R[:, proposals]
    return (w @ A**2) / np.diagonal(R)[proposals]


def dense_pivots(R, w, proposals, size):
    """Places of the best proposals one after the other, and what is left in the end."""
    chosen = []
    for _ in range(size):
        free = np.setdiff1d(np.arange(len(proposals)), chosen)
        gains = dense_gains(R, w, proposals[free])
        chosen.append(int(free[np.argmax(gains)]))
        R = deflated(R, proposals[chosen[-1]])
    return chosen, R


def ranked(R, w, proposals, size, floor=0.0):
    A = R[:, proposals]
    P = R[np.ix_(proposals, proposals)]
    floor = np.full(len(P), floor)
    return rank_by_gain(P, A.T @ (w[:, None] * A), np.diagonal(P), floor, size)


@pytest.fixture
def some(X, rng):
    """K, weights, and proposals among rows, no two of them close."""
    K, w = rbf_matrix(X, 2.0), rng.uniform(0.5, 20, 60)
    return K, w, rng.permutation(60)[:15]


def test_best_pivots_are_those_of_explicit_deflation(some):
    K, w, proposals = some
    found = ranked(K, w, proposals, 6)
    chosen, R = dense_pivots(K, w, proposals, 6)
    np.testing.assert_array_equal(found.chosen, chosen)
    A = R[:, proposals]
    np.testing.assert_allclose(found.H, A.T @ (w[:, None] * A), atol=1e-10)
    free = np.setdiff1d(np.arange(15), chosen)
    eligible = found.gains[free] >= 0
    expected = dense_gains(R, w, proposals[free])
    np.testing.assert_allclose(found.gains[free][eligible], expected[eligible])
    assert np.all(found.gains[chosen] == -1)


def test_a_proposal_with_a_small_residual_is_not_chosen():
    """Row 1 has most gain but for the first pivot, which leaves 1 % of it."""
    x = np.sqrt(1 - 0.5 * MIN_RESIDUAL_SHARE)
    P = np.array([[1.0, x, 0], [x, 1.0, 0], [0, 0, 1.0]])
    H = np.diag([9.0, 5.0, 1e-3]) + 4 * (P - np.eye(3))
    found = rank_by_gain(P, H, np.ones(3), np.zeros(3), 3)
    np.testing.assert_array_equal(found.chosen, [0, 2])
    assert found.gains[1] == -1
    # Its share is of what it had when it was proposed, not of what it has now.
    found = rank_by_gain(P, H, np.array([1.0, 1e-3, 1.0]), np.zeros(3), 3)
    assert 1 in found.chosen


@pytest.mark.parametrize("above", [1.6, 100.0])
def test_of_equal_gains_the_better_known_is_chosen(above):
    """Row 0 has as much gain as row 1, and a thousandth more, but is near rounding."""
    floor = 1e-12
    p = np.array([above * floor, 1e-4])
    P = np.sqrt(np.outer(p, p)) * np.array([[1.0, 0.5], [0.5, 1.0]])
    H = np.diag(p * [1.001, 1.0])
    found = rank_by_gain(P, H, p, np.full(2, floor), 1)
    np.testing.assert_array_equal(found.chosen, [1])
    # Where rounding is farther below, the thousandth counts.
    found = rank_by_gain(P, H, p, np.full(2, floor / 1e4), 1)
    np.testing.assert_array_equal(found.chosen, [0])


# A pool


class Spy:
    """`best_pivots` that keeps what it was given and what it said."""

    def __init__(self, monkeypatch):
        monkeypatch.setattr(pools, "rank_by_gain", self)

    def __call__(self, P, H, started, floor, size):
        self.P, self.H, self.initial_residuals = P, H, started
        self.ranked = rank_by_gain(P, H, started, floor, size)
        return self.ranked


def make_pool(X, weights=None, begun=(), wide=True):
    work = work_on(X)
    pivots = Pivots(work)
    if len(begun):
        pivots.add(np.array(begun))
    weights = np.ones(len(X)) if weights is None else weights
    return RowPool(work, np.arange(len(X)), weights, pivots, len(X), wide=wide)


def side_by_side(pool, name):
    """An array of all parts, a column for each row of the pool."""
    return np.concatenate([getattr(part, name) for part in pool.parts], axis=1)


def run(pool, spy, K, n_blocks=4, atol=1e-9):
    """Blocks of pivots; at each, everything is compared with the dense matrices."""
    w = pool.weights
    carried = 0
    for _ in range(n_blocks):
        R = left_of(K, pool.pivots.indices)
        proposals = np.argsort(-pool.sampling_weights(), kind="stable")[:6]
        old = pool.candidates
        pool.choose(proposals, 3, keep=4)
        assert not len(pool.flush_pivots())
        c = np.concatenate([old, proposals])
        A = R[:, c]
        np.testing.assert_allclose(side_by_side(pool, "A").T, A, atol=atol)
        np.testing.assert_allclose(spy.P, A[c], atol=atol)
        np.testing.assert_allclose(spy.H, A.T @ (w[:, None] * A), atol=atol * w.sum())
        carried += len(old)
        # After the choice
        S = pool.pivots.indices
        taken = c[spy.ranked.chosen]
        np.testing.assert_array_equal(S[-len(taken) :], taken)
        L = np.linalg.cholesky(K[np.ix_(S, S)])
        np.testing.assert_allclose(
            side_by_side(pool, "F")[: len(S)], np.linalg.solve(L, K[S]), atol=10 * atol
        )
        left = residual_diagonal(K, S)
        np.testing.assert_allclose(pool.residual, left, atol=atol)
        assert np.all(pool.residual[S] == 0)
        assert pool.residual_trace == pytest.approx(w @ left, abs=atol * w.sum())
    assert carried > 0


@pytest.mark.parametrize("begun", [(), (5, 17, 3)], ids=["anew", "after pivots"])
def test_a_pool_of_all_rows_is_the_dense_algorithm(begun, X, rng, monkeypatch):
    for weights in (np.ones(60), rng.uniform(0.5, 30, 60)):
        pool = make_pool(X, weights, begun)
        run(pool, Spy(monkeypatch), rbf_matrix(X, GAMMA))


def test_a_pool_of_several_parts_is_the_dense_algorithm(rng, monkeypatch):
    X = rng.standard_normal((2 * MAX_PART_ROWS + 50, 3))
    pool = make_pool(X, rng.uniform(0.5, 30, len(X)), begun=(5, 17, 2000))
    assert len(pool.parts) == 4
    run(pool, Spy(monkeypatch), rbf_matrix(X, GAMMA), n_blocks=3)


def test_a_pool_that_is_too_fine_for_float32_says_so(X):
    X = X.astype(np.float32)
    pool = make_pool(X, wide=False)
    assert not pool.needs_float64
    while pool.residual_trace > 0.5 * MIN_FLOAT32_TRACE_ERROR * pool.kernel_trace:
        pool.choose(np.argsort(-pool.sampling_weights())[:6], 3, keep=4)
    assert pool.needs_float64
    assert not len(pool.flush_pivots())
    assert not make_pool(X, begun=pool.pivots.indices).needs_float64


def grown(X, s, seed, gamma, weights=None):
    growth = PooledGreedy().begin(work_on(X, seed, gamma, weights))
    growth.grow(s)
    return growth


def test_refused_pivots_are_not_proposed_again(rng, seed, monkeypatch):
    """Rounding may differ at each look: what is left of a row must not decide alone."""
    asked, add = [], Pivots.add

    def refusing(self, indices, X=None, **options):
        asked.append(indices)
        assert len(asked) < 50
        kept = np.flatnonzero(indices % 3 > 0)  # whatever is left of the others
        add(self, indices[kept], X[kept], **options)
        return kept

    monkeypatch.setattr(Pivots, "add", refusing)
    for n in (200, 900, 5000):  # all at once, all in the pool, pools drawn
        X = rng.standard_normal((n, 3))
        asked.clear()
        growth = grown(X, 40, seed, 1.0)
        assert len(growth.pivots) == 40
        assert np.all(growth.pivots.indices % 3 > 0)
        seen = np.concatenate(asked)
        assert len(np.unique(seen)) == len(seen) > 40


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_at_the_bounds_of_parts_are_chosen(dtype, rng, seed):
    """The first and the last row of each part lie far from all others."""
    n = MAX_PART_ROWS + 50
    X = rng.standard_normal((n, 3))
    cuts = np.linspace(0, n, 3).astype(int)  # of the parts
    assert MAX_PART_ROWS < n <= 2 * MAX_PART_ROWS
    apart = np.array([0, cuts[1] - 1, cuts[1], n - 1])
    X[apart] = 50 * (1 + np.arange(4))[:, None]
    assert PoolPlan(n, 300).pool_has_all_rows
    found = select_landmarks(
        X.astype(dtype), gamma=GAMMA, n_landmarks=300, random_state=seed
    )
    assert np.isin(apart, found.indices).all()


# Probabilities and weights of a pool


@given(
    chances=st.lists(
        st.one_of(st.just(0.0), st.floats(1e-9, 1e9)), min_size=1, max_size=40
    ),
    size=st.integers(1, 45),
)
def test_probabilities_with_a_sum(chances, size):
    chances = np.array(chances)
    p = inclusion_probabilities_with_sum(chances, size)
    assert np.all((p >= 0) & (p <= 1))
    np.testing.assert_array_equal(p > 0, chances > 0)
    assert p.sum() == pytest.approx(min(size, np.count_nonzero(chances)))
    below = (p < 1) & (p > 0)
    ratios = p[below] / chances[below]
    if below.any():
        np.testing.assert_allclose(ratios, ratios[0])
        # A row is certain only if its share would be 1 or more.
        assert np.all(ratios[0] * chances[p == 1] >= 1 - 1e-9)


def test_probabilities_of_chances_beside_one_that_is_certain():
    p = inclusion_probabilities_with_sum(np.array([1e300, 1e-20, 1e-20, 2e-20]), 2)
    np.testing.assert_allclose(p, [1, 0.25, 0.25, 0.5])
    p = inclusion_probabilities_with_sum(np.array([1e300, 1e-310, 1e-310, 2e-310]), 2)
    np.testing.assert_allclose(p, [1, 0.25, 0.25, 0.5])


def lopsided(rng, n=1500):
    """A dense cloud, and rows around it, which come first."""
    X = rng.standard_normal((n, 2))
    X[:200] *= 8
    return X


@pytest.fixture
def small_pools(monkeypatch):
    """Few rows are drawn from as many are: by score, then by what is left."""
    monkeypatch.setattr(plan, "MAX_WHOLE_POOL_ROWS", 64)
    monkeypatch.setattr(plan, "MIN_POOLS_TO_SCORE", 1)


class SeenPool(RowPool):
    """What each pool says when it is drawn, beside the truth, and if it had no weights.

    The first is about tr K, later ones are about what the pivots leave of it.
    """

    said: ClassVar[list[tuple[float, float, float]]] = []

    def __init__(self, work, indices, weights, pivots, *rest, **options):
        left = pivots.residuals(work.source)
        super().__init__(work, indices, weights, pivots, *rest, **options)
        self.said.append(
            (self.residual_trace, work.source.weights @ left, self.residual.sum())
        )


def z_score(values, truth):
    off = values - truth
    spread = off.std()
    if spread == 0:  # a pool has as many rows each time
        return np.inf if off.any() else 0.0
    return abs(off.mean()) / (spread / np.sqrt(len(off)))


@pytest.mark.parametrize(
    ("weighted", "some"), [(True, False), (False, True)], ids=["weighted", "some rows"]
)
@pytest.mark.usefixtures("small_pools")
def test_pools_stand_for_all_rows(weighted, some, rng, seed, monkeypatch):
    """Within 5 standard errors of the truth: a false alarm in about 10⁶ runs."""
    X, n_runs = lopsided(rng), 100
    w = rng.uniform(0.2, 5, len(X)) if weighted else None
    monkeypatch.setattr(by_gain, "RowPool", SeenPool)
    monkeypatch.setattr(SeenPool, "said", [])
    monkeypatch.setattr(by_gain, "VALIDATION_SHARES", ())
    if some:  # too few evaluations are allowed for a look at all rows
        per_pair, per_square = plan.REFRESH_BUDGET
        monkeypatch.setattr(plan, "REFRESH_BUDGET", (per_pair - 0.85, per_square))
    for run in range(n_runs * seed, n_runs * (seed + 1)):
        growth = grown(X, 20, run, 0.3, w)
        assert growth.is_drawn_from_all_rows == (not some)
    first, later = np.array(SeenPool.said).reshape(n_runs, 2, 3).transpose(1, 2, 0)
    for said, truth, unweighted in (first, later):
        assert z_score(said, truth) < 5
        # The planted fault: with weights of 1 it stands for itself alone.
        assert z_score(unweighted, truth) > 50


# How good the landmarks are


def unbalanced(rng, n=2000):
    sizes = np.array([3, 4, 5, 6, 8, 10, 15, 20, 30, 100, 300])
    sizes = np.append(sizes, n - sizes.sum())
    centers = 4 * rng.standard_normal((len(sizes), 4))
    return np.repeat(centers, sizes, axis=0) + 0.7 * rng.standard_normal((n, 4))


def zipf(rng, n, n_distinct):
    """Copies of a few rows, the k-th of them ∝ 1/k often and each at least once."""
    p = 1 / np.arange(1, n_distinct + 1)
    drawn = rng.choice(n_distinct, n - n_distinct, p=p / p.sum())
    return rng.permutation(np.concatenate([np.arange(n_distinct), drawn]))


def near_copies(rng, n=2000):
    X = rng.standard_normal((300, 4))[zipf(rng, n, 300)]
    return X + 0.05 * rng.standard_normal(X.shape)


def heavy_tails(rng, n=2000):
    return rng.standard_t(2, (n, 3))


def mean_error(X, sampler, seed, gamma, s=40, runs=5):
    errors = []
    for run in range(runs * seed, runs * seed + runs):
        landmarks = select_landmarks(
            X, gamma=gamma, n_landmarks=s, sampler=sampler, random_state=run
        )
        errors.append(approximate(X, landmarks).trace_error)
    return np.mean(errors)


@pytest.mark.parametrize(
    ("rows", "gamma", "of_uniform", "of_rpcholesky"),
    [
        (unbalanced, 0.1, 0.70, 0.87),
        (near_copies, 0.2, 0.70, 0.89),
        (heavy_tails, 0.2, 0.91, 0.90),
    ],
)
def test_lower_error_than_uniform_and_random_pivots(
    rows, gamma, of_uniform, of_rpcholesky, rng, seed
):
    """Bounds are five standard deviations, over seeds, beyond the mean ratio."""
    X = rows(rng)
    ours, uniform, random = (
        mean_error(X, name, seed, gamma) for name in ("auto", "uniform", "rpcholesky")
    )
    assert ours < of_uniform * uniform
    assert ours < of_rpcholesky * random


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_all_of_150_distinct_rows_are_found(dtype, rng, seed):
    X = (3 * rng.standard_normal((150, 8)))[zipf(rng, 4000, 150)].astype(dtype)
    landmarks = select_landmarks(X, gamma=0.1, n_landmarks=200, random_state=seed)
    assert len(np.unique(landmarks.indices)) == 200
    assert landmarks.rank == 150
    assert approximate(X, landmarks).relative_trace_error.value < 1e-12


class PoolsOf30(PoolPlan):
    """Pools of 30 rows, the first drawn by score."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.pool_size, self.draws_by_score = 30, True


def rank_found(rng, seed, monkeypatch):
    """From pools of 30 rows, the first of which does not hold the five rare rows."""
    kind = zipf(rng, 3000, 60)
    kind[:5] = np.arange(60, 65)
    X = (4 * rng.standard_normal((65, 6)))[kind]

    def pool(work, indices, weights, pivots, *rest, **options):
        if len(pivots) == 0:
            often = kind[indices] < 60
            indices, weights = indices[often], weights[often]
            options["points"] = X[indices]
        return RowPool(work, indices, weights, pivots, *rest, **options)

    monkeypatch.setattr(by_gain, "PoolPlan", PoolsOf30)
    monkeypatch.setattr(by_gain, "RowPool", pool)
    growth = grown(X, 80, seed, 0.5)
    assert len(growth.pivots) == len(np.unique(kind[growth.pivots.indices]))
    return len(growth.pivots), growth


def test_a_dry_pool_is_not_a_rank_found(rng, seed, monkeypatch):
    rank, growth = rank_found(rng, seed, monkeypatch)
    assert rank == 65
    assert growth.exhausted


def test_weights_that_vanish_beside_what_is_left_end_it(rng, seed, monkeypatch):
    """ω·r is 0 and r is not: such a pool is not dry, and a new one draws nothing."""
    asked, chances = [], RowPool.sampling_weights

    def counted(self):
        asked.append(len(self.pivots))
        assert len(asked) < 200
        return chances(self)

    monkeypatch.setattr(RowPool, "sampling_weights", counted)
    X, w = rng.standard_normal((3000, 2)), np.full(3000, 5e-324)
    growth = grown(X, 20, seed, 0.1, w)
    assert asked
    assert growth.exhausted
    asked.clear()
    landmarks = select_landmarks(
        X, gamma=0.1, n_landmarks=20, random_state=seed, sample_weight=w
    )
    assert len(np.unique(landmarks.indices)) == 20


# Cost


@pytest.mark.parametrize(
    ("n", "s", "most"), [(20_000, 40, 1.0), (150_000, 300, 0.9)], ids=str
)
def test_kernel_evaluations_per_row_and_landmark(n, s, most, rng, seed):
    """Levels of the recursion have 64 rows or more: few landmarks cost more each."""
    X = rng.standard_normal((n, 3))
    landmarks = select_landmarks(X, gamma=GAMMA, n_landmarks=s, random_state=seed)
    assert landmarks.n_kernel_evaluations <= most * n * s


def weighted_norms(X, w, gamma, n_landmarks, seed):
    """‖W^½(K − K̃)W^½‖₂ for landmarks by gain, and for those drawn by weight."""
    K, half, norms = rbf_kernel(X, gamma=gamma), np.sqrt(w), []
    for sampler in ("auto", "uniform"):
        S = select_landmarks(
            X,
            gamma=gamma,
            n_landmarks=n_landmarks,
            sampler=sampler,
            sample_weight=w,
            random_state=seed,
        ).indices
        left = K - K[:, S] @ np.linalg.pinv(K[np.ix_(S, S)], 1e-12, True) @ K[S]
        norms.append(np.linalg.norm(half[:, None] * left * half, 2))
    return norms


def gain_over_uniform(seed, weight):
    """Of rows of which a few are far from all others, and hardly count."""
    ratios = []
    for run in range(4 * seed, 4 * seed + 4):
        rng = np.random.default_rng(run)
        X, w = rng.standard_normal((500, 2)), np.ones(500)
        X[:30], w[:30] = 20 + 20 * rng.standard_normal((30, 2)), weight
        found, uniform = weighted_norms(X, w, 0.3, 30, run)
        ratios.append(found / uniform)
    return np.exp(np.mean(np.log(ratios)))


@pytest.mark.parametrize("weight", [1e-3, 1e-4])
def test_rare_rows_that_hardly_count_are_left_out(weight, seed):
    assert gain_over_uniform(seed, weight) < 0.3  # .06 to .15


# How a pool is drawn, and when another one is


def residual_diagonal(K, rows):
    """The diagonal of what rows leave of K, exactly 0 at themselves."""
    rows = np.asarray(rows, dtype=np.intp)
    left = np.diagonal(left_of(K, rows)).copy()
    left[rows] = 0.0
    return left


# What rows are drawn by


@pytest.mark.parametrize("weighted", [False, True], ids=["alike", "weighted"])
@pytest.mark.usefixtures("small_pools")
def test_nine_tenths_by_score_and_one_by_the_diagonal(weighted, rng, seed):
    """The tenth bounds the weights: no row stands for more than ten times its share."""
    X = rng.standard_normal((1500, 3))
    X[:200] *= 3  # k(x, x) = (‖x‖² + 1)² is large there
    w = rng.uniform(0.2, 5, 1500) if weighted else None
    work = work_on(X, seed, weights=w, kernel=Polynomial(degree=2))
    growth = PooledGreedy().begin(work)
    growth._plan_for(60)
    assert growth.plan.draws_by_score
    chances = pool_sampling_weights(work, growth.plan)
    scores = run_recursion(work, PracticalSize(growth.plan.level_size)).scores
    scores = np.minimum(1.0, scores)
    whole = (np.vecdot(X, X) + 1) ** 2 * (1.0 if w is None else w)
    expected = 0.9 * scores / scores.sum() + 0.1 * whole / whole.sum()
    np.testing.assert_allclose(chances, expected, rtol=1e-9)
    assert chances.sum() == pytest.approx(1)
    assert np.all(chances >= 0.1 * whole / whole.sum() * (1 - 1e-9))


@pytest.mark.usefixtures("small_pools")
def test_later_pools_are_drawn_by_what_is_left_as_it_counts(rng):
    left, w = rng.uniform(size=50), rng.uniform(0.1, 9, 50)
    chances, sums = residual_weights(left.copy(), w)
    np.testing.assert_allclose(chances, w * left)
    np.testing.assert_allclose(sums, [w @ left])


@pytest.mark.parametrize("begun", [(), (3, 40)])
@pytest.mark.usefixtures("small_pools")
def test_proposals_are_drawn_by_what_a_row_of_the_pool_stands_for(begun, rng):
    X = rng.standard_normal((80, 3))
    omega = rng.uniform(0.5, 20, 80)
    work = work_on(X, 0)
    pivots = Pivots(work)
    pivots.add(np.array(begun, dtype=np.intp))
    pool = RowPool(work, np.arange(80), omega, pivots, 80, wide=True)
    K = rbf_kernel(X, gamma=GAMMA)
    left = residual_diagonal(K, begun) if begun else np.diag(K)
    np.testing.assert_allclose(pool.sampling_weights(), omega * left, atol=1e-10)
    # Those that are proposed already are not proposed again.
    pool.choose(np.arange(50, 60), 3, keep=4)
    assert len(pool.candidates)
    assert not pool.sampling_weights()[pool.candidates].any()
    S = np.concatenate([np.array(begun, dtype=np.intp), pool.indices[pool.pending]])
    # And those that are kept have the largest gains by now, of those in the race.
    others = np.setdiff1d(np.arange(50, 60), S)
    R = K - K[:, S] @ np.linalg.solve(K[np.ix_(S, S)], K[S])
    others = others[np.diag(R)[others] > MIN_RESIDUAL_SHARE * left[others]]
    gains = omega @ R[:, others] ** 2 / np.diag(R)[others]
    best = others[np.argsort(-gains)[:4]]
    np.testing.assert_array_equal(np.sort(pool.candidates), np.sort(best))
    assert pool.residual_trace == pytest.approx(
        omega @ residual_diagonal(K, S), rel=1e-8
    )


# When another pool is drawn


@pytest.mark.parametrize("weighted", [False, True], ids=["alike", "weighted"])
@pytest.mark.usefixtures("small_pools")
def test_a_pool_is_stale_at_one_and_a_half_times_what_it_says(weighted, rng, seed):
    """Fresh rows, counted as they count, say how much is left of all."""
    X = rng.standard_normal((2000, 3))
    w = rng.pareto(1.0, 2000) + 0.01 if weighted else None
    growth = PooledGreedy().begin(work_on(X, seed, weights=w))
    growth.grow(30)
    w = np.ones(2000) if w is None else w
    left = residual_diagonal(rbf_kernel(X, gamma=GAMMA), growth.pivots.indices)
    seen = []
    for look, rows in zip(VALIDATION_SHARES, growth.validation_subsets, strict=True):
        numbers = rows.row_numbers
        seen.append(numbers)
        fresh = 2000 * np.mean(w[numbers] * left[numbers])
        said = growth.pool.residual_trace
        for share, stale in ((1.49, False), (1.51, True)):
            growth.pool.weights = growth.pool.weights * (fresh / share / said)
            said = growth.pool.residual_trace
            assert said == pytest.approx(fresh / share)
            assert growth._is_pool_stale(look) is stale
    # Rows that were looked at once are not fresh.
    for one, other in pairwise(seen):
        assert len(np.intersect1d(one, other)) < 0.5 * len(one)


def found_in_hidden(rng, seed, monkeypatch, until, s=40):
    """Landmarks among rows that no pool has before there are so many pivots.

    Two clouds that have nothing in common, a third of the rows in the hidden one.
    """
    X = rng.standard_normal((1800, 3))
    hidden = rng.permutation(1800) < 600
    X[hidden] += 50

    def pool(work, indices, weights, pivots, *rest, points=None, **options):
        if len(pivots) < until:
            shown = ~hidden[indices]
            indices, weights = indices[shown], weights[shown]
        return RowPool(work, indices, weights, pivots, *rest, **options)

    monkeypatch.setattr(by_gain, "RowPool", pool)
    growth = PooledGreedy().begin(work_on(X, seed))
    growth.grow(s)
    assert len(growth.pivots) == s
    return np.flatnonzero(hidden[growth.pivots.indices]), growth


@pytest.mark.usefixtures("small_pools")
def test_after_a_quarter_all_rows_draw_a_pool(rng, seed, monkeypatch):
    monkeypatch.setattr(by_gain, "VALIDATION_SHARES", ())
    found, growth = found_in_hidden(rng, seed, monkeypatch, until=1)
    assert growth.is_drawn_from_all_rows
    assert f"residuals at {math.ceil(40 / 4)} landmarks" in growth.problem.engine.passes
    # The hidden cloud had a third of the rows, and all of the pivots after that see it.
    assert len(found) >= 5
    assert found[0] >= 10


@pytest.mark.parametrize(("until", "share"), [(15, 0.5), (25, 0.75), (33, 0.9)])
@pytest.mark.usefixtures("small_pools")
def test_a_pool_that_misses_rows_is_found_stale(until, share, rng, seed, monkeypatch):
    """Also where the pool after a quarter, and the next ones, missed them."""
    monkeypatch.setattr(plan, "REFRESH_BUDGET", (3.0, 50))  # as many looks as there are
    found, growth = found_in_hidden(rng, seed, monkeypatch, until)
    at = math.ceil(share * 40)
    assert f"residuals at {at} landmarks" in growth.problem.engine.passes
    assert len(found) >= 2
    assert found[0] >= at


@pytest.mark.usefixtures("small_pools")
def test_a_pool_fits_the_working_memory():
    """Its factor has a row for each landmark; two rows per landmark are the least."""
    for megabytes in (1, 4, 1024):
        with config_context(working_memory=megabytes):
            size = PoolPlan(10**6, 300).pool_size
        assert size == 600 or 8 * 300 * size <= megabytes * 2**20
        assert size <= 12 * 300
