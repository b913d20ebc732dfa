"""What every estimator and function refuses with one clear error, and what it takes.

Tables of bad values run for all that have the parameter, as `lists.py` finds them. An
error says what was given and what to do; nothing is half fitted after it.
"""

import ast
import copy
import functools
import inspect
import re
import warnings
from pathlib import Path

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
    RIDGED,
    SAMPLERS,
    but,
    classes,
)
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import decomposition, kernel_approximation, kernel_ridge
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import cross_val_score

import nystrom
from nystrom import KernelPCA, Nystroem, kernels, samplers, select_landmarks, sources
from nystrom.kernels import PrecomputedAtLandmarks, blockwise

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 4))
Y = np.sin(X[:, 0])
K = rbf_kernel(X)
POSITIVE = np.abs(X)
WHOLE_ROWS = RNG.integers(0, 9, (60, 4))
COLUMNS = ["a", "b", "c", "größe"]
FRAME = pd.DataFrame(X, columns=COLUMNS)
WORDS = ["ab", "abc", "bcd", "xyz", "xy", "zab"] * 10
DAYS = pd.date_range("2026-01-01", periods=60)


def shared_letters(a, b):
    return float(len(set(a) & set(b)))


# --- all that takes rows ------------------------------------------------------------

#: What a function needs beside the rows.
NEEDED = {
    "approximate": {"landmarks": select_landmarks(X, n_landmarks=5, random_state=0)},
    "effective_dimension": {"ridge": 1.0},
    "estimate_n_landmarks": {"max_spectral_error": 1.0},
    "leverage_scores": {"ridge": 1.0},
    "select_landmarks": {"n_landmarks": 5},
    "spectral_embedding": {"n_landmarks": 5, "n_components": 2},
}
FUNCTIONS = {
    name: function
    for name, function in vars(nystrom).items()
    if name in nystrom.__all__ and inspect.isfunction(function)
    if "X" in inspect.signature(function).parameters
}
MODELS = {
    type(estimator).__name__: estimator
    for estimator in reversed(ESTIMATORS)
    if "gamma" in estimator.get_params()  # kernels by name
}
#: Its kernels are objects, its prior answers before a fit, and it takes no sparse rows.
PROCESS = "GaussianProcessRegressor"
ONE_VIEW = [name for name in MODELS if name != "KernelCCA"]
CLASSIFIERS = [name for name, each in MODELS.items() if is_classifier(each)]
REGRESSORS = ["KernelRidge", "KernelRidgeCV"]
RIDGES = ["KernelRidge", "KernelRidgeClassifier"]
PREDICTORS = [*REGRESSORS, *CLASSIFIERS]
#: All that resolves a kernel for the rows that it is given, or for a matrix.
WITH_KERNEL = [*MODELS, *(name for name in FUNCTIONS if name != "approximate")]
MATRICES = [name for name in WITH_KERNEL if name != "KernelCCA"]


def size_of(name):
    return "n_components" if name == "Nystroem" else "n_landmarks"


def model(name, **options):
    """An estimator on five landmarks of an rbf kernel, so that no mode is exact."""
    if name == PROCESS:
        small = {"kernel": gp.RBF() + gp.WhiteKernel(), "optimizer": None}
        small |= {"n_landmarks": 5, "random_state": 0}
        return nystrom.GaussianProcessRegressor(**small | options)
    gamma = type(MODELS[name])().gamma
    small = {"kernel": "rbf", "gamma": gamma, size_of(name): 5, "random_state": 0}
    return clone(MODELS[name]).set_params(**small | options)


def target(name):
    return Y > 0 if name in CLASSIFIERS else Y


def fit(name, rows=X, **options):
    return model(name, **options).fit(rows, target(name))


def answers(fitted, rows):
    """The numbers that an estimator answers with."""
    methods = "decision_function", "transform", "predict"
    method = next(method for method in methods if hasattr(fitted, method))
    return getattr(fitted, method)(rows)


def parameters_of(name):
    """Those of a function, or of an estimator and its fit."""
    known = FUNCTIONS[name] if name in FUNCTIONS else MODELS[name].fit
    more = MODELS[name].get_params() if name in MODELS else {}
    return {*inspect.signature(known).parameters, *more}


def having(*parameters):
    return [n for n in (*MODELS, *FUNCTIONS) if {*parameters} <= parameters_of(n)]


@functools.cache
def fitted_before(name, **options):
    fitted = fit(name, **options)
    return fitted, answers(fitted, X)


def modes(name):
    """Options for landmarks and, where n_landmarks is a limit, for the exact answer."""
    exact = name not in FUNCTIONS and name != "Nystroem"
    return ({}, {"n_landmarks": 100}) if exact else ({},)


ERRORS = ValueError, TypeError


def refused(name, words, rows=X, y=..., weight=None, error=ERRORS, **options):
    """One clear error, nothing half fitted; what was fitted before still answers."""
    weighted = {} if weight is None else {"sample_weight": weight}
    if name in FUNCTIONS:
        with pytest.raises(error, match=words):
            FUNCTIONS[name](rows, **NEEDED[name] | weighted | options)
        return
    y = target(name) if y is ... else y
    fresh = model(name, **options)
    before = set(vars(fresh))
    with pytest.raises(error, match=words):
        fresh.fit(rows, y, **weighted)
    assert set(vars(fresh)) == before
    if name != PROCESS:
        with pytest.raises(NotFittedError):
            answers(fresh, X)
    fitted, expected = fitted_before(name)
    fitted = copy.deepcopy(fitted).set_params(**options)
    refit = fitted.fit if weighted else getattr(fitted, "fit_transform", fitted.fit)
    with pytest.raises(error, match=words):
        refit(rows, y, **weighted)
    fitted.set_params(**model(name).get_params(deep=False))
    assert_array_equal(answers(fitted, X), expected)


# --- parameters ---------------------------------------------------------------------

