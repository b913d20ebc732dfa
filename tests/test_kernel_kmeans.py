"""Kernel k-means on landmarks, against dense formulas, exact k-means and the paper."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

import nystrom
from nystrom import KernelKMeans, kernels, select_landmarks
from nystrom.engines import Threads
from nystrom.models import kmeans as clustering
from nystrom.models.kmeans import FeatureSample
from nystrom.models.pca import embed_rows, fit_spectral_embedding
from nystrom.sources import as_source

pytestmark = pytest.mark.usefixtures("one_thread")

N_ROWS, N_LANDMARKS, N_CLUSTERS, GAMMA = 400, 40, 5, 0.5


@pytest.fixture
def small_sample(monkeypatch):
    """Restarts begin on 50 rows per cluster, so that passes have work left to do."""
    monkeypatch.setattr(clustering, "SAMPLE_BYTES", 1)


@pytest.fixture
def X(rng):
    return rng.standard_normal((N_ROWS, 3))


@pytest.fixture
def X_new(X, rng):
    return rng.standard_normal((60, 3))


@pytest.fixture
def weights(rng):
    """A quarter of them 0."""
    return rng.integers(0, 4, N_ROWS) * 0.7


def clusterer(n_clusters=N_CLUSTERS, seed=0, **options):
    options = {"gamma": GAMMA, "n_landmarks": N_LANDMARKS} | options
    return KernelKMeans(n_clusters, random_state=seed, **options)


def blobs(seed, n=400, centers=5, spread=0.5):
    return make_blobs(n, centers=centers, cluster_std=spread, random_state=seed)[0]


def rbf(X, Y=None):
    return rbf_kernel(X, Y, gamma=GAMMA)


# Dense formulas


def squared_distances(diagonal, K_S, K_SS, dual):
    """‖φ(x) − c‖² of each row and centre."""
    squares = np.einsum("ij,ij->j", dual, K_SS @ dual)
    return diagonal[:, None] - 2 * K_S @ dual + squares


def all_squared_distances(model, kernel, X):
    points = model.landmarks_.points
    diagonal = np.array([kernel(x[None], x[None])[0, 0] for x in X])
    K_SS = kernel(points, points)
    return squared_distances(diagonal, kernel(X, points), K_SS, model.dual_coef_)


def memberships(labels, weights=None):
    """(n, k): the weight of a row in its cluster."""
    w = np.ones(len(labels)) if weights is None else weights
    return np.eye(labels.max() + 1)[labels] * w[:, None]


def cost(K, labels, weights=None):
    """Σ w‖φ(x) − mean of its cluster‖², clusters without rows left out."""
    H = memberships(labels, weights)
    counts = H.sum(axis=0)
    H, counts = H[:, counts > 0], counts[counts > 0]
    between = np.einsum("ij,ij->j", H, K @ H) / counts
    return float(H.sum(axis=1) @ np.diagonal(K) - between.sum())


def exact_lloyd(K, n_clusters, rng, n_starts=20, n_steps=50):
    """The best labels of kernel k-means on all of K, from rows as first centres."""
    best = None
    for _ in range(n_starts):
        first = rng.choice(len(K), n_clusters, replace=False)
        labels = (np.diagonal(K)[first] - 2 * K[:, first]).argmin(axis=1)
        for _ in range(n_steps):
            H = memberships(labels)
            H = H[:, H.sum(axis=0) > 0]
            M = H / H.sum(axis=0)
            squares = np.einsum("ij,ij->j", M, K @ M)
            moved = (squares - 2 * K @ M).argmin(axis=1)
            if (moved == labels).all():
                break
            labels = moved
        if best is None or cost(K, labels) < cost(K, best):
            best = labels
    return best


def nystrom_matrix(K, S):
    """K̃ = K_S K_SS⁺ K_Sᵀ."""
    values, vectors = np.linalg.eigh(K[np.ix_(S, S)])
    kept = values > 1e-12 * len(S) * values.max()
    Z = K[:, S] @ (vectors[:, kept] / np.sqrt(values[kept]))
    return Z @ Z.T


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sample", ["all rows", "few rows"])
def test_inertia_is_the_dense_one_about_the_fitted_centers(
    X, weights, seed, weighted, sample, monkeypatch
):
    if sample == "few rows":
        monkeypatch.setattr(clustering, "SAMPLE_BYTES", 1)
    w = weights if weighted else None
    model = clusterer(seed=seed).fit(X, sample_weight=w)
    assert model.dual_coef_.shape == (N_LANDMARKS, N_CLUSTERS)
    squared = all_squared_distances(model, rbf, X)
    own = squared[np.arange(N_ROWS), model.labels_]
    expected = own.sum() if w is None else w @ own
    assert model.inertia_ == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_are_as_good_in_any_unit(X, weights, seed, dtype):
    """Sums of heavy rows' distances are no overflow, in the start nor in float32."""
    X = X.astype(dtype)
    model = clusterer(seed=seed).fit(X, sample_weight=weights)
    heavy = clusterer(seed=seed).fit(X, sample_weight=weights * 2.0**126)
    np.testing.assert_array_equal(heavy.labels_, model.labels_)
    assert heavy.inertia_ == pytest.approx(model.inertia_ * 2.0**126, rel=1e-9)


