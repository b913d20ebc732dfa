"""‖K − K̃‖₂ is bounded from both sides, and exact where all rows are used."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import sklearn
from lists import CHOOSING
from sklearn.metrics.pairwise import rbf_kernel

from nystrom import approximate, select_landmarks

GAMMA = 0.5

#: MiB. With the second the kernel matrix is made anew for each step of Lanczos.
in_and_out_of_memory = pytest.mark.parametrize("working_memory", [1024, 0.01])


@cache
def problem(seed, n_rows=400, n_landmarks=30, dtype=np.float64, sampler="auto"):
    """An approximation, and the norm of its residual by a dense solver."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 3)).astype(dtype)
    landmarks = select_landmarks(
        X, gamma=GAMMA, n_landmarks=n_landmarks, random_state=seed, sampler=sampler
    )
    K = rbf_kernel(X.astype(np.float64), gamma=GAMMA)
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


def test_same_random_state_same_rows(seed):
    approximation, _ = problem(seed)
    first = approximation.spectral_error(50, random_state=seed)
    again = approximation.spectral_error(50, random_state=seed)
    other = approximation.spectral_error(50, random_state=seed + 1)
    assert first == again
    assert first.lower != other.lower


@pytest.mark.parametrize("n_rows", [50, 100])
@in_and_out_of_memory
def test_residual_that_is_zero(n_rows, working_memory):
    """Where nothing is left for Lanczos to find, the error is 0."""
    X = np.ones((n_rows, 2))
    landmarks = select_landmarks(X, gamma=GAMMA, n_landmarks=5, random_state=0)
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


@pytest.mark.parametrize("n_rows", [0, -1, 1.5, "a"])
def test_number_of_rows_must_be_a_count(n_rows):
    approximation, _ = problem(0, n_rows=50)
    with pytest.raises(ValueError, match=r"n_rows=.* is not allowed"):
        approximation.spectral_error(n_rows)
