"""`python3 dev.py fuzz`: new cases for some minutes, or one of them again."""

from __future__ import annotations

import argparse
import importlib
import secrets
import sys

from .running import MODULES, run


def main() -> int:
    """1 where something is wrong, as for a test."""
    parser = argparse.ArgumentParser(prog="dev.py fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--cases", type=int, help="stop after so many")
    parser.add_argument("--case", type=int, help="one case alone, told in full")
    parser.add_argument("--first", type=int, help="the first number; else a random one")
    parser.add_argument("--models", action="store_true", help="damaged model files")
    parser.add_argument("--jobs", type=int, help="processes; else as many as cores")
    parser.add_argument("--log", help="a file that findings are added to")
    given = parser.parse_args()
    kind = "models" if given.models else "fits"
    if given.case is not None:
        return one_case(kind, given.case)

    def told(number, what):
        models = " --models" if given.models else ""
        line = f"\n{what}\n  repeat: python3 dev.py fuzz{models} --case {number}"
        print(line, flush=True)
        if given.log:
            with open(given.log, "a", encoding="utf-8") as file:
                print(line, file=file)

    first = secrets.randbelow(10**9) if given.first is None else given.first
    counts = run(
        MODULES[kind],
        first,
        told=told,
        seconds=60 * given.minutes,
        n_cases=given.cases,
        n_jobs=given.jobs,
    )
    print(f"{kind} from {first} on: {dict(counts)}")
    return 1 if counts["wrong"] else 0


def one_case(kind, number) -> int:
    """One case in this process, with all that is known about it."""
    module = importlib.import_module(MODULES[kind])
    print(f"case {number}\n  {module.case_of(number)}", flush=True)
    verdict = module.judged(number)
    print(f"{verdict.kind}: {verdict.what}")
    return 1 if verdict.kind == "wrong" else 0


if __name__ == "__main__":
    sys.exit(main())
