"""The estimators keep scikit-learn's contract."""

import pytest
from lists import ESTIMATORS, skip_older_array_api
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from nystrom import GaussianProcessRegressor, KernelKMeans, KernelPCA

# Their checks know by name which estimators return a pair, the scores of both views.
if "KernelCCA" not in estimator_checks.CROSS_DECOMPOSITION:
    estimator_checks.CROSS_DECOMPOSITION.append("KernelCCA")


def expected_failures(estimator):
    """Starts of k-means and landmarks are drawn; weights and copies draw others."""
    reason = "rows are drawn from others"
    if isinstance(estimator, GaussianProcessRegressor) and estimator.optimizer:
        reason = "hyper-parameters are right to the tolerance of an optimiser"
    elif isinstance(estimator, KernelPCA) and estimator.kernel == "linear":
        reason = "the sign of a component is that of its largest coefficient"
    elif not isinstance(estimator, KernelKMeans) and (
        getattr(estimator, "sampler", "auto") == "auto"
    ):
        return {}
    name = "check_sample_weight_equivalence_on_{}_data"
    return {name.format(which): reason for which in ("dense", "sparse")}


@pytest.mark.filterwarnings("ignore:n_components > n_samples")
@pytest.mark.filterwarnings("ignore:.*The optimal value found for")
@pytest.mark.filterwarnings("ignore:The variance that the landmarks")
@pytest.mark.filterwarnings("ignore:.*lbfgs failed to converge")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_estimator_checks(estimator, check):
    skip_older_array_api(check)
    check(estimator)
