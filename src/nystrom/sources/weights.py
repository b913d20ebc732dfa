"""Weights of rows: a row of weight w counts as w rows.

Every source has them. Where none were given they are ones, as a view of a single
number: they take no memory, and sums know that there is nothing to multiply.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _arrays as arrays
from .._arrays import Array


def ones(n_rows: int) -> np.ndarray:
    """The weights of rows that all count alike."""
    return np.broadcast_to(np.float64(1.0), n_rows)


def all_alike(weights: np.ndarray) -> bool:
    """Whether these are `ones`, or a slice of them."""
    return weights.strides == (0,) and bool(np.all(weights[:1] == 1))


def weighted(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """wᵢ·vᵢ; the values themselves where all count alike."""
    if all_alike(weights):
        return values
    with np.errstate(over="ignore"):  # what is not finite is refused by who uses it
        return weights * values


def total(weights: np.ndarray, values: Array) -> Any:
    """Σ wᵢvᵢ, in float64: a number, or an array of one where the values are."""
    with np.errstate(over="ignore"):
        if all_alike(weights):
            return arrays.total(values)
        if arrays.on_host(values):
            return float(weights @ values)
        return arrays.total(arrays.from_host(weights, values, weights.dtype) * values)


def over_rows(weights: np.ndarray, values: Array) -> Array:
    """Σ wᵢvᵢ over the rows of values, column by column, where these are."""
    if all_alike(weights):
        return arrays.namespace(values).sum(values, axis=0)
    return arrays.from_host(weights, values) @ values


def squares_over_rows(weights: np.ndarray, values: Array) -> Array:
    """Σ wᵢvᵢ² over the rows of values, column by column, where these are."""
    if all_alike(weights):
        return arrays.column_squares(values)
    return over_rows(weights, values * values)


def mean(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Σ wᵢvᵢ/Σ wᵢ over rows of values; of all alike where none counts."""
    if all_alike(weights) or not weights.any():
        return values.mean(axis=0)
    return np.average(values, axis=0, weights=weights)
