"""What every estimator and function refuses with one clear error, and what it takes.

Tables of bad values run for all that have the parameter, as `lists.py` finds them. An
error says what was given and what to do; nothing is half fitted after it.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import pickle
import re
import threading
import warnings
from pathlib import Path

import cloudpickle
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from lists import (
    DISTANCE_NAMES,
    ESTIMATORS,
    GAMMA_NAMES,
    HISTOGRAM_NAMES,
    ONE_GAMMA_NAMES,
    RIDGED,
    SAMPLERS,
    but,
    classes,
)
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.decomposition import KernelPCA as SklearnKernelPCA
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import kernels as gp
from sklearn.kernel_approximation import Nystroem as SklearnNystroem
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge
from sklearn.metrics import pairwise
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import cross_val_score
from threadpoolctl import threadpool_info

import nystrom
from nystrom import (
    KernelPCA,
    Nystroem,
    kernels,
    samplers,
    select_landmarks,
    sources,
)
from nystrom.kernels import PrecomputedAtLandmarks

N_ROWS, N_FEATURES, SIZE = 60, 4, 5
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N_ROWS, N_FEATURES))
Y = np.sin(X[:, 0])
K = rbf_kernel(X)
COLUMNS = list("abcd")
FRAME = pd.DataFrame(X, columns=COLUMNS)
WORDS = ["ab", "abc", "bcd", "xyz", "xy", "zab"] * 10
DAYS = pd.date_range("2026-01-01", periods=N_ROWS)


def shared_letters(a, b):
    return float(len(set(a) & set(b)))


# --- all that takes rows ------------------------------------------------------------

MODELS = {type(estimator).__name__: estimator for estimator in reversed(ESTIMATORS)}
SUPERVISED = [name for name, each in MODELS.items() if hasattr(each, "predict")]
SUPERVISED.remove("KernelKMeans")
CLASSIFIERS = [name for name, each in MODELS.items() if is_classifier(each)]
#: What a function needs beside the rows.
NEEDED = {
    "approximate": {"landmarks": select_landmarks(X, n_landmarks=SIZE, random_state=0)},
    "effective_dimension": {"ridge": 1.0},
    "estimate_n_landmarks": {"max_spectral_error": 1.0},
    "leverage_scores": {"ridge": 1.0},
    "select_landmarks": {"n_landmarks": SIZE},
    "spectral_embedding": {"n_landmarks": SIZE, "n_components": 2},
}
FUNCTIONS = {
    name: getattr(nystrom, name)
    for name in nystrom.__all__
    if inspect.isfunction(getattr(nystrom, name))
    and "X" in inspect.signature(getattr(nystrom, name)).parameters
}
EVERYONE = [*MODELS, *FUNCTIONS]
#: All that chooses a kernel for the rows that it is given.
CHOOSERS = [name for name in EVERYONE if name != "approximate"]
#: All that a matrix can be given to, in place of rows.
MATRICES = [name for name in CHOOSERS if name != "KernelCCA"]


def model(name, **options):
    """An estimator on few landmarks of an rbf kernel, so that no mode is exact."""
    size = "n_components" if name == "Nystroem" else "n_landmarks"
    gamma = type(MODELS[name])().gamma
    small = {"kernel": "rbf", "gamma": gamma, size: SIZE, "random_state": 0}
    return clone(MODELS[name]).set_params(**small | options)


def target(name):
    return Y > 0 if name in CLASSIFIERS else Y


def fit(name, rows=X, **options):
    return model(name, **options).fit(rows, target(name))


def answers(fitted, rows):
    """The numbers that an estimator answers with."""
    for method in ("decision_function", "transform", "predict"):
        if hasattr(fitted, method):
            return getattr(fitted, method)(rows)
    raise AssertionError


def takes(name, *parameters):
    """Whether an estimator, its fit or a function has such parameters."""
    if name in FUNCTIONS:
        known = inspect.signature(FUNCTIONS[name]).parameters
    else:
        known = {*MODELS[name].get_params()}
        known |= {*inspect.signature(MODELS[name].fit).parameters}
    return set(parameters) <= set(known)


def having(*parameters):
    return [name for name in EVERYONE if takes(name, *parameters)]


@functools.cache
def fitted_before(name):
    fitted = fit(name)
    return fitted, answers(fitted, X)


def refused(
    name,
    words,
    rows=X,
    y=Ellipsis,
    weight=None,
    error=(ValueError, TypeError),
    **options,
):
    """One clear error, nothing half fitted; what was fitted before still answers."""
    weighted = {} if weight is None else {"sample_weight": weight}
    if name in FUNCTIONS:
        with pytest.raises(error, match=words):
            FUNCTIONS[name](rows, **NEEDED[name] | weighted | options)
        return
    y = target(name) if y is Ellipsis else y
    fresh = model(name, **options)
    before = set(vars(fresh))
    with pytest.raises(error, match=words):
        fresh.fit(rows, y, **weighted)
    assert set(vars(fresh)) == before
    with pytest.raises(NotFittedError):
        answers(fresh, X)
    fitted, expected = fitted_before(name)
    fitted = copy.deepcopy(fitted).set_params(**options)
    fits_and_answers = not weighted and hasattr(fitted, "fit_transform")
    with pytest.raises(error, match=words):
        getattr(fitted, "fit_transform" if fits_and_answers else "fit")(
            rows, y, **weighted
        )
    fitted.set_params(**model(name).get_params(deep=False))
    assert_array_equal(answers(fitted, X), expected)


# --- parameters ---------------------------------------------------------------------

#: Parameters that are True or False.
SWITCHES = [
    (name, parameter)
    for name, each in MODELS.items()
    for parameter, value in each.get_params().items()
    if isinstance(value, bool)
]
RIDGES = ["KernelRidge", "KernelRidgeClassifier"]
WHOLE = "must be a whole number >= 1"
#: Parameter, bad values, what the message says after "is not allowed", and for whom:
#: for all that have it, unless they are named.
NOT_ALLOWED = [
    ("n_components", [0, -1, 1.5, "a", True, [3]], WHOLE, None),
    ("n_components", [None], WHOLE, ["Nystroem", "KernelCCA", "spectral_embedding"]),
    ("n_landmarks", [0, -3, 2.5, "a", True], WHOLE, None),
    ("n_landmarks", [None], WHOLE, [n for n in MODELS if n != "Nystroem"]),
    (
        "n_landmarks",
        [b"ab", bytearray(b"ab"), "55", np.array(5.0)],
        "",
        ["KernelRidgeCV", "KernelRidgeClassifierCV"],
    ),
    ("n_clusters", [0, -2, 2.5, True, None, "many"], WHOLE, None),
    ("n_init", [0, "warn", None, 1.0], "", None),
    ("max_iter", [0, 1.5], "", None),
    ("max_iter", [None], "", ["KernelKMeans", "KernelLogisticRegression"]),
    ("tol", [-1e-4, np.inf, "small", None], "", None),
    ("max_spectral_error", [0, 0.0, -1.0, np.inf, "a", [1.0], True], "> 0", None),
    ("max_trace_error", [0, 1, 3, -0.1, np.inf, "a", [0.1], True], "", None),
    ("ridge", [0, -1.0, np.nan, np.inf, "a", None, True], "> 0", None),
    ("n_jobs", [0, 1.5, "a", "2", True], "use None .* >= 1, or -1", None),
    ("gamma", [0, 0.0, np.float32(0), -1.0, np.nan, np.inf], ">=? 0", None),
    ("degree", [-1, np.inf, True, [2], "three", {}], "", None),
    ("coef0", [np.inf, True, [2], "three", {}], "", None),
    ("kernel_params", [0, (), [], "gamma"], "dict", None),
    (
        "alpha",
        [-1.0, np.nan, np.inf, "a", "0.1", None, True, [True], ["0.1"], [[1.0]]],
        "(>=|>) 0",
        None,
    ),
    ("alpha", [[1.0, -1.0]], "", ["KernelRidge", "KernelCCA"]),
    ("alpha", [0, [1.0, 0.0], [1.0, 2.0, 3.0]], "", ["KernelCCA"]),
    (
        "alphas",
        [0, -1.0, np.nan, np.inf, "a", "0.1", b"1", True, [True], [None], [[1.0]], []],
        "> 0",
        None,
    ),
    ("alphas", [[1.0, 0.0], [1.0, -1.0]], "> 0", None),
    ("C", [0, -1.0, np.inf, "1", [], [1.0, 0.0], [[1.0]]], "", None),
    ("gammas", [[], 0.5, "scale", b"ab"], "", None),
    ("class_weight", [[], (), "Balanced", "blanced", 2.0], "", None),
    ("cv", ["lou", "5"], "use '(gcv', ')?loo'", None),
    ("scoring", ["acuracy", 3], "", None),
    *(
        (name, ["no", "False", 0, 1, None, [], 0.0], "True or", None)
        for name in sorted({parameter for _, parameter in SWITCHES})
    ),
]
#: Parameter, bad value, the whole message or a part of it, and for whom.
MESSAGES = [
    ("gammas", [0.1, 0], "gamma=0 is not allowed", None),
    ("gammas", [0.1, -1], "gamma=-1 is not allowed", None),
    ("gamma", "scael", r"gamma='scael' is unknown; .*'scale', 'auto', 'median'", None),
    ("gamma", "", r"gamma='' is unknown; .*'scale', 'auto', 'median'", None),
    ("gamma", [1.0, 2.0], "2 values, but rows have 4 features", None),
    ("gamma", (1.0, -1.0), "gamma=-1.0 is not allowed", ["KernelCCA"]),
    ("kernel", "zzz", r"kernel='zzz' is unknown\. Allowed: .*'rbf'", None),
    ("kernel", ("rbf", "rfb"), "kernel='rfb' is unknown", ["KernelCCA"]),
    ("kernel_params", {"sigma": 1.0}, r"has 'sigma', which kernel='rbf' .*gamma", None),
    ("sampler", [], "at least one landmark", None),
    ("sampler", X[:0], "at least one landmark", None),
    ("sampler", [1, N_ROWS], "row number 60, but the data has rows 0 to 59", None),
    ("sampler", [1, -1], "row number -1, but the data has rows 0 to 59", None),
    ("sampler", X[:2, :3], "have 3 features, but the data has 4", None),
    ("sampler", sp.csr_array(X[:2, :3]), "have 3 features, but the data has 4", None),
    ("sampler", np.full((2, 4), np.nan), "NaN|nan", None),
    ("eigen_solver", "lapack", "eigen_solver='lapack' is unknown", None),
    ("n_landmarks", [], "n_landmarks is empty", ["KernelRidgeCV"]),
    ("n_clusters", 61, "n_samples=60 should be >= n_clusters=61", None),
    ("alpha", [1.0, 2.0], "alpha has 2 values, but y has 1 targets", RIDGES),
    ("alpha", [], "alpha has 0 values, but y has 1 targets", RIDGES),
    ("form", "printed", "form='printed' is unknown", None),
    ("solver", None, "solver=None is unknown. Allowed: 'auto'", None),
    ("solver", ["cg"], r"solver=\['cg'\] is unknown. Allowed: 'auto'", None),
    ("solver", "full", "solver='full' is unknown", ["KernelRidgeClassifier"]),
    ("class_weight", {7: 1.0}, "not in class_weight", None),
    ("class_weight", {False: -1.0, True: 1.0}, "must be >= 0", None),
    ("class_weight", {False: 0.0, True: 0.0}, "at least one", None),
    ("constants", "teory", r"constants='teory' is unknown.*'theory'", None),
    ("cv", 0, "cv=0 folds cannot be cut", None),
    ("cv", 1, "cv=1 folds cannot be cut from n_samples=60", None),
    ("cv", 61, "cv=61 folds cannot be cut from n_samples=60", None),
    ("cv", True, "cv=True folds cannot be cut", None),
    ("cv", 2.5, "Got 2.5", None),
    ("cv", [], r"cv=\[\] does not split 60 rows", None),
    ("cv", [(np.arange(5), np.arange(0))], "a part is empty", None),
    ("cv", [(np.arange(5), [N_ROWS])], "cv", None),
    ("cv", [(np.arange(5), [-N_ROWS - 1])], "cv", None),
    ("cv", [(np.arange(5), [0.5])], "cv", None),
    ("cv", [1, 2], "cv", None),
    ("cv", [(np.arange(5),)], "cv", None),
]
MESSAGES += [
    ("kernel", value, "is not a kernel; pass a name", None)
    for value in (5, None, 1.5, ["rbf"], {"name": "rbf"})
]
MESSAGES += [
    ("sampler", value, "is not a sampler; pass a name", None)
    for value in (3, None, 1.5, [0.5, 1.5], [True, False], {})
]
MESSAGES += [
    ("kernel", getattr(kernels, name), rf"={name} is a class; pass .*\.{name}\(", None)
    for name in classes(kernels, kernels.Kernel)
]
MESSAGES += [
    (
        "sampler",
        each,
        rf"sampler={each.__name__} is a class; pass {each.__name__}",
        None,
    )
    for each in samplers.NAMES.values()
]
#: Parameter, what was given, what was meant.
TYPING_ERRORS = [
    ("kernel", "rbg", "rbf"),
    ("kernel", "RBF", "rbf"),
    ("kernel", "laplace", "laplacian"),
    ("kernel", "polynomal", "polynomial"),
    ("kernel", "matern_52", "matern52"),
    ("kernel", "precomputd", "precomputed"),
    ("kernel", "gaussian", "rbf"),
    ("kernel", "Gaussian kernel", "rbf"),
    ("kernel", "squared_exponential", "rbf"),
    ("kernel", "squared-exponential", "rbf"),
    ("kernel", "se", "rbf"),
    ("kernel", "rbf_kernel", "rbf"),
    ("kernel", "exponential", "matern12"),
    ("kernel", "poly3", "poly"),
    ("sampler", "recursvie", "recursive"),
    ("sampler", "levrage", "leverage"),
    *(("sampler", name.capitalize(), name) for name in SAMPLERS),
    ("solver", "direkt", "direct"),
]
MESSAGES += [
    (
        name,
        value,
        rf"{name}='{value}' is unknown; did you mean '{meant}'\? Allowed",
        None,
    )
    for name, value, meant in TYPING_ERRORS
]
#: (estimator or function, parameter, bad value, words)
BAD_PARAMETERS = [
    (name, parameter, value, rf"{parameter}=.* is not allowed.*{words}")
    for parameter, values, words, whom in NOT_ALLOWED
    for value in values
    for name in whom or having(parameter)
] + [
    (name, parameter, value, words)
    for parameter, value, words, whom in MESSAGES
    for name in whom or having(parameter)
]


@pytest.mark.parametrize(
    ("name", "parameter", "value", "words"),
    BAD_PARAMETERS,
    ids=[f"{name}-{given}={value!r:.20}" for name, given, value, _ in BAD_PARAMETERS],
)
def test_a_bad_value_of_a_parameter(name, parameter, value, words):
    refused(name, words, **{parameter: value})
    theirs = name == "KernelPCA" and value is True  # a number, to scikit-learn's class
    if name in MODELS and parameter != "n_landmarks" and not theirs:
        exact = {} if name == "Nystroem" else {"n_landmarks": 1000}
        with pytest.raises((ValueError, TypeError), match=f"{parameter}|{words}"):
            fit(name, **exact, **{parameter: value})


#: What no parameter is, and what Python would take for a number, a list or True.
NONSENSE = [b"ab", 1j, np.nan, object(), {"a": 1}.items(), "yes"]


@pytest.mark.parametrize("name", MODELS)
def test_nonsense_is_refused_by_the_name_of_the_parameter(name):
    for parameter in MODELS[name].get_params():
        for value in NONSENSE:
            with pytest.raises((ValueError, TypeError), match=parameter):
                fit(name, **{parameter: value})


@pytest.mark.parametrize(("name", "parameter"), SWITCHES)
def test_a_switch_is_true_or_false(name, parameter):
    more = {"n_landmarks": [3, 5], "cv": 3} if parameter == "prefer_fewer" else {}
    for value in (True, np.False_):
        fit(name, **{parameter: value}, **more)


#: Options that do not go together, what is said, and for whom: all that have them.
POSITIVE = np.abs(X)
CONFLICTS = [
    (
        {"max_spectral_error": 1.0, "max_trace_error": 0.1},
        "max_spectral_error=1.0 and max_trace_error=0.1",
        None,
    ),
    (
        {"kernel": kernels.RBF(1.0), "kernel_params": {"gamma": 1.0}},
        "kernel_params=.* cannot be combined with the kernel RBF",
        None,
    ),
    ({"alpha": 0, "solver": "cg"}, "solver='cg' needs alpha > 0", None),
    (
        {"gamma": 1.0, "gammas": [0.1]},
        r"gamma=1.0 and gammas=\[0.1\] both set the width",
        None,
    ),
    (
        {"gammas": [0.1], "kernel": kernels.RBF(1.0)},
        r"gammas=\[0.1\] cannot be combined with kernel=RBF",
        None,
    ),
    (
        {"gammas": [0.1, 1.0], "kernel": "precomputed"},
        r"gammas=\[0.1, 1.0\] cannot be combined with kernel='precomputed'",
        None,
    ),
    (
        {"prefer_fewer": True, "cv": 5},
        "prefer_fewer=True has no effect .* several",
        None,
    ),
    (
        {"cv": "gcv", "scoring": "r2"},
        "cv='gcv' is not allowed; use 'loo'",
        ["KernelRidgeCV"],
    ),
    (
        {"constants": "practical", "delta": 0.01},
        "delta=0.01 belongs to constants='theory'",
        None,
    ),
    (
        {"n_landmarks": 5, "constants": "theory"},
        r"n_landmarks=5 is too few.*at least \d+",
        None,
    ),
    (
        {"sampler": samplers.Accelerated(), "delta": 0.01},
        "delta=0.01 cannot be combined.*Accelerated",
        ["select_landmarks"],
    ),
    (
        {"n_clusters": 61, "affinity_normalize": True},
        "n_samples=60 should be >= n_clusters=61",
        None,
    ),
    # One error, and no warning of NumPy's before it.
    (
        {"kernel": "poly", "degree": 2.5, "coef0": 0},
        "kernel returned nan or inf.*degree",
        None,
    ),
    (
        {"kernel": "poly", "degree": 300, "gamma": 1e4},
        "kernel returned nan or inf",
        None,
    ),
]
CONFLICTS += [
    (
        {"max_spectral_error": 1.0, "sampler": sampler},
        r"error=1.0 cannot be combined with the sampler \w+; .*'recursive'",
        None,
    )
    for sampler in [*but(RIDGED, ["auto"]), [1, 2]]
]
CONFLICTS += [
    (
        {"max_spectral_error": 1.0, "delta": delta},
        "delta=.* is not allowed.*0 < delta < 1/32",
        ["select_landmarks", "estimate_n_landmarks"],
    )
    for delta in (0, -1, 0.5, 1 / 32, np.nan)
]
CONFLICTS += [
    (
        {"kernel": kernel, parameter: 1.0},
        "Don't pass gamma, coef0 or degree to NAME if",
        ["Nystroem", *(name for name in FUNCTIONS if takes(name, "kernel"))],
    )
    for kernel in ("precomputed", shared_letters, kernels.Linear())
    for parameter in ("gamma", "degree", "coef0")
]
CONFLICTS = [
    (name, options, words.replace("NAME", name))
    for options, words, whom in CONFLICTS
    for name in whom or having(*options)
]


@pytest.mark.parametrize(
    ("name", "options", "words"),
    CONFLICTS,
    ids=[f"{name}-{options!r:.70}" for name, options, _ in CONFLICTS],
)
def test_parameters_that_do_not_go_together(name, options, words):
    refused(name, words, K if options.get("kernel") == "precomputed" else X, **options)


@pytest.mark.parametrize("kernel", GAMMA_NAMES)
@pytest.mark.parametrize("name", ["Nystroem", "KernelRidge", "leverage_scores"])
def test_a_bad_gamma_of_every_kernel(name, kernel):
    given = {"rows": POSITIVE, "kernel": kernel}
    for gamma in (0, 0.0, np.float32(0), -1.0, np.nan, np.inf):
        refused(name, r"gamma=.* is not allowed", gamma=gamma, **given)
    refused(name, r"gamma='scael' is unknown; allowed: .*'a", gamma="scael", **given)
    if kernel in DISTANCE_NAMES:
        for rows in (X, sp.csr_array(X)):
            message = "has 2 values, but rows have 4 features"
            refused(name, message, rows, kernel=kernel, gamma=[1.0, 2.0])
    else:
        assert kernel in ONE_GAMMA_NAMES
        refused(name, "gamma", gamma=[1.0, 2.0, 3.0, 4.0], **given)
        message = f"gamma='median' is for kernels of a distance, not for.*'{kernel}'"
        refused(name, message, gamma="median", **given)


@pytest.mark.parametrize("make", [kernels.RBF, kernels.Laplacian])
def test_a_feature_may_have_no_width_but_not_all_of_them(make):
    found = make((0.5, 0.0, 0.0, 0.0))(X, X[:4])
    assert_allclose(found, make(0.5)(X[:, :1], X[:4, :1]))
    with pytest.raises(ValueError, match="gamma with no number but 0 is not allowed"):
        make((0.0, 0.0, 0.0))


@pytest.mark.parametrize("size", [0, -1, True, 2.0, "5", None])
def test_rules_to_stop_take_counts(size):
    with pytest.raises(ValueError, match=r"n_landmarks=.* is not allowed"):
        samplers.FixedSize(size)
    if size is not None:
        with pytest.raises(ValueError, match=r"at_most=.* is not allowed"):
            samplers.SpectralTolerance(1.0, at_most=size)


@pytest.mark.parametrize("error", [0, -1.0, np.nan, np.inf, "a"])
def test_samplers_take_errors_above_0(error):
    for name in RIDGED:
        with pytest.raises(ValueError, match=r"error=.* is not allowed; .*> 0"):
            samplers.NAMES[name](max_spectral_error=error)


def test_number_of_jobs_after_the_fit():
    for name in MODELS:
        fitted = fit(name).set_params(n_jobs=0)
        with pytest.raises(ValueError, match="n_jobs=0 is not allowed"):
            answers(fitted, X)


@pytest.mark.parametrize("landmarks", ["rbf", 5, [1, 2, 3], np.ones((3, 3)), None])
def test_what_is_not_landmarks(landmarks):
    for name in having("landmarks"):
        if landmarks is not None or name == "approximate":
            refused(name, "(?i)select_landmarks", landmarks=landmarks)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, pd.DataFrame])
def test_landmarks_of_other_rows(kind):
    landmarks = NEEDED["approximate"]["landmarks"]
    matrix = select_landmarks(K, kernel="precomputed", n_landmarks=20)
    for name in having("landmarks"):
        narrow = kind(X[:, :2])
        message = "X has 2 features, but the landmarks have 4"
        refused(name, message, narrow, landmarks=landmarks)
        refused(name, "(?i)numbers", ["a", "b"], landmarks=landmarks)
        for size in (10, N_ROWS + 1):  # row numbers of one matrix mean nothing there
            refused(name, f"{N_ROWS}", np.eye(size), landmarks=matrix)


# --- rows ---------------------------------------------------------------------------


def with_value(value, places=((3, 2),)):
    rows = X.copy()
    rows[tuple(zip(*places, strict=True))] = value
    return rows


EMPTY = "0 sample|at least one row"
TEXT = "numbers"
#: Rows, and what is said of them.
BAD_ROWS = {
    "no rows": (X[:0], EMPTY),
    "no sparse rows": (sp.csr_array((0, 4)), EMPTY),
    "no rows in a frame": (FRAME[:0], EMPTY),
    "nothing": ([], "empty|Expected 2D array"),
    "no features": (np.empty((60, 0)), "0 feature.* minimum of 1"),
    "one row": (X[0], r"Expected 2D array, got 1D array instead(.|\n)*reshape"),
    "one list": (Y.tolist(), r"Expected 2D array, got 1D(.|\n)*reshape"),
    "three dimensions": (X[None], "dim 3"),
    "None": (None, "Expected 2D array|rows"),
    "a number": (3.0, "Expected 2D array|rows"),
    "a word": ("hello", r"X='hello' is text that names no file; .*\.csv"),
    "complex": (X + 1j, "Complex data not supported"),
    "words": (WORDS, "needs rows of numbers, but X holds str(.|\n)*kernel"),
    "array of words": (np.array(WORDS), r"numbers(.|\n)*kernel"),
    "object words": (np.array(WORDS, dtype=object), r"numbers(.|\n)*kernel"),
    "series of words": (pd.Series(WORDS), r"numbers(.|\n)*kernel"),
    "lists of words": ([["a", "b"]] * 60, "numbers|numeric"),
    "words that spell numbers": ([["1", "2"]] * 60, "numbers|numeric"),
    "text": (np.array([["1", "2"], ["3", "x"]] * 30), "X holds text.*Encode"),
    "a column of text": (
        FRAME.assign(d=["u", "v", "w"] * 20),
        r"'u' in the column 'd'\. Encode",
    ),
    "a category": (
        FRAME.assign(d=pd.Categorical(["1", "v", "w"] * 20)),
        r"text where numbers are needed: 'v' in the column 'd'\. Encode",
    ),
    "a column of text of polars": (
        pl.from_pandas(FRAME.assign(d=["u", None] * 30)),
        "'u' in the column 'd'",
    ),
    "rows of several lengths": (
        [[1.0, 2.0], [3.0]] * 30,
        "all of one length; row 0 of X has",
    ),
    "tuples of several lengths": (
        [(1.0,), (3.0, 4.0)] * 30,
        "all of one length; row 0 of X has",
    ),
    "dates": (DAYS.to_numpy()[:, None], r"X holds datetime64\[.*not numbers"),
    "lazy": (
        pl.DataFrame(X, schema=COLUMNS).lazy(),
        r"X is a LazyFrame.* pass X\.collect\(\)",
    ),
    "dict": ({"a": X[:, 0], "b": X[:, 1]}, r"X is a dict; .*DataFrame\(X\)"),
    "generator": ((row for row in X), r"X is a generator.*list\(X\)"),
    "set": ({1.0, 2.0}, "X is a set"),
    "records": (
        np.zeros(60, dtype=[("a", float), ("b", float)]),
        "records with the fields a, b.*structured_to_unstructured",
    ),
    "masked": (np.ma.masked_greater(X, 2.0), "X has masked values.*filled"),
}
for kind, times in {
    "dates": DAYS,
    "dates with a zone": DAYS.tz_localize("Europe/Vienna"),
    "durations": DAYS - DAYS[0],
}.items():
    words = "X has the column 'when' of .*(datetime|timedelta).* days: "
    BAD_ROWS[f"{kind} alone"] = pd.DataFrame({"when": times}), words
    BAD_ROWS[f"{kind} in a frame"] = FRAME.assign(when=times), words
for kind, times in {
    "Date": pl.Series("when", DAYS.to_numpy()).cast(pl.Date),
    "Datetime": pl.Series("when", DAYS.to_numpy()),
    "Duration": pl.Series("when", (DAYS - DAYS[0]).to_numpy()),
}.items():
    rows = pl.DataFrame(X, schema=COLUMNS).with_columns(times)
    BAD_ROWS[f"polars {kind}"] = rows, f"X has the column 'when' of {kind}"
#: How rows are stored, and the name of the column 2.
STORED = {
    "array": (lambda rows: rows, 2),
    "float32": (np.float32, 2),
    "list": (np.ndarray.tolist, 2),
    "objects": (lambda rows: np.where(np.isnan(rows), None, rows).astype(object), 2),
    "sparse": (sp.csr_array, 2),
    "pandas": (lambda rows: pd.DataFrame(rows, columns=COLUMNS), "'c'"),
    "nullable": (
        lambda rows: pd.DataFrame(rows, columns=COLUMNS).convert_dtypes(),
        "'c'",
    ),
    "polars": (lambda rows: pl.DataFrame(rows, schema=COLUMNS), "'c'"),
}
for kind, (store, column) in STORED.items():
    rows = store(with_value(np.nan, [(17, 2), (40, 0)]))
    words = rf"X contains NaN: row 17, column {column} \(2 rows have such values\)\. "
    words += "Impute it, .*SimpleImputer.* drop such rows, .*HistGradientBoosting"
    BAD_ROWS[f"NaN in {kind}"] = rows, words
for kind in ("array", "float32", "sparse", "pandas", "polars", "list"):
    store, column = STORED[kind]
    rows = store(with_value(-np.inf if kind == "array" else np.inf, [(5, 2)]))
    words = rf"X contains infinity: row 5, column {column}\. Replace it"
    BAD_ROWS[f"infinity in {kind}"] = rows, words


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("kind", BAD_ROWS)
@pytest.mark.parametrize("name", EVERYONE)
def test_bad_rows(name, kind):
    rows, words = BAD_ROWS[kind]
    n = rows.shape[0] if hasattr(rows, "shape") else N_ROWS
    refused(name, words, rows, y=target(name)[:n])
    if name in MODELS and "words" not in kind and "lengths" not in kind:
        with pytest.raises(ValueError, match=words):
            answers(fitted_before(name)[0], rows)


@pytest.mark.parametrize("kernel", [kernels.RBF(1.0), "linear", shared_letters])
@pytest.mark.parametrize(
    "kind", [k for k in BAD_ROWS if k.startswith(("NaN", "infinity", "no", "one"))]
)
def test_bad_rows_of_other_kernels(kind, kernel):
    rows, words = BAD_ROWS[kind]
    refused("Nystroem", words, rows, kernel=kernel)


@pytest.mark.filterwarnings("ignore:The kernel AdditiveChi2")
@pytest.mark.parametrize("kernel", HISTOGRAM_NAMES)
@pytest.mark.parametrize("name", [*MODELS, "leverage_scores", "effective_dimension"])
def test_bad_rows_of_histograms(name, kernel):
    refused(name, "contains negative values.*>= 0", kernel=kernel)
    rows = np.float32(X)
    refused(name, "contains negative values.*>= 0", rows, kernel=kernel)
    rows = sp.csr_array(POSITIVE)
    refused(name, r"dense rows only; call X.toarray\(\)", rows, kernel=kernel)
    if name in MODELS and name != "KernelCCA":
        with pytest.raises(ValueError, match="contains negative values"):
            answers(fit(name, POSITIVE, kernel=kernel), X)


def test_values_of_a_source_that_are_not_numbers():
    """A source is not read through beforehand; its kernel values are checked."""
    for name in CHOOSERS:
        rows = sources.DenseRows(with_value(np.nan))
        refused(name, "kernel returned nan or inf", rows, gamma=1.0)


@pytest.mark.parametrize("storage", [np.asarray, np.float32, np.ndarray.tolist])
@pytest.mark.parametrize("name", MODELS)
def test_new_rows_of_another_width(name, storage):
    for kind in (storage, sp.csr_array, pd.DataFrame):
        message = f"X has 3 features, but {name} is expecting 4 features"
        with pytest.raises(ValueError, match=message):
            answers(fitted_before(name)[0], kind(X[:, :3]))


@pytest.mark.parametrize("name", MODELS)
def test_answers_before_a_fit(name):
    asked = "predict", "decision_function", "predict_proba", "transform", "score"
    for method in filter(functools.partial(hasattr, model(name)), asked):
        with pytest.raises(NotFittedError, match=f"This {name} instance is not fitted"):
            getattr(model(name), method)(X, *[Y > 0] * (method == "score"))


@pytest.mark.parametrize("name", ["Nystroem", "KernelPCA", "KernelCCA"])
def test_unknown_arguments_of_fit_transform(name):
    with pytest.raises(TypeError, match="takes no sample_weight"):
        model(name).fit_transform(X, Y, sample_weight=np.ones(N_ROWS))


# --- targets ------------------------------------------------------------------------

REGRESSORS = ["KernelRidge", "KernelRidgeCV"]
PREDICTORS = [*REGRESSORS, *CLASSIFIERS]
WITH_TARGETS = [*PREDICTORS, "KernelCCA"]
BAD_TARGETS = {
    "None": (None, "requires y to be passed, but the target y is None", WITH_TARGETS),
    "none": ([], "inconsistent numbers of samples.*60, 0|0 sample", PREDICTORS),
    "three dimensions": (np.zeros((60, 1, 1)), "dim 3|Unknown label", PREDICTORS),
    "no columns": (np.zeros((60, 0)), r"0 feature.*\(60, 0\)|Unk.* label", PREDICTORS),
    "text": (["low", "high"] * 30, r"y holds .* not a number: [^.]*\. Enc", REGRESSORS),
    "ragged": ([[1], [1, 2]] * 30, r"y holds .* not a number: [^.]*\. Enc", REGRESSORS),
    "text in an array": (np.array(["low", "high"] * 30), "^(?!X).*y", REGRESSORS),
    "sparse": (sp.csr_array(Y[:, None]), r"y is sparse; .*y\.toarray\(\)", REGRESSORS),
    "dates": (DAYS, r"y holds datetime64.*not numbers", REGRESSORS),
    "a series of dates": (pd.Series(DAYS), r"y holds datetime64.*numbers", REGRESSORS),
    "an array of dates": (DAYS.to_numpy(), r"y holds datetime64.*numbers", REGRESSORS),
    "lazy": (pl.DataFrame({"y": Y}).lazy(), r"LazyFrame.*collect\(\)", WITH_TARGETS),
    "numbers": (Y, "Unknown label type: continuous", CLASSIFIERS),
    "several labels": (
        (X > 0).astype(int),
        "several labels per row.*MultiOutput",
        ["KernelLogisticRegression", "KernelRidgeClassifierCV"],
    ),
    "NaN in two columns": (
        with_value(np.nan)[:, 1:3],
        "Input y contains NaN",
        REGRESSORS,
    ),
    "NaN in the second view": (
        with_value(np.nan, [(7, 1)]),
        r"y contains NaN: row 7, column 1\. Drop",
        ["KernelCCA"],
    ),
}
for n in (1, 59, 61):
    words = rf"inconsistent numbers of samples: \[60, {n}\]\. y has one entry"
    BAD_TARGETS[f"{n}"] = np.arange(n) % 2, words, WITH_TARGETS
for label in (1, 0, "a", 2.0):
    words = rf"y has one class, .*{label}.*; at least two classes are needed"
    BAD_TARGETS[f"only {label!r}"] = [label] * 60, words, CLASSIFIERS
for value in (None, np.nan, pd.NA):
    labels = np.array(["a", "b"] * 30, dtype=object)
    labels[7] = value
    words = "no label in row 7, .*drop such rows"
    BAD_TARGETS[f"{value} among labels"] = labels, words, CLASSIFIERS
    BAD_TARGETS[f"{value} in a series"] = pd.Series(labels), words, CLASSIFIERS
    given = np.where(Y > 0, 1.0, 0.0).astype(object)
    given[[9, 30]] = value
    words = r"(Input y contains NaN: row|y has no label in row) 9\b.*[dD]rop such"
    BAD_TARGETS[f"{value} among numbers"] = given, words, PREDICTORS
for value, word in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
    given = np.where(Y > 0, 1.0, 0.0)
    given[[9, 30]] = value
    words = rf"Input y contains {word}: row 9 \(2 rows have such values\)\. Drop"
    BAD_TARGETS[f"{value} in an array"] = given, words, PREDICTORS
    BAD_TARGETS[f"{value} in a series"] = pd.Series(given), words, PREDICTORS


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for kind in BAD_TARGETS for name in BAD_TARGETS[kind][2]],
)
def test_bad_targets(name, kind, tmp_path):
    y, words, _ = BAD_TARGETS[kind]
    np.save(tmp_path / "X.npy", X)
    for rows in (X, sp.csr_array(X), FRAME, X.tolist(), tmp_path / "X.npy"):
        refused(name, words, rows, y=y)
    refused(name, words, WORDS, y=y, kernel=shared_letters)


def test_another_number_of_alphas_than_targets():
    message = "alpha has 2 values, but y has 3 targets"
    refused("KernelRidge", message, y=X[:, :3], alpha=[1.0, 2.0])


# --- weights ------------------------------------------------------------------------

BAD_WEIGHTS = {
    "negative": (-np.ones(60), "sample_weight must be >= 0"),
    "one negative": (np.r_[-1.0, np.ones(59)], "sample_weight must be >= 0"),
    "zeros": (np.zeros(60), "at least one"),
    "too few": (np.ones(59), r"sample_weight.shape == \(59,\), expected \(60,\)"),
    "a column": (np.ones((60, 1)), "must be 1D"),
    "nan": (np.full(60, np.nan), "sample_weight contains NaN"),
    "inf": (np.full(60, np.inf), "sample_weight contains infinity"),
    "text": (["a"] * 60, "[Ss]ample.?weight"),
    "None": ([None] * 60, "[Ss]ample.?weight"),
    "ragged": ([[1], [1, 2]] * 30, "[Ss]ample.?weight"),
    "a word": ("a", "[Ss]ample.?weight"),
}


@pytest.mark.parametrize("kind", BAD_WEIGHTS)
@pytest.mark.parametrize("name", having("sample_weight"))
def test_bad_weights(name, kind):
    weight, words = BAD_WEIGHTS[kind]
    refused(name, words, weight=weight)


def test_classes_and_folds_without_any_weight():
    weight = np.r_[np.zeros(30), np.ones(30)]
    splits = [(np.arange(30, 60), np.arange(30))]
    message = "A split has only rows of weight 0"
    refused("KernelRidgeCV", message, weight=weight, cv=splits)
    weight, message = (Y <= 0).astype(float), "The class True has no row of weight"
    refused("KernelLogisticRegression", message, weight=weight)


# --- kernels that misbehave ---------------------------------------------------------


def returning(value):
    def kernel(x, y):
        return value

    return kernel


BLOCKS = "is a function of two blocks .*"
BAD_KERNELS = [
    (
        pairwise.rbf_kernel,
        BLOCKS + r"the name 'rbf', or nystrom\.kernels\.blockwise\(rbf_k",
    ),
    (pairwise.laplacian_kernel, BLOCKS + "the name 'laplacian', or"),
    (pairwise.cosine_similarity, BLOCKS + "the name 'cosine', or"),
    (pairwise.euclidean_distances, BLOCKS + r"pass nystrom\.kernels\.blockwise"),
    (
        functools.partial(pairwise.rbf_kernel, gamma=2.0),
        BLOCKS + "the name 'rbf', or",
    ),
    (returning(np.nan), "kernel returned nan or inf"),
    (returning(np.inf), "kernel returned nan or inf"),
    (returning("abc"), "The kernel kernel returned 'abc' for two"),
    (returning(None), "The kernel kernel returned None for two"),
    (returning(1j), "The kernel kernel returned 1j for two"),
    (returning(np.ones(3)), r"returned a ndarray of shape \(3,\) for two"),
    (returning([1.0, 2.0]), r"returned a list of shape \(2,\) for two"),
    (
        returning(sp.csr_array(np.eye(1))),
        r"returned a csr_array of shape \(1, 1\) for two",
    ),
    (returning("x" * 99), "returned a str for two"),
    (
        kernels.blockwise(lambda X, Y: np.full((len(X), len(Y)), "a")),
        "<U1 values.* real numbers",
    ),
    (kernels.blockwise(lambda X, Y: (X @ Y.T) * 1j), "complex128 values.* real numb"),
    (kernels.blockwise(returning(None)), "returned None for blocks"),
    (kernels.blockwise(returning("text")), "returned 'text' for blocks"),
    (
        kernels.blockwise(lambda X, Y: X[:, 0]),
        r"returned shape .*it must return \(\d+, \d+\)",
    ),
    (kernels.blockwise(np.vdot), "it must return|single rows"),
]


@pytest.mark.parametrize(("kernel", "words"), BAD_KERNELS)
@pytest.mark.parametrize("name", ["Nystroem", "KernelRidge", "select_landmarks"])
def test_bad_kernels(name, kernel, words):
    refused(name, words, kernel=kernel)


def test_an_error_of_the_users_kernel_is_theirs_with_a_hint():
    def kernel(X, Y):
        return np.exp(-((X[:, None] - Y[None]) ** 2).sum(axis=2))

    with pytest.raises(IndexError) as caught:
        fit("Nystroem", kernel=kernel)
    (note,) = caught.value.__notes__
    assert "kernel=kernel was called with two rows" in note
    assert "kernels.blockwise" in note
    fit("Nystroem", kernel=kernels.blockwise(kernel))


def test_a_sampler_that_returns_something_else():
    def rows(kernel, source, n_landmarks, *, seed, engine):
        return np.arange(n_landmarks)

    for name in having("sampler"):
        refused(name, "returned ndarray; it must return .*Landmarks", sampler=rows)


class KernelFailsError(Exception):
    """Raised by a kernel of the user."""


class FailingKernel:
    """Linear, up to its call number `last`."""

    def __init__(self, last=None):
        self.calls, self.last = 0, last

    def __call__(self, X, Y):
        self.calls += 1
        if self.last is not None and self.calls >= self.last:
            raise KernelFailsError
        return X @ Y.T


def limits():
    return [(info["filepath"], info["num_threads"]) for info in threadpool_info()]


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_kernel_that_fails_at_any_time_leaves_nothing_behind(method, n_jobs):
    rows = np.random.default_rng(0).standard_normal((5000, 2))
    before = limits()

    def run(kernel):
        block = kernels.blockwise(kernel, diag=lambda X: np.sum(X * X, axis=1))
        estimator = model("Nystroem", kernel=block, n_jobs=n_jobs)
        return estimator, getattr(estimator, method)

    works = FailingKernel()
    run(works)[1](rows)
    assert works.calls > 5
    for last in range(1, works.calls + 1):
        estimator, fit = run(FailingKernel(last))
        parameters = set(vars(estimator))
        with pytest.raises(KernelFailsError):
            fit(rows)
        assert set(vars(estimator)) == parameters
        assert not [t for t in threading.enumerate() if t.name.startswith("nystrom")]
        assert limits() == before


@pytest.mark.parametrize("name", MODELS)
def test_a_kernel_that_fails_midway_leaves_the_old_fit(name):
    """Never the old model with the new width."""
    for last in (1, 2, 3):
        kernel = kernels.blockwise(FailingKernel(last))
        given = {"kernel": kernel, "sampler": np.arange(5), "error": KernelFailsError}
        refused(name, None, X[:, :3], **given)


def test_a_warning_turned_into_an_error_leaves_nothing_behind():
    for name in ("Nystroem", "KernelRidge", "KernelPCA"):
        refused(name, "Sigmoid", kernel="sigmoid", error=UserWarning)


# --- precomputed kernels ------------------------------------------------------------


@pytest.mark.parametrize("name", MATRICES)
def test_bad_matrices(name):
    given = {"kernel": "precomputed"}
    for shape in ((60, 59), (60, 4)):
        message = rf"square matrix .* X has shape \({shape[0]}, {shape[1]}\)"
        refused(name, message, np.ones(shape), **given)
    refused(name, "square matrix|inconsistent", np.ones((59, 60)), **given)
    refused(name, "dense square array", sp.csr_array(K), **given)
    refused(name, r"Expected 2D array, got 1D(.|\n)*reshape", Y, **given)
    for value, word in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
        bad = K.copy()
        bad[3, 2] = value
        refused(name, f"contains.* {word}", bad, **given)
    if takes(name, "sampler"):  # there is nothing else to evaluate
        refused(name, "(?i)row numbers", K, sampler=K[:3], **given)


MATRIX_MODELS = [name for name in MATRICES if name in MODELS]


@pytest.mark.parametrize("name", MATRIX_MODELS)
def test_new_rows_of_a_matrix(name, tmp_path):
    """Against all training rows or, if marked, the landmarks; refused, not guessed."""
    fitted = fit(name, K, kernel="precomputed")
    S = fitted.landmarks_.indices
    ask = (
        fitted.predict if name == "KernelKMeans" else functools.partial(answers, fitted)
    )
    expected = ask(K[:7])
    part = K[:7, S]
    for kind in (np.asarray, np.ndarray.tolist, pd.DataFrame):
        assert_array_equal(ask(kind(K[:7])), expected)
        assert_array_equal(ask(PrecomputedAtLandmarks(kind(part))), expected)
        message = rf"X has {SIZE} features, .* {N_ROWS}: .*all training rows.*"
        message += r"kernels\.PrecomputedAtLandmarks\(X\)"
        for columns in (np.arange(SIZE), S):
            with pytest.raises(ValueError, match=message):
                ask(kind(K[:5, columns]))
    for width in (1, SIZE - 1, SIZE + 1, N_ROWS - 1, N_ROWS + 1):
        with pytest.raises(ValueError, match=rf"X has {width} features.* {N_ROWS}"):
            ask(np.ones((3, width)))
    for width in (1, SIZE - 1, SIZE + 1, N_ROWS):
        message = rf"AtLandmarks has values of shape \(5, {width}\).* {SIZE}"
        with pytest.raises(ValueError, match=message):
            ask(PrecomputedAtLandmarks(K[:5, :width]))
    for new in (sp.csr_array(K[:5]), PrecomputedAtLandmarks(sp.csr_array(part))):
        with pytest.raises(ValueError, match=r"dense array.* sparse matrix.*toarray"):
            ask(new)
    np.save(tmp_path / "new.npy", K[:5])
    with pytest.raises(ValueError, match=r"dense.* a source, or a file\. Load it"):
        ask(tmp_path / "new.npy")
    for value, word in ((np.nan, "NaN"), (np.inf, "infinity")):
        for new in (np.full((2, 60), value), PrecomputedAtLandmarks(0 * part + value)):
            with pytest.raises(ValueError, match=f"contains.* {word}"):
                ask(new)
    with pytest.raises(ValueError, match="AtLandmarks is for kernel='precomputed'"):
        answers(fitted_before(name)[0], PrecomputedAtLandmarks(part))


# --- names of columns ---------------------------------------------------------------

NAMED = ["a", "b", "größe", "d"]


@pytest.fixture
def frame():
    return pd.DataFrame(X, columns=NAMED)


@pytest.fixture
def fitted(frame, tmp_path):
    frame.assign(y=Y).to_parquet(tmp_path / "rows.parquet")
    rows = sources.open(tmp_path / "rows.parquet", target="y")
    return model("KernelRidge").fit(rows)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("name", MODELS)
def test_frames_keep_their_names(name, kind):
    table = kind(dict(zip(COLUMNS, X.T, strict=True)))
    y = target(name) if name == "KernelCCA" else kind({"y": target(name)})["y"]
    fitted = model(name).fit(table, y)
    assert list(fitted.feature_names_in_) == COLUMNS
    assert_array_equal(answers(fitted, table), fitted_before(name)[1])
    for columns in ("abce", "dcba"):
        other = kind(dict(zip(columns, X.T, strict=True)))
        with pytest.raises(ValueError, match="feature names should match"):
            answers(fitted, other)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        answers(fitted, X)
    with pytest.warns(UserWarning, match="fitted without feature names"):
        answers(fitted_before(name)[0], table)
    fitted.fit(X[:, :3], target(name))
    assert not hasattr(fitted, "feature_names_in_")
    assert len(answers(fitted, X[:, :3])) == N_ROWS


def test_names_of_a_file_are_kept(fitted, frame, tmp_path):
    assert fitted.feature_names_in_.tolist() == NAMED
    nystrom.save(fitted, tmp_path / "model.nystrom")
    loaded = nystrom.load(tmp_path / "model.nystrom")
    assert loaded.feature_names_in_.tolist() == NAMED
    np.save(tmp_path / "new.npy", X)
    with warnings.catch_warnings():  # rows of a file need not have names
        warnings.simplefilter("error")
        assert_array_equal(loaded.predict(tmp_path / "new.npy"), fitted.predict(frame))


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
def test_a_path_gives_the_columns_that_were_fitted(fitted, frame, ending, tmp_path):
    """In their order, whatever else there is."""
    path = tmp_path / f"new.{ending}"
    other = frame[NAMED[::-1]].assign(y=Y, text="none")
    if ending == "csv":
        other.to_csv(path, index=False)
    else:
        getattr(other, f"to_{ending}")(path)
    assert_allclose(fitted.predict(path), fitted.predict(frame), rtol=1e-12)
    assert fitted.score(path, Y) == pytest.approx(fitted.score(frame, Y))
    if ending == "parquet":
        for each in (Nystroem(n_components=3), KernelPCA(3, n_landmarks=400)):
            each.set_params(random_state=0).fit(tmp_path / "rows.parquet")
            expected = each.transform(frame.assign(y=Y))
            assert_allclose(each.transform(path), expected, atol=1e-12)


def test_columns_in_another_order_are_refused(fitted, frame, tmp_path):
    path = tmp_path / "new.parquet"
    other = frame[["b", "a", "größe", "d"]]
    other.to_parquet(path)
    message = "during fit: their order is another.*columns"
    with pytest.raises(ValueError, match=message):
        fitted.predict(sources.open(path))
    with pytest.raises(ValueError, match="their order is another"):
        fitted.predict(pa.Table.from_pandas(other))
    frame.rename(columns={"b": "c"}).to_parquet(path)
    for each in (fitted, model("KernelRidge").fit(frame, Y)):
        with pytest.raises(ValueError, match="'b' is missing"):
            each.predict(path)
    other.to_parquet(path)
    parts = [sources.open(tmp_path / "rows.parquet", columns=NAMED), sources.open(path)]
    with pytest.raises(ValueError, match="a, b, größe, d and b, a, größe, d; open all"):
        sources.ConcatenatedRows(parts)
    frame.to_parquet(tmp_path / "rows.parquet")
    both = sources.open([tmp_path / "rows.parquet", path])  # by name, if together
    assert_array_equal(both.rows(60, 120), X)


def test_dask_frames_have_names(frame):
    dask_frame = pytest.importorskip("dask.dataframe")
    lazy = dask_frame.from_pandas(frame.assign(y=Y, w=np.abs(Y)), npartitions=3)
    found = model("KernelRidge").fit(lazy[NAMED], lazy["y"], sample_weight=lazy["w"])
    expected = model("KernelRidge").fit(frame, Y, sample_weight=np.abs(Y))
    assert found.feature_names_in_.tolist() == NAMED
    assert_array_equal(found.landmarks_.indices, expected.landmarks_.indices)
    answer = found.predict(lazy[NAMED]).compute()
    assert_allclose(answer, expected.predict(frame), rtol=1e-9)
    with pytest.raises(ValueError, match="their order is another"):
        found.predict(lazy[["b", "a", "größe", "d"]])
    with pytest.raises(ValueError, match=r"y holds datetime64.* not numbers"):
        model("KernelRidge").fit(lazy[NAMED], lazy["y"].astype("datetime64[ns]"))


def test_batches_of_a_stream_may_be_files(frame, tmp_path):
    path = tmp_path / "part.parquet"
    found, expected = model("KernelRidge"), model("KernelRidge")
    for part in (slice(0, 20), slice(20, 40), slice(40, 60)):
        frame.assign(y=Y)[part].to_parquet(path)
        found.partial_fit(sources.open(path, target="y"))
        expected.partial_fit(frame[part], Y[part])
    assert_allclose(found.predict(frame), expected.predict(frame), rtol=1e-9)
    found.partial_fit(path, Y[:20])  # by the names that were fitted
    other = sources.open(path, target="y", columns=["b", "a", "größe", "d"])
    with pytest.raises(ValueError, match="their order is another"):
        found.partial_fit(other)
    with pytest.raises(ValueError, match="requires y to be passed"):
        model("KernelRidge").partial_fit(frame)


# --- what is taken ------------------------------------------------------------------

WHOLE_ROWS = RNG.integers(0, 9, (N_ROWS, N_FEATURES))


def read_only(rows):
    rows.setflags(write=False)
    return rows


#: The same rows, to the last bit of every answer.
STORAGES = {
    "Fortran order": np.asfortranarray,
    "read only": lambda rows: read_only(rows.copy()),
    "every second row": lambda rows: np.repeat(rows, 2, axis=0)[::2],
    "every second column": lambda rows: np.repeat(rows, 2, axis=1)[:, ::2],
    "backwards": lambda rows: rows[::-1].copy()[::-1],
    "list of lists": np.ndarray.tolist,
    "list of arrays": list,
    "objects": lambda rows: rows.astype(object),
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "mixed numbers": lambda rows: pd.DataFrame(rows).astype({0: "float32", 1: int}),
    "text in a frame": lambda rows: pd.DataFrame(rows).astype(str),
    "big endian": lambda rows: rows.astype(">f8"),
    "int64": np.int64,
    "uint8": np.uint8,
    "nothing masked": lambda rows: np.ma.masked_greater(rows, 99),
    "source": sources.DenseRows,
}


@pytest.mark.filterwarnings("ignore:X (has feature|does not have valid) names")
@pytest.mark.parametrize("name", MODELS)
def test_storage_changes_no_bit(name, tmp_path):
    rows = WHOLE_ROWS.astype(float)
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    plain = fit(name, rows)
    expected = answers(plain, rows)
    for stored in (mapped, *(store(rows) for store in STORAGES.values())):
        found = fit(name, stored)
        answer = answers(found, stored)
        assert_array_equal(answer, expected)
        assert type(answer) is np.ndarray
        assert answer.dtype == np.float64
    binary = WHOLE_ROWS > 4
    expected = answers(fit(name, binary.astype(float)), binary)
    assert_array_equal(answers(fit(name, binary), binary), expected)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "KernelCCA"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "cosine", "matern52"])
def test_sparse_rows_are_as_dense_ones(name, kernel):
    rows = np.where(np.abs(X) > 0.7, X, 0)
    S = [np.flatnonzero(rows[:, j])[0] for j in range(N_FEATURES)]
    given = {"kernel": kernel, "gamma": 0.1, "sampler": S}
    dense = fit(name, rows, **given)
    expected = answers(dense, rows)
    for make in (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array):
        stored = fit(name, make(rows), **given)
        assert sp.issparse(stored.landmarks_.points)
        for found in (
            answers(stored, make(rows)),
            answers(stored, rows),
            answers(dense, make(rows)),
        ):
            assert_allclose(found, expected, atol=1e-7)


@pytest.mark.parametrize("size", [50, 1000], ids=["landmarks", "exact"])
@pytest.mark.parametrize("kernel", ["laplacian", "rbf", "linear", "cosine"])
def test_columns_of_sparse_rows_in_any_order(kernel, size):
    """As products of sparse matrices have them; the caller's stay as they are."""
    rows = sp.csr_matrix(WHOLE_ROWS) @ sp.csr_matrix(
        np.eye(4) + np.roll(np.eye(4), 2, axis=1)
    )
    assert not rows.has_sorted_indices
    before, dense = rows.indices.copy(), rows.toarray()
    each = model("KernelRidge", kernel=kernel, n_landmarks=size)
    found = each.fit(rows, Y).predict(rows)
    assert_allclose(found, each.fit(dense, Y).predict(dense), atol=1e-8)
    assert_array_equal(rows.indices, before)
    assert_array_equal(rows.toarray(), dense)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "polynomial"])
