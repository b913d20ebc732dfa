"""The four data sets of the paper, standardised, or generated stand-ins for them.

Musco & Musco, *Recursive Sampling for the Nyström Method* (NIPS 2017), section 5, uses
Adult, Covertype, Cod-RNA and YearPredictionMSD. `load` reads a set from a file in the
folder given by `--data`, or fetches it with scikit-learn (Adult and Covertype), or
generates rows of the same shape and says so in `origin`.

    adult.csv.gz                  48842 rows, 14 columns and the income, with a header
    covertype.npz                 X (581012 × 54) and y (1 to 7)
    cod_rna.npz                   X (331152 × 8) and y (−1 or 1)
    yearpredictionmsd_subset.npz  X (of 515345 × 90) and y (years)
"""

from __future__ import annotations

import csv
import gzip
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from sklearn.datasets import fetch_covtype, fetch_openml
from sklearn.preprocessing import OneHotEncoder

FILES = {
    "adult": "adult.csv.gz",
    "covertype": "covertype.npz",
    "cod_rna": "cod_rna.npz",
    "year": "yearpredictionmsd_subset.npz",
}
N_ROWS = {"adult": 48842, "covertype": 581012, "cod_rna": 331152, "year": 515345}
#: Of the file with a part of YearPredictionMSD: rows drawn uniformly from the whole.
YEAR_ROWS = 7000
#: Rows generated at a time; part of what a seed means, so never to be changed.
BLOCK_ROWS = 16384


class Table(NamedTuple):
    """A data set, and whether it is read, fetched or generated."""

    X: np.ndarray
    y: np.ndarray
    origin: str


def load(name: str, folder: Path | None, dtype: type = np.float64) -> Table:
    """A set by its name in `FILES`, with columns of mean 0 and variance 1."""
    file = None if folder is None else folder / FILES[name]
    if file is not None and file.exists():
        X, y = _read_adult(file) if name == "adult" else _read_arrays(file)
        y = y.astype(np.float64 if name == "year" else np.int64)
        origin = "file"
        if name == "year" and len(X) < N_ROWS[name]:
            X, y, origin = X[:YEAR_ROWS], y[:YEAR_ROWS], f"{YEAR_ROWS} of 515345 rows"
    else:
        try:
            (X, y), origin = _fetch(name), "download"
        except (OSError, ImportError) as error:
            warnings.warn(
                f"{name} is replaced by generated rows, results on them are not "
                f"results on {name}. Reason: {error}",
                stacklevel=2,
            )
            return stand_in(name, dtype=dtype)
    return Table(standardised(X, dtype), y, origin)


def stand_in(name: str, n_rows: int | None = None, dtype: type = np.float32) -> Table:
    """Generated rows of the shape and rough character of a set, always the same ones.

    Columns are mixtures of a few hidden Gaussian variables and of noise, so that they
    are correlated and the spectrum of the kernel matrix decays. The target is a smooth
    function of the hidden variables plus noise.
    """
    draw = {
        "adult": _draw_adult,
        "covertype": _draw_covertype,
        "cod_rna": _draw_cod_rna,
        "year": _draw_year,
    }[name]
    X, y = draw(n_rows or N_ROWS[name], np.random.default_rng(0))
    return Table(standardised(X, dtype), y, "generated stand-in")


def standardised(X: np.ndarray, dtype: type) -> np.ndarray:
    """(X − mean) / standard deviation in each column, 0 where a column is constant.

    By blocks, so that there is never a float64 copy of the whole.
    """
    n_rows, n_columns = X.shape
    # Around the first row: a column far from 0 keeps its digits, and a constant one
    # comes out exactly constant, which its rounded mean would hide.
    first = X[0].astype(np.float64)
    mean, variance = np.zeros(n_columns), np.zeros(n_columns)
    for rows in row_blocks(n_rows, 8192):
        mean += (X[rows] - first).sum(axis=0) / n_rows
    for rows in row_blocks(n_rows, 8192):
        variance += np.square(X[rows] - first - mean).sum(axis=0) / n_rows
    varies = np.not_equal(X, first).any(axis=0)
    scale = np.zeros(n_columns)
    scale[varies] = 1 / np.sqrt(variance[varies])
    result = np.empty(X.shape, dtype)
    for rows in row_blocks(n_rows, 8192):
        result[rows] = (X[rows] - first - mean) * scale
    return result


def row_blocks(n_rows: int, size: int = BLOCK_ROWS) -> Iterator[slice]:
    """Slices that cover the rows, in order."""
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


# ---------------------------------------------------------------- reading and fetching

