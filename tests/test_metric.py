"""Metrics and landmarks learnt from targets: gamma="ard" and "matrix",
optimize_landmarks, and the collapsed bound behind them.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import norm

from nystrom import (
    KernelLogisticRegression,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
    KernelRidgeCV,
    Nystroem,
    kernels,
    load,
    save,
)
from nystrom.engines import Threads
from nystrom.models.collapsed_bound import (
    BoundProblem,
    BoundStart,
    optimize_landmarks,
)
from nystrom.models.length_scales import TrainingSubset
from nystrom.models.metric import TRIED_ALPHAS, Metric, MetricSearch
from nystrom.sources import DenseRows

KERNELS = [
    kernels.RBF(0.3),
    kernels.RBF((0.1, 0.4, 0.2, 0.3)),
    kernels.Matern(1.5, 1.5),
    kernels.Matern(2.0, 2.5),
    kernels.RationalQuadratic(1.2),
]


def mixed_directions(rng, n, n_features=6, noise=0.05):
    """Targets of two of many directions, none of them a feature's."""
    X = rng.standard_normal((n, n_features))
    directions = np.linalg.qr(rng.standard_normal((n_features, 2)))[0]
    u = X @ directions
    y = np.sin(2 * u[:, 0]) + u[:, 1] ** 2 + noise * rng.standard_normal(n)
    return X, y, directions


def rmse(model, X, y):
    return np.sqrt(np.mean((model.predict(X) - y) ** 2))


def bound_problem(kernel, rng, structure, alpha):
    X = rng.standard_normal((1500, 4))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]])
    weights = rng.uniform(0.5, 2.0, len(X))
    metric = Metric.of(kernel, 4)
    source = DenseRows(metric.map(X), weights).replace(targets=Y)
    problem = BoundProblem(metric, source, Threads(1), structure, 20, alpha)
    theta = problem.pack(metric.map(rng.standard_normal((20, 4))), 0.2)
    theta[: problem.n_map_parameters] += 0.1 * rng.standard_normal(
        problem.n_map_parameters
    )
    return problem, theta, X, Y, weights


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("structure", ["fixed", "width", "diagonal", "matrix"])
def test_the_bound_is_the_dense_one_and_its_gradient_that_of_differences(
    rng, kernel, structure
):
    alpha = None if structure != "width" else 0.1
    problem, theta, X, Y, w = bound_problem(kernel, rng, structure, alpha)
    value, gradient, _ = problem.value_and_gradient(theta)
    W, landmarks, alpha = problem.unpack(theta)
    learned = problem.metric.with_transform(problem.metric.transform @ W).as_kernel()
    points = problem.metric.unmap(landmarks)
    C, K = learned(X, points), learned.gram(points) + 1e-8 * np.eye(20)
    Q = C @ np.linalg.solve(K, C.T)
    A = Q + alpha * np.diag(1 / w)
    fit = np.einsum("nt,nt->t", Y, np.linalg.solve(A, Y)) / len(X)
    log_determinant = np.linalg.slogdet(A)[1] + np.log(w).sum()
    dense = log_determinant / (2 * len(X)) + np.log(fit).mean() / 2
    dense += w @ (1 - np.diag(Q)) / (2 * alpha * len(X))
    assert value == pytest.approx(dense, abs=1e-9)
    chosen = rng.choice(len(theta), 8, replace=False)
    for j in {0, *chosen.tolist(), problem.n_map_parameters}:
        step = 1e-5 * (np.arange(len(theta)) == j)
        ahead, behind = (
            problem.value_and_gradient(theta + sign * step)[0] for sign in (1, -1)
        )
        assert gradient[j] == pytest.approx((ahead - behind) / 2e-5, abs=1e-6)


def test_the_bound_is_accurate_where_sums_of_kernel_values_are_not(rng):
    """Of long length scales and little noise rows are whitened one by one."""
    X = rng.standard_normal((1500, 4))
    y = np.sin(X[:, :1]) + 1e-3 * rng.standard_normal((1500, 1))
    metric, alpha = Metric.of(kernels.RBF(1e-3), 4), 1e-5
    source = DenseRows(metric.map(X)).replace(targets=y)
    problem = BoundProblem(metric, source, Threads(1), "fixed", 40, alpha)
    points = metric.map(X[:40])
    value, _, is_whitened = problem.value_and_gradient(problem.pack(points, alpha))
    assert is_whitened
    K, C = (metric.kernel(rows, points) for rows in (points, metric.map(X)))
    Z = np.linalg.solve(np.linalg.cholesky(K + 1e-8 * np.eye(40)), C.T).T
    A = Z @ Z.T + alpha * np.eye(1500)
    dense = np.linalg.slogdet(A)[1] / 3000
    dense += np.log(y[:, 0] @ np.linalg.solve(A, y[:, 0]) / 1500) / 2
    dense += np.sum(1 - np.vecdot(Z, Z)) / (3000 * alpha)
    # (The matrix of sums of kernel values is not even definite.)
    assert value == pytest.approx(dense, abs=1e-7)


