"""K̃ as an operator: every method against the dense formula."""

import tracemalloc

import numpy as np
import pytest
from lists import SAMPLERS
from scipy.sparse.linalg import aslinearoperator
from sklearn.metrics.pairwise import rbf_kernel

from nystrom import approximate, kernels, select_landmarks

GAMMA = 0.5
N_ROWS, N_LANDMARKS = 300, 40
#: Largest entry-wise error of K̃ by the precision of the rows, for k(x, x) = 1.
ROUNDING = {np.float64: 1e-10, np.float32: 1e-4}

both_precisions = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def dense(K, indices):
    """K̃ from the whole of K."""
    inverse = np.linalg.pinv(K[np.ix_(indices, indices)], rcond=1e-13, hermitian=True)
    return K[:, indices] @ inverse @ K[indices]


@pytest.fixture
def X(rng):
    return rng.standard_normal((N_ROWS, 4))


@pytest.fixture
def K(X):
    return rbf_kernel(X, gamma=GAMMA)


def built(X, seed=0, *, gamma=GAMMA, n_landmarks=N_LANDMARKS, **options):
    landmarks = select_landmarks(
        X, gamma=gamma, n_landmarks=n_landmarks, random_state=seed, **options
    )
    return approximate(X, landmarks)


# Against the dense formula


@both_precisions
def test_features_times_their_transpose_are_the_approximation(X, K, seed, dtype):
    approximation = built(X.astype(dtype), seed)
    Z = approximation.features()
    assert Z.shape == (N_ROWS, N_LANDMARKS)
    assert Z.dtype == dtype
    Z = Z.astype(np.float64)
    expected = dense(K, approximation.landmarks.indices)
    np.testing.assert_allclose(Z @ Z.T, expected, atol=ROUNDING[dtype])


@both_precisions
@pytest.mark.parametrize("shape", [(), (1,), (3,)], ids=["vector", "column", "matrix"])
def test_product(X, K, rng, seed, dtype, shape):
    approximation = built(X.astype(dtype), seed)
    v = rng.standard_normal((N_ROWS, *shape))
    expected = dense(K, approximation.landmarks.indices) @ v
    product = approximation @ v
    assert product.shape == v.shape
    assert product.dtype == np.float64
    tolerance = ROUNDING[dtype] * np.linalg.norm(v)
    np.testing.assert_allclose(product, expected, atol=tolerance)


@both_precisions
def test_diagonal_and_trace(X, K, seed, dtype):
    approximation = built(X.astype(dtype), seed)
    expected = np.diagonal(dense(K, approximation.landmarks.indices))
    diagonal = approximation.diagonal()
    np.testing.assert_allclose(diagonal, expected, atol=ROUNDING[dtype])
    assert approximation.trace() == pytest.approx(diagonal.sum())


@both_precisions
def test_trace_error(X, K, seed, dtype):
    approximation = built(X.astype(dtype), seed)
    error = np.trace(K) - np.trace(dense(K, approximation.landmarks.indices))
    tolerance = N_ROWS * ROUNDING[dtype]
    assert approximation.trace_error == pytest.approx(error, abs=tolerance)
    relative = approximation.relative_trace_error
    assert float(relative) == pytest.approx(error / N_ROWS, abs=ROUNDING[dtype])
    assert relative.exact
    assert relative.standard_error == 0
    assert relative.n_rows == N_ROWS


@both_precisions
def test_eigenpairs(X, K, seed, dtype):
    approximation = built(X.astype(dtype), seed)
    whole = dense(K, approximation.landmarks.indices)
    values, vectors = approximation.eigh(7)
    expected = np.linalg.eigvalsh(whole)[::-1][:7]
    np.testing.assert_allclose(values, expected, rtol=ROUNDING[dtype])
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(7), atol=1e-9)
    np.testing.assert_allclose(
        whole @ vectors, vectors * values, atol=N_ROWS * ROUNDING[dtype]
    )


RIDGES = [1e-10, 1e-6, 1e-2, 1.0, 100.0]


@both_precisions
@pytest.mark.parametrize("ridge", RIDGES)
@pytest.mark.parametrize("shape", [(), (1,), (3,)], ids=["vector", "column", "matrix"])
def test_solve_leaves_no_residual(X, rng, seed, dtype, ridge, shape):
    approximation = built(X.astype(dtype), seed)
    b = rng.standard_normal((N_ROWS, *shape))
    x = approximation.solve(b, ridge)
    assert x.shape == b.shape
    left = b - ridge * x - approximation @ x
    # What a backward stable method leaves.
    size = approximation.trace() * np.linalg.norm(x) + np.linalg.norm(b)
    assert np.linalg.norm(left) <= 1e-13 * size


@pytest.mark.parametrize("share", [1e-10, 1e-8, 1e-4])
def test_solve_with_a_small_ridge_on_a_badly_conditioned_kernel(X, rng, seed, share):
    """K̃ + λI is far from singular at these ridges, K_SS is not."""
    approximation = built(X, seed, gamma=1e-3, n_landmarks=100)
    whole = approximation @ np.eye(N_ROWS)
    values, vectors = np.linalg.eigh((whole + whole.T) / 2)
    ridge = share * values.max()
    b = rng.standard_normal(N_ROWS)
    expected = vectors @ ((vectors.T @ b) / (np.maximum(values, 0) + ridge))
    x = approximation.solve(b, ridge)
    assert np.linalg.norm(x - expected) <= 1e-3 * np.linalg.norm(expected)


