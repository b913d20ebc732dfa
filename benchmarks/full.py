"""Where solving on all rows pays over more landmarks: score against time.

    python3 dev.py bench full --data folder
    python3 dev.py bench full scores --data folder --rows 3000 --sets year

Parts: `scores` fits landmarks s = 500 … 4000 and solver="full" to the same rows, width
and ridge; `steps` counts steps with landmarks by "auto", by "uniform" and with none to
precondition; `large` is the case of 50 000 rows, for which scikit-learn's matrix alone
takes 20 GB. Widths and ridges are those that KernelRidgeCV chooses with 1000 landmarks
(γ among multiples of "median"'s, α by GCV). Each fit runs in a process of its own,
whose peak memory is told. The table goes to results/full.csv, a row as it is found.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from harness.config import Problem
from harness.measuring import peak_memory, timed, versions
from harness.problems import Rows, load
from sklearn.metrics import r2_score

from nystrom import KernelRidge, KernelRidgeCV, select_landmarks
from nystrom.engines import Threads
from nystrom.models.ridge_full import FullRidge
from nystrom.sources import CachedRows

RESULTS = Path(__file__).parent / "results" / "full.csv"
#: Rows to fit to, at most; 2000 others are predicted.
SETS = {"cod_rna": 40_000, "protein-like": 40_000, "year": 5000, "covertype": 40_000}
TEST_ROWS, SIZES, LARGE = 2000, (500, 1000, 2000, 4000), 50_000
ALPHAS, WIDTHS = np.geomspace(1e-3, 1e2, 11), (0.3, 1.0, 3.0)
FIELDS = ["part", "data", "method", "n", "d", "gamma", "alpha", "seconds"]
FIELDS += ["predict_seconds", "score", "steps", "residual", "peak_mb"]
Row = dict[str, object]


def protein_like(n: int) -> Rows:
    """Nine correlated features and a smooth target of all of them, some noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 9)) @ (np.eye(9) + 0.3 * rng.standard_normal((9, 9)))
    X /= X.std(axis=0)
    f = np.sin(X @ rng.standard_normal((9, 30)) / 2) @ rng.standard_normal(30)
    return Rows(X, f / f.std() + 0.1 * rng.standard_normal(n), "generated")


def rows_of(name: str, n: int, folder: Path | None) -> Rows:
    """The rows to fit to, and those to predict after them."""
    if name == "protein-like":
        return protein_like(n + TEST_ROWS)
    return load(Problem(name, n, "float64", ""), folder, extra=TEST_ROWS)