def test_precision_of_the_features_follows_the_rows(kernel):
    for given, made in {
        np.float64: np.float64,
        np.float32: np.float32,
        np.float16: np.float32,
        np.int8: np.float64,
        bool: np.float64,
    }.items():
        rows = (3 * X).astype(given)
        fitted = model("Nystroem", kernel=kernel)
        Z = fitted.fit_transform(rows)
        assert Z.dtype == fitted.transform(rows).dtype == fitted.components_.dtype
        assert Z.dtype == made
        S = fitted.component_indices_
        expected = model("Nystroem", kernel=kernel, sampler=S).fit_transform(rows * 1.0)
        K = expected @ expected.T
        assert_allclose(np.float64(Z) @ np.float64(Z).T, K, atol=2e-3 * np.abs(K).max())
    assert fitted_before("Nystroem")[0].transform(np.float32(X)).dtype == np.float32
    narrow = fit("Nystroem", np.float32(X))
    assert narrow.transform(X).dtype == np.float64


def letters(xs, ys):
    return np.array([[shared_letters(x, y) for y in ys] for x in xs])


def power(x, y, exponent):
    return float(np.dot(x, y) + 1) ** exponent


def sparse_dot(x, y):
    return float((x @ y.T).toarray().item())


def median_width(rows, p):
    distances = pairwise.pairwise_distances(rows, metric="minkowski", p=p)
    return np.median(distances[np.triu_indices(len(rows), 1)])


