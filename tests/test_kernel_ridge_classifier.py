"""KernelRidgeClassifier against the ridge classifier of scikit-learn on features."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy.optimize import minimize
from scipy.special import expit, log_softmax
from sklearn.datasets import load_digits, make_classification, make_moons
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler
from sklearn.utils import compute_sample_weight

from nystrom import (
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
    Nystroem,
    load,
    save,
    sources,
)
from nystrom.engines import Threads
from nystrom.models.calibration import (
    TAIL,
    fit_probability_link,
    leave_one_out_predictions,
    log_odds_to_top,
    smooth_targets,
)

N_MANY, N_LANDMARKS = 240, 20


@pytest.fixture
def rows(rng):
    return rng.standard_normal((N_MANY, 3))


@pytest.fixture
def angle(rows, rng):
    """What the classes are cut from, with noise, so that they overlap."""
    noisy = rows + 0.4 * rng.standard_normal(rows.shape)
    return np.arctan2(noisy[:, 1], noisy[:, 0])


def classes_from(angle, n_classes):
    """Classes of very different sizes."""
    cuts = np.quantile(angle, np.linspace(0, 1, n_classes + 1)[1:-1] ** 2)
    return np.digitize(angle, cuts)


def model(seed, **options):
    options = {"kernel": "rbf", "gamma": GAMMA, "n_landmarks": N_LANDMARKS} | options
    return KernelRidgeClassifier(ALPHA, random_state=seed, **options)


def on_features(fitted, rows, y, weights=None, class_weight=None, intercept=True):
    """The features of the same landmarks, and the classifier fitted on them."""
    features = Nystroem(gamma=GAMMA, sampler=fitted.landmarks_.indices).fit(rows)
    theirs = RidgeClassifier(
        ALPHA, solver="cholesky", fit_intercept=intercept, class_weight=class_weight
    )
    theirs.fit(features.transform(rows), y, sample_weight=weights)
    return features, theirs


def assert_same_classifier(fitted, features, theirs, rows):
    Z = features.transform(rows)
    np.testing.assert_allclose(
        fitted.decision_function(rows), theirs.decision_function(Z), atol=1e-7
    )
    np.testing.assert_array_equal(fitted.predict(rows), theirs.predict(Z))
    np.testing.assert_array_equal(fitted.classes_, theirs.classes_)


# Against scikit-learn


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_is_the_ridge_classifier_on_features(
    rows, angle, rng, seed, n_classes, intercept
):
    y = classes_from(angle, n_classes)
    fitted = model(seed, fit_intercept=intercept).fit(rows, y)
    features, theirs = on_features(fitted, rows, y, intercept=intercept)
    assert_same_classifier(fitted, features, theirs, rows)
    assert_same_classifier(fitted, features, theirs, rng.standard_normal((50, 3)))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 5.0, 1: 0.5, 2: 1.0}])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_of_rows_and_classes(
    rows, angle, rng, seed, n_classes, class_weight, weighted
):
    if isinstance(class_weight, dict):
        class_weight = {c: class_weight[c] for c in range(n_classes)}
    y = classes_from(angle, n_classes)
    weights = rng.integers(0, 4, N_MANY).astype(float) if weighted else None
    fitted = model(seed, class_weight=class_weight).fit(rows, y, weights)
    features, theirs = on_features(fitted, rows, y, weights, class_weight)
    assert_same_classifier(fitted, features, theirs, rows)


# Shapes and labels


@pytest.mark.parametrize("kind", [list, np.array, lambda y: np.array(y, dtype=object)])
@pytest.mark.parametrize("names", [["yes", "no"], ["pear", "apple", "fig"]])
def test_labels_that_are_strings(rows, angle, seed, names, kind):
    numbers = classes_from(angle, len(names))
    fitted = model(seed).fit(rows, kind([names[c] for c in numbers]))
    np.testing.assert_array_equal(fitted.classes_, sorted(names))
    # The same classes by their rank among the sorted names.
    ranks = np.argsort(np.argsort(names))[numbers]
    by_number = model(seed).fit(rows, ranks)
    expected = np.array(sorted(names))[by_number.predict(rows)]
    np.testing.assert_array_equal(fitted.predict(rows), expected)
    np.testing.assert_array_equal(
        fitted.decision_function(rows), by_number.decision_function(rows)
    )


def test_several_labels_for_a_row(rows, seed):
    Y = (rows + np.array([0.0, 0.5, -0.5]) > 0).astype(int)
    fitted = model(seed).fit(rows, Y)
    features, theirs = on_features(fitted, rows, Y)
    assert_same_classifier(fitted, features, theirs, rows)
    assert fitted.decision_function(rows).shape == (N_MANY, 3)
    assert fitted.predict(rows).shape == Y.shape
    assert set(np.unique(fitted.predict(rows))) == {0, 1}
    assert np.mean(fitted.predict(rows) == Y) > 0.9
    assert len(np.unique(fitted.predict(rows).sum(axis=1))) > 2  # not one label per row


# Support vector machines on the features


def test_labels_that_are_true_or_false(rng):
    """A label that is absent is −1, which a bool has no room for."""
    rows = rng.standard_normal((200, 3))
    options = {"kernel": "rbf", "gamma": 0.3, "n_landmarks": 50, "random_state": 0}
    found = KernelRidgeClassifier(0.1, **options).fit(rows, rows > 0.2).predict(rows)
    numbers = KernelRidgeClassifier(0.1, **options).fit(rows, (rows > 0.2).astype(int))
    np.testing.assert_array_equal(found, numbers.predict(rows))
    assert 0.2 < found.mean() < 0.7


def test_weights_that_are_too_large_are_refused(rng):
    rows = rng.standard_normal((300, 3))
    model = KernelRidgeClassifier(kernel="rbf", n_landmarks=50, random_state=0)
    with pytest.raises(ValueError, match="Divide sample_weight"):
        model.fit(rows, rows[:, 0] > 0, sample_weight=np.full(300, 1e160))


# Probabilities: the link, and the values it is fitted to

N_ROWS, GAMMA, ALPHA = 150, 0.3, 0.1
FEW = {"kernel": "rbf", "gamma": GAMMA, "n_landmarks": 15}


@pytest.fixture
def X(rng):
    return rng.standard_normal((N_ROWS, 2))


def classes_of(X, rng, n_classes):
    """Classes that overlap, of different sizes."""
    angle = np.arctan2(*(X[:, :2] + 0.5 * rng.standard_normal((len(X), 2))).T)
    cuts = np.quantile(angle, np.linspace(0, 1, n_classes + 1)[1:-1] ** 1.5)
    return np.digitize(angle, cuts)


def signs(y):
    Y = 2.0 * (y[:, None] == np.unique(y)) - 1
    return Y[:, 1:] if Y.shape[1] == 2 else Y


def fitted(X, y, seed, weights=None, **options):
    options = {**FEW, "random_state": seed} | options
    return KernelRidgeClassifier(ALPHA, **options).fit(X, y, weights)


# --- values of rows that are left out -------------------------------------------------


def left_out(model, X, Y, weights, rows):
    source = sources.as_source(X).replace(targets=Y, weights=weights)
    fit = model._model.map, model._model.posterior
    F, Y, _ = leave_one_out_predictions(
        model.landmarks_, source, rows, *fit, Threads(1)
    )
    return F[: len(rows)], Y[: len(rows)]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_row_left_out_has_the_value_of_a_fit_without_it(
    X, rng, seed, n_classes, intercept
):
    y = classes_of(X, rng, n_classes)
    Y, w = signs(y), rng.integers(1, 4, N_ROWS).astype(float)
    landmarks = model_landmarks(seed)
    model = fitted(X, y, seed, w, fit_intercept=intercept, sampler=landmarks)
    rows = np.sort([0, 77, N_ROWS - 1, *landmarks[[0, 4, 9]]])
    assert 0 < np.isin(rows, landmarks).sum() < len(rows)
    found, targets = left_out(model, X, Y, w, rows)
    np.testing.assert_array_equal(targets, Y[rows])
    for value, row in zip(found, rows, strict=True):
        others = w.copy()
        others[row] -= 1  # one of so many
        expected = refitted(X, Y, others, landmarks, row, intercept)
        np.testing.assert_allclose(value, expected, atol=1e-6)


def model_landmarks(seed):
    """In any order: few enough that all have a say of their own."""
    return np.random.default_rng(seed).permutation(N_ROWS)[:12]


def refitted(X, Y, weights, landmarks, row, intercept=True):
    """The value of a row by a ridge regression without it, and without its landmark."""
    landmarks = landmarks[landmarks != row]
    Z = Nystroem(gamma=GAMMA, sampler=landmarks).fit(X).transform(X)
    ridge = Ridge(ALPHA, fit_intercept=intercept, solver="cholesky")
    return ridge.fit(Z, Y, sample_weight=weights).predict(Z[[row]]).ravel()


def test_small_weights_are_left_out_whole(X, rng, seed):
    y, landmarks = classes_of(X, rng, 2), model_landmarks(seed)
    w = rng.uniform(0.1, 0.9, N_ROWS)
    model = fitted(X, y, seed, w, sampler=landmarks)
    for row in (5, landmarks[3]):
        found, _ = left_out(model, X, signs(y), w, np.array([row]))
        others = np.where(np.arange(N_ROWS) == row, 0.0, w)
        expected = refitted(X, signs(y), others, landmarks, row)
        np.testing.assert_allclose(found[0], expected, atol=1e-6)


def test_a_landmark_that_is_given_twice_is_left_out_with_its_row(X, rng, seed):
    y, landmarks = classes_of(X, rng, 2), model_landmarks(seed)
    twice = np.concatenate([landmarks[[3, 1]], landmarks])
    model = fitted(X, y, seed, sampler=twice)
    rows = np.sort(landmarks)
    found, _ = left_out(model, X, signs(y), None, rows)
    once, _ = left_out(fitted(X, y, seed, sampler=landmarks), X, signs(y), None, rows)
    np.testing.assert_allclose(found, once, atol=1e-6)


@pytest.mark.parametrize("make", [KernelRidgeClassifier, KernelRidgeClassifierCV])
def test_probabilities_near_interpolation_are_calibrated(make, seed):
    """Landmarks that stay when their rows are left out have wild values: 0.1 to 0.5."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = order[:898], order[898:]
    X = StandardScaler().fit(X[train]).transform(X)
    one = make is KernelRidgeClassifier
    options = {"alpha": 1e-6} if one else {"alphas": [1e-6], "gammas": None}
    options |= {"kernel": "rbf", "gamma": "scale", "random_state": seed}
    model = make(n_landmarks=300, **options).fit(X[train], y[train])
    assert calibration_error(model.predict_proba(X[test]), y[test]) < 0.05


