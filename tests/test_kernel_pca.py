"""Kernel PCA on landmarks, against dense NumPy, scikit-learn and the paper."""

from __future__ import annotations

import math
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
from scipy.sparse.linalg import ArpackNoConvergence
from sklearn.base import clone
from sklearn.datasets import load_digits, make_circles
from sklearn.decomposition import KernelPCA as ExactKernelPCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from nystrom import KernelPCA, kernels, load, save, select_landmarks
from nystrom._precision import GRAM_RESOLUTION, MAX_RESULT_ERROR
from nystrom.engines import single_threaded_blas
from nystrom.kernels import PrecomputedAtLandmarks
from nystrom.models import pca as pca_method
from nystrom.models.pca import leading_eigenpairs

GAMMA = 0.1
N_ROWS, N_NEW, N_LANDMARKS, K = 400, 50, 40, 4
#: Distinct scales, so that the leading eigenvalues are apart and their vectors unique.
SCALES = np.array([3.0, 1.7, 1.0, 0.5])

centered_or_not = pytest.mark.parametrize("center", [True, False])
all_solvers = pytest.mark.parametrize("solver", ["dense", "arpack", "randomized"])
both_modes = pytest.mark.parametrize("n_landmarks", [N_LANDMARKS, 1000])


@pytest.fixture(autouse=True)
def one_blas_thread():
    """Many small matrices: threads inside BLAS only wait for each other."""
    with single_threaded_blas():
        yield


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


def relative(found, expected):
    """Root mean square error as a share of the values' own size."""
    error = np.asarray(found, dtype=np.float64) - expected
    return math.sqrt(np.mean(error**2) / np.mean(np.asarray(expected) ** 2))


def assert_same_projections(model, expected, X, X_new, error=1e-7):
    signs = np.sign(np.sum(model.transform(X) * expected.train, axis=0))
    assert relative(model.transform(X) * signs, expected.train) < error
    assert relative(model.transform(X_new) * signs, expected.new) < error


# Against dense NumPy


@centered_or_not
def test_eigenvalues_are_those_of_the_dense_matrix(X, seed, center):
    model = pca(random_state=seed, center=center).fit(X)
    assert model.X_fit_.shape == (N_LANDMARKS, 4)
    expected = DenseComponents.of(rbf, model.X_fit_, X, X, K, center=center)
    np.testing.assert_allclose(model.eigenvalues_, expected.values, rtol=1e-9)


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
def test_fit_transform_is_fit_and_transform(X, seed, n_landmarks):
    model = pca(random_state=seed, n_landmarks=n_landmarks)
    found = model.fit_transform(X)
    np.testing.assert_allclose(found, model.transform(X), rtol=0, atol=1e-10)
    again = pca(random_state=seed, n_landmarks=n_landmarks).fit(X).transform(X)
    np.testing.assert_allclose(found, again, rtol=0, atol=1e-10)


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


def test_signs_do_not_depend_on_the_solver(X, seed):
    first, *others = (
        pca(random_state=seed, eigen_solver=solver).fit(X).eigenvectors_
        for solver in ("dense", "arpack", "randomized")
    )
    for other in others:
        assert np.all(np.sum(first * other, axis=0) > 0)


@centered_or_not
def test_explained_variance_is_a_share_of_the_whole_trace(X, seed, center):
    model = pca(random_state=seed, center=center).fit(X)
    expected = DenseComponents.of(rbf, model.X_fit_, X, X, K, center=center)
    found = model.explained_variance_ratio_
    np.testing.assert_allclose(found, expected.values / expected.total, rtol=1e-9)
    assert 0 < found.sum() < 1


def test_explained_variance_in_exact_mode_adds_up_to_one(X):
    model = pca(None, n_landmarks=1000, eigen_solver="dense").fit(X)
    assert model.explained_variance_ratio_.sum() == pytest.approx(1, abs=1e-9)


