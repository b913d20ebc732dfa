"""Figure 1: landmarks on unbalanced clusters, and how they are shared out over seeds.

The paper's picture is a sketch. Three clusters of 1900, 70 and 30 points in the plane,
40 landmarks, rbf with γ = 1; the shares of 100 seeds go to results/figure1.csv.
"""

from __future__ import annotations

import csv

import matplotlib.pyplot as plt
import numpy as np

from nystrom import select_landmarks

from .reading import RESULTS, save

SIZES, CENTRES = (1900, 70, 30), ((0.0, 0.0), (4.0, 1.0), (2.0, 4.0))
SAMPLERS = ("uniform", "accelerated", "recursive", "leverage", "auto")
DRAWN = ("uniform", "recursive", "auto")
SEEDS = 100


def clusters() -> np.ndarray:
    """The rows, cluster by cluster."""
    rng = np.random.default_rng(0)
    parts = zip(SIZES, CENTRES, strict=True)
    return np.concatenate([rng.normal(c, 0.45, (n, 2)) for n, c in parts])


def landmarks(X: np.ndarray, sampler: str, seed: int) -> np.ndarray:
    """Row numbers of 40 landmarks."""
    options = {"gamma": 1.0, "n_landmarks": 40, "sampler": sampler}
    return select_landmarks(X, **options, random_state=seed).indices


def shares(X: np.ndarray) -> list[list]:
    """Mean landmarks in each cluster, and in how many seeds one had none."""
    which = np.repeat(np.arange(len(SIZES)), SIZES)
    table = []
    for sampler in SAMPLERS:
        counts = np.array(
            [
                np.bincount(which[landmarks(X, sampler, seed)], minlength=len(SIZES))
                for seed in range(SEEDS)
            ]
        )
        missed = int((counts == 0).any(axis=1).sum())
        table.append([sampler, *counts.mean(axis=0).round(2), missed])
    return table


def figure() -> None:
    """Three panels, and the table."""
    X = clusters()
    table = shares(X)
    with (RESULTS / "figure1.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        columns = [f"in the cluster of {size}" for size in SIZES]
        writer.writerow(["method", *columns, f"seeds of {SEEDS} that missed one"])
        writer.writerows(table)
    picture, panels = plt.subplots(1, 3, figsize=(13, 4.2), sharex=True, sharey=True)
    for panel, sampler in zip(panels, DRAWN, strict=True):
        panel.scatter(*X.T, s=4, color="0.75", linewidths=0)
        panel.scatter(*X[landmarks(X, sampler, 0)].T, s=34, marker="x", color="C3")
        panel.set_title(f"40 landmarks, {sampler}", fontsize=10)
        panel.set_aspect("equal")
    save(picture, "figure1")


if __name__ == "__main__":
    figure()
