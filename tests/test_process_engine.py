"""Everything runs on an engine of other processes, and to the same last bit."""

import numpy as np
import pytest
from files import opened
from lists import CUBIC, WITHOUT_SCORES, but
from process_engine import Processes
from sklearn.base import is_classifier, is_regressor

from nystrom import (
    KernelCCA,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeCV,
    Nystroem,
    approximate,
    engines,
    kernels,
    leverage_scores,
    select_landmarks,
    spectral_embedding,
)
from nystrom.sources.output import Overwrite

N_ROWS = 2300  # three tiles
#: Those that pass over rows on the engine.
PASSING = but(CUBIC, WITHOUT_SCORES)


@pytest.fixture(scope="module")
def processes():
    engine = Processes()
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_ROWS, 3)) * rng.choice([0.2, 1.0, 3.0], (N_ROWS, 1))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(N_ROWS)


def on_both(processes, f):
    """f() on threads and on other processes, which did some of the work."""
    here = f()
    before = processes.n_tasks[0]
    with engines.using(processes):
        there = f()
    assert processes.n_tasks[0] > before
    return here, there


def same(here, there):
    np.testing.assert_array_equal(here, there, strict=True)


def a_kernel(X, Y):
    return np.exp(-np.abs(X[:, None, 0] - Y[None, :, 0]))


WAYS = [{"n_landmarks": 24, "gamma": 0.5, "sampler": name} for name in PASSING]
WAYS += [
    {"max_trace_error": 0.05, "gamma": 0.1, "sampler": name}
    for name in ("auto", "greedy", "rpcholesky", "uniform")
]
WAYS += [{"max_spectral_error": 20.0, "gamma": 0.1, "delta": d} for d in (None, 0.01)]


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("rows", ["float32", "weights"])
def test_landmarks(way, rows, processes, data):
    X, weights = data[0], None
    if rows == "weights":
        weights = np.abs(data[1]) * (np.arange(N_ROWS) % 5 > 0)
    else:
        X = X.astype(np.float32)

    def choose():
        return select_landmarks(X, sample_weight=weights, random_state=0, **way)

    here, there = on_both(processes, choose)
    same(here.points, there.points)
    assert here.n_kernel_evaluations == there.n_kernel_evaluations
    assert (here.notes, here.error) == (there.notes, there.error)
    if here.indices is not None:
        same(here.indices, there.indices)


@pytest.mark.parametrize("kind", ["npy", "parquet", "hdf5", "zarr 3"])
def test_from_files_into_files(kind, processes, data, tmp_path, monkeypatch):
    """Other processes open the files themselves; what they make is written here."""
    monkeypatch.setattr(
        "nystrom.linalg.features.MAX_TARGETS_AT_ONCE", 0
    )  # read on the engine, too
    X, y = data
    source = opened(tmp_path, kind, X, target=y)
    model = KernelRidge(
        kernel="rbf", gamma=0.1, n_landmarks=30, fit_intercept=True, random_state=0
    )

    def predictions():
        path = Overwrite(tmp_path / "predictions.npy")
        out = model.fit(source).predict(source, out=path)
        return np.load(out)

    same(*on_both(processes, predictions))
    same(model.fit(X, y).predict(X), predictions())


@pytest.mark.parametrize("delta", [None, 0.01])
def test_landmarks_by_a_ridge(delta, processes, data):
    def choose():
        return select_landmarks(
            data[0], gamma=0.1, max_spectral_error=20.0, delta=delta, random_state=0
        )

    here, there = on_both(processes, choose)
    same(here.indices, there.indices)


def test_a_precomputed_matrix(processes, data):
    K = np.minimum.outer(data[0][:, 0], data[0][:, 0]) + 10

    def transform():
        est = Nystroem("precomputed", n_components=20, random_state=0)
        return est.fit_transform(K), est.transform(K)

    here, there = on_both(processes, transform)
    same(here[0], there[0])
    same(here[1], there[1])


RIDGE = {"kernel": "rbf", "gamma": 0.5, "n_landmarks": 40, "random_state": 0}