def test_approximation_error_is_that_of_the_trace(X, seed):
    model = pca(random_state=seed).fit(X)
    K_tilde = nystrom_matrix(rbf, model.X_fit_, X)
    expected = 1 - np.trace(K_tilde) / N_ROWS
    assert float(model.approximation_error_) == pytest.approx(expected, rel=1e-7)
    assert model.approximation_error_.exact


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


def test_more_landmarks_come_closer_to_the_exact_answer(X, X_new):
    expected = theirs().fit(X)
    reference = expected.transform(X_new)
    errors = [
        relative(up_to_sign(model.transform(X_new), reference), reference)
        for s in (5, 40, 200)
        for model in [pca(n_landmarks=s).fit(X)]
    ]
    # Two components of nearly the same variance may still be turned at 40.
    assert errors[0] > 2 * errors[1] > 20 * errors[2]


@pytest.mark.parametrize(
    "option", [{"max_spectral_error": 2.0}, {"max_trace_error": 0.05}]
)
def test_as_many_landmarks_as_asked_for_by_error(X, option):
    model = pca(n_landmarks=None, **option).fit(X)
    K_exact = rbf(X, X)
    left = K_exact - nystrom_matrix(rbf, model.X_fit_, X)
    assert 1 < len(model.X_fit_) < N_ROWS
    if "max_spectral_error" in option:
        assert np.linalg.norm(left, 2) <= 2.0
    else:
        assert np.trace(left) <= 0.05 * N_ROWS


# The paper's theorems


def directions_of(model):
    """The dual coefficients, from what is public."""
    return model.eigenvectors_ / np.sqrt(model.eigenvalues_)


def test_theorem_holds_for_landmarks_by_theory(seed):
    """‖Φ − ΦZZᵀ‖²_F ≤ (1 + 2ε)·Σ_{i>k}σᵢ(K) at λ = (ε/k)·Σ_{i>k}σᵢ(K), w. p. 1 − δ.

    The linear kernel of many columns: its eigenvalues are squared singular values. The
    last components found break the bound.
    """
    k, epsilon = 2, 0.9
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((2500, 400)) * 1.3 ** -np.arange(400)
    X[:, :k] *= 2
    X[:, 12:] = 0.02 * rng.standard_normal((2500, 388))
    tail = np.sum(np.linalg.svd(X, compute_uv=False)[k:] ** 2)
    for draw in range(3):
        chosen = select_landmarks(
            X,
            kernel="linear",
            max_spectral_error=epsilon / k * tail,
            delta=0.03,
            random_state=10 * seed + draw,
        )
        assert chosen.guarantee is not None
        assert len(chosen) < 1500
        options = {"kernel": "linear", "sampler": chosen.indices, "center": False}
        model = pca(10, **options).fit(X)
        found = directions_of(model)
        first, last = (
            np.sum(X**2) - captured(linear_kernel, model.X_fit_, X, some)
            for some in (found[:, :k], found[:, -k:])
        )
        assert first <= (1 + 2 * epsilon) * tail < last


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


@pytest.mark.parametrize("fault", ["three landmarks", "last eigenvectors"])
def test_theorem_fails_where_a_fault_is_planted(clustered, seed, fault):
    k, epsilon = 5, 0.2
    for draw in range(5):
        options = {"n_components": None}
        if fault == "three landmarks":
            options |= {"max_spectral_error": None, "n_landmarks": 3}
        model, _, tail = practical(clustered, 10 * seed + draw, k, epsilon, **options)
        found = directions_of(model)
        found = found[:, :k] if fault == "three landmarks" else found[:, -k:]
        error = len(clustered) - captured(rbf, model.X_fit_, clustered, found)
        assert error > (1 + 2 * epsilon) * tail


def test_coordinates_capture_what_the_projection_does(clustered, seed):
    """The directions are orthonormal, so that ‖P·φ(x)‖² is the squared coordinates."""
    model, _, _ = practical(clustered, seed, 5, 0.5)
    expected = captured(rbf, model.X_fit_, clustered, directions_of(model))
    assert np.sum(model.transform(clustered) ** 2) == pytest.approx(expected, rel=1e-9)
    assert model.eigenvalues_.sum() == pytest.approx(expected, rel=1e-9)


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


