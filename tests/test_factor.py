"""Roots, cut-offs and ridges of small symmetric matrices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from nystrom import kernels
from nystrom._precision import min_cholesky_ridge
from nystrom.linalg.factor import factorize
from nystrom.linalg.residuals import ridge_inverse_root, tail_ridge, weighted_gram

SCALES = [1e-30, 1e-12, 1e-6, 1.0, 1e6, 1e12]


def definite(rng, size, rank=None):
    """A random matrix of this rank whose eigenvalues fall from 1 to 0.01."""
    rank = rank or size
    Q, _ = np.linalg.qr(rng.standard_normal((size, size)))
    K = (Q[:, :rank] * np.geomspace(1, 0.01, rank)) @ Q[:, :rank].T
    return (K + K.T) / 2


# --- roots --------------------------------------------------------------------------


@pytest.mark.parametrize("psd", [True, None])
@pytest.mark.parametrize("rank", [12, 5, 1])
def test_roots_reproduce_the_matrix(rank, psd, rng):
    K = definite(rng, 12, rank)
    factor = factorize(K, psd=psd)
    assert factor.rank == rank
    assert factor.root.shape == (12, rank)
    np.testing.assert_allclose(factor.L @ factor.L.T, K, atol=1e-12)
    np.testing.assert_allclose(K @ factor.root @ factor.root.T @ K, K, atol=1e-10)
    full = factor.full_root
    assert full.shape == (12, 12)
    np.testing.assert_allclose(full @ full.T, factor.root @ factor.root.T)
    if rank == 12:
        np.testing.assert_allclose(full @ full.T, np.linalg.inv(K), atol=1e-8)


@pytest.mark.parametrize("rank", [9, 4])
def test_sizes_of_eigenvalues_are_known(rank, rng):
    K = definite(rng, 9, rank)
    factor = factorize(K)
    values = np.linalg.eigvalsh(K)[::-1][:rank]
    np.testing.assert_allclose(factor.norm, values[0], rtol=1e-2)
    if rank == 9:
        np.testing.assert_allclose(factor.inverse_norm, 1 / values[-1], rtol=1e-2)
        np.testing.assert_allclose(factor.inverse_trace, np.sum(1 / values))
    k = rng.standard_normal(rank)
    np.testing.assert_allclose(
        factor.root.T @ factor.kernel_values_for(k), k, atol=1e-9
    )


# --- rank ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_landmark_is_cut_at_10_eps_of_its_own_entry(dtype):
    """Whatever the others' entries: here one is 10¹² times as large."""
    eps, eps64 = np.finfo(dtype).eps, np.finfo(np.float64).eps
    unit = 10 * (eps + 3 * eps64)
    for left, rank in [(1.5 * unit, 3), (unit / 1.5, 2)]:
        K = np.diag([1e12, 1.0, 1.0])
        K[1, 2] = K[2, 1] = np.sqrt(1 - left)
        assert factorize(K, dtype).rank == rank


@pytest.mark.parametrize("size", [20, 150])
def test_blocks_of_less_precision_resolve_fewer(size, rng):
    K = kernels.RBF(0.05).gram(rng.standard_normal((size, 2)))
    factor = factorize(K)
    fewer = factor.for_block_dtype(np.float32)
    assert fewer.rank < factor.rank
    lost = np.trace(K) - np.vdot(fewer.L, fewer.L)
    np.testing.assert_allclose(factor.trace_lost_to(fewer), lost, rtol=1e-3)
    assert lost < 2e-6 * size
    np.testing.assert_allclose(fewer.L @ fewer.L.T, K, atol=3e-6)
    assert factor.for_block_dtype(np.float64) is factor
    assert factor.trace_lost_to(factor) == 0


def test_of_an_indefinite_kernel_too_they_resolve_fewer(rng):
    K = kernels.RBF(0.05).gram(rng.standard_normal((150, 2)))
    factor = factorize(K, psd=False)  # so it is treated, whatever it is
    fewer = factor.for_block_dtype(np.float32)
    assert fewer.rank < factor.rank
    assert fewer.root.shape == fewer.L.shape == (150, fewer.rank)
    np.testing.assert_array_equal(fewer.L, factor.L[:, : fewer.rank])
    assert factor.for_block_dtype(np.float64) is factor


