"""Names, callables and values become kernels as scikit-learn's users expect."""

from __future__ import annotations

import numpy as np
import pytest
from lists import DISTANCE_NAMES
from sklearn.gaussian_process import kernels as gaussian_process
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from nystrom import kernels
from nystrom.kernels.names import NAMES, as_kernel

SHARED = {"gamma": 0.3, "degree": 2, "coef0": 0.5}


@pytest.fixture
def X(rng):
    return rng.random((12, 4))


@pytest.mark.parametrize("name", NAMES)
def test_every_name_stands_for_a_kernel(name, X):
    kernel = as_kernel(name, n_features=4)
    assert isinstance(kernel, kernels.Kernel)
    assert kernel(X, X[:3]).shape == (12, 3)


def test_every_name_of_scikit_learn_is_known():
    assert set(PAIRWISE_KERNEL_FUNCTIONS) <= set(NAMES)


@pytest.mark.parametrize("name", PAIRWISE_KERNEL_FUNCTIONS)
def test_defaults_and_parameters_are_scikit_learns(name, X):
    ours = as_kernel(name, n_features=4)(X, X[:5])
    np.testing.assert_allclose(ours, pairwise_kernels(X, X[:5], metric=name))
    ours = as_kernel(name, n_features=4, **SHARED)(X, X[:5])
    theirs = pairwise_kernels(X, X[:5], metric=name, filter_params=True, **SHARED)
    np.testing.assert_allclose(ours, theirs)


def test_defaults_written_out():
    assert as_kernel("rbf", n_features=4) == kernels.RBF(0.25)
    assert as_kernel("laplacian", n_features=4) == kernels.Laplacian(0.25)
    assert as_kernel("chi2", n_features=4) == kernels.Chi2(1.0)
    assert as_kernel("poly", n_features=4) == kernels.Polynomial(0.25, 3, 1)
    assert as_kernel("sigmoid", n_features=4) == kernels.Sigmoid(0.25, 1)
    assert as_kernel("rbf", gamma=1) == kernels.RBF(1.0)


@pytest.mark.parametrize(
    ("name", "nu"), [("matern12", 0.5), ("matern32", 1.5), ("matern52", 2.5)]
)
def test_gamma_of_matern_is_that_of_rbf(name, nu, X):
    # exp(−γd²) = exp(−d²/(2ℓ²)) has γ = 1/(2ℓ²).
    expected = gaussian_process.Matern(length_scale=0.5, nu=nu)(X, X[:5])
    for kernel in [
        as_kernel(name, gamma=2.0),
        as_kernel(name, kernel_params={"length_scale": 0.5}),
        as_kernel("matern", gamma=2.0, kernel_params={"nu": nu}),
    ]:
        np.testing.assert_allclose(kernel(X, X[:5]), expected)


@pytest.mark.parametrize("name", DISTANCE_NAMES)
def test_gamma_may_be_one_number_per_feature(name, X):
    one, each = as_kernel(name, gamma=0.7), as_kernel(name, gamma=[0.7] * 4)
    np.testing.assert_allclose(each(X, X[:5]), one(X, X[:5]))


def test_the_estimators_own_parameter_wins_over_kernel_params():
    kernel = as_kernel("rbf", gamma=0.5, kernel_params={"gamma": 2.0})
    assert kernel == kernels.RBF(0.5)
    assert as_kernel("rbf", kernel_params={"gamma": 2.0}) == kernels.RBF(2.0)
    unset = as_kernel("rbf", n_features=4, kernel_params={"gamma": None})
    assert unset == kernels.RBF(0.25)


@pytest.mark.parametrize("kernel", ["poly", np.dot])
def test_the_users_dict_is_left_as_it_was(kernel):
    params = {"degree": 2} if isinstance(kernel, str) else {"out": None}
    before = dict(params)
    resolved = as_kernel(kernel, kernel_params=params)
    assert params == before
    params.clear()
    assert "degree=2" in str(resolved) or resolved.params == before


@pytest.mark.parametrize(
    ("typo", "meant"),
    [("rfb", "rbf"), ("laplace", "laplacian"), ("polynomal", "polynomial")],
)
def test_an_unknown_name_is_an_error_with_the_nearest_name(typo, meant):
    with pytest.raises(ValueError, match=f"kernel='{typo}' is unknown") as caught:
        as_kernel(typo)
    assert f"did you mean '{meant}'?" in str(caught.value)
    assert all(repr(name) in str(caught.value) for name in [*NAMES, "precomputed"])


def test_a_parameter_that_a_name_does_not_take_is_an_error():
    with pytest.raises(ValueError, match="has 'width', which kernel='rbf' does not"):
        as_kernel("rbf", kernel_params={"width": 2})
    with pytest.raises(ValueError, match="it takes: no parameters"):
        as_kernel("linear", kernel_params={"gamma": 2})


@pytest.mark.parametrize("kernel", [np.dot, kernels.RBF(), "precomputed"], ids=str)
@pytest.mark.parametrize("param", ["gamma", "degree", "coef0"])
def test_parameters_of_names_are_refused_for_anything_else(kernel, param):
    with pytest.raises(ValueError, match="Don't pass gamma, coef0 or degree to here"):
        as_kernel(kernel, **{param: 1.0}, caller="here")


@pytest.mark.parametrize(
    "kernel", [kernels.RBF(), gaussian_process.RBF()], ids=["ours", "gaussian process"]
)
def test_kernel_params_are_refused_where_the_kernel_has_its_own(kernel):
    with pytest.raises((ValueError, TypeError), match="kernel_params"):
        as_kernel(kernel, kernel_params={"length_scale": 2.0})


@pytest.mark.parametrize("thing", [None, 3, ["rbf"], {"rbf": 1}])
def test_what_is_no_kernel_is_a_type_error_that_lists_what_is(thing):
    with pytest.raises(TypeError, match="is not a kernel; pass a name"):
        as_kernel(thing)


def test_a_kernel_stays_itself_and_precomputed_is_one():
    kernel = kernels.RBF(0.5) + kernels.Linear()
    assert as_kernel(kernel) is kernel
    assert isinstance(as_kernel("precomputed"), kernels.Precomputed)


@pytest.mark.parametrize(
    "theirs",
    [
        gaussian_process.RBF(0.7),
        gaussian_process.Matern(0.7, nu=0.8),
        2.0 * gaussian_process.RBF(0.7) + gaussian_process.ConstantKernel(0.1),
        gaussian_process.DotProduct() * gaussian_process.RationalQuadratic(),
    ],
    ids=str,
)
def test_gaussian_process_kernels_work_on_blocks(theirs, X):
    kernel = as_kernel(theirs)
    np.testing.assert_allclose(kernel(X, X[:5]), theirs(X, X[:5]))
    np.testing.assert_allclose(kernel.diag(X), theirs.diag(X))
    np.testing.assert_allclose(kernel.gram(X), theirs(X), rtol=1e-12)
    narrow = X.astype(np.float32)
    assert kernel(narrow, narrow).dtype == kernel.diag(narrow).dtype == np.float32
