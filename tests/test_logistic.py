"""KernelLogisticRegression against logistic regression of scikit-learn on features."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from nystrom import KernelLogisticRegression, Nystroem
from nystrom.engines import Threads
from nystrom.models import logistic as fit
from nystrom.models.logistic import (
    objective_and_gradient,
    representative_sample,
    sample_rows_by_weight,
)
from nystrom.sources import DenseRows

N_ROWS, GAMMA, S = 300, 0.3, np.arange(0, 300, 15)


@pytest.fixture
def X(rng):
    return rng.standard_normal((N_ROWS, 3))


def classes_of(X, n_classes, rng):
    """Classes of different sizes, which overlap."""
    noisy = X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * rng.standard_normal(len(X))
    cuts = np.quantile(noisy, np.linspace(0, 1, n_classes + 1)[1:-1] ** 1.5)
    return np.digitize(noisy, cuts)


def model(C=1.0, **options):
    options = {"gamma": GAMMA, "sampler": S, "random_state": 0, "tol": 1e-13} | options
    return KernelLogisticRegression(C, **options)


def on_features(X, y, C=1.0, weights=None, **options):
    """Features of the same landmarks, and what scikit-learn fits on them."""
    features = Nystroem(gamma=GAMMA, sampler=S).fit(X)
    theirs = LogisticRegression(
        C=C, solver="newton-cholesky", tol=1e-9, max_iter=500, **options
    )
    theirs.fit(features.transform(X), y, weights)
    return features, theirs


def assert_same(fitted, features, theirs, X, n_rows=N_ROWS):
    """The same probabilities, but for what `tol` leaves.

    Where a share tol of an objective of at most C·n·log k is left, ‖x − x*‖² in the
    norm of H is twice that, and a row's own curvature C·p(1 − p)·zzᵀ is no more than H:
    (p − p*)² ≤ 2·tol·n·log k·p(1 − p). Twice the root, as what is left is an estimate.
    """
    k = len(theirs.classes_)
    atol = 2 * np.sqrt(2 * fitted.tol * n_rows * np.log(k) / 4)
    assert atol < 1e-4
    Z = features.transform(X)
    found = fitted.predict_proba(X)
    np.testing.assert_allclose(found, theirs.predict_proba(Z), atol=atol)
    np.testing.assert_array_equal(fitted.classes_, theirs.classes_)


# --- against scikit-learn -----------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e3])
@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_is_logistic_regression_on_features(X, rng, n_classes, C, intercept):
    y = classes_of(X, n_classes, rng)
    fitted = model(C, fit_intercept=intercept).fit(X, y)
    features, theirs = on_features(X, y, C, fit_intercept=intercept)
    assert_same(fitted, features, theirs, X)
    assert_same(fitted, features, theirs, rng.standard_normal((40, 3)))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 5.0, 1: 0.5, 2: 1.0}])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_of_rows_and_classes(X, rng, n_classes, class_weight, weighted):
    if isinstance(class_weight, dict):
        class_weight = {c: class_weight[c] for c in range(n_classes)}
    y = classes_of(X, n_classes, rng)
    weights = rng.integers(0, 4, N_ROWS).astype(float) if weighted else None
    fitted = model(class_weight=class_weight).fit(X, y, weights)
    features, theirs = on_features(X, y, weights=weights, class_weight=class_weight)
    assert_same(fitted, features, theirs, X)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_sample_changes_the_way_and_not_the_goal(
    rng, monkeypatch, n_classes, weighted
):
    """Many rows, of which few are looked at."""
    monkeypatch.setattr(fit, "ROWS_PER_LANDMARK", 8)
    monkeypatch.setattr(fit, "MULTICLASS_ROWS_PER_LANDMARK", 8)
    X = rng.standard_normal((3000, 3))
    y = classes_of(X, n_classes, rng)
    weights = rng.exponential(size=len(X)) if weighted else None
    fitted = model(10.0).fit(X, y, weights)
    features, theirs = on_features(X, y, 10.0, weights)
    assert_same(fitted, features, theirs, X, len(X))
    assert fitted.n_iter_ < 40


# --- loss and curvature -------------------------------------------------------------


@pytest.fixture
def problem(X, rng):
    """Coefficients somewhere, and the objective there."""

    def made(n_classes):
        y = classes_of(X, n_classes, rng)
        Y = np.where(y[:, None] == np.arange(n_classes), 1.0, -1.0)
        Y = Y[:, 1:] if n_classes == 2 else Y
        source = DenseRows(X).replace(targets=Y, weights=rng.exponential(size=N_ROWS))
        landmarks = model().fit(X, y).landmarks_
        mapping = fit.logistic_feature_map(landmarks, source, 2.0)
        coef = rng.standard_normal((mapping.rank + 1, Y.shape[1]))
        return mapping, source, coef

    return made


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_gradient_is_that_of_the_value(problem, rng, n_classes):
    mapping, source, coef = problem(n_classes)

    def slope(V):
        return objective_and_gradient(V, mapping, source, 2.0, True, Threads(1))

    D = rng.standard_normal(coef.shape)
    D /= np.linalg.norm(D)
    h = 1e-5
    change = (slope(coef + h * D).value - slope(coef - h * D).value) / (2 * h)
    assert change == pytest.approx(float(np.vdot(slope(coef).gradient, D)), rel=1e-6)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_curvature_is_that_of_the_gradient(
    problem, rng, monkeypatch, n_classes, intercept
):
    monkeypatch.setattr(fit, "CG_RTOL", 1e-10)
    mapping, source, coef = problem(n_classes)
    coef[-1] *= intercept
    coef -= coef.mean(axis=1, keepdims=True) if n_classes > 2 else 0.0

    def gradient(V):
        return objective_and_gradient(
            V, mapping, source, 2.0, intercept, Threads(1)
        ).gradient

    D = rng.standard_normal(coef.shape)
    D[-1] *= intercept
    D -= D.mean(axis=1, keepdims=True) if n_classes > 2 else 0.0
    h = 1e-5
    HD = (gradient(coef + h * D) - gradient(coef - h * D)) / (2 * h)
    H = fit.SampledHessian(mapping, source, 2.0, intercept)
    np.testing.assert_allclose(H.inverse_at(coef)(HD), D, atol=1e-5)
    # With factors that were made at another place.
    other = fit.SampledHessian(mapping, source, 2.0, intercept)
    other.inverse_at(0 * coef)
    np.testing.assert_allclose(other.inverse_at(coef)(HD), D, atol=1e-5)


def test_drawn_rows_count_for_all(rng):
    weights = rng.exponential(size=4000) * (rng.random(4000) < 0.7)
    weights[7] = 5000.0
    source = DenseRows(rng.standard_normal((4000, 2))).replace(weights=weights)
    totals = []
    for seed in range(40):
        rows, w = sample_rows_by_weight(source, 300, seed)
        assert len(rows) == 300
        assert weights[rows].min() > 0
        assert 7 in rows
        totals.append(w.sum())
    spread = np.std(totals) / np.sqrt(len(totals))
    assert abs(np.mean(totals) - weights.sum()) < 5 * spread
    assert np.std(totals) < 0.1 * weights.sum()
    assert representative_sample(source, 2000, Threads(1), 0) is source


# --- convergence --------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("C", [1.0, 1e4, 1e8])
def test_separable_classes(X, n_classes, C):
    y = np.digitize(X[:, 0], np.linspace(-0.5, 0.5, n_classes + 1)[1:-1])
    X = X + np.eye(3)[0] * (4.0 * y[:, None])
    fitted = model(C, tol=1e-12 if C == 1 else 1e-6).fit(X, y)
    if C == 1:  # shrunk: not all rows need be right
        assert_same(fitted, *on_features(X, y), X)
    else:
        assert fitted.score(X, y) > 0.99
    assert np.isfinite(fitted.predict_log_proba(X)).all()


def apart(X, n_classes, rng=None):
    """Classes with a gap between them, and a few rows on the wrong side with `rng`."""
    noise = 0.0 if rng is None else 0.1 * rng.standard_normal(len(X))
    cuts = np.quantile(X[:, 0], np.arange(1, n_classes) / n_classes)
    y = np.digitize(X[:, 0] + noise, cuts)
    return X + np.eye(3)[0] * y[:, None], y


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_classes_that_lie_apart_take_newton_steps(X, n_classes):
    """A loss that falls as exp(−margin) is divided by e in each of Newton's steps.

    From C·n·log k down that makes log(C·n) steps; quasi-Newton ones were 23 to 29.
    """
    X, y = apart(X, n_classes)
    options = {"sampler": "auto", "n_landmarks": 60, "tol": 1e-6}
    assert model(1e6, **options).fit(X, y).n_iter_ < 22


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_flat_sample_makes_no_long_steps(rng, monkeypatch, n_classes):
    """Rows on the wrong side are few, and fewer in the sample: 2 passes for a step."""
    monkeypatch.setattr(fit, "ROWS_PER_LANDMARK", 8)
    monkeypatch.setattr(fit, "MULTICLASS_ROWS_PER_LANDMARK", 8)
    X, y = apart(rng.standard_normal((3000, 3)), n_classes, rng)
    passes = []

    def counted(coef, mapping, source, *rest):
        passes.append(source.n_rows == len(X))
        return objective_and_gradient(coef, mapping, source, *rest)

    monkeypatch.setattr(fit, "objective_and_gradient", counted)
    fitted = model(1e4, sampler="auto", n_landmarks=60, tol=1e-6).fit(X, y)
    assert fitted.n_iter_ > 10
    assert sum(passes) < 1.5 * fitted.n_iter_  # 1.3 at most, and 1.8 at least


def test_by_default_probabilities_are_those_of_the_minimum(seed):
    """Also where labels are renamed, which changes rounding, and steps by that."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((4000, 3))
    y, renamed = classes_of(X, 3, rng), np.array([2, 0, 1])
    options = {"gamma": GAMMA, "n_landmarks": 60, "random_state": seed}
    found = KernelLogisticRegression(1e3, **options).fit(X, y).predict_proba(X)
    again = KernelLogisticRegression(1e3, **options).fit(X, renamed[y])
    tight = KernelLogisticRegression(1e3, tol=1e-13, max_iter=500, **options)
    expected = tight.fit(X, y).predict_proba(X)
    np.testing.assert_allclose(found, expected, atol=3e-3)
    np.testing.assert_allclose(again.predict_proba(X)[:, renamed], found, atol=3e-3)


