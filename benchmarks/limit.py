"""How close the passes come to the machine: their GEMM and exp at measured rates.

    python3 dev.py bench limit --data folder

Covertype, float32, 1000 landmarks. For each pass over the rows, what it cannot do
without is counted (multiply-adds of the kernel block and of the product after it,
exponentials) and divided by the rates that NumPy reaches for just these in the same
run. The share is that time over the pass's own: the best of five rounds of either,
and the medians of both, which other work on the machine changes alike. Where a pass
makes a new array, what writing to memory that was never touched takes is measured by
itself and taken off. The table goes to results/limit.csv.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import numpy as np
from harness.config import Problem
from harness.measuring import threads, timed, versions
from harness.problems import load

from nystrom import select_landmarks
from nystrom.engines import Threads
from nystrom.landmarks import Landmarks
from nystrom.linalg.factor import N_COLUMN_BLOCKS
from nystrom.linalg.features import FeatureMap, features
from nystrom.linalg.moments import moments
from nystrom.linalg.residuals import (
    prepare_residuals,
    residuals,
    ridge_inverse_root,
    weighted_gram,
)
from nystrom.sources import DenseRows

RESULTS = Path(__file__).parent / "results" / "limit.csv"
GAMMA, SIZE, ROWS, REPEATS = 0.01, 1000, 200_000, 5
TILE, TRIES = 1024, range(8)
FIELDS = ["pass", "threads", "kernel_gemm", "exp", "product", "needed_seconds"]
FIELDS += ["first_touch", "seconds", "share", "share_of_medians", "n", "d", "s"]


def gemm_rate(dtype: type) -> float:
    """Multiply-adds per second of a large product."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((8192, SIZE)).astype(dtype)
    B = rng.standard_normal((SIZE, SIZE)).astype(dtype)
    out = np.empty_like(A)
    return (
        A.size * SIZE / min(timed(lambda: np.matmul(A, B, out=out))[0] for _ in TRIES)
    )


def thin_gemm_rate(d: int) -> float:
    """Multiply-adds per second of float32 tiles of rows times landmarks."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((64 * TILE, d)).astype(np.float32)
    B = rng.standard_normal((d, SIZE)).astype(np.float32)
    out = np.empty((len(A), SIZE), dtype=np.float32)
    return (
        A.size * SIZE / min(timed(lambda: np.matmul(A, B, out=out))[0] for _ in TRIES)
    )


def exp_rate(n_threads: int) -> float:
    """float32 exponentials per second, in place, tile by tile."""
    tiles = [np.full((TILE, SIZE), -1.0, dtype=np.float32) for _ in range(n_threads)]

    def work(tile: np.ndarray) -> None:
        for _ in range(40):
            tile.fill(-1.0)
            np.exp(tile, out=tile)

    def fill(tile: np.ndarray) -> None:
        for _ in range(40):
            tile.fill(-1.0)

    with ThreadPoolExecutor(n_threads) as pool:
        both, _ = timed(lambda: list(pool.map(work, tiles)))
        filling, _ = timed(lambda: list(pool.map(fill, tiles)))
    return 40 * n_threads * TILE * SIZE / (both - filling)


def first_touch(n_rows: int, n_threads: int) -> float:
    """Seconds to write once to a new float32 array of so many rows."""
    result = np.empty((n_rows, SIZE), dtype=np.float32)
    tile = np.ones((TILE, SIZE), dtype=np.float32)

    def work(first: int) -> None:
        for start in range(first * TILE, n_rows, n_threads * TILE):
            rows = result[start : start + TILE]
            rows[:] = tile[: len(rows)]

    with ThreadPoolExecutor(n_threads) as pool:
        return timed(lambda: list(pool.map(work, range(n_threads))))[0]


def passes(
    landmarks: Landmarks, X: np.ndarray, y: np.ndarray
) -> dict[str, tuple[Callable, type, float]]:
    """For each: the pass, the precision of its product, multiply-adds per row."""
    source, engine = DenseRows(X), Threads()
    K = weighted_gram(landmarks.kernel.gram(landmarks.points), np.ones(SIZE))
    B = ridge_inverse_root(K, np.ones(SIZE), float(np.trace(K)) / SIZE)
    targets = source.replace(targets=y[:, None])
    # A ridge that needs no whitening: the Gram matrix of K's blocks as they are.
    mapping = FeatureMap.for_ridge(landmarks, targets, 1e-2 * len(X), center=False)
    # A triangular factor in column blocks needs this share of the dense product.
    triangle = (1 + 1 / N_COLUMN_BLOCKS) / 2
    whitened = ", whitened" if mapping.whiten else ""
    return {
        "score": (
            lambda: residuals(
                prepare_residuals(landmarks.columns(), source, B),
                source,
                engine=engine,
                name="scores",
            ),
            np.float32,
            triangle * SIZE**2,
        ),
        "feature": (
            lambda: features(landmarks, source, engine, wide=False),
            np.float32,
            triangle * SIZE**2,
        ),
        f"Gram{whitened}": (
            lambda: moments(mapping, targets, engine),
            np.float64,
            0.5 * SIZE**2,
        ),
    }


def measure(X: np.ndarray, y: np.ndarray, n_threads: int) -> list[dict]:
    """A row for each pass."""
    options = {"gamma": GAMMA, "n_landmarks": SIZE, "random_state": 0}
    n, d = X.shape
    with threads(n_threads):
        landmarks = select_landmarks(X, sampler="accelerated", **options)
        jobs = passes(landmarks, X, y)
        rates: dict[object, list[float]] = {}
        seconds: dict[str, list[float]] = {}
        touches: list[float] = []
        for _ in range(REPEATS):
            for dtype in (np.float32, np.float64):
                rates.setdefault(dtype, []).append(gemm_rate(dtype))
            rates.setdefault("thin", []).append(thin_gemm_rate(d + 2))
            rates.setdefault("exp", []).append(exp_rate(n_threads))
            touches.append(first_touch(n, n_threads))
            for name, (job, _, _) in jobs.items():
                seconds.setdefault(name, []).append(timed(job)[0])
    table = []
    for name, (_, dtype, work) in jobs.items():
        shares = []
        for quick, short in ((max, min), (median, median)):
            rate = {key: quick(values) for key, values in rates.items()}
            # Two columns more: the kernel's block is one product with norms appended.
            parts = [n * SIZE * (d + 2) / rate["thin"], n * SIZE / rate["exp"]]
            parts.append(n * work / rate[dtype])
            took = short(seconds[name])
            touch = short(touches) if name == "feature" else 0.0
            shares.append((parts, touch, took, sum(parts) / (took - touch)))
        (parts, touch, took, share), (*_, of_medians) = shares
        values = [name, n_threads, *parts, sum(parts), touch, took, share, of_medians]
        table.append(dict(zip(FIELDS, [*values, n, d, SIZE], strict=True)))
        print(
            f"{name:<16} {took:6.2f} s, {touch:.2f} of it new memory, "
            f"share {share:.2f}, of medians {of_medians:.2f}"
        )
    return table


def main() -> None:
    """One and two threads."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder with the real sets' files")
    rows = load(Problem("covertype", ROWS, "float32", ""), parser.parse_args().data)
    about = versions()
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*FIELDS, *about], lineterminator="\n")
        writer.writeheader()
        for n_threads in (1, 2):
            for row in measure(rows.X, rows.y, n_threads):
                short = {
                    k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()
                }
                writer.writerow(short | about)


if __name__ == "__main__":
    main()