def test_three_landmarks_do_not_preserve_projection_costs(clustered, seed, rng):
    k, epsilon = 5, 0.3
    few = {"n_components": None, "max_spectral_error": None, "n_landmarks": 3}
    model, K_exact, _ = practical(clustered, seed, k, epsilon, **few)
    Z = model.transform(clustered)
    costs = [
        projection_costs(K_exact, Z @ Z.T, Q)
        for Q in projections(K_exact, Z @ Z.T, k, rng)
    ]
    assert any(found > (1 + epsilon) * exact for exact, found in costs)


# Solvers and the number of components


@all_solvers
@centered_or_not
def test_solvers_agree(X, X_new, seed, solver, center):
    options = {"random_state": seed, "center": center, "n_landmarks": 60}
    reference = pca(eigen_solver="dense", **options).fit(X)
    model = pca(eigen_solver=solver, iterated_power=12, **options).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, reference.eigenvalues_, rtol=1e-8)
    assert relative(model.transform(X_new), reference.transform(X_new)) < 1e-5


@all_solvers
@pytest.mark.parametrize("n_components", [1, N_LANDMARKS - 1, N_LANDMARKS])
def test_every_solver_takes_any_number_of_components(X, solver, n_components):
    model = pca(n_components, eigen_solver=solver).fit(X)
    assert model.transform(X).shape == (N_ROWS, n_components)
    assert np.all(np.diff(model.eigenvalues_) <= 0)
    largest = pca(1, eigen_solver="dense").fit(X).eigenvalues_
    np.testing.assert_allclose(model.eigenvalues_[:1], largest, rtol=1e-6)


def test_none_keeps_all_components_above_zero(X):
    model = pca(None).fit(X)
    assert 1 < len(model.eigenvalues_) <= N_LANDMARKS
    assert np.all(model.eigenvalues_ > 0)
    assert model.transform(X).shape == (N_ROWS, len(model.eigenvalues_))


def test_there_are_no_more_components_than_landmarks(X):
    model = pca(N_LANDMARKS + 20).fit(X)
    assert model.transform(X).shape == (N_ROWS, N_LANDMARKS)
    assert model.eigenvectors_.shape == (N_LANDMARKS, N_LANDMARKS)


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


@centered_or_not
def test_copies_of_three_rows(rng, seed, center):
    three = rng.standard_normal((3, 4)) * SCALES
    X = three[rng.integers(0, 3, N_ROWS)]
    rank = 2 if center else 3
    model = pca(None, random_state=seed, center=center).fit(X)
    assert model.eigenvalues_.shape == (rank,)
    expected = DenseComponents.of(rbf, three, X, three, rank, center=center)
    np.testing.assert_allclose(model.eigenvalues_, expected.values, rtol=1e-9)
    assert_same_projections(model, expected, X, three)


def test_constant_rows_have_no_components(X_new):
    X = np.full((N_ROWS, 4), 0.3)
    model = pca(2).fit(X)
    np.testing.assert_array_equal(model.eigenvalues_, [0, 0])
    np.testing.assert_array_equal(model.explained_variance_ratio_, [0, 0])
    np.testing.assert_array_equal(model.transform(X_new), np.zeros((N_NEW, 2)))
    assert pca(None).fit_transform(X).shape == (N_ROWS, 0)


def test_constant_rows_have_one_component_without_centering():
    model = pca(2, center=False).fit(np.full((N_ROWS, 4), 0.3))
    np.testing.assert_allclose(model.eigenvalues_, [N_ROWS, 0], rtol=1e-12)


def test_float32_rows_give_float32_coordinates(X, X_new):
    narrow, narrow_new = X.astype(np.float32), X_new.astype(np.float32)
    model = pca().fit(narrow)
    wide = pca(sampler=model.landmarks_.indices).fit(narrow.astype(np.float64))
    np.testing.assert_allclose(model.eigenvalues_, wide.eigenvalues_, rtol=1e-4)
    found, expected = (
        model.transform(narrow_new),
        wide.transform(narrow_new.astype(np.float64)),
    )
    assert found.dtype == np.float32
    assert model.fit_transform(narrow).dtype == np.float32
    assert relative(up_to_sign(found, expected), expected) < 1e-4


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