def test_a_large_first_eigenvalue_does_not_cut_good_directions_in_float32():
    size = 300
    K = np.ones((size, size)) + 1e-3 * np.eye(size)
    habit = size * np.finfo(np.float32).eps * (size + 1e-3)  # s·eps·σ₁
    assert habit > 10 * 1e-3  # would leave rank 1
    assert factorize(K, np.float32).rank == size


FAR_APART = [
    kernels.Matern(0.01, 1.5),
    kernels.Matern(0.01, 2.5),
    kernels.RBF(1e3),
    kernels.RBF(1e3) + kernels.Linear(),
    2.0 * kernels.RationalQuadratic(0.01),
]


def repeated_rows(rng, dtype=np.float64):
    """14 rows far from each other in the kernel's units, and which each row is."""
    which = rng.integers(0, 14, 200)
    X = (0.5 * rng.standard_normal((14, 3))).astype(dtype)
    X[which[0], 1] = 0.0
    return X[which], which


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("kernel", FAR_APART, ids=str)
def test_equal_rows_have_equal_rows_of_the_kernel_matrix(kernel, form, dtype, rng):
    """Where squared distances in the kernel's units are large, rounding is too."""
    X, which = repeated_rows(rng, dtype)
    X[np.flatnonzero(X[:, 1] == 0)[1::2], 1] = -0.0
    K = kernel.gram(X if form == "dense" else sp.csr_array(X))
    np.testing.assert_array_equal(K, K.T)
    for i in range(14):
        rows = K[which == i]
        np.testing.assert_array_equal(rows, rows[[0] * len(rows)])
    assert factorize(K).rank == len(np.unique(which))


def test_zeros_that_csr_stores_make_no_other_row(rng):
    X, _ = repeated_rows(rng)
    stored = sp.csr_array(X)
    stored.data[stored.indptr[5] : stored.indptr[6]] = 0.0
    stored.data[stored.indptr[9] : stored.indptr[10]] = 0.0
    K = kernels.RBF(1e3).gram(stored)
    np.testing.assert_array_equal(K[5], K[9])
    assert factorize(K).rank == 15


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_scale_of_the_kernel_changes_the_roots_scale_and_nothing_else(dtype, rng):
    K = definite(rng, 20, 11)
    K[0] = K[:, 0] = 0
    factor = factorize(K, dtype)
    for scale in SCALES:
        scaled = factorize(scale * K, dtype)
        assert scaled.rank == factor.rank
        assert scaled.indefinite == factor.indefinite
        np.testing.assert_allclose(
            scaled.L @ scaled.L.T / scale, factor.L @ factor.L.T, atol=1e-12
        )


@pytest.mark.parametrize("psd", [True, None, False])
def test_a_kernel_that_is_zero_has_rank_zero(psd):
    factor = factorize(np.zeros((4, 4)), psd=psd)
    assert factor.rank == 0
    assert factor.root.shape == (4, 0)
    np.testing.assert_array_equal(factor.full_root, np.zeros((4, 4)))
    assert factor.indefinite == (psd is False)


@given(data=st.data())
def test_ranks_and_roots_of_degenerate_data(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n_rows, distinct = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 5))
    scale = 10.0 ** data.draw(st.integers(-12, 12))
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    X = rng.standard_normal((distinct, 6))[rng.integers(0, distinct, n_rows)]
    K = scale * (X @ X.T)
    factor = factorize((K + K.T) / 2, dtype)
    assert factor.rank == len(np.unique(X, axis=0))
    assert not factor.indefinite
    projected = K @ factor.root @ factor.root.T @ K
    np.testing.assert_allclose(projected, K, atol=1e-6 * abs(K).max())


# --- definiteness -------------------------------------------------------------------


@pytest.mark.parametrize("scale", SCALES)
def test_a_negative_eigenvalue_beyond_rounding_is_found(scale, rng):
    Q, _ = np.linalg.qr(rng.standard_normal((10, 10)))
    values = np.linspace(1, 2, 10)
    values[4] = -1e-9
    K = (Q * values) @ Q.T * scale
    factor = factorize((K + K.T) / 2, psd=None)
    assert factor.indefinite
    assert factor.rank == 9


