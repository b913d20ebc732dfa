"""Every level of the recursion against the paper's algorithms on the same numbers.

The theorems alone would not notice a wrong constant: theirs are so generous that even
uniform probabilities pass. So each of the four rules is compared, level by level, with
a dense implementation written from the paper, and faults planted into the rules must
make that comparison fail.
"""

import math
from functools import cache
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import oracles_sampling as oracle
import pytest

from nystrom._random import Purpose, Stream
from nystrom.engines import Threads
from nystrom.kernels import RBF
from nystrom.linalg.cross_kernel import Ledger
from nystrom.samplers import recursive as rules
from nystrom.samplers.base import SamplingProblem
from nystrom.samplers.recursive import (
    PracticalRidge,
    PracticalSize,
    TheoryRidge,
    TheorySize,
    iterate_levels,
)
from nystrom.sources import as_source

pytestmark = pytest.mark.usefixtures("one_blas_thread")

GAMMA, RIDGE, DELTA = 0.02, 20.0, 0.03
SIZE, C = 200, 5  # for Algorithm 3; its own c = 640 would need 4000 landmarks
PRACTICAL_SIZE = 70
N_ROWS = {"2 theory": 2500, "2 practical": 1500, "3 theory": 1500, "3 practical": 1500}
RULES = list(N_ROWS)


@cache
def rows_of(seed, n):
    """A dense cluster and a few rows far from it, so that scores differ."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    X[: n // 50] *= 10
    return X


def randomness(seed, n):
    membership = Stream(seed, Purpose.MEMBERSHIP).uniforms(0, n)
    return membership, lambda level: Stream(seed, Purpose.KEEP, level).uniforms(0, n)


@cache
def expected_levels(name, seed, weighted=False):
    """What the dense algorithms say."""
    n = N_ROWS[name]
    K = oracle.rbf_matrix(rows_of(seed, n), GAMMA)
    if weighted:
        root = np.sqrt(weights_of(seed, n))
        K *= np.outer(root, root)
    numbers = randomness(seed, n)
    if name == "2 theory":
        return oracle.algorithm_2(K, RIDGE, DELTA, *numbers, oversampling=4)
    if name == "2 practical":
        return oracle.practical_2(K, 0.1, *numbers)
    if name == "3 theory":
        return oracle.algorithm_3(K, SIZE, DELTA, *numbers, c=C, oversampling=0.5)
    return oracle.practical_3(K, PRACTICAL_SIZE, *numbers)


def weights_of(seed, n):
    return np.random.default_rng([seed, 1]).uniform(0.2, 3, n)


def rule_of(name):
    return {
        "2 theory": TheoryRidge(RIDGE, DELTA, oversampling=4),
        "2 practical": PracticalRidge(0.1),
        "3 theory": TheorySize(SIZE, DELTA, oversampling=0.5),
        "3 practical": PracticalSize(PRACTICAL_SIZE),
    }[name]


def found_levels(name, seed, weighted=False):
    """What the library does."""
    n = N_ROWS[name]
    X = rows_of(seed, n)
    source = as_source(X, weights_of(seed, n) if weighted else None)
    return list(iterate_levels(work_on(source, seed), rule_of(name)))


def work_on(source, seed, gamma=GAMMA):
    return SamplingProblem(RBF(gamma), source, seed, Threads(1), Ledger())


def members_of(level):
    """The numbers of a level's rows."""
    n = level.rows.n_rows
    return np.arange(n) if level.level == 0 else level.rows.numbers(0, n)


def assert_same_levels(found, expected):
    """Members, λ, p, sample and weights of every level."""
    assert len(found) == len(expected)
    for ours, dense in zip(found, expected, strict=True):
        np.testing.assert_array_equal(members_of(ours), dense.rows)
        np.testing.assert_array_equal(ours.sample.indices, dense.sample)
        np.testing.assert_allclose(ours.sample.weights, dense.weights, rtol=1e-7)
        assert ours.ridge == pytest.approx(dense.ridge, rel=1e-8)
        np.testing.assert_allclose(
            ours.probabilities, dense.probabilities, rtol=1e-6, atol=1e-9
        )


@pytest.fixture
def small_c(monkeypatch):
    monkeypatch.setattr(rules, "THEORY_C", C)


