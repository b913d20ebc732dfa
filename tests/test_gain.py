"""The default sampler: pivots by gain on pools, held against dense formulas.

No theorem covers the choice by gain. What can be checked exactly is checked on the
whole matrix; what is random has bounds calibrated over many seeds.
"""

from __future__ import annotations

import tracemalloc
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from oracles_sampling import rbf_matrix
from sklearn.metrics.pairwise import rbf_kernel

from nystrom import approximate, select_landmarks
from nystrom._precision import MIN_FLOAT32_TRACE_ERROR
from nystrom.engines import Threads, single_threaded_blas, threads
from nystrom.kernels import RBF, Linear, blockwise
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
    as_float32_rows,
    part_bounds,
    rank_by_gain,
)
from nystrom.samplers.pooled_greedy import PooledGreedy, PoolPlan
from nystrom.samplers.weighted_sampling import inclusion_probabilities_with_sum
from nystrom.sources import as_source

GAMMA = 0.3
ENGINE = Threads(1)


@pytest.fixture(autouse=True)
def one_blas_thread():
    """Many small matrices: threads inside BLAS only wait for each other."""
    with single_threaded_blas():
        yield


@pytest.fixture
def X(rng):
    return rng.standard_normal((60, 3))


def work_on(X, seed=0, gamma=GAMMA, weights=None):
    return SamplingProblem(RBF(gamma), as_source(X, weights), seed, ENGINE, Ledger())


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


def test_ranking_once_is_not_ranking_after_each_pivot(rng, seed):
    """The planted fault: without deflation near-copies of the best are taken too."""
    centers = np.repeat(4.0 * np.arange(5), [8, 7, 6, 5, 4])[:, None]
    K, w = rbf_matrix(centers + 0.3 * rng.standard_normal((30, 1)), 1.0), np.ones(30)
    once = np.argsort(-dense_gains(K, w, np.arange(30)))[:5]
    chosen = ranked(K, w, np.arange(30), 5).chosen
    assert len(np.unique(centers[chosen])) == 5 > len(np.unique(centers[once]))


def test_a_proposal_of_which_a_small_share_is_left_is_not_taken():
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


def test_a_proposal_at_its_floor_is_not_taken():
    P, H = np.eye(3), np.diag([3.0, 2.0, 1.0])
    found = rank_by_gain(P, H, np.zeros(3), np.array([0.0, 1.0, 0.5]), 3)
    np.testing.assert_array_equal(found.chosen, [0, 2])


@pytest.mark.parametrize("above", [1.6, 100.0])
def test_of_equal_gains_the_one_that_is_better_known_is_taken(above):
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


def test_copies_are_taken_once(rng):
    X = rng.standard_normal((4, 2)) + 8.0 * np.arange(4)[:, None]  # none hides another
    K = rbf_matrix(X[[0, 1, 2, 3, 0, 1, 1, 0, 3]], 1.0)
    found = ranked(K, np.ones(9), np.arange(9), 9, floor=1e-12)
    kinds = np.array([0, 1, 2, 3, 0, 1, 1, 0, 3])[found.chosen]
    np.testing.assert_array_equal(np.sort(kinds), np.arange(4))
    assert np.all(found.gains == -1)


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
        left = np.diagonal(left_of(K, S)).copy()
        left[S] = 0
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


def test_a_float32_pool_is_close_to_a_float64_one(X, rng, monkeypatch):
    X, w = X.astype(np.float32), rng.uniform(0.5, 30, 60)
    K = rbf_matrix(X.astype(np.float64), GAMMA)
    narrow, wide = make_pool(X, w, wide=False), make_pool(X, w)
    assert [pool.parts[0].F.dtype for pool in (narrow, wide)] == [np.float32, float]
    run(narrow, Spy(monkeypatch), K, n_blocks=3, atol=1e-5)
    run(wide, Spy(monkeypatch), K, n_blocks=3)


