"""Kernel ridge regression beside scikit-learn's pipeline, on Covertype.

    python3 dev.py bench regression ../path/to/covertype.npz

Class 2 against the rest, 500 000 training rows, float32, γ = 0.1, α = 0.05, uniform
landmarks on both sides. Times are taken in turn and medians compared; memory is that of
a process of its own. Names after the file (fit, gram, path, solvers, two_thousand,
many, memory) run these parts alone. The table goes to results/regression.csv.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from core import Row, load, report, timed
from harness.measuring import peak_memory
from sklearn.kernel_approximation import Nystroem as Theirs
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from nystrom import KernelRidge, KernelRidgeCV, select_landmarks
from nystrom.engines import Threads
from nystrom.linalg.features import FeatureMap
from nystrom.linalg.moments import moments
from nystrom.models.ridge_solvers import choose_solver
from nystrom.sources import DenseRows

GAMMA, ALPHA, TRAINING = 0.1, 0.05, 500_000
RESULTS = Path(__file__).parent / "results" / "regression.csv"


def ours(size: int = 1000, **options) -> KernelRidge:
    """Our estimator, with uniform landmarks."""
    params = {"kernel": "rbf", "gamma": GAMMA, "alpha": ALPHA, "sampler": "uniform"}
    return KernelRidge(**params | options, n_landmarks=size, random_state=0)


def theirs(size: int = 1000):
    """What a user of scikit-learn writes."""
    features = Theirs(gamma=GAMMA, n_components=size, random_state=0)
    return make_pipeline(features, Ridge(alpha=ALPHA))


def fit(X: np.ndarray, y: np.ndarray, Xt: np.ndarray, yt: np.ndarray) -> list[Row]:
    """Seconds of a fit, and the share of wrong classes on the rows left out."""
    models = {"ours": ours(), "auto": ours(sampler="auto"), "theirs": theirs()}
    runs = [
        {n: timed(lambda m=m: m.fit(X, y)) for n, m in models.items()} for _ in "123"
    ]
    seconds = {name: median(run[name] for run in runs) for name in models}
    wrong = {
        n: 100 * np.mean((m.predict(Xt) > 0) != (yt > 0)) for n, m in models.items()
    }
    rows: list[Row] = []
    for name, aim in (("ours", 0.45), ("auto", "-")):
        which = "uniform landmarks" if name == "ours" else "auto landmarks"
        a, b = seconds[name], seconds["theirs"]
        rows.append((f"fit, {which}, against pipeline", a, b, a / b, aim))
        a, b = wrong[name], wrong["theirs"]
        rows.append((f"% wrong, {which}, points more", a, b, a - b, 0.3))
    return rows


def percent_wrong(model, X: np.ndarray, y: np.ndarray) -> float:
    """Rows on the wrong side of 0."""
    return 100 * float(np.mean((model.predict(X) > 0) != (y > 0)))


def gram(X: np.ndarray, y: np.ndarray, *_) -> list[Row]:
    """The Gram pass as a share of the float64 GEMM rate, n·s² counted once."""
    landmarks = select_landmarks(
        X, gamma=GAMMA, n_landmarks=1000, sampler="uniform", random_state=0
    )
    source, engine = DenseRows(X).replace(targets=y[:, None]), Threads()
    mapping = FeatureMap.for_ridge(landmarks, source, ALPHA, center=False)
    rng = np.random.default_rng(0)
    A, M = rng.standard_normal((8192, 1000)), rng.standard_normal((1000, 1000))
    products, passes = [], []
    for _ in range(3):
        products.append(timed(lambda: [A @ M for _ in range(8)]))
        passes.append(timed(lambda: moments(mapping, source, engine)))
    rate, reached = 8 * len(A) / min(products), len(X) / median(passes)
    whitened = "whitened" if mapping.whiten else "not whitened"
    what = f"Gram pass, rows per s, share of GEMM, {whitened}"
    return [(what, reached, rate, reached / rate, "≥ 0.65")]


def path(X: np.ndarray, y: np.ndarray, *_) -> list[Row]:
    """50 alphas by generalised cross-validation beside one fit."""
    alphas = np.geomspace(ALPHA, 1000, 50)
    rows: list[Row] = []
    for cv, name, aim in (
        ("gcv", "GCV", 1.2),
        ("loo", "LOO", "-"),
        (5, "5 folds", "-"),
    ):
        model = KernelRidgeCV(
            alphas,
            kernel="rbf",
            gamma=GAMMA,
            sampler="uniform",
            random_state=0,
            cv=cv,
        )
        pairs = [
            (timed(lambda m=model: m.fit(X, y)), timed(lambda: ours().fit(X, y)))
            for _ in range(3 if cv == "gcv" else 1)
        ]
        a, b = (median(column) for column in zip(*pairs, strict=True))
        rows.append((f"50 alphas by {name}, against one fit", a, b, a / b, aim))
    return rows


def solvers(X: np.ndarray, y: np.ndarray, Xt: np.ndarray, yt: np.ndarray) -> list[Row]:
    """`cg` against `direct` with 4000 landmarks, and what `auto` takes."""
    X, y = X[:100_000], y[:100_000]  # minutes, not a quarter of an hour
    direct, cg = ours(4000, solver="direct"), ours(4000, solver="cg")
    a, b = timed(lambda: cg.fit(X, y)), timed(lambda: direct.fit(X, y))
    landmarks = direct.landmarks_
    mapping = FeatureMap.for_ridge(landmarks, DenseRows(X), ALPHA, center=False)
    print(f"auto takes {choose_solver(mapping, DenseRows(X))}")
    wrong = [percent_wrong(model, Xt, yt) for model in (cg, direct)]
    return [
        ("cg against direct, 4000 landmarks, 100 000 rows", a, b, a / b, "-"),
        ("steps of cg", cg.n_iter_, 0, cg.n_iter_, "-"),
        ("% wrong, cg, points more than direct", *wrong, wrong[0] - wrong[1], "-"),
    ]


def two_thousand(
    X: np.ndarray, y: np.ndarray, Xt: np.ndarray, yt: np.ndarray
) -> list[Row]:
    """The same fit with twice the landmarks: four times the Gram matrix."""
    models = {
        "uniform": ours(2000),
        "auto": ours(2000, sampler="auto"),
        "theirs": theirs(2000),
    }
    runs = [
        {n: timed(lambda m=m: m.fit(X, y)) for n, m in models.items()} for _ in "123"
    ]
    took = {name: median(run[name] for run in runs) for name in models}
    wrong = {name: percent_wrong(model, Xt, yt) for name, model in models.items()}
    guesses = {
        name: min(timed(lambda m=m: m.predict(Xt)) for _ in "123")
        for name, m in models.items()
    }
    rows: list[Row] = []
    for name, aim in (("uniform", 0.47), ("auto", 0.52)):
        for what, cost, goal in (("fit", took, aim), ("prediction", guesses, "-")):
            a, b = cost[name], cost["theirs"]
            rows.append(
                (f"{what}, 2000 {name} landmarks, against pipeline", a, b, a / b, goal)
            )
        a, b = wrong[name], wrong["theirs"]
        rows.append((f"% wrong, 2000 {name} landmarks, points more", a, b, a - b, 0.3))
    return rows


def many(X: np.ndarray, y: np.ndarray, Xt: np.ndarray, yt: np.ndarray) -> list[Row]:
    """`cg` beside `direct` with 6000 and 10 000 landmarks of 100 000 rows."""
    X, y = X[:100_000], y[:100_000]
    rows: list[Row] = []
    for size in (6000, 10_000):
        direct, cg = ours(size, solver="direct"), ours(size, solver="cg")
        a, b = timed(lambda m=cg: m.fit(X, y)), timed(lambda m=direct: m.fit(X, y))
        rows.append((f"cg against direct, {size} landmarks", a, b, a / b, "-"))
        rows.append((f"steps of cg, {size} landmarks", cg.n_iter_, 0, cg.n_iter_, "-"))
        wrong = [percent_wrong(model, Xt, yt) for model in (cg, direct)]
        what = f"% wrong, cg, {size} landmarks, points more"
        rows.append((what, *wrong, wrong[0] - wrong[1], "-"))
    return rows


def peak_above(which: str, folder: str, queue: multiprocessing.Queue) -> None:
    """In a process of its own: MB above the data."""
    X, y = np.load(f"{folder}/X.npy"), np.load(f"{folder}/y.npy")
    for model in (ours(2), theirs(2)):  # libraries load
        model.fit(X[:2000], y[:2000])
    with peak_memory() as peak:
        (ours() if which == "ours" else theirs()).fit(X, y)
    queue.put(peak.mb)


def memory(X: np.ndarray, y: np.ndarray, *_) -> list[Row]:
    """Peak memory of a fit above the data, in MB."""
    context = multiprocessing.get_context("spawn")
    peaks = []
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/X.npy", X)
        np.save(f"{folder}/y.npy", y)
        for which in ("ours", "theirs"):
            queue = context.Queue()
            process = context.Process(target=peak_above, args=(which, folder, queue))
            process.start()
            peaks.append(queue.get())
            process.join()
    mine, other = peaks
    return [("fit, MB above the data", mine, other, mine, 400)]


PARTS: dict[str, Callable] = {
    "fit": fit,
    "gram": gram,
    "path": path,
    "solvers": solvers,
    "two_thousand": two_thousand,
    "many": many,
    "memory": memory,
}


def main() -> None:
    """All parts, or those named after the file."""
    file = sys.argv[1] if len(sys.argv) > 1 else None
    wanted = sys.argv[2:] or list(PARTS)
    X, name = load(file)
    classes = np.load(file)["y"] if file else np.argmax(X[:, :7], axis=1) + 1
    y = np.where(classes == 2, 1.0, -1.0)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = np.ascontiguousarray(X[order]), y[order]
    parts = X[:TRAINING], y[:TRAINING], X[TRAINING:], y[TRAINING:]
    report(name, X, ((PARTS[part], parts) for part in wanted), RESULTS)


if __name__ == "__main__":
    main()
