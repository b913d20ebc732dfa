"""A fault is a text of the package, what stands in its place, and who must notice.

The table is the TOML files beside this one, a file for each floor of the house:

    [[fault]]
    file = "scores.py"             # in src/nystrom, or "../nystrom_cli/…" beside it
    text = "left /= ridge"         # exactly once in it
    becomes = "left *= ridge"
    why = "scores grow with the ridge"
    tests = ["test_leverage.py::test_effective_dimension_falls_as_the_ridge_grows"]

One of the tests that it names, in tests/, must fail. Each is found by its name, so that
the table cannot rot unseen: tests/test_mutants.py reads all of it.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TABLE = Path(__file__).parent
TESTS = TABLE.parent
PACKAGE = TESTS.parent / "src" / "nystrom"


@dataclass(frozen=True)
class Fault:
    """One row of the table."""

    file: str
    text: str
    becomes: str
    why: str
    tests: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.file}: {self.why}"

    def planted_in(self, source: str) -> str:
        """The text of the file with the fault in it."""
        found = source.count(self.text)
        if found != 1:
            raise ValueError(f"its text is found {found} times, not once")
        return source.replace(self.text, self.becomes)

    def wrong(self, package: Path = PACKAGE, tests: Path = TESTS) -> str | None:
        """What is wrong with the row; None if it can be planted and its tests exist."""
        try:
            planted = self.planted_in((package / self.file).read_text("utf-8"))
            compile(planted, self.file, "exec")
        except (OSError, SyntaxError, ValueError) as error:
            return str(error)
        missing = [name for name in self.tests if not _exists(name, tests)]
        if missing or not self.tests:
            return f"there is no test {', '.join(missing) or 'named'}"
        return None


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
