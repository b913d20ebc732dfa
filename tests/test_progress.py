"""Progress: a bar for people, events for scikit-learn's callbacks."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from nystrom import Nystroem, approximate, leverage_scores, select_landmarks
from nystrom.engines import Bar, Threads
from nystrom.sources import as_source

X = np.random.default_rng(0).standard_normal((3000, 3))


def estimator(**options):
    return Nystroem(**{"n_components": 10, "random_state": 0} | options)


# The bar


def test_bar_shows_every_level_and_the_features(capsys):
    estimator(verbose=1).fit_transform(X)
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    levels = [line for line in lines if line.startswith("scores, level ")]
    numbers = [int(line.split()[2]) for line in levels]
    assert numbers == list(range(len(numbers)))[::-1]
    assert len(numbers) >= 2
    assert lines[-1].startswith("features")
    assert all("100 %" in line and "█" in line and " s" in line for line in lines)


def test_bar_shows_the_pass_for_the_error_of_fit(capsys):
    estimator(verbose=1).fit(X)
    err = capsys.readouterr().err
    assert "scores, level 0" in err
    assert "error" in err
    assert "features" not in err


def test_bar_of_transform(capsys):
    fitted = estimator(verbose=1).fit(X)
    capsys.readouterr()
    fitted.transform(X)
    assert capsys.readouterr().err.startswith("features")


@pytest.mark.parametrize("verbose", [0, False, None])
def test_nothing_is_written_unless_asked(capsys, verbose):
    estimator(verbose=verbose).fit(X).transform(X)
    assert capsys.readouterr() == ("", "")


def test_bar_of_the_functions(capsys):
    landmarks = select_landmarks(X, n_landmarks=10, random_state=0, verbose=1)
    assert "scores, level 0" in capsys.readouterr().err
    approximation = approximate(X, landmarks, verbose=1)
    approximation.features()
    assert "features" in capsys.readouterr().err
    leverage_scores(X, ridge=1.0, landmarks=landmarks, verbose=1)
    assert "scores" in capsys.readouterr().err


def test_progress_changes_no_result():
    quiet, shown = estimator(), estimator(verbose=1)
    np.testing.assert_array_equal(quiet.fit_transform(X), shown.fit_transform(X))


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_bar_is_drawn_over_itself_on_a_terminal():
    screen = Terminal()
    bar = Bar(screen, width=10)
    for done in range(5):
        bar("features", done, 4)
    written = screen.getvalue()
    assert written.count("\n") == 1
    assert written.endswith("\n")
    assert written.startswith("\r")
    assert "\rfeatures" in written
    last = written.split("\r")[-1]
    assert "██████████ 100 %" in last


def test_bar_starts_anew_with_each_stage():
    screen = Terminal()
    bar = Bar(screen, width=4)
    for stage in ("first", "second"):
        bar(stage, 0, 2)
        bar(stage, 2, 2)
    first, second, rest = screen.getvalue().split("\n")
    assert "second" not in first
    assert "first" not in second
    assert rest == ""


def test_log_file_gets_one_line_per_stage():
    log = io.StringIO()
    bar = Bar(log)
    for stage in ("first", "second"):
        for done in range(101):
            bar(stage, done, 100)
    lines = log.getvalue().splitlines()
    assert [line.split()[0] for line in lines] == ["first", "second"]
    assert "\r" not in log.getvalue()


def test_bar_of_nothing_to_do():
    log = io.StringIO()
    Bar(log)("empty", 0, 0)
    assert "100 %" in log.getvalue()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_hook_hears_of_every_pass_from_beginning_to_end(n_jobs):
    heard = []
    engine = Threads(n_jobs, lambda *event: heard.append(event))
    engine.reduce(lambda block: len(block.X), as_source(X), (), "counting")
    stages, done, total = zip(*heard, strict=True)
    assert set(stages) == {"counting"}
    assert set(total) == {3}
    assert done[0] == 0
    assert done[-1] == 3
    assert list(done) == sorted(done)


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
def test_callbacks_hear_of_every_stage(method):
    recorder = Recorder()
    getattr(estimator().set_callbacks(recorder), method)(X)
    assert_balanced(recorder.events)
    assert recorder.events[0][:2] == ("setup", "Nystroem")
    assert recorder.events[-1][:2] == ("teardown", "Nystroem")
    begun = [task for _, _, task, _ in recorder.of("begin")]
    assert begun[0] == "fit"
    assert "scores, level 0" in begun
    last = "features" if method == "fit_transform" else "error"
    assert any(last in task for task in begun)


@callback_only
def test_each_stage_is_told_in_ten_steps():
    recorder = Recorder()
    estimator().set_callbacks(recorder).fit_transform(X)
    steps = [path for _, _, _, path in recorder.of("begin") if len(path) == 3]
    features = [path for path in steps if path[1][0] == "features"]
    assert [path[2][1] for path in features] == list(range(10))


@callback_only
def test_without_callbacks_none_are_called_and_nothing_is_kept():
    plain, heard = estimator(), estimator().set_callbacks(Recorder())
    np.testing.assert_array_equal(plain.fit_transform(X), heard.fit_transform(X))
    heard.set_callbacks()
    assert set(vars(plain)) == set(vars(heard))


@callback_only
def test_fits_twice_with_a_callback():
    recorder = Recorder()
    fitted = estimator().set_callbacks(recorder)
    first = fitted.fit_transform(X)
    once = len(recorder.events)
    np.testing.assert_array_equal(fitted.fit_transform(X), first)
    assert len(recorder.events) == 2 * once
    assert_balanced(recorder.events)


@callback_only
def test_pickles_with_a_callback():
    fitted = estimator().set_callbacks(Recorder()).fit(X)
    loaded = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(loaded.transform(X), fitted.transform(X))
    loaded.fit(X)


@callback_only
def test_clone_with_a_callback_fits():
    copy = clone(estimator().set_callbacks(Recorder()))
    assert copy.fit_transform(X).shape == (3000, 10)


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
def test_callbacks_of_a_grid_search_reach_into_it():
    recorder = PropagatedRecorder()
    y = (X[:500, 0] > 0).astype(int)
    model = make_pipeline(estimator(), LogisticRegression(max_iter=1000))
    search = GridSearchCV(model, {"nystroem__gamma": [0.1, 1.0]}, cv=2)
    search.set_callbacks(recorder).fit(X[:500], y)
    names = {name for _, name, _, _ in recorder.of("begin")}
    assert "Nystroem" in names


@callback_only
def test_bar_of_scikit_learn(capsys):
    pytest.importorskip("rich")
    from sklearn.callback import ProgressBar

    fitted = estimator().set_callbacks(ProgressBar()).fit(X)
    assert fitted.transform(X).shape == (3000, 10)
