"""Run the experiments of a TOML file: `python3 dev.py bench paper --data folder`.

Results go to results/<name>.csv, a row per case as it is found. What is there is not
measured again, so that a killed run goes on where it stopped; delete rows to measure
them anew. At the end the figures and tables that read the file are made.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from pathlib import Path

from figures import draw
from harness import config, results
from harness.measuring import threads, versions
from harness.tasks import TASKS

RESULTS = Path(__file__).parent / "results"


class Progress:
    """A bar over all cases: drawn over itself on a terminal, else a line per group."""

    def __init__(self, total: int, done: int) -> None:
        self.total, self.before, self.done = total, done, done
        self.live, self.begun = sys.stderr.isatty(), time.monotonic()

    def step(self, text: str, last_of_group: bool) -> None:
        """One case more."""
        self.done += 1
        if not self.live and not last_of_group:
            return
        passed = time.monotonic() - self.begun
        left = passed / (self.done - self.before) * (self.total - self.done)
        full = 30 * self.done // self.total
        bar = "█" * full + "·" * (30 - full)
        line = f"{bar} {self.done}/{self.total}, {left / 60:.0f} min left, {text}"
        end = "" if self.live and self.done < self.total else "\n"
        start = "\r\x1b[K" if self.live else ""
        print(f"{start}{line}", end=end, file=sys.stderr, flush=True)


def measure(path: Path, out: Path, folder: Path | None, only: list[str]) -> None:
    """Measure the cases of a file that are not in the results yet."""
    found = {results.key(row) for row in results.read(out)}
    wanted = [e for e in config.read(path) if not only or e.name in only]
    todo = {e.name: [c for c in e.cases() if c not in found] for e in wanted}
    total = sum(len(list(e.cases())) for e in wanted)
    progress = Progress(total, total - sum(map(len, todo.values())))
    about, skipped = versions(), dict[str, str]()
    for experiment in wanted:
        task = TASKS[experiment.task]
        groups = itertools.groupby(
            todo[experiment.name], lambda case: (case.problem, case.threads)
        )
        for (_, n_threads), group in groups:
            cases = list(group)
            with threads(n_threads):
                for case, row in task(list(cases), folder, **experiment.options):
                    if "skipped" in row:
                        skipped[case.method] = row["skipped"]
                    else:
                        results.append(out, case, row | about)
                    progress.step(str(case), case == cases[-1])
    for method, why in skipped.items():
        print(f"{method} was skipped: {why}", file=sys.stderr)


def main() -> None:
    """Measure, then draw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    names = sorted(path.stem for path in config.FOLDER.glob("*.toml"))
    parser.add_argument("name", choices=names)
    parser.add_argument("--data", type=Path, help="a folder with the real sets' files")
    parser.add_argument("--out", type=Path, help="the CSV file, if not in results/")
    parser.add_argument("--only", nargs="*", default=[], help="experiments by name")
    given = parser.parse_args()
    out = given.out or RESULTS / f"{given.name}.csv"
    if given.name == "smoke" and given.out is None:
        # It is the run that counts, not its results: from the beginning every time.
        out = Path("build/benchmarks/smoke.csv")
        out.unlink(missing_ok=True)
    folder = None if given.data is None else given.data.resolve()
    measure(config.FOLDER / f"{given.name}.toml", out, folder, given.only)
    print(f"{len(results.read(out))} rows are in {out}")
    if given.out is None and not given.only:
        draw(given.name)


if __name__ == "__main__":
    main()
