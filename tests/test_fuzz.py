"""A small part of the fuzzing with fixed numbers, and faults that its checks must find.

`python3 dev.py fuzz` runs new numbers; what it found has a test of its own, where the
code is.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from fuzz import judging, models
from fuzz.cases import case_of
from fuzz.running import run
from lists import ESTIMATORS, SAMPLERS

from nystrom import _precision as precision
from nystrom.linalg import errors as trace_error
from nystrom.linalg.factor import Factor
from nystrom.models.linear_map import LinearMap
from nystrom.persistence import files as model_file
from nystrom.samplers.base import Sampler

pytestmark = pytest.mark.usefixtures("one_blas_thread")

#: Numbers that the suite runs, in so many parts.
FITS, MODELS, PARTS = range(120), range(300), 6


def wrong(judged, numbers):
    """The numbers that are judged wrong, and why."""
    verdicts = {number: judged(number) for number in numbers}
    return {number: v.what for number, v in verdicts.items() if v.kind == "wrong"}


@pytest.mark.parametrize("part", range(PARTS))
def test_random_fits_are_right_or_refused(part):
    assert wrong(judging.judged, FITS[part::PARTS]) == {}


@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_model_files_are_refused(part):
    assert wrong(models.judged, MODELS[part::PARTS]) == {}


def test_a_case_is_made_from_its_number_alone():
    for number in range(30):
        one, two = case_of(number), case_of(number)
        assert str(one) == str(two)
        assert np.array_equal(one.rows.exact, two.rows.exact)
        assert np.array_equal(one.y, two.y)
    for number in range(30):
        assert models.case_of(number).data() == models.case_of(number).data()


def test_everything_of_the_package_has_its_turn():
    cases = [case_of(number) for number in range(600)]
    assert {case.options["sampler"] for case in cases} == set(SAMPLERS)
    fitted = {type(case.estimator).__name__ for case in cases}
    assert fitted == {type(each).__name__ for each in ESTIMATORS} | {"NoneType"}


# --- planted faults -----------------------------------------------------------------


def told_too_small(monkeypatch):
    of_all = trace_error.TraceError.from_sums

    def less(left, whole, *rest, **options):
        return of_all(0.9 * left, whole, *rest, **options)

    monkeypatch.setattr(trace_error.TraceError, "from_sums", less)


def rank_lost(monkeypatch):
    monkeypatch.setattr(precision, "ROUNDING_UNITS", 1e11)


def features_too_large(monkeypatch):
    root = Factor.full_root.func
    monkeypatch.setattr(Factor, "full_root", property(lambda f: 1.001 * root(f)))


def predictions_shrunk(monkeypatch):
    call = LinearMap.__call__
    monkeypatch.setattr(
        LinearMap,
        "__call__",
        lambda self, *a, **k: call(replace(self, dual=0.9 * self.dual), *a, **k),
    )


def a_landmark_too_few(monkeypatch):
    call = Sampler.__call__

    def fewer(self, *args, **options):
        landmarks = call(self, *args, **options)
        return landmarks[: max(1, len(landmarks) - 1)]

    monkeypatch.setattr(Sampler, "__call__", fewer)


def another_exception(monkeypatch):
    monkeypatch.setattr(Sampler, "__call__", lambda *args, **options: {}["landmarks"])


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (told_too_small, "error told"),
        (rank_lost, "rank|is too small|error told|landmark twice"),
        (features_too_large, "above k|error told|off"),
        (predictions_shrunk, "predictions off|training error|eigenvalues|inertia"),
        (a_landmark_too_few, "asked for"),
        (another_exception, "KeyError"),
    ],
)
def test_planted_faults_are_found(fault, found, monkeypatch):
    fault(monkeypatch)
    numbers = iter(range(200))
    what = next(
        (v.what for v in map(judging.judged, numbers) if v.kind == "wrong"), None
    )
    assert what is not None, "no case shows it"
    assert re.search(found, what), what


def no_limits(monkeypatch):
    for name in ("check_entries", "check_schema", "check_arrays"):
        monkeypatch.setattr(model_file, name, lambda *args: None)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited there alone")
def test_files_without_limits_are_found(monkeypatch):
    no_limits(monkeypatch)
    telling = [
        number
        for number in range(3000)
        if models.case_of(number).way.__name__ in ("declares_more", "sparse_bomb")
    ]
    assert any(models.judged(number).kind == "wrong" for number in telling)


def test_a_case_that_hangs_or_ends_its_process_is_told(tmp_path, monkeypatch):
    (tmp_path / "endless.py").write_text(
        "import os, time\n"
        "from collections import namedtuple\n"
        "Verdict = namedtuple('Verdict', 'kind what')\n"
        "def judged(number):\n"
        "    while number == 2: time.sleep(1)\n"
        "    if number == 5: os._exit(3)\n"
        "    return Verdict('right', '')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = {}
    counts = run("endless", 0, told=found.__setitem__, n_cases=8, n_jobs=1, deadline=5)
    assert counts == {"right": 6, "wrong": 2}
    assert "in judged" in found[2]
    assert "ended with 3" in found[5]