def test_too_few_steps_are_told(X, rng):
    y = classes_of(X, 3, rng)
    with pytest.warns(ConvergenceWarning, match=r"in 2 steps.*Raise max_iter=2"):
        fitted = model(100.0, max_iter=2).fit(X, y)
    assert fitted.n_iter_ == 2
    assert fitted.score(X, y) > 0.4  # what was reached is kept


def test_steps_that_rounding_hides_are_told():
    """Cubes of one row are 10³³ times the others': no step is right for both."""
    X, y = np.random.default_rng(0).standard_normal((60, 1)), np.arange(60) % 3
    X[4] = 1e11
    hidden = model(kernel="poly", gamma=1.0, degree=3, sampler="greedy", n_landmarks=4)
    with pytest.warns(ConvergenceWarning, match="scale the features"):
        fitted = hidden.fit(X, y)
    assert fitted.n_iter_ < fitted.max_iter


def test_few_rows_of_a_class(rng, monkeypatch):
    """A sample without any of them is not begun with."""
    monkeypatch.setattr(fit, "MULTICLASS_ROWS_PER_LANDMARK", 8)
    X = rng.standard_normal((4000, 3))
    y = classes_of(X, 3, rng)
    y[:3], X[:3, 0] = 9, 6.0
    fitted = model(10.0).fit(X, y)
    features, theirs = on_features(X, y, 10.0)
    assert_same(fitted, features, theirs, X, len(X))


