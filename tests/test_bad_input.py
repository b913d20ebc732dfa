"""Bad input gets one clear error: what was given, what is allowed, what to do."""

from __future__ import annotations

import threading

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from lists import (
    DISTANCE_NAMES,
    GAMMA_NAMES,
    HISTOGRAM_NAMES,
    ONE_GAMMA_NAMES,
    RIDGED,
    SAMPLERS,
    but,
    classes,
)
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_info

from nystrom import (
    Nystroem,
    approximate,
    effective_dimension,
    kernels,
    leverage_scores,
    samplers,
    select_landmarks,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((50, 4))
K = rbf_kernel(X)
WORDS = ["abc", "abd", "xyz", "xyw"] * 5

#: scikit-learn's own marks of the data, which come before anything is computed.
OF_THE_DATA = {"n_features_in_", "feature_names_in_"}


def refused(rows, match, error=(ValueError, TypeError), **options):
    """Both ways to fit refuse with this message, and leave the estimator unfitted."""
    options = {"n_components": 5, "random_state": 0} | options
    for method in ("fit", "fit_transform"):
        estimator = Nystroem(**options)
        before = set(vars(estimator))
        with pytest.raises(error, match=match):
            getattr(estimator, method)(rows)
        assert set(vars(estimator)) - before <= OF_THE_DATA
        with pytest.raises(NotFittedError):
            estimator.transform(rows)


def same(x, y):
    return float(x == y)


# Parameters


@pytest.mark.parametrize("n_components", [0, -1, 1.5, "a", True, None, np.nan, [3]])
def test_number_of_components(n_components):
    refused(
        X,
        r"n_components=.* is not allowed; n_components must be a whole number >= 1",
        n_components=n_components,
    )


@pytest.mark.parametrize("ridge", [0, 0.0, -1.0, np.nan, np.inf, "a", [1.0]])
def test_ridge(ridge):
    refused(X, r"max_spectral_error=.* is not allowed; .*> 0", max_spectral_error=ridge)
    refused(
        X,
        r"max_spectral_error=.* is not allowed; .*> 0",
        max_spectral_error=ridge,
        n_components=None,
    )


@pytest.mark.parametrize("ridge", [0, -1.0, np.nan, np.inf, "a"])
def test_ridge_of_a_sampler(ridge):
    for name in RIDGED:
        with pytest.raises(ValueError, match=r"error=.* is not allowed; .*> 0"):
            samplers.NAMES[name](max_spectral_error=ridge)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("rbg", "rbf"),
        ("RBF", "rbf"),
        ("laplace", "laplacian"),
        ("polynomal", "polynomial"),
        ("matern_52", "matern52"),
        ("precomputd", "precomputed"),
        ("gaussian", "rbf"),
        ("Gaussian kernel", "rbf"),
        ("squared_exponential", "rbf"),
        ("squared-exponential", "rbf"),
        ("se", "rbf"),
        ("rbf_kernel", "rbf"),
        ("exponential", "matern12"),
        ("poly3", "poly"),
    ],
)
def test_unknown_kernel(name, nearest):
    message = rf"kernel='{name}' is unknown; did you mean '{nearest}'\? Allowed: "
    refused(X, message, kernel=name)


def test_unknown_kernel_that_is_near_none():
    refused(X, r"kernel='zzz' is unknown\. Allowed: .*'rbf'", kernel="zzz")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("recursvie", "recursive"), ("levrage", "leverage")]
    + [(name.capitalize(), name) for name in SAMPLERS],
)
def test_unknown_sampler(name, nearest):
    message = rf"sampler='{name}' is unknown; did you mean '{nearest}'\? Allowed: "
    refused(X, message, sampler=name)


@pytest.mark.parametrize("kernel", [5, None, 1.5, ["rbf"], {"name": "rbf"}])
def test_kernel_of_another_type(kernel):
    refused(X, r"kernel=.* is not a kernel; pass a name", kernel=kernel)


@pytest.mark.parametrize("name", classes(kernels, kernels.Kernel))
def test_kernel_given_as_a_class(name):
    message = rf"kernel={name} is a class; pass .*\.{name}\("
    refused(X, message, kernel=getattr(kernels, name))


