"""Kernel PCA, k-means and CCA beside scikit-learn's pipelines, on Covertype.

    python3 dev.py bench components ../path/to/covertype.npz

300 000 rows, 500 landmarks, float32, γ = 0.01. Times are taken in turn and medians
compared; memory is that of a process of its own. Names after the file (pca, exact,
kmeans, cca, memory) run these parts alone. The table goes to results/components.csv.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
from collections.abc import Callable
from itertools import product
from pathlib import Path
from statistics import median

import numpy as np
from core import Row, beside, load, report, timed
from harness.measuring import peak_memory
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Exact
from sklearn.kernel_approximation import Nystroem as Theirs
from sklearn.pipeline import make_pipeline

from nystrom import KernelCCA, KernelKMeans, KernelPCA, Nystroem

GAMMA, SIZE, ROWS = 0.01, 500, 300_000
RESULTS = Path(__file__).parent / "results" / "components.csv"
OURS = {"kernel": "rbf", "gamma": GAMMA, "n_landmarks": SIZE, "random_state": 0}


def features():
    """scikit-learn's first step."""
    return Theirs(gamma=GAMMA, n_components=SIZE, random_state=0)


def pca(X: np.ndarray) -> list[Row]:
    """fit, and fit_transform, of ten components."""
    theirs = make_pipeline(features(), PCA(10, random_state=0))
    rows: list[Row] = []
    for sampler, name in product(("uniform", "auto"), ("fit", "fit_transform")):
        ours = KernelPCA(10, sampler=sampler, **OURS)
        a, b = beside(
            lambda m=ours, f=name: getattr(m, f)(X),
            lambda m=theirs, f=name: getattr(m, f)(X),
            3,
        )
        what = f"KernelPCA, {sampler}, {name}, against pipeline"
        rows.append((what, a, b, a / b, 0.5))
    share = float(ours.explained_variance_ratio_.sum())
    other = theirs[-1].explained_variance_.sum() * (len(X) - 1)
    mine = float(ours.eigenvalues_.sum())
    rows.append(("variance of ten components", mine, other, mine / other, "≥ 1"))
    rows.append(("their share of all variance", share, 0.0, share, "-"))
    return rows


def exact(X: np.ndarray) -> list[Row]:
    """Ten components of 8000 rows beside scikit-learn's, which holds all of K."""
    part = np.ascontiguousarray(X[:8000])
    theirs = Exact(10, kernel="rbf", gamma=GAMMA, eigen_solver="arpack", random_state=0)
    rows: list[Row] = []
    for sampler in ("uniform", "auto"):
        ours = KernelPCA(10, sampler=sampler, **OURS)
        a, b = beside(
            lambda m=ours: m.fit_transform(part), lambda: theirs.fit_transform(part), 7
        )
        rows.append((f"KernelPCA, {sampler}, against arpack", a, b, a / b, 0.4))
        mine, other = float(ours.eigenvalues_.sum()), float(theirs.eigenvalues_.sum())
        what = f"variance, {sampler}, of the ten that arpack finds"
        rows.append((what, mine, other, mine / other, "-"))
    return rows


def kmeans(X: np.ndarray) -> list[Row]:
    """Seven clusters, three restarts: time, and the objective in kernel space."""
    theirs = make_pipeline(features(), KMeans(7, n_init=3, random_state=0))
    ours = KernelKMeans(7, n_init=3, **OURS)
    a, b = beside(lambda: ours.fit(X), lambda: theirs.fit(X), 3)
    costs = [cost(X, labels) for labels in (ours.labels_, theirs[-1].labels_)]
    return [
        ("KernelKMeans, fit, against pipeline", a, b, a / b, 0.7),
        ("objective, on the same features", *costs, costs[0] / costs[1], 1.01),
    ]


def cost(X: np.ndarray, labels: np.ndarray) -> float:
    """Σ‖z − mean‖² in features by 1000 other landmarks, beside tr K − tr K̃."""
    map_ = Nystroem(gamma=GAMMA, n_components=1000, random_state=1).fit(X)
    n_clusters = labels.max() + 1
    sums, counts, kept = np.zeros((n_clusters, 1000)), np.zeros(n_clusters), 0.0
    for start in range(0, len(X), 20_000):
        Z = map_.transform(X[start : start + 20_000]).astype(np.float64)
        own = labels[start : start + 20_000]
        np.add.at(sums, own, Z)
        counts += np.bincount(own, minlength=n_clusters)
    kept = float(np.sum(np.vecdot(sums, sums) / np.maximum(counts, 1)))
    return len(X) - kept  # k(x, x) = 1


def cca(X: np.ndarray) -> list[Row]:
    """The first 10 features against the next 10: each doubling of n, and held out."""
    sizes = [len(X) // 4, len(X) // 2, len(X)]
    seconds = []
    for n in sizes:
        model = KernelCCA(2, **OURS)
        part = np.ascontiguousarray(X[:n, :10]), np.ascontiguousarray(X[:n, 10:20])
        seconds.append(median(timed(lambda p=part, m=model: m.fit(*p)) for _ in "123"))
    return [
        (f"KernelCCA, n from {a} to {b}", t, s, t / s, 2.2)
        for a, b, s, t in zip(sizes, sizes[1:], seconds, seconds[1:], strict=False)
    ]


def peak_above(which: str, folder: str, queue: multiprocessing.Queue) -> None:
    """In a process of its own: MB above the data."""
    X = np.load(f"{folder}/X.npy")
    model = {
        "pca": KernelPCA(10, **OURS),
        "kmeans": KernelKMeans(7, n_init=3, **OURS),
        "theirs": make_pipeline(features(), PCA(10, random_state=0)),
    }[which]
    KernelPCA(2, kernel="rbf", n_landmarks=5).fit(X[:2000])  # libraries load
    make_pipeline(Theirs(n_components=5), KMeans(2), PCA(2)).fit(X[:2000])
    with peak_memory() as peak:
        model.fit(X)
    queue.put(peak.mb)


def memory(X: np.ndarray) -> list[Row]:
    """Peak memory of a fit above the data, in MB."""
    context = multiprocessing.get_context("spawn")
    peaks = {}
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/X.npy", X)
        for which in ("pca", "kmeans", "theirs"):
            queue = context.Queue()
            process = context.Process(target=peak_above, args=(which, folder, queue))
            process.start()
            peaks[which] = queue.get()
            process.join()
    return [
        (f"{name}, MB above the data", peaks[key], peaks["theirs"], peaks[key], 300)
        for key, name in (("pca", "KernelPCA"), ("kmeans", "KernelKMeans"))
    ]


PARTS: dict[str, Callable] = {
    "pca": pca,
    "exact": exact,
    "kmeans": kmeans,
    "cca": cca,
    "memory": memory,
}


def main() -> None:
    """All parts, or those named after the file."""
    file = sys.argv[1] if len(sys.argv) > 1 else None
    wanted = sys.argv[2:] or list(PARTS)
    X, name = load(file)
    order = np.random.default_rng(0).permutation(len(X))[:ROWS]
    X = np.ascontiguousarray(X[order])
    report(name, X, ((PARTS[part], (X,)) for part in wanted), RESULTS)


if __name__ == "__main__":
    main()
