"""Kernel PCA on landmarks, against dense NumPy, scikit-learn and the paper."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from lists import OFF_THE_ROWS, SAMPLERS
from oracles_components import (
    DenseComponents,
    captured,
    nystrom_matrix,
    projection_costs,
)
from oracles_ridge import relative
from scipy.sparse.linalg import ArpackNoConvergence
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA as ExactKernelPCA
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

from nystrom import KernelPCA
from nystrom._precision import GRAM_RESOLUTION, MAX_RESULT_ERROR
from nystrom.models import pca as pca_method
from nystrom.models.pca import EigenSolver

pytestmark = pytest.mark.usefixtures("one_blas_thread")

GAMMA = 0.1
N_ROWS, N_NEW, N_LANDMARKS, K = 400, 50, 40, 4
#: Distinct scales, so that the leading eigenvalues are apart and their vectors unique.
SCALES = np.array([3.0, 1.7, 1.0, 0.5])

centered_or_not = pytest.mark.parametrize("center", [True, False])
all_solvers = pytest.mark.parametrize("solver", ["dense", "arpack", "randomized"])
both_modes = pytest.mark.parametrize("n_landmarks", [N_LANDMARKS, 1000])


@pytest.fixture
def X(rng):
    return rng.standard_normal((N_ROWS, 4)) * SCALES


@pytest.fixture
def X_new(X, rng):
    return rng.standard_normal((N_NEW, 4)) * SCALES


def rbf(X, Y):
    return rbf_kernel(X, Y, gamma=GAMMA)


def pca(n_components=K, **options):
    given = {"kernel": "rbf", "gamma": GAMMA, "n_landmarks": N_LANDMARKS}
    return KernelPCA(n_components, **given | {"random_state": 0} | options)


def theirs(n_components=K, **options):
    return ExactKernelPCA(n_components, **{"kernel": "rbf", "gamma": GAMMA} | options)


def up_to_sign(found, expected):
    """`found` with the sign of every column that `expected` has."""
    found = np.asarray(found, dtype=np.float64)
    return found * np.where(np.sum(found * expected, axis=0) < 0, -1.0, 1.0)


def assert_same_projections(model, expected, X, X_new, error=1e-7):
    signs = np.sign(np.sum(model.transform(X) * expected.train, axis=0))
    assert relative(model.transform(X) * signs, expected.train) < error
    assert relative(model.transform(X_new) * signs, expected.new) < error


# Against dense NumPy


@centered_or_not
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_coordinates_are_the_dense_projections(X, X_new, seed, center, sampler):
    model = pca(random_state=seed, center=center, sampler=sampler).fit(X)
    moved = model.landmarks_.indices is None
    assert moved == (sampler in OFF_THE_ROWS)
    expected = DenseComponents.of(rbf, model.X_fit_, X, X_new, K, center=center)
    np.testing.assert_allclose(model.eigenvalues_, expected.values, rtol=1e-9)
    assert_same_projections(model, expected, X, X_new)


@centered_or_not
def test_all_components_together_give_the_dense_matrix(X, seed, center):
    Z = pca(None, random_state=seed, center=center).fit_transform(X)
    model = pca(None, random_state=seed, center=center).fit(X)
    expected = nystrom_matrix(rbf, model.X_fit_, X)
    if center:
        expected = expected - expected.mean(axis=0)
        expected = expected - expected.mean(axis=1, keepdims=True)
    assert relative(Z @ Z.T, expected) < 1e-9


@both_modes
@centered_or_not
def test_eigenvectors_give_the_coordinates(X, X_new, seed, n_landmarks, center):
    """Kernel values with X_fit_, about their mean over the rows, times the vectors.

    The mean of all rows' kernel values is taken off where scikit-learn also takes off
    that of the row itself; the eigenvectors of exact mode are orthogonal to constants.
    """
    model = pca(random_state=seed, n_landmarks=n_landmarks, center=center).fit(X)
    assert model.eigenvectors_.shape == (len(model.X_fit_), K)
    values = rbf(X_new, model.X_fit_)
    if center:
        values = values - rbf(X, model.X_fit_).mean(axis=0)
    expected = values @ (model.eigenvectors_ / np.sqrt(model.eigenvalues_))
    assert relative(model.transform(X_new), expected) < 1e-9


@centered_or_not
def test_explained_variance_is_a_share_of_the_whole_trace(X, seed, center):
    model = pca(random_state=seed, center=center).fit(X)
    expected = DenseComponents.of(rbf, model.X_fit_, X, X, K, center=center)
    found = model.explained_variance_ratio_
    np.testing.assert_allclose(found, expected.values / expected.total, rtol=1e-9)
    assert 0 < found.sum() < 1


@pytest.mark.parametrize(
    "options",
    [
        {"gamma": GAMMA},
        {"kernel": "poly", "gamma": 0.1, "degree": 2, "coef0": 0.5},
        {"kernel": "cosine"},
    ],
    ids=["rbf", "poly", "cosine"],
)
def test_all_rows_as_landmarks_give_scikit_learns_answer(rng, options):
    X, X_new = (rng.standard_normal((n, 4)) * SCALES for n in (150, 20))
    model = pca(sampler=np.arange(150), **options).fit(X)
    assert model.landmarks_ is not None
    expected = theirs(**options).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-8)
    for rows in (X, X_new):
        reference = expected.transform(rows)
        assert relative(up_to_sign(model.transform(rows), reference), reference) < 1e-6


# The paper's theorems


def directions_of(model):
    """The dual coefficients, from what is public."""
    return model.eigenvectors_ / np.sqrt(model.eigenvalues_)


@pytest.fixture
def clustered(rng):
    """Clusters of very different size: uniform landmarks miss the small ones."""
    centers = rng.standard_normal((6, 4)) * 6
    sizes = [300, 150, 60, 30, 12, 8]
    rows = np.repeat(np.arange(6), sizes)
    return centers[rows] + 0.4 * rng.standard_normal((560, 4))


def practical(X, seed, k, epsilon, **options):
    """A model by the estimator's own ridge, with the exact K and its tail."""
    K_exact = rbf(X, X)
    tail = np.sort(np.linalg.eigvalsh(K_exact))[::-1][k:].sum()
    ridge = {"max_spectral_error": epsilon / k * tail, "n_landmarks": None}
    given = {"n_components": k, "random_state": seed, "center": False} | ridge
    return pca(**given | options).fit(X), K_exact, tail


