"""K̃ of rows and landmarks, as an operator."""

from __future__ import annotations

from typing import Any

from ..approximation import Approximation
from ..landmarks import Landmarks
from .problem import Problem, check_landmarks


def approximate(
    X: Any,
    landmarks: Landmarks,
    *,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Approximation:
    """K̃ = KS(SᵀKS)⁺SᵀK for the rows of X as an operator that knows its error.

    Parameters
    ----------
    X : as for `select_landmarks`
        The rows; the square kernel matrix for landmarks of a precomputed kernel.
    landmarks : Landmarks
        From `select_landmarks`, or `estimator.landmarks_`.
    sample_weight, n_jobs, verbose
        As for `select_landmarks`; weights count in the trace error.

    Returns
    -------
    approximation : Approximation
        With `features()`, `@ v`, `diagonal()`, `trace()`, `eigh(k)`, `solve(b, ridge)`,
        `trace_error`, `spectral_error()`.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import approximate, select_landmarks
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> landmarks = select_landmarks(X, gamma=0.1, n_landmarks=50, random_state=0)
    >>> approximation = approximate(X, landmarks)
    >>> approximation.trace_error < 0.01 * 500
    True
    """
    check_landmarks(landmarks)
    problem = Problem.of(
        "approximate",
        X,
        landmarks=landmarks,
        sample_weight=sample_weight,
        n_jobs=n_jobs,
        verbose=verbose,
    )
    assert problem.landmarks is not None  # they were given
    return Approximation(problem.source, problem.landmarks, problem.engine)
