"""The core against scikit-learn and plain NumPy, in one run, as ratios.

    python3 dev.py bench core ../path/to/covertype.npz

Covertype, standardised, float32, rbf with γ = 0.01, 1000 landmarks. Every pair of
competitors is timed in turn, several times, and the ratio of medians is recorded in
results/core.csv. Names after the file (sklearn, plain, passes, scaling, memory,
quality, small) run these parts alone. Without a file, generated data of the same shape
stands in, and the table says so.
"""

from __future__ import annotations

import csv
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median

import numpy as np
import scipy
import sklearn
from harness import measuring
from harness.plain import RBF, recursive_landmarks
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem as Theirs

import nystrom
from nystrom import Nystroem, approximate, select_landmarks
from nystrom.engines import Threads
from nystrom.linalg.factor import N_COLUMN_BLOCKS
from nystrom.linalg.features import features
from nystrom.linalg.residuals import (
    prepare_residuals,
    residuals,
    ridge_inverse_root,
    weighted_gram,
)
from nystrom.sources import DenseRows

GAMMA, SIZE = 0.01, 1000
RESULTS = Path(__file__).parent / "results" / "core.csv"
Row = tuple[str, float, float, float, float | str]


def load(path: str | None) -> tuple[np.ndarray, str]:
    """Standardised float32 rows and their name."""
    if path is None:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((581_012, 54)) * np.exp(rng.normal(0, 1, 54))
        name = "generated stand-in"
    else:
        X = np.load(path)["X"].astype(np.float32)
        name = Path(path).stem
    return np.ascontiguousarray((X - X.mean(0)) / X.std(0), dtype=np.float32), name


def timed(f: Callable) -> float:
    """Seconds that f takes."""
    return measuring.timed(f)[0]


def beside(ours: Callable, theirs: Callable, repeats: int) -> tuple[float, float]:
    """Median seconds of both, taken in turn."""
    pairs = [(timed(ours), timed(theirs)) for _ in range(repeats)]
    return median(p[0] for p in pairs), median(p[1] for p in pairs)


def against_sklearn(X: np.ndarray) -> list[Row]:
    """fit_transform, and choosing alone, against scikit-learn's fit_transform."""
    params = {"gamma": GAMMA, "n_components": SIZE, "random_state": 0}
    ours, theirs = beside(
        lambda: Nystroem(**params, sampler="accelerated").fit_transform(X),
        lambda: Theirs(**params).fit_transform(X),
        3,
    )
    rows: list[Row] = [("fit_transform, accelerated", ours, theirs, ours / theirs, 0.6)]
    choosing = median(timed(lambda: choose(X, "accelerated")) for _ in range(3))
    rows.append(("choosing, accelerated", choosing, theirs, choosing / theirs, 0.05))
    return rows


def choose(X: np.ndarray, sampler: str, seed: int = 0) -> nystrom.landmarks.Landmarks:
    """Landmarks of the benchmark's size."""
    return select_landmarks(
        X, gamma=GAMMA, n_landmarks=SIZE, sampler=sampler, random_state=seed
    )


def against_plain(X: np.ndarray) -> list[Row]:
    """`recursive` against the same algorithm in plain NumPy."""
    ours, wide = beside(
        lambda: choose(X, "recursive"),
        lambda: recursive_landmarks(X.astype(np.float64), RBF(GAMMA), SIZE, 0),
        2,
    )
    again, narrow = beside(
        lambda: choose(X, "recursive"),
        lambda: recursive_landmarks(X, RBF(GAMMA), SIZE, 0),
        2,
    )
    return [
        ("recursive against plain float64", ours, wide, ours / wide, 0.333),
        ("recursive against plain float32", again, narrow, again / narrow, 0.6),
    ]


