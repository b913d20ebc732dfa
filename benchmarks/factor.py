"""How accurate features are: Cholesky in the order of choice, and the symmetric root.

    python3 dev.py bench factor --data folder

1200 rows, 120 landmarks, uniform and by `auto`. The reference is K̃ in 80-bit numbers:
kernel values from the rows themselves, by differences, and a pivoted Cholesky factor of
K_SS cut at 1e-18. Told are ‖ZZᵀ − K̃‖₂/‖K̃‖₂ and the largest ‖z‖²/k(x, x) − 1, for the
features of `Nystroem` and for those of the symmetric root of K_SS, cut at 4·eps·√s·max
k(x, x), which scikit-learn's way of making them amounts to and ours was before. The
table goes to results/factor.csv.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
from harness.config import Problem
from harness.problems import load

from nystrom import Nystroem, kernels

RESULTS = Path(__file__).parent / "results" / "factor.csv"
ROWS, SIZE = 1200, 120
FIELDS = ["case", "dtype", "sampler", "root_off", "factor_off"]
FIELDS += ["root_over", "factor_over", "root_rank", "factor_rank"]
Wide = np.longdouble


def gaussian(gamma: float) -> Callable:
    """exp(−γ‖x − y‖²) in 80 bits, by differences."""

    def matrix(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        D = np.zeros((len(X), len(Y)), Wide)
        for j in range(X.shape[1]):
            D += (X[:, j, None].astype(Wide) - Y[None, :, j].astype(Wide)) ** 2
        return np.exp(-Wide(gamma) * D)

    return matrix


def cubic(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """(xᵀy/4 + 1)³ in 80 bits."""
    return (X.astype(Wide) @ Y.astype(Wide).T / Wide(4) + Wide(1)) ** 3


def cases(folder: Path | None) -> dict[str, tuple]:
    """Rows, the kernel, and its values in 80 bits."""
    rng = np.random.default_rng(0)
    real = {
        name: load(Problem(name, ROWS, "float64", "median"), folder).X[:ROWS]
        for name in ("covertype", "cod_rna")
    }
    base = rng.normal(size=(300, 3))
    near = base[rng.integers(0, 300, ROWS)] + 1e-3 * rng.normal(size=(ROWS, 3))
    small = rng.normal(size=(ROWS, 4))
    flat = rng.normal(size=(ROWS, 3)) @ rng.normal(size=(3, 20))

    def rbf(X: np.ndarray, gamma: float) -> tuple:
        return X, kernels.RBF(gamma), gaussian(gamma)

    return {
        "Covertype, rbf 0.01": rbf(real["covertype"], 0.01),
        "Covertype, rbf 0.001": rbf(real["covertype"], 0.001),
        "Covertype, rbf 1e-5": rbf(real["covertype"], 1e-5),
        "Cod-RNA, rbf 0.05": rbf(real["cod_rna"], 0.05),
        "Cod-RNA, rbf 0.001": rbf(real["cod_rna"], 0.001),
        "near-copies, rbf 0.5": rbf(near, 0.5),
        "3 of 20 dimensions, rbf 0.01": rbf(flat, 0.01),
        "4 features, cubic": (small, kernels.Polynomial(0.25, 3, 1), cubic),
    }


def reference(K: np.ndarray, K_S: np.ndarray) -> np.ndarray:
    """Z of K̃ in 80 bits, by complete pivoting."""
    s = len(K)
    F, Z = np.zeros((s, s), Wide), np.zeros((len(K_S), s), Wide)
    left = np.diagonal(K).copy()
    for i in range(s):
        j = int(np.argmax(left))
        if left[j] <= 1e-18 * K[j, j]:
            break
        column = K[:, j] - F[:, :i] @ F[j, :i]
        F[:, i] = column / np.sqrt(column[j])
        Z[:, i] = (K_S[:, j] - Z[:, :i] @ F[j, :i]) / np.sqrt(column[j])
        left -= F[:, i] ** 2
        left[j] = 0
    return Z


def by_root(kernel: kernels.Kernel, X: np.ndarray, S: np.ndarray) -> tuple:
    """Features by the symmetric root of K_SS, and its rank."""
    K = kernel.gram(S)
    values, vectors = np.linalg.eigh(K)
    eps, wide = np.finfo(X.dtype).eps, np.finfo(np.float64).eps
    largest = np.abs(np.diagonal(K)).max()
    cut = 4 * np.sqrt(len(K)) * max(eps * largest, wide * values.max())
    kept = values > cut
    root = (vectors[:, kept] / np.sqrt(values[kept])) @ vectors[:, kept].T
    return kernel(X, S) @ root.astype(X.dtype), int(kept.sum())


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder with the real sets' files")
    table = []
    for case, (rows, kernel, matrix) in cases(parser.parse_args().data).items():
        for dtype in (np.float32, np.float64):
            for sampler in ("uniform", "auto"):
                X = rows.astype(dtype)
                est = Nystroem(
                    kernel, n_components=SIZE, sampler=sampler, random_state=0
                )
                Z = est.fit_transform(X)
                S = est.components_
                old, rank = by_root(kernel, X, S)
                exact = reference(matrix(S, S), matrix(X, S)).astype(np.float64)
                K = exact @ exact.T
                norm = np.linalg.norm(K, 2)
                kxx = kernel.diag(X.astype(np.float64))

                def off(Z: np.ndarray, K: np.ndarray = K, norm: float = norm) -> float:
                    Z = Z.astype(np.float64)
                    return float(np.linalg.norm(Z @ Z.T - K, 2) / norm)

                def over(Z: np.ndarray, kxx: np.ndarray = kxx) -> float:
                    Z = Z.astype(np.float64)
                    return float((np.vecdot(Z, Z) / kxx - 1).max())

                row = [case, np.dtype(dtype).name, sampler, off(old), off(Z)]
                row += [over(old), over(Z), rank, est.landmarks_.rank]
                table.append(row)
                print(*(f"{v:.1e}" if isinstance(v, float) else v for v in row))
    with RESULTS.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(FIELDS)
        writer.writerows(
            [f"{v:.3g}" if isinstance(v, float) else v for v in row] for row in table
        )


if __name__ == "__main__":
    main()
