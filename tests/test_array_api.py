"""Arrays of another library go through everything below the estimators.

array-api-strict allows what the standard allows and nothing else, and has devices that
refuse to be mixed: what works there should work in torch, CuPy and JAX.
"""

from __future__ import annotations

import array_api_strict as xp
import numpy as np
import pytest
from lists import KERNELS, SAMPLERS

from nystrom import _arrays as arrays
from nystrom import kernels, samplers
from nystrom.engines import Threads
from nystrom.estimators._inputs import check_namespace
from nystrom.kernels.names import as_kernel
from nystrom.linalg.cross_kernel import CrossKernel, Ledger
from nystrom.linalg.features import features_and_error
from nystrom.linalg.operator import Approximation
from nystrom.linalg.residuals import (
    KernelSpectrum,
    kernel_matrix,
    prepare_residuals,
    residuals,
)
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


def test_integers_are_taken_as_float64():
    X = np.arange(12).reshape(4, 3)
    rows = as_source(strict(X)).rows(1, 3)
    assert rows.dtype == xp.float64
    np.testing.assert_array_equal(host(rows), X[1:3])
    kernel = kernels.RBF(0.01)
    np.testing.assert_allclose(host(kernel(strict(X), strict(X))), kernel(X, X))


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


def test_a_table_is_needed_here_too():
    with pytest.raises(ValueError, match="Expected 2D array, got 1D"):
        as_source(strict(np.arange(3.0)))


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


def both(X):
    return as_source(X), as_source(strict(X))


@pytest.mark.parametrize("size", [9, 150])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_residuals_are_those_of_numpy(dtype, size, rng):
    X = rng.standard_normal((1500, 3)).astype(dtype)
    kernel, engine = kernels.RBF(0.5), Threads(2)
    B = np.triu(rng.standard_normal((size, size))) / (20 * size)
    ledgers = Ledger(), Ledger()
    numpy, other = (
        residuals(
            prepare_residuals(
                CrossKernel(kernel, source.take(np.arange(size))),
                source,
                B,
                ledger=ledger,
            ),
            source,
            engine=engine,
            name="residuals",
        )
        for source, ledger in zip(both(X), ledgers, strict=True)
    )
    assert isinstance(other, np.ndarray)
    np.testing.assert_allclose(other, numpy, atol=1e-5)
    assert ledgers[0].n_evaluations == ledgers[1].n_evaluations >= 1500 * (size + 1)


def test_exact_scores_are_those_of_numpy(rng):
    kernel = kernels.Laplacian(0.5)
    numpy, other = (
        KernelSpectrum.from_kernel_matrix(kernel_matrix(kernel, source)).scores(0.1)
        for source in both(rng.standard_normal((80, 3)))
    )
    np.testing.assert_allclose(other, numpy, rtol=1e-8)


@pytest.mark.parametrize(
    "sampler",
    [
        *map(samplers.as_sampler, SAMPLERS),
        samplers.Recursive(max_spectral_error=3.0),
        samplers.GivenRows(np.array([5, 2, 400])),
    ],
    ids=str,
)
def test_the_same_seed_gives_the_same_landmarks_and_close_features(sampler, rng, seed):
    # float64: in float32 another library may break ties otherwise.
    X = rng.standard_normal((1050, 3)) * 10.0 ** rng.integers(-1, 2, (1050, 1))
    kernel, engine = kernels.RBF(0.1), Threads(2)
    numpy, other = (
        sampler(kernel, source, 30, seed=seed, engine=engine) for source in both(X)
    )
    np.testing.assert_array_equal(other.indices, numpy.indices)
    assert other.points.device == OTHER
    assert other.points.dtype == xp.float64
    assert other.notes == numpy.notes
    np.testing.assert_allclose(host(other.points), numpy.points, atol=1e-9)
    Z, W = (
        Approximation(source, landmarks, engine).features()
        for source, landmarks in zip(both(X), (numpy, other), strict=True)
    )
    assert W.device == OTHER
    # Z is a root of a badly conditioned matrix; ZZᵀ is not.
    np.testing.assert_allclose(host(W)[:200] @ host(W).T, Z[:200] @ Z.T, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_approximation_is_that_of_numpy(dtype, rng):
    X = rng.standard_normal((1100, 2)).astype(dtype)
    kernel, engine, v = kernels.RBF(0.5), Threads(2), rng.standard_normal(1100)
    sampler = samplers.GivenRows(np.arange(0, 1100, 50))
    results = []
    for source in both(X):
        landmarks = sampler(kernel, source, 22, seed=0, engine=engine)
        approximation = Approximation(source, landmarks, engine)
        _, error = features_and_error(landmarks, source, engine, wide=False)
        results.append(
            {
                "product": approximation @ v,
                "diagonal": arrays.tree_to_host(approximation.diagonal()),
                "eigenvalues": arrays.tree_to_host(approximation.eigh(3)[0]),
                "solution": approximation.solve(v, 0.5),
                "trace error": approximation.trace_error,
                "relative": float(error),
            }
        )
    numpy, other = results
    for name, value in other.items():
        scale = np.abs(numpy[name]).max()
        np.testing.assert_allclose(
            value, numpy[name], atol=1e-3 * scale, rtol=1e-3, err_msg=name
        )


def test_new_rows_come_in_the_library_of_the_fit(rng):
    X = rng.standard_normal((5, 2))
    check_namespace(strict(X), strict(X), "transform()")
    for given, fitted in ((X, strict(X)), (strict(X), X)):
        with pytest.raises(ValueError, match="must use the same namespace"):
            check_namespace(given, fitted, "transform()")
