"""Data on which samplers are known to break: copies, extreme scales, tiny ranks.

Whatever the data, a sampler returns the right number of different rows, every number in
the result is finite, the rank is that of the landmarks' kernel matrix, and there is no
warning. Rows of any scale have the right answer, or one error that says what is too
large: never a raw warning of NumPy's (they are errors here), nor zeros for an overflow.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from lists import (
    CHOOSING,
    CUBIC,
    ESTIMATORS,
    KERNELS,
    MISSING_RARE_ROWS,
    OFF_THE_ROWS,
    RIDGED,
    SAMPLERS,
    SCORED,
    WITHOUT_SCORES,
    but,
)
from numpy.testing import assert_allclose, assert_array_equal
from oracles_sampling import rbf_matrix
from sklearn.base import clone, is_classifier

from nystrom import (
    KernelRidge,
    Nystroem,
    approximate,
    kernels,
    leverage_scores,
    samplers,
    select_landmarks,
)
from nystrom.engines import Threads
from nystrom.kernels import RBF, Cosine, Kernel, Linear, Polynomial, Precomputed
from nystrom.sources import RowNumbers

#: Such rows are what the warnings are about; here it is what comes of them.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The kernel matrix is nearly"),
    pytest.mark.filterwarnings("ignore:alpha=.* is below the rounding"),
    pytest.mark.usefixtures("one_blas_thread"),
]

DTYPES = [np.float64, np.float32]
both_dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=["float64", "float32"])
both_constants = pytest.mark.parametrize("theory", [{}, {"delta": 0.03}], ids=str)


def distinct(points):
    return len(np.unique(points, axis=0))


def nonzero(points):
    """The rank of rows of which the non-zero ones are independent."""
    return int(np.count_nonzero(np.any(points != 0, axis=1)))


def constant_kernel():
    return kernels.blockwise(
        lambda X, Y: np.full((len(X), len(Y)), 2.5),
        diag=lambda X: np.full(len(X), 2.5),
    )


def few_nonzero(rng, n):
    X = np.zeros((n, 3))
    X[rng.choice(n, 3, replace=False)] = 10 * np.eye(3)
    return X


def one_other(rng, n):
    X = np.ones((n, 2))
    X[n // 3] = -3
    return X


@dataclass
class Case:
    """Rows, a kernel, and the rank of K_SS for landmarks at these points."""

    rows: Callable[[np.random.Generator, int], np.ndarray]
    kernel: Kernel
    rank: Callable[[np.ndarray], int]


def normal(scale=1.0, shift=0.0, d=3):
    return lambda rng, n: shift + scale * rng.standard_normal((n, d))


CASES = {
    "constant rows": Case(lambda rng, n: np.full((n, 3), 1.7), RBF(0.5), distinct),
    "three distinct rows": Case(
        lambda rng, n: np.array([[0.0, 0], [5, 0], [0, 5]])[rng.integers(0, 3, n)],
        RBF(0.5),
        distinct,
    ),
    "one row unlike all others": Case(one_other, RBF(0.5), distinct),
    "binary rows": Case(
        lambda rng, n: rng.integers(0, 2, (n, 3)).astype(float), RBF(1.0), distinct
    ),
    "large values, linear": Case(normal(1e12), Linear(), lambda P: min(len(P), 3)),
    "small values, linear": Case(normal(1e-12), Linear(), lambda P: min(len(P), 3)),
    "large values, rbf": Case(normal(1e12), RBF(1.0), len),
    "small values, rbf": Case(normal(1e-12), RBF(1.0), lambda P: 1),
    "gamma 1e9": Case(normal(), RBF(1e9), len),
    "gamma 1e-9": Case(normal(), RBF(1e-9), lambda P: min(len(P), 4)),
    "gamma 1e-300": Case(normal(), RBF(1e-300), lambda P: 1),
    "far from the origin": Case(normal(shift=1e4), RBF(0.5), len),
    "zero rows, linear": Case(
        lambda rng, n: np.zeros((n, 3)), Linear(), lambda P: 0
    ),
    "zero rows, cosine": Case(
        lambda rng, n: np.zeros((n, 3)), Cosine(), lambda P: 0
    ),
    "nearly all rows zero, linear": Case(few_nonzero, Linear(), nonzero),
    "nearly all rows zero, cosine": Case(few_nonzero, Cosine(), nonzero),
    "a constant kernel": Case(normal(), constant_kernel(), lambda P: 1),
    "a linear kernel of rank 2": Case(normal(d=2), Linear(), lambda P: min(len(P), 2)),
    "a quadratic kernel of rank 3": Case(
        normal(d=1), Polynomial(gamma=1.0, degree=2, coef0=1.0),
        lambda P: min(len(P), 3),
    ),
}  # fmt: skip


PAIRS = [
    (case, sampler)
    for case in CASES
    for sampler in SAMPLERS
    if sampler not in OFF_THE_ROWS or CASES[case].kernel.traits.is_distance_based
]


def assert_sound(landmarks, X, n_landmarks):
    """The right number of different rows; every number finite and in its range."""
    n = len(X)
    assert len(landmarks) == min(n, n_landmarks)
    if landmarks.sampler in OFF_THE_ROWS:
        assert landmarks.indices is None
        # Means of rows lie between them.
        slack = 1e-6 * np.abs(X).max()
        assert np.all(landmarks.points >= X.min(axis=0) - slack)
        assert np.all(landmarks.points <= X.max(axis=0) + slack)
        assert landmarks.points.dtype == X.dtype
    else:
        assert len(np.unique(landmarks.indices)) == len(landmarks)
        assert_array_equal(landmarks.points, X[landmarks.indices])
    for values in (landmarks.weights, landmarks.probabilities):
        assert values is None or (np.all(np.isfinite(values)) and np.all(values > 0))
    assert landmarks.ridge is None or 0 < landmarks.ridge < np.inf
    assert landmarks.guarantee is None
    assert not any("indefinite" in note for note in landmarks.notes)


@both_dtypes
@pytest.mark.parametrize(("case", "sampler"), PAIRS)
@pytest.mark.parametrize("size", [1, 12])
def test_every_sampler_takes_degenerate_data(case, sampler, dtype, size, rng, seed):
    case = CASES[case]
    X = case.rows(rng, 200).astype(dtype)
    given = {"kernel": case.kernel, "n_landmarks": size, "random_state": seed}
    landmarks = select_landmarks(X, sampler=sampler, **given)
    assert_sound(landmarks, X, size)
    assert landmarks.rank == case.rank(landmarks.points)
    if sampler in SCORED:
        assert 0 <= landmarks.effective_dimension <= 200
    approximation = approximate(X, landmarks)
    features = approximation.features()
    assert np.all(np.isfinite(features))
    assert features.shape == (200, size)
    assert 0 <= approximation.trace_error < np.inf


@both_constants
@pytest.mark.parametrize("sampler", RIDGED)
@pytest.mark.parametrize("case", CASES)
def test_an_error_bound_takes_degenerate_data(case, sampler, theory, rng, seed):
    case = CASES[case]
    n = 200 if sampler in CUBIC else 800
    X = case.rows(rng, n)
    scale = float(np.mean(case.kernel.diag(X))) or 1.0
    given = {"kernel": case.kernel, "random_state": seed, **theory}
    for bound in (1e-3 * scale, scale):
        landmarks = select_landmarks(
            X, max_spectral_error=bound, sampler=sampler, **given
        )
        assert 1 <= len(np.unique(landmarks.indices)) == len(landmarks) <= n
        assert np.all(np.isfinite(landmarks.weights))
        assert 0 <= landmarks.effective_dimension <= n


@pytest.mark.parametrize("case", CASES)
def test_scores_of_degenerate_data_lie_between_0_and_1(case, rng):
    X, kernel = CASES[case].rows(rng, 100), CASES[case].kernel
    scale = float(np.mean(kernel.diag(X))) or 1.0
    landmarks = select_landmarks(X, kernel=kernel, sampler=np.arange(10))
    for ridge in (1e-9 * scale, scale):
        exact = leverage_scores(X, kernel=kernel, ridge=ridge)
        estimate = leverage_scores(X, ridge=ridge, landmarks=landmarks)
        assert np.all((exact >= 0) & (exact <= 1))
        assert np.all((estimate >= 0) & (estimate <= 1))
    assert np.all(estimate >= exact - 1e-5)


@both_constants
def test_a_kernel_that_is_the_identity_needs_every_row(theory, rng, seed):
    """Rounding of γ‖x − y‖² must not pass for a row that others explain."""
    X = rng.standard_normal((800, 3))
    given = {"gamma": 1e9, "random_state": seed}
    landmarks = select_landmarks(X, max_spectral_error=1e-6, **given, **theory)
    assert len(landmarks) == 800
    few = select_landmarks(X[:100], gamma=1e9, sampler=np.arange(10))
    assert leverage_scores(X[:100], ridge=1e-6, landmarks=few).min() > 0.99


# --- number of rows and of landmarks ------------------------------------------------


@both_dtypes
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize(
    ("n", "s"), [(1, 1), (1, 5), (2, 1), (3, 2), (7, 7), (7, 8), (65, 1), (130, 129)]
)
def test_few_rows_and_few_landmarks(sampler, n, s, dtype, rng, seed):
    X = rng.standard_normal((n, 2)).astype(dtype)
    given = {"n_landmarks": s, "sampler": sampler, "random_state": seed}
    landmarks = select_landmarks(X, gamma=5.0, **given)
    assert_sound(landmarks, X, s)
    if s >= n:
        assert approximate(X, landmarks).trace_error < 1e-4


@both_constants
@pytest.mark.parametrize("n", [1, 2, 192, 193])
def test_an_error_bound_for_few_rows(n, theory, rng, seed):
    X = rng.standard_normal((n, 2))
    landmarks = select_landmarks(X, max_spectral_error=0.5, random_state=seed, **theory)
    assert 1 <= len(landmarks) <= n
    K = rbf_matrix(X, 0.5)
    Z = approximate(X, landmarks).features()
    if theory or n <= 192:
        assert np.linalg.norm(K - Z @ Z.T, 2) < 1e-8


# --- the right rows, not only the right number --------------------------------------


@both_dtypes
@pytest.mark.parametrize("sampler", but(MISSING_RARE_ROWS))
def test_three_distinct_rows_are_mostly_all_found(sampler, dtype, rng, seed):
    """Two of them are rare: a uniform draw of 20 misses one nearly always."""
    X = np.array([[0.0, 0], [5, 0], [0, 5]])[np.repeat([0, 1, 2], [2, 3, 295])]
    X = X[rng.permutation(300)].astype(dtype)
    found = 0
    for run in range(10 * seed, 10 * seed + 10):
        given = {"n_landmarks": 20, "sampler": sampler, "random_state": run}
        landmarks = select_landmarks(X, gamma=1.0, **given)
        exact = approximate(X, landmarks).trace_error < 1e-6
        assert exact == (distinct(landmarks.points) == 3)
        found += exact
    assert found >= 7  # each run misses one with a probability of 1 %


@pytest.mark.parametrize("sampler", but(WITHOUT_SCORES))
def test_float32_far_from_the_origin_is_as_good_as_near_it(sampler, rng, seed):
    near = rng.standard_normal((1500, 2)).astype(np.float32)
    near = (near * 64).round() / 64  # exact after the shift, too
    errors = []
    for X in (near, near + np.float32(4096)):
        rows = X[: 400 if sampler in CUBIC else 1500]
        given = {"n_landmarks": 30, "sampler": sampler, "random_state": seed}
        landmarks = select_landmarks(rows, gamma=0.3, **given)
        errors.append(approximate(X, landmarks).trace_error)
    assert errors[1] == pytest.approx(errors[0], rel=0.2)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_inverse_is_never_formed_of_a_singular_matrix(sampler, rng, seed):
    """Near copies: K_SS is singular to working precision."""
    X = np.repeat(rng.standard_normal((20, 2)), 20, axis=0)
    X += 1e-9 * rng.standard_normal(X.shape)
    given = {"n_landmarks": 60, "sampler": sampler, "random_state": seed}
    landmarks = select_landmarks(X, gamma=0.5, **given)
    assert_sound(landmarks, X, 60)
    Z = approximate(X, landmarks).features()
    assert np.linalg.eigvalsh(rbf_matrix(X, 0.5) - Z @ Z.T).min() > -1e-6


@given(
    sampler=st.sampled_from(SAMPLERS),
    n=st.integers(1, 60),
    n_distinct=st.integers(1, 5),
    n_landmarks=st.integers(1, 70),
    dtype=st.sampled_from(DTYPES),
    exponent=st.integers(-12, 12),
    draw=st.integers(0, 2**32 - 1),
)
def test_copies_of_a_few_rows_at_any_scale(
    sampler, n, n_distinct, n_landmarks, dtype, exponent, draw
):
    rng = np.random.default_rng(draw)
    # Rows of a lattice: distances are 0 or at least 1 in units of the kernel's width.
    lattice = rng.permutation(n_distinct)[:, None] * np.array([[3.0, 0.0]])
    X = (lattice[rng.integers(0, n_distinct, n)] * 10.0**exponent).astype(dtype)
    given = {"n_landmarks": n_landmarks, "sampler": sampler, "random_state": draw}
    landmarks = select_landmarks(X, gamma=10.0 ** (-2 * exponent), **given)
    assert_sound(landmarks, X, n_landmarks)
    assert landmarks.rank == distinct(landmarks.points)


# --- traps of the authors' program and its ports ------------------------------------


@pytest.mark.parametrize("scale", [1e-100, 1e-12, 1e12, 1e100])
def test_the_ridge_is_relative_to_the_kernel(scale, rng, seed):
    X = rng.standard_normal((300, 1))
    given = {"n_landmarks": 20, "sampler": "recursive", "random_state": seed}
    one, two = (
        select_landmarks(X, kernel=factor * RBF(0.5), **given).ridge
        for factor in (1.0, scale)
    )
    assert two == pytest.approx(scale * one, rel=1e-6)


@pytest.mark.parametrize("scale", [1e-290, 1e-160, 1.0, 1e160, 1e290])
def test_the_least_ridge_for_a_size_is_found_at_any_scale(scale, rng):
    K = rbf_matrix(rng.standard_normal((100, 2)), 0.5)
    sampler = samplers.Leverage(delta=0.01)
    kernel, rows = Precomputed(scale * K), RowNumbers(100)
    found = sampler(kernel, rows, 60, seed=0, engine=Threads(1))
    ridge = found.ridge / scale
    scores = leverage_scores(K, kernel="precomputed", ridge=ridge)
    p, scores_found = found.probabilities, scores[found.indices]
    q = np.median(p[p < 1] / scores_found[p < 1])
    assert 59 < np.minimum(1, q * scores).sum() <= 60 + 1e-6


# --- rows of zeros, overflow, and weights -------------------------------------------


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99, 1.0])
@pytest.mark.parametrize("sampler", CHOOSING)
def test_rows_most_of_which_are_zero(sampler, share, rng, seed):
    """A sample of nothing but zero rows says nothing about the others."""
    X = rng.standard_normal((300, 4))
    X[: int(share * 300)] = 0
    model = Nystroem("linear", n_components=15, sampler=sampler, random_state=seed)
    for rows in (X, sp.csr_array(X)):
        Z = model.fit_transform(rows)
        assert np.isfinite(Z).all()
        assert not np.any(Z[: int(share * 300)])
        assert model.landmarks_.rank <= 4
        dimension = model.landmarks_.effective_dimension
        assert np.isfinite(dimension) if sampler in SCORED else dimension is None


@pytest.mark.parametrize("sampler", CHOOSING)
def test_rows_all_zero_but_a_few(sampler, rng, seed):
    """As in counts of words: most rows of a level have k(x, x) = 0."""
    dense = few_nonzero(rng, 400 if sampler in CUBIC else 1500)
    given = {"n_landmarks": 20, "sampler": sampler, "random_state": seed}
    landmarks = select_landmarks(sp.csr_array(dense), kernel="linear", **given)
    assert len(np.unique(landmarks.indices)) == 20
    # A sample of zeros leaves scores near infinity, and weights come on top.
    given["sample_weight"] = np.full(len(dense), 1e6)
    assert_sound(select_landmarks(dense, kernel="cosine", **given), dense, 20)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_row_whose_squared_norm_overflows_is_like_no_other(sampler, rng):
    X = rng.standard_normal((40, 3))
    X[7] *= 1e200
    for kernel in (RBF(1.0), kernels.Matern(1.0, 2.5), kernels.RationalQuadratic()):
        given = {"n_landmarks": 30, "sampler": sampler, "random_state": 0}
        landmarks = select_landmarks(X, kernel=kernel, **given)
        assert_sound(landmarks, X, 30)
        assert np.all(np.isfinite(approximate(X, landmarks).features()))


@pytest.mark.parametrize("n", [40, 1500])
@pytest.mark.parametrize(
    "sampler", ["leverage", "recursive", "auto", "rpcholesky", "greedy", "uniform"]
)
def test_weights_that_make_kernel_values_overflow_are_one_error(sampler, n, rng):
    X = 1e100 * rng.standard_normal((n, 3))
    options = {"max_trace_error": 0.1} if sampler == "uniform" else {"n_landmarks": 9}
    options |= {"sampler": sampler, "sample_weight": np.full(n, 1e150)}
    with pytest.raises(ValueError, match="the scale of the data"):
        select_landmarks(X, kernel="linear", **options)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_weights_next_to_nothing(sampler, rng, seed):
    """What remains of a row, times its weight, has an infinite inverse."""
    X, weights = rng.standard_normal((20, 3)), np.full(20, 1e-307)
    given = {"n_landmarks": 15, "sampler": sampler, "random_state": seed}
    landmarks = select_landmarks(X, gamma=0.1, sample_weight=weights, **given)
    assert len(landmarks) == 15


def test_a_root_too_large_for_float32_is_multiplied_in_float64(rng):
    X = (1e-40 * rng.standard_normal((40, 3))).astype(np.float32)
    landmarks = select_landmarks(X, kernel="linear", n_landmarks=3, random_state=0)
    Z = approximate(X, landmarks).features().astype(np.float64)
    K = X.astype(np.float64) @ X.T.astype(np.float64)
    assert_allclose(Z @ Z.T, K, atol=1e-4 * K.max())


def test_one_outlier_does_not_spoil_the_other_float32_rows(rng):
    X = rng.standard_normal((300, 4))
    X[7] *= 1e5
    for rows in (X.astype(np.float32), (X + 1000).astype(np.float32)):
        model = Nystroem(gamma=0.25, sampler=np.arange(20)).fit(rows)
        Z = model.transform(rows).astype(np.float64)
        K = rbf_matrix(rows.astype(np.float64), 0.25)
        expected = K[:, :20] @ np.linalg.solve(K[:20, :20], K[:20])
        assert_allclose(Z @ Z.T, expected, atol=1e-3)


# --- rows of any scale --------------------------------------------------------------

#: Where squares, and then the numbers themselves, leave the range of the precision.
SCALES = {
    np.float64: [1e-310, 1e-200, 1e-150, 1e120, 1e150, 1e160, 1e200, 1e307],
    np.float32: [1e-44, 1e-30, 1e-18, 1e13, 1e18, 1e19, 1e30, 3e37],
}
AT_SCALE = [(dtype, scale) for dtype, scales in SCALES.items() for scale in scales]
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
    assert re.search("[Ss]cale|A view is constant", str(error))
    return None


def scaled(case, rng, dtype, scale, n_rows=25):
    X = case.rows(rng, n_rows, dtype=np.float64)
    return np.clip(X * scale, -1e308, 1e308).astype(dtype)


@pytest.mark.filterwarnings("ignore:The kernel .* is not positive semi-definite")
@pytest.mark.parametrize("case", KERNELS, ids=str)
@pytest.mark.parametrize(("dtype", "scale"), AT_SCALE)
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
        of_products = not case.kernel.traits.is_distance_based and not case.histograms
        largest = max(np.abs(K).max(), np.abs(product).max() * of_products)
        assert np.sqrt(largest) > LARGEST[dtype]
        return
    assert Z.dtype == dtype
    assert np.isfinite(Z).all()
    assert_array_equal(model.transform(storage(X)), Z)
    if case.kernel.traits.psd:
        S = model.component_indices_
        # Below the range of the precision values are 0, as everywhere.
        largest = max(float(K.diagonal().max()), 1e20 * float(np.finfo(dtype).tiny))
        found = Z.astype(np.longdouble) @ Z[S].astype(np.longdouble).T
        tolerance = 1e-6 if dtype == np.float64 else 1e-3
        assert np.abs(found - K[:, S]).max() <= tolerance * largest


@pytest.mark.filterwarnings("ignore:The kernel .* is not positive semi-definite")
@pytest.mark.parametrize("case", KERNELS, ids=str)
@pytest.mark.parametrize(("dtype", "scale"), AT_SCALE)
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
@pytest.mark.filterwarnings("ignore:The variance that the landmarks")
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


def width_of(rule, kernel, rows):
    """gamma='scale' or 'median', as landmarks of these rows have it."""
    model = Nystroem(kernel, gamma=rule, n_components=1, sampler=[0])
    return model.fit(rows).landmarks_.kernel.gamma


@pytest.mark.parametrize("rule", ["scale", "median"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize(("dtype", "scale"), AT_SCALE)
def test_widths_from_the_data(rule, kernel, dtype, scale, rng):
    """Rows on twice the scale have half the width; or there is an error."""
    X = rng.standard_normal((60, 3))
    rows = np.clip(X * scale, -1e308, 1e308).astype(dtype)
    power = 1 if (kernel, rule) == ("laplacian", "median") else 2
    expected = np.longdouble(width_of(rule, kernel, X)) / np.longdouble(scale) ** power
    found = refused_or(lambda: width_of(rule, kernel, rows))
    if found is None:
        assert not 1e-300 < expected < 1e300
    else:
        assert abs(found - expected) <= (0.3 if scale == 1e-44 else 1e-3) * expected


def test_a_width_of_rows_that_do_not_differ(rng):
    """1, as scikit-learn has it: there is no scale to be had."""
    for rule in ("scale", "median"):
        for rows in (np.zeros((9, 3)), np.full((9, 3), 1e200)):
            assert width_of(rule, "rbf", rows) == 1.0
    for value in 10.0 ** rng.uniform(-12, 0, 20):  # whose mean is off by rounding
        assert width_of("scale", "rbf", np.full((26, 23), value)) == 1.0
