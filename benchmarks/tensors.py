"""Tensors of torch on the CPU beside the same rows in NumPy.

    python3 dev.py bench tensors [rows]

Fits and features of 200 000 rows of 20 features, float32, 500 landmarks, taken in turn,
both with as many threads as there are cores. torch is to be installed beforehand. The
table goes to results/tensors.csv.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from harness.measuring import timed, versions

from nystrom import KernelKMeans, KernelPCA, KernelRidge, Nystroem, select_landmarks

RESULTS = Path(__file__).parent / "results" / "tensors.csv"
SIZE, REPEATS = 500, 3


def jobs(X: Any, y: Any) -> dict[str, Any]:
    """What is timed, by name."""
    common: dict[str, Any] = {"kernel": "rbf", "gamma": 0.02, "random_state": 0}
    wide = common | {"n_landmarks": SIZE}
    return {
        "choosing": lambda: select_landmarks(X, **wide),
        "Nystroem.fit_transform": lambda: Nystroem(
            n_components=SIZE, **common
        ).fit_transform(X),
        "KernelRidge.fit": lambda: KernelRidge(1.0, **wide).fit(X, y),
        "KernelPCA.fit": lambda: KernelPCA(10, **wide).fit(X),
        "KernelKMeans.fit": lambda: KernelKMeans(8, n_init=1, max_iter=10, **wide).fit(
            X
        ),
    }


def main() -> None:
    """The table, a row for each job."""
    n = int(float(sys.argv[1])) if len(sys.argv) > 1 else 200_000
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 6)) @ rng.standard_normal((6, 20))
    X = (X + 0.5 * rng.standard_normal((n, 20))).astype(np.float32)
    y = np.sin(X[:, 0])
    numpy_jobs = jobs(X, y)
    torch_jobs = jobs(torch.from_numpy(X), torch.from_numpy(y))
    about = versions() | {"torch": torch.__version__}
    with RESULTS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["what", "NumPy s", "torch s", "ratio", "n", "s", *about])
        for name in numpy_jobs:
            pairs = [
                (timed(numpy_jobs[name])[0], timed(torch_jobs[name])[0])
                for _ in range(REPEATS)
            ]
            ours, theirs = (median(times) for times in zip(*pairs, strict=True))
            row = [
                name,
                f"{ours:.4g}",
                f"{theirs:.4g}",
                f"{theirs / ours:.3g}",
                n,
                SIZE,
            ]
            writer.writerow([*row, *about.values()])
            print(*row, flush=True)


if __name__ == "__main__":
    main()
