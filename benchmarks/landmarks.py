"""The error of the landmark samplers, as ratios seed by seed.

    python3 dev.py bench landmarks ../path/to/data --seeds 10 --sizes 200 1000
    python3 dev.py bench landmarks --summary

Nine sets of rows (data.py), the rbf kernel in three widths, from smooth to nearly
diagonal. Each landmark set has its errors tr(K − K̃) and ‖K − K̃‖₂, by Lanczos, on
--error-rows of the rows it was chosen from, drawn uniformly and the same for all; their
dense K is computed once for a set and width. Rows go to results/landmarks.csv as they
are found; what is there already is not computed again, so that a run can be killed and
goes on: delete a sampler's rows when it has changed.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.linalg
from data import SETS, gamma_for, load

import nystrom
from nystrom.kernels import RBF, Kernel
from nystrom.landmarks import Landmarks

METHODS = ["uniform", "recursive", "accelerated", "rpcholesky", "greedy", "auto"]
METHODS += ["kmeans"]
BASELINES = ["rpcholesky", "uniform"]
WIDTHS = {"smooth": 0.2, "middle": 1.0, "diagonal": 6.0}
RESULTS = Path(__file__).parent / "results" / "landmarks.csv"
STEPS = 25
#: Bytes of features and Lanczos vectors at a time, beside K.
BUDGET = 4.2e9
#: Errors below this share of tr K, or of ‖K‖₂, are rounding.
NOISE = 1e-12
ERRORS = {"spectral": "norm", "trace": "trace"}  # the error, and what it is relative to


class Case(NamedTuple):
    """What samplers are compared on."""

    data: str
    width: str
    n: int
    s: int

    def __str__(self) -> str:
        return f"{self.data} {self.width} n={self.n} s={self.s}"


class Key(NamedTuple):
    """What has one row in the results."""

    case: Case
    method: str
    seed: int


FIELDS = [*Case._fields, "method", "seed", "gamma", "trace_error", "spectral_error"]
FIELDS += ["trace", "norm", "rank", "evaluations", "seconds", "version", "error_rows"]
Rows = dict[Key, dict[str, str]]


def read(path: Path) -> Rows:
    """The results so far; half a line, of a run killed while writing, is cut off."""
    if not path.exists():
        return {}
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        path.write_bytes(whole)
    rows: Rows = {}
    for row in csv.DictReader(whole.decode().splitlines()):
        case = Case(row["data"], row["width"], int(row["n"]), int(row["s"]))
        rows[Key(case, row["method"], int(row["seed"]))] = row
    return rows


def append(path: Path, rows: list[dict]) -> None:
    """Add rows to the file."""
    path.parent.mkdir(exist_ok=True)
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if file.tell() == 0:
            writer.writeheader()
        for row in rows:
            writer.writerow(row)
            file.flush()


def kernel_matrix(kernel: Kernel, X: np.ndarray) -> np.ndarray:
    """K, by blocks of rows, so that there is no second array of its size."""
    K = np.empty((len(X), len(X)))
    against = kernel.against(X)
    for start in range(0, len(X), 1000):
        K[start : start + 1000] = against(X[start : start + 1000])
    np.fill_diagonal(K, kernel.diag(X))
    return K


def features(kernel: Kernel, X: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Z with K̃ = ZZᵀ. Not by the package's factor, which is under test as well."""
    K_SS = kernel.gram(points)
    values, vectors = np.linalg.eigh(K_SS)
    scale = max(np.diagonal(K_SS).max(), values[-1])
    keep = values > 4 * np.finfo(np.float64).eps * np.sqrt(len(K_SS)) * scale
    return kernel(X, points) @ (vectors[:, keep] / np.sqrt(values[keep]))


