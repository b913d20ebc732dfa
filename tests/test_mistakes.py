"""Mistakes that users make get one error: what was given, and what to do."""

from __future__ import annotations

import ast
import functools
import inspect
import pickle
import re
from pathlib import Path

import cloudpickle
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from lists import ESTIMATORS
from sklearn.base import clone, is_classifier
from sklearn.metrics import pairwise
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import nystrom
from nystrom import (
    KernelCCA,
    KernelLogisticRegression,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
    KernelRidgeCV,
    Nystroem,
    kernels,
    leverage_scores,
    select_landmarks,
)

X = np.random.default_rng(0).standard_normal((60, 3))
Y = np.sin(X[:, 0])
FRAME = pd.DataFrame(X, columns=list("abc"))
DAYS = pd.date_range("2026-01-01", periods=60)


def fit(estimator, rows):
    y = Y > 0 if is_classifier(estimator) else Y
    return clone(estimator).fit(rows, y)


def refused(rows, match):
    """By every estimator and by the functions."""
    for estimator in ESTIMATORS:
        with pytest.raises(ValueError, match=match):
            fit(estimator, rows)
    for function in (select_landmarks, functools.partial(leverage_scores, ridge=1.0)):
        with pytest.raises(ValueError, match=match):
            function(rows)


def features(**options):
    return Nystroem(n_components=8, random_state=0, **options)


# --- rows ---------------------------------------------------------------------------

TIMES = {
    "dates": DAYS,
    "dates with a zone": DAYS.tz_localize("Europe/Vienna"),
    "durations": DAYS - DAYS[0],
}


@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
@pytest.mark.parametrize("alone", [True, False])
def test_a_column_of_dates_is_named(times, alone):
    frame = pd.DataFrame({"when": times}) if alone else FRAME.assign(when=times)
    refused(frame, r"X has the column 'when' of .*(datetime|timedelta).* days: ")


def test_dates_made_numbers_as_the_error_says():
    dates = FRAME.assign(when=DAYS)["when"]
    numbers = (dates - dates.min()) / np.timedelta64(1, "D")
    assert features().fit(FRAME.assign(when=numbers)).n_features_in_ == 4


@pytest.mark.parametrize("kind", ["Date", "Datetime", "Duration"])
def test_a_column_of_dates_of_polars(kind):
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    times = DAYS - DAYS[0] if kind == "Duration" else DAYS
    column = pl.Series("when", times.to_numpy())
    column = column.cast(pl.Date) if kind == "Date" else column
    refused(frame.with_columns(column), rf"X has the column 'when' of {kind}")


def test_an_array_of_dates():
    refused(DAYS.to_numpy()[:, None], r"X holds datetime64\[.*not numbers")


def test_dates_to_be_predicted():
    for y in (DAYS, pd.Series(DAYS), DAYS.to_numpy()):
        with pytest.raises(ValueError, match=r"y holds datetime64.*not numbers"):
            KernelRidge(n_landmarks=8).fit(X, y)


def test_lazy_targets_are_to_be_collected():
    target = pl.DataFrame({"y": Y}).lazy()
    for model in (KernelRidge(), KernelRidgeClassifier(), KernelCCA()):
        with pytest.raises(ValueError, match=r"LazyFrame.*\.collect\(\)"):
            model.fit(X, target)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"a": X[:, 0], "b": X[:, 1]}, r"X is a dict; .*DataFrame\(X\)"),
        ((row for row in X), r"X is a generator.*list\(X\)"),
        ({1.0, 2.0}, r"X is a set"),
        (
            np.zeros(60, dtype=[("a", float), ("b", float)]),
            r"records with the fields a, b.*structured_to_unstructured",
        ),
        (np.ma.masked_greater(X, 2.0), r"X has masked values.*filled"),
        (np.array([["1", "2"], ["3", "x"]] * 30), r"X holds text.*Encode"),
        (FRAME.assign(d=["u", "v", "w"] * 20), r"'u' in the column 'd'\. Encode"),
        (
            FRAME.assign(d=pd.Categorical(["1", "v", "w"] * 20)),
            r"text where numbers are needed: 'v' in the column 'd'\. Encode",
        ),
        (pl.from_pandas(FRAME.assign(d=["u", None] * 30)), r"'u' in the column 'd'"),
        ("hello", r"X='hello' is text that names no file; .*\.csv"),
    ],
    ids=[
        *("dict", "generator", "set", "records", "masked", "text"),
        *("mixed", "category", "polars", "a word"),
    ],
)
def test_what_is_no_table_of_numbers(rows, message):
    refused(rows, message)


