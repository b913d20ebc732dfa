"""Clusters by normalised cuts, against dense eigenvectors and spectral clustering."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.cluster import SpectralClustering
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.manifold import spectral_embedding
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from threadpoolctl import threadpool_limits

import nystrom
from nystrom import KernelKMeans, select_landmarks
from nystrom.engines import Threads
from nystrom.kernels import PrecomputedAtLandmarks
from nystrom.models.spectral_embedding import embed_rows, fit_spectral_embedding
from nystrom.sources import as_source

N_ROWS, GAMMA = 600, 20.0


@pytest.fixture(autouse=True)
def one_thread():
    """Many small matrices: threads inside BLAS and k-means only wait for each other."""
    with threadpool_limits(1):
        yield


def circles(seed, n=N_ROWS):
    return make_circles(n, factor=0.3, noise=0.05, random_state=seed)


def moons(seed, n=N_ROWS):
    return make_moons(n, noise=0.05, random_state=seed)


def blobs(seed, n=300, spread=0.5):
    """Three clouds whose affinities with each other are 0 up to rounding."""
    centers = [[0, 0], [20, 0], [0, 20]]
    return make_blobs(n, centers=centers, cluster_std=spread, random_state=seed)


def cutter(n_clusters=2, seed=0, **options):
    options = {"gamma": GAMMA, "n_landmarks": N_ROWS // 10} | options
    return KernelKMeans(
        n_clusters, affinity_normalize=True, random_state=seed, **options
    )


def embedded(X, n_components, landmarks, weights=None, **options):
    """The function under the estimator: (map, rows)."""
    chosen = select_landmarks(X, sampler=landmarks, sample_weight=weights, **options)
    return fit_spectral_embedding(
        chosen, as_source(X, weights), n_components, Threads(1)
    )


def dense_eigenpairs(K, n_components):
    """Of D^(−½)KD^(−½), largest first, and D's diagonal."""
    d = K.sum(axis=1)
    values, vectors = np.linalg.eigh(K / np.sqrt(np.outer(d, d)))
    leading = np.arange(len(K))[::-1][:n_components]
    return values[leading], vectors[:, leading], d


def signed_as(found, expected):
    """`found` with the columns' signs turned to those of `expected`."""
    return found * np.sign(np.einsum("ij,ij->j", found, expected))


# Against spectral clustering


@pytest.mark.parametrize("make", [circles, moons])
def test_shapes_are_separated_as_by_spectral_clustering(seed, make):
    X, y = make(seed)
    theirs = SpectralClustering(2, gamma=GAMMA, random_state=seed).fit(X)
    mine = cutter(seed=seed).fit(X)
    assert len(mine.landmarks_) <= N_ROWS // 10
    assert adjusted_rand_score(y, mine.labels_) >= 0.98
    assert adjusted_rand_score(theirs.labels_, mine.labels_) >= 0.98


@pytest.mark.parametrize("make", [circles, moons])
def test_without_normalisation_they_are_not_separated(seed, make):
    """The data sets above do need it."""
    X, y = make(seed)
    plain = cutter(seed=seed, n_init=5).set_params(affinity_normalize=False).fit(X)
    assert adjusted_rand_score(y, plain.labels_) < 0.9


@pytest.mark.parametrize("make", [circles, moons])
def test_new_rows_get_the_labels_of_their_shape(seed, make):
    X, y = make(seed)
    model = cutter(seed=seed).fit(X)
    X_new, y_new = make(seed + 1000, 200)
    found = model.predict(X_new)
    assert adjusted_rand_score(np.r_[y, y_new], np.r_[model.labels_, found]) >= 0.97


@pytest.mark.parametrize("n_clusters", [2, 5])
def test_labels_are_predictions_of_the_training_rows(seed, n_clusters):
    X, _ = moons(seed)
    model = cutter(n_clusters, seed).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(model.predict(X[40:45]), model.labels_[40:45])
    np.testing.assert_array_equal(
        cutter(n_clusters, seed).fit_predict(X), model.labels_
    )


def test_rows_near_training_rows_get_their_labels(seed):
    X, _ = circles(seed)
    model = cutter(seed=seed).fit(X)
    near = X + 1e-5 * np.random.default_rng(seed).standard_normal(X.shape)
    np.testing.assert_array_equal(model.predict(near), model.labels_)


