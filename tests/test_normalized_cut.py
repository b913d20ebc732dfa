"""Clusters by normalised cuts, against dense eigenvectors and spectral clustering."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from sklearn.cluster import SpectralClustering
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

import nystrom
from nystrom import KernelKMeans, select_landmarks
from nystrom.engines import Threads
from nystrom.models.spectral_embedding import embed_rows, fit_spectral_embedding
from nystrom.sources import as_source

pytestmark = pytest.mark.usefixtures("one_thread")

N_ROWS, GAMMA = 600, 20.0


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


# What rows may be


# The same seed, and scikit-learn's tools
