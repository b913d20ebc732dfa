"""Displays: the arrays they draw are right, and they draw them where they are told."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import norm
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nystrom import (
    KernelCCA,
    KernelKMeans,
    KernelRidge,
    KernelRidgeClassifierCV,
    KernelRidgeCV,
    Nystroem,
    approximate,
    displays,
    select_landmarks,
)
from nystrom.displays import (
    ClusterDisplay,
    CoverageDisplay,
    ErrorPathDisplay,
    FeatureImportancesDisplay,
    LandmarksDisplay,
    LeverageDisplay,
    RidgePathDisplay,
    SpectrumDisplay,
)

matplotlib = pytest.importorskip("matplotlib", reason="displays need nystrom[plot]")
matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")
pd = pytest.importorskip("pandas", reason="columns with names")

GAMMA = 0.5


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


@pytest.fixture
def X(rng):
    return rng.standard_normal((300, 3))


@pytest.fixture
def y(X, rng):
    return np.sin(X[:, 0]) + 0.3 * rng.standard_normal(len(X))


@pytest.fixture
def mapped(X):
    features = Nystroem(gamma=GAMMA, n_components=40, random_state=0)
    features.fit_transform(X)
    return features


@pytest.fixture
def searched(X, y):
    model = KernelRidgeCV(
        [1e-3, 1e-1, 10.0],
        kernel="rbf",
        gammas=[0.1, 0.5],
        n_landmarks=[10, 40],
        random_state=0,
    )
    return model.fit(X, y)


@pytest.fixture
def drawn(X, y, mapped, searched):
    """How each display is drawn, by its name."""
    clusters = KernelKMeans(3, gamma=GAMMA, n_landmarks=30, random_state=0).fit(X)
    ridge = KernelRidge(0.1, kernel="rbf", n_landmarks=40, random_state=0).fit(X, y)
    return {
        "CoverageDisplay": lambda **on: CoverageDisplay.from_estimator(
            ridge, X, y, **on
        ),
        "ClusterDisplay": lambda **on: ClusterDisplay.from_estimator(clusters, X, **on),
        "ErrorPathDisplay": lambda **on: ErrorPathDisplay.from_estimator(
            mapped, goal=0.1, **on
        ),
        "FeatureImportancesDisplay": lambda **on: (
            FeatureImportancesDisplay.from_estimator(
                clone(ridge).set_params(gamma="ard").fit(X, y), **on
            )
        ),
        "LandmarksDisplay": lambda **on: LandmarksDisplay.from_estimator(
            mapped, X, **on
        ),
        "LeverageDisplay": lambda **on: LeverageDisplay.from_estimator(mapped, X, **on),
        "RidgePathDisplay": lambda **on: RidgePathDisplay.from_estimator(
            clone(searched).set_params(gammas=None, gamma=0.5).fit(X, y),
            **({"axes": on["ax"]} if "ax" in on else {}),
        ),
        "SpectrumDisplay": lambda **on: SpectrumDisplay.from_estimator(mapped, X, **on),
    }


@pytest.mark.parametrize("name", displays.__all__)
def test_draws_on_new_axes_or_on_those_given_and_changes_nothing_else(name, drawn):
    settings, others = dict(matplotlib.rcParams), pyplot.get_fignums()
    first = drawn[name]()
    assert pyplot.get_fignums() == [*others, first.figure_.number]
    figure, ax = pyplot.subplots()
    second = drawn[name](ax=ax)
    assert second.figure_ is figure
    assert ax.lines or ax.collections or ax.patches
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    assert len(pyplot.get_fignums()) == len(others) + 2
    assert dict(matplotlib.rcParams) == settings
    figure.canvas.draw()


@pytest.mark.parametrize("name", displays.__all__)
def test_plot_draws_again_what_is_held(name, drawn):
    display = drawn[name]()
    first = display.figure_
    assert display.plot() is display
    assert display.figure_ is not first


def test_error_path_is_that_of_the_prefixes(X, mapped):
    display = ErrorPathDisplay.from_estimator(mapped, goal=0.2)
    k = display.n_landmarks
    enough = approximate(X, mapped.landmarks_[:k]).relative_trace_error
    fewer = approximate(X, mapped.landmarks_[: k - 1]).relative_trace_error
    assert float(enough) <= 0.2 < float(fewer)
    np.testing.assert_array_equal(display.line_.get_xdata(), np.arange(1, 41))
    labels = display.ax_.get_legend_handles_labels()[1]
    assert f"0.2: {k} landmarks" in labels


def test_error_path_says_where_the_goal_is_not_reached(mapped):
    display = ErrorPathDisplay.from_estimator(mapped, goal=1e-9)
    assert display.n_landmarks is None
    assert "1e-09: not reached" in display.ax_.get_legend_handles_labels()[1]


def test_error_path_needs_one(X):
    landmarks = select_landmarks(X, gamma=GAMMA, n_landmarks=10, random_state=0)
    with pytest.raises(ValueError, match=r"did not compute.*fit_transform"):
        ErrorPathDisplay.from_landmarks(landmarks)
    with pytest.raises(ValueError, match="goal=-1 is not allowed"):
        ErrorPathDisplay(np.ones(3), goal=-1)


def test_spectrum_is_that_of_the_dense_matrix(X, mapped):
    S = mapped.landmarks_.indices
    K = rbf_kernel(X, gamma=GAMMA)
    approximated = K[:, S] @ np.linalg.solve(K[np.ix_(S, S)], K[S])
    expected = np.linalg.eigvalsh(approximated)[::-1][: len(S)]
    display = SpectrumDisplay.from_estimator(mapped, X, ridge=0.7)
    np.testing.assert_allclose(display.eigenvalues, expected, rtol=1e-6)
    dimension = np.trace(np.linalg.solve(K + 0.7 * np.eye(len(K)), K))
    assert display.effective_dimension == pytest.approx(
        np.sum(expected / (expected + 0.7))
    )
    assert display.effective_dimension <= dimension


def test_scores_of_few_landmarks_add_up_to_no_less_than_the_effective_dimension(X):
    """σ ↦ σ/(σ + λ) is concave with slope ≤ 1/λ: tr f(K) ≤ tr f(K̃) + tr(K − K̃)/λ."""
    landmarks = select_landmarks(X, gamma=GAMMA, n_landmarks=15, random_state=0)
    K, ridge = rbf_kernel(X, gamma=GAMMA), 3.0
    found = approximate(X, landmarks).leverage_scores(ridge)
    assert found.max() < 1
    assert np.trace(np.linalg.solve(K + ridge * np.eye(len(K)), K)) <= found.sum()


def test_scores_of_all_rows_as_landmarks_are_the_exact_ones(X):
    landmarks = select_landmarks(X, gamma=GAMMA, n_landmarks=300, random_state=0)
    K = rbf_kernel(X, gamma=GAMMA)
    exact = np.diag(np.linalg.solve(K + 0.3 * np.eye(len(K)), K))
    found = approximate(X, landmarks).leverage_scores(0.3)
    np.testing.assert_allclose(found, exact, rtol=1e-7)
    with pytest.raises(ValueError, match=r"ridge=0.* is not allowed"):
        approximate(X, landmarks).leverage_scores(0.0)


def test_lambda_is_the_one_of_the_landmarks_or_what_they_leave(X, mapped):
    drawn = select_landmarks(
        X, gamma=GAMMA, n_landmarks=40, sampler="recursive", random_state=0
    )
    assert LeverageDisplay.from_landmarks(drawn, X).ridge == drawn.ridge
    left = approximate(X, mapped.landmarks_).trace_error
    found = SpectrumDisplay.from_estimator(mapped, X).ridge
    assert found == pytest.approx(left / 40)


def test_landmarks_lie_on_their_rows(X, mapped):
    display = LandmarksDisplay.from_estimator(mapped, X, features=(2, 0))
    np.testing.assert_array_equal(
        display.landmarks, X[mapped.landmarks_.indices][:, [2, 0]]
    )
    display = LandmarksDisplay.from_estimator(mapped, X, features="components")
    values, vectors = approximate(X, mapped.landmarks_).eigh(2)
    np.testing.assert_allclose(display.rows, vectors * np.sqrt(values))


def test_features_go_by_name_in_frames(X):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["length", "width", "weight"])
    model = Nystroem(n_components=10, random_state=0).fit(frame)
    display = LandmarksDisplay.from_estimator(
        model, frame, features=("weight", "length")
    )
    assert display.names == ("weight", "length")
    np.testing.assert_array_equal(display.rows, X[:, [2, 0]])


def test_sparse_rows_are_drawn_where_they_are(X):
    rows = sp.csr_array(X)
    model = Nystroem(n_components=10, random_state=0).fit(rows)
    display = LandmarksDisplay.from_estimator(model, rows, features=(1, 2))
    expected = X[model.landmarks_.indices][:, [1, 2]]
    np.testing.assert_array_equal(display.landmarks, expected)


@pytest.mark.parametrize("features", [(0,), (0, 3), ("a", "b"), "names", 1, (-1, 0)])
def test_features_that_are_not_there_are_refused(features, X, mapped):
    with pytest.raises(ValueError, match=r"features=.* is not allowed"):
        LandmarksDisplay.from_estimator(mapped, X, features=features)


def test_of_many_rows_some_are_drawn(rng):
    X = rng.standard_normal((20_000, 2))
    model = KernelKMeans(3, n_landmarks=20, random_state=0).fit(X)
    display = ClusterDisplay.from_estimator(model, X)
    assert len(display.rows) == len(display.labels) == 5000
    np.testing.assert_array_equal(display.labels, model.predict(display.rows))
    assert display.sizes.sum() == 20_000


def test_ridge_path_finds_the_best(searched):
    display = RidgePathDisplay.from_estimator(searched)
    g, k, a = display.best
    assert searched.gamma_ == display.gammas[g]
    assert searched.n_landmarks_ == display.n_landmarks[k]
    assert searched.alpha_ == display.alphas[a]
    assert len(display.axes_) == 2
    with pytest.raises(ValueError, match="axes has length 1, but there are 2 gammas"):
        display.plot(pyplot.subplots()[1])


def test_ridge_path_of_grids_that_nobody_gave(X, y):
    """A classifier that chose its own widths: gammas="auto" is a word, not widths."""
    model = KernelRidgeClassifierCV(n_landmarks=20, random_state=0).fit(X, y > 0)
    display = RidgePathDisplay.from_estimator(model)
    assert display.gammas == model.gammas_
    np.testing.assert_array_equal(display.scores[:, 0], model.scores_)
    assert display.axes_[0].get_ylabel() == "accuracy"


def test_ridge_path_of_several_targets_is_their_mean(X, y):
    model = KernelRidgeCV([0.1, 1.0], gamma=0.1, n_landmarks=20, random_state=0)
    model.set_params(alpha_per_target=True).fit(X, np.stack([y, -2 * y], axis=1))
    display = RidgePathDisplay.from_estimator(model)
    np.testing.assert_allclose(display.scores[0, 0], model.scores_.mean(axis=-1))


def test_coverage_of_normal_targets_is_the_diagonal(rng):
    """By Kolmogorov's bound, off by more than 0.05 in one of 10⁴ runs."""
    std = rng.uniform(0.5, 2.0, 4000)
    y = std * rng.standard_normal(4000)
    display = CoverageDisplay.from_predictions(y, np.zeros(4000), std)
    assert display.observed == pytest.approx(display.expected, abs=0.05)
    half = CoverageDisplay.from_predictions(y, np.zeros(4000), std / 2)
    expected = 2 * norm.cdf(norm.ppf(0.975) / 2) - 1
    assert half.within(0.95) == pytest.approx(expected, abs=0.05)