def test_the_gain_of_a_pivot_is_the_fall_of_the_trace_error(X, rng, monkeypatch):
    spy, K = Spy(monkeypatch), rbf_matrix(X, GAMMA)
    pool = make_pool(X)
    for _ in range(6):
        before = np.trace(left_of(K, pool.pivots.indices))
        assert pool.residual_trace == pytest.approx(before)
        proposals = rng.permutation(np.flatnonzero(pool.sampling_weights()))[:8]
        c = np.concatenate([pool.candidates, proposals])
        assert pool.choose(proposals, 1, keep=5) == 1
        assert not len(pool.flush_pivots())
        after = np.trace(left_of(K, pool.pivots.indices))
        gains = np.diagonal(spy.H) / np.diagonal(spy.P)
        assert gains[spy.ranked.chosen[0]] == pytest.approx(before - after)
        # No other candidate would have taken off more.
        falls = [before - np.trace(left_of(K, [*pool.pivots.indices[:-1], j]))
                 for j in c]  # fmt: skip
        fit = np.diagonal(spy.P) > MIN_RESIDUAL_SHARE * spy.initial_residuals
        assert before - after == pytest.approx(np.max(np.array(falls)[fit]))


def test_a_pool_of_what_the_pivots_span_has_nothing_left(X):
    pool = make_pool(X[np.arange(60) % 5], begun=range(5))
    assert pool.is_exhausted
    assert not pool.residual.any()
    assert not pool.sampling_weights().any()
    assert not pool.needs_float64


def test_what_seems_left_but_is_rounding_is_given_up(X):
    """No pivot comes of it: the pool must say so, or the caller asks for ever."""
    pool = make_pool(X[np.arange(60) % 5], begun=range(5))
    pool.residual[10:20] = 1e-6
    assert pool.choose(np.arange(10, 20), 3, keep=4) == 0
    assert not pool.residual.any()
    assert len(pool.candidates) == 0


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


def test_what_is_too_fine_for_float32_is_chosen_in_float64(rng, seed):
    X = rng.standard_normal((1000, 2)).astype(np.float32)
    coarse, fine = grown(X, 30, seed, 5.0), grown(X, 30, seed, 0.05)
    assert not coarse.wide
    assert coarse.pool.parts[0].F.dtype == np.float32
    assert fine.wide
    assert fine.pool.parts[0].F.dtype == np.float64


def test_pivots_that_are_refused_are_never_taken_again(rng, seed, monkeypatch):
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


def test_float64_rows_are_ranked_in_float32_where_that_is_the_same(rng):
    X, kernel = rng.standard_normal((700, 3)), RBF(0.5)
    far = X + 1e6  # float32 would have but a few values for each feature
    for rows in (X, far):
        made = as_float32_rows(kernel, rows, Ledger())
        assert made.dtype == np.float32
        np.testing.assert_allclose(kernel(made, made[:9]), kernel(X, X[:9]), atol=1e-5)
    ledger, spread = Ledger(), X * np.where(np.arange(700) == 9, 1e5, 1)[:, None]
    spread[10] = spread[9] + 0.3  # two near rows, both far from all others
    assert as_float32_rows(kernel, spread, ledger) is spread
    assert ledger.n_evaluations == 2 * 8 * (8 + 256)
    # Nothing to gain, or no distance: as they are.
    narrow = X.astype(np.float32)
    assert as_float32_rows(kernel, narrow, Ledger()) is narrow
    assert as_float32_rows(Linear(), X, Ledger()) is X


def test_what_is_chosen_in_float32_is_as_good(rng, seed, monkeypatch):
    X = unbalanced(rng, 1500)
    narrow = mean_error(X, "auto", seed, 0.1)
    assert grown(X, 40, seed, 0.1).pool.parts[0].F.dtype == np.float32
    monkeypatch.setattr(pools, "MIN_NARROWING_ROWS", 10**9)
    assert grown(X, 40, seed, 0.1).pool.parts[0].F.dtype == np.float64
    assert narrow == pytest.approx(mean_error(X, "auto", seed, 0.1), rel=0.02)


