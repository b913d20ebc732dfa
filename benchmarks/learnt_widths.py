"""Widths learnt beside widths tried, on eight real sets.

    python3 dev.py bench learnt_widths --data folder

For every set and split: `KernelRidgeCV` (5 folds, intercept, 7 alphas) with gamma by
"scale", "median", "learn", "ard", and the best of a grid of 7 gammas, from
1/1000 to 1000 times "scale", with as many landmarks; then "learn" with uniform ones.
The score is R² or the share of right classes on rows left out, the seconds those of
the fit, one after the other in one process: coarse. `--sets` and `--splits` run a part.
The table goes to results/learnt_widths.csv, a row per set, split and way.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path
from typing import Any

import numpy as np
from harness.config import Problem
from harness.data import FILES
from harness.problems import load
from sklearn import datasets

from nystrom import KernelRidgeCV

RESULTS = Path(__file__).parent / "results" / "learnt_widths.csv"
FIELDS = ["data", "n", "d", "landmarks", "split", "way", "gamma", "alpha", "score"]
FIELDS += ["seconds"]
#: Rows to train on, and to test on, of the large sets.
TRAINING, TESTING = 8000, 5000
LANDMARKS = 500
#: Of the small sets, which are scikit-learn's own.
SHARE = 0.7
SMALL = ["breast_cancer", "diabetes", "digits", "wine"]
ALPHAS = np.geomspace(1e-4, 1e2, 7)
TIMES = np.geomspace(1e-3, 1e3, 7)
Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def parts(name: str, split: int, folder: Path | None) -> Parts:
    """Rows and targets (±1 for each class, or numbers) to train and to test on."""
    if name in SMALL:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        n = int(SHARE * len(X))
        Y = y[:, None] if name == "diabetes" else 2.0 * (y[:, None] == np.unique(y)) - 1
        Y = Y[:, 1:] if Y.shape[1] == 2 else Y
    else:
        n = 5000 if name == "year" else TRAINING
        extra = 2000 if name == "year" else TESTING
        rows = load(Problem(name, n, "float64", ""), folder, extra)
        X, Y = rows.X, rows.y[:, None]
    order = np.random.default_rng(split).permutation(len(X))
    X, Y = X[order].astype(float), Y[order].astype(float)
    if name in SMALL:
        spread = X[:n].std(axis=0)
        X = (X - X[:n].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return X[:n], Y[:n], X[n:], Y[n:]


def score(model: KernelRidgeCV, X: np.ndarray, Y: np.ndarray) -> float:
    """The share of right classes, or R²."""
    found = np.asarray(model.predict(X)).reshape(Y.shape)
    if set(np.unique(Y)) <= {-1.0, 1.0}:
        if Y.shape[1] == 1:
            return float(np.mean((found > 0) == (Y > 0)))
        return float(np.mean(found.argmax(axis=1) == Y.argmax(axis=1)))
    return float(1 - ((Y - found) ** 2).sum() / ((Y - Y.mean(axis=0)) ** 2).sum())


def ways(X: np.ndarray) -> dict[str, dict]:
    """What is tried, by name."""
    scale = 1 / (X.shape[1] * X.var())
    learnt = {name: {"gamma": name} for name in ("learn", "ard")}
    return {
        "scale": {"gamma": "scale"},
        "median": {"gamma": "median"},
        **learnt,
        "grid": {"gammas": list(scale * TIMES)},
        "learn, uniform": {"gamma": "learn", "sampler": "uniform"},
    }


def measured(name: str, split: int, folder: Path | None) -> list[dict]:
    """All ways on one split."""
    X, Y, X_test, Y_test = parts(name, split, folder)
    known = {"data": name, "n": len(X), "d": X.shape[1], "split": split}
    known["landmarks"] = min(LANDMARKS, len(X))
    params = {"kernel": "rbf", "n_landmarks": LANDMARKS, "fit_intercept": True, "cv": 5}
    KernelRidgeCV(ALPHAS, **params, random_state=0).fit(X[:100], Y[:100])  # loads
    rows = []
    for way, options in ways(X).items():
        begun = time.perf_counter()
        model = KernelRidgeCV(ALPHAS, **params, **options, random_state=split)
        model.fit(X, Y)
        seconds = time.perf_counter() - begun
        kernel: Any = model.landmarks_.kernel
        gamma = np.median(kernel.gamma)
        found = {"way": way, "gamma": gamma, "alpha": model.alpha_, "seconds": seconds}
        rows.append(known | found | {"score": score(model, X_test, Y_test)})
        print(f"{name} {split} {way}: {rows[-1]['score']:.4f}, {seconds:.1f} s")
    return rows


def main() -> None:
    """All sets, or those named; what is in the table is not measured again."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder with the real sets' files")
    sets = [*FILES, *SMALL]
    parser.add_argument("--sets", nargs="+", choices=sets, default=sets)
    parser.add_argument("--splits", type=int, default=3)
    given = parser.parse_args()
    table: list[dict] = []
    if RESULTS.exists():
        with RESULTS.open(newline="") as file:
            table = list(csv.DictReader(file))
    done = {(row["data"], int(row["split"])) for row in table}
    for name in given.sets:
        for split in range(given.splits):
            if (name, split) in done:
                continue
            for row in measured(name, split, given.data):
                shown = {k: f"{v:.4g}" for k, v in row.items() if isinstance(v, float)}
                table.append(row | shown)
            with RESULTS.open("w", newline="") as file:
                writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(table)


if __name__ == "__main__":
    main()