@pytest.mark.parametrize("affine", [("rbf", rbf), ("laplacian", laplacian_kernel)])
def test_every_row_is_at_its_nearest_center(X, seed, affine, small_sample):
    name, kernel = affine
    gamma = GAMMA if name == "rbf" else None
    model = clusterer(seed=seed, kernel=name, gamma=gamma).fit(X)
    squared = all_squared_distances(model, kernel, X)
    own = squared[np.arange(N_ROWS), model.labels_]
    assert np.all(own <= squared.min(axis=1) + 1e-7)
    assert len(np.unique(model.labels_)) == N_CLUSTERS


def test_labels_are_predictions_of_the_training_rows(X, seed, small_sample):
    model = clusterer(seed=seed, max_iter=2, tol=1e3).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(model.predict(X[7:9]), model.labels_[7:9])


def test_new_rows_go_to_the_nearest_center_and_transform_is_the_distance(
    X, X_new, seed
):
    model = clusterer(seed=seed).fit(X)
    squared = all_squared_distances(model, rbf, X_new)
    found = model.transform(X_new)
    assert found.shape == (60, N_CLUSTERS)
    np.testing.assert_allclose(found**2, squared, atol=1e-6)
    np.testing.assert_array_equal(model.predict(X_new), squared.argmin(axis=1))


def test_score_is_minus_the_squared_distances(X, X_new, weights, seed):
    model = clusterer(seed=seed).fit(X)
    nearest = all_squared_distances(model, rbf, X_new).min(axis=1)
    assert model.score(X_new) == pytest.approx(-nearest.sum(), rel=1e-6)
    assert model.score(X) == pytest.approx(-model.inertia_, rel=1e-6)
    expected = -(weights[:60] @ nearest)
    assert model.score(X_new, sample_weight=weights[:60]) == pytest.approx(expected)


def away_from_means(model, X, weights=None):
    """How far the centres are from their clusters' means, as the landmarks see it."""
    points = model.landmarks_.points
    H = memberships(model.labels_, weights)
    means = (H / H.sum(axis=0)).T @ rbf(X, points)
    return np.abs(model.dual_coef_.T @ rbf(points) - means).max()


@pytest.mark.parametrize("weighted", [False, True])
def test_centers_are_the_means_of_their_clusters_in_the_landmarks_span(
    X, weights, seed, weighted, small_sample
):
    """What is left of the mean is orthogonal to every landmark: Lloyd's fixed point."""
    w = weights if weighted else None
    model = clusterer(seed=seed, tol=0.0).fit(X, sample_weight=w)
    assert away_from_means(model, X, w) < 1e-5


def test_inertia_is_the_cost_on_the_landmarks_and_what_they_leave(
    X, seed, small_sample
):
    """cost of K̃ + tr K − tr K̃, at least the cost about the clusters' own means."""
    K = rbf(X)
    model = clusterer(seed=seed, tol=0.0).fit(X)
    approximate = nystrom_matrix(K, model.landmarks_.indices)
    c = np.trace(K) - np.trace(approximate)
    expected = cost(approximate, model.labels_) + c
    assert model.inertia_ == pytest.approx(expected, rel=1e-6)
    assert model.inertia_ > cost(K, model.labels_)


def test_more_passes_only_lower_the_inertia(rng, seed, small_sample):
    X = rng.standard_normal((1500, 3))
    inertias = []
    for max_iter in (2, 4, 300):
        model = clusterer(seed=seed, tol=0.0, max_iter=max_iter)
        if max_iter < 300:
            with pytest.warns(ConvergenceWarning, match=f"after {max_iter} passes"):
                model.fit(X)
            assert model.n_iter_ == max_iter
        else:
            model.fit(X)
        inertias.append(model.inertia_)
    assert 4 < model.n_iter_ < 300
    assert np.all(np.diff(inertias) < 0)


