"""Landmarks by every sampler, on scikit-learn's digits and on unbalanced clusters.

Prints errors, rank, time and kernel evaluations, and draws the paper's Figure 1:
uniform landmarks crowd in the dense cluster, landmarks by ridge leverage score cover
them all, and those of the default do so evenly.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from nystrom import approximate, select_landmarks
from nystrom.landmarks import Landmarks

SAMPLERS = ["uniform", "accelerated", "recursive", "leverage", "rpcholesky", "greedy"]
SAMPLERS += ["auto", "kmeans"]
DRAWN = ["uniform", "recursive", "auto"]
SEEDS = range(5)


def unbalanced_clusters() -> np.ndarray:
    """Three clusters in the plane, of 1900, 70 and 30 points."""
    rng = np.random.default_rng(0)
    sizes, centers = (1900, 70, 30), ((0.0, 0.0), (4.0, 1.0), (2.0, 4.0))
    return np.concatenate(
        [rng.normal(c, 0.45, (n, 2)) for n, c in zip(sizes, centers, strict=True)]
    )


def table(name: str, X: np.ndarray, gamma: float, n_landmarks: int) -> list[Landmarks]:
    """One line per sampler, medians over five seeds; the first seed's landmarks."""
    print(f"\n{name}: {len(X)} rows, {n_landmarks} landmarks, rbf with gamma = {gamma}")
    print(f"{'sampler':<12} trace error  spectral error  rank  seconds  evaluations")
    first = []
    for sampler in SAMPLERS:
        rows = []
        for seed in SEEDS:
            landmarks = select_landmarks(
                X,
                gamma=gamma,
                n_landmarks=n_landmarks,
                sampler=sampler,
                random_state=seed,
            )
            approximation = approximate(X, landmarks)
            spectral = float(approximation.spectral_error())
            rows.append(
                (
                    landmarks.rank,
                    spectral,
                    approximation.trace_error,
                    landmarks.seconds,
                    landmarks.n_kernel_evaluations,
                )
            )
            if seed == SEEDS[0]:
                first.append(landmarks)
        rank, spectral, trace, seconds, evaluations = np.median(rows, axis=0)
        print(
            f"{sampler:<12} {trace / len(X):11.2%}  {spectral / len(X):14.3%}  "
            f"{rank:4.0f}  {seconds:7.3f}  {evaluations:11.0f}"
        )
    return first


def draw(X: np.ndarray, chosen: list[Landmarks], path: Path) -> None:
    """Figure 1 of the paper, and a third set of landmarks of the same clusters."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, 3, figsize=(13, 4.2), sharex=True, sharey=True, layout="constrained"
    )
    shown = [chosen[SAMPLERS.index(name)] for name in DRAWN]
    for axis, landmarks in zip(axes, shown, strict=True):
        axis.scatter(*X.T, s=4, color="0.75", linewidths=0, label="rows")
        axis.scatter(
            *landmarks.points.T, s=34, marker="x", color="C3", label="landmarks"
        )
        left = approximate(X, landmarks).trace_error / len(X)
        axis.set_title(f"{landmarks.sampler}: {len(landmarks)} leave {left:.1%} of K")
        axis.set_aspect("equal")
    axes[0].legend(loc="upper left", frameon=False)
    figure.savefig(path, dpi=120, bbox_inches="tight")


def main() -> None:
    """Two tables and a picture."""
    print(
        "Which rows are landmarks: the same number of them, by every sampler, medians "
        "of five draws.\n"
        "Read the trace error, the less the better: how much of K the landmarks leave. "
        "'auto' is the\ndefault; 'leverage' needs all of K, n² evaluations, and is "
        "here to compare with."
    )
    digits = load_digits().data
    table("digits", digits, gamma=1e-3, n_landmarks=200)
    clusters = unbalanced_clusters()
    chosen = table("unbalanced clusters", clusters, gamma=1.0, n_landmarks=40)
    path = Path("figure1.png")
    draw(clusters, chosen, path)
    print(f"\nFigure 1 of the paper, drawn from this run: {path.resolve()}")


if __name__ == "__main__":
    main()
