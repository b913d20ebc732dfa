"""What the three ridge estimators take, and what they refuse with one clear error."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge as ExactKernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score

from nystrom import KernelRidge, KernelRidgeClassifier, KernelRidgeCV, kernels, samplers
from nystrom.kernels import PrecomputedAtLandmarks
from nystrom.sources import as_source

N_ROWS, N_FEATURES, N_LANDMARKS, GAMMA = 90, 4, 12, 0.2
ESTIMATORS = {
    "KernelRidge": KernelRidge,
    "KernelRidgeCV": KernelRidgeCV,
    "KernelRidgeClassifier": KernelRidgeClassifier,
}
REGRESSORS = ["KernelRidge", "KernelRidgeCV"]
NAMES = list(ESTIMATORS)

all_three = pytest.mark.parametrize("name", NAMES)
regressors = pytest.mark.parametrize("name", REGRESSORS)

FIXED = np.random.default_rng(0)
ROWS = FIXED.standard_normal((N_ROWS, N_FEATURES))
VALUES = 1.5 + np.sin(2 * ROWS[:, 0]) + ROWS[:, 1]
TARGETS = dict.fromkeys(REGRESSORS, VALUES)
TARGETS["KernelRidgeClassifier"] = (VALUES > 1.5).astype(int)
WORDS = ["ab", "abc", "bcd", "xyz", "xy", "zab"] * 15


def estimator(name, seed=0, **options):
    options = {"kernel": "rbf", "n_landmarks": N_LANDMARKS} | options
    return ESTIMATORS[name](random_state=seed, **options)


def ridge_of(name, value):
    """The parameter for the ridge, which `KernelRidgeCV` has several of."""
    return {"alphas" if name == "KernelRidgeCV" else "alpha": value}


def answers(fitted, X):
    """The numbers that an estimator answers with, classes or not."""
    decide = getattr(fitted, "decision_function", fitted.predict)
    return decide(X)


def shared_letters(a, b):
    return float(len(set(a) & set(b)))


# Refused


def refused(name, match, X=ROWS, y=TARGETS, weights=None, **options):
    """One clear error, nothing half fitted, and what was fitted before still predicts.

    `y` is by estimator, as TARGETS, or one for all.
    """
    y = y[name] if isinstance(y, dict) else y
    fresh = estimator(name, **options)
    before = set(vars(fresh))
    with pytest.raises((ValueError, TypeError), match=match):
        fresh.fit(X, y, weights)
    assert set(vars(fresh)) == before
    with pytest.raises(NotFittedError):
        fresh.predict(ROWS)

    fitted = estimator(name).fit(ROWS, TARGETS[name])
    expected, predicted = answers(fitted, ROWS), fitted.predict(ROWS)
    fitted.set_params(**options)
    with pytest.raises((ValueError, TypeError), match=match):
        fitted.fit(X, y, weights)
    np.testing.assert_array_equal(answers(fitted, ROWS), expected)
    np.testing.assert_array_equal(fitted.predict(ROWS), predicted)


@all_three
@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, "a", None, [[1.0]], [1, -1]])
def test_alpha_that_is_not_a_ridge(name, value):
    if value is None and name == "KernelRidgeCV":
        value = [None]  # None is the default grid
    given = ridge_of(name, value)
    message = r"alphas?=.* is not allowed; .*(>= 0|> 0)"
    refused(name, message, **given)


@pytest.mark.parametrize("value", [0, [1.0, 0.0], []])
def test_alphas_to_try_are_positive(value):
    refused("KernelRidgeCV", r"alphas=.* is not allowed; .*> 0", alphas=value)


@pytest.mark.parametrize("name", ["KernelRidge", "KernelRidgeClassifier"])
@pytest.mark.parametrize(
    ("value", "n"), [([1.0, 2.0], 2), ([1.0, 2.0, 3.0], 3), ([], 0)]
)
def test_another_number_of_alphas_than_targets(name, value, n):
    refused(name, rf"alpha has {n} values, but y has 1 targets", alpha=value)


def test_two_alphas_for_three_targets():
    Y = np.column_stack([VALUES] * 3)
    message = "alpha has 2 values, but y has 3 targets"
    refused("KernelRidge", message, y=Y, alpha=[1.0, 2.0])


@all_three
@pytest.mark.parametrize("n", [0, 1, N_ROWS - 1, N_ROWS + 1])
def test_another_number_of_targets_than_rows(name, n):
    y = np.resize(TARGETS[name], n)
    refused(name, rf"inconsistent numbers of samples.*{N_ROWS}, {n}|0 sample", y=y)


@all_three
def test_another_number_of_targets_than_words(name):
    message = rf"inconsistent numbers of samples.*{N_ROWS}, {N_ROWS - 1}"
    y = TARGETS[name][:-1]
    refused(name, message, X=WORDS, y=y, kernel=shared_letters)


@all_three
@pytest.mark.parametrize(
    ("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]
)
def test_targets_that_are_not_finite(name, value, word):
    y = TARGETS[name].astype(float)
    y[5] = value
    refused(name, rf"Input y contains {word}", y=y)
    if name in REGRESSORS:
        refused(name, rf"Input y contains {word}", y=np.column_stack([y, y]))
        refused(name, rf"y contains {word}", X=WORDS, y=y, kernel=shared_letters)


@all_three
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_rows_that_are_not_finite(name, value, word):
    X = ROWS.copy()
    X[3, 2] = value
    refused(name, f"X contains {word}", X=X)
    fitted = estimator(name).fit(ROWS, TARGETS[name])
    with pytest.raises(ValueError, match=f"X contains {word}"):
        fitted.predict(X)


@all_three
def test_no_targets(name):
    message = "requires y to be passed, but the target y is None"
    refused(name, message, y=None)
    refused(name, message, X=WORDS, y=None, kernel=shared_letters)


@all_three
def test_targets_of_three_dimensions(name):
    refused(name, "dim 3", y=np.zeros((N_ROWS, 1, 1)))


@all_three
def test_targets_without_columns(name):
    refused(name, r"0 feature.*\(90, 0\)", y=np.zeros((N_ROWS, 0)))


@regressors
@pytest.mark.parametrize("dtype", [str, object])
def test_targets_that_are_text(name, dtype):
    y = np.array(["low", "high"] * 45, dtype=dtype)
    refused(name, "(?i)^(?!X holds).*y", y=y)


@all_three
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-np.ones(N_ROWS), "sample_weight must be >= 0"),
        (np.r_[-1.0, np.ones(N_ROWS - 1)], "sample_weight must be >= 0"),
        (np.zeros(N_ROWS), "at least one"),
        (np.ones(N_ROWS - 1), r"sample_weight.shape == \(89,\), expected \(90,\)"),
        (np.ones((N_ROWS, 1)), "must be 1D"),
        (np.full(N_ROWS, np.nan), "sample_weight contains NaN"),
    ],
    ids=["negative", "one negative", "zeros", "too few", "a column", "nan"],
)
def test_weights_that_are_not_weights(name, weights, message):
    refused(name, message, weights=weights)


def test_folds_without_any_weight():
    weights = np.r_[np.zeros(45), np.ones(45)]
    splits = [(np.arange(45, 90), np.arange(45))]
    message = "A split has only rows of weight 0"
    refused("KernelRidgeCV", message, weights=weights, cv=splits)


@all_three
@pytest.mark.parametrize(
    "X", [np.empty((0, 4)), sp.csr_array((0, 4)), [], pd.DataFrame(ROWS[:0])]
)
def test_no_rows(name, X):
    refused(name, "0 sample|empty; at least one row", X=X, y=[])


@all_three
@pytest.mark.parametrize(
    ("parameter", "value", "nearest"),
    [
        ("kernel", "rbg", "rbf"),
        ("kernel", "laplace", "laplacian"),
        ("sampler", "recursvie", "recursive"),
        ("solver", "direkt", "direct"),
    ],
)
def test_unknown_names_are_met_with_a_suggestion(name, parameter, value, nearest):
    if parameter == "solver" and name == "KernelRidgeCV":
        parameter, value, nearest = "sampler", "levrage", "leverage"
    message = rf"{parameter}='{value}' is unknown; did you mean '{nearest}'\? Allowed: "
    refused(name, message, **{parameter: value})


@all_three
@pytest.mark.parametrize(
    ("parameter", "value"), [("kernel", 5), ("kernel", None), ("sampler", 3)]
)
def test_kernels_and_samplers_of_another_type(name, parameter, value):
    message = f"{parameter}={value} is not a {parameter}; pass a name"
    refused(name, message, **{parameter: value})


@pytest.mark.parametrize("name", ["KernelRidge", "KernelRidgeClassifier"])
@pytest.mark.parametrize("solver", [None, 3, ["cg"]])
def test_solvers_of_another_type(name, solver):
    refused(name, "solver=.* is unknown. Allowed: 'auto'", solver=solver)


def test_conjugate_gradients_need_a_ridge():
    refused("KernelRidge", "solver='cg' needs alpha > 0", solver="cg", alpha=0)


def test_conjugate_gradients_need_a_ridge_for_classes_too():
    message = "solver='cg' needs alpha > 0"
    refused("KernelRidgeClassifier", message, solver="cg", alpha=0)


@all_three
@pytest.mark.parametrize("n_landmarks", [0, -3, 2.5, "a", True, None])
def test_number_of_landmarks(name, n_landmarks):
    message = r"n_landmarks=.* is not allowed; n_landmarks must be a whole number >= 1"
    refused(name, message, n_landmarks=n_landmarks)


@all_three
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_spectral_error": -1.0}, "max_spectral_error=-1.0 is not allowed"),
        ({"max_trace_error": 3}, "max_trace_error=3 is not allowed"),
        (
            {"max_spectral_error": 1.0, "max_trace_error": 0.1},
            "max_spectral_error=1.0 and max_trace_error=0.1",
        ),
        ({"gamma": -1.0}, "gamma=-1.0 is not allowed"),
        ({"gamma": "scael"}, "gamma='scael' is unknown"),
        ({"gamma": [1.0, 2.0]}, "2 values, but rows have 4 features"),
        ({"sampler": [1, N_ROWS]}, "row number 90, but the data has rows 0 to 89"),
        ({"sampler": ROWS[:5, :3]}, "have 3 features, but the data has 4"),
        ({"kernel_params": {"sigma": 1.0}}, "kernel_params has 'sigma'"),
    ],
    ids=str,
)
def test_options_that_are_not_allowed(name, options, message):
    refused(name, message, **options)


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (0, "cv=0 folds cannot be cut"),
        (1, "cv=1 folds cannot be cut from n_samples=90"),
        (N_ROWS + 1, "cv=91 folds cannot be cut from n_samples=90"),
        (True, "cv=True folds cannot be cut"),
        (2.5, "Got 2.5"),
        ("lou", "cv='lou' is not allowed; use 'gcv', 'loo'"),
        ("5", "cv='5' is not allowed"),
        ([], r"cv=\[\] does not split 90 rows"),
        ([(np.arange(5), np.arange(0))], "a part is empty"),
    ],
    ids=str,
)
def test_cross_validation_that_is_none(cv, message):
    refused("KernelRidgeCV", message, cv=cv)


@pytest.mark.parametrize(
    "cv",
    [
        [(np.arange(5), [N_ROWS])],
        [(np.arange(5), [-N_ROWS - 1])],
        [(np.arange(5), [0.5])],
        [1, 2],
        [(np.arange(5),)],
    ],
    ids=["too large", "too small", "not whole", "no pairs", "no test rows"],
)
def test_splits_that_are_not_row_numbers(cv):
    refused("KernelRidgeCV", "cv", cv=cv)


def test_widths_given_twice():
    message = r"gamma=1.0 and gammas=\[0.1\] both set the width"
    refused("KernelRidgeCV", message, gamma=1.0, gammas=[0.1])


def test_widths_that_are_none_or_for_a_kernel_with_its_own():
    refused("KernelRidgeCV", r"gammas=\[\] is not allowed", gammas=[])
    message = r"gammas=\[0.1\] cannot be combined with kernel=RBF"
    refused("KernelRidgeCV", message, gammas=[0.1], kernel=kernels.RBF(1.0))
    refused("KernelRidgeCV", "gamma=-1 is not allowed", gammas=[0.1, -1])


@pytest.mark.parametrize("gammas", [0.5, "scale"])
def test_widths_that_are_no_sequence(gammas):
    refused("KernelRidgeCV", rf"gammas={gammas!r} is not allowed", gammas=gammas)


def test_widths_for_a_precomputed_kernel():
    message = r"gammas=\[0.1, 1.0\] cannot be combined with kernel='precomputed'"
    K = rbf_kernel(ROWS)
    refused("KernelRidgeCV", message, X=K, gammas=[0.1, 1.0], kernel="precomputed")


@all_three
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, np.float32])
def test_new_rows_of_another_width(name, storage):
    fitted = estimator(name).fit(storage(ROWS), TARGETS[name])
    message = f"X has 3 features, but {name} is expecting 4 features"
    with pytest.raises(ValueError, match=message):
        fitted.predict(storage(ROWS[:, :3]))


@all_three
@pytest.mark.parametrize("width", [1, N_LANDMARKS - 1, N_LANDMARKS + 1, N_ROWS - 1])
def test_precomputed_new_rows_of_another_width(name, width):
    K = rbf_kernel(ROWS)
    fitted = estimator(name, kernel="precomputed").fit(K, TARGETS[name])
    with pytest.raises(ValueError, match=rf"X has {width} features.* 90"):
        fitted.predict(np.ones((3, width)))


@all_three
@pytest.mark.parametrize("shape", [(N_ROWS, N_ROWS - 1), (N_ROWS, 4)])
def test_precomputed_matrix_that_is_not_square(name, shape):
    message = rf"square matrix .* X has shape \({shape[0]}, {shape[1]}\)"
    refused(name, message, X=np.ones(shape), kernel="precomputed")


@all_three
def test_predictions_before_a_fit(name):
    with pytest.raises(NotFittedError, match=f"This {name} instance is not fitted"):
        estimator(name).predict(ROWS)
    with pytest.raises(NotFittedError, match=f"This {name} instance is not fitted"):
        answers(estimator(name), ROWS)


@all_three
def test_text_where_numbers_are_needed(name):
    refused(name, "needs rows of numbers, but X holds str", X=WORDS)
    table = np.array([["red", "green"]] * N_ROWS, dtype=object)
    refused(name, "X holds text where numbers are needed", X=table)
    frame = pd.DataFrame({"size": ROWS[:, 0], "color": ["red"] * N_ROWS})
    refused(name, "X holds text where numbers are needed", X=frame)


@all_three
def test_rows_of_one_and_three_dimensions(name):
    refused(name, "Expected 2D array, got 1D", X=ROWS[:, 0])
    refused(name, "dim 3", X=ROWS[:, :, None])


@all_three
def test_a_kernel_that_fails_midway_leaves_the_old_fit(name):
    """Not only what is checked beforehand."""
    calls = []

    def breaks(X, Y):
        calls.append(len(X))
        if len(calls) > 2:
            raise ValueError("the kernel broke")
        return rbf_kernel(X, Y)

    fitted = estimator(name).fit(ROWS, TARGETS[name])
    expected = answers(fitted, ROWS)
    fitted.set_params(kernel=kernels.blockwise(breaks), sampler=np.arange(5))
    with pytest.raises(ValueError, match="the kernel broke"):
        fitted.fit(ROWS[:, :2], TARGETS[name])
    assert len(calls) > 2
    np.testing.assert_array_equal(answers(fitted, ROWS), expected)
    assert fitted.n_features_in_ == N_FEATURES


# Taken


@pytest.fixture
def X(rng):
    return rng.standard_normal((N_ROWS, N_FEATURES))


@pytest.fixture
def y(X, rng):
    return np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(N_ROWS)


def target_for(name, y):
    return (y > 0).astype(int) if name == "KernelRidgeClassifier" else y


def on_landmarks(fitted, X, K):
    """K_S·dual + intercept, from the whole kernel matrix."""
    dual = fitted.dual_coef_
    return K[:, fitted.landmarks_.indices] @ dual + fitted.intercept_


def solution(fitted, K, y, alpha):
    """Ridge regression on the features of the landmarks, dense."""
    S = fitted.landmarks_.indices
    values, vectors = np.linalg.eigh(K[np.ix_(S, S)])
    kept = values > 1e-12 * len(S)
    Z = K[:, S] @ (vectors[:, kept] / np.sqrt(values[kept]))
    return Z @ np.linalg.solve(Z.T @ Z + alpha * np.eye(Z.shape[1]), Z.T @ y)


@all_three
def test_constant_columns_change_nothing(name, X, y, seed):
    y = target_for(name, y)
    plain = estimator(name, seed, gamma=GAMMA).fit(X, y)
    wider = np.column_stack([np.full(N_ROWS, 1e3), X, np.zeros(N_ROWS)])
    fitted = estimator(name, seed, gamma=GAMMA).fit(wider, y)
    np.testing.assert_allclose(answers(fitted, wider), answers(plain, X), atol=1e-6)


@regressors
def test_constant_target(name, X, seed):
    y = np.full(N_ROWS, -3.0)
    options = {"gamma": GAMMA} | ridge_of(name, 0.1)
    fitted = estimator(name, seed, fit_intercept=True, **options).fit(X, y)
    np.testing.assert_allclose(fitted.predict(X), y, rtol=1e-12)
    assert fitted.intercept_ == pytest.approx(-3.0)
    shrunk = estimator(name, seed, **options).fit(X, y)
    expected = solution(shrunk, rbf_kernel(X, gamma=GAMMA), y, 0.1)
    np.testing.assert_allclose(shrunk.predict(X), expected, atol=1e-8)


@all_three
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix, sp.coo_array])
def test_sparse_rows_are_as_dense_ones(name, X, y, seed, make, intercept):
    X = np.where(np.abs(X) > 0.5, X, 0)
    y = target_for(name, y)
    options = {"gamma": GAMMA, "sampler": np.arange(15), "fit_intercept": intercept}
    dense = estimator(name, seed, **options).fit(X, y)
    sparse = estimator(name, seed, **options).fit(make(X), y)
    assert sp.issparse(sparse.X_fit_)
    expected = answers(dense, X)
    np.testing.assert_allclose(answers(sparse, make(X)), expected, atol=1e-7)
    np.testing.assert_allclose(answers(sparse, X), expected, atol=1e-7)


@all_three
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_keep_their_names(name, X, y, seed, frame):
    y = target_for(name, y)
    columns = ["a", "b", "c", "d"]
    table = frame(dict(zip(columns, X.T, strict=True)))
    fitted = estimator(name, seed).fit(table, frame({"y": y})["y"])
    np.testing.assert_array_equal(fitted.feature_names_in_, columns)
    expected = estimator(name, seed).fit(X, y).predict(X)
    np.testing.assert_array_equal(fitted.predict(table), expected)
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(table[["b", "a", "c", "d"]])


@all_three
@pytest.mark.parametrize("kind", [list, np.array, pd.Series])
def test_words_with_a_kernel_of_two_words(name, seed, kind):
    y = np.array([2.0 * ("a" in word) - 1 for word in WORDS])
    fitted = estimator(name, seed, kernel=shared_letters, n_landmarks=5)
    fitted.set_params(fit_intercept=False, **ridge_of(name, 0.5))
    fitted.fit(kind(WORDS), target_for(name, y))
    K = np.array([[shared_letters(a, b) for b in WORDS] for a in WORDS])
    expected = solution(fitted, K, y, 0.5)
    np.testing.assert_allclose(answers(fitted, kind(WORDS)), expected, atol=1e-8)
    assert not hasattr(fitted, "n_features_in_")


@all_three
def test_precomputed_kernel_is_as_its_rows(name, X, y, rng, seed):
    y, K = target_for(name, y), rbf_kernel(X, gamma=GAMMA)
    options = {"fit_intercept": True}
    fitted = estimator(name, seed, kernel="precomputed", **options).fit(K, y)
    S = fitted.landmarks_.indices
    by_rows = estimator(name, seed, gamma=GAMMA, sampler=S, **options).fit(X, y)
    new = rng.standard_normal((30, N_FEATURES))
    expected = answers(by_rows, new)
    against = rbf_kernel(new, X, gamma=GAMMA)
    np.testing.assert_allclose(answers(fitted, against), expected, atol=1e-8)
    np.testing.assert_array_equal(
        answers(fitted, PrecomputedAtLandmarks(against[:, S])), answers(fitted, against)
    )
    with pytest.raises(ValueError, match=r"kernels\.PrecomputedAtLandmarks"):
        answers(fitted, against[:, : len(S)])
    np.testing.assert_array_equal(fitted.X_fit_, S)


def test_precomputed_kernel_with_all_rows_is_exact(X, y, rng, seed):
    K = rbf_kernel(X, gamma=GAMMA)
    fitted = KernelRidge(0.1, kernel="precomputed", random_state=seed).fit(K, y)
    theirs = ExactKernelRidge(alpha=0.1, kernel="precomputed").fit(K, y)
    new = rbf_kernel(rng.standard_normal((30, N_FEATURES)), X, gamma=GAMMA)
    assert fitted.solver_ == "exact"
    np.testing.assert_allclose(fitted.predict(new), theirs.predict(new), atol=1e-10)
    with pytest.raises(ValueError, match="X has 12 features"):
        fitted.predict(new[:, :12])


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_the_exact_solution_keeps_the_rows_of_a_source_and_not_the_source(
    kernel, X, y, seed
):
    rows = rbf_kernel(X) if kernel == "precomputed" else X
    model = estimator("KernelRidge", seed, kernel=kernel, n_landmarks=N_ROWS)
    fitted = clone(model).fit(as_source(rows), y)
    assert fitted.solver_ == "exact"
    np.testing.assert_array_equal(fitted.X_fit_, rows)
    expected = clone(model).fit(rows, y)
    for found, wanted in zip(
        fitted.predict(rows, return_std=True),
        expected.predict(rows, return_std=True),
        strict=True,
    ):
        np.testing.assert_array_equal(found, wanted)


def test_rows_no_more_than_landmarks_are_exact(X, y, rng, seed):
    fitted = KernelRidge(0.1, kernel="rbf", random_state=seed).fit(X, y)
    theirs = ExactKernelRidge(alpha=0.1, kernel="rbf").fit(X, y)
    new = rng.standard_normal((30, N_FEATURES))
    assert fitted.solver_ == "exact"
    np.testing.assert_allclose(fitted.predict(new), theirs.predict(new), atol=1e-10)


@all_three
def test_sum_of_kernels(name, X, y, seed):
    kernel = kernels.RBF(0.1) + kernels.Linear()
    K = rbf_kernel(X, gamma=0.1) + X @ X.T
    y = np.where(y > 0, 1.0, -1.0)
    fitted = estimator(name, seed, kernel=kernel, fit_intercept=False)
    fitted.set_params(**ridge_of(name, 0.5)).fit(X, target_for(name, y))
    expected = solution(fitted, K, y, 0.5)
    np.testing.assert_allclose(answers(fitted, X), expected, atol=1e-7)


def median_width(X):
    distances = np.linalg.norm(X[:, None] - X, axis=2)[np.triu_indices(len(X), 1)]
    return 1 / (2 * np.median(distances) ** 2)


@all_three
@pytest.mark.parametrize(
    ("gamma", "width"),
    [
        (None, lambda X: 1 / N_FEATURES),
        ("scale", lambda X: 1 / (N_FEATURES * X.var())),
        ("median", median_width),
        (0.7, lambda X: 0.7),
    ],
    ids=["default", "scale", "median", "number"],
)
def test_widths_by_rule(name, X, y, seed, gamma, width):
    X = 2 * X
    fitted = estimator(name, seed, gamma=gamma).fit(X, target_for(name, y))
    assert fitted.landmarks_.kernel.gamma == pytest.approx(width(X))
    expected = on_landmarks(fitted, X, rbf_kernel(X, gamma=width(X)))
    np.testing.assert_allclose(answers(fitted, X), expected, atol=1e-8)


@all_three
@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_a_width_for_each_feature(name, X, y, seed, kind):
    gamma = [0.1, 0.0, 0.5, 2.0]
    fitted = estimator(name, seed, gamma=kind(gamma)).fit(X, target_for(name, y))
    K = rbf_kernel(X * np.sqrt(gamma), gamma=1.0)
    np.testing.assert_allclose(
        answers(fitted, X), on_landmarks(fitted, X, K), atol=1e-7
    )


@all_three
@pytest.mark.parametrize("dtype", [np.int64, np.uint8, bool])
def test_whole_numbers_are_as_floats(name, rng, seed, dtype):
    X = rng.integers(0, 2 if dtype is bool else 9, (N_ROWS, 6)).astype(dtype)
    y = target_for(name, X[:, 0] + 0.0 * X[:, 1] - (0.5 if dtype is bool else 4))
    fitted = estimator(name, seed, gamma=0.05).fit(X, y)
    expected = estimator(name, seed, gamma=0.05).fit(X.astype(float), y)
    assert answers(fitted, X).dtype == np.float64
    np.testing.assert_array_equal(
        answers(fitted, X), answers(expected, X.astype(float))
    )


@regressors
@pytest.mark.parametrize("n_landmarks", [N_LANDMARKS, 1000], ids=["few", "all"])
def test_targets_in_one_column_stay_a_column(name, X, y, seed, n_landmarks):
    vector = estimator(name, seed, n_landmarks=n_landmarks).fit(X, y)
    column = estimator(name, seed, n_landmarks=n_landmarks).fit(X, y[:, None])
    assert vector.predict(X).shape == (N_ROWS,)
    assert column.predict(X).shape == (N_ROWS, 1)
    assert column.dual_coef_.shape == (*vector.dual_coef_.shape, 1)
    np.testing.assert_allclose(column.predict(X)[:, 0], vector.predict(X), atol=1e-12)


@regressors
def test_whole_number_targets_are_as_floats(name, X, y, seed):
    whole = np.round(3 * y).astype(int)
    fitted = estimator(name, seed).fit(X, whole)
    expected = estimator(name, seed).fit(X, whole.astype(float))
    np.testing.assert_array_equal(fitted.predict(X), expected.predict(X))


@all_three
@pytest.mark.parametrize("exact", [False, True])
def test_pickle_and_joblib(name, X, y, seed, exact, tmp_path):
    n_landmarks = 1000 if exact else N_LANDMARKS
    fitted = estimator(name, seed, n_landmarks=n_landmarks).fit(X, target_for(name, y))
    expected = fitted.predict(X)
    restored = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(restored.predict(X), expected)
    joblib.dump(fitted, tmp_path / "model.joblib")
    restored = joblib.load(tmp_path / "model.joblib")
    np.testing.assert_array_equal(answers(restored, X), answers(fitted, X))


@all_three
def test_clone_is_unfitted_and_fits_the_same(name, X, y, seed):
    y = target_for(name, y)
    fitted = estimator(name, seed, gamma=[0.1, 0.2, 0.3, 0.4]).fit(X, y)
    cloned = clone(fitted)
    with pytest.raises(NotFittedError):
        cloned.predict(X)
    np.testing.assert_array_equal(cloned.fit(X, y).predict(X), fitted.predict(X))


@all_three
def test_cross_val_score_tells_a_target_from_noise(name, rng, seed):
    X = rng.standard_normal((300, 2))
    model = estimator(name, seed, gamma=0.1, n_landmarks=30, fit_intercept=True)
    signal, noise = X[:, 0] - X[:, 1], rng.standard_normal(300)
    scores = cross_val_score(model, X, target_for(name, signal), cv=3)
    by_chance = cross_val_score(model, X, target_for(name, noise), cv=3)
    assert scores.min() > 0.8
    assert by_chance.mean() < 0.65


@all_three
def test_cross_val_score_of_a_precomputed_kernel(name, X, y, seed):
    """Its rows and columns are split, which a tag asks for."""
    y = target_for(name, y)
    K = rbf_kernel(X, gamma=GAMMA)
    # All rows are landmarks, so that none are drawn.
    by_matrix = estimator(name, seed, kernel="precomputed", n_landmarks=1000)
    by_rows = estimator(name, seed, gamma=GAMMA, n_landmarks=1000)
    np.testing.assert_allclose(
        cross_val_score(by_matrix, K, y, cv=3),
        cross_val_score(by_rows, X, y, cv=3),
        atol=1e-6,
    )


@pytest.mark.filterwarnings("ignore:K is nearly")
@regressors
def test_grid_search_finds_the_width(name, rng, seed):
    X = rng.uniform(-3, 3, (150, 1))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(150)
    grid = {"gamma": [1e-4, 1.0, 1e4], "n_landmarks": [2, 30]}
    search = GridSearchCV(estimator(name, seed, **ridge_of(name, 0.1)), grid, cv=3)
    search.fit(X, y)
    assert search.best_params_ == {"gamma": 1.0, "n_landmarks": 30}
    assert search.best_score_ > 0.95


@regressors
def test_transformed_targets(name, X, y, seed):
    model = estimator(name, seed)
    wrapped = TransformedTargetRegressor(model, func=np.exp, inverse_func=np.log)
    with np.errstate(invalid="ignore"):  # a prediction may be below 0
        predicted = wrapped.fit(X, y).predict(X)
        expected = np.log(clone(model).fit(X, np.exp(y)).predict(X))
    np.testing.assert_allclose(predicted, expected)


@all_three
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_memory_maps_are_as_arrays(name, X, y, seed, dtype, tmp_path):
    X, y = X.astype(dtype), target_for(name, y)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert isinstance(mapped, np.memmap)
    fitted = estimator(name, seed).fit(mapped, y)
    expected = estimator(name, seed).fit(X, y)
    assert answers(fitted, mapped).dtype == dtype
    np.testing.assert_array_equal(answers(fitted, mapped), answers(expected, X))


@all_three
def test_landmarks_given_as_row_numbers_and_as_points(name, X, y, seed):
    y, rows = target_for(name, y), np.array([3, 1, 40, 17, 8])
    by_number = estimator(name, seed, sampler=rows).fit(X, y)
    by_point = estimator(name, seed, sampler=X[rows]).fit(X, y)
    np.testing.assert_array_equal(by_number.landmarks_.indices, rows)
    assert by_point.landmarks_.indices is None
    np.testing.assert_array_equal(by_number.X_fit_, X[rows])
    np.testing.assert_array_equal(by_point.X_fit_, X[rows])
    np.testing.assert_allclose(answers(by_point, X), answers(by_number, X), atol=1e-9)


@all_three
def test_points_that_are_no_rows(name, X, y, rng, seed):
    points = rng.standard_normal((6, N_FEATURES))
    fitted = estimator(name, seed, gamma=GAMMA, sampler=points)
    fitted.fit(X, target_for(name, y))
    K = rbf_kernel(X, points, gamma=GAMMA)
    expected = K @ fitted.dual_coef_ + fitted.intercept_
    np.testing.assert_allclose(answers(fitted, X), expected, atol=1e-9)


@all_three
def test_sampler_values_are_as_their_names(name, X, y, seed):
    y = target_for(name, y)
    by_value = estimator(name, seed, sampler=samplers.Recursive()).fit(X, y)
    by_name = estimator(name, seed, sampler="recursive").fit(X, y)
    assert len(by_value.landmarks_) == N_LANDMARKS
    np.testing.assert_array_equal(answers(by_value, X), answers(by_name, X))


@all_three
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_trace_error": 1e-6}, "max_trace_error=1e-06 was not reached"),
        (
            {"max_spectral_error": 1e-3},
            r"max_spectral_error=0.001 asks for about \d+ landmarks, more than the 5",
        ),
    ],
    ids=["error", "ridge"],
)
def test_a_limit_that_is_too_low_warns_and_fits(name, X, y, seed, options, message):
    fitted = estimator(name, seed, gamma=0.3, n_landmarks=5, **options)
    with pytest.warns(UserWarning, match=message):
        fitted.fit(X, target_for(name, y))
    assert len(fitted.landmarks_) == 5
    assert np.isfinite(answers(fitted, X)).all()


@all_three
def test_as_many_landmarks_as_are_needed(name, rng, seed):
    X = rng.standard_normal((500, 2))
    y = target_for(name, X[:, 0])
    options = {"gamma": 0.1, "n_landmarks": None}
    loose = estimator(name, seed, max_trace_error=0.2, **options).fit(X, y)
    tight = estimator(name, seed, max_trace_error=0.01, **options).fit(X, y)
    assert float(loose.approximation_error_) <= 0.2
    assert float(tight.approximation_error_) <= 0.01
    assert len(loose.landmarks_) < len(tight.landmarks_) < 500
    large = estimator(name, seed, max_spectral_error=20.0, **options).fit(X, y)
    small = estimator(name, seed, max_spectral_error=1.0, **options).fit(X, y)
    assert len(large.landmarks_) < len(small.landmarks_) < 500


@pytest.mark.parametrize("n_landmarks", [50, 1000], ids=["landmarks", "exact"])
@pytest.mark.parametrize("kernel", ["laplacian", "rbf", "linear", "cosine"])
def test_columns_of_sparse_rows_in_any_order(kernel, n_landmarks, rng):
    """As products of sparse matrices have them; the caller's stay as they are."""
    A = sp.csr_matrix(rng.integers(0, 4, (300, 6)) * 1.0)
    X = A @ sp.csr_matrix(np.eye(6) + np.roll(np.eye(6), 2, axis=1))
    assert not X.has_sorted_indices
    before, dense = X.indices.copy(), X.toarray()
    y = np.sin(dense[:, 0])
    options = {"kernel": kernel, "sampler": np.arange(50)}
    if n_landmarks == 1000:
        options = {"kernel": kernel, "n_landmarks": 1000}
    model = KernelRidge(0.1, **options)
    found = model.fit(X, y).predict(X)
    np.testing.assert_allclose(found, model.fit(dense, y).predict(dense), atol=1e-8)
    np.testing.assert_array_equal(X.indices, before)
    np.testing.assert_array_equal(X.toarray(), dense)
