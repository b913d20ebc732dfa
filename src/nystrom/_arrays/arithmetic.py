"""Products, sums and functions for which NumPy has a faster form than the standard."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, device

from .places import Array, is_numpy, namespace, on_host


def dot(X: Array, Y: Array) -> Array:
    """X Yᵀ, dense, for any mix of dense and CSR blocks."""
    if not sp.issparse(X) and not sp.issparse(Y):
        return X @ Y.T
    product = X @ Y.T if sp.issparse(X) else (Y @ X.T).T
    return product.toarray() if sp.issparse(product) else np.ascontiguousarray(product)


def zeros(size: int, like: Array) -> Array:
    """So many zeros in float64, where `like` is."""
    if on_host(like):
        return np.zeros(size)
    xp = array_namespace(like)
    return xp.zeros(size, dtype=xp.float64, device=device(like))


def total(values: Array) -> Any:
    """The sum of all values, in float64; where they are."""
    if is_numpy(values):
        return float(values.sum(dtype=np.float64))
    xp = array_namespace(values)
    return xp.sum(values, dtype=xp.float64)


def by_label(labels: Array, n_labels: int, weights: Array) -> Array:
    """(n, …, n_labels): the weight of each row where its label is, and 0 elsewhere."""
    xp = namespace(labels)
    like = {} if xp is np else {"device": device(labels)}
    own = labels[..., None] == xp.arange(n_labels, dtype=labels.dtype, **like)
    weights = xp.reshape(weights, (-1,) + (1,) * labels.ndim)
    return xp.where(own, weights, xp.zeros_like(weights))


def sums_by_label(
    X: Array, labels: Array, n_labels: int, weights: Array
) -> tuple[Array, Array]:
    """Σ w·x and Σ w over the rows of each label."""
    if is_numpy(X):
        cells = (weights, (labels, np.arange(len(X))))
        sums = sp.csr_array(cells, shape=(n_labels, len(X))) @ X
        return sums, np.bincount(labels, weights, n_labels)
    own = by_label(labels, n_labels, weights)
    return own.T @ X, array_namespace(X).sum(own, axis=0)


def squared_norms(X: Array) -> Array:
    """‖x‖² of each row."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    if is_numpy(X):
        return np.vecdot(X, X)
    return array_namespace(X).sum(X * X, axis=1)


def column_squares(X: Array) -> Array:
    """Σ x² of each column."""
    if is_numpy(X):
        return np.einsum("ij,ij->j", X, X)
    return array_namespace(X).sum(X * X, axis=0)


def exp_(x: Array) -> Array:
    """exp(x), in place where the library can."""
    return np.exp(x, out=x) if is_numpy(x) else array_namespace(x).exp(x)


def tanh_(x: Array) -> Array:
    """tanh(x), in place where the library can."""
    return np.tanh(x, out=x) if is_numpy(x) else array_namespace(x).tanh(x)


def at_least(x: Array, least: float) -> Array:
    """The larger of x and a number, entry by entry."""
    if is_numpy(x):
        return np.maximum(x, least)
    return array_namespace(x).clip(x, min=least)


def sqrt_(x: Array, most: float) -> Array:
    """The root of x clipped to [0, most], in place where the library can."""
    if is_numpy(x):
        np.clip(x, 0, most, out=x)
        return np.sqrt(x, out=x)
    xp = array_namespace(x)
    return xp.sqrt(xp.clip(x, min=0.0, max=most))
