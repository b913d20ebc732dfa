"""As many landmarks as a trace error takes: reached, exact, and with none too many."""

from __future__ import annotations

import re
import warnings
from itertools import pairwise

import numpy as np
import pytest
from lists import FIXED, GROWING
from oracles_sampling import rbf_matrix
from sklearn import config_context
from test_evaluations import FORMS, Counted

from nystrom import Nystroem, approximate, samplers, select_landmarks
from nystrom.engines import Threads
from nystrom.samplers import TraceTolerance, as_sampler
from nystrom.samplers import pivoting as until
from nystrom.sources import as_source

pytestmark = pytest.mark.usefixtures("one_blas_thread")

GAMMA = 0.5


@pytest.fixture
def X(rng):
    return rng.standard_normal((300, 2))


def trace_error(K, rows, w=None):
    """tr(K − K̃)/tr K from a Cholesky factor: of few landmarks, none nearly spanned."""
    w = np.ones(len(K)) if w is None else w
    F = np.linalg.solve(np.linalg.cholesky(K[np.ix_(rows, rows)]), K[rows])
    return 1 - w @ np.sum(F**2, axis=0) / (w @ np.diag(K))


def assert_shortest(landmarks, K, asked, w=None):
    """The error is as asked and as said, and one landmark less would not do."""
    assert landmarks.max_trace_error == asked
    assert landmarks.error.exact
    assert landmarks.error.standard_error == 0
    reached = trace_error(K, landmarks.indices, w)
    assert landmarks.error.value <= asked
    # Uniform landmarks may nearly span each other: then the oracle rounds as well.
    exactness = 1e-6 if landmarks.sampler == "uniform" else 1e-8
    assert landmarks.error.value == pytest.approx(reached, abs=exactness)
    if len(landmarks) > 1:
        assert trace_error(K, landmarks.indices[:-1], w) > asked - exactness
    assert len(np.unique(landmarks.indices)) == len(landmarks)


# The error asked for


@pytest.mark.parametrize("asked", [0.5, 0.1, 0.01, 1e-4])
@pytest.mark.parametrize("sampler", GROWING)
def test_the_shortest_prefix_that_reaches_it(sampler, asked, X, seed):
    landmarks = select_landmarks(
        X, gamma=GAMMA, sampler=sampler, max_trace_error=asked, random_state=seed
    )
    assert landmarks.sampler == sampler
    assert_shortest(landmarks, rbf_matrix(X, GAMMA), asked)
    np.testing.assert_array_equal(landmarks.points, X[landmarks.indices])
    # K̃ leaves out eigenvalues of K_SS that might be rounding.
    found = approximate(X, landmarks).trace_error / 300
    assert found == pytest.approx(landmarks.error.value, rel=0.15, abs=2e-6)


@pytest.mark.parametrize("sampler", GROWING)
def test_more_landmarks_than_the_first_run_makes(sampler, rng, seed):
    """Here the set doubles twice."""
    X = rng.standard_normal((600, 6))
    landmarks = select_landmarks(
        X, gamma=0.2, sampler=sampler, max_trace_error=0.1, random_state=seed
    )
    assert len(landmarks) > 2 * until.N_FIRST_LANDMARKS
    assert_shortest(landmarks, rbf_matrix(X, 0.2), 0.1)


@pytest.mark.parametrize("sampler", GROWING)
def test_a_smaller_error_goes_on_from_where_the_larger_one_ended(sampler, rng, seed):
    X = rng.standard_normal((500, 4))
    orders = [
        select_landmarks(
            X, gamma=0.2, sampler=sampler, max_trace_error=asked, random_state=seed
        ).indices
        for asked in (0.3, 0.1, 0.03, 0.003)
    ]
    for short, long in pairwise(orders):
        assert len(short) < len(long)
        np.testing.assert_array_equal(short, long[: len(short)])


