"""Ridge regression on K itself, `solver="full"`, against the dense solution."""

import math
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from oracles_ridge import Dense, relative
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

from nystrom import KernelRidge, engines, kernels, sources
from nystrom.engines import Threads
from nystrom.landmarks import Landmarks
from nystrom.linalg import features as linear_map
from nystrom.linalg.conjugate_gradients import conjugate_gradients
from nystrom.models import ridge_full as all_pairs
from nystrom.models.ridge_full import FullRidge, kernel_products
from nystrom.sources import CachedRows

pytestmark = pytest.mark.usefixtures("one_blas_thread")

N_ROWS, N_NEW, N_LANDMARKS = 540, 30, 60
ALPHAS = np.array([0.05, 1.0])
#: Megabytes: all of K held, nothing of it but the features, and not even these.
WORKING_MEMORY = [1024, 0.8, 0.1]
KERNELS = {
    "rbf": (kernels.RBF(0.4), lambda X, Y: rbf_kernel(X, Y, 0.4)),
    "laplacian": (kernels.Laplacian(0.2), lambda X, Y: laplacian_kernel(X, Y, 0.2)),
    "polynomial": (
        kernels.Polynomial(0.2, degree=2, coef0=1.0),
        lambda X, Y: polynomial_kernel(X, Y, 2, 0.2, 1.0),
    ),
}

intercept_or_not = pytest.mark.parametrize("intercept", [False, True])


@pytest.fixture
def X(rng):
    return rng.standard_normal((N_ROWS, 3))


@pytest.fixture
def X_new(X, rng):
    return rng.standard_normal((N_NEW, 3))


@pytest.fixture
def Y(X, rng):
    noise = 0.1 * rng.standard_normal((N_ROWS, 2))
    return np.column_stack([np.sin(2 * X[:, 0]) + 2.0, X[:, 1] ** 2]) + noise


@pytest.fixture
def weights(rng):
    """A quarter of them 0."""
    return rng.integers(0, 4, N_ROWS) * 0.7


def model_of(seed=0, **options):
    given = {"kernel": "rbf", "gamma": 0.4, "n_landmarks": N_LANDMARKS} | options
    alpha = given.pop("alpha", ALPHAS)
    return KernelRidge(alpha, solver="full", random_state=seed, **given)


def problem_of(X, alphas, *, kernel=None, weights=None, intercept=False, seed=0):
    """The matrix of all rows, with some of them as landmarks."""
    kernel = kernel or kernels.RBF(0.4)
    rows = np.random.default_rng(seed).choice(len(X), N_LANDMARKS, replace=False)
    landmarks = Landmarks(X[rows], kernel, "some", len(X), indices=rows)
    held = CachedRows(X, weights)
    return FullRidge(
        landmarks, held, alphas, fit_intercept=intercept, engine=Threads(1)
    )


def dense_of(formula, X, X_new, weights=None):
    diagonal = np.array([formula(x[None], x[None])[0, 0] for x in X_new])
    w = np.ones(len(X)) if weights is None else weights
    return Dense(formula(X, X), formula(X_new, X), diagonal, w)


# Against the dense solution


@intercept_or_not
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", KERNELS)
def test_predictions_are_those_of_the_dense_solution(
    X, X_new, Y, weights, seed, name, weighted, intercept
):
    kernel, formula = KERNELS[name]
    w = weights if weighted else None
    model = model_of(seed, kernel=kernel, fit_intercept=intercept).fit(X, Y, w)
    dense = dense_of(formula, X, X_new, w)
    found = model.predict(X_new)
    for j, alpha in enumerate(ALPHAS):
        expected = dense.predict(Y[:, j], alpha, intercept=intercept)
        assert relative(found[:, j], expected) < 1e-4
    assert model.solver_ == "full"
    assert model.residual_ <= 1e-6
    assert len(model.X_fit_) == len(X if w is None else X[w > 0])
    by_hand = formula(X_new, model.X_fit_) @ model.dual_coef_ + model.intercept_
    np.testing.assert_allclose(found, by_hand, rtol=1e-7, atol=1e-7)