def test_coverage_takes_several_targets_and_deviations_of_zero():
    y = np.array([[0.0, 1.0], [2.0, 3.0]])
    exact = CoverageDisplay.from_predictions(y, y, np.zeros(2))
    assert exact.within(0.5) == 1.0
    wrong = CoverageDisplay.from_predictions(y, y + 1, np.zeros(2))
    assert wrong.within(0.99) == 0.0
    with pytest.raises(ValueError, match="y has shape"):
        CoverageDisplay.from_predictions(y[0], y, y)


def test_what_cannot_be_drawn_is_refused_with_what_can(X, mapped):
    with pytest.raises(ValueError, match="has no single set"):
        ErrorPathDisplay.from_estimator(Nystroem())
    with pytest.raises(ValueError, match="has no single set of landmarks"):
        ErrorPathDisplay.from_estimator(KMeans())
    with pytest.raises(TypeError, match="landmarks is a ndarray"):
        SpectrumDisplay.from_landmarks(X, X)
    with pytest.raises(TypeError, match="draws a fitted KernelKMeans"):
        ClusterDisplay.from_estimator(mapped, X)
    with pytest.raises(TypeError, match="draws a fitted KernelRidgeCV"):
        RidgePathDisplay.from_estimator(mapped)
    with pytest.raises(TypeError, match="does not predict"):
        CoverageDisplay.from_estimator(mapped, X, X)
    both = KernelCCA(1, n_landmarks=10, random_state=0).fit(X, X)
    with pytest.raises(ValueError, match="for KernelCCA use from_landmarks"):
        ErrorPathDisplay.from_estimator(both)


