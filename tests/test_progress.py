"""Progress: a bar for people, events for scikit-learn's callbacks."""

import multiprocessing
import pickle

import numpy as np
import pytest
from lists import ESTIMATORS
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from nystrom import (
    KernelCCA,
    KernelRidge,
    KernelRidgeCV,
    Nystroem,
    approximate,
    effective_dimension,
    select_landmarks,
    spectral_embedding,
)
from nystrom.engines import progress
from nystrom.engines.progress import WorkEstimate
from nystrom.estimators import _progress
from nystrom.samplers import NAMES, FixedSize, TraceTolerance, as_sampler
from nystrom.samplers.cost import expected_evaluations

X = np.random.default_rng(0).standard_normal((3000, 3))


def estimator(**options):
    return Nystroem(**{"n_components": 10, "random_state": 0} | options)


# The bar


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: None)  # no worker


@pytest.fixture
def shares(monkeypatch):
    """The share of the work that is done, at each report of every bar."""
    found, count = [], WorkEstimate.count

    def recorded(self, evaluations):
        count(self, evaluations)
        found.append(self.share)

    monkeypatch.setattr(WorkEstimate, "count", recorded)
    monkeypatch.setattr(progress, "LOG_SECONDS", np.inf)  # a slow machine: one line too
    return found


def targets_for(fitted):
    """Such as an estimator takes."""
    if isinstance(fitted, KernelCCA):
        return X[:1200, 1:]
    return (X[:1200, 0] > 0).astype(int)


@pytest.mark.filterwarnings("ignore::UserWarning")  # some converge in no time, or never
@pytest.mark.parametrize("fitted", ESTIMATORS, ids=repr)
def test_a_fit_is_one_line(fitted, capsys, shares):
    fitted = clone(fitted).set_params(verbose=1)
    fitted.fit(X[:1200], targets_for(fitted))
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert line.startswith(f"{type(fitted).__name__} █")
    assert line.count(" 100 % ") == 1
    assert line.endswith(" s")
    assert shares == sorted(shares)


def test_a_search_over_widths_is_in_step_with_the_work(capsys, shares):
    options = {"kernel": "rbf", "n_landmarks": [10, 20], "gammas": "auto"}
    KernelRidgeCV(**options, random_state=0, verbose=1).fit(X, X[:, 0])
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("KernelRidgeCV █")
    assert shares == sorted(shares)
    assert shares[-1] > 0.8
    assert np.diff(shares).max() < 0.25


@pytest.mark.parametrize("sampler", list(NAMES))
def test_every_sampler_is_in_step_with_the_work(sampler, capsys, shares):
    estimator(sampler=sampler, verbose=1, n_components=50).fit_transform(X[:1500])
    (line,) = capsys.readouterr().err.splitlines()
    assert "100 %" in line
    assert shares == sorted(shares)
    assert shares[-1] > 0.7


@pytest.mark.parametrize("sampler", list(NAMES))
@pytest.mark.parametrize("size", [30, 200])
def test_the_cost_model_is_right_within_a_factor_of_four(sampler, size):
    n, options = 1500, {"gamma": 0.3, "random_state": 0}
    chosen = select_landmarks(X[:n], n_landmarks=size, sampler=sampler, **options)
    goal, counted = FixedSize(size), chosen.n_kernel_evaluations
    expected = expected_evaluations(as_sampler(sampler), goal, n, size)
    assert expected / 4 <= counted <= 4 * expected


@pytest.mark.parametrize("sampler", ["auto", "greedy", "rpcholesky", "uniform"])
def test_the_cost_model_of_a_trace_error(sampler):
    chosen = select_landmarks(
        X, max_trace_error=0.02, gamma=0.3, sampler=sampler, random_state=0
    )
    goal, counted = TraceTolerance(0.02), chosen.n_kernel_evaluations
    expected = expected_evaluations(as_sampler(sampler), goal, len(X), len(chosen))
    assert expected / 4 <= counted <= 4 * expected


