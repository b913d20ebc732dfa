"""One bar: the share of the work, the time left, and the line that they stand on."""

import io
import multiprocessing
import re
import sys
import threading
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from terminal import Terminal, screen

from nystrom.engines import Bar
from nystrom.engines import progress as bar_module
from nystrom.engines.base import ProgressHooks, report_work
from nystrom.engines.progress import PassBars, WorkEstimate, format_duration
from nystrom.estimators._progress import call_context, warn


class Clock:
    """Seconds that pass when `wait` says so."""

    now = 100.0

    def __call__(self):
        return self.now

    def wait(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(bar_module, "time", SimpleNamespace(monotonic=clock))
    return clock


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: None)  # no worker


def run(work, clock, stage, evaluations, n_tiles=10, speed=1.0):
    """A pass of so many evaluations, `speed` a second; the shares on the way."""
    shares = []
    work.begin_pass(stage, evaluations)
    for done in range(n_tiles + 1):
        work.tell(stage, done, n_tiles)
        shares.append(work.share)
        if done < n_tiles:
            clock.wait(evaluations / n_tiles / speed)
    return shares


# --- the share and the time left ------------------------------------------------------


def test_the_share_is_that_of_the_evaluations(clock):
    work = WorkEstimate(passes=2, selections=1)
    work.expect(selection=200, per_pass=400)
    work.count(100)  # outside of passes
    assert work.share == pytest.approx(0.1)
    assert run(work, clock, "scores", 100)[-1] == pytest.approx(0.2)
    assert run(work, clock, "sums", 400)[-1] == pytest.approx(0.6)
    assert run(work, clock, "sums", 400)[5] == pytest.approx(0.8)


def test_the_time_left_is_right_at_an_even_speed(clock):
    work = WorkEstimate(passes=1, selections=2)
    work.expect(selection=100, per_pass=400)
    for evaluations in (100, 400):
        run(work, clock, "pass", evaluations, speed=10.0)
        left = work.seconds_left()
        assert left == pytest.approx((1000 - work.done) / 10)
    work.expect(selection=100, per_pass=400)  # the second selection was expected
    assert work.expected == 1000


def test_work_before_the_plan_is_a_small_share():
    work = WorkEstimate(selections=1)
    assert run(work, Clock(), "variance", 100)[-1] <= 0.05
    work.expect(10_000, 10_000)
    assert run(work, Clock(), "scores", 10_000)[-1] == pytest.approx(0.5, abs=0.1)


def test_more_work_than_expected_goes_on_below_the_end(clock):
    work = WorkEstimate()
    work.expect(900, 0)
    shares = [s for i in range(4) for s in run(work, clock, f"pass {i}", 1000)]
    assert shares == sorted(shares)
    assert shares[-1] < 1
    assert work.seconds_left() == pytest.approx(1000)  # a quarter of what was done


def test_a_pass_that_was_not_announced_counts_its_rows():
    work = WorkEstimate(passes=2)
    for done in (0, 1, 2, 0, 1):  # the same stage again is another pass
        work.tell("products", done, 2)
    assert work.share == pytest.approx(0.75)


def test_the_share_never_falls(rng, clock):
    """Whatever is expected, and whatever is done."""
    work, shares = WorkEstimate(2, 3), [0.0]
    assert work.seconds_left() is None
    for step in range(300):
        action, size = rng.integers(4), float(rng.integers(1000))
        if action == 0:
            work.expect(size, rng.integers(1000))
        elif action == 1:
            work.count(size)
        elif action == 2:
            work.begin_pass(f"{rng.integers(3)}", size)
        else:
            total = int(rng.integers(0, 4))
            work.tell(f"{rng.integers(3)}", int(rng.integers(total + 1)), total)
        clock.wait(rng.uniform())
        shares.append(work.share)
        left = work.seconds_left()
        assert left is None or (np.isfinite(left) and left >= 0), step
    assert shares == sorted(shares)
    assert shares[-1] <= 1


# --- hooks ----------------------------------------------------------------------------