SCALED = 2 * X + 1e3
WIDTHS = [0.1, 0.0, 0.5, 2.0]
GP = 2.0 * gp.RBF([1.0, 2.0, 3.0, 4.0]) + gp.DotProduct()
#: Rows, options, and the kernel matrix of all rows.
TAKEN = {
    "rbf": (X, {"gamma": 0.3}, rbf_kernel(X, gamma=0.3)),
    "laplacian": (
        X,
        {"kernel": "laplacian", "gamma": 0.3},
        pairwise.laplacian_kernel(X, gamma=0.3),
    ),
    "polynomial": (
        X,
        {"kernel": "polynomial", "gamma": 0.3, "degree": 2, "coef0": 0.5},
        pairwise.polynomial_kernel(X, gamma=0.3, degree=2, coef0=0.5),
    ),
    "poly": (X, {"kernel": "poly", "gamma": None}, pairwise.polynomial_kernel(X)),
    "linear": (X, {"kernel": "linear"}, X @ X.T),
    "cosine": (X, {"kernel": "cosine"}, pairwise.cosine_similarity(X)),
    "chi2": (
        POSITIVE,
        {"kernel": "chi2", "gamma": 0.3},
        pairwise.chi2_kernel(POSITIVE, gamma=0.3),
    ),
    "default width": (X, {"gamma": None}, rbf_kernel(X, gamma=0.25)),
    "scale": (
        SCALED,
        {"gamma": "scale"},
        rbf_kernel(SCALED, gamma=0.25 / SCALED.var()),
    ),
    "scale of sparse rows": (
        sp.csr_array(X),
        {"gamma": "scale"},
        rbf_kernel(X, gamma=0.25 / X.var()),
    ),
    "median": (
        X,
        {"gamma": "median"},
        rbf_kernel(X, gamma=0.5 / median_width(X, 2) ** 2),
    ),
    "median of sparse rows": (
        sp.csr_array(X),
        {"gamma": "median"},
        rbf_kernel(X, gamma=0.5 / median_width(X, 2) ** 2),
    ),
    "median of the laplacian": (
        X,
        {"kernel": "laplacian", "gamma": "median"},
        pairwise.laplacian_kernel(X, gamma=1 / median_width(X, 1)),
    ),
    "a width for each": (
        X,
        {"gamma": WIDTHS},
        rbf_kernel(X * np.sqrt(WIDTHS), gamma=1),
    ),
    "widths of sparse rows": (
        sp.csr_array(X),
        {"gamma": np.array(WIDTHS)},
        rbf_kernel(X * np.sqrt(WIDTHS), gamma=1),
    ),
    "a sum and a product": (
        X,
        {"kernel": kernels.RBF(0.1) * kernels.Linear() + 0.5 * kernels.Laplacian(0.2)},
        rbf_kernel(X, gamma=0.1) * (X @ X.T)
        + 0.5 * pairwise.laplacian_kernel(X, gamma=0.2),
    ),
    "pairs": (X, {"kernel": np.dot}, X @ X.T),
    "blocks": (X, {"kernel": kernels.blockwise(lambda X, Y: X @ Y.T)}, X @ X.T),
    "blocks with a diagonal": (
        X,
        {
            "kernel": kernels.blockwise(
                lambda X, Y: X @ Y.T, diag=lambda X: np.sum(X * X, axis=1)
            )
        },
        X @ X.T,
    ),
    "blocks of scikit-learn's": (
        X,
        {"kernel": kernels.blockwise(functools.partial(rbf_kernel, gamma=0.5))},
        rbf_kernel(X, gamma=0.5),
    ),
    "pairs of sparse rows": (sp.csr_array(X), {"kernel": sparse_dot}, X @ X.T),
    "pairs with a parameter": (
        X,
        {"kernel": power, "kernel_params": {"exponent": 2}},
        (X @ X.T + 1) ** 2,
    ),
    "a Gaussian process": (X, {"kernel": gp.RBF(1.5)}, gp.RBF(1.5)(X)),
    "a sum of Gaussian processes": (X, {"kernel": GP}, GP(X)),
    "words": (WORDS, {"kernel": shared_letters}, letters(WORDS, WORDS)),
    "tuple of words": (tuple(WORDS), {"kernel": shared_letters}, letters(WORDS, WORDS)),
    "array of words": (
        np.array(WORDS),
        {"kernel": shared_letters},
        letters(WORDS, WORDS),
    ),
    "object words": (
        np.array(WORDS, dtype=object),
        {"kernel": shared_letters},
        letters(WORDS, WORDS),
    ),
    "series of words": (
        pd.Series(WORDS),
        {"kernel": shared_letters},
        letters(WORDS, WORDS),
    ),
    "blocks of words": (
        WORDS,
        {"kernel": kernels.blockwise(letters)},
        letters(WORDS, WORDS),
    ),
    "a sum on words": (
        WORDS,
        {"kernel": kernels.Pairwise(shared_letters) + 2.0 * kernels.blockwise(letters)},
        3 * letters(WORDS, WORDS),
    ),
    "sets": (
        [frozenset(word) for word in WORDS],
        {"kernel": shared_letters},
        letters(WORDS, WORDS),
    ),
    "dicts": (
        [{"value": value} for value in Y],
        {"kernel": lambda x, y: x["value"] * y["value"]},
        np.outer(Y, Y),
    ),
    "lists of many lengths": (
        [list(range(i + 1)) for i in range(60)],
        {"kernel": lambda x, y: min(len(x), len(y))},
        np.minimum.outer(np.arange(60), np.arange(60)) + 1.0,
    ),
    "tuples with text": (
        [(i % 9, "text") for i in range(60)],
        {"kernel": lambda x, y: float(x == y)},
        1.0 * np.equal.outer(np.arange(60) % 9, np.arange(60) % 9),
    ),
}


