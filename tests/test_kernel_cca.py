"""Kernel CCA on landmarks, against dense NumPy and the paper."""

import threading
from functools import partial

import numpy as np
import pandas as pd
import pytest
from oracles_components import (
    attained,
    centering,
    correlations,
    nystrom_matrix,
    printed_matrix,
)
from oracles_ridge import relative
from sklearn.cross_decomposition import CCA
from sklearn.metrics.pairwise import (
    laplacian_kernel,
    linear_kernel,
    polynomial_kernel,
    rbf_kernel,
)

from nystrom import KernelCCA, sources

pytestmark = pytest.mark.usefixtures("one_blas_thread")

GAMMA = 0.4
N_ROWS, N_NEW, N_LANDMARKS = 300, 60, 30

both_forms = pytest.mark.parametrize("form", ["regularized", "paper"])
centered_or_not = pytest.mark.parametrize("center", [True, False])


def two_views(rng, n, noise=0.2):
    """Three features and two, which share two hidden numbers in crooked ways."""
    t, u = rng.uniform(-1, 1, (2, n))
    X = np.c_[t + noise * rng.standard_normal(n), u, rng.standard_normal(n)]
    Y = np.c_[np.cos(3 * t), u**2 + t] + noise * rng.standard_normal((n, 2))
    return X, Y


@pytest.fixture
def views(rng):
    return two_views(rng, N_ROWS)


@pytest.fixture
def new_views(views, rng):
    return two_views(rng, N_NEW)


def cca(n_components=2, **options):
    given = {"gamma": GAMMA, "n_landmarks": N_LANDMARKS, "random_state": 0}
    return KernelCCA(n_components, **given | options)


def rbf(X, Y):
    return rbf_kernel(X, Y, gamma=GAMMA)


def as_two(value):
    return value if isinstance(value, tuple) else (value, value)


def dense_matrices(model, X, Y, kernel=rbf, *, center=True):
    """A and B: K̃ of each view for the fitted landmarks, or HK̃H."""
    matrices = [
        nystrom_matrix(k, landmarks.points, rows)
        for k, landmarks, rows in zip(
            as_two(kernel), model.landmarks_, (X, Y), strict=True
        )
    ]
    H = centering(len(X)) if center else np.eye(len(X))
    return [H @ M @ H for M in matrices]


# Against dense NumPy


@both_forms
@centered_or_not
@pytest.mark.parametrize("alpha", [1.0, (0.2, 10.0)])
def test_correlations_are_the_dense_ones(views, seed, form, center, alpha):
    model = cca(5, random_state=seed, form=form, center=center, alpha=alpha)
    model.fit(*views)
    A, B = dense_matrices(model, *views, center=center)
    expected = correlations(A, B, as_two(alpha), form)[:5]
    np.testing.assert_allclose(model.canonical_correlations_, expected, rtol=1e-8)


@both_forms
@centered_or_not
def test_scores_of_the_training_rows_have_the_correlations(views, seed, form, center):
    """SxᵀSy is diagonal, with the correlations on it, for any form and centring."""
    model = cca(4, random_state=seed, form=form, center=center).fit(*views)
    a, b = model.transform(*views)
    expected = np.diag(model.canonical_correlations_)
    np.testing.assert_allclose(a.T @ b, expected, rtol=0, atol=1e-8)
    if center:
        np.testing.assert_allclose(a.mean(axis=0), 0, atol=1e-10)
        np.testing.assert_allclose(b.mean(axis=0), 0, atol=1e-10)


@centered_or_not
def test_scores_meet_the_constraint_of_the_program(views, seed, center):
    """fᵀΦᵀΦf + λ‖f‖² = 1 for every direction f, which are orthogonal in that sense."""
    alphas = (0.5, 3.0)
    model = cca(4, random_state=seed, center=center, alpha=alphas).fit(*views)
    parts = zip(
        model.transform(*views), model.dual_coef_, model.landmarks_, alphas, strict=True
    )
    for scores, dual, landmarks, alpha in parts:
        assert dual.shape == (N_LANDMARKS, 4)
        squares = dual.T @ rbf(landmarks.points, landmarks.points) @ dual
        found = scores.T @ scores + alpha * squares
        np.testing.assert_allclose(found, np.eye(4), rtol=0, atol=1e-8)


