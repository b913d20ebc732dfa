"""One fault at a time in a copy of the packages, and the tests that must notice it."""

from __future__ import annotations

import compileall
import importlib.util
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .faults import PACKAGE, TESTS, Fault

#: Seconds that a test may take, and all tests of a fault: one may make a loop endless.
ONE_TEST, ALL_TESTS = 120, 300
#: What is imported before the first test, where it is there: not the package.
PRELOADED = (
    "pytest",
    "hypothesis.extra.numpy",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.sparse.linalg",
    "scipy.stats",
    "sklearn.cluster",
    "sklearn.cross_decomposition",
    "sklearn.datasets",
    "sklearn.decomposition",
    "sklearn.gaussian_process",
    "sklearn.kernel_approximation",
    "sklearn.kernel_ridge",
    "sklearn.model_selection",
    "sklearn.utils.estimator_checks",
    "threadpoolctl",
    "array_api_compat.numpy",
    "array_api_strict",
    "pandas",
    "polars",
)
#: What pytest ends with where tests ran, and all passed, or some failed.
PASSED, FAILED = 0, 1


@dataclass(frozen=True)
class Outcome:
    """What became of a fault."""

    fault: Fault
    killed: bool
    said: str  # what the reader should know of one that was not


class Copies:
    """Copies of the package, in a folder that is deleted at the end."""

    def __init__(self, package: Path = PACKAGE) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="nystrom-mutants-")
        self.clean = Path(self.folder.name, "clean")
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(package, self.clean / "nystrom", ignore=ignored)
        # Once for all copies: most files are the same in each.
        compileall.compile_dir(self.clean, quiet=2)

    def __enter__(self) -> Copies:
        return self

    def __exit__(self, *_: object) -> None:
        self.folder.cleanup()

    def with_fault(self, fault: Fault, number: int) -> Path:
        """A folder to import from, with the fault in it."""
        copy = Path(self.folder.name, f"{number}")
        shutil.copytree(self.clean, copy)
        path, planted = fault.plant(copy / "nystrom")
        # Not to be mistaken for the file that was compiled, if it is of the same size
        # and second.
        Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)
        path.write_text(planted, "utf-8")
        return copy


class Nursery:
    """Where tests are run, each time in a process of its own.

    It is forked from one that has imported what all need, but not the package: that
    takes longer than most tests. Where there is no fork, processes are begun anew.
    """

    def __init__(self) -> None:
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ[name] = "1"  # before NumPy is there
        forks = "forkserver" in multiprocessing.get_all_start_methods()
        self.begin: Any = multiprocessing.get_context(
            "forkserver" if forks else "spawn"
        )
        if forks:
            self.begin.set_forkserver_preload(list(PRELOADED))

    def run(self, package: Path, tests: Iterable[str]) -> tuple[int, str]:
        """Run tests against the package in a folder: pytest's code, and what it said.

        Until one fails.
        """
        named = [str(TESTS / test) for test in tests]
        with tempfile.TemporaryDirectory(prefix="nystrom-mutants-") as folder:
            told = Path(folder, "said")
            child = self.begin.Process(target=_tested, args=(package, named, told))
            child.start()
            child.join(ALL_TESTS)
            if child.exitcode is None:
                child.kill()
                child.join()
                return FAILED, f"stopped after {ALL_TESTS} s"
            said = told.read_text("utf-8", "replace") if told.exists() else ""
        return child.exitcode, said


def _tested(package: Path, named: list[str], told: Path) -> None:
    """In the child: pytest, with all that is said in a file."""
    with told.open("wb") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    # A server that was begun for other work may have imported the package already.
    for name, module in list(sys.modules.items()):
        ours = str(getattr(module, "__file__", None)).startswith(str(TESTS))
        if ours or name.partition(".")[0] == PACKAGE.name:
            del sys.modules[name]
    # For this process and for those that tests begin.
    sys.path.insert(0, str(package))
    os.environ["PYTHONPATH"] = str(package)
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    # Of all plugins that are installed, those that settings and marks need.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    import pytest

    options = ["-q", "-x", "--no-header", "--timeout", str(ONE_TEST)]
    plugins = ["-p", "pytest_timeout", "-p", "xdist.plugin", "-p", "no:cacheprovider"]
    code = pytest.main([*options, *plugins, *named])
    sys.stdout.flush()
    os._exit(int(code))  # whatever threads a fault has left behind


def imported_from(package: Path) -> Path:
    """Where `import nystrom` finds it, as tests of a copy do."""
    told = subprocess.run(
        [sys.executable, "-c", "import nystrom; print(nystrom.__file__)"],
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(told.stdout.strip()).parent


def tried(fault: Fault, number: int, copies: Copies, nursery: Nursery) -> Outcome:
    """Plant a fault and see whether one of its tests fails."""
    wrong = fault.problem()
    if wrong is not None:
        return Outcome(fault, False, f"cannot be planted: {wrong}")
    copy = copies.with_fault(fault, number)
    try:
        code, said = nursery.run(copy, fault.tests)
    finally:
        shutil.rmtree(copy)
    if code == PASSED:
        return Outcome(fault, False, f"survived: {_last_line(said)}")
    if code != FAILED:
        return Outcome(fault, False, f"its tests did not run:\n{said}")
    return Outcome(fault, True, "")


def _last_line(said: str) -> str:
    return (said.strip().splitlines() or [""])[-1].strip("= ")