# The embedding


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_with_all_rows_it_is_the_dense_eigenvectors(rng, kernel):
    X = rng.uniform(0, 3, (120, 2))
    gamma = 5.0 if kernel == "rbf" else 1.0
    evaluate = rbf_kernel if kernel == "rbf" else laplacian_kernel
    values, vectors, d = dense_eigenpairs(evaluate(X, gamma=gamma), 5)
    options = {"kernel": kernel, "gamma": gamma}
    known, rows = embedded(X, 5, np.arange(120), **options)
    assert rows.shape == (120, 5)
    np.testing.assert_allclose(known.values, values, atol=1e-7)
    assert known.values[0] == pytest.approx(1, abs=1e-9)
    expected = vectors / np.sqrt(d)[:, None]
    size = np.abs(expected).max()
    np.testing.assert_allclose(signed_as(rows, expected), expected, atol=1e-5 * size)
    # The first is constant: D^½1 is the eigenvector of 1.
    np.testing.assert_allclose(rows[:, 0], rows[0, 0], rtol=1e-5)


def test_it_is_that_of_scikit_learn_up_to_scale(seed):
    """Who leaves the diagonal out of the degrees, of which it is a hundredth."""
    X, _ = make_blobs(500, centers=4, cluster_std=1.5, random_state=seed)
    K = rbf_kernel(X, gamma=0.05)
    theirs = spectral_embedding(K, n_components=3, drop_first=False, random_state=0)
    _, mine = embedded(X, 3, np.arange(500), kernel="rbf", gamma=0.05)
    for theirs_j, mine_j in list(zip(theirs.T, mine.T, strict=True))[1:]:
        assert abs(np.corrcoef(theirs_j, mine_j)[0, 1]) > 0.99
    assert np.ptp(mine[:, 0]) < 1e-6 * abs(mine[0, 0])