ADULT_NUMERIC = [0, 2, 4, 10, 11, 12]
#: Number of categories of each other column of Adult, "?" (unknown) among them.
ADULT_CATEGORIES = {1: 9, 3: 16, 5: 7, 6: 15, 7: 6, 8: 5, 9: 2, 13: 42}

Arrays = tuple[np.ndarray, np.ndarray]


def _read_arrays(file: Path) -> Arrays:
    with np.load(file, allow_pickle=False) as arrays:
        return arrays["X"], arrays["y"]


def _read_adult(file: Path) -> Arrays:
    with gzip.open(file, "rt", newline="") as stream:
        rows = [[word.strip() for word in row] for row in csv.reader(stream)]
    table = np.array(rows[1:])
    return _encode_adult(table[:, :-1], table[:, -1])


def _encode_adult(X: np.ndarray, y: np.ndarray) -> Arrays:
    """The numeric columns, then an indicator for each category of each other one."""
    numbers = X[:, ADULT_NUMERIC].astype(np.float64)
    encoder = OneHotEncoder(sparse_output=False, dtype=np.float32)
    indicators = encoder.fit_transform(X[:, list(ADULT_CATEGORIES)])
    return np.hstack([numbers.astype(np.float32), indicators]), (y == ">50K").astype(
        int
    )


def _fetch(name: str) -> Arrays:
    if name == "covertype":
        X, y = fetch_covtype(return_X_y=True)
        return X, y.astype(np.int64)
    if name == "adult":
        X, y = fetch_openml("adult", version=2, return_X_y=True, parser="pandas")
        X = X.astype(object)
        return _encode_adult(X.where(X.notna(), "?").to_numpy(str), y.to_numpy(str))
    raise OSError(f"no {FILES[name]} in the folder given by --data")


# -------------------------------------------------------------------------- generating


def _normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape, dtype=np.float32)


class _Mixture:
    """Columns of variance 1: each a direction of the hidden variables, and noise."""

    def __init__(
        self, rng: np.random.Generator, n_hidden: int, n_columns: int, noise: float
    ) -> None:
        directions = _normal(rng, n_hidden, n_columns)
        directions /= np.linalg.norm(directions, axis=0)
        self.directions = directions * np.float32(np.sqrt(1 - noise**2))
        self.noise = np.float32(noise)

    def columns(self, rng: np.random.Generator, hidden: np.ndarray) -> np.ndarray:
        """One row per row of `hidden`."""
        mixed = hidden @ self.directions
        return mixed + self.noise * _normal(rng, *mixed.shape)


class _SmoothScore:
    """A smooth function of the hidden variables plus noise: mean 0, variance 1."""

    def __init__(self, rng: np.random.Generator, n_hidden: int, noise: float) -> None:
        self.frequencies = _normal(rng, n_hidden, 16) * np.float32(n_hidden**-0.5)
        self.phases = rng.uniform(0, 2 * np.pi, 16).astype(np.float32)
        self.noise = np.float32(noise)
        sample = self._waves(_normal(rng, 4096, n_hidden))
        self.mean = sample.mean()
        self.scale = np.float32(np.sqrt(1 - noise**2)) / sample.std()

    def _waves(self, hidden: np.ndarray) -> np.ndarray:
        return np.cos(hidden @ self.frequencies + self.phases).sum(axis=1)

    def values(self, rng: np.random.Generator, hidden: np.ndarray) -> np.ndarray:
        """One number per row of `hidden`."""
        smooth = (self._waves(hidden) - self.mean) * self.scale
        return smooth + self.noise * _normal(rng, len(hidden))