# Truths for every seed


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("n_landmarks", [1, 2, 50])
def test_approximation_never_exceeds_the_kernel(X, K, seed, sampler, n_landmarks):
    approximation = built(X, seed, sampler=sampler, n_landmarks=n_landmarks)
    left = np.linalg.eigvalsh(K - approximation @ np.eye(N_ROWS))
    assert left.min() >= -1e-9
    assert approximation.trace_error == pytest.approx(left.sum(), abs=1e-8)


# Singular and degenerate


def test_kernel_that_is_zero_everywhere():
    X = np.zeros((100, 3))
    landmarks = select_landmarks(X, kernel="linear", n_landmarks=10, random_state=0)
    approximation = approximate(X, landmarks)
    assert landmarks.rank == 0
    ones = np.ones(100)
    np.testing.assert_array_equal(approximation.features(), np.zeros((100, 10)))
    np.testing.assert_array_equal(approximation @ ones, 0 * ones)
    np.testing.assert_array_equal(approximation.solve(ones, 2.0), ones / 2)
    values, vectors = approximation.eigh(3)
    assert values.shape == (0,)
    assert vectors.shape == (100, 0)
    assert approximation.trace() == approximation.trace_error == 0
    assert float(approximation.relative_trace_error) == 0


# As an operator


def test_is_a_linear_operator(X, K, rng, seed):
    approximation = built(X, seed)
    operator = aslinearoperator(approximation)
    assert operator.shape == (N_ROWS, N_ROWS)
    assert operator.dtype == np.float64
    v, M = rng.standard_normal(N_ROWS), rng.standard_normal((N_ROWS, 3))
    np.testing.assert_allclose(operator @ v, approximation @ v)
    np.testing.assert_allclose(operator.rmatvec(v), approximation @ v)
    np.testing.assert_allclose(operator @ M, approximation @ M)
    np.testing.assert_allclose(operator.T @ M, approximation @ M)


def test_what_is_no_vector_ridge_or_count_is_refused(X):
    approximation = built(X)
    for length in (3, N_ROWS - 1, N_ROWS + 1, 2 * N_ROWS):
        for work in (approximation.__matmul__, lambda v: approximation.solve(v, 1.0)):
            with pytest.raises(ValueError, match=rf"\b{length}\b"):
                work(np.ones(length))
    for ridge in (0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match=r"ridge=.* is not allowed.*> 0"):
            approximation.solve(np.ones(N_ROWS), ridge)
    for count in (-1, 1.5, "a"):
        with pytest.raises(ValueError, match=r"n_components=.* is not allowed"):
            approximation.eigh(count)
        with pytest.raises(ValueError, match=r"n_rows=.* is not allowed"):
            approximation.spectral_error(count)


# Rows of every kind, weights, threads, memory


def test_rows_that_were_not_chosen_from(rng, seed):
    """Landmarks of one set of rows approximate the kernel of another."""
    X, Y = rng.standard_normal((2, 100, 2))
    landmarks = select_landmarks(X, gamma=GAMMA, n_landmarks=20, random_state=seed)
    approximation = approximate(Y, landmarks)
    K = rbf_kernel(Y, landmarks.points, gamma=GAMMA)
    inner = rbf_kernel(landmarks.points, gamma=GAMMA)
    expected = K @ np.linalg.pinv(inner, rcond=1e-13, hermitian=True) @ K.T
    np.testing.assert_allclose(approximation @ np.eye(100), expected, atol=1e-8)


def test_weights_count_in_the_trace_error(X, K, rng, seed):
    weights = rng.uniform(0, 3, N_ROWS)
    weights[::7] = 0
    landmarks = built(X, seed).landmarks
    approximation = approximate(X, landmarks, sample_weight=weights)
    left = np.diagonal(K - dense(K, landmarks.indices))
    expected = weights @ left
    assert approximation.trace_error == pytest.approx(expected, rel=1e-8)
    relative = expected / (weights @ np.diagonal(K))
    assert float(approximation.relative_trace_error) == pytest.approx(relative)


def test_weights_do_not_change_the_operator(X, seed):
    landmarks = built(X, seed).landmarks
    weighted = approximate(X, landmarks, sample_weight=np.arange(N_ROWS))
    plain = approximate(X, landmarks)
    v = np.ones(N_ROWS)
    np.testing.assert_array_equal(weighted @ v, plain @ v)
    np.testing.assert_array_equal(weighted.diagonal(), plain.diagonal())
    np.testing.assert_array_equal(weighted.solve(v, 1.0), plain.solve(v, 1.0))


def test_nothing_of_size_n_times_s_is_held(rng):
    X = rng.standard_normal((20_000, 2))
    landmarks = built(X, n_landmarks=200, sampler="uniform").landmarks
    approximation = approximate(X, landmarks, n_jobs=1)
    tracemalloc.start()
    approximation.trace_error  # noqa: B018
    approximation.solve(np.ones(20_000), 1.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.5 * 20_000 * 200 * 8


def test_float32_rows_whose_values_are_no_float32_are_evaluated_in_float64(rng):
    X = (1e7 * rng.standard_normal((50, 3))).astype(np.float32)
    kernel = kernels.Polynomial(0.3, 3, 1.0)  # up to 1e43
    landmarks = select_landmarks(X, kernel=kernel, n_landmarks=10, random_state=0)
    approximation = approximate(X, landmarks)
    exact = approximate(X.astype(float), landmarks)
    v = rng.standard_normal(50)
    np.testing.assert_allclose(approximation @ v, exact @ v, rtol=1e-6)
    values, _ = approximation.eigh(3)
    np.testing.assert_allclose(values, exact.eigh(3)[0], rtol=1e-6)