def test_it_comes_closer_with_more_landmarks(seed):
    X, _ = moons(seed)
    values, vectors, d = dense_eigenpairs(rbf_kernel(X, gamma=5.0), 4)
    expected = vectors / np.sqrt(d)[:, None]
    angles = []
    for s in (10, 30, 100):
        rows_of_landmarks = np.arange(0, N_ROWS, N_ROWS // s)
        known, rows = embedded(X, 4, rows_of_landmarks, kernel="rbf", gamma=5.0)
        angles.append(scipy.linalg.subspace_angles(rows, expected).max())
        assert known.values.max() < 1 + 1e-6
    # 0.1 and 0.87 at most, for a hundred moons; the last angle hangs on their gaps.
    assert angles[2] < 0.2 * angles[1] < 0.2 * angles[0]
    np.testing.assert_allclose(known.values, values, atol=1e-3)


def test_new_rows_are_embedded_where_the_same_training_rows_are(seed):
    X, _ = moons(seed)
    landmarks = select_landmarks(X, kernel="rbf", gamma=5.0, n_landmarks=30)
    known, rows = fit_spectral_embedding(landmarks, as_source(X), 3, Threads(1))
    again = embed_rows(known, landmarks, as_source(X[100:200]), Threads(1))
    np.testing.assert_allclose(again, rows[100:200], rtol=1e-9)


def test_weights_count_rows_as_often(rng):
    X = rng.uniform(0, 3, (100, 2))
    counts = rng.integers(0, 4, 100)
    landmarks = np.flatnonzero(counts)[:40]
    copies = np.repeat(np.arange(100), counts)
    first = np.searchsorted(copies, landmarks)
    options = {"kernel": "rbf", "gamma": 3.0}
    weighted = embedded(X, 4, landmarks, counts.astype(float), **options)
    repeated = embedded(X[copies], 4, first, **options)
    np.testing.assert_allclose(weighted[0].values, repeated[0].values, rtol=1e-7)
    found = signed_as(weighted[1][copies], repeated[1])
    size = np.abs(repeated[1]).max()
    np.testing.assert_allclose(found, repeated[1], atol=1e-6 * size)


def test_clusters_of_weighted_rows_are_those_of_repeated_ones(rng, seed):
    X, _ = moons(seed)
    counts = rng.integers(0, 3, N_ROWS)
    landmarks = np.flatnonzero(counts)[::8]
    copies = np.repeat(np.arange(N_ROWS), counts)
    first = np.searchsorted(copies, landmarks)
    weighted = cutter(seed=seed, sampler=landmarks).fit(X, sample_weight=counts)
    repeated = cutter(seed=seed, sampler=first).fit(X[copies])
    same = adjusted_rand_score(weighted.labels_[copies], repeated.labels_)
    assert same == pytest.approx(1)
    assert weighted.inertia_ == pytest.approx(repeated.inertia_, rel=1e-4)
    # Rows of weight 0 have labels too, as new rows would.
    found = weighted.predict(X[counts == 0])
    np.testing.assert_array_equal(weighted.labels_[counts == 0], found)
    assert len(np.unique(found)) == 2


def test_the_scale_of_the_kernel_is_that_of_the_distances_only(seed):
    """u/√d of 4K is half of that of K."""
    X, _ = moons(seed, 300)
    K = rbf_kernel(X, gamma=GAMMA)
    options = {"kernel": "precomputed", "sampler": np.arange(0, 300, 5)}
    plain = cutter(seed=seed, **options).fit(K)
    scaled = cutter(seed=seed, **options).fit(4 * K)
    assert adjusted_rand_score(plain.labels_, scaled.labels_) == pytest.approx(1)
    assert scaled.inertia_ == pytest.approx(plain.inertia_ / 4, rel=1e-6)


def test_transform_is_the_distance_to_centers_in_the_embedding(seed):
    X, _ = moons(seed)
    model = cutter(3, seed).fit(X)
    found = model.transform(X)
    assert found.shape == (N_ROWS, 3)
    np.testing.assert_array_equal(found.argmin(axis=1), model.labels_)
    assert np.sum(found.min(axis=1) ** 2) == pytest.approx(model.inertia_)
    assert model.score(X) == pytest.approx(-model.inertia_)
    # Centres are means, dense: distances follow from the embedded rows.
    rows = nystrom.spectral_embedding(
        X, 3, landmarks=model.landmarks_, drop_first=False, random_state=seed
    )
    for j in range(3):
        center = rows[model.labels_ == j].mean(axis=0)
        expected = np.linalg.norm(rows - center, axis=1)
        np.testing.assert_allclose(found[:, j], expected, atol=1e-2 * expected.max())


# The public function


@pytest.mark.parametrize("drop_first", [False, True])
def test_the_function_is_the_dense_eigenvectors_with_or_without_the_first(
    rng, drop_first
):
    X = rng.uniform(0, 3, (120, 2))
    _, vectors, d = dense_eigenpairs(rbf_kernel(X, gamma=5.0), 4 + drop_first)
    expected = (vectors / np.sqrt(d)[:, None])[:, int(drop_first) :]
    found = nystrom.spectral_embedding(
        X, 4, gamma=5.0, sampler=np.arange(120), drop_first=drop_first
    )
    assert found.shape == (120, 4)
    size = np.abs(expected).max()
    np.testing.assert_allclose(signed_as(found, expected), expected, atol=1e-5 * size)


def test_the_function_takes_landmarks_chosen_before(seed):
    X, y = moons(seed)
    landmarks = select_landmarks(
        X, kernel="rbf", gamma=GAMMA, n_landmarks=60, random_state=seed
    )
    given = nystrom.spectral_embedding(X, 2, landmarks=landmarks)
    chosen = nystrom.spectral_embedding(
        X, 2, gamma=GAMMA, n_landmarks=60, random_state=seed
    )
    np.testing.assert_allclose(signed_as(given, chosen), chosen, rtol=1e-6, atol=1e-12)
    # The first that is not constant tells the moons apart.
    assert adjusted_rand_score(y, given[:, 0] > given[:, 0].mean()) >= 0.98
    K = rbf_kernel(X, gamma=GAMMA)
    known = {"kernel": "precomputed", "sampler": landmarks.indices}
    by_matrix = nystrom.spectral_embedding(K, 2, **known)
    np.testing.assert_allclose(
        signed_as(by_matrix, chosen), chosen, atol=1e-6 * np.abs(chosen).max()
    )


def test_the_function_has_no_more_columns_than_landmarks(seed):
    X, _ = moons(seed)
    found = nystrom.spectral_embedding(X, 8, gamma=1.0, n_landmarks=4)
    assert found.shape == (N_ROWS, 3)
    assert np.isfinite(found).all()


def test_the_function_refuses_what_the_estimator_does(rng):
    X = rng.standard_normal((50, 2))
    with pytest.raises(ValueError, match="negative values, which are no affinities"):
        nystrom.spectral_embedding(X, 2, kernel="linear")
    for n_components in (0, 2.5):
        with pytest.raises(ValueError, match=r"n_components=.* is not allowed"):
            nystrom.spectral_embedding(X, n_components)


# Kernels that are no affinities


@pytest.mark.parametrize("kernel", ["linear", "cosine", "polynomial"])
def test_negative_kernels_are_refused(rng, kernel):
    X = rng.standard_normal((100, 2))
    model = cutter(kernel=kernel, gamma=1.0, n_landmarks=20)
    known = set(vars(model))
    with pytest.raises(ValueError, match="negative values, which are no affinities"):
        model.fit(X)
    assert set(vars(model)) == known
    model.fit(np.abs(X))
    assert set(model.labels_) == {0, 1}


def test_a_refused_kernel_leaves_the_fit_before(rng):
    X = rng.uniform(0, 1, (100, 2))
    model = cutter(n_landmarks=20).fit(X)
    expected = model.transform(X)
    model.set_params(kernel="linear")
    with pytest.raises(ValueError, match="negative values"):
        model.fit(X - 0.5)
    model.set_params(kernel="rbf")
    np.testing.assert_array_equal(model.transform(X), expected)


def test_rows_without_any_affinity_are_finite(rng):
    """A row of zeros has a linear kernel of 0 with all rows, itself included."""
    X = np.abs(rng.standard_normal((100, 3)))
    X[17] = 0
    model = cutter(kernel="linear", n_landmarks=20).fit(X)
    assert np.isfinite(model.transform(X)).all()
    np.testing.assert_array_equal(model.predict(X), model.labels_)


# Rows far away, clusters that are few or many


@pytest.mark.parametrize("among_landmarks", [False, True])
def test_an_isolated_row_breaks_nothing(seed, among_landmarks):
    X, y = moons(seed)
    X = np.vstack([X, [[1e3, 1e3]]])
    landmarks = np.arange(0, N_ROWS, 8)
    if among_landmarks:
        landmarks = np.append(landmarks, N_ROWS)
    # As a landmark the row is a component of its own.
    model = cutter(2 + among_landmarks, seed, sampler=landmarks, n_init=3).fit(X)
    assert np.isfinite(model.transform(X)).all()
    assert adjusted_rand_score(y, model.labels_[:-1]) >= 0.98
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    if among_landmarks:
        assert not (model.labels_[:-1] == model.labels_[-1]).any()


def test_a_new_row_far_from_all_is_finite(seed):
    model = cutter(seed=seed).fit(moons(seed)[0])
    far = np.array([[1e4, -1e4], [50.0, 50.0]])
    assert np.isfinite(model.transform(far)).all()
    assert set(model.predict(far)) <= {0, 1}


def test_a_row_with_hardly_any_affinity_is_near_the_origin(seed):
    """Its degree is k(x, x) = 1, not the 1e-9 that it has with others."""
    X, _ = moons(seed)
    landmarks = select_landmarks(X, kernel="rbf", gamma=5.0, n_landmarks=30)
    known, rows = fit_spectral_embedding(landmarks, as_source(X), 2, Threads(1))
    away = X[:1] + np.array([0.0, 2 + np.sqrt(np.log(1e9) / 5)])
    size = np.linalg.norm(embed_rows(known, landmarks, as_source(away), Threads(1)))
    assert 0 < size < 1e-3 * np.linalg.norm(rows, axis=1).min()


def test_components_without_any_affinity_are_the_clusters(seed):
    X, y = blobs(seed)
    options = {"gamma": 0.5, "n_landmarks": 30}
    model = cutter(3, seed, **options).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    known, rows = embedded(X, 4, model.landmarks_.indices, kernel="rbf", gamma=0.5)
    np.testing.assert_allclose(known.values[:3], 1, atol=1e-6)
    assert known.values[3] < 0.99
    # Constant on every component.
    for j in range(3):
        assert np.ptp(rows[y == j][:, :3], axis=0).max() < 1e-2 * np.abs(rows).max()


def test_more_clusters_than_components_divide_them(seed):
    X, y = blobs(seed)
    model = cutter(6, seed, gamma=0.5, n_landmarks=60, n_init=10).fit(X)
    assert len(np.unique(model.labels_)) == 6
    for j in range(6):
        assert len(set(y[model.labels_ == j])) == 1


def test_fewer_clusters_than_components_join_them(seed):
    X, y = blobs(seed)
    model = cutter(2, seed, gamma=0.5, n_landmarks=30, n_init=10).fit(X)
    assert len(np.unique(model.labels_)) == 2
    for j in range(3):
        assert len(set(model.labels_[y == j])) == 1


def test_more_clusters_than_landmarks(seed):
    X, _ = moons(seed)
    model = cutter(8, seed, n_landmarks=3, gamma=1.0).fit(X)
    assert len(np.unique(model.labels_)) == 8
    assert model.transform(X).shape == (N_ROWS, 8)


def test_one_cluster(seed):
    X, _ = moons(seed)
    model = cutter(1, seed).fit(X)
    np.testing.assert_array_equal(model.labels_, 0)
    assert model.transform(X).shape == (N_ROWS, 1)


def test_more_clusters_than_distinct_rows_warn_with_both_numbers(rng, seed):
    X = np.repeat(rng.uniform(0, 3, (4, 2)), 20, axis=0)
    with pytest.warns(ConvergenceWarning, match=r"clusters \(4\).*n_clusters \(6\)"):
        model = cutter(6, seed, gamma=1.0).fit(X)
    by_row = model.labels_.reshape(4, 20)
    assert (by_row == by_row[:, :1]).all()
    assert np.isfinite(model.transform(X)).all()


def test_more_clusters_than_rows_are_refused(rng):
    with pytest.raises(ValueError, match="n_samples=4 should be >= n_clusters=5"):
        cutter(5).fit(rng.uniform(0, 1, (4, 2)))


def test_rows_without_any_feature_are_one_cluster():
    """The linear kernel of zeros has rank 0."""
    model = cutter(1, kernel="linear").fit(np.zeros((20, 3)))
    np.testing.assert_array_equal(model.labels_, 0)


# What rows may be


def test_float32_rows_give_the_same_clusters(seed):
    X, _ = circles(seed)
    narrow_rows = X.astype(np.float32)
    landmarks = np.arange(0, N_ROWS, 10)
    wide = cutter(seed=seed, sampler=landmarks).fit(X)
    narrow = cutter(seed=seed, sampler=landmarks).fit(narrow_rows)
    assert adjusted_rand_score(wide.labels_, narrow.labels_) >= 0.98
    assert narrow.inertia_ == pytest.approx(wide.inertia_, rel=0.05)
    assert narrow.transform(narrow_rows).dtype == np.float32
    assert wide.transform(X).dtype == np.float64
    np.testing.assert_array_equal(narrow.predict(narrow_rows), narrow.labels_)


@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix])
def test_sparse_rows_are_as_dense_ones(seed, make):
    X, _ = circles(seed)
    landmarks = np.arange(0, N_ROWS, 10)
    dense = cutter(seed=seed, sampler=landmarks).fit(X)
    sparse = cutter(seed=seed, sampler=landmarks).fit(make(X))
    assert adjusted_rand_score(dense.labels_, sparse.labels_) >= 0.98
    assert sparse.inertia_ == pytest.approx(dense.inertia_, rel=1e-4)
    np.testing.assert_array_equal(sparse.predict(make(X)), sparse.labels_)