def test_steps_that_are_too_long_get_shorter(rng, monkeypatch):
    monkeypatch.setattr("nystrom.models.collapsed_bound.STEP_LENGTH", 20.0)
    X = rng.uniform(-1, 1, (1000, 3))
    y = np.sin(X @ [1.0, 2.0, 0.5])[:, None]
    metric = Metric.of(kernels.RBF(0.5), 3)
    source = DenseRows(metric.map(X)).replace(targets=y - y.mean())
    problem = BoundProblem(metric, source, Threads(1), "diagonal", 30)
    points = metric.map(X[:30])
    start = BoundStart(np.inf, metric, points, problem.best_start(points)[1])
    first, last = (problem.improve(start, n_steps).value for n_steps in (1, 64))
    assert last < first - 1


def test_the_likeliest_position_is_kept(rng):
    """Steps on few noisy rows soon fit their noise."""
    X = rng.standard_normal((400, 5))
    Y = np.sin(X[:, :1]) + rng.standard_normal((400, 1))
    subset = TrainingSubset(X, Y / Y.std(), np.ones(400), 0.0, 60)
    search, losses = MetricSearch.from_subset(subset, Threads(1)), []
    for n_steps in (8, 16, 24, 32):
        kernel, points, _ = optimize_landmarks(
            kernels.RBF(0.2),
            X[:60],
            subset,
            Threads(1),
            structure="matrix",
            max_steps=n_steps,
        )
        losses.append(search.fit(Metric.of(kernel, 5), landmarks=points).loss)
    assert np.all(np.diff(losses) < 1e-6)


@pytest.mark.parametrize("diagonal", [False, True])
def test_the_metric_of_gradients_is_that_of_differences(rng, diagonal):
    X = rng.standard_normal((300, 4))
    Y = np.column_stack([np.sin(X[:, 0] + X[:, 1]), X[:, 2] ** 2])
    subset = TrainingSubset(X, Y, np.ones(300), 0.0, 40)
    search = MetricSearch.from_subset(subset, Threads(1))
    T = rng.standard_normal((4, 3)) / 3
    fit = search.fit(Metric(kernels.RBF(1.0), T))
    kernel, rows = fit.metric.as_kernel(), search.train.X
    points = search.train.X[:40]
    M = np.zeros((4, 4))
    differences = [
        (kernel(rows + e, points) - kernel(rows - e, points)) @ fit.dual / 2e-5
        for e in 1e-5 * np.eye(4)
    ]
    for gradients in np.moveaxis(np.array(differences), 2, 0):
        M += gradients @ gradients.T
    M = np.diag(np.diag(M)) if diagonal else M
    found = search.gradient_metric(fit, diagonal=diagonal).transform
    found = found @ found.T
    np.testing.assert_allclose(
        found / np.trace(found), M / np.trace(M), atol=2e-6 if not diagonal else 1e-8
    )


def search_of(X, y, n_landmarks):
    targets = (y - y.mean())[:, None] / y.std()
    weights = np.linspace(0.5, 1.5, len(X))
    subset = TrainingSubset(X, targets, weights, 0.0, n_landmarks)
    return MetricSearch.from_subset(subset, Threads(1))


