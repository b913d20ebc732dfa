"""Kernel width and regularisation of each data set by cross-validation.

    python3 dev.py bench widths --data folder

γ and the α of ridge regression: 5 folds of 10 000 rows, squared error of ±1 or of the
year, 1000 landmarks by `auto`. C of the linear support vector machine, for that γ: 3
folds of 5000 rows, 300 landmarks. The table, results/widths.csv, is what `width = "cv"`
in configs/*.toml reads.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from harness.config import Problem
from harness.data import FILES
from harness.methods import feature_map
from harness.problems import WIDTHS, Rows, load
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC

from nystrom import KernelRidgeCV

GAMMAS = np.geomspace(1e-4, 1, 13)  # three a decade
ALPHAS = np.geomspace(1e-4, 100, 13)
COSTS = np.geomspace(1e-2, 1e3, 6)
FIELDS = ["data", "n", "d", "origin", "gamma", "sigma", "alpha", "C", "error"]


def best(rows: Rows) -> dict[str, object]:
    """γ, α, C, and the cross-validated error of ridge regression."""
    X, y = rows.X, rows.y
    params = {"kernel": "rbf", "gammas": GAMMAS, "cv": 5, "random_state": 0}
    ridge = KernelRidgeCV(ALPHAS, **params, n_landmarks=1000, fit_intercept=True)
    ridge.fit(X, y)
    gamma = float(ridge.gamma_)
    found = {"gamma": gamma, "sigma": np.sqrt(0.5 / gamma), "alpha": ridge.alpha_}
    found["error"] = np.sqrt(-ridge.best_score_)
    if rows.classes:
        Z = feature_map("auto", gamma, 300, 0).fit(X[:5000]).transform(X[:5000])
        search = GridSearchCV(LinearSVC(dual=False), {"C": COSTS}, cv=3)
        found["C"] = search.fit(Z, y[:5000]).best_params_["C"]
    return found


def main() -> None:
    """All sets, or those named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder with the real sets' files")
    parser.add_argument("--sets", nargs="+", choices=FILES, default=list(FILES))
    given = parser.parse_args()
    table: dict[str, dict] = {}
    if WIDTHS.exists():
        with WIDTHS.open(newline="") as file:
            table = {row["data"]: row for row in csv.DictReader(file)}
    for name in given.sets:
        rows = load(Problem(name, 10_000, "float32", ""), given.data)
        known = {"data": name, "n": len(rows.X), "d": rows.X.shape[1]}
        found = known | {"origin": rows.origin} | best(rows)
        table[name] = {
            key: f"{value:.4g}" if isinstance(value, float) else value
            for key, value in found.items()
        }
        print(table[name], flush=True)
        with WIDTHS.open("w", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(table[name] for name in sorted(table))


if __name__ == "__main__":
    main()