def test_threads_on_the_parts_of_a_pool_change_nothing(rng, seed, monkeypatch):
    X = rng.standard_normal((5000, 4)).astype(np.float32)
    monkeypatch.setattr(threads, "MIN_THREADED_MULTIPLY_ADDS", 0)
    one, two = (
        select_landmarks(
            X, gamma=0.1, n_landmarks=700, random_state=seed, n_jobs=n_jobs
        )
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.indices, two.indices)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_at_the_bounds_of_parts_are_chosen(dtype, rng, seed):
    """The first and the last row of each part lie far from all others."""
    n = MAX_PART_ROWS + 50
    X = rng.standard_normal((n, 3))
    cuts = part_bounds(n)
    assert len(cuts) == 3
    apart = np.array([0, cuts[1] - 1, cuts[1], n - 1])
    X[apart] = 50 * (1 + np.arange(4))[:, None]
    assert PoolPlan(n, 300).pool_has_all_rows
    found = select_landmarks(
        X.astype(dtype), gamma=GAMMA, n_landmarks=300, random_state=seed
    )
    assert np.isin(apart, found.indices).all()


@pytest.mark.parametrize("n", [1, 2047, 2048, 2049, 4096, 4097, 12_000])
def test_parts_have_all_rows_once(n):
    cuts = part_bounds(n)
    assert (cuts[0], cuts[-1]) == (0, n)
    sizes = np.diff(cuts)
    assert sizes.max() <= MAX_PART_ROWS
    assert sizes.max() - sizes.min() <= 1
    assert len(sizes) == 1 or len(sizes) % 2 == 0


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


@pytest.mark.parametrize("scale", [2.0**-1070, 2.0**-1000, 2.0**1013])
def test_probabilities_of_chances_at_any_scale(scale, rng):
    chances = rng.integers(1, 100, 40).astype(np.float64)
    chances[:3] = 900
    expected = inclusion_probabilities_with_sum(chances, 12)
    assert 0 < np.count_nonzero(expected == 1) < 12
    np.testing.assert_array_equal(
        inclusion_probabilities_with_sum(scale * chances, 12), expected
    )


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


def few_rows_are_drawn_from(monkeypatch):
    """As many rows are: a pool by score, then one by what is left."""
    monkeypatch.setattr(plan, "MAX_WHOLE_POOL_ROWS", 64)
    monkeypatch.setattr(plan, "MIN_POOLS_TO_SCORE", 1)


class SeenPool(RowPool):
    """What each pool says when it is drawn, beside the truth, and if it had no weights.

    The first is about tr K, later ones are about what the pivots leave of it.
    """

    said: ClassVar[list[tuple[float, float, float]]] = []

    def __init__(self, work, indices, weights, pivots, *rest, **options):
        left = pivots.residuals(work.source, ENGINE)
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
def test_pools_stand_for_all_rows(weighted, some, rng, seed, monkeypatch):
    """Within 5 standard errors of the truth: a false alarm in about 10⁶ runs."""
    X, n_runs = lopsided(rng), 100
    w = rng.uniform(0.2, 5, len(X)) if weighted else None
    monkeypatch.setattr(by_gain, "RowPool", SeenPool)
    monkeypatch.setattr(SeenPool, "said", [])
    monkeypatch.setattr(by_gain, "VALIDATION_SHARES", ())
    few_rows_are_drawn_from(monkeypatch)
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


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_many_copies_do_not_keep_a_rare_row_out(dtype, rng, seed):
    """A pool of copies runs dry after few pivots, and one row in 4000 is not in it."""
    kind = rng.integers(0, 14, 4000)
    kind[7] = 14
    X = (4 * rng.standard_normal((15, 6)))[kind].astype(dtype)
    for run in range(5 * seed, 5 * seed + 5):
        landmarks = select_landmarks(X, gamma=0.5, n_landmarks=40, random_state=run)
        assert len(np.unique(kind[landmarks.indices])) == 15


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

    monkeypatch.setattr(PoolPlan, "pool_size", 30)
    monkeypatch.setattr(by_gain, "RowPool", pool)
    growth = grown(X, 80, seed, 0.5)
    assert len(growth.pivots) == len(np.unique(kind[growth.pivots.indices]))
    return len(growth.pivots), growth