@pytest.mark.parametrize(("n_landmarks", "gamma"), [(30, 0.2), (200, 1.0)])
def test_the_noise_is_the_one_of_the_largest_held_out_likelihood(
    rng, n_landmarks, gamma
):
    X, y, _ = mixed_directions(rng, 500, 4, noise=0.3)
    search, kernel = search_of(X, y, n_landmarks), kernels.RBF(gamma)
    train, test = search.train, search.test
    landmarks, w = train.X[:n_landmarks], test.weights / test.weights.sum()
    K_SS = kernel(landmarks, landmarks) + 1e-8 * np.eye(n_landmarks)
    K_S, K_new = kernel(train.X, landmarks), kernel(test.X, landmarks)
    losses = []
    for alpha in TRIED_ALPHAS:
        noise = np.diag(alpha / train.weights)
        inverse = np.linalg.inv(K_S @ np.linalg.solve(K_SS, K_S.T) + noise)
        Q = K_new @ np.linalg.solve(K_SS, K_S.T)
        residuals = test.targets[:, 0] - Q @ inverse @ train.targets[:, 0]
        # k(x, x) − q(x)ᵀ(K̃ + αW⁻¹)⁻¹q(x), and the noise of a new target
        variance = 1 - np.einsum("ij,ij->i", Q @ inverse, Q) + alpha
        variance *= w @ (residuals**2 / variance)
        losses.append(-2 * (w @ norm.logpdf(residuals, scale=np.sqrt(variance))))
    fit = search.fit(Metric.of(kernel, 4))
    assert fit.noise == TRIED_ALPHAS[np.argmin(losses)]
    np.testing.assert_allclose(fit.loss, min(losses) - 1 - np.log(2 * np.pi), rtol=1e-6)


def test_metrics_get_narrower_where_that_is_better(rng):
    X = rng.uniform(-3, 3, (1000, 1))
    y = np.sin(12 * X[:, 0]) + 0.1 * rng.standard_normal(1000)
    search, unit = search_of(X, y, 60), Metric.of(kernels.RBF(1.0), 1)
    start = search.fit(unit)
    chosen = search.narrowed(start)
    assert chosen.metric.transform[0, 0] > 1
    assert chosen.error < start.error
    start = search.fit(unit.scaled(64.0))
    assert search.narrowed(start) is start


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_a_metric_is_its_kernel(rng, kernel):
    X, points = rng.standard_normal((30, 4)), rng.standard_normal((5, 4))
    metric = Metric.of(kernel, 4)
    np.testing.assert_allclose(metric.as_kernel()(X, points), kernel(X, points))
    T = rng.standard_normal((4, 2))
    mapped = kernels.Mahalanobis(metric.kernel, T)
    np.testing.assert_allclose(
        mapped(X, points), metric.kernel(X @ T, points @ T), rtol=1e-12
    )
    np.testing.assert_allclose(
        Metric.of(mapped, 4).as_kernel()(X, points), mapped(X, points), rtol=1e-12
    )


def test_mapped_rows_far_from_the_origin_in_float32_and_csr(rng):
    X, T = rng.standard_normal((200, 5)), rng.standard_normal((5, 3))
    kernel = kernels.Mahalanobis(kernels.Matern(2.0, 1.5), T)
    expected = kernel(X, X[:20])
    far = (X + 1000).astype(np.float32)
    wide = far.astype(np.float64)
    np.testing.assert_allclose(
        kernel(far, far[:20]), kernel(wide, wide[:20]), atol=1e-5
    )
    sparse = sp.csr_array(X)
    for left, right in [(sparse, sparse[:20]), (sparse, X[:20])]:
        np.testing.assert_allclose(kernel(left, right), expected, atol=1e-12)
    assert kernel == kernels.Mahalanobis(kernels.Matern(2.0, 1.5), T)
    assert kernel != kernels.Mahalanobis(kernels.Matern(2.0, 1.5), 2 * T)


@pytest.mark.parametrize("T", [np.zeros((3, 3)), [1.0, 2.0], [[np.nan]], [[]]])
def test_a_transform_is_a_matrix_of_numbers(T):
    with pytest.raises(ValueError, match="transform"):
        kernels.Mahalanobis(kernels.RBF(1.0), T)


def test_only_kernels_of_a_distance_have_a_metric():
    with pytest.raises(ValueError, match="not a kernel of a distance"):
        kernels.Mahalanobis(kernels.Linear(), np.eye(2))
    with pytest.raises(TypeError, match="not a kernel"):
        kernels.Mahalanobis("rbf", np.eye(2))