def calibration_error(P, y, n_bins=15):
    """Expected calibration error: |confidence − accuracy| over bins of confidence."""
    confidence, right = P.max(axis=1), P.argmax(axis=1) == y
    bins = np.minimum((n_bins * confidence).astype(int), n_bins - 1)
    return np.abs(np.bincount(bins, confidence - right)).sum() / len(y)


def test_weights_of_classes_leave_with_their_rows(seed):
    """Else rows of a heavy class are fitted to where they are said to be left out."""
    X, y = make_classification(
        4000, 10, n_informative=5, weights=[0.93], flip_y=0.03, random_state=seed
    )
    model = KernelRidgeClassifier(
        0.01,
        kernel="rbf",
        gamma="scale",
        class_weight="balanced",
        n_landmarks=300,
        random_state=seed,
    ).fit(X[:1500], y[:1500])
    weights = compute_sample_weight("balanced", y[1500:])
    P = model.predict_proba(X[1500:])
    # (1 + f)/2, which has nothing to fit.
    fixed = np.clip(model.decision_function(X[1500:]), -0.9, 0.9) / 2 + 0.5
    ours, theirs = (
        log_loss(y[1500:], p, sample_weight=weights) for p in (P[:, 1], fixed)
    )
    assert ours < theirs


@pytest.mark.parametrize("n_landmarks", [12, N_ROWS])
def test_weights_are_copies_near_interpolation(X, rng, seed, n_landmarks):
    """Of the copies of a landmark one is left out with it, the others as other rows."""
    y, w = classes_of(X, rng, 3), rng.integers(1, 4, N_ROWS)
    landmarks = np.random.default_rng(seed).permutation(N_ROWS)[:n_landmarks]
    first = np.cumsum(w) - w  # of the copies of each row
    options = {"kernel": "rbf", "gamma": GAMMA, "random_state": seed}
    weighted = KernelRidgeClassifier(1e-3, sampler=landmarks, **options).fit(X, y, w)
    repeated = KernelRidgeClassifier(1e-3, sampler=first[landmarks], **options)
    repeated.fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(
        weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-5
    )


