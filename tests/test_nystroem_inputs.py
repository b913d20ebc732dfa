"""Nystroem takes rows of every kind, and kernels of every kind."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from lists import CHOOSING, SCORED
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gp
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from nystrom import Nystroem, kernels
from nystrom.kernels import PrecomputedAtLandmarks
from nystrom.sources import DenseRows

N_ROWS, N_FEATURES, N_COMPONENTS = 300, 4, 15


@pytest.fixture
def X(rng):
    return rng.standard_normal((N_ROWS, N_FEATURES))


def estimator(seed=0, **options):
    options = {"n_components": N_COMPONENTS, "random_state": seed} | options
    return Nystroem(**options)


def memory_map(X, directory):
    path = directory / "rows"
    X.tofile(path)
    return np.memmap(path, dtype=X.dtype, mode="r", shape=X.shape)


def read_only(X):
    X = X.copy()
    X.setflags(write=False)
    return X


STORAGES = {
    "Fortran order": np.asfortranarray,
    "read only": read_only,
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "every second column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "backwards": lambda X: X[::-1].copy()[::-1],
    "list of lists": lambda X: X.tolist(),
    "list of arrays": list,
    "array of objects": lambda X: X.astype(object),
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "big endian": lambda X: X.astype(">f8"),
    "source": DenseRows,
}


@pytest.mark.parametrize("storage", STORAGES)
def test_storage_changes_no_bit(X, seed, storage):
    plain = estimator(seed).fit(X)
    other = STORAGES[storage](X)
    stored = estimator(seed).fit(other)
    np.testing.assert_array_equal(plain.component_indices_, stored.component_indices_)
    Z = stored.transform(other)
    assert isinstance(Z, np.ndarray)
    np.testing.assert_array_equal(plain.transform(X), Z)
    np.testing.assert_array_equal(estimator(seed).fit_transform(other), Z)


def test_memory_map_changes_no_bit(X, seed, tmp_path):
    mapped = memory_map(X, tmp_path)
    plain, stored = estimator(seed).fit(X), estimator(seed).fit(mapped)
    np.testing.assert_array_equal(plain.component_indices_, stored.component_indices_)
    Z = stored.transform(mapped)
    np.testing.assert_array_equal(plain.transform(X), Z)
    assert not isinstance(Z, np.memmap)
    assert not isinstance(stored.components_, np.memmap)


SPARSE = [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array]


@pytest.mark.parametrize("storage", SPARSE)
@pytest.mark.parametrize(
    "kernel", ["rbf", "linear", "polynomial", "cosine", "matern52"]
)
def test_sparse_rows_give_what_dense_rows_give(X, seed, storage, kernel):
    X = np.where(np.abs(X) > 1, X, 0)
    plain = estimator(seed, kernel=kernel).fit(X)
    stored = estimator(seed, kernel=kernel, sampler=plain.component_indices_)
    Z = stored.fit_transform(storage(X))
    assert isinstance(Z, np.ndarray)
    # A singular K_SS has a root that is not unique to rounding; ZZᵀ is.
    expected = plain.transform(X)
    np.testing.assert_allclose(Z @ Z.T, expected @ expected.T, atol=1e-6)
    np.testing.assert_allclose(stored.transform(storage(X)), Z, atol=1e-6)


def test_sparse_components_stay_sparse(X, seed):
    fitted = estimator(seed).fit(sp.csr_array(X))
    assert sp.issparse(fitted.components_)
    np.testing.assert_array_equal(
        fitted.components_.toarray(), X[fitted.component_indices_]
    )


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "cosine"])
def test_fitted_on_dense_rows_transforms_sparse_rows_and_back(X, seed, kernel):
    dense, sparse = X, sp.csr_array(X)
    options = {"kernel": kernel, "sampler": list(range(4)), "gamma": 0.1}
    on_dense = estimator(**options).fit(dense)
    on_sparse = estimator(**options).fit(sparse)
    expected = on_dense.transform(dense)
    for fitted, rows in [(on_dense, sparse), (on_sparse, dense), (on_sparse, sparse)]:
        np.testing.assert_allclose(fitted.transform(rows), expected, atol=1e-8)


def test_sparse_rows_that_are_all_zero():
    Z = estimator(kernel="linear", n_components=3).fit_transform(sp.csr_array((20, 5)))
    np.testing.assert_array_equal(Z, np.zeros((20, 3)))


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("sampler", CHOOSING)
def test_rows_most_of_which_are_zero(X, seed, share, sampler):
    """A sample of nothing but zero rows says nothing about the others."""
    X[: int(share * N_ROWS)] = 0
    fitted = estimator(seed, kernel="linear", sampler=sampler)
    Z = fitted.fit_transform(X)
    assert np.isfinite(Z).all()
    assert fitted.landmarks_.rank <= N_FEATURES
    dimension = fitted.landmarks_.effective_dimension
    assert np.isfinite(dimension) if sampler in SCORED else dimension is None


@pytest.mark.parametrize(
    ("given", "made"),
    [
        (np.float64, np.float64),
        (np.float32, np.float32),
        (np.float16, np.float32),
        (np.int64, np.float64),
        (np.int8, np.float64),
        (np.uint8, np.float64),
        (bool, np.float64),
    ],
)
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "polynomial"])
def test_precision_of_the_features_follows_the_rows(X, given, made, kernel):
    X = (3 * X).astype(given)
    fitted = estimator(kernel=kernel).fit(X)
    assert fitted.transform(X).dtype == made
    assert estimator(kernel=kernel).fit_transform(X).dtype == made
    assert fitted.components_.dtype == made
    expected = estimator(
        kernel=kernel, sampler=fitted.component_indices_
    ).fit_transform(X.astype(np.float64))
    Z = fitted.transform(X).astype(np.float64)
    scale = np.abs(expected @ expected.T).max()
    np.testing.assert_allclose(Z @ Z.T, expected @ expected.T, atol=2e-3 * scale)


@pytest.mark.parametrize("given", [np.int64, np.uint8, bool])
def test_whole_numbers_are_worked_on_as_float64(X, seed, given):
    X = np.abs(3 * X).astype(given)
    np.testing.assert_array_equal(
        estimator(seed).fit_transform(X),
        estimator(seed).fit_transform(X.astype(np.float64)),
    )


def test_sparse_rows_of_whole_numbers(rng, seed):
    X = sp.csr_array(rng.integers(0, 3, (100, 6)) * (rng.random((100, 6)) < 0.4))
    Z = estimator(seed).fit_transform(X)
    expected = estimator(seed).fit_transform(X.toarray().astype(np.float64))
    np.testing.assert_allclose(Z @ Z.T, expected @ expected.T, atol=1e-8)


def test_features_of_new_rows_have_their_own_precision(X):
    wide, narrow = estimator().fit(X), estimator().fit(X.astype(np.float32))
    assert wide.transform(X.astype(np.float32)).dtype == np.float32
    assert narrow.transform(X).dtype == np.float64


def test_float32_rows_far_from_the_origin(X, seed):
    """Without centring, float32 loses the distances of such rows altogether."""
    near = estimator(seed).fit(X.astype(np.float32))
    far = (X + 1000).astype(np.float32)
    fitted = estimator(sampler=near.component_indices_).fit(far)
    Z = fitted.transform(far).astype(np.float64)
    K = rbf_kernel(far.astype(np.float64))
    S = near.component_indices_
    expected = K[:, S] @ np.linalg.solve(K[np.ix_(S, S)], K[S])
    np.testing.assert_allclose(Z @ Z.T, expected, atol=1e-3)


def test_one_outlier_does_not_spoil_the_other_float32_rows(X, seed):
    X[7] *= 1e5
    X = X.astype(np.float32)
    fitted = estimator(seed, sampler=np.arange(20)).fit(X)
    Z = fitted.transform(X).astype(np.float64)
    K = rbf_kernel(X.astype(np.float64))
    S = np.arange(20)
    expected = K[:, S] @ np.linalg.solve(K[np.ix_(S, S)], K[S])
    np.testing.assert_allclose(Z @ Z.T, expected, atol=1e-3)


# Data frames


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_give_their_feature_names(X, frame):
    table = frame(dict(zip("abcd", X.T, strict=True)))
    fitted = estimator().fit(table)
    assert fitted.n_features_in_ == 4
    assert list(fitted.feature_names_in_) == list("abcd")
    np.testing.assert_array_equal(
        fitted.transform(table), estimator().fit(X).transform(X)
    )


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_other_feature_names_are_refused(X, frame):
    fitted = estimator().fit(frame(dict(zip("abcd", X.T, strict=True))))
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.transform(frame(dict(zip("abce", X.T, strict=True))))
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.transform(frame(dict(zip("dcba", X.T, strict=True))))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_rows_without_names_warn_after_a_fit_with_names(X, frame):
    fitted = estimator().fit(frame(dict(zip("abcd", X.T, strict=True))))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        fitted.transform(X)


def test_names_warn_after_a_fit_without_names(X):
    fitted = estimator().fit(X)
    with pytest.warns(UserWarning, match="fitted without feature names"):
        fitted.transform(pd.DataFrame(X, columns=list("abcd")))


def test_names_are_forgotten_by_the_next_fit(X):
    fitted = estimator().fit(pd.DataFrame(X, columns=list("abcd")))
    fitted.fit(X[:, :3])
    assert not hasattr(fitted, "feature_names_in_")
    assert fitted.transform(X[:, :3]).shape == (N_ROWS, N_COMPONENTS)


def test_frames_of_mixed_numbers(X):
    table = pd.DataFrame(
        {
            "a": X[:, 0].astype(np.float32),
            "b": (3 * X[:, 1]).astype(int),
            "c": X[:, 2] > 0,
        }
    )
    Z = estimator().fit_transform(table)
    expected = estimator().fit_transform(table.to_numpy(dtype=np.float64))
    assert Z.dtype in (np.float32, np.float64)
    np.testing.assert_allclose(Z @ Z.T, expected @ expected.T, atol=1e-4)


# Objects


def three_mers(x, y):
    """The number of pairs of equal substrings of length 3."""
    parts = [[word[i : i + 3] for i in range(len(word) - 2)] for word in (x, y)]
    return float(sum(a == b for a in parts[0] for b in parts[1]))


def sequences(rng, n):
    """Strings of two kinds, told apart by what they repeat."""
    y = np.arange(n) % 2
    words = []
    for kind in y:
        letters = rng.choice(list("ACGT"), 20)
        at = rng.integers(0, 14)
        letters[at : at + 6] = list("GATTAC" if kind else "CCGGTT")
        words.append("".join(letters))
    return words, y


@pytest.fixture
def words(rng):
    return sequences(rng, 60)[0]


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series])
def test_strings_end_to_end(words, seed, kind):
    fitted = estimator(seed, kernel=three_mers).fit(kind(words))
    assert list(fitted.components_) == [words[i] for i in fitted.component_indices_]
    K = np.array([[three_mers(x, y) for y in words] for x in words])
    S = fitted.component_indices_
    inverse = np.linalg.pinv(K[np.ix_(S, S)], rcond=1e-12, hermitian=True)
    Z = fitted.transform(kind(words))
    assert Z.dtype == np.float64
    np.testing.assert_allclose(Z @ Z.T, K[:, S] @ inverse @ K[S], atol=1e-6)
    again = estimator(seed, kernel=three_mers).fit_transform(kind(words))
    np.testing.assert_allclose(again, Z, atol=1e-9)
    error = 1 - np.sum(Z**2) / np.trace(K)
    assert float(fitted.approximation_error_) == pytest.approx(error, abs=1e-9)


def test_strings_as_an_array_of_objects(words):
    rows = np.array(words, dtype=object)
    fitted = estimator(kernel=three_mers).fit(rows)
    expected = estimator(kernel=three_mers).fit(words)
    np.testing.assert_array_equal(fitted.transform(rows), expected.transform(words))


def test_new_strings(words):
    fitted = estimator(kernel=three_mers).fit(words)
    Z = fitted.transform(["GATTACA", "", "CCGGTTCCGG"])
    assert Z.shape == (3, N_COMPONENTS)
    np.testing.assert_array_equal(Z[1], 0)


def test_pipeline_classifies_strings(rng):
    X, y = sequences(rng, 80)
    X_new, y_new = sequences(rng, 40)
    model = make_pipeline(
        Nystroem(three_mers, n_components=60, random_state=0), RidgeClassifier()
    ).fit(X, y)
    assert model.score(X_new, y_new) > 0.8


def test_strings_with_a_block_kernel(words, seed):
    def block(xs, ys):
        return np.array([[three_mers(x, y) for y in ys] for x in xs])

    # Other samplers ask less of a function of pairs, whose every call counts.
    options = {"sampler": "recursive"}
    pairwise = estimator(seed, kernel=three_mers, **options).fit(words)
    blockwise = estimator(seed, kernel=kernels.blockwise(block), **options).fit(words)
    np.testing.assert_allclose(
        blockwise.transform(words), pairwise.transform(words), atol=1e-9
    )


def test_sums_of_kernels_on_strings(words):
    kernel = kernels.Pairwise(three_mers) + 2.0 * kernels.Pairwise(three_mers)
    Z = estimator(kernel=kernel).fit_transform(words)
    plain = estimator(kernel=three_mers).fit_transform(words)
    np.testing.assert_allclose(Z @ Z.T, 3 * plain @ plain.T, atol=1e-8)


def test_strings_as_landmarks(words):
    fitted = estimator(kernel=three_mers, sampler=["GATTAC", "CCGGTT"]).fit(words)
    assert fitted.components_ == ["GATTAC", "CCGGTT"]
    assert fitted.transform(words).shape == (60, 2)


@pytest.mark.parametrize(
    ("rows", "kernel"),
    [
        ([frozenset(range(i, i + 5)) for i in range(20)], lambda x, y: len(x & y)),
        ([{"value": i} for i in range(20)], lambda x, y: x["value"] * y["value"]),
        ([list(range(i + 1)) for i in range(20)], lambda x, y: min(len(x), len(y))),
        ([(i, "text") for i in range(20)], lambda x, y: float(x == y)),
    ],
    ids=["sets", "dicts", "lists of many lengths", "tuples with text"],
)
def test_rows_of_other_kinds(rows, kernel):
    fitted = Nystroem(kernel, n_components=5, random_state=0)
    Z = fitted.fit_transform(rows)
    assert Z.shape == (20, 5)
    assert np.isfinite(Z).all()
    np.testing.assert_allclose(fitted.transform(rows[:3]), Z[:3], atol=1e-9)


def test_objects_have_no_number_of_features(words):
    assert not hasattr(estimator(kernel=three_mers).fit(words), "n_features_in_")


# Kernels


NAMED = {
    "rbf": {"gamma": 0.3},
    "laplacian": {"gamma": 0.3},
    "polynomial": {"gamma": 0.3, "degree": 2, "coef0": 0.5},
    "poly": {"degree": 3},
    "linear": {},
    "cosine": {},
    "chi2": {"gamma": 0.3},
}


@pytest.mark.parametrize("name", NAMED)
def test_named_kernels_are_scikit_learns(X, name):
    X = np.abs(X)
    fitted = estimator(kernel=name, **NAMED[name]).fit(X)
    S = fitted.component_indices_
    K = pairwise_kernels(X, X[S], metric=name, filter_params=True, **NAMED[name])
    expected = K @ fitted.normalization_.T
    np.testing.assert_allclose(fitted.transform(X), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rbf", kernels.RBF(0.25)),
        ("laplacian", kernels.Laplacian(0.25)),
        ("matern12", kernels.Matern(np.sqrt(2), nu=0.5)),
        ("matern32", kernels.Matern(np.sqrt(2), nu=1.5)),
        ("matern52", kernels.Matern(np.sqrt(2), nu=2.5)),
        ("rational_quadratic", kernels.RationalQuadratic(np.sqrt(2))),
        ("linear", kernels.Linear()),
        ("cosine", kernels.Cosine()),
    ],
)
def test_kernel_by_name_is_kernel_by_value(X, name, value):
    by_name, by_value = estimator(kernel=name).fit(X), estimator(kernel=value).fit(X)
    Z, W = by_name.transform(X), by_value.transform(X)
    np.testing.assert_allclose(Z @ Z.T, W @ W.T, atol=1e-9)
    assert clone(by_value).kernel == value


def test_sums_and_products_of_kernels(X):
    kernel = kernels.RBF(0.1) * kernels.Linear() + 0.5 * kernels.Laplacian(0.2)
    fitted = estimator(kernel=kernel).fit(X)
    S = fitted.component_indices_
    K = rbf_kernel(X, gamma=0.1) * (X @ X.T)
    K += 0.5 * pairwise_kernels(X, metric="laplacian", gamma=0.2)
    Z = fitted.transform(X)
    expected = K[:, S] @ np.linalg.solve(K[np.ix_(S, S)], K[S])
    np.testing.assert_allclose(Z @ Z.T, expected, atol=1e-8)
    assert str(kernel) in str(fitted.landmarks_)


def dot(x, y):
    return float(np.dot(x, y))


def blocks_of_dot(X, Y):
    return X @ Y.T


@pytest.mark.parametrize(
    "kernel",
    [
        dot,
        np.dot,
        kernels.blockwise(blocks_of_dot),
        kernels.blockwise(blocks_of_dot, diag=lambda X: np.sum(X * X, axis=1)),
    ],
    ids=["pairs", "numpy.dot", "blocks", "blocks with diagonal"],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_kernels_of_the_user(X, kernel, dtype):
    X = X[:50].astype(dtype)
    options = {"sampler": [1, 4, 9, 16]}
    Z = estimator(kernel=kernel, **options).fit_transform(X)
    expected = estimator(kernel="linear", **options).fit_transform(X)
    assert Z.dtype == dtype
    tolerance = 1e-9 if dtype == np.float64 else 1e-3
    np.testing.assert_allclose(Z, expected, atol=tolerance)


def test_as_many_landmarks_as_features_do_not_confuse_numpy_dot(X):
    """np.dot of two blocks has the right shape there, and the wrong values."""
    fitted = estimator(kernel=np.dot, n_components=N_FEATURES).fit(X)
    Z = fitted.transform(X)
    np.testing.assert_allclose(Z @ Z.T, X @ X.T, atol=1e-8)


def test_kernel_of_the_user_on_csr_rows(X):
    def of_sparse(x, y):
        return float((x @ y.T).toarray().item())

    options = {"sampler": [1, 4, 9, 16]}
    Z = estimator(kernel=of_sparse, **options).fit_transform(sp.csr_array(X[:40]))
    expected = estimator(kernel="linear", **options).fit_transform(X[:40])
    np.testing.assert_allclose(Z, expected, atol=1e-8)


def test_kernel_of_the_user_with_parameters(X):
    def power(x, y, exponent):
        return float(np.dot(x, y) + 1) ** exponent

    options = {"sampler": [1, 4, 9]}
    params = {"exponent": 2}
    Z = estimator(kernel=power, kernel_params=params, **options).fit_transform(X[:40])
    expected = estimator(
        kernel="polynomial", gamma=1, coef0=1, degree=2, **options
    ).fit_transform(X[:40])
    np.testing.assert_allclose(Z, expected, atol=1e-8)


GAUSSIAN_PROCESS = [
    (gp.RBF(1.5), lambda X: rbf_kernel(X, gamma=1 / (2 * 1.5**2))),
    (
        gp.ConstantKernel(2.0) * gp.RBF([1.0, 2.0, 3.0, 4.0]) + gp.DotProduct(),
        gp.ConstantKernel(2.0) * gp.RBF([1.0, 2.0, 3.0, 4.0]) + gp.DotProduct(),
    ),
    (gp.Matern(2.0, nu=1.5), gp.Matern(2.0, nu=1.5)),
]


@pytest.mark.parametrize(("kernel", "matrix"), GAUSSIAN_PROCESS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_kernels_of_gaussian_processes(X, kernel, matrix, dtype):
    X = X.astype(dtype)
    fitted = estimator(kernel=kernel).fit(X)
    S = fitted.component_indices_
    K = matrix(X.astype(np.float64))
    Z = fitted.transform(X)
    assert Z.dtype == dtype
    expected = K[:, S] @ np.linalg.solve(K[np.ix_(S, S)], K[S])
    tolerance = 1e-7 if dtype == np.float64 else 1e-2
    np.testing.assert_allclose(Z @ Z.T, expected, atol=tolerance)


def test_grid_search_over_the_length_scale_of_a_gaussian_process_kernel(X):
    y = (np.linalg.norm(X, axis=1) > 2).astype(int)
    model = make_pipeline(estimator(kernel=gp.RBF(1.0)), RidgeClassifier())
    grid = {"nystroem__kernel__length_scale": [1e-3, 2.0]}
    search = GridSearchCV(model, grid, cv=3).fit(X, y)
    assert search.best_params_ == {"nystroem__kernel__length_scale": 2.0}


# Widths


def test_default_gamma_is_scikit_learns(X):
    assert estimator().fit(X).landmarks_.kernel.gamma == 1 / N_FEATURES
    chi2 = estimator(kernel="chi2").fit(np.abs(X))
    assert chi2.landmarks_.kernel.gamma == 1.0


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_gamma_scale_is_that_of_support_vector_machines(X, shift):
    X = 3 * X + shift
    gamma = estimator(gamma="scale").fit(X).landmarks_.kernel.gamma
    assert gamma == pytest.approx(1 / (N_FEATURES * X.var()), rel=1e-6)


def test_gamma_scale_of_csr_rows(X):
    X = np.where(np.abs(X) > 1, X, 0)
    dense = estimator(gamma="scale").fit(X).landmarks_.kernel.gamma
    sparse = estimator(gamma="scale").fit(sp.csr_array(X)).landmarks_.kernel.gamma
    assert sparse == pytest.approx(dense)


def test_gamma_median_is_from_the_median_distance(X):
    distances = np.linalg.norm(X[:, None] - X, axis=2)[np.triu_indices(N_ROWS, 1)]
    expected = 1 / (2 * np.median(distances) ** 2)
    gamma = estimator(gamma="median").fit(X).landmarks_.kernel.gamma
    assert gamma == pytest.approx(expected)
    sparse = estimator(gamma="median").fit(sp.csr_array(X)).landmarks_.kernel.gamma
    assert sparse == pytest.approx(expected)


def test_gamma_median_of_the_laplacian_is_from_city_block_distances(X):
    distances = np.abs(X[:, None] - X).sum(axis=2)[np.triu_indices(N_ROWS, 1)]
    fitted = estimator(kernel="laplacian", gamma="median").fit(X)
    assert fitted.landmarks_.kernel.gamma == pytest.approx(1 / np.median(distances))


def test_gamma_median_makes_the_kernel_free_of_units(X, seed):
    """Rows in metres and in kilometres have the same features."""
    options = {"gamma": "median", "sampler": [1, 2, 3]}
    for kernel in ("rbf", "laplacian", "matern32", "rational_quadratic"):
        Z = estimator(seed, kernel=kernel, **options).fit_transform(X)
        W = estimator(seed, kernel=kernel, **options).fit_transform(1000 * X)
        np.testing.assert_allclose(Z, W, atol=1e-9)


@pytest.mark.parametrize("rule", ["scale", "median"])
def test_gamma_of_constant_rows_is_finite(rule):
    fitted = estimator(gamma=rule, n_components=3).fit(np.ones((20, 2)))
    assert np.isfinite(fitted.landmarks_.kernel.gamma)
    assert np.isfinite(fitted.transform(np.ones((2, 2)))).all()


@pytest.mark.parametrize("kind", [list, tuple, np.array])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_gamma_for_each_feature(X, kind, storage):
    gamma = [0.1, 0.0, 0.5, 2.0]
    fitted = estimator(gamma=kind(gamma)).fit(storage(X))
    scaled = rbf_kernel(X * np.sqrt(gamma), gamma=1.0)
    S = fitted.component_indices_
    expected = scaled[:, S] @ fitted.normalization_.T
    np.testing.assert_allclose(fitted.transform(storage(X)), expected, atol=1e-7)


# Precomputed


@pytest.fixture
def K(X):
    return rbf_kernel(X)


def precomputed(**options):
    options = {"n_components": N_COMPONENTS, "random_state": 0} | options
    return Nystroem("precomputed", **options)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_precomputed_gives_what_its_rows_give(X, K, dtype, order):
    K = np.asarray(K, dtype=dtype, order=order)
    fitted = precomputed(sampler=np.arange(10)).fit(K)
    assert fitted.transform(K).dtype == dtype
    expected = estimator(sampler=np.arange(10)).fit_transform(X)
    tolerance = 1e-8 if dtype == np.float64 else 1e-3
    np.testing.assert_allclose(fitted.transform(K), expected, atol=tolerance)
    np.testing.assert_allclose(
        precomputed(sampler=np.arange(10)).fit_transform(K), expected, atol=tolerance
    )
    np.testing.assert_array_equal(fitted.components_, K[:10, :10])
    np.testing.assert_array_equal(fitted.component_indices_, np.arange(10))


def test_precomputed_chooses_what_its_rows_choose(X, K, seed):
    by_matrix = precomputed(random_state=seed).fit(K)
    by_rows = estimator(seed).fit(X)
    np.testing.assert_array_equal(
        by_matrix.component_indices_, by_rows.component_indices_
    )
    assert float(by_matrix.approximation_error_) == pytest.approx(
        float(by_rows.approximation_error_)
    )


@pytest.mark.parametrize("m", [1, 7, 15, 300])
def test_precomputed_new_rows_against_all_or_the_landmarks(rng, X, K, m):
    fitted = precomputed().fit(K)
    Y = rng.standard_normal((m, N_FEATURES))
    against_all = rbf_kernel(Y, X)
    against_landmarks = against_all[:, fitted.component_indices_]
    Z = fitted.transform(against_all)
    assert Z.shape == (m, N_COMPONENTS)
    np.testing.assert_array_equal(
        fitted.transform(PrecomputedAtLandmarks(against_landmarks)), Z
    )
    by_rows = estimator(sampler=fitted.component_indices_).fit(X)
    np.testing.assert_allclose(by_rows.transform(Y), Z, atol=1e-7)


def test_precomputed_new_rows_as_lists_and_frames(K):
    fitted = precomputed().fit(K)
    Z = fitted.transform(K[:5])
    part = K[:5, fitted.component_indices_]
    np.testing.assert_array_equal(fitted.transform(K[:5].tolist()), Z)
    np.testing.assert_array_equal(
        fitted.transform(PrecomputedAtLandmarks(part.tolist())), Z
    )
    np.testing.assert_array_equal(
        fitted.transform(PrecomputedAtLandmarks(pd.DataFrame(part))), Z
    )


@pytest.mark.parametrize("kind", [np.asarray, np.ndarray.tolist, pd.DataFrame])
def test_precomputed_columns_are_not_guessed_from_the_width(rng, K, kind):
    """As many training rows as landmarks are no landmarks: refused, not wrong."""
    fitted = precomputed().fit(K)
    message = (
        rf"X has {N_COMPONENTS} features, but .* {N_ROWS}: .*all training rows.*"
        r"kernels\.PrecomputedAtLandmarks\(X\)"
    )
    for columns in (np.arange(N_COMPONENTS), fitted.component_indices_):
        with pytest.raises(ValueError, match=message):
            fitted.transform(kind(K[:5, columns]))


@pytest.mark.parametrize("width", [1, N_COMPONENTS - 1, N_COMPONENTS + 1, N_ROWS])
def test_precomputed_values_at_other_points_than_landmarks(K, width):
    fitted = precomputed().fit(K)
    message = rf"AtLandmarks has values of shape \(5, {width}\).* {N_COMPONENTS}"
    with pytest.raises(ValueError, match=message):
        fitted.transform(PrecomputedAtLandmarks(K[:5, :width]))


def test_values_at_landmarks_of_a_kernel_that_is_not_precomputed(X, K):
    fitted = estimator().fit(X)
    with pytest.raises(ValueError, match=r"AtLandmarks is for kernel='precomputed'"):
        fitted.transform(PrecomputedAtLandmarks(K[:5, fitted.component_indices_]))


@pytest.mark.parametrize(
    "kind", [sp.csr_array, lambda K: PrecomputedAtLandmarks(sp.csr_array(K))]
)
def test_precomputed_values_of_new_rows_that_are_sparse(K, kind):
    with pytest.raises(ValueError, match=r"dense array.* sparse matrix.*toarray"):
        precomputed().fit(K).transform(kind(K[:5]))


def test_precomputed_values_of_new_rows_in_a_file(K, tmp_path):
    np.save(tmp_path / "new.npy", K[:5])
    with pytest.raises(ValueError, match=r"dense.* a source, or a file\. Load it"):
        precomputed().fit(K).transform(tmp_path / "new.npy")


def test_precomputed_never_guesses_when_all_rows_are_landmarks(K):
    """(m, n) and (m, s) look the same: columns are the training rows, in order."""
    K = K[:20, :20]
    rows = np.random.default_rng(0).permutation(20)
    fitted = precomputed(n_components=20, sampler=rows).fit(K)
    np.testing.assert_array_equal(fitted.component_indices_, rows)
    Z = fitted.transform(K)
    np.testing.assert_allclose(Z @ Z.T, K, atol=1e-8)
    np.testing.assert_allclose(Z, precomputed(sampler=rows).fit_transform(K))


@pytest.mark.parametrize("n_components", [1, 299, 300])
def test_precomputed_with_few_and_all_rows_as_landmarks(K, n_components):
    Z = precomputed(n_components=n_components).fit_transform(K)
    assert Z.shape == (N_ROWS, n_components)
    assert np.linalg.eigvalsh(K - Z @ Z.T).min() >= -1e-7


def test_precomputed_matrix_is_not_modified(K):
    before = K.copy()
    precomputed().fit(K).transform(K)
    np.testing.assert_array_equal(K, before)


def test_precomputed_integers():
    X = np.array([[0, 1], [1, 0], [1, 1], [2, 1]])
    Z = precomputed(n_components=3).fit_transform(X @ X.T)
    assert Z.dtype == np.float64
    np.testing.assert_allclose(Z @ Z.T, X @ X.T, atol=1e-9)
