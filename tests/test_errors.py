"""Errors of an approximation: the relative trace error and the spectral norm."""

import itertools
import math
import warnings
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import sklearn
from lists import CHOOSING, FIXED, GROWING, RIDGED
from oracles_sampling import rbf_matrix
from sklearn.base import clone, is_classifier
from sklearn.metrics.pairwise import rbf_kernel
from test_samplers_contract import FORMS, Counted

from nystrom import (
    KernelCCA,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeCV,
    Nystroem,
    approximate,
    samplers,
    select_landmarks,
)
from nystrom.engines import Threads
from nystrom.kernels import RBF, blockwise
from nystrom.linalg.cross_kernel import Ledger
from nystrom.linalg.errors import TraceError
from nystrom.linalg.features import features_and_error
from nystrom.samplers import TraceTolerance, as_sampler, guarantees
from nystrom.samplers import pivoting as until
from nystrom.samplers.base import SamplingProblem
from nystrom.samplers.weighted_sampling import WeightedSample
from nystrom.sources import DenseRows, as_source

GAMMA = 0.3
COMMON = {"kernel": "rbf", "gamma": GAMMA, "n_landmarks": 40, "random_state": 0}


def selected(X, seed=0, **options):
    """Landmarks of a Gaussian kernel, unless options say otherwise."""
    return select_landmarks(X, **{"gamma": WIDTH, "random_state": seed} | options)


def truth(X, points, weights):
    """The weighted relative trace error by dense algebra."""
    K_S, K_SS = rbf_kernel(X, points, GAMMA), rbf_kernel(points, points, GAMMA)
    kept = np.einsum("ij,ij->i", K_S @ np.linalg.pinv(K_SS, rcond=1e-12), K_S)
    return float(weights @ (1 - kept) / weights.sum())


@pytest.fixture
def data(rng):
    """Rows in two clouds; those of the wide one count little."""
    X = rng.standard_normal((1500, 3)) * np.repeat([0.3, 2.5], 750)[:, None]
    w = np.repeat([1.0, 1e-3], 750) * rng.uniform(0.5, 2, 1500)
    return X, np.sin(X[:, 0]), w


@pytest.mark.parametrize(
    "estimator",
    [
        KernelRidge(0.1, solver="direct", **COMMON),
        KernelRidge(0.1, solver="cg", **COMMON),
        KernelRidge(1e-7, fit_intercept=True, **COMMON),
        KernelRidgeCV(**COMMON),
        KernelRidgeClassifier(0.1, **COMMON),
        KernelKMeans(3, **COMMON),
    ],
    ids=str,
)
def test_weights_count_in_every_reported_error(estimator, data):
    """Unweighted, this error would be ten times as large."""
    X, y, w = data
    y = y > 0 if is_classifier(estimator) else y
    fitted = estimator.fit(X, y, sample_weight=w)
    error, points = fitted.approximation_error_, fitted.landmarks_.points
    exact = truth(X, points, w)
    assert truth(X, points, np.ones(1500)) > 3 * exact
    if error.exact:
        np.testing.assert_allclose(error.value, exact, rtol=1e-6)
    else:
        assert abs(error.value - exact) < 6 * error.standard_error
        assert error.standard_error < 0.3 * exact
    assert fitted.landmarks_.error == error


def test_weights_count_where_the_kernel_is_a_function(data):
    """Its error is estimated from uniform rows, since evaluations are costly."""
    X, y, w = data

    def kernel(a, b):
        return math.exp(-GAMMA * ((a - b) @ (a - b)))

    rows = np.arange(0, 1500, 75)
    model = KernelRidge(0.1, kernel=kernel, n_landmarks=20, sampler=rows, solver="cg")
    error = model.fit(X, y, sample_weight=w).approximation_error_
    exact = truth(X, model.landmarks_.points, w)
    assert not error.exact
    assert abs(error.value - exact) < 6 * error.standard_error
    assert error.standard_error < 0.3 * exact


