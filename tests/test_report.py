"""The page about a model: whole, quiet, for phones too, with words for pictures."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from test_command import houses, run

from nystrom import load
from nystrom.cli.tables import TableFile, parse_columns

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
    done = run("report", folder / "m", folder / "t.csv", "-o", folder / "later")
    assert done.exit_code == 0, done.output
    found = {
        name: (folder / name).read_text(encoding="utf-8")
        for name in ("regression", "classification", "later")
    }
    for name, of in (("regression", "r"), ("classification", "m"), ("later", "m")):
        found[f"{name} model"] = load(folder / of)
    return found | {"table": table, "folder": folder}


class Tags(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.found, self.ids, self.text = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        self.ids += [value for name, value in attributes if name == "id"]

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.parametrize("name", ["regression", "classification", "later"])
def test_nothing_is_fetched_or_run_and_pictures_have_words(name, pages):
    tags = Tags(pages[name])
    names = [tag for tag, _ in tags.found]
    assert "script" not in names
    assert "img" not in names
    links = re.findall(r'(?:src|href)="([^"#][^"]*)"', pages[name])
    assert links == ["data:,"]
    assert not re.findall(r"url\((?!#)", pages[name])
    pictures = [attributes for tag, attributes in tags.found if tag == "svg"]
    assert len(pictures) == names.count("figure") >= 3
    assert all(picture["role"] == "img" for picture in pictures)
    assert all(len(picture["aria-label"]) > 20 for picture in pictures)
    assert len(tags.ids) == len({*tags.ids})


def test_it_tells_what_the_summary_tells(pages):
    text = " ".join(Tags(pages["regression"]).text)
    for part in (
        "R²",
        "RMSE",
        "gradient boosting",
        "399 rows",
        "sold",
        "left out: 399",
    ):
        assert part in text
    assert "of each class" in " ".join(Tags(pages["classification"]).text)
    assert "predicted as each" in " ".join(Tags(pages["later"]).text)


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


def test_no_words_are_cut_off(tmp_path, rng):
    names = [f"a column with a long name, {i}" for i in range(9)]
    table = pd.DataFrame(rng.normal(size=(60, 9)), columns=names)
    table.assign(y=table[names[0]] > 0).to_csv(tmp_path / "t.csv", index=False)
    words = ["--target", "y", "-o", tmp_path / "m", "--report", tmp_path / "page"]
    assert run("fit", tmp_path / "t.csv", *words).exit_code == 0
    text = " ".join(Tags((tmp_path / "page").read_text(encoding="utf-8")).text)
    assert all(name in text for name in names)


@pytest.mark.parametrize("name", ["regression", "classification", "later"])
def test_there_is_one_effective_dimension_that_of_all_rows_at_alpha(name, pages):
    """Beside the landmarks, in the picture and in words: the same number."""
    about = pages[f"{name} model"].nystrom_summary_
    model, table = pages[f"{name} model"], pages["table"]
    rows = table.dropna(subset=about["target"])
    values = parse_columns(about["columns"], rows, TableFile("t.csv"))
    Z = model[:-1].transform(values)
    K = rbf_kernel(Z, gamma=about["gamma"])
    S = model[-1].landmarks_.indices
    approximated = K[:, S] @ np.linalg.pinv(K[np.ix_(S, S)], hermitian=True) @ K[S]
    ridged = approximated + about["alpha"] * np.eye(len(K))
    expected = np.trace(np.linalg.solve(ridged, approximated))
    assert about["effective_dimension"] == pytest.approx(expected, rel=1e-4)
    said = " ".join(" ".join(Tags(pages[name]).text).split())
    # Text of pictures is drawn as curves, and stands in a comment.
    said += " ".join(re.findall(r"<!--(.*?)-->", pages[name]))
    found = re.findall(r"effective dimension,? ([\d.]+\d)", said)
    assert {*found} == {f"{expected:.3g}"}
    assert len(found) >= 3
    assert f"λ = {about['alpha']:.2g} " in said


def test_eigenvalues_of_some_rows_stand_for_all(tmp_path, monkeypatch, pages):
    pages["table"].to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.setattr("nystrom.cli.learning.MAX_EIGENVALUE_ROWS", 200)
    words = ["--target", "price", "-o", tmp_path / "m", "--quiet"]
    assert run("fit", tmp_path / "t.csv", *words).exit_code == 0
    some = load(tmp_path / "m").nystrom_eigenvalues_
    all_rows = pages["regression model"].nystrom_eigenvalues_
    np.testing.assert_allclose(some[:3], all_rows[:3], rtol=0.2)


def test_rows_of_a_table_are_not_said_to_be_held_out(pages):
    """The model may have been fitted to them; how good it is was told when it was."""
    text = " ".join(Tags(pages["later"]).text)
    fitted = " ".join(Tags(pages["classification"]).text)
    assert fitted.count("80 rows held out") == text.count("80 rows held out") == 1
    assert "On 400 rows of" in text
    assert "400 rows held out" not in text
    assert "of rows held out" not in text


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("width", [360, 1400])
@pytest.mark.parametrize("name", ["regression", "classification"])
def test_nothing_overflows_in_a_browser(name, width, pages, tmp_path):
    """A script of the test's own asks the page how wide it is."""
    asked = (
        "<script>addEventListener('error', e => document.title = 'error');"
        "addEventListener('load', () => { const e = document.documentElement;"
        "document.title = e.scrollWidth + ' ' + e.clientWidth + ' ' +"
        "[...document.querySelectorAll('.grid td')].every("
        "c => c.getBoundingClientRect().height < 40) + ' ' +"
        "[...document.querySelectorAll('svg')].every("
        "s => s.getBoundingClientRect().height > 100) })</script>"
    )
    # In a frame of this width: windows have a least width of their own.
    inner = tmp_path / "inner.html"
    inner.write_text(pages[name] + asked, encoding="utf-8")
    outer = tmp_path / "outer.html"
    outer.write_text(
        f'<iframe src="inner.html" width="{width}" height="900" onload="setTimeout(()'
        ' => document.body.append(frames[0].document.title), 0)"></iframe>'
    )
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--allow-file-access-from-files",
            "--virtual-time-budget=3000",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--dump-dom",
            outer.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    found = re.search(r"</iframe>\s*(\d+) (\d+) (\w+) (\w+)", done.stdout)
    assert found, done.stdout[-500:]
    assert int(found[1]) <= int(found[2])
    assert (found[3], found[4]) == ("true", "true")  # numbers in one line, pictures
