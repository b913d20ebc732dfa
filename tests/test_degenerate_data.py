"""Data on which samplers are known to break: copies, extreme scales, tiny ranks.

Whatever the data, a sampler returns the right number of different rows, every number in
the result is finite, the rank is that of the landmarks' kernel matrix, and there is no
warning. Traps of the authors' program and its ports are here too.
"""

from __future__ import annotations

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
    MISSING_RARE_ROWS,
    OFF_THE_ROWS,
    RIDGED,
    SAMPLERS,
    SCORED,
    WITHOUT_SCORES,
    but,
)
from oracles_sampling import rbf_matrix

from nystrom import Nystroem, approximate, leverage_scores, select_landmarks
from nystrom.engines import Threads, single_threaded_blas
from nystrom.kernels import (
    RBF,
    Cosine,
    Kernel,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    blockwise,
)
from nystrom.linalg.cross_kernel import Ledger
from nystrom.linalg.residuals import KernelSpectrum
from nystrom.samplers import Leverage
from nystrom.samplers import leverage as exact_scores
from nystrom.samplers.base import SamplingProblem
from nystrom.samplers.recursive import iterate_levels
from nystrom.samplers.recursive_rules import (
    PracticalRidge,
    PracticalSize,
    bernoulli_probabilities,
)
from nystrom.sources import RowNumbers, as_source

#: Such rows are what the warning is about; here it is what comes of them.
pytestmark = pytest.mark.filterwarnings("ignore:K is nearly")

DTYPES = [np.float64, np.float32]


@pytest.fixture(autouse=True)
def one_blas_thread():
    """Many small matrices: threads inside BLAS only wait for each other."""
    with single_threaded_blas():
        yield


def levels_of(kernel, X, rule, seed):
    """All levels of the recursion."""
    work = SamplingProblem(kernel, as_source(X), seed, Threads(1), Ledger())
    return list(iterate_levels(work, rule))


def distinct(points):
    return len(np.unique(points, axis=0))


def nonzero(points):
    """The rank of rows of which the non-zero ones are independent."""
    return int(np.count_nonzero(np.any(points != 0, axis=1)))


