"""How often `ridge=λ` with practical constants keeps ‖K − K̃‖₂ ≤ λ.

    python3 dev.py bench ridge ../path/to/data [seeds]

Four real data sets, 3000 rows each, three widths, λ = 0.003 and 0.03 of ‖K‖₂, the norm
of the residual by Lanczos on the dense K. The table goes to results/ridge.csv.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
from harness.config import Problem
from harness.errors import DenseKernel
from harness.problems import gamma_for, load

from nystrom import approximate, select_landmarks

RESULTS = Path(__file__).parent / "results" / "ridge.csv"
FIELDS = ["data", "width", "n", "λ", "d_eff", "landmarks", "kept", "seeds", "worst"]
WIDTHS = ("0.2/median", "1/median", "6/median")
N_ROWS, MOST = 3000, 150
TOGETHER = 20  # landmark sets whose norms are found in lock-step


def measure(X: np.ndarray, gamma: float, share: float, seeds: int) -> list | None:
    """λ, d_eff, mean number of landmarks, seeds within λ, worst error over λ."""
    kernel = DenseKernel(X, gamma)
    values = np.linalg.eigvalsh(kernel.K)
    ridge = share * values[-1]
    d_eff = float((values / (values + ridge)).sum())
    if d_eff > MOST:  # nearly all rows would be landmarks
        return None
    errors, sizes = [], []
    for start in range(0, seeds, TOGETHER):
        chosen = [
            select_landmarks(
                X, gamma=gamma, max_spectral_error=ridge, random_state=seed
            )
            for seed in range(start, min(start + TOGETHER, seeds))
        ]
        sizes += [len(landmarks) for landmarks in chosen]
        Zs = [approximate(X, landmarks).features() for landmarks in chosen]
        errors.append(kernel.spectral_errors(Zs))
    found = np.concatenate(errors) / ridge
    kept = int(np.count_nonzero(found <= 1))
    return [ridge, d_eff, float(np.mean(sizes)), kept, seeds, float(found.max())]


def main() -> None:
    """All cases, one line each, as they are found."""
    seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    with RESULTS.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(FIELDS)
        for name in ("covertype", "cod_rna", "adult", "year"):
            for width in WIDTHS:
                problem = Problem(name, N_ROWS, "float64", width)
                X = load(problem, Path(sys.argv[1])).X
                for share in (0.03, 0.003):
                    found = measure(X, gamma_for(problem, X), share, seeds)
                    if found is None:
                        continue
                    row = [name, width, len(X), *found]
                    writer.writerow(row)
                    file.flush()
                    shown = (f"{v:.4g}" if isinstance(v, float) else v for v in row)
                    print(*shown, flush=True)


if __name__ == "__main__":
    main()
