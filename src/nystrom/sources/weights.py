"""Weights of rows: a row of weight w counts as w rows.

Every source has them. Where none were given they are ones, as a view of a single
number: they take no memory, and sums know that there is nothing to multiply.
"""

from __future__ import annotations

import numpy as np


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


def total(weights: np.ndarray, values: np.ndarray) -> float:
    """Σ wᵢvᵢ, in float64."""
    with np.errstate(over="ignore"):
        if all_alike(weights):
            return float(values.sum(dtype=np.float64))
        return float(weights @ values)


def mean(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Σ wᵢvᵢ/Σ wᵢ over rows of values; of all alike where none counts."""
    if all_alike(weights) or not weights.any():
        return values.mean(axis=0)
    return np.average(values, axis=0, weights=weights)
