"""Roots, cut-offs and ridges of small symmetric matrices."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from lists import OFF_THE_ROWS, SAMPLERS
from sklearn.metrics.pairwise import rbf_kernel

from nystrom import (
    KernelCCA,
    KernelPCA,
    KernelRidge,
    KernelRidgeCV,
    Nystroem,
    approximate,
    kernels,
    select_landmarks,
)
from nystrom._precision import min_cholesky_ridge
from nystrom.estimators._search import random_folds
from nystrom.linalg.factor import cholesky, factorize, pivot_order
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


# K_SS = LLᵀ in the order of selection: every prefix from one pass

GAMMA = 0.2


def clustered(seed, n=1500, dtype=np.float64):
    rng = np.random.default_rng(seed)
    centers = 3 * rng.standard_normal((9, 3))
    return (centers[rng.integers(0, 9, n)] + rng.standard_normal((n, 3))).astype(dtype)


def error_of(X, rows):
    """tr(K − K̃)/tr K by dense float64 algebra."""
    X = np.asarray(X, dtype=np.float64)
    K_S, K_SS = rbf_kernel(X, X[rows], GAMMA), rbf_kernel(X[rows], X[rows], GAMMA)
    values, vectors = np.linalg.eigh(K_SS)
    kept = values > 1e-12 * values.max()
    Z = K_S @ (vectors[:, kept] / np.sqrt(values[kept]))
    return 1 - np.mean(np.vecdot(Z, Z))


# The factor itself


@pytest.mark.parametrize("n_distinct", [1, 5, 40])
def test_copies_have_no_column(n_distinct, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_distinct, 3))[rng.integers(0, n_distinct, 150)]
    factor = factorize(kernels.RBF(1.0).gram(X))
    distinct = len(np.unique(X, axis=0))
    assert factor.rank == distinct
    assert np.all(factor.full_root[:, np.setdiff1d(range(150), factor.kept)] == 0)


def test_low_rank_in_any_order(seed):
    """The first rows of a random order would be a bad basis: complete pivoting."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((400, 4))
    kernel = kernels.Polynomial(0.25, 3, 1)
    K = kernel(X, X)
    rows = rng.permutation(400)[:120]
    for sampler in (rows, "uniform"):
        est = Nystroem(kernel, n_components=120, sampler=sampler, random_state=seed)
        Z = est.fit_transform(X)
        assert est.landmarks_.rank == 35
        # The natural order loses a factor of a hundred here.
        assert np.linalg.norm(Z @ Z.T - K, 2) < 2e-14 * np.linalg.norm(K, 2)
    natural, _ = cholesky(K[np.ix_(rows, rows)], 1e-13 * np.diagonal(K)[rows])
    best = pivot_order(K[np.ix_(rows, rows)])
    assert sorted(best) == list(range(120))
    assert natural.shape[1] >= 35


def test_an_indefinite_kernel_keeps_its_positive_part(seed):
    X = clustered(seed, 300)
    with pytest.warns(UserWarning, match="not positive semi-definite"):
        est = Nystroem("sigmoid", gamma=0.5, n_components=40, random_state=seed).fit(X)
    factor = est.landmarks_.factor
    K_SS = kernels.Sigmoid(0.5, 1)(est.components_, est.components_)
    values, vectors = np.linalg.eigh(K_SS)
    positive = values > 1e-10
    K = (vectors[:, positive] * values[positive]) @ vectors[:, positive].T
    np.testing.assert_allclose(factor.L @ factor.L.T, K, atol=1e-9)
    assert factor.indefinite
    assert not factor.is_nested


# Features


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", SAMPLERS)
def test_normalization_makes_the_features(name, dtype, seed):
    X = clustered(seed, 400, dtype)
    est = Nystroem(gamma=GAMMA, n_components=25, sampler=name, random_state=seed)
    Z = est.fit_transform(X)
    assert Z.dtype == dtype
    by_hand = rbf_kernel(X, est.components_, GAMMA) @ est.normalization_.T
    close = 2e-3 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(Z, by_hand, atol=close)
    np.testing.assert_array_equal(est.transform(X), Z)
    # Triangular, but for landmarks that are in another order than their factor's.
    if est.landmarks_.factor.is_nested:
        assert np.all(np.triu(est.normalization_, 1) == 0)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "polynomial"])