@intercept_or_not
@pytest.mark.parametrize("megabytes", WORKING_MEMORY)
def test_coefficients_are_those_of_the_dense_solution(
    X, Y, rng, seed, megabytes, intercept
):
    """To ten digits, however much of K is held."""
    w = rng.uniform(0.2, 3, N_ROWS)
    with sklearn.config_context(working_memory=megabytes):
        problem = problem_of(X, ALPHAS, weights=w, intercept=intercept, seed=seed)
        fit = problem.fit(Y, tolerance=1e-12)
        assert bool(problem.kernel_products[0].strips) == (megabytes == 1024)
        stored = problem.preconditioner.stored is not None
        assert stored == (megabytes != 0.1)
    K, one = rbf_kernel(X, X, 0.4), float(intercept)
    for j, alpha in enumerate(ALPHAS):
        bordered = np.block(
            [
                [K + alpha * np.diag(1 / w), np.full((N_ROWS, 1), one)],
                [np.full((1, N_ROWS), one), np.full((1, 1), 1 - one)],
            ]
        )
        solved = np.linalg.solve(bordered, np.append(Y[:, j], 0.0))
        assert relative(fit.dual[:, j], solved[:-1]) < 1e-9
        assert abs(fit.intercept[j] - solved[-1]) < 1e-9


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("megabytes", WORKING_MEMORY)
def test_the_residual_told_is_the_true_one(X, Y, seed, megabytes, dtype):
    """Steps by float32 products believe what they like."""
    X = X.astype(dtype)
    with sklearn.config_context(working_memory=megabytes):
        problem = problem_of(X, ALPHAS, seed=seed)
        fit = problem.fit(Y)
        fast, exact = problem.kernel_products
        assert (fast is exact) == (megabytes == 1024)
    wide = X.astype(np.float64)
    left = Y - rbf_kernel(wide, wide, 0.4) @ fit.dual - ALPHAS * fit.dual
    true = np.linalg.norm(left, axis=0) / np.linalg.norm(Y, axis=0)
    assert fit.converged
    assert fit.residual < 1e-6
    assert abs(true.max() - fit.residual) < 1e-9


