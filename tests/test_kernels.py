"""Every kernel against its formula, and what all kernels have in common."""

from __future__ import annotations

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
    HISTOGRAM_KERNELS,
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

from nystrom import kernels
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


@pytest.mark.parametrize("case", [c for c in KERNELS if c.sklearn], ids=str)
def test_block_equals_scikit_learns(case, rng):
    X, Y = case.rows(rng, 23), case.rows(rng, 9)
    K = case.kernel(X, Y)
    np.testing.assert_allclose(K, case.sklearn(X, Y), rtol=1e-10, atol=1e-13)


@each_kernel
def test_float32_rows_give_float32_blocks_close_to_the_formula(case, rng):
    X, Y = case.rows(rng, 23, dtype=np.float32), case.rows(rng, 9, dtype=np.float32)
    K, diagonal = case.kernel(X, Y), case.kernel.diag(X)
    assert K.dtype == diagonal.dtype == case.kernel.dtype(X) == np.float32
    np.testing.assert_allclose(K, matrix(case.formula, X, Y), rtol=1e-4, atol=1e-5)


@each_kernel
def test_the_block_of_swapped_rows_is_the_transpose(case, rng):
    X, Y = case.rows(rng, 23), case.rows(rng, 9)
    K, swapped = case.kernel(X, Y), case.kernel(Y, X)
    np.testing.assert_allclose(swapped.T, K, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(
        case.kernel.diag(X), np.diag(case.kernel(X, X)), rtol=1e-12, atol=1e-7
    )


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


@sparse_kernel
def test_csr_blocks_in_float32_are_float32_and_close(case, rng):
    X = case.rows(rng, 23, dtype=np.float32)
    Y = case.rows(rng, 9, dtype=np.float32)
    K = case.kernel(sp.csr_array(X), sp.csr_array(Y))
    assert K.dtype == np.float32
    np.testing.assert_allclose(K, matrix(case.formula, X, Y), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", HISTOGRAM_KERNELS, ids=str)
def test_kernels_of_histograms_refuse_csr_and_negative_entries(case, rng):
    X = case.rows(rng, 4)
    with pytest.raises(ValueError, match="dense rows only"):
        case.kernel(sp.csr_array(X), sp.csr_array(X))
    with pytest.raises(ValueError, match="negative values"):
        case.kernel(X, X - 1)


@each_kernel
def test_rows_in_float32_and_points_in_float64_mix(case, rng):
    X = case.rows(rng, 23, dtype=np.float32)
    Y = case.rows(rng, 9)
    expected = matrix(case.formula, X, Y)
    K = case.kernel(X, Y)
    assert K.dtype == np.float32
    np.testing.assert_allclose(K, expected, rtol=1e-4, atol=1e-5)
    wide = case.kernel(Y, X)
    assert wide.dtype == np.float64
    np.testing.assert_allclose(wide, expected.T, rtol=1e-6, atol=1e-7)


@each_kernel
def test_integer_rows_are_taken_as_float64(case, rng):
    X = rng.integers(0, 4, (12, 5))
    K = case.kernel(X, X[:7])
    assert K.dtype == case.kernel.diag(X).dtype == np.float64
    expected = matrix(case.formula, X, X[:7])
    np.testing.assert_allclose(K, expected, rtol=1e-10, atol=2e-7)
    np.testing.assert_allclose(case.kernel.gram(X[:7]), expected[:7], atol=2e-7)


@each_kernel
def test_inputs_are_left_as_they_were(case, rng):
    X, Y = case.rows(rng, 12), case.rows(rng, 5)
    before = X.copy(), Y.copy()
    case.kernel(X, Y)
    case.kernel.diag(X)
    case.kernel.gram(Y)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(Y, before[1])


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


@pytest.mark.parametrize("gamma", [-1.0, np.nan, np.inf, [1.0, -1.0], [[1.0]]])
@pytest.mark.parametrize("make", [kernels.RBF, kernels.Laplacian])
def test_gamma_out_of_range_is_an_error_that_says_so(make, gamma):
    with pytest.raises(ValueError, match=r"gamma.* (finite|one) number"):
        make(gamma)


@pytest.mark.parametrize("kernel", [kernels.RBF, kernels.Laplacian, kernels.Matern])
def test_as_many_numbers_as_features_are_needed(kernel, rng):
    X = rng.standard_normal((4, 3))
    with pytest.raises(ValueError, match=r"2 .*3|3 .*2"):
        kernel([1.0, 2.0])(X, X)


def test_other_parameters_out_of_range_are_errors():
    with pytest.raises(ValueError, match=r"nu=2.0 is not available; allowed: 0.5"):
        kernels.Matern(1.0, nu=2.0)
    with pytest.raises(ValueError, match="must be > 0"):
        kernels.Matern([1.0, 0.0])
    with pytest.raises(ValueError, match=r"alpha=0.* is not allowed"):
        kernels.RationalQuadratic(1.0, alpha=0)


@pytest.mark.parametrize(
    "kernel",
    [
        kernels.RBF(np.float64(0.5)),
        kernels.Laplacian(np.float64(0.5)),
        kernels.Matern(np.float64(0.5), np.float64(1.5)),
        kernels.RationalQuadratic(np.float64(1.0), np.float64(2.0)),
        kernels.Polynomial(np.float64(0.5), np.int64(2), np.float64(1.0)),
        kernels.Sigmoid(np.float64(0.5), np.float64(1.0)),
        kernels.Chi2(np.float64(0.5)),
        kernels.Linear() * np.float64(0.5),
    ],
    ids=str,
)
def test_numpy_scalars_as_parameters_do_not_widen_float32_blocks(kernel, rng):
    # A grid made by np.logspace hands out np.float64, which widens float32 arrays.
    X = rng.random((6, 3), dtype=np.float32)
    assert kernel(X, X).dtype == kernel.diag(X).dtype == np.float32


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


@composed
def test_composed_kernels_stay_in_float32(kernel, formula, rng):
    X = rng.standard_normal((12, 3)).astype(np.float32)
    assert kernel(X, X).dtype == kernel.diag(X).dtype == np.float32
    assert kernel.evaluator(X)(X).dtype == kernel.dtype(X) == np.float32


@composed
def test_a_kernel_prints_as_the_expression_that_makes_it(kernel, formula, rng):
    X = rng.standard_normal((4, 3))
    again = eval(str(kernel), vars(kernels))
    np.testing.assert_allclose(again(X, X), kernel(X, X), rtol=1e-12)


@pytest.mark.parametrize("factor", [0, -1.0, np.inf, np.nan])
def test_a_kernel_times_what_is_not_positive_is_an_error(factor):
    with pytest.raises(ValueError, match="finite number > 0"):
        factor * kernels.RBF()


def test_a_kernel_plus_or_times_something_else_is_a_type_error():
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


def test_chi2_of_negative_gamma_is_refused_since_it_would_not_be_definite():
    with pytest.raises(ValueError, match=r"gamma=-1.0 is not allowed"):
        kernels.Chi2(-1.0)


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


@pytest.mark.parametrize("exponent", [-200, -25, 25, 200])
def test_cosine_does_not_depend_on_the_scale(exponent, rng):
    dtype = np.float32 if abs(exponent) < 38 else np.float64
    X = rng.standard_normal((6, 3))
    tiny = (X * 10.0**exponent).astype(dtype)
    np.testing.assert_allclose(
        kernels.Cosine()(tiny, tiny), matrix(cosine, X, X), atol=1e-5
    )
    np.testing.assert_array_equal(kernels.Cosine().diag(tiny), 1)


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


# χ² is a distance too, but not one whose means kmeans could take.
CHI2 = [case for case in HISTOGRAM_KERNELS if isinstance(case.kernel, kernels.Chi2)]


@pytest.mark.parametrize("case", [*DISTANCE_KERNELS, *CHI2], ids=str)
@given(data=st.data())
def test_functions_of_a_distance_are_at_most_1_and_1_on_equal_rows(case, data):
    X = data.draw(blocks(positive=case.histograms))
    K = case.kernel(X, X)
    assert K.shape == (len(X), len(X))
    assert K.min() >= 0
    assert K.max() <= 1 + FLOAT32
    equal = (X[:, None] == X[None]).all(axis=2)
    assert abs(K[equal] - 1).max() < 1e-2
    np.testing.assert_array_equal(case.kernel.diag(X), 1)


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


@each_kernel
def test_rows_may_be_read_only(case, rng):
    X, Y = case.rows(rng, 7), case.rows(rng, 4)
    expected = case.kernel(X, Y)
    for rows in (X, Y):
        rows.setflags(write=False)
    np.testing.assert_array_equal(case.kernel(X, Y), expected)