@pytest.mark.parametrize("kind", TAKEN)
@pytest.mark.parametrize("name", ["Nystroem", "KernelLogisticRegression", *RIDGES])
def test_what_is_taken_is_as_its_matrix(name, kind):
    rows, given, matrix = TAKEN[kind]
    found = fit(name, rows, **given)
    by_matrix = fit(
        name, matrix, kernel="precomputed", sampler=found.landmarks_.indices
    )
    a, b = answers(found, rows), answers(by_matrix, matrix)
    if name == "Nystroem":  # a singular K_SS has a root that is not unique to rounding
        a, b = a @ a.T, b @ b.T
    assert_allclose(a, b, atol=1e-6 * max(1, np.abs(b).max()))
    if not hasattr(rows, "shape") or kind.endswith("words"):
        assert not hasattr(found, "n_features_in_")


@pytest.mark.filterwarnings("ignore:.*not positive semi-definite")
@pytest.mark.parametrize("kernel", GAMMA_NAMES)
def test_gamma_auto_is_that_of_svc(kernel):
    """1/n_features, also where the kernel has another default."""
    for rows in (POSITIVE, sp.csr_array(POSITIVE))[: 2 - (kernel in HISTOGRAM_NAMES)]:
        found, expected = (
            model("Nystroem", kernel=kernel, gamma=gamma).fit_transform(rows)
            for gamma in ("auto", 0.25)
        )
        assert_array_equal(found, expected)