def norms(K: np.ndarray, Zs: list[np.ndarray], steps: int = STEPS) -> np.ndarray:
    """‖K − ZZᵀ‖₂ for each Z by Lanczos, in lock-step: one product with K serves all.

    All begin at the same vector, so that what is not converged hardly shows in ratios.
    """
    start = np.random.default_rng(0).standard_normal((len(K), 1))
    V = np.repeat(start / np.linalg.norm(start), len(Zs), axis=1)
    basis: list[np.ndarray] = []
    diagonal, beside = [], []
    for _ in range(steps):
        basis.append(V)
        W = K @ V
        for i, Z in enumerate(Zs):
            W[:, i] -= Z @ (Z.T @ V[:, i])
        diagonal.append((W * V).sum(axis=0))
        for Q in basis + basis:  # twice: once leaves part of what has cancelled
            W -= Q * (Q * W).sum(axis=0)
        beside.append(np.linalg.norm(W, axis=0))
        V = W / np.where(beside[-1] > 0, beside[-1], 1)
    tridiagonal = zip(np.array(diagonal).T, np.array(beside[:-1]).T, strict=True)
    return np.array(
        [np.abs(scipy.linalg.eigvalsh_tridiagonal(d, e)).max() for d, e in tridiagonal]
    )


def choose(
    X: np.ndarray, gamma: float, wanted: list[Key], said: set[str]
) -> list[tuple[Key, Landmarks]]:
    """Landmarks for each key, less those whose sampler raises, with a word on it."""
    chosen = []
    for key in wanted:
        options = {"n_landmarks": key.case.s, "random_state": key.seed}
        try:
            with warnings.catch_warnings():
                # Redundant landmarks are expected of smooth kernels and of copies.
                warnings.simplefilter("ignore")
                landmarks = nystrom.select_landmarks(
                    X, kernel="rbf", gamma=gamma, sampler=key.method, **options
                )
            chosen.append((key, landmarks))
        except Exception as error:  # whatever it is, the other samplers go on
            word = f"{key.method} skipped: {type(error).__name__}: {error}"
            if word not in said:
                print(f"{key.case}: {word}", flush=True)
            said.add(word)
    return chosen


def measure(
    X: np.ndarray, on: np.ndarray, g: float, wanted: list[Key], out: Path, said: set
) -> None:
    """Errors on the rows `on` of all keys, of one set and width, into the file."""
    gamma = gamma_for(X, g)
    kernel, K, norm = RBF(gamma), None, 0.0
    for s in sorted({key.case.s for key in wanted}):
        # Seed by seed, so that a killed run leaves whole comparisons.
        keys = sorted((k for k in wanted if k.case.s == s), key=lambda k: k.seed)
        size = max(1, int(BUDGET / (8 * len(on) * (s + 2 * STEPS))))
        for start in range(0, len(keys), size):
            chosen = choose(X, gamma, keys[start : start + size], said)
            if not chosen:
                continue
            if K is None:  # only now: perhaps all samplers have raised
                K = kernel_matrix(kernel, on)
                norm = norms(K, [np.zeros((len(on), 0))])[0]
            Zs = [features(kernel, on, landmarks.points) for _, landmarks in chosen]
            # Row by row: the sum of differences rounds less than that of sums.
            diagonal = np.diagonal(K)
            traces = [float((diagonal - np.vecdot(Z, Z)).sum()) for Z in Zs]
            rows = []
            for (key, landmarks), Z, trace, spectral in zip(
                chosen, Zs, traces, norms(K, Zs), strict=True
            ):
                values = [*key.case, key.method, key.seed, gamma, trace, spectral]
                values += [float(np.trace(K)), norm, Z.shape[1]]
                values += [landmarks.n_kernel_evaluations, landmarks.seconds]
                values += [nystrom.__version__, len(on)]
                rows.append(dict(zip(FIELDS, values, strict=True)))
            append(out, rows)
            print(f"{keys[0].case}: {len(rows)} landmark sets more", flush=True)
            del Zs, Z  # before the next ones are made


def by_case(rows: Rows) -> dict[Case, dict[str, dict[int, dict[str, str]]]]:
    """The same rows as case → method → seed → row."""
    cases: dict[Case, dict[str, dict[int, dict[str, str]]]] = {}
    for key, row in rows.items():
        cases.setdefault(key.case, {}).setdefault(key.method, {})[key.seed] = row
    return cases


def geometric_mean(values: list[float]) -> float:
    """exp of the mean logarithm."""
    return float(np.exp(np.mean(np.log(values))))


def table(title: str, lines: dict[str, dict[str, float]], names: list[str]) -> None:
    """Print cases against methods."""
    width = max(map(len, lines), default=0) + 2
    print(f"\n{title}\n{'':{width}}" + "".join(f"{name:>12}" for name in names))
    for label, values in lines.items():
        cells = (f"{values[k]:12.4g}" if k in values else f"{'-':>12}" for k in names)
        print(f"{label:{width}}" + "".join(cells))