def test_no_feature_has_more_than_there_is(kernel, seed):
    """K̃ ⪯ K on the diagonal: 1e-5 of k(x, x) in float32, where the root had 1e-4."""
    X = clustered(seed, 1200, np.float32)
    for gamma in (1e-3, 0.05):
        for sampler in ("uniform", "auto"):
            est = Nystroem(kernel, gamma=gamma, n_components=120, sampler=sampler)
            Z = est.set_params(random_state=seed).fit_transform(X).astype(np.float64)
            kxx = est.landmarks_.kernel.diag(X.astype(np.float64))
            assert (np.vecdot(Z, Z) / kxx - 1).max() < 3e-5


def test_float32_rows_go_on_in_float64_below_their_rounding(seed):
    """They are exact numbers: what can be reached in float64 is reached."""
    rng = np.random.default_rng(seed)
    X = (rng.integers(0, 40, (4000, 3)) / 8).astype(np.float32)
    errors = {}
    for dtype in (np.float32, np.float64):
        chosen = select_landmarks(
            X.astype(dtype), gamma=0.02, n_landmarks=300, random_state=seed
        )
        same = select_landmarks(
            X.astype(np.float64), gamma=0.02, sampler=chosen.indices
        )
        K = approximate(X.astype(np.float64), same)
        errors[dtype] = K.relative_trace_error.value
    assert errors[np.float64] < 1e-11
    assert errors[np.float32] < 1e-11


# Every prefix from one pass


@pytest.mark.parametrize("name", [n for n in SAMPLERS if n not in OFF_THE_ROWS])
def test_a_prefix_is_what_its_rows_make(name, seed):
    X = clustered(seed, 700)
    est = Nystroem(gamma=GAMMA, n_components=40, sampler=name, random_state=seed)
    Z = est.fit_transform(X)
    path = est.landmarks_.error_path
    assert len(path) == 40
    assert np.all(np.diff(path) <= 1e-15)
    assert path[-1] == est.approximation_error_.value
    for k in (1, 7, 40):
        fewer = est.landmarks_[:k]
        np.testing.assert_array_equal(fewer.indices, est.component_indices_[:k])
        exact = error_of(X, fewer.indices)
        np.testing.assert_allclose(path[k - 1], exact, rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(fewer.error.value, exact, rtol=1e-6, atol=1e-12)
        assert fewer.error.exact
        part = est.truncate(k)
        np.testing.assert_allclose(part.transform(X), Z[:, :k], atol=1e-10)
        assert part.n_components == k
        assert part.get_feature_names_out().shape == (k,)


@pytest.mark.parametrize("name", [n for n in SAMPLERS if n not in OFF_THE_ROWS])
@pytest.mark.parametrize("n_features", [1, 3])
def test_a_prefix_of_few_dimensions(name, n_features, seed):
    """Rank is lost at once; what is kept may be in order and still not nest."""
    for run in range(8):
        X = np.random.default_rng(100 * seed + run).standard_normal((200, n_features))
        est = Nystroem("linear", n_components=10, sampler=name, random_state=run)
        est.fit_transform(X)
        path, rows = est.landmarks_.error_path, est.component_indices_
        for k in (1, 2, 3, 10):
            Q = np.linalg.qr(X[rows[:k]].T)[0] if k < n_features else np.eye(n_features)
            exact = 1 - np.sum((X @ Q) ** 2) / np.sum(X**2)
            np.testing.assert_allclose(path[k - 1], exact, atol=1e-12)
            Z = est.truncate(k).transform(X)
            np.testing.assert_allclose(Z @ Z.T, X @ Q @ Q.T @ X.T, atol=1e-9)


def test_given_rows_in_an_order_that_does_not_nest():
    X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 2.0]])  # the second goes first
    est = Nystroem("linear", sampler=[0, 1, 2], n_components=3)
    Z = est.fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, X @ X.T)
    assert est.landmarks_.error_path is None
    for k in (1, 2):
        fewer = est.truncate(k)
        squares = np.sum(X[:, :k] ** 2, axis=1)
        np.testing.assert_allclose(fewer.transform(X) ** 2 @ np.ones(k), squares)
        assert fewer.landmarks_.error is None
    # Landmarks are kept in their order, but for the first, which the others span.
    X = np.array([[1.0, 1.0], [3.0, 0.0], [0.0, 2.0]])
    est = Nystroem("linear", sampler=[0, 1, 2], n_components=3).fit(X)
    factor = est.landmarks_.factor
    np.testing.assert_array_equal(factor.kept, [1, 2])
    assert not factor.is_nested
    rows = np.linspace(1, 2, 30)[:, None]
    model = KernelRidgeCV(
        [1e-3], kernel="linear", sampler=np.arange(0, 30, 3), n_landmarks=[1, 5, 10]
    ).fit(rows, np.arange(30.0))
    np.testing.assert_allclose(model.scores_, model.scores_[[0, 0, 0]], rtol=1e-6)