def far_apart(seed):
    """Rows of which float32 values leave more, or less, than there is."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-25, 25, (3000, 1)).astype(np.float32)


@pytest.mark.parametrize(
    "estimator", [KernelRidge(1.0), KernelPCA(2), KernelCCA(1, alpha=1.0)], ids=str
)
def test_what_float32_sums_do_not_resolve_is_not_reported_as_exact(estimator, seed):
    X = far_apart(seed)
    common = {"kernel": "rbf", "gamma": 1.0, "sampler": np.arange(150)}
    estimator = clone(estimator).set_params(n_landmarks=150, **common)
    y = np.sin(X) if isinstance(estimator, KernelCCA) else np.sin(X[:, 0])
    fitted = estimator.fit(X, y)
    error, landmarks = fitted.approximation_error_, fitted.landmarks_
    if isinstance(estimator, KernelCCA):
        error, landmarks = error[0], landmarks[0]
    wide = approximate(X.astype(np.float64), landmarks_in_float64(landmarks))
    exact = wide.relative_trace_error.value
    if error.exact:
        np.testing.assert_allclose(error.value, exact, rtol=0.03)
    else:
        assert abs(error.value - exact) < 6 * error.standard_error


def in_80_bits(X, points, gamma):
    """The relative trace error by pivoted Cholesky of 80-bit numbers."""
    rows = np.concatenate([points, X]).astype(np.longdouble)
    s = len(points)
    K = np.exp(-gamma * ((rows[:, None] - rows[None, :s]) ** 2).sum(axis=2))
    left, taken = np.ones(len(rows), np.longdouble), np.zeros((len(rows), s), K.dtype)
    for column in range(s):
        pivot = int(np.argmax(left[:s]))
        if left[pivot] < 1e-17:
            break
        new = K[:, pivot] - taken[:, :column] @ taken[pivot, :column]
        taken[:, column] = new / np.sqrt(left[pivot])
        left = left - taken[:, column] ** 2
        left[pivot] = 0
    return float(left[s:].mean())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("alpha", [1e3, 1.0, None])
def test_an_error_below_rounding_is_reported_as_a_bound(seed, dtype, alpha):
    """From a Gram matrix, or from float32 features; `alpha` None is Nystroem."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (1500, 2)).astype(dtype)
    bounds = []
    for gamma in np.geomspace(0.1, 3.0, 8):
        common = {"kernel": "rbf", "gamma": gamma, "random_state": seed}
        if alpha is None:
            model = Nystroem(n_components=60, **common)
            model.fit_transform(X)
        else:
            model = KernelRidge(alpha, n_landmarks=60, solver="direct", **common)
            model.fit(X, np.sin(X[:, 0]))
        error = model.approximation_error_
        left = in_80_bits(X, model.landmarks_.points, gamma)
        if not error.exact:
            continue
        bounds.append(error.at_most)
        assert float(error) == error.value
        if error.at_most:
            assert left <= error.value <= left + 1e-5
            assert str(error) == f"≤ {error.value:.2g} (up to rounding)"
            assert str(error) in str(model.landmarks_)
            assert str(error) in model.landmarks_._repr_html_()
        else:
            np.testing.assert_allclose(error.value, left, rtol=0.05)
            assert str(error).endswith("(exact)")
    # float64 features resolve all that there is, and so do not all Gram matrices. Sums
    # of float32 values that do not are not told at all, but estimated.
    assert any(bounds) == ((alpha is None) == (dtype == np.float32))
    assert not all(bounds)


def test_an_error_that_few_rows_confirm_by_chance_is_not_exact(seed):
    """Rounding of float32 may cancel on the 256 rows that are tried, by luck."""
    for i in range(20):
        X = np.random.default_rng([seed, i]).uniform(-2, 2, (2000, 2))
        model = KernelRidge(10.0, kernel="rbf", gamma=0.35, n_landmarks=60)
        model.set_params(random_state=i, solver="direct")
        model.fit(X.astype(np.float32), np.sin(X[:, 0]))
        in_float64 = model.landmarks_.notes != ()
        assert in_float64 or not model.approximation_error_.exact


