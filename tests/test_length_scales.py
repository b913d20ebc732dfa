"""gamma="learn": gradients, the likelihood, and what is learnt from made rows."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from lists import DISTANCE_NAMES, named, skip_older_array_api
from oracles_kernels import dense_likelihood
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from nystrom import (
    KernelLogisticRegression,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeCV,
    Nystroem,
    kernels,
    load,
    save,
    select_landmarks,
    sources,
)
from nystrom.engines import Threads
from nystrom.kernels.names import with_gamma
from nystrom.kernels.stationary import WidthGradient
from nystrom.models.length_scales import (
    MAX_SUBSET_ROWS,
    LandmarkGP,
    TrainingSubset,
    evaluate_kernel,
    learn_length_scales,
    length_scale_objective,
    standardize_targets,
)

FEW = {"kernel": "rbf", "n_landmarks": 30, "random_state": 0}
#: As many as show all that there is to these rows.
MORE = FEW | {"n_landmarks": 150}


def made(n=300, d=4, seed=0):
    """Rows of which the first two features matter, one much and one less."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.sin(2.5 * X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.1 * rng.standard_normal(n)
    return X, y


def looked_at(X, Y, weights=None, size=40, *, intercept=True, seed=0):
    source = sources.as_source(X).replace(targets=Y, weights=weights)
    return TrainingSubset.from_source(
        source, Threads(1), size=size, intercept=intercept, dense=True, seed=seed
    )


def weighted_case(intercept=True, seed=0):
    X, y = made(60, seed=seed)
    weights = np.random.default_rng(seed + 1).uniform(0.3, 3.0, 60)
    Y = np.column_stack([y, 100 * X[:, 2] - 7])
    return looked_at(X, Y, weights, 20, intercept=intercept)