@pytest.mark.parametrize(
    "part", [slice(3, 9), slice(None, None, 2), 4, slice(0, 0)], ids=str
)
def test_only_prefixes(part, seed):
    landmarks = select_landmarks(clustered(seed, 100), n_landmarks=10, random_state=0)
    with pytest.raises((TypeError, ValueError), match="landmarks"):
        landmarks[part]


@pytest.mark.parametrize("size", [0, -1, 1.5, 41, "a"])
def test_a_wrong_number_of_components(size, seed):
    est = Nystroem(n_components=40, random_state=0).fit(clustered(seed, 100))
    with pytest.raises(ValueError, match="n_components"):
        est.truncate(size)


@pytest.mark.parametrize(
    "make",
    [
        lambda **k: KernelRidge(0.1, **k),
        lambda **k: KernelRidge(1e-8, fit_intercept=True, **k),
        lambda **k: KernelRidgeCV(fit_intercept=True, **k),
        lambda **k: KernelPCA(2, **k),
        lambda **k: KernelCCA(1, **k),
    ],
    ids=["ridge", "ridge about the mean", "ridge cv", "pca", "cca"],
)
def test_every_gram_pass_reports_the_error_path(make, seed):
    X = clustered(seed, 900)
    model = make(kernel="rbf", gamma=GAMMA, n_landmarks=30, random_state=seed)
    landmarks = model.fit(X, np.sin(X[:, 0])).landmarks_
    landmarks = landmarks[0] if isinstance(landmarks, tuple) else landmarks
    for k in (1, 12, 30):
        exact = error_of(X, landmarks.indices[:k])
        np.testing.assert_allclose(landmarks.error_path[k - 1], exact, rtol=1e-6)


def test_the_scale_of_the_kernel_changes_no_path(seed):
    X = clustered(seed, 900)

    def path(scale):
        kernel = scale * kernels.RBF(GAMMA)
        model = KernelRidge(scale, kernel=kernel, n_landmarks=30, random_state=seed)
        return model.fit(X, X[:, 0]).landmarks_.error_path

    np.testing.assert_allclose(path(2.0**-40), path(1.0), rtol=1e-6)


# How many landmarks: KernelRidgeCV and KernelPCA


def target(X, seed):
    noise = 0.2 * np.random.default_rng(seed + 1).standard_normal(len(X))
    return np.sin(2 * X[:, 0]) + X[:, 1] + noise


ALPHAS = np.logspace(-4, 1, 6)
CV = {"kernel": "rbf", "gamma": GAMMA}


