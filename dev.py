#!/usr/bin/env python3
"""Everything a developer runs, with nothing but Python 3.11+ and pip.

    python3 dev.py demo     every sampler and estimator at work: tables and a picture
    python3 dev.py test     lint, types and the whole test suite
      test --lowest         the suite with the lowest versions that pyproject allows
      test --wheel          wheel and sdist built into dist/, and the suite against them
      test --older          the suite with the rounding of an older processor (x86)
    python3 dev.py lint     ruff, codespell and mypy alone
    python3 dev.py types    whether all that users call has types (pyright)
    python3 dev.py mutants  plants every known fault in a copy; the tests must notice
    python3 dev.py test-torch   the tests of tensors, with torch, which it installs
    python3 dev.py fuzz     random fits against dense answers: `fuzz --minutes 10`;
                            `--case 123` one of them again, `--models` damaged files
    python3 dev.py docs     the documentation as a site, in build/docs, and its examples
    python3 dev.py bench    benchmarks: `dev.py bench paper|peers|scaling|smoke`, with
                            `--data folder` where files of the real sets are

The first use makes .venv and installs the project into it; later ones start at once.
Further arguments go to the command: `python3 dev.py test -k leverage`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
EXTRAS = {
    "demo": "plot",
    "bench": "plot",
    "test": "test",
    "lint": "test",
    "types": "test",
    "mutants": "test",
    "test-torch": "test",
    "fuzz": "test",
    "docs": "docs",
}
#: The release that tensors are tested with; it is not a dependency.
TORCH = "torch==2.13.0"


class Environment:
    """A virtual environment in the project's folder."""

    def __init__(self, name: str) -> None:
        self.folder = ROOT / name
        windows = "Scripts/python.exe"
        self.python = self.folder / (windows if os.name == "nt" else "bin/python")

    def make(self, *, anew: bool = False) -> None:
        """Make it where it is not there yet, or all of it anew."""
        if anew or not self.python.exists():
            print(f"making {self.folder.name} …", flush=True)
            venv.create(self.folder, with_pip=True, clear=anew)

    def pip(self, *what: object) -> tuple[object, ...]:
        """The command that installs something."""
        quiet = ("--disable-pip-version-check", "install", "--quiet")
        return (self.python, "-m", "pip", *quiet, *what)

    def install(self, extra: str, *options: object) -> None:
        """Install the project with an extra, once."""
        wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
        stamp = self.folder / f"installed-{extra}"
        if stamp.exists() and stamp.read_text() == wanted and self.python.exists():
            return
        self.make()
        print(f"installing nystrom[{extra}] …", flush=True)
        run(*self.pip(*options, "--editable", f".[{extra}]"))
        stamp.write_text(wanted)


HERE = Environment(".venv")


def run(*command: object, where: Path = ROOT) -> None:
    """Run a command in the project's folder; stop with its code if it fails."""
    code = subprocess.call([str(part) for part in command], cwd=where)
    if code:
        sys.exit(code)


def lint() -> None:
    """ruff, codespell and mypy."""
    run(HERE.python, "-m", "ruff", "check", ".")
    run(HERE.python, "-m", "codespell_lib")
    run(HERE.python, "-m", "ruff", "format", "--check", ".")
    run(HERE.python, "-m", "mypy")


def test(*rest: str) -> None:
    """The whole suite on all cores, or a part of it: `-k leverage`, a file."""
    if rest[:1] == ("--lowest",):
        test_lowest(*rest[1:])
    elif rest[:1] == ("--wheel",):
        test_wheel(*rest[1:])
    elif rest[:1] == ("--older",):
        test_older(*rest[1:])
    else:
        HERE.install("test")
        lint()
        suite(HERE, *rest)


