"""Kernel ridge regression on landmarks, against the dense formula and the paper."""

from __future__ import annotations

import math
import re
from contextlib import nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from oracles_ridge import (
    CUT,
    Dense,
    by_orthogonal_factor,
    features,
    in_sixty_digits,
    left_out_scores,
    linear_digits,
    polynomial_digits,
    rbf_digits,
    relative,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as gp_kernels
from sklearn.kernel_ridge import KernelRidge as ExactKernelRidge
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

from nystrom import (
    KernelCCA,
    KernelKMeans,
    KernelLogisticRegression,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeCV,
    Nystroem,
    kernels,
    select_landmarks,
)
from nystrom import _precision as precision
from nystrom._random import sorted_row_sample
from nystrom.engines import Threads
from nystrom.linalg import moments
from nystrom.linalg.conjugate_gradients import conjugate_gradients
from nystrom.linalg.cross_kernel import CrossKernel
from nystrom.linalg.errors import Guarantee
from nystrom.linalg.features import FeatureMap
from nystrom.models import ridge_solvers as fit
from nystrom.models.ridge import risk_bound
from nystrom.models.ridge_solvers import choose_solver
from nystrom.sources import as_source

pytestmark = pytest.mark.usefixtures("one_blas_thread")

GAMMA = 0.5
N_ROWS, N_NEW, N_LANDMARKS = 500, 60, 40
#: Relative error of predictions on well conditioned kernels: the direct solver is right
#: up to rounding times a condition number of some 10⁶; conjugate gradients stop at 1e-7
#: in the preconditioner's norm, and its condition number is a small constant.
ERROR = {"direct": 1e-8, "cg": 1e-6}

#: What is said of an alpha below rounding.
SMALL = r"alpha=\S+ is below the rounding.*Raise it to \S+ or more"

both_solvers = pytest.mark.parametrize("solver", ["direct", "cg"])
intercept_or_not = pytest.mark.parametrize("intercept", [False, True])


def rbf(X, Y):
    return rbf_kernel(X, Y, gamma=GAMMA)


@pytest.fixture
def X(rng):
    return rng.standard_normal((N_ROWS, 4))


@pytest.fixture
def X_new(X, rng):
    return rng.standard_normal((N_NEW, 4))


@pytest.fixture
def y(X, rng):
    return target_of(X, rng) + 2.0


@pytest.fixture
def Y(X, y, rng):
    return np.column_stack([y, np.cos(2 * X[:, 1]), rng.standard_normal(len(X))])


@pytest.fixture
def weights(rng):
    """A quarter of them 0."""
    return rng.integers(0, 4, N_ROWS) * 0.7


def target_of(X, rng, noise=0.1):
    return np.sin(X[:, 0]) + 0.3 * X[:, 1] ** 2 + noise * rng.standard_normal(len(X))


def ridge(alpha=0.1, seed=0, **options):
    options = {"kernel": "rbf", "gamma": GAMMA, "n_landmarks": N_LANDMARKS} | options
    return KernelRidge(alpha, random_state=seed, **options)


# Against the dense formula


@both_solvers
@intercept_or_not
@pytest.mark.parametrize("weighted", [False, True])
def test_predictions_are_those_of_the_dense_formula(
    X, X_new, y, weights, seed, solver, intercept, weighted
):
    w = weights if weighted else None
    model = ridge(seed=seed, solver=solver, fit_intercept=intercept).fit(X, y, w)
    assert model.solver_ == solver
    assert len(model.X_fit_) == N_LANDMARKS
    reference = Dense.of(rbf, X, model.X_fit_, X_new, w)
    expected = reference.predict(y, 0.1, intercept=intercept)
    assert model.predict(X_new).shape == (N_NEW,)
    assert relative(model.predict(X_new), expected) < ERROR[solver]


@both_solvers
@intercept_or_not
def test_every_target_has_its_own_alpha(X, X_new, Y, weights, seed, solver, intercept):
    alphas = [0.01, 10.0, 0.5]
    options = {"solver": solver, "fit_intercept": intercept}
    model = ridge(alphas, seed, **options).fit(X, Y, weights)
    found = model.predict(X_new)
    assert found.shape == (N_NEW, 3)
    assert model.dual_coef_.shape == (N_LANDMARKS, 3)
    reference = Dense.of(rbf, X, model.X_fit_, X_new, weights)
    for t, alpha in enumerate(alphas):
        expected = reference.predict(Y[:, t], alpha, intercept=intercept)
        assert relative(found[:, t], expected) < ERROR[solver]


@intercept_or_not
def test_one_target_of_several_may_be_least_squares(X, X_new, Y, seed, intercept):
    alphas = [0.5, 0.0, 10.0]
    together = ridge(alphas, seed, fit_intercept=intercept).fit(X, Y).predict(X_new)
    for t, alpha in enumerate(alphas):
        alone = ridge(alpha, seed, fit_intercept=intercept).fit(X, Y[:, t])
        assert relative(together[:, t], alone.predict(X_new)) < ERROR["direct"]


@both_solvers
def test_a_weight_of_two_is_the_row_twice_and_of_zero_is_none(
    X, X_new, y, seed, rng, solver
):
    counts = rng.integers(0, 3, N_ROWS)
    landmarks = np.flatnonzero(counts)[:N_LANDMARKS]
    options = {"solver": solver, "fit_intercept": True}
    weighted = ridge(sampler=landmarks, **options).fit(X, y, counts)
    copies = np.repeat(np.arange(N_ROWS), counts)
    first = np.searchsorted(copies, landmarks)
    repeated = ridge(sampler=first, **options).fit(X[copies], y[copies])
    np.testing.assert_array_equal(weighted.X_fit_, repeated.X_fit_)
    found, expected = weighted.predict(X_new), repeated.predict(X_new)
    assert relative(found, expected) < ERROR[solver]


def test_alpha_zero_is_least_squares_on_the_features(X, X_new, Y, weights, seed):
    model = ridge(0, seed).fit(X, Y, weights)
    assert model.solver_ == "direct"
    Z, Z_new = features(rbf, model.X_fit_, X, X_new)
    half = np.sqrt(weights)[:, None]
    theta = np.linalg.lstsq(half * Z, half * Y)[0]
    assert relative(model.predict(X_new), Z_new @ theta) < 1e-8


# Badly conditioned kernels


@dataclass(frozen=True)
class Case:
    """A kernel, in the estimator's words, in float64, and in sixty digits."""

    kernel: str
    parameters: dict
    digits: Any
    duplicates: bool = False
    #: In float64. The root waits until after the sum while rounding adds at most 1e-3 ·
    #: alpha to the Gram matrix: that shows in predictions where landmarks are nearly
    #: copies of each other.
    limit: float = 1e-6

    def __call__(self, X, Y):
        return self.evaluate(X, Y, **self.parameters)

    @property
    def evaluate(self):
        known = {"rbf": rbf_kernel, "poly": polynomial_kernel, "linear": linear_kernel}
        return known[self.kernel]


CUBIC = {"gamma": 0.1, "degree": 3, "coef0": 1}
BAD = {
    "smooth": Case("rbf", {"gamma": 1e-3}, rbf_digits),
    "very smooth": Case("rbf", {"gamma": 1e-4}, rbf_digits),
    "linear of low rank": Case("linear", {}, linear_digits),
    "cubic": Case("poly", CUBIC, polynomial_digits),
    "duplicates": Case("rbf", {"gamma": 1e-3}, rbf_digits, True, 1e-3),
}
ALPHA = 1e-4
#: Relative error of predictions on new rows. float32 kernel values serve as long as
#: their noise adds at most 4e-3 · alpha to the Gram matrix; beside the noise itself
#: there is its product with Z, and 1.5e-3 was seen in predictions. Where the fit is in
#: float64, predictions may still be in float32 while that changes them by 1e-4 on the
#: rows tried, and new rows are like these.
BAD_ERROR = {np.float64: 1e-6, np.float32: 3e-3}
ROUNDED = 2e-4

bad_cases = pytest.mark.parametrize("case", BAD.values(), ids=BAD)
both_precisions = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def rows_for(case, rng, n, n_landmarks, m=100):
    """Standardised rows, targets and new rows, all float32 numbers; the landmarks."""
    X = rng.standard_normal((n + m, 5))
    X = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32)
    sampler = "auto"
    if case.duplicates:
        half = n_landmarks // 2
        X[:half] = X[half : 2 * half]
        sampler = np.arange(n_landmarks)
    return X[:n], target_of(X[:n].astype(np.float64), rng), X[n:], sampler


