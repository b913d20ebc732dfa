"""scikit-learn's own tests of the classes we replace, run on ours."""

import numpy as np
import pytest
from sklearn.decomposition.tests import test_kernel_pca as theirs_pca
from sklearn.gaussian_process.tests import test_gpr as theirs_gpr
from sklearn.tests import test_kernel_approximation as theirs
from sklearn.tests import test_kernel_ridge as theirs_ridge

import nystrom

# They try every kernel, also indefinite ones, which we warn about.
pytestmark = pytest.mark.filterwarnings("ignore")

# The first counts 45 calls of a callable for 9 components: choosing landmarks calls it
# more often. Its second half is below. The other may fail by a mark of their own.
NOT_APPLICABLE = {"test_nystroem_callable", "test_lml_gradient"}

for _name, _test in vars(theirs).copy().items():
    if _name.startswith("test_nystroem") and _name not in NOT_APPLICABLE:
        globals()[_name] = _test


for _module in (theirs_ridge, theirs_pca, theirs_gpr):
    for _name, _test in vars(_module).copy().items():
        if _name.startswith("test_") and _name not in NOT_APPLICABLE:
            globals()[_name] = _test


@pytest.fixture
def global_random_seed(seed):
    """Their fixture lives in scikit-learn's own conftest."""
    return seed


@pytest.fixture(autouse=True)
def our_class(monkeypatch):
    monkeypatch.setattr(theirs, "Nystroem", nystrom.Nystroem)
    monkeypatch.setattr(theirs_ridge, "KernelRidge", nystrom.KernelRidge)
    monkeypatch.setattr(theirs_pca, "KernelPCA", nystrom.KernelPCA)
    monkeypatch.setattr(
        theirs_gpr, "GaussianProcessRegressor", nystrom.GaussianProcessRegressor
    )


def test_their_tests_are_found():
    names = list(globals())
    assert sum(name.startswith("test_nystroem") for name in names) >= 6
    assert sum(name.startswith("test_kernel_ridge") for name in names) >= 7
    assert sum(name.startswith("test_kernel_pca") for name in names) >= 13
    assert {"test_gpr_interpolation", "test_y_multioutput"} <= {*names}


def test_feature_names_out():
    theirs.test_get_feature_names_out(nystrom.Nystroem)


@pytest.mark.parametrize("param", [{"gamma": 1}, {"coef0": 1}, {"degree": 2}])
def test_callable_takes_no_parameters_of_named_kernels(param):
    X = list(np.random.RandomState(42).uniform(size=(10, 4)))
    estimator = nystrom.Nystroem(kernel=np.dot, n_components=9, **param)
    with pytest.raises(ValueError, match="Don't pass gamma, coef0 or degree"):
        estimator.fit(X)


def test_callable_gets_its_parameters():
    calls = []

    def histogram(x, y, log):
        log.append(1)
        return np.minimum(x, y).sum()

    X = list(np.random.RandomState(42).uniform(size=(10, 4)))
    params = {"log": calls}
    nystrom.Nystroem(kernel=histogram, n_components=9, kernel_params=params).fit(X)
    assert calls
    assert params == {"log": calls}
