"""Approximate K: seconds and memory of building features, and their error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..config import Case
from ..errors import STEPS, DenseKernel
from ..measuring import peak_memory, timed
from ..methods import feature_map
from ..problems import gamma_for, load

#: Bytes of features and Lanczos vectors at a time, beside K.
BUDGET = 4e9


def run(
    cases: list[Case], folder: Path | None, *, error_rows: int = 20_000
) -> Iterator[tuple[Case, dict]]:
    """Features of all rows are timed; errors are on the first `error_rows` of them.

    Errors of several cases are found together, for a product with K costs the same for
    one vector as for twenty.
    """
    rows = load(cases[0].problem, folder)
    gamma = gamma_for(cases[0].problem, rows.X)
    on = rows.X[:error_rows]
    K: DenseKernel | None = None
    known = {"n": len(rows.X), "d": rows.X.shape[1], "origin": rows.origin}
    known |= {"gamma": gamma, "error_rows": len(on)}
    while cases:
        s = cases[0].s
        size = max(1, int(BUDGET / (8 * len(on) * (s + 2 * STEPS))))
        size = next((i for i, c in enumerate(cases[:size]) if c.s != s), size)
        batch, cases = cases[:size], cases[size:]
        built = [_build(rows.X, gamma, case, len(on)) for case in batch]
        if K is None:  # only now: building must not find less memory than users have
            K = DenseKernel(on, gamma)
        known |= {"norm": K.norm, "trace": K.trace}
        norms = K.spectral_errors([Z for Z, _ in built])
        for case, (Z, found), norm in zip(batch, built, norms, strict=True):
            errors = {"spectral_error": float(norm), "trace_error": K.trace_error(Z)}
            yield case, known | found | errors
        del built, Z


def _build(
    X: np.ndarray, gamma: float, case: Case, n_errors: int
) -> tuple[np.ndarray, dict]:
    """Features of the first rows, and what all of them cost."""
    method = feature_map(case.method, gamma, case.s, case.seed)
    with peak_memory() as peak:
        fit_seconds, _ = timed(lambda: method.fit(X))
        transform_seconds, Z = timed(lambda: method.transform(X))
    found = {
        "fit_seconds": fit_seconds,
        "transform_seconds": transform_seconds,
        "peak_mb": peak.mb,
        "evaluations": method.evaluations(len(X)),
        "rank": Z.shape[1],
    }
    return Z[:n_errors].astype(np.float64, copy=n_errors < len(X)), found
