"""Rows, targets and widths of the data sets, by name."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from . import data
from .config import Problem
from .synthetic import SYNTHETIC, long

WIDTHS = Path(__file__).parents[1] / "results" / "widths.csv"


@dataclass(frozen=True)
class Rows:
    """A data set: rows, targets (±1 for two classes, or numbers), where it is from."""

    X: np.ndarray
    y: np.ndarray
    origin: str

    @property
    def classes(self) -> bool:
        """Whether the targets are ±1."""
        return set(np.unique(self.y[:1000])) <= {-1.0, 1.0}


def load(problem: Problem, folder: Path | None, extra: int = 0) -> Rows:
    """The rows of a problem in random order, and `extra` ones after them for tests.

    The same at every call. `folder` may hold files of the real sets; without it they
    are fetched, and where that fails a stand-in is generated, which `origin` tells.
    """
    n = problem.rows + extra
    if problem.data == "long":
        scratch = Path(os.environ.get("NYSTROM_SCRATCH", "build/benchmarks"))
        X = long(n, scratch)
        return Rows(X, np.sin(3 * X[:, 0]) + X[:, 1], "generated")
    if problem.data in SYNTHETIC:
        X = SYNTHETIC[problem.data](n, np.random.default_rng(0))
        order = np.random.default_rng(1).permutation(len(X))
        X = X[order].astype(problem.dtype)
        return Rows(X, np.where(np.sin(2 * X[:, 0]) > 0, 1.0, -1.0), "generated")
    whole = _whole(problem.data, folder)
    order = np.random.default_rng(0).permutation(len(whole.X))[:n]
    X = np.ascontiguousarray(whole.X[order], dtype=problem.dtype)
    return Rows(X, whole.y[order], whole.origin)


@lru_cache(maxsize=1)
def _whole(name: str, folder: Path | None) -> Rows:
    """A set standardised, with two classes where it has more."""
    if name == "year stand-in":
        return Rows(*data.stand_in("year"))
    X, y, origin = data.load(name, folder)
    # Two classes, as in the paper: class 2 against the rest.
    if name == "covertype":
        y = np.where(y == 2, 1, -1)
    elif name == "adult":
        y = np.where(y == y.max(), 1, -1)
    return Rows(X, y.astype(np.float64), origin)


def gamma_for(problem: Problem, X: np.ndarray) -> float:
    """γ of a width: a number, "cv", or "0.2/median" of the squared distances."""
    if problem.width == "cv":
        return float(chosen(problem.data)["gamma"])
    number, _, of = problem.width.partition("/")
    if not of:
        return float(number)
    if of != "median":
        raise ValueError(
            f'width={problem.width!r}; allowed: a number, "cv", "0.2/median".'
        )
    i, j = np.random.default_rng(1).integers(0, len(X), (2, 4000))
    distances = ((X[i] - X[j]).astype(np.float64) ** 2).sum(axis=1)
    return float(number) / float(np.median(distances[distances > 0]))


def chosen(name: str) -> dict[str, str]:
    """What cross-validation found for a set: γ, α of ridge regression, C of the SVM."""
    with WIDTHS.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["data"] == name:
                return row
    raise LookupError(
        f"{WIDTHS.name} has no row for {name!r}; run `dev.py bench widths`."
    )
