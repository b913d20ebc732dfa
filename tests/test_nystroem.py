"""Nystroem: scikit-learn's door, and what we put behind it."""

from __future__ import annotations

import inspect
import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.kernel_approximation
from hypothesis import assume, given
from hypothesis import strategies as st
from lists import DISTANCE_NAMES, OFF_THE_ROWS, RIDGED
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.svm import LinearSVC

from nystrom import Nystroem, approximate, samplers, select_landmarks
from nystrom.landmarks import Landmarks

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


def test_parameters_of_our_own_come_after_theirs_by_keyword():
    theirs = inspect.signature(sklearn.kernel_approximation.Nystroem).parameters
    ours = inspect.signature(Nystroem).parameters
    added = {name: ours[name] for name in ours if name not in theirs}
    assert {"sampler": "auto", "max_spectral_error": None, "verbose": 0}.items() <= {
        name: parameter.default for name, parameter in added.items()
    }.items()
    assert all(p.kind is p.KEYWORD_ONLY for p in added.values())


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


def test_components_are_rows_of_the_data(X):
    estimator = fitted(X)
    np.testing.assert_array_equal(
        estimator.components_, X[estimator.component_indices_]
    )
    assert len(np.unique(estimator.component_indices_)) == 20
    assert estimator.component_indices_.dtype.kind == "i"


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_features_are_kernel_times_normalization(X, dtype):
    X = X.astype(dtype)
    estimator = fitted(X)
    assert estimator.normalization_.dtype == estimator.components_.dtype == dtype
    expected = (
        rbf_kernel(X, estimator.components_, gamma=GAMMA) @ estimator.normalization_.T
    )
    tolerance = 1e-9 if dtype == np.float64 else 1e-4
    Z = estimator.transform(X)
    assert Z.dtype == dtype
    np.testing.assert_allclose(Z, expected, atol=tolerance)


def test_normalization_is_the_inverse_root_of_the_landmarks_kernel(X):
    estimator = fitted(X)
    inner = rbf_kernel(estimator.components_, gamma=GAMMA)
    root = estimator.normalization_
    np.testing.assert_array_equal(root, np.tril(root))
    np.testing.assert_allclose(root @ inner @ root.T, np.eye(20), atol=1e-6)


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


def test_landmarks_print_as_one_line(X):
    shown = str(fitted(X).landmarks_)
    assert "\n" not in shown
    for part in (
        "20 landmarks of 200 rows by auto",
        "RBF(gamma=0.2)",
        "relative trace error",
        "(exact)",
        "rank 20",
        "kernel evaluations",
        " s",
    ):
        assert part in shown


def test_landmarks_lead_to_the_approximation(X):
    estimator = fitted(X)
    approximation = approximate(X, estimator.landmarks_)
    np.testing.assert_array_equal(approximation.features(), estimator.transform(X))
    error = float(approximation.relative_trace_error)
    assert error == pytest.approx(float(estimator.approximation_error_))


# fit, transform, fit_transform


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_rows", [200, 3000])
def test_fit_then_transform_is_fit_transform(rng, seed, n_rows, dtype):
    X = rng.standard_normal((n_rows, 4)).astype(dtype)
    estimator = fitted(X, random_state=seed)
    Z = fitted(X[:50], random_state=seed, n_components=5).set_params(n_components=20)
    Z = Z.fit_transform(X)
    np.testing.assert_array_equal(estimator.transform(X), Z)


def test_fit_twice_is_fit_once(X, rng, seed):
    estimator = fitted(rng.standard_normal((77, 9)), random_state=seed)
    again = estimator.fit(X)
    once = fitted(X, random_state=seed)
    np.testing.assert_array_equal(again.transform(X), once.transform(X))
    np.testing.assert_array_equal(again.component_indices_, once.component_indices_)
    assert again.n_features_in_ == 4
    assert set(vars(again)) == set(vars(once))


def test_refit_on_objects_forgets_the_number_of_features(X):
    def same(x, y):
        return float(x == y)

    estimator = fitted(X).set_params(kernel=same, gamma=None, n_components=2)
    estimator.fit(["a", "b", "c", "a"])
    assert not hasattr(estimator, "n_features_in_")