def test_words_with_a_kernel_of_two_words(seed):
    words = ["ab", "abc", "bca", "xyz", "xy", "zxy"] * 10

    def shared(a, b):
        return float(len(set(a) & set(b)))

    model = cutter(2, seed, kernel=shared, n_landmarks=6).fit(words)
    expected = [word[0] in "xyz" for word in words]
    assert adjusted_rand_score(expected, model.labels_) == 1
    np.testing.assert_array_equal(model.predict(words[:6]), model.labels_[:6])


def test_precomputed_kernel_is_as_its_rows(seed):
    X, y = moons(seed)
    K = rbf_kernel(X, gamma=GAMMA)
    model = cutter(seed=seed, kernel="precomputed").fit(K)
    assert adjusted_rand_score(y, model.labels_) >= 0.98
    by_rows = cutter(seed=seed, sampler=model.landmarks_.indices).fit(X)
    np.testing.assert_array_equal(model.labels_, by_rows.labels_)
    np.testing.assert_array_equal(model.predict(K), model.labels_)
    X_new, _ = moons(seed + 1000, 100)
    against = rbf_kernel(X_new, X, gamma=GAMMA)
    np.testing.assert_array_equal(model.predict(against), by_rows.predict(X_new))


def test_precomputed_new_rows_by_their_values_with_the_landmarks(seed):
    X, _ = moons(seed)
    model = cutter(seed=seed, kernel="precomputed")
    K = rbf_kernel(X, gamma=GAMMA)
    model.fit(K)
    found = model.predict(PrecomputedAtLandmarks(K[:, model.landmarks_.indices]))
    np.testing.assert_array_equal(found, model.labels_)