@centered_or_not
def test_scores_are_kernel_values_times_the_directions(views, new_views, center):
    model = cca(3, center=center).fit(*views)
    for i in range(2):
        points = model.landmarks_[i].points
        values = rbf(new_views[i], points)
        if center:
            values = values - rbf(views[i], points).mean(axis=0)
        expected = values @ model.dual_coef_[i]
        assert relative(model.transform(*new_views)[i], expected) < 1e-9


@both_forms
def test_no_correlation_is_above_1(rng, form):
    """Of a view with itself, and next to no ridge, all are 1 but for rounding."""
    for kernel in ("linear", "rbf"):
        X = rng.standard_normal((60, 3))
        options = {"kernel": kernel, "form": form, "n_landmarks": 40}
        model = KernelCCA(3, alpha=1e-300, random_state=0, **options).fit(X, X.copy())
        assert np.all(model.canonical_correlations_ <= 1)
        np.testing.assert_allclose(model.canonical_correlations_, 1, rtol=1e-6)


def test_linear_kernels_far_from_the_origin_are_ridge_cca(views):
    X, Y = views
    model = cca(2, kernel="linear", n_landmarks=10, alpha=0.1).fit(X + 3000, Y - 2000)
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    expected = correlations(X @ X.T, Y @ Y.T, (0.1, 0.1))[:2]
    np.testing.assert_allclose(model.canonical_correlations_, expected, rtol=1e-4)


def test_very_smooth_kernel_against_dense(views):
    def smooth(X, Y):
        return rbf_kernel(X, Y, gamma=1e-4)

    for dtype, error in [(np.float64, 1e-5), (np.float32, 1e-3)]:
        X, Y = (rows.astype(dtype) for rows in views)
        model = cca(2, gamma=1e-4, alpha=1e-3).fit(X, Y)
        wide = [rows.astype(np.float64) for rows in (X, Y)]
        H = centering(N_ROWS)
        A, B = (H @ smooth(rows, rows) @ H for rows in wide)
        expected = correlations(A, B, (1e-3, 1e-3))[:2]
        np.testing.assert_allclose(model.canonical_correlations_, expected, rtol=error)
        a, b = model.transform(X, Y)
        found = a.astype(np.float64).T @ b.astype(np.float64)
        np.testing.assert_allclose(found, np.diag(expected), rtol=0, atol=error)
        assert np.abs(a.mean(axis=0)).max() < error * np.abs(a).max()
        assert np.abs(b.mean(axis=0)).max() < error * np.abs(b).max()


# The paper


@pytest.mark.parametrize("ridge", [1.0, 10.0])
def test_the_printed_matrix_is_not_the_optimum_of_the_printed_program(views, ridge):
    """σ₁(T) and the value that T's own α attain are both below what the program has.

    With all rows as landmarks and without centring, as the paper has it.
    """
    X, Y = (rows[:150] for rows in views)
    A, B = rbf(X, X), rbf(Y, Y)
    ridges = (ridge, ridge)
    options = {"sampler": np.arange(150), "center": False, "alpha": ridge}
    printed = cca(1, form="paper", **options).fit(X, Y).canonical_correlations_[0]
    model = cca(1, **options).fit(X, Y)
    optimum = model.canonical_correlations_[0]
    assert printed == pytest.approx(correlations(A, B, ridges, "paper")[0], rel=1e-8)
    assert printed < optimum - 0.005
    # The optimum is attained by the directions found, and T's α stay below.
    a, b = (dual[:, 0] for dual in model.dual_coef_)
    assert attained(A, B, ridges, a, b) == pytest.approx(optimum, rel=1e-7)
    U, _, Vt = np.linalg.svd(printed_matrix(A, B, ridges))
    I = np.eye(150)  # noqa: E741
    of_printed = attained(
        A,
        B,
        ridges,
        np.linalg.solve(A + ridge * I, U[:, 0]),
        np.linalg.solve(B + ridge * I, Vt[0]),
    )
    assert of_printed < optimum


def theorem_errors(views, seed, epsilon, alpha, **options):
    """|σ₁(T̃) − σ₁(T)| and the same of σ₂, at ridge ε·λ."""
    A, B = (rbf(rows, rows) for rows in views)
    exact = correlations(A, B, (alpha, alpha), "paper")[:2]
    given = {"max_spectral_error": epsilon * alpha, "n_landmarks": None} | options
    model = cca(2, alpha=alpha, form="paper", center=False, random_state=seed, **given)
    model.fit(*views)
    return np.abs(model.canonical_correlations_ - exact), model


