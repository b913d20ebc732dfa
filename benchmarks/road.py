"""How much of the package a reader meets: `python benchmarks/road.py`.

Four calls are run once to warm up (imports, caches) and once more under
`sys.setprofile`, in all threads. For each the table has

- files: files of the package in which at least one function was entered,
- functions: different functions entered; comprehensions and lambdas are not counted,
- depth: the most calls inside the package that were on one thread's stack at a time,
- calls: all calls of these functions,

and the same for scikit-learn's classes, counted in scikit-learn's files. Then the size
of the package: files and lines of code per folder (docstrings, comments and blank lines
are not counted) and the share of these lines that are imports. No timings.

`--source FOLDER` measures the package in another folder, such as an older checkout.
"""

from __future__ import annotations

import argparse
import ast
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np


class Road(NamedTuple):
    """What was entered on the way."""

    files: int
    functions: int
    depth: int
    calls: int


def measure(call: Callable[[], Any], package: Path) -> Road:
    """Run a call twice; count the second time."""
    call()
    entered: dict[CodeType, int] = {}
    depths: dict[int, int] = {}  # by thread, now
    deepest = 0
    root = f"{package}/"

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal deepest
        code = frame.f_code
        if event not in ("call", "return") or code.co_name.startswith("<"):
            return
        if not code.co_filename.startswith(root):
            return
        thread = threading.get_ident()
        # A generator is entered anew each time that it goes on, and left as often.
        depths[thread] = depths.get(thread, 0) + (1 if event == "call" else -1)
        deepest = max(deepest, depths[thread])
        if event == "call":
            entered[code] = entered.get(code, 0) + 1

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    files = {code.co_filename for code in entered}
    return Road(len(files), len(entered), deepest, sum(entered.values()))


def roads() -> dict[str, Road]:
    """The four calls, and those of scikit-learn that have the same name."""
    import sklearn
    from sklearn.kernel_approximation import Nystroem as SklearnNystroem
    from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge

    import nystrom

    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 4))
    y = np.sin(X[:, 0]) + X[:, 1]
    features = nystrom.Nystroem(gamma=0.2, n_components=50, random_state=0)
    ridge = nystrom.KernelRidge(
        alpha=0.1, kernel="rbf", gamma=0.2, n_landmarks=50, random_state=0
    )
    fitted = nystrom.Nystroem(gamma=0.2, n_components=50, random_state=0).fit(X)
    ours = {
        "Nystroem.fit_transform": lambda: features.fit_transform(X),
        "KernelRidge.fit": lambda: ridge.fit(X, y),
        "select_landmarks(max_trace_error=0.1)": lambda: nystrom.select_landmarks(
            X, gamma=0.2, max_trace_error=0.1, random_state=0
        ),
        "Nystroem.transform of ten rows": lambda: fitted.transform(X[:10]),
    }
    theirs = {
        "scikit-learn: Nystroem.fit_transform": lambda: SklearnNystroem(
            gamma=0.2, n_components=50, random_state=0
        ).fit_transform(X),
        "scikit-learn: KernelRidge.fit": lambda: SklearnKernelRidge(
            alpha=0.1, kernel="rbf", gamma=0.2
        ).fit(X, y),
    }
    packages = {nystrom: ours, sklearn: theirs}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            name: measure(call, Path(package.__file__).parent)
            for package, calls in packages.items()
            for name, call in calls.items()
        }


class Size(NamedTuple):
    """Files, lines of code, and lines of imports among them."""

    files: int
    lines: int
    imports: int

    def __add__(self, other: Any) -> Size:
        return Size(*(a + b for a, b in zip(self, other, strict=True)))


def size_of(path: Path) -> Size:
    """Of one file."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    docstrings, imports = set[int](), set[int]()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            imports.update(range(node.lineno, (node.end_lineno or 0) + 1))
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            first = node.body[0]
            docstrings.update(range(first.lineno, (first.end_lineno or 0) + 1))
    code = {
        number
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.strip().startswith("#")
    } - docstrings
    return Size(1, len(code), len(code & imports))


def sizes(package: Path) -> dict[str, Size]:
    """Of every folder of the package, and of all of it."""
    found: dict[str, Size] = {}
    for path in sorted(package.rglob("*.py")):
        folder = str(path.parent.relative_to(package))
        folder = "(package)" if folder == "." else folder
        for name in (folder, "all"):
            found[name] = found.get(name, Size(0, 0, 0)) + size_of(path)
    found["all"] = found.pop("all")
    return found


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    default = Path(__file__).parents[1] / "src"
    parser.add_argument("--source", type=Path, default=default)
    source = parser.parse_args().source.resolve()
    sys.path.insert(0, str(source))
    print(f"{'':<40}{'files':>8}{'functions':>11}{'depth':>7}{'calls':>8}")
    for name, road in roads().items():
        print(
            f"{name:<40}{road.files:>8}{road.functions:>11}{road.depth:>7}"
            f"{road.calls:>8}"
        )
    print(f"\n{'folder':<20}{'files':>8}{'lines':>8}{'imports':>9}")
    for name, size in sizes(source / "nystrom").items():
        share = size.imports / max(size.lines, 1)
        print(f"{name:<20}{size.files:>8}{size.lines:>8}{share:>9.1%}")


if __name__ == "__main__":
    main()
