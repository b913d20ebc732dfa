"""The page about a model: whole, quiet, for phones too, with words for pictures."""

import html
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_command import houses, run

from nystrom import load

pytest.importorskip("matplotlib", reason="the report needs nystrom[cli]")

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    table = houses()
    table["note"] = [f"a house with {i % 3} gardens and {i} trees" for i in range(400)]
    table.to_csv(folder / "t.csv", index=False, sep=";", decimal=",")
    for target, name, model in (
        ("price", "regression", "r"),
        ("town", "classification", "m"),
    ):
        words = ["--target", target, "-o", folder / model, "--report", folder / name]
        done = run("fit", folder / "t.csv", *words, "--quiet")
        assert (done.exit_code, done.output) == (0, "")
    found = {
        name: (folder / name).read_text(encoding="utf-8")
        for name in ("regression", "classification")
    }
    for name, of in (("regression", "r"), ("classification", "m")):
        found[f"{name} model"] = load(folder / of)
    return found | {"table": table, "folder": folder}


class Tags(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.found, self.text = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.parametrize("name", ["regression", "classification"])
def test_nothing_is_fetched_or_run_and_pictures_have_words(name, pages):
    tags = Tags(pages[name])
    names = [tag for tag, _ in tags.found]
    assert "script" not in names
    links = re.findall(r'(?:src|href)="([^"#][^"]*)"', pages[name])
    assert all(link.startswith("data:") for link in links)
    assert not re.findall(r"url\((?!#)", pages[name])
    pictures = [attributes for tag, attributes in tags.found if tag == "img"]
    assert len(pictures) == names.count("figure") >= (name == "regression")
    assert all(len(picture["alt"]) > 20 for picture in pictures)


def test_it_tells_what_the_summary_tells(pages):
    text = " ".join(Tags(pages["regression"]).text)
    for part in (
        "R²",
        "RMSE",
        "gradient boosting",
        "399 rows",
        "sold",
        "dropped: 399",
    ):
        assert part in text
    assert "rows of one class" in " ".join(Tags(pages["classification"]).text)


@pytest.mark.parametrize("name", ["regression", "classification"])
def test_the_code_on_the_page_gives_the_same_model(name, pages, monkeypatch):
    """Also from a file with semicolons, decimal commas, gaps, dates and text."""
    monkeypatch.chdir(pages["folder"])
    code = re.search(r"<code>(.*)</code>", pages[name], re.DOTALL)[1]
    found = {}
    exec(html.unescape(code), found)
    model, table = pages[f"{name} model"], found["table"]
    np.testing.assert_array_equal(
        model[-1].landmarks_.indices, found["model"][-1].landmarks_.indices
    )
    np.testing.assert_array_equal(model.predict(table), found["model"].predict(table))


def test_the_code_reads_what_the_command_reads(tmp_path, monkeypatch, rng):
    """A truth that is not known of all rows, blanks after commas; and a metric."""
    table = pd.DataFrame(rng.normal(size=(1300, 6)), columns=list("xabcde"))
    x = table["x"].to_numpy()
    table["town"] = rng.choice(["Ulm", "Bonn"], 1300)
    table["is_near"] = (np.abs(x) < 0.8).astype(object)
    table.loc[3, "is_near"], table.loc[4, "x"] = None, np.nan
    table.to_feather(tmp_path / "t.arrow")
    few = table[:200].astype(object)
    lines = few.where(few.notna(), "?").astype(str).to_numpy()
    lines = [", ".join(line) for line in [list(table), *lines.tolist()]]
    (tmp_path / "t.csv").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name in ("t.arrow", "t.csv"):
        words = ["-o", "m", "--report", "page", "--landmarks", 30, "--overwrite"]
        done = run("fit", name, "--target", "is_near", *words)
        assert done.exit_code == 0, done.output
        page = Path("page").read_text(encoding="utf-8")
        assert ("<td>learnt" in page) == (name == "t.arrow")
        found = {}
        exec(html.unescape(re.search(r"<code>(.*)</code>", page, re.DOTALL)[1]), found)
        np.testing.assert_array_equal(
            load("m").predict_proba(found["table"]),
            found["model"].predict_proba(found["table"]),
        )


def test_no_words_are_cut_off(tmp_path, rng):
    names = [f"a column with a long name, {i}" for i in range(9)]
    table = pd.DataFrame(rng.normal(size=(60, 9)), columns=names)
    table.assign(y=table[names[0]] > 0).to_csv(tmp_path / "t.csv", index=False)
    words = ["--target", "y", "-o", tmp_path / "m", "--report", tmp_path / "page"]
    assert run("fit", tmp_path / "t.csv", *words).exit_code == 0
    text = " ".join(Tags((tmp_path / "page").read_text(encoding="utf-8")).text)
    assert all(name in text for name in names)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_nothing_overflows_in_a_browser(pages, tmp_path):
    checks = pytest.importorskip("test_site", reason="the pages are not here")
    for name in ("regression", "classification"):
        (tmp_path / f"{name}.html").write_text(pages[name], encoding="utf-8")
    assert checks.in_browser.complaints(tmp_path) == []