@pytest.mark.parametrize("sampler", ["greedy", "uniform"])
def test_the_order_is_that_of_a_given_number_of_landmarks(sampler, X, seed):
    options = {"gamma": GAMMA, "sampler": sampler, "random_state": seed}
    needed = select_landmarks(X, max_trace_error=0.05, **options)
    counted = select_landmarks(X, n_landmarks=len(needed), **options)
    np.testing.assert_array_equal(needed.indices, counted.indices)


def test_uniform_landmarks_are_drawn_by_weight(X, rng, seed):
    options = {"gamma": GAMMA, "sampler": "uniform", "random_state": seed}
    options["sample_weight"] = rng.pareto(1.0, 300) + 0.01
    needed = select_landmarks(X, max_trace_error=0.05, **options)
    counted = select_landmarks(X, n_landmarks=len(needed), **options)
    np.testing.assert_array_equal(needed.indices, counted.indices)


@pytest.mark.parametrize("sampler", GROWING)
def test_a_limit_that_is_reached_warns_of_the_error_there_is(sampler, X, seed):
    with pytest.warns(UserWarning, match=r"max_trace_error=1e-06 was not") as caught:
        landmarks = select_landmarks(
            X,
            gamma=GAMMA,
            sampler=sampler,
            max_trace_error=1e-6,
            n_landmarks=20,
            random_state=seed,
        )
    assert len(landmarks) == 20
    reached = trace_error(rbf_matrix(X, GAMMA), landmarks.indices)
    assert landmarks.error.value == pytest.approx(reached, abs=1e-8)
    assert len(caught) == 1
    assert f"{reached:.3g} (exact)" in str(caught[0].message)
    assert "20 landmarks" in str(caught[0].message)


@pytest.mark.parametrize("sampler", ["greedy", "uniform"])
def test_the_default_number_is_no_limit(sampler, rng):
    """Without `n_landmarks` there may be more than 1000: as many as it takes."""
    X = 20 * rng.standard_normal((1030, 3))
    landmarks = select_landmarks(
        X, gamma=1.0, sampler=sampler, max_trace_error=0.005, random_state=0
    )
    assert len(landmarks) > 1000
    assert landmarks.error.value <= 0.005


# Rows of every kind


@pytest.mark.parametrize("sampler", GROWING)
def test_weights_count_in_the_error(sampler, X, rng, seed):
    w = rng.uniform(0, 3, 300)
    w[::7] = 0
    landmarks = select_landmarks(
        X,
        gamma=GAMMA,
        sampler=sampler,
        max_trace_error=0.02,
        sample_weight=w,
        random_state=seed,
    )
    assert np.all(w[landmarks.indices] > 0)
    assert landmarks.n_rows == 300
    assert_shortest(landmarks, rbf_matrix(X, GAMMA), 0.02, w)


@pytest.mark.parametrize("n", [300, 3000])
@pytest.mark.parametrize("sampler", GROWING)
def test_float32_rows(sampler, n, rng, seed):
    """Of 3000 rows the residuals are worked out in float32."""
    X = rng.standard_normal((n, 2)).astype(np.float32)
    landmarks = select_landmarks(
        X, gamma=GAMMA, sampler=sampler, max_trace_error=0.01, random_state=seed
    )
    K = rbf_matrix(X.astype(np.float64), GAMMA)
    reached = trace_error(K, landmarks.indices)
    assert landmarks.error.value == pytest.approx(reached, rel=0.02)
    assert reached <= 0.01 * 1.02
    assert trace_error(K, landmarks.indices[:-1]) > 0.01 * 0.98


