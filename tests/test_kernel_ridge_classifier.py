"""KernelRidgeClassifier against the ridge classifier of scikit-learn on features."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from nystrom import KernelRidgeClassifier, Nystroem, kernels

N_ROWS, N_LANDMARKS, GAMMA, ALPHA = 240, 20, 0.3, 0.1


@pytest.fixture
def X(rng):
    return rng.standard_normal((N_ROWS, 3))


@pytest.fixture
def angle(X, rng):
    """What the classes are cut from, with noise, so that they overlap."""
    noisy = X + 0.4 * rng.standard_normal(X.shape)
    return np.arctan2(noisy[:, 1], noisy[:, 0])


def classes_from(angle, n_classes):
    """Classes of very different sizes."""
    cuts = np.quantile(angle, np.linspace(0, 1, n_classes + 1)[1:-1] ** 2)
    return np.digitize(angle, cuts)


def model(seed, **options):
    options = {"kernel": "rbf", "gamma": GAMMA, "n_landmarks": N_LANDMARKS} | options
    return KernelRidgeClassifier(ALPHA, random_state=seed, **options)


def on_features(fitted, X, y, weights=None, class_weight=None, intercept=True):
    """The features of the same landmarks, and the classifier fitted on them."""
    features = Nystroem(gamma=GAMMA, sampler=fitted.landmarks_.indices).fit(X)
    theirs = RidgeClassifier(
        ALPHA, solver="cholesky", fit_intercept=intercept, class_weight=class_weight
    )
    theirs.fit(features.transform(X), y, sample_weight=weights)
    return features, theirs


def assert_same_classifier(fitted, features, theirs, X):
    Z = features.transform(X)
    np.testing.assert_allclose(
        fitted.decision_function(X), theirs.decision_function(Z), atol=1e-7
    )
    np.testing.assert_array_equal(fitted.predict(X), theirs.predict(Z))
    np.testing.assert_array_equal(fitted.classes_, theirs.classes_)


# Against scikit-learn


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_is_the_ridge_classifier_on_features(X, angle, rng, seed, n_classes, intercept):
    y = classes_from(angle, n_classes)
    fitted = model(seed, fit_intercept=intercept).fit(X, y)
    features, theirs = on_features(fitted, X, y, intercept=intercept)
    assert_same_classifier(fitted, features, theirs, X)
    assert_same_classifier(fitted, features, theirs, rng.standard_normal((50, 3)))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 5.0, 1: 0.5, 2: 1.0}])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_of_rows_and_classes(
    X, angle, rng, seed, n_classes, class_weight, weighted
):
    if isinstance(class_weight, dict):
        class_weight = {c: class_weight[c] for c in range(n_classes)}
    y = classes_from(angle, n_classes)
    weights = rng.integers(0, 4, N_ROWS).astype(float) if weighted else None
    fitted = model(seed, class_weight=class_weight).fit(X, y, weights)
    features, theirs = on_features(fitted, X, y, weights, class_weight)
    assert_same_classifier(fitted, features, theirs, X)


def test_class_weights_change_the_fit(X, angle, seed):
    """Else the comparison above would say nothing."""
    y = classes_from(angle, 2)
    S = np.arange(20)
    plain = model(seed, sampler=S).fit(X, y)
    heavy = model(seed, sampler=S, class_weight={0: 20.0, 1: 1.0}).fit(X, y)
    assert np.mean(heavy.predict(X) == 0) > np.mean(plain.predict(X) == 0) + 0.05


def test_intercept_is_the_default(X, angle, seed):
    fitted = model(seed).fit(X, classes_from(angle, 3))
    assert fitted.intercept_.shape == (3,)
    assert np.abs(fitted.intercept_).min() > 0


@pytest.mark.parametrize("solver", ["direct", "cg"])
def test_both_solvers_decide_alike(X, angle, seed, solver):
    y = classes_from(angle, 3)
    fitted = model(seed, solver=solver).fit(X, y)
    features, theirs = on_features(fitted, X, y)
    assert fitted.solver_ == solver
    expected = theirs.decision_function(features.transform(X))
    np.testing.assert_allclose(fitted.decision_function(X), expected, atol=1e-4)


# Shapes and labels


def test_shapes_for_two_classes(X, angle, seed):
    fitted = model(seed).fit(X, classes_from(angle, 2))
    assert fitted.decision_function(X).shape == (N_ROWS,)
    assert fitted.dual_coef_.shape == (N_LANDMARKS,)
    assert isinstance(fitted.intercept_, float)


def test_shapes_for_many_classes(X, angle, seed):
    fitted = model(seed).fit(X, classes_from(angle, 4))
    assert fitted.decision_function(X).shape == (N_ROWS, 4)
    assert fitted.decision_function(X[:1]).shape == (1, 4)
    assert fitted.dual_coef_.shape == (N_LANDMARKS, 4)
    assert fitted.intercept_.shape == (4,)


@pytest.mark.parametrize("kind", [list, np.array, lambda y: np.array(y, dtype=object)])
@pytest.mark.parametrize("names", [["yes", "no"], ["pear", "apple", "fig"]])
def test_labels_that_are_strings(X, angle, seed, names, kind):
    numbers = classes_from(angle, len(names))
    fitted = model(seed).fit(X, kind([names[c] for c in numbers]))
    np.testing.assert_array_equal(fitted.classes_, sorted(names))
    # The same classes by their rank among the sorted names.
    ranks = np.argsort(np.argsort(names))[numbers]
    by_number = model(seed).fit(X, ranks)
    expected = np.array(sorted(names))[by_number.predict(X)]
    np.testing.assert_array_equal(fitted.predict(X), expected)
    np.testing.assert_array_equal(
        fitted.decision_function(X), by_number.decision_function(X)
    )


@pytest.mark.parametrize(
    "labels", [[5, -1, 2], [0.0, 7.0, 3.0], [True, False]], ids=str
)
def test_classes_are_sorted(X, angle, seed, labels):
    y = np.array(labels)[classes_from(angle, len(labels))]
    fitted = model(seed).fit(X, y)
    np.testing.assert_array_equal(fitted.classes_, sorted(labels))
    assert fitted.predict(X).dtype == y.dtype
    assert set(fitted.predict(X)) == set(labels)


def test_positive_values_are_the_second_class(X, angle, seed):
    y = np.where(classes_from(angle, 2) == 1, "b", "a")
    fitted = model(seed).fit(X, y)
    positive = fitted.decision_function(X) > 0
    assert 0 < positive.mean() < 1
    np.testing.assert_array_equal(fitted.predict(X) == "b", positive)


def test_labels_in_a_column_warn_and_fit_as_a_vector(X, angle, seed):
    y = classes_from(angle, 3)
    with pytest.warns(UserWarning, match="column-vector y was passed"):
        fitted = model(seed).fit(X, y[:, None])
    np.testing.assert_array_equal(fitted.predict(X), model(seed).fit(X, y).predict(X))


def test_several_labels_for_a_row(X, seed):
    Y = (X + np.array([0.0, 0.5, -0.5]) > 0).astype(int)
    fitted = model(seed).fit(X, Y)
    features, theirs = on_features(fitted, X, Y)
    assert_same_classifier(fitted, features, theirs, X)
    assert fitted.decision_function(X).shape == (N_ROWS, 3)
    assert fitted.predict(X).shape == Y.shape
    assert set(np.unique(fitted.predict(X))) == {0, 1}
    assert np.mean(fitted.predict(X) == Y) > 0.9
    assert len(np.unique(fitted.predict(X).sum(axis=1))) > 2  # not one label per row


def test_score_is_the_share_of_right_answers(X, angle, rng, seed):
    y = classes_from(angle, 3)
    fitted = model(seed).fit(X, y)
    right = fitted.predict(X) == y
    assert 0.5 < right.mean() < 1
    assert fitted.score(X, y) == pytest.approx(right.mean())
    weights = rng.random(N_ROWS)
    expected = np.average(right, weights=weights)
    assert fitted.score(X, y, weights) == pytest.approx(expected)


# In company


def test_grid_search_over_a_pipeline():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))  # rows come by writer
    known, new = order[:500], order[500:800]
    classifier = KernelRidgeClassifier(kernel="rbf", n_landmarks=60, random_state=0)
    pipeline = make_pipeline(StandardScaler(), classifier)
    grid = {
        "kernelridgeclassifier__gamma": [1e-6, 5e-3, 10.0],
        "kernelridgeclassifier__alpha": [0.1, 1e4],
    }
    search = GridSearchCV(pipeline, grid, cv=3).fit(X[known], y[known])
    assert search.best_params_ == {
        "kernelridgeclassifier__gamma": 5e-3,
        "kernelridgeclassifier__alpha": 0.1,
    }
    assert search.score(X[new], y[new]) > 0.88


def shared_letters(a, b):
    return float(len(set(a) & set(b)))


def test_words_with_a_kernel_of_two_words(seed):
    words = ["aab", "abc", "bca", "cab", "xyz", "xxy", "zyx", "yzz"] * 6
    y = ["first" if "a" in word else "last" for word in words]
    fitted = model(seed, kernel=shared_letters, gamma=None, n_landmarks=6)
    fitted.fit(words, y)
    assert fitted.score(words, y) == 1.0
    np.testing.assert_array_equal(fitted.predict(["a", "zy"]), ["first", "last"])


def test_sum_of_kernels(X, seed):
    """A plane through a sphere: neither kernel knows both."""
    y = ((np.linalg.norm(X, axis=1) > 1.5) ^ (X[:, 0] > 1)).astype(int)
    kernel = kernels.RBF(0.3) + kernels.Linear()
    fitted = model(seed, kernel=kernel, gamma=None, sampler=np.arange(30)).fit(X, y)
    features = Nystroem(kernel, sampler=np.arange(30)).fit(X)
    theirs = RidgeClassifier(ALPHA, solver="cholesky").fit(features.transform(X), y)
    assert_same_classifier(fitted, features, theirs, X)


# Support vector machines on the features


def small_clusters(rng, n_small=24, size=8):
    """One large cluster, and small ones of either class that are easily missed."""
    centers = rng.uniform(-12, 12, (n_small, 2))
    labels = np.arange(n_small) % 2

    def drawn(n_large):
        of_small = 0.25 * rng.standard_normal((n_small * size, 2))
        rows = np.repeat(centers, size, axis=0) + of_small
        large = 0.5 * rng.standard_normal((n_large, 2))
        y = np.concatenate([np.repeat(labels, size), np.zeros(n_large, dtype=int)])
        return np.concatenate([rows, large]), y

    return drawn(500), drawn(50)


def test_linear_svm_on_landmarks_is_as_good_as_the_exact_one(seed):
    exact, auto, uniform = [], [], []
    for draw in range(5):
        rng = np.random.default_rng([seed, draw])
        (X, y), new = small_clusters(rng)
        exact.append(SVC(kernel="rbf", gamma=1.0, C=10.0).fit(X, y).score(*new))
        for sampler, scores in (("auto", auto), ("uniform", uniform)):
            features = Nystroem(
                gamma=1.0, n_components=50, sampler=sampler, random_state=seed
            )
            machine = LinearSVC(C=10.0, max_iter=50_000, random_state=0)
            scores.append(make_pipeline(features, machine).fit(X, y).score(*new))
    assert len(X) > 10 * 50
    assert np.mean(auto) >= np.mean(exact) - 0.02
    assert np.min(np.subtract(auto, exact)) >= -0.04
    assert np.mean(auto) >= np.mean(uniform)
    # The set does tell good landmarks from poor ones.
    assert np.mean(uniform) < np.mean(exact) - 0.02


def test_labels_that_are_true_or_false(rng):
    """A label that is absent is −1, which a bool has no room for."""
    X = rng.standard_normal((200, 3))
    options = {"kernel": "rbf", "gamma": 0.3, "n_landmarks": 50, "random_state": 0}
    found = KernelRidgeClassifier(0.1, **options).fit(X, X > 0.2).predict(X)
    numbers = KernelRidgeClassifier(0.1, **options).fit(X, (X > 0.2).astype(int))
    np.testing.assert_array_equal(found, numbers.predict(X))
    assert 0.2 < found.mean() < 0.7


def test_weights_that_are_too_large_are_refused(rng):
    X = rng.standard_normal((300, 3))
    model = KernelRidgeClassifier(kernel="rbf", n_landmarks=50, random_state=0)
    with pytest.raises(ValueError, match="Divide sample_weight"):
        model.fit(X, X[:, 0] > 0, sample_weight=np.full(300, 1e160))