def test_a_bound_is_one_of_few_landmarks_only_where_little_is_left():
    squares = np.array([1.0, 0.5, 1e-3, 1e-9])
    error = TraceError.from_sums(1e-9, 2.0, 100, squares, rounding=1e-6)
    assert error.at_most
    assert error.value == pytest.approx(0.5e-9 + 0.5e-6)
    assert error.prefix(3).at_most
    assert not error.prefix(2).at_most
    assert error.prefix(2).value == pytest.approx(0.5e-3, rel=2e-3)
    more = error.with_batch(2.0, 0.1, 2.0, 100)
    assert not more.at_most
    assert not TraceError.from_sums(1e-3, 2.0, 100, squares, rounding=1e-6).at_most
    assert str(TraceError.from_sums(0.0, 1.0, 10)) == "0 (exact)"


def landmarks_in_float64(landmarks):
    return replace(landmarks, points=landmarks.points.astype(np.float64))


def test_an_exact_error_outlasts_an_estimate_and_a_bound(rng):
    X = rng.standard_normal((300, 3))
    landmarks = select_landmarks(X, n_landmarks=10, random_state=0)
    exact = TraceError(0.1, 0.0, 300, exact=True)
    estimate = TraceError(0.2, 0.01, 50, exact=False)
    assert landmarks.with_error(estimate).with_error(exact).error is exact
    assert landmarks.with_error(exact).with_error(estimate).error is exact
    assert landmarks.with_error(exact).with_error(None).error is exact
    value = TraceError.from_sums(1e-9, 1.0, 300)
    bound = TraceError.from_sums(1e-9, 1.0, 300, rounding=1e-6)
    assert landmarks.with_error(value).with_error(bound).error is value
    assert landmarks.with_error(bound).with_error(value).error is value


def test_weights_count_in_the_error_that_features_bring(rng):
    X, w = rng.standard_normal((1300, 3)), rng.pareto(1.0, 1300)
    landmarks = select_landmarks(X, gamma=0.5, n_landmarks=12, random_state=0)
    Z, error = features_and_error(landmarks, DenseRows(X, w), Threads(1), wide=False)
    left = [1 - w @ np.sum(Z[:, :k] ** 2, axis=1) / w.sum() for k in range(1, 13)]
    np.testing.assert_allclose(error.path, left, atol=1e-12)
    assert error.value == pytest.approx(left[-1])


def test_an_estimate_from_all_rows_has_no_error(rng):
    left, w = rng.uniform(size=50), rng.uniform(0.1, 3, 50)
    whole = left + rng.uniform(size=50)
    some = TraceError.from_sample(left, whole, w, 200)
    every = TraceError.from_sample(left, whole, w, 50)
    assert some.standard_error > 0
    assert every.standard_error == 0
    # The correction for a finite population, in a sample of all rows but one.
    few, most = (TraceError.from_sample(left, whole, w, n) for n in (10**12, 51))
    assert most.standard_error == pytest.approx(few.standard_error / np.sqrt(51))
    assert every.value == some.value == pytest.approx(w @ left / (w @ whole))


# As many landmarks as a trace error takes

pytestmark = pytest.mark.usefixtures("one_blas_thread")

WIDTH = 0.5


@pytest.fixture
def X(rng):
    return rng.standard_normal((300, 2))


def dense_trace_error(K, rows, w=None):
    """tr(K − K̃)/tr K from a Cholesky factor: of few landmarks, none nearly spanned."""
    w = np.ones(len(K)) if w is None else w
    F = np.linalg.solve(np.linalg.cholesky(K[np.ix_(rows, rows)]), K[rows])
    return 1 - w @ np.sum(F**2, axis=0) / (w @ np.diag(K))


