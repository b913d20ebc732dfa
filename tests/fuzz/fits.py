"""What must hold of every fitted estimator, whatever it was fitted to."""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.base import clone, is_classifier, is_regressor

from nystrom import KernelLogisticRegression, KernelPCA, Nystroem
from nystrom.kernels import Precomputed

from .answers import FEW, check_factor, check_landmarks, check_told
from .dense import DISTANCES, EPS64, Dense, require

#: Labels of all kinds, for classes 0, 1, 2; some have but two, or one row of a class.
NAMES = [
    lambda y: y,
    lambda y: -3 * y.astype(np.int8),
    lambda y: y > 0,
    lambda y: y.astype(float),
    lambda y: np.array(["ash", "beech", "oak"])[y],
    lambda y: np.array(["ash", "beech", "oak"], dtype=object)[y],
    lambda y: (np.arange(len(y)) == len(y) // 2).astype(int),
    lambda y: np.where(np.arange(len(y)) == 0, 3, y),
    lambda y: np.arange(len(y)) % max(2, len(y) // 3),
]


def check_estimator(case):
    """Fit, and look at everything that it then has to say of its rows."""
    estimator = configured(case)
    X, y = case.original, targets(case, estimator)
    weighs = "sample_weight" in inspect.signature(estimator.fit).parameters
    weighs &= not isinstance(estimator, KernelPCA)  # its check knows no weights
    case = case if weighs else replace(case, weights=None)
    weights = {"sample_weight": case.weights} if weighs else {}
    if isinstance(estimator, Nystroem) or (
        hasattr(estimator, "fit_transform") and not weighs
    ):
        Z = estimator.fit_transform(X, y, **weights)
        Z = Z[0] if isinstance(Z, tuple) else Z  # of two views, the first
    else:
        Z = None
        estimator.fit(X, y, **weights)
    check_outputs(case, estimator, Z)
    case = replace(case, weights=with_classes(case.weights, estimator, y))
    landmarks = estimator.landmarks_
    if isinstance(landmarks, tuple):  # two views
        found = np.asarray(estimator.canonical_correlations_)
        require(np.all((found >= 0) & (found <= 1)), f"correlations {found}")
        return
    if landmarks.sampler == "exact":
        return  # scikit-learn's own answer
    check_landmarks(case, landmarks)
    if "matrix" in case.notes:  # a model does not keep it
        landmarks = landmarks.replace(kernel=Precomputed(case.notes["matrix"]))
    dense = Dense.of(case, landmarks)
    check = CHECKS.get(type(estimator).__name__)
    if check is not None:
        check(case, estimator, landmarks, dense, Z)
    if isinstance(estimator, KernelLogisticRegression):
        check_logistic(case, estimator, dense, y)
    if getattr(estimator, "solver_", None) == "full":
        check_full(case, estimator, dense, y)
        return
    if hasattr(estimator, "solver_"):  # of ridge regression
        check_regression(case, estimator, dense, y)
    if not dense.indefinite:
        # A Gram matrix is right to a share of alpha, and so is its trace.
        rounding = 1e-8 if hasattr(estimator, "solver_") else DISTANCES
        check_told(dense, estimator.approximation_error_, rounding=rounding)


def configured(case):
    """The estimator with the kernel, the sampler and the goal of a case."""
    estimator = clone(case.estimator)
    has = estimator.get_params(deep=False)
    options = {**case.kernel, **case.options}
    if "n_landmarks" not in has:
        options["n_components"] = options.pop("n_landmarks")
    if "epsilon" in options and not has.get("alpha", 0):
        options.pop("epsilon")
    return estimator.set_params(**{k: v for k, v in options.items() if k in has})


def targets(case, estimator):
    """Targets that it takes: numbers, classes, or a second view."""
    y = case.y
    if is_classifier(estimator):
        y = y if y.ndim == 1 else y[:, 0]
        y = np.searchsorted(np.quantile(y, [0.3, 0.7]), y)
        return NAMES[case.seed % len(NAMES)](y)
    if not is_regressor(estimator):
        return np.abs(y.reshape(len(y), -1))
    return y


def with_classes(weights, estimator, y):
    """Weights of rows times those of their classes, balanced as scikit-learn does."""
    if getattr(estimator, "class_weight", None) is None:
        return weights
    own = np.ones(len(y)) if weights is None else weights
    by = own if isinstance(estimator, KernelLogisticRegression) else np.ones(len(y))
    _, places = np.unique(y, return_inverse=True)
    totals = np.bincount(places, by)
    return own * (totals.sum() / (len(totals) * totals))[places]


def check_outputs(case, estimator, Z):
    """Finite numbers, one row each; the training rows are mapped as when fitted."""
    n, X = len(case.rows), case.original
    for method in ("transform", "predict", "decision_function"):
        if not hasattr(estimator, method):
            continue
        out = np.asarray(getattr(estimator, method)(X))
        require(len(out) == n, f"{method} of {n} rows has shape {out.shape}")
        number = out.dtype.kind in "fiub"  # or the name of a class
        require(not number or np.all(np.isfinite(out)), f"{method} is not finite")
        if method == "transform" and Z is not None:
            require(out.shape == np.shape(Z), f"{out.shape} is not {np.shape(Z)}")
            size = float(np.abs(Z).max(initial=0.0))
            apart = float(np.abs(out - Z).max(initial=0.0))
            # In exact mode scikit-learn divides by small eigenvalues.
            theirs = getattr(estimator.landmarks_, "sampler", None) == "exact"
            near = theirs or apart <= 1e3 * np.finfo(out.dtype).eps * size
            require(near, f"transform is off fit_transform by {apart!r} of {size!r}")
    if (
        hasattr(estimator, "predict_proba")
        and getattr(estimator, "solver_", "") != "cg"
    ):
        check_probabilities(estimator, X)
    if "return_std" in inspect.signature(getattr(estimator, "predict", len)).parameters:
        # With little memory all of K is made again for every few rows: that takes long.
        slow = n > 300 and getattr(estimator, "solver_", "") == "full"
        if not (slow and case.working_memory is not None):
            check_deviations(estimator, X)


def check_probabilities(estimator, X):
    """Some, that add up to one, with the predicted class before all others."""
    P = np.asarray(estimator.predict_proba(X), dtype=np.float64)
    logs = np.asarray(estimator.predict_log_proba(X), dtype=np.float64)
    require(np.all(np.isfinite(logs)), "logarithms of probabilities are not finite")
    require(np.all((P >= 0) & (P <= 1)), f"probabilities {P.min()!r} to {P.max()!r}")
    apart = float(np.abs(P.sum(axis=1) - 1).max())
    require(apart <= 1e-5, f"probabilities add up to 1 but for {apart!r}")
    apart = float(np.abs(np.exp(logs) - P).max())
    require(apart <= 1e-5, f"probabilities and their logarithms are {apart!r} apart")
    said = np.searchsorted(estimator.classes_, np.asarray(estimator.predict(X)))
    below = float((P.max(axis=1) - P[np.arange(len(P)), said]).max())
    require(below <= 1e-6, f"the class of predict is {below!r} less probable")


def check_deviations(estimator, X):
    """Deviations are finite and not negative, where there are any."""
    alpha = np.min(getattr(estimator, "alpha_", getattr(estimator, "alpha", 0)))
    if alpha > 0 and estimator.solver_ != "cg":
        _, std = estimator.predict(X, return_std=True)
        fine = np.all(np.isfinite(std)) and np.all(np.asarray(std) >= 0)
        require(fine, f"deviations {np.asarray(std).ravel()[:5]}")


# Dense answers for single estimators; one that has none here is checked as all are


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


# Logistic regression beside a minimum that scipy finds on dense features


def check_logistic(case, estimator, dense, y):
    """The objective is no higher than what scipy reaches, but for `tol`.

    Where features are large beside what is left, gradient and curvature say nothing of
    it: the loss is curved in steps of 1/‖z‖.
    """
    stopped = any("Not converged" in str(each.message) for each in case.notes["told"])
    if stopped or dense.indefinite:
        return
    own = y[:, None] == estimator.classes_
    D = np.asarray(estimator.dual_coef_, dtype=np.float64).reshape(len(dense.K_SS), -1)
    F = dense.K_S @ D + np.asarray(estimator.intercept_, dtype=np.float64)
    value = objective(F, own, dense.weights, estimator.C_)[0]
    value += 0.5 * float(np.einsum("st,sr,rt->", D, dense.K_SS, D))
    most = float(dense.diagonal.max(initial=0.0))
    known = dense.slack * float(dense.weights.sum()) * estimator.C_ < 1e-6
    if not known or not 2 * estimator.tol * value * most < 0.1:
        return
    best = least(dense.features, own, dense.weights, estimator)
    # Kernel values and coefficients may be large, and what they add up to small.
    rounding = 1e-9 + 8 * EPS64 * (np.abs(dense.K_S) @ np.abs(D)).sum(axis=1)
    near = value <= best * (1 + 1e-4) + estimator.C_ * (dense.weights @ rounding)
    require(near, f"objective {value!r}, scipy reaches {best!r}")


def objective(F, own, w, C):
    """C·Σ w·loss and its slope by F; two classes have one column."""
    both = np.hstack([np.zeros_like(F), F]) if F.shape[1] == 1 else F
    logs = log_softmax(both, axis=1)
    R = C * w[:, None] * (np.exp(logs) - own)
    return C * float(w @ -logs[own]), R[:, -F.shape[1] :]


def least(Z, own, w, estimator):
    """½‖W‖² + C·Σ w·loss, as low as L-BFGS takes it."""
    s, t = Z.shape[1], 1 if own.shape[1] == 2 else own.shape[1]

    def slope(x):
        W = x.reshape(s + 1, t)
        b = W[-1] * bool(estimator.fit_intercept)
        value, R = objective(Z @ W[:-1] + b, own, w, estimator.C_)
        by_b = R.sum(axis=0) * bool(estimator.fit_intercept)
        gradient = np.vstack([Z.T @ R + W[:-1], by_b])
        return value + 0.5 * float((W[:-1] ** 2).sum()), gradient.ravel()

    options = {"maxiter": 500, "ftol": 1e-14}
    start = np.zeros((s + 1) * t)
    return minimize(slope, start, jac=True, method="L-BFGS-B", options=options).fun


# Ridge regression on all rows beside the dense solution


def check_full(case, estimator, dense, y):
    """Predictions are those of (K + αW⁻¹)⁻¹, but for what the residual leaves.

    KA⁻¹ shrinks it, so that predictions are no farther off than b is; and values that
    are rounded by a unit move them by a unit of tr K/α.
    """
    Y = y.reshape(len(y), -1)
    found = np.asarray(estimator.predict(case.original), dtype=np.float64).reshape(
        Y.shape
    )
    alphas = np.broadcast_to(np.asarray(estimator.alpha, dtype=np.float64), Y.shape[1])
    unit = dense.unit + len(Y) * EPS64
    off = estimator.residual_ + 10 * unit * dense.trace / float(alphas.min())
    if dense.indefinite or not off <= 0.1:
        return
    root = np.sqrt(dense.weights)[:, None]
    expected = dense.full(Y, alphas, estimator.fit_intercept)
    size = np.linalg.norm(root * Y, axis=0)
    apart = np.linalg.norm(root * (found - expected), axis=0)
    eps = 1e-6 if case.rows.narrow else 1e-12
    near = apart <= (off + eps) * size
    require(np.all(near), f"predictions off by {apart} of {size}, {off!r} is rounding")