#: Parameters that are True or False, of any estimator.
SWITCHES = [
    (name, parameter)
    for name, each in MODELS.items()
    for parameter, value in each.get_params().items()
    if isinstance(value, bool)
]
WHOLE = "must be a whole number >= 1"
CVS = ["KernelRidgeCV", "KernelRidgeClassifierCV"]
NO_NUMBERS = [-1.0, np.nan, np.inf, "a", "0.1", True, [True], ["0.1"], [[1.0]]]
#: Parameter, what is said after "is not allowed", bad values, and for whom: for all
#: that have the parameter, unless some are named.
NOT_ALLOWED = [
    ("n_components", WHOLE, [0, -1, 1.5, "a", True, [3]]),
    ("n_components", WHOLE, [None], "Nystroem", "KernelCCA", "spectral_embedding"),
    ("n_landmarks", WHOLE, [0, -3, 2.5, "a", True]),
    ("n_landmarks", WHOLE, [None], *(name for name in MODELS if name != "Nystroem")),
    ("n_landmarks", "", [b"ab", bytearray(b"ab"), "55", np.array(5.0)], *CVS),
    ("n_clusters", WHOLE, [0, -2, 2.5, True, None, "many"]),
    ("n_init", "", [0, "warn", None, 1.0]),
    ("max_iter", "", [0, 1.5]),
    ("max_iter", "", [None], "KernelKMeans", "KernelLogisticRegression"),
    ("tol", "", [-1e-4, np.inf, "small", None]),
    ("max_spectral_error", "> 0", [0, 0.0, -1.0, np.inf, "a", [1.0], True]),
    ("max_trace_error", "", [0, 1, 3, -0.1, np.inf, "a", [0.1], True]),
    ("epsilon", "> 0 and < 1", [0, 1, -0.5, 1.5, np.nan, "small", True]),
    ("ridge", "> 0", [0, -1.0, np.nan, np.inf, "a", None, True]),
    ("n_jobs", "use None .* >= 1, or -1", [0, 1.5, "a", "2", True]),
    ("gamma", ">=? 0", [0, 0.0, np.float32(0), -1.0, np.nan, np.inf]),
    ("gamma", "", [[1.0, -1.0, 1.0, 1.0]], *MATRICES),
    ("degree", "", [-1, np.inf, True, [2], "three", {}]),
    ("coef0", "", [np.inf, True, [2], "three", {}]),
    ("kernel_params", "dict", [0, (), [], "gamma"]),
    ("alpha", ">=? 0", [*NO_NUMBERS, None]),
    ("alpha", "", [[1.0, -1.0]], "KernelRidge", "KernelCCA"),
    ("alpha", "", [0, [1.0, 0.0], [1.0, 2.0, 3.0]], "KernelCCA"),
    ("alphas", "> 0", [*NO_NUMBERS, 0, b"1", [None], [], [1.0, 0.0], [1.0, -1.0]]),
    ("C", "", [0, -1.0, np.inf, "1", [], [1.0, 0.0], [[1.0]]]),
    ("gammas", "", [[], 0.5, "scale", b"ab"]),
    ("cv", "use '(gcv', ')?loo'", ["lou", "5"]),
]
NOT_ALLOWED += [
    (parameter, "True or", ["no", "False", 0, 1, None, [], 0.0])
    for parameter in sorted({parameter for _, parameter in SWITCHES})
]
#: Parameter, what is said, the bad value, and for whom.
SAID = [
    ("gammas", "gamma=0 is not allowed", [0.1, 0]),
    ("gammas", "gamma=-1 is not allowed", [0.1, -1]),
    ("gamma", "gamma='scael' is unknown; did you mean 'scale'", "scael"),
    ("gamma", "gamma='' is unknown. Allowed: 'scale', 'auto', 'median'", ""),
    ("gamma", r"gamma=\[\[1.0\]\] is not allowed", [[1.0]], *MATRICES),
    ("gamma", "2 values, but rows have 4 features", [1.0, 2.0]),
    ("gamma", "gamma=-1.0 is not allowed", (1.0, -1.0), "KernelCCA"),
    ("kernel", r"kernel='zzz' is unknown\. Allowed: .*'rbf'", "zzz"),
    ("kernel", "kernel='rfb' is unknown", ("rbf", "rfb"), "KernelCCA"),
    ("kernel_params", "has 'sigma', which kernel='rbf' .*gamma", {"sigma": 1.0}),
    ("sampler", "at least one landmark", []),
    ("sampler", "at least one landmark", X[:0]),
    ("sampler", "row number 60, but the data has rows 0 to 59", [1, 60]),
    ("sampler", "row number -1, but the data has rows 0 to 59", [1, -1]),
    ("sampler", "have 3 features, but the data has 4", X[:2, :3]),
    ("sampler", "have 3 features, but the data has 4", sp.csr_array(X[:2, :3])),
    ("sampler", "NaN|nan", np.full((2, 4), np.nan)),
    ("n_landmarks", "n_landmarks is empty", [], *CVS),
    ("n_clusters", "n_samples=60 should be >= n_clusters=61", 61),
    ("alpha", "alpha has 2 values, but y has 1 targets", [1.0, 2.0], *RIDGES),
    ("eigen_solver", "eigen_solver='lapack' is unknown", "lapack"),
    ("form", "form='printed' is unknown", "printed"),
    ("solver", "solver=None is unknown. Allowed: 'auto'", None),
    ("solver", r"solver=\['cg'\] is unknown. Allowed: 'auto'", ["cg"]),
    ("solver", "solver='full' is unknown", "full", "KernelRidgeClassifier"),
    *(("class_weight", "is unknown", v) for v in ([], (), "Balanced", "blanced", 2.0)),
    *(("scoring", "is unknown", value) for value in ("acuracy", 3)),
    ("class_weight", "not in class_weight", {7: 1.0}),
    ("class_weight", "must be >= 0", {False: -1.0, True: 1.0}),
    ("class_weight", "at least one", {False: 0.0, True: 0.0}),
    ("constants", "constants='teory' is unknown.*'theory'", "teory"),
    ("cv", "cv=0 folds are not possible", 0),
    ("cv", "cv=1 folds are not possible with n_samples=60", 1),
    ("cv", "cv=61 folds are not possible with n_samples=60", 61),
    ("cv", "cv=True folds are not possible", True),
    ("cv", "Got 2.5", 2.5),
    ("cv", r"cv=\[\] does not split 60 rows", []),
    ("cv", "a part is empty", [(np.arange(5), np.arange(0))]),
    *(("cv", "cv", [(np.arange(5), [row])]) for row in (60, -61, 0.5)),
    *(("cv", "cv", splits) for splits in ([1, 2], [(np.arange(5),)])),
]
SAID += [
    ("kernel", "is not a kernel; pass a name", value)
    for value in (5, None, 1.5, ["rbf"], {"name": "rbf"})
]
SAID += [
    ("sampler", "is not a sampler; pass a name", value)
    for value in (3, None, 1.5, [0.5, 1.5], [True, False], {})
]
SAID += [
    ("kernel", rf"kernel=.*{name}.* is not a kernel; pass", each)
    for name, each in classes(kernels, kernels.Kernel).items()
]
SAID += [
    ("sampler", rf"sampler=.*{each.__name__}.* is not a sampler; pass", each)
    for each in samplers.NAMES.values()
]
#: Parameter, what was meant, and what was given.
MEANT = [
    ("kernel", "rbf", ["rbg", "RBF"]),
    ("kernel", "laplacian", ["laplace"]),
    ("kernel", "polynomial", ["polynomal"]),
    ("kernel", "poly", ["poly3"]),
    ("kernel", "matern52", ["matern_52"]),
    ("kernel", "precomputed", ["precomputd"]),
    ("sampler", "recursive", ["recursvie"]),
    ("sampler", "leverage", ["levrage"]),
    *(("sampler", name, [name.capitalize()]) for name in SAMPLERS),
    ("solver", "direct", ["direkt"]),
]
SAID += [
    (parameter, rf"='{value}' is unknown; did you mean '{meant}'\? Allowed: ", value)
    for parameter, meant, values in MEANT
    for value in values
]
SAID += [
    (parameter, f"{parameter}=.* is not allowed.*{words}", value, *whom)
    for parameter, words, values, *whom in NOT_ALLOWED
    for value in values
]
BAD_PARAMETERS = [
    pytest.param(name, parameter, words, value, id=f"{name}-{parameter}={value!r:.20}")
    for parameter, words, value, *whom in SAID
    for name in whom or having(parameter)
]


@pytest.mark.parametrize(("name", "parameter", "words", "value"), BAD_PARAMETERS)
def test_a_bad_value_of_a_parameter(name, parameter, words, value):
    refused(name, words, **{parameter: value})
    theirs = name == "KernelPCA" and value is True  # a number, to scikit-learn's class
    if name in MODELS and parameter != size_of(name) and not theirs:
        with pytest.raises(ERRORS, match=f"{parameter}|{words}"):
            fit(name, **{size_of(name): 60, parameter: value})  # in exact mode


@pytest.mark.parametrize("name", MODELS)
def test_nonsense_is_refused_by_the_name_of_the_parameter(name):
    """What no parameter is, and Python would take for a number, a list or True."""
    for parameter in MODELS[name].get_params():
        for value in (b"ab", 1j, np.nan, object(), {"a": 1}.items(), "yes"):
            with pytest.raises(ERRORS, match=parameter):
                fit(name, **{parameter: value})


@pytest.mark.parametrize(("name", "parameter"), SWITCHES)
def test_a_switch_is_true_or_false(name, parameter):
    more = {"n_landmarks": [3, 5], "cv": 3} if parameter == "prefer_fewer" else {}
    for value in (True, np.False_):
        fit(name, **{parameter: value}, **more)