def test_fit_returns_the_estimator_and_changes_no_parameter(X):
    estimator = Nystroem(gamma="median", n_components=20, sampler=[1, 5, 9])
    before = estimator.get_params()
    assert estimator.fit(X) is estimator
    after = estimator.get_params()
    assert all(after[name] is before[name] for name in before)


def test_data_is_not_modified(X):
    before = X.copy()
    fitted(X).transform(X)
    np.testing.assert_array_equal(X, before)


def test_y_is_ignored(X, rng):
    y = rng.integers(0, 2, 200)
    estimator = Nystroem(n_components=5, random_state=0)
    np.testing.assert_array_equal(
        estimator.fit_transform(X, y), estimator.fit_transform(X)
    )


def test_rows_transform_one_by_one_as_all_at_once(X, seed):
    estimator = fitted(X, random_state=seed)
    Z = estimator.transform(X)
    one_by_one = np.vstack([estimator.transform(x[None]) for x in X[:20]])
    np.testing.assert_allclose(one_by_one, Z[:20], atol=1e-12)


def test_features_of_all_rows_as_landmarks_give_the_kernel_matrix(X, seed):
    Z = Nystroem(gamma=GAMMA, n_components=200, random_state=seed).fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, rbf_kernel(X, gamma=GAMMA), atol=1e-9)


@pytest.mark.parametrize("n_components", [1, 2, 20])
def test_kernel_minus_approximation_is_semi_definite(X, seed, n_components):
    Z = Nystroem(
        gamma=GAMMA, n_components=n_components, random_state=seed
    ).fit_transform(X)
    assert Z.shape == (200, n_components)
    left = np.linalg.eigvalsh(rbf_kernel(X, gamma=GAMMA) - Z @ Z.T)
    assert left.min() >= -1e-9


@pytest.mark.parametrize("n_jobs", [1, 2, 3, -1, -2])
def test_number_of_threads_changes_no_bit(rng, seed, n_jobs):
    X = rng.standard_normal((5000, 3)).astype(np.float32)
    alone = fitted(X, random_state=seed)
    threaded = fitted(X, random_state=seed, n_jobs=n_jobs)
    np.testing.assert_array_equal(alone.component_indices_, threaded.component_indices_)
    np.testing.assert_array_equal(alone.transform(X), threaded.transform(X))


def test_same_random_state_same_landmarks(rng, seed):
    X = rng.standard_normal((400, 4))  # of fewer rows all are proposed, at any seed
    first, again = (fitted(X, random_state=seed) for _ in range(2))
    np.testing.assert_array_equal(first.component_indices_, again.component_indices_)
    other = fitted(X, random_state=seed + 1000)
    assert not np.array_equal(first.component_indices_, other.component_indices_)


@pytest.mark.parametrize(
    "random_state", [None, 7, np.int64(7), np.random.RandomState(7)]
)
def test_every_random_state_is_taken(X, random_state):
    assert fitted(X, random_state=random_state).transform(X).shape == (200, 20)


# The error


def exact_error(X, estimator):
    K = pairwise_kernels(X, metric="rbf", gamma=GAMMA)
    Z = estimator.transform(X).astype(np.float64)
    return 1 - np.sum(Z**2) / np.trace(K)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_error_is_exact_after_fit_transform(rng, seed, dtype):
    X = rng.standard_normal((3000, 4)).astype(dtype)
    estimator = Nystroem(gamma=GAMMA, n_components=20, random_state=seed)
    estimator.fit_transform(X)
    error = estimator.approximation_error_
    assert error.exact
    assert error.n_rows == 3000
    assert error.standard_error == 0
    tolerance = 1e-9 if dtype == np.float64 else 1e-5
    assert float(error) == pytest.approx(exact_error(X, estimator), abs=tolerance)
    assert estimator.landmarks_.error is error


