"""Learn from features, or with a whole model, and predict rows that were left out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.svm import LinearSVC

from ..config import Case
from ..learners import MODELS, MissingError, model
from ..measuring import peak_memory, timed
from ..methods import feature_map
from ..problems import chosen, gamma_for, load


def run(
    cases: list[Case],
    folder: Path | None,
    *,
    test_rows: int = 20_000,
    learner: str = "ridge",
    **regularisation: float,
) -> Iterator[tuple[Case, dict]]:
    """A linear learner on features; or, where the method is one, a model of its own.

    `alpha` (ridge regression) and `C` (support vector machine) are those that
    cross-validation found for the set, unless they are given.
    """
    problem = cases[0].problem
    rows = load(problem, folder, extra=test_rows)
    n = min(problem.rows, len(rows.X) - test_rows)
    X, y = rows.X[:n], rows.y[:n]
    X_test, y_test = rows.X[n:], rows.y[n:]
    gamma = gamma_for(problem, X)
    known = {"n": n, "d": X.shape[1], "origin": rows.origin, "gamma": gamma}
    best = regularisation or {
        name: float(chosen(problem.data)[name] or 0) for name in ("alpha", "C")
    }
    for case in cases:
        try:
            found = _learned(case, X, y, X_test, gamma, learner, best)
        except MissingError as missing:
            yield case, {"skipped": str(missing)}
            continue
        guess = found.pop("guess")
        wrong = 100 * float(np.mean((guess > 0) != (y_test > 0)))
        distance = float(np.sqrt(np.mean((guess - y_test) ** 2)))
        yield case, known | found | {"test_error": wrong if rows.classes else distance}


def _learned(case, X, y, X_test, gamma, learner, best) -> dict:
    """Seconds, memory, and the guesses for the test rows."""
    if case.method in MODELS:
        whole = model(case.method, gamma, best["alpha"], case.s, case.seed)
        with peak_memory() as peak:
            seconds, _ = timed(lambda: whole.fit(X, y))
        return {
            "learn_seconds": seconds,
            "peak_mb": peak.mb,
            "guess": np.asarray(whole.predict(X_test)).ravel(),
        }
    features = feature_map(case.method, gamma, case.s, case.seed)
    with peak_memory() as peak:
        fit_seconds, _ = timed(lambda: features.fit(X))
        transform_seconds, Z = timed(lambda: features.transform(X))
        linear = _linear(learner, best)
        learn_seconds, _ = timed(lambda: linear.fit(Z, y))
    Z_test = features.transform(X_test)
    decide = linear.decision_function if learner == "svc" else linear.predict
    return {
        "fit_seconds": fit_seconds,
        "transform_seconds": transform_seconds,
        "learn_seconds": learn_seconds,
        "peak_mb": peak.mb,
        "evaluations": features.evaluations(len(X)),
        "rank": Z.shape[1],
        "guess": decide(Z_test),
    }


def _linear(learner: str, best: dict[str, float]):
    """LIBLINEAR's support vector machine, or ridge regression."""
    if learner == "svc":
        # The primal: rows are many more than features.
        return LinearSVC(C=best["C"], dual=False)
    if learner == "ridge":
        return Ridge(alpha=best["alpha"])
    raise ValueError(f'learner={learner!r}; allowed: "svc", "ridge".')