#: What is said, options that do not go together, and for whom: all that have them.
CONFLICTS = [
    ("=1.0 and max_trace_error=", {"max_spectral_error": 1.0, "max_trace_error": 0.1}),
    ("with the kernel RBF", {"kernel": kernels.RBF(), "kernel_params": {"gamma": 1.0}}),
    ("solver='cg' needs alpha > 0", {"alpha": 0, "solver": "cg"}),
    ("epsilon=0.5 needs alpha > 0", {"alpha": 0, "epsilon": 0.5}),
    ("=0.5 and max_spec.*=0.1 both set", {"epsilon": 0.5, "max_spectral_error": 0.1}),
    ("=0.5 and max_trace.*=0.1 both set", {"epsilon": 0.5, "max_trace_error": 0.1}),
    (r"and gammas=\[0.1\] both set the width", {"gamma": 1.0, "gammas": [0.1]}),
    ("with kernel=RBF", {"gammas": [0.1], "kernel": kernels.RBF(1.0)}),
    ("with kernel='precomputed'", {"gammas": [0.1, 1.0], "kernel": "precomputed"}),
    ("=True has no effect .* several", {"prefer_fewer": True, "cv": 5}),
    ("of several folds", {"n_landmarks": [5, 10], "prefer_fewer": True}, CVS[0]),
    ("both set the", {"n_landmarks": [5, 10], "max_trace_error": 0.1}, *CVS),
    ("both set the", {"n_landmarks": [5, 10], "max_spectral_error": 0.1}, *CVS),
    ("cv='gcv' .*use 'loo'", {"cv": "gcv", "scoring": "r2"}, "KernelRidgeCV"),
    ("belongs to constants='theory'", {"constants": "practical", "delta": 0.01}),
    (r"=5 is too few.*at least \d+", {"n_landmarks": 5, "constants": "theory"}),
    ("should be >= n_clusters=61", {"n_clusters": 61, "affinity_normalize": True}),
    (
        "=0.01 .*Accelerated",
        {"sampler": samplers.Accelerated(), "delta": 0.01},
        *FUNCTIONS,
    ),
    # One error, and no warning of NumPy's before it.
    ("nan or inf.*degree", {"kernel": "poly", "degree": 2.5, "coef0": 0}),
    ("returned nan or inf", {"kernel": "poly", "degree": 300, "gamma": 1e4}),
]
CONFLICTS += [
    (r"with the sampler \w+; .*'recursive'", {"max_spectral_error": 1.0, "sampler": by})
    for by in [*but(RIDGED, ["auto"]), [1, 2]]
]
CONFLICTS += [
    ("=0.01 cannot be combined with the s", {"delta": 0.01, "sampler": by}, *FUNCTIONS)
    for by in [*but(RIDGED, ["auto"]), [1, 2]]
]
BY_SCORES = {"max_spectral_error": 1.0, "sampler": "leverage"}
CONFLICTS += [
    ("delta=.* is not allowed; .*< 0.125", {"delta": delta} | BY_SCORES, *FUNCTIONS)
    for delta in (0, 1 / 8, 1)
]
CONFLICTS += [
    (
        "delta=.* is not allowed; .*< 0.03125",
        {"max_spectral_error": 1.0, "delta": delta},
        *FUNCTIONS,
    )
    for delta in (0, -1, 0.5, 1 / 32, np.nan)
]
OWN = "Don't pass gamma, coef0 or degree to NAME if"
CONFLICTS += [
    (OWN, {"kernel": kernel, parameter: 1.0}, *FUNCTIONS, "Nystroem")
    for kernel in ("precomputed", shared_letters, kernels.Linear())
    for parameter in ("gamma", "degree", "coef0")
]


def shown(options):
    """Options in the name of a test, the same in every process."""
    return ", ".join(
        f"{name}={getattr(value, '__name__', value)!r}"
        for name, value in options.items()
    )


CONFLICTS = [
    pytest.param(name, words, options, id=f"{name}-{shown(options):.70}")
    for words, options, *whom in CONFLICTS
    for name in having(*options)
    if not whom or name in whom
]


@pytest.mark.parametrize(("name", "words", "options"), CONFLICTS)
def test_parameters_that_do_not_go_together(name, words, options):
    rows = K if options.get("kernel") == "precomputed" else X
    refused(name, words.replace("NAME", name), rows, **options)


@pytest.mark.parametrize("kernel", GAMMA_NAMES)
@pytest.mark.parametrize("name", ["Nystroem", "KernelRidge", "leverage_scores"])
def test_a_bad_gamma_of_every_kernel(name, kernel):
    given = {"rows": POSITIVE, "kernel": kernel}
    for gamma in (0, 0.0, np.float32(0), -1.0, np.nan, np.inf):
        refused(name, r"gamma=.* is not allowed", gamma=gamma, **given)
    refused(name, r"gamma='scael' is unknown; .* Allowed: .*'a", gamma="scael", **given)
    if kernel in DISTANCE_NAMES:
        for given["rows"] in (X, sp.csr_array(X)):
            refused(name, "2 values, but rows have 4", gamma=[1.0, 2.0], **given)
    else:
        refused(name, "gamma", gamma=[1.0, 2.0, 3.0, 4.0], **given)
        message = f"gamma='median' is for kernels of a distance, not for.*'{kernel}'"
        refused(name, message, gamma="median", **given)


@pytest.mark.parametrize("make", [kernels.RBF, kernels.Laplacian])
def test_a_feature_may_have_no_width_but_not_all_of_them(make):
    found = make((0.5, 0.0, 0.0, 0.0))(X, X[:4])
    assert_allclose(found, make(0.5)(X[:, :1], X[:4, :1]))
    with pytest.raises(ValueError, match="all rows would look the same"):
        make((0.0, 0.0, 0.0))


@pytest.mark.parametrize("value", [0, -1, True, "5", np.nan, np.inf])
def test_bad_values_of_samplers_and_rules_to_stop(value):
    makers = [samplers.FixedSize, functools.partial(samplers.SpectralTolerance, 1.0)]
    for make, name in zip(makers, ("n_landmarks", "at_most"), strict=True):
        with pytest.raises(ValueError, match=f"{name}=.* is not allowed"):
            make(**{name: value})
    for name in RIDGED:
        with pytest.raises(ValueError, match=r"error=.* is not allowed; .*> 0"):
            samplers.NAMES[name](max_spectral_error=value)


def test_a_number_of_jobs_after_the_fit():
    for name in MODELS:
        with pytest.raises(ValueError, match="n_jobs=0 is not allowed"):
            answers(fit(name).set_params(n_jobs=0), X)


@pytest.mark.parametrize("name", having("landmarks"))
def test_bad_landmarks(name):
    for given in ("rbf", 5, [1, 2, 3], np.ones((3, 3)), None):
        if given is not None or name == "approximate":
            refused(name, "(?i)select_landmarks", landmarks=given)
    given = NEEDED["approximate"]
    for kind in (np.asarray, sp.csr_array, pd.DataFrame):
        message = "X has 2 features, but the landmarks have 4"
        refused(name, message, kind(X[:, :2]), **given)
    refused(name, "(?i)numbers", ["a", "b"], **given)
    given = select_landmarks(K, kernel="precomputed", n_landmarks=20)
    for size in (10, 61):  # row numbers of one matrix mean nothing in another
        refused(name, "60", np.eye(size), landmarks=given)


# --- rows ---------------------------------------------------------------------------


def with_value(value, *places):
    rows = X.copy()
    rows[tuple(np.transpose(places))] = value
    return rows


