"""Every way to choose landmarks: how many, which fields they have, what is refused."""

import math
import re

import numpy as np
import pytest
import scipy.sparse as sp
from lists import (
    CHOOSING,
    CUBIC,
    MISSING_RARE_ROWS,
    OFF_THE_ROWS,
    RIDGED,
    SAMPLERS,
    but,
)
from oracles_sampling import exact_scores, rbf_matrix

from nystrom import approximate, select_landmarks
from nystrom.kernels import RBF, Kernel
from nystrom.landmarks import Landmarks
from nystrom.linalg.errors import Guarantee
from nystrom.samplers import recursive as algorithms
from nystrom.sources import Source

pytestmark = pytest.mark.usefixtures("one_blas_thread")

GAMMA = 0.5


def chosen(X, seed=0, **options):
    """Landmarks of a Gaussian kernel, unless options say otherwise."""
    return select_landmarks(X, **{"gamma": GAMMA, "random_state": seed} | options)


@pytest.fixture
def X(rng):
    return rng.standard_normal((400, 3))


@pytest.fixture
def many(rng):
    """Enough rows for Algorithm 2 to halve them with the theory's constants."""
    return rng.standard_normal((2000, 2))


def unbalanced(rng, n=2000):
    """Clusters of very different size: a few rows hold most of the spectrum."""
    sizes = np.array([3, 4, 5, 6, 8, 10, 15, 20, 30])
    sizes = np.append(sizes, n - sizes.sum())
    centers = 6 * rng.standard_normal((len(sizes), 5))
    rows = np.repeat(centers, sizes, axis=0) + 0.5 * rng.standard_normal((n, 5))
    return rows[rng.permutation(n)]


# How many rows, and which


# Fields


def test_the_leverage_sampler_reports_the_exact_dimension_at_its_ridge(X, seed):
    landmarks = chosen(X, seed, n_landmarks=40, sampler="leverage")
    scores = exact_scores(rbf_matrix(X, GAMMA), landmarks.ridge)
    assert landmarks.effective_dimension == pytest.approx(scores.sum())
    k = math.ceil(40 / (4 * math.log(40)))
    values = np.sort(np.linalg.eigvalsh(rbf_matrix(X, GAMMA)))[::-1]
    assert landmarks.ridge == pytest.approx(values[k:].sum() / k)
    assert landmarks.effective_dimension <= 2 * k


@pytest.mark.parametrize("sampler", RIDGED)
def test_the_reported_dimension_is_never_more_than_the_number_of_rows(sampler, seed):
    """Scores above 1, of rows that the sample below missed, count as 1."""
    X = np.zeros((300, 2))
    X[:3] = [[5.0, 0], [0, 5], [5, 5]]
    landmarks = chosen(X, seed, gamma=1.0, n_landmarks=20, sampler=sampler)
    assert landmarks.effective_dimension <= 300


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, np.ndarray.tolist])
def test_given_points_need_not_be_rows(make, X, rng):
    points = rng.standard_normal((5, 3))
    data = sp.csr_array(X) if make is sp.csr_array else X
    landmarks = select_landmarks(data, sampler=make(points))
    assert len(landmarks) == 5
    assert landmarks.indices is None
    assert landmarks.sampler == "given points"
    found = approximate(data, landmarks)
    assert 0 < found.trace_error < 400


def test_a_callable_is_asked_for_landmarks(X):
    asked = {}

    def first(kernel, source, n_landmarks, *, seed, engine):
        asked.update(kernel=kernel, source=source, n=n_landmarks, seed=seed)
        rows = np.arange(n_landmarks)
        return Landmarks(source.take(rows), kernel, "first", source.n_rows, rows)

    landmarks = chosen(X, 11, n_landmarks=6, sampler=first)
    assert isinstance(asked["kernel"], Kernel)
    assert isinstance(asked["source"], Source)
    assert (asked["n"], asked["seed"]) == (6, 11)
    np.testing.assert_array_equal(landmarks.indices, np.arange(6))
    assert landmarks.weights is None


PRINTED = [{"sampler": sampler, "n_landmarks": 15} for sampler in SAMPLERS]
PRINTED += [{"max_spectral_error": 50.0, "delta": 0.01}, {"sampler": [1, 2, 3]}]


@pytest.mark.parametrize("options", PRINTED, ids=str)
def test_the_print_is_one_line(options, X):
    landmarks = chosen(X, **options)
    text = str(landmarks)
    assert "\n" not in text
    assert repr(landmarks) == f"<{text}>"
    assert text.startswith(f"{len(landmarks)} landmarks")
    for part in ("RBF(gamma=0.5)", f"rank {landmarks.rank}", "kernel evaluations"):
        assert part in text
    assert ("probability" in text) == (landmarks.guarantee is not None)


# ridge, delta and constants