# Other rows than dense numbers


def test_sparse_rows_give_the_dense_answer(rng):
    X = np.where(rng.random((N_ROWS, 6)) < 0.5, rng.standard_normal((N_ROWS, 6)), 0)
    dense, sparse = (pca().fit(rows) for rows in (X, sp.csr_array(X)))
    assert sp.issparse(sparse.X_fit_)
    np.testing.assert_array_equal(sparse.landmarks_.indices, dense.landmarks_.indices)
    np.testing.assert_allclose(sparse.eigenvalues_, dense.eigenvalues_, rtol=1e-9)
    expected = dense.transform(X)
    assert relative(
        up_to_sign(sparse.transform(sp.csr_array(X)), expected), expected
    ) < (1e-7)


def common_letters(a, b):
    """The number of letters that two words share: an inner product of indicators."""
    return float(len(set(a) & set(b)))


def test_strings_with_a_callable(rng):
    letters = np.array(list("abcdefgh"))
    words = ["".join(rng.choice(letters, 4)) for _ in range(150)]
    indicators = np.array([[letter in word for letter in letters] for word in words])
    model = pca(kernel=common_letters, n_landmarks=20).fit(words)
    assert all(word in words for word in model.X_fit_)
    mean = indicators.mean(axis=0)
    values = np.linalg.svd(indicators - mean, compute_uv=False)[:K] ** 2
    # Twenty words span all eight letters, so that nothing is lost.
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-9)
    assert model.transform(words[:5]).shape == (5, K)
    np.testing.assert_allclose(
        model.transform(words[:5]), model.transform(words)[:5], atol=1e-12
    )


def test_precomputed_matrix_gives_the_rows_answer(X, X_new):
    rows = pca().fit(X)
    chosen = rows.landmarks_.indices
    model = pca(kernel="precomputed", gamma=None, sampler=chosen).fit(rbf(X, X))
    np.testing.assert_allclose(model.eigenvalues_, rows.eigenvalues_, rtol=1e-9)
    expected = rows.transform(X_new)
    by_all = model.transform(rbf(X_new, X))
    by_landmarks = model.transform(PrecomputedAtLandmarks(rbf(X_new, X[chosen])))
    assert relative(up_to_sign(by_all, expected), expected) < 1e-7
    np.testing.assert_array_equal(by_all, by_landmarks)
    np.testing.assert_array_equal(model.X_fit_, chosen)


def test_precomputed_matrix_is_not_kept(X):
    model = pca(kernel="precomputed").fit(rbf(X, X))
    assert len(pickle.dumps(model)) < N_ROWS * N_ROWS * 8 / 4


def test_kernel_objects_names_and_gamma_by_the_data(X, X_new):
    by_name, by_value = pca(), pca(kernel=kernels.RBF(GAMMA), gamma=None)
    expected = by_name.fit(X).transform(X_new)
    np.testing.assert_array_equal(by_value.fit(X).transform(X_new), expected)
    scaled = pca(gamma="scale").fit(X)
    width = 1 / (4 * X.var())
    np.testing.assert_allclose(
        scaled.eigenvalues_, pca(gamma=width).fit(X).eigenvalues_, rtol=1e-9
    )


def test_gamma_defaults_to_one_over_the_features(X):
    default, given = pca(gamma=None).fit(X), pca(gamma=0.25).fit(X)
    assert default.gamma_ == 0.25
    np.testing.assert_array_equal(default.eigenvalues_, given.eigenvalues_)


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


@centered_or_not
def test_way_back_of_float32_rows_is_float32_and_near_float64(X, center):
    options = {"fit_inverse_transform": True, "center": center}
    wide = pca(**options).fit(X)
    narrow = pca(sampler=wide.landmarks_.indices, **options).fit(X.astype(np.float32))
    found = narrow.inverse_transform(narrow.transform(X.astype(np.float32)))
    assert found.dtype == np.float32
    assert relative(found, wide.inverse_transform(wide.transform(X))) < 1e-3