RAGGED = [[1.0, 2.0], [3.0]] * 30
RESHAPE = r"Expected 2D array, got 1D array instead(.|\n)*reshape"
NUMBERS = r"rows of numbers, all of one length, but row 0 of X is a \w+ "
NON_NUMERIC = "X holds .* not (a number|numbers).* Encode"
NOT_NUMBERS = "X holds .* values, which are not numbers"
#: What is said of rows.
BAD_ROWS = {
    "no rows": ("0 sample", X[:0]),
    "no sparse rows": ("0 sample", sp.csr_array((0, 4))),
    "nothing": ("empty|Expected 2D array", []),
    "no features": ("0 feature.* minimum of 1", np.empty((60, 0))),
    "one row": (RESHAPE, X[0]),
    "three dimensions": ("dim 3", X[None]),
    "None": ("Expected 2D array|rows", None),
    "a word": (r"X='hello' is text that does not name a file; .*\.csv", "hello"),
    "complex": ("Complex data not supported", X + 1j),
    "words": (NUMBERS, WORDS),
    "lists of words": ("numbers|numeric", [["a", "b"]] * 60),
    "text": (NON_NUMERIC, np.array([["1", "2"], ["3", "x"]] * 30)),
    "column": (NON_NUMERIC, FRAME.assign(d=["u", "v"] * 30)),
    "lists of several lengths": (NUMBERS, RAGGED),
    "dates": (NOT_NUMBERS, FRAME.assign(when=DAYS)),
    "dict": ("X is a dict; pass an array", {"a": X[:, 0], "b": X[:, 1]}),
    "masked": ("X has masked values", np.ma.masked_greater(X, 2.0)),
    "NaN": ("X contains NaN", with_value(np.nan, (17, 2), (40, 0))),
    "NaN in sparse rows": ("X contains NaN", sp.csr_array(with_value(np.nan, (1, 2)))),
    "infinity": ("X contains infinity", with_value(-np.inf, (5, 2))),
}
#: The same of other storages, for one estimator and one function.
STORED = {
    "float32": np.float32,
    "list": np.ndarray.tolist,
    "objects": lambda rows: np.where(np.isnan(rows), None, rows).astype(object),
    "pandas": lambda rows: FRAME * 0 + rows,
    "nullable": lambda rows: (FRAME * 0 + rows).convert_dtypes(),
    "polars": lambda rows: pl.DataFrame(rows, schema=COLUMNS),
}
POLARS = pl.DataFrame(X, schema=COLUMNS)
OTHER_BAD_ROWS = {
    "no rows in a frame": ("0 sample", FRAME[:0]),
    "one list": (RESHAPE, Y.tolist()),
    "a number": ("Expected 2D array|rows", 3.0),
    "array of words": (NUMBERS, np.array(WORDS)),
    "object words": (NUMBERS, np.array(WORDS, dtype=object)),
    "series of words": (NUMBERS, pd.Series(WORDS)),
    "words that spell numbers": ("numbers|numeric", [["1", "2"]] * 60),
    "category": (NON_NUMERIC, FRAME.assign(c=pd.Categorical(["1", "v", "w"] * 20))),
    "text of polars": (NON_NUMERIC, POLARS.with_columns(c=pl.lit("u"))),
    "generator": ("X is a generator", (row for row in X)),
    "set": ("X is a set", {1.0, 2.0}),
    "records": (NOT_NUMBERS, np.zeros(60, dtype=[("a", float), ("b", float)])),
    "array of dates": (NOT_NUMBERS, DAYS.to_numpy()[:, None]),
}
for times in (DAYS, DAYS.tz_localize("Europe/Vienna"), DAYS - DAYS[0]):
    OTHER_BAD_ROWS[f"{times.dtype}"] = NOT_NUMBERS, pd.DataFrame({"when": times})
for times in (DAYS, DAYS - DAYS[0], [*DAYS.date]):
    column = pl.Series("when", times)
    OTHER_BAD_ROWS[f"{column.dtype}"] = NOT_NUMBERS, POLARS.with_columns(column)
for kind, store in STORED.items():
    rows = store(with_value(np.nan, (17, 2), (40, 0)))
    OTHER_BAD_ROWS[f"NaN in {kind}"] = "X contains NaN", rows
    rows = store(with_value(np.inf, (5, 2)))
    OTHER_BAD_ROWS[f"infinity in {kind}"] = "X contains infinity", rows
BAD_ROWS_OF_ALL = [(name, kind) for name in (*MODELS, *FUNCTIONS) for kind in BAD_ROWS]
BAD_ROWS_OF_ALL += [(PROCESS, kind) for kind in BAD_ROWS if "sparse" not in kind]
BAD_ROWS_OF_ALL += [
    (name, kind)
    for name in ("KernelRidge", "select_landmarks")
    for kind in OTHER_BAD_ROWS
]
BAD_ROWS |= OTHER_BAD_ROWS


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize(("name", "kind"), BAD_ROWS_OF_ALL)
def test_bad_rows(name, kind):
    words, rows = BAD_ROWS[kind]
    n = rows.shape[0] if hasattr(rows, "shape") else 60
    for mode in modes(name):
        if name == PROCESS and mode and re.search("words|lengths", kind):
            continue  # scikit-learn's class refuses them in its own words
        refused(name, words, rows, y=target(name)[:n], **mode)
        theirs = name == "KernelPCA" and mode  # scikit-learn's class takes new rows
        if name in FUNCTIONS or theirs:
            continue
        with pytest.raises(ValueError, match=words):
            answers(fitted_before(name, **mode)[0], rows)


@pytest.mark.parametrize("kernel", [kernels.RBF(1.0), "linear", shared_letters])
def test_bad_rows_of_other_kernels(kernel):
    for kind, (words, rows) in BAD_ROWS.items():
        if kind.startswith(("NaN", "inf", "-inf", "no", "one")):
            refused("Nystroem", words, rows, kernel=kernel)


@pytest.mark.filterwarnings("ignore:The kernel AdditiveChi2")
@pytest.mark.parametrize("kernel", HISTOGRAM_NAMES)
@pytest.mark.parametrize("name", [*ONE_VIEW, "leverage_scores", "effective_dimension"])
def test_bad_rows_of_histograms(name, kernel):
    for rows in (X, np.float32(X)):
        refused(name, "contains negative values.*>= 0", rows, kernel=kernel)
    message, rows = r"dense rows only; call X.toarray\(\)", sp.csr_array(POSITIVE)
    refused(name, message, rows, kernel=kernel)
    if name in MODELS:
        with pytest.raises(ValueError, match="contains negative values"):
            answers(fit(name, POSITIVE, kernel=kernel), X)


def test_values_of_a_source_that_are_not_numbers():
    """A source is not read through beforehand; its kernel values are checked."""
    for name in WITH_KERNEL:
        rows = sources.DenseRows(with_value(np.nan, (3, 2)))
        refused(name, "kernel returned nan or inf", rows, gamma=1.0)


METHODS = "predict", "decision_function", "predict_proba", "transform", "score"


@pytest.mark.parametrize("name", MODELS)
def test_every_method_refuses_bad_rows_and_to_answer_before_a_fit(name):
    width = f"X has 3 features, but {name} is expecting 4 features"
    bad = [("X contains NaN", with_value(np.nan, (3, 2)))]
    for kind in (np.asarray, np.float32, np.ndarray.tolist, sp.csr_array, pd.DataFrame):
        bad += [(width, kind(X[:, :3]))]
    for method in METHODS:
        y = [target(name)] * (method == "score")
        if hasattr(model(name), method):
            with pytest.raises(NotFittedError, match=f"This {name} instance"):
                getattr(model(name), method)(X, *y)
        for mode in modes(name):
            fitted = fitted_before(name, **mode)[0]
            for words, rows in bad if hasattr(fitted, method) else ():
                with pytest.raises(ValueError, match=words):
                    getattr(fitted, method)(rows, *y)
    if name == "KernelCCA":
        with pytest.raises(TypeError, match="argument 'sample_weight'"):
            model(name).fit_transform(X, Y, sample_weight=np.ones(60))


# --- targets and weights ------------------------------------------------------------

