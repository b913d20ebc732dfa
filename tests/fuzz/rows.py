"""Rows such as users have and nobody expects: their values, and how they are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from lists import SOURCES


def copies(rng, n, d):
    return rng.standard_normal((n, d))[rng.integers(0, max(1, n // 4), n)]


def near_copies(rng, n, d):
    X = copies(rng, n, d)
    return X * (1 + 10.0 ** rng.uniform(-16, -6) * rng.integers(-3, 4, X.shape))


def constant_columns(rng, n, d):
    X = rng.standard_normal((n, d))
    X[:, rng.random(d) < 0.6] = rng.standard_normal()
    return X


def row_scales(rng, n, d):
    return rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-6, 6, (n, 1))


def column_scales(rng, n, d):
    return rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-6, 6, (1, d))


def mostly_zero_rows(rng, n, d):
    return rng.standard_normal((n, d)) * (rng.random((n, 1)) < 0.3)


def mostly_zeros(rng, n, d):
    return rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.15)


def clusters(rng, n, d):
    centers = 5 * rng.standard_normal((max(1, n // 10), d))
    noise = 10.0 ** rng.uniform(-8, -1) * rng.standard_normal((n, d))
    return centers[rng.integers(0, len(centers), n)] + noise


def one_far(rng, n, d):
    X = rng.standard_normal((n, d))
    X[rng.integers(n)] *= 10.0 ** rng.uniform(0, 12)
    return X


#: How values are made, from a generator and the shape.
VALUES = {
    "normal": lambda rng, n, d: rng.standard_normal((n, d)),
    "uniform": lambda rng, n, d: rng.random((n, d)),
    "copies": copies,
    "near copies": near_copies,
    "clusters": clusters,
    "zeros": lambda rng, n, d: np.zeros((n, d)),
    "all alike": lambda rng, n, d: np.full((n, d), rng.standard_normal()),
    "constant columns": constant_columns,
    "scales by row": row_scales,
    "scales by column": column_scales,
    "heavy tails": lambda rng, n, d: rng.standard_t(0.7, (n, d)),
    "zero rows": mostly_zero_rows,
    "mostly zeros": mostly_zeros,
    "whole numbers": lambda rng, n, d: rng.integers(-3, 4, (n, d)).astype(float),
    "sorted": lambda rng, n, d: np.sort(rng.standard_normal((n, d)), axis=0),
    "on a line": lambda rng, n, d: np.outer(rng.standard_normal(n), np.arange(d) + 1),
    "one far": one_far,
}


def strided(X):
    """Every other row and column of an array that is twice as large."""
    wide = np.zeros((2 * len(X), 2 * X.shape[1]), X.dtype)
    wide[::2, ::2] = X
    return wide[::2, ::2]


def read_only(X):
    X = X.copy()
    X.setflags(write=False)
    return X


def data_frame(X):
    import pandas as pd

    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])


#: How arrays are kept.
STORED = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": strided,
    "backwards": lambda X: X[::-1].copy()[::-1],
    "read-only": read_only,
    "list": lambda X: X.tolist(),
    "data frame": data_frame,
    "csr": sp.csr_array,
    "csr_matrix": sp.csr_matrix,
}
#: Sources of rows of numbers; the others pair them, number them, or need a cluster.
IN_SOURCES = [
    name
    for name in SOURCES
    if name not in ("ObjectRows", "Pair", "RowNumbers", "DaskRows", "SparseRows")
]
TYPES = [np.float64, np.float32, np.float16, np.int64, np.int8]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as they are given, and as numbers."""

    original: Any
    exact: np.ndarray  # (n, d) float64: what they are once stored
    what: str
    narrow: bool  # kept in less than float64

    def __len__(self):
        return len(self.exact)


def n_rows(rng):
    """Mostly few: a dense answer takes n³."""
    return int(
        rng.choice(
            [
                1,
                rng.integers(2, 6),
                rng.integers(6, 40),
                rng.integers(40, 150),
                rng.integers(1020, 1100),
            ],
            p=[0.03, 0.12, 0.6, 0.235, 0.015],
        )
    )


def random_rows(rng, *, histograms=False, dense=False, few=False) -> Rows:
    """Rows of a number; `histograms` have no negative entries and are no CSR."""
    n = min(n_rows(rng), 40) if few else n_rows(rng)
    d = int(rng.choice([1, rng.integers(2, 6), rng.integers(6, 30)], p=[0.2, 0.5, 0.3]))
    kind = str(rng.choice(list(VALUES)))
    X = VALUES[kind](rng, n, d)
    power = rng.choice(
        [0.0, rng.uniform(-4, 2), rng.uniform(-12, 12)], p=[0.5, 0.3, 0.2]
    )
    X = X * 10.0**power
    away = 0.0
    if rng.random() < 0.15:
        away = 10.0 ** rng.uniform(0, 8) * (np.abs(X).max() or 1.0)
        X = X + away
    X = np.abs(X) if histograms else X
    dtype = np.dtype(TYPES[rng.choice(len(TYPES), p=[0.52, 0.32, 0.02, 0.09, 0.05])])
    X = in_type(X, dtype)
    plain = [name for name in STORED if not (histograms or dense) or "csr" not in name]
    if rng.random() < 0.12:
        stored = str(rng.choice(IN_SOURCES))
        given = SOURCES[stored](X if dtype.kind == "f" else X.astype(float))
    else:
        chances = np.array([4.0 if name in ("C", "csr") else 1.0 for name in plain])
        stored = str(rng.choice(plain, p=chances / chances.sum()))
        given = STORED[stored](X if dtype != np.float16 else X.astype(np.float32))
    narrow = dtype.kind == "f" and dtype.itemsize < 8 and stored != "list"
    what = f"{n} × {d} {kind}, ·1e{power:.3g}, + {away:.3g}, {dtype}, {stored}"
    return Rows(given, X.astype(np.float64), what, narrow)


def in_type(X, dtype):
    """Values as a type has them: cut to its range, all finite."""
    limits = np.iinfo(dtype) if dtype.kind == "i" else np.finfo(dtype)
    most = float(limits.max) / 2
    return np.clip(X, -most, most).astype(dtype)