def test_hooks_get_what_they_have_a_method_for():
    events, work = [], WorkEstimate()
    work.__class__ = type("Hook", (WorkEstimate,), {"__call__": WorkEstimate.tell})
    hooks = ProgressHooks(lambda *event: events.append(event), work)
    report_work(hooks, "expect", 100, 100)
    report_work(hooks, "begin_pass", "sums", 100)
    hooks("sums", 1, 2)
    report_work(hooks, "count", 50)
    report_work(hooks, "note", "so it is")
    assert events == [("sums", 1, 2), ("so it is", 1, 1)]
    assert work.done >= 100


# --- on a terminal --------------------------------------------------------------------


def percents(text):
    return [int(number) for number in re.findall(r"(\d+) %", text)]


def drawn(clock, stages=("first", "a much longer name of a stage", "last"), **options):
    terminal = Terminal()
    with Bar(terminal, name="Fit", passes=len(stages), **options) as bar:
        for stage in stages:
            for done in range(101):
                clock.wait(0.05)
                bar(stage, done, 100)
    return terminal.getvalue()


def test_one_line_over_all_stages(clock):
    written = drawn(clock)
    line, empty = screen(written)
    assert re.fullmatch(f"Fit {'█' * 30} 100 %  15.\\d s", line)
    assert empty == ""
    shown = percents(written)
    assert shown == sorted(shown)
    assert shown.count(100) == 1
    assert "first" in written
    left = [int(seconds) for seconds in re.findall(r"(\d+) s left", written)]
    assert left == sorted(left, reverse=True)
    assert left[0] == pytest.approx(14, abs=1)  # not before the first second


def test_not_every_tile_is_drawn(clock):
    terminal = Terminal()
    with Bar(terminal, name="Fit") as bar:
        for done in range(100_000):
            clock.wait(1e-5)
            bar("stage", done, 100_000)
    assert terminal.getvalue().count("\r") <= 12