@pytest.mark.parametrize("epsilon", [0.05, 0.5])
def test_correlations_are_within_epsilon_of_the_exact_kernels(views, seed, epsilon):
    """Landmarks at ridge ελ: K̃ ⪯ K ⪯ K̃ + ελI gives σ(T) up to ε (the CCA theorem)."""
    for draw in range(5):
        errors, model = theorem_errors(views, 10 * seed + draw, epsilon, 2.0)
        assert all(2 < len(landmarks) < N_ROWS for landmarks in model.landmarks_)
        assert np.all(errors <= epsilon)


# Scores


def test_fit_transform_gives_the_scores_of_both_views_as_theirs(views):
    model = cca()
    found = model.fit_transform(*views)
    theirs = CCA(2).fit_transform(*views)
    assert [type(found), *map(np.shape, found)] == [
        type(theirs),
        *map(np.shape, theirs),
    ]
    for expected in (model.transform(*views), cca().fit(*views).transform(*views)):
        for ours, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(ours, wanted)


def test_the_second_view_may_be_columns_of_the_same_file(views, tmp_path):
    X, Y = views
    np.save(tmp_path / "views.npy", np.hstack(views))
    source = sources.open(tmp_path / "views.npy", target=[3, 4])
    expected, model = cca().fit(X, Y), cca()
    for found, wanted in zip(
        model.fit_transform(source), expected.transform(X, Y), strict=True
    ):
        np.testing.assert_allclose(found, wanted, atol=1e-9)
    np.testing.assert_allclose(model.transform(source), expected.transform(X))
    assert model.score(source) == pytest.approx(expected.score(X, Y))
    with pytest.raises(ValueError, match="its own targets; use one"):
        cca().fit(source, Y)
    with pytest.raises(ValueError, match=r"requires y .* name its column"):
        cca().fit(sources.open(tmp_path / "views.npy"))


def test_score_finds_a_crooked_relation_on_new_rows(rng, seed):
    views, new_views = two_views(rng, 500, 0.05), two_views(rng, 300, 0.05)
    model = cca(1, random_state=seed, gamma=1.0).fit(*views)
    assert model.score(*new_views) > 0.9
    linear = cca(1, kernel="linear").fit(np.c_[views[0][:, 0]], np.c_[views[1][:, 0]])
    assert abs(linear.score(new_views[0][:, :1], new_views[1][:, :1])) < 0.3


def test_score_is_the_mean_correlation_of_the_pairs(views, new_views):
    model = cca(3).fit(*views)
    a, b = model.transform(*new_views)
    each = [np.corrcoef(a[:, j], b[:, j])[0, 1] for j in range(3)]
    assert model.score(*new_views) == pytest.approx(np.mean(each), rel=1e-12)


def test_score_of_constant_rows_is_zero(views):
    model = cca().fit(*views)
    X, Y = (np.repeat(rows[:1], 4, axis=0) for rows in views)
    assert model.score(X, Y) == 0


# One option per view


PAIRS = [
    (
        {"kernel": ("rbf", "laplacian"), "gamma": (0.1, 2.0)},
        partial(rbf_kernel, gamma=0.1),
        partial(laplacian_kernel, gamma=2.0),
    ),
    (
        {"kernel": "poly", "degree": (2, 3), "coef0": (1.0, 0.5)},
        partial(polynomial_kernel, degree=2, gamma=GAMMA, coef0=1.0),
        partial(polynomial_kernel, degree=3, gamma=GAMMA, coef0=0.5),
    ),
]


@pytest.mark.parametrize(("options", "first", "second"), PAIRS)
def test_a_pair_of_kernels_with_their_parameters(views, options, first, second):
    model = cca(2, **options).fit(*views)
    A, B = dense_matrices(model, *views, (first, second))
    expected = correlations(A, B, (1.0, 1.0))[:2]
    np.testing.assert_allclose(model.canonical_correlations_, expected, rtol=1e-7)


# Kinds of rows


def test_one_column_may_come_in_one_dimension(views):
    X, y = views[0], views[1][:, 0]
    expected = cca().fit(X, y[:, None])
    for given in (y, list(y), pd.Series(y), pd.DataFrame({"y": y})):
        model = cca().fit(X, given)
        np.testing.assert_array_equal(
            model.canonical_correlations_, expected.canonical_correlations_
        )
        np.testing.assert_array_equal(
            model.transform(X, given)[1], expected.transform(X, y[:, None])[1]
        )


def common_letters(a, b):
    """The number of letters that two words share: an inner product of indicators."""
    return float(len(set(a) & set(b)))