def test_a_matrix_finds_directions_and_moved_landmarks_use_them(rng, seed):
    X, y, directions = mixed_directions(rng, 4000)
    train, test = slice(0, 3000), slice(3000, None)
    options = {"kernel": "rbf", "n_landmarks": 100, "random_state": seed}
    errors = {}
    cases = [("learn", False), ("ard", False), ("matrix", False), ("matrix", True)]
    for gamma, optimize in cases:
        model = KernelRidgeCV(gamma=gamma, optimize_landmarks=optimize, **options)
        model.fit(X[train], y[train])
        errors[gamma, optimize] = rmse(model, X[test], y[test])
    for gamma in ("learn", "ard"):
        assert errors["matrix", False] < 0.7 * errors[gamma, False]
    assert errors["matrix", True] < 1.2 * errors["matrix", False]
    # Nearly all of the matrix is in the plane of the directions.
    M = model.gamma_
    inside = directions @ directions.T
    assert np.trace(inside @ M @ inside) > 0.95 * np.trace(M)
    assert model.feature_importances_.shape == (6,)
    assert model.feature_importances_.sum() == pytest.approx(1)


def test_moved_landmarks_do_the_work_of_many(rng, seed):
    X = rng.uniform(-3, 3, (4000, 3))
    y = np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + 0.05 * rng.standard_normal(4000)
    options = {"kernel": "rbf", "gamma": 0.5, "n_landmarks": 60, "random_state": seed}
    errors = {}
    for optimize in (False, True):
        model = KernelRidgeCV(optimize_landmarks=optimize, **options)
        errors[optimize] = rmse(model.fit(X[:3000], y[:3000]), X[3000:], y[3000:])
    assert errors[True] < 0.7 * errors[False]
    # The kernel was given, and stays.
    assert model.landmarks_.kernel == kernels.RBF(0.5)
    assert model.landmarks_.indices is None


def test_alpha_of_moved_landmarks_is_their_noise_unless_alphas_are_given(rng):
    X, y, _ = mixed_directions(rng, 2500, noise=0.3)
    common = {"gamma": "matrix", "optimize_landmarks": True, "n_landmarks": 60}
    model = KernelRidgeCV(**common, random_state=0).fit(X[:2000], y[:2000])
    assert model.alphas_.tolist() == [model.landmarks_.ridge] == [model.alpha_]
    mean, std = model.predict(X[2000:], return_std=True, noise=True)
    assert 0.9 < np.sqrt(np.mean((y[2000:] - mean) ** 2 / std**2)) < 1.15
    model = KernelRidgeCV([0.1, 1.0], **common, random_state=0).fit(X, y)
    assert model.alphas_.tolist() == [0.1, 1.0]


def test_deviations_of_moved_landmarks_are_those_of_new_rows(seed):
    """Of rows that landmarks were moved for, residuals are a fifth too small."""
    ratios = []
    for i in range(4):
        rng = np.random.default_rng([seed, i])
        X = rng.standard_normal((4000, 8))
        y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(4000)
        options = {"kernel": "rbf", "gamma": 0.125, "n_landmarks": 120}
        model = KernelRidge(0.1, **options, optimize_landmarks=True, random_state=seed)
        # Rows of weight 0 are as if they were not there.
        n, w = (1500, None) if i % 2 else (4000, np.repeat([1.0, 0.0], [1500, 2500]))
        model.fit(X[:n], y[:n], w)
        mean, std = model.predict(X[1500:], return_std=True, noise=True)
        ratios.append(np.mean((y[1500:] - mean) ** 2 / std**2))
    assert np.sqrt(np.mean(ratios)) < 1.13


@pytest.mark.parametrize("alpha", [None, 0.01])
def test_the_size_of_all_weights_does_not_matter_to_moved_landmarks(rng, alpha):
    X, y, _ = mixed_directions(rng, 1500, noise=0.3)
    common = {"kernel": "rbf", "gamma": "matrix", "n_landmarks": 40, "random_state": 0}
    models = []
    for w in (1.0, 2.0**-10):
        model = KernelRidgeCV() if alpha is None else KernelRidge(alpha * w)
        model.set_params(optimize_landmarks=True, **common)
        models.append(model.fit(X, y, sample_weight=np.full(len(X), w)))
    np.testing.assert_array_equal(models[0].X_fit_, models[1].X_fit_)
    assert models[1].landmarks_.ridge == models[0].landmarks_.ridge * 2.0**-10
    np.testing.assert_allclose(models[0].predict(X), models[1].predict(X), atol=1e-6)


