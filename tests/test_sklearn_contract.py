"""The estimators keep scikit-learn's contract."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from nystrom import (
    KernelCCA,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeCV,
    Nystroem,
    kernels,
)

# n_components=100 exceeds the rows of the checks' data sets, where we warn as they do.
ESTIMATORS = [
    Nystroem(n_components=5, random_state=0),
    Nystroem(n_components=5, random_state=0, sampler="recursive", kernel="laplacian"),
    Nystroem(n_components=5, random_state=0, kernel=kernels.Matern(nu=2.5)),
    KernelRidge(),
    # Linear: some checks ask for a good score with few landmarks.
    KernelRidge(n_landmarks=12, random_state=0),
    KernelRidge(n_landmarks=12, random_state=0, solver="cg", fit_intercept=True),
    KernelRidgeCV(),
    KernelRidgeCV(n_landmarks=12, cv=3, random_state=0, fit_intercept=True),
    KernelRidgeClassifier(),
    KernelRidgeClassifier(n_landmarks=8, kernel="rbf", random_state=0),
    KernelPCA(3),
    KernelPCA(2, n_landmarks=8, kernel="rbf", random_state=0),
    KernelKMeans(2, random_state=0),
    KernelKMeans(2, n_landmarks=8, n_init=2, random_state=0),
    KernelKMeans(2, n_landmarks=8, affinity_normalize=True, random_state=0),
    KernelCCA(random_state=0),
    KernelCCA(1, n_landmarks=8, random_state=0),
]


def expected_failures(estimator):
    """K-means starts from drawn rows; weights and copies draw others, as in KMeans."""
    if not isinstance(estimator, KernelKMeans):
        return {}
    which = ("dense", "sparse")
    name = "check_sample_weight_equivalence_on_{}_data"
    return {name.format(w): "starts are drawn from other rows" for w in which}


@pytest.mark.filterwarnings("ignore:n_components > n_samples")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_estimator_checks(estimator, check):
    check(estimator)