@pytest.mark.parametrize("gamma", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("sampler", GROWING)
def test_a_rounded_matrix_is_not_taken_for_an_indefinite_one(sampler, gamma, X, seed):
    asked = 1e-3
    K = rbf_matrix(X, gamma)
    landmarks = select_landmarks(
        K.astype(np.float32),
        kernel="precomputed",
        sampler=sampler,
        max_trace_error=asked,
        random_state=seed,
    )
    assert landmarks.error.value <= asked
    # Rounding may take landmarks too many, not too few.
    assert trace_error(K, landmarks.indices) <= 1.2 * asked


@pytest.mark.parametrize("gamma", [0.1, 1.0])
@pytest.mark.parametrize("sampler", GROWING)
def test_landmarks_that_nearly_span_each_other_spoil_no_error(sampler, gamma, X, seed):
    """In the order of a uniform draw, some have next to nothing left."""
    options = {"gamma": gamma, "sampler": sampler, "random_state": seed}
    for asked in (1e-3, 1e-6):
        landmarks = select_landmarks(X, max_trace_error=asked, **options)
        found = approximate(X, landmarks).trace_error / 300
        assert found == pytest.approx(landmarks.error.value, rel=0.15, abs=2e-6)


# Degenerate rows


@pytest.mark.parametrize("sampler", GROWING)
@pytest.mark.parametrize(
    ("X", "kernel"),
    [
        (np.ones((1, 3)), "rbf"),
        (np.zeros((1, 3)), "linear"),
        (np.ones((50, 2)), "rbf"),
        (np.zeros((50, 2)), "linear"),
    ],
    ids=["one row", "one row of zeros", "constant", "zeros"],
)
def test_one_landmark_is_enough(X, kernel, sampler, seed):
    landmarks = select_landmarks(
        X, kernel=kernel, sampler=sampler, max_trace_error=0.01, random_state=seed
    )
    assert len(landmarks) == 1
    assert landmarks.error.value == pytest.approx(0, abs=1e-12)
    assert 0 <= landmarks.indices[0] < len(X)


@pytest.mark.parametrize("sampler", GROWING)
def test_an_error_within_rounding_ends(sampler, X, seed):
    """What is below rounding counts as nothing, and the rows run out before."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        landmarks = select_landmarks(
            X, gamma=GAMMA, sampler=sampler, max_trace_error=1e-15, random_state=seed
        )
    assert 50 < len(landmarks) < 300
    assert landmarks.error.value < 1e-13
    said = [str(warning.message) for warning in caught]
    assert len(said) == (landmarks.error.value > 1e-15)
    assert all("was not reached" in message for message in said)


def test_uniform_rows_that_were_passed_over_are_seen_again(rng, seed):
    """Less than the root of rounding is left of half of the rows, and it is asked for.

    The other half comes first, whatever the order of the draw.
    """
    x = rng.standard_normal((40, 1))
    X = np.hstack([np.ones((40, 1)), 1e-5 * x])
    X[20:, 1] += 1e-2 * np.sign(x[20:, 0])
    asked = 1e-13
    landmarks = select_landmarks(
        X, kernel="linear", sampler="uniform", max_trace_error=asked, random_state=seed
    )
    assert landmarks.error.value <= asked
    assert len(landmarks) == 2
    near = select_landmarks(
        X[:20],
        kernel="linear",
        sampler="uniform",
        max_trace_error=asked,
        random_state=seed,
    )
    assert near.error.value <= asked
    assert len(near) == 2


# What is refused


@pytest.mark.parametrize(
    "asked", [0, 1, 0.0, 1.0, -0.1, 2, np.nan, np.inf, True, False, "0.1", [0.1], 1j]
)
def test_what_is_no_error_between_0_and_1(asked, X):
    message = re.escape(f"max_trace_error={asked!r} is not allowed")
    with pytest.raises(ValueError, match=message):
        select_landmarks(X, max_trace_error=asked)
    with pytest.raises(ValueError, match=message):
        Nystroem(max_trace_error=asked).fit(X)


@pytest.mark.parametrize("asked", [np.float32(0.25), np.float64(0.25)])
def test_numbers_of_numpy_are_taken(asked, X):
    landmarks = select_landmarks(X, gamma=GAMMA, max_trace_error=asked, random_state=0)
    assert landmarks.error.value <= 0.25


def test_a_ridge_as_well_is_refused(X):
    message = r"max_spectral_error=1.0 and max_trace_error=0.1 both say"
    with pytest.raises(ValueError, match=message):
        select_landmarks(X, max_spectral_error=1.0, max_trace_error=0.1)
    with pytest.raises(ValueError, match=message):
        Nystroem(max_spectral_error=1.0, max_trace_error=0.1).fit(X)


@pytest.mark.parametrize(
    "sampler",
    [*FIXED, samplers.Recursive(max_spectral_error=1.0), [0, 1, 2], np.zeros((2, 2))],
    ids=[*FIXED, "Recursive(ridge)", "rows", "points"],
)
def test_other_samplers_are_refused_and_those_named_that_can(sampler, X):
    names = "'auto', 'greedy', 'rpcholesky', 'uniform'"
    with pytest.raises(ValueError, match=names):
        select_landmarks(X, sampler=sampler, max_trace_error=0.1)
    with pytest.raises(ValueError, match=names):
        Nystroem(sampler=sampler, max_trace_error=0.1).fit(X)


def test_a_function_as_sampler_is_refused_by_name(X):
    def own_sampler(kernel, source, n_landmarks, *, seed, engine):
        raise AssertionError

    with pytest.raises(ValueError, match="own_sampler"):
        select_landmarks(X, sampler=own_sampler, max_trace_error=0.1)


@pytest.mark.parametrize("sampler", GROWING)
def test_an_indefinite_matrix_is_refused(sampler, X, seed):
    """Also where only a few eigenvalues are negative, or the trace is."""
    values, V = np.linalg.eigh(rbf_matrix(X, GAMMA))
    values[:3] -= 0.5 * len(X) * 0.1
    for K in ((V * values) @ V.T, -np.eye(50)):
        with pytest.raises(ValueError, match="not positive semi-definite"):
            select_landmarks(
                (K + K.T) / 2,
                kernel="precomputed",
                sampler=sampler,
                max_trace_error=0.05,
                random_state=seed,
            )


# Evaluations


@pytest.mark.parametrize("memory", [0, 100], ids=["K too large", "K fits"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sampler", GROWING)
def test_every_entry_is_counted(sampler, form, memory, rng, seed):
    """A function of two rows is remembered where all of K fits working_memory."""
    X, counter = rng.standard_normal((80, 2)), Counted()
    goal = TraceTolerance(0.05)
    with config_context(working_memory=memory):
        landmarks = as_sampler(sampler, goal)(
            counter.kernel(form), as_source(X), goal, seed=seed, engine=Threads(1)
        )
    assert counter.n == landmarks.n_kernel_evaluations > 0
    if form == "pairs" and memory:
        assert counter.n <= 80 * 81 // 2  # no pair twice


# Nystroem


@pytest.mark.parametrize("n_components", [200, None])
@pytest.mark.parametrize("sampler", GROWING)
def test_the_estimator_makes_as_many_features_as_it_takes(
    sampler, n_components, X, seed
):
    model = Nystroem(
        gamma=GAMMA,
        n_components=n_components,
        sampler=sampler,
        max_trace_error=0.02,
        random_state=seed,
    ).fit(X)
    K = rbf_matrix(X, GAMMA)
    assert_shortest(model.landmarks_, K, 0.02)
    assert model.approximation_error_.exact
    Z = model.transform(X)
    assert Z.shape == (300, len(model.landmarks_)) == (300, len(model.components_))
    assert len(model.get_feature_names_out()) == Z.shape[1]
    reached = np.trace(K - Z @ Z.T) / np.trace(K)
    assert float(model.approximation_error_) == pytest.approx(reached, abs=2e-6)


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_the_estimator_warns_once_where_its_limit_is_reached(method, X):
    model = Nystroem(gamma=GAMMA, n_components=10, max_trace_error=1e-6, random_state=0)
    with pytest.warns(UserWarning, match="was not reached: 10 landmarks") as caught:
        getattr(model, method)(X)
    assert len(caught) == 1
    assert len(model.landmarks_) == 10
    assert f"{model.approximation_error_.value:.3g}" in str(caught[0].message)
