"""A small part of the fuzzing, with fixed numbers.

`python3 dev.py fuzz` runs new numbers; what it found has a test of its own, where the
code is. Faults that its checks must find are in the table of planted faults.
"""

import numpy as np
import pytest
from fuzz import judging, models
from fuzz.cases import FITTED, case_of
from fuzz.running import run
from lists import SAMPLERS

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
    assert fitted == {type(each).__name__ for each in FITTED} | {"NoneType"}


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