def assert_shortest(landmarks, K, asked, w=None):
    """The error is as asked and as said, and one landmark less would not do."""
    assert landmarks.max_trace_error == asked
    assert landmarks.error.exact
    assert landmarks.error.standard_error == 0
    reached = dense_trace_error(K, landmarks.indices, w)
    assert landmarks.error.value <= asked
    # Uniform landmarks may nearly span each other: then the oracle rounds as well.
    exactness = 1e-6 if landmarks.sampler == "uniform" else 1e-8
    assert landmarks.error.value == pytest.approx(reached, abs=exactness)
    if len(landmarks) > 1:
        assert dense_trace_error(K, landmarks.indices[:-1], w) > asked - exactness
    assert len(np.unique(landmarks.indices)) == len(landmarks)


# The error asked for


@pytest.mark.parametrize("asked", [0.5, 0.1, 0.01, 1e-4])
@pytest.mark.parametrize("sampler", GROWING)
def test_the_shortest_prefix_that_reaches_it(sampler, asked, X, seed):
    landmarks = selected(X, seed, sampler=sampler, max_trace_error=asked)
    assert landmarks.sampler == sampler
    assert_shortest(landmarks, rbf_matrix(X, WIDTH), asked)
    np.testing.assert_array_equal(landmarks.points, X[landmarks.indices])
    # K̃ leaves out eigenvalues of K_SS that might be rounding.
    found = approximate(X, landmarks).trace_error / 300
    assert found == pytest.approx(landmarks.error.value, rel=0.15, abs=2e-6)


@pytest.mark.parametrize("sampler", GROWING)
def test_more_landmarks_than_the_first_run_makes(sampler, rng, seed):
    """Here the set doubles twice."""
    X = rng.standard_normal((600, 6))
    landmarks = selected(X, seed, gamma=0.2, sampler=sampler, max_trace_error=0.1)
    assert len(landmarks) > 2 * until.N_FIRST_LANDMARKS
    assert_shortest(landmarks, rbf_matrix(X, 0.2), 0.1)


@pytest.mark.parametrize("sampler", GROWING)
def test_a_smaller_error_goes_on_from_where_the_larger_one_ended(sampler, rng, seed):
    X = rng.standard_normal((500, 4))
    orders = [
        selected(X, seed, gamma=0.2, sampler=sampler, max_trace_error=asked).indices
        for asked in (0.3, 0.1, 0.03, 0.003)
    ]
    for short, long in pairwise(orders):
        assert len(short) < len(long)
        np.testing.assert_array_equal(short, long[: len(short)])


def test_uniform_landmarks_are_drawn_by_weight(X, rng, seed):
    options = {"gamma": WIDTH, "sampler": "uniform", "random_state": seed}
    options["sample_weight"] = rng.pareto(1.0, 300) + 0.01
    needed = select_landmarks(X, max_trace_error=0.05, **options)
    counted = select_landmarks(X, n_landmarks=len(needed), **options)
    np.testing.assert_array_equal(needed.indices, counted.indices)


@pytest.mark.parametrize("sampler", GROWING)
def test_a_limit_that_is_reached_warns_of_the_error_there_is(sampler, X, seed):
    with pytest.warns(UserWarning, match=r"max_trace_error=1e-06 was not") as caught:
        landmarks = selected(
            X, seed, sampler=sampler, max_trace_error=1e-6, n_landmarks=20
        )
    assert len(landmarks) == 20
    reached = dense_trace_error(rbf_matrix(X, WIDTH), landmarks.indices)
    assert landmarks.error.value == pytest.approx(reached, abs=1e-8)
    assert len(caught) == 1
    assert f"{reached:.3g} (exact)" in str(caught[0].message)
    assert "20 landmarks" in str(caught[0].message)


@pytest.mark.parametrize("sampler", ["greedy", "uniform"])
def test_the_default_number_is_no_limit(sampler, rng):
    """Without `n_landmarks` there may be more than 1000: as many as it takes."""
    X = 20 * rng.standard_normal((1030, 3))
    landmarks = selected(X, gamma=1.0, sampler=sampler, max_trace_error=0.005)
    assert len(landmarks) > 1000
    assert landmarks.error.value <= 0.005


# Rows of every kind


