"""What a Dask cluster costs and gains: worker processes beside threads, and a kill.

    python3 dev.py bench dask_engine

`KernelRidge` with 500 landmarks on 2 million rows of 20 features, float32, which are
made where they are wanted and never stored. In one run, each the best of the repeats:
one worker process of one thread, two of them, threads of this process, two workers of
which one is killed when half of the longest pass is done. All must have the same
coefficients, to the last bit. The table goes to results/dask_engine.csv.
"""

from __future__ import annotations

import argparse
import csv
import os
import signal
from collections.abc import Callable
from pathlib import Path

import dask
import numpy as np
from distributed import Client, LocalCluster
from harness.measuring import threads, timed, versions

from nystrom import KernelRidge, engines
from nystrom.engines import Threads
from nystrom.engines.dask import Dask
from nystrom.sources import Source

RESULTS = Path(__file__).parent / "results" / "dask_engine.csv"
ROWS, FEATURES, LANDMARKS, REPEATS = 2_000_000, 20, 500, 3
FIELDS = ["what", "seconds", "beside", "ratio", "n", "d", "s"]


class Counted(Source):
    """Rows that are a function of their numbers: uniform, from mixed counters."""

    def __init__(self, n_rows: int, n_features: int) -> None:
        self.n_rows, self.n_features = n_rows, n_features

    def rows(self, start: int, stop: int) -> np.ndarray:
        return self.take(np.arange(start, stop))

    def take(self, indices: np.ndarray) -> np.ndarray:
        width = np.uint64(self.n_features)
        z = np.asarray(indices, np.uint64)[:, None] * width
        z = z + np.arange(width, dtype=np.uint64)
        z = (z + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)  # splitmix64
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
        return (z >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-23) - 1


class Kill:
    """A progress hook that kills a worker once, in the middle of the Gram matrix."""

    def __init__(self, client: Client) -> None:
        self.victim: int | None = next(iter(client.run(os.getpid).values()))

    def __call__(self, stage: str, done: int, total: int) -> None:
        if self.victim is not None and stage == "Gram matrix" and 2 * done > total:
            os.kill(self.victim, signal.SIGKILL)
            self.victim = None


#: Has worker processes keep up to 128 MB of freed memory.
KEEPING_MEMORY = {
    f"distributed.nanny.pre-spawn-environ.MALLOC_{name}_THRESHOLD_": n_bytes
    for name, n_bytes in [("TRIM", 2**27), ("MMAP", 2**26)]
}


def cluster(n_workers: int) -> LocalCluster:
    """Worker processes of one thread, on this machine."""
    with dask.config.set(KEEPING_MEMORY):
        return LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=100,
        )


def fit(engine: engines.Engine, source: Source, y: np.ndarray) -> np.ndarray:
    """The coefficients."""
    model = KernelRidge(
        1.0, kernel="rbf", gamma=0.2, n_landmarks=LANDMARKS, random_state=0
    )
    with engines.using(engine):
        return model.fit(source, y).dual_coef_


def measure(n_rows: int) -> dict[str, float]:
    """Seconds by what ran the passes."""
    source = Counted(n_rows, FEATURES)
    y = np.concatenate(
        [source.rows(i, min(i + 2**16, n_rows))[:, 0] for i in range(0, n_rows, 2**16)]
    )
    seconds: dict[str, list[float]] = {}
    coefficients: list[np.ndarray] = []

    def run(what: str, make: Callable[[], engines.Engine]) -> None:
        engine = make()
        took, found = timed(lambda: fit(engine, source, y))
        print(f"{what:<40} {took:7.2f} s")
        seconds.setdefault(what, []).append(took)
        coefficients.append(found)

    for _ in range(REPEATS):
        for n in (1, 2):
            with cluster(n) as there, Client(there) as client:
                fit(Dask(client), Counted(20_000, FEATURES), y[:20_000])  # imports
                run(f"{n} worker processes", lambda c=client: Dask(c))  # type: ignore[misc]
                if n == 2:
                    run("2, one killed", lambda c=client: Dask(c, Kill(c)))  # type: ignore[misc]
            with threads(n):
                run(f"{n} threads", lambda n=n: Threads(n))  # type: ignore[misc]
    assert all((found == coefficients[0]).all() for found in coefficients)
    return {what: min(times) for what, times in seconds.items()}


#: What is compared with what.
PAIRS = [
    ("2 worker processes", "1 worker processes"),
    ("2 worker processes", "2 threads"),
    ("1 worker processes", "1 threads"),
    ("2, one killed", "2 worker processes"),
    ("2 threads", "1 threads"),
]


def main() -> None:
    """The table, a row for each way of running."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    n_rows = parser.parse_args().rows
    seconds = measure(n_rows)
    about = versions()
    with RESULTS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*FIELDS, *about])
        for what, beside in PAIRS:
            ratio = seconds[what] / seconds[beside]
            row = [what, f"{seconds[what]:.4g}", beside, f"{ratio:.4g}"]
            writer.writerow([*row, n_rows, FEATURES, LANDMARKS, *about.values()])
            print(f"{what} beside {beside}: {ratio:.2f}")


if __name__ == "__main__":
    main()
