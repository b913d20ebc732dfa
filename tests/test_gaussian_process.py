"""GaussianProcessRegressor beside scikit-learn's own class and the dense process."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor as ExactProcess
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)

from nystrom import GaussianProcessRegressor, kernels, load, save
from nystrom.engines import Threads
from nystrom.kernels.gaussian_process import (
    MappedKernel,
    as_scikit_learn,
    from_scikit_learn,
    has_point_gradient,
    noise_and_gradient,
    values_and_pullback,
)
from nystrom.models.evidence import ProcessRows, evidence
from nystrom.sources import DenseRows

KERNELS = [
    RBF(1.3),
    RBF([1.0, 2.0]),
    Matern([1.0, 2.0], nu=0.5),
    Matern(1.1, nu=1.5),
    Matern([1.0, 2.0], nu=2.5),
    Matern(1.2, nu=np.inf),
    Matern(1.2, nu=0.9),
    RationalQuadratic(1.2, 0.7),
    DotProduct(0.8),
    ConstantKernel(2.0) * RBF(1.0) + ConstantKernel(0.3),
    (RBF(1.0) + DotProduct(0.5)) ** 2,
    ConstantKernel(2.0) * (RBF([1.0, 2.0]) * Matern(2.0) + WhiteKernel(0.2)),
    ConstantKernel(2.0, "fixed") * RBF(1.0, "fixed") + Matern(1.0),
    PairwiseKernel(0.4, metric="rbf"),
    MappedKernel(2.0 * RBF(1.5) + WhiteKernel(0.1), np.array([[1.0, 0.5], [0.2, 1.0]])),
    MappedKernel(DotProduct(0.5), np.array([[1.0], [0.3]])),
]
NOISY = ConstantKernel() * RBF([1.0, 1.0]) + WhiteKernel()


def problem(rng, n=400, noise=0.1):
    X = rng.uniform(-2, 2, (n, 2))
    y = np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + noise * rng.standard_normal(n)
    return X, y


@pytest.fixture(scope="module")
def fitted():
    """Rows, targets, and both processes on them."""
    X, y = problem(np.random.default_rng(0))
    ours = GaussianProcessRegressor(
        NOISY, n_landmarks=80, random_state=0, normalize_y=True
    ).fit(X, y)
    return X, y, ours, ExactProcess(NOISY, normalize_y=True).fit(X, y)


# --- kernels and their gradients -----------------------------------------------------


@pytest.mark.parametrize("kernel", [*KERNELS, ExpSineSquared(1.1, 2.3)], ids=str)
def test_a_kernel_of_scikit_learn_has_its_values_and_gradients(kernel, rng):
    X, Y = rng.standard_normal((30, 2)), rng.standard_normal((6, 2))
    K, _ = values_and_pullback(kernel, X, Y)
    np.testing.assert_allclose(K, kernel(X, Y), rtol=1e-9)
    translated = from_scikit_learn(kernel)
    np.testing.assert_allclose(translated(X, Y), K, rtol=1e-9)
    diagonal, _ = values_and_pullback(kernel, X)
    np.testing.assert_allclose(translated.diag(X), diagonal, rtol=1e-9)
    # The gradient of a square block is scikit-learn's own, without its noise.
    G = rng.standard_normal((30, 30))
    np.fill_diagonal(G, 0.0)
    expected = np.einsum("ij,ijk->k", G, kernel(X, eval_gradient=True)[1])
    found, _ = values_and_pullback(kernel, X, X.copy())[1](G)
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_the_gradient_of_the_evidence_is_that_of_differences(kernel, rng):
    X, y = problem(rng, 120)
    weights = rng.uniform(0.5, 2, 120)
    weights[:3] = 0.0
    source = DenseRows(X, weights).replace(targets=np.column_stack([y, y**2]))
    mean, scale = np.array([0.1, 0.0]), np.array([1.0, 2.0])
    rows = ProcessRows(source, Threads(1), mean, scale, alpha=0.05)
    S, step = X[:20].copy(), 1e-5

    def value(kernel, points):
        return evidence(kernel, points, rows, gradient=False).value

    found = evidence(kernel, S, rows)
    for i, h in enumerate(step * np.eye(kernel.n_dims)):
        up, down = (kernel.clone_with_theta(kernel.theta + d) for d in (h, -h))
        expected = (value(up, S) - value(down, S)) / (2 * step)
        assert found.theta[i] == pytest.approx(expected, rel=1e-3, abs=1e-2)
    if has_point_gradient(kernel):
        h = np.zeros_like(S)
        h[3, 1] = step
        expected = (value(kernel, S + h) - value(kernel, S - h)) / (2 * step)
        assert found.points[3, 1] == pytest.approx(expected, rel=5e-3, abs=1e-2)


def test_features_that_are_whitened_row_by_row_give_the_same_bound(rng):
    X, y = problem(rng, 400)
    rows = ProcessRows(
        DenseRows(X).replace(targets=y[:, None]),
        Threads(1),
        np.zeros(1),
        np.ones(1),
        alpha=0.1,
    )
    kernel, S = 2.0 * Matern([0.3, 0.5], nu=1.5), X[:150]
    found, whitened = (evidence(kernel, S, rows, whiten=w) for w in (False, True))
    assert not found.is_whitened
    assert whitened.is_whitened
    assert found.value == pytest.approx(whitened.value, rel=1e-10)
    np.testing.assert_allclose(found.theta, whitened.theta, rtol=1e-8)
    scale = np.abs(whitened.points).max()
    np.testing.assert_allclose(found.points, whitened.points, atol=1e-8 * scale)


@pytest.mark.parametrize(
    "kernel",
    [
        2.0 * kernels.RBF((0.5, 0.2)) + kernels.Linear(),
        kernels.Matern(1.5, nu=2.5) * kernels.RationalQuadratic(2.0, 0.5),
        kernels.Laplacian(0.3),
        kernels.RBF((0.5, 0.0)),
    ],
    ids=str,
)
def test_kernels_of_this_package_are_taken_too(kernel, rng):
    X, y = problem(rng, 60)
    expected = as_scikit_learn(kernel)
    np.testing.assert_allclose(expected(X), kernel(X, X), rtol=1e-7, atol=1e-12)
    for n_landmarks in (20, 60):
        model = GaussianProcessRegressor(
            kernel, alpha=0.5, n_landmarks=n_landmarks, random_state=0, optimizer=None
        ).fit(X, y)
        assert model.kernel_(X[:1], X[:1])[0, 0] == pytest.approx(
            kernel(X[:1], X[:1])[0, 0]
        )
        assert model.score(X, y) > 0.25


# --- beside the exact process --------------------------------------------------------


def test_enough_landmarks_agree_with_scikit_learn(fitted):
    X, y, ours, exact = fitted
    np.testing.assert_allclose(ours.kernel_.theta, exact.kernel_.theta, atol=0.02)
    value = exact.log_marginal_likelihood(ours.kernel_.theta)
    assert ours.log_marginal_likelihood_value_ == pytest.approx(value, abs=0.02)
    at = ours.kernel_.theta
    exact_again = ExactProcess(ours.kernel_, optimizer=None, normalize_y=True).fit(X, y)
    new = np.random.default_rng(1).uniform(-2, 2, (50, 2))
    mean, std = ours.predict(new, return_std=True)
    expected_mean, expected_std = exact_again.predict(new, return_std=True)
    np.testing.assert_allclose(mean, expected_mean, atol=2e-3)
    np.testing.assert_allclose(std, expected_std, rtol=1e-2)
    _, cov = ours.predict(new, return_cov=True)
    np.testing.assert_allclose(np.sqrt(np.diag(cov)), std, rtol=1e-9)
    np.testing.assert_allclose(
        cov, exact_again.predict(new, return_cov=True)[1], atol=1e-3
    )
    found, gradient = ours.log_marginal_likelihood(at + 0.1, eval_gradient=True)
    expected, expected_gradient = exact.log_marginal_likelihood(at + 0.1, True)
    assert found == pytest.approx(expected, abs=0.05)
    np.testing.assert_allclose(gradient, expected_gradient, atol=0.5)


@pytest.mark.filterwarnings("ignore:The variance that the landmarks")
def test_the_bounds_never_cross():
    # 40 random problems: dimensions, kernels, noise, weights, landmarks.
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(30, 120)), int(rng.integers(1, 4))
        X, t = rng.standard_normal((n, d)), int(rng.integers(1, 3))
        Y = rng.standard_normal((n, t)) + np.sin(X[:, :1]) * rng.uniform(0, 5)
        white = 10.0 ** rng.uniform(-3, 0.5)
        signal = [RBF(1.0), Matern(0.7, nu=0.5), Matern(2.0), DotProduct(0.5)]
        kernel = ConstantKernel(10.0 ** rng.uniform(-1, 1)) * signal[seed % 4]
        kernel = kernel + WhiteKernel(white)
        alpha = rng.uniform(0.01, 1.0, n) if seed % 3 == 0 else 0.02
        model = GaussianProcessRegressor(
            kernel,
            alpha=alpha,
            optimizer=None,
            n_landmarks=int(rng.integers(1, n)),
            random_state=seed,
            normalize_y=seed % 2 == 0,
        )
        model.fit(X, Y if t > 1 else Y[:, 0])
        exact = ExactProcess(
            kernel, alpha=alpha, optimizer=None, normalize_y=seed % 2 == 0
        ).fit(X, Y if t > 1 else Y[:, 0])
        value = exact.log_marginal_likelihood_value_
        lower, upper = model.evidence_bounds_
        rounding = 1e-7 * (1 + abs(value))
        assert lower <= value + rounding, seed
        assert value <= upper + rounding, seed
        assert model.kl_bound_ == upper - lower
        if seed % 4 == 1:  # the others are too near to singular for an oracle
            divergence = _divergence(model, exact, X)
            gap = value - model.log_marginal_likelihood_value_
            assert divergence == pytest.approx(gap, rel=1e-4, abs=1e-4)


def _divergence(model, exact, X):
    """KL(sparse ‖ exact) of the function's values at the training rows.

    Landmarks are some of these, so it is that of the processes.
    """
    kernel = model.landmarks_.kernel
    K = kernel.gram(X)
    noise = np.diag(exact.kernel_(X)) - np.diag(K) + exact.alpha
    Y = np.reshape(exact.y_train_, (len(X), -1))
    C, S = kernel(X, model.X_train_), kernel.gram(model.X_train_)
    Q = C @ np.linalg.solve(S, C.T)

    def posterior(prior, explained):
        solve = np.linalg.solve(explained + np.diag(noise), np.c_[explained, Y])
        shrunk = explained @ solve[:, : len(K)]
        return explained @ solve[:, len(K) :], prior - shrunk

    m0, C0 = posterior(K, Q)
    m1, C1 = posterior(K, K)
    gap, inverse = m1 - m0, np.linalg.inv(C1)
    trace = np.trace(inverse @ C0) - len(K)
    logs = np.linalg.slogdet(C1)[1] - np.linalg.slogdet(C0)[1]
    t = Y.shape[1]
    return (t * (trace + logs) + np.sum(gap * (inverse @ gap))) / 2


def test_draws_have_the_mean_and_covariance_of_the_posterior(fitted):
    X, _, ours, _ = fitted
    mean, cov = ours.predict(X[:30], return_cov=True)
    draws = ours.sample_y(X[:30], 20_000, random_state=1)
    assert draws.shape == (30, 20_000)
    std = np.sqrt(np.diag(cov))
    assert np.abs(draws.mean(axis=1) - mean).max() < 0.04 * std.max()
    np.testing.assert_allclose(np.cov(draws), cov, atol=0.05 * cov.max())
    np.testing.assert_array_equal(draws, ours.sample_y(X[:30], 20_000, random_state=1))
    many = np.random.default_rng(0).uniform(-2, 2, (5000, 2))
    assert ours.sample_y(many).shape == (5000, 1)


def test_no_more_rows_than_landmarks_is_scikit_learn(rng):
    X, y = problem(rng, 50)
    ours = GaussianProcessRegressor(NOISY, random_state=0).fit(X, y)
    exact = ExactProcess(NOISY, random_state=0).fit(X, y)
    # (Rounding depends on the number of threads.)
    np.testing.assert_allclose(ours.predict(X), exact.predict(X), atol=1e-10)
    np.testing.assert_allclose(ours.L_, exact.L_, atol=1e-10)
    value = exact.log_marginal_likelihood_value_
    assert ours.evidence_bounds_ == pytest.approx((value, value), rel=1e-10)
    assert ours.kl_bound_ == 0
    assert ours.landmarks_.sampler == "exact"


@pytest.mark.parametrize("n_landmarks", [1000, None])
def test_as_many_landmarks_as_a_divergence_takes(n_landmarks, rng):
    X, y = problem(rng, 1500)
    kernel = RBF(1.0) + WhiteKernel(0.01)
    options = {"optimizer": None, "random_state": 0}
    found = [
        GaussianProcessRegressor(
            kernel, max_kl=max_kl, n_landmarks=n_landmarks, **options
        ).fit(X, y)
        for max_kl in (10.0, 0.1)
    ]
    assert all(m.kl_bound_ <= m.max_kl for m in found)
    assert len(found[0].X_train_) < len(found[1].X_train_) < 200
    fewer = round(0.9 * len(found[1].X_train_))
    fixed = GaussianProcessRegressor(kernel, n_landmarks=fewer, **options).fit(X, y)
    assert fixed.kl_bound_ > 0.1
    with pytest.warns(UserWarning, match=r"max_kl=0\.1 was not reached"):
        found[1].set_params(n_landmarks=30).fit(X, y)
    with pytest.raises(ValueError, match="max_kl determines the number"):
        found[1].set_params(max_trace_error=0.1).fit(X, y)


@pytest.mark.parametrize("n_landmarks", [60, 400])
def test_intervals_hold(n_landmarks, rng):
    X, y = problem(rng, 400)
    # A deviation that is twice too small: intervals do not depend on it.
    model = GaussianProcessRegressor(
        RBF(1.0) + WhiteKernel(0.0025),
        n_landmarks=n_landmarks,
        optimizer=None,
        random_state=0,
        normalize_y=True,
    ).fit(X, y)
    new, targets = problem(rng, 2000)
    lower, upper = model.predict(new, interval=0.9)
    assert 0.84 < np.mean((lower <= targets) & (targets <= upper)) < 0.95
    with pytest.raises(ValueError, match="interval= cannot be combined"):
        model.predict(new, interval=0.9, return_std=True)


@pytest.mark.parametrize("n_landmarks", [60, 400])
def test_displays_take_a_process(n_landmarks, rng):
    pytest.importorskip("matplotlib")
    from nystrom.displays import CoverageDisplay, ErrorPathDisplay, SpectrumDisplay

    X, y = problem(rng, 400)
    model = GaussianProcessRegressor(
        RBF(1.0), alpha=0.01, n_landmarks=n_landmarks, optimizer=None, random_state=0
    ).fit(X, y)
    _, std = model.predict(X, return_std=True)
    _, with_noise = model.predict(X, return_std=True, noise=True)
    np.testing.assert_allclose(with_noise**2, std**2 + 0.01, rtol=1e-9)
    CoverageDisplay.from_estimator(model, *problem(rng, 300))
    if n_landmarks == 60:
        SpectrumDisplay.from_estimator(model, X)
        ErrorPathDisplay.from_estimator(model)


# --- noise, targets and weights ------------------------------------------------------


def test_noise_of_each_row_is_that_of_the_exact_process(rng):
    X, y = problem(rng, 200)
    alpha = rng.uniform(0.01, 0.5, 200)
    kernel = 2.0 * RBF(1.0) + WhiteKernel(0.02)
    options = {"alpha": alpha, "optimizer": None}
    ours = GaussianProcessRegressor(
        kernel, n_landmarks=150, random_state=0, **options
    ).fit(X, y)
    exact = ExactProcess(kernel, **options).fit(X, y)
    assert ours.log_marginal_likelihood_value_ == pytest.approx(
        exact.log_marginal_likelihood_value_, abs=1e-5
    )
    for found, expected in zip(
        ours.predict(X, return_std=True), exact.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_weight_divides_the_noise(rng):
    X, y = problem(rng, 100)
    weights = rng.integers(0, 4, 100).astype(float)
    kernel = 2.0 * RBF(1.0) + WhiteKernel(0.1)
    ours = GaussianProcessRegressor(
        kernel, optimizer=None, n_landmarks=90, random_state=0
    )
    weighted = ours.fit(X, y, sample_weight=weights).predict(X)
    kept = weights > 0
    exact = ExactProcess(2.0 * RBF(1.0), alpha=0.1 / weights[kept], optimizer=None)
    expected = exact.fit(X[kept], y[kept])
    np.testing.assert_allclose(weighted, expected.predict(X), atol=1e-5)
    value = pytest.approx(expected.log_marginal_likelihood_value_, abs=1e-3)
    assert ours.log_marginal_likelihood_value_ == value
    assert ours.log_marginal_likelihood(ours.kernel_.theta) == value


@pytest.mark.parametrize("normalize_y", [False, True])
def test_equal_weights_are_less_noise_for_all(normalize_y, rng):
    X, y = problem(rng, 200)
    options = {"n_landmarks": 20, "optimizer": None, "random_state": 0}
    plain, weighted = (
        GaussianProcessRegressor(RBF(0.7), alpha=alpha, **options)
        .set_params(normalize_y=normalize_y)
        .fit(X, y, sample_weight=weights)
        for alpha, weights in ((0.1, None), (0.4, np.full(200, 4.0)))
    )
    np.testing.assert_allclose(weighted.predict(X), plain.predict(X), rtol=1e-6)
    assert weighted.evidence_bounds_ == pytest.approx(plain.evidence_bounds_, rel=1e-8)


def test_several_targets_share_a_kernel(rng):
    X, y = problem(rng, 300)
    Y = np.column_stack([y, 3 * y + 1])
    options = {"n_landmarks": 60, "normalize_y": True, "random_state": 0}
    one = GaussianProcessRegressor(NOISY, **options).fit(X, y)
    two = GaussianProcessRegressor(NOISY, **options).fit(X, Y)
    np.testing.assert_allclose(two.kernel_.theta, one.kernel_.theta, atol=1e-3)
    mean, std = two.predict(X[:9], return_std=True)
    assert mean.shape == std.shape == (9, 2)
    np.testing.assert_allclose(mean[:, 1], 3 * mean[:, 0] + 1, atol=1e-8)
    np.testing.assert_allclose(std[:, 1], 3 * std[:, 0])
    assert two.sample_y(X[:9], 4).shape == (9, 2, 4)
    assert two.predict(X[:9], return_cov=True)[1].shape == (9, 9, 2)
    assert two.alpha_.shape == (60, 2)


# --- learning ------------------------------------------------------------------------


def test_a_callable_optimiser_is_used_on_the_bound(rng):
    X, y = problem(rng, 500)
    calls = []

    def optimizer(objective, theta, bounds):
        calls.append(theta)
        if len(calls) == 1:  # as for scikit-learn, whose value is not one per row
            exact = ExactProcess(NOISY, optimizer=None).fit(X, y)
            value = -exact.log_marginal_likelihood_value_
            assert objective(theta)[0] == pytest.approx(value, rel=0.01)
        found = minimize(objective, theta, jac=True, bounds=bounds, method="L-BFGS-B")
        assert objective(found.x, eval_gradient=False) == pytest.approx(found.fun)
        return found.x, found.fun

    options = {"n_landmarks": 50, "random_state": 0}
    model = GaussianProcessRegressor(
        NOISY, optimizer=optimizer, n_restarts_optimizer=1, **options
    ).fit(X, y)
    assert len(calls) == 2
    assert np.sqrt(model.kernel_.k2.noise_level) == pytest.approx(0.1, rel=0.2)


def test_steps_on_few_rows_are_those_of_scikit_learn():
    """Of several optima, the first steps decide which one is found."""
    rng = np.random.RandomState(0)  # of scikit-learn's guide
    X = np.linspace(0, 30, 1000)[rng.choice(400, 40, replace=False)][:, None]
    y = np.sin(X[:, 0]) + 0.5 * rng.standard_normal(40)
    kernel = 1.0 * ExpSineSquared(1.0, 5.0, periodicity_bounds=(1e-2, 1e1))
    kernel = kernel + WhiteKernel(1e-1)
    exact = ExactProcess(kernel).fit(X, y)
    model = GaussianProcessRegressor(kernel, n_landmarks=30, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.kernel_.theta, exact.kernel_.theta, atol=0.01)
    assert exact.kernel_.k1.k2.periodicity == pytest.approx(2 * np.pi, rel=0.1)


@pytest.mark.filterwarnings("ignore:The optimal value found for")
@pytest.mark.parametrize("place", ["inside", "outside", "mapped"])
def test_too_few_landmarks_are_not_taken_for_noise(place, rng):
    """From a start whose noise is far below what the landmarks leave."""
    X = rng.uniform(-3, 3, (600, 2))
    y = np.sin(4 * X[:, 1]) + 3 * np.exp(-(X[:, 0] ** 2))
    y += 0.05 * rng.standard_normal(600)
    y -= y.mean()
    kernel = ConstantKernel(2.0) * RBF(0.6) + WhiteKernel(0.0025)
    if place == "inside":
        kernel = ConstantKernel(2.0) * (RBF(0.6) + WhiteKernel(0.00125))
    if place == "mapped":
        kernel = MappedKernel(kernel, np.eye(2))
    model = GaussianProcessRegressor(kernel, n_landmarks=40, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.5
    assert noise_and_gradient(model.kernel_)[0] < 0.5 * y.var()


def test_hyperparameters_that_are_fixed_stay(rng):
    X, y = problem(rng, 300)
    kernel = ConstantKernel(1.5, "fixed") * RBF(1.0) + WhiteKernel(0.1, "fixed")
    model = GaussianProcessRegressor(kernel, n_landmarks=40, random_state=0).fit(X, y)
    assert model.kernel_.k1.k1.constant_value == 1.5
    assert model.kernel_.k2.noise_level == 0.1
    assert model.kernel_.k1.k2.length_scale != 1.0
    assert kernel.k1.k2.length_scale == 1.0
    same = GaussianProcessRegressor(
        kernel, optimizer=None, n_landmarks=40, random_state=0
    ).fit(X, y)
    assert same.kernel_ == kernel
    assert model.log_marginal_likelihood_value_ > same.log_marginal_likelihood_value_


MOVABLE = [
    NOISY,
    WhiteKernel() + RBF(1.0) * ConstantKernel(),
    ConstantKernel() * Matern([1.0, 1.0], "fixed", nu=2.5) + WhiteKernel(),
    ConstantKernel(1.0, "fixed") * RBF([1.0, 1.0], (0.5, 2.0)) + WhiteKernel(),
    ConstantKernel() * RationalQuadratic() + WhiteKernel(),  # by the general road
    ConstantKernel() * RBF() + DotProduct() + WhiteKernel(),
]


@pytest.mark.filterwarnings("ignore:The optimal value found for")
@pytest.mark.parametrize("kernel", MOVABLE, ids=str)
def test_moved_landmarks_raise_the_bound(kernel, rng):
    X, y = problem(rng, 600)
    options = {"n_landmarks": 15, "random_state": 0}
    fixed = GaussianProcessRegressor(kernel, **options).fit(X, y)
    moved = GaussianProcessRegressor(kernel, optimize_landmarks=True, **options)
    moved.fit(X, y)
    assert moved.log_marginal_likelihood_value_ > fixed.log_marginal_likelihood_value_
    assert moved.landmarks_.indices is None
    assert "optimized" in moved.landmarks_.sampler
    low, high = kernel.bounds.T
    assert np.all(moved.kernel_.theta >= low - 1e-12)
    assert np.all(moved.kernel_.theta <= high + 1e-12)
    assert type(moved.kernel_) is type(kernel)
    for name, value in kernel.get_params().items():
        if kernel.get_params().get(f"{name}_bounds") == "fixed":
            assert np.all(moved.kernel_.get_params()[name] == value)


@pytest.mark.parametrize("metric", [None, "matrix"])
def test_scale_and_noise_of_moved_landmarks_maximise_the_bound(metric, rng):
    """At moved landmarks, no other constant or noise has a larger bound."""
    X, y = problem(rng, 600)
    model = GaussianProcessRegressor(
        NOISY, n_landmarks=20, random_state=0, optimize_landmarks=True, metric=metric
    ).fit(X, y)
    theta = model.kernel_.theta
    best = model.log_marginal_likelihood_value_
    assert model.evidence_bounds_[0] == pytest.approx(best)
    assert model.log_marginal_likelihood(theta) == pytest.approx(best, rel=1e-6)
    for i in (0, -1):
        for step in (-0.05, 0.05):
            changed = theta.copy()
            changed[i] += step
            assert model.log_marginal_likelihood(changed) < best
    assert (type(model.kernel_) is MappedKernel) == (metric == "matrix")


def test_a_smooth_process_keeps_its_noise_where_landmarks_move(rng):
    """The Gram matrix of the features has eigenvalues that are rounding."""
    X = rng.uniform(-3, 3, (2000, 2))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(2000)
    options = {"n_landmarks": 50, "random_state": 0}
    plain = GaussianProcessRegressor(NOISY, **options).fit(X, y)
    moved = GaussianProcessRegressor(
        NOISY, optimize_landmarks=True, metric="matrix", **options
    ).fit(X, y)
    assert noise_and_gradient(moved.kernel_)[0] == pytest.approx(0.01, rel=0.1)
    low, expected = moved.evidence_bounds_[0], plain.evidence_bounds_[0]
    assert low == pytest.approx(expected, abs=0.02 * len(X))


@pytest.mark.parametrize("move", [False, True])
@pytest.mark.filterwarnings("ignore:The optimal value found for")
def test_a_learnt_metric_finds_the_direction_that_matters(move, rng):
    units = np.array([0.5, 1.0, 2.0, 1.0, 4.0, 3.0])  # so that no map is symmetric
    X = units * rng.standard_normal((1200, 6))
    direction = np.ones(6) / np.sqrt(6)

    def target(X):
        signal = np.sin(3 * (X / units) @ direction)
        return signal + 0.1 * rng.standard_normal(len(X))

    y, new = target(X), units * rng.standard_normal((500, 6))
    kernel = ConstantKernel() * RBF(1.0) + WhiteKernel(0.1)
    options = {"n_landmarks": 60, "random_state": 0}
    plain = GaussianProcessRegressor(kernel, **options).fit(X, y)
    mapped = GaussianProcessRegressor(
        kernel, metric="matrix", optimize_landmarks=move, **options
    ).fit(X, y)
    truth = np.sin(3 * (new / units) @ direction)
    assert mapped.score(new, truth) > 0.9
    assert mapped.score(new, truth) > plain.score(new, truth) + 0.1
    M = mapped.kernel_.transform / mapped.kernel_.kernel.k1.k2.length_scale
    M *= units[:, None]
    assert np.linalg.norm(direction @ M) > 0.95 * np.linalg.norm(M, 2)
    with pytest.raises(ValueError, match="metric="):
        plain.set_params(metric="diagonal").fit(X, y)


def test_a_start_outside_of_the_bounds_is_moved_inside(rng):
    X, y = problem(rng, 300)
    kernel = RBF(50.0, (0.1, 5.0)) + WhiteKernel(1e-9, (1e-4, 1.0))
    model = GaussianProcessRegressor(kernel, n_landmarks=40, random_state=0).fit(X, y)
    low, high = model.kernel_.bounds.T
    assert np.all(model.kernel_.theta >= low)
    assert np.all(model.kernel_.theta <= high)
    assert model.score(X, y) > 0.9


def test_optimum_at_a_bound_is_said(rng):
    X, y = problem(rng, 300)
    kernel = RBF(1.0, (5.0, 10.0)) + WhiteKernel(0.1)
    with pytest.warns(ConvergenceWarning, match="length_scale is close to"):
        GaussianProcessRegressor(kernel, n_landmarks=40, random_state=0).fit(X, y)


# --- storage and models --------------------------------------------------------------


def test_files_and_blocks_give_the_same_process(fitted, tmp_path):
    X, y, ours, _ = fitted
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    read = GaussianProcessRegressor(
        NOISY, n_landmarks=80, random_state=0, normalize_y=True, n_jobs=2
    ).fit(str(tmp_path / "X.npy"), str(tmp_path / "y.npy"))
    np.testing.assert_array_equal(read.kernel_.theta, ours.kernel_.theta)
    np.testing.assert_array_equal(read.predict(X), ours.predict(X))
    out = tmp_path / "p.npy"
    ours.predict(X, out=str(out))
    np.testing.assert_array_equal(np.load(out), ours.predict(X))


def test_a_saved_process_predicts_and_has_no_rows(fitted, tmp_path):
    X, _, ours, _ = fitted
    save(ours, tmp_path / "model.nystrom")
    loaded = load(tmp_path / "model.nystrom")
    for found, expected in zip(
        loaded.predict(X, return_std=True),
        ours.predict(X, return_std=True),
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)
    assert loaded.evidence_bounds_ == ours.evidence_bounds_
    assert loaded.log_marginal_likelihood() == ours.log_marginal_likelihood()
    with pytest.raises(ValueError, match="does not contain the rows"):
        loaded.log_marginal_likelihood(ours.kernel_.theta)


# --- bad input -----------------------------------------------------------------------


class WithoutGradient(RBF):
    """A kernel that does not know its gradient."""

    def __call__(self, X, Y=None):
        return super().__call__(X, Y)


def test_a_kernel_without_gradients_is_learnt_numerically(rng):
    X, y = problem(rng, 300)
    model = GaussianProcessRegressor(
        WithoutGradient(0.3) + WhiteKernel(), n_landmarks=40, random_state=0
    ).fit(X, y)
    expected = GaussianProcessRegressor(
        RBF(0.3) + WhiteKernel(), n_landmarks=40, random_state=0
    ).fit(X, y)
    np.testing.assert_allclose(model.kernel_.theta, expected.kernel_.theta, atol=0.05)
    few = model.set_params(n_landmarks=300).fit(X, y)
    exact = ExactProcess(RBF(0.3) + WhiteKernel()).fit(X, y)
    np.testing.assert_allclose(few.kernel_.theta, exact.kernel_.theta, atol=0.01)
    with pytest.raises(ValueError, match="optimize_landmarks=True moves landmarks"):
        model.set_params(optimize_landmarks=True).fit(X, y)


def test_no_noise_is_refused_or_said(rng):
    X, y = problem(rng, 200)
    X[100:] = X[:100]
    model = GaussianProcessRegressor(RBF(), alpha=0.0, n_landmarks=40)
    with pytest.raises(ValueError, match="without a WhiteKernel"):
        model.fit(X, y)
    with pytest.warns(UserWarning, match="exceeds the noise"):
        model.set_params(alpha=1e-10, optimizer=None, n_landmarks=5).fit(X, y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"alpha": -1.0}, "'alpha' parameter"),
        ({"alpha": np.ones(7)}, "alpha must be a scalar or an array"),
        ({"optimizer": "adam"}, "'optimizer' parameter"),
        ({"kernel": "rbf"}, "'kernel' parameter"),
        ({"kernel": WhiteKernel()}, "white noise alone"),
        ({"n_targets": 2}, "number of targets"),
        ({"n_restarts_optimizer": 1, "kernel": RBF(1.0, (1e-5, np.inf))}, "finite"),
    ],
)
def test_bad_parameters_are_refused(params, message, rng):
    X, y = problem(rng, 60)
    options = {"alpha": 0.1, "n_landmarks": 20} | params
    with pytest.raises(ValueError, match=message):
        GaussianProcessRegressor(**options).fit(X, y)


@pytest.mark.parametrize("normalize_y", [False, True])
def test_a_constant_target_is_predicted(normalize_y, rng):
    X = rng.uniform(-2, 2, (200, 2))
    model = GaussianProcessRegressor(
        ConstantKernel() * RBF(1.0) + WhiteKernel(1e-3, "fixed"),
        n_landmarks=40,
        normalize_y=normalize_y,
        optimizer=None,
        random_state=0,
    ).fit(X, np.full(200, 3.0))
    np.testing.assert_allclose(model.predict(X), 3.0, atol=0.05)


@pytest.mark.parametrize("n_targets", [1, 2])
def test_targets_of_small_units_are_scaled(n_targets, rng):
    X, y = problem(rng, 200)
    Y = np.column_stack([y, 2 * y])[:, :n_targets]
    model = GaussianProcessRegressor(NOISY, n_landmarks=60, random_state=0)
    model.set_params(normalize_y=True)
    expected = model.fit(X, Y).predict(X, return_std=True)
    found = model.fit(X, Y * 1e-30).predict(X, return_std=True)
    for small, usual in zip(found, expected, strict=True):
        np.testing.assert_allclose(small * 1e30, usual, rtol=1e-3, atol=1e-4)


def test_one_row_is_enough():
    model = GaussianProcessRegressor(RBF()).fit([[1.0]], [2.0])
    np.testing.assert_allclose(model.predict([[1.0]]), [2.0])


@pytest.mark.filterwarnings("ignore:The optimal value found for")
@pytest.mark.parametrize("options", [{}, {"optimize_landmarks": True}])
def test_a_constant_target_is_learnt_from(options, rng):
    X = rng.uniform(-2, 2, (200, 2))
    model = GaussianProcessRegressor(NOISY, n_landmarks=30, random_state=0, **options)
    for normalize_y in (False, True):
        model.set_params(normalize_y=normalize_y).fit(X, np.full(200, 3.0))
        np.testing.assert_allclose(model.predict(X), 3.0, atol=0.05)
        assert np.isfinite(model.evidence_bounds_).all()


@pytest.mark.filterwarnings("ignore:The optimal value found for")
@pytest.mark.parametrize("options", [{}, {"optimize_landmarks": True}])
def test_one_row_with_a_weight(options):
    """Not in exact mode, for its weight."""
    model = GaussianProcessRegressor(NOISY, **options)
    model.fit([[1.0, 2.0]], [2.0], sample_weight=[2.0])
    assert len(model.X_train_) == 1
    assert np.isfinite(model.predict([[1.0, 2.0]])).all()


@pytest.mark.parametrize("options", [{}, {"optimize_landmarks": True}])
def test_duplicated_rows_are_one_row_with_less_noise(options, rng):
    """Of zero noise none is possible, in scikit-learn's own class either."""
    X, y = problem(rng, 100)
    twice, targets = np.tile(X, (2, 1)), np.tile(y, 2)
    for n_landmarks in (40, 200):
        model = GaussianProcessRegressor(
            RBF(), alpha=0.0, n_landmarks=n_landmarks, random_state=0, **options
        )
        with pytest.raises((ValueError, np.linalg.LinAlgError), match="alpha"):
            model.fit(twice, targets)
    model = GaussianProcessRegressor(NOISY, n_landmarks=40, random_state=0, **options)
    assert model.fit(twice, targets).score(X, y) > 0.9