# --- the likelihood and its gradient ------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("alpha", [1e-3, 0.3, 20.0])
def test_the_likelihood_is_that_of_the_dense_gaussian(seed, intercept, alpha):
    looked = weighted_case(intercept, seed)
    C = kernels.RBF(0.4)(looked.X, looked.X[:20])
    found, _, _ = LandmarkGP(C, looked).value_and_gradient(alpha)
    wanted = dense_likelihood(C, alpha, looked)
    assert LandmarkGP(C, looked).fit(alpha)[0] == found
    assert found == pytest.approx(wanted, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", DISTANCE_NAMES)
@pytest.mark.parametrize("each", [False, True])
def test_gradients_are_those_of_finite_differences(seed, name, each):
    looked = weighted_case(seed=seed)
    kernel = with_gamma(named(name), 0.3)
    pairs = WidthGradient(kernel, looked.X, looked.n_landmarks, per_feature=each)
    descent = partial(length_scale_objective, pairs=pairs, subset=looked)
    rng = np.random.default_rng(seed)
    place = np.append(0.4 * rng.standard_normal(4 if each else 1), -1.5)
    _, gradient = descent(place)
    step = 1e-5
    steps = step * np.eye(len(place))
    for move, slope in zip(steps, gradient, strict=True):
        rise = (descent(place + move)[0] - descent(place - move)[0]) / (2 * step)
        assert slope == pytest.approx(rise, rel=1e-5, abs=1e-7)


def test_targets_that_do_not_vary_are_left_out():
    Y = np.column_stack([np.arange(5.0), np.full(5, 3.3), np.zeros(5)])
    assert standardize_targets(Y, np.ones(5), intercept=True).shape == (5, 1)
    assert standardize_targets(Y, np.ones(5), intercept=False).shape == (5, 2)


# --- what is learnt -----------------------------------------------------------------


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("name", ["rbf", "laplacian", "matern32"])
def test_never_worse_than_what_was_there_to_begin_with(seed, name, each):
    rng = np.random.default_rng(seed)
    for shape, scales in (((40, 2), 1.0), ((120, 3), [0.01, 1.0, 300.0])):
        X = rng.standard_normal(shape) * scales
        Y = rng.standard_normal((len(X), 2)) + np.sign(X[:, :1])
        looked = looked_at(X, Y, size=25)
        widths = list(10.0 ** rng.uniform(-3, 1, 2))
        found = learn_length_scales(named(name), widths, looked, ard=each)[-1]
        alphas = np.geomspace(1e-6, 1e4, 81).tolist()
        best = min(f.value for f in evaluate_kernel(found, looked, alphas))
        starts = [with_gamma(named(name), width) for width in widths]
        known = [f.value for k in starts for f in evaluate_kernel(k, looked)]
        assert best <= min(known) + 1e-3


def test_features_that_do_not_matter_get_long_lengths(seed):
    X, y = made(500, 6, seed)
    model = KernelRidge(0.01, **MORE, gamma="ard").fit(X, y)
    lengths = 1 / np.sqrt(2 * model.gamma_)
    assert lengths[2:].min() > 5 * lengths[:2].max()


def test_a_feature_in_other_units_has_its_length_in_them(seed):
    """In one of ten data sets another maximum is found, with lengths up to 6 times."""
    X, y = made(400, 4, seed)
    scale = np.array([3.0, 0.2, 10.0, 40.0])  # no common width is a good start
    lengths = []
    for unit in (scale, scale * [100.0, 1.0, 0.01, 7.0]):
        gamma = KernelRidge(0.01, **MORE, gamma="ard").fit(X * unit, y).gamma_
        lengths.append(1 / np.sqrt(2 * gamma) / unit)
    one, other = np.array(lengths)
    assert np.all(np.abs(np.log(one / other))[:2] < np.log(20))
    assert np.all(np.minimum(one, other)[2:] > 3)


def test_other_units_of_the_targets_change_nothing(seed):
    X, y = made(200, 3, seed)
    Y = np.column_stack([y, X[:, 1]])
    model = KernelRidge(0.01, **FEW, gamma="learn", fit_intercept=True)
    a, b = (clone(model).fit(X, Z).gamma_ for Z in (Y, Y * [1e6, 1e-4] + [0.0, 5.0]))
    assert a == pytest.approx(b, rel=1e-3)


def test_steps_that_end_on_the_way_go_on(seed, monkeypatch):
    """As rounding made them: −log p stayed 0.6 per row above what there was."""
    X, y = made(200, 3, seed)
    model = KernelRidge(0.01, **FEW, gamma="learn")
    expected, given = clone(model).fit(X, y).gamma_, []

    def cut_short(*args, options, **rest):
        given.append(options)
        options = options | {"maxfun": 3} if len(given) == 1 else options
        return minimize(*args, options=options, **rest)

    monkeypatch.setattr("nystrom.models.length_scales.minimize", cut_short)
    assert clone(model).fit(X, y).gamma_ == pytest.approx(expected, rel=1e-2)
    first, second = (each["maxfun"] for each in given)
    assert first == 40
    assert 20 < second <= 37  # looks that are left; a search ends where it can


def test_a_width_per_feature_predicts_better_where_few_features_matter(seed):
    X, y = made(900, 8, seed)
    scores = [
        KernelRidge(0.01, **MORE, gamma=gamma)
        .fit(X[:600], y[:600])
        .score(X[600:], y[600:])
        for gamma in ("scale", "learn", "ard")
    ]
    assert scores[2] > max(scores[:2]) + 0.1


def test_rows_of_weight_0_are_not_in_the_training_subset(seed):
    X, y = made(MAX_SUBSET_ROWS + 500, 3, seed)
    weights = (np.arange(len(X)) % 3 > 0).astype(float)
    y[weights == 0] = 1e3
    looked = looked_at(X, y[:, None], weights)
    assert len(looked.targets) == MAX_SUBSET_ROWS
    assert np.ptp(looked.targets) < 20


def test_exact_targets_count_for_more_than_inexact_ones(seed):
    """A fast wave with large weights, beside as many rows of a slow one with small."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (400, 1))
    fast = np.arange(400) % 2 == 0
    y = np.where(fast, np.sin(4 * X[:, 0]), X[:, 0]) + 0.05 * rng.standard_normal(400)
    weights = np.where(fast, 1.0, 1e-4), np.where(fast, 1e-4, 1.0)
    models = [KernelRidge(0.1, **FEW, gamma="learn").fit(X, y, w) for w in weights]
    assert models[0].gamma_ > 5 * models[1].gamma_
    alone = KernelRidge(0.1, **FEW, gamma="learn").fit(X[fast], y[fast])
    assert 1 / 3 < models[0].gamma_ / alone.gamma_ < 3


# --- in estimators ------------------------------------------------------------------


@pytest.mark.parametrize("gamma", ["learn", "ard"])
@pytest.mark.parametrize(
    "make",
    [KernelRidge, KernelRidgeCV, KernelRidgeClassifier, KernelLogisticRegression],
)
def test_learnt_widths_are_attributes_and_saved(make, gamma, tmp_path):
    X, y = made(150)
    if issubclass(make, (KernelRidgeClassifier, KernelLogisticRegression)):
        y = np.array(["low", "mid", "high"])[np.digitize(y, [-0.3, 0.8])]
    model = make(**FEW, gamma=gamma).fit(X, y)
    np.testing.assert_array_equal(model.gamma_, model.landmarks_.kernel.gamma)
    assert np.shape(model.gamma_) == ((4,) if gamma == "ard" else ())
    save(model, tmp_path / "model.nystrom")
    again = load(tmp_path / "model.nystrom")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.gamma_, model.gamma_)


def test_a_fit_with_a_number_forgets_what_was_learnt():
    X, y = made(80)
    model = KernelRidge(**FEW, gamma="learn").fit(X, y)
    assert not hasattr(model.set_params(gamma=0.2).fit(X, y), "gamma_")


def test_one_of_several_widths_may_be_learnt():
    X, y = made(200)
    model = KernelRidgeCV(**FEW, gammas=[50.0, "ard", 1e-4]).fit(X, y)
    np.testing.assert_array_equal(model.gamma_, model.landmarks_.kernel.gamma)
    assert len(model.gamma_) == 4


def test_exact_mode_learns_too():
    X, y = made(60)
    model = KernelRidge(kernel="rbf", gamma="learn", random_state=0).fit(X, y)
    assert model.solver_ == "exact"
    assert model.gamma_ == model.landmarks_.kernel.gamma


def test_storage_and_precision_learn_the_same(tmp_path):
    X, y = made(250)
    X, y = np.round(X * (np.abs(X) > 0.5), 2), np.round(y, 3)
    np.save(tmp_path / "X.npy", X)
    forms = [X, sp.csr_array(X), str(tmp_path / "X.npy"), X.astype(np.float32)]
    for gamma in ("learn", "ard"):
        model = KernelRidge(0.1, **FEW, gamma=gamma)
        widths = [clone(model).fit(rows, y).gamma_ for rows in forms]
        for other in widths[1:]:
            np.testing.assert_allclose(other, widths[0], rtol=0.01, atol=1e-3)


def test_a_pipeline_hands_its_classes_to_nystroem():
    X, y = made(300)
    labels = np.array(["low", "high"])[(y > 0.5).astype(int)]
    features = Nystroem(gamma="ard", n_components=50, random_state=0)
    model = make_pipeline(features, KernelRidgeClassifier()).fit(X, labels)
    assert model[0].gamma_.shape == (4,)
    assert model.score(X, labels) > 0.9
    numbers = clone(features).fit(X, y)
    assert not np.array_equal(numbers.gamma_, model[0].gamma_)
    assert features.__sklearn_tags__().target_tags.required


def test_a_stream_learns_from_its_first_batch():
    X, y = made(400)
    model = KernelRidge(0.1, **FEW, gamma="learn").partial_fit(X[:200], y[:200])
    first = model.gamma_
    assert model.partial_fit(X[200:], y[200:]).landmarks_.kernel.gamma == first


@pytest.mark.parametrize("y", [np.full(50, 3.0), np.zeros(50)])
def test_targets_that_say_nothing_leave_the_scale(y):
    X, _ = made(50)
    model = KernelRidge(0.1, **FEW, gamma="learn", fit_intercept=True).fit(X, y)
    assert model.gamma_ == pytest.approx(1 / (4 * X.var()))


def expected_failures(estimator):
    """Copies of rows are drawn apart from each other, and speak for more than one."""
    name = "check_sample_weight_equivalence_on_{}_data"
    which = ("dense", "sparse")
    return {name.format(w): "weights say how exact a target is" for w in which}


@parametrize_with_checks(
    [
        KernelRidge(kernel="rbf", gamma="learn", n_landmarks=12, random_state=0),
        KernelRidgeClassifier(**FEW, gamma="ard"),
    ],
    expected_failed_checks=expected_failures,
)
def test_estimator_checks(estimator, check):
    skip_older_array_api(check)
    check(estimator)


# --- refusals and warnings ----------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "poly", "chi2", kernels.RBF(1.0)])
def test_other_kernels_have_no_width_to_learn(kernel):
    X, y = made(50)
    model = KernelRidge(kernel=kernel, gamma="learn", n_landmarks=5)
    with pytest.raises(ValueError, match=r"gamma='learn' needs a kernel of a distance"):
        model.fit(np.abs(X), y)


def test_without_targets_there_is_nothing_to_learn_from():
    X, _ = made(50)
    for fit in (
        KernelPCA(kernel="rbf", gamma="learn", n_landmarks=5).fit,
        Nystroem(gamma="ard", n_components=5).fit,
        lambda X: select_landmarks(X, gamma="learn", n_landmarks=5),
    ):
        with pytest.raises(ValueError, match="is learnt from targets"):
            fit(X)


def test_too_many_features_have_no_width_each():
    X = sp.random_array((20, 2**14 + 1), density=1e-3, format="csr", rng=0)
    model = KernelRidge(kernel="rbf", gamma="ard", n_landmarks=5)
    with pytest.raises(ValueError, match=r"each of 16385 features.*gamma='learn'"):
        model.fit(X, np.arange(20.0))
    assert model.set_params(gamma="learn").fit(X, np.arange(20.0)).gamma_ > 0


@pytest.mark.parametrize("scale", [1e4, 1e-7])
def test_a_width_that_suits_no_rows_warns_once(scale):
    X, y = made(600)
    said = "diagonal" if scale > 1 else "constant"
    with pytest.warns(UserWarning, match=f"nearly {said}.*Scale the f.*gamma"):
        KernelRidge(**FEW, gamma=1.0).fit(X * scale, y)
    with pytest.warns(UserWarning, match=f"matrix is nearly {said}"):
        Nystroem(gamma=1.0, n_components=30, random_state=0).fit(X * scale)


def test_few_landmarks_alone_do_not_warn():
    """They leave much of a K that is far from diagonal."""
    X, _ = made(2000, 8)
    found = Nystroem(gamma=0.3, n_components=5, random_state=0).fit(X)
    assert found.approximation_error_.value > 0.8
    assert Nystroem(gamma=1.0, n_components=2).fit(np.ones((9, 2))) is not None