def test_gamma_median_makes_the_kernel_free_of_units():
    """Rows in metres and in kilometres have the same features."""
    for kernel in DISTANCE_NAMES:
        given = {"kernel": kernel, "gamma": "median", "sampler": [1, 2, 3]}
        Z, W = (fit("Nystroem", r, **given).transform(r) for r in (X, 1000 * X))
        assert_allclose(Z, W, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "KernelCCA"])
def test_landmarks_that_are_given(name):
    S = np.array([3, 1, 40, 17, 8])
    by_number, by_point = fit(name, sampler=S), fit(name, sampler=X[S])
    assert_array_equal(by_number.landmarks_.indices, S)
    assert by_point.landmarks_.indices is None
    for fitted in (by_number, by_point):
        assert_array_equal(fitted.landmarks_.points, X[S])
    assert_allclose(answers(by_point, X), answers(by_number, X), atol=1e-7)
    by_value, by_name = (
        answers(fit(name, sampler=sampler), X)
        for sampler in (samplers.Recursive(), "recursive")
    )
    assert_array_equal(by_value, by_name)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "KernelCCA"])
def test_as_many_landmarks_as_are_needed(name):
    rows = np.random.default_rng(0).standard_normal((500, 2))
    y = rows[:, 0] > 0 if name in CLASSIFIERS else rows[:, 0]
    size = "n_components" if name == "Nystroem" else "n_landmarks"

    def found(**options):
        each = model(name, gamma=0.1, **{size: None} | options).fit(rows, y)
        return len(each.landmarks_)

    assert found(max_trace_error=0.2) < found(max_trace_error=0.01) < 500
    assert found(max_spectral_error=20.0) < found(max_spectral_error=1.0) < 500
    with pytest.warns(UserWarning, match="max_trace_error=1e-06 was not reached"):
        assert found(max_trace_error=1e-6, **{size: SIZE}) == SIZE
    message = r"max_spectral_error=0.001 asks for about \d+ landmarks, more than the 5"
    with pytest.warns(UserWarning, match=message):
        assert found(max_spectral_error=1e-3, **{size: SIZE}) == SIZE


