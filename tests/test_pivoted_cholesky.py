"""Pivoted Cholesky without its factor: the textbook's order, and its distribution.

The textbook algorithm keeps what is left of all of K; ours keeps bounds of its diagonal
and looks at a few rows at a time. How many, and when a pass renews the bounds, must
change neither the greedy order nor the law of the random one.
"""

from itertools import permutations

import numpy as np
import pytest
from oracles_sampling import nystrom, rbf_matrix
from scipy.stats import chi2

from nystrom import select_landmarks
from nystrom._random import Purpose, Stream
from nystrom.engines import Threads
from nystrom.kernels import RBF, Linear, Precomputed, RationalQuadratic
from nystrom.linalg.cross_kernel import Ledger
from nystrom.samplers import Greedy, RPCholesky, pivoting
from nystrom.samplers.base import SamplingProblem
from nystrom.samplers.pivoting import LazySampler, Pivots
from nystrom.sources import RowNumbers, as_source

pytestmark = pytest.mark.usefixtures("one_blas_thread")

FALSE_ALARM = 1e-6
BOTH = [Greedy(), RPCholesky()]
ENGINE = Threads(1)


def work_on(kernel, X, seed=0):
    return SamplingProblem(kernel, as_source(X), seed, ENGINE, Ledger())


def deflated(K, j):
    """What pivot j leaves of K; exactly nothing of itself."""
    left = K - np.outer(K[:, j], K[j]) / K[j, j]
    left[j] = left[:, j] = 0.0
    return left


def textbook(K, size, w):
    """Cholesky with complete pivoting: each time the row with most left."""
    order = []
    for _ in range(size):
        order.append(int(np.argmax(w * np.diag(K))))
        K = deflated(K, order[-1])
    return order


def kept(self, value):
    vars(self)["in_vain"] = value


def many_or_none(self):
    return 1e9 * vars(self)["in_vain"]


def passes(monkeypatch, when):
    """Make a pass after every row looked at in vain, never, or as costs say."""
    if when == "always":
        in_vain = property(many_or_none, kept)
        monkeypatch.setattr(LazySampler, "n_rejected", in_vain, raising=False)
    elif when == "never":
        monkeypatch.setattr(pivoting, "PASS_SECONDS_PER_ROW", (1.0, 1.0, 1.0))
    elif when == "often":
        monkeypatch.setattr(pivoting, "PASS_SECONDS_PER_ROW", (0.0, 0.0, 0.0))


# Greedy


@pytest.mark.parametrize("when", ["as costs say", "often", "always", "never"])
@pytest.mark.parametrize("batch", [(1, 1), (3, 3), (16, 256), (500, 500)])
def test_greedy_has_the_order_of_the_textbook(batch, when, rng, monkeypatch):
    """On a matrix whose rows are far from ties, all the way to the full rank."""
    n = 40
    A = rng.standard_normal((n, n)) * rng.uniform(0.1, 2, n)[:, None]
    K, w = A @ A.T, rng.uniform(0.5, 2, n)
    passes(monkeypatch, when)
    monkeypatch.setattr(pivoting, "BATCH_ROWS_RANGE", batch)
    source = RowNumbers(n, w)
    for size in (1, 2, 16, 30):
        found = Greedy()(Precomputed(K), source, size, seed=0, engine=ENGINE)
        assert found.indices.tolist() == textbook(K, size, w)


def test_a_row_with_a_little_more_left_goes_first(rng):
    """Rows 1 … 40 are nearly alike; the best of them is beyond the first batch."""
    left = 1 - 1e-5 * rng.permutation(40)
    K = np.diag(np.concatenate([[2.0], left]))
    K[0, 1:] = K[1:, 0] = np.sqrt(2 * (1 - left))
    K[1:, 1:] += np.outer(K[1:, 0], K[0, 1:]) / 2
    K[np.arange(1, 41), np.arange(1, 41)] = 1.0
    found = Greedy()(Precomputed(K), RowNumbers(41), 10, seed=0, engine=ENGINE)
    assert found.indices.tolist() == textbook(K, 10, np.ones(41))


def test_of_equal_rows_greedy_takes_the_first():
    X = 100.0 * np.arange(60)[:, None] % 4000
    found = Greedy()(RBF(1.0), as_source(X), 40, seed=0, engine=ENGINE)
    assert found.indices.tolist() == list(range(40))


# Random pivots


def ordered_draws(K, size, w):
    """The probability of every ordered outcome, one pivot after the other."""
    chances = {}
    for order in permutations(range(len(K)), size):
        left, chance = K, 1.0
        for j in order:
            d = w * np.diag(left)
            chance *= d[j] / d.sum()
            if chance == 0:
                break
            left = deflated(left, j)
        if chance > 0:
            chances[order] = chance
    return chances


