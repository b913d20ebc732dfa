"""The paper's preprocessing: every column to mean 0 and variance 1.

"Categorical features are turned into indicators" is done where the categories are known
(`adult`); here all columns are numbers. Means and variances are those of the rows that
are there, in float64 whatever the data are in.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

#: Rows at a time: a block of 100 columns in float64 is 6 MB.
BLOCK_ROWS = 8192


def row_blocks(n_rows: int, size: int = BLOCK_ROWS) -> Iterator[slice]:
    """Slices that cover the rows, in order."""
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def finite_numbers(values: np.ndarray, what: str) -> np.ndarray:
    """The values, if all are finite numbers."""
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{what} is of type {values.dtype}; numbers are needed.")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError(
            f"{what} has values that are infinite or not a number; the original has "
            "none. Remove these rows."
        )
    return values


def standardised(X: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """(X − mean) / standard deviation in each column, 0 where a column is constant.

    The variance is the population's: the mean squared deviation. By blocks, so that
    besides X and the result there is never a float64 copy of the whole.
    """
    n_rows, n_columns = X.shape
    # Around the first row: a column far from 0 keeps its digits, and a constant one
    # comes out exactly constant, which its mean, once rounded, would hide.
    first = X[0].astype(np.float64)
    mean = np.zeros(n_columns)
    varies = np.zeros(n_columns, bool)
    for rows in row_blocks(n_rows):
        deviations = X[rows] - first
        mean += deviations.sum(axis=0) / n_rows
        varies |= (deviations != 0).any(axis=0)
    variance = np.zeros(n_columns)
    for rows in row_blocks(n_rows):
        variance += np.square(X[rows] - first - mean).sum(axis=0) / n_rows
    scale = np.zeros(n_columns)
    scale[varies] = 1 / np.sqrt(variance[varies])
    result = np.empty(X.shape, dtype)
    for rows in row_blocks(n_rows):
        result[rows] = (X[rows] - first - mean) * scale
    return result
