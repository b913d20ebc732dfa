"""Kernel logistic regression beside scikit-learn's pipeline and LogisticFalkon.

    python3 dev.py bench logistic --data folder

Covertype, 300 000 rows and 50 000 held out, 500 landmarks, float32, γ = 0.01, C = 1:
two classes and all seven. Each fit is a process of its own, taken in turn: seconds and
peak memory of the fit above the data, log-loss on the rows held out. scikit-learn's
lbfgs has as many iterations as its default tol takes. `--rows 20000` is a try. The
table goes to results/logistic.csv.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import multiprocessing
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from harness import data
from harness.measuring import peak_memory, timed, versions
from sklearn.kernel_approximation import Nystroem as Theirs
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline

from nystrom import KernelLogisticRegression

GAMMA, SIZE, C, ROWS, HELD_OUT = 0.01, 500, 1.0, 300_000, 50_000
RESULTS = Path(__file__).parent / "results" / "logistic.csv"
FIELDS = ["method", "classes", "n", "s", "seconds", "mb", "log_loss", "iterations"]
FIELDS += ["time_ratio", "memory_ratio", "repeats", "data"]


def ours(sampler: str) -> Callable[[int], Any]:
    """This package, with landmarks chosen by a sampler."""

    def made(size: int) -> KernelLogisticRegression:
        options = {"gamma": GAMMA, "n_landmarks": size, "random_state": 0}
        return KernelLogisticRegression(C, sampler=sampler, **options)

    return made


def theirs(size: int) -> Any:
    """scikit-learn's, in two steps."""
    return make_pipeline(
        Theirs(gamma=GAMMA, n_components=size, random_state=0),
        LogisticRegression(C=C, solver="lbfgs", max_iter=10_000),
    )


class LogisticFalkon:
    """Falkon's, for two classes, with a ridge that means the same C."""

    def __init__(self, size: int) -> None:
        self.size = size

    def fit(self, X: np.ndarray, y: np.ndarray) -> LogisticFalkon:
        import falkon
        import torch
        from falkon.gsc_losses import LogisticLoss

        kernel = falkon.kernels.GaussianKernel(np.sqrt(0.5 / GAMMA))
        ridge = 1 / (2 * C * len(X))  # beside the mean of the loss
        penalties = [1e-3, 1e-4, 1e-5, *[ridge] * 5]
        self.classes_ = np.unique(y)
        self.model = falkon.LogisticFalkon(
            kernel=kernel,
            M=self.size,
            penalty_list=penalties,
            iter_list=[4, 4, 4, *[8] * 5],
            loss=LogisticLoss(kernel=kernel),
            seed=0,
            options=falkon.FalkonOptions(use_cpu=True),
        )
        signs = np.where(y == self.classes_[1], 1.0, -1.0).astype(X.dtype)
        self.model.fit(torch.from_numpy(X), torch.from_numpy(signs)[:, None])
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        import torch

        p = 1 / (1 + np.exp(-self.model.predict(torch.from_numpy(X)).numpy()))
        return np.hstack([1 - p, p])


METHODS: dict[str, Callable[[int], Any]] = {
    "KernelLogisticRegression": ours("auto"),
    "KernelLogisticRegression, uniform": ours("uniform"),
    "Nystroem + LogisticRegression": theirs,
    "LogisticFalkon": LogisticFalkon,
}
BESIDE = "Nystroem + LogisticRegression"


def fitted(method: str, folder: str, size: int, queue: multiprocessing.Queue) -> None:
    """In a process of its own: one fit, measured."""
    X, y = np.load(f"{folder}/X.npy"), np.load(f"{folder}/y.npy")
    new, labels = np.load(f"{folder}/new.npy"), np.load(f"{folder}/labels.npy")
    METHODS[method](10).fit(X[:3000], y[:3000])  # libraries load
    model = METHODS[method](size)
    with peak_memory() as peak:
        seconds, _ = timed(lambda: model.fit(X, y))
    P = np.asarray(model.predict_proba(new), dtype=np.float64)
    steps = model[-1].n_iter_ if method == BESIDE else getattr(model, "n_iter_", "-")
    loss = log_loss(labels, P / P.sum(axis=1, keepdims=True))
    queue.put((seconds, peak.mb, loss, np.ravel(steps)[0]))


def measured(method: str, folder: str, size: int) -> tuple:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=fitted, args=(method, folder, size, queue))
    process.start()
    while process.is_alive() and queue.empty():
        process.join(0.2)
    found = queue.get(timeout=5)
    process.join()
    return found


def compared(X: np.ndarray, y: np.ndarray, args: argparse.Namespace) -> list[dict]:
    """All methods on the same rows, in turn."""
    n, names = args.rows, list(METHODS)
    n_classes = len(np.unique(y))
    if importlib.util.find_spec("falkon") is None:
        print("falkon is not installed: left out")
        names.remove("LogisticFalkon")
    elif n_classes > 2:
        names.remove("LogisticFalkon")  # it has two classes
    with tempfile.TemporaryDirectory() as folder:
        parts = {"X": X[:n], "y": y[:n], "new": X[n:], "labels": y[n:]}
        for name, values in parts.items():
            np.save(f"{folder}/{name}.npy", values)
        runs = [
            {name: measured(name, folder, args.size) for name in names}
            for _ in range(args.repeats)
        ]
    rows = []
    for name in names:
        seconds, mb = (median(run[name][i] for run in runs) for i in (0, 1))
        times = [run[name][0] / run[BESIDE][0] for run in runs]
        row = {"method": name, "classes": n_classes, "n": n, "s": args.size}
        row |= {"seconds": f"{seconds:.2f}", "mb": f"{mb:.0f}"}
        row |= {"log_loss": f"{runs[0][name][2]:.5f}", "iterations": runs[0][name][3]}
        row |= {"time_ratio": f"{median(times):.3f}", "repeats": args.repeats}
        row["memory_ratio"] = f"{mb / median(run[BESIDE][1] for run in runs):.3f}"
        rows.append(row)
        print(row, flush=True)
    return rows


def main() -> None:
    """Two classes, and all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a folder with covertype.npz")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--classes", type=int, nargs="*", default=[2, 7])
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    X, y, origin = data.load("covertype", args.data, np.float32)
    order = np.random.default_rng(0).permutation(len(X))
    order = order[: args.rows + HELD_OUT]
    X, y = np.ascontiguousarray(X[order]), y[order]
    rows = []
    for n_classes in args.classes:
        rows += compared(X, (y == 2).astype(int) if n_classes == 2 else y, args)
    known = versions()
    with args.results.open("w", newline="") as out:
        table = csv.DictWriter(out, [*FIELDS, *known], lineterminator="\n")
        table.writeheader()
        table.writerows({**row, "data": origin, **known} for row in rows)


if __name__ == "__main__":
    main()
