"""Rows by the ten thousand: where the exact method ends, and landmarks go on.

Exact kernel ridge regression holds n² numbers and takes n³ steps: it learns from a part
of the rows. A thousand landmarks learn from all of them.
"""

from __future__ import annotations

import os
import time

import numpy as np
from sklearn.kernel_ridge import KernelRidge as ExactKernelRidge
from sklearn.metrics import r2_score

from nystrom import KernelRidge

N_ROWS, N_TESTED, N_LANDMARKS = 60_000, 5_000, 1000
PARTS = (2000, 4000, 8000)
NOISE = 0.3
KERNEL = {"kernel": "rbf", "gamma": 0.3, "alpha": 0.1}


def rows(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Waves in five dimensions, and noise."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (n_rows, 5))
    y = np.sin(2 * X[:, 0] + X[:, 1]) + np.cos(1.5 * X[:, 2] * X[:, 3]) * X[:, 4] / 2
    return X, y + NOISE * rng.standard_normal(n_rows)


def machine_memory() -> str:
    """What this machine has, where it says so."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return ""
    return f"; this machine has {total / 1e9:.0f} GB"


def scored(model, n_rows: int, X, y) -> tuple[float, float]:
    """R² on the rows that no model has seen, and the seconds that fitting took."""
    begun = time.perf_counter()
    model.fit(X[:n_rows], y[:n_rows])
    seconds = time.perf_counter() - begun
    return r2_score(y[-N_TESTED:], model.predict(X[-N_TESTED:])), seconds


def main() -> None:
    """A table, and what it says."""
    X, y = rows(N_ROWS + N_TESTED)
    print(
        f"\nMany rows: ridge regression, tested on {N_TESTED} rows that were left out\n"
        "Read R², the higher the better: what more rows are worth. Noise is part of "
        f"the targets,\nno model can have more than {1 - NOISE**2 / y.var():.3f}.\n"
        f"{'':<28} {'rows':>6}  {'R²':>6}  {'seconds':>8}  numbers to hold"
    )
    for n_rows in PARTS:
        score, seconds = scored(ExactKernelRidge(**KERNEL), n_rows, X, y)
        held = f"{8 * n_rows**2 / 1e6:.0f} MB"
        print(
            f"{'exact, scikit-learn':<28} {n_rows:>6}  {score:6.4f}  {seconds:8.2f}  "
            f"{held}"
        )
    hours = seconds * (N_ROWS / n_rows) ** 3 / 3600
    print(
        f"{'exact, scikit-learn':<28} {N_ROWS:>6}  not run: it would hold "
        f"{8 * N_ROWS**2 / 1e9:.0f} GB, and take about {hours:.1g} hours\n"
        f"{'':<37} (n², and n³ from the line above{machine_memory()})"
    )
    model = KernelRidge(n_landmarks=N_LANDMARKS, random_state=0, verbose=1, **KERNEL)
    score, seconds = scored(model, N_ROWS, X, y)
    held = f"{8 * N_LANDMARKS**2 / 1e6:.0f} MB, and a few blocks of rows"
    print(
        f"{f'{N_LANDMARKS} landmarks, nystrom':<28} {N_ROWS:>6}  {score:6.4f}  "
        f"{seconds:8.2f}  {held}"
    )


if __name__ == "__main__":
    main()