def fitted(case, X, y, n_landmarks, sampler, seed, solver="direct"):
    model = KernelRidge(ALPHA, kernel=case.kernel, random_state=seed, **case.parameters)
    model.set_params(n_landmarks=n_landmarks, sampler=sampler, solver=solver)
    return model.fit(X, y)


def in_float64(model):
    return "kernel values in float64" in str(model.landmarks_)


def limit_of(case, model, dtype):
    if in_float64(model):
        return ROUNDED
    return case.limit if dtype == np.float64 else BAD_ERROR[dtype]


def reference(case, model, X, y, X_new):
    """Predictions with the model's landmarks by an orthogonal factorisation."""
    X, X_new = X.astype(np.float64), X_new.astype(np.float64)
    Z, Z_new = features(case, X[model.landmarks_.indices], X, X_new)
    return by_orthogonal_factor(Z, Z_new, y, ALPHA)


@bad_cases
def test_the_reference_and_all_solvers_against_sixty_digits(case, rng, seed):
    X, y, X_new, sampler = rows_for(case, rng, 200, 30)
    first = fitted(case, X.astype(np.float64), y, 30, sampler, seed)
    S = first.landmarks_.indices
    exact = in_sixty_digits(case.digits, X, X[S], X_new, y, ALPHA, **case.parameters)
    assert relative(reference(case, first, X, y, X_new), exact) < 1e-7
    for dtype in BAD_ERROR:
        for solver in ("direct", "cg"):
            model = fitted(case, X.astype(dtype), y, 30, S, seed, solver)
            found = model.predict(X_new.astype(dtype))
            assert found.dtype == dtype
            assert relative(found, exact) < limit_of(case, model, dtype)


@bad_cases
@both_solvers
@both_precisions
def test_badly_conditioned_kernels_with_many_rows(case, rng, seed, solver, dtype):
    X, y, X_new, sampler = rows_for(case, rng, 2000, 100)
    model = fitted(case, X.astype(dtype), y, 100, sampler, seed, solver)
    found = model.predict(X_new.astype(dtype))
    expected = reference(case, model, X, y, X_new)
    assert relative(found, expected) < limit_of(case, model, dtype)
    if solver == "cg":
        # The preconditioner is of drawn rows, not of all.
        assert (
            len(X)
            > (fit.UNIFORM_ROWS_PER_LANDMARK + fit.LEVERAGE_ROWS_PER_LANDMARK) * 100
        )
        assert model.n_iter_ < 40


@both_solvers
def test_an_intercept_leaves_residuals_without_a_mean(rng, seed, solver):
    """Σ w(y − ŷ) = 0 by the normal equations, however Z was made."""
    X = rng.standard_normal((1500, 2)) + 3.0
    y, w = 7.0 + X[:, 0] ** 2, rng.uniform(0.1, 3, 1500)
    for gamma, alpha, whitened in ((0.01, 1e-6, True), (1.0, 1.0, False)):
        model = ridge(alpha, seed, gamma=gamma, fit_intercept=True, solver=solver)
        left = y - model.fit(X, y, w).predict(X)
        source = as_source(X, w)
        mapping = FeatureMap.for_ridge(model.landmarks_, source, alpha, center=True)
        assert mapping.whiten is whitened
        assert abs(np.average(left, weights=w)) < 1e-6 * y.std()


