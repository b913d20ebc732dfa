"""Kernels that the user brings: functions of two rows or blocks, and matrices."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from nystrom import Nystroem, kernels
from nystrom.kernels.names import as_kernel

WORDS = ["tree", "three", "free", "brie", "grief", "tea", ""]


class Counted:
    """A function of two rows that counts its calls and remembers its pairs."""

    def __init__(self, function):
        self.function = function
        self.pairs = []

    def __call__(self, x, y):
        self.pairs.append((x, y))
        return self.function(x, y)

    @property
    def calls(self):
        return len(self.pairs)


def common_letters(a, b):
    """The inner product of the letters' indicator vectors: definite."""
    return len(set(a) & set(b))


def minimum_blocks(X, Y):
    return np.minimum(X[:, None], Y[None]).sum(axis=2)


# --- a function of two rows ---------------------------------------------------------


def test_pairs_of_rows_go_to_the_right_places(rng):
    X, Y = rng.standard_normal((5, 3)), rng.standard_normal((4, 3))
    kernel = as_kernel(lambda x, y: x[0] - 2 * y[1])
    np.testing.assert_allclose(kernel(X, Y), X[:, :1] - 2 * Y[:, 1])
    np.testing.assert_allclose(kernel.diag(X), X[:, 0] - 2 * X[:, 1])
    np.testing.assert_allclose(kernel.evaluator(Y)(X), kernel(X, Y))


def test_each_pair_of_a_gram_is_evaluated_once():
    function = Counted(common_letters)
    kernel = as_kernel(function)
    K = kernel.gram(WORDS)
    assert function.calls == kernel.gram_evaluations(7) == 28
    assert len({frozenset(pair) for pair in function.pairs}) == 28
    np.testing.assert_array_equal(K, kernel(WORDS, WORDS))
    assert K[0, 1] == K[1, 0] == 4 - 1


def test_rows_in_float32_give_blocks_in_float32_and_objects_in_float64():
    X = np.ones((3, 2), dtype=np.float32)
    kernel = as_kernel(np.dot)
    assert kernel(X, X).dtype == kernel.diag(X).dtype == kernel.dtype(X) == np.float32
    words = as_kernel(common_letters)
    assert words(WORDS, WORDS).dtype == words.diag(WORDS).dtype == np.float64
    assert words.dtype(WORDS) == np.float64


def test_rows_of_csr_reach_the_function_one_by_one(rng):
    X = sp.random_array((6, 5), density=0.5, rng=rng, format="csr")
    kernel = as_kernel(lambda x, y: (x @ y.T).sum())
    np.testing.assert_allclose(kernel(X, X[:4]), (X @ X[:4].T).toarray())


def test_a_function_of_rows_is_of_unknown_definiteness_and_prints_by_name():
    assert as_kernel(common_letters).traits.psd is None
    assert str(as_kernel(common_letters)) == "common_letters"


# --- a function of two blocks -------------------------------------------------------


