"""Dense answers for single estimators; one that has none here is checked as all are."""

from __future__ import annotations

import numpy as np
from sklearn.base import is_classifier

from .answers import FEW, check_factor
from .dense import EPS64, require


def check_nystroem(case, estimator, landmarks, dense, Z):
    """The features, and the error that they leave."""
    Z = np.asarray(Z, dtype=np.float64)
    check_factor(landmarks, dense, Z)
    error = estimator.approximation_error_
    if error is not None and error.exact and dense.trace > 0:
        expected = max(0.0, 1 - dense.share(np.sum(Z * Z, axis=1)))
        eps = np.finfo(np.float32 if case.rows.narrow else np.float64).eps
        off = 8 * (dense.size + 8) * max(eps, dense.unit)
        off += error.rounding * error.at_most  # which is in the bound
        apart = abs(error.value - expected)
        require(apart <= off, f"error told: {error.value!r}, Z leaves {expected!r}")


def check_pca(case, estimator, landmarks, dense, Z):
    """Eigenvalues are those of K̃, and not above those of K."""
    values = np.asarray(estimator.eigenvalues_, dtype=np.float64)
    require(
        np.all(np.isfinite(values)) and np.all(values >= 0), f"eigenvalues {values}"
    )
    require(np.all(np.diff(values) <= 1e-9 * values.max(initial=0.0)), "not descending")
    if dense.indefinite or len(dense.K) > FEW:
        return
    off = (dense.overshoot + 1e-5) * float(dense.diagonal.sum())
    exact = _eigenvalues(dense.K, estimator.center)[: len(values)]
    over = float((values - exact).max(initial=0.0))
    require(over <= off, f"eigenvalues {values} above those of K, {exact}")
    if dense.slack < 0.01 and estimator.eigen_solver != "randomized":
        off = (dense.slack + 1e-5) * float(dense.diagonal.sum())
        expected = _eigenvalues(dense.features @ dense.features.T, estimator.center)
        apart = float(np.abs(values - expected[: len(values)]).max(initial=0.0))
        require(apart <= off, f"eigenvalues {values}, those of K̃ are {expected}")


def _eigenvalues(K, center) -> np.ndarray:
    """Descending, of K or of HKH."""
    if center:
        K = K - K.mean(axis=0)
        K = K - K.mean(axis=1)[:, None]
    return np.linalg.eigvalsh((K + K.T) / 2)[::-1]


def check_kmeans(case, estimator, landmarks, dense, Z):
    """Rows are with their nearest centre; the inertia is that of distances."""
    labels, k = np.asarray(estimator.labels_), estimator.n_clusters
    require(labels.min() >= 0 and labels.max() < k, f"labels {np.unique(labels)}")
    require(np.isfinite(estimator.inertia_), f"inertia {estimator.inertia_!r}")
    if estimator.affinity_normalize or dense.indefinite:
        return
    squares = np.asarray(estimator.transform(case.original), dtype=np.float64) ** 2
    off = (dense.overshoot + 1e-3) * dense.diagonal.max()
    for found in (labels, np.asarray(estimator.predict(case.original))):
        over = squares[np.arange(len(found)), found] - squares.min(axis=1)
        require(np.all(over <= off), f"a row is {over.max()!r} from a nearer centre")
    told, found = estimator.inertia_, float(dense.weights @ squares.min(axis=1))
    off = (dense.overshoot + 1e-3) * dense.trace
    require(abs(told - found) <= off, f"inertia {told!r}, distances have {found!r}")
    # No worse than one centre at 0.
    require(told <= dense.trace + off, f"inertia {told!r} of {dense.trace!r}")


def check_regression(case, estimator, dense, y):
    """The training error is not above a constant's; predictions are the dense ones.

    Conjugate gradients on wild weights do not converge, and say so.
    """
    if estimator.solver_ == "cg" and case.notes["weighing"] == "wild":
        return
    if is_classifier(estimator):
        found = np.asarray(estimator.decision_function(case.original), dtype=np.float64)
        Y = 2.0 * (y[:, None] == estimator.classes_) - 1
        Y = Y[:, 1:] if Y.shape[1] == 2 else Y
    else:
        Y = y.reshape(len(y), -1)
        found = np.asarray(estimator.predict(case.original))
    found = found.reshape(Y.shape)
    w = dense.weights / dense.weights.max()
    mean = (w @ Y) / w.sum() if estimator.fit_intercept else np.zeros(Y.shape[1])
    constant, reached = w @ (Y - mean) ** 2, w @ (Y - found) ** 2
    # The Gram matrix is right to a thousandth of alpha, float32 results to 1e-4; and
    # predictions are sums of kernel values whose coefficients may be large.
    dual = np.asarray(estimator.dual_coef_).reshape(-1, Y.shape[1])
    rounding = 8 * EPS64 * np.abs(dual).sum(axis=0) * np.abs(dense.K_S).max()
    eps = 1e-7 if case.rows.narrow else 1e-13
    off = eps * (w @ Y**2) + w.sum() * rounding**2
    within = reached <= 1.01 * constant + off
    require(np.all(within), f"training error {reached}, a constant has {constant}")
    alphas = np.asarray(getattr(estimator, "alpha_", getattr(estimator, "alpha", 0.0)))
    share = 5e-3 + 10 * dense.slack * dense.trace / max(float(alphas.min()), 1e-300)
    if dense.indefinite or not share <= 0.1 or not _solved(estimator):
        return
    alphas = np.broadcast_to(alphas, Y.shape[1])
    expected = dense.ridge(Y, alphas, estimator.fit_intercept)
    apart = w @ (found - expected) ** 2
    near = np.sqrt(apart) <= share * np.sqrt(constant) + 2 * np.sqrt(off)
    require(np.all(near), f"predictions off by {apart}, a constant is by {constant}")


def _solved(estimator) -> bool:
    """Whether conjugate gradients converged; they warn where they do not."""
    steps = getattr(estimator, "n_iter_", None)
    return steps is None or steps < 100


#: Further checks of some estimators, by name.
CHECKS = {
    "Nystroem": check_nystroem,
    "KernelPCA": check_pca,
    "KernelKMeans": check_kmeans,
}