def test_a_ridge_alone_has_practical_constants_and_no_guarantee(rng, seed):
    many = rng.standard_normal((1000, 2))
    landmarks = chosen(many, seed, max_spectral_error=5.0)
    assert landmarks.sampler == "recursive"
    assert landmarks.guarantee is None
    assert landmarks.ridge == 5.0
    exact = exact_scores(rbf_matrix(many, GAMMA), 5.0).sum()
    assert 0.8 * exact < landmarks.effective_dimension < 3 * exact


@pytest.mark.parametrize("options", [{"delta": 0.01}, {"constants": "theory"}])
def test_theory_s_constants_come_with_a_guarantee(options, many):
    landmarks = chosen(many, gamma=0.01, max_spectral_error=30.0, **options)
    assert landmarks.sampler == "recursive (theory)"
    assert landmarks.guarantee == Guarantee(30.0, pytest.approx(0.97))
    assert len(landmarks) < 2000
    assert "‖K − K̃‖₂ ≤ 30 with probability ≥ 0.97" in str(landmarks)


@pytest.mark.parametrize("sampler", RIDGED)
def test_nothing_is_promised_that_float32_does_not_resolve(sampler, rng):
    """Features of float32 rows are off by more, whatever landmarks there are."""
    X = rng.standard_normal((1100, 2)).astype(np.float32)
    options = {"gamma": 0.05, "sampler": sampler, "delta": 0.01, "random_state": 0}
    narrow, wide = (
        select_landmarks(rows, max_spectral_error=1e-5, **options)
        for rows in (X, X.astype(float))
    )
    K = rbf_matrix(X.astype(float), 0.05)
    assert wide.guarantee.ridge == 1e-5
    assert error_of_features(K, X.astype(float), wide) <= 1e-5
    assert narrow.guarantee is None
    assert "no guarantee: float32 values resolve" in str(narrow)
    assert "pass float64 rows" in str(narrow)
    assert error_of_features(K, X, narrow) > 1e-5


def error_of_features(K, X, landmarks):
    """‖K − ZZᵀ‖₂ for the features that users get."""
    Z = approximate(X, landmarks).features().astype(np.float64)
    return np.linalg.norm(K - Z @ Z.T, 2)


@pytest.mark.parametrize("options", [{}, {"delta": 0.01}], ids=["practical", "theory"])
@pytest.mark.parametrize("sampler", RIDGED)
def test_an_effective_dimension_below_one_half_leaves_one_row(
    sampler, options, rng, seed
):
    """d_eff < ½ means ‖K‖ < λ: any row will do, and more are of no use."""
    n = 300 if sampler == "leverage" else 1500
    X = rng.standard_normal((n, 2))
    landmarks = chosen(X, seed, max_spectral_error=4.0 * n, sampler=sampler, **options)
    assert landmarks.effective_dimension < 0.5
    assert len(landmarks) == 1


@pytest.mark.parametrize(
    ("sampler", "gamma", "bound"), [("recursive", 0.01, 30.0), ("leverage", GAMMA, 0.5)]
)
def test_a_cap_that_is_reached_voids_the_guarantee(sampler, gamma, bound, X, many):
    rows = X if sampler == "leverage" else many
    options = {"gamma": gamma, "max_spectral_error": bound, "sampler": sampler}
    assert chosen(rows, delta=0.01, **options).guarantee is not None
    with pytest.warns(UserWarning, match="needs about"):
        landmarks = chosen(rows, delta=0.01, n_landmarks=5, **options)
    assert len(landmarks) == 5
    assert landmarks.guarantee is None


def test_a_ridge_below_rounding_is_raised_and_nothing_is_proven(rng, seed):
    """SᵀKS + λI would have no factor: what is proven is so for the λ that was used."""
    X = rng.standard_normal((1100, 3))
    options = {"gamma": GAMMA, "delta": 0.01, "random_state": seed}
    raised = select_landmarks(X, max_spectral_error=1e-15, **options)
    assert raised.ridge > 1e-15
    assert raised.guarantee is None
    enough = select_landmarks(X, max_spectral_error=2 * raised.ridge, **options)
    assert enough.ridge == 2 * raised.ridge
    assert enough.guarantee.ridge == enough.ridge
    assert enough[:10].guarantee is None  # nor is a part of them what is proven


def test_too_few_landmarks_for_the_theory_say_how_many_it_takes(many):
    with pytest.raises(ValueError, match="n_landmarks=100 is too few") as error:
        select_landmarks(many, n_landmarks=100, delta=0.01)
    least = int(re.search(r"at least (\d+)", str(error.value)).group(1))
    # 2000 rows make 5 halvings, and coins may need one more.
    assert least == math.ceil(640 * math.log(2 * 3**6 / 0.01))


# Levels of the accelerated variant


