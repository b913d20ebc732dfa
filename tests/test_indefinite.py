"""An indefinite kernel is named in one warning; a definite one in none."""

import warnings

import numpy as np
import pytest
from lists import CHOOSING
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics.pairwise import rbf_kernel

from nystrom import Nystroem, approximate, kernels, leverage_scores, select_landmarks

N_ROWS = 200


def distance(x, y):
    """Not definite: a distance is 0 on the diagonal and positive elsewhere."""
    return float(np.linalg.norm(x - y))


def distances(X, Y):
    return np.linalg.norm(X[:, None] - Y[None], axis=2)


def indefinite_matrix(rng, n=N_ROWS):
    """Half of the eigenvalues are negative, also those of any few rows."""
    Q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    return (Q * np.linspace(-1, 1, n)) @ Q.T


INDEFINITE = {
    "sigmoid": ("sigmoid", "Sigmoid"),
    "sigmoid as a value": (kernels.Sigmoid(0.5, 1.0), "Sigmoid"),
    "additive_chi2": ("additive_chi2", "AdditiveChi2"),
    "callable": (distance, "distance"),
    "blockwise": (kernels.blockwise(distances), "distances"),
    "sum": (kernels.AdditiveChi2() + 1e-3 * kernels.Linear(), "AdditiveChi2"),
    "polynomial": (kernels.Polynomial(1.0, degree=2, coef0=-20.0), "Polynomial"),
}
SAMPLERS = [*CHOOSING, list(range(10))]


@pytest.fixture
def X(rng):
    return np.abs(rng.standard_normal((N_ROWS, 4)))