def ratios(rows: Rows, error: str, baseline: str, names: list[str]) -> None:
    """The table of one error relative to one baseline, its mean and its worst."""
    lines: dict[str, dict[str, float]] = {}
    tiny = []
    for case, methods in by_case(rows).items():
        own = methods.get(baseline, {})
        if not own:
            continue
        base = {seed: float(row[f"{error}_error"]) for seed, row in own.items()}
        floor = NOISE * max(float(row[ERRORS[error]]) for row in own.values())
        if min(base.values()) < floor:
            tiny.append(str(case))
            continue
        line = lines.setdefault(str(case), {})
        for method, seeds in methods.items():
            # A method may be down at rounding, or below 0, where the baseline is not.
            pairs = [
                max(float(seeds[seed][f"{error}_error"]), floor) / base[seed]
                for seed in seeds.keys() & base.keys()
            ]
            if pairs and method != baseline:
                line[method] = geometric_mean(pairs)
    names = [name for name in names if any(name in line for line in lines.values())]
    title = f"{error} error / {error} error of {baseline}, geometric means over seeds"
    if not names:
        print(f"\n{title}: nothing to compare")
    else:
        columns = {k: {c: v[k] for c, v in lines.items() if k in v} for k in names}
        ends = {
            "ALL CASES": {k: geometric_mean([*v.values()]) for k, v in columns.items()},
            "WORST CASE": {k: max(v.values()) for k, v in columns.items()},
            "number of cases": {k: len(v) for k, v in columns.items()},
        }
        table(title, lines | ends, names)
        worst = (f"{k}: {max(v, key=lambda c: v[c])}" for k, v in columns.items())
        print(f"worst at {'; '.join(worst)}")
    if tiny:
        print(f"left out, {baseline} is at rounding: {'; '.join(tiny)}")


def summary(rows: Rows) -> None:
    """All tables."""
    print(f"Errors below {NOISE:g} of tr K (trace) or ‖K‖₂ (spectral) are rounding: a")
    print(
        "case is left out where the baseline is there for a seed; others count as it."
    )
    found = {key.method for key in rows}
    names = [name for name in METHODS if name in found] + sorted(found - {*METHODS})
    for error in ERRORS:
        for baseline in BASELINES:
            ratios(rows, error, baseline, names)
    shares: dict[str, dict[str, float]] = {}
    seconds: dict[str, list[float]] = {}
    for case, methods in by_case(rows).items():
        for method, seeds in methods.items():
            cost = np.mean([float(row["evaluations"]) for row in seeds.values()])
            share = float(cost / (case.n * case.s))
            shares.setdefault(str(case), {})[method] = share
            took = [float(row["seconds"]) for row in seeds.values()]
            seconds.setdefault(method, []).append(float(np.mean(took)))
    columns = {k: [v[k] for v in shares.values() if k in v] for k in names}
    shares["ALL CASES, mean"] = {k: float(np.mean(v)) for k, v in columns.items()}
    shares["MOST"] = {k: max(v) for k, v in columns.items()}
    shares["seconds, mean"] = {k: float(np.mean(v)) for k, v in seconds.items()}
    table("kernel evaluations / (n·s), means over seeds", shares, names)


def main() -> None:
    """Measure what is missing, then print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", metavar="DATA_DIR")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--error-rows", type=int, default=8000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 1000])
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--summary", action="store_true", help="measure nothing")
    given = parser.parse_args()
    if given.folder is None and not given.summary:
        parser.error("DATA_DIR is needed, except with --summary")
    done, said = read(given.out), set[str]()
    for name in [] if given.summary else given.sets:
        X = load(name, given.folder, given.rows)
        order = np.random.default_rng(1).permutation(len(X))
        on = X[np.sort(order[: given.error_rows])]
        for width, g in WIDTHS.items():
            wanted = [
                Key(Case(name, width, len(X), s), method, seed)
                for s in given.sizes
                for method in given.methods
                for seed in range(given.seeds)
            ]
            wanted = [key for key in wanted if key not in done]
            if wanted:
                measure(X, on, g, wanted, given.out, said)
    summary(read(given.out))


if __name__ == "__main__":
    main()