def test_way_back_is_there_on_request_only(X):
    assert not hasattr(pca().fit(X), "inverse_transform")
    assert hasattr(pca(fit_inverse_transform=True), "inverse_transform")
    with pytest.raises(NotFittedError, match="set it to True and fit"):
        pca().fit(X).inverse_transform(np.zeros((1, K)))


def test_way_back_of_sparse_rows_is_refused(X):
    with pytest.raises(NotImplementedError, match="not implemented for sparse"):
        pca(fit_inverse_transform=True).fit(sp.csr_array(X))


def test_way_back_to_strings_is_refused():
    words = ["tree", "free", "brie", "tea"] * 30
    with pytest.raises(ValueError, match="needs rows of numbers"):
        pca(kernel=common_letters, fit_inverse_transform=True).fit(words)


@both_modes
def test_way_back_of_a_precomputed_kernel_is_refused(X, n_landmarks):
    options = {"kernel": "precomputed", "n_landmarks": n_landmarks}
    with pytest.raises(ValueError, match="Cannot fit_inverse_transform"):
        pca(fit_inverse_transform=True, **options).fit(rbf(X, X))


def test_arpack_finds_nothing_in_a_matrix_of_zeros():
    """Of scikit-learn's own class, which raises what ARPACK says."""
    model = KernelPCA(2, kernel="linear", eigen_solver="arpack")
    with pytest.raises(ValueError, match=r"'arpack' fails .*eigen_solver='dense'"):
        model.fit(np.zeros((10, 2)))


def test_no_way_back_from_coordinates_that_are_all_alike():
    """Of scikit-learn's own class, which raises what SciPy says."""
    rows = np.zeros((5, 3), dtype=np.float32)
    rows[0, 0] = 1e-3
    options = {"kernel": "poly", "degree": 4, "coef0": 0.0, "alpha": 0.0}
    with pytest.raises(ValueError, match=r"no way back with alpha=0: .*Raise alpha"):
        KernelPCA(2, fit_inverse_transform=True, **options).fit(rows)


def test_way_back_wants_as_many_columns_as_components(X):
    model = pca(fit_inverse_transform=True).fit(X)
    with pytest.raises(ValueError, match=f"X has 2 features, .* have {K}"):
        model.inverse_transform(np.zeros((3, 2)))
    with pytest.raises(NotFittedError):
        pca(fit_inverse_transform=True).inverse_transform(np.zeros((3, K)))


def test_way_back_needs_one_gamma(X):
    with pytest.raises(ValueError, match="fit_inverse_transform=True needs one gamma"):
        pca(2, gamma=[0.1, 0.1, 0.1, 0.1], fit_inverse_transform=True).fit(X)


@pytest.mark.parametrize("kernel", ["chi2", kernels.Chi2(1.0)], ids=str)
def test_no_way_back_through_a_kernel_of_histograms(kernel, X):
    """Before any work, and not with a word about rows that the user never gave."""
    with pytest.raises(ValueError, match=r"is not possible with kernel=.*both signs"):
        pca(2, kernel=kernel, fit_inverse_transform=True).fit(abs(X))


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


def test_the_landmarks_of_exact_mode_have_the_kernel(X):
    model = pca(n_landmarks=N_ROWS).fit(X)
    K = model.landmarks_.kernel.gram(model.landmarks_.points)
    np.testing.assert_allclose(K, rbf(X, X), rtol=1e-12)
    assert model.landmarks_.rank == np.linalg.matrix_rank(K)
    assert "landmarks of 400 rows by exact" in str(model.landmarks_)


def test_exact_mode_keeps_no_precomputed_matrix_in_its_landmarks(X):
    model = pca(kernel="precomputed", n_landmarks=N_ROWS).fit(rbf(X, X))
    assert_exact_on(model, np.arange(N_ROWS))
    assert len(pickle.dumps(model.landmarks_)) < 8 * N_ROWS**2 / 10


