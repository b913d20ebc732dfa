"""Draws from probabilities: coins, and races for a fixed number of rows.

Frequencies over many seeds are compared with what they should be, each by an exact
binomial bound; all bounds of one test together are exceeded once in a million runs. The
same comparison with planted faults shows that it has power.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles_sampling import successive_draws
from scipy.stats import binom

from nystrom._random import Purpose
from nystrom.engines import Threads
from nystrom.kernels import RBF
from nystrom.linalg.cross_kernel import Ledger
from nystrom.samplers.base import SamplingProblem
from nystrom.samplers.recursive import iterate_levels
from nystrom.samplers.recursive_rules import TheoryRidge
from nystrom.samplers.weighted_sampling import (
    KeyedSampler,
    WeightedSample,
    bernoulli_from_keys,
    sample_all_rows,
    sample_bernoulli,
    sample_fixed_size,
)
from nystrom.sources import as_source

FALSE_ALARM = 1e-6


def assert_frequencies(counts, p, n_draws):
    """Each count is binomial(n_draws, p), at a false alarm of 1e-6 for all together."""
    counts, p = np.asarray(counts), np.asarray(p)
    tail = FALSE_ALARM / (2 * len(p))
    assert np.all(counts >= binom.ppf(tail, n_draws, p))
    assert np.all(counts <= binom.ppf(1 - tail, n_draws, p))


def seeds(seed, n_draws):
    return range(n_draws * seed, n_draws * (seed + 1))


@pytest.fixture(scope="module")
def top_probabilities():
    """p at the top of one recursion: all streams below it are fixed."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 2))
    X[:30] *= 10
    rule = TheoryRidge(20.0, 0.03, oversampling=2.0)
    work = SamplingProblem(RBF(0.02), as_source(X), 0, Threads(1), Ledger())
    p = list(iterate_levels(work, rule))[-1].probabilities[:200]
    assert p.min() < 0.1 < 0.5 < p.max()
    return p


# Coins


def coin_counts(p, draws):
    counts = np.zeros(len(p), dtype=int)
    for draw in draws:
        counts[sample_bernoulli(p, draw).indices] += 1
    return counts


def test_coins_keep_each_row_with_its_own_probability(top_probabilities, seed):
    draws = seeds(seed, 2000)
    counts = coin_counts(top_probabilities, draws)
    assert_frequencies(counts, top_probabilities, len(draws))


def test_coins_of_different_rows_are_independent(seed):
    """Pairs are kept together as often as the product of their probabilities."""
    draws = seeds(seed, 2000)
    p = np.array([0.9, 0.5, 0.5, 0.3, 0.7, 0.2])
    kept = np.zeros((len(draws), 6))
    for i, draw in enumerate(draws):
        kept[i, sample_bernoulli(p, draw).indices] = 1
    first, second = np.triu_indices(6, 1)
    together = (kept[:, first] * kept[:, second]).sum(axis=0)
    # Where no coin falls one row comes back alone: it does not make a pair.
    assert_frequencies(together, p[first] * p[second], len(draws))


def test_kept_rows_carry_their_probabilities_and_weights(seed):
    p = np.linspace(0.1, 1, 50)
    kept = sample_bernoulli(p, seed)
    np.testing.assert_array_equal(kept.indices, np.sort(kept.indices))
    np.testing.assert_array_equal(kept.probabilities, p[kept.indices])
    np.testing.assert_allclose(kept.weights, p[kept.indices] ** -0.5)


def test_probability_1_keeps_and_probability_0_drops(seed):
    p = np.array([0, 1, 0, 1, 1, 0.0])
    np.testing.assert_array_equal(sample_bernoulli(p, seed).indices, [1, 3, 4])


def test_no_probability_is_above_1(seed):
    """Chances are: rows that are certain several times over are in S once."""
    kept = sample_bernoulli(np.array([5.0, 1.5, 1e-30]), seed)
    np.testing.assert_array_equal(kept.indices, [0, 1])
    np.testing.assert_array_equal(kept.probabilities, 1)