def test_error_after_fit_of_few_rows_is_exact(X, seed):
    estimator = fitted(X, random_state=seed)
    assert estimator.approximation_error_.exact
    assert float(estimator.approximation_error_) == pytest.approx(
        exact_error(X, estimator)
    )


def test_error_after_fit_of_many_rows_is_estimated(rng, seed):
    X = rng.standard_normal((4000, 4))
    error = fitted(X, random_state=seed).approximation_error_
    assert not error.exact
    assert 850 < error.n_rows < 1200  # 1024 on average
    assert 0 < error.standard_error < float(error)
    assert "±" in str(error)
    assert f"{error.n_rows} rows" in str(error)


def test_error_relates_to_the_gram_matrix(X):
    """tr K̃ = tr(K_SS⁺ K_SᵀK_S)."""
    estimator = fitted(X)
    K = rbf_kernel(X, estimator.components_, gamma=GAMMA)
    inner = rbf_kernel(estimator.components_, gamma=GAMMA)
    kept = np.trace(np.linalg.solve(inner, K.T @ K))
    assert float(estimator.approximation_error_) == pytest.approx(1 - kept / 200)


def errors(X, seed):
    estimator = Nystroem(gamma=GAMMA, n_components=20, random_state=seed)
    estimated = estimator.fit(X).approximation_error_
    estimator.fit_transform(X)
    return estimated, float(estimator.approximation_error_)


def test_estimated_error_is_within_its_standard_errors(rng, seed):
    estimated, exact = errors(rng.standard_normal((4000, 4)), seed)
    assert abs(float(estimated) - exact) < 5 * estimated.standard_error


def test_standard_error_is_calibrated(seed):
    """Over 40 data sets the squared deviations add up to about 40 (χ²: 15 to 80)."""
    rng = np.random.default_rng(seed)
    squares = 0.0
    for i in range(40):
        estimated, exact = errors(rng.standard_normal((2500, 4)), 100 * seed + i)
        squares += ((float(estimated) - exact) / estimated.standard_error) ** 2
    assert 15 < squares < 80


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


def test_estimated_error_is_right_for_sorted_rows(rng, seed):
    X = rng.standard_normal((4000, 4))
    X = X[np.argsort(np.linalg.norm(X, axis=1))]
    estimated, exact = errors(X, seed)
    assert abs(float(estimated) - exact) < 5 * estimated.standard_error


# Within scikit-learn


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:1000] / 16, y[:1000], X[1000:] / 16, y[1000:]


def test_pipeline_classifies_digits(digits):
    X, y, X_new, y_new = digits
    model = make_pipeline(
        Nystroem(gamma=0.2, n_components=300, random_state=0),
        LinearSVC(random_state=0),
    ).fit(X, y)
    assert model.score(X_new, y_new) > 0.94


def test_default_nystroem_in_a_pipeline_on_digits(digits):
    X, y, X_new, y_new = digits
    model = make_pipeline(Nystroem(), LinearSVC(random_state=0)).fit(X, y)
    assert model.score(X_new, y_new) > 0.8


@pytest.mark.filterwarnings("ignore:K is nearly")
def test_grid_search_over_gamma_finds_the_width(digits):
    X, y, *_ = digits
    model = make_pipeline(
        Nystroem(n_components=50, random_state=0), LinearSVC(random_state=0)
    )
    grid = {"nystroem__gamma": [1e-6, 0.2, 100.0]}
    search = GridSearchCV(model, grid, cv=3).fit(X[:500], y[:500])
    assert search.best_params_ == {"nystroem__gamma": 0.2}
    assert search.best_estimator_[0].landmarks_.kernel.gamma == 0.2