def test_searches_of_many_rows_learn_a_matrix_and_compare_it_with_scale(rng):
    X, y, _ = mixed_directions(rng, 10_000)
    options = {"n_landmarks": 40, "random_state": 0}
    search = KernelRidgeCV(**options).fit(X, y)
    assert search.gammas_ == ["matrix"]
    assert search.gamma_.shape == (6, 6)
    scale = KernelRidgeCV(gamma="scale", **options).fit(X, y)
    assert search.best_score_ > 0.5 * scale.best_score_
    # Where the matrix is not clearly better on some rows, all rows decide.
    unclear = KernelRidgeCV(**options).fit(X, rng.standard_normal(10_000))
    assert unclear.gammas_ == ["scale", "matrix"]
    assert unclear.best_score_ == unclear.scores_.max()
    fewer = KernelRidgeCV(**options).fit(X[:-1], y[:-1])
    assert fewer.gammas_ == [None]
    fewer = KernelRidgeCV(gammas="auto", **options).fit(X[:-1], y[:-1])
    assert len(fewer.gammas_) == 5
    classifier = KernelRidgeClassifierCV(**options).fit(X, y > 0)
    assert classifier.gammas_ == ["matrix"]
    other = KernelRidgeCV(kernel="laplacian", **options).fit(X, y)
    assert other.gammas_ == [None]


@pytest.mark.parametrize("gamma", ["scale", "learn", "ard", "matrix"])
def test_searches_with_a_learnt_metric_leave_one_out(rng, seed, gamma):
    """Under noise that differs among rows, which spoils the other criterion."""
    X = rng.standard_normal((500, 5))
    noise = 0.3 * np.exp(X[:, 0]) * rng.standard_normal(500)
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + noise
    options = {"gamma": gamma, "n_landmarks": 60, "random_state": seed}
    default = KernelRidgeCV(**options).fit(X, y)
    for cv, gammas in {"gcv": ("scale", "learn"), "loo": ("ard", "matrix")}.items():
        scores = KernelRidgeCV(**options, cv=cv).fit(X, y).scores_
        assert np.array_equal(default.scores_, scores) == (gamma in gammas)


def test_ard_finds_the_few_features_that_matter(rng, seed):
    X = rng.standard_normal((3000, 20))
    y = np.sin(2 * X[:, 3]) * X[:, 7] + 0.1 * rng.standard_normal(3000)
    options = {"kernel": "rbf", "n_landmarks": 150, "random_state": seed}
    model = KernelRidgeCV(gamma="ard", **options).fit(X[:2500], y[:2500])
    equal = KernelRidgeCV(gamma="learn", **options).fit(X[:2500], y[:2500])
    assert set(np.argsort(model.feature_importances_)[-2:]) == {3, 7}
    assert model.feature_importances_[[3, 7]].sum() > 0.9
    assert rmse(model, X[2500:], y[2500:]) < 0.5 * rmse(equal, X[2500:], y[2500:])


def test_the_same_seed_gives_the_same_model_for_every_number_of_jobs(rng):
    X, y, _ = mixed_directions(rng, 2500)

    def fitted(n_jobs):
        model = KernelRidge(
            0.01,
            kernel="matern32",
            gamma="matrix",
            n_landmarks=30,
            optimize_landmarks=True,
            random_state=3,
            n_jobs=n_jobs,
        )
        return model.fit(X, y).predict(X[:50])

    np.testing.assert_array_equal(fitted(1), fitted(2))


@pytest.mark.parametrize("form", ["float32", "csr"])
def test_other_rows_learn_about_the_same(rng, form):
    X, y, _ = mixed_directions(rng, 2000)
    options = {"kernel": "rbf", "gamma": "matrix", "n_landmarks": 50}
    model = KernelRidge(0.01, optimize_landmarks=True, random_state=0, **options)
    expected = rmse(model.fit(X[:1500], y[:1500]), X[1500:], y[1500:])
    rows = X.astype(np.float32) if form == "float32" else sp.csr_array(X)
    found = rmse(model.fit(rows[:1500], y[:1500]), rows[1500:], y[1500:])
    assert found < 1.3 * expected + 0.01
    if form == "float32":
        assert model.landmarks_.points.dtype == np.float32


def test_classifiers_learn_the_metric_too(rng):
    X, y, _ = mixed_directions(rng, 2400)
    labels = np.array(["low", "mid", "high"])[np.digitize(y, [0.3, 1.2])]
    options = {"kernel": "rbf", "n_landmarks": 50, "random_state": 0}
    for estimator in (KernelRidgeClassifier, KernelLogisticRegression):
        plain = estimator(gamma="scale", **options).fit(X[:1600], labels[:1600])
        learned = estimator(gamma="matrix", optimize_landmarks=True, **options)
        learned.fit(X[:1600], labels[:1600])
        error = 1 - learned.score(X[1600:], labels[1600:])
        assert error < 0.6 * (1 - plain.score(X[1600:], labels[1600:]))
        probabilities = learned.predict_proba(X[1600:])
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)