@pytest.mark.parametrize("name", PREDICTORS)
def test_constant_columns_change_nothing(name):
    wider = np.column_stack([np.full(N_ROWS, 1e3), X, np.zeros(N_ROWS)])
    found = answers(fit(name, wider, gamma=0.2), wider)
    assert_allclose(found, answers(fit(name, gamma=0.2), X), atol=1e-6)


@pytest.mark.parametrize("name", REGRESSORS)
def test_targets_that_are_taken(name):
    fitted = model(name, fit_intercept=True).fit(X, np.full(N_ROWS, -3.0))
    assert_allclose(fitted.predict(X), -3.0, rtol=1e-12)
    assert fitted.intercept_ == pytest.approx(-3.0)
    whole = np.round(3 * Y).astype(int)
    found, expected = (model(name).fit(X, y).predict(X) for y in (whole, 1.0 * whole))
    assert_array_equal(found, expected)
    for size in (SIZE, 1000):
        vector, column = (
            model(name, n_landmarks=size).fit(X, y) for y in (Y, Y[:, None])
        )
        assert column.predict(X).shape == (N_ROWS, 1)
        assert column.dual_coef_.shape == (*vector.dual_coef_.shape, 1)
        assert_allclose(column.predict(X)[:, 0], vector.predict(X), atol=1e-12)


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_the_exact_solution_keeps_rows_and_is_scikit_learns(kernel):
    rows = K if kernel == "precomputed" else X
    options = {"kernel": kernel, "n_landmarks": 1000}
    fitted = model("KernelRidge", **options).fit(sources.as_source(rows), Y)
    assert fitted.solver_ == "exact"
    assert_array_equal(fitted.X_fit_, rows)  # and not the source
    expected = fit("KernelRidge", rows, **options)
    for found, wanted in zip(
        fitted.predict(rows, return_std=True),
        expected.predict(rows, return_std=True),
        strict=True,
    ):
        assert_array_equal(found, wanted)
    theirs = SklearnKernelRidge(alpha=fitted.alpha, kernel=kernel).fit(rows, Y)
    assert_allclose(fitted.predict(rows), theirs.predict(rows), atol=1e-10)


