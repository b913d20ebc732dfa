"""Cross-validated error against gamma, for several numbers of landmarks.

    python3 dev.py bench width_curves --data folder

2000 rows each of Cod-RNA and YearPredictionMSD, 9 gammas from 1/1000 to 1000 times
"scale", 7 alphas, all numbers of landmarks from one fit per gamma, 5 folds; and where
"scale", "median" and "learn" are. The table goes to results/width_curves.csv.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np
from learnt_widths import ALPHAS, parts

from nystrom import KernelRidgeCV

RESULTS = Path(__file__).parent / "results" / "width_curves.csv"
SETS, ROWS = ("cod_rna", "year"), 2000
SIZES = [30, 100, 300]
TIMES = np.geomspace(1e-3, 1e3, 9)


def curves(name: str, folder: Path | None) -> list[dict]:
    """The share of the variance that is left, for all gammas and sizes."""
    X, Y, *_ = parts(name, 0, folder)
    X, Y = X[:ROWS], Y[:ROWS]
    params = {"kernel": "rbf", "fit_intercept": True, "cv": 5, "random_state": 0}
    scale = 1 / (X.shape[1] * X.var())
    rows = []
    for way in [*(scale * TIMES), "scale", "median", "learn"]:
        model: Any = KernelRidgeCV(ALPHAS, **params, gamma=way, n_landmarks=SIZES)
        left = -model.fit(X, Y).scores_ / Y.var()
        times = model.landmarks_.kernel.gamma / scale
        named = way if isinstance(way, str) else "number"
        for size, errors in zip(model.n_landmarks_path_, left, strict=True):
            known = {"data": name, "way": named, "times_scale": f"{times:.4g}"}
            best = {
                "alpha": f"{ALPHAS[errors.argmin()]:.4g}",
                "left": f"{errors.min():.4g}",
            }
            rows.append(known | {"s": size} | best)
    return rows


def main() -> None:
    """Both sets."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder with the real sets' files")
    given = parser.parse_args()
    found = [row for name in SETS for row in curves(name, given.data)]
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(found[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)


if __name__ == "__main__":
    main()