def test_landmarks_that_were_moved(seed):
    X, y = moons(seed)
    model = cutter(seed=seed, sampler="kmeans").fit(X)
    assert model.landmarks_.indices is None
    assert adjusted_rand_score(y, model.labels_) >= 0.98
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_rows_that_are_not_finite(seed, value, word):
    X, _ = moons(seed)
    fitted = cutter(seed=seed).fit(X)
    X = X.copy()
    X[3, 1] = value
    for method in (cutter().fit, fitted.predict, fitted.transform):
        with pytest.raises(ValueError, match=f"X contains {word}"):
            method(X)


# The same seed, and scikit-learn's tools


def test_the_same_seed_threads_and_memory_maps_give_the_same(seed, tmp_path):
    X, _ = moons(seed, 3000)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    options = {"n_landmarks": 40}
    one = cutter(4, seed, n_jobs=1, **options).fit(X)
    two = cutter(4, seed, n_jobs=2, **options).fit(X)
    stored = cutter(4, seed, n_jobs=1, **options).fit(mapped)
    for other in (two, stored):
        np.testing.assert_array_equal(other.labels_, one.labels_)
        assert other.inertia_ == one.inertia_


def test_restarts_are_never_worse(seed):
    X, _ = circles(seed)
    runs = range(4 * seed, 4 * seed + 4)
    options = {"sampler": np.arange(0, N_ROWS, 10)}
    one = [cutter(9, run, **options).fit(X).inertia_ for run in runs]
    several = [cutter(9, run, n_init=8, **options).fit(X).inertia_ for run in runs]
    assert np.mean(several) <= np.mean(one)  # some circles have but one answer