@pytest.mark.parametrize("columns", [20, 60, 132])
def test_no_line_is_longer_than_the_terminal(clock, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    written = drawn(clock, ["a stage whose name has many words, or even more of them"])
    for text in written.split("\r"):
        assert len(text.strip("\n")) < columns
    assert len(screen(written, columns)) == 2  # the second is empty


def test_a_shorter_text_covers_a_longer_one(clock):
    terminal = Terminal()
    with Bar(terminal, name="Fit") as bar:
        for stage, done in (("a stage with a long name", 0), ("brief", 1)):
            clock.wait(1.0)
            bar(stage, done, 2)
        (line,) = screen(terminal.getvalue())
        assert line.endswith("  brief")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_fails_ends_its_line(clock, error):
    terminal = Terminal()

    def fit():
        with Bar(terminal, name="Fit") as bar:
            clock.wait(1.0)
            bar("sums", 1, 2)
            raise error

    with pytest.raises(error):
        fit()
    written = terminal.getvalue()
    stopped = f"Fit {'█' * 15}{'·' * 15}  50 %  1.0 s, stopped in sums"
    assert screen(written) == [stopped, ""]
    assert "100 %" not in written


def test_of_two_bars_on_a_terminal_one_is_drawn(clock):
    terminal = Terminal()
    with Bar(terminal, name="One") as one:
        with Bar(terminal, name="Two") as two:
            for done in range(3):
                clock.wait(0.5)
                one("stage", done, 2)
                two("stage", done, 2)
                (line,) = screen(terminal.getvalue())
                assert line.startswith("One ")
        (first, second) = screen(terminal.getvalue())
        assert first.startswith("Two █")
        assert first.endswith("100 %  1.5 s")
        assert second == ""  # and drawn anew with the next tile
    lines = screen(terminal.getvalue())
    assert [line[:3] for line in lines] == ["Two", "One", ""]


def test_bars_of_threads_write_whole_lines():
    terminal = Terminal()

    def fit(name):
        with Bar(terminal, name=name) as bar:
            for done in range(200):
                bar(f"stage of {name}", done, 199)
                bar.count(7)

    threads = [threading.Thread(target=fit, args=(f"fit-{i}",)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = screen(terminal.getvalue())
    assert lines.pop() == ""
    ended = [line.split()[0] for line in lines if line.endswith(" s")]
    assert sorted(ended) == sorted(f"fit-{i}" for i in range(8))
    assert all(len(percents(line)) == 1 for line in lines)


def test_notes_and_warnings_stand_above_the_bar(clock, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(
            warnings, "showwarning", lambda message, *_: terminal.write(f"{message}\n")
        )
        with Bar(name="Fit") as bar:
            report_work(bar, "note", "about 12 landmarks")
            clock.wait(1.0)
            bar("sums", 1, 2)
            warn("this is amiss")
    *lines, last, empty = screen(terminal.getvalue())
    assert lines == ["about 12 landmarks", "this is amiss"]
    assert last.startswith("Fit █")
    assert empty == ""


# --- in a log, and on other streams ---------------------------------------------------


def log_of(clock, n_tiles, seconds):
    log = io.StringIO()
    with Bar(log, name="Fit") as bar:
        for done in range(n_tiles):
            clock.wait(seconds / n_tiles)
            bar("sums", done + 1, n_tiles)
    assert "\r" not in log.getvalue()
    return log.getvalue().splitlines()


def test_a_short_fit_is_one_line_in_a_log(clock):
    assert log_of(clock, 1000, 3.0) == [f"Fit {'█' * 30} 100 %  3.0 s"]


def test_a_log_of_a_day_has_few_lines(clock):
    lines = log_of(clock, 100_000, 86_400.0)
    assert 10 < len(lines) < 60
    share, _, hours, left = re.search(
        r"(\d+) %  ((\d+) h \d\d min), (\d+) h \d\d min left  sums$", lines[-4]
    ).groups()
    assert int(hours) == pytest.approx(0.24 * int(share), abs=1)
    assert int(left) == pytest.approx(23.5 - int(hours), abs=1)
    shown = percents("\n".join(lines))
    assert shown == sorted(shown)
    assert shown.count(100) == 1


def test_characters_that_the_stream_has():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", write_through=True)
    with Bar(stream, name="Fit"):
        pass
    assert raw.getvalue() == b"Fit " + b"#" * 30 + b" 100 %  0.0 s\n"


class Broken(Terminal):
    def write(self, text):
        raise BrokenPipeError


@pytest.mark.parametrize("stream", ["broken", "closed", "none"])
def test_a_stream_that_cannot_be_written_to_is_no_failure(stream, monkeypatch):
    closed = io.StringIO()
    closed.close()
    streams = {"broken": Broken(), "closed": closed, "none": None}
    monkeypatch.setattr(sys, "stderr", streams[stream])
    with call_context("Fit", 1) as bar:
        bar("sums", 0, 1)
        bar("sums", 1, 1)


def test_a_worker_process_writes_whole_lines(monkeypatch):
    monkeypatch.setattr(multiprocessing, "parent_process", object)
    terminal = Terminal()
    with Bar(terminal, name="Fit") as bar:
        bar("sums", 1, 2)
    assert terminal.getvalue() == f"Fit {'█' * 30} 100 %  0.0 s\n"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0 s"),
        (59.4, "59 s"),
        (59.96, "1 min 00 s"),
        (119.7, "2 min 00 s"),
        (3599.9, "1 h 00 min"),
        (93_600, "26 h 00 min"),
    ],
)
def test_times_as_people_write_them(seconds, text):
    assert format_duration(seconds) == text
    assert format_duration(3.14159, tenths=True) == "3.1 s"


# --- a hook without a call around it --------------------------------------------------


def test_each_pass_has_a_bar_of_its_own(capsys):
    """Also after one that did not come to its end."""
    bars = PassBars()
    bars("first", 1, 2)
    for stage in ("second", "third"):
        for done in range(101):
            bars(stage, done, 100)
    bars("empty", 0, 0)
    lines = capsys.readouterr().err.splitlines()
    names = ["first", "second", "third", "empty"]
    assert [line.split()[0] for line in lines] == names
