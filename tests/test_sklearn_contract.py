"""The estimators keep scikit-learn's contract."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from nystrom import (
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
]


@pytest.mark.filterwarnings("ignore:n_components > n_samples")
@parametrize_with_checks(ESTIMATORS)
def test_estimator_checks(estimator, check):
    check(estimator)