def test_values_far_off_do_not_make_all_rows_doubtful(seed):
    """With hardly a ridge, values have heavy tails: in proportion to these 0.23."""
    errors, losses = [], []
    for run in range(4):
        X, y = make_moons(2300, noise=0.35, random_state=100 * seed + run)
        model = KernelRidgeClassifier(
            1e-8, kernel="rbf", gamma="scale", n_landmarks=250, random_state=seed
        ).fit(X[:300], y[:300])
        P = model.predict_proba(X[300:])
        errors.append(calibration_error(P, y[300:]))
        losses.append(log_loss(y[300:], P))
    assert np.mean(errors) < 0.12
    assert np.mean(losses) < 0.52


# --- the link -------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_link_has_the_least_loss(rng, n_classes):
    """Beside a general optimiser, for every sharpness that there is."""
    y = rng.integers(n_classes, size=400)
    Y = signs(y)
    F = 0.6 * Y + 0.7 * rng.standard_normal(Y.shape)
    w = rng.uniform(0, 3, 400)
    link = fit_probability_link(F, Y, w)
    Q = smooth_targets(y, n_classes, w)

    def loss(slopes, sharpness):
        logs = log_softmax(slopes * log_odds_to_top(F, sharpness, TAIL), axis=1)
        return -np.sum(Q * logs) / Q.sum()

    ours = loss(link.slopes, link.sharpness)
    for sharpness in 2.0 ** np.arange(-1, 7):
        start, bounds = np.ones(n_classes), [(0.01, None)] * n_classes
        done = minimize(loss, start, (sharpness,), "L-BFGS-B", bounds=bounds, tol=1e-12)
        assert ours <= done.fun + 1e-8
        if sharpness == link.sharpness:
            assert ours == pytest.approx(done.fun, abs=1e-8)