def test_a_dry_pool_is_not_a_rank_found(rng, seed, monkeypatch):
    rank, growth = rank_found(rng, seed, monkeypatch)
    assert rank == 65
    assert growth.exhausted


def test_a_dry_pool_taken_for_the_rank_would_show(rng, seed, monkeypatch):
    """The planted fault for the test above."""

    def dry(self):
        return "pool" in vars(self) and self.pool.is_exhausted

    exhausted = property(dry, lambda self, value: None)
    monkeypatch.setattr(PooledGreedy, "exhausted", exhausted, raising=False)
    assert rank_found(rng, seed, monkeypatch)[0] < 60


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


# Rows and kernels of every kind


def shared_letters(x, y):
    """Pairs of neighbouring letters that two words share, as a cosine."""
    a, b = ({w[i : i + 2] for i in range(len(w) - 1)} for w in (x, y))
    return len(a & b) / np.sqrt(len(a) * len(b))


def words(rng, n=150):
    stems = ["".join(rng.choice(list("abcdefgh"), 6)) for _ in range(12)]
    kinds = zipf(rng, n, 12)
    return [stems[k] + "".join(rng.choice(list("xyz"), 2)) for k in kinds]


def input_of(kind, rng):
    if kind == "words":
        return words(rng, 120), {"kernel": shared_letters}
    X = unbalanced(rng, 700)
    if kind == "csr":
        return sp.csr_array(np.where(np.abs(X) > 1, X, 0.0)), {"gamma": 0.1}
    if kind == "precomputed":
        return rbf_matrix(X, 0.1), {"kernel": "precomputed"}
    kernel = blockwise(
        lambda X, Y: rbf_kernel(X, Y, gamma=0.1), diag=lambda X: np.ones(len(X))
    )
    return X, {"kernel": kernel}


@pytest.mark.parametrize("kind", ["words", "csr", "precomputed", "blockwise"])
def test_every_kind_of_rows_and_kernel(kind, rng, seed):
    X, options = input_of(kind, rng)
    errors = {"auto": [], "uniform": []}
    for run in range(3 * seed, 3 * seed + 3):
        for sampler, values in errors.items():
            landmarks = select_landmarks(
                X, n_landmarks=20, sampler=sampler, random_state=run, **options
            )
            assert len(np.unique(landmarks.indices)) == 20
            values.append(approximate(X, landmarks).trace_error)
    assert np.mean(errors["auto"]) < np.mean(errors["uniform"])


def test_a_function_of_pairs_and_few_rows_is_not_worth_ranking(rng, seed):
    X = words(rng, 40)
    options = {"kernel": shared_letters, "n_landmarks": 20, "random_state": seed}
    found = select_landmarks(X, **options)
    uniform = select_landmarks(X, sampler="uniform", **options)
    np.testing.assert_array_equal(found.indices, uniform.indices)
    assert found.n_kernel_evaluations == 0
    more = select_landmarks(words(rng, 41), **options)
    assert more.n_kernel_evaluations > 0