def test_refitting_in_the_other_mode_is_a_fresh_fit(X, X_new):
    few = X[:30]
    model = pca()
    for rows in (X, few, X):
        found = model.fit(rows).transform(X_new)
        fresh = pca().fit(rows)
        np.testing.assert_array_equal(found, fresh.transform(X_new))
        assert (model.landmarks_.sampler == "exact") == (rows is few)


# As part of scikit-learn


@both_modes
def test_data_frames_come_out_on_request(X, n_landmarks):
    model = pca(2, n_landmarks=n_landmarks).set_output(transform="pandas")
    frame = model.fit_transform(X)
    assert list(frame.columns) == ["kernelpca0", "kernelpca1"]
    plain = pca(2, n_landmarks=n_landmarks).fit_transform(X)
    np.testing.assert_array_equal(frame.to_numpy(), plain)
    assert list(model.transform(X[:3]).columns) == list(model.get_feature_names_out())


def test_grid_search_over_a_pipeline_separates_circles(seed):
    X, y = make_circles(400, factor=0.4, noise=0.05, random_state=seed)
    steps = make_pipeline(pca(5, n_landmarks=30), LogisticRegression())
    grid = {"kernelpca__gamma": [1e-4, 2.0], "kernelpca__n_landmarks": [20, 30]}
    search = GridSearchCV(steps, grid, cv=3).fit(X, y)
    assert search.best_params_["kernelpca__gamma"] == 2.0
    assert search.best_score_ > 0.95
    linear = make_pipeline(pca(2, kernel="linear"), LogisticRegression()).fit(X, y)
    assert linear.score(X, y) < 0.75


def test_clones_have_the_parameters_and_no_fit(X):
    model = pca(3, sampler="uniform", center=False, alpha=0.5).fit(X)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        copy.transform(X)


@both_modes
@pytest.mark.parametrize("way", ["pickle", "file"])
def test_a_stored_model_gives_the_same_numbers(X, X_new, tmp_path, n_landmarks, way):
    model = pca(n_landmarks=n_landmarks, fit_inverse_transform=True).fit(X)
    if way == "pickle":
        copy = pickle.loads(pickle.dumps(model))
    else:
        save(model, tmp_path / "model.nystrom")
        copy = load(tmp_path / "model.nystrom")
    expected = model.transform(X_new)
    np.testing.assert_array_equal(copy.transform(X_new), expected)
    back = model.inverse_transform(expected)
    np.testing.assert_array_equal(copy.inverse_transform(expected), back)


def test_any_number_of_threads_gives_the_same_bits(rng):
    X = rng.standard_normal((3000, 4)) * SCALES
    one, two = (
        pca(n_jobs=n_jobs, fit_inverse_transform=True).fit(X) for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.eigenvalues_, two.eigenvalues_)
    np.testing.assert_array_equal(one.eigenvectors_, two.eigenvectors_)
    np.testing.assert_array_equal(one.transform(X), two.transform(X))
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)


@pytest.mark.parametrize("solver", ["dense", "arpack", "randomized"])
def test_the_same_seed_gives_the_same_bits(X, seed, solver):
    first, second = (
        pca(random_state=seed, eigen_solver=solver).fit_transform(X) for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)
    other = pca(random_state=seed + 1, eigen_solver=solver).fit_transform(X)
    assert not np.array_equal(first, other)


# Bad input


def test_a_fit_that_fails_late_leaves_the_fitted_state(X, X_new):
    """The way back is refused for sparse rows after all else is done."""
    model = pca(fit_inverse_transform=True).fit(X)
    expected = model.transform(X_new)
    with pytest.raises(NotImplementedError):
        model.fit(sp.csr_array(X * 2))
    np.testing.assert_array_equal(model.transform(X_new), expected)


def test_values_at_all_rows_are_those_at_the_landmarks_of_exact_mode(X):
    K = rbf(X, X)
    model = pca(kernel="precomputed", n_landmarks=N_ROWS).fit(K)
    np.testing.assert_array_equal(
        model.transform(PrecomputedAtLandmarks(K)), model.transform(K)
    )


