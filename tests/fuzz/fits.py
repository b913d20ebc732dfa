"""What must hold of every fitted estimator, whatever it was fitted to."""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor

from nystrom import KernelLogisticRegression
from nystrom.kernels import Precomputed

from .all_rows import check_full
from .answers import check_landmarks, check_told
from .dense import DISTANCES, Dense, require
from .logistic import check_logistic
from .methods import CHECKS, check_regression

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
    case = case if weighs else replace(case, weights=None)
    if hasattr(estimator, "fit_transform") and not weighs:
        Z = estimator.fit_transform(X, y)
        Z = Z[0] if isinstance(Z, tuple) else Z  # of two views, the first
    else:
        Z = None
        estimator.fit(X, y, **({"sample_weight": case.weights} if weighs else {}))
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