@pytest.mark.parametrize("epsilon", [0.2, 0.8])
def test_theorem_holds_for_landmarks_by_the_estimators_ridge(clustered, seed, epsilon):
    k = 5
    for draw in range(5):
        model, _, tail = practical(clustered, 10 * seed + draw, k, epsilon)
        assert k < len(model.X_fit_) < 250
        found = directions_of(model)
        error = len(clustered) - captured(rbf, model.X_fit_, clustered, found)
        assert tail * (1 - 1e-9) <= error <= (1 + 2 * epsilon) * tail


def projections(K_exact, K_tilde, k, rng):
    """Rank-k projections: random, the best for K and for K̃, and unfavourable ones."""
    n = len(K_exact)
    yield np.linalg.qr(rng.standard_normal((n, k)))[0]
    for M in (K_exact, K_tilde, K_exact - K_tilde):
        yield np.linalg.eigh(M)[1][:, -k:]
    # The rows that the landmarks represent worst.
    worst = np.argsort(np.diag(K_exact - K_tilde))[-k:]
    yield np.eye(n)[:, worst]
    # Where approximation is worst beside what the projection leaves over.
    yield np.linalg.eigh(K_exact - 2 * K_tilde)[1][:, -k:]


def test_projection_costs_are_preserved(clustered, seed, rng):
    """For any rank-k projection X, with c = tr K − tr K̃ and λ = (ε/k)·Σ_{i>k}σᵢ(K):

    tr(K − XKX) ≤ tr(K̃ − XK̃X) + c ≤ (1 + ε)·tr(K − XKX).

    K̃ is what the coordinates of all components multiply to.
    """
    k, epsilon = 5, 0.3
    for draw in range(3):
        known = practical(clustered, 10 * seed + draw, k, epsilon, n_components=None)
        model, K_exact, _ = known
        Z = model.transform(clustered)
        K_tilde = Z @ Z.T
        c = float(model.approximation_error_) * np.trace(K_exact)
        left = np.trace(K_exact - K_tilde)
        assert c == pytest.approx(left, rel=0, abs=GRAM_RESOLUTION * np.trace(K_exact))
        for Q in projections(K_exact, K_tilde, k, rng):
            exact, approximate = projection_costs(K_exact, K_tilde, Q)
            assert exact * (1 - 1e-9) <= approximate <= (1 + epsilon) * exact


