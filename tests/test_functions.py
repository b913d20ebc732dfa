"""The functions of the package: ridge leverage scores, landmarks and their options."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles_sampling import exact_scores, lemma_scores, rbf_matrix
from sklearn import config_context
from sklearn.metrics.pairwise import pairwise_kernels

from nystrom import effective_dimension, leverage_scores, select_landmarks
from nystrom._precision import MAX_RESIDUAL_ERROR, residual_rounding
from nystrom.engines import Threads
from nystrom.kernels import RBF, Linear
from nystrom.landmarks import Landmarks
from nystrom.linalg.cross_kernel import CrossKernel, Ledger
from nystrom.linalg.residuals import (
    prepare_residuals,
    residuals,
    residuals_to_scores,
    ridge_inverse_root,
)
from nystrom.samplers.base import SamplingProblem
from nystrom.sources import as_source

pytestmark = pytest.mark.usefixtures("one_blas_thread")

GAMMA = 0.3


def sample_of(X, rows, weights=None, kernel=None):
    """Landmarks at these rows of X, with these weights."""
    return Landmarks(
        points=X[rows],
        kernel=RBF(GAMMA) if kernel is None else kernel,
        sampler="a test",
        n_rows=len(X),
        indices=np.asarray(rows),
        probabilities=None if weights is None else 1 / np.square(weights),
    )


@pytest.fixture
def X(rng):
    return rng.standard_normal((300, 3))


# Exact scores


@pytest.mark.parametrize("ridge", [1e-3, 1.0, 30.0])
def test_exact_scores_are_the_diagonal_of_the_definition(X, ridge):
    scores = leverage_scores(X, gamma=GAMMA, ridge=ridge)
    expected = exact_scores(rbf_matrix(X, GAMMA), ridge)
    np.testing.assert_allclose(scores, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("ridge", [1e-12, 1e-3, 1.0, 1e6])
def test_exact_scores_lie_between_0_and_1_and_add_up_to_the_dimension(X, ridge):
    scores = leverage_scores(X, gamma=GAMMA, ridge=ridge)
    assert scores.min() >= 0
    assert scores.max() <= 1
    d_eff = effective_dimension(X, gamma=GAMMA, ridge=ridge)
    eigenvalues = np.maximum(np.linalg.eigvalsh(rbf_matrix(X, GAMMA)), 0)
    assert d_eff == pytest.approx(scores.sum(), rel=1e-12)
    # Eigenvalues near rounding count only where the ridge is as small.
    slack = 0 if ridge > 1e-6 else 0.5
    expected = np.sum(eigenvalues / (eigenvalues + ridge))
    assert d_eff == pytest.approx(expected, rel=1e-8, abs=slack)


def test_scores_of_orthogonal_rows_are_known_in_closed_form():
    X = np.diag([1.0, 2.0, 3.0])
    scores = leverage_scores(X, kernel="linear", ridge=2.0)
    np.testing.assert_allclose(scores, [1 / 3, 4 / 6, 9 / 11], rtol=1e-14)


def test_exact_scores_refuse_more_rows_than_working_memory_holds(X):
    with (
        config_context(working_memory=0.5),
        pytest.raises(ValueError, match=r"300 × 300 kernel matrix.*landmarks=\.\.\."),
    ):
        leverage_scores(X, ridge=1.0)


# From a sample


@pytest.mark.parametrize("ridge", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("has_weights", [False, True])
def test_scores_from_a_sample_are_those_of_the_lemma(X, rng, ridge, has_weights):
    rows = rng.choice(300, 40, replace=False)
    weights = 1 / np.sqrt(rng.uniform(0.05, 1, 40)) if has_weights else np.ones(40)
    landmarks = sample_of(X, rows, weights if has_weights else None)
    scores = leverage_scores(X, ridge=ridge, landmarks=landmarks)
    expected = lemma_scores(rbf_matrix(X, GAMMA), rows, weights, ridge)
    np.testing.assert_allclose(
        scores, np.minimum(1, expected), rtol=1e-8, atol=1e-11 / ridge
    )


@given(size=st.integers(1, 60), power=st.integers(-4, 2), draw=st.integers(0, 2**32))
def test_an_unweighted_subset_never_scores_below_the_exact_scores(size, power, draw):
    rng = np.random.default_rng(draw)
    X, ridge = rng.standard_normal((60, 2)), 10.0**power
    rows = rng.choice(60, size, replace=False)
    estimate = leverage_scores(X, ridge=ridge, landmarks=sample_of(X, rows))
    exact = leverage_scores(X, gamma=GAMMA, ridge=ridge)
    assert np.all(estimate >= exact - 1e-9)


def test_points_that_are_no_rows_may_score_rows(X, rng):
    points = rng.standard_normal((20, 3))
    landmarks = select_landmarks(X, gamma=GAMMA, sampler=points)
    scores = leverage_scores(X, ridge=0.5, landmarks=landmarks)
    # As if the points were further rows.
    K = rbf_matrix(np.vstack([X, points]), GAMMA)
    expected = lemma_scores(K, np.arange(300, 320), np.ones(20), 0.5)[:300]
    np.testing.assert_allclose(scores, np.minimum(1, expected), rtol=1e-8)


@pytest.mark.parametrize("ridge", [1e-10, 1e-14, 1e-18, 1e-300])
def test_redundant_landmarks_and_a_ridge_below_rounding_still_give_scores(X, ridge):
    rows = np.concatenate([np.arange(100), np.arange(100)])
    smooth = sample_of(X, rows, kernel=RBF(0.01))
    scores = leverage_scores(X, ridge=ridge, landmarks=smooth)
    assert np.all((scores >= 0) & (scores <= 1))


# Rows with weights


def test_exact_scores_of_weighted_rows_are_those_of_the_weighted_matrix(X, rng):
    w = rng.uniform(0, 3, 300)
    scores = leverage_scores(X, gamma=GAMMA, ridge=1.0, sample_weight=w)
    K = np.sqrt(np.outer(w, w)) * rbf_matrix(X, GAMMA)
    np.testing.assert_allclose(scores, exact_scores(K, 1.0), rtol=1e-8, atol=1e-11)


def test_a_weight_of_w_is_w_copies_for_scores_from_a_sample(X, rng):
    w = rng.integers(1, 5, 300)
    first = np.concatenate([[0], np.cumsum(w)[:-1]])
    rows = rng.choice(300, 30, replace=False)
    weighted_rows = sample_of(X, rows)
    of_weighted = leverage_scores(
        X, ridge=5.0, landmarks=weighted_rows, sample_weight=w
    )
    copies = np.concatenate([first[i] + np.arange(w[i]) for i in rows])
    repeated = np.repeat(X, w, axis=0)
    of_copies = leverage_scores(
        repeated, ridge=5.0, landmarks=sample_of(repeated, copies)
    )
    expected = np.minimum(1, w * of_copies[first])
    np.testing.assert_allclose(of_weighted, expected, rtol=1e-8)


def test_rows_of_weight_0_have_score_0_and_do_not_change_the_others(X, rng):
    w = np.ones(300)
    w[:40] = 0
    scores = leverage_scores(X, gamma=GAMMA, ridge=1.0, sample_weight=w)
    assert np.all(scores[:40] == 0)
    rest = leverage_scores(X[40:], gamma=GAMMA, ridge=1.0)
    np.testing.assert_allclose(scores[40:], rest, rtol=1e-8)


# Precision


@pytest.fixture
def smooth32(rng):
    """float32 rows whose kernel is so smooth that little of k(x, x) is left over."""
    return rng.standard_normal((3000, 2)).astype(np.float32)


def test_float32_scores_agree_with_float64_where_rounding_is_above_the_residual(
    smooth32, rng
):
    rows = rng.choice(3000, 60, replace=False)
    landmarks = sample_of(smooth32, rows, kernel=RBF(0.01))
    wide = smooth32.astype(np.float64)
    reference = sample_of(wide, rows, kernel=RBF(0.01))
    for ridge in (1e-2, 1e-4, 1e-7):
        scores = leverage_scores(smooth32, ridge=ridge, landmarks=landmarks)
        expected = leverage_scores(wide, ridge=ridge, landmarks=reference)
        error = np.sqrt(np.mean((scores - expected) ** 2))
        # What is decided by 256 rows is a little more on all: 2 of 500 seeds had 0.04.
        assert error <= 3 * MAX_RESIDUAL_ERROR * expected.mean()


def test_residuals_that_float32_cannot_resolve_use_float64(smooth32):
    points, ridge = smooth32[:60], 1e-7
    K = RBF(0.01).gram(points)
    B = ridge_inverse_root(K, np.ones(60), ridge)
    columns, source = CrossKernel(RBF(0.01), points), as_source(smooth32)
    ready = prepare_residuals(columns, source, B)
    assert ready.widened
    done = residuals(ready, source, engine=Threads(1), name="residuals")
    expected = lemma_scores(
        rbf_matrix(smooth32.astype(np.float64), 0.01), np.arange(60), np.ones(60), ridge
    )
    np.testing.assert_allclose(done, ridge * expected, atol=1e-12)


def test_float32_is_kept_where_it_is_enough(smooth32):
    points = smooth32[:60]
    B = ridge_inverse_root(RBF(2.0).gram(points), np.ones(60), 1.0)
    columns, source = CrossKernel(RBF(2.0), points), as_source(smooth32)
    assert not prepare_residuals(columns, source, B).widened


def test_the_landmarks_say_which_levels_ran_in_float64(smooth32):
    landmarks = select_landmarks(
        smooth32, gamma=1e-4, n_landmarks=60, sampler="recursive", random_state=0
    )
    assert landmarks.notes == ("float64 scores on level 1, 0",)
    assert landmarks.notes[0] in str(landmarks)
    wide = select_landmarks(
        smooth32.astype(np.float64),
        gamma=1e-4,
        n_landmarks=60,
        sampler="recursive",
        random_state=0,
    )
    assert wide.notes == ()


def test_nothing_is_left_of_the_points_themselves(rng):
    """Not even rounding, which has either sign."""
    X = rng.standard_normal((60, 3))
    landmarks = sample_of(X, np.arange(60))
    source = as_source(X)
    unit = residual_rounding(np.float64, 60)
    root = landmarks.factor.root
    ready = prepare_residuals(landmarks.columns(), source, root, rounding=unit)
    left = residuals(ready, source, engine=Threads(1), name="residuals")
    np.testing.assert_array_equal(left, np.zeros(60))


def test_scores_stay_finite_also_beside_the_least_ridge():
    """Sums over many rows do so, too, and weights are not lost."""
    least = np.finfo(np.float64).tiny
    scores = residuals_to_scores(
        np.array([0.0, 1.0, 1e300]), np.array([1.0, 2.0, 3.0]), least
    )
    np.testing.assert_array_equal(scores[0], 0.0)
    assert np.isfinite(scores.sum() * 1e9)


def test_an_empty_sample_leaves_all_of_the_diagonal(X):
    columns, none = CrossKernel(Linear(), X[:0]), np.empty((0, 0))
    work = SamplingProblem(Linear(), as_source(X), 0, Threads(1), Ledger())
    ready = prepare_residuals(columns, work.source, none)
    left = work.residuals(ready, work.source, "residuals")
    np.testing.assert_allclose(left, np.sum(X**2, axis=1), rtol=1e-14)
    assert work.ledger.n_evaluations == 300


# Options, storage and weights

RIDGE, N_ROWS = 0.5, 300


# Landmarks


def test_1000_landmarks_by_default(rng):
    X = rng.standard_normal((1100, 2))
    assert len(select_landmarks(X, random_state=0, sampler="uniform")) == 1000


# Scores


def test_scores_from_landmarks_use_their_kernel(X):
    landmarks = select_landmarks(X, kernel="laplacian", n_landmarks=N_ROWS)
    scores = leverage_scores(X, ridge=RIDGE, landmarks=landmarks)
    expected = exact_scores(pairwise_kernels(X, metric="laplacian"), RIDGE)
    np.testing.assert_allclose(scores, expected, atol=1e-9)