def test_gradients_that_an_optimiser_cannot_have():
    """Where it asks for them of a kernel that has none, they are differences."""
    X, y = problem(np.random.default_rng(0), 200)

    def optimizer(objective, theta, bounds):
        value, gradient = objective(theta)
        step = np.zeros_like(theta)
        step[0] = 1e-4
        difference = (objective(theta + step)[0] - objective(theta - step)[0]) / 2e-4
        assert gradient[0] == pytest.approx(difference, rel=1e-3)
        return theta, value

    kernel = WithoutGradient(1.0) + WhiteKernel(0.1)
    model = GaussianProcessRegressor(
        kernel, optimizer=optimizer, n_landmarks=40, random_state=0
    ).fit(X, y)
    np.testing.assert_allclose(model.kernel_.theta, kernel.theta)


@pytest.mark.parametrize("optimizer", [None, "fmin_l_bfgs_b"])
@pytest.mark.parametrize("n_landmarks", [20, 400])
@pytest.mark.parametrize("n_features", [1, 2])
def test_a_length_scale_for_each_feature(n_features, n_landmarks, optimizer, rng):
    X = rng.standard_normal((80, n_features))
    model = GaussianProcessRegressor(RBF([1.0, 1.0, 1.0]) + WhiteKernel())
    model.set_params(n_landmarks=n_landmarks, optimizer=optimizer)
    with pytest.raises(ValueError, match="same number of dimensions as data"):
        model.fit(X, X[:, 0])


