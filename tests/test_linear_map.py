"""x ↦ k_S(x)·dual + intercept: in which precision it is worked out."""

import numpy as np
import pytest
import scipy.linalg
from sklearn.base import clone

from nystrom import (
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Nystroem,
    select_landmarks,
)
from nystrom._precision import results_need_float64
from nystrom.engines import Threads
from nystrom.kernels import RBF, Linear
from nystrom.linalg.features import LinearMap
from nystrom.sources import DenseRows

N, SIZE = 600, 60


def mapped(X, kernel, dual):
    """The map that is made for these coefficients, and its error on the rows."""
    landmarks = select_landmarks(
        X, kernel=kernel, n_landmarks=SIZE, sampler="uniform", random_state=0
    )
    dual = dual(landmarks) if callable(dual) else dual
    intercept = np.zeros(dual.shape[1])
    made = LinearMap.with_sufficient_precision(landmarks, DenseRows(X), dual, intercept)
    exact = kernel(X.astype(float), landmarks.points.astype(float)) @ dual
    found = made(landmarks, DenseRows(X), Threads(1))
    return made, found, np.linalg.norm(found - exact) / np.linalg.norm(exact)


def vanishing(landmarks):
    """Coefficients of a million whose sum is about one, for a linear kernel."""
    points = landmarks.points.astype(np.float64)
    rng = np.random.default_rng(0)
    nothing = scipy.linalg.null_space(points.T)
    large = nothing @ rng.standard_normal((nothing.shape[1], 2)) * 1e6
    return large + rng.standard_normal((len(points), 2))


@pytest.fixture
def whole_numbers(rng):
    """Rows whose inner products float32 holds exactly."""
    return rng.integers(-8, 9, (N, 5)).astype(np.float32)


def test_exact_values_are_added_up_in_float64_where_they_cancel(whole_numbers):
    made, found, error = mapped(whole_numbers, Linear(), vanishing)
    assert made.wide_sums
    assert not made.wide
    assert found.dtype == np.float32
    assert error < 1e-4


def test_rounded_values_are_evaluated_in_float64_where_they_cancel(rng):
    X = rng.standard_normal((N, 2)).astype(np.float32)
    kernel = RBF(0.1)

    def small(landmarks):
        """A direction in which K_SS is far below the rounding of float32 values."""
        points = landmarks.points.astype(np.float64)
        values, vectors = np.linalg.eigh(kernel(points, points))
        return vectors[:, [np.argmin(np.abs(values - 1e-9 * values[-1]))]]

    made, _, error = mapped(X, kernel, small)
    assert made.wide
    assert error < 1e-4


def test_values_and_sums_stay_float32_where_nothing_cancels(rng, whole_numbers):
    dual = rng.uniform(0.5, 1.0, (SIZE, 2))
    made, found, error = mapped(whole_numbers / 8, RBF(0.1), dual)
    assert not made.wide
    assert not made.wide_sums
    assert found.dtype == np.float32
    assert error < 1e-4


def test_coefficients_beyond_float32_are_added_up_in_float64(rng, whole_numbers):
    """Of kernel values of 1e-19; the results are numbers again."""
    dual = rng.uniform(0.5, 1.0, (SIZE, 2)) * 1e39
    made, found, error = mapped(whole_numbers * np.float32(1e-10), Linear(), dual)
    assert made.wide_sums
    assert np.all(np.isfinite(found))
    assert error < 1e-4


def test_float64_rows_have_nothing_to_decide(rng, whole_numbers):
    made, found, error = mapped(whole_numbers.astype(float), Linear(), vanishing)
    assert not made.wide
    assert not made.wide_sums
    assert found.dtype == np.float64
    assert error < 1e-8


def test_results_may_be_off_by_a_ten_thousandth(rng):
    wide = rng.choice([-1.0, 1.0], (200, 3))
    for off, needed in ((0.9e-4, False), (1.1e-4, True)):
        narrow = wide.copy()
        narrow[:, 1] *= 1 + off
        assert results_need_float64(narrow, wide) is needed


def test_a_few_large_results_hide_no_others(rng):
    wide = rng.standard_normal((200, 1))
    wide[:5] *= 1e6
    narrow = wide + 0.01
    assert results_need_float64(narrow, wide)


NEW_ROWS = {
    "features": (Nystroem(gamma=0.01, n_components=40), "transform"),
    "coordinates": (
        KernelPCA(3, kernel="rbf", gamma=0.01, n_landmarks=40),
        "transform",
    ),
    "predictions": (
        KernelRidge(1e-9, kernel="rbf", gamma=0.01, n_landmarks=40),
        "predict",
    ),
    "all rows": (
        KernelRidge(1e-9, kernel="rbf", gamma=0.01, n_landmarks=900),
        "predict",
    ),
    "decisions": (
        KernelRidgeClassifier(1e-9, kernel="rbf", gamma=0.01, n_landmarks=40),
        "decision_function",
    ),
    "distances": (KernelKMeans(3, gamma=0.01, n_landmarks=40), "transform"),
}


@pytest.mark.parametrize("what", NEW_ROWS)
def test_what_was_fitted_in_float64_takes_float32_rows_by_their_numbers(what, rng):
    """Only what goes out is rounded: coefficients of 10⁵ do not cancel in float32."""
    model, method = NEW_ROWS[what]
    X = rng.standard_normal((N, 4)) + 3
    y = np.sin(X[:, 0]) > 0 if what == "decisions" else np.sin(X[:, 0])
    model = clone(model).set_params(random_state=0).fit(X, y)
    rows = X[:100].astype(np.float32)
    expected = getattr(model, method)(rows.astype(np.float64))
    found = getattr(model, method)(rows)
    assert found.dtype == np.float32
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * scale)