@pytest.mark.parametrize(
    "goal", [{"max_spectral_error": 5.0}, {"max_trace_error": 0.05}]
)
def test_a_number_that_is_found_on_the_way_is_one_line(goal, capsys, shares):
    select_landmarks(X, gamma=0.3, random_state=0, verbose=1, **goal)
    *notes, line = capsys.readouterr().err.splitlines()
    assert line.startswith("select_landmarks █")
    assert len(notes) == ("max_spectral_error" in goal)
    assert shares == sorted(shares)
    assert shares[-1] > 0.2


def test_the_bar_of_methods(capsys, shares, monkeypatch):
    model = KernelRidge(kernel="rbf", n_landmarks=20, random_state=0, verbose=1)
    model.fit(X, X[:, 0])
    capsys.readouterr()
    model.predict(X[:10])
    assert capsys.readouterr().err == ""  # in no time
    monkeypatch.setattr(_progress, "BAR_DELAY_SECONDS", 0.0)
    shares.clear()
    model.predict(X, return_std=True)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("KernelRidge.predict █")
    assert shares == sorted(shares)
    assert shares[-1] > 0.6


@pytest.mark.parametrize("verbose", [0, False, None])
def test_nothing_is_written_unless_asked(capsys, verbose):
    estimator(verbose=verbose).fit(X).transform(X)
    assert capsys.readouterr() == ("", "")


def test_bar_of_the_functions(capsys):
    landmarks = select_landmarks(X, n_landmarks=10, random_state=0, verbose=1)
    effective_dimension(X, ridge=1.0, landmarks=landmarks, verbose=1)
    spectral_embedding(X, 2, n_landmarks=10, random_state=0, verbose=1)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines] == [
        "select_landmarks",
        "effective_dimension",
        "spectral_embedding",
    ]


def test_an_approximation_has_a_line_for_each_of_its_passes(capsys):
    landmarks = select_landmarks(X, n_landmarks=10, random_state=0)
    approximation = approximate(X, landmarks, verbose=1)
    assert capsys.readouterr().err == ""
    approximation.features()
    assert capsys.readouterr().err.startswith("features █")


def test_progress_changes_no_result():
    quiet, shown = estimator(), estimator(verbose=1)
    np.testing.assert_array_equal(quiet.fit_transform(X), shown.fit_transform(X))


# Fits around fits


def of_many(verbose):
    """A sampler of one's own, which fits something itself."""

    def sampler(kernel, source, n_landmarks, *, seed, engine):
        rows = source.rows(0, source.n_rows)
        return select_landmarks(
            rows, n_landmarks=n_landmarks, random_state=seed, verbose=verbose
        )

    return sampler


@pytest.mark.parametrize("inner", [0, 1])
def test_a_fit_inside_a_fit_has_no_line_of_its_own(inner, capsys, shares):
    estimator(verbose=1, sampler=of_many(inner)).fit(X)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("Nystroem █")
    assert shares == sorted(shares)


def test_a_fit_inside_a_quiet_fit_has_one(capsys):
    estimator(sampler=of_many(1)).fit(X)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("select_landmarks █")


# What fails


def test_a_fit_that_is_refused_ends_its_line(capsys):
    with pytest.raises(ValueError, match="rbg"):
        estimator(kernel="rbg", verbose=1).fit(X)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(", stopped")
    estimator(verbose=1).fit(X)  # a new bar, not a part of the old one
    assert "100 %" in capsys.readouterr().err


# On a terminal that is one


# scikit-learn's callbacks


pytest.importorskip("sklearn.callback")
callback_only = pytest.mark.skipif(
    not hasattr(Nystroem, "set_callbacks"), reason="scikit-learn without callbacks"
)


class Recorder:
    """Follows scikit-learn's FitCallback protocol and writes everything down."""

    def __init__(self):
        self.events = []

    def setup(self, estimator, context):
        self.events.append(("setup", type(estimator).__name__, context.task_name, ()))

    def teardown(self, estimator, context):
        self.events.append(
            ("teardown", type(estimator).__name__, context.task_name, ())
        )

    def on_fit_task_begin(self, estimator, context):
        self.note("begin", estimator, context)

    def on_fit_task_end(self, estimator, context):
        self.note("end", estimator, context)

    def note(self, what, estimator, context):
        path, node = [], context
        while node is not None:
            path.append((node.task_name, node.task_id))
            node = node.parent
        name = type(estimator).__name__
        self.events.append((what, name, context.task_name, tuple(path[::-1])))

    def of(self, what):
        return [event for event in self.events if event[0] == what]