def passes(X: np.ndarray) -> list[Row]:
    """Score and feature pass as shares of the GEMM rate, in rows per second."""
    landmarks = choose(X, "accelerated")
    source, engine = DenseRows(X), Threads()
    K = weighted_gram(landmarks.kernel.gram(landmarks.points), np.ones(SIZE))
    B = ridge_inverse_root(K, np.ones(SIZE), float(np.trace(K)) / SIZE)
    A = np.random.default_rng(0).standard_normal((8192, SIZE), dtype=np.float32)
    M = np.random.default_rng(1).standard_normal((SIZE, SIZE), dtype=np.float32)
    n_products = 16
    scores, gemm, feature = [], [], []

    def score() -> np.ndarray:
        ready = prepare_residuals(landmarks.columns(), source, B)
        return residuals(ready, source, engine=engine, name="scores")

    for _ in range(3):
        gemm.append(timed(lambda: [A @ M for _ in range(n_products)]))
        scores.append(timed(score))
        gemm.append(timed(lambda: [A @ M for _ in range(n_products)]))
        feature.append(timed(lambda: features(landmarks, source, engine, wide=False)))
    rate = n_products * len(A) / min(gemm)  # rows per second of an s × s product
    score_rate, feature_rate = len(X) / median(scores), len(X) / median(feature)
    # The triangular factor saves part of the product: what is left of it.
    done = (1 + 1 / N_COLUMN_BLOCKS) / 2
    return [
        ("score pass, share of GEMM (dense count)", *_share(score_rate, rate), "≥ 0.6"),
        ("score pass, share of GEMM (done)", *_share(score_rate * done, rate), "-"),
        ("feature pass, share of GEMM", *_share(feature_rate, rate), "≥ 0.6"),
    ]


def _share(ours: float, gemm: float) -> tuple[float, float, float]:
    return ours, gemm, ours / gemm


