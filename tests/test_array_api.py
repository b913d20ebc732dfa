"""Arrays of another library go through everything below the estimators.

array-api-strict allows what the standard allows and nothing else, and has devices that
refuse to be mixed: what works there should work in torch, CuPy and JAX.
"""

from __future__ import annotations

import array_api_strict as xp
import numpy as np
import pytest
from lists import KERNELS

from nystrom import _arrays as arrays
from nystrom import kernels
from nystrom.estimators._inputs import check_namespace
from nystrom.kernels.names import as_kernel
from nystrom.sources import Subset, as_source
from nystrom.sources.output import ArraySink

CPU, OTHER = xp.Device("CPU_DEVICE"), xp.Device("device1")


def strict(X, device=OTHER):
    return xp.asarray(X, device=device)


def host(X):
    assert isinstance(X, type(xp.asarray(0)))
    return np.from_dlpack(X.to_device(CPU))


@pytest.mark.parametrize("case", KERNELS, ids=str)
def test_kernels_give_what_they_give_in_numpy_and_stay_on_the_device(case, rng):
    for dtype, atol in [(np.float64, 1e-10), (np.float32, 2e-3)]:
        X, Y = case.rows(rng, 12, dtype=dtype), case.rows(rng, 5, dtype=dtype)
        A, B = strict(X), strict(Y)
        K, diagonal = case.kernel(A, B), case.kernel.diag(A)
        for block, expected in [
            (K, case.kernel(X, Y)),
            (diagonal, case.kernel.diag(X)),
            (case.kernel.evaluator(B)(A), case.kernel(X, Y)),
        ]:
            assert block.device == OTHER
            assert block.dtype == A.dtype
            np.testing.assert_allclose(host(block), expected, atol=atol)
        gram = case.kernel.gram(B)
        assert isinstance(gram, np.ndarray)
        np.testing.assert_allclose(gram, case.kernel.gram(Y), atol=1e-10)
        assert case.kernel.dtype(A) == dtype


@pytest.mark.parametrize(
    "kernel",
    [
        kernels.RBF([0.1, 0.2, 0.3]),
        kernels.Laplacian([0.1, 0.2, 0.3]),
        kernels.Matern([1.0, 2.0, 3.0]),
        kernels.RBF() + 2 * kernels.Polynomial(degree=2.5) * kernels.RBF(),
        kernels.Chi2(np.float64(0.5)),
        as_kernel("poly", n_features=3, gamma=np.float64(0.5), coef0=np.int64(1)),
    ],
    ids=str,
)
def test_parameters_per_feature_numpy_scalars_and_composed_kernels(kernel, rng):
    X = rng.random((6, 3))
    np.testing.assert_allclose(host(kernel(strict(X), strict(X))), kernel(X, X))
    narrow = strict(X.astype(np.float32))
    assert kernel(narrow, narrow).dtype == xp.float32


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("far", [1e4, 1e9])
def test_far_rows_are_evaluated_more_exactly(far, dtype, rng):
    X = rng.standard_normal((8, 3)).astype(dtype)
    X[2] = far
    kernel = kernels.RBF(1.0)
    K = kernel(strict(X), strict(X))
    assert K.dtype == strict(X).dtype
    np.testing.assert_allclose(host(K), kernel.gram(X), atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_only_rows_that_need_it_are_evaluated_more_exactly(dtype, rng, monkeypatch):
    X = rng.standard_normal((40, 3)).astype(dtype)
    X[7] += 1e9
    points = np.concatenate([X[[3, 5]], rng.standard_normal((6, 3)).astype(dtype)])
    kernel, sizes, real = kernels.Matern(nu=0.5), [], arrays.squared_distances

    def distances(X, *rest):
        sizes.append(X.shape[0])
        return real(X, *rest)

    expected = kernel(X, points)
    monkeypatch.setattr(arrays, "squared_distances", distances)
    K = host(kernel(strict(X), strict(points)))
    assert sizes == [3]  # those that are points, and the far one
    # d² is right to a few eps·‖x‖², and d to that by its own size.
    np.testing.assert_allclose(K, expected, atol=1e-10 if dtype == np.float64 else 1e-5)
    assert K[3, 0] == K[5, 1] == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sources_give_rows_of_the_same_library_and_device(dtype, rng):
    X = rng.standard_normal((9, 3)).astype(dtype)
    source = as_source(strict(X))
    subset = Subset(source, np.array([1, 4, 8]))
    for rows, expected in [
        (source.rows(2, 5), X[2:5]),
        (source.take(np.array([7, 0, 7])), X[[7, 0, 7]]),
        (subset.rows(1, 3), X[[4, 8]]),
        (subset.take(np.array([2])), X[[8]]),
    ]:
        assert rows.device == OTHER
        np.testing.assert_array_equal(host(rows), expected)
    assert (source.n_rows, source.n_features) == (9, 3)


def test_a_sink_is_on_the_device_of_what_it_is_for(rng):
    X = strict(rng.standard_normal((3, 2)).astype(np.float32))
    sink = ArraySink((5, 2), X)
    sink.put(1, X)
    assert sink.array.device == OTHER
    assert sink.array.dtype == xp.float32
    np.testing.assert_array_equal(host(sink.array)[1:4], host(X))


def test_functions_of_rows_and_of_blocks_get_arrays_of_the_library(rng):
    X = rng.standard_normal((6, 3))
    rows = as_kernel(lambda x, y: xp.sum(x * y))
    blocks = kernels.blockwise(lambda X, Y: X @ Y.T)
    for kernel in (rows, blocks):
        K = kernel(strict(X), strict(X[:4]))
        assert K.device == OTHER
        np.testing.assert_allclose(host(K), X @ X[:4].T)
        np.testing.assert_allclose(host(kernel.diag(strict(X))), (X**2).sum(axis=1))
        np.testing.assert_allclose(kernel.gram(strict(X)), X @ X.T)


def test_a_precomputed_matrix_may_be_of_another_library(rng):
    K = rng.standard_normal((6, 6)).astype(np.float32)
    kernel = kernels.Precomputed(strict(K))
    rows, columns = np.array([4, 0]), np.array([5, 1, 1])
    np.testing.assert_array_equal(host(kernel(rows, columns)), K[rows][:, columns])
    np.testing.assert_array_equal(host(kernel.diag(rows)), np.diag(K)[rows])
    assert kernel(rows, columns).device == kernel.diag(rows).device == OTHER
    np.testing.assert_allclose(
        kernel.gram(rows), kernels.Precomputed(K).gram(rows), rtol=1e-6
    )


# --- passes -------------------------------------------------------------------------


def test_new_rows_come_in_the_library_of_the_fit(rng):
    X = rng.standard_normal((5, 2))
    check_namespace(strict(X), strict(X), "transform()")
    for given, fitted in ((X, strict(X)), (strict(X), X)):
        with pytest.raises(ValueError, match="must use the same namespace"):
            check_namespace(given, fitted, "transform()")
