"""The table of planted faults is right, and its runner tells who survives."""

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from mutants.__main__ import chosen
from mutants.faults import PACKAGE, Fault, _pattern, read
from mutants.trial import Copies, Nursery, imported_from, tried

ROOT = Path(__file__).parents[1]
FAULTS = read()
#: A fault that a fast test finds.
SIZE = Fault(
    symbol="FixedSize.__str__",
    text='return f"n_landmarks={self.n_landmarks}"',
    becomes='return f"n_landmarks={self.n_landmarks + 1}"',
    why="the goal says another number",
    tests=("test_draws.py::test_probability_1_keeps_and_probability_0_drops",),
)


def test_every_fault_can_be_planted_and_its_tests_exist():
    wrong = {str(fault): fault.problem() for fault in FAULTS}
    assert not {name: what for name, what in wrong.items() if what}
    assert len(FAULTS) >= 60


def test_no_fault_stands_twice():
    planted = Counter(
        (fault.symbol, fault.file, fault.text, fault.becomes) for fault in FAULTS
    )
    named = Counter(map(str, FAULTS))
    assert max(planted.values()) == 1
    assert max(named.values()) == 1


def test_every_part_of_the_library_has_faults():
    files = {fault.locate()[0] for fault in FAULTS}
    folders = {path.parent for path in PACKAGE.rglob("*.py") if path.name[0] != "_"}
    assert {path.parent for path in files} >= folders


def test_a_row_finds_its_code_whatever_the_line_breaks():
    rows = [
        Fault("f", "g(a, b)", "0", "", ()),
        Fault("f", "g(\n  a,\n  b,\n)", "0", "", ()),
    ]
    for text in ("g(a, b)", "g(\n        a,\n        b,\n    )"):
        for row in rows:
            assert len(_pattern(row.text).findall(text)) == 1
    assert not _pattern("a + b").findall("aa + b, a + bb")


def test_what_is_wrong_with_a_row_is_told():
    assert "found 0 times" in replace(SIZE, text="no such text").problem()
    assert SIZE.problem() is None
    assert replace(SIZE, text="self").problem().startswith("its text is found")
    assert "no test" in replace(SIZE, tests=("test_draws.py::test_none",)).problem()
    assert "no test" in replace(SIZE, tests=()).problem()
    assert replace(SIZE, becomes="return (").problem() is not None
    assert replace(SIZE, symbol="no_such").problem() is not None


def test_a_word_chooses_faults():
    some = chosen(FAULTS, "GAIN")
    assert 0 < len(some) < len(FAULTS)
    assert all("gain" in f"{f} {f.tests}".lower() for f in some)


@pytest.fixture(scope="module")
def copies():
    with Copies() as made:
        yield made


@pytest.fixture(scope="module")
def nursery():
    return Nursery()


def test_copies_are_what_tests_import_and_the_tree_stays(copies):
    file = SIZE.locate()[0]
    before = file.read_text("utf-8")
    copy = copies.with_fault(SIZE, 0)
    assert imported_from(copy) == copy / "nystrom"
    planted = (copy / "nystrom" / file.relative_to(PACKAGE)).read_text("utf-8")
    assert SIZE.becomes in planted
    assert file.read_text("utf-8") == before


def test_a_fault_survives_where_no_test_fails(copies, nursery):
    outcome = tried(SIZE, 1, copies, nursery)
    assert not outcome.killed
    assert outcome.said.startswith("survived: 1 passed")


def test_a_fault_is_killed_where_one_fails(copies, nursery):
    broken = replace(
        SIZE,
        symbol="bernoulli_from_keys",
        text="p = np.minimum(1.0, weight_factor * selected.sampling_weights)",
        becomes="p = 0.5 * selected.sampling_weights",
        tests=("test_draws.py::test_kept_rows_carry_their_probabilities_and_weights",),
    )
    assert tried(broken, 2, copies, nursery).killed


def test_a_fault_that_cannot_be_imported_is_none(copies, nursery):
    """Any test would fail: that says nothing of the one that is named."""
    broken = replace(
        SIZE,
        symbol="<base>",
        file="samplers/base.py",
        text="import numpy as np",
        becomes="import no_such_module",
    )
    outcome = tried(broken, 3, copies, nursery)
    assert not outcome.killed
    assert "did not run" in outcome.said


def test_the_command_lists_and_refuses():
    def run(*options):
        command = [sys.executable, "-m", "tests.mutants", *options]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    listed = run("--list")
    assert listed.returncode == 0
    assert len(listed.stdout.splitlines()) == len(FAULTS)
    none = run("-k", "no such word")
    assert none.returncode == 1
    assert "No fault has" in none.stderr
