"""Sums over rows: the Gram matrix by panels, and with or without the root in tiles."""

from dataclasses import replace

import numpy as np
import pytest

from nystrom import _precision as precision
from nystrom import approximate, select_landmarks
from nystrom.engines import Threads
from nystrom.kernels import RBF, Linear, Matern, Polynomial
from nystrom.linalg import features
from nystrom.linalg import moments as module
from nystrom.linalg.features import FeatureMap
from nystrom.linalg.moments import moments
from nystrom.sources import DenseRows

N, SIZE = 5000, 70


@pytest.fixture
def narrow_panels(monkeypatch):
    """Several panels, the last one narrower, of a small Gram matrix."""
    monkeypatch.setattr(module, "MIN_PANEL_COLUMNS", 8)


def prepared(rng):
    """A map, its rows, and their Z, made at once."""
    X = rng.standard_normal((N, 4))
    source = DenseRows(X).replace(targets=np.sin(X[:, :2]))
    landmarks = select_landmarks(
        X, kernel=RBF(0.5), n_landmarks=SIZE, sampler="uniform", random_state=0
    )
    mapping = FeatureMap.for_ridge(landmarks, source, 1.0, center=False)
    return mapping, source, mapping(X)


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_panels_are_put_together_as_the_gram_matrix(
    rng, narrow_panels, whiten, weighted
):
    mapping, source, Z = prepared(rng)
    w = rng.uniform(0, 2, N) if weighted else np.ones(N)
    source = source.replace(weights=w) if weighted else source
    sums = moments(replace(mapping, whiten=whiten), source, Threads(1))
    tolerance = {"rtol": 1e-9, "atol": 1e-9 * N}
    np.testing.assert_allclose(sums.gram, (Z.T * w) @ Z, **tolerance)
    np.testing.assert_allclose(sums.cross, (Z.T * w) @ source.targets, **tolerance)
    np.testing.assert_allclose(sums.feature_sum, Z.T @ w, **tolerance)


@pytest.mark.parametrize("few", [0, 10**6])
def test_the_mean_of_many_targets_is_weighted(rng, monkeypatch, few):
    monkeypatch.setattr(features, "MAX_TARGETS_AT_ONCE", few)
    source, w = prepared(rng)[1], rng.uniform(0, 2, N)
    found = features.mean_target(source.replace(weights=w), Threads(1))
    np.testing.assert_allclose(found, np.average(source.targets, axis=0, weights=w))


@pytest.mark.parametrize("whiten", [False, True])
def test_the_gram_matrix_is_symmetric_to_the_last_bit(rng, narrow_panels, whiten):
    mapping, source, _ = prepared(rng)
    gram = moments(replace(mapping, whiten=whiten), source, Threads(1)).gram
    np.testing.assert_array_equal(gram, gram.T)


SMOOTH = {
    "rbf": RBF(0.05),
    "matern": Matern(3.0, 2.5),
    "cubic": Polynomial(degree=3, gamma=0.1, coef0=1.0),
}


@pytest.mark.parametrize("kernel", SMOOTH.values(), ids=list(SMOOTH))
@pytest.mark.parametrize("size", [10, 60])
@pytest.mark.parametrize("equal", [1, 50])
def test_rounding_of_an_unwhitened_sum_is_what_is_expected(rng, kernel, size, equal):
    """Also where many rows are equal, and are rounded alike."""
    X = np.repeat(rng.standard_normal((4000 // equal, 4)), equal, axis=0)
    source = DenseRows(rng.permutation(X))
    landmarks = select_landmarks(
        X, kernel=kernel, n_landmarks=size, sampler="uniform", random_state=0
    )
    mapping = FeatureMap.for_ridge(landmarks, source, 1.0, center=False)
    whitened = moments(replace(mapping, whiten=True), source, Threads(1)).gram
    plain = replace(mapping, whiten=False, alpha=np.inf)
    error = np.linalg.norm(moments(plain, source, Threads(1)).gram - whitened, 2)
    # Whitened sums are rounded too, by some units of their own size.
    own = 10 * precision.EPS64 * np.linalg.norm(whitened, 2)
    K = mapping.columns(source.X)
    squares, inverse = np.vecdot(K, K, axis=0), np.vecdot(mapping.root, mapping.root)
    expected = precision.EPS64 * float(squares @ inverse)
    assert error < 4 * expected + own
    assert expected < 20 * error + own


def test_the_noise_of_float32_values_is_what_is_expected(rng):
    """Near the centre, root mean square: within a factor of 3 of the constant."""
    narrow = rng.standard_normal((400, 4)).astype(np.float32)
    wide = narrow.astype(np.float64)
    for kernel in (RBF(0.1), RBF(0.5), Matern(2.0)):
        off = kernel(narrow, narrow[:50]) - kernel(wide, wide[:50])
        noise = np.sqrt(np.mean(off**2))
        assert noise / 3 < precision.MIN_FLOAT32_NOISE < 3 * noise


def test_rows_of_weight_0_are_not_counted(rng):
    X = rng.standard_normal((1500, 3))
    w = rng.uniform(0, 1, 1500) * (np.arange(1500) % 3 > 0)
    landmarks = select_landmarks(X, n_landmarks=10, random_state=0)
    mapping = FeatureMap.for_ridge(landmarks, DenseRows(X, w), 1.0, center=False)
    sums = moments(mapping, DenseRows(X, w), Threads(1))
    assert sums.n_rows == 1000
    assert sums.weight == pytest.approx(w.sum())


@pytest.mark.parametrize("whiten", [False, True])
def test_a_gram_matrix_that_overflows_is_refused(rng, whiten):
    """By a row that nobody has looked at before: values of k that are still finite."""
    X = rng.standard_normal((N, 3))
    landmarks = select_landmarks(X, kernel=Linear(), sampler=np.arange(3))
    mapping = FeatureMap.for_ridge(landmarks, DenseRows(X), 1.0, center=False)
    X[-1] = 1e160
    with pytest.raises(ValueError, match="The kernel returned nan or inf"):
        moments(replace(mapping, whiten=whiten), DenseRows(X), Threads(1))


def test_the_trace_error_about_a_shift_that_is_only_near_the_mean(rng):
    X = rng.standard_normal((N, 3)) + 1
    landmarks = select_landmarks(X, gamma=0.1, n_landmarks=20, random_state=0)
    mapping = FeatureMap.for_ridge(landmarks, DenseRows(X), 1e-12, center=True)
    assert mapping.whiten
    assert mapping.shift.any()
    sums = moments(mapping, DenseRows(X), Threads(1))
    found = module.trace_error_after_pass(
        landmarks, mapping, sums, DenseRows(X), Threads(1)
    )
    expected = approximate(X, landmarks).relative_trace_error.value
    assert found.value == pytest.approx(expected, rel=1e-6)