def test_where_no_coin_falls_a_row_with_a_chance_is_kept(seed):
    kept = sample_bernoulli(np.array([0.0, 3e-30, 2e-30]), seed)
    assert kept.indices in ([1], [2])
    np.testing.assert_array_equal(kept.weights, [1])
    any_row = sample_bernoulli(np.zeros(3), seed)
    assert len(any_row.indices) == 1
    np.testing.assert_array_equal(any_row.weights, [1])


# Races


@pytest.mark.parametrize(
    ("weights", "size"),
    [
        ([1, 1, 0.1], 2),
        ([1, 1, 1, 1], 2),
        ([0.5, 0.02, 0.3, 1, 0.7], 3),
        ([5, 1, 1, 1, 0.2, 0.01], 2),
        ([2, 1], 1),
    ],
)
def test_a_race_is_one_draw_after_the_other(weights, size, seed):
    """Every ordered outcome against its probability by enumeration."""
    weights, draws = np.array(weights, dtype=float), seeds(seed, 3000)
    chances = successive_draws(weights, size)
    assert sum(chances.values()) == pytest.approx(1)
    counts = dict.fromkeys(chances, 0)
    for draw in draws:
        counts[tuple(sample_fixed_size(size, weights, draw).indices.tolist())] += 1
    assert_frequencies(list(counts.values()), list(chances.values()), len(draws))


def test_weights_of_a_race_make_unbiased_sums(seed):
    """E Σ_{i kept} wᵢ² = 1 per row: what the weights of a fixed-size draw are for."""
    scores, draws = np.array([1, 0.7, 0.5, 0.2, 0.1, 0.05]), seeds(seed, 3000)
    squares = np.zeros((len(draws), 6))
    for i, draw in enumerate(draws):
        drawn = sample_fixed_size(3, scores, draw)
        squares[i, drawn.indices] = drawn.weights**2
    error = squares.std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(squares.mean(axis=0) - 1) < 6 * error)


def test_scores_that_run_out_are_filled_up_uniformly(seed):
    scores, draws = np.array([0, 1, 0, 0, 1e-12, 0, 0.0]), seeds(seed, 2000)
    counts = np.zeros(7)
    for draw in draws:
        drawn = sample_fixed_size(4, scores, draw)
        assert set(drawn.indices[:2].tolist()) == {1, 4}
        assert len(set(drawn.indices.tolist())) == 4
        assert drawn.probabilities.tolist() == [1, 1, 2 / 5, 2 / 5]
        counts[drawn.indices[2:]] += 1
    filled = [0, 2, 3, 5, 6]
    assert_frequencies(counts[filled], np.full(5, 2 / 5), len(draws))


@given(
    scores=st.lists(
        st.one_of(st.just(0.0), st.floats(1e-300, 1), st.just(1.0)),
        min_size=1,
        max_size=40,
    ),
    data=st.data(),
)
def test_exactly_so_many_different_rows_come_back(scores, data):
    size = data.draw(st.integers(1, len(scores)))
    drawn = sample_fixed_size(
        size, np.array(scores), data.draw(st.integers(0, 2**64 - 1))
    )
    assert len(drawn.indices) == len(drawn.probabilities) == size
    assert len(set(drawn.indices.tolist())) == size
    assert np.all((drawn.probabilities > 0) & (drawn.probabilities <= 1))
    assert np.all(np.isfinite(drawn.weights))


def test_a_longer_race_begins_with_the_shorter_one(seed):
    scores = np.random.default_rng(seed).uniform(size=100)
    long = sample_fixed_size(50, scores, seed).indices
    np.testing.assert_array_equal(
        sample_fixed_size(20, scores, seed).indices, long[:20]
    )