def test_the_fitted_link_is_the_one_that_is_used(rng):
    """Other slopes have a larger loss also as probabilities of far values."""
    Y = signs(rng.integers(2, size=400))
    F = 0.5 * Y + rng.standard_t(1, Y.shape)
    link = fit_probability_link(F, Y, np.ones(400))
    Q = smooth_targets((Y[:, 0] > 0).astype(int), 2, np.ones(400))
    losses = [
        -np.vdot(Q, replace(link, slopes=link.slopes * factor).log_probabilities(F))
        for factor in (1.0, 0.98, 1.02)
    ]
    assert losses[0] < min(losses[1:])


def test_doubt_is_platts():
    Q = smooth_targets(np.array([0, 0, 0, 1]), 2, np.ones(4))
    np.testing.assert_allclose(Q[0], [4 / 5, 1 / 5])
    np.testing.assert_allclose(Q[3], [1 / 3, 2 / 3])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_small_weights_do_not_make_fewer_rows(rng, n_classes):
    y = rng.integers(n_classes, size=200)
    Y = signs(y)
    F = Y + rng.standard_normal(Y.shape)
    one, small = (
        fit_probability_link(F, Y, np.ones(200)),
        fit_probability_link(F, Y, np.full(200, 1e-3)),
    )
    np.testing.assert_allclose(small.slopes, one.slopes, rtol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_values_that_say_nothing_or_all_have_finite_links(rng, n_classes):
    y = np.arange(60) % n_classes
    Y = signs(y)
    for F in (np.zeros_like(Y), Y, 1e9 * Y, -Y, 1e300 * rng.standard_normal(Y.shape)):
        link = fit_probability_link(F, Y, np.ones(60))
        assert np.all(np.isfinite(link.slopes))
        assert np.all(link.slopes > 0)
        P = link.probabilities(F)
        assert np.all(np.isfinite(link.log_probabilities(F)))
        np.testing.assert_allclose(P.sum(axis=1), 1)


# --- of models ------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, "balanced", {0: 5.0}])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_most_probable_class_is_the_one_predicted(X, rng, seed, n_classes, weights):
    y = classes_of(X, rng, n_classes)
    model = fitted(X, y, seed, class_weight=weights)
    new = rng.standard_normal((500, 2))
    P = model.predict_proba(new)
    assert P.shape == (500, n_classes)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(new))
    np.testing.assert_allclose(model.predict_log_proba(new), np.log(P), atol=1e-12)