def test_grid_search_over_kernels_and_samplers(digits):
    X, y, *_ = digits
    model = make_pipeline(
        Nystroem(n_components=20, random_state=0, degree=2, gamma=0.1),
        LinearSVC(random_state=0),
    )
    grid = {
        "nystroem__kernel": ["rbf", "polynomial", "cosine"],
        "nystroem__sampler": ["uniform", samplers.Recursive()],
    }
    search = GridSearchCV(model, grid, cv=2).fit(X[:300], y[:300])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_grid_search_over_a_precomputed_kernel(digits):
    """The folds are cut from rows and columns both."""
    X, y, *_ = digits
    K = rbf_kernel(X[:300], gamma=GAMMA)
    model = make_pipeline(
        Nystroem("precomputed", n_components=50, random_state=0),
        LinearSVC(random_state=0),
    )
    search = GridSearchCV(model, {"linearsvc__C": [0.1, 1.0]}, cv=3).fit(K, y[:300])
    assert search.best_score_ > 0.8


def test_union_and_column_transformer(X):
    small, wide = (
        Nystroem(gamma=gamma, n_components=3, random_state=0) for gamma in (1.0, 0.01)
    )
    union = FeatureUnion([("small", small), ("wide", wide)])
    assert union.fit_transform(X).shape == (200, 6)
    columns = ColumnTransformer([("a", small, [0, 1]), ("b", wide, [2, 3])])
    assert columns.fit_transform(X).shape == (200, 6)


@pytest.mark.parametrize("sampler", ["auto", samplers.Recursive(), [3, 1, 2]])
def test_clone_keeps_parameters_and_drops_the_fit(X, sampler):
    estimator = fitted(X, sampler=sampler)
    copy = clone(estimator)
    assert repr(copy.get_params()) == repr(estimator.get_params())
    with pytest.raises(NotFittedError):
        copy.transform(X)
    np.testing.assert_array_equal(copy.fit(X).transform(X), estimator.transform(X))


def test_repr_shows_what_was_set():
    shown = repr(Nystroem(gamma=0.1, sampler="uniform"))
    assert shown == "Nystroem(gamma=0.1, sampler='uniform')"


@pytest.mark.parametrize("dumps", [pickle.dumps, "joblib"])
def test_pickle_keeps_the_fit(X, tmp_path, dumps):
    estimator = fitted(X)
    if dumps == "joblib":
        joblib.dump(estimator, tmp_path / "model")
        loaded = joblib.load(tmp_path / "model")
    else:
        loaded = pickle.loads(dumps(estimator))
    np.testing.assert_array_equal(loaded.transform(X), estimator.transform(X))
    assert str(loaded.landmarks_) == str(estimator.landmarks_)
    assert loaded.approximation_error_ == estimator.approximation_error_


def test_pickle_does_not_hold_the_data(rng):
    X = rng.standard_normal((5000, 20))
    estimator = fitted(X, n_components=10, gamma=0.02)
    estimator.transform(X)
    assert len(pickle.dumps(estimator)) < 0.1 * X.nbytes


def test_pickle_does_not_hold_the_precomputed_matrix(X):
    K = rbf_kernel(np.repeat(X, 2, axis=0), gamma=GAMMA)
    estimator = fitted(K, kernel="precomputed", gamma=None, n_components=10)
    Z = estimator.transform(K)
    dumped = pickle.dumps(estimator)
    assert len(dumped) < 0.1 * K.nbytes
    np.testing.assert_array_equal(pickle.loads(dumped).transform(K), Z)


@pytest.mark.parametrize("method", ["fit_transform", "transform"])
def test_set_output_pandas(X, method):
    frame = pd.DataFrame(X, columns=list("abcd"), index=np.arange(200) + 1000)
    estimator = Nystroem(n_components=3, random_state=0).set_output(transform="pandas")
    Z = getattr(estimator.fit(frame), method)(frame)
    assert isinstance(Z, pd.DataFrame)
    assert list(Z.columns) == ["nystroem0", "nystroem1", "nystroem2"]
    assert list(Z.index) == list(frame.index)
    np.testing.assert_array_equal(
        Z.to_numpy(), Nystroem(n_components=3, random_state=0).fit_transform(X)
    )


