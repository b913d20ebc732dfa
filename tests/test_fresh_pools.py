"""How a pool of the default sampler is drawn, and when another one is.

A pool is good as long as it stands for all rows. What it is drawn by is compared with
the formulas; that it is drawn anew, with rows that the pools before it did not have.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from sklearn import config_context
from sklearn.metrics.pairwise import rbf_kernel

from nystrom.engines import Threads, single_threaded_blas
from nystrom.kernels import RBF, Polynomial
from nystrom.linalg.cross_kernel import Ledger
from nystrom.samplers import pooled_greedy as by_gain
from nystrom.samplers import pooled_greedy as plan
from nystrom.samplers.base import SamplingProblem
from nystrom.samplers.pivoting import Pivots
from nystrom.samplers.pool import MIN_RESIDUAL_SHARE, RowPool
from nystrom.samplers.pooled_greedy import (
    VALIDATION_SHARES,
    PooledGreedy,
    PoolPlan,
    pool_sampling_weights,
)
from nystrom.samplers.recursive import run_recursion
from nystrom.samplers.recursive_rules import PracticalSize
from nystrom.samplers.weighted_sampling import ResidualWeights
from nystrom.sources import as_source

GAMMA = 0.3


@pytest.fixture(autouse=True)
def one_blas_thread():
    """Many small matrices: threads inside BLAS only wait for each other."""
    with single_threaded_blas():
        yield


@pytest.fixture(autouse=True)
def few_rows_are_drawn_from(monkeypatch):
    """As many rows are: a pool by score, then one by what is left."""
    monkeypatch.setattr(plan, "MAX_WHOLE_POOL_ROWS", 64)
    monkeypatch.setattr(plan, "MIN_POOLS_TO_SCORE", 1)


def work_on(X, seed, kernel=None, weights=None):
    kernel = RBF(GAMMA) if kernel is None else kernel
    return SamplingProblem(kernel, as_source(X, weights), seed, Threads(1), Ledger())


def left_of(K, rows):
    """The diagonal of what rows leave of K."""
    S = np.asarray(rows)
    left = np.diag(K) - np.sum(K[:, S] * np.linalg.solve(K[np.ix_(S, S)], K[S]).T, 1)
    left[S] = 0.0
    return left


# What rows are drawn by


@pytest.mark.parametrize("weighted", [False, True], ids=["alike", "weighted"])
def test_nine_tenths_by_score_and_one_by_the_diagonal(weighted, rng, seed):
    """The tenth bounds the weights: no row stands for more than ten times its share."""
    X = rng.standard_normal((1500, 3))
    X[:200] *= 3  # k(x, x) = (‖x‖² + 1)² is large there
    w = rng.uniform(0.2, 5, 1500) if weighted else None
    work = work_on(X, seed, Polynomial(degree=2), w)
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


def test_later_pools_are_drawn_by_what_is_left_as_it_counts(rng):
    left, w = rng.uniform(size=50), rng.uniform(0.1, 9, 50)
    chances, sums = ResidualWeights()(left.copy(), w)
    np.testing.assert_allclose(chances, w * left)
    np.testing.assert_allclose(sums, [w @ left])


@pytest.mark.parametrize("begun", [(), (3, 40)])
def test_proposals_are_drawn_by_what_a_row_of_the_pool_stands_for(begun, rng):
    X = rng.standard_normal((80, 3))
    omega = rng.uniform(0.5, 20, 80)
    work = work_on(X, 0)
    pivots = Pivots(work)
    pivots.add(np.array(begun, dtype=np.intp))
    pool = RowPool(work, np.arange(80), omega, pivots, 80, wide=True)
    K = rbf_kernel(X, gamma=GAMMA)
    left = left_of(K, begun) if begun else np.diag(K)
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
    assert pool.residual_trace == pytest.approx(omega @ left_of(K, S), rel=1e-8)


# When another pool is drawn


@pytest.mark.parametrize("weighted", [False, True], ids=["alike", "weighted"])
def test_a_pool_is_stale_at_one_and_a_half_times_what_it_says(weighted, rng, seed):
    """Fresh rows, counted as they count, say how much is left of all."""
    X = rng.standard_normal((2000, 3))
    w = rng.pareto(1.0, 2000) + 0.01 if weighted else None
    growth = PooledGreedy().begin(work_on(X, seed, weights=w))
    growth.grow(30)
    w = np.ones(2000) if w is None else w
    left = left_of(rbf_kernel(X, gamma=GAMMA), growth.pivots.indices)
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


def test_after_a_quarter_all_rows_draw_a_pool(rng, seed, monkeypatch):
    monkeypatch.setattr(by_gain, "VALIDATION_SHARES", ())
    found, growth = found_in_hidden(rng, seed, monkeypatch, until=1)
    assert growth.is_drawn_from_all_rows
    assert f"residuals at {math.ceil(40 / 4)} landmarks" in growth.problem.engine.passes
    # The hidden cloud had a third of the rows, and all of the pivots after that see it.
    assert len(found) >= 5
    assert found[0] >= 10


@pytest.mark.parametrize(("until", "share"), [(15, 0.5), (25, 0.75), (33, 0.9)])
def test_a_pool_that_misses_rows_is_found_stale(until, share, rng, seed, monkeypatch):
    """Also where the pool after a quarter, and the next ones, missed them."""
    monkeypatch.setattr(plan, "REFRESH_BUDGET", (3.0, 50))  # as many looks as there are
    found, growth = found_in_hidden(rng, seed, monkeypatch, until)
    at = math.ceil(share * 40)
    assert f"residuals at {at} landmarks" in growth.problem.engine.passes
    assert len(found) >= 2
    assert found[0] >= at


def test_a_pool_fits_the_working_memory():
    """Its factor has a row for each landmark; two rows per landmark are the least."""
    for megabytes in (1, 4, 1024):
        with config_context(working_memory=megabytes):
            size = PoolPlan(10**6, 300).pool_size
        assert size == 600 or 8 * 300 * size <= megabytes * 2**20
        assert size <= 12 * 300
