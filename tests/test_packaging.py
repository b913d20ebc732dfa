"""The metadata are complete, and say each thing once."""

import re
import tomllib
from pathlib import Path

import pytest

import nystrom

ROOT = Path(__file__).parents[1]
if not (ROOT / "pyproject.toml").exists():
    pytest.skip("the sources are not here", allow_module_level=True)
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = SETTINGS["project"]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_pages_say_how_to_install_what_there_is():
    """`pip install nystrom` only once the package is published, and then in README."""
    texts = {page.name: page.read_text("utf-8") for page in PAGES}
    found = [name for name in texts if "pip install nystrom" in texts[name]]
    if SETTINGS["tool"]["nystrom"]["published"]:
        assert "README.md" in found
    else:
        assert found == []


def test_placeholders_of_urls_are_in_one_file():
    files = [*ROOT.glob("*.*"), *ROOT.glob("docs/*.*"), *ROOT.glob("conda/*")]
    files += [*ROOT.glob(".github/**/*.yml"), *(ROOT / "src").rglob("*.py")]
    named = [f.name for f in files if f.is_file() and b"OWNER" in f.read_bytes()]
    assert named == ["pyproject.toml"]


def test_supported_versions_of_python_are_tested():
    prefix = "Programming Language :: Python :: 3."
    supported = [c[len(prefix) - 2 :] for c in PROJECT["classifiers"] if prefix in c]
    assert supported == ["3.11", "3.12", "3.13", "3.14"]
    workflow = ROOT / ".github" / "workflows" / "ci.yml"
    if workflow.exists():  # it is not part of the sdist
        matrix = re.search(r"python: \[(.*)\]", workflow.read_text("utf-8"))[1]
        assert re.findall(r'"(.*?)"', matrix) == supported


def test_the_recipe_for_conda_has_the_same_requirements():
    recipe = (ROOT / "conda" / "meta.yaml").read_text("utf-8")
    run = recipe.split("  run:\n")[1].split("\n\n")[0]
    listed = [line.strip("- ").replace(" ", "") for line in run.splitlines()]
    assert listed == [f"python{PROJECT['requires-python']}", *PROJECT["dependencies"]]
    assert f'version = "{nystrom.__version__}"' in recipe


def test_the_citation_has_the_version():
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"version: {nystrom.__version__}\n" in text