@pytest.mark.parametrize("method", ["fit_transform", "transform"])
def test_set_output_polars(X, method):
    frame = pl.DataFrame(X, schema=list("abcd"))
    estimator = Nystroem(n_components=3, random_state=0).set_output(transform="polars")
    Z = getattr(estimator.fit(frame), method)(frame)
    assert isinstance(Z, pl.DataFrame)
    assert Z.columns == ["nystroem0", "nystroem1", "nystroem2"]
    np.testing.assert_array_equal(
        Z.to_numpy(), Nystroem(n_components=3, random_state=0).fit_transform(X)
    )


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_works_inside_parallel_workers(rng, seed, backend):
    X = rng.standard_normal((3000, 3))
    estimators = [Nystroem(n_components=10, random_state=s) for s in (seed, seed + 1)]
    alone = [estimator.fit_transform(X) for estimator in estimators]
    side_by_side = joblib.Parallel(n_jobs=2, backend=backend)(
        joblib.delayed(clone(estimator).fit_transform)(X) for estimator in estimators
    )
    for one, other in zip(alone, side_by_side, strict=True):
        np.testing.assert_array_equal(one, other)


def test_parameters_of_the_kernel_are_not_modified(X):
    params = {"gamma": 0.5}
    estimator = Nystroem("laplacian", kernel_params=params, n_components=5)
    estimator.fit(X).transform(X)
    assert params == {"gamma": 0.5}
    assert estimator.kernel_params is params
    params["gamma"] = 100.0
    assert estimator.landmarks_.kernel.gamma == 0.5


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


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_warnings_point_at_the_line_of_the_user(X, method):
    with pytest.warns(UserWarning, match="n_components > n_samples") as warned:
        getattr(Nystroem(), method)(X[:30])
    assert warned[0].filename == __file__


@pytest.mark.parametrize("n_components", [np.int64(7), np.uint8(7)])
def test_counts_of_numpy_are_counts(X, n_components):
    assert fitted(X, n_components=n_components).transform(X).shape == (200, 7)


@pytest.mark.parametrize("sampler", ["auto", *RIDGED])
def test_ridge_bounds_the_spectral_error(X, seed, sampler):
    """Practical constants promise nothing, but stay near λ."""
    estimator = Nystroem(
        gamma=GAMMA,
        n_components=None,
        max_spectral_error=2.0,
        sampler=sampler,
        random_state=seed,
    )
    Z = estimator.fit_transform(X)
    left = np.linalg.norm(rbf_kernel(X, gamma=GAMMA) - Z @ Z.T, 2)
    assert left <= 2 * 2.0
    assert estimator.landmarks_.ridge == 2.0
    assert Z.shape == (200, len(estimator.landmarks_))
    assert len(estimator.get_feature_names_out()) == Z.shape[1] < 200


def test_smaller_ridge_takes_more_components(X):
    sizes = [
        len(fitted(X, n_components=None, max_spectral_error=ridge).landmarks_)
        for ridge in (20.0, 2.0, 0.2)
    ]
    assert sizes == sorted(set(sizes))


@pytest.mark.parametrize("ridge", [np.float32(2), np.float64(2), np.int64(2), 2])
def test_ridge_may_be_any_number(X, ridge):
    estimator = fitted(X, n_components=None, max_spectral_error=ridge)
    plain = fitted(X, n_components=None, max_spectral_error=2.0)
    np.testing.assert_array_equal(
        estimator.component_indices_, plain.component_indices_
    )


def test_number_of_components_caps_the_ridge_with_a_warning(X):
    estimator = Nystroem(
        gamma=GAMMA, n_components=10, max_spectral_error=0.01, random_state=0
    )
    with pytest.warns(UserWarning, match="more than the 10 allowed") as warned:
        Z = estimator.fit_transform(X)
    assert Z.shape == (200, 10)
    message = str(warned[0].message)
    assert len(warned) == 1
    assert "max_spectral_error=0.01" in message
    assert str(estimator.approximation_error_) in message


def test_ridge_of_the_sampler_is_the_ridge(X):
    ours = fitted(
        X, n_components=None, sampler=samplers.Recursive(max_spectral_error=2.0)
    )
    same = fitted(X, n_components=None, max_spectral_error=2.0)
    np.testing.assert_array_equal(ours.component_indices_, same.component_indices_)