@pytest.mark.parametrize("sampler", [3, None, 1.5, [0.5, 1.5], [True, False], {}])
def test_sampler_of_another_type(sampler):
    refused(X, r"sampler=.* is not a sampler; pass a name", sampler=sampler)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_sampler_given_as_a_class(sampler):
    name = samplers.NAMES[sampler].__name__
    message = rf"sampler={name} is a class; pass {name}\(\)"
    refused(X, message, sampler=samplers.NAMES[sampler])


def test_sampler_that_returns_something_else():
    def rows(kernel, source, n_landmarks, *, seed, engine):
        return np.arange(n_landmarks)

    refused(X, r"returned ndarray; it must return .*Landmarks", sampler=rows)


@pytest.mark.parametrize("empty", [[], X[:0], np.array([], dtype=int)])
def test_no_landmarks_given(empty):
    refused(X, "at least one landmark", sampler=empty)


@pytest.mark.parametrize("row", [50, -1, 10**9])
def test_row_number_outside_the_data(row):
    refused(X, rf"row number {row}, but the data has rows 0 to 49", sampler=[1, row])


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_points_with_another_number_of_features(make):
    message = "have 3 features, but the data has 4"
    refused(X, message, sampler=make(X[:2, :3]))


def test_points_that_are_not_finite():
    refused(X, "(?i)nan|infinity", sampler=np.full((2, 4), np.nan))


def test_points_for_a_precomputed_kernel():
    """Landmarks of a matrix are row numbers: there is nothing else to evaluate."""
    refused(K, "(?i)row numbers", kernel="precomputed", sampler=K[:3])


@pytest.mark.parametrize("sampler", [*but(RIDGED, ["auto"]), [1, 2]], ids=str)
def test_ridge_with_a_sampler_that_has_none(sampler):
    message = r"error=1.0 cannot be combined with the sampler \w+; .*'recursive'"
    refused(X, message, sampler=sampler, max_spectral_error=1.0)


@pytest.mark.parametrize("n_jobs", [0, 1.5, "a", "2", True])
def test_number_of_jobs(n_jobs):
    refused(X, r"n_jobs=.* is not allowed; use None .* >= 1, or -1", n_jobs=n_jobs)


def test_number_of_jobs_at_transform():
    fitted = Nystroem(n_components=5).fit(X).set_params(n_jobs=0)
    with pytest.raises(ValueError, match="n_jobs=0 is not allowed"):
        fitted.transform(X)


@pytest.mark.parametrize("kernel", GAMMA_NAMES)
@pytest.mark.parametrize("gamma", [-1.0, np.nan, np.inf])
def test_gamma_that_is_negative_or_not_finite(kernel, gamma):
    refused(np.abs(X), rf"gamma={gamma} is not allowed", kernel=kernel, gamma=gamma)


@pytest.mark.parametrize("kernel", GAMMA_NAMES)
@pytest.mark.parametrize("gamma", ["scael", "automatic", ""])
def test_gamma_that_is_an_unknown_word(kernel, gamma):
    message = rf"gamma='{gamma}' is unknown; allowed: .*'scale', 'auto', 'median'"
    refused(np.abs(X), message, kernel=kernel, gamma=gamma)


@pytest.mark.filterwarnings("ignore:.*not positive semi-definite")
@pytest.mark.parametrize("kernel", GAMMA_NAMES)
def test_gamma_auto_is_that_of_svc(kernel):
    """1/n_features, also where the kernel has another default."""
    X = np.abs(RNG.standard_normal((50, 4)))
    for rows in (X,) if kernel in HISTOGRAM_NAMES else (X, sp.csr_array(X)):
        auto, number = (
            Nystroem(kernel=kernel, gamma=gamma, n_components=5, random_state=0)
            for gamma in ("auto", 0.25)
        )
        expected = number.fit_transform(rows)
        np.testing.assert_array_equal(auto.fit_transform(rows), expected)


@pytest.mark.parametrize("kernel", DISTANCE_NAMES)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_gamma_for_another_number_of_features(kernel, storage):
    message = "has 2 values, but rows have 4 features"
    refused(storage(X), message, kernel=kernel, gamma=[1.0, 2.0])


