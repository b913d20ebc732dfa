"""`n_kernel_evaluations` is exactly the number of entries that choosing took."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from lists import (
    CHOOSING,
    CUBIC,
    MANY_PASSES,
    OFF_THE_ROWS,
    WITHOUT_SCORES,
    but,
)

from nystrom import select_landmarks
from nystrom.engines import Threads
from nystrom.kernels import RBF, Blockwise, Pairwise, blockwise
from nystrom.samplers import Leverage, Recursive, as_sampler
from nystrom.sources import as_source


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


@pytest.mark.parametrize("form", ["blocks", "blocks and diagonal"])
@pytest.mark.parametrize(
    ("sampler", "n_rows"),
    [
        (Recursive(max_spectral_error=2.0, delta=0.01), 1200),
        (Recursive(max_spectral_error=2.0), 500),
        (Leverage(max_spectral_error=2.0), 200),
        (Leverage(max_spectral_error=2.0, delta=0.1), 200),
        (Leverage(delta=0.1), 200),
    ],
    ids=str,
)
def test_options_are_counted_too(sampler, n_rows, form, rng, seed):
    X = rng.standard_normal((n_rows, 2))
    n_landmarks = 50 if sampler.max_spectral_error is None else None
    landmarks, n = chosen(form, sampler, X, n_landmarks, seed)
    assert n > 0
    assert landmarks.n_kernel_evaluations == n


@pytest.mark.parametrize("name", CHOOSING)
def test_all_rows_take_no_evaluation(name, rng):
    X = rng.standard_normal((30, 2))
    landmarks, n = chosen("pairs", as_sampler(name), X, 30, 0)
    assert landmarks.n_kernel_evaluations == n == 0


@pytest.mark.parametrize("given", [np.array([1, 2]), np.zeros((2, 2))])
def test_given_landmarks_take_no_evaluation(given, rng):
    X = rng.standard_normal((30, 2))
    landmarks, n = chosen("pairs", as_sampler(given), X, 2, 0)
    assert landmarks.n_kernel_evaluations == n == 0


@pytest.mark.parametrize("name", CHOOSING)
def test_weights_of_rows_change_no_count(name, rng, seed):
    X, w = rng.standard_normal((300, 2)), rng.uniform(0.5, 2, 300)
    landmarks, n = chosen("blocks", as_sampler(name), X, 20, seed, weights=w)
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


def test_pairs_of_a_symmetric_matrix_are_evaluated_once():
    counter = Counted()
    counter.kernel("pairs").gram(np.zeros((10, 2)))
    assert counter.n == counter.kernel("pairs").gram_evaluations(10) == 55


def test_the_recursion_costs_a_few_passes_over_the_landmarks_columns(rng, seed):
    """O(ns): the authors' program takes 1.1 to 2.3 times n·s."""
    X = rng.standard_normal((6000, 3))
    landmarks = select_landmarks(
        X, gamma=0.2, n_landmarks=100, sampler="recursive", random_state=seed
    )
    assert 0.5 * 6000 * 100 < landmarks.n_kernel_evaluations < 4 * 6000 * 100
