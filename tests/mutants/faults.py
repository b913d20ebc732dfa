"""A planted fault: a function of the package, a pattern in it, and what replaces it.

The table is the TOML files beside this one:

    [[fault]]
    symbol = "Spectrum.scores"       # function, method, class or constant
    text = "residual /= ridge"       # once in it, whatever the line breaks
    becomes = "residual *= ridge"
    why = "scores grow with the ridge"
    tests = ["test_functions.py::test_effective_dimension_falls_as_the_ridge_grows"]

One of the tests must fail. The symbol is looked up in the whole package, so that a row
survives when code moves; `file` says which one where several files have such a name.
`tests/test_mutants.py` checks that every row can be planted.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

TABLE = Path(__file__).parent
TESTS = TABLE.parent
PACKAGE = TESTS.parent / "src" / "nystrom"


@dataclass(frozen=True)
class Fault:
    """One row of the table."""

    symbol: str
    text: str
    becomes: str
    why: str
    tests: tuple[str, ...]
    file: str = ""

    def __str__(self) -> str:
        return f"{self.symbol}: {self.why}"

    def locate(self, package: Path = PACKAGE) -> tuple[Path, int, int]:
        """The file, and where in it the text begins and ends."""
        places = []
        for path, start, stop in _symbols(package).get(self.symbol, []):
            if self.file and path != package / self.file:
                continue
            source = path.read_text("utf-8")[start:stop]
            for match in _pattern(self.text).finditer(source):
                places.append((path, start + match.start(), start + match.end()))
        if len(places) != 1:
            raise ValueError(f"its text is found {len(places)} times, not once")
        return places[0]

    def plant(self, package: Path = PACKAGE) -> tuple[Path, str]:
        """The file and its source with the fault in it."""
        path, start, stop = self.locate(package)
        source = path.read_text("utf-8")
        planted = source[:start] + self.becomes + source[stop:]
        compile(planted, str(path), "exec")
        return path, planted

    def problem(self, package: Path = PACKAGE, tests: Path = TESTS) -> str | None:
        """What is wrong with the row; None if it can be planted and its tests exist."""
        try:
            self.plant(package)
        except (SyntaxError, ValueError) as error:
            return str(error)
        missing = [name for name in self.tests if not _exists(name, tests)]
        if missing or not self.tests:
            return f"there is no test {', '.join(missing) or 'named'}"
        return None


@cache
def _symbols(package: Path) -> dict[str, list[tuple[Path, int, int]]]:
    """Where each function, method, class and constant of a package stands."""
    table: dict[str, list[tuple[Path, int, int]]] = {}
    for path in sorted(package.rglob("*.py")):
        source = path.read_text("utf-8")
        starts = [0]
        for line in source.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        for name, node in _named(ast.parse(source)):
            first = min([node.lineno, *(d.lineno for d in _decorators(node))])
            place = path, starts[first - 1], starts[node.end_lineno]
            table.setdefault(name, []).append(place)
        table.setdefault(f"<{path.stem}>", []).append((path, 0, len(source)))
    return table


def _decorators(node: ast.AST) -> list[ast.expr]:
    return getattr(node, "decorator_list", [])


def _named(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            yield prefix + child.name, child
            yield from _named(child, f"{prefix}{child.name}.")
        elif isinstance(child, (ast.Assign, ast.AnnAssign)) and not prefix:
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            for target in targets:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        yield name.id, child
        elif isinstance(child, (ast.If, ast.Try, ast.With)):
            yield from _named(child, prefix)


def _pattern(text: str) -> re.Pattern[str]:
    """The text with any white space between its tokens, and trailing commas."""
    tokens = re.findall(r"\w+|[^\w\s]", re.sub(r",\s*([)\]}])", r"\1", text))
    parts = [re.escape(tokens[0])]
    for before, after in pairwise(tokens):
        both_words = re.match(r"\w", before) and re.match(r"\w", after)
        between = r"\s+" if both_words else r"\s*"
        if after in ")]}" and before != ",":
            between = r"\s*,?\s*"
        parts += [between, re.escape(after)]
    pattern = "".join(parts)
    # Whole words only.
    ahead = r"(?!\w)" if re.match(r"\w", tokens[-1]) else ""
    behind = r"(?<!\w)" if re.match(r"\w", tokens[0]) else ""
    return re.compile(behind + pattern + ahead)


def _exists(test: str, folder: Path) -> bool:
    """Whether `test_file.py::test_name[case]` names a test, whatever the case."""
    file, _, name = test.partition("::")
    return name.partition("[")[0] in _tests_in(folder / file)


@cache
def _tests_in(path: Path) -> set[str]:
    """The names of the tests in a file."""
    text = path.read_text("utf-8") if path.is_file() else ""
    return set(re.findall(r"^def (test_\w+)\(", text, re.M))


def read(folder: Path = TABLE) -> list[Fault]:
    """The faults of all files in a folder."""
    faults = []
    for path in sorted(folder.glob("*.toml")):
        for row in tomllib.loads(path.read_text("utf-8"))["fault"]:
            faults.append(Fault(**row | {"tests": tuple(row["tests"])}))
    return faults