@pytest.mark.parametrize("sampler", GROWING)
def test_weights_count_in_the_error(sampler, X, rng, seed):
    w = rng.uniform(0, 3, 300)
    w[::7] = 0
    landmarks = selected(
        X, seed, sampler=sampler, max_trace_error=0.02, sample_weight=w
    )
    assert np.all(w[landmarks.indices] > 0)
    assert landmarks.n_rows == 300
    assert_shortest(landmarks, rbf_matrix(X, WIDTH), 0.02, w)


@pytest.mark.parametrize("n", [300, 3000])
@pytest.mark.parametrize("sampler", GROWING)
def test_float32_rows(sampler, n, rng, seed):
    """Of 3000 rows the residuals are worked out in float32."""
    X = rng.standard_normal((n, 2)).astype(np.float32)
    landmarks = selected(X, seed, sampler=sampler, max_trace_error=0.01)
    K = rbf_matrix(X.astype(np.float64), WIDTH)
    reached = dense_trace_error(K, landmarks.indices)
    assert landmarks.error.value == pytest.approx(reached, rel=0.02)
    assert reached <= 0.01 * 1.02
    assert dense_trace_error(K, landmarks.indices[:-1]) > 0.01 * 0.98


@pytest.mark.parametrize("gamma", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("sampler", GROWING)
def test_a_rounded_matrix_is_not_indefinite(sampler, gamma, X, seed):
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
    assert dense_trace_error(K, landmarks.indices) <= 1.2 * asked


# Degenerate rows


@pytest.mark.parametrize("sampler", GROWING)
@pytest.mark.parametrize(("value", "kernel"), [(1.0, "rbf"), (0.0, "linear")])
@pytest.mark.parametrize("n", [1, 50])
def test_one_landmark_is_enough(n, value, kernel, sampler, seed):
    X, options = np.full((n, 2), value), {"kernel": kernel, "random_state": seed}
    landmarks = select_landmarks(X, sampler=sampler, max_trace_error=0.01, **options)
    assert len(landmarks) == 1
    assert landmarks.error.value == pytest.approx(0, abs=1e-12)
    assert 0 <= landmarks.indices[0] < len(X)


@pytest.mark.parametrize("sampler", GROWING)
def test_an_error_within_rounding_ends(sampler, X, seed):
    """What is below rounding counts as nothing, and the rows run out before."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        landmarks = selected(X, seed, sampler=sampler, max_trace_error=1e-15)
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


@pytest.mark.parametrize("sampler", GROWING)
def test_an_indefinite_matrix_is_refused(sampler, X, seed):
    """Also where only a few eigenvalues are negative, or the trace is."""
    values, V = np.linalg.eigh(rbf_matrix(X, WIDTH))
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


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sampler", GROWING)
def test_every_entry_is_counted(sampler, form, rng, seed):
    X, counter = rng.standard_normal((80, 2)), Counted()
    goal = TraceTolerance(0.05)
    landmarks = as_sampler(sampler, goal)(
        counter.kernel(form), as_source(X), goal, seed=seed, engine=Threads(1)
    )
    assert counter.n == landmarks.n_kernel_evaluations > 0


# Bounds on the spectral norm

#: MiB. With the second the kernel matrix is made anew for each step of Lanczos.
in_and_out_of_memory = pytest.mark.parametrize("working_memory", [1024, 0.01])


@cache
def problem(seed, n_rows=400, n_landmarks=30, dtype=np.float64, sampler="auto"):
    """An approximation, and the norm of its residual by a dense solver."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 3)).astype(dtype)
    landmarks = selected(X, seed, n_landmarks=n_landmarks, sampler=sampler)
    K = rbf_kernel(X.astype(np.float64), gamma=WIDTH)
    S = landmarks.indices
    inverse = np.linalg.pinv(K[np.ix_(S, S)], rcond=1e-13, hermitian=True)
    left = K - K[:, S] @ inverse @ K[S]
    return approximate(X, landmarks), np.linalg.eigvalsh(left).max()


@pytest.mark.parametrize("n_rows", [None, 1, 2, 30, 64, 65, 200, 399, 400, 10_000])
@in_and_out_of_memory
def test_truth_lies_between_the_bounds(seed, n_rows, working_memory):
    approximation, truth = problem(seed)
    with sklearn.config_context(working_memory=working_memory):
        error = approximation.spectral_error(n_rows)
    assert error.lower <= truth * (1 + 1e-9)
    assert truth <= error.upper
    assert error.upper == approximation.trace_error
    assert float(error) == error.lower >= 0


@pytest.mark.parametrize("n_rows", [40, 64, 65, 400])
@in_and_out_of_memory
def test_all_rows_give_the_norm_itself(seed, n_rows, working_memory):
    approximation, truth = problem(seed, n_rows, n_landmarks=10)
    with sklearn.config_context(working_memory=working_memory):
        error = approximation.spectral_error()
    assert error.exact
    assert error.n_rows == n_rows
    assert error.lower == pytest.approx(truth, rel=1e-3)
    assert error.estimate == pytest.approx(error.lower)


@pytest.mark.parametrize("sampler", CHOOSING)
def test_float32_rows_give_the_norm_too(seed, sampler):
    approximation, truth = problem(seed, dtype=np.float32, sampler=sampler)
    assert float(approximation.spectral_error()) == pytest.approx(truth, rel=1e-3)


def test_part_of_the_rows_is_stated(seed):
    approximation, _ = problem(seed)
    error = approximation.spectral_error(100)
    assert not error.exact
    assert error.n_rows == 100
    assert error.estimate == pytest.approx(error.lower * 400 / 100)


@pytest.mark.parametrize("n_rows", [50, 100])
@in_and_out_of_memory
def test_residual_that_is_zero(n_rows, working_memory):
    """Where nothing is left for Lanczos to find, the error is 0."""
    X = np.ones((n_rows, 2))
    landmarks = select_landmarks(X, gamma=WIDTH, n_landmarks=5, random_state=0)
    with sklearn.config_context(working_memory=working_memory):
        error = approximate(X, landmarks).spectral_error()
    assert 0 <= error.lower <= error.upper <= 1e-12 * n_rows


@pytest.mark.parametrize("weight", [0.01, 100.0])
def test_both_bounds_are_about_the_same_matrix_where_rows_have_weights(seed, weight):
    """W^½(K − K̃)W^½, for both of them."""
    plain, truth = problem(seed)
    weights = np.full(400, weight)
    approximation = approximate(plain.source.X, plain.landmarks, sample_weight=weights)
    error = approximation.spectral_error()
    assert error.upper == pytest.approx(weight * plain.trace_error)
    assert error.lower == pytest.approx(weight * truth, rel=1e-3)


# max_spectral_error without delta


def clusters(n_clusters, n_copies):
    """Equal clusters, each of copies of one row: ‖K‖ is the size of one."""
    return np.repeat(100.0 * np.arange(n_clusters), n_copies)[:, None]


def n_missed(landmarks, n_clusters, n_copies):
    return n_clusters - len(np.unique(landmarks.indices // n_copies))


def norm_left(X, landmarks, gamma, weights=None):
    """‖W^½(K − K̃)W^½‖₂, dense."""
    K, S = rbf_kernel(X, gamma=gamma), landmarks.indices
    left = K - K[:, S] @ np.linalg.pinv(K[np.ix_(S, S)], 1e-12, hermitian=True) @ K[S]
    half = np.sqrt(np.ones(len(X)) if weights is None else weights)
    return np.linalg.norm(half[:, None] * left * half, 2)


def chosen(sampler, seed, X, ridge, **options):
    return selected(
        X, seed, gamma=1.0, max_spectral_error=ridge, sampler=sampler, **options
    )


#: Clusters, rows in each, λ as a share of them.
FAMILY = [(10, 60, 0.9), (20, 30, 0.95), (60, 10, 0.6)]


@pytest.mark.parametrize("sampler", RIDGED)
@pytest.mark.parametrize("case", FAMILY, ids=str)
def test_no_cluster_is_missed(sampler, case, seed):
    """Where one is, ‖K − K̃‖₂ is above λ."""
    n_clusters, n_copies, share = case
    X, ridge = clusters(n_clusters, n_copies), share * n_copies
    for run in range(12 * seed, 12 * (seed + 1)):
        landmarks = chosen(sampler, run, X, ridge)
        assert n_missed(landmarks, n_clusters, n_copies) == 0
        assert len(landmarks) < len(X)


@pytest.mark.parametrize("sampler", RIDGED)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_error_is_below_the_ridge(sampler, weighted, rng, seed):
    X = rng.standard_normal((500, 3))
    w = rng.exponential(size=500) if weighted else None
    for run in range(4 * seed, 4 * (seed + 1)):
        for ridge in (1.0, 5.0):
            landmarks = chosen(sampler, run, X, ridge, sample_weight=w)
            assert norm_left(X, landmarks, 1.0, w) <= ridge


def test_the_note_says_how_it_is_known(rng):
    X = clusters(10, 60)
    assert "‖K − K̃‖₂ ≤ 40 by the trace error" in str(chosen("recursive", 0, X, 40.0))
    X = rng.standard_normal((900, 3))
    estimated = chosen("recursive", 0, X, 30.0)
    assert "‖K − K̃‖₂ ≤ 30: estimated 0." in str(estimated)
    assert estimated.certificate in str(estimated)
    assert estimated.guarantee is None
    # Of fewer of them, or of more rows, nothing is known.
    assert estimated[:100].certificate is None
    assert estimated.update(X[:5]).certificate is None


def test_few_rows_are_all_landmarks_without_a_check():
    landmarks = chosen("recursive", 0, clusters(10, 15), 12.0)
    assert len(landmarks) == 150
    assert landmarks.n_kernel_evaluations == 0


def test_proven_landmarks_are_not_checked(seed):
    landmarks = chosen("recursive", seed, clusters(10, 200), 150.0, delta=0.01)
    assert landmarks.guarantee is not None
    assert landmarks.certificate is None
    # Nor is anything proven of other rows.
    assert landmarks.update(clusters(10, 1)).guarantee is None


def work_on(X, seed):
    return SamplingProblem(RBF(1.0), as_source(X), seed, Threads(1), Ledger())


def test_no_row_is_a_landmark_twice(rng):
    """λ below rounding, which is left of landmarks too."""
    X = np.linspace(-50, 50, 300, dtype=np.float32)[:, None]
    few = select_landmarks(X, gamma=1.0, sampler=np.arange(0, 300, 2))
    work = work_on(X, 0)
    every, ones = np.arange(300), np.ones(300)
    everything = WeightedSample(
        every, every * 1.0, ones, ones, points=None, max_rows=None
    )
    residual = guarantees.weighted_residual_matrix(few, everything, ones, work)
    assert residual.any()
    assert not residual[few.indices].any()


def test_every_check_uses_other_rows(seed):
    """Landmarks that were added for some rows say little of others.

    One of 20 clusters is missed now and then, among 600 rows that are alone: a look is
    at 256 of those that are left.
    """
    common = []
    for i in range(30):
        rows = np.concatenate([clusters(20, 50), 1e5 + clusters(600, 1)])
        blocks = []

        def seen(A, B, blocks=blocks):
            if len(A) >= 256 and np.array_equal(A, B):
                blocks.append(A[:, 0])
            return rbf_kernel(A, B, gamma=1.0)

        landmarks = select_landmarks(
            np.random.default_rng([seed, i]).permutation(rows),
            kernel=blockwise(seen, diag=lambda A: np.ones(len(A))),
            max_spectral_error=49.0,
            sampler="recursive",
            random_state=100 * seed + i,
        )
        # Matrices of the landmarks themselves are none of rows looked at.
        own = landmarks.points[:, 0]
        looks = [b[b >= 1e5] for b in blocks if np.isin(b, own).mean() < 0.5]
        pairs = itertools.pairwise(looks)
        common += [np.isin(one, other).mean() for one, other in pairs]
    assert common
    assert max(common) < 0.7  # 0.5 where they are independent