def test_each_of_several_labels_has_a_probability(X, rng, seed):
    Y = (X + 0.5 * rng.standard_normal(X.shape) > [0.0, 1.0]).astype(int)
    model = fitted(X, Y, seed)
    P = model.predict_proba(X)
    assert P.shape == Y.shape
    np.testing.assert_array_equal(P > 0.5, model.predict(X) == 1)
    one = fitted(X, Y[:, 1], seed, sampler=model.landmarks_.indices)
    np.testing.assert_allclose(P[:, 1], one.predict_proba(X)[:, 1], atol=1e-6)


def test_probabilities_are_right_where_they_are_known(seed):
    """In tenths of the rows as many of a class as told, but for sampling error."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (6000, 1))
    p = expit(3 * np.sin(2 * X[:, 0]))
    y = rng.random(6000) < p
    model = KernelRidgeClassifier(
        1.0, kernel="rbf", gamma=1.0, n_landmarks=30, random_state=seed
    ).fit(X[:3000], y[:3000])
    told = model.predict_proba(X[3000:])[:, 1]
    assert np.sqrt(np.mean((told - p[3000:]) ** 2)) < 0.04
    for part in np.array_split(np.argsort(told), 10):
        # p is known: no luck of labels but in the fit.
        assert abs(told[part].mean() - p[3000:][part].mean()) < 0.06


def test_conjugate_gradients_have_none(X, rng, seed):
    model = fitted(X, classes_of(X, rng, 2), seed, solver="cg")
    with pytest.raises(ValueError, match="predict_proba needs the Gram matrix"):
        model.predict_proba(X)


def test_least_squares_has_some(X, rng, seed):
    y = classes_of(X, rng, 2)
    model = KernelRidgeClassifier(0.0, kernel="rbf", n_landmarks=N_ROWS).fit(X, y)
    assert np.all(np.isfinite(model.predict_proba(X)))


def test_rows_that_are_all_alike_have_probabilities(rng):
    """About their mean they are rounding, of either sign, which has no root."""
    y = np.arange(99) % 3 > 0
    for entry in rng.uniform(1, 100, 20):
        X, w = np.full((99, 19), entry), rng.uniform(0.5, 2, 99)
        few = {"kernel": "poly", "gamma": 4e-5, "n_landmarks": 1}
        model = KernelRidgeClassifier(0.0, **few).fit(X, y, w)
        P = model.predict_proba(X[:1])
        assert 0.4 < P[0, 1] < 1


# --- sets of classes ------------------------------------------------------------------


def overlapping_classes(n_classes, n_rows, rng):
    """Gaussian classes, the first as large as all others together."""
    y = rng.integers(0, 2 * n_classes - 2, n_rows)
    y[y >= n_classes] = 0
    centers = 1.2 * np.random.default_rng(n_classes).standard_normal((n_classes, 3))
    return centers[y] + rng.standard_normal((n_rows, 3)), y


@pytest.mark.parametrize("class_weight", [None, {0: 0.05}])
@pytest.mark.parametrize("n_classes", [2, 4, 12])
def test_sets_hold_the_class_as_often_as_asked_for(n_classes, class_weight):
    shares, sizes = [], []
    for seed in range(8):
        X, y = overlapping_classes(n_classes, 900, np.random.default_rng(seed))
        model = KernelRidgeClassifier(1.0, gamma=0.3, n_landmarks=40, random_state=seed)
        model.set_params(class_weight=class_weight).fit(X[:300], y[:300])
        sets = [model.predict_set(X[300:], coverage=c) for c in (0.8, 0.9, 0.95)]
        for smaller, larger in pairwise(sets):
            assert np.all(smaller <= larger)
        assert sets[0].dtype == bool
        top = model.predict_proba(X[300:]).argmax(axis=1)
        assert np.all(sets[0][np.arange(600), top])
        shares.append([each[np.arange(600), y[300:]].mean() for each in sets])
        sizes.append(sets[1].sum(axis=1).mean())
        accuracy = model.score(X[300:], y[300:])
        shares[-1] -= np.maximum([0.8, 0.9, 0.95], accuracy)
    # A share of 8 fits deviates by about √(0.16/(8·300)) < 0.01.
    np.testing.assert_allclose(np.mean(shares, axis=0), 0, atol=0.035)
    assert np.mean(sizes) < 0.75 * n_classes


def test_sets_count_rows_by_their_weights_and_are_saved(rng, tmp_path):
    X, y = overlapping_classes(3, 300, rng)
    w, names = rng.integers(0, 3, 300).astype(float), np.array(["a", "b", "c"])
    model = KernelRidgeClassifier(1.0, gamma=0.3, n_landmarks=30, random_state=0)
    model.fit(X, names[y], w)
    sets = model.predict_set(X, coverage=0.9)
    inside = sets[np.arange(300), y]
    assert abs(np.average(inside, weights=w) - 0.9) < 0.03
    save(model, tmp_path / "model.nystrom")
    again = load(tmp_path / "model.nystrom")
    np.testing.assert_array_equal(again.predict_set(X), sets)


def test_sets_say_what_they_need(rng):
    X, y = overlapping_classes(3, 60, rng)
    model = KernelRidgeClassifier(1.0, n_landmarks=10, random_state=0).fit(X, y)
    for coverage in (0, 1, 90, "0.9", np.nan, True):
        with pytest.raises(ValueError, match=r"coverage=.+ is not allowed"):
            model.predict_set(X, coverage=coverage)
    with pytest.raises(ValueError, match=r"coverage=0\.999 needs .* at most 0\.98"):
        model.predict_set(X, coverage=0.999)
    with pytest.raises(ValueError, match="solver='direct'"):
        model.set_params(solver="cg").fit(X, y).predict_set(X)
    several = np.column_stack([y == 0, y > 0])
    with pytest.raises(ValueError, match="a classifier for each label"):
        model.set_params(solver="auto").fit(X, several).predict_set(X)


# --- from anywhere, to anywhere -------------------------------------------------------


@pytest.mark.parametrize("make", [KernelRidgeClassifier, KernelRidgeClassifierCV])
def test_text_classes_of_a_file_and_probabilities_in_one(make, X, rng, tmp_path):
    names = np.array(["ash", "beech", "elm"])[classes_of(X, rng, 3)]
    path = tmp_path / "rows.parquet"
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "kind": names})
    parquet.write_table(table, path, row_group_size=40)
    source = sources.open(path, target="kind")
    options = {**FEW, "random_state": 0}
    model, expected = make(**options).fit(source), make(**options).fit(X, names)
    wanted = expected.predict_proba(X)
    np.testing.assert_allclose(model.predict_proba(source), wanted, atol=1e-6)
    out = tmp_path / "probabilities.parquet"
    assert model.predict_proba(source, out=out) == out
    back = parquet.read_table(out)
    assert back.column_names == [
        f"probability_{name}" for name in ("ash", "beech", "elm")
    ]
    np.testing.assert_allclose(back.to_pandas().to_numpy(), wanted, atol=1e-6)
    held = np.empty_like(wanted)
    model.predict_log_proba(X, out=held)
    np.testing.assert_allclose(held, np.log(wanted), atol=1e-5)
