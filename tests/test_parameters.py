"""No parameter takes nonsense in silence: one error, which names it."""

from __future__ import annotations

import numpy as np
import pytest
from lists import ESTIMATORS, GAMMA_NAMES
from sklearn.base import clone, is_classifier
from sklearn.decomposition import KernelPCA as SklearnKernelPCA
from sklearn.kernel_approximation import Nystroem as SklearnNystroem
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge

from nystrom import (
    KernelCCA,
    KernelKMeans,
    KernelLogisticRegression,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
    KernelRidgeCV,
    Nystroem,
    kernels,
    samplers,
    select_landmarks,
)
from nystrom.kernels.names import as_kernel

X = np.random.default_rng(0).standard_normal((30, 3))
Y = np.sin(X[:, 0])
#: What no parameter is, and what Python would take for a number, a list or True.
NONSENSE = [b"ab", 1j, np.nan, object(), {"a": 1}.items(), "yes"]
#: Parameters that are True or False, of any estimator.
SWITCHES = [
    (KernelCCA, "center"),
    (KernelKMeans, "affinity_normalize"),
    (KernelPCA, "center"),
    (KernelPCA, "copy_X"),
    (KernelPCA, "fit_inverse_transform"),
    (KernelPCA, "remove_zero_eig"),
    (KernelRidge, "fit_intercept"),
    (KernelRidgeCV, "alpha_per_target"),
    (KernelRidgeCV, "fit_intercept"),
    (KernelRidgeCV, "prefer_fewer"),
    (KernelRidgeClassifier, "fit_intercept"),
    (KernelRidgeClassifierCV, "fit_intercept"),
    (KernelRidgeClassifierCV, "prefer_fewer"),
    (KernelLogisticRegression, "fit_intercept"),
]


def test_only_names_of_scikit_learn_have_its_default_kernel():
    """All others are "rbf": relatives of each other do not differ in silence."""
    theirs = {
        "KernelPCA": SklearnKernelPCA,
        "KernelRidge": SklearnKernelRidge,
        "Nystroem": SklearnNystroem,
    }
    for estimator in ESTIMATORS:
        name = type(estimator).__name__
        wanted = theirs[name]().kernel if name in theirs else "rbf"
        assert type(estimator)().kernel == wanted, name


def test_classes_in_a_ring_are_found_without_a_parameter():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((400, 2))
    y = np.linalg.norm(rows, axis=1) > 1.2
    for make in (KernelRidgeClassifier, KernelLogisticRegression):
        assert make().fit(rows[:200], y[:200]).score(rows[200:], y[200:]) > 0.9
    values = np.linalg.norm(rows, axis=1)
    model = KernelRidgeCV().fit(rows[:200], values[:200])
    assert model.score(rows[200:], values[200:]) > 0.9


def small(estimator, **params):
    """One for few landmarks on an rbf kernel, so that no mode is exact."""
    names = estimator.get_params()
    size = "n_landmarks" if "n_landmarks" in names else "n_components"
    return clone(estimator).set_params(
        **{"kernel": "rbf", size: 5, "random_state": 0} | params
    )


def fit(estimator):
    y = Y > 0 if is_classifier(estimator) else Y
    return estimator.fit(X, y)


def refused(estimator, name, value):
    with pytest.raises((ValueError, TypeError)) as caught:
        fit(small(estimator, **{name: value}))
    assert name in str(caught.value)


PARAMETERS = [
    (estimator, name) for estimator in ESTIMATORS for name in estimator.get_params()
]


@pytest.mark.parametrize(
    ("estimator", "name"),
    PARAMETERS,
    ids=[f"{type(e).__name__}-{name}" for e, name in PARAMETERS],
)
def test_nonsense_is_refused_by_name(estimator, name):
    for value in NONSENSE:
        refused(estimator, name, value)


@pytest.mark.parametrize(("kind", "name"), SWITCHES)
@pytest.mark.parametrize("value", ["no", "False", 0, 1, None, [], 0.0])
def test_what_is_true_or_false_is_nothing_else(kind, name, value):
    with pytest.raises(ValueError, match=rf"{name}=.* is not allowed.*True or"):
        fit(small(kind(), **{name: value}))