def constant_kernel():
    return blockwise(
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
        np.testing.assert_array_equal(landmarks.points, X[landmarks.indices])
    for values in (landmarks.weights, landmarks.probabilities):
        assert values is None or (np.all(np.isfinite(values)) and np.all(values > 0))
    assert landmarks.ridge is None or 0 < landmarks.ridge < np.inf
    assert landmarks.guarantee is None
    assert not any("indefinite" in note for note in landmarks.notes)


@pytest.mark.parametrize("dtype", DTYPES, ids=["float64", "float32"])
@pytest.mark.parametrize(("case", "sampler"), PAIRS)
@pytest.mark.parametrize("n_landmarks", [1, 12])
def test_every_sampler_takes_degenerate_data(
    case, sampler, dtype, n_landmarks, rng, seed
):
    case = CASES[case]
    X = case.rows(rng, 200).astype(dtype)
    landmarks = select_landmarks(
        X,
        kernel=case.kernel,
        n_landmarks=n_landmarks,
        sampler=sampler,
        random_state=seed,
    )
    assert_sound(landmarks, X, n_landmarks)
    assert landmarks.rank == case.rank(landmarks.points)
    approximation = approximate(X, landmarks)
    features = approximation.features()
    assert np.all(np.isfinite(features))
    assert features.shape == (200, n_landmarks)
    assert 0 <= approximation.trace_error < np.inf


@pytest.mark.parametrize("dtype", DTYPES, ids=["float64", "float32"])
@pytest.mark.parametrize("sampler", SCORED)
@pytest.mark.parametrize("case", CASES)
def test_the_dimension_of_degenerate_data_lies_between_0_and_n(
    case, sampler, dtype, rng, seed
):
    case = CASES[case]
    X = case.rows(rng, 200).astype(dtype)
    landmarks = select_landmarks(
        X, kernel=case.kernel, n_landmarks=12, sampler=sampler, random_state=seed
    )
    assert 0 <= landmarks.effective_dimension <= 200


@pytest.mark.parametrize("options", [{}, {"delta": 0.03}], ids=["practical", "theory"])
@pytest.mark.parametrize("sampler", RIDGED)
@pytest.mark.parametrize("case", CASES)
def test_a_ridge_takes_degenerate_data(case, sampler, options, rng, seed):
    case = CASES[case]
    n = 200 if sampler in CUBIC else 800
    X = case.rows(rng, n)
    scale = float(np.mean(case.kernel.diag(X))) or 1.0
    for ridge in (1e-3 * scale, scale):
        landmarks = select_landmarks(
            X,
            kernel=case.kernel,
            max_spectral_error=ridge,
            sampler=sampler,
            random_state=seed,
            **options,
        )
        assert 1 <= len(np.unique(landmarks.indices)) == len(landmarks) <= n
        assert np.all(np.isfinite(landmarks.weights))
        assert 0 <= landmarks.effective_dimension <= n


@pytest.mark.parametrize(
    "options", [{"n_landmarks": 12}, {"max_spectral_error": 1.0}], ids=str
)
@pytest.mark.parametrize("case", CASES)
def test_theory_s_exact_scores_take_degenerate_data(case, options, rng, seed):
    case = CASES[case]
    X = case.rows(rng, 150)
    landmarks = select_landmarks(
        X,
        kernel=case.kernel,
        sampler="leverage",
        delta=0.1,
        random_state=seed,
        **options,
    )
    assert len(landmarks) >= 1
    assert landmarks.guarantee.ridge > 0
    assert np.all(np.isfinite(landmarks.weights))


@pytest.mark.parametrize("case", CASES)
def test_scores_of_degenerate_data_lie_between_0_and_1(case, rng):
    case = CASES[case]
    X = case.rows(rng, 100)
    scale = float(np.mean(case.kernel.diag(X))) or 1.0
    landmarks = select_landmarks(X, kernel=case.kernel, sampler=np.arange(10))
    for ridge in (1e-9 * scale, scale):
        exact = leverage_scores(X, kernel=case.kernel, ridge=ridge)
        estimate = leverage_scores(X, ridge=ridge, landmarks=landmarks)
        assert np.all((exact >= 0) & (exact <= 1))
        assert np.all((estimate >= 0) & (estimate <= 1))
    assert np.all(estimate >= exact - 1e-5)


@pytest.mark.parametrize("options", [{}, {"delta": 0.03}], ids=["practical", "theory"])
def test_a_kernel_that_is_the_identity_needs_every_row(options, rng, seed):
    """Rounding of γ‖x − y‖² must not pass for a row that others explain."""
    X = rng.standard_normal((800, 3))
    landmarks = select_landmarks(
        X, gamma=1e9, max_spectral_error=1e-6, random_state=seed, **options
    )
    assert len(landmarks) == 800


def test_scores_of_a_kernel_that_is_the_identity_are_all_near_1(rng):
    X = rng.standard_normal((100, 3))
    landmarks = select_landmarks(X, gamma=1e9, sampler=np.arange(10))
    scores = leverage_scores(X, ridge=1e-6, landmarks=landmarks)
    assert scores.min() > 0.99


# Number of rows and of landmarks


@pytest.mark.parametrize("dtype", DTYPES, ids=["float64", "float32"])
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize(
    ("n", "s"), [(1, 1), (1, 5), (2, 1), (3, 2), (7, 7), (7, 8), (65, 1), (130, 129)]
)
def test_few_rows_and_few_landmarks(sampler, n, s, dtype, rng, seed):
    X = rng.standard_normal((n, 2)).astype(dtype)
    landmarks = select_landmarks(
        X, gamma=5.0, n_landmarks=s, sampler=sampler, random_state=seed
    )
    assert_sound(landmarks, X, s)
    if s >= n:
        assert approximate(X, landmarks).trace_error < 1e-4


@pytest.mark.parametrize("options", [{}, {"delta": 0.01}], ids=["practical", "theory"])
@pytest.mark.parametrize("n", [1, 2, 192, 193])
def test_a_ridge_for_few_rows(n, options, rng, seed):
    X = rng.standard_normal((n, 2))
    landmarks = select_landmarks(
        X, max_spectral_error=0.5, random_state=seed, **options
    )
    assert 1 <= len(landmarks) <= n
    K = rbf_matrix(X, 0.5)
    Z = approximate(X, landmarks).features()
    if options or n <= 192:
        assert np.linalg.norm(K - Z @ Z.T, 2) < 1e-8


# The right rows, not only the right number


@pytest.mark.parametrize("dtype", DTYPES, ids=["float64", "float32"])
@pytest.mark.parametrize("sampler", but(MISSING_RARE_ROWS))
def test_three_distinct_rows_are_mostly_all_found(sampler, dtype, rng, seed):
    """Two of them are rare: a uniform draw of 20 misses one nearly always."""
    X = np.array([[0.0, 0], [5, 0], [0, 5]])[np.repeat([0, 1, 2], [2, 3, 295])]
    X = X[rng.permutation(300)].astype(dtype)
    found = 0
    for run in range(10 * seed, 10 * seed + 10):
        landmarks = select_landmarks(
            X, gamma=1.0, n_landmarks=20, sampler=sampler, random_state=run
        )
        exact = approximate(X, landmarks).trace_error < 1e-6
        assert exact == (distinct(landmarks.points) == 3)
        found += exact
    assert found >= 7  # each run misses one with a probability of 1 %


@pytest.mark.parametrize("sampler", but(MISSING_RARE_ROWS, OFF_THE_ROWS))
def test_a_kernel_of_small_rank_is_exact_with_few_landmarks(sampler, rng, seed):
    X = rng.standard_normal((500, 4))
    landmarks = select_landmarks(
        X, kernel="linear", n_landmarks=30, sampler=sampler, random_state=seed
    )
    assert approximate(X, landmarks).relative_trace_error.value < 1e-12


@pytest.mark.parametrize("sampler", but(WITHOUT_SCORES))
def test_float32_far_from_the_origin_is_as_good_as_near_it(sampler, rng, seed):
    near = rng.standard_normal((1500, 2)).astype(np.float32)
    near = (near * 64).round() / 64  # exact after the shift, too
    far = near + np.float32(4096)
    errors = []
    for X in (near, far):
        landmarks = select_landmarks(
            X[: 400 if sampler in CUBIC else 1500],
            gamma=0.3,
            n_landmarks=30,
            sampler=sampler,
            random_state=seed,
        )
        errors.append(approximate(X, landmarks).trace_error)
    assert errors[1] == pytest.approx(errors[0], rel=0.2)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_copies_are_no_reason_to_stop_early(sampler, rng, seed):
    """Fewer different rows than landmarks: the rest is filled up, and rank tells."""
    X = np.repeat(rng.standard_normal((5, 2)) * 4, 60, axis=0)
    landmarks = select_landmarks(
        X, gamma=1.0, n_landmarks=40, sampler=sampler, random_state=seed
    )
    assert len(landmarks) == 40
    assert landmarks.rank == distinct(landmarks.points) <= 5


# Traps of the authors' program and its ports


@pytest.mark.parametrize("kernel", [constant_kernel(), Linear(), RBF(1e-300)], ids=str)
def test_the_ridge_of_a_sample_without_a_tail_is_positive(kernel, rng, seed):
    """There λ is rounding noise of either sign, or an absolute constant."""
    X = rng.standard_normal((300, 1))
    levels = levels_of(kernel, X, PracticalSize(40), seed)
    assert levels
    for level in levels:
        assert level.ridge > 0
        assert np.all(np.isfinite(level.scores))
        assert np.all(level.scores >= 0)
        assert np.all((level.probabilities >= 0) & (level.probabilities <= 1))
        assert level.probabilities.sum() <= 2 * 40 * (1 + 1e-12)


@pytest.mark.parametrize("scale", [1e-100, 1e-12, 1e12, 1e100])
def test_the_ridge_is_relative_to_the_kernel(scale, rng, seed):
    X = rng.standard_normal((300, 1))
    one, two = (
        levels_of(factor * RBF(0.5), X, PracticalSize(20), seed)
        for factor in (1.0, scale)
    )
    assert one
    for a, b in zip(one, two, strict=True):
        assert b.ridge == pytest.approx(scale * a.ridge, rel=1e-6)


def test_one_landmark_has_a_finite_oversampling():
    """log s is 0 at s = 1."""
    assert PracticalSize(1).q > 0
    assert PracticalSize(1).k == 1


@pytest.mark.parametrize("size", [1, 2, 3, 10])
def test_a_sample_is_never_too_small_to_go_on_with(size, rng, seed):
    X = rng.standard_normal((500, 2))
    rule = PracticalSize(size)
    levels = levels_of(RBF(1e9), X, rule, seed)
    assert levels
    for level in levels:
        assert len(level.sample.indices) >= min(size, rule.k + 1)
        assert np.all(np.isfinite(level.sample.weights))


def test_a_sample_does_not_grow_where_all_scores_are_1(rng, seed):
    """K = I: every score is 1, and p = min(1, q·l̃) alone would keep every row."""
    X = 100 * rng.standard_normal((2000, 2))
    levels = levels_of(RBF(10.0), X, PracticalSize(70), seed)
    assert max(len(level.sample.indices) for level in levels) < 2 * 70 + 6 * 12


def test_a_tiny_ridge_takes_all_rows_without_growing_the_levels_past_the_rows(rng):
    X = rng.standard_normal((400, 2))
    levels = levels_of(RBF(10.0), X, PracticalRidge(1e-300), seed=0)
    finite = [np.all(np.isfinite(level.scores)) for level in levels]
    assert finite
    assert all(finite)
    assert len(select_landmarks(X, gamma=10.0, max_spectral_error=1e-12)) > 350


@pytest.mark.parametrize("scale", [1e-290, 1e-160, 1.0, 1e160, 1e290])
def test_the_least_ridge_for_a_size_is_found_at_any_scale(scale, rng, monkeypatch):
    K = rbf_matrix(rng.standard_normal((100, 2)), 0.5)
    tried = []

    def counted(scores, delta):
        tried.append(scores.sum())
        assert len(tried) < 50
        return bernoulli_probabilities(scores, delta)

    monkeypatch.setattr(exact_scores, "bernoulli_probabilities", counted)
    found = Leverage(delta=0.01)(
        Precomputed(scale * K), RowNumbers(100), 60, seed=0, engine=Threads(1)
    )
    assert tried
    scores = KernelSpectrum.from_kernel_matrix(K).scores(found.ridge / scale)
    assert 59 < bernoulli_probabilities(scores, 0.01).sum() <= 60


@pytest.mark.parametrize("kernel", [RBF(1.0), Matern(1.0, 2.5), RationalQuadratic()])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_row_whose_squared_norm_overflows_is_like_no_other(kernel, sampler, rng):
    X = rng.standard_normal((40, 3))
    X[7] *= 1e200
    landmarks = select_landmarks(
        X, kernel=kernel, n_landmarks=30, sampler=sampler, random_state=0
    )
    assert_sound(landmarks, X, 30)
    assert np.all(np.isfinite(approximate(X, landmarks).features()))


@pytest.mark.parametrize("kernel", ["linear", "polynomial"])
def test_kernel_values_that_overflow_are_one_error(kernel, rng):
    X = rng.standard_normal((40, 3))
    X[7] *= 1e200
    with pytest.raises(ValueError, match="the scale of the data"):
        select_landmarks(X, kernel=kernel, n_landmarks=9, sampler="leverage")


@pytest.mark.parametrize("kernel", ["linear", "cosine"])
@pytest.mark.parametrize("sampler", ["auto", "recursive", "accelerated"])
def test_many_float32_rows_of_zeros(sampler, kernel, seed):
    """The root of the least ridge is too large for float32, in which it is tried."""
    X = np.zeros((1500, 3), dtype=np.float32)
    landmarks = select_landmarks(
        X, kernel=kernel, n_landmarks=30, sampler=sampler, random_state=seed
    )
    assert_sound(landmarks, X, 30)
    assert landmarks.rank == 0


@pytest.mark.parametrize("n", [40, 1500])
@pytest.mark.parametrize(
    "sampler", ["leverage", "recursive", "auto", "rpcholesky", "greedy", "uniform"]
)
def test_weights_that_make_kernel_values_overflow_are_one_error(sampler, n, rng):
    X = 1e100 * rng.standard_normal((n, 3))
    options = {"n_landmarks": 9} if sampler != "uniform" else {"max_trace_error": 0.1}
    with pytest.raises(ValueError, match="the scale of the data"):
        select_landmarks(
            X,
            kernel="linear",
            sampler=sampler,
            sample_weight=np.full(n, 1e150),
            **options,
        )


@pytest.mark.parametrize("sampler", ["auto", "recursive", "accelerated"])
def test_weights_of_a_few_rows_that_are_not_zero(sampler, rng, seed):
    """A sample of zeros leaves them scores near infinity, and weights come on top."""
    X = few_nonzero(rng, 1500)
    landmarks = select_landmarks(
        X,
        kernel="cosine",
        n_landmarks=20,
        sampler=sampler,
        sample_weight=np.full(1500, 1e6),
        random_state=seed,
    )
    assert_sound(landmarks, X, 20)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_weights_next_to_nothing(sampler, rng, seed):
    """What is left of a row, times its weight, has an infinite inverse."""
    landmarks = select_landmarks(
        rng.standard_normal((20, 3)),
        gamma=0.1,
        n_landmarks=15,
        sampler=sampler,
        sample_weight=np.full(20, 1e-307),
        random_state=seed,
    )
    assert len(landmarks) == 15


def test_a_root_too_large_for_float32_is_multiplied_in_float64(rng):
    X = (1e-40 * rng.standard_normal((40, 3))).astype(np.float32)
    landmarks = select_landmarks(X, kernel="linear", n_landmarks=3, random_state=0)
    Z = approximate(X, landmarks).features().astype(np.float64)
    K = X.astype(np.float64) @ X.T.astype(np.float64)
    np.testing.assert_allclose(Z @ Z.T, K, atol=1e-4 * K.max())


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_inverse_is_never_formed_of_a_singular_matrix(sampler, rng, seed):
    """Near copies: K_SS is singular to working precision."""
    X = np.repeat(rng.standard_normal((20, 2)), 20, axis=0)
    X += 1e-9 * rng.standard_normal(X.shape)
    landmarks = select_landmarks(
        X, gamma=0.5, n_landmarks=60, sampler=sampler, random_state=seed
    )
    assert_sound(landmarks, X, 60)
    K = rbf_matrix(X, 0.5)
    Z = approximate(X, landmarks).features()
    assert np.linalg.eigvalsh(K - Z @ Z.T).min() > -1e-6


@pytest.mark.parametrize("sampler", CHOOSING)
def test_rows_all_zero_but_a_few_in_csr(sampler, rng, seed):
    """As in counts of words: most rows of a level have k(x, x) = 0."""
    dense = few_nonzero(rng, 400 if sampler in CUBIC else 1500)
    landmarks = select_landmarks(
        sp.csr_array(dense),
        kernel="linear",
        n_landmarks=20,
        sampler=sampler,
        random_state=seed,
    )
    assert len(np.unique(landmarks.indices)) == 20


@pytest.mark.parametrize("dtype", DTYPES, ids=["float64", "float32"])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_estimator_keeps_its_number_of_columns(sampler, dtype, rng, seed):
    X = np.repeat(rng.standard_normal((4, 2)), 30, axis=0).astype(dtype)
    model = Nystroem(
        gamma=0.5, n_components=15, sampler=sampler, random_state=seed
    ).fit(X)
    assert model.transform(X).shape == (120, 15)
    assert model.landmarks_.rank == distinct(model.components_)


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
    landmarks = select_landmarks(
        X,
        gamma=10.0 ** (-2 * exponent),
        n_landmarks=n_landmarks,
        sampler=sampler,
        random_state=draw,
    )
    assert_sound(landmarks, X, n_landmarks)
    assert landmarks.rank == distinct(landmarks.points)
