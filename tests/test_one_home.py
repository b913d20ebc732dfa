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
        (
            "columns of K are evaluated",
            r"\.evaluator\(",
            ["linalg/cross_kernel.py", "kernels/"],
        ),
        (
            "float32 is told from float64",
            r"== np\.float32|FLOAT32_NOISE",
            [
                "_precision.py",
                "linalg/cross_kernel.py",
                "_arrays.py",
                "kernels/distances.py",
            ],
        ),
        ("a trace error is made", r"(?<!Max)TraceError\(", ["linalg/errors.py"]),
        (
            "BLAS is held at one thread",
            r"single_threaded_blas\(",
            ["engines/", "samplers/base.py"],
        ),
        (
            "the clock is read",
            r"perf_counter\(",
            ["engines/", "samplers/base.py", "cli/"],
        ),
        ("a seed is made", r"check_random_state", ["_random.py"]),
        ("weights are asked for", r"(source|block|rows)\.weights is", ["sources/"]),
        ("NumPy is told from torch", r"hasattr\(\w+, \"detach\"", ["_arrays.py"]),
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