@pytest.mark.parametrize("cv", ["gcv", "loo", 4])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_scores_of_fewer_landmarks_are_those_of_a_fit_on_them(
    cv, intercept, storage, seed
):
    X = clustered(seed, 600)
    y = target(X, seed)
    common = {"cv": cv, "fit_intercept": intercept, "random_state": seed, **CV}
    rows = storage(X)
    model = KernelRidgeCV(ALPHAS, n_landmarks=[60, 10, 25, 10], **common).fit(rows, y)
    np.testing.assert_array_equal(model.n_landmarks_path_, [10, 25, 60])
    assert model.scores_.shape == (3, 6)
    most = KernelRidgeCV(ALPHAS, n_landmarks=60, **common).fit(rows, y)
    np.testing.assert_allclose(model.scores_[2], most.scores_, rtol=1e-9)
    for i, size in enumerate((10, 25)):
        few = most.landmarks_.indices[:size]
        alone = KernelRidgeCV(ALPHAS, sampler=few, **common).fit(rows, y)
        np.testing.assert_allclose(model.scores_[i], alone.scores_, rtol=1e-6)
    best = np.unravel_index(np.argmax(model.scores_), (3, 6))
    assert model.n_landmarks_ == model.n_landmarks_path_[best[0]]
    assert model.alpha_ == ALPHAS[best[1]]
    assert len(model.landmarks_) == model.n_landmarks_ == len(model.dual_coef_)


def test_one_pass_for_all_numbers(seed):
    """The passes are those of the largest fit."""
    from nystrom import engines

    X = clustered(seed, 1500)
    y = target(X, seed)
    passes = []
    for numbers in (80, [5, 10, 20, 40, 80]):
        with engines.using(engines.Threads(1)) as engine:
            model = KernelRidgeCV(ALPHAS, n_landmarks=numbers, random_state=seed, **CV)
            model.fit(X, y)
        passes.append(list(engine.passes))
    assert passes[0] == passes[1]


@pytest.mark.filterwarnings("ignore:The best of alphas")
def test_the_standard_error_is_that_of_the_mean_over_folds(seed):
    """Where fewer are worse by one to √k standard errors, they are not chosen."""
    X = clustered(seed, 300)
    noise = np.geomspace(0.1, 10, 40)
    Y = X[:, [0]] + noise * np.random.default_rng(seed).standard_normal((300, 40))
    common = {"n_landmarks": [2, 5, 10], "random_state": seed, **CV}
    folds, each = random_folds(300, 5, seed), {"alpha_per_target": True, **common}
    by_fold = [
        -KernelRidgeCV([1.0], cv=[fold], **each).fit(X, Y).scores_[:, 0]
        for fold in folds
    ]
    errors = np.mean(by_fold, axis=0)  # (numbers, targets)
    best = errors.argmin(axis=0)
    spread = np.std(by_fold, axis=0, ddof=1)[best, np.arange(40)]
    far = (errors - errors.min(axis=0)) / (spread / np.sqrt(5))
    wanted = np.argmax(far <= 1, axis=0)
    between = np.flatnonzero(wanted != np.argmax(far <= np.sqrt(5), axis=0))
    assert len(between)
    for target in between:
        model = KernelRidgeCV([1.0], cv=folds, prefer_fewer=True, **common)
        found = model.fit(X, Y[:, target]).n_landmarks_
        assert found == common["n_landmarks"][wanted[target]]


@pytest.mark.parametrize("center", [True, False])
def test_variance_against_landmarks(center, seed):
    X = clustered(seed, 900)
    common = {"kernel": "rbf", "gamma": GAMMA, "center": center}
    model = KernelPCA(3, n_landmarks=48, random_state=seed, **common).fit(X)
    np.testing.assert_array_equal(model.n_landmarks_path_, [3, 6, 12, 24, 48])
    path = model.explained_variance_path_
    assert path.shape == (5, 3)
    np.testing.assert_allclose(path[-1], model.explained_variance_ratio_, rtol=1e-9)
    few = model.landmarks_.indices[:12]
    alone = KernelPCA(3, sampler=few, **common).fit(X)
    np.testing.assert_allclose(path[2], alone.explained_variance_ratio_, rtol=1e-6)
    if not center:  # K̃ ⪯ K: more landmarks never have less
        assert np.all(np.diff(path.sum(axis=1)) > -1e-12)
