"""Imports point one way, and what is imported is what was asked for."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import sklearn

import nystrom

PACKAGE = Path(nystrom.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

#: Each line may import the lines above it, and nothing from its own.
LINES = [
    ["_arrays", "refusals", "randomness", "ledger", "optional", "html", "guarantee"],
    ["operands", "precision", "sources", "sinks"],
    ["column_blocks"],
    ["kernels", "engines", "trace_error"],
    ["columns", "cholesky", "ridge_root", "tried"],
    ["factor"],
    ["landmarks", "residuals"],
    ["scores", "features", "spectral_error"],
    ["moments"],
    ["reservoir"],
    ["samplers", "approximation"],
    ["methods", "edge"],
    ["estimators", "functions"],
    ["displays"],
    ["saved_names"],
    ["unpacking"],
    ["persistence"],
    ["onnx_graph"],
    ["versions"],
    ["__init__"],
]
#: What needs little may import no more than that, and nothing from elsewhere above.
ONLY = {
    "_arrays": set(),
    "refusals": set(),
    "randomness": set(),
    "ledger": set(),
    "operands": {"_arrays"},
    "optional": set(),
    "html": set(),
    "precision": {"_arrays"},
    "sources": {"_arrays", "refusals", "optional"},
    "sinks": {"_arrays", "refusals", "optional"},
    "engines": {"refusals", "_arrays", "randomness", "sources", "sinks"},
    "trace_error": {"sources", "html"},
    "guarantee": set(),
    "cholesky": {"engines"},
    "ridge_root": {"precision"},
    "factor": {"cholesky", "precision", "refusals", "engines"},
    "unpacking": {"saved_names"},
    "persistence": {"saved_names", "unpacking", "edge", "sinks"},
    "versions": set(),
}
#: Needs nothing, and nothing needs it but the public surface.
ALONE = ["datasets"]
#: Files of one part, in the order in which they may import each other.
INSIDE = {
    "_arrays": [
        ["places"],
        ["floats"],
        ["moving"],
        ["rows", "arithmetic", "pairwise"],
        ["__init__"],
    ],
    "sources": [
        ["weights", "fingerprint", "file_errors", "recent", "text_bytes"],
        ["source", "folder_stamp"],
        ["memory", "targets", "stored", "made", "on_device", "dask_rows"],
        ["views", "stacked", "picking", "arrow_columns", "array_in_file", "npy"],
        ["parquet", "csv", "arrow_ipc", "hdf5", "zarr", "text_labels"],
        ["opening"],
        ["recognising"],
        ["__init__"],
    ],
    "sinks": [
        ["sink", "replacing"],
        ["whole_file"],
        ["in_order", "npy"],
        ["parquet", "zarr"],
        ["output"],
        ["__init__"],
    ],
    "samplers": [
        ["goal", "sifting"],
        ["racing"],
        ["draws"],
        ["choosing"],
        ["theory", "given", "pivoting", "enough"],
        ["recursive", "uniform"],
        ["exact_scores", "gain", "forecast"],
        ["updating", "outlook"],
        ["__init__"],
    ],
    "functions": [
        ["problem"],
        ["selecting", "leverage", "embedding", "operator"],
        ["__init__"],
    ],
    "persistence": [
        ["errors"],
        ["model_file"],
        ["saving", "loading"],
        ["__init__"],
    ],
    "displays": [
        ["axes"],
        ["error_path", "leverage", "in_two_dimensions", "ridge_path", "coverage"],
        ["spectrum", "landmark_map", "clusters"],
        ["__init__"],
    ],
    "onnx_graph": [
        ["nodes"],
        ["kernel_nodes"],
        ["estimator_nodes", "probability_nodes"],
        ["exporting", "converters"],
        ["__init__"],
    ],
    "methods": [
        ["__init__"],
        ["linear_map", "link", "widths"],
        ["ridge", "kmeans", "logistic"],
        ["pca", "preimage", "cca"],
        ["spectral_embedding"],
    ],
    "engines": [
        [
            "blas",
            "progress",
            "summing",
            "stored",
            "fingerprint",
            "freed_memory",
            "clock",
            "course",
            "notebook",
        ],
        ["engine", "run_file", "line"],
        ["bar"],
        ["tiles", "travelling", "awaiting"],
        ["threads", "checkpoint", "at_workers", "sending"],
        ["elsewhere"],
        ["dask_pass", "pool"],
        ["dask"],
        ["adapting"],
        ["using"],
        ["__init__"],
    ],
}
#: What a value is asked to do by its users, and something above it does.
ASKED = {("landmarks", "edge"): "landmarks.updated_with(rows)"}
#: Files that need each other: kernels make sums of kernels, which are kernels.
CIRCLES = {
    ("nystrom.kernels.base", "nystrom.kernels.algebra"),
    ("nystrom.landmarks", "nystrom.edge.updating"),
}


def part_of(path):
    """The word of the design that a file belongs to."""
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def absolute(node, path):
    """The dotted name that `from … import` names, without its leading dots."""
    package = ("nystrom", *path.relative_to(PACKAGE).parent.parts)
    base = package[: len(package) - node.level + 1] if node.level else ()
    return ".".join([*base, *([node.module] if node.module else [])])


@cache
def imported_names(path):
    """The dotted names that a file imports, wherever in the file."""
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            whence = absolute(node, path)
            names += [f"{whence}.{alias.name}" for alias in node.names]
    return [name for name in names if name.startswith("nystrom.")]


def imports(path):
    """The parts of the package that a file imports."""
    return [name.split(".")[1] for name in imported_names(path)]


def dotted(path):
    """The name that a file is imported by."""
    parts = ("nystrom", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def files_imported(path):
    """The files of the package that a file imports, by their dotted names."""
    files = {dotted(module) for module in MODULES}
    for name in imported_names(path):
        yield name if name in files else name.rpartition(".")[0]


def line_of(part, lines=None):
    lines = LINES if lines is None else lines
    places = [i for i, line in enumerate(lines) if part in line]
    assert places, f"{part} has no line: add it to LINES or INSIDE in this file"
    return places[0]


def is_allowed(importer, imported):
    if importer == imported or (importer, imported) in ASKED:
        return True
    if importer in ALONE or imported in ALONE:
        return importer == "__init__"
    if importer in ONLY:
        return imported in ONLY[importer]
    return line_of(imported) < line_of(importer)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_one_way(path):
    importer = part_of(path)
    turned_back = [part for part in imports(path) if not is_allowed(importer, part)]
    assert turned_back == []


def inner(name, part):
    """The file or folder of a part that a dotted name is about; None outside of it."""
    head, *rest = name.removeprefix("nystrom.").split(".")
    return (rest[0] if rest else "__init__") if head == part else None


@pytest.mark.parametrize("part", INSIDE)
def test_imports_inside_a_part_point_one_way(part):
    lines, turned_back = INSIDE[part], []
    for path in (PACKAGE / part).rglob("*.py"):
        importer = inner(dotted(path), part)
        for name in files_imported(path):
            imported = inner(name, part)
            if imported in (None, importer):
                continue
            if line_of(imported, lines) >= line_of(importer, lines):
                turned_back.append((dotted(path), name))
    assert turned_back == []


def test_no_files_import_each_other_in_a_circle():
    needs = {dotted(path): set(files_imported(path)) for path in MODULES}
    for name, needed in needs.items():
        needed -= {name, *(other for one, other in CIRCLES if one == name)}
    TopologicalSorter(needs).prepare()  # raises CycleError
    assert all(
        other in files_imported(PACKAGE.parent / f"{one.replace('.', '/')}.py")
        for one, other in CIRCLES
    )


def test_the_reading_of_imports_finds_what_is_there():
    residuals = set(imports(PACKAGE / "residuals.py"))
    assert residuals >= {"column_blocks", "precision", "columns", "engines", "ledger"}
    assert set(imports(PACKAGE / "engines" / "engine.py")) >= {"sinks", "sources"}
    assert set(imports(PACKAGE / "kernels" / "names.py")) == {"kernels", "refusals"}
    assert "estimators" in imports(PACKAGE / "__init__.py")
    deep = set(imports(PACKAGE / "samplers" / "gain" / "pool.py"))
    assert deep >= {"_arrays", "precision", "refusals", "samplers"}
    assert "nystrom.samplers.pivoting.pivots" in files_imported(
        PACKAGE / "samplers" / "gain" / "pool.py"
    )
    for importer, imported in [
        ("kernels", "residuals"),
        ("samplers", "approximation"),
        ("approximation", "samplers"),
        ("sources", "kernels"),
        ("functions", "estimators"),
        ("edge", "methods"),
        ("precision", "refusals"),
        ("engines", "precision"),
        ("factor", "columns"),
        ("methods", "datasets"),
    ]:
        assert not is_allowed(importer, imported)


def test_every_part_has_its_line():
    parts = [part for line in LINES for part in line] + ALONE
    assert len(set(parts)) == len(parts)
    assert {part_of(path) for path in MODULES} == set(parts)
    assert set(ONLY) | set(INSIDE) <= set(parts)


@pytest.mark.parametrize("part", INSIDE)
def test_every_file_inside_has_its_line(part):
    inside = {inner(dotted(path), part) for path in (PACKAGE / part).rglob("*.py")}
    assert inside == {name for line in INSIDE[part] for name in line}


#: Endings that make another word of the same thing.
ENDINGS = re.compile(
    r"(ations?|ates?|ions?|ives?|ings?|ants?|ers?|ors?|eds?|es?|ly|s)$"
)


def root(stem):
    """A name without its ending: gain and gains, pivots and pivoted are one."""
    short = ENDINGS.sub("", stem.strip("_"))
    return short if len(short) >= 3 else stem


def named_alike(stems):
    """Pairs of names that differ only by an ending."""
    stems = sorted(set(stems))
    return {
        (one, other)
        for i, one in enumerate(stems)
        for other in stems[i + 1 :]
        if root(one) == root(other)
    }


def test_no_names_of_files_differ_by_an_ending():
    stems = [path.stem for path in MODULES if path.stem != "__init__"]
    assert not named_alike(stems)


@pytest.mark.parametrize(
    "pair",
    [
        ("gain", "gains"),
        ("pivoted", "pivots"),
        ("recursion", "recursive"),
        ("sampler", "samplers"),
        ("score", "scoring"),
        ("approximate", "approximation"),
    ],
)
def test_names_that_differ_by_an_ending_are_told(pair):
    assert named_alike(["uniform", *pair, "goal"]) == {pair}


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
    heavy += ["distributed"]
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


@pytest.mark.skipif(
    "NYSTROM_INSTALLED" not in os.environ, reason="python3 dev.py test --wheel"
)
def test_what_is_tested_is_what_is_installed():
    assert "site-packages" in PACKAGE.parts
    assert (PACKAGE / "py.typed").exists()
    assert importlib.metadata.version("nystrom") == nystrom.__version__


def test_versions_are_shown(capsys):
    nystrom.show_versions()
    shown = dict(
        line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()
    )
    assert shown["nystrom"] == nystrom.__version__
    assert shown["python"].startswith(platform.python_version())
    assert shown["scikit-learn"] == sklearn.__version__
    assert "missing" not in shown.values()
