"""What a stream costs in quality: landmarks that are followed, beside a refit.

    python3 dev.py bench streams

Generated streams, read batch by batch: `Nystroem.partial_fit`, landmarks of the first
batch with `update`, and `KernelRidge.partial_fit`; beside each the same chosen,
or fitted, from all rows at once. Ratios over seeds (geometric mean, and the largest):
of the trace error on all rows, on the last batch, and as it is told; of the root mean
square error of predictions, without and with the targets' own noise of 0.5. Errors
only; the table goes to results/streams.csv.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from nystrom import KernelRidge, Nystroem, kernels, select_landmarks
from nystrom.landmarks import Landmarks

RESULTS = Path(__file__).parent / "results" / "streams.csv"
N_BATCHES, BATCH, NOISE = 30, 500, 0.5
SIZES = {60: 5}  # landmarks: seeds
KERNEL = kernels.RBF(0.1)
MEASURES = ["trace", "trace_last_batch", "update", "told"]
MEASURES += ["ridge_trace", "ridge_rmse", "ridge_rmse_with_noise"]

Rows = np.ndarray


def mixture(rng: np.random.Generator) -> Iterator[Rows]:
    """Twelve clusters of very different size."""
    centers, shares = 3 * rng.standard_normal((12, 5)), rng.dirichlet(np.full(12, 0.7))
    for _ in range(N_BATCHES):
        chosen = rng.choice(12, BATCH, p=shares)
        yield centers[chosen] + 0.7 * rng.standard_normal((BATCH, 5))


def heavy_tails(rng: np.random.Generator) -> Iterator[Rows]:
    """Student's t with 1.5 degrees of freedom."""
    for _ in range(N_BATCHES):
        yield rng.standard_t(1.5, (BATCH, 3))


def rare_rows(rng: np.random.Generator) -> Iterator[Rows]:
    """One row in two hundred is far away from all others."""
    for _ in range(N_BATCHES):
        far = rng.random((BATCH, 1)) < 0.005
        yield rng.standard_normal((BATCH, 5)) * np.where(far, 8.0, 0.3)


def drifting(rng: np.random.Generator) -> Iterator[Rows]:
    """Eight clusters, each on its way."""
    centers, speed = 2 * rng.standard_normal((8, 5)), 0.15 * rng.standard_normal((8, 5))
    for t in range(N_BATCHES):
        chosen = (centers + t * speed)[rng.choice(8, BATCH)]
        yield chosen + 0.5 * rng.standard_normal((BATCH, 5))


def rotating(rng: np.random.Generator) -> Iterator[Rows]:
    """Three clusters that go round once."""
    for t in range(N_BATCHES):
        phase = 2 * np.pi * (rng.choice(3, BATCH) / 3 + t / N_BATCHES)
        X = 0.6 * rng.standard_normal((BATCH, 5))
        X[:, 0] += 4 * np.cos(phase)
        X[:, 1] += 4 * np.sin(phase)
        yield X


def in_order(rng: np.random.Generator) -> Iterator[Rows]:
    """Sorted by a feature: no batch is like another."""
    n = N_BATCHES * BATCH
    X = rng.standard_normal((n, 5)) * rng.choice([0.3, 1.0, 3.0], (n, 1))
    yield from X[np.argsort(X[:, 0])].reshape(N_BATCHES, BATCH, 5)


STREAMS = [mixture, heavy_tails, rare_rows, drifting, rotating, in_order]


def trace_error(landmarks: Landmarks, X: Rows) -> float:
    """tr(K − K̃)/tr K on these rows."""
    Z = landmarks.columns().to_host(X) @ landmarks.factor.root
    return float(1 - np.vdot(Z, Z) / len(X))


def wave(X: Rows) -> np.ndarray:
    """A smooth function of the first three features."""
    return np.sin(X[:, 0]) + np.cos(X[:, 1] + X[:, 2])


def measured(make: Callable, size: int, seed: int) -> list[float]:
    """The ratios of one stream."""
    rng = np.random.default_rng(seed)
    batches = list(make(rng))
    targets = [wave(X) + NOISE * rng.standard_normal(len(X)) for X in batches]
    X, y = np.concatenate(batches), np.concatenate(targets)
    options = {"kernel": KERNEL, "n_landmarks": size, "random_state": seed}
    stream = Nystroem(KERNEL, n_components=size, random_state=seed)
    landmarks = select_landmarks(batches[0], **options)
    ridge = KernelRidge(0.1, fit_intercept=True, **options)
    for i, (batch, t) in enumerate(zip(batches, targets, strict=True)):
        stream.partial_fit(batch)
        ridge.partial_fit(batch, t)
        if i:
            landmarks = landmarks.update(batch, random_state=seed)
    refit = select_landmarks(X, **options)
    whole = KernelRidge(0.1, fit_intercept=True, **options).fit(X, y)
    best, own = trace_error(refit, X), trace_error(stream.landmarks_, X)
    last = batches[-1]
    wrong, least = (np.mean((m.predict(X) - wave(X)) ** 2) for m in (ridge, whole))
    return [
        own / best,
        trace_error(stream.landmarks_, last) / trace_error(refit, last),
        trace_error(landmarks, X) / best,
        stream.approximation_error_.value / own,
        trace_error(ridge.landmarks_, X) / best,
        float(np.sqrt(wrong / least)),
        float(np.sqrt((wrong + NOISE**2) / (least + NOISE**2))),
    ]


def main() -> None:
    """The table."""
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    fields = ["stream", "n_landmarks", "seeds"]
    fields += [f"{name}_{kind}" for name in MEASURES for kind in ("mean", "largest")]
    table = []
    for make in STREAMS:
        for size, seeds in SIZES.items():
            found = np.array([measured(make, size, seed) for seed in range(seeds)])
            both = zip(
                np.exp(np.log(found).mean(axis=0)), found.max(axis=0), strict=True
            )
            ratios = [f"{value:.3f}" for pair in both for value in pair]
            table.append([make.__name__, size, seeds, *ratios])
            print(*table[-1], flush=True)
    with RESULTS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([fields, *table])


if __name__ == "__main__":
    main()
