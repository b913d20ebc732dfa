"""Choosing landmarks from rows that are stored nowhere: memory while n grows.

    python3 dev.py bench generated_rows [largest number of rows]

Rows of ten clusters in ten dimensions, float32, are made by a function of their numbers
whenever a pass asks for them; 200 landmarks. Each case runs in a process of its own,
whose peak of resident memory above that of one with few rows is reported. The table
goes to results/generated_rows.csv.
"""

from __future__ import annotations

import csv
import multiprocessing
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nystrom import select_landmarks, sources

RESULTS = Path(__file__).parent / "results" / "generated_rows.csv"
SIZE, COLUMNS, CHUNK = 200, 10, 1024
SAMPLERS = ("uniform", "accelerated", "auto")


@dataclass(frozen=True)
class Clusters:
    """Rows around ten centers, some of which are rare."""

    seed: int = 0

    def __call__(self, start: int, stop: int) -> np.ndarray:
        centers = np.random.default_rng(self.seed).standard_normal((10, COLUMNS)) * 3
        rng = np.random.Generator(np.random.SFC64([self.seed, start]))
        kind = np.minimum(rng.exponential(1.5, stop - start).astype(int), 9)
        rows = rng.standard_normal((stop - start, COLUMNS), dtype=np.float32)
        rows += centers[kind].astype(np.float32)
        return rows


def measure(sampler: str, n_rows: int, queue: multiprocessing.Queue) -> None:
    """In a process of its own: what choosing took."""
    select_landmarks(
        sources.GeneratedRows(Clusters(), 5000, COLUMNS),
        gamma=0.05,
        n_landmarks=SIZE,
        sampler=sampler,
        random_state=0,
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.perf_counter()
    landmarks = select_landmarks(
        sources.GeneratedRows(Clusters(), n_rows, COLUMNS, CHUNK),
        gamma=0.05,
        n_landmarks=SIZE,
        sampler=sampler,
        random_state=0,
    )
    seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    evaluations = landmarks.n_kernel_evaluations / n_rows / SIZE
    queue.put((seconds, (peak - before) / 1024, landmarks.n_passes, evaluations))


def main() -> None:
    """All samplers for 10⁵ rows, 10⁶, …"""
    largest = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**7
    names = ["sampler", "rows", "seconds", "MB more", "passes", "evaluations / n s"]
    found = []
    context = multiprocessing.get_context("spawn")
    n_rows = 10**5
    while n_rows <= largest:
        for sampler in SAMPLERS:
            queue = context.Queue()
            process = context.Process(target=measure, args=(sampler, n_rows, queue))
            process.start()
            found.append((sampler, n_rows, *queue.get()))
            process.join()
            print(*(f"{v:g}" if isinstance(v, float) else v for v in found[-1]))
        n_rows *= 10
    with RESULTS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([names, *found])


if __name__ == "__main__":
    main()
