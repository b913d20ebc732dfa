"""`python3 dev.py mutants`: plant every fault of the table; all must be noticed.

    python3 dev.py mutants            all of them, as many at a time as there are cores
    python3 dev.py mutants -k gain    those with this word in file, reason or tests
    python3 dev.py mutants --list     what there is, and nothing is run

Faults are planted in copies of the package, never in the tree. The tests that they name
must pass without a fault, and one of them must fail with it: the exit code is 1 where a
fault survives, cannot be planted, or names tests that fail anyway.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

from .faults import Fault, read
from .trial import PASSED, Copies, Nursery, Outcome, imported_from, tried

#: Tests that are run together without a fault.
TOGETHER = 8


def bar(what: str, done: int, total: int, begun: float) -> None:
    """One line that is drawn over itself; in a log, every tenth."""
    live, last = sys.stderr.isatty(), done == total
    if not live and not last and done % max(1, total // 10):
        return
    full = 30 * done // total
    text = f"{'█' * full}{'·' * (30 - full)} {done}/{total} {what}"
    text += f", {time.monotonic() - begun:.0f} s"
    start, end = ("\r", "\n" if last else "") if live else ("", "\n")
    print(f"{start}{text}", end=end, file=sys.stderr, flush=True)


def run(faults: list[Fault], at_once: int) -> list[Outcome]:
    """Every fault's outcome, as they come; the tests have passed without one."""
    begun, outcomes, nursery = time.monotonic(), [], Nursery()
    with Copies() as copies, ThreadPoolExecutor(at_once) as pool:
        found = imported_from(copies.clean)
        if found.parent != copies.clean:
            sys.exit(f"Tests do not see the copies: nystrom is imported from {found}.")
        named = sorted({test for fault in faults for test in fault.tests})
        lots = [named[i : i + TOGETHER] for i in range(0, len(named), TOGETHER)]
        without = pool.map(lambda lot: nursery.run(copies.clean, lot), lots)
        for done, (code, said) in enumerate(without, 1):
            if code != PASSED:
                pool.shutdown(cancel_futures=True)
                sys.exit(f"{said}\nThis fails without a fault: repair it first.")
            bar("lots of tests without a fault", done, len(lots), begun)
        jobs = [
            pool.submit(tried, fault, number, copies, nursery)
            for number, fault in enumerate(faults)
        ]
        for job in as_completed(jobs):
            outcomes.append(outcome := job.result())
            if not outcome.killed:  # now: a run that is stopped has said it
                tests = ", ".join(outcome.fault.tests)
                print(f"\n{outcome.fault}\n  {outcome.said}\n  {tests}", flush=True)
            survived = sum(not outcome.killed for outcome in outcomes)
            bar(f"faults, {survived} survived", len(outcomes), len(faults), begun)
    return outcomes


def chosen(faults: list[Fault], word: str) -> list[Fault]:
    """Those that have a word in file, reason or tests."""
    return [f for f in faults if word.lower() in f"{f} {' '.join(f.tests)}".lower()]


def main() -> int:
    """Run what was asked for; 0 if every fault was noticed."""
    parser = argparse.ArgumentParser(prog="dev.py mutants", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("-k", default="", metavar="word", help="only these faults")
    parser.add_argument("-n", type=int, default=os.cpu_count() or 1, help="at a time")
    parser.add_argument("--list", action="store_true", help="say which, run none")
    options = parser.parse_args()
    faults = chosen(read(), options.k)
    if not faults:
        sys.exit(f"No fault has {options.k!r} in its file, its reason or its tests.")
    if options.list:
        print(*faults, sep="\n")
        return 0
    n_survived = sum(not each.killed for each in run(faults, options.n))
    print(f"{len(faults) - n_survived} of {len(faults)} faults were noticed.")
    return int(bool(n_survived))


if __name__ == "__main__":
    sys.exit(main())
