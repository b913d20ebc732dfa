"""Damaged model files: refused by the library's own error, soon, in little memory.

What has no checksum, or a new one, may load, and then answers or refuses rows; nothing
that a file says is run. (A number of a model made another is a model that nobody
fitted: it loads, and is not asked.)
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from nystrom import load
from nystrom.persistence import ModelFileError, UntrustedTypesError

from .damage import WAYS, schema
from .judging import Verdict

FILES = sorted((Path(__file__).parents[1] / "models").glob("*-format2.nystrom"))
#: What loading may take beside what is there already: the files have some kilobytes.
MEMORY, SECONDS = 128 * 2**20, 10.0
#: What no file may make happen, as the interpreter names it.
FORBIDDEN = ("os.", "subprocess.", "socket.", "shutil.", "ctypes.", "pickle.")


@dataclass(frozen=True)
class Damaged:
    """A model file, and what is done to it."""

    file: Path
    way: Callable
    seed: int

    def data(self) -> bytes:
        return self.way(np.random.default_rng(self.seed), self.file.read_bytes())

    def __str__(self):
        return f"{self.file.name}: {self.way.__name__}"


def case_of(number: int) -> Damaged:
    """The case of a number."""
    rng = np.random.default_rng([2, number])
    way, file = WAYS[rng.integers(len(WAYS))], FILES[rng.integers(len(FILES))]
    return Damaged(file, way, int(rng.integers(2**31)))


def judged(number: int) -> Verdict:
    """Load a damaged file, and use what comes back."""
    know_good_files()
    case = case_of(number)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "model.nystrom"
        path.write_bytes(case.data())
        begun, verdict = time.process_time(), Verdict("right")
        with watched() as happened:
            try:
                with little_memory():
                    model = load(path)
                if case.way not in schema.WAYS:
                    use(model)
            except (ModelFileError, UntrustedTypesError) as error:
                verdict = Verdict("refused", str(error))
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                what = f"{type(error).__name__}: {error} @ {where.name}:{where.lineno}"
                verdict = Verdict("wrong", what)
    seconds = time.process_time() - begun
    if happened:
        return Verdict("wrong", f"the file made this happen: {happened[:3]}")
    if seconds > SECONDS:
        return Verdict("wrong", f"{seconds:.0f} s of work")
    return verdict


def use(model) -> None:
    """Ask what was loaded: where it holds nonsense, Python's errors are as good."""
    for method in ("transform", "predict"):
        with suppress(Exception), np.errstate(all="ignore"):
            getattr(model, method)(np.ones((3, 3)))


@cache
def know_good_files() -> None:
    """Load the files as they are, so that imports are not taken for an attack."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for path in FILES:
            use(load(path, trusted=["numpy.inner", "numpy.vdot"]))
    sys.addaudithook(hook)  # for as long as the process lives


#: What was seen of what is forbidden; a list while somebody looks.
SEEN: list[list[tuple[str, str]]] = []


def hook(event, arguments):
    if not SEEN:
        return
    mode = arguments[1] if event == "open" else None
    writes = isinstance(mode, str) and bool({*mode} & {*"wax+"})
    if writes or event.startswith(FORBIDDEN):
        SEEN[-1].append((event, str(arguments)[:100]))


@contextmanager
def watched():
    """What is asked of the interpreter meanwhile, of what is forbidden."""
    SEEN.append([])
    try:
        yield SEEN[-1]
    finally:
        SEEN.pop()


@contextmanager
def little_memory():
    """Where the system can: a limit on what may be asked for meanwhile."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError):
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    limit = pages * os.sysconf("SC_PAGE_SIZE") + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