@pytest.mark.parametrize(
    "diag", [None, lambda X: X.sum(axis=1)], ids=["without", "with"]
)
def test_blockwise_with_and_without_a_diagonal(diag, rng):
    X, Y = rng.random((6, 3)), rng.random((4, 3))
    kernel = kernels.blockwise(minimum_blocks, diag=diag)
    np.testing.assert_array_equal(kernel(X, Y), minimum_blocks(X, Y))
    np.testing.assert_allclose(kernel.diag(X), X.sum(axis=1))
    K = kernel.gram(X)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(K, minimum_blocks(X, X))


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 100])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, list])
def test_blockwise_takes_a_diagonal_from_small_blocks(n, kind, rng):
    X = np.abs(rng.standard_normal((n, 3)))
    dense = (lambda X: X.toarray()) if kind is sp.csr_array else np.asarray
    function = Counted(lambda X, Y: minimum_blocks(dense(X), dense(Y)))
    found = kernels.blockwise(function).diag(kind(X))
    np.testing.assert_allclose(found, X.sum(axis=1), atol=1e-12)
    assert found.shape == (n,)
    assert function.calls == -(-n // 32)


@pytest.mark.parametrize("n_rows", [2000, 8000])
def test_blockwise_without_a_diagonal_is_not_called_row_by_row(n_rows, rng, seed):
    """It was, again in every pass: 24 559 calls for 16 000 rows."""
    X = rng.standard_normal((n_rows, 3))
    without, given = Counted(rbf_kernel), Counted(rbf_kernel)
    options = {"n_components": 40, "random_state": seed, "n_jobs": 1}
    ones = kernels.blockwise(given, diag=lambda X: np.ones(len(X)))
    fitted = Nystroem(kernels.blockwise(without), **options).fit(X)
    expected = Nystroem(ones, **options).fit(X)
    np.testing.assert_array_equal(
        fitted.component_indices_, expected.component_indices_
    )
    # A diagonal of all rows is n/32 calls, and there are up to six.
    assert without.calls <= given.calls + 8 * n_rows / 32


def test_blockwise_asks_its_diagonal_and_nothing_else():
    def refuse(X, Y):
        raise AssertionError

    X = np.ones((4, 2), dtype=np.float32)
    kernel = kernels.blockwise(refuse, diag=lambda X: np.full(len(X), 2.0))
    np.testing.assert_array_equal(kernel.diag(X), 2)
    assert kernel.diag(X).dtype == np.float32


def test_blockwise_of_a_wrong_shape_is_an_error_that_says_what_to_do():
    kernel = kernels.blockwise(lambda x, y: float(x[0] @ y[0]))
    with pytest.raises(ValueError, match=r"blocks of 4 and 3 rows.* without kernels"):
        kernel(np.ones((4, 2)), np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"returned shape \(3, 4\)"):
        kernels.blockwise(lambda X, Y: Y @ X.T)(np.ones((4, 2)), np.ones((3, 2)))


def test_blockwise_may_return_csr(rng):
    X = sp.random_array((6, 5), density=0.5, rng=rng, format="csr")
    kernel = kernels.blockwise(lambda X, Y: X @ Y.T)
    np.testing.assert_allclose(kernel(X, X[:2]), (X @ X[:2].T).toarray())
    np.testing.assert_allclose(kernel.diag(X), (X @ X.T).diagonal())


def test_blockwise_may_take_objects_and_return_lists():
    def blocks(a, b):
        return [[common_letters(x, y) for y in b] for x in a]

    expected = as_kernel(common_letters).gram(WORDS)
    kernel = kernels.blockwise(blocks)
    np.testing.assert_array_equal(kernel(WORDS, WORDS[:2]), expected[:, :2])
    np.testing.assert_array_equal(kernel.gram(WORDS), expected)


def test_functions_that_pickle_make_kernels_that_pickle(rng):
    X = rng.random((4, 3))
    for kernel in [kernels.blockwise(minimum_blocks), as_kernel(np.dot)]:
        again = pickle.loads(pickle.dumps(kernel.evaluator(X)))
        np.testing.assert_array_equal(again(X), kernel(X, X))


# --- a matrix -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_precomputed_picks_rows_and_columns(dtype, rng):
    matrix = rng.integers(0, 100, (6, 6)).astype(dtype)
    kernel = kernels.Precomputed(matrix)
    rows, columns = np.array([4, 0, 4]), np.array([5, 1])
    block = kernel(rows, columns)
    np.testing.assert_array_equal(block, matrix[rows][:, columns])
    np.testing.assert_array_equal(kernel.diag(rows), np.diag(matrix)[rows])
    expected = np.float32 if dtype == np.float32 else np.float64
    assert block.dtype == kernel.diag(rows).dtype == kernel.dtype(rows) == expected


def test_precomputed_gram_is_symmetric_in_float64(rng):
    matrix = rng.standard_normal((6, 6)).astype(np.float32)
    matrix = matrix @ matrix.T
    matrix[0, 3] = np.nextafter(matrix[0, 3], np.float32(np.inf))
    K = kernels.Precomputed(matrix).gram(np.array([3, 0, 2]))
    assert K.dtype == np.float64
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(K, matrix[np.ix_([3, 0, 2], [3, 0, 2])], rtol=1e-6)


def test_precomputed_reads_a_memory_map_without_copying_it(rng, tmp_path):
    matrix = rng.standard_normal((6, 6))
    np.save(tmp_path / "matrix.npy", matrix)
    mapped = np.load(tmp_path / "matrix.npy", mmap_mode="r")
    kernel = kernels.Precomputed(mapped)
    assert kernel.matrix is mapped
    np.testing.assert_array_equal(
        kernel(np.array([1]), np.array([2, 3])), [matrix[1, 2:4]]
    )
