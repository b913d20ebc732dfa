"""Ridge leverage scores and their sum, exact or from landmarks."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _arrays as arrays
from ..columns import Columns
from ..edge.memory import explaining_memory
from ..edge.showing import shown_function
from ..edge.warnings import warn_indefinite
from ..engines.progress import expect
from ..landmarks import Landmarks
from ..precision import least_ridge
from ..residuals import prepare
from ..ridge_root import ridge_root, weighted
from ..scores import Spectrum, kernel_matrix, sample_scores
from .problem import Problem, check_needed_ridge


@shown_function
@explaining_memory("leverage_scores")
def leverage_scores(
    X: Any,
    *,
    ridge: float,
    kernel: Any = "rbf",
    gamma: Any = None,
    degree: float | None = None,
    coef0: float | None = None,
    kernel_params: dict[str, Any] | None = None,
    landmarks: Landmarks | None = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> np.ndarray:
    """The λ-ridge leverage scores of X's rows, (K(K + λI)⁻¹)ᵢᵢ.

    Exact from the whole kernel matrix, O(n³) time; or, with `landmarks`, estimated from
    them with s kernel evaluations per row. Landmarks with weights stand for all rows
    (Lemma 6, section 4.2); without weights the estimates are never below the exact
    scores.

    Parameters
    ----------
    X, kernel, gamma, degree, coef0, kernel_params, sample_weight, n_jobs, verbose
        As for `select_landmarks`; with `landmarks` their kernel is used.
    ridge : float
        λ > 0.
    landmarks : Landmarks or None
        A sample of the rows to estimate from.

    Returns
    -------
    scores : ndarray of shape (n_rows,)
        In [0, 1]; their sum is the effective dimension.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import effective_dimension, leverage_scores
    >>> X = np.random.default_rng(0).standard_normal((300, 2))
    >>> scores = leverage_scores(X, gamma=0.5, ridge=1.0)
    >>> bool(np.isclose(scores.sum(), effective_dimension(X, gamma=0.5, ridge=1.0)))
    True
    """
    check_needed_ridge(ridge)
    problem = Problem.of(
        "leverage_scores",
        X,
        kernel,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        landmarks=landmarks,
        sample_weight=sample_weight,
        n_jobs=n_jobs,
        verbose=verbose,
    )
    return problem.such_as_rows(_scores(problem, ridge))


@shown_function
@explaining_memory("effective_dimension")
def effective_dimension(
    X: Any,
    *,
    ridge: float,
    kernel: Any = "rbf",
    gamma: Any = None,
    degree: float | None = None,
    coef0: float | None = None,
    kernel_params: dict[str, Any] | None = None,
    landmarks: Landmarks | None = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> float:
    """d_eff(λ) = tr K(K + λI)⁻¹, the sum of the ridge leverage scores.

    Exact, or estimated from `landmarks`; the parameters are those of `leverage_scores`.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import effective_dimension
    >>> X = np.random.default_rng(0).standard_normal((300, 2))
    >>> 1 < effective_dimension(X, gamma=0.5, ridge=1.0) < 300
    True
    """
    check_needed_ridge(ridge)
    problem = Problem.of(
        "effective_dimension",
        X,
        kernel,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        landmarks=landmarks,
        sample_weight=sample_weight,
        n_jobs=n_jobs,
        verbose=verbose,
    )
    scores = problem.such_as_rows(_scores(problem, ridge))
    return float(arrays.fetched(scores).sum())


def _scores(problem: Problem, ridge: float) -> np.ndarray:
    """Of every row, on the host: exact, or from the landmarks that there are."""
    kernel, source, landmarks = problem.kernel, problem.source, problem.landmarks
    if landmarks is None:
        problem.engine.progress("exact scores", 0, 1)
        K = kernel_matrix(kernel, source)
        spectrum = Spectrum.of(K, kernel.dtype(source.rows(0, 1)))
        psd = kernel.traits.psd
        if psd is False or (psd is None and spectrum.indefinite):
            warn_indefinite(kernel, "their negative part counts as 0")
        return spectrum.scores(ridge)
    w = np.ones(len(landmarks)) if landmarks.weights is None else landmarks.weights
    if source.is_weighted and landmarks.indices is not None:
        w = w * np.sqrt(source.weights_of(landmarks.indices))
    SKS = weighted(kernel.gram(landmarks.points), w)
    safe = max(ridge, least_ridge(SKS))
    columns = Columns(kernel, landmarks.points)
    ready = prepare(columns, source, ridge_root(SKS, w, safe))
    expect(problem.engine.progress, 1)
    return np.minimum(1.0, sample_scores(ready, source, safe, engine=problem.engine))