@pytest.mark.parametrize("n_landmarks", [20, 400])
@pytest.mark.parametrize(
    ("kernel", "alpha", "message"),
    [
        (CompoundKernel([RBF(), Matern()]), 0.1, "A CompoundKernel has several"),
        (RBF(-1.0) + WhiteKernel(), 0.1, "negative or not a number"),
        (RBF(), np.full(80, -1.0), "alpha contains a noise variance"),
        (RBF(), np.full(80, np.nan), "alpha contains a noise variance"),
        (RBF(), np.full((80, 1), 0.1), r"alpha must be a scalar.*\(80, 1\)"),
    ],
)
def test_what_has_no_evidence_is_refused(kernel, alpha, message, n_landmarks, rng):
    X, model = rng.standard_normal((80, 2)), GaussianProcessRegressor(kernel)
    model.set_params(alpha=alpha, n_landmarks=n_landmarks)
    with pytest.raises(ValueError, match=message):
        model.fit(X, X[:, 0])


def test_the_bounds_hold_where_rounding_is_all_that_is_missing(rng):
    # Kernels of nearly rank 1: landmarks explain all of them but for rounding.
    for _ in range(60):
        X = rng.standard_normal((int(rng.integers(200, 450)), int(rng.integers(1, 4))))
        y = X[:, 0] + 3 + rng.standard_normal(len(X))
        length_scale, noise = 10 ** rng.uniform(3.7, 4.5), 10 ** rng.uniform(-2, -0.5)
        kernel = Matern(length_scale, "fixed", nu=2.5) + WhiteKernel(noise, "fixed")
        exact = ExactProcess(kernel).fit(X, y).log_marginal_likelihood_value_
        model = GaussianProcessRegressor(kernel, n_landmarks=40).fit(X, y)
        lower, upper = model.evidence_bounds_
        rounding = 1e-10 * abs(exact)  # of the dense value
        assert lower - rounding <= exact <= upper + rounding


