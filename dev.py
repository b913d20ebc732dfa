#!/usr/bin/env python3
"""Everything a developer runs, with nothing but Python 3.11+ and pip.

    python3 dev.py demo     every sampler and estimator at work: tables and a picture
    python3 dev.py test     lint, types and the whole test suite
    python3 dev.py lint     ruff and mypy alone
    python3 dev.py mutants  plants every known fault in a copy; the tests must notice
    python3 dev.py test-torch   the tests of tensors, with torch, which it installs
    python3 dev.py bench    benchmarks: `dev.py bench paper|peers|scaling|smoke`, with
                            `--data folder` where files of the real sets are

The first use makes .venv and installs the project into it; later ones start at once.
Further arguments go to the command: `python3 dev.py test -k leverage`.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
ENVIRONMENT = ROOT / ".venv"
PYTHON = ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
EXTRAS = {
    "demo": "plot",
    "bench": "plot",
    "test": "test",
    "lint": "test",
    "mutants": "test",
    "test-torch": "test",
}
PIP = (PYTHON, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
#: The release that tensors are tried with; it is no dependency.
TORCH = "torch==2.13.0"


def install(extra: str) -> None:
    """Make the environment and install the project with an extra, once."""
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    stamp = ENVIRONMENT / f"installed-{extra}"
    if stamp.exists() and stamp.read_text() == wanted and PYTHON.exists():
        return
    if not PYTHON.exists():
        print(f"making {ENVIRONMENT.name} …", flush=True)
        venv.create(ENVIRONMENT, with_pip=True)
    print(f"installing nystrom[{extra}] …", flush=True)
    run(*PIP, "--editable", f".[{extra}]")
    stamp.write_text(wanted)


def run(*command: object) -> None:
    """Run a command in the project's folder; stop with its code if it fails."""
    code = subprocess.call([str(part) for part in command], cwd=ROOT)
    if code:
        sys.exit(code)


def lint() -> None:
    """ruff and mypy."""
    run(PYTHON, "-m", "ruff", "check", ".")
    run(PYTHON, "-m", "ruff", "format", "--check", ".")
    run(PYTHON, "-m", "mypy")


def test(*rest: str) -> None:
    """The whole suite on all cores, or a part of it: `-k leverage`, a file.

    BLAS has one thread in each process: two that share the cores wait for each other.
    """
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    side_by_side = () if rest else ("-n", "auto")
    run(PYTHON, "-m", "pytest", *side_by_side, *rest)


def test_torch(*rest: str) -> None:
    """The tests of tensors, with torch; without an index to install it from, none."""
    there = [PYTHON, "-c", f"import torch; assert '{TORCH[7:]}' in torch.__version__"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if subprocess.call([str(part) for part in there], **quiet):
        print(f"installing {TORCH} …", flush=True)
        if subprocess.call([str(part) for part in (*PIP, TORCH)], cwd=ROOT):
            print(
                f"{TORCH} could not be installed (see above; is a package index "
                "reachable?): the tests with torch were skipped."
            )
            return
    files = ("tests/test_devices.py", "tests/test_sklearn_contract.py")
    test(*files, "-k", "test_devices or torch", "-n", "auto", *rest)


def bench(name: str, *rest: str) -> None:
    """An experiment of benchmarks/configs, the figures, or a script of its own."""
    folder = ROOT / "benchmarks"
    if (folder / "configs" / f"{name}.toml").exists():
        run(PYTHON, folder / "run.py", name, *rest)
    elif (folder / f"{name}.py").exists():
        run(PYTHON, folder / f"{name}.py", *rest)
    elif name == "figures":
        run(PYTHON, folder / "figures", *rest)
    else:
        configs = sorted(path.stem for path in folder.glob("configs/*.toml"))
        scripts = sorted(path.stem for path in folder.glob("*.py"))
        sys.exit(
            f"unknown benchmark {name!r}; there are {', '.join(configs)}, figures, and "
            f"{', '.join(sorted(set(scripts) - {'run'}))}."
        )


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
    install(EXTRAS[command])
    if command == "demo":
        run(PYTHON, "examples/demo.py", *rest)
        run(PYTHON, "examples/estimators.py")
    elif command == "bench":
        bench(*rest or ["smoke"])
    elif command == "mutants":
        run(PYTHON, "-m", "tests.mutants", *rest)
    elif command == "test-torch":
        test_torch(*rest)
    else:
        lint()
        if command == "test":
            test(*rest)


if __name__ == "__main__":
    main()