FITTED = [
    Nystroem("polynomial", n_components=20),
    Nystroem("laplacian", n_components=20),
    Nystroem(kernels.blockwise(a_kernel), n_components=20),
    KernelRidge(0.1, **RIDGE),
    KernelRidge(1e-6, fit_intercept=True, **RIDGE),
    KernelRidge(0.1, solver="cg", **RIDGE),
    KernelRidgeCV(**RIDGE),
    KernelRidgeCV(cv="loo", **RIDGE),
    KernelRidgeCV(cv=3, fit_intercept=True, **RIDGE),
    KernelRidgeClassifier(**RIDGE),
    KernelPCA(3, kernel="rbf", n_landmarks=40, fit_inverse_transform=True),
    KernelPCA(3, kernel="rbf", n_landmarks=40, center=False),
    KernelKMeans(4, n_landmarks=40),
    KernelKMeans(4, n_landmarks=40, affinity_normalize=True),
    KernelCCA(1, n_landmarks=40),
]


def results_of(estimator, X, y):
    """Everything that a fit on these rows, and what follows from it, says of them."""
    is_pair = isinstance(estimator, KernelCCA)
    weights = {} if is_pair else {"sample_weight": np.linspace(0, 2, N_ROWS)}
    if isinstance(estimator, Nystroem):
        return [estimator.set_params(random_state=0).fit_transform(X, **weights)]
    y = y > 0 if is_classifier(estimator) else y
    fitted = estimator.set_params(random_state=0).fit(X, y, **weights)
    ask = getattr(fitted, "decision_function", None) or getattr(fitted, "predict", None)
    results = [fitted.transform(X) if hasattr(fitted, "transform") else ask(X)]
    if is_regressor(fitted) and getattr(fitted, "solver_", "direct") == "direct":
        results += fitted.predict(X, return_std=True)
    if hasattr(fitted, "inverse_transform"):
        results.append(fitted.inverse_transform(results[0]))
    return [*results, fitted.approximation_error_]


@pytest.mark.parametrize("estimator", FITTED, ids=lambda e: type(e).__name__)
def test_estimators(estimator, processes, data):
    here, there = on_both(processes, lambda: results_of(estimator, *data))
    for one, two in zip(here, there, strict=True):
        if isinstance(one, np.ndarray):
            same(one, two)
        else:
            assert one == two


def test_the_operator(processes, data):
    X, y = data
    landmarks = select_landmarks(X, gamma=0.5, n_landmarks=30, random_state=0)

    def answers():
        K = approximate(X, landmarks)
        return (
            K.features(),
            K @ y,
            K.diagonal(),
            K.eigh(3)[1],
            K.solve(y, 0.1),
            np.array([K.trace_error, K.spectral_error(500).lower]),
            leverage_scores(X, ridge=1.0, landmarks=landmarks),
            spectral_embedding(X, 2, landmarks=landmarks),
        )

    for a, b in zip(*on_both(processes, answers), strict=True):
        same(a, b)


def test_what_writes_into_shared_is_found_out(processes, data):
    """The engine is strict: the fault that it is to catch does not pass."""
    from nystrom.sources import as_source

    with pytest.raises(ValueError, match="read-only"):
        processes.reduce(writing, as_source(data[0]), (np.zeros(3),), "a fault")


def writing(block, total):
    total += block.X.sum(axis=0)
    return total


def test_every_pass_has_a_name(processes, data):
    X, y = data
    n_before = len(processes.passes)
    with engines.using(processes):
        model = KernelRidge(kernel="rbf", gamma=0.5, n_landmarks=16, random_state=0)
        model.fit(X, y).predict(X)
    told = processes.passes[n_before:]
    assert len(told) >= 3  # residuals, sums and predictions at least
    assert all(told)


def test_what_is_saved_on_other_processes_is_what_threads_would_save(
    processes, data, tmp_path
):
    X, y = data

    def fit():
        model = KernelRidge(kernel="rbf", gamma=0.5, n_landmarks=16, random_state=0)
        return model.fit(X, y).dual_coef_

    path = tmp_path / "run.ckpt"
    run = engines.CheckpointStore(path, every=0)
    with engines.using(processes, checkpoint=run, keep_checkpoint=True):
        there = fit()
    before = processes.n_tasks[0]
    with engines.using(checkpoint=path):  # begun there, continued here
        again = fit()
    assert processes.n_tasks[0] == before
    same(there, again)
    same(there, fit())
