"""KernelRidgeCV: every score against fits written out in dense NumPy."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as gp_kernels
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit, TimeSeriesSplit
from test_samplers_contract import Counted

from nystrom import KernelRidge, KernelRidgeCV, engines, kernels
from nystrom._precision import EPS64, N_PROBE_ROWS
from nystrom.estimators._search import random_folds
from nystrom.models.ridge import NormalEquations

N_ROWS, N_LANDMARKS, GAMMA = 150, 18, 0.3
ALPHAS = np.array([1e-3, 0.1, 3.0])

#: Grids here are narrow, and what is best is mostly at their ends.
pytestmark = pytest.mark.filterwarnings("ignore:The best of (alphas|gammas)")

with_and_without_intercept = pytest.mark.parametrize("intercept", [False, True])


@pytest.fixture
def X(rng):
    return rng.standard_normal((N_ROWS, 3))


@pytest.fixture
def Y(X, rng):
    """A smooth target far from 0, with a trend over the rows, and a noisy one."""
    noise = rng.standard_normal((2, N_ROWS))
    trend = np.linspace(0, 2, N_ROWS)
    smooth = 5 + trend + np.sin(2 * X[:, 0]) + 0.1 * noise[0]
    return np.column_stack([smooth, X[:, 1] + noise[1]])


@pytest.fixture
def weights(rng):
    """From 0 to 4, some of them 0."""
    return np.where(rng.random(N_ROWS) < 0.2, 0.0, rng.uniform(0, 4, N_ROWS))


def model(seed, alphas=ALPHAS, **options):
    options = {"kernel": "rbf", "gamma": GAMMA, "n_landmarks": N_LANDMARKS} | options
    return KernelRidgeCV(alphas, alpha_per_target=True, random_state=seed, **options)


# The reference


def features(fitted, X, gamma=GAMMA):
    """Z with ZZᵀ = K_S K_SS⁺ K_Sᵀ in float64, for the landmarks of a fit."""
    X = np.asarray(X, dtype=np.float64)
    S = X[fitted.landmarks_.indices]
    values, vectors = np.linalg.eigh(rbf_kernel(S, gamma=gamma))
    kept = values > 1e-13 * len(S)
    return rbf_kernel(X, S, gamma=gamma) @ (vectors[:, kept] / np.sqrt(values[kept]))


def refitted(Z, Y, w, alpha, intercept):
    """Predictions of weighted ridge regression on the rows of Z."""
    z, y = np.zeros(Z.shape[1]), np.zeros(Y.shape[1])
    if intercept:
        z, y = np.average(Z, axis=0, weights=w), np.average(Y, axis=0, weights=w)
    G = (Z - z).T @ (w[:, None] * (Z - z)) + alpha * np.eye(Z.shape[1])
    coef = np.linalg.solve(G, (Z - z).T @ (w[:, None] * (Y - y)))
    return lambda new: (new - z) @ coef + y


def scores_of_splits(Z, Y, w, splits, intercept, alphas=ALPHAS):
    """(a, t): minus the mean over splits of the weighted squared error on test rows."""
    by_split = []
    for train, test in splits:
        by_alpha = []
        for alpha in alphas:
            predict = refitted(Z[train], Y[train], w[train], alpha, intercept)
            errors = (Y[test] - predict(Z[test])) ** 2
            by_alpha.append(np.average(errors, axis=0, weights=w[test]))
        by_split.append(by_alpha)
    return -np.mean(by_split, axis=0)


def scores_leaving_one_out(Z, Y, w, intercept, alphas=ALPHAS):
    """(a, t): minus the weighted mean of squared errors, n fits for each alpha."""
    rows = np.arange(len(Z))
    scores = []
    for alpha in alphas:
        errors = np.empty_like(Y)
        for i in rows[w > 0]:
            others = rows != i
            predict = refitted(Z[others], Y[others], w[others], alpha, intercept)
            errors[i] = (Y[i] - predict(Z[i])) ** 2
        scores.append(w[w > 0] @ errors[w > 0] / w.sum())
    return -np.array(scores)


def scores_by_hat_matrix(Z, Y, intercept, alphas=ALPHAS):
    """(a, t): −n·‖(I − H)y‖²/tr(I − H)²."""
    n = len(Z)
    center = np.full((n, n), 1 / n) if intercept else np.zeros((n, n))
    Z = Z - center @ Z
    scores = []
    for alpha in alphas:
        H = center + Z @ np.linalg.solve(Z.T @ Z + alpha * np.eye(Z.shape[1]), Z.T)
        left = np.eye(n) - H
        scores.append(n * np.sum((left @ Y) ** 2, axis=0) / np.trace(left) ** 2)
    return -np.array(scores)


def assert_scores(fitted, expected, rtol=1e-7):
    assert fitted.scores_.shape == expected.shape
    np.testing.assert_allclose(fitted.scores_, expected, rtol=rtol)


# Generalised cross-validation


@with_and_without_intercept
@pytest.mark.parametrize("cv", [None, "gcv"])
def test_gcv_is_the_formula_with_the_hat_matrix(X, Y, seed, intercept, cv):
    fitted = model(seed, cv=cv, fit_intercept=intercept).fit(X, Y)
    Z = features(fitted, X)
    assert_scores(fitted, scores_by_hat_matrix(Z, Y, intercept))


@with_and_without_intercept
def test_gcv_of_whole_weights_is_that_of_repeated_rows(X, Y, rng, seed, intercept):
    weights = rng.integers(0, 4, N_ROWS)
    fitted = model(seed, fit_intercept=intercept).fit(X, Y, weights)
    Z = np.repeat(features(fitted, X), weights, axis=0)
    expected = scores_by_hat_matrix(Z, np.repeat(Y, weights, axis=0), intercept)
    assert_scores(fitted, expected)


@with_and_without_intercept
def test_gcv_with_weights_that_sum_to_one_chooses_as_without(X, Y, seed, intercept):
    """The weights 1/n with alpha/n are the same problem as no weights with alpha."""
    rows = np.arange(0, N_ROWS, 8)
    plain = model(seed, sampler=rows, fit_intercept=intercept).fit(X, Y)
    options = {"sampler": rows, "fit_intercept": intercept}
    small = model(seed, ALPHAS / N_ROWS, **options)
    small.fit(X, Y, np.full(N_ROWS, 1 / N_ROWS))
    np.testing.assert_allclose(small.alpha_ * N_ROWS, plain.alpha_)
    np.testing.assert_allclose(small.predict(X), plain.predict(X), rtol=1e-7)
    np.testing.assert_allclose(small.scores_, plain.scores_)  # mean squared errors


@pytest.mark.parametrize("cv", [None, 5])
def test_the_default_alphas_are_in_units_of_the_weights(X, Y, seed, cv):
    """Small and large weights; rows of weight 0 are as if they were not there."""
    options = {"gamma": GAMMA, "n_landmarks": N_LANDMARKS, "cv": cv}
    plain = KernelRidgeCV(**options, random_state=seed).fit(X, Y)
    for w in (1e-3, 1e3):
        fitted = KernelRidgeCV(**options, random_state=seed)
        fitted.fit(np.r_[X, X], np.r_[Y, -Y], np.repeat([w, 0.0], N_ROWS))
        np.testing.assert_allclose(fitted.alphas_, plain.alphas_ * w)


def test_gcv_of_an_alpha_that_leaves_no_degrees_of_freedom_is_the_worst():
    """All rows are landmarks, and hardly a ridge: the fit passes through all."""
    X, y = 100.0 * np.arange(12)[:, None], np.arange(12.0)
    fitted = KernelRidgeCV([1e-200, 1.0], kernel="rbf", gamma=1.0).fit(X, y)
    assert fitted.scores_[0] == -np.inf
    assert fitted.alpha_ == 1.0
    assert fitted.best_score_ == pytest.approx(-np.mean(y**2))


TINY = np.logspace(-12, -6, 7)


def test_rows_are_asked_again_only_where_sums_leave_rounding(X, Y, rng, seed):
    def n_passes(n_landmarks, alphas, Y):
        engine = engines.Threads(1)
        with engines.using(engine):
            model(seed, alphas, n_landmarks=n_landmarks).fit(X, Y)
        return engine.passes.count("residuals"), engine.passes.count("Gram matrix")

    assert n_passes(N_LANDMARKS, ALPHAS, Y) == (0, 1)
    assert n_passes(N_ROWS, ALPHAS, Y) == (0, 1)
    smooth = rbf_kernel(X, X[:3], gamma=GAMMA)
    assert n_passes(N_ROWS - 10, TINY, smooth) == (1, 1)


def path_with(rounding):
    """A part of the target is in a direction whose eigenvalue is 0, or the rounding."""
    return NormalEquations(
        gram=np.diag([1.0, 0.0]),
        cross=np.array([[0.5, 0.5], [-0.05, 0.05]]),
        target_squares=np.ones(2),
        feature_mean=np.zeros(2),
        target_mean=np.zeros(2),
        total_weight=30.0,
        n_rows=30.0,
        max_rank=30,
        gram_error=rounding,
        fit_intercept=False,
    )


@pytest.mark.parametrize(("rounding", "right"), [(1e-5, True), (1e-3, False)])
def test_an_alpha_above_the_eigenvalues_is_no_proof_against_rounding(rounding, right):
    assert path_with(rounding).residuals_are_accurate(np.array([0.01])) == right


def test_directions_are_left_out_where_alpha_is_below_their_rounding_alone():
    path = path_with(1e-3)
    np.testing.assert_allclose(path.coefficients(1e-4)[:, 0], [0.5 / 1.0001, 0])
    np.testing.assert_allclose(path.coefficients(0.01)[:, 0], [0.5 / 1.01, -5])


def test_a_direction_that_the_eigensolver_rounded_up_is_left_out():
    """LAPACK told 5 units of the largest value where columns were dependent."""
    rounded = replace(path_with(0.0), gram=np.diag([1.0, 5 * EPS64]))
    np.testing.assert_allclose(rounded.coefficients(0.0)[:, 0], [0.5, 0.0])
    resolved = replace(path_with(0.0), gram=np.diag([1.0, 100 * EPS64]))
    assert abs(resolved.coefficients(0.0)[1, 0]) > 1e12


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9])
def test_folds_of_targets_far_from_0_are_scored_by_the_rows(rng, offset):
    """Without an intercept: Σy² and what is fitted of it are equal but for rounding."""
    X = rng.uniform(-1, 1, (500, 2))
    y = offset + 3 * X[:, 0] + 0.5 * rng.standard_normal(500)
    alphas, folds = np.logspace(-12, 0, 7), list(KFold(4).split(X))
    options = {"kernel": kernels.Polynomial(1.0, degree=2, coef0=1.0)}
    options["sampler"] = X[:12]
    found = KernelRidgeCV(alphas, cv=folds, **options).fit(X, y)
    expected = np.zeros(7)
    for place, alpha in enumerate(alphas):
        for train, test in folds:
            refit = KernelRidge(alpha, **options).fit(X[train], y[train])
            expected[place] += np.mean((refit.predict(X[test]) - y[test]) ** 2) / 4
    np.testing.assert_allclose(-found.scores_, expected, rtol=1e-3)


# Leave-one-out


@with_and_without_intercept
@pytest.mark.parametrize("cv", ["loo", LeaveOneOut()], ids=["name", "splitter"])
def test_leave_one_out_is_a_fit_without_each_row(X, Y, seed, intercept, cv):
    fitted = model(seed, cv=cv, fit_intercept=intercept).fit(X, Y)
    Z = features(fitted, X)
    assert_scores(fitted, scores_leaving_one_out(Z, Y, np.ones(N_ROWS), intercept))


@with_and_without_intercept
def test_leave_one_out_with_weights(X, Y, weights, seed, intercept):
    fitted = model(seed, cv="loo", fit_intercept=intercept).fit(X, Y, weights)
    assert not weights.all()
    Z = features(fitted, X)
    assert_scores(fitted, scores_leaving_one_out(Z, Y, weights, intercept))


# Folds


def overlapping_parts(n):
    """Splits by hand; the last rows are in none, and some train rows are tested."""
    return [
        (np.arange(0, n // 2), np.arange(n // 3, n // 3 * 2)),
        (np.arange(n // 4, n // 3 * 2), np.arange(0, n // 4)),
    ]


def with_repeated_rows(n):
    """A bootstrap: rows count as often as they are named."""
    rng = np.random.default_rng(0)
    return [(rng.integers(0, n, n), rng.permutation(n)[: n // 4]) for _ in range(3)]


SPLITTERS = {
    "folds": KFold(4),
    "shuffled folds": KFold(3, shuffle=True, random_state=0),
    "random parts": ShuffleSplit(5, train_size=0.4, test_size=0.3, random_state=0),
    "time series": TimeSeriesSplit(4),
    "pairs": overlapping_parts(N_ROWS),
    "repeated rows": with_repeated_rows(N_ROWS),
    "one split": [(np.arange(0, 60), np.arange(60, N_ROWS))],
    "lists": [(list(range(0, 60)), list(range(N_ROWS - 1, 59, -1)))],
}


def pairs_of(cv):
    return cv if isinstance(cv, list) else list(cv.split(np.zeros((N_ROWS, 1))))


@with_and_without_intercept
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", SPLITTERS)
def test_splits_are_fits_on_their_rows(X, Y, weights, seed, name, weighted, intercept):
    cv = SPLITTERS[name]
    w = weights if weighted else np.ones(N_ROWS)
    fitted = model(seed, cv=cv, fit_intercept=intercept)
    fitted.fit(X, Y, w if weighted else None)
    Z = features(fitted, X)
    assert_scores(fitted, scores_of_splits(Z, Y, w, pairs_of(cv), intercept))


def test_an_iterable_that_can_be_read_only_once(X, Y, seed):
    pairs = SPLITTERS["pairs"]
    once = model(seed, cv=iter(pairs), gamma=None, gammas=[0.1, 1.0]).fit(X, Y)
    twice = model(seed, cv=pairs, gamma=None, gammas=[0.1, 1.0]).fit(X, Y)
    np.testing.assert_array_equal(once.scores_, twice.scores_)


def test_splits_given_as_masks(X, Y, seed):
    rows = np.arange(N_ROWS)
    masks = [(rows % 3 != i, rows % 3 == i) for i in range(3)]
    numbers = [(rows[train], rows[test]) for train, test in masks]
    by_mask = model(seed, cv=masks).fit(X, Y)
    by_number = model(seed, cv=numbers).fit(X, Y)
    np.testing.assert_allclose(by_mask.scores_, by_number.scores_)


@with_and_without_intercept
@pytest.mark.parametrize("n_folds", [2, 3, np.int64(7)])
def test_a_number_of_folds(X, Y, weights, seed, n_folds, intercept):
    fitted = model(seed, cv=n_folds, fit_intercept=intercept).fit(X, Y, weights)
    Z = features(fitted, X)
    splits = random_folds(N_ROWS, n_folds, seed)
    assert_scores(fitted, scores_of_splits(Z, Y, weights, splits, intercept))


def test_random_folds_cut_the_rows_into_equal_parts(seed):
    splits = random_folds(100, 3, seed)
    tested = np.concatenate([test for _, test in splits])
    np.testing.assert_array_equal(np.sort(tested), np.arange(100))
    assert sorted(len(test) for _, test in splits) == [33, 33, 34]
    for train, test in splits:
        np.testing.assert_array_equal(np.union1d(train, test), np.arange(100))
        assert len(train) + len(test) == 100
        assert not np.array_equal(test, np.arange(test[0], test[0] + len(test)))


@pytest.mark.parametrize("cv", [None, 5, KFold(4), TimeSeriesSplit(5)], ids=str)
def test_folds_visit_every_row_once(rng, cv):
    n, s, counts = 800, 20, []
    X = rng.standard_normal((n, 2))
    for estimator in (KernelRidge(solver="direct"), KernelRidgeCV(cv=cv)):
        counter = Counted()
        kernel = counter.kernel("blocks and diagonal")
        estimator.set_params(kernel=kernel, sampler=np.arange(s)).fit(X, X[:, 0])
        counts.append(counter.n)
    plain, by_folds = counts
    assert n * s <= by_folds <= plain + N_PROBE_ROWS * s


# The choice


def errors_of(fitted):
    return -fitted.scores_


@pytest.mark.parametrize("cv", [None, "loo", 3])
def test_an_alpha_for_each_target(X, Y, seed, cv):
    fitted = model(seed, [1e-3, 1e3], cv=cv, fit_intercept=True).fit(X, Y)
    np.testing.assert_array_equal(
        fitted.alpha_, np.array([1e-3, 1e3])[errors_of(fitted).argmin(axis=0)]
    )
    np.testing.assert_array_equal(fitted.best_score_, fitted.scores_.max(axis=0))
    for t in range(2):
        alone = model(seed, [1e-3, 1e3], cv=cv, fit_intercept=True).fit(X, Y[:, t])
        assert alone.alpha_ == fitted.alpha_[t]
        np.testing.assert_allclose(fitted.scores_[:, t], alone.scores_, rtol=1e-9)
        np.testing.assert_allclose(
            fitted.predict(X)[:, t], alone.predict(X), rtol=1e-6, atol=1e-8
        )


@pytest.mark.parametrize("cv", [None, "loo", 3])
def test_one_alpha_for_all_targets_has_the_least_mean_error(X, Y, seed, cv):
    one = model(seed, cv=cv).set_params(alpha_per_target=False).fit(X, Y)
    each = model(seed, cv=cv).fit(X, Y)
    np.testing.assert_allclose(one.scores_, each.scores_.mean(axis=1))
    assert isinstance(one.alpha_, float)
    assert one.alpha_ == ALPHAS[one.scores_.argmax()]
    assert one.best_score_ == one.scores_.max()


@pytest.mark.parametrize("cv", [None, "loo", 3])
def test_the_best_of_several_widths(X, Y, seed, cv):
    y, gammas = Y[:, 0], [1e-3, 0.4, 60.0]
    options = {"cv": cv, "fit_intercept": True}
    fitted = model(seed, gamma=None, gammas=gammas, **options).fit(X, y)
    single = [model(seed, gamma=g, **options).fit(X, y) for g in gammas]
    assert fitted.scores_.shape == (3, 3)
    np.testing.assert_array_equal(fitted.scores_, [m.scores_ for m in single])
    best = np.argmax([m.best_score_ for m in single])
    assert fitted.gamma_ == gammas[best]
    assert fitted.alpha_ == single[best].alpha_
    assert fitted.best_score_ == fitted.scores_.max()
    assert fitted.landmarks_.kernel.gamma == gammas[best]
    np.testing.assert_array_equal(fitted.dual_coef_, single[best].dual_coef_)


def test_the_best_width_where_each_target_has_its_own_alpha(rng, seed):
    """A width is as good as its targets are, each with the alpha that it will get."""
    X = rng.uniform(-3, 3, (300, 1))
    Y = np.column_stack([5 * rng.standard_normal(300), 3 * np.sin(4 * X[:, 0])])
    gammas = [0.15, 4.0]
    fitted = model(seed, [1e-6, 1e4], gamma=None, gammas=gammas, n_landmarks=40)
    fitted.fit(X, Y)
    reached = fitted.scores_.max(axis=1).mean(axis=1)  # by width
    assert fitted.gamma_ == gammas[reached.argmax()]


@with_and_without_intercept
@pytest.mark.parametrize("cv", [None, "loo", 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_fit_is_that_of_kernel_ridge(X, Y, weights, seed, cv, weighted, intercept):
    w = weights if weighted else None
    fitted = model(seed, cv=cv, fit_intercept=intercept).fit(X, Y, w)
    plain = KernelRidge(
        fitted.alpha_,
        kernel="rbf",
        gamma=GAMMA,
        sampler=fitted.landmarks_.indices,
        solver="direct",
        fit_intercept=intercept,
    ).fit(X, Y, w)
    scale = np.abs(plain.dual_coef_).max()
    np.testing.assert_allclose(
        fitted.dual_coef_ / scale, plain.dual_coef_ / scale, atol=1e-8
    )
    np.testing.assert_allclose(fitted.intercept_, plain.intercept_, rtol=1e-8)
    np.testing.assert_allclose(fitted.predict(X), plain.predict(X), atol=1e-8)
    assert fitted.approximation_error_.value == pytest.approx(
        plain.approximation_error_.value
    )


# Precision


@with_and_without_intercept
@pytest.mark.parametrize("cv", [None, "loo", KFold(3)], ids=["gcv", "loo", "folds"])
def test_float32_rows_of_a_smooth_kernel_score_as_in_float64(rng, seed, cv, intercept):
    gamma = 1e-3
    # Leaving one out takes n reference fits for each alpha.
    n, alphas = (120, [1e-4, 1e-2]) if cv == "loo" else (500, [1e-4, 1e-3, 1e-2, 1.0])
    X = rng.standard_normal((n, 4)).astype(np.float32)
    smooth = X[:, 0] + 0.3 * X[:, 1] ** 2 + 0.5
    Y = np.column_stack([smooth + 0.1 * rng.standard_normal(n), smooth + 3])
    fitted = model(
        seed, alphas, gamma=gamma, n_landmarks=50, cv=cv, fit_intercept=intercept
    ).fit(X, Y)
    assert np.linalg.cond(rbf_kernel(fitted.X_fit_.astype(float), gamma=gamma)) > 1e10
    Z, ones = features(fitted, X, gamma), np.ones(n)
    if cv is None:
        expected = scores_by_hat_matrix(Z, Y, intercept, alphas)
    elif cv == "loo":
        expected = scores_leaving_one_out(Z, Y, ones, intercept, alphas)
    else:
        splits = list(cv.split(X))
        expected = scores_of_splits(Z, Y, ones, splits, intercept, alphas)
    assert_scores(fitted, expected, rtol=1e-3)
    assert fitted.predict(X).dtype == np.float32


# Degenerate data

EVERY_CV = pytest.mark.parametrize("cv", [None, "loo", 3], ids=["gcv", "loo", "folds"])


@EVERY_CV
@with_and_without_intercept
def test_a_target_of_zeros(X, seed, cv, intercept):
    fitted = model(seed, cv=cv, fit_intercept=intercept).fit(X, np.zeros(N_ROWS))
    np.testing.assert_array_equal(fitted.scores_, np.zeros(3))
    assert fitted.alpha_ == ALPHAS[-1]  # of equally good ones the largest
    np.testing.assert_array_equal(fitted.predict(X), np.zeros(N_ROWS))


@EVERY_CV
def test_alphas_in_any_order_and_twice(X, Y, seed, cv):
    sorted_ = model(seed, cv=cv).fit(X, Y)
    order = [2, 0, 1, 0]
    fitted = model(seed, ALPHAS[order], cv=cv).fit(X, Y)
    np.testing.assert_array_equal(fitted.alphas_, ALPHAS[order])
    np.testing.assert_allclose(fitted.scores_, sorted_.scores_[order], rtol=1e-9)
    np.testing.assert_array_equal(fitted.alpha_, sorted_.alpha_)


# Residuals from the rows


@pytest.mark.parametrize(("n", "s", "gamma"), [(400, 30, 0.05), (150, 100, 1.0)])
@with_and_without_intercept
def test_gcv_of_fits_that_pass_close_to_all_targets(seed, n, s, gamma, intercept):
    """Sums over rows leave rounding there, 10⁴ to 10¹⁰ times as much."""
    rng, alpha = np.random.default_rng(seed), 1e-10
    X = rng.standard_normal((n, 2))
    y = 5.0 * intercept + rbf_kernel(X, X[:5], gamma) @ rng.standard_normal(5)
    common = {"kernel": "rbf", "gamma": gamma, "n_landmarks": s, "random_state": seed}
    fitted = KernelRidgeCV([alpha], fit_intercept=intercept, **common).fit(X, y)
    Z = features(fitted, X, gamma)
    if intercept:
        Z, y = Z - Z.mean(axis=0), y - y.mean()
    # Least squares with rows of √alpha below: no Gram matrix, and no rounding of one.
    below = np.sqrt(alpha) * np.eye(Z.shape[1])
    targets = np.concatenate([y, np.zeros(len(below))])
    coef = np.linalg.lstsq(np.vstack([Z, below]), targets, rcond=None)[0]
    squares = np.sum((y - Z @ coef) ** 2)
    values = np.linalg.svd(Z, compute_uv=False) ** 2
    left = n - intercept - np.sum(values / (values + alpha))
    assert -fitted.best_score_ == pytest.approx(n * squares / left**2, rel=0.05)


# White noise of Gaussian-process kernels counts as alpha


@pytest.mark.parametrize("cv", [None, "loo", KFold(4)])
def test_white_noise_is_added_to_every_alpha(X, Y, seed, cv):
    signal = gp_kernels.RBF(1 / np.sqrt(2 * GAMMA))
    options = {"gamma": None, "cv": cv}
    noisy = model(seed, kernel=signal + gp_kernels.WhiteKernel(0.5), **options)
    plain = model(seed, alphas=ALPHAS + 0.5, kernel=signal, **options)
    noisy.fit(X, Y)
    plain.fit(X, Y)
    np.testing.assert_array_equal(noisy.scores_, plain.scores_)
    np.testing.assert_array_equal(noisy.alphas_, ALPHAS)
    np.testing.assert_allclose(noisy.alpha_ + 0.5, plain.alpha_)
    np.testing.assert_array_equal(noisy.predict(X), plain.predict(X))
    # The noise is in k(x, x), so it is in the deviation; alpha_ only with noise=True.
    found = noisy.predict(X, return_std=True, noise=True)[1]
    expected = plain.predict(X, return_std=True, noise=True)[1]
    np.testing.assert_array_equal(found, expected)
    given = KernelRidge(
        noisy.alpha_, kernel=noisy.kernel, sampler=noisy.landmarks_.indices
    )
    given.set_params(solver="direct", n_landmarks=N_LANDMARKS).fit(X, Y)
    np.testing.assert_allclose(
        noisy.predict(X, return_std=True), given.predict(X, return_std=True), rtol=1e-6
    )