@pytest.mark.filterwarnings("ignore:The optimal value found")
def test_a_metric_is_kept_only_where_it_is_likelier(rng):
    # Few rows and a product of two features, which few rows do not tell from noise.
    for _ in range(6):
        X = rng.standard_normal((150, 10))
        y = np.sin(2 * X[:, 3]) * X[:, 5] + 0.3 * rng.standard_normal(150)
        kernel = ConstantKernel() * RBF(np.ones(10)) + WhiteKernel()
        model = GaussianProcessRegressor(kernel, n_landmarks=40, random_state=0)
        plain = model.fit(X, y).log_marginal_likelihood_value_
        mapped = model.set_params(metric="matrix").fit(X, y)
        assert mapped.log_marginal_likelihood_value_ > plain - 10


@pytest.mark.filterwarnings("ignore:The variance that the landmarks")
def test_max_trace_error_is_that_of_the_kernel_that_is_found(rng):
    for seed in range(4):
        X = rng.uniform(-2, 2, (400, 2))
        y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(400)
        kernel = ConstantKernel() * RBF([1.0, 1.0]) + WhiteKernel()
        model = GaussianProcessRegressor(kernel, n_landmarks=60, random_state=seed)
        model.set_params(max_trace_error=1e-2).fit(X, y)
        assert model.approximation_error_.value <= 1e-2


