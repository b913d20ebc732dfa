"""tr(K − K̃)/tr K is one thing, whichever pass told it: weighted, exact if it can be."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.metrics.pairwise import rbf_kernel

from nystrom import (
    KernelCCA,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeCV,
    Nystroem,
    approximate,
    select_landmarks,
)
from nystrom.engines import Threads
from nystrom.linalg.errors import TraceError
from nystrom.linalg.features import features_and_error
from nystrom.sources import DenseRows

GAMMA = 0.3
COMMON = {"kernel": "rbf", "gamma": GAMMA, "n_landmarks": 40, "random_state": 0}


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
def test_weights_count_in_every_error_told(estimator, data):
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


def test_all_ways_tell_the_same(data):
    X, y, _ = data
    ones = np.ones(len(X))
    landmarks = select_landmarks(X, gamma=GAMMA, n_landmarks=40, random_state=0)
    exact = truth(X, landmarks.points, ones)
    rows = {**COMMON, "sampler": landmarks.indices}
    errors = [
        approximate(X, landmarks).relative_trace_error,
        KernelRidge(0.1, **rows).fit(X, y).approximation_error_,
        KernelPCA(2, **rows).fit(X).approximation_error_,
        KernelCCA(1, **rows).fit(X, y).approximation_error_[0],
    ]
    est = Nystroem(gamma=GAMMA, n_components=40, sampler=landmarks.indices)
    est.fit_transform(X)
    errors.append(est.approximation_error_)
    for error in errors:
        assert error.exact
        assert error.n_rows == len(X)
        np.testing.assert_allclose(error.value, exact, rtol=1e-8)


def far_apart(seed):
    """Rows of which float32 values leave more, or less, than there is."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-25, 25, (3000, 1)).astype(np.float32)


@pytest.mark.parametrize(
    "estimator", [KernelRidge(1.0), KernelPCA(2), KernelCCA(1, alpha=1.0)], ids=str
)
def test_what_float32_sums_do_not_resolve_is_not_told_as_exact(estimator, seed):
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
def test_below_rounding_an_error_is_told_as_a_bound(seed, dtype, alpha):
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


def test_what_few_rows_do_not_tell_well_enough_is_not_told_as_exact(seed):
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


def test_a_bound_does_not_replace_a_value(data):
    X = data[0]
    landmarks = select_landmarks(X, gamma=GAMMA, n_landmarks=5, random_state=0)
    value = TraceError.from_sums(1e-9, 1.0, 1500)
    bound = TraceError.from_sums(1e-9, 1.0, 1500, rounding=1e-6)
    assert landmarks.with_error(value).with_error(bound).error is value
    assert landmarks.with_error(bound).with_error(value).error is value


def landmarks_in_float64(landmarks):
    return replace(landmarks, points=landmarks.points.astype(np.float64))


@pytest.mark.parametrize("estimator", [KernelKMeans(3), KernelRidge(solver="cg")])
def test_an_estimate_does_not_replace_an_exact_error(estimator, seed):
    """Nor is there a warning that the error was not reached, when it was."""
    X = np.random.default_rng(seed).standard_normal((3000, 2))
    estimator.set_params(
        kernel="rbf", gamma=0.5, max_trace_error=0.02, n_landmarks=None, random_state=1
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = estimator.fit(X, X[:, 0])
    error = fitted.approximation_error_
    assert error.exact
    assert error.value <= 0.02
    np.testing.assert_allclose(
        approximate(X, fitted.landmarks_).relative_trace_error.value, error.value, 1e-6
    )


def test_an_exact_error_outlasts_an_estimate(rng):
    X = rng.standard_normal((300, 3))
    landmarks = select_landmarks(X, n_landmarks=10, random_state=0)
    exact = TraceError(0.1, 0.0, 300, exact=True)
    estimate = TraceError(0.2, 0.01, 50, exact=False)
    assert landmarks.with_error(estimate).with_error(exact).error is exact
    assert landmarks.with_error(exact).with_error(estimate).error is exact
    assert landmarks.with_error(exact).with_error(None).error is exact


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
    assert every.value == some.value == pytest.approx(w @ left / (w @ whole))