def _kinds(scores: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Cut normal scores into kinds that are as frequent as the shares."""
    cumulated = np.cumsum(shares, dtype=float)
    return np.searchsorted(ndtri(cumulated[:-1] / cumulated[-1]), scores)


def _zipf_shares(rng: np.random.Generator, n_kinds: int) -> np.ndarray:
    return rng.permutation(np.arange(1, n_kinds + 1) ** -1.5)


def _draw_adult(n_rows: int, rng: np.random.Generator) -> Arrays:
    """Four hidden variables; a few categories of each column are frequent."""
    # Mean, spread and range of each numeric column; most have no gains and losses.
    numeric = {
        0: (39, 13.7, 17, 90),
        2: (189664, 105604, 12285, 1490400),
        4: (10, 2.6, 1, 16),
        10: (-14000, 10000, 0, 99999),
        11: (-2000, 1200, 0, 4356),
        12: (40, 12.4, 1, 99),
    }
    hidden = _normal(rng, n_rows, 4)
    mixed = _Mixture(rng, 4, 14, noise=0.5).columns(rng, hidden)
    numbers = [
        np.clip(np.rint(mean + spread * mixed[:, j].astype(float)), low, high)[:, None]
        for j, (mean, spread, low, high) in numeric.items()
    ]
    indicators = [
        _kinds(mixed[:, j], _zipf_shares(rng, k))[:, None] == np.arange(k)
        for j, k in ADULT_CATEGORIES.items()
    ]
    rich = _SmoothScore(rng, 4, noise=0.4).values(rng, hidden) > 0.7
    return np.hstack([*numbers, *indicators], dtype=np.float32), rich.astype(int)


def _draw_covertype(n_rows: int, rng: np.random.Generator) -> Arrays:
    """Four hidden variables; areas, soils and classes as frequent as in the set."""
    means = np.array([2959, 156, 14, 269, 46, 2350, 212, 223, 143, 1980], np.float32)
    spreads = np.array([280, 112, 7.5, 213, 58, 1559, 27, 20, 38, 1324], np.float32)
    lowest = np.array([1859, 0, 0, 0, -173, 0, 0, 0, 0, 0])
    highest = np.array([3858, 360, 66, 1397, 601, 7117, 254, 254, 254, 7173])
    area_shares = np.array([260796, 29884, 253364, 36968])
    shares = np.array([211840, 283301, 35754, 2747, 9493, 17367, 20510])
    mixture = _Mixture(rng, 4, 10, noise=0.5)
    area_score = _Mixture(rng, 4, 1, noise=0.4)
    soil_score = _Mixture(rng, 4, 1, noise=0.4)
    forest_score = _SmoothScore(rng, 4, noise=0.4)
    soil_shares = _zipf_shares(rng, 40)
    X, y = np.empty((n_rows, 54), np.int16), np.empty(n_rows, np.int64)
    for rows in row_blocks(n_rows):
        hidden = _normal(rng, rows.stop - rows.start, 4)
        numeric = means + spreads * mixture.columns(rng, hidden)
        X[rows, :10] = np.clip(np.rint(numeric), lowest, highest)
        area = _kinds(area_score.columns(rng, hidden), area_shares)
        soil = _kinds(soil_score.columns(rng, hidden), soil_shares)
        X[rows, 10:14] = area == np.arange(4)
        X[rows, 14:] = soil == np.arange(40)
        y[rows] = 1 + _kinds(forest_score.values(rng, hidden), shares)
    return X, y


def _draw_cod_rna(n_rows: int, rng: np.random.Generator) -> Arrays:
    """Three hidden variables, and rows that occur more than once, as in the set."""
    n_distinct = max(1, round(n_rows * 257425 / 331152))
    hidden = _normal(rng, n_distinct, 3)
    mixed = _Mixture(rng, 3, 8, noise=0.5).columns(rng, hidden)
    length = np.clip(np.rint(94 + 21 * mixed[:, 1]), 67, 133)
    X = np.empty((n_distinct, 8), np.float32)
    # A longer sequence folds with more energy.
    X[:, 0] = np.minimum(0, np.rint(-4.7 * length + 155 * mixed[:, 0]))
    X[:, 1] = length
    bases = np.rint(np.clip(0.24 + 0.045 * mixed[:, 2:], 0.08, 0.45) * length[:, None])
    X[:, 2:] = (bases / length[:, None]).round(6)
    y = np.where(_SmoothScore(rng, 3, noise=0.3).values(rng, hidden) > 0.43, 1, -1)
    again = rng.integers(0, n_distinct, n_rows - n_distinct)
    order = rng.permutation(np.concatenate([np.arange(n_distinct), again]))
    return X[order], y[order]


def _draw_year(n_rows: int, rng: np.random.Generator) -> Arrays:
    """Twelve hidden variables; the covariances have long tails, most years are late."""
    mixture = _Mixture(rng, 12, 90, noise=0.5)
    year_score = _SmoothScore(rng, 12, noise=0.6)
    # As in the set, the first covariances vary a hundred times as much as the last.
    spreads = np.concatenate([np.geomspace(50, 5, 12), np.geomspace(1800, 15, 78)])
    X, y = np.empty((n_rows, 90), np.float32), np.empty(n_rows)
    for rows in row_blocks(n_rows):
        hidden = _normal(rng, rows.stop - rows.start, 12)
        block = mixture.columns(rng, hidden)
        # A loud song has large covariances all over.
        block[:, 12:] *= np.exp(np.float32(0.4) * _normal(rng, len(hidden), 1))
        X[rows] = block * spreads.astype(np.float32)
        years = 2011 - 9.6 * np.exp(0.6 * year_score.values(rng, hidden))
        y[rows] = np.clip(np.rint(years), 1922, 2011)
    return X, y