def test_weights_are_copies_in_terms_of_error(rng, seed):
    """Most of the weight lies on a few rows, which uniform draws by weight repeat."""
    X = rng.standard_normal((1200, 3))
    w = np.ceil(rng.pareto(1.0, 1200)).clip(1, 60).astype(int)
    copies = np.repeat(X, w, axis=0)
    errors = np.empty((5, 4))
    for run in range(5):
        options = {"gamma": 0.3, "n_landmarks": 30, "random_state": 5 * seed + run}
        for j, sampler in enumerate(("auto", "uniform")):
            found = select_landmarks(X, sample_weight=w, sampler=sampler, **options)
            errors[run, j] = approximate(X, found, sample_weight=w).trace_error
        repeated = select_landmarks(copies, **options)
        errors[run, 2] = approximate(copies, repeated).trace_error
        blind = select_landmarks(X, **options)
        errors[run, 3] = approximate(X, blind, sample_weight=w).trace_error
    weighted, uniform, repeated, blind = errors.mean(axis=0)
    assert weighted < 0.9 * uniform
    assert weighted < blind
    assert weighted == pytest.approx(repeated, rel=0.15)


@pytest.mark.parametrize("n", [200, 2000], ids=["all in the pool", "some"])
def test_rows_of_weight_0_are_in_no_pool(n, rng, seed, monkeypatch):
    drawn = []

    class Seen(RowPool):
        def __init__(self, work, indices, weights, *args, **options):
            drawn.append((work.source.take(indices), weights))
            super().__init__(work, indices, weights, *args, **options)

    monkeypatch.setattr(by_gain, "RowPool", Seen)
    few_rows_are_drawn_from(monkeypatch)
    X = rng.standard_normal((n, 2))
    w = np.where(rng.uniform(size=n) < 0.5, 0.0, 2.0)
    landmarks = select_landmarks(X, n_landmarks=30, sample_weight=w, random_state=seed)
    assert np.all(w[landmarks.indices] > 0)
    assert len(drawn) == 1 if n == 200 else len(drawn) > 1
    kept = {tuple(x) for x in X[w > 0]}
    for points, weights in drawn:
        assert np.all(weights > 0)
        assert {tuple(x) for x in points} <= kept


# Cost


@pytest.mark.parametrize(
    ("n", "s", "most"), [(20_000, 40, 1.0), (150_000, 300, 0.9)], ids=str
)
def test_kernel_evaluations_per_row_and_landmark(n, s, most, rng, seed):
    """Levels of the recursion have 64 rows or more: few landmarks cost more each."""
    X = rng.standard_normal((n, 3))
    landmarks = select_landmarks(X, gamma=GAMMA, n_landmarks=s, random_state=seed)
    assert landmarks.n_kernel_evaluations <= most * n * s


def test_nothing_of_size_n_times_s_is_kept(rng, seed):
    X = rng.standard_normal((60_000, 4))
    select_landmarks(X[:3000], gamma=GAMMA, n_landmarks=50)  # imports and caches
    tracemalloc.start()
    try:
        select_landmarks(X, gamma=GAMMA, n_landmarks=50, random_state=seed, n_jobs=1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * 60_000 * 50 / 3


@pytest.mark.parametrize("power", [-900, -600, 600, 900])
@pytest.mark.parametrize("n_rows", [400, 5000])
def test_the_scale_of_the_kernel_does_not_matter(power, n_rows, seed):
    """Gains are sums of squares, of which neither overflows nor vanishes."""
    X = np.random.default_rng(seed).standard_normal((n_rows, 3))
    first, other = (
        select_landmarks(X, kernel=kernel, n_landmarks=25, random_state=seed)
        for kernel in (RBF(0.5), RBF(0.5) * 2.0**power)
    )
    if n_rows < pools.MIN_NARROWING_ROWS:  # in float64 both
        np.testing.assert_array_equal(first.indices, other.indices)
    errors = [
        approximate(X, each).relative_trace_error.value for each in (first, other)
    ]
    np.testing.assert_allclose(errors[1], errors[0], rtol=0.2)


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


def test_without_their_weights_they_would_be_taken(seed, monkeypatch):
    """The planted fault: a pool in which all rows count alike."""

    def alike(work, indices, weights, *rest, **options):
        return RowPool(work, indices, np.ones_like(weights), *rest, **options)

    monkeypatch.setattr(by_gain, "RowPool", alike)
    assert gain_over_uniform(seed, 1e-3) > 0.4  # .65 to 1.2
