"""Uniforms by row number, and races that are successive sampling and nothing else."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from nystrom import _random as randomness
from nystrom._random import (
    Purpose,
    as_seed,
    inclusion_probabilities,
    sample_by_exponential_keys,
    sorted_row_sample,
    uniforms,
    uniforms_at,
)

#: The chance that a test of chance fails although all is well.
FALSE_FAIL = 1e-6
TRIALS = 10_000


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
    whole = uniforms(seed, Purpose.KEEP, 0, 3050, **stream)
    part = uniforms(seed, Purpose.KEEP, start, start + length, **stream)
    np.testing.assert_array_equal(part, whole[start : start + length])


def test_what_a_seed_means_is_fixed():
    expected = [0.17546085, 0.39910441, 0.22635222]
    drawn = uniforms(42, Purpose.DRAW, 5, 8, level=2, round=1)
    np.testing.assert_allclose(drawn, expected, atol=1e-8)


def test_numbers_are_uniform(seed):
    u = uniforms(seed, Purpose.MEMBERSHIP, 0, 50_000)
    assert u.min() >= 0
    assert u.max() < 1
    assert stats.kstest(u, "uniform").pvalue > FALSE_FAIL


def test_streams_are_uncorrelated(seed):
    n = 20_000
    streams = [
        uniforms(s, purpose, 0, n, level, round)
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
    starts = {tuple(uniforms(s, p, 0, 2, level, round)) for s, p, level, round in keys}
    assert len(starts) == 3 * len(Purpose) * 4 * 3


# --- seeds --------------------------------------------------------------------------


def test_a_whole_number_is_its_own_seed():
    assert as_seed(7) == as_seed(np.int32(7)) == as_seed(np.uint64(7)) == 7
    assert as_seed(2**64 + 7) == 7
    assert 0 <= as_seed(-1) < 2**64
    uniforms(as_seed(-1), Purpose.DRAW, 0, 1)


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_a_generator_gives_another_seed_each_time_and_the_same_again(make):
    first, second = make(3), make(3)
    drawn = [as_seed(first) for _ in range(3)]
    assert drawn == [as_seed(second) for _ in range(3)]
    assert len(set(drawn)) == 3


def test_what_is_no_seed_is_an_error():
    with pytest.raises(ValueError, match="random_state='today' is not allowed"):
        as_seed("today")


# --- races --------------------------------------------------------------------------


def races(weights, size, seed):
    """The winners of many races, each on its own uniforms."""
    n = len(weights)
    u = uniforms(seed, Purpose.DRAW, 0, n * TRIALS).reshape(TRIALS, n)
    return [sample_by_exponential_keys(weights, row, size) for row in u]


def misfits(counts, probabilities):
    """What occurred too often or too seldom: exact binomial tails, Bonferroni."""
    limit = FALSE_FAIL / 2 / len(probabilities)
    return [
        event
        for event, p in probabilities.items()
        if stats.binom.cdf(counts[event], TRIALS, p) < limit
        or stats.binom.sf(counts[event] - 1, TRIALS, p) < limit
    ]


def totals(won, values, probabilities):
    """Horvitz–Thompson: Σ value/probability over each race's winners."""
    return np.array(
        [(values[rows] / probabilities(rows, limit)).sum() for rows, limit in won]
    )


def is_biased(estimates, truth):
    error = stats.sem(estimates)
    return abs(estimates.mean() - truth) > stats.norm.isf(FALSE_FAIL / 2) * error


def test_totals_weighted_by_the_probability_to_win_are_unbiased(seed):
    weights = np.array([1.0, 1.0, 0.1, 2.0, 0.4, 0.7])
    values = np.array([1.0, -3.0, 0.5, 2.0, 2.0, 1.0])
    won = races(weights, 3, seed)
    estimates = totals(
        won, values, lambda rows, limit: inclusion_probabilities(weights[rows], limit)
    )
    assert not is_biased(estimates, values.sum())


@given(data=st.data(), n_rows=st.integers(1, 30))
def test_winners_are_the_first_to_arrive_and_the_limit_is_the_next(data, n_rows):
    positive = st.sampled_from([1e-300, 1e-12, 0.1, 1.0, 1e12])
    weight = st.one_of(st.just(0.0), positive)
    weights = np.array(data.draw(st.lists(weight, min_size=n_rows, max_size=n_rows)))
    size = data.draw(st.integers(1, n_rows))
    u = uniforms(data.draw(st.integers(0, 2**32)), Purpose.DRAW, 0, n_rows)
    rows, limit = sample_by_exponential_keys(weights, u, size)
    runners = np.count_nonzero(weights)
    assert len(rows) == len(set(rows.tolist())) == min(size, runners)
    assert (weights[rows] > 0).all()
    everyone, never = sample_by_exponential_keys(weights, u, n_rows)
    assert never == np.inf
    np.testing.assert_array_equal(rows, everyone[:size])
    with np.errstate(over="ignore"):
        arrivals = -np.log1p(-u[everyone]) / weights[everyone]
    assert (np.diff(arrivals[np.isfinite(arrivals)]) >= 0).all()
    assert limit == (arrivals[size] if runners > size else np.inf)
    p = inclusion_probabilities(weights[rows], limit)
    assert ((p >= 0) & (p <= 1)).all()


@pytest.mark.parametrize("heat", [1, 7, 50])
@pytest.mark.parametrize("size", [1, 20, 99, 100, 150])
def test_a_race_in_heats_is_the_same_race(heat, size, rng, monkeypatch):
    weights = rng.choice([0.0, 1e-300, 0.1, 1.0, 30.0], 100)
    u = rng.choice(rng.random(60), 100)  # some arrive together
    at_once = (
        sample_by_exponential_keys(weights, u, size),
        sample_by_exponential_keys(None, u, size),
    )
    monkeypatch.setattr(randomness, "CHUNK_ROWS", heat)
    for found, expected in zip((weights, None), at_once, strict=True):
        rows, limit = sample_by_exponential_keys(found, u, size)
        np.testing.assert_array_equal(rows, expected[0])
        assert limit == expected[1]


@pytest.mark.parametrize("heat", [1, 10, 2**20])
def test_numbers_of_some_rows_are_those_of_all(heat, seed, rng, monkeypatch):
    monkeypatch.setattr(randomness, "CHUNK_ROWS", heat)
    rows = np.flatnonzero(rng.random(3000) < 0.05)
    whole = uniforms(seed, Purpose.KEEP, 0, 3000, level=2)
    found = uniforms_at(seed, Purpose.KEEP, rows, level=2)
    np.testing.assert_array_equal(found, whole[rows])
    assert len(uniforms_at(seed, Purpose.KEEP, rows[:0])) == 0


def test_rows_to_measure_on_are_uniform_and_ascending(seed):
    counts = Counter()
    for trial in range(TRIALS):
        rows = sorted_row_sample(5, 2, seed=seed * TRIALS + trial)
        assert rows[0] < rows[1]
        counts[tuple(rows.tolist())] += 1
    assert misfits(counts, dict.fromkeys(combinations(range(5), 2), 0.1)) == []
    np.testing.assert_array_equal(sorted_row_sample(5, 9), np.arange(5))