@pytest.mark.usefixtures("small_c")
@pytest.mark.parametrize("name", RULES)
def test_every_level_is_what_the_paper_says(name, seed):
    expected = expected_levels(name, seed)
    assert len(expected) >= 2
    # The comparison is worth something only where rows are really drawn.
    assert all(0 < level.probabilities.min() < 0.9 for level in expected)
    assert any(level.weights.max() > 1.05 for level in expected)
    assert_same_levels(found_levels(name, seed), expected)


@pytest.mark.usefixtures("small_c")
@pytest.mark.parametrize("name", RULES)
def test_every_level_of_weighted_rows_is_that_of_the_weighted_matrix(name, seed):
    expected = expected_levels(name, seed, weighted=True)
    assert_same_levels(found_levels(name, seed, weighted=True), expected)


def test_sums_over_a_level_are_those_of_its_scores(seed):
    """The one of min(1, l̃) is told as the effective dimension."""
    top = found_levels("2 practical", seed)[-1]
    assert np.count_nonzero(top.scores > 1) >= 5
    capped = np.minimum(1, top.scores).sum()
    for totals, chances in (
        (top.sample_bernoulli()[1], 2 * top.scores.sum()),
        (top.sample_fixed_size(20)[1], capped),
    ):
        found = (
            totals.scores,
            totals.capped_scores,
            totals.sampling_weights,
            totals.n_rows,
        )
        expected = top.scores.sum(), capped, chances, 1500
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_cap_scales_down_the_levels_below_the_top(seed):
    X = rows_of(seed, 1500)
    K, ridge, cap = oracle.rbf_matrix(X, 0.5), 0.05, 30
    numbers = randomness(seed, 1500)
    expected = oracle.practical_2(K, ridge, *numbers, largest=cap)
    rule = PracticalRidge(ridge, cap)
    found = list(iterate_levels(work_on(as_source(X), seed, gamma=0.5), rule))
    assert_same_levels(found, expected)
    assert cap < found[-2].probabilities.sum() <= 2 * cap * (1 + 1e-9)
    assert found[-1].probabilities.sum() > 2 * cap


def test_few_landmarks_begin_with_a_base_of_64_rows(seed):
    X = rows_of(seed, 1500)
    numbers = randomness(seed, 1500)
    dense = oracle.practical_3(oracle.rbf_matrix(X, GAMMA), 20, *numbers, base=64)
    found = list(iterate_levels(work_on(as_source(X), seed), PracticalSize(20)))
    assert_same_levels(found, dense)
    assert len(found[0].sample.indices) == math.ceil(1500 / 2**5)


def test_too_small_a_sample_is_replaced_by_uniform_rows(seed, monkeypatch):
    """Practical levels go on with k + 1 rows or more; tiny scores leave fewer."""
    monkeypatch.setattr(
        PracticalSize, "sampling_weights", lambda self, scores, level: 1e-9 + 0 * scores
    )
    work = work_on(as_source(rows_of(seed, 500)), seed)
    for below, above in pairwise(iterate_levels(work, PracticalSize(20))):
        rows = members_of(below)
        coins = Stream(seed, Purpose.KEEP, below.level).uniforms(0, 500)[rows]
        smallest = rows[np.sort(np.argsort(coins)[:20])]
        np.testing.assert_array_equal(above.sample.indices, smallest)
        p = 20 / len(rows)
        np.testing.assert_allclose(above.sample.probabilities, p)
        np.testing.assert_allclose(above.sample.weights, p**-0.5)


def test_more_rows_than_are_expected_may_be_kept(seed):
    """Rows without anything in common: 2·s_l are expected at most, coins keep more."""
    X, size, more = 100.0 * np.arange(1500)[:, None], 20, 0
    rule = PracticalSize(size)
    for run in range(500 * seed, 500 * seed + 500):
        for below, above in pairwise(iterate_levels(work_on(as_source(X), run), rule)):
            rows, p = members_of(below), below.probabilities
            assert p.sum() <= 2 * size * (1 + 1e-9)
            coins = Stream(run, Purpose.KEEP, below.level).uniforms(0, 1500)[rows]
            kept = rows[coins < p]
            if len(kept) >= rule.min_sample()[0]:  # else uniform rows, as above
                np.testing.assert_array_equal(above.sample.indices, kept)
            more += len(kept) > 2 * size
        if more:
            break
    # Else nothing was tried. 13 of 400 runs kept more: it happens once in 10⁷ times.
    assert more > 0