def test_nothing_masked_is_as_no_mask():
    found = features().fit_transform(np.ma.masked_greater(X, 99.0))
    np.testing.assert_array_equal(found, features().fit_transform(X))


def test_a_step_before_may_make_the_rows():
    """A mistake is found where it is made, also inside a pipeline."""
    model = make_pipeline(MinMaxScaler(), KernelRidge(n_landmarks=8))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, Y[:-1])


# --- targets and weights ------------------------------------------------------------


@pytest.mark.parametrize(
    "model", [KernelRidge(), KernelRidgeClassifier(), KernelCCA()], ids=str
)
@pytest.mark.parametrize("rows", [X, sp.csr_array(X), FRAME, X.tolist()])
@pytest.mark.parametrize("n", [1, 59, 61])
def test_more_or_fewer_targets_than_rows(model, rows, n):
    y = np.arange(n) % 2
    message = rf"inconsistent numbers of samples: \[60, {n}\]\. y has one entry"
    with pytest.raises(ValueError, match=message):
        clone(model).fit(rows, y)


def test_targets_that_are_sparse():
    with pytest.raises(ValueError, match=r"y is sparse; .*y\.toarray\(\)"):
        KernelRidge(n_landmarks=8).fit(X, sp.csr_array(Y[:, None]))


@pytest.mark.parametrize("y", [["low", "high"] * 30, [[1], [1, 2]] * 30])
def test_targets_that_are_no_numbers(y):
    with pytest.raises(ValueError, match=r"y holds .* not a number: [^.]*[^.]\. Enc"):
        KernelRidge(n_landmarks=8).fit(X, y)


@pytest.mark.parametrize("weight", [["a"] * 60, [None] * 60, [[1], [1, 2]] * 30, "a"])
def test_weights_that_are_no_numbers(weight):
    for call in (
        lambda: KernelRidge(n_landmarks=8).fit(X, Y, sample_weight=weight),
        lambda: select_landmarks(X, n_landmarks=8, sample_weight=weight),
    ):
        with pytest.raises(ValueError, match=r"[Ss]ample.?weight"):
            call()


# --- kernels ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "hint"),
    [
        (pairwise.rbf_kernel, r"the name 'rbf', or nystrom\.kernels\.blockwise\(rbf_k"),
        (pairwise.laplacian_kernel, r"the name 'laplacian', or"),
        (pairwise.cosine_similarity, r"the name 'cosine', or"),
        (pairwise.euclidean_distances, r"pass nystrom\.kernels\.blockwise"),
        (functools.partial(pairwise.rbf_kernel, gamma=2.0), r"the name 'rbf', or"),
    ],
)
def test_functions_of_scikit_learn_take_blocks(kernel, hint):
    message = rf"is a function of two blocks .*{hint}"
    with pytest.raises(ValueError, match=message):
        features(kernel=kernel).fit(X)
    with pytest.raises(ValueError, match=message):
        KernelRidge(kernel=kernel, n_landmarks=8).fit(X, Y)