def test_a_learnt_model_is_saved_and_goes_into_pipelines(rng, tmp_path):
    X, y, _ = mixed_directions(rng, 1000)
    model = KernelRidge(0.1, kernel="matern32", gamma="matrix", n_landmarks=30)
    model.set_params(optimize_landmarks=True, random_state=0).fit(X, y)
    save(model, tmp_path / "model.nystrom")
    loaded = load(tmp_path / "model.nystrom")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    lower, upper = loaded.predict(X, interval=0.9)
    assert np.mean((lower <= y) & (y <= upper)) > 0.8
    features = Nystroem("rbf", gamma="matrix", n_components=20, random_state=0)
    assert features.fit_transform(X, y).shape == (1000, 20)


def test_targets_that_are_constant_or_noise_do_no_harm(rng):
    X = rng.standard_normal((600, 5))
    options = {"kernel": "rbf", "gamma": "matrix", "n_landmarks": 40}
    model = KernelRidge(1.0, optimize_landmarks=True, random_state=0, **options)
    constant = model.set_params(fit_intercept=True).fit(X, np.full(600, 3.0))
    np.testing.assert_allclose(constant.predict(X), 3.0)
    y = rng.standard_normal(600)
    noisy = KernelRidgeCV(optimize_landmarks=True, random_state=0, **options).fit(X, y)
    new = rng.standard_normal((500, 5))
    assert np.sqrt(np.mean(noisy.predict(new) ** 2)) < 0.5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kernel": "laplacian"}, "Euclidean distance"),
        ({"kernel": "linear"}, "Euclidean distance"),
        ({"max_trace_error": 0.1}, "both set the number"),
        ({"optimize_landmarks": "yes"}, "optimize_landmarks"),
        ({"kernel": "laplacian", "gamma": "matrix"}, "of the Euclidean distance"),
    ],
)
def test_what_cannot_be_optimised_is_refused_with_what_to_do(rng, options, words):
    X, y, _ = mixed_directions(rng, 300)
    options = {"kernel": "rbf", "n_landmarks": 20, "optimize_landmarks": True} | options
    with pytest.raises((ValueError, TypeError), match=words):
        KernelRidge(0.1, **options).fit(X, y)


def test_streams_and_many_features_are_refused(rng):
    X, y, _ = mixed_directions(rng, 300)
    with pytest.raises(
        ValueError, match="partial_fit does not support optimize_landmarks"
    ):
        KernelRidge(kernel="rbf", optimize_landmarks=True).partial_fit(X, y)
    wide = rng.standard_normal((20, 1100))
    with pytest.raises(ValueError, match="at most 1024"):
        KernelRidge(kernel="rbf", gamma="matrix").fit(wide, y[:20])


def test_landmarks_that_do_not_move_are_those_without_the_option():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2)).astype(np.float32)
    y = np.sin(X[:, 0]) + 0.2 * rng.standard_normal(300)
    # So narrow a kernel that no step helps rows that were not seen.
    options = {"gamma": 1e4, "n_landmarks": 60, "random_state": 0, "cv": 5}
    plain = KernelRidgeCV(**options).fit(X, y)
    moved = KernelRidgeCV(**options, optimize_landmarks=True).fit(X, y)
    np.testing.assert_array_equal(moved.landmarks_.indices, plain.landmarks_.indices)
    assert len(moved.alphas_) > 1  # no noise was learnt with them


def test_a_matrix_is_learnt_where_landmarks_do_not_move():
    """Few noisy rows: most moves are refused."""
    n_refused = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((40, 2))
        y = np.sin(X[:, 0] + X[:, 1]) + rng.standard_normal(40)
        options = {"gamma": "matrix", "n_landmarks": 20, "random_state": 0, "cv": 5}
        moved = KernelRidgeCV(**options, optimize_landmarks=True).fit(X, y)
        if moved.landmarks_.indices is not None:
            n_refused += 1
            plain = KernelRidgeCV(**options).fit(X, y)
            np.testing.assert_array_equal(moved.predict(X), plain.predict(X))
    assert n_refused