def statistic(K, size, w, seed, n_draws=1000, source=None):
    """Chi-square of all ordered outcomes, and its limit for one in a million."""
    chances = ordered_draws(K, size, w)
    assert sum(chances.values()) == pytest.approx(1)
    # Only outcomes expected often enough for the chi-square distribution by themselves.
    rare = [order for order, chance in chances.items() if chance * n_draws < 10]
    counts = dict.fromkeys(chances, 0)
    kernel, source = Precomputed(K), source or RowNumbers(len(K), w)
    for draw in range(n_draws * seed, n_draws * (seed + 1)):
        found = RPCholesky()(kernel, source, size, seed=draw, engine=ENGINE)
        counts[tuple(found.indices.tolist())] += 1
    p = [chances[o] for o in chances if o not in rare]
    c = [counts[o] for o in chances if o not in rare]
    if rare:
        p.append(sum(chances[o] for o in rare))
        c.append(sum(counts[o] for o in rare))
    expected = n_draws * np.array(p)
    value = float(np.sum((np.array(c) - expected) ** 2 / expected))
    # The chi-square law is a limit: for 1000 draws of the cases here, four million
    # multinomial draws had their one in a million at 0.98 to 1.17 of it.
    return value, 1.25 * chi2.isf(FALSE_ALARM, len(p) - 1)


NEAR = rbf_matrix(np.array([[0.0], [0.4], [0.7], [2.0]]), 0.7)
SCALES = np.array([1.0, 1.5, 0.7, 1.2])
UNEQUAL = NEAR * np.outer(SCALES, SCALES)
# Both rows have 0.3 left after the first, the second of what was more than three times
# as much: it is rejected often, and must come back.
REJECTED = np.array([[10, 7**0.5, 0], [7**0.5, 1, 0], [0, 0, 0.3]])
# The same with a tenth of it left.
SPANNED = np.array([[10, 3, 0], [3, 1, 0], [0, 0, 0.1]])
APART = rbf_matrix(np.array([[0.0], [0.9], [2.0]]), 0.7)
WAYS = [("as costs say", (16, 256)), ("always", (16, 256)), ("always", (1, 1)),
        ("never", (1, 1)), ("never", (2, 2))]  # fmt: skip


@pytest.mark.parametrize(("when", "batch"), WAYS)
def test_pivots_are_drawn_by_what_is_left(when, batch, seed, monkeypatch):
    """Every ordered pair of rows as often as it should be, whatever was looked at."""
    passes(monkeypatch, when)
    monkeypatch.setattr(pivoting, "BATCH_ROWS_RANGE", batch)
    value, limit = statistic(UNEQUAL, 2, np.ones(4), seed)
    assert value < limit


@pytest.mark.parametrize("when", ["always", "never"])
@pytest.mark.parametrize(
    ("K", "size", "w"),
    [(NEAR, 2, [1.0, 0.3, 2.0, 1.0]), (APART, 3, [1.0, 1.0, 1.0])],
    ids=["weighted", "three of three"],
)
def test_pivots_of_weighted_rows_and_to_the_last(K, size, w, when, seed, monkeypatch):
    passes(monkeypatch, when)
    if size == len(K):  # all rows are taken as they are, so one of nothing is added
        K = np.pad(K, (0, 1))
        w = [*w, 1.0]
    value, limit = statistic(K, size, np.array(w), seed)
    assert value < limit


@pytest.mark.parametrize("when", ["always", "never"])
def test_rejected_rows_come_back(when, seed, monkeypatch):
    passes(monkeypatch, when)
    value, limit = statistic(REJECTED, 2, np.ones(3), seed)
    assert value < limit


@pytest.mark.parametrize("K", [SPANNED, UNEQUAL], ids=["spanned", "unequal"])
def test_bounds_brought_down_at_every_ring_change_no_chance(K, seed, monkeypatch):
    passes(monkeypatch, "never")
    monkeypatch.setattr(pivoting, "MAX_REJECTIONS", 0)
    value, limit = statistic(K, 2, np.ones(len(K)), seed)
    assert value < limit


def few_nearly_alike(rng):
    """All but 1e-9 of every row is gone with the first pivot."""
    return RationalQuadratic(1e3), 0.01 * rng.standard_normal((7, 30)), 6


def of_unlike_scales(rng):
    """The largest rows are nearly parallel, and the smallest ring 1e18 times later."""
    X = np.array([[1e6, 1.0], [1e6, 2.0], [1e6, 3.0], [0.0, 1e-3]])
    return Linear(), np.concatenate([X, 1e-3 * rng.standard_normal((3, 2))]), 3


@pytest.mark.parametrize("make", [few_nearly_alike, of_unlike_scales])
def test_a_row_with_next_to_nothing_left_does_not_ring_for_ever(make, rng, monkeypatch):
    kernel, X, size = make(rng)
    rings = []

    def counted(*stream, **options):
        if stream[1] is Purpose.PROPOSE:
            rings.append(stream)
            assert len(rings) < 20_000 * size
        return Stream(*stream, **options)

    monkeypatch.setattr(pivoting, "Stream", counted)
    for seed in range(5):
        rings.clear()
        landmarks = RPCholesky()(kernel, as_source(X), size, seed=seed, engine=ENGINE)
        assert rings
        assert len(np.unique(landmarks.indices)) == size


