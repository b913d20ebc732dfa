"""The paper as functions, on rows of every kind."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel

import nystrom
from nystrom import (
    Nystroem,
    approximate,
    effective_dimension,
    kernels,
    leverage_scores,
    samplers,
    select_landmarks,
)
from nystrom.sources import DenseRows, SparseRows

GAMMA, RIDGE = 0.3, 0.5
N_ROWS = 150


@pytest.fixture
def X(rng):
    return rng.standard_normal((N_ROWS, 3))


@pytest.fixture
def K(X):
    return rbf_kernel(X, gamma=GAMMA)


def exact_scores(K, ridge=RIDGE):
    return np.diagonal(K @ np.linalg.inv(K + ridge * np.eye(len(K))))


def same_letters(x, y):
    return float(len(set(x) & set(y)))


STORAGES = {
    "array": np.asarray,
    "Fortran order": np.asfortranarray,
    "list of lists": lambda X: X.tolist(),
    "csr": sp.csr_array,
    "csr matrix": sp.csr_matrix,
    "csc": sp.csc_array,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "array of objects": lambda X: X.astype(object),
    "source": DenseRows,
    "sparse source": lambda X: SparseRows(sp.csr_array(X)),
}


def test_public_names_exist():
    assert all(hasattr(nystrom, name) for name in nystrom.__all__)
    assert sorted(nystrom.__all__, key=str.lower) == sorted(
        set(nystrom.__all__), key=str.lower
    )


@pytest.mark.parametrize(
    "function", [select_landmarks, leverage_scores, effective_dimension, approximate]
)
def test_options_are_by_keyword_and_in_the_docstring(function):
    parameters = list(inspect.signature(function).parameters.values())
    positional = 2 if function is approximate else 1
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters[positional:])
    if function is select_landmarks:
        assert all(p.name in function.__doc__ for p in parameters)


# Every kind of rows


@pytest.mark.parametrize("storage", STORAGES)
def test_landmarks_of_every_storage_are_the_same(X, seed, storage):
    options = {"gamma": GAMMA, "n_landmarks": 20, "random_state": seed}
    plain = select_landmarks(X, **options)
    stored = select_landmarks(STORAGES[storage](X), **options)
    np.testing.assert_array_equal(plain.indices, stored.indices)
    assert stored.n_rows == N_ROWS
    assert len(stored) == 20
    points = stored.points
    points = points.toarray() if sp.issparse(points) else points
    np.testing.assert_array_equal(points, X[stored.indices])


@pytest.mark.parametrize("storage", STORAGES)
def test_scores_of_every_storage_are_the_same(X, K, storage):
    rows = STORAGES[storage](X)
    scores = leverage_scores(rows, gamma=GAMMA, ridge=RIDGE)
    np.testing.assert_allclose(scores, exact_scores(K), atol=1e-7)
    dimension = effective_dimension(rows, gamma=GAMMA, ridge=RIDGE)
    assert dimension == pytest.approx(exact_scores(K).sum())
    assert isinstance(dimension, float)


@pytest.mark.parametrize("storage", STORAGES)
def test_approximation_of_every_storage_is_the_same(X, seed, storage):
    rows = STORAGES[storage](X)
    landmarks = select_landmarks(
        rows, gamma=GAMMA, n_landmarks=20, random_state=seed, sampler="uniform"
    )
    stored = approximate(rows, landmarks)
    plain = approximate(X, select_landmarks(X, gamma=GAMMA, sampler=landmarks.indices))
    assert stored.trace_error == pytest.approx(plain.trace_error, rel=1e-6)
    np.testing.assert_allclose(
        stored @ np.ones(N_ROWS), plain @ np.ones(N_ROWS), atol=1e-7
    )


@pytest.mark.parametrize("dtype", [np.float32, np.int32, bool])
def test_rows_of_other_numbers(X, seed, dtype):
    rows = (2 * X).astype(dtype)
    K = rbf_kernel(rows.astype(np.float64), gamma=GAMMA)
    scores = leverage_scores(rows, gamma=GAMMA, ridge=RIDGE)
    np.testing.assert_allclose(scores, exact_scores(K), atol=1e-5)
    landmarks = select_landmarks(rows, gamma=GAMMA, n_landmarks=10, random_state=seed)
    estimated = leverage_scores(rows, ridge=RIDGE, landmarks=landmarks)
    assert np.all((estimated >= 0) & (estimated <= 1))


def test_rows_that_are_strings(seed):
    words = [a + b + c for a in "abcd" for b in "cdef" for c in "xyz"]
    K = np.array([[same_letters(x, y) for y in words] for x in words])
    options = {"kernel": same_letters}
    landmarks = select_landmarks(words, n_landmarks=15, random_state=seed, **options)
    assert landmarks.points == [words[i] for i in landmarks.indices]
    scores = leverage_scores(words, ridge=RIDGE, **options)
    np.testing.assert_allclose(scores, exact_scores(K), atol=1e-8)
    estimated = leverage_scores(words, ridge=RIDGE, landmarks=landmarks)
    assert estimated.shape == (48,)
    assert approximate(words, landmarks).shape == (48, 48)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_precomputed(X, K, seed, dtype):
    options = {"kernel": "precomputed"}
    K = K.astype(dtype)
    landmarks = select_landmarks(K, n_landmarks=20, random_state=seed, **options)
    by_rows = select_landmarks(X, gamma=GAMMA, n_landmarks=20, random_state=seed)
    if dtype == np.float64:
        np.testing.assert_array_equal(landmarks.indices, by_rows.indices)
    scores = leverage_scores(K, ridge=RIDGE, **options)
    expected = exact_scores(rbf_kernel(X, gamma=GAMMA))
    np.testing.assert_allclose(scores, expected, atol=1e-4)
    estimated = leverage_scores(K, ridge=RIDGE, landmarks=landmarks)
    np.testing.assert_allclose(
        estimated,
        leverage_scores(
            X,
            ridge=RIDGE,
            landmarks=landmarks.replace(
                kernel=by_rows.kernel, points=X[landmarks.points]
            ),
        ),
        atol=1e-4,
    )


def test_landmarks_of_an_estimator_serve_the_functions(X, K, seed):
    estimator = Nystroem(gamma=GAMMA, n_components=20, random_state=seed).fit(X)
    approximation = approximate(X, estimator.landmarks_)
    assert approximation.trace_error / N_ROWS == pytest.approx(
        float(estimator.approximation_error_)
    )
    scores = leverage_scores(X, ridge=RIDGE, landmarks=estimator.landmarks_)
    assert scores.shape == (N_ROWS,)


def test_landmarks_of_a_precomputed_estimator_serve_the_functions(K, seed):
    estimator = Nystroem("precomputed", n_components=20, random_state=seed).fit(K)
    approximation = approximate(K, estimator.landmarks_)
    np.testing.assert_array_equal(approximation.features(), estimator.transform(K))
    scores = leverage_scores(K, ridge=RIDGE, landmarks=estimator.landmarks_)
    assert np.all((scores >= 0) & (scores <= 1))


# Landmarks


def test_1000_landmarks_unless_told(rng):
    X = rng.standard_normal((1100, 2))
    assert len(select_landmarks(X, random_state=0, sampler="uniform")) == 1000


@pytest.mark.parametrize("n_landmarks", [None, 200])
def test_no_more_landmarks_than_rows_and_no_warning(X, n_landmarks):
    assert len(select_landmarks(X, n_landmarks=n_landmarks)) == N_ROWS


def test_landmarks_know_how_they_were_chosen(X, seed):
    landmarks = select_landmarks(
        X, gamma=GAMMA, n_landmarks=20, sampler="recursive", random_state=seed
    )
    assert landmarks.sampler == "recursive"
    assert landmarks.kernel == kernels.RBF(GAMMA)
    assert landmarks.rank == 20
    assert landmarks.n_kernel_evaluations > 0
    assert landmarks.ridge > 0
    assert landmarks.effective_dimension > 0
    assert landmarks.weights.shape == landmarks.probabilities.shape == (20,)
    np.testing.assert_allclose(landmarks.weights**2 * landmarks.probabilities, 1)
    assert landmarks.guarantee is None
    assert landmarks.seconds > 0
    assert "\n" not in repr(landmarks)


def test_landmarks_of_points_lack_what_rows_have(X):
    landmarks = select_landmarks(X, sampler=X[:4] + 0.5)
    assert landmarks.indices is None
    assert landmarks.weights is None
    assert landmarks.probabilities is None
    assert str(landmarks).startswith("4 landmarks by given points")


def test_landmarks_pickle(X):
    landmarks = select_landmarks(X, gamma=GAMMA, n_landmarks=20, random_state=0)
    loaded = pickle.loads(pickle.dumps(landmarks))
    assert str(loaded) == str(landmarks)
    np.testing.assert_array_equal(
        approximate(X, loaded).features(), approximate(X, landmarks).features()
    )


def test_ridge_takes_as_many_as_it_needs(rng, seed):
    X = rng.standard_normal((600, 3))
    landmarks = select_landmarks(
        X, gamma=GAMMA, max_spectral_error=2.0, random_state=seed
    )
    assert 0 < len(landmarks) < 600
    assert landmarks.ridge == 2.0
    error = approximate(X, landmarks).spectral_error()
    assert error.exact
    assert error.lower <= 2.0


def test_ridge_with_a_cap_warns(X):
    with pytest.warns(UserWarning, match=r"error=0.001 .*more than the 10 allowed"):
        landmarks = select_landmarks(
            X, gamma=GAMMA, max_spectral_error=1e-3, n_landmarks=10, random_state=0
        )
    assert len(landmarks) == 10
    assert landmarks.n_requested > 10


def test_delta_brings_a_guarantee(X):
    landmarks = select_landmarks(
        X, gamma=GAMMA, max_spectral_error=5.0, delta=0.01, random_state=0
    )
    assert landmarks.guarantee.ridge == 5.0
    assert landmarks.guarantee.probability == pytest.approx(0.97)
    assert "‖K − K̃‖₂ ≤ 5" in str(landmarks)


def test_more_landmarks_than_rows_of_positive_weight(X):
    weights = np.zeros(N_ROWS)
    weights[[3, 5, 7]] = 1
    landmarks = select_landmarks(X, n_landmarks=20, sample_weight=weights)
    assert sorted(landmarks.indices) == [3, 5, 7]


def test_row_numbers_are_those_of_all_rows_also_with_weights(X):
    """Row 4 is row 4, whether or not others have weight 0."""
    weights = np.ones(N_ROWS)
    weights[:3] = 0
    landmarks = select_landmarks(X, sampler=[4, 10], sample_weight=weights)
    np.testing.assert_array_equal(landmarks.indices, [4, 10])
    np.testing.assert_array_equal(landmarks.points, X[[4, 10]])


def test_source_with_weights_of_its_own(X, seed):
    weights = np.arange(N_ROWS, dtype=float)
    options = {"n_landmarks": 20, "random_state": seed, "gamma": GAMMA}
    given_apart = select_landmarks(X, sample_weight=weights, **options)
    of_its_own = select_landmarks(DenseRows(X, weights), **options)
    np.testing.assert_array_equal(given_apart.indices, of_its_own.indices)


def test_weights_come_from_one_place(X):
    weights = np.ones(N_ROWS)
    with pytest.raises(ValueError, match=r"weights of its own; give\s+one"):
        select_landmarks(DenseRows(X, weights), n_landmarks=20, sample_weight=weights)


# Scores


@pytest.mark.parametrize("ridge", [1e-6, 1e-2, 1.0, 1e3])
def test_exact_scores(X, K, ridge):
    scores = leverage_scores(X, gamma=GAMMA, ridge=ridge)
    np.testing.assert_allclose(scores, exact_scores(K, ridge), atol=1e-6)
    assert np.all((scores >= 0) & (scores <= 1))
    assert effective_dimension(X, gamma=GAMMA, ridge=ridge) == pytest.approx(
        scores.sum()
    )


def test_scores_fall_as_the_ridge_grows(X):
    dimensions = [
        effective_dimension(X, gamma=GAMMA, ridge=ridge) for ridge in (0.01, 0.1, 1, 10)
    ]
    assert dimensions == sorted(dimensions, reverse=True)


def test_scores_of_weighted_rows_are_those_of_repeated_rows(X, rng):
    weights = rng.integers(1, 4, N_ROWS)
    scores = leverage_scores(X, gamma=GAMMA, ridge=RIDGE, sample_weight=weights)
    repeated = leverage_scores(np.repeat(X, weights, axis=0), gamma=GAMMA, ridge=RIDGE)
    parts = np.split(repeated, np.cumsum(weights)[:-1])
    np.testing.assert_allclose(scores, [part.sum() for part in parts], atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scores_from_landmarks_without_weights_are_never_below(X, seed, dtype):
    landmarks = select_landmarks(
        X.astype(dtype),
        gamma=GAMMA,
        sampler=np.random.default_rng(seed).choice(N_ROWS, 20, replace=False),
    )
    estimated = leverage_scores(X.astype(dtype), ridge=RIDGE, landmarks=landmarks)
    exact = leverage_scores(X, gamma=GAMMA, ridge=RIDGE)
    assert np.all(estimated >= exact - 1e-5)
    assert effective_dimension(
        X.astype(dtype), ridge=RIDGE, landmarks=landmarks
    ) == pytest.approx(estimated.sum())


def test_scores_from_all_rows_are_exact(X, K):
    landmarks = select_landmarks(X, gamma=GAMMA, n_landmarks=N_ROWS)
    estimated = leverage_scores(X, ridge=RIDGE, landmarks=landmarks)
    np.testing.assert_allclose(estimated, exact_scores(K), atol=1e-9)


def test_scores_from_landmarks_use_their_kernel(X):
    landmarks = select_landmarks(X, kernel="laplacian", n_landmarks=N_ROWS)
    scores = leverage_scores(X, ridge=RIDGE, landmarks=landmarks)
    expected = exact_scores(pairwise_kernels(X, metric="laplacian"))
    np.testing.assert_allclose(scores, expected, atol=1e-9)


def test_exact_scores_of_too_many_rows_say_what_to_do(X):
    with (
        sklearn.config_context(working_memory=0.1),
        pytest.raises(ValueError, match=r"150 × 150.*landmarks=.*working_memory"),
    ):
        leverage_scores(X, ridge=RIDGE)


def test_number_of_threads_changes_no_bit(rng, seed):
    X = rng.standard_normal((4000, 3)).astype(np.float32)
    chosen = [
        select_landmarks(X, n_landmarks=30, random_state=seed, n_jobs=n_jobs)
        for n_jobs in (1, 2, -1)
    ]
    scores = [
        leverage_scores(X, ridge=RIDGE, landmarks=chosen[0], n_jobs=n_jobs)
        for n_jobs in (1, 2, -1)
    ]
    for other in (1, 2):
        np.testing.assert_array_equal(chosen[0].indices, chosen[other].indices)
        np.testing.assert_array_equal(scores[0], scores[other])


# For any data


@given(
    n=st.integers(1, 30),
    d=st.integers(1, 4),
    n_landmarks=st.integers(1, 40),
    sampler=st.sampled_from(list(samplers.NAMES)),
    dtype=st.sampled_from([np.float64, np.float32]),
    copies=st.booleans(),
    data_seed=st.integers(0, 2**32 - 1),
    random_state=st.integers(0, 2**63),
)
def test_landmarks_of_any_data(
    n, d, n_landmarks, sampler, dtype, copies, data_seed, random_state
):
    rng = np.random.default_rng(data_seed)
    X = rng.standard_normal((n, d)).astype(dtype)
    if copies:
        X = X[rng.integers(0, max(1, n // 5), n)]
    landmarks = select_landmarks(
        X, n_landmarks=n_landmarks, sampler=sampler, random_state=random_state
    )
    assert len(landmarks) == min(n, n_landmarks)
    assert 1 <= landmarks.rank <= len(landmarks)
    assert (landmarks.indices is None) == (sampler == "kmeans")
    if landmarks.indices is not None:
        assert len(np.unique(landmarks.indices)) == len(landmarks)
        np.testing.assert_array_equal(landmarks.points, X[landmarks.indices])
    approximation = approximate(X, landmarks)
    assert 0 <= approximation.trace_error <= n
    assert 0 <= float(approximation.spectral_error()) <= approximation.trace_error
    scores = leverage_scores(X, ridge=0.1, landmarks=landmarks)
    assert np.all((scores >= 0) & (scores <= 1))
