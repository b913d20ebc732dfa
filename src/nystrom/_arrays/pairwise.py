"""Distances of all pairs of rows, by one product or feature by feature."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, device
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import additive_chi2_kernel, manhattan_distances

from .moving import from_host
from .places import Array, is_numpy


def with_norms(X: Array, center: np.ndarray, scale: Any) -> Array:
    """[x̂, ‖x̂‖², 1] for x̂ = scale·(x − center), row by row.

    Against columns [−2ŷ, 1, ‖ŷ‖²] one matrix product gives all squared distances.
    """
    n, d = X.shape
    if is_numpy(X):
        out = np.empty((n, d + 2), dtype=X.dtype)
        np.subtract(X, center.astype(X.dtype, copy=False), out=out[:, :d])
        if np.ndim(scale):
            out[:, :d] *= scale.astype(X.dtype, copy=False)
        np.vecdot(out[:, :d], out[:, :d], out=out[:, d])
        out[:, d + 1] = 1
        return out
    xp = array_namespace(X)
    Xc = X - from_host(center, X)
    if np.ndim(scale):
        Xc = Xc * from_host(scale, X)
    ones = xp.ones((n, 1), dtype=X.dtype, device=device(X))
    return xp.concat([Xc, xp.sum(Xc * Xc, axis=1)[:, None], ones], axis=1)


def squared_distances(X: Array, Y: Array, scale: float | np.ndarray) -> Array:
    """Σⱼ ((xⱼ − yⱼ)·scaleⱼ)² for all pairs of rows; a scale is 1, or one per feature.

    Slow, and exact where a product is not. Differences come first: whatever is done to
    rows before them rounds the rows.
    """
    if is_numpy(X) and np.ndim(scale) == 0:
        return cdist(X, Y, "sqeuclidean")
    total: Array = 0.0
    for j, own in enumerate(np.broadcast_to(scale, X.shape[1]).tolist()):
        difference = (X[:, j, None] - Y[None, :, j]) * own
        total = total + difference * difference
    return total


def cityblock(X: Array, Y: Array) -> Array:
    """Σⱼ |xⱼ − yⱼ| for all pairs of rows, in X's dtype."""
    if sp.issparse(X) or sp.issparse(Y):
        return manhattan_distances(_csr32(X), _csr32(Y)).astype(X.dtype, copy=False)
    if is_numpy(X):
        return cdist(X, Y, "cityblock").astype(X.dtype, copy=False)
    xp = array_namespace(X)
    total = xp.zeros((X.shape[0], Y.shape[0]), dtype=X.dtype, device=device(X))
    for j in range(X.shape[1]):
        total += xp.abs(X[:, j, None] - Y[None, :, j])
    return total


def _csr32(X: Any) -> Any:
    """CSR with 32-bit indices, enough for a block; scikit-learn asks for them.

    All of it a copy: scikit-learn sorts the values in place.
    """
    X = sp.csr_array(X)
    index, pointer = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return sp.csr_array((X.data.copy(), index, pointer), shape=X.shape)


def additive_chi2(X: Array, Y: Array) -> Array:
    """−Σⱼ (xⱼ − yⱼ)²/(xⱼ + yⱼ) for all pairs of rows, 0/0 being 0."""
    if is_numpy(X):
        # scikit-learn's loop takes no read-only rows, such as those of a memory map.
        return additive_chi2_kernel(*(np.require(A, requirements="W") for A in (X, Y)))
    xp = array_namespace(X)
    total = xp.zeros((X.shape[0], Y.shape[0]), dtype=X.dtype, device=device(X))
    for j in range(X.shape[1]):
        difference = X[:, j, None] - Y[None, :, j]
        sums = X[:, j, None] + Y[None, :, j]
        sums = xp.where(sums == 0, xp.ones_like(sums), sums)
        total -= difference * difference / sums
    return total