def test_an_indefinite_kernel_is_warned_about(X):
    with pytest.warns(UserWarning, match="not positive semi-definite"):
        model = pca(2, kernel="sigmoid", gamma=0.3).fit(X)
    assert model.approximation_error_ is None
    assert np.all(model.eigenvalues_ > 0)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_eigenvalues_that_are_all_alike_are_found(k):
    # LAPACK's way to some eigenvalues fails on this one, or finds fewer.
    G = np.eye(38) - 1 / 76
    values, vectors = leading_eigenpairs(G, k, "dense", 0, 0.0, None, "auto")
    np.testing.assert_allclose(values, np.ones(k))
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-12)


def test_rows_that_are_all_far_apart_have_components():
    X = 1e4 * np.arange(76.0)[:, None] + 1e8
    pca = KernelPCA(4, kernel="matern32", n_landmarks=75, random_state=0)
    coordinates = pca.fit_transform(X)
    assert coordinates.shape == (76, 4)
    np.testing.assert_allclose(pca.eigenvalues_, np.ones(4))


def test_eigenvalues_that_are_all_alike_are_found_without_arpack(monkeypatch):
    """It does not converge on some such matrices: then LAPACK finds them."""
    calls = []

    def fails(*_, **__):
        calls.append(1)
        raise ArpackNoConvergence("no convergence", np.zeros(0), np.zeros((0, 0)))

    monkeypatch.setattr(pca_method, "eigsh", fails)
    G = np.diag([3.0, 3.0, 3.0, 1.0])
    values, vectors = leading_eigenpairs(G, 2, "arpack", 0, 0.0, None, 2)
    assert calls
    np.testing.assert_allclose(values, 3)
    np.testing.assert_allclose(G @ vectors, 3 * vectors, atol=1e-12)


def test_eigenvalues_beyond_float32_are_float64():
    """Where all rows are landmarks they are float32, as scikit-learn's, if they fit."""
    X = np.full((2, 18), 4e8, dtype=np.float32) * np.array([[1], [2]], np.float32)
    options = {"kernel": "poly", "gamma": 0.3, "center": False}
    found = pca(1, **options).fit(X).eigenvalues_
    assert np.isfinite(found).all()
    assert found.dtype == np.float64
    assert pca(1, **options).fit(X / 1e9).eigenvalues_.dtype == np.float32


def test_strings_in_an_array_are_rows_as_they_are_in_a_list():
    words = ["ab", "abc", "b", "cc", "dd", "abcd"]
    model = pca(2, kernel=lambda a, b: float(len(set(a) & set(b))))
    expected = model.fit_transform(words)
    for rows in (np.array(words), np.array(words, dtype=object)):
        np.testing.assert_allclose(np.abs(model.fit_transform(rows)), np.abs(expected))


def test_entries_that_stand_twice_in_a_row_are_added_up(rng):
    X = rng.integers(0, 4, (40, 5)) * 1.0
    twice = sp.csr_matrix(
        (
            np.repeat(X.ravel() / 2, 2),
            np.repeat(np.tile(np.arange(5), 40), 2),
            np.arange(0, 401, 10),
        ),
        shape=X.shape,
    )
    model = pca(2, kernel="rbf", gamma=0.3)
    assert relative(model.fit_transform(twice), model.fit_transform(X)) < 1e-9
    assert twice.nnz == 400


def test_arpack_gives_up_where_lapack_is_as_fast(monkeypatch):
    """Many eigenvalues as good as equal; a limit that is given is that one."""
    limits = []

    def eigsh(G, k, *, maxiter, **_):
        limits.append(maxiter)
        raise ArpackNoConvergence("no convergence", np.zeros(0), np.zeros((0, 0)))

    monkeypatch.setattr(pca_method, "eigsh", eigsh)
    for given in (None, 7):
        values, _ = leading_eigenpairs(np.eye(300), 2, "arpack", 0, 0.0, given, "auto")
        np.testing.assert_allclose(values, 1.0)
    assert limits == [150, 7]
