"""Width, ridge and number of landmarks, chosen by cross-validation."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

from nystrom import (
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
    KernelRidgeCV,
)

from .columns import Columns

#: Rows that the width, the ridge and the number of landmarks are chosen on at most.
MOST_TO_CHOOSE = 50_000
#: Times that widths are tried beyond the end of those before.
MOST_SEARCHES = 3


def chosen_estimator(
    columns: Columns,
    train: pd.DataFrame,
    y: np.ndarray,
    task: str,
    size: int,
    seed: int,
    verbose: int,
) -> Any:
    """The estimator, with width and ridge by cross-validation on some of the rows."""
    few = np.random.default_rng(seed).permutation(len(y))[:MOST_TO_CHOOSE]
    Z = columns.encoder().fit_transform(train.iloc[few])
    search = KernelRidgeCV if task == "regression" else KernelRidgeClassifierCV
    fewer = sorted({max(10, size // 4), max(10, size // 2), size})
    common: dict[str, Any] = {
        "kernel": "rbf",
        "random_state": seed,
        "verbose": verbose,
    }
    found = searched(
        search(
            gammas="auto",
            n_landmarks=fewer,
            prefer_fewer=False,
            fit_intercept=True,
            cv=5,
            **common,
        ),
        Z,
        y[few],
    )
    make = KernelRidge if task == "regression" else KernelRidgeClassifier
    return make(
        alpha=float(found.alpha_) * len(y) / len(few),
        gamma=float(found.gamma_),
        n_landmarks=int(found.n_landmarks_),
        fit_intercept=True,
        **common,
    )


def searched(search: Any, Z: np.ndarray, y: np.ndarray) -> Any:
    """Fitted; where the best width is at the end of those tried, beyond it too.

    The library only warns, as whoever calls it can give other widths; here nobody can.
    """
    for _ in range(MOST_SEARCHES):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            search.fit(Z, y)
        at_end = [w for w in told if str(w.message).startswith("The best of ")]
        for other in told:
            if other not in at_end:
                warnings.warn(other.message, stacklevel=2)
        if not any("gammas" in str(w.message) for w in at_end):
            break
        best, widths = search.gamma_, sorted(search.gammas_)
        step = 4.0 if best == widths[-1] else 0.25
        search.set_params(gammas=[best / step, best, best * step, best * step**2])
    return search
