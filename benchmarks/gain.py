"""Why far better approximations of K learn hardly better: where the error is.

    python3 dev.py bench gain --data folder

The paper leaves this open. Class 2 of Covertype, ridge regression on uniform landmarks
and on those of `auto`, the cross-validated width. Test rows are grouped by what uniform
landmarks leave of k(x, x): for each group, the share of rows, the mean residual and the
% wrong of either, means over seeds; and the rows that carry the top eigenvector of
K − K̃. The table goes to results/gain.csv.
"""

from __future__ import annotations

import argparse
import csv
import itertools
from pathlib import Path

import numpy as np
import scipy.sparse.linalg
from harness.config import Problem
from harness.errors import DenseKernel
from harness.methods import feature_map
from harness.problems import chosen, gamma_for, load
from sklearn.linear_model import Ridge

RESULTS = Path(__file__).parent / "results" / "gain.csv"
ROWS, TEST, SIZE, SEEDS = 20_000, 50_000, 400, 5
BOUNDS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.01)
FIELDS = ["residual", "rows", "uniform_residual", "auto_residual"]
FIELDS += ["uniform_wrong", "auto_wrong"]


def concentration(X: np.ndarray, gamma: float, Z: np.ndarray) -> tuple[float, float]:
    """‖K − K̃‖₂ on 8000 rows, and the share of rows with 90 % of its eigenvector."""
    K = DenseKernel(X[:8000], gamma).K
    Z = Z[:8000]
    operator = scipy.sparse.linalg.LinearOperator(
        K.shape, lambda v: K @ v - Z @ (Z.T @ v), dtype=K.dtype
    )
    values, vectors = scipy.sparse.linalg.eigsh(operator, k=1, which="LA", tol=1e-4)
    mass = np.sort(vectors[:, 0] ** 2)[::-1].cumsum()
    return float(values[0]), float((np.searchsorted(mass, 0.9) + 1) / len(K))


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder with the real sets' files")
    folder = parser.parse_args().data
    problem = Problem("covertype", ROWS, "float64", "cv")
    rows = load(problem, folder, extra=TEST)
    gamma, alpha = gamma_for(problem, rows.X), float(chosen("covertype")["alpha"])
    X, y, X_test, y_test = rows.X[:ROWS], rows.y[:ROWS], rows.X[ROWS:], rows.y[ROWS:]
    left: dict[str, list] = {"uniform": [], "auto": []}
    wrong: dict[str, list] = {"uniform": [], "auto": []}
    for seed in range(SEEDS):
        for name in left:
            features = feature_map(name, gamma, SIZE, seed).fit(X)
            Z, Z_test = features.transform(X), features.transform(X_test)
            guess = Ridge(alpha=alpha).fit(Z, y).predict(Z_test)
            left[name].append(1 - np.vecdot(Z_test, Z_test))
            wrong[name].append((guess > 0) != (y_test > 0))
            if seed == 0:
                norm, share = concentration(X, gamma, Z)
                print(f"{name}: ‖K − K̃‖₂ {norm:.3g} on 8000 rows, 90 % of its")
                print(f"eigenvector on {100 * share:.2g} % of them", flush=True)
    r, bad = ({k: np.stack(v) for k, v in d.items()} for d in (left, wrong))
    table = []
    for low, high in [*itertools.pairwise(BOUNDS), (0.0, 1.01)]:
        group = (r["uniform"] >= low) & (r["uniform"] < high)
        cells = [f"{low:g} – {min(high, 1):g}", float(group.mean())]
        cells += [float(r[name][group].mean()) for name in r]
        cells += [100 * float(bad[name][group].mean()) for name in bad]
        table.append([f"{c:.4g}" if isinstance(c, float) else c for c in cells])
        print(*table[-1], flush=True)
    with RESULTS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([FIELDS, *table])


if __name__ == "__main__":
    main()
