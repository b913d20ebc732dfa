"""Logistic regression beside a minimum that scipy finds on dense features."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from .dense import EPS64, require


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
