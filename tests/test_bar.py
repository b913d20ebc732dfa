"""One bar: the share of the whole, the time left, and the line that they stand on."""

from __future__ import annotations

import io
import multiprocessing
import re
import sys
import threading
import warnings
from contextlib import ExitStack
from functools import partial

import numpy as np
import pytest
from terminal import Terminal, screen

from nystrom.engines import Bar, silent
from nystrom.engines import progress as bar_module
from nystrom.engines.base import ProgressHooks, expect_passes, progress_parts, show_note
from nystrom.engines.progress import ProgressEstimate, format_duration
from nystrom.estimators._inputs import warn
from nystrom.estimators._progress import progress_bar


class Clock:
    """Seconds that go by when they are told to."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    def wait(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(
        bar_module, "ProgressEstimate", partial(ProgressEstimate, clock)
    )
    return clock


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: None)  # no worker


def run(course, clock, stage, seconds, n_tiles=10):
    """A pass that takes so long; the shares on the way."""
    shares = []
    for done in range(n_tiles + 1):
        course.tell(stage, done, n_tiles)
        shares.append(course.share)
        if done < n_tiles:
            clock.wait(seconds / n_tiles)
    return shares


# --- the share ------------------------------------------------------------------------


def test_parts_are_so_much_of_what_is_left():
    course = ProgressEstimate()
    with course.part(0.5):
        assert course.share == 0
    assert course.share == 0.5
    with course.part(0.5), course.part(0.2):
        pass
    assert course.share == 0.75


def test_passes_that_are_expected_are_alike():
    clock = Clock()
    course = ProgressEstimate(clock)
    course.expect(4)
    ends = [run(course, clock, f"pass {i}", 1.0)[-1] for i in range(4)]
    assert ends == pytest.approx([0.25, 0.5, 0.75, 1.0])


def test_a_pass_of_the_same_name_is_another_one():
    clock = Clock()
    course = ProgressEstimate(clock)
    course.expect(2)
    run(course, clock, "products", 1.0)
    assert run(course, clock, "products", 1.0)[0] == pytest.approx(0.5)


def test_more_passes_than_expected_do_not_set_it_back():
    clock = Clock()
    course = ProgressEstimate(clock)
    course.expect(2, about=True)
    shares = [s for i in range(9) for s in run(course, clock, f"pass {i}", 1.0)]
    assert shares == sorted(shares)
    assert shares[-1] < 1


def test_the_share_never_falls_and_stays_within_its_part(rng):
    """Whatever is planned, and whatever comes of it."""
    clock = Clock()
    course, shares = ProgressEstimate(clock), [0.0]
    with ExitStack() as stack:
        depth = 0
        for step in range(300):
            what = rng.integers(5)
            if what == 0 and depth < 6:
                stack.enter_context(course.part(rng.uniform()))
                depth += 1
            elif what == 1:
                course.expect(int(rng.integers(1, 5)), about=bool(rng.integers(2)))
            else:
                total = int(rng.integers(0, 4))
                course.tell(f"{rng.integers(3)}", int(rng.integers(total + 1)), total)
            clock.wait(rng.uniform())
            shares.append(course.share)
            left = course.left()
            assert left is None or (np.isfinite(left) and left >= 0), step
    shares.append(course.share)
    assert shares == sorted(shares)
    assert shares[-1] <= 1


# --- the time left --------------------------------------------------------------------


def test_the_time_left_is_right_where_the_plan_is():
    clock = Clock()
    course = ProgressEstimate(clock)
    first, second = progress_parts(Planned(course), 3.0, 1.0)
    with first:
        course.expect(1)
        run(course, clock, "long", 15.0)
        assert course.left() == pytest.approx(5.0)
        clock.wait(15.0)  # a pass that takes twice as long as it seemed
    with second:
        course.expect(1)
        course.tell("short", 0, 2)
        clock.wait(4.0)
        course.tell("short", 1, 2)
        assert course.left() == pytest.approx(4.0)  # by its own speed


def test_nothing_is_said_before_anything_is_known():
    assert ProgressEstimate().left() is None


def test_the_time_left_grows_with_the_plan():
    clock = Clock()
    course = ProgressEstimate(clock)
    course.expect(2, about=True)
    lefts = []
    for i in range(6):
        run(course, clock, f"pass {i}", 10.0)
        lefts.append(course.left())
    assert lefts[0] == pytest.approx(10.0)
    assert lefts[-1] == pytest.approx(30.0)  # half of those made, or so


class Planned:
    """A hook that has a course."""

    def __init__(self, course):
        self.part, self.expect = course.part, course.expect

    def __call__(self, stage, done, total):
        raise AssertionError


def test_a_plan_is_lost_on_who_shows_no_share():
    for hook in (None, silent, ProgressHooks(silent)):
        for part in progress_parts(hook, 1.0, 0.0):
            with part:
                pass
    expect_passes(silent, 3)
    heard = []
    show_note(lambda *event: heard.append(event), "so it is")
    assert heard == [("so it is", 1, 1)]


def test_parts_of_no_weight_and_parts_left_out():
    course = ProgressEstimate()
    first, second, third = progress_parts(Planned(course), 1.0, 0.0, 1.0)
    with first, second:
        pass
    assert course.share == pytest.approx(0.5)
    with third:
        pass
    assert course.share == pytest.approx(1.0)
    skipping = ProgressEstimate()
    _, last = progress_parts(Planned(skipping), 5.0, 1.0)
    with last:
        pass
    assert skipping.share == 1.0


# --- on a terminal --------------------------------------------------------------------


def percents(text):
    return [int(number) for number in re.findall(r"(\d+) %", text)]


def drawn(clock, stages=("first", "a much longer name of a stage", "last"), **options):
    terminal = Terminal()
    with Bar(terminal, name="Fit", **options) as bar:
        bar.expect(len(stages))
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
    told = percents(written)
    assert told == sorted(told)
    assert told.count(100) == 1
    assert "first" in written
    assert re.search(r"\d+ s left", written)


def test_not_every_tile_is_drawn(clock):
    terminal = Terminal()
    with Bar(terminal, name="Fit") as bar:
        for done in range(100_000):
            clock.wait(1e-5)
            bar("stage", done, 100_000)
    assert terminal.getvalue().count("\r") <= 12


@pytest.mark.parametrize("columns", [20, 40, 60, 132])
def test_no_line_is_longer_than_the_terminal(clock, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    written = drawn(clock, ["a stage whose name is told in many words, or more"])
    for text in written.split("\r"):
        assert len(text.strip("\n")) < columns
    assert len(screen(written, columns)) == 2  # the second is empty


def test_a_shorter_text_covers_a_longer_one(clock):
    terminal = Terminal()
    with Bar(terminal, name="Fit") as bar:
        clock.wait(1.0)
        bar("a stage with a long name", 0, 2)
        clock.wait(1.0)
        bar("brief", 1, 2)
        (line,) = screen(terminal.getvalue())
        assert line.endswith("  brief")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_fails_ends_its_line(clock, error):
    terminal = Terminal()

    def fit():
        with Bar(terminal, name="Fit") as bar:
            bar.expect(1)
            clock.wait(1.0)
            bar("sums", 1, 2)
            raise error

    with pytest.raises(error):
        fit()
    written = terminal.getvalue()
    assert screen(written) == [
        f"Fit {'█' * 15}{'·' * 15}  50 %  1.0 s, stopped in sums",
        "",
    ]
    assert "100 %" not in written


def test_what_fails_in_a_part_has_not_done_it(clock):
    log = io.StringIO()

    def fit():
        with Bar(log, name="Fit") as bar, bar.part(0.9), bar.part(0.5):
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fit()
    assert "  0 %  " in log.getvalue()


def test_what_fails_at_once_says_so():
    log = io.StringIO()
    with pytest.raises(ValueError, match="no"), Bar(log, name="Fit"):
        raise ValueError("no")
    assert log.getvalue().endswith("0 %  0.0 s, stopped\n")


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
        clock.wait(0.5)
        one("stage", 2, 2)
    lines = screen(terminal.getvalue())
    assert [line[:3] for line in lines] == ["Two", "One", ""]


def test_bars_of_threads_write_whole_lines():
    terminal = Terminal()

    def fit(name):
        with Bar(terminal, name=name) as bar:
            for done in range(200):
                bar("stage", done, 199)

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


def test_hooks_may_come_from_many_threads(clock):
    log = io.StringIO()
    with Bar(log, name="Fit") as bar:

        def tell(worker):
            for done in range(500):
                bar(f"stage {worker}", done, 500)

        threads = [threading.Thread(target=tell, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert log.getvalue() == f"Fit {'█' * 30} 100 %  0.0 s\n"


def test_a_warning_is_a_line_of_its_own(clock, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(
            warnings, "showwarning", lambda message, *_: terminal.write(f"{message}\n")
        )
        with Bar(name="Fit") as bar:
            clock.wait(1.0)
            bar("sums", 1, 2)
            warn("this is amiss")
    lines = screen(terminal.getvalue())
    assert lines[0] == "this is amiss"
    assert lines[1].startswith("Fit █")
    assert lines[2:] == [""]


def test_a_note_stands_above_the_bar(clock):
    terminal = Terminal()
    with Bar(terminal, name="Fit") as bar:
        ProgressHooks(bar).note("about 12 landmarks")
        clock.wait(1.0)
        bar("sums", 1, 2)
    first, second, _ = screen(terminal.getvalue())
    assert first == "about 12 landmarks"
    assert second.startswith("Fit █")


# --- in a log -------------------------------------------------------------------------


def log_of(clock, n_tiles, seconds):
    log = io.StringIO()
    with Bar(log, name="Fit") as bar:
        bar.expect(1)
        for done in range(n_tiles):
            clock.wait(seconds / n_tiles)
            bar("sums", done + 1, n_tiles)
    assert "\r" not in log.getvalue()
    return log.getvalue().splitlines()


def test_a_short_fit_is_one_line_in_a_log(clock):
    assert log_of(clock, 1000, 3.0) == [f"Fit {'█' * 30} 100 %  3.0 s"]


@pytest.mark.parametrize("n_tiles", [10, 100_000])
def test_a_log_has_few_lines_whatever_the_number_of_rows(clock, n_tiles):
    assert len(log_of(clock, n_tiles, 60.0)) <= 12


def test_a_log_of_a_day_has_few_lines(clock):
    lines = log_of(clock, 100_000, 86_400.0)
    assert 10 < len(lines) < 60
    share, _, hours, left = re.search(
        r"(\d+) %  ((\d+) h \d\d min), (\d+) h \d\d min left  sums$", lines[-4]
    ).groups()
    assert int(hours) == pytest.approx(0.24 * int(share), abs=1)
    assert int(left) == pytest.approx(23.5 - int(hours), abs=1)
    told = percents("\n".join(lines))
    assert told == sorted(told)
    assert told.count(100) == 1


# --- streams --------------------------------------------------------------------------


def test_characters_that_the_stream_has():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", write_through=True)
    with Bar(stream, name="Fit"):
        pass
    assert raw.getvalue() == b"Fit " + b"#" * 30 + b" 100 %  0.0 s\n"


class Closed(Terminal):
    def write(self, text):
        raise BrokenPipeError


@pytest.mark.parametrize("stream", [Closed(), io.StringIO()], ids=["broken", "closed"])
def test_nobody_to_tell_is_no_failure(stream):
    if not isinstance(stream, Closed):
        stream.close()
    with Bar(stream, name="Fit") as bar:
        bar("sums", 0, 1)
        bar("sums", 1, 1)


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_who_is_patient_hears_of_long_calls_alone(stream, clock):
    brief, long = stream(), stream()
    for written, seconds in ((brief, 0.2), (long, 2.0)):
        with Bar(written, name="Fit", patience=1.0) as bar:
            for done in range(3):
                bar("sums", done, 2)
                clock.wait(seconds / 2)
    assert brief.getvalue() == ""
    *_, line, empty = screen(long.getvalue())
    assert line.endswith("100 %  3.0 s")
    assert empty == ""


def test_no_standard_error_at_all(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    with progress_bar("Fit", 1) as bar:
        bar("sums", 1, 1)


def test_a_worker_process_writes_whole_lines(monkeypatch):
    monkeypatch.setattr(multiprocessing, "parent_process", object)
    terminal = Terminal()
    with Bar(terminal, name="Fit") as bar:
        bar("sums", 1, 2)
    assert terminal.getvalue() == f"Fit {'█' * 30} 100 %  0.0 s\n"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.04, "0 s"),
        (59.4, "59 s"),
        (59.96, "1 min 00 s"),
        (119.7, "2 min 00 s"),
        (3599.9, "1 h 00 min"),
        (93_600, "26 h 00 min"),
    ],
)
def test_times_as_people_say_them(seconds, said):
    assert format_duration(seconds) == said


def test_tenths_of_a_second_passed():
    assert format_duration(3.14159, tenths=True) == "3.1 s"


# --- a hook that nobody begins or ends ------------------------------------------------


def test_each_pass_is_a_whole():
    log = io.StringIO()
    bar = Bar(log, width=4)
    for stage in ("first", "second"):
        for done in range(101):
            bar(stage, done, 100)
    assert log.getvalue() == "first ████ 100 %  0.0 s\nsecond ████ 100 %  0.0 s\n"


def test_a_pass_that_did_not_end_is_no_pass_done():
    log = io.StringIO()
    bar = Bar(log, width=4)
    bar("first", 1, 2)
    bar("second", 0, 1)
    bar("second", 1, 1)
    first, second = log.getvalue().splitlines()
    assert "100 %" not in first
    assert "100 %" in second
    with bar.part(0.5):
        bar.expect(2)


def test_a_bar_of_nothing_to_do():
    log = io.StringIO()
    Bar(log)("empty", 0, 0)
    assert "100 %" in log.getvalue()