@pytest.mark.parametrize("name", PREDICTORS)
def test_folds_of_a_matrix_are_its_rows_and_columns(name):
    """Which a tag asks for; all rows are landmarks, so that none are drawn."""
    given = {"n_landmarks": 1000}
    if name == "KernelRidgeClassifierCV":
        given["gammas"] = None
    found, expected = (
        cross_val_score(model(name, kernel=kernel, gamma=gamma, **given), rows, y, cv=3)
        for kernel, gamma, rows, y in (
            ("precomputed", None, K, target(name)),
            ("rbf", 0.25, X, target(name)),
        )
    )
    assert_allclose(found, expected, atol=1e-6)


def test_matrices_are_taken_as_they_are():
    before = K.copy()
    fitted = fit("Nystroem", K, kernel="precomputed")
    fitted.transform(K)
    assert_array_equal(K, before)
    by_rows = fit("Nystroem")
    assert_array_equal(fitted.component_indices_, by_rows.component_indices_)
    assert float(fitted.approximation_error_) == pytest.approx(
        float(by_rows.approximation_error_)
    )
    whole = WHOLE_ROWS[:4] @ WHOLE_ROWS[:4].T
    Z = model("Nystroem", kernel="precomputed", n_components=4).fit_transform(whole)
    assert Z.dtype == np.float64
    assert_allclose(Z @ Z.T, whole, atol=1e-9)
    # (m, n) and (m, s) look the same: columns are the training rows, in order.
    S = np.random.default_rng(0).permutation(20)
    given = {"kernel": "precomputed", "n_components": 20, "sampler": S}
    Z = model("Nystroem", **given).fit(K[:20, :20]).transform(K[:20, :20])
    assert_allclose(Z @ Z.T, K[:20, :20], atol=1e-8)