# Solvers and the number of components


@all_solvers
@centered_or_not
def test_solvers_agree(X, X_new, seed, solver, center):
    options = {"random_state": seed, "center": center, "n_landmarks": 60}
    reference = pca(eigen_solver="dense", **options).fit(X)
    model = pca(eigen_solver=solver, iterated_power=12, **options).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, reference.eigenvalues_, rtol=1e-8)
    assert relative(model.transform(X_new), reference.transform(X_new)) < 1e-5


def test_components_beyond_the_rank_are_zero(X, X_new):
    model = pca(10, kernel="linear").fit(X)
    assert np.count_nonzero(model.eigenvalues_) == 4
    assert not model.transform(X_new)[:, 4:].any()
    assert not model.explained_variance_ratio_[4:].any()


@pytest.mark.parametrize("option", [{"remove_zero_eig": True}, {"n_components": None}])
def test_zero_eigenvalues_are_removed_on_request(X, option):
    model = pca(**{"n_components": 10, "kernel": "linear"} | option).fit(X)
    assert model.eigenvalues_.shape == (4,)
    assert model.transform(X).shape == (N_ROWS, 4)
    assert model.get_feature_names_out().shape == (4,)


def test_linear_kernel_gives_principal_components(X, X_new):
    model = pca(kernel="linear").fit(X)
    mean = X.mean(axis=0)
    _, sizes, V = np.linalg.svd(X - mean, full_matrices=False)
    np.testing.assert_allclose(model.eigenvalues_, sizes**2, rtol=1e-9)
    expected = (X_new - mean) @ V.T
    assert relative(up_to_sign(model.transform(X_new), expected), expected) < 1e-9
    assert model.explained_variance_ratio_.sum() == pytest.approx(1, abs=1e-9)


def test_a_direction_that_centring_takes_away_is_no_component():
    """A column of ones: K has rank 3, HKH has rank 2, and the rest is rounding."""
    for seed in range(10):
        X = np.random.default_rng(seed).standard_normal((300, 3))
        X[:, 0] = 1.0
        model = pca(3, kernel="linear", gamma=None, n_landmarks=30).fit(X)
        assert model.landmarks_.rank == 3
        assert np.count_nonzero(model.eigenvalues_) == 2
        assert not model.transform(X)[:, 2].any()


def test_linear_kernel_far_from_the_origin(X, X_new):
    """In float64 with components that scikit-learn finds to eight digits."""
    shift = 3000.0
    near, far = (
        pca(kernel="linear", n_landmarks=10).fit(rows) for rows in (X, X + shift)
    )
    expected = near.transform(X_new)
    found = up_to_sign(far.transform(X_new + shift), expected)
    assert relative(found, expected) < 1e-5


# Hard data


def test_constant_rows_have_no_components(X_new):
    X = np.full((N_ROWS, 4), 0.3)
    model = pca(2).fit(X)
    np.testing.assert_array_equal(model.eigenvalues_, [0, 0])
    np.testing.assert_array_equal(model.explained_variance_ratio_, [0, 0])
    np.testing.assert_array_equal(model.transform(X_new), np.zeros((N_NEW, 2)))
    assert pca(None).fit_transform(X).shape == (N_ROWS, 0)


@centered_or_not
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_very_smooth_kernel_against_dense(X, X_new, center, dtype):
    """K is nearly constant: the components are differences in the fourth digit."""
    smooth = 1e-4

    def kernel(X, Y):
        return rbf_kernel(X, Y, gamma=smooth)

    X, X_new = X.astype(dtype), X_new.astype(dtype)
    model = pca(gamma=smooth, center=center).fit(X)
    assert model.transform(X).dtype == dtype
    wide = [rows.astype(np.float64) for rows in (model.X_fit_, X, X_new)]
    expected = DenseComponents.of(kernel, *wide, K, center=center)
    np.testing.assert_allclose(model.eigenvalues_, expected.values, rtol=1e-4)
    for found, reference in [
        (model.transform(X), expected.train),
        (model.transform(X_new), expected.new),
    ]:
        for j in range(K):
            column = up_to_sign(found[:, [j]], reference[:, [j]])
            # RESULT_ERROR holds for rows that were tried: others may be off a bit more.
            assert relative(column, reference[:, [j]]) < 1.5 * MAX_RESULT_ERROR


