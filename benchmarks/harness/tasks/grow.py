"""How cost grows with n and s: choosing landmarks, and whole estimators."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from nystrom import KernelCCA, KernelKMeans, KernelPCA, KernelRidge, select_landmarks
from nystrom.samplers import NAMES as SAMPLERS

from ..config import Case
from ..measuring import peak_memory, timed
from ..problems import gamma_for, load


def _choose(sampler: str) -> Callable:
    def job(X: np.ndarray, y: np.ndarray, gamma: float, s: int, seed: int) -> int:
        options = {"n_landmarks": s, "sampler": sampler, "random_state": seed}
        return select_landmarks(X, gamma=gamma, **options).n_kernel_evaluations

    return job


def _ridge(X: np.ndarray, y: np.ndarray, gamma: float, s: int, seed: int) -> int:
    model = KernelRidge(alpha=1e-2, kernel="rbf", gamma=gamma, **_landmarks(s, seed))
    return model.fit(X, y).landmarks_.n_kernel_evaluations + len(X) * s


def _pca(X: np.ndarray, y: np.ndarray, gamma: float, s: int, seed: int) -> int:
    model = KernelPCA(10, kernel="rbf", gamma=gamma, **_landmarks(s, seed))
    return model.fit(X).landmarks_.n_kernel_evaluations + len(X) * s


def _kmeans(X: np.ndarray, y: np.ndarray, gamma: float, s: int, seed: int) -> int:
    # As many rounds for every n: how many it takes to converge is luck.
    rounds = {"n_init": 1, "max_iter": 5, "tol": 0}
    model = KernelKMeans(8, gamma=gamma, **rounds, **_landmarks(s, seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X).landmarks_.n_kernel_evaluations


def _cca(X: np.ndarray, y: np.ndarray, gamma: float, s: int, seed: int) -> int:
    half = X.shape[1] // 2
    model = KernelCCA(2, gamma=gamma, **_landmarks(s, seed))
    model.fit(X[:, :half], X[:, half:])
    return sum(side.n_kernel_evaluations for side in model.landmarks_) + 2 * len(X) * s


def _landmarks(s: int, seed: int) -> dict:
    return {"n_landmarks": s, "random_state": seed}


JOBS: dict[str, Callable] = {name: _choose(name) for name in SAMPLERS} | {
    "KernelRidge": _ridge,
    "KernelPCA": _pca,
    "KernelKMeans": _kmeans,
    "KernelCCA": _cca,
}


def run(cases: list[Case], folder: Path | None) -> Iterator[tuple[Case, dict]]:
    """Seconds of a job, in `fit_seconds`, and its memory beside the rows."""
    rows = load(cases[0].problem, folder)
    gamma = gamma_for(cases[0].problem, rows.X)
    known = {"n": len(rows.X), "d": rows.X.shape[1], "origin": rows.origin}
    mapped = isinstance(rows.X, np.memmap)
    for case in cases:
        job = JOBS[case.method]
        with peak_memory(mapped=mapped) as peak:
            seconds, evaluations = timed(
                lambda job=job, case=case: job(rows.X, rows.y, gamma, case.s, case.seed)
            )
        yield (
            case,
            known
            | {
                "gamma": gamma,
                "fit_seconds": seconds,
                "peak_mb": peak.mb,
                "evaluations": evaluations,
            },
        )