# --- defaults, and words that a user can know ---------------------------------------


def test_only_names_of_scikit_learn_have_its_default_kernel():
    """All others are "rbf": relatives of each other do not differ in silence."""
    theirs = SklearnKernelPCA, SklearnKernelRidge, SklearnNystroem
    theirs = {each.__name__: each().kernel for each in theirs}
    for name, each in MODELS.items():
        assert type(each)().kernel == theirs.get(name, "rbf"), name


def test_classes_in_a_ring_are_found_without_a_parameter():
    rows = np.random.default_rng(0).standard_normal((400, 2))
    values = np.linalg.norm(rows, axis=1)
    for name in PREDICTORS:
        if name != "KernelRidge":
            y = values > 1.2 if name in CLASSIFIERS else values
            each = type(MODELS[name])().fit(rows[:200], y[:200])
            assert each.score(rows[200:], y[200:]) > 0.9


def public_classes():
    """All that the package and its public modules name."""
    modules = [getattr(nystrom, name) for name in nystrom.__all__]
    modules = [nystrom, *filter(inspect.ismodule, modules)]
    named = {name: getattr(home, name) for home in modules for name in home.__all__}
    return {name: each for name, each in named.items() if inspect.isclass(each)}


def test_errors_of_python_name_no_private_class():
    """Methods that are inherited from one have its name, as Python gives it."""
    known = public_classes()
    seen = set()
    for name, each in known.items():
        if not name.startswith(("Kernel", "Nystroem")) and not name.endswith("Display"):
            continue  # samplers, kernels and engines are called by code
        for method in dir(each):
            called = getattr(each, method)
            if method.startswith("_") or not inspect.isroutine(called):
                continue
            if not str(called.__module__).startswith("nystrom"):
                continue  # scikit-learn's own
            with pytest.raises(TypeError) as caught:
                called()  # without self, or without the estimator
            owner, dot, rest = str(caught.value).partition("(")[0].partition(".")
            assert not dot or owner in known, caught.value
            seen.add(rest or owner)
    assert {"predict", "predict_proba", "score", "fit", "from_estimator"} <= seen


def test_messages_name_no_private_class():
    """Names of two words, such as OfRows: those of one are words of English."""
    package = Path(nystrom.__file__).parent
    trees = [ast.parse(path.read_text("utf-8")) for path in package.rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    ours = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
    private = {name for name in ours if re.match(r"[A-Z]\w*[a-z]\w*[A-Z]", name)}
    private -= {*public_classes()}
    said = [
        part.value
        for node in nodes
        if isinstance(node, ast.Raise)
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
    assert len(private) > 20 < len(said)
    assert not [text for text in said if private & {*re.findall(r"\w+", text)}]


def test_a_method_sent_to_another_process_is_still_found():
    fitted = fit("KernelRidgeClassifier")
    for dumps in (pickle.dumps, cloudpickle.dumps):
        sent = pickle.loads(dumps(fitted.predict))
        assert_array_equal(sent(X), fitted.predict(X))