def test_clone_is_unfitted_and_fits_the_same(seed):
    X, _ = moons(seed)
    fitted = cutter(3, seed).fit(X)
    cloned = clone(fitted)
    with pytest.raises(NotFittedError):
        cloned.predict(X)
    np.testing.assert_array_equal(cloned.fit(X).labels_, fitted.labels_)


def test_pickle_and_model_files(seed, tmp_path):
    X, _ = moons(seed)
    fitted = cutter(3, seed).fit(X)
    nystrom.save(fitted, tmp_path / "model.nystrom")
    restored = [
        pickle.loads(pickle.dumps(fitted)),
        nystrom.load(tmp_path / "model.nystrom"),
    ]
    for model in restored:
        np.testing.assert_array_equal(model.transform(X), fitted.transform(X))
        np.testing.assert_array_equal(model.predict(X), fitted.labels_)


def test_distances_as_a_frame(seed):
    X, _ = moons(seed)
    model = cutter(3, seed).set_output(transform="pandas").fit(X)
    found = model.transform(X)
    assert isinstance(found, pd.DataFrame)
    assert list(found.columns) == [f"kernelkmeans{j}" for j in range(3)]


def test_no_array_of_rows_by_landmarks_is_held(seed):
    n, s = 20_000, 200
    X, _ = moons(seed, n)
    model = cutter(sampler=np.arange(s), n_jobs=1)
    model.fit(X[:3000])  # whatever is imported at first use
    tracemalloc.start()
    try:
        model.fit(X)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * n * s / 2