def test_rounding_is_not_taken_for_indefiniteness(rng):
    X = rng.standard_normal((120, 2))
    for gamma in (1e-6, 1e-3, 1e-2):
        K = kernels.RBF(gamma).gram(X)
        assert np.linalg.eigvalsh(K)[0] < 0
        assert not factorize(K, psd=None).indefinite


def test_a_kernel_that_breaks_its_promise_of_definiteness_has_the_rank_it_shows():
    """LAPACK stops at a pivot of −3, whose square is no reason to believe it."""
    factor = factorize(np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert factor.rank == 1
    np.testing.assert_allclose(factor.root, [[1.0], [0.0]])


# --- ridges -------------------------------------------------------------------------


def test_the_ridge_root_with_weights_is_the_formula_of_the_lemma(rng):
    K = definite(rng, 30)
    rows, w, ridge = np.array([3, 17, 4, 28]), np.array([1.0, 3.0, 0.5, 2.0]), 0.07
    S = np.zeros((30, 4))
    S[rows, range(4)] = w
    expected = K @ S @ np.linalg.inv(S.T @ K @ S + ridge * np.eye(4)) @ S.T @ K
    SKS = weighted_gram(K[np.ix_(rows, rows)], w)
    B = ridge_inverse_root(SKS, w, ridge)
    np.testing.assert_array_equal(B, np.triu(B))
    columns = K[:, rows]
    np.testing.assert_allclose(columns @ B @ B.T @ columns.T, expected, atol=1e-12)


def test_a_matrix_more_indefinite_than_the_ridge_makes_up_for_has_a_root(rng):
    """As entries rounded to float32 can make it: a larger ridge takes its place."""
    Q, _ = np.linalg.qr(rng.standard_normal((6, 6)))
    SKS = (Q * [5.0, 4, 3, 2, 1, -1e-3]) @ Q.T
    B = ridge_inverse_root((SKS + SKS.T) / 2, np.ones(6), 1e-6)
    inverse = np.linalg.inv(B @ B.T)
    values = np.linalg.eigvalsh(inverse - SKS)  # the ridge that was used, six times
    np.testing.assert_allclose(values, 2e-3, rtol=0.01)


def test_the_tail_ridge_is_the_mean_tail_of_the_spectrum(rng):
    K = definite(rng, 12)
    values = np.linalg.eigvalsh(K)[::-1]
    for k in (1, 3, 11):
        assert tail_ridge(K, k) == pytest.approx(values[k:].sum() / k)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("rank", [1, 4])
def test_where_the_tail_is_rounding_the_ridge_is_positive_and_enough(scale, rank, rng):
    K = scale * definite(rng, 15, rank)
    for k in (rank, 10, 40):
        ridge = tail_ridge(K, k)
        assert 0 < ridge <= 1e-10 * np.trace(K)
        B = ridge_inverse_root(K, np.ones(15), ridge)
        assert np.isfinite(B).all()


@given(seed=st.integers(0, 2**32 - 1), exponent=st.integers(-12, 12))
def test_the_least_ridge_lets_every_gram_matrix_be_factored(seed, exponent):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((2, 40))[rng.integers(0, 2, 60)] * 10.0 ** (exponent / 2)
    K = kernels.Linear().gram(X)
    scipy.linalg.cholesky(K + min_cholesky_ridge(K) * np.eye(60))


@pytest.mark.parametrize("psd", [True, None])
def test_small_landmarks_beside_large_ones_have_a_good_basis(psd, rng):
    # A cubic kernel of 3 features has rank 20; k(x, x) goes from 1 to 1e36. Pivots by
    # what is left, in absolute terms, would be rounding of the large rows.
    X = rng.standard_normal((60, 3)) * 10.0 ** rng.uniform(-1, 6, (60, 1))
    K = kernels.Polynomial(0.3, 3, 1.0)(X, X)
    S = np.arange(40)
    factor = factorize(K[np.ix_(S, S)], psd=psd)
    assert factor.rank == 20
    Z = K[:, S] @ factor.root
    ratio = np.vecdot(Z, Z) / np.diagonal(K)
    # What is kept of a landmark is above 10·s·eps of it: √(eps) per column, and more.
    assert np.abs(ratio - 1).max() < 40 * np.sqrt(40 * np.finfo(float).eps)