def common_letters(a, b):
    """The number of letters that two words share: an inner product of indicators."""
    return float(len(set(a) & set(b)))


# The way back


def way_back(model, X):
    return np.mean((model.inverse_transform(model.fit_transform(X)) - X) ** 2)


@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_way_back_is_about_as_good_as_scikit_learns(alpha):
    X = load_digits().data[:600] / 16
    options = {"fit_inverse_transform": True, "alpha": alpha, "gamma": 0.02}
    ours = pca(16, n_landmarks=200, **options)
    exact = theirs(16, **options)
    assert way_back(ours, X) <= 1.2 * way_back(exact, X)
    assert ours.dual_coef_.shape == (200, 64)
    assert ours.X_transformed_fit_.shape == (200, 16)
    # The mean alone is much worse.
    assert way_back(ours, X) < 0.7 * np.mean((X - X.mean(axis=0)) ** 2)


def test_way_back_with_all_rows_is_scikit_learns(rng):
    X = rng.standard_normal((120, 4)) * SCALES
    options = {"fit_inverse_transform": True, "alpha": 0.1}
    ours = pca(sampler=np.arange(120), **options).fit(X)
    exact = theirs(**options).fit(X)
    reference = exact.inverse_transform(exact.transform(X))
    found = ours.inverse_transform(ours.transform(X))
    assert relative(found, reference) < 1e-6
    np.testing.assert_allclose(ours.X_transformed_fit_, ours.transform(X), atol=1e-9)


def test_way_back_is_there_on_request_only(X):
    assert not hasattr(pca().fit(X), "inverse_transform")
    assert hasattr(pca(fit_inverse_transform=True), "inverse_transform")
    with pytest.raises(NotFittedError, match="set it to True and fit"):
        pca().fit(X).inverse_transform(np.zeros((1, K)))


ROWS = np.random.default_rng(0).standard_normal((N_ROWS, 4))
PRECOMPUTED = {"kernel": "precomputed"}
NO_WAY_BACK = {
    "sparse rows": ("not implemented for sparse", sp.csr_array(ROWS), {}),
    "words": (
        "needs rows of numbers",
        ["tree", "tea"] * 60,
        {"kernel": common_letters},
    ),
    "matrix": ("Cannot fit_inverse", rbf(ROWS, ROWS), PRECOMPUTED),
    "exact": ("Cannot fit_inv", rbf(ROWS, ROWS), PRECOMPUTED | {"n_landmarks": 1000}),
    "several gammas": ("=True needs a single gamma", ROWS, {"gamma": [0.1] * 4}),
    "histograms": ("contains negative values", abs(ROWS), {"kernel": "chi2"}),
}


@pytest.mark.parametrize("kind", NO_WAY_BACK)
def test_a_way_back_that_there_is_not(kind):
    message, rows, options = NO_WAY_BACK[kind]
    error = NotImplementedError if kind == "sparse rows" else ValueError
    with pytest.raises(error, match=message):
        pca(2, fit_inverse_transform=True, **options).fit(rows)


def test_way_back_wants_as_many_columns_as_components(X):
    model = pca(fit_inverse_transform=True).fit(X)
    with pytest.raises(ValueError, match=f"X has 2 features, .* have {K}"):
        model.inverse_transform(np.zeros((3, 2)))
    with pytest.raises(NotFittedError):
        pca(fit_inverse_transform=True).inverse_transform(np.zeros((3, K)))


# Exact mode