# The constants themselves


@pytest.mark.parametrize("delta", [0.03, 0.001])
@pytest.mark.parametrize("size", [2700, 10_000, 60_000])
def test_the_rank_of_algorithm_3_is_the_largest_its_proof_allows(size, delta):
    k = rules.theory_rank(size, delta)
    assert 640 * (k + 1) * math.log(2 * (k + 1) / delta) > size
    if k:
        assert 640 * k * math.log(2 * k / delta) <= size


@pytest.mark.parametrize("n_levels", [0, 1, 5])
def test_the_least_size_of_algorithm_3_allows_rank_1_on_every_level(n_levels):
    least = rules.min_theory_size(0.01, n_levels)
    assert rules.theory_rank(least, 0.01 / 3**n_levels) >= 1
    assert rules.theory_rank(least - 1, 0.01 / 3**n_levels) == 0


def test_theory_oversamples_by_16_unless_told_otherwise():
    assert TheoryRidge(1.0, 0.01).oversampling == 16
    assert TheorySize(5000, 0.01).oversampling == 16


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 65, 128, 1000])
@pytest.mark.parametrize("size", [1, 10, 100])
def test_practical_halves_are_nested_and_never_empty(n, size, seed):
    among = rules.LevelMembership(as_source(np.zeros((n, 1))), seed)
    rule = PracticalSize(size)
    n_levels = rule.n_levels(among)
    members = [rule.members(among, level) for level in range(n_levels + 1)]
    assert [len(rows) for rows in members] == [
        math.ceil(n / 2**level) for level in range(n_levels + 1)
    ]
    base = max(size, rules.MIN_BASE_ROWS)
    assert len(members[-1]) <= base
    assert n_levels == 1 or len(members[-2]) > base
    for larger, smaller in pairwise(members):
        assert np.isin(smaller, larger).all()


@pytest.mark.parametrize("rule", [PracticalRidge(1.0), TheoryRidge(1.0, 0.01)], ids=str)
@pytest.mark.parametrize("level", [0, 3])
def test_the_multiple_of_the_largest_scores_is_allowed_for(rule, level):
    """Rows that arrive later than the largest multiple are not remembered."""
    scores = np.full(1000, 1 / np.finfo(np.float64).eps)
    totals = rules.ScoreTotals.from_scores(scores, rule.sampling_weights(scores, level))
    largest = rule.max_weight_factor(len(scores), level)
    assert rule.weight_factor(totals, level) == pytest.approx(largest)


@pytest.mark.parametrize("total", [0.01, 2.0, 7.0, 1000.0])
def test_practical_chances_are_multiplied_by_the_log_of_the_scores_or_by_1(total):
    totals = rules.ScoreTotals(total, total, 2 * total, 1e6)
    expected = max(1, math.log(total))
    assert PracticalRidge(1.0).weight_factor(totals, 0) == pytest.approx(expected)


@pytest.mark.parametrize("rule", [PracticalRidge(1.0, 1000), PracticalSize(1000)])
def test_a_level_remembers_more_rows_than_its_coins_keep(rule):
    """A thousand of either allow 2000 on average, with a deviation of at most 45."""
    assert 2000 + 6 * 45 < rule.max_kept(1) < 3000


def test_probabilities_of_algorithm_1_are_never_negative():
    """log(Σl̃/δ) is taken of max(1, Σl̃): a tiny sum would turn the sign."""
    for total in (1e-12, 1e-3, 0.4, 3.0):
        p = rules.bernoulli_probabilities(np.full(10, total / 10), 0.1)
        expected = 16 * total / 10 * math.log(max(1, total) / 0.1)
        np.testing.assert_allclose(p, min(1, expected))


@pytest.mark.parametrize(("n", "n_levels"), [(600, 0), (700, 1), (4300, 2), (4500, 3)])
def test_halvings_end_at_192_log_of_3_to_the_level_over_delta(n, n_levels):
    """δ_l = δ/3ˡ: a level may fail a third as often as the one above it."""
    among = SimpleNamespace(count_below=lambda share: n * share)
    assert TheoryRidge(1.0, 0.03).n_levels(among) == n_levels
    small = [n / 2**k <= 192 * np.log(3**k / 0.03) for k in range(n_levels + 1)]
    assert small == [False] * n_levels + [True]
