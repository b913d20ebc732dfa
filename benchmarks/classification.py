"""Classifiers that choose their own numbers, beside a grid search of scikit-learn's.

    python3 dev.py bench classification --data folder

Digits, breast cancer, Covertype (as it comes) and Adult, 20 000 rows of the large ones
to train on and as many to test, all standardised. KernelRidgeClassifierCV as it is, but
for the number of landmarks; KernelLogisticRegression with the width learnt and one of
four C; GridSearchCV over Pipeline(Nystroem, RidgeClassifier) with the same alphas,
widths, folds and number of landmarks as the first, and for probabilities
CalibratedClassifierCV around the best. Seconds are coarse. The table goes to
results/classification.csv, and `dev.py bench figures classification` draws it.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from harness import data
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from nystrom import KernelLogisticRegression, KernelRidgeClassifierCV

RESULTS = Path(__file__).parent / "results" / "classification.csv"
FIELDS = ["data", "method", "train", "test", "classes", "s", "gamma", "alpha"]
FIELDS += ["seconds", "accuracy", "log_loss", "calibration_error", "told", "seen"]
Rows = tuple[np.ndarray, np.ndarray]
#: Parts of equally many answers that a calibration curve has.
PARTS = 10


def sets(folder: Path | None, rows: int) -> Iterator[tuple[str, Rows, Rows]]:
    """Each set, to train on and to test on."""
    for name, load in (("digits", load_digits), ("cancer", load_breast_cancer)):
        yield name, *parted(*load(return_X_y=True), rows)
    for name in ("covertype", "adult"):
        X, y, _ = data.load(name, folder)
        yield name, *parted(X, y, rows)


def parted(X: np.ndarray, y: np.ndarray, rows: int) -> tuple[Rows, Rows]:
    """Two thirds of few rows to train on, of many so many; as many to test at most."""
    order = np.random.default_rng(0).permutation(len(X))
    n = min(rows, 2 * len(X) // 3)
    train, test = order[:n], order[n : 2 * n]
    scaler = StandardScaler().fit(X[train])
    parts = ((scaler.transform(X[part]), y[part]) for part in (train, test))
    return tuple(parts)  # type: ignore[return-value]


def ours(X: np.ndarray, y: np.ndarray, size: int) -> tuple[object, dict]:
    """All chosen by the class itself."""
    begun = time.perf_counter()
    model = KernelRidgeClassifierCV(n_landmarks=size, random_state=0).fit(X, y)
    taken = time.perf_counter() - begun
    return model, {"gamma": model.gamma_, "alpha": model.alpha_, "seconds": taken}


def logistic(X: np.ndarray, y: np.ndarray, size: int) -> tuple[object, dict]:
    """The width by likelihood, C on rows left out; alpha is 1/C."""
    begun = time.perf_counter()
    model = KernelLogisticRegression(
        [0.1, 1.0, 10.0, 100.0], gamma="learn", n_landmarks=size, random_state=0
    ).fit(X, y)
    taken = time.perf_counter() - begun
    return model, {"gamma": model.gamma_, "alpha": 1 / model.C_, "seconds": taken}


def theirs(X: np.ndarray, y: np.ndarray, size: int) -> tuple[object, dict]:
    """What a user of scikit-learn writes for the same."""
    steps = [
        ("features", Nystroem(n_components=min(size, len(X) // 2), random_state=0)),
        ("ridge", RidgeClassifier()),
    ]
    scale = 1 / (X.shape[1] * X.var())
    grid = {
        "features__gamma": scale * 4.0 ** np.arange(-2, 3),
        "ridge__alpha": np.logspace(-3, 3, 13),
    }
    begun = time.perf_counter()
    search = GridSearchCV(Pipeline(steps), grid, cv=5).fit(X, y)
    model = CalibratedClassifierCV(search.best_estimator_, cv=5).fit(X, y)
    taken, best = time.perf_counter() - begun, search.best_params_
    chosen = {"gamma": best["features__gamma"], "alpha": best["ridge__alpha"]}
    return model, {**chosen, "seconds": taken}


def judged(model, X: np.ndarray, y: np.ndarray) -> dict:
    """Accuracy, log-loss, and how often the class told is right, by what was told."""
    P = model.predict_proba(X)
    told, right = P.max(axis=1), model.classes_[P.argmax(axis=1)] == y
    parts = np.array_split(np.argsort(told, kind="stable"), PARTS)
    means = [(told[part].mean(), right[part].mean()) for part in parts]
    error = np.average([abs(a - b) for a, b in means], weights=[len(p) for p in parts])
    return {
        "accuracy": model.score(X, y),
        "log_loss": log_loss(y, P, labels=model.classes_),
        "calibration_error": error,
        "told": " ".join(f"{a:.4f}" for a, _ in means),
        "seen": " ".join(f"{b:.4f}" for _, b in means),
    }


def main() -> None:
    """All sets, all ways."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder with the real sets' files")
    parser.add_argument("--rows", type=int, default=20_000, help="to train on, at most")
    parser.add_argument("--landmarks", type=int, default=300)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    table = []
    for name, (X, y), new in sets(given.data, given.rows):
        for method, fitted in (
            ("KernelRidgeClassifierCV", ours),
            ("KernelLogisticRegression", logistic),
            ("GridSearchCV", theirs),
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # classes of fewer rows than folds
                model, chosen = fitted(X, y, given.landmarks)
            row = {"data": name, "method": method, "train": len(X), "test": len(new[0])}
            row |= {"classes": len(np.unique(y)), "s": given.landmarks, **chosen}
            row |= judged(model, *new)
            table.append(
                {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()}
            )
            print({k: table[-1][k] for k in FIELDS[:-2]}, flush=True)
            with given.out.open("w", newline="") as file:
                writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(table)


if __name__ == "__main__":
    main()
