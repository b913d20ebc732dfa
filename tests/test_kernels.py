"""Every kernel against its formula, and what all kernels have in common."""

import math
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from lists import (
    DEFINITE_KERNELS,
    DISTANCE_KERNELS,
    KERNELS,
    SPARSE_KERNELS,
)
from oracles_kernels import (
    cosine,
    laplacian,
    linear,
    matern,
    matrix,
    rational_quadratic,
    rbf,
)
from sklearn.gaussian_process import kernels as gaussian_process
from sklearn.metrics.pairwise import (
    PAIRWISE_KERNEL_FUNCTIONS,
    pairwise_kernels,
    rbf_kernel,
)

from nystrom import Nystroem, kernels
from nystrom.kernels.names import NAMES, as_kernel
from nystrom.linalg.cross_kernel import CrossKernel

each_kernel = pytest.mark.parametrize("case", KERNELS, ids=str)
of_distance = pytest.mark.parametrize("case", DISTANCE_KERNELS, ids=str)
sparse_kernel = pytest.mark.parametrize("case", SPARSE_KERNELS, ids=str)

#: What a float32 block may be off by, for kernels with k(x, x) = 1.
FLOAT32 = 1e-4


@each_kernel
def test_block_equals_the_formula(case, rng):
    X, Y = case.rows(rng, 23), case.rows(rng, 9)
    K = case.kernel(X, Y)
    assert K.dtype == np.float64
    np.testing.assert_allclose(K, matrix(case.formula, X, Y), rtol=1e-10, atol=1e-13)


@each_kernel
def test_float32_rows_give_float32_blocks_close_to_the_formula(case, rng):
    X, Y = case.rows(rng, 23, dtype=np.float32), case.rows(rng, 9, dtype=np.float32)
    K, diagonal = case.kernel(X, Y), case.kernel.diag(X)
    assert K.dtype == diagonal.dtype == case.kernel.dtype(X) == np.float32
    np.testing.assert_allclose(K, matrix(case.formula, X, Y), rtol=1e-4, atol=1e-5)


@each_kernel
def test_diag_is_the_diagonal(case, rng):
    X = case.rows(rng, 12)
    X[3] = 0
    expected = [case.formula(x, x) for x in X]
    np.testing.assert_allclose(case.kernel.diag(X), expected, rtol=1e-12)


@each_kernel
def test_against_fixed_points_equals_the_block_and_pickles(case, rng):
    X, Y = case.rows(rng, 12), case.rows(rng, 5)
    again = pickle.loads(pickle.dumps(CrossKernel(case.kernel, Y)))
    np.testing.assert_array_equal(case.kernel.evaluator(Y)(X), case.kernel(X, Y))
    np.testing.assert_array_equal(again(X), case.kernel(X, Y))


@each_kernel
def test_gram_is_symmetric_to_the_last_bit_and_in_float64(case, rng):
    Y = case.rows(rng, 30, dtype=np.float32)
    Y[7] = Y[8]
    K = case.kernel.gram(Y)
    assert K.dtype == np.float64
    np.testing.assert_array_equal(K, K.T)
    # Matérn ½ of two equal rows is the root of a rounding error away from 1.
    expected = matrix(case.formula, Y, Y)
    np.testing.assert_allclose(K, expected, rtol=1e-9, atol=2e-7)
    np.testing.assert_allclose(np.diag(K), np.diag(expected), rtol=1e-12)