WITH_TARGETS = [*PREDICTORS, "KernelCCA"]
Y_NON_NUMERIC = "y holds something that is not a number: .* Enc"
#: What is said of targets, and by whom.
BAD_TARGETS = {
    "None": ("requires y .* but the target y is None", None, WITH_TARGETS),
    "none": ("inconsistent numbers of samples.*60, 0|0 sample", [], PREDICTORS),
    "three dimensions": ("dim 3|Unknown label", np.zeros((60, 1, 1)), PREDICTORS),
    "no columns": (r"\(60, 0\)|Unknown label", np.zeros((60, 0)), PREDICTORS),
    "text": (Y_NON_NUMERIC, ["low", "high"] * 30, REGRESSORS),
    "ragged": ("inhomogeneous|sequence", [[1], [1, 2]] * 30, REGRESSORS),
    "array of text": ("^(?!X).*y", np.array(["low", "high"] * 30), REGRESSORS),
    "sparse": ("Sparse data .*toarray", sp.csr_array(Y[:, None]), REGRESSORS),
    "dates": ("y holds datetime64.*not numbers", DAYS, REGRESSORS),
    "dates in a series": ("y holds datetime64", pd.Series(DAYS), REGRESSORS),
    "dates in an array": ("y holds datetime64", DAYS.to_numpy(), REGRESSORS),
    "lazy": ("y is a LazyFrame", pl.DataFrame({"y": Y}).lazy(), WITH_TARGETS),
    "numbers": ("Unknown label type: continuous", Y, CLASSIFIERS),
    "several labels": (
        "several labels per row.*MultiOutput",
        (X > 0).astype(int),
        ["KernelLogisticRegression", "KernelRidgeClassifierCV"],
    ),
    "several columns of classes": (
        "y has 2 columns of classes.*MultiOutput",
        np.repeat([[0, 1], [2, 0]], 30, axis=0),
        CLASSIFIERS,
    ),
    "labels of two types": (
        "labels that are text and labels that are not; convert",
        np.array(["a", 1] * 30, dtype=object),
        CLASSIFIERS,
    ),
    "NaN in a table": ("y contains NaN", with_value(np.nan, (3, 2)), REGRESSORS),
    "NaN in the second view": (
        "y contains NaN",
        with_value(np.nan, (7, 1)),
        ["KernelCCA"],
    ),
}
for n in (1, 59, 61):
    words = rf"inconsistent numbers of samples: \[60, {n}\]\. y has one entry"
    BAD_TARGETS[f"{n}"] = words, np.arange(n) % 2, WITH_TARGETS
for label in (1, 0, "a", 2.0):
    words = f"y has one class, .*{label}.*; at least two classes are needed"
    BAD_TARGETS[f"only {label!r}"] = words, [label] * 60, CLASSIFIERS
for value in (None, np.nan, pd.NA):
    labels = np.array(["a", "b"] * 30, dtype=object)
    labels[7] = value
    for given in (labels, pd.Series(labels)):
        words = "rows without a label; drop them|contains NaN"
        BAD_TARGETS[f"{value}, {type(given)} of labels"] = words, given, CLASSIFIERS
    given = (Y > 0).astype(object)
    given[[9, 30]] = value
    words = "contains NaN|y has rows without a label|NAType"
    BAD_TARGETS[f"{value} among objects"] = words, given, PREDICTORS
for value, word in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
    labels = np.where(Y > 0, 1.0, 0.0)
    labels[[9, 30]] = value
    for given in (labels, pd.Series(labels)):
        words = f"Input y contains {word}"
        BAD_TARGETS[f"{value}, {type(given)}"] = words, given, PREDICTORS


@pytest.mark.parametrize("kind", BAD_TARGETS)
def test_bad_targets(kind, tmp_path):
    words, y, whom = BAD_TARGETS[kind]
    np.save(tmp_path / "X.npy", X)
    for name in whom:
        for rows in (X, sp.csr_array(X), FRAME, X.tolist(), tmp_path / "X.npy"):
            refused(name, words, rows, y=y)
        refused(name, words, WORDS, y=y, kernel=shared_letters)


def test_another_number_of_alphas_than_targets():
    message = "alpha has 2 values, but y has 3 targets"
    refused("KernelRidge", message, y=X[:, :3], alpha=[1.0, 2.0])
    for option in ({"solver": "cg"}, {"epsilon": 0.5}):
        message, given = r"needs alpha > 0", {"alpha": [1.0, 0.0, 1.0]} | option
        refused("KernelRidge", message, y=X[:, :3], **given)


BAD_WEIGHTS = {
    "negative": ("sample_weight must be >= 0", -np.ones(60)),
    "one negative": ("sample_weight must be >= 0", np.r_[-1.0, np.ones(59)]),
    "zeros": ("at least one", np.zeros(60)),
    "too few": (r"sample_weight.shape == \(59,\), expected \(60,\)", np.ones(59)),
    "a column": ("must be 1D", np.ones((60, 1))),
    "nan": ("sample_weight contains NaN", np.full(60, np.nan)),
    "inf": ("sample_weight contains infinity", np.full(60, np.inf)),
    "text": ("[Ss]ample.?weight", ["a"] * 60),
    "None": ("[Ss]ample.?weight", [None] * 60),
    "ragged": ("[Ss]ample.?weight|inhomogeneous", [[1], [1, 2]] * 30),
    "a word": ("[Ss]ample.?weight", "a"),
}


@pytest.mark.parametrize("kind", BAD_WEIGHTS)
@pytest.mark.parametrize("name", having("sample_weight"))
def test_bad_weights(name, kind):
    words, weight = BAD_WEIGHTS[kind]
    refused(name, words, weight=weight)


@pytest.mark.parametrize("mode", modes(PROCESS))
def test_bad_targets_weights_and_parameters_of_a_process(mode):
    for words, y, whom in BAD_TARGETS.values():
        if "KernelRidge" in whom:
            refused(PROCESS, words, y=y, **mode)
    for words, weight in BAD_WEIGHTS.values():
        refused(PROCESS, words, weight=weight, **mode)
    shared = {"n_jobs", "sampler", "max_trace_error", "optimize_landmarks"}
    for parameter, words, value, *whom in SAID:
        if parameter in shared and not whom:
            refused(PROCESS, words, **mode | {parameter: value})
    refused(PROCESS, "Sparse data was passed", sp.csr_array(X), **mode)
    refused(PROCESS, "max_kl=-1 is not allowed", **mode | {"max_kl": -1})


def test_classes_and_folds_without_any_weight():
    weight = np.r_[np.zeros(30), np.ones(30)]
    splits = [(np.arange(30, 60), np.arange(30))]
    message = "A split has only rows of weight 0"
    refused("KernelRidgeCV", message, weight=weight, cv=splits)
    weight, message = (
        (Y <= 0).astype(float),
        "The class True has no row of positive weight",
    )
    refused("KernelLogisticRegression", message, weight=weight)


# --- kernels that misbehave ---------------------------------------------------------


def returning(value):
    def kernel(x, y):
        return value

    return kernel


RBF_2 = functools.partial(rbf_kernel, gamma=2.0)
COLUMN = blockwise(lambda X, Y: X[:, 0])
TEXTS = blockwise(lambda X, Y: np.full((len(X), len(Y)), "a"))
BAD_KERNELS = [
    ("kernel returned nan or inf", returning(np.nan)),
    ("kernel returned nan or inf", returning(np.inf)),
    ("The kernel kernel returned a str for two", returning("abc")),
    ("The kernel kernel returned a NoneType for two", returning(None)),
    ("The kernel kernel returned a complex for two", returning(1j)),
    ("returned a ndarray for two", returning(np.ones(3))),
    ("returned a list for two", returning([1.0, 2.0])),
    ("returned a csr_array for two", returning(sp.csr_array(np.eye(1)))),
    ("<U1 values.* real numbers", TEXTS),
    ("complex128 values.* real numb", blockwise(lambda X, Y: (X @ Y.T) * 1j)),
    ("returned a NoneType of shape", blockwise(returning(None))),
    (r"returned a ndarray of shape .*it must return \(\d+, \d+\)", COLUMN),
    ("it must return|single rows", blockwise(np.vdot)),
]


@pytest.mark.parametrize(("words", "kernel"), BAD_KERNELS)
@pytest.mark.parametrize("name", ["Nystroem", "KernelRidge", "select_landmarks"])
def test_bad_kernels(name, words, kernel):
    refused(name, words, kernel=kernel)


def test_an_error_of_the_users_kernel_is_theirs_with_a_hint():
    def kernel(X, Y):
        return np.exp(-((X[:, None] - Y[None]) ** 2).sum(axis=2))

    with pytest.raises(IndexError) as caught:
        fit("Nystroem", kernel=kernel)
    (note,) = caught.value.__notes__
    assert "kernel=kernel was called with two rows" in note
    assert "kernels.blockwise" in note
    fit("Nystroem", kernel=blockwise(kernel))