def test_a_cap_draws_as_many_rows_by_the_same_probabilities(seed):
    p = np.linspace(0.6, 0.9, 100)
    kept = sample_bernoulli(p, seed)
    same = sample_bernoulli(p, seed, max_landmarks=100)
    np.testing.assert_array_equal(same.indices, kept.indices)
    assert same.n_requested is None
    fewer = sample_bernoulli(p, seed, max_landmarks=10)
    assert len(set(fewer.indices.tolist())) == 10
    assert fewer.n_requested == len(kept.indices)
    np.testing.assert_allclose(
        fewer.probabilities / p[fewer.indices],
        fewer.probabilities[0] / p[fewer.indices[0]],
    )


def test_more_rows_than_are_remembered_are_wanted(seed):
    """The last of 100 to arrive says how many there would be: 500 ± 50, of 1000."""
    race = KeyedSampler(seed, Purpose.KEEP, bernoulli=True, max_rows=100)
    capped = bernoulli_from_keys(
        race.sample(np.full(1000, 0.5)), 1.0, 1000, seed, max_landmarks=10
    )
    assert 300 < capped.n_requested < 800
    certain = bernoulli_from_keys(
        race.sample(np.full(110, 1e9)), 1.0, 110, seed, max_landmarks=10
    )
    assert certain.n_requested == 110


@pytest.mark.parametrize("cap", [None, 8, 9])
def test_all_rows_that_a_cap_allows_are_wanted_and_drawn(cap, seed):
    drawn = sample_all_rows(8, cap, seed)
    np.testing.assert_array_equal(drawn.indices, np.arange(8))
    np.testing.assert_array_equal(drawn.probabilities, 1)
    assert drawn.n_requested is None
    fewer = sample_all_rows(8, 7, seed)
    assert (len(fewer.indices), fewer.n_requested) == (7, 8)


def test_a_cap_estimates_sums_without_bias(seed):
    """Σ 1/p over the rows kept is the number of rows, on average."""
    draws = seeds(seed, 2000)
    p = np.concatenate([np.full(5, 0.9), np.full(40, 0.3)])
    said = [
        np.sum(1 / sample_bernoulli(p, d, max_landmarks=8).probabilities) for d in draws
    ]
    off = np.mean(said) - len(p)
    assert abs(off) < 5 * np.std(said) / np.sqrt(len(said))
    # The planted fault: probabilities as they were before the cap.
    kept = [sample_bernoulli(p, d, max_landmarks=8).indices for d in draws]
    assert abs(np.mean([np.sum(1 / p[rows]) for rows in kept]) - len(p)) > 5


def test_a_cap_takes_rows_by_their_chances_also_above_1(seed):
    """All of either kind are made out, on average, to five standard errors.

    Rows that are certain several times over come before those that are just so: a cap
    that drew uniformly among the rows kept would take as many of a kind as there are.
    """
    chances = np.concatenate([np.full(10, 5.0), np.full(100, 0.5)])
    likely, told = [], []
    for draw in seeds(seed, 2000):
        kept = sample_bernoulli(chances, draw, max_landmarks=10)
        of_first = kept.indices < 10
        likely.append(np.count_nonzero(of_first))
        told.append(
            [np.sum(1 / kept.probabilities[of]) for of in (of_first, ~of_first)]
        )
    off = np.mean(told, axis=0) - [10, 100]
    assert np.all(np.abs(off) < 5 * np.std(told, axis=0) / np.sqrt(len(told)))
    # At the multiple 0.1 five of the first and five of the others are expected.
    assert 4 < np.mean(likely) < 6


def test_of_rows_that_arrive_together_the_first_ones_win():
    """Else it would depend on how rows are cut into tiles who is among the winners."""
    ones = np.ones(3)
    three = WeightedSample(np.array([5, 2, 9]), ones, ones, ones, None, max_rows=2)
    np.testing.assert_array_equal(np.sort(three.first(2).numbers), [2, 5])
    np.testing.assert_array_equal(three.sorted_by_key().numbers, [2, 5, 9])
    other = WeightedSample(np.array([1, 7, 3]), ones, ones, ones, None, max_rows=2)
    for both in (three + other, other + three):
        np.testing.assert_array_equal(np.sort(both.numbers), [1, 2])
