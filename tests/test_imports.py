"""Imports point one way, and what is imported is what was asked for."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import nystrom

PACKAGE = Path(nystrom.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

#: Each line may import the lines above it.
LINES = [
    ["_arrays"],
    ["kernels", "sources", "sinks", "engines", "randomness"],
    ["landmarks", "factor"],
    ["leverage"],
    ["samplers", "approximation", "spectral"],
    ["methods"],
    ["estimators", "functions"],
    ["persistence", "displays"],
    ["cli"],
    ["__init__"],
]
#: What may be imported from the same line besides.
BESIDE = {
    ("engines", "sources"),
    ("engines", "sinks"),
    ("landmarks", "factor"),
    ("approximation", "spectral"),
    ("functions", "estimators"),
}
#: Needs nothing, and nothing needs it but the public surface.
ALONE = ["datasets"]


def part_of(path):
    """The word of the design that a file belongs to."""
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def absolute(node, path):
    """The dotted name that `from … import` names, without its leading dots."""
    package = ("nystrom", *path.relative_to(PACKAGE).parent.parts)
    base = package[: len(package) - node.level + 1] if node.level else ()
    return ".".join([*base, *([node.module] if node.module else [])])


def imports(path):
    """The parts of the package that a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            whence = absolute(node, path)
            names = [f"{whence}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            head, *rest = name.split(".")
            if head == "nystrom" and rest:
                yield rest[0]


def line_of(part):
    return next(i for i, line in enumerate(LINES) if part in line)


def is_allowed(importer, imported):
    if importer == imported or (importer, imported) in BESIDE:
        return True
    if importer in ALONE or imported in ALONE:
        return importer == "__init__"
    return line_of(imported) < line_of(importer)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_one_way(path):
    importer = part_of(path)
    turned_back = [part for part in imports(path) if not is_allowed(importer, part)]
    assert turned_back == []


def test_the_reading_of_imports_finds_what_is_there():
    assert set(imports(PACKAGE / "leverage.py")) >= {"_arrays", "engines", "factor"}
    assert set(imports(PACKAGE / "engines" / "base.py")) >= {"sinks", "sources"}
    assert set(imports(PACKAGE / "kernels" / "names.py")) == {"kernels"}
    assert "estimators" in imports(PACKAGE / "__init__.py")
    assert not is_allowed("kernels", "leverage")
    assert not is_allowed("samplers", "approximation")
    assert not is_allowed("sources", "kernels")


def test_every_part_has_its_line():
    parts = {part_of(path) for path in MODULES}
    assert parts <= {part for line in LINES for part in line} | set(ALONE)


def test_nothing_is_called_by_what_it_is_not():
    names = {name for path in MODULES for name in path.relative_to(PACKAGE).parts}
    stems = {name.removesuffix(".py").strip("_") for name in names}
    assert stems.isdisjoint({"utils", "util", "helpers", "helper", "common", "misc"})


@pytest.mark.parametrize(
    "module",
    [
        nystrom,
        nystrom.datasets,
        nystrom.kernels,
        nystrom.sources,
        nystrom.engines,
        nystrom.samplers,
    ],
    ids=lambda m: m.__name__,
)
def test_public_names_exist(module):
    assert all(hasattr(module, name) for name in module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)


def test_importing_brings_nothing_heavy():
    # scikit-learn itself imports pandas where it is installed.
    heavy = ["matplotlib", "pandas", "polars", "torch", "dask", "numba", "pyarrow"]
    code = f"""
import sys, sklearn.utils
already = set(sys.modules)
import nystrom
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