def test_a_pipeline_stands_for_its_last_step(X):
    pipeline = make_pipeline(StandardScaler(), Nystroem(n_components=10))
    pipeline.fit_transform(X)
    display = ErrorPathDisplay.from_estimator(pipeline)
    assert len(display.errors) == 10


def test_importances_are_in_order_and_have_names(X, rng):
    """Of a data frame, of a pipeline, or those given; the largest first."""
    columns = ["slope", "wave", "noise"]
    table = pd.DataFrame(rng.standard_normal((600, 3)), columns=columns)
    y = 0.2 * table["slope"] + np.sin(2 * table["wave"])
    model = KernelRidge(0.01, kernel="rbf", gamma="ard", n_landmarks=60, random_state=0)
    scaler = StandardScaler().set_output(transform="default")
    pipeline = make_pipeline(scaler, model)
    for fitted in (clone(model).fit(table, y), pipeline.fit(table, y)):
        display = FeatureImportancesDisplay.from_estimator(fitted, max_features=2)
        labels = [label.get_text() for label in display.ax_.get_yticklabels()]
        assert labels == ["wave", "slope"]
        widths = [bar.get_width() for bar in display.bars_]
        assert widths == sorted(display.importances, reverse=True)[:2]
    named = FeatureImportancesDisplay.from_estimator(
        model.fit(table, y), feature_names="abc"
    )
    assert named.ax_.get_yticklabels()[0].get_text() == "b"
    with pytest.raises(ValueError, match="2 feature_names for 3 features"):
        FeatureImportancesDisplay.from_estimator(model, feature_names="ab")
    with pytest.raises(ValueError, match="gamma='ard'"):
        FeatureImportancesDisplay.from_estimator(
            clone(model).set_params(gamma=1.0).fit(table, y)
        )
