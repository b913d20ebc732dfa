"""What choosing 1000 landmarks of all of Covertype costs, and what it gives.

    python3 dev.py bench choosing ../path/to/covertype.npz

float32, rbf with γ = 0.01. Times are taken in turn and medians compared; errors are on
the same rows for all samplers; memory is that of a process of its own. Names after the
file (times, errors, memory) run these parts alone. The table goes to
results/choosing.csv.
"""

from __future__ import annotations

import csv
import multiprocessing
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from core import GAMMA, SIZE, Row, choose, load, timed
from harness.measuring import peak_memory
from harness.plain import RBF, rpcholesky_landmarks
from sklearn.kernel_approximation import Nystroem as Theirs

from nystrom import Nystroem, approximate, select_landmarks

RESULTS = Path(__file__).parent / "results" / "choosing.csv"
SAMPLERS = ("auto", "kmeans", "rpcholesky", "recursive", "uniform")


def times(X: np.ndarray) -> list[Row]:
    """Seconds of choosing beside scikit-learn's whole fit_transform."""
    jobs: dict[str, Callable] = {
        name: (lambda name=name: choose(X, name))
        for name in ("auto", "kmeans", "rpcholesky", "recursive")
    }
    params = {"gamma": GAMMA, "n_components": SIZE, "random_state": 0}
    jobs["sklearn"] = lambda: Theirs(**params).fit_transform(X)
    jobs["ours"] = lambda: Nystroem(**params).fit_transform(X)
    jobs["plain"] = lambda: rpcholesky_landmarks(X, RBF(GAMMA), SIZE, 0)
    runs = [{name: timed(job) for name, job in jobs.items()} for _ in range(3)]
    seconds = {name: median(run[name] for run in runs) for name in jobs}
    auto, theirs, pivoted = (seconds[k] for k in ("auto", "sklearn", "rpcholesky"))
    ours, plain = seconds["ours"], seconds["plain"]
    rows: list[Row] = [
        ("fit_transform, auto, against sklearn", ours, theirs, ours / theirs, "-"),
        ("choosing, auto, against sklearn", auto, theirs, auto / theirs, 0.2),
        ("choosing, auto, against our rpcholesky", auto, pivoted, auto / pivoted, 0.5),
        ("choosing, auto, against plain rpcholesky", auto, plain, auto / plain, 0.5),
    ]
    for name in ("kmeans", "rpcholesky", "recursive"):
        what = f"choosing, {name}, against sklearn"
        rows.append((what, seconds[name], theirs, seconds[name] / theirs, "-"))
    landmarks = choose(X, "auto")
    share = landmarks.n_kernel_evaluations / (len(X) * SIZE)
    evaluations = landmarks.n_kernel_evaluations
    rows.append(
        ("kernel evaluations, auto, per n·s", evaluations, len(X) * SIZE, share, 0.9)
    )
    return rows


def errors(X: np.ndarray) -> list[Row]:
    """Geometric means over five seeds of errors on some rows, as ratios."""
    found: dict[str, list[tuple[float, float]]] = {}
    part = np.ascontiguousarray(X[:: len(X) // 40_000])
    for name in SAMPLERS:
        found[name] = []
        for seed in range(5):
            K = approximate(part, choose(X, name, seed))
            found[name].append(
                (float(K.relative_trace_error), float(K.spectral_error(8000)))
            )
    means = {name: np.exp(np.log(pairs).mean(0)) for name, pairs in found.items()}
    aims = {"uniform": 0.05, "recursive": 0.2, "rpcholesky": 1.0}
    rows: list[Row] = []
    for column, what in enumerate(("trace error", "spectral error")):
        for name in ("auto", "kmeans"):
            for peer in ("rpcholesky", "recursive", "uniform"):
                ours, theirs = means[name][column], means[peer][column]
                aim = aims[peer] if column and name == "auto" else "-"
                label = f"{what}, {name} against {peer}"
                rows.append((label, ours, theirs, ours / theirs, aim))
    return rows


def peak_above(path: str, sampler: str, queue: multiprocessing.Queue) -> None:
    """In a process of its own: MB above the data while choosing."""
    X = np.load(path)
    select_landmarks(X[:2000], n_landmarks=2, sampler=sampler)  # libraries load
    with peak_memory() as peak:
        choose(X, sampler)
    queue.put(peak.mb)


def memory(X: np.ndarray) -> list[Row]:
    """MB above the data while choosing, for all rows and for half of them."""
    context = multiprocessing.get_context("spawn")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for sampler in ("auto", "rpcholesky"):
            peaks = []
            for n in (len(X), len(X) // 2):
                path = str(Path(folder) / "X.npy")
                np.save(path, X[:n])
                queue = context.Queue()
                process = context.Process(
                    target=peak_above, args=(path, sampler, queue)
                )
                process.start()
                peaks.append(queue.get())
                process.join()
            label = f"MB while choosing, {sampler}, n and n/2"
            rows.append((label, *peaks, peaks[0], 300))
    return rows


PARTS: dict[str, Callable] = {"times": times, "errors": errors, "memory": memory}


def main() -> None:
    """All parts, or those named after the file."""
    X, name = load(sys.argv[1] if len(sys.argv) > 1 else None)
    wanted = sys.argv[2:] or list(PARTS)
    table: list[Row] = []
    for part in wanted:
        for row in PARTS[part](X):
            table.append(row)
            what, ours, peer, ratio, aim = row
            print(f"{what:<46} {ours:>10.4g} {peer:>10.4g} {ratio:>8.3g} {aim:>8}")
            sys.stdout.flush()
    # Parts that were not run keep what an earlier run found.
    kept = []
    if RESULTS.exists():
        ran = {row[0] for row in table}
        with RESULTS.open(newline="") as file:
            kept = [row for row in list(csv.reader(file))[1:] if row[0] not in ran]
    with RESULTS.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["what", "ours", "peer", "ratio", "aim", "data"])
        writer.writerows([*kept, *([*row, name] for row in table)])


if __name__ == "__main__":
    main()