def scaling(X: np.ndarray) -> list[Row]:
    """Each doubling of n at most doubles the time, within 10 %."""
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X))
    sizes = [len(X) // 4, len(X) // 2, len(X)]
    parts = [np.ascontiguousarray(X[order[:n]]) for n in sizes]

    def job(part: np.ndarray) -> None:
        Nystroem(gamma=GAMMA, n_components=SIZE, random_state=0).fit_transform(part)

    seconds = [[timed(lambda p=p: job(p)) for p in parts] for _ in range(3)]
    medians = [median(column) for column in zip(*seconds, strict=True)]
    rows: list[Row] = []
    for i in (1, 2):
        name = f"n from {sizes[i - 1]} to {sizes[i]}"
        ratio = medians[i] / medians[i - 1]
        rows.append((name, medians[i], medians[i - 1], ratio, 2.2))
    return rows


def small(repeats: int = 31) -> list[Row]:
    """Digits, and the import."""
    X = load_digits().data
    params = {"gamma": 1e-3, "random_state": 0}
    ours, theirs = beside(
        lambda: Nystroem(**params).fit_transform(X),
        lambda: Theirs(**params).fit_transform(X),
        repeats,
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    def importing(name: str) -> Callable:
        command = [sys.executable, "-c", f"import {name}"]
        return lambda: subprocess.run(command, check=True, env=environment)

    mine, other = beside(importing("nystrom"), importing("sklearn"), 7)
    return [
        ("digits, fit_transform", ours, theirs, ours / theirs, 1.5),
        ("import, seconds more than sklearn", mine, other, mine - other, 0.3),
    ]


def peak_above(which: str, path: str, queue: multiprocessing.Queue) -> None:
    """In a process of its own: MB above the data and the result."""
    X = np.load(path)
    Nystroem(n_components=2, random_state=0).fit_transform(X[:2000])  # libraries load
    Theirs(n_components=2, random_state=0).fit_transform(X[:2000])
    Estimator = Nystroem if which == "ours" else Theirs
    with measuring.peak_memory() as peak:
        Z = Estimator(gamma=GAMMA, n_components=SIZE, random_state=0).fit_transform(X)
    queue.put(peak.mb - Z.nbytes / 2**20)


def memory(X: np.ndarray) -> list[Row]:
    """Peak memory of fit_transform above the data and the result, in MB."""
    context = multiprocessing.get_context("spawn")
    peaks = []
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "X.npy")
        np.save(path, X)
        for which in ("ours", "theirs"):
            queue = context.Queue()
            process = context.Process(target=peak_above, args=(which, path, queue))
            process.start()
            peaks.append(queue.get())
            process.join()
    ours, theirs = peaks
    return [("fit_transform, MB above data and result", ours, theirs, ours, 300)]


def quality(X: np.ndarray) -> list[Row]:
    """Relative trace error, and spectral error on the same 8000 rows: ours, uniform."""
    errors = []
    for sampler in ("accelerated", "recursive", "uniform"):
        per_seed = []
        for seed in range(3):
            approximation = approximate(
                X[:: len(X) // 40_000], choose(X, sampler, seed)
            )
            per_seed.append(
                (
                    float(approximation.relative_trace_error),
                    float(approximation.spectral_error(8000)),
                )
            )
        errors.append([median(column) for column in zip(*per_seed, strict=True)])
    (a_trace, a_norm), (r_trace, r_norm), (u_trace, u_norm) = errors
    return [
        (
            "trace error, accelerated against uniform",
            a_trace,
            u_trace,
            a_trace / u_trace,
            "-",
        ),
        (
            "trace error, recursive against uniform",
            r_trace,
            u_trace,
            r_trace / u_trace,
            "-",
        ),
        (
            "spectral error, accelerated against uniform",
            a_norm,
            u_norm,
            a_norm / u_norm,
            "-",
        ),
        (
            "spectral error, recursive against uniform",
            r_norm,
            u_norm,
            r_norm / u_norm,
            "-",
        ),
    ]


PARTS: dict[str, Callable] = {
    "sklearn": against_sklearn,
    "plain": against_plain,
    "passes": passes,
    "scaling": scaling,
    "memory": memory,
    "quality": quality,
}


def main() -> None:
    """All parts, or those named after the file."""
    path = sys.argv[1] if len(sys.argv) > 1 else None
    wanted = sys.argv[2:] or [*PARTS, "small"]
    X, name = load(path)
    parts = [(small, ()) if part == "small" else (PARTS[part], (X,)) for part in wanted]
    report(name, X, parts, RESULTS)


def report(
    name: str, X: np.ndarray, parts: Iterable[tuple[Callable, tuple]], results: Path
) -> None:
    """Run the parts, print a line for each row, and keep the table."""
    versions = f"nystrom {nystrom.__version__}, numpy {np.__version__}, scipy "
    versions += f"{scipy.__version__}, scikit-learn {sklearn.__version__}, Python "
    versions += f"{platform.python_version()}, {os.cpu_count()} cores"
    print(f"{name}, {X.shape}; {versions}\n")
    print(f"{'what':<52} {'ours':>10} {'peer':>10} {'ratio':>8} {'aim':>8}")
    for part, arguments in parts:
        rows = part(*arguments)
        for what, ours, peer, ratio, aim in rows:
            print(
                f"{what:<52} {ours:10.4g} {peer:10.4g} {ratio:8.3f} {aim!s:>8}",
                flush=True,
            )
        save([[*row, name, versions] for row in rows], results)


def save(table: list[list], results: Path) -> None:
    """Put the rows into the tracked table, in place of those of the same name."""
    header = ["what", "ours", "peer", "ratio", "aim", "data", "versions"]
    rows: dict[str, list] = {}
    if results.exists():
        with results.open(newline="") as file:
            rows = {row[0]: row for row in list(csv.reader(file))[1:]}
    rows |= {row[0]: row for row in table}
    results.parent.mkdir(exist_ok=True)
    with results.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows.values()])


if __name__ == "__main__":
    main()