# The paper: costs are preserved


EPSILON = 0.5


def tail_ridge(K, n_clusters):
    """λ = (ε/k)·Σ_{i>k} σᵢ."""
    values = np.linalg.eigvalsh(K)
    return EPSILON / n_clusters * values[:-n_clusters].sum()


def distortions(K, approximate, found, n_clusters, rng):
    """(cost_K̃(C) + c)/cost_K(C) of clusterings of many kinds."""
    left = K - approximate
    c = np.trace(left)
    n = len(K)
    alone = np.zeros(n, dtype=int)
    worst = np.argsort(np.diagonal(left))[1 - n_clusters :]
    alone[worst] = np.arange(1, n_clusters)
    clusterings = {
        "found": found,
        "best": exact_lloyd(K, n_clusters, rng, 5),
        "of what is left": exact_lloyd(left, n_clusters, rng, 5),
        "worst rows alone": alone,
        "one cluster": np.zeros(n, dtype=int),
    }
    for i in range(5):
        clusterings[f"random {i}"] = rng.integers(0, n_clusters, n)
    _, vectors = np.linalg.eigh(left)
    for i in (1, 2, 3):
        clusterings[f"eigenvector {i}"] = (vectors[:, -i] > 0).astype(int)
    return {
        name: (cost(approximate, labels) + c) / cost(K, labels)
        for name, labels in clusterings.items()
    }


@pytest.mark.parametrize("data", ["blobs", "circles"])
def test_costs_of_all_clusterings_are_preserved(seed, data):
    """cost_K(C) ≤ cost_K̃(C) + c ≤ (1 + ε)·cost_K(C), with landmarks by the ridge."""
    for run in range(5 * seed, 5 * seed + 5):
        X, k = blobs(run, 300), 5
        if data == "circles":
            X, k = make_circles(300, factor=0.4, noise=0.1, random_state=run)[0], 4
        K = rbf(X)
        options = {"max_spectral_error": tail_ridge(K, k), "n_landmarks": None}
        model = clusterer(k, run, sampler="recursive", **options).fit(X)
        S = model.landmarks_.indices
        assert len(S) < 150
        rng = np.random.default_rng(run)
        found = distortions(K, nystrom_matrix(K, S), model.labels_, k, rng)
        assert min(found.values()) >= 1 - 1e-9
        assert max(found.values()) <= 1 + EPSILON, found


def test_all_rows_as_landmarks_and_a_linear_kernel_are_as_plain_kmeans(seed):
    X = blobs(seed, 500, centers=8, spread=1.0)
    options = {"n_init": 10, "random_state": seed}
    theirs = KMeans(8, **options).fit(X)
    mine = KernelKMeans(8, kernel="linear", sampler=np.arange(500), **options).fit(X)
    assert mine.inertia_ == pytest.approx(theirs.inertia_, rel=0.01)
    centers = mine.dual_coef_.T @ mine.landmarks_.points
    H = memberships(mine.labels_)
    np.testing.assert_allclose(centers, (H / H.sum(axis=0)).T @ X, atol=0.05)


def test_restarts_are_never_worse_and_mostly_better(X, seed, small_sample):
    runs = range(8 * seed, 8 * seed + 8)
    one = [clusterer(7, run).fit(X).inertia_ for run in runs]
    several = [clusterer(7, run, n_init=6).fit(X).inertia_ for run in runs]
    assert np.mean(several) < np.mean(one)
    assert max(several) < max(one)


# Weights


def test_weights_count_rows_as_often(rng, seed):
    X = blobs(seed, 200, spread=0.3)
    counts = rng.integers(0, 3, 200)
    landmarks = np.flatnonzero(counts)[:30]
    options = {"n_init": 10, "tol": 0.0}
    weighted = clusterer(seed=seed, sampler=landmarks, **options)
    weighted.fit(X, sample_weight=counts)
    copies = np.repeat(np.arange(200), counts)
    first = np.searchsorted(copies, landmarks)
    repeated = clusterer(seed=seed, sampler=first, **options).fit(X[copies])
    assert weighted.inertia_ == pytest.approx(repeated.inertia_, rel=1e-6)
    same = adjusted_rand_score(weighted.labels_[copies], repeated.labels_)
    assert same == pytest.approx(1)


# Clusters that are few, many, tiny or empty