def one_warning(run, name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = run()
    assert len(caught) == 1, [str(w.message) for w in caught]
    message = str(caught[0].message)
    assert issubclass(caught[0].category, UserWarning)
    assert name in message
    assert "not positive semi-definite" in message
    assert "negative part" in message
    return result


@pytest.mark.parametrize("case", INDEFINITE)
@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_one_warning_that_names_the_kernel(X, seed, case, sampler, dtype):
    kernel, name = INDEFINITE[case]
    X = X.astype(dtype)
    estimator = Nystroem(kernel, n_components=10, sampler=sampler, random_state=seed)
    Z = one_warning(lambda: estimator.fit_transform(X), name)
    assert Z.shape == (N_ROWS, 10)
    assert Z.dtype == dtype
    assert np.isfinite(Z).all()
    # tr K says nothing where eigenvalues cancel.
    assert estimator.approximation_error_ is None
    # New rows are not warned about again.
    np.testing.assert_array_equal(estimator.transform(X), Z)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
def test_precomputed_matrix(rng, seed, dtype, sampler):
    K = indefinite_matrix(rng).astype(dtype)
    estimator = Nystroem(
        "precomputed", n_components=20, sampler=sampler, random_state=seed
    )
    Z = one_warning(lambda: estimator.fit_transform(K), "precomputed")
    assert np.isfinite(Z).all()
    np.testing.assert_array_equal(estimator.transform(K), Z)


@pytest.mark.parametrize("case", INDEFINITE)
@pytest.mark.filterwarnings("ignore:The kernel")
def test_approximation_has_no_negative_part(X, seed, case):
    kernel, _ = INDEFINITE[case]
    landmarks = select_landmarks(
        X, kernel=kernel, n_landmarks=10, random_state=seed, sampler="uniform"
    )
    approximation = approximate(X, landmarks)
    whole = approximation @ np.eye(N_ROWS)
    assert np.isfinite(whole).all()
    np.testing.assert_allclose(whole, whole.T, atol=1e-8 * np.abs(whole).max())
    values = np.linalg.eigvalsh(whole)
    assert values.min() >= -1e-9 * values.max()
    assert landmarks.rank < 10
    assert (landmarks.rank == 0) == (values.max() == 0)


@pytest.mark.parametrize("sampler", ["leverage", "greedy", "rpcholesky"])
@pytest.mark.parametrize("case", ["sigmoid", "additive_chi2", "sum", "polynomial"])
@pytest.mark.filterwarnings("ignore:The kernel")
def test_landmarks_are_drawn_uniformly_and_say_so(X, seed, case, sampler):
    kernel, _ = INDEFINITE[case]
    options = {"kernel": kernel, "n_landmarks": 20, "random_state": seed}
    landmarks = select_landmarks(X, sampler=sampler, **options)
    uniform = select_landmarks(X, sampler="uniform", **options)
    np.testing.assert_array_equal(landmarks.indices, uniform.indices)
    assert f"uniform instead of {sampler}" in str(landmarks)


@pytest.mark.parametrize("cap", [N_ROWS, N_ROWS + 1])
@pytest.mark.filterwarnings("ignore:The kernel")
def test_a_ridge_that_allows_all_rows_takes_them_in_their_order(X, seed, cap):
    options = {"kernel": "sigmoid", "max_spectral_error": 1.0, "random_state": seed}
    landmarks = select_landmarks(X, n_landmarks=cap, **options)
    np.testing.assert_array_equal(landmarks.indices, np.arange(N_ROWS))
    np.testing.assert_array_equal(landmarks.weights, 1)


@pytest.mark.parametrize("sampler", ["recursive", "accelerated", "auto"])
def test_the_recursion_notices_an_indefinite_matrix(sampler, rng, seed):
    """Half of its eigenvalues are negative: scores from it would mean nothing."""
    A = rng.standard_normal((3000, 3000))
    with pytest.warns(UserWarning, match="not positive semi-definite"):
        landmarks = select_landmarks(
            A + A.T,
            kernel="precomputed",
            n_landmarks=20,
            sampler=sampler,
            random_state=seed,
        )
    assert landmarks.sampler == "uniform"


def test_ridge_has_no_meaning(X):
    with pytest.raises(ValueError, match=r"error=1.0 is not defined for Sigmoid"):
        Nystroem("sigmoid", max_spectral_error=1.0, n_components=None).fit(X)


def test_leverage_scores_say_that_they_have_no_meaning(X):
    """Scores of a kernel with negative eigenvalues are not silently returned."""
    with pytest.warns(UserWarning, match=r"Sigmoid.*not positive semi-definite"):
        scores = leverage_scores(X, kernel="sigmoid", ridge=1.0)
    assert np.all((scores >= 0) & (scores <= 1))


def test_negative_definite_matrix():
    estimator = Nystroem("precomputed", n_components=5, random_state=0)
    Z = one_warning(lambda: estimator.fit_transform(-np.eye(30)), "precomputed")
    np.testing.assert_array_equal(Z, np.zeros((30, 5)))


# No warning for definite kernels


DEFINITE = [
    "rbf",
    "laplacian",
    "matern12",
    "matern32",
    "matern52",
    "rational_quadratic",
    "polynomial",
    "linear",
    "cosine",
    "chi2",
    kernels.RBF(0.3) + kernels.Linear(),
    kernels.RBF(0.3) * kernels.Polynomial(0.1, 2, 1.0),
    1e-9 * kernels.Laplacian(1.0),
    kernels.blockwise(lambda X, Y: X @ Y.T),
    gp.ConstantKernel(2.0) * gp.RBF(1.0) + gp.DotProduct(),
]


def rows_of(kind, rng):
    """Rows of a kind; all kinds by their names for None."""
    X = np.abs(rng.standard_normal((N_ROWS, 4)))
    few = np.repeat(X[: N_ROWS // 10], 10, axis=0)
    kinds = {
        "plain": X,
        "copies": few,
        "near copies": few + 1e-9 * rng.random(few.shape),
        "nearer copies": few + 1e-12 * rng.random(few.shape),
        "far from the origin": few + 1000,
        "constant": np.ones((N_ROWS, 4)),
        "zero": np.zeros((N_ROWS, 4)),
        "large": 1e4 * X,
        "small": 1e-6 * X,
    }
    return kinds if kind is None else kinds[kind]


@pytest.mark.filterwarnings("ignore:The kernel matrix is nearly")
@pytest.mark.parametrize("kernel", DEFINITE, ids=str)
@pytest.mark.parametrize("kind", rows_of(None, np.random.default_rng(0)))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_definite_kernels_do_not_warn(rng, seed, kernel, kind, dtype):
    X = rows_of(kind, rng).astype(dtype)
    estimator = Nystroem(kernel, n_components=50, random_state=seed)
    Z = estimator.fit_transform(X)
    assert np.isfinite(Z).all()
    assert not estimator.landmarks_.indefinite
    assert "uniform instead" not in str(estimator.landmarks_)


@pytest.mark.parametrize("gamma", [1e-6, 1e-3, 0.1])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sampler", CHOOSING)
def test_definite_precomputed_matrix_does_not_warn(rng, seed, gamma, dtype, sampler):
    """A matrix in float32 has negative eigenvalues of its own rounding."""
    X = rows_of("plain", rng)
    K = rbf_kernel(X, gamma=gamma).astype(dtype)
    estimator = Nystroem(
        "precomputed", n_components=80, sampler=sampler, random_state=seed
    )
    assert np.isfinite(estimator.fit_transform(K)).all()
    assert "uniform instead" not in str(estimator.landmarks_)


def test_kernel_that_rounds_to_float32_does_not_warn(rng, seed):
    """A function that works in float32 whatever it is given (on a GPU, say)."""

    def rounded(X, Y):
        return rbf_kernel(X, Y, gamma=1e-2).astype(np.float32)

    X = rows_of("plain", rng).astype(np.float32)
    kernel = kernels.blockwise(rounded)
    Nystroem(kernel, n_components=80, random_state=seed).fit(X)