def test_a_sampler_that_returns_something_else():
    def rows(kernel, source, n_landmarks, *, seed, engine):
        return np.arange(n_landmarks)

    for name in having("sampler"):
        refused(name, "returned ndarray; it must return .*Landmarks", sampler=rows)


class KernelFailsError(Exception):
    """Raised by a kernel of the user."""


class FailingKernel:
    """Linear, up to its call number `last`."""

    def __init__(self, last=np.inf):
        self.calls, self.last = 0, last

    def __call__(self, X, Y):
        self.calls += 1
        if self.calls >= self.last:
            raise KernelFailsError
        return X @ Y.T


@pytest.mark.parametrize("name", MODELS)
def test_a_kernel_that_fails_midway_leaves_the_old_fit(name):
    """Never the old model with the new width."""
    for last in (1, 2, 3):
        given = {"kernel": blockwise(FailingKernel(last)), "sampler": np.arange(5)}
        refused(name, None, X[:, :3], error=KernelFailsError, **given)
    if name in ("Nystroem", "KernelRidge", "KernelPCA"):  # and a warning that raises
        refused(name, "Sigmoid", kernel="sigmoid", error=UserWarning)


# --- precomputed kernels ------------------------------------------------------------


@pytest.mark.parametrize("name", MATRICES)
def test_bad_matrices(name):
    def refused_matrix(words, rows, **options):
        refused(name, words, rows, kernel="precomputed", **options)

    for width in (59, 4):
        message = rf"square matrix .* X has shape \(60, {width}\)"
        refused_matrix(message, np.ones((60, width)))
    refused_matrix("square matrix|inconsistent", np.ones((59, 60)))
    refused_matrix("must be a dense array", sp.csr_array(K))
    refused_matrix(RESHAPE, Y)
    for value, word in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
        refused_matrix(f"contains.* {word}", np.where(K < 1e-3, value, K))
    if name in having("sampler"):  # there is nothing else to evaluate
        refused_matrix("(?i)row numbers", K, sampler=K[:3])


@pytest.mark.parametrize("name", ONE_VIEW)
def test_new_rows_of_a_matrix(name, tmp_path):
    """Against all training rows or, if marked, the landmarks; refused, not guessed."""
    fitted = fit(name, K, kernel="precomputed")
    ask = fitted.predict if name == "KernelKMeans" else lambda new: answers(fitted, new)
    S = fitted.landmarks_.indices
    expected, part = ask(K[:7]), K[:7, S]
    for kind in (np.asarray, np.ndarray.tolist, pd.DataFrame):
        assert_array_equal(ask(kind(K[:7])), expected)
        assert_array_equal(ask(PrecomputedAtLandmarks(kind(part))), expected)
    np.save(tmp_path / "new.npy", K[:7])
    marked = r"X has 5 features, .* 60: .*all training rows.*PrecomputedAtLandmarks\(X"
    bad = [(marked, part), (marked, part.tolist()), (marked, K[:7, :5])]
    bad += [(r"dense array; X is a sparse matrix.*toarray", sp.csr_array(K[:7]))]
    bad += [(r"dense array; .* sparse", PrecomputedAtLandmarks(sp.csr_array(part)))]
    bad += [(r"dense array; X is a source, or a file\. Load it", tmp_path / "new.npy")]
    for width in (1, 4, 6, 59, 61):
        bad += [(rf"X has {width} features.* 60", np.ones((3, width)))]
    for width in (1, 4, 6, 60):
        words = rf"AtLandmarks has values of shape \(7, {width}\).* 5"
        bad += [(words, PrecomputedAtLandmarks(K[:7, :width]))]
    for value, word in ((np.nan, "NaN"), (np.inf, "infinity")):
        for values in (np.full((2, 60), value), PrecomputedAtLandmarks(part * value)):
            bad += [(f"contains.* {word}", values)]
    for words, new in bad:
        with pytest.raises(ValueError, match=words):
            ask(new)
    with pytest.raises(ValueError, match="AtLandmarks is for kernel='precomputed'"):
        answers(fitted_before(name)[0], PrecomputedAtLandmarks(part))


# --- names of columns ---------------------------------------------------------------

OTHER_ORDER = [*COLUMNS[1::-1], *COLUMNS[2:]]


@pytest.fixture
def fitted(tmp_path):
    FRAME.assign(y=Y).to_parquet(tmp_path / "rows.parquet")
    return model("KernelRidge").fit(sources.open(tmp_path / "rows.parquet", target="y"))


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("name", MODELS)
def test_frames_keep_their_names(name, kind):
    table = kind(dict(zip(COLUMNS, X.T, strict=True)))
    y = target(name) if name == "KernelCCA" else kind({"y": target(name)})["y"]
    fitted = model(name).fit(table, y)
    assert list(fitted.feature_names_in_) == COLUMNS
    assert_array_equal(answers(fitted, table), fitted_before(name)[1])
    for columns in ("abce", OTHER_ORDER):
        with pytest.raises(ValueError, match="feature names should match"):
            answers(fitted, kind(dict(zip(columns, X.T, strict=True))))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        answers(fitted, X)
    with pytest.warns(UserWarning, match="fitted without feature names"):
        answers(fitted_before(name)[0], table)
    fitted.fit(X[:, :3], target(name))
    assert not hasattr(fitted, "feature_names_in_")
    assert len(answers(fitted, X[:, :3])) == 60


def test_names_of_a_file_are_kept(fitted, tmp_path):
    assert fitted.feature_names_in_.tolist() == COLUMNS
    nystrom.save(fitted, tmp_path / "model.nystrom")
    loaded = nystrom.load(tmp_path / "model.nystrom")
    assert loaded.feature_names_in_.tolist() == COLUMNS
    np.save(tmp_path / "new.npy", X)
    with warnings.catch_warnings():  # rows of a file need not have names
        warnings.simplefilter("error")
        assert_array_equal(loaded.predict(tmp_path / "new.npy"), fitted.predict(FRAME))


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
def test_a_path_gives_the_columns_that_were_fitted(fitted, ending, tmp_path):
    """In their order, whatever else there is."""
    path = tmp_path / f"new.{ending}"
    other = FRAME[OTHER_ORDER].assign(y=Y, text="none")
    getattr(other, f"to_{ending}")(path, **{"index": False} if ending == "csv" else {})
    assert_allclose(fitted.predict(path), fitted.predict(FRAME), rtol=1e-12)
    assert fitted.score(path, Y) == pytest.approx(fitted.score(FRAME, Y))
    for each in (Nystroem(n_components=3), KernelPCA(3), KernelPCA(3, n_landmarks=9)):
        each.set_params(random_state=0).fit(tmp_path / "rows.parquet")
        expected = each.transform(FRAME.assign(y=Y))
        assert_allclose(each.transform(path), expected, atol=1e-12)


def test_columns_in_another_order_are_refused(fitted, tmp_path):
    path, rows = tmp_path / "new.parquet", tmp_path / "rows.parquet"
    FRAME.rename(columns={"b": "z"}).to_parquet(path)
    for each in (fitted, model("KernelRidge").fit(FRAME, Y)):
        with pytest.raises(ValueError, match="'b' is missing"):
            each.predict(path)
    FRAME[OTHER_ORDER].to_parquet(path)
    for new in (sources.open(path), pa.Table.from_pandas(FRAME[OTHER_ORDER])):
        with pytest.raises(ValueError, match=r"fit: their order is another.*columns"):
            fitted.predict(new)
    parts = [sources.open(rows, columns=COLUMNS), sources.open(path)]
    with pytest.raises(ValueError, match=r"have different columns, .*; open all"):
        sources.ConcatenatedRows(parts)
    FRAME.to_parquet(rows)
    assert_array_equal(sources.open([rows, path]).rows(60, 120), X)  # by name