@pytest.mark.parametrize("kernel", ONE_GAMMA_NAMES)
def test_gamma_for_each_feature_where_the_kernel_has_only_one(kernel):
    refused(np.abs(X), "gamma", kernel=kernel, gamma=[1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize("kernel", ONE_GAMMA_NAMES)
def test_gamma_median_where_the_kernel_has_no_distance(kernel):
    message = f"gamma='median' is for kernels of a distance, not for kernel='{kernel}'"
    refused(np.abs(X), message, kernel=kernel, gamma="median")


@pytest.mark.parametrize("name", ["degree", "coef0", "gamma"])
@pytest.mark.parametrize("value", ["three", {}])
def test_text_for_a_number_of_the_kernel(name, value):
    refused(X, name, kernel="polynomial", **{name: value})


@pytest.mark.parametrize("name", ["gamma", "degree", "coef0"])
@pytest.mark.parametrize("kernel", ["precomputed", same, kernels.Linear()])
def test_parameters_of_named_kernels_with_another_kernel(name, kernel):
    message = "Don't pass gamma, coef0 or degree to Nystroem"
    refused(K, message, kernel=kernel, **{name: 1.0})


def test_unknown_parameter_of_the_kernel():
    message = r"kernel_params has 'sigma', which kernel='rbf' does not take.*gamma"
    refused(X, message, kernel_params={"sigma": 1.0})


def test_parameters_for_a_kernel_that_has_its_own():
    message = r"kernel_params=.* cannot be combined with the kernel RBF"
    refused(X, message, kernel=kernels.RBF(1.0), kernel_params={"gamma": 1.0})


# The data


NOT_FINITE = [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]
STORAGES = {
    "array": np.asarray,
    "float32": np.float32,
    "csr": sp.csr_array,
    "list": lambda X: X.tolist(),
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
}


@pytest.mark.parametrize(("value", "name"), NOT_FINITE)
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("kernel", ["rbf", "linear", kernels.RBF(1.0), same])
def test_values_that_are_not_finite(value, name, storage, kernel):
    bad = X.copy()
    bad[3, 2] = value
    refused(STORAGES[storage](bad), rf"contains.* {name}", kernel=kernel)


@pytest.mark.parametrize(("value", "name"), NOT_FINITE)
def test_new_rows_that_are_not_finite(value, name):
    bad = X.copy()
    bad[3, 2] = value
    fitted = Nystroem(n_components=5).fit(X)
    with pytest.raises(ValueError, match=f"contains.* {name}"):
        fitted.transform(bad)


@pytest.mark.parametrize(("value", "name"), NOT_FINITE)
def test_precomputed_values_that_are_not_finite(value, name):
    bad = K.copy()
    bad[3, 2] = value
    refused(bad, f"contains.* {name}", kernel="precomputed")
    fitted = Nystroem("precomputed", n_components=5).fit(K)
    few = kernels.PrecomputedAtLandmarks(np.full((2, 5), value))
    for new in (np.full((2, 50), value), few):
        with pytest.raises(ValueError, match=f"contains.* {name}"):
            fitted.transform(new)


@pytest.mark.parametrize("storage", ["array", "float32", "csr", "list", "pandas"])
def test_new_rows_of_another_width(storage):
    fitted = Nystroem(n_components=5).fit(X)
    message = "X has 3 features, but Nystroem is expecting 4 features"
    with pytest.raises(ValueError, match=message):
        fitted.transform(STORAGES[storage](X[:, :3]))


@pytest.mark.parametrize("width", [1, 4, 6, 49, 51])
def test_precomputed_new_rows_of_another_width(width):
    """All training rows or the landmarks: 50 or 5 columns."""
    fitted = Nystroem("precomputed", n_components=5).fit(K)
    with pytest.raises(ValueError, match=rf"X has {width} features.* 50"):
        fitted.transform(np.ones((3, width)))


@pytest.mark.parametrize("kernel", ["rbf", kernels.RBF(1.0), same])
@pytest.mark.parametrize(
    "empty", [np.empty((0, 4)), sp.csr_array((0, 4)), pd.DataFrame(X[:0])]
)
def test_no_rows(kernel, empty):
    refused(empty, "(?i)0 sample.* minimum of 1", kernel=kernel)


@pytest.mark.parametrize("kernel", ["rbf", kernels.RBF(1.0), same])
def test_no_features(kernel):
    refused(np.empty((5, 0)), r"(?i)0 feature.* minimum of 1", kernel=kernel)


@pytest.mark.parametrize("empty", [[], (), np.array([], dtype=object)])
def test_no_objects(empty):
    refused(empty, r"(?i)empty|0 sample|at least one row", kernel=same)


def test_no_new_objects():
    fitted = Nystroem(same, n_components=3).fit(WORDS)
    with pytest.raises(ValueError, match=r"(?i)empty|0 sample|at least one row"):
        fitted.transform([])


@pytest.mark.parametrize("kernel", ["rbf", kernels.RBF(1.0), same, "precomputed"])
@pytest.mark.parametrize("rows", [X[0], X[0].tolist(), X[0].astype(np.float32)])
def test_one_dimension(kernel, rows):
    message = r"Expected 2D array, got 1D array instead(.|\n)*reshape"
    refused(rows, message, kernel=kernel)


def test_one_dimension_at_transform():
    fitted = Nystroem(n_components=5).fit(X)
    with pytest.raises(ValueError, match=r"Expected 2D array, got 1D(.|\n)*reshape"):
        fitted.transform(X[0])


@pytest.mark.parametrize("kernel", ["rbf", kernels.RBF(1.0)])
def test_three_dimensions(kernel):
    refused(X[None], "dim 3|3D", kernel=kernel)


@pytest.mark.parametrize("rows", [None, 3.0, "text"])
def test_what_is_not_rows_at_all(rows):
    refused(rows, "Expected 2D array|rows")


TEXTS = {
    "list": list,
    "array": np.array,
    "array of objects": lambda words: np.array(words, dtype=object),
    "pandas": pd.Series,
}


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("kernel", ["rbf", "linear", kernels.RBF(1.0)], ids=str)
def test_text_where_numbers_are_needed(kind, kernel):
    """Not "reshape your data", which would not help."""
    refused(TEXTS[kind](WORDS), r"(?i)numbers(.|\n)*kernel", kernel=kernel)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("kernel", ["rbf", kernels.RBF(1.0), same])
def test_text_in_a_column(frame, kernel):
    table = frame({"size": [1.0, 2.0, 3.0], "color": ["red", "green", "blue"]})
    refused(table, r"(?i)text|numbers|numeric", kernel=kernel)


def test_text_in_a_list_of_lists():
    refused([["a", "b"], ["c", "d"]], "(?i)numbers|numeric")


def test_text_that_spells_numbers_is_text():
    refused([["1", "2"], ["3", "4"]], "(?i)numbers|numeric")


def test_lists_of_several_lengths_where_numbers_are_needed():
    refused([[1.0, 2.0], [3.0]], "(?i)inhomogeneous|lengths|rows of numbers")


def test_complex_numbers():
    refused(X + 1j, "Complex data not supported")


@pytest.mark.parametrize("kernel", HISTOGRAM_NAMES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_negative_values_for_kernels_of_histograms(kernel, dtype):
    refused(X.astype(dtype), "contains negative values.*>= 0", kernel=kernel)


@pytest.mark.filterwarnings("ignore:The kernel AdditiveChi2")
@pytest.mark.parametrize("kernel", HISTOGRAM_NAMES)
def test_new_negative_values_for_kernels_of_histograms(kernel):
    fitted = Nystroem(kernel, n_components=5).fit(np.abs(X))
    with pytest.raises(ValueError, match="contains negative values"):
        fitted.transform(X)


@pytest.mark.parametrize("kernel", HISTOGRAM_NAMES)
def test_sparse_rows_for_kernels_of_histograms(kernel):
    rows = sp.csr_array(np.abs(X))
    refused(rows, r"dense rows only; call X.toarray\(\)", kernel=kernel)


@pytest.mark.parametrize("shape", [(50, 49), (49, 50), (50, 4)])
def test_precomputed_matrix_that_is_not_square(shape):
    message = r"square matrix .* X has shape"
    refused(np.ones(shape), message, kernel="precomputed")


def test_precomputed_matrix_that_is_sparse():
    refused(sp.csr_array(K), "dense square array", kernel="precomputed")


@pytest.mark.parametrize("method", ["transform", "get_feature_names_out"])
def test_not_fitted(method):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(Nystroem(), method)(X if method == "transform" else None)


def test_unknown_arguments_of_fit_transform():
    with pytest.raises(TypeError, match="takes no sample_weight"):
        Nystroem(n_components=5).fit_transform(X, sample_weight=np.ones(50))


# Weights


BAD_WEIGHTS = [
    (-np.ones(50), "sample_weight must be >= 0"),
    (np.r_[-1.0, np.ones(49)], "sample_weight must be >= 0"),
    (np.zeros(50), "(?i)at least one"),
    (np.ones(49), r"\(49,\).*50"),
    (np.ones((50, 1)), "(?i)1D array"),
    (np.full(50, np.nan), "sample_weight contains NaN"),
    (np.full(50, np.inf), "sample_weight contains infinity"),
    (["a"] * 50, "sample_weight|could not convert"),
]


@pytest.mark.parametrize(("weights", "message"), BAD_WEIGHTS)
def test_weights(weights, message):
    landmarks = select_landmarks(X, n_landmarks=5, random_state=0)
    with pytest.raises(ValueError, match=message):
        select_landmarks(X, n_landmarks=5, sample_weight=weights)
    with pytest.raises(ValueError, match=message):
        leverage_scores(X, ridge=1.0, sample_weight=weights)
    with pytest.raises(ValueError, match=message):
        effective_dimension(X, ridge=1.0, sample_weight=weights)
    with pytest.raises(ValueError, match=message):
        approximate(X, landmarks, sample_weight=weights)


# Kernels that misbehave


@pytest.mark.parametrize("degree", [2.5, 3.1])
def test_power_of_a_negative_number(degree):
    """One error, and no warning of NumPy's before it."""
    refused(
        X, "kernel returned nan or inf.*degree", kernel="poly", degree=degree, coef0=0
    )


@pytest.mark.parametrize("degree", [300, 1000])
def test_power_that_overflows(degree):
    refused(100 * X, "kernel returned nan or inf", kernel="poly", degree=degree)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_callable_that_returns_what_is_not_finite(value):
    refused(X, "kernel returned nan or inf", kernel=lambda x, y: value)


def test_block_kernel_that_returns_another_shape():
    kernel = kernels.blockwise(lambda X, Y: X[:, 0])
    refused(X, r"returned shape .*it must return \(\d+, \d+\)", kernel=kernel)


def test_function_of_two_rows_that_is_marked_blockwise():
    refused(X, "it must return|single rows", kernel=kernels.blockwise(np.vdot))


class KernelFailsError(Exception):
    """Raised by a kernel of the user."""


class FailingKernel:
    """Linear, until its call number `last`."""

    def __init__(self, last=None):
        self.calls, self.last = 0, last

    def __call__(self, X, Y):
        self.calls += 1
        if self.calls == self.last:
            raise KernelFailsError
        return X @ Y.T


def limits():
    return [(info["filepath"], info["num_threads"]) for info in threadpool_info()]


def workers():
    return [t.name for t in threading.enumerate() if t.name.startswith("nystrom")]


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_kernel_that_raises_at_any_time_leaves_nothing_behind(method, n_jobs):
    rows = np.random.default_rng(0).standard_normal((5000, 2))
    before = limits()

    def run(kernel):
        block = kernels.blockwise(kernel, diag=lambda X: np.sum(X * X, axis=1))
        estimator = Nystroem(block, n_components=5, random_state=0, n_jobs=n_jobs)
        return estimator, getattr(estimator, method)

    works = FailingKernel()
    run(works)[1](rows)
    assert works.calls > 5
    for last in range(1, works.calls + 1):
        estimator, fit = run(FailingKernel(last))
        parameters = set(vars(estimator))
        with pytest.raises(KernelFailsError):
            fit(rows)
        assert set(vars(estimator)) - parameters <= OF_THE_DATA
        assert not workers()
        assert limits() == before


def test_failed_refit_does_not_mix_two_fits():
    """The old model as it was, or none; never the old model with the new width."""
    estimator = Nystroem(n_components=5, random_state=0).fit(X)
    Z = estimator.transform(X)
    kernel = kernels.blockwise(FailingKernel(2))
    estimator.set_params(kernel=kernel)
    with pytest.raises(KernelFailsError):
        estimator.fit(np.ones((50, 7)))
    try:
        after = estimator.transform(X)
    except NotFittedError:
        return
    np.testing.assert_array_equal(after, Z)


def test_warning_turned_into_an_error_leaves_nothing_behind():
    estimator = Nystroem("sigmoid", n_components=5)
    before = set(vars(estimator))
    with pytest.raises(UserWarning, match="Sigmoid"):
        estimator.fit(X)
    assert set(vars(estimator)) - before <= OF_THE_DATA
