"""The rows that benchmarks/landmarks.py measures on: four real sets, five made up.

The real ones are files in a folder (covertype.npz, cod_rna.npz, adult.csv.gz and
yearpredictionmsd_subset.npz) and are standardised; the made-up ones each have one
trait that a sampler can fail on.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

NUMERIC = {
    "age",
    "fnlwgt",
    "education-num",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
}


def standardised(X: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and variance 1; constant ones become 0."""
    X = X.astype(np.float64)
    deviations = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(deviations > 0, deviations, 1)


def archive(folder: Path, name: str) -> np.ndarray:
    """The rows of an .npz file."""
    return standardised(np.load(folder / f"{name}.npz")["X"])


def year(folder: Path) -> np.ndarray:
    """The part of the file that is a uniform sample of the whole set."""
    file = np.load(folder / "yearpredictionmsd_subset.npz")
    return standardised(file["X"][file["source"] == 0])


def adult(folder: Path) -> np.ndarray:
    """Numbers as they are, categories one-hot."""
    with gzip.open(folder / "adult.csv.gz", "rt") as file:
        names, *rows = csv.reader(file)
    columns = []
    for name, values in zip(names, np.array(rows).T, strict=True):
        if name in NUMERIC:
            columns.append(values.astype(np.float64)[:, None])
        elif name != "income":
            columns.append((values[:, None] == np.unique(values)).astype(np.float64))
    return standardised(np.hstack(columns))


def clusters(n: int, rng: np.random.Generator) -> np.ndarray:
    """Twelve clusters, from five rows to most of them, of unequal spread."""
    sizes = np.geomspace(5, 17_000, 12)
    sizes = np.maximum(5, sizes / sizes.sum() * n).astype(int)
    sizes[-1] += n - sizes.sum()
    parts = [
        rng.normal(size=(k, 10)) * rng.uniform(0.2, 1) + rng.normal(size=10) * 4
        for k in sizes
    ]
    X = np.concatenate(parts)
    return X / X.std()


def copies(n: int, rng: np.random.Generator) -> np.ndarray:
    """Every row has about nineteen near-copies."""
    base = rng.normal(size=(max(1, n // 20), 3))
    return base[rng.integers(0, len(base), n)] + 1e-3 * rng.normal(size=(n, 3))


def flat(n: int, rng: np.random.Generator) -> np.ndarray:
    """No structure: all leverage scores are about equal."""
    return rng.normal(size=(n, 50))


def tails(n: int, rng: np.random.Generator) -> np.ndarray:
    """Tails so heavy that there is no variance."""
    return rng.standard_t(1.5, size=(n, 8))


def outlier(n: int, rng: np.random.Generator) -> np.ndarray:
    """One row very far from all others."""
    X = rng.normal(size=(n, 10))
    X[n // 3] = 1e4
    return X


FILES: dict[str, Callable[[Path], np.ndarray]] = {
    "covertype": partial(archive, name="covertype"),
    "cod_rna": partial(archive, name="cod_rna"),
    "adult": adult,
    "year": year,
}
MADE: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    f.__name__: f for f in (clusters, copies, flat, tails, outlier)
}
SETS = [*FILES, *MADE]


def load(name: str, folder: Path, n: int) -> np.ndarray:
    """At most n rows of a set in float64, in random order; the same at every call."""
    rng = np.random.default_rng(0)
    X = FILES[name](folder) if name in FILES else MADE[name](n, rng)
    return X[rng.permutation(len(X))[:n]]


def gamma_for(X: np.ndarray, g: float) -> float:
    """g divided by the median squared distance of random pairs."""
    i, j = np.random.default_rng(1).integers(0, len(X), (2, 4000))
    distances = ((X[i] - X[j]) ** 2).sum(axis=1)
    return g / float(np.median(distances[distances > 0]))