def test_functions_of_scikit_learn_are_kernels_by_blockwise():
    kernel = kernels.blockwise(functools.partial(pairwise.rbf_kernel, gamma=0.5))
    found = features(kernel=kernel, sampler=np.arange(8)).fit_transform(X)
    expected = features(gamma=0.5, sampler=np.arange(8)).fit_transform(X)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("abc", "'abc'"),
        (None, "None"),
        (1j, "1j"),
        (np.ones(3), r"a ndarray of shape \(3,\)"),
        ([1.0, 2.0], r"a list of shape \(2,\)"),
        (sp.csr_array(np.eye(1)), r"a csr_array of shape \(1, 1\)"),
        ("x" * 99, "a str"),
    ],
)
def test_a_kernel_returns_a_number(value, told):
    def kernel(x, y):
        return value

    with pytest.raises(ValueError, match=rf"The kernel kernel returned {told} for two"):
        features(kernel=kernel).fit(X)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda X, Y: np.full((len(X), len(Y)), "a"), "<U1 values.* real numbers"),
        (lambda X, Y: (X @ Y.T) * 1j, "complex128 values.* real numbers"),
        (lambda X, Y: None, "returned None for blocks"),
        (lambda X, Y: "text", "returned 'text' for blocks"),
    ],
)
def test_a_kernel_of_blocks_returns_numbers(made, told):
    with pytest.raises(ValueError, match=told):
        features(kernel=kernels.blockwise(made)).fit(X)


def test_an_error_of_the_users_kernel_is_theirs_with_a_hint():
    def kernel(X, Y):
        return np.exp(-((X[:, None] - Y[None]) ** 2).sum(axis=2))

    with pytest.raises(IndexError) as caught:
        features(kernel=kernel).fit(X)
    (note,) = caught.value.__notes__
    assert "kernel=kernel was called with two rows" in note
    assert "kernels.blockwise" in note
    features(kernel=kernels.blockwise(kernel)).fit(X)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA], ids=str)
def test_labels_that_are_missing(missing):
    y = ["a", "b"] * 30
    y[7] = missing
    for labels in (pd.Series(y), np.array(y, dtype=object)):
        with pytest.raises(ValueError, match=r"no label in row 7, .*drop such rows"):
            KernelRidgeClassifier(n_landmarks=5).fit(X, labels)


def test_text_that_is_numbers_goes_on_as_numbers():
    found = features().fit_transform(FRAME.astype(str))
    np.testing.assert_allclose(found, features().fit_transform(X), atol=1e-9)


# --- NaN and infinity, with their place ---------------------------------------------

INSTEAD = {
    "array": lambda rows: rows,
    "list": lambda rows: rows.tolist(),
    "objects": lambda rows: np.where(np.isnan(rows), None, rows).astype(object),
    "sparse": sp.csr_array,
    "pandas": lambda rows: pd.DataFrame(rows, columns=list("abc")),
    "polars": lambda rows: pl.DataFrame(rows, schema=list("abc")),
    "nullable": lambda rows: pd.DataFrame(rows, columns=list("abc")).convert_dtypes(),
}


@pytest.mark.parametrize("storage", INSTEAD)
def test_a_value_that_is_missing_in_x_is_told_with_its_place(storage):
    rows = X.copy()
    rows[[17, 40], [1, 0]] = np.nan
    column = "'b'" if storage in ("pandas", "polars", "nullable") else "1"
    message = (
        rf"Input X contains NaN: row 17, column {column} \(2 rows have such values\)\. "
        "Impute it, .*SimpleImputer.* drop such rows, .*HistGradientBoosting"
    )
    refused(INSTEAD[storage](rows), message)
    for estimator in ESTIMATORS:
        new, fitted = INSTEAD[storage](rows), fit(estimator, INSTEAD[storage](X))
        method = "predict" if hasattr(fitted, "predict") else "transform"
        with pytest.raises(ValueError, match=message):
            getattr(fitted, method)(new)