@pytest.mark.parametrize(
    "sampler",
    [
        samplers.Recursive(constants="theory"),
        samplers.Recursive(delta=0.01),
        samplers.Leverage(constants="theory"),
        samplers.Leverage(delta=0.01),
    ],
    ids=str,
)
def test_theory_cannot_promise_a_number_of_components(X, sampler):
    with pytest.raises(
        ValueError, match=r"n_components=20\) cannot promise it.*max_spectral_error"
    ):
        fitted(X, sampler=sampler)


def test_theory_with_a_ridge_comes_with_a_guarantee(X):
    sampler = samplers.Recursive(delta=0.01)
    estimator = fitted(X, sampler=sampler, max_spectral_error=5.0, n_components=None)
    assert estimator.landmarks_.guarantee.ridge == 5.0
    assert estimator.landmarks_.guarantee.probability == pytest.approx(0.97)


# Samplers of every form


@pytest.mark.parametrize("sampler", list(samplers.NAMES))
def test_sampler_by_name(X, sampler):
    estimator = fitted(X, sampler=sampler)
    assert estimator.transform(X).shape == (200, 20)
    if sampler == "kmeans":
        with pytest.raises(AttributeError, match="kmeans are not rows of the data"):
            estimator.component_indices_  # noqa: B018
        assert not hasattr(estimator, "component_indices_")
    else:
        assert len(np.unique(estimator.component_indices_)) == 20


@pytest.mark.parametrize(
    "sampler",
    [
        samplers.Recursive(),
        samplers.Accelerated(),
        samplers.Leverage(),
        samplers.Uniform(),
    ],
    ids=str,
)
def test_sampler_by_value(X, sampler):
    by_name = fitted(X, sampler=type(sampler).__name__.lower())
    by_value = fitted(X, sampler=sampler)
    np.testing.assert_array_equal(
        by_name.component_indices_, by_value.component_indices_
    )


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series])
def test_sampler_by_row_numbers(X, kind):
    rows = [5, 190, 7]
    estimator = fitted(X, sampler=kind(rows), n_components=100)
    np.testing.assert_array_equal(estimator.component_indices_, rows)
    np.testing.assert_array_equal(estimator.components_, X[rows])
    assert estimator.transform(X).shape == (200, 3)
    assert list(estimator.get_feature_names_out())[-1] == "nystroem2"


@pytest.mark.parametrize("kind", [list, np.array, pd.DataFrame, np.asfortranarray])
def test_sampler_by_points(X, rng, kind):
    points = rng.standard_normal((6, 4))
    estimator = fitted(X, sampler=kind(points.tolist()))
    np.testing.assert_array_equal(estimator.components_, points)
    Z = estimator.transform(X)
    K = rbf_kernel(X, points, gamma=GAMMA)
    inner = rbf_kernel(points, gamma=GAMMA)
    np.testing.assert_allclose(Z @ Z.T, K @ np.linalg.solve(inner, K.T), atol=1e-9)
    assert list(estimator.get_feature_names_out())[-1] == "nystroem5"


def test_points_have_no_row_numbers_and_say_so(X):
    estimator = fitted(X, sampler=X[:3] + 0.1)
    assert not hasattr(estimator, "component_indices_")
    with pytest.raises(AttributeError, match="given points are not rows of the data"):
        estimator.component_indices_  # noqa: B018


def test_row_numbers_before_the_fit_say_so():
    with pytest.raises(AttributeError, match="not fitted yet"):
        Nystroem().component_indices_  # noqa: B018


@pytest.mark.filterwarnings("ignore:K is nearly")
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_points_of_another_precision_are_taken(X, dtype):
    points = (3 * X[:5]).astype(dtype)
    Z = fitted(X, sampler=points).transform(X)
    expected = fitted(X, sampler=points.astype(np.float64)).transform(X)
    assert Z.dtype == np.float64
    np.testing.assert_allclose(Z, expected, atol=1e-5)


def first_rows(kernel, source, n_landmarks, *, seed, engine):
    rows = np.arange(n_landmarks)
    return Landmarks(
        points=source.take(rows),
        kernel=kernel,
        sampler="first rows",
        n_rows=source.n_rows,
        indices=rows,
    )