def test_words_as_the_second_view(rng):
    """A word has the letter a where X is positive, and others at random."""
    x = rng.standard_normal(N_ROWS)
    others = rng.choice(list("bcdef"), (N_ROWS, 2))
    words = [
        ("a" if v > 0 else "") + "".join(w) for v, w in zip(x, others, strict=True)
    ]
    indicators = np.array(
        [[c in word for c in "abcdef"] for word in words], dtype=float
    )
    model = cca(2, kernel=("rbf", common_letters)).fit(x[:, None], words)
    H = centering(N_ROWS)
    A = H @ nystrom_matrix(rbf, model.landmarks_[0].points, x[:, None]) @ H
    B = H @ indicators @ indicators.T @ H
    expected = correlations(A, B, (1.0, 1.0))[:2]
    np.testing.assert_allclose(model.canonical_correlations_, expected, rtol=1e-8)
    assert all(word in words for word in model.landmarks_[1].points)
    assert model.score(x[:, None], words) > 0.4
    assert model.transform(x[:5, None], words[:5])[1].shape == (5, 2)


def test_each_view_keeps_its_precision(views):
    X, Y = views[0].astype(np.float32), views[1]
    a, b = cca().fit(X, Y).transform(X, Y)
    assert (a.dtype, b.dtype) == (np.float32, np.float64)


# The number of pairs


def test_there_are_no_more_pairs_than_the_smaller_rank(views):
    model = cca(50, kernel="linear").fit(*views)
    assert model.canonical_correlations_.shape == (2,)
    a, b = model.transform(*views)
    assert a.shape == b.shape == (N_ROWS, 2)
    assert len(model.get_feature_names_out()) == 2
    X, Y = (rows - rows.mean(axis=0) for rows in views)
    expected = correlations(linear_kernel(X), linear_kernel(Y), (1.0, 1.0))[:2]
    np.testing.assert_allclose(model.canonical_correlations_, expected, rtol=1e-9)


def test_a_view_that_is_not_centred_may_be_constant(views):
    """Without centring a constant function correlates with a constant view."""
    model = cca(1, center=False).fit(views[0], np.ones(N_ROWS))
    assert model.canonical_correlations_[0] > 0.9


# As part of scikit-learn


@pytest.mark.parametrize("which", [0, 1])
def test_a_function_of_two_rows_is_called_from_one_thread(rng, monkeypatch, which):
    """Unless n_jobs asks for more, also where the other view's kernel may have more."""
    monkeypatch.setattr("nystrom.engines.threads.resolve_n_jobs", lambda n: n or 2)
    callers = set()

    def product(a, b):
        callers.add(threading.get_ident())
        return float(a @ b)

    kernel = (product, "linear") if which == 0 else ("linear", product)
    X, Y = two_views(rng, 5000)
    cca(1, kernel=kernel, n_landmarks=4, sampler="uniform").fit(X, Y)
    assert len(callers) == 1


# Bad input


@pytest.mark.parametrize("which", ["both", "second"])
def test_precomputed_kernels_are_refused(views, which):
    X, Y = views
    square = rbf(Y, Y)
    if which == "both":
        model, X = cca(kernel="precomputed"), rbf(X, X)
    else:
        model = cca(kernel=("rbf", "precomputed"))
    with pytest.raises(ValueError, match="KernelCCA takes rows"):
        model.fit(X, square)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("value", [0.0, 1.0, 0.3])
def test_a_constant_view_is_refused(views, kernel, value):
    """That of zeros has no features at all, by a linear kernel."""
    X = np.full((N_ROWS, 2), value)
    for pair in ((X, views[1]), (views[0], X)):
        with pytest.raises(ValueError, match="A view is constant"):
            cca(kernel=kernel).fit(*pair)


def test_no_rows_and_a_single_row_are_refused(views):
    X, Y = views
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        cca().fit(X[:0], Y[:0])
    with pytest.raises(ValueError, match="at least two rows are needed"):
        cca().fit(X[:1], Y[:1])


def test_words_need_a_kernel_for_words(views):
    with pytest.raises(ValueError, match="needs rows of numbers"):
        cca().fit(views[0], ["tree", "free"] * 150)


def test_new_rows_must_fit_the_old_ones(views):
    X, Y = views
    model = cca().fit(X, Y)
    with pytest.raises(ValueError, match=r"X has 2 features.*expecting 3"):
        model.transform(X[:, :2])
    with pytest.raises(ValueError, match=r"y has 1 features.*expecting 2"):
        model.transform(X, Y[:, 0])
