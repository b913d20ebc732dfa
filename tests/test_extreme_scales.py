"""Rows of any scale: the right answer, or one error that says what is too large.

Never a raw warning of NumPy's (they are errors here), nor zeros for an overflow.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp
from lists import ESTIMATORS, KERNELS
from sklearn.base import clone, is_classifier

from nystrom import KernelRidge, Nystroem, kernels
from nystrom.engines import Threads
from nystrom.estimators._inputs import gamma_from_data
from nystrom.kernels.dot_product import DotProductKernel
from nystrom.sources import as_source

#: Such rows are what the warning is about; here it is what comes of them.
pytestmark = pytest.mark.filterwarnings(
    "ignore:K is nearly",
    "ignore:All rows of X are alike",
    "ignore:alpha=.* is less than float64 resolves",
)

#: Where squares, and then the numbers themselves, leave the range of the precision.
SCALES = {
    np.float64: [1e-310, 1e-200, 1e-150, 1e120, 1e150, 1e160, 1e200, 1e307],
    np.float32: [1e-44, 1e-30, 1e-18, 1e13, 1e18, 1e19, 1e30, 3e37],
}
CASES = [(dtype, scale) for dtype, scales in SCALES.items() for scale in scales]
#: Up to where there must be an answer: squares of K, and of float32 features, are
#: summed.
LARGEST = {np.float64: 1e70, np.float32: 1e18}


def wide(formula):
    """The formula in 80 bits, whose exponents reach far beyond all of these."""

    def k(x, y):
        try:
            return formula(x, y)
        except OverflowError:  # a distance squared, in a kernel that has vanished
            return 0.0

    return lambda X, Y: np.array(
        [[k(x, y) for y in Y.astype(np.longdouble)] for x in X.astype(np.longdouble)]
    )


def refused_or(call):
    """What it returns; None where it is refused, with what is wrong."""
    try:
        return call()
    except ValueError as refusal:
        error = refusal
    assert re.search("scale|A view is constant", str(error))
    return None


def scaled(case, rng, dtype, scale, n_rows=25):
    X = case.rows(rng, n_rows, dtype=np.float64)
    return np.clip(X * scale, -1e308, 1e308).astype(dtype)


@pytest.mark.filterwarnings("ignore:The kernel .* is not positive semi-definite")
@pytest.mark.parametrize("case", KERNELS, ids=str)
@pytest.mark.parametrize(("dtype", "scale"), CASES)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_features_are_right_or_refused(case, dtype, scale, storage, rng, seed):
    if storage is sp.csr_array and case.histograms:
        pytest.skip("histograms are dense")
    X = scaled(case, rng, dtype, scale)
    K = wide(case.formula)(X, X)
    model = Nystroem(case.kernel, n_components=8, random_state=seed)
    Z = refused_or(lambda: model.fit_transform(storage(X)))
    if Z is None:
        # Kernels of inner products need these, whatever they make of them.
        product = X.astype(np.longdouble) @ X.astype(np.longdouble).T
        of_products = isinstance(case.kernel, DotProductKernel)
        largest = max(np.abs(K).max(), np.abs(product).max() * of_products)
        assert np.sqrt(largest) > LARGEST[dtype]
        return
    assert Z.dtype == dtype
    assert np.isfinite(Z).all()
    np.testing.assert_array_equal(model.transform(storage(X)), Z)
    if case.kernel.traits.psd:
        S = model.component_indices_
        # Below the range of the precision values are 0, as everywhere.
        largest = max(float(K.diagonal().max()), 1e20 * float(np.finfo(dtype).tiny))
        found = Z.astype(np.longdouble) @ Z[S].astype(np.longdouble).T
        tolerance = 1e-6 if dtype == np.float64 else 1e-3
        assert np.abs(found - K[:, S]).max() <= tolerance * largest


@pytest.mark.filterwarnings("ignore:The kernel .* is not positive semi-definite")
@pytest.mark.parametrize("case", KERNELS, ids=str)
@pytest.mark.parametrize(("dtype", "scale"), CASES)
def test_predictions_are_finite_or_refused(case, dtype, scale, rng, seed):
    X = scaled(case, rng, dtype, scale)
    y = rng.standard_normal(len(X))
    model = KernelRidge(kernel=case.kernel, n_landmarks=8, random_state=seed)
    found = refused_or(lambda: model.fit(X, y).predict(X))
    if found is None:
        return
    assert np.isfinite(found).all()
    # Not worse than no answer at all.
    assert not case.kernel.traits.psd or np.mean((found - y) ** 2) <= 1.01 * np.mean(
        y**2
    )


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("kernel", [kernels.RBF(1.0), kernels.Linear()], ids=str)
@pytest.mark.parametrize("scale", [1e-200, 1e150, 1e200])
def test_every_estimator(estimator, kernel, scale, rng, seed):
    X = scale * rng.standard_normal((60, 3))
    y = X[:, 0] > 0 if is_classifier(estimator) else X[:, 0] / scale
    size = "n_landmarks" if "n_landmarks" in estimator.get_params() else "n_components"
    model = clone(estimator).set_params(**{size: 12, "kernel": kernel})
    model.set_params(random_state=seed)
    if refused_or(lambda: model.fit(X, y)) is None:
        return
    method = "predict" if hasattr(model, "predict") else "transform"
    assert np.isfinite(getattr(model, method)(X)).all()


@pytest.mark.parametrize("gamma", ["scale", "median"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize(("dtype", "scale"), CASES)
def test_widths_from_the_data(gamma, kernel, dtype, scale, rng):
    """Rows on twice the scale have half the width; or there is an error."""
    X = rng.standard_normal((60, 3))
    rows = np.clip(X * scale, -1e308, 1e308).astype(dtype)

    def width_of(rows):
        return gamma_from_data(gamma, kernel, as_source(rows), Threads(1))

    power = 1 if (kernel, gamma) == ("laplacian", "median") else 2
    expected = np.longdouble(width_of(X)) / np.longdouble(scale) ** power
    found = refused_or(lambda: width_of(rows))
    if found is None:
        assert not 1e-300 < expected < 1e300
    else:
        assert abs(found - expected) <= (0.3 if scale in (1e-44,) else 1e-3) * expected


def test_a_width_of_rows_that_do_not_differ(rng):
    """1, as scikit-learn has it: there is no scale to be had."""
    for rule in ("scale", "median"):
        for rows in (np.zeros((9, 3)), np.full((9, 3), 1e200)):
            assert gamma_from_data(rule, "rbf", as_source(rows), Threads(1)) == 1.0
    for value in 10.0 ** rng.uniform(-12, 0, 20):  # whose mean is off by rounding
        source = as_source(np.full((26, 23), value))
        assert gamma_from_data("scale", "rbf", source, Threads(1)) == 1.0
