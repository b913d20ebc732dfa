"""Landmarks moved off the rows: the step, its guard, and what it is refused for."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from nystrom import Nystroem, approximate, select_landmarks
from nystrom.engines import Threads
from nystrom.kernels import (
    RBF,
    Cosine,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    blockwise,
)
from nystrom.linalg.cross_kernel import Ledger
from nystrom.samplers import moved as lloyd
from nystrom.samplers.base import SamplingProblem
from nystrom.sources import as_source

pytestmark = pytest.mark.usefixtures("one_blas_thread")

GAMMA = 0.3
OF_DISTANCE = [
    RBF(GAMMA),
    RBF((0.1, 0.5, 0.3)),
    Laplacian(GAMMA),
    Matern(2.0, nu=1.5),
    RationalQuadratic(2.0),
    RBF(0.1) + 0.5 * RBF(1.0),
    RBF(0.1) * Laplacian(0.1),
]


@pytest.fixture
def X(rng):
    return rng.standard_normal((600, 3))


def chosen(X, seed, sampler="kmeans", kernel=None, s=20, **options):
    kernel = RBF(GAMMA) if kernel is None else kernel
    return select_landmarks(
        X, kernel=kernel, n_landmarks=s, sampler=sampler, random_state=seed, **options
    )


def length_of(landmarks):
    """How far they were moved, as their note says."""
    note = landmarks.notes[-1]
    return 0.0 if note == "not moved" else float(note.split()[1])


def dense_means(kernel, X, Z, w):
    """The mean of the rows of each landmark, one after the other."""
    cells = [kernel(x[None], Z)[0].argmax() for x in X]
    means = []
    for j, z in enumerate(Z):
        total, count = z.copy(), 1.0
        for x, cell, weight in zip(X, cells, w, strict=True):
            if cell == j:
                total, count = total + weight * x, count + weight
        means.append(total / count)
    return np.array(means)


# The step


@pytest.mark.parametrize("kernel", OF_DISTANCE, ids=str)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_each_landmark_goes_towards_the_mean_of_its_rows(
    kernel, weighted, X, rng, seed
):
    """600 rows are fewer than 40 per landmark: all of them have their part in means."""
    w = rng.uniform(0.2, 5, 600) if weighted else None
    start = chosen(X, seed, "auto", kernel, sample_weight=w)
    found = chosen(X, seed, kernel=kernel, sample_weight=w)
    Z = start.points
    means = dense_means(kernel, X, Z, np.ones(600) if w is None else w)
    length = length_of(found)
    assert length in (0, *lloyd.STEP_LENGTHS)
    np.testing.assert_allclose(found.points, Z + length * (means - Z), atol=1e-12)
    assert found.indices is found.weights is found.probabilities is None
    assert found.n_kernel_evaluations > start.n_kernel_evaluations
    assert found.sampler == "kmeans"


def test_rows_of_weight_0_move_nothing(X, rng, seed):
    w = np.where(rng.uniform(size=600) < 0.5, 0.0, 1.0)
    one = chosen(X, seed, sample_weight=w)
    elsewhere = np.where(w[:, None] > 0, X, 100.0)
    two = chosen(elsewhere, seed, sample_weight=w)
    np.testing.assert_array_equal(one.points, two.points)


def moved_from(start, X, seed, monkeypatch):
    """Where these landmarks go, instead of those of "auto"."""
    auto = SimpleNamespace(choose=lambda work, goal: start)
    monkeypatch.setattr(lloyd, "PooledGreedy", lambda: auto)
    return chosen(X, seed, s=len(start))


def one_whole_step(Z, X, seed, monkeypatch):
    """Where landmarks at Z go if they must go all the way, as means of all rows."""
    monkeypatch.setattr(lloyd, "STEP_LENGTHS", (1.0,))
    monkeypatch.setattr(lloyd, "MEAN_ROWS_PER_LANDMARK", len(X))
    start = select_landmarks(X, kernel=RBF(GAMMA), sampler=Z)
    found = moved_from(start, X, seed, monkeypatch)
    assert length_of(found) == 1
    return found.points


def test_a_landmark_without_rows_stays(X, seed, monkeypatch):
    # The first five are outside the cloud, so that going to the means is a gain.
    outside = 3 * X[:5] / np.linalg.norm(X[:5], axis=1)[:, None]
    Z = np.concatenate([outside, [[0, 9.0, 0], [1e6, 0, 0]]])
    means = one_whole_step(Z, X, seed, monkeypatch)
    np.testing.assert_array_equal(means[5:], Z[5:])
    assert np.all(np.any(means[:5] != Z[:5], axis=1))
    expected = dense_means(RBF(GAMMA), X, Z, np.ones(600))
    np.testing.assert_allclose(means, expected, atol=1e-12)


def test_a_row_far_from_every_landmark_pulls_none(X, seed, monkeypatch):
    """Its kernel values are all 0, and the largest of them is the first."""
    far = np.concatenate([X, [[1e6, 0, 0]]])
    Z = 3 * X[:5] / np.linalg.norm(X[:5], axis=1)[:, None]
    with_it, without = (one_whole_step(Z, rows, seed, monkeypatch) for rows in (far, X))
    np.testing.assert_array_equal(with_it, without)


# The guard


def test_where_rows_have_nothing_in_common_nothing_moves(X, seed):
    """K = I: the means of rows are worse than rows."""
    found, start = (chosen(X, seed, name, RBF(1e4)) for name in ("kmeans", "auto"))
    np.testing.assert_array_equal(found.points, start.points)
    assert found.notes[-1] == "not moved"


def test_copies_do_not_move_by_rounding(rng, seed):
    """What is left of the rows is rounding, and so would any gain be.

    λ was allowed, and in 7 of 120 draws a row had λ and rounding left.
    """
    for draw in range(60):
        X = np.repeat(rng.standard_normal((4, 2)), 30, axis=0)
        found = chosen(X, 60 * seed + draw, s=15)
        assert found.notes[-1] == "not moved"
        assert len(np.unique(found.points, axis=0)) == found.rank == 4


def test_the_guard_takes_the_best_sure_length(X, rng, seed, monkeypatch):
    still, noise = np.full(256, 1.0), 0.1 * rng.standard_normal(256)
    still[7] = 300.0
    start = chosen(X, seed, "auto", s=5)

    def length_if(lefts):
        """The length of the step if each leaves so much of the fresh rows."""
        tried = [lefts.get(length, still) for length in (0.0, *lloyd.STEP_LENGTHS)]
        left = iter([values.copy() for values in tried])
        monkeypatch.setattr(SamplingProblem, "residuals", lambda *_: next(left))
        return length_of(moved_from(start, X, seed, monkeypatch))

    assert length_if({}) == 0
    assert length_if({0.5: still - 0.2, 1.0: still - 0.1}) == 0.5
    assert length_if({0.5: still - 0.1, 1.0: still - 0.2}) == 1.0
    # More on the mean, but carried by one row: not sure.
    one = still.copy()
    one[7] = 1.0
    assert length_if({0.5: still - 0.2, 1.0: one}) == 0.5
    assert length_if({1.0: one}) == 0
    assert length_if({1.0: still + 0.05 + noise}) == 0


def test_fresh_rows_are_left_as_they_count(X, rng):
    w = rng.uniform(0.1, 9, 600)
    Z = X[:25] + 0.1
    work = SamplingProblem(RBF(GAMMA), as_source(X, w), 0, Threads(1), Ledger())
    K, B = RBF(GAMMA)(X, Z), RBF(GAMMA)(Z, Z)
    left = 1 - np.sum(K * np.linalg.solve(B, K.T).T, axis=1)
    found = lloyd._validation_residuals(Z, work.source, work)
    np.testing.assert_allclose(found, w * left, atol=1e-8)


@pytest.mark.parametrize("kernel", OF_DISTANCE, ids=str)
@pytest.mark.parametrize("rows", ["clusters", "heavy tails"])
def test_the_error_on_all_rows_does_not_rise(rows, kernel, rng, seed):
    """The guard sees fresh rows alone; three runs in the mean leave it 1 %."""
    if rows == "clusters":
        X = 3 * rng.standard_normal((8, 3))[rng.integers(0, 8, 2000)]
        X += 0.7 * rng.standard_normal(X.shape)
    else:
        X = rng.standard_t(2, (2000, 3))
    errors = {"kmeans": 0.0, "auto": 0.0}
    for run in range(3 * seed, 3 * seed + 3):
        for sampler in errors:
            landmarks = chosen(X, run, sampler, kernel, s=30)
            errors[sampler] += approximate(X, landmarks).trace_error
    assert errors["kmeans"] < 1.01 * errors["auto"]
    if rows == "clusters" and kernel == RBF(GAMMA):
        assert errors["kmeans"] < 0.97 * errors["auto"]  # it is there for something


# Rows and kernels it takes, and those it does not


def dot(x, y):
    return float(x @ y)


@pytest.mark.parametrize(
    "kernel",
    [
        Linear(),
        Polynomial(1.0, 2, 1.0),
        Cosine(),
        dot,
        blockwise(lambda X, Y: X @ Y.T),
        RBF(GAMMA) + Linear(),
        RBF(GAMMA) * Linear(),
    ],
)
def test_other_kernels_are_refused(kernel, X):
    with pytest.raises(ValueError, match=r"moves the landmarks .* Use sampler='auto'"):
        chosen(X, 0, kernel=kernel)


def test_rows_without_a_mean_are_refused(X):
    words = {"kernel": lambda x, y: float(x == y), "s": 2}
    for rows, options in ((sp.csr_array(X), {}), (["ab", "cd", "ef"], words)):
        with pytest.raises(ValueError, match=r"dense rows .* Use sampler='auto'"):
            chosen(rows, 0, **options)
    with pytest.raises(ValueError, match=r"not precomputed\. Use sampler='auto'"):
        chosen(RBF(GAMMA).gram(X), 0, kernel="precomputed")


def test_the_estimator_says_why_there_are_no_row_numbers(X, seed):
    options = {"gamma": GAMMA, "n_components": 20, "random_state": seed}
    model = Nystroem(sampler="kmeans", **options).fit(X)
    assert model.components_.shape == (20, 3)
    assert not hasattr(model, "component_indices_")
    with pytest.raises(AttributeError, match="kmeans are not rows of the data"):
        _ = model.component_indices_
    assert np.all(np.isfinite(model.transform(X)))