def test_dask_frames_have_names():
    dask_frame = pytest.importorskip("dask.dataframe")
    lazy = dask_frame.from_pandas(FRAME.assign(y=Y, w=np.abs(Y)), npartitions=3)
    found = model("KernelRidge").fit(lazy[COLUMNS], lazy["y"], sample_weight=lazy["w"])
    expected = model("KernelRidge").fit(FRAME, Y, sample_weight=np.abs(Y))
    assert found.feature_names_in_.tolist() == COLUMNS
    assert_array_equal(found.landmarks_.indices, expected.landmarks_.indices)
    answer = found.predict(lazy[COLUMNS]).compute()
    assert_allclose(answer, expected.predict(FRAME), rtol=1e-9)
    with pytest.raises(ValueError, match="their order is another"):
        found.predict(lazy[OTHER_ORDER])
    with pytest.raises(ValueError, match=r"y holds datetime64.* not numbers"):
        model("KernelRidge").fit(lazy[COLUMNS], lazy["y"].astype("datetime64[ns]"))


def test_batches_of_a_stream_may_be_files(tmp_path):
    path = tmp_path / "part.parquet"
    found, expected = model("KernelRidge"), model("KernelRidge")
    for part in (slice(0, 20), slice(20, 40), slice(40, 60)):
        FRAME.assign(y=Y)[part].to_parquet(path)
        found.partial_fit(sources.open(path, target="y"))
        expected.partial_fit(FRAME[part], Y[part])
    assert_allclose(found.predict(FRAME), expected.predict(FRAME), rtol=1e-9)
    found.partial_fit(path, Y[:20])  # by the names that were fitted
    with pytest.raises(ValueError, match="their order is another"):
        found.partial_fit(sources.open(path, target="y", columns=OTHER_ORDER))
    with pytest.raises(ValueError, match="requires y to be passed"):
        model("KernelRidge").partial_fit(FRAME)


# --- accepted input ------------------------------------------------------------------

#: The same rows, to the last bit of every answer.
STORAGES = {
    "Fortran order": np.asfortranarray,
    "list of lists": np.ndarray.tolist,
    "objects": lambda rows: rows.astype(object),
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "mixed numbers": lambda rows: pd.DataFrame(rows).astype({0: "float32", 1: int}),
    "text in a frame": lambda rows: pd.DataFrame(rows).astype(str),
    "big endian": lambda rows: rows.astype(">f8"),
    "int64": np.int64,
    "nothing masked": lambda rows: np.ma.masked_greater(rows, 99),
    "source": sources.DenseRows,
}


@pytest.mark.filterwarnings("ignore:X (has feature|does not have valid) names")
@pytest.mark.parametrize("name", MODELS)
def test_storage_changes_no_bit(name, tmp_path):
    rows = WHOLE_ROWS.astype(float)
    expected = answers(fit(name, rows), rows)
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")  # and read only
    for stored in (mapped, *(store(rows) for store in STORAGES.values())):
        answer = answers(fit(name, stored), stored)
        assert_array_equal(answer, expected)
        assert type(answer) is np.ndarray
        assert answer.dtype == np.float64
    binary = WHOLE_ROWS > 4
    expected = answers(fit(name, binary.astype(float)), binary)
    assert_array_equal(answers(fit(name, binary), binary), expected)


def unsorted(rows):
    """Columns in any order, as products of sparse matrices have them."""
    other = sp.csr_array(rows[:, ::-1])
    return sp.csr_array((other.data, 3 - other.indices, other.indptr), rows.shape)


@pytest.mark.parametrize("size", [5, 60], ids=["landmarks", "exact"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "cosine", "matern52"])
@pytest.mark.parametrize("name", ONE_VIEW)
def test_sparse_rows_are_as_dense_ones(name, kernel, size):
    rows = np.where(np.abs(X) > 0.7, X, 0)
    S = [np.flatnonzero(rows[:, j])[0] for j in range(4)]
    given = {"kernel": kernel, "gamma": 0.1, size_of(name): size}
    given |= {"sampler": S} if size == 5 else {}
    dense = fit(name, rows, **given)
    for make in (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array, unsorted):
        stored = make(rows)
        sparse = fit(name, stored, **given)
        assert sp.issparse(sparse.landmarks_.points)
        for fitted, new in ((sparse, stored), (sparse, rows), (dense, stored)):
            assert_allclose(answers(fitted, new), answers(dense, rows), atol=1e-7)
        assert make is not unsorted or not stored.has_sorted_indices


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "polynomial"])
def test_precision_of_the_features_follows_the_rows(kernel):
    dtypes = {np.float32: np.float32, np.float16: np.float32}
    for dtype in (np.float64, np.float32, np.float16, np.int8, bool):
        rows = (3 * X).astype(dtype)
        fitted = fit("Nystroem", rows, kernel=kernel)
        Z = fitted.transform(rows)
        assert Z.dtype == fitted.components_.dtype == dtypes.get(dtype, np.float64)
        S = fitted.component_indices_
        expected = fit("Nystroem", rows * 1.0, kernel=kernel, sampler=S).transform(rows)
        expected = np.float64(expected) @ np.float64(expected).T
        tolerance = 2e-3 * np.abs(expected).max()
        assert_allclose(np.float64(Z) @ np.float64(Z).T, expected, atol=tolerance)
    assert fitted_before("Nystroem")[0].transform(np.float32(X)).dtype == np.float32
    assert fit("Nystroem", np.float32(X)).transform(X).dtype == np.float64


def letters(xs, ys):
    return np.array([[shared_letters(x, y) for y in ys] for x in xs])


def power(x, y, exponent):
    return float(np.dot(x, y) + 1) ** exponent


def sparse_dot(x, y):
    return float((x @ y.T).toarray().item())


def median_distance(p):
    distances = pairwise.pairwise_distances(X, metric="minkowski", p=p)
    return np.median(distances[np.triu_indices(60, 1)])


SCALED, SPARSE = 2 * X + 1e3, sp.csr_array(X)
WIDTHS = [0.1, 0.0, 0.5, 2.0]
BY_WIDTH = rbf_kernel(X * np.sqrt(WIDTHS), gamma=1)
BY_SCALE = rbf_kernel(X, gamma=0.25 / X.var())
BY_MEDIAN = rbf_kernel(X, gamma=0.5 / median_distance(2) ** 2)
BY_CITY_BLOCKS = pairwise.laplacian_kernel(X, gamma=1 / median_distance(1))
GP = 2.0 * gp.RBF([1.0, 2.0, 3.0, 4.0]) + gp.DotProduct()
PRODUCTS = X @ X.T
LETTERS = letters(WORDS, WORDS)
EXPRESSION = kernels.RBF(0.1) * kernels.Linear() + 0.5 * kernels.Laplacian(0.2)
ON_WORDS = kernels.Pairwise(shared_letters) + 2.0 * blockwise(letters)
UP_TO = np.arange(60)
#: Rows, the kernel and its parameters, and the kernel matrix of all rows.
ACCEPTED = [
    (X, "rbf", {"gamma": None}, rbf_kernel(X, gamma=0.25)),
    (X, "rbf", {"gamma": "scale"}, BY_SCALE),
    (SPARSE, "rbf", {"gamma": "scale"}, BY_SCALE),
    (SCALED, "rbf", {"gamma": "scale"}, BY_SCALE),
    (X, "rbf", {"gamma": "median"}, BY_MEDIAN),
    (SPARSE, "rbf", {"gamma": "median"}, BY_MEDIAN),
    (X, "laplacian", {"gamma": "median"}, BY_CITY_BLOCKS),
    (X, "rbf", {"gamma": WIDTHS}, BY_WIDTH),
    (SPARSE, "rbf", {"gamma": np.array(WIDTHS)}, BY_WIDTH),
    (X, GP, {}, GP(X)),
    (X, EXPRESSION, {}, EXPRESSION(X, X)),
    (X, np.dot, {}, PRODUCTS),
    (X, power, {"kernel_params": {"exponent": 2}}, (PRODUCTS + 1) ** 2),
    (X, blockwise(RBF_2), {}, RBF_2(X)),
    (SPARSE[:20], sparse_dot, {}, PRODUCTS[:20, :20]),
    (WORDS, shared_letters, {}, LETTERS),
    (np.array(WORDS), shared_letters, {}, LETTERS),
    (np.array(WORDS, dtype=object), shared_letters, {}, LETTERS),
    (pd.Series(WORDS), shared_letters, {}, LETTERS),
    (WORDS, blockwise(letters), {}, LETTERS),
    (WORDS, ON_WORDS, {}, 3 * LETTERS),
    (
        [[0] * i for i in UP_TO],
        lambda a, b: min(len(a), len(b)),
        {},
        np.minimum.outer(UP_TO, UP_TO),
    ),
]


