"""The import swap at every size: fit_transform beside scikit-learn's Nystroem.

    python3 dev.py bench swap --data folder

From iris to all of Covertype, both classes with the same parameters, taken in turn;
ratios of medians, and the trace error of either on the same rows. Names after the
folder run these cases alone. Without a folder generated rows stand in for Covertype and
Adult, and the table says so. It goes to results/swap.csv.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
from harness.config import Problem
from harness.measuring import timed, versions
from harness.problems import load
from sklearn.datasets import load_digits, load_iris
from sklearn.kernel_approximation import Nystroem as Theirs
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from nystrom import Nystroem as Ours

RESULTS = Path(__file__).parent / "results" / "swap.csv"
FIELDS = ["case", "sampler", "n", "d", "s", "ours", "theirs", "ratio", "least_ratio"]
FIELDS += ["aim", "our_error", "their_error", "repeats", "data"]


class Case(NamedTuple):
    """What is fitted how often; `aim` is the largest ratio that we aim at."""

    rows: Callable[[Path | None], tuple[np.ndarray, str]]
    gamma: float
    size: int
    repeats: int
    aim: float | str
    uniform_aim: float | str = "-"


def _digits(_: Path | None) -> tuple[np.ndarray, str]:
    return load_digits().data, "digits"


def _iris(_: Path | None) -> tuple[np.ndarray, str]:
    return load_iris().data, "iris"


def _set(
    name: str, n: int, dtype: str
) -> Callable[[Path | None], tuple[np.ndarray, str]]:
    def rows(folder: Path | None) -> tuple[np.ndarray, str]:
        found = load(Problem(name, n, dtype, ""), folder)
        return found.X, f"{name}, {dtype}"

    return rows


def _wide(_: Path | None) -> tuple[np.ndarray, str]:
    """Rows as wide as small pictures, of rank 50 and noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 50)) @ rng.standard_normal((50, 784))
    X += rng.standard_normal(X.shape)
    return (X / X.std()).astype(np.float32), "generated, float32"


CASES = {
    "iris": Case(_iris, 0.2, 50, 101, 2.0),
    "digits, 100": Case(_digits, 1e-3, 100, 51, 2.0),
    "digits, 300": Case(_digits, 1e-3, 300, 25, 2.0),
    "Covertype, 7000 rows": Case(_set("covertype", 7000, "float32"), 0.01, 800, 9, 1.5),
    "Covertype, 20 000 rows, 300": Case(
        _set("covertype", 20_000, "float32"), 0.01, 300, 9, 1.5
    ),
    "Covertype, 20 000 rows, 1000": Case(
        _set("covertype", 20_000, "float32"), 0.01, 1000, 5, 1.5
    ),
    "Adult": Case(_set("adult", 50_000, "float64"), 0.01, 300, 7, 1.5),
    "20 000 pictures": Case(_wide, 1e-3, 1000, 5, 1.5),
    "Covertype, 50 000 rows": Case(
        _set("covertype", 50_000, "float32"), 0.01, 500, 5, 1.2
    ),
    "Covertype, 50 000 rows, 1000": Case(
        _set("covertype", 50_000, "float32"), 0.01, 1000, 5, 1.2
    ),
    "Covertype, all rows": Case(
        _set("covertype", 600_000, "float32"), 0.01, 1000, 3, 0.5, 0.42
    ),
}


def error(Z: np.ndarray) -> float:
    """tr(K − ZZᵀ)/tr K of a kernel with k(x, x) = 1."""
    return float(1 - np.vecdot(Z, Z, dtype=np.float64).mean())


def measure(name: str, case: Case, folder: Path | None) -> list[dict]:
    """A row for each of our samplers."""
    X, data = case.rows(folder)
    options = {"gamma": case.gamma, "n_components": case.size, "random_state": 0}
    jobs = {
        "auto": Ours(**options),
        "uniform": Ours(**options, sampler="uniform"),
        "theirs": Theirs(**options),
    }
    errors = {}
    for which, job in jobs.items():  # libraries load, caches fill
        errors[which] = error(job.fit_transform(X))
    seconds: dict[str, list[float]] = {which: [] for which in jobs}
    for _ in range(case.repeats):
        for which, job in jobs.items():
            seconds[which].append(timed(lambda job=job: job.fit_transform(X))[0])
    table = []
    for sampler, aim in (("auto", case.aim), ("uniform", case.uniform_aim)):
        a, b = seconds[sampler], seconds["theirs"]
        ratio, least = median(a) / median(b), min(a) / min(b)
        values = [name, sampler, *X.shape, case.size, median(a), median(b), ratio]
        values += [least, aim, errors[sampler], errors["theirs"], case.repeats, data]
        table.append(dict(zip(FIELDS, values, strict=True)))
    return table


def grid_search(folder: Path | None) -> list[dict]:
    """A pipeline with a linear classifier, over widths: what the map's swap costs."""
    X, y = load_digits(return_X_y=True)

    def search(Map: type) -> Callable:
        model = make_pipeline(
            Map(n_components=100, random_state=0),
            SGDClassifier(random_state=0, max_iter=5, tol=None),
        )
        grid = {"nystroem__gamma": [3e-4, 1e-3, 3e-3, 1e-2]}
        return lambda: GridSearchCV(model, grid, cv=5).fit(X, y)

    jobs = {"auto": search(Ours), "theirs": search(Theirs)}
    seconds: dict[str, list[float]] = {which: [] for which in jobs}
    scores = {which: job().best_score_ for which, job in jobs.items()}
    for _ in range(7):
        for which, job in jobs.items():
            seconds[which].append(timed(job)[0])
    a, b = seconds["auto"], seconds["theirs"]
    values = ["grid search", "auto", *X.shape, 100, median(a), median(b)]
    values += [median(a) / median(b), min(a) / min(b), 2.0]
    values += [1 - scores["auto"], 1 - scores["theirs"], 7, "digits"]
    return [dict(zip(FIELDS, values, strict=True))]


def main() -> None:
    """All cases, or those named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder with the real sets' files")
    parser.add_argument(
        "--only", nargs="*", help="cases by the beginning of their name"
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    about = versions()
    jobs: dict[str, Callable] = {
        name: (lambda name=name, case=case: measure(name, case, given.data))
        for name, case in CASES.items()
    }
    jobs["grid search"] = lambda: grid_search(given.data)
    kept: list[dict] = []
    if given.out.exists():
        with given.out.open(newline="") as file:
            kept = list(csv.DictReader(file))
    for name, job in jobs.items():
        if given.only and not name.startswith(tuple(given.only)):
            continue
        for row in job():
            print(
                f"{row['case']:<30} {row['sampler']:<8} {row['ours']:8.4f} "
                f"{row['theirs']:8.4f} {row['ratio']:6.2f} {row['least_ratio']:6.2f} "
                f"(aim {row['aim']})  error {row['our_error']:.4g} "
                f"{row['their_error']:.4g}",
                flush=True,
            )
            kept = [
                old
                for old in kept
                if (old["case"], old["sampler"]) != (row["case"], row["sampler"])
            ]
            short = {
                k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()
            }
            kept.append(short | about)
    with given.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*FIELDS, *about], lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept)


if __name__ == "__main__":
    main()