def chosen(X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """γ and α by generalised cross-validation with 1000 landmarks."""
    rng = np.random.default_rng(0)
    A, B = (X[rng.integers(0, len(X), 2000)] for _ in range(2))
    gammas = [c / float(np.median(np.sum((A - B) ** 2, axis=1))) for c in WIDTHS]
    model = KernelRidgeCV(ALPHAS, kernel="rbf", gammas=gammas, random_state=0)
    some = rng.permutation(len(X))[:20_000]
    model.fit(X[some], y[some] - y.mean())
    # The ridge is that of a sum over rows: all of them count more.
    return float(model.gamma_), float(model.alpha_) * len(X) / len(some)


def fitted(job: dict, queue: multiprocessing.Queue) -> None:
    """One fit in its own process: seconds, score, steps, memory."""
    n, gamma, alpha = job["n"], job["gamma"], job["alpha"]
    rows = rows_of(job["data"], n, job["folder"])
    X, y = rows.X[:n], rows.y[:n]
    model = KernelRidge(alpha, kernel="rbf", gamma=gamma, fit_intercept=True)
    model.set_params(random_state=0, **job["options"])
    with peak_memory() as peak:
        seconds, _ = timed(lambda: model.fit(X, y))
        predicting, found = timed(lambda: model.predict(rows.X[n:]))
    truth = rows.y[n:]
    wrong = 100 * np.mean((found > 0) != (truth > 0))
    score = wrong if rows.classes else r2_score(truth, found)
    queue.put(
        {
            "d": X.shape[1],
            "seconds": seconds,
            "predict_seconds": predicting,
            "score": float(score),
            "steps": model.n_iter_,
            "residual": model.residual_,
            "peak_mb": peak.mb,
        }
    )


def alone(part: str, method: str, job: dict) -> Row:
    """What a fit tells, from a process of its own."""
    spawn = multiprocessing.get_context("spawn")
    queue = spawn.Queue()
    process = spawn.Process(target=fitted, args=(job, queue))
    process.start()
    found = queue.get()
    process.join()
    given = {key: job[key] for key in ("data", "n", "gamma", "alpha")}
    return {"part": part, "method": method} | given | found


def scores(job: dict) -> Iterator[Row]:
    """Ever more landmarks, and all rows."""
    for size in SIZES:
        options = {"n_landmarks": size, "solver": "direct"}
        yield alone("scores", f"{size} landmarks", job | {"options": options})
    for size in (1000, 2000):
        options = {"n_landmarks": size, "solver": "full"}
        yield alone("scores", f"full, {size} precondition", job | {"options": options})


def steps(job: dict) -> Iterator[Row]:
    """By landmarks that are chosen, that are uniform, and by none."""
    n, gamma = min(job["n"], 5000), job["gamma"]
    rows = rows_of(job["data"], n, job["folder"])
    X, y = rows.X[:n], rows.y[:n, None] - rows.y[:n].mean()
    about = {"part": "steps", "data": job["data"], "n": n, "d": X.shape[1]}
    for share in (1.0, 0.01):
        alpha = share * job["alpha"] * n / job["n"]
        for method in ("auto", "uniform", "none"):
            sampler = "auto" if method == "auto" else "uniform"
            options = {"n_landmarks": min(500, n // 4), "sampler": sampler}
            landmarks = select_landmarks(X, gamma=gamma, random_state=0, **options)
            problem = FullRidge(
                landmarks,
                CachedRows(X),
                np.array([alpha]),
                fit_intercept=False,
                engine=Threads(),
            )
            plain = {"precondition": lambda V: V} if method == "none" else {}
            seconds, fit = timed(lambda p=problem, o=plain: p.fit(y, **o))
            yield about | {
                "method": f"{method}, {options['n_landmarks']}",
                "gamma": gamma,
                "alpha": alpha,
                "seconds": seconds,
                "steps": fit.n_iterations,
                "residual": fit.residual,
            }


def large(n: int, folder: Path | None) -> Iterator[Row]:
    """50 000 rows: minutes, and the memory."""
    rows = rows_of("protein-like", n, folder)
    gamma, alpha = chosen(rows.X[:n], rows.y[:n])
    job = {"data": "protein-like", "n": n, "folder": folder}
    job |= {"gamma": gamma, "alpha": alpha}
    job["options"] = {"n_landmarks": 1000, "solver": "full"}
    yield alone("large", "full, 1000 precondition", job)


def found(
    parts: list[str], sets: list[str], most: int, folder: Path | None
) -> Iterator[Row]:
    """All rows of the table."""
    for name in sets:
        n = min(SETS[name], most)
        if not {"scores", "steps"} & set(parts):
            break
        rows = rows_of(name, n, folder)
        gamma, alpha = chosen(rows.X[:n], rows.y[:n])
        job = {"data": name, "n": n, "gamma": gamma, "alpha": alpha, "folder": folder}
        for part in (scores, steps):
            if part.__name__ in parts:
                yield from part(job)
    if "large" in parts:
        yield from large(min(LARGE, most), folder)


def main() -> None:
    """The parts that were named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", default=["scores", "steps", "large"])
    parser.add_argument("--data", type=Path, help="a folder with the real sets' files")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--rows", type=int, default=LARGE, help="fit to so many")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    about = versions()
    with given.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*FIELDS, *about], lineterminator="\n")
        writer.writeheader()
        for row in found(given.parts, given.sets, given.rows, given.data):
            short = {
                k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()
            }
            writer.writerow(short | about)
            file.flush()
            print(*(f"{key} {short[key]}" for key in FIELDS if key in short), sep=", ")


if __name__ == "__main__":
    main()
