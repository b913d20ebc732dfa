"""The pages' own code runs, and prints what they say that it prints."""

import ast
import contextlib
import doctest
import io
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    "README.md",
    *(
        f"docs/{page}.md"
        for page in (
            "getting_started",
            "landmarks",
            "kernels",
            "regression",
            "classification",
            "components",
            "displays",
            "moving",
            "paper",
            "scaling",
            "gaussian_process",
            "index",
            "performance",
            "stability",
        )
    ),
]
#: Code for these runs where they are installed, and is passed over where not.
OTHERS = {"falkon", "gpytorch", "pandas", "pyarrow", "torch"}
DRAWN = {"docs/classification.md", "docs/displays.md"}
BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)


def blocks(page):
    """Code with what it is said to print, "" where nothing is said."""
    found = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    for (language, code), after in zip(found, [*found[1:], ("-", "")], strict=True):
        if language == "python":
            yield code, after[1] if after[0] == "" else ""


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # of GPyTorch
@pytest.mark.parametrize("page", PAGES)
def test_code_runs_and_prints_what_is_said(page, tmp_path, monkeypatch):
    if not (ROOT / page).exists():
        pytest.skip("the pages are not here")
    if page in DRAWN:
        pytest.importorskip("matplotlib", reason="it draws").use("Agg")
    monkeypatch.chdir(tmp_path)
    names, printed = {}, 0
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for code, expected in blocks(page):
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out):
                exec(compile(code, page, "exec"), names)
        except ModuleNotFoundError as missing:
            if missing.name not in OTHERS:
                raise
            continue
        if expected:
            printed += 1
            same = doctest.OutputChecker().check_output(
                expected, out.getvalue(), options
            )
            assert same, f"{expected}\nis said, and it printed\n{out.getvalue()}"
    assert names
    assert printed or page != "README.md"


def test_commands_of_the_readme_run(tmp_path, monkeypatch):
    """The two lines for a table, verbatim, on a small one."""
    pytest.importorskip("click")
    pytest.importorskip("pandas")
    cli = pytest.importorskip("nystrom.cli")
    rng = np.random.default_rng(0)
    rooms, age = rng.integers(1, 9, 200), rng.uniform(0, 80, 200)
    lines = [f"{r},{a:.1f},{90 * r - a:.1f}" for r, a in zip(rooms, age, strict=True)]
    table = "\n".join(["rooms,age,price", *lines])
    (tmp_path / "houses.csv").write_text(table)
    (tmp_path / "new.csv").write_text("rooms,age\n3,10\n5,20\n")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^nystrom (.*)$", text, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        monkeypatch.setattr("sys.argv", ["nystrom", *command.split()])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert not ended.value.code
    assert (tmp_path / "houses.html").exists()
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 3


def test_a_page_that_says_something_else_is_noticed(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1 + 1)\n```\n\n```\n3\n```\n")
    monkeypatch.setattr("test_pages.ROOT", tmp_path)
    with pytest.raises(AssertionError, match="is said, and it printed"):
        test_code_runs_and_prints_what_is_said("page.md", tmp_path, monkeypatch)


# --- Each thing has one home; what would be written a second time is found here ---

MAPS = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md"]


@pytest.mark.parametrize("page", MAPS, ids=lambda page: page.name)
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


# --- What a person reads: questions in the gallery, and the words of the field --------

GALLERY = sorted((ROOT / "examples" / "gallery").glob("plot_*.py"))


@pytest.mark.parametrize("example", GALLERY, ids=lambda path: path.stem)
def test_an_example_answers_a_question_and_names_its_limits(example):
    head = ast.get_docstring(ast.parse(example.read_text(encoding="utf-8")))
    assert head.splitlines()[0].endswith("?")
    assert "When not to use it: " in head


READ = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "examples").rglob("*.py")),
]
#: Words of an earlier dialect, in place of which the field has its own.
AVOIDED = r"told|tried|looked|dear|dearer|elsewhere|at hand|handed? out|whoever"


@pytest.mark.parametrize("page", READ, ids=lambda page: page.stem)
def test_pages_use_the_words_of_the_field(page):
    if not page.exists():
        pytest.skip("the pages are not here")
    text = page.read_text(encoding="utf-8")
    assert re.findall(rf"\b(?:{AVOIDED})\b", text, re.IGNORECASE) == []