def test_sampler_of_the_user(X):
    estimator = fitted(X, sampler=first_rows)
    np.testing.assert_array_equal(estimator.component_indices_, np.arange(20))
    assert "by first rows" in str(estimator.landmarks_)
    given_rows = fitted(X, sampler=np.arange(20))
    np.testing.assert_array_equal(estimator.transform(X), given_rows.transform(X))


def test_landmarks_from_select_landmarks_can_be_brought(X):
    chosen = select_landmarks(X, gamma=GAMMA, n_landmarks=8, random_state=0)
    by_rows = fitted(X, sampler=chosen.indices)
    by_points = fitted(X, sampler=chosen.points)
    np.testing.assert_array_equal(by_rows.transform(X), by_points.transform(X))


def test_better_landmarks_than_uniform_on_unbalanced_clusters(rng, seed):
    """Many rows in one place and few elsewhere: the case for leverage scores."""
    few = [rng.normal(center, 0.1, (10, 2)) for center in ([20, 0], [0, 20], [20, 20])]
    X = np.concatenate([rng.normal(0, 0.05, (2000, 2)), *few])

    def error(sampler, random_state):
        landmarks = select_landmarks(
            X, gamma=1.0, n_landmarks=40, sampler=sampler, random_state=random_state
        )
        return float(approximate(X, landmarks).spectral_error())

    errors = {
        sampler: np.median([error(sampler, 5 * seed + i) for i in range(3)])
        for sampler in ("uniform", "recursive")
    }
    # A cluster without a landmark costs its 10 rows.
    assert errors["uniform"] > 5
    assert errors["recursive"] < 0.5 * errors["uniform"]


# For any data


SCALES = [1e-3, 1.0, 1e3]


@st.composite
def data(draw):
    n, d = draw(st.integers(1, 40)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["normal", "few values", "copies", "constant", "zero"]))
    X = rng.standard_normal((n, d))
    if kind == "few values":
        X = np.round(X)
    elif kind == "copies":
        X = X[rng.integers(0, max(1, n // 4), n)]
    elif kind == "constant":
        X = np.full((n, d), X[0, 0])
    elif kind == "zero":
        X = np.zeros((n, d))
    X = X * draw(st.sampled_from(SCALES)) + draw(st.sampled_from([0.0, 1.0, 100.0]))
    return X.astype(draw(st.sampled_from([np.float64, np.float32, np.int32])))


@pytest.mark.filterwarnings("ignore:K is nearly")
@given(
    X=data(),
    kernel=st.sampled_from(
        ["rbf", "laplacian", "matern52", "linear", "polynomial", "cosine"]
    ),
    sampler=st.sampled_from(list(samplers.NAMES)),
    n_components=st.integers(1, 50),
    random_state=st.integers(0, 2**32 - 1),
)
def test_features_of_any_data(X, kernel, sampler, n_components, random_state):
    assume(sampler not in OFF_THE_ROWS or kernel in DISTANCE_NAMES)
    estimator = Nystroem(
        kernel,
        n_components=n_components,
        sampler=sampler,
        random_state=random_state,
        degree=2,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="n_components > n_samples")
        Z = estimator.fit_transform(X)
    assert Z.shape == (len(X), min(n_components, len(X)))
    assert np.isfinite(Z).all()
    assert 0 <= estimator.landmarks_.rank <= Z.shape[1]
    assert 0 <= float(estimator.approximation_error_) <= 1
    np.testing.assert_allclose(estimator.transform(X), Z, rtol=1e-6)

    K = estimator.landmarks_.kernel(X.astype(np.float64), X.astype(np.float64))
    Z = Z.astype(np.float64)
    left = np.linalg.eigvalsh((K + K.T) / 2 - Z @ Z.T)
    wide = X.dtype != np.float32
    rounding = np.sqrt(np.finfo(np.float64 if wide else np.float32).eps)
    assert left.min() >= -10 * rounding * max(np.trace(K), 1e-300)
