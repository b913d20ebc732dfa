"""Choosing landmarks holds nothing that has an entry for every row.

Memory is that of the process's own allocations while `n` grows fourfold. What is made
for one tile, for the landmarks and for a pool does not grow with `n`; a vector of
float64 would grow by 8 bytes a row.
"""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest

from nystrom import _random as randomness
from nystrom import select_landmarks, sources
from nystrom._random import Purpose, Stream
from nystrom.engines import Threads
from nystrom.kernels import RBF
from nystrom.linalg.cross_kernel import Ledger
from nystrom.samplers import weighted_sampling as sifting
from nystrom.samplers.base import SamplingProblem
from nystrom.samplers.recursive import PracticalSize, iterate_levels
from nystrom.samplers.weighted_sampling import (
    BernoulliSubset,
    NumberedSubset,
)
from nystrom.sources import as_source

SIZE, FEW = 20, 2**16


@dataclass(frozen=True)
class Clusters:
    """Rows in three clusters, one of them rare, that are stored nowhere."""

    seed: int
    shift: float = 4.0

    def __call__(self, start, stop):
        rng = np.random.default_rng([self.seed, start])
        kind = rng.choice(3, stop - start, p=[0.9, 0.099, 0.001])
        centers = self.shift * np.array([[0, 0], [1, 0], [0, 1]])
        rows = centers[kind] + rng.standard_normal((stop - start, 2))
        return rows.astype(np.float32)


def generated(n, seed=0):
    return sources.GeneratedRows(Clusters(seed), n, 2)


@pytest.fixture
def short_lists(monkeypatch):
    """Rows are sifted where more than 2¹² would have to be listed."""
    monkeypatch.setattr(sifting, "MAX_LISTED_ROWS", 2**12)
    monkeypatch.setattr(sifting, "MIN_LISTED_ROWS", 2**12)
    monkeypatch.setattr(randomness, "CHUNK_ROWS", 2**12)


def peak_of(work):
    """Bytes that a call allocates at most."""
    work()  # what is made once and kept is made
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def growth(n, **options):
    """Bytes per row, of rows that there are more of.

    A ridge grows with them, so that as many landmarks are chosen.
    """

    def choose(n_rows):
        if "max_spectral_error" in options:
            options["max_spectral_error"] = ridge * n_rows / n
        select_landmarks(
            generated(n_rows), gamma=0.3, random_state=0, n_jobs=1, **options
        )

    ridge = options.get("max_spectral_error")
    few, many = (peak_of(lambda n_rows=n_rows: choose(n_rows)) for n_rows in (n, 4 * n))
    return (many - few) / (3 * n)


@pytest.mark.usefixtures("short_lists")
@pytest.mark.parametrize(
    "options",
    [
        {"sampler": "uniform", "n_landmarks": SIZE},
        {"sampler": "accelerated", "n_landmarks": SIZE},
        {"sampler": "recursive", "n_landmarks": SIZE},
        {"sampler": "recursive", "max_spectral_error": 2000.0},
        {"sampler": "auto", "n_landmarks": SIZE},
        {"sampler": "auto", "n_landmarks": None, "max_trace_error": 0.2},
        {"sampler": "kmeans", "n_landmarks": SIZE},
    ],
    ids=lambda options: " ".join(map(str, options.values())),
)
def test_memory_does_not_grow_with_the_rows(options):
    assert growth(FEW, **options) < 2


# Sifted levels are the listed ones


@pytest.mark.parametrize("sampler", ["recursive", "accelerated", "auto", "kmeans"])
def test_landmarks_from_subsampled_levels_do_not_depend_on_storage(
    sampler, seed, short_lists
):
    X = generated(40_000, seed).rows(0, 40_000)
    options = {"gamma": 0.3, "n_landmarks": 30, "sampler": sampler}
    held, made = (
        select_landmarks(rows, random_state=seed, n_jobs=n_jobs, **options)
        for rows, n_jobs in ((X, 2), (generated(40_000, seed), 1))
    )
    np.testing.assert_array_equal(held.points, made.points)
    if held.indices is not None:
        np.testing.assert_array_equal(held.indices, made.indices)
        np.testing.assert_array_equal(X[held.indices], held.points)


def test_subsampled_rows_bring_weights_targets_and_numbers(seed, rng):
    X, w, y = rng.standard_normal((5000, 2)), rng.uniform(0, 2, 5000), rng.random(5000)
    source = as_source(X, w).replace(targets=y[:, None])
    stream = Stream(seed, Purpose.REFRESH, round=3)
    block = BernoulliSubset(source, 0.1, stream).block(1024, 2048)
    u = stream.uniforms(0, 5000)
    expected = 1024 + np.flatnonzero(u[1024:2048] < 0.1)
    np.testing.assert_array_equal(block.numbers, expected)
    np.testing.assert_array_equal(block.X, X[expected])
    np.testing.assert_array_equal(block.weights, w[expected])
    np.testing.assert_array_equal(block.targets[:, 0], y[expected])


def test_rows_without_random_access_come_back_with_the_pass(seed, monkeypatch):
    """Else they would be read once more, and those that are at hand be copied."""
    source = generated(3000, seed)
    X = source.rows(0, 3000)

    def drawn_from(rows):
        work = SamplingProblem(RBF(0.3), rows, seed, Threads(1), Ledger())
        *_, top = iterate_levels(work, PracticalSize(SIZE))
        return top.sample_fixed_size(SIZE)[0]

    assert drawn_from(as_source(X)).points is None
    winners = drawn_from(source)
    monkeypatch.setattr(source, "take", None)  # from here on nothing is read
    np.testing.assert_array_equal(winners.points_from(source), X[winners.numbers])


def test_a_part_of_rows_that_must_be_fetched_is_fetched_once(seed):
    made = []

    def make(start, stop):
        made.append(start)
        return np.arange(start, stop)[:, None] * np.ones(2)

    source = sources.GeneratedRows(make, 50_000, 2)
    ledger = Ledger()
    work = SamplingProblem(RBF(), source, seed, Threads(2), ledger)
    part = work.subsample(300, Stream(seed, Purpose.VALIDATION))
    assert ledger.n_passes == 1
    assert isinstance(part, NumberedSubset)
    assert len(made) == len(set(made))
    n_made = len(made)
    fewer = part.subset(part.row_numbers[::3])
    block = fewer.block(0, 100)
    np.testing.assert_array_equal(block.X[:, 0], block.numbers)
    np.testing.assert_array_equal(fewer.take_numbered(block.numbers[5:9]), block.X[5:9])
    assert len(made) == n_made
