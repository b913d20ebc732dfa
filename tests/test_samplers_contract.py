"""The same seed gives the same landmarks, whatever the storage, threads and blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from lists import (
    CHOOSING,
    CUBIC,
    MANY_PASSES,
    OFF_THE_ROWS,
    SOURCES,
    WITHOUT_SCORES,
    but,
)
from threadpoolctl import threadpool_limits

from nystrom import select_landmarks
from nystrom.engines import Threads
from nystrom.kernels import RBF, Blockwise, Laplacian, Linear, Pairwise, blockwise
from nystrom.linalg.cross_kernel import Ledger
from nystrom.samplers import Recursive, as_sampler
from nystrom.samplers.base import SamplingProblem
from nystrom.samplers.recursive import PracticalSize, iterate_levels
from nystrom.sources import Subset, as_source

N_ROWS = 5000  # five tiles, the last one short
RIDGE = "recursive, ridge"
#: The exact scores of 5000 rows take too long: those have a test of their own.
MANY_ROWS = [*but(CUBIC), RIDGE]
FOR_CSR = [*but(CUBIC, OFF_THE_ROWS), RIDGE]
KERNEL = RBF(0.1)


@pytest.fixture(params=[np.float64, np.float32], ids=["float64", "float32"])
def X(request, rng):
    return rng.standard_normal((N_ROWS, 4)).astype(request.param)


def holds_arrays(source):
    return source.n_features is not None and isinstance(source.rows(0, 1), np.ndarray)


def rows_chosen(name, X, seed, engine=None, weights=None):
    sampler = Recursive(max_spectral_error=5.0) if name == RIDGE else as_sampler(name)
    n_landmarks = None if name == RIDGE else 50
    engine = Threads(n_jobs=1, tiles_per_task=1) if engine is None else engine
    source = as_source(X, weights)
    landmarks = sampler(KERNEL, source, n_landmarks, seed=seed, engine=engine)
    # Moved landmarks have no row numbers: there the points must agree to the last bit.
    return landmarks.points if landmarks.indices is None else landmarks.indices


@pytest.mark.parametrize("name", MANY_ROWS)
def test_the_same_for_every_number_of_threads_and_block_size(name, X, seed):
    expected = rows_chosen(name, X, seed)
    for n_jobs, tiles_per_task in ((1, 4), (2, 1), (2, 16), (4, 2)):
        engine = Threads(n_jobs=n_jobs, tiles_per_task=tiles_per_task)
        found = rows_chosen(name, X, seed, engine)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", MANY_ROWS)
def test_the_same_for_every_storage(name, X, seed, tmp_path):
    expected = rows_chosen(name, X, seed)
    on_disk = np.memmap(tmp_path / "rows", dtype=X.dtype, mode="w+", shape=X.shape)
    on_disk[:] = X
    wide = np.zeros((2 * N_ROWS, 8), dtype=X.dtype)
    wide[::2, ::2] = X
    backwards = X[::-1, ::-1].copy()
    storages = {
        "Fortran order": np.asfortranarray(X),
        "memory map": on_disk,
        "a view with gaps": wide[::2, ::2],
        "a view from the end": backwards[::-1, ::-1],
        "read-only": np.frombuffer(X.tobytes(), dtype=X.dtype).reshape(X.shape),
        "a subset of itself": Subset(as_source(X), np.arange(N_ROWS)),
        **{name: make(X) for name, make in SOURCES.items() if holds_arrays(make(X))},
    }
    for storage, rows in storages.items():
        found = rows_chosen(name, rows, seed)
        np.testing.assert_array_equal(found, expected, err_msg=storage)


@pytest.mark.parametrize("name", FOR_CSR)
def test_the_same_for_csr(name, rng, seed):
    """Its products round differently; nothing here is so close to a tie."""
    X = sp.random_array((N_ROWS, 6), density=0.4, rng=rng, format="csr")
    X = X[np.diff(X.indptr) > 0]  # rows of zeros are copies, and those are ties
    expected = rows_chosen(name, X.toarray(), seed)
    np.testing.assert_array_equal(rows_chosen(name, X, seed), expected)
    unsorted = X[:, ::-1][:, ::-1].tocsr()
    np.testing.assert_array_equal(rows_chosen(name, unsorted, seed), expected)


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("name", MANY_ROWS)
def test_the_same_for_every_number_of_blas_threads(name, X, seed, n_threads):
    expected = rows_chosen(name, X, seed)
    with threadpool_limits(n_threads, user_api="blas"):
        np.testing.assert_array_equal(rows_chosen(name, X, seed, Threads()), expected)


@pytest.mark.parametrize("kernel", [Linear(), Laplacian(0.1), RBF((0.1, 0.2, 0.3, 0))])
def test_the_same_scores_to_the_last_bit(kernel, X, seed):
    """Not only the rows drawn: the numbers that decide."""
    runs = [
        iterate_levels(
            SamplingProblem(kernel, as_source(rows), seed, engine, Ledger()),
            PracticalSize(40),
        )
        for rows, engine in (
            (X, Threads(1, tiles_per_task=1)),
            (X, Threads(3, tiles_per_task=4)),
            (np.asfortranarray(X), Threads(2)),
        )
    ]
    for levels in zip(*runs, strict=True):
        first, *others = levels
        for other in others:
            np.testing.assert_array_equal(other.scores, first.scores)
            assert other.ridge == first.ridge


@pytest.mark.parametrize("sampler", CHOOSING)
def test_the_same_for_a_precomputed_matrix(sampler, rng, seed):
    # Of more rows `auto` ranks in float32, where a given value and one that is made
    # of float32 rows differ.
    n = 500 if sampler in ("auto", "kmeans") else 1100 if sampler in CUBIC else 1500
    X = rng.standard_normal((n, 3))
    options = {"n_landmarks": 40, "sampler": sampler, "random_state": seed}
    expected = select_landmarks(X, kernel=KERNEL, **options).indices
    for K in (KERNEL.gram(X), np.asfortranarray(KERNEL.gram(X))):
        found = select_landmarks(K, kernel="precomputed", **options).indices
        np.testing.assert_array_equal(found, expected)


# n_kernel_evaluations is exactly the number of entries that a selection took


@dataclass(frozen=True)
class WithoutDiagonal(Blockwise):
    """k(x, x) counts once, whatever is evaluated around it to have it."""

    counter: object = None

    def diag(self, X):
        before = self.counter.n
        values = super().diag(X)
        self.counter.n = before + len(X)
        return values


class Counted:
    """A Gaussian kernel that counts its entries, in the three forms users write."""

    def __init__(self, gamma=0.5, sign=1.0):
        self.n, self.gamma, self.sign = 0, gamma, sign

    def pair(self, x, y):
        self.n += 1
        return np.exp(-self.gamma * np.sum((x - y) ** 2))

    def block(self, X, Y):
        self.n += len(X) * len(Y)
        D = np.sum((X[:, None] - Y[None]) ** 2, axis=2)
        return np.exp(-self.gamma * D) * np.where(D > 0, self.sign, 1)

    def diagonal(self, X):
        self.n += len(X)
        return np.ones(len(X), dtype=X.dtype)

    def kernel(self, form):
        if form == "pairs":
            return Pairwise(self.pair)
        if form == "blocks":
            return WithoutDiagonal(self.block, counter=self)
        return blockwise(self.block, diag=self.diagonal)


FORMS = ["pairs", "blocks", "blocks and diagonal"]


def chosen(form, sampler, X, n_landmarks, seed, weights=None, **counted):
    """Landmarks straight from the sampler, and how many entries it asked for."""
    counter = Counted(**counted)
    kernel, source = counter.kernel(form), as_source(X, weights)
    landmarks = sampler(kernel, source, n_landmarks, seed=seed, engine=Threads(1))
    return landmarks, counter.n


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CHOOSING)
def test_every_sampler_counts_every_entry(name, form, rng, seed):
    X = rng.standard_normal((150, 2))
    landmarks, n = chosen(form, as_sampler(name), X, 12, seed)
    assert landmarks.n_kernel_evaluations == n
    assert (n == 0) == (name in WITHOUT_SCORES)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_landmarks", [1, 40])
@pytest.mark.parametrize("name", [*but(OFF_THE_ROWS, CUBIC), "ridge"])
def test_passes_over_many_tiles_are_counted(name, n_landmarks, dtype, rng, seed):
    """In float32 also the rows on which precision is tried."""
    X = rng.standard_normal((1100 if name in MANY_PASSES else 2500, 2)).astype(dtype)
    sampler = Recursive(max_spectral_error=1.0) if name == "ridge" else as_sampler(name)
    if name == "ridge":
        n_landmarks = None
    for gamma in (0.5, 1e-4):  # the second needs float64
        landmarks, n = chosen("blocks", sampler, X, n_landmarks, seed, gamma=gamma)
        assert landmarks.n_kernel_evaluations == n


@pytest.mark.parametrize("name", CHOOSING)
def test_rows_that_run_out_are_counted(name, rng, seed):
    """Passes over duplicates that find nothing more are evaluations too."""
    X = rng.standard_normal((9, 2))[np.arange(250) % 9]
    landmarks, n = chosen("blocks and diagonal", as_sampler(name), X, 30, seed)
    assert landmarks.n_kernel_evaluations == n


class CountedRBF(RBF):
    """A kernel of a distance that counts its entries."""

    def __init__(self, gamma):
        super().__init__(gamma)
        object.__setattr__(self, "seen", [])

    def evaluator(self, Y):
        evaluate = super().evaluator(Y)

        def counted(X):
            K = evaluate(X)
            self.seen.append(K.size)
            return K

        return counted

    def diag(self, X):
        self.seen.append(len(X))
        return super().diag(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gamma", [0.5, 50.0, 1e-4])
@pytest.mark.parametrize("n_rows", [150, 3000])
@pytest.mark.parametrize("name", OFF_THE_ROWS)
def test_landmarks_that_move_count_every_entry(name, n_rows, gamma, dtype, rng, seed):
    X = rng.standard_normal((n_rows, 2)).astype(dtype)
    kernel, engine = CountedRBF(gamma), Threads(1)
    landmarks = as_sampler(name)(kernel, as_source(X), 12, seed=seed, engine=engine)
    assert landmarks.n_kernel_evaluations == sum(kernel.seen) > 0


@pytest.mark.parametrize("name", but(OFF_THE_ROWS, WITHOUT_SCORES))
def test_entries_that_showed_a_kernel_to_be_indefinite_are_counted(name, rng, seed):
    X = rng.standard_normal((200, 2))
    landmarks, n = chosen("blocks", as_sampler(name), X, 20, seed, sign=-1.0)
    assert any("indefinite" in note for note in landmarks.notes)
    assert n > 0
    assert landmarks.n_kernel_evaluations == n


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CHOOSING)
def test_only_the_factor_of_the_landmarks_comes_on_top(name, form, rng, seed):
    """`select_landmarks` looks at K_SS once, for rank and definiteness."""
    X, counter = rng.standard_normal((150, 2)), Counted()
    kernel = counter.kernel(form)
    landmarks = select_landmarks(
        X, kernel=kernel, n_landmarks=12, sampler=name, random_state=seed
    )
    n = landmarks.n_kernel_evaluations + kernel.gram_evaluations(12)
    assert counter.n == n
    # What it has to say of the landmarks takes no evaluation more.
    assert landmarks.rank == 12
    assert "rank 12" in str(landmarks)
    assert not landmarks.indefinite
    assert counter.n == n


def test_the_recursion_costs_a_few_passes_over_the_landmarks_columns(rng, seed):
    """O(ns): the authors' program takes 1.1 to 2.3 times n·s."""
    X = rng.standard_normal((6000, 3))
    landmarks = select_landmarks(
        X, gamma=0.2, n_landmarks=100, sampler="recursive", random_state=seed
    )
    assert 0.5 * 6000 * 100 < landmarks.n_kernel_evaluations < 4 * 6000 * 100