def test_least_squares_with_dependent_columns_takes_the_smallest_solution(rng):
    """Columns that sum to 1 are dependent once their means are taken off."""
    for n in range(2000, 2010):
        X = np.eye(4)[rng.integers(0, 4, n)]
        y = X @ [1.0, 2.0, 3.0, 5.0] + 0.1 * rng.standard_normal(n)
        points = np.eye(4)
        model = KernelRidge(0.0, sampler=points, fit_intercept=True).fit(X, y)
        smallest = np.linalg.lstsq(X - X.mean(axis=0), y - y.mean(), rcond=1e-8)[0]
        np.testing.assert_allclose(points.T @ model.dual_coef_, smallest, atol=1e-8)


@pytest.mark.parametrize("n_landmarks", [60, 100, 200])
def test_noise_of_float32_values_far_from_the_centre_is_measured(n_landmarks, rng):
    """It grows with γ‖x − c‖²: three hundred times what it is near the centre."""
    X = rng.uniform(-25, 25, (3000, 1)).astype(np.float32)
    y, rows = np.sin(X[:, 0].astype(np.float64)), np.arange(n_landmarks)
    options = {"gamma": 1.0, "sampler": rows, "n_landmarks": n_landmarks}
    narrow, wide = (
        ridge(1.0, 0, **options).fit(X.astype(dtype), y)
        for dtype in (np.float32, np.float64)
    )
    expected = wide.predict(X.astype(np.float64))
    assert np.abs(narrow.predict(X) - expected).max() < 1e-3
    error, exact = narrow.approximation_error_, wide.approximation_error_
    np.testing.assert_allclose(error.value, exact.value, rtol=0.03)