class PropagatedRecorder(Recorder):
    max_propagation_depth = None


def assert_balanced(events):
    """Every task that begins ends, inner ones before outer ones."""
    open_tasks = []
    for what, _, _, path in events:
        if what == "begin":
            open_tasks.append(path)
        elif what == "end":
            assert open_tasks.pop() == path
    assert not open_tasks


@callback_only
@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_callbacks_hear_of_the_passes(method):
    recorder = Recorder()
    getattr(estimator().set_callbacks(recorder), method)(X)
    assert_balanced(recorder.events)
    assert recorder.events[0][:2] == ("setup", "Nystroem")
    assert recorder.events[-1][:2] == ("teardown", "Nystroem")
    begun = [task for _, _, task, _ in recorder.of("begin")]
    assert begun[0] == "fit"
    assert "scores, level 0" in begun
    if method == "fit_transform":
        assert begun[-1] == "features"


@callback_only
def test_a_fit_has_at_most_a_hundred_steps_one_after_the_other():
    recorder = Recorder()
    estimator().set_callbacks(recorder).fit_transform(X)
    steps = [path for _, _, _, path in recorder.of("begin") if len(path) == 2]
    assert len(recorder.of("begin")) == len(steps) + 1  # the fit itself
    assert [path[1][1] for path in steps] == list(range(len(steps)))
    assert 70 <= len(steps) <= 100


@callback_only
def test_without_callbacks_none_are_called_and_nothing_is_kept():
    plain, heard = estimator(), estimator().set_callbacks(Recorder())
    np.testing.assert_array_equal(plain.fit_transform(X), heard.fit_transform(X))
    heard.set_callbacks()
    assert set(vars(plain)) == set(vars(heard))


@callback_only
def test_pickles_with_a_callback():
    fitted = estimator().set_callbacks(Recorder()).fit(X)
    loaded = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(loaded.transform(X), fitted.transform(X))
    loaded.fit(X)


@callback_only
@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_callbacks_are_torn_down_when_the_fit_fails(method):
    recorder = Recorder()
    failing = estimator(kernel="rbg").set_callbacks(recorder)
    with pytest.raises(ValueError, match="rbg"):
        getattr(failing, method)(X)
    assert len(recorder.of("setup")) == len(recorder.of("teardown")) == 1
    assert not hasattr(failing, "_callback_fit_ctx")


@callback_only
def test_callback_that_raises_stops_the_fit_and_leaves_it_unfitted():
    class Stop(Recorder):
        def on_fit_task_begin(self, estimator, context):
            if context.task_name == "scores, level 0":
                raise KeyboardInterrupt

    failing = estimator().set_callbacks(Stop())
    with pytest.raises(KeyboardInterrupt):
        failing.fit(X)
    assert not hasattr(failing, "components_")


@callback_only
def test_callbacks_of_a_pipeline_reach_into_it():
    recorder = PropagatedRecorder()
    y = (X[:, 0] > 0).astype(int)
    model = make_pipeline(estimator(), LogisticRegression(max_iter=1000))
    model.set_callbacks(recorder).fit(X, y)
    assert_balanced(recorder.events)
    ours = [path for _, name, _, path in recorder.of("begin") if name == "Nystroem"]
    assert any(path[-1][0] == "features" for path in ours)
    assert all(len(path) >= 2 for path in ours)  # below the pipeline's own task
    assert model.predict(X).shape == (3000,)


@callback_only
def test_scikit_learns_progress_bar_draws_one_bar(monkeypatch):
    pytest.importorskip("rich")
    from sklearn.callback import ProgressBar, _progressbar

    bars, begin = [], _progressbar.RichProgressMonitor._on_task_begin

    def recorded(self, task_info):
        bars.append(task_info["estimator_name"])
        begin(self, task_info)

    monkeypatch.setattr(_progressbar.RichProgressMonitor, "_on_task_begin", recorded)
    options = {"kernel": "rbf", "n_landmarks": [10, 20], "gammas": [0.1, 1.0]}
    search = KernelRidgeCV(**options, random_state=0).set_callbacks(ProgressBar())
    search.fit(X, X[:, 0])
    assert bars == ["KernelRidgeCV"]
