"""Ridge regression on all rows beside the dense solution."""

from __future__ import annotations

import numpy as np

from .dense import EPS64, require


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