def few_relevant(rng, n):
    """Three of 25 features matter."""
    X = rng.standard_normal((n, 25))
    f = np.sin(2 * X[:, 0]) + X[:, 1] * np.cos(X[:, 2])
    return X, f + 0.1 * rng.standard_normal(n)


@pytest.mark.filterwarnings("ignore:The optimal value found for")
@pytest.mark.parametrize("metric", [None, "matrix"])
def test_moved_landmarks_of_few_rows_are_no_worse_than_rows(metric):
    X, y = few_relevant(np.random.default_rng(0), 1100)
    kernel = ConstantKernel() * RBF(np.full(25, 5.0)) + WhiteKernel()
    options = {"n_landmarks": 40, "random_state": 0}
    plain, moved = (
        GaussianProcessRegressor(kernel, **options, **others).fit(X[:100], y[:100])
        for others in ({}, {"optimize_landmarks": True, "metric": metric})
    )
    assert moved.evidence_bounds_[0] > plain.evidence_bounds_[0]
    errors = [np.mean((y - m.predict(X))[100:] ** 2) for m in (plain, moved)]
    assert errors[1] < 1.1 * errors[0]
    if metric is not None:  # 625 numbers from 100 rows
        np.testing.assert_array_equal(moved.kernel_.transform, np.eye(25))