@pytest.mark.parametrize(("rows", "kernel", "options", "matrix"), ACCEPTED)
@pytest.mark.parametrize("name", ["Nystroem", "KernelLogisticRegression", *RIDGES])
def test_accepted_kernels_and_rows_are_as_their_matrix(
    name, rows, kernel, options, matrix
):
    y = target(name)[: len(matrix)]
    found = model(name, kernel=kernel, **options).fit(rows, y)
    S = found.landmarks_.indices
    by_matrix = model(name, kernel="precomputed", sampler=S).fit(matrix, y)
    a, b = answers(found, rows), answers(by_matrix, matrix)
    if name == "Nystroem":  # a singular K_SS has a root that is not unique to rounding
        a, b = a @ a.T, b @ b.T
    assert_allclose(a, b, atol=1e-6 * max(1, np.abs(b).max()))
    numbers = isinstance(rows, (np.ndarray, sp.csr_array)) and rows.ndim == 2
    assert hasattr(found, "n_features_in_") == numbers


@pytest.mark.filterwarnings("ignore:.*not positive semi-definite")
@pytest.mark.parametrize("kernel", GAMMA_NAMES)
def test_gamma_auto_is_that_of_svc(kernel):
    """1/n_features, also where the kernel has another default."""
    for rows in (POSITIVE, sp.csr_array(POSITIVE))[: 2 - (kernel in HISTOGRAM_NAMES)]:
        given = {"rows": rows, "kernel": kernel}
        found, expected = (fit("Nystroem", gamma=g, **given) for g in ("auto", 0.25))
        assert_array_equal(found.transform(rows), expected.transform(rows))


@pytest.mark.parametrize("name", ONE_VIEW)
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


@pytest.mark.parametrize("name", ONE_VIEW)
def test_as_many_landmarks_as_are_needed(name):
    rows = np.random.default_rng(0).standard_normal((500, 2))
    y = rows[:, 0] > 0 if name in CLASSIFIERS else rows[:, 0]

    def found(size=None, **options):
        each = model(name, gamma=0.1, **{size_of(name): size} | options)
        return len(each.fit(rows, y).landmarks_)

    assert found(max_trace_error=0.2) < found(max_trace_error=0.01) < 500
    assert found(max_spectral_error=20.0) < found(max_spectral_error=1.0) < 500
    with pytest.warns(UserWarning, match="max_trace_error=1e-06 was not reached"):
        assert found(5, max_trace_error=1e-6) == 5
    message = r"max_spectral_error=0.001 needs about \d+ landmarks, more than the 5"
    with pytest.warns(UserWarning, match=message):
        assert found(5, max_spectral_error=1e-3) == 5


@pytest.mark.parametrize("name", PREDICTORS)
def test_folds_of_a_matrix_and_constant_columns(name):
    wider = np.column_stack([np.full(60, 1e3), X, np.zeros(60)])
    found = answers(fit(name, wider, gamma=0.2), wider)
    assert_allclose(found, answers(fit(name, gamma=0.2), X), atol=1e-6)
    # All rows are landmarks, so that none are drawn.
    by_rows = model(name, gamma=0.25, n_landmarks=1000)
    by_matrix = model(name, kernel="precomputed", n_landmarks=1000)
    if name == "KernelRidgeClassifierCV":
        by_matrix.set_params(gammas=None)
    found = cross_val_score(by_matrix, K, target(name), cv=3)
    expected = cross_val_score(by_rows, X, target(name), cv=3)
    assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("name", REGRESSORS)
def test_accepted_targets(name):
    fitted = model(name, fit_intercept=True).fit(X, np.full(60, -3.0))
    assert_allclose(fitted.predict(X), -3.0, rtol=1e-12)
    assert fitted.intercept_ == pytest.approx(-3.0)
    whole = np.round(3 * Y).astype(int)
    found, expected = (model(name).fit(X, y).predict(X) for y in (whole, 1.0 * whole))
    assert_array_equal(found, expected)
    for size in (5, 1000):
        each = model(name, n_landmarks=size)
        vector, column = (clone(each).fit(X, y) for y in (Y, Y[:, None]))
        assert column.predict(X).shape == (60, 1)
        assert column.dual_coef_.shape == (*vector.dual_coef_.shape, 1)
        assert_allclose(column.predict(X)[:, 0], vector.predict(X), atol=1e-12)


@pytest.mark.parametrize(("kernel", "rows"), [("rbf", X), ("precomputed", K)])
def test_the_exact_solution_keeps_rows_and_is_scikit_learns(kernel, rows):
    each = model("KernelRidge", kernel=kernel, n_landmarks=1000)
    fitted, expected = each.fit(sources.as_source(rows), Y), clone(each).fit(rows, Y)
    assert fitted.solver_ == "exact"
    assert_array_equal(fitted.X_fit_, rows)  # and not the source
    found = fitted.predict(rows, return_std=True)
    assert_array_equal(found, expected.predict(rows, return_std=True))
    theirs = kernel_ridge.KernelRidge(alpha=fitted.alpha, kernel=kernel).fit(rows, Y)
    assert_allclose(found[0], theirs.predict(rows), atol=1e-10)


def test_accepted_matrices():
    before = K.copy()
    fitted, by_rows = fit("Nystroem", K, kernel="precomputed"), fit("Nystroem")
    fitted.transform(K)
    assert_array_equal(K, before)
    assert_array_equal(fitted.component_indices_, by_rows.component_indices_)
    found, expected = fitted.approximation_error_, by_rows.approximation_error_
    assert float(found) == pytest.approx(float(expected))
    # (m, n) and (m, s) look the same: columns are the training rows, in order.
    for matrix in (K[:20, :20], WHOLE_ROWS[:5] @ WHOLE_ROWS[:5].T):
        S = np.random.default_rng(0).permutation(len(matrix))
        Z = model("Nystroem", kernel="precomputed", sampler=S).fit_transform(matrix)
        assert Z.dtype == np.float64
        assert_allclose(Z @ Z.T, matrix, atol=1e-8)


# --- defaults, and words that a user can know ---------------------------------------


def test_only_names_of_scikit_learn_have_its_default_kernel():
    """All others are "rbf": relatives of each other do not differ in silence."""
    theirs = decomposition, kernel_ridge, kernel_approximation
    for name, each in MODELS.items():
        like = [getattr(home, name) for home in theirs if hasattr(home, name)]
        assert type(each)().kernel == (like[0]().kernel if like else "rbf"), name


def public_classes():
    """All that the package and its public modules name."""
    modules = [getattr(nystrom, name) for name in nystrom.__all__]
    modules = [nystrom, *filter(inspect.ismodule, modules)]
    named = {name: getattr(home, name) for home in modules for name in home.__all__}
    return {name: each for name, each in named.items() if inspect.isclass(each)}


def test_messages_name_no_private_class():
    """Names of two words, such as OfRows: those of one are words of English."""
    package = Path(nystrom.__file__).parent
    trees = [ast.parse(path.read_text("utf-8")) for path in package.rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    ours = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
    private = {name for name in ours if re.match(r"[A-Z]\w*[a-z]\w*[A-Z]", name)}
    private -= {*public_classes()}
    raised = [part for n in nodes if isinstance(n, ast.Raise) for part in ast.walk(n)]
    values = [part.value for part in raised if isinstance(part, ast.Constant)]
    said = [value for value in values if isinstance(value, str)]
    assert len(private) > 20 < len(said)
    assert not [text for text in said if private & {*re.findall(r"\w+", text)}]
