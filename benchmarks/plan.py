"""The plan for 10⁹ rows on 100 workers, checked by the same at a thousandth.

    python3 dev.py bench plan [rows] [workers]

`KernelRidge` with 500 landmarks by the default sampler on rows of 20 features and a
target in one `.npy` file that all workers see. What each part moves, holds and takes is
counted by formulas, and beside them measured on 10⁶ rows and two worker processes of
one thread. Times of the plan are those measured, by rows and worker. The table goes to
results/plan.csv.
"""

from __future__ import annotations

import csv
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from dask_engine import cluster
from distributed import Client
from files import COLUMNS, blocks
from harness.measuring import versions

from nystrom import KernelRidge, engines, sources
from nystrom import _random as randomness
from nystrom.engines import TILE
from nystrom.engines.dask import (
    MAX_TILES_PER_TASK,
    MIN_TILES_PER_TASK,
    TASKS_PER_THREAD,
    Dask,
)
from nystrom.samplers.pooled_greedy import MAX_SCORED_ROWS

RESULTS = Path(__file__).parent / "results" / "plan.csv"
ROWS, WORKERS, SIZE = 1_000_000, 2, 500
LARGE_ROWS, LARGE_WORKERS = 1_000_000_000, 100
#: What is done by the client: in proportion to the rows, and whatever their number.
SCANS, CLIENT = "drawing rows to look at (client)", "ranking and s × s algebra (client)"


class Stages:
    """A progress hook that keeps when each pass began and ended."""

    def __init__(self) -> None:
        self.passes: list[list[Any]] = []  # name, begun, ended

    def __call__(self, name: str, done: int, total: int) -> None:
        if done == 0:
            self.passes.append([name, time.perf_counter(), 0.0])
        self.passes[-1][2] = time.perf_counter()

    def seconds(self) -> dict[str, float]:
        """By name; passes of one name together."""
        found: dict[str, float] = {}
        for name, begun, ended in self.passes:
            found[name] = found.get(name, 0.0) + ended - begun
        return found


class Scans:
    """Counts the seconds of looking through u(seed, row) for the first rows."""

    def __init__(self) -> None:
        self.seconds, self._scan = 0.0, randomness.rows_below
        randomness.rows_below = self

    def __call__(self, *args: Any, **options: Any) -> Any:
        begun = time.perf_counter()
        found = self._scan(*args, **options)
        self.seconds += time.perf_counter() - begun
        return found


def tasks(n: int, workers: int) -> int:
    """Tasks of a pass that adds up."""
    tiles = -(-n // TILE)
    share = tiles // (TASKS_PER_THREAD * workers)
    return -(
        -tiles
        // min(
            MAX_TILES_PER_TASK, max(MIN_TILES_PER_TASK, 1 << share.bit_length() >> 1)
        )
    )


def planned(n: int, workers: int) -> dict[str, float]:
    """What formulas say, before anything runs."""
    d, s = COLUMNS, SIZE
    return {
        "GB read by a worker in a pass": n / workers * (d + 1) * 4 / 1e9,
        "tasks of the Gram matrix": tasks(n, workers),
        # Each sum of two may bring one of them from another worker.
        "MB between workers, Gram matrix, at most": (
            tasks(n, workers) * 8 * s * s + workers * (8 * s * s + 4 * s * d)
        )
        / 1e6,
        "MB of rows that come to the client": min(n, MAX_SCORED_ROWS) * d * 4 / 1e6,
        "10⁹ multiply-adds of a worker, Gram matrix": n
        / workers
        * s
        * (s / 2 + d)
        / 1e9,
    }


def _moved(dask_worker: Any) -> int:
    return sum(each["total"] for each in dask_worker.transfer_incoming_log)


def _peak() -> float:
    """MB; what getrusage tells is also that of the process that began this one."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def write(path: Path, n: int) -> None:
    """The rows, with their target in the last column."""
    shape = (n, COLUMNS + 1)
    array = np.lib.format.open_memmap(path, "w+", np.float32, shape)
    place = 0
    for rows in blocks(n):
        array[place : place + len(rows)] = rows
        place += len(rows)
    array.flush()


def measured(path: Path, workers: int) -> tuple[dict[str, float], dict[str, float]]:
    """The same counted in a run, and seconds by pass."""
    model = KernelRidge(1.0, kernel="rbf", gamma=0.02, n_landmarks=SIZE, random_state=0)
    stages, read = Stages(), sources.open(path, target=-1)
    with cluster(workers) as there, Client(there) as client:
        few = np.random.default_rng(0).standard_normal((50_000, COLUMNS))
        with engines.using(Dask(client)):
            KernelRidge(1.0, n_landmarks=50).fit(few.astype(np.float32), few[:, 0])
        before = sum(client.run(_moved).values())
        scans = Scans()
        begun = time.perf_counter()
        with engines.using(Dask(client, stages)):
            model.fit(read)
        seconds = stages.seconds() | {"whole fit": time.perf_counter() - begun}
        counts = {
            "MB between workers, all passes": (
                sum(client.run(_moved).values()) - before
            )
            / 1e6,
            "MB of a worker's memory at its peak": max(client.run(_peak).values()),
            "MB of the client's": _peak(),
            "passes to choose": model.landmarks_.n_passes,
        }
    seconds[SCANS] = scans.seconds
    passes = sum(stages.seconds().values())
    seconds[CLIENT] = seconds["whole fit"] - passes - scans.seconds
    return counts, seconds


def main() -> None:
    """The table: what, at the scale that ran, and in the plan."""
    numbers: list[Callable] = [lambda: ROWS, lambda: WORKERS]
    n, workers = (
        int(float(sys.argv[i + 1])) if len(sys.argv) > i + 1 else default()
        for i, default in enumerate(numbers)
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        write(path, n)
        counts, seconds = measured(path, workers)
    small, large = planned(n, workers), planned(LARGE_ROWS, LARGE_WORKERS)
    rows: list[tuple] = [(what, small[what], large[what]) for what in small]
    rows += [(what, value, "") for what, value in counts.items()]
    by_row = (LARGE_ROWS / LARGE_WORKERS) / (n / workers)
    for name, took in seconds.items():
        factor = {SCANS: LARGE_ROWS / n, CLIENT: 1.0}.get(name, by_row)
        if name.startswith("scores"):  # of rows that the client holds
            factor = MAX_SCORED_ROWS / n
        rows.append((f"s, {name}", took, "" if name == "whole fit" else took * factor))
    with RESULTS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        about = versions()
        at = f"{n} rows on {workers}", f"{LARGE_ROWS} on {LARGE_WORKERS}, planned"
        writer.writerow(["what", *at, *about])
        for what, *values in rows:
            told = [v if isinstance(v, str) else f"{v:.4g}" for v in values]
            writer.writerow([what, *told, *about.values()])
            print(f"{what:<50} {told[0]:>12} {told[1]:>12}")


if __name__ == "__main__":
    main()