def test_an_infinite_value_in_x_is_told_with_its_place():
    rows = X.copy()
    rows[5, 2] = -np.inf
    message = r"Input X contains infinity: row 5, column 2\. Replace it"
    refused(rows, message)
    refused(sp.csr_array(rows), message)


SUPERVISED = [
    KernelRidge(),
    KernelRidgeCV(),
    KernelRidgeClassifier(),
    KernelRidgeClassifierCV(),
    KernelLogisticRegression(),
]


@pytest.mark.parametrize("value", [np.nan, np.inf, None, pd.NA])
@pytest.mark.parametrize("estimator", SUPERVISED, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("rows", ["array", "file"])
def test_a_value_that_is_missing_in_y_is_told_with_its_row(
    estimator, value, rows, tmp_path
):
    np.save(tmp_path / "X.npy", X)
    given = X if rows == "array" else tmp_path / "X.npy"
    y = Y > 0 if is_classifier(estimator) else Y
    objects = y.astype(object)
    objects[[9, 30]] = value
    if value is not np.inf:
        message = r"(Input y contains NaN: row|y has no label in row) 9\b.*[dD]rop such"
        with pytest.raises(ValueError, match=message):
            clone(estimator).fit(given, objects)
    if isinstance(value, float):
        word = "NaN" if np.isnan(value) else "infinity"
        message = rf"Input y contains {word}: row 9 \(2 rows have such values\)\. Drop"
        for y in (objects.astype(float), pd.Series(objects.astype(float))):
            with pytest.raises(ValueError, match=message):
                clone(estimator).fit(given, y)


def test_the_second_view_is_called_y():
    y = X[:, :2].copy()
    y[7, 1] = np.nan
    with pytest.raises(ValueError, match=r"y contains NaN: row 7, column 1\. Drop"):
        KernelCCA(n_landmarks=8).fit(X, y)


def test_rows_of_several_lengths():
    for rows in ([[1.0, 2.0], [3.0]] * 30, [(1.0,), (3.0, 4.0)] * 30):
        for model in (KernelRidge(kernel="rbf"), KernelLogisticRegression()):
            with pytest.raises(ValueError, match="all of one length; row 0 of X has"):
                model.set_params(n_landmarks=8).fit(rows, Y > 0)


# --- words that a user can know -----------------------------------------------------


def public_classes():
    """All that the package and its public modules name."""
    modules = [getattr(nystrom, name) for name in nystrom.__all__]
    modules = [nystrom, *filter(inspect.ismodule, modules)]
    named = {name: getattr(home, name) for home in modules for name in home.__all__}
    return {name: each for name, each in named.items() if inspect.isclass(each)}


#: Parts of an estimator or a display; samplers, kernels and engines are called by code.
FOR_USERS = ("Kernel", "Nystroem", "Display")


def test_errors_of_python_name_no_private_class():
    """Methods that are inherited from one have its name, as Python tells it."""
    known = public_classes()
    seen = set()
    for name, each in known.items():
        if not name.startswith(FOR_USERS[:2]) and not name.endswith(FOR_USERS[2]):
            continue
        for method in dir(each):
            called = getattr(each, method)
            if method.startswith("_") or not inspect.isroutine(called):
                continue
            if not str(called.__module__).startswith("nystrom"):
                continue  # scikit-learn's own
            with pytest.raises(TypeError) as told:
                called()  # without self, or without the estimator
            owner, dot, rest = str(told.value).partition("(")[0].partition(".")
            assert not dot or owner in known, told.value
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
    assert not [
        (text, name)
        for text in said
        for name in re.findall(r"\w+", text)
        if name in private
    ]


def test_a_method_sent_to_another_process_is_still_found():
    fitted = KernelRidgeClassifier(kernel="rbf", n_landmarks=8).fit(X, Y > 0)
    for dumps in (pickle.dumps, cloudpickle.dumps):
        sent = pickle.loads(dumps(fitted.predict))
        np.testing.assert_array_equal(sent(X), fitted.predict(X))