@pytest.mark.parametrize(("n", "s"), [(1000, 10), (3000, 200), (400, 390)])
def test_accelerated_levels_have_the_size_of_the_authors_program(
    n, s, rng, monkeypatch
):
    rules = []

    def recorded(work, rule):
        rules.append(rule)
        return climb(work, rule)

    climb = algorithms.run_recursion
    monkeypatch.setattr(algorithms, "run_recursion", recorded)
    X = rng.standard_normal((n, 2))
    landmarks = select_landmarks(X, n_landmarks=s, sampler="accelerated")
    assert len(landmarks) == s
    size = math.ceil(math.sqrt((n * s + s**3) / (4 * n)))
    assert [rule.sample_size for rule in rules] == [min(s, size)]
    assert size < s


# Quality


@pytest.mark.parametrize("sampler", but(MISSING_RARE_ROWS))
def test_scores_beat_uniform_sampling_on_unbalanced_clusters(sampler, rng, seed):
    X = unbalanced(rng, 600 if sampler in CUBIC else 2000)
    errors = {"uniform": [], sampler: []}
    for run in range(9 * seed, 9 * seed + 9):
        for name, values in errors.items():
            landmarks = chosen(X, run, gamma=0.05, n_landmarks=60, sampler=name)
            values.append(approximate(X, landmarks).trace_error)
    assert np.median(errors[sampler]) < 0.7 * np.median(errors["uniform"])


# Weights of rows


@pytest.mark.parametrize(
    "options",
    [
        *({"sampler": sampler, "n_landmarks": 30} for sampler in CHOOSING),
        {"max_spectral_error": 1.0},
        {"max_spectral_error": 1.0, "delta": 0.01},
        {"max_spectral_error": 1.0, "sampler": "leverage"},
    ],
    ids=str,
)
def test_rows_of_weight_0_are_never_chosen(options, X, rng, seed):
    w = np.where(rng.uniform(size=400) < 0.6, 0.0, 1.5)
    landmarks = chosen(X, seed, sample_weight=w, **options)
    assert np.all(w[landmarks.indices] > 0)
    np.testing.assert_array_equal(landmarks.points, X[landmarks.indices])
    assert landmarks.n_rows == 400


def test_a_heavy_row_is_drawn_as_often_as_its_copies_would_be(X, seed):
    w = np.ones(400)
    w[17] = 399.0  # half of all copies
    runs = range(300 * seed, 300 * seed + 300)
    chosen = sum(
        17
        in select_landmarks(
            X, n_landmarks=1, sampler="uniform", sample_weight=w, random_state=run
        ).indices
        for run in runs
    )
    assert 100 < chosen < 200  # 150 ± 6 standard deviations


# A kernel's scale and the scale of weights


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("power", [-120, -20, 20, 120])
def test_the_scale_of_the_kernel_changes_no_landmark(sampler, power, X):
    """No absolute constant is added to any matrix."""
    one, two = (
        select_landmarks(X, kernel=kernel, n_landmarks=30, sampler=sampler,
                         random_state=0)
        for kernel in (RBF(GAMMA), 2.0**power * RBF(GAMMA))
    )  # fmt: skip
    np.testing.assert_array_equal(one.points, two.points)
    assert one.rank == two.rank


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_scale_that_float32_does_not_have(sampler, storage, X, seed):
    """0.3 in float32 is more than 0.3: what is left of a row was below its bound."""
    if storage is sp.csr_array and sampler in OFF_THE_ROWS:
        pytest.skip("means of rows are dense")
    X32 = X.astype(np.float32)
    rows = storage(X32)
    for factor in (0.3, 0.7):  # rounded up, and down
        chosen = select_landmarks(rows, kernel=factor * RBF(GAMMA), n_landmarks=30,
                                  sampler=sampler, random_state=seed)  # fmt: skip
        assert chosen.rank == 30
        P = chosen.points.toarray() if storage is sp.csr_array else chosen.points
        K_S, K_SS = (RBF(GAMMA)(A.astype(float), P.astype(float)) for A in (X32, P))
        expected = 1 - np.einsum("ns,sn->", K_S, np.linalg.solve(K_SS, K_S.T)) / len(X)
        found = approximate(rows, chosen).relative_trace_error.value
        assert found == pytest.approx(expected, rel=0.05)


def test_a_guarantee_names_the_matrix_it_is_about(X, seed):
    options = {
        "gamma": GAMMA,
        "max_spectral_error": 50.0,
        "delta": 0.01,
        "random_state": seed,
    }
    plain = select_landmarks(X, **options)
    weighted = select_landmarks(X, sample_weight=np.full(len(X), 2.0), **options)
    assert str(plain.guarantee).startswith("‖K − K̃‖₂ ≤ 50")
    assert str(weighted.guarantee).startswith("‖W^½(K − K̃)W^½‖₂ ≤ 50")