@pytest.mark.parametrize("n_init", [1, 4])
def test_tiny_far_clusters_are_found(rng, seed, n_init):
    far = np.repeat([[1e3, 0], [0, 1e3], [-1e3, 0]], [1, 2, 3], axis=0)
    X = np.vstack([rng.standard_normal((300, 2)), far])
    model = clusterer(4, seed, kernel="linear", n_init=n_init).fit(X)
    assert len(np.unique(model.labels_)) == 4
    assert len(np.unique(model.labels_[300:])) == 3
    assert not np.isin(model.labels_[:300], model.labels_[300:]).any()


@pytest.mark.parametrize("n_init", [1, 3])
def test_empty_clusters_are_put_where_rows_are_far(monkeypatch, seed, n_init):
    """All restarts begin with all centres at one row."""

    def at_one_row(sample, n_clusters, seed):
        return np.repeat(sample.Z[:1], n_clusters, axis=0).astype(np.float64)

    monkeypatch.setattr(FeatureSample, "initial_centers", at_one_row)
    X, y = make_blobs(300, centers=[[0, 0], [9, 0], [0, 9], [9, 9]], random_state=seed)
    model = clusterer(4, seed, kernel="linear", n_init=n_init).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95


def test_clusters_are_not_filled_with_rows_that_do_not_count(small_sample):
    """Rows of weight 0 are as far away as the rare ones, and come first."""
    X = np.zeros((600, 2))
    X[[90, 210, 330, 480]] = [[5, 0], [0, 5], [5, 5], [-5, 0]]
    X[:12] = 40 + 10 * np.arange(24).reshape(12, 2)
    w = np.ones(600)
    w[:12] = 0.0
    for run in range(8):
        model = clusterer(4, run).fit(X, sample_weight=w)
        assert len(np.unique(model.labels_[12:])) == 4


@pytest.mark.parametrize("options", [{}, {"n_init": 3}, {"affinity_normalize": True}])
def test_more_clusters_than_distinct_rows_warn_with_both_numbers(rng, seed, options):
    X = np.repeat(rng.standard_normal((4, 3)), 20, axis=0)
    message = r"distinct clusters \(4\) found smaller than n_clusters \(6\)"
    model = clusterer(6, seed, **options)
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        model.fit(X)
    assert len(caught) == 1
    assert model.transform(X).shape == (80, 6)
    assert np.isfinite(model.transform(X)).all()
    by_row = model.labels_.reshape(4, 20)
    assert (by_row == by_row[:, :1]).all()
    assert len(set(by_row[:, 0])) == 4
    if "affinity_normalize" not in options:
        assert caught[0].filename == __file__
        assert model.inertia_ == pytest.approx(0, abs=1e-9)
        assert np.isfinite(model.dual_coef_).all()


class Shaken:
    """Held features of which another row is the farthest whenever they are read."""

    def __init__(self, held, rng):
        self.held, self.rng = held, rng
        self.initial_centers, self.variance = held.initial_centers, held.variance
        self.n_read = 0

    @property
    def Z(self):
        self.n_read += 1
        return self.held.Z + 1e-4 * self.rng.standard_normal(self.held.Z.shape)


@pytest.mark.parametrize("n_init", [1, 3])
def test_clusters_that_stay_empty_do_not_move_for_ever(monkeypatch, rng, seed, n_init):
    """Rounding alone says where they are put: here it is another row each time."""
    shaken = []

    def held(*args):
        shaken.append(Shaken(FeatureSample.from_source(*args), rng))
        return shaken[-1]

    monkeypatch.setattr(clustering, "FeatureSample", SimpleNamespace(from_source=held))
    X = np.repeat(10 * rng.standard_normal((14, 3)), 20, axis=0)
    model = clusterer(20, seed, kernel="matern32", gamma=100, n_init=n_init)
    with pytest.warns(ConvergenceWarning, match=r"clusters \(14\).*n_clusters \(20\)"):
        model.fit(X)
    assert shaken[0].n_read > 1
    assert model.n_iter_ < 10
    assert model.inertia_ == pytest.approx(0, abs=1e-6)


def test_rows_without_any_feature_are_one_cluster(seed):
    """The linear kernel of zeros has rank 0."""
    model = clusterer(1, seed, kernel="linear").fit(np.zeros((20, 3)))
    np.testing.assert_array_equal(model.labels_, 0)
    assert model.inertia_ == 0
    np.testing.assert_allclose(model.transform([[3.0, 4.0, 0.0]]), [[5.0]])


# What rows may be


