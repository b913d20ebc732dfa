"""Nystroem: scikit-learn's door, and what we put behind it."""

import inspect
import pickle

import numpy as np
import pytest
import sklearn.kernel_approximation
from sklearn.metrics.pairwise import rbf_kernel

from nystrom import KernelPCA, Nystroem

GAMMA = 0.2


@pytest.fixture
def X(rng):
    return rng.standard_normal((200, 4))


def fitted(X, **options):
    options = {"gamma": GAMMA, "n_components": 20, "random_state": 0} | options
    return Nystroem(**options).fit(X)


# Parameters and attributes


def test_parameters_and_defaults_are_scikit_learns():
    theirs = inspect.signature(sklearn.kernel_approximation.Nystroem).parameters
    ours = inspect.signature(Nystroem).parameters
    assert list(ours)[: len(theirs)] == list(theirs)
    for name, parameter in theirs.items():
        assert ours[name].kind == parameter.kind, name
        assert ours[name].default == parameter.default, name


def test_fitted_attributes_are_scikit_learns(X):
    ours = fitted(X)
    theirs = sklearn.kernel_approximation.Nystroem(gamma=GAMMA, n_components=20)
    theirs.fit(X)
    public = [name for name in vars(theirs) if name.endswith("_")]
    for name in public:
        assert np.shape(getattr(ours, name)) == np.shape(getattr(theirs, name)), name
    assert ours.n_features_in_ == 4
    np.testing.assert_array_equal(
        ours.get_feature_names_out(), theirs.get_feature_names_out()
    )


def test_same_rows_as_scikit_learn_give_the_same_products_of_features(X, seed):
    """Ours are theirs, turned: by a triangular root of the same inverse."""
    theirs = sklearn.kernel_approximation.Nystroem(
        gamma=GAMMA, n_components=20, random_state=seed
    ).fit(X)
    ours = fitted(X, sampler=theirs.component_indices_)
    Z, T = ours.transform(X), theirs.transform(X)
    np.testing.assert_allclose(Z @ Z.T, T @ T.T, atol=1e-7)
    A, B = ours.normalization_, theirs.normalization_
    np.testing.assert_allclose(A.T @ A, B.T @ B, rtol=1e-4)


# fit, transform, fit_transform


# The error


def test_error_after_fit_of_many_rows_is_estimated(rng, seed):
    X = rng.standard_normal((4000, 4))
    error = fitted(X, random_state=seed).approximation_error_
    assert not error.exact
    assert 850 < error.n_rows < 1200  # 1024 on average
    assert 0 < error.standard_error < float(error)
    assert "±" in str(error)
    assert f"{error.n_rows} rows" in str(error)


def errors(X, seed):
    estimator = Nystroem(gamma=GAMMA, n_components=20, random_state=seed)
    estimated = estimator.fit(X).approximation_error_
    estimator.fit_transform(X)
    return estimated, float(estimator.approximation_error_)


def test_standard_error_is_calibrated_where_rows_differ_in_size(seed):
    """What is left of long rows is more, and so is k(x, x): their ratio varies less."""
    rng = np.random.default_rng(seed)
    squares = 0.0
    for _ in range(40):
        X = rng.standard_normal((1500, 20))
        X *= rng.uniform(0.1, 2.0, (1500, 1)) / np.linalg.norm(X, axis=1)[:, None]
        # A kernel that is a call for each value is not asked about all rows.
        estimator = Nystroem(kernel=np.dot, n_components=8, sampler=np.arange(8))
        estimated = estimator.fit(X).approximation_error_
        estimator.fit_transform(X)
        exact = float(estimator.approximation_error_)
        squares += ((float(estimated) - exact) / estimated.standard_error) ** 2
    assert 15 < squares < 80  # 3 where the spread of what is left counts alone


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_standard_error_is_calibrated_where_few_rows_hold_most(seed, dtype):
    """Of rows far out much is left: uniform ones would miss them, and not know it."""
    rng = np.random.default_rng(seed)
    squares, shares = [], []
    for i in range(40):
        X = rng.standard_normal((4000, 2)).astype(dtype)
        options = {"gamma": 0.03, "n_components": 30, "random_state": 100 * seed + i}
        estimator = Nystroem(**options).fit(X)
        estimated = estimator.approximation_error_
        K = rbf_kernel(X.astype(float), estimator.components_.astype(float), 0.03)
        Z = K @ estimator.landmarks_.factor.root
        left = np.maximum(1 - np.vecdot(Z, Z), 0)
        exact = left.mean()
        shares.append(estimated.standard_error / exact)
        squares.append((float(estimated) - exact) ** 2 / estimated.standard_error**2)
    assert max(shares) < 0.2
    assert np.sqrt(max(squares)) < 6
    assert 10 < sum(squares) < 120


