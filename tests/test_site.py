"""The check of the built pages in a browser notices faults."""

import importlib.util
import re
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "docs" / "in_browser.py"
if not SCRIPT.exists():
    pytest.skip("the pages are not here", allow_module_level=True)
spec = importlib.util.spec_from_file_location("in_browser", SCRIPT)
in_browser = importlib.util.module_from_spec(spec)
spec.loader.exec_module(in_browser)

HEAD = '<!doctype html><meta name="viewport" content="width=device-width"><article>'
GOOD = HEAD + "<p>Words that wrap.</p><pre style='overflow: auto'>" + "code " * 99
WRONG = {
    "wide.html": (HEAD + "<p>" + "x" * 200, "is .* pixels wide"),
    "cut.html": (
        "<div style='overflow: hidden'>" + HEAD + "<p style='width: 500px'>Cut off",
        'cuts off "Cut off"',
    ),
    "long.html": (
        "<div style='overflow: hidden'>" + HEAD + "<h1>" + "Name" * 30,
        'cuts off "NameName',
    ),
    "picture.html": (HEAD + "<img src='none.png' alt='nothing'>", "has no .*none.png"),
    "console.html": (HEAD + "<script>console.error('oh')</script>", "oh"),
    "fetched.html": (
        HEAD + "<script src='http://other.example/a.js'></script>",
        "fetches http://other",
    ),
    "formula.html": (HEAD + "<span class='math'>x^2</span>", r"does not draw x\^2"),
    "search.html": (HEAD + "<div id='search-results'></div>", "finds nothing"),
}


@pytest.mark.skipif(in_browser.CHROMIUM is None, reason="no Chromium on this machine")
def test_each_fault_of_a_page_is_named_and_a_good_page_is_not(tmp_path):
    (tmp_path / "good.html").write_text(GOOD)
    for name, (text, _) in WRONG.items():
        (tmp_path / name).write_text(text)
    found = in_browser.complaints(tmp_path)
    for name, (_, complaint) in WRONG.items():
        assert [line for line in found if re.search(complaint, line)], (name, found)
    assert not [line for line in found if "good.html" in line]