@pytest.mark.parametrize(
    ("kernel", "scale", "dtype"),
    [("polynomial", 1e32, np.float32), ("linear", 1e90, np.float64)],
)
def test_kernel_values_too_large_to_square_are_one_error(kernel, scale, dtype, seed):
    X = (scale * blobs(seed, 60, spread=1.0)).astype(dtype)
    with pytest.raises(ValueError, match="the scale of the data"):
        clusterer(3, seed, kernel=kernel, n_landmarks=20, sampler="uniform").fit(X)


def test_float32_rows_of_a_very_smooth_kernel(seed):
    """Coefficients are large and of both signs, and float32 alone would not do."""
    X = blobs(seed, 400, spread=1.0).astype(np.float32)
    options = {"gamma": 1e-3, "sampler": np.arange(60), "n_init": 3}
    wide = clusterer(seed=seed, **options).fit(X.astype(np.float64))
    narrow = clusterer(seed=seed, **options).fit(X)
    assert adjusted_rand_score(narrow.labels_, wide.labels_) > 0.98
    assert narrow.inertia_ == pytest.approx(wide.inertia_, rel=0.01)
    np.testing.assert_array_equal(narrow.predict(X), narrow.labels_)
    assert narrow.score(X) == pytest.approx(-narrow.inertia_, rel=0.01)


# Refused


@pytest.mark.parametrize("shape", [(N_ROWS, 1), (1,), (3,)])
def test_weights_of_a_score_that_are_not_one_per_row(X, shape):
    """They would multiply by broadcasting."""
    model = clusterer().fit(X)
    with pytest.raises(ValueError, match=r"(?i)sample.weight"):
        model.score(X, sample_weight=np.ones(shape))


# Among scikit-learn's tools


def test_names_of_features_are_those_of_the_fit(X):
    """Parameters set afterwards are for the next fit."""
    model = clusterer(3).fit(X).set_params(n_clusters=7)
    names = model.get_feature_names_out()
    assert len(names) == model.transform(X).shape[1]


def test_normalisation_asked_for_afterwards_is_for_the_next_fit(X):
    model = clusterer(3).fit(X)
    expected = model.transform(X)
    model.set_params(affinity_normalize=True)
    np.testing.assert_array_equal(model.transform(X), expected)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("scale", [1e-9, 1e11])
def test_the_scale_of_rows_does_not_matter(scale):
    # Of degree 3: squares of features go from 1e-52 to 1e68, and float32 ends at 1e38.
    X, _ = make_blobs(200, 3, centers=4, random_state=0)
    kernel = kernels.Polynomial(0.3, 3, 0.0)
    found = [
        KernelKMeans(4, kernel=kernel, n_landmarks=15, random_state=0).fit(rows).labels_
        for rows in (X, scale * X)
    ]
    assert adjusted_rand_score(*found) == 1


# Clusters by normalised cuts

N_SHAPES, CUT_GAMMA = 600, 20.0


def circles(seed, n=N_SHAPES):
    return make_circles(n, factor=0.3, noise=0.05, random_state=seed)


def moons(seed, n=N_SHAPES):
    return make_moons(n, noise=0.05, random_state=seed)


def cutter(n_clusters=2, seed=0, **options):
    options = {"gamma": CUT_GAMMA, "n_landmarks": N_SHAPES // 10} | options
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
    theirs = SpectralClustering(2, gamma=CUT_GAMMA, random_state=seed).fit(X)
    mine = cutter(seed=seed).fit(X)
    assert len(mine.landmarks_) <= N_SHAPES // 10
    assert adjusted_rand_score(y, mine.labels_) >= 0.98
    assert adjusted_rand_score(theirs.labels_, mine.labels_) >= 0.98


@pytest.mark.parametrize("n_clusters", [2, 5])
def test_labels_of_cuts_are_predictions_of_the_training_rows(seed, n_clusters):
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


def test_weights_of_cuts_count_rows_as_often(rng):
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


def test_the_function_has_no_more_columns_than_landmarks(seed):
    X, _ = moons(seed)
    found = nystrom.spectral_embedding(X, 8, gamma=1.0, n_landmarks=4)
    assert found.shape == (N_SHAPES, 3)
    assert np.isfinite(found).all()


# Kernels that are no affinities


@pytest.mark.parametrize("kernel", ["linear", "cosine", "polynomial"])
def test_negative_kernels_are_refused(rng, kernel):
    X = rng.standard_normal((100, 2))
    model = cutter(kernel=kernel, gamma=1.0, n_landmarks=20)
    known = set(vars(model))
    with pytest.raises(ValueError, match="negative values, which are not affinities"):
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
    landmarks = np.arange(0, N_SHAPES, 8)
    if among_landmarks:
        landmarks = np.append(landmarks, N_SHAPES)
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