@pytest.mark.parametrize(("kind", "name"), SWITCHES)
def test_every_switch_is_in_the_list_and_takes_true_and_false(kind, name):
    more = {"n_landmarks": [3, 5], "cv": 3} if name == "prefer_fewer" else {}
    for value in (True, np.False_):
        fit(small(kind(), **{name: value}, **more))


def test_the_list_of_switches_is_complete():
    found = {
        (type(estimator), name)
        for estimator in ESTIMATORS
        for name, value in estimator.get_params().items()
        if isinstance(value, bool)
    }
    assert found == set(SWITCHES)


# --- gamma --------------------------------------------------------------------------


@pytest.mark.parametrize("name", GAMMA_NAMES)
@pytest.mark.parametrize("gamma", [0, 0.0, np.float32(0)])
def test_a_kernel_has_a_width(name, gamma):
    with pytest.raises(ValueError, match=r"gamma=0.* is not allowed"):
        as_kernel(name, n_features=3, gamma=gamma)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_no_estimator_takes_a_width_of_zero(estimator):
    with pytest.raises(ValueError, match=r"gamma=0 is not allowed.*number > 0"):
        fit(small(estimator, gamma=0))


@pytest.mark.parametrize("make", [kernels.RBF, kernels.Laplacian])
def test_a_feature_may_have_no_width_but_not_all_of_them(make):
    found = make((0.5, 0.0, 0.0))(X, X[:4])
    np.testing.assert_allclose(found, make(0.5)(X[:, :1], X[:4, :1]))
    with pytest.raises(ValueError, match="gamma with no number but 0 is not allowed"):
        make((0.0, 0.0, 0.0))


def test_widths_of_zero_among_others():
    with pytest.raises(ValueError, match="gamma=0 is not allowed"):
        fit(small(KernelRidgeCV(), gammas=[0.1, 0]))


# --- numbers that are none ----------------------------------------------------------


@pytest.mark.parametrize("alpha", [True, "0.1", ["0.1"], b"1", [True]])
def test_an_alpha_is_a_number(alpha):
    for kind, name in ((KernelRidge, "alpha"), (KernelRidgeCV, "alphas")):
        with pytest.raises(ValueError, match=f"{name}=.* is not allowed"):
            fit(small(kind(), **{name: alpha}))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("name", ["max_spectral_error", "max_trace_error"])
def test_true_is_no_tolerance(estimator, name):
    refused(estimator, name, True)


@pytest.mark.parametrize("degree", [-1, np.inf, True, [2]])
def test_a_degree_is_looked_at_also_where_the_kernel_has_none(degree):
    with pytest.raises(ValueError, match=r"degree=.* is not allowed"):
        fit(small(Nystroem(), degree=degree))


@pytest.mark.parametrize("value", [0, (), [], "gamma"])
def test_kernel_params_are_a_dict(value):
    with pytest.raises(ValueError, match=r"kernel_params=.* is not allowed; .* dict"):
        select_landmarks(X, n_landmarks=5, kernel_params=value)


@pytest.mark.parametrize("value", [[], (), "Balanced", 2.0])
def test_class_weights_are_a_dict(value):
    with pytest.raises(ValueError, match=r"class_weight=.* is not allowed"):
        fit(small(KernelRidgeClassifier(), class_weight=value))


@pytest.mark.parametrize("size", [0, -1, True, 2.0, "5", None])
def test_a_size_is_a_count(size):
    with pytest.raises(ValueError, match=r"n_landmarks=.* is not allowed"):
        samplers.FixedSize(size)
    if size is not None:
        with pytest.raises(ValueError, match=r"at_most=.* is not allowed"):
            samplers.SpectralTolerance(1.0, at_most=size)


@pytest.mark.parametrize("given", [b"ab", bytearray(b"ab"), "55", np.array(5.0)])
def test_sizes_are_numbers_or_a_list_of_them(given):
    with pytest.raises(ValueError, match=r"n_landmarks=.* is not allowed"):
        fit(small(KernelRidgeCV(), n_landmarks=given))


def test_preferring_fewer_needs_several_to_choose_from():
    with pytest.raises(ValueError, match=r"prefer_fewer=True has no effect .* several"):
        fit(small(KernelRidgeCV(), prefer_fewer=True, cv=5))
    model = small(KernelRidgeCV(), n_landmarks=[3, 6], prefer_fewer=True, cv=5)
    assert fit(model).n_landmarks_ in (3, 6)