def one_blas_thread() -> None:
    """In each process: two that share the cores would wait for each other."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def suite(environment: Environment, *rest: object, where: Path = ROOT) -> None:
    """pytest, on all cores unless it is for a part."""
    one_blas_thread()
    side_by_side = () if rest else ("-n", "auto")
    run(environment.python, "-m", "pytest", *side_by_side, *rest, where=where)


def test_lowest(*rest: str) -> None:
    """The suite with every version at the lower bound that pyproject gives it."""
    lowest = Environment(".venv-lowest")
    lowest.make()
    pins = lowest.folder / "pins.txt"
    pins.write_text("\n".join(lower_bounds()))
    lowest.install("test", "--constraint", pins)
    suite(lowest, *rest)


def lower_bounds() -> list[str]:
    """`name==version` for every `name>=version` in pyproject."""
    import tomllib  # since Python 3.11; `main` reports older versions

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(line for extra in extras for line in extra)]
    found = (re.match(r"([\w.-]+)(?:\[.*\])?>=([\w.]+)", line) for line in wanted)
    return sorted({f"{bound[1]}=={bound[2]}" for bound in found if bound})


def test_wheel(*rest: str) -> None:
    """Build what is published, and run the suite against it, beside the sources."""
    HERE.make()
    run(*HERE.pip("build", "twine", "check-wheel-contents"))
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    run(HERE.python, "-m", "build", "--outdir", "dist")
    (wheel,), (sdist,) = ROOT.glob("dist/*.whl"), ROOT.glob("dist/*.tar.gz")
    run(HERE.python, "-m", "twine", "check", "--strict", wheel, sdist)
    run(HERE.python, "-m", "check_wheel_contents", wheel)
    empty = Environment(".venv-wheel")
    empty.make(anew=True)
    with tempfile.TemporaryDirectory() as folder:
        run(*empty.pip(wheel))
        # It works with what it depends on alone.
        code = "import nystrom; nystrom.Nystroem(n_components=2).fit([[0], [1], [2]])"
        run(empty.python, "-W", "error", "-c", code, where=Path(folder))
        run(*empty.pip(f"nystrom[test] @ {wheel.as_uri()}"))
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        (unpacked,) = Path(folder).iterdir()
        os.environ["NYSTROM_INSTALLED"] = "1"  # a test checks that it is this one
        tests = rest or ("-n", "auto", "tests", "--pyargs", "nystrom")
        suite(empty, *tests, where=unpacked)


def test_older(*rest: str) -> None:
    """The suite as without AVX2 and FMA, where all products round otherwise."""
    HERE.install("test")
    found = "print(*numpy.show_config(mode='dicts')['SIMD Extensions']['found'])"
    features = subprocess.check_output(
        [HERE.python, "-c", f"import numpy; {found}"], text=True
    )
    os.environ["NPY_DISABLE_CPU_FEATURES"] = features.strip()
    os.environ["OPENBLAS_CORETYPE"] = "Sandybridge"
    suite(HERE, *rest)


def types() -> None:
    """Whether pyright finds the type of everything that users call."""
    run(*HERE.pip("pyright[nodejs]"))
    checker = [HERE.python, "-m", "pyright", "--outputjson", "--ignoreexternal"]
    first = f"{HERE.python.parent}{os.pathsep}{os.environ['PATH']}"  # where it looks
    found = subprocess.run(
        [*checker, "--verifytypes", "nystrom"],
        cwd=ROOT,
        env={**os.environ, "PATH": first},
        stdout=subprocess.PIPE,
    )
    names = subprocess.check_output(
        [HERE.python, ROOT / "tests" / "public_names.py"], text=True
    )
    public = tuple(names.split())
    symbols = json.loads(found.stdout)["typeCompleteness"]["symbols"]
    asked = [s for s in symbols if f"{s['name']}.".startswith(public)]
    unknown = [s["name"] for s in asked if not s["isTypeKnown"] and _ours(s)]
    for name in unknown:
        print(f"{name} has no type, or one that checkers may read differently.")
    print(f"{len(asked) - len(unknown)} of {len(asked)} public names have a type.")
    sys.exit(bool(unknown) or not asked)


def _ours(symbol: dict) -> bool:
    """Whether its type is for us to say: classes of scikit-learn have none."""
    theirs = ("Type of metaclass", "Type of base class")
    messages = [entry["message"] for entry in symbol["diagnostics"]]
    return not messages or not all(text.startswith(theirs) for text in messages)


def test_torch(*rest: str) -> None:
    """The tests of tensors, with torch; without an index to install it from, none."""
    there = [
        HERE.python,
        "-c",
        f"import torch; assert '{TORCH[7:]}' in torch.__version__",
    ]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if subprocess.call([str(part) for part in there], **quiet):
        print(f"installing {TORCH} …", flush=True)
        if subprocess.call([str(part) for part in HERE.pip(TORCH)], cwd=ROOT):
            print(
                f"{TORCH} could not be installed (see above; is a package index "
                "reachable?): the tests with torch were skipped."
            )
            return
    files = ("tests/test_devices.py", "tests/test_sklearn_contract.py")
    suite(HERE, *files, "-k", "test_devices or torch", "-n", "auto", *rest)


def fuzz(*rest: str) -> None:
    """Random cases, each from its number alone; tests/fuzz has what is checked."""
    one_blas_thread()
    os.environ["PYTHONPATH"] = str(ROOT / "tests")
    run(HERE.python, "-m", "fuzz", *rest)


def bench(name: str, *rest: str) -> None:
    """An experiment of benchmarks/configs, the figures, or a script of its own."""
    folder = ROOT / "benchmarks"
    if (folder / "configs" / f"{name}.toml").exists():
        run(HERE.python, folder / "run.py", name, *rest)
    elif (folder / f"{name}.py").exists():
        run(HERE.python, folder / f"{name}.py", *rest)
    elif name == "figures":
        run(HERE.python, folder / "figures", *rest)
    else:
        configs = sorted(path.stem for path in folder.glob("configs/*.toml"))
        scripts = sorted(path.stem for path in folder.glob("*.py"))
        sys.exit(
            f"unknown benchmark {name!r}; there are {', '.join(configs)}, figures, and "
            f"{', '.join(sorted(set(scripts) - {'run'}))}."
        )


def docs() -> None:
    """The documentation, from a copy: what is generated stays out of the sources."""
    one_blas_thread()
    source, built = ROOT / "build" / "docs_source", ROOT / "build" / "docs"
    for folder in (source, built):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", source)
    # The examples are where conf.py looks for them, beside the pages' folder.
    shutil.rmtree(ROOT / "build" / "examples", ignore_errors=True)
    shutil.copytree(ROOT / "examples", ROOT / "build" / "examples")
    run(HERE.python, "-m", "sphinx", "-W", "--keep-going", "-q", source, built)
    run(HERE.python, source / "links.py", built)
    run(HERE.python, ROOT / "tests" / "reference.py", built)
    run(HERE.python, source / "in_browser.py", built)
    print(f"{built / 'index.html'}")


def main() -> None:
    """Install what the command needs, and run it."""
    if sys.version_info < (3, 11):  # noqa: UP036 (that is what it finds out)
        sys.exit(
            f"nystrom needs Python 3.11 or newer; this is {sys.version.split()[0]}."
        )
    command, rest = (sys.argv[1:2] or [""])[0], sys.argv[2:]
    if command not in EXTRAS:
        print(__doc__)
        sys.exit(f"unknown command {command!r}" if command else 0)
    if command == "test":
        test(*rest)
        return
    HERE.install(EXTRAS[command])
    if command == "demo":
        print("Three parts, a minute or two on two cores.\n", flush=True)
        run(HERE.python, "examples/demo.py", *rest)
        run(HERE.python, "examples/many_rows.py")
        run(HERE.python, "examples/estimators.py")
    elif command == "bench":
        bench(*rest or ["smoke"])
    elif command == "fuzz":
        fuzz(*rest)
    elif command == "mutants":
        run(HERE.python, "-m", "tests.mutants", *rest)
    elif command == "test-torch":
        test_torch(*rest)
    elif command == "types":
        types()
    elif command == "docs":
        docs()
    else:
        lint()


if __name__ == "__main__":
    main()