@pytest.mark.filterwarnings("ignore:The optimal value found for")
def test_all_rows_raise_the_bound_of_landmarks_that_were_moved():
    """Steps that end by the rows held out are too few where these are few."""
    X, y = few_relevant(np.random.default_rng(0), 450)
    options = {"n_landmarks": 60, "random_state": 0}
    lengths = np.array([1.7, 8.0, 2.0] + [5000.0] * 22)
    good = ConstantKernel(24.0) * RBF(lengths) + WhiteKernel(0.01)
    plain = GaussianProcessRegressor(good, optimizer=None, **options).fit(X, y)
    kernel = ConstantKernel() * RBF(np.full(25, 5.0)) + WhiteKernel()
    moved = GaussianProcessRegressor(kernel, optimize_landmarks=True, **options)
    moved.fit(X, y)
    assert moved.evidence_bounds_[0] > plain.evidence_bounds_[0]


@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
@pytest.mark.parametrize("n_landmarks", [1000, 30])
def test_a_likelihood_that_is_no_number_is_refused(n_landmarks, rng):
    X, y = problem(rng, 100)
    model = GaussianProcessRegressor(NOISY, n_landmarks=n_landmarks, random_state=0)
    for rows, targets in ((X * 1e200, y), (X, y * 1e200)):
        with pytest.raises(ValueError, match=r"is not a number: squares of X or y"):
            model.fit(rows, targets)


@pytest.mark.filterwarnings("ignore:The optimal value found for")
@pytest.mark.parametrize("scale", [1e9, 1e20, 1e150])
def test_rows_far_apart_are_noise(scale, rng):
    """Rows that are landmarks too leave no rounding in the gradient."""
    X, y = problem(rng, 100)
    model = GaussianProcessRegressor(NOISY, n_landmarks=30, random_state=0)
    model.fit(X * scale, y)
    deviation = np.sqrt(np.mean(y**2))
    expected = -100 * (np.log(deviation) + np.log(2 * np.pi) / 2 + 0.5)
    assert model.log_marginal_likelihood_value_ == pytest.approx(expected, abs=0.1)


def test_the_covariance_of_dask_rows_is_joint(fitted):
    da = pytest.importorskip("dask.array")
    X, _, ours, _ = fitted
    rows = da.from_array(X[:10], chunks=(5, 2))
    for covariance in (
        ours.predict(rows, return_cov=True)[1],
        ours.predict(rows, False, True)[1],
    ):
        expected = ours.predict(X[:10], return_cov=True)[1]
        np.testing.assert_allclose(covariance, expected)