# --- C ------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_several_C_are_chosen_by_the_loss_left_out(X, rng, n_classes):
    y = classes_of(X, n_classes, rng)
    costs = [1e3, 1e-5, 1.0]
    fitted = model(costs).fit(X, y)
    assert fitted.C_ == costs[int(np.argmin(fitted.losses_))] != 1e-5
    expected = model(fitted.C_).fit(X, y)
    assert expected.losses_ is None
    np.testing.assert_allclose(
        fitted.predict_proba(X), expected.predict_proba(X), atol=1e-6
    )
    # With hardly any weight of the loss, probabilities are the shares of the classes.
    shares = np.bincount(y) / N_ROWS
    constant = log_loss(y, np.tile(shares, (N_ROWS, 1)))
    assert fitted.losses_[1] == pytest.approx(constant, rel=0.05)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_C_means_the_same_on_fewer_rows(n_classes):
    """Rows of a class are alike, and one in five is left out: C counts for all rows."""
    y = np.arange(50 * n_classes) % n_classes
    X = np.eye(n_classes)[y]
    options = {"kernel": "linear", "gamma": None, "fit_intercept": False}
    options["sampler"] = np.arange(n_classes)
    costs = [1e-3, 1e-2, 1e-1]
    fitted = model(costs, **options).fit(X, y)
    each = [log_loss(y, model(C, **options).fit(X, y).predict_proba(X)) for C in costs]
    np.testing.assert_allclose(fitted.losses_, each, rtol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_only_row_of_a_class_is_not_left_out(X, rng, n_classes):
    """Without it the constant of the class goes to −∞, where no step leads back."""
    y = np.maximum(np.arange(N_ROWS) - N_ROWS + n_classes, 0)
    options = {"class_weight": {c: 0.1**c for c in range(n_classes)}, "tol": 1e-9}
    fitted = model([0.1, 1.0, 10.0], **options).fit(X, y)
    assert fitted.losses_.max() < 0.01  # all rows left out are of the other class
    expected = model(fitted.C_, **options).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(fitted.predict_proba(X), expected, atol=1e-4)


def test_rows_that_are_all_alike(rng):
    """Only a constant is to be had: the shares of the classes, whatever they weigh."""
    X, y = np.zeros((40, 2)), np.arange(40) % 4 // 2 + (np.arange(40) == 1)
    for weight in (1e-9, 1.0, 1e9):
        fitted = model(sampler="auto", n_landmarks=20)
        fitted.fit(X, y, np.full(40, weight))
        shares = np.bincount(y) / 40
        near = {"atol": 1e-5, "rtol": 0}
        np.testing.assert_allclose(fitted.predict_proba(X[:1])[0], shares, **near)


def test_no_row_to_spare(X):
    with pytest.raises(ValueError, match=r"C=\[1.0, 2.0\].*no class has enough"):
        model([1.0, 2.0], sampler="auto").fit(X[:3], np.arange(3))


def test_a_C_that_overflows_is_refused(rng):
    X = rng.standard_normal((200, 3))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = KernelLogisticRegression(1e306, n_landmarks=30, random_state=0)
    with pytest.raises(ValueError, match=r"C=1e\+306 times the weights"):
        model.fit(X, y)


@pytest.mark.parametrize("gamma", ["scale", "median"])
def test_rows_of_weight_0_have_no_say_in_the_width(gamma, rng):
    X = rng.standard_normal((300, 3))
    far = np.concatenate([X, 1e3 * rng.standard_normal((30, 3))])
    y, w = far[:, 0] > 0, np.repeat([1.0, 0.0], [300, 30])
    model = KernelLogisticRegression(gamma=gamma, n_landmarks=50, random_state=0)
    with_them = model.fit(far, y, sample_weight=w).landmarks_.kernel.gamma
    assert with_them == pytest.approx(model.fit(X, y[:300]).landmarks_.kernel.gamma)
