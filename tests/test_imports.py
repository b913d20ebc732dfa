"""Six layers, each of which imports only itself and the layers below it."""

import ast
import importlib.metadata
import os
import platform
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import sklearn

import nystrom

PACKAGE = Path(nystrom.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
LAYERS = [
    {
        "_arrays",
        "_digest",
        "_random",
        "_precision",
        "_validation",
    },
    {"kernels", "sources", "engines"},
    {"linalg", "landmarks"},
    {"samplers"},
    {"models"},
    {
        "estimators",
        "functions",
        "displays",
        "persistence",
        "_model_schema",
        "onnx",
        "cli",
        "__init__",
    },
]
#: Imports inside a function that point upwards: a method that is a shorthand.
SHORTHANDS = {("landmarks", "estimators"): "Landmarks.update validates its rows"}


def dotted(path):
    parts = ("nystrom", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {dotted(path) for path in MODULES}


def imported_modules(path, nodes):
    """The modules of the package that import statements name."""
    package = ("nystrom", *path.relative_to(PACKAGE).parent.parts)
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            whence = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                full = f"{whence}.{alias.name}"
                yield full if full in NAMES else whence


def part_of(name):
    return [*name.split("."), "__init__"][1]


def layer_of(name):
    (layer,) = [i for i, parts in enumerate(LAYERS) if part_of(name) in parts]
    return layer


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_layers_import_downwards_only(path):
    importer = dotted(path)
    tree = ast.parse(path.read_text("utf-8"))
    upwards = {
        name
        for name in imported_modules(path, ast.walk(tree))
        if name.startswith("nystrom.")
        and layer_of(name) > layer_of(importer)
        and (part_of(importer), part_of(name)) not in SHORTHANDS
    }
    assert not upwards


def test_every_part_is_in_one_layer():
    assert {part_of(dotted(path)) for path in MODULES} == set().union(*LAYERS)


def test_modules_do_not_import_each_other_in_a_circle():
    needs = {}
    for path in MODULES:
        top_level = ast.parse(path.read_text("utf-8")).body
        needs[dotted(path)] = set(imported_modules(path, top_level)) - {dotted(path)}
    TopologicalSorter(needs).prepare()  # raises CycleError


def test_class_names_are_unique():
    homes = {}
    for path in MODULES:
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(dotted(path))
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


PUBLIC = ["", ".kernels", ".sources", ".engines", ".samplers", ".displays"]


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_exist(name):
    module = sys.modules[f"nystrom{name}"]
    assert all(hasattr(module, name) for name in module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)


def test_importing_brings_nothing_heavy():
    # scikit-learn itself imports pandas where it is installed.
    heavy = ["matplotlib", "pandas", "polars", "torch", "dask", "numba", "pyarrow"]
    heavy += ["distributed", "skops"]
    code = f"""
import sys, sklearn.utils
already = set(sys.modules)
import nystrom, nystrom.displays
print(*(name for name in {heavy} if name in sys.modules and name not in already))
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == ""
    assert done.stderr == ""


@pytest.mark.skipif(
    "NYSTROM_INSTALLED" not in os.environ, reason="python3 dev.py test --wheel"
)
def test_what_is_tested_is_what_is_installed():
    assert "site-packages" in PACKAGE.parts
    assert (PACKAGE / "py.typed").exists()
    assert importlib.metadata.version("nystrom") == nystrom.__version__


def test_versions_are_shown(capsys):
    nystrom.show_versions()
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    shown = dict(line for line in lines if len(line) == 2)
    assert shown["nystrom:"] == nystrom.__version__
    assert shown["python:"].startswith(platform.python_version())
    assert shown["sklearn:"] == sklearn.__version__