def test_rows_that_are_all_alike_have_the_mean_and_nothing_else(rng):
    """About their mean they are rounding, which is no direction, also for alpha=0."""
    y = np.arange(99.0) % 3
    for entry in rng.uniform(1, 100, 100):
        X, w = np.full((99, 19), entry), rng.uniform(0.5, 2, 99)
        few = {"kernel": "poly", "gamma": 4e-5, "n_landmarks": 1}
        model = KernelRidge(0.0, fit_intercept=True, **few).fit(X, y, w)
        mean = np.average(y, weights=w)
        np.testing.assert_allclose(model.predict(X[:3]), mean, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:alpha=.* is below the rounding")
def test_rows_far_larger_than_the_probe_rows_are_noticed(rng, seed, monkeypatch):
    tried = sorted_row_sample(3000, precision.N_PROBE_ROWS)
    X = rng.standard_normal((3000, 3))
    y = target_of(X, rng)
    cubic = {"kernel": "poly", "gamma": 0.005, "degree": 3, "coef0": 1}
    model = ridge(0.1, sampler=tried[:8], solver="direct", n_jobs=1, **cubic)
    passes = []

    def seen(mapping, *rest):
        passes.append(mapping.whiten)
        return summed(mapping, *rest)

    summed = moments.moments
    monkeypatch.setattr(moments, "moments", seen)  # for passes that are made again
    monkeypatch.setattr(fit, "moments", seen)
    model.fit(X, y)
    assert passes == [False]
    passes.clear()
    X[np.setdiff1d(np.arange(3000), tried)[:3]] *= 30_000
    model.fit(X, y)
    assert passes == [False, True]


def small_clusters(rng, n=5000, n_clusters=12, size=8):
    """One large cluster, and small ones far away from it and from each other."""
    X = rng.standard_normal((n, 3))
    X[: n_clusters * size] *= 0.5
    X[: n_clusters * size, 0] += 10 * (1 + np.repeat(np.arange(n_clusters), size))
    return X, target_of(X, rng)


def test_rows_by_leverage_precondition_where_uniform_ones_do_not(rng, seed):
    X, y = small_clusters(rng)
    model = ridge(1e-3, seed, solver="cg", gamma=0.3, n_landmarks=120)
    assert model.fit(X, y).n_iter_ < 60


@pytest.mark.parametrize("weighted", [False, True], ids=["alike", "weighted"])
def test_drawn_rows_stand_for_all_rows(rng, seed, weighted):
    """Weights 1/p add up to n: within five standard errors over 40 draws.

    A tenth of the rows is drawn uniformly, so that none stands for more than ten times
    its share.
    """
    X, y = small_clusters(rng)
    w = rng.uniform(0.1, 4, len(X)) if weighted else None
    source, alpha, s = as_source(X, w).replace(targets=y[:, None]), 1e-3, 60
    landmarks = select_landmarks(X, gamma=0.3, n_landmarks=s, random_state=seed)
    mapping = FeatureMap.for_ridge(landmarks, source, alpha, center=False)
    wanted, own = fit.LEVERAGE_ROWS_PER_LANDMARK * s, source.weights
    share, totals = 0.1 * wanted * own / own.sum(), []
    for run in range(40 * seed, 40 * seed + 40):
        rows, weights = fit.sample_rows_by_leverage(
            mapping, source, alpha, Threads(1), run
        )
        assert abs(len(rows) - wanted) < 6 * math.sqrt(wanted)
        assert np.all(weights <= 1.001 / share[rows])
        totals.append(weights.sum())
    off = np.mean(totals) - len(X)
    assert abs(off) < 5 * np.std(totals) / math.sqrt(40)
    drawn = fit._weighted_gram(mapping, source, rows, weights, Threads(1))
    plain = fit._weighted_gram(mapping, source, rows, np.ones(len(rows)), Threads(1))
    assert np.trace(drawn) > 3 * np.trace(plain)


def test_no_bound_on_the_risk_where_epsilon_would_be_1_or_more():
    """The theorem is for ε < 1."""
    guarantee = Guarantee(2.0, 0.97)
    assert risk_bound(2.0, None, guarantee) is None
    assert risk_bound(2.0, 2.0, None) is None
    assert risk_bound(4.0, None, guarantee).factor == pytest.approx(1 + 3 / 2)
    assert risk_bound(4.0, 1.0, guarantee).factor == pytest.approx(1 + 3 / 4)


def test_conjugate_gradients_that_do_not_converge_say_so(X, y, monkeypatch):
    monkeypatch.setattr(fit, "MAX_CG_ITERATIONS", 2)
    with pytest.warns(ConvergenceWarning, match="solver='direct'"):
        model = ridge(1e-3, solver="cg").fit(X, y)
    assert model.n_iter_ == 2


@pytest.mark.parametrize("curvature", [1e-13, 0.0, 1e-300])
def test_conjugate_gradients_keep_the_best_where_steps_are_rounding(rng, curvature):
    """From the third step on, products are noise: a step by them leads far away."""
    A, b = np.diag([1.0, 10.0, 1e2, 1e3]), rng.standard_normal((4, 2))
    n_calls = []

    def times(V):
        n_calls.append(1)
        if len(n_calls) < 3:
            return A @ V
        noise = rng.standard_normal(V.shape)
        noise -= V * (np.sum(V * noise, axis=0) / np.sum(V * V, axis=0))
        return noise + curvature * V

    found = conjugate_gradients(times, b, lambda V: V, rtol=1e-7, max_iterations=100)
    assert not found.converged
    left = np.linalg.norm(b - A @ found.x, axis=0)
    assert np.all(left <= np.linalg.norm(b, axis=0))


@pytest.mark.parametrize("solver", ["direct", "cg"])
def test_an_alpha_below_rounding_with_a_singular_gram_matrix(rng, seed, solver):
    # Columns that sum to 1 are dependent once their means are taken off; whether a
    # Cholesky factor exists is then chance, so a few are tried.
    for n in range(2000, 2020):
        X = np.eye(4)[rng.integers(0, 4, n)]
        y = X @ [1.0, 2.0, 3.0, 4.0] + 0.1 * rng.standard_normal(n)
        model = ridge(1e-20, seed, kernel="linear", fit_intercept=True, solver=solver)
        told = pytest.warns(UserWarning, match=SMALL)
        with told if solver == "direct" else nullcontext():
            model.fit(X, y)
        means = [y[X[:, j] == 1].mean() for j in range(4)]
        np.testing.assert_allclose(model.predict(np.eye(4)), means, rtol=1e-6)


# The paper's theorem on the risk


def risk(K, z, alpha, noise):
    """bias² + variance of K(K + αI)⁻¹y for y = z + independent noise."""
    values, vectors = np.linalg.eigh(K)
    values = np.maximum(values, 0)
    bias = alpha / (values + alpha) * (vectors.T @ z)
    return bias @ bias + noise**2 * np.sum((values / (values + alpha)) ** 2)


def nystrom_matrix(K, S):
    values, U = np.linalg.eigh(K[np.ix_(S, S)])
    kept = values > CUT * values.max()
    Z = K[:, S] @ U[:, kept] / np.sqrt(values[kept])
    return Z @ Z.T


def gaussian_rows(rng, n):
    return rng.standard_normal((n, 3))


def few_far_rows(rng, n):
    """One in twenty is alone."""
    X = 0.5 * rng.standard_normal((n, 3))
    X[: n // 20] += 20 * rng.standard_normal((n // 20, 3))
    return X


def curve(rng, n):
    t = rng.uniform(0, 6, n)
    return np.column_stack([np.cos(3 * t), np.sin(3 * t), t])


DATA_SETS = [gaussian_rows, few_far_rows, curve]
NOISE = 0.3
#: Wide enough that the landmarks needed are far fewer than the rows.
WIDE = 0.1


def rows_and_truth(make, rng, n=300):
    X = make(rng, n)
    return X, np.sin(X[:, 0]) + 2 * np.cos(X[:, 2])


@pytest.mark.parametrize("make", DATA_SETS)
@pytest.mark.parametrize(("alpha", "epsilon"), [(0.5, 0.5), (2.0, 0.1)])
def test_epsilon_bounds_the_risk(make, rng, seed, alpha, epsilon):
    X, z = rows_and_truth(make, rng)
    y = z + NOISE * rng.standard_normal(len(z))
    K = rbf_kernel(X, gamma=WIDE)
    exact = risk(K, z, alpha, NOISE)
    for other in range(20 * seed, 20 * (seed + 1)):
        model = ridge(alpha, other, gamma=WIDE, epsilon=epsilon, n_landmarks=None)
        S = model.fit(X, y).landmarks_.indices
        assert len(S) < 0.8 * len(X)
        found = risk(nystrom_matrix(K, S), z, alpha, NOISE)
        assert found <= (1 + 3 * epsilon) * exact


def test_delta_proves_the_bound_on_the_risk(rng, seed):
    # A large alpha, so that the theory's constants do not take every row.
    X = 0.3 * rng.standard_normal((800, 2))
    z = np.sin(6 * X[:, 0])
    alpha, epsilon, delta = 500.0, 0.5, 0.03
    K = rbf(X, X)
    exact = risk(K, z, alpha, NOISE)
    for other in range(3 * seed, 3 * (seed + 1)):
        model = ridge(alpha, other, epsilon=epsilon, delta=delta, n_landmarks=None)
        S = model.fit(X, z).landmarks_.indices
        assert len(S) < len(X) / 2
        guarantee = model.landmarks_.guarantee
        assert guarantee.ridge == pytest.approx(epsilon * alpha)
        assert guarantee.probability >= 1 - 3 * delta
        assert risk(nystrom_matrix(K, S), z, alpha, NOISE) <= 2.5 * exact
        assert model.risk_bound_.factor <= 2.5


def test_after_conjugate_gradients_delta_alone_gives_the_bound(rng, seed):
    X = 0.3 * rng.standard_normal((1200, 2))
    options = {"epsilon": 0.5, "n_landmarks": None, "solver": "cg"}
    model = ridge(600.0, seed, delta=0.03, **options).fit(X, X[:, 0])
    bound = model.risk_bound_
    assert bound.factor == pytest.approx(2.5)
    assert bound.probability == model.landmarks_.guarantee.probability < 1
    assert "Algorithm 2" in str(bound)
    assert ridge(600.0, seed, **options).fit(X, X[:, 0]).risk_bound_ is None


@pytest.mark.parametrize("make", DATA_SETS)
def test_the_risk_bound_holds_wherever_there_is_one(make, rng, seed):
    X, z = rows_and_truth(make, rng)
    K = rbf_kernel(X, gamma=WIDE)
    n_bounds = 0
    for n_landmarks in (5, 40, 120):
        for alpha in (0.01, 1.0, 30.0):
            model = ridge(alpha, seed, n_landmarks=n_landmarks, gamma=WIDE).fit(X, z)
            bound = model.risk_bound_
            if bound is None:
                continue
            n_bounds += 1
            approximate = nystrom_matrix(K, model.landmarks_.indices)
            found = risk(approximate, z, alpha, NOISE)
            exact = risk(K, z, alpha, NOISE)
            assert found <= bound.factor * exact * (1 + 1e-9)
            assert bound.probability == 1
            assert "trace error" in bound.reason
            left = np.trace(K - approximate)
            # The bound allows for what rounding may hide, alpha/1000 a direction.
            # The dense K̃ of this test is itself right to about 1e-12.
            assert -1e-8 <= bound.factor - 1 - 3 * left / alpha <= 0.03
    assert 2 <= n_bounds <= 8


def test_the_risk_bound_is_not_too_small_by_rounding():
    # Which way it rounds is chance: several data sets, the same in every run.
    for seed in range(4):
        X, z = rows_and_truth(gaussian_rows, np.random.default_rng(seed))
        K = rbf_kernel(X, gamma=WIDE)
        for n_landmarks in range(80, 200, 20):
            model = ridge(1.0, seed, n_landmarks=n_landmarks, gamma=WIDE).fit(X, z)
            left = np.trace(K - nystrom_matrix(K, model.landmarks_.indices))
            assert model.risk_bound_.factor >= 1 + 3 * left - 1e-8


def test_there_is_no_risk_bound_with_an_intercept_or_weights(X, y, weights, seed):
    model = ridge(50.0, seed, n_landmarks=350)
    assert model.fit(X, y).risk_bound_ is not None
    assert model.fit(X, y, weights).risk_bound_ is None
    assert model.set_params(fit_intercept=True).fit(X, y).risk_bound_ is None


def test_the_risk_bound_of_the_exact_solution_is_one(X, y):
    bound = ridge(n_landmarks=N_ROWS).fit(X, y).risk_bound_
    assert bound.factor == 1
    assert "exact" in str(bound)


# epsilon that cannot be had


@pytest.mark.parametrize("limit", [5, 150])
def test_too_few_landmarks_for_epsilon_are_an_error_with_numbers(X, y, seed, limit):
    model = ridge(0.05, seed, epsilon=0.2, n_landmarks=limit)
    with pytest.raises(ValueError, match=r"epsilon=0\.2 takes") as error:
        model.fit(X, y)
    message = str(error.value)
    assert f"more than n_landmarks={limit}." in message
    wanted = int(message.split(" landmarks, ")[0].split()[-1])
    assert limit < wanted <= N_ROWS


# Predictive deviations


@intercept_or_not
@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_deviations_are_those_of_the_dense_formula(
    X, X_new, Y, weights, seed, intercept, noise, weighted
):
    alphas = [0.05, 2.0, 0.05]
    X, Y, w = X[:250], Y[:250], weights[:250] if weighted else None
    model = ridge(alphas, seed, fit_intercept=intercept, solver="direct").fit(X, Y, w)
    mean, std = model.predict(X_new, return_std=True, noise=noise)
    assert std.shape == mean.shape == (N_NEW, 3)
    np.testing.assert_array_equal(mean, model.predict(X_new))
    reference = Dense.of(rbf, X, model.X_fit_, X_new, w)
    landmarks = model.landmarks_.indices
    for t, alpha in enumerate(alphas):
        scores = left_out_scores(rbf, X, landmarks, Y[:, t], alpha, w, intercept)
        options = {"intercept": intercept, "noise": noise}
        options["scale"] = np.average(scores**2, weights=w if w is None else w[w > 0])
        expected = reference.deviation(Y[:, t], alpha, **options)
        np.testing.assert_allclose(std[:, t], expected, rtol=1e-6)


@pytest.mark.parametrize("coverage", [0.5, 0.95])
@pytest.mark.parametrize("mode", ["exact", "landmarks"])
def test_intervals_hold_the_share_of_rows_left_out_that_is_asked_for(
    X, X_new, y, seed, mode, coverage
):
    n = 100 if mode == "exact" else N_ROWS
    X, y = X[:n], y[:n]
    size = n if mode == "exact" else N_LANDMARKS
    model = ridge(0.2, seed, n_landmarks=size, solver="direct").fit(X, y)
    lower, upper = model.predict(X_new, interval=coverage)
    mean, std = model.predict(X_new, return_std=True, noise=True)
    np.testing.assert_allclose((lower + upper) / 2, mean, atol=1e-12)
    landmarks = np.arange(n) if mode == "exact" else model.landmarks_.indices
    scores = left_out_scores(rbf, X, landmarks, y, 0.2)
    scores = np.sort(np.abs(scores)) / np.sqrt(np.mean(scores**2))
    quantile = scores[math.ceil((len(scores) + 1) * coverage) - 1]
    np.testing.assert_allclose((upper - lower) / 2, quantile * std, rtol=1e-5)


@pytest.mark.parametrize("n_rows", [60, 1020])
def test_intervals_hold_with_as_many_landmarks_as_rows(n_rows):
    """Noise that grows, where only the rows far apart from others are landmarks."""
    shares, square = [], []
    for seed in range(300 // n_rows + 1):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n_rows + 1000, 3))
        y = np.sin(2 * X[:, 0]) + np.abs(X[:, 1]) * rng.standard_normal(len(X))
        model = KernelRidgeCV([1.0], gamma=0.3, n_landmarks=900, random_state=seed)
        model.fit(X[:n_rows], y[:n_rows])
        lower, upper = model.predict(X[n_rows:], interval=0.9)
        shares.append(np.mean((lower <= y[n_rows:]) & (y[n_rows:] <= upper)))
        mean, std = model.predict(X[n_rows:], return_std=True, noise=True)
        square.append(np.mean(((y[n_rows:] - mean) / std) ** 2))
    assert 0.84 < np.mean(shares) < 0.96
    assert 0.6 < np.mean(square) < 1.6  # 60 rows have outliers of their own, or none


@pytest.mark.parametrize("mode", ["exact", "landmarks"])
def test_intervals_are_of_rows_by_their_weights(mode, rng):
    """Half of the rows have a tenth of the weight, and ten times the noise."""
    X = rng.uniform(-3, 3, (600, 1))
    is_noisy = rng.random(600) < 0.5
    y = np.sin(X[:, 0]) + np.where(is_noisy, 2.0, 0.2) * rng.standard_normal(600)
    n_landmarks = 600 if mode == "exact" else 20
    model = ridge(1.0, n_landmarks=n_landmarks).fit(X, y, np.where(is_noisy, 0.1, 1.0))
    lower, upper = model.predict(X, interval=0.8)
    inside = (lower <= y) & (y <= upper)
    weights = np.where(is_noisy, 0.1, 1.0)
    assert abs(np.average(inside, weights=weights) - 0.8) < 0.05
    assert np.mean(inside) < 0.6


@pytest.mark.parametrize("mode", ["exact", "landmarks"])
@pytest.mark.parametrize("constant", [0.0, 0.1, 585.6448473, 1e9])
def test_a_target_fitted_exactly_changes_no_other(X, X_new, y, seed, mode, constant):
    n = 100 if mode == "exact" else N_ROWS
    model = ridge(0.2, seed, n_landmarks=n if mode == "exact" else N_LANDMARKS)
    model.set_params(fit_intercept=constant > 0)
    X, y = X[:n], y[:n]
    Y = np.column_stack([np.full(n, constant), y])
    expected = model.fit(X, y).predict(X_new, interval=0.9)
    _, std = model.predict(X_new, return_std=True)
    found = model.fit(X, Y).predict(X_new, interval=0.9)
    for end, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(end[:, 1], other, rtol=1e-7)
        np.testing.assert_allclose(end[:, 0], constant, rtol=1e-7)
    np.testing.assert_allclose(model.predict(X_new, return_std=True)[1][:, 1], std)


def test_intervals_cover_new_targets(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (6000, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_t(4, 6000)  # tails heavier than normal
    model = KernelRidge(
        3.0, kernel="rbf", gamma=1.0, n_landmarks=100, random_state=seed
    )
    model.fit(X[:3000], y[:3000])
    for coverage in (0.5, 0.9, 0.99):
        lower, upper = model.predict(X[3000:], interval=coverage)
        share = np.mean((lower <= y[3000:]) & (y[3000:] <= upper))
        # Deviations of the share here and of the quantile of 2000 rows there: 5 in all.
        assert abs(share - coverage) < 5 * np.sqrt(coverage * (1 - coverage) / 1200)
    _, std = model.predict(X[3000:], return_std=True, noise=True)
    residuals = (y[3000:] - model.predict(X[3000:])) / std
    assert 0.85 < np.sqrt(np.mean(residuals**2)) < 1.15


def test_deviations_and_intervals_say_what_they_need(X, y):
    std, few = {"return_std": True}, {"n_landmarks": 20}
    for model, n_rows, given, words in (
        *((ridge(), N_ROWS, {"interval": v}, "interval") for v in (0, 1, "0.9", True)),
        (ridge(**few), 9, {"interval": 0.9}, "more rows"),
        (ridge(), 9, {"interval": 0.9}, "more rows"),
        (ridge(**few), 50, {"interval": 0.99}, r"at most 0\.9804"),
        (ridge(sampler="uniform"), N_ROWS, {"interval": 0.9999}, r"at most 0\.998"),
        (ridge(solver="full"), N_ROWS, {"interval": 0.9}, "solver='direct'"),
        (ridge(), N_ROWS, std | {"interval": 0.9}, "return_std"),
        (ridge(solver="cg"), N_ROWS, std, "solver='direct'"),
        (ridge(0), N_ROWS, std, "alpha > 0"),
        (ridge(0), 30, std, "alpha > 0"),
    ):
        model.fit(X[:n_rows], y[:n_rows])
        with pytest.raises((ValueError, TypeError), match=words):
            model.predict(X, **given)


@pytest.mark.parametrize("alpha", [1.0, 0.01])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_float32_loses_of_rows_that_are_no_landmarks_counts(seed, alpha, weighted):
    """Near-copies among the landmarks say nothing of each other, and much of others."""
    rng = np.random.default_rng(seed)
    n, m = 1000, 40
    X = rng.standard_normal((m, 3))[np.arange(n) % m]
    X = (X + 5e-6 * rng.standard_normal((n, 3))).astype(np.float32)
    y = target_of(X, rng)
    w = rng.uniform(0.5, 2.0, n) if weighted else None
    twice = np.concatenate([np.arange(m // 2), m + np.arange(m // 2)])
    model = ridge(alpha, n_landmarks=m, sampler=twice)
    found = model.fit(X, y, w).predict(X)
    expected = model.fit(X.astype(np.float64), y, w).predict(X.astype(np.float64))
    assert relative(found, expected) < 1e-3


# White noise of Gaussian-process kernels counts as alpha

SIGNAL = gp_kernels.ConstantKernel(2.0) * gp_kernels.RBF(1.2)
#: The same process in several ways to write it: noise of variance 0.02.
NOISY = [
    SIGNAL + gp_kernels.WhiteKernel(0.02),
    gp_kernels.WhiteKernel(0.02) + SIGNAL,
    (gp_kernels.WhiteKernel(0.005) + SIGNAL) + gp_kernels.WhiteKernel(0.015),
]
AWAY = [
    gp_kernels.WhiteKernel(0.1),
    2.0 * (gp_kernels.RBF(1.2) + gp_kernels.WhiteKernel(0.01)),
    (SIGNAL + gp_kernels.WhiteKernel(0.1)) * gp_kernels.DotProduct(),
    (SIGNAL + gp_kernels.WhiteKernel(0.1)) ** 2,
    gp_kernels.CompoundKernel([SIGNAL, gp_kernels.WhiteKernel(0.1)]),
]


@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("solver", ["exact", "direct", "full"])
@pytest.mark.parametrize("kernel", NOISY, ids=str)
def test_white_noise_is_that_of_the_gaussian_process(
    X, X_new, y, kernel, solver, noise
):
    n, alpha = 150, 1e-3
    X, y = X[:n], y[:n]
    options = {"n_landmarks": n}
    if solver != "exact":
        options |= {"sampler": np.arange(n), "solver": solver}
    model = KernelRidge(alpha, kernel=kernel, **options).fit(X, y)
    assert model.solver_ == solver
    mean, std = model.predict(X_new, return_std=True, noise=noise)
    theirs = GaussianProcessRegressor(kernel, alpha=alpha, optimizer=None).fit(X, y)
    their_mean, their_std = theirs.predict(X_new, return_std=True)
    error = 1e-4 if solver == "full" else 1e-6
    assert relative(mean, their_mean) < error
    # k(x, x) has the white noise in it there too; alpha is added by noise=True.
    inverse = np.linalg.inv(kernel(X) + alpha * np.eye(n))
    scale = y @ inverse @ y / n
    if solver != "full":  # which leaves no row out
        scale = np.mean((inverse @ y) ** 2 / np.diag(inverse))
    expected = np.sqrt(scale * (their_std**2 + alpha * noise))
    np.testing.assert_allclose(std, expected, rtol=error)
    both = np.empty((N_NEW, 2))
    model.predict(X_new, return_std=True, noise=noise, out=both)
    np.testing.assert_allclose(both, np.column_stack([mean, std]), rtol=error)


def test_a_stream_and_classes_have_white_noise_as_alpha(X, X_new, y, seed):
    plain = {"kernel": SIGNAL, "n_landmarks": N_LANDMARKS, "random_state": seed}
    noisy = plain | {"kernel": NOISY[0]}
    stream, expected = KernelRidge(0.01, **noisy), KernelRidge(0.03, **plain)
    for rows in (slice(0, 300), slice(300, None)):
        stream.partial_fit(X[rows], y[rows])
        expected.partial_fit(X[rows], y[rows])
    np.testing.assert_array_equal(stream.predict(X_new), expected.predict(X_new))
    labels = y > 2
    found = KernelRidgeClassifier(0.01, **noisy).fit(X, labels)
    expected = KernelRidgeClassifier(0.03, **plain).fit(X, labels)
    np.testing.assert_array_equal(
        found.predict_proba(X_new), expected.predict_proba(X_new)
    )


def test_landmarks_for_a_risk_know_the_white_noise(X, y, seed):
    options = {"epsilon": 0.5, "n_landmarks": None, "random_state": seed}
    found = KernelRidge(0.0, kernel=NOISY[0], **options).fit(X, y)
    expected = KernelRidge(0.02, kernel=SIGNAL, **options).fit(X, y)
    np.testing.assert_array_equal(found.landmarks_.indices, expected.landmarks_.indices)


@pytest.mark.parametrize("kernel", AWAY, ids=str)
def test_white_noise_that_is_no_term_of_a_sum_is_refused(X, y, kernel):
    with pytest.raises(ValueError, match=r"cannot be moved to alpha\. Write"):
        KernelRidge(0.1, kernel=kernel).fit(X, y)


@pytest.mark.parametrize(
    "estimator",
    [Nystroem, KernelPCA, KernelKMeans, KernelCCA, KernelLogisticRegression],
)
@pytest.mark.parametrize("blocks", [False, True])
def test_without_a_ridge_white_noise_is_refused_with_what_to_do(
    X, y, estimator, blocks
):
    kernel = kernels.blockwise(NOISY[0]) if blocks else NOISY[0]
    targets = X[:, :2] if estimator is KernelCCA else y > 2
    with pytest.raises(ValueError, match=r"white noise.*Remove it: kernel=1\.41"):
        estimator(kernel=kernel).fit(X, targets)


def test_deviations_of_float32_rows_where_alpha_needs_float64(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (1500, 2)).astype(np.float32)
    X_new = rng.uniform(-3, 3, (100, 2)).astype(np.float32)
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(1500)
    model = KernelRidge(0.01, kernel="rbf", gamma=1.0, random_state=seed).fit(X, y)
    assert model.landmarks_.notes == ("kernel values in float64 for this alpha",)
    found = model.predict(X_new, return_std=True)[1]
    X, X_new = X.astype(np.float64), X_new.astype(np.float64)
    K, across = rbf_kernel(X, gamma=1.0), rbf_kernel(X_new, X, gamma=1.0)
    K[np.diag_indices(1500)] += 0.01
    left = 1 - np.einsum("mn,nm->m", across, np.linalg.solve(K, across.T))
    model_scale = model._model.posterior.scales[0]  # by rows left out
    scale = y @ np.linalg.solve(K, y) / 1500
    assert 0.3 < model_scale / scale < 1.1
    scale = model_scale
    np.testing.assert_allclose(found, np.sqrt(scale * left), rtol=1e-3)
    both = np.empty((100, 2))
    model.predict(X_new.astype(np.float32), return_std=True, out=both)
    np.testing.assert_allclose(both[:, 1], np.sqrt(scale * left), rtol=1e-3)


@intercept_or_not
@pytest.mark.parametrize("mode", ["exact", "landmarks"])
def test_far_away_the_deviation_is_that_of_the_prior(X, y, seed, mode, intercept):
    X, y = X[:100], y[:100]
    n_landmarks = len(X) if mode == "exact" else N_LANDMARKS
    model = ridge(seed=seed, n_landmarks=n_landmarks, fit_intercept=intercept)
    model.fit(X, y)
    far = np.full((1, 4), 100.0)
    reference = Dense.of(rbf, X, model.X_fit_, far)
    _, std = model.predict(far, return_std=True)
    landmarks = model.landmarks_.indices
    landmarks = np.arange(len(X)) if landmarks is None else landmarks
    scores = left_out_scores(rbf, X, landmarks, y, 0.1, intercept=intercept)
    scale = np.mean(scores**2)
    if not intercept:
        assert std[0] == pytest.approx(math.sqrt(scale), rel=1e-6)
    else:  # and that of the constant
        assert std[0] > math.sqrt(scale)
        expected = reference.deviation(y, 0.1, intercept=True, scale=scale)[0]
        assert std[0] == pytest.approx(expected, rel=1e-6)


# Few rows: scikit-learn's own solution


def dot_plus_one(x, y):
    return float(x @ y) + 1.0


EXACT = {
    "rbf": {"kernel": "rbf", "gamma": 0.3},
    "rbf by default": {"kernel": "rbf"},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 0.5},
    "laplacian": {"kernel": "laplacian", "gamma": 0.2},
    "linear": {},
    "callable": {"kernel": dot_plus_one},
}


@pytest.mark.parametrize("options", EXACT.values(), ids=EXACT)
@pytest.mark.parametrize("weighted", [False, True])
def test_few_rows_give_the_answer_of_scikit_learn(
    X, X_new, Y, weights, options, weighted
):
    X, Y, w = X[:80], Y[:80], weights[:80] if weighted else None
    for target, alpha in ((Y[:, 0], 0.3), (Y, [0.1, 1.0, 10.0]), (Y, 0.5)):
        ours = KernelRidge(alpha, **options).fit(X, target, w)
        theirs = ExactKernelRidge(alpha, **options).fit(X, target, w)
        assert ours.solver_ == "exact"
        assert ours.n_iter_ is None
        assert ours.intercept_ == 0
        assert float(ours.approximation_error_) == 0
        np.testing.assert_array_equal(ours.X_fit_, theirs.X_fit_)
        assert ours.dual_coef_.shape == theirs.dual_coef_.shape
        np.testing.assert_allclose(
            ours.dual_coef_, theirs.dual_coef_, rtol=1e-7, atol=1e-9
        )
        expected = theirs.predict(X_new)
        np.testing.assert_allclose(ours.predict(X_new), expected, rtol=1e-8, atol=1e-9)


def test_one_row_more_than_landmarks_is_not_exact(X, y):
    model = ridge(n_landmarks=80)
    assert model.fit(X[:80], y[:80]).solver_ == "exact"
    assert model.fit(X[:81], y[:81]).solver_ == "direct"
    assert len(model.X_fit_) == 80


# Which solver


def problem(
    n_landmarks, *, n=100_000, d=10, kernel=None, dtype=np.float64, alpha=1.0,
    whiten=False,
):  # fmt: skip
    """What the choice looks at."""
    mapping = SimpleNamespace(
        columns=CrossKernel(kernel or kernels.RBF(1.0), np.zeros((1, d), dtype)),
        shift=np.zeros(n_landmarks),
        alpha=alpha,
        whiten=whiten,
    )
    return mapping, SimpleNamespace(n_rows=n, n_features=d)


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_few_landmarks_are_solved_directly_and_many_by_steps(whiten, dtype):
    options = {"whiten": whiten, "dtype": dtype}
    assert choose_solver(*problem(200, **options)) == "direct"
    assert choose_solver(*problem(20_000, n=10**6, **options)) == "cg"


def test_costly_evaluations_favour_the_direct_solver():
    """Every step makes the kernel values anew."""

    def count(**options):
        sizes = range(2000, 40_000, 1000)
        chosen = [choose_solver(*problem(s, n=10**7, **options)) for s in sizes]
        return chosen.count("cg")

    assert count(d=1000) < count(d=100) < count(d=10)
    assert count(dtype=np.float64) < count(dtype=np.float32)


def test_few_rows_for_each_landmark_are_solved_directly():
    """Rows that stand for all in the preconditioner would be nearly all of them."""
    assert choose_solver(*problem(20_000, n=10**6)) == "cg"
    assert choose_solver(*problem(20_000, n=100_000)) == "direct"


# Memory


@pytest.mark.filterwarnings("ignore:Singular matrix in solving dual problem")
@pytest.mark.parametrize("n_landmarks", [200, N_ROWS])
def test_an_alpha_below_rounding_warns(X, y, seed, n_landmarks):
    """Beside eigenvalues that are rounding too; it changes nothing beside others."""
    smooth = {"gamma": 0.001, "n_landmarks": n_landmarks}
    with pytest.warns(UserWarning, match=SMALL) as caught:
        ridge(1e-15, seed, **smooth).fit(X, y)
    told = " ".join(str(warning.message) for warning in caught)
    least = float(re.search(r"Raise it to (\S+)", told)[1])
    assert 1e-14 < least < 1e-11
    ridge(1.1 * least, seed, **smooth).fit(X, y)  # warnings are errors here
    ridge(0.0, seed, **smooth).fit(X, y)
    ridge(1e-15, seed, gamma=0.1).fit(X, y)


@pytest.mark.filterwarnings("ignore:alpha=.* is below the rounding")
@intercept_or_not
def test_an_alpha_below_rounding_solves_for_no_noise(intercept):
    # Weights up to 1e30 make it so. A factor of the Gram matrix may exist, by chance,
    # and did in most of these.
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((60, 3)), rng.standard_normal(60)
        w = 10.0 ** rng.uniform(-30, 30, 60)
        model = KernelRidge(1e-5, kernel="rbf", gamma=0.01, fit_intercept=intercept)
        model.set_params(n_landmarks=30, random_state=0).fit(X, y, w)
        mean = np.average(y, weights=w) if intercept else 0.0
        reached, constant = ((y - p) ** 2 for p in (model.predict(X), mean))
        assert w @ reached <= 1.01 * (w @ constant)


@pytest.mark.parametrize("alpha", [1.0, 1e3, 1e6])
def test_a_large_alpha_does_not_blur_the_reported_error(alpha):
    # All rows are landmarks, near each other. The Gram matrix of their kernel values,
    # not whitened, is right beside such an alpha, and off by a thousandth of tr K.
    for seed in range(10):
        X = 5e-3 * np.random.default_rng(seed).standard_normal((10, 1))
        model = KernelRidge(alpha, kernel="matern52", fit_intercept=True)
        error = model.fit(X, X[:, 0]).approximation_error_
        assert error.exact
        assert error.value < 1e-6
