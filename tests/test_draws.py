"""Random numbers addressed by row, and weighted sampling from them.

Frequencies over many seeds are compared with what they should be, each by an exact
binomial bound; all bounds of one test together are exceeded once in a million runs. The
same comparison with planted faults shows that it has power.
"""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles_sampling import successive_draws
from scipy import stats
from scipy.stats import binom

from nystrom import _random as randomness
from nystrom._random import Purpose, Stream, as_seed, sorted_row_sample
from nystrom.engines import Threads
from nystrom.kernels import RBF
from nystrom.linalg.cross_kernel import Ledger
from nystrom.samplers.base import SamplingProblem
from nystrom.samplers.recursive import TheoryRidge, iterate_levels
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


def test_bernoulli_sampling_keeps_each_row_with_its_probability(
    top_probabilities, seed
):
    draws = seeds(seed, 2000)
    counts = coin_counts(top_probabilities, draws)
    assert_frequencies(counts, top_probabilities, len(draws))


def test_rows_are_kept_independently(seed):
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


def test_an_empty_bernoulli_sample_is_replaced_by_one_row(seed):
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
def test_exponential_keys_are_successive_sampling(weights, size, seed):
    """Every ordered outcome against its probability by enumeration."""
    weights, draws = np.array(weights, dtype=float), seeds(seed, 3000)
    chances = successive_draws(weights, size)
    assert sum(chances.values()) == pytest.approx(1)
    counts = dict.fromkeys(chances, 0)
    for draw in draws:
        counts[tuple(sample_fixed_size(size, weights, draw).indices.tolist())] += 1
    assert_frequencies(list(counts.values()), list(chances.values()), len(draws))


def test_weights_of_a_fixed_size_sample_make_unbiased_sums(seed):
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


def test_more_rows_than_are_remembered_are_wanted(seed):
    """The last of 100 to arrive says how many there would be: 500 ± 50, of 1000."""
    race = KeyedSampler(Stream(seed, Purpose.KEEP), bernoulli=True, max_rows=100)
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


def test_of_rows_that_arrive_together_the_first_ones_win():
    """Else it would depend on how rows are cut into tiles who is among the winners."""
    ones = np.ones(3)
    three = WeightedSample(np.array([5, 2, 9]), ones, ones, ones, None, max_rows=2)
    np.testing.assert_array_equal(np.sort(three.first(2).numbers), [2, 5])
    np.testing.assert_array_equal(three.sorted_by_key().numbers, [2, 5, 9])
    other = WeightedSample(np.array([1, 7, 3]), ones, ones, ones, None, max_rows=2)
    for both in (three + other, other + three):
        np.testing.assert_array_equal(np.sort(both.numbers), [1, 2])


# Uniforms by row number, and exponential keys

#: The chance that a test of chance fails although all is well.
FALSE_FAIL = 1e-6


# --- uniforms -----------------------------------------------------------------------


@given(
    seed=st.integers(0, 2**64 - 1),
    start=st.integers(0, 3000),
    length=st.integers(0, 50),
    level=st.integers(0, 40),
    round=st.integers(0, 5),
)
def test_a_rows_number_does_not_depend_on_what_else_is_asked_for(
    seed, start, length, level, round
):
    stream = {"level": level, "round": round}
    whole = Stream(seed, Purpose.KEEP, **stream).uniforms(0, 3050)
    part = Stream(seed, Purpose.KEEP, **stream).uniforms(start, start + length)
    np.testing.assert_array_equal(part, whole[start : start + length])


def test_what_a_seed_means_is_fixed():
    expected = [0.17546085, 0.39910441, 0.22635222]
    drawn = Stream(42, Purpose.DRAW, level=2, round=1).uniforms(5, 8)
    np.testing.assert_allclose(drawn, expected, atol=1e-8)


def test_numbers_are_uniform(seed):
    u = Stream(seed, Purpose.MEMBERSHIP).uniforms(0, 50_000)
    assert u.min() >= 0
    assert u.max() < 1
    assert stats.kstest(u, "uniform").pvalue > FALSE_FAIL


def test_streams_are_uncorrelated(seed):
    n = 20_000
    streams = [
        Stream(s, purpose, level, round).uniforms(0, n)
        for s, purpose, level, round in [
            *((seed, purpose, 0, 0) for purpose in Purpose),
            (seed, Purpose.KEEP, 1, 0),
            (seed, Purpose.KEEP, 0, 1),
            (seed, Purpose.KEEP, 1, 1),
            (seed, Purpose.KEEP, 2, 0),
            (seed + 1, Purpose.KEEP, 0, 0),
            (seed + 1, Purpose.KEEP, 1, 0),
        ]
    ]
    # One stream shifted by a row must not be another one either.
    streams += [np.roll(u, 1) for u in streams[:3]]
    pairs = list(combinations(range(len(streams)), 2))
    worst = stats.norm.isf(FALSE_FAIL / 2 / len(pairs)) / np.sqrt(n)
    correlations = np.corrcoef(streams)
    assert max(abs(correlations[i, j]) for i, j in pairs) < worst


def test_no_two_streams_are_the_same():
    keys = product((0, 1, 2**63), Purpose, (0, 1, 2, 24), (0, 1, 2))
    starts = {tuple(Stream(*key).uniforms(0, 2)) for key in keys}
    assert len(starts) == 3 * len(Purpose) * 4 * 3


# --- seeds --------------------------------------------------------------------------


def test_a_whole_number_is_its_own_seed():
    assert as_seed(7) == as_seed(np.int32(7)) == as_seed(np.uint64(7)) == 7
    assert as_seed(2**64 + 7) == 7
    assert 0 <= as_seed(-1) < 2**64
    Stream(as_seed(-1), Purpose.DRAW).uniforms(0, 1)


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_a_generator_gives_another_seed_each_time_and_the_same_again(make):
    first, second = make(3), make(3)
    drawn = [as_seed(first) for _ in range(3)]
    assert drawn == [as_seed(second) for _ in range(3)]
    assert len(set(drawn)) == 3


def test_what_is_no_seed_is_an_error():
    with pytest.raises(ValueError, match="random_state='today' is not allowed"):
        as_seed("today")


@pytest.mark.parametrize("heat", [1, 10, 2**20])
def test_numbers_of_some_rows_are_those_of_all(heat, seed, rng, monkeypatch):
    monkeypatch.setattr(randomness, "CHUNK_ROWS", heat)
    rows = np.flatnonzero(rng.random(3000) < 0.05)
    whole = Stream(seed, Purpose.KEEP, level=2).uniforms(0, 3000)
    found = Stream(seed, Purpose.KEEP, level=2).uniforms_at(rows)
    np.testing.assert_array_equal(found, whole[rows])
    assert len(Stream(seed, Purpose.KEEP).uniforms_at(rows[:0])) == 0


def test_rows_to_measure_on_are_uniform_and_ascending(seed):
    draws = seeds(seed, 10_000)
    counts = dict.fromkeys(combinations(range(5), 2), 0)
    for draw in draws:  # a pair that is not ascending has no place
        counts[tuple(sorted_row_sample(5, 2, seed=draw).tolist())] += 1
    assert_frequencies(list(counts.values()), np.full(10, 0.1), len(draws))
    np.testing.assert_array_equal(sorted_row_sample(5, 9), np.arange(5))
