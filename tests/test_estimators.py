"""What every estimator promises, whatever it computes."""

import tracemalloc

import numpy as np
import pytest
from lists import ESTIMATORS
from sklearn.base import clone

from nystrom import KernelCCA, KernelLogisticRegression

pytestmark = pytest.mark.usefixtures("one_thread")

each = pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
GAMMA = 0.2


def two_clouds(rng, n):
    """Two clouds far apart, of unlike variances, and the number of each row's cloud."""
    y = (np.arange(n) % 2).astype(float)
    X = rng.standard_normal((n, 3)) * [0.5, 0.3, 0.2]
    X[:, 0] += 4 * y
    return X, y


def has_landmarks(estimator):
    """Whether it selects landmarks; the others hold all of few rows."""
    return "n_landmarks" not in estimator.get_params() or estimator.n_landmarks != 1000


def holds_all_pairs(estimator):
    return not has_landmarks(estimator) or getattr(estimator, "solver", "") == "full"


def given(estimator, n_rows=8, **options):
    """The estimator with the first rows as landmarks, where it has landmarks."""
    copy = clone(estimator).set_params(**options)
    known = copy.get_params()
    if "gamma" in known and "gamma" not in options:
        copy.set_params(kernel="rbf", gamma=GAMMA)
    if has_landmarks(estimator):
        copy.set_params(sampler=np.arange(n_rows))
    if isinstance(copy, KernelLogisticRegression):
        copy.set_params(tol=1e-8)
    return copy


def answers(fitted, X):
    """Numbers for rows: coordinates, distances, decisions or predictions."""
    for verb in ("transform", "decision_function", "predict"):
        if hasattr(fitted, verb):
            return np.asarray(getattr(fitted, verb)(X))
    raise AssertionError(f"{fitted} has no answers")


def assert_near(found, expected, share):
    """Within a share of the largest number."""
    np.testing.assert_allclose(
        found, expected, rtol=0, atol=share * abs(expected).max()
    )


@each
def test_float32_rows_give_float32_results_near_those_of_float64(estimator, rng):
    X, y = two_clouds(rng, 200)
    X = X.astype(np.float32)
    found = answers(given(estimator).fit(X, y), X)
    expected = answers(given(estimator).fit(X.astype(float), y), X.astype(float))
    assert (found.dtype, expected.dtype) == (np.float32, np.float64)
    # Gram matrices are right to a thousandth of alpha, and coordinates to its root.
    assert_near(found, expected, 1e-2 if isinstance(estimator, KernelCCA) else 1e-3)


@each
def test_no_array_of_rows_by_landmarks_is_held(estimator, rng, monkeypatch):
    if holds_all_pairs(estimator):
        pytest.skip("holds all of K, if it fits the memory")
    monkeypatch.setattr("nystrom.models.kmeans.SAMPLE_BYTES", 2**20)
    n, s = 40_000, 150
    X, y = two_clouds(rng, n)
    model = given(estimator, s, n_jobs=1)
    model.fit(X[:3000], y[:3000])  # whatever is imported at first use
    tracemalloc.start()
    try:
        model.fit(X, y)
        if hasattr(model, "predict"):
            model.predict(X)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * n * s / 2


@each
def test_a_second_fit_is_a_fresh_fit(estimator, rng):
    X, y = two_clouds(rng, 200)
    model = clone(estimator)
    for rows in (X, X[:12, :2], X):
        model.fit(rows, y[: len(rows)])
        fresh = clone(estimator).fit(rows, y[: len(rows)])
        np.testing.assert_array_equal(answers(model, rows), answers(fresh, rows))
        assert attributes(model) == attributes(fresh)


def attributes(fitted):
    return {name for name in vars(fitted) if name[0] != "_" and name.endswith("_")}
