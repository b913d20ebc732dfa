"""Each thing has one home; what would be written a second time is found here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import nystrom

PACKAGE = Path(nystrom.__file__).parent
SOURCES = {
    path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(PACKAGE.rglob("*.py"))
}


@pytest.mark.parametrize(
    ("what", "pattern", "homes"),
    [
        ("columns of K are evaluated", r"\.against\(", ["columns.py", "kernels/"]),
        (
            "float32 is told from float64",
            r"== np\.float32|FLOAT32",
            ["precision.py", "columns.py", "_arrays/", "kernels/squared_distances.py"],
        ),
        ("a trace error is made", r"(?<!Max)TraceError\(", ["trace_error.py"]),
        (
            "BLAS is held at one thread",
            r"single_threaded_blas\(",
            ["engines/", "samplers/choosing.py"],
        ),
        ("the clock is read", r"perf_counter\(", ["engines/", "samplers/choosing.py"]),
        ("a seed is made", r"check_random_state", ["randomness.py"]),
        ("weights are asked for", r"(source|block|rows)\.weights is", ["sources/"]),
        ("NumPy is told from torch", r"hasattr\(\w+, \"detach\"", ["_arrays/"]),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)
def test_it_stands_in_one_place(what, pattern, homes):
    elsewhere = [
        name
        for name, text in SOURCES.items()
        if re.search(pattern, text) and not name.startswith(tuple(homes))
    ]
    assert elsewhere == [], f"{what} in {', '.join(homes)}; also here"


def test_names_in_a_folder_differ_by_more_than_an_ending():
    """gain and gains, pivots and pivoted, archive and archives: which is which?"""
    folders = {}
    for name in SOURCES:
        path = Path(name)
        folders.setdefault(path.parent, set()).add(path.stem.strip("_"))
    for folder, stems in folders.items():
        for a in stems:
            for b in stems - {a}:
                assert not (b.startswith(a) and len(b) - len(a) <= 2), (folder, a, b)


ROOT = Path(__file__).parents[1]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page):
    """So that the map stays true when something moves."""
    text = re.sub(r"\{ref\}`.*?`", "", page.read_text(encoding="utf-8"))
    named = re.findall(r"`([\w/]+\.py|[\w/]+/)`", text)
    folders = ("src/nystrom", "tests", "benchmarks", "examples", "docs")
    known = {str(p.relative_to(ROOT)) for p in ROOT.glob("*.py")}
    known |= {f"{folder}/" for folder in folders} | {"build/figures/"}
    for folder in folders:
        for path in (ROOT / folder).rglob("*"):
            name = path.relative_to(ROOT).as_posix()
            known.add(name + "/" * path.is_dir())
    missing = [
        name
        for name in named
        if not any(path == name or path.endswith(f"/{name}") for path in known)
    ]
    assert missing == []