# The factor


@pytest.mark.parametrize("make", [Greedy, RPCholesky])
def test_the_factor_is_that_of_the_pivots_in_order(make, rng, seed):
    X = rng.standard_normal((400, 3))
    growth = make().begin(work_on(RBF(0.5), X, seed))
    growth.grow(30)
    first = growth.pivots.indices.tolist()
    growth.grow(70)
    pivots = growth.pivots
    assert pivots.indices[:30].tolist() == first
    K = rbf_matrix(X, 0.5)
    K_SS = K[np.ix_(pivots.indices, pivots.indices)]
    np.testing.assert_allclose(pivots.L, np.linalg.cholesky(K_SS), atol=1e-9)
    np.testing.assert_array_equal(pivots.L, np.tril(pivots.L))
    left = np.diag(K - nystrom(K, pivots.indices))
    found = pivots.residuals(pivots.problem.source)
    np.testing.assert_allclose(found, left, atol=1e-9)


def test_added_rows_that_others_span_are_left_out(rng):
    X = rng.standard_normal((10, 2))
    X = np.concatenate([X, X[:3]])
    pivots = Pivots(work_on(RBF(1.0), X))
    assert pivots.add(np.array([0, 10, 4])).tolist() == [0, 2]
    kept = pivots.add(np.array([4, 12, 2, 11, 1]))
    assert kept.tolist() == [1, 3]
    assert pivots.indices.tolist() == [0, 4, 12, 11]
    K_SS = rbf_matrix(X[pivots.indices], 1.0)
    np.testing.assert_allclose(pivots.L @ pivots.L.T, K_SS, atol=1e-14)
    K, rows = rbf_matrix(X, 1.0), pivots.indices
    error = [
        np.trace(K - K[:, S] @ np.linalg.solve(K[np.ix_(S, S)], K[S]))
        for S in (rows[:1], rows[:2], rows)
    ]
    path = pivots.shorten(error[2], 13.0, 1.001 * error[1] / 13)
    np.testing.assert_allclose(path, error[:2])
    np.testing.assert_allclose(pivots.L @ pivots.L.T, K_SS[:2, :2], atol=1e-14)


# Rank


def grown(sampler, kernel, X, size, seed):
    growth = sampler.begin(work_on(kernel, X, seed))
    growth.grow(size)
    return growth


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sampler", BOTH, ids=str)
def test_distinct_rows_are_found_and_no_more(sampler, dtype, rng, seed):
    X = (3 * rng.standard_normal((17, 2))).astype(dtype)[rng.permutation(340) % 17]
    growth = grown(sampler, RBF(1.0), X, 40, seed)
    assert growth.exhausted
    assert len(growth.pivots) == 17
    assert len(np.unique(X[growth.pivots.indices], axis=0)) == 17
    landmarks = sampler(RBF(1.0), as_source(X), 40, seed=seed, engine=ENGINE)
    assert len(np.unique(landmarks.indices)) == len(landmarks) == 40
    np.testing.assert_array_equal(landmarks.indices[:17], growth.pivots.indices)


@pytest.mark.parametrize("sampler", BOTH, ids=str)
def test_rows_that_fill_up_are_uniform(sampler, seed):
    """The mean of 25 × 300 row numbers is within 6 standard errors of their middle."""
    X = np.ones((301, 1))
    filled = [
        sampler(RBF(1.0), as_source(X), 26, seed=25 * seed + i, engine=ENGINE)
        for i in range(25)
    ]
    rows = np.concatenate([landmarks.indices[1:] for landmarks in filled])
    assert abs(rows.mean() - 150) < 6 * 87 / np.sqrt(len(rows))
    assert not np.array_equal(filled[0].indices, filled[1].indices)


# Indefinite kernels


@pytest.mark.parametrize("sampler", ["greedy", "rpcholesky", "auto"])
@pytest.mark.parametrize("kernel", [RBF(100.0), RationalQuadratic(0.05)], ids=str)
def test_no_copy_of_a_pivot_is_one(sampler, kernel, rng, seed):
    """Though a product gives the distance of far rows with more than rounding."""
    X = np.tile(rng.uniform(-25, 25, (40, 3)), (4, 1))
    landmarks = select_landmarks(
        X, kernel=kernel, n_landmarks=80, sampler=sampler, random_state=seed
    )
    assert len(np.unique(landmarks.indices % 40)) == 40
    assert landmarks.factor.rank == 40
    assert len(np.unique(landmarks.indices[landmarks.factor.kept] % 40)) == 40


def test_near_rows_are_no_copies(rng, seed):
    """What is left of them is small, and theirs."""
    X = np.repeat(rng.uniform(-25, 25, (20, 3)), 2, axis=0)
    X[1::2, 0] += 1e-4
    found = select_landmarks(
        X, kernel=RBF(1.0), n_landmarks=40, sampler="greedy", random_state=seed
    )
    assert found.factor.rank == 40
