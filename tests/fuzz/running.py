"""Many cases on all cores: every one with a deadline, in a process that can be killed.

A case that hangs, asks for too much memory or ends its process is a finding as others
are, and the work goes on with the next number.
"""

from __future__ import annotations

import faulthandler
import importlib
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

#: Seconds that a case may take; most take less than a tenth of one.
DEADLINE = 60.0
#: Bytes of address space that a process may have.
MEMORY = 6 * 2**30
#: The file in which a process says where it was when its time was over.
STACK = "stack.txt"
#: The module that judges a case of a kind, by its function `judged`.
MODULES = {"fits": "fuzz.judging", "models": "fuzz.models"}


@dataclass(eq=False)
class Worker:
    """A process that judges every step-th number, until it is killed."""

    module: str
    next: int
    step: int
    deadline: float
    folder: Path  # of what it leaves: it may be killed at any time
    process: Any = None
    connection: Connection | None = None

    def start(self):
        """Begin, or go on after a process that ended."""
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe(duplex=False)
        given = (self.module, self.next, self.step, self.deadline, self.folder, theirs)
        self.process = context.Process(target=work, args=given, daemon=True)
        self.process.start()
        theirs.close()

    def received(self):
        """(number, kind, what) of the next case; of one that ended the process too."""
        try:
            found = self.connection.recv()
        except EOFError:
            self.process.join()
            file = self.folder / STACK
            stack = file.read_text(errors="replace")[-2000:] if file.exists() else ""
            ended = f"the process ended with {self.process.exitcode}. {stack}"
            found = (self.next, "wrong", ended)
            self.next += self.step
            self.start()
        else:
            self.next = found[0] + self.step
        return found

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.join()


def work(module, number, step, deadline, folder, connection):
    """What a process does: one number after the other."""
    limit_memory()
    tempfile.tempdir = str(folder)
    judged = importlib.import_module(module).judged
    with open(folder / STACK, "w", encoding="utf-8") as file:
        while True:
            # Not a signal: code that holds the interpreter would never see it.
            faulthandler.dump_traceback_later(deadline, exit=True, file=file)
            verdict = judged(number)
            faulthandler.cancel_dump_traceback_later()
            connection.send((number, verdict.kind, verdict.what))
            number += step


def limit_memory():
    """Where the system can: what asks for more gets a MemoryError."""
    try:
        import resource
    except ImportError:
        return
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, most))


def run(
    module, first, *, told, seconds=None, n_cases=None, n_jobs=None, deadline=DEADLINE
):
    """Judge cases from `first` on: how many came out how.

    `told` gets the number of each that is wrong, and what is.
    """
    n_jobs = n_jobs or os.cpu_count() or 1
    folders = [Path(tempfile.mkdtemp(prefix="nystrom-")) for _ in range(n_jobs)]
    workers = [
        Worker(module, first + k, n_jobs, deadline, folder)
        for k, folder in enumerate(folders)
    ]
    begun, counts, shown = time.monotonic(), Counter(), 0.0
    try:
        for worker in workers:
            worker.start()
        while True:
            elapsed = time.monotonic() - begun
            enough = n_cases is not None and counts.total() >= n_cases
            if enough or (seconds is not None and elapsed >= seconds):
                return counts
            if elapsed - shown > 1:
                shown = elapsed
                show(counts, elapsed, seconds)
            ready = wait([worker.connection for worker in workers], timeout=1.0)
            for worker in workers:
                if worker.connection in ready:
                    number, verdict, what = worker.received()
                    counts[verdict] += 1
                    if verdict == "wrong":
                        told(number, what)
    finally:
        for worker in workers:
            worker.stop()
            shutil.rmtree(worker.folder, ignore_errors=True)
        show(counts, time.monotonic() - begun, seconds, end="\n")


def show(counts, elapsed, seconds, end=""):
    """How far it is, on one line of the terminal."""
    parts = [f"{counts.total()} cases"]
    parts += [f"{counts[kind]} {kind}" for kind in ("right", "refused", "wrong")]
    whole = "" if seconds is None else f" of {seconds:.0f}"
    line = f"\r{', '.join(parts)}; {elapsed:.0f}{whole} s "
    print(line, end=end, file=sys.stderr, flush=True)