def assert_exact_on(model, X):
    """All rows are landmarks, and nothing of K is left."""
    landmarks, n = model.landmarks_, len(X)
    assert landmarks.sampler == "exact"
    assert landmarks.n_rows == len(landmarks) == n
    np.testing.assert_array_equal(landmarks.indices, np.arange(n))
    np.testing.assert_array_equal(landmarks.points, X)
    assert landmarks.n_kernel_evaluations == landmarks.kernel.gram_evaluations(n)
    assert landmarks.error is model.approximation_error_
    assert float(landmarks.error) == 0
    assert landmarks.error.exact


@pytest.mark.parametrize(
    "options",
    [
        {"gamma": 0.2, "fit_inverse_transform": True},
        {"kernel": "linear", "remove_zero_eig": True, "n_components": None},
        {"kernel": "poly", "degree": 2, "eigen_solver": "dense"},
        {"kernel": "sigmoid", "gamma": 0.01},
        {"kernel": "cosine", "eigen_solver": "randomized"},
    ],
    ids=["rbf", "linear", "poly", "sigmoid", "cosine"],
)
def test_few_rows_have_scikit_learns_own_answer(rng, options):
    X, X_new = rng.standard_normal((80, 4)) * SCALES, rng.standard_normal((9, 4))
    options = {"n_components": 3, "kernel": "rbf", "random_state": 0} | options
    model, reference = KernelPCA(**options).fit(X), ExactKernelPCA(**options).fit(X)
    for name in vars(reference):
        if name.endswith("_") and not name.startswith("_"):
            found, expected = getattr(model, name), getattr(reference, name)
            np.testing.assert_array_equal(found, expected, err_msg=name)
    assert_exact_on(model, X)
    expected = reference.transform(X_new)
    np.testing.assert_array_equal(model.transform(X_new), expected)
    np.testing.assert_array_equal(
        KernelPCA(**options).fit_transform(X),
        ExactKernelPCA(**options).fit_transform(X),
    )
    if options.get("fit_inverse_transform"):
        np.testing.assert_array_equal(
            model.inverse_transform(expected), reference.inverse_transform(expected)
        )


def test_one_row_more_than_landmarks_is_no_longer_exact(X):
    assert_exact_on(pca(n_landmarks=N_ROWS).fit(X), X)
    landmarks = pca(n_landmarks=N_ROWS - 1).fit(X).landmarks_
    assert len(landmarks) == N_ROWS - 1
    assert landmarks.sampler != "exact"


def test_exact_mode_keeps_no_precomputed_matrix_in_its_landmarks(X):
    model = pca(kernel="precomputed", n_landmarks=N_ROWS).fit(rbf(X, X))
    assert_exact_on(model, np.arange(N_ROWS))
    assert len(pickle.dumps(model.landmarks_)) < 8 * N_ROWS**2 / 10


# Bad input


@pytest.mark.parametrize("k", [1, 2, 4])
def test_eigenvalues_that_are_all_alike_are_found(k):
    # LAPACK's way to some eigenvalues fails on this one, or finds fewer.
    G = np.eye(38) - 1 / 76
    values, vectors = EigenSolver("dense").leading_pairs(G, k)
    np.testing.assert_allclose(values, np.ones(k))
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-12)


def test_eigenvalues_beyond_float32_are_float64():
    """Where all rows are landmarks they are float32, as scikit-learn's, if they fit."""
    X = np.full((2, 18), 4e8, dtype=np.float32) * np.array([[1], [2]], np.float32)
    options = {"kernel": "poly", "gamma": 0.3, "center": False}
    found = pca(1, **options).fit(X).eigenvalues_
    assert np.isfinite(found).all()
    assert found.dtype == np.float64
    assert pca(1, **options).fit(X / 1e9).eigenvalues_.dtype == np.float32


def test_arpack_gives_up_where_lapack_is_as_fast(monkeypatch):
    """Many eigenvalues as good as equal; a limit that is given is that one."""
    limits = []

    def eigsh(G, k, *, maxiter, **_):
        limits.append(maxiter)
        raise ArpackNoConvergence("no convergence", np.zeros(0), np.zeros((0, 0)))

    monkeypatch.setattr(pca_method, "eigsh", eigsh)
    for given in (None, 7):
        solver = EigenSolver("arpack", max_iter=given)
        values, _ = solver.leading_pairs(np.eye(300), 2)
        np.testing.assert_allclose(values, 1.0)
    assert limits == [150, 7]