def test_targets_of_all_sizes_are_solved_for_at_once(X, X_new, seed):
    """Also one that is 0, and one whose square is no number."""
    y = np.sin(X[:, 0])
    Y = np.column_stack([y, 0 * y, 1e-200 * y, 1e200 * y])
    model = model_of(seed, alpha=0.1).fit(X, Y)
    one, none, small, large = model.predict(X_new).T
    assert not none.any()
    np.testing.assert_allclose(small * 1e200, one, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(large / 1e200, one, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("noise", [False, True])
@intercept_or_not
def test_deviations_are_those_of_the_gaussian_process(
    X, X_new, Y, weights, seed, intercept, noise
):
    model = model_of(seed, fit_intercept=intercept).fit(X, Y, weights)
    dense = dense_of(KERNELS["rbf"][1], X, X_new, weights)
    with sklearn.config_context(working_memory=2):  # 10 new rows at a time
        mean, std = model.predict(X_new, return_std=True, noise=noise)
    np.testing.assert_array_equal(mean, model.predict(X_new))
    for j, alpha in enumerate(ALPHAS):
        given = {"intercept": intercept, "noise": noise}
        expected = dense.deviation(Y[:, j], alpha, **given)
        np.testing.assert_allclose(std[:, j], expected, rtol=1e-4)
    both = model.predict(X_new, return_std=True, noise=noise, out=np.empty((N_NEW, 4)))
    np.testing.assert_allclose(both, np.hstack([mean, std]), rtol=1e-4)


# Where rows are, and what runs the products


def test_all_storages_and_engines_give_one_model(X, X_new, Y, seed, tmp_path):
    y = Y[:, 0]
    options = {"alpha": 0.1, "sampler": np.arange(N_LANDMARKS)}
    expected = model_of(seed, **options).fit(X, y).predict(X_new)
    np.save(tmp_path / "rows.npy", X)
    for rows in (sources.open(tmp_path / "rows.npy"), sp.csr_array(X)):
        found = model_of(seed, **options).fit(rows, y)
        assert relative(found.predict(X_new), expected) < 1e-5
    K, K_new = rbf_kernel(X, X, 0.4), rbf_kernel(X_new, X, 0.4)
    given = model_of(seed, kernel="precomputed", **options).fit(K, y)
    assert relative(given.predict(K_new), expected) < 1e-5
    with pytest.raises(ValueError, match="kernel matrix of the training rows"):
        given.predict(K_new, return_std=True)
    small = sklearn.config_context(working_memory=0.1)  # K is not held here
    with small, ThreadPoolExecutor(2) as pool, engines.using(pool):
        found = model_of(seed, **options).fit(X, y)
    assert relative(found.predict(X_new), expected) < 1e-5


def test_rows_of_dask_are_fetched_once(X, X_new, Y, seed):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    options = {"alpha": 0.1, "sampler": np.arange(N_LANDMARKS)}
    expected = model_of(seed, **options).fit(X, Y[:, 0]).predict(X_new)
    rows, y = da.from_array(X, chunks=(200, 3)), da.from_array(Y[:, 0], chunks=200)
    model = model_of(seed, **options).fit(rows, y)
    assert relative(model.predict(X_new), expected) < 1e-5


@pytest.mark.parametrize("megabytes", [1024, 0.5])
def test_rows_on_a_device_are_solved_for_there(X, X_new, Y, seed, megabytes):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    options = {"alpha": 0.1, "sampler": np.arange(N_LANDMARKS)}
    expected = model_of(seed, **options).fit(X, Y[:, 0])
    mean, std = expected.predict(X_new, return_std=True)
    with sklearn.config_context(working_memory=megabytes):
        there = model_of(seed, **options).fit(torch.tensor(X), torch.tensor(Y[:, 0]))
        found = there.predict(torch.tensor(X_new), return_std=True)
        with engines.using(device="cpu"):
            here = model_of(seed, **options).fit(X, Y[:, 0])
    for tensor, array in zip(found, (mean, std), strict=True):
        assert relative(tensor.numpy(), array) < 1e-5
    assert isinstance(there.X_fit_, torch.Tensor)
    assert isinstance(here.X_fit_, np.ndarray)
    assert relative(here.predict(X_new), mean) < 1e-5


def test_predictions_come_from_few_points_at_a_time(X, X_new, Y, seed, monkeypatch):
    model = model_of(seed).fit(X, Y)
    expected = model.predict(X_new)
    monkeypatch.setattr(linear_map, "MAX_POINTS_PER_BLOCK", 100)
    np.testing.assert_allclose(model.predict(X_new), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("n_rows", [1, 511, 512, 513, 1025])
def test_products_are_right_at_every_edge_of_a_block(rng, n_rows):
    X, V = rng.standard_normal((n_rows, 2)), rng.standard_normal((n_rows, 3))
    expected = rbf_kernel(X, X, 0.4) @ V
    for megabytes in (1024, 1e-3):
        with sklearn.config_context(working_memory=megabytes):
            fast, exact = kernel_products(kernels.RBF(0.4), X, Threads(1))
        np.testing.assert_allclose(fast(V), expected, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(exact(V), expected, rtol=1e-12, atol=1e-11)


def counted_values(monkeypatch):
    """How many kernel values blocks are made of from here on."""
    made, beside = [], all_pairs.KernelBlocks.upper_triangle_blocks

    def counting(self, block):
        for rows, columns, K in beside(self, block):
            made.append(K.size)
            yield rows, columns, K

    monkeypatch.setattr(all_pairs.KernelBlocks, "upper_triangle_blocks", counting)
    return made


def test_half_of_the_values_are_evaluated(rng, monkeypatch):
    n = 4096
    X = rng.standard_normal((n, 2))
    made = counted_values(monkeypatch)
    with sklearn.config_context(working_memory=1):
        fast, _ = kernel_products(kernels.RBF(0.4), X, Threads(1))
        assert not made
        fast(np.ones((n, 1)))
    assert sum(made) == n * (n + all_pairs.BLOCK_ROWS) / 2


def test_memory_stays_below_what_was_allowed(rng, monkeypatch):
    n, megabytes = 3000, 4
    monkeypatch.setattr(linear_map, "MAX_POINTS_PER_BLOCK", 512)
    X = rng.standard_normal((n, 2))
    y = np.sin(X[:, 0])
    with sklearn.config_context(working_memory=megabytes):
        model = model_of(alpha=1.0, n_landmarks=30, sampler="uniform", n_jobs=1)
        tracemalloc.start()
        model.fit(X, y)
        model.predict(X)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    # A tile of values with so many points takes as much, and so does a copy of it.
    assert peak < 5 * megabytes * 2**20 < 0.3 * 8 * n * n


# How many steps it takes


def test_chosen_landmarks_take_fewer_steps_than_uniform_and_none(rng):
    """Small clusters far away, which uniform landmarks do not find."""
    n, small = 1500, 40
    X = np.concatenate(
        [
            0.2 * rng.standard_normal((n - 6 * small, 3)),
            *(0.2 * rng.standard_normal((small, 3)) + 4 * c for c in np.eye(3)),
            *(0.2 * rng.standard_normal((small, 3)) - 4 * c for c in np.eye(3)),
        ]
    )
    y, steps = np.sin(X.sum(axis=1)), {}
    for sampler in ("auto", "uniform"):
        options = {"alpha": 1e-3, "gamma": 1.0, "sampler": sampler}
        steps[sampler] = model_of(n_landmarks=100, **options).fit(X, y).n_iter_
    problem = problem_of(X, np.array([1e-3]), kernel=kernels.RBF(1.0))
    steps["none"] = problem.fit(y[:, None], precondition=lambda V: V).n_iterations
    assert steps["auto"] < 0.6 * steps["uniform"]
    assert steps["uniform"] < steps["none"]


def test_few_steps_where_landmarks_leave_less_than_alpha(X, Y, seed):
    """κ ≤ 1 + ‖K − K̃‖₂/α: CG gains a digit in 1.2·√κ steps, here about 1.6 of them."""
    model = model_of(seed, alpha=0.5, gamma=0.05, n_landmarks=200).fit(X, Y)
    left = model.landmarks_.error.value * N_ROWS
    assert left < 0.5
    assert model.n_iter_ <= 1 + 6 * 1.2 * math.sqrt(2)


# What does not work, and what is said then


def test_alpha_below_rounding_is_refused(X, Y):
    with pytest.raises(ValueError, match=r"alpha=1e-13 is too small.*alpha >= "):
        model_of(alpha=1e-13).fit(X, Y)
    norm = np.linalg.eigvalsh(rbf_kernel(X, X, 0.4))[-1]
    least = 100 * np.finfo(np.float64).eps * norm
    with pytest.raises(ValueError, match="is too small"):
        model_of(alpha=0.9 * least, n_landmarks=300).fit(X, Y)
    narrow = rbf_kernel(X, X, 0.4).astype(np.float32)
    with pytest.raises(ValueError, match="is too small"):
        model_of(alpha=1e-6, kernel="precomputed").fit(narrow, Y)
    with pytest.raises(ValueError, match="solver='full' needs alpha > 0"):
        model_of(alpha=0).fit(X, Y)


def refuses(model, X, y, w):
    """Whether it says that rounding is above alpha; it may raise nothing else."""
    try:
        model.fit(X, y, sample_weight=w)
    except ValueError as error:
        if "is too small for solver='full'" not in str(error):
            raise
        return True
    return False


@pytest.mark.filterwarnings("ignore:Conjugate gradients on all rows did not")
def test_wild_weights_are_refused_or_solved_for(rng):
    """Taking the mean off a Gram matrix of huge numbers leaves their rounding."""
    for _ in range(20):
        X, w = rng.standard_normal((3, 2)) * 1e8, 10.0 ** rng.uniform(-30, 30, 3)
        model = model_of(alpha=1e-12, n_landmarks=2, fit_intercept=True)
        if not refuses(model, X, X[:, 0], w):
            assert np.isfinite(model.predict(X)).all()


def minus_product(x, y):
    return -float(x @ y)


@pytest.mark.parametrize("kernel", ["sigmoid", minus_product])
def test_kernels_that_are_not_definite_are_refused(X, Y, kernel):
    model = model_of(kernel=kernel, gamma=None)
    with pytest.raises(ValueError, match="positive semi-definite"):
        model.fit(X[:200], Y[:200])
    assert not hasattr(model, "solver_")


def test_a_direction_that_is_not_positive_is_found(X, Y):
    """By the products themselves, where the landmarks did not show it."""
    problem = problem_of(X, ALPHAS)
    problem.kernel_products = 2 * (np.negative,)
    with pytest.raises(ValueError, match="positive semi-definite"):
        problem.fit(Y)


def test_steps_are_bounded_and_what_is_missing_is_told(X, Y, monkeypatch):
    monkeypatch.setattr(all_pairs, "MAX_CG_ITERATIONS", 2)
    with pytest.warns(ConvergenceWarning, match=r"after 2 steps.*Raise n_landmarks"):
        model = model_of().fit(X, Y)
    assert model.n_iter_ == 2
    left = Y - rbf_kernel(X, X, 0.4) @ model.dual_coef_ - ALPHAS * model.dual_coef_
    true = np.linalg.norm(left, axis=0) / np.linalg.norm(Y, axis=0)
    assert model.residual_ == pytest.approx(true.max(), rel=1e-6)
    assert true.max() > 1e-6


def test_nothing_is_tried_beyond_rounding(X, Y):
    fit = problem_of(X, ALPHAS).fit(Y, tolerance=1e-18)
    assert not fit.converged
    assert fit.n_iterations < all_pairs.MAX_CG_ITERATIONS / 2
    assert fit.residual < 1e-13


# Conjugate gradients with products that are off


def definite(rng, n=60):
    A = rng.standard_normal((n, n))
    return A @ A.T + n * np.eye(n), rng.standard_normal((n, 3))


def solved(quick, exactly, b, precondition=lambda V: V, **options):
    options = {"rtol": 1e-10, "max_iterations": 300} | options
    return conjugate_gradients(
        quick, b, precondition, multiply_exact=exactly, **options
    )


@pytest.mark.parametrize("off", [1e-6, 1e-2, 3.0])
def test_products_that_are_off_do_not_show_in_the_solution(rng, off):
    A, b = definite(rng)
    wrong = off * rng.standard_normal(A.shape)
    B, calls = A + (wrong + wrong.T), []

    def exactly(V):
        calls.append(V.shape)
        return A @ V

    found = solved(lambda V: B @ V, exactly, b)
    assert found.converged
    np.testing.assert_allclose(A @ found.x, b, rtol=0, atol=1e-9 * np.abs(b).max())
    few = len(calls) < 10
    assert few == (off < 1e-1)  # beyond that no step is trusted


def test_what_the_last_step_leaves_is_found_exactly(rng):
    A, b = definite(rng)
    found = solved(lambda V: 1.5 * (A @ V), lambda V: A @ V, b, max_iterations=2)
    left = np.linalg.norm(b - A @ found.x, axis=0) / np.linalg.norm(b, axis=0)
    assert not found.converged
    np.testing.assert_allclose(found.residual, left, rtol=1e-10)


def turning(A, rng, share=1e3):
    """V ↦ AV and what is at right angles to V: no curvature shows that it is wrong."""
    S = rng.standard_normal(A.shape)
    return lambda V: (A + share * (S - S.T)) @ V


def test_exact_steps_that_go_astray_end(rng):
    """The best there was is told, and how good it is."""
    A, b = definite(rng)
    wrong = turning(A, rng)
    found = solved(wrong, wrong, b)
    assert not found.converged
    assert found.n_iterations < all_pairs.MAX_CG_ITERATIONS
    assert np.all(found.residual <= 1)
    left = np.linalg.norm(b - wrong(found.x), axis=0) / np.linalg.norm(b, axis=0)
    np.testing.assert_allclose(found.residual, left)


def test_columns_take_steps_of_their_own(rng):
    """Together they take as many as the slowest alone, and find the same."""
    A, b = definite(rng)
    scaled = np.diag(np.logspace(0, 2, len(A)))
    A = scaled @ A @ scaled

    def jacobi(b):
        return solved(times, times, b, lambda V: V / np.diag(A)[:, None], rtol=1e-8)

    def times(V):
        return A @ V

    together = jacobi(b)
    alone = [jacobi(y) for y in np.split(b, 3, axis=1)]
    assert together.n_iterations <= max(one.n_iterations for one in alone) + 3
    for j, one in enumerate(alone):
        np.testing.assert_allclose(together.x[:, j], one.x[:, 0], rtol=1e-4, atol=1e-7)


def test_the_preconditioner_is_the_inverse_that_it_says(X, rng, seed):
    w, V = rng.uniform(0.2, 3, N_ROWS), rng.standard_normal((N_ROWS, 2))
    problem = problem_of(X, ALPHAS, weights=w, seed=seed)
    rows = np.random.default_rng(seed).choice(N_ROWS, N_LANDMARKS, replace=False)
    K_S = rbf_kernel(X, X[rows], 0.4)
    near = K_S @ np.linalg.pinv(rbf_kernel(X[rows], X[rows], 0.4)) @ K_S.T
    near = np.sqrt(w)[:, None] * near * np.sqrt(w)
    for j, alpha in enumerate(ALPHAS):
        expected = np.linalg.solve(near + alpha * np.eye(N_ROWS), V[:, j])
        assert relative(problem.preconditioner(V, ALPHAS)[:, j], expected) < 1e-7
    expected = np.linalg.norm(near, 2)
    assert problem.preconditioner.norm == pytest.approx(expected, rel=0.01)