@sparse_kernel
def test_csr_blocks_equal_dense_ones(case, rng):
    X, Y = case.rows(rng, 23), case.rows(rng, 9)
    X[4] = 0
    K, diagonal = case.kernel(X, Y), case.kernel.diag(X)
    A, B = sp.csr_array(X), sp.csr_array(Y)
    np.testing.assert_allclose(case.kernel(A, B), K, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(case.kernel(A, Y), K, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(case.kernel(X, B), K, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(case.kernel.diag(A), diagonal, rtol=1e-12)
    np.testing.assert_allclose(
        case.kernel.gram(B), case.kernel.gram(Y), rtol=1e-10, atol=1e-13
    )


@each_kernel
def test_kernels_are_values(case):
    again = pickle.loads(pickle.dumps(case.kernel))
    assert again == case.kernel
    assert hash(again) == hash(case.kernel)
    assert eval(str(case.kernel), vars(kernels)) == case.kernel
    with pytest.raises(AttributeError):
        case.kernel.gamma = 2.0


# --- one number per feature ---------------------------------------------------------

SCALES = np.array([0.5, 2.0, 0.0, 1.3, 0.1])
PER_FEATURE = [
    (kernels.RBF(SCALES), rbf(SCALES)),
    (kernels.Laplacian(SCALES), laplacian(SCALES)),
    (kernels.Matern(SCALES + 0.2, nu=0.5), matern(SCALES + 0.2, 0.5)),
    (kernels.Matern(SCALES + 0.2, nu=2.5), matern(SCALES + 0.2, 2.5)),
    (
        kernels.RationalQuadratic(SCALES + 0.2, 1.0),
        rational_quadratic(SCALES + 0.2, 1.0),
    ),
]


@pytest.mark.parametrize(
    ("kernel", "formula"), PER_FEATURE, ids=[str(k) for k, _ in PER_FEATURE]
)
def test_parameters_per_feature(kernel, formula, rng):
    X, Y = rng.standard_normal((20, 5)), rng.standard_normal((6, 5))
    expected = matrix(formula, X, Y)
    np.testing.assert_allclose(kernel(X, Y), expected, rtol=1e-9, atol=1e-12)
    A, B = sp.csr_array(X), sp.csr_array(Y)
    np.testing.assert_allclose(kernel(A, B), expected, rtol=1e-9, atol=1e-12)
    K = kernel(X.astype(np.float32), Y.astype(np.float32))
    assert K.dtype == np.float32
    np.testing.assert_allclose(K, expected, rtol=1e-3, atol=1e-5)


def test_other_parameters_out_of_range_are_errors():
    with pytest.raises(ValueError, match=r"nu=2.0 is not available; allowed: 0.5"):
        kernels.Matern(1.0, nu=2.0)
    with pytest.raises(ValueError, match="must be a finite number > 0"):
        kernels.Matern([1.0, 0.0])
    with pytest.raises(ValueError, match=r"alpha=0.* is not allowed"):
        kernels.RationalQuadratic(1.0, alpha=0)


HALF, ONE, TWO = np.float64(0.5), np.float64(1.0), np.int64(2)


def test_numpy_scalars_as_parameters_do_not_widen_float32_blocks(rng):
    # A grid made by np.logspace hands out np.float64, which widens float32 arrays.
    X = rng.random((6, 3), dtype=np.float32)
    for kernel in (
        *(make(HALF) for make in (kernels.RBF, kernels.Laplacian, kernels.Chi2)),
        kernels.Matern(HALF, np.float64(1.5)),
        kernels.RationalQuadratic(ONE, np.float64(2.0)),
        kernels.Polynomial(HALF, TWO, ONE),
        kernels.Sigmoid(HALF, ONE),
        kernels.Linear() * HALF,
    ):
        assert kernel(X, X).dtype == kernel.diag(X).dtype == np.float32, kernel


# --- sums, products, multiples ------------------------------------------------------

COMPOSED = [
    (
        kernels.RBF(0.3) + 2 * kernels.Linear(),
        lambda x, y: rbf(0.3)(x, y) + 2 * linear(x, y),
    ),
    (
        kernels.Laplacian(0.3) * kernels.Cosine(),
        lambda x, y: laplacian(0.3)(x, y) * cosine(x, y),
    ),
    (
        0.5 * (kernels.RBF(0.3) + kernels.Linear()),
        lambda x, y: 0.5 * (rbf(0.3)(x, y) + linear(x, y)),
    ),
    (
        (kernels.RBF(0.3) + kernels.Linear()) * kernels.Laplacian(0.3),
        lambda x, y: (rbf(0.3)(x, y) + linear(x, y)) * laplacian(0.3)(x, y),
    ),
]
composed = pytest.mark.parametrize(
    ("kernel", "formula"), COMPOSED, ids=[str(k) for k, _ in COMPOSED]
)


@composed
def test_composed_kernels(kernel, formula, rng):
    X, Y = rng.standard_normal((12, 3)), rng.standard_normal((5, 3))
    expected = matrix(formula, X, Y)
    np.testing.assert_allclose(kernel(X, Y), expected, rtol=1e-10)
    evaluate = pickle.loads(pickle.dumps(CrossKernel(kernel, Y)))
    np.testing.assert_allclose(evaluate(X), expected, rtol=1e-10)
    np.testing.assert_allclose(kernel.diag(X), [formula(x, x) for x in X], rtol=1e-10)
    K = kernel.gram(Y)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(K, matrix(formula, Y, Y), rtol=1e-10)
    A, B = sp.csr_array(X), sp.csr_array(Y)
    np.testing.assert_allclose(kernel(A, B), expected, rtol=1e-10)


def test_a_multiple_has_a_multiple_of_the_diagonal(rng):
    X = rng.standard_normal((5, 3))
    for kernel in (kernels.RBF(0.5), kernels.Linear()):
        np.testing.assert_allclose((3 * kernel).diag(X), 3 * kernel.diag(X))


def test_a_kernel_with_something_else_is_an_error():
    for factor in (0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="finite number > 0"):
            factor * kernels.RBF()
    with pytest.raises(TypeError):
        kernels.RBF() + 1
    with pytest.raises(TypeError):
        kernels.RBF() * "two"


# --- definiteness -------------------------------------------------------------------


def test_definiteness_is_known_or_unknown_but_never_claimed_wrongly():
    assert kernels.RBF().traits.psd is True
    assert kernels.Polynomial(0.5, 3, 1.0).traits.psd is True
    assert kernels.Sigmoid().traits.psd is False
    assert kernels.AdditiveChi2().traits.psd is False
    for kernel in [
        kernels.Polynomial(0.5, 3, -1.0),
        kernels.Polynomial(0.5, 2.5, 1.0),
        kernels.RBF() + kernels.Sigmoid(),
        kernels.RBF() * kernels.Sigmoid(),
        kernels.blockwise(np.dot),
        kernels.Precomputed(np.eye(2)),
    ]:
        assert kernel.traits.psd is None, kernel
    assert (kernels.RBF() + kernels.Linear()).traits.psd is True
    assert (2 * kernels.RBF() * kernels.Linear()).traits.psd is True
    assert (2 * kernels.Sigmoid()).traits.psd is False


def test_a_sum_or_product_has_the_traits_of_both():
    rows = kernels.Pairwise(np.dot)
    both = kernels.Traits(psd=None, accepts_objects=True, costly=True)
    for kernel in [rows + kernels.blockwise(np.dot), rows * rows, 2 * rows]:
        assert kernel.traits == both, kernel
    for kernel in [rows + kernels.RBF(), 2 * kernels.RBF() * rows]:
        assert kernel.traits == kernels.Traits(psd=None, costly=True), kernel
    near = kernels.Traits(is_distance_based=True)
    assert (kernels.RBF() + 2 * kernels.Laplacian()).traits == near
    assert (kernels.RBF() * kernels.Linear()).traits == kernels.Traits()
    assert (kernels.RBF() + kernels.Precomputed(np.eye(2))).traits.uses_row_numbers


@pytest.mark.parametrize("case", DEFINITE_KERNELS, ids=str)
@given(data=st.data())
def test_kernels_called_definite_are(case, data):
    X = data.draw(blocks(positive=case.histograms, largest=1e3))
    K = case.kernel.gram(X)
    np.testing.assert_array_equal(K, K.T)
    smallest, largest = np.linalg.eigvalsh(K)[[0, -1]]
    assert smallest >= -1e-7 * abs(largest)


# --- precision ----------------------------------------------------------------------


@of_distance
@pytest.mark.parametrize("shift", [0, 1e3, 1e5])
def test_float32_survives_a_shift_of_the_data(case, shift, rng):
    X, Y = case.rows(rng, 40), case.rows(rng, 20)
    X, Y = ((Z + shift).astype(np.float32) for Z in (X, Y))
    expected = matrix(case.formula, X, Y)
    assert abs(case.kernel(X, Y) - expected).max() < FLOAT32
    assert abs(case.kernel(X, Y.astype(float)) - expected).max() < FLOAT32
    sparse = case.kernel(sp.csr_array(X), sp.csr_array(Y))
    assert abs(sparse - expected).max() < FLOAT32


@of_distance
def test_equal_rows_in_float32_have_kernel_1(case, rng):
    X = case.rows(rng, 40, dtype=np.float32)
    assert abs(np.diag(case.kernel(X, X)) - 1).max() < FLOAT32


@of_distance
@pytest.mark.parametrize("far", [1e6, 1e10, 1e20])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_one_of_two_points_may_be_far(case, far, storage, rng):
    """Whichever is the middle: differences are those of the rows as they came."""
    X = case.rows(rng, 30)
    Y = np.vstack([X[3], np.full_like(X[3], far)])
    for points in (Y, Y[::-1]):
        expected = matrix(case.formula, X, points)
        found = case.kernel(storage(X), storage(points))
        assert abs(found - expected).max() < 1e-9


@of_distance
@pytest.mark.parametrize("far", [1e3, 1e6, 1e10, 1e20])
def test_a_far_row_in_float32_spoils_no_other(case, far, rng):
    X = case.rows(rng, 30, dtype=np.float32)
    X[7] = far
    expected = matrix(case.formula, X, X)
    assert abs(case.kernel(X, X[20:]) - expected[:, 20:])[:20].max() < FLOAT32
    assert abs(case.kernel(X[20:], X) - expected[20:])[:, :20].max() < FLOAT32
    assert abs(case.kernel.gram(X) - expected).max() < 1e-5


# --- degenerate data ----------------------------------------------------------------


@st.composite
def blocks(draw, positive=False, largest=1e12):
    """Rows that may repeat, be constant or zero, at any scale, in both precisions."""
    n_rows, n_features = draw(st.integers(1, 8)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.standard_normal((n_rows, n_features))
    kind = draw(st.sampled_from(["normal", "constant", "duplicates", "zeros", "equal"]))
    if kind == "constant":
        X[:] = X[:, :1]
    elif kind == "duplicates":
        X = X[rng.integers(0, n_rows, n_rows)]
    elif kind == "zeros":
        X *= rng.random(X.shape) < 0.3
    elif kind == "equal":
        X[:] = X[0]
    exponents = st.integers(-12, round(math.log10(largest)))
    X *= 10.0 ** draw(exponents)
    if positive:
        X = abs(X)
    return X.astype(draw(st.sampled_from([np.float32, np.float64])))


@each_kernel
@given(data=st.data())
def test_rows_of_any_shape_and_scale_give_what_the_formula_gives(case, data):
    X = data.draw(blocks(positive=case.histograms))
    expected = matrix(case.formula, X, X)
    size = abs(expected).max(initial=1e-30)
    assume(size < 1e30)  # the cube of 1e24 has no float32
    K = case.kernel(X, X)
    assert K.dtype == X.dtype
    np.testing.assert_allclose(K, expected, rtol=1e-3, atol=1e-2 * size)


# Kernels by name

SHARED = {"gamma": 0.3, "degree": 2, "coef0": 0.5}


@pytest.fixture
def X(rng):
    return rng.random((12, 4))


def test_every_name_of_scikit_learn_is_known():
    assert set(PAIRWISE_KERNEL_FUNCTIONS) <= set(NAMES)


@pytest.mark.parametrize("name", PAIRWISE_KERNEL_FUNCTIONS)
def test_defaults_and_parameters_are_scikit_learns(name, X):
    ours = as_kernel(name, n_features=4)(X, X[:5])
    np.testing.assert_allclose(ours, pairwise_kernels(X, X[:5], metric=name))
    ours = as_kernel(name, n_features=4, **SHARED)(X, X[:5])
    theirs = pairwise_kernels(X, X[:5], metric=name, filter_params=True, **SHARED)
    np.testing.assert_allclose(ours, theirs)


@pytest.mark.parametrize(
    ("name", "nu"), [("matern12", 0.5), ("matern32", 1.5), ("matern52", 2.5)]
)
def test_gamma_of_matern_is_that_of_rbf(name, nu, X):
    # exp(−γd²) = exp(−d²/(2ℓ²)) has γ = 1/(2ℓ²).
    expected = gaussian_process.Matern(length_scale=0.5, nu=nu)(X, X[:5])
    for kernel in [
        as_kernel(name, gamma=2.0),
        as_kernel(name, kernel_params={"length_scale": 0.5}),
        as_kernel("matern", gamma=2.0, kernel_params={"nu": nu}),
    ]:
        np.testing.assert_allclose(kernel(X, X[:5]), expected)


def test_the_estimators_own_parameter_wins_over_kernel_params():
    kernel = as_kernel("rbf", gamma=0.5, kernel_params={"gamma": 2.0})
    assert kernel == kernels.RBF(0.5)
    assert as_kernel("rbf", kernel_params={"gamma": 2.0}) == kernels.RBF(2.0)
    unset = as_kernel("rbf", n_features=4, kernel_params={"gamma": None})
    assert unset == kernels.RBF(0.25)


@pytest.mark.parametrize("kernel", ["poly", np.dot])
def test_the_users_dict_is_left_as_it_was(kernel):
    params = {"degree": 2} if isinstance(kernel, str) else {"out": None}
    before = dict(params)
    resolved = as_kernel(kernel, kernel_params=params)
    assert params == before
    params.clear()
    assert "degree=2" in str(resolved) or resolved.params == before


def test_a_kernel_stays_itself_and_precomputed_is_one():
    kernel = kernels.RBF(0.5) + kernels.Linear()
    assert as_kernel(kernel) is kernel
    assert isinstance(as_kernel("precomputed"), kernels.Precomputed)


# Kernels that users bring

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


def test_blockwise_may_return_csr(rng):
    X = sp.random_array((6, 5), density=0.5, rng=rng, format="csr")
    kernel = kernels.blockwise(lambda X, Y: X @ Y.T)
    np.testing.assert_allclose(kernel(X, X[:2]), (X @ X[:2].T).toarray())
    np.testing.assert_allclose(kernel.diag(X), (X @ X.T).diagonal())


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
