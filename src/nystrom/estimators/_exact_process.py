"""The exact mode of GaussianProcessRegressor: scikit-learn's own class."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor as ExactProcess

from ..engines.blas import blas_limit_for_size
from ..kernels import Blockwise, Kernel
from ..kernels.gaussian_process import (
    as_scikit_learn,
    from_scikit_learn,
    noise_and_gradient,
)
from ..linalg.features import LinearMap
from ..models.ridge_solvers import ExactPosterior
from ..sources import Source
from ._ridge import RidgeModel

#: Fitted attributes with an entry per row, and what predictions are scaled back by.
EXACT_ATTRIBUTES = ("y_train_", "L_", "_y_train_mean", "_y_train_std")


def exact_process(params: dict[str, Any]) -> ExactProcess:
    """scikit-learn's estimator with those of the parameters that it has."""
    process = ExactProcess()
    shared = {name: params[name] for name in process.get_params(deep=False)}
    if isinstance(shared["kernel"], Kernel):
        shared["kernel"] = as_scikit_learn(shared["kernel"])
    return process.set_params(**shared)


def can_optimize(exact: ExactProcess, source: Source) -> bool:
    """Whether scikit-learn's own class can optimise its kernel."""
    if exact.kernel is None or exact.optimizer is None:
        return True
    try:
        exact.kernel(source.rows(0, 1), eval_gradient=True)
    except (TypeError, NotImplementedError):
        return False
    return True


def fit_exact(exact: ExactProcess, source: Source, targets: Any) -> Kernel:
    """Fit to all rows; its kernel."""
    n = source.n_rows
    with blas_limit_for_size(n):
        exact.fit(source.rows(0, n), np.asarray(targets[:n]))
    try:
        return from_scikit_learn(exact.kernel_)
    except ValueError:  # noise that is no term of a sum
        return Blockwise(exact.kernel_, exact.kernel_.diag)


def predict_exact(
    exact: ExactProcess, X: Any, dtype: Any, noise: bool, **options: bool
) -> Any:
    """scikit-learn's predictions in a precision; with `noise` alpha in deviations."""
    with blas_limit_for_size(len(getattr(exact, "X_train_", ()))):
        found = exact.predict(X, **options)
    if not isinstance(found, tuple):
        return found.astype(dtype, copy=False)
    mean, spread = found
    if options["return_std"] and noise:
        variance = np.mean(exact.alpha) * np.square(getattr(exact, "_y_train_std", 1.0))
        spread = np.sqrt(spread**2 + variance)
    return mean.astype(dtype, copy=False), spread.astype(dtype, copy=False)


def exact_model(exact: ExactProcess, kernel: Kernel) -> RidgeModel:
    """What intervals come from: the same mean, and rows left out one by one."""
    mean, scale = np.atleast_1d(exact._y_train_mean, exact._y_train_std)
    dual = np.reshape(exact.alpha_ * exact._y_train_std, (-1, len(mean)))
    variance = np.asarray(exact.alpha) + noise_and_gradient(exact.kernel_)[0]
    noise = float(np.mean(variance))
    weights = noise / variance if variance.ndim else None
    noises = np.full(len(mean), noise)
    posterior = ExactPosterior(exact.X_train_, kernel, weights, noises, scale**2)
    return RidgeModel(LinearMap(dual, mean, False), len(mean) == 1, posterior)
