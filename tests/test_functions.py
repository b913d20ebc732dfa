"""The paper as functions, on rows of every kind."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel

import nystrom
from nystrom import approximate, effective_dimension, leverage_scores, select_landmarks
from nystrom.sources import DenseRows, SparseRows

GAMMA, RIDGE = 0.3, 0.5
N_ROWS = 150


@pytest.fixture
def X(rng):
    return rng.standard_normal((N_ROWS, 3))


@pytest.fixture
def K(X):
    return rbf_kernel(X, gamma=GAMMA)


def exact_scores(K, ridge=RIDGE):
    return np.diagonal(K @ np.linalg.inv(K + ridge * np.eye(len(K))))


def same_letters(x, y):
    return float(len(set(x) & set(y)))


STORAGES = {
    "array": np.asarray,
    "Fortran order": np.asfortranarray,
    "list of lists": lambda X: X.tolist(),
    "csr": sp.csr_array,
    "csr matrix": sp.csr_matrix,
    "csc": sp.csc_array,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "array of objects": lambda X: X.astype(object),
    "source": DenseRows,
    "sparse source": lambda X: SparseRows(sp.csr_array(X)),
}


@pytest.mark.parametrize(
    "function", [select_landmarks, leverage_scores, effective_dimension, approximate]
)
def test_options_are_by_keyword_and_in_the_docstring(function):
    parameters = list(inspect.signature(function).parameters.values())
    positional = 2 if function is approximate else 1
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters[positional:])
    if function is select_landmarks:
        assert all(p.name in function.__doc__ for p in parameters)


# Every kind of rows


@pytest.mark.parametrize("storage", STORAGES)
def test_scores_of_every_storage_are_the_same(X, K, storage):
    rows = STORAGES[storage](X)
    scores = leverage_scores(rows, gamma=GAMMA, ridge=RIDGE)
    np.testing.assert_allclose(scores, exact_scores(K), atol=1e-7)
    dimension = effective_dimension(rows, gamma=GAMMA, ridge=RIDGE)
    assert dimension == pytest.approx(exact_scores(K).sum())
    assert isinstance(dimension, float)


# Landmarks


def test_1000_landmarks_by_default(rng):
    X = rng.standard_normal((1100, 2))
    assert len(select_landmarks(X, random_state=0, sampler="uniform")) == 1000


def test_source_with_weights_of_its_own(X, seed):
    weights = np.arange(N_ROWS, dtype=float)
    options = {"n_landmarks": 20, "random_state": seed, "gamma": GAMMA}
    given_apart = select_landmarks(X, sample_weight=weights, **options)
    of_its_own = select_landmarks(DenseRows(X, weights), **options)
    np.testing.assert_array_equal(given_apart.indices, of_its_own.indices)


def test_weights_come_from_one_place(X):
    weights = np.ones(N_ROWS)
    with pytest.raises(ValueError, match=r"weights of its own; give\s+one"):
        select_landmarks(DenseRows(X, weights), n_landmarks=20, sample_weight=weights)


# Scores


def test_scores_from_landmarks_use_their_kernel(X):
    landmarks = select_landmarks(X, kernel="laplacian", n_landmarks=N_ROWS)
    scores = leverage_scores(X, ridge=RIDGE, landmarks=landmarks)
    expected = exact_scores(pairwise_kernels(X, metric="laplacian"))
    np.testing.assert_allclose(scores, expected, atol=1e-9)


# Errors


@pytest.mark.parametrize(
    ("run", "options"),
    [
        (select_landmarks, {}),
        (nystrom.estimate_n_landmarks, {"max_spectral_error": RIDGE}),
        (leverage_scores, {"ridge": RIDGE}),
        (effective_dimension, {"ridge": RIDGE}),
        (nystrom.spectral_embedding, {}),
    ],
)
def test_a_refusal_names_the_function_that_was_called(X, run, options):
    with pytest.raises(ValueError, match=f"or degree to {run.__name__} if"):
        run(X, kernel=same_letters, gamma=1.0, **options)


# For any data