@pytest.mark.parametrize("period", [2, 4, 8])
def test_estimated_error_is_right_for_rows_that_come_in_turns(rng, seed, period):
    """Rows of a quarterly table, say: every fourth is of one kind."""
    X = rng.standard_normal((4096 * 2, 4))
    X[::period] *= 0.01
    estimated, exact = errors(X, seed)
    assert abs(float(estimated) - exact) < 5 * estimated.standard_error


# Within scikit-learn


def test_pickle_does_not_hold_the_precomputed_matrix(X):
    K = rbf_kernel(np.repeat(X, 2, axis=0), gamma=GAMMA)
    estimator = fitted(K, kernel="precomputed", gamma=None, n_components=10)
    Z = estimator.transform(K)
    dumped = pickle.dumps(estimator)
    assert len(dumped) < 0.1 * K.nbytes
    np.testing.assert_array_equal(pickle.loads(dumped).transform(K), Z)


# How many


def test_more_components_than_rows_warn_as_scikit_learn_does(X):
    ours, theirs = Nystroem(), sklearn.kernel_approximation.Nystroem()
    with pytest.warns(UserWarning, match="n_components > n_samples") as warned:
        Z = ours.fit_transform(X[:30])
    with pytest.warns(UserWarning, match="n_components") as expected:
        theirs.fit(X[:30])
    assert [str(w.message) for w in warned] == [str(w.message) for w in expected]
    assert Z.shape == (30, 30)
    np.testing.assert_allclose(Z @ Z.T, rbf_kernel(X[:30]), atol=1e-9)


# Samplers of every form


def test_points_have_no_row_numbers_and_say_so(X):
    estimator = fitted(X, sampler=X[:3] + 0.1)
    assert not hasattr(estimator, "component_indices_")
    with pytest.raises(AttributeError, match="given points are not rows of the data"):
        estimator.component_indices_  # noqa: B018


# For any data


def test_weights_count_as_copies(rng):
    X, points = rng.standard_normal((200, 3)), rng.standard_normal((20, 3))
    weights = np.arange(200) % 4
    copies = np.repeat(X, weights, axis=0)
    est = Nystroem(gamma=0.3, n_components=20, sampler=points)
    weighted = est.fit_transform(X, sample_weight=weights)
    error = est.approximation_error_.value
    est.fit_transform(copies)
    assert error == pytest.approx(est.approximation_error_.value)
    assert weighted.shape == (200, 20)
    for kind in ({"sampler": points, "n_landmarks": 20}, {}):  # landmarks, and exactly
        pca = KernelPCA(3, kernel="rbf", gamma=0.3, random_state=0, **kind)
        found = pca.fit(X, sample_weight=weights).eigenvalues_
        np.testing.assert_allclose(found, pca.fit(copies).eigenvalues_, rtol=1e-9)


def test_the_way_back(rng):
    X = rng.standard_normal((300, 2))
    est = Nystroem(
        gamma=0.2,
        n_components=60,
        fit_inverse_transform=True,
        alpha=1e-3,
        random_state=0,
    )
    Z = est.fit_transform(X)
    assert np.abs(est.inverse_transform(Z) - X).max() < 0.2
    np.testing.assert_allclose(est.fit(X).inverse_transform(Z[:5]), X[:5], atol=0.2)
    est.partial_fit(X)
    assert np.abs(est.inverse_transform(est.transform(X)) - X).mean() < 0.2
    assert not hasattr(est.truncate(5), "inverse_transform")
    assert not hasattr(Nystroem(), "inverse_transform")
    with pytest.raises(ValueError, match="precomputed"):
        est.set_params(kernel="precomputed", gamma=None, n_components=5).fit(np.eye(9))
